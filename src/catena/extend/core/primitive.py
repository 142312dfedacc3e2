"""Primitives of users that call functions."""

from catena.core.context import context, set_trace
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from catena.core.primitive import Operation as Primitive
from catena.extend.linear_util import wrap_init


class CallPrimitive(Primitive):
    """A primitive that calls a function: ``bind(*args, subfuns=(f,))`` with a ``WrappedFun``, or as JAX before 0.9.2
    ``bind(f, *args)``. The call itself leaves no equation: what the function does stands in its place.

    >>> from catena.extend import linear_util as lu
    >>> from catena.extend.core import CallPrimitive
    >>> CallPrimitive("my_call").bind(2, subfuns=(lu.wrap_init(lambda x: [x + 1]),))
    [3]
    """

    multiple_results = True
    call_primitive = True

    def impl(self, *args, **params):  # type: ignore[override]
        """Call the function, the first argument, with the others, where nothing is traced."""
        f, *operands = args
        return f.call_wrapped(*operands)

    def bind(self, *args, subfuns=(), **params):
        """Call the function, that of ``subfuns`` or the first argument, with the others."""
        f, *operands = (*subfuns, *args)
        trace = context.trace
        if trace is None:
            return self.impl(f, *operands, **params)
        with set_trace(None):
            return trace.process_call(self, f, operands, params)

    def get_bind_params(self, params: dict) -> dict:
        """The parameters of an equation, with the function that it calls in place of its jaxpr."""
        rest = dict(params)
        jaxpr = rest.pop("call_jaxpr")
        if isinstance(jaxpr, Jaxpr):
            jaxpr = ClosedJaxpr(jaxpr)
        return {**rest, "subfuns": (wrap_init(jaxpr_as_fun(jaxpr)),)}


call_p, closed_call_p = CallPrimitive("call"), CallPrimitive("closed_call")
