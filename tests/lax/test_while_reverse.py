"""Reverse mode through loops whose number of iterations is known only when they run."""

import gc
import weakref

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.runtime import stacks
from loops import assert_close, check_derivatives, check_value, check_vmap

A = np.arange(1.0, 4.0, dtype=np.float32) / 3


def iterate(body, x, n):
    """``body`` applied ``n`` times, by a ``while_loop``."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, body(c[1])), (0, x))[1]


def power(x, n):
    return iterate(lambda y: y * jnp.sin(x), x, n)


# ---- values of derivatives


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_gradient_equals_that_of_the_unrolled_loop(n):
    def unrolled(x):
        y = x
        for _ in range(n):
            y = y * jnp.sin(x)
        return y

    expected = jax.grad(unrolled)(1.3)
    for g in (jax.grad(power), jax.jit(jax.grad(power)), jax.grad(jax.jit(power))):
        np.testing.assert_allclose(g(1.3, n), expected, rtol=1e-5)
    second = jax.grad(jax.grad(unrolled))(1.3)
    for g in (jax.grad(jax.grad(power)), jax.jit(jax.grad(jax.grad(power)))):
        np.testing.assert_allclose(g(1.3, n), second, rtol=1e-5)


def test_loop_that_stops_by_its_value():
    f = lambda x: lax.while_loop(lambda c: c < 100.0, lambda c: c * x, x)
    assert jax.grad(f)(3.0) == 5 * 3**4
    assert jax.jit(jax.grad(f))(3.0) == 5 * 3**4
    assert jax.grad(f)(200.0) == 1
    check_derivatives(f, 3.0)


def test_derivatives_to_third_order():
    check_derivatives(lambda x: power(x, 3), 0.7, order=3)
    check_derivatives(lambda x: power(x, jnp.int32(0)), 0.7)


def test_vectors_matrices_and_closures():
    w = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    f = lambda w, x: iterate(lambda y: jnp.tanh(w @ y) + x, x, 4)
    check_value(f, w, A)
    check_derivatives(f, w, A)


def test_several_carries_of_which_some_have_no_tangent():
    def f(x, y):
        def body(c):
            i, a, b, flag = c
            return i + 1, a * jnp.where(flag, b, 2.0), b + y * i, ~flag

        return lax.while_loop(lambda c: c[0] < 5, body, (0, x, y, False))[1]

    check_value(f, np.float32(0.7), np.float32(1.1))
    check_derivatives(f, 0.7, 1.1)


def test_fori_loop_with_traced_bounds():
    f = lambda x, lo, hi: lax.fori_loop(lo, hi, lambda i, c: c * x + jnp.sin(c) * i, x)
    g = jax.jit(jax.grad(f))
    for lo, hi in [(0, 4), (2, 3), (3, 3), (5, 2)]:
        np.testing.assert_allclose(g(0.6, lo, hi), jax.grad(lambda x: f(x, lo, hi))(0.6), rtol=1e-5)  # noqa: B023


def test_only_the_first_carry_is_differentiated_through_the_condition():
    f = lambda x: lax.while_loop(lambda c: c[0] * x < 10.0, lambda c: (c[0] + 1.0, c[1] * c[0]), (1.0, x))[1]
    check_derivatives(f, 2.3)


def test_gradient_of_what_the_loop_does_not_touch():
    f = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x))[1] * 2
    assert jax.grad(f)(5.0) == 2
    g = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 7.0), (0, x))[1] * x
    assert jax.grad(g)(5.0) == 7


def test_complex_values():
    f = lambda z: jnp.real(iterate(lambda w: w * z + 1.0, z, 3))
    z = np.complex64(0.3 + 0.4j)
    expected = jax.grad(lambda z: jnp.real(((z * z + 1.0) * z + 1.0) * z + 1.0))(z)
    np.testing.assert_allclose(jax.grad(f)(z), expected, rtol=1e-5)


def test_empty_arrays():
    assert jax.grad(lambda x: iterate(lambda y: y * 2.0, x, 3).sum())(jnp.zeros((0, 2))).shape == (0, 2)


def test_ten_thousand_steps():
    f = lambda r, n: iterate(lambda y: y * r, 1.0, n)
    np.testing.assert_allclose(jax.grad(f)(0.9999, 10_000), 10_000 * 0.9999**9_999, rtol=5e-3)


# ---- combined with everything else


def test_vmap_of_gradients():
    check_vmap(jax.grad(power), np.float32(1.3), np.int32(3))
    check_vmap(jax.grad(jax.grad(power)), np.float32(1.3), np.int32(3))


def test_gradient_of_vmap():
    ns = np.int32([2, 3, 0])
    f = lambda x: jax.vmap(power)(x, ns).sum()
    expected = [jax.grad(power)(x, n) for x, n in zip(A, ns, strict=True)]
    np.testing.assert_allclose(jax.grad(f)(A), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(A), expected, rtol=1e-5)
    check_derivatives(lambda x: jax.vmap(power, (0, None))(x, 3), A)


def test_vmap_of_vmap_of_gradients():
    xs, ns = np.float32([[0.5, 1.0], [1.5, 2.0]]), np.int32([[0, 1], [2, 3]])
    got = jax.vmap(jax.vmap(jax.grad(power)))(xs, ns)
    expected = [[jax.grad(power)(x, n) for x, n in zip(r, m, strict=True)] for r, m in zip(xs, ns, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_inside_scan():
    f = lambda xs, n: lax.scan(lambda c, x: (power(c, n) * 0.5 + x, c), xs[0], xs)[0]
    check_value(f, A, np.int32(3))
    check_derivatives(lambda xs: f(xs, 3), A)
    check_vmap(jax.grad(f), A, np.int32(2))


def test_inside_cond():
    f = lambda x, n: lax.cond(x > 0.5, lambda x: power(x, n), lambda x: x * x, x)
    for x in (0.3, 0.9):
        check_derivatives(lambda x: f(x, 3), x)
    check_vmap(jax.grad(f), np.float32(0.6), np.int32(2))


def test_cond_inside():
    f = lambda x: iterate(lambda y: lax.cond(y > 1.0, lambda y: y * 0.5, lambda y: y * x + 0.4, y), x, 6)
    check_derivatives(f, 0.7)


def test_scan_inside():
    body = lambda y: lax.scan(lambda c, t: (jnp.sin(c) * t + y, None), y, A)[0]
    check_derivatives(lambda x: iterate(body, x, 3), 0.7)


def test_while_inside_while():
    def f(x, n):
        return lax.fori_loop(0, n, lambda i, c: power(c, i) * 0.5 + x, x)

    check_value(f, np.float32(0.3), np.int32(4))
    check_derivatives(lambda x: f(x, jnp.int32(4)), 0.3)
    with jax.disable_jit():
        expected = jax.grad(f)(0.3, 4)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(0.3, 4), expected, rtol=1e-5)


def test_gradient_inside_a_loop():
    descend = lambda x, n: iterate(lambda y: y - 0.1 * jax.grad(power)(y, 2), x, n)
    check_value(descend, np.float32(0.9), np.int32(5))
    check_derivatives(lambda x: descend(x, 3), 0.9, order=1)


def test_checkpoint():
    f = lambda x: jax.checkpoint(lambda x: power(x, 3) * 2.0)(x)
    check_derivatives(f, 0.7)
    g = lambda x: iterate(jax.checkpoint(lambda y: jnp.sin(y) * x), x, 3)
    check_derivatives(g, 0.7)


def test_custom_derivatives_inside():
    @jax.custom_vjp
    def triple(x):
        return 3.0 * x

    triple.defvjp(lambda x: (triple(x), None), lambda _, ct: (5.0 * ct,))
    assert jax.grad(lambda x: iterate(triple, x, 2))(1.0) == 25
    assert jax.jit(jax.grad(lambda x: iterate(triple, x, 2)))(1.0) == 25


def test_vjp_function_may_be_called_again_and_outlive_the_loop(young):
    _, back = jax.vjp(lambda x: power(x, 5), 1.3)
    gc.collect()
    first, second = back(1.0), back(2.0)
    np.testing.assert_allclose(2 * first[0], second[0], rtol=1e-6)
    np.testing.assert_allclose(first[0], jax.grad(power)(1.3, 5), rtol=1e-6)


def test_linearize_and_jacobians():
    _, lin = jax.linearize(lambda x: iterate(jnp.sin, x, 4), A)
    np.testing.assert_allclose(lin(A), jax.jvp(lambda x: iterate(jnp.sin, x, 4), (A,), (A,))[1], rtol=1e-6)
    f = lambda x: iterate(lambda y: jnp.sin(y) * y.sum(), x, 3)
    np.testing.assert_allclose(jax.jacrev(f)(A), jax.jacfwd(f)(A), rtol=1e-5, atol=1e-6)
    h = jax.hessian(lambda x: f(x).sum())(A)
    np.testing.assert_allclose(h, h.T, rtol=1e-4, atol=1e-4)


def test_stepwise_equals_compiled():
    jaxpr = jax.make_jaxpr(jax.vmap(jax.grad(power)))(A, np.int32([1, 2, 3]))
    run = lambda: jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, A, np.int32([1, 2, 3]))
    compiled = run()
    with jax.disable_jit():
        assert_close(run(), compiled)


def test_compiled_and_stepwise_halves_mix():
    """A loop run in one way leaves stacks that the other way reads."""
    _, back = jax.vjp(lambda x: power(x, 4), 1.3)
    with jax.disable_jit():
        stepwise = back(1.0)
    np.testing.assert_allclose(stepwise[0], back(1.0)[0], rtol=1e-6)
    jaxpr = jax.make_jaxpr(lambda x: power(x, 4))(1.3)
    run = jax.core.jaxpr_as_fun(jaxpr)
    with jax.disable_jit():
        _, back = jax.vjp(lambda x: run(x)[0], 1.3)
    np.testing.assert_allclose(back(1.0)[0], stepwise[0], rtol=1e-6)


# ---- what is remembered, and for how long


def saved(jaxpr) -> list:
    return [e for e in jaxpr.eqns if e.primitive.name == "while_save"]


def test_constants_of_the_loop_are_not_remembered_for_each_step():
    w = jnp.ones((50, 50))
    f = lambda x: jax.vjp(lambda x: iterate(lambda y: y * jnp.exp(w).sum() * x, x, 4), x)[1](1.0)
    (eqn,) = saved(jax.make_jaxpr(f)(1.0))
    items = [v.aval.dtype.item.shape for v in eqn.outvars if "stack" in v.aval.str_short()]
    assert items and all(shape == () for shape in items)


def test_memory_is_given_back():
    freed = []

    class Recorder:
        def free_stacks(self, head):
            freed.append(head)

    recorder = Recorder()
    arena = stacks.Arena(1234, recorder)
    array = stacks.from_addresses(np.array([0, 0], np.uint64), arena)
    gone = weakref.ref(arena)
    del arena
    gc.collect()
    assert gone() is not None and not freed
    del array
    gc.collect()
    assert gone() is None and freed == [1234]


def test_many_gradients_do_not_leak():
    resource = pytest.importorskip("resource")
    f = jax.jit(jax.grad(lambda x, n: iterate(lambda y: jnp.sin(y), x, n).sum()))
    back = jax.jit(lambda x: jax.vjp(lambda x: iterate(jnp.sin, x, 1000), x)[0])
    g = jax.grad(lambda x: lax.while_loop(lambda c: c[0] < 1000, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))[1].sum())
    x = np.ones(1000, np.float32)
    for _ in range(3):
        f(x, 1000), back(x), g(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(40):  # 4 MB of residuals each
        f(x, 1000), back(x)
    for _ in range(10):
        g(x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def test_gradients_inside_a_loop_give_their_memory_back_at_each_step():
    resource = pytest.importorskip("resource")
    step = lambda y: y - 0.1 * jax.grad(lambda y: iterate(jnp.sin, y, 1000).sum())(y)
    f = jax.jit(lambda x, n: lax.fori_loop(0, n, lambda i, y: step(y), x))
    x = np.ones(1000, np.float32)
    f(x, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    f(x, 50)  # 4 MB of residuals each
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
