"""One or more examples of arguments for every public function of ``catena.numpy``, ``.linalg`` and ``.fft``.

Every NumPy array in an example, also within lists and tuples, stands for an array argument: tests put other
objects in its place. Together the examples of a function use each of its array arguments.
"""

import io
import operator
import os

import numpy as np

import catena.numpy as jnp


def c(*args, **kwargs):
    """A call: what a function is given."""
    return args, kwargs


V = np.array([0.3, 0.1, 0.5], np.float32)
W = np.array([2.0, 1.0, 4.0], np.float32)
M = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]], np.float32)
I = np.array([3, 1, 2], np.int32)  # noqa: E741
J = np.array([[0, 1, 2], [2, 1, 0]], np.int32)
B = np.array([True, False, True])
Z = np.array([1 + 2j, 0.5j, 3], np.complex64)
U8 = np.array([[3, 250, 7], [1, 0, 255]], np.uint8)
X3 = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
ONE = np.array(1.0, np.float32)
ZERO = np.array(0.0, np.float32)
EIGHT = np.array(8.0, np.float32)
TWO = np.array(2, np.int32)


def _saved():
    """A file that ``np.save`` wrote."""
    file = io.BytesIO()
    np.save(file, V)
    file.seek(0)
    return file


_FAMILIES = {
    "abs absolute acos arccos arcsin arctan asin asinh atan atanh arcsinh arctanh cbrt ceil conj "
    "conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor frexp i0 imag iscomplex iscomplexobj "
    "isfinite isinf isnan isreal isrealobj isscalar log log10 log1p log2 logical_not modf negative "
    "positive rad2deg radians real reciprocal rint sign signbit sin sinc sinh spacing sqrt square tan "
    "tanh trunc": [c(V)],
    "acosh arccosh": [c(W)],
    "arctan2 atan2 copysign divide divmod equal float_power floor_divide fmax fmin fmod greater "
    "greater_equal heaviside hypot less less_equal logaddexp logaddexp2 maximum minimum mod multiply "
    "nextafter not_equal pow power remainder subtract true_divide add array_equiv inner kron outer "
    "polyadd polymul polysub vdot convolve correlate vecdot linalg.outer linalg.vecdot cross "
    "linalg.cross": [c(V, W)],
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm left_shift right_shift": [
        c(I, TWO)
    ],
    "bitwise_count bitwise_invert bitwise_not invert": [c(I)],
    "logical_and logical_or logical_xor": [c(B, V)],
    "all any": [c(B), c(M, where=M > 1)],
    "amax amin max min": [c(M, axis=1), c(M, axis=0, initial=ONE, where=M > 1)],
    "nanmax nanmin": [c(M, axis=1, initial=ONE, where=M > 1)],
    "argmax argmin argsort argwhere count_nonzero cumprod cumsum cumulative_prod cumulative_sum "
    "diagflat flatnonzero flip median nanargmax nanargmin nancumprod nancumsum nanmedian nonzero ptp "
    "ravel sort sort_complex trim_zeros unwrap array_repr array_str atleast_1d atleast_2d atleast_3d "
    "copy empty_like ones_like zeros_like ix_ meshgrid poly roots shape ndim size polyder vander diag": [c(V)],
    "tril triu fliplr flipud matrix_transpose diag_indices_from diagonal trace transpose rot90 "
    "linalg.cond linalg.det linalg.diagonal linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh "
    "linalg.inv linalg.matrix_norm linalg.matrix_transpose linalg.norm linalg.qr linalg.slogdet "
    "linalg.svd linalg.svdvals linalg.trace linalg.vector_norm linalg.cholesky tril_indices_from "
    "triu_indices_from unstack fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft2 fft.irfft2 fft.rfftn "
    "fft.irfftn": [c(M)],
    "fft.fft fft.hfft fft.ifft fft.irfft fft.fftshift fft.ifftshift": [c(V)],
    "fft.ihfft fft.rfft": [c(V)],
    "mean nanmean": [c(M, axis=1), c(M, where=M > 1)],
    "std var nanstd nanvar": [c(M, axis=1), c(M, where=M > 1, mean=ONE)],
    "sum prod nansum nanprod": [c(M, axis=1), c(M, initial=ONE, where=M > 1)],
    "matvec linalg.solve linalg.lstsq linalg.tensorsolve": [c(M, V)],
    "matmul dot linalg.matmul": [c(M, M)],
    "vecmat": [c(V, M)],
    "tensordot linalg.tensordot": [c(M, M, axes=1)],
    "hsplit vsplit split array_split": [c(M, 3)],
    "column_stack dstack hstack stack vstack concatenate concat": [c([V, W]), c((V, W))],
    "setdiff1d setxor1d union1d intersect1d": [c(I, I[:2]), c(I, I[1:], size=4, fill_value=TWO)],
    "unique unique_all unique_counts unique_inverse unique_values": [c(I), c(I, size=4, fill_value=TWO)],
    "percentile quantile nanpercentile nanquantile": [
        c(W, V),
        c(W, V, method="inverted_cdf", weights=W),
    ],
    "array asarray": [c(V), c([V, W]), c([[ONE, 2.0], [3.0, ONE]])],
}

EXAMPLES = {name: calls for names, calls in _FAMILIES.items() for name in names.split()} | {
    "allclose": [c(V, W, rtol=ONE, atol=ONE)],
    "angle": [c(Z)],
    "append": [c(V, W)],
    "apply_along_axis": [c(lambda row: row * 2, 0, M)],
    "apply_over_axes": [c(lambda a, axis: a.sum(axis, keepdims=True), M, (0,))],
    "arange": [c(np.array(5)), c(np.array(1), np.array(9), np.array(2))],
    "argpartition": [c(V, 1)],
    "around": [c(V, 1)],
    "array_equal": [c(V, W)],
    "astype": [c(V, np.int32)],
    "average": [c(V, weights=W)],
    "bartlett": [c(5)],
    "bincount": [c(I), c(I, weights=V, length=5)],
    "blackman": [c(5)],
    "block": [c([[V, W], [W, V]])],
    "broadcast_arrays": [c(V, ONE)],
    "broadcast_shapes": [c((3, 1), (2,))],
    "broadcast_to": [c(V, (2, 3))],
    "can_cast": [c(np.int32, np.float32), c(V, np.float64)],
    "choose": [c(np.array([0, 1, 0]), [V, W]), c(np.array([0, 1, 0]), M)],
    "clip": [c(V, np.array(0.2), np.array(0.4))],
    "compress": [c(B, V), c(B, V, size=3, fill_value=ONE)],
    "corrcoef": [c(M), c(V, W)],
    "cov": [c(M), c(V, W), c(M, fweights=I, aweights=W)],
    "delete": [c(V, 1), c(V, np.array([0, 2]))],
    "diag_indices": [c(3)],
    "diff": [c(V), c(V, prepend=ONE, append=ONE)],
    "digitize": [c(V, np.array([0.0, 0.2, 0.4], np.float32))],
    "dsplit": [c(X3, 2)],
    "ediff1d": [c(V, ONE, W)],
    "einsum": [c("ij,j->i", M, V), c(M, [0, 1], V, [1], [0])],
    "einsum_path": [c("ij,j->i", M, V), c(M, [0, 1], V, [1], [0])],
    "empty": [c((2, 3))],
    "expand_dims": [c(V, 0)],
    "extract": [c(B, V), c(B, V, size=3, fill_value=ONE)],
    "eye": [c(3), c(3, 4, np.array(1))],
    "fft.fftfreq": [c(5), c(5, ONE)],
    "fft.rfftfreq": [c(5), c(5, ONE)],
    "fill_diagonal": [c(M, ONE, inplace=False)],
    "from_dlpack": [c(jnp.arange(3.0))],
    "frombuffer": [c(b"abcd", np.uint8)],
    "fromfile": [c(os.devnull, np.float32)],
    "fromfunction": [c(operator.add, (2, 3))],
    "fromiter": [c(range(3), np.int32)],
    "frompyfunc": [c(operator.add, 2, 1)],
    "fromstring": [c("1 2", sep=" ")],
    "full": [c((3,), ONE)],
    "full_like": [c(V, ONE)],
    "geomspace": [c(ONE, EIGHT, 4)],
    "get_printoptions": [c()],
    "gradient": [c(V), c(M, ONE, W), c(V, W)],
    "hamming": [c(5)],
    "hanning": [c(5)],
    "histogram": [c(V), c(V, np.array([0.0, 0.2, 1.0], np.float32), weights=W), c(V, 4, (ZERO, ONE))],
    "histogram2d": [c(V, W), c(V, W, 3, weights=W)],
    "histogram_bin_edges": [c(V), c(V, np.array([0.0, 1.0])), c(V, 4, (ZERO, ONE), weights=W)],
    "histogramdd": [c(M, 3, weights=W)],
    "identity": [c(3)],
    "indices": [c((2, 3))],
    "insert": [c(V, 1, W), c(V, np.array([0, 2]), ONE)],
    "interp": [c(V, W, V), c(V, np.sort(W), V, ONE, ONE), c(V, np.sort(W), V, period=ONE)],
    "isclose": [c(V, W, ONE, ONE)],
    "isdtype": [c(np.dtype("int32"), "integral")],
    "isin": [c(I, J)],
    "isneginf": [c(V)],
    "isposinf": [c(V)],
    "issubdtype": [c(np.int32, np.integer)],
    "iterable": [c([1, 2])],
    "kaiser": [c(5, ONE)],
    "ldexp": [c(V, I)],
    "lexsort": [c([V, W]), c(M)],
    "linalg.matrix_power": [c(M, 3)],
    "linalg.matrix_rank": [c(M), c(M, ONE), c(M, tol=ONE)],
    "linalg.multi_dot": [c([V, M, M])],
    "linalg.pinv": [c(M), c(M, np.array(1e-4)), c(M, rcond=np.array(1e-4))],
    "linalg.tensorinv": [c(X3.reshape(4, 2) @ np.ones((2, 4), np.float32) + np.eye(4, dtype=np.float32), 1)],
    "linspace": [c(ONE, EIGHT, 5), c(V, W, 4)],
    "load": [c(_saved())],
    "logspace": [c(ONE, EIGHT, 5, base=TWO)],
    "mask_indices": [c(3, np.triu)],
    "moveaxis": [c(M, 0, 1)],
    "nan_to_num": [c(V, nan=ONE, posinf=ONE, neginf=ONE)],
    "ones": [c(3)],
    "packbits": [c(U8)],
    "permute_dims": [c(M, (1, 0))],
    "pad": [c(V, 2), c(V, 1, constant_values=ONE)],
    "partition": [c(V, 1)],
    "piecewise": [c(V, [B, ~B], [1.0, lambda x: 2 * x]), c(V, [B], [ONE, 2.0])],
    "place": [c(V, B, W, inplace=False)],
    "polydiv": [c(W, V)],
    "polyfit": [c(W, V, 1), c(W, V, 1, w=V)],
    "polyint": [c(V), c(V, 1, k=ONE)],
    "polyval": [c(V, W)],
    "printoptions": [c(precision=3)],
    "promote_types": [c(np.int32, np.float32)],
    "put": [c(V, np.array([0, 2]), W[:2], inplace=False)],
    "put_along_axis": [c(V, I - 1, W, 0, inplace=False)],
    "ravel_multi_index": [c((J[0], J[1]), (3, 3))],
    "repeat": [c(V, 2), c(V, I)],
    "reshape": [c(V, (3, 1))],
    "resize": [c(V, (2, 4))],
    "result_type": [c(V, I)],
    "roll": [c(V, 1), c(V, np.array(1)), c(M, (np.array(1), np.array(2)), (0, 1))],
    "rollaxis": [c(M, 1)],
    "round": [c(V, 1)],
    "save": [c(os.devnull, V)],
    "savez": [c(os.devnull, V, w=W)],
    "searchsorted": [c(np.sort(W), V), c(W, V, sorter=np.argsort(W))],
    "select": [c([B, ~B], [V, W], ONE)],
    "set_printoptions": [c(precision=8)],
    "squeeze": [c(V[None])],
    "swapaxes": [c(M, 0, 1)],
    "take": [c(V, np.array([0, 2])), c(V, 0)],
    "take_along_axis": [c(V, I - 1, 0)],
    "tile": [c(V, (2, 2))],
    "trapezoid": [c(V), c(V, W), c(V, dx=ONE)],
    "tri": [c(3)],
    "tril_indices": [c(3)],
    "triu_indices": [c(3)],
    "unpackbits": [c(U8)],
    "unravel_index": [c(I, (3, 3))],
    "unwrap": [c(V), c(V, ONE, period=ONE)],
    "vectorize": [c(operator.add)],
    "where": [c(B, V, W), c(B)],
    "zeros": [c(3)],
}
