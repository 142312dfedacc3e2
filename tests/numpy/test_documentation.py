"""Every public function of the NumPy API can be inspected and explains itself: signature, hints, docstring, example."""

import doctest
import inspect
import pickle
import re
import types
from pathlib import Path

import numpy as np
import pytest
from _pytest.doctest import _get_checker  # the one that knows NUMBER

import catena as jax
import catena.numpy as jnp
from catena.core.array import Array
from catena.core.trace import METHODS_OF_DATA, Tracer
from catena.numpy.index_update import IndexUpdateRef

MODULES = {"": jnp, "linalg.": jnp.linalg, "fft.": jnp.fft}
FUNCTIONS = {
    prefix + name: f
    for prefix, module in MODULES.items()
    for name in dir(module)
    if not name.startswith("_") and callable(f := getattr(module, name)) and not isinstance(f, type | types.ModuleType)
}
METHODS = {
    f"Array.{name}": f
    for name in dir(Array)
    if not name.startswith("_") and callable(f := getattr(Array, name)) and not isinstance(f, type)
}
UPDATES = {f"at.{n}": f for n, f in vars(IndexUpdateRef).items() if not n.startswith("_") and inspect.isfunction(f)}
ALL = FUNCTIONS | METHODS | UPDATES

# Whose arguments are a matter of what they are called with, as in NumPy.
VARIADIC = set("args kwargs arrays arys operands xi shapes varargs kw kwds".split())


def test_signatures_have_names_and_types():
    for name in ALL:
        signature = inspect.signature(ALL[name])
        assert signature.return_annotation is not inspect.Signature.empty, name
        for parameter in list(signature.parameters.values())[name not in FUNCTIONS :]:
            assert parameter.annotation is not inspect.Parameter.empty, (name, parameter)
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                assert parameter.name in VARIADIC, (name, parameter)


# A signature of JAX a line, "..." for defaults.
JAX = dict(
    re.fullmatch(r"([\w.]+)\((.*)\)", line).groups()
    for line in (Path(__file__).parents[1] / "data" / "numpy_signatures.txt").read_text().splitlines()
)
BEYOND = {("expand_dims", "axis")}  # it has a default in the array API standard


def test_signatures_are_those_of_jax():
    """Parameters of the same names, kinds and order; those that JAX has not are optional."""
    for name in JAX:
        namespace = {}
        exec(f"def f({JAX[name]}): pass", namespace)
        wanted = list(inspect.signature(namespace["f"]).parameters.values())
        found = list(inspect.signature(ALL[name]).parameters.values())[name not in FUNCTIONS :]
        names = {p.name for p in wanted}
        assert [(p.name, p.kind) for p in found if p.name in names] == [(p.name, p.kind) for p in wanted], name
        optional = {p.name for p in wanted if p.default is not p.empty}
        for p in found:
            given_up = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or (name, p.name) in BEYOND
            assert given_up or (p.default is not p.empty) == (p.name in optional or p.name not in names), (name, p)


def test_docstrings_explain_arguments_and_result():
    for name, f in FUNCTIONS.items():
        text = inspect.getdoc(f)
        purpose = text.split("\n\n")[0]
        assert purpose.rstrip(".:")[0].isupper() or purpose[0] in "`\"'" or purpose[0].isalnum(), name
        assert "Returns:" in text, name
        for parameter in inspect.signature(f).parameters.values():
            assert re.search(rf"\b{parameter.name}\b", text), f"{parameter.name} of {name} is not explained"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_docstring_has_an_example_that_runs(name):
    run_example(FUNCTIONS[name].__name__, inspect.getdoc(FUNCTIONS[name]))


def run_example(name: str, text: str):
    """Run a docstring's example, which must mention ``name``."""
    example = doctest.DocTestParser().get_doctest(text, {"jnp": jnp, "jax": jax, "np": np}, name, None, 0)
    assert any(name in e.source for e in example.examples), "no example that calls it"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.register_optionflag("NUMBER")
    assert doctest.DocTestRunner(checker=_get_checker(), optionflags=flags).run(example).failed == 0


@pytest.mark.parametrize("name", METHODS)
def test_methods_say_what_they_do(name):
    text = inspect.getdoc(METHODS[name])
    assert text[0].isupper() and "Returns:" in text
    for parameter in list(inspect.signature(METHODS[name]).parameters)[1:]:
        assert re.search(rf"\b{parameter}\b", text), f"{parameter} is not explained"
    run_example(METHODS[name].__name__, text)


def test_traced_values_have_the_same_methods():
    shared = [n for n in METHODS if hasattr(Tracer, n.removeprefix("Array."))]
    shared = [n for n in shared if n.removeprefix("Array.") not in METHODS_OF_DATA]
    assert len(shared) > 40
    for name in {*shared} - {"Array.block_until_ready", "Array.item", "Array.tolist"}:  # there is no value yet
        assert getattr(Tracer, name.removeprefix("Array.")).__doc__ == METHODS[name].__doc__


def test_names_are_found_where_they_say():
    for name, f in FUNCTIONS.items():
        assert getattr(MODULES[name.rpartition(".")[0] + "." * ("." in name)], f.__name__) is f
        assert f.__module__.startswith("catena.numpy"), name


# What JAX calls otherwise too.
OTHER_NAMES = set("kaiming_normal kaiming_uniform xavier_normal xavier_uniform ds".split())


@pytest.mark.parametrize("module", [jax, jnp, jnp.linalg, jnp.fft, jax.lax, jax.random, jax.tree, jax.nn.initializers])
def test_every_function_knows_its_own_name(module):
    """Also where two names do the same: code that asks for ``__name__``, help and pickles tell them apart."""
    functions = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    named = {name: f.__name__ for name, f in functions.items() if inspect.isfunction(f) or isinstance(f, jnp.ufunc)}
    assert {name: own for name, own in named.items() if own != name and name not in OTHER_NAMES} == {}


@pytest.mark.parametrize("function", [jnp.amax, jax.tree.map, jax.remat, jax.jacobian])
def test_second_names_are_pickled_as_such(function):
    assert pickle.loads(pickle.dumps(function)) is function


PUBLIC = [jax, jnp, jnp.linalg, jnp.fft, jax.lax, jax.lax.linalg, jax.random, jax.nn.initializers, jax.tree]


@pytest.mark.parametrize("module", PUBLIC, ids=lambda m: m.__name__)
def test_signatures_can_be_read(module):
    """What help and an editor show: names of types, not what they stand for."""
    for name in dir(module):
        function = getattr(module, name)
        if name.startswith("_") or not (inspect.isfunction(function) or isinstance(function, jnp.ufunc)):
            continue
        shown = str(inspect.signature(function))
        assert "Union[" not in shown and "numpy.ndarray" not in shown and "collections.abc" not in shown, (name, shown)
