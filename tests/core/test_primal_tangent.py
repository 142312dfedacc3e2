"""Dtypes whose tangents are of another dtype: converted to and from, moved, differentiated."""

import pickle

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.experimental import EArray, primal_tangent_dtype

CODE = primal_tangent_dtype("int8", "float32")
HALF = primal_tangent_dtype("float16", "float32", name="half")
NUMBERS = jnp.array([1, 2, 3], "int8")
X = lax.convert_element_type(NUMBERS, CODE)


@pytest.mark.parametrize("run", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"])
def test_there_and_back(run):
    there = run(lambda x: lax.convert_element_type(x, CODE))(NUMBERS)
    assert isinstance(there, EArray) and there.dtype == CODE and repr(there) == "EArray([1, 2, 3], dtype=int8)"
    assert run(lambda x: x.astype("int8"))(there).tolist() == [1, 2, 3]


def test_elements_are_moved():
    moved = jax.jit(lambda x: jnp.concatenate([x[::-1], x.at[0].set(x[2])]).reshape(2, 3))(X)
    assert lax.convert_element_type(moved, "int8").tolist() == [[3, 2, 1], [3, 2, 3]]
    assert lax.scan(lambda c, x: (c, x), 0, X)[1].dtype == CODE
    assert repr(pickle.loads(pickle.dumps(X))) == repr(X)


def test_tangents_are_of_their_own_dtype():
    x = jnp.arange(3.0, dtype="float16")
    t = jax.jvp(lambda x: lax.convert_element_type(x, HALF), (x,), (x,))[1]
    assert t.dtype == np.float32
    there_and_back = lambda x: 2 * lax.convert_element_type(lax.convert_element_type(x, HALF), "float16")  # noqa: E731
    (ct,) = jax.vjp(there_and_back, x)[1](x)
    assert ct.dtype == np.float16 and ct.tolist() == [0, 2, 4]


def test_made_of_their_numbers():
    assert repr(EArray(jax.core.ShapedArray((3,), CODE), NUMBERS)) == repr(X)
    for shape, dtype, data in (((3,), CODE, NUMBERS.astype("float32")), ((4,), CODE, NUMBERS), ((3,), "int8", NUMBERS)):
        with pytest.raises(ValueError, match="is not held by"):
            EArray(jax.core.ShapedArray(shape, dtype), data)


@pytest.mark.parametrize("dtype", ["float32", jnp.int16, HALF])
def test_other_numbers_are_refused(dtype):
    with pytest.raises(ValueError, match="Cannot convert_element_type"):
        lax.convert_element_type(X, dtype)


def test_what_computes_refuses_them():
    with pytest.raises(TypeError, match="add does not accept"):
        X + X
    with pytest.raises(TypeError):
        primal_tangent_dtype(CODE, "float32")
