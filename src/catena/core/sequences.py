"""``map`` and ``zip`` of sequences that must be equally long, as lists."""

from collections.abc import Callable, Iterable


def safe_map(f: Callable, first: Iterable, *others: Iterable) -> list:
    """``list(map(f, first, *others))`` of sequences that must be equally long.

    Raises:
      ValueError: they are not.

    >>> from catena.api_util import safe_map
    >>> safe_map(max, [1, 5], [2, 3])
    [2, 5]
    """
    return [f(*row) for row in zip(first, *others, strict=True)]


def safe_zip(first: Iterable, *others: Iterable) -> list:
    """``list(zip(first, *others))`` of sequences that must be equally long.

    Raises:
      ValueError: they are not.
    """
    return list(zip(first, *others, strict=True))
