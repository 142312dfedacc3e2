"""``catena.numpy.linalg`` and ``catena.numpy.fft`` against NumPy: eagerly, compiled, mapped,
differentiated.
"""

import numpy
import pytest

import catena
import catena.numpy as jnp
from checkers import check_jvp
from numpy_cases import check_gradient, check_values

RNG = numpy.random.default_rng(3)


def matrices(*shape, dtype=numpy.float32) -> numpy.ndarray:
    x = RNG.normal(size=shape)
    if numpy.dtype(dtype).kind == "c":
        x = x + 1j * RNG.normal(size=shape)
    return x.astype(dtype)


def positive(*shape, dtype=numpy.float32) -> numpy.ndarray:
    x = matrices(*shape, dtype=dtype)
    return (x @ x.conj().swapaxes(-1, -2) + shape[-1] * numpy.eye(shape[-1])).astype(dtype)


A = matrices(5, 5) + 3 * numpy.eye(5, dtype=numpy.float32)
STACK = matrices(2, 4, 4)
WIDE, TALL = matrices(3, 5), matrices(5, 3)
Z = matrices(4, 4, dtype=numpy.complex64)
P, PZ = positive(4, 4), positive(4, 4, dtype=numpy.complex64)
V = matrices(5)
PAIR = numpy.float32([[1, 2], [3, 4]])

# (call, arrays, also differentiate)
CASES = [
    (lambda np, a: np.linalg.cholesky((a + a.swapaxes(-1, -2)) / 2), [P], True),
    (lambda np, a: np.linalg.cholesky(a), [PZ], False),
    (lambda np, a: np.linalg.cholesky(a, upper=True), [P], False),
    (lambda np, a: np.linalg.det(a), [A], True),
    (lambda np, a: np.linalg.det(a), [STACK], True),
    (lambda np, a: np.linalg.det(a), [PAIR], True),
    (lambda np, a: np.linalg.det(a[:3, :3]), [A], True),
    (lambda np, a: np.linalg.det(a), [Z], True),
    (lambda np, a: tuple(np.linalg.slogdet(a)), [STACK], True),
    (lambda np, a: tuple(np.linalg.slogdet(a)), [Z], True),
    (lambda np, a: np.linalg.inv(a), [A], True),
    (lambda np, a: np.linalg.inv(a), [Z], True),
    (lambda np, a, b: np.linalg.solve(a, b), [A, V], True),
    (lambda np, a, b: np.linalg.solve(a, b), [A, TALL], True),
    (lambda np, a, b: np.linalg.solve(a, b), [STACK, matrices(4, 3)], True),
    (lambda np, a, b: np.linalg.solve(a[None, None], b), [STACK[0], matrices(2, 3, 4, 1)], True),
    (lambda np, a: np.linalg.eigvalsh(a), [P], False),
    (lambda np, a: np.linalg.eigh((a + a.T) / 2)[0], [P], True),
    (lambda np, a: np.sort(np.linalg.eigvals(a)), [Z], False),
    (lambda np, a: np.linalg.svd(a, compute_uv=False), [WIDE], True),
    (lambda np, a: np.linalg.svdvals(a), [STACK], True),
    (lambda np, a: np.linalg.svd(a, compute_uv=False, hermitian=True), [P], False),
    (lambda np, a: np.linalg.pinv(a), [WIDE], True),
    (lambda np, a: np.linalg.pinv(a), [TALL], True),
    (lambda np, a: np.linalg.pinv(a, hermitian=True), [P], False),
    (lambda np, a: np.linalg.matrix_power(a, 3), [A], True),
    (lambda np, a: np.linalg.matrix_power(a, -2), [A], True),
    (lambda np, a: np.linalg.matrix_power(a, 0), [STACK], False),
    (lambda np, a: np.linalg.matrix_rank(a), [WIDE], False),
    (lambda np, a: np.linalg.cond(a), [WIDE], True),
    (lambda np, a: np.linalg.cond(a, 1), [A], False),
    (lambda np, a: np.linalg.cond(a, "fro"), [A], True),
    (lambda np, a, b, c: np.linalg.multi_dot([a, b, c]), [WIDE, TALL, matrices(3)], True),
    (lambda np, a: np.linalg.tensorinv(a.reshape(2, 2, 4)), [STACK[0]], True),
    (lambda np, a, b: np.linalg.tensorsolve(a.reshape(2, 2, 4), b), [STACK[0], PAIR], True),
    (lambda np, a, b: np.linalg.lstsq(a, b)[0], [TALL, V], True),
    (lambda np, a: np.linalg.diagonal(a, offset=1), [STACK], True),
    (lambda np, a: np.linalg.trace(a), [STACK], True),
    (lambda np, a, b: np.linalg.outer(a, b), [V, V + 1], True),
    (lambda np, a, b: np.linalg.cross(a, b), [WIDE[:, :3], TALL[:3]], True),
    (lambda np, a, b: np.linalg.vecdot(a, b), [Z, Z + 1], True),
    (lambda np, a, b: np.linalg.tensordot(a, b, axes=1), [WIDE, TALL], True),
    (lambda np, a: np.linalg.matrix_transpose(a), [STACK], True),
    *[(lambda np, a, o=o: np.linalg.norm(a, o), [WIDE], True) for o in (None, "fro", "nuc", 1, -1, 2, -2, numpy.inf)],
    *[(lambda np, a, o=o: np.linalg.norm(a, o), [V], True) for o in (None, 1, 2, 3, 0.5, numpy.inf, -numpy.inf)],
    (lambda np, a: np.linalg.norm(a, 0), [V], False),
    (lambda np, a: np.linalg.norm(a, axis=1, keepdims=True), [Z], True),
    (lambda np, a: np.linalg.norm(a, 1, axis=(2, 0), keepdims=True), [STACK], True),
    (lambda np, a: np.linalg.matrix_norm(a, ord="nuc", keepdims=True), [STACK], True),
    (lambda np, a: np.linalg.vector_norm(a, axis=(0, 2), ord=3), [STACK], True),
    (lambda np, a: np.linalg.vector_norm(a, keepdims=True), [STACK], True),
    # Fourier transforms
    *[
        (lambda np, x, n=n: getattr(np.fft, n)(x), [matrices(3, 6)], True)
        for n in ("fft", "ifft", "rfft", "fft2", "fftn")
    ],
    *[
        (lambda np, x, n=n: getattr(np.fft, n)(x), [matrices(3, 6)], True)
        for n in ("ifft2", "ifftn", "rfft2", "rfftn", "ihfft")
    ],
    *[
        (lambda np, x, n=n: getattr(np.fft, n)(x), [matrices(3, 5, dtype=numpy.complex64)], False)
        for n in ("irfft", "irfft2", "irfftn", "hfft")
    ],
    *[
        (
            lambda np, x, n=n, k=k: getattr(np.fft, n)(x, k, axis=0, norm="ortho"),
            [matrices(6, 2, dtype=numpy.complex64)],
            False,
        )
        for n in ("fft", "ifft", "irfft", "hfft")
        for k in (3, 6, 9)
    ],
    *[
        (lambda np, x, n=n: getattr(np.fft, n)(x, norm="forward"), [matrices(6)], True)
        for n in ("fft", "ifft", "rfft", "irfft")
    ],
    *[(lambda np, x, n=n: getattr(np.fft, n)(x, norm="forward"), [matrices(6)], True) for n in ("hfft", "ihfft")],
    (lambda np, x: np.fft.fftn(x, s=(2, 7), axes=(0, 2)), [matrices(3, 4, 5)], True),
    (lambda np, x: np.fft.irfftn(x, s=(4, 7), axes=(2, 0)), [matrices(3, 4, 5)], True),
    (lambda np, x: np.fft.fftn(x), [matrices(2, 3, 2, 3, 2)], True),
    (lambda np, x: np.fft.rfftn(x), [matrices(2, 3, 2, 3, 2)], True),
    (lambda np, x: np.fft.irfftn(x), [matrices(2, 3, 2, 3, 2)], True),
    (lambda np, x: np.fft.fftshift(x), [matrices(3, 4)], True),
    (lambda np, x: np.fft.ifftshift(x, axes=1), [matrices(3, 5)], True),
]


@pytest.mark.share(3)
@pytest.mark.parametrize("call, arrays, _", CASES)
def test_values(call, arrays, _):
    check_values(call, arrays, rtol=2e-3, atol=2e-4)


@pytest.mark.share(2)
@pytest.mark.parametrize("call, arrays", [case[:2] for case in CASES if case[2]])
def test_gradients(call, arrays):
    check_gradient(call, arrays, rtol=1e-6)
    if all(a.dtype.kind == "f" for a in arrays):
        with catena.enable_x64(True):
            check_jvp(
                lambda *xs: call(jnp, *map(jnp.asarray, xs)),
                [a.astype(float) for a in arrays],
                rtol=1e-4,
                atol=1e-5,
            )


@pytest.mark.share(2)
@pytest.mark.parametrize("call, arrays", [case[:2] for case in CASES if case[2]])
def test_mapped(call, arrays):
    stacked = [[a, a * 1.1 + 0.01] for a in arrays]
    mapped = catena.vmap(lambda *xs: call(jnp, *xs))(*[numpy.stack(s).astype(s[0].dtype) for s in stacked])
    for i in range(2):
        row = call(jnp, *[jnp.asarray(numpy.asarray(s[i], s[0].dtype)) for s in stacked])
        for ours, theirs in zip(catena.tree_util.tree_leaves(mapped), catena.tree_util.tree_leaves(row), strict=True):
            numpy.testing.assert_allclose(ours[i], theirs, rtol=1e-3, atol=1e-4)


# ---- factorisations are checked by what they multiply to


@pytest.mark.parametrize("a", [WIDE, TALL, STACK, Z], ids=lambda a: str(a.shape))
def test_factorisations(a):
    h = lambda x: numpy.asarray(x).conj().swapaxes(-1, -2)  # noqa: E731
    close = lambda x, y: numpy.testing.assert_allclose(x, y, atol=2e-5)  # noqa: E731
    for run in (lambda f: f, catena.jit):
        q, r = run(jnp.linalg.qr)(a)
        close(q @ r, a)
        close(h(q) @ q, numpy.broadcast_to(numpy.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])))
        u, s, vh = run(lambda a: jnp.linalg.svd(a, full_matrices=False))(a)
        close((u * s[..., None, :]) @ vh, a)
        assert run(lambda a: jnp.linalg.qr(a, mode="complete"))(a).Q.shape[-1] == a.shape[-2]
        close(run(lambda a: jnp.linalg.qr(a, mode="r"))(a), r)
    result = jnp.linalg.svd(a)
    assert result.U.shape[-1] == a.shape[-2] and result.Vh.shape[-1] == a.shape[-1]


def test_raw_qr_is_lapack_s():
    for a in (TALL, WIDE, A):
        for ours, theirs in zip(jnp.linalg.qr(a, mode="raw"), numpy.linalg.qr(a, mode="raw"), strict=True):
            numpy.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_eigenvectors():
    w, v = jnp.linalg.eigh(PZ)
    numpy.testing.assert_allclose(PZ @ v, v * w, atol=1e-4)
    w, v = jnp.linalg.eig(A)
    numpy.testing.assert_allclose(A @ v, v * w, atol=1e-4)
    u, s, vh = jnp.linalg.svd(P - 5 * numpy.eye(4, dtype=numpy.float32), hermitian=True)
    numpy.testing.assert_allclose((u * s) @ vh, P - 5 * numpy.eye(4), atol=1e-4)
    assert (numpy.diff(s) <= 0).all()
    lower = numpy.tril(numpy.asarray(P))
    numpy.testing.assert_allclose(
        jnp.linalg.eigvalsh(lower, symmetrize_input=False), numpy.linalg.eigvalsh(P), rtol=1e-4
    )


def test_least_squares():
    for options in ({}, {"rcond": 0.5}):
        for a, b in ((TALL, V), (TALL, matrices(5, 2)), (WIDE, matrices(3))):
            ours, theirs = (
                jnp.linalg.lstsq(a, b, **options, numpy_resid=True),
                numpy.linalg.lstsq(a, b, **options),
            )
            for x, y in zip(ours, theirs, strict=True):
                numpy.testing.assert_allclose(x, y, atol=1e-4)
    assert jnp.linalg.lstsq(WIDE, matrices(3))[1].shape == (1,)


def test_singular_matrices():
    singular = numpy.ones((4, 4), numpy.float32)
    assert jnp.linalg.det(singular) == 0
    sign, logarithm = jnp.linalg.slogdet(singular)
    assert sign == 0 and logarithm == -numpy.inf
    assert jnp.linalg.cond(singular) > 1e6
    assert jnp.linalg.matrix_rank(singular) == 1
    assert numpy.isnan(jnp.linalg.cholesky(-singular)).any()


def test_determinants_have_derivatives_at_singular_matrices():
    singular = numpy.diag([1.0, 2.0, 3.0, 0.0]) + numpy.triu(numpy.ones((4, 4)), 1) * numpy.array([1, 1, 1, 0.5])
    with catena.enable_x64(True):
        gradient = catena.grad(jnp.linalg.det)(singular)
        minors = numpy.array(
            [
                [(-1) ** (i + j) * numpy.linalg.det(numpy.delete(numpy.delete(singular, i, 0), j, 1)) for j in range(4)]
                for i in range(4)
            ]
        )
        numpy.testing.assert_allclose(gradient, minors, atol=1e-10)
        hessian = catena.hessian(jnp.linalg.det)(numpy.eye(4))
        assert hessian[0, 0, 1, 1] == pytest.approx(1) and hessian[0, 1, 1, 0] == pytest.approx(-1)


RANDOM = numpy.random.default_rng(0).standard_normal((5, 5))


@pytest.mark.parametrize(
    "a",
    [
        RANDOM * 1e9,  # the determinant overflows, the cofactors do not
        RANDOM * 1e-9,  # and underflows
        RANDOM * [1e12, 1e-12, 1e5, 1, 1e-20],
        numpy.diag([1e30, 1e30, 1e-30, 1e-30]),  # a product of pivots overflows
        numpy.diag([1e-30, 1e-30, 1e30, 1e30]),
        numpy.diag([0.0, 1, 2, 3]),  # the first pivot is 0, the cofactors are not
        numpy.eye(5, k=1),  # all pivots are 0
        numpy.ones((4, 4)),
        numpy.zeros((4, 4)),
    ],
)
def test_derivatives_of_determinants_are_cofactors_wherever_these_are_floats(a):
    a = a.astype(numpy.float32)
    with catena.enable_x64(True):  # no number of these leaves the range of doubles
        wide = catena.grad(jnp.linalg.det)(a.astype(numpy.float64))
    for gradient in (catena.grad(jnp.linalg.det)(a), catena.jit(catena.grad(jnp.linalg.det))(a)):
        numpy.testing.assert_allclose(gradient, wide, rtol=1e-5, atol=1e-8 * numpy.abs(wide).max() + 1e-17)


def test_derivatives_of_determinants_overflow_with_their_signs():
    gradient = catena.grad(jnp.linalg.det)(numpy.float32(RANDOM * 1e12))
    with catena.enable_x64(True):
        signs = numpy.sign(catena.grad(jnp.linalg.det)(RANDOM))
    numpy.testing.assert_array_equal(gradient, signs * numpy.inf)


def test_results_have_names():
    assert type(jnp.linalg.eigh(P)).__name__ == "EighResult"
    assert type(jnp.linalg.eig(P)).__name__ == "EigResult"
    assert type(jnp.linalg.svd(P)).__name__ == "SVDResult"
    assert type(jnp.linalg.qr(P)).__name__ == "QRResult"
    assert jnp.linalg.slogdet(P)._fields == ("sign", "logabsdet")


def test_integers_become_floats():
    for name in ("det", "inv", "cholesky", "svdvals", "norm", "pinv", "cond"):
        assert getattr(jnp.linalg, name)(jnp.eye(3, dtype=int)).dtype == numpy.float32
    assert jnp.linalg.matrix_power(jnp.eye(2, dtype=int), 3).dtype == numpy.int32


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies(n):
    for name in ("fftfreq", "rfftfreq"):
        for d in (1.0, 0.25):
            numpy.testing.assert_allclose(getattr(jnp.fft, name)(n, d), getattr(numpy.fft, name)(n, d), rtol=1e-6)
    assert jnp.fft.fftfreq(4, dtype="float16").dtype == numpy.float16


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: jnp.linalg.det(WIDE), ValueError, r"must have shape \[..., n, n\], got \(3, 5\)"),
        (lambda: jnp.linalg.inv(V), ValueError, "must have shape"),
        (lambda: jnp.linalg.solve(A, WIDE), ValueError, "inconsistent size for core dimension 'm': 3 vs 5"),
        (lambda: jnp.linalg.solve(STACK, STACK[..., 0]), ValueError, "Invalid shapes for solve"),
        (lambda: jnp.linalg.eigh(P, UPLO="X"), ValueError, "UPLO must be one of"),
        (lambda: jnp.linalg.qr(P, mode="bad"), ValueError, "Unsupported QR decomposition mode 'bad'"),
        (lambda: jnp.linalg.slogdet(P, method="bad"), ValueError, "Unknown slogdet method 'bad'"),
        (lambda: jnp.linalg.norm(WIDE, 3), ValueError, "Invalid order '3' for matrix norm"),
        (lambda: jnp.linalg.norm(V, "fro"), ValueError, "Invalid order 'fro' for vector norm"),
        (lambda: jnp.linalg.norm(STACK, 2), ValueError, "Improper number of axes for norm"),
        (lambda: jnp.linalg.norm(STACK, axis=(0, 1, 2)), ValueError, "Improper number of axes for norm"),
        (lambda: jnp.linalg.norm(STACK, axis=()), ValueError, "Improper number of axes for norm"),
        (lambda: jnp.linalg.norm(STACK, axis=(0, 0)), ValueError, "duplicate value in 'axis'"),
        (lambda: jnp.linalg.cond(WIDE, 1), ValueError, "array must be square"),
        (lambda: jnp.linalg.matrix_power(P, 1.5), TypeError, "exponent must be an integer, got 1.5"),
        (lambda: jnp.linalg.matrix_power(WIDE, 2), TypeError, "must be square"),
        (lambda: jnp.linalg.multi_dot([WIDE, WIDE]), ValueError, "last dimension of each array must match"),
        (lambda: jnp.linalg.multi_dot([P]), ValueError, "at least two arrays; got 1"),
        (lambda: jnp.linalg.tensorinv(P, ind=0), ValueError, "ind must be a positive integer"),
        (lambda: jnp.linalg.lstsq(TALL, V[:3]), ValueError, "Leading dimensions"),
        (lambda: jnp.linalg.outer(WIDE, V), ValueError, "must be one-dimensional"),
        (lambda: jnp.linalg.cross(V, V), ValueError, "3-dimensional vectors"),
        (lambda: jnp.linalg.pinv(P, 1e-3, rcond=1e-3), ValueError, "only one of rtol and rcond"),
        (lambda: jnp.fft.fft(V, norm="bad"), ValueError, "Invalid norm value bad"),
        (lambda: jnp.fft.fft(V, n=0), ValueError, "Shape should be positive"),
        (lambda: jnp.fft.fft(V, axis=3), ValueError, "axis 3 is out of bounds for array of dimension 1"),
        (lambda: jnp.fft.fftn(P, axes=(0, 0)), ValueError, "does not support repeated axes"),
        (lambda: jnp.fft.rfft(Z), ValueError, "only real valued inputs supported for rfft"),
        (lambda: jnp.fft.fft2(P, axes=(0,)), ValueError, "only supports 2 axes"),
        (lambda: jnp.fft.fft(P, axis=(0, 1)), ValueError, "does not support multiple axes"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("method", [None, "qr"])
def test_the_sign_of_a_complex_determinant_has_a_derivative(method):
    a = numpy.array([[1 + 1j, 2], [3, 4 - 2j]], "complex64")

    def sign(t):
        return jnp.linalg.slogdet(a * jnp.exp(1j * t), method=method)[0]

    derivative = 2j * numpy.asarray(sign(0.0))  # the determinant turns twice as fast as its two rows
    numpy.testing.assert_allclose(catena.jvp(sign, (0.0,), (1.0,))[1], derivative, rtol=1e-5)
    numpy.testing.assert_allclose(catena.grad(lambda t: sign(t).real)(0.0), derivative.real, rtol=1e-5)
    numpy.testing.assert_allclose(catena.grad(lambda t: sign(t).imag)(0.0), derivative.imag, atol=1e-5)


def test_the_derivative_of_pinv_has_no_side_longer_than_the_matrix_asks_for():
    for shape in ((50, 2), (2, 50)):
        program = catena.make_jaxpr(lambda a: catena.jvp(jnp.linalg.pinv, (a,), (a,))[1])(jnp.ones(shape))
        assert "50,50" not in str(program)


def test_eigenvalues_alone_have_the_same_bits_eagerly_and_compiled():
    for n in (9, 40):  # those of fewer rows programs compute themselves
        a = numpy.random.default_rng(0).normal(size=(n, n)).astype(numpy.float32)
        assert (jnp.linalg.eigvalsh(jnp.array(a)) == catena.jit(jnp.linalg.eigvalsh)(a)).all()


@pytest.mark.parametrize("z", [A, matrices(5, 5, dtype=numpy.complex64) + 3 * numpy.eye(5, dtype=numpy.complex64)])
def test_derivatives_of_solutions_are_those_of_the_system(z):
    """Not of the steps that solve it: each is one more solution, and one product."""
    b, g = (matrices(5, 2, dtype=z.dtype) for _ in range(2))
    x, pull = catena.vjp(jnp.linalg.solve, z, b)
    of_a, of_b = pull(jnp.asarray(g))
    expected = numpy.linalg.solve(z.T, g)
    numpy.testing.assert_allclose(of_b, expected, rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose(of_a, -expected @ numpy.asarray(x).T, rtol=1e-4, atol=1e-5)
    for f in (lambda a: jnp.linalg.solve(a, b), jnp.linalg.inv):
        made = str(catena.make_jaxpr(catena.grad(lambda a: abs(f(a)).sum()))(z))  # noqa: B023
        assert made.count("= custom_linear_solve[") == 2 and made.count(" lu ") == 1


@pytest.mark.parametrize("z", [A, matrices(2, 2), matrices(3, 3, dtype=numpy.complex64)])
def test_the_derivative_of_the_logarithm_of_a_determinant_is_the_inverse(z):
    """Not that of the steps that factorise the matrix."""
    size = lambda a: jnp.linalg.slogdet(a).logabsdet  # noqa: E731
    numpy.testing.assert_allclose(catena.grad(size)(z), numpy.linalg.inv(z).T, rtol=1e-4, atol=1e-5)
    t = numpy.ones_like(z)
    slope = catena.jvp(size, (z,), (t,))[1]
    numpy.testing.assert_allclose(slope, (numpy.linalg.inv(z) @ t).trace().real, rtol=1e-4)
    second = catena.jvp(catena.grad(size), (z,), (t,))[1]
    numpy.testing.assert_allclose(second, -(numpy.linalg.inv(z) @ t @ numpy.linalg.inv(z)).T, rtol=1e-3, atol=1e-4)
    stack = numpy.stack([z, z + t])
    each = [catena.jit(catena.grad(size))(m) for m in stack]
    numpy.testing.assert_array_equal(catena.jit(catena.grad(lambda a: size(a).sum()))(stack), each)
    made = str(catena.make_jaxpr(catena.grad(size))(z))
    assert made.count("= custom_linear_solve[") == 1 and "triangular_solve" not in made.split("custom_linear_solve")[0]


def test_derivatives_of_one_system_for_a_stack_of_sides():
    b = matrices(3, 5, 2)
    of_a = catena.grad(lambda a: (jnp.linalg.solve(a, b) ** 2).sum())(A)
    each = sum(catena.grad(lambda a: (jnp.linalg.solve(a, one) ** 2).sum())(A) for one in b)  # noqa: B023
    numpy.testing.assert_allclose(of_a, each, rtol=1e-4, atol=1e-5)
    second = catena.hessian(lambda a: jnp.linalg.inv(a).sum())(A)
    numpy.testing.assert_allclose(second.reshape(25, 25), second.reshape(25, 25).T, rtol=1e-3, atol=1e-5)


# Errors for vectors, and for matrices that are not square, measured with JAX 0.10.2.
NO_SQUARES = {
    "cholesky": (TypeError, TypeError), "eigh": (TypeError, TypeError), "eigvalsh": (TypeError, TypeError),
    "eig": (TypeError, ValueError), "eigvals": (TypeError, ValueError), "qr": (TypeError, None), "svd": (TypeError, None),
    "svdvals": (TypeError, None), "det": (ValueError, ValueError), "inv": (ValueError, ValueError),
    "slogdet": (ValueError, ValueError), "pinv": (ValueError, None),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_SQUARES)
def test_errors_for_what_is_no_square_matrix_are_those_of_jax(name):
    fun = getattr(jnp.linalg, name)
    for error, shape in zip(NO_SQUARES[name], [(3,), (2, 3)], strict=True):
        for way in (lambda f: f, catena.jit) if error is not None else ():
            with pytest.raises(error):
                way(fun)(jnp.ones(shape))


@pytest.mark.parametrize("shape", [(3, 2), (0, 2)])
def test_ranks_of_least_squares_are_default_integers(shape):
    a, b = numpy.ones(shape, "float32"), numpy.ones(shape[0], "float32")
    for bits in (32, 64):
        with catena.enable_x64(bits == 64):
            for solve in (jnp.linalg.lstsq, catena.jit(jnp.linalg.lstsq)):
                rank = solve(jnp.asarray(a), jnp.asarray(b))[2]
                assert rank.dtype == f"int{bits}" and rank == min(shape[0], 1)


def test_transforms_along_no_axes_have_the_dtype_of_transforms():
    for fun, dtype in ((jnp.fft.rfftn, jnp.float32), (jnp.fft.fftn, jnp.complex64), (jnp.fft.ifftn, jnp.complex64)):
        for found in (fun(jnp.float32(2.5)), catena.jit(fun)(2.5), fun(jnp.array([2.5]), axes=())):
            assert found.dtype == dtype and found == 2.5
