"""Looking at jaxprs and traces, and making them by hand: functions of ``jax.extend.core``."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from catena.core import dtypes, leaks
from catena.core.context import context
from catena.core.errors import ConcretizationTypeError
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from catena.core.trace import VALUES, Trace, Tracer, eval_trace, find_concrete, in_force
from catena.core.zeros import get_aval

array_types: frozenset = frozenset({np.ndarray, *(np.dtype(d).type for d in dtypes.KIND)})


class DropVar(Var):
    """The variable of a result that nobody reads; it prints as ``_``."""

    __slots__ = ()

    def pretty_print(self, context, *, print_dtype: bool = True) -> str:
        """``_``."""
        return "_"

    def __repr__(self):
        return "_"


class TraceTag:
    """What the traces of one transformation have in common."""


def new_jaxpr_eqn(invars, outvars, primitive, params, effects, source_info=None, ctx=None) -> Eqn:
    """An equation.

    Arguments:
      invars, outvars: variables and literals that are read, variables that are bound.
      primitive, params: what is applied.
      effects: its effects.
      source_info: the place that it comes from.
      ctx: what was in force there, another equation's ``ctx``; by default what the place says.
    Returns:
      An equation.
    """
    return Eqn(list(invars), list(outvars), primitive, params, frozenset(effects), source_info, ctx)


def jaxprs_in_params(params: dict) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an equation.

    >>> import catena as jax
    >>> from catena.extend.core import jaxprs_in_params
    >>> (call,) = jax.make_jaxpr(jax.jit(lambda x: x + 1))(1.0).eqns
    >>> list(jaxprs_in_params(call.params))
    [{ lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }]
    """
    for value in params.values():
        for x in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(x, (Jaxpr, ClosedJaxpr)):
                yield getattr(x, "jaxpr", x)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of the equations of a jaxpr.

    >>> import catena as jax
    >>> from catena.extend.core import subjaxprs
    >>> len(list(subjaxprs(jax.make_jaxpr(jax.jit(lambda x: x + 1))(1.0).jaxpr)))
    1
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.own_params)


def gensym() -> Callable[[Any], Var]:
    """A function that makes new variables of given types.

    >>> import catena as jax
    >>> from catena.extend.core import gensym
    >>> gensym()(jax.typeof(1.0)).aval.dtype
    dtype('float32')
    """
    return Var


def mapped_aval(size: int, axis: int | None, aval):
    """The type of one example of values of type ``aval``, mapped along ``axis``.

    Raises:
      ValueError: the axis is not of this size.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.extend.core import mapped_aval
    >>> mapped_aval(3, 0, jax.typeof(jnp.ones((3, 2)))).shape
    (2,)
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval.str_short()} is not of size {size}")
    return aval.without_axis(axis)


def unmapped_aval(size: int, axis: int | None, aval, explicit_mesh_axis=None):
    """The type of values whose examples, along ``axis``, are of type ``aval``.

    Arguments:
      size, axis: the new axis; none where ``axis`` is None.
      aval: the type of an example.
      explicit_mesh_axis: must be None; there are no meshes.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.extend.core import unmapped_aval
    >>> unmapped_aval(3, 1, jax.typeof(jnp.ones(2))).shape
    (2, 3)
    """
    if explicit_mesh_axis is not None:
        raise NotImplementedError(f"there are no meshes; explicit_mesh_axis must be None, got {explicit_mesh_axis!r}")
    return aval if axis is None else aval.with_axis(axis, size)


def primal_dtype_to_tangent_dtype(primal_dtype):
    """The dtype of tangents of values of a dtype.

    >>> import numpy as np
    >>> from catena.extend.core import primal_dtype_to_tangent_dtype
    >>> primal_dtype_to_tangent_dtype(np.dtype("float32"))
    dtype('float32')
    """
    return primal_dtype if dtypes.is_inexact(primal_dtype) else dtypes.float0


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array, a scalar, or stands for one.

    >>> from catena.extend.core import valid_jaxtype
    >>> valid_jaxtype(3), valid_jaxtype("a")
    (True, False)
    """
    if not isinstance(x, VALUES) and not dtypes.is_scalar_or_numpy(x):
        return False
    try:
        get_aval(x)
    except TypeError:
        return False
    return True


def concrete_or_error(force: Any, val: Any, context: str = ""):
    """``force(val)``, where the value is known.

    Arguments:
      force: a function such as ``operator.index``, or None for the value itself.
      val: the value.
      context: what the error says besides.
    Raises:
      ConcretizationTypeError: the value is traced.

    >>> from catena.extend.core import concrete_or_error
    >>> concrete_or_error(int, 3.0)
    3
    """
    found = find_concrete(val)
    if found is None and isinstance(val, Tracer):
        raise ConcretizationTypeError(val, context)
    value = val if found is None else found
    return value if force is None else force(value)


# ---- the current trace


def find_top_trace(_: Any) -> Trace:
    """The current trace, whatever the values.

    >>> from catena.extend.core import find_top_trace
    >>> find_top_trace([])
    EvalTrace
    """
    return eval_trace if context.trace is None else context.trace


class set_current_trace:  # noqa: N801  (a context manager, used like a keyword)
    """Make a trace the current one within a ``with`` block.

    Arguments:
      trace: the trace; None, or what stands for evaluation, evaluates.
      check_leaks: whether a tracer of the trace that somebody still holds when the block ends is an error, where the
        flag ``jax_check_tracer_leaks`` is set.
    Raises:
      LeakedTracerError: as said.

    >>> from catena.extend.core import find_top_trace, set_current_trace
    >>> with set_current_trace(None):
    ...     find_top_trace([])
    EvalTrace
    """

    __slots__ = ("trace", "check_leaks", "prev")

    def __init__(self, trace: Trace | None, check_leaks: bool = False):
        self.trace, self.check_leaks = trace, check_leaks

    def __enter__(self) -> None:
        self.prev = find_top_trace(())
        context.trace = in_force(self.trace)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        context.trace = in_force(self.prev)
        if self.check_leaks and context.check_tracer_leaks and self.trace is not None and exc_type is None:
            trace, self.trace = self.trace, None
            trace.invalidate()
            kept, watched = trace.holders(), weakref.ref(trace)
            del trace
            leaks.check(watched, kept)


class take_current_trace:  # noqa: N801
    """The current trace, with none in force within the ``with`` block.

    >>> from catena.extend.core import take_current_trace
    >>> with take_current_trace() as trace:
    ...     trace
    EvalTrace
    """

    __slots__ = ("prev",)

    def __enter__(self) -> Trace:
        self.prev = find_top_trace(())
        context.trace = None
        return self.prev

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        context.trace = in_force(self.prev)


class OpaqueTraceState:
    """Which trace is the current one, to be compared with another."""

    __slots__ = ("trace",)

    def __init__(self):
        self.trace = context.trace

    def __eq__(self, other) -> bool:
        return isinstance(other, OpaqueTraceState) and self.trace is other.trace

    def __hash__(self) -> int:
        return id(self.trace)


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """Which trace is the current one.

    Arguments:
      convention: JAX's word for who asks; one answer serves all.

    >>> from catena.extend.core import get_opaque_trace_state
    >>> get_opaque_trace_state() == get_opaque_trace_state()
    True
    """
    return OpaqueTraceState()


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:  # noqa: N802  (JAX's name)
    """Whether the running function is being traced to a jaxpr."""
    trace = context.trace
    while trace is not None:
        if trace.label == "JitTracer" if hasattr(trace, "label") else False:
            return True
        trace = trace.parent
    return False


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:  # noqa: N802  (JAX's name)
    """Whether the running function is being vectorised."""
    trace = context.trace
    while trace is not None:
        if trace.name == "vmap":
            return True
        trace = trace.parent
    return False


def unsafe_get_axis_names_DO_NOT_USE() -> list:  # noqa: N802  (JAX's name)
    """The names of the axes that collectives may refer to."""
    return [name for name in context.axis_env if name is not None]


def nonempty_axis_env_DO_NOT_USE() -> bool:  # noqa: N802  (JAX's name)
    """Whether there are axes that collectives may refer to.

    >>> from catena.extend.core import nonempty_axis_env_DO_NOT_USE
    >>> nonempty_axis_env_DO_NOT_USE()
    False
    """
    return bool(unsafe_get_axis_names_DO_NOT_USE())


def call_impl(f, *args, **params):
    """The evaluation of a primitive that calls a function."""
    return f.call_wrapped(*args, **params)
