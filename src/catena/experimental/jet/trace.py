"""Taylor mode: every value carries the coefficients of its Taylor series along.

Where an argument is the polynomial ``x(t) = x0 + x1 t + ... + xn t^n``, a function of it has a Taylor series, and its
coefficients follow operation by operation (Griewank and Walther: Evaluating derivatives, 2008, chapter 13). Operations
that are linear, or linear piece by piece, apply their derivative to each coefficient; products multiply series; the
elementary functions have recurrences (``rules.py``). Of every other operation with a ``jvp`` rule the chain rule says
``y'(t) = Dg(x(t)) x'(t)``: the series of the right side, one term shorter, is that of a program of simpler operations,
and integrated it is the series of ``y``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from catena.core.context import context, set_trace
from catena.core.dtypes import is_inexact
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.leaks import running
from catena.core.primitive import RuleTable
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.trace import Trace, Tracer, escaped, in_force
from catena.core.zeros import Zero, get_aval, instantiate, zeros
from catena.transform.jvp import jvp_rules
from catena.transform.memo import memoised

jet_rules = RuleTable("taylor", optional=True)


class ZeroTerm:
    """A coefficient that is zero."""


class ZeroSeries:
    """A series all of whose coefficients are zero: that of a constant."""


zero_term = ZeroTerm()
zero_series = ZeroSeries()

Terms = list | None  # the coefficients of t, t^2 ...; None where all of them are zero


class JetTracer(Tracer):
    """A value with the coefficients of its series behind the first."""

    __slots__ = ("primal", "terms")

    def __init__(self, trace, primal, terms: list):
        self._trace, self.primal, self.terms = trace, primal, terms
        self.aval = get_aval(primal)

    def concrete_value(self):
        return self.primal.concrete_value() if isinstance(self.primal, Tracer) else self.primal

    def describe_origin(self) -> str:
        return self.primal.describe_origin() if isinstance(self.primal, Tracer) else ""


class JetTrace(Trace):
    """Hands each operation to the rule of its primitive, ``rule(primals, series, **params) -> (primal(s), terms)``,
    which runs under the trace around; ``series`` has a list of ``order`` coefficients, or None, for each operand.
    """

    __slots__ = ("tag", "order")
    name = "jet"

    def __init__(self, tag, parent_trace, order: int):
        super().__init__(in_force(parent_trace))
        self.tag, self.order = tag, order

    def to_primal_terms_pair(self, val) -> tuple:
        """A value and its coefficients, ``zero_series`` where there are none."""
        primal, terms = self.unpack(val)
        return primal, zero_series if terms is None else terms

    def unpack(self, x) -> tuple[Any, Terms]:
        if type(x) is JetTracer and x._trace is self:
            return x.primal, x.terms
        if isinstance(x, Tracer) and not x._trace.alive:
            raise escaped(x)
        return x, None

    def pack(self, primal, terms: Terms):
        return primal if terms is None else JetTracer(self, primal, terms)

    def process(self, primitive, args, params):
        primals, series = zip(*map(self.unpack, args), strict=True) if args else ((), ())
        context.trace = self.parent
        try:
            if all(terms is None for terms in series):
                return primitive.bind(*primals, **params)
            rule = primitive.taylor or by_derivative(primitive)
            out, terms = rule(primals, list(series), **params)
        finally:
            context.trace = self
        if primitive.multiple_results:
            return [self.pack(p, t) for p, t in zip(out, terms, strict=True)]
        return self.pack(out, terms)

    def process_custom(self, primitive, functions, args, params):
        primals, series = zip(*map(self.unpack, args), strict=True)
        derivative = lambda primals, tangents: primitive.jvp_of_functions(functions, primals, tangents, params)[1]  # noqa: E731
        with set_trace(self.parent):
            outs = primitive.bind_functions(functions, primals, params)
            terms = integrated(derivative, primals, list(series), outs)
        return [self.pack(p, t) for p, t in zip(outs, terms, strict=True)]


# ---- functions and jaxprs


def order_of(series: Sequence[Terms]) -> int:
    """The order of the series: how many coefficients there are behind the first."""
    return next(len(terms) for terms in series if terms is not None)


def jet_flat(fun: Callable, primals: Sequence, series: Sequence[Terms], order: int) -> tuple[list, list[Terms]]:
    """The values of a flat function and their coefficients."""
    with running(JetTrace(None, context.trace, order)) as trace:
        outs = fun(*[trace.pack(x, terms) for x, terms in zip(primals, series, strict=True)])
        pairs = [trace.unpack(x) for x in outs]
        del trace, outs
    return [p for p, _ in pairs], [t for _, t in pairs]


@memoised
def jet_jaxpr(closed: ClosedJaxpr, order: int, varying: tuple, wanted) -> tuple[ClosedJaxpr, tuple]:
    """A jaxpr with its coefficients.

    Arguments:
      closed: the jaxpr.
      order: how many coefficients there are.
      varying: for each argument, whether it has any.
      wanted: for each result, whether coefficients are returned even where they are zero; or one bool for all.
    Returns:
      A jaxpr of the arguments, followed by the coefficients of those that vary, that returns the results and
        likewise; and which results vary.
    """
    flags: list[bool] = []
    wanted = (wanted,) * len(closed.out_avals) if isinstance(wanted, bool) else wanted

    def fun(*args):
        primals, series = args[: len(varying)], regroup(args[len(varying) :], varying, order)
        run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        outs, terms = jet_flat(run, primals, series, order)
        flags[:] = [t is not None or w for t, w in zip(terms, wanted, strict=True)]
        found = [filled(t, get_aval(x), order) for x, t, f in zip(outs, terms, flags, strict=True) if f]
        return [*outs, *sum(found, [])]

    avals = [*closed.in_avals, *[a for a, v in zip(closed.in_avals, varying, strict=True) if v for _ in range(order)]]
    jaxpr, consts = trace_to_jaxpr(fun, avals, closed.jaxpr.debug_info or DebugInfo("jet", "a jaxpr"))
    return ClosedJaxpr(jaxpr, consts), tuple(flags)


def filled(terms: Terms, aval, order: int) -> list:
    """The coefficients of a value of type ``aval``, zeros where there are none."""
    return [zeros(aval)] * order if terms is None else terms


def ungroup(series: Sequence[Terms]) -> list:
    """All coefficients in order."""
    return [x for terms in series if terms is not None for x in terms]


def regroup(flat: Sequence, varying: Sequence[bool], order: int) -> list[Terms]:
    """The inverse of ``ungroup``."""
    rest = iter(flat)
    return [[next(rest) for _ in range(order)] if v else None for v in varying]


# ---- the rule of primitives that have none of their own


def by_derivative(primitive) -> Callable:
    """The rule that the primitive's ``jvp`` rule gives."""
    rule = primitive.jvp or jvp_rules.of(primitive)

    def taylor(primals, series, **params):
        out = primitive.bind(*primals, **params)
        outs = out if primitive.multiple_results else [out]

        def derivative(primals, tangents):
            found = rule(primals, tangents, **params)[1]
            return found if primitive.multiple_results else [found]

        terms = integrated(derivative, primals, series, outs)
        return (out, terms) if primitive.multiple_results else (out, terms[0])

    return taylor


def integrated(derivative: Callable, primals: Sequence, series: list[Terms], outs: Sequence) -> list[Terms]:
    """The coefficients of results whose series have the derivative ``derivative(x(t), x'(t))``.

    Arguments:
      derivative: from primals and tangents to the tangents of the results.
      primals, series: of the arguments.
      outs: the results at ``t = 0``.
    """
    order = order_of(series) if any(t is not None for t in series) else 0
    varying = [i for i, terms in enumerate(series) if terms is not None]
    if not order:
        return [None if not varying else [] for _ in outs]
    zero: list[int] = []

    def run(*given):
        xs, ts = list(primals), [Zero.of_primal(x) for x in primals]
        for i, x, t in zip(varying, given[: len(varying)], given[len(varying) :], strict=True):
            xs[i], ts[i] = x, t
        tangents = derivative(xs, ts)
        zero[:] = [i for i, t in enumerate(tangents) if type(t) is Zero]
        return [instantiate(t) for t in tangents if type(t) is not Zero]

    slopes = [[k * x for k, x in enumerate(series[i], 1)] for i in varying]
    points = [*[primals[i] for i in varying], *[s[0] for s in slopes]]
    rest = [*[series[i][: order - 1] for i in varying], *[s[1:] for s in slopes]]
    found = iter(zip(*jet_flat(run, points, rest, order - 1), strict=True))
    results: list[Terms] = []
    for i in range(len(outs)):
        if i in zero:
            results.append(None)
            continue
        first, others = next(found)
        slope = [first, *filled(others, get_aval(first), order - 1)]
        results.append([x / k for k, x in enumerate(slope, 1)] if is_inexact(get_aval(first).dtype) else None)
    return results
