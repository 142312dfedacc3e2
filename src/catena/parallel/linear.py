"""Which operations keep a sum over the mesh open: applied to its terms, they give terms of the result."""

from __future__ import annotations

import numpy as np

from catena.core import dtypes
from catena.core.jaxpr import Eqn, Literal

MOVES = "neg copy transpose reshape broadcast_in_dim squeeze rev slice reduce_sum real imag".split()
SUMS = "add sub add_any".split()
SCALES = {"mul": (0, 1), "div": (0,)}


def kept_sums(eqn: Eqn, values: list, uses) -> tuple:
    """The axes of the mesh over which the results stay to be summed, as the operands are; none if these are summed
    first. It is put off where nobody else needs the sum, and nothing larger is to be summed then.
    """
    terms = [v for v in values if v.partial]
    if not terms or any(uses[x] > 1 for x, v in zip(eqn.invars, values, strict=True) if v.partial):
        return ()
    partial = terms[0].partial
    out = eqn.outvars[0].aval
    if out.size * out.dtype.itemsize > max(v.size for v in terms) or not is_linear(eqn, values):
        return ()
    return partial


def is_linear(eqn: Eqn, values: list) -> bool:
    """Whether an operation of terms gives terms."""
    name, terms = eqn.primitive.name, [v.partial for v in values]
    if name in MOVES:
        return True
    if name in SUMS:
        return terms[0] == terms[1]
    if name in SCALES:
        (k,) = [i for i, t in enumerate(terms) if t] if sum(map(bool, terms)) == 1 else (-1,)
        return k in SCALES[name] and is_finite(eqn.invars[1 - k])
    if name == "convert_element_type":
        old, new = values[0].aval.dtype, eqn.outvars[0].aval.dtype
        return dtypes.is_inexact(old) and dtypes.promote_types(old, new) == new
    return False


def is_finite(x) -> bool:
    """Whether a factor is a number that is known, and finite: infinity times a sum is not the sum of its terms."""
    return type(x) is Literal and bool(np.isfinite(np.asarray(x.val, np.float64)))
