"""Vectorisation rules of primitives: ``rule(args, dims, **params)`` gives the result and its mapped axis."""

from catena.interpreters.rules import Rules
from catena.lax.structure import move_axis

not_mapped = None
primitive_batchers = Rules(
    "batch",
    wrap=lambda rule: lambda axis, args, dims, **params: rule(args, dims, **params),
    unwrap=lambda rule: lambda args, dims, **params: rule(None, args, dims, **params),
)


def defvectorized(primitive) -> None:
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
        return primitive.bind(*moved, **params), first

    primitive_batchers[primitive] = rule
