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

import numpy as np

from catena.core.context import context
from catena.core.dead_code import dead_code_elimination
from catena.core.factors import AS_CALLED, factors_of, rule_of
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from catena.core.mesh import AbstractMesh, Mesh
from catena.core.named import NamedTuple
from catena.core.partition_spec import PartitionSpec
from catena.core.propagation import Split
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.zeros import get_aval
from catena.lax.collectives import pmax_p, pmin_p
from catena.lax.convert import convert_element_type
from catena.lax.exchanges import all_gather
from catena.parallel import linear, moves, structure
from catena.parallel.choice import SPLITTABLE, Choice, choose, operation
from catena.parallel.forms import Forms
from catena.parallel.moves import Form, Move
from catena.parallel.primitive import as_whole, shard_map_p
from catena.parallel.region import Region, inside
from catena.parallel.rules import local_params
from catena.parallel.values import Value
from catena.parallel.views import VIEWS
from catena.parallel.windowed import WINDOWED, is_split, split_names
from catena.transform.flattened import called, flattened
from catena.transform.layouts import CONSTRAINTS, ProgramSplits, whole_value


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


class Partitioner(Forms):
    """Makes the program of one device, by running a program of whole arrays on its parts."""

    def __init__(self, mesh):
        super().__init__(mesh)
        self.region = Region(mesh, tuple(mesh.axis_names), False)
        self.splits = ProgramSplits(mesh)

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
        self.check_divides(jaxpr.invars, ins, "argument")
        self.check_divides(jaxpr.outvars, outs, "result")
        local, consts = self.traced(jaxpr, ins, outs, flat.consts)
        specs = [tuple(PartitionSpec(*[e or None for e in split]) for split in side) for side in (ins, outs)]
        return Partitioned(ClosedJaxpr(local, consts), self.mesh, *specs, tuple(self.sent))

    def check_divides(self, variables, splits: list[Split], what: str) -> None:
        """Raise ValueError where an array cannot be split so."""
        for i, (v, split) in enumerate(zip(variables, splits, strict=True)):
            for axis, names in enumerate(split):
                if v.aval.shape[axis] % self.ways(names):
                    raise ValueError(
                        f"{what} {i} of type {v.aval.str_short()} is laid out over {names} along axis {axis}, which "
                        f"makes {self.ways(names)} parts of {v.aval.shape[axis]} elements"
                    )

    def called(self, eqn: Eqn):
        """What stands in the place of a call; a ``shard_map`` over some of the mesh's axes only is taken as a whole."""
        if eqn.primitive is shard_map_p and not self.is_ours(eqn):
            return as_whole(eqn.own_params)
        return called(eqn)

    def is_ours(self, eqn: Eqn) -> bool:
        """Whether a ``shard_map`` is over all axes of this mesh."""
        mesh, names = eqn.own_params["mesh"], eqn.own_params["newly_manual_axes"]
        return mesh.shape_tuple == self.mesh.shape_tuple and set(names) == set(mesh.axis_names)

    def without_trivial(self, split: Split) -> Split:
        """A split without axes of the mesh that have one device."""
        return tuple(tuple(n for n in names if n in self.sizes) for names in split)

    def planned(self, x) -> Split:
        """How a value is to lie."""
        return self.without_trivial(self.splits.of(x))

    # ---- running a program

    def traced(self, jaxpr: Jaxpr, ins: list[Split], outs: list[Split], consts=(), terms: dict | None = None) -> tuple:
        """A jaxpr as the jaxpr of one device, which takes arguments and gives results in these splits.

        Arguments:
          terms: the numbers of results that may stay terms of a sum over the mesh; at them, those of arguments to which
            something is added there, or ``None``. Afterwards the axes of the mesh over which they do stand there.
        """
        terms = {} if terms is None else terms

        def fun(*args):
            values = [Value(v.aval, Form(s), x) for v, s, x in zip(jaxpr.invars, ins, args, strict=True)]
            for i in terms.values():
                if i is not None:
                    values[i].open = True
            found = self.run(jaxpr, consts, values, terms)
            terms.update(
                {k: linear.kept_terms(found[k] if i is None else values[i], outs[k]) for k, i in terms.items()}
            )
            forms = [Form(split, terms.get(k, ())) for k, split in enumerate(outs)]
            return [self.get(v, form, None, "a result") for v, form in zip(found, forms, strict=True)]

        avals = [self.local_aval(v.aval, s) for v, s in zip(jaxpr.invars, ins, strict=True)]
        with inside(self.region):
            return trace_to_jaxpr(fun, avals, jaxpr.debug_info or DebugInfo("partition", "a program"))

    def body(self, closed: ClosedJaxpr, ins: list[Split], outs: list[Split], times: int = 1, terms=None) -> ClosedJaxpr:
        """A body of a loop as that of one device; ``terms`` is as for ``traced``."""
        self.times *= times
        try:
            return ClosedJaxpr(*self.traced(closed.jaxpr, ins, outs, closed.consts, terms))
        finally:
            self.times //= times

    def run(self, jaxpr: Jaxpr, consts, args: list[Value], terms=()) -> list[Value]:
        """Run a program on parts. Its results with the numbers ``terms`` may be terms of sums."""
        env: dict[Var, Value] = dict(zip(jaxpr.invars, args, strict=True))
        for v, x in zip(jaxpr.constvars, consts, strict=True):
            env[v] = Value(v.aval, Form(whole_value(v.aval)), x)
        uses = Counter(x for eqn in jaxpr.eqns for x in eqn.invars if type(x) is Var)
        uses.update(x for k, x in enumerate(jaxpr.outvars) if type(x) is Var and k not in terms)

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
        if name in linear.SUMS:
            linear.open_sum(eqn, values, uses)
        if values and values[0].open and linear.is_same(eqn):
            return values
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
        outs = bound(eqn.primitive, xs, eqn.own_params)
        return [Value(v.aval, Form(whole_value(v.aval)), x, eqn) for v, x in zip(eqn.outvars, outs, strict=True)]

    def operation(self, eqn: Eqn, values: list[Value], uses) -> list[Value]:
        """An operation that has a rule, split in the cheapest way."""
        avals, outs = tuple(v.aval for v in values), [v.aval for v in eqn.outvars]
        window = WINDOWED.get(eqn.primitive.name)
        factors = factors_of(eqn.primitive, avals, outs, eqn.own_params)
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
                total += moves.cost(moves.moves(Form(split, later), Form(plan), self.sizes), size, self.sizes)
                total += 2 * size * (1 - 1 / self.ways(now))
            return total + (window.price(self, eqn, way) if window and is_split(window, factors, way) else 0)

        way = choose(operation(factors, avals, outs, kinds), proposals, price, self.sizes)
        xs = [
            self.get(v, Form(split, kept if v.partial and kept else ()), eqn, i)
            for i, (v, split) in enumerate(zip(values, way.operands, strict=True))
        ]
        local = [self.local_aval(a, s) for a, s in zip(outs, way.results, strict=True)]
        params = local_params(eqn.primitive, [get_aval(x) for x in xs], local, eqn.own_params)
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
        if kind in ("max", "min") or (aval.dtype == bool and kind in ("and", "or")):
            primitive = pmax_p if kind in ("max", "or") else pmin_p
            number = convert_element_type(x, np.int32) if aval.dtype == bool else x
            size = get_aval(number).size * get_aval(number).dtype.itemsize
            self.tell(str(primitive), names, moves.sent(Move("sum", names), size, self.sizes), eqn, why)
            found = primitive.bind(number, axes=names, axis_index_groups=None)[0]
            return convert_element_type(found, aval.dtype) if aval.dtype == bool else found
        rows = all_gather(x, names, axis=0)
        self.tell("all_gather", names, aval.size * aval.dtype.itemsize * (self.ways(names) - 1), eqn, why)
        return eqn.primitive.bind(rows, axes=(0,))


def bound(primitive, xs: list, params: dict) -> list:
    """The results of a primitive as a list."""
    out = primitive.bind(*xs, **params)
    return list(out) if primitive.multiple_results else [out]
