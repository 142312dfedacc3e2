"""Vectorisation lane by lane: each example runs by itself, takes its own branch and stops when it is done.

Most operations vectorise by doing the work for all examples at once. Loops whose length differs from example
to
example do not: here the batch becomes a ``scan`` over the examples, whose body is the operation as it was.
"""

from catena.core.axes import move_axis
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from catena.core.staging import DebugInfo
from catena.core.zeros import get_aval
from catena.lax.control_flow.scan import scan_p


def batch_per_lane(primitive, axis, args, dims, params: dict):
    """Apply ``primitive`` to each example by itself.

    Returns:
      The results and the position of the mapped axis in each, as batching rules do.
    """
    if axis.name is not None and axis.name in primitive.axis_names(params):
        raise ValueError(
            f"'{primitive}' runs for each example by itself here, so a collective over the mapped axis "
            f"{axis.name!r} inside it has no partners. Differentiate the vectorised function, grad(vmap(f)), "
            "instead of vmap(grad(f))."
        )
    fixed = [i for i, d in enumerate(dims) if d is None]
    mapped = [i for i, d in enumerate(dims) if d is not None]
    avals = [get_aval(x) if d is None else lane_aval(get_aval(x), d) for x, d in zip(args, dims, strict=True)]
    operands = [args[i] for i in fixed] + [move_axis(args[i], dims[i], 0) for i in mapped]
    body = lane_body(primitive, tuple(avals), tuple(fixed + mapped), params)
    outs = scan_p.bind(
        *operands, jaxpr=body, length=axis.size, num_carry=0, num_consts=len(fixed), reverse=False, unroll=1
    )
    return outs, [0] * len(outs)


def lane_aval(aval, dim: int):
    """The type of one example."""
    return aval.without_axis(dim)


_bodies: dict = {}
_LIMIT = 4096


def lane_body(primitive, avals: tuple, order: tuple, params: dict) -> ClosedJaxpr:
    """A jaxpr that applies ``primitive`` once; its arguments are those of the primitive in another order."""
    key = (primitive, avals, order, tuple(params.items()))
    found = _bodies.get(key)
    if found is None:
        if len(_bodies) >= _LIMIT:
            _bodies.clear()
        invars = [Var(a) for a in avals]
        outs = primitive.abstract(*avals, **params)
        outvars = [Var(a) for a in (outs if primitive.multiple_results else [outs])]
        eqn = Eqn(invars, outvars, primitive, params, primitive.effects(avals, params))
        jaxpr = Jaxpr([], [invars[i] for i in order], outvars, [eqn], None, DebugInfo("vmap", str(primitive)))
        found = _bodies[key] = ClosedJaxpr(jaxpr, [])
    return found
