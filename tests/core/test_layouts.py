"""Arrays laid out over meshes: where they are put, what their parts are, and where results of computing with them lie."""

import copy

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import NamedSharding, P, lax
from catena.sharding import AbstractMesh, Mesh, SingleDeviceSharding

D = jax.devices()
MESH = Mesh(np.array(D).reshape(2, 4), ("x", "y"))
EXPLICIT = jax.make_mesh((2, 4), ("x", "y"))
FOUR = Mesh(np.array(D[:4]).reshape(2, 2), ("x", "y"))
N = np.arange(64, dtype=np.float32).reshape(8, 8)


def on(*spec, mesh=MESH):
    return NamedSharding(mesh, P(*spec))


X, ROWS, COLUMNS, WHOLE = (jax.device_put(N, on(*spec)) for spec in (("x", "y"), ("x",), (None, "y"), ()))
V, W = jax.device_put(N[0], on("x")), jax.device_put(N[0], on("y"))
U = jnp.ones((8, 8))

# ---- putting, and parts


def test_an_array_knows_its_parts():
    assert X.sharding == on("x", "y") and X.device == X.sharding and X.committed and not X.is_fully_replicated
    assert X.devices() == set(D) and len(X.addressable_shards) == len(X.global_shards) == 8
    for array in (X, ROWS, COLUMNS, WHOLE):
        seen = {}
        for device, shard in zip(D, array.addressable_shards, strict=True):
            assert shard.device is device and shard.data.sharding == SingleDeviceSharding(device)
            assert shard.replica_id == seen.get(str(shard.index), 0)
            seen[str(shard.index)] = shard.replica_id + 1
            np.testing.assert_array_equal(shard.data, N[shard.index])
            np.testing.assert_array_equal(array.addressable_data(device.id), shard.data)
        assert array.on_device_size_in_bytes() == 8 * array.addressable_data(0).nbytes
    assert WHOLE.is_fully_replicated and repr(X.addressable_shards[0]).startswith(
        "Shard(device=CpuDevice(id=0), index="
    )
    with pytest.raises(RuntimeError, match="several devices"):
        X.unsafe_buffer_pointer()


def test_device_put():
    trees = jax.device_put([N, N[0]], [on("x"), None]), jax.device_put([N, N[0]], on("x"))
    assert [x.sharding for x in trees[0]] == [on("x"), SingleDeviceSharding(D[0])]
    assert [x.sharding for x in trees[1]] == [on("x"), on("x")]
    assert jax.device_put(X, on("y")).sharding == on("y") and X.to_device(D[3]).devices() == {D[3]}
    assert jax.device_put(X).sharding == on("x", "y") and copy.deepcopy(X).sharding == on("x", "y")
    assert jax.device_put(X, on("x", mesh=FOUR)).devices() == set(D[:4])
    assert jax.device_put(N, on("x").with_memory_kind("pinned_host")).sharding.memory_kind == "pinned_host"
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), on("x"))
    assert keys.sharding == on("x") and keys.addressable_data(0).shape == (4,)
    given = jax.device_put(N + 1, on("x"))
    assert jax.device_put(given, on("y"), donate=True).sharding == on("y") and given.is_deleted()
    made = [f(8, device=on("x")) for f in (jnp.ones, jnp.arange)] + [jnp.ones_like(V, device=on("x"))]
    assert [x.sharding for x in made] == [on("x")] * 3
    with jax.set_mesh(MESH):
        assert jax.device_put(N, P("y")).sharding == on("y") and jax.device_put(N).devices() == {D[0]}


@pytest.mark.parametrize(
    ("put", "text"),
    [
        (lambda: jax.device_put(N[:3], on("x")), "splits axis 0 into 2 parts"),
        (lambda: jax.device_put(1.0, on("x")), r"the PartitionSpec is P\(\)"),
        (lambda: jax.device_put(N, on("x", None, None)), "at least 3 axes"),
        (lambda: jax.device_put(N, P("x")), "no mesh is in force"),
        (lambda: jax.device_put(N, MESH), "only accepts"),
        (lambda: jax.device_put(N, on(P.UNCONSTRAINED)), "for constraints"),
        (lambda: jax.device_put(N, NamedSharding(AbstractMesh((2,), "x"), P())), "AbstractMesh has no devices"),
        (lambda: X.to_device(on(None, None, "x")), "at least 3 axes"),
        (lambda: jnp.zeros(3, device=on("x")), "splits axis 0"),
    ],
)
def test_layouts_that_do_not_fit(put, text):
    with pytest.raises(ValueError, match=text):
        put()


# ---- where results are, with values as of plain arrays

RESULTS = [
    (lambda x, u: x + 1, X, P("x", "y")),
    (lambda x, u: u * x, X, P("x", "y")),
    (lambda x, u: jnp.sin(x), X, P("x", "y")),
    (lambda x, u: x.T, X, P("y", "x")),
    (lambda x, u: x + x.T, X, P()),
    (lambda x, u: x.sum(), X, P()),
    (lambda x, u: x.sum(0), X, P("y")),
    (lambda x, u: jnp.max(x, 1), X, P("x")),
    (lambda x, u: jnp.argmax(x, 0), X, P("y")),
    (lambda x, u: x @ u, X, P("x")),
    (lambda x, u: u @ x, X, P(None, "y")),
    (lambda x, u: x @ x, X, P("x", "y")),
    (lambda x, u: x @ x.T, X, P("x")),
    (lambda x, u: x[None], X, P(None, "x", "y")),
    (lambda x, u: x[0], X, P("y")),
    (lambda x, u: x[1:], X, P(None, "y")),
    (lambda x, u: x.reshape(64), X, P("x")),
    (lambda x, u: x.reshape(2, 4, 8), X, P("x", None, "y")),
    (lambda x, u: x.at[0].set(1), X, P("x", "y")),
    (lambda x, u: jnp.concatenate([x, x]), X, P("x", "y")),
    (lambda x, u: jnp.stack([x, x]), X, P(None, "x", "y")),
    (lambda x, u: jnp.sort(x, 0), X, P("x", "y")),
    (lambda x, u: jnp.cumsum(x, 1), X, P("x", "y")),
    (lambda x, u: jnp.zeros_like(x), X, P("x", "y")),
    (lambda x, u: jnp.nonzero(x)[0], X, P()),
    (lambda x, u: jnp.outer(x, x), V, P("x")),
    (lambda x, u: x[:, None] + u, V, P("x")),
    (lambda x, u: jax.grad(lambda a: (a**2).sum())(x), X, P("x", "y")),
    (lambda x, u: jax.vmap(lambda a: a.sum())(x), X, P("x")),
    (lambda x, u: jax.jit(lambda a, b: (a.T, b)[0])(x, u), X, P("y", "x")),
    (lambda x, u: lax.scan(lambda c, a: (c + a, c), jnp.zeros(8), x)[0], X, P("y")),
    (lambda x, u: lax.fori_loop(0, 3, lambda i, a: a * 2, x), X, P("x", "y")),
    (lambda x, u: lax.cond(True, lambda a: a * 2, lambda a: a, x), X, P("x", "y")),
]


@pytest.mark.parametrize(("f", "x", "spec"), RESULTS)
def test_results_lie_as_their_operands(f, x, spec):
    given = x.sharding
    out, plain = f(x, U), f(jnp.asarray(np.asarray(x)), U)
    assert out.sharding == NamedSharding(MESH, spec), out.sharding
    assert out.committed and x.sharding == given
    np.testing.assert_array_equal(out, plain)


def test_operands_that_disagree():
    assert (ROWS + COLUMNS).sharding == on("x", "y") and (X + V).sharding == on("x", "y")
    assert jnp.outer(W, V).sharding == on("y", "x") and (ROWS + jax.device_put(N, on("y"))).sharding == on()
    flat = jax.device_put(N, NamedSharding(Mesh(D, ("z",)), P("z")))
    assert (X + flat).sharding == on(("x", "y")) and (flat + X).sharding == flat.sharding
    with jax.default_device(D[3]):
        made = jnp.ones((8, 8))
    assert (made + X).sharding == on("x", "y")
    for other in (jax.device_put(N, on("x", mesh=FOUR)), jax.device_put(N, D[0])):
        for call in (jnp.add, jax.jit(lambda a, b: a + b)):
            with pytest.raises(ValueError, match="incompatible devices"):
                call(X, other)
    with pytest.raises(ValueError, match="different meshes"):
        X + jax.device_put(N, on("x", mesh=EXPLICIT))


def test_random_numbers_do_not_know_where_they_are():
    key = jax.device_put(jax.random.key(3), on())
    keys = jax.device_put(jax.random.split(jax.random.key(3), 8), on("x"))
    np.testing.assert_array_equal(jax.random.normal(key, (8, 3)), jax.random.normal(jax.random.key(3), (8, 3)))
    draw = jax.vmap(lambda k: jax.random.uniform(k, (4,)))
    np.testing.assert_array_equal(draw(keys), draw(jax.random.split(jax.random.key(3), 8)))
    assert draw(keys).sharding == on("x")
    asked = jax.jit(lambda k: jax.random.normal(k, (8, 3)), out_shardings=on("x"))(jax.random.key(3))
    np.testing.assert_array_equal(asked, jax.random.normal(jax.random.key(3), (8, 3)))


# ---- the mesh in force


@pytest.mark.parametrize(("mesh", "spec"), [(MESH, P()), (EXPLICIT, P(None))])
def test_what_is_computed_under_a_mesh_is_on_it(mesh, spec):
    for _ in range(2):
        with jax.set_mesh(mesh):
            made = [
                jnp.ones(8),
                jnp.ones(8) + 1,
                jax.jit(lambda x: x + 1)(N[0]),
                jax.random.uniform(jax.random.key(0), 8),
            ]
            made += [jax.jit(lambda: jnp.ones(8))(), jax.vmap(lambda x: x + 1)(N[0]), U.sum(0)]
            assert {x.sharding for x in made} == {NamedSharding(mesh, spec)} and all(x.committed for x in made)
            assert jax.random.key(0).sharding == NamedSharding(mesh, P())
            with pytest.raises(ValueError, match="the mesh in force"):
                jax.device_put(N, D[1]) + 1
    assert jnp.ones(8).sharding == SingleDeviceSharding(D[0])


# ---- jit


def test_jit_puts_arguments_and_results():
    def f(a, b):
        return a + b, b

    for _ in range(2):
        both = jax.jit(f, in_shardings=(on("x"), on(None, "y")), out_shardings=(on("y"), None))
        outs = both(N, N)
        assert [x.sharding for x in outs] == [on("y"), on(None, "y")]
        np.testing.assert_array_equal(outs[0], 2 * N)
        assert jax.jit(f, out_shardings=on())(X, N)[0].sharding == on()
        assert jax.jit(f, in_shardings=(on("x"), None))(N, X)[0].sharding == on("x", "y")
        assert jax.jit(lambda: jnp.zeros((8, 8)), out_shardings=on("x"))().sharding == on("x")
        with jax.set_mesh(MESH):
            assert jax.jit(f, in_shardings=P("x"), out_shardings=(P("y"), P()))(N, N)[0].sharding == on("y")
    inner = jax.jit(lambda a: a + 1, out_shardings=on("y"))
    inside = jax.jit(lambda a: inner(a) * 2)
    assert inside(N).sharding == inside(X).sharding == jax.grad(lambda a: inner(a).sum())(X).sharding == on("y")
    assert jax.vmap(inner)(N[None]).sharding == on(None, "y")
    assert jax.jit(lambda a: jax.jit(jnp.sin, in_shardings=on("y"))(a) + 1)(N).sharding == on("y")
    given = jax.device_put(N, on("x"))
    assert jax.jit(lambda a: a + 1, donate_argnums=0, out_shardings=on("x"))(given).sharding == on("x")
    assert given.is_deleted()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jax.jit(jnp.sin, in_shardings=on("x"))(X), ValueError, "is committed to NamedSharding"),
        (lambda: jax.jit(jnp.sin, in_shardings=on("x"))(jax.device_put(N, D[0])), ValueError, "is committed to Single"),
        (lambda: jax.jit(jnp.sin, in_shardings=SingleDeviceSharding(D[1]))(X), ValueError, "is committed to Named"),
        (lambda: jax.jit(jnp.sin, in_shardings=on("x"))(N[:3]), ValueError, "splits axis 0"),
        (lambda: jax.jit(jnp.sum, out_shardings=on("x"))(X), ValueError, r"the PartitionSpec is P\(\)"),
        (lambda: jax.jit(jnp.sin, out_shardings=on("x"))(jax.device_put(N, D[1])), ValueError, "incompatible devices"),
        (lambda: jax.jit(jnp.sin, in_shardings=P("x"))(N), RuntimeError, "no mesh is in force"),
        (lambda: jax.jit(jnp.sin, out_shardings=MESH)(N), TypeError, "must be shardings"),
        (
            lambda: jax.jit(lambda a: (a, a), out_shardings=(on("x"), on("x", mesh=FOUR)))(N),
            ValueError,
            "incompatible devices",
        ),
    ],
)
def test_what_jit_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call()
