"""Derivatives as users ask for them: ``grad``, ``vjp``, ``jvp``, ``linearize``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from catena.core import dtypes
from catena.core.array import make_array
from catena.core.aval import AbstractRef
from catena.core.context import context
from catena.core.errors import how_to_register
from catena.core.ref import is_reference
from catena.core.source import function_place
from catena.core.staging import DebugInfo
from catena.core.trace import VALUES, leaf_value
from catena.core.traceback import api_boundary, boundary
from catena.core.tree import tree_flatten, tree_structure, tree_unflatten
from catena.core.zeros import Zero, as_typed, as_varying, get_aval
from catena.transform.arguments import argument_name, leaf_names
from catena.transform.derivative_functions import LinearFunction, TransposedFunction, VJPFunction, materialise
from catena.transform.functions import FlatFunction, check_function, flatten_function, named_after
from catena.transform.jvp import jvp_flat
from catena.transform.linearize import linearize_flat, linearize_linear
from catena.transform.own_gradients import have_own_gradients, is_own_scalar, own_gradients
from catena.transform.transpose import backward_pass

P = ParamSpec("P")
R = TypeVar("R")

# ---- jvp and linearize


def jvp(fun: Callable, primals: Sequence, tangents: Sequence, has_aux: bool = False):
    """The value of ``fun`` and its directional derivative (Jacobian-vector product), in one forward pass.

    Arguments:
      fun: a function of trees of arrays.
      primals: a tuple or list of its arguments: the point.
      tangents: the direction, of the same structure, shapes and dtypes (float0 for integer arguments).
      has_aux: whether ``fun`` returns a pair whose second part is not differentiated.
    Returns:
      ``(value, tangent)``, or ``(value, tangent, aux)``.
    Raises:
      TypeError: where structures or dtypes differ. ValueError: where shapes differ.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.jvp(jnp.sin, (0.0,), (2.0,))[1]
    Array(2., dtype=float32, weak_type=True)
    """
    check_function(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; "
            f"found {type(primals).__name__} and {type(tangents).__name__}."
        )
    primal_leaves, tree = tree_flatten(tuple(primals))
    tangent_leaves, tangent_tree = tree_flatten(tuple(tangents))
    if tree != tangent_tree or type(primals) is not type(tangents):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure "
            f"{tree_structure(primals)} whereas tangents have tree structure {tree_structure(tangents)}."
        )
    given, primal_leaves = primal_leaves, [leaf_value(x) for x in primal_leaves]
    tangent_leaves = [check_tangent(p, t) for p, t in zip(primal_leaves, tangent_leaves, strict=True)]
    flat = flatten_function(fun, tree, has_aux=has_aux)
    with boundary:
        outs, out_tangents = jvp_flat(flat, primal_leaves, tangent_leaves)
    outs, out_tangents = flat.main(outs), [materialise(t) for t in out_tangents[: flat.count]]
    results = tree_unflatten(flat.out_tree, outs), tree_unflatten(flat.out_tree, out_tangents)
    return (*results, flat.aux(given)) if has_aux else results


def check_tangent(primal, tangent):
    """``tangent`` as a value, or an error where its type is not that of tangents of ``primal``."""
    expected = get_aval(primal).to_tangent_aval()
    if type(expected) is AbstractRef and not is_reference(tangent):
        raise TypeError(f"the tangent of a reference is a reference of type {expected.str_short()}, got {tangent!r}")
    if isinstance(tangent, (np.ndarray, np.generic)) and tangent.dtype == dtypes.float0:
        got = expected if expected.dtype == dtypes.float0 else None
        shape, dtype = tangent.shape, tangent.dtype
    else:
        tangent = leaf_value(tangent)
        got = get_aval(tangent)
        shape, dtype = got.shape, got.dtype
    if dtype != expected.dtype:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool "
            f"primal dtype the tangent dtype must be float0. Got primal dtype {get_aval(primal).dtype} and so expected "
            f"tangent dtype {dtypes.dtype_name(expected.dtype)}, but got tangent dtype {dtypes.dtype_name(dtype)} "
            "instead."
        )
    if shape != expected.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes; "
            f"Got primal shape {expected.shape} and tangent shape as {shape}"
        )
    if expected.dtype == dtypes.float0:
        return Zero(expected)
    return as_typed(tangent, expected) if context.has_terms else tangent


def linearize(fun: Callable, *primals, has_aux: bool = False):
    """The value of ``fun`` at a point, and its derivative there as a function that can be applied many times.

    Arguments:
      fun: a function of trees of arrays.
      primals: the point.
      has_aux: whether ``fun`` returns a pair whose second part is not differentiated.
    Returns:
      ``(value, f_jvp)`` or ``(value, f_jvp, aux)``, where ``f_jvp`` maps tangents to the tangent of the
      value.

    >>> import catena as jax, catena.numpy as jnp
    >>> y, f_jvp = jax.linearize(jnp.sin, 0.0)
    >>> f_jvp(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    check_function(fun)
    given, tree = tree_flatten(primals)
    leaves = [leaf_value(x) for x in given]
    flat = flatten_function(fun, tree, has_aux=has_aux)
    with boundary:
        outs, program = linearize_flat(flat, leaves)
    program = program.first(flat.count)
    value = tree_unflatten(flat.out_tree, flat.main(outs))
    info = DebugInfo("linearize", function_place(fun))
    f_jvp = LinearFunction.of_program(program, tree, flat.out_tree, [get_aval(x) for x in leaves], info)
    return (value, f_jvp, flat.aux(given)) if has_aux else (value, f_jvp)


# ---- vjp


def vjp(fun: Callable, *primals, has_aux: bool = False, reduce_axes=()):
    """The value of ``fun`` at a point, and the function that pulls cotangents back (vector-Jacobian product).

    Arguments:
      fun: a function of trees of arrays.
      primals: the point.
      has_aux: whether ``fun`` returns a pair whose second part is not differentiated.
      reduce_axes: named axes over which cotangents are summed; must be empty.
    Returns:
      ``(value, f_vjp)`` or ``(value, f_vjp, aux)``; ``f_vjp`` maps a cotangent of the value to a tuple of
      cotangents of the arguments and may be called any number of times.

    >>> import catena as jax, catena.numpy as jnp
    >>> y, f_vjp = jax.vjp(jnp.sin, 0.0)
    >>> f_vjp(2.0)
    (Array(2., dtype=float32, weak_type=True),)
    """
    check_function(fun)
    check_no_reduce_axes(reduce_axes)
    given, tree = tree_flatten(primals)
    leaves = [leaf_value(x) for x in given]
    flat = flatten_function(fun, tree, has_aux=has_aux)
    with boundary:
        outs, program = linearize_flat(flat, leaves)
    program = program.first(flat.count)
    outs = flat.main(outs)
    value = tree_unflatten(flat.out_tree, outs)
    f_vjp = VJPFunction(program, tree, flat.out_tree, [get_aval(x) for x in outs], function_place(fun), leaves)
    return (value, f_vjp, flat.aux(given)) if has_aux else (value, f_vjp)


def check_no_reduce_axes(reduce_axes):
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes is no longer supported by JAX; it must be empty, got {reduce_axes!r}")


def linear_transpose(fun: Callable, *primals, reduce_axes=()) -> Callable:
    """The transpose of a linear function.

    Arguments:
      fun: a function that is linear in all its arguments.
      primals: arrays or ``ShapeDtypeStruct``s that give the types of the arguments.
      reduce_axes: must be empty.
    Returns:
      A function from a cotangent of the result to a tuple of cotangents of the arguments, a tree as that of ``vjp``.
    Raises:
      TypeError: where ``fun`` uses an operation that is not linear, or the dtypes are not inexact.

    >>> import catena as jax
    >>> jax.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_function(fun)
    check_no_reduce_axes(reduce_axes)
    leaves, tree = tree_flatten(primals)
    in_avals = [struct_aval(x) for x in leaves]
    if len({dtypes.is_inexact(a.dtype) for a in in_avals}) > 1 or any(a.dtype == bool for a in in_avals):
        raise TypeError(
            "linear_transpose only supports functions whose arguments are all of float or complex dtypes, or all "
            f"integers, got {', '.join(a.str_short() for a in in_avals)}"
        )
    flat = flatten_function(fun, tree)
    with boundary:
        outs, program = linearize_linear(flat, in_avals, [None] * len(in_avals))
    out_avals = [get_aval(x) for x in outs]
    if any(dtypes.is_inexact(a.dtype) != dtypes.is_inexact(in_avals[0].dtype) for a in out_avals if in_avals):
        shown = [[dtypes.dtype_name(a.dtype) for a in avals] for avals in (in_avals, out_avals)]
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer "
            f"functions, but got {shown[0]} -> {shown[1]}."
        )
    return TransposedFunction(program, tree, flat.out_tree, out_avals, function_place(fun))


def struct_aval(x):
    """The type of an array or of anything with a shape and a dtype."""
    if isinstance(x, VALUES) or dtypes.is_scalar_or_numpy(x):
        return get_aval(x)
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type.{how_to_register(x)}")
    return get_aval(np.broadcast_to(np.zeros((), dtypes.canonicalize_dtype(x.dtype)), x.shape))


# ---- grad


def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes=(),
) -> Callable[P, Any]:
    """A function that computes the gradient of a scalar-valued function.

    Arguments:
      fun: a function of trees of arrays that returns a scalar.
      argnums: the positions of the arguments to differentiate by: an integer, or a sequence for a tuple of
        gradients.
      has_aux: whether ``fun`` returns a pair whose second part is returned as it is.
      holomorphic: whether ``fun`` is a holomorphic function of complex arguments.
      allow_int: whether integer arguments are admitted; their gradients are of dtype float0.
      reduce_axes: must be empty.
    Returns:
      A function with the arguments of ``fun`` that returns the gradient, or a pair of it and the auxiliary
      data.
    Raises:
      TypeError: where an argument cannot be differentiated by, or the result is not a real scalar.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.grad(lambda x: x**3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    value_and_grad_f = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @named_after(fun, f"The gradient by argument {argnums}")
    @api_boundary
    def grad_f(*args, **kwargs):
        value, gradient = value_and_grad_f(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f


def value_and_grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes=(),
) -> Callable[P, tuple[Any, Any]]:
    """A function that computes a scalar-valued function and its gradient.

    Arguments:
      fun, argnums, has_aux, holomorphic, allow_int, reduce_axes: as for ``grad``.
    Returns:
      A function that returns ``(value, gradient)``, where ``value`` is ``(value, aux)`` with ``has_aux``.

    >>> import catena as jax
    >>> jax.value_and_grad(lambda x: x**2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_function(fun)
    check_no_reduce_axes(reduce_axes)
    nums = check_argnums(argnums)

    @named_after(fun, f"The value, and the gradient by argument {argnums},")
    @api_boundary
    def value_and_grad_f(*args, **kwargs):
        positions, dynamic, flat_of = split_arguments(fun, nums, args, kwargs)
        given, tree = tree_flatten(dynamic)
        check = lambda x: check_grad_input(x, holomorphic, allow_int, "grad")
        leaves = checked_leaves(check, given, fun, args, positions)
        flat = flat_of(tree, has_aux)
        outs, program = linearize_flat(flat, leaves)
        program = program.first(flat.count)
        outs = flat.main(outs)
        check_scalar_output(flat.out_tree, outs, holomorphic)
        one = ones_like(outs[0])
        cts = [materialise(ct) for ct in backward_pass(program, [one])]
        gradient = tree_unflatten(tree, cts)
        value = tree_unflatten(flat.out_tree, outs)
        if have_own_gradients(tree, flat.out_tree):
            gradient = own_gradients(dynamic, gradient, value)
        gradient = gradient[0] if isinstance(argnums, int) else gradient
        return ((value, flat.aux(given)) if has_aux else value), gradient

    return value_and_grad_f


def check_argnums(argnums) -> tuple:
    if isinstance(argnums, (int, np.integer)) and not isinstance(argnums, bool):
        return (int(argnums),)
    if isinstance(argnums, (tuple, list, range)) and all(isinstance(i, (int, np.integer)) for i in argnums):
        return tuple(int(i) for i in argnums)
    raise TypeError(f"argnums must be an int or a sequence of ints, got {argnums!r}")


def split_arguments(fun, nums, args, kwargs):
    """The positions and values of the arguments to differentiate by, and how to make the flat function of them."""
    if any(not -len(args) <= i < len(args) for i in nums):
        shown = nums[0] if len(nums) == 1 else nums
        raise TypeError(
            f"differentiating with respect to argnums={shown} requires at least "
            f"{max(max(nums) + 1, -min(nums))} "
            f"positional arguments to be passed by the caller, but got only {len(args)} positional arguments."
        )
    positions = [i % len(args) for i in nums]
    dynamic = tuple(args[i] for i in positions)

    def call(*given):
        full = list(args)
        for i, x in zip(positions, given, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return positions, dynamic, lambda tree, has_aux: FlatFunction(call, tree, has_aux)


def checked_leaves(check, leaves: list, fun, args, positions) -> list:
    """The leaves that are differentiated by, each checked; an error says which leaf of the arguments it is."""
    checked = []
    for x in leaves:
        try:
            checked.append(check(x))
        except TypeError as error:
            names = [name for i in positions for name in leaf_names(argument_name(fun, i), args[i])]
            raise TypeError(f"{error} (It is {names[len(checked)]} of {function_place(fun)}.)") from None
    return checked


def check_grad_input(x, holomorphic: bool, allow_int: bool, name: str):
    """``x`` as a value that can be differentiated by, or an error."""
    x = leaf_value(x)
    aval = get_aval(x)
    dtype = aval.dtype
    if type(aval) is AbstractRef:
        raise TypeError(
            f"{name} by a reference of type {aval.str_short()}: differentiate by its value, and make the reference "
            "inside; or use vjp, whose with_refs takes a reference for the cotangent"
        )
    if dtypes.is_extended(dtype):
        if not allow_int:
            raise TypeError(f"{name} requires inputs with a numeric dtype, but got {dtype}; set allow_int to True")
    elif holomorphic:
        if not dtypes.is_complex(dtype):
            raise TypeError(
                f"{name} with holomorphic=True requires inputs with complex dtype, but got {dtypes.dtype_name(dtype)}."
            )
    elif not dtypes.is_inexact(dtype) and not allow_int:
        raise TypeError(
            f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got "
            f"{dtypes.dtype_name(dtype)}. If you want to use Boolean- or integer-valued inputs, use vjp or set "
            "allow_int to True. For the derivative by a number, pass a float (3.0, not 3), or x.astype(float); by "
            "another argument, say which (argnums)."
        )
    return x


def check_scalar_output(tree, outs, holomorphic: bool):
    """Raise where the value of a function to be differentiated is not a scalar of the right kind."""
    if (tree.num_nodes != 1 or len(outs) != 1) and not is_own_scalar(tree):
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output was {tree_unflatten(tree, outs)}. To return "
            "something beside the scalar, return (scalar, the rest) and set has_aux=True; jax.jacobian differentiates "
            "trees of results."
        )
    aval = get_aval(outs[0])
    if aval.shape:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. Make it a scalar, for "
            "instance by jnp.sum or jnp.mean; jax.vmap(jax.grad(f)) differentiates each element of a batch, "
            "jax.jacobian(f) all results by all arguments."
        )
    check_real_output(aval, holomorphic, "grad")


def check_real_output(aval, holomorphic: bool, name: str):
    """Raise where a result has a dtype that cannot be differentiated."""
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"{name} with holomorphic=True requires outputs with complex dtype, but got "
                f"{dtypes.dtype_name(aval.dtype)}."
            )
    elif dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
            f"{dtypes.dtype_name(aval.dtype)}. For holomorphic differentiation, pass holomorphic=True. For "
            "differentiation of non-holomorphic functions involving complex outputs, use jax.vjp directly."
        )
    elif not dtypes.is_floating(aval.dtype):
        raise TypeError(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
            f"{dtypes.dtype_name(aval.dtype)}. For differentiation of functions with integer outputs, use jax.vjp "
            "directly."
        )


def ones_like(x):
    """A one of the type of the scalar ``x``."""
    aval = get_aval(x)
    return as_varying(make_array(np.ones((), aval.dtype), aval.weak_type), aval)
