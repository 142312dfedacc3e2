"""The ideas of the system in one file (docs/catena_from_scratch.py): its examples run, and it agrees with the system."""

import doctest
import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

PAGE = Path(__file__).resolve().parents[2] / "docs" / "catena_from_scratch.py"


@pytest.fixture(scope="module", params=["LLVM", "NumPy"])
def scratch(request):
    """The module, with a compiler and without one."""
    spec = importlib.util.spec_from_file_location("catena_from_scratch", PAGE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if request.param == "NumPy":
        module.llvm = None
    return module


def test_its_examples_run(scratch):
    failed, tried = doctest.testmod(scratch)
    assert tried >= 20 and not failed


COMPOSITIONS = {
    "value": lambda s, f: f,
    "jit": lambda s, f: s.jit(f),
    "grad": lambda s, f: s.grad(f),
    "jit of grad": lambda s, f: s.jit(s.grad(f)),
    "grad of jit": lambda s, f: s.grad(s.jit(f)),
    "jit of grad of jit": lambda s, f: s.jit(s.grad(s.jit(f))),
    "grad of a sum of grad": lambda s, f: s.grad(lambda x: s.total(s.grad(s.jit(f))(x))),
    "vmap of grad of jit": lambda s, f: lambda x: s.total(s.vmap(s.grad(s.jit(f)))(s.spread(x, (2, 3))), (0,)),
    "jit of vmap of grad": lambda s, f: lambda x: s.total(s.jit(s.vmap(s.grad(f)))(s.spread(x, (2, 3))), (0,)),
    "grad of vmap of jit": lambda s, f: s.grad(lambda x: s.total(s.vmap(s.jit(f))(s.spread(x, (2, 3))))),
    "jvp of jit of grad": lambda s, f: lambda x: s.jvp(s.jit(s.grad(f)), (x,), (s.cos(x),))[1],
}


# catena, under the names of the file
SYSTEM = SimpleNamespace(
    jit=jax.jit, grad=jax.grad, vmap=jax.vmap, jvp=jax.jvp, sin=jnp.sin, cos=jnp.cos, exp=jnp.exp, log=jnp.log,
    total=jnp.sum, spread=jnp.broadcast_to,
)  # fmt: skip


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_it_agrees_with_the_system(scratch, name):
    def of(s):
        f = lambda x: s.total(s.sin(x) * x - s.exp(-x) / (2.0 + s.cos(x * x))) * s.total(s.log(x))
        return COMPOSITIONS[name](s, f)

    x = np.array([0.5, 1.0, 2.0])
    with jax.enable_x64(True):
        np.testing.assert_allclose(of(scratch)(x), of(SYSTEM)(jnp.asarray(x)), rtol=1e-9)


def test_equal_equations_are_computed_once_and_neighbours_are_one_loop(scratch):
    f = lambda x: scratch.total(scratch.sin(x) * scratch.sin(x) + scratch.cos(x) * 0.5)
    jaxpr = scratch.make_jaxpr(f, (4,))
    kept = scratch.simplified(jaxpr)
    assert len(kept) == len(jaxpr.eqns)  # without the second sine, with the return
    groups = scratch.grouped([e for e in kept[:-1] if e.primitive in scratch.ELEMENTWISE])
    assert [len(g) for g in groups] == [5]
