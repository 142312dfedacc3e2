"""The skeleton of elementwise primitives: from NumPy's function, admitted dtypes and derivative to all rules.

Operands have the same shape, or the same rank with axes of size 1 that are repeated, or rank 0. Every rule
that is the same for all elementwise operations stands here, once; what differs stands in a line where the
primitive is defined.
"""

import enum

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.factors import elementwise as elementwise_factors
from catena.core.primitive import NoRule, Primitive, define
from catena.core.shapes import broadcast_shapes
from catena.core.structural import broadcast_in_dim_p
from catena.core.zeros import Zero, add_tangents, get_aval
from catena.lax import native
from catena.lax.policy import BY_NUMPY, ELEMENTWISE
from catena.lax.structure import add_axis, broadcast_to

# ------------------------------------------------------------------------------------------------------------
# Admitted dtypes

_FAMILIES = {
    "bool": "b",
    "number": "iufc",
    "signedinteger": "i",
    "integer": "iu",
    "floating": "f",
    "complexfloating": "c",
}
_NAMES = {d: d.name for d in dtypes.ALL}  # NumPy makes a name each time that it is asked for


class Admitted:
    """A set of dtypes and how errors name it."""

    __slots__ = ("names", "dtypes")

    def __init__(self, *names: str):
        self.names = ", ".join(names)
        self.dtypes = frozenset(
            d for d, name in _NAMES.items() for n in names if dtypes.KIND[d] in _FAMILIES.get(n, "") or name == n
        )


FLOAT = Admitted("floating")
INEXACT = Admitted("floating", "complexfloating")
REAL = Admitted("integer", "floating")
NUMBER = Admitted("integer", "floating", "complexfloating")
SIGNED = Admitted("floating", "complexfloating", "signedinteger")
INTEGER = Admitted("integer")
BITS = Admitted("integer", "bool")
ORDERED = Admitted("integer", "floating", "bool")
ANY = Admitted("integer", "floating", "complexfloating", "bool")
ANY_NUMBER = Admitted("number")
COMPLEX = Admitted("complexfloating")
COMPONENT = Admitted("float32", "float64")
CONJUGABLE = Admitted("float32", "complexfloating", "float64")


def check_admitted(name: str, aval, admitted: Admitted, position: int | None = None):
    """Raise TypeError where the primitive ``name`` has no meaning for the dtype of ``aval``."""
    if aval.dtype not in admitted.dtypes:
        at = "" if position is None else f" at position {position}"
        if aval.dtype == dtypes.float0:
            raise TypeError(dtypes.no_arithmetic(name, at))
        raise TypeError(
            f"{name} does not accept dtype {dtypes.dtype_name(aval.dtype)}{at}. "
            f"Accepted dtypes{at} are subtypes of {admitted.names}."
        )


_NUMPY_NAMES = {
    "mul": "multiply", "div": "divide", "sub": "subtract", "max": "maximum", "min": "minimum",
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal",
    "shift_left": "left_shift", "select": "where", "add": "add", "nextafter": "nextafter", "atan2": "arctan2",
    "concatenate": "concatenate",
}  # fmt: skip


# How the accuracy asked of a transcendental function is honoured: ours are accurate to a few units in the
# last place.
BEST_ULPS = 4


class AccuracyMode(enum.Enum):
    """A level of accuracy to ask of a transcendental function; both mean the most accurate one there is."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """A bound on the error of a transcendental function.

    Arguments:
      atol: absolute error.
      rtol: relative error.
      ulps: error in units in the last place; a positive integer, or zero for no bound.
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(f"Tolerance must be non-negative, got {atol=}, {rtol=}, {ulps=}")
        if atol == 0 and rtol == 0 and ulps == 0:
            raise ValueError("At least one of atol, rtol or ulps must be set")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __repr__(self):
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def check_accuracy(accuracy):
    """Raise where an accuracy is asked that is more than ours; there is one implementation, the most accurate."""
    if accuracy is None or isinstance(accuracy, AccuracyMode):
        return
    if not isinstance(accuracy, Tolerance):
        raise TypeError(f"accuracy must be None, an AccuracyMode or a Tolerance, got {accuracy!r}")
    if 0 < accuracy.ulps < BEST_ULPS and not accuracy.atol and not accuracy.rtol:
        raise ValueError(f"accuracy: no implementation is within {accuracy.ulps} ulps everywhere; ask for {BEST_ULPS}")


def check_same_dtypes(name: str, avals):
    """Raise TypeError where operands have different dtypes: ``lax`` never promotes."""
    first = avals[0].dtype
    if all([a.dtype == first for a in avals]):
        return
    got = ", ".join(dtypes.dtype_name(a.dtype) for a in avals)
    numpy_name = _NUMPY_NAMES.get(name)
    tip = (
        f" (Tip: jnp.{numpy_name} is a similar function that does automatic type promotion on inputs)."
        if numpy_name
        else ""
    )
    raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {got}.{tip}")


def broadcast_operand_shapes(name: str, shapes) -> tuple:
    """The shape of the result of an elementwise operation on operands of these shapes."""
    first = shapes[0]
    if all([s == first for s in shapes]):
        return first
    ranks = {len(s) for s in shapes if s}
    if len(ranks) > 1:
        raise TypeError(f"{name}: arrays must have the same number of dimensions, got {ranks}")
    out = []
    for sizes in zip(*[s for s in shapes if s], strict=True):
        found = {n for n in sizes if n != 1} or {1}
        if len(found) > 1:
            got = ", ".join(map(str, shapes))
            raise TypeError(f"{name} got incompatible shapes for broadcasting: {got}.")
        out.append(found.pop())
    return tuple(out)


# ------------------------------------------------------------------------------------------------------------
# Evaluation

# Dtypes in which NumPy does not compute (or not as well), and the wider ones that stand in for them.
WIDER = {d: np.dtype("float32") for d in dtypes.FLOATS if d.kind == "V" or d.itemsize == 1} | {
    d: np.dtype("int8" if dtypes.KIND[d] == "i" else "uint8") for d in (*dtypes.NARROW_SIGNED, *dtypes.NARROW_UNSIGNED)
}
WIDER_WITH_HALF = WIDER | {np.dtype("float16"): np.dtype("float32")}


# ------------------------------------------------------------------------------------------------------------
# The rules that all share


def same_dtype(*avals):
    return avals[0].dtype


def to_bool(*avals):
    return dtypes.BOOL


def abstract_rule(name: str, admitted, result=same_dtype):
    """Types of an elementwise primitive: ``admitted`` dtypes (one for all operands), dtype of the result."""

    def abstract_unary(x, **params):
        check_admitted(name, x, admitted)
        return ShapedArray(x.shape, result(x), x.weak_type)

    def abstract(*avals, **params):
        if len(avals) == 1:
            return abstract_unary(*avals)
        for i, aval in enumerate(avals):
            check_admitted(name, aval, admitted, i)
        check_same_dtypes(name, avals)
        shape = broadcast_operand_shapes(name, [a.shape for a in avals])
        return ShapedArray(shape, result(*avals), all([a.weak_type for a in avals]))

    return abstract


def batch_rule(primitive: Primitive):
    """Batching of an elementwise primitive: bring all batch axes to one place, then apply it as it is."""

    def batch(axis, args, dims, **params):
        args, dim = align_batched(args, dims)
        return primitive.bind(*args, **params), dim

    return batch


def align_batched(args, dims):
    """The operands with all batch axes in one place, such that they broadcast; and that place."""
    ranks = [get_aval(x).ndim - (d is not None) for x, d in zip(args, dims, strict=True)]
    rank = max(ranks)
    dim = next((d for r, d in zip(ranks, dims, strict=True) if d is not None and r == rank), 0)
    return [_align(x, d, r, rank, dim) for x, d, r in zip(args, dims, ranks, strict=True)], dim


def _align(x, d, own_rank: int, rank: int, dim: int):
    if d is None:
        return add_axis(x, dim) if own_rank else x
    if own_rank == rank:
        return move_axis(x, d, dim)
    size = get_aval(x).shape[d]  # a batched scalar: its batch axis at `dim`, size 1 elsewhere
    shape = tuple(size if i == dim else 1 for i in range(rank + 1))
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=(dim,))


def lower_rule(op: str, **fixed):
    """Lowering to the elementwise operation ``op`` of the compiler."""

    def lower(b, *xs, **params):
        return b.map(op, *spread_operands(b, xs), **fixed)

    return lower


def spread_operands(b, xs) -> list:
    """The operands in the builder, broadcast to one shape (scalars are left: ``map`` spreads them)."""
    shape = broadcast_shapes(*[x.shape for x in xs])
    return [x if x.shape in ((), shape) else b.broadcast_in_dim(x, shape, range(len(shape))) for x in xs]


def jvp_rule(primitive: Primitive, tangent_rules):
    """Differentiation from a rule an operand, ``rule(tangent, *operands, out, **params)``; None is zero."""

    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        shape, total = get_aval(out).shape, None
        for rule, t in zip(tangent_rules, tangents, strict=True):
            if rule is not None and type(t) is not Zero:
                part = broadcast_to(rule(t, *primals, out, **params), shape)
                total = part if total is None else add_tangents(total, part)
        return out, Zero.of_primal(out) if total is None else total

    return jvp


NOT_LINEAR = NoRule("it is not linear in its operands")


# ------------------------------------------------------------------------------------------------------------
# The skeletons


def elementwise(primitive, evaluate, admitted, *tangents, op=None, result=same_dtype, **rules) -> Primitive:
    """An elementwise primitive with all its rules.

    Arguments:
      primitive: its name, or the primitive where it was declared before.
      evaluate: NumPy's function for it, which serves the dtypes that ``policy.py`` does not give to others.
      admitted: the dtypes that its operands may have.
      tangents: a rule an operand, ``rule(tangent, *operands, out, **params)``; None where the derivative
        is zero; or a ``NoRule`` in place of all of them.
      op: the compiler's name for it, if it is not ``name``.
      wider: the dtypes that stand in for those in which NumPy does not compute.
      of_complex: what serves complex numbers where there is no compiler, if it is not ``evaluate``.
      result: the dtype of the result, from the operands' types.
      rules: rules that are written out, such as ``transpose`` or ``lower``.
    """
    primitive = define(primitive)
    name = primitive.name
    primitive.abstract = rules.pop("abstract", None) or abstract_rule(name, admitted, result)
    row = ELEMENTWISE.get(name, BY_NUMPY)
    wider, of_complex = rules.pop("wider", WIDER), rules.pop("of_complex", None)
    primitive.evaluate = native.elementwise(primitive, evaluate, row, wider, of_complex)
    if tangents and isinstance(tangents[0], NoRule):
        primitive.jvp = tangents[0]
    else:
        primitive.jvp = rules.pop("jvp", None) or jvp_rule(primitive, tangents)
    primitive.transpose = rules.pop("transpose", NOT_LINEAR)
    primitive.batch = batch_rule(primitive)
    primitive.sharding = elementwise_factors
    primitive.lower = rules.pop("lower", None) or lower_rule(op or name)
    if rules:
        raise TypeError(f"unknown rules for {name}: {sorted(rules)}")
    return primitive
