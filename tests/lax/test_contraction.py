"""Contractions and convolutions: against einsum and loops, every rule, every dtype, and what errors say."""

import ml_dtypes
import numpy as np
import pytest

import catena
from catena import lax
from catena.lax.conv_forms import conv_general_shape_tuple, conv_shape_tuple, conv_transpose_shape_tuple
from catena.lax.ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
from catena.lax.scaled import scaled_dot
from checkers import check_primitive, raises

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# ---- dot_general

CASES = [
    ("i,i->", (3,), (3,), (((0,), (0,)), ((), ()))),
    ("ij,jk->ik", (2, 3), (3, 4), (((1,), (0,)), ((), ()))),
    ("ij,j->i", (2, 3), (3,), (((1,), (0,)), ((), ()))),
    ("ji,jk->ik", (3, 2), (3, 4), (((0,), (0,)), ((), ()))),
    ("i,j->ij", (2,), (3,), (((), ()), ((), ()))),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    ("ibj,kjb->bik", (3, 2, 4), (5, 4, 2), (((2,), (1,)), ((1,), (2,)))),
    ("ijkl,mlkn->ijmn", (2, 3, 4, 5), (2, 5, 4, 3), (((3, 2), (1, 2)), ((), ()))),
    ("abij,jabi->ab", (2, 3, 4, 5), (5, 2, 3, 4), (((2, 3), (3, 0)), ((0, 1), (1, 2)))),
]


@pytest.mark.parametrize(("formula", "lhs", "rhs", "numbers"), CASES)
def test_dot_general_rules(formula, lhs, rhs, numbers):
    with catena.enable_x64(True):
        args = [normal(*lhs), normal(*rhs, seed=1)]
        check_primitive(
            lambda a, b: lax.dot_general(a, b, numbers),
            args,
            reference=lambda a, b: np.einsum(formula, a, b),
            atol=1e-12,
        )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_integers_wrap_like_integers(dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(info.min, info.max, s, dtype=dtype, endpoint=True) for s in ((20, 300), (300, 10)))
    for f in (lax.dot, catena.jit(lax.dot)):
        np.testing.assert_array_equal(np.asarray(f(a, b)), a @ b)


def test_integers_of_64_bits():
    with catena.enable_x64(True):
        a = np.random.default_rng(0).integers(-(2**62), 2**62, (5, 5))
        np.testing.assert_array_equal(np.asarray(lax.dot(a, a)), a @ a)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_are_multiplied_in_float32(dtype):
    a, b = normal(4, 64).astype(dtype), normal(64, 3, seed=1).astype(dtype)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    for f in (lax.dot, catena.jit(lax.dot)):
        out = np.asarray(f(a, b))
        assert out.dtype == dtype
        np.testing.assert_array_equal(out.astype(np.float32), exact.astype(dtype).astype(np.float32))
    wide = lax.dot(a, b, preferred_element_type=np.float32)
    np.testing.assert_allclose(np.asarray(wide), exact, rtol=1e-6)


def test_operands_of_different_dtypes():
    ints = X.astype(np.int32)
    assert lax.dot(X, ints.T).dtype == np.float32
    assert lax.dot(ints, X.T, preferred_element_type="int32").tolist() == (ints @ ints.T).tolist()
    assert lax.dot(X > 0, (X > 0).T).dtype == bool
    assert lax.dot(ints.astype(np.int8), ints.T.astype(np.int8), preferred_element_type="int32").dtype == np.int32


def test_derivative_with_preferred_type():
    a, b = X.astype(ml_dtypes.bfloat16), X.T.astype(ml_dtypes.bfloat16)
    grad = catena.grad(lambda a: lax.dot(a, b, preferred_element_type=np.float32).sum())(a)
    assert grad.dtype == ml_dtypes.bfloat16


def test_precision_is_read_and_kept():
    assert lax.Precision("tensorfloat32") is lax.Precision.HIGH
    text = str(catena.make_jaxpr(lambda a, b: lax.dot(a, b, precision=("high", "highest")))(X, X.T))
    assert "precision=(Precision.HIGH, Precision.HIGHEST)" in text
    assert "precision=BF16_BF16_F32" in str(
        catena.make_jaxpr(lambda a, b: lax.dot(a, b, precision="BF16_BF16_F32"))(X, X.T)
    )
    assert "precision" not in str(catena.make_jaxpr(lax.dot)(X, X.T))


def test_weak_type():
    assert lax.dot_general(2.0, 3.0, (((), ()), ((), ()))).weak_type


def test_errors_of_dot():
    raises(
        ValueError,
        "jax.lax.dot: dimension_numbers must be specified when not performing simple un-batched "
        "matrix-matrix, "
        "matrix-vector, or vector-vector products; got lhs_shape=(3, 4) rhs_shape=(3, 4)",
        lax.dot, X, X,
    )  # fmt: skip
    raises(
        TypeError, "dot_general requires contracting dimensions to have the same shape, got (4,) and (3,).",
        lax.dot_general, X, X, (((1,), (0,)), ((), ())),
    )  # fmt: skip
    raises(
        TypeError,
        "dot_general requires lhs batch dimensions to be disjoint from contracting dimensions, got lhs_batch "
        "(0,) and "
        "lhs_contracting (0,).",
        lax.dot_general, X, X, (((0,), (0,)), ((0,), (0,))),
    )  # fmt: skip
    raises(
        TypeError, "`preferred_element_type` must not be narrower than the original type",
        lambda: lax.dot(X.astype(int), X.T.astype(int), preferred_element_type=np.int8),
    )  # fmt: skip
    raises(ValueError, "Precision argument must be one of:", lambda: lax.dot(X, X.T, precision="bad"))
    raises(ValueError, "Arguments to batch_matmul must be at least 2D, got 1, 1", lax.batch_matmul, X[0], X[0])


# ---- ragged contractions

FREE = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
CONTRACTING = RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())
BATCH = RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), (0,), ())


def ragged_reference(kind, a, b, sizes):
    if kind == "batch":
        return a @ b
    ends = np.cumsum(sizes)
    parts = [slice(e - s, e) for s, e in zip(sizes, ends, strict=True)]
    if kind == "contracting":
        return np.stack([a[:, p] @ b[p] for p in parts])
    out = np.zeros((a.shape[0], b.shape[2]))
    for g, p in enumerate(parts):
        out[p] = a[p] @ b[g]
    return out


@pytest.mark.parametrize(
    ("kind", "numbers", "lhs", "rhs"),
    [
        ("free", FREE, (6, 3), (3, 3, 2)),
        ("contracting", CONTRACTING, (4, 6), (6, 2)),
        ("batch", BATCH, (2, 4, 3), (2, 3, 5)),
    ],
)
def test_ragged_rules(kind, numbers, lhs, rhs):
    sizes = np.array([2, 0, 3], np.int32)
    with catena.enable_x64(True):
        check_primitive(
            lambda a, b: ragged_dot_general(a, b, sizes, numbers),
            [normal(*lhs), normal(*rhs, seed=1)],
            reference=lambda a, b: ragged_reference(kind, a, b, sizes),
            atol=1e-12,
        )


def test_groups_with_an_offset_and_of_a_batch():
    a, b = normal(5, 3).astype(np.float32), normal(3, 3, 2, seed=1).astype(np.float32)
    sizes = np.array([1, 2, 2], np.int32)
    whole = np.asarray(ragged_dot(a, b, sizes))
    for f in (ragged_dot, catena.jit(ragged_dot)):
        part = np.asarray(f(a, b[1:], sizes, group_offset=np.array([1], np.int32)))
        np.testing.assert_allclose(part, np.concatenate([np.zeros((1, 2)), whole[1:]]), rtol=1e-6)
    paired = RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (0,))), (1,), (1,))
    both = np.stack([sizes, sizes[::-1]])
    for f in (ragged_dot_general, catena.jit(ragged_dot_general, static_argnums=3)):
        out = np.asarray(f(np.stack([a, a]), np.stack([b, b]), both, paired))
        np.testing.assert_allclose(out[1], np.asarray(ragged_dot(a, b, both[1])), rtol=1e-5)


def test_errors_of_ragged_dot():
    raises(
        TypeError, "expected rhs group dimension size to be 3, got 2.",
        ragged_dot, X, np.ones((2, 4, 5), np.float32), np.array([1, 1, 1]),
    )  # fmt: skip


# ---- convolutions


def conv_reference(x, w, strides, padding, lhs_dilation, rhs_dilation, groups):
    """One axis of space: batch, features, space with output, input, space."""
    n, c, size = x.shape
    stretched = np.zeros((n, c, (size - 1) * lhs_dilation + 1))
    stretched[:, :, ::lhs_dilation] = x
    low, high = padding
    padded = np.pad(stretched, ((0, 0), (0, 0), (max(low, 0), max(high, 0))))
    padded = padded[:, :, max(-low, 0) : padded.shape[2] - max(-high, 0)]
    o, i, k = w.shape
    reach = (k - 1) * rhs_dilation + 1
    out = np.zeros((n, o, (padded.shape[2] - reach) // strides + 1))
    for p in range(out.shape[2]):
        window = padded[:, :, p * strides : p * strides + reach : rhs_dilation]
        for f in range(o):
            g = f // (o // groups)
            out[:, f, p] = np.einsum("nik,ik->n", window[:, g * i : (g + 1) * i], w[f])
    return out


@pytest.mark.share(5)
@pytest.mark.parametrize("strides", [1, 2, 3])
@pytest.mark.parametrize("padding", [(0, 0), (2, 1), (-1, 3)])
@pytest.mark.parametrize(("lhs_dilation", "rhs_dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_means_this(strides, padding, lhs_dilation, rhs_dilation, groups):
    x, w = normal(2, 4, 7), normal(6, 4 // groups, 3, seed=1)
    expected = conv_reference(x, w, strides, padding, lhs_dilation, rhs_dilation, groups)
    out = lax.conv_general_dilated(
        x.astype(np.float32), w.astype(np.float32), (strides,), (padding,), (lhs_dilation,), (rhs_dilation,),
        feature_group_count=groups,
    )  # fmt: skip
    np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-4, atol=1e-5)


CONVS = {
    "plain": ((2, 2, 5), (3, 2, 3), {"window_strides": (1,), "padding": "SAME"}),
    "strided": ((1, 2, 6, 5), (2, 2, 3, 2), {"window_strides": (2, 1), "padding": ((1, 0), (0, 2))}),
    "dilated": (
        (1, 2, 4), (2, 2, 3),
        {"window_strides": (2,), "padding": ((2, 3),), "lhs_dilation": (2,), "rhs_dilation": (2,)},
    ),
    "cropped": ((1, 1, 7), (1, 1, 2), {"window_strides": (1,), "padding": ((-1, -2),)}),
    "feature groups": (
        (1, 4, 5), (6, 2, 2), {"window_strides": (1,), "padding": "VALID", "feature_group_count": 2},
    ),
    "depthwise": (
        (2, 3, 5), (3, 1, 2), {"window_strides": (2,), "padding": "VALID", "feature_group_count": 3},
    ),
    "batch groups": (
        (4, 2, 5), (4, 2, 3), {"window_strides": (1,), "padding": "SAME", "batch_group_count": 2},
    ),
    "layout": (
        (5, 2, 4, 3), (2, 3, 2, 4),
        {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": ("HNWC", "HIWO", "WCNH")},
    ),
    "no space": ((2, 3), (4, 3), {"window_strides": (), "padding": ()}),
}  # fmt: skip


@pytest.mark.share(2)
@pytest.mark.parametrize("name", list(CONVS))
def test_convolution_rules(name):
    lhs, rhs, params = CONVS[name]
    with catena.enable_x64(True):
        args = [normal(*lhs), normal(*rhs, seed=1)]
        check_primitive(lambda x, w: lax.conv_general_dilated(x, w, **params), args, atol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "bool", "complex64"])
def test_convolution_dtypes(dtype):
    rng = np.random.default_rng(0)
    x, w = (rng.integers(0, 3, s).astype(dtype) for s in ((1, 2, 5), (2, 2, 3)))
    eager, compiled = (
        lax.conv(x, w, (1,), "SAME"),
        catena.jit(lambda x, w: lax.conv(x, w, (1,), "SAME"))(x, w),
    )
    assert eager.dtype == dtype and eager.tolist() == compiled.tolist()
    if dtype != "bool":
        wide = lax.conv(x.astype(np.complex64), w.astype(np.complex64), (1,), "SAME")
        np.testing.assert_allclose(np.asarray(eager).astype(np.complex64), np.asarray(wide))


def test_transposed_convolution_is_the_gradient():
    w = normal(3, 2, 4).astype(np.float32)
    numbers = ("NHC", "HIO", "NHC")
    x = normal(1, 8, 2, seed=1).astype(np.float32)

    def down(x):
        return lax.conv_general_dilated(x, w, (2,), "SAME", dimension_numbers=numbers)

    y, pull = catena.vjp(down, x)
    up = lax.conv_transpose(y, w, (2,), "SAME", transpose_kernel=True)
    assert up.shape == x.shape == conv_transpose_shape_tuple(y.shape, (3, 4, 2), (2,), "SAME", numbers)
    explicit = lax.conv_transpose(y, w, (2,), [(0, 0)], transpose_kernel=True, use_consistent_padding=True)
    valid = lax.conv_transpose(y, w, (2,), [(2, 2)], transpose_kernel=True)
    assert explicit.tolist() == valid.tolist()
    assert pull(y)[0].shape == up.shape


def test_patches_and_local_convolution():
    x, w = normal(2, 3, 6).astype(np.float32), normal(4, 3, 2, seed=1).astype(np.float32)
    patches = lax.conv_general_dilated_patches(x, (2,), (1,), "VALID")
    np.testing.assert_allclose(
        np.einsum("nfp,of->nop", np.asarray(patches), w.reshape(4, 6)),
        lax.conv(x, w, (1,), "VALID"),
        rtol=1e-4,
        atol=1e-5,
    )
    everywhere = np.repeat(w.reshape(4, 6)[..., None], 5, -1)
    local = lax.conv_general_dilated_local(x, everywhere, (1,), "VALID", (2,))
    np.testing.assert_allclose(np.asarray(local), lax.conv(x, w, (1,), "VALID"), rtol=1e-4, atol=1e-5)


def test_shapes():
    assert conv_shape_tuple((1, 2, 9), (5, 2, 3), (2,), ((0, 1),)) == (1, 5, 4)
    assert conv_general_shape_tuple((1, 9, 2), (3, 2, 5), (2,), "VALID", ("NHC", "HIO", "NHC")) == (1, 4, 5)
    assert lax.padtype_to_pads((9, 9), (4, 2), (2, 2), "SAME_LOWER") == [(2, 1), (1, 0)]
    numbers = lax.conv_dimension_numbers((1, 2, 3, 4), (1, 2, 3, 4), ("NCHW", "WHIO", "NHWC"))
    assert numbers == lax.ConvDimensionNumbers((0, 1, 3, 2), (3, 2, 0, 1), (0, 3, 2, 1))


def test_errors_of_convolutions():
    x, w = np.ones((2, 4, 9), np.float32), np.ones((6, 4, 3), np.float32)
    f = lax.conv_general_dilated
    raises(
        RuntimeError,
        "Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got bad.",
        f,
        x,
        w,
        (1,),
        "bad",
    )
    raises(
        ValueError,
        "conv_general_dilated lhs feature dimension size divided by feature_group_count must equal the rhs "
        "input feature "
        "dimension size, but 4 // 1 != 2.",
        f, x, w[:, :2], (1,), "VALID",
    )  # fmt: skip
    raises(
        TypeError,
        "convolution requires lhs and rhs ndim to be equal, got 3 and 2.",
        f,
        x,
        w[0],
        (1,),
        "VALID",
    )
    raises(
        TypeError, "lax.conv_general_dilated requires arguments to have the same dtypes, got float32, int32.",
        f, x, w.astype(np.int32), (1,), "VALID",
    )  # fmt: skip
    raises(
        TypeError,
        "convolution dimension_numbers[0] must contain the characters 'N' and 'C' exactly once, got NHX.",
        lambda: f(x, w, (1,), "VALID", dimension_numbers=("NHX", "HIO", "NHC")),
    )  # fmt: skip
    raises(
        ValueError, "String padding is not implemented for transposed convolution using this op.",
        lambda: f(x, w, (1,), "SAME", lhs_dilation=(2,)),
    )  # fmt: skip


# ---- contractions with scales


def test_scaled_dot():
    narrow = ml_dtypes.float8_e4m3fn
    a, b = (
        (np.arange(8.0).reshape(2, 4) % 5).astype(narrow),
        (np.arange(12.0).reshape(4, 3) % 7).astype(narrow),
    )
    lhs_scale, rhs_scale = np.array([[1.0, 2.0], [4.0, 0.5]]), np.array([[1.0, 2.0, 4.0]])
    expected = (a.astype(float) * np.repeat(lhs_scale, 2, 1)) @ (b.astype(float) * rhs_scale)

    def f(a, b, s, t):
        return scaled_dot(a, b, lhs_scale=s, rhs_scale=t, preferred_element_type=np.float32)

    args = a, b, lhs_scale.astype(ml_dtypes.float8_e8m0fnu), rhs_scale.astype(ml_dtypes.float8_e8m0fnu)
    for g in (f, catena.jit(f)):
        np.testing.assert_allclose(np.asarray(g(*args)), expected)
    assert scaled_dot(a, b).dtype == ml_dtypes.bfloat16
    raises(
        TypeError,
        "LHS dim 1 of size 4 must be divisible by its scale's dim size 3.",
        lambda: scaled_dot(a, b, lhs_scale=np.ones((2, 3))),
    )


def test_the_gradient_of_a_real_operand_beside_a_complex_one():
    """It is real, and its imaginary part is dropped without a warning (which would be an error here)."""
    a, b = np.ones(3, "float32"), np.full(3, 2 + 1j, "complex64")
    gradient = catena.grad(lambda a: lax.dot(a, b).real)(a)
    assert gradient.dtype == np.float32 and gradient.tolist() == [2, 2, 2]


@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
def test_compiled_convolutions_without_space_are_products(groups):
    size = groups.get("feature_group_count", 1)
    x, w = normal(2, 4), normal(2, 4 // size, seed=1)
    f = catena.jit(lambda x, w: lax.conv_general_dilated(x, w, window_strides=(), padding=(), **groups))
    if size > 1:
        expected = np.stack([x[:, :2] @ w[0], x[:, 2:] @ w[1]], 1)
    elif groups:
        expected = np.stack([x[:1] @ w[0], x[1:] @ w[1]], 1)
    else:
        expected = x @ w.T
    np.testing.assert_allclose(f(x, w), expected, rtol=1e-5, atol=1e-6)
