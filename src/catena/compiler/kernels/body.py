"""Bodies of loop nests: reading a value of the graph at an index writes straight-line scalar statements.

A `Body` holds statements in SSA form over the dimensions of one iteration space. Reading a stored value is a
load at an affine offset; reading an inlined one reads its operands at indices moved by its index map and
applies its operation. Statements are hash-consed, and each knows on which dimensions it depends, so that the
writer can place it in the outermost loop where it is defined: what is broadcast along inner loops is computed
once, outside of them.

Complex values are pairs of statements; `complex_math` expands their operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from catena.compiler.graph import affine, constants
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.forms import FORMS, Indices
from catena.compiler.graph.intervals import Interval, interval, span
from catena.compiler.graph.keys import Keys
from catena.compiler.graph.parts import joined
from catena.compiler.graph.region import Value
from catena.compiler.graph.reshapes import groups
from catena.compiler.graph.symbols import Symbol, as_float, whole
from catena.compiler.graph.types import NAMES
from catena.compiler.kernels import complex_math, conditions
from catena.core.dtypes import KIND
from catena.core.named import NamedTuple

INDEX = "int64"


class Stmt(NamedTuple):
    op: str
    type: str  # name of the result's dtype
    args: tuple  # statements
    attr: Any  # load: (value number, dtype name, offset); const: number; affine: expression
    ahead: int = 0  # of a load: how many elements further on is fetched from memory meanwhile


class Flat(NamedTuple):
    """An index into the row-major flattening of a value."""

    at: Affine


class Body:
    """Statements of one nest. `stored(value)` tells which values are in memory."""

    def __init__(self, extents, stored: Callable[[Value], bool], root_of: Callable[[Value], tuple] | None = None):
        self.extents = tuple(extents)
        self.stored = stored
        self.root_of = root_of or (lambda v: (v.number, NAMES[v.dtype]))
        self.stmts: list[Stmt] = []
        self.depends: list[int] = []  # bit masks of dimensions
        self._keys = Keys()  # of what is known, and read
        self._known: dict[tuple, int] = {}
        self._read: dict = {}
        self.ranges: dict[int, tuple[int, int]] = {}  # of integers that are computed, where they are known
        self.exact: dict[int, Affine] = {}  # integers that move with the loops, such as the places of a window
        self.local: dict = {}  # (value number, index) -> statements, for values computed in this body
        self.alternating: dict[int, int] = {}  # dimensions of which something is asked at every so many places

    # ---- statements ----------------------------------------------------------------------------------------

    def stmt(self, op: str, type_: str, args: tuple = (), attr=None) -> int:
        new = Stmt(op, type_, args, attr)
        key = self._keys.of(new)
        found = self._known.get(key)
        if found is not None:
            return found
        mask = 0
        for a in args:
            mask |= self.depends[a]
        if op in ("load", "load_now", "affine"):
            mask |= self.affine_mask(attr if op == "affine" else attr[2])
        self.stmts.append(new)
        self.depends.append(mask)
        self._known[key] = number = len(self.stmts) - 1
        return number

    def affine_mask(self, a: Affine) -> int:
        mask = 0
        for d, _ in a[1]:
            mask |= 1 << d
        for t, _ in a[2]:
            mask |= self.depends[t]
        return mask

    def const(self, value, type_: str) -> int:
        return self.stmt("const", type_, (), _hashable(value))

    def affine(self, a: Affine) -> int:
        """The expression as a statement of type int64."""
        if affine.is_constant(a):
            return self.const(a[0], INDEX)
        if not a[0] and not a[1] and len(a[2]) == 1 and a[2][0][1] == 1:
            return a[2][0][0]
        return self.stmt("affine", INDEX, (), a)

    def both(self, a: int, b: int) -> int:
        """The conjunction of two masks; -1 is the mask that is always true."""
        return b if a < 0 else a if b < 0 else self.stmt("and", "bool", (a, b))

    def inside(self, a: Affine, extent: int) -> int:
        """The mask 0 <= a < extent, or -1 where that is known."""
        low, high = self.bounds(a)
        mask = -1
        if low is None or low < 0:
            mask = self.stmt("ge", "bool", (self.affine(a), self.const(0, INDEX)))
        if high is None or high >= extent:
            mask = self.both(mask, self.stmt("lt", "bool", (self.affine(a), self.const(extent, INDEX))))
        return mask

    def among(self, s: int, bounds: tuple[int, int], extent: int) -> int:
        """The mask 0 <= s < extent of an integer that is computed, in its own type: narrow ones have more lanes."""
        name, mask = self.stmts[s].type, -1
        low, high = bounds
        if low < 0:
            mask = self.stmt("ge", "bool", (s, self.const(0, name)))
        else:
            self.ranges.setdefault(s, bounds)
        if high >= extent:
            mask = self.both(mask, self.stmt("lt", "bool", (s, self.const(extent, name))))
        return mask

    def position(self, s: int, bounds: tuple[int, int] | None = None) -> int:
        """An integer that is computed, and lies within bounds if they are told, as one of type int64."""
        at = s if self.stmts[s].type == INDEX else self.stmt("convert", INDEX, (s,))
        if bounds is not None:
            self.ranges[at] = bounds
        return at

    def expression(self, s: int, bounds: tuple[int, int] | None = None) -> Affine:
        """An integer that is computed, and lies within bounds if they are told, as it moves with the loops."""
        found = self.exact.get(s)
        if found is not None:
            return found
        if self.stmts[s].op == "const":
            return affine.constant(whole(self.stmts[s].attr))
        return affine.term(self.position(s, bounds))

    def bounds(self, a: Affine) -> tuple:
        """The least and greatest value of an expression, or Nones when it holds computed values of unknown range."""
        low = high = a[0]
        for t, c in a[2]:
            if t not in self.ranges:
                return None, None
            ends = [c * end for end in self.ranges[t]]
            low, high = low + min(ends), high + max(ends)
        for d, c in a[1]:
            reach = c * max(self.extents[d] - 1, 0)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high

    # ---- reading values ------------------------------------------------------------------------------------

    def read(self, v: Value, index, mask: int = -1):
        """`v` at `index` (a tuple of Affine, or Flat): a statement, or a pair for complex values."""
        key = self._keys.of((v.number, index, mask))
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = self._read_new(v, index, mask)
        return found

    def _read_new(self, v: Value, index, mask: int):
        here = self.local.get((v.number, index))
        if here is not None:
            return here
        if v.size == 0:
            return self.scalar(np.zeros((), v.dtype))  # never executed, or read outside of an empty operand
        if self.stored(v):
            number = constants.scalar(v) if v.form == "broadcast" else None
            return self.load(v, self.offset(v.shape, index), mask) if number is None else self.scalar(number)
        if v.form == "map":
            xs = [self.read(a, index, mask) for a in v.args]
            return self._checked(v, xs, index, mask) if v.params.op == "checked" else self._map(v, xs)
        if v.form == "constant":
            return self.scalar(v.params.array)
        if isinstance(index, Flat) and v.form != "reshape":
            if v.form == "broadcast" and v.args[0].size == 1:
                return self.read(v.args[0], (affine.ZERO,) * v.args[0].ndim, mask)
            index = self.unflatten(index, v.shape)
        return _READ[v.form](self, v, index, mask)

    def offset(self, shape: tuple, index) -> Affine:
        if isinstance(index, Flat):
            return index.at
        steps, stride = [], 1
        for n, ix in zip(reversed(shape), reversed(index)):
            if n != 1:
                steps.append((ix, stride))
            stride *= n
        return affine.combination(steps)

    def load(self, v: Value, offset: Affine, mask: int = -1):
        if mask < 0 and not offset[2] and all(self.extents):
            low, high = self.bounds(offset)
            assert 0 <= low and high < v.size, f"{v} is read at {low} to {high}"
        number, dtype = self.root_of(v)
        if KIND[v.dtype] == "c":
            part = "float32" if v.dtype == np.complex64 else "float64"
            even = affine.scale(offset, 2)
            return tuple(self._load(number, part, affine.shift(even, i), mask) for i in (0, 1))
        return self._load(number, dtype, offset, mask)

    def _load(self, number: int, dtype: str, offset: Affine, mask: int) -> int:
        return self.stmt("load", dtype, (mask,) if mask >= 0 else (), (number, dtype, offset))

    def scalar(self, array: np.ndarray):
        if KIND[array.dtype] == "c":
            part = "float32" if array.dtype == np.complex64 else "float64"
            return self.const(float(array.real), part), self.const(float(array.imag), part)
        return self.const(array.item() if KIND[array.dtype] != "f" else as_float(array.item()), NAMES[array.dtype])

    def unflatten(self, index: Flat, shape: tuple) -> tuple:
        """The row-major position `index` as one index per dimension; divisions by constants where it must."""
        out, rest = [], index.at
        for n in reversed(shape[1:]):
            low, high = self.bounds(rest)
            if high is not None and high < n and low >= 0:
                out.append(rest)
                rest = affine.ZERO
                continue
            outer, inner = _split(rest, n, self)
            out.append(inner)
            rest = outer
        return tuple(reversed(out + [rest])) if shape else ()

    def _checked(self, v: Value, xs: list, index, mask: int):
        """The value, whose test is a statement: whether it fails, the place in rows, and what is shown."""
        x, failed, *shown = xs
        place = self.affine(self.offset(v.shape, index))
        self.stmt("check", "bool", (self.both(mask, failed), place, *shown), v.params.y)
        return x

    def _map(self, v: Value, xs: list):
        op = v.params.op
        if KIND[v.dtype] == "c" or KIND[v.args[0].dtype] == "c" or (len(v.args) > 1 and KIND[v.args[1].dtype] == "c"):
            return complex_math.expand(self, op, v, xs)
        if op in conditions.COMPARED and v.args[0].bounds is not None and (places := self._places(xs)) is not None:
            return self._compared(op, *places)
        made = self.stmt(op, NAMES[v.dtype], tuple(xs), v.params.y)
        if v.bounds is not None and op in _MOVES and any(x in self.exact for x in xs) and made not in self.exact:
            self._remember(made, _MOVES[op](*[self.expression(x, _told(a)) for x, a in zip(xs, v.args)]))
        return made

    def _places(self, xs: list[int]) -> list[Affine] | None:
        """Integers that move with one loop alone, as places: what compares them has a seam (see `conditions`)."""
        found = [self.expression(x) for x in xs if x in self.exact or self.stmts[x].op == "const"]
        forms = [(n, tuple((d, c) for d, c in steps if self.extents[d] != 1), terms) for n, steps, terms in found]
        moved = {d for _, steps, _ in forms for d, _ in steps}
        return forms if len(forms) == len(xs) and len(moved) == 1 and not any(t for *_, t in forms) else None

    def _compared(self, op: str, a: Affine, b: Affine) -> int:
        """The comparison of places, by one of the two that masks are made of: above a place is from the next one on."""
        b = affine.shift(b, op in ("gt", "le"))
        return self.stmt({"gt": "ge", "le": "lt"}.get(op, op), "bool", (self.affine(a), self.affine(b)))

    def _remember(self, s: int, a: Affine | None) -> None:
        """That an integer moves with the loops, and with one at most that is computed; or that it is a number."""
        if a is not None and (a[1] or affine.is_constant(a)) and len(a[2]) < 2:
            self.exact[s] = a


def _hashable(value):
    """Constants keyed so that 0.0 and -0.0, and each NaN, stay apart."""
    if type(value) is Symbol and value == value and value != 0:
        return value
    return value if not isinstance(value, float) else Number(value)


class Number(float):
    """A float constant that equals only itself bit for bit."""

    def __eq__(self, other):
        if not isinstance(other, Number):
            return False
        same = float.__eq__(self, other) and math.copysign(1, self) == math.copysign(1, other)
        return same or (math.isnan(self) and math.isnan(other))

    def __ne__(self, other):
        return float.__ne__(self, other)

    def __hash__(self):
        return 0 if math.isnan(self) else float.__hash__(self)


def _split(a: Affine, n: int, body: Body) -> tuple[Affine, Affine]:
    """`a // n` and `a % n`: exact on the terms that are multiples of n when the rest stays below n."""
    moving = (0, tuple((d, c) for d, c in a[1] if c % n), tuple((t, c) for t, c in a[2] if c % n))
    least, _ = body.bounds(moving)
    steps = a[0] // n if least is not None and least >= 0 else 0  # what goes down from the end stays above zero
    whole = (
        steps,
        tuple((d, c // n) for d, c in a[1] if c % n == 0),
        tuple((t, c // n) for t, c in a[2] if c % n == 0),
    )
    rest = (a[0] - n * steps, *moving[1:])
    low, high = body.bounds(rest)
    if low is not None and low >= 0 and high < n:
        return whole, rest
    position = body.affine(rest)
    if low is not None and low >= 0 and high < 1 << 31:  # by multiplications, of twice as many lanes
        short = body.stmt("convert", "uint32", (position,))
        quotient = body.position(body.stmt("div", "uint32", (short, body.const(n, "uint32"))))
        body.ranges[quotient] = low // n, high // n
    else:
        quotient = body.stmt("floor_div", INDEX, (position, body.const(n, INDEX)))
    remainder = affine.add(rest, affine.scale(affine.term(quotient), -n))
    return affine.add(whole, affine.term(quotient)), remainder


def _told(v: Value) -> Interval | None:
    """The bounds of an integer, where they say more than that indices may have its type."""
    return None if v.bounds is None or span(np.dtype("int32")).within(v.bounds) else v.bounds


def _product(a: Affine, b: Affine) -> Affine | None:
    """The product of two expressions one of which is a number."""
    number, other = (a, b) if affine.is_constant(a) else (b, a)
    return affine.scale(other, number[0]) if affine.is_constant(number) else None


_MOVES: dict[str, Callable[..., Affine | None]] = {  # what is exact wherever the result does not wrap around
    "add": affine.add,
    "sub": lambda a, b: affine.add(a, affine.scale(b, -1)),
    "mul": _product,
    "convert": lambda a: a,
}


# ---- index maps of the views -------------------------------------------------------------------------------


def _iota(body: Body, v: Value, index, mask):
    position = body.affine(index[v.params.dimension])
    if KIND[v.dtype] == "c":
        part = "float32" if v.dtype == np.complex64 else "float64"
        return body.stmt("convert", part, (position,)), body.const(0.0, part)
    made = body.stmt("convert", NAMES[v.dtype], (position,))
    if v.bounds is not None:
        body._remember(made, index[v.params.dimension])
    return made


def _broadcast(body: Body, v: Value, index, mask):
    x = v.args[0]
    return body.read(x, tuple(index[d] if n != 1 else affine.ZERO for d, n in zip(v.params.dims, x.shape)), mask)


def _transpose(body: Body, v: Value, index, mask):
    perm = v.params.perm
    moved = [affine.ZERO] * len(perm)
    for d, p in enumerate(perm):
        moved[p] = index[d]
    return body.read(v.args[0], tuple(moved), mask)


def _reshape(body: Body, v: Value, index, mask):
    x = v.args[0]
    if isinstance(index, Flat):
        return body.read(x, index if x.ndim else (), mask)
    if x.size == 1:
        return body.read(x, (affine.ZERO,) * x.ndim, mask)
    moved: list[Any] = []
    for ins, outs in groups(x.shape, v.shape):
        at = body.offset(tuple(v.shape[d] for d in outs), tuple(index[d] for d in outs))
        if len(ins) > 1 and len([d for d in ins if x.shape[d] != 1]) > 1:
            if len(groups(x.shape, v.shape)) == 1 or body.stored(x):
                return body.read(x, Flat(body.offset(v.shape, index)), mask)
            moved.extend(body.unflatten(Flat(at), tuple(x.shape[d] for d in ins)))
        else:
            moved.extend(at if x.shape[d] != 1 else affine.ZERO for d in ins)
    return body.read(x, tuple(moved), mask)


def _slice(body: Body, v: Value, index, mask):
    moved = (affine.shift(affine.scale(ix, s), lo) for ix, lo, s in zip(index, v.params.start, v.params.strides))
    return body.read(v.args[0], tuple(moved), mask)


def _concatenate(body: Body, v: Value, index, mask):
    """The part that the index lies in: each is read under a mask."""
    d, found = v.params.dimension, []
    for x, at in joined(v):
        ix = affine.shift(index[d], -at)
        low, high = body.bounds(ix)
        if high is None or (high >= 0 and low < x.shape[d]):
            found.append((x, (*index[:d], ix, *index[d + 1 :]), body.inside(ix, x.shape[d])))
    if not found:  # beside all of it, as the border of a pad may be: masks leave out what is read there
        return body.scalar(np.zeros((), v.dtype))
    (x, place, within), *others = reversed(found)
    out = body.read(x, place, body.both(mask, within) if others else mask)
    for x, place, within in others:
        out = choose(body, within, body.read(x, place, body.both(mask, within)), out, v.dtype)
    return out


def _reverse(body: Body, v: Value, index, mask):
    dims = v.params.dims
    moved = (
        affine.shift(affine.scale(ix, -1), n - 1) if d in dims else ix for d, (ix, n) in enumerate(zip(index, v.shape))
    )
    return body.read(v.args[0], tuple(moved), mask)


def choose(body: Body, mask: int, yes, no, dtype):
    """`yes` where the mask holds, else `no`, for statements or pairs of them."""
    if mask < 0:
        return yes
    if isinstance(yes, tuple):
        part = "float32" if dtype == np.complex64 else "float64"
        return tuple(body.stmt("select", part, (mask, y, n)) for y, n in zip(yes, no))
    return body.stmt("select", dtype.name, (mask, yes, no))


def _pad(body: Body, v: Value, index, mask):
    x, fill = v.args
    moved, within = [], -1
    for ix, (lo, _, mid), n in zip(index, v.params.config, x.shape):
        at, here = _every(body, affine.shift(ix, -lo), mid + 1)
        if here is None:
            return body.read(fill, (), mask)
        within = body.both(body.both(within, here), body.inside(at, n))
        moved.append(at)
    if x.size == 0:
        return body.read(fill, (), mask)
    yes = body.read(x, tuple(moved), body.both(mask, within))
    return choose(body, within, yes, body.read(fill, (), mask), v.dtype)


def _every(body: Body, a: Affine, n: int) -> tuple[Affine, int | None]:
    """`a / n`, and the mask of the places where that is whole; None where it is whole nowhere."""
    if n == 1:
        return a, -1
    outer, inner = _split_floor(a, n, body)
    if affine.is_constant(inner):
        return outer, None if inner[0] else -1
    if not a[2] and len(a[1]) == 1 and a[1][0][1] == 1:
        body.alternating.setdefault(a[1][0][0], n)
    return outer, body.stmt("eq", "bool", (body.affine(inner), body.const(0, INDEX)))


def _split_floor(a: Affine, n: int, body: Body) -> tuple[Affine, Affine]:
    """`a // n` rounded down, and the remainder, for expressions that may be negative."""
    low, _ = body.bounds(a)
    if low is not None and low >= 0:
        return _split(a, n, body)
    up = 0 if low is None else (n - 1 - low) // n
    if low is None:
        quotient = body.stmt("floor_div", INDEX, (body.affine(a), body.const(n, INDEX)))
        return affine.term(quotient), affine.add(a, affine.scale(affine.term(quotient), -n))
    outer, inner = _split(affine.shift(a, up * n), n, body)
    return affine.shift(outer, -up), inner


def _window(body: Body, v: Value, index, mask):
    x, fill = v.args
    rank, p = x.ndim, v.params
    moved, within = [], -1
    for d in range(rank):
        at = affine.add(affine.scale(index[d], p.strides[d]), affine.scale(index[rank + d], p.window_dilation[d]))
        at, here = _every(body, affine.shift(at, -p.padding[d][0]), p.base_dilation[d])
        if here is None:
            return body.read(fill, (), mask)
        within = body.both(body.both(within, here), body.inside(at, x.shape[d]))
        moved.append(at)
    if x.size == 0:
        return body.read(fill, (), mask)
    yes = body.read(x, tuple(moved), body.both(mask, within))
    return choose(body, within, yes, body.read(fill, (), mask), v.dtype)


def clamped_start(body: Body, start: Value, index: tuple, room: int, mask: int = -1) -> Affine:
    """A start index read from `start`, clamped to [0, room] where its bounds are wider."""
    if room <= 0 and not is_tested(start):
        return affine.ZERO
    at = body.read(start, index, mask)
    name = body.stmts[at].type
    if body.stmts[at].op == "const":
        return affine.constant(min(max(whole(body.stmts[at].attr), 0), room))
    low, high = interval(start)
    if 0 <= low and high <= room:
        return body.expression(at, (low, high))
    if low < 0:
        at = body.stmt("max", name, (at, body.const(0, name)))
    if high > room:
        at = body.stmt("min", name, (at, body.const(room, name)))
    return affine.term(body.position(at, (min(max(low, 0), room), max(min(high, room), 0))))


def is_tested(v: Value) -> bool:
    """Whether a check looks at a value, or at what it is made of where it is read: it is read though it is known."""
    pending, seen = [v], {v.number}
    while pending:
        x = pending.pop()
        if x.form == "map" and x.params.op == "checked":
            return True
        if FORMS[x.form].inline:
            pending += [a for a in x.args if a.number not in seen]
            seen |= {a.number for a in x.args}
    return False


def _dynamic_slice(body: Body, v: Value, index, mask):
    x, *starts = v.args
    moved = (affine.add(ix, clamped_start(body, s, (), n - m)) for ix, s, n, m in zip(index, starts, x.shape, v.shape))
    return body.read(x, tuple(moved), mask)


def _gather(body: Body, v: Value, index, mask):
    x, indices, *fill = v.args
    moved, within = places(body, x, indices, v.params, index, mask)
    yes = body.read(x, moved, body.both(mask, within))
    return choose(body, within, yes, body.read(fill[0], (), mask), v.dtype) if within >= 0 else yes


def places(body: Body, x: Value, indices: Value, p: Indices, index, mask: int = -1) -> tuple[tuple, int]:
    """Where a gather reads `x`, or a scatter writes it, at a place of its windows; and the mask of places that exist.

    `indices` has one row of start indices per batch position: see `indexing`.
    """
    batch = tuple(index[d] for d in p.batch_dims)
    moved = [affine.ZERO] * x.ndim
    for out, d in zip(p.offset_dims, p.window_dims):
        moved[d] = index[out]
    for d, pos in p.batching:
        moved[d] = affine.add(moved[d], batch[pos])
    within = -1
    for k, d in enumerate(p.start_index_map):
        at, room = (*batch, affine.constant(k)), x.shape[d] - p.slice_sizes[d]
        if p.mode == "clip":
            start = clamped_start(body, indices, at, room, mask)
        else:
            s = body.read(indices, at, mask)  # where the mask does not hold, there may be no such index
            bounds = interval(indices)
            start = body.expression(s, bounds if bounds.within(Interval(0, room)) else None)
            if p.mode == "fill":
                inside = body.among(s, bounds, room + 1) if start[2] else body.inside(start, room + 1)
                within = body.both(within, inside)
        moved[d] = affine.add(moved[d], start)
    return tuple(moved), within


_READ = {
    "iota": _iota,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "reshape": _reshape,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "pad": _pad,
    "window": _window,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
}
