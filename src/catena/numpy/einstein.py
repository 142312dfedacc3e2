"""Einstein summation through opt_einsum's contraction orders.

A contraction is a sequence of pairwise ones. Each of these is: sums over labels that only one operand has,
diagonals of repeated labels, one ``dot_general`` and one transpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from catena import lax
from catena.core import dtypes
from catena.core.array import Array
from catena.core.lazy import LazyModule
from catena.lax.structure import told
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, convert, promoted_dtype, refuse_out, user_dtype
from catena.numpy.placement import placed
from catena.numpy.ranges import arange
from catena.numpy.reading import read
from catena.typing import ArrayLike, DTypeLike

opt_einsum = LazyModule("opt_einsum")


class _Shaped:
    """An operand as opt_einsum sees it: a shape."""

    def __init__(self, shape: tuple):
        self.shape = shape


def _parsed(name: str, subscripts, operands: tuple) -> tuple:
    """``(subscripts, arrays)`` from either way of calling ``einsum``; the subscripts as one string with an arrow."""
    if isinstance(subscripts, str):
        arrays = [as_array_argument(name, x, i) for i, x in enumerate(operands)]
        args = (subscripts, *(_Shaped(a.shape) for a in arrays))
    else:
        items = (subscripts, *operands)
        count = len(items) // 2
        arrays = [as_array_argument(name, x, i) for i, x in enumerate(items[: 2 * count : 2])]
        labels = items[1 : 2 * count : 2]
        args = tuple(v for a, sub in zip(arrays, labels, strict=True) for v in (_Shaped(a.shape), sub))
        args += items[2 * count :]
    return args, arrays


@whole
def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[int],
    out: None = None,
    optimize: str | bool | list = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sums of products by Einstein's convention.

    Arguments:
      subscripts: such as ``"ij,jk->ik"``: labels of the axes of each operand and of the result; labels that
        the result lacks are summed over. Without an arrow the result has the labels that occur once, in
        alphabetic order. "..." stands for axes that broadcast.
      *operands: the arrays. Instead of a string, arrays and lists of labels may alternate.
      out: must be None.
      optimize: the order of contractions: "auto", "optimal", "greedy" and others of opt_einsum, True, False,
        or a path.
      precision: the precision of products, as for ``lax.dot_general``.
      preferred_element_type: the dtype to accumulate in, and of the result.
      _dot_general: a function to use instead of ``lax.dot_general``.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of the dtype that the operands promote to.
    Raises:
      ValueError: the subscripts do not fit the operands.

    Source of the contraction orders: D. G. A. Smith and J. Gray, opt_einsum, JOSS 3(26), 753 (2018).

    >>> import catena.numpy as jnp
    >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    if out_sharding is not None:
        return told(
            out_sharding,
            einsum,
            subscripts,
            *operands,
            out=out,
            optimize=optimize,
            precision=precision,
            preferred_element_type=preferred_element_type,
            _dot_general=_dot_general,
        )
    refuse_out("einsum", out)
    args, arrays = _parsed("einsum", subscripts, operands)
    if not arrays:
        raise ValueError("einsum requires at least one operand")
    labels, result_labels, steps = _contractions(args, optimize)
    preferred = user_dtype(preferred_element_type, "einsum")
    dtype, weak = promoted_dtype(arrays) if len(arrays) > 1 else (arrays[0].dtype, arrays[0].weak_type)
    arrays = [convert(a, dtype, weak) if a.weak_type else a for a in arrays]
    product = _Product(precision, preferred, dtype, _dot_general or lax.dot_general)
    terms = list(zip(labels, arrays, strict=True))
    for places in steps:
        chosen = [terms.pop(i) for i in sorted(places, reverse=True)]
        keep = set(result_labels).union(*(names for names, _ in terms))
        terms.append(_contract(chosen[::-1], keep, product))
    names, result = terms[0]
    result = _arranged(names, result, result_labels)
    final = dtype if preferred is None else preferred
    return placed(convert(result, final, weak and preferred is None))


_plans: dict = {}
_MOST_PLANS = 4096


def _contractions(args: tuple, optimize) -> tuple:
    """``_contraction_list``, remembered: finding the order takes longer than a small contraction."""
    if not isinstance(args[0], str) or not isinstance(optimize, str | bool):
        return _contraction_list(args, optimize)
    key = (args[0], optimize, *(operand.shape for operand in args[1:]))
    found = _plans.get(key)
    if found is None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        found = _plans[key] = _single_contraction(*args) or _contraction_list(args, optimize)
    return found


def _single_contraction(subscripts: str, *operands) -> tuple | None:
    """``_contraction_list`` of one operand or two whose labels are letters, and fit: there is no order to find, for
    which alone opt_einsum would be loaded (5 ms). None for others, the wrong ones among them.
    """
    inputs, arrow, result = subscripts.replace(" ", "").partition("->")
    labels, letters = inputs.split(","), inputs.replace(",", "")
    if not arrow:
        result = "".join(sorted(label for label in letters if letters.count(label) == 1))
    if len(operands) > 2 or [len(names) for names in labels] != [len(x.shape) for x in operands]:
        return None
    pairs = [pair for names, x in zip(labels, operands, strict=True) for pair in zip(names, x.shape, strict=True)]
    sizes = dict(pairs)
    fits = all(sizes[label] == size for label, size in pairs) and sizes.keys() >= set(result)
    plain = (letters + result).isascii() and letters.isalpha() and len(set(result)) == len(result)
    return (labels, result, [tuple(range(len(operands)))]) if fits and plain else None


def _contraction_list(args: tuple, optimize) -> tuple:
    """The labels of operands and result, and the places of the operands of each contraction."""
    optimize = "optimal" if optimize is True else [tuple(range(_count(args)))] if optimize is False else optimize
    inputs, result, operands = opt_einsum.parser.parse_einsum_input(args, shapes=False)
    if optimize == [(0,)] or len(operands) == 1:
        _check_labels(inputs, operands)
    _, contractions = opt_einsum.contract_path(*args, optimize=optimize, einsum_call=True)
    labels = inputs.split(",")
    return labels, result, [contraction[0] for contraction in contractions]


def _check_labels(inputs: str, operands):
    for place, (names, operand) in enumerate(zip(inputs.split(","), operands, strict=True)):
        if len(names) != len(operand.shape):
            raise ValueError(
                f"Einstein sum subscript '{names}' does not contain the correct number of indices for operand {place}."
            )


def _count(args: tuple) -> int:
    return len([a for a in args if isinstance(a, _Shaped)])


class _Product:
    """How two operands are multiplied."""

    def __init__(self, precision, preferred, dtype, dot_general):
        self.precision, self.preferred, self.dtype, self.dot_general = precision, preferred, dtype, dot_general

    def __call__(self, a, b, numbers):
        own = self.dot_general is lax.dot_general
        preferred = self.dtype if self.preferred is None and not (own and a.dtype == b.dtype) else self.preferred
        return self.dot_general(a, b, numbers, self.precision, preferred_element_type=preferred)


def _contract(terms: list, keep: set, product: _Product) -> tuple:
    """Terms, each labels and an array, multiplied and summed over the labels that are not to be kept."""
    names = [set(n) for n, _ in terms]
    simple = [_simplified(*t, keep.union(*names[:i], *names[i + 1 :]), product.dtype) for i, t in enumerate(terms)]
    result = simple[0]
    for i, other in enumerate(simple[1:], 1):
        result = _pair(result, other, keep.union(*names[i + 1 :]), product)
    return _summed(*result, keep, product.dtype)


def _simplified(names: str, x, keep: set, dtype) -> tuple:
    """A term with diagonals taken of its repeated labels, and sums over labels that nobody else has."""
    for label, count in Counter(names).items():
        for _ in range(count - 1):
            names, x = _diagonal(names, x, label)
    return _summed(names, x, keep, dtype)


def _summed(names: str, x, keep: set, dtype) -> tuple:
    """A term summed in ``dtype`` over the labels that are not to be kept."""
    axes = tuple(i for i, label in enumerate(names) if label not in keep)
    if not axes:
        return names, x
    x = x if x.dtype == dtype else convert(x, dtype)
    total = lax.reduce_or(x, axes) if x.dtype == dtypes.BOOL else lax.reduce_sum(x, axes)
    return "".join(label for label in names if label in keep), total


def _diagonal(names: str, x, label: str) -> tuple:
    """Two axes of one label made one, which comes last."""
    first = names.index(label)
    second = names.index(label, first + 1)
    others = [i for i in range(len(names)) if i not in (first, second)]
    moved = lax.transpose(x, (*others, first, second))
    n, k = x.shape[first], x.shape[second]
    if n != k:  # a label of size 1 broadcasts
        n = max(n, k)
    places = arange(n)  # computed: as a constant it would make each length a program of its own
    rows, columns = (places if s == n else lax.full_like(places, 0) for s in (x.shape[first], x.shape[second]))
    taken = read(moved, (..., rows, columns))
    return "".join(names[i] for i in others) + label, taken


def _pair(a: tuple, b: tuple, keep: set, product: _Product) -> tuple:
    """The product of two terms, summed over the labels that both have and nobody needs."""
    (a_names, x), (b_names, y) = _without_ones(a, b), _without_ones(b, a)
    a_names, x = _summed(a_names, x, keep.union(b_names), product.dtype)  # a label that only broadcast in the other
    b_names, y = _summed(b_names, y, keep.union(a_names), product.dtype)
    common = [label for label in a_names if label in b_names]
    batch = [label for label in common if label in keep]
    contracted = [label for label in common if label not in keep]
    numbers = (
        (tuple(map(a_names.index, contracted)), tuple(map(b_names.index, contracted))),
        (tuple(map(a_names.index, batch)), tuple(map(b_names.index, batch))),
    )
    result = product(x, y, numbers)
    free = [n for n in a_names if n not in common] + [n for n in b_names if n not in common]
    return "".join(batch + free), result


def _without_ones(term: tuple, other: tuple) -> tuple:
    """A term without axes of size 1 that broadcast against the other's."""
    names, x = term
    other_sizes = dict(zip(other[0], other[1].shape, strict=True))
    axes = tuple(i for i, n in enumerate(names) if x.shape[i] == 1 and other_sizes.get(n, 1) != 1)
    if not axes:
        return term
    return "".join(n for i, n in enumerate(names) if i not in axes), lax.squeeze(x, axes)


def _arranged(names: str, x, wanted: str):
    if names == wanted:
        return x
    return lax.transpose(x, tuple(map(names.index, wanted)))


def einsum_path(
    subscripts: str | ArrayLike, /, *operands: ArrayLike | Sequence[int], optimize: str | bool | list = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which ``einsum`` contracts its operands, without contracting them.

    Arguments:
      subscripts, *operands, optimize: as for ``einsum``.
    Returns:
      The path, a list of the positions of operands that are contracted together, and a description that
      prints.
    Raises:
      ValueError: the subscripts do not fit the operands.

    >>> import catena.numpy as jnp
    >>> x, y = jnp.ones((2, 3)), jnp.ones((3, 4))
    >>> jnp.einsum_path("ij,jk->ik", x, y)[0]
    [(0, 1)]
    """
    args, _ = _parsed("einsum_path", subscripts, operands)
    if isinstance(optimize, bool):
        optimize = "optimal" if optimize else [tuple(range(_count(args)))]
    return opt_einsum.contract_path(*args, optimize=optimize)
