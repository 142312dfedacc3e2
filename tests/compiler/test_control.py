"""Loops, branches, indexing and callbacks, with hand-made regions and jaxprs."""

from types import SimpleNamespace

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from compiled import Closed, check, compile_fn, f32, i32, run

rng = np.random.default_rng(2)


def normal(*shape, dtype=np.float32):
    return np.asarray(rng.normal(size=shape)).astype(dtype)


def test_while_with_scalars():
    n = np.int32(1000)
    cond = Closed(lambda b, n, i, x: [b.map("lt", i, n)], ((), i32), ((), i32), ((), f32))
    body = Closed(
        lambda b, i, x: [
            b.map("add", i, b.constant(np.int32(1))),
            b.map("add", x, b.map("mul", b.convert(i, f32), b.constant(np.float32(0.5)))),
        ],
        ((), i32),
        ((), f32),
    )
    check(
        lambda b, n, i, x: b.while_loop(cond, [n], body, [], [i, x]),
        [np.int32(1000), np.float32(249750.0)],
        n,
        np.int32(0),
        np.float32(0),
    )
    check(
        lambda b, n, i, x: b.while_loop(cond, [n], body, [], [i, x]),
        [np.int32(0), np.float32(3)],
        np.int32(-1),
        np.int32(0),
        np.float32(3),
    )


def test_while_swaps_its_carries():
    cond = Closed(lambda b, i, x, y: [b.map("lt", i, b.constant(np.int32(5)))], ((), i32), ((200,), f32), ((200,), f32))
    body = Closed(
        lambda b, i, x, y: [b.map("add", i, b.constant(np.int32(1))), y, b.map("add", x, y)],
        ((), i32),
        ((200,), f32),
        ((200,), f32),
    )
    x, y = np.ones(200, np.float32), np.ones(200, np.float32)
    got = run(lambda b, i, x, y: b.while_loop(cond, [], body, [], [i, x, y]), np.int32(0), x, y)
    np.testing.assert_array_equal(got[1], np.full(200, 8, np.float32))
    np.testing.assert_array_equal(got[2], np.full(200, 13, np.float32))
    np.testing.assert_array_equal(x, 1)


def test_scan_recurrence():
    w, xs, h = normal(8, 8) / 4, normal(50, 8), np.zeros(8, np.float32)

    def cell(b, w, h, x):
        new = b.map("tanh", b.map("add", b.dot_general(h, w, (((0,), (0,)), ((), ())), f32), x))
        return [new, b.map("mul", new, new)]

    body = Closed(cell, ((8, 8), f32), ((8,), f32), ((8,), f32))
    for reverse in (False, True):
        ys, c = [], h
        for x in xs[::-1] if reverse else xs:
            c = np.tanh(c @ w + x)
            ys.append(c * c)
        ys = np.stack(ys[::-1] if reverse else ys)
        f = lambda b, w, h, xs: sum(b.scan(body, [w], [h], [xs], 50, reverse), [])  # noqa: E731
        check(f, [c, ys], w, h, xs, rtol=1e-4, atol=1e-5)


def test_scan_of_length_zero_and_large_carry():
    body = Closed(lambda b, c, x: [b.map("add", c, x), b.reduce("sum", c, (0,))], ((3000,), f32), ((3000,), f32))
    c, xs = normal(3000), normal(7, 3000)
    want, sums = c.copy(), []
    for x in xs:
        sums.append(want.sum())
        want = want + x
    check(
        lambda b, c, xs: sum(b.scan(body, [], [c], [xs], 7), []),
        [want, np.array(sums, np.float32)],
        c,
        xs,
        rtol=1e-4,
        atol=1e-3,
    )
    empty = np.zeros((0, 3000), np.float32)
    check(lambda b, c, xs: sum(b.scan(body, [], [c], [xs], 0), []), [c, np.zeros(0, np.float32)], c, empty)


def test_updates_in_a_loop_do_not_copy():
    n = 20000
    cond = Closed(lambda b, i, x: [b.map("lt", i, b.constant(np.int32(n)))], ((), i32), ((n,), f32))

    def step(b, i, x):
        previous = b.dynamic_slice(x, [b.map("sub", i, b.constant(np.int32(1)))], (1,))
        return [
            b.map("add", i, b.constant(np.int32(1))),
            b.dynamic_update_slice(x, b.map("add", previous, b.full((1,), np.float32(1))), [i]),
        ]

    body = Closed(step, ((), i32), ((n,), f32))
    exe = compile_fn(lambda b, i, x: b.while_loop(cond, [], body, [], [i, x]), np.int32(1), np.zeros(n, np.float32))
    assert exe.as_text().count("memcpy") <= 1
    np.testing.assert_array_equal(exe(np.int32(1), np.zeros(n, np.float32))[1], np.arange(n, dtype=np.float32))


def test_branch():
    branches = [
        Closed(lambda b, x: [b.map("neg", x)], ((40,), f32)),
        Closed(lambda b, x: [x], ((40,), f32)),
        Closed(lambda b, x: [b.map("exp", x)], ((40,), f32)),
    ]
    x = normal(40)
    for i, want in ((0, -x), (1, x), (2, np.exp(x)), (-3, -x), (9, np.exp(x))):
        check(lambda b, i, x: b.branch(i, branches, [x]), want, np.int32(i), x, rtol=1e-6)


def test_loops_nest_and_hold_branches():
    inner = Closed(lambda b, c, x: [b.map("add", c, x)], ((), f32), ((), f32))
    odd = [Closed(lambda b, x: [x], ((), f32)), Closed(lambda b, x: [b.map("neg", x)], ((), f32))]

    def outer(b, c, row):
        (total,), _ = b.scan(inner, [], [c], [row], 6)
        sign = b.branch(b.convert(b.map("gt", total, b.constant(np.float32(0))), i32), odd, [total])
        return [total, sign[0]]

    body = Closed(outer, ((), f32), ((6,), f32))
    xs = normal(9, 6)
    totals = np.cumsum(xs.sum(1), dtype=np.float32)
    check(
        lambda b, c, xs: sum(b.scan(body, [], [c], [xs], 9), []),
        [totals[-1], -np.abs(totals)],
        np.float32(0),
        xs,
        rtol=1e-4,
        atol=1e-5,
    )


def gather_numbers(**k):
    base = {
        "operand_batching_dims": (),
        "start_indices_batching_dims": (),
        "scatter_indices_batching_dims": (),
    }
    return SimpleNamespace(**{**base, **k})


def test_gather_modes():
    x, i = normal(10, 20), np.array([[3], [-1], [9], [12], [0]], np.int32)
    rows = gather_numbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    check(lambda b, x, i: b.gather(x, i, rows, (1, 20), "clip"), x[np.clip(i[:, 0], 0, 9)], x, i)
    want = np.where(((i >= 0) & (i < 10)), x[np.clip(i[:, 0], 0, 9)], np.float32(-7))
    check(lambda b, x, i: b.gather(x, i, rows, (1, 20), "fill", np.float32(-7)), want, x, i)
    points = gather_numbers(offset_dims=(), collapsed_slice_dims=(0, 1), start_index_map=(0, 1))
    ij = np.stack([rng.integers(0, 10, 33), rng.integers(0, 20, 33)], 1)
    check(lambda b, x, i: b.gather(x, i, points, (1, 1), "promise"), x[ij[:, 0], ij[:, 1]], x, ij)


@pytest.mark.parametrize("kind", ["set", "add", "mul", "min", "max", "sub"])
def test_scatter(kind):
    x, i, u = normal(10, 20), np.array([[3], [5], [3], [12], [-1]], np.int32), normal(5, 20)
    rows = gather_numbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    fn = {
        "set": lambda a, u: u,
        "add": np.add,
        "mul": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
        "sub": np.subtract,
    }[kind]
    want = x.copy()
    for k, j in enumerate(i[:, 0]):
        if 0 <= j < 10:
            want[j] = fn(want[j], u[k])
    check(lambda b, x, i, u: b.scatter(kind, x, i, u, rows, "fill"), want, x, i, u)
    points = gather_numbers(update_window_dims=(), inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=(0, 1))
    ij, v = np.stack([rng.integers(0, 10, 300), rng.integers(0, 20, 300)], 1), normal(300)
    want = x.copy()
    for (p, q), new in zip(ij, v):
        want[p, q] = fn(want[p, q], new)
    check(lambda b, x, i, u: b.scatter(kind, x, i, u, points, "promise"), want, x, ij, v, rtol=1e-5, atol=1e-6)


def test_dynamic_slices_clamp():
    x, u = normal(10, 12), normal(3, 4)
    for i, j in ((2, 3), (-5, 100), (8, 0)):
        p, q = min(max(i, 0), 7), min(max(j, 0), 8)
        check(
            lambda b, x, i, j: b.dynamic_slice(x, [i, j], (3, 4)),
            x[p : p + 3, q : q + 4],
            x,
            np.int32(i),
            np.int32(j),
        )
        want = x.copy()
        want[p : p + 3, q : q + 4] = u
        check(lambda b, x, u, i, j: b.dynamic_update_slice(x, u, [i, j]), want, x, u, np.int32(i), np.int32(j))


@pytest.mark.parametrize("axis,reverse", [(0, False), (1, False), (1, True), (0, True)])
def test_cumulative(axis, reverse):
    x = normal(30, 45)
    flip = (lambda a: np.flip(a, axis)) if reverse else (lambda a: a)
    for kind, fn in (
        ("sum", np.cumsum),
        ("prod", np.cumprod),
        ("max", np.maximum.accumulate),
        ("min", np.minimum.accumulate),
    ):
        check(
            lambda b, x, kind=kind: b.cumulative(kind, x, axis, reverse),
            flip(fn(flip(x), axis)),
            x,
            rtol=1e-4,
            atol=1e-5,
        )
    want = flip(np.logaddexp.accumulate(flip(x), axis))
    check(lambda b, x: b.cumulative("logsumexp", x, axis, reverse), want, x, rtol=1e-5, atol=1e-5)


def test_reduce_general():
    body = Closed(lambda b, p, q, x, y: [b.map("add", p, x), b.map("max", q, y)], *[((), f32)] * 4)
    x, y = normal(20, 30), normal(20, 30)
    check(
        lambda b, x, y: b.reduce_general([x, y], [b.constant(np.float32(0)), b.constant(np.float32(-9))], (1,), body),
        [x.sum(1), y.max(1)],
        x,
        y,
        rtol=1e-4,
        atol=1e-5,
    )


def test_reduce_window():
    x = normal(3, 30)
    sums = np.stack([x[:, i : i + 5 : 2].sum(1) for i in range(0, 26, 3)], 1)
    check(
        lambda b, x: b.reduce_window(
            "sum", x, b.constant(np.float32(0)), (1, 3), (1, 3), ((0, 0), (0, 0)), (1, 1), (1, 2)
        ),
        sums,
        x,
        rtol=1e-5,
        atol=1e-5,
    )
    padded = np.pad(x, ((0, 0), (1, 1)), constant_values=-np.inf)
    pool = np.stack([padded[:, i : i + 3].max(1) for i in range(30)], 1)
    check(
        lambda b, x: b.reduce_window(
            "max", x, b.constant(np.float32(-np.inf)), (1, 3), (1, 1), ((0, 0), (1, 1)), (1, 1), (1, 1)
        ),
        pool,
        x,
    )


def test_host_call_and_its_errors():
    x = normal(5, 6)
    out = [SimpleNamespace(shape=(5, 6), dtype=f32), SimpleNamespace(shape=(), dtype=f32)]
    exe = compile_fn(lambda b, x: b.host_call(lambda a: (a * 2, a.sum()), [b.map("neg", x)], out), x)
    a, s = exe(x)
    np.testing.assert_array_equal(a, x * -2)
    np.testing.assert_allclose(s, -x.sum(), rtol=1e-6)

    def fails(a):
        raise KeyError("from the callback")

    exe = compile_fn(lambda b, x: b.host_call(fails, [x], out), x)
    with pytest.raises(KeyError, match="from the callback"):
        exe(x)
    with pytest.raises(KeyError, match="from the callback"):
        exe(x)


def test_stacks_remember_a_loop():
    n = 20
    cond = Closed(lambda b, i, s: [b.map("lt", i, b.constant(np.int32(n)))], ((), i32), ((), np.uint64))
    body = Closed(
        lambda b, i, s: [
            b.map("add", i, b.constant(np.int32(1))),
            b.stack_write(s, i, b.full((5,), b.convert(b.map("mul", i, i), f32))),
        ],
        ((), i32),
        ((), np.uint64),
    )

    def program(b, i):
        _, s = b.while_loop(cond, [], body, [], [i, b.stack_new((5,), f32)])
        return [
            b.stack_length(s),
            b.stack_read(s, b.constant(np.int32(7)), (5,), f32),
            b.stack_read(s, b.constant(np.int32(n)), (5,), f32),
        ]

    check(program, [np.int32(n), np.full(5, 49, np.float32), np.zeros(5, np.float32)], np.int32(0))


def test_update_that_reads_the_memory_it_writes():
    x = normal(4, 6)

    def f(b, x):
        y = b.map("mul", x, x)
        flat = b.reshape(y, (24,))
        update = b.map("neg", b.slice(b.reverse(y, (0, 1)), (0, 0), (1, 6)))
        return b.dynamic_update_slice(flat, b.reshape(update, (6,)), [b.constant(np.int32(20))])

    want = (x * x).reshape(24)
    want[18:] = -(x * x)[::-1, ::-1][0]
    check(f, want, x)


def test_programs_with_many_small_values():
    x = normal(50)

    def f(b, x):
        parts = [b.reduce("sum", b.map("mul", x, b.constant(np.float32(i))), (0,)) for i in range(1500)]
        return b.concatenate([b.reshape(p, (1,)) for p in parts], 0)

    check(f, np.arange(1500, dtype=np.float32) * x.sum(), x, rtol=1e-3, atol=1e-2)


def test_cumulative_along_every_axis_of_a_batch():
    x = normal(3, 4, 5, dtype=np.float64)
    for axis in range(3):
        check(lambda b, x, axis=axis: b.cumulative("sum", x, axis, False), x.cumsum(axis), x, rtol=1e-12)
        check(
            lambda b, x, axis=axis: b.cumulative("max", b.transpose(x, (2, 1, 0)), axis, True),
            np.flip(np.maximum.accumulate(np.flip(x.T, axis), axis), axis),
            x,
        )


@pytest.mark.share(2)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 9])
def test_items_of_loops_are_counted_on(length, reverse):
    """Their places are not multiplied anew in each iteration, in whichever order it goes through them."""
    xs, ys = normal(9, 3), normal(9)

    def run(xs, ys):
        inner = lambda c, y: (0.5 * c + y, c - y)
        row = lambda c, x: ((d := lax.scan(inner, c + x[0], ys, reverse=not reverse))[0], (d[1], x[::-1] * c))
        return lax.scan(row, jnp.float32(1), xs, reverse=reverse)

    with jax.disable_jit():
        expected = run(xs[:length], ys[:length])
    found = jax.jit(run)(xs[:length], ys[:length])
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_a_number_that_a_branch_makes_goes_on_in_a_register():
    """By way of the stacked output each iteration would wait until what it writes can be read again."""

    def step(total, x):
        total = lax.cond(x > 0, lambda t: 0.5 * t + x, lambda t: jnp.sin(t) - x, total)
        return total, total

    f = jax.jit(lambda x: lax.scan(step, jnp.float32(0), x))
    x = normal(50)
    text = f.lower(x).compile().as_text("program").split("\n")
    at = next(i for i, line in enumerate(text) if line.strip() == "branch")
    assert text[at + 1].split("->")[1].strip() == "slot[4]"
    last, all_ = f(x)
    total, expected = 0.0, []
    for each in x.astype(float):
        total = 0.5 * total + each if each > 0 else np.sin(total) - each
        expected.append(total)
    np.testing.assert_allclose(all_, expected, rtol=1e-5, atol=1e-5)
    assert last == all_[-1]
