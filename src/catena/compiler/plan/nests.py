"""From fused steps to loop nests: one function per node form that is computed by loops."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections import ChainMap
from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np

from catena.compiler.graph import affine
from catena.compiler.graph.products import LONG
from catena.compiler.graph.region import Value
from catena.compiler.graph.transposes import in_memory
from catena.compiler.graph.types import NAMES
from catena.compiler.kernels import loops, schedules, unused
from catena.compiler.kernels.body import INDEX, Body, clamped_start, places
from catena.compiler.kernels.loops import Fold, Nest, Run, Store
from catena.compiler.machine import Machine
from catena.compiler.plan.fuse import Fused, Kernel, Step
from catena.core.dtypes import KIND

IN_TURN = 4  # places that an iteration does at most
FEW = 24  # terms of products, which no short row has
Write = Callable[[Body, tuple, int], list[Store]]  # what writes at an index, where a mask holds


class NestBuilder:
    """Builds the nests of one region."""

    def __init__(self, fused: Fused):
        # Not the plan itself, which holds this: a cycle would keep the graph until the garbage collector runs.
        self.stored: MutableMapping[int, str] = fused.stored
        self.roots = fused.roots

    def body(self, extents, local: frozenset = frozenset()) -> Body:
        stored, roots = self.stored, self.roots
        return Body(
            extents,
            lambda v: v.number in stored and v.number not in local,
            lambda v: (roots.get(v.number, v.number), NAMES[v.dtype]),
        )

    # ---- kernels -------------------------------------------------------------------------------------------

    def of(self, step: Step) -> Nest:
        """The loop nest of a step that is a kernel, made once."""
        if step.nest is None:
            step.nest, step.alternates = self.kernel(step.own_kernel)
        return step.nest

    def alone(self, step: Step) -> Nest:
        """The loop nest of a step that is a kernel and does not run with others; it may have other extents."""
        nest, kernel = self.of(step), step.own_kernel
        if step.alternates and not kernel.axes:
            step.nest = nest = self.in_turn(kernel.space, self._writes(kernel), kernel.own)
            step.alternates = False
        return nest

    def kernel(self, kernel: Kernel) -> tuple[Nest, bool]:
        """The loop nest of a kernel, and whether something in it is asked at every so many places."""
        body = self.body(kernel.space, kernel.own)
        index = dims(len(kernel.space))
        stores: list[Store] = []
        folds: list[Fold] = []
        for v in kernel.roots:
            if v.form == "reduce":
                folds += self._reduce(body, v, index, len(folds))
            elif v.form == "argreduce":
                folds.append(self._argreduce(body, v, index))
            else:
                stores += self._root(body, kernel, v, index)
        return loops.from_body(body, kernel.axes, stores, folds), bool(body.alternating)

    def _writes(self, kernel: Kernel) -> Write:
        """What a kernel writes that folds nothing."""
        return lambda body, index, mask: [
            store for v in kernel.roots for store in self._root(body, kernel, v, index, mask)
        ]

    def _root(self, body: Body, kernel: Kernel, v: Value, index: tuple, mask: int = -1) -> list[Store]:
        """What stores a value that a kernel makes, for others that read it there."""
        s = body._read_new(v, index, mask)
        body._read[(v.number, index, mask)] = s
        return store_value(body, v, index, s, mask) if v.number not in kernel.dropped else []

    def in_turn(self, space: tuple, write: Write, own: frozenset = frozenset(), rows: int = 0) -> Nest:
        """A nest over so many places. Where something is asked at every so many places of a dimension, as with zeros
        between the elements of a pad, an iteration does so many, and at each of them it is known what is there.
        The first dimensions may be `rows` of nests that run together, and stay what they are.
        """
        counts: dict[int, int] = {}
        body, stores = self._round(space, counts, write, own)
        for d, n in body.alternating.items():
            if d >= rows and math.prod(counts.values()) * n <= IN_TURN and space[d] >= 2 * n:
                counts[d] = n
        if counts:
            body, stores = self._round(space, counts, write, own)
        return loops.from_body(body, (), stores)

    def _round(self, space: tuple, counts: dict[int, int], write: Write, own: frozenset) -> tuple[Body, list[Store]]:
        """What is done where `counts` places of some dimensions are one iteration."""
        body = self.body(tuple(-(-n // counts.get(d, 1)) for d, n in enumerate(space)), own)
        stores: list[Store] = []
        for each in itertools.product(*(range(counts.get(d, 1)) for d in range(len(space)))):
            index = [affine.shift(affine.scale(affine.dim(d), counts.get(d, 1)), k) for d, k in enumerate(each)]
            mask = functools.reduce(body.both, (body.inside(index[d], space[d]) for d in counts), -1)
            stores += write(body, tuple(index), mask)
        return body, stores

    def _reduce(self, body: Body, v: Value, index: tuple, number: int) -> list[Fold]:
        kind, axes = v.params.kind, v.params.axes
        x = body.read(v.args[0], index)
        kept = tuple(ix for d, ix in enumerate(index) if d not in axes)
        offset = body.offset(v.shape, kept)
        if isinstance(x, tuple):
            if kind == "prod":
                return [
                    self._complex_prod(
                        body,
                        v,
                        x,
                        offset,
                        body.affine_mask((0, tuple((d, 1) for d in range(len(index))), ())),
                        number,
                    )
                ]
            part, even = part_name(v), affine.scale(offset, 2)
            return [Fold(kind, (s,), (part,), ((v.number, part, affine.shift(even, i)),)) for i, s in enumerate(x)]
        return [Fold(kind, (x,), (NAMES[v.dtype],), ((v.number, NAMES[v.dtype], offset),))]

    def _complex_prod(self, body: Body, v: Value, x: tuple, offset, mask: int, number: int = 0) -> Fold:
        """A product of complex numbers, as the fold of this number in its nest."""
        part, even = part_name(v), affine.scale(offset, 2)
        a, b = accumulators(body, number, (part, part), mask)
        re = body.stmt("sub", part, (body.stmt("mul", part, (a, x[0])), body.stmt("mul", part, (b, x[1]))))
        im = body.stmt("add", part, (body.stmt("mul", part, (a, x[1])), body.stmt("mul", part, (b, x[0]))))
        dests = tuple((v.number, part, affine.shift(even, i)) for i in (0, 1))
        return Fold("general", (re, im), (part, part), dests, inits=(body.const(1.0, part), body.const(0.0, part)))

    def _argreduce(self, body: Body, v: Value, index: tuple) -> Fold:
        (axis,) = v.params.axes
        x, at = body.read(v.args[0], index), body.affine(index[axis])
        position = INDEX
        if v.args[0].shape[axis] < 2**31:
            position, at = "int32", body.stmt("convert", "int32", (at,))
        kept = tuple(ix for d, ix in enumerate(index) if d != axis)
        dest = (v.number, NAMES[v.dtype], body.offset(v.shape, kept))
        return Fold("arg" + v.params.kind, (x, at), (NAMES[v.args[0].dtype], position), (dest,))

    # ---- nodes written piecewise ---------------------------------------------------------------------------

    def concatenate(self, v: Value, together: int, rows: int = 0) -> list[Nest]:
        """A nest for a few neighbours of one shape, at most so many `together`, which stand in each other's rows; the
        first dimensions may be `rows` of nests that run together.
        """
        nests, at, axis = [], 0, v.params.dimension
        for parts in _alike(v.args, together):
            shape = parts[0].shape
            starts = [at + k * shape[axis] for k in range(len(parts))]
            nests.append(self.in_turn(shape, functools.partial(self._parts, v, parts, starts), rows=rows))
            at += len(parts) * shape[axis]
        return nests

    def columns(self, v: Value) -> Nest | None:
        """A nest that joins rows of a few elements, which it reads and writes by columns; None where rows are long, or
        few, or that would be a long text.
        """
        axis, n = v.params.dimension, v.shape[v.params.dimension]
        if not 2 <= n <= JOINED or v.size != math.prod(v.shape[: axis + 1]) or v.size < n * FEWEST_ROWS:
            return None
        lengths = {x.shape[axis] for x in v.args}
        if len(lengths) == 1 and len(v.args) <= TOGETHER and (n == len(v.args) or self._are_moved(v)):
            return None  # which is such a nest
        space = (*v.shape[:axis], 1, *v.shape[axis + 1 :])
        parts = [(x, affine.constant(k)) for x in v.args for k in range(x.shape[axis])]

        def write(body: Body, index: tuple, mask: int) -> list[Store]:
            stores = []
            for at, (x, place) in enumerate(parts):
                own, new = ((*index[:axis], p, *index[axis + 1 :]) for p in (place, affine.constant(at)))
                stores += store_value(body, v, new, body.read(x, own, mask), mask)
            return stores

        nest = self.in_turn(space, write)
        return nest if len(nest.stmts) <= MOST_OF_COLUMNS else None

    def _are_moved(self, v: Value) -> bool:
        """Whether parts of a concatenation, which have two or more elements a row, are moved by larger units."""
        return v.args[0].shape[v.params.dimension] % 2 == 0 and all(x.number in self.stored for x in v.args)

    @staticmethod
    def _parts(v: Value, parts: list, starts: list, body: Body, index: tuple, mask: int) -> list[Store]:
        """What writes parts of a concatenation, which begin there."""
        stores = []
        for x, start in zip(parts, starts):
            moved = tuple(affine.shift(ix, start) if d == v.params.dimension else ix for d, ix in enumerate(index))
            stores += store_value(body, v, moved, body.read(x, index, mask), mask)
        return stores

    def copy(self, source: Value, target: Value, start: int | None = None) -> Nest:
        """What writes a value into memory; where `start` is given, an operand into panels (`in_panels`)."""
        body, index = self.body(source.shape), dims(source.ndim)
        to = index if start is None else in_panels(index, source.shape[-2], start)
        return unused.leave_out(loops.from_body(body, (), store_value(body, target, to, body.read(source, index))))

    def update_slice(self, v: Value) -> Nest:
        x, update, *starts = v.args
        body, index = self.body(update.shape), dims(update.ndim)
        s = body.read(update, index)
        moved = tuple(
            affine.add(ix, clamped_start(body, start, (), n - m))
            for ix, start, n, m in zip(index, starts, x.shape, update.shape)
        )
        return loops.from_body(body, (), store_value(body, v, moved, s))

    def scatter(self, v: Value) -> Nest:
        x, indices, updates = v.args
        body, index = self.body(updates.shape), dims(updates.ndim)
        moved, mask = places(body, x, indices, v.params.indices, index)
        new = body.read(updates, index)
        stores = self._combine(body, v, moved, new, mask)
        p = v.params.indices
        whole = {out for out, d in zip(p.offset_dims, p.window_dims) if d not in p.start_index_map}
        independent = whole | {p.batch_dims[k] for _, k in p.batching}
        return loops.from_body(body, (), stores, independent=frozenset(independent))

    def runs(self, v: Value) -> Nest:
        x, ends = v.args
        body, (row, *window, k) = self.body((*v.shape, x.shape[0])), dims(v.ndim + 1)
        new = body.read(x, (k, *window))
        start, stop = (_between(body, body.read(ends, (affine.shift(row, j),)), x.shape[0]) for j in (0, 1))
        dest = (v.number, NAMES[v.dtype], body.offset(v.shape, (row, *window)))
        fold = Fold("sum", (new,), (NAMES[v.dtype],), (dest,), run=Run(v.ndim, start, stop, v.params.in_order))
        return loops.from_body(body, (v.ndim,), [], [fold])

    def _combine(self, body: Body, v: Value, at: tuple, new, mask: int) -> list[Store]:
        kind = v.params.kind
        if kind == "set":
            return store_value(body, v, at, new, mask)
        offset, every = body.offset(v.shape, at), (1 << len(body.extents)) - 1
        if isinstance(new, tuple):
            part, even = part_name(v), affine.scale(offset, 2)
            old: Any = tuple(_load_now(body, v.number, part, affine.shift(even, i), mask, every) for i in (0, 1))
        else:
            old = _load_now(body, v.number, NAMES[v.dtype], offset, mask, every)
        return store_value(body, v, at, _combined(body, v, old, new), mask)

    # ---- folds with a body of their own, and running ones --------------------------------------------------

    def reduce_general(self, node: Value) -> Nest:
        outs, axes = node.results, node.params.axes
        n = len(outs)
        xs, inits = node.args[:n], node.args[n:]
        body = self.body(xs[0].shape)
        index = dims(xs[0].ndim)
        kept = tuple(ix for d, ix in enumerate(index) if d not in axes)
        every = (1 << xs[0].ndim) - 1
        start = flatten(body.read(i, ()) for i in inits)
        new = [body.read(x, index) for x in xs]
        types = flatten(((part_name(x),) * 2 if KIND[x.dtype] == "c" else NAMES[x.dtype]) for x in xs)
        acc = pairs(accumulators(body, 0, types, every), xs)
        out = run_scalar(body, node.params.body, [*acc, *new])
        dests = []
        for o in outs:
            offset = body.offset(o.shape, kept)
            if KIND[o.dtype] == "c":
                dests += [(o.number, part_name(o), affine.shift(affine.scale(offset, 2), i)) for i in (0, 1)]
            else:
                dests.append((o.number, NAMES[o.dtype], offset))
        fold = Fold("general", tuple(flatten(out)), tuple(types), tuple(dests), inits=tuple(start))
        return loops.from_body(body, axes, [], [fold])

    def cumulative(self, v: Value) -> Nest:
        (x,), kind, axis = v.args, v.params.kind, v.params.axis
        body, index = self.body(x.shape), dims(x.ndim)
        if v.params.reverse:
            back = affine.shift(affine.scale(index[axis], -1), x.shape[axis] - 1)
            index = index[:axis] + (back,) + index[axis + 1 :]
        new = body.read(x, index)
        offset = body.offset(v.shape, index)
        if kind in ("logsumexp", "prod") and (kind == "logsumexp" or isinstance(new, tuple)):
            return loops.from_body(body, (axis,), [], [self._running(body, v, new, offset, kind)])
        if isinstance(new, tuple):
            part, even = part_name(v), affine.scale(offset, 2)
            folds = [
                Fold(kind, (s,), (part,), ((v.number, part, affine.shift(even, i)),), running=True)
                for i, s in enumerate(new)
            ]
        else:
            dests, of_two = ((v.number, NAMES[v.dtype], offset),), x.shape[axis] <= 2
            small = (0,) if v.params.decays else ()
            folds = [Fold(kind, (new,), (NAMES[v.dtype],), dests, running=True, small=small, of_two=of_two)]
        return loops.from_body(body, (axis,), [], folds)

    def _running(self, body: Body, v: Value, new, offset, kind: str) -> Fold:
        every = (1 << len(body.extents)) - 1
        if kind == "prod":
            return self._complex_prod(body, v, new, offset, every)._replace(running=True)
        t = "float64" if v.dtype == np.float64 else "float32"  # narrow floats are rounded once, at the end
        new = new if NAMES[v.dtype] == t else body.stmt("convert", t, (new,))
        (old,) = accumulators(body, 0, (t,), every)
        big, small = body.stmt("max", t, (old, new)), body.stmt("min", t, (old, new))
        gap = body.stmt("sub", t, (small, big))
        grown = body.stmt("log1p", t, (body.stmt("exp", t, (gap,)),))
        flat = body.stmt("eq", "bool", (small, big))
        grown = body.stmt("select", t, (flat, body.const(math.log(2.0), t), grown))
        total = body.stmt("add", t, (big, grown))
        return Fold(
            "general",
            (total,),
            (t,),
            ((v.number, NAMES[v.dtype], offset),),
            running=True,
            inits=(body.const(-math.inf, t),),
        )


def _combined(body: Body, v: Value, old, new):
    kind = v.params.kind
    if kind == "general":
        return run_scalar(body, v.params.body, [old, new])[0]
    if isinstance(new, tuple):
        part = part_name(v)
        if kind in ("add", "sub"):
            return tuple(body.stmt(kind, part, (o, n)) for o, n in zip(old, new))
        (a, b), (c, d) = old, new
        re = body.stmt("sub", part, (body.stmt("mul", part, (a, c)), body.stmt("mul", part, (b, d))))
        return re, body.stmt("add", part, (body.stmt("mul", part, (a, d)), body.stmt("mul", part, (b, c))))
    return body.stmt(kind, NAMES[v.dtype], (old, new))


# ---- products by loops --------------------------------------------------------------------------------------


def dot(nests: NestBuilder, v: Value, few: tuple[int, ...] = (), copies: int = loops.COPIES) -> Nest:
    """A product; each place of the dimensions of the result that are `few` is a sum of its own in the nest, with so
    many accumulators at most.
    """
    lhs, rhs = v.args
    lc, rc, lb, rb = v.params.numbers
    lfree = [d for d in range(lhs.ndim) if d not in lc and d not in lb]
    rfree = [d for d in range(rhs.ndim) if d not in rc and d not in rb]
    looped = [d for d in range(v.ndim) if d not in few]
    terms = [lhs.shape[d] for d in lc]
    body = nests.body((*(v.shape[d] for d in looped), *terms))
    index = dims(len(looped) + len(terms))
    left, right = [affine.ZERO] * lhs.ndim, [affine.ZERO] * rhs.ndim
    for i, (p, q) in enumerate(zip(lc, rc), len(looped)):
        left[p] = right[q] = index[i]
    folds = []
    for place in np.ndindex(*(v.shape[d] for d in few)):
        at = [affine.ZERO] * v.ndim
        for d, ix in (*zip(looped, index), *zip(few, map(affine.constant, place))):
            at[d] = ix
        for side, own in ((left, (*lb, *lfree)), (right, rb)):
            for d, ix in zip(own, at):
                side[d] = ix
        for d, ix in zip(rfree, at[len(lb) + len(lfree) :]):
            right[d] = ix
        a, b = body.read(lhs, tuple(left)), body.read(rhs, tuple(right))
        folds += product_folds(body, v, lhs, rhs, a, b, body.offset(v.shape, tuple(at)))
    axes = tuple(range(len(looped), len(index)))
    small = v.params.small if v.dtype == np.float32 and math.prod(terms) >= _asked_from(v) else None
    return loops.from_body(body, axes, [], [f._replace(copies=copies, small=small or ()) for f in folds])


def _asked_from(v: Value) -> int:
    """From how many terms on it is asked whether factors are small: fewer where both may be, which are sooner."""
    return FEW if len(v.params.small or ()) > 1 else LONG


def inner_product(nests: NestBuilder, v: Value, machine: Machine) -> Nest:
    """Inner products of vectors that may be computed where they are multiplied: they are added up as those of vectors
    in memory are, along the lanes or not.
    """
    made = dot(nests, v)
    operands = {in_memory(x, ())[0].number for x in v.args}
    if operands <= nests.stored.keys():
        return made
    beside = copy.copy(nests)
    beside.stored = ChainMap(dict.fromkeys(operands, ""), nests.stored)
    stored = schedules.schedule(dot(beside, v), machine)
    made.folds = [f._replace(along=stored.vector in stored.reduced) for f in made.folds]
    return made


def convolution(nests: NestBuilder, v: Value, weights: Value, at_once: bool) -> Nest:
    """A convolution of an image whose channels are its last dimension, with `weights` O *K I: each output channel
    is a sum of its own. The last taps and the channels, which lie side by side, are one dimension if `at_once`.
    """
    image, p = v.args[0], v.params
    rank = len(p.strides)
    body = nests.body((*v.shape[:-1], *weights.shape[1:]))
    n, *rest = dims(len(body.extents))
    places, taps, c = rest[:rank], [*rest[rank:-1], *[affine.ZERO] * at_once], rest[-1]
    at = [affine.ZERO] * image.ndim
    at[p.lhs_spec[0]], at[p.lhs_spec[1]] = n, c
    for d, place, tap, s, r in zip(p.lhs_spec[2:], places, taps, p.strides, p.dilation):
        at[d] = affine.add(affine.scale(place, s), affine.scale(tap, r))
    x, folds = body.read(image, tuple(at)), []
    for o in range(v.shape[-1]):
        one = affine.constant(o)
        w = body.read(weights, (one, *rest[rank:]))
        folds += product_folds(body, v, image, weights, x, w, body.offset(v.shape, (n, *places, one)))
    return loops.from_body(body, range(1 + rank, len(body.extents)), [], folds)


def sum_of_parts(nests: NestBuilder, parts: Value, v: Value) -> Nest:
    """The sum of the rows of `parts`, which is the value's elements."""
    body, name = nests.body((v.size, parts.shape[0])), NAMES[v.dtype]
    kept, part = dims(2)
    dest = (v.number, name, body.offset((v.size,), (kept,)))
    return loops.from_body(body, (1,), [], [Fold("sum", (body.read(parts, (part, kept)),), (name,), (dest,))])


def product_folds(body: Body, v: Value, lhs: Value, rhs: Value, a, b, offset) -> list[Fold]:
    """Sums of products, accumulated in f32 at least."""
    if KIND[v.dtype] == "c":
        part, even = part_name(v), affine.scale(offset, 2)
        (ar, ai), (br, bi) = a, b
        re = body.stmt("sub", part, (body.stmt("mul", part, (ar, br)), body.stmt("mul", part, (ai, bi))))
        im = body.stmt("add", part, (body.stmt("mul", part, (ar, bi)), body.stmt("mul", part, (ai, br))))
        return [Fold("sum", (s,), (part,), ((v.number, part, affine.shift(even, i)),)) for i, s in enumerate((re, im))]
    dest = ((v.number, NAMES[v.dtype], offset),)
    if KIND[v.dtype] == "f":
        wide = "float64" if v.dtype == np.float64 else "float32"
        a, b = (x if NAMES[y.dtype] == wide else body.stmt("convert", wide, (x,)) for x, y in ((a, lhs), (b, rhs)))
        return [Fold("dot", (a, b), (wide,), dest)]
    name = NAMES[v.dtype]
    a, b = (x if y.dtype == v.dtype else body.stmt("convert", name, (x,)) for x, y in ((a, lhs), (b, rhs)))
    return [Fold("sum", (body.stmt("mul", name, (a, b)),), (name,), dest)]


# ---- helpers -----------------------------------------------------------------------------------------------


def dims(rank: int) -> tuple:
    return tuple(affine.dim(d) for d in range(rank))


def part_name(v: Value) -> str:
    return "float32" if v.dtype == np.complex64 else "float64"


def in_panels(index: tuple, each: int, start: int) -> tuple:
    """Where an operand goes: the last dimensions of the target are panels, from the one at `start`, terms and rows;
    those of the index blocks of `each` panels, terms, panels of a block, and rows.
    """
    *of, block, term, panel, row = index
    return (*of, affine.shift(affine.add(affine.scale(block, each), panel), start), term, row)


def store_value(body: Body, v: Value, index: tuple, s, mask: int = -1) -> list[Store]:
    offset = body.offset(v.shape, index)
    if isinstance(s, tuple):
        part, even = part_name(v), affine.scale(offset, 2)
        return [Store(v.number, part, affine.shift(even, i), x, mask) for i, x in enumerate(s)]
    return [Store(v.number, NAMES[v.dtype], offset, s, mask)]


def _between(body: Body, s: int, most: int) -> int:
    """An integer as a position from 0 to `most`."""
    low = body.stmt("max", INDEX, (body.position(s), body.const(0, INDEX)))
    return body.stmt("min", INDEX, (low, body.const(most, INDEX)))


def _load_now(body: Body, number: int, dtype: str, offset, mask: int, every: int) -> int:
    """A load that every iteration repeats, since the nest writes what it reads."""
    s = body.stmt("load_now", dtype, (mask,) if mask >= 0 else (), (number, dtype, offset))
    body.depends[s] = every
    return s


def accumulators(body: Body, fold: int, types, every: int) -> list[int]:
    out = []
    for j, t in enumerate(types):
        s = body.stmt("accumulator", t, (), (fold, j))
        body.depends[s] = every
        out.append(s)
    return out


def run_scalar(body: Body, region, operands: list) -> list:
    """The results of a scalar region on statements of `body`."""
    inner = Body((), lambda v: False)
    inner.stmts, inner.depends, inner._known = body.stmts, body.depends, body._known
    inner.extents = body.extents
    for v, s in zip(region.inputs, operands):
        inner.local[(v.number, ())] = s
    return [inner.read(v, ()) for v in region.outputs]


def flatten(items) -> list:
    return [x for item in items for x in (item if isinstance(item, tuple) else (item,))]


TOGETHER = 4  # arrays of one shape that are joined in one nest
FEWEST_ROWS, JOINED = 32, 8  # rows that are joined by columns, at least, and columns of a row, at most
MOST_OF_COLUMNS = 64  # statements of all of them


def _alike(xs, most: int):
    """Runs of neighbours of one shape, so many at a time at most."""
    for _, group in itertools.groupby(xs, key=lambda x: x.shape):
        run = list(group)
        yield from (run[i : i + most] for i in range(0, len(run), most))


def pairs(flat: list, xs) -> list:
    out, it = [], iter(flat)
    for x in xs:
        out.append((next(it), next(it)) if KIND[x.dtype] == "c" else next(it))
    return out
