"""Effects: what an operation does besides computing its results. Pure code has none.

Ordered effects happen in program order, also across calls; unordered ones may be moved but never dropped.
"""


class Effect:
    """A kind of effect; equations carry the kinds they have, and dead-code elimination keeps them."""

    ordered = False

    def __repr__(self):
        return type(self).__name__.removesuffix("Effect")

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))


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
