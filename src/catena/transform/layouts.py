"""How the values of a program lie on a mesh, given how some of them do: what is known spreads to a fixed point.

Every equation ties the splits of its operands and results together, through the factors that its primitive walks over
(``core/factors.py``); loops tie what they carry from step to step. A split spreads along these ties forwards and
backwards until nothing changes, first through elementwise operations, then through products, then through the others,
so that the most certain is said first (the idea is Shardy's: OpenXLA, 2024). Arguments, constraints and results that
somebody laid out are pinned. Where two ties disagree, nothing follows from them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from catena.core.factors import AS_CALLED, Factor, elementwise, factors_of, rule_of
from catena.core.jaxpr import Eqn, Jaxpr, Var
from catena.core.mesh import Mesh
from catena.core.named import NamedTuple
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec, names_of
from catena.core.placement import Placement
from catena.core.propagation import WRITES, Split, Splits, layout_of_split, split_of, whole
from catena.core.sharding import placement_of
from catena.transform.flattened import flattened


class Tie(NamedTuple):
    """Values whose axes belong to index ranges that they share. Ties of a lower rank speak first. One may have a way of
    its own to extend what is known, ``own(splits)``, as ``ProgramSplits.speak`` does.
    """

    primitive: object
    values: list
    factors: list[Factor]
    rank: int
    own: Callable | None = None


class Identity:
    """Stands for a primitive where two values are the same."""

    name = "identity"


SAME, ELEMENTWISE, PRODUCTS, OTHERS = range(4)
CONSTRAINTS = {"sharding_constraint": "sharding", "reshard": "dst_sharding"}  # and the parameter that says how


class Inspection:
    """What shows a user how a value lies: called with the value, it hands the value's layout on, each layout once.

    A traced value lies as it does in every run, turn of a loop and example of a batch. A compiled function sees bare
    values. How they lie on the mesh that its arguments lie on follows from the program; whoever runs that says so in
    ``running.layouts`` (``Program.inspected`` in ``transform/execute.py``).
    """

    running = threading.local()

    def __init__(self, callback: Callable):
        self.callback = callback
        self.shown: set = set()

    def __call__(self, x) -> None:
        known = getattr(self.running, "layouts", None)
        layout = known.get(self, known.get(None)) if known else x.sharding
        if layout not in self.shown:
            self.shown.add(layout)
            self.callback(layout)


def inspection_of(eqn: Eqn) -> Inspection | None:
    """What an equation shows the layout of its operand to, or ``None``."""
    called = getattr(eqn.own_params.get("callback"), "callback", None)
    found = getattr(called, "__wrapped__", None)
    return found if type(found) is Inspection else None


class ProgramSplits(Splits):
    """The splits of all values of a program without calls, over one mesh.

    ``split`` says what is known of each variable; ``pinned`` for those that are not to change, axis by axis.
    """

    def __init__(self, mesh: Mesh):
        super().__init__(mesh)
        self.split: dict[Var, Split] = {}
        self.pinned: dict[Var, tuple] = {}
        self.ties: list[Tie] = []
        self.inspected: dict[Inspection, Var] = {}

    def of(self, x) -> Split:
        """What is known of a value."""
        return self.split.get(x) or whole_value(x.aval)

    def pin(self, v, split: Split, free: tuple = ()) -> None:
        """A value that lies so, but for axes that are ``free``."""
        if type(v) is Var:
            self.split[v] = split
            self.pinned[v] = tuple(not (free and free[i]) for i in range(len(split)))

    def spread(self, jaxpr: Jaxpr) -> None:
        """From what is known to what follows."""
        self.tie_program(jaxpr)
        changed: dict[Var, int] = dict.fromkeys(self.split, 1)
        for rank in (SAME, ELEMENTWISE, PRODUCTS, OTHERS):
            self.settle([t for t in self.ties if t.rank <= rank], dict(changed), changed)

    def settle(self, ties: list[Tie], version: dict, changed: dict) -> None:
        """Let these ties speak until nothing changes: those of which a value changed since they last did."""
        heard: dict[int, int] = {}
        clock, before = max(version.values(), default=0), -1
        while clock != before:
            before = clock
            for order in (range(len(ties)), range(len(ties) - 1, -1, -1)):
                for i in order:
                    newest = max((version.get(v, 0) for v in ties[i].values if type(v) is Var), default=0)
                    if newest > heard.get(i, 0):
                        heard[i] = clock
                        for v in self.speak(ties[i]):
                            clock += 1
                            version[v] = changed[v] = clock

    def speak(self, tie: Tie) -> list[Var]:
        """Extend what is known of the values of a tie; those of which more is known now."""
        if tie.own is not None:
            return tie.own(self)
        avals, known = [x.aval for x in tie.values], [self.of(x) for x in tie.values]
        said = self.said(tie.primitive, tie.factors, avals, known)
        grown = []
        for i, v in enumerate(tie.values):
            if type(v) is Var and known[i]:
                axes = [f.operands[i] for f in tie.factors]
                more = self.extended(v, known[i], self.follows(tie.primitive, tie.factors, said, axes, v.aval))
                if more != known[i]:
                    self.split[v] = more
                    grown.append(v)
        return grown

    def extended(self, v: Var, known: Split, found: Split) -> Split:
        """What is known, with what was found along axes where it says more and takes no name from another axis."""
        pinned = self.pinned.get(v, (False,) * len(known))
        out = list(known)
        for axis, names in enumerate(found):
            own = out[axis]
            others = {n for k, split in enumerate(out) if k != axis for n in split}
            if not pinned[axis] and len(names) > len(own) and names[: len(own)] == own and not others & {*names}:
                out[axis] = names
        return tuple(out)

    # ---- what ties values

    def tie_program(self, jaxpr: Jaxpr) -> None:
        for v in (*jaxpr.invars, *jaxpr.constvars):
            self.typed(v)
        for eqn in jaxpr.eqns:
            for v in eqn.outvars:
                self.typed(v)
            name = eqn.primitive.name
            if name in CONSTRAINTS:
                self.constrain(eqn)
            elif name in TIES:
                TIES[name](self, eqn)
            elif (inspection := inspection_of(eqn)) is not None:
                self.inspected[inspection] = eqn.invars[0]
            elif rule_of(eqn.primitive) is not AS_CALLED:
                self.tie_operation(eqn)

    def typed(self, v: Var) -> None:
        """Types say how values are split along Explicit axes."""
        said = getattr(v.aval, "said_sharding", None)
        if said is not None and v not in self.pinned and said.mesh.shape_tuple == self.mesh.shape_tuple:
            self.pin(v, split_of_spec(said.spec, v.aval.ndim))

    def tie_operation(self, eqn: Eqn) -> None:
        avals, outs = tuple(x.aval for x in eqn.invars), [v.aval for v in eqn.outvars]
        factors = factors_of(eqn.primitive, avals, outs, eqn.own_params)
        joined = [f._replace(operands=f.operands + f.results) for f in factors]
        values = [*eqn.invars, *eqn.outvars]
        if eqn.primitive.name in WRITES:
            self.same(eqn.invars[0], eqn.outvars[0])
        rule = rule_of(eqn.primitive)
        rank = ELEMENTWISE if rule is elementwise else PRODUCTS if eqn.primitive.name in PRODUCT else OTHERS
        if any(f.operands.count(None) < len(values) - 1 for f in joined):
            self.ties.append(Tie(eqn.primitive, values, joined, rank))

    def same(self, *values, behind: int = 0) -> None:
        """These values are the same, or the first one has ``behind`` more axes in front."""
        last = values[-1].aval
        ndim = getattr(last, "ndim", 0)
        axes = [(k + behind, *[k] * (len(values) - 1)) for k in range(ndim)]
        factors = [Factor(last.shape[k], own, ()) for k, own in enumerate(axes)]
        if factors:
            self.ties.append(Tie(Identity, list(values), factors, SAME))

    def constrain(self, eqn: Eqn) -> None:
        """What a constraint asks for, where it is one for this mesh."""
        sharding, ndim = eqn.own_params[CONSTRAINTS[eqn.primitive.name]], eqn.outvars[0].aval.ndim
        spec = getattr(sharding, "spec", None)
        if spec is not None and sharding.mesh.shape_tuple == self.mesh.shape_tuple:
            free = [e is PartitionSpec.UNCONSTRAINED for e in spec] + [False] * ndim
            self.pin(eqn.outvars[0], split_of_spec(spec, ndim), tuple(free[:ndim]))
        self.same(eqn.invars[0], eqn.outvars[0])

    def scan(self, eqn: Eqn) -> None:
        """A scan walks along the first axis of ``xs``, and carries a value through all steps."""
        body, fixed, carried = eqn.own_params["jaxpr"].jaxpr, eqn.own_params["num_consts"], eqn.own_params["num_carry"]
        first = fixed + carried
        self.tie_program(body)
        for outer, inner in zip(eqn.invars[:fixed], body.invars[:fixed], strict=True):
            self.same(outer, inner)
        for k in range(carried):
            self.same(eqn.invars[fixed + k], body.invars[fixed + k], body.outvars[k], eqn.outvars[k])
        for rows, row in zip(eqn.invars[first:], body.invars[first:], strict=True):
            self.same(rows, row, behind=1)
        for rows, row in zip(eqn.outvars[carried:], body.outvars[carried:], strict=True):
            self.same(rows, row, behind=1)

    def loop(self, eqn: Eqn) -> None:
        """A while loop: what is carried is the same before, in and after each step."""
        asks, body = eqn.own_params["cond_jaxpr"].jaxpr, eqn.own_params["body_jaxpr"].jaxpr
        first, second = eqn.own_params["cond_nconsts"], eqn.own_params["body_nconsts"]
        self.tie_program(asks)
        self.tie_program(body)
        for outer, inner in zip(eqn.invars, [*asks.invars[:first], *body.invars[:second]], strict=False):
            self.same(outer, inner)
        carried = zip(eqn.invars[first + second :], asks.invars[first:], body.invars[second:], strict=True)
        for values in zip(carried, body.outvars, eqn.outvars, strict=True):
            self.same(*values[0], *values[1:])

    def branches(self, eqn: Eqn) -> None:
        """A condition: its operands and results are those of all branches."""
        for branch in eqn.own_params["branches"]:
            self.tie_program(branch.jaxpr)
            for outer, inner in zip(eqn.invars[1:], branch.jaxpr.invars, strict=True):
                self.same(outer, inner)
            for outer, inner in zip(eqn.outvars, branch.jaxpr.outvars, strict=True):
                self.same(outer, inner)

    def shard_map(self, eqn: Eqn) -> None:
        """What is put together of the parts of devices is split as it says."""
        if eqn.own_params["mesh"].shape_tuple == self.mesh.shape_tuple:
            for v, spec in zip(eqn.outvars, eqn.own_params["out_specs"], strict=True):
                self.pin(v, split_of_spec(spec, v.aval.ndim))


TIES = {
    "scan": ProgramSplits.scan,
    "while": ProgramSplits.loop,
    "cond": ProgramSplits.branches,
    "shard_map": ProgramSplits.shard_map,
}
PRODUCT = ("dot_general", "conv_general_dilated", "ragged_dot_general")


def whole_value(aval) -> Split:
    """The split of a value that is not split; tokens have no axes."""
    return whole(aval) if hasattr(aval, "ndim") else ()


def split_of_spec(spec, ndim: int) -> Split:
    """A PartitionSpec as a split; what it leaves open is not split."""
    names = [() if e is PartitionSpec.UNCONSTRAINED else names_of(e) for e in spec]
    return tuple([*names, *[()] * ndim][:ndim])


def split_of_layout(layout, mesh: Mesh, ndim: int) -> Split | None:
    """A layout as a split over a mesh; ``None``, which says nothing, stays."""
    return None if layout is None else split_of(layout, mesh, ndim)


def layouts_of_program(closed, layouts: tuple, mesh: Mesh) -> list[NamedSharding]:
    """How the results of a closed jaxpr lie on a mesh; remembered on it."""
    return layouts_in_program(closed, layouts, mesh)[0]


def layouts_in_program(
    closed, layouts: tuple, mesh: Mesh
) -> tuple[list[NamedSharding], dict[Inspection, NamedSharding]]:
    """How the results lie, and what is inspected; remembered on the jaxpr."""
    key = (layouts_in_program, layouts, mesh)
    found = closed.memo.get(key)
    if found is None:
        jaxpr = flattened(closed).jaxpr
        splits = ProgramSplits(mesh)
        for v, layout in zip(jaxpr.invars, layouts, strict=True):
            splits.pin(v, split_of(layout, mesh, v.aval.ndim))
        splits.spread(jaxpr)
        said = lambda v: layout_of_split(mesh, splits.of(v)).as_typed(v.aval)
        found = [said(v) for v in jaxpr.outvars], {show: said(v) for show, v in splits.inspected.items()}
        found = closed.memo.setdefault(key, found)
    return found


def whole_on(mesh: Mesh) -> Placement:
    """The placement on a mesh of what is not split."""
    return placement_of(NamedSharding(mesh, PartitionSpec()))
