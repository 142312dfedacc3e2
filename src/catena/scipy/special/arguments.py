"""What the special functions take: numbers, which become floats of one dtype; complex numbers mostly not."""

from __future__ import annotations

from catena.core import dtypes
from catena.numpy.boundary import as_operand, convert, dtype_of, promote_inexact
from catena.numpy.conversion import asarray
from catena.numpy.documentation import family

_WORDS = {
    "x": "numbers.",
    "a": "numbers.",
    "b": "numbers, of a shape that broadcasts with ``a``.",
    "returns": "An array of the float dtype that the arguments promote to.",
}
numbers = family(
    **_WORDS,
    raises="TypeError: an argument is neither an array nor a scalar.\n"
    "ValueError: an argument is complex, or shapes do not broadcast.",
)
floats = family(
    **_WORDS,
    raises="TypeError: an argument is neither an array nor a scalar, or is complex.\n"
    "ValueError: shapes do not broadcast.",
)
plain_floats = family(
    x="an array of float32 or float64, or Python floats.",
    p="an array of float32 or float64, or Python floats: probabilities.",
    returns="An array of that dtype.",
    raises="TypeError: the dtype is another one.",
)


def real(name: str, *args, error: type = ValueError) -> list:
    """The arguments as operands of one float dtype and one rank; an error where one is complex."""
    xs = promote_inexact(name, *args)
    if dtypes.is_complex(xs[0].dtype):
        raise error(f"{name} takes real numbers, got an argument of dtype {xs[0].dtype}")
    return xs


def plain_float(name: str, x):
    """An argument of float32 or float64, as an operand that is not weak; a TypeError for others."""
    return strong(maybe_weak_float(name, x))


def maybe_weak_float(name: str, x):
    """An argument of float32 or float64, as an operand; a TypeError for others."""
    x = as_operand(name, asarray(x) if isinstance(x, list | tuple) else x)
    dtype, weak = dtype_of(x)
    if dtype.kind != "f" or dtype.itemsize < 4:
        raise TypeError(f"{name} takes floats of 32 or 64 bits, got an argument of dtype {dtypes.dtype_name(dtype)}")
    return convert(x, dtype, weak)


def strong(x):
    """A result that does not give way to the dtypes of others."""
    return convert(x, x.dtype)
