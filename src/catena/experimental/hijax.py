"""Primitives and types of a higher level, which say by their own methods what they mean in terms of arrays.

A `HiPrimitive` is a primitive whose rules are methods; where it has no rule of its own, it is what ``to_lojax`` does.
A `HiType` is the type of values of a class of one's own (`register_hitype`). Such values are operands of primitives
that are evaluated at once; what is traced has arrays, so transformations refuse them as they refuse any other object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from catena.core.aval import AbstractRef as AbstractRef
from catena.core.aval import AbstractValue as AbstractValue
from catena.core.aval import ShapedArray as ShapedArray
from catena.core.context import context as _context
from catena.core.effects import control_flow_allowed_effects as control_flow_allowed_effects
from catena.core.namespace import shown as _shown
from catena.core.primitive import Operation as _Operation
from catena.core.type_members import aval_method as aval_method
from catena.core.type_members import aval_property as aval_property
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import Zero as Zero
from catena.core.zeros import get_aval as _get_aval
from catena.core.zeros import high_types as _high_types
from catena.core.zeros import instantiate as instantiate_zeros  # noqa: F401
from catena.interpreters import ad as _ad
from catena.interpreters import mlir as _mlir
from catena.interpreters.ad import is_undefined_primal as is_undefined_primal


class HiPrimitive(_Operation):
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
        _Operation.impl.fset(self, self._evaluated)  # the property; `impl` is a method of subclasses
        self.def_effectful_abstract_eval(self.abstract_eval)
        _ad.primitive_jvps[self] = partial(type(self).jvp, self)  # the instance has rules under the same names
        _ad.primitive_transposes[self] = partial(type(self).transpose, self)
        _mlir.register_lowering(self, _mlir.lower_fun(self.to_lojax, multiple_results=self.multiple_results))

    def bind(self, *args, **params) -> Any:
        """Apply the primitive: evaluated where nothing is traced, else by its rules."""
        if _context.trace is not None:
            return super().bind(*args, **params)
        return self._evaluated(*args, **params)

    def _evaluated(self, *args, **params):
        return (self.to_lojax if self.is_high(*map(_get_aval, args), **params) else self.impl)(*args, **params)

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


class HiType(AbstractValue):
    """The type of values of a class that is registered by `register_hitype`; a subclass says what it is made of, by
    ``lo_ty()``, ``lower_val(value)`` and ``raise_val(*values)``, and has equality and a hash.
    """

    is_high = True


class MutableHiType(HiType):
    """The type of values with a state, whose own type may change while a program runs (``has_qdd``)."""

    has_qdd = True


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Let values of a class have types: ``jax.typeof(value)`` is ``typeof_fn(value)``.

    Arguments:
      val_cls: the class; its instances are leaves of trees.
      typeof_fn: gives the type of an instance.

    >>> import catena as jax
    >>> from catena.experimental import hijax
    >>> class Word(str): ...
    >>> class WordType(hijax.HiType): ...
    >>> hijax.register_hitype(Word, lambda word: WordType())
    >>> isinstance(jax.typeof(Word("x")), WordType)
    True
    """
    _high_types[val_cls] = typeof_fn


__dir__ = _shown(globals())
_absent(globals())
