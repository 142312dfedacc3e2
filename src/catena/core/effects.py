"""Effects: what an operation does besides computing its results. Pure code has none.

Ordered effects happen in program order, also across calls; unordered ones may be moved but never dropped. Effects of
users' own classes are kept by every jaxpr that has them; what a compiled program, a loop or a branch would have to do
for them nobody knows, so these refuse them.
"""

from __future__ import annotations

from collections.abc import Container, Set


class Effect:
    """A kind of effect; equations carry the kinds they have, and dead-code elimination keeps them."""

    ordered = False

    def __repr__(self):
        return type(self).__name__.removesuffix("Effect")

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))


Effects = Set[Effect]
no_effects: frozenset = frozenset()


class GenericEffect(Effect):
    """What a primitive ``prim`` does besides, if nothing more is to be said of it."""

    def __init__(self, prim):
        self.prim = prim

    def __repr__(self):
        return f"GenericEffect(prim={self.prim})"

    def __eq__(self, other):
        return type(other) is GenericEffect and self.prim is other.prim

    def __hash__(self):
        return hash((GenericEffect, id(self.prim)))


class DebugEffect(Effect):
    """Something is shown to the user, in no particular order."""


class OrderedDebugEffect(Effect):
    """Something is shown to the user, in program order."""

    ordered = True


class IOEffect(Effect):
    """A Python function is called for its side effect, in no particular order."""


class OrderedIOEffect(Effect):
    """A Python function is called for its side effect, in program order."""

    ordered = True


class RefEffect(Effect):
    """Something happens to the reference that is operand ``index``, in program order."""

    ordered = True

    def __init__(self, index: int):
        self.index = index

    def __repr__(self):
        return f"{type(self).__name__}({self.index})"

    def __eq__(self, other):
        return type(self) is type(other) and self.index == other.index

    def __hash__(self):
        return hash((type(self), self.index))

    def at(self, index: int) -> RefEffect:
        """The same effect on another operand."""
        return type(self)(index)


class ReadEffect(RefEffect):
    """The value is read."""


class WriteEffect(RefEffect):
    """The value is replaced, at least in part."""


class AccumEffect(RefEffect):
    """Something is added to the value."""


class CheckEffect(Effect):
    """Something is asserted: ``catena.experimental.checkify``."""


debug_effect = DebugEffect()
ordered_debug_effect = OrderedDebugEffect()
io_effect = IOEffect()
ordered_io_effect = OrderedIOEffect()
check_effect = CheckEffect()


class EffectTypes:
    """Classes of effects.

    Arguments:
      types: the first of them.

    >>> types = EffectTypes(DebugEffect)
    >>> types.contains(debug_effect), types.filter_not_in({debug_effect, io_effect})
    (True, [IO])
    """

    def __init__(self, *types: type[Effect]):
        self._types = types

    def add_type(self, effect_type: type[Effect]) -> None:
        """Add a class; what is derived from it belongs to it."""
        self._types = (*self._types, effect_type)

    def contains(self, eff: Effect) -> bool:
        """Whether an effect is of one of these classes."""
        return isinstance(eff, self._types)

    __contains__ = contains

    def filter_in(self, effects) -> list[Effect]:
        """The effects that are."""
        return [e for e in effects if self.contains(e)]

    def filter_not_in(self, effects) -> list[Effect]:
        """The effects that are not."""
        return [e for e in effects if not self.contains(e)]


# With which effects programs are compiled. An equation with one of a user's class is compiled as any other.
lowerable_effects = EffectTypes(
    DebugEffect, OrderedDebugEffect, IOEffect, OrderedIOEffect, CheckEffect, GenericEffect, RefEffect
)
# Those that may happen in loops and branches.
control_flow_allowed_effects = EffectTypes(DebugEffect, OrderedDebugEffect, IOEffect, OrderedIOEffect, CheckEffect)
SHOWN = frozenset([debug_effect, ordered_debug_effect])


def of_operands(effects, places) -> frozenset:
    """The effects of a jaxpr as those of an equation that calls it.

    Arguments:
      effects: of the jaxpr.
      places: from the number of an argument of the jaxpr to that of the operand.
    """
    return frozenset([e.at(places(e.index)) if isinstance(e, RefEffect) else e for e in effects])


def check_effects(effects, allowed: Container[Effect], where: str):
    """Raise NotImplementedError where there are effects that are not allowed."""
    refused = [e for e in effects if e not in allowed and not isinstance(e, RefEffect)]
    if refused:
        raise NotImplementedError(f"Effects not supported in {where}: {refused}")
