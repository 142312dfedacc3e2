"""``while_loop``: iterate while a condition holds; differentiable forwards and backwards.

Forwards, the derivative of a loop is the loop over the derivative of its body. Backwards needs what each
iteration computed, and nobody knows how many there will be. So partial evaluation turns a ``while`` whose
tangents are unknown into ``while_save``, which runs it now and pushes each iteration's residuals on growing
stacks, and a ``stack_scan`` over
these stacks, which is linear: transposed, it reads them from the last item to the first (``stack.py``).

``while`` is ``while_save`` without items to save; both share their rules, which work on ``[*cond_consts,
*body_consts, *carry]``. The body of ``while_save`` returns ``[*carry, *items]``; its results are ``[*carry,
n, *stacks]``, where ``n`` counts the iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core.array import as_array
from catena.core.axes import broadcast_axis, move_axis
from catena.core.dead_code import dead_code_elimination
from catena.core.effects import of_operands
from catena.core.failures import FOUND, note_iteration
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Var, eval_jaxpr
from catena.core.named import NamedTuple
from catena.core.primitive import NoRule, as_bodies_say
from catena.core.stack import stack_aval
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.structural import broadcast_in_dim_p
from catena.core.trace import leaf_value
from catena.core.tree import tree_unflatten, treedef_tuple
from catena.core.zeros import Zero, get_aval, instantiate
from catena.lax.arithmetic import add_p
from catena.lax.comparison import select_n_p
from catena.lax.control_flow import common
from catena.lax.control_flow.common import either, merge, partition, split, take, unnamed, with_invars
from catena.lax.control_flow.lockstep import block_size, in_blocks, is_light, joined
from catena.lax.control_flow.loop_rules import derivative_body, nonzero, pruned_body, split_body
from catena.lax.control_flow.per_lane import batch_per_lane
from catena.lax.control_flow.scan import carry_name, scan_p
from catena.lax.control_flow.stack import INT, collect, stack_scan_p, stack_write_p
from catena.lax.control_flow.state import while_rule
from catena.lax.reductions import reduce_or_p
from catena.runtime import stacks
from catena.transform import interpreted
from catena.transform.batch import batch_jaxpr
from catena.transform.call_primitive import CallPrimitive, lift_body
from catena.transform.execute import physical_type
from catena.transform.jit_primitive import jaxpr_axis_names
from catena.transform.memo import memoised

# ---- type, effects, evaluation


def _abstract(*avals, body_jaxpr, **params):
    return body_jaxpr.out_avals


def _save_abstract(*avals, body_jaxpr, body_nconsts, **params):
    carry, items = split(body_jaxpr.out_avals, len(body_jaxpr.in_avals) - body_nconsts)
    return [*carry, INT, *[stack_aval(a) for a in items]]


def _effects(avals, params):
    n = params["cond_nconsts"]
    return params["cond_jaxpr"].effects | of_operands(params["body_jaxpr"].effects, lambda i: i + n)


def _axis_names(params):
    return tuple(dict.fromkeys(jaxpr_axis_names(params["cond_jaxpr"]) + jaxpr_axis_names(params["body_jaxpr"])))


def _evaluate(*args, **params):
    if common.jit_is_disabled():
        return common.converted(run_steps(args, **params)[0], _abstract(**params))
    return common.run_alone(while_p, params["body_jaxpr"], args, params)


def _save_evaluate(*args, **params):
    if not common.jit_is_disabled():
        return common.run_alone(while_save_p, params["body_jaxpr"], args, params)
    carry, rows = run_steps(args, **params)
    outs = [
        *carry,
        as_array(np.int32(len(rows))),
        *collect(rows, params["body_jaxpr"].out_avals[len(carry) :]),
    ]
    return common.converted(outs, _save_abstract(**params))


def run_steps(args, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts) -> tuple[list, list]:
    """Run the loop in Python, operation by operation: the last carry, and what each iteration saves."""
    cond_consts, body_consts, carry = split([leaf_value(x) for x in args], cond_nconsts, body_nconsts)
    rows: list = []
    while bool(eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *cond_consts, *carry)[0]):
        outs = eval_jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, *body_consts, *carry)
        carry, items = split(outs, len(carry))
        rows.append(items)
    return carry, rows


def _interpreted(**params):
    """The loop on NumPy values, where there is no compiler."""
    num_carry = len(params["body_jaxpr"].out_avals)
    run = _interpreted_saving(**params)
    return lambda *values: run(*values)[:num_carry]


def _interpreted_saving(*, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    test, body = interpreted.steps(cond_jaxpr), interpreted.steps(body_jaxpr)
    num_carry = len(body_jaxpr.in_avals) - body_nconsts
    num_items = len(body_jaxpr.out_avals) - num_carry

    def run(*values) -> list:
        cond_consts, consts, carry = split(values, cond_nconsts, body_nconsts)
        made: list = [[] for _ in range(num_items)]
        count = 0
        while test(*cond_consts, *carry)[0]:
            try:
                outs = body(*consts, *carry)
            except FOUND as error:
                note_iteration(error, count)
                raise
            carry, count = outs[:num_carry], count + 1
            for items, item in zip(made, outs[num_carry:], strict=True):
                items.append(item)
        return [*carry, np.asarray(count, np.int32), *[stacks.one_stack(stacks.Stack(items)) for items in made]]

    return run


# ---- differentiation


def derivative_rule(primitive):
    """The ``jvp`` rule of ``while`` and ``while_save``."""

    def rule(primals, tangents, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
        cond_consts, consts, carry = split(primals, cond_nconsts, body_nconsts)
        _, consts_t, carry_t = split(tangents, cond_nconsts, body_nconsts)
        nonzeros = tuple(type(t) is not Zero for t in consts_t + carry_t)
        body, carry_nz, items_nz = derivative_body(body_jaxpr, body_nconsts, len(carry), nonzeros)
        consts_t = nonzero(consts_t)
        carry_t = [instantiate(t) for t, nz in zip(carry_t, carry_nz, strict=True) if nz]
        outs = primitive.bind(
            *cond_consts, *consts, *consts_t, *carry, *carry_t,
            cond_jaxpr=with_unread(cond_jaxpr, tuple(get_aval(t) for t in carry_t)),
            cond_nconsts=cond_nconsts, body_jaxpr=body, body_nconsts=body_nconsts + len(consts_t),
        )  # fmt: skip
        carry, carry_t, count, stacks, stacks_t = split(
            outs, len(carry), len(carry_t), primitive is while_save_p, len(items_nz)
        )
        given = iter(carry_t + stacks_t)
        tangents_out = [next(given) if nz else Zero.of_primal(x) for x, nz in zip(carry, carry_nz, strict=True)]
        tangents_out += [Zero.of_primal(n) for n in count]
        tangents_out += [next(given) if nz else Zero.of_primal(x) for x, nz in zip(stacks, items_nz, strict=True)]
        return carry + count + stacks, tangents_out

    return rule


@memoised
def with_unread(jaxpr: ClosedJaxpr, avals: tuple) -> ClosedJaxpr:
    """The jaxpr with further arguments, which it does not read."""
    return with_invars(jaxpr, jaxpr.jaxpr.invars + [Var(a) for a in avals])


def reads(closed: ClosedJaxpr) -> list[bool]:
    """Which of its arguments a jaxpr reads."""
    return dead_code_elimination(closed.jaxpr, [True] * len(closed.out_avals))[1]


class LoopHalves(NamedTuple):
    """A while loop split in its known half and the rest; ``halves`` is its body's split as a loop body."""

    cond: ClosedJaxpr
    halves: Any


@memoised
def split_loop(body_jaxpr: ClosedJaxpr, body_nconsts: int, unknown: tuple, cond_jaxpr: ClosedJaxpr, cond_nconsts: int):
    """Split a while loop, or ``None`` where its condition depends on unknown components of the carry."""
    num_carry = len(body_jaxpr.in_avals) - body_nconsts
    halves = split_body(body_jaxpr, body_nconsts, num_carry, unknown)
    tested = reads(cond_jaxpr)[cond_nconsts:]
    if any(t and u for t, u in zip(tested, halves.carry_unknown, strict=True)):
        return None
    consts, carry = split(cond_jaxpr.jaxpr.invars, cond_nconsts)
    known, _ = partition(carry, halves.carry_unknown)
    return LoopHalves(with_invars(cond_jaxpr, consts + known), halves)


def partial_eval_rule(primitive):
    """The ``partial_eval`` rule of both: run the known half now and save its residuals."""

    def rule(tape, args, **params):
        cond_nconsts, body_nconsts = params["cond_nconsts"], params["body_nconsts"]
        cond_consts, consts, carry = split(args, cond_nconsts, body_nconsts)
        unknown = tuple(tape.is_unknown(x) for x in consts + carry)
        parts = None
        if not any(tape.is_unknown(x) for x in cond_consts):
            parts = split_loop(params["body_jaxpr"], body_nconsts, unknown, params["cond_jaxpr"], cond_nconsts)
        if parts is None:
            return tape.record(primitive, args, params)
        halves = parts.halves
        known_consts, unknown_consts = partition(consts, unknown[:body_nconsts])
        known_carry, unknown_carry = partition(carry, halves.carry_unknown)
        with tape.known():
            outs = while_save_p.bind(
                *cond_consts, *known_consts, *known_carry, cond_jaxpr=parts.cond, cond_nconsts=cond_nconsts,
                body_jaxpr=halves.known, body_nconsts=len(known_consts),
            )  # fmt: skip
            invariants = eval_jaxpr(halves.invariant.jaxpr, halves.invariant.consts, *known_consts)
        known_out, (n,), made = split(outs, len(known_carry), 1)
        stacks = made[: len(halves.ys_unknown) - sum(halves.ys_unknown)]
        unknown_out, unknown_stacks = [], []
        if any(halves.carry_unknown) or any(halves.ys_unknown):
            residual_consts = take(known_consts, halves.const_sources) + invariants
            outs = tape.record(
                stack_scan_p,
                [n, *residual_consts, *unknown_consts, *unknown_carry, *take(made, halves.saved_sources)],
                {
                    "jaxpr": halves.rest,
                    "num_consts": halves.rest_consts,
                    "num_carry": len(unknown_carry),
                    "reverse": False,
                },
            )
            unknown_out, unknown_stacks = split(outs, len(unknown_carry))
        carry_out = merge(halves.carry_unknown, known_out, unknown_out)
        stacks_out = merge(halves.ys_unknown, stacks, unknown_stacks)
        return [*carry_out, n, *stacks_out] if primitive is while_save_p else carry_out

    return rule


# ---- vectorisation


def _batch(axis, args, dims, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    params = {
        "cond_jaxpr": cond_jaxpr, "cond_nconsts": cond_nconsts,
        "body_jaxpr": body_jaxpr, "body_nconsts": body_nconsts,
    }  # fmt: skip
    unchanged = unchanged_carry(body_jaxpr, body_nconsts)
    if any(unchanged):
        return batch_without(unchanged, axis, args, dims, **params)
    mapped = tuple(d is not None for d in dims)
    batched = batched_loop(body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts, axis, mapped)
    by_name = axis.name is not None and axis.name in while_p.axis_names(params)
    if not batched.cond_mapped:
        return _run_batched(batched, axis, args, dims, cond_nconsts, body_nconsts)
    light = is_light(cond_jaxpr, body_jaxpr)
    if by_name or light and axis.size <= block_size(axis.size):
        masked = masked_loop(body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts, axis, mapped)
        return _run_batched(masked, axis, args, dims, cond_nconsts, body_nconsts)
    if not light:
        return batch_per_lane(while_p, axis, args, dims, params)
    return _run_in_blocks(axis, args, dims, params)


def unchanged_carry(body: ClosedJaxpr, nconsts: int) -> tuple:
    """For each component of the carry, whether the body returns it as it was."""
    jaxpr = body.jaxpr
    return tuple(v is old for v, old in zip(jaxpr.outvars, jaxpr.invars[nconsts:], strict=True))


def batch_without(unchanged, axis, args, dims, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    """Vectorise a loop some of whose carry never changes: that is a constant to it, mapped or not as it came."""
    counts = cond_nconsts, body_nconsts
    smaller = with_constants(body_jaxpr, cond_jaxpr, *counts, unchanged)
    values = [partition(split(xs, *counts)[2], unchanged) for xs in (args, dims)]
    (changing, fixed), (changing_d, fixed_d) = values
    before = [split(xs, *counts) for xs in (args, dims)]
    given = [(*c, *f, *b, *f, *rest) for (c, b, _), (rest, f) in zip(before, values, strict=True)]
    outs, out_dims = _batch(
        axis, *given, cond_jaxpr=smaller[0], cond_nconsts=cond_nconsts + len(fixed),
        body_jaxpr=smaller[1], body_nconsts=body_nconsts + len(fixed),
    ) if changing else ((), ())  # fmt: skip
    return merge(unchanged, outs, fixed), merge(unchanged, out_dims, fixed_d)


@memoised
def with_constants(body: ClosedJaxpr, cond: ClosedJaxpr, cond_nconsts: int, body_nconsts: int, unchanged: tuple):
    """Condition and body with the unchanged part of the carry behind their other constants."""

    def reordered(closed, nconsts, outvars):
        consts, carry = split(closed.jaxpr.invars, nconsts)
        changing, fixed = partition(carry, unchanged)
        jaxpr = closed.jaxpr
        invars = [*consts, *fixed, *changing]
        return ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, outvars, jaxpr.eqns, None, unnamed(jaxpr)), closed.consts)

    body_outs = partition(body.jaxpr.outvars, unchanged)[0]
    return reordered(cond, cond_nconsts, cond.jaxpr.outvars), reordered(body, body_nconsts, body_outs)


def _run_in_blocks(axis, args, dims, params):
    """A ``scan`` over blocks of examples, each of which runs in lockstep."""
    size = block_size(axis.size)
    count = -(-axis.size // size)
    mapped = tuple(d is not None for d in dims)
    body = block_body(
        params["body_jaxpr"], params["body_nconsts"], params["cond_jaxpr"], params["cond_nconsts"],
        axis._replace(name=None, size=size), mapped,
    )  # fmt: skip
    fixed, moving = partition(list(zip(args, dims, strict=True)), mapped)
    operands = [x for x, _ in fixed] + [in_blocks(x, d, count, size) for x, d in moving]
    outs = scan_p.bind(*operands, jaxpr=body, length=count, num_carry=0, num_consts=len(fixed), reverse=False, unroll=1)
    return [joined(y, axis.size) for y in outs], [0] * len(outs)


@memoised
def block_body(body_jaxpr, body_nconsts: int, cond_jaxpr, cond_nconsts: int, axis, mapped: tuple) -> ClosedJaxpr:
    """A loop over one block in lockstep; operands that are not mapped come first."""
    loop = masked_loop(body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts, axis, mapped)
    avals = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals]
    wide = [a.with_axis(0, axis.size, axis.split) if m else a for a, m in zip(avals, mapped, strict=True)]

    def run(*operands):
        fixed, blocks = split(operands, mapped.count(False))
        args = merge(mapped, fixed, blocks)
        return _run_batched(loop, axis, args, [0 if m else None for m in mapped], cond_nconsts, body_nconsts)[0]

    in_avals = sum(partition(wide, mapped), [])
    return ClosedJaxpr(*trace_to_jaxpr(run, in_avals, DebugInfo("vmap", "a while loop")))


def _run_batched(batched, axis, args, dims, cond_nconsts: int, body_nconsts: int):
    carry_mapped = batched.carry_mapped
    moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    cond_consts, body_consts, carry = split(moved, cond_nconsts, body_nconsts)
    carry_dims = dims[cond_nconsts + body_nconsts :]
    carry = [
        broadcast_axis(x, axis.size) if m and d is None else x
        for x, m, d in zip(carry, carry_mapped, carry_dims, strict=True)
    ]
    consts = cond_consts + body_consts if batched.cond_mapped else body_consts
    outs = while_p.bind(
        *cond_consts, *consts, *carry, cond_jaxpr=batched.cond, cond_nconsts=cond_nconsts,
        body_jaxpr=batched.body, body_nconsts=len(consts),
    )  # fmt: skip
    return outs, [0 if m else None for m in carry_mapped]


class BatchedLoop(NamedTuple):
    """A vectorised loop; ``cond_mapped`` says whether its condition differs from example to example."""

    cond: ClosedJaxpr
    body: ClosedJaxpr
    carry_mapped: tuple
    cond_mapped: bool


@memoised
def batched_loop(body_jaxpr, body_nconsts: int, cond_jaxpr, cond_nconsts: int, axis, mapped: tuple) -> BatchedLoop:
    """Vectorise condition and body; ``mapped`` tells for each operand whether it is mapped."""
    cond_m, body_m, carry_m = map(tuple, split(mapped, cond_nconsts, body_nconsts))
    while True:
        body, out_m = batch_jaxpr(body_jaxpr, axis, body_m + carry_m, carry_m)
        if out_m == carry_m:
            break
        carry_m = either(carry_m, out_m)
    cond, (pred_mapped,) = batch_jaxpr(cond_jaxpr, axis, cond_m + carry_m, False)
    return BatchedLoop(cond, body, carry_m, pred_mapped)


@memoised
def masked_loop(body_jaxpr, body_nconsts: int, cond_jaxpr, cond_nconsts: int, axis, mapped: tuple) -> BatchedLoop:
    """Vectorise a loop so that all examples run until the last one is done, those that are done unchanged.

    Needed where the examples speak to each other inside the loop. The body takes the constants of the
    condition before its own.
    """
    cond_m, body_m, carry_m = map(tuple, split(mapped, cond_nconsts, body_nconsts))
    carry_m = (True,) * len(carry_m)
    body, _ = batch_jaxpr(body_jaxpr, axis, body_m + carry_m, True)
    cond, _ = batch_jaxpr(cond_jaxpr, axis, cond_m + carry_m, True)

    def run_all(*args):
        return [reduce_or_p.bind(eval_jaxpr(cond.jaxpr, cond.consts, *args)[0], axes=(0,))]

    def step(*args):
        cond_consts, body_consts, carry = split(args, cond_nconsts, body_nconsts)
        active = eval_jaxpr(cond.jaxpr, cond.consts, *cond_consts, *carry)[0]
        outs = eval_jaxpr(body.jaxpr, body.consts, *body_consts, *carry)
        return [choose(active, new, old) for new, old in zip(outs, carry, strict=True)]

    info = DebugInfo("vmap", "a while loop")
    cond_avals = cond.in_avals[:cond_nconsts]
    cond_all = ClosedJaxpr(*trace_to_jaxpr(run_all, cond.in_avals, info))
    body_all = ClosedJaxpr(*trace_to_jaxpr(step, [*cond_avals, *body.in_avals], info))
    return BatchedLoop(cond_all, body_all, carry_m, True)


def choose(mask, on_true, on_false):
    """``on_true`` for the examples where ``mask`` holds, else ``on_false``; the mapped axis is in front."""
    shape = get_aval(on_true).shape
    wide = broadcast_in_dim_p.bind(mask, shape=shape, broadcast_dimensions=(0,)) if len(shape) > 1 else mask
    return select_n_p.bind(wide, on_false, on_true)


def _save_batch(axis, args, dims, **params):
    return batch_per_lane(while_save_p, axis, args, dims, params)


# ---- compilation


def _lower(b, *operands, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    cond_consts, body_consts, carry = split(operands, cond_nconsts, body_nconsts)
    return b.while_loop(cond_jaxpr, cond_consts, body_jaxpr, body_consts, carry)


def _save_lower(b, *operands, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    cond_consts, body_consts, carry = split(operands, cond_nconsts, body_nconsts)
    cond, body = saving_loop(body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts)
    stacks = [b.stack_new(*physical_type(a)) for a in body_jaxpr.out_avals[len(carry) :]]
    start = b.constant(np.zeros((), np.int32))
    outs = b.while_loop(cond, cond_consts, body, body_consts, [*carry, start, *stacks])
    return outs


@memoised
def saving_loop(body_jaxpr: ClosedJaxpr, body_nconsts: int, cond_jaxpr: ClosedJaxpr, cond_nconsts: int):
    """The plain loop that ``while_save`` becomes; it carries ``[*carry, n, *stacks]``."""
    consts, carry = split(body_jaxpr.in_avals, body_nconsts)
    num_carry = len(carry)
    stacks = [stack_aval(a) for a in body_jaxpr.out_avals[num_carry:]]

    def body(*args):
        consts_in, carry_in, (n, *stacks_in) = split(args, body_nconsts, num_carry)
        outs = eval_jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, *consts_in, *carry_in)
        written = [stack_write_p.bind(s, n, x) for s, x in zip(stacks_in, outs[num_carry:], strict=True)]
        return [*outs[:num_carry], add_p.bind(n, np.int32(1)), *written]

    info = body_jaxpr.jaxpr.debug_info or DebugInfo("while_loop", "a loop")
    traced = ClosedJaxpr(
        *trace_to_jaxpr(body, [*consts, *carry, INT, *stacks], DebugInfo(info.traced_for, info.func_src_info))
    )
    return with_unread(cond_jaxpr, (INT, *stacks)), traced


_lift_condition = lift_body("cond_jaxpr", count="cond_nconsts")
_lift_body = lift_body("body_jaxpr", lambda params: params["cond_nconsts"], "body_nconsts")


def _lift(args, params):
    return _lift_condition(*_lift_body(args, params))


while_p = CallPrimitive(
    "while",
    lift=_lift,
    multiple_results=True,
    takes_arrays=True,
    takes_tokens=True,
    effects=_effects,
    axis_names=_axis_names,
    abstract=_abstract,
    varying=as_bodies_say,
    evaluate=_evaluate,
    batch=_batch,
    transpose=NoRule(
        "the condition of the loop depends on the values that it should be linear in, so it is not linear"
    ),
    lower=_lower,
)
while_save_p = CallPrimitive(
    "while_save",
    lift=_lift,
    multiple_results=True,
    takes_arrays=True,
    takes_tokens=True,
    effects=_effects,
    axis_names=_axis_names,
    abstract=_save_abstract,
    varying=as_bodies_say,
    evaluate=_save_evaluate,
    batch=_save_batch,
    transpose=NoRule("partial evaluation splits it into a known and a linear half first"),
    lower=_save_lower,
)


while_p.discharge = while_rule(while_p)
interpreted.calls[while_p] = _interpreted
interpreted.calls[while_save_p] = _interpreted_saving


def prune_rule(primitive):
    """The ``prune`` rule: only what is used, and what the condition and the rest depend on."""

    def rule(eqn, used):
        cond, body = eqn.own_params["cond_jaxpr"], eqn.own_params["body_jaxpr"]
        cond_nconsts, body_nconsts = eqn.own_params["cond_nconsts"], eqn.own_params["body_nconsts"]
        num_carry = len(body.in_avals) - body_nconsts
        count = [True] * (primitive is while_save_p)
        of_carry, _, of_items = split(used, num_carry, len(count))
        tested = tuple(reads(cond)[cond_nconsts:])
        of_body = tuple(of_carry + of_items)
        body, read, carry_kept = pruned_body(body, body_nconsts, num_carry, of_body, tested)
        cond_consts, rest = split(eqn.invars, cond_nconsts)
        kept_args = (True,) * cond_nconsts + carry_kept
        return eqn.replace(
            invars=cond_consts + partition(rest, read)[1],
            outvars=partition(eqn.outvars, [*carry_kept, *count, *of_items])[1],
            params={
                "cond_jaxpr": with_invars(cond, partition(cond.jaxpr.invars, kept_args)[1]),
                "cond_nconsts": cond_nconsts,
                "body_jaxpr": body,
                "body_nconsts": sum(read[:body_nconsts]),
            },
        )  # fmt: skip

    return rule


for _primitive in (while_p, while_save_p):
    _primitive.prune = prune_rule(_primitive)
    _primitive.jvp = derivative_rule(_primitive)
    _primitive.partial_eval = partial_eval_rule(_primitive)


# ---- the function


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Iterate ``val = body_fun(val)`` while ``cond_fun(val)`` holds. Differentiable in both modes.

    Arguments:
      cond_fun: from the value to a boolean scalar.
      body_fun: from the value to the next one, of the same structure, shapes and dtypes.
      init_val: the first value: a tree of arrays and scalars. Weakly typed ones take the dtype that the body
        returns.
    Returns:
      The first value for which the condition does not hold.
    Raises:
      TypeError: a function is not callable, the condition is not a boolean scalar, or the body changes the
        type.

    >>> import catena.lax as lax
    >>> lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
    Array(192, dtype=int32, weak_type=True)
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    leaves, tree = common.flatten_values(init_val)
    if common.jit_is_disabled() and all(map(common.is_concrete, leaves)):
        return while_in_python(cond_fun, body_fun, tree_unflatten(tree, leaves))
    cond, body, avals = trace_while(cond_fun, body_fun, tree, [get_aval(x) for x in leaves])
    outs = while_p.bind(
        *cond.consts, *body.consts, *common.converted(leaves, avals),
        cond_jaxpr=cond.jaxpr, cond_nconsts=len(cond.consts),
        body_jaxpr=body.jaxpr, body_nconsts=len(body.consts),
    )  # fmt: skip
    return tree_unflatten(tree, outs)


def trace_while(cond_fun, body_fun, tree, avals: list):
    """The traced condition and body, and the types of the carry once weak ones have given way."""
    in_tree = treedef_tuple((tree,))
    name = carry_name(body_fun)
    while True:
        body = common.trace_body(body_fun, in_tree, avals, "while_loop")
        common.check_same_tree(tree, body.out_tree, avals, body.out_avals, "while_loop body", name)
        wider = common.promoted(avals, body.out_avals)
        if wider == avals:
            break
        avals = wider
    common.check_same_types(tree, avals, body.out_avals, "while_loop body", name)
    cond = common.trace_body(cond_fun, in_tree, avals, "while_loop")
    check_condition(cond)
    return cond, body, avals


def check_condition(cond):
    """Raise where a condition does not return a boolean scalar."""
    if cond.out_tree.num_nodes != 1 or cond.out_tree.num_leaves != 1:
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {cond.out_tree}.")
    (aval,) = cond.out_avals
    if aval.shape or aval.dtype != np.bool_:
        raise TypeError(f"cond_fun must return a boolean scalar, but got output type(s) {aval.str_short()}.")


def while_in_python(cond_fun, body_fun, value):
    """The loop in Python, for when jit is disabled: the functions see concrete values."""
    while bool(cond_fun(value)):
        value = body_fun(value)
    leaves, tree = common.flatten_values(value)
    return tree_unflatten(tree, leaves)
