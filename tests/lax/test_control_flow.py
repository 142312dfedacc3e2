"""Control flow: values, derivatives, vectorisation, types, printed forms and errors."""

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, random
from catena.core.check import check_jaxpr
from catena.core.dead_code import pruned
from catena.core.jaxpr import eval_jaxpr
from catena.experimental import io_callback
from loops import assert_close, check_derivatives, check_value, check_vmap

A = np.arange(1.0, 5.0, dtype=np.float32)
M = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


# ---- scan: values


def test_scan_running_sum():
    check_value(lambda xs: lax.scan(lambda c, x: (c + x, c * x), 0.0, xs), A, expected=(10, [0, 2, 9, 24]))


def test_scan_reverse():
    expected = (10, [9, 7, 4, 0])
    check_value(lambda xs: lax.scan(lambda c, x: (c + x, c), 0.0, xs, reverse=True), A, expected=expected)


@pytest.mark.share(2)
@pytest.mark.parametrize("unroll", [1, 2, 3, 4, 7, True, False, 0])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_unroll(unroll, reverse):
    f = lambda c, x: (c * 0.5 + x, c - x)
    plain = lax.scan(f, 0.0, M[:, 0], reverse=reverse)
    assert_close(plain, lax.scan(f, 0.0, M[:, 0], reverse=reverse, unroll=unroll))
    check_derivatives(
        lambda xs: lax.scan(lambda c, x: (jnp.sin(c) * x, c - x), 0.3, xs, unroll=unroll)[0], M[:, 0], order=1
    )


def test_scan_pytrees_and_none():
    def body(carry, x):
        return {"s": carry["s"] + x["a"], "n": carry["n"] + 1, "no": None}, (x["b"] * carry["n"], None)

    xs = {"a": A, "b": M, "none": None}
    init = {"s": 0.0, "n": 0, "no": None}
    carry, (ys, none) = check_value(lambda xs: lax.scan(body, init, xs), xs)
    assert carry["no"] is None and none is None
    assert carry["n"] == 4 and carry["n"].dtype == np.int32
    np.testing.assert_allclose(ys, M * np.arange(4)[:, None], rtol=1e-6)


def test_scan_length_only():
    carry, ys = lax.scan(lambda c, x: (c * 2, x), 1, None, length=10)
    assert carry == 1024 and ys is None
    assert lax.scan(lambda c, _: (c + 1, None), 0, None, length=np.int32(3))[0] == 3


def test_scan_of_length_zero():
    carry, ys = lax.scan(lambda c, x: (c + x, x * 2), 1.5, jnp.zeros((0,)))
    assert carry == 1.5 and ys.shape == (0,)
    f = lambda xs: lax.scan(lambda c, x: (c * x.sum(), x), 2.0, xs)[0]
    assert jax.grad(f)(jnp.zeros((0, 3))).shape == (0, 3)
    assert jax.vmap(f)(jnp.zeros((5, 0, 3))).tolist() == [2.0] * 5
    with jax.disable_jit():
        assert lax.scan(lambda c, x: (c + x, x * 2), 1.5, jnp.zeros((0,)))[1].shape == (0,)


def test_scan_with_empty_carry():
    carry, ys = lax.scan(lambda c, x: (c, x * 2), (), A)
    assert carry == () and ys.tolist() == [2, 4, 6, 8]
    check_derivatives(lambda xs: lax.scan(lambda c, x: (c, jnp.sin(x)), (), xs)[1], A)


def test_scan_of_ten_thousand_steps():
    total, _ = lax.scan(lambda c, x: (c + x, None), 0, jnp.arange(10_000))
    assert total == 49995000
    decay = lambda r: lax.scan(lambda c, _: (c * r, None), 1.0, None, length=10_000)[0]
    np.testing.assert_allclose(jax.jit(jax.grad(decay))(0.9999), 10_000 * 0.9999**9_999, rtol=5e-3)


def test_scan_closes_over_arrays_and_tracers():
    w = jnp.asarray(M.T @ M)
    f = lambda x, k: lax.scan(lambda c, _: (jnp.tanh(w @ c) * k, c), x, None, length=3)
    check_value(f, M[0], np.float32(0.5))
    check_derivatives(lambda x, k: f(x, k)[0], M[0], 0.5)


def test_nested_scans():
    def outer(c, row):
        c2, ys = lax.scan(lambda d, x: (d * 0.9 + x * c, d), c, row)
        return c2, ys.sum()

    check_value(lambda m: lax.scan(outer, 0.5, m), M)
    check_derivatives(lambda m: lax.scan(outer, 0.5, m), M)


def test_body_is_traced_once_for_each_type():
    traces = []

    def body(c, x):
        traces.append(1)
        return c + x, c

    lax.scan(body, jnp.float32(0), A)
    lax.scan(body, jnp.float32(1), A + 1)
    assert len(traces) == 1
    lax.scan(body, jnp.float32(1), A[:2])
    assert len(traces) == 1
    lax.scan(body, jnp.zeros(3), M)
    assert len(traces) == 2


# ---- scan: transformations


def rnn(w, x, xs):
    return lax.scan(lambda c, x: (jnp.tanh(w @ c + x), c.sum()), x, xs)


W = (0.5 * M.T @ M / 3).astype(np.float32)


def test_scan_derivatives():
    check_derivatives(rnn, W, M[0], M)


def test_scan_reverse_derivatives():
    check_derivatives(lambda w, xs: lax.scan(lambda c, x: (jnp.sin(w * c) + x, c * x), 0.1, xs, reverse=True), 0.7, A)


def test_scan_vmap_every_combination():
    check_vmap(rnn, W, M[0], M)
    check_vmap(jax.grad(lambda w, x, xs: rnn(w, x, xs)[0].sum()), W, M[0], M)


def test_scan_integer_carry_has_no_tangent():
    f = lambda x: lax.scan(lambda c, _: ((c[0] + 1, c[1] * x + c[0]), c[0]), (0, 1.0), None, length=3)[0][1]
    check_derivatives(f, 0.7)
    (n, y), tangents = jax.jvp(
        lambda x: lax.scan(lambda c, _: ((c[0] + 1, c[1] * x), None), (0, 1.0), None, length=3)[0],
        (2.0,),
        (1.0,),
    )
    assert n == 3 and y == 8 and tangents[0].dtype == jax.float0 and tangents[1] == 12


def test_scan_jvp_of_one_argument_only():
    _, t = jax.jvp(lambda xs: lax.scan(lambda c, x: (c + 1, c * x), 1.0, xs), (A,), (np.ones_like(A),))
    assert t[0] == 0 and t[1].tolist() == [1, 2, 3, 4]


def test_loop_invariant_residuals_are_not_stacked():
    f = lambda x, w: lax.scan(lambda c, _: (c * jnp.exp(w).sum(), None), x, None, length=5)[0]
    known = jax.make_jaxpr(lambda x, w: jax.vjp(f, x, w)[0])(1.0, jnp.ones((100, 100)))
    scans = [e for e in known.eqns if e.primitive.name == "scan"]
    assert scans and all(v.aval.shape != (5, 100, 100) for e in scans for v in e.outvars)
    check_derivatives(f, 0.7, M)


def test_checkpoint_inside_scan():
    body = jax.checkpoint(lambda c, x: (jnp.sin(c) * jnp.cos(x), c * x))
    check_derivatives(lambda xs: lax.scan(body, 0.3, xs), A, order=2)
    plain = jax.grad(lambda xs: lax.scan(lambda c, x: (jnp.sin(c) * jnp.cos(x), c * x), 0.3, xs)[0])(A)
    np.testing.assert_allclose(jax.grad(lambda xs: lax.scan(body, 0.3, xs)[0])(A), plain, rtol=1e-6)


def test_scan_linear_transpose():
    f = lambda x: lax.scan(lambda c, x: (c + x, 2.0 * c), jnp.float32(0), x)[1]
    (back,) = jax.linear_transpose(f, A)(np.ones(4, np.float32))
    assert back.tolist() == [6, 4, 2, 0]


def test_scan_with_named_axis_collective():
    f = lambda xs: lax.scan(lambda c, x: (c + lax.psum(x, "i"), None), 0.0, xs)[0]
    got = jax.vmap(f, axis_name="i")(M)
    np.testing.assert_allclose(got, [M.sum()] * 4, rtol=1e-5)


# ---- types


def test_weakly_typed_carries_give_way():
    carry, ys = lax.scan(lambda c, x: (c * 1.5, x), 0, A)
    assert carry.dtype == np.float32 and not carry.weak_type
    carry, _ = lax.scan(lambda c, x: (c + x, None), 0, A)
    assert carry.dtype == np.float32 and not carry.weak_type
    assert lax.while_loop(lambda c: c < 3, lambda c: c * np.float32(2), 1).dtype == np.float32
    assert not lax.fori_loop(0, 3, lambda i, c: c * np.float32(2), 1).weak_type
    chain = lax.scan(lambda c, x: ((c[0] + c[1], c[1] * x), None), (0, 0), A)[0]
    assert [c.dtype for c in chain] == [np.float32] * 2


def test_weak_types_of_results():
    assert lax.fori_loop(0, 3, lambda i, c: i, 0).weak_type
    assert lax.fori_loop(jnp.int32(0), jnp.int32(3), lambda i, c: i, 0).weak_type
    assert lax.while_loop(lambda c: c < 10, lambda c: c + 1, 0).weak_type
    for pred in (True, False):
        assert not lax.cond(pred, lambda: 1.0, lambda: jnp.float32(2)).weak_type
        assert lax.cond(pred, lambda: jnp.float32(2), lambda: 1.0).weak_type  # as false_fun's, as in JAX
        assert jax.jit(lambda p: lax.cond(p, lambda: jnp.float32(2), lambda: 1.0))(pred).weak_type
    assert not lax.switch(1, [lambda: jnp.float32(2), lambda: 1.0, lambda: 2.0]).weak_type
    assert lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type


# ---- while_loop and fori_loop


def test_while_loop():
    f = lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, 1.0))
    check_value(f, np.int32(10), expected=(10, 1024))
    check_value(f, np.int32(0), expected=(0, 1))


def test_while_loop_that_never_runs_keeps_types():
    out = lax.while_loop(lambda c: False, lambda c: c + jnp.float32(1), 0)
    assert out.dtype == np.float32 and out == 0


def test_while_loop_closes_over_arrays_in_condition_and_body():
    limit = jnp.asarray(A)
    f = lambda x: lax.while_loop(lambda c: (c < limit.sum() * x).all(), lambda c: c * 2 + limit, limit)
    check_value(f, np.float32(3))


def test_while_forward_derivatives():
    def f(x, y):
        return lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.sin(c[1] * y) + c[2], c[1]), (0, x, y))[1:]

    check_derivatives(f, 0.7, 1.3)
    check_derivatives(f, A, A[::-1])


def test_while_vmap_with_common_and_own_conditions():
    f = lambda n, x: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.5 + x), (0, x))
    check_vmap(f, np.int32(3), np.float32(0.5))
    check_vmap(f, np.int32(3), A)


def test_while_with_own_conditions_runs_each_example_by_itself():
    counted = []

    def body(c):
        jax.debug.callback(lambda _: counted.append(1), c[0])
        return c[0] + 1, c[1]

    f = lambda n: lax.while_loop(lambda c: c[0] < c[1], body, (0, n))[0]
    assert jax.jit(jax.vmap(f))(np.int32([1, 0, 5])).tolist() == [1, 0, 5]
    assert len(counted) == 6


def test_while_with_own_conditions_and_a_collective():
    f = lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + lax.psum(1.0, "i")), (0, 0.0))[1]
    assert jax.vmap(f, axis_name="i")(np.int32([1, 0, 3])).tolist() == [3, 0, 9]


def test_fori_loop_with_known_bounds_is_a_scan():
    jaxpr = jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x + i, 1.0))(2.0)
    assert [e.primitive.name for e in jaxpr.eqns] == ["scan"]
    jaxpr = jax.make_jaxpr(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x + i, 1.0))(2.0, 3)
    assert [e.primitive.name for e in jaxpr.eqns] == ["while"]


@pytest.mark.parametrize("bounds", [(0, 4), (2, 2), (5, 1), (-3, 2), (np.int32(0), np.int32(3)), (0.0, 3.5)])
def test_fori_loop(bounds):
    expected = 1.0
    for i in range(int(bounds[0]), int(bounds[1])):
        expected = expected * 2 + i
    check_value(lambda x: lax.fori_loop(*bounds, lambda i, c: c * 2 + i, x), np.float32(1), expected=expected)


def test_fori_loop_with_traced_bounds():
    f = lambda lo, hi, x: lax.fori_loop(lo, hi, lambda i, c: c * 0.5 + i, x)
    for lo, hi in [(0, 5), (2, 4), (3, 3), (4, 1)]:
        known = f(lo, hi, jnp.float32(1))
        assert_close(jax.jit(f)(np.int32(lo), np.int32(hi), jnp.float32(1)), known)
    check_vmap(lambda hi, x: f(0, hi, x), np.int32(3), A)


def test_fori_loop_bounds_of_one_weak_and_one_strong_type():
    assert jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, jnp.uint8(0)))(jnp.uint8(5)) == 10


def test_fori_loop_unroll():
    f = lambda unroll: lax.fori_loop(0, 7, lambda i, c: c * 1.5 + i, 1.0, unroll=unroll)
    for unroll in (1, 2, 7, True, False):
        np.testing.assert_allclose(f(unroll), f(None), rtol=1e-6)


def test_disable_jit_shows_concrete_values():
    seen = []

    def body(i, c):
        seen.append((int(i), float(c)))
        return c + 1

    with jax.disable_jit():
        lax.fori_loop(0, 2, body, 0.0)
        lax.while_loop(lambda c: float(c) < 2, lambda c: c + 1, 0.0)
        lax.scan(lambda c, x: (c + float(x), None), 0.0, A)
        lax.cond(A[0] > 0, lambda x: float(x), lambda x: x, 1.0)
        lax.switch(1, [lambda x: x, lambda x: float(x)], 1.0)
    assert seen == [(0, 0.0), (1, 1.0)]


# ---- cond and switch


def test_cond():
    f = lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: x * 3, x)
    check_value(f, True, np.float32(5), expected=6)
    check_value(f, False, np.float32(5), expected=15)


def test_cond_call_forms():
    inc, dec = lambda x: x + 1, lambda x: x - 1
    assert lax.cond(True, inc, dec, operand=2.0) == 3
    assert lax.cond(False, inc, dec, operand=2.0) == 1
    assert lax.cond(True, 3.0, inc, 4.0, dec) == 4
    assert lax.cond(False, 3.0, inc, 4.0, dec) == 3
    assert lax.cond(True, lambda x: 1, lambda x: 2, operand=None) == 1
    assert lax.cond(pred=False, true_fun=lambda: 1, false_fun=lambda: 2) == 2
    assert lax.cond(2, lambda: 1, lambda: 2) == 1
    assert lax.cond(0.0, lambda: 1, lambda: 2) == 2
    assert lax.cond(np.bool_(True), lambda a, b: a + b, lambda a, b: a - b, 3, 4) == 7


def test_eager_cond_runs_the_branch_taken_only():
    ran = []
    report = lambda name: jax.debug.callback(lambda: ran.append(name))
    lax.cond(True, lambda: report("true"), lambda: report("false"))
    jax.jit(lambda p: lax.cond(p, lambda: report("true"), lambda: report("false")))(False)
    assert ran == ["true", "false"]


def test_cond_derivatives():
    def f(x, y):
        return lax.cond(x > 0.5, lambda x, y: (jnp.sin(x) * y, x), lambda x, y: (y, jnp.exp(x * y)), x, y)

    check_derivatives(f, 0.7, 1.3)
    check_derivatives(f, 0.2, 1.3)
    weights = jnp.asarray(M)
    check_derivatives(lambda x: lax.cond(x.sum() > 0, lambda: weights.T @ x, lambda: x[:3] * 2), A)


def test_cond_branch_without_tangent():
    f = lambda x: lax.cond(x > 0, lambda x: jnp.zeros_like(x), lambda x: x * x, x)
    assert jax.grad(f)(2.0) == 0 and jax.grad(f)(-2.0) == -4
    assert jax.jit(jax.grad(f))(-2.0) == -4
    assert jax.jvp(f, (-2.0,), (1.0,))[1] == -4


def test_cond_vmap_every_combination():
    f = lambda p, x, y: lax.cond(p, lambda x, y: x * y, lambda x, y: jnp.sin(x), x, y)
    check_vmap(f, True, np.float32(2), np.float32(3))
    check_vmap(f, True, A, A[::-1])
    check_vmap(jax.grad(f, (1, 2)), True, np.float32(2), np.float32(3))


def heavy(x):
    for _ in range(12):
        x = jnp.sin(x) + x
    return lax.fori_loop(0, 3, lambda i, c: c * 1.1, x)


def test_cond_vmap_of_heavy_branches_runs_each_example_by_itself():
    f = lambda p, x: lax.cond(p, heavy, lambda x: x * 2, x)
    jaxpr = jax.make_jaxpr(jax.vmap(f))(A > 2, A)
    assert [e.primitive.name for e in jaxpr.eqns][-1] == "scan"
    check_vmap(f, True, A)
    check_derivatives(lambda x: jax.vmap(f)(np.array([True, False, True, False]), x), A / 4)


def test_nan_in_the_branch_not_taken_does_not_reach_the_gradient():
    f = lambda x: lax.cond(x > 0, jnp.log, lambda x: x * 2, x)
    xs = np.float32([0, 1, -1])
    assert jax.grad(lambda x: jax.vmap(f)(x).sum())(xs).tolist() == [2, 1, 2]
    assert jax.vmap(jax.grad(f))(xs).tolist() == [2, 1, 2]


def test_switch():
    branches = [lambda x: x, lambda x: 10 * x, lambda x: -x]
    for i in (-5, 0, 1, 2, 7):
        want = [3.0, 30.0, -3.0][min(max(i, 0), 2)]
        check_value(lambda i, x: lax.switch(i, branches, x), np.int32(i), np.float32(3), expected=want)
    assert lax.switch(1, branches, operand=3) == 30
    assert lax.switch(9, [lambda: 1]) == 1
    assert jax.jit(lambda i: lax.switch(i, branches, 2.0))(np.uint8(2)) == -2


def test_switch_transformations():
    branches = [jnp.sin, lambda x: x * x, lambda x: jnp.full_like(x, 2.0), jnp.exp]
    for i in range(4):
        check_derivatives(lambda x: lax.switch(i, branches, x), A / 3)
        check_derivatives(lambda x: lax.switch(jnp.argmax(x) % 4 * 0 + i, branches, x), A / 3, order=1)
    check_vmap(lambda i, x: lax.switch(i, branches, x), np.int32(2), A / 3)


def test_switch_with_many_branches():
    branches = [lambda x, k=k: x * k + heavy(x * 0) for k in range(30)]
    got = jax.vmap(lambda i: lax.switch(i, branches, 2.0))(np.arange(30))
    np.testing.assert_allclose(got, 2.0 * np.arange(30), rtol=1e-6)


def test_cond_inside_scan():
    body = lambda c, x: (lax.cond(c > 1, lambda c: c * 0.5, lambda c: c + x, c), c)
    check_value(lambda xs: lax.scan(body, 0.0, xs), A)
    check_derivatives(lambda xs: lax.scan(body, 0.1, xs), A / 3)
    check_vmap(lambda xs: lax.scan(body, 0.0, xs), A)


# ---- map and associative_scan


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 4, 9, 0])
def test_map(batch_size):
    f = lambda x: {"y": x["a"] * 2, "z": x["b"].sum()}
    got = lax.map(f, {"a": A, "b": M}, batch_size=batch_size)
    np.testing.assert_allclose(got["y"], A * 2)
    np.testing.assert_allclose(got["z"], M.sum(1), rtol=1e-5)


def test_map_transformations():
    check_derivatives(lambda m: lax.map(lambda r: jnp.sin(r) * r.sum(), m), M)
    check_vmap(lambda m: lax.map(lambda r: r * r.sum(), m), M)
    assert lax.map(lambda x: x * 2, jnp.ones((0, 3))).shape == (0, 3)
    assert lax.map(lambda x: x * 2, jnp.ones((0, 3)), batch_size=2).shape == (0, 3)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    x = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)
    flip = (lambda v: v[:, ::-1]) if reverse else (lambda v: v)
    got = lax.associative_scan(jnp.add, x, reverse=reverse, axis=1)
    np.testing.assert_allclose(got, flip(np.cumsum(flip(x), 1)), rtol=1e-5, atol=1e-5)
    got = lax.associative_scan(jnp.add, x.T, reverse=reverse)
    np.testing.assert_allclose(got, flip(np.cumsum(flip(x), 1)).T, rtol=1e-5, atol=1e-5)


@pytest.mark.share(3)
@pytest.mark.parametrize("n", range(1, 11))
def test_associative_scan_of_short_rows(n):
    """Whichever way halves are brought together: as along another axis, signs of zeros among it."""
    numbers = np.where(np.arange(3 * n).reshape(3, n) % 4 == 1, np.float32(-0.0), np.float32(1.5)) * (np.arange(n) - 2)
    for f, x in ((jnp.multiply, np.float32(numbers)), (jnp.logical_or, numbers > 2), (jnp.maximum, np.int8(numbers))):
        along_rows = jax.jit(lambda x, f=f: lax.associative_scan(f, x, axis=1))(x)
        along_columns = jax.jit(lambda x, f=f: lax.associative_scan(f, x, axis=0))(x.T)
        assert along_rows.dtype == x.dtype
        assert np.asarray(along_rows).tobytes() == np.asarray(along_columns).T.tobytes()
    check_derivatives(
        lambda x: lax.associative_scan(jnp.multiply, x, axis=1), np.linspace(0.5, 1.5, 2 * n).reshape(2, n)
    )


def test_functions_of_namedtuples_may_return_tuples():
    class Sums(NamedTuple):
        total: Any
        factor: Any

    elems = Sums(jnp.arange(5.0), jnp.full(5, 2.0))
    for container in (tuple, list):
        combine = lambda x, y, container=container: container((x.total + y.total, x.factor * y.factor))
        for scan in (lax.associative_scan, jax.jit(lax.associative_scan, static_argnums=0)):
            got = scan(combine, elems)
            assert type(got) is Sums
            np.testing.assert_array_equal(got.total, [0, 1, 3, 6, 10])
            np.testing.assert_array_equal(got.factor, [2, 4, 8, 16, 32])
        reduced = lax.reduce(elems, Sums(0.0, 1.0), combine, (0,))
        assert type(reduced) is container and tuple(map(float, reduced)) == (10.0, 32.0)


def test_associative_scan_of_trees_and_booleans():
    compose = lambda f, g: {"a": g["a"] * f["a"], "b": g["a"] * f["b"] + g["b"]}
    coefficients = {"a": M[:, 0], "b": M[:, 1]}
    got = check_value(lambda c: lax.associative_scan(compose, c), coefficients)
    a, b = 1.0, 0.0
    for i in range(4):
        a, b = M[i, 0] * a, M[i, 0] * b + M[i, 1]
        np.testing.assert_allclose([got["a"][i], got["b"][i]], [a, b], rtol=1e-5)
    flags = np.array([True, True, False, True])
    assert lax.associative_scan(jnp.logical_and, flags).tolist() == [True, True, False, False]
    check_derivatives(lambda x: lax.associative_scan(jnp.multiply, x), A, order=2)


# ---- custom solves


def newton(f, x0):
    return lax.while_loop(lambda c: jnp.abs(f(c)) > 1e-6, lambda c: c - f(c) / jax.grad(f)(c), x0)


def root(a):
    return lax.custom_root(lambda x: x**3 - a, 1.0, newton, lambda g, y: y / g(1.0))


def test_custom_root():
    np.testing.assert_allclose(root(8.0), 2, rtol=1e-5)
    np.testing.assert_allclose(jax.grad(root)(8.0), 1 / 12, rtol=1e-4)
    np.testing.assert_allclose(jax.jit(jax.grad(root))(8.0), 1 / 12, rtol=1e-4)
    np.testing.assert_allclose(jax.grad(jax.grad(root))(8.0), -2 / 9 / 32, rtol=1e-3)
    np.testing.assert_allclose(jax.vmap(jax.grad(root))(np.float32([1, 8])), [1 / 3, 1 / 12], rtol=1e-4)
    np.testing.assert_allclose(jax.jvp(root, (8.0,), (2.0,))[1], 1 / 6, rtol=1e-4)


def test_custom_root_of_trees_with_aux():
    def solve(f, guess):
        return {"x": guess["x"] - f(guess)["x"]}, jnp.float32(7)

    def f(m):
        run = lambda v: {"x": v["x"] - m}
        return lax.custom_root(run, {"x": jnp.zeros(4)}, solve, lambda g, y: y, has_aux=True)

    out, aux = f(jnp.asarray(A))
    assert aux == 7 and out["x"].tolist() == A.tolist()
    assert jax.grad(lambda m: f(m)[0]["x"].sum())(jnp.asarray(A)).tolist() == [1] * 4


SPD = (W @ W.T + np.eye(3)).astype(np.float32)


def linear_solve(a, b, **options):
    inverse = lambda mv, r: jnp.asarray(np.linalg.inv(SPD)) @ r
    return lax.custom_linear_solve(lambda x: a @ x, b, inverse, **options)


def test_custom_linear_solve():
    b = M[0]
    for options in (
        {"symmetric": True},
        {"transpose_solve": lambda vm, r: jnp.asarray(np.linalg.inv(SPD).T) @ r},
    ):
        f = lambda a, b: linear_solve(a, b, **options)  # noqa: B023
        np.testing.assert_allclose(f(SPD, b), np.linalg.solve(SPD, b), rtol=1e-4)
        got = jax.grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1))(SPD, b)
        x = np.linalg.solve(SPD, b)
        adjoint = np.linalg.solve(SPD.T, 2 * x)
        np.testing.assert_allclose(got[1], adjoint, rtol=1e-3)
        np.testing.assert_allclose(got[0], -np.outer(adjoint, x), rtol=1e-3, atol=1e-5)
        assert_close(jax.jit(jax.grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1)))(SPD, b), got)
        check_vmap(lambda b: f(SPD, b), b)  # noqa: B023


def test_custom_linear_solve_forward_without_transpose_solve():
    f = lambda b: linear_solve(SPD, b)
    _, t = jax.jvp(f, (M[0],), (M[1],))
    np.testing.assert_allclose(t, np.linalg.solve(SPD, M[1]), rtol=1e-4)
    with pytest.raises(TypeError, match="transpose_solve required for backwards mode"):
        jax.grad(lambda b: f(b).sum())(M[0])


# ---- printed forms


def lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def test_printed_scan_and_its_gradient():
    jaxpr = jax.make_jaxpr(jax.grad(lambda xs: lax.scan(lambda c, x: (c * x, None), 1.0, xs)[0]))(A[:3])
    assert lines(str(jaxpr)) == lines("""
{ lambda ; a:f32[3]. let
    _:f32[] b:f32[3] = scan[
      jaxpr={ lambda ; c:f32[] d:f32[]. let
          e:f32[] = convert_element_type[new_dtype=float32 weak_type=False] c
          f:f32[] = mul e d
        in (f, e) }
      length=3
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] 1.0:f32[] a
    _:f32[] g:f32[3] = scan[
      jaxpr={ lambda ; h:f32[] i:f32[] j:f32[]. let
          k:f32[] = mul j h
          l:f32[] = mul h i
        in (l, k) }
      length=3
      num_carry=1
      num_consts=0
      reverse=True
      unroll=1
    ] 1.0:f32[] a b
  in (g,) }""")


def test_printed_while():
    jaxpr = jax.make_jaxpr(lambda a: lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * a), (0, 1.0)))(2.0)
    assert lines(str(jaxpr)) == lines("""
{ lambda ; a:f32[]. let
    b:i32[] c:f32[] = while[
      body_jaxpr={ lambda ; d:f32[] e:i32[] f:f32[]. let
          g:i32[] = add e 1:i32[]
          h:f32[] = mul f d
        in (g, h) }
      body_nconsts=1
      cond_jaxpr={ lambda ; i:i32[] j:f32[]. let
          k:bool[] = lt i 10:i32[]
        in (k,) }
      cond_nconsts=0
    ] a 0:i32[] 1.0:f32[]
  in (b, c) }""")


def test_printed_cond_with_a_constant():
    ones = jnp.ones(1)

    def f(x, y, z):
        return lax.cond(x >= 0, lambda y, z: ones + z, lambda y, z: y, y, z)

    assert lines(str(jax.make_jaxpr(f)(1.0, jnp.ones(1), 2.0))) == lines("""
{ lambda a:f32[1]; b:f32[] c:f32[1] d:f32[]. let
    e:bool[] = ge b 0.0:f32[]
    f:i32[] = convert_element_type[new_dtype=int32 weak_type=False] e
    g:f32[1] = cond[
      branches=(
        { lambda ; h:f32[1] i:f32[1] j:f32[]. let  in (i,) }
        { lambda ; k:f32[1] l:f32[1] m:f32[]. let
            n:f32[] = convert_element_type[new_dtype=float32 weak_type=False] m
            o:f32[1] = add k n
          in (o,) }
      )
    ] f a c d
  in (g,) }""")


# ---- errors


ERRORS = {
    "carry by path": (
        lambda: lax.scan(lambda c, x: ({"a": jnp.ones(2), "b": jnp.int32(1)}, x), {"a": 1.0, "b": 2.0}, None, length=2),
        TypeError,
        r"c\['a'\] has type float32\[\] but.*float32\[2\], so the shapes do not match;"
        r"[\s\S]*c\['b'\].*the dtypes do not match",
    ),
    "carry keys": (
        lambda: lax.scan(lambda c, x: ({"a": c["a"]}, x), {"a": 1.0, "b": 2.0}, None, length=2),
        TypeError,
        r"same pytree structure[\s\S]*carry c is a <class 'dict'> with 2 children.*"
        r"symmetric difference of key sets: \{'b'\}",
    ),
    "fori carry by path": (
        lambda: lax.fori_loop(0, 3, lambda i, c: jnp.ones(2), 1.0),
        TypeError,
        r"carry c has type float32\[\]",
    ),
    "traced fori carry by path": (
        lambda: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: jnp.ones(2), 1.0))(3),
        TypeError,
        r"fori_loop body[\s\S]*carry c has type float32\[\]",
    ),
    "strong carry of another dtype": (
        lambda: lax.scan(lambda c, x: (c * 1.5, c), jnp.int32(1), A),
        TypeError,
        r"carry c has type int32\[\] but.*float32\[\], so the dtypes do not match",
    ),
    "traced length": (
        lambda: jax.jit(lambda n: lax.scan(lambda c, _: (c, None), 0, None, length=n))(3),
        jax.errors.ConcretizationTypeError,
        r"`length` argument to `scan` expects a concrete `int`",
    ),
    "negative length": (
        lambda: lax.scan(lambda c, _: (c, None), 0, None, length=-1),
        ValueError,
        r"must not be negative, got -1",
    ),
    "negative unroll": (
        lambda: lax.scan(lambda c, x: (c, x), 0, A, unroll=-1),
        ValueError,
        r"`unroll` must be a `bool` or a non-negative",
    ),
    "carry of strings": (
        lambda: lax.scan(lambda c, x: (c, x), "a", None, length=2),
        TypeError,
        r"'a' of type <class 'str'> is not a valid JAX",
    ),
    "y of strings": (
        lambda: lax.scan(lambda c, x: (c, "a"), 1.0, None, length=2),
        TypeError,
        r"traced for scan returned a value of type <class 'str'> at output component \[1\]",
    ),
    "unroll with traced bounds": (
        lambda: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2))(3),
        ValueError,
        r"Can only use `unroll` in `fori_loop` if the loop bounds are statically known",
    ),
    "bounds of two types": (
        lambda: lax.fori_loop(jnp.int32(0), jnp.int8(3), lambda i, c: c, 0),
        TypeError,
        r"got int32 and int8",
    ),
    "vector bound": (
        lambda: lax.fori_loop(0, jnp.arange(3), lambda i, c: c, 0),
        TypeError,
        r"integer scalars.*of shape \(3,\)",
    ),
    "branches by path": (
        lambda: lax.cond(True, lambda: {"a": 1.0, "b": A}, lambda: {"a": 1, "b": A}),
        TypeError,
        r"The output of true_fun at path \['a'\] has type float32\[\].*"
        r"false_fun has type int32\[\], so the dtypes",
    ),
    "switch branches": (
        lambda: lax.switch(1, [lambda: 1, lambda: jnp.ones(2)]),
        TypeError,
        r"switch branches must have equal output types",
    ),
    "vector index": (
        lambda: lax.switch(jnp.arange(2), [lambda: 1, lambda: 2]),
        TypeError,
        r"Branch index must be scalar",
    ),
    "boolean index": (
        lambda: lax.switch(True, [lambda: 1, lambda: 2]),
        TypeError,
        r"Index type must be an integer, got True as bool",
    ),
    "complex predicate": (
        lambda: lax.cond(3j, lambda: 1, lambda: 2),
        TypeError,
        r"either boolean or number, got complex64",
    ),
    "operands twice": (
        lambda: lax.cond(True, lambda x: x, lambda x: x, 1.0, operand=2.0),
        TypeError,
        r"if 'operand' keyword is passed then no positional operands",
    ),
    "a number in associative_scan": (
        lambda: lax.associative_scan(jnp.add, {"a": A, "b": 1.0}),
        AttributeError,
        r"elems\['b'\] must be an array .* got 1.0, a float",
    ),
    "lengths in associative_scan": (
        lambda: lax.associative_scan(lambda a, b: a, (A, A[:2])),
        ValueError,
        r"must have the same first dimension",
    ),
    "associative_scan structure": (
        lambda: lax.associative_scan(lambda a, b: (a, b), A),
        TypeError,
        r"must return a tree like its arguments",
    ),
    "matvec shape": (
        lambda: lax.custom_linear_solve(lambda x: x[0], A, lambda mv, b: b),
        ValueError,
        r"matvec\(\) output shapes must match",
    ),
    "solve shape": (
        lambda: lax.custom_linear_solve(lambda x: x, A, lambda mv, b: b[0]),
        ValueError,
        r"solve\(\) output shapes must match",
    ),
    "root structure": (
        lambda: lax.custom_root(lambda x: (x, x), 1.0, lambda f, x: x, lambda g, y: y),
        TypeError,
        r"f\(\) must return a tree",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    call, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        call()


# ---- caches


def test_equal_bodies_made_on_the_spot_share_their_programs():
    def primitives():
        return [jax.make_jaxpr(lambda x: lax.scan(lambda c, y: (c * y, c), 1.0, x))(A).eqns[0] for _ in range(2)]

    first, second = primitives()
    assert first.params["jaxpr"] is second.params["jaxpr"]
    other = jax.make_jaxpr(lambda x: lax.scan(lambda c, y: (c * y, y), 1.0, x))(A).eqns[0]
    assert other.params["jaxpr"] is not first.params["jaxpr"]
    jax.clear_caches()
    assert primitives()[0].params["jaxpr"] is not first.params["jaxpr"]


def test_bodies_that_differ_in_a_literal_are_told_apart():
    scaled = lambda k: lax.scan(lambda c, x: (c + k * x, None), 0.0, A)[0]
    assert [float(scaled(k)) for k in (1.0, 2.0, -1.0, np.float32(3))] == [10, 20, -10, 30]
    signed = lambda zero: 1 / lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, zero * 1.0), (0, 1.0))[1]
    assert signed(0.0) == np.inf and signed(-0.0) == -np.inf


def test_what_a_body_only_hands_on_stays_outside_the_loop():
    f = lambda xs: lax.scan(lambda c, x: (c, {"x": x, "c": c[0], "y": x * c[1]}), (1.5, 2.0), xs)
    (eqn,) = jax.make_jaxpr(f)(A).eqns
    assert eqn.params["num_carry"] == 0 and len(eqn.outvars) == 2
    (a, b), ys = check_value(f, A)
    assert (a, b) == (1.5, 2.0) and ys["x"].tolist() == A.tolist() and ys["c"].tolist() == [1.5] * 4
    check_derivatives(lambda a, xs: lax.scan(lambda c, x: (c, (x, c * x, c)), a, xs), 1.5, A)
    check_vmap(lambda a, xs: lax.scan(lambda c, x: (c, (x, c * x, c)), a, xs), np.float32(1.5), A)


# ---- results that nobody reads


def pruned_equation(f, *args):
    """The only equation that is left of ``f`` when the results nobody reads are gone."""
    closed = jax.make_jaxpr(f)(*args)
    smaller = pruned(closed, [True] * len(closed.out_avals))
    check_jaxpr(smaller)
    assert_close(eval_jaxpr(smaller.jaxpr, smaller.consts, *args), eval_jaxpr(closed.jaxpr, closed.consts, *args))
    return smaller.eqns[-1]


def test_results_that_nobody_reads_are_not_computed():
    triple = lambda c, x: ((c[0] + x, c[1] * x, c[2] + c[1]), (c[0] * 2, jnp.sin(x)))
    eqn = pruned_equation(lambda xs: lax.scan(triple, (0.0, 1.0, 0.0), xs)[0][1], A)
    assert eqn.params["num_carry"] == 1 and len(eqn.outvars) == 1
    eqn = pruned_equation(lambda xs: lax.scan(triple, (0.0, 1.0, 0.0), xs)[0][2], A)
    assert eqn.params["num_carry"] == 2
    eqn = pruned_equation(lambda xs: lax.scan(triple, (0.0, 1.0, 0.0), xs)[1][1], A)
    assert eqn.params["num_carry"] == 0
    loop = lambda n, x: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2, c[2] * c[1]), (0, x, x))
    eqn = pruned_equation(lambda n, x: loop(n, x)[1], np.int32(3), np.float32(2))
    assert len(eqn.outvars) == 2
    branches = lambda p, x, y: lax.cond(p, lambda: (x * y, x), lambda: (y, x + 1))[1]
    eqn = pruned_equation(branches, True, np.float32(1), np.float32(2))
    assert len(eqn.invars) == 2 and len(eqn.outvars) == 1
    called = lambda x: jax.jit(lambda x, y: (x * y, jnp.sin(y)))(x, x)[1]
    assert len(pruned_equation(called, np.float32(1)).outvars) == 1


def test_effects_in_a_loop_stay_though_nobody_reads_its_results():
    seen = []

    def f(xs):
        body = lambda c, x: (c + x, jax.debug.callback(lambda v: seen.append(float(v)), x))
        return lax.scan(body, 0.0, xs) and xs

    jax.jit(f)(A)
    assert seen == A.tolist()


# ---- random keys


def test_keys_are_carried_scanned_over_and_chosen():
    key = random.key(0)

    def draw(key, _):
        key, sub = random.split(key)
        return key, random.normal(sub)

    expected, k = [], key
    for _ in range(3):
        k, y = draw(k, None)
        expected.append(y)
    f = lambda key: lax.scan(draw, key, None, length=3)[1]
    check_value(f, key, expected=expected)
    np.testing.assert_allclose(
        lax.map(random.normal, random.split(key, 3)), jax.vmap(random.normal)(random.split(key, 3))
    )
    walk = lambda k: lax.while_loop(lambda c: c[1] < 3, lambda c: (random.fold_in(c[0], 7), c[1] + 1), (k, 0))[0]
    keys = random.split(key, 4)
    assert random.key_data(jax.vmap(walk)(keys)).tolist() == [random.key_data(walk(k)).tolist() for k in keys]
    pick = lambda p, k: random.key_data(lax.cond(p, lambda k: random.fold_in(k, 1), lambda k: k, k))
    got = jax.vmap(pick)(np.array([True, False]), keys[:2])
    assert got.tolist() == [pick(True, keys[0]).tolist(), pick(False, keys[1]).tolist()]


def test_derivatives_of_loops_that_draw_random_numbers():
    key = random.key(0)
    step = lambda i, c: (c[0] * random.normal(c[1]), random.fold_in(c[1], i))
    known = jax.grad(lambda x: lax.fori_loop(0, 3, step, (x, key))[0])(1.0)
    traced = lambda x, n: lax.fori_loop(0, n, step, (x, key))[0]
    for g in (jax.grad(traced), jax.jit(jax.grad(traced))):
        np.testing.assert_allclose(g(1.0, jnp.int32(3)), known, rtol=1e-6)


# ---- flags and threads


@pytest.mark.parametrize("f", [lambda g, x: g(x), lambda g, x: jax.jit(g)(x)])
def test_debug_nans_names_the_operation_inside_a_loop(f):
    log_of = lambda x: lax.scan(lambda c, y: (jnp.log(y), c), 0.0, x)
    until = lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, jnp.log(c[1] - 9)), (0, x[0]))
    for g in (log_of, until):
        with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"invalid value \(nan\).*log"):
            f(g, -A)


def test_every_derived_jaxpr_is_well_formed():
    jax.clear_caches()
    with jax.enable_checks(True):
        check_derivatives(rnn, W, M[0], M)
        check_vmap(jax.grad(lambda w, x: rnn(w, x, M)[0].sum()), W, M[0])
        f = lambda p, x: lax.cond(p, lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x, x), jnp.exp, x)
        check_vmap(jax.grad(f, 1), True, np.float32(0.5))


def test_no_tracer_is_kept(young):
    jax.clear_caches()
    with jax.checking_leaks():
        jax.jit(jax.grad(lambda xs: lax.scan(lambda c, x: (jnp.sin(c) * x, c), 1.0, xs)[0]))(A)
        jax.vmap(jax.grad(lambda x: lax.cond(x > 2, jnp.sin, lambda x: x * x, x)))(A)
        jax.jit(jax.vmap(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0)))(np.int32([1, 2]))


def test_threads_share_bodies():
    failures = []

    def run():
        for _ in range(5):
            total = jax.grad(lambda xs: lax.scan(lambda c, x: (c * x, c), 1.0, xs)[0])(A)
            if not np.allclose(total, [24, 12, 8, 6]):
                failures.append(total)

    jax.clear_caches()
    threads = [threading.Thread(target=run) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_callbacks_of_batched_branches_and_loops_happen_for_the_examples_that_reach_them():
    seen = []

    def show(v):
        seen.append(float(v))
        return v

    call = lambda x: io_callback(show, jax.ShapeDtypeStruct((), np.float32), x)
    xs = np.array([-1, 2, 3], np.float32)
    programs = (
        (lambda x: lax.cond(x > 0, call, lambda x: x, x), [2, 3]),
        (lambda x: lax.while_loop(lambda c: c < 3, lambda c: call(c) + 1, x), [-1, 0, 1, 2, 2]),
        (lambda x: lax.fori_loop(0, (x > 2) + 1, lambda i, c: call(c), x), [-1, 2, 3, 3]),
    )
    for f, wanted in programs:
        for g in (jax.vmap(f), jax.jit(jax.vmap(f))):
            seen.clear()
            jax.block_until_ready(g(xs))
            assert sorted(seen) == wanted


def test_an_empty_scan_under_disable_jit_is_traced():
    with jax.disable_jit():
        carry, ys = lax.scan(lambda c, x: (c + x, x > 0), 0.0, np.zeros(0, np.float32))
    assert float(carry) == 0 and ys.shape == (0,) and ys.dtype == bool


def test_what_is_weak_stays_weak_through_scan_and_linear_solves():
    """Cotangents of weak items of a scan, and the solution for a weak right-hand side, as in JAX."""
    weak = jnp.full(4, 2.0)
    product = lambda c, x: (c * x, c)
    last = lambda xs: lax.scan(product, jnp.float32(1), xs)[0]
    solved = lambda b: lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda _, b: b / 2.0, lambda _, b: b / 2.0)
    for run in (lambda f: f, jax.jit):
        for xs in (weak, jnp.asarray(A)):
            gradient = run(jax.grad(last))(xs)
            assert gradient.weak_type == xs.weak_type
            assert_close(gradient, np.prod(xs) / np.asarray(xs))
        for b in (3.0, jnp.float32(3)):
            found = [run(g(solved))(b) for g in (lambda f: f, jax.grad)]
            assert [x.weak_type for x in found] == [type(b) is float] * 2
            assert_close(found, [np.float32(1.5), np.float32(0.5)])
