"""Products and quotients of what may be subnormal (exponentials and their kin) have the bits of the processor's."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.graph import small
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of
from catena.core.config import override

LEAST = np.finfo(np.float32).smallest_subnormal
TINY = np.finfo(np.float32).tiny
SPECIAL = np.array(
    [0, LEAST, 3 * LEAST, TINY / 2, TINY - LEAST, TINY, 1.5 * TINY, 2.0**-104, 2.0**-63, 2.0**-31, 0.5, 1, 3, 2.0**70]
    + [np.finfo(np.float32).max, np.inf, np.nan],
    np.float32,
)


def numbers(n: int, seed: int) -> np.ndarray:
    """Of all exponents and both signs, many of them subnormal or such that products are, and special ones."""
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(0, 2**32, n, np.uint32).view(np.float32)
    small = (rng.integers(0, 80 << 23, n) | rng.integers(0, 2, n) << 31).astype(np.uint32).view(np.float32)
    subnormal = rng.integers(0, 1 << 23, n).astype(np.uint32).view(np.float32)
    around_one = (rng.standard_normal(n) * 4).astype(np.float32)
    special = rng.choice(np.concatenate([SPECIAL, -SPECIAL]), n)
    return np.choose(rng.integers(0, 5, n), [any_bits, small, subnormal, around_one, special])


def maybe_small(x):
    """x, of which the compiler knows no more than that it may be an exponential."""
    return jnp.where(jnp.isinf(x) & (x == 0.0), jnp.exp(x), x)


def assert_same(got, want):
    got, want = np.asarray(got, np.float32), np.asarray(want, np.float32)
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(got.view(np.uint32)[~nan], want.view(np.uint32)[~nan])


OPERATIONS = {
    "small * y": (lambda x, y: maybe_small(x) * y, np.multiply),
    "x * small": (lambda x, y: x * maybe_small(y), np.multiply),
    "small * small": (lambda x, y: maybe_small(x) * maybe_small(y), np.multiply),
    "square": (lambda x, y: maybe_small(x) ** 2, lambda x, y: x * x),
    "small / y": (lambda x, y: maybe_small(x) / y, np.divide),
    "x / small": (lambda x, y: x / maybe_small(y), np.divide),
    "small / small": (lambda x, y: maybe_small(x) / maybe_small(y), np.divide),
    "small / -3": (lambda x, y: maybe_small(x) / -3, lambda x, y: x / np.float32(-3)),
    "small / row": (lambda x, y: maybe_small(x) / y[:, :1], lambda x, y: x / y[:, :1]),
    "times 3": (lambda x, y: maybe_small(x) * 3, lambda x, y: x * np.float32(3)),
    "small * y * y": (lambda x, y: maybe_small(x) * y * y, lambda x, y: x * y * y),
    "-small * y": (lambda x, y: -maybe_small(x) * y, lambda x, y: -x * y),
    "by rows": (lambda x, y: maybe_small(x[:, :1]) * y, lambda x, y: x[:, :1] * y),
    "by columns": (lambda x, y: maybe_small(x[:1]) * y, lambda x, y: x[:1] * y),
    "by a number": (lambda x, y: maybe_small(x[0, 0]) * y, lambda x, y: x[0, 0] * y),
    "products of products": (
        lambda x, y: maybe_small(x) * y[:1] * (maybe_small(x) * maybe_small(x[:, :1])) * 3,
        lambda x, y: x * y[:1] * (x * x[:, :1]) * np.float32(3),
    ),
    "turned": (lambda x, y: maybe_small(x).T * y.T, lambda x, y: (x * y).T),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 16), (40, 33), (100, 3), (300, 8), (5, 1000)], ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
@np.errstate(all="ignore")
def test_it_has_the_bits_of_the_processor(name, shape):
    x, y = (numbers(int(np.prod(shape)), seed).reshape(shape) for seed in (1, 2))
    operation, by_numpy = OPERATIONS[name]
    assert_same(jax.jit(operation)(x, y), by_numpy(x, y))


@np.errstate(all="ignore")
@pytest.mark.parametrize("function", [jnp.exp, jnp.exp2, jax.nn.sigmoid])
def test_exponentials_that_vanish_are_not_small(function):
    """They are zero, alone in vectors and among others, whose products are as before."""
    rng = np.random.default_rng(2)
    masked = rng.choice(np.float32([-1e9, -np.inf, -152, -105, -3e38]), 512)
    others = rng.choice(np.float32([-150.5, -150, -149, -104, -103.98, -103.9, -95, -88, -73, -1, 2, np.nan]), 512)
    x = np.concatenate([masked, others, np.where(rng.integers(0, 2, 512), masked, others)])
    y = (rng.standard_normal(x.size) * 2.0 ** rng.integers(-20, 20, x.size)).astype(np.float32)
    made = np.asarray(jax.jit(function)(x))
    assert_same(jax.jit(lambda x, y: function(x) * y)(x, y), made * y)
    assert_same(jax.jit(lambda x, y: function(x) / y)(x, y), made / y)


@pytest.mark.parametrize(
    ("function", "least", "two", "bound"),
    [(jnp.exp, -104, np.log(2), 1), (jnp.exp2, -151, 1.0, 1), (jax.nn.sigmoid, -104, np.log(2), 1.5)],
)
def test_exponentials_below_normal_numbers(function, least, two, bound):
    """Vectors, which have no branch, and few numbers, which have one, are alike, and within half a step and more."""
    x = np.sort(np.random.default_rng(3).uniform(least - 1, -125 * two, 4000)).astype(np.float32)
    whole = np.asarray(jax.jit(function)(x))
    few = [np.asarray(jax.jit(function)(x[i : i + 5])) for i in range(0, x.size, 5)]
    assert_same(whole, np.concatenate(few))
    steps = np.exp2(x.astype(np.float64) / two + 149)  # of which bits up to 2^24 are the number
    assert np.max(np.abs(whole.view(np.uint32) - steps)) < bound


@np.errstate(all="ignore")
@pytest.mark.parametrize("several", [False, True])
def test_quotients_of_all_sizes_by_what_rows_share(several):
    """Those that the residual corrects, from 2^-104 to 2^40, and others, by one and by several of a loop."""
    rng = np.random.default_rng(7)
    exponents = np.repeat(np.arange(-140, 60, 4), 2)[:, None] + rng.integers(-3, 4, (100, 64))
    y = (rng.uniform(1, 2, (100, 1)) * 2.0 ** rng.integers(-24, 66, (100, 1))).astype(np.float32)
    x = (rng.uniform(-2, 2, (100, 64)) * 2.0**exponents * y).astype(np.float32)
    divided = jax.jit(lambda x, y: (x / y, (x + x) / (y + y) if several else 0))(x, y)
    assert_same(divided[0], x / y)
    if several:
        assert_same(divided[1], x / y)


@np.errstate(all="ignore")
def test_quotients_next_to_the_middle_of_two():
    """Of what doubles round too, before floats do."""
    rng = np.random.default_rng(0)
    divisor = rng.integers(1 << 23, 1 << 24, 400_000).astype(np.float64)
    middle = rng.integers(0, 1 << rng.integers(1, 23, divisor.size)) + 0.5
    x = (divisor * middle * 2.0**-149).astype(np.float32)  # rounded: quotients are nearly middles
    y = divisor.astype(np.float32)
    small = x < TINY * 2.0**22
    assert_same(jax.jit(OPERATIONS["small / y"][0])(x[small], y[small]), x[small] / y[small])


@np.errstate(all="ignore")
@pytest.mark.parametrize("operation", [np.multiply, np.divide])
def test_bfloat16(operation):
    x, y = (numbers(5000, seed).astype(jnp.bfloat16) for seed in (3, 4))
    by = jnp.multiply if operation is np.multiply else jnp.divide
    got = jax.jit(lambda x, y: by(jnp.where(x == -77, jnp.exp(x), x), y))(x, y)
    assert_same(got.astype("float32"), np.asarray(operation(x.astype("float32"), y.astype("float32"))).astype(x.dtype))


@np.errstate(all="ignore")
def test_quotients_of_bfloat16_by_what_rows_share():
    """Tails of a softmax, by divisors of all sizes, and by some that have no normal inverse."""
    rng = np.random.default_rng(8)
    x = jnp.asarray(np.where(rng.random((64, 300)) < 0.01, np.inf, rng.uniform(-110, 20, (64, 300))), "bfloat16")
    y = jnp.asarray(np.r_[1, 3, -2, 0, np.inf, np.nan, 1e-39, -1e38, np.exp2(rng.uniform(-20, 20, 56))], "bfloat16")
    got = jax.jit(lambda x, y: jnp.exp(x) / y[:, None])(x, y)
    made, by = (np.asarray(v, np.float32) for v in (jax.jit(jnp.exp)(x), y))
    assert np.mean(made < TINY) > 0.1
    assert_same(got.astype("float32"), (made / by[:, None]).astype(x.dtype))


def test_what_lies_in_memory_and_what_several_read():
    """Exponentials that one kernel writes and another multiplies, and products of products."""
    x = np.random.default_rng(5).uniform(-120, 0, (60, 130)).astype(np.float32)
    y = numbers(x.size, 6).reshape(x.shape)
    y[~np.isfinite(y)] = 1

    def both(x, y):
        e = jnp.exp(x)
        return e, jnp.cumsum(e, axis=1), e * y, (e * e) * y, jax.nn.sigmoid(x) * y, (e / 3) * (y * e)

    e, _, *got = jax.jit(both)(x, y)
    e, sigmoid = np.asarray(e), np.asarray(jax.jit(jax.nn.sigmoid)(x))
    for a, b in zip(got, [e * y, (e * e) * y, sigmoid * y, (e / np.float32(3)) * (y * e)], strict=True):
        assert_same(a, b)


DOTS = {
    "a matrix": ("ij,jk->ik", (70, 130), (130, 48)),
    "a transposed one": ("ji,jk->ik", (130, 70), (130, 48)),
    "few rows": ("ij,jk->ik", (3, 400), (400, 65)),
    "long sums": ("ij,jk->ik", (33, 3000), (3000, 40)),
    "a batch": ("bij,bjk->bik", (3, 40, 64), (3, 64, 64)),
    "heads": ("bhij,bjhk->bihk", (2, 3, 32, 40), (2, 40, 3, 32)),
    "the right one": ("ij,jk->ik", (48, 130), (130, 70)),
    "a vector": ("ij,j->i", (128, 130), (130,)),
    "three columns": ("ij,jk->ik", (128, 130), (130, 3)),
    "half a vector of columns": ("ij,jk->ik", (128, 130), (130, 8)),
    "three rows": ("ij,jk->ik", (3, 130), (130, 128)),
    "few rows of a transposed one": ("ij,kj->ik", (2, 300), (60, 300)),
    "a vector by a batch": ("bij,bj->bi", (3, 40, 100), (3, 100)),
}


def factors(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """As of tails of a softmax: rows that begin or end with subnormal numbers, zeros and usual numbers among them."""
    rng = np.random.default_rng(seed)
    x = (2.0 ** rng.uniform(-160, 0, shape)).astype(np.float32) * rng.choice([-1, 1, 1], shape).astype(np.float32)
    return np.where(rng.random(shape) < 0.1, np.sort(x, axis=-1), x)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", DOTS)
def test_matrix_products_have_the_bits_of_those_of_arguments(name):
    sums, left, right = DOTS[name]
    x, y = factors(left, 1), np.random.default_rng(2).standard_normal(right).astype(np.float32)
    if name == "the right one":
        y = factors(right, 3)
    usual = jax.jit(lambda x, y: jnp.einsum(sums, x, y))
    for scale in (1, 2.0**-100, 2.0**20):  # sums that are subnormal, and factors of which few are
        a, b = x * np.float32(scale), y
        looked_at = jax.jit(lambda x, y: jnp.einsum(sums, maybe_small(x), maybe_small(y)))
        assert_same(looked_at(a, b), usual(a, b))


@np.errstate(all="ignore")
def test_sums_of_products_in_loops():
    x, y, z = (numbers(30 * 37, seed).reshape(30, 37) for seed in (7, 8, 9))

    def sums(told):
        def step(carry, each):
            a, b = each
            return jnp.where(jnp.isnan(carry) | (abs(carry) > 1), z[0], carry) * told(a) + told(b), carry

        return jax.jit(lambda x, y: jax.lax.scan(step, z[1], (x, y))[1])

    assert_same(sums(maybe_small)(x, y), sums(lambda x: x)(x, y))


@pytest.mark.share(2)
@pytest.mark.parametrize("width", [28, 70])
@pytest.mark.parametrize("scale", [1, 2.0**-20, 2.0**-60, 2.0**-100])
def test_products_with_what_decays_in_a_loop(width, scale):
    """A matrix that begins with zeros, to which outer products of tails are added."""
    x = factors((40, width), 12) * np.float32(scale)

    def products(told):
        step = lambda c, r: (0.9 * c + r[:, None] * r, c @ r)
        return jax.jit(lambda x: jax.lax.scan(step, jnp.zeros((width, width)), told(x))[1])

    assert_same(products(maybe_small)(x), products(lambda x: x)(x))


@np.errstate(all="ignore")
def test_sums_next_to_the_middle_of_two_in_loops():
    """Half a step of a sum, less a bit that a double has not: twice rounded, odd ones went up."""
    rng = np.random.default_rng(11)
    less = (rng.integers(1, 8, 4096) * 2.0**-23).astype(np.float32)
    x, y = (1 + less) * np.float32(2.0**-67), (1 - less) * np.float32(2.0**-67)
    exponents = np.where(rng.integers(0, 2, 4096), 2.0**-110, 2.0**-126)
    z = ((1 + rng.integers(0, 1 << 23, 4096) * 2.0**-23) * exponents).astype(np.float32)
    scale = np.where(exponents == 2.0**-126, 2.0**-16, 1).astype(np.float32)

    def sums(told):
        step = lambda carry, each: (carry * told(each[0]) + told(each[1]), carry)
        return jax.jit(lambda x, y, z: jax.lax.scan(step, y, (jnp.stack([x, x]), jnp.stack([z, z])))[1][1])

    assert_same(sums(maybe_small)(x, y * scale, z), sums(lambda x: x)(x, y * scale, z))


@np.errstate(all="ignore")
@pytest.mark.parametrize("shape", [(5, 16), (5, 37), (5, 6, 130)], ids=str)
def test_products_of_many_that_may_be_small(shape):
    """They are written twice, where some exponential is small and where none is; a quotient asks of its own."""
    x, y = (numbers(int(np.prod(shape)), seed).reshape(shape) for seed in (12, 13))

    def products(x, y):
        made = [maybe_small(a) for a in x]
        sums = made[0] * y[0] + made[1] * y[1]
        return sums, made[2] * made[3], -made[3] * y[3], made[4] * y[4] * made[1], made[2] / y[2]

    got, usual = jax.jit(products)(x, y), jax.jit(products)(np.ones_like(x), y)
    for a, b in ((got, x), (usual, np.ones_like(x))):
        want = b[0] * y[0] + b[1] * y[1], b[2] * b[3], -b[3] * y[3], b[4] * y[4] * b[1], b[2] / y[2]
        for mine, theirs in zip(a, want, strict=True):
            assert_same(mine, theirs)


@np.errstate(all="ignore")
@pytest.mark.parametrize("way", ["places", "columns", "two at once"])
def test_products_of_many_from_other_places(way):
    """What tells where numbers lie is written before them; columns of rows are read together."""
    x, y = (numbers(40 * 6, seed).reshape(40, 6) for seed in (14, 15))
    i = np.random.default_rng(16).integers(0, 40, (5, 70))
    read = {
        "places": lambda x: [x[:, k][i[k]] for k in range(5)],
        "columns": lambda x: [x[:, k] for k in range(5)],
        "two at once": lambda x: [x[k : k + 20, 2] for k in range(5)],
    }[way]

    def products(x, y, told):
        return [told(a) * b for a, b in zip(read(x), read(y), strict=True)]

    for mine, theirs in zip(jax.jit(lambda x, y: products(x, y, maybe_small))(x, y), products(x, y, lambda x: x)):
        assert_same(mine, theirs)


@np.errstate(all="ignore")
def test_sums_of_all_that_are_added_in_loops():
    """Each of many numbers was rounded together with a product of subnormal ones: 8 times as long."""
    x, z = np.linspace(-103, -88, 33, dtype=np.float32), numbers(300, 10)

    def moved(told):
        step = lambda x, z: z + 1e-3 * jnp.sum(told(jnp.exp(x)))
        return jax.jit(lambda x, z: jax.lax.fori_loop(0, 3, lambda i, z: step(x, z), z))

    assert_same(moved(lambda x: x)(x, z), moved(lambda x: jnp.sort(x))(x, z))


def _tails(x):
    return jnp.exp(x) * jnp.ones((9, 40, 1))


PROGRAMS = {
    "exp(x) * y": (lambda x, y: jnp.exp(x) * y, ["small_product"]),
    "y * exp2(x)": (lambda x, y: y * jnp.exp2(x), ["small_product"]),
    "sigmoid": (lambda x, y: jax.nn.sigmoid(x) * y, ["small_product"]),
    "square": (lambda x, y: jnp.exp(x) ** 2, ["small_product"]),
    "a density": (lambda x, y: jax.scipy.stats.norm.pdf(x) * y, ["small_product"]),
    "a quotient": (lambda x, y: jnp.exp(x) / (1 + y * y), ["small_quotient"]),
    "a derivative": (lambda x, y: jax.vjp(jax.nn.softmax, x)[1](y), ["small_product"]),
    "what a loop reads": (
        lambda x, y: jax.lax.scan(lambda c, a: (c + a, a * c), y, jnp.broadcast_to(jnp.exp(x), (9, 40)))[1],
        ["small_product"],
    ),
    "a matrix product": (lambda x, y: jnp.exp(x * y[:, None]) @ jnp.outer(y, x), []),
    "a product with a vector": (lambda x, y: jnp.exp(jnp.outer(x, jnp.ones(100))).T @ y, []),
    "a product of long sums": (
        lambda x, y: jnp.exp(jnp.outer(x, jnp.ones(100))) @ jnp.ones(100),
        ["found_small_product_sum"],
    ),
    "a product with what decays in a loop": (
        lambda x, y: jax.lax.scan(lambda c, r: (0.9 * c + r, c @ r[0]), jnp.zeros((40, 40)), _tails(x))[1],
        ["small_product_sum", "found_small_product_sum"],
    ),
    "a sum in a loop": (
        lambda x, y: jax.lax.fori_loop(0, 9, lambda i, c: c * jnp.exp(x) + y, y),
        ["small_product_sum"],
    ),
    "one number for all": (lambda x, y: y * (0 + jnp.sum(jnp.exp(x))), ["small_product"]),
    "one number for all in a loop": (
        lambda x, y: jax.lax.fori_loop(0, 9, lambda i, y: y + 1e-3 * jnp.sum(jnp.exp(x)), y),
        ["small_product_sum"],
    ),
    "sums of rows": (lambda x, y: y * jnp.sum(jnp.exp(jnp.outer(x, y)), 1), []),
    "no exponential": (lambda x, y: jnp.tanh(x) * y, []),
    "no factor": (lambda x, y: jnp.exp(x * y) + y, []),
    "a sum with labels": (lambda x, y: (jnp.exp(x) - (y > 0)) * y, ["small_product"]),
    "a sum with a choice": (lambda x, y: (jnp.where(x > 0, y, 0) + jnp.exp(x)) * y, ["small_product"]),
    "a sum with a pad": (lambda x, y: (jnp.exp(x) - jnp.pad(y[:9], (0, 31))) * y, ["small_product"]),
    "a sum with one": (lambda x, y: (1 + jnp.exp(x)) * y, []),
    "many in one sum": (lambda x, y: sum(jnp.exp(k * x) * (y + k) for k in range(1, 5)), ["found_small_product"]),
    "few in one sum": (lambda x, y: sum(jnp.exp(k * x) * (y + k) for k in range(1, 4)), ["small_product"]),
    "float16": (lambda x, y: jnp.exp(x.astype("float16")) * y.astype("float16"), []),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_products_are_looked_at(name):
    function, found = PROGRAMS[name]
    x = jax.ShapeDtypeStruct((40,), "float32")
    with override("jax_check_bounds", False):  # of what is checked, nothing is written twice
        text = text_of(jax.make_jaxpr(function)(x, x), machine=X86_64_V4)
    words = ("small_product", "found_small_product", "small_product_sum", "found_small_product_sum", "small_quotient")
    assert [word for word in words if f".{word}." in text] == found


def test_loops_in_loops_are_looked_through_a_few_times_each(monkeypatch):
    """Each carry becomes small from inside: looked through anew by every loop around it, ten loops were 59,049 times."""
    calls, look = [], small._mark
    monkeypatch.setattr(small, "_mark", lambda *args: calls.append(1) or look(*args))

    def nested(depth, x):
        if not depth:
            return jnp.exp(-x) * x
        return jax.lax.scan(lambda c, _: (c * nested(depth - 1, x), None), x, None, length=50)[0]

    text_of(jax.make_jaxpr(lambda x: nested(8, x))(jnp.ones(9)))
    assert 8 < len(calls) < 400


def test_sums_in_parts_of_products_that_may_be_small():
    """What joins the parts multiplies nothing: it looked for a factor of its own, and found none."""
    x = np.random.default_rng(0).standard_normal((4096, 64), np.float32)
    f = lambda x: jnp.einsum("ij,ij->j", x, jnp.exp(-x * x))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(jax.jit(f)(x), (wide * np.exp(-wide * wide)).sum(0), atol=2e-4)
