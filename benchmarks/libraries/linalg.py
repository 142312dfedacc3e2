"""scipy.linalg beside JAX: expressions, their operands, and the differences that are meant."""

import numpy as np


def _matrix(rng, n=4, dtype="float64"):
    return (rng.normal(size=(n, n)) + n * np.eye(n)).astype(dtype)


def _complex(rng, *shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def _positive(rng, n=4, complex_=False):
    x = _complex(rng, n, n) if complex_ else rng.normal(size=(n, n))
    return x @ x.conj().T + n * np.eye(n, dtype=x.dtype)


OPERANDS = {  # narrowed where x64 is off; where it is on, "m", "mc" and "e" are still of 32 bits
    "a": _matrix,
    "a2": lambda rng: rng.normal(size=(4, 4)),
    "a1": lambda rng: _matrix(rng, 1),
    "a0": lambda rng: np.zeros((0, 0)),
    "big": lambda rng: 30 * rng.normal(size=(4, 4)),
    "small": lambda rng: 0.01 * rng.normal(size=(4, 4)),
    "batch": lambda rng: rng.normal(size=(3, 4, 4)) + 4 * np.eye(4),
    "batch2": lambda rng: rng.normal(size=(2, 3, 4, 4)) + 4 * np.eye(4),
    "p": _positive,
    "pc": lambda rng: _positive(rng, complex_=True),
    "pb": lambda rng: np.stack([_positive(rng) for _ in range(3)]),
    "c": lambda rng: _complex(rng, 4, 4) + 4 * np.eye(4),
    "cb": lambda rng: _complex(rng, 3, 4, 4) + 4 * np.eye(4),
    "i": lambda rng: (rng.integers(-3, 4, (4, 4)) + 8 * np.eye(4)).astype("int32"),
    "ip": lambda rng: (np.eye(4) * 5 + 1).astype("int32"),
    "boolean": lambda rng: np.eye(4, dtype=bool),
    "h": lambda rng: _matrix(rng, dtype="float16"),
    "tall": lambda rng: rng.normal(size=(5, 3)),
    "wide": lambda rng: rng.normal(size=(3, 5)),
    "tallc": lambda rng: _complex(rng, 5, 3),
    "tallb": lambda rng: rng.normal(size=(2, 5, 3)),
    "empty": lambda rng: np.zeros((0, 3)),
    "v": lambda rng: rng.normal(size=4),
    "v3": lambda rng: rng.normal(size=3),
    "v5": lambda rng: rng.normal(size=5),
    "vc": lambda rng: _complex(rng, 4),
    "vi": lambda rng: rng.integers(1, 9, 4).astype("int32"),
    "v0": lambda rng: np.zeros(0),
    "v1": lambda rng: rng.normal(size=1),
    "vb": lambda rng: np.ones(3, bool),
    "s": lambda rng: np.float64(2.0),
    "m": lambda rng: rng.normal(size=(4, 2)).astype("float32"),
    "mb": lambda rng: rng.normal(size=(3, 4, 2)),
    "mc": lambda rng: _complex(rng, 4, 2).astype("complex64"),
    "mi": lambda rng: rng.integers(-5, 5, (4, 2)).astype("int32"),
    "rows": lambda rng: rng.normal(size=(2, 3)),
    "b3": lambda rng: _matrix(rng, 3),
    "c43": lambda rng: rng.normal(size=(4, 3)),
    "upper": lambda rng: np.triu(_matrix(rng)),
    "nan": lambda rng: np.full((4, 4), np.nan),
    "singular": lambda rng: np.ones((4, 4)),
    "zero": lambda rng: np.zeros((4, 4)),
    "d": lambda rng: rng.normal(size=6),
    "e": lambda rng: rng.normal(size=5).astype("float32"),
    "dd": lambda rng: rng.normal(size=6),
    "ee": lambda rng: rng.normal(size=5),
    "ez": lambda rng: np.array([1.0, 0, 2, 0, 0]),
}

_L = "jsp.linalg."
_SQUARE = ("a", "a1", "a0", "batch", "batch2", "c", "cb", "i", "h", "boolean", "singular", "nan")
_WRONG = ("tall", "wide", "v", "s", "1.0", "[[1.0]]", "None", "'x'", "empty")
_ANY = ("a", "a1", "a0", "tall", "wide", "tallc", "tallb", "empty", "batch2", "c", "i", "h", "v", "s", "[[1.0]]")

# What depends on the signs and phases that LAPACK chose, or on its choice of order, is compared by what it means.
CASES = [
    # block_diag
    *[
        f"{_L}block_diag({x})"
        for x in (
            "",
            "a",
            "a, tall",
            "v",
            "v, a",
            "s, s",
            "1, 2.0",
            "1, 2",
            "i, a",
            "i, boolean",
            "c, a",
            "a, empty",
            "h, i",
            "h, a",
            "batch",
            "a, batch",
            "[[1.0]]",
            "[1, 2], [3]",
            "v0",
            "np.array([[1, 2]]), 3",
            "None",
            "1.0",
            "1",
            "True, 2",
        )
    ],
    # factorisations
    *[
        f"{_L}cholesky({x}{k})"
        for x in ("p", "pc", "pb", "ip", "boolean", "h", "nan", "zero", "a0", *_WRONG)
        for k in ("", ", lower=True")
    ],
    f"{_L}cholesky(p, True, True, False)",
    f"{_L}cholesky(upper.T @ upper)",
    *[f"{_L}cho_factor({x}{k})" for x in ("p", "pc", "pb", "ip", "nan", "v") for k in ("", ", lower=True")],
    *[
        f"{_L}cho_solve(({_L}cholesky({x}, lower={lower}), {lower}), {b})"
        for x, b in (
            ("p", "v"),
            ("p", "m"),
            ("p", "mc"),
            ("p", "mi"),
            ("pc", "m"),
            ("pc", "vc"),
            ("ip", "vi"),
            ("pb", "mb"),
            ("pb", "m"),
            ("pb", "v"),
            ("p", "mb"),
            ("p", "v3"),
            ("p", "s"),
            ("p", "rows"),
            ("p", "[1.0]"),
            ("pb", "v3"),
        )
        for lower in (True, False)
    ],
    f"{_L}cho_solve((tall, True), v)",
    f"{_L}cho_solve((p, 'x'), v)",
    f"{_L}cho_solve(p, v)",
    *[f"{_L}det({x})" for x in (*_SQUARE, *_WRONG)],
    *[f"{_L}inv({x})" for x in (*_SQUARE, *_WRONG)],
    *[f"{_L}svd({x}, compute_uv=False)" for x in (*_ANY, "nan")],
    *[f"[y.shape for y in {_L}svd({x}, full_matrices={f})]" for x in _ANY for f in (True, False)],
    f"{_L}svd(a, lapack_driver='gesvd', compute_uv=False)",
    f"{_L}svd(a, lapack_driver='other', compute_uv=False)",
    f"{_L}svd(a, True, False, True, False)",
    *[f"{_L}lu({x})" for x in _ANY],
    *[f"{_L}lu({x}, permute_l=True)" for x in ("a", "tall", "wide", "c", "i", "batch", "v")],
    *[f"{_L}lu_factor({x})" for x in _ANY],
    *[
        f"{_L}lu_solve({_L}lu_factor({x}), {b}, trans={t})"
        for x, b in (
            ("a", "v"),
            ("a", "m"),
            ("a", "mc"),
            ("a", "mi"),
            ("c", "m"),
            ("c", "vc"),
            ("i", "vi"),
            ("batch", "mb"),
            ("a", "v3"),
            ("a", "rows"),
            ("a", "s"),
            ("batch", "m"),
            ("batch", "v"),
            ("a", "mb"),
            ("tall", "v5"),
            ("batch", "v3"),
        )
        for t in (0, 1, 2)
    ],
    f"{_L}lu_solve({_L}lu_factor(a), v, 3)",
    f"{_L}lu_solve({_L}lu_factor(a), v, 'T')",
    *[f"{_L}qr({x}, mode='r')" for x in ("a1", "a0", "empty")],
    *[f"[y.shape for y in {_L}qr({x}, mode={m!r})]" for x in _ANY for m in ("full", "r", "economic", "raw", "other")],
    *[
        f"[y.shape for y in {_L}qr({x}, mode={m!r}, pivoting=True)]"
        for x in _ANY
        for m in ("full", "r", "economic", "raw")
    ],
    *[f"{_L}qr({x}, pivoting=True)[2]" for x in ("a", "tall", "wide", "c", "tallb")],
    *[f"abs({_L}qr({x}, mode='r')[0])" for x in ("a", "tall", "wide", "c", "tallb", "i")],
    f"{_L}qr(a, lwork=3)[1].shape",
    *[
        f"[(y.shape, y.dtype) for y in {_L}qr_multiply({x}, {c}, mode={m!r}{k})]"
        for x in ("tall", "a", "wide", "tallc")
        for c in ("tall", "tall.T", "a", "v", "v3", "v5", "wide", "tallc", "rows", "s", "tallb", "v0")
        for m in ("left", "right")
        for k in ("", ", pivoting=True", ", conjugate=True")
    ],
    f"{_L}qr_multiply(tall, v5, mode='both')",
    f"{_L}qr_multiply(v, v)",
    # eigenvalues
    *[
        f"{_L}eigh({x}, eigvals_only=True)"
        for x in ("p", "pc", "pb", "ip", "boolean", "h", "nan", "zero", "a0", "a", "a.T", *_WRONG)
    ],
    f"{_L}eigh(upper, lower=False, eigvals_only=True)",
    f"{_L}eigh(upper, lower=True, eigvals_only=True)",
    *[f"[(y.shape, y.dtype) for y in {_L}eigh({x})]" for x in ("p", "pc", "pb", "ip", "h", "a0")],
    f"{_L}eigh(p, p, eigvals_only=True)",
    f"{_L}eigh(p, a, eigvals_only=True)",
    *[f"{_L}eigh(a + a.T, p, eigvals_only=True, type={t})" for t in (1, 2, 3, 4)],
    *[
        f"{_L}eigh(p, eigvals_only=True, {k})"
        for k in (
            "type=2",
            "type=3",
            "type=4",
            "eigvals=(0, 1)",
            "turbo=False",
            "overwrite_a=True",
            "check_finite=False",
        )
    ],
    *[
        f"{_L}eigh_tridiagonal({d}, {e}, eigvals_only=True{k})"
        for d, e in (
            ("d", "e"),
            ("d", "ez"),
            ("dd", "ee"),
            ("vi", "vi[:3]"),
            ("v1", "v0"),
            ("v0", "v0"),
            ("vc.real", "vc[:3]"),
            ("d.astype('float16')", "e.astype('float16')"),
        )
        for k in (
            "",
            ", select='i', select_range=(1, 3)",
            ", select='v', select_range=(-0.5, 1.0)",
            ", select='a', select_range=(1, 3)",
        )
    ],
    *[
        f"{_L}eigh_tridiagonal(d, e, eigvals_only=True, {k})"
        for k in (
            "select='x'",
            "select='i'",
            "select='v'",
            "select='i', select_range=(3, 1)",
            "select='i', select_range=(0, 9)",
            "select='i', select_range=(-1, 3)",
            "select='i', select_range=(0, 5)",
            "select='v', select_range=(2, 1)",
            "select='v', select_range=(50, 51)",
            "select='i', select_range=(1,)",
            "tol=0.1",
            "tol=0.0",
            "tol=-1.0",
            "select='i', select_range=(0.5, 3)",
        )
    ],
    f"{_L}eigh_tridiagonal(d, e)[0]",
    f"{_L}eigh_tridiagonal(d, ez)[0]",
    f"{_L}eigh_tridiagonal(d, e, select='i', select_range=(1, 2))[0]",
    f"{_L}eigh_tridiagonal(d, e, select='v', select_range=(-1, 1))[0]",
    f"abs({_L}eigh_tridiagonal(d, e)[1])",
    f"[(y.shape, y.dtype) for y in {_L}eigh_tridiagonal(vi, vi[:3])]",
    f"{_L}eigh_tridiagonal(d, d, eigvals_only=True)",
    f"{_L}eigh_tridiagonal(a, e, eigvals_only=True)",
    f"{_L}eigh_tridiagonal(s, v0, eigvals_only=True)",
    f"{_L}eigh_tridiagonal(d, [1.0], eigvals_only=True)",
    *[
        f"[(y.shape, y.dtype) for y in {_L}schur({x}{k})]"
        for x in (*_SQUARE, *_WRONG)
        for k in ("", ", output='complex'")
    ],
    f"{_L}schur(a, output='other')",
    f"{_L}schur(a, output='r')",
    f"{_L}schur(a, 'c')",
    *[f"{_L}hessenberg({x})" for x in (*_SQUARE, *_WRONG)],
    *[f"{_L}hessenberg({x}, calc_q=True)" for x in ("a", "a1", "c", "i", "batch", "a0")],
    f"{_L}hessenberg(a, overwrite_a=True, check_finite=False)",
    *[
        f"[(y.shape, y.dtype) for y in {_L}rsf2csf({x}, {z})]"
        for x, z in (
            ("a", "a"),
            ("c", "c"),
            ("a", "c"),
            ("i", "i"),
            ("h", "h"),
            ("a1", "a1"),
            ("a0", "a0"),
            ("a", "b3"),
            ("tall", "tall"),
            ("batch", "batch"),
            ("v", "v"),
            ("a", "[1.0]"),
        )
    ],
    f"jnp.sort(abs(jnp.diag({_L}rsf2csf(*{_L}schur(a2))[0])))",
    *[
        f"{_L}polar({x}{k})"
        for x in ("a", "a1", "tall", "wide", "tallc", "c", "i", "h", "a2", "nan")
        for k in ("", ", side='left'", ", method='svd'", ", side='left', method='svd'")
    ],
    *[f"{_L}polar({x})" for x in ("batch", "v", "s", "empty", "a0", "[[1.0]]")],
    *[
        f"{_L}polar(a, {k})"
        for k in ("side='both'", "method='other'", "eps=1e-3", "max_iterations=2", "max_iterations=0", "'left'")
    ],
    f"{_L}polar(batch, method='svd')",
    # systems
    *[
        f"{_L}solve({x}, {b}{k})"
        for x, b in (
            ("p", "v"),
            ("p", "m"),
            ("p", "mc"),
            ("p", "mi"),
            ("pc", "m"),
            ("pc", "vc"),
            ("ip", "vi"),
            ("pb", "mb"),
            ("a", "v"),
            ("pb", "m"),
            ("pb", "v"),
            ("p", "mb"),
            ("p", "v3"),
            ("p", "s"),
            ("p", "rows"),
            ("p", "[1.0]"),
            ("tall", "v5"),
            ("h", "v"),
            ("a0", "v0"),
            ("pb", "v3"),
        )
        for k in ("", ", assume_a='pos'", ", assume_a='sym'", ", lower=True, assume_a='pos'")
    ],
    *[
        f"{_L}solve(p, v, assume_a={k!r})"
        for k in (
            "her",
            "hermitian",
            "positive definite",
            "symmetric",
            "general",
            "diagonal",
            "tridiagonal",
            "banded",
            "upper triangular",
            "lower triangular",
            "other",
            3,
        )
    ],
    f"{_L}solve(p, v, debug=True)",
    f"{_L}solve(p, v, True, True, True, False, False, 'gen')",
    *[
        f"{_L}solve_triangular({x}, {b}, trans={t!r}, lower={lower})"
        for x, b in (
            ("a", "v"),
            ("a", "m"),
            ("a", "mc"),
            ("a", "mi"),
            ("c", "m"),
            ("c", "vc"),
            ("i", "vi"),
            ("batch", "mb"),
            ("batch", "m"),
            ("batch", "v"),
            ("a", "mb"),
            ("a", "v3"),
            ("a", "s"),
            ("a", "rows"),
            ("tall", "v5"),
            ("h", "v"),
            ("a", "[1.0]"),
            ("a0", "v0"),
            ("batch", "v3"),
        )
        for t in (0, 1, 2)
        for lower in (True, False)
    ],
    *[f"{_L}solve_triangular(c, vc, trans={t!r}, unit_diagonal=True)" for t in ("N", "T", "C", "X", 3, None)],
    f"{_L}solve_triangular(singular * 0, v)",
    f"{_L}solve_triangular(a, v, debug=True)",
    *[
        f"{_L}solve_sylvester({x}, {y}, {z}{k})"
        for x, y, z in (
            ("a", "b3", "c43"),
            ("c", "b3", "c43"),
            ("i", "b3", "c43"),
            ("a1", "a1", "a1"),
            ("a", "a", "a2"),
            ("a", "a", "a"),
            ("a0", "a0", "a0"),
            ("a0", "b3", "empty"),
            ("h", "h", "h"),
            ("a", "-a", "a"),
            ("zero", "zero", "a"),
            ("nan", "b3", "c43"),
            ("a", "b3", "a"),
            ("tall", "b3", "c43"),
            ("a", "tall", "c43"),
            ("v", "b3", "c43"),
            ("batch", "batch", "batch"),
            ("a", "b3", "[1.0]"),
            ("s", "s", "s"),
            ("2.0", "3.0", "4.0"),
        )
        for k in ("", ", method='eigen'")
    ],
    f"{_L}solve_sylvester(a, b3, c43, method='other')",
    f"{_L}solve_sylvester(a, b3, c43, tol=1e-3)",
    f"{_L}solve_sylvester(a, b3, c43, method='eigen', tol=1e-3)",
    f"{_L}solve_sylvester(a, b3, c43, method='eigen', tol=1e3)",
    # functions of matrices
    *[
        f"{_L}expm({x}{k})"
        for x in (*_SQUARE, "a2", "big", "small", "zero", "upper", *_WRONG)
        for k in ("", ", upper_triangular=True")
    ],
    *[f"{_L}expm({x}, max_squarings={k})" for x in ("a", "big", "small") for k in (0, 1, 3, 5, 16, 40)],
    *[f"{_L}expm(a2 * {k}, max_squarings=3)" for k in (1.0, 3.0, 5.0, 7.0, 9.0, 12.0, 16.0)],
    f"{_L}expm(a, 2)",
    f"{_L}expm(a, max_squarings=-1)",
    f"{_L}expm(a, max_squarings=2.5)",
    *[
        f"{_L}expm_frechet({x}, {y}{k})"
        for x, y in (
            ("a", "a2"),
            ("c", "a2"),
            ("a2", "c"),
            ("i", "i"),
            ("a1", "a1"),
            ("small", "a2"),
            ("big", "small"),
            ("a0", "a0"),
            ("h", "h"),
            ("batch", "batch"),
            ("a", "b3"),
            ("tall", "tall"),
            ("v", "v"),
            ("a", "[1.0]"),
            ("a", "s"),
            ("zero", "a2"),
            ("batch", "a"),
            ("boolean", "i"),
        )
        for k in ("", ", compute_expm=False", ", method='blockEnlarge'", ", method='SPS'", ", method='other'")
    ],
    *[
        f"{_L}sqrtm({x})"
        for x in ("p", "pc", "a", "a1", "c", "i", "h", "upper", "zero", "a0", "batch", "pb", "nan", *_WRONG)
    ],
    *[f"{_L}sqrtm(p, {k})" for k in (1, 2, 3, 64, 0, -1)],
    *[
        f"{_L}funm({x}, {f})"
        for x in ("p", "a1", "c", "i", "h", "upper", "a0", "batch", "pb", *_WRONG)
        for f in ("jnp.exp", "jnp.sin", "lambda x: x * x")
    ],
    *[
        f"{_L}funm(a, {f}{k})"
        for f in ("jnp.exp", "lambda x: jnp.ones(3)", "lambda x: 1.0", "lambda x: jnp.sum(x)", "None")
        for k in ("", ", disp=False")
    ],
    # structured matrices
    *[
        f"{_L}{f}({x})"
        for f in ("circulant", "companion", "fiedler", "fiedler_companion", "toeplitz", "hankel")
        for x in (
            "v",
            "v3",
            "v1",
            "v0",
            "vc",
            "vi",
            "vb",
            "s",
            "2.0",
            "a",
            "rows",
            "batch",
            "[1.0]",
            "v.astype('float16')",
            "zero[0]",
        )
    ],
    *[
        f"{_L}{f}({x}, {y})"
        for f in ("toeplitz", "hankel")
        for x, y in (
            ("v", "v3"),
            ("vc", "v"),
            ("vi", "v"),
            ("v", "v0"),
            ("v0", "v"),
            ("rows", "v"),
            ("rows", "rows"),
            ("v", "s"),
            ("s", "v"),
            ("1.0", "2.0"),
            ("v", "[1.0]"),
            ("vi", "vb"),
            ("batch", "rows"),
        )
    ],
    *[
        f"{_L}leslie({x}, {y})"
        for x, y in (
            ("v", "v3"),
            ("vi", "v3"),
            ("vi", "vi[:3]"),
            ("vc", "v3"),
            ("v", "v"),
            ("v1", "v0"),
            ("v0", "v0"),
            ("s", "s"),
            ("a", "v3"),
            ("a", "c43"),
            ("[1.0]", "v0"),
            ("batch[0]", "c43"),
            ("v", "vb"),
        )
    ],
    *[
        f"{_L}convolution_matrix({x}, {n}{k})"
        for x, n in (
            ("v", 3),
            ("v", 6),
            ("v", 1),
            ("vc", 3),
            ("vi", 4),
            ("v", 0),
            ("v", -1),
            ("v", 2.5),
            ("v0", 3),
            ("a", 3),
            ("s", 3),
            ("[1.0]", 3),
            ("v1", 1),
            ("batch", 5),
        )
        for k in ("", ", 'same'", ", 'valid'", ", mode='other'")
    ],
    *[
        f"{_L}{f}({n})"
        for f in ("hilbert", "invhilbert", "helmert", "pascal", "invpascal", "dft")
        for n in (0, 1, 2, 5, 12, -1, 2.0, 2.5, "None", "jnp.array(3)", "True", "v")
    ],
    *[f"{_L}hadamard({n})" for n in (0, 1, 2, 4, 8, 3, -2, 2.0, "None")],
    *[f"{_L}hadamard(4, {t})" for t in ("'float32'", "complex", "bool", "'int8'", "jnp.bfloat16", "'x'")],
    *[
        f"{_L}dft(5, {k})"
        for k in (
            "'sqrtn'",
            "'n'",
            "'x'",
            "None",
            "dtype='complex64'",
            "dtype='complex128'",
            "dtype='float32'",
            "dtype='int32'",
        )
    ],
    *[f"{_L}{f}(5, {k!r})" for f in ("pascal", "invpascal") for k in ("symmetric", "lower", "upper", None, "x", 3)],
    *[f"{_L}{f}({n})" for f in ("pascal", "invhilbert", "invpascal", "hilbert") for n in (18, 20, 25, 40)],
    f"{_L}helmert(5, True)",
    f"{_L}helmert(1, full=True)",
    f"{_L}helmert(0, full=True)",
]

GRADIENTS = [
    *[
        f"{_L}{f}"
        for f in ("cholesky(p)", "cholesky(pc, lower=True)", "det(a)", "det(c)", "inv(a)", "inv(c)", "block_diag(a, v)")
    ],
    *[
        f"{_L}{f}"
        for f in (
            "cho_solve((p, True), v)",
            "cho_solve((pc, False), m)",
            "lu_factor(a)[0]",
            "lu(tall)[1]",
            "lu(wide)[2]",
        )
    ],
    *[
        f"{_L}{f}"
        for f in (
            "solve(a, v)",
            "solve(p, m, assume_a='pos')",
            "solve_triangular(a, v, 'T')",
            "solve_triangular(c, vc, 'C')",
        )
    ],
    *[
        f"{_L}{f}"
        for f in (
            "expm(a)",
            "expm(c)",
            "expm(zero)",
            "expm(small)",
            "expm(batch)",
            "expm(upper, upper_triangular=True)",
        )
    ],
    *[f"{_L}{f}" for f in ("expm_frechet(a, a2)[1]", "eigh(p, eigvals_only=True)", "svd(tall, compute_uv=False)")],
    *[
        f"{_L}{f}"
        for f in (
            "circulant(v)",
            "toeplitz(v, v3)",
            "toeplitz(vc)",
            "hankel(v)",
            "leslie(v, v3)",
            "fiedler(v)",
            "companion(v)",
        )
    ],
    *[
        f"{_L}{f}"
        for f in (
            "fiedler_companion(v)",
            "convolution_matrix(v, 3)",
            "polar(tall, method='svd')[1]",
            "qr_multiply(a, v)[1]",
        )
    ],
    *[f"{_L}{f}" for f in ("rsf2csf(upper, a)[0]",)],
    f"{_L}solve_sylvester(np.eye(4) * 3, np.eye(3), c43)",
]

VALUES = r"(?s)^returns (\S+) .*\| returns \1 "  # of one dtype and shape, weak neither: only values differ
EXPLAINED = [
    (
        r"^jit \[.* for y in jsp.linalg.(svd|qr|eigh|schur)\(h\b",
        r"NotImplementedError: \w+ does not accept dtype float16.*\| (returns int(32|64)|TypeError: function function)",
        "half precision is refused where it is traced; JAX refuses it where it is compiled, if it is used",
    ),
    (r"grad \w+ .*qr_multiply", "NotImplementedError", "it is differentiated as qr is"),
    (r"grad \w+ .*expm_frechet", VALUES, "JAX scales less, and is exact to three digits"),
    (r"grad upper .*rsf2csf", VALUES, "a real form that has no blocks is not rotated"),
    (r"qr_multiply\(\w+, s,", "ValueError.*IndexError", "a scalar is refused by name"),
    (r"qr_multiply\(wide, tallb", "", "the factors are not repeated for a stack of c"),
    (r"eigh_tridiagonal.*select='v'", "", "select='v' is there where values are known"),
    (r"eigh_tridiagonal.*select_range=", "", "indices out of range and no integers are refused"),
    (r"eigh_tridiagonal\(s", "ValueError.*IndexError", "a scalar is refused by name"),
    (r"eigh_tridiagonal.*tol=0.1", VALUES, "eigenvalues are known to the tolerance in both"),
    (
        r"\[\[1.0\]\]|\[1.0\]",
        r"^returns.*\| (Type|Attribute|TracerArrayConversion)Error",
        "lists are taken by every function that takes some",
    ),
    (
        r"^jit \[.*rsf2csf\(a0, a0\)",
        r"\| IndexError",
        "JAX does not take empty matrices; their dtypes are no result of jit",
    ),
    (
        r"^jit \[.*schur\(\[\[1.0\]\], output",
        r"\| AttributeError: 'list'",
        "JAX takes no lists; dtypes are no result of jit",
    ),
    (r"^jit .*fiedler_companion\(2.0\)", r"\| returns float\d+\[0, 0\] weak \[\]$", "JAX's is not weak eagerly"),
    (r"None\)?", "Error", "None is a ValueError everywhere, as in jnp.asarray"),
    (r"hessenberg\((s|1.0)\)", "TypeError.*IndexError", "a scalar is refused by name"),
    (r"\((a0|empty)|empty\)", r"^returns.*\| ", "JAX does not take empty matrices here"),
    (r"polar", "NotImplementedError|TypeError|ValueError", "every shape, side, dtype and eps is taken"),
    (r"polar.*max_iterations", "", "iterations are planned for the most singular of matrices"),
    (r"solve\((pb|p), \w+(, lower=True)?, assume_a='pos'\)", "ValueError", "stacks broadcast for every assume_a"),
    (r"solve_sylvester\(h", "NotImplementedError", "half precision is computed in complex64"),
    (r"expm\(\w+, upper_triangular=True", VALUES, "matrices that are not: the promise is broken"),
    (r"expm_frechet.*method='other'", "ValueError", "an unknown method is refused"),
    (r"sqrtm\(p, \d", "NotImplementedError", "blocksize has no meaning"),
    (r"(hilbert|helmert|pascal|dft)\((2.0|2.5|jnp.array\(3\)|True|v)\)", "", "sizes are integers, and what is one"),
    (r"(invhilbert|invpascal|pascal|dft)\(", VALUES, "rounded from double precision"),
]

SLOPES_EXPLAINED = [
    (r"cholesky\(h|assume_a='pos'|rsf2csf\(upper", "matrices that are not of the kind that is asked for: half is read"),
    (r"solve_sylvester\(batch", "zero, but for 1e-12"),
    (r"tol=0\.1", "eigenvalues that are known to 0.1"),
]
