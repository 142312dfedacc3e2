"""Which axes of a mesh the axes of an array are split over."""

from __future__ import annotations

from typing import Any


class Unconstrained:
    """The entry of a PartitionSpec that leaves the layout of an axis to the compiler: ``P.UNCONSTRAINED``."""

    __slots__ = ()

    def __repr__(self):
        return "UNCONSTRAINED"

    def __reduce__(self):
        return "UNCONSTRAINED"


UNCONSTRAINED = Unconstrained()


class PartitionSpec:
    """For each axis of an array the axes of a mesh that it is split over.

    Arguments:
      partitions: for each axis of the array, from the first on: the name of an axis of the mesh, several of them as a
        tuple (the first has the largest parts), ``None`` for no split, or ``PartitionSpec.UNCONSTRAINED``. Axes
        that are left out are not split.
      unreduced: axes of the mesh along which each device holds a summand of the array.
      reduced: axes of the mesh over which the cotangent is such a sum.
    Raises:
      ValueError: an axis of the mesh stands both among ``partitions`` and ``unreduced`` or ``reduced``, or in both.
      TypeError: ``unreduced`` or ``reduced`` is no set.

    >>> import catena as jax
    >>> jax.P(("data", "model"), None)
    P(('data', 'model'), None)
    """

    __slots__ = ("partitions", "unreduced", "reduced", "_hash")
    UNCONSTRAINED = UNCONSTRAINED

    partitions: tuple
    unreduced: frozenset
    reduced: frozenset

    def __init__(self, *partitions, unreduced=frozenset(), reduced=frozenset()):
        entries = tuple(canonical_entry(e) for e in partitions)
        unreduced, reduced = as_names("unreduced", unreduced), as_names("reduced", reduced)
        if unreduced & reduced:
            raise ValueError(f"unreduced and reduced must not overlap, got {set(unreduced)} and {set(reduced)}")
        named = frozenset(n for e in entries for n in names_of(e)) if unreduced or reduced else frozenset()
        for word, names in (("unreduced", unreduced), ("reduced", reduced)):
            if names & named:
                raise ValueError(f"partitions and {word} must not overlap, got {entries} and {set(names)}")
        self._fill(partitions=entries, unreduced=unreduced, reduced=reduced)
        self._fill(_hash=hash((PartitionSpec, entries, unreduced, reduced)))

    def _fill(self, **parts):
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError(f"cannot assign to field {name!r} of a PartitionSpec; its update makes another")

    def update(self, partitions=None, unreduced=None, reduced=None) -> PartitionSpec:
        """The same specification with some parts replaced."""
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def to_tangent_spec(self) -> PartitionSpec:
        """The specification of tangents: the same."""
        return self

    def to_ct_spec(self) -> PartitionSpec:
        """The specification of cotangents: what is reduced in one is unreduced in the other."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def to_lo(self) -> list[PartitionSpec]:
        """The specifications of the arrays that an array consists of: itself."""
        return [self]

    def index(self, value) -> int:
        """The first axis whose entry is ``value``."""
        return self.partitions.index(canonical_entry(value))

    def count(self, value) -> int:
        """How many entries are ``value``."""
        return self.partitions.count(canonical_entry(value))

    def __getitem__(self, i) -> Any:
        return self.partitions[i]

    def __iter__(self):
        return iter(self.partitions)

    def __len__(self):
        return len(self.partitions)

    def __add__(self, other):
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self.partitions,
                *other.partitions,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        return self.update((*self.partitions, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other):
        return self.update((*other, *self.partitions)) if isinstance(other, tuple) else NotImplemented

    def __eq__(self, other):
        if self is other:
            return True
        return type(other) is PartitionSpec and (self.partitions, self.unreduced, self.reduced) == (
            other.partitions,
            other.unreduced,
            other.reduced,
        )

    def __hash__(self):
        return self._hash

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _rebuild, (self.partitions, self.unreduced, self.reduced)

    def __repr__(self):
        sets = [
            f"{word}={names_text(s)}" for word, s in (("unreduced", self.unreduced), ("reduced", self.reduced)) if s
        ]
        if not sets:
            return f"P{self.partitions!r}"
        return f"P({', '.join([*map(repr, self.partitions), *sets])})"


P = PartitionSpec


def _rebuild(partitions, unreduced, reduced) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def canonical_entry(entry):
    """An entry as it is kept: several names are a tuple, one is itself, none is ``None``."""
    if isinstance(entry, (list, tuple)):
        return tuple(entry) if len(entry) > 1 else (entry[0] if entry else None)
    hash(entry)
    return entry


def names_of(entry) -> tuple:
    """The axes of the mesh that an entry names."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def as_names(word: str, names) -> frozenset:
    if not isinstance(names, (set, frozenset)):
        raise TypeError(f"{word} must be a set of names of mesh axes, got {names!r}")
    if None in names:
        raise ValueError(f"{word} must not contain None: its elements name axes of the mesh")
    return frozenset(names)


def names_text(names: frozenset) -> str:
    return f"{{{', '.join(map(repr, sorted(names, key=str)))}}}"
