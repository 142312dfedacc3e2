"""Every primitive, every rule, every dtype: generated from the table in ``cases``."""

import functools

import numpy as np
import pytest

import catena
from catena.core import primitive as primitives
from catena.core.primitive import NoRule
from checkers import assert_close, check_grads, check_jit, check_reference, check_vmap, flat_outputs
from rules.cases import CASES

DIFFERENTIABLE = [c for c in CASES.values() if c.order]
EVERY_DTYPE = [pytest.param(c, d, id=f"{c.name}-{d}") for c in CASES.values() for d in c.dtypes]
EVERY_CASE = [pytest.param(c, id=c.name) for c in CASES.values()]


@pytest.fixture(autouse=True)
def x64():
    with catena.enable_x64(True):
        yield


def arguments(case, dtype) -> tuple:
    return case.make(np.random.default_rng(7), dtype)


@pytest.mark.parametrize("case, dtype", EVERY_DTYPE)
def test_value(case, dtype):
    args = arguments(case, dtype)
    if case.reference is None:
        for out in flat_outputs(case.fun(*args)):
            assert isinstance(out, np.ndarray)
        return
    check_reference(case.fun, case.reference, args, ulps=case.ulps and max(case.ulps, 1.0))


@pytest.mark.parametrize("case, dtype", EVERY_DTYPE)
def test_compiled(case, dtype):
    check_jit(case.fun, arguments(case, dtype), ulps=case.ulps)


@pytest.mark.parametrize("case", EVERY_CASE)
def test_vectorised(case):
    args = arguments(case, case.dtypes[0])
    if args:
        check_vmap(case.fun, args, ulps=case.ulps)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in DIFFERENTIABLE])
def test_derivatives(case):
    for dtype in ("float64", "complex128"):
        if dtype in case.dtypes:
            check_grads(case.fun, arguments(case, dtype), order=case.order, modes=case.modes)


@pytest.mark.parametrize("case", EVERY_CASE)
def test_gradient_of_vectorised_compiled(case):
    """The composition of all three transformations agrees with a loop over gradients."""
    if "float64" not in case.dtypes or not case.order:
        pytest.skip("not differentiable")
    args = arguments(case, "float64")

    def total(*xs):
        parts = [catena.lax.reduce_sum(y, tuple(range(y.ndim))) for y in catena.tree_util.tree_leaves(case.fun(*xs))]
        real = [catena.lax.real(p) if p.dtype.kind == "c" else p for p in parts]
        return functools.reduce(catena.lax.add, real)

    batched = [np.stack([a, a]) for a in args]
    gradients = catena.vmap(catena.grad(catena.jit(total)))(*batched)
    expected = catena.grad(total)(*args)
    np.testing.assert_allclose(gradients, np.stack([expected, expected]), rtol=1e-10, atol=1e-12)


EMPTY = [c for c in CASES.values() if c.covers in ("add", "sin", "mul", "select_n", "neg", "max", "exp")]


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in EMPTY if "scalar" not in c.name])
def test_empty_and_scalar(case):
    for take in (lambda a: a[:0], lambda a: a[0, 0]):
        args = [take(a) for a in arguments(case, case.dtypes[0])]
        if case.covers == "select_n" and case.name == "select_n":
            continue  # its selector has a fixed shape
        out = flat_outputs(case.fun(*args))[0]
        compiled = flat_outputs(catena.jit(case.fun)(*args))[0]
        assert out.shape == np.broadcast_shapes(*[np.shape(a) for a in args])
        assert_close(compiled, out, ulps=case.ulps)


OURS = (
    "structure elementwise bitwise comparison convert complex_numbers arithmetic powers transcendental "
    "special broadcasting reshaping slicing join reductions reduce cumulative identity"
).split()


def our_primitives() -> list:
    found = {}
    for name in OURS:
        module = __import__(f"catena.lax.{name}", fromlist=["_"])
        for value in vars(module).values():
            if isinstance(value, primitives.Primitive):
                found[value.name] = value
    return list(found.values())


@pytest.mark.parametrize("primitive", our_primitives(), ids=lambda p: p.name)
def test_primitive_is_whole(primitive):
    """Every rule is there, or a reason stands in its place; and some case checks the primitive."""
    for rule in primitives.RULES:
        given = getattr(primitive, rule)
        assert callable(given) or isinstance(given, NoRule), f"{primitive} has no {rule} rule and no reason"
    assert any(c.covers == primitive.name for c in CASES.values()), f"no case covers {primitive}"


SLOW = (
    "erf erfc bessel_i0e zeta clz mulhi shift_left shift_right_arithmetic div_int rem_int round sign "
    "clamp nextafter add exp max"
)


@pytest.mark.parametrize("name", SLOW.split())
def test_large_arrays_agree_with_small_ones(name):
    """Where NumPy is slow, compiled kernels evaluate large arrays, in pieces; the values must not tell."""
    case = CASES[name]
    for dtype in ("float32", "float16", "bfloat16", "int32", "uint8"):
        if dtype not in case.dtypes or (name, dtype) == ("nextafter", "float16"):
            continue
        small = arguments(case, dtype)
        count = 16384 // small[-1].size + 2  # one piece and some more
        large = [np.concatenate([a] * count) if a.ndim else a for a in small]
        expected = np.concatenate([flat_outputs(case.fun(*small))[0]] * count)
        actual = flat_outputs(case.fun(*large))[0]
        assert actual.dtype == expected.dtype
        assert_close(actual, expected, ulps=case.ulps and max(case.ulps, 1.0), what=dtype)
