"""What libraries with interpreters of their own know of JAX's core."""

import numpy as np

from catena.compat.literals import TypedComplex, TypedFloat, TypedInt, full_lower
from catena.compat.private import module


def test_numbers_carry_a_dtype():
    for cls, value, dtype in ((TypedInt, 3, "int8"), (TypedFloat, 0.5, "float16"), (TypedComplex, 1j, "complex64")):
        number = cls(value, np.dtype(dtype))
        assert number == value and number.dtype == dtype and number + number == 2 * value


def test_names_of_the_core():
    core = module("jax._src.core")
    assert core.full_lower(3.0) == 3.0 and core.full_lower is full_lower
    assert module("jax._src.literals").TypedInt is TypedInt
    assert isinstance(core.Primitive("looked_for"), core.Primitive) and core.AbstractValue in core.ShapedArray.__mro__
