"""In what order of axes, and on which devices, arrays lie: what `jax.device_put` may be told beside a place."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

import numpy as np

from catena.core.sharding import Sharding


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

    >>> from catena.experimental.layout import Layout
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

    >>> from catena.experimental.layout import Format
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


def layout_of_memory(x: np.ndarray) -> Layout:
    """The order in which the axes of an array lie; rows where it is not determined."""
    rows = x.flags.c_contiguous or not all(x.strides)
    order = range(x.ndim) if rows else sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    return Layout(tuple(order), tiling=())


def format_in_rows(ndim: int, sharding: Sharding) -> Format:
    """The format of arrays whose last axis is the fastest, as programs write them."""
    return Format(Layout(tuple(range(ndim)), tiling=()), sharding)
