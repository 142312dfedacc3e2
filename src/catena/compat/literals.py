"""Python numbers that carry a dtype, and the lowering of tracers: what libraries with interpreters of their own know of
JAX's core. Numbers that programs are given stay plain here; these are for those who make some, or ask for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.core.trace import Tracer


class _Typed:
    """What numbers with a dtype have in common."""

    dtype: np.dtype

    def __new__(cls, value, dtype):
        self = super().__new__(cls, value)  # type: ignore[call-arg]  (the number's)
        self.dtype = dtype
        return self


class TypedInt(_Typed, int):
    """An integer with a dtype.

    >>> TypedInt(3, np.dtype("int8")).dtype
    dtype('int8')
    """


class TypedFloat(_Typed, float):
    """A float with a dtype."""


class TypedComplex(_Typed, complex):
    """A complex number with a dtype."""


def full_lower(x: Any) -> Any:
    """A value without the tracers of transformations that know nothing of it."""
    return x.full_lower() if isinstance(x, Tracer) else x
