"""Right operands of products that hold numbers of 16 bits, and are widened as they are packed.

A product of such numbers multiplies floats. The right operand is packed into panels anyhow, or is read by so few rows
that writing all of it, twice as large, and reading that again takes longer than the product: so what widens it is no
kernel with a result in memory; products find the narrow array in its place.
"""

from __future__ import annotations

from catena.compiler.graph.region import Value
from catena.compiler.graph.types import NAMES, TYPES, Type
from catena.compiler.machine import Machine
from catena.compiler.plan import product_kinds
from catena.compiler.plan.copies import beside
from catena.compiler.plan.fuse import Fused, Step
from catena.compiler.plan.planner import Frame
from catena.compiler.plan.storage import under_transposes

NARROW = ("float16", "bfloat16")


def leave_narrow(fused: Fused, machine: Machine) -> None:
    """Has values that only products read, as their right operands, lie in the narrow memory that they are made of."""
    readers: dict[int, list[Step]] = {}
    for step in fused.steps:
        for n in step.reads:
            readers.setdefault(n, []).append(step)
    results = {v.number for v in fused.region.outputs}
    kept = []
    for step in fused.steps:
        roots = step.kernel.roots if step.kernel is not None else []
        v = roots[0] if len(roots) == 1 and _is_widened(fused, roots[0], machine) else None
        own = [] if v is None or v.number in results else readers.get(v.number, [])
        if v is not None and own and all(_reads_as_right(reader, v, machine) for reader in own):
            _leave(fused, v, own)
        else:
            kept.append(step)
    fused.steps = kept


def _is_widened(fused: Fused, v: Value, machine: Machine) -> bool:
    """Whether a value is floats from a narrow array in memory, more than the nearest cache holds."""
    if v.form != "map" or v.params.op != "convert" or v.dtype.name != "float32":
        return False
    source = v.args[0]
    return source.dtype.name in NARROW and fused.is_stored(source) and v.nbytes > machine.memory.first_cache


def _reads_as_right(step: Step, v: Value, machine: Machine) -> bool:
    """Whether a step is a product by tiles whose right operand is a value, and whose left one is not."""
    product = step.node
    if product is None or product.form != "dot" or not product_kinds.has_tiles(product, machine):
        return False
    left, right, _ = product_kinds.vector_first(product)
    return under_transposes(right) is v and under_transposes(left) is not v


def _leave(fused: Fused, v: Value, readers: list[Step]) -> None:
    source = fused.root(v.args[0])
    fused.roots[v.number] = source
    for reader in readers:
        reader.reads = reader.reads - {v.number} | {source}


def right(fused: Fused, product: Value) -> Type | None:
    """The type of what is read in the place of a product's right operand; None where that is read itself."""
    if product.form != "dot":
        return None
    x = under_transposes(product_kinds.vector_first(product)[1])
    if x.form != "map" or x.number not in fused.roots:
        return None
    return TYPES[NAMES[x.args[0].dtype]]


def computed(frame: Frame, x: Value) -> Value:
    """The same view of what is computed where it is read."""
    if x.form == "transpose":
        return beside(frame, x.form, x.shape, (computed(frame, x.args[0]),), x.params)
    return beside(frame, x.form, x.shape, x.args, x.params, x.dtype)
