"""Jacobians and Hessians: derivatives by all numbers at once, columns or rows vectorised along an identity matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from catena.core import dtypes
from catena.core.array import make_array
from catena.core.axes import at_front
from catena.core.context import context
from catena.core.lazy import LazyModule
from catena.core.namespace import alias
from catena.core.source import function_place
from catena.core.structural import reshape_p, slice_p, transpose_p
from catena.core.trace import leaf_value
from catena.core.traceback import api_boundary
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import Zero, get_aval, instantiate, zeros
from catena.transform.batch import Axis, batch_flat
from catena.transform.functions import check_function, named_after
from catena.transform.grad import check_argnums, check_grad_input, check_real_output, checked_leaves, split_arguments
from catena.transform.jvp import jvp_flat
from catena.transform.linearize import linearize_flat
from catena.transform.transpose import backward_pass

positions = LazyModule("catena.lax.positions")

P = ParamSpec("P")


def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """A function that computes the Jacobian by forward differentiation, one column at a time, vectorised.

    Arguments:
      fun, argnums, has_aux, holomorphic: as for ``grad``; ``fun`` may return any tree of arrays.
    Returns:
      A function that returns, for each leaf of the value and of the argument, an array of the leaf's shape
      followed by the argument's.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.jacfwd(lambda x: x**2)(jnp.arange(2.0))
    Array([[0., 0.],
           [0., 2.]], dtype=float32)
    """
    check_function(fun)
    nums = check_argnums(argnums)

    @named_after(fun, f"The Jacobian by argument {argnums}")
    @api_boundary
    def jacobian_f(*args, **kwargs):
        positions, dynamic, flat_of = split_arguments(fun, nums, args, kwargs)
        given, tree = tree_flatten(dynamic)
        check = lambda x: check_jacfwd_input(leaf_value(x), holomorphic)
        leaves = checked_leaves(check, given, fun, args, positions)
        flat = flat_of(tree, has_aux)
        basis = standard_basis([get_aval(x) for x in leaves])
        size = sum(get_aval(x).size for x in leaves)
        saved = {}

        def push(*tangents):
            outs, tangents_out = jvp_flat(flat, leaves, list(tangents))
            saved["outs"] = flat.main(outs)
            return [column(*pair) for pair in zip(saved["outs"], tangents_out[: flat.count], strict=True)]

        columns, dims = batch_flat(push, Axis(None, size), basis, [0] * len(basis), function_place(fun))
        columns = [at_front(size, c, d) for c, d in zip(columns, dims, strict=True)]
        for out in saved["outs"]:
            check_jacfwd_output(get_aval(out), holomorphic)
        blocks = [split_axis0(c, leaves, move_to_back=True) for c in columns]
        nested = [tree_unflatten(tree, row) for row in blocks]
        nested = [row[0] if isinstance(argnums, int) else row for row in nested]
        result = tree_unflatten(flat.out_tree, nested)
        return (result, flat.aux(given)) if has_aux else result

    return jacobian_f


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """A function that computes the Jacobian by reverse differentiation, one row at a time, vectorised.

    Arguments:
      fun, argnums, has_aux, holomorphic, allow_int: as for ``grad``; ``fun`` may return any tree of arrays.
    Returns:
      As for ``jacfwd``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.jacrev(lambda x: x**2)(jnp.arange(2.0))
    Array([[0., 0.],
           [0., 2.]], dtype=float32)
    """
    check_function(fun)
    nums = check_argnums(argnums)

    @named_after(fun, f"The Jacobian by argument {argnums}")
    @api_boundary
    def jacobian_f(*args, **kwargs):
        positions, dynamic, flat_of = split_arguments(fun, nums, args, kwargs)
        given, tree = tree_flatten(dynamic)
        check = lambda x: check_grad_input(x, holomorphic, allow_int, "jacrev")
        leaves = checked_leaves(check, given, fun, args, positions)
        flat = flat_of(tree, has_aux)
        outs, program = linearize_flat(flat, leaves)
        program, outs = program.first(flat.count), flat.main(outs)
        for out in outs:
            check_real_output(get_aval(out), holomorphic, "jacrev")
        basis = standard_basis([get_aval(x) for x in outs])
        size = sum(get_aval(x).size for x in outs)
        pull = lambda *cts: backward_pass(program, list(cts))  # noqa: E731
        rows, dims = batch_flat(pull, Axis(None, size), basis, [0] * len(basis), function_place(fun))
        rows = [
            r if type(r) is Zero and r.aval.dtype == dtypes.float0 else at_front(size, instantiate(r), d)
            for r, d in zip(rows, dims, strict=True)
        ]
        rows = [float0_rows(r, size) if type(r) is Zero else r for r in rows]
        by_argument = [split_axis0(r, outs, move_to_back=False) for r in rows]
        nested = []
        for i in range(len(outs)):
            entry = tree_unflatten(tree, [blocks[i] for blocks in by_argument])
            nested.append(entry[0] if isinstance(argnums, int) else entry)
        result = tree_unflatten(flat.out_tree, nested)
        return (result, flat.aux(given)) if has_aux else result

    return jacobian_f


jacobian = alias(jacrev, "jacobian")


def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """A function that computes the Hessian: forward over reverse differentiation.

    Arguments:
      fun, argnums, has_aux, holomorphic: as for ``grad``.
    Returns:
      A function that returns the second derivatives, nested by argument twice.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.hessian(lambda x: jnp.sum(x**3))(jnp.arange(2.0))
    Array([[0., 0.],
           [0., 6.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def check_jacfwd_input(x, holomorphic: bool):
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise TypeError(
                f"jacfwd with holomorphic=True requires inputs with complex dtype, but got {dtypes.dtype_name(dtype)}."
            )
    elif not dtypes.is_floating(dtype):
        raise TypeError(
            "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
            f"{dtypes.dtype_name(dtype)}. For holomorphic differentiation, pass holomorphic=True. For differentiation "
            "of non-holomorphic functions involving complex inputs or integer inputs, use jax.jvp directly."
        )
    return x


def check_jacfwd_output(aval, holomorphic: bool):
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            "jacfwd with holomorphic=True requires outputs with complex dtype, but got "
            f"{dtypes.dtype_name(aval.dtype)}."
        )


def column(out, tangent):
    """A tangent as a column of the Jacobian; of integers and booleans, which have none, zeros of their own dtype."""
    none = get_aval(tangent).dtype == dtypes.float0
    return zeros(get_aval(out)) if none else instantiate(tangent)


FEW = 16  # columns of an identity matrix that is a constant of a program


def standard_basis(avals) -> list:
    """For each type, its block of the identity matrix: ``(total size, *shape)``. A program computes it where it is
    read, unless it is small: as a constant it would be memory, and another program for each size.
    """
    total = sum(a.size for a in avals)
    blocks, start = [], 0
    for a in avals:
        if context.trace is not None and total > FEW:
            blocks.append(reshape(positions.unit_rows(total, start, a.size, a.dtype, a.weak_type), (total, *a.shape)))
            start += a.size
            continue
        block = np.zeros((total, a.size), a.dtype)
        block[start : start + a.size] = np.eye(a.size, dtype=a.dtype)
        blocks.append(make_array(block.reshape(total, *a.shape), a.weak_type))
        start += a.size
    return blocks


def split_axis0(x, leaves, move_to_back: bool) -> list:
    """Cut the leading axis into the sizes of ``leaves`` and give it their shapes, in front or at the back."""
    parts, start = [], 0
    rest = np.shape(x)[1:]
    for leaf in leaves:
        aval = get_aval(leaf)
        if isinstance(x, np.ndarray):
            parts.append(x[start : start + aval.size].reshape((*aval.shape, *rest)))
        else:
            part = slice_axis0(x, start, start + aval.size)
            if move_to_back:
                n = len(rest)
                part = transpose_p.bind(part, permutation=(*range(1, n + 1), 0))
                part = reshape(part, (*rest, *aval.shape))
            else:
                part = reshape(part, (*aval.shape, *rest))
            parts.append(part)
        start += aval.size
    return parts


def slice_axis0(x, start: int, stop: int):
    shape = get_aval(x).shape
    if (start, stop) == (0, shape[0]):
        return x
    origin = (0,) * (len(shape) - 1)
    return slice_p.bind(x, start_indices=(start, *origin), limit_indices=(stop, *shape[1:]), strides=None)


def reshape(x, shape):
    return x if get_aval(x).shape == shape else reshape_p.bind(x, new_sizes=tuple(shape), dimensions=None)


def float0_rows(zero: Zero, size: int):
    return np.zeros((size, *zero.aval.shape), dtypes.float0)
