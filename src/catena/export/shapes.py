"""Symbolic shapes, as far as there are any: programs are of known lengths, and a variable length is refused.

The functions take what a shape of known lengths says, so that programs that ask them go on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from catena.core.struct import ShapeDtypeStruct
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.tree_errors import broadcast_prefix
from catena.transform.arguments import leaf_aval

_POLYMORPHIC = (
    "programs here are of known lengths, so there are no symbolic dimensions: export the function for each shape"
)


class SymbolicScope:
    """The variables of symbolic shapes and what is known of them: here there are none.

    Arguments:
      constraints_str: what is known of variables; must be empty.
    Raises:
      NotImplementedError: there are constraints.

    >>> import catena as jax
    >>> scope = jax.export.SymbolicScope()
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        check_constraints(constraints_str)


def check_constraints(constraints: Sequence[str]) -> None:
    """Raise where something is said of variables."""
    if isinstance(constraints, str) or not all(isinstance(c, str) for c in constraints):
        raise ValueError(f"constraints must be a sequence of strings, got {constraints!r}")
    if constraints:
        raise NotImplementedError(f"constraints {tuple(constraints)}: {_POLYMORPHIC}")


def is_symbolic_dim(p: Any) -> bool:
    """Whether a length is symbolic, which none is.

    Arguments:
      p: a length.

    >>> import catena as jax
    >>> jax.export.is_symbolic_dim(3)
    False
    """
    return False


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[int, ...]:
    """The shape that a text describes: lengths, ``_`` for those of ``like``, ``...`` for its others.

    Arguments:
      shape_spec: such as ``"2, _, ..."``; None means ``"..."``.
      constraints: must be empty.
      scope: a scope, or None.
      like: a shape of as many axes.
    Returns:
      A tuple of integers.
    Raises:
      ValueError: the text is no shape, or does not fit ``like``. NotImplementedError: it has a variable.

    >>> import catena as jax
    >>> jax.export.symbolic_shape("2, _, ...", like=(2, 3, 4))
    (2, 3, 4)
    """
    check_constraints(constraints)
    if scope is not None and not isinstance(scope, SymbolicScope):
        raise TypeError(f"scope must be a SymbolicScope or None, got {scope!r}")
    text = "..." if shape_spec is None else shape_spec
    if not isinstance(text, str):
        raise TypeError(f"shape_spec must be a string or None, got {shape_spec!r}")
    items = [item.strip() for item in text.strip().removeprefix("(").removesuffix(")").strip().rstrip(",").split(",")]
    items = [] if items == [""] else items
    known = None if like is None else tuple(like)
    if items and items[-1] == "...":
        if known is None:
            raise ValueError(f"symbolic shape {text!r}: '...' needs a shape to be like")
        items[-1:] = ["_"] * (len(known) - len(items) + 1)
    if known is not None and len(items) != len(known):
        raise ValueError(f"symbolic shape {text!r} has {len(items)} dimensions, and like={known} has {len(known)}")
    return tuple(_length(item, text, i, known) for i, item in enumerate(items))


def _length(item: str, text: str, position: int, like: tuple | None) -> int:
    known = None if like is None else like[position]
    if item == "_":
        if known is None:
            raise ValueError(f"symbolic shape {text!r}: '_' in dimension {position} needs a length to be like")
        return int(known)
    if not re.fullmatch(r"[0-9]+", item):
        if re.search(r"[A-Za-z]", item):
            raise NotImplementedError(f"symbolic shape {text!r}: {_POLYMORPHIC}")
        raise ValueError(f"symbolic shape {text!r}: dimension {position} must be a length, got {item!r}")
    if known is not None and int(item) != known:
        raise ValueError(f"symbolic shape {text!r}: dimension {position} is {known} in like={like}")
    return int(item)


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Shapes and dtypes of arguments, with shapes as texts describe them.

    Arguments:
      args: a tree of arrays, or of what has shape and dtype.
      shapes_specs: a text or None for all, or a tree of them that is a prefix of ``args``.
      constraints, scope: as for ``symbolic_shape``.
    Returns:
      A tree of ``ShapeDtypeStruct``.
    Raises:
      ValueError, NotImplementedError: as ``symbolic_shape``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.export.symbolic_args_specs((jnp.zeros((2, 3)),), "_, 3")
    (ShapeDtypeStruct(shape=(2, 3), dtype=float32),)
    """
    leaves, tree = tree_flatten(args)
    specs = broadcast_prefix(shapes_specs, args, lambda x: x is None)
    avals = [leaf_aval(x) for x in leaves]
    for x, aval in zip(leaves, avals, strict=True):
        if aval is None:
            raise TypeError(f"symbolic_args_specs: arguments must have shape and dtype, got {x!r}")
    shapes = [
        symbolic_shape(spec, constraints=constraints, scope=scope, like=aval.shape)
        for spec, aval in zip(specs, avals, strict=True)
    ]
    return tree_unflatten(tree, [ShapeDtypeStruct(s, a.dtype) for s, a in zip(shapes, avals, strict=True)])
