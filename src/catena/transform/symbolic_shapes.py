"""Shapes of results where lengths of arguments are symbolic: a function is traced for several lengths, and what its
results have of them is told by these.

A rule of a primitive reckons with numbers. So the lengths that stand for variables are numbers, unlike each other and
what programs are written with, and a length of a result is an expression that has the same value for each of them: a
sum of products, or one that is divided, or the lesser or greater of two of these (`min(n, 64)`): so there are small
lengths among them. Where there is none, it is a variable of its own.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from catena.core import dimensions
from catena.core.config import overridden
from catena.core.dimensions import Dimension, Scope
from catena.core.struct import ShapeDtypeStruct
from catena.core.tree import tree_leaves, tree_map

# Lengths that stand for symbolic ones: large, as programs cut windows out of what they are given, and with all
# remainders by small numbers. The others are for constraints that want divisible or small ones.
USUAL = 83, 90, 97, 110, 131, 148, 159, 86, 95, 102, 117, 121, 136, 143, 171, 211
OTHERS = 96, 160, 192, 224, 240, 288, 320, 7, 11, 13, 5, 3, 2, 4, 6, 8, 1, 128, 256, 384, 512, 640, 1024, 2048
LENGTHS = USUAL + OTHERS
# Those that tell what is the lesser or greater of two, where the others alone do not: small ones, and a large one.
SMALL_AND_LARGE = 2, 4, 6, 9, 17, 40, 70, 600
MOST_TRIED = 20_000  # combinations of these
DIVISORS, SHIFTS = range(2, 33), sorted(range(-70, 71), key=abs)  # of lengths that are divided; the least come first


def symbolic(tree: Any) -> list[Dimension]:
    """The symbolic dimensions in the shapes of a tree."""
    structs = [x for x in tree_leaves(tree) if type(x) is ShapeDtypeStruct]
    return [d for x in structs for d in x.shape if isinstance(d, Dimension)]


def shapes(function: Callable, args: tuple, kwargs: dict, given: list[Dimension]) -> Any:
    """What ``function`` gives for these arguments, a tree with ``ShapeDtypeStruct``s.

    Arguments:
      function: from arguments to shapes, where lengths are known.
      args, kwargs: its arguments; it is given numbers in place of symbolic dimensions.
      given: the symbolic dimensions of the arguments.
    """
    scope, names = variables(given)
    points = lengths_of(scope, names)
    usual = len(points)
    results = [at(function, args, kwargs, lengths) for lengths in points]
    for lengths in spread([SMALL_AND_LARGE] * len(names), names, scope):
        with contextlib.suppress(Exception):  # a function may be none of lengths so small
            result = at(function, args, kwargs, lengths)
            if _ranks(result) == _ranks(results[0]):
                results.append(result)
                points.append(lengths)

    def told(*each):
        if not all(type(x) is ShapeDtypeStruct for x in each):
            return each[0]
        if len({x.ndim for x in each}) > 1:
            raise ValueError(f"eval_shape: the rank of a result hangs on the lengths of {', '.join(names)}")
        dims = zip(*(x.shape for x in each), strict=True)
        shape = [
            made
            if (made := expression(d, points, scope, given)) is not None
            else expression(d[:usual], points[:usual], scope, given)
            for d in dims
        ]
        return each[0].update(shape=tuple(dimensions.unknown(scope) if d is None else d for d in shape))

    return tree_map(told, *results)


def _ranks(tree: Any) -> Any:
    return tree_map(lambda x: getattr(x, "ndim", None), tree)


def variables(given: list[Dimension]) -> tuple[Scope, list[str]]:
    """The scope of symbolic dimensions, and the names of their variables."""
    scope = given[0].scope
    if any(d.scope is not scope for d in given):
        raise ValueError("the symbolic dimensions of the arguments are of different scopes")
    return scope, sorted(frozenset().union(*map(dimensions.variables_of, given)))


def at(function: Callable, args: tuple, kwargs: dict, lengths: dict[str, int]) -> Any:
    """The result where variables have these lengths; errors say so."""

    def with_numbers(x):
        if type(x) is not ShapeDtypeStruct:
            return x
        return x.update(shape=tuple(d if isinstance(d, int) else dimensions.value(d, lengths) for d in x.shape))

    try:
        with overridden("recorded", dimensions.STANDING_IN):
            return function(*tree_map(with_numbers, args), **tree_map(with_numbers, kwargs))
    except Exception as error:
        stood = ", ".join(f"{n} for {name}" for name, n in lengths.items())
        error.add_note(f"Symbolic dimensions are stood for by numbers while a function is traced: {stood}.")
        raise


def lengths_of(scope: Scope, names: Sequence[str]) -> list[dict[str, int]]:
    """Lengths of variables for which a function is traced: as many as tell the terms of `_monomials`, and two more."""
    wanted = len(_monomials(names)) + 2
    found: list[dict[str, int]] = []
    choices = [_lengths_from(int(scope.bounds(name)[0])) for name in names]
    for start in range(len(LENGTHS)):
        turned = [x[n:] + x[:n] for k, x in enumerate(choices) for n in [(start + 5 * k) % len(x)]]
        for each in itertools.islice(itertools.product(*turned), MOST_TRIED):
            lengths = dict(zip(names, each, strict=True))
            if lengths not in found and scope.holds(lengths):
                found.append(lengths)
                break
        if len(found) == wanted:
            break
    if not found:
        raise ValueError(f"no lengths were found of which {[tuple(c) for c in scope.constraints]} holds")
    return found


def spread(each: Sequence[Sequence[int]], names: Sequence[str], scope: Scope) -> list[dict[str, int]]:
    """Lengths of variables, as far as they are allowed: those of each go round, so that they meet others."""
    count = max(map(len, each))
    found = [{name: n[(k + 3 * j) % len(n)] for j, (name, n) in enumerate(zip(names, each))} for k in range(count)]
    return [lengths for lengths in found if are_allowed(scope, lengths)]


def are_allowed(scope: Scope, lengths: dict[str, int]) -> bool:
    """Whether variables may have these lengths."""
    return scope.holds(lengths) and all(n >= scope.bounds(name)[0] for name, n in lengths.items())


def _lengths_from(least: int) -> tuple[int, ...]:
    """Lengths that may be tried of a variable: no less."""
    return LENGTHS if least <= 1 else (*(n for n in LENGTHS if n >= least), *(least + n for n in USUAL))


def _monomials(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Products of variables that lengths are sums of: of two at most; of many variables, these alone."""
    degree = 2 if len(names) <= 3 else 1
    return [c for n in range(degree + 1) for c in itertools.combinations_with_replacement(names, n)]


def expression(
    found: Sequence[int], points: list[dict], scope: Scope, given: list[Dimension]
) -> int | Dimension | None:
    """The length that has these values at these points; None where no sum of products has, nor one that is divided."""
    if len(set(found)) == 1:
        return found[0]
    for d in given:
        if _has_values(d, found, points):
            return d
    names = list(points[0])
    for tell in (_sum_of_products, _divided, _multiple_of_divided):
        if (made := tell(found, points, names, scope)) is not None:
            return made
    return _of_two(found, points, scope, given)


def _of_two(found, points, scope, given) -> Any:
    """The lesser or greater of two lengths, of which one has the values at some points, and the other at the rest."""
    order = sorted(range(len(points)), key=lambda i: sum(points[i].values()))
    for one in _parts(found, points, scope, given, order):
        rest = [i for i, p in enumerate(points) if dimensions.value(one, p) != found[i]]
        if len(rest) == len(points):
            continue
        other = expression([found[i] for i in rest], [points[i] for i in rest], scope, given)
        if other is None:
            continue
        for name in ("min", "max"):
            if _has_values(made := dimensions.called(name, one, other), found, points):
                return made
    return None


def _parts(found, points, scope, given, order: list[int]) -> Iterator:
    """Lengths that may have the values at some points: given ones, a constant, what the values are at
    large points, and where one variable is less than another.
    """
    yield from given
    constant, often = Counter(found).most_common(1)[0]
    if often > 1:
        yield constant
    names = list(points[0])
    ordered = [[i for i in order if points[i][a] < points[i][b]] for a, b in itertools.combinations(names, 2)]
    for part in (order[len(order) // 2 :], *ordered):
        made = _sum_of_products([found[i] for i in part], [points[i] for i in part], names, scope) if part else None
        if made is not None:
            yield made


def _sum_of_products(found, points, names, scope) -> Any:
    monomials = _monomials(names)
    table = np.array([[np.prod([p[n] for n in m], dtype=float) for m in monomials] for p in points])
    factors = np.linalg.lstsq(table, np.array(found, float), rcond=None)[0]
    whole = [round(c) for c in factors.tolist()]
    made = sum(c * _product(m, scope) for c, m in zip(whole, monomials, strict=True))
    return made if _has_values(made, found, points) else None


def _product(names: tuple[str, ...], scope: Scope) -> Any:
    product: Any = 1
    for name in names:
        product = dimensions.variable(scope, name) * product
    return product


def _divided(found, points, names, scope) -> Any:
    for name in names:
        x = dimensions.variable(scope, name)
        for by, shift in itertools.product(DIVISORS, SHIFTS):
            if all((p[name] + shift) // by == n for p, n in zip(points, found, strict=True)):
                return (x + shift) // by
    return None


def _multiple_of_divided(found, points, names, scope) -> Any:
    """As what a slice with a step has."""
    for name in names:
        x = dimensions.variable(scope, name)
        for by in DIVISORS:
            for shift in range(by):
                divided = [(p[name] + shift) // by for p in points]
                (low, first), (high, last) = min(zip(divided, found)), max(zip(divided, found))
                times = (last - first) // (high - low) if high > low else 0
                made = times * ((x + shift) // by) + (first - times * low)
                if _has_values(made, found, points):
                    return made
    return None


def _has_values(made: Any, found: Sequence[int], points: list[dict]) -> bool:
    return isinstance(made, Dimension) and [dimensions.value(made, p) for p in points] == [*found]
