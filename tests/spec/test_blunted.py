"""Beside each "this is hard" and "this is impossible" of `spec/sharp-bits.md`: what is done about it here.

`test_sharp_bits.py` has what the page specifies. What works here and not in JAX stands in docs/differences.md.
"""

import logging

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, tools
from catena.core.config import override as config_override
from catena.experimental import checkify

total = 0.0
kept = None


def line(function, offset):
    """A line of a function, counted from its first."""
    return function.__code__.co_firstlineno + offset


# ---- pure functions: what an impure one does is not guaranteed


def prints_and_reads(x):
    print("Executing function")
    return x + total


def saves(x):
    global kept
    kept = x
    return x


def test_an_impure_function_is_reported_on(capsys):
    report = tools.purity(jax.jit(prints_and_reads))(4.0)
    assert [(x.kind, x.line) for x in report] == [
        ("effect", line(prints_and_reads, 1)),
        ("captured", line(prints_and_reads, 2)),
    ]
    (saved,) = tools.purity(saves)(4.0)
    assert (saved.kind, saved.line) == ("assigned", line(saves, 2)) and "keeps a tracer" in saved.what


def test_a_saved_tracer_says_where_it_was_made():
    jax.jit(saves)(4.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match=rf"saves at .*test_blunted.py:{line(saves, 0)}"):
        kept + 1


def test_an_iterator_in_a_loop_is_found():
    iterator = iter(range(10))
    report = tools.purity(lambda: lax.fori_loop(0, 10, lambda i, x: x + next(iterator), 0))()
    assert [x.kind for x in report] == ["consumed"], repr(report)
    assert "pass an array, and scan over it" in str(report[0])


# ---- in-place updates: an update whose result is dropped does nothing


def test_an_update_that_is_dropped_warns():
    @jax.jit
    def f(x):
        x.at[0].set(1.0)
        return x

    with pytest.warns(UserWarning, match=r"x\.at"):
        f(jnp.zeros(3))


def test_a_slice_of_a_length_that_is_not_known_says_what_to_write():
    with pytest.raises(IndexError, match=r"jax.lax.dynamic_slice\(x, \(i,\), \(3,\)\)(.|\n)*argument n"):
        jax.jit(lambda x, n: x[:n])(jnp.arange(5.0), 2)


# ---- out-of-bounds indexing: "raising an error can be difficult or impossible"


def test_out_of_bounds_is_an_error_where_asked_for():
    checked = checkify.checkify(jax.jit(lambda x, i: x[i]), errors=checkify.index_checks)
    error, _ = checked(jnp.arange(10), 11)
    with pytest.raises(checkify.JaxRuntimeError, match="out-of-bounds(.|\n)*11"):
        error.throw()
    error, value = checked(jnp.arange(10), 9)
    assert error.get() is None and int(value) == 9


def test_a_static_index_out_of_bounds_is_an_error_where_asked_for():
    with (
        config_override("jax_check_static_indices", True),
        pytest.raises(IndexError, match="index 11 out of bounds for axis 0 with size 10"),
    ):
        jax.jit(lambda x: x[11])(jnp.arange(10))


# ---- lists: "silent performance degradation"


def test_a_list_is_refused_by_name_and_place():
    with pytest.raises(TypeError) as caught:
        jnp.sum([1, 2, 3])
    assert "jnp.asarray" in caught.value.__notes__[0]


# ---- random numbers: "very easy to screw up"


def test_a_key_used_twice_is_found_with_and_without_running(tmp_path):
    script = tmp_path / "page.py"
    script.write_text(
        "from jax import random\nkey = random.PRNGKey(0)\n"
        "print(random.normal(key, shape=(1,)))\nprint(random.normal(key, shape=(1,)))\n"
    )
    assert [(x.first.line, x.line) for x in tools.lint(script)] == [(3, 4)]
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError, match="first used by normal at"):
        key = jax.random.key(0)
        jax.random.normal(key, (1,))
        jax.random.normal(key, (1,))


# ---- control flow: "more complicated", "more constraints"


def test_an_if_on_a_value_names_the_argument_and_the_cures():
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        jax.jit(lambda x: 3.0 if x < 3 else -4.0)(2)
    for words in ("argument x", "jnp.where", "jax.lax.cond", "static_argnames"):
        assert words in str(caught.value)


def test_static_arguments_that_change_a_lot_are_mentioned(caplog):
    f = jax.jit(lambda length: jnp.ones((length,)), static_argnums=0)
    with caplog.at_level(logging.WARNING, "catena"):
        for length in range(1, 9):
            f.lower(length)
    (record,) = caplog.records
    assert "length (static) changed: now 6, before 5 (it changed 5 times)" in record.getMessage()


def test_values_are_printed_and_not_tracers(capsys):
    @jax.jit
    def f(x):
        jax.debug.print("{}", x, ordered=True)
        y = 2 * x
        jax.debug.print("{}", y, ordered=True)
        return y

    f(2)
    assert capsys.readouterr().out == "2\n4\n"


def test_what_is_not_reached_is_not_printed(capsys):
    f = jax.jit(lambda x: lax.cond(x < 0, lambda: jax.debug.print("negative: {}", x), lambda: None))
    f(1.0)
    assert capsys.readouterr().out == ""
    f(-1.0)
    assert capsys.readouterr().out == "negative: -1.0\n"


def test_a_debugger_sees_values_inside_compiled_loops():
    def f(x):
        def body(carry, y):
            carry = carry + y
            return carry, carry

        return lax.scan(body, 0.0, x)[0]

    stop = tools.replay(jax.jit(f))(jnp.arange(5.0), until=line(f, 3), hit=4)
    assert float(stop["carry"]) == 6.0 and stop["x"].shape == (5,)


# ---- dynamic shapes: "all arrays must have static shape"


def test_the_pages_sum_of_a_mask_compiles():
    x = jnp.array([1, 2, jnp.nan, 3, 4])
    assert float(jax.jit(lambda x: x[~jnp.isnan(x)].sum())(x)) == 10.0


# ---- NaNs: "tricky situations", several frames up in the backward pass, not under pmap


def norm(x):
    square = jnp.sum(x**2)
    return jnp.sqrt(square)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.pmap], ids=["eager", "jit", "pmap"])
def test_a_nan_in_the_backward_pass_names_the_line_in_the_function(wrap):
    x = jnp.zeros((1, 3)) if wrap is jax.pmap else jnp.zeros(3)
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        wrap(jax.grad(norm))(x)
    assert f"test_blunted.py:{line(norm, 2)} (norm), in its derivative" in str(caught.value) or (
        f"test_blunted.py:{line(norm, 1)} (norm), in its derivative" in str(caught.value)
    )


def test_a_nan_in_a_compiled_loop_names_its_line():
    def body(carry, y):
        carry = carry - y
        return jnp.log(carry), None

    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=rf"log at .*:{line(body, 2)} \(body\)"):
        jax.jit(lambda x: lax.scan(body, 1.0, x)[0])(jnp.arange(4.0))


# ---- double precision: "at startup"; "64-bit convolutions" not everywhere


def test_64_bits_begin_and_end_anywhere():
    f = jax.jit(lambda x: x * 2)
    assert f(1.0).dtype == np.float32
    with jax.enable_x64(True):
        assert f(1.0).dtype == np.float64
    assert f(1.0).dtype == np.float32


def test_convolutions_have_64_bits_too():
    with jax.enable_x64(True):
        x = np.linspace(0.0, 1.0, 8)
        result = jax.jit(jnp.convolve)(x, x[:3])
        assert result.dtype == np.float64
        np.testing.assert_allclose(result, np.convolve(x, x[:3]), rtol=1e-14)
