"""Effects: what an operation does besides computing its results. Pure code has none.

Ordered effects happen in program order, also across calls; unordered ones may be moved but never dropped. Effects of
users' own classes are kept by every jaxpr that has them; what a compiled program, a loop or a branch would have to do
for them nobody knows, so these refuse them.
"""

from collections.abc import Set


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


debug_effect = DebugEffect()
ordered_debug_effect = OrderedDebugEffect()
io_effect = IOEffect()
ordered_io_effect = OrderedIOEffect()

SHOWN = frozenset([debug_effect, ordered_debug_effect])
KNOWN = SHOWN | {io_effect, ordered_io_effect}


def check_effects(effects, allowed: frozenset, where: str):
    """Raise NotImplementedError where there are effects that are not allowed."""
    refused = [e for e in effects if e not in allowed]
    if refused:
        raise NotImplementedError(f"Effects not supported in {where}: {refused}")
