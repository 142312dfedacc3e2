"""From form to form: the parts that devices have afterwards are those of the same array."""

import itertools

import numpy as np
import pytest

from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.partition_spec import PartitionSpec
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.zeros import get_aval
from catena.lax.collectives import psum
from catena.parallel.moves import Form, Move, apply, cost, matching, moves
from catena.parallel.region import Region, inside
from catena.parallel.vectorised import vectorised
from catena.sharding import AbstractMesh

SIZES = {"a": 2, "b": 2, "c": 4}
REGION = Region(AbstractMesh((2, 2, 4), ("a", "b", "c")), ("a", "b", "c"), False)
X = np.arange(256, dtype=np.float32).reshape(16, 16)


def spec(split):
    return PartitionSpec(*[names or None for names in split])


def moved(have: Form, want: Form):
    """An array whose parts were brought from one form to the other, and put together."""

    def fun(x):
        terms = x / np.float32(np.prod([SIZES[n] for n in have.partial]))  # equal terms of the sum that it is
        for move, _ in moves(have, want, SIZES):
            terms = apply(move, terms)
        return [psum(terms, want.partial) if want.partial else terms]

    local = tuple(n // int(np.prod([SIZES[m] for m in names])) for n, names in zip(X.shape, have.split, strict=True))
    with inside(REGION):
        closed = ClosedJaxpr(*trace_to_jaxpr(fun, [get_aval(X).update(shape=local)], DebugInfo("test", "fun")))
    whole = vectorised(closed, REGION, (spec(have.split),), (spec(want.split),))
    return eval_jaxpr(whole.jaxpr, whole.consts, X)[0]


SPLITS = [
    ((), ()),
    (("a",), ()),
    ((), ("c",)),
    (("a",), ("b",)),
    (("b", "c"), ()),
    (("c",), ("b", "a")),
    ((), ("c", "a")),
]


@pytest.mark.parametrize("have", SPLITS)
def test_parts_of_the_same_array(have):
    for want in SPLITS:
        np.testing.assert_array_equal(moved(Form(have), Form(want)), X, err_msg=f"{have} -> {want}")
    free = [n for n in SIZES if n not in itertools.chain(*have)]
    for want in SPLITS[:5] if free else []:
        np.testing.assert_array_equal(moved(Form(have, (free[0],)), Form(want)), X, err_msg=f"{have} -> {want}")


@pytest.mark.parametrize(
    ("have", "want", "kinds", "sends"),
    [
        (Form((("a",), ())), Form((("a",), ("b",))), ["slice"], 0),
        (Form((("a",), ())), Form(((), ())), ["gather"], 64),
        (Form((("c",), ())), Form(((), ("c",))), ["exchange"], 48),
        (Form(((), ()), ("c",)), Form(((), ())), ["sum"], 96),
        (Form(((), ()), ("c",)), Form((("c",), ())), ["scatter"], 48),
        (Form(((), ()), ("a", "c")), Form((("c",), ()), ("a",)), ["scatter"], 48),
        (Form((("a",), ())), Form((("c",), ())), ["permute"], 32),
        (Form((("a", "b"), ())), Form((("b", "a"), ())), ["permute"], 64),
    ],
)
def test_the_cheapest_steps(have, want, kinds, sends):
    steps = moves(have, want, SIZES)
    assert [move.kind for move, _ in steps] == kinds and steps[-1][1] == want
    assert cost(steps, 64, SIZES) == sends


def test_whoever_has_what_it_needs_keeps_it():
    pairs, sends = matching(("a",), ("c",), SIZES)  # devices (0, 0) ... (1, 3); those along c need quarters of halves
    assert {taker for _, taker in pairs} == {giver for giver, _ in pairs} == set(range(8))
    assert [(g, t) for g, t in pairs if g == t] == [(0, 0), (1, 1), (6, 6), (7, 7)] and sends[6:] == [0, 1]
    assert Move("permute", ("a",), 0, new=("c",)).all_names == ("a", "c")
