"""``todense``: any array as a dense one; an operation of its own, so that ``sparsify`` sees it."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.tree import tree_flatten, tree_unflatten
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.composed import composed


def _todense(*buffers, tree):
    mat = tree_unflatten(tree, buffers)
    return mat.todense() if isinstance(mat, JAXSparse) else mat


todense_p = composed("todense", _todense, linear=(0,))


def todense(arr):
    """A dense array of a sparse or dense one. In functions under ``sparsify`` too, where sparse arrays look dense.

    Arguments:
      arr: a sparse array or a dense one.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> sparse.todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    buffers, tree = tree_flatten(arr if isinstance(arr, JAXSparse) else jnp.asarray(arr))
    return todense_p.bind(*buffers, tree=tree)
