"""Calls, branches and loops with their checks: what holds jaxprs gets checked ones, and hands the report on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catena import lax
from catena.core.aval import ShapedArray
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.manual_axes import ManualAxisType
from catena.core.named import NamedTuple
from catena.core.partition_spec import PartitionSpec
from catena.core.structural import reshard_p
from catena.core.zeros import as_varying, get_aval
from catena.experimental.checkify.checking import CheckOfDevices
from catena.experimental.checkify.errors import Categories, Check, kinds
from catena.experimental.checkify.report import Report, blanks
from catena.experimental.checkify.trace import Checked, CheckTrace, check_rules, checked
from catena.lax.control_flow.common import retraced, split
from catena.lax.control_flow.stack import stack_scan_p
from catena.lax.control_flow.while_loop import while_save_p
from catena.parallel.primitive import shard_map_p
from catena.parallel.region import Region, inside
from catena.parallel.vectorised import region_of
from catena.transform.checkpoint import checkpoint_p
from catena.transform.forward_call import forward_call_p
from catena.transform.jit_primitive import jit_p
from catena.transform.memo import memoised

CODE = ShapedArray((), np.int32)


def report_avals(checks: tuple[Check, ...]) -> list:
    """The types of the leaves of a report of these checks."""
    return [CODE, *[aval for kind in kinds(checks) for aval in kind]] if checks else []


def run_and_absorb(report: Report, closed: Checked, args) -> list:
    """The results of a checked jaxpr, whose report is noted in ``report``."""
    outs = eval_jaxpr(closed.jaxpr.jaxpr, closed.jaxpr.consts, *args)
    outs, leaves = split(outs, len(outs) - len(report_avals(closed.checks)))
    if leaves:
        report.absorb(leaves[0], leaves[1:], closed.checks)
    return outs


def resumed(checks: tuple, leaves, *parts: tuple) -> Report:
    """A report of these checks as it was left, which knows where the checks of each part stand among them."""
    report = Report()
    if checks:
        report.resume(checks, leaves)
    start = 0
    for part in parts:
        report.place(part, start)
        start += len(part)
    return report


# ---- calls


def _call(primitive, parameter: str = "jaxpr"):
    def rule(trace: CheckTrace, args, params):
        inner = checked(params[parameter], trace.enabled)
        return trace.absorb(primitive.bind(*args, **{**params, parameter: inner.jaxpr}), inner.checks)

    return rule


check_rules[jit_p] = _call(jit_p)
check_rules[checkpoint_p] = _call(checkpoint_p)


def _forward_call(trace: CheckTrace, args, params):
    """The function and its forward rule must return the same; checked, only the rule is known to."""
    inner = checked(params["forward"], trace.enabled)
    outs = eval_jaxpr(inner.jaxpr.jaxpr, inner.jaxpr.consts, *args)
    return trace.absorb(outs, inner.checks)


check_rules[forward_call_p] = _forward_call


def _shard_map(trace: CheckTrace, args, params):
    """The program of each device makes its own report, and all of them are heard."""
    region = region_of(params)
    body, checks = checked_device(params["jaxpr"], region, trace.enabled)
    if not checks:
        return shard_map_p.bind(*args, **{**params, "jaxpr": body})
    specs = (PartitionSpec(region.axes),) * len(report_avals(checks))
    outs = shard_map_p.bind(*args, **{**params, "jaxpr": body, "out_specs": params["out_specs"] + specs})
    outs, reports = split(outs, len(params["out_specs"]))
    reports = [at_once(x) for x in reports]
    kept = tuple(a.update(shape=(region.size(region.axes), *a.shape)) for a in report_avals(checks))
    trace.report.add(lax.reduce_or(lax.ne(reports[0], np.int32(0)), (0,)), CheckOfDevices(checks, kept), reports)
    return outs


def at_once(x):
    """``x``, not split over axes of the mesh."""
    said = get_aval(x).said_sharding
    return x if said is None else reshard_p.bind(x, dst_sharding=said.update(spec=PartitionSpec()))


@memoised
def checked_device(closed: ClosedJaxpr, region: Region, enabled: Categories) -> tuple:
    """The program of one device, which returns its report, too, each leaf with an axis of length 1; and the checks."""
    with inside(region):
        inner = checked(closed, enabled)
        if not inner.checks:
            return inner.jaxpr, ()

        def fun(*args):
            outs = eval_jaxpr(inner.jaxpr.jaxpr, inner.jaxpr.consts, *args)
            outs, leaves = split(outs, len(closed.out_avals))
            return [*outs, *[as_varying(lax.expand_dims(x, (0,)), everywhere) for x in leaves]]

        everywhere = CODE.update(manual_axis_type=ManualAxisType(varying=region.axes if region.typed else ()))
        return retraced(fun, closed.in_avals, inner.jaxpr), inner.checks


check_rules[shard_map_p] = _shard_map


# ---- branches


def _cond(trace: CheckTrace, args, params):
    branches, checks = checked_branches(params["branches"][0], params["branches"], trace.enabled)
    return trace.absorb(lax.cond_p.bind(*args, branches=branches), checks)


check_rules[lax.cond_p] = _cond


@memoised
def checked_branches(first, branches: tuple, enabled: Categories) -> tuple[tuple, tuple]:
    """The branches with their checks, all returning a report of the checks of all, and these."""
    inner = [checked(branch, enabled) for branch in branches]
    checks = tuple(check for branch in inner for check in branch.checks)
    starts = np.cumsum([0, *[len(branch.checks) for branch in inner]]).tolist()
    return tuple(of_all(b, checks, start) for b, start in zip(inner, starts, strict=False)), checks


def of_all(branch: Checked, checks: tuple, start: int) -> ClosedJaxpr:
    """A checked branch whose checks are those of ``checks`` from ``start`` on, with a report of all."""
    if not checks:
        return branch.jaxpr

    def fun(*args):
        report = resumed(checks, blanks(checks))
        report.place(branch.checks, start)
        return [*run_and_absorb(report, branch, args), *report.leaves()]

    return retraced(fun, branch.jaxpr.in_avals, branch.jaxpr)


# ---- loops: the report is carried along, and keeps what failed first


def _scan(primitive, leading: int):
    """The rule of ``scan`` and of ``stack_scan``, which has the number of its trips in front."""

    def rule(trace: CheckTrace, args, params):
        num_consts, num_carry = params["num_consts"], params["num_carry"]
        body, checks = checked_body(params["jaxpr"], num_consts, num_carry, trace.enabled)
        start = blanks(checks)
        before, consts, carry, xs = split(args, leading, num_consts, num_carry)
        params = {**params, "jaxpr": body, "num_carry": num_carry + len(start)}
        outs = primitive.bind(*before, *consts, *carry, *start, *xs, **params)
        carry, report, ys = split(outs, num_carry, len(start))
        return trace.absorb([*carry, *ys, *report], checks)

    return rule


check_rules[lax.scan_p] = _scan(lax.scan_p, 0)
check_rules[stack_scan_p] = _scan(stack_scan_p, 1)


@memoised
def checked_body(closed: ClosedJaxpr, num_consts: int, num_carry: int, enabled: Categories) -> tuple:
    """A loop body that carries a report behind its own carry; and the checks."""
    inner = checked(closed, enabled)
    if not inner.checks:
        return inner.jaxpr, ()
    carried = report_avals(inner.checks)
    consts, carry, xs = split(closed.in_avals, num_consts, num_carry)

    def fun(*args):
        before, leaves, xs = split(args, num_consts + num_carry, len(carried))
        report = resumed(inner.checks, leaves)
        carry, ys = split(run_and_absorb(report, inner, [*before, *xs]), num_carry)
        return [*carry, *report.leaves(), *ys]

    return retraced(fun, [*consts, *carry, *carried, *xs], closed), inner.checks


def _while(primitive):
    """The rule of ``while`` and of ``while_save``, which returns behind its carry the number of trips and stacks."""

    def rule(trace: CheckTrace, args, params):
        nconsts = params["cond_nconsts"], params["body_nconsts"]
        loop = checked_loop(params["body_jaxpr"], params["cond_jaxpr"], *nconsts, trace.enabled)
        if not loop.checks:
            return primitive.bind(*args, **params)
        cond_consts, consts, carry = split(args, *nconsts)
        report = loop.resumed(blanks(loop.checks))
        if loop.test.checks:
            run_and_absorb(report, loop.test, [*cond_consts, *carry])
            consts = [*cond_consts, *consts]
        outs = primitive.bind(
            *cond_consts, *consts, *carry, *report.leaves(), cond_jaxpr=loop.cond, cond_nconsts=nconsts[0],
            body_jaxpr=loop.body, body_nconsts=len(consts),
        )  # fmt: skip
        carry, leaves, saved = split(outs, len(carry), len(report.leaves()))
        return trace.absorb([*carry, *saved, *leaves], loop.checks)

    return rule


check_rules[lax.while_p] = _while(lax.while_p)
check_rules[while_save_p] = _while(while_save_p)


class CheckedLoop(NamedTuple):
    """A while loop whose carry ends in the leaves of a report: the checks, how such a report is resumed, the checked
    condition ``test``, and what the loop runs.
    """

    checks: tuple[Check, ...]
    resumed: Callable[[list], Report]
    test: Checked
    cond: ClosedJaxpr
    body: ClosedJaxpr


@memoised
def checked_loop(
    body: ClosedJaxpr, cond: ClosedJaxpr, cond_nconsts: int, body_nconsts: int, enabled: Categories
) -> CheckedLoop:
    """A while loop with its checks.

    Where the condition has checks, the body takes its constants first, and makes them for the next trip.
    """
    inner, test = checked(body, enabled), checked(cond, enabled)
    checks = (*inner.checks, *test.checks)
    carried = report_avals(checks)
    consts, carry = split(body.in_avals, body_nconsts)
    cond_consts = cond.in_avals[:cond_nconsts]

    def resume(leaves) -> Report:
        return resumed(checks, leaves, inner.checks, test.checks)

    def condition(*args):
        given = args[: cond_nconsts + len(carry)]
        return eval_jaxpr(test.jaxpr.jaxpr, test.jaxpr.consts, *given)[:1]

    def step(*args):
        tested, given, leaves = split(args, cond_nconsts if test.checks else 0, body_nconsts + len(carry))
        report = resume(leaves)
        carried_on, items = split(run_and_absorb(report, inner, given), len(carry))
        if test.checks:
            run_and_absorb(report, test, [*tested, *carried_on])
        return [*carried_on, *report.leaves(), *items]

    before = cond_consts if test.checks else []
    return CheckedLoop(
        checks,
        resume,
        test,
        retraced(condition, [*cond_consts, *carry, *carried], cond),
        retraced(step, [*before, *consts, *carry, *carried], body),
    )
