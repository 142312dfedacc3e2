"""Convolutions: as contractions that read windows where they lie (see `contraction`); those of few channels as sums of
shifted arrays (see `few_channels`); those of types that tiles do not have as products with patches (im2col).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from catena.compiler.graph import few_channels
from catena.compiler.graph.forms import Convolve
from catena.compiler.graph.types import LANES, TYPES
from catena.compiler.graph.windows import Sizes, positions
from catena.core.dtypes import KIND
from catena.core.named import NamedTuple

FEWEST, FEWEST_TAPS, MORE = 2, 4, 1.5  # output channels and taps where lanes are places, and how many more are filled


class Groups(NamedTuple):
    """How many groups of channels do not meet, and how many of a batch."""

    features: int
    batches: int


def conv(b, lhs, rhs, specs, sizes: Sizes, groups: Groups):
    """The convolution of `lhs` with `rhs`, of one type; `specs` are the layouts of both and of what is made."""
    lhs_spec, rhs_spec, out_spec = map(tuple, specs)
    space, kernel = [lhs.shape[d] for d in lhs_spec[2:]], [rhs.shape[d] for d in rhs_spec[2:]]
    if 0 in (places := positions(space, kernel, *sizes)):  # what is padded by less than nothing may have no extents
        y = (lhs.shape[lhs_spec[0]] // groups.batches, rhs.shape[rhs_spec[0]], *places)
        return b.full([y[k] for k in np.argsort(out_spec)], np.zeros((), lhs.dtype))
    empty = 0 in lhs.shape or 0 in rhs.shape
    few = not empty and few_channels.suits(lhs.shape, rhs.shape, lhs_spec, rhs_spec, out_spec, *groups)
    if few or not empty and KIND[lhs.dtype] in "fiu" and not TYPES[lhs.dtype.name].narrow:
        return _laid_out(b, _direct(b, lhs, rhs, lhs_spec, rhs_spec, sizes, groups, few), out_spec)
    x, w, features = b.transpose(lhs, lhs_spec), b.transpose(rhs, rhs_spec), groups.features  # N C *S and O I *K
    if groups.batches > 1:
        x, features = _fold_batch(b, x, groups.batches), groups.batches
    y = _by_patches(b, x, w, sizes, features, lhs_spec[1] == lhs.ndim - 1)
    return b.transpose(y, np.argsort(out_spec))


# ---- windows read where they lie ---------------------------------------------------------------------------


def _laid_out(b, y, out_spec):
    """N *S O in the layout that was asked for."""
    order = [0] * y.ndim
    order[out_spec[0]], order[out_spec[1]] = 0, y.ndim - 1
    for i, d in enumerate(out_spec[2:]):
        order[d] = 1 + i
    return b.transpose(y, order)


def _direct(b, x, w, lhs_spec, rhs_spec, sizes: Sizes, groups: Groups, few: bool):
    """The convolution as N *S O."""
    phased = [d for d, n in enumerate(sizes.lhs_dilation) if n > 1]
    if phased and all(sizes.strides[d] == sizes.rhs_dilation[d] == 1 for d in phased):
        return _by_phases(b, x, w, lhs_spec, rhs_spec, sizes, groups, few)
    if few:
        y = few_channels.convolution(b, x, b.transpose(w, rhs_spec), lhs_spec, sizes, *groups)
        return b.transpose(y, (0, *range(2, y.ndim), 1))
    out = positions([x.shape[d] for d in lhs_spec[2:]], [w.shape[d] for d in rhs_spec[2:]], *sizes)
    by_places = groups == (1, 1) and _fills_lanes_by_places(x, w, lhs_spec, rhs_spec, sizes, out)
    config = [(0, 0, 0)] * x.ndim
    for d, (low, high), dilation in zip(lhs_spec[2:], sizes.padding, sizes.lhs_dilation):
        config[d] = (low, high, dilation - 1)
    x = b.pad(x, b.constant(np.zeros((), x.dtype)), config)
    if by_places and lhs_spec[-1] != x.ndim - 1:  # channels come between the last dimensions of space
        x = b.transpose(x, (lhs_spec[0], *lhs_spec[2:-1], lhs_spec[1], lhs_spec[-1]))
        lhs_spec = (0, x.ndim - 2, *range(1, x.ndim - 2), x.ndim - 1)
    params = Convolve(lhs_spec, rhs_spec, sizes.strides, sizes.rhs_dilation, *groups, by_places)
    n, channels = x.shape[lhs_spec[0]] // groups.batches, w.shape[rhs_spec[0]]
    if not by_places:
        return b.value("convolve", (n, *out, channels), x.dtype, [x, w], params)
    y = b.value("convolve", (n, *out[:-1], channels, out[-1]), x.dtype, [x, w], params)
    return b.transpose(y, (*range(y.ndim - 2), y.ndim - 1, y.ndim - 2))


def _fills_lanes_by_places(x, w, lhs_spec, rhs_spec, sizes: Sizes, out) -> bool:
    """Whether places along the last dimension of space fill lanes that the few output channels leave empty, and input
    channels do not lie in the lanes (see `plan.convolutions`); where places do not lie so either, each number of the
    image, which is brought there, is used often enough.
    """
    if not out or sizes.strides[-1] > 1 or w.dtype.itemsize < 4:
        return False
    channels, taps = w.shape[rhs_spec[0]], math.prod(w.shape[d] for d in rhs_spec[2:])
    lanes = LANES * 4 // w.dtype.itemsize
    if lhs_spec[1] == x.ndim - 1 and terms_side_by_side(w.shape, rhs_spec, sizes.rhs_dilation) >= lanes:
        return False
    filled = [n / (-(-n // lanes) * lanes) for n in (channels, out[-1])]
    few = FEWEST <= channels <= lanes // 2 and MORE * filled[0] <= filled[1]
    return few and (taps >= FEWEST_TAPS or lhs_spec[-1] == x.ndim - 1)


def terms_side_by_side(shape: tuple, spec: tuple, dilation: tuple) -> int:
    """The terms of a convolution that lie side by side in an image whose last dimension is that of the channels."""
    return shape[spec[1]] * (shape[spec[-1]] if dilation[-1] == 1 else 1)


def _by_phases(b, x, w, lhs_spec, rhs_spec, sizes: Sizes, groups: Groups, few: bool):
    """A convolution of a dilated array: positions with one remainder by the dilation meet the same taps, so each
    remainder is a convolution of the array itself with these taps; no zeros are multiplied.
    """
    rank, dilation = len(sizes.strides), sizes.lhs_dilation
    dilated = [(x.shape[d] - 1) * n + 1 for d, n in zip(lhs_spec[2:], dilation)]
    reach = [(w.shape[d] - 1) * r + 1 for d, r in zip(rhs_spec[2:], sizes.rhs_dilation)]
    out = [(n + lo + hi - k) // s + 1 for n, (lo, hi), k, s in zip(dilated, sizes.padding, reach, sizes.strides)]
    if min(out) <= 0:
        return b.full(
            (x.shape[lhs_spec[0]] // groups.batches, *(max(n, 0) for n in out), w.shape[rhs_spec[0]]),
            np.zeros((), x.dtype),
        )
    counts = [-(-n // d) for n, d in zip(out, dilation)]
    parts = []
    for phases in itertools.product(*map(range, dilation)):
        taps, padding = w, []
        for i, (phase, d) in enumerate(zip(phases, dilation)):
            low, high = sizes.padding[i]
            if d == 1:
                padding.append((low, high))
                continue
            first = (low - phase) % d
            taps = _every(b, taps, rhs_spec[2 + i], first, d)
            low = (low - phase - first) // d
            length = taps.shape[rhs_spec[2 + i]]
            padding.append((low, counts[i] + length - 1 - low - x.shape[lhs_spec[2 + i]]))
        if 0 in taps.shape:
            parts.append(
                b.full((x.shape[lhs_spec[0]] // groups.batches, *counts, w.shape[rhs_spec[0]]), np.zeros((), x.dtype))
            )
            continue
        plain = sizes._replace(padding=tuple(padding), lhs_dilation=(1,) * rank)
        parts.append(_direct(b, x, taps, lhs_spec, rhs_spec, plain, groups, few))
    return _interleaved(b, parts, dilation, out)


def _every(b, w, dimension: int, first: int, step: int):
    """Every so many taps along one dimension."""
    start, strides = [0] * w.ndim, [1] * w.ndim
    start[dimension], strides[dimension] = min(first, w.shape[dimension]), step
    return b.slice(w, start, w.shape, strides)


def _interleaved(b, parts, dilation, out):
    """The parts, one for each combination of remainders, as one array N *S O of extents `out`."""
    n, *counts, o = parts[0].shape
    k = len(counts)
    y = b.concatenate([b.reshape(p, (1, *p.shape)) for p in parts], 0)
    y = b.reshape(y, (*dilation, n, *counts, o))
    y = b.transpose(y, (k, *(d for i in range(k) for d in (k + 1 + i, i)), 2 * k + 1))
    y = b.reshape(y, (n, *(c * d for c, d in zip(counts, dilation)), o))
    return b.slice(y, (0,) * y.ndim, (n, *out, o))


# ---- patches -----------------------------------------------------------------------------------------------


def _fold_batch(b, x, groups: int):
    """Batch groups as feature groups: (G*n, C, ...) -> (n, G*C, ...)."""
    n, c, *space = x.shape
    split = b.reshape(x, (groups, n // groups, c, *space))
    moved = b.transpose(split, (1, 0, 2, *range(3, 3 + len(space))))
    return b.reshape(moved, (n // groups, groups * c, *space))


def _by_patches(b, x, w, sizes: Sizes, groups: int, channels_last: bool):
    """NC*S and OI*K to NO*S. The patches are laid out so that their innermost dimension is the input's."""
    n, c, *space = x.shape
    o, i, *kernel = w.shape
    k = len(kernel)
    zero = b.constant(np.zeros((), x.dtype))
    seen = b.window(x, zero, (1, 1, *kernel), *sizes.along(0, k, 2, 0))
    out = seen.shape[2 : 2 + k]
    patches = b.reshape(seen, (n, groups, c // groups, *out, *kernel))
    weights = b.reshape(w, (groups, o // groups, i, *kernel))
    outs, taps = range(3, 3 + k), range(3 + k, 3 + 2 * k)
    places, length = n * math.prod(out), i * math.prod(kernel)
    if channels_last:
        patches = b.reshape(b.transpose(patches, (1, 0, *outs, *taps, 2)), (groups, places, length))
        weights = b.transpose(weights, (0, 1, *range(3, 3 + k), 2))
        weights = b.reshape(weights, (groups, o // groups, length))
        product = b.dot_general(patches, weights, (((2,), (2,)), ((0,), (0,))), x.dtype)
        y = b.reshape(product, (groups, n, *out, o // groups))
        y = b.transpose(y, (1, 0, 2 + k, *range(2, 2 + k)))
    else:
        patches = b.reshape(b.transpose(patches, (1, 2, *taps, 0, *outs)), (groups, length, places))
        weights = b.reshape(weights, (groups, o // groups, length))
        product = b.dot_general(weights, patches, (((2,), (1,)), ((0,), (0,))), x.dtype)
        y = b.reshape(product, (groups, o // groups, n, *out))
        y = b.transpose(y, (2, 0, 1, *range(3, 3 + k)))
    return b.reshape(y, (n, o, *out))
