"""Arrays and traced values: operators, methods, properties, immutability, conversions, DLPack."""

import copy
import operator
import pickle
from typing import NamedTuple

import numpy as np
import pytest

import catena
import catena.numpy as jnp

A = jnp.arange(3.0)
M = jnp.arange(6.0).reshape(2, 3)
N, NM = np.arange(3.0, dtype="float32"), np.arange(6.0, dtype="float32").reshape(2, 3)


@pytest.mark.parametrize(
    "expression",
    [
        "a + 1",
        "1 + a",
        "a - 2.5",
        "2 - a",
        "a * a",
        "3 * a",
        "a / 2",
        "6 / (a + 1)",
        "a // 2",
        "7 // (a + 1)",
        "a % 2",
        "7 % (a + 1)",
        "a ** 2",
        "a ** 3",
        "2 ** a",
        "a ** 0.5",
        "-a",
        "+a",
        "abs(-a)",
        "a == 1",
        "a != 1",
        "a < 1",
        "a <= 1",
        "a > 1",
        "a >= 1",
        "a @ a",
        "m @ a",
        "m @ m.T",
        "divmod(a, 2)[0]",
        "divmod(7, a + 1)[1]",
        "m + a",
        "a[::-1]",
        "m[1]",
        "m[:, 1]",
        "m.T",
        "m.reshape(3, 2)",
        "m.reshape((3, -1))",
        "m.reshape(3, 2, order='F')",
        "m.ravel()",
        "m.ravel('F')",
        "m.flatten()",
        "m.transpose()",
        "m.transpose(1, 0)",
        "m.transpose((1, 0))",
        "m.swapaxes(0, 1)",
        "m[None].squeeze(0)",
        "m.sum()",
        "m.sum(0)",
        "m.sum(axis=1, keepdims=True)",
        "m.prod(1)",
        "m.max()",
        "m.min(0)",
        "m.mean(0)",
        "m.std()",
        "m.var(1)",
        "m.all()",
        "m.any(1)",
        "m.argmax()",
        "m.argmin(1)",
        "m.cumsum()",
        "m.cumprod(1)",
        "m.trace()",
        "m.diagonal()",
        "m.clip(1, 3)",
        "a.dot(a)",
        "m.round(1)",
        "m.astype('int32')",
        "m.copy()",
        "m.conj()",
        "m.real",
        "m.imag",
        "a.repeat(2)",
        "a.take(1)",
        "m.nonzero()[0]",
        "a.searchsorted(1.0)",
        "a.view('int32')",
        "m.view('float16')",
        "a.byteswap()",
        "a.compress(a > 0)",
        "m.argsort()",
        "a.item(1)",
        "m.tolist()",
    ],
)
def test_operators_and_methods(expression):
    expected = eval(expression, {"a": N, "m": NM})
    fun = eval(f"lambda a, m: {expression}")
    np.testing.assert_allclose(np.asarray(fun(A, M)), expected, rtol=1e-6)
    if not any(word in expression for word in ("nonzero", "compress", "item", "tolist")):
        np.testing.assert_allclose(np.asarray(catena.jit(fun)(A, M)), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "expression", ["i & 3", "3 | i", "i ^ i", "i << 1", "i >> 1", "2 << i", "~i", "i // 2", "i % 3", "-i"]
)
def test_integer_operators(expression):
    expected = eval(expression, {"i": np.arange(4, dtype="int32")})
    fun = eval(f"lambda i: {expression}")
    for found in (fun(jnp.arange(4)), catena.jit(fun)(jnp.arange(4))):
        assert found.dtype == "int32"
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_properties():
    assert (M.shape, M.ndim, M.size, M.nbytes, M.itemsize, M.dtype) == (
        (2, 3),
        2,
        6,
        24,
        4,
        np.dtype("float32"),
    )
    assert A.T is A and M.mT.shape == (3, 2) and M.device == catena.devices()[0] and M.devices() == {M.device}
    assert M.is_fully_addressable and M.is_ready() and M.platform() == "cpu" and not M.committed
    assert M.__array_namespace__() is jnp and M.unsafe_buffer_pointer() > 0 and len(M.tobytes()) == 24
    with pytest.raises(ValueError, match="2020"):
        M.__array_namespace__(api_version="2020")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x.__setitem__(0, 1), TypeError, "use x = x.at[idx].set(y)"),
        (lambda x: x + None, TypeError, "unsupported operand type(s) for +: 'Array' and 'NoneType'"),
        (lambda x: x + [1, 2], TypeError, "unsupported operand type(s) for +: 'Array' and 'list'"),
        (lambda x: [1, 2] + x, TypeError, "unsupported operand type(s) for +: 'list' and 'Array'"),
        (lambda x: x == [1, 2], TypeError, "unsupported operand type(s) for =="),
        (lambda x: x < None, TypeError, "not supported"),
        (lambda x: hash(x), TypeError, "unhashable"),
        (lambda x: bool(x), ValueError, "truth value"),
        (lambda x: int(x), TypeError, "Only scalar arrays"),
        (lambda x: x.flat, NotImplementedError, "flatten"),
        (
            lambda x: x.reshape(2, 2),
            TypeError,
            "cannot reshape array of shape (3,) (size 3) into shape (2, 2) (size 4)",
        ),
        (lambda x: x.reshape(-1, -1), TypeError, "can only specify one unknown axis size"),
        (lambda x: x.transpose(0, 0), TypeError, "isn't a permutation"),
        (lambda x: x.transpose(0, 1), ValueError, "axis 1 is out of bounds for array of dimension 1"),
        (lambda x: x.mT, ValueError, "two-dimensional"),
        (lambda x: x.view("complex64"), ValueError, "divisor of the total size"),
        (lambda x: 1.0 @ x, ValueError, "ndim at least 1"),
        (lambda x: x @ jnp.ones(2), TypeError, "contracting dimensions to have the same shape"),
        (lambda x: x.to_device("x"), ValueError, "Received invalid value: x"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error) as found:
        call(A)
    assert text in str(found.value)


class Weighted(NamedTuple):
    weight: int

    def __rmul__(self, other):
        return "rmul"

    def __rpow__(self, other):
        return "rpow"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __gt__(self, other):
        return "gt"

    def __eq__(self, other):
        return "eq"


@pytest.mark.parametrize("call", [lambda f: f(A), lambda f: catena.eval_shape(f, A)])
def test_operators_give_way_to_a_named_tuple_that_defines_them(call):
    other, outcomes = Weighted(1), []
    call(lambda x: outcomes.extend([x * other, x**other, x @ other, x < other, x == other]))
    assert outcomes == ["rmul", "rpow", "rmatmul", "gt", "eq"]
    for operation in (operator.add, operator.gt, operator.ne):
        with pytest.raises(TypeError, match="'Array' and 'Weighted'"):
            operation(A, other)


def test_comparison_with_foreign_objects_is_identity():
    assert (A == None) is False and (A != "a") is True  # noqa: E711


@pytest.mark.parametrize(
    "left", [np.ones(3), np.float32(1), np.float64(2), np.ones((), "int32")], ids=lambda v: str(type(v))
)
def test_numpy_operands_give_arrays(left):
    for found in (left + A, left * A, A - left, left < A):
        assert type(found) is type(A)


def test_iteration_and_membership():
    assert [float(x) for x in A] == [0, 1, 2] and [float(x) for x in reversed(A)] == [2, 1, 0]
    assert 1 in A and 7 not in A and len(M) == 2
    assert round(A + 0.26, 1).tolist() == pytest.approx([0.3, 1.3, 2.3]) and round(jnp.float32(2.5)).dtype == "int32"


def test_deleted_arrays_say_so():
    x = jnp.arange(3.0)
    x.delete()
    assert x.is_deleted() and x.shape == (3,)
    for use in (
        lambda: x + 1,
        lambda: jnp.sin(x),
        lambda: jnp.sum(x),
        lambda: x[0],
        lambda: x.reshape(3, 1),
        lambda: np.asarray(x),
    ):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]"):
            use()


@pytest.mark.parametrize("function", [jnp.array, jnp.copy, lambda x: x.copy(), lambda x: jnp.asarray(x, copy=True)])
def test_the_cotangent_of_a_copy_is_a_copy(function):
    cotangent = jnp.ones(3)
    (result,) = catena.vjp(function, A)[1](cotangent)
    assert result is not cotangent
    cotangent.delete()
    assert result.tolist() == [1, 1, 1]


def test_pickle_and_copy():
    for clone in (pickle.loads(pickle.dumps(M)), copy.copy(M), copy.deepcopy(M), M.clone()):
        np.testing.assert_array_equal(np.asarray(clone), NM)
    assert pickle.loads(pickle.dumps(jnp.asarray(1))).weak_type
    assert pickle.loads(pickle.dumps(jnp.add)) is jnp.add


@pytest.mark.parametrize("make", [lambda: jnp.ones(3), lambda: catena.random.key(0)])
def test_what_users_note_at_an_array_stays_with_it(make):
    x = make()
    x.trainable = False
    assert not x.trainable and x.__dict__ == {"trainable": False}
    for other in (jnp.array(x), copy.copy(x), copy.deepcopy(x), catena.jit(lambda x: x)(x), make()):
        assert not hasattr(other, "trainable")
    assert jnp.asarray(x) is x
    with pytest.raises(AttributeError):
        x.shape = (1, 3)
    with pytest.raises(AttributeError):
        catena.jit(lambda x: setattr(x, "trainable", True))(x)


def test_complex_to_real_warns():
    with pytest.warns(DeprecationWarning, match="complex to real"):
        assert jnp.array([1 + 2j]).astype("float32").tolist() == [1]
    assert jnp.array([2j]).astype(bool).tolist() == [True]


VIEWED = "complex64 float32 int16 int8 uint32 bfloat16 float16".split()


@pytest.mark.parametrize("old", [*VIEWED, "bool"])
def test_views_of_bits_are_those_of_numpy_also_compiled(old):
    x = (jnp.arange(16) * 3.3).astype(old).reshape(2, 8)
    for new in VIEWED:
        for y in (x, x[0, 0]):
            if y.ndim or y.itemsize == jnp.dtype(new).itemsize:
                expected = np.asarray(y).view(jnp.dtype(new))
                for found in (y.view(new), catena.jit(lambda y, new=new: y.view(new))(y)):
                    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
                    assert np.asarray(found).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("count", "dtype", "text"),
    [
        (7, "float32", "Array([1., 1., 1., 1., 1., 1., 1.], dtype=float32)"),
        (12, "float32", "Array([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.], dtype=float32)"),
        (14, "float32", "Array([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.], dtype=float32)"),
        (
            8,
            "complex64",
            "Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j],      dtype=complex64)",
        ),
    ],
)
def test_a_dtype_is_set_off_in_texts_where_jax_does(count, dtype, text):
    """Documents that show arrays are read as tests (doctest): their texts have to be the same to the character."""
    assert repr(jnp.ones(count, dtype)) == text
