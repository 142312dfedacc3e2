"""Applying a closed jaxpr to values: compiled when they are concrete, as equations under a trace."""

from catena.core.jaxpr import ClosedJaxpr
from catena.core.staging import hoist_tracers
from catena.transform.jit_primitive import jit_p


def apply_jaxpr(closed: ClosedJaxpr, args, name: str = "jaxpr") -> list:
    """The results of ``closed`` for ``args``, through one ``jit`` call; its constants may be traced values."""
    hoisted, outer = hoist_tracers(closed.jaxpr, closed.consts)
    return jit_p.bind(*outer, *args, jaxpr=hoisted if outer else closed, name=name)
