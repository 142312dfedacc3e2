"""Computation follows data: results are where their operands were put, committed or not as these are."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
import structured_cases  # noqa: F401  more cases
from catena import P, lax
from catena.core.array import Array
from catena.core.placed import PlacedArray
from numpy_examples import EXAMPLES
from rule_cases import CASES

D = jax.devices()
U = jnp.ones(2)  # nobody put it anywhere
X0, X1, X2 = (jax.device_put(U, D[i]) for i in range(3))
with jax.default_device(D[3]):
    V = jnp.ones(2)  # made on device 3, but not committed to it
KEY = jax.device_put(jax.random.key(0), D[2])
ON_1 = jax.sharding.SingleDeviceSharding(D[1])
ON_2 = jax.sharding.SingleDeviceSharding(D[2])


def where(tree) -> list:
    """For each array of a tree the numbers of its devices and whether it is committed."""
    arrays = [x for x in jax.tree.leaves(tree) if isinstance(x, jax.Array)]
    for x in arrays:
        assert x.committed == x._committed and x.devices() == x.sharding.device_set
    return [(sorted(d.id for d in x.devices()), x.committed) for x in arrays]


HOME, TWO = ([0], False), ([2], True)

sine = jax.custom_jvp(lambda x: jnp.sin(x))
sine.defjvp(lambda primals, tangents: (sine(*primals), jnp.cos(*primals) * tangents[0]))

CALLS = {
    "operators": lambda x: (x + 1, 1 + x, -x, x**2, 2**x, x @ x, x == x, x < U, U - x, x / U, divmod(x, 2)),
    "methods": lambda x: (x.T, x.reshape(1, 2), x.sum(), x.astype(int), x[0], x[None], x.at[0].set(1), x.copy()),
    "numpy": lambda x: (jnp.sin(x), jnp.add(x, U), jnp.concatenate([x, U]), jnp.stack([U, x]), jnp.where(U > 0, x, U)),
    "like": lambda x: (jnp.zeros_like(x), jnp.ones_like(x), jnp.full_like(x, 2), lax.full_like(x, 1.0)),
    "arrays of arrays": lambda x: (jnp.array(x), jnp.asarray(x), jnp.array([x[0], x[1]]), jnp.asarray(x, "int32")),
    "values decide the shape": lambda x: (jnp.nonzero(x), jnp.unique(x), x[x > 0], jnp.argwhere(x)),
    "copies": lambda x: (copy.copy(x), copy.deepcopy(x), jax.device_put(x), list(x), x.clone()),
    "jit": lambda x: jax.jit(lambda a, b: (a, b, a + b, 1.0))(x, U),
    "jit, again": lambda x: [jax.jit(lambda a: {"y": a * 2})(x) for _ in range(3)],
    "grad": lambda x: jax.grad(lambda x: jnp.sum(x * x))(x),
    "hessian": lambda x: (jax.hessian(lambda x: jnp.sum(x**3))(x), jax.jacfwd(jnp.sin)(x), jax.jacrev(jnp.sin)(x)),
    "linearize": lambda x: jax.linearize(jnp.sin, x)[1](U),
    "vmap": lambda x: jax.vmap(lambda x: (x + 1, x))(x),
    "scan": lambda x: (lax.scan(lambda c, x: (c + x, c), 0.0, x), lax.scan(lambda c, x: (c + x, c), x[0], U)),
    "while": lambda x: (lax.while_loop(lambda x: x[0] < 3, lambda x: x + 1, x), lax.fori_loop(0, 3, lambda i, x: x, x)),
    "cond": lambda x: (lax.cond(True, lambda x: x, jnp.sin, x), lax.cond(x[0] > 0, lambda x: x, jnp.sin, U)),
    "switch, map": lambda x: (lax.switch(1, [jnp.sin, jnp.cos], x), lax.map(jnp.sin, x)),
    "checkpoint": lambda x: jax.checkpoint(jnp.sin)(x),
    "custom_jvp": lambda x: sine(x),
    "associative_scan": lambda x: lax.associative_scan(jnp.add, x),
    "callback": lambda x: jax.pure_callback(lambda x: x, U, x),
    "einsum": lambda x: jnp.einsum("i,i", x, U),
    "linalg, fft": lambda x: (jnp.linalg.inv(jnp.eye(2) * x), jnp.fft.fft(x), jnp.sort(x)),
    "keys": lambda x: (jax.random.key(x.astype(int)[0]), jax.random.uniform(jax.random.key(0), (2,), minval=x)),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_follow_committed_operands(name):
    assert set(map(str, where(CALLS[name](X2)))) == {str(TWO)}


@pytest.mark.parametrize("name", CALLS)
def test_an_array_that_nobody_put_anywhere_stays_plain(name):
    for x in jax.tree.leaves(CALLS[name](U)):
        assert type(x) is Array or type(x).__name__ == "ExtendedArray"


RANDOM = {
    "split": jax.random.split,
    "fold_in": lambda k: jax.random.fold_in(k, 1),
    "key_data": jax.random.key_data,
    "wrap_key_data": lambda k: jax.random.wrap_key_data(jax.random.key_data(k)),
    "uniform": jax.random.uniform,
    "of a split key": lambda k: jax.random.uniform(jax.random.split(k)[0]),
    "normal": lambda k: jax.random.normal(k, (3,)),
    "randint": lambda k: jax.random.randint(k, (3,), 0, 9),
    "permutation": lambda k: jax.random.permutation(k, 5),
    "gamma": lambda k: jax.random.gamma(k, 2.0),
    "bits": jax.random.bits,
    "index": lambda k: jax.random.split(k)[0],
    "copy": copy.copy,
    "rows": lambda k: list(jax.random.split(k, 2)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_follow_their_key(name):
    assert where(KEY) == [TWO]
    for _ in range(2):  # the second draw is remembered
        assert set(map(str, where(RANDOM[name](KEY)))) == {str(TWO)}
        assert set(map(str, where(RANDOM[name](jax.random.key(0))))) == {str(HOME)}


@pytest.mark.parametrize("name", RANDOM)
def test_numbers_follow_a_key_that_was_placed_after_calls_with_one_that_was_not(name):
    draw = RANDOM[name]
    for key, place in [(jax.random.key(1), HOME), (jax.device_put(jax.random.key(1), D[2]), TWO)] * 2:
        for _ in range(2):
            assert set(map(str, where(draw(key)))) == {str(place)}


def test_jitted_functions_follow_placed_keys():
    f = jax.jit(lambda key, x: (jax.random.normal(key, (2,)) + x, jax.random.split(key)))
    for key, place in [
        (jax.random.key(1), HOME),
        (KEY, TWO),
        (jax.device_put(jax.random.key(1), D[1]), ([1], True)),
    ] * 2:
        assert set(map(str, where(f(key, 1.0)))) == {str(place)}


def test_raw_keys_take_numbers_along():
    assert where(jax.random.uniform(jax.device_put(jax.random.PRNGKey(0), D[2]))) == [TWO]


# ---- generated: every public function of catena.numpy, every primitive with a case

# what they make depends on shapes alone, which are nowhere
OF_SHAPES = {
    "iscomplex", "isreal", "diag_indices_from", "tril_indices_from", "triu_indices_from", "arange", "from_dlpack"
}  # fmt: skip


def put(x, device):
    if isinstance(x, np.ndarray) and x.dtype.kind in "biufcV":
        return jax.device_put(x, device)
    if type(x) in (tuple, list):
        return type(x)(put(y, device) for y in x)
    return {k: put(y, device) for k, y in x.items()} if type(x) is dict else x


def has_array(x) -> bool:
    if type(x) in (tuple, list):
        return any(map(has_array, x))
    return isinstance(x, np.ndarray) and x.dtype.kind in "biufcV"


@pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in OF_SHAPES])
def test_every_function_follows_its_arrays(name):
    fun = jnp
    for part in name.split("."):
        fun = getattr(fun, part)
    for args, kwargs in EXAMPLES[name]:
        if has_array([*args, *kwargs.values()]):
            out = fun(*put(list(args), D[2]), **put(kwargs, D[2]))
            assert set(map(str, where(out))) <= {str(TWO)}, (args, kwargs)


@pytest.mark.parametrize("name", CASES)
def test_every_primitive_follows_its_operands(name):
    case = CASES[name]
    dtype = "float32" if "float32" in case.dtypes else "int32" if "int32" in case.dtypes else case.dtypes[-1]
    args = case.make(np.random.default_rng(0), dtype)
    if has_array(list(args)):
        assert set(map(str, where(case.fun(*put(list(args), D[2]))))) <= {str(TWO)}


# ---- what is committed to different places


@pytest.mark.parametrize(
    "call",
    [
        lambda: X0 + X1,
        lambda: jnp.add(X2, X1),
        lambda: jax.jit(lambda x, y: x + y)(X0, X1),
        lambda: jax.jit(lambda x, *, y: x + y)(X0, y=X1),
        lambda: jnp.array(X1, device=D[2]),
        lambda: jnp.asarray(X1, device=D[2]),
        lambda: X2.at[0].set(X1[0]),
        lambda: jnp.array([X2[0], X1[0]]),
        lambda: jnp.stack([X2, X1]),
        lambda: jnp.concatenate([X2, X1]),
        lambda: lax.cond(X2[0] > 0, lambda x: x, jnp.sin, X1),
        lambda: lax.scan(lambda c, x: (c + x, c), X1[0], X2),
        lambda: jax.grad(lambda x: jnp.sum(x * X1))(X2),
        lambda: jax.vmap(jnp.add)(X1, X2),
        lambda: jax.random.uniform(KEY, (2,), minval=X1),
    ],
)
def test_operands_committed_to_different_devices_are_refused(call):
    with pytest.raises(ValueError, match="Received incompatible devices for jitted computation"):
        call()


def test_the_error_names_the_arguments():
    with pytest.raises(ValueError, match=r"Got argument x of add with shape float32\[2\] and with device ids \[2\] on"):
        X2 + X1
    with pytest.raises(ValueError, match=r"argument b of jit\(pair\) .* device ids \[1\] on platform CPU"):

        def pair(a, b):
            return a + b

        jax.jit(pair)(X2, X1)


def test_what_a_program_does_not_read_does_not_count():
    assert where(jax.jit(lambda a, b: b)(X2, U)) == [HOME]
    assert where(jax.jit(lambda a, b: b)(X2, X1)) == [([1], True)]
    assert where(jax.jit(lambda b: b + X2)(X1)) == [([1], True)]  # a constant is part of the program


# ---- the default device


def test_new_arrays_are_on_the_default_device():
    with jax.default_device(D[3]):
        made = [
            jnp.ones(2),
            jnp.array(1.0),
            jnp.arange(3),
            jnp.asarray(np.ones(2)),
            jax.device_put(np.ones(2)),
            jnp.eye(2),
        ]
        made += [U + 1, jnp.sin(U), jax.jit(lambda x: x)(U), jax.random.uniform(jax.random.key(0)), lax.full((2,), 1.0)]
        made += [
            jnp.concatenate([U, U]),
            jnp.stack([U, U]),
            jnp.tri(2),
            jnp.bartlett(3),
            *jnp.nonzero(U),
            jnp.unique(U),
        ]
        made += jax.tree.leaves(lax.scan(lambda c, x: (c + x, c), 0.0, U))
        assert where(made) == [([3], False)] * len(made)
        assert where(X2 + 1) == [TWO] and where(jax.device_put(U)) == [HOME]
    assert where(jnp.ones(2)) == [HOME]
    with jax.default_device("cpu"):
        assert type(jnp.ones(2)) is Array
    with jax.default_device(D[0]):
        assert type(jnp.ones(2) + 1) is Array


def test_uncommitted_arrays_are_computed_on_at_the_default_device():
    assert where(V) == [([3], False)]
    results = (V + 1, V + U, U + V, V.reshape(1, 2), jax.jit(lambda x: x)(V), jnp.array(V), V[0])
    assert where(results) == [HOME] * 7
    assert where((V + X2, X2 + V, jax.device_put(V), jnp.asarray(V))) == [TWO, TWO, ([3], False), ([3], False)]


# ---- putting


def test_device_put_of_traced_values():
    """It leaves an equation, which puts values where they are asked for when it is evaluated."""
    put = lambda x: jax.device_put(x * 2, D[2])  # noqa: E731
    (product, moved) = jax.make_jaxpr(put)(U).eqns
    assert moved.primitive.name == "device_put" and moved.params["devices"] == (D[2],)
    assert where(jax.lax.device_put_p.bind(U, **moved.params)) == [TWO]
    for function in (put, jax.vmap(put), lambda x: jax.jvp(put, (x,), (x,))[1], lambda x: jax.vjp(put, x)[0]):
        assert where(function(U)) == [TWO]
        np.testing.assert_array_equal(function(U), 2 * np.asarray(U))
    back = jax.vjp(lambda x: jax.device_put(x * 2, D[2], src=D[1]), U)[1](jax.device_put(U, D[2]))
    np.testing.assert_array_equal(back[0], 2 * np.asarray(U))
    mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.vmap(lambda x: jax.device_put(x, jax.NamedSharding(mesh, jax.P("i"))), 1, 1)(jnp.ones((4, 3)))
    assert rows.sharding.spec == jax.P("i", None)


def test_device_put():
    assert where(jax.device_put({"a": U, "b": U}, {"a": D[1], "b": D[2]})) == [([1], True), TWO]
    assert where(jax.device_put((X1, X2), (None, D[3]))) == [([1], True), ([3], True)]
    assert where((jax.device_put(X2, D[0]), X2.to_device(D[1]), jax.device_put(np.ones(2)))) == [
        ([0], True), ([1], True), HOME
    ]  # fmt: skip
    with pytest.raises(ValueError, match="may_alias and donate cannot be True at the same time"):
        jax.device_put(U, D[0], may_alias=True, donate=True)
    moved = jax.device_put(U + 1, D[2])
    assert where(jax.device_put(moved, D[3], donate=True)) == [([3], True)] and moved.is_deleted()


def test_arrays_made_on_a_device():
    made = [jnp.zeros(2, device=D[2]), jnp.arange(2, device=D[2]), jnp.array(1.0, device=D[2]), jnp.eye(2, device=D[2])]
    made += [jnp.array(U, device=D[2]), jnp.ones_like(X1, device=D[2]), jnp.asarray(np.ones(2), device=ON_2)]
    assert where(made) == [TWO] * len(made)
    assert where(jnp.zeros(2, device=D[0])) == [([0], True)]


def test_a_placed_array_is_an_array():
    assert isinstance(X2, jax.Array) and type(X2) is PlacedArray and type(U) is Array
    assert X2.device is D[2] and X2.sharding == ON_2 and X2.aval == U.aval and X2.weak_type is False
    assert repr(X2) == repr(U) and where(pickle.loads(pickle.dumps(X2))) == [HOME]
    np.testing.assert_array_equal(np.asarray(X2), [1, 1])
    x = jax.device_put(U * 2, D[2])
    assert any(x is y for y in jax.live_arrays()) and any(x is y for y in D[2].live_buffers())
    x.delete()
    with pytest.raises(RuntimeError, match="deleted with shape=float32"):
        x + 1


def test_donation_of_a_placed_array():
    x = jax.device_put(jnp.arange(4.0), D[2])
    assert where(jax.jit(lambda x: x + 1, donate_argnums=0)(x)) == [TWO] and x.is_deleted()


# ---- jit with places


def test_shardings_of_jit():
    def triple(x):
        return x * 3

    for _ in range(3):  # the first call is traced, the others are remembered
        put_out = jax.jit(triple, out_shardings=ON_1)
        put_in = jax.jit(triple, in_shardings=ON_1)
        assert where((put_out(1.0), put_out(U), put_in(1.0), put_in(X2), put_in(V))) == [([1], True)] * 5
        assert put_out(U).tolist() == [3, 3]
    both = jax.jit(lambda x, y: (x * 3, {"y": y}), in_shardings=(ON_1, None), out_shardings=(ON_1, None))
    assert where(both(1.0, U)) == [([1], True)] * 2
    compiled = jax.jit(triple, out_shardings=ON_1).lower(U).compile()
    assert where(compiled(U)) == [([1], True)] and compiled.output_shardings == ON_1
    assert where(jax.jit(lambda x: jax.jit(triple, out_shardings=ON_1)(x))(X2)) == [TWO]  # one program, one device
    assert where(pickle.loads(pickle.dumps(jax.jit(jnp.sin, out_shardings=ON_1)))(U)) == [([1], True)]


def test_transformed_calls_run_where_they_were_told_to():
    for on_1 in (
        jax.jit(jnp.sin, device=D[1]),
        jax.jit(jnp.sin, out_shardings=ON_1),
        jax.jit(jnp.sin, in_shardings=ON_1),
    ):
        assert where((jax.vmap(on_1)(U), jax.jvp(on_1, (U,), (U,)), jax.linearize(on_1, U)[1](U))) == [([1], True)] * 4
        assert where(jax.grad(lambda x, f=on_1: f(x).sum())(U)) == [([1], True)]
        assert where(jax.jit(jax.grad(lambda x, f=on_1: f(x).sum()))(X2)) == [TWO]


def test_device_of_jit():
    on_1 = jax.jit(lambda x, y=0: x * 3 + y, device=D[1])
    assert where((on_1(1.0), on_1(X2), on_1(V), on_1(U, y=X2))) == [([1], True)] * 4
    assert where(jax.jit(lambda x: x, backend="cpu")(X2)) == [([0], True)]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jax.jit(jnp.sin, in_shardings=ON_1, out_shardings=ON_2)(U), ValueError, "incompatible devices"),
        (lambda: jax.jit(jnp.sin, out_shardings=ON_1)(X2), ValueError, r"\[2\] .* output sharding .* \[1\]"),
        (lambda: jax.jit(jnp.sin, out_shardings=(ON_1, None))(U), ValueError, "out_shardings"),
        (lambda: jax.jit(jnp.add, in_shardings=(ON_1,))(U, U), ValueError, "length 1 for an args tuple of length 2"),
        (lambda: jax.jit(lambda x: x, in_shardings=ON_1)(x=U), ValueError, "does not support kwargs"),
        (lambda: jax.jit(jnp.sin, in_shardings=3), TypeError, "in_shardings must be shardings"),
        (lambda: jax.jit(jnp.sin, out_shardings="a"), TypeError, "out_shardings must be shardings"),
        (
            lambda: jax.jit(jnp.sin, device=D[1], out_shardings=ON_1),
            ValueError,
            "out_shardings should not be specified",
        ),
        (lambda: jax.jit(jnp.sin, device=D[1], backend="cpu"), ValueError, "both a device and a backend"),
        (lambda: jax.jit(jnp.sin, device="x"), TypeError, "must be a Device"),
    ],
)
def test_jit_refuses_places_that_contradict(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- pmap


def test_results_of_pmap_are_on_its_devices():
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    p = jax.pmap(lambda x: x + 1)(rows)
    assert where(p) == [([0, 1, 2, 3], True)] and not p.is_fully_replicated
    assert where(jax.pmap(lambda x: x, devices=D[4:])(rows)) == [([4, 5, 6, 7], True)]
    for i, shard in enumerate(p.addressable_shards):
        assert shard.device is D[i] and shard.index == (slice(i, i + 1), slice(None))
        np.testing.assert_array_equal(shard.data, rows[i : i + 1] + 1)
        assert where(shard.data) == [([i], True)]
    assert p.sharding.shard_shape(p.shape) == (1, 2) and p.device == p.sharding
    across = jax.pmap(lambda x: (x, 2.0), out_axes=(1, None))(rows)
    assert [s.data.shape for s in across[0].addressable_shards] == [(2, 1)] * 4
    assert across[1].is_fully_replicated and len(across[1].addressable_shards) == 4
    four = [([0, 1, 2, 3], True)]
    assert where((p + 1, jax.jit(jnp.sin)(p), p.sum(), p[0], jax.pmap(jnp.sin)(p))) == four * 5
    assert [len(x.addressable_shards) for x in (p + 1, p.sum())] == [4, 4] and p.sum().is_fully_replicated
    assert where(list(p)) == [HOME] * 4 and where(jax.device_put(p, D[1])) == [([1], True)]
    assert where(jax.pmap(jnp.sin, devices=D[4:])(p)) == [([4, 5, 6, 7], True)]
    with pytest.raises(ValueError, match=r"device ids \[0, 1, 2, 3\]"):
        p + jax.device_put(rows, D[0])


def test_results_of_pmap_are_on_its_devices_under_transformations():
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    square = jax.pmap(lambda x: lax.psum(x * x, "i"), axis_name="i")
    found = jax.jit(square)(rows), jax.grad(lambda x: square(x).sum())(rows), jax.vmap(square)(rows[:, :, None])
    assert where(found) == [([0, 1, 2, 3], True)] * 2 + [([0, 1], True)]
    assert found[0].sharding.spec == P("i") and found[2].sharding.spec == P(None, "i")
    np.testing.assert_array_equal(found[1], 8 * rows)
    np.testing.assert_array_equal(found[2], np.stack([np.full((2, 1), (r * r).sum()) for r in rows]))
    other = jax.pmap(lambda x: x, devices=D[3::-1])(rows)
    assert [s.device.id for s in other.addressable_shards] == [3, 2, 1, 0]
    gone = jax.device_put(rows, found[0].sharding)
    assert jax.pmap(lambda x: x + 1, axis_name="i", donate_argnums=0)(gone).shape == (4, 2) and gone.is_deleted()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jax.pmap(jax.pmap(jnp.sin))(np.ones((2, 2))), "mesh of pmap, .* is not the one in force"),
        (lambda: jax.pmap(lambda: 1, axis_size=2)(), "at least one argument with a mapped axis"),
        (lambda: jax.pmap(jnp.sin, axis_name=("a", "b"))(np.ones(2)), "pmap maps over one axis"),
        (lambda: jax.pmap(jnp.sin)(np.ones((0, 2))), "over no examples"),
    ],
)
def test_pmap_refuses_what_is_no_mesh(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_pmap_is_run_by_threads():
    jax.config.update("jax_executor", "threads")
    try:
        found = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(np.arange(4, dtype=np.float32))
    finally:
        jax.config.update("jax_executor", None)
    assert where(found) == [([0, 1, 2, 3], True)] and found.tolist() == [6, 6, 6, 6]


def test_results_lie_as_donated_arguments_did():
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    split = jax.NamedSharding(mesh, P("x", "y"))
    x = jax.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), split)
    for _ in range(3):  # the first call, and those that are remembered
        before, x = x, jax.jit(lambda x: x + 1, donate_argnums=0)(x)
        assert before.is_deleted() and x.sharding == split
    np.testing.assert_array_equal(x, np.arange(64).reshape(8, 8) + 3)


# ---- how many devices there are


def test_the_number_of_devices_is_fixed_once_they_are_used():
    jax.config.update("jax_num_cpu_devices", len(jax.devices()))
    with pytest.raises(RuntimeError, match="must be set before devices are used"):
        jax.config.update("jax_num_cpu_devices", 9)
    assert len(jax.devices()) == 8


@pytest.mark.parametrize(
    ("environment", "first", "number"),
    [
        ({"XLA_FLAGS": "--xla_foo=1 --xla_force_host_platform_device_count=5"}, "", 5),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=5"}, "j.config.update('jax_num_cpu_devices', 3)", 3),
        ({}, "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'", 4),
    ],
)
def test_the_number_that_xla_was_told(environment, first, number):
    clean = {k: v for k, v in os.environ.items() if k != "CATENA_NUM_CPU_DEVICES"}
    clean["PYTHONPATH"] = str(Path(jax.__file__).parents[1])
    program = f"import catena as j\n{first}\nprint(len(j.devices()))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean | environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(number)]


def test_calls_that_were_seen_put_results_where_the_first_did():
    first, second, third = [jax.device_put(np.arange(8.0, dtype=np.float32), d) for d in jax.devices()[:3]]
    mesh = jax.make_mesh((8,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.device_put(first, jax.sharding.NamedSharding(mesh, jax.P("i")))
    f = jax.jit(lambda x, y: (x + y, 2 * x.sum()))
    laid_out = jax.jit(lambda x: x + 1, out_shardings=split.sharding)
    for _ in range(3):
        assert [x.devices() for x in f(second, second)] == [second.devices()] * 2
        assert [x.devices() for x in f(third, np.ones(8, np.float32))] == [third.devices()] * 2
        assert [x.sharding.spec for x in f(split, split)] == [jax.P("i"), jax.P()]
        assert laid_out(np.ones(8)).sharding == split.sharding and laid_out(np.ones(8)).committed
        with jax.default_device(jax.devices()[5]):
            assert f(np.ones(8), np.ones(8))[1].devices() == {jax.devices()[5]}
            assert f(second, second)[0].devices() == second.devices()
        with pytest.raises(ValueError, match="incompatible devices"):
            f(second, third)
    second.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(second, second)


def test_device_get_leaves_values_in_programs_as_they_are():
    """As rlax's tests take derivatives of functions whose arguments are got."""
    square = lambda x: jax.device_get(x) ** 2  # noqa: E731
    assert jax.grad(square)(3.0) == 6 and jax.jit(jax.vmap(square))(np.full(2, 3.0)).tolist() == [9, 9]
