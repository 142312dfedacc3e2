"""Gradients with a meaning of their own: what ``grad`` returns for objects of classes that say so.

A gradient has the structure of the argument, leaf by leaf; but an object may carry facts that its gradient
does not share, such as a unit of measure. A registered class that defines
``__jax_gradient__(self, gradient, x, value)`` makes the gradient of ``value`` by ``x`` out of the plain one.
It is asked of ``x``; of the value where ``x`` has none.
"""

from catena.core.tree import tree_map
from catena.core.treedef import PyTreeDef, postorder


def is_own_scalar(tree: PyTreeDef) -> bool:
    """Whether a function's value is one leaf in an object that gives gradients a meaning."""
    return tree.num_leaves == 1 and _speaks(tree)


def have_own_gradients(arguments: PyTreeDef, value: PyTreeDef) -> bool:
    """Whether gradients of these arguments, a tuple, are to be asked about."""
    return value.num_nodes > 1 or any(_speaks_within(child) for child in arguments.children())


def _speaks(tree: PyTreeDef) -> bool:
    data = tree.node_data()
    return data is not None and hasattr(data[0], "__jax_gradient__")


def _speaks_within(tree: PyTreeDef) -> bool:
    return tree.num_nodes > 1 and any(map(_speaks, postorder(tree)))


def own_gradients(arguments, gradients, value):
    """``gradients``, of the structure of ``arguments``, as their classes and that of ``value`` mean them."""

    def own(x, gradient):
        speaker = x if _defines(x) else value
        return speaker.__jax_gradient__(gradient, x, value) if _defines(speaker) else gradient

    return tree_map(own, arguments, gradients, is_leaf=_defines)


def _defines(x) -> bool:
    return hasattr(type(x), "__jax_gradient__")
