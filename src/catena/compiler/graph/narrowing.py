"""Places that 64 bits hold, as numbers of 32: vectors hold twice as many of these, and processors choose lanes by them.

With ``jax_enable_x64`` indices that are counted, added up or wrapped around have 64 bits. Where bounds say that a place
needs no more than 32, it has these, and so has what it is computed from, as far back as bounds say so. Updates
go one after the other: for them nothing is gained, but where their places are quotients (every ten rows to one), which
vectors have of 32 bits by multiplications.
"""

from __future__ import annotations

import numpy as np

from catena.compiler.graph.constants import COMPARISONS
from catena.compiler.graph.forms import COSTLY, Constant, Map
from catena.compiler.graph.insertion import insert
from catena.compiler.graph.intervals import Interval, interval
from catena.compiler.graph.region import Region, Value

NARROW = np.dtype(np.int32)
LIMITS = Interval(np.iinfo(NARROW).min, np.iinfo(NARROW).max)
SAME = frozenset("add sub mul neg abs sign max min clamp rem div floor_div select".split())  # of what fits, as it is
DIVIDED = ("div", "rem", "floor_div")
OF_TRUTHS = frozenset("and or not xor eq ne".split())
VIEWS = frozenset("broadcast reshape transpose slice reverse".split())


def narrow(region: Region) -> Region:
    """The region, in place, and the regions in it: places of gathers have 32 bits where these suffice, and of scatters
    those that are divided.
    """
    if region.sites:
        return region  # what is tested is looked at as it is
    for each in region.walk():
        wide = [v for v in each.values if v.form in ("gather", "scatter") and _is_wide(v.args[1])]
        wide = [v for v in wide if v.form == "gather" or _is_divided(v.args[1])]
        if wide:
            _Narrowing(each).apply(wide)
    return region


def _is_wide(v: Value) -> bool:
    return v.dtype.kind in "iu" and v.dtype.itemsize > NARROW.itemsize and interval(v).within(LIMITS)


def _is_divided(v: Value) -> bool:
    """Whether integers are divided on the way to places."""
    ask, seen = [v], set()
    while ask:
        x = ask.pop()
        if x.number in seen or not (x.form in VIEWS or x.form == "map" and x.params.op in SAME):
            continue
        if x.form == "map" and x.params.op in DIVIDED:
            return True
        seen.add(x.number)
        ask += x.args
    return False


class _Narrowing:
    def __init__(self, region: Region):
        self.region = region
        self.users = {n: len(found) for n, found in region.users().items()}
        self.narrowed: dict[int, Value] = {}
        self.made: dict[int, list[Value]] = {}  # what goes before a value

    def apply(self, wide: list[Value]) -> None:
        for v in wide:
            if v.number in self.users:
                v.args = (v.args[0], self._of(v.args[1]), *v.args[2:])
        insert(self.region, self.made)

    def _of(self, v: Value) -> Value:
        """The numbers of a value that 32 bits hold, as such."""
        if v.dtype == NARROW:
            return v
        if v.number not in self.narrowed:
            self.narrowed[v.number] = self._computed(v)
        return self.narrowed[v.number]

    def _computed(self, v: Value) -> Value:
        op = v.params.op if v.form == "map" else ""
        if v.form == "iota":
            return self._new(v, v.form, (), v.params)
        if v.form == "constant" and v.size == 1:
            return self._new(v, v.form, (), Constant(v.params.array.astype(NARROW)))
        if op == "convert" and v.args[0].dtype.kind in "iub":
            return self._new(v, "map", v.args, v.params) if v.args[0].dtype != NARROW else v.args[0]
        if v.form == "gather" and _fits(v.args[0]):
            x, places, *fill = v.args
            return self._new(v, v.form, (self._of(x), places, *map(self._of, fill)), v.params)
        numbers = v.args[1:] if op == "select" else v.args
        again = op in COSTLY and self.users[v.number] > 1
        if (v.form in VIEWS or op in SAME and not again) and all(map(_fits, numbers)):
            asked = [self._asked(a) for a in v.args[: -len(numbers)]]
            return self._new(v, v.form, (*asked, *map(self._of, numbers)), v.params)
        return self._new(v, "map", (v,), Map("convert"))

    def _asked(self, v: Value) -> Value:
        """A condition, with comparisons of what 32 bits hold as those of numbers of 32."""
        if v.number not in self.narrowed:
            self.narrowed[v.number] = self._compared(v)
        return self.narrowed[v.number]

    def _compared(self, v: Value) -> Value:
        if v.form != "map":
            return v
        if v.params.op in COMPARISONS and all(map(_fits, v.args)):
            return self._new(v, v.form, tuple(map(self._of, v.args)), v.params)
        if v.params.op in OF_TRUTHS and all(a.dtype.kind == "b" for a in v.args):
            args = tuple(map(self._asked, v.args))
            return v if args == v.args else self._new(v, v.form, args, v.params)
        return v

    def _new(self, v: Value, form: str, args: tuple, params) -> Value:
        """A value like `v`, which stands beside it: where `v` is its operand, behind."""
        new = Value(form, v.shape, v.dtype if v.dtype.kind == "b" else NARROW, args, params, -1, v.source)
        new.bounds = v.bounds
        self.made.setdefault(v.number + (args == (v,)), []).append(new)
        return new


def _fits(v: Value) -> bool:
    return v.dtype.kind in "iu" and interval(v).within(LIMITS)
