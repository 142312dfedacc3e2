"""Pictures of where the parts of an array are: ``debug.visualize_sharding`` and its kin, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from catena.core.array import Array
from catena.core.device import Device
from catena.core.trace import Tracer
from catena.core.tree import tree_leaves
from catena.lax.callbacks import debug_callback
from catena.transform.layouts import Inspection

COLORS = (41, 42, 43, 44, 45, 46, 101, 102, 103, 104, 105, 106)  # background colours of terminals


def inspect_array_sharding(value: Any, *, callback: Callable) -> None:
    """Call a function with the sharding of each array in a tree, also inside compiled functions.

    Arguments:
      value: a tree of arrays.
      callback: called with a sharding.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.debug.inspect_array_sharding(jnp.ones(2), callback=lambda sharding: print("seen"))
    seen
    """
    if not callable(callback):
        raise TypeError(f"callback must be a function of a sharding, got {callback!r}")
    for leaf in tree_leaves(value):
        if isinstance(leaf, Tracer):
            debug_callback(Inspection(callback), leaf)
        elif isinstance(leaf, Array):
            callback(leaf.sharding)
        else:
            raise TypeError(f"inspect_array_sharding takes a tree of arrays, got {leaf!r} in it")


def visualize_array_sharding(arr: Array, **kwargs) -> None:
    """Print which device holds which part of an array.

    Arguments:
      arr: an array with one or two axes.
      kwargs: options of ``visualize_sharding``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.debug.visualize_array_sharding(jnp.ones(8), use_color=False)
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Callable | None = None,
) -> None:
    """Print which device holds which part of an array of this shape: a box for each part.

    Arguments:
      shape: one or two sizes.
      sharding: an object with ``devices_indices_map``, or one device.
      use_color: whether devices are told apart by background colours.
      scale: how many columns an element takes.
      min_width, max_width: the least width of a box, and the greatest of the picture, in columns.
      color_map: from the number of a device to the code of an ANSI background colour.
    Raises:
      ValueError: where the shape has not one or two axes, or a part is not a block.

    >>> import catena as jax
    >>> jax.debug.visualize_sharding((2, 2), jax.devices()[0], use_color=False)
    ┌─────────┐
    │         │
    │  CPU 0  │
    │         │
    └─────────┘
    """
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"`visualize_sharding` only works for shapes with 1 and 2 dimensions, got {shape}")
    cells = boxes(shape, sharding)
    columns = 1 + max(column for _, column in cells)
    rows = 1 + max(row for row, _ in cells)
    wanted = max(min_width, round(scale * shape[-1] / columns))
    width = max(min(wanted, max_width // columns - 2), max(len(text(devices)) for devices in cells.values()))
    color = (color_map or (lambda number: COLORS[number % len(COLORS)])) if use_color else None
    print(picture(cells, rows, columns, width, 1 if len(shape) == 1 else 3, color))


def boxes(shape: tuple, sharding) -> dict:
    """The devices that hold each part, by the row and the column of the part among all parts."""
    if isinstance(sharding, Device):
        return {(0, 0): [sharding]}
    starts: dict[tuple, list] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        corner = tuple(s.indices(n)[0] for s, n in zip(index, shape, strict=True))
        starts.setdefault(corner if len(corner) == 2 else (0, *corner), []).append(device)
    rows, columns = (sorted({c[axis] for c in starts}) for axis in (0, 1))
    if len(rows) * len(columns) != len(starts):
        raise ValueError(f"the parts of {sharding} do not form a grid")
    return {(rows.index(r), columns.index(c)): devices for (r, c), devices in starts.items()}


def text(devices) -> str:
    """``CPU 0,1``."""
    numbers = sorted(d.id for d in devices)
    return f"{devices[0].platform.upper()} {','.join(map(str, numbers))}"


def picture(cells: dict, rows: int, columns: int, width: int, height: int, color: Callable | None) -> str:
    """The boxes as lines of text."""

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join(["─" * width] * columns) + right

    def cell(row: int, column: int, line: int) -> str:
        devices = cells[row, column]
        shown = (text(devices) if line == height // 2 else "").center(width)
        return f"\x1b[{color(min(d.id for d in devices))}m{shown}\x1b[0m" if color else shown

    lines = [rule("┌", "┬", "┐")]
    for row in range(rows):
        lines += ["│" + "│".join(cell(row, c, line) for c in range(columns)) + "│" for line in range(height)]
        lines.append(rule("├", "┼", "┤") if row + 1 < rows else rule("└", "┴", "┘"))
    return "\n".join(lines)
