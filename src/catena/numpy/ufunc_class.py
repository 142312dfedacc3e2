"""The class of universal functions: ``jnp.add`` and its kin, with ``reduce``, ``accumulate``, ``at`` and the rest.

A ufunc is an elementwise function with its algebra. The common ones know faster ways to reduce; all others
are reduced by a loop over the axis.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from catena import lax
from catena.core.array import Array
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.traceback import shorten
from catena.numpy.boundary import (
    array_arguments,
    as_array_argument,
    broadcast_to,
    canonical_axis,
    convert,
    static_int,
    user_dtype,
)
from catena.numpy.protocol import Overridden, answer, present_as
from catena.typing import ArrayLike, DTypeLike

vectorization = LazyModule("catena.numpy.vectorization")
make_jaxpr = LazyModule("catena.transform.make_jaxpr")


class _Parts(NamedTuple):
    """What a ufunc is made of; one attribute, since wrappers such as jit copy those of functions."""

    func: Callable[..., Any]
    name: str
    nin: int
    nout: int
    nargs: int
    identity: Any
    call: Callable[..., Any] | None
    reduce: Callable[..., Any] | None
    accumulate: Callable[..., Any] | None
    at: Callable[..., Any] | None
    reduceat: Callable[..., Any] | None


def _overridable_method(method):
    """A method of ufuncs that asks the classes of its arguments, as the ufunc itself does."""

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except Overridden as error:
            reason = error
        except Exception as error:
            shorten(error)
            raise
        return answer(reason, getattr(self, method.__name__), args, kwargs)

    return call


class ufunc:  # noqa: N801  (its name in NumPy)
    """A function of the elements of arrays, with reductions, running reductions and outer products.

    Arguments:
      func: a function of ``nin`` scalars that returns ``nout`` scalars, written in terms of arrays. It is called with
        arrays without axes, once for all elements, under ``vmap``.
      nin, nout: how many arguments and results it has.
      name: its name; by default that of ``func``.
      nargs: ``nin``, where it is given.
      identity: the value that changes nothing, with which reductions start; None if there is none.
      call, reduce, accumulate, at, reduceat: faster implementations, with the signatures of the methods.

    >>> import catena.numpy as jnp
    >>> jnp.add.reduce(jnp.array([1, 2, 3]))
    Array(6, dtype=int32)
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ):
        functools.update_wrapper(self, func)
        self.__doc__ = _document(func.__doc__)
        self.__name__ = name or func.__name__
        self.__signature__ = _signature(func)
        nargs = nin if nargs is None else nargs
        self._ufunc = _Parts(func, self.__name__, nin, nout, nargs, identity, call, reduce, accumulate, at, reduceat)

    nin = property(lambda self: self._ufunc.nin, doc="The number of arguments.")
    nout = property(lambda self: self._ufunc.nout, doc="The number of results.")
    nargs = property(lambda self: self._ufunc.nargs, doc="The number of arguments that the function takes.")
    identity = property(lambda self: self._ufunc.identity, doc="The value that changes nothing, or None.")

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Any:
        """The function of the elements of ``args``; ``out`` and ``where`` are not supported."""
        try:
            if out is not None:
                raise NotImplementedError(f"out argument of {self}: arrays do not change, assign what it returns")
            if where is not None:
                raise NotImplementedError(f"where argument of {self}")
            return self._of_elements(*args)
        except Overridden as error:
            reason = error
        except Exception as error:
            shorten(error)
            raise
        return answer(reason, self, args, {})

    def _of_elements(self, *args):
        call, func = self._ufunc.call, self._ufunc.func
        if call is not None:
            return call(*args)
        return vectorization.vectorize(func)(*array_arguments(self.__name__, *args))

    def __eq__(self, other):
        return isinstance(other, ufunc) and self._ufunc == other._ufunc

    def __hash__(self):
        return hash(self._ufunc)

    def __repr__(self):
        return f"<jnp.ufunc '{self.__name__}'>"

    def __reduce__(self):
        return _find, (self.__name__,) if _known.get(self.__name__) is self else (None,)

    @_overridable_method
    def reduce(
        self,
        a: ArrayLike,
        axis: int | None = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The elements along an axis combined into one, from the first to the last.

        Arguments:
          a: an array.
          axis: the axis; None for the flattened array.
          dtype: the dtype of the result.
          out: not supported; arrays are immutable.
          keepdims: whether the axis stays, with length 1.
          initial: what to begin with.
          where: which elements to combine; needs an identity or ``initial``.
        Returns:
          An array without the axis.
        """
        self._check_binary("reduce", out)
        if where is not None and self._ufunc.identity is None and initial is None:
            raise ValueError(
                f"reduction operation '{self.__name__}' does not have an identity, so to use a where mask one has to "
                "specify 'initial'."
            )
        if self._ufunc.reduce is not None:
            a = as_array_argument("reduce", a)
            if isinstance(axis, int) and not -a.ndim <= axis < a.ndim:
                canonical_axis(axis, a.ndim)
            return self._ufunc.reduce(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        return self._reduce_by_scan(a, axis, dtype, keepdims, initial, where)

    def _check_binary(self, method: str, out):
        if self._ufunc.nin != 2 or self._ufunc.nout != 1:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if out is not None:
            raise NotImplementedError(f"out argument of {self}.{method}()")

    def _reduce_by_scan(self, a, axis, dtype, keepdims, initial, where):
        mask = where
        if where is not None:
            shape = as_array_argument("reduce", a).shape
            mask, _, _ = self._along(broadcast_to(as_array_argument("reduce", where), shape), axis, None)
        a, axis, rank = self._along(a, axis, dtype)
        if initial is None and a.shape[0] == 0 and self._ufunc.identity is None:
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
        start, rest = self._start(a, initial)
        result = self._fold(start, rest, mask)
        if not keepdims:
            return result
        return lax.reshape(result, (1,) * rank) if axis is None else lax.expand_dims(result, (axis,))

    def _start(self, a, initial):
        """The value to begin with, in the shape of one element, and what remains to be combined."""
        initial = self._ufunc.identity if initial is None else initial
        if initial is None:
            return lax.index_in_dim(a, 0, keepdims=False), lax.slice_in_dim(a, 1, None)
        value = as_array_argument("reduce", initial)
        return broadcast_to(convert(value, a.dtype), a.shape[1:]), a

    def _fold(self, start, rest, mask):
        start = convert(start, self._dtype_of_results(start, start))

        def step(carry, x):
            x, chosen = x
            result = convert(self._of_elements(carry, x), start.dtype)
            return (result if chosen is None else lax.select(chosen, result, carry)), None

        return lax.scan(step, start, (rest, mask))[0]

    def _dtype_of_results(self, *args):
        return make_jaxpr.eval_shape(self._of_elements, *args).dtype

    def _along(self, a, axis, dtype):
        """``a`` in the dtype asked for, with the axis in front, that axis, and the rank."""
        a = as_array_argument(self.__name__, a)
        dtype = user_dtype(dtype, self.__name__)
        a = a if dtype is None else convert(a, dtype)
        rank = a.ndim
        if axis is None:
            return lax.reshape(a, (a.size,)), None, rank
        if isinstance(axis, tuple):
            if len(axis) != 1:
                raise NotImplementedError("tuple of axes")
            axis = axis[0]
        axis = canonical_axis(static_int(axis, f"axis of {self.__name__}.reduce"), rank)
        order = (axis, *(i for i in range(rank) if i != axis))
        return (lax.transpose(a, order) if axis else a), axis, rank

    @_overridable_method
    def accumulate(self, a: ArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The results of combining the first elements along an axis, for each number of them.

        Arguments:
          a: an array.
          axis: the axis; None for the flattened array.
          dtype: the dtype of the result.
          out: not supported; arrays are immutable.
        Returns:
          An array of the shape of ``a``.
        """
        self._check_binary("accumulate", out)
        if self._ufunc.accumulate is not None:
            return self._ufunc.accumulate(a, axis=axis, dtype=dtype)
        if axis is None:
            raise ValueError("accumulate does not allow multiple axes, got axis=None; ravel the array first")
        a, axis, _ = self._along(a, axis, dtype)
        return _axis_back(self._running(a), axis)

    def _running(self, a):
        """The results of combining ever more elements along the first axis."""
        dtype = self._dtype_of_results(a, a)  # such as bool
        if not a.shape[0]:
            return convert(a, dtype)

        def step(carry, x):
            result = convert(self._of_elements(carry, x), dtype)
            return result, result

        first = convert(lax.index_in_dim(a, 0, keepdims=False), dtype)
        _, others = lax.scan(step, first, lax.slice_in_dim(a, 1, None))
        return lax.concatenate([lax.expand_dims(first, (0,)), others], 0)

    @_overridable_method
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """``a`` with the function applied to the elements at ``indices``, once for each time that an index occurs.

        Arguments:
          a: an array.
          indices: what ``a[...]`` takes.
          b: the second argument of a binary function, of a shape that broadcasts to that of the indexed
            elements.
          inplace: must be False, because arrays are immutable.
        Returns:
          A new array.
        """
        if inplace:
            raise NotImplementedError(
                "Because JAX arrays are immutable, jnp.ufunc.at() cannot operate inplace like\n"
                "np.ufunc.at(). Instead, you can pass inplace=False and capture the result; e.g.\n"
                f">>> arr = jnp.{self.__name__}.at(arr, ind, val, inplace=False)\n"
            )
        if self._ufunc.at is not None:
            return self._ufunc.at(a, indices, b)
        return self._at_by_scan(a, indices, b)

    def _at_by_scan(self, a, indices, b):
        """One element after another: the flat positions that ``indices`` name are those it picks from an iota."""
        a = as_array_argument(f"{self.__name__}.at", a)
        positions = lax.reshape(lax.iota(np.dtype("int32"), a.size), a.shape)[indices]
        where = lax.reshape(positions, (positions.size,))
        values = ()
        if b is not None:
            b = as_array_argument(f"{self.__name__}.at", b, 2)
            values = (lax.reshape(broadcast_to(b, positions.shape), (positions.size,)),)

        def step(carry, x):
            position, *value = x
            old = lax.dynamic_index_in_dim(carry, position, keepdims=False)
            new = convert(self._of_elements(old, *value), carry.dtype)
            return lax.dynamic_update_index_in_dim(carry, new, position, 0), None

        dtype = self._dtype_of_results(a, *([] if b is None else [lax.full((), 0, b.dtype)]))
        flat = convert(lax.reshape(a, (a.size,)), dtype)
        return lax.reshape(lax.scan(step, flat, (where, *values))[0], a.shape)

    @_overridable_method
    def reduceat(
        self, a: ArrayLike, indices: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """Reductions over slices of an axis, from each index up to the next.

        Arguments:
          a: an array.
          indices: integers, with one axis. Where one is not less than the next, its slice is one element
            long.
          axis: the axis.
          dtype: the dtype of the result.
          out: not supported; arrays are immutable.
        Returns:
          An array with the axis as long as ``indices``.
        """
        self._check_binary("reduceat", out)
        if self._ufunc.reduceat is not None:
            return self._ufunc.reduceat(a, indices, axis=axis, dtype=dtype)
        a, indices = array_arguments(f"{self.__name__}.reduceat", a, indices)
        if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
            raise ValueError(f"reduceat: indices must be integers with one axis, got {indices.aval.str_short()}")
        a, axis, _ = self._along(a, axis, dtype)
        if not indices.size:
            return _axis_back(lax.slice_in_dim(a, 0, 0), axis)
        return _axis_back(self._reduce_slices(a, convert(indices, np.dtype("int32"))), axis)

    def _reduce_slices(self, a, starts):
        size = np.int32(a.shape[0])
        stops = lax.concatenate([lax.slice_in_dim(starts, 1, None), lax.full((1,), size, starts.dtype)], 0)
        tail = (starts.shape[0], *a.shape[1:])
        first = _take_rows(a, starts)

        def step(carry, x):
            position, row = x
            inside = lax.bitwise_and(lax.gt(position, starts), lax.lt(position, stops))
            inside = lax.broadcast_in_dim(inside, tail, (0,))
            combined = convert(self._of_elements(carry, broadcast_to(row, tail)), a.dtype)
            return lax.select(inside, combined, carry), None

        return lax.scan(step, first, (lax.iota(np.dtype("int32"), a.shape[0]), a))[0]

    @_overridable_method
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:  # noqa: N803
        """The function of every element of ``A`` with every element of ``B``.

        Arguments:
          A, B: arrays.
        Returns:
          An array with the axes of ``A``, then those of ``B``.
        """
        if self._ufunc.nin != 2:
            raise ValueError("outer only supported for binary ufuncs")
        a, b = array_arguments(f"{self.__name__}.outer", A, B)
        return self(lax.reshape(a, (*a.shape, *(1,) * b.ndim)), lax.reshape(b, (*(1,) * a.ndim, *b.shape)))


def _axis_back(result, axis: int):
    """``result`` with its first axis in the place ``axis``."""
    return lax.transpose(result, (*range(1, axis + 1), 0, *range(axis + 1, result.ndim))) if axis else result


def _take_rows(a, indices):
    numbers = lax.GatherDimensionNumbers(tuple(range(1, a.ndim)), (0,), (0,))
    sizes = (1, *a.shape[1:])
    return lax.gather(a, lax.expand_dims(indices, (1,)), numbers, sizes, mode=lax.GatherScatterMode.CLIP)


def _signature(func) -> inspect.Signature | None:
    """The signature of ``func`` with the two keywords that every ufunc has."""
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        return None
    kind = inspect.Parameter.KEYWORD_ONLY
    keywords = [inspect.Parameter(n, kind, default=None, annotation=None) for n in ("out", "where")]
    if set(signature.parameters) & {"out", "where"}:
        return signature
    return signature.replace(parameters=[*signature.parameters.values(), *keywords])


def _document(text: str | None) -> str | None:
    """The docstring of a function of the namespace with the two keywords that every ufunc has."""
    unused = "  out, where: not supported; arrays are immutable, and ``jnp.where`` selects.\n"
    return text and inspect.cleandoc(text).replace("Returns:\n", f"{unused}Returns:\n", 1)


_known: dict[str, ufunc] = {}


def register(function: ufunc) -> ufunc:
    """Make a ufunc of the namespace known by its name, so that pickles hold the name alone."""
    _known[function.__name__] = function
    return present_as(function._ufunc.func, function)


def _find(name) -> ufunc:
    if name is None:
        raise TypeError("only the ufuncs of catena.numpy can be pickled, not those made by frompyfunc")
    return _known[name]


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc made of a function of scalars that is written in terms of arrays.

    Arguments:
      func: a function of ``nin`` arrays without axes that returns ``nout`` results. It is called once for all elements,
        under ``vmap``.
      nin, nout: how many arguments and results it has.
      identity: the value that changes nothing, with which reductions start; None if there is none.
    Returns:
      A ``ufunc``.
    Raises:
      TypeError: ``nin`` or ``nout`` is no integer. ValueError: it is too small: there is an argument.

    >>> import catena.numpy as jnp
    >>> jnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1).accumulate(jnp.array([1, 2, 3]))
    Array([ 1,  4, 11], dtype=int32)
    """
    return ufunc(func, _count("nin", nin, 1), _count("nout", nout, 0), identity=identity)


def _count(name: str, value, least: int) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"frompyfunc: {name} must be an integer, got {value!r}") from None
    if count < least:
        raise ValueError(f"frompyfunc: {name} must be at least {least}, got {count}")
    return count
