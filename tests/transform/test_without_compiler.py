"""Without llvmlite, or with CATENA_COMPILER=none, everything is evaluated step by step."""

import os
import re
import signal
import subprocess
import sys
import weakref
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
import without_compiler
from catena import lax
from catena.core import error_free
from catena.lax import complex_edges
from catena.transform.interpreted import Interpreted, Steps

ROOT = Path(__file__).resolve().parents[2]
TOUR = """
import numpy as np
import catena as jax, catena.numpy as jnp
from catena import lax
close = np.testing.assert_allclose
x = jnp.arange(1.0, 5.0)
close(jax.jit(lambda x: jnp.sin(x) * 17.3 + x)(x), np.sin(x) * 17.3 + x, 1e-6)
close(jax.grad(jax.jit(lambda x: jnp.sum(jnp.sin(x) ** 2)))(x), np.sin(2 * np.asarray(x)), 1e-5)
close(jax.jit(jax.grad(lambda x: lax.fori_loop(0, x.astype(int), lambda i, y: y * x, 1.0)))(3.0), 27)
close(jax.jit(lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x))(x)[1], [0, 2, 9, 24])
close(jax.vmap(jax.jit(lambda x: lax.cond(x > 2, jnp.exp, jnp.negative, x)))(x), np.where(x > 2, np.exp(x), -x), 1e-6)
close(lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, 1.0))[1], 32)
close(jnp.exp(1j * x), np.exp(1j * np.asarray(x)), 1e-6)
close(jnp.hypot(x, 1.0), np.hypot(x, 1), 1e-6)
close(jnp.array([7.0, -7.0]) // 2, [3, -4])
close(lax.lgamma(x), [0, 0, np.log(2), np.log(6)], 1e-5)
close((jnp.ones((300, 300)) @ jnp.ones((300, 2)))[0], [300, 300])
assert jax.random.normal(jax.random.key(0), (1000,)).std() > 0.9
assert jax.random.bits(jax.random.split(jax.random.key(1))[0]).dtype == "uint32"
close(jnp.sort(-x), -np.arange(4.0, 0, -1))
g = jax.custom_batching.custom_vmap(lambda x: jnp.sin(x) + 1)
g.def_vmap(lambda n, batched, x: (jnp.sin(x) + 1, True))
close(g(x), np.sin(x) + 1, 1e-6)
f = jax.jit(jnp.sin)
f(1.0)
text = f.explain(x)
assert "sin: 1 equation, evaluated one after the other, since there is no compiler here" in text
assert "x changed shape and weak type: now float32[4]" in text
compiled = f.lower(x).compile()
close(compiled(x), np.sin(x), 1e-6)
assert "sin" in f.lower(x).as_text()
for ask in (compiled.cost_analysis, compiled.memory_analysis, compiled.as_text, lambda: f.profile(x)):
    try:
        ask()
    except jax.errors.CompileError as error:
        assert "no compiler" in str(error)
    else:
        raise AssertionError
import sys
assert "llvmlite.binding" not in sys.modules
"""
HIDDEN = """
import importlib.util, warnings
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "llvmlite" else real(name, *rest)
warnings.simplefilter("error")
try:
    import catena
except RuntimeWarning as warning:
    assert "llvmlite is not installed" in str(warning)
else:
    raise AssertionError
"""


def run(program: str, **env: str) -> subprocess.CompletedProcess:
    inherited = {k: v for k, v in os.environ.items() if k != "CATENA_COMPILER"}
    env = inherited | {"PYTHONPATH": str(ROOT / "src")} | env
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300)


def test_a_tour(tmp_path):
    """With an empty folder of programs: what the compiler once said of the processor is not there either."""
    done = run(TOUR, CATENA_COMPILER="none", CATENA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_one_warning_where_llvmlite_is_not_installed():
    done = run(HIDDEN)
    assert done.returncode == 0, done.stderr
    quiet = HIDDEN.replace("except RuntimeWarning", "except ImportError").replace("raise AssertionError", "pass")
    assert run(quiet, CATENA_COMPILER="none").returncode == 0


@pytest.mark.parametrize("chosen", ["nothing", "LLVM"])
def test_an_unknown_choice_is_an_error(chosen):
    done = run("import catena", CATENA_COMPILER=chosen)
    assert "CATENA_COMPILER must be one of llvm, none" in done.stderr


# ---- the executor, also where there is a compiler


def interpreted(f, *args) -> list:
    """The results of ``f``, evaluated step by step."""
    args = [jnp.asarray(x) for x in args]
    return Interpreted(jax.make_jaxpr(f)(*args)).run([x._value for x in args])


def carried(x):
    return lax.scan(lambda c, y: (c * 0.5 + y, jnp.sin(c)), 0.0, x, reverse=True)


@jax.custom_jvp
def steep(x):
    return jnp.tan(x)


steep.defjvp(lambda primals, tangents: (steep(*primals), 10 * tangents[0]))
X = np.linspace(0.1, 2.0, 5, dtype=np.float32)
SAME = {
    "elementwise": lambda x: jnp.exp(x) * 2 - x**3 / jnp.tanh(x),
    "broadcast and reduced": lambda x: (x[:, None] * x).sum(0) + jnp.sort(-x),
    "scan": carried,
    "nothing to scan": lambda x: lax.scan(lambda c, y: (c, c + y), 1.0, x[:0]),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * x), (0, x)),
    "backwards through while": jax.grad(
        lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))[1].sum()
    ),
    "backwards through scan": jax.grad(lambda x: carried(x)[1].sum()),
    "branches": lambda x: lax.switch(x.astype(int)[4], [jnp.sin, jnp.cos, jnp.exp], x),
    "a branch below the first": lambda x: lax.switch(-3, [jnp.sin, jnp.cos], x),
    "calls": lambda x: jax.jit(jax.checkpoint(jnp.tanh))(x) + steep(x),
    "gradients of custom rules": jax.grad(lambda x: jnp.sum(steep(x) * jnp.sqrt(x))),
    "a root": lambda x: lax.custom_root(
        lambda y: y**2 - x,
        x,
        lambda f, y: lax.fori_loop(0, 20, lambda i, y: y - f(y) / (2 * y), y),
        lambda g, y: y / g(1.0),
    ),
    "keys": lambda x: jax.random.uniform(jax.random.split(jax.random.key(3))[1], x.shape) + x,
    "keys in a loop": lambda x: lax.scan(lambda k, y: (jax.random.fold_in(k, 1), y), jax.random.key(0), x)[1],
    "small floats": lambda x: jnp.exp(x.astype("bfloat16")) + x.astype("float8_e4m3fn").astype("bfloat16"),
    "complex": lambda x: jnp.abs(jnp.sqrt(x + 1j) / (x - 2j)),
    "callbacks": lambda x: jax.pure_callback(np.square, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
    "results that are arguments, constants and the same": lambda x: (x, jnp.arange(3), x + 1, x + 1, 7),
    "results nobody reads": lambda x: (x @ x, x + 1)[1],
}


@pytest.mark.parametrize("name", SAME)
def test_values_are_those_of_eager_evaluation(name):
    f = SAME[name]
    expected = jax.tree.leaves(f(jnp.asarray(X)))
    found = interpreted(lambda x: jax.tree.leaves(f(x)), X)
    for x, y in zip(found, expected, strict=True):
        y = jnp.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype) and isinstance(x._value, np.ndarray)
        np.testing.assert_allclose(x.astype("complex64"), y.astype("complex64"), rtol=1e-5, atol=1e-6)


def test_ten_thousand_equations():
    def f(x):
        for _ in range(5_000):
            x = jnp.sin(x) + 1
        return x

    closed = jax.make_jaxpr(f)(1.0)
    assert len(closed.eqns) == 10_000
    assert 1.93 < float(Interpreted(closed).run([np.float32(1)])[0]) < 1.94


def test_values_are_dropped_at_their_last_use():
    alive = []

    def note(x):
        alive.append(weakref.ref(x._value))
        return np.float32(sum(ref() is not None for ref in alive))

    def f(x):
        counts = []
        for _ in range(3):
            x = jnp.cumsum(x)
            counts.append(jax.pure_callback(note, jax.ShapeDtypeStruct((), jnp.float32), x))
        return counts

    assert max(map(int, interpreted(f, np.ones(1000, np.float32)))) <= 2


def test_ufuncs_write_into_values_that_die_and_nowhere_else():
    def f(x):
        a = x + 1
        b = a * 2  # in the memory of a
        c = b.reshape(2, 2)  # a view of b
        d = b * 3  # not in its memory
        return c, d, b - x

    c, d, e = interpreted(f, np.arange(4, dtype=np.float32))
    assert c.tolist() == [[2, 4], [6, 8]] and d.tolist() == [6, 12, 18, 24] and e.tolist() == [2, 3, 4, 5]
    x = jnp.arange(4.0)
    steps = Steps(jax.make_jaxpr(lambda x: (x + 1) * 2 - 3)(x))
    operands = [list(getter(range(10))) for _, getter, *_ in steps._steps]
    assert [len(o) for o in operands] == [2, 3, 3] and x.tolist() == [0, 1, 2, 3]  # the third one is written to
    assert steps(x._value)[0].tolist() == [-1, 1, 3, 5] and x.tolist() == [0, 1, 2, 3]


def test_results_do_not_keep_what_they_are_views_of():
    (row,) = interpreted(lambda x: x[::2].T, np.arange(12, dtype=np.float32).reshape(4, 3))
    assert row._value.flags.c_contiguous and row._value.base is None and row.tolist() == [[0, 6], [1, 7], [2, 8]]


def test_values_that_no_machine_holds():
    with pytest.raises(MemoryError, match=r"a value of shape \(1125899906842624,\) and dtype float32"):
        interpreted(lambda x: jnp.broadcast_to(x, (2**50,)).sum(), np.float32(1))


def test_loops_can_be_interrupted():
    def handler(*_):
        raise LookupError("enough")

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(LookupError, match="enough"):
            interpreted(lambda x: lax.while_loop(lambda c: c >= 0, lambda c: (c + 1) % 7, x), np.int32(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_callbacks_raise_what_compiled_programs_raise():
    def fail(x):
        raise KeyError("Ooops")

    with pytest.raises(jax.errors.JaxRuntimeError, match="debug.callback called fail, which raised KeyError"):
        interpreted(lambda x: (jax.debug.callback(fail, x), x)[1], np.float32(1))


def test_products_and_sums_are_rounded_once():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x, y = rng.normal(size=(2, 300)).astype(dtype) * dtype(2) ** rng.integers(-20, 20, (2, 300)).astype(dtype)
        z = np.where(rng.random(300) < 0.5, -x * y * (1 + rng.integers(-3, 3, 300) * np.finfo(dtype).eps), y)
        z = z.astype(dtype)
        found = error_free.multiply_add(x, y, z)
        assert found.dtype == dtype
        for a, b, c, got in zip(x, y, z, found, strict=True):
            exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
            errors = [
                abs(Fraction(float(v)) - exact)
                for v in (got, *(np.nextafter(got, dtype(e)) for e in (np.inf, -np.inf)))
            ]
            assert errors[0] == min(errors)


def test_complex_numbers_at_the_edges():
    z = np.array([3e30 + 4e30j, 1e-30 + 1e-30j, complex(np.inf, 1), -2 + 1e-20j], np.complex64)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(complex_edges.sign(z[:2]), [0.6 + 0.8j, (1 + 1j) / np.sqrt(2)], rtol=1e-6)
        np.testing.assert_allclose(
            complex_edges.divide(np.ones(2, z.dtype), z[:2]), [1.2e-31 - 1.6e-31j, 5e29 - 5e29j], rtol=1e-6
        )
        assert complex_edges.divide(np.ones(1, z.dtype), z[2:3])[0] == 0
        assert complex_edges.square(z[2:3])[0].imag == np.inf
        np.testing.assert_allclose(complex_edges.log1p(z[3:]).real, 5e-41, atol=1e-44)
        np.testing.assert_allclose(complex_edges.expm1(z[1:2]), z[1:2], rtol=1e-6)


# ---- the table of skipped tests


def test_every_row_names_tests_that_exist():
    for reason, file, *names in without_compiler.ROWS:
        path = next(folder / file for folder in (without_compiler.HERE, ROOT) if (folder / file).is_file())
        defined = re.findall(r"^ *def (\w+)\(", path.read_text(), re.MULTILINE)
        for name in names:
            assert reason and name.partition("[")[0].rpartition(".")[2] in defined, f"{file}::{name}"


def test_rows_with_parameters_name_cases_that_exist(request):
    """Looked up among the tests of this run."""
    if request.config.getoption("--part") != "0/1" or request.config.getoption("keyword"):
        pytest.skip("some of the tests are not all cases")
    collected = {item.nodeid.removeprefix("tests/") for item in request.session.items}
    functions = {name.partition("[")[0] for name in collected}
    named = [f"{file}::{name}" for _, file, *names in without_compiler.ROWS for name in names if "[" in name]
    assert named and not [n for n in named if n.partition("[")[0] in functions and n not in collected]


def test_a_row_is_for_a_file_a_test_or_one_case(monkeypatch):
    monkeypatch.setattr(without_compiler, "ROWS", [("why", "a.py"), ("so", "b.py", "test_x", "test_y[1 2]")])
    assert without_compiler.whole_file_reason(without_compiler.HERE / "a.py") == "why"
    assert without_compiler.whole_file_reason(without_compiler.HERE / "b.py") is None
    names = [f"tests/b.py::test_{test}" for test in ("x", "x[3]", "y[1 2]", "y[3]", "xx")]
    reasons = [without_compiler.reason_to_skip(name, without_compiler.ROWS) for name in names]
    assert reasons == ["so", "so", "so", None, None]
