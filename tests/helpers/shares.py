"""Shares of long tables: one run of the tests tries some cases of each, `make test-every` tries all.

A test of many parameters is marked `@pytest.mark.share(of)` (`tests/conftest.py`): one in so many of all combinations,
of neighbours in one column another in each row of the others. Shares are the same in every run, so that a failure is
the change's, and touch every value of every column where there are several. Who changes what a table tests runs all of
it: `CATENA_EVERY_CASE=1 pytest tests/...`.
"""

import os
import zlib

EVERY = "CATENA_EVERY_CASE" in os.environ


def share(of: int, rows: list[tuple[int, ...]]) -> set[int]:
    """Which rows of a table are tried, given the number of each value in its column: those whose numbers add up to a
    multiple of `of`, and, until no value is without one, the row with most values that none of these has. A table of
    one column has as many values as rows.
    """
    chosen = {row for row, numbers in enumerate(rows) if sum(numbers) % of == 0}
    left = {value for numbers in rows if len(numbers) > 1 for value in enumerate(numbers)}
    left -= {value for row in chosen for value in enumerate(rows[row])}
    while left:
        row = max(range(len(rows)), key=lambda row: len(left.intersection(enumerate(rows[row]))))
        chosen.add(row)
        left.difference_update(enumerate(rows[row]))
    return chosen


def alternate(of: int, values, k: int) -> list:
    """One in so many values, those for each `k` between those for the one before."""
    return [*values][0 if EVERY else k % of :: 1 if EVERY else of]


def in_share(of: int, name: str) -> bool:
    """Whether a case of this name belongs to the share of one in so many."""
    return EVERY or zlib.crc32(name.encode()) % of == 0
