"""The arithmetic of windows that slide over an array: how many there are, what padding, where they lie."""

import itertools
from collections.abc import Iterator

import numpy as np

from catena.core.shapes import check_axes


def dilated(n: int, dilation: int) -> int:
    """The extent of ``n`` elements that stand ``dilation`` apart."""
    return (n - 1) * dilation + 1 if n else 0


def window_count(n: int, window: int, stride: int, padding, base_dilation: int = 1, window_dilation: int = 1) -> int:
    """In how many places a window fits along an axis."""
    room = dilated(n, base_dilation) + padding[0] + padding[1] - dilated(window, window_dilation)
    return room // stride + 1 if room >= 0 else 0


def padtype_to_pads(in_shape, window_shape, window_strides, padding) -> list[tuple[int, int]]:
    """The padding that a string stands for.

    Arguments:
      in_shape, window_shape, window_strides: one number for each axis.
      padding: 'VALID', none; 'SAME', such that there are ``ceil(n / stride)`` windows, the odd one at the
        end; 'SAME_LOWER', the odd one at the start.
    Returns:
      For each axis how much to pad before and after.
    Raises:
      RuntimeError: the string is none of these. TypeError: it is no string.

    >>> padtype_to_pads((9, 9), (3, 4), (2, 2), "SAME")
    [(1, 1), (1, 2)]
    """
    if not isinstance(padding, str):
        raise TypeError(f"padding must be 'VALID', 'SAME' or 'SAME_LOWER', got {padding!r}.")
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}.")
    totals = [
        max((-(-n // stride) - 1) * stride + window - n, 0)
        for n, window, stride in zip(in_shape, window_shape, window_strides, strict=True)
    ]
    halves = [(int(total // 2), int(total - total // 2)) for total in totals]
    return halves if kind == "SAME" else [(high, low) for low, high in halves]


def reduce_window_shape_tuple(
    operand_shape, window_dimensions, window_strides, padding, base_dilation=None, window_dilation=None
) -> tuple:
    """The shape of what windows give.

    Arguments:
      operand_shape, window_dimensions, window_strides: one number for each axis.
      padding: for each axis how much to pad before and after.
      base_dilation, window_dilation: how far apart elements of the operand, and of a window, are placed.
    Returns:
      The number of windows along each axis.

    >>> reduce_window_shape_tuple((9, 9), (3, 3), (2, 2), ((0, 0), (1, 1)))
    (4, 5)
    """
    ones = (1,) * len(operand_shape)
    given = window_dimensions, window_strides, padding, base_dilation or ones, window_dilation or ones
    if min(window_strides, default=1) <= 0:
        raise ValueError(f"reduce_window_shape_tuple: window_strides must be positive, got {tuple(window_strides)}")
    if any(len(sizes) != len(operand_shape) for sizes in given):
        raise ValueError(
            f"reduce_window_shape_tuple: operand_shape {tuple(operand_shape)} has {len(operand_shape)} dimensions; "
            f"window_dimensions, window_strides, padding and dilations must have one item for each, got {given}"
        )
    return tuple(
        map(
            window_count,
            operand_shape,
            window_dimensions,
            window_strides,
            padding,
            base_dilation or ones,
            window_dilation or ones,
        )
    )


def dilated_operand(x: np.ndarray, fill, padding, dilation) -> np.ndarray:
    """``x`` with its elements ``dilation`` apart, padded (or cropped, where negative), made contiguous."""
    if all(p == (0, 0) for p in padding) and all(d == 1 for d in dilation):
        return np.ascontiguousarray(x)
    extents = [dilated(n, d) for n, d in zip(x.shape, dilation, strict=True)]
    shape = tuple(max(n + lo + hi, 0) for n, (lo, hi) in zip(extents, padding, strict=True))
    out = np.full(shape, fill, x.dtype)
    targets, sources = [], []
    for n, size, d, (lo, _) in zip(x.shape, shape, dilation, padding, strict=True):
        first = max(0, -(lo // d)) if lo < 0 else 0  # the first element that is not cropped
        last = min(n, (size - lo - 1) // d + 1)
        last = max(last, first)
        targets.append(slice(first * d + lo, max((last - 1) * d + lo + 1, 0) if last > first else 0, d))
        sources.append(slice(first, last))
    if all(s.stop > s.start for s in sources):
        out[tuple(targets)] = x[tuple(sources)]
    return out


def parts_of_windows(shape, window, strides, dilation) -> Iterator[tuple]:
    """For each element of a window the slices that take it from all windows of an array of this shape."""
    axes = list(zip(shape, window, strides, dilation, strict=True))
    spans = [(window_count(n, w, s, (0, 0), 1, d) - 1) * s + 1 for n, w, s, d in axes]
    for at in itertools.product(*map(range, window)):
        yield tuple(slice(i * d, i * d + max(m, 0), s) for i, (_, _, s, d), m in zip(at, axes, spans, strict=True))


def windows_of(x: np.ndarray, window, strides, dilation) -> np.ndarray:
    """All windows of ``x`` as a view: an axis for each axis of places, then one for each axis of a window."""
    counts = [
        window_count(n, w, s, (0, 0), 1, d) for n, w, s, d in zip(x.shape, window, strides, dilation, strict=True)
    ]
    if 0 in counts:
        return np.empty((*counts, *window), x.dtype)
    steps = [n * s for n, s in zip(x.strides, strides, strict=True)]
    within = [n * d for n, d in zip(x.strides, dilation, strict=True)]
    shape = (*counts, *window)
    check_axes(shape)
    raw = x.view(np.uint8) if x.dtype.itemsize == 1 else x  # as_strided does not know float8_e5m2
    views = np.lib.stride_tricks.as_strided(raw, shape, (*steps, *within), writeable=False)
    return views.view(x.dtype)


def check_windows(name: str, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """TypeError where windows make no sense for this shape."""
    if len(shape) != len(window_dimensions):
        raise TypeError(
            f"{name} got the wrong number of window_dimensions for operand: got operand shape {shape} with "
            f"window_dimensions {window_dimensions}."
        )
    for what, given in (
        ("window_strides", window_strides),
        ("base_dilation", base_dilation),
        ("window_dilation", window_dilation),
    ):
        if len(given) != len(window_dimensions):
            raise TypeError(
                f"{name} got inconsistent {what} and window_dimensions: got {what} {given} and window_dimensions "
                f"{window_dimensions}."
            )
    if len(padding) != len(window_dimensions):
        raise TypeError(
            f"{name} padding must have a pair for each of the {len(window_dimensions)} dimensions, got {padding}."
        )
    for what, given in (
        ("window_dimensions", window_dimensions),
        ("window_strides", window_strides),
        ("base_dilation", base_dilation),
        ("window_dilation", window_dilation),
    ):
        if any(n <= 0 for n in given):
            raise TypeError(f"{name} {what} must have every element be strictly positive, got {given}.")
