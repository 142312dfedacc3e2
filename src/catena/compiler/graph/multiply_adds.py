"""In loops, a product of floats that goes into a sum is rounded together with it: one operation, not two in a row.

Time in loops is that of chains of operations, each of which waits for the one before. Which products are rounded so is
seen in the equations that make a value alone: not in what is fused with what, nor in extents, threads or vectors, nor
in what else reads a product, which may be nobody's any more in a larger program; so values do not hang on these. It is
the first operand of a sum or difference, else the second, that is a product; it may have been spread or reshaped in
between, as ``vmap`` does to what it need not batch. For others that read it, it is rounded by itself. Outside of loops
each operation is, as when it is evaluated eagerly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from catena.compiler.graph import constants
from catena.compiler.graph.checks import numbers_spread as spread
from catena.core.jaxpr import Literal
from catena.core.named import NamedTuple

SUMS = ("add", "sub", "add_any")
VIEWS = ("broadcast_in_dim", "reshape", "squeeze", "transpose")
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))  # narrower ones are rounded after each operation


class Product(NamedTuple):
    """A product that goes into a sum."""

    operand: int  # of the sum
    equation: Any  # that makes it
    views: tuple  # the equations that bring it to the shape of the sum, in order


def find(jaxpr) -> dict[int, Product]:
    """The products that are rounded together with a sum, by the identity of the equation of the sum."""
    if not any(eqn.primitive.name in SUMS for eqn in jaxpr.eqns):
        return {}
    made: dict[Any, Product] = {}  # products, by the variable that holds them
    found = {}
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in SUMS and (position := next((k for k, v in enumerate(eqn.invars) if _of(made, v)), None)) is not None:
            found[id(eqn)] = made[eqn.invars[position]]._replace(operand=position)
        elif _is_view(eqn) and (product := _of(made, eqn.invars[0])):
            made[eqn.outvars[0]] = product._replace(views=(*product.views, eqn))
        elif _is_product(eqn):
            made[eqn.outvars[0]] = Product(0, eqn, ())
    return found


def _of(made: dict, atom) -> Product | None:
    return None if type(atom) is Literal else made.get(atom)


def _is_view(eqn) -> bool:
    """Whether elements are seen as they are: otherwise arranged, or as strong types where they were weak."""
    name = eqn.primitive.name
    weakness = name == "convert_element_type" and eqn.invars[0].aval.dtype == eqn.outvars[0].aval.dtype
    return name in VIEWS or weakness


def _is_product(eqn) -> bool:
    name = eqn.primitive.name
    squared = name == "square" or (name == "integer_pow" and eqn.params["y"] == 2)
    return (name == "mul" or squared) and eqn.outvars[0].aval.dtype in FLOATS


def rule(b, eqn, env: dict, products: dict[int, Product]) -> Callable | None:
    """What lowers the equation of a sum with its product; None where there is nothing to round together.

    That is so where an equation has no product, where that is tested, where a factor is 1, and where it is zero. `b` is
    the builder, `env` holds the values of variables so far, and `products` what `find` found.
    """
    if (product := products.get(id(eqn))) is None:
        return None
    made = env[product.equation.outvars[0]]
    if made.form == "map" and made.params.op == "checked":
        return None
    factors = [b._literal(v) if type(v) is Literal else env[v] for v in product.equation.invars]
    if any((number := constants.scalar(x)) is not None and number == 1 for x in factors):
        return None
    if any(map(constants.is_zero, factors)) and constants.is_zero(made):
        return None
    shape = eqn.outvars[0].aval.shape
    seen = [spread(b, _seen(b, x, product), shape) for x in factors]
    x, y = seen[0], seen[-1]

    def lower(b, *operands: Any, **params: Any):
        other = spread(b, operands[1 - product.operand], shape)
        negative = eqn.primitive.name == "sub"
        if negative and product.operand == 0:
            return b.map("fma", x, y, b.map("neg", other))
        return b.map("fma", b.map("neg", x) if negative else x, y, other)

    return lower


def _seen(b, x, product: Product):
    """A factor as its product is seen: through the views."""
    x = spread(b, x, product.equation.outvars[0].aval.shape)
    for eqn in product.views:
        lower = eqn.primitive.lower or eqn.primitive.rule("lower")
        x = lower(b, x, **eqn.own_params)
    return x
