"""Whether the jaxprs in an equation take what it passes them, and return what it makes of their results.

Rules for types take this for granted, since only this package makes such equations; a program that was read from a file
is checked.
"""

from __future__ import annotations

import numpy as np

from catena.core.aval import ShapedArray, same_type
from catena.core.jaxpr import Jaxpr, subjaxprs
from catena.core.stack import is_stack

SCATTERS = tuple(f"scatter-{kind}" for kind in "add sub mul min max apply".split())
BOOL, INT = ShapedArray((), np.bool_), ShapedArray((), np.int32)


def _cut(avals, *lengths):
    """Consecutive parts of these lengths, and the rest."""
    parts, start = [], 0
    for n in lengths:
        if not isinstance(n, int) or n < 0 or start + n > len(avals):
            raise ValueError(f"there are not {n} operands at position {start} of {len(avals)}")
        parts.append(list(avals[start : start + n]))
        start += n
    return [*parts, list(avals[start:])]


def _scan(avals, *, jaxpr, num_consts, num_carry, length, **params):
    consts, carry, xs = _cut(avals, num_consts, num_carry)
    if length < 0 or any(not x.shape or x.shape[0] != length for x in xs):
        raise ValueError(f"a scan of length {length} passes {xs}")
    return [(jaxpr, [*consts, *carry, *[x.update(shape=x.shape[1:]) for x in xs]], carry)]


def _stack_scan(avals, *, jaxpr, num_consts, num_carry, **params):
    number, consts, carry, stacks = _cut(avals, 1, num_consts, num_carry)
    if not same_type(number[0], INT) or not all(map(is_stack, stacks)):
        raise ValueError(f"a loop over stacks passes {avals}")
    return [(jaxpr, [*consts, *carry, *[s.dtype.item for s in stacks]], carry)]


def _while(avals, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    of_cond, of_body, carry = _cut(avals, cond_nconsts, body_nconsts)
    return [(cond_jaxpr, [*of_cond, *carry], [BOOL]), (body_jaxpr, [*of_body, *carry], carry)]


def _cond(avals, *, branches):
    index, *operands = avals
    if index not in (BOOL, INT) or not branches:
        raise ValueError(f"a cond of {len(branches)} branches chooses by {index}")
    return [(branch, operands, branches[0].out_avals) for branch in branches]


def _reduction(avals, *, jaxpr, **params):
    scalars = [ShapedArray((), a.dtype) for a in avals]
    return [(jaxpr, scalars, scalars[: len(scalars) // 2])]


def _scatter(avals, *, update_jaxpr, update_consts, **params):
    if update_consts:
        raise ValueError(f"a scatter passes constants to its update: {update_consts}")
    scalar = ShapedArray((), avals[0].dtype)
    return [] if update_jaxpr is None else [(update_jaxpr, [scalar, scalar], [scalar])]


def _call(avals, *, jaxpr, **params):
    return [(jaxpr, avals, [])]


# By the primitive: from the types of the operands and the parameters to what each jaxpr takes, and returns first.
CALLEES = {
    "jit": _call,
    "remat2": _call,
    "scan": _scan,
    "stack_scan": _stack_scan,
    "while": _while,
    "while_save": _while,
    "cond": _cond,
    "reduce": _reduction,
    "reduce_window": _reduction,
    **dict.fromkeys(SCATTERS, _scatter),
}
EXACT = {"while", "cond", "reduce", "reduce_window", *SCATTERS}  # there are no other results


def check_callees(eqn) -> None:
    """Raise ValueError where a jaxpr in an equation does not fit it."""
    name = eqn.primitive.name
    if not any(True for _ in subjaxprs(eqn.own_params)):
        return
    if name not in CALLEES:
        raise ValueError(f"the programs in an equation {name!r} cannot be checked")
    for callee, taken, returned in CALLEES[name]([v.aval for v in eqn.invars], **eqn.own_params):
        if isinstance(callee, Jaxpr) or not _agree(callee.in_avals, taken):
            raise ValueError(f"an equation {name!r} passes {taken} to a program that takes {callee.in_avals}")
        results = callee.out_avals
        if len(results) < len(returned) or name in EXACT and len(results) != len(returned):
            raise ValueError(f"a program in an equation {name!r} returns {results}, and not {returned}")
        if not _agree(results[: len(returned)], returned):
            raise ValueError(f"a program in an equation {name!r} returns {results}, and not {returned}")


def _agree(found, expected) -> bool:
    return len(found) == len(expected) and all(map(same_type, found, expected))
