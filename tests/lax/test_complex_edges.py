"""Complex functions where a part is huge, tiny, infinite or no number: eager and compiled, which are one code."""

import mpmath
import numpy as np
import pytest

import catena
import catena.numpy as jnp

GREATEST = float(np.finfo(np.float32).max)
PARTS = [0.0, 1.0, -1.0, 0.5, -2.0, 1e-20, -1e-30, 2e-5, 3e-3, 0.9999, -1.0002, 50.0, -100.0, 100.0, 1e10, -1e20]
PARTS += [3e30, GREATEST, -GREATEST, 1e-38, 1e-42, 20.5, -12.0]
POINTS = np.array([complex(a, b) for a in PARTS for b in PARTS if a and b], np.complex64)  # on no branch cut
REFERENCES = {
    "exp": mpmath.exp, "expm1": mpmath.expm1, "log": mpmath.log, "log1p": lambda z: mpmath.log(1 + z),
    "log2": lambda z: mpmath.log(z) / mpmath.log(2), "log10": lambda z: mpmath.log(z) / mpmath.log(10),
    "sin": mpmath.sin, "cos": mpmath.cos, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tan": mpmath.tan,
    "tanh": mpmath.tanh, "arcsin": mpmath.asin, "arccos": mpmath.acos, "arccosh": mpmath.acosh,
    "arcsinh": mpmath.asinh, "arctanh": mpmath.atanh, "arctan": mpmath.atan, "sqrt": mpmath.sqrt,
    "square": lambda z: z * z, "reciprocal": lambda z: 1 / z, "sign": lambda z: z / abs(z),
}  # fmt: skip


def as_single(x) -> float:
    """A number of mpmath rounded to float32; what is too large is infinite."""
    with np.errstate(over="ignore"):
        return float(np.float32(float(x))) if abs(x) < 1e300 else float(np.sign(x)) * np.inf


def reference(name: str, z) -> tuple:
    with mpmath.workprec(400):
        value = mpmath.mpc(REFERENCES[name](mpmath.mpc(z.real, z.imag)))
        return as_single(value.real), as_single(value.imag)


# How far off a part may be, relative to itself where functions promise that, or to the number as a whole.
BY_PARTS = frozenset("exp expm1 log1p tanh sinh cosh sin cos sqrt".split())


@pytest.mark.parametrize("name", REFERENCES)
def test_parts_are_finite_where_they_should_be_and_right(name):
    values = np.asarray(getattr(jnp, name)(jnp.asarray(POINTS)))
    wrong = []
    for z, value in zip(POINTS.tolist(), values.tolist(), strict=True):
        expected = reference(name, z)
        size = max(abs(p) for p in expected if np.isfinite(p)) if np.isfinite(expected).any() else 0.0
        for part, should in zip((value.real, value.imag), expected, strict=True):
            bound = 2e-6 * (abs(should) if name in BY_PARTS else size) + 3e-45
            if part != should and not abs(part - should) <= bound:
                wrong.append((z, value, expected))
    assert not wrong


INF, NAN = np.inf, np.nan
SPECIAL = [  # C99, annex G, and the array API standard
    ("exp", complex(INF, 0), complex(INF, 0)),
    ("exp", complex(NAN, 0), complex(NAN, 0)),
    ("exp", complex(-INF, INF), complex(0, 0)),
    ("exp", complex(-1e20, INF), complex(NAN, NAN)),
    ("exp", complex(100, INF), complex(NAN, NAN)),
    ("expm1", complex(INF, 0), complex(INF, 0)),
    ("expm1", complex(NAN, 0), complex(NAN, 0)),
    ("expm1", complex(100, 0), complex(INF, 0)),
    ("expm1", complex(-INF, INF), complex(-1, 0)),
    ("tan", complex(INF, 50), complex(NAN, NAN)),
    ("tanh", complex(INF, INF), complex(1, 0)),
    ("log2", complex(0, INF), complex(INF, np.pi / 2 / np.log(2))),
    ("log10", 0j, complex(-INF, 0)),
    ("square", complex(INF, 1e20), complex(INF, INF)),
    ("square", 1e10 + 1e10j, 2e20j),
    ("reciprocal", complex(INF, INF), 0j),
    ("abs", complex(INF, NAN), complex(INF, 0)),
]


@pytest.mark.parametrize(("name", "z", "expected"), SPECIAL, ids=str)
def test_special_values(name, z, expected):
    fun = getattr(jnp, name)
    for call in (fun, catena.jit(fun)):
        value = complex(call(jnp.asarray(np.complex64(z))))
        np.testing.assert_allclose([value.real, value.imag], [expected.real, expected.imag], rtol=1e-6)


def test_a_byte_of_a_bool_is_true_unless_it_is_zero():
    odd = np.array([0, 24, 1, 128], np.uint8).view(bool)
    assert catena.jit(lambda x: x.astype(int))(odd).tolist() == [0, 1, 1, 1]
    assert catena.jit(lambda x: x)(odd).view(np.uint8).tolist() == [0, 24, 1, 128]


@pytest.mark.parametrize(
    ("dtype", "bits"), [("bfloat16", "uint16"), ("float16", "uint16"), ("float8_e5m2", "uint8"), ("float32", "uint32")]
)
def test_bit_casts_keep_signalling_nans(dtype, bits):
    patterns = np.arange(256, dtype=np.uint8) if bits == "uint8" else np.arange(1 << 16, dtype=np.uint16)
    patterns = patterns.astype(np.uint32) + 0x7F800000 if bits == "uint32" else patterns
    there = catena.jit(lambda x: x.view(dtype))(patterns)
    assert (np.asarray(there).view(bits) == patterns).all()
    assert (catena.jit(lambda x: x.view(bits))(there) == patterns).all()
    assert (catena.jit(lambda x: x.view(dtype).view(bits))(patterns) == patterns).all()
