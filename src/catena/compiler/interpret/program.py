"""The null device: an interpreter of programs in NumPy.

It runs what `plan` made, step by step over bytes: the arena is one array, slots and results have arrays of their own,
slices are views. So it shows what a program means without any compiler, and where a writer of programs differs from
that, one of the two is wrong. Memory that nobody has written holds ones in all bits, which are NaN, -1 or beyond any
extent; so does what is scratch to a step, before and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from catena.compiler.interpret import keys, libraries, nests, products, small_matrices
from catena.compiler.interpret.memory import Memory
from catena.compiler.interpret.nests import Place
from catena.compiler.plan import ranges, steps
from catena.compiler.plan.amx import AmxPacking, AmxProduct
from catena.compiler.plan.program import Block, Program, Step
from catena.compiler.plan.split_products import SplitProduct, Splitting
from catena.core import failures
from catena.core.errors import CompileError


def run(program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a program.

    Arguments: `program`, for any machine; `args`, arrays of the shapes and dtypes that it was planned for. Those whose
      memory the program takes for results are left as they are.
    Raises: CompileError: a step reaches beyond its memory, or reads an item of a stack that was freed; what a check
      raises that fails.
    """
    memory = Memory(program, args)
    with np.errstate(all="ignore"):
        _block(memory, program.body)
    if program.stops and memory.cell[0]:
        raise cast(Exception, failures.found(program.fused.region.sites, memory.cell))
    return memory.results()


def _block(memory: Memory, block: Block) -> None:
    for step in block.steps:
        for buffer in step.scratch():
            memory.forget(buffer)
        RULES[type(step)](memory, step)
        for buffer in step.scratch():
            memory.forget(buffer)


def _copy(memory: Memory, step: steps.Copy) -> None:
    memory[step.target][: step.bytes] = memory[step.source][: step.bytes].copy()


# ---- loop nests ----------------------------------------------------------------------------------------------


def _launch(memory: Memory, step: steps.Launch) -> None:
    nest, places = step.nest, memory.places(step.operands)
    folded, size = ranges.first_folded(nest), step.chunk
    if not step.parts or folded is None or size is None:
        nests.run(nest, places)
        return
    extent = nest.extents[folded]
    whole = step.opened.whole(nest)[step.cut + 1]  # blocks of lanes; the last task does the rest too
    for k, low in enumerate(range(0, whole, size)):
        high = low + size if low + size < whole else extent
        own = {b: Place(places[b].bytes[k * each : (k + 1) * each]) for b, each in step.parts.items()}
        nests.run(nest, places | own, {folded: (low, high)})


def _rows(memory: Memory, step: steps.Rows) -> None:
    """Loop nests in turn on each block of rows; what is private holds those of the block."""
    places, first = memory.places(step.operands), step.group[0]
    *outer, inner = extents = [first.extents[d] for d in first.rows]
    for at in np.ndindex(*outer):
        before = int(np.ravel_multi_index(at, outer)) * inner if outer else 0
        for low in range(0, inner, step.block):
            high = min(low + step.block, inner)
            private = {n: _private(size, low + before, high - low) for n, size in step.private.items()}
            here = [*((i, i + 1) for i in at), (low, high)]
            for nest in step.group:
                nests.run(nest, places | private, dict(zip(nest.rows, here[: len(extents)])))


def _private(size: int, first: int, rows: int) -> Place:
    return Place(np.full(size * rows, 0xFF, np.uint8), size * first)


def _product(rule: Callable[[Memory, Any], None]) -> Callable[[Memory, steps.Product], None]:
    """The rule of a product, given that of it alone: what follows on its rows comes after."""

    def run_both(memory: Memory, step: steps.Product) -> None:
        rule(memory, step)
        if step.after is not None:
            nests.run(step.after, memory.places(step.operands))

    return run_both


# ---- control flow --------------------------------------------------------------------------------------------


def _while(memory: Memory, step: steps.While) -> None:
    memory.depth += 1
    memory.enter(0)
    _block(memory, step.cond)
    k = 0
    while memory[step.flag][0]:
        _iteration(memory, step)
        k += 1
        memory.enter(k)
        _block(memory, step.cond)
    memory.enter(0)
    memory.depth -= 1


def _scan(memory: Memory, step: steps.Scan) -> None:
    memory.depth += 1
    for k in reversed(range(step.length)) if step.reverse else range(step.length):
        memory.enter(k)
        for part in (*step.slices, *step.made):
            memory.move(part, k)
        _iteration(memory, step)
    memory.enter(0)
    memory.depth -= 1


def _iteration(memory: Memory, step: steps.While | steps.Scan) -> None:
    """One iteration of a loop; stacks that it makes and nobody can see after it are freed at its end."""
    known = set(memory.stacks)
    _block(memory, step.body)
    for carry, other in step.body.turns:
        memory[carry][:] = memory[other][: carry.bytes]
        memory.forget(other)
    if step.frees_stacks:
        for handle in set(memory.stacks) - known:
            del memory.stacks[handle]


def _concurrent(memory: Memory, step: steps.Concurrent) -> None:
    for each in step.sequences:
        _block(memory, each)


def _branch(memory: Memory, step: steps.Branch) -> None:
    index = int(memory[step.index].view(f"int{step.bits}")[0])
    last = len(step.cases) - 1
    index = min(max(index, 0), last) if step.clamped else index if 0 <= index < last else last
    _block(memory, step.cases[index])


# ---- stacks --------------------------------------------------------------------------------------------------


def _new_stack(memory: Memory, step: steps.NewStack) -> None:
    memory.made += 1
    memory.stacks[memory.made] = [step.item_bytes]
    _set(memory, step.out, "uint64", memory.made)


def _stack_length(memory: Memory, step: steps.StackLength) -> None:
    _set(memory, step.out, "int32", len(_items(memory, step.stack)) - 1)


def _write_stack(memory: Memory, step: steps.WriteStack) -> None:
    items, at = _items(memory, step.stack), _get(memory, step.at, "int64")
    size = items[0]
    items += [np.zeros(size, np.uint8)] * (at + 2 - len(items))  # items that were never written are zero
    items[at + 1] = memory[step.item][:size].copy()
    _set(memory, step.out, "uint64", _get(memory, step.stack, "uint64"))


def _read_stack(memory: Memory, step: steps.ReadStack) -> None:
    items, at = _items(memory, step.stack), _get(memory, step.at, "int64")
    memory[step.out][:] = items[at + 1] if 0 <= at < len(items) - 1 else 0


def _items(memory: Memory, stack) -> list:
    """A stack: the bytes of an item, then the items; no address is that of the empty one."""
    handle = _get(memory, stack, "uint64")
    if handle and handle not in memory.stacks:
        raise CompileError("a stack is used that was freed or never made")
    return memory.stacks[handle] if handle else [0]


def _get(memory: Memory, buffer, dtype: str) -> int:
    return int(memory[buffer].view(dtype)[0])


def _set(memory: Memory, buffer, dtype: str, value: int) -> None:
    memory[buffer].view(dtype)[0] = value


RULES: dict[type[Step], Callable[[Memory, Any], None]] = {
    steps.Copy: _copy,
    steps.Launch: _launch,
    steps.Rows: _rows,
    steps.Contract: _product(products.contract),
    AmxProduct: _product(products.amx),
    AmxPacking: products.pack,
    SplitProduct: _product(products.by_parts),
    Splitting: products.split,
    steps.Gemm: products.gemm,
    steps.Sort: keys.sort,
    steps.Order: keys.order,
    steps.Ranks: keys.ranks,
    steps.Select: keys.select,
    steps.Transform: products.transform,
    steps.Lapack: libraries.lapack,
    steps.SmallMatrices: small_matrices.small_matrices,
    steps.Host: libraries.host,
    steps.While: _while,
    steps.Scan: _scan,
    steps.Branch: _branch,
    steps.Concurrent: _concurrent,
    steps.NewStack: _new_stack,
    steps.StackLength: _stack_length,
    steps.WriteStack: _write_stack,
    steps.ReadStack: _read_stack,
}
