"""Arrays over the devices of several processes; every process runs this file."""

import copy
import pickle

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import NamedSharding, P
from catena.experimental import multihost_utils
from catena.parallel import processes
from catena.sharding import Mesh, SingleDeviceSharding

I, N = jax.process_index(), jax.process_count()
D = jax.devices()
HERE = jax.local_devices()
MESH = Mesh(np.array(D).reshape(N, -1), ("p", "d"))
WHOLE = np.arange(16 * N, dtype=np.float32).reshape(4 * N, 4)
SPECS = [P("p"), P("p", "d"), P(None, "d"), P(("d", "p")), P("d"), P()]


def on(*spec):
    return NamedSharding(MESH, P(*spec))


def all_of(x):
    return multihost_utils.process_allgather(x, tiled=True)


def raises(error, text, call):
    try:
        call()
    except error as found:
        assert text in str(found), found
    else:
        raise AssertionError(f"no {error.__name__} was raised")


def test_devices_are_those_of_all_processes():
    assert [d.process_index for d in D] == [i for i in range(N) for _ in HERE]
    assert [d.id for d in HERE] == [2048 * I + i for i in range(len(HERE))]
    assert jax.local_devices(process_index=N - 1) == D[-len(HERE) :]
    assert jax.process_indices() == list(range(N)) and jax.device_count() == N * jax.local_device_count()
    assert [d.local_hardware_id for d in HERE] == list(range(len(HERE))) and D[0].client.process_index() == I
    assert jnp.ones(2).devices() == {HERE[0]} and jnp.ones(2).is_fully_addressable
    assert pickle.loads(pickle.dumps(D[-1])) is D[-1]
    raises(ValueError, "Unknown process_index", lambda: jax.local_devices(process_index=N))


def test_meshes_know_what_is_here():
    assert MESH.is_multi_process and MESH.local_devices == HERE
    assert MESH.local_mesh.devices.tolist() == [HERE] and not MESH.local_mesh.is_multi_process
    assert on("p").addressable_devices == set(HERE) and not on("p").is_fully_addressable
    assert on("p").addressable_devices_indices_map((4 * N,))[HERE[0]] == (slice(4 * I, 4 * I + 4),)
    mixed = Mesh(np.array([D[0], D[-1], *D[2:-1], D[1]]).reshape(N, -1), ("p", "d"))
    if I in (0, N - 1):
        raises(ValueError, "no block", lambda: mixed.local_mesh)
    others = NamedSharding(Mesh(np.array([d for d in D if d.process_index != I][:1]), ("x",)), P())
    assert not others.has_addressable_devices


def test_a_process_holds_its_parts_only():
    for spec in SPECS[:-1]:
        x = jax.device_put(WHOLE, on(*spec))
        assert repr(x) == str(x) == f"{x}" == f"Array(shape={WHOLE.shape}, dtype=float32)"
        assert x.shape == WHOLE.shape and x.nbytes == WHOLE.nbytes and x.committed and not x.is_fully_addressable
        assert [s.device for s in x.addressable_shards] == HERE and len(x.global_shards) == len(D)
        for s in x.global_shards:
            assert (s.data is None) == (s.device not in HERE)
            if s.data is not None:
                np.testing.assert_array_equal(s.data, WHOLE[s.index])
                assert s.data.devices() == {s.device}
        np.testing.assert_array_equal(all_of(x), WHOLE)
        for use in (np.asarray, jax.device_get, pickle.dumps, list, lambda x: x.tolist(), lambda x: np.add(x, 1)):
            raises(RuntimeError, "spans devices of other processes", lambda use=use, x=x: use(x))
        raises(BufferError, "spans", lambda x=x: x.__dlpack__())
        raises(ValueError, "one device", lambda x=x: jax.device_put(x, HERE[0]))
        for same in (copy.copy(x), copy.deepcopy(x), x.copy(), x.block_until_ready(), jnp.asarray(x), x.clone()):
            np.testing.assert_array_equal(all_of(same), WHOLE)
            assert same.sharding.is_equivalent_to(x.sharding, 2)
        assert x in jax.live_arrays() if x.size == 0 else any(x is y for y in jax.live_arrays())
        x.delete()
        raises(RuntimeError, "deleted", lambda x=x: x + 1)


def test_copies_are_read_by_everybody():
    x = jax.device_put(WHOLE, on())
    np.testing.assert_array_equal(x, WHOLE)
    assert x.is_fully_replicated and not x.is_fully_addressable and len(x.addressable_shards) == len(HERE)
    assert float(jax.device_put(3.0, on())) == 3 and "Array(3." in repr(jax.device_put(3.0, on()))


def test_values_that_differ_are_not_put_in_one_place():
    raises(AssertionError, "not the same in all processes", lambda: jax.device_put(WHOLE + I, on("p")))
    mine = jax.device_put(WHOLE + I, HERE[-1])
    np.testing.assert_array_equal(mine, WHOLE + I)
    elsewhere = jax.device_put(np.ones(2), D[-1])
    assert repr(elsewhere) == ("Array([1., 1.], dtype=float32)" if I == N - 1 else "Array(shape=(2,), dtype=float32)")


def test_arrays_from_their_parts():
    for spec in SPECS:
        made = [
            jax.make_array_from_callback(WHOLE.shape, on(*spec), lambda index: WHOLE[index]),
            jax.make_array_from_single_device_arrays(
                WHOLE.shape,
                on(*spec),
                [
                    jax.device_put(WHOLE[i], d)
                    for d, i in on(*spec).addressable_devices_indices_map(WHOLE.shape).items()
                ],
            ),
            jax.make_array_from_process_local_data(on(*spec), WHOLE, WHOLE.shape),
        ]
        for x in made:
            np.testing.assert_array_equal(all_of(x), WHOLE)
            assert x.sharding == on(*spec)
    own = WHOLE[4 * I : 4 * I + 4]
    x = jax.make_array_from_process_local_data(on("p", "d"), {"a": own, "b": [own]}, WHOLE.shape)
    np.testing.assert_array_equal(all_of(x)["b"][0], WHOLE)
    np.testing.assert_array_equal(all_of(jax.make_array_from_process_local_data(on("p"), own)), WHOLE)
    rows = np.concatenate([WHOLE[i : i + 1] for i in (2 * I, 2 * I + 1)]) if len(HERE) == 2 else None
    if rows is not None:  # what a process has of an axis split over ("d", "p") lies in two places
        x = jax.make_array_from_process_local_data(on(("d", "p")), np.array([I, N + I], np.int32))
        np.testing.assert_array_equal(all_of(x), np.arange(2 * N))
    raises(ValueError, "must have the", lambda: jax.make_array_from_process_local_data(on("p"), own[:3], WHOLE.shape))
    raises(ValueError, "all integers", lambda: jax.make_array_from_process_local_data(on("p"), own, (None, 4)))
    one = jax.make_array_from_process_local_data(SingleDeviceSharding(HERE[0]), own)
    np.testing.assert_array_equal(one, own)


def test_random_keys_are_arrays_too():
    keys = jax.random.split(jax.random.key(0), 4 * N)
    x = jax.device_put(keys, on("p"))
    assert "key<fry>" in repr(x) and not x.is_fully_addressable
    np.testing.assert_array_equal(all_of(jax.random.key_data(x)), jax.random.key_data(keys))


def test_every_dtype_travels():
    for dtype in ("bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64", "float8_e5m2"):
        x = jax.device_put(jnp.arange(2 * N).astype(dtype), on("p"))
        np.testing.assert_array_equal(all_of(x), np.arange(2 * N).astype(jnp.dtype(dtype)))
    for shape in ((0, 3), (2 * N, 0)):
        assert all_of(jax.device_put(np.zeros(shape), on("p"))).shape == shape


def test_programs_on_arrays_that_span_processes():
    x, y = jax.device_put(WHOLE, on("p", "d")), jax.device_put(WHOLE[:, 0], on("p"))
    loss = lambda w, x: jnp.sum(jnp.tanh(x * w) ** 2)  # noqa: E731
    cases = [
        (lambda x, y: x + 1, (x, y)),
        (lambda x, y: x.T @ y, (x, y)),
        (lambda x, y: x[0], (x, y)),
        (lambda x, y: jnp.sort(x.reshape(-1)), (x, y)),
        (lambda x, y: jax.grad(loss)(x / 100, x), (x, y)),
        (lambda x, y: jax.lax.scan(lambda c, row: (c + row.sum(), c), 0.0, x)[1], (x, y)),
        (lambda x, y: x.at[0].set(1), (x, y)),
        (lambda x, y: jax.vmap(jnp.outer)(x, x) + y[:, None, None], (x, y)),
    ]
    for f, args in cases:
        wanted = f(jnp.asarray(WHOLE), jnp.asarray(WHOLE[:, 0]))
        for g in (f, jax.jit(f)):
            out = g(*args)
            assert out.devices() == set(D)
            np.testing.assert_allclose(all_of(out), wanted, rtol=1e-5)
            np.testing.assert_allclose(all_of(g(*args)), wanted, rtol=1e-5)  # as it was seen before
    assert float(jnp.sum(x)) == WHOLE.sum()
    moved = jax.device_put(x, on(None, "d"))
    assert moved.sharding == on(None, "d")
    np.testing.assert_array_equal(all_of(moved), WHOLE)
    summed = jax.jit(lambda x: x.sum(), out_shardings=on())(x)
    assert summed.is_fully_replicated and float(summed) == WHOLE.sum()
    raises(ValueError, "incompatible devices", lambda: x + jax.device_put(WHOLE, HERE[0]))


def test_jitted_programs_are_partitioned():
    """Nobody asks for a whole; what each process computes is its part."""
    mesh = Mesh(np.array(D), ("data",))
    split = lambda x, *spec: jax.device_put(x, NamedSharding(mesh, P(*spec)))  # noqa: E731
    n = len(D)
    x, w = np.random.default_rng(0).normal(size=(4 * n, 8)).astype(np.float32), np.ones((8, 2 * n), np.float32) / 8

    def step(w, x):
        value, g = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
        return w - g, value

    def train(w, x):
        return jax.lax.fori_loop(0, 5, lambda i, c: step(c[0], x), (w, 0.0))

    gather, processes.gather = processes.gather, None
    try:
        results = [
            jax.jit(f)(split(w, *spec), split(x, "data"))
            for f in (step, train)
            for spec in ((), (None, "data"))
            for _ in range(2)
        ]
    finally:
        processes.gather = gather
    for (new, value), f in zip(results, [step] * 4 + [train] * 4, strict=True):
        wanted, loss = f(jnp.asarray(w), jnp.asarray(x))
        np.testing.assert_allclose(all_of(new), wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(all_of(value), loss, rtol=1e-5)


def test_parts_move_without_the_whole():
    """Processes send each other what is needed: nobody gathers."""
    keys = jax.random.split(jax.random.key(0), 4 * N)
    turned = Mesh(np.array(D[::-1]).reshape(-1, N), ("q", "r"))
    places = [on(*s) for s in SPECS[:-1]] + [NamedSharding(turned, P(*s)) for s in (("q",), (None, "r"), ("r", "q"))]
    gather, processes.gather = processes.gather, None
    try:
        moved = [(p, jax.device_put(jax.device_put(WHOLE, q), p)) for q in places for p in places]
        keys_moved = jax.device_put(jax.device_put(keys, on("p")), NamedSharding(turned, P("q")))
        scalars = jax.device_put(jax.device_put(WHOLE[:0], on("p")), on(None, "d"))
    finally:
        processes.gather = gather
    for place, x in moved:
        assert x.sharding.is_equivalent_to(place, 2)
        for shard in x.addressable_shards:
            np.testing.assert_array_equal(shard.data, WHOLE[shard.index])
    for shard in keys_moved.addressable_shards:
        np.testing.assert_array_equal(jax.random.key_data(shard.data), jax.random.key_data(keys[shard.index]))
    assert scalars.shape == (0, 4)


def test_donated_arrays_are_gone():
    x = jax.device_put(WHOLE, on("p"))
    y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(all_of(y), WHOLE + 1)
    assert x.is_deleted()
