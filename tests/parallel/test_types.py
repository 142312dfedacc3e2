"""Sharding in types: what follows for results from how operands are split, and where nothing does."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, random
from catena.core.errors import ShardingTypeError
from catena.sharding import AbstractMesh, AxisType, NamedSharding, auto_axes, explicit_axes, use_abstract_mesh
from catena.sharding import PartitionSpec as P

MESH = AbstractMesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Explicit,) * 3)


@pytest.fixture(autouse=True)
def mesh():
    with use_abstract_mesh(MESH):
        yield


def of(shape, *spec, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*spec)))


OPERANDS = {
    "x": of((8, 4), "a"),
    "y": of((8, 4), None, "a"),
    "z": of((8, 4), "b"),
    "xb": of((8, 4), "a", "b"),
    "r": of((8, 4)),
    "v": of((4,), "b"),
    "s": of(()),
    "w": of((4, 8), "b", "c"),
    "w2": of((4, 8), None, "a"),
    "x3": of((8, 4, 6), "a", "b", None),
    "one": of((1, 4), None, "b"),
    "ab": of((16,), ("a", "b")),
    "stack": of((8, 4, 4), "a"),
    "image": of((8, 4, 16, 16), "a", None, "b"),
    "i": of((8,), "a", dtype=np.int32),
}


def types(text: str) -> str:
    """The types of the results of an expression over the operands."""
    names = [n for n in OPERANDS if re.search(rf"\b{n}\b", text)]
    scope = {"jax": jax, "jnp": jnp, "lax": lax, "random": random, "P": P, "np": np}
    fun = eval(f"lambda {', '.join(names)}: {text}", scope)
    return " ".join(a.str_short() for a in jax.make_jaxpr(fun)(*[OPERANDS[n] for n in names]).out_avals)


FOLLOWS = """
x + x -> float32[8@a,4]
x + xb -> float32[8@a,4@b]
r + xb -> float32[8@a,4@b]
x + v -> float32[8@a,4@b]
xb + one -> float32[8@a,4@b]
x * s + 1.0 -> float32[8@a,4]
xb.T -> float32[4@b,8@a]
jnp.sum(xb) -> float32[]
jnp.sum(xb, 0) -> float32[4@b]
jnp.sum(xb, 1, keepdims=True) -> float32[8@a,1]
jnp.argmax(y, 1) -> int32[8]
jnp.mean(xb, 0) -> float32[4@b]
x @ w -> float32[8@a,8@c]
jnp.dot(xb, w, out_sharding=P('a', 'c')) -> float32[8@a,8@c]
jnp.einsum('ij,jk->ik', xb, w, out_sharding=P('b')) -> float32[8@b,8]
jnp.einsum('ij,j->ij', x, v) -> float32[8@a,4@b]
lax.dot_general(x, r, (((1,), (1,)), ((0,), (0,)))) -> float32[8@a]
x.reshape(32) -> float32[32@a]
xb.reshape(32) -> float32[32@(a,b)]
x.reshape(2, 4, 4) -> float32[2@a,4,4]
y.reshape(8, 2, 2) -> float32[8,2@a,2]
ab.reshape(2, 8) -> float32[2@a,8@b]
y.reshape(32, out_sharding=P('a')) -> float32[32@a]
jnp.reshape(x3, (32, 6)) -> float32[32@(a,b),6]
x[:, 0:2] -> float32[8@a,2]
x[:, 0] -> float32[8@a]
x[None] -> float32[1,8@a,4]
x.at[0].get(out_sharding=P('b')) -> float32[4@b]
x.at[:, 0].set(0.0) -> float32[8@a,4]
x.at[0].set(1.0, out_sharding=P('a')) -> float32[8@a,4]
lax.dynamic_slice(x, (0, 0), (8, 2)) -> float32[8@a,2]
jnp.concatenate([x, x], 1) -> float32[8@a,8]
jnp.stack([x, x]) -> float32[2,8@a,4]
jnp.pad(x, ((0, 0), (1, 1))) -> float32[8@a,6]
jnp.sort(x, 1) -> float32[8@a,4]
jnp.cumsum(x, 1) -> float32[8@a,4]
lax.top_k(x, 2) -> float32[8@a,2] int32[8@a,2]
jnp.fft.fft(x) -> complex64[8@a,4]
jnp.linalg.eigh(stack) -> float32[8@a,4] float32[8@a,4,4]
jnp.linalg.solve(stack, stack) -> float32[8@a,4,4]
jnp.broadcast_to(v, (8, 4)) -> float32[8,4@b]
jnp.broadcast_to(v, (8, 4), out_sharding=P('a', 'b')) -> float32[8@a,4@b]
jnp.squeeze(one) -> float32[4@b]
jnp.where(x > 0, x, x) -> float32[8@a,4]
jnp.zeros((8, 4), out_sharding=P('a')) -> float32[8@a,4]
jnp.arange(8, out_sharding=P('a')) -> int32[8@a]
jnp.zeros_like(x) -> float32[8@a,4]
lax.broadcasted_iota(jnp.int32, (8, 4), 0, out_sharding=P('a')) -> int32[8@a,4]
random.normal(random.key(0), (8, 4), out_sharding=P('a')) -> float32[8@a,4]
jax.nn.softmax(x) -> float32[8@a,4]
jax.nn.one_hot(i, 4) -> float32[8@a,4]
lax.conv(image, np.ones((5, 4, 3, 3), 'f'), (1, 1), 'SAME') -> float32[8@a,5,16@b,16]
jnp.var(xb, 0) -> float32[4@b]
jnp.outer(i, v) -> float32[8@a,4@b]
jax.vmap(jnp.sum)(x) -> float32[8@a]
jax.vmap(jnp.dot, (0, None))(x, v) -> float32[8@a]
jax.vmap(jax.jit(lambda a: a * 2))(x) -> float32[8@a,4]
jax.vmap(jnp.sin, in_axes=1, out_axes=0)(x) -> float32[4,8@a]
jax.jit(jnp.sin)(x) -> float32[8@a,4]
lax.fori_loop(0, 3, lambda i, c: c * 2, x) -> float32[8@a,4]
lax.cond(True, jnp.sin, jnp.cos, x) -> float32[8@a,4]
lax.scan(lambda c, a: (c + 1, a * 2), 0.0, y)[1] -> float32[8,4@a]
jax.checkpoint(jnp.sin)(x) -> float32[8@a,4]
jax.grad(lambda a: a.sum())(x) -> float32[8@a,4]
jax.grad(lambda a, b: (a @ b).sum(), (0, 1))(x, w) -> float32[8@a,4] float32[4@b,8@c]
jax.grad(lambda a, b: (a * b).sum(), (0, 1))(xb, v) -> float32[8@a,4@b] float32[4@b]
jax.grad(lambda a: jnp.sort(a, 1).sum())(x) -> float32[8@a,4]
jax.grad(lambda a: jnp.max(a, 1).sum())(x) -> float32[8@a,4]
jax.grad(lambda a: a.reshape(32).sum())(xb) -> float32[8@a,4@b]
jax.grad(lambda a: a.at[:, 0].set(0.0).sum())(x) -> float32[8@a,4]
jax.hessian(lambda a: (a**3).sum())(v) -> float32[4@b,4]
jax.reshard(x, P('b', 'a')) -> float32[8@b,4@a]
lax.with_sharding_constraint(x, P('a')) -> float32[8@a,4]
""".strip().splitlines()


@pytest.mark.parametrize("line", FOLLOWS)
def test_types_follow(line):
    text, expected = line.rsplit(" -> ", 1)
    assert types(text) == expected


DOUBTFUL = """
x + y -> two of its axes
x + z -> another over 'b'
x @ w2 -> two of its axes
xb @ w -> several ways
y.reshape(32) -> out_sharding=
x[0] -> 1 elements along axis 0
x[0:3] -> 3 elements along axis 0
x[i] -> must not be split along axis 0
x.at[0].set(1.0) -> must not be split along axis 0
jnp.sort(x, 0) -> must not be split along axis 0
jnp.cumsum(x, 0) -> must not be split along axis 0
lax.top_k(y, 2) -> must not be split along axis 1
jnp.tile(x, (2, 1)) -> must not be split along axis 0
jnp.where(x > 0, x, z) -> another over 'b'
jax.grad(lambda a: (a @ a.T).sum())(y) -> several ways
""".strip().splitlines()


@pytest.mark.parametrize("line", DOUBTFUL)
def test_doubts_are_errors(line):
    text, expected = line.rsplit(" -> ", 1)
    with pytest.raises(ShardingTypeError, match=re.escape(expected)):
        types(text)


@pytest.mark.parametrize(
    "text, error, words",
    [
        ("jax.vmap(lambda a, b: a + b)(x, r)", ValueError, "split alike"),
        ("lax.scan(lambda c, a: (c, a), 0.0, x)", ValueError, "along axis 0"),
        ("lax.fori_loop(0, 3, lambda i, c: c + x, r)", TypeError, "types"),
        ("lax.with_sharding_constraint(x, P('b'))", AssertionError, "reshard"),
        ("jnp.zeros((8, 4), out_sharding='a')", TypeError, "out_sharding must be"),
        ("jnp.zeros((7, 4), out_sharding=P('a'))", ValueError, "in 2 parts"),
        ("jax.reshard(x, P('nowhere'))", ValueError, "nowhere"),
    ],
)
def test_other_errors(text, error, words):
    with pytest.raises(error, match=words):
        types(text)


def test_jaxprs_show_how_values_are_split():
    text = str(jax.make_jaxpr(lambda a, b: jnp.sin(a @ b))(OPERANDS["x"], OPERANDS["w"]))
    assert "a:f32[8@a,4] b:f32[4@b,8@c]" in text and "d:f32[8@a,8@c] = sin c" in text
    assert "b:f32[8@b,4] = reshard a" in str(jax.make_jaxpr(lambda x: jax.reshard(x, P("b")))(OPERANDS["x"]))


def test_types_have_their_sharding():
    aval = jax.make_jaxpr(lambda x: x + 1)(OPERANDS["x"]).out_avals[0]
    assert aval.sharding == NamedSharding(MESH, P("a", None)) and jax.typeof(1.0).sharding == NamedSharding(MESH, P())
    assert aval.update(shape=(16,)).str_short() == "float32[16@a]" and aval.update(sharding=None).plain
    assert aval.without_axis(0).plain and aval.with_axis(1, 2).sharding.spec == P("a", None, None)


def test_axes_are_auto_within_auto_axes():
    seen = []

    def f(a, b):
        seen.append(str(a.aval))
        return a + b

    closed = jax.make_jaxpr(auto_axes(f, out_sharding=P("a")))(OPERANDS["x"], OPERANDS["z"])
    assert seen == ["float32[8,4]"] and str(closed.out_avals[0]) == "float32[8@a,4]"
    closed = jax.make_jaxpr(auto_axes(f, axes="b", out_sharding=P("a")))(OPERANDS["x"], OPERANDS["z"])
    assert seen[1] == "float32[8@a,4]"
    with pytest.raises(TypeError, match="out_sharding must be passed"):
        auto_axes(f)(1.0, 2.0)


def test_axes_are_explicit_within_explicit_axes():
    seen = []
    with use_abstract_mesh(MESH.update_axis_types(dict.fromkeys("abc", AxisType.Auto))):
        fun = explicit_axes(lambda a: seen.append(str(a.aval)) or a, in_sharding=P("a"))
        closed = jax.make_jaxpr(fun)(jax.ShapeDtypeStruct((8, 4), np.float32))
    assert seen == ["float32[8@a,4]"] and closed.out_avals[0].plain
