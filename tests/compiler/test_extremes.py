"""The largest and smallest of floats: NaN of either sign wins wherever it is, and -0 is less than 0."""

import ml_dtypes
import numpy as np
import pytest

from catena import lax
from catena.core.config import override
from compiled import run

BF16, F16, F32, F64 = np.dtype(ml_dtypes.bfloat16), np.dtype("f2"), np.dtype("f4"), np.dtype("f8")
F8 = np.dtype(ml_dtypes.float8_e4m3fn)
LENGTHS = {BF16: range(1, 131), F32: range(1, 131), F16: (1, 2, 31, 32, 33, 65, 130), F64: (1, 7, 8, 9, 63, 130)}


def same(got, expected) -> bool:
    """Equal, signs of zeros included; NaN equals NaN."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    g, e = got.astype(F64), expected.astype(F64)
    return bool(np.all((g == e) & (np.signbit(g) == np.signbit(e)) | np.isnan(g) & np.isnan(e)))


def reference(kind: str, x, axis):
    """By the order of IEEE 754 on the bits of the float64 that each element is."""
    bits = x.astype(F64).view(np.int64)
    order = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    best = getattr(np, f"a{kind}")(order, axis)
    best = np.where(best < 0, best ^ np.iinfo(np.int64).max, best).view(F64)
    return np.where(np.isnan(x.astype(F64)).any(axis), np.nan, best).astype(x.dtype)


def rows(n: int, dtype) -> np.ndarray:
    """Rows of `n` elements, with every special one at every place among others."""
    tiny = np.finfo(F32).smallest_subnormal if dtype == BF16 else ml_dtypes.finfo(dtype).smallest_subnormal
    rng = np.random.default_rng(n)
    plain = rng.normal(size=n)
    cases = [(plain, x) for x in (np.nan, -np.nan, np.inf, -np.inf)]
    cases += [(np.abs(plain), -np.nan), (-np.abs(plain), np.nan), (np.abs(plain), -0.0), (-np.abs(plain), 0.0)]
    cases += [(np.zeros(n), -0.0), (-np.zeros(n), 0.0), (np.zeros(n), tiny), (np.full(n, -np.inf), np.nan)]
    with np.errstate(all="ignore"):
        out = np.concatenate([np.where(np.eye(n, dtype=bool), special, base) for base, special in cases])
        return np.concatenate([out, [plain, np.abs(plain), -np.abs(plain)]]).astype(dtype)


def both(b, x, axes):
    return [b.reduce(kind, x, axes) for kind in ("max", "min")]


def check_both(f, x, expected_of, axis):
    """`f(b, x, axes)` gives both extremes along `axis` of `expected_of`."""
    got = run(lambda b, x: f(b, x, (axis,)), x)
    for kind, y in zip(("max", "min"), got, strict=True):
        assert same(y, reference(kind, expected_of, axis)), (kind, x.shape, x.dtype)


@pytest.mark.parametrize("dtype", LENGTHS, ids=str)
def test_specials_at_every_place(dtype):
    for n in LENGTHS[dtype]:
        x = rows(n, dtype)
        check_both(both, x, x, 1)


@pytest.mark.parametrize("dtype", LENGTHS, ids=str)
def test_nothing(dtype):
    high, low = run(lambda b, x: both(b, x, (1,)), np.zeros((3, 0), dtype))
    assert same(high, np.full(3, -np.inf, dtype)) and same(low, np.full(3, np.inf, dtype))


@pytest.mark.parametrize("dtype", [*LENGTHS, F8], ids=str)
@pytest.mark.parametrize("n", [1, 3, 33, 130])
def test_lanes_that_are_kept(dtype, n):
    x = np.ascontiguousarray(rows(n, dtype if dtype != F8 else F16).T).astype(dtype)
    check_both(both, x, x, 0)


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_programs_and_evaluation_agree(dtype):
    """Large arrays are evaluated by NumPy first, and by a compiled program from the third time on."""
    x = np.tile(rows(130, dtype), (1, 3))
    for reduce, kind in ((lax.reduce_max, "max"), (lax.reduce_min, "min")):
        for _ in range(4):
            assert same(reduce(x, (1,)), reference(kind, x, 1))


@pytest.mark.parametrize("dtype", [BF16, F16, F32, F64], ids=str)
def test_strides(dtype):
    x = rows(70, dtype)

    def of_slice(b, x, axes):
        return both(b, b.slice(x, (0, 1), x.shape, (1, 2)), axes)

    def reversed_(b, x, axes):
        return both(b, b.reverse(x, (1,)), axes)

    def transposed(b, x, axes):
        return both(b, b.transpose(x, (1, 0)), axes)

    check_both(of_slice, x, x[:, 1::2], 1)
    check_both(reversed_, x, x[:, ::-1], 1)
    check_both(transposed, x, x.T, 0)
    check_both(transposed, x, x.T, 1)


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_what_is_computed_on_the_way(dtype):
    x = rows(66, dtype)
    check_both(lambda b, x, axes: both(b, b.map("neg", x), axes), x, -x, 1)


@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_other_results_of_the_same_pass(dtype):
    """What is also wanted as a float is read as one."""
    x = (np.arange(5 * 200).reshape(5, 200) / 100).astype(dtype)

    def several(b, x):
        return [b.reduce("max", x, (1,)), b.reduce("sum", x, (1,)), b.map("add", x, x)]

    high, total, doubled = run(several, x)
    assert same(high, x.max(1)) and same(doubled, x + x)
    assert np.allclose(total.astype(F32), x.astype(F32).sum(1), rtol=1e-2)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
@pytest.mark.parametrize("place", [0, 1, 99_999, 524_287, 1_100_002])
def test_chunks_of_long_folds(dtype, place):
    """The threads leave partial results."""
    x = np.linspace(-2, -1, 1_100_003).astype(dtype)
    for special in (np.nan, -np.nan, np.inf, 0.0, -0.0):
        x[place] = special
        check_both(both, x, x, 0)


@pytest.mark.parametrize("shape, axis", [((5, 33, 64), 1), ((5, 33, 32), 1), ((7, 127), 1), ((33, 128), 0)])
@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_lanes_of_half_width_stay_inside(shape, axis, dtype):
    """Twice as many lanes, and as many copies as fit."""
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    with override("jax_check_bounds", True):
        check_both(both, x, x, axis)


@pytest.mark.parametrize("dtype", LENGTHS, ids=str)
def test_of_every_pair_of_specials_in_lanes_and_alone(dtype):
    specials = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 2.0, -2.0, 0.5]).astype(dtype)
    specials = np.append(specials, ml_dtypes.finfo(dtype).smallest_subnormal if dtype != BF16 else specials[:1])
    x, y = (a.ravel() for a in np.meshgrid(specials, specials))
    for count in (len(x), 37, 9):
        for at in range(0, len(x), count):
            pair = x[at : at + count], y[at : at + count]
            got = run(lambda b, x, y: [b.map(kind, x, y) for kind in ("max", "min")], *pair)
            for kind, z in zip(("max", "min"), got, strict=True):
                assert same(z, reference(kind, np.stack(pair), 0)), (kind, pair)
