"""Public packages load their names when they are first asked for."""

import importlib
import os
import pkgutil
import subprocess
import sys

import pytest

from catena.core import namespace

PACKAGES = (
    *("catena", "catena.lax", "catena.lax.linalg", "catena.numpy", "catena.numpy.fft", "catena.numpy.linalg"),
    *("catena.random", "catena.nn", "catena.experimental.checkify", "catena.scipy.linalg"),
    *("catena.image", "catena.scipy.signal", "catena.scipy.spatial.transform"),  # which are of few names
)
PROGRAM = """
import sys
import catena as jax, catena.numpy as jnp
import catena.nn, catena.image, catena.scipy.linalg, catena.scipy.signal, catena.scipy.spatial.transform
jnp.ones(2) + 1
late = ("catena.nn.activations", "catena.nn.attention", "catena.image.resampling", "catena.scipy.linalg.systems",
        "catena.scipy.signal.spectral", "catena.scipy.spatial.transform.rotation",
        "catena.random", "catena.lax.control_flow", "catena.lax.convolution", "catena.numpy.linalg", "catena.numpy.sets",
        "catena.parallel.pmap", "catena.compiler", "scipy", "llvmlite")
print([m for m in late if m in sys.modules])
from catena.numpy import *
print(linspace(0, 1, 3).tolist(), callable(fft.fft), "unique" in dir(jnp), jax.lax.scan is jax.lax.scan)
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_found(package):
    module = importlib.import_module(package)
    names = namespace.origins(vars(module))
    assert len(names) > (14 if package not in PACKAGES[-3:] else 1)
    for public in names:
        value = getattr(module, public)
        assert getattr(module, public) is value, f"{package}.{public} is another object each time"
        if isinstance(value, type(namespace.late)) and value.__module__.startswith("catena") and public != "ds":
            found = getattr(importlib.import_module(value.__module__), value.__name__, None)
            assert found is value, f"{package}.{public} is not found by its name, as pickles do"
    assert set(names) <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_hides_a_name(package):
    """Importing a module puts it into its package under its own name: no public name may be the same."""
    module = importlib.import_module(package)
    inside = {m.name for m in pkgutil.iter_modules(module.__path__)}
    hidden = [n for n, origin in namespace.origins(vars(module)).items() if n in inside and origin.module != package]
    assert not hidden


def test_what_is_not_used_is_not_loaded():
    process = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=dict(os.environ))
    assert process.stdout.splitlines() == ["[]", "[0.0, 0.5, 1.0] True True True"], process.stderr


WRITTEN = """
import pickle, catena as jax, catena.numpy as jnp
print(pickle.dumps(jax.make_jaxpr(lambda x: jax.lax.cumsum(x))(jnp.ones(2)).eqns[-1].primitive).hex())
"""
READ = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.stdin.read())))"


def test_a_pickled_primitive_loads_the_module_that_makes_it():
    run = lambda text, given: subprocess.run([sys.executable, "-c", text], input=given, capture_output=True, text=True)
    assert run(READ, run(WRITTEN, "").stdout).stdout == "cumsum\n"


def test_parts_of_extend_load_when_they_are_asked_for():
    """Who wraps functions by hand, as `odeint` does, does not load the rules of primitives and the names of MLIR; who
    asks for these by any way of import finds them.
    """
    script = """
import sys
import catena.experimental.ode, catena.extend, catena.interpreters
late = {"catena.extend.core", "catena.interpreters.ad", "catena.interpreters.mlir", "catena.export"}
assert not late & set(sys.modules), late & set(sys.modules)
import catena.extend.core
assert "catena.extend.core.primitives" not in sys.modules
from catena.interpreters import ad, batching, mlir, xla
assert catena.extend.core.primitives.add_p is catena.lax.add_p
assert catena.interpreters.mlir is mlir and catena.extend.linear_util.wrap_init
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_methods_load_their_modules_when_they_are_asked_for():
    """Sorting, selections and statistics are not loaded with the package, and arrays, traced values and types have
    their methods all the same, each time the same ones.
    """
    script = """
import sys
import catena as jax, catena.numpy as jnp
late = {"catena.numpy." + name for name in ("sorting", "editing", "taking", "averages", "selection", "diagonals")}
assert not late & set(sys.modules), late & set(sys.modules)
assert jax.jit(lambda x: x.sort().take(jnp.array([1])))(jnp.array([3.0, 1.0, 2.0])).tolist() == [2.0]
assert jnp.arange(4.0).mean() == 1.5 and "sort" in dir(jax.Array)
assert jax.Array.std is type(jnp.ones(1)).std
assert {"catena.numpy.sorting", "catena.numpy.taking", "catena.numpy.averages"} <= set(sys.modules)
assert jnp.arange(4.0).reshape(2, 2).trace() == 3.0
"""
    subprocess.run([sys.executable, "-c", script], check=True)
