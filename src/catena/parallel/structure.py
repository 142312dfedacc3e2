"""Loops, conditions and maps over devices, partitioned: their bodies are programs of one device too."""

from __future__ import annotations

from catena.core.jaxpr import Eqn, eval_jaxpr
from catena.parallel import linear
from catena.parallel.moves import Form
from catena.parallel.vectorised import without_types
from catena.transform.layouts import split_of_spec


def results(p, eqn: Eqn, splits, outs, partial: dict | None = None) -> list:
    """The values of an equation's results, in these splits; of terms of a sum, ``partial`` has the axes."""
    forms = [Form(split, (partial or {}).get(k, ())) for k, split in enumerate(splits)]
    return [p.value(v.aval, form, x, eqn) for v, form, x in zip(eqn.outvars, forms, outs, strict=True)]


def scan(p, eqn: Eqn, values) -> list:
    """Every device scans its parts of the rows; the axis that is scanned is whole. What is only added to may be carried
    as terms of a sum, which is taken behind the loop.
    """
    params, body = eqn.own_params, eqn.own_params["jaxpr"]
    fixed, kept = params["num_consts"], params["num_carry"]
    first = fixed + kept
    ins = [p.planned(v) for v in body.jaxpr.invars]
    outs = ins[fixed:first] + [p.planned(v) for v in body.jaxpr.outvars[kept:]]
    given = ins[:first] + [((), *split) for split in ins[first:]]
    terms = {k: fixed + k for k in linear.accumulators(body.jaxpr, fixed, kept)}
    terms |= dict.fromkeys(range(kept, len(outs)))
    local = p.body(body, ins, outs, params["length"], terms)
    xs = []
    for i, (v, split) in enumerate(zip(values, given, strict=True)):
        names = terms.get(i - fixed, ()) if i < first else ()
        ready = not names or Form(split, names) in v.forms
        x = p.get(v, Form(split, names if ready else ()), eqn, i)
        xs.append(x if ready else linear.as_terms(x, names))
    made = eqn.primitive.bind(*xs, **{**params, "jaxpr": local})
    return results(p, eqn, outs[:kept] + [((), *split) for split in outs[kept:]], made, terms)


def loop(p, eqn: Eqn, values) -> list:
    """Every device goes through the same steps: what is asked after each is asked of whole values."""
    params = eqn.own_params
    asks, body = params["cond_jaxpr"], params["body_jaxpr"]
    first, second = params["cond_nconsts"], params["body_nconsts"]
    ins = [p.planned(v) for v in body.jaxpr.invars]
    carry = ins[second:]
    known = [p.planned(v) for v in asks.jaxpr.invars[:first]]
    given = known + ins
    xs = [p.get(v, Form(s), eqn, i) for i, (v, s) in enumerate(zip(values, given, strict=True))]
    local = {
        "cond_jaxpr": p.body(asks, known + carry, [()]),
        "body_jaxpr": p.body(body, ins, carry),
    }
    return results(p, eqn, carry, eqn.primitive.bind(*xs, **{**params, **local}))


def branches(p, eqn: Eqn, values) -> list:
    """Every device takes the same branch, of its parts."""
    ins = [p.planned(x) for x in eqn.invars[1:]]
    outs = [p.planned(v) for v in eqn.outvars]
    forms = [Form(())] + [Form(s) for s in ins]
    xs = [p.get(v, form, eqn, i) for i, (v, form) in enumerate(zip(values, forms, strict=True))]
    local = tuple(p.body(branch, ins, outs) for branch in eqn.own_params["branches"])
    return results(p, eqn, outs, eqn.primitive.bind(*xs, **{**eqn.own_params, "branches": local}))


def shard_map(p, eqn: Eqn, values) -> list:
    """What is already a program of one device of this mesh."""
    params = eqn.own_params
    ins = [p.without_trivial(split_of_spec(s, v.aval.ndim)) for s, v in zip(params["in_specs"], values, strict=True)]
    outs = [
        p.without_trivial(split_of_spec(s, v.aval.ndim)) for s, v in zip(params["out_specs"], eqn.outvars, strict=True)
    ]
    xs = [p.get(v, Form(s), eqn, i) for i, (v, s) in enumerate(zip(values, ins, strict=True))]
    body = without_types(params["jaxpr"])
    return results(p, eqn, outs, eval_jaxpr(body.jaxpr, body.consts, *xs))


STRUCTURED = {"scan": scan, "while": loop, "cond": branches, "shard_map": shard_map}
