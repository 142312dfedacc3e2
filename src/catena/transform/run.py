"""Applying a closed jaxpr to values: compiled when they are concrete, as equations under a trace."""

from catena.core.jaxpr import ClosedJaxpr
from catena.transform.jit_primitive import jit_p


def apply_jaxpr(closed: ClosedJaxpr, args, name: str = "jaxpr") -> list:
    """The results of ``closed`` for ``args``, through one ``jit`` call."""
    return jit_p.bind(*args, jaxpr=closed, name=name)
