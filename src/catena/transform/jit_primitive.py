"""The ``jit`` primitive: a call of a jaxpr that is compiled as a whole, and its rules."""

from contextlib import nullcontext

from catena.core.array import Array
from catena.core.config import override
from catena.core.context import context
from catena.core.dead_code import prune_call
from catena.core.evaluate import concrete
from catena.core.failures import checks_named
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from catena.core.placed import place
from catena.core.primitive import as_bodies_say
from catena.core.zeros import UndefinedPrimal, Zero
from catena.transform import interpreted
from catena.transform.batch import batch_jaxpr, move_to_front
from catena.transform.call_primitive import CallPrimitive, lift_body
from catena.transform.discharge import call_rule
from catena.transform.execute import run_jaxpr
from catena.transform.jvp import jvp_jaxpr
from catena.transform.linearize import partial_eval_jaxpr
from catena.transform.transpose import transpose_jaxpr


def _abstract(*avals, jaxpr, **params):
    return jaxpr.out_avals


def _evaluate(*args, jaxpr, name, donated_invars=(), keep_unused=False, device=None, checks="", **params):
    if checks:
        with checking(checks):
            given = {"donated_invars": donated_invars, "keep_unused": keep_unused, "device": device}
            return _evaluate(*args, jaxpr=jaxpr, name=name, **given, **params)
    if device is None:
        return run_jaxpr(jaxpr, args, jit_p, donated_invars, name, keep_unused)
    moved = [place(place(concrete(x, jit_p), None), device) for x in args]
    outs = run_jaxpr(jaxpr, moved, jit_p, donated_invars, name, keep_unused)
    return [place(x, device) if isinstance(x, Array) else x for x in outs]


def _jvp(primals, tangents, *, jaxpr, donated_invars=(), **params):
    nonzeros = tuple(type(t) is not Zero for t in tangents)
    derivative, nonzeros_out = jvp_jaxpr(jaxpr, nonzeros, False)
    given = [t for t in tangents if type(t) is not Zero]
    outs = jit_p.bind(*primals, *given, jaxpr=derivative, **params)
    return split_tangents(outs, nonzeros_out, jaxpr.out_avals)


def split_tangents(outs, nonzeros_out, out_avals):
    """The results and tangents of a derivative jaxpr, with symbolic zeros put back."""
    n = len(out_avals)
    given = iter(outs[n:])
    tangents = [next(given) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(nonzeros_out, out_avals, strict=True)]
    return outs[:n], tangents


def partial_eval_call(bind_known, bind_rest):
    """The ``partial_eval`` rule of a primitive that calls one jaxpr.

    Arguments:
      bind_known: from the known jaxpr, its arguments and the parameters to its results.
      bind_rest: from the tape, the rest, its arguments and the parameters to the recorded unknowns.
    """

    def rule(tape, args, *, jaxpr, **params):
        unknown = tuple(tape.is_unknown(x) for x in args)
        known, rest, unknown_out, forwarded = partial_eval_jaxpr(jaxpr, unknown, False)
        known_args = [x for x, u in zip(args, unknown, strict=True) if not u]
        with tape.known():
            outs = bind_known(known, known_args, params)
        known_count = len(unknown_out) - sum(unknown_out)
        known_outs, saved = iter(outs[:known_count]), iter(outs[known_count:])
        residuals = [next(saved) if f is None else known_args[f] for f in forwarded]
        unknown_args = [x for x, u in zip(args, unknown, strict=True) if u]
        unknowns = iter(bind_rest(tape, rest, [*residuals, *unknown_args], params) if any(unknown_out) else ())
        return [next(unknowns) if u else next(known_outs) for u in unknown_out]

    return rule


def without_donation(params: dict) -> dict:
    """The parameters of a derived call: what is donated to the call itself is not donated to its parts."""
    return {k: v for k, v in params.items() if k != "donated_invars"}


def _bind_known(known, args, params):
    return jit_p.bind(*args, jaxpr=known, **without_donation(params))


def _bind_rest(tape, rest, args, params):
    return tape.record(jit_p, args, {**without_donation(params), "jaxpr": rest})


def _transpose(cts, *args, jaxpr, **params):
    linear = tuple(type(x) is UndefinedPrimal for x in args)
    zero_cts = tuple(type(ct) is Zero for ct in cts)
    backward, nonzero_in = transpose_jaxpr(jaxpr, linear, zero_cts, True)
    residuals = [x for x, lin in zip(args, linear, strict=True) if not lin]
    given = [ct for ct in cts if type(ct) is not Zero]
    outs = iter(jit_p.bind(*residuals, *given, jaxpr=backward, **without_donation(params)))
    return scatter_cotangents(outs, nonzero_in, args)


def scatter_cotangents(outs, nonzero_in, args) -> list:
    """One entry for each argument: a cotangent, a symbolic zero, or ``None`` where it is not linear."""
    flags, outs = iter(nonzero_in), iter(outs)
    result: list = []
    for x in args:
        if type(x) is not UndefinedPrimal:
            result.append(None)
        else:
            result.append(next(outs) if next(flags) else Zero(x.aval))
    return result


def _batch(axis, args, dims, *, jaxpr, **params):
    moved, mapped = move_to_front(axis, args, dims)
    with checking(params.get("checks", "")):
        batched, mapped_out = batch_jaxpr(jaxpr, axis, mapped, False)
    outs = jit_p.bind(*moved, jaxpr=batched, **params)
    return outs, [0 if m else None for m in mapped_out]


def checking(checks: str):
    """Look for these kinds of failures too, if there are any, in this thread within a ``with`` block."""
    return nullcontext() if not checks else override("jax_checks", checks_named(f"{context.checks},{checks}"))


def checked_call(closed: ClosedJaxpr, name: str, checks: str) -> ClosedJaxpr:
    """A jaxpr that calls this one, which is checked; itself where nothing is asked for."""
    if not checks:
        return closed
    jaxpr = closed.jaxpr
    invars, outvars = [Var(v.aval) for v in jaxpr.invars], [Var(a) for a in closed.out_avals]
    call = Eqn(invars, outvars, jit_p, {"name": name, "jaxpr": closed, "checks": checks}, jaxpr.effects, None)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [call], jaxpr.effects, jaxpr.debug_info), [])


def _lower(b, *operands, jaxpr, checks="", **params):
    return b.call(jaxpr, operands, checks)


def _interpreted(*, jaxpr, checks="", **params):
    with checking(checks):
        return interpreted.steps(jaxpr)


def _effects(avals, params):
    return params["jaxpr"].effects


def jaxpr_axis_names(closed: ClosedJaxpr) -> tuple:
    """The named axes that the equations of a jaxpr read."""
    found = closed.memo.get("axis_names")
    if found is None:
        names = dict.fromkeys(n for e in closed.eqns for n in e.primitive.axis_names(e.own_params))
        found = closed.memo["axis_names"] = tuple(names)
    return found


jit_p = CallPrimitive(
    "jit",
    lift=lift_body(),
    multiple_results=True,
    takes_arrays=True,
    takes_tokens=True,
    places_results=True,
    effects=_effects,
    axis_names=lambda params: jaxpr_axis_names(params["jaxpr"]),
    abstract=_abstract,
    varying=as_bodies_say,
    evaluate=_evaluate,
    jvp=_jvp,
    partial_eval=partial_eval_call(_bind_known, _bind_rest),
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    prune=prune_call,
)
jit_p.discharge = call_rule(jit_p)  # type: ignore[attr-defined]
interpreted.calls[jit_p] = _interpreted
