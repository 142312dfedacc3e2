"""Transposes move towards whoever reads them: elementwise operations and reductions are done in the order of memory,
and products read a transposed operand where it lies.
"""

from __future__ import annotations


def composed(inner: tuple, perm: tuple) -> tuple:
    """The permutation that does `inner` and then `perm`."""
    return tuple(inner[p] for p in perm)


def moves_nothing(shape: tuple, perm: tuple) -> bool:
    """Whether the elements stay in their order: axes of one element alone change their places."""
    moved = [p for p in perm if shape[p] != 1]
    return moved == sorted(moved)


def in_memory(x, dims):
    """The value under the transposes of `x`, and which of its dimensions these are."""
    while x.form == "transpose":
        dims, x = [x.params.perm[d] for d in dims], x.args[0]
    return x, dims


def turnable(x) -> bool:
    """Whether a transpose exchanges rows and columns of a product that adds along one axis of memory, or of its
    conversion: then the product may be turned.
    """
    product = product_under(x)
    if not adds_along_lines(product):
        return False
    lhs, (lc, _, lb, _) = product.args[0], product.params.numbers
    batch, rows = len(lb), lhs.ndim - len(lc) - len(lb)
    exchanged = (*range(batch), *range(batch + rows, product.ndim), *range(batch, batch + rows))
    return x.params.perm == exchanged


def adds_along_lines(product) -> bool:
    """Whether a value is a product that adds along one axis of memory: its sums are the same either way."""
    return product.form == "dot" and all(map(_is_one_axis, product.args, product.params.numbers))


def _is_one_axis(x, dims) -> bool:
    """Whether steps along these dimensions, the last one quickest, are steps of one length in memory."""
    x, dims = in_memory(x, [d for d in dims if x.shape[d] != 1])
    between = (n for d, e in zip(dims, dims[1:]) for n in (e < d, *x.shape[d + 1 : e]))
    return all(n in (False, 1) for n in between)


def product_under(x):
    """What a transpose is of, before it was converted."""
    under = x.args[0]
    return under.args[0] if under.form == "map" and len(under.args) == 1 else under


def common(xs) -> tuple | None:
    """The permutation of the operands that are transposed, if it is one, and the others can be written without it. A
    product that can be turned (see ``plan.turning``) stays transposed.
    """
    found = None
    for x in xs:
        if x.form == "transpose":
            if found not in (None, x.params.perm) or turnable(x):
                return None
            found = x.params.perm
        elif x.form not in ("broadcast", "iota"):
            return None
    return found


def before(b, x, perm: tuple):
    """The operand in the order of dimensions that it has before a transpose by `perm`."""
    if x.form == "transpose":
        return x.args[0]
    shape = [0] * len(perm)
    for d, p in enumerate(perm):
        shape[p] = x.shape[d]
    if x.form == "iota":
        return b.iota(x.dtype, shape, perm[x.params.dimension])
    return b.broadcast_in_dim(x.args[0], shape, [perm[d] for d in x.params.dims])


def reduced(b, kind: str, x, axes: tuple):
    """The reduction of a transposed value as the transpose of a reduction. An extreme of a product that can be turned
    stays (see ``plan.turning``): one more reader of the product itself, and it would not be turned.
    """
    perm = x.params.perm
    kept = [p for d, p in enumerate(perm) if d not in axes]
    order = sorted(kept)
    return b.transpose(b.reduce(kind, x.args[0], [perm[d] for d in axes]), [order.index(p) for p in kept])
