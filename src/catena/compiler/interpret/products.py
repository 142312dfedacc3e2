"""Products, convolutions and Fourier transforms in NumPy, computed in twice the precision where there is one."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from catena.compiler.graph.types import DTYPES
from catena.compiler.interpret import operations
from catena.compiler.interpret.memory import Memory
from catena.compiler.plan.amx import BYTES, GROUP, SIDE, AmxPacking, AmxProduct, Panels
from catena.compiler.plan.amx import Plan as ProductOfNarrow
from catena.compiler.plan.contraction import Axis, Plan
from catena.compiler.plan.fourier import COLUMNS, ODD
from catena.compiler.plan.program import Buffer
from catena.compiler.plan.split_products import HALF, PARTS, TERMS, Lines, SplitProduct, Splitting
from catena.compiler.plan.steps import Contract, Gemm, Transform
from catena.core.errors import CompileError

WIDER = {np.dtype(a): np.dtype(b) for a, b in (("float32", "float64"), ("complex64", "complex128"))}


def contract(memory: Memory, step: Contract) -> None:
    """C = A B, walking over the operands as the plan's axes say."""
    p, form = step.plan, step.plan.contraction
    dtype = operations.memory(form.type)
    lengths = [math.prod(x.extent for x in axes) for axes in (form.batch, form.rows, form.terms)]
    members, rows, terms = lengths
    if p.in_tiles:
        whole = (p.down + bool(p.left)) * p.rows
        panels = memory[step.a].view(dtype)[: members * whole * terms].reshape(members, -1, terms, p.rows)
        a = panels.transpose(0, 1, 3, 2).reshape(members, -1, terms)[:, :rows]
    else:
        a = _walk(memory[step.a].view(dtype), (*form.batch, *form.rows, *form.terms), "a").reshape(lengths)
    if p.packed:
        b = _unpacked(memory, step, dtype, members, terms)
    else:
        axes = (*form.batch, *form.terms, Axis(form.columns, 0, p.apart, 1))
        b = _walk(memory[step.b].view(operations.memory(p.read)), axes, "b").reshape(members, terms, form.columns)
        b = operations.widen(b, p.read)
    made = _product(operations.widen(a, form.type), b)
    axes = (*form.batch, *form.rows, Axis(form.columns, 0, 1, 1))
    target = _walk(memory[step.c].view(dtype), axes, "c", writeable=True)
    target[...] = operations.narrow(made, form.type).reshape(target.shape)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    wide = WIDER.get(a.dtype, a.dtype)
    return (a.astype(wide) @ b.astype(wide)).astype(a.dtype)


def _walk(flat: np.ndarray, axes: tuple, operand: str, writeable: bool = False) -> np.ndarray:
    """The elements that the steps of axes lead to, from the first one on.

    Raises: CompileError: some are beyond.
    """
    steps = [getattr(x, operand) for x in axes]
    reach = [(x.extent - 1) * s for x, s in zip(axes, steps)]
    if min(reach, default=0) < 0 or sum(reach) >= flat.size:
        raise CompileError(f"a product walks over {operand} to {sum(reach)}, beyond its {flat.size} elements")
    strides = [s * flat.itemsize for s in steps]
    return as_strided(flat, [x.extent for x in axes], strides, writeable=writeable)


def _unpacked(memory: Memory, step: Contract, dtype: np.dtype, members: int, terms: int) -> np.ndarray:
    """B from its panels, and the columns beyond them; its axes count members and terms."""
    p: Plan = step.plan
    parts = []
    for buffer, panels, columns in ((step.b, p.panels, p.columns), (step.rest, 1, p.rest)):
        if buffer is not None and panels and columns:
            lines = memory[buffer].view(dtype).reshape(-1, panels, terms, columns)
            parts.append(lines.transpose(0, 2, 1, 3).reshape(len(lines), terms, panels * columns))
    whole = np.concatenate(parts, axis=-1)
    form, line = p.contraction, whole.shape[-1]
    axes = [Axis(x.extent, 0, x.b * terms * line, 0) for x in form.batch]
    axes += [*(Axis(x.extent, 0, x.b * line, 0) for x in form.terms), Axis(line, 0, 1, 0)]
    return _walk(whole.reshape(-1), tuple(axes), "b").reshape(members, terms, line)


def pack(memory: Memory, step: AmxPacking) -> None:
    """Writes the panels of a right operand."""
    panels = _packed(memory, step.source, step.plan)
    memory[step.target].view(panels.dtype)[: panels.size] = panels


def _packed(memory: Memory, source: Buffer, p: Panels) -> np.ndarray:
    """Panels of groups of terms, with zeros beyond the last term and column."""
    dtype, group = DTYPES[p.type.name], GROUP // p.type.bytes
    dims = (*_members(p), (p.terms, p.by_term), (p.columns, p.by_column))
    axes = tuple(Axis(n, 0, step, 0) for n, step in dims)
    whole = np.zeros((p.members, p.groups * group, p.panels * SIDE), dtype)
    whole[:, : p.terms, : p.columns] = _walk(memory[source].view(dtype), axes, "b").reshape(-1, p.terms, p.columns)
    panels = whole.reshape(p.members, p.groups, group, p.panels, SIDE).transpose(0, 3, 1, 4, 2)
    return panels.reshape(-1)


def _members(p: ProductOfNarrow | Panels | Lines) -> list[tuple[int, int]]:
    """The dimensions of members of an operand of such a product: how many, and the step."""
    inner, by_outer, by_inner = p.by_member
    return [(p.members // inner, by_outer), (inner, by_inner)]


def amx(memory: Memory, step: AmxProduct) -> None:
    """C = A B of narrow numbers: A's rows as the plan's steps say, B in panels of groups of terms."""
    p = step.plan
    size, dtype, wide = p.operands.bytes, DTYPES[p.operands.name], np.float32 if p.type.kind == "f" else np.int32
    line, group = p.steps * BYTES // size, GROUP // size
    axes = (*(Axis(n, step, 0, 0) for n, step in _members(p)), Axis(p.rows, p.by_row, 0, 0), Axis(line, 1, 0, 0))
    a = _walk(memory[step.a].view(dtype), axes, "a").astype(wide).reshape(p.members, p.rows, line)
    packed = memory[step.b].view(dtype) if step.packs is None else _packed(memory, step.b, step.packs)
    panels = packed[: p.members * p.all_panels * p.panel // size]
    panels = panels.reshape(p.members, p.all_panels, line // group, SIDE, group).transpose(0, 2, 4, 1, 3)
    b = panels.reshape(p.members, line, p.all_panels * SIDE)[..., : p.columns].astype(wide)
    made = operations.narrow(_product(a, b), p.type)
    memory[step.c].view(operations.memory(p.type))[: made.size] = made.reshape(-1)


def split(memory: Memory, step: Splitting) -> None:
    """Writes the panels of a whole operand."""
    p = step.lines
    _split(memory, step.target, _lines(memory, step.source, p), p)


def _split(memory: Memory, target: Buffer, lines: np.ndarray, p: Lines) -> None:
    """Writes panels of the parts of some lines, and behind each the least and greatest sizes of these."""
    steps = -(-lines.shape[2] // TERMS)
    whole = np.zeros((len(lines), -(-lines.shape[1] // SIDE) * SIDE, steps * TERMS), np.float32)
    whole[:, : lines.shape[1], : lines.shape[2]] = lines
    sizes = (whole.view(np.uint32) & np.uint32(0x7FFFFFFF)).reshape(len(lines), -1, SIDE, steps * TERMS)
    ends = np.stack([(sizes - np.uint32(1)).min(axis=-1), sizes.max(axis=-1)], axis=2)
    words = whole.reshape(len(lines), -1, 2, HALF, steps, 2, TERMS // 2)  # the sixth: first or second of a word
    parts = np.stack([x.view(np.uint32) >> np.uint32(16) for x in _parts(words)])
    pairs = parts[..., 0, :] | parts[..., 1, :] << np.uint32(16)  # part, member, panel, half, line, step, word
    order = (1, 2, 5, 0, 3, 4, 6) if p.is_left else (1, 2, 5, 0, 3, 6, 4)
    tiles = pairs.transpose(order).reshape(*ends.shape[:2], -1)
    panels = np.concatenate([tiles, ends.reshape(*ends.shape[:2], -1)], axis=-1).reshape(-1)
    memory[target].view(np.uint32)[: panels.size] = panels


def _lines(memory: Memory, source: Buffer, p: Lines) -> np.ndarray:
    """An operand as it lies: members, rows or columns, and terms."""
    dims = (*_members(p), (p.side, p.by_side), (p.terms, p.by_term))
    axes = tuple(Axis(n, step, 0, 0) for n, step in dims)
    return _walk(memory[source].view(np.float32), axes, "a").reshape(p.members, p.side, p.terms)


def _parts(x: np.ndarray) -> list[np.ndarray]:
    """Three numbers of eight bits that numbers are the sums of."""
    parts = []
    for _ in range(PARTS - 1):
        bits = (x.view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)
        parts.append(bits.view(np.float32))
        with np.errstate(invalid="ignore"):
            x = x - parts[-1]
    return [*parts, x]


def _put_together(memory: Memory, panels: Buffer, there: np.ndarray, p: Lines) -> np.ndarray:
    """Numbers of their parts; those that cannot be as they lie `there`."""
    p = p.some(*there.shape)
    shape = p.members, p.panels
    words = memory[panels].view(np.uint32)[: p.bytes // 4].reshape(*shape, -1)[..., : -2 * SIDE]
    words = words.reshape(*shape, p.steps, PARTS, 2, HALF, HALF)
    lines = words.transpose(3, 0, 1, 4, 5, 2, 6) if p.is_left else words.transpose(3, 0, 1, 4, 6, 2, 5)
    pairs = np.stack([lines << np.uint32(16), lines & np.uint32(0xFFFF0000)], axis=-2).view(np.float32)
    with np.errstate(invalid="ignore"):
        whole = pairs.astype(np.float64).sum(axis=0).astype(np.float32)
    whole = whole.reshape(len(there), -1, p.steps * TERMS)[:, : there.shape[1], : p.terms]
    return np.where(np.isfinite(whole) & (np.abs(there) >= 2.0**-100), whole, there)


def by_parts(memory: Memory, step: SplitProduct) -> None:
    """C = A B of numbers that are put together of their parts, some members, rows and columns at a time."""
    p = step.plan
    lies = [_lines(memory, x.lies, x.lines) for x in (step.a, step.b)]
    made = memory[step.c].view(np.float32)[: p.a.members * p.a.side * p.b.side]
    made = made.reshape(p.a.members, p.a.side, p.b.side)
    made[...] = 0
    for begin in itertools.product(*(range(0, n, k) for n, k in zip((*made.shape, p.a.terms), p.part))):
        members, rows, columns, terms = (slice(i, i + k) for i, k in zip(begin, p.part))
        sides = []
        for x, whole, own in zip((step.a, step.b), lies, (rows, columns)):
            lines = whole[members, own, terms]
            if x.splits:
                _split(memory, x.panels, lines, x.lines)
            sides.append(_put_together(memory, x.panels, lines, x.lines))
        made[members, rows, columns] += _product(sides[0], sides[1].transpose(0, 2, 1))


def gemm(memory: Memory, step: Gemm) -> None:
    """Batches of matrix products."""
    p = step.product
    shapes = ((p.a, (p.batch, p.m, p.k)), (p.b, (p.batch, p.k, p.n)), ((p.m * p.n, p.n, 1), (p.batch, p.m, p.n)))
    axes = [tuple(Axis(n, s, s, s) for n, s in zip(shape, strides)) for strides, shape in shapes]
    a, b = (_walk(memory[x].view(p.dtype), axis, "a") for x, axis in zip((step.a, step.b), axes))
    _walk(memory[step.c].view(p.dtype), axes[2], "c", writeable=True)[...] = _product(a, b)


def transform(memory: Memory, step: Transform) -> None:
    """Fourier transforms of columns or rows, or between real rows and their half spectra."""
    p, s = step.plan, step.plan.whole
    real = np.dtype(p.numbers.real)
    numbers = np.dtype(f"complex{16 * real.itemsize}")
    result: np.ndarray
    shape = (p.outer, s.n, s.lanes) if p.how == COLUMNS else (p.outer, -1)
    target = memory[step.target]
    if p.how == ODD or p.half is not None and p.half.to_spectrum:
        result = np.fft.rfft(memory[step.source].view(real).reshape(shape).astype(np.float64), axis=1)
    elif p.half is None:
        inverse = s.swapped[0] if p.chirp is None else p.chirp.inverse
        function = np.fft.ifft if inverse else np.fft.fft
        result = function(memory[step.source].view(numbers).reshape(shape).astype(np.complex128), axis=1)
    else:
        half = memory[step.source].view(numbers).reshape(shape).astype(np.complex128)
        result, numbers = np.fft.irfft(half, 2 * p.half.h, axis=1), real
    target.view(numbers)[:] = result.astype(numbers).reshape(-1)
