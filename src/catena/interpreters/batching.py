"""Vectorisation rules of primitives: ``rule(args, dims, **params)`` gives the result and its mapped axis."""

import functools
from collections.abc import Callable

import numpy as np

from catena.core.axes import at_front, broadcast_axis, move_axis
from catena.core.structural import reshape_p
from catena.core.trace import leaf_value
from catena.core.unbuilt import absent as _absent
from catena.interpreters.rules import Rules
from catena.transform.batch import Axis
from catena.transform.batch import batch_rules as _batch_rules
from catena.transform.vmappable import register as register_vmappable  # noqa: F401
from catena.transform.vmappable import unregister as unregister_vmappable  # noqa: F401

not_mapped = None


class WithoutAxis:
    """A user's vectorisation rule, which is told nothing of the axis; arguments and their axes are tuples."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable):
        self.rule = rule

    def __call__(self, axis, args, dims, **params):
        return self.rule(tuple(args), tuple(dims), **params)


primitive_batchers = Rules(_batch_rules, WithoutAxis, lambda rule: functools.partial(rule, None))


class WithAxis:
    """A user's vectorisation rule, which is told of the axis: ``rule(axis, args, dims, **params)``."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable):
        self.rule = rule

    def __call__(self, axis, args, dims, **params):
        return self.rule(axis, tuple(args), tuple(dims), **params)


class WithAxisSize:
    """The older form: ``rule(size, name, None, args, dims, **params)``."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable):
        self.rule = rule

    def __call__(self, axis, args, dims, **params):
        return self.rule(axis.size, axis.name, None, tuple(args), tuple(dims), **params)


# One table in three conventions: a primitive has one rule, the last that it was given.
fancy_primitive_batchers = Rules(_batch_rules, WithAxis)
axis_primitive_batchers = Rules(
    _batch_rules,
    WithAxisSize,
    lambda rule: lambda size, name, _, args, dims, **params: rule(Axis(name, size), args, dims, **params),
)


def broadcast(x, sz: int, axis: int, mesh_axis=None):
    """``x`` repeated along a new axis.

    Arguments:
      x: an array.
      sz, axis: the size and the position of the axis.
      mesh_axis: must be None; there are no meshes.

    >>> import catena.numpy as jnp
    >>> from catena.interpreters import batching
    >>> batching.broadcast(jnp.arange(3), 2, 0, None).shape
    (2, 3)
    """
    _check_no_mesh(mesh_axis)
    return broadcast_axis(leaf_value(x), sz, axis)


def bdim_at_front(x, bdim: int | None, size: int, mesh_axis=None):
    """``x`` with its mapped axis in front; where it has none, repeated along a new one.

    Arguments:
      x: an array.
      bdim: its mapped axis, or ``not_mapped``.
      size: the size of the axis.
      mesh_axis: must be None; there are no meshes.

    >>> import catena.numpy as jnp
    >>> from catena.interpreters import batching
    >>> batching.bdim_at_front(jnp.ones((3, 2)), 1, 2).shape
    (2, 3)
    """
    _check_no_mesh(mesh_axis)
    return at_front(size, leaf_value(x), bdim)


def _check_no_mesh(mesh_axis):
    if mesh_axis is not None:
        raise NotImplementedError(f"there are no meshes; mesh_axis must be None, got {mesh_axis!r}")


def _mapped_along(axis: int, out, prim) -> tuple:
    """The result, or several, with the mapped axis of each."""
    return (out, [axis] * len(out)) if prim.multiple_results else (out, axis)


def defbroadcasting(prim) -> None:
    """Of an elementwise primitive of arguments that broadcast: mapped axes go to the front, and shorter shapes are
    filled up behind them.

    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import batching
    >>> batching.defbroadcasting(Primitive("sum_of_two"))
    """

    def rule(args, dims, **params):
        rank = max(np.ndim(x) - (d is not not_mapped) for x, d in zip(args, dims, strict=True))

        def filled(x, d):
            if d is not_mapped:
                return x
            x = move_axis(x, d, 0)
            return reshape_p.bind(x, new_sizes=(x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:]), dimensions=None)

        return _mapped_along(0, prim.bind(*map(filled, args, dims), **params), prim)

    primitive_batchers[prim] = rule


def defreducer(prim) -> None:
    """Of a primitive of one argument that reduces the axes in its parameter ``axes``.

    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import batching
    >>> batching.defreducer(Primitive("sum_over"))
    """

    def rule(args, dims, *, axes, **params):
        (x,), (dim,) = args, dims
        moved = tuple(axis + (axis >= dim) for axis in axes)
        return prim.bind(x, axes=moved, **params), dim - sum(axis < dim for axis in moved)

    primitive_batchers[prim] = rule


def defvectorized(prim) -> None:
    """Of an elementwise primitive of arguments that are mapped along one axis: it takes them as they are.

    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import batching
    >>> batching.defvectorized(Primitive("halve"))
    """

    def rule(args, dims, **params):
        first = next(d for d in dims if d is not not_mapped)
        moved = [
            x if d is not_mapped or d == first else move_axis(x, d, first) for x, d in zip(args, dims, strict=True)
        ]
        return _mapped_along(first, prim.bind(*moved, **params), prim)

    primitive_batchers[prim] = rule


_absent(globals())
