"""Operations that give back their operands: copies, barriers, and the end of differentiation."""

import numpy as np

from catena.core import dtypes
from catena.core.errors import how_to_register
from catena.core.primitive import Primitive
from catena.core.structural import stop_gradient_p
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.zeros import Zero, get_aval, instantiate, is_undefined_primal
from catena.lax.elementwise import NOT_LINEAR
from catena.lax.structure import canonical_shape, linear_jvp


def _same_aval(x):
    return x


def _unary_batch(find):
    return lambda axis, args, dims: (find().bind(*args), dims[0])


def _stop_gradient_jvp(primals, tangents):
    out = stop_gradient_p.bind(*primals)
    return out, Zero.of_primal(out)


stop_gradient_p.define(
    abstract=_same_aval,
    evaluate=lambda x: x,
    jvp=_stop_gradient_jvp,
    transpose=NOT_LINEAR,
    batch=_unary_batch(lambda: stop_gradient_p),
    lower=lambda b, x: x,
)


def stop_gradient(x):
    """A value that differentiation takes for a constant.

    Arguments:
      x: a tree of arrays.
    Returns:
      The same tree; the derivative of its floats and complex numbers is zero.
    Raises:
      TypeError: a leaf is not an array or scalar.

    >>> import catena.lax as lax
    >>> lax.stop_gradient(2.0).item()
    2.0
    """
    return tree_map(_stop_leaf, x)


def _stop_leaf(x):
    try:
        aval = get_aval(x)
    except TypeError:
        raise TypeError(f"Argument {x!r} of type {type(x)} is not a valid JAX type.{how_to_register(x)}") from None
    return stop_gradient_p.bind(x) if dtypes.is_inexact(aval.dtype) else x


copy_p = Primitive(
    "copy",
    abstract=_same_aval,
    evaluate=lambda x: x.copy(),
    transpose=lambda ct, x: [ct if type(ct) is Zero else copy_p.bind(ct)],  # else deleting one would delete the other
    batch=_unary_batch(lambda: copy_p),
    lower=lambda b, x: x,
)
copy_p.jvp = linear_jvp(copy_p)


# ------------------------------------------------------------------------------------------------------------
# optimization_barrier


def _barrier_jvp(primals, tangents):
    outs = optimization_barrier_p.bind(*primals)
    given = [t for t in tangents if type(t) is not Zero]
    barred = iter(optimization_barrier_p.bind(*given) if given else ())
    return outs, [t if type(t) is Zero else next(barred) for t in tangents]


def _barrier_transpose(cts, *xs):
    if all(type(ct) is Zero for ct in cts):
        return [Zero(x.aval) if is_undefined_primal(x) else None for x in xs]
    cts = [instantiate(ct) for ct, x in zip(cts, xs, strict=True) if is_undefined_primal(x)]
    barred = iter(optimization_barrier_p.bind(*cts))
    return [next(barred) if is_undefined_primal(x) else None for x in xs]


optimization_barrier_p = Primitive(
    "optimization_barrier",
    multiple_results=True,
    takes_tokens=True,
    abstract=lambda *xs: list(xs),
    evaluate=lambda *xs: list(xs),
    jvp=_barrier_jvp,
    transpose=_barrier_transpose,
    batch=lambda axis, args, dims: (optimization_barrier_p.bind(*args), list(dims)),
    lower=lambda b, *xs: b.barrier(xs),
)


def optimization_barrier(operand):
    """Values that the compiler must not compute before all of them are there.

    Arguments:
      operand: a tree of arrays.
    Returns:
      The same tree of the same values.

    >>> import catena.lax as lax
    >>> [x.item() for x in lax.optimization_barrier((1, 2.0))]
    [1, 2.0]
    """
    leaves, treedef = tree_flatten(operand)
    return tree_unflatten(treedef, optimization_barrier_p.bind(*leaves)) if leaves else operand


# ------------------------------------------------------------------------------------------------------------
# Types


def dtype(x):
    """The dtype that a value has, or that a dtype's name or scalar type stands for, under the flags in force.

    Arguments:
      x: an array, a scalar, a dtype, a scalar type or a dtype's name.
    Returns:
      The dtype; 64-bit dtypes become their 32-bit kin while x64 is off.
    Raises:
      ValueError: ``x`` is None.
      TypeError: ``x`` is nothing that has a dtype.

    >>> import catena.lax as lax
    >>> lax.dtype(1.0), lax.dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    if x is None:
        raise ValueError(f"Invalid argument to dtype: {x}.")
    try:
        if getattr(type(x), "_is_array", False):  # the hot path
            return x.dtype
        if type(x) in dtypes.python_scalar_dtypes:
            return dtypes.python_scalar_dtype(type(x))[0]
        if isinstance(x, (str, type)) or dtypes.is_extended(x) or isinstance(x, np.dtype):
            return dtypes.canonicalize_dtype(x, allow_extended_dtype=True)
        return get_aval(x).dtype
    except TypeError:
        raise TypeError(f"Cannot determine dtype of {x}") from None


def shape_as_value(shape):
    """A shape as an array of integers.

    Arguments:
      shape: a tuple of integers.
    Returns:
      An int32 array with an element for each axis.

    >>> import catena.lax as lax
    >>> lax.shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    return np.array(canonical_shape(shape), np.int32)
