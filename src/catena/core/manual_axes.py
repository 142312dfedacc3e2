"""What a type says of a mesh's axes that are Manual: over which of them the copies of a value differ, and how."""

_none: frozenset = frozenset()


class ManualAxisType:
    """How a value in a ``shard_map`` depends on the Manual axes of the mesh.

    Arguments:
      varying: the names of the axes along which devices hold different values.
      unreduced: those along which each device holds a term of a sum that is still to be taken.
      reduced: those along which such a sum has been taken, so that cotangents are unreduced.
    Raises:
      ValueError: an axis stands in two of them.

    >>> ManualAxisType(varying={"data"})
    ManualAxisType(varying=frozenset({'data'}), unreduced=frozenset(), reduced=frozenset())
    """

    __slots__ = ("varying", "unreduced", "reduced")

    def __init__(self, *, varying=_none, unreduced=_none, reduced=_none):
        self.varying, self.unreduced, self.reduced = frozenset(varying), frozenset(unreduced), frozenset(reduced)
        for word, other in (("varying", "unreduced"), ("varying", "reduced"), ("unreduced", "reduced")):
            if getattr(self, word) & getattr(self, other):
                raise ValueError(f"{word} and {other} must not have axes in common, got {self}")

    @property
    def vur(self) -> frozenset:
        """All of the axes."""
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self) -> bool:
        """Whether there are none."""
        return not self.vur

    def invarying(self, mesh) -> frozenset:
        """The other Manual axes of a mesh, along which all devices hold the same."""
        return frozenset(mesh.manual_axes) - self.vur

    def to_ct_mat(self) -> "ManualAxisType":
        """The type of cotangents: what is reduced in one is unreduced in the other."""
        return ManualAxisType(varying=self.varying, unreduced=self.reduced, reduced=self.unreduced)

    def update(self, **kwargs) -> "ManualAxisType":
        """The same type with some parts replaced."""
        return ManualAxisType(
            **{"varying": self.varying, "unreduced": self.unreduced, "reduced": self.reduced} | kwargs
        )

    def joined(self, unreduced, reduced) -> "ManualAxisType":
        """The same with further axes."""
        if not unreduced and not reduced:
            return self
        return ManualAxisType(
            varying=self.varying, unreduced=self.unreduced | unreduced, reduced=self.reduced | reduced
        )

    def text(self) -> str:
        """``{V:(data,model)}``; nothing where nothing is said."""
        parts = [("V", self.varying), ("U", self.unreduced), ("R", self.reduced)]
        shown = ", ".join(f"{letter}:{names_text(sorted(names))}" for letter, names in parts if names)
        return f"{{{shown}}}" if shown else ""

    def __eq__(self, other):
        return type(other) is ManualAxisType and self._parts() == other._parts()

    def __hash__(self):
        return hash(self._parts())

    def _parts(self) -> tuple:
        return self.varying, self.unreduced, self.reduced

    def __reduce__(self):
        return _made, self._parts()

    def __repr__(self):
        return f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, reduced={self.reduced})"


def _made(varying, unreduced, reduced) -> ManualAxisType:
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)


def names_text(names) -> str:
    """``data`` for one name, ``(data,model)`` for several."""
    return names[0] if len(names) == 1 else f"({','.join(names)})"


NOT_MANUAL = ManualAxisType()
