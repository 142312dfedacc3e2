"""Convolutions by tiles, whose rows are the places of windows or whose columns are places, or as nests."""

from __future__ import annotations

import functools

from catena.compiler.graph.forms import Convolve, Transpose
from catena.compiler.graph.region import Value
from catena.compiler.kernels.loops import COPIES, Nest
from catena.compiler.plan import alike, nests, product_kinds, tiled, views
from catena.compiler.plan.contraction import Axis
from catena.compiler.plan.copies import beside, laid_out
from catena.compiler.plan.fuse import Step
from catena.compiler.plan.launches import launch_alike
from catena.compiler.plan.planner import Frame, Planner

ROWS = 2  # places of a convolution that share the weights they read


def convolve(p: Planner, frame: Frame, i: int, v: Value) -> None:
    """A convolution, N *S O: rows are places, terms are the taps of the window and the channels of a group. Windows are
    read where they lie.
    """
    step = frame.fused.steps[i]
    tiled.define(p, frame, step)
    if v.size and product_kinds.has_few_channels(v, p.machine):
        _by_channels(p, frame, v)
    elif v.size:
        by = _by_places if v.params.by_places else _by_windows
        tiled.made_once(p, frame, step, functools.partial(by, p, frame, step, v))


def _by_windows(p: Planner, frame: Frame, step: Step, v: Value) -> None:
    """A convolution whose rows are the places of windows."""
    lhs, rhs = v.args
    n: Convolve = v.params
    (a, sa), (b, sb), sc = views.stored_strides(frame, lhs), views.stored_strides(frame, rhs), views.row_major(v.shape)
    (image, c, *space), (o, inner, *taps) = n.lhs_spec, n.rhs_spec
    terms = [(Axis(rhs.shape[e], sa[d] * r, sb[e], 0), e) for d, e, r in zip(space, taps, n.dilation)]
    groups, members = n.feature_groups * n.batch_groups, rhs.shape[o]
    by_channel = n.feature_groups > 1
    group = Axis(groups, sa[c] * rhs.shape[inner] if by_channel else sa[image] * v.shape[0],
                 sb[o] * (members // groups), members // groups)  # fmt: skip
    lines = [Axis(v.shape[0], sa[image], 0, sc[0])]
    lines += [Axis(v.shape[1 + k], sa[d] * s, 0, sc[1 + k]) for k, (d, s) in enumerate(zip(space, n.strides))]
    terms = sorted([*terms, (Axis(rhs.shape[inner], sa[c], sb[inner], 0), inner)], key=lambda x: -x[0].a)
    columns = [Axis(members // groups, 0, sb[o], 0)]
    axes = ([group], lines, [x for x, _ in terms], columns)
    split, dims = _split(frame, rhs, o, groups)
    layout = (split, [o], [dims[e] for _, e in terms], [o + 1])
    tiled.contract(p, frame, step, (a, b), axes, layout)


def _by_channels(p: Planner, frame: Frame, v: Value) -> None:
    """A convolution as a loop nest that adds up each output channel by itself, with weights that lie as the image."""
    w, (o, inner, *taps) = v.args[1], v.params.rhs_spec
    order, at_once = (o, *taps, inner), v.params.dilation[-1] == 1
    part = beside(frame, "transpose", [w.shape[d] for d in order], (w,), Transpose(order))
    if at_once:
        part = beside(frame, "reshape", (*part.shape[:-2], part.shape[-2] * part.shape[-1]), (part,))
    weights = laid_out(p, frame, part, "its terms are brought side by side")
    asked = functools.partial(alike.of_values, frame.fused, ("convolve", at_once), [v.args[0], weights], v)
    launch_alike(p, frame, asked, lambda: _channels(p, frame, v, weights, at_once))
    p.free_here(frame, (frame.blocks[weights.number],))


def _channels(p: Planner, frame: Frame, v: Value, weights: Value, at_once: bool) -> Nest:
    """The nest of a convolution by output channels, with as many accumulators as there are registers for."""
    nest = nests.convolution(frame.nests, v, weights, at_once)
    copies, room = COPIES, p.machine.vector_registers // (2 * ROWS * len(nest.folds))
    while copies > max(room, 1):
        copies //= 2
    nest.folds = [fold._replace(copies=copies) for fold in nest.folds]
    return nest


def _by_places(p: Planner, frame: Frame, step: Step, v: Value) -> None:
    """A convolution whose columns are the places along the last dimension of space, with the weights on the left. Where
    these places do not lie side by side, the image is copied first.
    """
    x, w = v.args
    n: Convolve = v.params
    (image, c, *space), (o, inner, *taps) = n.lhs_spec, n.rhs_spec
    (a, sa), (b, sb), sc = views.stored_strides(frame, w), views.stored_strides(frame, x), views.row_major(v.shape)
    moved = sb[space[-1]] != 1
    if moved:
        b, sb = laid_out(p, frame, x, "its places are brought side by side"), views.row_major(x.shape)
    steps = [sb[image], *(sb[d] * s for d, s in zip(space[:-1], n.strides))]
    members = [Axis(extent, 0, step, c) for extent, step, c in zip(v.shape[:-2], steps, sc)]
    terms = [Axis(w.shape[e], sa[e], sb[d] * r, 0) for d, e, r in zip(space, taps, n.dilation)]
    terms.append(Axis(w.shape[inner], sa[inner], sb[c], 0))
    axes = (members, [Axis(v.shape[-2], sa[o], 0, sc[-2])], terms, [Axis(v.shape[-1], 0, 1, 0)])
    tiled.contract(p, frame, step, (a, b), axes, None)
    if moved:
        p.free_here(frame, (frame.blocks[b.number],))


def _split(frame: Frame, x: Value, d: int, groups: int) -> tuple[Value, list[int]]:
    """`x` with dimension `d` as groups and members, and where the other dimensions are."""
    shape = (*x.shape[:d], groups, x.shape[d] // groups, *x.shape[d + 1 :])
    return beside(frame, "reshape", shape, (x,)), [e + (e > d) for e in range(x.ndim)]
