"""The tests that checks make of operations: which operands and results, and where they fail.

They are written once, in the operations of a ``Numbers``: NumPy's (below), which tests values at once, or those of the
compiler's graph, whose tests are made in the loop nest that makes the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from catena.core.context import context
from catena.core.dtypes import KIND, is_extended
from catena.core.factors import elementwise, rule_of
from catena.core.failures import MADE, Site
from catena.core.jaxpr import subjaxprs
from catena.core.named import NamedTuple
from catena.core.source import user_source

# Operations whose results hold no NaN or infinity that an operand does not hold: they move, select, compare or name.
MOVING = frozenset(
    """abs add_jaxvals approx_top_k argmax argmin bitcast_convert_type broadcast_in_dim clamp complex concatenate conj
    convert_element_type copy device_put dynamic_slice dynamic_update_slice gather get imag iota layout_constraint max
    min name neg optimization_barrier order_statistics pad pbroadcast pvary random_bits random_wrap random_unwrap real
    reduce_max reduce_min reduce_precision reduce_window_max reduce_window_min reshape reshard rev round scatter
    scatter-max scatter-min select_and_gather_add select_n sharding_constraint sign slice sort split squeeze stack
    stack_add stack_empty stack_read stack_write stop_gradient swap tile top_k transpose unstack floor ceil rng_uniform
    multiply_add""".split()
)
# Elementwise operations of reals that are a number, or infinite, wherever their operands are numbers.
NEVER_NAN = frozenset(
    """exp exp2 expm1 tanh logistic erf erfc atan asinh sinh cosh square cbrt atan2 nextafter bessel_i0e bessel_i1e
    ndtr log_ndtr""".split()
)
# ... and finite where these are finite.
NEVER_INF = frozenset("sin cos tanh logistic erf erfc atan asinh sqrt cbrt atan2 ndtr asin acos".split())
OVERFLOWING = frozenset(
    "add add_any sub mul neg abs integer_pow square pow reduce_sum reduce_prod cumsum cumprod dot_general".split()
)
DIVIDING = frozenset("div rem rsqrt".split())  # by the last operand, or a root of it
NUMBERED = frozenset(
    """scatter scatter-add scatter-sub scatter-mul scatter-min scatter-max scatter-apply gather dynamic_slice
    dynamic_update_slice""".split()
)


class Probe(NamedTuple):
    """A test of an operand or of a result: where it fails, and what it shows there, arrays of one shape."""

    kind: str
    position: int  # of the operand or result
    failed: Any
    shown: tuple
    details: tuple = ()
    axes: tuple | None = None  # of an operand: for each axis of it the axis of the result that it belongs to


class Numbers(Protocol):
    """The operations that tests are written in. Arrays have ``shape`` and ``dtype``."""

    def map(self, op: str, *xs): ...
    def any(self, x, axes: tuple): ...
    def convert(self, x, dtype): ...
    def unsigned(self, x): ...
    def constant(self, value, dtype): ...
    def spread(self, x, shape: tuple): ...
    def along(self, row: np.ndarray, shape: tuple): ...
    def again(self, primitive, operands: list, params: dict): ...


FOLDING = ("reduce", "scatter")  # operations whose jaxpr says how two elements become one


def runs_program(eqn) -> bool:
    """Whether an equation runs a program, whose operations are tested one by one."""
    return not eqn.primitive.name.startswith(FOLDING) and any(True for _ in subjaxprs(eqn.own_params))


def operand_tests(m: Numbers, kinds: frozenset, primitive, params: dict, operands) -> Iterator[Probe]:
    """The tests of the operands of an operation."""
    name = primitive.name
    if "index" in kinds and name in NUMBERED:
        yield from _index_tests(m, name, params, operands)
    if "div" in kinds and name in DIVIDING:
        yield Probe("div", len(operands) - 1, is_zero(m, operands[-1]), ())


def result_tests(m: Numbers, kinds: frozenset, primitive, params: dict, operands, results) -> Iterator[Probe]:
    """The tests of the results of an operation, which runs no program of its own."""
    name = primitive.name
    if "overflow" in kinds and len(results) == 1 and KIND.get(results[0].dtype) == "i":
        yield from _overflow_tests(m, primitive, params, operands, results[0])
    if name in MOVING or not any(kind in MADE for kind in kinds):
        return
    single = is_elementwise(primitive)
    for position, y in enumerate(results):
        if is_extended(y.dtype) or KIND.get(y.dtype) not in ("f", "c") or 0 in y.shape:
            continue
        given = [x for x in operands if not is_extended(x.dtype) and KIND.get(x.dtype) in ("f", "c")]
        for kind in sorted(kinds & {*MADE}):
            if kind != MADE[kind] and name == "communicate":
                continue  # what arrives may be another device's, where it is noted
            never = NEVER_NAN if MADE[kind] == "nan" else NEVER_INF
            if kind == MADE[kind] and KIND[y.dtype] == "f" and (name in never or _is_plain_power(name, params, kind)):
                continue
            failed = holds(m, MADE[kind], y)
            if kind == MADE[kind]:
                for had in _had(m, kind, single, params, given, y.shape):
                    failed = m.map("and", failed, m.map("not", had))
            shown = [y, *given[:2]] if single else [y]
            yield Probe(kind, position, failed, tuple(x for x in shown if KIND[x.dtype] != "c"))


def is_elementwise(primitive) -> bool:
    """Whether an element of the result comes from one element of each operand."""
    return rule_of(primitive) is elementwise


def _is_plain_power(name: str, params: dict, kind: str) -> bool:
    return name == "integer_pow" and kind == "nan" and params["y"] > 0


def holds(m: Numbers, kind: str, x):
    """Where an array holds a NaN, or an infinity."""
    if KIND[x.dtype] == "c":
        parts = [holds(m, kind, m.map(part, x)) for part in ("real", "imag")]
        return m.map("or", *parts)
    return m.map("ne", x, x) if kind == "nan" else m.map("eq", m.map("abs", x), m.constant(np.inf, x.dtype))


def _had(m: Numbers, kind: str, single: bool, params: dict, operands: list, shape: tuple) -> Iterator:
    """For each operand, where a result is of elements some of which hold a NaN, or an infinity, already."""
    axes = params.get("axes")
    for x in operands:
        if 0 in x.shape:
            continue
        held = holds(m, kind, x)
        if single:
            yield m.spread(held, shape)
        elif axes is not None and len(shape) + len(axes) == len(x.shape):
            yield m.any(held, tuple(axes))
        else:
            yield m.spread(m.any(held, tuple(range(len(x.shape)))), shape)


def examples_of(eqn, test: Probe) -> tuple:
    """The axes of a tested array that stand for a vmap, with their names."""
    shape, named = getattr(eqn.source, "examples", None) or (None, ())
    if not eqn.outvars or shape != eqn.outvars[0].aval.shape:
        return ()
    if test.axes is None:
        return named
    return tuple((test.axes.index(d), name) for d, name in named if d in test.axes)


def is_zero(m: Numbers, x):
    """Where an array is zero."""
    if KIND[x.dtype] == "c":
        return m.map("and", *[is_zero(m, m.map(part, x)) for part in ("real", "imag")])
    return m.map("eq", x, m.constant(0, x.dtype))


# ---- indices


def _index_tests(m: Numbers, name: str, params: dict, operands) -> Iterator[Probe]:
    shape = tuple(operands[0].shape)
    if name in ("dynamic_slice", "dynamic_update_slice"):
        first = 1 if name == "dynamic_slice" else 2
        windows = tuple(params["slice_sizes"] if first == 1 else operands[1].shape)
        for axis, start in enumerate(operands[first:]):
            details: tuple = (shape, tuple(range(len(shape))), windows, axis)
            yield Probe("index", first + axis, _outside(m, start, [shape[axis] - windows[axis]]), (start,), details, ())
        return
    if params["mode"].name == "CLIP" or 0 in operands[1].shape:
        return
    n, indices = params["dimension_numbers"], operands[1]
    if name == "gather":
        axes, windows, offsets = n.start_index_map, tuple(params["slice_sizes"]), n.offset_dims
        rank = len(offsets) + len(indices.shape) - 1
        belongs: tuple[int | None, ...] = tuple(d for d in range(rank) if d not in offsets)
    else:
        axes, updates = n.scatter_dims_to_operand_dims, operands[2].shape
        single = {*n.inserted_window_dims, *n.operand_batching_dims}
        sizes = iter([updates[d] for d in n.update_window_dims])
        windows = tuple(1 if d in single else next(sizes) for d in range(len(shape)))
        pairs = dict(zip(n.scatter_indices_batching_dims, n.operand_batching_dims, strict=True))
        belongs = tuple(pairs.get(d) for d in range(len(indices.shape) - 1))
    if axes:
        limits = [shape[a] - windows[a] for a in axes]
        details = (shape, tuple(axes), windows, None)
        yield Probe("index", 1, _outside(m, indices, limits), (indices,), details, (*belongs, None))


def _outside(m: Numbers, indices, limits: list[int]):
    """Where indices, with a component for each limit, are not between 0 and it."""
    if indices.dtype.itemsize < 4:
        indices = m.convert(indices, np.dtype(np.int32))
    numbers = m.unsigned(indices)
    held = np.iinfo(numbers.dtype).max
    last = np.array([min(n, held) for n in limits], numbers.dtype)
    if len(set(limits)) == 1:
        return m.map("gt", numbers, m.constant(last[0], numbers.dtype))
    return m.map("gt", numbers, m.along(last, numbers.shape))


# ---- integers: the operation in double precision is far from what it gives in a dtype that wraps around


def _overflow_tests(m: Numbers, primitive, params: dict, operands, y) -> Iterator[Probe]:
    wide = np.dtype(np.float64)
    shown = (y, *operands[:2]) if is_elementwise(primitive) else (y,)
    if primitive.name == "convert_element_type":
        x = operands[0]
        if KIND.get(x.dtype) in ("i", "u", "f") and not is_extended(x.dtype) and _may_lose(x.dtype, y.dtype):
            gap = m.map("abs", m.map("sub", m.convert(x, wide), m.convert(y, wide)))
            yield Probe("overflow", 0, m.map("ge", gap, m.constant(1.0, wide)), (y, x))
    elif primitive.name in OVERFLOWING and operands and all(KIND.get(x.dtype) == "i" for x in operands):
        true = m.again(primitive, [m.convert(x, wide) for x in operands], _in_doubles(params))
        gap = m.map("abs", m.map("sub", true, m.convert(y, wide)))
        half = m.constant(2.0 ** (np.iinfo(y.dtype).bits - 1), wide)
        yield Probe("overflow", 0, m.map("gt", gap, half), shown)


def _may_lose(source: np.dtype, target: np.dtype) -> bool:
    return KIND[source] == "f" or source.itemsize > target.itemsize or (KIND[source], source.itemsize) == (
        "u", target.itemsize,
    )  # fmt: skip


def _in_doubles(params: dict) -> dict:
    return {k: None if k == "preferred_element_type" else v for k, v in params.items()}


# ---- NumPy


class NumPyNumbers:
    """NumPy's operations."""

    OPS: dict[str, Callable] = {
        "ne": np.not_equal, "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "abs": np.abs, "sub": np.subtract,
        "and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "real": np.real, "imag": np.imag,
    }  # fmt: skip

    def map(self, op: str, *xs):
        return self.OPS[op](*xs)

    def any(self, x, axes: tuple):
        return np.any(x, axis=axes)

    def convert(self, x, dtype):
        return np.asarray(x).astype(dtype)

    def unsigned(self, x):
        x = np.asarray(x)
        return x.view(f"u{x.dtype.itemsize}")

    def constant(self, value, dtype):
        return np.asarray(value, dtype)

    def spread(self, x, shape: tuple):
        return x

    def along(self, row: np.ndarray, shape: tuple):
        return row

    def again(self, primitive, operands: list, params: dict):
        return primitive.rule("evaluate")(*operands, **params)


NUMPY = NumPyNumbers()


def check_operation(primitive, params: dict, operands, results, kinds: frozenset | None = None, eqn=None) -> None:
    """Probe an operation that NumPy has evaluated, for the kinds in force if none are given, as part of a program if
    there is an equation.

    Raises:
      IndexError, FloatingPointError, ZeroDivisionError, OverflowError: a test of the kinds in force fails.
    """
    kinds = frozenset(context.checks.split(",")) if kinds is None else kinds
    operands = [np.asarray(x) for x in operands]
    if any(x.dtype == object for x in operands):
        return
    results = [np.asarray(x) for x in results]
    with np.errstate(all="ignore"):
        for test in operand_tests(NUMPY, kinds, primitive, params, operands):
            _raise_first(test, primitive, operands[test.position].shape, eqn)
        for test in result_tests(NUMPY, kinds, primitive, params, operands, results):
            _raise_first(test, primitive, results[test.position].shape, eqn)


def _raise_first(test: Probe, primitive, shape: tuple, eqn) -> None:
    if not np.any(test.failed):
        return
    failed = np.broadcast_to(test.failed, shape)
    place = int(np.argmax(failed.reshape(-1)))
    shown = [np.broadcast_to(x, shape).reshape(-1)[place] for x in test.shown]
    dtypes = tuple(x.dtype for x in test.shown)
    source = (None if eqn is None else eqn.source) or context.source or user_source()
    examples = () if eqn is None else examples_of(eqn, test)
    site = Site(test.kind, primitive.name, source, shape, dtypes, examples=examples, details=test.details)
    error = site.failure(place, shown)
    error.axes = test.axes  # type: ignore[attr-defined]
    raise error
