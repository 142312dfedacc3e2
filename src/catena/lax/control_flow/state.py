"""References in loops and branches: what is written to in a body is carried along.

What a body only reads is a constant as any other; what it
writes to becomes part of the carry, or of the items where the loop runs over it.
"""

from __future__ import annotations

from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.primitive import Primitive
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.lax.control_flow.common import partition, split, unnamed, with_invars, with_outvars
from catena.transform.discharge import discharged, put_back, values_of
from catena.transform.memo import memoised


def scan_rule(primitive: Primitive):
    """The ``discharge`` rule of ``scan``."""

    def rule(*operands, jaxpr, num_consts, num_carry, **params):
        body, in_consts, in_items = scan_body(jaxpr, num_consts, num_carry)
        consts, carry, xs = split(values_of(operands), num_consts, num_carry)
        fixed, moving = partition(consts, [i in in_consts for i in range(num_consts)])
        outs = primitive.bind(
            *fixed, *carry, *moving, *xs,
            jaxpr=body, num_consts=len(fixed), num_carry=num_carry + len(moving), **params,
        )  # fmt: skip
        last, states, ys, items = split(outs, num_carry, len(moving), len(jaxpr.out_avals) - num_carry)
        return put_back(operands, in_consts + in_items, last + ys + states + items)

    return rule


@memoised
def scan_body(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int):
    """The body with the constants that it writes to in its carry, the new items among its results; and which operands
    of the loop these are.
    """
    inner, written = discharged(jaxpr)
    in_consts = tuple(i for i in written if i < num_consts)
    in_items = tuple(i for i in written if i >= num_consts + num_carry)
    consts, carry, xs = split(inner.jaxpr.invars, num_consts, num_carry)
    fixed, moving = partition(consts, [i in in_consts for i in range(num_consts)])
    outs, ys, states, items = split(inner.jaxpr.outvars, num_carry, len(jaxpr.out_avals) - num_carry, len(in_consts))
    body = with_outvars(with_invars(inner, fixed + carry + moving + xs), outs + states + ys + items)
    return body, in_consts, in_items


def while_rule(primitive: Primitive):
    """The ``discharge`` rule of ``while``."""

    def rule(*operands, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
        cond, in_cond = discharged(cond_jaxpr)
        body, in_body = discharged(body_jaxpr)
        states = {id(operands[i]): i for i in (*in_cond, *(cond_nconsts + i for i in in_body))}
        where = tuple(states.get(id(x)) for x in operands[: cond_nconsts + body_nconsts])
        order = tuple(states.values())
        carry = [operands[i].value for i in order]
        consts, rest = split(values_of(operands), cond_nconsts + body_nconsts)
        consts = [x for x, i in zip(consts, where, strict=True) if i is None]
        counts = cond_nconsts, body_nconsts
        test, step, pred = while_parts(body, cond, counts, where, order, in_cond, in_body)
        first: list = []
        if in_cond:  # the condition is part of the step: it is asked before the loop, and at the end of each step
            *carry, flag = eval_jaxpr(pred.jaxpr, pred.consts, *consts, *rest, *carry)
            first = [flag]
        outs = primitive.bind(
            *consts, *consts, *rest, *carry, *first,
            cond_jaxpr=test, cond_nconsts=len(consts), body_jaxpr=step, body_nconsts=len(consts),
        )  # fmt: skip
        return put_back(operands, order, outs[: len(rest) + len(order)])

    return rule


@memoised
def while_parts(body: ClosedJaxpr, cond: ClosedJaxpr, counts: tuple, where: tuple, order: tuple, in_cond, in_body):
    """The condition and the body of a loop that carries states after its carry, and the condition as a step.

    Arguments:
      body, cond: without references, their new states behind their results.
      counts: the numbers of constants of the condition and of the body.
      where: for each constant of both the operand whose state it reads, or None.
      order: the operands whose states are carried.
      in_cond, in_body: which constants of each are written to.
    """
    cond_nconsts, body_nconsts = counts
    num_carry = len(body.in_avals) - body_nconsts
    places = {i: k for k, i in enumerate(order)}
    const_avals = [*cond.in_avals[:cond_nconsts], *body.in_avals[:body_nconsts]]
    carry_avals = body.in_avals[body_nconsts:]
    state_avals = [const_avals[i] for i in order]
    num_fixed = where.count(None)

    def consts_now(consts, states):
        given = iter(consts)
        return [next(given) if i is None else states[places[i]] for i in where]

    def after(states, written, start, new):
        states = list(states)
        for i, x in zip(written, new, strict=True):
            states[places[where[start + i]]] = x
        return states

    def ask(*args):
        consts, carry, states = split(args, num_fixed, num_carry)
        flag, *new = eval_jaxpr(cond.jaxpr, cond.consts, *consts_now(consts, states)[:cond_nconsts], *carry)
        return [*after(states, in_cond, 0, new), flag]

    def test(*args):
        return [args[-1]] if in_cond else ask(*args)[-1:]

    def step(*args):
        consts, carry, states = split(args, num_fixed, num_carry)
        states = states[: len(order)]
        outs = eval_jaxpr(body.jaxpr, body.consts, *consts_now(consts, states)[cond_nconsts:], *carry)
        carry, new = split(outs, num_carry)
        states = after(states, in_body, cond_nconsts, new)
        return [*carry, *(ask(*consts, *carry, *states) if in_cond else states)]

    info = unnamed(body.jaxpr) or DebugInfo("while_loop", "a loop")
    fixed = [a for a, i in zip(const_avals, where, strict=True) if i is None]
    avals = [*fixed, *carry_avals, *state_avals]
    wide = [*avals, *cond.out_avals[:1]] if in_cond else avals
    parts = [(test, wide), (step, wide), (ask, avals)]
    return tuple(ClosedJaxpr(*trace_to_jaxpr(f, a, info)) for f, a in parts)


def cond_rule(primitive: Primitive):
    """The ``discharge`` rule of ``cond``."""

    def rule(index, *operands, branches):
        inner, written = pure_branches(branches[0], branches)
        outs = primitive.bind(index, *values_of(operands), branches=inner)
        return put_back(operands, written, outs)

    return rule


@memoised
def pure_branches(first, branches: tuple):
    """The branches without references, each with the new states of all that one of them writes to."""
    parts = [discharged(branch) for branch in branches]
    written = tuple(sorted({i for _, own in parts for i in own}))
    count = len(first.out_avals)
    inner = []
    for closed, own in parts:
        made = dict(zip(own, closed.jaxpr.outvars[count:], strict=True))
        states = [made.get(i, closed.jaxpr.invars[i]) for i in written]
        inner.append(with_outvars(closed, closed.jaxpr.outvars[:count] + states))
    return tuple(inner), written
