"""How work is cut among threads: chunks of loop nests."""

import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import program_of
from catena.compiler.plan.sharing import MORE, UNEVEN, evenly
from catena.core.config import override


def shares(units: int, size: int) -> list[int]:
    """The units of two threads, one of which takes chunks from the first on, the other one from the last back."""
    chunks, done = [min(size, units - at) for at in range(0, units, size)], [0, 0]
    while chunks:
        busy = done[0] > done[1]
        done[busy] += chunks.pop(-1 if busy else 0)
    return done


@pytest.mark.parametrize("count", [2, 3, 4, 7, 12, 64])
def test_two_threads_have_about_the_same_to_do(count):
    for units in range(count, 500):
        size = evenly(units, count)
        usual = -(-units // count)
        assert -(-units // (MORE * count)) <= size <= usual
        assert max(shares(units, size)) <= max(shares(units, usual))
        if size < usual:
            assert max(shares(units, usual)) > UNEVEN * units / 2


@pytest.mark.parametrize(
    "units, count, size", [(16, 3, 4), (8, 3, 2), (20, 7, 2), (10, 4, 1), (256, 12, 22), (3, 3, 1)]
)
def test_chunks_are_as_many_as_were_asked_for_where_these_are_even(units, count, size):
    assert evenly(units, count) == size


def test_short_rows_are_read_whole_where_threads_share_their_transposition():
    """Outside, the loop over the elements of a row would fetch each line as often as there are of them."""
    x = jnp.ones((4, 12500, 12))
    with override("jax_check_bounds", False):
        program = program_of(jax.make_jaxpr(lambda x: jnp.swapaxes(x, 1, 2))(x), machine=X86_64_V4)
    ((_, step),) = program.steps()
    nest = step.nest
    assert step.chunk and nest.extents[nest.vector] == 12500 and nest.extents[nest.order[-1]] == 12
