"""Primitives of users, to which JAX's functions give one rule after the other."""

from collections.abc import Callable

from catena.core import primitive as core_primitive
from catena.core.aval import AbstractToken, ShapedArray
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from catena.extend.linear_util import wrap_init


class Primitive(core_primitive.Primitive):
    """An operation of one's own.

    ``def_abstract_eval`` gives it types, ``def_impl`` values; ``catena.interpreters.ad`` and ``batching`` say how it is
    differentiated and vectorised, and ``mlir.register_lowering`` with ``mlir.lower_fun`` what it compiles to.

    Arguments:
      name: how it prints in jaxprs.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.extend.core import Primitive
    >>> twice_p = Primitive("twice")
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> _ = twice_p.def_impl(lambda x: 2 * x)
    >>> twice_p.bind(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """

    def __init__(self, name: str):
        known = core_primitive.registry.get(name)
        super().__init__(name, takes_arrays=True, takes_tokens=True)
        self.abstract, self.evaluate = self.without("abstract"), self.without("evaluate")
        self.own = False
        if known is None:
            del core_primitive.registry[name]
        else:
            core_primitive.registry[name] = known

    def without(self, kind: str) -> Callable:
        """The rule of a primitive that was given none of this kind: it says so."""

        def refuse(*args, **params):
            raise NotImplementedError(core_primitive.tables[kind].missing.format(self.name))

        return refuse

    def def_abstract_eval(self, rule: Callable) -> Callable:
        """Let ``rule`` give the type of the result, or several, from those of the arguments and the parameters."""
        self.abstract = lambda *avals, **params: checked_types(self, rule(*avals, **params))
        self.effects = core_primitive.no_effects
        return rule

    def def_effectful_abstract_eval(self, rule: Callable) -> Callable:
        """Let ``rule`` give the type of the result, or several, and the set of effects of the application.

        An equation with effects stays in its jaxpr whether its results are read or not.

        >>> import catena as jax
        >>> from catena.extend.core import Effect, Primitive
        >>> class Noise(Effect):
        ...     pass
        >>> beep_p = Primitive("beep")
        >>> _ = beep_p.def_effectful_abstract_eval(lambda x: (x, {Noise()}))
        >>> jax.make_jaxpr(lambda x: (beep_p.bind(x), x + 1)[1])(1.0).effects
        frozenset({Noise})
        """

        def abstract(*avals, **params):
            types, _ = rule(*avals, **params)
            return checked_types(self, types)

        self.abstract, self.effects = abstract, lambda avals, params: frozenset(rule(*avals, **params)[1])
        return rule

    def __reduce__(self):
        raise TypeError(f"the primitive {self.name} cannot be pickled: another process would not know its rules")


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

    def bind(self, *args, **params):
        """Call the function, the first argument, with the others."""
        f, *operands = args
        return f.call_wrapped(*operands)

    def get_bind_params(self, params: dict) -> tuple[list, dict]:
        """The function that an equation calls, and the other parameters."""
        rest = dict(params)
        jaxpr = rest.pop("call_jaxpr")
        if isinstance(jaxpr, Jaxpr):
            jaxpr = ClosedJaxpr(jaxpr)
        return [wrap_init(jaxpr_as_fun(jaxpr))], rest


call_p, closed_call_p = CallPrimitive("call"), CallPrimitive("closed_call")


def checked_types(primitive: Primitive, out):
    """What a user's rule gave as the type of the result, or of several; an error where it is not that."""
    several = isinstance(out, (tuple, list))
    if several != primitive.multiple_results:
        raise ValueError(
            f"{primitive}.abstract_eval() method should return a tuple or a list iff {primitive}.multiple_results."
        )
    for aval in out if several else (out,):
        if not isinstance(aval, (ShapedArray, AbstractToken)):
            raise TypeError(f"the abstract evaluation of {primitive} must give types such as ShapedArray, got {aval!r}")
    return out
