"""Making arrays: values and types of ``array``, ``zeros``, ``arange``, ``linspace``, ``eye`` and their
kin.
"""

import functools

import numpy as np
import pytest

import catena
import catena.numpy as jnp
from catena import jit, lax


def typed(x):
    return str(x.dtype) + ("*" if x.weak_type else "")


@pytest.mark.parametrize(
    ("make", "type32", "type64"),
    [
        (lambda: jnp.zeros(1), "float32", "float64"),
        (lambda: jnp.full(1, 1), "int32*", "int64*"),
        (lambda: jnp.full(1, 1.0), "float32*", "float64*"),
        (lambda: jnp.full(1, True), "bool", "bool"),
        (lambda: jnp.arange(3), "int32", "int64"),
        (lambda: jnp.arange(3.0), "float32", "float64"),
        (lambda: jnp.linspace(0, 1, 2), "float32", "float64"),
        (lambda: jnp.eye(2), "float32", "float64"),
        (lambda: jnp.array(1), "int32*", "int64*"),
        (lambda: jnp.array(1j), "complex64*", "complex128*"),
        (lambda: jnp.array([]), "float32", "float64"),
        (lambda: jnp.array([1, 2]), "int32", "int64"),
        (lambda: jnp.array(np.ones(2)), "float32", "float64"),
        (lambda: jnp.int16(1), "int16", "int16"),
        (lambda: jnp.zeros(1, complex), "complex64", "complex128"),
        (lambda: jnp.indices((2,)), "int32", "int64"),
        (lambda: jnp.tri(2), "float32", "float32"),
        (lambda: jnp.array([1, 2.0, True]), "float32", "float64"),
        (lambda: jnp.array([1, jnp.int8(2)]), "int8", "int8"),
        (lambda: jnp.zeros_like(jnp.asarray(1)), "int32*", "int64*"),
    ],
)
def test_default_dtypes(make, type32, type64):
    assert typed(make()) == type32
    with catena.enable_x64(True):
        assert typed(make()) == type64


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("arange", (5,)),
        ("arange", (1, 9, 3)),
        ("arange", (5, 1, -2)),
        ("arange", (0.0, 1.0, 0.1)),
        ("arange", (-3,)),
        ("linspace", (0, 1, 7)),
        ("linspace", (2.0, -3.0, 5, False)),
        ("linspace", (0, 1, 1)),
        ("logspace", (0, 2, 5)),
        ("geomspace", (1, 1000, 4)),
        ("geomspace", (-1, -8, 4)),
        ("eye", (3, 4, 1)),
        ("tri", (3, 2, -1)),
        ("identity", (3,)),
        ("zeros", ((2, 0),)),
        ("ones", ((2, 3),)),
        ("full", ((2, 2), 7)),
        ("indices", ((2, 3),)),
    ],
)
def test_like_numpy(name, args):
    expected = getattr(np, name)(*args)
    for fun in (getattr(jnp, name), catena.jit(lambda: getattr(jnp, name)(*args))):
        found = fun(*args) if fun is getattr(jnp, name) else fun()
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ((0, 2, 0.5), [0, 0, 0, 0]),
        ((0.5, 5, 1.5), [0, 1, 2]),
        ((5, 0, -1.5), [5, 4, 3, 2]),
        ((-0.9, 3.1), [0, 1, 2, 3]),
        ((3.5,), [0, 1, 2, 3]),
    ],
)
def test_integers_between_floats_convert_start_and_step(arguments, expected):
    for dtype in ("int32", "int8"):
        numbers = jnp.arange(*arguments, dtype=dtype)
        assert (numbers.dtype, numbers.tolist()) == (np.dtype(dtype), expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_linspace_between_arrays(axis):
    a, b = np.arange(3.0), np.arange(3.0) + 4
    np.testing.assert_allclose(np.asarray(jnp.linspace(a, b, 5, axis=axis)), np.linspace(a, b, 5, axis=axis), rtol=1e-6)


@pytest.mark.share(2)
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("step", [1, 3, 0.25, -5])
def test_linspace_finds_the_numbers_that_there_are(step, jit):
    """Where all numbers and the products that lead to them can be represented, each is exact, and bins are right."""
    for n in (*range(2, 50), 99, 500):
        space = functools.partial(jnp.linspace, num=n)
        found = (catena.jit(space) if jit else space)(2.0, 2.0 + step * (n - 1))
        np.testing.assert_array_equal(found, 2.0 + step * np.arange(n))
        np.testing.assert_array_equal(jnp.linspace(0, n, n, endpoint=False), np.arange(n))
    np.testing.assert_array_equal(jnp.linspace(-50, 50, 101, dtype="bfloat16").astype(int), np.arange(-50, 51))
    np.testing.assert_array_equal(jnp.geomspace(1, 256, 9), 2.0 ** np.arange(9))
    np.testing.assert_array_equal(jnp.geomspace(-1000, -1, 4), [-1000, -100, -10, -1])


def test_linspace_does_not_overflow():
    np.testing.assert_allclose(jnp.linspace(-3e38, 3e38, 5), np.linspace(-3e38, 3e38, 5), rtol=1e-6)


def test_histograms_of_whole_numbers():
    counts, _ = jnp.histogram(jnp.array([1, 2, 3, 10, 11, 15, 19, 25]), range=(0, 25), bins=5)
    assert counts.tolist() == [3, 0, 2, 2, 1]


def test_array_of_nested_values():
    x = jnp.arange(2.0)
    np.testing.assert_array_equal(
        np.asarray(jnp.array([[x, x + 1], [[5, 6], (7, 8.0)]])), [[[0, 1], [1, 2]], [[5, 6], [7, 8]]]
    )
    traced = catena.jit(lambda a: jnp.array([[a, 1], [2, a * 2]]))(3.0)
    np.testing.assert_array_equal(np.asarray(traced), [[3, 1], [2, 6]])
    assert jnp.array([[]]).shape == (1, 0) and jnp.array(range(3)).tolist() == [0, 1, 2]


def test_memory_is_never_shared_with_numpy():
    source = np.ones(3, "float32")
    x = jnp.asarray(source)
    source[0] = 7
    assert x.tolist() == [1, 1, 1] and not np.asarray(x).flags.writeable


def test_copies():
    x = jnp.arange(3)
    assert jnp.asarray(x) is x and jnp.array(x) is not x
    y = jnp.array(x)
    x.delete()
    assert y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["tril", "triu"])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_triangles(name, k):
    x = np.arange(24.0, dtype="float32").reshape(2, 3, 4)
    for fun in (getattr(jnp, name), catena.jit(getattr(jnp, name), static_argnums=1)):
        np.testing.assert_array_equal(np.asarray(fun(jnp.asarray(x), k)), getattr(np, name)(x, k))


@pytest.mark.parametrize("k", [-1, 0, 1])
def test_diagonals(k):
    v, m = np.arange(3), np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(np.asarray(jnp.diag(jnp.asarray(v), k)), np.diag(v, k))
    for fun in (lambda m: jnp.diagonal(m, k), catena.jit(lambda m: jnp.diagonal(m, k))):
        np.testing.assert_array_equal(np.asarray(fun(jnp.asarray(m))), np.diagonal(m, k))
    assert int(jnp.trace(jnp.asarray(m), k)) == np.trace(m, k)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
def test_meshgrid(indexing, sparse):
    xs = [np.arange(2), np.arange(3), np.arange(4)]
    found = jnp.meshgrid(*map(jnp.asarray, xs), indexing=indexing, sparse=sparse)
    for a, b in zip(found, np.meshgrid(*xs, indexing=indexing, sparse=sparse), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize(
    "items", [([1, 2, 3], [4, 5, 6]), (np.ones((2, 2)), np.ones((2, 2))), (1, 2), ([1, 2],)], ids=str
)
def test_matrices_by_joining(items):
    """The directives "r" and "c" make a matrix, of one row or column where the result is a vector."""
    np.testing.assert_array_equal(jnp.c_["r", *items], np.c_[items])
    np.testing.assert_array_equal(jnp.c_["c", *items], np.c_[items])
    joined = np.r_[items]
    np.testing.assert_array_equal(jnp.r_["r", *items], joined if joined.ndim > 1 else joined[None])
    np.testing.assert_array_equal(jnp.r_["c", *items], joined if joined.ndim > 1 else joined[:, None])


def test_grids_of_no_axes():
    assert jnp.mgrid[()].shape == (0,) and jnp.mgrid[()].dtype == jnp.int32 and jnp.ogrid[()] == []


def test_grids_by_indexing():
    np.testing.assert_array_equal(np.asarray(jnp.mgrid[0:2, 1:4]), np.mgrid[0:2, 1:4])
    np.testing.assert_allclose(np.asarray(jnp.mgrid[0:1:3j]), [0, 0.5, 1])
    assert [g.shape for g in jnp.ogrid[0:2, 0:3]] == [(2, 1), (1, 3)]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.array(None), ValueError, "None is not a valid value for jnp.array"),
        (lambda: jnp.array("a"), TypeError, "Value 'a' with dtype <U1 is not a valid JAX array type"),
        (lambda: jnp.array(object()), TypeError, "with dtype object is not a valid JAX array type"),
        (lambda: jnp.array([[1, 2], [3]]), ValueError, "inhomogeneous shape"),
        (lambda: jnp.asarray(2**31), OverflowError, "Python int 2147483648 too large to convert to int32"),
        (lambda: jnp.array(-1, dtype="uint8"), OverflowError, "out of bounds for uint8"),
        (
            lambda: jnp.zeros(3.0),
            TypeError,
            "Shapes must be 1D sequences of concrete values of integer type, got (3.0,).",
        ),
        (lambda: jnp.zeros(-1), TypeError, "must have every element be nonnegative, got (-1,)."),
        (lambda: jnp.arange(0, 5, 0), ZeroDivisionError, "step must not be 0"),
        (lambda: jnp.linspace(0, 1, -1), ValueError, "Number of samples, -1, must be non-negative."),
        (lambda: jnp.zeros_like([1]), TypeError, "zeros_like requires ndarray or scalar arguments"),
        (lambda: jnp.full((2, 2), jnp.arange(3)), ValueError, "Incompatible types for broadcasting"),
        (lambda: jnp.fromiter([1]), NotImplementedError, "may be non-pure"),
        (lambda: jnp.tril(jnp.ones(3)), ValueError, "must be at least 2D"),
        (
            lambda: catena.jit(lambda n: jnp.ones(n))(3),
            TypeError,
            "Shapes must be 1D sequences of concrete values",
        ),
        (
            lambda: catena.jit(lambda n: jnp.arange(n))(3),
            catena.errors.ConcretizationTypeError,
            "jnp.arange argument 'stop'",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error) as found:
        call()
    assert text in str(found.value)


def test_64_bits_asked_for_by_name_warn():
    with pytest.warns(UserWarning, match="float64 .* is not available"):
        assert jnp.zeros(2, "float64").dtype == "float32"


@pytest.mark.parametrize("x", [np.array(1), np.array("a"), np.ma.array(1.0), jnp.array(1), np.float32(1), 1j, "a"])
def test_what_has_no_axes_is_a_scalar(x):
    assert jnp.isscalar(x) is True and jnp.isscalar(np.ones(1)) is jnp.isscalar([1]) is jnp.isscalar(None) is False


def test_scalar_types():
    assert repr(jnp.float32(1.5)) == "Array(1.5, dtype=float32)" and jnp.int32(3.7).tolist() == 3
    assert jnp.float32 == np.float32 and hash(jnp.float32) == hash(np.float32)
    with pytest.raises(OverflowError):
        jnp.int8(300)


@pytest.mark.parametrize(
    "value, dtype, want",
    [
        (2**32 - 1, "uint32", 2**32 - 1),
        (2**32 - 1, "uint8", 255),
        (2**31, "int32", -(2**31)),
        (2**64 - 1, "int8", -1),
        (2**100, "float32", 2.0**100),
        (2**100, "bool", True),
        (16777217.0, "int32", 16777217),
    ],
)
def test_numbers_wrap_to_the_dtype_asked_for(value, dtype, want):
    calls = (
        lambda: jnp.full(2, value, dtype)[0],
        lambda: jnp.full_like(jnp.zeros(2, dtype), value)[0],
        lambda: lax.full((2,), value, dtype)[0],
        lambda: lax.full_like(jnp.zeros(2, dtype), value)[0],
        lambda: lax.convert_element_type(value, dtype),
        jit(lambda: jnp.full((), value, dtype)),
        jit(lambda: lax.convert_element_type(value, dtype)),
    )
    for call in calls:
        got = call()
        assert got.dtype == dtype and not got.weak_type and got.item() == want


def test_integers_of_more_than_64_bits_do_not_wrap():
    for call in (lambda: jnp.full(2, 2**64, "uint32"), lambda: lax.full((2,), 2**100, "int8")):
        with pytest.raises(OverflowError, match="64 bits"):
            call()
    with pytest.raises(OverflowError):
        jnp.full(2, 2**31)  # no dtype asked for


@pytest.mark.parametrize("method, want", [("set", 2**32 - 1), ("add", 0), ("max", 2**32 - 1), ("min", 1)])
def test_updates_take_the_whole_range_of_unsigned_integers(method, want):
    update = lambda x: getattr(x.at[0], method)(2**32 - 1)  # noqa: E731
    for call in (update, jit(update)):
        np.testing.assert_array_equal(call(jnp.ones(2, "uint32")), np.array([want, 1], "uint32"))
    with pytest.raises(OverflowError):
        jnp.ones(2, "uint32").at[0].set(2**32)


@pytest.mark.parametrize("function, want", [(jnp.ndim, 1), (jnp.shape, (2,)), (jnp.size, 2)])
def test_questions_about_lists_are_deprecated(function, want):
    for x in ([1, 2], (1, 2), range(2)):
        with pytest.warns(
            DeprecationWarning, match=f"{function.__name__} requires ndarray or scalar arguments"
        ) as found:
            assert function(x) == want
        assert len(found) == 1 and found[0].filename == __file__
    for x in (np.ones(2), jnp.ones(2), catena.ShapeDtypeStruct((2,), "int8")):
        assert function(x) == want
    for x in (1, 1j, np.float32(1), True):
        assert function(x) == function(jnp.array(1))


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="older ones ask for dtype")
def test_arrays_as_dtypes_are_deprecated():
    with pytest.warns(DeprecationWarning, match="rather than dtype=arr use dtype=arr.dtype") as found:
        assert np.dtype(jnp.arange(4)) == "int32"
    assert found[0].filename == __file__
    with pytest.warns(DeprecationWarning):
        assert np.zeros(2, dtype=jnp.arange(4)).dtype == "int32"


@pytest.mark.parametrize("count", [5, 5000, 70_000])
@pytest.mark.parametrize("dtype", ["int32", "int8", "uint16", "float32", "bfloat16", "complex64", "int4"])
def test_many_positions(count, dtype):
    """Counted by one piece of code or another, eager and compiled: short integers go round, floats round once."""
    expected = np.arange(count).astype(jnp.dtype(dtype))
    for _ in range(4):
        np.testing.assert_array_equal(jnp.arange(count, dtype=dtype), expected)
    np.testing.assert_array_equal(catena.jit(lambda: jnp.arange(count, dtype=dtype))(), expected)


@pytest.mark.parametrize("count", [7, 5000])
def test_logspace_has_the_bits_of_compiled_programs(count):
    expected = np.asarray(catena.jit(lambda: jnp.logspace(-1.3, 2, count))())
    for _ in range(4):
        np.testing.assert_array_equal(jnp.logspace(-1.3, 2, count), expected)


class Image:
    """What Pillow's images are to NumPy: an object with one of its protocols, and not the method."""

    def __init__(self, pixels: np.ndarray, protocol: str):
        self.pixels, self.protocol = pixels, protocol

    def __getattr__(self, name):
        if name != self.__dict__["protocol"]:
            raise AttributeError(name)
        return getattr(self.pixels, name)


@pytest.mark.parametrize("protocol", ["__array_interface__", "__array_struct__"])
def test_objects_that_tell_numpy_where_their_elements_are(protocol):
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    image = Image(pixels, protocol)
    for made in (jnp.array(image), jnp.asarray(image)):
        assert made.dtype == jnp.uint8
        np.testing.assert_array_equal(made, pixels)
    assert jnp.asarray(image, jnp.float32).dtype == jnp.float32
    np.testing.assert_array_equal(jnp.array([image, image]), np.stack([pixels, pixels]))
    with pytest.raises(TypeError):
        jnp.sin(image)


def test_numbers_as_text_are_read_where_a_dtype_is_asked_for():
    """As NumPy and JAX read them: fields of a file, say."""
    for made in (jnp.float32("1.5"), jnp.array("1.5", dtype=jnp.float32), jnp.asarray(b"1.5", dtype=float)):
        assert made.dtype == jnp.float32 and made == 1.5 and not made.weak_type
    assert jnp.int32("-3") == -3 and jnp.complex64("1+2j") == 1 + 2j and jnp.isnan(jnp.float32("nan"))
    fields = jnp.array([["1", "2.5"], ["-1e3", 4]], dtype=float)
    assert np.array_equal(fields, [[1, 2.5], [-1000, 4]]) and fields.dtype == jnp.float32
    table = np.array(["7", "8.5"])
    assert np.array_equal(jnp.asarray(table, dtype=float), [7, 8.5]) and jnp.float32(table[1]) == 8.5
    assert np.array_equal(jnp.asarray(list(table), dtype=float), [7, 8.5])
    for text in ("a", ["1", "b"]):
        with pytest.raises(ValueError):
            jnp.asarray(text, dtype=jnp.int32)
    for text in ("1.5", ["1.5"]):
        with pytest.raises(TypeError):
            jnp.asarray(text)
