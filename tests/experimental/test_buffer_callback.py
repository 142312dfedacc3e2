"""Python functions that write into buffers."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.experimental.buffer_callback import Buffer, ExecutionStage, buffer_callback

X = jnp.arange(3.0)
TYPE = jax.ShapeDtypeStruct((3,), jnp.float32)
seen = {}


def double(context, out, x, scale=2):
    seen.update(stage=context.stage, shape=x.shape, dtype=x.dtype, ndim=x.ndim, kept=np.asarray(out), buffer=x)
    seen["writeable"] = x.writeable, out.writeable
    np.multiply(np.from_dlpack(x), np.asarray(scale), out=np.asarray(out))


def test_values():
    f = buffer_callback(double, TYPE)
    for transform in (lambda f: f, jax.jit):
        np.testing.assert_array_equal(transform(f)(X), [0, 2, 4])
        np.testing.assert_array_equal(transform(f)(X, scale=jnp.float32(3)), [0, 3, 6])
    assert seen["stage"] is ExecutionStage.EXECUTE and seen["writeable"] == (False, True)
    assert (seen["shape"], seen["dtype"], seen["ndim"]) == ((3,), np.float32, 1)


def test_what_was_written_stays():
    y = buffer_callback(double, TYPE)(X)
    seen["kept"][0] = 7
    assert y[0] == 0
    with pytest.raises(RuntimeError, match="used after the call"):
        np.asarray(seen["buffer"])


def test_trees_aliases_and_keys():
    def add(context, out, x):
        np.asarray(out["sum"])[...] += 1
        np.asarray(out["words"])[...] = np.asarray(x["key"])

    types = {"sum": TYPE, "words": jax.ShapeDtypeStruct((2,), jnp.uint32)}
    f = buffer_callback(add, types, input_output_aliases={1: 0})
    for transform in (lambda f: f, jax.jit):
        out = transform(f)({"key": jax.random.key(3), "x": X})
        np.testing.assert_array_equal(out["sum"], [1, 2, 3])
        np.testing.assert_array_equal(out["words"], jax.random.key_data(jax.random.key(3)))


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_vmap(method):
    f = jax.vmap(buffer_callback(double, jax.ShapeDtypeStruct((), jnp.float32), vmap_method=method))
    np.testing.assert_array_equal(f(X), [0, 2, 4])


def test_side_effects_are_kept():
    calls = []
    f = buffer_callback(lambda context, out, x: calls.append(1), TYPE, has_side_effect=True)
    jax.jit(lambda x: [f(x), x][1])(X)
    assert calls == [1]
    jax.jit(lambda x: [buffer_callback(lambda *args: calls.append(2), TYPE)(x), x][1])(X)
    assert calls == [1]


def raises(context, out, x):
    raise ZeroDivisionError("mine")


def writes_to_operand(context, out, x):
    np.asarray(x)[0] = 1


RUNTIME = jax.errors.JaxRuntimeError
REFUSED = [
    (lambda: buffer_callback(raises, TYPE)(X), RUNTIME, "raised ZeroDivisionError: mine"),
    (lambda: jax.jit(buffer_callback(raises, TYPE))(X), RUNTIME, "raised ZeroDivisionError: mine"),
    (lambda: buffer_callback(lambda *args: 5, TYPE)(X), RUNTIME, "return None, got 5"),
    (lambda: buffer_callback(writes_to_operand, TYPE)(X), RUNTIME, "read-only"),
    (lambda: buffer_callback(lambda c, o, x: c.stream, TYPE)(X), RUNTIME, "streams are of GPUs"),
    (lambda: buffer_callback(3, TYPE), TypeError, "callable"),
    (lambda: buffer_callback(double, jax.random.key(0)), ValueError, "must not be extended"),
    (lambda: buffer_callback(double, TYPE, vmap_method="all"), ValueError, "got 'all'"),
    (lambda: buffer_callback(double, TYPE, input_output_aliases={1: 0})(X), ValueError, "no input 1"),
    (lambda: buffer_callback(double, TYPE, input_output_aliases={0: 1})(X), ValueError, "no output 1"),
    (lambda: buffer_callback(double, TYPE, input_output_aliases={0: 0})(X[:2]), ValueError, "one type"),
    (lambda: jax.grad(lambda x: buffer_callback(double, TYPE)(x).sum())(X), ValueError, "do not support JVP"),
    (lambda: jax.vmap(buffer_callback(double, TYPE))(X), NotImplementedError, "the buffer_callback primitive"),
    (Buffer, TypeError, "handed to the functions"),
]


@pytest.mark.parametrize("call, error, message", REFUSED)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
