"""Reading the arguments of a transformed function: which are static, which donated, what they are called."""

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.aval import AbstractRef, AbstractToken, ShapedArray
from catena.core.context import context
from catena.core.errors import how_to_register
from catena.core.ref import Ref
from catena.core.source import function_name, function_place
from catena.core.struct import ShapeDtypeStruct, type_of_struct
from catena.core.trace import VALUES
from catena.core.tree import tree_unflatten
from catena.core.tree_flatten import flatten_with
from catena.core.tree_keys import keystr
from catena.core.type_sharding import in_types
from catena.core.zeros import aval_of_python_value, get_aval


def signature_of(fun) -> inspect.Signature | None:
    """The signature of a callable, or ``None`` where it has none that Python can see."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def needs_arguments(fun) -> bool:
    """Whether a callable cannot be called without arguments."""
    signature = signature_of(fun)
    if signature is None:
        return True
    collecting = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(p.default is p.empty and p.kind not in collecting for p in signature.parameters.values())


def as_int_tuple(x, name: str) -> tuple:
    """``argnums`` as a tuple of integers."""
    if x is None:
        return ()
    try:
        return tuple(operator.index(i) for i in x) if isinstance(x, (tuple, list, range, set)) else (operator.index(x),)
    except TypeError:
        raise TypeError(f"{name} must be an int or a sequence of ints, got {x!r}") from None


def as_name_tuple(x, name: str) -> tuple:
    """``argnames`` as a tuple of strings."""
    if x is None:
        return ()
    names = (x,) if isinstance(x, str) else tuple(x)
    if not all(isinstance(n, str) for n in names):
        raise TypeError(f"{name} must be a str or a sequence of str, got {x!r}")
    return names


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def resolve_argnums(signature, argnums, argnames, kind: str) -> tuple[tuple, tuple]:
    """Positions and names that agree (see below), checked to exist in the signature, where that is known."""
    nums, names = as_int_tuple(argnums, f"{kind}_argnums"), as_name_tuple(argnames, f"{kind}_argnames")
    if signature is None:
        return nums, names
    check_argnums(signature, nums, kind)
    check_argnames(signature, names, kind)
    return infer_argnums_and_argnames(signature, None if argnums is None else nums, None if argnames is None else names)


def infer_argnums_and_argnames(sig: inspect.Signature, argnums, argnames) -> tuple[tuple, tuple]:
    """Positions and names that agree: where only one of the two is given, the other is read off the signature."""
    nums, names = as_int_tuple(argnums, "argnums"), as_name_tuple(argnames, "argnames")
    positional = [p for p in sig.parameters.values() if p.kind in POSITIONAL]
    if argnums is None and names:
        nums = tuple(i for i, p in enumerate(positional) if p.name in names)
    if argnames is None and nums:
        by_keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = tuple(
            positional[i].name
            for i in nums
            if -len(positional) <= i < len(positional) and positional[i].kind == by_keyword
        )
    return nums, names


def check_argnums(signature, nums, kind: str):
    """Raise where a position does not exist in the signature."""
    parameters = signature.parameters.values()
    if any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return
    count = sum(p.kind in POSITIONAL for p in parameters)
    if any(not -count <= i < count for i in nums):
        raise ValueError(f"Jitted function has {kind}_argnums={nums}, but only accepts {count} positional arguments.")


def check_argnames(signature, names, kind: str):
    """Raise where a name does not exist in the signature."""
    parameters = signature.parameters.values()
    if any(p.kind == inspect.Parameter.VAR_KEYWORD for p in parameters):
        return
    known = {
        p.name
        for p in parameters
        if p.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)
    }
    unknown = set(names) - known
    if unknown:
        raise ValueError(
            f"Jitted function has invalid argnames {unknown} in {kind}_argnames. Function does not take these args."
        )


def check_disjoint(static: tuple[tuple, tuple], donate: tuple[tuple, tuple]):
    """Raise where an argument is both static and donated."""
    for kind, both in (
        ("argnums", set(static[0]) & set(donate[0])),
        ("argnames", set(static[1]) & set(donate[1])),
    ):
        if both:
            raise ValueError(
                f"static_{kind} and donate_{kind} cannot intersect, but {sorted(both)} appear in both: a static "
                "argument is no array that could be donated"
            )


class Static:
    """A static argument in a cache key; equal by value and type."""

    __slots__ = ("value", "_hash")

    def __init__(self, value: Any):
        self.value = value
        try:
            self._hash = hash(value)
        except TypeError as error:
            raise ValueError(
                "Non-hashable static arguments are not supported. An error occurred while trying to hash an object of "
                f"type {type(value)}, {value}. The error was:\nTypeError: {error}\nA static argument is compared with "
                "those of earlier calls: pass a tuple for a list, a frozen dataclass for a dict, and arrays as "
                "arguments that are not static."
            ) from None

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        if type(self.value) is not type(other.value):
            return False
        try:
            return bool(self.value == other.value)
        except Exception as error:
            kind = type(self.value)
            raise ValueError(
                "static arguments should be comparable using __eq__. The following error was raised when comparing two "
                f"objects of types {kind} and {kind}. The error was:\n{type(error).__name__}: {error}"
            ) from error


def argument_names(fun, args, kwargs, static_nums=(), static_names=()) -> list[str]:
    """For each leaf of the dynamic arguments, how the user would write it: ``x``, ``params['w'][0]``."""
    signature = signature_of(fun)
    parameters = list(signature.parameters.values()) if signature else []
    names = []
    for i, x in enumerate(args):
        if i not in static_nums:
            names += leaf_names(positional_name(parameters, i), x)
    for key in sorted(kwargs):
        if key not in static_names:
            names += leaf_names(key, kwargs[key])
    return names


def argument_name(fun, i: int) -> str:
    """The name of the ``i``-th positional argument of a callable."""
    signature = signature_of(fun)
    return positional_name(list(signature.parameters.values()) if signature else [], i)


def positional_name(parameters, i: int) -> str:
    """The name of the ``i``-th positional argument."""
    if i < len(parameters) and parameters[i].kind in POSITIONAL:
        return parameters[i].name
    for j, p in enumerate(parameters):
        if p.kind == inspect.Parameter.VAR_POSITIONAL and i >= j:
            return f"{p.name}[{i - j}]"
    return f"args[{i}]"


_LONGEST_PATH = 64  # keys; what is read by people needs no more, and takes time linear in the depth


def leaf_names(root: str, tree) -> list[str]:
    """The names of the leaves of an argument; those of deep leaves are cut in the middle."""
    return [root + keystr(path) for path, _ in flatten_with(tree, None, longest=_LONGEST_PATH)[0]]


def leaf_aval(x):
    """The type of a leaf, or ``None`` where it is not a value of the language."""
    if isinstance(x, VALUES):
        return x.aval
    if isinstance(x, (ShapedArray, AbstractToken, AbstractRef)):
        return x
    if type(x) is Ref:
        return x.aval
    if type(x) is ShapeDtypeStruct:
        return type_of_struct(x)
    if dtypes.is_scalar_or_numpy(x):
        return aval_of_python_value(x)
    if isinstance(x, (np.ndarray, np.generic)):  # of strings, objects, dates
        return None
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__jax_array__"):
        return ShapedArray(
            x.shape,
            dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True),
            getattr(x, "weak_type", False) or False,
            sharding=in_types(getattr(x, "sharding", None)),
        )
    return None


def check_aliasing(functions, closed_over, passed, names: Callable, what: str):
    """Raise where one reference is passed twice, or closed over and passed: what is written through one name would be
    read through the other.

    Arguments:
      functions: those that take the values; the first is named.
      closed_over, passed: the values, references among them by their cells or tracers.
      names: gives the names of those that are passed.
      what: what the functions are traced for.
    """
    references = [x for x in (*closed_over, *passed) if type(get_aval(x)) is AbstractRef]
    if len({id(x) for x in references}) == len(references):
        return
    seen: dict = {}
    for x, name in zip((*closed_over, *passed), [*[None] * len(closed_over), *names()], strict=True):
        if type(get_aval(x)) is AbstractRef and id(x) in seen:
            raise aliased(x, seen[id(x)], name, f"{function_place(functions[0])} for {what}")
        seen[id(x)] = name


def aliased(x, first: str | None, name: str | None, what: str) -> ValueError:
    """The error for a reference that arrives twice; a place without a name is a closure."""
    source = getattr(x, "source", None)
    made = f" It was made at {source}." if source is not None else ""
    kind = f"reference of type {x.aval.str_short()}"
    if first is None or name is None:
        return ValueError(
            f"when tracing {what}, a mutable array {kind} was both closed over and passed as the argument "
            f"{name or first}: pass it, or close over it.{made}"
        )
    return ValueError(
        "only one reference to a mutable array may be passed as an argument to a function, but when tracing "
        f"{what} the {kind} appeared at both {first} and {name}.{made}"
    )


def bad_leaf(fun, x, name: str) -> Exception:
    """The error for an argument that is not a value of the language."""
    if hasattr(x, "__jax_array__"):
        return ValueError(
            f"The argument {name} of {function_place(fun)} is a {type(x).__name__}, which has __jax_array__ but is not "
            "a pytree. Transformations see only pytrees: convert it with jax.numpy.asarray(), or register its class "
            f"with jax.tree_util.register_pytree_node_class or register_dataclass to keep {type(x).__name__} through "
            "the transformation."
        )
    return TypeError(
        f"Error interpreting argument to {fun!r} as an abstract array. The problematic value is of type {type(x)} and "
        f"was passed to the function at path {name}.\nThis typically means that a jit-wrapped function was called with "
        f"a non-array argument. If {name} should be a compile-time constant of {function_name(fun)}, mark it with "
        f"static_argnums or static_argnames.{how_to_register(x)}"
    )


def leaf_paths(tree) -> list[str]:
    """For each leaf of a tree structure, how to reach it: ``[0]['w']``."""
    return leaf_names("", tree_unflatten(tree, [0] * tree.num_leaves))


def check_may_trace(fun) -> None:
    """Raise where the flag ``jax_no_tracing`` forbids to trace ``fun``."""
    if context.no_tracing:
        raise RuntimeError(f"re-tracing function {function_place(fun)} for `jit`, but 'no_tracing' is set")
