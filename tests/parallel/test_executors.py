"""Executors: programs of one device on threads give what the vectorised program gives; what is wrong is an error."""

import ctypes

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core import lazy
from catena.core.config import override
from catena.core.primitive import Primitive, registry
from catena.parallel import execution
from catena.parallel.communicator import SMALL, Group, fold, speaking
from catena.parallel.executors import agreement
from catena.parallel.executors.threads import on_all, team_of
from catena.parallel.vectorised import region_of
from catena.runtime import kernels
from catena.sharding import AxisType
from catena.sharding import PartitionSpec as P
from sharded_programs import differences

X = np.arange(64.0, dtype=np.float32).reshape(8, 8)
BOTH = P("a", "b")


def mapped(fun, in_specs=BOTH, out_specs=BOTH, sizes=(2, 4), **options):
    mesh = jax.make_mesh(sizes, ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    return jax.shard_map(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **{"check_vma": False, **options})


def threaded():
    return override("jax_executor", "threads")


def ragged(x):
    one, own = np.ones(4, np.int32), jnp.full(4, lax.axis_index("b"))
    return lax.ragged_all_to_all(x.reshape(-1, 1), jnp.zeros((8, 1)), np.arange(4), one, own, one, axis_name="b")


def inside(x):
    inner = lambda y: lax.psum(y, ("a", "b")) + lax.axis_index("b")  # noqa: E731
    specs = {"in_specs": P(None, "b"), "out_specs": P(None, "b")}
    return jax.shard_map(inner, axis_names={"b"}, check_vma=False, **specs)(x)


GROUPS, UNEQUAL = [[0, 3], [2, 1]], [[0], [1, 2, 3]]

# name: the function of one device, in_specs, out_specs, further options of shard_map
PROGRAMS = {
    "sums": (lambda x: lax.psum(x, "b") + lax.pmean(x.sum(), ("b", "a")), BOTH, P("a")),
    "sum of many": (lambda x: lax.psum(jnp.full(SMALL, x.sum()), ("a", "b")), BOTH, P()),
    "extrema": (lambda x: (lax.pmax(x > 30, ("a", "b")), lax.pmin(x.astype(int), "b")), BOTH, (P(), P("a"))),
    "halves": (lambda x: (lax.psum(x.astype("bfloat16"), "b"), lax.psum(x.astype("int8"), "b")), BOTH, P("a")),
    "gathers": (lambda x: lax.all_gather(x, ("b", "a"), axis=1).sum(1) + lax.all_gather(x, "a", tiled=True)[:4], BOTH, BOTH),
    "in groups": (
        lambda x: lax.psum(x, "b", axis_index_groups=UNEQUAL) + lax.all_gather(x, "b", axis_index_groups=GROUPS).sum(0),
        BOTH, BOTH,
    ),
    "scattered": (lambda x: lax.psum_scatter(x, "b", tiled=True), BOTH, BOTH),
    "exchanged": (lambda x: lax.all_to_all(x.reshape(2, 4), "b", 1, 0, tiled=True), BOTH, BOTH),
    "sent": (lambda x: lax.ppermute(x, "b", [(0, 2), (2, 1)]) + lax.pbroadcast(x, ("b", "a"), 3), BOTH, BOTH),
    "ragged": (ragged, BOTH, P(("a", "b"))),
    "places": (lambda x: jnp.full((1, 1), lax.axis_index(("b", "a"))), P(), BOTH),
    "nested": (inside, P("a"), P("a"), {"axis_names": {"a"}}),
    "vectorised inside": (
        lambda x: jax.vmap(lambda row: lax.psum(row, ("i", "a")) + lax.all_gather(row, "b").sum(0), axis_name="i")(x),
        BOTH, BOTH,
    ),
    "loops": (
        lambda x: lax.while_loop(
            lambda c: lax.psum(c.sum(), ("a", "b")) < 1e5, lambda c: c * 2 + lax.ppermute(c, "b", [(0, 1)]), x
        ),
        BOTH, BOTH,
    ),
    "branches": (
        lambda x: lax.cond(lax.axis_index("a") == 0, lambda x: lax.psum(x, "b"), lambda x: x - lax.pmax(x, "b"), x),
        BOTH, BOTH,
    ),
    "empty": (lambda x: lax.psum(x[:0], "a"), BOTH, P(None, "b")),
    "keys": (lambda x: lax.ppermute(jax.random.split(jax.random.key(0), 2), "a", [(1, 0), (0, 1)]), BOTH, P("a")),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_threads_give_what_the_vectorised_program_gives(compiled):
    def all_of(x):
        return {
            name: mapped(fun, in_specs, out_specs, **(more[0] if more else {}))(x)
            for name, (fun, in_specs, out_specs, *more) in PROGRAMS.items()
        }

    expected = jax.jit(all_of)(X)
    with threaded():
        found = jax.jit(all_of)(X) if compiled else all_of(X)
    for name in PROGRAMS:
        for a, b in zip(jax.tree.leaves(found[name]), jax.tree.leaves(expected[name]), strict=True):
            if name == "keys":
                a, b = jax.random.key_data(a), jax.random.key_data(b)
            assert (a.dtype, a.shape, a.sharding) == (b.dtype, b.shape, b.sharding), name
            np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_on_threads_are_the_mathematics_on_whole_arrays(seed):
    assert not differences(seed, bool(seed % 2), compiled=bool(seed // 2), executor="threads")


def test_threads_under_vmap_grad_and_scan():
    step = mapped(lambda x: x - 0.1 * lax.psum(x, "b"))
    loss = lambda x: (lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0] ** 2).sum()  # noqa: E731
    gradients = jax.vmap(jax.grad(loss))
    expected = jax.jit(gradients)(np.stack([X, -X]))
    with threaded():
        np.testing.assert_allclose(jax.jit(gradients)(np.stack([X, -X])), expected, rtol=1e-5)


def test_the_executor_belongs_to_the_keys_of_caches():
    seen = []
    ran = jax.jit(mapped(lambda x: (jax.debug.callback(lambda i: seen.append(int(i)), lax.axis_index("a")), x)[1]))
    ran(X)
    with threaded():
        ran(X)
        assert execution.executor() == "threads"
    assert execution.executor() == "vectorised" and sorted(seen[-8:]) == [0] * 4 + [1] * 4
    with pytest.raises(ValueError, match="new enum value"):
        jax.config.update("jax_executor", "gpu")


# ---- what goes wrong


@pytest.mark.parametrize(
    "fun, message",
    [
        (lambda x: lax.cond(lax.axis_index("a") == 0, lambda x: lax.psum(x, "a"), lambda x: x, x), r"(?s)do not meet.*has ended"),
        (
            lambda x: lax.cond(lax.axis_index("a") == 0, lambda x: lax.psum(x, "a"), lambda x: lax.pmax(x, "a"), x),
            r"(?s)do different things.*reduce \(max\) at .*test_executors.py",
        ),
        (
            lambda x: lax.cond(
                lax.axis_index("a") == 0, lambda x: lax.psum(x, ("a", "b")), lambda x: lax.psum(x, "a"), x
            ),
            r"(?s)do not meet.*device 0 waits at reduce \(sum\).*device 7 waits at reduce",
        ),
    ],
    ids=["one ends", "another operation", "other axes"],
)  # fmt: skip
def test_devices_that_would_wait_forever_are_an_error(fun, message):
    with threaded(), pytest.raises(jax.errors.JaxRuntimeError, match=message):
        jax.jit(mapped(fun))(X)


def test_what_one_device_raises_ends_all():
    def fails(i):
        if i == 3:
            raise KeyError("on device 3")
        return i

    def fun(x):
        i = lax.axis_index(("a", "b"))
        return lax.psum(x * jax.pure_callback(fails, i, i), "b")

    with threaded(), pytest.raises(jax.errors.JaxRuntimeError, match="on device 3"):
        jax.jit(mapped(fun))(X)
    with pytest.raises(KeyboardInterrupt):
        on_all(team_of({"i": 3}), lambda communicator: interrupted(communicator))


def interrupted(communicator):
    if communicator.number == 2:
        raise KeyboardInterrupt
    communicator.group(("i",)).barrier()


def test_a_program_of_one_device_needs_a_communicator():
    local = execution.local_of(eqn_of(mapped(lambda x: lax.psum(x, "a")))[0])
    with pytest.raises(jax.errors.JaxRuntimeError, match="outside of its mesh"):
        local.run([X[:4, :2]])


# ---- the seam


def test_folds_are_in_order_of_rank_whatever_the_size():
    rows = np.random.default_rng(0).normal(size=(3, SMALL)).astype(np.float32)
    found = {}

    def work(communicator):
        group = communicator.group(("i",))
        for n in (1, 5, SMALL):
            found[n, group.rank] = group.reduce(rows[group.rank, :n], "sum")
        found["scattered", group.rank] = group.scatter_sum(rows[:, :3])
        found["sent", group.rank] = group.permute(rows[group.rank, :2], ((0, 1), (2, 0)))

    on_all(team_of({"i": 3}), work)
    for rank in range(3):
        for n in (1, 5, SMALL):
            np.testing.assert_array_equal(found[n, rank], (rows[0, :n] + rows[1, :n]) + rows[2, :n])
        np.testing.assert_array_equal(found["scattered", rank], 3 * rows[rank, :3])
    np.testing.assert_array_equal([found["sent", i] for i in range(3)], [rows[2, :2], rows[0, :2], np.zeros(2)])
    halves = np.full((9, 1), 2049, np.float16)
    assert fold(halves, "sum")[0] == np.float16(9 * 2048)  # rounded once: 2049 is 2048 in half precision
    np.testing.assert_array_equal(fold(np.array([[1.0], [np.nan], [0.0]]), "max"), [np.nan])


def test_groups_are_numbered_in_the_order_of_the_names():
    found = {}

    def work(communicator):
        group = communicator.group(("b", "a"))
        found[communicator.number] = group.rank, group.size, communicator.group(("b",), ((0, 2), (1,))).size

    on_all(team_of({"a": 2, "b": 3}), work)
    assert found == {0: (0, 6, 2), 1: (2, 6, 1), 2: (4, 6, 2), 3: (1, 6, 2), 4: (3, 6, 1), 5: (5, 6, 2)}


# ---- agreement


def eqn_of(fun):
    eqn = jax.make_jaxpr(fun)(X).eqns[0]
    return eqn.params, region_of(eqn.params)


def test_programs_that_differ_are_found_before_they_run():
    programs = [mapped(lambda x: jnp.sin(lax.psum(x, "a")), sizes=(2, 1)) for _ in range(2)]
    others = [programs[0], mapped(lambda x: jnp.cos(lax.psum(x, "a")), sizes=(2, 1))]

    def agreed(both):
        locals_ = [execution.local_of(eqn_of(fun)[0]) for fun in both]
        on_all(team_of({"a": 2, "b": 1}), lambda device: agreement.agree(device, locals_[device.number]))

    agreed(programs)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"(?s)device 0: v.* = sin.*device 1: v.* = cos.*test_execut"):
        agreed(others)


def test_a_group_says_what_it_cannot():
    with pytest.raises(NotImplementedError):
        Group().gather(X)
    with speaking(None) as nobody:
        assert nobody is None


# ---- calls of C, as programs call MPI

TWICE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)


def test_programs_call_c_functions_with_words_that_are_filled_in_later():
    seen = []

    @TWICE
    def twice(source, count, out, factor, space):
        values = np.frombuffer((ctypes.c_float * count).from_address(source), np.float32)
        np.frombuffer((ctypes.c_float * count).from_address(out), np.float32)[:] = factor * values
        seen.append((kernels.waits_in(), space == call.cell.address + 8))
        return int(values[0] > 50)

    address = ctypes.cast(twice, ctypes.c_void_p).value
    arguments = ("in", 0), 3, ("out", 0), ("int", 0), ("space", 1)
    call = kernels.ForeignCall(address, arguments, 2, 64, lambda x: call.cell.words[0] * x, "a line")
    lower = lambda b, x: b.host_call(call, [x], [jax.core.ShapedArray((3,), np.float32)], ordered=True)[0]  # noqa: E731
    p = Primitive("a_call_of_c", abstract=lambda x: x, evaluate=lambda x: call(x), lower=lower)
    try:
        run = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: p.bind(c) + 1, x))
        call.cell.words[0] = 2
        np.testing.assert_array_equal(run(np.zeros(3, np.float32)), [7, 7, 7])
        if seen:  # where there is a compiler
            assert [count for (count, _), _ in seen] == list(range(seen[0][0][0], seen[0][0][0] + 3))
            assert seen[0][0][1] == "a line" and seen[0][1] and kernels.waits_in() is None
            with pytest.raises(RuntimeError, match="failed"):
                run(np.full(3, 60, np.float32))
    finally:
        del registry["a_call_of_c"]


@pytest.mark.parametrize("executor", ["vectorised", "threads"])
def test_programs_of_devices_are_checked_as_whole_ones(executor):
    logs = mapped(lambda x: lax.psum(jnp.log(x), "a"), P(("a", "b")), P("b"))
    row = mapped(lambda x, i: x[i], (P(("a", "b")), P()), P(("a", "b")))
    good, bad = jnp.arange(1.0, 9.0), jnp.arange(-3.0, 5.0)
    place = "log at" if lazy.has_compiler() or executor == "vectorised" else "the results of"  # programs on threads
    with override("jax_executor", executor):
        for checked in (jax.jit(logs, checks="nan"), jax.jit(lambda x: logs(x) + 1, checks="all")):
            assert np.isfinite(checked(good)).all()
            with pytest.raises(FloatingPointError, match=r"encountered in log at .*test_executors.py"):
                checked(bad)
        for unchecked in (logs, jax.jit(logs)):
            assert np.isnan(unchecked(bad)).any()
            with jax.debug_nans(True):
                assert np.isfinite(unchecked(good)).all()
                with pytest.raises(FloatingPointError, match=f"encountered in {place}"):
                    unchecked(bad)
            assert np.isnan(unchecked(bad)).any()
        assert jax.jit(row, checks="index")(good, jnp.array([0])).shape == (8,)
        with pytest.raises(IndexError, match="index 1 is out of bounds"):
            jax.jit(row, checks="index")(good, jnp.array([1]))
