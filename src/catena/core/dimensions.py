"""Symbolic dimensions: lengths that are not known, as sums of products of variables.

They stand in the shapes of ``ShapeDtypeStruct``s, from which `jax.eval_shape` tells those of results
(`transform.symbolic_shapes`). Programs are compiled for known lengths.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from catena.core.context import context
from catena.core.errors import InconclusiveDimensionOperation
from catena.core.named import NamedTuple


class Scope:
    """The variables that may meet in shapes, and what is known of them."""

    constraints: tuple[Constraint, ...] = ()

    def holds(self, lengths: Mapping[str, int]) -> bool:
        """Whether lengths of variables are as the constraints say, those of which all variables are among them."""
        return all(c.holds(lengths) for c in self.constraints if c.variables <= lengths.keys())

    def bounds(self, variable: str) -> tuple[float, float]:
        """The least and greatest length of a variable."""
        low, high = float(not variable.startswith(UNKNOWN)), math.inf
        for c in self.constraints:
            if is_variable(c.left, variable) and isinstance(c.right, int):
                low = max(low, c.right) if c.relation in (">=", "==") else low
                high = min(high, c.right) if c.relation in ("<=", "==") else high
        return low, high


class Constraint(NamedTuple):
    """What is known of two lengths: ``relation`` is ``>=``, ``<=`` or ``==``."""

    left: Dimension | int
    relation: str
    right: Dimension | int

    @property
    def variables(self) -> frozenset[str]:
        """Those of both."""
        return variables_of(self.left) | variables_of(self.right)

    def holds(self, lengths: Mapping[str, int]) -> bool:
        """Whether it is so for these lengths."""
        left, right = value(self.left, lengths), value(self.right, lengths)
        return {">=": left >= right, "<=": left <= right, "==": left == right}[self.relation]


class Call(NamedTuple):
    """A function of lengths that is no sum of products."""

    name: str
    args: tuple

    def __str__(self):
        return f"{self.name}({', '.join(map(str, self.args))})"


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {  # of integers, and of dimensions where Python's operators do
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}


def called(name: str, a: Dimension | int, b: Dimension | int) -> Dimension | int:
    """A function of two lengths: one of them where it is known that this is the lesser or greater one.

    Raises:
      KeyError: there is no function of this name.
    """
    function = FUNCTIONS[name]
    if name in ("floordiv", "mod") or isinstance(a, int) and isinstance(b, int):
        return function(a, b)
    low, high = bounds(a - b)
    if low >= 0 or high <= 0:
        return a if (low >= 0) == (name == "max") else b
    return (a if isinstance(a, Dimension) else b).called(name, a, b)  # type: ignore[union-attr]


STANDING_IN = "numbers for symbolic dimensions"  # whose traces are not those of users, which are counted


def stand_in() -> bool:
    """Whether a function is traced where lengths stand for symbolic ones: what is written has to hold for others."""
    return context.recorded == STANDING_IN


UNKNOWN = "unknown_"  # how variables begin that stand for what no expression tells, which may be nothing
_numbers = itertools.count()


class Dimension:
    """A length that is a sum of products of variables: ``terms`` has the factors of each, with their powers, and by how
    much it is multiplied.
    """

    __slots__ = ("scope", "terms")

    def __init__(self, scope: Scope, terms: Mapping[tuple, int]):
        self.scope = scope
        self.terms = tuple(sorted(((m, c) for m, c in terms.items() if c), key=lambda term: (not term[0], str(term))))

    def _with(self, other, make: Callable) -> Any:
        if not isinstance(other, (int, Dimension)) or isinstance(other, bool):
            return NotImplemented
        if isinstance(other, Dimension) and other.scope is not self.scope:
            raise ValueError(
                f"symbolic dimensions {self} and {other} are of different scopes: make both by one call of "
                "symbolic_shape, or with one SymbolicScope"
            )
        return known(Dimension(self.scope, make(dict(self.terms), _terms(other))))

    def __add__(self, other):
        return self._with(other, lambda a, b: _sum([*a.items(), *b.items()]))

    def __sub__(self, other):
        return self._with(other, lambda a, b: _sum([*a.items(), *((m, -c) for m, c in b.items())]))

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        return self._with(other, lambda a, b: _sum((_product(m, n), c * d) for m, c in a.items() for n, d in b.items()))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __pow__(self, power: int):
        return math.prod([self] * power, start=1) if isinstance(power, int) and power >= 0 else NotImplemented

    def __floordiv__(self, other):
        if isinstance(other, int) and other and all(c % other == 0 for _, c in self.terms):
            return known(Dimension(self.scope, {m: c // other for m, c in self.terms}))
        return self.called("floordiv", self, other)

    def __rfloordiv__(self, other):
        return self.called("floordiv", other, self)

    def __mod__(self, other):
        if isinstance(other, int) and other and all(c % other == 0 for _, c in self.terms):
            return 0
        return self.called("mod", self, other)

    def __rmod__(self, other):
        return self.called("mod", other, self)

    def __divmod__(self, other):
        return self // other, self % other

    def called(self, name: str, *args) -> Dimension:
        """A function of lengths of this scope."""
        return Dimension(self.scope, {((Call(name, args), 1),): 1})

    def __eq__(self, other):
        return isinstance(other, Dimension) and self.scope is other.scope and self.terms == other.terms

    def __hash__(self):
        return hash(self.terms)

    def __ge__(self, other):
        return self._is_least(self - other, ">=", other)

    def __gt__(self, other):
        return self._is_least(self - other - 1, ">", other)

    def __le__(self, other):
        return self._is_least(other - self, "<=", other)

    def __lt__(self, other):
        return self._is_least(other - self - 1, "<", other)

    def _is_least(self, difference, relation: str, other) -> bool:
        """Whether a difference is zero at least."""
        low, high = bounds(difference)
        if low >= 0 or high < 0:
            return low >= 0
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension comparison {str(self)!r} {relation} {str(other)!r} is inconclusive: it holds for some "
            "lengths. Constraints of symbolic_shape, such as 'a >= 2', say more of them."
        )

    def __index__(self) -> int:
        raise InconclusiveDimensionOperation(f"Symbolic dimension {str(self)!r} is used where a known length is needed")

    __int__ = __index__

    def __bool__(self) -> bool:
        return self >= 1

    def __repr__(self):
        parts = [_text(m, c) for m, c in self.terms]
        return " ".join([parts[0].removeprefix("+ "), *parts[1:]])


def _terms(x: Dimension | int) -> dict:
    return dict(x.terms) if isinstance(x, Dimension) else {(): x}


def _sum(terms: Iterable[tuple]) -> Counter:
    total: Counter = Counter()
    for factors, c in terms:
        total[factors] += c
    return total


def _product(a: tuple, b: tuple) -> tuple:
    return tuple(sorted(_sum([*a, *b]).items(), key=str))


def _text(factors: tuple, c: int) -> str:
    names = [str(f) if power == 1 else f"{f}^{power}" for f, power in factors]
    shown = "*".join([str(abs(c))] * (abs(c) != 1 or not names) + names)
    return f"{'-' if c < 0 else '+'} {shown}"


def variable(scope: Scope, name: str) -> Dimension:
    """A variable of this name."""
    return Dimension(scope, {((name, 1),): 1})


def unknown(scope: Scope) -> Dimension:
    """A length of which nothing is known: a variable of its own."""
    return variable(scope, f"{UNKNOWN}{next(_numbers)}")


def known(x: Dimension) -> Dimension | int:
    """A dimension that hangs on no variable as an integer."""
    if any(factors for factors, _ in x.terms):
        return x
    return sum(c for _, c in x.terms)


def is_variable(x: Any, name: str) -> bool:
    """Whether a length is the variable of this name."""
    return isinstance(x, Dimension) and x.terms == ((((name, 1),), 1),)


def _factors(x: Any) -> Iterator:
    if isinstance(x, Dimension):
        for factors, _ in x.terms:
            for f, _ in factors:
                yield f


def variables_of(x: Any) -> frozenset[str]:
    """The variables that a length hangs on."""
    return frozenset().union(*map(_variables_of_factor, _factors(x)))


def _variables_of_factor(f: str | Call) -> frozenset[str]:
    return frozenset([f]) if isinstance(f, str) else frozenset().union(*map(variables_of, f.args))


def value(x: Dimension | int, lengths: Mapping[str, int]) -> int:
    """A length where its variables have these."""
    if isinstance(x, int):
        return x
    return sum(c * math.prod(_factor(f, lengths) ** power for f, power in factors) for factors, c in x.terms)


def _factor(f: str | Call, lengths: Mapping[str, int]) -> int:
    if isinstance(f, str):
        return lengths[f]
    return FUNCTIONS[f.name](*(value(a, lengths) for a in f.args))


def bounds(x: Dimension | int) -> tuple[float, float]:
    """The least and greatest values of a length."""
    if isinstance(x, int):
        return x, x
    low = high = 0.0
    for factors, c in x.terms:
        least = most = float(c)
        for f, power in factors:
            ends = x.scope.bounds(f) if isinstance(f, str) else _bounds_of_call(f)
            for _ in range(power):
                corners = [a * b if a and b else 0.0 for a in (least, most) for b in ends]
                least, most = min(corners), max(corners)
        low, high = low + least, high + most
    return low, high


def _bounds_of_call(f: Call) -> tuple[float, float]:
    (low, high), (low2, high2) = map(bounds, f.args)
    if f.name in ("max", "min"):
        return FUNCTIONS[f.name](low, low2), FUNCTIONS[f.name](high, high2)
    if low2 <= 0:
        return -math.inf, math.inf
    if f.name == "mod":
        return 0, high2 - 1
    ends = [
        a if math.isinf(a) else a // b if not math.isinf(b) else min(a, 0) for a in (low, high) for b in (low2, high2)
    ]
    return min(ends), max(ends)


def root(x: Dimension, length: int, name: str, lengths: Mapping[str, int]) -> int | None:
    """The variable of this name, rounded down, where a dimension is so long and the others have these lengths; None
    where the dimension is not a multiple of it with something added.
    """
    slope = rest = 0
    for factors, c in x.terms:
        others = [(f, power) for f, power in factors if f != name]
        if any(name in _variables_of_factor(f) for f, _ in others):
            return None
        product = c * math.prod(_factor(f, lengths) ** power for f, power in others)
        if len(others) == len(factors):
            rest += product
        elif dict(factors)[name] == 1:
            slope += product
        else:
            return None
    return (length - rest) // slope if slope else None
