"""What a loop need not do in every iteration: it is done before the loop, or after it.

- What depends on nothing that changes in the loop is computed once, before it: where computing it costs more than
  reading it, where a product or a loop reads it, which would have it written to memory in every iteration, and where
  it tells the places of a gather or scatter. Elements that an array of indices names cost more than reading them.
  Sorts, Fourier transforms and factorisations, too.
- A product of an item of a `scan` with something that does not change (the input's weights in a recurrent network)
  becomes one product of all items, before the loop.
- A carry that only adds up products, outer ones too (the gradient of weights), becomes a product, after the loop, of
  what the iterations multiplied; one that adds up what the loop stores anyway becomes a sum, and to one that adds up
  zeros they are added once.
- Items of a `scan` that are the same in all iterations (ones, in the derivative of a sum) are constants of the loop.

Large operands are then read once and not in every iteration, and the products are large enough for all threads. It is
done where less is remembered for each iteration than is saved in it, within a bound on memory.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from catena.compiler.graph import constants, indexing
from catena.compiler.graph.forms import COSTLY, FORMS, Input
from catena.compiler.graph.forms import Scan as Params
from catena.core.dtypes import KIND

MOST_BYTES = 1 << 26  # for what is remembered of all iterations
FEW_BYTES = 256  # are in registers: they are computed again
LONG = 3  # operations an element, which are not done again in every iteration
LONGER = 24  # which take longer than to read an element that is larger than what it is made of, as of random bits
MOST_LOOKED_AT = 64  # values
MOST_TERMS = 8  # products that an iteration adds up
LEAST_OUTER = 1 << 10  # bytes of outer ones: smaller ones are in registers


def hoist_invariants(b, body, consts: list, certain: bool = False) -> list:
    """Takes the values that depend on the first inputs of `body` alone out of it, if they are costly or stored; loops
    of unknown length, too, where it is `certain` that the body runs.

    These inputs are `consts` outside; returns these and what is computed before the loop, inputs of `body` too now.
    """
    outside = Outside(b, body, consts, certain)
    found = _roots(body, outside.fixed)
    extra = [outside.copy(v) for v in found]
    body.inputs[len(consts) : len(consts)] = [_to_input(v) for v in found]
    return [*consts, *extra]


def once(b, body_closed, consts, init, xs) -> tuple[list, list]:
    """The results of the single iteration of a scan, whose products are rounded with sums as in any loop."""
    around, b.loop = b.loop, b.loop or "while"
    outs = b.call(body_closed, [*consts, *init, *(b.reshape(x, x.shape[1:]) for x in xs)])
    b.loop = around
    n = len(init)
    return outs[:n], [b.reshape(y, (1, *y.shape)) for y in outs[n:]]


def equal_items(b, xs) -> dict:
    """The items of a scan that are the same in all iterations, by the numbers of what it scans."""
    spread = {k: x for k, x in enumerate(xs) if x.form == "broadcast" and 0 not in x.params.dims}
    return {k: b.broadcast_in_dim(x.args[0], x.shape[1:], [d - 1 for d in x.params.dims]) for k, x in spread.items()}


def without_equal_items(body, consts: list, carries: int, xs: list, same: dict) -> tuple[list, list]:
    """Makes items of a scan that are the same in all iterations constants of the loop; returns its constants and what
    it scans. Those that are known are so in the body already.
    """
    if not same:
        return consts, xs
    first = len(consts) + carries
    moved = [k for k, item in same.items() if _number(item) is None]
    ahead, items = body.inputs[:first], body.inputs[first:]
    left = [k for k in range(len(xs)) if k not in same]
    body.inputs = [*ahead[: len(consts)], *(items[k] for k in moved), *ahead[len(consts) :], *(items[k] for k in left)]
    return [*consts, *(same[k] for k in moved)], [xs[k] for k in left]


def known(b, x):
    """A value that is a few known numbers, such as places, or one that is spread, in another region; else None."""
    number = _number(x)
    return None if number is None else b.full(x.shape, number) if number.ndim == 0 else b.constant(number)


def _number(x):
    found = indexing.known_numbers(x)
    return constants.scalar(x) if found is None and x.form == "broadcast" else found


def _roots(body, fixed: set[int]) -> list:
    """The costly and the stored ones among fixed values that others read, directly or through cheap ones."""
    outputs = [v for v in body.outputs if v.number in fixed]
    changing = [v for v in body.live() if v.number not in fixed]
    ask = outputs + [a for v in changing for a in v.args if a.number in fixed]
    stored = {x.number for v in changing for x in map(_in_memory, _read_whole(v)) if _is_kept_outside(x)}
    stored |= {x.number for v in changing for x in _places(v) if _is_kept_outside(x) and _reads_arrays(x)}
    found, seen = [], set()
    while ask:
        v = ask.pop()
        if v.number in seen:
            continue
        seen.add(v.number)
        if (v.number in stored or not _is_cheap(v)) and v.form not in ("constant", "input"):
            found.append(v)
        else:
            ask.extend(v.args)
    return sorted(found, key=lambda v: v.number)


def _is_cheap(v) -> bool:
    """Whether computing a value costs no more than reading it."""
    form = FORMS[v.form]
    if not (form.inline or form.alias) or (v.form == "map" and v.params.op in COSTLY):
        return False
    return not (_is_kept_outside(v) and (_gathers_elements(v) or _is_long(v)))


def _gathers_elements(v) -> bool:
    """Whether a value's elements are read one by one where an array of indices says."""
    return v.form == "gather" and math.prod(v.params.slice_sizes) == 1 and any(map(_reads_arrays, _places(v)))


def _is_long(v) -> bool:
    """Whether a value takes several operations an element, no longer to read than what it is made of, or many."""
    if v.form != "map":
        return False
    ask, seen, operations, read = [v], {v.number}, 0, 0
    while ask and len(seen) < MOST_LOOKED_AT:
        x = ask.pop()
        if x.form in ("input", "constant") or not FORMS[x.form].inline:
            read += x.nbytes
            continue
        if x.form == "map" and x.size == v.size:
            operations += 2 if x.params.op == "fma" else 1
            if operations >= LONGER:
                return True
        more = [a for a in x.args if a.number not in seen]
        seen.update(a.number for a in more)
        ask.extend(more)
    return not ask and operations >= LONG and v.nbytes <= read


def _read_whole(v) -> tuple:
    """The operands that a value reads in memory and does not write over."""
    if FORMS[v.form].in_memory == "bare":
        return v.args
    if v.form == "while":
        return v.args[: v.params.consts]
    if v.form == "scan":
        return (*v.args[: v.params.consts], *v.args[v.params.consts + v.params.carries :])
    return v.args[1:] if v.form == "branch" else ()


def _places(v) -> list:
    """What tells a gather or scatter its places: what is read of an index, as it is computed."""
    if v.form not in ("gather", "scatter"):
        return []
    indices = _unspread(v.args[1])
    return [_unspread(x) for x in indices.args] if indices.form == "concatenate" else [indices]


def _unspread(v):
    """What a value repeats, or has in another shape."""
    while v.form in ("transpose", "reshape", "broadcast"):
        (v,) = v.args
    return v


def _reads_arrays(v) -> bool:
    """Whether a value is computed of arrays in memory, which are as long to read as what is made of them."""
    ask, seen = [v], {v.number}
    while ask:
        x = ask.pop()
        if x.form in ("input", "constant") and x.nbytes > FEW_BYTES:
            return True
        more = [a for a in x.args if a.number not in seen and FORMS[x.form].inline]
        seen.update(a.number for a in more)
        ask.extend(more)
    return False


def _in_memory(v):
    """The value whose memory an operand is, seen otherwise."""
    while v.form in ("transpose", "reshape", "alias"):
        (v,) = v.args
    return v


def _is_kept_outside(v) -> bool:
    """Whether a value may be kept while a loop runs, so that its iterations need not write it."""
    return FEW_BYTES < v.nbytes <= MOST_BYTES and v.form not in ("iota", "broadcast")


def _has_body(v) -> bool:
    """Whether a region belongs to a value."""
    return v.form == "scatter" and v.params.body is not None


def _is_pure_loop(v, certain: bool) -> bool:
    """Whether a value is a loop that does nothing but compute. One of unknown length may never end: that is for who
    would run it in any case.
    """
    if v.form != "scan" and not (v.form == "while" and certain):
        return False
    if any(region.effects for region in v.params.regions):
        return False
    inside = [x for region in v.params.regions for x in region.live()]
    inside = [x for x in inside if x.form not in ("input", "constant", "iota", "output")]
    return all((FORMS[x.form].pure and not _has_body(x)) or _is_pure_loop(x, certain) for x in inside)


def _to_input(v):
    """The same value, given from outside."""
    v.form, v.args, v.params = "input", (), Input()
    return v


class Outside:
    """Values of a body that do not change in its loop (`fixed`), and their copies outside."""

    def __init__(self, b, body, consts: list, certain: bool = False):
        self.b, self.made = b, {v.number: x for v, x in zip(body.inputs, consts)}
        self.nodes: dict[int, list] = {}  # results of those that have several, outside
        self.fixed = set(self.made)
        for v in body.live():
            pure = (FORMS[v.form].pure and not _has_body(v)) or _is_pure_loop(v, certain)
            copied = v.form in ("constant", "iota") or (pure and v.args)
            copied = copied or v.form == "output"
            if copied and all(a.number in self.fixed for a in v.args):
                self.fixed.add(v.number)

    def copy(self, v):
        """The value outside of the loop."""
        ask = [v]
        while ask:
            x = ask[-1]
            missing = [a for a in x.args if a.number not in self.made]
            ask.extend(missing)
            if not missing:
                self.made.setdefault(ask.pop().number, x if FORMS[x.form].several else self._copied(x))
        return self.made[v.number]

    def _copied(self, x):
        if x.form == "constant":
            return self.b.constant(x.params.array)
        if x.form == "output":
            return self._results_of(x.args[0])[x.params.index]
        return self.b.value(x.form, x.shape, x.dtype, [self.made[a.number] for a in x.args], x.params)

    def _results_of(self, node) -> list:
        """The results of a node that is outside, too: once, whichever of them are asked for."""
        if node.number not in self.nodes:
            outs = [(x.shape, x.dtype) for x in node.results]
            self.nodes[node.number] = self.b.multi(
                node.form, [self.made[a.number] for a in node.args], outs, node.params
            )
        return self.nodes[node.number]


class Scan:
    """A `scan` while work is moved out of its body."""

    def __init__(self, b, body, consts, init, xs, length: int):
        self.b, self.body, self.length = b, body, length
        self.consts, self.init, self.xs = list(consts), list(init), list(xs)
        self.carries = list(range(len(init)))  # which carries are left
        self.sums: dict[int, tuple] = {}  # carry -> what finds its last value
        self.unchanged: dict[int, object] = {}  # carry -> its value
        self.stacked = len(body.outputs) - len(init)  # results that are stacked, as the loop was
        self.spent = 0

    def split(self) -> None:
        """Moves out what can be."""
        self._keep_unchanged()
        self.consts = hoist_invariants(self.b, self.body, self.consts, self.length > 0)
        if self.length > 1:
            self._hoist_products()
            self._sink(self._product_of_sum)
            self._sink(self._stacked_sum)
            self._sink(self._zeros)

    def written(self, reverse: bool) -> tuple[list, list]:
        """What is left of the loop, written; the results of the loop as it was."""
        n = len(self.init)
        outs = [(x.shape, x.dtype) for x in self.init]
        outs += [((self.length, *y.shape), y.dtype) for y in self.body.outputs[n:]]
        params = Params(self.body, len(self.consts), n, self.length, reverse)
        operands = [*self.consts, *self.init, *self.xs]
        results = self.b.multi("scan", operands, outs, params, effect=bool(self.body.effects))
        return self._results(results[:n], results[n:])

    def _results(self, carries: list, ys: list) -> tuple[list, list]:
        """The results of the loop as it was, from those of what is left of it."""
        found = self.unchanged | dict(zip(self.carries, carries))
        for j, (start, total) in self.sums.items():
            found[j] = self.b.map("add", start, total(ys))
        return [found[j] for j in sorted(found)], ys[: self.stacked]

    # ---- before the loop

    def _keep_unchanged(self) -> None:
        """Makes carries that iterations leave as they were constants of the loop."""
        for j in reversed(range(len(self.init))):
            first = len(self.consts)
            if self.body.outputs[j] is self.body.inputs[first + j]:
                self.body.inputs.insert(first, self.body.inputs.pop(first + j))
                del self.body.outputs[j]
                self.consts.append(self.init.pop(j))
                self.unchanged[self.carries.pop(j)] = self.consts[-1]

    def _hoist_products(self) -> None:
        outside = Outside(self.b, self.body, self.consts)
        items = {v.number: x for v, x in zip(self._items(), self.xs)}
        for v in self.body.live():
            if v.form in ("map", "transpose") and any(a.number in items for a in v.args):
                if all(a.number in items or a.number in outside.fixed for a in v.args):
                    items[v.number] = None
            elif v.form == "dot" and not v.params.numbers[2]:
                for i in (0, 1):
                    item, other = v.args[i], v.args[1 - i]
                    if item.number in items and other.number in outside.fixed and self._pays([v], other.nbytes):
                        self.xs.append(self._all_products(v, i, self._all(item, items, outside), outside.copy(other)))
                        self.body.inputs.append(_to_input(v))
                        break

    def _items(self) -> list:
        return self.body.inputs[len(self.consts) + len(self.init) :]

    def _pays(self, remembered: list, saved: int) -> bool:
        """Whether remembering values of every iteration costs less than the bytes saved in each."""
        each = sum(v.nbytes for v in remembered)
        if not 0 < saved or each >= saved or self.spent + each * self.length > MOST_BYTES:
            return False
        self.spent += each * self.length
        return True

    def _all(self, item, items: dict, outside: Outside):
        """What an elementwise function of an item, or its transpose, is of all items."""
        ask = [item]
        while ask:
            x = ask[-1]
            missing = [a for a in x.args if a.number in items and items[a.number] is None]
            ask.extend(missing)
            if missing:
                continue
            ask.pop()
            if items[x.number] is None and x.form == "transpose":
                perm = (0, *(d + 1 for d in x.params.perm))
                items[x.number] = self.b.transpose(items[x.args[0].number], perm)
            elif items[x.number] is None:
                args = [items.get(a.number) or self._repeated(outside.copy(a)) for a in x.args]
                items[x.number] = self.b.value("map", (self.length, *x.shape), x.dtype, args, x.params)
        return items[item.number]

    def _repeated(self, x):
        return self.b.broadcast_in_dim(x, (self.length, *x.shape), range(1, x.ndim + 1))

    def _all_products(self, v, i: int, every, other):
        """The product of all items, operand `i`, with the other operand; items lead."""
        lc, rc, _, _ = v.params.numbers
        if i == 0:
            numbers = ((tuple(d + 1 for d in lc), rc), ((), ()))
            return self.b.dot_general(every, other, numbers, v.dtype, None, v.params.by_parts)
        numbers = ((lc, tuple(d + 1 for d in rc)), ((), ()))
        out = self.b.dot_general(other, every, numbers, v.dtype, None, v.params.by_parts)
        at = other.ndim - len(lc)
        return self.b.transpose(out, (at, *[d for d in range(out.ndim) if d != at]))

    # ---- after the loop

    def _sink(self, total_of) -> None:
        """Makes sums of the carries that only add up what `total_of` finds a total of."""
        first, users = len(self.consts), self.body.users()
        for j, carry in reversed(list(enumerate(self.body.inputs[first : first + len(self.init)]))):
            term = self._term(self.body.outputs[j], carry, users)
            total = total_of(term, carry) if term is not None else None
            if total is not None:
                self.sums[self.carries.pop(j)] = self.init.pop(j), total
                del self.body.inputs[first + j], self.body.outputs[j]

    def _term(self, out, carry, users: dict):
        """What is added to a carry that is used for nothing else; the sum where that is rounded with a product."""
        if out.form != "map" or out.params.op not in ("add", "fma") or carry not in out.args:
            return None
        once = users[carry.number] == [out] and carry not in self.body.outputs
        last = not users[out.number] and self.body.outputs.count(out) == 1
        if out.params.op == "fma":
            return out if once and last and carry not in out.args[:2] else None
        term = out.args[1] if out.args[0] is carry else out.args[0]
        return term if once and last and term is not carry else None

    def _product_of_sum(self, term, carry):
        """The total of products; of several that are added up, the sum of their totals."""
        products, saved = self._products(term, carry), carry.nbytes
        factors = dict.fromkeys(x for _, sides, _, _ in products for x in sides)
        if not products or not self._pays([x for x in factors if not self._is_kept(x)], saved):
            return None
        every = {x: self._kept(x) for x in factors}

        def one(ys, core, sides, numbers, path):
            lc, rc, lb, rb = (tuple(d + 1 for d in dims) for dims in numbers[:4])
            operands = [every[x](ys) for x in sides]
            by_parts = core.form == "dot" and core.params.by_parts
            product = self.b.dot_general(*operands, (((0, *lc), (0, *rc)), (lb, rb)), core.dtype, None, by_parts)
            return self._along(path, self.b.transpose(product, numbers[4]))

        def total(ys):
            first, *rest = [one(ys, *each) for each in products]
            return functools.reduce(lambda x, y: self.b.map("add", x, y), rest, first)

        return total

    def _products(self, term, carry) -> list:
        """The products that a term is the sum of: each with its operands, the numbers of a product and where its
        dimensions are among what that makes, and the linear operations on it. None where it is the sum of others, too.
        """
        core, path = _core(term)
        if core in self.body.outputs and carry not in core.args:
            return []
        if core.form == "map" and core.params.op in ("add", "fma"):
            summands = core.args if core.params.op == "add" else core.args[2:]
            found = [self._products(x, carry) for x in summands if x is not carry]
            if core.params.op == "fma":
                found.append(_as_product(core, path=[]))
            fits = all(found) and sum(map(len, found)) <= MOST_TERMS
            return [(v, s, n, [*inner, *path]) for each in found for v, s, n, inner in each] if fits else []
        if core.form == "dot" and not core.params.numbers[2]:
            (a, lc), (b, rc) = map(_before_transposes, core.args, core.params.numbers[:2])
            return [(core, (a, b), (lc, rc, (), (), tuple(range(core.ndim))), path)]
        return _as_product(core, path) if core.form == "map" and core.params.op == "mul" else []

    def _stacked_sum(self, term, _):
        core, path = _core(term)
        if not self._is_kept(core):
            return None
        every = self._kept(core)
        return lambda ys: self._along(path, self.b.reduce("sum", every(ys), (0,)))

    def _zeros(self, term, carry):
        """Zeros are added once: -0 is 0 from then on, and all else is what it was."""
        return (lambda _: self.b.full(carry.shape, np.zeros((), carry.dtype))) if constants.is_zero(term) else None

    def _is_kept(self, x) -> bool:
        return x in self._items() or x in self.body.outputs[len(self.init) :]

    def _kept(self, x):
        """What finds all iterations' values of `x` among the stacked results."""
        if x in self._items():
            every = self.xs[self._items().index(x)]
            return lambda ys: every
        if x not in self.body.outputs[len(self.init) :]:
            self.body.outputs.append(x)
        k = self.body.outputs.index(x, len(self.init)) - len(self.init)
        return lambda ys: ys[k]

    def _along(self, path: list, total):
        """The linear operations that led from the core to the term, on the total."""
        for v in path:
            total = self.b.value(v.form, v.shape, v.dtype, [total], v.params)
        return total


def _before_transposes(x, dims: tuple) -> tuple:
    """What an operand of a product is a transpose of, and its contracted dimensions there."""
    while x.form == "transpose" and x.ndim - len(dims) <= 1:  # no order of other dimensions to keep
        dims, x = tuple(x.params.perm[d] for d in dims), x.args[0]
    return x, dims


def _as_product(v, path: list) -> list:
    """An outer product, or a batch of them, that of the first two operands of `v`, as one of products (see
    `_products`); none where it is none.
    """
    left, right = (_spread_from(x) for x in v.args[:2])
    if KIND[v.dtype] != "f" or v.nbytes < LEAST_OUTER or left is None or right is None:
        return []
    (a, along_a), (b, along_b) = left, right
    batch = [d for d in along_a if d in along_b]
    rows, columns = ([d for d in along if d not in batch] for along in (along_a, along_b))
    made = [*batch, *rows, *columns]
    if not (rows and columns) or sorted(made) != list(range(v.ndim)):
        return []
    shared = tuple(tuple(along.index(d) for d in batch) for along in (along_a, along_b))
    return [(v, (a, b), ((), (), *shared, tuple(map(made.index, range(v.ndim)))), path)]


def _spread_from(x) -> tuple | None:
    """What an array is spread from, along none of whose dimensions it is the same, and where these are."""
    if x.form != "broadcast":
        return None
    a = x.args[0]
    dims = tuple(d for d, n in zip(x.params.dims, a.shape) if n != 1 or x.shape[d] == 1)
    if len(dims) < a.ndim:
        if a.form != "reshape":
            return None
        a = a.args[0]
    return (a, dims) if a.shape == tuple(x.shape[d] for d in dims) else None


def _core(term) -> tuple:
    """What linear operations of one operand make a term from, and these operations in order."""
    path = []
    while _is_linear(term):
        path.append(term)
        term = term.args[0]
    return term, path[::-1]


def _is_linear(v) -> bool:
    if v.form == "reduce":
        return v.params.kind == "sum"
    if v.form == "map" and v.params.op == "convert":
        return KIND[v.dtype] == KIND[v.args[0].dtype] == "f"
    return FORMS[v.form].linear
