"""Which evaluator serves which eager operation, of which dtypes, at which size: one table, read by ``native.py``.

There are three. *NumPy* serves what it computes exactly and well. A *loop* is a NumPy ufunc of our own around compiled
code: it costs a call what NumPy's functions cost, and gives the bits that compiled programs give, at all sizes. A
*program* is compiled for the shapes at hand, and runs on all threads.

What a value is must not depend on how often it was computed. So a choice between two evaluators hangs on dtypes and
shapes alone; only where both give the same bits (loops and programs do, and NumPy where an operation is exact) may a
program wait until an operation was seen on these shapes before, so that what comes once is not compiled.

``make calibrate`` measures the evaluators beside each other on the machine at hand, and says where a row is not the
best choice.
"""

from __future__ import annotations

import math

import numpy as np

from catena.core import dtypes
from catena.core.named import NamedTuple

NONE: frozenset = frozenset()
SINGLE_AND_DOUBLE = frozenset((np.dtype("float32"), np.dtype("float64")))
F16 = np.dtype("float16")
HALVES = frozenset((dtypes.BFLOAT16, F16))
FLOATS = HALVES | SINGLE_AND_DOUBLE
COMPLEXES = frozenset(dtypes.COMPLEX)
NARROW = frozenset(dtypes.FLOATS) - SINGLE_AND_DOUBLE  # floats that NumPy takes one by one
INEXACT = FLOATS | COMPLEXES
INTEGERS = frozenset(d for d in (*dtypes.SIGNED, *dtypes.UNSIGNED) if dtypes.itemsize_bits(d) >= 8)

LARGE = 1 << 16  # elements, from which on an operation may be worth a program
SHARED = 15 << 17  # bytes of the first and the last operand, from which on all threads are quicker than NumPy on one
PIECE = 1 << 18  # elements: what has so many, and came with these shapes for the first time, runs in pieces of as many
REPEATS = 2  # evaluations before a program is compiled for something that has other evaluators with the same bits
ONE_THREAD_ELEMENTS, ONE_THREAD_WORK = 1 << 13, 1 << 18  # of products that BLAS never shares out among its threads
LONG_SUM = 1 << 10  # products that one BLAS call adds up: it does so one after another in each lane
CONVERTED = CHOSEN = 1 << 14  # elements, from which on loops convert narrow floats, and choose between arrays
CONVERTED_HALVES = 1 << 10  # likewise, to and from float16: NumPy takes each apart by itself, some 3 to 9 ns
MANY_ROWS = 1 << 10  # that NumPy folds one after the other, some 20 ns each; arrays of fewer elements are not asked
MANY_EXTREMA = 1 << 9  # rows in which NumPy looks for the greatest number, or its place, some 60 to 110 ns each
FOLDED = 1 << 15  # elements, from which on a fold may be worth a program: NumPy takes 0.3 ns and more for each
PROGRAMMED = 1 << 12  # elements, from which on several operations after each other are quicker as one program ...
SPREAD = 1 << 16  # bytes of two, likewise of one operation on arrays of two shapes: NumPy takes 10 to 150 ns for a row
UPDATED = 1 << 14  # elements of rows, which NumPy adds to one after the other, some 10 ns each
SCANNED = 1 << 13  # elements, whose running sums and products NumPy takes 3 to 9 ns each for
FEW = 16  # operands: of more, a program takes long to compile


class Elementwise(NamedTuple):
    """The evaluators of an elementwise operation: NumPy but for these dtypes."""

    loop: frozenset = NONE  # dtypes that NumPy computes inexactly, or element by element: a loop; large ones a program
    shared: frozenset = NONE  # dtypes that NumPy computes exactly: very large ones a program
    arity: int = 1  # operands


class Shaped(NamedTuple):
    """The evaluators of an operation that is compiled for its shapes: NumPy for small operands, then a program."""

    exact: bool = False  # whether NumPy and the program give the same bits; of integers and booleans they always do
    narrow: bool = True  # small floats too, which not every operation accumulates alike in NumPy and compiled
    least: int = LARGE  # elements of the first and the last operand, from which on a program runs
    longest: int = 1 << 25  # elements of the first, from which on it runs at once: NumPy takes long, and no Ctrl-C


_number, _product = INTEGERS | SINGLE_AND_DOUBLE | COMPLEXES, INTEGERS | SINGLE_AND_DOUBLE


def _rows(arity: int, names: str, loop=NONE, shared=NONE) -> dict:
    return dict.fromkeys(names.split(), Elementwise(loop, shared, arity))


ELEMENTWISE = {
    **_rows(
        1, "exp exp2 expm1 log log1p logistic sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh", INEXACT
    ),
    **_rows(1, "sinh cosh tanh asinh acosh atanh rsqrt integer_pow sign", INEXACT),
    **_rows(2, "atan2 pow max min", INEXACT),
    **_rows(1, "erf erfc erf_inv lgamma digamma trigamma cbrt round bessel_i0e bessel_i1e reduce_precision", FLOATS),
    **_rows(2, "polygamma zeta igamma igammac igamma_grad_a random_gamma_grad eq_to le_to lt_to", FLOATS),
    **_rows(3, "regularized_incomplete_beta betaincc log_betainc log_betaincc", FLOATS),
    **_rows(3, "hyp1f1 hyp1f1_by_a hyp1f1_by_b hyp1f1_by_x", FLOATS),
    **_rows(4, "hyp2f1 hyp2f1_by_a hyp2f1_by_b hyp2f1_by_c hyp2f1_by_x", FLOATS),
    **_rows(1, "gamma erfcx dawsn exp1 expi sine_integral cosine_integral fresnel_s fresnel_c spence", FLOATS),
    **_rows(1, "ndtr log_ndtr ndtri riemann_zeta riemann_zeta_slope bessel_i0 bessel_i1", FLOATS),
    **_rows(1, "bessel_difference normal_density error_density", FLOATS),
    **_rows(1, "erfcx_slope dawsn_slope expi_slope fresnel_s_slope fresnel_c_slope entr logit", FLOATS),
    **_rows(2, "digamma_difference binomial log_gamma_density log_igamma log_igammac", FLOATS),
    **_rows(2, "log_igamma_grad_a log_igammac_grad_a", FLOATS),
    **_rows(2, "faddeeva_real faddeeva_imag faddeeva_slope_real faddeeva_slope_imag", FLOATS),
    **_rows(2, "expn beta log_beta log_quotient owens_t poch zeta_by_x", FLOATS),
    **_rows(1, "neg", HALVES, _number),
    **_rows(2, "add sub add_any lt le gt ge", HALVES, _number),
    **_rows(1, "square abs", HALVES | COMPLEXES, _product),
    **_rows(2, "mul eq ne", HALVES | COMPLEXES, _product),
    **_rows(1, "floor ceil is_finite", HALVES, SINGLE_AND_DOUBLE),
    **_rows(1, "sqrt", HALVES | COMPLEXES, SINGLE_AND_DOUBLE),
    **_rows(2, "div", HALVES | INTEGERS | COMPLEXES, SINGLE_AND_DOUBLE),
    **_rows(2, "rem", FLOATS | INTEGERS),
    **_rows(2, "nextafter", FLOATS),
    **_rows(3, "clamp", FLOATS | INTEGERS),
    **_rows(1, "not", NONE, INTEGERS),
    **_rows(2, "and or xor", NONE, INTEGERS),
    **_rows(2, "shift_left shift_right_logical shift_right_arithmetic mulhi wrapping_pow", INTEGERS),
    **_rows(1, "population_count clz", INTEGERS),
    **_rows(2, "complex", NONE, SINGLE_AND_DOUBLE),
    **_rows(1, "conj", NONE, COMPLEXES),
}
BY_NUMPY = Elementwise()


def is_small_product(left: int, right: int, k: int) -> bool:
    """Whether BLAS multiplies matrices of so many elements, ``k`` products each summed, on one thread: on several, the
    bits depend on how many there are.
    """
    return left + right <= ONE_THREAD_ELEMENTS and left * right <= ONE_THREAD_WORK * max(k, 1)


def converts_soon(x: np.ndarray, dtype: np.dtype) -> bool:
    """Whether NumPy converts an array as soon as anything does."""
    pair = (x.dtype, dtype)
    return x.size < (CONVERTED_HALVES if F16 in pair else LARGE if NARROW.isdisjoint(pair) else CONVERTED)


def folds_long(shape: tuple, axis, extremes: bool = False) -> bool:
    """Whether NumPy's fold along axes, those that its functions take, takes so long that it may be worth a program: of
    many elements, or of many short rows. NumPy finds the extremes of all elements as quickly as it reads them.
    """
    size = math.prod(shape)
    if axis is None or size >= FOLDED:
        return size >= (LARGE if extremes and axis is None else FOLDED)
    rows = MANY_EXTREMA if extremes else MANY_ROWS
    axes = [a % len(shape) for a in ((axis,) if isinstance(axis, int) else axis)]
    row, innermost = 1, len(shape) - 1 in axes
    for d in reversed(range(len(shape))):  # dimensions that are folded, or kept, one beside the other, are one
        if (d in axes) != innermost:
            break
        row *= shape[d]
    return size // max(row, 1) >= rows


_exact, _exact_wide = Shaped(exact=True), Shaped(exact=True, narrow=False)
_summing, _wide = Shaped(), Shaped(narrow=False)
_sorting = Shaped(exact=True, longest=1 << 22)
SHAPED = {
    **dict.fromkeys("reduce_max reduce_min reduce_and reduce_or reduce_xor argmax argmin".split(), _exact),
    **dict.fromkeys("sort top_k approx_top_k".split(), _sorting),
    **dict.fromkeys("transpose reduce_window_max reduce_window_min".split(), _exact),
    **dict.fromkeys("gather order_statistics scatter scatter-min scatter-max cummax cummin".split(), _exact_wide),
    **dict.fromkeys("reduce_sum reduce_prod reduce reduce_window_sum reduce_window".split(), _summing),
    **dict.fromkeys("scatter-add scatter-sub scatter-mul".split(), _summing),
    "dot_general": Shaped(least=0, longest=LARGE),  # what is no small product
    "conv_general_dilated": Shaped(least=0, longest=LARGE),
    **dict.fromkeys("cumsum cumprod".split(), Shaped(exact=True, narrow=False, least=2 * SCANNED)),
    **dict.fromkeys("cumlogsumexp symmetric_product".split(), _wide),
    "fft": Shaped(narrow=False, least=1 << 12),
}
LIBRARY = Shaped(narrow=False, least=1 << 12)  # LAPACK's functions, which share larger matrices out among threads


class Whole(NamedTuple):
    """When a function of several operations is one program (see ``whole.py``)."""

    exact: bool = False  # whether it has the bits that it has step by step: then, when a call comes again; else at once
    fixed: bool = False  # whether the program is made for the values of Python's floats, which else are operands of it
    of_numbers: bool = False  # whether a call of operands without axes is one too: from numbers, it makes arrays


# By the names of functions, or of families of them.
_AT_ONCE = """
any_mean any_variance average any_nanmean any_nanvar nanstd accumulate any_nansum trapezoid cov corrcoef sem matmul dot
dot_product_attention softmax log_softmax logsumexp logmeanexp standardize any_vdot convolve correlate convolve2d
correlate2d fftconvolve detrend dct idct cholesky lu_factor lu qr svd hessenberg schur polar eigh tridiagonal
solve cho_solve lu_solve solve_triangular triangular_solve pdf logpdf transform map_coordinates einsum any_norm
vector_norm matrix_norm cond histogram segment_sum segment_prod conv_general_dilated conv_transpose
conv_general_dilated_patches ragged_dot scaled_matmul vecdot tensordot sph_harm_y dctn idctn stft csd welch istft eig
any_det any_slogdet matrix_power upper_factor matvec vecmat qdwh cholesky_update pinv lstsq tensorsolve qr_multiply
eigh_tridiagonal rsf2csf expm expm_frechet funm sqrtm solve_sylvester logpmf polyval_of_many polymul polyfit
"""
_WHEN_REPEATED = """
round_to any_clip isclose allclose heaviside polyval cross elementwise distribution xlogy xlog1py rel_entr kl_div boxcox
boxcox1p gammasgn factorial comb poch multigammaln polygamma fresnel wofz sici any_extremum any_logical any_count
any_nan_extremum any_nan_to_num any_position any_running ptp any_quantile lexsort any_order by_sorting rankdata
any_where packbits unpackbits one_hot unwrap block_diag toeplitz lu_pivots_to_permutation top_k approx_max_k
approx_min_k index_take circulant hankel convolution_matrix companion fiedler fiedler_companion leslie segment_max
segment_min glu ediff1d any_diff any_gradient descending searchsorted digitize isin repeat kron tril triu update get
any_take along mode vander interp polyadd polysub polyder polyint steps_of_polynomials resize nan_arg
partition argpartition sort_complex inverted fftshift ifftshift
"""
_FROM_NUMBERS = "linspace logspace geomspace"
WHOLE = {
    **dict.fromkeys(_AT_ONCE.split(), Whole()),
    "reduce_window": Whole(fixed=True),  # of -inf it is a maximum of its own
    **dict.fromkeys(_WHEN_REPEATED.split(), Whole(exact=True, fixed=True)),
    **dict.fromkeys(_FROM_NUMBERS.split(), Whole(exact=True, fixed=True, of_numbers=True)),
}
