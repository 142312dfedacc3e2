"""Programs of one device on the devices of all processes; every process runs this file."""

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import NamedSharding, P, lax
from catena.core.jaxpr import eval_jaxpr
from catena.experimental import multihost_utils
from catena.parallel.execution import local_of
from catena.parallel.vectorised import as_whole
from catena.runtime.kernels import Callback
from catena.sharding import AxisType, Mesh

I, N = jax.process_index(), jax.process_count()
D = jax.devices()
AUTO = (AxisType.Auto,) * 2
MESH = Mesh(np.array(D).reshape(N, -1), ("p", "d"), axis_types=AUTO)
ALONE = Mesh(np.array(D).reshape(N, -1)[:, :1], ("p", "d"), axis_types=AUTO)  # a device of each process
X = np.arange(64.0, dtype=np.float32).reshape(8, 8)
BOTH = P("p", "d")


def on(spec, mesh=MESH):
    return jax.device_put(X, NamedSharding(mesh, spec))


def all_of(x):
    return np.asarray(x if x.is_fully_addressable else multihost_utils.process_allgather(x, tiled=True))


def ring(x):
    return lax.fori_loop(0, 3, lambda i, c: lax.ppermute(c, "p", [(i, (i + 1) % N) for i in range(N)]) + i, x)


PROGRAMS = {
    "sums": (lambda x: lax.psum(x, "d") + lax.pmean(x, ("d", "p")), P("p")),
    "extrema": (lambda x: lax.pmax(x, "p") - lax.pmin(x, ("p", "d")), P(None, "d")),
    "rows": (lambda x: lax.all_gather(x, ("d", "p"), axis=1, tiled=True).sum(1), P("p")),
    "scattered": (lambda x: lax.psum_scatter(jnp.tile(x, (N, 2)), ("p", "d"), tiled=True), P("p", "d")),
    "exchanged": (lambda x: lax.all_to_all(jnp.tile(x, (N, 1)), "p", 0, 1, tiled=True), BOTH),
    "ring": (ring, BOTH),
    "partly sent": (lambda x: lax.ppermute(x, ("p", "d"), [(0, 1), (2, 0), (1, N)]), BOTH),
    "one for all": (lambda x: lax.pbroadcast(x, ("d", "p"), 3) + lax.axis_index("p"), BOTH),
    "halves": (lambda x: lax.psum(x.astype("bfloat16"), "p"), P(None, "d")),
    "branches": (
        lambda x: lax.cond(lax.axis_index("d") == 0, lambda x: lax.psum(x, "p"), lambda x: lax.pmax(x, "p"), x),
        P(None, "d"),
    ),
}


def vectorised(program):
    """What the vectorised program gives, which every process runs for itself on whole arrays."""
    whole = as_whole(jax.make_jaxpr(program)(X).eqns[0].params)
    return eval_jaxpr(whole.jaxpr, whole.consts, jnp.asarray(X))[0]


def test_programs_of_one_device_are_the_vectorised_program():
    for mesh in (MESH, ALONE):
        for name, (fun, spec) in PROGRAMS.items():
            if mesh is ALONE and name in ("one for all", "partly sent", "scattered"):  # they are for two devices
                continue
            program = jax.shard_map(fun, mesh=mesh, in_specs=BOTH, out_specs=spec, check_vma=False)
            for run in (program, jax.jit(program)):
                out = run(on(BOTH, mesh))
                assert out.sharding.is_equivalent_to(NamedSharding(mesh, spec), 2), (name, out.sharding)
                np.testing.assert_allclose(all_of(out), vectorised(program), rtol=1e-6, err_msg=name)


def test_sums_in_order_have_the_bits_of_threads():
    x = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    program = jax.shard_map(lambda x: lax.psum(jnp.tanh(x), ("p", "d")), mesh=MESH, in_specs=BOTH, out_specs=P())
    jax.config.update("jax_ordered_sums", True)
    try:
        found = all_of(jax.jit(program)(jax.device_put(x, NamedSharding(MESH, BOTH))))
    finally:
        jax.config.update("jax_ordered_sums", False)
    parts = [p for rows in np.split(np.asarray(jnp.tanh(x)), N) for p in np.split(rows, 2, axis=1)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    np.testing.assert_array_equal(found, total)


def test_jitted_functions_of_arrays_in_parts_are_partitioned():
    w = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)

    def step(w, x):
        loss = lambda w: jnp.mean(jnp.tanh(x @ w) ** 2)  # noqa: E731
        value, gradient = jax.value_and_grad(loss)(w)
        return w - 0.1 * gradient, value

    expected, loss = jax.jit(step)(w, X)
    for mesh in (MESH, ALONE):
        found, value = jax.jit(step)(jax.device_put(w, NamedSharding(mesh, P())), on(P("p"), mesh))
        np.testing.assert_allclose(all_of(found), expected, rtol=1e-5)
        np.testing.assert_allclose(all_of(value), loss, rtol=1e-5)
    gradient = jax.grad(lambda x: (jax.shard_map(ring, mesh=MESH, in_specs=BOTH, out_specs=BOTH)(x) ** 2).sum())
    np.testing.assert_allclose(all_of(gradient(on(BOTH))), 2 * (X + 3), rtol=1e-6)


def test_programs_that_differ_are_an_error_in_all_processes():
    fun = (lambda x: jnp.sin(lax.psum(x, "p"))) if I else (lambda x: jnp.cos(lax.psum(x, "p")))
    try:
        jax.jit(jax.shard_map(fun, mesh=MESH, in_specs=BOTH, out_specs=P(None, "d")))(on(BOTH))
    except jax.errors.JaxRuntimeError as error:
        assert "= cos" in str(error) and "= sin" in str(error) and "executors_together.py" in str(error), error
    else:
        raise AssertionError("no error")


def test_every_device_may_be_of_another_process_than_its_neighbour():
    flat = [D[i] for i in (*range(0, 2 * N, 2), *range(1, 2 * N, 2))]
    mesh = Mesh(np.array(flat).reshape(2, N), ("p", "d"), axis_types=AUTO)
    program = jax.shard_map(
        lambda x: lax.all_gather(x, ("d", "p"), axis=1, tiled=True) * lax.axis_index("d"),
        mesh=mesh, in_specs=P("p", "d"), out_specs=P("p", "d"), check_vma=False,
    )  # fmt: skip
    np.testing.assert_allclose(all_of(program(on(BOTH, mesh))), vectorised(program))


def test_groups_of_devices_do_not_hear_each_other():
    """Groups in the same processes, with the same first device; in each process another one speaks for each."""
    mesh = Mesh(np.array(D), ("x",), axis_types=AUTO[:1])
    rest = [[i, i + 1] for i in range(4, 2 * N, 2)]

    def step(i, c):
        c = lax.psum(c, "x", axis_index_groups=[[0, 3], [1, 2], *rest])
        return lax.all_gather(c, "x", axis_index_groups=[[0, 2], [1, 3], *rest]).mean(0) / 2

    program = jax.shard_map(
        lambda x: lax.fori_loop(0, 10, step, x), mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False
    )
    out = jax.jit(program)(jax.device_put(X, NamedSharding(mesh, P("x"))))
    np.testing.assert_allclose(all_of(out), vectorised(program), rtol=1e-5)


def test_edges_of_a_row_of_processes_receive_zeros():
    mesh = Mesh(np.array(D[::2]), ("x",), axis_types=AUTO[:1])
    pairs = [(j, j + 1) for j in range(N - 1)]
    twice = lambda x: lax.fori_loop(0, 2, lambda i, c: c + lax.ppermute(c, "x", pairs), x)  # noqa: E731
    program = jax.shard_map(twice, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    for _ in range(2):
        out = jax.jit(program)(jax.device_put(X, NamedSharding(mesh, P("x"))))
        np.testing.assert_allclose(all_of(out), vectorised(program), rtol=1e-6)
    parts = local_of(jax.make_jaxpr(program)(X).eqns[0].params).program.executable.parts
    assert parts.externals and not any(isinstance(x, Callback) for x in parts.externals)  # all of them call MPI itself


def test_sums_that_are_taken_later_are_in_types():
    mesh = Mesh(np.array(D).reshape(N, -1), ("p", "d"), axis_types=(AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        x, w = on(BOTH, mesh), on(P("d", reduced={"p"}), mesh)
        later = lambda x, w: jnp.dot(x, w, out_sharding=P("p", unreduced={"d"}))  # noqa: E731
        whole = jax.shard_map(lambda a: lax.psum(a, "d"), in_specs=P("p", unreduced={"d"}), out_specs=P("p"))
        for product in (later, jax.jit(later)):
            u = product(x, w)
            assert jax.typeof(u).str_short() == "float32[8@p,8]{U:d}"
            for taken in (lambda u: jax.reshard(u, P("p")), whole):
                for run in (taken, jax.jit(taken)):
                    np.testing.assert_allclose(all_of(run(u + u)), 2 * X @ X)
        gradient = jax.jit(jax.grad(lambda w, x: jnp.sum(whole(later(x, w)) ** 2)))(w, x)
        assert jax.typeof(gradient).str_short() == "float32[8@d,8]{U:p}"
        np.testing.assert_allclose(all_of(jax.reshard(gradient, P("d"))), X.T @ (2 * X @ X), rtol=1e-5)
