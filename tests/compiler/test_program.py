"""Programs: planned before they are written, printed, checked, and run with a clock around every step."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit.program import RULES as EMITTED
from catena.compiler.machine import AARCH64, SAPPHIRE_RAPIDS, X86_64_V3, X86_64_V4
from catena.compiler.native import compile as compiler
from catena.compiler.native import profile as profiles
from catena.compiler.plan.passes import PASSES, plan
from catena.compiler.plan.program import ARENA, Step
from catena.compiler.plan.steps import Copy, Launch, StackLength
from catena.compiler.plan.verify import verify
from catena.core.config import config
from catena.core.errors import CompileError
from golden_programs import CASES


def planned(name, machine=X86_64_V3):
    case = CASES[name]
    with jax.enable_x64(any("64" in str(t.dtype) for t in case.arguments)):
        return compiler.program_of(jax.make_jaxpr(case.function)(*case.arguments), case.donated, machine)


@pytest.mark.parametrize("name", CASES)
def test_every_program_is_right_and_prints(name):
    for machine in (AARCH64, X86_64_V3):
        program = planned(name, machine)
        verify(program)
        lines = str(program).splitlines()
        assert len(lines) == 1 + 2 * len(list(program.steps()))


def test_every_kind_of_step_can_be_written():
    kinds = {kind for kind in _subclasses(Step) if kind.name}
    assert set(EMITTED) == kinds
    large = compiler.program_of(jax.make_jaxpr(jnp.linalg.cholesky)(jnp.ones((100, 100))))  # small ones need no LAPACK
    long = jax.make_jaxpr(jnp.matmul)(*[jnp.ones(shape, jnp.bfloat16) for shape in ((64, 9000), (9000, 64))])
    packed = compiler.program_of(long, machine=SAPPHIRE_RAPIDS)  # tasks pack panels of fewer terms themselves
    with jax.default_matmul_precision("BF16_BF16_F32_X6"):
        steps = jax.make_jaxpr(lambda h, w: jax.lax.fori_loop(0, 3, lambda _, h: h @ w, h))(*[jnp.ones((300, 300))] * 2)
    parts = compiler.program_of(steps, machine=SAPPHIRE_RAPIDS)
    others = (large, packed, parts, planned("dot_bf16", SAPPHIRE_RAPIDS))
    used = {type(step) for program in (*others, *map(planned, CASES)) for _, step in program.steps()}
    assert kinds - used == {StackLength}  # the golden programs have all others; this one joins stacks of two branches


def _subclasses(kind):
    return {kind, *(inner for each in kind.__subclasses__() for inner in _subclasses(each))}


def softmax_of_product(x, w):
    y = x @ w
    e = jnp.exp(y - jnp.max(y, axis=1, keepdims=True))
    return e / jnp.sum(e, axis=1, keepdims=True)


def program():
    f = lambda x, w: softmax_of_product(softmax_of_product(x, w), w.T)  # two products, one of which reads the other
    return compiler.program_of(jax.make_jaxpr(f)(jnp.ones((128, 300)), jnp.ones((300, 512))))


def test_what_is_wrong_is_found():
    def drop(steps):
        del steps[0]

    def overlap(steps):
        buffers = [b for step in steps for b in (*step.reads(), *step.writes()) if b.kind == ARENA]
        first, second = list(dict.fromkeys(buffers))[:2]
        second.place = first.place

    def outside(steps):
        next(b for step in steps for b in step.writes() if b.kind == ARENA).place = 1 << 40

    def copies_too_much(steps):
        steps.append(Copy(program().outputs[0], program().inputs[0], 1 << 40))

    wrong = {
        drop: "which nothing has written",
        overlap: "overlap",
        outside: "beyond",
        copies_too_much: "copies more than there is",
    }
    for harm, message in wrong.items():
        p = program()
        verify(p)
        harm(p.body.steps)
        with pytest.raises(CompileError, match=message):
            verify(p)


def test_a_launch_that_writes_what_it_reads_says_so():
    closed = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) + 1, x))(jnp.ones(1000))
    p = compiler.program_of(closed)
    (launch,) = [step for _, step in p.steps() if isinstance(step, Launch) and step.reads() == step.writes()]
    launch.in_place = False
    with pytest.raises(CompileError, match="is not said to be in place"):
        verify(p)


def test_the_passes_are_shown_one_by_one(tmp_path):
    seen = []
    region = compiler.lower(jax.make_jaxpr(softmax_of_product)(jnp.ones((128, 300)), jnp.ones((300, 512))))
    plan(region, AARCH64, shown=lambda name, made: seen.append((name, str(made))))
    assert [name for name, _ in seen] == [*(name for name, _ in PASSES), "place"]
    texts = dict(seen)
    assert texts["fuse"].count("kernel over") == 3 and "3 kernels" in texts["stitch"] + texts["epilogues"]
    before = config.jax_dump_ir_to
    config.update("jax_dump_ir_to", str(tmp_path))
    try:
        jax.jit(lambda x: jnp.sort(jnp.cos(x)))(np.arange(77.0, dtype=np.float32))
    finally:
        config.update("jax_dump_ir_to", before)
    suffixes = {"." + path.name.split(".", 1)[1] for path in tmp_path.iterdir()}
    assert {".graph", ".fuse", ".stitch", ".epilogues", ".place", ".nests", ".ll", ".opt.ll", ".s"} <= suffixes


def test_a_profile_has_every_step_and_how_often_it_ran():
    def f(x, w):
        h = jax.lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), jnp.zeros(40), x)[0]
        return jax.lax.cond(h[0] > 5, jnp.sin, jnp.sort, h)

    args = jnp.ones((7, 40)), jnp.eye(40)
    profile = jax.jit(f).profile(*args)
    runs = {row.what.split()[0]: row.runs for row in profile.rows if row.depth == 0}
    assert runs["scan"] == 1 and runs["branch"] == 1
    inside = [row for row in profile.rows if row.depth == 1]
    assert {row.runs for row in inside} == {0, 1, 7}  # the branch not taken, the one taken, the loop's body
    assert all(row.seconds >= 0 and row.bytes > 0 for row in inside)
    assert any("test_program.py" in row.places for row in profile.rows)
    shown = repr(profile)
    assert shown.splitlines()[0].startswith("f: ") and "scan 7 iterations" in shown
    assert len(shown.splitlines()) == 2 + len(profile.rows)
    np.testing.assert_array_equal(jax.jit(f)(*args), f(*args))  # what ran with clocks is nobody else's program


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
def test_products_are_held_against_those_of_their_dtype(dtype):
    with jax.enable_x64():
        x = jnp.ones((256, 256), dtype)
        rows = [row for row in jax.jit(lambda a, b: a @ b).profile(x, x).rows if row.flops >= 2 * 256**3]
        (row,) = rows
    multiplied = {"contract": "float32", "amx": "bfloat16"}[row.what.split()[0]] if dtype == "bfloat16" else dtype
    assert row.most_flops_per_second == profiles.products_per_second(multiplied)


def test_one_thread_plans_no_tasks():
    closed = jax.make_jaxpr(lambda x: jnp.exp(x))(jnp.ones((1 << 20,)))
    for threads in (False, True):
        p = compiler.program_of(closed, machine=AARCH64._replace(threads=threads))
        (launch,) = p.body.steps
        assert (launch.chunk is not None) == threads


@pytest.mark.parametrize(
    "f, loops",
    {
        "all of one loop": (lambda x: jnp.sin(x) + 1, "launch 1680: sin"),
        "the largest of all": (lambda x: jnp.max(x), "launch 1680*: max"),
        "a sum of all, whose order tells rows of 64 and more": (lambda x: jnp.sum(x), "launch 5* x 336*: sum"),
        "rows of the last": (lambda x: jnp.sum(x, 3), "launch 210 x 8*: sum"),
        "one in the middle": (lambda x: jnp.sum(x, 1), "launch 5 x 56 x 6*: sum"),
        "broadcast at both ends": (lambda x: x + x[:1, :, :, :1], "launch 5 x 42 x 8: add"),
    }.values(),
)
def test_neighbouring_dimensions_are_one_loop(f, loops):
    x = np.arange(1680, dtype=np.float32).reshape(5, 6, 7, 8)
    made = jax.make_jaxpr(f)(x)
    assert loops in str(compiler.program_of(made, machine=X86_64_V3))
    np.testing.assert_allclose(jax.jit(f)(x), f(x), rtol=1e-6)


@pytest.mark.parametrize("columns, along_rows", [(10, False), (32, False), (100, True)])
def test_places_in_short_rows_are_found_for_many_rows_at_once(columns, along_rows):
    x = np.random.default_rng(0).integers(0, 5, (400, columns)).astype(np.float32)
    x[7, 4] = np.nan
    f = lambda x, b: (jnp.argmax(x + b, 1), jnp.argmin(x, 1))
    made = jax.make_jaxpr(f)(x, np.zeros(columns, np.float32))
    steps = [s for _, s in compiler.program_of(made, machine=X86_64_V4).steps() if isinstance(s, Launch)]
    folding = [s.nest for s in steps if s.nest.folds]
    assert [n.vector in n.reduced for n in folding] == [along_rows] * len(folding) != []
    for found, expected in zip(jax.jit(f)(x, np.zeros(columns, np.float32)), (np.argmax(x, 1), np.argmin(x, 1))):
        np.testing.assert_array_equal(found, expected)


BEGINNINGS = {
    "rows added to zeros": (lambda x, i: jnp.zeros((500, 8)).at[i].add(x[:, :8]), 0),
    "a row of what is computed": (lambda x, i: jnp.sin(x).at[i[0]].set(1.0), 0),
    "one update after the other": (lambda x, i: (2 * x).at[i].add(1.0).at[i[0]].set(0.0), 0),
    "a large carry": (lambda x, i: jax.lax.fori_loop(0, 3, lambda k, y: y.at[k].add(1.0), 3 * x), 0),
    "an argument, which stays": (lambda x, i: x.at[i].add(1.0), 1),
    "two results": (lambda x, i: (lambda y: (y, y.at[i].add(1.0)))(2 * x), 1),
    "what is read as it changes": (lambda x, i: (lambda y: y.at[i].add(y[:300]))(jnp.sin(x)), 0),
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_what_an_update_makes_a_result_of_is_computed_where_that_goes(name):
    f, copies = BEGINNINGS[name]
    x, i = jax.random.normal(jax.random.key(0), (500, 16)), jax.random.randint(jax.random.key(1), (300,), 0, 500)
    if name == "rows added to zeros":
        x = x[:300]
    program = compiler.program_of(jax.make_jaxpr(f)(x, i), ())
    verify(program)
    large = [step for _, step in program.steps() if isinstance(step, Copy) and step.writes()[0].bytes > 1000]
    assert len(large) == copies
    for ours, eager in zip(jax.tree.leaves(jax.jit(f)(x, i)), jax.tree.leaves(f(x, i)), strict=True):
        np.testing.assert_allclose(ours, eager, rtol=1e-6, atol=1e-5)


PLACE_BY_PLACE = {  # and how many bytes of temporaries are large
    "rows added to zeros": (lambda x, i: jnp.tanh(jnp.zeros_like(x).at[i].add(x[:2000])) + x, 0),
    "a running sum": (lambda x, i: jnp.cumsum(x) * 0.5 - x, 0),
    "a loop, in turns with other memory": (
        lambda x, i: jax.lax.fori_loop(0, 2, lambda k, y: jnp.cumsum(y * 0.5), x) * x, 1),
    "two results": (lambda x, i: (lambda y: (y - x, y * x))(jnp.cumsum(x)), 0),
    "two of which one dies": (lambda x, i: (lambda y: (y, y * x))(jnp.cumsum(x)), 0),
    "read at other places": (lambda x, i: (lambda y: y + y[::-1])(jnp.cumsum(x)), 1),
    "another dtype": (lambda x, i: jnp.cumsum(x) > 0, 1),
    "a sort, which changes its keys": (lambda x, i: jnp.sort(x) * 2, 2),  # and what it sorts with
    "small": (lambda x, i: jnp.cumsum(x[:2000]) * 0.5 - x[:2000], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACE_BY_PLACE)
def test_what_a_result_is_made_of_place_by_place_is_computed_there(name):
    f, large = PLACE_BY_PLACE[name]
    x, i = jax.random.normal(jax.random.key(0), (100_000,)), jax.random.randint(jax.random.key(1), (2000,), 0, 100_000)
    program = compiler.program_of(jax.make_jaxpr(f)(x, i), ())
    verify(program)
    assert program.arena_bytes // x.nbytes == large
    for ours, eager in zip(jax.tree.leaves(jax.jit(f)(x, i)), jax.tree.leaves(f(x, i)), strict=True):
        np.testing.assert_allclose(ours, eager, rtol=1e-6, atol=1e-5)


def test_memory_of_an_argument_is_taken_when_nobody_reads_it_any_more():
    def f(x, i):
        y = 2 * x[::-1]  # may not be made over x, which is read after it is begun
        return y.at[i].add(1.0)

    x, i = jnp.arange(800.0).reshape(100, 8), jnp.arange(3)
    program = compiler.program_of(jax.make_jaxpr(f)(x, i), (True, False))
    verify(program)
    np.testing.assert_array_equal(jax.jit(f, donate_argnums=0)(jnp.array(x), i), np.asarray(f(x, i)))


def test_rows_that_are_added_are_computed_where_they_go():
    def f(table, x, i):
        return jnp.zeros((1000, 32)).at[i].add(table[i] * x[:, None])

    args = jnp.ones((1000, 32)), jnp.arange(5000.0), jnp.arange(5000) % 997
    written = [b.bytes for _, step in compiler.program_of(jax.make_jaxpr(f)(*args)).steps() for b in step.writes()]
    assert max(written) == 1000 * 32 * 4  # not 5000 rows
    np.testing.assert_allclose(jax.jit(f)(*args), f(*args), rtol=1e-6)
