"""The flag `jax_flush_subnormals`: programs take subnormal numbers as zeros, on every thread, and nothing else does."""

import ctypes
import platform

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native import host, link
from catena.core.config import override
from catena.runtime import float_control
from catena.runtime.native import Code

SMALL = np.float32(3e-39)
pytestmark = pytest.mark.skipif(
    platform.machine() not in float_control.CONTROLS, reason="no processor on which anything is set"
)


def _halves(x):
    return x * 0.5 + x * 0.25


def kept() -> bool:
    """Whether this thread computes with subnormal numbers."""
    return bool(np.multiply(np.full(3, SMALL), np.float32(0.5)).all())


def test_products_and_sums_are_zero_and_are_not_without_it():
    x = np.array([SMALL, -SMALL, 1.0, 0.0], np.float32)
    compiled = jax.jit(_halves)
    np.testing.assert_array_equal(compiled(x), x * np.float32(0.75))
    with override("jax_flush_subnormals", True):
        np.testing.assert_array_equal(compiled(x), [0, 0, 0.75, 0])
    np.testing.assert_array_equal(compiled(x), x * np.float32(0.75))
    assert kept()


@pytest.mark.parametrize("flush", [True, False])
def test_every_thread_does(flush):
    x = jnp.full(1 << 21, SMALL)
    with override("jax_flush_subnormals", flush):
        got = np.unique(np.asarray(jax.jit(_halves)(x)))
    assert got.tolist() == ([0.0] if flush else [np.float32(0.75) * SMALL])


def test_products_of_matrices_and_loops():
    def f(x):
        return jax.lax.fori_loop(0, 5, lambda i, c: c @ x, x)

    x = jnp.eye(40, dtype=jnp.float32) * np.float32(2.0**-23)  # in the end 2^-138
    assert (np.diag(jax.jit(f)(x)) == 2.0**-138).all()
    with override("jax_flush_subnormals", True):
        assert not np.asarray(jax.jit(f)(x)).any()


def test_products_are_not_looked_at_where_they_flush():
    text = lambda: jax.jit(lambda x: jnp.exp(x) * x).lower(np.ones(99, np.float32)).compile().as_text()
    with override("jax_flush_subnormals", True):
        assert "small_product" not in text()
    assert "small_product" in text() or platform.machine() != "x86_64"


def test_callbacks_compute_as_ever_and_programs_go_on_as_before():
    seen = []

    def ask(x):
        seen.append(kept())
        return x

    def f(x):
        y = jax.pure_callback(ask, jax.ShapeDtypeStruct(x.shape, x.dtype), x * 2)
        return y * np.float32(1e-20)

    x = np.full(4, 1e-20, np.float32)
    with override("jax_flush_subnormals", True):
        assert not np.asarray(jax.jit(f)(x)).any()
    assert np.asarray(jax.jit(f)(x)).all()
    assert seen == [True, True] and kept()


def test_a_program_that_raises_leaves_the_thread_as_it_was():
    def fail(x):
        raise RuntimeError("no")

    def f(x):
        return jax.pure_callback(fail, jax.ShapeDtypeStruct(x.shape, x.dtype), x * 2)

    with override("jax_flush_subnormals", True), pytest.raises(Exception, match="no"):
        jax.jit(f)(np.ones(3, np.float32))
    assert kept()


def test_threads_compute_as_the_one_that_asks_them():
    """Also where another library has set it, as those do that are compiled for fast arithmetic."""
    text = float_control.text() + (
        "define void @begin(ptr %kept) {\n  call void @flush_subnormals(ptr %kept)\n  ret void\n}\n"
        "define void @end(ptr %kept) {\n  call void @set_control(ptr %kept)\n  ret void\n}\n"
    )
    code = Code(link.compile_text(text, link.Times(), 0)[0], host.new_generator)
    begin, end = (_function(code.address(name)) for name in ("begin", "end"))
    x, compiled, words = jnp.full(1 << 21, SMALL), jax.jit(_halves), np.zeros(2, np.int64)
    compiled(x)
    begin(words.ctypes.data)
    try:
        got = compiled(x)
    finally:
        end(words.ctypes.data)
    assert np.unique(np.asarray(got)).tolist() == [0.0]
    assert kept() and np.asarray(compiled(x)).all()


def _function(address):
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


def test_other_processors_have_their_registers():
    assert "aarch64.set.fpcr" in float_control.text("aarch64")
    assert "llvm." not in float_control.text("riscv64")
