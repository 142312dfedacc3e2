"""Primitives of users that call functions."""

from catena.core.context import context, set_trace
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from catena.core.primitive import Operation as Primitive
from catena.extend.linear_util import wrap_init


class CallPrimitive(Primitive):
    """A primitive that calls a function: ``bind(f, *args)`` with a ``WrappedFun``. The call itself leaves no equation:
    what the function does stands in its place.

    >>> from catena.extend import linear_util as lu
    >>> from catena.extend.core import CallPrimitive
    >>> CallPrimitive("my_call").bind(lu.wrap_init(lambda x: [x + 1]), 2)
    [3]
    """

    multiple_results = True
    call_primitive = True

    def impl(self, *args, **params):  # type: ignore[override]
        """Call the function, the first argument, with the others, where nothing is traced."""
        f, *operands = args
        return f.call_wrapped(*operands)

    def bind(self, *args, **params):
        """Call the function, the first argument, with the others."""
        f, *operands = args
        trace = context.trace
        if trace is None:
            return self.impl(f, *operands, **params)
        with set_trace(None):
            return trace.process_call(self, f, operands, params)

    def get_bind_params(self, params: dict) -> tuple[list, dict]:
        """The function that an equation calls, and the other parameters."""
        rest = dict(params)
        jaxpr = rest.pop("call_jaxpr")
        if isinstance(jaxpr, Jaxpr):
            jaxpr = ClosedJaxpr(jaxpr)
        return [wrap_init(jaxpr_as_fun(jaxpr))], rest


call_p, closed_call_p = CallPrimitive("call"), CallPrimitive("closed_call")
