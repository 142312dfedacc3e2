"""What transformations of functions of trees are made of: flattening, positions of arguments, words for errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from catena.core import dtypes as _dtypes
from catena.core.aval import ShapedArray as _ShapedArray
from catena.core.namespace import shown as _shown
from catena.core.sequences import safe_map as safe_map
from catena.core.source import function_place as _function_place
from catena.core.struct import ShapeDtypeStruct as _ShapeDtypeStruct
from catena.core.tree import tree_flatten as _flatten
from catena.core.tree import tree_flatten_with_path as _flatten_with_path
from catena.core.tree import tree_unflatten as _unflatten
from catena.core.tree_errors import flatten_axes as _flatten_axes
from catena.core.tree_keys import keystr as _keystr
from catena.core.type_sharding import in_types as _in_types
from catena.core.zeros import get_aval as _get_aval
from catena.extend import linear_util as _lu
from catena.extend.core.debug_info import DebugInfo as _DebugInfo


def debug_info(
    traced_for: str,
    fun: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> _DebugInfo:
    """What errors say of a function that is traced for given arguments.

    Arguments:
      traced_for: the transformation.
      fun: the function.
      args, kwargs: its arguments.
      static_argnums, static_argnames: those that are not traced.
      result_paths_thunk: a function that returns the names of the results.
      sourceinfo: the name and place of the function; by default found out.
      signature: its signature; by default found out.
    Returns:
      A `DebugInfo`.

    >>> from catena.api_util import debug_info
    >>> debug_info("jit", lambda x, *, y: x, (1.0,), {"y": [2.0, 3.0]}).arg_names
    ('x', 'y[0]', 'y[1]')
    """
    if signature is None:
        try:
            signature = inspect.signature(fun)
        except (TypeError, ValueError):
            signature = None
    return _DebugInfo(
        traced_for,
        sourceinfo if sourceinfo is not None else _function_place(fun),
        _arg_names(signature, args, kwargs, static_argnums, static_argnames),
        result_paths_thunk,
    )


def _arg_names(signature, args, kwargs, static_argnums, static_argnames) -> tuple | None:
    static = {i % len(args) for i in static_argnums} if args else set()
    given = [(i, x) for i, x in enumerate(args) if i not in static]
    named = {k: x for k, x in kwargs.items() if k not in static_argnames}
    names = {}
    if signature is not None:
        try:
            bound = signature.bind_partial(*range(len(args)))
        except TypeError:
            return None
        for name, position in bound.arguments.items():
            several = isinstance(position, tuple)
            names |= {p: f"{name}[{k}]" for k, p in enumerate(position)} if several else {position: name}
    out = []
    for label, x in [*((names.get(i, f"args[{i}]"), x) for i, x in given), *named.items()]:
        out += [f"{label}{key}" for key in _leaf_paths(x)]
    return tuple(out)


def _leaf_paths(x) -> list[str]:
    return [_keystr(path) for path, _ in _flatten_with_path(x)[0]]


@_lu.transformation_with_aux2
def flatten_fun(f: Callable, store, in_tree, *leaves):
    """A function of a tree ``(args, kwargs)`` as a function of its leaves that returns leaves.

    Called as ``flatten_fun(fun, in_tree)``, where ``fun`` is a `WrappedFun`, it returns a `WrappedFun` and a function
    that returns the tree of the results once it has run.

    >>> import catena as jax
    >>> from catena.api_util import flatten_fun
    >>> from catena.extend import linear_util as lu
    >>> leaves, tree = jax.tree.flatten(((1, 2), {"c": 3}))
    >>> flat, out_tree = flatten_fun(lu.wrap_init(lambda a, b, c: {"sum": a + b + c}), tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([6], PyTreeDef({'sum': *}))
    """
    args, kwargs = _unflatten(in_tree, leaves)
    outs, out_tree = _flatten(f(*args, **kwargs))
    store.store(out_tree)
    return outs


@_lu.transformation_with_aux2
def flatten_fun_nokwargs(f: Callable, store, in_tree, *leaves):
    """`flatten_fun` for a tree of positional arguments only.

    >>> import catena as jax
    >>> from catena.api_util import flatten_fun_nokwargs
    >>> from catena.extend import linear_util as lu
    >>> leaves, tree = jax.tree.flatten(((1, 2), 3))
    >>> flat, out_tree = flatten_fun_nokwargs(lu.wrap_init(lambda pair, c: pair[0] + c), tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([4], PyTreeDef(*))
    """
    outs, out_tree = _flatten(f(*_unflatten(in_tree, leaves)))
    store.store(out_tree)
    return outs


def argnums_partial(f, dyn_argnums: int | Sequence[int], args: Sequence, require_static_args_hashable=True):
    """A function of some of its positional arguments, the others fixed.

    Arguments:
      f: a `WrappedFun`.
      dyn_argnums: the positions of the arguments that stay.
      args: all arguments.
      require_static_args_hashable: whether the others must be hashable.
    Returns:
      A `WrappedFun` of the arguments that stay, and these.
    Raises:
      ValueError: an argument to be fixed is not hashable.

    >>> from catena.api_util import argnums_partial
    >>> from catena.extend import linear_util as lu
    >>> f, dynamic = argnums_partial(lu.wrap_init(lambda x, y: x - y), 1, (10, 3))
    >>> f.call_wrapped(*dynamic)
    7
    """
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    numbers = tuple(i % len(args) for i in numbers)
    fixed = tuple(_Fixed(x) for i, x in enumerate(args) if i not in numbers)
    if require_static_args_hashable:
        for x in fixed:
            x.check()
    return _with_fixed(f, len(args), numbers, fixed), tuple(args[i] for i in numbers)


class _Fixed:
    """A fixed argument, as caches compare it."""

    def __init__(self, value):
        self.value = value

    def check(self) -> None:
        try:
            hash(self.value)
        except TypeError:
            raise ValueError(
                f"a static argument must be hashable, got {self.value!r} of type {type(self.value)}"
            ) from None

    def __eq__(self, other) -> bool:
        return isinstance(other, _Fixed) and type(self.value) is type(other.value) and bool(self.value == other.value)

    def __hash__(self) -> int:
        try:
            return hash(self.value)
        except TypeError:
            return id(self.value)


@_lu.transformation2
def _with_fixed(f: Callable, count: int, numbers: tuple, fixed: tuple, *dynamic, **kwargs):
    given, rest = dict(zip(numbers, dynamic, strict=True)), iter(fixed)
    return f(*[given[i] if i in given else next(rest).value for i in range(count)], **kwargs)


def donation_vector(donate_argnums, donate_argnames, in_tree, kws: bool = True) -> tuple[bool, ...]:
    """Which leaves of the arguments are given away.

    Arguments:
      donate_argnums, donate_argnames: the arguments that are.
      in_tree: the tree of ``(args, kwargs)``, or of the positional arguments.
      kws: whether it has keyword arguments.
    Returns:
      A bool for each leaf.

    >>> import catena as jax
    >>> from catena.api_util import donation_vector
    >>> donation_vector((1,), (), jax.tree.structure(((0, (0, 0)), {"a": 0})))
    (False, True, True, False)
    """
    args_tree = _unflatten(in_tree, range(in_tree.num_leaves))
    args, kwargs = args_tree if kws else (args_tree, {})
    numbers = {i % len(args) for i in donate_argnums} if args else set()
    out: list[bool] = []
    for i, x in enumerate(args):
        out += [i in numbers] * len(_flatten(x)[0])
    for name in sorted(kwargs):
        out += [name in donate_argnames] * len(_flatten(kwargs[name])[0])
    return tuple(out)


def rebase_donate_argnums(donate_argnums, static_argnums) -> tuple[int, ...]:
    """The positions of arguments that are given away, among those that are not static.

    >>> from catena.api_util import rebase_donate_argnums
    >>> rebase_donate_argnums((1, 3), (0, 2))
    (0, 1)
    """
    if not static_argnums:
        return tuple(donate_argnums)
    static = sorted(static_argnums)
    return tuple(sorted(i - sum(s < i for s in static) for i in donate_argnums))


def flatten_axes(name: str, treedef, axis_tree, *, kws: bool = False, tupled_args: bool = False) -> list:
    """A prefix of a tree as a list with an entry for each leaf.

    Arguments:
      name: what errors call it.
      treedef: the tree.
      axis_tree: a prefix of it, None counting as a leaf.
      kws: whether the tree is ``(args, kwargs)`` and the prefix speaks of ``args``; keyword arguments have axis 0 then.
      tupled_args: whether the tree is a tuple of arguments.
    Returns:
      A list.
    Raises:
      ValueError: it is no prefix of the tree.

    >>> import catena as jax
    >>> from catena.api_util import flatten_axes
    >>> flatten_axes("in_axes", jax.tree.structure((0, {"a": 0, "b": 0})), (0, None))
    [0, None, None]
    """
    if kws:
        axis_tree = (axis_tree, 0)
    return list(_flatten_axes(name, treedef, axis_tree))


def shaped_abstractify(x) -> _ShapedArray:
    """The type of an array, a scalar or a ``ShapeDtypeStruct``.

    >>> from catena.api_util import shaped_abstractify
    >>> shaped_abstractify(2.0)
    ShapedArray(float32[], weak_type=True)
    """
    if isinstance(x, _ShapeDtypeStruct):
        dtype, weak = _dtypes.canonicalize_dtype(x.dtype), bool(getattr(x, "weak_type", False))
        return _ShapedArray(x.shape, dtype, weak, sharding=_in_types(x.sharding))
    return _get_aval(x)


__dir__ = _shown(globals())
