"""Rules of sharding as users write them: which axes of operands and results run together (Shardy: OpenXLA, 2024).

``"i k, k j -> i j"`` says it of the product of matrices: a letter is an index range, and an axis is named by the range
that it runs over. An axis ``(i j)`` runs over two ranges, the second one faster; ``...`` in front stands for any axes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from catena.core.factors import Factor

BATCHING = "…"  # what stands for axes in front, of any number
NAME = re.compile(r"[A-Za-z]\w*")


def check_name(name: str) -> str:
    """The name of an index range, or a ValueError."""
    if not NAME.fullmatch(name):
        raise ValueError(f"names of factors begin with a letter and go on with letters and digits, got {name!r}")
    return name


class CompoundFactor(tuple):
    """The index ranges that one axis runs over, the slowest first.

    Arguments:
      factors: their names, at least two.

    >>> CompoundFactor("i", "j")
    ('i', 'j')
    """

    __slots__ = ()

    def __new__(cls, *factors: str):
        if len(factors) < 2:
            raise ValueError(f"a CompoundFactor is made of at least two factors, got {factors}")
        if not all(isinstance(name, str) for name in factors):
            raise ValueError(f"the factors of a CompoundFactor are strings, got {factors}")
        return super().__new__(cls, map(check_name, factors))


class ArrayMapping(tuple):
    """The index ranges that the axes of one array run over.

    Arguments:
      dim_mappings: for each axis a name or a ``CompoundFactor``; ``BATCHING`` may come first.

    >>> ArrayMapping("i", CompoundFactor("j", "k"))
    ('i', ('j', 'k'))
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: str | CompoundFactor):
        for i, axis in enumerate(dim_mappings):
            if not isinstance(axis, (str, CompoundFactor)):
                raise ValueError(f"an axis of an ArrayMapping is a str or a CompoundFactor, got {type(axis)}")
            if axis == BATCHING and i:
                raise ValueError(f"BATCHING (...) stands for the first axes of an array, got {dim_mappings}")
            if isinstance(axis, str) and axis != BATCHING:
                check_name(axis)
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """A rule of sharding: the index ranges of operands and results.

    Arguments:
      operand_mappings, result_mappings: an ``ArrayMapping`` for each operand and result.
      reduction_factors: ranges that are reduced over, so that parts have to be put together.
      need_replication_factors: ranges that are not to be split.
      permutation_factors: ranges whose parts need elements of other parts.
      factor_sizes: the lengths of ranges that are nowhere a whole axis.
    Raises:
      ValueError: a size is given of a range that is an axis, or a name is not used.

    >>> SdyShardingRule((ArrayMapping("i", "k"), ArrayMapping("k", "j")), (ArrayMapping("i", "j"),))
    SdyShardingRule((('i', 'k'), ('k', 'j')), (('i', 'j'),), {})
    """

    KINDS = ("reduction_factors", "need_replication_factors", "permutation_factors")

    def __init__(
        self,
        operand_mappings: Sequence[ArrayMapping],
        result_mappings: Sequence[ArrayMapping],
        *,
        reduction_factors: Iterable[str] = (),
        need_replication_factors: Iterable[str] = (),
        permutation_factors: Iterable[str] = (),
        **factor_sizes: int,
    ):
        self.operand_mappings, self.result_mappings = tuple(operand_mappings), tuple(result_mappings)
        self.reduction_factors = tuple(reduction_factors)
        self.need_replication_factors = tuple(need_replication_factors)
        self.permutation_factors = tuple(permutation_factors)
        self.factor_sizes = dict(factor_sizes)
        axes = [axis for mapping in self.operand_mappings + self.result_mappings for axis in mapping]
        whole = {axis for axis in axes if isinstance(axis, str)}
        used = whole.union(*(axis for axis in axes if not isinstance(axis, str)))
        for name in self.factor_sizes:
            if name in whole:
                raise ValueError(f"factor {name} is a whole axis, which has its size: give none for it")
        for kind in (*self.KINDS, "factor_sizes"):
            for name in getattr(self, kind):
                if name not in used:
                    raise ValueError(f"factor {name} in {kind} is not used in the rule")

    def _parts(self) -> tuple:
        kinds = tuple(getattr(self, kind) for kind in self.KINDS)
        return self.operand_mappings, self.result_mappings, *kinds, tuple(sorted(self.factor_sizes.items()))

    def __eq__(self, other):
        return isinstance(other, SdyShardingRule) and self._parts() == other._parts()

    def __hash__(self):
        return hash(self._parts())

    def __repr__(self):
        said = "".join(f" {kind}={getattr(self, kind)}" for kind in self.KINDS if getattr(self, kind))
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{said})"


# ---- reading


def parsed(rule: str, **options) -> SdyShardingRule:
    """The rule that a text says.

    Arguments:
      rule: ``"i k, k j -> i j"``.
      options: the keyword arguments of ``SdyShardingRule``.
    Raises:
      ValueError: the text is no rule.
    """
    if rule.count("->") != 1:
        raise ValueError(f"a rule has operands, one -> and results, got {rule!r}")
    operands, results = ([mapping_of(text) for text in side.split(",")] for side in rule.split("->"))
    return SdyShardingRule(operands, results, **options)


def mapping_of(text: str) -> ArrayMapping:
    """The axes of one array: names, ``(i j)`` for compound ones, ``...`` in front."""
    axes: list = []
    for group, word in re.findall(r"\(([^()]*)\)|([^\s()]+|[()])", text.replace("...", f" {BATCHING} ")):
        if word in ("(", ")"):
            raise ValueError(f"the brackets of {text.strip()!r} are not balanced")
        axes.append(word or CompoundFactor(*group.split()))
    return ArrayMapping(*axes)


# ---- in the partitioner's form


def factors_of_rule(rule: SdyShardingRule, operands: Sequence, results: Sequence) -> list[Factor]:
    """The index ranges of one application, given the types of operands and results.

    Raises:
      ValueError: the rule is not for as many arrays, or not for arrays of such shapes.
    """
    sides = (rule.operand_mappings, operands, "operand"), (rule.result_mappings, results, "result")
    for mappings, avals, what in sides:
        if len(mappings) != len(avals):
            raise ValueError(f"the rule {rule} is for {len(mappings)} {what}s, and there are {len(avals)}")
    mappings = rule.operand_mappings + rule.result_mappings
    axes = [axes_of(rule, m, aval) for m, aval in zip(mappings, (*operands, *results), strict=True)]
    sizes = sizes_of(rule, axes, (*operands, *results))
    found = []
    for name, size in sizes.items():
        places = [next((i for i, names in enumerate(own) if name in names), None) for own in axes]
        first, second = tuple(places[: len(operands)]), tuple(places[len(operands) :])
        apart = any(i is not None for i in second) and name not in rule.need_replication_factors
        kind = "pass" if apart and name not in rule.permutation_factors else "replicate"
        found.append(Factor(size, first, second, kind))
    return found


def axes_of(rule: SdyShardingRule, mapping: ArrayMapping, aval) -> list[tuple]:
    """For each axis of an array the names of its index ranges; those in front are numbered."""
    axes = [(axis,) if isinstance(axis, str) else tuple(axis) for axis in mapping]
    if mapping[:1] == (BATCHING,):
        axes[:1] = [(f"{BATCHING}{i}",) for i in range(aval.ndim - len(axes) + 1)]
    if len(axes) != aval.ndim:
        raise ValueError(f"{mapping} of the rule {rule} is for {len(axes)} axes, and there is {aval.str_short()}")
    return axes


def sizes_of(rule: SdyShardingRule, axes: list, avals: Sequence) -> dict[str, int]:
    """The length of each index range, in the order of their first places."""
    sizes: dict[str, int] = dict.fromkeys((name for own in axes for names in own for name in names), 0)
    sizes.update(rule.factor_sizes)
    pairs = [pair for own, aval in zip(axes, avals, strict=True) for pair in zip(own, aval.shape, strict=True)]
    for names, n in sorted(pairs, key=lambda pair: len(pair[0])):
        unknown = [name for name in names if not sizes[name]]
        known = math.prod(sizes[name] for name in names if sizes[name])
        if len(unknown) > 1 or known == 0 or n % known:
            raise ValueError(f"the sizes of {names} in the rule {rule} do not follow from {n}: give factor_sizes")
        if unknown:
            sizes[unknown[0]] = n // known
        elif known != n:
            raise ValueError(f"{' '.join(names)} in the rule {rule} has the size {known}, and is an axis of {n}")
    return sizes
