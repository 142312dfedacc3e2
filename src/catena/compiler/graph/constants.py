"""Elementwise operations that need not be done for each element, found while the program is written.

Done at once are operations of constants whose result the standard of floating point determines, so that it is what the
program would have computed: sums, products, quotients, roots and comparisons, not logarithms. What leaves its operand
as it is vanishes. Quotients by powers of two are products. What is done to one number that is spread over an array is
done to the number, and so are costly functions of a choice between two numbers, as in x log(y) with log(1) where x is
0. What hangs on one truth alone, as labels' rows of 0 and 1 do, is a choice between two constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from catena.compiler.graph.forms import COSTLY
from catena.compiler.graph.keys import is_plain
from catena.compiler.graph.symbols import array_of, bits_of
from catena.core.dtypes import KIND

_ARITHMETIC: dict[str, Callable] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
    "square": np.square,
}
_OF_FLOATS: dict[str, Callable] = {"div": np.divide, "sqrt": np.sqrt, "is_finite": np.isfinite, "floor": np.floor}
COMPARISONS: dict[str, Callable] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_OF_TRUTHS: dict[str, Callable] = {
    "not": np.logical_not,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
# By the kind of the operands.
DONE = {
    "f": _ARITHMETIC | _OF_FLOATS | COMPARISONS,
    "i": _ARITHMETIC | COMPARISONS | {"sign": np.sign},
    "u": _ARITHMETIC | COMPARISONS | {"sign": np.sign},
    "b": _OF_TRUTHS,
}


def _one(last: np.ndarray) -> bool:
    return last.dtype.kind in "fiu" and bool(last == 1)


def _true(last: np.ndarray) -> bool:
    return last.dtype.kind == "b" and bool(last)


def _false(last: np.ndarray) -> bool:
    return last.dtype.kind == "b" and not last


def _zero(last: np.ndarray) -> bool:
    return last.dtype.kind in "fiu" and bool(last == 0) and not np.signbit(last)


def _least(last: np.ndarray) -> bool:
    return _least_integer(last) or last.dtype.kind == "f" and bool(last == -np.inf)


def _greatest(last: np.ndarray) -> bool:
    return _greatest_integer(last) or last.dtype.kind == "f" and bool(last == np.inf)


def _least_integer(last: np.ndarray) -> bool:
    return last.dtype.kind in "iu" and bool(last == np.iinfo(last.dtype).min)


def _greatest_integer(last: np.ndarray) -> bool:
    return last.dtype.kind in "iu" and bool(last == np.iinfo(last.dtype).max)


def _no_number(last: np.ndarray) -> bool:
    """Zero, where every number multiplied by it is zero: not NaN, nor one with a sign."""
    return last.dtype.kind in "iu" and bool(last == 0)


def _minus_zero(last: np.ndarray) -> bool:
    """What added to any number gives that number: -0.0 + 0.0 is 0.0."""
    return last.dtype.kind in "fiu" and bool(last == 0) and bool(last.dtype.kind != "f" or np.signbit(last))


# Of which constants as second operand the first is the result; and those that are the result themselves.
NEUTRAL = {
    "add": _minus_zero,
    "sub": _zero,
    "mul": _one,
    "div": _one,
    "pow": _one,
    "and": _true,
    "or": _false,
    "xor": _false,
    "eq": _true,
    "ne": _false,
    "max": _least,  # of NaN too, which is the result
    "min": _greatest,
}
ABSORBING = {"and": _false, "or": _true, "mul": _no_number, "max": _greatest_integer, "min": _least_integer}
COMMUTING = ("add", "mul", "and", "or", "xor", "eq", "ne", "max", "min")
SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
OF_ZERO = {"lt": False, "ge": True}  # what numbers without a sign are, compared with zero
# What is known of a number and the same again; of floats, which may be NaN, that neither is below the other.
OF_SAME = {"sub": 0, "xor": 0, "rem": 0, "ne": 0, "lt": 0, "gt": 0, "eq": 1, "le": 1, "ge": 1}
OF_SAME_FLOATS = {"lt": 0, "gt": 0}
SAME = dict.fromkeys("iub", OF_SAME) | {"f": OF_SAME_FLOATS}  # by the kind of the operands
# Of which numbers functions have exact values, and which; those that are 0 at 0 keep its sign.
EXACT = {"log": (1, 0), "exp": (0, 1), "exp2": (0, 1), "cos": (0, 1), "cosh": (0, 1)}
ZERO_AT_ZERO = ("log1p", "expm1", "sin", "tan", "sinh", "tanh", "asin", "atan", "asinh", "atanh")
SAME_AGAIN = ("max", "min", "and", "or")  # folds of which those of one number are that number
CHOICES = 3  # one in another, of numbers of which a function is computed beforehand


def known(b, op: str, xs: tuple, shape: tuple):
    """The value of an elementwise operation where it is a constant, an operand, or a number spread over an array; None
    where it is to be computed for each element.
    """
    if op == "select":
        return _selected(*xs)
    scalars = [scalar(x) for x in xs]
    if all(s is not None for s in scalars) and (done := _done(b, op, scalars, shape)) is not None:
        return done
    if shape and all(_is_spread(x) for x in xs):
        return b.full(shape, b.map(op, *(x.args[0] for x in xs)))
    if (chosen := _of_one_truth(b, op, xs, scalars, shape)) is not None:
        return chosen
    if len(xs) == 1:
        return _of_choice(b, op, xs[0])
    if len(xs) != 2:
        return None
    if xs[0] is xs[1] and op in (same := SAME.get(KIND[xs[0].dtype], {})):
        return b.full(shape, np.asarray(same[op], bool if op in COMPARISONS else xs[0].dtype))
    if xs[0] is xs[1] and op == "div" and xs[0].dtype.kind in "iu":
        zero, by_zero, one = (b.full(shape, np.asarray(n).astype(xs[0].dtype)) for n in (0, -1, 1))
        return b.map("select", b.map("eq", xs[0], zero), by_zero, one)
    if op in SWAPPED:
        return _of_zero(b, op, xs, scalars, shape)
    if op == "and" and (found := _is_above_floor(b, *xs)) is not None:
        return found
    if op == "pow" and scalars[1] is not None:
        if scalars[1] == 2:
            return b.map("square", xs[0])
        if scalars[1].dtype.kind == "c" and scalars[1] == 3:  # real ones: `vector_math.powers`
            return b.map("integer_pow", xs[0], y=3)
    if op == "div" and scalars[1] is not None and (factor := _exact_inverse(scalars[1])) is not None:
        return b.map("mul", xs[0], b.full(xs[1].shape, factor))
    if op == "rem" and scalars[1] is not None and xs[0].dtype.itemsize > 2:  # others round after each operation
        if (factor := _exact_inverse(scalars[1])) is not None and abs(factor) <= 1:
            return _rest(b, xs[0], abs(factor))
    for x, y, last in ((xs[0], xs[1], scalars[1]), (xs[1], xs[0], scalars[0] if op in COMMUTING else None)):
        if last is not None and op in NEUTRAL and NEUTRAL[op](last):
            return x
        if last is not None and op in ABSORBING and ABSORBING[op](last):
            return y
        if op == "mul" and last is not None and last.dtype.kind in "fV" and last == -1:
            return b.map("neg", x)  # no product, which takes long of what is small (`graph.small`)
    return None


def of_numbers(b, params, args: tuple, x):
    """What `x` is with these operands, some of which are numbers that are spread; None if each element is computed."""
    alone = params.y is not None or params.op == "convert"  # of which more is asked than operands
    if not all(map(_is_spread, args)):
        return None if alone else known(b, params.op, args, x.shape)
    numbers = [scalar(a) for a in args]
    if not alone and all(n is not None for n in numbers) and (done := _done(b, params.op, numbers, x.shape)):
        return done
    return b.full(x.shape, b.value("map", (), x.dtype, tuple(a.args[0] for a in args), params))


def scalar(x) -> np.ndarray | None:
    """The number that all elements of a value are, if it is a constant."""
    while x.form == "broadcast":
        (x,) = x.args
    return x.params.array if x.form == "constant" and x.ndim == 0 else None


def folded(kind: str, x, axes: tuple):
    """What all elements of a fold of one number are: of extremes the number, of sums a product, where nothing is
    rounded on the way to it, in whichever order. None where they are to be folded.
    """
    if kind in SAME_AGAIN:
        return x.args[0] if _is_spread(x) and all(x.shape[a] > 0 for a in axes) else None
    number, extents = scalar(x), tuple(x.shape[a] for a in axes)
    if kind != "sum" or number is None or is_zero(x):
        return number if kind == "sum" else None
    if type(number) is not np.ndarray or number.dtype.kind not in "fiu" or not is_plain(extents):
        return None
    count = math.prod(extents)
    if number.dtype.kind in "iu":
        return np.asarray(int(number) * count).astype(number.dtype)
    return np.asarray(float(number) * count + 0.0, number.dtype) if _is_exact(number, count) else None


def _is_exact(number: np.ndarray, count: int) -> bool:
    """Whether so many of a number, and sums of fewer of them, are numbers of its dtype."""
    limits = np.finfo(number.dtype)
    if not np.isfinite(number) or abs(float(number)) * count > float(limits.max):
        return False
    whole = abs(float(number).as_integer_ratio()[0])
    odd = whole // (whole & -whole or 1)
    return odd * count <= 1 << limits.nmant + 1 and (not odd or abs(number) >= limits.tiny)


def is_zero(x) -> bool:
    """Whether all elements of a value are 0, and none is -0."""
    number = scalar(x)
    return number is not None and bits_of(number) == 0


def is_same(x, y) -> bool:
    """Whether all elements of both values are one constant."""
    a, b = scalar(x), scalar(y)
    return a is not None and b is not None and a.dtype == b.dtype and bits_of(a) == bits_of(b)


def _of_zero(b, op: str, xs: tuple, scalars: list, shape: tuple):
    """Whether numbers without a sign are below zero, where that is asked."""
    if scalars[0] is not None:
        op, scalars = SWAPPED[op], scalars[::-1]
    if op not in OF_ZERO or scalars[1] is None or scalars[1].dtype.kind != "u" or scalars[1] != 0:
        return None
    return b.full(shape, np.asarray(OF_ZERO[op]))


def _is_above_floor(b, signs, rests):
    """Whether the quotient of an integer by a constant lies above the one that is rounded down: by its remainder alone,
    where the program asks whether both have other signs, and something remains.
    """
    if not (_is_map(signs, "ne") and _is_map(rests, "ne")):
        return None
    (sign, of_constant), (rest, zero) = signs.args, rests.args
    if not (_is_map(sign, "sign") and _is_map(rest, "rem") and sign.args[0] is rest.args[0] and is_zero(zero)):
        return None
    by, given = scalar(rest.args[1]), scalar(of_constant)
    if by is None or given is None or by.dtype.kind != "i" or by == 0 or given != np.sign(by):
        return None
    return b.map("lt" if by > 0 else "gt", rest, zero)


def _is_map(x, op: str) -> bool:
    return x.form == "map" and x.params.op == op


def _exact_inverse(x: np.ndarray) -> np.ndarray | None:
    """One over a power of two, by which a product is the quotient, to the last bit: both are the same number, rounded
    once. A division takes ten times as long.
    """
    if x.dtype.kind != "f" or x.dtype.itemsize < 2 or x == 0 or not np.isfinite(x) or abs(np.frexp(x)[0]) != 0.5:
        return None
    with np.errstate(over="ignore"):
        inverse = np.asarray(1 / np.asarray(x), x.dtype)
    return inverse if np.finfo(x.dtype).tiny <= abs(inverse) < np.inf else None


def _rest(b, x, inverse: np.ndarray):
    """What is left of floats divided by a power of two, of which it is the inverse: exact, with the sign of each."""
    inverse, by, zero = (b.full(x.shape, np.asarray(n, x.dtype)) for n in (inverse, 1 / inverse, 0))
    rest = b.map("sub", x, b.map("mul", b.map("trunc", b.map("mul", x, inverse)), by))
    return b.map("select", b.map("eq", rest, zero), b.map("mul", x, zero), rest)


def _is_spread(x) -> bool:
    return x.form == "broadcast" and x.args[0].ndim == 0


def _of_one_truth(b, op: str, xs: tuple, scalars: list, shape: tuple):
    """What is computed of one truth and constants, as of labels' rows of 0 and 1: one of two constants."""
    told = [(None, s, s) if s is not None else of_truth(x) for x, s in zip(xs, scalars)]
    given = [each for each in told if each is not None]
    truths = {id(truth): truth for truth, *_ in given if truth is not None}
    if len(given) < len(told) or len(truths) != 1:
        return None
    both = [_done(b, op, [each[k] for each in given], shape) for k in (1, 2)]
    return None if None in both else b.map("select", *truths.values(), *both)


def of_truth(x) -> tuple | None:
    """The truth that says which of two constants each element is, and these; what is converted is 1 or 0."""
    if _is_map(x, "select") and (on_true := scalar(x.args[1])) is not None:
        return None if (on_false := scalar(x.args[2])) is None else (x.args[0], on_true, on_false)
    if _is_map(x, "convert") and x.args[0].dtype == np.bool_:
        return x.args[0], np.ones((), x.dtype), np.zeros((), x.dtype)
    return None


def _of_choice(b, op: str, x, choices: int = CHOICES):
    """A costly function of one of a few numbers, as one of the function's values at them."""
    if op not in COSTLY or x.form != "map" or not choices:
        return None
    value = lambda number: b.full(x.shape, b.map(op, number))
    if (given := of_truth(x)) is not None:
        return b.map("select", given[0], *(value(b.constant(n)) for n in given[1:]))
    if x.params.op != "select":
        return None
    values = [value(a.args[0]) if _is_spread(a) else _of_choice(b, op, a, choices - 1) for a in x.args[1:]]
    return None if None in values else b.map("select", x.args[0], *values)


def _selected(condition, on_true, on_false):
    choice = scalar(condition)
    if choice is not None and choice.dtype == np.bool_:
        return on_true if choice else on_false
    if on_true is on_false:
        return on_true
    return condition if _is_truth(on_true, True) and _is_truth(on_false, False) else None


def _is_truth(x, truth: bool) -> bool:
    number = scalar(x)
    return number is not None and number.dtype == np.bool_ and bool(number) == truth


def _done(b, op: str, scalars: list, shape: tuple):
    dtype = scalars[0].dtype
    if op in EXACT and dtype.kind == "f" and scalars[0] == EXACT[op][0]:
        return b.full(shape, np.asarray(EXACT[op][1], dtype))
    if op in ZERO_AT_ZERO and dtype.kind == "f" and scalars[0] == 0:
        return b.full(shape, scalars[0])
    narrow = KIND[dtype] == "f" and dtype.itemsize < 4  # these are rounded after several operations
    function = DONE.get("f" if narrow else dtype.kind, {}).get(op)
    if function is None:
        return None
    with np.errstate(all="ignore"):
        made = _exactly(function, scalars) if narrow else array_of(function(*scalars))
    return None if made is None else b.full(shape, made)


def _exactly(function: Callable, scalars: list) -> np.ndarray | None:
    """A function of narrow floats where there is nothing to round."""
    if any(type(s) is not np.ndarray for s in scalars):  # which is known for one length only
        return None
    wide = np.asarray(function(*(s.astype(np.float32) for s in scalars)))
    made = wide if wide.dtype == np.bool_ else wide.astype(scalars[0].dtype)
    return made if made.astype(wide.dtype) == wide else None
