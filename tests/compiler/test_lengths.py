"""Programs that are had from one at another length are those that would be compiled: the same code, the same table."""

import operator
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.graph import replayed, symbols, thresholds
from catena.compiler.native import compile as compiler
from catena.compiler.native import host, lengths, programs
from catena.compiler.plan import careful
from catena.core.context import context
from catena.scipy import linalg
from length_programs import PROGRAMS, values
from shares import alternate

pytestmark = pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
LIKE_COMPILED = ("numbers", "code_name", "imports", "out_specs", "arena_bytes", "flops", "bytes", "reused", "can_fail")


FREQUENCIES = [lambda x: x * jnp.fft.fftfreq(x.shape[0]), lambda x: x[: x.shape[0] // 2 + 1] * jnp.fft.rfftfreq(len(x))]
DIAGONALS = [lambda x: jnp.einsum("ii->i", x[:, None] * x), lambda x: jnp.einsum("iij->j", x[:, None, None] * x[:4])]


@pytest.fixture
def family(monkeypatch):
    """The families, none at first, and no disk; each plan serves on its side of a threshold alone."""
    monkeypatch.setenv("CATENA_CACHE", "0")
    monkeypatch.setattr(thresholds, "NEAR", 1 << 62)
    found = {}
    monkeypatch.setattr(lengths, "_families", found)
    return lambda: next(reversed(found.values()))


def closed(f, shapes) -> jax.core.ClosedJaxpr:
    n = max(map(max, shapes))
    return jax.make_jaxpr(f)(*[values(n, *shape) for shape in shapes])


def check(f, shapes):
    """The program of a function for these shapes, which has what it has when it is compiled by itself; numbers that are
    the same by chance may stand in its table twice.
    """
    made = closed(f, shapes)
    executable, alone = programs.program(made), compiler.compile_jaxpr(made)
    parts = told(executable)
    if parts != told(alone):
        alone = with_a_rest(made)
    if parts != told(alone):
        given = [values(max(map(max, shapes)), *shape) for shape in shapes]
        bits = [[np.asarray(y).tobytes() for y in each(*given)] for each in (executable, compiler.compile_jaxpr(made))]
        assert bits[0] == bits[1], shapes
    return executable


def told(executable) -> list:
    parts = executable.parts
    assert all(type(n) is int for n in parts.numbers)
    return [getattr(parts, name) for name in LIKE_COMPILED]


def with_a_rest(made):
    """The program at a length that leaves no rest, as one that does: a plan for some is one for none."""
    numbers = lengths.read(made)[1]
    given = next(f for f in reversed(lengths._families.values()) if len(f.first) == len(numbers)).recorded(numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "differs", lambda n, one: type(n) is symbols.Symbol or n != one)
        return compiler.compile_recorded(made, given, "f", ())[0]


@pytest.mark.share(3)
@pytest.mark.parametrize("case", PROGRAMS)
def test_programs_at_other_lengths_are_those_that_are_compiled(case, family):
    f, shapes = PROGRAMS[case]
    draw = random.Random(case)
    near = [700 + draw.randrange(60) for _ in range(6)]
    far = [draw.choice([draw.randrange(3, 70), draw.randrange(3, 900), 2 ** draw.randrange(3, 10)]) for _ in range(18)]
    kept = [check(f, shapes(n)) for n in alternate(4, near + far, 0)]
    assert len(kept) >= 6


ALIKE = [
    "elementwise",
    "all folded",
    "rows folded",
    "columns folded",
    "rows made even",
    "a training step",
    "a chain",
    "a loop",
    "running sums",
    "running sums of rows",
    "in place",
    "a diagonal",
    "draws",
    "a linear system",
    "a tall matrix factorised",
    "small systems",
    "least squares",
    "heat in a loop",
    "filters",
    "draws below the length",
    "second derivatives",
    "its singular values",
    "transforms of rows",
]


@pytest.mark.share(2)
@pytest.mark.parametrize("case", ALIKE)
def test_some_lengths_are_not_planned(case, family):
    """Most are, where nothing is decided by a threshold between them; which ones hangs on the processor."""
    f, shapes = PROGRAMS[case]
    kept = [programs.program(closed(f, shapes(n))) for n in (300, 313)]
    assert (family().tries, len(family().plans), family().found) == (1, 1, 0)
    kept += [check(f, shapes(n)) for n in range(326, 430, 13)]
    assert family().found >= 2


def test_other_lengths_of_products_are_not_planned(family):
    """What tiles of rows leave is nothing that a text tells, and a plan for some is one for nothing."""
    f = lambda x: jnp.tanh(x @ jnp.ones((64, 64), x.dtype))
    kept = [programs.program(closed(f, [(n, 64)])) for n in (67, 71)]
    kept += [check(f, [(n, 64)]) for n in range(72, 97, 3)]
    assert family().found >= 8  # of 9
    assert len(family().plans) <= 2


def results_of(executable, x) -> list[bytes]:
    return [np.asarray(y).tobytes() for y in executable(np.asarray(x))]


@pytest.mark.parametrize("step", [17, -17])
def test_near_a_threshold_a_plan_of_either_side_serves(step, family, monkeypatch):
    """Whether a loop has a second text for subnormal numbers changes no bit: lengths around that are of one plan."""
    f = lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * jnp.abs(y) * 0.5 - 0.25, x)
    machine = host.this_machine()
    lanes = machine.vector_bytes // 4
    lengths_ = [careful.LEAST_BLOCKS * lanes + step * k for k in (-5, -4, -3, -2, 2, 3)]
    makers = {n: closed(f, [(n,)]) for n in lengths_}
    kept = [programs.program(makers[n]) for n in lengths_]
    if machine.stops_at_subnormals:
        assert (len(family().plans), family().found) == (2, 3)  # both sides of one
    lengths._families.clear()
    monkeypatch.setattr(thresholds, "NEAR", 5)
    kept = [programs.program(makers[n]) for n in lengths_]
    assert (len(family().plans), family().found) == (1, 4)
    for n, made in zip(lengths_, kept, strict=True):
        x = values(n, n)
        assert results_of(made, x) == results_of(compiler.compile_jaxpr(makers[n]), x), n


@pytest.mark.parametrize("step", [3, -3])
def test_around_the_work_that_threads_share_a_plan_serves(step, family, monkeypatch):
    """Whether a product is shared out changes no bit, and no text: of one task, too, the pool may be told."""
    monkeypatch.setattr(thresholds, "NEAR", 5)
    limits = host.this_machine().products
    rows = limits.shared // (64 * 64)
    f = lambda x: jnp.tanh(x @ jnp.ones((64, 64), x.dtype))
    makers = {n: closed(f, [(n, 64)]) for n in range(rows - 6 * step, rows + 6 * step, step)}
    kept = {n: programs.program(made) for n, made in makers.items()}
    assert len(family().plans) <= 2 and family().found >= 8
    for n, made in kept.items():
        x = values(n, n, 64)
        assert results_of(made, x) == results_of(compiler.compile_jaxpr(makers[n]), x), n


def test_sizes_that_are_the_same_by_chance_are_of_one_plan(family):
    """A table may have a number twice: its text reads it by two names. Here, a row's length and where one begins."""
    f, shapes = PROGRAMS["filters"]
    kept = [programs.program(closed(f, shapes(n))) for n in (300, 313)]
    kept += [check(f, shapes(n)) for n in (326, 339, 352)]
    assert family().found == 3 or host.this_machine().vector_bytes < 64  # whose lengths are others


def _stencil(x):
    """Five rows of five, each times a number of its own."""
    rows, columns = x.shape[0] - 4, x.shape[1] - 4
    return sum(x[i : i + rows, k : k + columns] * (1 + i * k) for i in range(5) for k in range(5))


WHERE_ROWS_BEGIN = {  # functions, and shapes at a length
    "three rows": (lambda x: jax.lax.top_k(x, 5), lambda n: [(3, n + 80)]),
    "five rows at once": (_stencil, lambda n: [(n, n + 3)]),
    "the rest of a short row": (lambda x: jnp.linalg.eigh(x + x.T), lambda n: [(n, n)]),
    "bytes of a slot": (lambda x: jnp.linalg.solve(x + 9 * jnp.eye(len(x)), x[0]), lambda n: [(n, n)]),
}


@pytest.mark.parametrize("case", WHERE_ROWS_BEGIN)
def test_no_text_tells_where_rows_begin(case, family):
    """Nor where the last vector of a few does, and how many bytes are copied."""
    f, shapes = WHERE_ROWS_BEGIN[case]
    kept = [programs.program(closed(f, shapes(n))) for n in (61, 53)]
    kept += [check(f, shapes(n)) for n in (55, 51, 59, 57)]
    assert family().found >= 3 or host.this_machine().vector_bytes < 32  # of shorter vectors there are more lengths


def test_whole_blocks_of_what_is_folded_are_of_one_plan(family):
    """Whether blocks leave a rest, a kernel asks that may have one: a plan for some is one for none."""
    kept = [programs.program(closed(jnp.sum, [(n, 8)])) for n in (259, 165)]
    kept += [check(jnp.sum, [(n, 8)]) for n in (128, 256, 200)]
    assert family().found >= (3 if host.this_machine().vector_bytes == 64 else 2)


def test_numbers_of_parts_and_tasks_are_of_one_plan(family):
    """Into however many parts the right sides of a system are cut, and however many tasks do them."""
    kept = [programs.program(closed(jnp.linalg.inv, [(n, n)])) for n in (150, 165)]
    kept += [check(jnp.linalg.inv, [(n, n)]) for n in (235, 245)]
    assert family().found == 2 or host.this_machine().vector_bytes < 64  # of shorter vectors there are more thresholds


@pytest.mark.parametrize(
    ("draw", "found"),
    [
        (lambda key, n: jax.random.gamma(key, 2.5, (n,)), 0),  # texts tell where rests are equal by chance
        (lambda key, n: jax.vmap(jax.random.normal)(jax.random.split(key, n)), 2),
        (lambda key, n: jax.random.key_data(jax.random.split(key, n)[::2]), 2),
    ],
    ids=["gamma", "normal", "halves"],
)
def test_arrays_of_keys_are_of_other_lengths(draw, found, family):
    f = lambda x: draw(jax.random.key(x[0].astype("int32")), x.shape[0])
    kept = [programs.program(closed(f, [(n,)])) for n in (400, 413)]
    kept += [check(f, [(n,)]) for n in ((426, 439, 451, 470) if found else (426, 470))]
    assert family().found >= found


def test_parts_of_tables_that_lanes_hold_are_of_one_plan(family):
    """Where places lie that a search may come to hangs on the length: texts tell neither where nor how many."""
    f = lambda x: jnp.searchsorted(jnp.cumsum(jnp.abs(x)), x)
    kept = [programs.program(closed(f, [(n,)])) for n in (130, 135)]
    kept += [check(f, [(n,)]) for n in (137, 139, 141)]
    assert family().found == 3


def test_sizes_of_routines_are_not_taken_from_other_programs(family):
    """Calls of LAPACK are kept by their sizes, which a record would write down where it found some there."""
    f = lambda a: jnp.linalg.slogdet(a)[1]
    kept = [compiler.compile_jaxpr(closed(f, [(n, n)])) for n in range(201, 213)]
    kept += [programs.program(closed(f, [(n, n)])) for n in (201, 203)]
    (plan,) = family().plans
    kept += [programs.program(closed(f, [(n, n)])) for n in (205, 211)]
    assert plan.parts.code_name == kept[-1].parts.code_name and family().found >= 1


def test_floats_that_hang_on_a_length_are_of_one_plan(family):
    """Whatever they are: the length times the distance between floats is no count, nor one over it."""
    f = lambda x: jnp.where(x > x.shape[0] * 1.1920929e-07, x, x.shape[0] * 0.013)
    kept = [programs.program(closed(f, [(n,)])) for n in (301, 305)]
    kept += [check(f, [(n,)]) for n in (311, 317, 323)]
    assert family().found == 3


def test_constants_that_hang_on_a_length_are_told_from_zero_in_one_plan(family):
    """As -0.5 over the count is, where the derivative of a mean multiplies by it."""
    f = jax.grad(lambda x: -0.5 * jnp.mean(1 + x - jnp.exp(x)))
    kept = [programs.program(closed(f, [(n, 6)])) for n in (100, 120)]
    kept += [check(f, [(n, 6)]) for n in (121, 123, 127)]
    assert family().found == 3 and len(family().plans) == 1


def test_rows_that_bands_leave_are_of_one_plan(family):
    """Rows beyond the caches are added up in bands; those that are left, of any number, are one more."""
    f = lambda x: jnp.sum(jnp.exp(x), 0)
    kept = [programs.program(closed(f, [(n, 100)])) for n in (20000, 20100)]
    kept += [check(f, [(n, 100)]) for n in (20201, 20303, 20399)]
    assert family().found >= 2  # bands of more rows leave none here and there


def test_even_and_odd_numbers_of_terms_of_small_tiles_are_of_one_plan(family):
    """Two terms are done at a time in large tiles only: of others, the gradient of a narrow layer's weights, nobody
    asks whether they are even.
    """
    f = lambda x: x.T @ x[:, :3]
    kept = [programs.program(closed(f, [(n, 20)])) for n in (51, 53)]
    kept += [check(f, [(n, 20)]) for n in (54, 55, 58, 60)]
    assert family().found == 4 and len(family().plans) == 1


def test_functions_of_one_name_are_of_each_record():
    """Nothing is shared by records: the same names stand for other functions, operands and outcomes in each."""
    lines = lambda f, holds: [("t0", f, ("a0",), True), *[("", operator.lt, ("a0", "9"), holds)] * 80]
    doubled, same = (
        replayed.Function(["a0"], lines(f, holds), ["t0"], {"9": least})
        for f, holds, least in ((lambda a: 2 * a, True, 5), (lambda a: a, False, 9))
    )
    assert doubled(4) == [8] and doubled(5) is None and same(9) == [9] and same(8) is None
    assert doubled(3) == [6] and len(doubled.first) == len(same.first) == 1


SHORT_ROWS = [lambda x: jnp.roll(x[0], 3) + jnp.roll(x[1], -1), lambda x: x @ x.T]


@pytest.mark.parametrize("f", SHORT_ROWS)
def test_how_long_short_rows_are_is_in_no_text(f, family):
    """Places in rows of less than 128 elements are near each other: how near is told where it hangs on no length."""
    kept = [check(f, [(4, n)]) for n in (101, 103, 106, 109, 115)]
    assert kept and family().found >= (2 if host.this_machine().vector_bytes == 64 else 1)


def test_factors_that_hang_on_a_length_are_in_no_text(family):
    """As places of rows and columns are multiplied by, where both are computed."""
    f = lambda x: x.reshape(-1)[(x[0] * 2).astype("int32") * x.shape[1] + (x[1] * 9).astype("int32")]
    kept = [check(f, [(5, n)]) for n in (150, 163, 171, 187, 181)]
    assert kept and family().found >= 2


FOLDED_AGAIN = [
    lambda x: jax.lax.fori_loop(0, 9, lambda _, s: s * 0.5 + jnp.sum(x * s), 1.0),
    lambda x: jax.lax.fori_loop(0, 9, lambda _, s: s + jnp.any(x > 0.3 * s), 0.0),
    lambda x: jax.lax.while_loop(lambda s: jnp.sum(s) > 1, lambda s: s * 0.5, jnp.abs(x)),
]


@pytest.mark.parametrize("f", FOLDED_AGAIN, ids=["sum", "any", "until"])
def test_folds_of_some_vectors_in_a_loop_are_of_one_plan(f, family):
    """Of more than eight vectors, a loop is as fast as all of them written one after the other."""
    kept = [check(f, [(n,)]) for n in (133, 139, 135, 141, 137, 143)]
    assert kept and family().found >= (4 if host.this_machine().vector_bytes == 64 else 2)


def test_borders_of_any_length_are_not_planned(family):
    """Where a condition changes along a loop is a number like others."""
    f = lambda x: jnp.convolve(x, jnp.array([1.0, 2.0, 1.0], x.dtype)) + jnp.pad(x, (2, 0))
    kept = [programs.program(closed(f, [(n,)])) for n in (301, 307)]
    kept += [check(f, [(n,)]) for n in (308, 310, 325, 331, 343)]
    assert family().found >= 2 and kept


def test_results_of_every_length_are_numpys(family):
    f = jax.jit(lambda x: (jnp.mean(x, 0), x[-1] * x.shape[0], jnp.flip(x).reshape(-1)[: x.size // 2]))
    for n in (100, 137, 150, 164, 151, 8):
        x = values(n, n, 3)
        mean, last, half = map(np.asarray, f(x))
        np.testing.assert_allclose(mean, x.mean(0), rtol=1e-5, atol=1e-6)
        assert (last == x[-1] * np.float32(n)).all() and (half == x[::-1, ::-1].reshape(-1)[: x.size // 2]).all()
    assert family().found


@pytest.mark.parametrize("f", [linalg.toeplitz, linalg.hankel, linalg.circulant, *FREQUENCIES, *DIAGONALS])
def test_positions_are_computed(f, family):
    """As constants, they would make each length a family."""
    kept = [check(f, [(n,)]) for n in (100, 137, 150, 171)]
    assert kept and len(lengths._families) == 1 and family().found


def test_equal_extents_that_differ_are_other_programs(family):
    """What was one number in the first two programs may be two in the third."""
    f = lambda x, y: jnp.sum(x, 0) + jnp.sum(y, 0)
    pairs = [(300, 300), (437, 437), (501, 502), (502, 501), (501, 501)]
    kept = [check(f, [(n, 3), (m, 3)]) for n, m in pairs]
    assert len(kept) == len(pairs) and family().found


def test_types_flags_donation_and_code_are_of_the_family(family):
    f = lambda x: jnp.sin(x) + x.shape[0]
    kept = [programs.program(closed(f, [(n,)])) for n in (300, 437)]
    before = family()
    assert len(before.plans) == 1 and kept
    for other in (lambda x: jnp.cos(x) + x.shape[0], lambda x: jnp.sin(x) - x.shape[0]):
        programs.program(closed(other, [(501,)]))
        assert family() is not before
    made = jax.make_jaxpr(f)
    for x in (np.ones(501, np.float16), np.ones(501, np.int32)):
        programs.program(made(x))
        assert family() is not before
    programs.program(closed(f, [(501,)]), donated=(True,))
    assert family() is not before and before.found == 0
    with jax.enable_x64(True):
        programs.program(made(np.ones(501)))
    assert family() is not before and before.found == 0


def test_constants_of_the_user_s_are_no_lengths(family):
    """A factor that changes is read by the code that tells it not, or planned again: results are right."""
    for factor in (0.5, 3.0, 33.0, 34.0, 35.0, 0.0, -0.0, float("inf"), 1 / 64, 1 / 65):
        result = jax.jit(lambda x: x * factor)(np.ones(100, np.float32))  # noqa: B023
        assert np.asarray(result).tobytes() == np.full(100, factor, np.float32).tobytes()


def test_programs_of_no_use_are_not_recorded_for_ever(family):
    f = lambda x: jnp.linalg.norm(x[:, : x.shape[0] % 7])
    kept = [programs.program(closed(f, [(n, 9)])) for n in range(20, 60, 3)]
    assert kept and family().tries <= lengths.FIRST_TRIES + family().found


def test_callbacks_are_called_by_their_own_programs(family):
    for n in (10, 20, 30, 40):
        shape = jax.ShapeDtypeStruct((n,), np.float32)
        f = jax.jit(lambda x: jax.pure_callback(lambda y: y + n, shape, x * 2))  # noqa: B023
        assert (np.asarray(f(np.ones(n, np.float32))) == 2 + n).all()


def test_code_that_is_gone_is_compiled_again(family):
    f = lambda x: jnp.tanh(x) * 3.25 - x.shape[0]
    for n in (300, 437, 501, 502):
        check(f, [(n,)])  # nobody holds these programs
    assert family().found == 0


def test_threads_find_and_plan_at_once(family):
    """Each thread records for itself; what one has planned, others find."""
    f = jax.jit(lambda x: jnp.exp2(x) * 3 + jnp.sum(x, axis=1, keepdims=True))

    def rounds(seed):
        for k in range(8):
            x = np.full((300 + 7 * seed + k, 64), 0.25, np.float32)
            np.testing.assert_allclose(np.asarray(f(x)), 2**0.25 * 3 + 16, rtol=1e-6)
        return seed

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(rounds, range(4))) == [0, 1, 2, 3]
    assert family().found


def test_what_caches_keep_of_a_record_is_plain_afterwards(family, monkeypatch, tmp_path):
    """Rules that write jaxprs keep them by their sizes; programs with these are kept on disk as all others."""
    monkeypatch.setenv("CATENA_CACHE", "1")
    monkeypatch.setenv("CATENA_CACHE_DIR", str(tmp_path))
    f, shapes = PROGRAMS["a matrix factorised"]
    for n in (100, 240, 580):
        made = closed(f, shapes(n))
        kept = [programs.program(made), compiler.compile_jaxpr(made)]
        programs.stored.keep("0" * 64, kept[1], {})
        assert all(type(n) is int for one in kept for n in one.parts.numbers)


def test_large_programs_are_recorded_when_several_lengths_have_come():
    """A second one may be the last batch, and the only other."""
    small, large = lengths.Family([1] * lengths.SMALL), lengths.Family([1] * (lengths.SMALL + 1))
    assert small.is_worth_it()
    assert [large.is_worth_it() for _ in range(lengths.PATIENCE + 1)] == [False] * lengths.PATIENCE + [True]


def test_a_family_that_was_of_no_use_is_tried_again_at_each_doubling():
    family = lengths.Family([1])
    tried = []
    for came in range(1, 200):
        if family.is_worth_it():
            family.tries += 1
            tried.append(came)
    assert tried == [*range(1, lengths.FIRST_TRIES + 1), 16, 32, 64, 128]


def test_plans_that_were_not_of_use_of_late_go_first(family):
    """Of more plans than are kept, that one goes which served none for longest."""
    f = lambda x: x * 2 + x.shape[0]
    kept = [programs.program(closed(f, [(n,)])) for n in (300, 437)]
    (plan,) = family().plans
    family().plans = [plan] * lengths.MOST_PLANS
    none = lengths.Made()
    none.function = lambda: lambda n: None
    family().add(kept[1], [[300], [437]], none)
    assert len(family().plans) == lengths.MOST_PLANS and family().plans[0] is not plan


def test_products_find_the_tiles_of_their_length(family):
    """Which tiles suit a length is computed of it, as its numbers are: one plan serves lengths of other tiles."""
    f, shapes = lambda x, y: jnp.tanh(x @ y), lambda n: [(n, 24), (24, n)]
    found = [check(f, shapes(n)) for n in (150, 130, 137, 145, 139, 161, 177, 183, 129)]
    tiles = {tuple(executable.parts.imports) for executable in found}
    assert family().tries <= 2 and len(tiles) >= 4, (family().tries, tiles)


@pytest.mark.parametrize(
    "f",
    [lambda x: x @ x.T, lambda x: jnp.linspace(0, 1, x.shape[1]) * x],
    ids=["how far six rows are apart", "parts of a power of two"],
)
def test_numbers_of_any_length_are_not_in_a_text(f, family):
    kept = [check(f, [(6, n)]) for n in (150, 163, 171, 187, 181, 203)]
    assert kept and family().found >= 2  # shorter vectors leave other rests


def test_places_that_are_computed_begin_where_no_text_tells(family):
    """However many there are: a determinant multiplies its diagonal by halves, each of which begins elsewhere."""
    kept = [check(jnp.linalg.det, [(n, n)]) for n in (283, 285, 287, 290, 293)]
    assert kept and family().found >= 2


def test_rows_of_any_number_lie_at_distances_that_no_text_tells(family):
    """Each takes no register of its own, as places that lie anywhere do, but has a share in three."""
    f = lambda x: jnp.tanh(sum(row * (k + 0.5) for k, row in enumerate(x)))
    kept = [check(f, [(8, n)]) for n in (150, 163, 171, 187, 181, 203)]
    assert kept and family().found >= 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_constants_of_sixteen_bits_stand_in_texts(dtype):
    """All are parts of a power of two, and LLVM multiplies by those that it knows in 16 bits."""
    closed = jax.make_jaxpr(lambda x: 0.9 * x)(jnp.ones(1000, dtype))
    assert "load float, ptr" not in compiler.text_of(closed)


@pytest.mark.parametrize("lengths_", [range(100, 128), range(210, 238)])
def test_attention_needs_few_plans_for_many_lengths(family, lengths_):
    """What hangs on each length, such as which rows share lines, is asked only where it decides."""
    f, shapes = PROGRAMS["attention"]
    kept = [programs.program(closed(f, shapes(n))) for n in lengths_]
    most = 9 if host.this_machine().vector_bytes == 64 else 20  # shorter vectors leave other rests: 14 to 18 of 28
    assert kept and family().tries <= most


def test_a_place_that_is_another_by_chance_is_not_that_one_at_other_lengths():
    """Of 23 elements, n - 8 is 15, which another load reads at any length."""

    def f(x, v):
        at = jnp.where(x[15] < v, x.shape[0] - 15, 0)
        return jnp.where(x.at[at + 7].get(mode="promise_in_bounds") < v, at + 8, at)

    step = jax.jit(f)
    for n in (20, 23, 24, 26, 23):
        x = jnp.asarray(np.r_[np.zeros(15), 3, np.full(n - 16, 9)].astype(np.int32))
        for v in (2, 5, 10):
            at = n - 15 if 3 < v else 0
            expected = at + 8 if x[at + 7] < v else at
            assert int(step(x, jnp.int32(v))) == expected


@pytest.mark.parametrize("batch", [16, 64])
def test_members_of_a_batch_are_shared_out_at_every_length(batch):
    """Whether tasks do several members, or parts of one, hangs on the length."""
    multiply = jax.jit(lambda x, y: x @ y)
    draw = random.Random(batch)
    y = values(1, batch, 32, 32)
    for n in (32, 48, *(draw.choice([draw.randrange(16, 200), 16 * draw.randrange(1, 60)]) for _ in range(16))):
        x = values(n, batch, n, 32)
        np.testing.assert_allclose(multiply(x, y), np.matmul(x, y), rtol=1e-5, atol=1e-4)
