"""The Python array API standard 2024.12: every name with its signature, and what the standard says of its meaning."""

import ast
import inspect

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

# Every function with its parameters, as the standard writes them.
MAIN = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
asarray(obj, /, *, dtype=None, device=None, copy=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing='xy')
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
astype(x, dtype, /, *, copy=True, device=None)
broadcast_arrays(*arrays)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
finfo(type, /)
iinfo(type, /)
isdtype(dtype, kind)
result_type(*arrays_and_dtypes)
clip(x, /, min=None, max=None)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
matmul(x1, x2, /)
matrix_transpose(x, /)
tensordot(x1, x2, /, *, axes=2)
vecdot(x1, x2, /, *, axis=-1)
concat(arrays, /, *, axis=0)
expand_dims(x, /, *, axis=0)
flip(x, /, *, axis=None)
moveaxis(x, source, destination, /)
permute_dims(x, /, axes)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
roll(x, /, shift, *, axis=None)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
tile(x, repetitions, /)
unstack(x, /, *, axis=0)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
count_nonzero(x, /, *, axis=None, keepdims=False)
nonzero(x, /)
searchsorted(x1, x2, /, *, side='left', sorter=None)
where(condition, x1, x2, /)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
argsort(x, /, *, axis=-1, descending=False, stable=True)
sort(x, /, *, axis=-1, descending=False, stable=True)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
max(x, /, *, axis=None, keepdims=False)
mean(x, /, *, axis=None, keepdims=False)
min(x, /, *, axis=None, keepdims=False)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
__array_namespace_info__()
"""
LINALG = """
cholesky(x, /, *, upper=False)
cross(x1, x2, /, *, axis=-1)
det(x, /)
diagonal(x, /, *, offset=0)
eigh(x, /)
eigvalsh(x, /)
inv(x, /)
matmul(x1, x2, /)
matrix_norm(x, /, *, keepdims=False, ord='fro')
matrix_power(x, n, /)
matrix_rank(x, /, *, rtol=None)
matrix_transpose(x, /)
outer(x1, x2, /)
pinv(x, /, *, rtol=None)
qr(x, /, *, mode='reduced')
slogdet(x, /)
solve(x1, x2, /)
svd(x, /, *, full_matrices=True)
svdvals(x, /)
tensordot(x1, x2, /, *, axes=2)
trace(x, /, *, offset=0, dtype=None)
vecdot(x1, x2, /, *, axis=-1)
vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
"""
FFT = """
fft(x, /, *, n=None, axis=-1, norm='backward')
ifft(x, /, *, n=None, axis=-1, norm='backward')
fftn(x, /, *, s=None, axes=None, norm='backward')
ifftn(x, /, *, s=None, axes=None, norm='backward')
rfft(x, /, *, n=None, axis=-1, norm='backward')
irfft(x, /, *, n=None, axis=-1, norm='backward')
rfftn(x, /, *, s=None, axes=None, norm='backward')
irfftn(x, /, *, s=None, axes=None, norm='backward')
hfft(x, /, *, n=None, axis=-1, norm='backward')
ihfft(x, /, *, n=None, axis=-1, norm='backward')
fftfreq(n, /, *, d=1.0, dtype=None, device=None)
rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
fftshift(x, /, *, axes=None)
ifftshift(x, /, *, axes=None)
"""
UNARY = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc
""".split()
BINARY = """
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide
greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply
nextafter not_equal pow remainder subtract
""".split()
OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
METHODS = {
    **{f"__{name}__": "" for name in "abs bool complex float index int invert neg pos dlpack_device".split()},
    **{f"__{name}__": "other, /" for name in "eq ne lt le gt ge".split()},
    **{f"__{side}{name}__": "other, /" for side in ("", "r") for name in OPERATORS},
    "__getitem__": "key, /",
    "__array_namespace__": "*, api_version=None",
    "__dlpack__": "*, stream=None, max_version=None, dl_device=None, copy=None",
    "to_device": "device, /, *, stream=None",
}
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()

SIGNATURES = {}
for prefix, table in (("", MAIN), ("linalg.", LINALG), ("fft.", FFT)):
    rows = (line[:-1].partition("(") for line in table.strip().split("\n"))
    SIGNATURES |= {prefix + name: text for name, _, text in rows}
SIGNATURES |= dict.fromkeys(UNARY, "x, /") | dict.fromkeys(BINARY, "x1, x2, /")

# Defaults that are written otherwise and mean the same.
SAME = {
    ("norm", None): "backward", ("correction", None): 0.0, ("keepdims", None): False, ("step", None): 1,
    ("copy", False): True,  # arrays are immutable
}  # fmt: skip


def standard(text: str) -> inspect.Signature:
    """The signature that the standard writes as ``text``."""
    tree = ast.parse(f"def f({text}): pass").body[0].args
    namespace = {}
    exec(f"def f({ast.unparse(tree)}): pass", namespace)
    return inspect.signature(namespace["f"])


def find(name: str):
    module, _, last = name.rpartition(".")
    return getattr(getattr(jnp, module) if module else jnp, last)


def assert_accepts(ours: inspect.Signature, text: str):
    """Every call that the standard allows is allowed, and means the same where defaults are left out."""
    required = standard(text).parameters.values()
    given = list(ours.parameters.values())
    by_name = {p.name: p for p in given if p.kind is not p.POSITIONAL_ONLY}
    any_keyword = any(p.kind is p.VAR_KEYWORD for p in given)
    for position, wanted in enumerate(required):
        if wanted.kind is wanted.VAR_POSITIONAL:
            assert any(p.kind is p.VAR_POSITIONAL for p in given)
            continue
        if wanted.kind is not wanted.KEYWORD_ONLY:
            found = given[min(position, len(given) - 1)]
            assert found.kind in (found.POSITIONAL_ONLY, found.POSITIONAL_OR_KEYWORD, found.VAR_POSITIONAL), wanted
            if wanted.kind is wanted.POSITIONAL_OR_KEYWORD:
                assert found.name == wanted.name
        else:
            assert wanted.name in by_name or any_keyword, wanted
            found = by_name.get(wanted.name)
        if wanted.default is not wanted.empty and found is not None and found.kind is not found.VAR_POSITIONAL:
            default = SAME.get((wanted.name, found.default), found.default)
            assert default == wanted.default or found.default == wanted.default, (wanted, found)
    extra = [p for p in given[len(required) :] if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert all(p.default is not p.empty for p in extra)


@pytest.mark.parametrize("name", SIGNATURES)
def test_functions(name):
    found = find(name)
    if name in ("finfo", "iinfo"):  # classes, in C
        assert isinstance(found("float32" if name == "finfo" else "int8"), found)
    else:
        assert_accepts(inspect.signature(found), SIGNATURES[name])


@pytest.mark.parametrize("kind", [jax.Array, jax.core.Tracer], ids=["Array", "Tracer"])
@pytest.mark.parametrize("name", METHODS)
def test_methods(name, kind):
    if kind is jax.core.Tracer and "dlpack" in name:
        return  # a traced value has no memory
    signature = inspect.signature(getattr(kind, name))
    assert_accepts(signature.replace(parameters=list(signature.parameters.values())[1:]), METHODS[name])


def test_names():
    assert len(SIGNATURES) == 171 and len(METHODS) == 46
    for name in (*DTYPES, "e", "inf", "nan", "newaxis", "pi"):
        assert hasattr(jnp, name)
    for name in "dtype device mT ndim shape size T".split():
        assert isinstance(inspect.getattr_static(jax.Array, name), property)


# ---------------------------------------------------------------------------------------------------- meaning

XP = jnp.ones(1).__array_namespace__()
I8, F32 = jnp.asarray([1, -2, 3], dtype=jnp.int8), jnp.asarray([1.5, -2.5, 0.5])


def same(x, expected, dtype=None):
    assert isinstance(x, jax.Array)
    np.testing.assert_array_equal(np.asarray(x), expected)
    assert dtype is None or x.dtype == dtype


def test_the_namespace():
    x = jnp.ones(1)
    assert x.__array_namespace__(api_version="2024.12") is XP is jnp
    assert XP.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match="not available"):
        x.__array_namespace__(api_version="1999.01")
    assert jax.jit(lambda x: float(x.__array_namespace__() is XP))(x) == 1


def test_its_info():
    info = XP.__array_namespace_info__()
    assert set(info.capabilities()) == {"boolean indexing", "data-dependent shapes", "max dimensions"}
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["integral"] == jnp.arange(1).dtype
    assert list(info.dtypes(kind="bool")) == ["bool"]
    assert set(info.dtypes(kind=("signed integer", "real floating"))) == {"int8", "int16", "int32", "float32"}
    with jax.enable_x64(True):
        assert set(info.dtypes()) == set(DTYPES)
        assert info.default_dtypes()["complex floating"] == np.complex128
    with pytest.raises(KeyError, match="kind must be among"):
        info.dtypes(kind="rational")
    with pytest.raises(ValueError, match="device must be"):
        info.dtypes(device="moon")


PROMOTION = {  # the standard's tables of dtypes of one kind
    ("int8", "int16"): "int16", ("int8", "int64"): "int64", ("uint8", "uint32"): "uint32", ("uint8", "int8"): "int16",
    ("uint16", "int8"): "int32", ("uint32", "int32"): "int64", ("float32", "float64"): "float64",
    ("complex64", "float64"): "complex128", ("complex64", "complex128"): "complex128",
    ("float32", "complex64"): "complex64", ("bool", "bool"): "bool",
}  # fmt: skip


@pytest.mark.parametrize("pair", PROMOTION)
def test_promotion(pair):
    with jax.enable_x64(True):
        a, b = (XP.ones(1, dtype=getattr(XP, d)) for d in pair)
        assert XP.result_type(a, b) == XP.result_type(*pair) == (a * b).dtype == (b * a).dtype == PROMOTION[pair]


SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
INTEGERS, INEXACT = SIGNED + UNSIGNED, FLOATS + COMPLEX
REAL, NUMERIC = INTEGERS + FLOATS, INTEGERS + INEXACT
PARTS = {"complex64": "float32", "complex128": "float64"}

# The dtypes that the standard says functions take, and what they give: the same, "bool", "part" (the real dtype of
# complex ones), "wide" (integers of at least the default width) or "index".
TAKES = [
    (NUMERIC, "part", "abs"),
    (NUMERIC, "same", "conj negative positive sign square add subtract multiply pow"),
    (NUMERIC, "bool", "isfinite isinf isnan"),
    (REAL, "same", "ceil floor round trunc floor_divide remainder maximum minimum clip"),
    (REAL, "same", "max min sort"),
    (REAL, "bool", "less less_equal greater greater_equal"),
    (REAL, "index", "argmax argmin argsort"),
    (DTYPES, "bool", "equal not_equal all any"),
    (DTYPES, "index", "count_nonzero"),
    (DTYPES, "same", "flip roll tile unique_values triu tril zeros_like ones_like empty_like"),
    (["bool"], "bool", "logical_not logical_and logical_or logical_xor"),
    (["bool", *INTEGERS], "same", "bitwise_and bitwise_or bitwise_xor bitwise_invert"),
    (INTEGERS, "same", "bitwise_left_shift bitwise_right_shift"),
    (COMPLEX, "part", "real imag"),
    (FLOATS, "same", "atan2 copysign hypot logaddexp nextafter"),
    (FLOATS, "bool", "signbit"),
    (INEXACT, "same", "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh "
                      "sqrt tan tanh divide mean"),
    (FLOATS, "same", "std var"),
    (NUMERIC, "wide", "sum prod cumulative_sum cumulative_prod"),
    (NUMERIC, "same", "diff matmul vecdot tensordot matrix_transpose"),
]  # fmt: skip
TWO = {*BINARY, "matmul", "vecdot", "tensordot"}
CASES = [(name, dtype, result) for dtypes, result, names in TAKES for name in names.split() for dtype in dtypes]


@pytest.mark.parametrize("name", {name: None for name, _, _ in CASES})
def test_dtypes_of_results(name):
    function = getattr(XP, name)
    with jax.enable_x64(True):
        for dtype, result in ((d, r) for n, d, r in CASES if n == name):
            x = XP.ones((2, 2), dtype=dtype)
            args = (
                (x, x) if name in TWO else (x, x, x) if name == "clip" else (x, 1) if name in ("roll", "tile") else (x,)
            )
            kwargs = {"axis": 0} if name.startswith("cumulative") else {}
            wide = "uint64" if dtype in UNSIGNED else "int64" if dtype in SIGNED else dtype
            expected = {"same": dtype, "bool": "bool", "index": "int64", "wide": wide, "part": PARTS.get(dtype, dtype)}
            assert function(*args, **kwargs).dtype == expected[result], dtype


def test_every_elementwise_function_is_among_them():
    assert {*UNARY, *BINARY} <= {name for name, _, _ in CASES}


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_python_scalars_take_the_dtype_of_the_array(dtype):
    with jax.enable_x64(True):
        x = XP.ones(2, dtype=dtype)
        scalars = [1] + [1.0] * ("float" in dtype or "complex" in dtype) + [1j] * ("complex" in dtype)
        for scalar in scalars:
            assert (x + scalar).dtype == (scalar * x).dtype == XP.add(x, scalar).dtype == dtype
            assert XP.where(x == x, x, scalar).dtype == dtype


def test_creation():
    same(XP.arange(3), [0, 1, 2], "int32")
    same(XP.arange(1, 7, 2, dtype=XP.float32), [1, 3, 5], "float32")
    same(XP.eye(2, 3, k=1), [[0, 1, 0], [0, 0, 1]])
    same(XP.linspace(0, 1, 3, endpoint=False), np.linspace(0, 1, 3, endpoint=False, dtype="float32"))
    same(XP.full_like(I8, 7), [7, 7, 7], "int8")
    same(XP.asarray([True, 2]), [1, 2])
    assert XP.asarray(F32) is F32 and XP.asarray(F32, copy=True) is not F32
    assert [g.shape for g in XP.meshgrid(F32, I8[:2], indexing="ij")] == [(3, 2)] * 2


def test_elementwise():
    same(XP.round(XP.asarray([0.5, 1.5, 2.5, -0.5])), [0, 2, 2, -0.0])
    same(XP.floor_divide(XP.asarray([-7, 7]), 2), [-4, 3])
    same(XP.remainder(XP.asarray([-7, 7]), XP.asarray([3, -3])), [2, -2])
    same(XP.sign(XP.asarray([-2.0, 0.0, np.nan])), [-1, 0, np.nan])
    same(XP.sign(XP.asarray([3 + 4j])), np.asarray([0.6 + 0.8j], "complex64"))
    same(XP.divide(XP.asarray([1, 2]), XP.asarray([2, 4])), [0.5, 0.5], "float32")
    same(XP.bitwise_right_shift(I8, XP.asarray([1, 1, 1], dtype=XP.int8)), [0, -1, 1], "int8")
    same(XP.signbit(XP.asarray([-0.0, 0.0])), [True, False])
    same(XP.clip(F32, -1, 1), [1, -1, 0.5])
    same(XP.clip(F32, max=XP.asarray(1.0)), [1, -2.5, 0.5])
    same(XP.reciprocal(F32[2:]), [2])
    same(XP.maximum(F32, XP.asarray([np.nan, 0, 0])), [np.nan, 0, 0.5])
    same(XP.nextafter(F32[:1], XP.asarray([9.0])), np.nextafter(np.float32(1.5), np.float32(9)))


def test_dtypes():
    assert XP.isdtype(I8.dtype, "signed integer") and not XP.isdtype(F32.dtype, ("integral", "bool"))
    assert XP.isdtype(XP.float32, XP.float32)
    assert XP.can_cast(XP.int8, XP.int16) and not XP.can_cast(XP.float32, XP.int32)
    assert XP.finfo(XP.float32).bits == 32 and XP.finfo(F32.dtype).eps == np.finfo("float32").eps
    assert XP.finfo(F32.dtype).smallest_normal == np.finfo("float32").smallest_normal
    assert XP.iinfo(XP.int8).max == 127 and XP.iinfo(I8.dtype).min == -128
    same(XP.astype(F32, XP.int8), [1, -2, 0], "int8")
    assert XP.astype(F32, XP.float32, copy=False) is F32


def test_reductions():
    assert XP.sum(I8).dtype == XP.prod(I8).dtype == XP.cumulative_sum(I8).dtype == "int32"  # the default width
    assert XP.sum(I8, dtype=XP.int8).dtype == "int8" and XP.sum(XP.asarray([1], dtype=XP.uint8)).dtype == "uint32"
    assert float(XP.var(F32, correction=1)) == pytest.approx(np.var(np.asarray(F32), ddof=1))
    assert float(XP.std(F32, correction=0.5)) == pytest.approx(np.sqrt(np.var(np.asarray(F32)) * 3 / 2.5))
    assert float(XP.sum(F32[:0])) == 0 and float(XP.prod(F32[:0])) == 1
    assert bool(XP.all(F32[:0])) and not bool(XP.any(F32[:0]))
    assert np.isnan(float(XP.max(XP.asarray([1.0, np.nan])))) and np.isnan(float(XP.min(XP.asarray([np.nan, 1.0]))))
    same(XP.cumulative_sum(F32, include_initial=True), [0, 1.5, -1, -0.5])
    same(XP.cumulative_prod(XP.asarray([[1, 2], [3, 4]]), axis=1), [[1, 2], [3, 12]])
    same(XP.mean(XP.ones((2, 3)), axis=(0, 1), keepdims=True), [[1]])
    same(XP.count_nonzero(XP.asarray([[0, 1], [2, 3]]), axis=1, keepdims=True), [[1], [2]])
    same(XP.argmax(XP.asarray([[1, 3], [5, 2]]), axis=1, keepdims=True), [[1], [0]])
    same(XP.diff(F32, prepend=F32[:1]), [0, -4, 3])


def test_sorting_and_sets():
    x = XP.asarray([2, 1, 2, 3, 1])
    same(XP.sort(x, descending=True), [3, 2, 2, 1, 1])
    same(XP.argsort(x, descending=True, stable=True), [3, 0, 2, 1, 4])
    values, indices, inverse, counts = XP.unique_all(XP.reshape(x[:4], (2, 2)))
    same(values, [1, 2, 3])
    same(counts, [1, 2, 1])
    same(values[inverse], np.asarray(x[:4]).reshape(2, 2))
    assert XP.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert XP.unique_counts(x)._fields == ("values", "counts")
    assert XP.unique_inverse(x)._fields == ("values", "inverse_indices")
    assert XP.unique_values(XP.asarray([np.nan, np.nan])).shape == (2,)  # each NaN is a value of its own
    same(XP.searchsorted(XP.asarray([1, 2, 3]), XP.asarray([2, 9]), side="right"), [2, 3])
    same(XP.searchsorted(XP.asarray([3, 1, 2]), XP.asarray([2]), sorter=XP.asarray([1, 2, 0])), [1])


def test_manipulation():
    x = XP.reshape(XP.arange(6), (2, 3))
    same(XP.permute_dims(x, (1, 0)), np.asarray(x).T)
    assert [p.shape for p in XP.unstack(x, axis=1)] == [(2,)] * 3
    same(XP.roll(x, 1), np.roll(x, 1))
    same(XP.repeat(x, XP.asarray([1, 2]), axis=0), [[0, 1, 2], [3, 4, 5], [3, 4, 5]])
    same(XP.tile(x, (2, 1, 1)), np.tile(x, (2, 1, 1)))
    same(XP.concat([x, x], axis=None), [*range(6)] * 2)
    assert XP.expand_dims(x, axis=-1).shape == (2, 3, 1) and XP.squeeze(x[None], 0).shape == (2, 3)
    with pytest.raises(ValueError):
        XP.squeeze(x, 0)
    same(XP.flip(x), np.flip(x))
    same(XP.take(x, XP.asarray([2, 0]), axis=1), [[2, 0], [5, 3]])
    same(XP.take_along_axis(x, XP.asarray([[2], [0]])), [[2], [3]])
    same(XP.moveaxis(x, 0, 1), np.asarray(x).T)
    assert x.mT.shape == x.T.shape == (3, 2)


def test_linear_algebra():
    a = XP.asarray([[2.0, 1.0], [1.0, 3.0]])
    same(XP.vecdot(XP.asarray([1j, 1]), XP.asarray([1j, 2])), 3 + 0j)  # conjugates the first
    same(XP.linalg.cholesky(a, upper=True), XP.linalg.cholesky(a).T)
    assert XP.linalg.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert XP.linalg.qr(a)._fields == ("Q", "R") and XP.linalg.slogdet(a)._fields == ("sign", "logabsdet")
    assert XP.linalg.svd(a)._fields == ("U", "S", "Vh")
    np.testing.assert_allclose(XP.linalg.solve(a, XP.asarray([1.0, 2.0])), np.linalg.solve(a, [1, 2]), rtol=1e-6)
    assert int(XP.linalg.matrix_rank(XP.ones((2, 2)), rtol=0.5)) == 1
    same(XP.linalg.trace(XP.ones((2, 3, 3)), offset=1), [2, 2])
    same(XP.linalg.diagonal(XP.reshape(XP.arange(8), (2, 2, 2))), [[0, 3], [4, 7]])
    assert float(XP.linalg.vector_norm(XP.ones((2, 2)))) == 2
    assert XP.linalg.vector_norm(a, axis=0, keepdims=True).shape == (1, 2)
    assert float(XP.linalg.matrix_norm(XP.ones((2, 2)), ord="nuc")) == pytest.approx(2)
    same(XP.linalg.cross(XP.asarray([1, 0, 0]), XP.asarray([0, 1, 0])), [0, 0, 1])
    same(XP.tensordot(a, a, axes=((1,), (0,))), a @ a)
    same(XP.linalg.matrix_power(a, 0), np.eye(2))


def test_fourier():
    x = XP.asarray([1.0, 2.0, 3.0, 4.0])
    pairs = (("fft", "ifft"), ("rfft", "irfft"), ("fftn", "ifftn"), ("rfftn", "irfftn"), ("ihfft", "hfft"))
    for forward, back in pairs:
        for norm in ("backward", "ortho", "forward"):
            there = getattr(XP.fft, forward)(x, norm=norm)
            assert there.dtype == "complex64"
            np.testing.assert_allclose(getattr(XP.fft, back)(there, norm=norm).real, x, atol=1e-5)
    same(XP.fft.fftfreq(4, d=0.5, dtype=XP.float32), [0, 0.5, -1, -0.5], "float32")
    same(XP.fft.ifftshift(XP.fft.fftshift(x)), x)


def test_arrays():
    x = XP.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert (bool(x[0, 0]), int(x[1, 0]), float(x[1, 1]), complex(x[0, 1])) == (True, 3, 4.0, 2 + 0j)
    assert [10, 20][XP.asarray(1)] == 20 and x.size == 4 and x.ndim == 2 and x.device in jax.devices()
    same(x[:, None, 1], [[2], [4]])
    same(x[..., ::-1], [[2, 1], [4, 3]])
    same(x[x > 2], [3, 4])
    same(x[XP.asarray([1, 0]), XP.asarray([0, 0])], [3, 1])
    assert np.from_dlpack(x).shape == (2, 2) and x.__dlpack_device__() == (1, 0)
    same(XP.from_dlpack(np.arange(3, dtype="float32")), [0, 1, 2], "float32")
    assert x.to_device(x.device).device is x.device
    y = x
    y += 1  # in-place operators make a new array
    assert y is not x and float(x[0, 0]) == 1
    same(x @ x, np.asarray(x) @ np.asarray(x))
    same(2**x, 2.0 ** np.asarray(x))
    same(~(x > 2), [[True, True], [False, False]])
