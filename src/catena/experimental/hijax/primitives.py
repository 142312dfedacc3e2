"""Primitives whose rules are methods."""

from __future__ import annotations

from functools import partial
from typing import Any

from catena.core.context import context
from catena.core.primitive import Operation
from catena.core.zeros import get_aval
from catena.interpreters import ad, mlir
from catena.transform.stateful import check_own, has_state, own


class HiPrimitive(Operation):
    """A primitive whose rules are methods: a subclass says what it means.

    ``abstract_eval(*avals, **params)`` gives the type of the result, or of several, and the set of effects;
    ``to_lojax(*args, **params)`` does it by functions of arrays, and is what is compiled; ``impl`` evaluates one for
    which ``is_high(*avals, **params)`` is false; ``jvp(primals, tangents, **params)`` gives results and tangents;
    ``transpose(cotangent, *args, **params)`` the cotangents of the operands.

    Arguments:
      name: how it prints in jaxprs.

    >>> import catena as jax
    >>> from catena.experimental import hijax
    >>> class Cube(hijax.HiPrimitive):
    ...     def is_high(self, *avals):
    ...         return True
    ...
    ...     def abstract_eval(self, x):
    ...         return x, set()
    ...
    ...     def to_lojax(self, x):
    ...         return x * x * x
    ...
    ...     def jvp(self, primals, tangents):
    ...         (x,), (t,) = primals, tangents
    ...         return self.bind(x), 3 * x * x * hijax.instantiate_zeros(t)
    >>> cube = Cube("cube")
    >>> cube.bind(2.0), jax.jit(jax.grad(cube.bind))(2.0)
    (8.0, Array(12., dtype=float32, weak_type=True))
    """

    def __init__(self, name: str):
        super().__init__(name)
        Operation.impl.fset(self, self._evaluated)  # the property; `impl` is a method of subclasses
        self.def_effectful_abstract_eval(self.abstract_eval)
        ad.primitive_jvps[self] = partial(type(self).jvp, self)  # the instance has rules under the same names
        ad.primitive_transposes[self] = partial(type(self).transpose, self)
        mlir.register_lowering(self, mlir.lower_fun(self.to_lojax, multiple_results=self.multiple_results))

    def bind(self, *args, **params) -> Any:
        """Apply the primitive: at once where nothing is traced, or on objects with a state; else by its rules."""
        if context.trace is None:
            return self._evaluated(*args, **params)
        if not any(map(has_state, args)) and not self._makes_state(args, params):
            return super().bind(*args, **params)
        check_own(self.name, args)
        out = self.to_lojax(*args, **params)
        own([x for x in (out if self.multiple_results else [out]) if has_state(x)])
        return out

    def _makes_state(self, args, params) -> bool:
        """Whether a result is an object with a state."""
        avals = [get_aval(x) for x in args]
        if not self.is_high(*avals, **params):
            return False
        out = self.abstract_eval(*avals, **params)[0]
        return any(aval.has_qdd for aval in (out if self.multiple_results else [out]))

    def _evaluated(self, *args, **params):
        return (self.to_lojax if self.is_high(*map(get_aval, args), **params) else self.impl)(*args, **params)

    def is_high(self, *avals, **params) -> bool:
        """Whether types of a higher level take part, so that ``to_lojax`` is what evaluates it."""
        return False

    def abstract_eval(self, *arg_avals, **params) -> tuple:
        """The type of the result, or of several, and the set of effects."""
        raise AssertionError(f"{type(self).__name__} does not say its types: it has no abstract_eval")

    def impl(self, *args, **params):
        """The result, or a list of several, for values."""
        raise AssertionError(f"{type(self).__name__} does not say how it is evaluated: it has no impl")

    def to_lojax(self, *lotypes_wrapped_in_hitypes, **params):
        """The same by functions of arrays."""
        raise AssertionError(f"{type(self).__name__} does not say what it is made of: it has no to_lojax")

    def jvp(self, primals, tangents, **params) -> tuple:
        """Results and their tangents."""
        raise AssertionError(f"{type(self).__name__} cannot be differentiated: it has no jvp")

    def transpose(self, *args, **params):
        """The cotangents of the operands."""
        raise AssertionError(f"{type(self).__name__} cannot be differentiated in reverse: it has no transpose")
