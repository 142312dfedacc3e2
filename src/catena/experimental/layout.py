"""How arrays lie in memory: which axis is the slowest, and which the fastest.

An eager array lies as it is asked to. A compiled program reads arguments however they lie and gives results whose last
axis is the fastest; inside, the compiler chooses, and a constraint says nothing to it.
"""

from __future__ import annotations

from typing import Any

from catena.core.formats import AutoLayout as AutoLayout
from catena.core.formats import Format as Format
from catena.core.formats import Layout as Layout
from catena.core.namespace import shown as _shown
from catena.core.trace import leaf_value
from catena.core.traceback import open_door as _open_door
from catena.core.tree import tree_flatten
from catena.core.tree_errors import broadcast_prefix
from catena.core.unbuilt import absent as _absent
from catena.lax.layout_constraint import layout_constraint_p


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
