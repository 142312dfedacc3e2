"""Kernels that run on the rows of a product as soon as these are computed: which ones do, and that results agree."""

import numpy as np
import pytest

import catena
from catena.compiler.graph.builder import Builder
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import lower
from catena.compiler.native.host import this_machine
from catena.compiler.plan.passes import plan
from compiled import check

F32 = np.float32
M, N, K = 150, 70, 40


def product(b, x, w):
    return b.dot_general(x, w, (((1,), (0,)), ((), ())), F32)


def spread(b, bias):
    return b.broadcast_in_dim(bias, (M, N), (1,))


def with_bias(b, x, w, bias, r):
    return b.map("max", b.map("add", product(b, x, w), spread(b, bias)), b.full((M, N), F32(0)))


def with_residual_and_itself(b, x, w, bias, r):
    y = product(b, x, w)
    return [b.map("add", y, r), y]


def row_maxima(b, x, w, bias, r):
    return b.reduce("max", product(b, x, w), (1,))


def column_sums(b, x, w, bias, r):
    return b.reduce("sum", product(b, x, w), (0,))


def transposed(b, x, w, bias, r):
    return b.map("neg", b.transpose(product(b, x, w), (1, 0)))


def transposed_and_itself(b, x, w, bias, r):
    y = product(b, x, w)
    return [b.map("neg", b.transpose(y, (1, 0))), y]


def needs_later_values(b, x, w, bias, r):
    y = product(b, x, w)
    return b.map("add", y, b.broadcast_in_dim(b.reduce("max", y, (0, 1)), (M, N), ()))


def whole(*shape):
    return np.random.default_rng(len(shape)).integers(-4, 4, shape).astype(F32)


ARGUMENTS = whole(M, K), whole(K, N), whole(N), whole(M, N) * 2
X, W, BIAS, R = ARGUMENTS
CASES = {
    with_bias: (True, np.maximum(X @ W + BIAS, 0)),
    with_residual_and_itself: (True, [X @ W + R, X @ W]),
    row_maxima: (True, (X @ W).max(1)),
    column_sums: (False, (X @ W).sum(0)),
    transposed: (True, -(X @ W).T),  # the product is turned
    transposed_and_itself: (False, [-(X @ W).T, X @ W]),
    needs_later_values: (False, X @ W + (X @ W).max()),
}


@pytest.mark.parametrize("program", CASES, ids=lambda f: f.__name__)
def test_epilogues(program):
    joins, expected = CASES[program]
    check(program, expected, *ARGUMENTS)
    b = Builder()
    out = program(b, *[b.input(a.shape, a.dtype) for a in ARGUMENTS])
    b.region.outputs = out if isinstance(out, list) else [out]
    steps = plan(b.region, this_machine()).fused.steps
    assert any(step.epilogue is not None for step in steps) == joins


def test_batches_and_broadcasts_across_rows():
    """A bias of its own for each batch member is read at the member's rows; one for all members is read again."""
    x, w = whole(3, 50, 40), whole(3, 40, 60)
    own, shared = whole(3, 50, 60), whole(50, 60)
    numbers = (((2,), (1,)), ((0,), (0,)))

    def program(b, x, w, own, shared):
        y = b.dot_general(x, w, numbers, F32)
        return b.map("add", b.map("add", y, own), b.broadcast_in_dim(shared, y.shape, (1, 2)))

    check(program, x @ w + own + shared, x, w, own, shared)


def test_an_epilogue_may_overwrite_a_loop_carry():
    """The state of a recurrent net is the product's operand and its epilogue's result."""
    w, x = whole(40, 40) / 8, whole(20, 40)

    def step(h, _):
        return catena.numpy.clip(h @ w + 1, -2, 2), None

    got = catena.jit(lambda h: catena.lax.scan(step, h, None, length=5)[0])(x)
    h = x
    for _ in range(5):
        h = np.clip(h @ w + 1, -2, 2)
    np.testing.assert_allclose(got, h, rtol=1e-5)


def text_of_program(f, *shapes):
    arguments = [catena.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    return catena.jit(f).lower(*arguments).compile().as_text("program")


def test_what_is_made_of_each_element_takes_the_products_place():
    """The product is stored nowhere else; but where its elements go elsewhere, or are read again, it is."""
    jnp, sizes = catena.numpy, ((300, 64), (64, 128), (128,), (300, 128))
    places = {
        "bias": (lambda x, w, b, r: jnp.maximum(x @ w + b, 0), True),
        "squared": (lambda x, w, b, r: (x @ w) ** 2 - x @ w, True),
        "and itself": (lambda x, w, b, r: (jnp.maximum(x @ w + b, 0), x @ w), True),  # both are results
        "columns reversed": (lambda x, w, b, r: jnp.maximum(x @ w + b, 0)[:, ::-1], False),
        "halves added": (lambda x, w, b, r: (y := x @ w)[:, :64] + y[:, 64:], False),
        "of another size": (lambda x, w, b, r: jnp.maximum(x @ w + b, 0).astype("bfloat16"), False),
    }
    for name, (f, alone) in places.items():
        assert (", 0 bytes of temporaries" in text_of_program(f, *sizes).splitlines()[0]) == alone, name
        args = [whole(*size) for size in sizes]
        expected = f(*(a.astype("float64") for a in args))
        catena.tree.map(np.testing.assert_array_equal, catena.jit(f)(*args), expected)


def test_a_product_does_not_overwrite_what_its_epilogue_reads():
    """The residual's memory becomes the result's: in a loop, and where it is donated."""
    w, x = whole(40, 40) / 8, whole(20, 40)

    def step(r, x):
        return catena.numpy.clip(x @ w + r, -9, 9)

    looped = catena.jit(lambda r, x: catena.lax.fori_loop(0, 5, lambda _, r: step(r, x), r))
    donated = catena.jit(step, donate_argnums=0)
    r, expected = catena.numpy.ones((20, 40)), np.ones((20, 40), np.float32)
    for _ in range(5):
        r, expected = donated(r, x), np.clip(x @ w + expected, -9, 9)
    np.testing.assert_array_equal(r, expected)
    np.testing.assert_array_equal(looped(np.ones((20, 40), np.float32), x), expected)


def test_short_rows_are_folded_by_a_kernel_of_their_own():
    """As many of them at once as a vector has lanes; few rows, and longer ones, follow the product."""
    jnp = catena.numpy
    f = catena.jit(lambda x, w: jnp.argmin(jnp.sum(w * w, -1) - 2 * x @ w.T, -1))
    rng = np.random.default_rng(5)
    for rows, columns, alone in ((500, 8, True), (500, 16, True), (500, 40, False), (100, 8, False)):
        x, w = (rng.standard_normal((n, 6)).astype("float32") for n in (rows, columns))
        text = f.lower(x, w).compile().as_text("program")
        assert ("on its rows: sub, argmin" in text) is not alone
        expected = ((x[:, None].astype("float64") - w) ** 2).sum(-1).argmin(-1)
        np.testing.assert_array_equal(f(x, w), expected)


@pytest.mark.share(2)
@pytest.mark.parametrize("columns", [8, 12, 16, 24])
@pytest.mark.parametrize("rows", [100, 500])
def test_functions_of_short_rows_have_a_kernel_of_their_own(rows, columns):
    """Whose lanes are full: rows of the product would leave some empty."""
    jnp = catena.numpy
    f = lambda x, w, b: jnp.tanh(x @ w + b)  # noqa: E731
    shapes, rng = ((rows, 6), (6, columns), (columns,)), np.random.default_rng(5)
    x, w, b = (jnp.asarray(rng.standard_normal(shape), "float32") for shape in shapes)
    steps = plan(lower(catena.make_jaxpr(f)(x, w, b)), X86_64_V4).fused.steps
    assert any(step.epilogue is not None for step in steps) is (rows == 100 or columns in (16, 24))
    want = np.tanh(np.asarray(x, np.float64) @ np.asarray(w, np.float64) + np.asarray(b, np.float64))
    np.testing.assert_allclose(catena.jit(f)(x, w, b), want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("shape", [(300, 128), (1000, 64), (3, 200, 96)])
def test_a_column_beside_a_matrix_that_is_read_across(shape):
    """Its rows are the columns of what is computed, which a task does not have whole."""
    rng = np.random.default_rng(3)
    x, g = (rng.standard_normal(s).astype(np.float32) for s in (shape, (*shape[:-1], 1)))
    made = catena.jit(lambda x, g: catena.numpy.swapaxes(x, -1, -2) @ g * 2 + 1)(x, g)
    expected = np.swapaxes(x, -1, -2).astype(np.float64) @ g * 2 + 1
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-3)
