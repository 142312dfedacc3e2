"""Calls that say themselves how they are split.

In a jaxpr a call is one equation, ``custom_partitioning``. Where splits spread over a program, the user's rule, or the
function that infers layouts from those of the operands, says how those of operands and results hang together; where a
program is made into that of one device, ``partition`` says what a device computes. Everywhere else the function itself
is called: programs that run on one processor run whole.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from catena.core.factors import entry
from catena.core.mesh import get_abstract_mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec
from catena.core.propagation import split_of
from catena.core.source import function_name, function_place
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.struct import ShapeDtypeStruct
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.tree_errors import broadcast_prefix
from catena.core.zeros import get_aval
from catena.experimental.custom_partitioning.rules import SdyShardingRule, factors_of_rule, parsed
from catena.lax.composites import annotated_call
from catena.parallel.moves import Form
from catena.parallel.structure import STRUCTURED, results
from catena.transform.functions import check_callable
from catena.transform.layouts import OTHERS, TIES, ProgramSplits, Tie

custom_partitioning_p = annotated_call("custom_partitioning")


class custom_partitioning:  # noqa: N801
    """A function that says itself how it is split over the devices of a mesh.

    Arguments:
      fun: a function of trees of arrays.
      static_argnums: positions of arguments that are no arrays, and known; the functions that are given to
        ``def_partition`` get them first.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.experimental.custom_partitioning import custom_partitioning
    >>> from catena.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
    >>> @custom_partitioning
    ... def product(x, y):
    ...     return jnp.sin(x) @ y
    >>> @functools.partial(product.def_partition, sharding_rule="i k, k j -> i j", need_replication_factors=("k",))
    ... def partition(mesh, arg_shapes, result_shape):
    ...     shardings = tuple(x.sharding for x in arg_shapes)
    ...     return mesh, lambda x, y: jnp.sin(x) @ y, result_shape.sharding, shardings
    >>> product(jnp.zeros((2, 2)), jnp.ones((2, 2))).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, fun: Callable, static_argnums: int | Iterable[int] = ()):
        check_callable(fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.rules: dict[str, Any] = {}

    def def_partition(
        self,
        partition: Callable,
        infer_sharding_from_operands: Callable | None = None,
        propagate_user_sharding: Callable | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | Callable | None = None,
        *,
        reduction_factors: Iterable[str] = (),
        need_replication_factors: Iterable[str] = (),
        permutation_factors: Iterable[str] = (),
        **factor_sizes: int,
    ) -> Callable:
        """Say how the function is split. Operands and results are given as trees of ``ShapeDtypeStruct``s.

        Arguments:
          partition: from ``(*static, mesh, arg_shapes, result_shape)`` to ``(mesh, function, result_shardings,
            arg_shardings)``: what a device computes of its parts, and how these lie.
          infer_sharding_from_operands: from the same to the shardings of the results, where there is no rule.
          propagate_user_sharding: from ``(*static, mesh, result_shape)`` to the sharding of a result, given what
            follows from its users.
          decode_shardings: True: shardings are ``NamedSharding``s.
          sharding_rule: ``"i k, k j -> i j"``, an ``SdyShardingRule``, or a function of ``(*static, mesh, operands,
            results)`` that gives one.
          reduction_factors, need_replication_factors, permutation_factors, factor_sizes: as for ``SdyShardingRule``, of
            a rule that is a string.
        Returns:
          ``partition``.
        Raises:
          TypeError, ValueError: an argument is not as described.
        """
        given = {"reduction_factors": tuple(reduction_factors)}
        given["need_replication_factors"] = tuple(need_replication_factors)
        given["permutation_factors"] = tuple(permutation_factors)
        given = {name: names for name, names in given.items() if names} | factor_sizes
        if isinstance(sharding_rule, str):
            sharding_rule = parsed(sharding_rule, **given)
        elif given:
            raise ValueError(f"def_partition: {given} belong to a rule that is a string, got {sharding_rule!r}")
        if not (sharding_rule is None or isinstance(sharding_rule, SdyShardingRule) or callable(sharding_rule)):
            raise TypeError(f"def_partition: sharding_rule must be a str, got {type(sharding_rule)}")
        for fun in (partition, infer_sharding_from_operands, propagate_user_sharding):
            if fun is not None:
                check_callable(fun)
        if not decode_shardings:
            raise NotImplementedError("def_partition: shardings are NamedShardings; decode_shardings must be True")
        self.rules = {
            "partition": partition,
            "infer_sharding_from_operands": infer_sharding_from_operands,
            "propagate_user_sharding": propagate_user_sharding,
            "sharding_rule": sharding_rule,
        }
        return partition

    def __call__(self, *args, **kwargs) -> Any:
        """The function, as one equation in jaxprs.

        Raises:
          AttributeError: nobody said how it is split.
        """
        if not self.rules:
            raise AttributeError(f"{function_name(self.fun)} is given no rule: call its def_partition first")
        given = inspect.signature(self.fun).bind(*args, **kwargs)
        given.apply_defaults()
        if given.kwargs:
            raise NotImplementedError(f"{function_name(self.fun)}: {[*given.kwargs]} are keyword-only, and not taken")
        fixed = {i % len(given.args): given.args[i] for i in self.static_argnums}
        moving = tuple(x for i, x in enumerate(given.args) if i not in fixed)
        return self._applied(moving, fixed, len(given.args))

    def _applied(self, moving: tuple, fixed: dict, count: int) -> Any:
        leaves, tree = tree_flatten(moving)
        leaves = [leaf_value(x) for x in leaves]
        trees = {}

        def flat(*xs):
            rest = iter(tree_unflatten(tree, xs))
            outs = self.fun(*[fixed[i] if i in fixed else next(rest) for i in range(count)])
            found, trees["out"] = tree_flatten(outs)
            return [leaf_value(x) for x in found]

        info = DebugInfo("custom_partitioning", function_name(self.fun))
        jaxpr, outer = trace_to_closed_jaxpr(flat, [get_aval(x) for x in leaves], info)
        if outer:
            raise ValueError(
                f"custom_partitioning: {function_place(self.fun)} uses traced values that are no arguments of it, of "
                "which its rule says nothing; pass them as arguments"
            )
        static = tuple(fixed[i] for i in sorted(fixed))
        params = {"in_tree": tree, "out_tree": trees["out"], "static_args": static, **self.rules}
        return tree_unflatten(trees["out"], custom_partitioning_p.bind(*leaves, jaxpr=jaxpr, **params))


# ---- what the user says of one application


def structs(tree, mesh, avals, splits) -> Any:
    """A tree of types and layouts, whose specs have an entry for each axis; a split that is None says nothing."""
    specs = [None if split is None else PartitionSpec(*map(entry, split)) for split in splits]
    layouts = [None if spec is None else NamedSharding(mesh, spec) for spec in specs]
    return tree.unflatten([ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in zip(avals, layouts, strict=True)])


def splits_of(shardings, tree, mesh, avals) -> list:
    """A tree of shardings, or a prefix of it, as the splits of its leaves."""
    leaves = broadcast_prefix(shardings, tree.unflatten([0] * tree.num_leaves), is_leaf=lambda x: x is None)
    return [split_of(layout, mesh, aval.ndim) for layout, aval in zip(leaves, avals, strict=True)]


def factors(avals, outs, params, mesh=None) -> list:
    """The index ranges of the user's rule; none where there is no rule."""
    rule = params["sharding_rule"]
    if rule is not None and not isinstance(rule, SdyShardingRule):
        operands, found = ([ShapeDtypeStruct(a.shape, a.dtype) for a in side] for side in (avals, outs))
        rule = rule(*params["static_args"], mesh or get_abstract_mesh(), operands, found)
        rule = parsed(rule) if isinstance(rule, str) else rule
    if not isinstance(rule, SdyShardingRule | None):
        raise TypeError(f"custom_partitioning: the rule must be a str or an SdyShardingRule, got {rule!r}")
    return [] if rule is None else factors_of_rule(rule, avals, outs)


def tie(splits: ProgramSplits, eqn) -> None:
    """What the rule ties together, or the layouts of results that follow from those of operands."""
    avals, outs = [x.aval for x in eqn.invars], [v.aval for v in eqn.outvars]
    values = [*eqn.invars, *eqn.outvars]
    if eqn.own_params["sharding_rule"] is not None:
        whole = getattr(eqn.own_params["sharding_rule"], "need_replication_factors", ())
        found = factors(avals, outs, eqn.own_params, splits.mesh)
        tied = [f._replace(operands=f.operands + f.results) for f in found if f.kind == "pass" or not whole]
        splits.ties.append(Tie(eqn.primitive, values, tied, OTHERS))
    elif eqn.own_params["infer_sharding_from_operands"] is not None:
        splits.ties.append(Tie(eqn.primitive, values, [], OTHERS, functools.partial(inferred, eqn)))


def inferred(eqn, splits: ProgramSplits) -> list:
    """Extend what is known of results by what the user infers; those of which more is known now."""
    params, mesh = eqn.own_params, splits.mesh
    avals, outs = [x.aval for x in eqn.invars], [v.aval for v in eqn.outvars]
    given = structs(params["in_tree"], mesh, avals, [splits.of(x) for x in eqn.invars])
    wanted = structs(params["out_tree"], mesh, outs, [None] * len(outs))
    said = params["infer_sharding_from_operands"](*params["static_args"], mesh, given, wanted)
    grown = []
    for v, found in zip(eqn.outvars, splits_of(said, params["out_tree"], mesh, outs), strict=True):
        more = splits.extended(v, splits.of(v), found)
        if more != splits.of(v):
            splits.split[v] = more
            grown.append(v)
    return grown


def partitioned(p, eqn, values) -> list:
    """What one device computes, as the user says."""
    params, mesh, static = eqn.own_params, p.mesh, eqn.own_params["static_args"]
    avals, outs = [x.aval for x in eqn.invars], [v.aval for v in eqn.outvars]
    given = structs(params["in_tree"], mesh, avals, [p.planned(x) for x in eqn.invars])
    wanted = structs(params["out_tree"], mesh, outs, [p.planned(v) for v in eqn.outvars])
    if params["propagate_user_sharding"] is not None:
        said = params["propagate_user_sharding"](*static, mesh, wanted)
        wanted = structs(params["out_tree"], mesh, outs, splits_of(said, params["out_tree"], mesh, outs))
    _, function, out_shardings, arg_shardings = params["partition"](*static, mesh, given, wanted)
    ins = [p.without_trivial(s) for s in splits_of(tuple(arg_shardings), params["in_tree"], mesh, avals)]
    ends = [p.without_trivial(s) for s in splits_of(out_shardings, params["out_tree"], mesh, outs)]
    xs = [p.get(v, Form(split), eqn, i) for i, (v, split) in enumerate(zip(values, ins, strict=True))]
    found, tree = tree_flatten(function(*params["in_tree"].unflatten(xs)))
    if tree != params["out_tree"]:
        raise TypeError(f"what partition gave returns {tree}, and the function {params['out_tree']}")
    for x, v, split in zip(found, eqn.outvars, ends, strict=True):
        part = p.local_aval(v.aval, split)
        if get_aval(x).shape != part.shape:
            raise ValueError(
                f"what partition gave returns a part of shape {get_aval(x).shape}; that of {v.aval.str_short()}, which "
                f"lies as {split}, has the shape {part.shape}"
            )
    return results(p, eqn, ends, found)


custom_partitioning_p.sharding = factors
TIES[custom_partitioning_p.name] = tie
STRUCTURED[custom_partitioning_p.name] = partitioned
