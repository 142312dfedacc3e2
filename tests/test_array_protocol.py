"""The array protocol at all three levels, for every function of the namespaces."""

import inspect
import types

import numpy as np
import pytest
from tests.numpy_examples import EXAMPLES

import catena as jax
import catena.numpy as jnp
from catena.numpy.protocol import CLOSED

MODULES = {"": jnp, "linalg.": jnp.linalg, "fft.": jnp.fft}


def public_functions() -> dict:
    """Every public function by its name in ``catena.numpy``; classes are not among them."""
    found = {}
    for prefix, module in MODULES.items():
        for name, f in vars(module).items():
            if not name.startswith("_") and callable(f) and not isinstance(f, type | types.ModuleType):
                found[prefix + name] = f
    return found


FUNCTIONS = public_functions()


class Convertible:
    """Level 1: an object that converts itself."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return jnp.asarray(self.value)


class Kept(Convertible):
    """Level 2: results are of this class again."""

    def __jax_wrap__(self, array, function):
        return Kept(array)


class Recorder:
    """Level 3: every function returns what it was asked, and nothing can be converted."""

    def __init__(self, value):
        self.value = value

    def __jax_function__(self, function, types, args, kwargs):
        return ("asked", function, types, args, kwargs)


def replace(x, kind):
    """``x`` with an object of ``kind`` for each NumPy array in it."""
    if isinstance(x, np.ndarray):
        return kind(x)
    if type(x) in (list, tuple):
        return type(x)(replace(item, kind) for item in x)
    if type(x) is dict:
        return {k: replace(v, kind) for k, v in x.items()}
    return x


def has_arrays(x) -> bool:
    if isinstance(x, list | tuple):
        return any(map(has_arrays, x))
    return isinstance(x, np.ndarray) or isinstance(x, dict) and has_arrays(list(x.values()))


CALLS = [(name, i) for name, calls in EXAMPLES.items() for i, call in enumerate(calls) if has_arrays(call)]


def ids(calls):
    return [f"{name}-{i}" for name, i in calls]


def plain(result):
    """A result as NumPy arrays and Python values, to compare."""
    return [np.asarray(x) if isinstance(x, jax.Array) else x for x in jax.tree_util.tree_leaves(result)]


def assert_same(ours, theirs):
    assert jax.tree_util.tree_structure(ours) == jax.tree_util.tree_structure(theirs)
    for a, b in zip(plain(ours), plain(theirs), strict=True):
        if isinstance(b, np.ndarray):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=3e-7)
        else:
            assert repr(a) == repr(b)


def test_every_function_has_an_example():
    assert sorted(FUNCTIONS) == sorted(EXAMPLES)


def array_parameters(f) -> set:
    parameters = inspect.signature(f).parameters.values()
    return {p.name for p in parameters if "SupportsJAXArray" in str(p.annotation)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_use_every_array_parameter(name):
    f, used = FUNCTIONS[name], set()
    for args, kwargs in EXAMPLES[name]:
        bound = inspect.signature(f).bind(*args, **kwargs).arguments
        used |= {key for key, value in bound.items() if has_arrays(value)}
    assert array_parameters(f) <= used


@pytest.mark.parametrize("name, i", CALLS, ids=ids(CALLS))
def test_level_1(name, i):
    args, kwargs = EXAMPLES[name][i]
    f = FUNCTIONS[name]
    expected = f(*replace(args, jnp.asarray), **replace(kwargs, jnp.asarray))
    assert_same(f(*replace(args, Convertible), **replace(kwargs, Convertible)), expected)


OPEN = [(name, i) for name, i in CALLS if name not in CLOSED]


@pytest.mark.parametrize("name, i", OPEN, ids=ids(OPEN))
def test_level_2(name, i):
    args, kwargs = EXAMPLES[name][i]
    f = FUNCTIONS[name]
    expected = f(*replace(args, jnp.asarray), **replace(kwargs, jnp.asarray))
    kept = f(*replace(args, Kept), **replace(kwargs, Kept))
    leaves = jax.tree_util.tree_leaves(kept)
    assert not any(isinstance(x, jax.Array) for x in leaves)
    assert_same(jax.tree_util.tree_map(lambda x: x.value if isinstance(x, Kept) else x, kept), expected)


@pytest.mark.parametrize("name, i", OPEN, ids=ids(OPEN))
def test_level_3(name, i):
    args, kwargs = EXAMPLES[name][i]
    args, kwargs = replace(args, Recorder), replace(kwargs, Recorder)
    asked, function, types, given, given_by_name = FUNCTIONS[name](*args, **kwargs)
    assert asked == "asked"
    assert function is FUNCTIONS[name]
    assert types == (Recorder,)
    assert given == args and given_by_name == kwargs
