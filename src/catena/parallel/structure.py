"""Loops, conditions and maps over devices, partitioned: their bodies are programs of one device too."""

from __future__ import annotations

from catena.core.jaxpr import Eqn, eval_jaxpr
from catena.parallel.moves import Form
from catena.parallel.vectorised import without_types
from catena.transform.layouts import split_of_spec


def results(p, eqn: Eqn, splits, outs) -> list:
    """The values of an equation's results, in these splits."""
    made = zip(eqn.outvars, splits, outs, strict=True)
    return [p.value(v.aval, Form(split), x, eqn) for v, split, x in made]


def scan(p, eqn: Eqn, values) -> list:
    """Every device scans its parts of the rows; the axis that is scanned is whole."""
    params, body = eqn.params, eqn.params["jaxpr"]
    fixed, first = params["num_consts"], params["num_consts"] + params["num_carry"]
    ins = [p.planned(v) for v in body.jaxpr.invars]
    outs = ins[fixed:first] + [p.planned(v) for v in body.jaxpr.outvars[params["num_carry"] :]]
    given = ins[:first] + [((), *split) for split in ins[first:]]
    xs = [p.get(v, Form(s), eqn, i) for i, (v, s) in enumerate(zip(values, given, strict=True))]
    local = p.body(body, ins, outs, params["length"])
    made = eqn.primitive.bind(*xs, **{**params, "jaxpr": local})
    kept = params["num_carry"]
    return results(p, eqn, outs[:kept] + [((), *split) for split in outs[kept:]], made)


def loop(p, eqn: Eqn, values) -> list:
    """Every device goes through the same steps: what is asked after each is asked of whole values."""
    params = eqn.params
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
    local = tuple(p.body(branch, ins, outs) for branch in eqn.params["branches"])
    return results(p, eqn, outs, eqn.primitive.bind(*xs, **{**eqn.params, "branches": local}))


def shard_map(p, eqn: Eqn, values) -> list:
    """What is already a program of one device of this mesh."""
    params = eqn.params
    ins = [p.without_trivial(split_of_spec(s, v.aval.ndim)) for s, v in zip(params["in_specs"], values, strict=True)]
    outs = [
        p.without_trivial(split_of_spec(s, v.aval.ndim)) for s, v in zip(params["out_specs"], eqn.outvars, strict=True)
    ]
    xs = [p.get(v, Form(s), eqn, i) for i, (v, s) in enumerate(zip(values, ins, strict=True))]
    body = without_types(params["jaxpr"])
    return results(p, eqn, outs, eval_jaxpr(body.jaxpr, body.consts, *xs))


STRUCTURED = {"scan": scan, "while": loop, "cond": branches, "shard_map": shard_map}
