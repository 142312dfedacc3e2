"""Symbolic shapes, as texts: ``"batch, 2*n + 1"``. `jax.eval_shape` tells what shapes results have for them, and
functions are exported for them.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from catena.core import dimensions
from catena.core.dimensions import Constraint, Dimension, Scope
from catena.core.struct import ShapeDtypeStruct
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.tree_errors import broadcast_prefix
from catena.transform.arguments import leaf_aval

_OPERATORS: dict[type, Callable] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_RELATIONS = (">=", "<=", "==")


class SymbolicScope(Scope):
    """Variables of symbolic shapes that may meet, and what is known of them.

    Arguments:
      constraints_str: texts such as ``"a >= 2"``, ``"b <= 2*a"`` and ``"mod(a, 8) == 0"``.
    Raises:
      ValueError: a text is none of these.

    >>> import catena as jax
    >>> scope = jax.export.SymbolicScope(["a >= 2"])
    >>> (a,) = jax.export.symbolic_shape("a", scope=scope)
    >>> a - 1 >= 1
    True
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        if isinstance(constraints_str, str) or not all(isinstance(c, str) for c in constraints_str):
            raise ValueError(f"constraints must be a sequence of strings, got {constraints_str!r}")
        self.constraints = tuple(_constraint(text, self) for text in constraints_str)

    def __repr__(self):
        said = [f"{c.left} {c.relation} {c.right}" for c in self.constraints]
        return f"SymbolicScope({said if said else ''})"


def _constraint(text: str, scope: Scope) -> Constraint:
    for relation in _RELATIONS:
        left, found, right = text.partition(relation)
        if found:
            where = f"constraint {text!r}"
            return Constraint(length_of(left, where, scope), relation, length_of(right, where, scope))
    raise ValueError(f"constraint {text!r} must contain one of '==' or '>=' or '<='")


def is_symbolic_dim(p: Any) -> bool:
    """Whether a length is symbolic.

    Arguments:
      p: a length.

    >>> import catena as jax
    >>> jax.export.is_symbolic_dim(3), jax.export.is_symbolic_dim(jax.export.symbolic_shape("a")[0])
    (False, True)
    """
    return isinstance(p, Dimension)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[int | Dimension, ...]:
    """The shape that a text describes: known lengths or variables, ``_`` for those of ``like``, ``...`` for others.

    ``jax.eval_shape`` takes such shapes, and so does what ``export`` returns. Other functions need known lengths.

    Arguments:
      shape_spec: such as ``"batch, 2*n + 1, _, ..."``, with ``+ - * ^``, ``floordiv``, ``mod``, ``max`` and ``min``;
        None means ``"..."``.
      constraints: what is known of its variables, as for ``SymbolicScope``, where no scope is given.
      scope: that of its variables; None for one of their own.
      like: a shape of as many axes.
    Returns:
      A tuple of integers and symbolic dimensions.
    Raises:
      ValueError: the text is no shape, or does not fit ``like``; or both constraints and a scope are given.

    >>> import catena as jax, catena.numpy as jnp
    >>> batch, n = jax.export.symbolic_shape("batch, n")
    >>> x = jax.ShapeDtypeStruct((batch, n), jnp.float32)
    >>> jax.eval_shape(lambda x: jnp.pad(x, 1).reshape(-1)[::2].sum(keepdims=True) @ x[0, :1], x)
    ShapeDtypeStruct(shape=(), dtype=float32)
    >>> jax.eval_shape(lambda x: jnp.concatenate([x, x[:, ::2]], 1), jax.ShapeDtypeStruct((batch, 4), jnp.float32))
    ShapeDtypeStruct(shape=(batch, 6), dtype=float32)
    >>> jax.export.symbolic_shape("2, _, ...", like=(2, 3, 4))
    (2, 3, 4)
    >>> mean = jax.export.export(jax.jit(lambda x: jnp.mean(x, 0)))(x)
    >>> mean
    <Exported <lambda>(float32[batch,n]) -> (float32[n]), for cpu>
    >>> mean.call(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([2., 3.], dtype=float32)
    """
    if scope is not None and not isinstance(scope, SymbolicScope):
        raise TypeError(f"scope must be a SymbolicScope or None, got {scope!r}")
    if scope is not None and constraints:
        raise ValueError(
            "symbolic_shape: give either a scope or constraints: those of a scope are said when it is made"
        )
    scope = scope or SymbolicScope(constraints)
    text = "..." if shape_spec is None else shape_spec
    if not isinstance(text, str):
        raise TypeError(f"shape_spec must be a string or None, got {shape_spec!r}")
    items = _items(text)
    known = None if like is None else tuple(like)
    if items and items[-1] == "...":
        if known is None:
            raise ValueError(f"symbolic shape {text!r}: '...' needs a shape to be like")
        items[-1:] = ["_"] * (len(known) - len(items) + 1)
    if known is not None and len(items) != len(known):
        raise ValueError(f"symbolic shape {text!r} has {len(items)} dimensions, and like={known} has {len(known)}")
    return tuple(_length(item, text, i, known, scope) for i, item in enumerate(items))


def _items(text: str) -> list[str]:
    """The dimensions of a shape: between commas that stand in no parentheses."""
    inside = text.strip()
    if inside.startswith("(") and inside.endswith(")"):
        inside = inside[1:-1].strip()
    items, depth = [""], 0
    for character in inside.rstrip(","):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return [] if items == [""] else [item.strip() for item in items]


def _length(item: str, text: str, position: int, like: tuple | None, scope: Scope) -> int | Dimension:
    known = None if like is None else like[position]
    if item == "_":
        if known is None:
            raise ValueError(f"symbolic shape {text!r}: '_' in dimension {position} needs a length to be like")
        return int(known)
    made = length_of(item, f"symbolic shape {text!r}: dimension {position}", scope)
    if isinstance(made, int) and known is not None and made != known:
        raise ValueError(f"symbolic shape {text!r}: dimension {position} is {known} in like={like}")
    return made


def length_of(text: str, where: str, scope: Scope) -> Any:
    """The length that a text says."""
    try:
        return _read(ast.parse(text.strip().replace("^", "**"), mode="eval").body, scope)
    except (SyntaxError, TypeError, KeyError):
        raise ValueError(
            f"{where} must be a length, such as 3, n, 2*n + 1 or floordiv(n, 2), got {text.strip()!r}"
        ) from None


def _read(node: Any, scope: Scope) -> Any:
    """The length of an expression. Raises TypeError where it is none, and KeyError for other operators."""
    if isinstance(node, ast.Name):
        return dimensions.variable(scope, node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_read(node.operand, scope)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _read(node.left, scope) ** _read(node.right, scope)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_read(node.left, scope), _read(node.right, scope))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        return dimensions.called(node.func.id, *(_read(a, scope) for a in node.args))
    raise TypeError


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Shapes and dtypes of arguments, with shapes as texts describe them; their variables are of one scope.

    Arguments:
      args: a tree of arrays, or of what has shape and dtype.
      shapes_specs: a text or None for all, or a tree of them that is a prefix of ``args``.
      constraints, scope: as for ``symbolic_shape``.
    Returns:
      A tree of ``ShapeDtypeStruct``.
    Raises:
      ValueError: as ``symbolic_shape``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.export.symbolic_args_specs((jnp.zeros((2, 3)),), "_, 3")
    (ShapeDtypeStruct(shape=(2, 3), dtype=float32),)
    """
    scope = scope or SymbolicScope(constraints)
    leaves, tree = tree_flatten(args)
    specs = broadcast_prefix(shapes_specs, args, lambda x: x is None)
    avals = [leaf_aval(x) for x in leaves]
    for x, aval in zip(leaves, avals, strict=True):
        if aval is None:
            raise TypeError(f"symbolic_args_specs: arguments must have shape and dtype, got {x!r}")
    shapes = [symbolic_shape(spec, scope=scope, like=aval.shape) for spec, aval in zip(specs, avals, strict=True)]
    return tree_unflatten(tree, [ShapeDtypeStruct(s, a.dtype) for s, a in zip(shapes, avals, strict=True)])
