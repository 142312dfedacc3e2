"""Functions that say themselves how they are split: their rules, how results lie, and what one device computes."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.aval import ShapedArray
from catena.core.factors import Factor
from catena.experimental.custom_partitioning import ArrayMapping, CompoundFactor, SdyShardingRule, custom_partitioning
from catena.experimental.custom_partitioning.rules import factors_of_rule, parsed
from catena.parallel.partition import partition
from catena.sharding import AbstractMesh, NamedSharding
from catena.sharding import PartitionSpec as P  # noqa: N817
from catena.tools import explain_sharding

MESH = AbstractMesh((2, 4), ("x", "y"))


def types(*shapes):
    return [ShapedArray(shape, np.dtype("float32")) for shape in shapes]


def array(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, P(*spec)))


def test_rules_are_read():
    rule = parsed("... i k, k j -> ... i j", need_replication_factors=("k",))
    assert rule.operand_mappings == (("…", "i", "k"), ("k", "j")) and rule == parsed(
        "...i k,k j->...i j", need_replication_factors=["k"]
    )
    assert factors_of_rule(rule, types((5, 2, 3), (3, 4)), types((5, 2, 4))) == [
        Factor(5, (0, None), (0,)),
        Factor(2, (1, None), (1,)),
        Factor(3, (2, 0), (None,), "replicate"),
        Factor(4, (None, 1), (2,)),
    ]
    compound = SdyShardingRule((ArrayMapping(CompoundFactor("i", "j")),), (ArrayMapping("i", "j"),))
    assert parsed("(i j) -> i j") == compound and hash(parsed("(i j) -> i j")) == hash(compound)
    assert factors_of_rule(compound, types((6,)), types((2, 3))) == [Factor(2, (0,), (0,)), Factor(3, (0,), (1,))]
    assert [f.size for f in factors_of_rule(parsed("(i j) -> (i j)", i=3), types((6,)), types((6,)))] == [3, 2]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("i k, k j", {}, "->"),
        ("i -> i)", {}, "brackets"),
        ("k ... -> k", {}, "first axes"),
        ("i 1 -> i", {}, "letter"),
        ("(i) -> i", {}, "at least two"),
        ("i -> i", {"i": 2}, "whole axis"),
        ("i -> i", {"reduction_factors": ("z",)}, "not used"),
    ],
)
def test_bad_rules_are_refused(text, options, message):
    with pytest.raises(ValueError, match=message):
        custom_partitioning(lambda x: x).def_partition(lambda *args: args, sharding_rule=text, **options)


def test_rules_must_fit():
    for text, operand in (("i j -> i j", (2,)), ("(i j) -> (i j)", (6,)), ("i, j -> i", (2,)), ("i i -> i", (2, 3))):
        with pytest.raises(ValueError, match="rule|axis|axes"):
            factors_of_rule(parsed(text), types(operand), types(operand))


def product(**options):
    """A product whose parts are summed by hand, and what ``partition`` was told."""
    told = []

    @custom_partitioning
    def f(x, y):
        return jnp.sin(x) @ y

    def parts(mesh, arg_shapes, result_shape):
        told.append([s.sharding.spec for s in (*arg_shapes, result_shape)])
        over = arg_shapes[0].sharding.spec[1]

        def local(x, y):
            part = jnp.sin(x) @ y
            return lax.psum(part, over) if over else part

        first = NamedSharding(mesh, P(result_shape.sharding.spec[0], over))
        return mesh, local, NamedSharding(mesh, P(result_shape.sharding.spec[0])), (first, NamedSharding(mesh, P(over)))

    f.def_partition(parts, **options)
    return f, told


def test_what_one_device_computes_is_the_user_s():
    f, told = product(sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    closed = jax.make_jaxpr(f)(jnp.zeros((8, 4)), jnp.zeros((4, 3)))
    local = partition(closed, MESH, ((("x",), ("y",)), (("y",), ())), None)
    assert told == [[P("x", "y"), P("y", None), P("x", None)]] and tuple(local.out_specs) == (P("x", None),)
    assert [v.aval.shape for v in local.jaxpr.jaxpr.invars] == [(4, 1), (1, 3)] and "psum" in str(local.jaxpr)


def test_results_lie_as_is_inferred():
    infer = lambda mesh, arg_shapes, result_shape: arg_shapes[0].sharding  # noqa: E731
    f, told = product(infer_sharding_from_operands=infer)
    explain_sharding(lambda x, y: f(x, y) + 1)(array((8, 4), "x", None), array((4, 4)))
    assert told[-1][2] == P("x", None)


def test_without_a_mesh_the_function_is_called():
    f, told = product(sharding_rule=lambda mesh, operands, results: "i k, k j -> i j")
    x, y = jnp.ones((2, 3)), jnp.ones((3, 2))
    assert jnp.allclose(jax.jit(f)(x, y), jnp.sin(x) @ y) and jnp.allclose(f(x, y=y), jnp.sin(x) @ y) and not told
    assert jnp.allclose(jax.grad(lambda x: f(x, y).sum())(x), jax.grad(lambda x: (jnp.sin(x) @ y).sum())(x))
    scaled = custom_partitioning(lambda x, n: n * x, static_argnums=1)
    scaled.def_partition(lambda *args: args, sharding_rule="... -> ...")
    assert scaled(x, 3).sum() == 18 and "static_args=(3,)" in str(jax.make_jaxpr(scaled, static_argnums=1)(x, 3))
    with pytest.raises(AttributeError, match="def_partition"):
        custom_partitioning(lambda x: x)(x)
    with pytest.raises(ValueError, match="pass them as arguments"):
        jax.jit(lambda x: _capturing(x)(x))(x)


def _capturing(y):
    f = custom_partitioning(lambda x: x + y)
    f.def_partition(lambda *args: args)
    return f
