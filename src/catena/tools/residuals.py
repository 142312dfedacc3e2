"""What the backward pass of a function keeps: ``print_saved_residuals``."""

from __future__ import annotations

from collections.abc import Callable

from catena.core.jaxpr import Eqn, Jaxpr, Literal
from catena.core.source import function_place
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten
from catena.core.zeros import get_aval
from catena.transform.arguments import argument_names
from catena.transform.functions import check_callable, flatten_function
from catena.transform.linearize import linear_jaxpr, linearize_flat


def saved_residuals(f: Callable, *args, **kwargs) -> list[tuple]:
    """The values that the derivative of ``f`` at these arguments needs from the forward pass.

    Arguments:
      f: a function of trees of arrays.
      args, kwargs: its arguments.
    Returns:
      For each value a pair: its aval, and a text that says where it comes from.

    >>> import catena.numpy as jnp
    >>> from catena.tools.residuals import saved_residuals
    >>> [str(aval) for aval, _ in saved_residuals(jnp.sin, jnp.ones(3))]
    ['float32[3]']
    """
    check_callable(f)
    leaves, tree = tree_flatten((args, kwargs))
    leaves = [leaf_value(x) for x in leaves]

    def forward(*xs):
        call = flatten_function(lambda a, k: f(*a, **k), tree)
        _, program = linearize_flat(call, xs)
        return linear_jaxpr(program).consts

    names = argument_names(f, args, kwargs)
    jaxpr, _ = trace_to_jaxpr(
        forward, [get_aval(x) for x in leaves], DebugInfo("saved_residuals", function_place(f), names)
    )
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    order = {v: i for i, v in enumerate([*jaxpr.invars, *jaxpr.constvars, *made])}
    kept = sorted(dict.fromkeys(jaxpr.outvars), key=lambda v: order.get(v, -1))
    return [(v.aval, origin(jaxpr, v, made, names)) for v in kept]


def origin(jaxpr: Jaxpr, v, made: dict, names: list[str]) -> str:
    """Where a value of a jaxpr comes from; ``made`` has the equations by their results."""
    if type(v) is Literal:
        return "from a literal"
    if v in jaxpr.constvars:
        return "from a constant"
    if v in jaxpr.invars:
        return f"from the argument {names[jaxpr.invars.index(v)]}"
    eqn = innermost(made[v], v)
    place = f" from {eqn.source.exact}" if eqn.source is not None else ""
    if eqn.primitive.name == "name":
        return f"named {eqn.params['name']!r}{place}"
    if eqn.primitive.name == "jit":
        return f"output of jitted function {eqn.params['name']!r}{place}"
    return f"output of {'checkpoint' if eqn.primitive.name == 'remat2' else eqn.primitive.name}{place}"


def innermost(eqn: Eqn, v) -> Eqn:
    """The equation that makes a value; of a checkpointed call, the one inside it."""
    while eqn.primitive.name == "remat2":
        jaxpr = eqn.params["jaxpr"].jaxpr
        v = jaxpr.outvars[eqn.outvars.index(v)]
        inside = next((e for e in jaxpr.eqns if v in e.outvars), None)
        if inside is None:
            return eqn
        eqn = inside
    return eqn


def print_saved_residuals(f: Callable, *args, **kwargs) -> None:
    """Print what the derivative of ``f`` at these arguments keeps from the forward pass, a line for each value.

    Arguments:
      f: a function of trees of arrays.
      args, kwargs: its arguments.

    >>> import catena.numpy as jnp
    >>> from catena.ad_checkpoint import print_saved_residuals
    >>> print_saved_residuals(lambda x: x * x, 3.0)
    f32[] from the argument x
    """
    for aval, text in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(short_dtypes=True)} {text}")
