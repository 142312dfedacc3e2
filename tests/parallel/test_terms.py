"""Sums that are still to be taken, in types: what follows from operands that are unreduced or reduced."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.errors import ShardingTypeError
from catena.sharding import AxisType, NamedSharding
from catena.sharding import PartitionSpec as P

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
RNG = np.random.default_rng(0)


def array(shape, *spec):
    return jax.device_put(RNG.integers(-4, 5, shape).astype(np.float32), NamedSharding(MESH, P(*spec)))


def scope() -> dict:
    """Arrays by name: plain, reduced and unreduced ones; and what these are, with no word of sums."""
    k, l, n, b = array((8, 6), "x", "y"), array((6, 4), "y"), array((8, 4), "x"), array((6, 4))  # noqa: E741
    found = {
        "n": n,
        "m": array((8, 4), "x", "y"),
        "k": k,
        "l": l,
        "m4": array((8, 6), "x"),
        "u": jnp.dot(k, l, out_sharding=P("x", None, unreduced={"y"})),
        "v": jax.reshard(n, P("x", unreduced={"y"})),
        "r": jax.reshard(n, P("x", None, reduced={"y"})),
        "rxy": jax.reshard(n, P(reduced={"x", "y"})),
        "rb": jax.reshard(b, P(None, None, reduced={"x"})),
        "b": b,
    }
    return found


@pytest.fixture(scope="module")
def arrays():
    with jax.set_mesh(MESH):
        return scope()


def run(text: str, arrays: dict, jitted: bool):
    names = [n for n in arrays if re.search(rf"\b{n}\b", text)]
    given = {"jax": jax, "jnp": jnp, "lax": lax, "P": P}
    fun = eval(f"lambda {', '.join(names)}: {text}", given)
    return (jax.jit(fun) if jitted else fun)(*[arrays[n] for n in names])


FOLLOWS = """
u + v -> float32[8@x,4]{U:y}
u * r -> float32[8@x,4]{U:y}
u.astype('int32') -> int32[8@x,4]{U:y}
u.T -> float32[4,8@x]{U:y}
u.reshape(8, 2, 2) -> float32[8@x,2,2]{U:y}
u[None, :, 1:3] -> float32[1,8@x,2]{U:y}
jnp.broadcast_to(u, (2, 8, 4)) -> float32[2,8@x,4]{U:y}
jnp.sum(u, 0) -> float32[4]{U:y}
jnp.pad(u, ((0, 0), (1, 1))) -> float32[8@x,6]{U:y}
jnp.concatenate([u, v], 1) -> float32[8@x,8]{U:y}
jnp.where(n > 0, u, v) -> float32[8@x,4]{U:y}
jnp.zeros_like(u) -> float32[8@x,4]{U:y}
lax.optimization_barrier((u, n))[0] -> float32[8@x,4]{U:y}
lax.fori_loop(0, 3, lambda i, c: c + c, u) -> float32[8@x,4]{U:y}
lax.cond(True, lambda a: a, lambda a: a + a, u) -> float32[8@x,4]{U:y}
jax.jit(lambda a: a + a)(u) -> float32[8@x,4]{U:y}
jax.checkpoint(lambda a: a + a)(u) -> float32[8@x,4]{U:y}
jax.vmap(lambda a: a + a)(u) -> float32[8@x,4]{U:y}
jax.reshard(u, P('x')) -> float32[8@x,4]
jax.reshard(u, P('x', 'y')) -> float32[8@x,4@y]
jax.reshard(u, P('x', reduced={'y'})) -> float32[8@x,4]{R:y}
lax.reduce_sum(k, (1,), out_sharding=P('x', unreduced={'y'})) -> float32[8@x]{U:y}
jnp.sin(r) * 2 + r -> float32[8@x,4]{R:y}
r - r.sum() / 3 -> float32[8@x,4]{R:y}
jnp.where(r > 0, n, n) -> float32[8@x,4]
jnp.where(n > 0, r, r) -> float32[8@x,4]{R:y}
r.at[jnp.array([0, 1])].get(out_sharding=P()) -> float32[2,4]
jnp.dot(r, r.T, out_sharding=P('x')) -> float32[8@x,8]
m4 @ rb -> float32[8@x,4]
rxy[:, :2] -> float32[8,2]{R:(x,y)}
jax.jvp(lambda a: a * jnp.exp(a), (r,), (n,))[1] -> float32[8@x,4]{R:y}
jax.grad(lambda a: jnp.sum(jnp.sin(a) * 2))(r) -> float32[8@x,4]{U:y}
jax.grad(lambda a: jnp.sum((m4 @ a) ** 2))(rb) -> float32[6,4]{U:x}
jax.grad(lambda a: jnp.sum((m4 @ jax.reshard(a, P(reduced={'x'}))) ** 2))(b) -> float32[6,4]
jax.grad(lambda a: jnp.sum(jax.reshard(a + a, P('x')) ** 2))(u) -> float32[8@x,4]{R:y}
jax.grad(lambda a: jnp.sum(jax.reshard(jnp.dot(k, a, out_sharding=P('x', unreduced={'y'})), P('x')) ** 2))(l) -> float32[6@y,4]
jax.grad(lambda a: jnp.sum(lax.scan(lambda c, _: (c * 2, None), a, None, length=3)[0]))(r) -> float32[8@x,4]{U:y}
jax.vjp(lambda a: a * 2, r)[1](u)[0] -> float32[8@x,4]{U:y}
""".strip().splitlines()


@pytest.mark.parametrize("line", FOLLOWS)
def test_types_follow_and_values_are_those_of_the_sums(line, arrays):
    text, expected = line.rsplit(" -> ", 1)
    plain = {name: jnp.asarray(np.asarray(x)) for name, x in arrays.items()}
    bare = re.sub(r"jax\.reshard\((.*?), P\([^()]*\)\)", r"(\1)", re.sub(r"(, )?out_sharding=P\([^()]*\)", "", text))
    wanted = run(bare, plain, False)
    for jitted in (False, True):
        with jax.set_mesh(MESH):
            found = run(text, arrays, jitted)
        assert jax.typeof(found).str_short() == expected
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5)


REFUSED = """
jnp.sin(u) -> NotImplementedError
-u -> NotImplementedError
u - v -> NotImplementedError
u / 2 -> NotImplementedError
u > 0 -> NotImplementedError
jnp.max(u) -> NotImplementedError
u ** 2 -> NotImplementedError
jnp.mean(u) -> NotImplementedError
r ** 2 -> NotImplementedError
lax.clamp(0.0, r, 1.0) -> NotImplementedError
u + n -> ShardingTypeError
u + 1.0 -> ShardingTypeError
u + r -> ShardingTypeError
u * u -> ShardingTypeError
u * n -> ShardingTypeError
u * 2.0 -> ShardingTypeError
u * rxy -> ShardingTypeError
jnp.where(n > 0, u, n) -> ShardingTypeError
jnp.concatenate([u, n], 1) -> ShardingTypeError
u @ l.T -> ShardingTypeError
r + n -> ShardingTypeError
r * m -> ShardingTypeError
r + rxy -> ShardingTypeError
jnp.concatenate([r, n], 1) -> ShardingTypeError
""".strip().splitlines()


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_not_linear_or_does_not_go_together_is_refused(line, arrays):
    text, expected = line.rsplit(" -> ", 1)
    kind = {"NotImplementedError": NotImplementedError, "ShardingTypeError": ShardingTypeError}[expected]
    for jitted in (False, True):
        with jax.set_mesh(MESH), pytest.raises(kind):
            run(text, arrays, jitted)


IN_DEVICES = """
(u, P('x', unreduced={'y'})) a + a -> P('x', unreduced={'y'}) float32[8@x,4]{U:y} = 2 * u
(u, P('x', unreduced={'y'})) lax.psum(a, 'y') -> P('x') float32[8@x,4] = u
(u, P('x', unreduced={'y'})) lax.psum_scatter(a, 'y', scatter_dimension=1, tiled=True) -> P('x', 'y') float32[8@x,4@y] = u
(m, P('x', 'y')) lax.pcast(a, 'y', to='unreduced') -> P('x', unreduced={'y'}) float32[8@x,2]{U:y} = m[:, :2] + m[:, 2:]
(n, P('x')) lax.pcast(a, 'y', to='reduced') -> P('x', reduced={'y'}) float32[8@x,4]{R:y} = n
(n, P('x')) lax.pcast(lax.pcast(a, 'y', to='reduced'), 'y', to='varying') -> P('x', 'y') float32[8@x,8@y] = np.tile(n, (1, 2))
(m, P('x', 'y')) lax.all_gather(a, 'y', axis=1, tiled=True, to='reduced') -> P('x', reduced={'y'}) float32[8@x,4]{R:y} = m
(r, P('x', reduced={'y'})) jnp.sin(a) * lax.axis_index('y') -> P('x', 'y') float32[8@x,8@y] = np.hstack([0 * r, np.sin(r)])
(r, P('x', reduced={'y'})) a @ a.T -> P('x') float32[8@x,2] = np.vstack([p @ p.T for p in np.split(r, 4)])
(u, None) lax.psum(a, 'y') -> P('x') float32[8@x,4] = u
""".strip().splitlines()


@pytest.mark.share(2)
@pytest.mark.parametrize("executor", [None, "threads"])
@pytest.mark.parametrize("line", IN_DEVICES)
def test_they_pass_the_border_of_a_shard_map(line, executor, arrays):
    name, specs, body, outs, kind, expected = re.match(
        r"\((\w+), (.*?\)?)\) (.*) -> (P.*\)) (\S+) = (.*)", line
    ).groups()
    scope = {"lax": lax, "jnp": jnp, "P": P, "np": np}
    jax.config.update("jax_executor", executor)
    try:
        with jax.set_mesh(MESH):
            given = {} if specs == "None" else {"in_specs": eval(specs, scope)}
            f = jax.shard_map(eval(f"lambda a: {body}", scope), **given, out_specs=eval(outs, scope))
            found = [f(arrays[name]), jax.jit(f)(arrays[name])]
    finally:
        jax.config.update("jax_executor", None)
    for out in found:
        assert jax.typeof(out).str_short() == kind
        np.testing.assert_allclose(
            np.asarray(out), eval(expected, {k: np.asarray(x) for k, x in arrays.items()} | {"np": np}), rtol=1e-5
        )


def test_gradients_through_casts_take_each_sum_once(arrays):
    m4, b, rb, m, n = (arrays[name] for name in ("m4", "b", "rb", "m", "n"))
    expected = 2 * np.asarray(m4).T @ np.asarray(m4) @ np.asarray(b)
    with jax.set_mesh(MESH):
        loss = lambda spec: jax.shard_map(
            lambda a, c: lax.psum(jnp.sum((c @ a) ** 2), "x"), in_specs=(spec, P("x")), out_specs=P()
        )
        for w, spec, kind in ((b, P(), "float32[6,4]"), (rb, P(reduced={"x"}), "float32[6,4]{U:x}")):
            for grad in (jax.grad(loss(spec)), jax.jit(jax.grad(loss(spec)))):
                found = grad(w, m4)
                assert jax.typeof(found).str_short() == kind
                np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
        halves = jax.shard_map(
            lambda a: lax.psum(lax.pcast(a, "y", to="unreduced"), "y"), in_specs=P("x", "y"), out_specs=P("x")
        )
        left, right = np.split(np.asarray(m), 2, axis=1)
        np.testing.assert_allclose(jax.grad(lambda a: (halves(a) ** 2).sum())(m), np.tile(2 * (left + right), (1, 2)))
        twice = jax.shard_map(
            lambda a: lax.pcast(lax.pcast(a, "y", to="reduced"), "y", to="varying"),
            in_specs=P("x"),
            out_specs=P("x", "y"),
        )
        np.testing.assert_allclose(jax.grad(lambda a: (twice(a) ** 2).sum())(n), 4 * np.asarray(n))


@pytest.mark.parametrize(
    "name, in_spec, body, out_spec, kind",
    [
        ("r", P("x"), lambda a: a, P("x"), ValueError),
        ("u", P("x"), lambda a: a, P("x"), ValueError),
        ("r", P("x", reduced={"y"}), lambda a: a, P("x"), ValueError),
        ("u", P("x", unreduced={"y"}), lambda a: a, P("x"), ValueError),
        ("u", P("x", unreduced={"y"}), lambda a: lax.psum(a, "y"), P("x", reduced={"y"}), ValueError),
        ("u", P("x", unreduced={"y"}), lambda a: a * 2, P("x", unreduced={"y"}), ShardingTypeError),
        ("u", P("x", unreduced={"y"}), jnp.sin, P("x", unreduced={"y"}), NotImplementedError),
        ("u", P("x", unreduced={"y"}), lambda a: lax.pmax(a, "y"), P("x"), ValueError),
        ("u", P("x", unreduced={"y"}), lambda a: lax.psum(a, ("x", "y")), P(), ValueError),
        ("u", P("x", unreduced={"y"}), lambda a: lax.pcast(a, "y", to="varying"), P("x", "y"), ValueError),
        ("r", P("x", reduced={"y"}), lambda a: lax.psum(a, "y"), P("x"), ValueError),
        ("n", P("x"), lambda a: lax.pcast(a, "y", to="unreduced"), P("x", unreduced={"y"}), ValueError),
        ("m", P("x", "y"), lambda a: lax.pcast(a, "y", to="reduced"), P("x", reduced={"y"}), ValueError),
    ],
)
def test_what_does_not_pass_it(name, in_spec, body, out_spec, kind, arrays):
    with jax.set_mesh(MESH), pytest.raises(kind):
        jax.shard_map(body, in_specs=in_spec, out_specs=out_spec)(arrays[name])


def test_axes_that_are_not_explicit_and_types_that_are_not_checked_know_no_sums():
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    for given, check_vma in ((mesh, True), (MESH, False)):
        f = jax.shard_map(lambda a: a, mesh=given, in_specs=P(), out_specs=P(unreduced={"x"}), check_vma=check_vma)
        with pytest.raises(ValueError, match="Explicit axes of the mesh that become Manual"):
            f(np.ones(4, np.float32))
