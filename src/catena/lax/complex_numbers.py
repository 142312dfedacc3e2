"""Complex numbers and their parts. Cotangents follow JAX's convention: the transpose of a map is not conjugated."""

import numpy as np

from catena.core import dtypes
from catena.core.shapes import broadcast_shapes
from catena.core.zeros import Zero, get_aval, is_undefined_primal, zeros
from catena.lax.convert import convert
from catena.lax.declared import neg_p
from catena.lax.elementwise import COMPLEX, COMPONENT, CONJUGABLE, elementwise
from catena.lax.structure import broadcast_to, unbroadcast

# ---- complex


def _complex_of(x, *_):
    return dtypes.to_complex_dtype(x.dtype)


def _neg(x):
    return neg_p.bind(x)


def _make_complex(x, y):
    out = np.empty(broadcast_shapes(x.shape, y.shape), dtypes.to_complex_dtype(x.dtype))
    out.real, out.imag = x, y
    return out


def _complex_transpose(ct, x, y):
    parts = ((x, lambda: real(ct)), (y, lambda: imag(_neg(ct))))
    if type(ct) is Zero:
        return [Zero(p.aval) if is_undefined_primal(p) else None for p, _ in parts]
    return [unbroadcast(part(), p.aval) if is_undefined_primal(p) else None for p, part in parts]


def _complex_jvp(primals, tangents):
    out = complex_p.bind(*primals)
    if all(type(t) is Zero for t in tangents):
        return out, Zero.of_primal(out)
    shape = get_aval(out).shape
    return out, complex(*[zeros(t.aval) if type(t) is Zero else broadcast_to(t, shape) for t in tangents])


complex_p = elementwise(
    "complex", _make_complex, COMPONENT, jvp=_complex_jvp, transpose=_complex_transpose, result=_complex_of,
)  # fmt: skip


def complex(x, y):
    """Elementwise :math:`x + iy`.

    Arguments:
      x, y: float32 or float64 arrays of the same dtype, of shapes that broadcast.
    Returns:
      A complex64 or complex128 array.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.complex(1.0, 2.0).item()
    (1+2j)
    """
    return complex_p.bind(x, y)


# ---- real


def _real_of(x, *_):
    return dtypes.to_real_dtype(x.dtype)


def _zero_like(x):
    return zeros(get_aval(x).strip_weak_type())


def _real_transpose(ct, x):
    return [Zero(x.aval) if type(ct) is Zero else complex(ct, _zero_like(ct))]


real_p = elementwise(
    "real", lambda x: x.real, COMPLEX, lambda t, x, y: real(t), transpose=_real_transpose, result=_real_of
)


def real(x):
    """Elementwise real part.

    Arguments:
      x: array of complex numbers.
    Returns:
      An array of floats of the same shape.
    Raises:
      TypeError: the dtype is not complex.

    >>> import catena.lax as lax
    >>> lax.real(1 + 2j).item()
    1.0
    """
    return real_p.bind(x)


# ---- imag


def _imag_transpose(ct, x):
    return [Zero(x.aval) if type(ct) is Zero else complex(_zero_like(ct), _neg(ct))]


imag_p = elementwise(
    "imag", lambda x: x.imag, COMPLEX, lambda t, x, y: imag(t), transpose=_imag_transpose, result=_real_of
)


def imag(x):
    """Elementwise imaginary part.

    Arguments:
      x: array of complex numbers.
    Returns:
      An array of floats of the same shape.
    Raises:
      TypeError: the dtype is not complex.

    >>> import catena.lax as lax
    >>> lax.imag(1 + 2j).item()
    2.0
    """
    return imag_p.bind(x)


# ---- conj


def _conj(x, *, input_dtype):
    return np.conjugate(x) if x.dtype.kind == "c" else x.astype(dtypes.to_complex_dtype(x.dtype))


def _conj_transpose(ct, x, *, input_dtype):
    if type(ct) is Zero:
        return [Zero(x.aval)]
    return [conj(ct) if dtypes.is_complex(input_dtype) else real(ct)]


def _conj_lower(b, x, *, input_dtype):
    if dtypes.is_complex(x.dtype):
        return b.map("conj", x)
    return b.map("complex", x, b.full(x.shape, np.zeros((), x.dtype)))


conj_p = elementwise(
    "conj", _conj, CONJUGABLE, lambda t, x, y, *, input_dtype: conj_p.bind(t, input_dtype=input_dtype),
    transpose=_conj_transpose, lower=_conj_lower, result=_complex_of,
)  # fmt: skip


def conj(x):
    r"""Elementwise complex conjugate: :math:`\overline{x}`.

    Arguments:
      x: array of complex numbers, or of float32 or float64.
    Returns:
      A complex array of the same shape.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.conj(1 + 2j).item()
    (1-2j)
    """
    return conj_p.bind(x, input_dtype=get_aval(x).dtype)


# ---- match_dtype


def match_dtype(x, dtype):
    """``x`` in ``dtype``, keeping its weakness."""
    return convert(x, dtype, get_aval(x).weak_type)
