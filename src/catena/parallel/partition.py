"""A program of whole arrays as the program of one device of a mesh, with the collectives that it takes.

First splits are spread over the program (``transform/layouts.py``); then it is run equation by equation on the parts of
one device and written down. For each operation ``choice.py`` finds the cheapest split, given how the operands lie and
how the results should; ``moves.py`` brings operands there. Sums over the mesh are taken as late as is cheap: a value
may stay a term of a sum through what is linear. What no rule speaks of is computed by every device, of whole operands.

The idea is that of GSPMD (Xu et al., 2021) and Alpa's choice by cost (Zheng et al., 2022), for one operation at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from catena.core.context import context
from catena.core.dead_code import dead_code_elimination
from catena.core.factors import AS_CALLED, factors_of, rule_of
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from catena.core.mesh import AbstractMesh, Mesh
from catena.core.partition_spec import PartitionSpec
from catena.core.propagation import Split
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.zeros import get_aval
from catena.lax.collectives import pmax_p, pmin_p
from catena.lax.convert import convert_element_type
from catena.lax.exchanges import all_gather
from catena.parallel import halos, linear, moves, structure
from catena.parallel.choice import SPLITTABLE, Choice, choose, operation
from catena.parallel.moves import COLLECTIVES, Form, Move
from catena.parallel.primitive import as_whole, shard_map_p
from catena.parallel.region import Region, inside
from catena.parallel.rules import local_params
from catena.parallel.values import Value
from catena.parallel.views import VIEWS
from catena.parallel.windowed import WINDOWED, is_split, split_names
from catena.transform.flattened import called, flattened
from catena.transform.layouts import CONSTRAINTS, ProgramSplits, whole_value


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


class Partitioned(NamedTuple):
    """The program of one device, and how arguments and results are laid out."""

    jaxpr: ClosedJaxpr
    mesh: Mesh | AbstractMesh
    in_specs: tuple
    out_specs: tuple
    sent: tuple

    @property
    def params(self) -> dict:
        """The parameters of the equation ``shard_map`` that runs it."""
        names = frozenset(self.mesh.axis_names)
        specs = {"in_specs": self.in_specs, "out_specs": self.out_specs}
        return {"jaxpr": self.jaxpr, "mesh": self.mesh, "newly_manual_axes": names, "check_vma": False, **specs}

    def __call__(self, *args) -> list:
        """The results for whole arrays."""
        return shard_map_p.bind(*args, **self.params)


def partition(closed: ClosedJaxpr, mesh, in_splits: tuple, out_splits: tuple | None = None) -> Partitioned:
    """The program of one device.

    Arguments:
      closed: the program of whole arrays.
      mesh: the mesh.
      in_splits: for each argument its split, or ``None`` where it may be split in any way.
      out_splits: for each result likewise; by default they may.
    """
    key = (partition, mesh, in_splits, out_splits)
    found = closed.memo.get(key)
    if found is None:
        found = closed.memo.setdefault(key, Partitioner(mesh).partitioned(closed, in_splits, out_splits))
    return found


class Partitioner:
    """Makes the program of one device, by running a program of whole arrays on its parts."""

    def __init__(self, mesh):
        self.mesh = mesh
        self.sizes = {n: k for n, k in mesh.shape.items() if k > 1}
        self.region = Region(mesh, tuple(mesh.axis_names), False)
        self.splits = ProgramSplits(mesh)
        self.sent: list[Sent] = []
        self.times = 1

    def partitioned(self, closed: ClosedJaxpr, in_splits, out_splits) -> Partitioned:
        flat = flattened(closed, self.called)
        jaxpr, _ = dead_code_elimination(flat.jaxpr, [True] * len(closed.out_avals))
        jaxpr = Jaxpr(jaxpr.constvars, flat.jaxpr.invars, jaxpr.outvars, jaxpr.eqns, None, jaxpr.debug_info)
        for v in jaxpr.constvars:
            self.splits.pin(v, whole_value(v.aval))
        for v, split in zip(jaxpr.invars, in_splits, strict=True):
            if split is not None:
                self.splits.pin(v, self.without_trivial(split))
        wanted = out_splits or (None,) * len(jaxpr.outvars)
        for v, split in zip(jaxpr.outvars, wanted, strict=True):
            if split is not None and v not in jaxpr.invars:
                self.splits.pin(v, self.without_trivial(split))
        self.splits.spread(jaxpr)
        ins = [self.planned(v) for v in jaxpr.invars]
        outs = [
            self.planned(v) if split is None else self.without_trivial(split)
            for v, split in zip(jaxpr.outvars, wanted, strict=True)
        ]
        local, consts = self.traced(jaxpr, ins, outs, flat.consts)
        specs = [tuple(PartitionSpec(*[e or None for e in split]) for split in side) for side in (ins, outs)]
        return Partitioned(ClosedJaxpr(local, consts), self.mesh, *specs, tuple(self.sent))

    def called(self, eqn: Eqn):
        """What stands in the place of a call; a ``shard_map`` over some of the mesh's axes only is taken as a whole."""
        if eqn.primitive is shard_map_p and not self.is_ours(eqn):
            return as_whole(eqn.params)
        return called(eqn)

    def is_ours(self, eqn: Eqn) -> bool:
        """Whether a ``shard_map`` is over all axes of this mesh."""
        mesh, names = eqn.params["mesh"], eqn.params["newly_manual_axes"]
        return mesh.shape_tuple == self.mesh.shape_tuple and set(names) == set(mesh.axis_names)

    def without_trivial(self, split: Split) -> Split:
        """A split without axes of the mesh that have one device."""
        return tuple(tuple(n for n in names if n in self.sizes) for names in split)

    def planned(self, x) -> Split:
        """How a value is to lie."""
        return self.without_trivial(self.splits.of(x))

    def ways(self, names) -> int:
        return math.prod(self.sizes[n] for n in names)

    def local_aval(self, aval, split: Split):
        """The type of a device's part."""
        if not any(split):
            return structure.untyped(aval)
        shape = tuple(n // self.ways(names) for n, names in zip(aval.shape, split, strict=True))
        return structure.untyped(aval).update(shape=shape)

    # ---- running a program

    def traced(self, jaxpr: Jaxpr, ins: list[Split], outs: list[Split], consts=()) -> tuple:
        """A jaxpr as the jaxpr of one device, which takes arguments and gives results in these splits."""

        def fun(*args):
            values = [Value(v.aval, Form(s), x) for v, s, x in zip(jaxpr.invars, ins, args, strict=True)]
            found = self.run(jaxpr, consts, values)
            return [self.get(v, Form(split), None, "a result") for v, split in zip(found, outs, strict=True)]

        avals = [self.local_aval(v.aval, s) for v, s in zip(jaxpr.invars, ins, strict=True)]
        with inside(self.region):
            return trace_to_jaxpr(fun, avals, jaxpr.debug_info or DebugInfo("partition", "a program"))

    def body(self, closed: ClosedJaxpr, ins: list[Split], outs: list[Split], times: int = 1) -> ClosedJaxpr:
        """A body of a loop as that of one device."""
        self.times *= times
        try:
            return ClosedJaxpr(*self.traced(closed.jaxpr, ins, outs, closed.consts))
        finally:
            self.times //= times

    def run(self, jaxpr: Jaxpr, consts, args: list[Value]) -> list[Value]:
        """Run a program on parts."""
        env: dict[Var, Value] = dict(zip(jaxpr.invars, args, strict=True))
        for v, x in zip(jaxpr.constvars, consts, strict=True):
            env[v] = Value(v.aval, Form(whole_value(v.aval)), x)
        uses = Counter(x for eqn in jaxpr.eqns for x in eqn.invars if type(x) is Var)
        uses.update(x for x in jaxpr.outvars if type(x) is Var)

        def read(x) -> Value:
            return Value(x.aval, Form(whole_value(x.aval)), x.val) if type(x) is Literal else env[x]

        before = context.source
        try:
            for eqn in jaxpr.eqns:
                context.source = eqn.source or before
                values = [read(x) for x in eqn.invars]
                env.update(zip(eqn.outvars, self.equation(eqn, values, uses), strict=True))
        finally:
            context.source = before
        return [read(x) for x in jaxpr.outvars]

    def equation(self, eqn: Eqn, values: list[Value], uses) -> list[Value]:
        name = eqn.primitive.name
        if name in CONSTRAINTS:
            form = Form(self.planned(eqn.outvars[0]))
            return [Value(eqn.outvars[0].aval, form, self.get(values[0], form, eqn, "the constraint"), eqn)]
        if name in structure.STRUCTURED:
            return structure.STRUCTURED[name](self, eqn, values)
        if name in VIEWS:
            view = VIEWS[name](self, eqn, values)
            if view is not None:
                return [view]
        rule = rule_of(eqn.primitive)
        split = any(value.is_split for value in values)
        if rule is AS_CALLED or not rule or not (split or any(any(self.planned(v)) for v in eqn.outvars)):
            return self.replicated(eqn, values)
        return self.operation(eqn, values, uses)

    def replicated(self, eqn: Eqn, values: list[Value]) -> list[Value]:
        """Every device computes the whole, of whole operands."""
        xs = [self.get(v, Form(whole_value(v.aval)), eqn, i) for i, v in enumerate(values)]
        outs = bound(eqn.primitive, xs, eqn.params)
        return [Value(v.aval, Form(whole_value(v.aval)), x, eqn) for v, x in zip(eqn.outvars, outs, strict=True)]

    def operation(self, eqn: Eqn, values: list[Value], uses) -> list[Value]:
        """An operation that has a rule, split in the cheapest way."""
        avals, outs = tuple(v.aval for v in values), [v.aval for v in eqn.outvars]
        window = WINDOWED.get(eqn.primitive.name)
        factors = factors_of(eqn.primitive, avals, outs, eqn.params)
        kinds = SPLITTABLE
        if window is not None:
            factors, kinds = window.factors(eqn, factors), (*SPLITTABLE, *window.kinds)
        plans = [self.planned(v) for v in eqn.outvars]
        kept = linear.kept_sums(eqn, values, uses)
        proposals = [self.proposal(v) for v in values] + plans

        def price(way: Choice) -> float:
            if any(set(names) & set(kept) for names in way.names):
                return math.inf
            total = sum(
                self.cost(v, Form(split, kept if v.partial and kept else ()))
                for v, split in zip(values, way.operands, strict=True)
            )
            later = kept + tuple(n for kind, names in way.reduced if kind == "sum" for n in names)
            if window and window.sums:
                later += split_names(window, factors, way)
            now = tuple(n for kind, names in way.reduced if kind != "sum" for n in names)
            for aval, split, plan in zip(outs, way.results, plans, strict=True):
                if any(n % self.ways(names) for n, names in zip(aval.shape, split, strict=True)):
                    return math.inf
                size = self.part_size(aval, split)
                total += moves.cost(moves.moves(Form(split, later), Form(plan)), size, self.sizes)
                total += 2 * size * (1 - 1 / self.ways(now))
            return total + (window.price(self, eqn, way) if window and is_split(window, factors, way) else 0)

        way = choose(operation(factors, avals, outs, kinds), proposals, price, self.sizes)
        xs = [
            self.get(v, Form(split, kept if v.partial and kept else ()), eqn, i)
            for i, (v, split) in enumerate(zip(values, way.operands, strict=True))
        ]
        local = [self.local_aval(a, s) for a, s in zip(outs, way.results, strict=True)]
        params = local_params(eqn.primitive, [get_aval(x) for x in xs], local, eqn.params)
        if window and is_split(window, factors, way):
            names = split_names(window, factors, way)
            kept += names if window.sums else ()
            results = window.run(self, eqn, way, xs, params, names)
        else:
            results = bound(eqn.primitive, xs, params)
        maker = next((v.maker for v in values if v.partial and kept and not way.reduced), None)
        return self.reduced(eqn, way, kept, results, maker or eqn)

    def reduced(self, eqn: Eqn, way: Choice, partial: tuple, results: list, maker: Eqn) -> list[Value]:
        """The results of an operation, its extrema taken, its sums left; ``maker`` is who began these."""
        for kind, names in way.reduced:
            if kind == "sum":
                partial += names
            else:
                results = [self.fold(kind, names, x, eqn) for x in results]
        return [
            Value(v.aval, Form(split, partial), x, maker)
            for v, split, x in zip(eqn.outvars, way.results, results, strict=True)
        ]

    def fold(self, kind: str, names: tuple, x, eqn: Eqn):
        """What the devices along axes of the mesh have, reduced."""
        aval = get_aval(x)
        why = f"{eqn.primitive} along axes that are split"
        if kind in ("max", "min") or aval.dtype == bool:
            primitive = pmax_p if kind in ("max", "or") else pmin_p
            number = convert_element_type(x, np.int32) if aval.dtype == bool else x
            size = get_aval(number).size * get_aval(number).dtype.itemsize
            self.tell(str(primitive), names, moves.sent(Move("sum", names), size, self.ways(names)), eqn, why)
            found = primitive.bind(number, axes=names, axis_index_groups=None)[0]
            return convert_element_type(found, aval.dtype) if aval.dtype == bool else found
        rows = all_gather(x, names, axis=0)
        self.tell("all_gather", names, aval.size * aval.dtype.itemsize * (self.ways(names) - 1), eqn, why)
        return eqn.primitive.bind(rows, axes=(0,))

    # ---- values in forms

    value = Value

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
        return moves.cost(moves.moves(have, form), self.part_size(value.aval, have.split), self.sizes)

    def get(self, value: Value, form: Form, eqn: Eqn | None, what: int | str):
        """A device's part of a value in this form; what is met on the way is remembered."""
        if form in value.forms:
            return value.forms[form]
        have = min(value.forms, key=lambda have: self.cost_from(value, have, form), default=None)
        known = math.inf if have is None else self.cost_from(value, have, form)
        if have is None or (value.base is not None and self.cost_of_view(value, form) < known):
            have = Form(self.viewable(value, form.split))
            value.forms[have] = self.viewed(value, have.split, eqn, what)
        x = value.forms[have]
        for move, now in moves.moves(have, form):
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
        return total + moves.cost(moves.moves(Form(split), form), self.part_size(value.aval, split), self.sizes)

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
            size = moves.sent(move, get_aval(x).size * get_aval(x).dtype.itemsize, self.ways(move.names))
            self.tell(COLLECTIVES[move.kind], move.names, size, eqn, self.reason(value, eqn, what), value)

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


def bound(primitive, xs: list, params: dict) -> list:
    """The results of a primitive as a list."""
    out = primitive.bind(*xs, **params)
    return list(out) if primitive.multiple_results else [out]
