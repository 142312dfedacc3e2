"""Vectorisation: a function of one example becomes a function of many.

Under a batch trace a value may carry a mapped axis that the function does not see; every operation on such
values is handed to the primitive's ``batch`` rule, which does the work for all examples at once.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from catena.core import dtypes
from catena.core.axes import at_front, broadcast_axis, move_axis
from catena.core.config import override
from catena.core.context import context, extend_axis_env, set_trace, settling, transformation
from catena.core.evaluate import abstract_eval
from catena.core.failures import FOUND, note_example
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.leaks import running
from catena.core.named import NamedTuple
from catena.core.primitive import RuleTable
from catena.core.ref import is_reference
from catena.core.source import function_name
from catena.core.staging import DebugInfo, JaxprTracer, trace_to_jaxpr
from catena.core.structural import reduce_sum_p
from catena.core.trace import Trace, Tracer, escaped, same_value
from catena.core.zeros import Zero, as_typed, get_aval, zeros
from catena.transform.discharge import pure, through_values
from catena.transform.memo import memoised

batch_rules = RuleTable("batch", "Batching rule for '{}' not implemented")


class Axis(NamedTuple):
    """The axis that a batch trace maps: its size, its name if collectives may refer to it, whether its examples are on
    devices of their own, which do by themselves what cannot be vectorised, and how types say that it is split: as a
    vector of this sharding.
    """

    name: Any
    size: int
    on_devices: bool = False
    spread: tuple = ()  # the axes of a mesh over whose devices the examples are spread: `spmd_axis_name` of vmap
    split: Any = None


class BatchTracer(Tracer):
    """A value with a mapped axis ``dim`` that its aval does not show."""

    __slots__ = ("value", "dim", "source")

    def __init__(self, trace, value, dim):
        self._trace, self.value, self.dim = trace, value, dim
        aval = get_aval(value)
        if aval.said_sharding is None:
            self.aval = aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])
        else:
            self.aval = aval.without_axis(dim)
        self.source = None

    def get_referent(self):
        return self.value.get_referent() if isinstance(self.value, Tracer) else self.value

    def repeats(self, other) -> bool:
        return self.dim == other.dim and same_value(self.value, other.value)

    def describe_origin(self) -> str:
        if isinstance(self.value, Tracer):
            return self.value.describe_origin()
        return f"It was made while vectorising {self._trace.function}." if self._trace.function else ""

    def __repr__(self):
        batched = get_aval(self.value)
        return f"VmapTracer(aval={self.aval.str_short()}, batched={batched.str_short()})"


class BatchTrace(Trace):
    """Hands operations on mapped values to batching rules, which run under the parent trace."""

    __slots__ = ("axis", "function", "tag")
    name = "vmap"

    def __init__(self, parent, axis: Axis, function: str = "", tag: object = None):
        super().__init__(parent)
        self.axis, self.function = axis, function
        self.tag = object() if tag is None else tag  # shared with the traces that run custom functions for this one

    def unpack(self, x):
        """The value and mapped axis of ``x``; values of other traces have no mapped axis here."""
        if type(x) is BatchTracer and x._trace.tag is self.tag:
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
            rule = primitive.batch or batch_rules.of(primitive)
            if primitive.takes_tokens and any(map(is_reference, values)):
                context.trace = self
                return through_values(primitive, args, params)
            try:
                if self.axis.size == 0 and can_be_empty(primitive, args, params):
                    rule = results_of_no_example(primitive, args)
                if context.laid_out and any([get_aval(x).said_sharding is not None for x in values]):
                    out, dim_out = batch_of_split(rule, self.axis, primitive, args, (values, dims), params)
                else:
                    out, dim_out = rule(self.axis, values, dims, **params)
            except FOUND as error:
                if hasattr(error, "examples"):
                    with override("jax_checks", ""):
                        out, dim_out = rule(self.axis, values, dims, **params)
                    note_example_of(error, self.axis, out, dim_out)
                raise
            except (TypeError, ValueError):
                plain = error_of_one_example(primitive, args, params)
                if plain is None:
                    raise
                raise plain from None
        finally:
            context.trace = self
        if context.checks or context.debug_nans or context.debug_infs:
            note_examples(self.axis, *((out, dim_out) if primitive.multiple_results else ([out], [dim_out])))
        if primitive.multiple_results:
            return [self.pack(v, d) for v, d in zip(out, dim_out, strict=True)]
        return self.pack(out, dim_out)

    def process_state(self, primitive, args, params):
        pairs = [self.unpack(x) for x in args]
        with set_trace(self.parent):
            out, dim_out = primitive.batch(self.axis, [x for x, _ in pairs], [d for _, d in pairs], **params)
        if primitive.multiple_results:
            return [self.pack(v, d) for v, d in zip(out, dim_out, strict=True)]
        return self.pack(out, dim_out)

    def process_custom(self, primitive, functions, args, params):
        pairs = [self.unpack(x) for x in args]
        outputs = MappedOutputs()
        functions = primitive.batch_of_functions(functions, self, tuple(d for _, d in pairs), outputs)
        with set_trace(self.parent):
            outs = primitive.bind_functions(functions, [v for v, _ in pairs], params)
        mapped = outputs.settle([None] * len(outs)) if outputs.known is None else outputs.known
        return [self.pack(x, 0 if m else None) for x, m in zip(outs, mapped, strict=True)]


def note_examples(axis: Axis, outs, dims) -> None:
    """Have the equations that made these values say along which axes their results are mapped."""
    for x, dim in zip(outs, dims, strict=True):
        x, dim = innermost(x, dim)
        if type(x) is JaxprTracer and dim is not None:
            x.note_mapped(dim, axis.name)


def note_example_of(error: Exception, axis: Axis, out, dim) -> None:
    """Have a failure know which example of this axis it is, given the operation's result(s) and where that lies."""
    for x, d in zip(out, dim, strict=True) if isinstance(out, list | tuple) else [(out, dim)]:
        x, d = innermost(x, d)
        if d is not None:
            note_example(error, get_aval(x).shape, d, axis.name)
            return


def innermost(x, dim):
    """What traces of other axes hold, this one running inside of theirs, and where the mapped axis lies in it."""
    while type(x) is BatchTracer and dim is not None:
        dim += dim >= x.dim
        x = x.value
    return x, dim


def batch_of_split(rule, axis: Axis, primitive, args, given, params):
    """A batching rule on values whose types say how they are split: the results are split as those of one example."""
    avals = abstract_eval(primitive, tuple([get_aval(x) for x in args]), params)
    with settling():
        outs, dims = rule(axis, *given, **params)
    if not primitive.multiple_results:
        return typed_batch(outs, dims, avals, axis), dims
    return [typed_batch(x, d, a, axis) for x, d, a in zip(outs, dims, avals, strict=True)], dims


def typed_batch(x, dim, aval, axis: Axis):
    """``x``, split as examples of the type ``aval`` along the mapped axis."""
    return as_typed(x, aval if dim is None else aval.with_axis(dim, axis.size, axis.split))


def error_of_one_example(primitive, args, params) -> Exception | None:
    """The error that the operation has for a single example, which speaks of shapes that the user sees."""
    try:
        abstract_eval(primitive, tuple([get_aval(x) for x in args]), params)
    except (TypeError, ValueError) as error:
        return error
    return None


def can_be_empty(primitive, args, params) -> bool:
    """Whether an operation on no examples has no more to do than to return empty arrays."""
    no_keys = not any(dtypes.is_extended(get_aval(x).dtype) for x in args)
    return no_keys and not primitive.axis_names(params)


def results_of_no_example(primitive, args):
    """A rule for no examples: results are empty, whatever the operation."""

    def rule(_axis, _values, _dims, /, **params):
        found = abstract_eval(primitive, tuple([get_aval(x) for x in args]), params)
        avals = found if primitive.multiple_results else [found]
        outs = [zeros(a.update(shape=(0, *a.shape))) for a in avals]
        return (outs, [0] * len(outs)) if primitive.multiple_results else (outs[0], 0)

    return rule


# ---- custom functions: each of their functions is vectorised, and the call stays one


class MappedOutputs:
    """Which results of a custom call are mapped; known once its function or its rule has run."""

    __slots__ = ("known",)

    def __init__(self):
        self.known = None

    def settle(self, dims) -> list[bool]:
        """Whether each result is to be mapped, where it came mapped along ``dims``."""
        mapped = [d is not None for d in dims]
        if self.known is None:
            self.known = mapped
        elif any(m and not k for m, k in zip(mapped, self.known, strict=True)):
            raise ValueError(
                "under vmap, the derivative rule of a custom function closes over a mapped value that the function "
                "itself does not depend on; pass the value as an argument"
            )
        return self.known


class Vectorised:
    """A flat function over the mapped axes ``dims`` of its arguments; mapped results have it in front.

    ``rule`` is the derivative rule that belongs to it: where both may be used, as in a jaxpr, a result is mapped if
    either says so.
    """

    __slots__ = ("fun", "axis", "function", "tag", "dims", "outputs", "rule", "__name__")

    def __init__(self, fun, trace: BatchTrace, dims, outputs: MappedOutputs, rule: Vectorised | None = None):
        self.fun, self.axis, self.function, self.tag = fun, trace.axis, trace.function, trace.tag
        self.dims, self.outputs, self.rule = dims, outputs, rule
        self.__name__ = function_name(fun)

    def run(self, fun, args, dims):
        return batch_flat(fun, self.axis, args, dims, self.function, self.tag)

    def place(self, outs, dims, mapped) -> list:
        return [at_front(self.axis.size, x, d) if m else x for x, d, m in zip(outs, dims, mapped, strict=True)]

    def __call__(self, *args):
        outs, dims = self.run(self.fun, args, self.dims)
        if self.outputs.known is None and None in dims and self.rule_matters():
            asking.rule = True
            try:
                by_rule = self.rule.mapped_by(args)
            finally:
                asking.rule = False
            self.outputs.settle([r if d is None else d for d, r in zip(dims, by_rule, strict=True)])
        return self.place(outs, dims, self.outputs.settle(dims))

    def rule_matters(self) -> bool:
        """Whether the rule could be used on a call that is written down, and make results mapped that are not."""
        return context.trace is not None and any(d is not None for d in self.dims) and not asking.rule


class _Asking(threading.local):
    """Whether a rule is being run only to see what it maps: the functions that it calls are then not asked again,
    its own among them.
    """

    rule = False


asking = _Asking()


class VectorisedJVP(Vectorised):
    """A JVP rule: primals and tangents in, results and their tangents out, each mapped like its result."""

    __slots__ = ()

    def __call__(self, *primals_and_tangents):
        outs, dims = self.run(self.fun, primals_and_tangents, self.dims + self.dims)
        half = len(outs) // 2
        either = [p if p is not None else t for p, t in zip(dims[:half], dims[half:], strict=True)]
        return self.place(outs, dims, self.outputs.settle(either) * 2)

    def mapped_by(self, primals) -> list:
        """The mapped axis of each result or its tangent, as this rule makes them."""
        avals = [get_aval(x) for x in primals]
        dims: list = []

        def rule(*primals_and_tangents):
            outs, found = self.run(self.fun, primals_and_tangents, self.dims + self.dims)
            half = len(outs) // 2
            dims[:] = [p if p is not None else t for p, t in zip(found[:half], found[half:], strict=True)]
            return [x for x in outs if type(x) is not Zero]

        trace_to_jaxpr(rule, [*avals, *(a.to_tangent_aval() for a in avals)], DebugInfo("vmap", self.__name__))
        return dims


class VectorisedForward(Vectorised):
    """A forward rule; with the tree of its residuals it tells which of them are mapped."""

    __slots__ = ()

    def __call__(self, perturbed, *args):
        noted = {}

        def flat(*xs):
            outs, residuals, noted["tree"] = self.fun(perturbed, *xs)
            noted["count"] = len(outs)
            return [*outs, *residuals]

        results, dims = self.run(flat, args, self.dims)
        n = noted["count"]
        outs = self.place(results[:n], dims[:n], self.outputs.settle(dims[:n]))
        mapped = tuple(d is not None for d in dims[n:])
        return outs, self.place(results[n:], dims[n:], mapped), (noted["tree"], mapped)

    def mapped_by(self, args) -> list:
        """The mapped axis of each result, as this rule makes them."""
        dims: list = []

        def rule(*xs):
            count = []

            def flat(*xs):
                outs, *_ = self.fun((True,) * len(xs), *xs)
                count.append(len(outs))
                return outs

            outs, dims[:] = self.run(flat, xs, self.dims)
            return outs

        trace_to_jaxpr(rule, [get_aval(x) for x in args], DebugInfo("vmap", self.__name__))
        return dims


class VectorisedBackward(Vectorised):
    """A backward rule; the cotangents of arguments that are not mapped are summed."""

    __slots__ = ()

    def __call__(self, residual_tree, *residuals_and_cts):
        residual_tree, mapped = residual_tree
        dims = [0 if m else None for m in (*mapped, *self.outputs.known)]
        outs, out_dims = self.run(functools.partial(self.fun, residual_tree), residuals_and_cts, dims)
        return [
            ct if ct is None or type(ct) is Zero else match_axis(self.axis.size, d, dim, ct, sum_match=True)
            for ct, d, dim in zip(outs, out_dims, self.dims, strict=True)
        ]


def batch_flat(fun, axis: Axis, args, dims, function: str = "", tag: object = None):
    """Run ``fun`` over mapped arguments.

    Arguments:
      fun: from flat arguments to a flat list of results.
      axis: the mapped axis.
      args: the values, with the axis; symbolic zeros are allowed.
      dims: the position of the axis in each, or ``None``.
      function: the name and place of the user's function, for error messages.
      tag: the tag of another batch trace, whose values this one takes for its own.
    Returns:
      The results and the position of the axis in each, or ``None``.
    """
    with (
        running(BatchTrace(context.trace, axis, function, tag)) as trace,
        extend_axis_env(axis.name, axis.size),
        transformation("vmap"),
    ):
        outs = fun(*[pack_argument(trace, x, d) for x, d in zip(args, dims, strict=True)])
        pairs = [(x, None) if x is None or type(x) is Zero else trace.unpack(x) for x in outs]
        del trace, outs
    return [v for v, _ in pairs], [d for _, d in pairs]


def pack_argument(trace: BatchTrace, x, dim):
    """A mapped value as a tracer; a mapped symbolic zero loses its axis."""
    if type(x) is not Zero:
        return trace.pack(x, dim)
    return x if dim is None else Zero(x.aval.without_axis(dim))


def match_axis(size: int, source, target, x, sum_match: bool = False):
    """Move the mapped axis of ``x`` from ``source`` to ``target``; ``None`` stands for unmapped."""
    if source == target:
        return x
    if source is None:
        return broadcast_axis(x, size, target)
    if target is None:
        if not sum_match:
            raise ValueError(f"a value mapped along axis {source} was to be returned unmapped")
        return reduce_sum_p.bind(x, axes=(source,))
    return move_axis(x, source, target)


@memoised
def batch_jaxpr(closed: ClosedJaxpr, axis: Axis, mapped: tuple, instantiate_outputs):
    """A jaxpr over a mapped axis.

    Arguments:
      closed: what to vectorise.
      axis: the axis.
      mapped: for each argument, whether it is mapped (along axis 0).
      instantiate_outputs: a bool, or one for each result: whether to force the result to be mapped.
    Returns:
      A closed jaxpr whose mapped arguments and results have the axis in front, and a tuple of bools: which
        results are mapped.
    """
    if isinstance(instantiate_outputs, bool):
        instantiate_outputs = (instantiate_outputs,) * len(closed.out_avals)
    mapped_out: list[bool] = []
    closed = pure(closed)

    def fun(*args):
        run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        outs, dims = batch_flat(run, axis, args, [0 if m else None for m in mapped])
        mapped_out[:] = [d is not None or f for d, f in zip(dims, instantiate_outputs, strict=True)]
        return [at_front(axis.size, x, d) if m else x for x, d, m in zip(outs, dims, mapped_out, strict=True)]

    avals = [mapped_aval(a, axis.size, axis.split) if m else a for a, m in zip(closed.in_avals, mapped, strict=True)]
    jaxpr, consts = trace_to_jaxpr(fun, avals, closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(mapped_out)


def mapped_aval(aval, size: int, split=None):
    """The type of ``aval`` with an axis of ``size`` in front."""
    return aval.with_axis(0, size, split)


def move_to_front(axis: Axis, args, dims) -> tuple[list, tuple]:
    """The arguments with their mapped axes in front, and for each whether it has one."""
    moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    return moved, tuple(d is not None for d in dims)
