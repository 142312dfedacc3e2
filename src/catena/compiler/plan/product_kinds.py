"""How a product is made: by tiles, as a loop nest over terms or columns, or by BLAS. Asked of its value alone."""

from __future__ import annotations

import math

from catena.compiler.graph.convolution import terms_side_by_side
from catena.compiler.graph.forms import Convolve
from catena.compiler.graph.keys import remembered
from catena.compiler.graph.products import FLOOR, LONG, SUMS, has_terms_side_by_side
from catena.compiler.graph.region import Value
from catena.compiler.graph.transposes import in_memory
from catena.compiler.graph.types import NAMES, TYPES
from catena.compiler.kernels.loops import COPIES
from catena.compiler.machine import LONG_VECTOR, Machine
from catena.compiler.plan.strided import row_major
from catena.core.dtypes import KIND

FEW = 3  # rows or columns of a product whose lanes are terms, if these lie side by side in the other operand
WRITTEN_OUT = 512  # multiplications from which each of these is a sum of its own
ROWS_READING = 2  # for each of which the columns of a right operand would be gathered
FEWEST_ROWS, FEWEST_TERMS = 16, 16  # where lanes are terms, from which the right operand is copied to have them so
LEAST_IN_TILES = 512  # multiplications
FEWEST_TERMS_IN_TILES = 5  # of fewer, writing the result takes the time
RESULT_FROM_AFAR = 3  # second caches that it fills
FEWEST_ROWS_TURNING = 128  # for which a loop nest has such a right operand turned, which tiles read as it lies
TERMS_FOR_A_ROW = 2  # from more on so few rows read a right operand that packing it is not worth it: lanes are terms
LITTLE_MORE = 1.25  # halves of a vector that columns fill: ten classes are five eighths of 16 floats
LONG_BESIDE_MORE = 128  # terms of their sums
FEWEST_BESIDE_VECTOR = 64  # rows or columns where one operand is a vector, and the other is read once


def reads_columns_apart(v: Value, machine: Machine, in_loop: bool) -> bool:
    """Whether some rows would each read the columns of a small right operand one by one, since its terms lie side by
    side. These are so few that they are added up one by one, wherever they lie. In a loop it pays beside many rows.
    """
    if KIND[v.dtype] not in "fiu" or v.size == 0:
        return False
    rhs, rc = v.args[1], v.params.numbers[1]
    _, m, n, terms = sizes(v)
    if terms < 2 or m < ROWS_READING or n < 2 or not has_terms_side_by_side(rhs, rc):
        return False
    if is_written_by_rows(v, machine):
        return True
    return not in_loop and terms <= machine.vector_bytes // v.dtype.itemsize


def few(v: Value, machine: Machine) -> int | None:
    """Which operand of a product has so few rows or columns that lanes are better filled with terms, which lie side by
    side in the other one; None where neither has.
    """
    if v.form != "dot" or v.size == 0 or KIND[v.dtype] not in "fiu" or is_narrow(v):
        return None
    _, m, n, terms = sizes(v)
    lanes = machine.vector_bytes // v.dtype.itemsize
    most = max(FEW, lanes // 2 - 1) if terms >= lanes else FEW  # less than half a vector
    if m * n * terms < WRITTEN_OUT:
        return None
    found = [
        (own, side)
        for side, own, other in ((1, n, m), (0, m, n))
        if (1 < own <= most and not _is_far(v, side, machine) or is_half(v, side, machine))
        and other > 1
        and has_terms_side_by_side(v.args[1 - side], v.params.numbers[1 - side])
    ]
    return min(found, key=lambda each: each[0])[1] if found else None  # of two, which has fewer: else it is not asked


def _is_far(v: Value, side: int, machine: Machine) -> bool:
    """Whether the terms of a right operand's columns lie apart, and no near cache holds them: each few rows would bring
    a copy of them anew, where tiles take a panel of terms for all rows. Rows do not count: bits hang on it.
    """
    _, _, n, terms = sizes(v)
    apart = side == 1 and n > FEW and not has_terms_side_by_side(v.args[1], v.params.numbers[1])
    return apart and n * terms * v.dtype.itemsize > machine.memory.second_cache


def is_half(v: Value, side: int, machine: Machine) -> bool:
    """Whether the columns of a right operand fill half a vector, or little more where sums are long, and a near cache
    holds their terms. As many rows of a left one find a matrix in panels in loops, where it is packed once.
    """
    _, _, n, terms = sizes(v)
    size = v.dtype.itemsize
    halves = 2 * n * size / machine.vector_bytes
    filled = halves == 1 and terms >= LONG or 1 < halves <= LITTLE_MORE and terms >= LONG_BESIDE_MORE
    return side == 1 and n > FEW and filled and n * terms * size <= machine.memory.second_cache


def accumulators(v: Value, machine: Machine) -> int:
    """The accumulators of a sum of a product as a loop nest: one where the sums of several columns, and of the rows
    that are done at once beside these, are so many that none waits for itself.
    """
    side = few(v, machine)
    _, m, n, terms = sizes(v)
    own = 0 if side is None else (m, n)[side]
    return 1 if own > FEW and terms >= LONG else COPIES


def free_dimensions(v: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions of a product that are those of its left operand alone, and of the right one."""
    lc, _, lb, _ = v.params.numbers
    rows = v.args[0].ndim - len(lc)
    return tuple(range(len(lb), rows)), tuple(range(rows, v.ndim))


def reads_across(v: Value, side: int, machine: Machine) -> bool:
    """Whether many rows, whose terms lie side by side, meet a few of this operand, whose terms do not."""
    _, m, n, terms = sizes(v)
    if (n, m)[side] < FEWEST_ROWS and not is_half(v, side, machine) or terms < FEWEST_TERMS:
        return False
    return not has_terms_side_by_side(v.args[side], v.params.numbers[side])


def is_large(v: Value, least: int = FLOOR) -> bool:
    lhs, rhs = v.args
    same = lhs.dtype == rhs.dtype == v.dtype
    _, m, n, k = sizes(v)
    return same and m * n * k >= least


def has_tiles(v: Value, machine: Machine) -> bool:
    """Whether a value is a contraction by tiles."""
    if v.form == "convolve":
        return v.size > 0 and not has_few_channels(v, machine)
    if is_narrow(v):
        return True
    if v.form != "dot" or v.size == 0 or KIND[v.dtype] not in "fiu" or TYPES[NAMES[v.dtype]].narrow:
        return False
    _, m, n, terms = sizes(v)
    if m > 1 and n > 1:
        if not is_large(v, LEAST_IN_TILES) or few(v, machine) is not None or is_written_by_rows(v, machine):
            return False
        return is_large(v) or terms <= TERMS_FOR_A_ROW * m or not _have_terms_side_by_side(v)  # asked where it decides
    _, matrix, numbers = vector_first(v)
    return is_large(v) and max(m, n) >= FEWEST_BESIDE_VECTOR and not has_terms_side_by_side(matrix, numbers[1])


def is_written_by_rows(v: Value, machine: Machine) -> bool:
    """Whether sums of a product of matrices are so short that it is a loop nest, which writes row after row, where
    tiles go down the columns: the result is not in the nearest cache, and the right operand is, or the result is in
    no near one. The bits are those of tiles. Where vectors are as long as lines, which tiles write whole then, rows pay
    only where the result comes from memory again.
    """
    _, m, n, terms = sizes(v)
    memory = machine.memory
    if terms >= FEWEST_TERMS_IN_TILES or min(m, n) < 2 or KIND[v.dtype] not in "fiu" or is_narrow(v):
        return False
    if m < FEWEST_ROWS_TURNING and has_terms_side_by_side(v.args[1], v.params.numbers[1]):
        return False
    if machine.vector_bytes >= LONG_VECTOR:
        return v.nbytes > RESULT_FROM_AFAR * memory.second_cache
    is_near = n * terms * v.dtype.itemsize <= memory.first_cache // 2 and v.nbytes >= memory.first_cache
    return is_near or v.nbytes > memory.second_cache


def _have_terms_side_by_side(v: Value) -> bool:
    return all(map(has_terms_side_by_side, v.args, v.params.numbers))


def is_by_blas(v: Value) -> bool:
    """Whether a complex product is BLAS's: one of matrices, or of a vector with a matrix whose terms lie apart. Others,
    inner products among them, are loops whose lanes are terms, and in which operands may be computed (conjugates).
    """
    if KIND[v.dtype] != "c" or not v.size or not is_large(v):
        return False
    _, m, n, _ = sizes(v)
    _, matrix, numbers = vector_first(v)
    return max(m, n) > 1 and (min(m, n) > 1 or not has_terms_side_by_side(matrix, numbers[1]))


def is_narrow(v: Value) -> bool:
    """Whether a value is a product of narrow numbers as they are (see `plan.amx`)."""
    return v.form == "dot" and NAMES[v.dtype] in SUMS.get(NAMES[v.args[0].dtype], ())


def vector_first(v: Value) -> tuple[Value, Value, tuple]:
    """The operands and the numbers of their dimensions; where the right one is a vector, it is the left one instead:
    the result is the same, and the matrix is read in the order of its columns.
    """
    lhs, rhs = v.args
    lc, rc, lb, rb = v.params.numbers
    return (rhs, lhs, (rc, lc, rb, lb)) if is_vector_second(v) else (lhs, rhs, v.params.numbers)


def is_vector_second(v: Value) -> bool:
    """Whether the right operand of a product is a vector, beside a matrix."""
    _, m, n, _ = sizes(v)
    return n == 1 < m


def apart(x: Value, terms) -> int:
    """The elements of memory from one of the terms to the next, the least of them; 0 where there are none."""
    x, dims = in_memory(x, terms)
    steps = row_major(x.shape)
    return min((steps[d] for d in dims), default=0)


def row_shape(v: Value) -> tuple:
    """The leading dimensions of a contraction by tiles that are not its columns."""
    if v.form == "convolve":
        return v.shape[:-1]
    lhs, (lc, _, lb, _) = v.args[0], v.params.numbers
    return v.shape[: len(lb) if vector_first(v)[0] is not lhs else lhs.ndim - len(lc)]


def has_few_channels(v: Value, machine: Machine) -> bool:
    """Whether a convolution has so few output channels that lanes are better filled with terms, as in a product with
    few columns: the input channels, which are the last dimension of the image, with the taps beside them. So few terms
    as lanes are added up one by one: they fill lanes only where the places follow each other as rows of a matrix do.
    """
    n: Convolve = v.params
    image, w = v.args
    lanes = machine.vector_bytes // v.dtype.itemsize
    if n.by_places or not n.strides or n.feature_groups > 1 or n.batch_groups > 1 or n.lhs_spec[1] != image.ndim - 1:
        return False
    (o, inner, *_), terms = n.rhs_spec, terms_side_by_side(w.shape, n.rhs_spec, n.dilation)
    if terms == w.size // w.shape[o] == lanes:
        return 1 < w.shape[o] <= lanes // 4 and w.shape[inner] == lanes
    return 1 < w.shape[o] <= max(FEW, lanes // 2) and terms >= lanes


def sizes(v: Value) -> tuple[int, int, int, int]:
    """Batch, rows, columns and contracted length."""
    lhs, rhs = v.args
    return _sizes(lhs.shape, rhs.shape, v.params.numbers)


@remembered(1024)
def _sizes(left: tuple, right: tuple, numbers: tuple) -> tuple[int, int, int, int]:
    lc, _, lb, _ = numbers
    batch = math.prod(left[d] for d in lb)
    k = math.prod(left[d] for d in lc)
    elements = math.prod(left), math.prod(right)
    m, n = (size // max(batch * k, 1) for size in elements)
    return batch, m, n, k
