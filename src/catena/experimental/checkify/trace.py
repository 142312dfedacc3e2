"""``checkify``: a function becomes one that returns, besides its result, the first error that its checks found.

It is a trace without tracers: every operation is applied to the values as they are, by the trace around, and the rule
of its primitive notes in a ``Report`` what can be wrong with it. So a checked function sees what the function sees,
eagerly even the values. Operations that hold jaxprs get checked ones, which return the code of their report, and what
it kept, as further results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core.context import context, set_trace, transformation, users_function
from catena.core.dtypes import is_inexact
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.lazy import load
from catena.core.leaks import running
from catena.core.named import NamedTuple
from catena.core.primitive import RuleTable
from catena.core.source import Source, function_place, user_source
from catena.core.staging import DebugInfo, check_result, trace_to_jaxpr
from catena.core.trace import Trace, leaf_value
from catena.core.traceback import api_boundary
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import Zero, get_aval
from catena.experimental.checkify.checking import Error, init_error
from catena.experimental.checkify.errors import Categories, Check, NaNError, user_checks
from catena.experimental.checkify.report import Report
from catena.lax import ne, reduce_or
from catena.transform.functions import named_after
from catena.transform.memo import memoised

check_rules = RuleTable("checks", optional=True)
RULES = ("catena.experimental.checkify.rules", "catena.experimental.checkify.control_flow")  # loaded when one is needed


class CheckTrace(Trace):
    """Applies operations under the trace around, and checks them: by the rule of the primitive, ``rule(trace, args,
    params) -> out(s)``, or, where it has none and can make NaNs of numbers, by its results.
    """

    __slots__ = ("enabled", "report")
    name = "checkify"

    def __init__(self, parent, enabled: Categories):
        super().__init__(parent)
        self.enabled, self.report = enabled, Report()

    def process(self, primitive, args, params):
        context.trace = self.parent
        try:
            rule = primitive.checks
            if rule is not None:
                return rule(self, args, params)
            out = primitive.bind(*args, **params)
            self.check_numbers(primitive, out)
            return out
        finally:
            context.trace = self

    def process_custom(self, primitive, functions, args, params):
        if self.parent is None:
            return functions[0](*args)  # nobody differentiates around
        call = CheckedCall(self.enabled, *functions)
        with set_trace(self.parent), users_function():
            outs = primitive.bind_functions(call.functions(), args, params)
            return self.absorb(outs, call.checks)

    def check_numbers(self, primitive, out):
        """Check the results of an operation for NaNs."""
        if NaNError not in self.enabled:
            return
        for x in out if primitive.multiple_results else (out,):
            aval = get_aval(x)
            if is_inexact(aval.dtype) and aval.size:
                failed = reduce_or(ne(x, x), tuple(range(aval.ndim)))
                self.report.add(failed, Check(NaNError, source(), (primitive.name,)))

    def absorb(self, outs, checks: tuple) -> list:
        """The results of a checked jaxpr or function, without what its report says, which is noted here."""
        if not checks:
            return list(outs)
        count = len(outs) - 1 - sum(map(len, dict.fromkeys(check.kept for check in checks)))
        self.report.absorb(outs[count], list(outs[count + 1 :]), checks)
        return list(outs[:count])


def source() -> Source | None:
    """The user's line that is being checked."""
    return context.source or user_source()


# ---- functions and jaxprs, with a report


def run_checked(fun: Callable, args, enabled: Categories) -> tuple[list, Report]:
    """Run a flat function: its results, and the report."""
    with running(CheckTrace(context.trace, enabled)) as trace, transformation("checkify"):
        outs, report = list(fun(*args)), trace.report
        del trace
    return outs, report


class Checked(NamedTuple):
    """A jaxpr whose results are followed by its report's code and what that kept, and the checks of it; where there are
    none, the jaxpr as it was.
    """

    jaxpr: ClosedJaxpr
    checks: tuple[Check, ...]


@memoised
def checked(closed: ClosedJaxpr, enabled: Categories) -> Checked:
    """A jaxpr with its checks."""
    made: list[tuple[Check, ...]] = []

    def fun(*args):
        run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        outs, report = run_checked(run, args, enabled)
        made.append(tuple(report.checks))  # not the report: it holds tracers
        return [*outs, *report.leaves()]

    info = closed.jaxpr.debug_info or DebugInfo("checkify", "a jaxpr")
    jaxpr, consts = trace_to_jaxpr(fun, closed.in_avals, info)
    checks = made[0]
    return Checked(ClosedJaxpr(jaxpr, consts) if checks or closed.effects else closed, checks)


class CheckedCall:
    """A function with a derivative rule, checked: the rule is that of its results, and its report has no derivative.

    Where a derivative is taken around ``checkify``, the rule runs in place of the function, whose checks are made for
    their report. Checks in the rule itself are not made there: its program is another one than the one transformed.
    """

    def __init__(self, enabled: Categories, function: Callable, *rules: Callable):
        self.enabled, self.function, self.rules = enabled, function, rules
        self.checks: tuple[Check, ...] = ()

    def functions(self) -> tuple:
        """The checked function and its rule: one function for ``custom_jvp``, two for ``custom_vjp``."""
        return (self.run, self.jvp) if len(self.rules) == 1 else (self.run, self.forward, self.backward)

    def run(self, *args) -> list:
        outs, report = run_checked(self.function, args, self.enabled)
        self.checks = tuple(report.checks)
        return [*outs, *report.leaves()]

    def unchecked(self, rule: Callable) -> Callable:
        """A rule that makes no checks, and passes none on."""
        return lambda *args: run_checked(rule, args, frozenset())[0]

    def report_of(self, args, count: int) -> list:
        """The leaves of the report, of a function with ``count`` results."""
        return self.run(*args)[count:]

    def jvp(self, *primals_and_tangents) -> list:
        half = len(primals_and_tangents) // 2
        outs = self.unchecked(self.rules[0])(*primals_and_tangents)
        count = len(outs) // 2
        report = self.report_of(primals_and_tangents[:half], count)
        return [*outs[:count], *report, *outs[count:], *(Zero.of_primal(x) for x in report)]

    def forward(self, perturbed, *args):
        noted: dict[str, Any] = {}

        def flat(*xs):
            outs, residuals, noted["tree"] = self.rules[0](perturbed, *xs)
            noted["count"] = len(outs)
            return [*outs, *residuals]

        results, count = self.unchecked(flat)(*args), None
        count = noted["count"]
        return [*results[:count], *self.report_of(args, count)], results[count:], (noted["tree"], count)

    def backward(self, tree, *residuals_and_cts) -> list:
        residual_tree, count = tree
        kept = residual_tree.num_leaves + count
        return self.unchecked(lambda *xs: self.rules[1](residual_tree, *xs))(*residuals_and_cts[:kept])


# ---- the transformation


def checkify(f: Callable, errors: Categories = user_checks) -> Callable:
    """Make a function return, besides its result, the first error that its checks find.

    The checks are calls of ``check``, and those of ``errors`` that are made by themselves: of results for NaNs, of
    divisors for zeros, of indices for their bounds; also in functions that are transformed inside, compiled, in loops
    and branches, and in backward passes. Nothing is raised; what fails computes on.

    Arguments:
      f: a function of trees.
      errors: the categories of errors to look for, a union of ``user_checks``, ``nan_checks``, ``div_checks``,
        ``index_checks``; ``float_checks``, ``automatic_checks`` and ``all_checks`` are such unions.
    Returns:
      A function with the same arguments that returns ``(error, result)``; the error, an ``Error``, says what failed
        first: ``error.get()`` is the message, ``error.throw()`` raises it.
    Raises:
      TypeError: the function returns something that is no tree of arrays.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.experimental import checkify
    >>> f = jax.jit(lambda x, i: jnp.log(x)[i])
    >>> error, y = checkify.checkify(f, errors=checkify.index_checks)(jnp.ones(3), 7)
    >>> error.get()
    'out-of-bounds indexing for array of shape (3,): index 7 is out of bounds for axis 0 with size 3. '
    """
    enabled = frozenset(errors)
    for name in RULES:
        load(name)

    @named_after(f, "The checked version")
    @api_boundary
    def checked_fun(*args, **kwargs):
        with running(CheckTrace(context.trace, enabled)) as trace, users_function(), transformation("checkify"):
            leaves, tree = tree_flatten(f(*args, **kwargs))
            report = trace.report
            del trace
        info = DebugInfo("checkify", function_place(f))
        outs = [leaf_value(check_result(x, i, info)) for i, x in enumerate(leaves)]
        return error_of(report), tree_unflatten(tree, outs)

    return checked_fun


def error_of(report: Report) -> Error:
    """What was found, for the user."""
    if report.code is None:
        return init_error
    code, *kept = report.leaves()
    return Error(ne(code, np.int32(0)), code, tuple(report.checks), kept)
