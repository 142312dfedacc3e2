"""Convolutions by tiles, whose rows are the places of windows or whose columns are places, or as nests."""

from __future__ import annotations

import functools
import math

from catena.compiler.graph.forms import Convolve, Transpose
from catena.compiler.graph.region import Value
from catena.compiler.kernels.loops import COPIES, Nest
from catena.compiler.plan import alike, nests, product_kinds, tiled, views
from catena.compiler.plan.contraction import Axis, divisor
from catena.compiler.plan.copies import beside, laid_out
from catena.compiler.plan.fuse import Step
from catena.compiler.plan.launches import launch, launch_alike
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.strided import Lies, row_major

ROWS = 2  # places of a convolution that share the weights they read
PARTS, TERMS_OF_PART = 8, 1024  # of a long sum that is taken in parts: so many at most, of so many terms at least


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
    a, b, sc = views.in_memory(frame, lhs), views.in_memory(frame, rhs), row_major(v.shape)
    sa, sb = a.strides, b.strides
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
    split, dims = _split(frame, rhs, o, groups)
    terms = [(x, dims[e]) for x, e in terms]
    count = _parts(v, [x for x, _ in terms])
    if count > 1:
        _in_parts(p, frame, step, (a, b), (group, lines, terms, columns), (split, o), count)
        return
    layout = (split, [o], [d for _, d in terms], [o + 1])
    tiled.contract(p, frame, step, (a, b), ([group], lines, [x for x, _ in terms], columns), layout)


def _parts(v: Value, terms: list[Axis]) -> int:
    """In how many parts a sum is taken whose windows are as large as the image around them, as in gradients by
    weights. Tasks of other results would each read both operands as a whole, those of other terms each number once.
    """
    n: Convolve = v.params
    taps = math.prod(v.args[1].shape[d] for d in n.rhs_spec[2:])
    if taps < math.prod(v.shape[1:-1]):
        return 1
    return divisor(terms[_outermost(terms)].extent, min(PARTS, math.prod(x.extent for x in terms) // TERMS_OF_PART))


def _outermost(terms: list[Axis]) -> int:
    """Which of the terms' axes is the first one that is none of one step."""
    return next((k for k, x in enumerate(terms) if x.extent > 1), 0)


def _in_parts(p: Planner, frame: Frame, step: Step, operands, axes, right, count: int) -> None:
    """A convolution whose outermost terms are cut in so many parts, which are added up at the end."""
    v, (group, lines, terms, columns), (rhs, o) = step.own_node, axes, right
    made = beside(frame, "convolve", (count, *v.shape), v.args, v.params)
    frame.blocks[made.number] = p.allocate(made.nbytes)
    frame.fused.stored[made.number] = "a long sum is taken in parts"
    terms, kept = [x for x, _ in terms], [d for _, d in terms]
    k = _outermost(terms)
    whole, cut = terms[k], kept[k]
    size = whole.extent // count
    part = Axis(count, whole.a * size, whole.b * size, v.size)
    terms[k] = whole._replace(extent=size)
    rhs, dims = _split(frame, rhs, cut, count)
    layout = (rhs, [cut, dims[o]], [dims[d] + (d == cut) for d in kept], [dims[o + 1]])
    made_here = Step(None, made, writes=[made.number])
    tiled.contract(p, frame, made_here, operands, ([part, group], lines, terms, columns), layout)
    after, in_place = tiled.epilogue(p, frame, step, False)
    launch(p, frame, nests.sum_of_parts(frame.nests, beside(frame, "reshape", (count, v.size), (made,)), v))
    p.free_here(frame, (frame.blocks[made.number],))
    tiled.follow(p, frame, step, after, in_place)


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
    a, b, sc = views.in_memory(frame, w), views.in_memory(frame, x), row_major(v.shape)
    moved = b.strides[space[-1]] != 1
    if moved:
        b = Lies(laid_out(p, frame, x, "its places are brought side by side"), row_major(x.shape))
    sa, sb = a.strides, b.strides
    steps = [sb[image], *(sb[d] * s for d, s in zip(space[:-1], n.strides))]
    members = [Axis(extent, 0, step, c) for extent, step, c in zip(v.shape[:-2], steps, sc)]
    terms = [Axis(w.shape[e], sa[e], sb[d] * r, 0) for d, e, r in zip(space, taps, n.dilation)]
    terms.append(Axis(w.shape[inner], sa[inner], sb[c], 0))
    axes = (members, [Axis(v.shape[-2], sa[o], 0, sc[-2])], terms, [Axis(v.shape[-1], 0, 1, 0)])
    tiled.contract(p, frame, step, (a, b), axes, None)
    if moved:
        p.free_here(frame, (frame.blocks[b.base.number],))


def _split(frame: Frame, x: Value, d: int, groups: int) -> tuple[Value, list[int]]:
    """`x` with dimension `d` as groups and members, and where the other dimensions are."""
    shape = (*x.shape[:d], groups, x.shape[d] // groups, *x.shape[d + 1 :])
    return beside(frame, "reshape", shape, (x,)), [e + (e > d) for e in range(x.ndim)]
