"""How the results of a program lie on a mesh, given how its arguments do: from equation to equation, forwards."""

from __future__ import annotations

import functools

from catena.core.factors import AS_CALLED, rule_of
from catena.core.jaxpr import Literal
from catena.core.mesh import Mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec, names_of
from catena.core.placement import Placement
from catena.core.propagation import Split, Splits, layout_of_split, merged, split_of, whole
from catena.core.sharding import placement_of


class ProgramSplits(Splits):
    """The way of splits over one mesh through programs."""

    def of_program(self, jaxpr, splits: list[Split]) -> list[Split]:
        """The splits of a jaxpr's results."""
        known = dict(zip(jaxpr.invars, splits, strict=True))

        def read(x) -> Split:
            return whole(x.aval) if isinstance(x, Literal) else known.get(x) or whole(x.aval)

        for eqn in jaxpr.eqns:
            outs = self.of_operation(
                eqn.primitive,
                tuple(x.aval for x in eqn.invars),
                [v.aval for v in eqn.outvars],
                eqn.params,
                [read(x) for x in eqn.invars],
            )
            known.update(zip(eqn.outvars, outs, strict=True))
        return [read(x) for x in jaxpr.outvars]

    def of_operation(self, primitive, avals, outs, params, splits: list[Split]) -> list[Split]:
        """The splits of an operation's results."""
        if primitive.name in CONSTRAINTS:
            return [self.constrained(params["sharding"], splits[0])]
        if primitive.name in CALLS:
            return CALLS[primitive.name](self, params, splits)
        if rule_of(primitive) is AS_CALLED:
            return self.of_call(avals, outs, params, splits)
        return super().of_operation(primitive, avals, outs, params, splits)

    def of_call(self, avals, outs, params, splits: list[Split]) -> list[Split]:
        """What calls a jaxpr on its operands is split as this; of other calls nothing is known."""
        inner = next((j for name in BODIES if (j := params.get(name)) is not None), None)
        jaxpr = getattr(inner, "jaxpr", inner)
        if jaxpr is None or len(jaxpr.invars) != len(avals) or len(jaxpr.outvars) != len(outs):
            return [whole(a) for a in outs]
        return self.of_program(jaxpr, splits)

    def constrained(self, sharding, split: Split) -> Split:
        """The split that a constraint asks for, where it is one for this mesh."""
        spec = getattr(sharding, "spec", None)
        if spec is None or sharding.mesh.shape_tuple != self.mesh.shape_tuple:
            return split
        wanted = [*map(names_of, spec), *[()] * len(split)]
        free = [e is PartitionSpec.UNCONSTRAINED for e in spec] + [False] * len(split)
        return tuple(own if f else w for own, w, f in zip(split, wanted, free, strict=False))

    def scan(self, params, splits: list[Split]) -> list[Split]:
        """A scan: the axis that is scanned is walked along, and not split; what is carried keeps what all steps say."""
        fixed, carried = params["num_consts"], params["num_carry"]
        rows = [s[1:] for s in splits[fixed + carried :]]
        body = params["jaxpr"].jaxpr
        carry = splits[fixed : fixed + carried]
        outs = self.of_program(body, [*splits[:fixed], *carry, *rows])
        carry = [agreed(a, b) for a, b in zip(carry, outs, strict=False)]
        outs = self.of_program(body, [*splits[:fixed], *carry, *rows])
        return [*carry, *[((), *s) for s in outs[carried:]]]

    def loop(self, params, splits: list[Split]) -> list[Split]:
        """A while loop: what is carried keeps what all steps say."""
        first = params["cond_nconsts"]
        carry = splits[first + params["body_nconsts"] :]
        outs = self.of_program(params["body_jaxpr"].jaxpr, splits[first:])
        return [agreed(a, b) for a, b in zip(carry, outs, strict=True)]

    def branches(self, params, splits: list[Split]) -> list[Split]:
        """A condition: the results are split as in all of its branches."""
        outs = [self.of_program(b.jaxpr, splits[1:]) for b in params["branches"]]
        return [functools.reduce(agreed, ways) for ways in zip(*outs, strict=True)]

    def shard_map(self, params, splits: list[Split]) -> list[Split]:
        """What is put together of the parts of devices is split as it says."""
        outs = params["jaxpr"].out_avals
        if params["mesh"].shape_tuple != self.mesh.shape_tuple:
            return [whole(a) for a in outs]
        specs = zip(params["out_specs"], outs, strict=True)
        return [tuple([*map(names_of, spec), *[()] * a.ndim][: a.ndim]) for spec, a in specs]


CONSTRAINTS = ("sharding_constraint", "reshard")
CALLS = {
    "scan": ProgramSplits.scan,
    "while": ProgramSplits.loop,
    "cond": ProgramSplits.branches,
    "shard_map": ProgramSplits.shard_map,
}
BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")


def agreed(a: Split, b: Split) -> Split:
    """A split that goes with both, axis by axis."""
    return tuple(map(merged, a, b))


def layouts_of_program(closed, layouts: tuple, mesh: Mesh) -> list[NamedSharding]:
    """How the results of a closed jaxpr lie on a mesh; remembered on it."""
    key = (layouts_of_program, layouts, mesh)
    found = closed.memo.get(key)
    if found is None:
        splits = [split_of(x, mesh, v.aval.ndim) for x, v in zip(layouts, closed.jaxpr.invars, strict=True)]
        results = ProgramSplits(mesh).of_program(closed.jaxpr, splits)
        found = [layout_of_split(mesh, s).as_typed(v.aval) for s, v in zip(results, closed.jaxpr.outvars, strict=True)]
        found = closed.memo.setdefault(key, found)
    return found


def whole_on(mesh: Mesh) -> Placement:
    """The placement on a mesh of what is not split."""
    return placement_of(NamedSharding(mesh, PartitionSpec()))
