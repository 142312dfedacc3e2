"""Small pictures of arrays for notebooks: of a matrix or an image, or how often which values occur.

Large arrays are sampled: every so many elements along each axis are looked at, a few thousand in all.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib

import numpy as np

SIDE = 96  # elements of a picture along each axis, at most
SAMPLED = SIDE * SIDE
SHOWN = 160  # pixels of the longer side
BINS, WIDTH, HEIGHT = 32, 192, 48
# Five colours of the scale "viridis" (Smith and van der Walt, 2015), from low to high, with straight lines between.
SCALE = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], float)
NO_NUMBER = (214, 39, 40)


def sample(value: np.ndarray, most: int = SAMPLED) -> np.ndarray:
    """A view of at most so many elements, evenly spaced."""
    steps = [1] * value.ndim
    lengths = list(value.shape)
    while math.prod(lengths) > most:
        axis = max(range(len(lengths)), key=lengths.__getitem__)
        steps[axis] *= 2
        lengths[axis] = -(-value.shape[axis] // steps[axis])
    return value[tuple(slice(None, None, step) for step in steps)]


def numbers(value: np.ndarray) -> np.ndarray:
    """The elements as floats; of complex numbers, their magnitudes."""
    return np.abs(value).astype(float) if value.dtype.kind == "c" else value.astype(float)


def picture(value: np.ndarray) -> str:
    """The picture that suits an array, as HTML; none where nothing can be seen."""
    if is_image(value):
        every = max(1, -(-max(value.shape[:2]) // SIDE))
        pixels = numbers(value[::every, ::every, :3])
        return image((pixels * (1 if value.dtype == np.uint8 else 255)).round().astype(np.uint8), value.shape)
    if value.ndim == 2 and min(value.shape) >= 4:
        rows, columns = (max(1, -(-n // SIDE)) for n in value.shape)
        return image(coloured(numbers(value[::rows, ::columns])), value.shape)
    return histogram(numbers(sample(value))) if value.size >= 16 else ""


def is_image(value: np.ndarray) -> bool:
    """Whether an array looks like a picture: along its last axis lie three or four colours, bytes or from 0 to 1."""
    if value.ndim != 3 or value.shape[2] not in (3, 4) or min(value.shape[:2]) < 8:
        return False
    seen = sample(value)
    return value.dtype == np.uint8 or (value.dtype.kind == "f" and bool(np.all((seen >= 0) & (seen <= 1))))


def coloured(values: np.ndarray) -> np.ndarray:
    """A colour for each value, on the scale from the least to the greatest finite one; red for what is none."""
    finite = np.isfinite(values)
    low, high = (values[finite].min(), values[finite].max()) if finite.any() else (0.0, 1.0)
    at = np.where(finite, (values - low) / ((high - low) or 1.0), 0.0) * (len(SCALE) - 1)
    below = np.minimum(at.astype(int), len(SCALE) - 2)
    part = (at - below)[..., None]
    made = SCALE[below] * (1 - part) + SCALE[below + 1] * part
    return np.where(finite[..., None], made, NO_NUMBER).round().astype(np.uint8)


def image(pixels: np.ndarray, shape: tuple) -> str:
    """Pixels as an image of HTML, in the proportions of the array that they were taken from."""
    scale = SHOWN / max(shape[:2])
    height, width = (max(8, round(n * scale)) for n in shape[:2])
    data = base64.b64encode(png(pixels)).decode()
    return (
        f'<img alt="" width="{width}" height="{height}" src="data:image/png;base64,{data}" '
        'style="image-rendering:pixelated;margin:4px 0">'
    )


def png(pixels: np.ndarray) -> bytes:
    """A PNG file (W3C, Portable Network Graphics, 3rd edition) of pixels of three colours."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    number = struct.Struct(">I").pack
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    body = b"".join(number(len(x)) + kind + x + number(zlib.crc32(kind + x)) for kind, x in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def histogram(values: np.ndarray) -> str:
    """How often which values occur, as bars."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return ""
    low, high = float(finite.min()), float(finite.max())
    counts, _ = np.histogram(finite / 2, BINS, (low / 2, high / 2) if high > low else None)  # halves: no overflow
    each = WIDTH / BINS
    bars = "".join(
        f'<rect x="{i * each:.1f}" y="{HEIGHT * (1 - n / counts.max()):.1f}" width="{each - 1:.1f}" '
        f'height="{HEIGHT * n / counts.max():.1f}"/>'
        for i, n in enumerate(counts)
        if n
    )
    text = 'font-size="10" fill="currentColor" y="{}" x="{}"'
    ends = (
        f"<text {text.format(HEIGHT + 12, 0)}>{low:.4g}</text>"
        f'<text {text.format(HEIGHT + 12, WIDTH)} text-anchor="end">{high:.4g}</text>'
    )
    bars = f'<g fill="currentColor" fill-opacity=".6">{bars}</g>'
    return f'<svg width="{WIDTH}" height="{HEIGHT + 16}" style="display:block;margin:4px 0">{bars}{ends}</svg>'
