"""Primitives of users, to which JAX's functions give one rule after the other."""

from collections.abc import Callable

from catena.core import primitive as core_primitive
from catena.core.array import as_array
from catena.core.errors import MissingRuleError
from catena.core.trace import Tracer


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

    __slots__ = ("impl",)

    def __init__(self, name: str):
        known = core_primitive.registry.get(name)
        super().__init__(name, takes_arrays=True, takes_tokens=True)
        self.impl, self.evaluate = None, self.refuse
        self.own = False
        if known is None:
            del core_primitive.registry[name]
        else:
            core_primitive.registry[name] = known

    def def_impl(self, impl: Callable) -> Callable:
        """Let ``impl`` compute values: from arrays and the parameters to an array, or several."""

        def evaluate(*args, **params):
            out = impl(*args, **params)
            return [value(x) for x in out] if self.multiple_results else value(out)

        self.impl, self.evaluate = impl, evaluate
        return impl

    def refuse(self, *args, **params):
        """The implementation of a primitive that was given none."""
        raise MissingRuleError(f"Evaluation rule for '{self.name}' is not defined: give it one with def_impl")

    def def_abstract_eval(self, rule: Callable) -> Callable:
        """Let ``rule`` give the type of the result, or several, from those of the arguments and the parameters."""
        self.abstract = rule
        return rule

    def __reduce__(self):
        raise TypeError(f"the primitive {self.name} cannot be pickled: another process would not know its rules")


def value(x):
    """What a user's function returned, as a value of the language."""
    return x if isinstance(x, Tracer) else as_array(x)
