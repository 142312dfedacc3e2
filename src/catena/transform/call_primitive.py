"""Primitives that run jaxprs: what these close over that is traced becomes an operand.

A function is traced with what it closes over as operands of the call. But a derivative rule (``custom_vjp``,
``custom_jvp``) runs when its call is differentiated, and may close over values of a trace further out: they are
constants of the derivative's jaxpr, which neither transformations nor the compiler would see.
"""

from collections.abc import Callable

from catena.core.jaxpr import ClosedJaxpr
from catena.core.primitive import Primitive
from catena.core.staging import hoist_tracers
from catena.transform.memo import memoised


class CallPrimitive(Primitive):
    """A primitive with jaxprs among its parameters.

    Arguments:
      name, meaning: as for ``Primitive``.
      lift: from operands and parameters to those with the traced constants of the jaxprs as operands, which are the
        same where there are none.
    """

    def __init__(self, name: str, *, lift: Callable, **meaning):
        super().__init__(name, **meaning)
        self.lift = lift

    def bind(self, *args, **params):
        """Apply the primitive under the current trace."""
        args, params = self.lift(args, params)
        return super().bind(*args, **params)


def lift_body(name: str = "jaxpr", before: Callable = lambda params: 0, count: str | None = None) -> Callable:
    """What lifts the constants of one jaxpr.

    Arguments:
      name: the parameter that is the jaxpr.
      before: from the parameters to the number of operands before those of the jaxpr.
      count: the parameter that counts the operands that a loop does not change, which are the first.
    """

    def lift(args, params):
        if not params[name].consts:
            return args, params
        closed, lifted = hoisted(params[name])
        if not lifted:
            return args, params
        start, params = before(params), {**params, name: closed}
        if count is not None:
            params[count] += len(lifted)
        if "donated_invars" in params:
            params["donated_invars"] = (False,) * len(lifted) + params["donated_invars"]
        return (*args[:start], *lifted, *args[start:]), params

    return lift


@memoised
def hoisted(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list]:
    """The jaxpr with its traced constants as leading arguments, and these."""
    return hoist_tracers(closed.jaxpr, closed.consts)
