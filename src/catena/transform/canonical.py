"""One jaxpr for bodies that are traced again and again from the same lines.

Loops are often called with functions made on the spot: each call traces anew, and would compile anew. Here a
traced body that equals an earlier one, equation by equation and line by line, is replaced by it; so whatever
was derived from that one (its derivative, its native program) is found again.
"""

import weakref

from catena.core.jaxpr import ClosedJaxpr, Literal
from catena.core.zeros import get_aval

LIMIT = 512  # bodies remembered, at least the half of them that was used last
traced_bodies: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by function: what it was traced to, by types


class Generations:
    """A cache of bounded size without a lock, since looking up compares parameters, which may run a user's code.

    What is used is in ``young``; when that is full it becomes ``old``, and what was old and not used since is
    forgotten.
    """

    def __init__(self, limit: int):
        self.half = limit // 2
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.young: dict = {}
        self.old: dict = {}

    def setdefault(self, key, value):
        """What is remembered for ``key``; it is ``value`` from now on if there was nothing."""
        found = self.young.get(key)
        if found is not None:
            return found
        old = self.old.get(key)
        if len(self.young) >= self.half:
            self.young, self.old = {}, self.young
        return self.young.setdefault(key, value if old is None else old)

    def __len__(self):
        return len(self.young) + len(self.old)


_known = Generations(LIMIT)


def clear() -> None:
    """Forget all bodies."""
    traced_bodies.clear()
    _known.clear()


def canonical(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The first jaxpr that equals ``closed``, which has no constants."""
    try:
        key = fingerprint(closed)
        hash(key)
    except TypeError:  # a parameter that cannot be hashed
        return closed
    return _known.setdefault(key, closed)


def fingerprint(closed: ClosedJaxpr) -> tuple:
    """All that there is to a jaxpr, with its variables numbered."""
    jaxpr = closed.jaxpr
    numbers = {v: i for i, v in enumerate(jaxpr.invars)}
    eqns = []
    for eqn in jaxpr.eqns:
        operands = tuple([atom_key(x, numbers) for x in eqn.invars])
        for v in eqn.outvars:
            numbers[v] = len(numbers)
        types = tuple([v.aval for v in eqn.outvars])
        eqns.append((eqn.primitive, tuple(eqn.own_params.items()), operands, types, eqn.source))
    outs = tuple([atom_key(x, numbers) for x in jaxpr.outvars])
    place = jaxpr.debug_info.func_src_info if jaxpr.debug_info else None
    return tuple(jaxpr.in_avals), tuple(eqns), outs, place


def atom_key(x, numbers: dict):
    """A variable's number, or a literal's type and bytes."""
    if type(x) is not Literal:
        return numbers[x]
    value = getattr(x.val, "_value", x.val)
    return get_aval(x.val), x.aval, value.tobytes()
