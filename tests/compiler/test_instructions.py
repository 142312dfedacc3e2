"""Helpers by instructions of the processor compute what the general ones do."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import AARCH64, ICE_LAKE, SAPPHIRE_RAPIDS, X86_64_V3
from catena.compiler.native.compile import text_of
from catena.compiler.native.host import this_machine
from catena.compiler.native.instructions import with_instructions
from catena.compiler.vector_math import harness

CASES = [
    *(
        ("erf", "float", 16),
        ("tanh", "float", 16),
        ("tanh", "float", 8),
        ("bessel_i0e", "float", 16),
        ("tanh", "float", 4),
    ),
    *(("lgamma", "float", 16), ("acosh", "float", 8), ("log_ndtr", "float", 16), ("log_gamma_density", "float", 16)),
    *(("log_quotient", "float", 16), ("asinh", "float", 16)),
]


def numbers(elem: str) -> np.ndarray:
    """Of every piece, of both signs, subnormal ones among them; zeros, infinities and NaN."""
    scalar = {"float": np.float32, "double": np.float64}[elem]
    least = float(np.finfo(scalar).smallest_subnormal)
    special = np.array([0.0, least, 5 * least, float(np.finfo(scalar).tiny), np.inf, np.nan], scalar)
    x = np.concatenate([np.linspace(0, 20, 4096, dtype=scalar), np.resize(special, 2048)])
    return np.concatenate([x, -x])


@pytest.mark.parametrize("name, elem, width", CASES)
def test_the_bits_are_the_same(name, elem, width, monkeypatch):
    x = numbers(elem)
    arguments = [np.roll(x, 1000 * k) for k in range(harness.library.arity(name))]
    general = harness.Compiled(name, elem, width)(*arguments)
    text = harness.module_text(name, elem, width)
    own = with_instructions(text, this_machine().features)
    assert own != text or this_machine().chooses < 64 or width == 4
    monkeypatch.setattr(harness, "module_text", lambda *_: own)
    np.testing.assert_array_equal(harness.Compiled(name, elem, width)(*arguments), general)


def test_processors_have_what_is_called():
    text = harness.module_text("erf", "float", 16)
    assert "insertelement" in text and "permvar" not in text
    for machine in (AARCH64, X86_64_V3):
        assert with_instructions(text, machine.features) == text
    own = with_instructions(text, ICE_LAKE.features)
    assert "insertelement" not in own and "fpclass" in own and own.count("define") == text.count("define")


def test_instructions_that_the_module_calls_elsewhere_are_declared_once():
    """Lanes are chosen at places of each row, too."""
    x = np.random.default_rng(0).standard_normal((2000, 8)).astype(np.float32)
    got = jax.jit(lambda x: jnp.tanh(jnp.take_along_axis(x, jnp.argsort(x, 1), 1)))(x)
    np.testing.assert_allclose(got, np.tanh(np.sort(x, 1)), rtol=1e-6)
    text = harness.module_text("erf", "float", 16)
    (declared,) = [
        line
        for line in with_instructions(text, ICE_LAKE.features).splitlines()
        if "@llvm.x86.avx512.perm" in line and line.startswith("declare")
    ]
    own = with_instructions(f"{text}\n{declared}", ICE_LAKE.features)
    assert own.count(declared) == 1


def test_float16_in_all_lanes_is_that_of_processors_that_compute_it():
    """Elsewhere LLVM would widen it at each operation."""
    x, y = jnp.ones((8, 64), jnp.float16), jnp.ones((8, 1), jnp.float16)
    text = text_of(jax.make_jaxpr(lambda x, y: (x - y) * y)(x, y), machine=SAPPHIRE_RAPIDS)
    assert text.count("@catena.one.spread.f16x16(half") == 3
    for machine, is_own in ((SAPPHIRE_RAPIDS, True), (ICE_LAKE, False), (X86_64_V3, False)):
        assert ("fpext <16 x half> %all" in with_instructions(text, machine.features)) == is_own


def test_numbers_of_rows_in_float16_give_the_bits_of_arrays_of_them():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((9, 83)) * 2.0 ** rng.integers(-20, 12, (9, 83))
    y = np.array([0.3, -0.0, 6e-8, -2e-5, 700.0, 65504.0, np.inf, -np.inf, np.nan])[:, None]
    x, y = x.astype(np.float16), y.astype(np.float16)
    got = jax.jit(lambda x, y: ((x * y - x) * y + y, jnp.maximum(x - y, 0), y / x))(x, y)
    with np.errstate(all="ignore"):
        want = (x * y - x) * y + y, np.maximum(x - y, np.float16(0)), y / x
    jax.tree.map(np.testing.assert_array_equal, got, want)


@pytest.mark.parametrize("name, order", [("maximum", np.greater), ("minimum", np.less)])
def test_extremes_of_float16_have_the_signs_of_zeros_and_know_of_nan(name, order):
    """In rows of any length, of lanes and single numbers."""
    rng = np.random.default_rng(4)
    special = np.array([0.0, -0.0, 6e-8, -6e-8, 1.0, -1.0, 65504.0, np.inf, -np.inf, np.nan])
    many = rng.standard_normal(93) * 2.0 ** rng.integers(-20, 12, 93)
    x, y = (a.astype(np.float16) for a in np.meshgrid(np.concatenate([special, many]), special))
    is_first = order(x, y) | ((x == y) & order(-np.signbit(x).astype(int), -np.signbit(y).astype(int)))
    want = np.where(np.isnan(x) | np.isnan(y), np.float16(np.nan), np.where(is_first, x, y))
    for n in (1, 2, 3, 5, 16, 103):
        got = np.asarray(jax.jit(lambda x, y: getattr(jnp, name)(x * 1, y))(x[:, :n], y[:, :n]))
        np.testing.assert_array_equal(got, want[:, :n])
        is_number = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(want[:, :n])[is_number])


@pytest.mark.parametrize("name, order", [("maximum", "ogt"), ("minimum", "olt")])
def test_extremes_of_float16_are_chosen_where_they_are_compared(name, order):
    """LLVM would compare float16 and choose among floats: processors that compare no float16 would widen it again."""
    text = text_of(jax.make_jaxpr(getattr(jnp, name))(*jnp.ones((2, 64), jnp.float16)), machine=SAPPHIRE_RAPIDS)
    for machine, type_ in ((SAPPHIRE_RAPIDS, "half"), (ICE_LAKE, "float"), (X86_64_V3, "float")):
        own = with_instructions(text, machine.features)
        helper = own[own.index(f"define internal <16 x float> @catena.one.{name}.f16x16") :]
        lines = helper[: helper.index("}")].splitlines()
        assert sum(f"fcmp {order} <16 x {type_}>" in line for line in lines) == 2
        assert sum("arithmetic.fence" in line for line in lines) == (2 if type_ == "float" else 0)
