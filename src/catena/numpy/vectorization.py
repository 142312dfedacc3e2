"""Functions of single elements or lines applied to whole arrays, by ``vmap``."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core.array import Array
from catena.core.tree import tree_map
from catena.numpy.boundary import as_array_argument, canonical_axis
from catena.numpy.conversion import from_object
from catena.numpy.protocol import asking
from catena.numpy.shaping import expand_dims
from catena.transform.vmap import vmap
from catena.typing import ArrayLike

_NAME = r"\w+"
_GROUP = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_GROUPS = rf"{_GROUP}(?:,{_GROUP})*"
_SIGNATURE = re.compile(rf"{_GROUPS}->{_GROUPS}")


def parse(signature: str) -> tuple:
    """The core dimensions of each argument and each result."""
    text = signature.replace(" ", "")
    if not _SIGNATURE.fullmatch(text):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    sides = text.split("->")
    return tuple([tuple(re.findall(_NAME, group)) for group in re.findall(_GROUP, side)] for side in sides)


def vectorize(pyfunc: Callable, *, excluded: Any = frozenset(), signature: str | None = None) -> Callable:
    """A function of single elements, or of arrays of core dimensions, made to work on all of larger arrays.

    Arguments:
      pyfunc: the function.
      excluded: positions (integers) and names (strings) of arguments that are passed on as they are, as every None is.
      signature: the core dimensions of arguments and results, such as ``"(n,m),(m)->(n)"``; by default none.
    Returns:
      A function whose arguments broadcast in all but their core dimensions.
    Raises:
      TypeError: ``excluded`` holds something else. ValueError: the signature is not valid; on a call, shapes
        do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones((2, 3)), jnp.arange(3))
    Array([3., 3.], dtype=float32)
    """
    if any(not isinstance(item, str | int) for item in excluded):
        raise TypeError(f"jax.numpy.vectorize can only exclude integer or string arguments, but excluded={excluded!r}")
    if any(isinstance(item, int) and item < 0 for item in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    excluded = frozenset(excluded)

    @functools.wraps(pyfunc)
    def vectorized(*args, **kwargs):
        note = f"on vectorized function with {excluded=} and {signature=}"
        fun, given = split_excluded(pyfunc, excluded, args, kwargs)
        inputs, outputs = parse(signature) if signature is not None else ([()] * len(given), None)
        if len(given) != len(inputs):
            raise TypeError(f"wrong number of positional arguments: expected {len(inputs)}, got {len(given)} {note}")
        fun, inputs, given = _without_none(fun, inputs, given, signature)
        arrays = [_array(pyfunc, x, i) for i, x in enumerate(given)]
        sizes = core_sizes(arrays, inputs, note)
        fun = fun if outputs is None else checked(fun, sizes, outputs, note)
        return _mapped(fun, inputs, arrays)

    return asking(vectorized)


def _array(pyfunc, x, place: int):
    x = from_object(x) if isinstance(x, list | tuple) else x
    return as_array_argument(getattr(pyfunc, "__name__", "vectorize"), x, place)


def split_excluded(pyfunc, excluded, args: tuple, kwargs: dict) -> tuple:
    """The function of the arguments that are not excluded, and these arguments."""
    names = [name for name in kwargs if name not in excluded]
    places = [i for i in range(len(args)) if i not in excluded]

    def fun(*arrays):
        full = list(args)
        for i, array in zip(places, arrays, strict=False):
            full[i] = array
        rest = dict(zip(names, arrays[len(places) :], strict=True))
        return pyfunc(*full, **{**kwargs, **rest})

    return fun, [args[i] for i in places] + [kwargs[name] for name in names]


def _without_none(fun, inputs: list, given: list, signature: str | None) -> tuple:
    """The function of the arguments that are not None, their core dimensions, and these arguments."""
    places = [i for i, x in enumerate(given) if x is not None]
    if len(places) == len(given):
        return fun, inputs, given
    lacking = {i for i, core in enumerate(inputs) if core and given[i] is None}
    if lacking:
        raise ValueError(f"Cannot pass None at locations {lacking} with {signature=}")

    def without_none(*arrays):
        full = list(given)
        for i, array in zip(places, arrays, strict=True):
            full[i] = array
        return fun(*full)

    return without_none, [inputs[i] for i in places], [given[i] for i in places]


def core_sizes(arrays, inputs: list, note: str) -> dict[str, int]:
    """The sizes of the core dimensions of arrays, by name."""
    sizes: dict[str, int] = {}
    for array, core in zip(arrays, inputs, strict=True):
        _note_sizes(sizes, array.shape, core, note)
    return sizes


def _note_sizes(sizes: dict, shape: tuple, core: tuple, note: str):
    """Note the sizes of core dimensions; those of one name must be equal."""
    if len(shape) < len(core):
        raise ValueError(
            f"input with shape {shape} does not have enough dimensions for all core dimensions {core} {note}"
        )
    for name, size in zip(core, shape[len(shape) - len(core) :], strict=True):
        if sizes.setdefault(name, size) != size:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]} {note}")


def checked(fun, sizes: dict, outputs, note: str):
    """``fun`` with a check of the shapes that it returns: by name, core dimensions have ``sizes``, which it adds to."""

    def checking(*args):
        result = fun(*args)
        many = isinstance(result, tuple | list)
        results = list(result) if many else [result]
        if many and len(results) != len(outputs):
            raise TypeError(f"wrong number of output arguments: expected {len(outputs)}, got {len(results)} {note}")
        if not many and len(outputs) > 1:
            raise TypeError(f"output must be a tuple when multiple outputs are expected, got: {result!r} {note}")
        results = [from_object(r) for r in results]
        for part, core in zip(results, outputs, strict=True):
            if part.ndim != len(core):
                raise ValueError(f"output shape {part.shape} does not match core dimensions {core} {note}")
            _note_sizes(sizes, part.shape, core, note)
        return tuple(results) if many else results[0]

    return checking


def _mapped(fun, inputs, arrays):
    """``fun`` under one ``vmap`` for each axis that arguments have before their core dimensions.

    Where only some arguments have an axis of size greater than 1, only these are mapped, so that no operation
    is repeated for others.
    """
    stacks = [a.shape[: a.ndim - len(core)] for a, core in zip(arrays, inputs, strict=True)]
    shape = lax.broadcast_shapes(*stacks)
    plain = []
    for array, stack in zip(arrays, stacks, strict=True):
        ones = tuple(i for i, n in enumerate(stack) if n == 1 and shape[len(shape) - len(stack) + i] == 1)
        plain.append(lax.squeeze(array, ones) if ones else array)
    kept = [i for i, n in enumerate(shape) if n != 1]
    shrunk, axes = [], []
    for array, stack in zip(plain, stacks, strict=True):
        offset = len(shape) - len(stack)
        have = [i for i in kept if i >= offset]
        unit = tuple(j for j, i in enumerate(have) if stack[i - offset] == 1)
        shrunk.append(lax.squeeze(array, unit) if unit else array)
        axes.append([i for j, i in enumerate(have) if j not in unit])
    for level in reversed(kept):
        fun = vmap(fun, in_axes=tuple(0 if level in own else None for own in axes), out_axes=0)
    result = fun(*shrunk)
    dropped = tuple(i for i, n in enumerate(shape) if n == 1)
    if not dropped:
        return result
    return tree_map(lambda r: expand_dims(r, dropped), result)


def apply_along_axis(func1d: Callable, axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """A function of lines applied to all lines along an axis.

    Arguments:
      func1d: a function of a 1-D array that returns an array.
      axis: the axis along which lines run.
      arr: the array.
      *args, **kwargs: further arguments of the function.
    Returns:
      An array in which ``axis`` is replaced by the axes of the function's results.
    Raises:
      ValueError: the axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.apply_along_axis(jnp.sum, 1, jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    arr = as_array_argument("apply_along_axis", arr, 2)
    axis = canonical_axis(operator.index(axis), arr.ndim)

    def fun(line):
        return func1d(line, *args, **kwargs)

    for i in range(1, arr.ndim - axis):
        fun = vmap(fun, in_axes=i, out_axes=-1)
    for _ in range(axis):
        fun = vmap(fun, in_axes=0, out_axes=0)
    return fun(arr)


def apply_over_axes(func: Callable, a: ArrayLike, axes: int | Sequence[int]) -> Array:
    """A function of an array and an axis applied for one axis after the other.

    Arguments:
      func: a function ``(array, axis) -> array`` that keeps the rank, or reduces it by one.
      a: the array.
      axes: the axes.
    Returns:
      An array of the rank of ``a``.
    Raises:
      ValueError: the function returns something of another rank.

    >>> import catena.numpy as jnp
    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float32)
    """
    a = as_array_argument("apply_over_axes", a, 1)
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        result = func(a, axis)
        if result.ndim == a.ndim - 1:
            result = expand_dims(result, axis)
        if result.ndim != a.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = result
    return a
