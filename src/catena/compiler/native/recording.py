"""Jaxprs whose numbers record what is decided by them (see `graph.symbols`)."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator

from catena.compiler.graph.later_arrays import LaterArray
from catena.compiler.graph.symbols import SMALL, Computed, array_of, computed, plain
from catena.compiler.native.fingerprint import NOT_RUN
from catena.compiler.native.lengths import Content, content_of, is_number, read, scalar_of
from catena.core.aval import ShapedArray
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from catena.core.named import NamedTuple


def replaced(closed: ClosedJaxpr, numbers: list) -> ClosedJaxpr:
    """A closed jaxpr with other numbers in place of those that `lengths.read` lists, in its order."""
    return _Replacing(numbers).jaxpr(closed)


def traced(make: Callable[..., ClosedJaxpr], given: tuple) -> ClosedJaxpr:
    """The jaxpr that `make` traces for shapes that record: its extents record, too. For others it is traced again, and
    is to be of the same text, with the same small numbers and literals, but for those that are extents.
    """
    shapes = plain(given)
    closed, numbers = make(*shapes), _numbers_of_traced(make, given)
    int(numbers[0])  # which writes it down
    found = (read(closed) or ("", []))[1]
    return replaced(closed, [_other(x, numbers[k], shapes) for k, x in enumerate(found, 1)])


def _other(x, number, shapes: tuple):
    """What stands for a number of a traced jaxpr."""
    if _extent(x, shapes) is None:
        return x
    return number if type(x) is int else array_of(number, x[1])


@computed
def _numbers_of_traced(make: Callable[..., ClosedJaxpr], given: tuple) -> tuple:
    """What tells a traced jaxpr but for its extents, and these, where they stand in the list of its numbers."""
    told = _read(make(*given))
    if told is None:
        return (-1,)
    extents = [_extent(x, given) for x in told[1]]
    others = repr((told[0], [x if n is None else None for x, n in zip(told[1], extents, strict=True)]))
    digest = hashlib.blake2b(others.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little"), *[n or 0 for n in extents]


_read = functools.lru_cache(maxsize=64)(read)  # each plan of a family asks for the same draw


def _extent(x, shapes: tuple) -> int | None:
    """A number of a jaxpr that may hang on an extent; literals that are none are rather constants."""
    if type(x) is Content:
        return None
    n = x if type(x) is int else scalar_of(*x).item()
    return n if n.__class__ is int and n >= SMALL and (n is x or _is_among(n, shapes)) else None


def _is_among(n: int, shapes) -> bool:
    return any(_is_among(n, x) for x in shapes) if type(shapes) is tuple else n == shapes


class _Replacing:
    """Makes of jaxprs those of other numbers, which come in the order of `lengths.Reader`."""

    def __init__(self, numbers: list):
        self.given: Iterator = iter(numbers)
        self.jaxprs: list = []
        self.seen: set[int] = set()
        self.parts: dict[int, tuple] = {}  # of each jaxpr, and then what is made of them
        self.consts: dict[int, list] = {}  # likewise, the arrays that it holds
        self.made: dict[int, ClosedJaxpr | Jaxpr] = {}

    def jaxpr(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        self._later(closed)
        for each in self.jaxprs:  # grows while it is read
            self.parts[id(each)] = self._parts(each)
        return self._assembled(closed)

    def _later(self, jaxpr) -> _Later:
        """What stands for a jaxpr until all numbers are read, which come by jaxprs."""
        if id(jaxpr) not in self.seen:
            self.seen.add(id(jaxpr))
            self.jaxprs.append(jaxpr)
        return _Later(jaxpr)

    def _parts(self, jaxpr) -> tuple:
        plain = jaxpr.jaxpr if type(jaxpr) is ClosedJaxpr else jaxpr
        consts = jaxpr.consts if type(jaxpr) is ClosedJaxpr else []
        made = [next(self.given) if content_of(x) is not None else None for x in consts]
        names: dict = {}
        for v in (*plain.constvars, *plain.invars):
            names.setdefault(v, Var(self._other(v.aval)))
        heads = [names[v] for v in plain.constvars]
        self.consts[id(jaxpr)] = [
            LaterArray(new, v.aval.shape) if type(new) is Computed else x
            for x, new, v in zip(consts, made, heads, strict=True)
        ]  # fmt: skip
        eqns = []
        for eqn in plain.eqns:
            skipped = NOT_RUN.get(eqn.primitive.name, ())
            params = {k: v if k in skipped else self._other(v) for k, v in eqn.own_params.items()}
            read = [self._atom(v, names) for v in eqn.invars]
            outs = []
            for v in eqn.outvars:
                other = Var(self._other(v.aval))
                outs.append(names.setdefault(v, other))
            eqns.append((eqn, params, read, outs))
        return names, eqns, [self._atom(v, names) for v in plain.outvars]

    def _atom(self, v, names: dict):
        if type(v) is not Literal:
            return names[v]
        val = v.val
        if is_number(getattr(val, "_value", val)):
            new = next(self.given)
            val = val if type(new) is tuple else new
        return Literal(val, self._other(v.aval))

    def _other(self, x):
        kind = type(x)
        if kind is int:
            return next(self.given)
        if kind is ShapedArray:
            return _shaped(x, tuple([next(self.given) for _ in x.shape]))
        if kind is dict:
            return dict(self._other(tuple(x.items())))
        if kind in (ClosedJaxpr, Jaxpr):
            return self._later(x)
        if isinstance(x, (tuple, list)):
            parts = [self._other(y) for y in x]
            return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
        return x

    def _assembled(self, x):
        kind = type(x)
        if kind is _Later:
            return self._assembled(x.jaxpr)
        if kind in (ClosedJaxpr, Jaxpr):
            plain = x.jaxpr if kind is ClosedJaxpr else x
            if id(x) in self.made:
                return self.made[id(x)]
            names, eqns, outs = self.parts[id(x)]
            done = [
                e._replace(invars=r, outvars=o, own_params={k: self._assembled(p) for k, p in ps.items()})
                for e, ps, r, o in eqns
            ]
            heads = [names[v] for v in plain.constvars], [names[v] for v in plain.invars]
            new = Jaxpr(*heads, outs, done, plain.effects, plain.debug_info)
            self.made[id(x)] = new = ClosedJaxpr(new, self.consts[id(x)]) if kind is ClosedJaxpr else new
            return new
        if kind is dict:
            return {k: self._assembled(y) for k, y in x.items()}
        if isinstance(x, (tuple, list)):
            parts = [self._assembled(y) for y in x]
            return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
        return x


class _Later(NamedTuple):
    jaxpr: object


def _shaped(aval: ShapedArray, shape: tuple) -> ShapedArray:
    """The same type with another shape, which is no key."""
    if all(type(n) is int for n in shape):
        return aval
    made = object.__new__(ShapedArray)
    made._fill(shape, aval.dtype, aval.weak_type)
    return made
