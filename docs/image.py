"""Draws the picture of `image.md`: ``python docs/image.py`` writes `resize.png` beside it (needs matplotlib)."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from catena import image

METHODS = ("nearest", "area", "linear", "cubic", "lanczos3")
FACE = """
..####..
.#....#.
#.#..#.#
#......#
#.#..#.#
#..##..#
.#....#.
..####..
"""


def main() -> None:
    face = np.array([[c == "#" for c in row] for row in FACE.split()], np.float32)
    y, x = np.mgrid[-1:1:400j, -1:1:400j]
    rings = (np.cos(90 * (x * x + y * y)) / 2 + 0.5).astype(np.float32)
    figure, axes = plt.subplots(2, 5, figsize=(10, 4.4), layout="constrained")
    for axis, method in zip(axes[0], METHODS, strict=True):
        show(axis, image.resize(face, (96, 96), method), f'8 to 96, "{method}"')
    show(axes[1, 0], rings, "400 x 400")
    shrunk = [("nearest", True), ("linear", False), ("linear", True), ("lanczos3", True)]
    for axis, (method, antialias) in zip(axes[1, 1:], shrunk, strict=True):
        title = f'to 80, "{method}"' + ("" if antialias else ", not antialiased")
        show(axis, image.resize(rings, (80, 80), method, antialias), title)
    figure.savefig(Path(__file__).with_name("resize.png"), dpi=75)


def show(axis, values, title: str) -> None:
    axis.imshow(values, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axis.set_title(title, fontsize=8)
    axis.set_axis_off()


if __name__ == "__main__":
    main()
