"""Memory for large results."""

import mmap

import numpy as np
import pytest

from catena.runtime import buffers
from catena.runtime.buffers import PAGE, Mapping


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="a system without huge pages on demand")
def test_a_page_of_which_most_stays_empty_is_no_huge_one():
    for used, whole in ((PAGE, 1), (3 * PAGE + 4096, 3), (2 * PAGE - 4096, 2), (4_000_000, 2), (40_000_000, 19)):
        mapping = Mapping(buffers.rounded(used), used)
        assert mapping._on_huge_pages(used) == mapping.start + whole * PAGE <= len(mapping.memory)


def test_memory_that_is_used_again_holds_a_larger_array():
    pool = buffers.Pool(1 << 26)
    first = pool.empty((9 * PAGE // 4 + 1000,), np.dtype(np.float32))
    size = next(iter(pool.by_size), None)
    del first
    again = pool.empty((9 * PAGE // 4 + 9000,), np.dtype(np.float32))
    again[:] = np.arange(again.size)
    assert size is None and pool.reused == 1
    np.testing.assert_array_equal(again, np.arange(again.size, dtype=np.float32))
