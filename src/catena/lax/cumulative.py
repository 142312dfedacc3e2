"""Running sums, products, extremes and log-sum-exps along an axis, from either end."""

import functools

import numpy as np

from catena.core import casts, dtypes
from catena.core.aval import ShapedArray
from catena.core.primitive import Primitive
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.zeros import Zero, get_aval
from catena.lax import native
from catena.lax.arithmetic import abs_p, add, max_p, min_p, mul, mul_p, neg_p, sub
from catena.lax.comparison import eq, ge, ne_p, select
from catena.lax.complex_numbers import real
from catena.lax.elementwise import ANY_NUMBER, INEXACT, NOT_LINEAR, WIDER, WIDER_WITH_HALF, check_admitted
from catena.lax.join import concatenate_p
from catena.lax.shape import pad, rev, slice_in_dim
from catena.lax.signed_zeros import maximum, minimum, ordered
from catena.lax.structure import as_ints, broadcast_to, like, strong_like
from catena.lax.transcendental import exp, log1p_p

# ------------------------------------------------------------------------------------------------------------
# What several share


def _running(accumulate, wider):
    """``accumulate(x, axis)`` for all dtypes and from either end."""

    def evaluate(x, *, axis, reverse):
        dtype = x.dtype
        x = x.astype(wider[dtype]) if dtype in wider else x
        if reverse:
            x = np.flip(x, axis)
        out = accumulate(x, axis)
        return casts.convert(np.flip(out, axis) if reverse else out, dtype)

    return evaluate


def prefix_scan(combine, x, t, axis: int):
    """Running combinations of pairs (value, tangent), by an odd-even tree: ``combine(x1, t1, x2, t2)`` gives a pair.

    Blelloch, Prefix sums and their applications (1990). The tree decides how ties share a derivative.
    """
    n = get_aval(x).shape[axis]
    if n < 2:
        return x, t

    def every_second(a, start, stop=None):
        return slice_in_dim(a, start, n if stop is None else stop, 2, axis)

    last = n - (n % 2)
    pairs = combine(every_second(x, 0, last), every_second(t, 0, last), every_second(x, 1), every_second(t, 1))
    odd = prefix_scan(combine, *pairs, axis)
    evens = [every_second(a, 2) for a in (x, t)]
    m = get_aval(evens[0]).shape[axis]
    evens = combine(*[slice_in_dim(a, 0, m, 1, axis) for a in odd], *evens)
    firsts = [slice_in_dim(a, 0, 1, 1, axis) for a in (x, t)]
    return tuple(
        _interleave(concatenate_p.bind(first, even, dimension=axis), o, axis)
        for first, even, o in zip(firsts, evens, odd, strict=True)
    )


def _interleave(even, odd, axis: int):
    """The elements of ``even`` and ``odd`` in turn."""
    ndim = get_aval(even).ndim
    longer = get_aval(even).shape[axis] > get_aval(odd).shape[axis]

    # To add -0 leaves complex numbers as they are; real ones come here as tangents, whose zeros count by no sign.
    nothing = strong_like(even, complex(-0.0, -0.0) if dtypes.is_complex(get_aval(even).dtype) else 0)

    def spaced(x, lo, hi):
        return pad(x, nothing, [(lo, hi, 1) if d == axis else (0, 0, 0) for d in range(ndim)])

    return add(spaced(even, 0, 0 if longer else 1), spaced(odd, 1, 1 if longer else 0))


def _complex_logaddexp(x1, x2):
    """``_logaddexp`` of complex numbers, as primitives."""
    first = ge(real(x1), real(x2))
    larger, smaller = select(first, x1, x2), select(first, x2, x1)
    height = real(larger)
    nothing = eq(height, broadcast_to(like(height, -np.inf), get_aval(height).shape))
    return select(nothing, larger, add(larger, log1p_p.bind(exp(sub(smaller, larger)))))


def _jvp(find, combine):
    def jvp(primals, tangents, *, axis, reverse):
        (x,), (t,) = primals, tangents
        out = find().bind(x, axis=axis, reverse=reverse)
        if type(t) is Zero:
            return out, Zero.of_primal(out)
        if reverse:
            x, t = rev(x, (axis,)), rev(t, (axis,))
        tangent = prefix_scan(combine, x, t, axis)[1]
        return out, rev(tangent, (axis,)) if reverse else tangent

    return jvp


def _lower(b, x, *, name, axis, reverse):
    if dtypes.is_complex(x.dtype) and name in _BY_TREE:
        closed = b.traced(lambda *shape: _tree(name, axis, reverse, ShapedArray(shape, x.dtype)), *x.shape)
        return b.call(closed, [x])[0]
    return b.cumulative(name[3:], x, axis, reverse)


_BY_TREE = {"cummax": max_p.bind, "cummin": min_p.bind, "cumlogsumexp": _complex_logaddexp}


def _tree(name, axis, reverse, aval):
    """A running operation on complex numbers as a jaxpr: a tree of the elementwise function."""

    def running(x):
        x = rev(x, (axis,)) if reverse else x
        out, _ = prefix_scan(lambda x1, t1, x2, t2: (_BY_TREE[name](x1, x2), t1), x, x, axis)
        return [rev(out, (axis,)) if reverse else out]

    return trace_to_closed_jaxpr(running, [aval], DebugInfo("compilation", name))[0]


def _cumulative(name, accumulate, jvp, *, admitted=ANY_NUMBER, wider=WIDER, transpose=NOT_LINEAR) -> Primitive:
    def abstract(x, *, axis, reverse):
        check_admitted(name, x, admitted)
        if axis < 0:
            raise ValueError(f"{name}: axis must not be negative, got {axis}")
        if axis >= x.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
        return x

    def batch(mapped, args, dims, *, axis, reverse):
        (x,), (d,) = args, dims
        return primitive.bind(x, axis=axis + (axis >= d), reverse=reverse), d

    primitive = Primitive(
        name, abstract=abstract, evaluate=_running(accumulate, wider), jvp=jvp, transpose=transpose,
        batch=batch, lower=functools.partial(_lower, name=name),
    )  # fmt: skip
    primitive.evaluate = native.shaped(primitive, primitive.evaluate)
    return primitive


# ---- cumsum


def _without_negative_zeros(out, axis):
    """A running sum is -0 only where all before it are."""
    first = np.take(out, [0], axis) if out.shape[axis] else out
    if out.dtype.kind in "fc" and np.any((first == 0) & (np.signbit(first.real) | np.signbit(first.imag))):
        out = np.add(out, 0, out)
    return out


def _sum(x, axis):
    """Running sums, kept in twice the precision, that begin with 0, as XLA's do: that of -0 is 0."""
    out = np.add.accumulate(x, axis, dtype=_TWICE.get(x.dtype, x.dtype)).astype(x.dtype, copy=False)
    return _without_negative_zeros(out, axis)


_TWICE = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}


def _cumsum_jvp(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    out = cumsum_p.bind(x, **params)
    return out, Zero.of_primal(out) if type(t) is Zero else cumsum_p.bind(t, **params)


def _cumsum_transpose(ct, x, *, axis, reverse):
    return [Zero(x.aval) if type(ct) is Zero else cumsum_p.bind(ct, axis=axis, reverse=not reverse)]


cumsum_p = _cumulative("cumsum", _sum, _cumsum_jvp, wider=WIDER_WITH_HALF, transpose=_cumsum_transpose)


def cumsum(operand, axis: int = 0, reverse: bool = False):
    """Running sums along an axis.

    Arguments:
      operand: array of numbers.
      axis: the axis, not negative.
      reverse: whether to run from the end.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: there is no such axis.

    >>> import catena.lax as lax, numpy as np
    >>> lax.cumsum(np.array([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return cumsum_p.bind(operand, axis=as_ints((axis,), "cumsum: axis")[0], reverse=bool(reverse))


# ---- cumprod


def _by_rule(primitive):
    """Combine values by ``primitive`` and tangents by its differentiation rule."""
    return lambda x1, t1, x2, t2: primitive.jvp((x1, x2), (t1, t2))


def _accumulate(ufunc):
    return lambda x, axis: ufunc.accumulate(x, axis, dtype=x.dtype)


cumprod_p = _cumulative(
    "cumprod", _accumulate(np.multiply), _jvp(lambda: cumprod_p, _by_rule(mul_p)), wider=WIDER_WITH_HALF
)


def cumprod(operand, axis: int = 0, reverse: bool = False):
    """Running products along an axis.

    Arguments:
      operand: array of numbers.
      axis: the axis, not negative.
      reverse: whether to run from the end.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: there is no such axis.

    >>> import catena.lax as lax, numpy as np
    >>> lax.cumprod(np.array([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return cumprod_p.bind(operand, axis=as_ints((axis,), "cumprod: axis")[0], reverse=bool(reverse))


# ---- cummax


def _extreme(ufunc, of_two):
    def accumulate(x, axis):
        if x.dtype.kind == "c":
            return _one_by_one(of_two, x, axis)  # the last of those that are equal, as the tree has it
        return ordered(ufunc, lambda f, x: f.accumulate(x, axis), x)

    return accumulate


def _one_by_one(of_two, x, axis):
    """Running values of a function of two arrays, which knows what NumPy's does not."""
    out = x.copy()
    rows = np.moveaxis(out, axis, 0)
    for i in range(1, rows.shape[0]):
        rows[i] = of_two(rows[i - 1], rows[i])
    return out


cummax_p = _cumulative("cummax", _extreme(np.maximum, maximum), _jvp(lambda: cummax_p, _by_rule(max_p)))


def cummax(operand, axis: int = 0, reverse: bool = False):
    """Running maxima along an axis.

    Arguments:
      operand: array of numbers.
      axis: the axis, not negative.
      reverse: whether to run from the end.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: there is no such axis.

    >>> import catena.lax as lax, numpy as np
    >>> lax.cummax(np.array([1, 3, 2])).tolist()
    [1, 3, 3]
    """
    return cummax_p.bind(operand, axis=as_ints((axis,), "cummax: axis")[0], reverse=bool(reverse))


# ---- cummin

cummin_p = _cumulative("cummin", _extreme(np.minimum, minimum), _jvp(lambda: cummin_p, _by_rule(min_p)))


def cummin(operand, axis: int = 0, reverse: bool = False):
    """Running minima along an axis.

    Arguments:
      operand: array of numbers.
      axis: the axis, not negative.
      reverse: whether to run from the end.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: there is no such axis.

    >>> import catena.lax as lax, numpy as np
    >>> lax.cummin(np.array([3, 1, 2])).tolist()
    [3, 1, 1]
    """
    return cummin_p.bind(operand, axis=as_ints((axis,), "cummin: axis")[0], reverse=bool(reverse))


# ---- cumlogsumexp


def _logaddexp(x, y):
    """For complex numbers: relative to the one with the larger real part."""
    larger, smaller = np.where(x.real >= y.real, x, y), np.where(x.real >= y.real, y, x)
    return np.where(np.isneginf(larger.real), larger, larger + np.log1p(np.exp(smaller - larger)))


def _cumlogsumexp(x, axis):
    if x.dtype.kind != "c":
        return _without_negative_zeros(np.logaddexp.accumulate(x, axis), axis)
    return _one_by_one(_logaddexp, x, axis)


def _real_logaddexp(x1, x2):
    gap = sub(x1, x2)
    nan = ne_p.bind(gap, gap)  # equal infinities
    return select(nan, add(x1, x2), add(max_p.bind(x1, x2), log1p_p.bind(exp(neg_p.bind(abs_p.bind(gap))))))


def _logaddexp_pair(x1, t1, x2, t2):
    aval = get_aval(x1)
    infinity, zero = (broadcast_to(like(x1, v), aval.shape) for v in (np.inf, 0))
    out = (_complex_logaddexp if dtypes.is_complex(aval.dtype) else _real_logaddexp)(x1, x2)

    def finite(v):
        return select(eq(v, infinity), zero, v)

    return out, add(mul(t1, exp(sub(finite(x1), finite(out)))), mul(t2, exp(sub(finite(x2), finite(out)))))


cumlogsumexp_p = _cumulative(
    "cumlogsumexp", _cumlogsumexp, _jvp(lambda: cumlogsumexp_p, _logaddexp_pair), admitted=INEXACT,
    wider=WIDER_WITH_HALF,
)  # fmt: skip


def cumlogsumexp(operand, axis: int = 0, reverse: bool = False):
    """Running logarithms of sums of exponentials along an axis.

    Arguments:
      operand: array of floats or complex numbers.
      axis: the axis, not negative.
      reverse: whether to run from the end.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: there is no such axis.

    >>> import catena.lax as lax, numpy as np
    >>> lax.cumlogsumexp(np.array([0.0])).tolist()
    [0.0]
    """
    return cumlogsumexp_p.bind(operand, axis=as_ints((axis,), "cumlogsumexp: axis")[0], reverse=bool(reverse))
