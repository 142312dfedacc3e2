"""What loops do before and after their iterations: moved out where it pays, with the same numbers."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.graph import fission

RNG = np.random.default_rng(0)
T, B, N, M = 7, 3, 16, 24
XS = RNG.normal(size=(T, B, N)).astype(np.float32)
W = RNG.normal(size=(N, M)).astype(np.float32)
G = RNG.normal(size=(T, B, M)).astype(np.float32)
MANY = RNG.normal(size=(T, 60, N)).astype(np.float32)


def graph(f, *args) -> tuple[str, str]:
    """The graph of a jitted function, as text: outside of its first loop, and the loop's body."""
    region = jax.jit(f).lower(*args).compiler_ir()
    loop = next(v for v in region.values if v.form in ("scan", "while"))
    return str(region), str(loop.params.body)


def check(f, *args, rtol=2e-5):
    """The compiled results are those of the loop in Python."""
    with jax.disable_jit():
        expected = jax.tree.leaves(f(*args))
    found = jax.tree.leaves(jax.jit(f)(*args))
    for a, b in zip(found, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        a, b = (np.asarray(x).astype(np.float64) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, np.abs(b).max(initial=0)))


def loop(body, init, xs=XS, **options):
    return lax.scan(body, init, jnp.asarray(xs), **options)


PRODUCTS = {
    "item times weights": lambda w: loop(lambda c, x: (c + x @ w, c), jnp.zeros((B, M))),
    "in reverse": lambda w: loop(lambda c, x: (jnp.tanh(c + x @ w), c), jnp.zeros((B, M)), reverse=True),
    "weights times item": lambda w: loop(lambda c, x: (jnp.sin(c) + w.T @ x.T, c), jnp.zeros((M, B))),
    "a function of the item": lambda w: loop(lambda c, x: (jnp.sin(c) + (2 * x + 1) @ w, c), jnp.zeros((B, M))),
    "a function of the weights": lambda w: loop(lambda c, x: (jnp.sin(c) + x @ (w * 3), c), jnp.zeros((B, M))),
    "two products": lambda w: loop(lambda c, x: (jnp.sin(c) + x @ w + (x * x) @ (w + 1), c), jnp.zeros((B, M))),
    "narrow floats": lambda w: loop(
        lambda c, x: (jnp.sin(c) + x.astype("bfloat16") @ w.astype("bfloat16"), c.sum()), jnp.zeros((B, M), "bfloat16")
    ),
    "integers": lambda w: loop(lambda c, x: (c // 2 + x.astype(int) @ w.astype(int), c), jnp.zeros((B, M), int)),
    "the product alone": lambda w: loop(lambda c, x: (c, x @ w), 0.0),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_items_are_one_product_before_the_loop(name):
    outside, body = graph(PRODUCTS[name], W)
    assert " = dot " in outside and " = dot " not in body
    check(PRODUCTS[name], W, rtol=0.03 if name == "narrow floats" else 2e-5)


STAY = {
    "of the carry": lambda w: loop(lambda c, x: (jnp.tanh(c @ w.T @ w + 1), c), jnp.zeros((B, M))),
    "of two items": lambda w: loop(lambda c, x: (jnp.sin(c) + x @ x.T, c), jnp.zeros((B, B))),
    "with results larger than the weights": lambda w: loop(
        lambda c, x: (jnp.sin(c) + x @ w[:, :1], c), jnp.zeros((60, 1)), MANY
    ),
}


@pytest.mark.parametrize("name", STAY)
def test_other_products_stay(name):
    assert " = dot " in graph(STAY[name], W)[1]
    check(STAY[name], W)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(fission, "MOST_BYTES", T * B * M * 4 - 1)
    assert " = dot " in graph(PRODUCTS["item times weights"], W)[1]


# ---- sums


def weight_gradient(start, reverse=False):
    return lambda xs, gs: lax.scan(lambda c, xg: (c + xg[0].T @ xg[1], None), start, (xs, gs), reverse=reverse)[0]


def several_sums(xs, gs):
    def body(carry, xg):
        h, dw, db, count = carry
        x, g = xg
        g = jnp.tanh(g + h)
        return (g * 0.5, dw + (g.T @ x).T, db + jnp.sum(g, axis=0), count + 1), g.sum()

    init = (jnp.zeros((B, M)), jnp.ones((N, M)), jnp.full(M, 2.0), 0)
    return lax.scan(body, init, (xs, gs))


def outer_products(xs, gs):
    """The sum of two, the other way round, of vectors that an iteration makes, and of stacks of them."""

    def body(carry, xg):
        h, dw, stack = carry
        x, g = xg[0][0], jnp.tanh(xg[1][0] + h)
        dw = dw + (x[:, None] * g + jnp.outer(jnp.sin(x), g * 2))
        return (g * 0.5, dw, stack + g[:, None, None] * xg[0].T), None

    return lax.scan(body, (jnp.zeros(M), jnp.asarray(W), jnp.zeros((M, N, B))), (xs, gs))[0]


SUMS = {
    "outer": outer_products,
    "from zero": weight_gradient(jnp.zeros((N, M))),
    "from something else": weight_gradient(jnp.asarray(W)),
    "in reverse": weight_gradient(jnp.asarray(W), reverse=True),
    "transposed, with a bias, beside other carries": several_sums,
    "of one example": lambda xs, gs: weight_gradient(jnp.zeros((N, M)))(xs[:, :1], gs[:, :1]),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_products_are_one_product_after_the_loop(name):
    outside, body = graph(SUMS[name], XS, G)
    assert " = dot " in outside and " = dot " not in body
    check(SUMS[name], XS, G)


def test_sums_of_outer_products_have_the_bits_of_a_batch():
    f = lambda xs: lax.scan(lambda w, x: (w + x[:, None] * jnp.tanh(x), None), jnp.zeros((48, 48)), xs)[0]
    many = RNG.normal(size=(3, 20, 48)).astype(np.float32)
    assert " = dot " in graph(jax.vmap(f), many)[0]
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(many), [jax.jit(f)(xs) for xs in many])


def test_sums_of_what_is_stored_anyway_are_sums_after_the_loop():
    outside, body = graph(several_sums, XS, G)
    assert "kind=sum axes=(0,)" in outside, outside
    assert body.count("= reduce") == 1  # g.sum()


KEPT_SUMS = {
    "a carry that is read": lambda xs, gs: lax.scan(
        lambda c, xg: (c + xg[0].T @ xg[1], c.sum()), jnp.zeros((N, M)), (xs, gs)
    ),
    "a carry that is collected": lambda xs, gs: lax.scan(
        lambda c, xg: ((c + xg[0].T @ xg[1],) * 2)[0:1] * 2, jnp.zeros((N, M)), (xs, gs)
    ),
    "a product of itself": lambda xs, gs: lax.scan(
        lambda c, xg: (c + c @ (0.01 * xg[1].T @ xg[1]), None), jnp.asarray(W), (xs, gs)
    ),
    "large operands": lambda xs, gs: lax.scan(lambda c, xg: (c + jnp.vdot(xg[0], xg[0]), None), 0.0, (xs, gs)),
}


@pytest.mark.parametrize("name", KEPT_SUMS)
def test_other_sums_stay(name):
    _, body = graph(KEPT_SUMS[name], XS, G)
    assert ("kind=sum" if name == "large operands" else " = dot ") in body
    check(KEPT_SUMS[name], XS, G, rtol=1e-4)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_few_iterations(length):
    for name in ("from something else", "transposed, with a bias, beside other carries"):
        check(SUMS[name], XS[:length], G[:length])
    for name in ("item times weights", "the product alone"):
        check(lambda w, name=name: PRODUCTS[name](w), W)


# ---- what does not change in the loop

INVARIANT = {
    "scan": lambda w: loop(lambda c, x: (c * jnp.exp(w).sum() + x.sum(), jnp.exp(w)[0]), 0.0),
    "a chain": lambda w: loop(lambda c, x: (c + jnp.tanh(jnp.sin(w) @ w.T).sum(), c), 0.0),
    "while": lambda w: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] + jnp.exp(w)), (0, w)),
    "a result": lambda w: loop(lambda c, x: (jnp.exp(w), c[0]), jnp.zeros((N, M))),
    "an inner loop": lambda w: loop(
        lambda c, x: (lax.fori_loop(0, 3, lambda i, y: y + jnp.exp(w).sum(), c), None), 0.0
    ),
}


@pytest.mark.parametrize("name", INVARIANT)
def test_what_does_not_change_is_computed_once(name):
    outside, body = graph(INVARIANT[name], W)
    assert "op=exp" in outside or "op=sin" in outside
    assert "op=exp" not in body and "op=sin" not in body and "= dot" not in body
    check(INVARIANT[name], W)


WHOLE = {
    "sort_keys": lambda w: jnp.sort(w, axis=0),
    "argsort": lambda w: jnp.argsort(w[:, 0]) * 1.0,
    "select": lambda w: lax.top_k(w, 10)[0],
    "ranked": lambda w: jnp.median(w, axis=1),
    "fourier": lambda w: jnp.abs(jnp.fft.rfft(w)),
    "small_matrices": lambda w: jnp.linalg.cholesky(w @ w.T + 9 * jnp.eye(N)),
    "lapack": lambda w: jnp.abs(jnp.linalg.qr(w)[1]),
}


@pytest.mark.parametrize("form", WHOLE)
def test_steps_of_whole_arrays_that_do_not_change_are_done_once(form):
    f = lambda w: loop(lambda c, x: (jnp.sin(c + WHOLE[form](w)), x[0]), WHOLE[form](w * 0 + 1))
    outside, body = graph(f, W)
    assert f" = {form} " in outside and f" = {form} " not in body
    check(f, W)


def test_an_inner_loop_that_is_done_once_may_read_rows_by_its_counter():
    """It is not in the outer loop any more, where exponentials are looked for."""
    inner = lambda w: lax.fori_loop(0, N, lambda k, c: 0.5 * c * (w[k] > c) + w[k], jnp.ones(M))
    f = lambda w: lax.fori_loop(0, T, lambda _, c: 0.1 * jnp.exp(-c) + inner(jnp.exp(w)).mean(), jnp.zeros(5))
    check(f, W)


def test_random_bits_of_a_known_key_are_drawn_once():
    """Larger than the key that they are made of, but of a hundred operations each."""
    kept = lambda x: x * jax.random.bernoulli(jax.random.key(3), 0.9, x.shape)
    f = lambda w: lax.fori_loop(0, 5, lambda i, c: kept(c + 1), w)
    outside, body = graph(f, W)
    assert "op=xor" in outside and "op=xor" not in body
    check(f, W)


def test_loops_of_unknown_length_are_run_once():
    halved = lambda w: lax.while_loop(lambda y: jnp.max(jnp.abs(y)) > 1e-2, lambda y: y / 2, w)
    f = lambda w: loop(lambda c, x: (c + halved(w).sum() + x.sum(), None), 0.0)
    found = {v.form: v for v in jax.jit(f).lower(W).compiler_ir().values}
    assert "while" in found and "while" not in str(found["scan"].params.body)
    check(f, W)


@pytest.mark.parametrize("steps", [0, 1])
def test_what_may_never_end_stays_where_it_may_never_begin(steps):
    """A loop of unknown length that does not change is not run before one that may not run at all."""
    endless = lambda w: lax.while_loop(lambda y: y.sum() > 1 - steps, jnp.cos, w * 0 + (1 - steps))
    f = jax.jit(lambda n, w: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, endless(w)), (0, w)))
    done, value = f(steps, W)
    assert done == steps
    np.testing.assert_array_equal(value, np.zeros_like(W) if steps else W)


SQUARE = np.round(RNG.normal(size=(M, M)) * 4).astype(np.float32) / 64
STORED = {  # what a product or an inner loop reads in memory, and the operations that make it
    "scaled": (lambda w: loop(lambda c, x: (jnp.tanh(c @ (w * 2)), None), jnp.ones((B, M))), "op=mul"),
    "masked": (
        lambda w: loop(lambda c, x: (jnp.tanh(c @ jnp.where(w > 0, w, 0)), None), jnp.ones((B, M))),
        "op=select",
    ),
    "narrow": (
        lambda w: loop(lambda c, x: (c.astype("bfloat16") @ w.astype("bfloat16"), None), jnp.ones((B, M), "bfloat16")),
        "[24, 24] = map",
    ),
    "transposed": (lambda w: loop(lambda c, x: (jnp.tanh((w * 2).T @ c), None), jnp.ones((M, B))), "op=mul"),
    "reshaped": (
        lambda w: loop(
            lambda c, x: (jnp.tanh(jnp.tensordot(c, (w * 2).reshape(2, M // 2, M))).reshape(B, 2, -1), None),
            jnp.ones((B, 2, M // 2)),
        ),
        "op=mul",
    ),
    "a part": (
        lambda w: loop(lambda c, x: (jnp.tanh(c @ w[:, : M // 2]).repeat(2, 1), None), jnp.ones((B, M))),
        "= slice",
    ),
    "while": (
        lambda w: lax.while_loop(
            lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.tanh(c[1] @ (w * 2))), (0, jnp.ones((B, M)))
        ),
        "op=mul",
    ),
    "of an inner loop": (
        lambda w: loop(
            lambda c, x: (lax.fori_loop(0, 3, lambda i, y: jnp.tanh(y @ (w * 2)), c), None), jnp.ones((B, M))
        ),
        "op=mul",
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_what_iterations_would_store_is_stored_once(name):
    f, made = STORED[name]
    outside, body = graph(f, SQUARE)
    assert made in outside and made not in body
    check(f, SQUARE, rtol=0.02 if name == "narrow" else 2e-5)


def test_what_is_computed_where_it_is_read_stays():
    assert "op=abs" in graph(lambda w: loop(lambda c, x: (c * jnp.abs(w), None), jnp.ones((M, M))), SQUARE)[1]


def test_conditions_too():
    def f(w):
        return lax.while_loop(lambda s: s < jnp.exp(w).sum(), lambda s: s * 2, 1.0)

    region = jax.jit(f).lower(W).compiler_ir()
    loop = next(v for v in region.values if v.form in ("scan", "while"))
    assert "op=exp" in str(region) and "op=exp" not in str(loop.params.cond)
    check(f, W)


def test_what_a_scalar_scales_stays_small():
    """A wide view of something costly is made in the loop from the narrow value."""
    f = lambda w: loop(lambda c, x: (c + jnp.exp(w[0])[None, :] * c, None), jnp.ones((500, M)))  # noqa: E731
    outside, body = graph(f, W)
    assert "op=exp" not in body and "broadcast" in body
    check(f, W)


# ---- whole networks


@pytest.mark.parametrize("x64", [False, True])
def test_gradients_of_recurrent_networks(x64):
    def loss(params, xs):
        w, u, b = params

        def step(h, x):
            z = jax.nn.sigmoid(x @ w + h @ u + b) if hasattr(jax.nn, "sigmoid") else jnp.tanh(x @ w + h @ u + b)
            return z * h + (1 - z) * jnp.tanh(h + z), z.sum()

        h, zs = lax.scan(step, jnp.zeros((B, M), xs.dtype), xs)
        return (h * h).sum() + zs.mean()

    with jax.enable_x64(x64):
        kind = np.float64 if x64 else np.float32
        u = RNG.normal(size=(M, M)).astype(kind) / 5
        params = [jnp.asarray(W.astype(kind)), jnp.asarray(u), jnp.zeros(M, kind)]
        xs = jnp.asarray(XS.astype(kind))
        check(jax.value_and_grad(loss), params, xs, rtol=1e-12 if x64 else 1e-4)
        check(jax.vmap(jax.grad(loss), (None, 0)), params, jnp.stack([xs, 2 * xs]), rtol=1e-11 if x64 else 1e-3)
        second = jax.grad(lambda p, xs: sum((g * g).sum() for g in jax.grad(loss)(p, xs)))
        check(second, params, xs, rtol=1e-10 if x64 else 1e-3)


def test_a_loop_that_does_not_change_runs_before_the_loop_around_it():
    w = np.random.default_rng(0).standard_normal((12, 12), np.float32) / 10
    inner = lambda w: lax.scan(lambda c, r: (jnp.sin(c @ w), c + r), w, w)

    def f(x, w):
        return lax.fori_loop(0, 7, lambda i, x: jnp.tanh(x + inner(w)[0] + inner(w)[1].sum(0)), x)

    found = w
    for _ in range(7):
        found = jnp.tanh(found + inner(w)[0] + inner(w)[1].sum(0))
    np.testing.assert_allclose(jax.jit(f)(w, w), found, rtol=1e-5, atol=1e-6)
    lines = jax.jit(f).lower(w, w).compile().as_text("program").splitlines()
    scans = [line for line in lines if "scan" in line]
    assert scans and not [line for line in scans if line.startswith("    ")], "\n".join(lines)


PLACES = {
    "gather and scatter": lambda i, x: jnp.zeros(300).at[i].add(x[i[::-1]]),
    "of two axes": lambda i, x: x + x.reshape(20, 15)[i % 20, i % 15],
    "rows": lambda i, x: x.reshape(20, 15).at[i % 20].add(1.0).reshape(-1),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_that_do_not_change_are_computed_before_the_loop(name):
    i, x = np.arange(300) * 7 % 299 - 100, np.arange(300, dtype="f")
    f = lambda i, x: lax.fori_loop(0, 3, lambda _, x: jnp.minimum(PLACES[name](i, x), 99), x)
    _, body = graph(f, i, x)
    assert "op=lt" not in body, body  # whether an index counts from the end
    check(f, i, x)


def test_inner_products_are_sums_in_the_kernels_of_loops():
    def step(_, state):
        x, r, total = state
        x, r = x + 2 * r, r - x
        return x, r, total + r @ x

    f = lambda x: lax.fori_loop(0, 3, step, (x, 2 * x, jnp.float32(0)))
    _, body = graph(f, np.ones(300, "f"))
    assert " = dot " not in body and "kind=sum" in body
    check(f, np.arange(300, dtype="f") % 7 - 3)
    vectors = lambda a, b: lax.fori_loop(0, 2, lambda i, c: c + jnp.einsum("abc,acb->a", a, b), jnp.zeros(5))
    check(vectors, *(np.random.default_rng(0).integers(-3, 4, s).astype("f") for s in ((5, 8, 9), (5, 9, 8))))


def test_elements_that_indices_name_are_gathered_before_a_loop():
    source = RNG.integers(0, 50, 400)
    degree = RNG.uniform(0, 3, 50).astype(np.float32)

    def f(x, degree, source):
        return lax.fori_loop(0, 5, lambda i, x: x * 0.5 + (x[source] / jnp.maximum(degree[source], 1))[:50], x)

    x = RNG.normal(size=50).astype(np.float32)
    outside, body = graph(f, x, degree, source)
    assert outside.count("= gather") == body.count("= gather") == 1  # the degree's; that of x changes
    check(f, x, degree, source)


def test_several_operations_on_what_does_not_change_are_done_before_a_loop():
    a, b = (RNG.normal(size=200).astype(np.float32) for _ in range(2))

    def f(x, a, b):
        return lax.fori_loop(0, 5, lambda i, x: x * 0.5 + ((a - b) * a + b), x)

    _, body = graph(f, np.ones(200, np.float32), a, b)
    assert body.count("sub") == body.count("op=mul") == 0 and body.count("op=fma") == 1  # x * 0.5 + what is known
    check(f, np.ones(200, np.float32), a, b)


def test_items_that_are_the_same_in_all_iterations():
    """Numbers and rows that are spread over the iterations, which the loop reads where they are."""
    x, rows = (RNG.standard_normal(s).astype(np.float32) for s in ((50, 7), (7,)))

    def f(x, rows, n):
        items = x, jnp.ones((50, 7)), jnp.broadcast_to(rows, (50, 7)), jnp.full(50, n), jnp.zeros((50, 7), bool)
        return lax.scan(lambda c, v: (c * v[3] + v[0] * v[1] + v[2], (jnp.where(v[4], 0, c), v[2], v[3])), rows, items)

    c, out = rows, []
    for row in x:
        out.append(c)
        c = c * np.float32(0.5) + row + rows
    last, (carries, spread, numbers) = jax.jit(f)(x, rows, 0.5)
    np.testing.assert_allclose(last, c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(carries, out, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(spread, np.broadcast_to(rows, (50, 7)))
    np.testing.assert_array_equal(numbers, np.full(50, 0.5, np.float32))
    for a, b in zip(jax.tree.leaves(jax.jit(f)(x, rows, 0.5)), jax.tree.leaves(f(x, rows, 0.5)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_single_iteration_has_the_bits_of_the_first_of_two():
    """It stands where it is, without a loop, and products are rounded with the sums that they go into as in one."""
    x = RNG.standard_normal((1, 33, 7)).astype(np.float32)
    c, w = RNG.standard_normal((33, 7)).astype(np.float32), RNG.standard_normal((7, 7)).astype(np.float32)

    def f(x, c, w):
        def step(c, r):
            new = c * r + jnp.tanh(r @ w) * c
            return new, (new * r + 1, jnp.sum(new * r, -1), c)

        return lax.scan(step, c, x)

    once = jax.jit(f)
    made, twice = once(x, c, w), jax.jit(f)(np.concatenate([x, x]), c, w)
    for one, two in zip(made[1], twice[1], strict=True):
        np.testing.assert_array_equal(one, two[:1])
    assert "loop" not in once.explain(x, c, w)
    for a, b in zip(jax.tree.leaves(made), jax.tree.leaves(f(x, c, w)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_products_without_a_sum_in_loops():
    """Outer products, which kernels compute where they read them."""
    x, c = RNG.standard_normal((400, 1)).astype(np.float32), RNG.standard_normal((8, 1)).astype(np.float32)

    def f(x, c):
        return lax.fori_loop(0, 5, lambda _, c: c + jnp.min(x @ c.T, 0)[:, None], c)

    expected = c
    for _ in range(5):
        expected = expected + np.min(x @ expected.T, 0)[:, None]
    np.testing.assert_allclose(jax.jit(f)(x, c), expected, rtol=1e-5)
    assert "product" not in jax.jit(f).explain(x, c)


NOTHING = {
    "sums of zeros": lambda x: x + jnp.sum(jnp.zeros(8)),
    "what is below itself": lambda x: x + jnp.mean((x < x).astype("float32")) * 1e-3,
    "zeros that are subtracted": lambda x: x - 0.0,
}


@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("name", NOTHING)
def test_what_iterations_leave_as_it_was_needs_no_loop(name, length):
    """Zeros that are added make 0 of -0, the first time."""
    x = np.array([1, -0.0, 0, np.nan, np.inf], np.float32)
    f = jax.jit(lambda x: jax.lax.fori_loop(0, length, lambda _, x: NOTHING[name](x), x))
    expected = NOTHING[name](jnp.asarray(x)) if length else x
    np.testing.assert_array_equal(f(x), expected)
    np.testing.assert_array_equal(np.signbit(f(x)), np.signbit(expected))
    assert "iterations" not in f.lower(x).compile().as_text("program")


def test_what_others_read_of_it_is_what_it_was():
    x = np.array([1, -0.0, 3], np.float32)
    f = lambda x: jax.lax.fori_loop(0, 3, lambda _, c: (c[0] + jnp.sum(jnp.zeros(8)), c[1] / c[0]), (x, x))
    g = lambda x: jax.lax.scan(lambda c, a: ((c[0] - 0.0, c[1] * c[0], c[2] - 0.0), c[1] + a + c[2]), (x, x, 2 * x), x)
    check(f, x)
    check(g, x)
