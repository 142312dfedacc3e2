"""Symbolic zeros and undefined primals: the markers that differentiation rules read."""

from collections.abc import Callable

import numpy as np

from catena.core import dtypes
from catena.core.array import as_array, as_base, make_array, typed_array
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.errors import how_to_register
from catena.core.evaluate import varying_axes
from catena.core.primitive import in_order, made_varying, pcast_p
from catena.core.stack import is_stack
from catena.core.structural import (
    add_any_p,
    broadcast_in_dim_p,
    convert_element_type_p,
    reshard_p,
    stack_add_p,
    stack_empty_p,
)


class Zero:
    """A tangent or cotangent known to be zero, of the type ``aval``, without an array of zeros."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    @classmethod
    def of_primal(cls, x) -> "Zero":
        """The zero tangent of the value ``x``."""
        return cls(get_aval(x).to_tangent_aval())

    def __repr__(self):
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """In a transpose rule: an argument in which the primitive is linear, of which only the type is known."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"UndefinedPrimal({self.aval})"

    def _refuse_as_value(self):
        raise TypeError(
            "what is transposed must be linear, but an operation needs the value of its operand "
            f"{self.aval.str_short()}, in which it should be linear: a product of two such values is not linear in them"
        )


def is_undefined_primal(x) -> bool:
    return type(x) is UndefinedPrimal


def get_aval(x):
    """The type of any value of the language. Asking forgiveness is 5x faster than asking what ``x`` is."""
    if type(x) in high_types:  # first: its class may answer to any name, and do so by asking for its type
        return high_types[type(x)](x)
    try:
        return x.aval
    except AttributeError:
        return aval_of_python_value(x)


def aval_of_python_value(x):
    """The type that ``x``, a Python or NumPy value, has as an array."""
    from_scalar = dtypes.python_scalar_dtypes.get(type(x))
    if from_scalar is not None:
        return ShapedArray((), dtypes.canonicalize_dtype(from_scalar), type(x) is not bool)
    if isinstance(x, np.ndarray):
        x = as_base(x)
        return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))
    if isinstance(x, np.generic):
        return ShapedArray((), dtypes.canonicalize_dtype(x.dtype))
    if isinstance(x, (bool, int, float, complex)):
        return as_array(x).aval
    registered = dtypes.pytype_aval_mappings.get(type(x))
    if registered is None:
        raise TypeError(f"Value {x!r} of type {type(x)} is not a valid JAX type.{how_to_register(x)}")
    return as_array(x).aval if registered is aval_of_python_value else registered(x)


high_types: dict[type, Callable] = {}  # classes of values that are no arrays, and what gives their types
_NUMPY_SCALARS = {dtype.type for dtype in dtypes.ALL if isinstance(dtype, np.dtype)}
for _kind in {bool, int, float, complex, np.ndarray, *_NUMPY_SCALARS}:
    dtypes.pytype_aval_mappings[_kind] = aval_of_python_value
    dtypes.canonicalize_dtype_handlers[_kind] = np.asarray


def instantiate(tangent):
    """A tangent as a value: a symbolic zero becomes an array of zeros."""
    return zeros(tangent.aval) if type(tangent) is Zero else tangent


def zeros(aval):
    """An array of zeros of the type ``aval``."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    if is_stack(aval):
        x = stack_empty_p.bind(item=aval.dtype.item)
    elif aval.extended:
        x = typed_array(np.zeros(*aval.dtype.physical(())), aval.update(shape=()))
    else:
        x = make_array(np.zeros((), aval.dtype), aval.weak_type)
    if aval.shape:
        x = broadcast_in_dim_p.bind(x, shape=aval.shape, broadcast_dimensions=())
    return as_typed(as_varying(x, aval), aval)


def as_varying(x, aval):
    """``x``, zeros or the same on all devices, varying over the axes over which values of the type ``aval`` do, and a
    term of a sum, or reduced, where they are.
    """
    missing = varying_axes(aval) - varying_axes(get_aval(x)) if context.typed_axes else None
    x = made_varying(x, missing) if missing else x
    for word in ("unreduced", "reduced") if context.has_terms and context.typed_axes else ():
        names = getattr(aval.manual_axis_type, word) - getattr(get_aval(x).manual_axis_type, word)
        if names:
            x = pcast_p.bind(made_varying(x, names), axes=in_order(names), of="varying", to=word)
    return x


def as_typed(x, aval):
    """``x``, split as values of the type ``aval`` are."""
    if not context.laid_out or type(x) is Zero or get_aval(x).said_sharding == aval.said_sharding:
        return x
    return x if get_aval(x).dtype == dtypes.float0 else reshard_p.bind(x, dst_sharding=aval.said_sharding)


def add_tangents(x, y):
    """The sum of two tangents, either of which may be a symbolic zero; weak where both are.

    What makes the other one strong is an operation of its own, so that its cotangent is weak again.
    """
    if type(x) is not Zero and type(y) is not Zero and get_aval(x).weak_type != get_aval(y).weak_type:
        x, y = _strong(x), _strong(y)
    return add_cotangents(x, y)


def _strong(x):
    aval = get_aval(x)
    return convert_element_type_p.bind(x, new_dtype=aval.dtype, weak_type=False) if aval.weak_type else x


def add_cotangents(x, y):
    """The sum of two cotangents, either of which may be a symbolic zero; as weak as the first."""
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    aval = get_aval(x)
    if is_stack(aval):
        return stack_add_p.bind(x, y, aval=aval)
    return add_any_p.bind(x, y)
