"""The boundary of the NumPy API: what its functions take, and what becomes of it.

Every function converts its array arguments here, first thing. It takes arrays, traced values, Python and
NumPy scalars, NumPy arrays and objects that convert themselves (``__jax_array__``); it refuses lists, tuples,
None and strings, because a list hides many small conversions. ``_from_foreign`` is the one place where a
value that is none of the language's own is looked at. Objects whose class takes part in the array protocol
are noticed there (see ``protocol``), so that the others pay nothing for it.

``promote`` and its kin then bring operands to one dtype and one rank, by JAX's lattice and weak types. Python
scalars are converted on the way, not traced, so that jaxprs hold literals of the final dtype.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator

import numpy as np

from catena import lax
from catena.core import casts, dtypes
from catena.core.array import Array, as_array, make_array, refuse_masked, scalar_value
from catena.core.aval import abstract_token
from catena.core.context import context
from catena.core.errors import ConcretizationTypeError
from catena.core.evaluate import quiet
from catena.core.scalar_types import ScalarType
from catena.core.shapes import broadcast_shapes, check_axes
from catena.core.trace import Tracer, find_concrete
from catena.core.zeros import get_aval
from catena.lax.policy import converts_soon
from catena.lax.structure import repeated
from catena.numpy.protocol import Overridden, takes_part
from catena.runtime import buffers

SCALARS = frozenset({bool, int, float, complex})
PIECE = 1 << 16  # elements of a large array that are converted at a time

# ----------------------------------------------------------------------------------------------------
# Values from outside


def as_operand(name: str, x, position=0):
    """``x`` as an Array, a traced value or a plain Python scalar; anything else is refused."""
    kind = type(x)
    if kind is Array or kind in SCALARS or getattr(kind, "_is_array", False):
        return x
    return _from_foreign(name, x, position)


def as_array_argument(name: str, x, position=0):
    """``x`` as an Array or a traced value; what is neither array nor scalar is refused."""
    kind = type(x)
    if kind is Array or getattr(kind, "_is_array", False):
        return x
    return scalar_array(x) if kind in SCALARS else _from_foreign(name, x, position)


def array_arguments(name: str, *args) -> list:
    """All of ``args`` as Arrays or traced values."""
    return [as_array_argument(name, x, i) for i, x in enumerate(args)]


def _from_foreign(name: str, x, position):
    """The Array for a value that is not the language's own, unless its class wants to be asked first."""
    if type(x) is np.ndarray or isinstance(x, np.generic):
        return numpy_array(x)
    if takes_part(type(x)):
        raise Overridden(name, x)
    return _converted_foreign(name, x, position)


def as_plain_array(name: str, x, position=0):
    """``as_array_argument`` where no class is asked: objects that take part are converted like others."""
    if not isinstance(x, Array) and takes_part(type(x)):
        return _converted_foreign(name, x, position)
    return as_array_argument(name, x, position)


def _converted_foreign(name: str, x, position):
    """The Array for a value that is not the language's own."""
    if isinstance(x, np.ndarray):
        return numpy_array(x)
    convert = getattr(x, "__jax_array__", None)
    if convert is not None and not isinstance(x, type):
        return as_array_argument(name, _converted(x, convert()), position)
    if dtypes.is_scalar_or_numpy(x):  # an instance of a subclass, such as an IntEnum, or of a registered class
        return as_array(x)
    where = position if isinstance(position, str) else f"at position {position}"
    error = TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} {where}.")
    if isinstance(x, list | tuple):
        error.add_note(
            "Convert it with jnp.asarray, outside of loops: to convert a list costs a step for each element."
        )
    raise error


def _converted(x, result):
    """What ``x.__jax_array__()`` returned, if it is what the protocol asks for."""
    if getattr(type(result), "_is_array", False) or isinstance(
        result, np.ndarray | np.generic | bool | int | float | complex
    ):
        return result
    raise TypeError(f"{type(x).__name__}.__jax_array__() must return an array, got {type(result)}")


def scalar_array(x) -> Array:
    """A Python scalar as a 0-d Array, weak unless it is a bool."""
    return make_array(scalar_value(x), type(x) is not bool)


def numpy_array(x) -> Array:
    """A NumPy array or scalar as an Array of its own memory, of a canonical dtype."""
    refuse_masked(x)
    dtype = x.dtype
    if dtype in dtypes.KIND:
        return make_array(owned_copy(x, dtypes.canonical(dtype)), False)
    if dtype == dtypes.float0:
        return make_array(np.array(x), False)
    if not dtype.isnative and dtype.newbyteorder("=") in dtypes.KIND:
        return numpy_array(np.asarray(x).astype(dtype.newbyteorder("=")))
    raise not_numeric(x, dtype)


def owned_copy(x, dtype) -> np.ndarray:
    """A NumPy value as a new C-contiguous NumPy array of ``dtype``; one of some size where a line of memory begins, a
    large one on huge pages, as results are.
    """
    used = x.size * dtype.itemsize
    if used >= buffers.COPIED:
        return _placed_copy(np.asarray(x), dtype, used)
    if x.dtype == dtype:
        return np.array(x, dtype=dtype, order="C")
    return np.ascontiguousarray(casts.convert(np.asarray(x), dtype)).reshape(np.shape(x))


def _placed_copy(x: np.ndarray, dtype: np.dtype, used: int) -> np.ndarray:
    """Pieces are converted one by one: they stay in caches."""
    copy = buffers.on_a_line(used, x.shape, dtype) if used < buffers.PAGE else buffers.pool.empty(x.shape, dtype)
    if x.dtype == dtype:
        np.copyto(copy, x)
        return copy
    values, flat = x.reshape(-1), copy.reshape(-1)
    for at in range(0, x.size, PIECE):
        casts.convert_into(flat[at : at + PIECE], values[at : at + PIECE])
    return copy


def not_numeric(x, dtype) -> TypeError:
    """The error for a value whose elements are not numbers."""
    return TypeError(
        f"Value {x!r} with dtype {dtype} is not a valid JAX array type. Only arrays of numeric types are "
        "supported by JAX."
    )


def refuse_out(name: str, out):
    """Arrays are immutable, so results are never written into an argument."""
    if out is not None:
        raise NotImplementedError(
            f"The 'out' argument to jnp.{name} is not supported. Arrays do not change: assign what it returns."
        )


def concrete_or_error(kind, x, what: str):
    """``kind(x)``, or an error that says ``what`` must be known while tracing."""
    value = find_concrete(x)
    if value is None and isinstance(x, Tracer):
        raise ConcretizationTypeError(x, what)
    return kind(value)


def static_int(x, what: str) -> int:
    """``x`` as a Python integer, known while tracing."""
    return concrete_or_error(operator.index, x, what)


def static_axis(axis):
    """An axis, several as a tuple, or None; known while tracing. Several come in whatever can be gone through twice."""
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, Iterable) and getattr(axis, "ndim", 1) and not isinstance(axis, str | Iterator):
        return tuple(static_axis(a) for a in axis)
    return static_int(axis, "The axis argument must be known statically.")


def canonical_axis(axis: int, ndim: int) -> int:
    """``axis`` counted from the front."""
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)  # a ValueError and an IndexError
    return axis % ndim


def canonical_axes(axis, ndim: int) -> tuple:
    """An axis, a tuple of axes, or None for all, as sorted axes counted from the front."""
    axis = static_axis(axis)
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple):
        return (canonical_axis(axis, ndim),)
    axes = tuple(sorted(canonical_axis(a, ndim) for a in axis))
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return axes


def user_dtype(dtype, name: str, default=None):
    """A dtype argument in canonical form; ``default`` where the user gave none."""
    if dtype is None:
        return default
    try:
        found = _SPELT.get(dtype)
    except TypeError:  # cannot be hashed
        found = None
    return found or _remembered_dtype(dtype, name)


_SPELT: dict = {}  # dtypes as users write them, that mean the same with and without 64 bits


def _remembered_dtype(dtype, name: str):
    found = dtypes.check_user_dtype_supported(dtype, name)
    if isinstance(dtype, str | type | np.dtype | ScalarType) and found.itemsize <= 4:
        if dtypes.as_dtype(dtype) == found:
            _SPELT[dtype] = found
    return found


# ----------------------------------------------------------------------------------------------------
# Conversion and promotion


def convert(x, dtype, weak: bool = False):
    """``x``, an operand, as an Array or traced value of ``dtype``."""
    if type(x) in SCALARS:
        return make_array(casts.convert(scalar_value(x), dtype), weak)
    if x.dtype == dtype and x.weak_type == weak:
        return x
    if type(x) is Array and context.trace is None and not context.checks and converts_soon(x._value, dtype):
        return make_array(casts.convert(x._value, dtype), weak)
    return lax.convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak)


def convert_as_asked(x, dtype, weak: bool = False):
    """``convert`` to a dtype that the user chose, which a Python integer need not fit: it wraps around."""
    if type(x) in SCALARS:
        return make_array(casts.convert_scalar(x, dtype), weak)
    return convert(x, dtype, weak)


def dtype_of(x) -> tuple:
    """The ``(dtype, weak)`` of an operand."""
    if type(x) in SCALARS:
        return dtypes.python_scalar_dtype(type(x))
    return x.dtype, x.weak_type


def operands(name: str, *args) -> list:
    """``args`` as Arrays, traced values or Python scalars."""
    return [as_operand(name, x, i) for i, x in enumerate(args)]


def promoted_dtype(xs) -> tuple:
    """The ``(dtype, weak)`` that operands promote to together."""
    if len(xs) == 2:
        return dtypes.promote_pair(*dtype_of(xs[0]), *dtype_of(xs[1]))
    return dtypes.promote(*map(dtype_of, xs))


def _as_is(dtype):
    return dtype


def _refuse_extended(name: str, xs):
    """Raise where a token or an array without data is among the operands, or a dtype such as that of keys meets
    another: nothing promotes it.
    """
    if any(get_aval(x) is abstract_token for x in xs):
        raise TypeError(f"{name} takes arrays, but an operand is a token")
    found = [dtype_of(x)[0] for x in xs]
    if dtypes.float0 in found:
        raise TypeError(dtypes.no_arithmetic(name))
    if any(dtypes.is_extended(d) for d in found) and len(set(found)) > 1:
        raise TypeError(f"{name} does not accept dtypes {', '.join(map(dtypes.dtype_name, found))}.")


def _alike(xs: list) -> bool:
    """Whether two operands have one type, so that nothing is to be promoted: the common case, tested first."""
    if len(xs) != 2 or type(xs[0]) in SCALARS or type(xs[1]) in SCALARS:
        return False
    return xs[0].aval is xs[1].aval


def promoter(adjust):
    """A function ``(name, *args) -> operands`` of one dtype, adjusted, and one rank."""

    def promote(name: str, *args) -> list:
        xs = operands(name, *args)
        if _alike(xs) and adjust(xs[0].dtype) == xs[0].dtype:
            return xs
        try:
            dtype, weak = promoted_dtype(xs)
        except ValueError:
            _refuse_extended(name, xs)
            raise
        return same_rank(name, [convert(x, adjust(dtype), weak) for x in xs])

    return promote


promote = promoter(_as_is)
promote_inexact = promoter(dtypes.to_inexact_dtype)
promote_numeric = promoter(dtypes.to_numeric_dtype)


def one_inexact(name: str, x):
    """A single argument as an operand of a float or complex dtype."""
    x = as_operand(name, x)
    dtype, weak = dtype_of(x)
    return convert(x, dtypes.to_inexact_dtype(dtype), weak)


def same_rank(name: str, xs: list) -> list:
    """Operands broadcast to one rank by leading axes of size 1; 0-d ones stay, since every operation takes them."""
    ranks = {x.ndim for x in xs if x.ndim}
    if len(ranks) < 2:
        return xs
    if context.numpy_rank_promotion != "allow":
        _mind_rank_promotion(name, xs)
    lax.broadcast_shapes(*(x.shape for x in xs))  # a ValueError where they do not fit
    rank = max(ranks)
    return [lax.broadcast_to_rank(x, rank) if x.ndim else x for x in xs]


def _mind_rank_promotion(name: str, xs):
    shapes = " ".join(str(x.shape) for x in xs)
    if context.numpy_rank_promotion == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {name} on shapes {shapes} and with the config option "
            "jax_numpy_rank_promotion='raise'."
        )
    warnings.warn(
        f"Following NumPy automatic rank promotion for {name} on shapes {shapes}. Set the jax_numpy_rank_promotion "
        "config option to 'allow' to disable this warning.",
        UserWarning,
        stacklevel=dtypes.levels_to_user(),
    )


def broadcast_together(name: str, xs: list, error: type = TypeError) -> list:
    """Operands of the user's broadcast to one shape; ``error`` is raised where they do not fit: JAX has both kinds."""
    return xs if len({x.shape for x in xs}) == 1 else spread_together(name, same_rank(name, xs), error)


def spread_together(name: str, xs: list, error: type = TypeError) -> list:
    """The same for a mask, or other arguments that are meant to be spread over an array, in every
    mode of rank promotion.
    """
    if len({x.shape for x in xs}) == 1:
        return xs
    try:
        shape = broadcast_shapes(*(x.shape for x in xs))
    except ValueError:
        shapes = ", ".join(str(x.shape) for x in xs)
        raise error(f"{name} got incompatible shapes for broadcasting: {shapes}.") from None
    return [broadcast_to(x, shape) for x in xs]


def broadcast_to(x, shape: tuple):
    """``x`` broadcast to ``shape`` by NumPy's rules."""
    if x.shape == shape:
        return x
    check_axes(shape)
    if type(x) is Array and context.trace is None:
        view = np.broadcast_to if x.ndim else repeated
        return make_array(view(x._value, shape), x._weak)
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def strong(x):
    """``x``, no longer weak."""
    return convert(x, x.dtype) if x.weak_type else x


def strong_with_slopes(x):
    """``x``, no longer weak, and nor are derivatives by it: a product with a strong 1."""
    return lax.mul(x, make_array(np.ones((), x.dtype), weak_type=False)) if x.weak_type else x


def like(x, value):
    """A scalar constant of the dtype of ``x``, weak beside a weak number; beside a weak array with axes it is strong,
    and makes results so, as in JAX.
    """
    return make_array(casts.convert(np.asarray(value), x.dtype), x.weak_type and not x.ndim)


def direct(x) -> bool:
    """Whether ``x`` is an Array that NumPy may compute on right now."""
    return type(x) is Array and context.trace is None and not context.debug_checks


def concrete_values(fast, *xs):
    """The NumPy values of ``xs`` where all are arrays of one dtype in ``fast``, none is weak, and NumPy may compute on
    them right now; else None. Of NumPy's arrays, which may change, they are copies.
    """
    if context.trace is not None or context.debug_checks:
        return None
    values, dtype = [], None
    for x in xs:
        if type(x) is Array:
            if x._weak:
                return None
            value = x._value
        elif type(x) is np.ndarray and x.dtype in fast:
            value = np.array(x, dtypes.canonicalize_dtype(x.dtype))
        else:
            return None
        if value.dtype is not dtype:
            if dtype is not None or value.dtype not in fast:
                return None
            dtype = value.dtype
        values.append(value)
    return values


def run(fun, *args, **kwargs):
    """A call of NumPy without warnings about floating-point results."""
    return quiet.run(fun, *args, **kwargs)
