"""Without llvmlite, or with CATENA_COMPILER=none, everything is evaluated step by step."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
try:
    jax.jit(jnp.sin).lower(x).compile().cost_analysis()
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


def test_a_tour():
    done = run(TOUR, CATENA_COMPILER="none")
    assert done.returncode == 0, done.stderr


def test_one_warning_where_llvmlite_is_not_installed():
    done = run(HIDDEN)
    assert done.returncode == 0, done.stderr
    quiet = HIDDEN.replace("except RuntimeWarning", "except ImportError").replace("raise AssertionError", "pass")
    assert run(quiet, CATENA_COMPILER="none").returncode == 0


@pytest.mark.parametrize("chosen", ["nothing", ""])
def test_an_unknown_choice_is_an_error(chosen):
    done = run("import catena", CATENA_COMPILER=chosen)
    assert "CATENA_COMPILER must be one of llvm, none" in done.stderr
