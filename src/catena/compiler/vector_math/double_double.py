"""Unevaluated sums high + low of two floats (T. J. Dekker 1971; D. E. Knuth, TAOCP 4.2.2), for steps
that need more bits.
"""

from __future__ import annotations

from catena.core.named import NamedTuple

from .text import Value, fma, sqrt


class Pair(NamedTuple):
    """high + low, where |low| is at most about half a unit in the last place of high."""

    high: Value
    low: Value


def total(a: Pair) -> Value:
    return a.high + a.low


def two_sum(a: Value, b) -> Pair:
    """a + b exactly."""
    b = a.like(b)
    total = a + b
    part = total - a
    return Pair(total, (a - (total - part)) + (b - part))


def fast_two_sum(a: Value, b: Value) -> Pair:
    """a + b exactly, where |a| >= |b|."""
    total = a + b
    return Pair(total, b - (total - a))


def two_product(a: Value, b) -> Pair:
    """a * b exactly (barring underflow)."""
    product = a * b
    return Pair(product, fma(a, b, -product))


def add(a: Pair, b: Pair) -> Pair:
    total = two_sum(a.high, b.high)
    return fast_two_sum(total.high, total.low + (a.low + b.low))


def multiply(a: Pair, b: Pair) -> Pair:
    product = two_product(a.high, b.high)
    return fast_two_sum(product.high, fma(a.high, b.low, fma(a.low, b.high, product.low)))


def divide(a: Pair, b: Pair) -> Pair:
    quotient = a.high / b.high
    remainder = fma(-quotient, b.high, a.high) + (a.low - quotient * b.low)
    return fast_two_sum(quotient, remainder / b.high)


def square_root(a: Pair) -> Pair:
    root = sqrt(a.high)
    return fast_two_sum(root, (fma(-root, root, a.high) + a.low) / (root + root))


def constant(like: Value, high: float, low: float) -> Pair:
    return Pair(like.like(high), like.like(low))
