"""Classes of containers that say themselves how ``vmap`` maps over them, instead of leaf by leaf."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core.array import make_array
from catena.core.context import context, set_trace
from catena.core.named import NamedTuple
from catena.core.trace import leaf_value
from catena.core.zeros import get_aval


class Vmappable(NamedTuple):
    """What is known of a class: see ``register``."""

    spec_type: type
    to_elt: Callable
    from_elt: Callable
    make_iota: Callable | None


classes: dict[type, Vmappable] = {}


def register(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable,
    from_elt: Callable,
    make_iota: Callable | None,
) -> None:
    """Let ``vmap`` map over objects of a class as a whole.

    Arguments:
      data_type: the class.
      spec_type: the class of what stands for it in ``in_axes`` and ``out_axes``.
      axis_size_type: the class of sizes of mapped axes, which are integers.
      to_elt: ``to_elt(cont, index, x, spec)`` gives the example of an object: ``cont(array, axis)`` is one of an array,
        ``index()`` its number.
      from_elt: ``from_elt(cont, size, x, spec)`` gives the object for all examples: ``cont(size, array, axis)`` is the
        array for all.
      make_iota: from the size to the numbers of all examples; by default 0, 1, 2 ... as int32.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.interpreters import batching
    >>> class Pair:
    ...     def __init__(self, mapped, shared):
    ...         self.mapped, self.shared = mapped, shared
    >>> batching.register_vmappable(
    ...     Pair,
    ...     int,
    ...     int,
    ...     lambda cont, index, x, axis: Pair(cont(x.mapped, axis), x.shared),
    ...     lambda cont, size, x, axis: Pair(cont(size, x.mapped, axis), x.shared),
    ...     None,
    ... )
    >>> jax.vmap(lambda p: Pair(p.mapped * p.shared, p.shared), axis_size=3)(Pair(jnp.arange(3.0), 2.0)).mapped
    Array([0., 2., 4.], dtype=float32)
    >>> batching.unregister_vmappable(Pair)
    """
    if not hasattr(axis_size_type, "__index__"):
        raise TypeError(f"register_vmappable: sizes are integers, but {axis_size_type} has no __index__")
    classes[data_type] = Vmappable(spec_type, to_elt, from_elt, make_iota)


def unregister(data_type: type) -> None:
    """Let ``vmap`` map over a class as over any other; nothing happens where it was not registered."""
    classes.pop(data_type, None)


def is_vmappable(x: Any) -> bool:
    """Whether ``vmap`` maps over an object as a whole."""
    return type(x) in classes


def leaves_of_trees() -> Callable | None:
    """What ``vmap`` takes for a leaf, besides the leaves of trees."""
    return is_vmappable if classes else None


def axis_types() -> tuple[type, ...]:
    """What may stand in ``in_axes`` and ``out_axes``, besides integers and None."""
    return tuple({found.spec_type for found in classes.values()})


def example_of(x: Any, size: int, spec: Any) -> Any:
    """The example of an object, while the current trace vectorises."""
    found, trace = classes[type(x)], context.trace
    if spec is not None and not isinstance(spec, found.spec_type):
        raise TypeError(f"vmap maps over a {type(x).__name__} by a {found.spec_type.__name__}, got {spec!r} in in_axes")

    def of_array(array, axis):
        array = leaf_value(array)
        if axis is None:
            return array
        shape = get_aval(array).shape
        if not -len(shape) <= axis < len(shape) or shape[axis] != size:
            raise ValueError(
                f"vmap over a {type(x).__name__}: an array of shape {shape} has no axis {axis} of size {size}"
            )
        return trace.pack(array, axis % len(shape))

    @functools.cache
    def index():
        made = make_array(np.arange(size, dtype=np.int32)) if found.make_iota is None else found.make_iota(size)
        return trace.pack(leaf_value(made), 0)

    return found.to_elt(of_array, index, x, spec)


def whole_of(x: Any, size: int, spec: Any, place_axis: Callable) -> Any:
    """The object for all examples; ``place_axis(array, dim, axis)`` moves the mapped axis of an array."""
    found, trace = classes[type(x)], context.trace
    if spec is not None and not isinstance(spec, found.spec_type):
        raise TypeError(f"vmap returns a {type(x).__name__} by a {found.spec_type.__name__}, got {spec!r} in out_axes")

    def of_array(_, array, axis):
        value, dim = trace.unpack(leaf_value(array))
        with set_trace(trace.parent):
            return place_axis(value, dim, axis)

    return found.from_elt(of_array, size, x, spec)
