"""Rules that users give to primitives of their own, and functions wrapped in ``jet`` by hand."""

from __future__ import annotations

from collections.abc import Callable

from catena.core.context import context
from catena.core.leaks import running
from catena.core.tree import tree_flatten
from catena.core.zeros import get_aval
from catena.experimental.jet.rules import linear
from catena.experimental.jet.trace import (
    JetTrace,
    ZeroSeries,
    filled,
    integrated,
    jet_flat,
    order_of,
    zero_series,
)
from catena.experimental.jet.trace import jet_rules as all_rules
from catena.extend import linear_util as lu
from catena.interpreters.rules import Rules


class Filled:
    """A user's rule: ``rule(primals, series, **params)`` gets all coefficients of every operand, zeros among them."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable):
        self.rule = rule

    def __call__(self, primals, series, **params):
        order = order_of(series)
        given = [filled(terms, get_aval(x), order) for x, terms in zip(primals, series, strict=True)]
        out, terms = self.rule(tuple(primals), given, **params)
        if isinstance(terms, ZeroSeries):
            return out, [None] * len(out) if isinstance(out, (list, tuple)) else None
        if isinstance(out, (list, tuple)):
            return out, [None if isinstance(t, ZeroSeries) else t for t in terms]
        return out, terms


def as_users_know(rule: Callable) -> Callable:
    """A rule of the package as users would write it."""

    def asked(primals, series, **params):
        given = [None if isinstance(terms, ZeroSeries) else list(terms) for terms in series]
        out, terms = rule(list(primals), given, **params)
        if isinstance(out, (list, tuple)):
            return out, [zero_series if t is None else t for t in terms]
        return out, zero_series if terms is None else terms

    return asked


jet_rules = Rules(all_rules, Filled, as_users_know)


def linear_prop(prim, primals_in, series_in, **params) -> tuple:
    """The rule of a primitive that is linear: it applies to each coefficient.

    Arguments:
      prim: the primitive.
      primals_in, series_in: its operands and their coefficients.
      params: its parameters.
    Returns:
      The result, and its coefficients.
    """
    if prim.jvp is not None:
        return as_users_know(linear(prim))(primals_in, series_in, **params)
    found = [prim.bind(*terms, **params) for terms in zip(*series_in, strict=True)]
    terms = [list(t) for t in zip(*found, strict=True)] if prim.multiple_results else found
    return prim.bind(*primals_in, **params), terms


def zero_prop(prim, primals_in, series_in, **params) -> tuple:
    """The rule of a primitive that is constant piece by piece; the arguments are those of ``linear_prop``."""
    return prim.bind(*primals_in, **params), zero_series


def deriv_prop(prim, deriv: Callable, primals_in, series_in) -> tuple:
    """The rule of a primitive of one operand whose derivative is a function of it.

    Arguments:
      prim: the primitive.
      deriv: from the operand to the derivative there.
      primals_in, series_in: the operand and its coefficients, each in a sequence.
    """
    out = prim.bind(*primals_in)
    derivative = lambda xs, ts: [deriv(xs[0]) * ts[0]]  # noqa: E731
    return out, integrated(derivative, list(primals_in), list(series_in), [out])[0]


def deflinear(prim) -> None:
    """Say that a primitive is linear, or linear piece by piece: its derivative applies to each coefficient."""
    jet_rules[prim] = lambda primals, series, **params: linear_prop(prim, primals, series, **params)


def defzero(prim) -> None:
    """Say that a primitive is constant piece by piece: its results have no derivatives."""
    jet_rules[prim] = lambda primals, series, **params: zero_prop(prim, primals, series, **params)


def def_deriv(prim, deriv: Callable) -> None:
    """Give the derivative of a function of one argument: from the argument to its derivative there."""
    jet_rules[prim] = lambda primals, series, **params: deriv_prop(prim, deriv, primals, series)


def def_comp(prim, comp: Callable, **kwargs) -> None:
    """Say that a primitive is composed of others, as the function ``comp(*args, **kwargs)`` is."""

    def rule(primals, series, **params):
        flat = lambda *xs: [comp(*xs, **params, **kwargs)]  # noqa: E731
        outs, terms = jet_flat(flat, primals, series, order_of(series))
        return outs[0], terms[0]

    all_rules[prim] = rule


# ---- functions that transformations are put around by hand (``linear_util``)


@lu.transformation2
def jet_subtrace(f, tag, order: int, primals, series) -> tuple:
    """A function of values and series: the values and the series of its results."""
    trace = JetTrace(tag, context.trace, order)
    given = [None if isinstance(terms, ZeroSeries) else list(terms) for terms in series]
    with running(trace):
        outs = f(*[trace.pack(x, terms) for x, terms in zip(primals, given, strict=True)])
        pairs = [trace.to_primal_terms_pair(x) for x in outs]
    return tuple(x for x, _ in pairs), [terms for _, terms in pairs]


@lu.transformation2
def jet_fun(f, order: int, primals, series) -> tuple:
    """The values and the series of the results of a function that ``jet_subtrace`` is put around; zeros are arrays."""
    outs, found = f(object(), order, primals, series)
    return outs, [
        filled(None, get_aval(x), order) if isinstance(t, ZeroSeries) else t for x, t in zip(outs, found, strict=True)
    ]


@lu.transformation_with_aux2
def traceable(f, store, in_tree_def, *primals_and_series) -> list:
    """A function of values and series as one of their leaves; its second result is the tree of what it returns."""
    outs, tree = tree_flatten(f(*in_tree_def.unflatten(primals_and_series)))
    store.store(tree)
    return outs
