"""What the backward pass of a function keeps: ``print_saved_residuals``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core.jaxpr import Eqn, Jaxpr, Literal
from catena.core.named import NamedTuple
from catena.core.source import function_place
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten
from catena.core.zeros import get_aval
from catena.transform.arguments import argument_names
from catena.transform.functions import check_callable, flatten_function
from catena.transform.linearize import linear_jaxpr, linearize_flat


class Residual(NamedTuple):
    """A value that is kept: its type, a text that says where it comes from, and the place, if it is an equation's."""

    aval: Any
    origin: str
    source: Any


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
    return [
        (aval, f"{text} from {source.exact}" if source is not None else text)
        for aval, text, source in residuals(f, *args, **kwargs)
    ]


def residuals(f: Callable, *args, **kwargs) -> list[Residual]:
    """``saved_residuals``, with places that programs can use."""
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
    return [Residual(v.aval, *origin(jaxpr, v, made, names)) for v in kept]


def origin(jaxpr: Jaxpr, v, made: dict, names: list[str]) -> tuple[str, Any]:
    """Where a value of a jaxpr comes from, in words and as a place; ``made`` has the equations by their results."""
    if type(v) is Literal:
        return "from a literal", None
    if v in jaxpr.constvars:
        return "from a constant", None
    if v in jaxpr.invars:
        return f"from the argument {names[jaxpr.invars.index(v)]}", None
    eqn = innermost(made[v], v)
    if eqn.primitive.name == "name":
        return f"named {eqn.own_params['name']!r}", eqn.source
    if eqn.primitive.name == "jit":
        return f"output of jitted function {eqn.own_params['name']!r}", eqn.source
    return f"output of {'checkpoint' if eqn.primitive.name == 'remat2' else eqn.primitive.name}", eqn.source


def innermost(eqn: Eqn, v) -> Eqn:
    """The equation that makes a value; of a checkpointed call, the one inside it."""
    while eqn.primitive.name == "remat2":
        jaxpr = eqn.own_params["jaxpr"].jaxpr
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
