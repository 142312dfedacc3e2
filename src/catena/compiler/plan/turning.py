"""Products that are only read transposed are computed so: with their operands exchanged, they lie as they are read.

Derivatives make them: the gradient of ``x @ w`` by ``w`` is the transpose of ``cotangent.T @ x``. Written as it stands
and read across by what follows, an update of parameters took as long as the product itself. Of those that are
transposed in another way, operands are exchanged, too, where the left one would be read across. Products with a vector
read a matrix of narrow floats as it is: each element is read once.
"""

from __future__ import annotations

from catena.compiler.graph.forms import Map, Transpose
from catena.compiler.graph.insertion import Writer, insert
from catena.compiler.graph.products import fills_lanes_turned, read_once, spread
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.transposes import adds_along_lines, in_memory, product_under, turnable
from catena.compiler.machine import Machine
from catena.compiler.plan import product_kinds
from catena.core.dtypes import KIND

FEW = 128  # columns, beside which a left operand that is read across is not copied
APART = 1 << 11  # bytes from one term to the next
LARGE = 1 << 20  # bytes of a member


def turn(region: Region, machine: Machine) -> Region:
    """The region, its products turned, in place, where every reader wants them so; likewise the regions in it."""
    for each in region.walk():
        if any(map(_has_one_term, each.values)):
            insert(each, {v.number: _multiplied(v) for v in each.live() if _has_one_term(v)})
        if any(_reads_once(v, machine) for v in each.values):
            insert(each, {v.number: _unconverted(v) for v in each.live() if _reads_once(v, machine)})
        turns = [v for v in each.values if v.form == "transpose"]
        found = [v for v in turns if turnable(v) or _is_read_across(v.args[0], machine)]
        if found:
            users = each.users()
            kept = {v.number for v in (*each.outputs, *each.effects)}
            for v in found:
                if v.number in users:
                    (_turn if turnable(v) else _exchange)(v, users, kept, machine)
    return region


def _has_one_term(v: Value) -> bool:
    """Whether a product adds nothing up. In a loop it is written as a product all the same, which might be done before
    or after the loop; what is left of these is elementwise, as it is elsewhere (see `graph.products`).
    """
    if v.form != "dot" or not v.size or KIND[v.dtype] not in "fiu" or product_kinds.is_narrow(v):
        return False
    return all(v.args[0].shape[d] == 1 for d in v.params.numbers[0])


def _multiplied(v: Value) -> list[Value]:
    """Makes a product without a sum, in place, an elementwise one; returns the values that it needs before it."""
    w = Writer(v.source)
    lhs, rhs = v.args
    v.args = tuple(spread(w, lhs, rhs, v.params.numbers, v.shape))
    v.form, v.params = "map", Map("mul")
    return w.made


def _reads_once(v: Value, machine: Machine) -> bool:
    """Whether a product with a vector, computed by a loop nest, is of widened floats, which nobody need write then. Of
    two vectors, the loop converts both, as what it multiplies is of one type still.
    """
    if v.form != "dot" or not v.size or KIND[v.dtype] != "f" or product_kinds.has_tiles(v, machine):
        return False
    if len(read_once(v)) > 1:
        return False
    vector, matrix = _with_vector(v)
    under = in_memory(matrix, ())[0]
    return vector is not None and _is_widened(under)


def _with_vector(v: Value) -> tuple[Value | None, Value]:
    """The vector and the matrix of a product that has such."""
    (lhs, rhs), (lc, rc, lb, rb) = v.args, v.params.numbers
    if lhs.ndim == len(lc) + len(lb) and rhs.ndim > len(rc) + len(rb):
        return lhs, rhs
    return (rhs if rhs.ndim == len(rc) + len(rb) else None), lhs


def _is_widened(x: Value) -> bool:
    if x.form != "map" or x.params.op != "convert":
        return False
    (narrow,) = x.args
    return KIND[narrow.dtype] == "f" and 2 <= narrow.dtype.itemsize < x.dtype.itemsize


def _unconverted(v: Value) -> list[Value]:
    """Makes a product read a matrix as before it was widened, behind the vector; returns the transposes it needs."""
    vector, matrix = _with_vector(v)
    made: list[Value] = []
    turns = []
    x = matrix
    while x.form == "transpose":
        turns.append(x)
        x = x.args[0]
    (x,) = x.args
    for each in reversed(turns):
        x = Value("transpose", each.shape, x.dtype, (x,), each.params, -1, v.source)
        made.append(x)
    if matrix is v.args[0]:
        v.params = v.params.exchanged()
    v.args = (vector, x)
    return made


def _turn(v: Value, users: dict[int, list[Value]], kept: set[int], machine: Machine) -> None:
    """Makes ``v``, the transpose of a product or of its conversion, the product or conversion itself."""
    product = product_under(v)
    if not (turnable(v) and has_tiles_either_way(product, machine)):
        return
    (lhs, rhs), exchanged = product.args, product.params.exchanged()
    chain = {v.args[0], product}
    if any(x.number in kept or len(users[x.number]) > 1 for x in chain):
        return
    if fills_lanes_turned(rhs, lhs, exchanged.numbers):
        return  # which is why it was turned
    made = v if v.args[0] is product else v.args[0]
    if made is not v:  # the conversion takes the place of the transpose, and the product that of the conversion
        v.form, v.params, v.args = "map", made.params, (made,)
        made.shape, made.dtype, made.source = v.shape, product.dtype, product.source
    made.form, made.args, made.params = "dot", (rhs, lhs), exchanged


def _is_read_across(product: Value, machine: Machine) -> bool:
    """Whether a left operand of many rows beside few columns has each term in another page, or half of one, as the
    scores of attention have in the gradient by keys. It is too large to be copied for so few columns; as the right
    operand it is read along its lines.
    """
    if not adds_along_lines(product) or not has_tiles_either_way(product, machine):
        return False
    lhs, (lc, _, _, _) = product.args[0], product.params.numbers
    _, rows, columns, terms = product_kinds.sizes(product)
    apart = product_kinds.apart(lhs, lc) * lhs.dtype.itemsize
    return columns < FEW and rows >= 2 * columns and apart >= APART and rows * terms * lhs.dtype.itemsize >= LARGE


def _exchange(v: Value, users: dict[int, list[Value]], kept: set[int], machine: Machine) -> None:
    """Exchanges the operands of a product of which ``v`` is some transpose anyhow, which is then another one."""
    (product,) = v.args
    if product.number in kept or len(users[product.number]) > 1:
        return
    (lhs, rhs), (lc, rc, lb, rb) = product.args, product.params.numbers
    batch, left, right = len(lb), lhs.ndim - len(lc) - len(lb), rhs.ndim - len(rc) - len(rb)
    whole = [*range(batch), *range(batch + right, batch + right + left), *range(batch, batch + right)]
    exchanged = (*range(batch), *range(batch + left, product.ndim), *range(batch, batch + left))
    product.shape = tuple(product.shape[d] for d in exchanged)
    product.args, product.params = (rhs, lhs), product.params.exchanged()
    v.params = Transpose(tuple(whole[d] for d in v.params.perm))


def has_tiles_either_way(product: Value, machine: Machine) -> bool:
    """Whether the sums are the same, term after term."""
    return product_kinds.has_tiles(product, machine)
