"""Slices of a known size at an unknown place: ``ds(start, size)`` as an index."""

from __future__ import annotations

from typing import Any

from catena.core.tree import register_pytree_node_class


def is_static(x) -> bool:
    """Whether ``x`` is an integer that is known now, not a traced one."""
    return hasattr(x, "__index__") and not hasattr(x, "_trace")


@register_pytree_node_class
class Slice:
    """``size`` elements from ``start`` on, ``stride`` apart; ``start`` may be traced."""

    __slots__ = ("start", "size", "stride")

    def __init__(self, start: Any, size: Any, stride: int = 1):
        self.start, self.size, self.stride = start, size, stride

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is known only when the program runs."""
        return not is_static(self.start)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether the size is known only when the program runs; such slices cannot index arrays."""
        return not is_static(self.size)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """What the Python slice ``slc`` selects from an axis of this size."""
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"the step of a slice for ds must be positive, got {step}")
        return cls(start, max((stop - start + step - 1) // step, 0), step)

    def tree_flatten(self):
        """Traced parts as children, static ones as data."""
        dynamic = [not isinstance(x, int) for x in (self.start, self.size)]
        children = [x for x, d in zip((self.start, self.size), dynamic, strict=True) if d]
        static = tuple(None if d else x for x, d in zip((self.start, self.size), dynamic, strict=True))
        return children, (static, tuple(dynamic), self.stride)

    @classmethod
    def tree_unflatten(cls, data, children) -> Slice:
        static, dynamic, stride = data
        given = iter(children)
        start, size = (next(given) if d else s for s, d in zip(static, dynamic, strict=True))
        return cls(start, size, stride)

    def __eq__(self, other):
        return isinstance(other, Slice) and (self.start, self.size, self.stride) == (
            other.start,
            other.size,
            other.stride,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"Slice(start={self.start}, size={self.size}, stride={self.stride})"


def ds(start, size=None, stride=None) -> Slice:
    """A slice of a known size from a place that may be known only when the program runs, for use as an index.

    Arguments:
      start: the first index, an integer or an integer scalar array; or, without ``size``, the size, starting
        at 0.
      size: the number of elements.
      stride: the distance between them; 1 by default.
    Returns:
      A ``Slice``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jnp.arange(10.0)[jax.ds(3, 2)]
    Array([3., 4.], dtype=float32)
    """
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)
