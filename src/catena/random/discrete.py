"""Discrete distributions: geometric, Poisson, binomial and multinomial."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array
from catena.core.shapes import broadcast_shapes
from catena.core.zeros import get_aval
from catena.lax.structure import told
from catena.random.gamma_family import anywhere
from catena.random.kernels import remembered
from catena.random.keys import consumed_key, pair, split_key
from catena.random.primitives import random_clone_p
from catena.random.sampler import as_float, float_dtype, integer_dtype, sampler, shape_of, spread
from catena.random.uniform_family import _uniform


def full(shape, value, dtype):
    return lax.full(shape, value, dtype)


# ---- geometric


@remembered
def geometric(key, p, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """How many trials it takes until one succeeds.

    Arguments:
      key: a key, typed or raw.
      p: the probability of success, that broadcasts to ``shape``.
      shape: the shape of the result; that of ``p`` by default.
      dtype: an integer dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype, at least 1.
    Raises:
      ValueError: the dtype is not an integer dtype, or ``p`` does not broadcast to ``shape``.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.geometric(random.key(0), 0.5, (3,)).shape
    (3,)
    """
    if out_sharding is not None:
        return told(out_sharding, geometric, key, p, shape, dtype)
    key = consumed_key("geometric", key)
    dtype = integer_dtype(dtype, "geometric")
    real = dtypes.canonicalize_dtype(float)
    return _geometric(key, as_float(p, real), shape=shape_of(shape, "geometric", p), dtype=dtype)


@sampler
def _geometric(key, p, *, shape, dtype):
    real = get_aval(p).dtype
    unit = _uniform(key, 0.0, 1.0, shape=shape, dtype=real)
    zero, one = [np.asarray(n, real)[()] for n in (0, 1)]
    unit = lax.select_n(lax.eq(unit, zero), unit, full(shape, 1, real))
    failure = spread(lax.log1p(lax.neg(p)), shape)
    return lax.convert_element_type(lax.add(lax.floor(lax.div(lax.log(unit), failure)), one), dtype)


# ---- Poisson


def poisson(key, lam, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the Poisson distribution.

    Arguments:
      key: a key of the generator threefry2x32, typed or raw.
      lam: the mean, that broadcasts to ``shape``.
      shape: the shape of the result; that of ``lam`` by default.
      dtype: an integer dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype; -1 where ``lam`` is negative or NaN.
    Raises:
      ValueError: the dtype is not an integer dtype, or ``lam`` does not broadcast to ``shape``.

    Source: Knuth, "The art of computer programming", volume 2, 3.4.1, for small means; Hoermann, "The transformed
    rejection method for generating Poisson random variables" (1993), for others.

    >>> from catena import random
    >>> random.poisson(random.key(0), 3.0, (3,)).shape
    (3,)
    """
    if out_sharding is not None:
        return told(out_sharding, poisson, key, lam, shape, dtype)
    key = consumed_key("poisson", key)
    dtype = integer_dtype(dtype, "poisson")
    shape = shape_of(shape, "poisson", lam)
    return _poisson(key, spread(as_float(lam, np.float32), shape), shape=shape, dtype=dtype)


@sampler(positional=False)
def _poisson(key, lam, *, shape, dtype):
    """Small means by multiplication of uniforms, large ones by rejection; both are drawn where both occur."""
    small = lax.bitwise_or(lax.ne(lam, lam), lax.lt(lam, np.float32(10)))
    knuth = _poisson_knuth(key, lax.select_n(small, full(shape, 0, np.float32), lam), shape=shape, dtype=dtype)
    large = lax.select_n(small, lam, full(shape, 1e5, np.float32))
    again = random_clone_p.bind(key)  # on purpose: only one of the two draws is taken
    drawn = lax.select_n(small, _poisson_rejection(again, large, shape=shape, dtype=dtype), knuth)
    return lax.select_n(lax.eq(lam, np.float32(0)), drawn, full(shape, 0, dtype))


@sampler(positional=False)
def _poisson_knuth(key, lam, *, shape, dtype):
    """Knuth, "The art of computer programming", volume 2, 3.4.1: count uniforms until their product is small."""
    one = dtype.type(1)

    def unfinished(state):
        return anywhere(lax.gt(state[2], lax.neg(lam)))

    def step(state):
        count, key, log_product = state
        key, subkey = pair(key)
        count = lax.select_n(lax.gt(log_product, lax.neg(lam)), count, lax.add(count, one))
        unit = _uniform(subkey, 0.0, 1.0, shape=shape, dtype=np.dtype(np.float32))
        return count, key, lax.add(log_product, lax.log(unit))

    start = (full(shape, 0, dtype), key, full(shape, 0, np.float32))
    return lax.sub(lax.while_loop(unfinished, step, start)[0], one)


@sampler(positional=False)
def _poisson_rejection(key, lam, *, shape, dtype):
    """Hoermann: "The transformed rejection method for generating Poisson random variables" (1993)."""
    n = np.float32
    log_lam = lax.log(lam)
    b = lax.add(n(0.931), lax.mul(n(2.53), lax.sqrt(lam)))
    a = lax.add(n(-0.059), lax.mul(n(0.02483), b))
    inverse_alpha = lax.add(n(1.1239), lax.div(n(1.1328), lax.sub(b, n(3.4))))
    v_r = lax.sub(n(0.9277), lax.div(n(3.6224), lax.sub(b, n(2))))

    def step(state):
        drawn, done, key = state
        key, *subkeys = along(split_key(key, 3))
        u, v = [_uniform(k, 0.0, 1.0, shape=shape, dtype=np.dtype(n)) for k in subkeys]
        u = lax.sub(u, n(0.5))
        us = lax.sub(n(0.5), lax.abs(u))
        k = lax.floor(lax.add(lax.add(lax.mul(lax.add(lax.div(lax.mul(n(2), a), us), b), u), lam), n(0.43)))
        s = lax.log(lax.div(lax.mul(v, inverse_alpha), lax.add(lax.div(a, lax.mul(us, us)), b)))
        t = lax.sub(lax.add(lax.neg(lam), lax.mul(k, log_lam)), lax.lgamma(lax.add(k, n(1))))
        quick = lax.bitwise_and(lax.ge(us, n(0.07)), lax.le(v, v_r))
        out = lax.bitwise_or(lax.lt(k, n(0)), lax.bitwise_and(lax.lt(us, n(0.013)), lax.gt(v, us)))
        accept = lax.bitwise_or(quick, lax.bitwise_and(lax.bitwise_not(out), lax.le(s, t)))
        return lax.select_n(accept, drawn, k), lax.bitwise_or(done, accept), key

    start = (full(shape, -1, n), full(shape, False, bool), key)
    unfinished = lambda state: anywhere(lax.bitwise_not(state[1]))  # noqa: E731
    return lax.convert_element_type(lax.while_loop(unfinished, step, start)[0], dtype)


def along(keys) -> list:
    """The keys of a vector of keys."""
    return [lax.squeeze(lax.slice_in_dim(keys, i, i + 1), (0,)) for i in range(keys.shape[0])]


# ---- binomial


def binomial(key, n, p, shape=None, dtype=None) -> Array:
    """How many of ``n`` trials succeed.

    Arguments:
      key: a key, typed or raw.
      n: the number of trials, that broadcasts to ``shape``.
      p: the probability of success, that broadcasts to ``shape``.
      shape: the shape of the result; that of the parameters by default.
      dtype: a float dtype.
    Returns:
      An array of that shape and dtype; NaN where a parameter is no number or outside its range.
    Raises:
      ValueError: the dtype is not a float dtype, or a parameter does not broadcast to ``shape``.

    Source: inversion by geometric gaps (Devroye, "Non-uniform random variate generation" (1986), X.4) for few
    successes; Hoermann, "The generation of binomial random variates" (1993), for others.

    >>> from catena import random
    >>> random.binomial(random.key(0), 10.0, 0.3, (3,)).shape
    (3,)
    """
    key = consumed_key("binomial", key)
    dtype = float_dtype(dtype, "binomial")
    shape = shape_of(shape, "binomial", n, p)
    return _binomial(key, as_float(n, dtype), as_float(p, dtype), shape=shape, dtype=dtype)


@sampler(positional=False)
def _binomial(key, n, p, *, shape, dtype):
    return draw_binomial(key, spread(n, shape), spread(p, shape))


def draw_binomial(key, n, p):
    """Binomial numbers: by inversion where few succeed, by rejection elsewhere, of the rarer of success and failure."""
    dtype, shape = get_aval(n).dtype, get_aval(n).shape
    number = lambda x: np.asarray(x, dtype)[()]  # noqa: E731
    whole = lambda x: full(shape, x, dtype)  # noqa: E731
    rare = lax.lt(p, number(0.5))
    q = lax.select_n(rare, lax.sub(number(1), p), p)
    bad_n = lax.bitwise_or(lax.ne(n, n), lax.lt(n, number(0)))
    endless = lax.eq(lax.abs(n), number(np.inf))
    not_q, bad_q = lax.ne(q, q), lax.bitwise_or(lax.ne(q, q), lax.lt(q, number(0)))
    q = lax.select_n(bad_q, q, whole(0.01))
    few = lax.bitwise_or(bad_n, lax.le(lax.mul(n, q), number(10)))
    trials = lax.floor(n)
    inverted = inversion(key, lax.select_n(few, whole(0), trials), q)
    again = random_clone_p.bind(key)  # on purpose: only one of the two draws is taken
    rejected = rejection(again, lax.select_n(few, trials, whole(1e4)), lax.select_n(few, q, whole(0.5)))
    drawn = lax.select_n(few, rejected, inverted)
    bad = lax.bitwise_or(bad_q, bad_n)
    drawn = lax.select_n(bad, drawn, whole(np.nan))
    drawn = lax.select_n(lax.bitwise_and(endless, lax.bitwise_not(bad)), drawn, whole(np.inf))
    as_drawn = lax.bitwise_or(lax.bitwise_or(lax.bitwise_or(rare, bad_n), not_q), endless)
    return lax.select_n(as_drawn, lax.sub(trials, drawn), drawn)


def inversion(key, n, p):
    """Count geometric waiting times until they exceed ``n``."""
    dtype, shape = get_aval(n).dtype, get_aval(n).shape
    one = np.asarray(1, dtype)[()]
    log_failure = lax.log1p(lax.neg(p))

    def step(state):
        count, total, key = state
        subkey, key = pair(key)
        count = lax.select_n(lax.le(total, n), count, lax.add(count, one))
        unit = _uniform(subkey, 0.0, 1.0, shape=shape, dtype=dtype)
        return count, lax.add(total, lax.ceil(lax.div(lax.log(unit), log_failure))), key

    start = (full(shape, 0, dtype), full(shape, 0, dtype), key)
    return lax.sub(lax.while_loop(lambda state: anywhere(lax.le(state[1], n)), step, start)[0], one)


STIRLING = [
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
]  # fmt: skip


def stirling_rest(k):
    """The error of Stirling's formula for ``log((k + 1)!)``: tabulated up to 9, a series beyond."""
    dtype = get_aval(k).dtype
    number = lambda x: np.asarray(x, dtype)[()]  # noqa: E731
    kept = lax.clamp(number(0), k, number(9))
    next_k = lax.add(kept, number(1))
    squared = lax.mul(next_k, next_k)
    series = lax.sub(number(1 / 360), lax.div(number(1 / 1260), squared))
    series = lax.div(lax.sub(number(1 / 12), lax.div(series, squared)), next_k)
    index = lax.convert_element_type(lax.floor(kept), np.int32)
    table = lax.convert_element_type(np.asarray(STIRLING, np.float64 if dtype.itemsize == 8 else np.float32), dtype)
    tabulated = lax.index_take(table, [lax.reshape(index, (index.size,))], (0,)).reshape(index.shape)
    return lax.select_n(lax.le(k, number(9)), series, tabulated)


def rejection(key, n, p):
    """Hoermann: "The generation of binomial random variates" (1993), algorithm BTRS."""
    dtype, shape = get_aval(n).dtype, get_aval(n).shape
    c = lambda x: np.asarray(x, dtype)[()]  # noqa: E731
    add, sub, mul, div = lax.add, lax.sub, lax.mul, lax.div
    spread_ = lax.sqrt(mul(mul(n, p), sub(c(1), p)))
    b = add(c(1.15), mul(c(2.53), spread_))
    a = add(add(c(-0.0873), mul(c(0.0248), b)), mul(c(0.01), p))
    centre = add(mul(n, p), c(0.5))
    v_r = sub(c(0.92), div(c(4.2), b))
    r = div(p, sub(c(1), p))
    alpha = mul(add(c(2.83), div(c(5.1), b)), spread_)
    m = lax.floor(mul(add(n, c(1)), p))

    def upper_bound(k):
        first = mul(add(m, c(0.5)), lax.log(div(add(m, c(1)), mul(r, add(sub(n, m), c(1))))))
        second = mul(add(n, c(1)), lax.log(div(add(sub(n, m), c(1)), add(sub(n, k), c(1)))))
        third = mul(add(k, c(0.5)), lax.log(div(mul(r, add(sub(n, k), c(1))), add(k, c(1)))))
        total = add(add(add(add(first, second), third), stirling_rest(m)), stirling_rest(sub(n, m)))
        return sub(sub(total, stirling_rest(k)), stirling_rest(sub(n, k)))

    def step(state):
        drawn, done, key = state
        key, *subkeys = along(split_key(key, 3))
        u, v = [_uniform(k, 0.0, 1.0, shape=shape, dtype=dtype) for k in subkeys]
        u = sub(u, c(0.5))
        us = sub(c(0.5), lax.abs(u))
        quick = lax.bitwise_and(lax.ge(us, c(0.07)), lax.le(v, v_r))
        k = lax.floor(add(mul(add(div(mul(c(2), a), us), b), u), centre))
        out = lax.bitwise_or(lax.lt(k, c(0)), lax.gt(k, n))
        v = lax.log(div(mul(v, alpha), add(div(a, mul(us, us)), b)))
        accept = lax.bitwise_or(quick, lax.bitwise_and(lax.bitwise_not(out), lax.le(v, upper_bound(k))))
        return lax.select_n(accept, drawn, k), lax.bitwise_or(done, accept), key

    start = (full(shape, -1, dtype), full(shape, False, bool), key)
    return lax.while_loop(lambda state: anywhere(lax.bitwise_not(state[1])), step, start)[0]


# ---- multinomial


def multinomial(key, n, p, *, shape=None, dtype=None, unroll: int = 1) -> Array:
    """How often each category occurs in ``n`` trials.

    Arguments:
      key: a key, typed or raw.
      n: the number of trials, that broadcasts to ``shape[:-1]``.
      p: ``[..., k]``, the probability of each category.
      shape: the shape of the result, with the categories last; that of ``n`` and ``p`` by default.
      dtype: the dtype of the result; the default float.
      unroll: how many categories a step of the loop over them takes.
    Returns:
      An array of that shape and dtype; along the last axis it sums to ``n``.
    Raises:
      ValueError: a parameter does not broadcast to ``shape``.

    Source: conditional binomials; Devroye, "Non-uniform random variate generation" (1986), XI.1.

    >>> from catena import random
    >>> import numpy as np
    >>> float(random.multinomial(random.key(0), 10.0, np.array([0.2, 0.3, 0.5], np.float32)).sum())
    10.0
    """
    key = consumed_key("multinomial", key)
    n, p = [as_float(x, real_of(x)) for x in (n, p)]
    common = dtypes.result_type(n, p)
    n, p = as_float(n, common), as_float(p, common)
    if not p.ndim:
        raise ValueError("multinomial: p must have an axis of categories, got a scalar")
    if shape is None:
        shape = (*broadcast_shapes(n.shape, p.shape[:-1]), p.shape[-1])
    shape = shape_of(shape, "multinomial", p)
    shape_of(shape[:-1], "multinomial", n)
    drawn = _multinomial(key, n, p, shape=shape, unroll=unroll)
    return (
        drawn
        if dtype is None
        else lax.convert_element_type(drawn, dtypes.check_user_dtype_supported(dtype, "multinomial"))
    )


def real_of(x):
    found = dtypes.dtype(x, canonicalize=True)
    return found if dtypes.is_floating(found) else dtypes.canonicalize_dtype(float)


@sampler(positional=False)
def _multinomial(key, n, p, *, shape, unroll):
    """Category after category, each a binomial number of the trials that are left."""
    last = len(shape) - 1
    n, p = spread(n, shape[:-1]), lax.transpose(spread(p, shape), (last, *range(last)))
    left = lax.cumsum(p, axis=0, reverse=True)
    dtype = get_aval(p).dtype
    zero, one = [np.asarray(x, dtype)[()] for x in (0, 1)]
    ratios = lax.div(p, lax.select_n(lax.eq(left, zero), left, lax.full_like(left, 1)))
    keys = split_key(key, shape[-1])

    def step(remaining, category):
        ratio, subkey = category
        drawn = draw_binomial(subkey, remaining, lax.min(one, lax.max(zero, ratio)))
        return lax.sub(remaining, drawn), drawn

    _, counts = lax.scan(step, n, (ratios, keys), unroll=unroll)
    return lax.transpose(counts, (*range(1, last + 1), 0))
