"""Jaxprs whose numbers record what is decided by them (see `graph.symbols`)."""

from __future__ import annotations

from collections.abc import Iterator

from catena.compiler.native.fingerprint import NOT_RUN
from catena.compiler.native.lengths import is_number
from catena.core.aval import ShapedArray
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from catena.core.named import NamedTuple


def replaced(closed: ClosedJaxpr, numbers: list) -> ClosedJaxpr:
    """A closed jaxpr with other numbers in place of those that `lengths.read` lists, in its order."""
    return _Replacing(numbers).jaxpr(closed)


class _Replacing:
    """Makes of jaxprs those of other numbers, which come in the order of `lengths.Reader`."""

    def __init__(self, numbers: list):
        self.given: Iterator = iter(numbers)
        self.jaxprs: list = []
        self.seen: set[int] = set()
        self.parts: dict[int, tuple] = {}  # of each jaxpr, and then what is made of them
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
        names: dict = {}
        for v in (*plain.constvars, *plain.invars):
            made = Var(self._other(v.aval))
            names.setdefault(v, made)
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
        if kind is ShapedArray and not x.extended:
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
            self.made[id(x)] = new = ClosedJaxpr(new, x.consts) if kind is ClosedJaxpr else new
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
