"""The rules of loops over many items, shared by ``scan`` (items in arrays) and ``stack_scan`` (items in stacks).

Such a loop is called with ``[*leading, *consts, *carry, *xs]`` and returns ``[*carry, *ys]``; its body maps
``[*consts, *carry, *x]`` to ``[*carry, *y]``. Which components of the carry have a tangent, are unknown, or
have a
cotangent is found as a fixpoint: the body is transformed again until what comes out is what went in.
"""

from __future__ import annotations

from collections.abc import Callable

from catena.core.dead_code import dead_code_elimination, pruned
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Var, eval_jaxpr
from catena.core.named import NamedTuple
from catena.core.primitive import Primitive
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.zeros import Zero, add_tangents, get_aval, instantiate, is_undefined_primal, zeros
from catena.lax.control_flow.common import (
    either,
    merge,
    partition,
    split,
    take,
    unnamed,
    with_invars,
    with_outvars,
)
from catena.transform.jvp import jvp_jaxpr
from catena.transform.linearize import partial_eval_jaxpr
from catena.transform.memo import memoised
from catena.transform.saving import SavedEquation
from catena.transform.transpose import transpose_jaxpr

# ---- forward derivatives


def loop_jvp(primitive: Primitive, leading: int):
    """The ``jvp`` rule: the loop over the derivative of the body, tangents carried beside the primals."""

    def rule(primals, tangents, *, jaxpr, num_consts, num_carry, **params):
        lead, consts, carry, xs = split(primals, leading, num_consts, num_carry)
        _, consts_t, carry_t, xs_t = split(tangents, leading, num_consts, num_carry)
        nonzeros = tuple(type(t) is not Zero for t in tangents[leading:])
        body, carry_nz, ys_nz = derivative_body(jaxpr, num_consts, num_carry, nonzeros)
        consts_t, xs_t = nonzero(consts_t), nonzero(xs_t)
        carry_t = [instantiate(t) for t, nz in zip(carry_t, carry_nz, strict=True) if nz]
        sizes = {"num_consts": num_consts + len(consts_t), "num_carry": num_carry + len(carry_t)}
        outs = primitive.bind(*lead, *consts, *consts_t, *carry, *carry_t, *xs, *xs_t, jaxpr=body, **sizes, **params)
        carry, carry_t, ys, ys_t = split(outs, num_carry, len(carry_t), len(ys_nz))
        given = iter([*carry_t, *ys_t])
        tangents_out = [
            next(given) if nz else Zero.of_primal(x) for x, nz in zip([*carry, *ys], carry_nz + ys_nz, strict=True)
        ]
        return [*carry, *ys], tangents_out

    return rule


def nonzero(tangents) -> list:
    return [t for t in tangents if type(t) is not Zero]


@memoised
def derivative_body(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, nonzeros: tuple):
    """The derivative of a loop body in the order of a loop body.

    Arguments:
      jaxpr: the body.
      num_consts, num_carry: how its arguments are grouped.
      nonzeros: for each argument, whether it has a tangent.
    Returns:
      A body with arguments ``[consts, their tangents, carry, its tangents, x, its tangents]`` and results in
      the same manner; which components of the carry have tangents; which of the other results have.
    """
    consts_nz, carry_nz, xs_nz = map(tuple, split(nonzeros, num_consts, num_carry))
    num_ys = len(jaxpr.out_avals) - num_carry
    while True:
        derivative, nz_out = jvp_jaxpr(jaxpr, consts_nz + carry_nz + xs_nz, carry_nz + (False,) * num_ys)
        if nz_out[:num_carry] == carry_nz:
            break
        carry_nz = either(carry_nz, nz_out[:num_carry])
    inner = derivative.jaxpr
    groups = (num_consts, num_carry, len(xs_nz), sum(consts_nz), sum(carry_nz))
    consts, carry, xs, consts_t, carry_t, xs_t = split(inner.invars, *groups)
    outs, ys, outs_t, ys_t = split(inner.outvars, num_carry, num_ys, sum(carry_nz))
    body = with_invars(derivative, consts + consts_t + carry + carry_t + xs + xs_t)
    return with_outvars(body, outs + outs_t + ys + ys_t), carry_nz, nz_out[num_carry:]


# ---- partial evaluation


class Halves(NamedTuple):
    """A loop body split in what is known and the rest.

    ``known`` is a body that returns, besides the known results, residuals that differ from iteration to
    iteration.
    ``rest`` is a body whose first constants are the residuals that do not differ: known arguments
    (``const_sources``), then the results of ``invariant``. Its first items are the residuals that do: known
    arguments (``item_sources``), then results of ``known`` after its carry (``saved_sources``).
    """

    known: ClosedJaxpr
    invariant: ClosedJaxpr
    rest: ClosedJaxpr
    carry_unknown: tuple
    ys_unknown: tuple
    const_sources: tuple
    item_sources: tuple
    saved_sources: tuple
    rest_consts: int


def loop_partial_eval(primitive: Primitive, leading: int):
    """The ``partial_eval`` rule: the known half runs now and saves residuals, the rest is recorded."""

    def rule(tape, args, *, jaxpr, num_consts, num_carry, **params):
        lead, rest_args = args[:leading], args[leading:]
        if any(tape.is_unknown(x) for x in lead):
            return tape.record(
                primitive, args, {"jaxpr": jaxpr, "num_consts": num_consts, "num_carry": num_carry, **params}
            )
        unknown = tuple(tape.is_unknown(x) for x in rest_args)
        halves = split_body(jaxpr, num_consts, num_carry, unknown)
        consts, carry, xs = split(rest_args, num_consts, num_carry)
        known_consts, unknown_consts = partition(consts, unknown[:num_consts])
        known_carry, unknown_carry = partition(carry, halves.carry_unknown)
        known_xs, unknown_xs = partition(xs, unknown[num_consts + num_carry :])
        known_args = [*known_consts, *known_carry, *known_xs]
        with tape.known():
            sizes = {"num_consts": len(known_consts), "num_carry": len(known_carry)}
            outs = primitive.bind(*lead, *known_args, jaxpr=halves.known, **sizes, **params)
            invariants = eval_jaxpr(halves.invariant.jaxpr, halves.invariant.consts, *known_consts)
        carry_out, made = split(outs, len(known_carry))
        ys = made[: len(halves.ys_unknown) - sum(halves.ys_unknown)]
        residual_consts = take(known_args, halves.const_sources) + invariants
        residual_items = take(known_args, halves.item_sources) + take(made, halves.saved_sources)
        unknowns = []
        if any(halves.carry_unknown) or any(halves.ys_unknown):
            operands = [
                *lead,
                *residual_consts,
                *unknown_consts,
                *unknown_carry,
                *residual_items,
                *unknown_xs,
            ]
            sizes = {"num_consts": halves.rest_consts, "num_carry": len(unknown_carry)}
            unknowns = tape.record(primitive, operands, {"jaxpr": halves.rest, **sizes, **params})
        return merge(halves.carry_unknown + halves.ys_unknown, carry_out + ys, unknowns)

    return rule


def unknown_carry(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, unknown: tuple):
    """Which components of the carry depend on unknowns, and the split of the body that says so."""
    consts_u, carry_u, xs_u = map(tuple, split(unknown, num_consts, num_carry))
    num_ys = len(jaxpr.out_avals) - num_carry
    while True:
        parts = partial_eval_jaxpr(jaxpr, consts_u + carry_u + xs_u, carry_u + (False,) * num_ys)
        unknown_out = parts[2]
        if unknown_out[:num_carry] == carry_u:
            return carry_u, parts
        carry_u = either(carry_u, unknown_out[:num_carry])


@memoised
def split_body(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, unknown: tuple) -> Halves:
    """Split a loop body; ``unknown`` says for each argument whether it is unknown."""
    carry_u, (known, rest, unknown_out, forwarded) = unknown_carry(jaxpr, num_consts, num_carry, unknown)
    known_consts = num_consts - sum(unknown[:num_consts])
    known_carry = num_carry - sum(carry_u)
    inner = known.jaxpr
    carry_vars, ys, saved_vars = split(inner.outvars, known_carry, len(unknown_out) - sum(unknown_out) - known_carry)
    invariant_vars = loop_invariants(inner, known_consts)
    saved_vars = iter(saved_vars)
    sources = [source_of(f, inner, saved_vars, known_consts, known_carry, invariant_vars) for f in forwarded]
    by_kind = {kind: [i for i, s in enumerate(sources) if s[0] == kind] for kind in SOURCES}
    values = {kind: [sources[i][1] for i in rows] for kind, rows in by_kind.items()}
    all_ys = ys + [v for v in dict.fromkeys(values["saved"]) if v not in ys]  # nothing is saved twice

    residuals, unknowns = split(rest.jaxpr.invars, len(forwarded))
    u_consts, u_carry, u_xs = split(unknowns, sum(unknown[:num_consts]), sum(carry_u))
    residual_consts = take(residuals, by_kind["const"] + by_kind["invariant"])
    residual_items = take(residuals, by_kind["item"] + by_kind["saved"])
    return Halves(
        known=whole_pruned(with_outvars(known, carry_vars + all_ys)),
        invariant=invariant_part(known, known_consts, values["invariant"], invariant_vars),
        rest=with_invars(rest, residual_consts + u_consts + u_carry + residual_items + u_xs),
        carry_unknown=carry_u,
        ys_unknown=unknown_out[num_carry:],
        const_sources=tuple(values["const"]),
        item_sources=tuple(values["item"]),
        saved_sources=tuple(all_ys.index(v) for v in values["saved"]),
        rest_consts=len(residual_consts) + len(u_consts),
    )


SOURCES = ("const", "invariant", "item", "saved")


def source_of(forwarded, inner: Jaxpr, saved_vars, known_consts: int, known_carry: int, invariant_vars: set):
    """What a residual is: a constant or item given to the loop, computed from constants, or to be saved."""
    if forwarded is None:
        var = next(saved_vars)
        return ("invariant" if type(var) is not Var or var in invariant_vars else "saved"), var
    if forwarded < known_consts:
        return "const", forwarded
    if forwarded < known_consts + known_carry:
        return "saved", inner.invars[forwarded]
    return "item", forwarded


def loop_invariants(jaxpr: Jaxpr, num_consts: int) -> set:
    """The variables of a body that have the same value in every iteration."""
    invariant = set(jaxpr.invars[:num_consts]) | set(jaxpr.constvars)
    for eqn in jaxpr.eqns:
        if not eqn.effects and all(v in invariant for v in eqn.invars if type(v) is Var):
            invariant.update(eqn.outvars)
    return invariant


def invariant_part(known: ClosedJaxpr, num_consts: int, outvars: list, invariant: set) -> ClosedJaxpr:
    """What a body computes from its constants alone."""
    jaxpr = known.jaxpr
    eqns = [e for e in jaxpr.eqns if not e.effects and all(v in invariant for v in e.outvars)]
    part = Jaxpr(jaxpr.constvars, jaxpr.invars[:num_consts], outvars, eqns, None, unnamed(jaxpr))
    return whole_pruned(ClosedJaxpr(part, known.consts))


def whole_pruned(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr without the equations that no result needs."""
    return pruned(closed, [True] * len(closed.out_avals))


# ---- what a checkpoint policy saves


def loop_save(stacked: Callable):
    """The ``save`` rule; ``stacked`` gives, from the type of one item and the parameters, the type of all of them."""

    def rule(eqn, unknown: tuple, saving: Callable) -> SavedEquation | None:
        num_consts, num_carry = eqn.own_params["num_consts"], eqn.own_params["num_carry"]
        carry_u, _ = unknown_carry(eqn.own_params["jaxpr"], num_consts, num_carry, unknown)
        flags = (*unknown[:num_consts], *carry_u, *unknown[num_consts + num_carry :])
        forward, rest, count = saving(eqn.own_params["jaxpr"], flags)
        if not count:
            return None
        saved = [Var(stacked(a, eqn.own_params)) for a in forward.out_avals[-count:]]
        return SavedEquation(
            [eqn.replace(outvars=[*eqn.outvars, *saved], params={**eqn.own_params, "jaxpr": forward})],
            saved,
            [eqn.replace(invars=[*eqn.invars, *saved], params={**eqn.own_params, "jaxpr": rest})],
        )

    return rule


# ---- results that nobody reads


def loop_prune(leading: int):
    """The ``prune`` rule: only the results that are used, and what of the carry they depend on."""

    def rule(eqn, used):
        num_consts, num_carry = eqn.own_params["num_consts"], eqn.own_params["num_carry"]
        held = (False,) * num_carry
        body, read, carry_kept = pruned_body(eqn.own_params["jaxpr"], num_consts, num_carry, tuple(used), held)
        lead, rest = split(eqn.invars, leading)
        outs_kept = carry_kept + tuple(used[num_carry:])
        sizes = {"num_consts": sum(read[:num_consts]), "num_carry": sum(carry_kept)}
        return eqn.replace(
            invars=lead + partition(rest, read)[1],
            outvars=partition(eqn.outvars, outs_kept)[1],
            params={**eqn.own_params, "jaxpr": body, **sizes},
        )

    return rule


@memoised
def pruned_body(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, used: tuple, held: tuple):
    """A loop body without what is not used.

    Arguments:
      jaxpr: the body.
      used: for each result of the loop, whether it is used.
      held: components of the carry that are needed in any case.
    Returns:
      The smaller body, which of its arguments it has, and which components of the carry.
    """
    carry_used, ys_used = either(used[:num_carry], held), used[num_carry:]
    while True:
        smaller, read = dead_code_elimination(jaxpr.jaxpr, carry_used + ys_used)
        carry_read = tuple(read[num_consts : num_consts + num_carry])
        if either(carry_used, carry_read) == carry_used:
            break
        carry_used = either(carry_used, carry_read)
    kept = (*read[:num_consts], *carry_used, *read[num_consts + num_carry :])
    invars = partition(jaxpr.jaxpr.invars, kept)[1]
    body = Jaxpr(smaller.constvars, invars, smaller.outvars, smaller.eqns, None, unnamed(jaxpr.jaxpr))
    return ClosedJaxpr(body, jaxpr.consts), kept, carry_used


# ---- transposition


class Backward(NamedTuple):
    """A transposed loop body and which constants, carries and items get cotangents from it."""

    body: ClosedJaxpr
    consts_nz: tuple
    carry_nz: tuple
    xs_nz: tuple


def loop_transpose(primitive: Primitive, leading: int):
    """The ``transpose`` rule: the loop run backwards, cotangents of the carry carried, those of constants summed."""

    def rule(cts, *args, jaxpr, num_consts, num_carry, reverse, **params):
        lead, consts, carry, xs = split(args, leading, num_consts, num_carry)
        linear_consts, linear_xs = map(undefined, (consts, xs))
        nonzero_cts = tuple(type(ct) is not Zero for ct in cts)
        backward = backward_body(jaxpr, linear_consts, num_carry, linear_xs, nonzero_cts)
        accumulators = [
            zeros(x.aval) for x, nz in zip(partition(consts, linear_consts)[1], backward.consts_nz, strict=True) if nz
        ]
        ct_carry = [instantiate(ct) for ct, nz in zip(cts[:num_carry], backward.carry_nz, strict=True) if nz]
        residual_consts, residual_xs = partition(consts, linear_consts)[0], partition(xs, linear_xs)[0]
        outs = primitive.bind(
            *lead, *residual_consts, *accumulators, *ct_carry, *residual_xs, *nonzero(cts[num_carry:]),
            jaxpr=backward.body, num_consts=len(residual_consts), num_carry=len(accumulators) + len(ct_carry),
            reverse=not reverse, **params,
        )  # fmt: skip
        outs = iter(outs)
        ct_consts = place(consts, linear_consts, backward.consts_nz, outs)
        ct_carry = place(carry, (True,) * num_carry, backward.carry_nz, outs)
        ct_carry = [ct if is_undefined_primal(x) else None for ct, x in zip(ct_carry, carry, strict=True)]
        return [*[None] * leading, *ct_consts, *ct_carry, *place(xs, linear_xs, backward.xs_nz, outs)]

    return rule


def undefined(args) -> tuple:
    return tuple(is_undefined_primal(x) for x in args)


def place(args, linear, nonzeros, given) -> list:
    """One entry for each argument: its cotangent, or a symbolic one, where it is linear, else ``None``."""
    nonzeros = iter(nonzeros)
    return [
        (next(given) if next(nonzeros) else Zero(get_aval_of(x))) if lin else None
        for x, lin in zip(args, linear, strict=True)
    ]


def get_aval_of(x):
    return x.aval if is_undefined_primal(x) else get_aval(x)


@memoised
def backward_body(jaxpr: ClosedJaxpr, linear_consts: tuple, num_carry: int, linear_xs: tuple, nonzero_cts: tuple):
    """Transpose a loop body.

    Arguments:
      jaxpr: the body, linear in its carry and in the constants and items flagged.
      nonzero_cts: for each result, whether it has a cotangent.
    Returns:
      A ``Backward``. Its body maps ``[residual constants, sums of constants' cotangents, carry's cotangents,
      residual items, cotangents of results]`` to ``[sums, carry's cotangents, items' cotangents]``.
    """
    linear = linear_consts + (True,) * num_carry + linear_xs
    carry_nz, ys_nz = nonzero_cts[:num_carry], nonzero_cts[num_carry:]
    count = sum(linear_consts)
    while True:
        transposed, nonzero_in = transpose_jaxpr(jaxpr, linear, tuple(not nz for nz in carry_nz + ys_nz))
        consts_nz, carry_made, xs_nz = map(tuple, split(nonzero_in, count, num_carry))
        if either(carry_nz, carry_made) == carry_nz:
            break
        carry_nz = either(carry_nz, carry_made)
    consts, carry, xs = split(jaxpr.in_avals, len(linear_consts), num_carry)
    outs, ys = split(jaxpr.out_avals, num_carry)
    residual_consts, differentiated = partition(consts, linear_consts)
    groups = [
        residual_consts,
        tangent_avals(differentiated, consts_nz),
        tangent_avals(outs, carry_nz),
        partition(xs, linear_xs)[0],
        tangent_avals(ys, ys_nz),
    ]

    def fun(*args):
        residual_consts, sums, ct_carry, residual_xs, ct_ys = split(args, *map(len, groups[:4]))
        made = eval_jaxpr(transposed.jaxpr, transposed.consts, *residual_consts, *residual_xs, *ct_carry, *ct_ys)
        ct_consts, made_carry, ct_xs = split(made, sum(consts_nz), sum(carry_made))
        sums = [add_tangents(s, ct) for s, ct in zip(sums, ct_consts, strict=True)]
        return [*sums, *filled(made_carry, carry_made, carry_nz, carry), *ct_xs]

    info = unnamed(jaxpr.jaxpr) or DebugInfo("transposition", "a loop")
    body = ClosedJaxpr(*trace_to_jaxpr(fun, [a for group in groups for a in group], info))
    return Backward(whole_pruned(without_weak_casts(body, keep=sum(xs_nz))), consts_nz, carry_nz, xs_nz)


def tangent_avals(avals, wanted) -> list:
    """The types of the cotangents that are wanted."""
    return [a.to_tangent_aval() for a, w in zip(avals, wanted, strict=True) if w]


def filled(values, made, wanted, avals) -> list:
    """The values of those that are wanted, zeros where they are not made."""
    values = iter(values)
    return [next(values) if m else zeros(a.to_tangent_aval()) for m, w, a in zip(made, wanted, avals, strict=True) if w]


def without_weak_casts(closed: ClosedJaxpr, keep: int) -> ClosedJaxpr:
    """The jaxpr with results, but for the last ``keep``, not converted to a weaker form of the same dtype."""
    casts = {
        e.outvars[0]: e.invars[0]
        for e in closed.eqns
        if e.primitive.name == "convert_element_type" and e.invars[0].aval.dtype == e.outvars[0].aval.dtype
    }
    carried, items = split(closed.jaxpr.outvars, len(closed.jaxpr.outvars) - keep)
    return with_outvars(closed, [*(casts.get(v, v) if type(v) is Var else v for v in carried), *items])
