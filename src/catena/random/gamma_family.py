"""The gamma distribution, its derivative by its parameter, and the distributions made of it.

The sampler is rejection from a transformed normal number (Marsaglia, Tsang: "A simple method for generating gamma
variables", 2000). Parameters below 1 are raised by 1, and the draw is multiplied by ``u**(1/a)``. Every element has a
key of its own. The derivative of a sample by the parameter is that of the quantile at the sample's probability
(Figurnov, Mohamed, Mnih: "Implicit reparameterization gradients", 2018).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array
from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr
from catena.core.primitive import NoRule, Primitive
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.zeros import Zero, get_aval
from catena.lax.structure import canonical_shape, told
from catena.random.continuous import _exponential, smallest
from catena.random.dtype import generator_of, key_aval
from catena.random.keys import asked_shape, consumed_key, pair, split_key
from catena.random.normal_family import _normal
from catena.random.primitives import check_is_key
from catena.random.sampler import (
    as_float,
    check_broadcasts,
    float_dtype,
    safe_float,
    sampler,
    shape_of,
    spread,
)
from catena.random.uniform_family import _rademacher, _uniform
from catena.transform.execute import run_jaxpr

# ---- the primitive


def columns(keys) -> list:
    """The arrays of keys along the last axis."""
    axis = keys.ndim - 1
    return [lax.squeeze(lax.slice_in_dim(keys, i, i + 1, axis=axis), (axis,)) for i in range(keys.shape[axis])]


def choose(where, yes: tuple, no: tuple) -> tuple:
    """Elementwise, the one or the other."""
    return tuple(lax.select_n(where, n, y) for y, n in zip(yes, no, strict=True))


def anywhere(x):
    return lax.reduce_or(x, tuple(range(x.ndim)))


def draw_gamma(keys, alpha, log_space: bool):
    """One gamma number for each key and parameter, two arrays of one shape."""
    dtype = get_aval(alpha).dtype
    number = lambda x: np.asarray(x, dtype)[()]  # noqa: E731
    raised = lax.ge(alpha, number(1))
    a = lax.select_n(raised, lax.add(alpha, number(1)), alpha)
    d = lax.sub(a, number(1 / 3))
    keys, boost_keys = columns(split_key(keys, 2))
    v = accepted(keys, d, lax.div(number(1 / 3), lax.sqrt(d)), number)
    inverse = lax.div(number(1), alpha)
    if log_space:
        boost = lax.neg(_exponential(boost_keys, shape=(), dtype=dtype))
        none = lax.bitwise_or(raised, lax.eq(boost, number(0)))
        boost = lax.select_n(none, lax.mul(boost, inverse), lax.full_like(alpha, 0))
        return lax.add(lax.add(lax.log(d), lax.log(v)), boost)
    boost = lax.pow(lax.sub(number(1), _uniform(boost_keys, 0.0, 1.0, shape=(), dtype=dtype)), inverse)
    return lax.mul(lax.mul(d, v), lax.select_n(raised, boost, lax.full_like(alpha, 1)))


def accepted(keys, d, c, number):
    """The cubes of the transformed normal numbers that were accepted."""
    dtype = get_aval(d).dtype

    def rejected(x, v, u):
        squeeze = lax.ge(u, lax.sub(number(1), lax.mul(number(0.0331), lax.mul(x, x))))
        bound = lax.add(lax.mul(x, number(0.5)), lax.mul(d, lax.add(lax.sub(number(1), v), lax.log(v))))
        return lax.bitwise_and(squeeze, lax.ge(lax.log(u), bound))

    def retry(state):
        next_keys, normal_keys, uniform_keys = columns(split_key(state[0], 3))
        x, v = positive(normal_keys, c, number)
        u = _uniform(uniform_keys, 0.0, 1.0, shape=(), dtype=dtype)
        new = (next_keys, lax.mul(x, x), lax.mul(lax.mul(v, v), v), u)
        return choose(rejected(*state[1:]), new, state)

    start = (keys, *[lax.full_like(d, n) for n in (0, 1, 2)])
    return lax.while_loop(lambda state: anywhere(rejected(*state[1:])), retry, start)[2]


def positive(keys, c, number) -> tuple:
    """Normal numbers ``x`` for which ``v = 1 + c x`` is positive, and ``v``."""
    dtype = get_aval(c).dtype

    def retry(state):
        next_keys, draw_keys = columns(split_key(state[0], 2))
        x = _normal(draw_keys, shape=(), dtype=dtype)
        new = (next_keys, x, lax.add(number(1), lax.mul(x, c)))
        return choose(lax.le(state[2], number(0)), new, state)

    start = (keys, lax.full_like(c, 0), lax.full_like(c, -1))
    return lax.while_loop(lambda state: anywhere(lax.le(state[2], number(0))), retry, start)[1:]


def draw_flat(keys, alpha, log_space: bool):
    """The rule in other operations: each key is split over the elements of its parameters."""
    aval = get_aval(alpha)
    count = math.prod(aval.shape[keys.ndim :])
    each, flat = lax.reshape(split_key(keys, count), (aval.size,)), lax.reshape(alpha, (aval.size,))
    if generator_of(keys).joint:  # element by element, so that each is drawn from its own key
        _, drawn = lax.scan(lambda _, x: ((), draw_gamma(*x, log_space)), (), (each, flat))
    else:
        drawn = draw_gamma(each, flat, log_space)
    return lax.reshape(drawn, aval.shape)


def _abstract(keys, alpha, *, impl, log_space):
    check_is_key("random_gamma", keys)
    if alpha.shape[: keys.ndim] != keys.shape or not dtypes.is_floating(alpha.dtype):
        raise TypeError(f"random_gamma: got keys of type {keys.str_short()} and parameters of type {alpha.str_short()}")
    return alpha.strip_weak_type()


@functools.lru_cache(maxsize=1024)
def _closed(keys_aval, alpha_aval, log_space: bool, flags: tuple) -> ClosedJaxpr:
    fun = lambda keys, alpha: [draw_flat(keys, alpha, log_space)]  # noqa: E731
    return ClosedJaxpr(*trace_to_jaxpr(fun, [keys_aval, alpha_aval], DebugInfo("random_gamma", "random_gamma")))


def _flags() -> tuple:
    return context.global_key, context.local_key


def _evaluate(keys, alpha, *, impl, log_space):
    avals = [get_aval(x).strip_weak_type() for x in (keys, alpha)]
    _abstract(*avals, impl=impl, log_space=log_space)
    return run_jaxpr(_closed(*avals, log_space, _flags()), [keys, alpha], random_gamma_p)[0]


def _lower(b, keys, alpha, *, impl, log_space):
    def make(of_keys, of_alpha):
        return _closed(key_aval(of_keys, impl), ShapedArray(of_alpha, alpha.dtype), log_space, _flags())

    return b.call(b.traced(make, keys.shape, alpha.shape), [keys, alpha])[0]


def _jvp(primals, tangents, *, impl, log_space):
    out = random_gamma_p.bind(*primals, impl=impl, log_space=log_space)
    tangent = tangents[1]
    if type(tangent) is Zero:
        return out, Zero.of_primal(out)
    alpha = primals[1]
    if not log_space:
        return out, lax.mul(tangent, lax.random_gamma_grad(alpha, out))
    sample = lax.max(lax.exp(out), smallest(get_aval(out).dtype))
    return out, lax.mul(tangent, lax.div(lax.random_gamma_grad(alpha, sample), sample))


def _batch(axis, args, dims, **params):
    return random_gamma_p.bind(*[at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)], **params), 0


random_gamma_p = Primitive(
    "random_gamma",
    takes_arrays=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=NoRule("gamma numbers are not linear in their parameter"),
    batch=_batch,
    lower=_lower,
)

# ---- gamma


def gamma(key, a, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the gamma distribution of scale 1; differentiable in ``a``.

    Arguments:
      key: a key, typed or raw.
      a: the shape parameter, positive, that broadcasts to ``shape``.
      shape: the shape of the result; that of ``a`` by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``a`` does not broadcast to ``shape``.

    Source: Marsaglia, Tsang, "A simple method for generating gamma variables" (2000); the derivative by Figurnov,
    Mohamed, Mnih, "Implicit reparameterization gradients" (2018).

    >>> from catena import random
    >>> random.gamma(random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return gamma_of("gamma", key, a, shape, dtype, out_sharding, False)


def loggamma(key, a, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Logarithms of numbers of the gamma distribution, accurate where those underflow; differentiable in ``a``.

    Arguments:
      key: a key, typed or raw.
      a: the shape parameter, positive, that broadcasts to ``shape``.
      shape: the shape of the result; that of ``a`` by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``a`` does not broadcast to ``shape``.

    Source: as for ``gamma``, by logarithms.

    >>> from catena import random
    >>> random.loggamma(random.key(0), 0.01, (3,)).shape
    (3,)
    """
    return gamma_of("loggamma", key, a, shape, dtype, out_sharding, True)


def gamma_of(name: str, key, a, shape, dtype, out_sharding, log_space: bool):
    if out_sharding is not None:
        return told(out_sharding, gamma_of, name, key, a, shape, dtype, None, log_space)
    key = consumed_key(name, key)
    dtype = float_dtype(dtype, name)
    return _gamma(key, as_float(a, dtype), shape=shape_of(shape, name, a), log_space=log_space)


@sampler(positional=False)
def _gamma(key, a, *, shape, log_space):
    return random_gamma_p.bind(key, spread(a, shape), impl=generator_of(key), log_space=log_space)


# ---- quotients of gamma numbers


def beta(key, a, b, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the beta distribution; differentiable in ``a`` and ``b``.

    Arguments:
      key: a key, typed or raw.
      a, b: the parameters, positive, that broadcast to ``shape``.
      shape: the shape of the result; that of the parameters by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or a parameter does not broadcast to ``shape``.

    Source: the share of one of two gamma numbers; Devroye, "Non-uniform random variate generation" (1986), IX.4.

    >>> from catena import random
    >>> random.beta(random.key(0), 2.0, 3.0, (3,)).shape
    (3,)
    """
    if out_sharding is not None:
        return told(out_sharding, beta, key, a, b, shape, dtype)
    key = consumed_key("beta", key)
    dtype = float_dtype(dtype, "beta")
    a, b = [safe_float(x, dtype, "beta") for x in (a, b)]
    return _beta(key, a, b, shape=shape_of(shape, "beta", a, b))


@sampler(positional=False)
def _beta(key, a, b, *, shape):
    """The share of the first of two gamma numbers, from their logarithms."""
    logs = [_gamma(k, spread(x, shape), shape=shape, log_space=True) for k, x in zip(pair(key), (a, b), strict=True)]
    largest = lax.max(*logs)
    x, y = [lax.exp(lax.sub(g, largest)) for g in logs]
    return lax.div(x, lax.add(x, y))


def dirichlet(key, alpha, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Vectors of the Dirichlet distribution; differentiable in ``alpha``.

    Arguments:
      key: a key, typed or raw.
      alpha: ``[..., n]``, the parameters, positive.
      shape: the shape of the array of vectors, to which ``alpha.shape[:-1]`` broadcasts and equals by
        default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of shape ``(*shape, n)``; each vector sums to 1.
    Raises:
      ValueError: the dtype is not a float dtype, or ``alpha`` is a scalar or does not broadcast.

    Source: shares of gamma numbers; Devroye, "Non-uniform random variate generation" (1986), XI.4.

    >>> from catena import random
    >>> import numpy as np
    >>> random.dirichlet(random.key(0), np.ones(3, np.float32), (2,)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return told(out_sharding, dirichlet, key, alpha, shape, dtype)
    key = consumed_key("dirichlet", key)
    dtype = float_dtype(dtype, "dirichlet")
    own = np.shape(alpha)
    if not own:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    lead = own[:-1] if shape is None else asked_shape(shape)
    full = shape_of((*lead, own[-1]), "dirichlet", alpha)
    return _dirichlet(key, as_float(alpha, dtype), shape=full)


@sampler(positional=False)
def _dirichlet(key, alpha, *, shape):
    logs = _gamma(key, alpha, shape=shape, log_space=True)
    axis = len(shape) - 1
    largest = lax.stop_gradient(lax.expand_dims(lax.reduce_max(logs, (axis,)), (axis,)))
    shares = lax.exp(lax.sub(logs, largest))
    return lax.div(shares, lax.expand_dims(lax.reduce_sum(shares, (axis,)), (axis,)))


def chisquare(key, df, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the chi-square distribution; differentiable in ``df``.

    Arguments:
      key: a key, typed or raw.
      df: the degrees of freedom, positive, that broadcast to ``shape``.
      shape: the shape of the result; that of ``df`` by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``df`` does not broadcast to ``shape``.

    Source: a gamma number.

    >>> from catena import random
    >>> random.chisquare(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return told(out_sharding, chisquare, key, df, shape, dtype)
    key = consumed_key("chisquare", key)
    dtype = float_dtype(dtype, "chisquare")
    return _chisquare(key, safe_float(df, dtype, "chisquare"), shape=shape_of(shape, "chisquare", df))


@sampler(positional=False)
def _chisquare(key, df, *, shape):
    two = np.asarray(2, get_aval(df).dtype)[()]
    return lax.mul(lax.exp(_gamma(key, lax.div(df, two), shape=shape, log_space=True)), two)


def f(key, dfnum, dfden, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the F distribution; differentiable in the degrees of freedom.

    Arguments:
      key: a key, typed or raw.
      dfnum, dfden: the degrees of freedom above and below, positive, that broadcast to ``shape``.
      shape: the shape of the result; that of the parameters by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or a parameter does not broadcast to ``shape``.

    Source: the quotient of two chi-square numbers.

    >>> from catena import random
    >>> random.f(random.key(0), 3.0, 4.0, (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return told(out_sharding, f, key, dfnum, dfden, shape, dtype)
    key = consumed_key("f", key)
    dtype = float_dtype(dtype, "f")
    dfnum, dfden = [safe_float(x, dtype, "f") for x in (dfnum, dfden)]
    return _f(key, dfnum, dfden, shape=shape_of(shape, "f", dfnum, dfden))


@sampler(positional=False)
def _f(key, dfnum, dfden, *, shape):
    below, above = pair(key)
    top = lax.div(_chisquare(above, dfnum, shape=shape), spread(dfnum, shape))
    return lax.div(top, lax.div(_chisquare(below, dfden, shape=shape), spread(dfden, shape)))


def t(key, df, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of Student's t distribution; differentiable in ``df``.

    Arguments:
      key: a key, typed or raw.
      df: the degrees of freedom, positive, that broadcast to ``shape``.
      shape: the shape of the result; that of ``df`` by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``df`` does not broadcast to ``shape``.

    Source: a normal over the root of a gamma number; Devroye, "Non-uniform random variate generation" (1986), IX.5.

    >>> from catena import random
    >>> random.t(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return told(out_sharding, t, key, df, shape, dtype)
    key = consumed_key("t", key)
    dtype = float_dtype(dtype, "t")
    return _t(key, safe_float(df, dtype, "t"), shape=shape_of(shape, "t", df), dtype=dtype)


@sampler(positional=False)
def _t(key, df, *, shape, dtype):
    first, second = pair(key)
    half = lax.div(df, np.asarray(2, dtype)[()])
    drawn = _gamma(second, half, shape=shape, log_space=False)
    return lax.mul(_normal(first, shape=shape, dtype=dtype), lax.sqrt(lax.div(spread(half, shape), drawn)))


# ---- powers of gamma numbers


def generalized_normal(key, p, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Numbers of density proportional to ``exp(-|x|**p)``.

    Arguments:
      key: a key, typed or raw.
      p: the power, positive.
      shape: the shape of the result.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``p`` does not broadcast to ``shape``.

    Source: the root of a gamma number, with a random sign.

    >>> from catena import random
    >>> random.generalized_normal(random.key(0), 1.5, (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return told(out_sharding, generalized_normal, key, p, shape, dtype)
    key = consumed_key("generalized_normal", key)
    dtype = float_dtype(dtype, "generalized_normal")
    shape = shape_of(shape, "generalized_normal", p)
    return _generalized_normal(key, as_float(p, dtype), shape=shape, dtype=dtype)


@sampler(positional=False)
def _generalized_normal(key, p, *, shape, dtype):
    first, second = pair(key)
    inverse = lax.div(np.asarray(1, dtype)[()], p)
    drawn = _gamma(first, inverse, shape=shape, log_space=False)
    return lax.mul(_rademacher(second, shape=shape, dtype=dtype), lax.pow(drawn, spread(inverse, shape)))


def ball(key, d: int, p=2, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Points uniform in the unit ball of the ``p``-norm.

    Arguments:
      key: a key, typed or raw.
      d: the dimension of the ball.
      p: the norm, positive; an array that broadcasts to ``shape`` has one for each point.
      shape: the shape of the array of points.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of shape ``(*shape, d)``.
    Raises:
      ValueError: the dtype is not a float dtype, ``d`` is negative, or ``p`` does not broadcast to ``shape``.

    Source: Barthe, Guedon, Mendelson, Naor, "A probabilistic approach to the geometry of the l_p^n-ball" (2005).

    >>> from catena import random
    >>> random.ball(random.key(0), 3, shape=(2,)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return told(out_sharding, ball, key, d, p, shape, dtype)
    key = consumed_key("ball", key)
    (d,) = canonical_shape(d)
    if d < 0:
        raise ValueError(f"ball: d must not be negative, got {d}")
    dtype, shape = float_dtype(dtype, "ball"), asked_shape(shape)
    check_broadcasts("ball", shape, np.shape(p))
    return _ball(key, as_float(p, dtype), shape=(*shape, d), dtype=dtype)


@sampler(positional=False)
def _ball(key, p, *, shape, dtype):
    """Barthe, Guedon, Mendelson, Naor: "A probabilistic approach to the geometry of the l_p^n-ball" (2005)."""
    first, second = pair(key)
    of_each = lax.expand_dims(p, (get_aval(p).ndim,)) if get_aval(p).ndim else p
    vectors = _generalized_normal(first, of_each, shape=shape, dtype=dtype)
    slack = _exponential(second, shape=shape[:-1], dtype=dtype)
    axis = len(shape) - 1
    total = lax.add(lax.reduce_sum(lax.pow(lax.abs(vectors), spread(of_each, shape)), (axis,)), slack)
    norm = lax.pow(total, spread(lax.div(np.asarray(1, dtype)[()], p), shape[:-1]))
    return lax.div(vectors, lax.expand_dims(norm, (axis,)))
