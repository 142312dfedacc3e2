"""The `Builder` by which lower rules write the compiler's graph: see `region` for what that is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from catena.compiler.graph import (
    constants,
    convolution,
    fission,
    indexing,
    layouts,
    library,
    multiply_adds,
    ordering,
    parts,
    pooling,
    products,
    reshapes,
    running,
    transposes,
    widened,
    windows,
)
from catena.compiler.graph.checks import Checks
from catena.compiler.graph.forms import (
    FORMS,
    NOTHING,
    OPS,
    REDUCTIONS,
    Branch,
    Broadcast,
    Concatenate,
    Constant,
    Cumulative,
    Host,
    Input,
    Iota,
    Map,
    NewStack,
    Output,
    Pad,
    Reduce,
    ReduceGeneral,
    Reverse,
    Runs,
    Slice,
    Transpose,
    While,
    Window,
)
from catena.compiler.graph.keys import Keys, is_plain
from catena.compiler.graph.later_arrays import LaterArray
from catena.compiler.graph.region import Region, Value, too_large
from catena.compiler.graph.symbols import Scalar, array_of, whole, wholes
from catena.compiler.graph.windows import Sizes
from catena.core.dtypes import KIND, float0, is_extended
from catena.core.errors import ADDRESSABLE, CompileError
from catena.core.jaxpr import Literal
from catena.core.stack import is_stack
from catena.runtime import stacks


class Builder:
    """Writes a region, in a `loop` of this form or outside. Every method returns `Value`s; shapes are static."""

    def __init__(
        self,
        checks: Checks | None = None,
        loop: str = "",
        multiplied: frozenset[str] = frozenset(),
        trace: Callable | None = None,
    ):
        self.region, self.loop = Region([]), loop
        self.trace = trace  # what traces for shapes that record: see `traced`
        self.multiplied = multiplied  # the narrow numbers that the processor multiplies: `Machine.multiplied`
        self.checks = checks or Checks(frozenset(), self.region.sites)  # what the equations are tested for
        self.expected: list[tuple] = []  # shape and dtype of each result of the equation that is being lowered
        self._keys, self._known = Keys(), dict[Any, Value]()
        self._source: Any = None  # of the equation that is being lowered

    # ---- making values -------------------------------------------------------------------------------------

    def value(self, form: str, shape, dtype, args=(), params: Any = NOTHING, key: Any = None) -> Value:
        """A pure value; the same `form`, arguments and parameters give the same object."""
        shape, args = wholes(shape), tuple(args)
        identity = self._keys.of((form, shape, dtype, tuple([a.number for a in args]), params if key is None else key))
        known = self._known.get(identity)
        if known is None:
            known = self._known[identity] = self._append(form, shape, np.dtype(dtype), args, params)
        return known

    def _append(self, form, shape, dtype, args, params) -> Value:
        values = self.region.values
        new = Value(form, shape, dtype, args, params, len(values), self._source)
        if shape and new.nbytes > ADDRESSABLE:
            raise too_large(new)
        values.append(new)
        return new

    def multi(self, form: str, args, outs, params: Any = NOTHING, effect: bool = False, key: Any = None) -> list[Value]:
        """The results of a node that has several; `outs` lists their (shape, dtype). A pure one is made once, too."""
        outs = [(wholes(shape), np.dtype(dtype)) for shape, dtype in outs]
        of, key = (form, (), np.dtype(np.int8), tuple(args), params), (tuple(outs), params) if key is None else key
        node = self.value(*of, key) if FORMS[form].pure else self._append(*of)
        if effect:
            self.region.effects.append(node)
        if not node.results:
            node.results = [self._append("output", s, d, (node,), Output(i)) for i, (s, d) in enumerate(outs)]
        return node.results

    def input(self, shape, dtype) -> Value:
        new = self._append("input", tuple(shape), np.dtype(dtype), (), Input(len(self.region.inputs)))
        self.region.inputs.append(new)
        return new

    # ---- elementwise ---------------------------------------------------------------------------------------

    def map(self, op: str, *xs: Value, y: Any = None) -> Value:
        """Elementwise `op`, with what else it depends on (see `Map`); 0-d operands broadcast."""
        if op in ("real", "conj") and xs[0].dtype.kind != "c":
            return xs[0]
        if op == "imag" and xs[0].dtype.kind != "c":
            return self.full(xs[0].shape, np.zeros((), xs[0].dtype))
        shape = ()
        for x in xs:
            if x.shape and x.shape != shape:
                if shape:
                    raise CompileError(f"map {op}: operands of shapes {[y.shape for y in xs]} do not agree")
                shape = x.shape
        xs = tuple([x if x.shape == shape else self._spread(x, shape) for x in xs])
        plain = op if y is None else "square" if op == "integer_pow" and y == 2 else None
        if plain is not None and (known := constants.known(self, plain, xs, shape)) is not None:
            return known
        if (found := layouts.before(self, lambda *xs: self.map(op, *xs, y=y), *xs)) is not None:
            return found
        return self.value("map", shape, _map_dtype(op, xs), xs, Map(op, y))

    def _spread(self, x: Value, shape: tuple) -> Value:
        return x if x.shape == shape else self.broadcast_in_dim(x, shape, ())

    def convert(self, x: Value, dtype) -> Value:
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if x.form == "constant" and x.shape == ():
            return self.constant(convert_scalar(x.params.array, dtype))
        if x.form == "broadcast" and not x.args[0].ndim:
            return self.full(x.shape, self.convert(x.args[0], dtype))
        if (chosen := constants.of_truth(x)) is not None:
            truth, *numbers = chosen
            both = (self.full(x.shape, convert_scalar(n, dtype)) for n in numbers)
            return self.convert(truth, dtype) if x.params.op == "convert" else self.map("select", truth, *both)
        found = widened.back(self, x, dtype) or layouts.before(self, lambda x: self.convert(x, dtype), x)
        return found or running.of_halves(self, x, dtype) or self.value("map", x.shape, dtype, [x], Map("convert"))

    def bitcast(self, x: Value, dtype) -> Value:
        """The bits of `x` as `dtype`; a width change adds or removes a last dimension, as XLA does."""
        dtype = np.dtype(dtype)
        old, new = x.dtype.itemsize, dtype.itemsize
        if x.dtype == dtype:
            return x
        if old == new and "c" not in (x.dtype.kind, dtype.kind):
            if x.form == "map" and x.params.op == "bitcast":  # a bool that lay between has but two values
                return self.bitcast(x.args[0], dtype)
            if (found := layouts.before(self, lambda x: self.bitcast(x, dtype), x)) is not None:
                return found
            return self.value("map", x.shape, dtype, [x], Map("bitcast"))
        shape = x.shape if old == new else x.shape + (old // new,) if old > new else x.shape[:-1]
        return self.value("alias", shape, dtype, [x])

    def reduce_precision(self, x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
        return self.map("reduce_precision", x, y=(int(exponent_bits), int(mantissa_bits)))

    def constant(self, array, dtype=None) -> Value:
        array = array if type(array) is LaterArray else array_of(array, dtype)
        key = (array.bits,) if type(array) is Scalar else (array.tobytes(),) if array.size <= 16 else (id(array),)
        return self.value("constant", array.shape, array.dtype, (), Constant(array), key)

    def full(self, shape, scalar) -> Value:
        scalar = scalar if isinstance(scalar, Value) else self.constant(scalar)
        return self._spread(scalar, tuple(shape))

    def iota(self, dtype, shape, dimension: int) -> Value:
        return self.value("iota", shape, dtype, (), Iota(int(dimension)))

    def barrier(self, xs: Sequence[Value]) -> list[Value]:
        """The same values under new numbers: what is computed from them is not merged with what was computed before."""
        return [self._append("reshape", x.shape, x.dtype, (x,), NOTHING) for x in xs]

    # ---- views ---------------------------------------------------------------------------------------------

    def broadcast_in_dim(self, x: Value, shape, broadcast_dimensions) -> Value:
        shape, dims = tuple(shape), tuple(broadcast_dimensions)
        if shape == x.shape and dims == tuple(range(len(shape))):
            return x
        if x.form == "broadcast":
            inner = x.params.dims
            return self.broadcast_in_dim(x.args[0], shape, [dims[d] for d in inner])
        return self.value("broadcast", shape, x.dtype, [x], Broadcast(dims))

    def transpose(self, x: Value, permutation) -> Value:
        perm = tuple(int(p) for p in permutation)
        if x.form == "transpose":
            x, perm = x.args[0], transposes.composed(x.params.perm, perm)
        if transposes.moves_nothing(x.shape, perm):
            return self.reshape(x, [x.shape[p] for p in perm])
        return self.value("transpose", [x.shape[p] for p in perm], x.dtype, [x], Transpose(perm))

    def reshape(self, x: Value, new_shape) -> Value:
        new_shape = wholes(new_shape)
        while x.form == "reshape" or x.form == "broadcast" and _adds_ones(x):
            x = x.args[0]
        return x if new_shape == x.shape else self.value("reshape", new_shape, x.dtype, [x])

    def slice(self, x: Value, start, limit, strides=None) -> Value:
        strides = tuple(strides) if strides else (1,) * x.ndim
        shape = [max(0, -(-(hi - lo) // st)) for lo, hi, st in zip(start, limit, strides)]
        if tuple(shape) == x.shape:
            return x
        if (found := parts.sliced(self, x, tuple(shape), tuple(start), tuple(limit), strides)) is not None:
            return found
        return self.value("slice", shape, x.dtype, [x], Slice(tuple(start), strides))

    def reverse(self, x: Value, dimensions) -> Value:
        dims = tuple(sorted(int(d) for d in dimensions if x.shape[d] > 1))
        return self.value("reverse", x.shape, x.dtype, [x], Reverse(dims)) if dims else x

    def pad(self, x: Value, padding_value: Value, padding_config) -> Value:
        config = tuple([(whole(lo), whole(hi), whole(mid)) for lo, hi, mid in padding_config])
        config = tuple([(lo, hi, mid if n > 1 else 0) for (lo, hi, mid), n in zip(config, x.shape)])
        shape = [max(0, lo + hi + n + max(n - 1, 0) * mid) for (lo, hi, mid), n in zip(config, x.shape)]
        if (found := parts.padded(self, x, padding_value, config, shape)) is not None:
            return found
        return self.value("pad", shape, x.dtype, [x, padding_value], Pad(config))

    def concatenate(self, xs: Sequence[Value], dimension: int) -> Value:
        xs = [x for x in xs if x.shape[dimension]] or list(xs)[:1]
        if len(xs) == 1:
            return xs[0]
        shape = list(xs[0].shape)
        shape[dimension] = sum(x.shape[dimension] for x in xs)
        return self.value("concatenate", shape, xs[0].dtype, xs, Concatenate(int(dimension)))

    def window(self, x: Value, pad_value: Value, dims, strides, padding, base_dilation, window_dilation) -> Value:
        """Every window of `x`: shape = positions + window dimensions; outside of `x` reads `pad_value`."""
        shape = windows.positions(x.shape, dims, strides, padding, base_dilation, window_dilation)
        return self.value(
            "window",
            shape + tuple(dims),
            x.dtype,
            [x, pad_value],
            Window(tuple(strides), tuple(tuple(p) for p in padding), tuple(base_dilation), tuple(window_dilation)),
        )

    # ---- reductions ----------------------------------------------------------------------------------------

    def reduce(self, kind: str, x: Value, axes) -> Value:
        if kind not in REDUCTIONS:
            raise CompileError(f"reduce: kind must be one of {sorted(REDUCTIONS)}, got {kind!r}")
        axes = tuple(sorted(int(a) for a in axes))
        if not axes:
            return x
        if (number := constants.folded(kind, x, axes)) is not None:
            return self.full(_without(x.shape, axes), number)
        if all(x.shape[a] == 1 for a in axes) and KIND[x.dtype] != "c":
            y = self.reshape(x, _without(x.shape, axes))
            return self.map("add", y, self.constant(np.zeros((), x.dtype))) if kind == "sum" else y
        if found := reshapes.reduced(self, kind, x, axes) or kind == "sum" and products.summed(self, x, axes):
            return found
        if x.form == "transpose" and not (kind in ("max", "min") and transposes.turnable(x)):
            return transposes.reduced(self, kind, x, axes)
        return self.value("reduce", _without(x.shape, axes), x.dtype, [x], Reduce(kind, axes))

    def argreduce(self, kind: str, x: Value, axis: int, index_dtype) -> Value:
        if x.shape[axis] == 1:
            return self.full(_without(x.shape, (axis,)), np.zeros((), index_dtype))
        return self.value("argreduce", _without(x.shape, (axis,)), index_dtype, [x], Reduce(kind, (int(axis),)))

    def reduce_general(self, xs, inits, axes, body_closed_jaxpr) -> list[Value]:
        axes = tuple(sorted(int(a) for a in axes))
        outs = [(_without(x.shape, axes), x.dtype) for x in xs]
        body = nested(self, body_closed_jaxpr)
        return self.multi("reduce_general", [*xs, *inits], outs, ReduceGeneral(axes, body))

    def cumulative(self, kind: str, x: Value, axis: int, reverse: bool = False) -> Value:
        if (found := running.of_equal(self, kind, x, axis, reverse)) is not None:
            return found
        return self.value("cumulative", x.shape, x.dtype, [x], Cumulative(kind, int(axis), bool(reverse)))

    def reduce_window(
        self, kind, x, init_value, window_dimensions, window_strides, padding, base_dilation, window_dilation
    ) -> Value:
        sizes = window_dimensions, window_strides, padding, base_dilation, window_dilation
        return windows.reduce(self, kind, x, init_value, *sizes)

    def reduce_window_general(
        self,
        xs,
        inits,
        body_closed_jaxpr,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    ) -> list[Value]:
        seen = [
            self.window(x, i, window_dimensions, window_strides, padding, base_dilation, window_dilation)
            for x, i in zip(xs, inits)
        ]
        return self.reduce_general(seen, inits, range(xs[0].ndim, 2 * xs[0].ndim), body_closed_jaxpr)

    select_and_gather_add = pooling.select_and_gather_add
    select_and_scatter_add = pooling.select_and_scatter_add

    # ---- indexing ------------------------------------------------------------------------------------------

    def gather(self, operand, indices, dimension_numbers, slice_sizes, mode, fill_value=None) -> Value:
        return indexing.gather(self, operand, indices, dimension_numbers, slice_sizes, mode, fill_value)

    def scatter(self, kind, operand, indices, updates, dimension_numbers, mode, update_jaxpr=None) -> Value:
        body = nested(self, update_jaxpr) if kind == "general" else None
        return indexing.scatter(self, kind, operand, indices, updates, dimension_numbers, mode, body)

    def runs(self, x: Value, ends: Value, in_order: bool = False) -> Value:
        """Rows, of which number r is the sum of those of `x` from ends[r] to ends[r + 1]; `in_order`: one by one."""
        return self.value("runs", (ends.shape[0] - 1, *x.shape[1:]), x.dtype, [x, ends], Runs(in_order))

    def dynamic_slice(self, x: Value, start_scalars: Sequence[Value], sizes) -> Value:
        if x.form == "broadcast" and not x.args[0].ndim and not self.checks.kinds:
            return self.full(sizes, x.args[0])
        return self.value("dynamic_slice", sizes, x.dtype, [x, *_wide(self, start_scalars)])

    def dynamic_update_slice(self, x: Value, update: Value, start_scalars: Sequence[Value]) -> Value:
        if update.shape == x.shape:
            return update
        return self.value("dynamic_update_slice", x.shape, x.dtype, [x, update, *_wide(self, start_scalars)])

    # ---- products, sorting, libraries ----------------------------------------------------------------------

    def dot_general(self, lhs: Value, rhs: Value, numbers, out_dtype, wide=None, by_parts: bool = False) -> Value:
        return products.dot_general(self, lhs, rhs, numbers, np.dtype(out_dtype), wide and np.dtype(wide), by_parts)

    def conv(self, lhs: Value, rhs: Value, specs, sizes, groups) -> Value:
        """See `convolution.conv`: strides, padding and dilations of both are `sizes`, how many groups of channels and
        of a batch `groups`.
        """
        return convolution.conv(self, lhs, rhs, specs, Sizes(*map(tuple, sizes)), convolution.Groups(*groups))

    def sort(self, xs: Sequence[Value], dimension: int, num_keys: int = 1, is_stable: bool = True) -> list[Value]:
        return ordering.sort(self, xs, int(dimension), int(num_keys))

    def ranked(self, x: Value, ranks: Value) -> Value:
        return ordering.ranked(self, x, ranks)

    def top_k(self, x: Value, k: int, axis: int = -1, of: Value | None = None) -> list[Value]:
        return ordering.top_k(self, x, k, int(axis) % x.ndim, x if of is None else of)

    def library(self, name: str, inputs: Sequence[Value], out_shapes_dtypes, **attrs) -> list[Value]:
        return library.library(self, name, inputs, out_shapes_dtypes, **attrs)

    def host_call(self, callback: Callable, operands: Sequence[Value], out_avals, ordered: bool = False) -> list[Value]:
        outs = [(a.shape, a.dtype) for a in out_avals]
        return self.multi("host", operands, outs, Host(callback, ordered), effect=True)

    # ---- stacks: growing lists, known by their addresses (see `stacks.py`) ---------------------------------

    def stack_new(self, shape, dtype) -> Value:
        """A new empty stack of items of one shape and dtype."""
        item_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        return self.multi("stack_new", [], [((), np.uint64)], NewStack(item_bytes))[0]

    def stack_length(self, stack: Value) -> Value:
        return self.multi("stack_length", [stack], [((), np.int32)])[0]

    def stack_write(self, stack: Value, i: Value, item: Value) -> Value:
        """The same stack, with item `i` replaced or added in place."""
        return self.multi("stack_write", [stack, self.convert(i, np.int64), item], [((), np.uint64)])[0]

    def stack_read(self, stack: Value, i: Value, shape, dtype) -> Value:
        """Item `i`, or zeros beyond the end."""
        return self.multi("stack_read", [stack, self.convert(i, np.int64)], [(shape, dtype)])[0]

    # ---- calls and control flow ----------------------------------------------------------------------------

    def call(self, closed_jaxpr, operands: Sequence[Value], checks: str = "") -> list[Value]:
        """The results of `closed_jaxpr`, written into this region (inlined), and tested for some kinds of failures."""
        jaxpr = closed_jaxpr.jaxpr
        env: dict[Any, Value] = dict(zip(jaxpr.constvars, [self.constant(storage(c)) for c in closed_jaxpr.consts]))
        env.update(zip(jaxpr.invars, operands))
        before, outside = self._source, self.checks
        self.checks = outside.more(checks)
        products = multiply_adds.find(jaxpr) if self.loop else {}  # that are rounded together with sums
        for eqn in jaxpr.eqns:
            self._source = eqn.source or before
            self._equation(eqn, env, products)
        self._source, self.checks = before, outside
        return [self._literal(v) if type(v) is Literal else env[v] for v in jaxpr.outvars]

    def traced(self, make: Callable, *given: tuple):
        """The jaxpr that `make` gives for shapes, as tuples of numbers; of those that record, one whose numbers do."""
        return make(*given) if self.trace is None or is_plain(given) else self.trace(make, given)

    def _literal(self, atom: Literal) -> Value:
        held, aval = getattr(atom.val, "_value", None), atom.aval
        if isinstance(held, np.ndarray) and held.dtype is aval.dtype and not aval.extended and held.dtype != float0:
            return self.constant(held)
        return self.constant(np.asarray(storage(atom.val), physical(aval)[1]))

    def _equation(self, eqn, env, products: dict) -> None:
        rule = multiply_adds.rule(self, eqn, env, products) or eqn.primitive.lower or eqn.primitive.rule("lower")
        operands = [self._literal(v) if type(v) is Literal else env[v] for v in eqn.invars]
        by_parts, expected = in_parts(eqn), [physical(v.aval) for v in eqn.outvars]
        outside, self.expected = self.expected, expected
        results = self.call(by_parts, operands) if by_parts else self.checks.around(self, eqn, rule, operands)
        self.expected = outside
        for var, out, (shape, dtype) in zip(eqn.outvars, results, expected, strict=True):
            aval = var.aval
            if (out.shape, out.dtype) not in ((shape, dtype), (aval.shape, aval.dtype)):
                raise CompileError(f"lower rule of {eqn.primitive.name!r} gave {out!r} where {var.aval} was expected")
            env[var] = out

    def while_loop(self, cond_closed, cond_consts, body_closed, body_consts, init) -> list[Value]:
        checks = self.checks.inside(self._source)
        cond = nested(self, cond_closed, checks, "while", cond_consts)
        body = nested(self, body_closed, checks, "while", body_consts)
        cond_consts = fission.hoist_invariants(self, cond, list(cond_consts), certain=True)
        body_consts = fission.hoist_invariants(self, body, list(body_consts))
        outs = [(x.shape, x.dtype) for x in init]
        return self.multi(
            "while",
            [*cond_consts, *body_consts, *init],
            outs,
            While(cond, body, len(cond_consts), len(body_consts)),
            effect=bool(cond.effects or body.effects),
        )

    def branch(self, index: Value, branches_closed, operands) -> list[Value]:
        regions = tuple(nested(self, c, self.checks, self.loop) for c in branches_closed)
        outs = [(x.shape, x.dtype) for x in regions[0].outputs]
        return self.multi("branch", [index, *operands], outs, Branch(regions), effect=any(r.effects for r in regions))

    def scan(
        self, body_closed, consts, init, xs, length: int, reverse: bool = False, each: int = 1
    ) -> tuple[list, list]:
        """A loop whose iterations do `each` of the user's; a single one, which nothing tests, stands where it is."""
        if length == 1 and not self.checks.kinds:
            return fission.once(self, body_closed, consts, init, xs)
        same = fission.equal_items(self, xs)
        given = [*consts, *[None] * len(init), *map(same.get, range(len(xs)))]
        body = nested(self, body_closed, self.checks.inside(self._source, each), "scan", given)
        consts, xs = fission.without_equal_items(body, list(consts), len(init), list(xs), same)
        loop = fission.Scan(self, body, consts, init, xs, length)
        loop.split()
        return loop.written(bool(reverse))


def storage(x) -> np.ndarray:
    """A constant as programs hold it: stacks by their addresses, other extended dtypes by their storage."""
    if type(x) is LaterArray:
        return cast(np.ndarray, x)  # as which it does
    aval = getattr(x, "aval", None)
    if aval is not None and aval.dtype == float0:
        return np.zeros(*physical(aval))
    if aval is None or not aval.extended:
        return np.asarray(x)
    if is_stack(aval):
        return stacks.addresses(x._value, aval.dtype.item)
    shape, dtype = physical(aval)
    return x._value if x._value.dtype == dtype else np.ascontiguousarray(x._value).view(dtype).reshape(shape)


def in_parts(eqn):
    """What an equation does to operands whose elements are seen as several numbers each, as a closed jaxpr."""
    for v in eqn.invars:
        dtype = v.aval.dtype
        if is_extended(dtype):
            return dtype.by_parts(eqn)
    return None


def physical(aval) -> tuple[tuple, np.dtype]:
    """The shape and dtype by which programs hold values of this type; those without data are held by ``False``."""
    if aval.dtype == float0:
        return aval.shape, np.dtype(bool)
    return aval.dtype.compiled(aval.shape) if is_extended(aval.dtype) else (aval.shape, aval.dtype)


def nested(
    of: Builder, closed_jaxpr, checks: Checks | None = None, loop: str = "", given: Sequence[Value | None] = ()
) -> Region:
    """`closed_jaxpr` as a region of its own, in a loop of this form, within what `of` writes. Of its inputs, the first
    are `given`, where they are not None: those of them that are a few known numbers, such as places, or one that is
    spread, are constants in the region.
    """
    b = Builder(checks, loop, of.multiplied, of.trace)
    inputs = [b.input(*physical(v.aval)) for v in closed_jaxpr.jaxpr.invars]
    known = [own if x is None else fission.known(b, x) or own for x, own in zip(given, inputs)]
    b.region.outputs = b.call(closed_jaxpr, [*known, *inputs[len(known) :]])
    return b.region


def convert_scalar(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A 0-d constant in another dtype, by XLA's rules (saturating float to integer, NaN to 0, complex
    to its real part).
    """
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = array.real
    if dtype == np.bool_:
        return np.asarray(array != 0)
    if type(array) is Scalar and dtype.kind in "iu" and array.dtype.kind not in "iub":
        array = array.plain()
    if dtype.kind in "iu" and array.dtype.kind not in "iub":
        wide = float(array)
        info = np.iinfo(dtype)
        if math.isnan(wide):
            return np.zeros((), dtype)
        return np.asarray(info.max if wide >= info.max else info.min if wide <= info.min else int(wide)).astype(dtype)
    with np.errstate(all="ignore"):
        return array_of(array.astype(dtype))


def _map_dtype(op: str, xs: Sequence[Value]) -> np.dtype:
    facts = OPS.get(op)
    if facts is None:
        raise CompileError(f"map: no elementwise operation is called {op!r}")
    if facts.comparison:
        return np.dtype(np.bool_)
    if op in ("select", "clamp"):
        return xs[1].dtype
    if op == "complex":
        return np.dtype(np.complex64 if xs[0].dtype == np.float32 else np.complex128)
    if xs[0].dtype.kind == "c" and op in ("abs", "real", "imag"):
        return np.dtype(np.float32 if xs[0].dtype == np.complex64 else np.float64)
    return xs[0].dtype


def _adds_ones(x: Value) -> bool:
    """Whether a broadcast does nothing but add dimensions of one element."""
    return x.size == x.args[0].size and list(x.params.dims) == sorted(x.params.dims)


def _wide(b: Builder, starts: Sequence[Value]) -> list[Value]:
    return [b.convert(s, np.int64) for s in starts]


def _without(shape: tuple, axes) -> tuple:
    return tuple(n for d, n in enumerate(shape) if d not in axes)
