"""The values of a program that is partitioned, brought from form to form, and what that sends."""

from __future__ import annotations

import math

from catena.core.jaxpr import Eqn
from catena.core.named import NamedTuple
from catena.core.propagation import Split
from catena.core.zeros import get_aval
from catena.parallel import halos, moves
from catena.parallel.moves import COLLECTIVES, Form, Move
from catena.parallel.specs import untyped as without_layout
from catena.parallel.values import Value


class Sent(NamedTuple):
    """A collective of a partitioned program.

    Arguments:
      kind: its name.
      names: the axes of the mesh that it works along.
      bytes: what each device sends, once.
      times: how often it runs, where loops say so.
      source: the user's line.
      why: what needed it.
    """

    kind: str
    names: tuple
    bytes: float
    times: int
    source: object
    why: str


def untyped(aval):
    """A type without what it says of meshes; those of tokens and references say nothing."""
    return without_layout(aval) if hasattr(aval, "plain") else aval


class Forms:
    """Brings values from form to form, over one mesh.

    ``sizes`` are those of its axes that have several devices; ``sent`` is the book, in which what stands in a loop that
    runs ``times`` times is said to.
    """

    value = Value

    def __init__(self, mesh):
        self.mesh = mesh
        self.sizes = {n: k for n, k in mesh.shape.items() if k > 1}
        self.sent: list[Sent] = []
        self.times = 1

    def ways(self, names) -> int:
        return math.prod(self.sizes[n] for n in names)

    def local_aval(self, aval, split: Split):
        """The type of a device's part."""
        if not any(split):
            return untyped(aval)
        shape = tuple(n // self.ways(names) for n, names in zip(aval.shape, split, strict=True))
        return untyped(aval).update(shape=shape)

    # ---- values in forms

    def proposal(self, value: Value) -> Split:
        """How a value lies: in the form in which it is smallest."""
        if value.base is not None and not value.forms:
            return self.viewable(value, self.proposal(value.base))
        return max(value.forms, key=lambda form: self.ways([n for names in form.split for n in names])).split

    def part_size(self, aval, split: Split) -> float:
        """The bytes of a device's part."""
        itemsize = getattr(getattr(aval, "dtype", None), "itemsize", 0)
        return getattr(aval, "size", 0) * itemsize / self.ways([n for names in split for n in names])

    def cost(self, value: Value, form: Form) -> float:
        """What it takes to have a value in this form."""
        known = min((self.cost_from(value, have, form) for have in value.forms), default=math.inf)
        return known if value.base is None or not known else min(known, self.cost_of_view(value, form))

    def cost_from(self, value: Value, have: Form, form: Form) -> float:
        if have == form:
            return 0.0
        if not set(form.partial) <= set(have.partial):
            return math.inf
        return moves.cost(moves.moves(have, form, self.sizes), self.part_size(value.aval, have.split), self.sizes)

    def get(self, value: Value, form: Form, eqn: Eqn | None, what: int | str):
        """A device's part of a value in this form; what is met on the way is remembered."""
        if form in value.forms:
            return value.forms[form]
        have = min(value.forms, key=lambda have: self.cost_from(value, have, form), default=None)
        known = math.inf if have is None else self.cost_from(value, have, form)
        if have is None or (value.base is not None and self.cost_of_view(value, form) < known):
            have = Form(self.viewable(value, form.split))
            value.forms[have] = self.viewed(value, have.split, eqn, what)
        if not set(form.partial) <= set(have.partial):
            raise AssertionError(f"a sum that was taken is asked for in terms: {what}, {have} -> {form}")
        x = value.forms[have]
        for move, now in moves.moves(have, form, self.sizes):
            self.tell_move(move, x, value, eqn, what)
            x = value.forms[now] = moves.apply(move, x)
        return x

    # ---- views of values

    def viewable(self, value: Value, split: Split) -> Split:
        """A split of a view, without what its sizes, or those of what it views, do not divide."""
        found = list(split)
        for axis, view in value.views.items():
            if value.base.aval.shape[axis] % self.ways(split[axis]) or view.size % self.ways(split[axis]):
                found[axis] = ()
        return tuple(found)

    def cost_of_view(self, value: Value, form: Form) -> float:
        """What it takes to have a view in this form, from what it views."""
        if form.partial:
            return math.inf
        split = self.viewable(value, form.split)
        size = self.part_size(value.base.aval, split)
        total = self.cost(value.base, Form(split))
        for axis, view in value.views.items():
            n, ways = value.base.aval.shape[axis], self.ways(split[axis])
            total += size * halos.elements_sent(halos.halo_of_view(view, n, ways), ways) / (n // ways) if n else 0
            size *= view.size / n if n else 0
        return total + moves.cost(
            moves.moves(Form(split), form, self.sizes), self.part_size(value.aval, split), self.sizes
        )

    def viewed(self, value: Value, split: Split, eqn: Eqn | None, what: int | str):
        """A device's part of a view."""
        x = self.get(value.base, Form(split), eqn, what)
        for axis, view in value.views.items():
            n, ways = value.base.aval.shape[axis], self.ways(split[axis])
            found = halos.halo_of_view(view, n, ways)
            self.tell_halo(found, x, axis, split[axis], value, eqn, what)
            x = halos.part_of_view(x, axis, split[axis], view, n, ways)
        return x

    def tell_halo(self, found, x, axis: int, names: tuple, value: Value, eqn: Eqn | None, what: int | str) -> None:
        """Write the permutations of a halo down."""
        row = get_aval(x).size * get_aval(x).dtype.itemsize // max(get_aval(x).shape[axis], 1)
        for d, (first, last) in found.pieces.items():
            if d % self.ways(names):
                self.tell("ppermute", names, row * (last - first), eqn, self.reason(value, eqn, what), value)

    # ---- what is sent

    def tell_move(self, move: Move, x, value: Value, eqn: Eqn | None, what: int | str) -> None:
        """Write a step from form to form down."""
        if move.kind != "slice":
            size = moves.sent(move, get_aval(x).size * get_aval(x).dtype.itemsize, self.sizes)
            self.tell(COLLECTIVES[move.kind], move.all_names, size, eqn, self.reason(value, eqn, what), value)

    @staticmethod
    def reason(value: Value, eqn: Eqn | None, what: int | str) -> str:
        """Which value was needed for what."""
        needs = f"operand {what} of {eqn.primitive}" if isinstance(what, int) and eqn else str(what)
        made = f", made by {value.maker.primitive}" if value.maker is not None else ""
        return f"{needs}: {value.aval.str_short(short_dtypes=True)}{made}"

    def tell(self, kind: str, names: tuple, size: float, eqn: Eqn | None, why: str, value: Value | None = None) -> None:
        """Write a collective down, with the line of what needed it, or of what made the value."""
        by = eqn if eqn is not None and eqn.source is not None else value.maker if value is not None else None
        self.sent.append(Sent(kind, names, size, self.times, by.source if by is not None else None, why))
