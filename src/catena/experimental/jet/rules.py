"""The rules of Taylor mode: which operations are linear, products, and the recurrences of elementary functions.

``a[k]`` is the coefficient of ``t^k``. From ``y' = f(y) x'`` follows ``k y[k] = sum of j x[j] f[k - j]``: where ``f``
is known from ``y`` up to ``k - 1``, as for ``exp`` and ``tanh``, that is a recurrence.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from catena import lax
from catena.core.structural import (
    add_any_p,
    broadcast_in_dim_p,
    convert_element_type_p,
    reduce_sum_p,
    reshape_p,
    slice_p,
    squeeze_p,
    transpose_p,
)
from catena.core.zeros import Zero, get_aval, instantiate
from catena.experimental.jet.trace import (
    filled,
    jet_flat,
    jet_jaxpr,
    jet_rules,
    order_of,
    regroup,
    ungroup,
)
from catena.lax.control_flow.common import either, split, with_invars, with_outvars
from catena.lax.control_flow.while_loop import with_unread
from catena.transform.checkpoint import checkpoint_p, name_p
from catena.transform.jit_primitive import jit_p

# ---- what is linear, or linear piece by piece: the derivative at the first coefficient applies to each


def linear(primitive) -> Callable:
    """The rule of a primitive whose derivative does not change along the series."""

    def rule(primals, series, **params):
        def tangents_at(k: int):
            given = [Zero.of_primal(x) if t is None else t[k] for x, t in zip(primals, series, strict=True)]
            return primitive.jvp(primals, given, **params)[1]

        out = primitive.bind(*primals, **params)
        found = [tangents_at(k) for k in range(order_of(series))]
        if primitive.multiple_results:
            return out, [column(list(c)) for c in zip(*found, strict=True)] if found else [[] for _ in out]
        return out, column(found)

    return rule


def column(tangents: list) -> list | None:
    """The coefficients of one result; none where all are known to be zero."""
    if tangents and all(type(t) is Zero for t in tangents):
        return None
    return [instantiate(t) for t in tangents]


for _primitive in (
    add_any_p, broadcast_in_dim_p, convert_element_type_p, reduce_sum_p, reshape_p, slice_p, squeeze_p, transpose_p,
    name_p,
    lax.abs_p, lax.add_p, lax.ceil_p, lax.clamp_p, lax.complex_p, lax.concatenate_p, lax.conj_p, lax.copy_p,
    lax.cummax_p, lax.cummin_p, lax.cumsum_p, lax.device_put_p, lax.dynamic_slice_p, lax.dynamic_update_slice_p,
    lax.fft_p, lax.floor_p,
    lax.gather_p, lax.imag_p, lax.max_p, lax.min_p, lax.neg_p, lax.pad_p, lax.real_p, lax.reduce_max_p,
    lax.reduce_min_p, lax.reduce_window_sum_p, lax.rev_p, lax.round_p, lax.scatter_add_p, lax.scatter_p,
    lax.scatter_sub_p, lax.select_n_p, lax.sign_p, lax.sort_p, lax.split_p, lax.sub_p, lax.top_k_p,
):  # fmt: skip
    jet_rules[_primitive] = linear(_primitive)


# ---- products


def bilinear(primitive) -> Callable:
    """The rule of a product."""

    def rule(primals, series, **params):
        x, y = primals
        bind = functools.partial(primitive.bind, **params)
        out = bind(x, y)
        if series[1] is None:
            return out, [bind(t, y) for t in series[0]]
        if series[0] is None:
            return out, [bind(x, t) for t in series[1]]
        a, b = [x, *series[0]], [y, *series[1]]
        return out, [sum_of([bind(a[j], b[k - j]) for j in range(k + 1)]) for k in range(1, len(a))]

    return rule


def sum_of(terms: Sequence):
    return functools.reduce(lambda a, b: a + b, terms)


def product(a: list, b: list, k: int):
    """The coefficient of ``t^k`` in a product."""
    return sum_of([a[j] * b[k - j] for j in range(k + 1)])


for _primitive in (lax.mul_p, lax.dot_general_p, lax.conv_general_dilated_p):
    jet_rules[_primitive] = bilinear(_primitive)


def _div(primals, series, **params):
    u, v = [[x, *(terms or ())] for x, terms in zip(primals, series, strict=True)]
    y = [lax.div_p.bind(*primals, **params)]
    if series[1] is None:
        return y[0], [t / v[0] for t in u[1:]]
    for k in range(1, len(v)):
        known = sum_of([v[j] * y[k - j] for j in range(1, k + 1)])
        y.append((u[k] - known if series[0] is not None else -known) / v[0])
    return y[0], y[1:]


jet_rules[lax.div_p] = _div


# ---- elementary functions


def recurrence(primitive, factor: Callable) -> Callable:
    """The rule of a function with ``y' = f(y) x'``; ``factor(y, k)`` is the coefficient of ``t^k`` in ``f(y)``."""

    def rule(primals, series, **params):
        x, y, f = series[0], [primitive.bind(*primals, **params)], []
        for k in range(1, len(x) + 1):
            f.append(factor(y, k - 1))
            y.append(sum_of([j * x[j - 1] * f[k - j] for j in range(1, k + 1)]) / k)
        return y[0], y[1:]

    return rule


def _one(y: list, k: int, value):
    """``value`` minus the coefficient where it is the constant one."""
    return (1.0 if k == 0 else 0.0) - value


jet_rules[lax.exp_p] = recurrence(lax.exp_p, lambda y, k: y[k])
jet_rules[lax.expm1_p] = recurrence(lax.expm1_p, lambda y, k: y[k] + 1.0 if k == 0 else y[k])
jet_rules[lax.tanh_p] = recurrence(lax.tanh_p, lambda y, k: _one(y, k, product(y, y, k)))
jet_rules[lax.tan_p] = recurrence(lax.tan_p, lambda y, k: (1.0 if k == 0 else 0.0) + product(y, y, k))
jet_rules[lax.logistic_p] = recurrence(lax.logistic_p, lambda y, k: y[k] - product(y, y, k))


def together(first, second, sign: float) -> None:
    """The rules of a sine and its cosine: ``s' = c x'``, ``c' = sign s x'``."""

    def both(x0, x: list):
        s, c = [first.bind(x0)], [second.bind(x0)]
        for k in range(1, len(x) + 1):
            slope = lambda w, k=k: sum_of([j * x[j - 1] * w[k - j] for j in range(1, k + 1)]) / k  # noqa: E731
            s_k, c_k = slope(c), sign * slope(s)
            s.append(s_k)
            c.append(c_k)
        return s, c

    def rule_of(primitive, which: int):
        def rule(primals, series, **params):
            y = both(primals[0], series[0])[which]
            return primitive.bind(*primals, **params), y[1:]

        return rule

    jet_rules[first], jet_rules[second] = rule_of(first, 0), rule_of(second, 1)


together(lax.sin_p, lax.cos_p, -1.0)
together(lax.sinh_p, lax.cosh_p, 1.0)


def _sqrt(primals, series, **params):
    x, y = series[0], [lax.sqrt_p.bind(*primals, **params)]
    for k in range(1, len(x) + 1):
        inner = [y[j] * y[k - j] for j in range(1, k)]
        y.append((x[k - 1] - sum_of(inner) if inner else x[k - 1]) / (2.0 * y[0]))
    return y[0], y[1:]


jet_rules[lax.sqrt_p] = _sqrt


def power(x: list, y0, exponent) -> list:
    """The coefficients of ``x ** exponent`` for a constant exponent, the first of which is ``y0``."""
    y = [y0]
    for k in range(1, len(x)):
        y.append(sum_of([(exponent * j - (k - j)) * x[j] * y[k - j] for j in range(1, k + 1)]) / (k * x[0]))
    return y


def _rsqrt(primals, series, **params):
    return (y := lax.rsqrt_p.bind(*primals, **params)), power([primals[0], *series[0]], y, -0.5)[1:]


def _pow(primals, series, **params):
    y0 = lax.pow_p.bind(*primals, **params)
    if series[1] is None:
        return y0, power([primals[0], *series[0]], y0, primals[1])[1:]
    composed = lambda x, p: [lax.exp(lax.mul(p, lax.log(x)))]  # noqa: E731
    return y0, jet_flat(composed, primals, series, order_of(series))[1][0]


def _integer_pow(primals, series, *, y, **params):
    out = lax.integer_pow_p.bind(*primals, y=y, **params)
    repeated = lambda x: [sum_of_products(x, abs(y))]  # noqa: E731
    terms = jet_flat(repeated, primals, series, order_of(series))[1][0]
    if y < 0:
        inverse = lambda x: [lax.div(lax.full_like(x, 1), x)]  # noqa: E731
        base = lax.integer_pow_p.bind(*primals, y=-y, **params)
        terms = jet_flat(inverse, [base], [terms], order_of(series))[1][0]
    return out, terms


def sum_of_products(x, n: int):
    """``x`` to a positive power, by squaring."""
    result = None
    while n:
        if n & 1:
            result = x if result is None else lax.mul(result, x)
        n >>= 1
        x = lax.mul(x, x) if n else x
    return lax.full_like(x, 1) if result is None else result


jet_rules[lax.rsqrt_p] = _rsqrt
jet_rules[lax.pow_p] = _pow
jet_rules[lax.integer_pow_p] = _integer_pow
jet_rules[lax.square_p] = lambda primals, series, **params: jet_rules[lax.mul_p](primals * 2, series * 2)


# ---- calls, branches and loops


def _call(primitive):
    def rule(primals, series, *, jaxpr, **params):
        order, varying = order_of(series), tuple(t is not None for t in series)
        inner, varying_out = jet_jaxpr(jaxpr, order, varying, False)
        outs = primitive.bind(*primals, *ungroup(series), jaxpr=inner, **without_donation(params))
        outs, terms = split(outs, len(varying_out))
        return outs, regroup(terms, varying_out, order)

    return rule


def without_donation(params: dict) -> dict:
    return {k: v for k, v in params.items() if k != "donated_invars"}


jet_rules[jit_p] = _call(jit_p)
jet_rules[checkpoint_p] = _call(checkpoint_p)


def _cond(primals, series, *, branches):
    index, *operands = primals
    order, varying = order_of(series), tuple(t is not None for t in series[1:])
    varying_out: tuple = (False,) * len(branches[0].out_avals)
    for branch in branches:
        varying_out = either(varying_out, jet_jaxpr(branch, order, varying, False)[1])
    inner = tuple(jet_jaxpr(branch, order, varying, varying_out)[0] for branch in branches)
    outs = lax.cond_p.bind(index, *operands, *ungroup(series[1:]), branches=inner)
    outs, terms = split(outs, len(varying_out))
    return outs, regroup(terms, varying_out, order)


jet_rules[lax.cond_p] = _cond


def loop_body(body, order: int, consts_v: tuple, carry_v: tuple, xs_v: tuple):
    """The body of a loop with coefficients, and which components of the carry, and of the other results, have any."""
    others = len(body.out_avals) - len(carry_v)
    while True:
        inner, out = jet_jaxpr(body, order, (*consts_v, *carry_v, *xs_v), (*carry_v, *(False,) * others))
        if out[: len(carry_v)] == carry_v:
            return inner, carry_v, out[len(carry_v) :]
        carry_v = either(carry_v, out[: len(carry_v)])


def carried_terms(carry, series, carry_v: tuple, order: int) -> list:
    """The coefficients of the first carry, zeros where only later ones have some."""
    given = zip(carry, series, carry_v, strict=True)
    return [t for x, terms, v in given if v for t in filled(terms, get_aval(x), order)]


def _scan(primals, series, *, jaxpr, num_consts, num_carry, **params):
    order = order_of(series)
    consts_v, carry_v, xs_v = map(tuple, split([t is not None for t in series], num_consts, num_carry))
    inner, carry_v, ys_v = loop_body(jaxpr, order, consts_v, carry_v, xs_v)
    consts, carry, xs = split(primals, num_consts, num_carry)
    consts_t, carry_t, xs_t = split(series, num_consts, num_carry)
    consts_t, carry_t, xs_t = ungroup(consts_t), carried_terms(carry, carry_t, carry_v, order), ungroup(xs_t)
    sizes = (len(consts), len(carry), len(xs)), (len(consts_t), len(carry_t), len(xs_t))
    body = reordered(inner, sizes[0], sizes[1], (len(carry), len(ys_v)), order * sum(carry_v))
    outs = lax.scan_p.bind(
        *consts, *consts_t, *carry, *carry_t, *xs, *xs_t, jaxpr=body, num_consts=len(consts) + len(consts_t),
        num_carry=len(carry) + len(carry_t), **params,
    )  # fmt: skip
    carry, carry_t, ys, ys_t = split(outs, len(carry), len(carry_t), len(ys_v))
    return [*carry, *ys], [*regroup(carry_t, carry_v, order), *regroup(ys_t, ys_v, order)]


jet_rules[lax.scan_p] = _scan


def reordered(inner, sizes: tuple, term_sizes: tuple, out_sizes: tuple, carry_terms: int):
    """The body with the coefficients of constants, carry and items behind each of these, in arguments and results."""
    groups = split(inner.jaxpr.invars, *sizes, *term_sizes)
    invars = [v for i in range(3) for v in (*groups[i], *groups[i + 3])]
    carry, ys, carry_t, ys_t = split(inner.jaxpr.outvars, *out_sizes, carry_terms)
    slim = with_invars(inner, invars)
    return with_outvars(slim, [*carry, *carry_t, *ys, *ys_t])


def _while(primals, series, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    order = order_of(series)
    cond_consts, consts, carry = split(primals, cond_nconsts, body_nconsts)
    _, consts_t, carry_t = split(series, cond_nconsts, body_nconsts)
    varies = lambda series: tuple(t is not None for t in series)  # noqa: E731
    inner, carry_v, _ = loop_body(body_jaxpr, order, varies(consts_t), varies(carry_t), ())
    consts_t, carry_t = ungroup(consts_t), carried_terms(carry, carry_t, carry_v, order)
    sizes = (len(consts), len(carry), 0), (len(consts_t), len(carry_t), 0)
    body = reordered(inner, *sizes, (len(carry), 0), len(carry_t))
    test = with_unread(cond_jaxpr, tuple(get_aval(t) for t in carry_t))
    outs = lax.while_p.bind(
        *cond_consts, *consts, *consts_t, *carry, *carry_t, cond_jaxpr=test, cond_nconsts=cond_nconsts,
        body_jaxpr=body, body_nconsts=len(consts) + len(consts_t),
    )  # fmt: skip
    carry, carry_t = split(outs, len(carry))
    return carry, regroup(carry_t, carry_v, order)


jet_rules[lax.while_p] = _while
