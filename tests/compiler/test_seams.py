"""Loops are cut where conditions along the lanes change: between these places nothing is masked."""

import itertools
import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit import seams
from catena.compiler.kernels import conditions
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.loops import Nest, Store
from catena.compiler.machine import X86_64_V3
from catena.compiler.native.compile import nests, program_of, text_of
from catena.core.context import context
from shares import alternate

SIZES = [1, 2, 7, 8, 9, 15, 16, 17, 31, 40, 64, 100, 129]


def comparing(n: int, *tests) -> Nest:
    """A nest that compares `a + b * i` with a number, for each (operation, a, b, number), in vectors of 8."""
    stmts = []
    for op, a, b, number in tests:
        stmts += [Stmt("affine", "int64", (), (a, ((0, b),), ())), Stmt("const", "int64", (), number)]
        stmts.append(Stmt(op, "bool", (len(stmts) - 2, len(stmts) - 1), None))
    return Nest([n], frozenset(), stmts, [1] * len(stmts), order=[0], vector=0, width=8)


@pytest.mark.share(4)
@pytest.mark.parametrize("op", conditions.COMPARED)
@pytest.mark.parametrize("b", [1, -1, 3, 0])
def test_what_is_settled_holds_there(op, b):
    for n in (1, 5, 20, 64, None):
        for number in (-70, 0, 1, 5, 8, 19, 100):
            nest = comparing(n or 1000, (op, 3, b, number))
            for vector in (0, None):  # along the lanes, and around them
                nest.vector = vector
                found = seams.pieces(nest, 0, n)
                assert found[0].start == 0 and found[-1].stop == n
                assert all(x.stop == y.start for x, y in itertools.pairwise(found))
                for start, stop, settled in found:
                    stop = 1000 if stop is None else stop
                    start = max(min(start, stop - 8), 0) if vector == 0 and n else start
                    truths = {conditions.COMPARED[op](3 + b * k, number) for k in range(start, stop)}
                    assert set(settled.values()) == (truths if b and len(truths) == 1 else set())
                    assert vector == 0 or not b or len(truths) == 1


def test_loops_of_many_seams_stay_whole():
    tests = [("lt", 0, 1, 8 * k + 4) for k in range(1, 9)]
    nest = comparing(100, *tests)
    assert len(seams.pieces(nest, 0, 100)) > seams.MOST_PIECES and seams.plan(nest, [0], ()) == set()
    assert seams.plan(comparing(100, *tests[:1]), [0], ()) == {0}
    assert conditions.find(Nest([9], frozenset(), [Stmt("const", "int64", (), 1)], [0]), 0) == {}


def test_what_follows_from_conditions():
    """Of what is chosen by conditions that are known, one side is needed, and what it reads."""
    nest = comparing(64, ("lt", 0, 1, 8), ("ge", 0, 1, 4))
    inside = nest.stmts.index(Stmt("lt", "bool", (0, 1), None)), nest.stmts.index(Stmt("ge", "bool", (3, 4), None))
    nest.stmts += [
        Stmt("and", "bool", inside, None),
        Stmt("load", "float32", (6,), (0, "float32", (0, ((0, 1),), ()))),
        Stmt("const", "float32", (), 0.0),
        Stmt("select", "float32", (6, 7, 8), None),
    ]
    nest.depends += [1] * 4
    nest.stores.append(Store(1, "float32", (0, ((0, 1),), ()), 9))
    low, high = inside
    for known, follows, needed in (
        ({}, {}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
        ({low: True}, {}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9} - {0, 1}),
        ({low: False}, {6: False}, {8, 9}),
        ({low: True, high: True}, {6: True}, {6, 7, 9}),
    ):
        found = conditions.follow(nest, known)
        assert found == known | follows
        assert conditions.needed(nest, found) - {0, 1, 3, 4} == needed - {0, 1, 3, 4}


STENCILS = {
    "roll": lambda np, x: np.roll(x, 1, -1) + 2 * np.roll(x, -1, -1) - x,
    "roll both": lambda np, x: np.roll(np.roll(x, 1, 0), -1, 1) * x + np.roll(x, -1, 0),
    "pad": lambda np, x: np.pad(x, [(0, 0), (1, 2)])[:, 1:-2] + np.pad(x, [(1, 1), (3, 0)])[1:-1, :-3],
    "join": lambda np, x: np.concatenate([x[:, -1:], x, x[:, :1]], 1) * 3,
    "sum": lambda np, x: (np.roll(x, 1, 1) * x).sum(0),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "int32"])
def test_stencils(name, dtype):
    xs = [np.arange(3 * n).reshape(3, n) % 5 - 2 for n in SIZES]
    xs = [x.astype(dtype) for x in xs]
    f = STENCILS[name]
    found = jax.jit(lambda xs: [f(jnp, x) for x in xs])(xs)
    for got, x in zip(found, xs, strict=True):
        np.testing.assert_array_equal(got, f(np, x).astype(dtype))


LENGTHS = [0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 39, 40, 41, 47, 48, 49, 64, 79, 80, 81, 130, 1000, 1007, 1024, 70_001]
OF_ANY_LENGTH = {  # functions of an array of one dimension or more, and NumPy's result
    "first places": lambda np, x: np.where((np.arange(x.shape[0]) < 40).reshape(-1, *[1] * (x.ndim - 1)), 2 * x, x - 1),
    "places behind": lambda np, x: np.where((np.arange(x.shape[0]) >= 41).reshape(-1, *[1] * (x.ndim - 1)), x, 1 - x),
    "between": lambda np, x: x * (abs(np.arange(x.shape[0]) - 43) < 4).reshape(-1, *[1] * (x.ndim - 1)),
    "border": lambda np, x: np.pad(2 * x, [(1, 3)] + [(0, 0)] * (x.ndim - 1)),
    "borders": lambda np, x: np.pad(2 * x, [(40, 1)] + [(2, 1)] * (x.ndim - 1)),
    "turned": lambda np, x: np.roll(x, 3, 0) - 2 * np.roll(x, -1, -1),
    "joined": lambda np, x: np.concatenate([x[:1], 3 * x, x[-1:]]) + 1,
    "backwards": lambda np, x: np.pad(x, [(0, 2)] + [(0, 0)] * (x.ndim - 1))[::-1] * 2,
}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", OF_ANY_LENGTH)
@pytest.mark.parametrize("k, rest", [*enumerate([(), (3,), (20,), (2, 33)])])
def test_one_function_for_all_lengths(name, k, rest):
    """A kernel that lengths share is cut at places that hang on none of them; some lie beyond what is there."""
    f = OF_ANY_LENGTH[name]
    compiled = jax.jit(lambda x: f(jnp, x))
    some = alternate(2, LENGTHS, k + [*OF_ANY_LENGTH].index(name))
    for n in [*some, *some[::-4]]:
        if n * np.prod(rest, dtype=int) > 3e5:
            continue
        x = (np.arange(n * np.prod(rest, dtype=int)) % 11 - 5).astype("f").reshape(n, *rest)
        np.testing.assert_array_equal(compiled(x), f(np, x))


@pytest.mark.parametrize("part", [(0, 1), (10, -10), (40, 48), (0, -1), (1, None), (-3, None)])
def test_gradients_of_slices_of_all_lengths(part):
    """Rows of three lie one behind the other: what is outside of the slice is not asked for each element."""
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(x[slice(*part)] ** 2)))
    for n in (1, 2, 3, 19, 20, 21, 48, 49, 100, 333, 5000, 200_000):
        x = (np.arange(3 * n) % 11 - 5).astype("f").reshape(n, 3)
        expected = np.zeros_like(x)
        expected[slice(*part)] = 2 * x[slice(*part)]
        np.testing.assert_array_equal(gradient(x), expected)


def test_rows_with_a_border_above_are_one_loop():
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(x[10:-10] ** 2)))
    text = gradient.lower(jnp.ones((5000, 3))).compile().as_text("nests")
    assert len(re.findall(r"for i\d", text)) == 1 and "i1<15000 " in text
    beside = jax.jit(lambda x: jnp.pad(x, 1)).lower(jnp.ones((300, 30))).compile().as_text("nests")
    assert len(re.findall(r"for i\d", beside)) == 2  # rows are longer than those that are read


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_lengths_share_what_is_cut():
    """Where seams lie is read from a table: another length is compiled no more."""
    shared = jax.jit(lambda x: x.at[1:-1].multiply(2.0))
    texts = [shared.lower(jnp.ones(n)).compile().as_text() for n in (5000, 10_000, 20_000)]
    names = {frozenset(re.findall(r"void @(f\w{24})", text)) for text in texts}
    assert len(names) == 1 and len(*names) > 0


def test_rows_between_borders_ask_nothing():
    """The loop over the rows of an image is cut at its border: inside of it, only two vectors of a row have masks."""
    made = jax.make_jaxpr(lambda x: jnp.pad(x, 1) * 2)(jnp.ones((98, 126)))
    written = text_of(made, machine=X86_64_V3)
    assert written.count("masked.load.v8f32.p0(") == 2
    assert not re.search(r"select i1 .*, ptr ", written)


def test_updates_in_place():
    f = lambda x: jax.lax.fori_loop(0, 4, lambda _, x: jnp.where(jnp.arange(x.shape[1]) < 5, 2 * x, x - 1), x)
    for n in SIZES:
        x = np.arange(3 * n, dtype="f").reshape(3, n)
        expected = x.copy()
        for _ in range(4):
            expected = np.where(np.arange(n) < 5, 2 * expected, expected - 1)
        np.testing.assert_array_equal(jax.jit(f)(x), expected)


def test_what_lies_between_has_no_masks():
    """Of a row of 64, two vectors have a seam; each reads two sides of it. The rest knows which it reads."""
    written = text_of(jax.make_jaxpr(lambda x: STENCILS["roll"](jnp, x))(jnp.ones((50, 64))), machine=X86_64_V3)
    masks = re.findall(r"masked\.load\.v8f32\.p0\([^<]*<8 x i1> (\S+)", written)
    assert masks and 0 < sum(m.startswith("%") for m in masks) <= 8


FOLDS = {
    "sum": lambda np, x: np.sum(x, 0),
    "sum of all": lambda np, x: np.sum(x),
    "largest": lambda np, x: np.max(x, 0),
    "largest of all": lambda np, x: np.max(x),
    "sums of rows": lambda np, x: np.sum(x, -1),
    "both extremes": lambda np, x: np.stack([np.max(x, 0), np.min(x, 0)]),
    "place of the least": lambda np, x: np.argmin(x, -1),
    "any": lambda np, x: np.any(x > 90, 0),
}
JOINED = [
    ((700, 300), (500, 300)), ((5, 70), (40, 70)), ((1000, 7), (24, 7)), ((40, 100), (40, 3)), ((60000,), (7,)),
    ((9, 60000), (3, 60000)), ((3, 33), (3, 300)),
]  # fmt: skip


@pytest.mark.parametrize("fold", FOLDS)
def test_a_fold_of_what_is_joined(fold):
    """Parts that are computed are folded where they lie: the bits are those of the whole array in memory."""
    rng = np.random.default_rng(3)
    some = alternate(4, itertools.product(JOINED, ("float32", "int8", "bfloat16")), [*FOLDS].index(fold))
    for (first, second), dtype in some:
        axis = 0 if second[1:] == first[1:] else 1
        a, b = (jnp.asarray(rng.integers(-50, 50, s)).astype(dtype) for s in (first, second))
        joined = jnp.concatenate([a + a, b], axis)
        found = jax.jit(lambda a, b: FOLDS[fold](jnp, jnp.concatenate([a + a, b], axis)))(a, b)  # noqa: B023
        np.testing.assert_array_equal(found, jax.jit(lambda x: FOLDS[fold](jnp, x))(joined))


@pytest.mark.parametrize("fold", FOLDS)
def test_a_fold_of_what_is_joined_is_one_kernel(fold):
    """Nothing is joined in memory, and nothing masked: parts meet between vectors."""
    f = lambda a, b: FOLDS[fold](jnp, jnp.concatenate([2 * a, b], 1))
    made = jax.make_jaxpr(f)(jnp.ones((400, 160)), jnp.ones((400, 96)))
    assert not re.search("call.*masked.load", text_of(made, machine=X86_64_V3))
    assert program_of(made).arena_bytes < 400 * 160


COUNTED = [*itertools.product((1, 20, 129, 400), ((0, 7), (5, 7), (200, 100), (-3, 0), (0, 127), (1, 17)))]


@pytest.mark.share(6)
@pytest.mark.parametrize("k, dtype", [*enumerate(["int8", "uint8", "int16", "int32", "uint32"])])
@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_numbers_that_a_program_counts(op, k, dtype):
    """They are compared as they wrap around, or do not."""
    compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
               "ne": np.not_equal}[op]  # fmt: skip
    for n, (moved, number) in alternate(5, COUNTED, k + len(op + dtype)):
        x = np.arange(n, dtype="f")

        def chosen(jnp, x):
            place = jnp.arange(n).astype(dtype) + jnp.asarray(moved).astype(dtype)  # noqa: B023
            bound = jnp.asarray(number).astype(dtype)  # noqa: B023
            ask = getattr(jnp, compare.__name__)
            return jnp.where(ask(place, bound), x, -1), jnp.where(ask(bound, 2 * place), x, jnp.sum(x))

        for found, expected in zip(jax.jit(lambda x: chosen(jnp, x))(x), chosen(np, x), strict=True):  # noqa: B023
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_triangle_is_cut_where_it_begins():
    """What a program counts and compares is a seam, too: beside it nothing is asked."""
    made = jax.make_jaxpr(lambda x: jnp.where(jnp.arange(500) - 3 > 0, x, 1))(jnp.ones(500))
    assert "affine" in "".join(nests(made)) and "convert" not in "".join(nests(made))


def test_what_is_no_integer_is_no_place():
    x = np.array([1.0, np.inf, np.nan, -3.5], "f")
    for op in (np.less, np.greater_equal):
        for number in (np.inf, -np.inf, np.nan, 2.5):
            found = jax.jit(lambda x: jnp.where(getattr(jnp, op.__name__)(x, number), x, 7))(x)  # noqa: B023
            np.testing.assert_array_equal(found, np.where(op(x, number), x, 7))
