"""What the rules of many primitives share: moving, adding and summing away axes, and checking axis numbers."""

import math
import operator
from typing import Any

import numpy as np

from catena.core.array import make_array
from catena.core.axes import broadcast_axis
from catena.core.errors import JAXTypeError
from catena.core.lazy import LazyModule
from catena.core.structural import broadcast_in_dim_p, reduce_sum_p
from catena.core.trace import Tracer
from catena.core.zeros import Zero, get_aval

resharding: Any = LazyModule("catena.lax.resharding")  # for arrays on meshes

# ---- axis numbers


def canonical_axis(axis, ndim: int, what: str = "axis") -> int:
    """``axis`` counted from the front, in ``range(ndim)``."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"{what} {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def as_ints(values, name: str) -> tuple:
    """A sequence of integers (or one) as a tuple of Python integers."""
    try:
        return _indices(values)
    except JAXTypeError:
        raise
    except TypeError:
        raise TypeError(f"{name} must be a sequence of integers, got {values!r}") from None


def canonical_shape(shape, name: str = "") -> tuple:
    """A shape, given as a sequence of integers or one, as a tuple of Python integers; ``name``: who was given it."""
    try:
        return _indices(shape)
    except TypeError as error:
        hint = ""
        shown = shape if isinstance(shape, (tuple, list)) else (shape,)
        if isinstance(error, JAXTypeError):
            hint = "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."
            hint += "".join(f"\n{s.describe_origin()}" for s in shown if isinstance(s, Tracer) and s.describe_origin())
        rule = "Shapes must be 1D sequences of concrete values of integer type"
        raise TypeError(f"{name and f'{name}: '}{rule}, got {shown}.{hint}") from None


def _indices(values) -> tuple:
    if not isinstance(values, (tuple, list)) and hasattr(values, "__index__") and not getattr(values, "ndim", 0):
        values = (values,)
    return tuple(map(operator.index, values))


def repeated(value: np.ndarray, shape: tuple) -> np.ndarray:
    """``value`` repeated to ``shape``, which it fits by NumPy's rules: a view, unless it is a scalar and few.

    ``np.broadcast_to`` takes four microseconds, this takes one.
    """
    if not value.ndim and math.prod(shape) <= _FEW:
        out = np.empty(shape, value.dtype)
        out[...] = value
        return out
    if not value.flags.c_contiguous or value.dtype.kind == "V" or not value.size:  # "V" exports no buffer
        return np.broadcast_to(value, shape)
    own = tuple(0 if n == 1 else stride for n, stride in zip(value.shape, value.strides, strict=True))
    out = np.ndarray(shape, value.dtype, value, 0, (0,) * (len(shape) - value.ndim) + own)
    out.flags.writeable = False
    return out


_FEW = 4096


def told(target, function, *args, **kwargs):
    """What ``function`` gives, split as its parameter ``out_sharding`` says: see ``resharding.told``."""
    return resharding.told(target, function, *args, **kwargs)


def resharded(name: str, x, target):
    """The result ``x`` of a function, split as its parameter ``out_sharding`` says."""
    return resharding.resharded(name, x, target)


def check_no_sharding(name: str, sharding, parameter: str = "sharding"):
    """Raise where a function is asked to place its result: that is done by functions of their own."""
    if sharding is not None:
        raise ValueError(
            f"{name}: {parameter} must be None, got {sharding!r}; to place an array, use catena.device_put or "
            "catena.lax.with_sharding_constraint on it"
        )


# ---- axes of values


def add_axis(x, dim: int):
    """``x`` with a new axis of size 1 at ``dim``."""
    return broadcast_axis(x, 1, dim)


def broadcast_to(x, shape: tuple):
    """``x``, of rank 0 or of the rank of ``shape`` with axes of size 1, broadcast to ``shape``."""
    own = get_aval(x).shape
    if own == tuple(shape):
        return x
    return broadcast_in_dim_p.bind(x, shape=tuple(shape), broadcast_dimensions=tuple(range(len(own))))


def unbroadcast(ct, aval):
    """The cotangent of an operand of type ``aval`` that was broadcast to the shape of ``ct``: summed back."""
    shape = get_aval(ct).shape
    if shape == aval.shape:
        return ct
    if not aval.shape:
        return reduce_sum_p.bind(ct, axes=tuple(range(len(shape))))
    axes = tuple(i for i, (n, m) in enumerate(zip(shape, aval.shape, strict=True)) if n != m)
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    total = reduce_sum_p.bind(ct, axes=axes)
    return broadcast_in_dim_p.bind(total, shape=aval.shape, broadcast_dimensions=kept)


# ---- constants


def dense(x: np.ndarray) -> np.ndarray:
    """A NumPy value whose elements lie in the order of their indices. NumPy adds up, and BLAS multiplies, in the order
    of memory: without this, sums of the same numbers would depend on how these came about.
    """
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)


def like(x, value):
    """The scalar ``value`` with the dtype, and weakness, of ``x``."""
    aval = get_aval(x)
    return make_array(np.asarray(value, aval.dtype), aval.weak_type)


def strong_like(x, value):
    """The scalar ``value`` with the dtype of ``x``, never weak."""
    return make_array(np.asarray(value, get_aval(x).dtype), weak_type=False)


def constant_like(x, value):
    """The scalar ``value`` with the dtype of ``x``: a constant of a derivative, which makes that of a weak array
    strong, as in JAX; that of a weak number stays weak.
    """
    aval = get_aval(x)
    return make_array(np.asarray(value, aval.dtype), aval.weak_type and not aval.shape)


# ---- derivatives


def linear_jvp(primitive):
    """Differentiation of a primitive of one operand that is linear in it."""

    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        (t,) = tangents
        return out, Zero.of_primal(out) if type(t) is Zero else primitive.bind(t, **params)

    return jvp
