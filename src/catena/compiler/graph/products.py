"""Products of arrays: those without a sum are elementwise, those that are nothing but a sum are one of what is
multiplied where loops compute it, and operands are read as they lie.
"""

from __future__ import annotations

import math

import numpy as np

from catena.compiler.graph.forms import FORMS, PARTS, Dot
from catena.compiler.graph.parts import cut
from catena.compiler.graph.transposes import in_memory
from catena.compiler.graph.types import LANES, NAMES
from catena.core.dtypes import KIND

FEWEST_READ = 4  # times that something is read which is turned for what it is multiplied by
FEWEST_ROWS, FEWEST_COLUMNS, FEWEST_TERMS = 2, 4, 16  # of a product whose operands stay narrow
READ_ONCE = "float32", "float64", "complex64", "complex128", "int32"  # whose vectors loops may compute themselves
SUMMED = "float32", "float64"  # of which sums may be products
FEWEST_SUMMED, MANY_SUMMED = 4, 1 << 18  # sums that are no more than loops; and multiplications that are worth it
SUMS = {"bfloat16": ("bfloat16", "float32"), "int8": ("int32",)}  # what products of narrow operands may be
WORD = np.dtype(np.int32)  # in which those of int8 are added up
FLOOR = 16 * 16 * 16  # multiplications from which a product is more than a loop nest
LONG = 64  # terms of a sum beside which what is transposed is small
GREATEST = {"int8": 128, "uint8": 255}  # the greatest size of bytes
EXACT = 1 << 24  # up to which floats of 32 bits have all whole numbers
MOST_PARTS = 16  # of a long sum of products of bytes
MOST_OPERATIONS = 32  # of what is multiplied, along several dimensions, where it is computed
NOT_IN_MEMORY = PARTS | {"iota"}  # beside views and elementwise operations


def dot_general(
    b, lhs, rhs, dimension_numbers, out_dtype: np.dtype, wide: np.dtype | None = None, by_parts: bool = False
):
    """The product of `lhs` and `rhs`, whose terms are `wide` numbers, where not given floats of 32 bits at least; its
    dimensions are those of the batch, then the free ones of `lhs` and of `rhs`.
    """
    if _keeps_low_bits(out_dtype) and _stays_narrow(b, lhs, rhs, dimension_numbers, WORD):
        return b.convert(dot_general(b, lhs, rhs, dimension_numbers, WORD), out_dtype)
    if not _stays_narrow(b, lhs, rhs, dimension_numbers, out_dtype):
        wide = wide or _wide(out_dtype)
        if (parts := _parts_of_bytes(lhs, rhs, dimension_numbers, wide)) is not None:
            return b.convert(_by_floats(b, lhs, rhs, dimension_numbers, wide, parts), out_dtype)
        lhs, rhs = b.convert(lhs, wide), b.convert(rhs, wide)
        if wide != out_dtype:
            return b.convert(dot_general(b, lhs, rhs, dimension_numbers, wide, None, by_parts), out_dtype)
    (lc, rc), (lb, rb) = dimension_numbers
    lc, rc, lb, rb = (tuple(int(d) for d in dims) for dims in (lc, rc, lb, rb))
    numbers = Dot((lc, rc, lb, rb), None, by_parts)
    shape = [lhs.shape[d] for d in lb]
    shape += [n for d, n in enumerate(lhs.shape) if d not in (*lc, *lb)]
    shape += [n for d, n in enumerate(rhs.shape) if d not in (*rc, *rb)]
    single = all(lhs.shape[d] == 1 for d in lc) and not (lc and b.loop == "scan")  # its sum of products is one product
    if single and KIND[out_dtype] in "fiu":
        lhs, rhs = (b.convert(x, out_dtype) for x in (lhs, rhs))
        return b.map("mul", *spread(b, lhs, rhs, numbers.numbers, shape))
    if b.loop and len(shape) == len(lb) and KIND[out_dtype] in "fiu" and lhs.size:
        left, right = b.convert(lhs, out_dtype), b.convert(rhs, out_dtype)
        return _inner(b, left, right, (*lb, *lc), (*rb, *rc), len(lb))
    found = _in_order(b, lhs, rhs, numbers, out_dtype) or _as_it_lies(b, lhs, rhs, numbers, out_dtype)
    if found is not None:
        return found
    if len(shape) == len(lb) + 2 and fills_lanes_turned(lhs, rhs, numbers.numbers):
        *batch, rows, columns = shape
        turned = b.value("dot", (*batch, columns, rows), out_dtype, [rhs, lhs], numbers.exchanged())
        return b.transpose(turned, (*range(len(batch)), len(shape) - 1, len(batch)))
    return b.value("dot", shape, out_dtype, [lhs, rhs], numbers)


def fills_lanes_turned(lhs, rhs, numbers: tuple) -> bool:
    """Whether a long sum of products of columns, as in the gradient of weights, has so few columns on the right that
    lanes along those of the left are fewer vectors. What is transposed then is small beside the sum.
    """
    lc, rc, lb, _ = numbers
    narrow = KIND[lhs.dtype] not in "fiu" or lhs.dtype.itemsize < 4
    if narrow or math.prod(lhs.shape[d] for d in lb) == 0:
        return False
    if has_terms_side_by_side(lhs, lc) or has_terms_side_by_side(rhs, rc):
        return False
    terms, batch = (math.prod(lhs.shape[d] for d in dims) for dims in (lc, lb))
    rows, columns = (x.size // max(terms * batch, 1) for x in (lhs, rhs))
    vectors, gain = (rows * -(-columns // LANES), columns * -(-rows // LANES)), 1 if rows >= LANES else 2
    return columns < rows and terms >= LONG and gain * vectors[1] < vectors[0] and rows * columns * terms >= FLOOR


def _wide(dtype: np.dtype) -> np.dtype:
    """What products of this dtype are summed in."""
    narrow = KIND[dtype] in "fc" and NAMES[dtype] not in ("float64", "complex64", "complex128")
    return np.dtype(np.float32) if narrow else dtype


def has_terms_side_by_side(x, contracted) -> bool:
    """Whether what is summed over lies side by side in memory."""
    x, dims = in_memory(x, contracted)
    return max((d for d in range(x.ndim) if x.shape[d] != 1), default=0) in dims


def _stays_narrow(b, lhs, rhs, dimension_numbers, out_dtype: np.dtype) -> bool:
    """Whether the processor multiplies the operands as they are, and that pays (see `emit.narrow_products`)."""
    name = NAMES[lhs.dtype]
    if name not in b.multiplied or rhs.dtype != lhs.dtype or NAMES[out_dtype] not in SUMS[name]:
        return False
    return _is_worth_another_form(lhs, rhs, dimension_numbers) or _is_row_of_bytes(lhs, rhs, dimension_numbers)


def _is_row_of_bytes(lhs, rhs, dimension_numbers) -> bool:
    """Whether bytes are the terms of one row, and of columns whose terms lie apart: a loop would read these as words,
    in a copy of four times the size.
    """
    (lc, rc), (lb, _) = dimension_numbers
    terms = math.prod(lhs.shape[d] for d in lc)
    each = math.prod(lhs.shape[d] for d in lb) * terms
    if KIND[lhs.dtype] not in "iu" or not each or lhs.size != each or has_terms_side_by_side(rhs, rc):
        return False
    return terms >= FEWEST_TERMS and rhs.size >= each * LANES and rhs.size >= FLOOR


def _keeps_low_bits(dtype: np.dtype) -> bool:
    """Whether numbers are the low bits of sums in words of 32, which wrap around."""
    return KIND[dtype] in "iu" and dtype.itemsize <= WORD.itemsize and dtype != WORD


def _is_worth_another_form(lhs, rhs, dimension_numbers) -> bool:
    """Whether a product of narrow operands is large enough for these to be laid out anew."""
    (lc, _), (lb, _) = dimension_numbers
    terms = math.prod(lhs.shape[d] for d in lc)
    each = math.prod(lhs.shape[d] for d in lb) * terms
    if not each:
        return False
    rows, columns = lhs.size // each, rhs.size // each
    enough = rows >= FEWEST_ROWS and columns >= FEWEST_COLUMNS and terms >= FEWEST_TERMS
    return enough and rows * columns * terms >= FLOOR


def _parts_of_bytes(lhs, rhs, dimension_numbers, wide: np.dtype) -> list[range] | None:
    """The ranges of terms for which a product of bytes is exact in floats of 32 bits, which are multiplied at several
    times the rate of integers; None for other products, and small ones.
    """
    names = [NAMES[x.dtype] for x in (lhs, rhs)]
    if not GREATEST.keys() >= set(names) or KIND[wide] not in "iu" or wide.itemsize < 4:
        return None
    lc, most = dimension_numbers[0][0], EXACT // math.prod(GREATEST[name] for name in names)
    terms = math.prod(lhs.shape[d] for d in lc)
    if terms > (MOST_PARTS * most if len(lc) == 1 else most) or not _is_worth_another_form(lhs, rhs, dimension_numbers):
        return None
    return [range(first, min(first + most, terms)) for first in range(0, terms, most)]


def _by_floats(b, lhs, rhs, dimension_numbers, dtype: np.dtype, parts: list[range]):
    """The sum of products of parts of the terms, each of which is exact as a product of floats."""
    single, (lc, rc) = np.dtype(np.float32), dimension_numbers[0]
    total = None
    for part in parts:
        x, y = lhs, rhs
        if len(parts) > 1:  # of one contracted dimension
            x, y = cut(b, lhs, lc[0], part.start, part.stop), cut(b, rhs, rc[0], part.start, part.stop)
        made = dot_general(b, b.convert(x, single), b.convert(y, single), dimension_numbers, single)
        made = b.convert(b.convert(made, WORD), dtype)  # negative ones wrap around, where `dtype` has no sign
        total = made if total is None else b.map("add", total, made)
    return total


def spread(b, lhs, rhs, numbers: tuple, shape: list | tuple) -> list:
    """Operands of a product that adds nothing up, over all of its `shape`: multiplied they are it. `b` is whoever makes
    values, a `Builder` or an `insertion.Writer`.
    """
    lc, rc, lb, rb = numbers
    sides, free = [], len(lb)
    for x, contracted, batch in ((lhs, lc, lb), (rhs, rc, rb)):
        kept = [d for d in range(x.ndim) if d not in contracted]
        own = [d for d in kept if d not in batch]
        dims = tuple(batch.index(d) if d in batch else free + own.index(d) for d in kept)
        sides.append(b.broadcast_in_dim(b.reshape(x, tuple(x.shape[d] for d in kept)), tuple(shape), dims))
        free += len(own)
    return sides


def summed(b, x, axes: tuple):
    """The sum of what is multiplied along free dimensions of both, as in ``(x[:, :, None] * y[:, None]).sum(0)``, as
    their product; None for other sums, and small ones.
    """
    if x.form != "map" or x.params.op != "mul" or NAMES[x.dtype] not in SUMMED:
        return None
    if any(a.form != "broadcast" or a.args[0].shape != tuple(x.shape[d] for d in a.params.dims) for a in x.args):
        return None
    sides = [a.params.dims for a in x.args]
    shared = set(sides[0]).intersection(sides[1])
    free = [[d for d in dims if d not in shared] for dims in sides]
    if not shared.issuperset(axes) or len(shared) + len(free[0]) + len(free[1]) != x.ndim:
        return None
    rows, columns = (math.prod(x.shape[d] for d in dims) for dims in free)
    if min(rows, columns) < 2 or rows * columns <= FEWEST_SUMMED or x.size < MANY_SUMMED:
        return None
    batch = [d for d in range(x.ndim) if d in shared and d not in axes]
    contracted, batches = ([tuple(dims.index(d) for d in of) for dims in sides] for of in (axes, batch))
    lhs, rhs = (a.args[0] for a in x.args)
    made = dot_general(b, lhs, rhs, (contracted, batches), x.dtype)
    order = [*batch, *free[0], *free[1]]
    return b.transpose(made, sorted(range(len(order)), key=order.__getitem__))


def _inner(b, lhs, rhs, left: tuple, right: tuple, batch: int):
    """The inner product of vectors, as a sum, which the kernel that makes the vectors takes along."""
    products = b.map("mul", b.transpose(lhs, left), b.transpose(rhs, right))
    return b.reduce("sum", products, tuple(range(batch, len(left))))


def read_once(v) -> tuple:
    """The operands of a product each of whose elements is read once: vectors of inner products, and the matrix of a
    product with a vector where its terms lie side by side. Loops may compute these where they are multiplied, in the
    order of those in memory (see `plan.nests.inner_product`).
    """
    if v.form != "dot" or NAMES[v.dtype] not in READ_ONCE or not v.size:
        return ()
    (lc, rc, lb, _), (lhs, rhs) = v.params.numbers, v.args
    if any(x.dtype != v.dtype for x in v.args):
        return ()
    if sum(lhs.shape[d] > 1 for d in lc) != 1:
        in_order = v.ndim == len(lb) and lc == rc == tuple(range(len(lb), lhs.ndim))
        return v.args if in_order and all(_is_one_line(x, len(lb)) for x in v.args) else ()
    if v.ndim == len(lb):
        return v.args
    terms = math.prod(lhs.shape[d] for d in lc)
    each = terms * math.prod(lhs.shape[d] for d in lb)
    if lhs.size == rhs.size or each not in (lhs.size, rhs.size) or terms < LONG:
        return ()
    matrix, contracted = (rhs, rc) if lhs.size == each else (lhs, lc)
    return (matrix,) if has_terms_side_by_side(matrix, contracted) else ()


def _is_one_line(x, batch: int) -> bool:
    """Whether a few elementwise operations, on numbers and on arrays in memory, make something, or each member of its
    batch, so that a loop computes it along several dimensions as along one: its order is that of what is in memory.
    """
    pending, left = [x], MOST_OPERATIONS
    while pending and left:
        x, left = pending.pop(), left - 1
        if x.form == "map" or x.form == "concatenate" and x.params.dimension < batch or _adds_ones(x):
            pending += x.args
        elif FORMS[x.form].view and not (x.form == "broadcast" and x.args[0].size == 1) or x.form in NOT_IN_MEMORY:
            return False
    return bool(left)


def _adds_ones(x) -> bool:
    """Whether a reshape adds dimensions of one element before all others."""
    return x.form == "reshape" and x.shape[x.ndim - x.args[0].ndim :] == x.args[0].shape


def is_read_once(x, v) -> bool:
    """Whether `x` is such an operand of `v`."""
    return any(x is a for a in read_once(v))


def _in_order(b, lhs, rhs, product: Dot, dtype: np.dtype):
    """A product with something that is added up whole, over several dimensions that lie one behind the other in what it
    is multiplied by, in their order: it is the lesser operand that is turned. None where that is so already.
    """
    lc, rc, lb, rb = product.numbers
    if len(lc) < 2:
        return None
    for at, (matrix, vector) in enumerate(((lhs, rhs), (rhs, lhs))):
        (own, batch), (other, beside) = ((lc, lb), (rc, rb)) if at == 0 else ((rc, rb), (lc, lb))
        if vector.ndim > len(other) + len(beside) or matrix.size < FEWEST_READ * vector.size:
            continue
        x, own, batch = _untransposed(matrix, own, batch)
        order = sorted(range(len(own)), key=own.__getitem__)
        own, other = (tuple(dims[k] for k in order) for dims in (own, other))
        perm, first, count = (*beside, *other), own[0], len(own)
        if x is matrix and list(perm) == sorted(perm) or own != tuple(range(first, first + count)):
            continue
        terms = math.prod(x.shape[d] for d in own)
        x = b.reshape(x, (*x.shape[:first], terms, *x.shape[first + count :]))
        batch = tuple(d - (count - 1 if d > first else 0) for d in batch)
        y = b.reshape(b.transpose(vector, perm), (*(vector.shape[d] for d in beside), terms))
        sides = [(x, (first,), batch), (y, (len(beside),), tuple(range(len(beside))))]
        (left, lc, lb), (right, rc, rb) = reversed(sides) if at else sides
        return dot_general(b, left, right, ((lc, rc), (lb, rb)), dtype, None, product.by_parts)
    return None


def _untransposed(x, contracted: tuple, batch: tuple) -> tuple:
    """What a transpose reads, with its dimensions, if that has the free ones in the same order."""
    if x.form != "transpose":
        return x, contracted, batch
    perm = x.params.perm
    free = [perm[d] for d in range(x.ndim) if d not in contracted and d not in batch]
    if free != sorted(free):
        return x, contracted, batch
    return x.args[0], tuple(perm[d] for d in contracted), tuple(perm[d] for d in batch)


def _as_it_lies(b, lhs, rhs, product: Dot, dtype: np.dtype):
    """A product of which one operand is transposed within its free dimensions, with that operand as it lies: then it
    is the result that is transposed, which is small where the other one has few rows. None where that is not so.
    """
    lc, rc, lb, rb = product.numbers
    for x, own, batch, y, other, at in ((rhs, rc, rb, lhs, lc, 1), (lhs, lc, lb, rhs, rc, 0)):
        if x.form != "transpose":
            continue
        free = [d for d in range(x.ndim) if d not in own and d not in batch]
        terms = math.prod(y.shape[d] for d in other)
        rows = y.size // max(terms * math.prod(x.shape[d] for d in batch), 1)
        if rows > terms:
            continue
        perm = x.params.perm
        kept = [perm[d] for d in free]
        if kept == sorted(kept):
            continue
        sides, contracted, batches = [lhs, rhs], [lc, rc], [lb, rb]
        sides[at], contracted[at] = x.args[0], tuple(perm[d] for d in own)
        batches[at] = tuple(perm[d] for d in batch)
        made = dot_general(b, sides[0], sides[1], (contracted, batches), dtype, None, product.by_parts)
        start = made.ndim - len(kept) if at else len(batch)
        order = list(range(made.ndim))
        order[start : start + len(kept)] = [start + sorted(kept).index(p) for p in kept]
        return b.transpose(made, order)
    return None
