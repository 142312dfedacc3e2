"""Products that are only read transposed are computed so: with their operands exchanged, they lie as they are read.

Derivatives make them: the gradient of ``x @ w`` by ``w`` is the transpose of ``cotangent.T @ x``. Written as it stands
and read across by what follows, an update of parameters took as long as the product itself.
"""

from __future__ import annotations

from catena.compiler.graph.forms import Dot
from catena.compiler.graph.graph import Region, Value
from catena.compiler.graph.transposes import product_under, turnable
from catena.compiler.plan import products
from catena.compiler.plan.fuse import control_regions


def turn(region: Region) -> Region:
    """The region, its products turned, in place, where every reader wants them so; likewise the regions in it."""
    pending = [region]
    while pending:
        each = pending.pop()
        pending += [inner for v in each.values for inner in control_regions(v)]
        found = [v for v in each.values if v.form == "transpose" and turnable(v)]
        if found:
            users = each.users()
            kept = {v.number for v in (*each.outputs, *each.effects)}
            for v in found:
                if v.number in users:
                    _turn(v, users, kept)
    return region


def _turn(v: Value, users: dict[int, list[Value]], kept: set[int]) -> None:
    """Makes ``v``, the transpose of a product or of its conversion, the product or conversion itself."""
    product = product_under(v)
    if not (turnable(v) and has_tiles_either_way(product)):
        return
    chain = {v.args[0], product}
    if any(x.number in kept or len(users[x.number]) > 1 for x in chain):
        return
    (lhs, rhs), (lc, rc, lb, rb) = product.args, product.params.numbers
    made = v if v.args[0] is product else v.args[0]
    if made is not v:  # the conversion takes the place of the transpose, and the product that of the conversion
        v.form, v.params, v.args = "map", made.params, (made,)
        made.shape, made.dtype, made.source = v.shape, product.dtype, product.source
    made.form, made.args, made.params = "dot", (rhs, lhs), Dot((rc, lc, rb, lb))


def has_tiles_either_way(product: Value) -> bool:
    """Whether the sums are the same, term after term."""
    return products.has_tiles(product) and products.sizes(product)[1] >= products.FEWEST_COLUMNS
