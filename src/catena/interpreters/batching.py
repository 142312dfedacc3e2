"""Vectorisation rules of primitives: ``rule(args, dims, **params)`` gives the result and its mapped axis."""

import functools
from collections.abc import Callable

from catena.core.axes import move_axis
from catena.core.unbuilt import absent as _absent
from catena.interpreters.rules import Rules
from catena.transform.batch import batch_rules as _batch_rules

not_mapped = None


class WithoutAxis:
    """A user's vectorisation rule, which is told nothing of the axis; arguments and their axes are tuples."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable):
        self.rule = rule

    def __call__(self, axis, args, dims, **params):
        return self.rule(tuple(args), tuple(dims), **params)


primitive_batchers = Rules(_batch_rules, WithoutAxis, lambda rule: functools.partial(rule, None))


def defvectorized(prim) -> None:
    """Of an elementwise primitive of arguments that are mapped along one axis: it takes them as they are.

    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import batching
    >>> batching.defvectorized(Primitive("halve"))
    """

    def rule(args, dims, **params):
        first = next(d for d in dims if d is not not_mapped)
        moved = [
            x if d is not_mapped or d == first else move_axis(x, d, first) for x, d in zip(args, dims, strict=True)
        ]
        return prim.bind(*moved, **params), first

    primitive_batchers[prim] = rule


_absent(globals())
