"""Convolutions whose channels are too few for the lanes of a product: sums of shifted arrays, with places as lanes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from catena.compiler.graph import windows
from catena.compiler.graph.types import LANES
from catena.compiler.graph.windows import Sizes

FEW = 4  # output channels
MORE = 8  # where they are of one or two channels
ROW = 256  # taps of a kernel of one row, each of which is written out
SPLIT = 2  # output channels that lie side by side: as many passes write every other element


def suits(lhs_shape, rhs_shape, lhs_spec, rhs_spec, out_spec, feature_groups: int, batch_groups: int) -> bool:
    """Whether lanes are better filled with places, or with input channels, than with output channels."""
    if len(lhs_spec) == 2:  # a product: nothing is a place
        return False
    outputs, inputs = rhs_shape[rhs_spec[0]], rhs_shape[rhs_spec[1]]
    if feature_groups > 1:
        return inputs == 1 and outputs == feature_groups
    if batch_groups > 1:
        return lhs_shape[lhs_spec[0]] == outputs == batch_groups
    if outputs > SPLIT and len(lhs_spec) - 1 in (rhs_spec[0], out_spec[1]):
        return False
    innermost = _innermost(lhs_shape, lhs_spec)
    if innermost == lhs_spec[1]:
        return outputs == 1 or outputs <= SPLIT and inputs >= LANES
    if innermost == lhs_spec[0]:
        return outputs == 1
    return outputs <= FEW or outputs <= MORE and inputs <= SPLIT


def _innermost(shape, spec) -> int:
    """The last dimension of an image that has more than one element."""
    return max((d for d, n in enumerate(shape) if n > 1), default=spec[2])


def _fills_lanes_by_channels(image, spec, w) -> bool:
    """Whether channels that lie side by side fill lanes, and the taps are few enough to be written out. Halves that lie
    apart are read one by one; other images, of which lanes along places read several channels, once for all outputs.
    """
    least = LANES if image.dtype.itemsize < 4 else LANES * w.shape[0]
    many = image.shape[spec[1]] >= least and math.prod(w.shape[2:]) <= windows.SHORT
    return many and _innermost(image.shape, spec) == spec[1]


def convolution(b, image, w, spec, sizes: Sizes, feature_groups: int, batch_groups: int):
    """The convolution of an image with O C *K, as N O *S; groups are of one channel of both, or of a batch's member."""
    x = b.transpose(image, spec)  # N C *S
    outputs = windows.positions(x.shape[2:], w.shape[2:], *sizes)
    few_places = math.prod(outputs) <= windows.SHORT < math.prod(w.shape[2:])
    each: Callable[..., Any] = _by_places if few_places else _by_taps
    if feature_groups == batch_groups == 1 and _fills_lanes_by_channels(image, spec, w):
        x, each = b.transpose(image, (spec[0], *spec[2:], spec[1])), _over_channels
    if feature_groups > 1:
        return each(b, x, b.reshape(w, (w.shape[0], *w.shape[2:])), (1,), sizes, sums=False)
    if batch_groups > 1:
        return b.reshape(each(b, x, w, (0, 1), sizes), (1, w.shape[0], *outputs))
    found = []
    for j in range(w.shape[0]):
        weights = b.reshape(b.slice(w, (j, *[0] * (w.ndim - 1)), (j + 1, *w.shape[1:])), w.shape[1:])
        found.append(b.reshape(each(b, x, weights, (1,), sizes), (x.shape[0], 1, *outputs)))
    return b.concatenate(found, 1) if len(found) > 1 else found[0]


def _by_taps(b, x, weights, axes: tuple, sizes: Sizes, sums: bool = True):
    """N *S, or N C *S where channels are not added: shifted arrays times a weight each, written out or looped over.
    Long rows are written out, too: lanes of a loop would be its taps, which lie side by side as places do.

    The first dimensions of the weights are the `axes` of `x`, the others those of the kernel.
    """
    rank, kernel, zero = x.ndim - 2, weights.shape[len(axes) :], b.constant(np.zeros((), x.dtype))
    is_row = math.prod(kernel) == kernel[-1] <= ROW and sizes.strides[-1] == 1
    looped = 0 if is_row and (not sums or x.shape[1] == 1) else rank - _written_out(kernel)
    if looped:
        x, sizes = _padded(b, x, sizes), sizes.without_padding()
        x = _windows_along(b, x, kernel, looped, sizes)
    over = tuple(range(2, 2 + looped))
    dims = (*[1] * (2 + 2 * looped), *kernel[looped:])
    seen = windows.shifted(b, x, zero, dims, *sizes.along(looped, rank, 2 + 2 * looped, 0))
    y, ahead = zero, weights.shape[: len(axes) + looped]
    for place, part in zip(itertools.product(*map(range, kernel[looped:])), seen):
        one = b.slice(weights, (*[0] * len(ahead), *place), (*ahead, *(p + 1 for p in place)))
        one = b.broadcast_in_dim(b.reshape(one, ahead), part.shape, (*axes, *over))
        y = b.map("add", y, b.map("mul", part, one))
    return b.reduce("sum", y, (*[1] * sums, *over))


def _over_channels(b, x, weights, axes: tuple, sizes: Sizes):
    """N *S of N *S C, whose channels lie side by side: they are the last dimension that is added over, whose lanes are
    full, and each tap is written out.
    """
    rank, y = x.ndim - 2, b.constant(np.zeros((), x.dtype))
    seen = windows.shifted(b, x, y, (1, *weights.shape[1:], 1), *sizes.along(0, rank, 1, 1))
    for place, part in zip(itertools.product(*map(range, weights.shape[1:])), seen):
        one = b.slice(weights, (0, *place), (weights.shape[0], *(p + 1 for p in place)))
        one = b.broadcast_in_dim(b.reshape(one, weights.shape[:1]), part.shape, (x.ndim - 1,))
        y = b.map("add", y, b.map("mul", part, one))
    return b.reduce("sum", y, (x.ndim - 1,))


def _written_out(kernel: tuple) -> int:
    """How many dimensions of a kernel, the last ones, have each of their places written out."""
    return max(k for k in range(len(kernel) + 1) if math.prod(kernel[len(kernel) - k :]) <= windows.SHORT)


def _windows_along(b, x, kernel: tuple, looped: int, sizes: Sizes):
    """N C *K *S: the windows along the first dimensions of space, so many. Their places come first, so that lanes
    are places of the result, which lie side by side.
    """
    others = len(kernel) - looped
    dims = (1, 1, *kernel[:looped], *[1] * others)
    seen = b.window(x, b.constant(np.zeros((), x.dtype)), dims, *sizes.along(0, looped, 2, others))
    seen = b.reshape(seen, (*seen.shape[: x.ndim], *kernel[:looped]))
    return b.transpose(seen, (0, 1, *range(x.ndim, seen.ndim), *range(2, x.ndim)))


def _padded(b, x, sizes: Sizes):
    """N C *S with zeros around each image, and between its elements."""
    config = [(lo, hi, d - 1) for (lo, hi), d in zip(sizes.padding, sizes.lhs_dilation)]
    return b.pad(x, b.constant(np.zeros((), x.dtype)), [(0, 0, 0), (0, 0, 0), *config])


def _by_places(b, x, weights, axes: tuple, sizes: Sizes, sums: bool = True):
    """As `_by_taps`: each place of the result is the sum of a part of `x` times all weights."""
    kernel = weights.shape[len(axes) :]
    outputs = windows.positions(x.shape[2:], kernel, *sizes)
    padded = _padded(b, x, sizes)
    steps = (1, 1, *sizes.rhs_dilation)
    found = []
    for place in itertools.product(*map(range, outputs)):
        start = [0, 0, *(p * s for p, s in zip(place, sizes.strides))]
        limit = [*x.shape[:2], *(lo + (k - 1) * d + 1 for lo, k, d in zip(start[2:], kernel, steps[2:]))]
        part = b.slice(padded, start, limit, steps)
        spread = b.broadcast_in_dim(weights, part.shape, (*axes, *range(2, x.ndim)))
        y = b.reduce("sum", b.map("mul", part, spread), (*[1] * sums, *range(2, x.ndim)))
        found.append(b.reshape(y, (*y.shape, 1)))
    y = b.concatenate(found, y.ndim) if len(found) > 1 else found[0]
    return b.reshape(y, (*y.shape[:-1], *outputs))
