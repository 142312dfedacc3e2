"""Sums that are still to be taken, in types: axes of a mesh along which values are unreduced, or reduced.

A value that is *unreduced* along an axis of a mesh is a sum, of which each device along the axis has a term: only what
is linear can be done to it before ``reshard`` or ``psum`` takes the sum. One that is *reduced* is the same on all of
them, and its cotangent is unreduced. Types say it of Explicit axes in the sharding, of Manual ones beside what varies.

What primitives do to such values stands in the table of sharding rules (``parallel/rules.py``).
"""

from __future__ import annotations

from typing import Any

from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.errors import ShardingTypeError
from catena.core.factors import rule_of
from catena.core.named import NamedTuple
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec, names_of


class Terms(NamedTuple):
    """The axes along which a value is unreduced, and those along which it is reduced."""

    unreduced: frozenset
    reduced: frozenset


NONE = Terms(frozenset(), frozenset())


def terms_of(aval) -> Terms:
    """What the type of a value says."""
    if type(aval) is not ShapedArray or aval.plain:
        return NONE
    manual, said = aval.manual_axis_type, aval.said_sharding
    found = Terms(manual.unreduced, manual.reduced)
    return found if said is None else Terms(found[0] | said.spec.unreduced, found[1] | said.spec.reduced)


def with_terms(aval, terms: Terms, mesh=None):
    """The type ``aval``, which says these terms and no others, but of axes over which it is split or varies; ``mesh``
    has those of them that are Explicit.
    """
    if terms_of(aval) == terms:
        return aval
    said = aval.said_sharding
    if said is None and mesh is not None:
        said = NamedSharding(mesh, PartitionSpec(*(None,) * aval.ndim))
    explicit = frozenset() if said is None else frozenset(said.mesh.explicit_axes)
    used = aval.vma if said is None else aval.vma | {n for entry in said.spec for n in names_of(entry)}
    words = [(word, names - used) for word, names in terms._asdict().items()]
    if said is not None:
        said = said.update(spec=said.spec.update(**{word: names & explicit for word, names in words}))
    manual = aval.manual_axis_type.update(**{word: names - explicit for word, names in words})
    return aval.update(sharding=said, manual_axis_type=manual)


def without_terms(aval):
    """The type ``aval``, which says no terms."""
    return with_terms(aval, NONE) if has_terms(aval) else aval


def has_terms(aval) -> bool:
    """Whether the type of a value says any."""
    return terms_of(aval) != NONE


def mesh_of(avals):
    """The mesh whose Explicit axes the types of operands name, or ``None``."""
    return next((a.said_sharding.mesh for a in avals if a.said_sharding is not None), None)


class Application(NamedTuple):
    """An application of a primitive to operands of which some have terms; ``strict`` if it stands in a program of the
    user's: what is done to make derivatives, or is run again, is linear in what is unreduced, and is not asked.
    """

    primitive: Any
    avals: tuple
    params: dict
    strict: bool

    def refuse(self, why: str) -> None:
        """Raise where the user can do something about it."""
        if self.strict:
            operands = ", ".join(a.str_short(short_dtypes=True) for a in self.avals)
            raise ShardingTypeError(f"{self.primitive}({operands}): {why}")

    def refuse_kind(self, word: str) -> None:
        """Raise where nobody knows what would become of the terms."""
        if self.strict:
            operands = ", ".join(a.str_short(short_dtypes=True) for a in self.avals)
            raise NotImplementedError(
                f"{self.primitive}({operands}): there is no rule for {word} operands; take the sum first, by "
                "catena.reshard(x, P(...))"
            )


def terms_of_results(primitive, avals: tuple, params: dict) -> Terms | list[Terms]:
    """The terms of the results of an application, the same for all, or a list.

    Raises:
      ShardingTypeError: operands do not go together. NotImplementedError: the primitive has no rule for them.
    """
    rule_of(primitive)  # the table is there
    return primitive.terms(Application(primitive, avals, params, context.source is None))
