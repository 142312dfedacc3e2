"""Calls of Python functions that write their results into memory that is there."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable

import numpy as np

from catena import random
from catena.core.array import as_array
from catena.core.dtypes import dtype_name
from catena.core.effects import io_effect
from catena.core.errors import JaxRuntimeError
from catena.core.namespace import shown as _shown
from catena.core.primitive import Primitive
from catena.core.source import function_name
from catena.core.trace import leaf_value
from catena.core.traceback import open_door as _open_door
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import get_aval
from catena.lax import callbacks
from catena.random.dtype import is_key_dtype
from catena.transform import interpreted
from catena.transform.functions import check_callable


class ExecutionStage(enum.Enum):
    """What the call of a function is for. Here they are all for computing: ``EXECUTE``."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a call of a ``buffer_callback`` is part of."""

    __slots__ = ()

    @property
    def stage(self) -> ExecutionStage:
        """What the call is for."""
        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """The stream of a GPU that the call belongs to.

        Raises:
          JaxRuntimeError: always: there is no GPU.
        """
        raise JaxRuntimeError("UNIMPLEMENTED: streams are of GPUs; this function was called by a program on the CPU")


class Buffer:
    """Memory that a ``buffer_callback`` reads or writes, while it runs; NumPy and DLPack can look at it."""

    __slots__ = ("_array",)
    _array: np.ndarray | None

    def __init__(self):
        raise TypeError("buffers are handed to the functions of buffer_callback, and not made by calling Buffer")

    @classmethod
    def _of(cls, array: np.ndarray) -> Buffer:
        made = object.__new__(cls)
        made._array = array
        return made

    def _memory(self) -> np.ndarray:
        if self._array is None:
            raise RuntimeError("a buffer was used after the call that it was handed to")
        return self._array

    @property
    def shape(self) -> tuple:
        """The length of each axis."""
        return self._memory().shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._memory().ndim

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self._memory().dtype

    @property
    def writeable(self) -> bool:
        """Whether it may be written to: results may, operands may not."""
        return bool(self._memory().flags.writeable)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        memory = self._memory()
        wanted = memory if dtype is None else memory.astype(dtype, copy=False)
        if copy is False and wanted is not memory:
            raise ValueError(f"a buffer of {memory.dtype} is no array of {wanted.dtype} without a copy")
        return wanted.copy() if copy and wanted is memory else wanted

    def __dlpack__(self, **kwargs):
        return self._memory().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple:
        return self._memory().__dlpack_device__()


def call(values, *, callback: Callable, in_tree, out_tree, result_avals, aliases) -> list[np.ndarray]:
    """Call the function with buffers; those of results begin as zeros, or as the operand of their alias."""
    outs = [np.zeros(a.shape, a.dtype) for a in result_avals]
    for i, o in aliases:
        outs[o][...] = values[i]
    operands = [v.view() for v in values]
    for v in operands:
        v.flags.writeable = False
    given, results = [Buffer._of(v) for v in operands], [Buffer._of(x) for x in outs]
    args, kwargs = tree_unflatten(in_tree, given)
    try:
        found = callback(ExecutionContext(), tree_unflatten(out_tree, results), *args, **kwargs)
    except Exception as error:
        name = function_name(callback)
        raise JaxRuntimeError(f"buffer_callback called {name}, which raised {type(error).__name__}: {error}") from error
    finally:
        for buffer in (*given, *results):
            buffer._array = None
    if found is not None:
        raise JaxRuntimeError(
            f"the function of buffer_callback, {function_name(callback)}, must write to its buffers and return None, "
            f"got {found!r}"
        )
    return [x.copy() for x in outs]  # the function may have kept views of what it wrote to


def _evaluate(*args, vmap_method, has_side_effect, command_buffer_compatible, **params):
    return [as_array(x) for x in call([np.asarray(x) for x in args], **params)]


def _lower(b, *operands, vmap_method, has_side_effect, command_buffer_compatible, result_avals, **params):
    on_host = lambda *values: call([np.asarray(v) for v in values], result_avals=result_avals, **params)  # noqa: E731
    return b.host_call(on_host, operands, result_avals)


def _interpreted(*, vmap_method, has_side_effect, command_buffer_compatible, **params):
    return lambda *values: call([np.asarray(v) for v in values], **params)


buffer_callback_p = Primitive(
    "buffer_callback",
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: frozenset([io_effect] if params["has_side_effect"] else ()),
    abstract=lambda *avals, result_avals, **params: result_avals,
    evaluate=_evaluate,
    jvp=callbacks.jvp_refused(
        lambda: buffer_callback_p, "Buffer callbacks do not support JVP: give the derivative by jax.custom_jvp."
    ),
    transpose=callbacks.transpose_refused(
        "Buffer callbacks do not support transpose: give the derivative by jax.custom_vjp."
    ),
    batch=callbacks.batched_by_method(lambda: buffer_callback_p),
    lower=_lower,
)
interpreted.calls[buffer_callback_p] = _interpreted


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: object,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable:
    """A function of arrays, by a Python function that writes the results into buffers.

    Arguments:
      callback: is called with an ``ExecutionContext``, a tree of buffers like ``result_shape_dtypes``, and the operands
        as buffers. ``numpy.asarray`` looks at a buffer without copying. It returns None.
      result_shape_dtypes: a tree of ``ShapeDtypeStruct``s: the results.
      has_side_effect: whether it is called though nobody reads its results.
      vmap_method: how it is vectorised, as for ``pure_callback``.
      input_output_aliases: from numbers of operands to those of results, flat, that begin with the operand's values.
      command_buffer_compatible: whether a GPU may record the call; there is none.
    Returns:
      A function of trees of arrays.
    Raises:
      TypeError, ValueError: an argument is not as described. JaxRuntimeError: where the callback raises.

    >>> import catena as jax, catena.numpy as jnp, numpy as np
    >>> def double(context, out, x):
    ...     np.asarray(out)[...] = 2 * np.asarray(x)
    >>> f = buffer_callback(double, jax.ShapeDtypeStruct((3,), "float32"))
    >>> jax.jit(f)(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    check_callable(callback)
    callbacks.check_method(vmap_method)
    result_avals, out_tree = callbacks.result_types(result_shape_dtypes)

    @functools.wraps(callback)
    def calling(*args, **kwargs):
        leaves, in_tree = tree_flatten((args, kwargs))
        leaves = [words(leaf_value(x)) for x in leaves]
        aliases = checked_aliases(input_output_aliases or {}, [get_aval(x) for x in leaves], result_avals)
        outs = buffer_callback_p.bind(
            *leaves,
            callback=callback,
            in_tree=in_tree,
            out_tree=out_tree,
            result_avals=result_avals,
            aliases=aliases,
            vmap_method=vmap_method,
            has_side_effect=bool(has_side_effect),
            command_buffer_compatible=bool(command_buffer_compatible),
        )
        return tree_unflatten(out_tree, outs)

    return calling


def words(x):
    """An operand; of keys, their words."""
    return random.key_data(x) if is_key_dtype(get_aval(x).dtype) else x


def checked_aliases(aliases: dict, operands, results) -> tuple:
    """The pairs of numbers, where operands and results have them, and in the same types."""
    for i, o in aliases.items():
        for kind, number, avals in (("input", i, operands), ("output", o, results)):
            if not 0 <= number < len(avals):
                raise ValueError(
                    f"input_output_aliases: in {i}:{o} there is no {kind} {number}; {kind}s have the numbers from 0 to "
                    f"{len(avals) - 1}"
                )
        a, b = operands[i], results[o]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise ValueError(
                f"input_output_aliases: in {i}:{o} the input is {a.str_short()} and the output {b.str_short()}; they "
                f"must have one type ({dtype_name(b.dtype)})"
            )
    return tuple(sorted(aliases.items()))


_open_door(globals(), "catena.experimental.buffer_callback", own=True)
__dir__ = _shown(globals())

_absent(globals())
