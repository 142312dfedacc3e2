"""Slices that need no memory: who wants theirs, as products do, reads them in that of an argument or a constant, if
they are one piece of it. Such are a layer's weights in an array of all layers.
"""

from __future__ import annotations

from catena.compiler.graph.region import Value
from catena.compiler.plan.memory import SLOT_BYTES
from catena.compiler.plan.storage import KEPT, RESULT, Storage


def is_part(storage: Storage, v: Value) -> bool:
    """Whether a slice is stored for those who want memory, and is one piece of what is kept there."""
    if v.form != "slice" or storage.needed.get(v.number, RESULT) == RESULT or v.nbytes <= SLOT_BYTES:
        return False
    whole = v.args[0]
    return whole.number in storage.stored and _kept(storage, whole) and first_element(v) is not None


def _kept(storage: Storage, v: Value) -> bool:
    while v.number in storage.roots:
        v = v.args[0]
    return v.form in KEPT


def first_element(v: Value) -> int | None:
    """Where a slice begins in the array that it is a piece of; None where it lies in several."""
    whole, first, step, together = v.args[0], 0, 1, True
    for d in reversed(range(v.ndim)):
        if v.shape[d] != 1 and not (together and v.params.strides[d] == 1):
            return None
        together = together and v.shape[d] == whole.shape[d]
        first += v.params.start[d] * step
        step *= whole.shape[d]
    return first
