"""When operands of a product are packed: by the tasks that read them; or once before the loops in which they do not
change, into memory that is given back after the product.
"""

import functools
import math

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.emit import tiles
from catena.compiler.graph.types import TYPES
from catena.compiler.interpret.program import run
from catena.compiler.machine import ICE_LAKE
from catena.compiler.native.compile import program_of, text_of
from catena.compiler.plan import contraction, sharing
from catena.compiler.plan.contraction import Axis, Contraction
from catena.compiler.plan.verify import verify
from catena.core.config import override

SIZE = 72
FETCH = "call void @llvm.prefetch"


def planned(f, *args):
    program = program_of(jax.make_jaxpr(f)(*args), machine=ICE_LAKE)
    verify(program)
    return program


def depths(program) -> dict[str, set[int]]:
    """How deep in loops the steps of a kind are; a launch that makes panels is called a copy."""
    found: dict[str, set[int]] = {}
    panels = {step.b for _, step in program.steps() if step.name == "contract" and step.plan.packed}
    for depth, step in program.steps():
        name = "pack" if panels & set(step.writes()) else step.name
        found.setdefault(name, set()).add(depth)
    return found


def whole(seed: int, *shape):
    return jnp.asarray(np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32))


def agrees(f, reference, *args):
    """Compiled and interpreted, to the bit: all numbers are whole."""
    expected = reference(*map(np.asarray, args))
    np.testing.assert_array_equal(jax.jit(f)(*args), expected)
    (interpreted,) = run(planned(f, *args), [np.asarray(x) for x in args])
    np.testing.assert_array_equal(interpreted, expected)


def test_weights_are_packed_before_the_loop():
    def f(w, x):
        step = lambda h, _: (jnp.sign((jnp.sign(h) * 2 + 1) @ w.T), None)
        return lax.scan(step, x, None, length=5)[0]

    def reference(w, x):
        for _ in range(5):
            x = np.sign((np.sign(x) * 2 + 1) @ w.T)
        return x

    w, x = whole(0, SIZE, SIZE), whole(1, 8, SIZE)
    found = depths(planned(f, w, x))
    assert found["pack"] == {0} and found["contract"] == {1}
    agrees(f, reference, w, x)


def test_before_all_loops_in_which_they_do_not_change():
    """What is packed stays where it is while every loop around runs, whatever those loops compute in between."""

    def f(w, x):
        def outer(i, x):
            v = w * (i % 3)
            y = lax.fori_loop(0, 3, lambda j, y: jnp.sign(y @ w.T + j) @ v.T, x * 2)
            return jnp.sign(jnp.flip(y, 0) - x) + jnp.sign(x @ w.T)

        return lax.fori_loop(0, 4, outer, x)

    def reference(w, x):
        for i in range(4):
            y, v = x * 2, w * np.float32(i % 3)
            for j in range(3):
                y = np.sign(y @ w.T + j) @ v.T
            x = np.sign(y[::-1] - x) + np.sign(x @ w.T)
        return x

    w, x = whole(2, SIZE, SIZE), whole(3, 8, SIZE)
    assert depths(planned(f, w, x))["pack"] == {0, 1}
    agrees(f, reference, w, x)


def test_before_loops_that_may_not_run():
    def f(w, x, n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sign(s[1] @ w.T)), (0, x))[1]

    def reference(w, x, n):
        for _ in range(int(n)):
            x = np.sign(x @ w.T)
        return x

    w, x = whole(4, SIZE, SIZE), whole(5, 8, SIZE)
    assert depths(planned(f, w, x, 3))["pack"] == {0}
    for n in (0, 3):
        agrees(f, reference, w, x, jnp.asarray(n))


def test_what_changes_in_a_loop_is_packed_there():
    f = lambda w, x: lax.fori_loop(0, 3, lambda i, w: x @ jnp.sign(w).T, w)
    w, x = whole(6, SIZE, SIZE), whole(7, SIZE, SIZE)
    assert depths(planned(f, w, x))["pack"] == {1}


def test_panels_are_given_back():
    """The weights of a layer are packed into the memory that those of the layer before had."""
    layers = [whole(i, SIZE, SIZE) for i in range(6)]

    def f(ws, x):
        for w in ws:
            x = jnp.sign(x @ w.T)
        return x

    one = layers[0].nbytes
    assert one < planned(f, layers, whole(7, 8, SIZE)).arena_bytes < 2 * one


def test_a_matrix_that_is_used_again_and_again_is_packed_for_fewer_rows():
    form = lambda rows: Contraction(TYPES["float32"], (), (Axis(rows, 512, 0, 512),), 512, (Axis(512, 1, 512, 0),))
    packed = lambda rows, times: contraction.plan(form(rows), ICE_LAKE, True, times).packed
    assert not packed(64, 1) and packed(64, 2) and packed(1, 1000)


def test_tasks_pack_what_they_read_often_enough():
    form = lambda rows, n: Contraction(TYPES["float32"], (), (Axis(rows, n, 0, n),), n, (Axis(n, 1, n, 0),))
    packs = lambda rows, n: contraction.plan(form(rows, n), ICE_LAKE, True).packs
    assert packs(200, 512) and packs(64, 512) and not packs(16, 512)
    assert packs(16, 1024) and packs(8, 1024) and not packs(7, 1024)
    assert not packs(200, 64)  # whose columns are one panel, as it lies
    apart = Contraction(TYPES["float32"], (), (Axis(200, 64, 0, 64),), 64, (Axis(512, 1, 256, 0),))
    assert contraction.plan(apart, ICE_LAKE, True).packs  # as the values of one of four heads


def test_lines_that_long_sums_are_added_to_are_asked_for():
    tile = tiles.Tile(TYPES["float32"], 16, 6, 4, 16, (), adds=True)
    assert tiles.text(tile).count("@llvm.prefetch") == 4  # of each row
    assert "@llvm.prefetch" not in tiles.text(tile._replace(adds=False))


def test_tiles_ask_for_the_rows_below_where_each_term_lies_in_another_line():
    """As of the gradient of weights; of rows whose terms lie side by side, processors guess what is next."""
    x, y = whole(0, 40, 48), whole(1, 40, 32)
    fetches = lambda f, *args: FETCH in text_of(jax.make_jaxpr(f)(*args), machine=ICE_LAKE)
    assert fetches(lambda x, y: x.T @ y, x, y)
    assert not fetches(lambda x, y: x @ y, x.T.copy(), y)
    assert not fetches(lambda x, y: x.T @ y, x[:, :8].copy(), y)  # two terms are in a line


def test_panels_of_the_left_operand_are_filled_some_after_the_other():
    """Though they are few groups: all of them at once, term after term, would not stay in the nearest cache."""
    x, y = whole(0, 1024, 256), whole(1, 1024, 256)
    with override("jax_check_bounds", False):
        program = planned(lambda x, y: x.T @ y, x, y)
    nest = next(step.nest for _, step in program.steps() if step.name == "launch")
    assert [nest.extents[d] for d in nest.order] == [256 // 6 // 8, 1024, 8, 6]
    agrees(lambda x, y: x.T @ y, lambda x, y: x.T @ y, x, y)


def test_what_tasks_pack_takes_no_memory_of_the_program():
    program = planned(jnp.matmul, whole(0, 200, 300), whole(1, 300, 200))
    assert [step.name for _, step in program.steps()] == ["contract"] and not program.arena_bytes


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [128, 200, 520])
@pytest.mark.parametrize("rows", [20, 70, 301])
def test_tasks_pack_whole_panels_and_the_columns_beyond(rows, n):
    """With terms in two parts, and what follows on the rows."""
    x, w, b = whole(rows, rows, 1100), whole(n, 1100, n), whole(1, n)
    agrees(lambda x, w, b: jnp.maximum(x @ w + b, 0), lambda x, w, b: np.maximum(x @ w + b, 0), x, w, b)


def test_a_row_has_the_same_bits_however_many_are_with_it():
    rng = np.random.default_rng(0)
    x, w = (jnp.asarray(rng.normal(size=shape).astype(np.float32)) for shape in ((301, 1100), (1100, 1030)))
    product = np.asarray(jax.jit(jnp.matmul)(x, w))
    for rows in (2, 9, 17, 40, 100):
        np.testing.assert_array_equal(jax.jit(jnp.matmul)(x[:rows], w), product[:rows])


@pytest.mark.parametrize(
    "shape, columns",
    [((300, 200), 1300), ((1030, 130), 1300), ((64, 1024), 1300), ((4, 100, 300), 1300), ((1500, 1024), 97)],
)
def test_a_left_operand_that_is_read_across_is_copied(shape, columns):
    """Of a product with its transpose, as the gradient of weights is. The bits are those of a copy that is not."""
    rng = np.random.default_rng(1)
    x, g = (jnp.asarray(rng.normal(size=(*shape[:-1], n)).astype(np.float32)) for n in (shape[-1], columns))
    terms = tuple(range(len(shape) - 1))
    f = jax.jit(lambda x, g: jnp.tensordot(x, g, (terms, terms)))
    (step,) = (step for _, step in planned(f, x, g).steps() if step.name == "contract")
    assert step.plan.in_tiles
    lies = jnp.asarray(np.ascontiguousarray(np.asarray(x).reshape(-1, shape[-1]).T))
    np.testing.assert_array_equal(f(x, g), jax.jit(jnp.matmul)(lies, g.reshape(-1, columns)))
    (interpreted,) = run(planned(f, x, g), [np.asarray(x), np.asarray(g)])
    np.testing.assert_allclose(interpreted, f(x, g), rtol=1e-4, atol=1e-4)


def is_copied(terms, rows, columns):
    """Whether a left operand is that is read across."""
    axes = (Axis(rows, 1, 0, columns),), columns, (Axis(terms, rows, columns, 0),)
    return contraction.plan(Contraction(TYPES["float32"], (), *axes), ICE_LAKE, True, 1, True).in_tiles


def test_short_lines_that_are_read_across_are_copied_for_more_columns():
    """Those of terms side by side come from the second cache soon enough, for the two panels of so few columns."""
    assert not is_copied(1024, 128, 128) and is_copied(1024, 128, 256)
    assert not is_copied(1024, 256, 128) and is_copied(1024, 257, 128)


def test_lines_of_a_left_operand_in_few_pages_are_read_where_they_lie():
    """They come while tiles multiply, unless there are many, for many panels, or all in a few sets of a cache."""
    assert not is_copied(512, 512, 256) and is_copied(512, 512, 257) and is_copied(800, 512, 128)
    assert not is_copied(256, 1000, 256) and not is_copied(256, 1024, 128) and is_copied(256, 1024, 129)
    assert is_copied(16, 1000, 600)  # starting a tile of few terms takes longer than these


def test_few_columns_beyond_a_panel_have_a_large_left_operand_copied():
    """Its lines would come from memory for each panel, each several times, as a tile takes a part of them."""
    assert is_copied(4000, 1000, 96) and not is_copied(4000, 1000, 64) and not is_copied(1000, 1000, 96)
    assert is_copied(1024, 1024, 96)  # rows of whole pages, which meet in a few sets
    assert not is_copied(20000, 64, 127)  # short rows, each of a few lines


@pytest.mark.parametrize("spec", ["ted,eth->edh", "ted,teh->edh", "abted,abteh->abedh"])
def test_left_operands_of_a_batch_are_copied_where_their_terms_lie_far_apart(spec):
    """As in gradients of experts' weights. The bits are those of the members by themselves."""
    sizes = {"a": 2, "b": 1, "t": 200, "e": 3, "d": 259, "h": 530}
    x, g = (
        jnp.asarray(np.random.default_rng(n).normal(size=[sizes[c] for c in letters]).astype(np.float32))
        for n, letters in enumerate(spec.split("->")[0].split(","))
    )
    f = jax.jit(lambda x, g: jnp.einsum(spec, x, g))
    (step,) = (step for _, step in planned(f, x, g).steps() if step.name == "contract")
    assert step.plan.in_tiles and step.plan.contraction.batch
    (to_x, to_g), lead = spec.split("->")[0].split(","), spec.split("->")[1][:-2]
    members_of = lambda letters, x: np.einsum(f"{letters}->{lead}t{letters[-1]}", x).reshape(-1, 200, x.shape[-1])
    pairs = zip(members_of(to_x, np.asarray(x)), members_of(to_g, np.asarray(g)))
    alone = [jax.jit(jnp.matmul)(jnp.asarray(np.ascontiguousarray(a.T)), jnp.asarray(b)) for a, b in pairs]
    np.testing.assert_array_equal(f(x, g), np.asarray(alone).reshape(f(x, g).shape))
    (interpreted,) = run(planned(f, x, g), [np.asarray(x), np.asarray(g)])
    np.testing.assert_allclose(interpreted, f(x, g), rtol=1e-4, atol=1e-4)


def test_a_left_operand_is_copied_before_the_loop():
    def reference(w, x):
        for _ in range(3):
            x = np.sign(w.T @ x)
        return x

    f = lambda w, x: lax.fori_loop(0, 3, lambda i, x: jnp.sign(w.T @ x), x)
    w, x = whole(2, 150, 150), whole(3, 150, 140)
    (panels,) = {step.a for _, step in planned(f, w, x).steps() if step.name == "contract"}
    steps = planned(f, w, x).steps()
    assert {depth for depth, step in steps if step.name == "launch" and str(panels) in map(str, step.writes())} == {0}
    agrees(f, reference, w, x)


def test_a_vector_meets_few_lines_of_a_matrix_at_a_time():
    """All of which may belong into one set of a cache: of a matrix that does not stay in the second cache, eight. The sums
    do not hang on where the matrix lies.
    """
    for columns, most in ((1024, 32), (4096, 8)):
        form = Contraction(TYPES["float32"], (), (), columns, (Axis(256, 1, columns, 0),))
        (part,) = contraction.plan(form, ICE_LAKE, True).outside
        assert part.turns * part.steps == 256 and part.steps <= most
    v, m = whole(8, 300), whole(9, 300, 128)
    np.testing.assert_array_equal(jax.jit(jnp.matmul)(v, m), np.asarray(v) @ np.asarray(m))


@pytest.mark.parametrize("columns", [4096, 5000, 20000])
def test_a_vector_is_shared_out_in_pages_of_a_matrix(columns):
    form = Contraction(TYPES["float32"], (), (), columns, (Axis(1000, 1, columns, 0),))
    p = contraction.plan(form, ICE_LAKE, True)
    t = contraction.tasks(p, ICE_LAKE, False, False)
    assert t.columns * p.columns * 4 >= 4096 and 4 <= t.column_blocks <= 8


def test_transposed_panels_follow_the_lines_that_they_read():
    """Squares are taken along a row of the operand, however few panels there are."""
    x, w = whole(10, 4200, 512), whole(11, 128, 512)
    program = planned(lambda x, w: x @ w.T, x, w)
    (pack,) = (step for _, step in program.steps() if step.name == "launch")
    assert pack.nest.tile is not None and pack.nest.order[-1] == pack.nest.tile


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("m, k, n", [(256, 512, 512), (100, 303, 130), (300, 1100, 161), (1700, 250, 200)])
def test_tasks_turn_panels_of_a_transposed_operand(m, k, n, dtype):
    """With terms in two parts, and columns beyond the panels: the bits are those of an operand that lies the other way."""
    rng = np.random.default_rng(2)
    x, w = ((rng.normal(size=shape) * (9 if dtype == np.int32 else 1)).astype(dtype) for shape in ((m, k), (n, k)))
    with jax.enable_x64(dtype == np.float64):
        f = jax.jit(lambda x, w: x @ w.T)
        program = planned(f, jnp.asarray(x), jnp.asarray(w))
        (step,) = (step for _, step in program.steps())
        assert step.plan.packs and step.plan.apart == k and step.plan.contraction.type.name == np.dtype(dtype).name
        np.testing.assert_array_equal(f(x, w), jax.jit(jnp.matmul)(x, np.ascontiguousarray(w.T)))
        (interpreted,) = run(program, [x, w])
        np.testing.assert_allclose(interpreted, f(x, w), rtol=1e-4, atol=1e-4)


def test_tasks_turn_panels_where_a_nest_follows():
    """Layers whose weights lie as their users say, `x @ w.T + b`; of many rows, each task of which would turn them all,
    a step before does.
    """
    f = lambda x, w, b: jnp.tanh(x @ w.T + b)
    made = lambda rows: planned(f, whole(1, rows, 100), whole(2, 256, 100), whole(3, 256)).steps()
    assert [step.name for _, step in made(200)] == ["contract", "launch"]
    assert [step.name for _, step in made(4200)] == ["launch", "contract"]
    x, w, b = whole(4, 200, 100), whole(5, 200, 100), whole(6, 200)
    agrees(lambda x, w, b: jnp.maximum(x @ w.T + b, 0), lambda x, w, b: np.maximum(x @ w.T + b, 0), x, w, b)


def test_panels_are_turned_by_few_tasks():
    """By two, each thread would transpose all of them for its rows."""
    terms, columns = 512, 1024
    form = Contraction(TYPES["float32"], (), (Axis(500, terms, 0, columns),), columns, (Axis(terms, 1, 1, 0),))
    t = contraction.tasks(contraction.plan(form, ICE_LAKE, terms), ICE_LAKE, False, False)
    assert t.row_blocks == 1 and t.column_blocks > 1


def test_whole_lines_of_a_left_operand_are_taken_apart_at_once():
    """Several panels are filled of each term's line, not one of all lines, which would be read again for the next."""
    x, g = whole(12, 200, 512), whole(13, 200, 700)
    panels, *_ = (step.nest for _, step in planned(lambda x, g: x.T @ g, x, g).steps() if step.name == "launch")
    assert [panels.extents[d] for d in panels.order][1:] == [200, 8, 6]
    agrees(lambda x, g: x.T @ g, lambda x, g: x.T @ g, x, g)


def test_threads_share_what_is_only_moved_sooner_than_what_is_computed():
    """Moving waits for memory: it takes longer than is counted."""
    chunk = lambda f, *args: next(s.chunk for _, s in planned(f, *args).steps() if s.name == "launch")
    x, w = whole(14, 4200, 512), whole(15, 256, 512)
    assert chunk(lambda x, w: x @ w.T, x, w) is not None
    assert chunk(lambda w: jnp.abs(w) + 1, w) is None
    small = whole(16, 256, 256)
    sums = lambda n, w: w if n == 0 else jnp.cumsum(sums(n - 1, w), 0)
    assert chunk(lambda w: w.T, small) is None
    assert chunk(lambda w: (w.T, sums(12, w)), small) is not None  # threads are awake


def test_threads_share_less_work_in_programs_of_many_steps():
    """They are likely awake."""
    (step,) = (step for _, step in planned(lambda w: jnp.abs(w) + 1, whole(18, 320, 704)).steps())
    chunk = lambda awake: sharing.chunk(ICE_LAKE.sharing, step.nest, False, awake=awake)
    assert chunk(False) is None and chunk(True) is not None


def test_threads_share_less_work_beside_what_they_share_for_sure():
    """It finds them awake: an outer product for each example, beside a large result."""
    f = lambda a, b, x: (a[:, :, None] * b[:, None, :], jnp.abs(x) + 1)
    chunks = lambda n: [s.chunk for _, s in planned(f, whole(18, 128, 128), whole(19, 128, 10), whole(20, n)).steps()]
    assert None not in chunks(1 << 20)
    assert chunks(1 << 16) == [None, None]


@pytest.mark.parametrize("between, steps", [(64, ["contract"]), (1 << 11, ["contract", "launch"])])
def test_what_follows_a_small_product_is_shared_where_it_is_more(between, steps):
    """Such as a gradient that is spread over pictures, which one thread would do with the rows of the product."""
    g, w, x = whole(18, 8, 10), whole(19, 10, 32), whole(20, 8, between, 32)
    f = lambda g, w, x: (g @ w)[:, None] * x
    found = [step for _, step in planned(f, g, w, x).steps()]
    assert [step.name for step in found] == steps
    assert len(found) == 1 or found[1].chunk is not None
    agrees(f, f, g, w, x)


def test_threads_share_smaller_products_in_programs_of_many_steps():
    """The scores of a classifier, of many features: most of what is multiplied lies in other cores' caches."""

    def tasks(sums: int, rows: int, terms: int, columns: int) -> int:
        def f(x, w):
            y = x @ w
            for _ in range(sums):
                y = jnp.cumsum(y, 0)
            return y

        steps = planned(f, whole(19, rows, terms), whole(20, terms, columns)).steps()
        return next(s.tasks.total for _, s in steps if s.name == "contract")

    assert tasks(12, 256, 512, 12) > 1 == tasks(1, 256, 512, 12) == tasks(12, 63, 129, 128)


def layers(x, *weights):
    for w in weights:
        x = jnp.sign(x @ w)
    return x


@pytest.mark.parametrize(
    "count, rows, columns, blocks", [(12, 64, 128, 2), (12, 100, 200, 2), (12, 56, 128, 1), (1, 128, 128, 1)]
)
def test_tasks_have_halves_of_the_rows_in_programs_of_many_steps(count, rows, columns, blocks):
    """They lie in the caches of two cores: tasks of columns would each read half of what the other core has written."""
    x, ws = whole(21, rows, columns), [whole(22 + i, columns, columns) for i in range(count)]
    steps = [step for _, step in planned(layers, x, *ws).steps() if step.name == "contract"]
    assert [step.tasks.row_blocks for step in steps] == [blocks] * count
    assert blocks == 1 or all(step.after is not None for step in steps)
    agrees(layers, lambda x, *ws: functools.reduce(lambda x, w: np.sign(x @ w), ws, x), x, *ws)


def test_tasks_have_halves_of_the_rows_in_loops():
    """Over layers, whose weights each iteration reads for the first time."""
    f = lambda x, ws: lax.scan(lambda x, w: (jnp.sign(x @ w), None), x, ws)[0]
    x, ws = whole(21, 64, 128), whole(22, 12, 128, 128)
    (step,) = (step for _, step in planned(f, x, ws).steps() if step.name == "contract")
    assert step.tasks.row_blocks == step.tasks.total == 2 and step.after is not None
    agrees(f, lambda x, ws: functools.reduce(lambda x, w: np.sign(x @ w), ws, x), x, ws)


def test_large_products_are_cut_in_columns_too():
    """Halves that lie near take little of their time; and there may be more threads than two."""
    form = lambda m: Contraction(TYPES["float32"], (), (Axis(m, 512, 0, 512),), 512, (Axis(512, 1, 512, 0),))
    plans = [contraction.plan(form(m), ICE_LAKE, 1) for m in (72, 128, 2048)]
    assert [contraction.has_halves(p, ICE_LAKE) for p in plans] == [True, False, False]
    assert not any(contraction.has_rows_enough(p, ICE_LAKE, True, True) for p in plans)
    assert all(contraction.tasks(p, ICE_LAKE, True, False, True).column_blocks > 1 for p in plans)


@pytest.mark.parametrize("columns, shared", [(400, True), (397, False)])
def test_transpositions_whose_rows_share_lines_are_left_to_one_thread(columns, shared):
    """Each line that two threads write is taken from one to the other."""
    program = planned(jnp.transpose, whole(18, columns, 400))
    (step,) = (step for _, step in program.steps())
    assert (step.chunk is not None) == shared
    x = whole(19, columns, 400)
    np.testing.assert_array_equal(jax.jit(jnp.transpose)(x), np.asarray(x).T)


@pytest.mark.parametrize("rows, packed", [(7, False), (200, True)])
def test_few_rows_read_each_group_of_columns_where_it_lies(rows, packed):
    """Weights of experts, whose columns are the last dimension of each, are not packed to be one matrix."""
    f = lambda x, w: jnp.einsum("nd,edh->neh", x, w)
    x, w = whole(0, rows, 500), whole(1, 4, 500, 40)
    (product,) = (step for _, step in planned(f, x, w).steps() if step.name == "contract")
    assert (
        product.plan.packed == packed and math.prod(a.extent for a in product.plan.contraction.batch) == 4 - 3 * packed
    )
    agrees(f, lambda x, w: np.einsum("nd,edh->neh", x, w), x, w)
    agrees(lambda x, w: f(x, w)[:, 1:], lambda x, w: np.einsum("nd,edh->neh", x, w)[:, 1:], x, w)
    agrees(lambda w, x: f(x[0], w), lambda w, x: np.einsum("nd,edh->neh", x[0], w), w, x[None])


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("members", [1, 3])
def test_what_follows_groups_of_columns_is_done_on_whole_rows(rows, members):
    """A row of the result is more than a group: with one row, the groups' rows follow each other as rows do."""
    f = lambda x, w: jnp.abs(jnp.einsum("bnd,bedh->bneh", x, w)) - 1
    x, w = whole(0, members, rows, 300), whole(1, members, 4, 300, 64)
    agrees(f, lambda x, w: np.abs(np.einsum("bnd,bedh->bneh", x, w)) - 1, x, w)
    (product,) = (step for _, step in planned(f, x, w).steps() if step.name == "contract")
    assert len(product.plan.contraction.batch) == 1 + (members > 1) and product.after is None


@pytest.mark.parametrize("rows, terms, columns", [(67, 257, 130), (96, 1030, 200), (200, 1027, 333)])
def test_rows_of_the_tile_that_copies_a_panel_are_as_those_after_it(rows, terms, columns):
    """The first rows of a task are multiplied while what they read is copied, two terms at a time or one: whole numbers
    are exact, and rows that are equal have equal bits wherever they are.
    """
    x, w = whole(8, rows, terms), whole(9, terms, columns)
    assert all(s.plan.packs for _, s in planned(jnp.matmul, x, w).steps() if s.name == "contract")
    agrees(jnp.matmul, np.matmul, x, w)
    rng = np.random.default_rng(10)
    row, w = rng.normal(size=terms).astype("float32"), rng.normal(size=(terms, columns)).astype("float32")
    found = np.asarray(jax.jit(jnp.matmul)(np.broadcast_to(row, (rows, terms)), w))
    assert (found == found[0]).all()
    np.testing.assert_allclose(found[0], row.astype("float64") @ w, rtol=0, atol=1e-3)


def test_the_first_tile_of_a_panel_writes_it_for_those_after_it():
    """Every vector of it once, whole; and it asks for lines before it comes to them."""
    tile = tiles.Tile(TYPES["float32"], 16, 6, 4, 16, (), adds=False, keeps=True)
    text = tiles.text(tile)
    assert text.count("ptr noalias %to") == 1 and text.count("store <16 x float>") == 4 + 6 * 4
    assert text.count("@llvm.prefetch") == 4


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("columns", [200, 196, 177, 270])
def test_columns_beyond_panels_are_copied_before_the_first_tile_of_theirs(columns, dtype):
    """That writes them for the tiles after it, as the first tile of a panel does."""
    x, w = (v.astype(dtype) for v in (whole(11, 120, 257), whole(12, 257, columns)))
    steps = [s for _, s in planned(jnp.matmul, x, w).steps() if s.name == "contract"]
    assert all(s.plan.packs for s in steps)
    agrees(jnp.matmul, np.matmul, x, w)


def test_what_copies_columns_beyond_panels_calls_their_tile():
    """It has the parameters of a tile that copies, and no sums of its own."""
    text = tiles.packing_first(tiles.Panel(TYPES["float32"], 16, 2, tiles.ARGUMENT, TYPES["float32"]), True)
    keeps = tiles.Tile(TYPES["float32"], 16, 6, 2, tiles.ARGUMENT, (), adds=False, watched=True, keeps=True)
    assert text.split(" nounwind")[0] == tiles.text(keeps).split(" nounwind")[0]
    assert text.count("call void %tile(") == 1 and "fmuladd" not in text
    assert text.count("\n") < tiles.text(keeps).count("\n") / 3


def test_even_numbers_of_terms_are_done_two_at_a_time():
    """What counts takes the multiplications' place; sums are of the same order."""
    text = lambda **given: tiles.text(tiles.Tile(TYPES["float32"], 16, 6, 4, 16, (), adds=False, **given))
    assert text(even=True).count("@llvm.fmuladd") == 48 and text().count("@llvm.fmuladd") == 24
    even = lambda terms: not contraction.plan(matrices(200, terms, 512), ICE_LAKE, True).odd
    assert even(256) and not even(257) and even(1024) and even(2048) and not even(1025)


def matrices(rows: int, terms: int, columns: int) -> Contraction:
    return Contraction(TYPES["float32"], (), (Axis(rows, terms, 0, columns),), columns, (Axis(terms, 1, columns, 0),))
