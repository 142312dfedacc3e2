"""Vectorisation: a function of one example becomes a function of many.

Under a batch trace a value may carry a mapped axis that the function does not see; every operation on such values
is handed to the primitive's ``batch`` rule, which does the work for all examples at once.
"""

import functools
from typing import Any, NamedTuple

from catena.core import leaks
from catena.core.context import context, extend_axis_env, set_trace
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.primitive import registry
from catena.core.staging import trace_to_jaxpr
from catena.core.trace import Trace, Tracer, escaped
from catena.core.zeros import Zero, get_aval
from catena.transform.memo import memoised


class Axis(NamedTuple):
    """The axis that a batch trace maps: its size, and its name if collectives may refer to it."""

    name: Any
    size: int


class BatchTracer(Tracer):
    """A value with a mapped axis ``dim`` that its aval does not show."""

    __slots__ = ("value", "dim", "source")

    def __init__(self, trace, value, dim):
        self._trace, self.value, self.dim = trace, value, dim
        aval = get_aval(value)
        self.aval = aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])
        self.source = None

    def describe_origin(self) -> str:
        if isinstance(self.value, Tracer):
            return self.value.describe_origin()
        return f"It was made while vectorising {self._trace.function}." if self._trace.function else ""

    def __repr__(self):
        batched = get_aval(self.value)
        return f"VmapTracer(aval={self.aval.str_short()}, batched={batched.str_short()})"


class BatchTrace(Trace):
    """Hands operations on mapped values to batching rules, which run under the parent trace."""

    __slots__ = ("axis", "function")
    name = "vmap"

    def __init__(self, parent, axis: Axis, function: str = ""):
        super().__init__(parent)
        self.axis, self.function = axis, function

    def unpack(self, x):
        """The value and mapped axis of ``x``; values of other traces have no mapped axis here."""
        if type(x) is BatchTracer and x._trace is self:
            return x.value, x.dim
        if isinstance(x, Tracer) and not x._trace.alive:
            raise escaped(x)
        return x, None

    def pack(self, value, dim):
        return value if dim is None else BatchTracer(self, value, dim)

    def process(self, primitive, args, params):
        values, dims = [], []
        for x in args:
            value, dim = self.unpack(x)
            values.append(value)
            dims.append(dim)
        context.trace = self.parent
        try:
            if all(d is None for d in dims) and self.axis.name not in primitive.axis_names(params):
                return primitive.bind(*values, **params)
            rule = primitive.batch or primitive.rule("batch")
            out, dim_out = rule(self.axis, values, dims, **params)
        finally:
            context.trace = self
        if primitive.multiple_results:
            return [self.pack(v, d) for v, d in zip(out, dim_out, strict=True)]
        return self.pack(out, dim_out)

    def process_custom_jvp(self, primitive, fun, jvp, args, params):
        values, dims = zip(*[self.unpack(x) for x in args], strict=True) if args else ((), ())
        with set_trace(self.parent):
            if all(d is None for d in dims):
                return primitive.bind_functions(fun, jvp, *values, **params)
            outs = primitive.bind_functions(
                self.vectorised(fun, dims), self.vectorised(jvp, dims + dims), *values, **params
            )
        return [BatchTracer(self, x, 0) for x in outs]

    def process_custom_vjp(self, primitive, fun, fwd, bwd, args, params):
        values, dims = zip(*[self.unpack(x) for x in args], strict=True) if args else ((), ())
        with set_trace(self.parent):
            if all(d is None for d in dims):
                return primitive.bind_functions(fun, fwd, bwd, *values, **params)
            backward = self.vectorised_backward(bwd, dims)
            outs = primitive.bind_functions(
                self.vectorised(fun, dims), self.vectorised(fwd, dims), backward, *values, **params
            )
        return [BatchTracer(self, x, 0) for x in outs]

    def vectorised(self, fun, dims):
        """``fun`` over the mapped axes ``dims`` of its arguments, every result mapped along axis 0."""

        def mapped(*args):
            outs, out_dims = batch_flat(fun, self.axis, args, dims, self.function)
            return [at_front(self.axis.size, x, d) for x, d in zip(outs, out_dims, strict=True)]

        return functools.update_wrapper(mapped, fun)

    def vectorised_backward(self, bwd, dims):
        """The backward rule over residuals and cotangents mapped along axis 0, summed where the argument is not."""

        def mapped(*args):
            outs, out_dims = batch_flat(bwd, self.axis, args, [0] * len(args), self.function)
            return [
                ct if ct is None or type(ct) is Zero else match_axis(self.axis.size, d, dim, ct, sum_match=True)
                for ct, d, dim in zip(outs, out_dims, dims, strict=True)
            ]

        return functools.update_wrapper(mapped, bwd)


def batch_flat(fun, axis: Axis, args, dims, function: str = ""):
    """Run ``fun`` over mapped arguments.

    Arguments:
      fun: from flat arguments to a flat list of results.
      axis: the mapped axis.
      args: the values, with the axis; symbolic zeros are allowed.
      dims: the position of the axis in each, or ``None``.

    Returns:
      The results and the position of the axis in each, or ``None``.
    """
    trace = BatchTrace(context.trace, axis, function)
    watched = leaks.watch(trace)
    try:
        with set_trace(trace), extend_axis_env(axis.name, axis.size):
            outs = fun(*[pack_argument(trace, x, d) for x, d in zip(args, dims, strict=True)])
            pairs = [(x, None) if x is None or type(x) is Zero else trace.unpack(x) for x in outs]
    finally:
        trace.alive = False
    del trace, outs
    leaks.check(watched)
    return [v for v, _ in pairs], [d for _, d in pairs]


def pack_argument(trace: BatchTrace, x, dim):
    """A mapped value as a tracer; a mapped symbolic zero loses its axis."""
    if type(x) is not Zero:
        return trace.pack(x, dim)
    shape = x.aval.shape
    return x if dim is None else Zero(x.aval.update(shape=shape[:dim] + shape[dim + 1 :]))


def at_front(size: int, x, dim):
    """``x`` with its mapped axis moved to the front; without one, repeated along a new axis."""
    if type(x) is Zero:
        aval = x.aval
        return Zero(aval.update(shape=(size, *aval.shape))) if dim is None else x
    return match_axis(size, dim, 0, x)


def match_axis(size: int, source, target, x, sum_match: bool = False):
    """Move the mapped axis of ``x`` from ``source`` to ``target``; ``None`` stands for unmapped."""
    if source == target:
        return x
    if source is None:
        return broadcast_axis(x, size, target)
    if target is None:
        if not sum_match:
            raise ValueError(f"a value mapped along axis {source} was to be returned unmapped")
        return registry["reduce_sum"].bind(x, axes=(source,))
    return move_axis(x, source, target)


def move_axis(x, source: int, target: int):
    """``x`` with one axis moved."""
    ndim = get_aval(x).ndim
    source, target = source % ndim, target % ndim
    if source == target:
        return x
    order = [i for i in range(ndim) if i != source]
    order.insert(target, source)
    return registry["transpose"].bind(x, permutation=tuple(order))


def broadcast_axis(x, size: int, axis: int):
    """``x`` repeated along a new axis."""
    shape = list(get_aval(x).shape)
    axis %= len(shape) + 1
    shape.insert(axis, size)
    dims = tuple(i for i in range(len(shape)) if i != axis)
    return registry["broadcast_in_dim"].bind(x, shape=tuple(shape), broadcast_dimensions=dims)


@memoised
def batch_jaxpr(closed: ClosedJaxpr, axis: Axis, mapped: tuple, instantiate_outputs):
    """A jaxpr over a mapped axis.

    Arguments:
      closed: what to vectorise.
      axis: the axis.
      mapped: for each argument, whether it is mapped (along axis 0).
      instantiate_outputs: a bool, or one for each result: whether to force the result to be mapped.

    Returns:
      A closed jaxpr whose mapped arguments and results have the axis in front, and a tuple of bools: which results
      are mapped.
    """
    if isinstance(instantiate_outputs, bool):
        instantiate_outputs = (instantiate_outputs,) * len(closed.out_avals)
    mapped_out = []

    def fun(*args):
        run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        outs, dims = batch_flat(run, axis, args, [0 if m else None for m in mapped])
        mapped_out[:] = [d is not None or f for d, f in zip(dims, instantiate_outputs, strict=True)]
        return [at_front(axis.size, x, d) if m else x for x, d, m in zip(outs, dims, mapped_out, strict=True)]

    avals = [mapped_aval(a, axis.size) if m else a for a, m in zip(closed.in_avals, mapped, strict=True)]
    jaxpr, consts = trace_to_jaxpr(fun, avals, closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(mapped_out)


def mapped_aval(aval, size: int):
    """The type of ``aval`` with an axis of ``size`` in front."""
    return aval.update(shape=(size, *aval.shape))


def move_to_front(axis: Axis, args, dims) -> tuple[list, tuple]:
    """The arguments with their mapped axes in front, and for each whether it has one."""
    moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    return moved, tuple(d is not None for d in dims)
