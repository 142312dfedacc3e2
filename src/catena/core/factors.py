"""Rules of sharding, and the types that follow from them: which axes of a result are split as which of the operands.

A primitive walks over *factors*: index ranges, each an axis of some operands and results, or a part of such an axis.
The product of matrices has three: rows, columns, and what is summed over. Whoever splits an operand along an axis
splits the range of its factor, and with it everything else that walks over it. The table of rules is
``parallel/rules.py``; the idea is that of Shardy (OpenXLA, 2024) and of einsum.
"""

from __future__ import annotations

from typing import Any

from catena.core.context import context
from catena.core.errors import ShardingTypeError
from catena.core.lazy import load
from catena.core.named import NamedTuple
from catena.core.type_sharding import axes_of


class Factor(NamedTuple):
    """An index range that a primitive walks over.

    Arguments:
      size: its length.
      operands: for each operand the axis that belongs to the factor, or ``None``.
      results: for each result likewise.
      kind: what becomes of parts that are computed apart:

        - ``"pass"``: they are the parts of the results;
        - ``"sum"``, ``"prod"``, ``"max"``, ``"min"``, ``"and"``, ``"or"``, ``"xor"``: so reduced, they are the result;
        - ``"fold"``: the primitive itself, applied to them, gives the result;
        - ``"window"``: the parts of the results need elements of other parts, or lie elsewhere;
        - ``"whole"``: each part of the results needs all parts of the operands, and is not split;
        - ``"replicate"``: likewise, so that nobody should split it.
    """

    size: int
    operands: tuple
    results: tuple
    kind: str = "pass"


REDUCTIONS = ("sum", "prod", "max", "min", "and", "or", "xor", "fold")
AS_CALLED = "as called"  # in place of a rule: the types of what the primitive calls say it all


def rule_of(primitive):
    """The rule of a primitive: ``rule(avals, outs, params) -> factors``, ``AS_CALLED``, or a NoRule."""
    rules = load("catena.parallel.rules")
    if primitive.sharding is None or primitive.terms is None:  # it was made after the table was filled in
        rules.fill()
    return primitive.sharding


def factors_of(primitive, avals, outs, params) -> list[Factor]:
    """The factors of one application, those that no rule speaks of included: they are replicated."""
    rule = rule_of(primitive)
    factors = list(rule(avals, outs, params)) if rule else []
    for i, aval in enumerate(avals):
        spoken = {f.operands[i] for f in factors}
        for axis in range(aval.ndim):
            if axis not in spoken:
                where = tuple(axis if j == i else None for j in range(len(avals)))
                factors.append(Factor(aval.shape[axis], where, (None,) * len(outs), "replicate"))
    return factors


def split_results(primitive, avals, outs: tuple, params: dict) -> tuple[list, bool]:
    """The types of the results, with the shardings that follow from those of the operands.

    Arguments:
      primitive, avals, params: the application.
      outs: the types of its results without shardings.
    Returns:
      The types, and whether they follow without doubt: under a rule of a transformation, or when a jaxpr is run again,
      doubts are settled by splitting less.
    Raises:
      ShardingTypeError: they do not, in a program of the user's.
    """
    sharding = next(a.said_sharding for a in avals if a.said_sharding is not None)
    typing = Typing(primitive, avals, outs, sharding.mesh, context.source is None and not context.settling)
    specs = typing.results(factors_of(primitive, avals, outs, params))
    plain = type(sharding.spec)
    made = [sharding.update(spec=plain(*[entry(names) for names in spec])) for spec in specs]
    return [
        o if o.said_sharding is s else o.update(sharding=s) for o, s in zip(outs, made, strict=True)
    ], not typing.doubts


def entry(names: tuple):
    """Names of a mesh's axes as an entry of a PartitionSpec."""
    return None if not names else names[0] if len(names) == 1 else names


def dealt(factors, operand: int, axis: int, names: tuple, sizes) -> tuple[dict[int, tuple], bool]:
    """Which factors of an operand's axis the names split: an outer one as far as it goes, then the next; and whether
    all names were dealt. ``sizes``: those of the mesh's axes.
    """
    own = [k for k, f in enumerate(factors) if f.operands[operand] == axis]
    if len(own) == 1:
        return {own[0]: names}, True
    found: dict[int, tuple] = {}
    position, ways = 0, 1
    for name in names:
        while position < len(own) and ways == factors[own[position]].size:
            position, ways = position + 1, 1
        ways *= sizes[name]
        if position == len(own) or factors[own[position]].size % ways:
            return found, False
        found[own[position]] = (*found.get(own[position], ()), name)
    return found, True


class Typing:
    """Finds out how the results of one application are split."""

    def __init__(self, primitive, avals, outs, mesh, strict: bool):
        self.primitive, self.avals, self.outs, self.mesh, self.strict = primitive, avals, outs, mesh, strict
        self.sizes: Any = mesh.shape
        self.doubts = False

    def doubt(self, why: str) -> tuple:
        """Something cannot be split, for this reason; returns the split that remains: none."""
        self.doubts = True
        if self.strict:
            operands = ", ".join(a.str_short(short_dtypes=True) for a in self.avals)
            raise ShardingTypeError(f"{self.primitive}({operands}): {why}")
        return ()

    def results(self, factors) -> list[list[tuple]]:
        """For each axis of each result the names of the mesh's axes that split it."""
        found: list[tuple] = [()] * len(factors)
        for i, aval in enumerate(self.avals):
            if aval.said_sharding is None:
                continue
            for axis, part in enumerate(aval.said_sharding.spec.partitions):
                if part is not None:
                    self.walk(factors, found, i, axis, axes_of(part))
        specs: list[list[tuple]] = [[()] * o.ndim for o in self.outs]
        for factor, names in zip(factors, found, strict=True):
            if factor.kind in REDUCTIONS or factor.kind in ("whole", "replicate"):
                continue
            for spec, axis in zip(specs, factor.results, strict=True):
                if axis is not None:
                    spec[axis] = self.appended(factors, found, factor, spec[axis], names)
        return [self.checked(spec, out) for spec, out in zip(specs, self.outs, strict=True)]

    def walk(self, factors, found, operand: int, axis: int, names: tuple):
        """Split the factors of one axis of an operand by ``names``, the outermost factor first."""
        for k, taken in self.dealt(factors, operand, axis, names).items():
            if factors[k].kind == "replicate":
                self.doubt(
                    f"operand {operand} must not be split along axis {axis}, but is over {text(taken)}; reshard it "
                    "(catena.reshard), or say how the result is to be split where there is a parameter out_sharding"
                )
            elif not found[k]:
                found[k] = taken
            elif found[k] != taken:
                self.doubt(
                    f"one operand splits an axis over {text(found[k])}, another over {text(taken)}; reshard one of "
                    "them (catena.reshard)"
                )
            elif factors[k].kind == "sum":
                self.doubt(
                    f"two operands split the axis that is summed over by {text(taken)}, so that the result could be "
                    "split in several ways: say which by out_sharding="
                )

    def dealt(self, factors, operand: int, axis: int, names: tuple) -> dict[int, tuple]:
        """Which factors of an axis the names split; that they cannot all be dealt is a doubt."""
        found, complete = dealt(factors, operand, axis, names, self.sizes)
        if not complete:
            self.doubt(f"the parts over {text(names)} are no parts of the axes of the result: say out_sharding=")
        return found

    def appended(self, factors, found, factor: Factor, before: tuple, names: tuple) -> tuple:
        """The names that split an axis of a result, ``before`` being those that split its outer factors."""
        position = factor.results.index(next(a for a in factor.results if a is not None))
        outer = [
            (f, n)
            for f, n in zip(factors, found, strict=True)
            if f.results[position] == factor.results[position] and f.size > 1
        ]
        first = next((k for k, (f, _) in enumerate(outer) if f is factor), 0)
        if names and any(not n for _, n in outer[:first]):
            return before + self.doubt(
                f"the parts over {text(names)} are no parts of an axis of the result: say how it is to be split by "
                "out_sharding="
            )
        return before + names

    def checked(self, spec: list[tuple], out) -> list[tuple]:
        """A split of a result that is possible: no name twice, and equal parts."""
        used: set = set()
        for axis, names in enumerate(spec):
            ways = 1
            for name in names:
                ways *= self.sizes[name]
            if out.shape[axis] % ways:
                spec[axis] = self.doubt(
                    f"the result has {out.shape[axis]} elements along axis {axis}, which {text(names)} would split in "
                    f"{ways} parts; reshard the operand (catena.reshard)"
                )
            elif used & set(names):
                spec[axis] = self.doubt(
                    f"the result {out.str_short(short_dtypes=True)} would be split over {text(names)} along two of its "
                    "axes; reshard an operand (catena.reshard), or say out_sharding= where there is such a parameter"
                )
            used |= set(spec[axis])
        return spec


def text(names) -> str:
    """Names of a mesh's axes for an error."""
    return " and ".join(map(repr, names))


def elementwise(avals, outs, params) -> list[Factor]:
    """The rule of elementwise primitives: the axes of all operands run together; those of size 1 that are repeated, and
    operands without axes, are in every part.
    """
    return [
        Factor(
            size,
            tuple(axis if a.ndim and a.shape[axis] == size else None for a in avals),
            (axis,) * len(outs),
        )
        for axis, size in enumerate(outs[0].shape)
    ]
