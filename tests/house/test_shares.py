"""What `make test` tries of long tables."""

import itertools

import pytest

from shares import share


@pytest.mark.parametrize("of", [2, 3, 8])
@pytest.mark.parametrize("sizes", [(2, 2), (12, 2), (3, 4, 5), (40, 3), (1, 1), (7, 1)])
def test_every_value_of_every_column_is_tried(sizes, of):
    rows = [*itertools.product(*map(range, sizes))]
    chosen = [rows[k] for k in share(of, rows)]
    for column, size in enumerate(sizes):
        assert {row[column] for row in chosen} == {*range(size)}
    assert len(chosen) <= len(rows) / of + max(sizes) + 1


def test_of_one_column_one_in_so_many():
    assert share(3, [(k,) for k in range(8)]) == {0, 3, 6}
