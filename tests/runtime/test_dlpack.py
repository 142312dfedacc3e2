"""Arrays to and from other libraries by DLPack: what shares memory, what is copied, what is refused."""

import gc

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import dlpack

M = jnp.arange(6.0).reshape(2, 3)
LEARNING = "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz".split()


class Foreign:
    """An array of another library: it has the protocol, and is no NumPy array."""

    def __init__(self, owner):
        self.__dlpack__, self.__dlpack_device__ = owner.__dlpack__, owner.__dlpack_device__


class Old:
    """An array of a library from before DLPack 1.0, which is asked for nothing."""

    def __init__(self, owner):
        self.owner = owner

    def __dlpack__(self):
        return self.owner.__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


def test_numpy_gets_read_only_memory():
    view = np.from_dlpack(M)
    assert not view.flags.writeable
    assert address(view) == M.unsafe_buffer_pointer()


def test_memory_of_other_libraries_is_shared():
    owner = np.arange(12, dtype="float32").reshape(3, 4)
    for source in (owner, owner.T, owner[1:, ::2], owner[:0], owner[0, 0, ...]):
        for x in (jnp.from_dlpack(Foreign(source)), dlpack.from_dlpack(Foreign(source), copy=False)):
            assert x.shape == source.shape and x.tolist() == source.tolist()
            assert source.size == 0 or x.unsafe_buffer_pointer() == address(source)
    x = jnp.from_dlpack(Foreign(owner))
    assert not np.asarray(x).flags.writeable and owner.flags.writeable
    del owner
    gc.collect()
    assert jax.jit(jnp.sum)(x) == 66  # the memory lives as long as the array


def test_what_is_copied():
    owner = np.arange(3, dtype="float32")
    x = jnp.from_dlpack(Foreign(owner), copy=True)
    owner[0] = 5
    assert x.tolist() == [0, 1, 2]
    wide = Foreign(np.ones(3))
    assert jnp.from_dlpack(wide).dtype == "float32"
    with pytest.raises(ValueError, match="copy must not be False here.*float64"):
        jnp.from_dlpack(wide, copy=False)
    with jax.enable_x64(True):
        assert jnp.from_dlpack(wide, copy=False).dtype == "float64"


def test_numpy_arrays_that_can_be_written_are_copied():
    source = np.ones(3, "float32")
    x = jnp.from_dlpack(source)
    source[0] = 5
    assert x.tolist() == [1, 1, 1] and jnp.from_dlpack(np.ones(2)).dtype == "float32"
    assert jnp.from_dlpack(M).unsafe_buffer_pointer() == M.unsafe_buffer_pointer()
    with pytest.raises(ValueError, match="copy must not be False"):
        jnp.from_dlpack(source, copy=False)


@pytest.mark.parametrize("name", LEARNING)
def test_dtypes_that_numpy_lacks(name):
    x = jnp.arange(4.0).astype(name)
    y = jnp.from_dlpack(Foreign(x))
    assert y.dtype == name and y.tolist() == [0, 1, 2, 3] and y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    old = jnp.from_dlpack(Old(x))
    assert old.dtype == name and old.tolist() == [0, 1, 2, 3]
    assert dlpack.is_supported_dtype(name)
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(x)  # NumPy has no such dtype, and does not take the bits for integers


def test_capsules_of_the_old_protocol_hold_copies():
    y = jnp.from_dlpack(Old(M))
    assert y.tolist() == M.tolist()
    with pytest.raises(BufferError, match="max_version"):
        M.__dlpack__(copy=False)


def test_refusals():
    with pytest.raises(TypeError, match="must have __dlpack__"):
        jnp.from_dlpack([1])
    with pytest.raises(BufferError, match="int4"):
        jnp.ones(2, "int4").__dlpack__()
    assert not dlpack.is_supported_dtype("int4")
    with pytest.raises(BufferError, match="dl_device"):
        M.__dlpack__(dl_device=(2, 0))
    assert M.__dlpack_device__() == (1, 0)
