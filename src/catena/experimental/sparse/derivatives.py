"""Derivatives by sparse arrays: by their elements that are specified, whose positions are constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catena import numpy as jnp
from catena.core.namespace import alias
from catena.core.tree import tree_flatten, tree_structure, tree_unflatten
from catena.experimental.sparse.rules import is_sparse
from catena.transform import grad as transformations
from catena.transform import jacobians
from catena.transform.functions import check_function, named_after


class ByData:
    """A function of some of its arguments, as lists of arrays: sparse ones are their data.

    ``call`` takes one list for all arguments that are differentiated by, so that a transformation has one to look at.
    """

    def __init__(self, fun: Callable, argnums: int | Sequence[int], args: tuple, kwargs: dict):
        self.fun, self.args, self.kwargs = fun, args, kwargs
        self.single = not isinstance(argnums, Sequence)
        self.argnums = [i % len(args) for i in ([argnums] if self.single else argnums)]
        self.leaves, self.tree = tree_flatten([args[i] for i in self.argnums], is_leaf=is_sparse)
        self.data = [x.data if is_sparse(x) else x for x in self.leaves]

    def call(self, data: list):
        new = [with_data(x, d) for x, d in zip(self.leaves, data, strict=True)]
        args = list(self.args)
        for i, x in zip(self.argnums, tree_unflatten(self.tree, new), strict=True):
            args[i] = x
        return self.fun(*args, **self.kwargs)

    def arguments(self, derivatives: list):
        """Derivatives by the data as derivatives by the arguments."""
        new = [repeated(x, d) for x, d in zip(self.leaves, derivatives, strict=True)]
        trees = tree_unflatten(self.tree, new)
        return trees[0] if self.single else tuple(trees)


def with_data(x, data):
    """A sparse array with other elements at the same positions; anything else is the data."""
    if not is_sparse(x):
        return data
    buffers, facts = x.tree_flatten()
    return type(x).tree_unflatten(facts, (data, *buffers[1:]))


def repeated(x, derivative):
    """The derivative by a sparse array: its axes in front of those of the data are batch axes."""
    if not is_sparse(x):
        return derivative
    buffers, facts = x.tree_flatten()
    front = derivative.shape[: derivative.ndim - x.data.ndim]
    if not front:
        return with_data(x, derivative)
    positions = [jnp.broadcast_to(b, (*front, *b.shape)) for b in buffers[1:]]
    return type(x)((derivative, *positions), **{**facts, "shape": (*front, *x.shape)})


def value_and_grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux=False, **kwargs) -> Callable:
    """``value_and_grad`` for functions of sparse arrays.

    Arguments:
      fun: a function of trees of arrays, sparse and dense, that returns a scalar.
      argnums: the argument, or arguments, to differentiate by.
      has_aux: whether ``fun`` returns a pair whose second part is passed on.
      kwargs: as of ``jax.value_and_grad``.
    Returns:
      A function that returns the value and the gradient. That by a sparse array has the same positions.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> M = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> value, gradient = value_and_grad(lambda M: (M @ jnp.array([1.0, 10.0])).sum())(M)
    >>> value, gradient.data
    (Array(23., dtype=float32), Array([10.,  1.], dtype=float32))
    """
    check_function(fun)

    @named_after(fun, "The value and gradient")
    def value_and_grad_f(*args, **fun_kwargs):
        split = ByData(fun, argnums, args, fun_kwargs)
        value, derivatives = transformations.value_and_grad(split.call, has_aux=has_aux, **kwargs)(split.data)
        return value, split.arguments(derivatives)

    return value_and_grad_f


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux=False, **kwargs) -> Callable:
    """``grad`` for functions of sparse arrays.

    Arguments:
      fun, argnums, has_aux, kwargs: as of ``value_and_grad`` here.
    Returns:
      A function that returns the gradient. That by a sparse array has the same positions.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> M = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> grad(lambda M: (M @ jnp.array([1.0, 10.0])).sum())(M).todense()
    Array([[ 0., 10.],
           [ 1.,  0.]], dtype=float32)
    """
    check_function(fun)

    @named_after(fun, "The gradient")
    def grad_f(*args, **fun_kwargs):
        split = ByData(fun, argnums, args, fun_kwargs)
        out = transformations.grad(split.call, has_aux=has_aux, **kwargs)(split.data)
        derivatives, *aux = out if has_aux else (out,)
        return (split.arguments(derivatives), *aux) if has_aux else split.arguments(derivatives)

    return grad_f


def _jacobian(transformation: Callable, fun: Callable, argnums, has_aux: bool, kwargs: dict) -> Callable:
    check_function(fun)

    @named_after(fun, "The Jacobian")
    def jacobian_f(*args, **fun_kwargs):
        split = ByData(fun, argnums, args, fun_kwargs)
        out_tree = None

        def call(data):
            nonlocal out_tree
            out = split.call(data)
            out_tree = tree_structure(out[0] if has_aux else out)
            return out

        out = transformation(call, has_aux=has_aux, **kwargs)(split.data)
        jacobian, *aux = out if has_aux else (out,)
        leaves, count = tree_flatten(jacobian)[0], len(split.data)
        rows = [split.arguments(leaves[i : i + count]) for i in range(0, len(leaves), count)]
        return (tree_unflatten(out_tree, rows), *aux) if has_aux else tree_unflatten(out_tree, rows)

    return jacobian_f


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs) -> Callable:
    """``jacfwd`` for functions of sparse arrays.

    Arguments:
      fun, argnums, has_aux: as of ``jacrev`` here.
      kwargs: as of ``jax.jacfwd``.
    Returns:
      A function that returns the Jacobian, as of ``jacrev``.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> jacfwd(lambda M: M @ jnp.array([1.0, 10.0]))(sparse.eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian(jacobians.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs) -> Callable:
    """``jacrev`` for functions of sparse arrays.

    Arguments:
      fun: a function of trees of arrays, sparse and dense, that returns dense ones.
      argnums: the argument, or arguments, to differentiate by.
      has_aux: whether ``fun`` returns a pair whose second part is passed on.
      kwargs: as of ``jax.jacrev``.
    Returns:
      A function that returns the Jacobian. That by a sparse array is sparse, with the axes of the result as further
      batch axes.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> jacrev(lambda M: M @ jnp.array([1.0, 10.0]))(sparse.eye(2)).data
    Array([[ 1.,  0.],
           [ 0., 10.]], dtype=float32)
    """
    return _jacobian(jacobians.jacrev, fun, argnums, has_aux, kwargs)


jacobian = alias(jacrev, "jacobian")
