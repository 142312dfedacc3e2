"""The array protocol at all three levels, for every function of the namespaces."""

import doctest
import importlib.util
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.numpy import creation, protocol
from catena.numpy.protocol import CLOSED
from catena.typing import ArrayLike
from numpy_examples import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"": jnp, "linalg.": jnp.linalg, "fft.": jnp.fft}


def public_functions() -> dict:
    """Every public function by its name in ``catena.numpy``; classes are not among them."""
    found = {}
    for prefix, module in MODULES.items():
        for name, f in ((name, getattr(module, name)) for name in dir(module)):
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


ANY_OBJECT = {("array", "object"), ("asarray", "a"), ("isscalar", "element"), ("pad", "kwargs")}


def test_signatures_say_where_such_objects_may_stand():
    for name, f in FUNCTIONS.items():
        signature = inspect.signature(f, eval_str=True)
        for args, kwargs in EXAMPLES[name]:
            for key, value in signature.bind(*args, **kwargs).arguments.items():
                if has_arrays(value) and (name, key) not in ANY_OBJECT:
                    missing = {*get_args(ArrayLike)} - named(signature.parameters[key].annotation)
                    assert not missing, (name, key)


def named(annotation) -> set:
    """The types in an annotation, also within containers."""
    if isinstance(annotation, str):  # in a signature that was put together, of a ufunc
        annotation = eval(annotation, vars(creation))
    return {annotation}.union(*map(named, get_args(annotation)))


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
    return {p.name for p in parameters if "ArrayLike" in str(p.annotation)}


def test_examples_use_every_array_parameter():
    for name, f in FUNCTIONS.items():
        used = set()
        for args, kwargs in EXAMPLES[name]:
            bound = inspect.signature(f).bind(*args, **kwargs).arguments
            used |= {key for key, value in bound.items() if has_arrays(value)}
        assert array_parameters(f) <= used, name


@pytest.mark.parametrize("name, i", CALLS, ids=ids(CALLS))
def test_levels_1_and_2(name, i):
    args, kwargs = EXAMPLES[name][i]
    f = FUNCTIONS[name]
    expected = f(*replace(args, jnp.asarray), **replace(kwargs, jnp.asarray))
    assert_same(f(*replace(args, Convertible), **replace(kwargs, Convertible)), expected)
    if name in CLOSED:
        return
    kept = f(*replace(args, Kept), **replace(kwargs, Kept))
    leaves = jax.tree_util.tree_leaves(kept)
    assert not any(isinstance(x, jax.Array) for x in leaves)
    assert_same(jax.tree_util.tree_map(lambda x: x.value if isinstance(x, Kept) else x, kept), expected)


def test_level_3():
    for name, i in [call for call in CALLS if call[0] not in CLOSED]:
        args, kwargs = EXAMPLES[name][i]
        args, kwargs = replace(args, Recorder), replace(kwargs, Recorder)
        asked, function, types, given, given_by_name = FUNCTIONS[name](*args, **kwargs)
        assert asked == "asked", name
        assert function is FUNCTIONS[name]
        assert types == (Recorder,), name
        assert given == args and given_by_name == kwargs, name


# These take lists or dtypes beside arrays, so they look what they were given; it is one look at a class.
LOOKING = set("can_cast result_type iscomplexobj isrealobj array_equal array_equiv".split())


def test_without_such_objects_nobody_looks_for_them():
    """The cost when the protocol is not used: of its code, only the wrapper of the function that is called runs."""
    for name, i in CALLS:
        args, kwargs = replace(EXAMPLES[name][i][0], jnp.asarray), replace(EXAMPLES[name][i][1], jnp.asarray)
        run = []

        def profile(frame, event, argument):
            if event == "call" and frame.f_code.co_filename == protocol.__file__:
                run.append(frame.f_code.co_name)

        sys.setprofile(profile)
        try:
            FUNCTIONS[name](*args, **kwargs)
        finally:
            sys.setprofile(None)
        assert set(run) <= ({"call", "takes_part"} if name in LOOKING else {"call"}), name


# ---- the standard: who is asked, what is returned, what happens on conflict


class Subclass(Kept):
    def __jax_wrap__(self, array, function):
        return Subclass(array)


class Other(Convertible):
    def __jax_wrap__(self, array, function):
        return Other(array)


class Modest(Convertible):
    def __jax_wrap__(self, array, function):
        return NotImplemented


class Silent(Convertible):
    """A class that has no meaning for any function, but converts itself."""

    def __jax_function__(self, function, types, args, kwargs):
        return NotImplemented


class Firm:
    """A class that has no meaning for any function, and does not convert itself."""

    def __jax_function__(self, function, types, args, kwargs):
        return NotImplemented


class Closed:
    __jax_function__ = None


X = jnp.arange(3.0)


def test_classes_are_asked_in_order_subclasses_first():
    class Derived(Recorder):
        pass

    base, derived = Recorder(1), Derived(2)
    _, _, types, args, _ = jnp.add(base, derived)
    assert types == (Derived, Recorder) and args == (base, derived)
    assert jnp.concatenate([base, derived, base])[2] == (Derived, Recorder)
    assert jnp.add(Silent(X), base)[2] == (Silent, Recorder)


def test_the_subclass_wraps_and_unrelated_classes_conflict():
    assert type(jnp.add(Kept(X), Subclass(X))) is Subclass
    with pytest.raises(TypeError, match="jnp.add was given objects of Kept and Other, which all wrap"):
        jnp.add(Kept(X), Other(X))
    assert type(jnp.add(Modest(X), Kept(X))) is Kept
    assert isinstance(jnp.add(Modest(X), Modest(X)), jax.Array)


def test_not_implemented_falls_through_to_conversion():
    np.testing.assert_array_equal(jnp.add(Silent(X), 1), X + 1)
    assert type(jnp.add(Silent(X), Kept(X))) is Kept
    with pytest.raises(TypeError, match="jnp.sum has no meaning for Firm: __jax_function__ returned NotImpl"):
        jnp.sum(Firm())
    with pytest.raises(TypeError, match="jnp.add has no meaning for Firm"):
        jnp.add(Kept(X), Firm())
    with pytest.raises(TypeError, match="jnp.add was given a Closed, which takes no part"):
        jnp.add(X, Closed())


def test_conversion_must_give_an_array():
    class Wrong(Convertible):
        def __jax_array__(self):
            return [1, 2]

    class WrongAndKept(Kept):
        def __jax_array__(self):
            return self

    for x in (Wrong(None), WrongAndKept(None)):
        with pytest.raises(TypeError, match=r"__jax_array__\(\) must return an array, got"):
            jnp.sin(x)


def test_arguments_are_handed_on_as_given():
    x = Recorder(X)
    assert jnp.sum(x, axis=0)[3:] == ((x,), {"axis": 0})
    assert jnp.stack(arrays=[x], axis=1)[3:] == ((), {"arrays": [x], "axis": 1})


def test_every_array_of_a_result_is_wrapped_and_nothing_else():
    parts = jnp.linalg.svd(Kept(jnp.eye(2)))
    assert type(parts).__name__ == "SVDResult" and all(type(p) is Kept for p in parts)
    assert jnp.shape(Kept(X)) == (3,)
    assert all(type(p) is Kept for p in jnp.split(Kept(X), 3))


def test_ufuncs_are_asked_by_themselves_and_their_methods():
    x = Recorder(X)
    assert jnp.add(x, 1)[1] is jnp.add
    assert jnp.add.reduce(x, axis=0)[1] == jnp.add.reduce
    assert jnp.add.accumulate(x)[1] == jnp.add.accumulate
    assert jnp.multiply.outer(x, x)[1] == jnp.multiply.outer
    assert jnp.add.at(x, 0, 1.0, inplace=False)[1] == jnp.add.at
    assert type(jnp.frompyfunc(lambda a, b: a - b, 2, 1)(Kept(X), 1.0)) is Kept
    assert type(jnp.vectorize(lambda a: 2 * a)(Kept(X))) is Kept


def test_methods_of_arrays_ask_as_functions_do():
    x = Recorder(X)
    assert X.dot(x)[1] is jnp.dot
    assert X.clip(x)[1] is jnp.clip
    assert X.take(x)[1] is jnp.take
    assert X.searchsorted(x)[1] is jnp.searchsorted


def test_updates_and_conversions_give_plain_arrays():
    for result in (X.at[0].set(Kept(5.0)), jnp.asarray(Kept(X)), jnp.array([Kept(1.0), 2.0]), X[Kept([0, 2])]):
        assert type(result) is type(X)


def test_where_nobody_is_asked_the_error_says_so():
    with pytest.raises(TypeError, match="Recorder, whose class defines its own meaning .* convert the object"):
        Recorder(X) in X  # noqa: B015


class Operand(Kept):
    """A class with operators of its own, of which only some."""

    def __radd__(self, other):
        return "radd"

    def __add__(self, other):
        return "add"

    def __gt__(self, other):
        return "gt"


@pytest.mark.parametrize("where", ["eager", "jit"])
def test_operators_defer_to_classes_that_have_them(where):
    seen = {}

    def f(a):
        x = Operand(X)
        seen.update(add=a + x, less=a < x, mul=type(a * x), eq=type(a == x), sub=type(a - x))
        return a

    (jax.jit(f) if where == "jit" else f)(X)
    assert seen["add"] == "radd" and seen["less"] == "gt"
    assert seen["mul"] is seen["sub"] is seen["eq"] is Kept  # no operator: the function asks the class


def test_conversion_only_classes_keep_working_in_operators():
    np.testing.assert_array_equal(X + Convertible(X), X + X)
    np.testing.assert_array_equal(X == Convertible(X), [True] * 3)


# ---- transformations see only pytrees


def _sum(x):
    return jnp.sum(jnp.asarray(x))


TRANSFORMED = {
    "jit": lambda c: jax.jit(_sum)(c),
    "vmap": lambda c: jax.vmap(_sum)(c),
    "pmap": lambda c: jax.pmap(_sum)(c),
    "grad": lambda c: jax.grad(_sum)(c),
    "value_and_grad": lambda c: jax.value_and_grad(_sum)(c),
    "jvp": lambda c: jax.jvp(_sum, (c,), (c,)),
    "vjp": lambda c: jax.vjp(_sum, c),
    "linearize": lambda c: jax.linearize(_sum, c),
    "linear_transpose": lambda c: jax.linear_transpose(_sum, c),
    "jacfwd": lambda c: jax.jacfwd(_sum)(c),
    "jacrev": lambda c: jax.jacrev(_sum)(c),
    "hessian": lambda c: jax.hessian(_sum)(c),
    "checkpoint": lambda c: jax.checkpoint(_sum)(c),
    "make_jaxpr": lambda c: jax.make_jaxpr(_sum)(c),
    "eval_shape": lambda c: jax.eval_shape(_sum, c),
    "device_put": lambda c: jax.device_put(c),
    "scan carry": lambda c: jax.lax.scan(lambda a, b: (a, b), c, X),
    "scan xs": lambda c: jax.lax.scan(lambda a, b: (a, b), 0.0, c),
    "scan result": lambda c: jax.lax.scan(lambda a, b: (a, c), 0.0, X),
    "while_loop": lambda c: jax.lax.while_loop(lambda a: False, lambda a: a, c),
    "fori_loop": lambda c: jax.lax.fori_loop(0, 2, lambda i, a: a, c),
    "cond": lambda c: jax.lax.cond(True, lambda a: a, lambda a: a, c),
    "switch": lambda c: jax.lax.switch(0, [lambda a: a, lambda a: a], c),
    "map": lambda c: jax.lax.map(lambda a: a, c),
    "associative_scan": lambda c: jax.lax.associative_scan(jnp.add, c),
    "pure_callback": lambda c: jax.pure_callback(_sum, X, c),
    "jit result": lambda c: jax.jit(lambda x: c)(X),
    "vmap result": lambda c: jax.vmap(lambda x: c)(X),
    "grad result": lambda c: jax.grad(lambda x: c)(1.0),
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("kind", [Convertible, Kept, Recorder])
def test_transformations_refuse_unregistered_objects(name, kind):
    with pytest.raises((TypeError, ValueError), match="register_pytree_node_class"):
        TRANSFORMED[name](kind(X))


@jax.tree_util.register_pytree_node_class
class Registered(Kept):
    """A pytree with level 2."""

    def __jax_wrap__(self, array, function):
        return Registered(array)

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def test_registered_classes_are_kept_by_transformations():
    seen = []

    def f(x):
        y = jnp.sin(x)
        seen.extend([type(x), type(y)])
        return y

    x = Registered(X)
    assert type(jax.jit(f)(x)) is Registered
    assert type(jax.vmap(f)(x)) is Registered
    gradient = jax.grad(lambda x: jnp.asarray(jnp.sum(f(x))))(x)
    assert type(gradient) is Registered
    np.testing.assert_allclose(gradient.value, np.cos(X), rtol=1e-6)
    carry, ys = jax.lax.scan(lambda c, row: (jnp.add(c, row), f(row)), Registered(jnp.float32(0)), x)
    assert type(carry) is type(ys) is Registered
    out, tangent = jax.jvp(f, (x,), (x,))
    assert type(out) is type(tangent) is Registered
    assert set(seen) == {Registered}


# ---- the example and the document


def load_units():
    spec = importlib.util.spec_from_file_location("units", ROOT / "examples" / "units.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["units"] = module
    spec.loader.exec_module(module)
    return module


units = load_units()
NEWTON_METRE = units.NEWTON * units.METRE


def energy(x):
    return 0.5 * units.Quantity(50.0, units.NEWTON / units.METRE) * jnp.sum(x**2)


def metres(*values):
    return units.Quantity(jnp.array(values), units.METRE)


def test_units_is_short_and_uses_only_what_is_public():
    source = (ROOT / "examples" / "units.py").read_text()
    assert len(source.splitlines()) < 150
    assert set(re.findall(r"^(?:import|from) (\S+)", source, re.M)) == {
        "dataclasses", "fractions", "catena", "catena.numpy",
    }  # fmt: skip


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.vmap, jax.make_jaxpr, jax.grad])
def test_units_metres_and_seconds_do_not_add_up(transform):
    with pytest.raises(units.UnitError, match="add of different units: m, s"):
        transform(lambda x: x + units.Quantity(1.0, units.SECOND))(metres(1.0, 2.0))


@pytest.mark.parametrize("gradient", [jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.grad(jax.jit(f))])
def test_units_the_gradient_of_energy_is_a_force(gradient):
    force = gradient(energy)(metres(0.5, 0.25))
    assert force.unit == units.NEWTON
    np.testing.assert_allclose(force.value, [25.0, 12.5])


def test_units_of_values_and_higher_derivatives():
    value, force = jax.value_and_grad(energy)(metres(0.5))
    assert value.unit == NEWTON_METRE and force.unit == units.NEWTON
    distance = units.Quantity(2.0, units.METRE)
    stiffness = jax.grad(jax.grad(energy))(distance)
    assert stiffness.unit == units.NEWTON / units.METRE and float(stiffness.value) == 50
    by_plain = jax.grad(lambda t: energy(metres(1.0) * t))(2.0)
    assert by_plain.unit == NEWTON_METRE and float(by_plain.value) == 100
    plain_value = jax.grad(lambda x: jnp.sum(x / units.Quantity(2.0, units.METRE)).value)(metres(1.0))
    assert plain_value.unit == units.ONE / units.METRE
    both = jax.grad(lambda x, k: energy(x) * k, argnums=(0, 1))(metres(1.0), 3.0)
    assert [part.unit for part in both] == [units.NEWTON, NEWTON_METRE]


def test_units_pass_through_transformations():
    x = metres(1.0, 2.0)
    speed = jax.jit(lambda x: x / units.Quantity(2.0, units.SECOND))(x)
    assert speed.unit == units.METRE / units.SECOND
    squares = jax.vmap(lambda x: x**2)(x)
    assert squares.unit == units.METRE**2 and squares.value.shape == (2,)
    forces = jax.vmap(jax.grad(energy))(x)
    assert forces.unit == units.NEWTON
    np.testing.assert_allclose(forces.value, [50.0, 100.0])
    total, steps = jax.lax.scan(lambda c, x: (c + x, c), units.Quantity(0.0, units.METRE), x)
    assert total.unit == steps.unit == units.METRE and float(total.value) == 3
    assert jnp.sqrt(x * x).unit == units.METRE
    assert bool((x < metres(5.0, 5.0)).all())


def test_units_refuse_what_they_have_no_rule_for():
    with pytest.raises(TypeError, match="jnp.arctan has no meaning for Quantity"):
        jnp.arctan(metres(1.0))
    with pytest.raises(units.UnitError, match="exp needs plain numbers, got m"):
        jax.jit(jnp.exp)(metres(1.0))
    with pytest.raises(units.UnitError, match="add of different units: 1, m"):
        X + metres(1.0)


def test_units_program():
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "units.py")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert output[0] == "energy: 9.375 kg m^2 s^-2"
    assert output[1].startswith("force:") and output[1].endswith("kg m s^-2")
    assert output[3] == "UnitError: add of different units: m, s"


def test_the_document_runs():
    results = doctest.testfile(str(ROOT / "docs" / "array_protocol.md"), module_relative=False)
    assert results.attempted >= 30 and results.failed == 0
