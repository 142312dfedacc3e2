"""Calls of Python from compiled programs: ``pure_callback``, ``io_callback``, ``debug.callback``, ``debug.print``.

A callback is a primitive with a flat Python function as parameter. The function takes and returns Arrays; compiled
programs enter Python only for it. An exception in it is logged, ends the program and reaches the user as a
``JaxRuntimeError`` whose cause is the exception itself; out of a debugging callback that is called at once, as it is.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.array import Array, as_array
from catena.core.aval import ShapedArray
from catena.core.axes import at_front, move_axis
from catena.core.casts import convert
from catena.core.effects import debug_effect, io_effect, ordered_debug_effect, ordered_io_effect
from catena.core.errors import JaxRuntimeError
from catena.core.lazy import LazyModule
from catena.core.primitive import Primitive
from catena.core.ref import Ref
from catena.core.source import function_name
from catena.core.trace import Tracer, leaf_value
from catena.core.traceback import user_frames
from catena.core.tree import tree_flatten, tree_leaves, tree_structure, tree_unflatten
from catena.core.zeros import Zero, get_aval
from catena.lax.control_flow.map import map as lax_map
from catena.lax.join import concatenate
from catena.lax.structure import check_no_sharding
from catena.transform import interpreted
from catena.transform.arguments import leaf_aval
from catena.transform.functions import check_callable

logging = LazyModule("logging")

# ---- the function that is called


class FlatCallback:
    """A user's function of trees as a function of a flat list of Arrays."""

    __slots__ = ("callback", "in_tree", "name")

    def __init__(self, callback: Callable, in_tree, name: str):
        self.callback, self.in_tree, self.name = callback, in_tree, name

    def __call__(self, *leaves):
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        return self.callback(*args, **kwargs)

    def __eq__(self, other):
        return isinstance(other, FlatCallback) and (self.callback, self.in_tree) == (other.callback, other.in_tree)

    def __hash__(self):
        return hash((self.callback, self.in_tree))

    def __repr__(self):
        return f"FlatCallback({function_name(self.callback)})"


def host_value(leaf):
    """A leaf of the user's data as a callback is given it: keys are their words, as compiled programs know no keys."""
    value = leaf_value(leaf)
    dtype = get_aval(value).dtype
    return dtype.for_host(value) if dtypes.is_extended(dtype) else value


def call_logged(callback: FlatCallback, arrays):
    """Call; an exception is logged too, since a compiled program may end far away from whoever looks for it."""
    try:
        return callback(*arrays)
    except Exception as error:
        logging.getLogger("catena").error(
            "jax.%s failed", callback.name, exc_info=(type(error), error, user_frames(error.__traceback__))
        )
        raise


def call_checked(callback: FlatCallback, arrays, result_avals) -> list[np.ndarray]:
    """Call and check the results against what was promised."""
    try:
        results = tree_leaves(call_logged(callback, arrays))
    except Exception as error:
        raise JaxRuntimeError(
            f"{callback.name} called {function_name(callback.callback)}, which raised {type(error).__name__}: {error}"
        ) from error
    if len(results) != len(result_avals):
        raise JaxRuntimeError(
            f"Mismatched number of outputs from the callback {function_name(callback.callback)} of {callback.name}. "
            f"Expected: {len(result_avals)}, Actual: {len(results)}"
        )
    return [checked_result(callback, i, x, a) for i, (x, a) in enumerate(zip(results, result_avals, strict=True))]


def checked_result(callback: FlatCallback, position: int, x, aval) -> np.ndarray:
    value = np.asarray(x)
    if value.shape != aval.shape:
        raise JaxRuntimeError(
            f"Incorrect output shape for return value #{position} of the callback {function_name(callback.callback)} "
            f"of {callback.name}: Expected: {aval.shape}, Actual: {value.shape}"
        )
    if aval.dtype not in (value.dtype, dtypes.canonicalize_dtype(value.dtype)):
        raise JaxRuntimeError(
            f"Incorrect output dtype for return value #{position} of the callback {function_name(callback.callback)} "
            f"of {callback.name}: Expected: {dtypes.dtype_name(aval.dtype)}, Actual: {dtypes.dtype_name(value.dtype)}"
        )
    return np.array(convert(value, aval.dtype), order="C")


def evaluate_callback(*args, callback, result_avals, **params) -> list[Array]:
    arrays = [x if isinstance(x, Array) else as_array(x) for x in args]
    return [as_array(x) for x in call_checked(callback, arrays, result_avals)]


def lower_callback(ordered_of):
    """The compilation rule: a host call; ``ordered_of`` says from the parameters whether it is ordered."""

    def lower(b, *operands, callback, result_avals, **params):
        def on_host(*values):
            return call_checked(callback, [as_array(v) for v in values], result_avals)

        return b.host_call(on_host, operands, result_avals, ordered=ordered_of(params))

    return lower


def interpreted_callback(*, callback, result_avals=(), **params):
    """The call where there is no compiler: it raises what compiled programs raise."""
    return lambda *values: call_checked(callback, [as_array(v) for v in values], result_avals)


# ---- pure callbacks

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def jvp_refused(find, message: str):
    """The jvp rule of a callback: what it returns has no derivative, which matters where its operands have one."""

    def rule(primals, tangents, **params):
        if all(type(t) is Zero for t in tangents):
            outs = find().bind(*primals, **params)
            return outs, [Zero.of_primal(x) for x in outs]
        raise ValueError(message)

    return rule


def transpose_refused(message: str):
    """The transpose rule of a callback: it is not a linear operation."""

    def rule(cts, *args, **params):
        raise ValueError(message)

    return rule


def batched_by_method(find):
    """The batch rule of a callback with a ``vmap_method``, which is called once or for each example."""

    def rule(axis, args, dims, *, vmap_method, result_avals, **params):
        primitive = find()
        if axis.on_devices:  # each calls with its own example
            vmap_method = "sequential"
        moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]
        batched_avals = tuple(a.with_axis(0, axis.size) for a in result_avals)
        if vmap_method in ("expand_dims", "broadcast_all", "legacy_vectorized"):
            given = [match_method(axis.size, x, d, vmap_method) for x, d in zip(moved, dims, strict=True)]
            outs = primitive.bind(*given, vmap_method=vmap_method, result_avals=batched_avals, **params)
            return outs, [0] * len(outs)
        if vmap_method is None:
            raise NotImplementedError(
                f"vmap is only supported for the {primitive.name} primitive when vmap_method is one of "
                f"{', '.join(map(repr, VMAP_METHODS))}. Got vmap_method=None."
            )
        one = functools.partial(primitive.bind, vmap_method=vmap_method, result_avals=result_avals, **params)
        outs = one_by_one(axis, one, moved, dims, unrolled=vmap_method == "sequential_unrolled")
        return outs, [0] * len(outs)

    return rule


def check_method(vmap_method) -> None:
    """Raise where this is no way to vectorise a callback."""
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(f"vmap_method must be one of {VMAP_METHODS} or None, got {vmap_method!r}")


def match_method(size: int, x, dim, method: str):
    """An argument with the leading axis that the vmap method asks for."""
    if dim is not None or method == "legacy_vectorized":
        return x
    return at_front(size if method == "broadcast_all" else 1, x, None)


def one_by_one(axis, call, moved, dims, unrolled: bool) -> list:
    """Call for each example in turn; the results are stacked."""
    mapped = [x for x, d in zip(moved, dims, strict=True) if d is not None]

    def example(xs):
        given = iter(xs)
        return call(*[x if d is None else next(given) for x, d in zip(moved, dims, strict=True)])

    if not unrolled:
        return lax_map(example, mapped)
    rows = [example([x[i] for x in mapped]) for i in range(axis.size)]
    return [concatenate([at_front(1, row[k], None) for row in rows], 0) for k in range(len(rows[0]))] if rows else []


pure_callback_p = Primitive(
    "pure_callback",
    multiple_results=True,
    takes_arrays=True,
    abstract=lambda *avals, result_avals, **params: result_avals,
    evaluate=evaluate_callback,
    jvp=jvp_refused(
        lambda: pure_callback_p,
        "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients.",
    ),
    transpose=transpose_refused(
        "Pure callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks while taking gradients."
    ),
    batch=batched_by_method(lambda: pure_callback_p),
    lower=lower_callback(lambda params: False),
)
interpreted.calls[pure_callback_p] = interpreted_callback


def result_types(tree) -> tuple[tuple, Any]:
    """The avals that ``result_shape_dtypes`` describes, and its tree."""
    leaves, structure = tree_flatten(tree)
    avals = [leaf_aval(x) for x in leaves]
    for x, a in zip(leaves, avals, strict=True):
        if a is None:
            raise TypeError(f"result_shape_dtypes must be a tree of objects with shape and dtype, got {x!r} in it")
        if getattr(x, "dtype", None) is not None and dtypes.canonicalize_dtype(x.dtype) != x.dtype:
            raise ValueError(
                f"result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled, got {x.dtype}"
            )
    return tuple(ShapedArray(a.shape, a.dtype) for a in avals), structure


def pure_callback(
    callback: Callable, result_shape_dtypes, *args, sharding=None, vmap_method: str | None = None, **kwargs
):
    """Call a pure Python function of arrays from inside transformed and compiled code.

    Arguments:
      callback: the function; it gets Arrays and returns a tree of arrays. It may be called any number of times.
      result_shape_dtypes: a tree of ``ShapeDtypeStruct``s: what it returns.
      args, kwargs: trees of arrays to call it with.
      sharding: the device to call it for; only ``None``.
      vmap_method: how it is vectorised: ``"sequential"`` and ``"sequential_unrolled"`` call it for each example,
        ``"expand_dims"`` and ``"broadcast_all"`` call it once with a leading axis (of size 1, or broadcast, where an
        argument is not mapped).
    Returns:
      What the callback returns.
    Raises:
      JaxRuntimeError: where the callback raises, or returns something else than it promised.

    >>> import catena as jax, catena.numpy as jnp, numpy as np
    >>> f = lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    >>> jax.jit(f)(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    check_callable(callback)
    check_method(vmap_method)
    check_no_sharding("pure_callback", sharding)
    leaves, in_tree = tree_flatten((args, kwargs))
    result_avals, out_tree = result_types(result_shape_dtypes)
    if not result_avals:  # nobody would know that it was called
        return tree_unflatten(out_tree, [])
    flat = FlatCallback(callback, in_tree, "pure_callback")
    outs = pure_callback_p.bind(
        *[host_value(x) for x in leaves], callback=flat, result_avals=result_avals, vmap_method=vmap_method
    )
    return tree_unflatten(out_tree, outs)


# ---- callbacks with effects


def _io_batch(axis, args, dims, *, ordered, **params):
    if ordered:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    one = functools.partial(io_callback_p.bind, ordered=ordered, **params)
    outs = one_by_one(axis, one, moved, dims, unrolled=False)
    return outs, [0] * len(outs)


io_callback_p = Primitive(
    "io_callback",
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: frozenset([ordered_io_effect if params["ordered"] else io_effect]),
    abstract=lambda *avals, result_avals, **params: result_avals,
    evaluate=evaluate_callback,
    jvp=jvp_refused(lambda: io_callback_p, "IO callbacks do not support JVP."),
    transpose=transpose_refused("IO callbacks do not support transpose."),
    batch=_io_batch,
    lower=lower_callback(lambda params: params["ordered"]),
)
interpreted.calls[io_callback_p] = interpreted_callback


def io_callback(callback: Callable, result_shape_dtypes, *args, sharding=None, ordered: bool = False, **kwargs):
    """Call a Python function with side effects from inside transformed and compiled code.

    Arguments:
      callback: the function; it gets Arrays and returns a tree of arrays. It is called exactly once a run.
      result_shape_dtypes: a tree of ``ShapeDtypeStruct``s: what it returns; ``None`` for nothing.
      args, kwargs: trees of arrays to call it with.
      sharding: the device to call it for; only ``None``.
      ordered: whether it happens in program order with the other ordered callbacks.
    Returns:
      What the callback returns.

    >>> import catena as jax
    >>> from catena.experimental import io_callback
    >>> io_callback(lambda x: x, jax.ShapeDtypeStruct((), "float32"), 2.0)
    Array(2., dtype=float32)
    """
    check_callable(callback)
    check_no_sharding("io_callback", sharding)
    leaves, in_tree = tree_flatten((args, kwargs))
    result_avals, out_tree = result_types(result_shape_dtypes)
    flat = FlatCallback(callback, in_tree, "io_callback")
    outs = io_callback_p.bind(
        *[host_value(x) for x in leaves], callback=flat, result_avals=result_avals, ordered=ordered
    )
    return tree_unflatten(out_tree, outs)


# ---- debugging


def _debug_evaluate(*args, callback, ordered):
    call_logged(callback, [x if isinstance(x, Array) else as_array(x) for x in args])
    return []


def _debug_jvp(primals, tangents, **params):
    debug_callback_p.bind(*primals, **params)
    return [], []


def _debug_batch(axis, args, dims, **params):
    moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]

    def one(*xs):
        debug_callback_p.bind(*xs, **params)
        return []

    one_by_one(axis, one, moved, dims, unrolled=False)
    return [], []


def _debug_partial_eval(tape, args, **params):
    """Show what is known now; what is unknown has no value to show."""
    return tape.record(debug_callback_p, args, params)


def _debug_lower(b, *operands, callback, ordered):
    def on_host(*values):
        return call_checked(callback, [as_array(v) for v in values], ())

    b.host_call(on_host, operands, (), ordered=ordered)
    return []


debug_callback_p = Primitive(
    "debug_callback",
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: frozenset([ordered_debug_effect if params["ordered"] else debug_effect]),
    abstract=lambda *avals, **params: (),
    evaluate=_debug_evaluate,
    jvp=_debug_jvp,
    partial_eval=_debug_partial_eval,
    transpose=lambda cts, *args, **params: [Zero(get_aval(x)) for x in args],
    batch=_debug_batch,
    lower=_debug_lower,
)
interpreted.calls[debug_callback_p] = interpreted_callback


OMITTED = object()  # what is called, or the format, in the form of two calls: jax.debug.print(ordered=True)("{}", x);
# and what is not known of the operands before the call


def with_options(function: Callable, args, kwargs, **options) -> Callable:
    """The first of two calls: a function with options, to which the other arguments are still to be given."""
    if args or kwargs:
        raise TypeError(
            f"{function.__name__} received unexpected arguments in the two-call form: args={args} kwargs={kwargs}"
        )
    return functools.partial(function, **options)


def debug_callback(
    callback: Callable = OMITTED, *args, ordered: bool = False, partitioned: bool = False, **kwargs
) -> Callable | None:
    """Call a Python function with values from inside transformed and compiled code, for its side effect.

    Arguments:
      callback: the function; it gets Arrays, what it returns is ignored. Without it, a function that takes it and the
        values is returned: ``jax.debug.callback(ordered=True)(f, x)``.
      args, kwargs: trees to call it with, of arrays and of anything else, which it gets as it is.
      ordered: whether it happens in program order with the other ordered ones.
      partitioned: whether each device calls it with its own part; there is one device, so both mean the same.

    >>> import catena as jax
    >>> jax.debug.callback(lambda x: print("got", x), 1.0)
    got 1.0
    """
    if callback is OMITTED:
        return with_options(debug_callback, args, kwargs, ordered=ordered, partitioned=partitioned)
    if not callable(callback):
        raise TypeError(
            f"first argument to jax.debug.callback must be callable, but got an object of type {type(callback)}"
        )
    leaves, in_tree = tree_flatten((args, kwargs))
    traced = [x for x in leaves if is_value(x)]
    known = [OMITTED if is_value(x) else x for x in leaves]  # holds no tracers

    def called(*arrays):
        given = iter(arrays)
        call_args, call_kwargs = tree_unflatten(in_tree, [next(given) if x is OMITTED else x for x in known])
        callback(*call_args, **call_kwargs)

    functools.update_wrapper(called, callback)
    flat = FlatCallback(called, tree_structure((tuple(traced), {})), "debug.callback")
    read = [x[...] if type(x) is Ref else x for x in traced]  # of a reference, what it refers to now
    values = [host_value(x) if isinstance(x, Tracer) else leaf_value(x) for x in read]
    debug_callback_p.bind(*values, callback=flat, ordered=ordered)


def is_value(leaf) -> bool:
    """Whether a leaf is a value that transformations see; names, functions and the like are handed on as they are."""
    return type(leaf) is Ref or leaf_aval(leaf) is not None


F_STRING = (
    '. You may be passing an f-string (i.e, `f"{x}"`) into `jax.debug.print` and instead should pass in a regular '
    "string."
)


class CheckedFormatter(string.Formatter):
    """A formatter that refuses arguments which the format does not use, and says which it asks for in vain."""

    def get_value(self, key, args, kwargs):
        try:
            return super().get_value(key, args, kwargs)
        except KeyError:
            given = f"the keyword arguments are {list(kwargs)}" if kwargs else "there are no keyword arguments"
            raise KeyError(f"the format of `jax.debug.print` asks for {{{key}}}, but {given}") from None
        except IndexError:
            raise IndexError(
                f"the format of `jax.debug.print` asks for argument {key}, counted from 0, but {len(args)} follow it"
            ) from None

    def check_unused_args(self, used_args, args, kwargs):
        unused = [arg for i, arg in enumerate(args) if i not in used_args]
        unused_names = [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: {unused}{F_STRING}")
        if unused_names:
            raise ValueError(f"Unused keyword arguments to `jax.debug.print`: {unused_names}{F_STRING}")


formatter = CheckedFormatter()


def debug_log(
    fmt: str = OMITTED,
    *args,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs,
) -> Callable | None:
    """Log values from inside transformed and compiled code, to the logger ``catena.debug`` at level INFO.

    Arguments:
      fmt, args, ordered, partitioned, skip_format_check, kwargs: as for ``debug.print``.

    >>> import catena as jax
    >>> jax.debug.log("x = {x}", x=3)
    """
    options = {"ordered": ordered, "partitioned": partitioned, "skip_format_check": skip_format_check}
    if fmt is OMITTED:
        return with_options(debug_log, args, kwargs, **options)
    show_formatted(logging.getLogger("catena.debug").info, fmt, args, kwargs, **options)


def debug_print(
    fmt: str = OMITTED,
    *args,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs,
) -> Callable | None:
    """Print values from inside transformed and compiled code.

    Arguments:
      fmt: a format string as for ``str.format``. Without it, a function that takes it and the values is returned:
        ``jax.debug.print(ordered=True)("{}", x)``.
      args, kwargs: the values, trees of arrays or anything that can be formatted.
      ordered: whether it happens in program order with the other ordered ones.
      partitioned: whether each device prints its own part; there is one device, so both mean the same.
      skip_format_check: whether unused arguments are admitted.

    >>> import catena as jax
    >>> jax.jit(lambda x: jax.debug.print("x = {x}", x=x))(3)
    x = 3
    """
    options = {"ordered": ordered, "partitioned": partitioned, "skip_format_check": skip_format_check}
    if fmt is OMITTED:
        return with_options(debug_print, args, kwargs, _use_logging=_use_logging, **options)
    write = logging.getLogger("catena.debug").info if _use_logging else print
    show_formatted(write, fmt, args, kwargs, **options)


def show_formatted(write, fmt, args, kwargs, ordered, partitioned, skip_format_check) -> None:
    """Format the values when they are known, as NumPy prints at this place, and hand the text to ``write``."""
    if not isinstance(fmt, str):
        raise TypeError(f"jax.debug.print takes a format string first, got {type(fmt).__name__}")
    if not skip_format_check:
        check_fields(fmt, args, kwargs)
    print_options = np.get_printoptions()

    def show(show_args, show_kwargs):
        with np.printoptions(**print_options):
            text = fmt.format(*show_args, **show_kwargs)
        write(text)

    debug_callback(show, args, kwargs, ordered=ordered, partitioned=partitioned)


def check_fields(fmt: str, args, kwargs) -> None:
    """Check that a format uses all arguments, without formatting traced values."""
    plain = lambda tree: tree_unflatten(tree_structure(tree), [Blank(x) for x in tree_leaves(tree)])  # noqa: E731
    formatter.vformat(fmt, plain(args), plain(kwargs))


class Blank:
    """Stands in for a value while a format is checked; admits every format specification."""

    def __init__(self, value):
        self.__value = value

    def __repr__(self):
        return repr(self.__value)

    def __format__(self, spec):
        return ""

    def __getitem__(self, key):
        return self

    def __getattr__(self, name):
        return self
