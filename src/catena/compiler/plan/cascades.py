"""Long sums of floats in blocks of blocks, so that their error grows with the logarithm of their length.

A sum of n numbers one by one loses up to n/2 units in the last place, and does when the numbers are alike. Here the
innermost loop adds up `BLOCK` steps; each block's sum is added to a second accumulator, every `BLOCK` of these to a
third, and so on (pairwise summation with a wider base; Higham, "Accuracy and Stability of Numerical Algorithms",
chapter 4).
"""

from __future__ import annotations

from catena.compiler.kernels.loops import Nest
from catena.core.named import NamedTuple

BLOCK = 32  # steps of a block, and blocks of a block of the next level


class Cascade(NamedTuple):
    """Which loop of a nest is cut into blocks, of how many of its iterations, and the levels above the first."""

    level: int
    block: int
    levels: int


def plan(nest: Nest, kept: int) -> Cascade | None:
    """The cascade of a scheduled nest with `kept` outer loops; None where sums are short or there are none."""
    if not any(is_cascaded(f) for f in nest.folds):
        return None
    inner, found, blocks = 1, None, 1
    for level in reversed(range(kept, len(nest.order))):
        d = nest.order[level]
        trips = -(-nest.extents[d] // nest.block(d))
        if found is None and inner * trips >= 2 * BLOCK:
            block = max(1, BLOCK // inner)
            found, trips = (level, block * nest.block(d) // nest.step(d)), -(-trips // block)
        if found is None:
            inner *= trips
        else:
            blocks *= trips
    if found is None:
        return None
    levels = 1
    while blocks >= 2 * BLOCK:
        levels, blocks = levels + 1, -(-blocks // BLOCK)
    return Cascade(*found, levels)


def is_cascaded(fold) -> bool:
    """Whether a fold is a sum or product of floats whose order is ours to choose."""
    if fold.run is not None and fold.run.in_order:
        return False
    return fold.is_ordered
