"""The forward rule of a ``custom_vjp`` function with ``optimize_remat``: the function, where nobody reads residuals.

A checkpointed function keeps no residuals in its forward pass; there, and wherever else dead-code elimination finds
that the residuals are not read, the equation becomes a call of the function itself, which may be quicker than its rule.
"""

from collections.abc import Callable

from catena.core.aval import same_type
from catena.core.dead_code import prune_call
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr, jaxpr_as_fun
from catena.core.primitive import NoRule, Primitive, as_bodies_say
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.zeros import get_aval
from catena.transform import interpreted
from catena.transform.batch import batch_jaxpr, move_to_front
from catena.transform.jit_primitive import jit_p
from catena.transform.jvp import jvp_flat


def call_forward(function: Callable, rule: Callable, leaves, name: str) -> tuple[list, list, object]:
    """Call a flat forward rule as one equation.

    Arguments:
      function: from the leaves of the arguments to those of the value.
      rule: from the same to the results, the residuals and the tree of these.
      leaves: the arguments.
      name: of the function.
    Returns:
      As the rule. One that closes over traced values is called as it is.
    """
    noted = {}

    def forward(*xs):
        outs, residuals, noted["tree"] = rule(*xs)
        noted["count"] = len(outs)
        return [*outs, *residuals]

    avals, info = [get_aval(x) for x in leaves], DebugInfo("custom_vjp", name)
    traced_rule, consts = trace_to_closed_jaxpr(forward, avals, info)
    traced_function, more_consts = trace_to_closed_jaxpr(function, avals, info)
    count = noted["count"]
    if consts or more_consts or not all(map(same_type, traced_function.out_avals, traced_rule.out_avals)):
        return rule(*leaves)
    outs = forward_call_p.bind(*leaves, forward=traced_rule, function=traced_function, name=name)
    return outs[:count], outs[count:], noted["tree"]


def _evaluate(*args, forward: ClosedJaxpr, **params):
    return eval_jaxpr(forward.jaxpr, forward.consts, *args)


def _jvp(primals, tangents, *, forward: ClosedJaxpr, **params):
    return jvp_flat(jaxpr_as_fun(forward), primals, tangents)


def _batch(axis, args, dims, *, forward, function, **params):
    moved, mapped = move_to_front(axis, args, dims)
    forward, _ = batch_jaxpr(forward, axis, mapped, True)
    function, _ = batch_jaxpr(function, axis, mapped, True)
    outs = forward_call_p.bind(*moved, forward=forward, function=function, **params)
    return outs, [0] * len(outs)


def _prune(eqn, used):
    forward, function = eqn.own_params["forward"], eqn.own_params["function"]
    count = len(function.out_avals)
    called, n = (forward, len(used)) if any(used[count:]) else (function, count)
    call = eqn.replace(
        primitive=jit_p, outvars=eqn.outvars[:n], params={"jaxpr": called, "name": eqn.own_params["name"]}
    )
    return prune_call(call, used[:n])


forward_call_p = Primitive(
    "custom_vjp_forward",
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: params["forward"].effects,
    abstract=lambda *avals, forward, **params: forward.out_avals,
    varying=as_bodies_say,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=NoRule("it is no linear operation"),
    batch=_batch,
    lower=lambda b, *operands, forward, **params: b.call(forward, operands),
    prune=_prune,
)
interpreted.calls[forward_call_p] = interpreted.call_of("forward")
