"""A value is a function of its operands: eager results have the same bits however often, wherever and in whatever
pieces they are computed. `make same-bits` runs the whole of it, on several numbers of threads.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import catena
import catena.numpy as jnp
from catena import lax
from catena.compiler.native import compile as compiling
from catena.compiler.native import elementwise as compiled_loops
from catena.core.config import override
from catena.core.lazy import load
from catena.lax import native, policy
from shares import EVERY, in_share
from thread_programs import PROGRAMS, battery

ROOT = Path(__file__).resolve().parents[2]
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore")
def test_primitives(part):
    with catena.enable_x64(True):
        rows = [
            row for row in battery.primitive_calls() if "x7" in row[0] and "64" not in row[0] and in_share(6, row[0])
        ]
        found = [line for row in rows[part::PARTS] for line in battery.differences(*row)[1]]
    assert not found


@pytest.mark.filterwarnings("ignore")
def test_functions_of_the_numpy_api():
    found = [line for row in battery.numpy_calls(60 if EVERY else 240) for line in battery.differences(*row)[1]]
    assert not found


@pytest.mark.filterwarnings("ignore")
def test_products():
    assert not [line for row in battery.product_calls() for line in battery.differences(*row)[1]]


def test_programs_do_not_tell_how_many_threads_there_are():
    """Compiled ones and eager products: a process for each number of threads runs all of them."""
    seen = {}
    for count in ("1", "2", "5"):
        env = os.environ | {"CATENA_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
        run = subprocess.run([sys.executable, "-m", "thread_programs"], env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
        for name, bits in map(str.split, run.stdout.splitlines()):
            seen.setdefault(name, set()).add(bits)
    assert {name: len(bits) for name, bits in seen.items()} == {f.__name__: 1 for f in PROGRAMS}


# ---- elementwise functions: one arithmetic, eager and compiled


def numbers(dtype, size: int = 700):
    rng = np.random.default_rng(0)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        parts = numbers("float32", size)
        return np.stack([parts, parts[::-1]], -1).reshape(-1).view(dtype)
    if dtype.kind in "iu":
        return rng.integers(-9, 9, size).astype(dtype)
    x = rng.standard_normal(size) * np.exp(rng.uniform(-20, 20, size))
    x[: size // 3] = rng.uniform(-3, 3, size // 3)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, 0.5, 1e-40, 88.0, -88]
    x[size // 2 : size // 2 + len(special)] = special
    return x.astype(dtype)


UNARY = """exp exp2 expm1 log log1p log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh
sqrt cbrt deg2rad rad2deg reciprocal sinc i0 abs fabs sign square negative floor ceil rint trunc""".split()
BINARY = """add subtract multiply divide floor_divide remainder fmod power float_power arctan2 hypot logaddexp logaddexp2
maximum minimum fmax fmin copysign heaviside nextafter""".split()
FUNCTIONS = {name: (getattr(jnp, name), 1) for name in UNARY} | {name: (getattr(jnp, name), 2) for name in BINARY}
WITH_PARAMETERS = ("reduce_precision", "round", "integer_pow")
NAMES = {"regularized_incomplete_beta": "betainc"}
FUNCTIONS |= {  # those that take arrays alone
    f"lax.{name}": (getattr(lax, NAMES.get(name, name)), native.LOOPS[name].arity)
    for name, row in policy.ELEMENTWISE.items()
    if policy.FLOATS <= row.loop and hasattr(lax, NAMES.get(name, name)) and name not in WITH_PARAMETERS
}


def refusing(fun, *xs):
    try:
        return fun(*xs)
    except (TypeError, ValueError):
        return None


@pytest.mark.share(24)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementwise(name, dtype):
    fun, arity = FUNCTIONS[name]
    xs = [jnp.asarray(numbers(dtype))[::step] for step in (1, -1, 1)[:arity]]
    whole = refusing(fun, *xs)
    if whole is None:  # not of this dtype
        return
    pieces = [fun(*[x[a:b] for x in xs]) for a, b in ((0, 1), (1, 8), (8, 100), (100, 700))]
    assert battery.digest(jnp.concatenate(pieces)) == battery.digest(whole)
    assert battery.digest(fun(*[x[::3] for x in xs])) == battery.digest(whole[::3])
    assert battery.digest(catena.jit(fun)(*xs)) == battery.digest(whole)


@pytest.mark.share(2)
@pytest.mark.parametrize("size", [policy.LARGE - 1, policy.LARGE + 1, policy.PIECE + 3])
@pytest.mark.parametrize("name", ["exp", "pow", "tanh"])
def test_elementwise_functions_of_large_arrays(name, size):
    fun = getattr(lax, name)
    x = jnp.asarray(np.resize(numbers("float32"), size))
    xs = (x, np.float32(1.5)) if name == "pow" else (x,)
    results = [fun(*xs) for _ in range(policy.REPEATS + 2)]
    small = jnp.concatenate([fun(*[v[i : i + 5000] if v.ndim else v for v in xs]) for i in range(0, size, 5000)])
    assert {battery.digest(r) for r in results} == {battery.digest(small)}


# ---- loops


def jaxpr_of(fun, *dtypes):
    return lambda length: catena.make_jaxpr(fun)(*[np.zeros(length, d) for d in dtypes])


def test_a_loop_without_an_image_is_loaded_by_llvm(monkeypatch):
    monkeypatch.setattr(load("catena.compiler.native.compile"), "loop_image", lambda text: None)
    dtype = np.dtype("float32")
    ufunc = compiled_loops.ufunc("linked", jaxpr_of(lambda x: lax.exp(x) + 1, dtype), (dtype,), ("no image",))
    x = numbers("float32")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ufunc(x), catena.jit(lambda x: lax.exp(x) + 1)(x))


def test_a_process_finds_loops_without_loading_llvm(tmp_path):
    closed = catena.make_jaxpr(lax.exp)(np.zeros(32, np.float32))
    if compiling.loop_image(compiling.loop_text(closed, "exp")) is None:
        pytest.skip("this processor's code calls the C library to round, so it is no image")
    program = (
        "import sys, catena.numpy as jnp\n"
        "print(jnp.exp(jnp.arange(3.0)).tobytes().hex(), 'llvmlite.binding' in sys.modules)"
    )
    env = os.environ | {"CATENA_CACHE_DIR": str(tmp_path / "programs"), "PYTHONPATH": str(ROOT / "src")}
    env.pop("CATENA_CACHE", None)
    run = lambda: subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    (cold, loaded), (warm, found) = (run().stdout.split() for _ in range(2))
    assert cold == warm
    assert (loaded, found) == ("True", "False")


# ---- eager and compiled, as docs/differences.md has it


def uniform(*shape, dtype="float32"):
    return jnp.asarray(np.random.default_rng(0).uniform(0.5, 1.0, shape).astype(dtype))


LARGE_CALLS = {
    "sum": lambda: (jnp.sum, uniform(300, 300)),
    "sum of rows": lambda: (lambda x: jnp.sum(x, 0), uniform(300, 300)),
    "mean": lambda: (lambda x: jnp.mean(x, 1), uniform(300, 300)),
    "prod": lambda: (lambda x: jnp.prod(x, 0), uniform(300, 300)),
    "cumsum": lambda: (lambda x: lax.cumsum(x, 1), uniform(300, 300)),
    "matmul": lambda: (jnp.matmul, uniform(100, 90), uniform(90, 100)),
    "inner product": lambda: (jnp.matmul, uniform(70_000), uniform(70_000)),
    "einsum": lambda: (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), uniform(4, 80, 80), uniform(4, 80, 80)),
    "convolution": lambda: (
        lambda x, w: lax.conv(x, w, (1, 1), "SAME"),
        uniform(2, 3, 40, 40),
        uniform(4, 3, 3, 3),
    ),
    "window": lambda: (
        lambda x: lax.reduce_window(x, np.float32(0), lax.add, (3, 3), (1, 1), "SAME"),
        uniform(300, 300),
    ),
    "fft": lambda: (jnp.fft.fft, uniform(8192)),
    "cholesky": lambda: (jnp.linalg.cholesky, uniform(70, 70) + 70 * jnp.eye(70)),
    "sort of pairs": lambda: (
        lambda x: lax.sort([jnp.round(x * 9), x], num_keys=1, dimension=1),
        uniform(300, 300),
    ),
    "top_k": lambda: (lambda x: lax.top_k(jnp.round(x * 99), 9), uniform(300, 300)),
    "argmax": lambda: (lambda x: jnp.argmax(jnp.round(x * 9), 0), uniform(300, 300)),
}


@pytest.mark.parametrize("name", LARGE_CALLS)
def test_large_operations_have_the_bits_of_compiled_ones(name):
    fun, *xs = LARGE_CALLS[name]()
    assert battery.digest(fun(*xs)) == battery.digest(catena.jit(fun)(*xs))


SMALL_CALLS = {
    "sum": (lambda x: jnp.sum(x, 0), (900, 7)),
    "mean": (jnp.mean, (50, 50)),
    "prod": (lambda x: jnp.prod(x + 0.5, 1), (50, 50)),
    "cumsum": (lambda x: jnp.cumsum(x, 1), (5, 900)),
    "matmul": (lambda x: x @ x.T, (30, 30)),
    "inner product": (lambda x: x @ x, (4000,)),
    "norm": (jnp.linalg.norm, (50, 50)),
    "var": (lambda x: jnp.var(x, 1), (50, 50)),
}


@pytest.mark.parametrize("name", SMALL_CALLS)
def test_small_sums_are_as_accurate_as_compiled_ones(name):
    fun, shape = SMALL_CALLS[name]
    x = uniform(*shape)
    with catena.enable_x64(True):
        exact = np.asarray(fun(jnp.asarray(np.asarray(x, np.float64))))
    for call in (fun, catena.jit(fun)):
        np.testing.assert_allclose(np.asarray(call(x)), exact, rtol=2e-6)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "clip", "at max", "at min"])
def test_zeros_of_two_signs(name):
    rng = np.random.default_rng(0)
    x, y = (jnp.asarray(rng.choice(np.array([0.0, -0.0], np.float32), 1000)) for _ in range(2))
    places = jnp.arange(1000) % 7
    calls = {
        "clip": lambda x, y: jnp.clip(x, y, y),
        "at max": lambda x, y: x.at[places].max(y),
        "at min": lambda x, y: x.at[places].min(y),
    }
    fun = calls.get(name) or getattr(jnp, name)
    assert battery.digest(fun(x, y)) == battery.digest(catena.jit(fun)(x, y))


def test_loops_are_made_in_checked_mode_too():
    with override("jax_check_bounds", True):
        ufunc = compiled_loops.ufunc(
            "checked", jaxpr_of(lambda x: lax.exp(x) * 3, "float32"), (np.dtype("float32"),), (1,)
        )
    assert ufunc(np.zeros(3, np.float32)).tolist() == [3.0, 3.0, 3.0]
