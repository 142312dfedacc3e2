"""Where the operands of products lie: the strides of views of stored arrays, and what stays as it is in a loop."""

from __future__ import annotations

from catena.compiler.graph.region import Value
from catena.compiler.plan import strided
from catena.compiler.plan.copies import beside
from catena.compiler.plan.planner import Frame, Outside, Planner
from catena.compiler.plan.program import PART, Buffer
from catena.compiler.plan.strided import Lies
from catena.core.errors import CompileError


def is_fixed(outside: Outside | None, x: Value) -> bool:
    """Whether a view is of what does not change in the loop around."""
    while x.form in ("transpose", "reshape"):
        x = x.args[0]
    return outside is not None and x.form == "input" and x.number in outside.fixed


def fixed(outside: Outside, x: Value) -> Value:
    """The same view as it is called outside of the loop."""
    if x.form == "input":
        return outside.fixed[x.number]
    return beside(outside.frame, x.form, x.shape, (fixed(outside, x.args[0]),), x.params)


def uses(frame: Frame, x: Value) -> int:
    """How often an operand is used once it is packed."""
    outside = frame.outside
    if outside is None or not is_fixed(outside, x):
        return 1
    return outside.trips * uses(outside.frame, fixed(outside, x))


def lies(frame: Frame, x: Value) -> Lies | None:
    """Where a view lies in the stored value under it."""
    return strided.below(x, frame.fused.is_stored)


def in_memory(frame: Frame, x: Value) -> Lies:
    """The same of a value that is stored, or a view of what is: operands of tiles are (see `storage`)."""
    found = lies(frame, x)
    if found is None:
        raise CompileError(f"v{x.number} is read as it lies in memory, but is not stored")
    return found


def address(p: Planner, frame: Frame, view: Lies) -> Buffer:
    """Where the first element of a view is."""
    base, first = view.base, view.first * view.base.dtype.itemsize
    whole = p.address(frame, base)
    return Buffer(PART, base.nbytes - first, first, base=whole) if first else whole


def group(x: Value, strides: list[int], dims) -> int | None:
    """The single stride of a group of dimensions, 0 when it has one element; None when there is none."""
    dims = [d for d in dims if x.shape[d] != 1]
    for a, b in zip(dims, dims[1:]):
        if strides[a] != strides[b] * x.shape[b]:
            return None
    return strides[dims[-1]] if dims else 0
