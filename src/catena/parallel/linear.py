"""Which operations keep a sum over the mesh open: applied to its terms, they give terms of the result."""

from __future__ import annotations

import numpy as np

from catena.core import dtypes
from catena.core.jaxpr import Eqn, Jaxpr, Literal
from catena.core.zeros import get_aval, zeros
from catena.lax.comparison import eq, select_n
from catena.lax.named_axes import axis_index
from catena.lax.shape import broadcast_in_dim
from catena.parallel.moves import Form
from catena.parallel.values import Value

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


# ---- sums that a loop carries


def accumulators(body: Jaxpr, fixed: int, carried: int) -> list[int]:
    """Which of the values that a loop carries are only added to: they may be carried as terms of a sum over the mesh,
    which is then taken once, behind the loop.
    """
    uses = [x for eqn in body.eqns for x in eqn.invars] + body.outvars
    makers = {eqn.outvars[0]: eqn for eqn in body.eqns}

    def unconverted(x):
        """What a value is made of by conversions that change nothing, each of which has one use."""
        while type(x) is not Literal and uses.count(x) == 1 and x in makers and is_same(makers[x]):
            x = makers[x].invars[0]
        return x

    found = []
    for k in range(carried):
        after = unconverted(body.outvars[k])
        eqn = makers.get(after) if type(after) is not Literal and uses.count(after) == 1 else None
        if eqn is not None and eqn.primitive.name in SUMS:
            terms = map(unconverted, eqn.invars[:1] if eqn.primitive.name == "sub" else eqn.invars)
            if body.invars[fixed + k] in terms and uses.count(body.invars[fixed + k]) == 1:
                found.append(k)
    return found


def is_same(eqn: Eqn) -> bool:
    """Whether an equation changes at most the weakness of a type."""
    return eqn.primitive.name == "convert_element_type" and eqn.invars[0].aval.dtype == eqn.outvars[0].aval.dtype


def open_sum(eqn: Eqn, values: list[Value], uses) -> None:
    """Where terms of a sum are added to what a loop carries, and it stays open, that is terms of the sum as well."""
    partial = next((v.partial for v in values if v.partial), ())
    for v in values:
        if v.open and partial:
            ((form, x),) = v.forms.items()
            v.forms = {Form(form.split, partial): x}
            if kept_terms(v, form.split) != partial or kept_sums(eqn, values, uses) != partial:
                v.forms = {form: x}


def kept_terms(value: Value, split) -> tuple:
    """The axes over which a result that is to lie so stays terms of a sum."""
    return () if {n for names in split for n in names} & set(value.partial) else value.partial


def as_terms(x, names: tuple):
    """Terms of a sum over axes of the mesh that is ``x``: all of it on the first device, zeros on the others."""
    aval = get_aval(x)
    first = broadcast_in_dim(eq(axis_index(names), np.int32(0)), aval.shape, ())
    return select_n(first, zeros(aval), x)
