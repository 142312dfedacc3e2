"""More cases: operations on whole arrays, with numbers of dimensions, matrices, loops and branches."""

from functools import partial

import numpy as np
import scipy.linalg

import catena
from catena import lax
from catena.lax.order_statistics import order_statistics
from catena.random.fused import multiply_add
from rule_cases import ALL, COMPLEX, FLOATS, INTS, NUMBERS, case, numbers, one, several, spaced, spaced_pair

LAPACK = ("float64", "float32", "complex128", "complex64")
REAL = ("float64", "float32")
REAL_FLOATS = FLOATS[:4]
RANKS = np.array([[1, 0], [3, 3], [2, 1]], np.int32)

# ---- contractions

CONTRACTED = (((2,), (1,)), ((0,), (0,)))
case(
    "dot_general",
    lambda x, y: lax.dot_general(x, y, CONTRACTED),
    several((-2, 2), (-2, 2), shapes=((2, 3, 4), (2, 4, 5))),
    FLOATS[:4] + COMPLEX + ("int32", "int64", "int8", "bool"),
    None,
    ulps=64,
)
case(
    "dot_general_vectors",
    lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))),
    several((-2, 2), (-2, 2), shapes=((4,), (4,))),
    REAL + COMPLEX,
    lambda x, y: np.dot(x, y),
    ulps=64,
    primitive="dot_general",
)
case(
    "ragged_dot",
    lambda x, y: lax.ragged_dot(x, y, np.array([2, 0, 1], np.int32)),
    several((-2, 2), (-2, 2), shapes=((4, 3), (3, 3, 2))),
    REAL_FLOATS,
    lambda x, y: np.concatenate([x[:2] @ y[0], x[2:3] @ y[2], np.zeros((1, 2))]),
    ulps=64,
    primitive="ragged_dot_general",
)
CONVOLUTIONS = {
    "conv": {"window_strides": (1, 2), "padding": ((1, 0), (0, 2))},
    "conv_dilated": {
        "window_strides": (2, 1),
        "padding": ((2, 1), (1, 1)),
        "lhs_dilation": (1, 2),
        "rhs_dilation": (2, 1),
    },
    "conv_groups": {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 2},
    "conv_batch_groups": {"window_strides": (1, 1), "padding": "VALID", "batch_group_count": 2},
}
for _name, _options in CONVOLUTIONS.items():
    _features = 2 // _options.get("feature_group_count", 1)
    case(
        _name,
        partial(lambda x, w, options: lax.conv_general_dilated(x, w, **options), options=_options),
        several((-2, 2), (-2, 2), shapes=((2, 2, 4, 5), (4, _features, 2, 3))),
        REAL_FLOATS + COMPLEX,
        None,
        ulps=256,
        magnitude=1.0,
        primitive="conv_general_dilated",
    )

# ---- indexing

ROWS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
TO_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
INDICES = np.array([[2], [0], [2]], np.int32)
for _mode in ("clip", "fill"):
    case(
        f"gather_{_mode}",
        lambda x, mode=_mode: lax.gather(x, np.array([[2], [7], [0]], np.int32), ROWS, (1, 4), mode=mode),
        one(),
        ALL if _mode == "clip" else NUMBERS,
        (lambda x: x[[2, 2, 0]]) if _mode == "clip" else None,
        order=2 if _mode == "clip" else 0,  # NaN has no differences
        primitive="gather",
    )
case(
    "gather_indices",
    lambda x, i: lax.gather(x, i, ROWS, (1, 4), mode="clip"),
    lambda rng, d: (numbers(rng, d), rng.integers(0, 3, (2, 1)).astype(np.int32)),
    ("float32",),
    lambda x, i: x[i[:, 0].astype(int)],
    order=0,
    primitive="gather",
)


def added(name, x, y):
    out = np.array(x)
    for (i,), row in zip(INDICES, y, strict=True):
        out[i] = {"scatter-add": np.add, "scatter-sub": np.subtract, "scatter-mul": np.multiply,
                  "scatter-min": np.minimum, "scatter-max": np.maximum}[name](out[i], row)  # fmt: skip
    return out


for _name in ("scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"):
    _extreme = _name.endswith(("min", "max"))
    _fun = getattr(lax, _name.replace("-", "_"))
    case(
        _name,
        lambda x, y, f=_fun: f(x, INDICES, y, TO_ROWS, unique_indices=False),
        spaced_pair,
        (REAL_FLOATS + ("int32", "uint8", "bool")) if _extreme else REAL_FLOATS + COMPLEX + ("int32", "int64"),
        None if not _extreme else partial(added, _name),
        ulps=0 if _extreme else 16,
        order=0 if _name == "scatter-mul" else 2,
    )
case(
    "scatter-max-complex",  # compared by real parts, then by imaginary ones; was wrong when compiled
    lambda x, y: lax.scatter_max(x, INDICES, y, TO_ROWS),
    several((-2, 2), (-2, 2)),
    COMPLEX,
    partial(added, "scatter-max"),
    order=0,
    primitive="scatter-max",
)
UNIQUE = np.array([[2], [0], [1]], np.int32)
case(
    "scatter",
    lambda x, y: lax.scatter(x, UNIQUE, y, TO_ROWS, unique_indices=True),
    several((-2, 2), (-2, 2)),
    ALL,
    lambda x, y: y[[1, 2, 0]],
)
case(
    "scatter-mul-unique",
    lambda x, y: lax.scatter_mul(x, UNIQUE, y, TO_ROWS, unique_indices=True),
    several((-2, 2), (-2, 2)),
    REAL + COMPLEX,
    lambda x, y: x * y[[1, 2, 0]],
    ulps=4,
    primitive="scatter-mul",
)
case(
    "scatter-apply",
    lambda x: lax.scatter_apply(x, UNIQUE, lambda v: v * v, TO_ROWS, update_shape=(3, 4), unique_indices=True),
    one(),
    REAL_FLOATS + COMPLEX,
    lambda x: x * x,
    ulps=4,
)
case(
    "dynamic_slice",
    lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)),
    lambda rng, d: (numbers(rng, d), np.int32(2)),
    ALL,
    lambda x, i: x[1:3, 1:3],
    order=0,
)
case("dynamic_slice_fixed", lambda x: lax.dynamic_slice(x, (1, 5), (2, 3)), one(), REAL + COMPLEX,
     lambda x: x[1:3, 1:4], primitive="dynamic_slice")  # fmt: skip
case(
    "dynamic_update_slice",
    lambda x, y: lax.dynamic_update_slice(x, y, (2, -1)),
    several((-2, 2), (-2, 2), shapes=((3, 4), (2, 1))),
    ALL,
    lambda x, y: np.concatenate([x[:1], np.concatenate([x[1:, :3], y], 1)]),
)

# ---- windows

WINDOW = ((2, 2), (1, 2), ((1, 0), (0, 1)))
SCATTERED = {"window_dimensions": (2, 2), "window_strides": (1, 1), "padding": ((1, 0), (0, 0)),
             "select_consts": (), "scatter_consts": ()}  # fmt: skip
for _name, _fun, _start, _types in (
    ("reduce_window_sum", lax.add, 0, REAL_FLOATS + COMPLEX + ("int32",)),
    ("reduce_window_max", lax.max, -np.inf, REAL_FLOATS),
    ("reduce_window_min", lax.min, np.inf, REAL_FLOATS),
    ("reduce_window", lambda a, b: a * b + a + b, 0, REAL_FLOATS),
):
    case(
        _name,
        lambda x, f=_fun, s=_start: lax.reduce_window(x, s, f, *WINDOW),
        spaced(),
        _types,
        None,
        ulps=32,
    )
case(
    "select_and_scatter_add",
    lambda x: catena.grad(lambda v: (lax.reduce_window(v, -np.inf, lax.max, *WINDOW) ** 2).sum())(x),
    spaced(),
    REAL,
    None,
    ulps=16,
)


def select_and_scatter(x):
    scalar = np.zeros((), x.dtype)
    select, scatter = (catena.make_jaxpr(f)(scalar, scalar).jaxpr for f in (lax.ne, lax.max))
    return lax.select_and_scatter_p.bind(x, x[:, :3], scalar, select_jaxpr=select, scatter_jaxpr=scatter, **SCATTERED)


case(
    "select_and_scatter",
    select_and_scatter,
    spaced(),
    ("float32",),
    None,
    order=0,
)
case(
    "select_and_gather_add",
    lambda x, t: catena.jvp(lambda v: lax.reduce_window(v, -np.inf, lax.max, *WINDOW), (x,), (t,))[1],
    spaced_pair,
    REAL,
    None,
    ulps=16,
    order=0,
)

# ---- orders and transforms

case("sort", lambda x: lax.sort(x, 1), spaced(), ALL, lambda x: np.sort(x, 1))
case("sort_two", lambda x, y: lax.sort((x, y), num_keys=1), spaced_pair, REAL_FLOATS, None, primitive="sort")
case("top_k", lambda x: lax.top_k(x, 2)[0], spaced(), REAL_FLOATS + INTS[:5], lambda x: np.sort(x, 1)[:, :1:-1])
case("top_k_places", lambda x: lax.top_k(x, 2)[1], spaced(), REAL_FLOATS + INTS[:5], None, order=0, primitive="top_k")
case("approx_top_k", lambda x: lax.approx_max_k(x, 2)[0], spaced(), REAL_FLOATS, lambda x: np.sort(x, 1)[:, :1:-1])
case(
    "order_statistics",
    lambda x: order_statistics(x, RANKS),
    spaced(),
    REAL_FLOATS + INTS[:5],
    lambda x: np.take_along_axis(np.sort(x, 1), RANKS, 1),
)
for _kind, _types, _reference in (
    ("FFT", COMPLEX, np.fft.fft),
    ("IFFT", COMPLEX, np.fft.ifft),
    ("RFFT", REAL, np.fft.rfft),
    ("IRFFT", COMPLEX, lambda x: np.fft.irfft(x, 6)),
):
    case(
        f"fft_{_kind}",
        lambda x, k=_kind: lax.fft(x, k, (6,) if k == "IRFFT" else (4,)),
        one(),
        _types,
        _reference,
        ulps=4096,  # of each number, also of those that nearly cancel
        primitive="fft",
    )

# ---- linear algebra: of matrices far from what is singular or has equal eigenvalues


def definite(rng, dtype, n=3):
    x = numbers(rng, dtype, (2, n, n))
    return (np.matmul(x, np.conj(np.swapaxes(x, -1, -2))) + np.diag(np.arange(1, n + 1)).astype(dtype),)


def regular(rng, dtype, n=3):
    return ((numbers(rng, dtype, (2, n, n)) + 4 * np.diag(np.arange(1, n + 1))).astype(dtype),)


def matrix_case(name, fun, make, types=LAPACK, reference=None, **options):
    case(name, fun, make, types, reference, **{"ulps": 512} | options)


matrix_case("cholesky", lax.linalg.cholesky, definite, reference=np.linalg.cholesky)
matrix_case("eigh", lambda x: lax.linalg.eigh(x)[1], definite, reference=np.linalg.eigvalsh)
matrix_case("eig", lambda x: lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0],
            regular, order=0)  # fmt: skip
matrix_case("lu", lambda x: lax.linalg.lu(x)[0], regular)
matrix_case("qr", lambda x: lax.linalg.qr(x, full_matrices=False), regular)
matrix_case("svd", lambda x: lax.linalg.svd(x, compute_uv=False), regular, reference=lambda x: np.linalg.svd(x)[1])
matrix_case("schur", lambda x: lax.linalg.schur(x)[0], definite, order=0, ulps=4096)
matrix_case("hessenberg", lambda x: lax.linalg.hessenberg(x)[0], regular, order=0)
matrix_case("tridiagonal", lambda x: lax.linalg.tridiagonal(x)[1:3], definite, order=0)
matrix_case(
    "triangular_solve",
    lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
    lambda rng, d: (*regular(rng, d), numbers(rng, d, (2, 3, 2))),
    reference=lambda a, b: np.linalg.solve(np.tril(a), b),
)
matrix_case(
    "tridiagonal_solve",
    lambda dl, d, du, b: lax.linalg.tridiagonal_solve(dl, d + 6, du, b),
    several((0.5, 1), (0.5, 1), (0.5, 1), (-1, 1), shapes=((4,), (4,), (4,), (4, 2))),
    reference=lambda dl, d, du, b: scipy.linalg.solve_banded(
        (1, 1), np.stack([np.append(0, du[:-1]), d + 6, np.append(dl[1:], 0)]), b
    ),
)
matrix_case(
    "symmetric_product",
    lambda a: lax.linalg.symmetric_product(a, np.eye(3, dtype=a.dtype), alpha=0.5, beta=2.0),
    one(shape=(3, 2)),
    REAL,
    lambda a: 0.5 * a @ a.T + 2 * np.eye(3),
)
matrix_case(
    "cholesky_update",
    lambda w: lax.linalg.cholesky_update(np.diag(np.array([1, 2, 3], w.dtype)), w),
    one(shape=(3,)),
    REAL,
    lambda w: np.linalg.cholesky(np.diag([1.0, 4.0, 9.0]) + np.outer(w, w)).T,
    order=0,
)
matrix_case(
    "householder_product",
    lambda a: lax.linalg.householder_product(a, np.array([0.5, 0.25], a.dtype)),
    one(shape=(3, 2)),
    order=0,
)
matrix_case(
    "ormqr",
    lambda c: lax.linalg.ormqr(np.arange(6).reshape(3, 2).astype(c.dtype), np.array([0.5, 0.25], c.dtype), c),
    one(shape=(3, 2)),
)
case(
    "lu_pivots_to_permutation",
    lambda p: lax.linalg.lu_pivots_to_permutation(p, 4),
    lambda rng, d: (np.array([2, 1, 3], d),),
    ("int32",),
    lambda p: np.array([2, 1, 3, 0]),
    order=0,
)

# ---- loops, branches and calls

case("scan", lambda c, xs: lax.scan(lambda a, x: (a * x + 1, a), c, xs, unroll=2),
     several((0.5, 1), (0.5, 1), shapes=((4,), (3, 4))), REAL_FLOATS + COMPLEX + ("int32",), None, ulps=64)  # fmt: skip
case("scan_reverse", lambda c, xs: lax.scan(lambda a, x: (a * x + 1, a), c, xs, reverse=True, _split_transpose=True),
     several((0.5, 1), (0.5, 1), shapes=((4,), (3, 4))), REAL, None, ulps=64, primitive="scan")  # fmt: skip
case("while", lambda x: lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1] * v[1]), (0, x))[1],
     one(0.5, 1.2), REAL_FLOATS + COMPLEX, lambda x: x**8, ulps=64, modes=("fwd",), order=0)  # fmt: skip
case("cond", lambda p, x: lax.cond(p, lambda v: v * v, lambda v: -v, x),
     lambda rng, d: (np.bool_(True), numbers(rng, d)), REAL_FLOATS, lambda p, x: x * x, ulps=4, order=0)  # fmt: skip
case("switch", lambda x: lax.switch(1, [lambda v: -v, lambda v: v * v, lambda v: v], x), one(), REAL + COMPLEX,
     lambda x: x * x, ulps=4, primitive="cond")  # fmt: skip
case("custom_linear_solve", lambda b: lax.custom_linear_solve(lambda v: 2 * v, b, lambda mv, r: r / 2, lambda vm, r: r / 2),
     one(), REAL, lambda b: b / 2, ulps=1)  # fmt: skip
case("jit", catena.jit(lambda x: lax.sin(x) * x), one(), REAL_FLOATS + COMPLEX, lambda x: np.sin(x) * x, ulps=16)
case("remat2", catena.checkpoint(lambda x: lax.sin(x) * x), one(), REAL + COMPLEX, lambda x: np.sin(x) * x, ulps=16)

# ---- of other modules

case("multiply_add", multiply_add, several((-2, 2), (-2, 2), (-2, 2)), REAL, lambda x, y, z: x * y + z, ulps=4)
