"""How arrays lie in memory: which axis is the slowest, and which the fastest.

An eager array lies as it is asked to. A compiled program reads arguments however they lie and gives results whose last
axis is the fastest; inside, the compiler chooses, and a constraint says nothing to it.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar

import numpy as np

from catena.core.namespace import shown as _shown
from catena.core.primitive import Primitive
from catena.core.sharding import Sharding
from catena.core.trace import leaf_value
from catena.core.traceback import open_door as _open_door
from catena.core.tree import tree_flatten
from catena.core.tree_errors import broadcast_prefix
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import Zero
from catena.lax.structure import linear_jvp


class AutoLayout:
    """The layout that the compiler chooses: ``Layout.AUTO``."""

    __slots__ = ()

    def __repr__(self):
        return "AUTO"


class Layout:
    """The order of axes in memory.

    Arguments:
      major_to_minor: the axes, the slowest first, the fastest last.
      tiling: sizes of tiles; a CPU has none.
      sub_byte_element_size_in_bits: of elements that are packed; none are here.

    >>> Layout(major_to_minor=(1, 0))
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    __slots__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits")
    AUTO: ClassVar[AutoLayout] = AutoLayout()

    def __init__(
        self,
        major_to_minor: tuple[int, ...],
        tiling: tuple[tuple[int, ...], ...] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ):
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits = operator.index(sub_byte_element_size_in_bits)

    def update(self, **parts: Any) -> Layout:
        """The same layout with some parts replaced."""
        return Layout(**{name: getattr(self, name) for name in Layout.__slots__} | parts)

    def check_compatible_aval(self, aval_shape: tuple) -> None:
        """Raise ValueError where an array of this shape cannot lie so."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(
                f"the length of major_to_minor must be the number of axes, got major_to_minor={self.major_to_minor} "
                f"and the shape {tuple(aval_shape)}"
            )
        if sorted(self.major_to_minor) != list(range(len(aval_shape))):
            raise ValueError(f"major_to_minor must name every axis once, got {self.major_to_minor}")

    def _parts(self) -> tuple:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other):
        return isinstance(other, Layout) and self._parts() == other._parts()

    def __hash__(self):
        return hash(self._parts())

    def __repr__(self):
        parts = ", ".join(f"{name}={getattr(self, name)}" for name in Layout.__slots__)
        return f"Layout({parts})"


class Format:
    """A layout, and the devices that an array lies on.

    Arguments:
      layout: a ``Layout``, ``Layout.AUTO`` or None.
      sharding: a ``Sharding``, or None where the layout is none or ``AUTO``.
    Raises:
      TypeError, ValueError: an argument is not as described.

    >>> Format()
    Format(layout=None, sharding=None)
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | AutoLayout | None = None, sharding: Sharding | None = None):
        if layout is not None and not isinstance(layout, (Layout, AutoLayout)):
            raise TypeError(f"Format: layout must be a Layout, Layout.AUTO or None, got {layout!r} of {type(layout)}")
        if sharding is not None and not isinstance(sharding, Sharding):
            raise TypeError(f"Format: sharding must be a Sharding or None, got {sharding!r} of {type(sharding)}")
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError("Format: with a Layout, sharding must say on which devices; it is None")
        self.layout, self.sharding = layout, sharding

    def __eq__(self, other):
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self):
        return hash((self.layout, self.sharding))

    def __repr__(self):
        return f"Format(layout={self.layout}, sharding={self.sharding})"


def laid_out(x: np.ndarray, *, layout: Layout) -> np.ndarray:
    """The array with its axes in this order in memory."""
    order = layout.major_to_minor
    return np.asarray(x.transpose(order), order="C").transpose(np.argsort(order))  # which keeps scalars scalars


def _batch(axis, args, dims, *, layout):
    (x,), (d,) = args, dims
    inner = [i + (i >= d) for i in layout.major_to_minor]
    return layout_constraint_p.bind(x, layout=layout.update(major_to_minor=(d, *inner))), d


layout_constraint_p = Primitive(
    "layout_constraint",
    abstract=lambda x, *, layout: x,
    evaluate=laid_out,
    transpose=lambda ct, x, **params: [ct if type(ct) is Zero else layout_constraint_p.bind(ct, **params)],
    batch=_batch,
    lower=lambda b, x, *, layout: x,
)
layout_constraint_p.jvp = linear_jvp(layout_constraint_p)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Arrays that lie in memory in a certain order of axes.

    Arguments:
      x: a tree of arrays.
      layouts: a ``Layout`` for all, or a tree of them that is a prefix of ``x``.
    Returns:
      The same values. Eager ones lie so; inside of programs the compiler chooses.
    Raises:
      ValueError: an array cannot lie so, or this is no layout of a CPU.

    >>> import catena.numpy as jnp, numpy as np
    >>> np.asarray(with_layout_constraint(jnp.ones((2, 3)), Layout((1, 0)))).strides
    (4, 8)
    """
    leaves, tree = tree_flatten(x)
    asked = broadcast_prefix(layouts, x)
    leaves = [leaf_value(leaf) for leaf in leaves]
    for leaf, layout in zip(leaves, asked, strict=True):
        check_layout(leaf, layout)
    return tree.unflatten([layout_constraint_p.bind(a, layout=b) for a, b in zip(leaves, asked, strict=True)])


def check_layout(x, layout) -> None:
    """Raise where this is no layout, or none that ``x`` can have on a CPU."""
    if not isinstance(layout, Layout):
        raise ValueError(f"with_layout_constraint: layouts must be of the class Layout, got {layout!r}")
    if layout.tiling or layout.sub_byte_element_size_in_bits:
        raise ValueError(f"with_layout_constraint: a CPU has no tiles and no packed elements, got {layout}")
    try:
        layout.check_compatible_aval(x.shape)
    except ValueError as error:
        raise ValueError(f"with_layout_constraint: {error}") from None


_open_door(globals(), "catena.experimental.layout", own=True)
__dir__ = _shown(globals())

_absent(globals())
