"""In checked mode, that what the tiles of a product walk over lies inside of its arrays."""

from __future__ import annotations

from catena.compiler.graph.region import Value
from catena.compiler.plan.contraction import Contraction
from catena.compiler.plan.strided import Lies
from catena.core.errors import CompileError


def check(form: Contraction, a: Lies, b: Lies, v: Value, columns) -> None:
    """In checked mode, that the walks over the operands and the result stay inside: their steps are all known."""
    axes = [*form.batch, *form.rows, *form.terms, *columns]
    check_walk("its left operand", [(x.extent, x.a) for x in axes], a.base.size, a.first)
    check_walk("its right operand", [(x.extent, x.b) for x in axes], b.base.size, b.first)
    check_walk("its result", [(x.extent, x.c) for x in axes if x not in columns] + [(form.columns, 1)], v.size)


def check_walk(what: str, steps, size: int, first: int = 0) -> None:
    """Raises unless a walk of `(extent, stride)` steps from one of `size` elements stays among them."""
    if any(n == 0 for n, _ in steps):
        return
    reach = [(n - 1) * stride for n, stride in steps]
    low, high = first + sum(r for r in reach if r < 0), first + sum(r for r in reach if r > 0)
    if low < 0 or high >= size:
        raise CompileError(f"a product walks over {what} from {low} to {high}, beyond its {size} elements")
