"""How many operations a kernel may have: fewer where it folds many rows that are shorter than a vector, of which lanes
then hold many (see `kernels.short_rows`), and none beside a fold where a loop of its own makes it sooner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from catena.compiler.graph.forms import FORMS, PARTS
from catena.compiler.graph.region import Value
from catena.compiler.kernels import short_rows

MAX_KERNEL = 160  # operations
SHORT_ROWS = 256  # from so many on they are taken many at once
FEW_OPS = 8  # that lanes which short rows leave empty may do
UNEVEN = PARTS | {"pad"}  # forms whose elements do not lie evenly in what they are read from
FEW_COLUMNS, FEWEST = 8, 1 << 10  # that lanes lie along beside folds; and elements for which it matters
FAR = 1 << 20  # bytes that no near cache holds
GATHERED = 4  # bytes of elements that an instruction gathers, at least


def is_too_long(ops: int, space: tuple, axes: tuple) -> bool:
    """Whether a kernel over these elements has too many operations: fewer may be where it folds many rows that are
    shorter than a vector, of which lanes then hold many. How many there are is asked where it decides: it is a length.
    """
    if not _folds_short_rows(space, axes):
        return ops > MAX_KERNEL
    return ops > 3 * short_rows.LONGEST // (4 * space[-1]) and (ops > MAX_KERNEL or _are_many(space))  # reads count too


def _folds_short_rows(space: tuple, axes: tuple) -> bool:
    return len(space) - 1 in axes and 1 < space[-1] <= short_rows.MOST


def _are_many(space: tuple) -> bool:
    return math.prod(space[:-1]) >= SHORT_ROWS


def has_own_loop(space: tuple, axes: tuple, roots: list[Value], ops: int, stored: Collection[int]) -> bool:
    """Whether a loop of its own makes what is folded sooner: short rows of what does not lie evenly in memory, if
    much is done, since its lanes are full; and places that rows share, since it does several rows at once.
    """
    if any(reads(r, stored, _shares_places) for r in roots):
        return True
    uneven = ops > FEW_OPS and _folds_short_rows(space, axes) and any(reads(r, stored, is_uneven) for r in roots)
    return uneven and _are_many(space)


def is_uneven(v: Value) -> bool:
    return v.form in UNEVEN


def is_better_apart(space: tuple, axes: tuple, values: list[Value], stored: Collection[int]) -> bool:
    """Whether elements that are kept are made sooner in a loop of their own, beside folds that do not need the same.
    Functions fill lanes there: beside folds down few columns lanes lie along these alone. What is turned is so square
    by square, which loops that fold do not do; what no near cache holds is read once for both.
    """
    if _only_kept(values, stored, _is_function):
        if math.prod(space) >= FEWEST and 1 < math.prod(space[max(axes) + 1 :]) <= FEW_COLUMNS:
            return True
    turned = _only_kept(values, stored, is_turned)
    return turned and math.prod(space) >= FEWEST and all(v.nbytes < FAR for v in values)


def _only_kept(values: list[Value], stored: Collection[int], found: Callable[[Value], bool]) -> bool:
    """Whether what is kept reads such a value, and no fold does."""
    of_folds = any(reads(v, stored, found) for v in values if FORMS[v.form].fold)
    return not of_folds and any(reads(v, stored, found) for v in values)


def _is_function(v: Value) -> bool:
    return v.form == "map" and short_rows.is_looped(v.params.op)


def reads(v: Value, stored, found: Callable[[Value], bool]) -> bool:
    """Whether a value that is not stored is made of others of which that is so, without memory between them."""
    ask, seen = [v], {v.number}
    while ask:
        x = ask.pop()
        if found(x):
            return True
        more = [a for a in x.args if a.number not in stored and a.number not in seen]
        seen.update(a.number for a in more)
        ask.extend(more)
    return False


def is_gather(v: Value) -> bool:
    return v.form == "gather"


def is_turned(v: Value) -> bool:
    """Whether it is a transpose whose rows do not lie side by side: lanes are turned in registers, square by square,
    each time that they are read.
    """
    long = [p for p in v.params.perm if v.args[0].shape[p] > 1] if v.form == "transpose" else []
    return bool(long) and long[-1] != max(long)


def _shares_places(v: Value) -> bool:
    """Whether small elements, which no instruction gathers, are read at places that many rows share: `x[:, i]`."""
    if not is_gather(v) or v.dtype.itemsize >= GATHERED or not v.ndim or v.ndim - 1 in v.params.offset_dims:
        return False
    return math.prod(v.shape[d] for d in v.params.offset_dims) >= SHORT_ROWS
