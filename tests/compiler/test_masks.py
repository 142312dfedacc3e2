"""Accesses whose lanes are all off are led to memory that is there; what is mostly padding computes nothing."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of
from catena.core.config import override
from catena.core.context import context

X = np.random.default_rng(0).standard_normal((40, 64), np.float32)
PADS = {  # shape, padding: whether lanes are asked, to choose the address; masks. Between rows, loops are cut
    "rows": ((40, 64), ((5, 700), (0, 0)), True, True),  # of the last vector, wherever it lies
    "rows of one vector": ((40, 16), ((5, 700), (1, 0)), False, True),
    "columns": ((40, 64), ((0, 0), (3, 9000)), True, True),
    "a border": ((40, 64), ((1, 1), (1, 1)), False, True),
    "a border of columns": ((40, 64), ((0, 0), (1, 1)), False, True),
}


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, texts compare places too")
@pytest.mark.parametrize("case", PADS)
def test_where_masked_lanes_read(case):
    (rows, columns), config, asked, masked = PADS[case]
    f, x = lambda x: jnp.pad(x * 2, config), X[:rows, :columns]
    np.testing.assert_array_equal(jax.jit(f)(x), np.pad(x * 2, config))
    written = text_of(jax.make_jaxpr(f)(x), machine=X86_64_V4)
    assert ("llvm.masked.load" in written) is masked
    assert bool(re.search(r"select i1 %\S+, ptr %\S+, ptr %", written)) is asked
    assert ("llvm.vector.reduce.or" in written) is asked


def _reflected(x):
    padded = jnp.pad(x, ((0, 0), (1, 1), (0, 0)), mode="reflect")
    return jnp.sum(padded[:, :-2] + padded[:, 2:])


CHOICES = {  # of rows, whether they are by one condition
    "by places": (_reflected, True),
    "by data": (lambda x: jnp.where(x[:, :, :1] > 0, x, -x), False),
}


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, each element is read by itself")
@pytest.mark.parametrize("case", CHOICES)
def test_a_choice_that_is_the_same_in_all_lanes(case):
    """Data choose by masks: short rows would be as many jumps that are not foreseen."""
    f, jumps = CHOICES[case]
    written = text_of(jax.make_jaxpr(f)(np.ones((8, 8, 500), np.float32)), machine=X86_64_V4)
    assert bool(re.search(r"select i1 %\S+, <16 x float>", written)) is jumps


def test_sums_of_reflected_rows():
    x = np.random.default_rng(5).integers(-9, 9, (8, 8, 500)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)), mode="reflect")
    assert jax.jit(_reflected)(x) == (padded[:, :-2] + padded[:, 2:]).sum()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "bfloat16", "float16", "float64", "int64", "complex64"])
def test_choices_by_rows(dtype):
    with override("jax_enable_x64", True):
        x = jnp.asarray(np.random.default_rng(3).integers(0, 9, (70, 37)) - 4.0).astype(dtype)
        chosen = jax.jit(lambda x, c: (jnp.where(c, x, x * x), jnp.where(c, x.real > 1, x.real < 1)))(
            x, x[:, :1].real > 0
        )
        for got, yes, no in zip(chosen, (x, x.real > 1), (x * x, x.real < 1), strict=True):
            np.testing.assert_array_equal(got, np.where(np.asarray(x[:, :1].real > 0), np.asarray(yes), np.asarray(no)))


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int16", "bfloat16", "float16"])
def test_pads_of_narrow_elements(dtype):
    """Vectors of them are read whole, in part, and not at all; their places are compared by bytes."""
    xs = [jnp.asarray(np.arange(3 * n).reshape(3, n) % 97, dtype) for n in (1, 15, 31, 33, 64, 130)]
    configs = [((1, 1), (0, 1)), ((0, 0), (40, 3)), ((0, 2), (2, 200))]
    f = lambda np, xs: [np.pad(x, config) for x in xs for config in configs]
    for got, expected in zip(jax.jit(lambda *xs: f(jnp, xs))(*xs), f(np, [np.asarray(x) for x in xs]), strict=True):
        np.testing.assert_array_equal(np.asarray(got), expected)


def test_gradients_of_slices():
    f = jax.grad(lambda x: jnp.sum(jnp.sin(x[10:13]) * x[11:14, :1]))
    big = np.random.default_rng(0).standard_normal((5000, 7), np.float32)
    expected = np.zeros_like(big)
    expected[10:13] += np.cos(big[10:13]) * big[11:14, :1]
    expected[11:14, :1] += np.sin(big[10:13]).sum(1, keepdims=True)
    np.testing.assert_allclose(jax.jit(f)(big), expected, rtol=1e-5, atol=1e-6)


def test_scattered_rows_that_are_dropped():
    at = np.array([3, 2**31 - 1, 39, 40, -(2**31)], np.int32)
    got = jax.jit(lambda x, i: x.at[i].add(1.0, mode="drop"))(X, at)
    expected = X.copy()
    expected[[3, 39]] += 1
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("columns", [33, 100, 7])
def test_rows_that_segments_drop(columns):
    """A branch passes over them where a row is two vectors and more."""
    x = np.random.default_rng(1).integers(-9, 9, (500, columns)).astype(np.float32)
    i = np.random.default_rng(2).integers(0, 20, 500).astype(np.int32)
    f = lambda x, i: jax.ops.segment_sum(x, i, num_segments=10)
    np.testing.assert_array_equal(jax.jit(f)(x, i), [x[i == k].sum(0) for k in range(10)])


def test_what_is_mostly_padding_is_computed_first():
    """A gather in a pad of many times its elements is not made once for each place of the pad."""
    f = lambda x, i: jnp.pad(x[i], ((0, 5000), (0, 0)))
    i = np.arange(7, dtype=np.int32)
    lines = jax.jit(f).lower(X, i).compile().as_text("program").splitlines()
    assert any("7 x 64" in line or "launch 448" in line for line in lines)
    np.testing.assert_array_equal(jax.jit(f)(X, i)[:7], X[:7])


@pytest.mark.parametrize("border, loops", [(1, 1), (32, 2)])
def test_what_is_computed_for_a_pad_is_computed_before_it_where_the_border_is_wide(border, loops):
    f = lambda x: jnp.pad(x[0] * x[1] + x[2] * x[3], ((border, border),))
    assert jax.jit(f).lower(X).compile().as_text("program").count("launch") == loops
    np.testing.assert_allclose(jax.jit(f)(X), np.pad(X[0] * X[1] + X[2] * X[3], border), rtol=1e-6)


DROPPED = {"all": (0, 50), "half": (0, 100), "none": (50, 99), "some below": (-60, 50)}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", DROPPED)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_updates_beyond_an_array(name, dtype):
    """In it, beyond it and below it, one by one."""
    at = np.random.default_rng(0).integers(*DROPPED[name], 300).astype(dtype)
    y = np.random.default_rng(1).integers(0, 9, 300).astype("float32")
    with jax.enable_x64(True):
        add, most = (
            jax.jit(getattr(jax.ops, f"segment_{kind}"), static_argnums=2)(y, at, 50) for kind in ("sum", "max")
        )
    expected, largest = np.zeros(50), np.full(50, -np.inf)
    inside = (at >= 0) & (at < 50)
    np.add.at(expected, at[inside], y[inside])
    np.maximum.at(largest, at[inside], y[inside])
    np.testing.assert_array_equal(add, expected)
    np.testing.assert_array_equal(most, largest)


def test_updates_that_are_dropped_do_not_wait_for_each_other():
    """What they read there is not what they write; that an index is inside is one comparison."""
    f = lambda y, i: jax.ops.segment_sum(y, i, num_segments=50)
    written = text_of(jax.make_jaxpr(f)(np.ones(300, "float32"), np.ones(300, "int32")), machine=X86_64_V4)
    elsewhere = re.findall(r"select i1 %\S+, ptr %\S+, ptr (%\S+)", written)
    assert len(elsewhere) == len(set(elsewhere)) == 2
    assert "icmp ult i32" in written


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, texts compare places too")
def test_what_is_read_elsewhere_is_zero():
    """Parts of a batch that are chosen by their number: the others' products are made of what is read elsewhere, which
    must be no subnormal number.
    """
    f = jax.vmap(lambda x: jax.nn.softmax(-x, 1))
    joined = lambda x: f(jnp.concatenate([jnp.roll(x, 3, 1) * k for k in range(1, 5)]))
    written = text_of(jax.make_jaxpr(joined)(np.ones((64, 5, 25), "f")), machine=X86_64_V4)
    elsewhere = set(re.findall(r"select i1 %\S+, ptr %\S+, ptr (%s\d+)", written))
    assert elsewhere
    assert all(re.search(rf"memset\S*\(ptr {slot}, i8 0, i64 \d+,", written) for slot in elsewhere)


def test_what_a_choice_takes_of_no_lane_is_read_all_the_same():
    """Lanes of a load that are all off read nothing; of memory that nobody has touched, that takes a hundred cycles."""
    chosen = lambda x, k: jnp.where(jnp.arange(64) < k, x, 0)
    through_a_sum = lambda x, k: jnp.where(jnp.arange(64) < k, x + 1, 0)
    for f, is_chosen in ((chosen, True), (through_a_sum, True), (lambda x, k: x + k, False)):
        text = text_of(jax.make_jaxpr(f)(X[0], np.float32(3)), machine=X86_64_V4)
        assert ("load volatile <16 x float>" in text) == is_chosen
    for k in (0, 3, 64):
        np.testing.assert_array_equal(jax.jit(chosen)(X[0], k), np.where(np.arange(64) < k, X[0], 0))
