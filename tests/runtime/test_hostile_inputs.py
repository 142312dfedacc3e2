"""Nothing that a user passes may crash the process or change its meaning: odd memory layouts, dtypes that are no
numbers, and sizes that no machine has.
"""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

VALUES = np.arange(24, dtype="float32").reshape(4, 6)


def misaligned(values):
    raw = np.zeros(values.nbytes + 1, np.uint8)
    out = raw[1:].view(values.dtype).reshape(values.shape)
    out[...] = values
    assert not out.flags.aligned
    return out


def read_only(values):
    out = values.copy()
    out.flags.writeable = False
    return out


class Subclass(np.ndarray):
    """A class of arrays that means nothing to us."""


LAYOUTS = {
    "column-major": np.asfortranarray(VALUES),
    "backwards": VALUES[::-1, ::-2],
    "strided": np.arange(100, dtype="float32")[::7].reshape(3, 5),
    "broadcast": np.broadcast_to(np.float32(2), (3, 4)),
    "overlapping": np.lib.stride_tricks.sliding_window_view(VALUES[0], 3),
    "misaligned": misaligned(VALUES),
    "misaligned int64": misaligned(VALUES.astype("int64")),
    "misaligned complex": misaligned(VALUES.astype("complex64")),
    "big-endian": VALUES.astype(">f4"),
    "big-endian int16": VALUES.astype(">i2"),
    "big-endian complex": VALUES.astype(">c8"),
    "read-only": read_only(VALUES),
    "no rows": np.zeros((0, 3), "float32"),
    "no columns": np.zeros((3, 0), "float32"),
    "float16": VALUES.astype("float16"),
    "bool": VALUES > 3,
    "subclass": VALUES.view(Subclass),
}

FUNCTIONS = {
    "x + 1": (lambda x: x + 1, lambda x: x + 1),
    "sum": (lambda x: jnp.sum(x, axis=-1), lambda x: np.sum(x, axis=-1)),
    "cumsum": (lambda x: jnp.cumsum(x, axis=-1), lambda x: np.cumsum(x, axis=-1)),
    "product": (lambda x: x @ x.T, lambda x: x @ x.T),
    "sort": (lambda x: jnp.sort(x, axis=0), lambda x: np.sort(x, axis=0)),
    "reversed": (lambda x: x[..., ::-1], lambda x: x[..., ::-1]),
    "transposed": (lambda x: x.T * 2, lambda x: x.T * 2),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_layout_does_not_matter(layout, name):
    given = LAYOUTS[layout]
    fun, reference = FUNCTIONS[name]
    plain = np.array(np.asarray(given), dtype=given.dtype.newbyteorder("="))
    before = plain.copy()
    want = reference(plain)
    for result in (fun(jnp.asarray(given)), jax.jit(fun)(given), jax.jit(fun)(jnp.asarray(given))):
        np.testing.assert_allclose(np.asarray(result), want, rtol=1e-3 if plain.dtype == "float16" else 1e-5)
    np.testing.assert_array_equal(np.asarray(given), before)  # nobody wrote to it


REFUSED = {
    "long double": VALUES.astype(np.longdouble),
    "complex long double": VALUES.astype(np.clongdouble),
    "objects": np.array([[1, "a"]], dtype=object),
    "text": np.array([["a", "b"]]),
    "bytes": np.array([[b"x"]]),
    "dates": np.array([["2020-01-01"]], dtype="datetime64[D]"),
    "records": np.zeros((2, 2), dtype=[("a", "f4"), ("b", "i4")]),
    "a set": {1},
    "an object": object(),
    "text itself": "abc",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_number_is_refused(kind):
    given = REFUSED[kind]
    for fun in (jnp.asarray, jnp.sin, jnp.sum, jax.jit(jnp.sin), jax.grad(jnp.sum), jax.vmap(jnp.sin)):
        with pytest.raises((TypeError, ValueError)):
            fun(given)


def test_masked_arrays_are_refused_since_their_mask_would_be_lost():
    given = np.ma.masked_array(VALUES, VALUES > 5)
    for fun in (jnp.asarray, jnp.array, jnp.sum, lambda x: jnp.add(x, 1), jax.jit(jnp.sum), jax.grad(jnp.sum)):
        with pytest.raises(ValueError, match="masked arrays are not supported"):
            fun(given)


def ones(*shape):
    return lambda: jnp.ones(shape)


TOO_LARGE = {
    "zeros": lambda: jnp.zeros((10**6, 10**6, 100)),
    "arange": lambda: jnp.arange(1, 10**14),
    "eye": lambda: jnp.eye(2**30),
    "broadcast sum": lambda: jnp.ones(2**20)[:, None] + jnp.ones(2**20) + jnp.ones((2**10, 1, 1)),
    "pad": lambda: jnp.pad(jnp.ones(3), 2**45),
    "tile": lambda: jnp.tile(jnp.ones(3), 2**45),
    "compiled": lambda: jax.jit(ones(2**20, 2**20, 2**10))(),
    "compiled, in between": lambda: jax.jit(
        lambda x: jnp.sort(jnp.broadcast_to(x, (2**20, 2**20, 2**10)), axis=0)[3, 2, 1]
    )(1.0),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_too_little_memory_is_an_error(name):
    with pytest.raises(MemoryError, match="(?i)allocat"):
        TOO_LARGE[name]()
    assert jax.jit(lambda x: x + 1)(1) == 2  # and life goes on


def test_too_little_memory_for_a_compiled_program_is_also_a_runtime_error():
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED.*shape \(1048576, 1048576, 1024\)"):
        jax.jit(ones(2**20, 2**20, 2**10))()


@pytest.mark.skipif(sys.platform != "linux", reason="what is in use is read as on Linux")
def test_compiling_with_too_little_memory_is_an_error_and_not_the_end():
    """LLVM ends the process where it cannot have memory. Here Python has enough, and LLVM has not."""
    script = """
        import resource
        import catena as jax
        from catena import numpy as jnp
        jax.jit(lambda x: jnp.tanh(x) + 1)(1.0)
        limits = resource.getrlimit(resource.RLIMIT_AS)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), limits[1]))
        try:
            jax.jit(lambda x: jnp.sort(x * 3))(jnp.ones(5))
        except MemoryError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        print(jax.jit(lambda x: jnp.sort(x * 3))(jnp.ones(5))[0])
    """
    env = os.environ | {"CATENA_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, env=env)
    said, result = done.stdout.splitlines()
    assert said.startswith("RESOURCE_EXHAUSTED: Out of memory while") and result == "3.0", done.stderr


def test_types_of_any_size_can_be_reasoned_about():
    assert jax.eval_shape(ones(2**40, 2**40)).shape == (2**40, 2**40)


BAD_SHAPES = {
    "negative": lambda: jnp.zeros((-1,)),
    "a float": lambda: jnp.zeros(2.5),
    "not a number": lambda: jnp.zeros(float("nan")),
    "text": lambda: jnp.zeros("ab"),
    "70 axes": lambda: jnp.zeros((1,) * 70),
    "a product that overflows": lambda: jnp.ones(4).reshape(2**40, 2**40),
    "more elements than addresses": lambda: jnp.broadcast_to(1.0, (2**33, 2**33)),
    "a dtype that does not exist": lambda: jnp.zeros(3, "nonsense"),
    "a dtype of objects": lambda: jnp.zeros(3, object),
    "an axis that does not exist": lambda: jnp.sort(jnp.ones(3), axis=7),
    "an integer of 80 bits": lambda: jnp.asarray(2**80),
}


@pytest.mark.parametrize("name", BAD_SHAPES)
def test_bad_shapes_and_dtypes_are_refused(name):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        BAD_SHAPES[name]()


def test_indices_far_outside():
    x = jnp.arange(3.0)
    far = jnp.array([2**31 - 1, -(2**31)])
    for take in (lambda x, i: jnp.take(x, i), lambda x, i: x.at[i].get(mode="fill")):
        assert np.isnan(take(x, far)).all() and np.isnan(jax.jit(take)(x, far)).all()
    assert x[10**9] == 2 and jax.jit(lambda x: x.at[far].set(7))(x).tolist() == [0, 1, 2]


def test_deep_trees():
    tree = 1.0
    for _ in range(20_000):
        tree = [tree]
    doubled = jax.tree.map(lambda x: 2 * x, tree)
    for _ in range(20_000):
        (doubled,) = doubled
    assert doubled == 2.0


def test_a_view_that_cannot_be_written_to_is_copied_where_its_owner_can_write():
    values, raw = np.zeros(3, np.float32), bytearray(12)
    view = values.view()
    over_bytes = np.frombuffer(raw, np.float32)
    for x in (view, over_bytes):
        x.flags.writeable = False
    arrays = [jnp.from_dlpack(view), jnp.from_dlpack(view.reshape(3, 1)[:, 0]), jnp.from_dlpack(over_bytes)]
    values[0], raw[2] = 7, 1
    assert all(x.tolist() == [0, 0, 0] for x in arrays)
    locked = np.frombuffer(bytes(12), np.float32)
    assert np.shares_memory(np.asarray(jnp.from_dlpack(locked)), locked)


def test_weakness_cannot_be_assigned():
    x = jnp.ones(3)
    with pytest.raises(AttributeError, match="weak_type"):
        x.weak_type = True
    assert jax.jit(lambda x: x + 1)(x).dtype == x.dtype


@pytest.mark.parametrize("use", ["imag", "real", "T", "mT", "__buffer__"])
def test_a_deleted_array_has_no_parts(use):
    x = jnp.arange(6.0).reshape(2, 3)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        part = getattr(x, use)
        part(0)


BEYOND_MACHINES = {
    "an extent": lambda: jnp.ones((2**63,)).sum(),
    "an extent beyond words": lambda: jnp.ones((2**64,)).sum(),
    "a product of extents": lambda: jnp.ones((2**32, 2**32)).sum(),
    "bytes": lambda: jnp.ones((2**61,)).sum(),
    "a petabyte": lambda: jnp.ones((2**50,)).sum(),
    "a grid": lambda: (jnp.ones((2**33, 2**30)) == 3).sum(),
    "padding": lambda: lax.pad(jnp.ones(8), 0.0, [(2**62, 2**62, 2**10)]).sum(),
    "joined parts": lambda: jnp.concatenate([jnp.broadcast_to(1.0, (2**45,))] * 4).sum(),
    "repeated parts": lambda: jnp.tile(jnp.ones(8), 2**61).sum(),
    "reshaped": lambda: jnp.ones((2**32, 2**32)).reshape(-1).sum(),
    "inside a loop": lambda: lax.fori_loop(0, 2, lambda i, c: c + jnp.ones((2**61,)).sum(), 0.0),
}


@pytest.mark.parametrize("name", BEYOND_MACHINES)
def test_programs_over_more_than_can_be_addressed_are_refused(name):
    """They gave wrong numbers where extents overflowed, or ran for ever."""
    with pytest.raises(MemoryError, match="RESOURCE_EXHAUSTED: Out of memory: a value of shape"):
        jax.jit(BEYOND_MACHINES[name])()


def test_empty_values_may_have_any_other_extent():
    assert jax.jit(lambda: jnp.ones((2**62, 4, 0)).sum())() == 0


def test_loops_have_a_length_that_can_be_counted():
    with pytest.raises(OverflowError, match=r"`length` argument to `scan` must be less than 2\*\*63"):
        lax.scan(lambda c, _: (c + 1, None), 0, None, length=2**63)
