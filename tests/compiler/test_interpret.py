"""The null device: programs interpreted in NumPy give what compiled ones do, on whatever machine they are planned for."""

import os
from fractions import Fraction

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit.ops import _FORMS, _INTEGER
from catena.compiler.emit.program import RULES as EMITTED
from catena.compiler.graph.types import TYPES
from catena.compiler.interpret import operations
from catena.compiler.interpret.program import RULES, run
from catena.compiler.machine import AARCH64, X86_64_V3
from catena.compiler.native import compile as compiler
from catena.compiler.plan.program import ARENA
from catena.compiler.plan.steps import Launch, Rows
from catena.compiler.vector_math import NAMES
from catena.core.errors import CompileError
from golden_programs import CASES

# Cases that take long to compile or to interpret: only `make test-null` runs them.
LARGE = {
    "chain", "softmax", "layer_norm", "sum_large", "transpose_large", "optimiser", "scatter_many", "sort_large", "dot",
    "dot_epilogue", "dot_long", "dot_complex", "fft_large", "logistic_map", "cross_entropy_gradient", "sums",
    "softmax_gradient", "dot_transposed", "dot_tall", "random", "lstm", "lstm_gradient", "transcendental",
    "sort_integers", "random_split", "attention_gradient", "median", "search_and_unique", "argsort",
}  # fmt: skip
# Iterations that double what roundings differ by each time: there is no common result to compare.
CHAOTIC = {"scan_matrix", "nested_loops"}
LEFT_OUT = CHAOTIC if os.environ.get("CATENA_TEST_DEVICE") == "null" else LARGE | CHAOTIC
HERE = [name for name in CASES if name not in LEFT_OUT]

# Sums are added up in another order there, and in double precision here; functions of the library are within a few
# units of the last place (`make accuracy`). Both are relative to the greatest number of a result, since what goes
# through a sum or a difference can be no better than that; long chains of them add up their roundings.
UNITS = 200


def arguments(name: str) -> list[np.ndarray]:
    """Operands for which a case has a result that determines itself: loops end, factorisations exist."""
    rng = np.random.default_rng(len(name))
    found = [_operand(rng, t) for t in CASES[name].arguments]
    if name.startswith("cholesky"):
        (a,) = found
        return [a @ np.swapaxes(a, -1, -2) + np.eye(a.shape[-1], dtype=a.dtype)]
    if name.startswith("attention"):  # weights that keep the size of what they multiply
        return [x * np.float32(0.125) for x in found]
    if name.startswith("while"):
        return [np.abs(x) * x.dtype.type(1 if x.dtype.kind == "i" else 0.1) for x in found]
    return found


def _operand(rng, t) -> np.ndarray:
    dtype = np.dtype(t.dtype)
    if dtype.kind == "b":
        return rng.random(t.shape) < 0.5
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0, 20, t.shape)).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(t.shape) + 1j * rng.standard_normal(t.shape)).astype(dtype)
    if dtype.name == "int4":
        return rng.integers(-8, 8, t.shape).astype(dtype)
    return rng.standard_normal(t.shape).astype(dtype)


def planned(name: str, machine=None):
    case = CASES[name]
    with jax.enable_x64(any(d in str(t.dtype) for t in case.arguments for d in ("64", "128"))):
        closed = jax.make_jaxpr(case.function)(*case.arguments)
    return closed, compiler.program_of(closed, case.donated, machine)


def assert_alike(got, want, units=UNITS):
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        if not jnp.issubdtype(w.dtype, jnp.inexact):
            np.testing.assert_array_equal(g, w)
            continue
        unit = float(jnp.finfo(w.dtype).eps)
        g, w = (x.astype(complex) for x in (g, w))
        finite = np.isfinite(w)
        np.testing.assert_array_equal(np.isfinite(g), finite)
        np.testing.assert_array_equal(np.isnan(g), np.isnan(w))
        np.testing.assert_array_equal(g[np.isinf(w)], w[np.isinf(w)])
        bound = units * unit * np.abs(w[finite]).max(initial=0)
        np.testing.assert_allclose(g[finite], w[finite], rtol=0, atol=bound)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", HERE)
def test_interpreted_programs_give_what_compiled_ones_do(name):
    args, (closed, program) = arguments(name), planned(name)
    before = [a.copy() for a in args]
    got = run(program, args)
    for a, b in zip(args, before):  # what is donated is left as it is
        np.testing.assert_array_equal(a, b)
    compiled = compiler.compile_jaxpr(closed, donated=CASES[name].donated)
    assert_alike(got, getattr(compiled, "_executable", compiled)(*args))  # on the null device, what it stands for


@pytest.mark.parametrize("name", HERE[::5])
def test_a_program_means_the_same_planned_for_any_machine(name):
    args = arguments(name)
    first, *others = (run(planned(name, m)[1], args) for m in (X86_64_V3, AARCH64, X86_64_V3._replace(threads=False)))
    for results in others:
        assert_alike(results, first)


def test_reductions_in_parts_and_groups_of_rows():
    def f(x):
        e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
        return e / jnp.sum(e, axis=1, keepdims=True), jnp.sum(x), jnp.argmax(x), jnp.min(x)

    x = np.random.default_rng(0).standard_normal((403, 1001)).astype(np.float32)
    closed = jax.make_jaxpr(f)(x)
    program = compiler.program_of(closed, machine=X86_64_V3._replace(threads=True))
    steps = [step for _, step in program.steps()]
    assert any(isinstance(s, Launch) and s.parts for s in steps) and any(isinstance(s, Rows) for s in steps)
    e = np.exp(x.astype(np.float64))
    want = [e / e.sum(1, keepdims=True), x.astype(np.float64).sum(), x.argmax(), x.min()]
    for g, w in zip(run(program, [x]), want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5)


def test_every_step_and_every_operation_is_interpreted():
    assert set(RULES) == set(EMITTED)
    assert set(_FORMS) == set(operations._FORMS) and set(_INTEGER) <= set(operations._INTEGER)
    assert set(NAMES) <= set(operations._FLOAT)


def test_what_nobody_has_written_is_seen():
    closed = jax.make_jaxpr(lambda x: jnp.sort(jnp.cos(x)) * 2)(jnp.ones(500))
    program = compiler.program_of(closed, machine=X86_64_V3)
    x = np.linspace(0, 1, 500, dtype=np.float32)
    assert not np.isnan(run(program, [x])).any()
    del program.body.steps[0]
    assert np.isnan(run(program, [x])).all()


def test_what_reaches_beyond_its_memory_is_refused():
    closed = jax.make_jaxpr(lambda x: jnp.sort(jnp.cos(x)) * 2)(jnp.ones(500))
    program = compiler.program_of(closed, machine=X86_64_V3)
    buffer = next(b for step in program.body.steps for b in step.writes() if b.kind == ARENA)
    buffer.bytes -= 8
    with pytest.raises(CompileError, match="reaches elements"):
        run(program, [np.ones(500, np.float32)])


def test_arguments_of_other_types_are_refused():
    _, program = planned("chain_small")
    with pytest.raises(CompileError, match="is float32"):
        run(program, [np.ones(5, np.float32), np.ones(5)])


def test_exact_operations_on_hard_numbers():
    """The interpreter's own arithmetic, beside Python's integers and NumPy's wider floats."""
    t = TYPES["int64"]
    x, y = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, (2, 200))
    got = operations.compute("mulhi", t, [x, y], [t, t])
    assert got.tolist() == [int(a) * int(b) >> 64 for a, b in zip(x, y)]
    f = TYPES["float64"]
    a, b = np.random.default_rng(1).standard_normal((2, 1000))
    error = operations.compute("fma", f, [a, b, -(a * b)], [f] * 3)
    assert error.tolist() == [float(Fraction(p) * Fraction(q) - Fraction(p * q)) for p, q in zip(a, b)]
    s = TYPES["float32"]
    far = np.float32([np.nan, np.inf, -np.inf, 3e9, -3e9, -0.5, 1.5])
    limits = [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0, 1]
    assert operations.convert(far, s, TYPES["int32"]).tolist() == limits
    zeros = [np.float32([0.0, -0.0, 0.0]), np.float32([-0.0, 0.0, np.nan])]
    assert np.signbit(operations.compute("min", s, zeros, [s, s])).tolist()[:2] == [True, True]
    assert np.signbit(operations.compute("max", s, zeros, [s, s])).tolist()[:2] == [False, False]
