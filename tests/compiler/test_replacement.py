"""Scalar replacement: loops that read what they wrote give what they do in Python, and do not read it from memory."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.graph import intervals, replacement
from catena.compiler.graph.forms import FORMS
from catena.compiler.interpret.program import run
from catena.compiler.machine import AARCH64, X86_64_V3
from catena.compiler.native import compile as compiler
from catena.transform.discharge import pure

SIZE = 40
X = np.arange(1, SIZE + 1) * 37 % 23


def mixed(*parts):
    """A number that says where it is from: small integers, exact in every dtype."""
    total = parts[0]
    for p in parts[1:]:
        total = jnp.minimum(total * 2, 99) + p
    return jnp.where(total > 60, total - 60, total)


def reads_in_loops(f, *args) -> int:
    """How many windows the loops of a program read at places that they compute."""
    region = intervals.bound(jax.jit(f).lower(*args).compiler_ir())
    replacement.replace(region)
    pending, count = [inner for v in region.live() if FORMS[v.form].control for inner in v.params.regions], 0
    while pending:
        each = pending.pop()
        count += sum(v.form == "dynamic_slice" for v in each.live())
        pending += [inner for v in each.live() if FORMS[v.form].control for inner in v.params.regions]
    return count


def check(f, *args):
    """The compiled program gives what the function does in Python, and so does the planned one for other machines."""
    with jax.disable_jit():
        expected = jax.tree.leaves(f(*args))
    compiled = jax.tree.leaves(jax.jit(f)(*args))
    for got, want in zip(compiled, expected, strict=True):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype
    closed = pure(jax.make_jaxpr(f)(*args))
    flat = [np.asarray(x) for x in jax.tree.leaves(args)]
    for machine in (AARCH64, X86_64_V3):
        for got, want in zip(run(compiler.program_of(closed, machine=machine), flat), expected, strict=True):
            np.testing.assert_array_equal(got, np.asarray(want))


def stencil(offsets, stride=1, start=4, trips=7):
    """Each element is made of those that lie so far from it."""

    def f(x):
        at = lambda n, x: x.at[stride * n].set(mixed(*(x[stride * n + d] for d in offsets)))
        return lax.fori_loop(start, start + trips, at, x)

    return f


STENCILS = {  # offsets, stride: how many reads are left
    ((-1,), 1): 0,
    ((-1, 1), 1): 1,
    ((-2, 1), 1): 1,
    ((-1, -2), 1): 0,
    ((-4, -1, -3, 2), 1): 1,
    ((-5,), 1): 1,
    ((0, -1), 1): 1,
    ((1,), 1): 1,
    ((-2, -1), 2): 1,
    ((-3, 3, -6), 3): 1,
    ((1,), -1): 0,
    ((-1, 2), -1): 1,
    ((-1,), 0): 1,
    ((0,), 0): 0,
}


@pytest.mark.parametrize("case", STENCILS, ids=str)
def test_what_was_written_is_handed_on(case):
    offsets, stride = case
    f = stencil(offsets, stride, start=6 if stride > 0 else -25)
    assert reads_in_loops(f, jnp.asarray(X)) == STENCILS[case]
    check(f, jnp.asarray(X))


@pytest.mark.share(2)
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("offsets", [(-1, 1), (-2, 2), (-3, -1)], ids=str)
def test_loops_of_few_iterations_begin_with_what_was_there(offsets, trips):
    check(stencil(offsets, trips=trips), jnp.asarray(X))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint16", "bool", "complex64", "int4"])
def test_dtypes(dtype):
    def f(x):
        at = lambda n, x: x.at[n].set(jnp.where(x[n + 1] == x[n - 1], x[n], x[n - 1]))
        return lax.fori_loop(1, SIZE - 1, at, x)

    check(f, jnp.asarray(X % 3, dtype))


def rows(read, sizes=(1, 4)):
    def f(x):
        def at(n, x):
            part = mixed(*(lax.dynamic_slice(x, (n + d, e), sizes) for d, e in read))
            return lax.dynamic_update_slice(x, part, (n, 1))

        return lax.fori_loop(2, 6, at, x)

    return f


ROWS = {
    ((-1, 1),): 0,
    ((-1, 1), (1, 1)): 1,
    ((-1, 0),): 1,  # a part of it
    ((-2, 1), (-1, 1)): 0,
    ((0, 1),): 1,
}


@pytest.mark.parametrize("read", ROWS, ids=str)
def test_rows(read):
    f, x = rows(read), jnp.asarray(X.reshape(8, 5))
    assert reads_in_loops(f, x) == ROWS[read]
    check(f, x)


def test_blocks_that_overlap_are_read_again():
    f = rows(((-2, 1),), (2, 4))
    x = jnp.asarray(X.reshape(8, 5))
    assert reads_in_loops(f, x) == 1
    check(f, x)


def test_a_block_that_lies_beyond_what_was_written_since():
    def f(x):
        at = lambda n, x: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (2 * n - 4,), (2,)) + 1, (2 * n,))
        return lax.fori_loop(2, 9, at, x)

    assert reads_in_loops(f, jnp.asarray(X)) == 0
    check(f, jnp.asarray(X))


def test_parts_of_another_size_are_read_again():
    def f(x):
        at = lambda n, x: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (n - 1,), (3,)).max(keepdims=True) + 1, (n,))
        return lax.fori_loop(2, 9, at, x)

    assert reads_in_loops(f, jnp.asarray(X)) == 1
    check(f, jnp.asarray(X))


def test_parts_that_are_moved_inside():
    def f(x):
        def at(n, x):
            x = lax.dynamic_update_slice(x, mixed(lax.dynamic_slice(x, (n - 1,), (1,)), 1), (n,))
            return lax.dynamic_update_slice(x, x[:1] + n, (n + 10,))  # all at the end

        return lax.fori_loop(SIZE - 5, SIZE + 3, at, x)

    assert reads_in_loops(f, jnp.asarray(X)) == 1
    check(f, jnp.asarray(X))


def test_large_parts_are_read_from_memory():
    x = jnp.asarray(np.arange(800).reshape(8, 100))
    f = lambda x: lax.fori_loop(1, 8, lambda n, x: x.at[n].set(x[n - 1] + x[n]), x)
    assert reads_in_loops(f, x) == 2
    check(f, x)


# ---- several updates, and loops of all kinds


def test_several_updates_in_an_iteration():
    def f(x):
        def at(n, x):
            x = x.at[2 * n].set(mixed(x[2 * n - 1], x[2 * n + 1]))  # of the second update, one iteration ago
            return x.at[2 * n + 1].set(mixed(x[2 * n], x[2 * n - 1], x[2 * n - 2], x[2 * n + 2]))

        return lax.fori_loop(2, 12, at, x)

    assert reads_in_loops(f, jnp.asarray(X)) == 2  # those in front
    check(f, jnp.asarray(X))


def test_an_update_that_may_be_anywhere_lies_between():
    def f(x, places):
        at = lambda n, x: x.at[n].set(mixed(x[n - 1], x[n])).at[places[n]].set(n)
        return lax.fori_loop(1, SIZE, at, x)

    args = jnp.asarray(X), jnp.asarray(X)
    assert reads_in_loops(f, *args) == 3
    check(f, *args)


def test_an_update_elsewhere_lies_between():
    f = lambda x: lax.fori_loop(1, 9, lambda n, x: x.at[n].set(mixed(x[n - 1], x[n])).at[SIZE - n].set(n), x)
    assert reads_in_loops(f, jnp.asarray(X)) == 2  # n and SIZE - n lie apart, which intervals do not say
    check(f, jnp.asarray(X))
    g = lambda x: lax.fori_loop(1, 9, lambda n, x: x.at[n].set(mixed(x[n - 1], x[n])).at[n + 20].set(n), x)
    assert reads_in_loops(g, jnp.asarray(X)) == 1
    check(g, jnp.asarray(X))


def test_two_arrays():
    def f(x, y):
        at = lambda n, c: (c[0].at[n].set(mixed(c[1][n - 1], c[0][n])), c[1].at[n].set(mixed(c[0][n - 1], c[1][n - 1])))
        return lax.fori_loop(1, SIZE, at, (x, y))

    args = jnp.asarray(X), jnp.asarray(X[::-1].copy())
    assert reads_in_loops(f, *args) == 1
    check(f, *args)


def test_copies_of_what_is_handed_on():
    f = lambda x: lax.fori_loop(1, 9, lambda n, x: x.at[n].set(x[n - 1]), x)
    check(f, jnp.asarray(X))
    f = lambda x: lax.fori_loop(2, 9, lambda n, x: x.at[n].set(x[n - 2]).at[n + 20].set(x[n - 1]), x)
    check(f, jnp.asarray(X))


def test_loops_of_unknown_length():
    def f(x, low, high):
        return lax.fori_loop(low, high, lambda n, x: x.at[n].set(mixed(x[n - 1], x[n + 1])), x)

    for bounds in ((3, 9), (5, 5), (0, 4), (-3, 50), (SIZE - 2, SIZE + 3), (7, 2)):
        check(f, jnp.asarray(X), *map(jnp.int32, bounds))


def test_conditions_that_read_the_array():
    def f(x):
        goes_on = lambda c: (c[0] < SIZE) & (c[1][c[0]] != 7)
        return lax.while_loop(goes_on, lambda c: (c[0] + 1, c[1].at[c[0]].set(mixed(c[1][c[0] - 1], 1))), (1, x))

    check(f, jnp.asarray(X))


@pytest.mark.parametrize("reverse", [False, True])
def test_places_that_are_items(reverse):
    def f(x):
        def at(x, n):
            return x.at[n].set(mixed(x[n - 1], x[n + 1])), x[n]

        return lax.scan(at, x, jnp.arange(1, SIZE - 1), reverse=reverse)

    assert reads_in_loops(f, jnp.asarray(X)) == 2  # n, and that of n - 1 and n + 1 which is yet to be written
    check(f, jnp.asarray(X))


def test_nested_loops():
    def f(x):
        row = lambda i, x: lax.fori_loop(
            1, x.shape[1], lambda j, x: x.at[i, j].set(mixed(x[i - 1, j - 1], x[i, j - 1], x[i - 1, j])), x
        )
        return lax.fori_loop(1, x.shape[0], row, x)

    x = jnp.asarray(X.reshape(5, 8))
    assert reads_in_loops(f, x) == 3  # two of the row before, and one before each row
    check(f, x)


def test_references():
    def f(x):
        ref = jax.new_ref(x)

        def at(n, carry):
            ref[n] = mixed(ref[n - 1], ref[n + 1])
            return carry

        lax.fori_loop(0, 3, lambda _, carry: lax.fori_loop(1, SIZE - 1, at, carry), None)
        return jax.ref.freeze(ref)

    assert reads_in_loops(f, jnp.asarray(X)) == 2
    check(f, jnp.asarray(X))


def test_unrolled_loops():
    f = lambda x: lax.fori_loop(1, 30, lambda n, x: x.at[n].set(mixed(x[n - 1], x[n + 1])), x, unroll=3)
    check(f, jnp.asarray(X))


def test_places_that_wrap_around_are_not_followed():
    def f(x):
        def at(c, _):
            n, x = c
            before = lax.dynamic_slice(x, (n + jnp.int8(99),), (1,), allow_negative_indices=False)
            new = lax.dynamic_update_slice(x, mixed(before, 1), (n + jnp.int8(100),), allow_negative_indices=False)
            return (n + jnp.int8(1), new), None

        return lax.scan(at, (jnp.int8(29), x), length=9)[0][1]

    assert reads_in_loops(f, jnp.asarray(X)) == 1
    check(f, jnp.asarray(X))


def test_a_counter_that_wraps_around_is_not_followed():
    def f(x):
        body = lambda c, _: ((c[0] + jnp.int8(50), c[1].at[c[0]].set(mixed(c[1][c[0] - jnp.int8(50)], 3))), None)
        return lax.scan(body, (jnp.int8(-100), x), length=9)[0][1]

    check(f, jnp.asarray(X))
