"""Products and convolutions by tiles against NumPy, on whole numbers, whose sums are exact: every bit must agree."""

import math
import string

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.graph.types import TYPES
from catena.compiler.interpret.program import run as interpreted
from catena.compiler.machine import AARCH64, X86_64, X86_64_V3, X86_64_V4
from catena.compiler.native.compile import program_of
from catena.compiler.plan import contraction
from catena.compiler.plan.contraction import Axis, Contraction
from catena.lax.convolution import ConvDimensionNumbers
from compiled import check, compile_fn
from shares import alternate

DTYPES = ("float32", "float64", "int32", "int64", "uint8", "int16")


def whole(rng, shape, dtype, most=4):
    low = 0 if np.dtype(dtype).kind == "u" else -most
    return rng.integers(low, most, shape).astype(dtype)


def product(lhs: str, rhs: str):
    """The dimension numbers of an einsum, and the letters of its result in their order."""
    batch = [c for c in lhs if c in rhs and c.isupper()]
    terms = [c for c in lhs if c in rhs and not c.isupper()]
    numbers = tuple(tuple(s.index(c) for c in letters) for letters in (terms, batch) for s in (lhs, rhs))
    out = "".join(batch) + "".join(c for s in (lhs, rhs) for c in s if c not in batch + terms)
    return ((numbers[0], numbers[1]), (numbers[2], numbers[3])), out


def check_product(lhs, rhs, sizes, dtype, rng):
    x, y = (whole(rng, [sizes[c] for c in s], dtype) for s in (lhs, rhs))
    numbers, out = product(lhs, rhs)
    expected = np.einsum(f"{lhs},{rhs}->{out}", x.astype(np.int64), y.astype(np.int64)).astype(dtype)
    check(lambda b, x, y: b.dot_general(x, y, numbers, dtype), expected, x, y)


@pytest.mark.share(9)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n, k", [(33, 70, 29), (9, 129, 64), (100, 10, 31), (64, 64, 64), (16, 300, 50)])
@pytest.mark.parametrize("lhs, rhs", [("ik", "kj"), ("ki", "kj"), ("ik", "jk"), ("ki", "jk")])
def test_matrices_of_every_layout(lhs, rhs, m, n, k, dtype):
    check_product(lhs, rhs, {"i": m, "j": n, "k": k}, dtype, np.random.default_rng(0))


@pytest.mark.parametrize(
    "m, n, k",
    [(300, 257, 129), (3, 5000, 700), (700, 5, 1300), (40, 40, 2100), (1, 600, 800), (257, 1025, 17), (513, 64, 800)],
)
def test_products_that_are_cut_into_tasks_and_parts(m, n, k):
    rng = np.random.default_rng(m)
    for lhs, rhs in (("ik", "kj"), ("ki", "jk")):
        check_product(lhs, rhs, {"i": m, "j": n, "k": k}, "float32", rng)


@pytest.mark.parametrize("seed", range(40))
def test_random_contractions(seed):
    """Any number of batch, free and summed dimensions in any order."""
    rng = np.random.default_rng(seed)
    names = iter(string.ascii_lowercase)
    groups = [[next(names) for _ in range(rng.integers(0, n))] for n in (3, 3, 4)]
    batch = [c.upper() for c in (next(names) for _ in range(rng.integers(0, 3)))]
    lhs, rhs = (
        "".join(rng.permutation(batch + groups[0] + groups[2])),
        "".join(rng.permutation(batch + groups[1] + groups[2])),
    )
    sizes = {c: int(rng.choice([1, 2, 3, 5, 8, 17])) for c in lhs + rhs}
    check_product(lhs, rhs, sizes, rng.choice(DTYPES), rng)


@pytest.mark.parametrize("columns", [8, 37, 70])
def test_every_number_of_rows(columns):
    """Tiles of two heights, one row apart, hold all rows where there are enough tiles."""
    rng = np.random.default_rng(columns)
    for rows in alternate(3, [*range(1, 75), 97, 103, 130, 250, 257], 0):
        check_product("ik", "kj", {"i": rows, "j": columns, "k": 5}, "float32", rng)


def test_numbers_of_rows_need_no_tiles_of_their_own():
    """Of rows that are no multiple of a tile's, and enough, each is in a tile of one of two heights."""
    for machine in (X86_64_V4, X86_64_V3, AARCH64):
        for rows in range(60, 400):
            form = Contraction(TYPES["float32"], (), (Axis(rows, 64, 0, 64),), 64, (Axis(64, 1, 64, 0),))
            p = contraction.plan(form, machine, True)
            assert p.full * p.rows + (p.down + bool(p.left) - p.full) * p.below == rows
            assert p.heights[1:] == (p.rows - 1 if rows % p.rows else 0, 0), (machine, rows)


def test_batches_share_the_pool():
    check_product("Bik", "Bkj", {"B": 24, "i": 65, "j": 63, "k": 66}, "float32", np.random.default_rng(0))
    check_product("BCik", "CBjk", {"B": 4, "C": 6, "i": 48, "j": 100, "k": 40}, "float32", np.random.default_rng(0))


def test_nothing_to_add_up():
    for dtype in ("float32", "int32"):
        x, y = np.ones((20, 0), dtype), np.ones((0, 30), dtype)
        check(lambda b, x, y: b.dot_general(x, y, (((1,), (0,)), ((), ())), x.dtype), np.zeros((20, 30), dtype), x, y)


def test_what_is_not_a_number_stays_in_its_row():
    x, y = np.ones((40, 50), np.float32), np.ones((50, 37), np.float32)
    x[7, 3], y[4, 36] = np.nan, np.inf
    out = compile_fn(lambda b, x, y: b.dot_general(x, y, (((1,), (0,)), ((), ())), x.dtype), x, y)(x, y)[0]
    assert np.isnan(out[7]).all() and np.isfinite(out[:7, :36]).all() and np.isfinite(out[8:, :36]).all()
    assert np.isinf(out[8:, 36]).all()


# ---- convolutions


def convolved(x, w, strides, padding, lhs_dilation, rhs_dilation, feature_groups, batch_groups):
    """NC*S and OI*K to NO*S by NumPy, from the definition."""
    k = x.ndim - 2
    wide = np.zeros((*x.shape[:2], *((n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], lhs_dilation))), x.dtype)
    wide[(slice(None), slice(None), *(slice(None, None, d) for d in lhs_dilation))] = x
    wide = np.pad(wide, [(0, 0), (0, 0), *((max(lo, 0), max(hi, 0)) for lo, hi in padding)])
    cut = [slice(max(-lo, 0), n - max(-hi, 0)) for n, (lo, hi) in zip(wide.shape[2:], padding)]
    x = wide[(slice(None), slice(None), *cut)]
    reach = [(n - 1) * d + 1 for n, d in zip(w.shape[2:], rhs_dilation)]
    if any(n < r for n, r in zip(x.shape[2:], reach)):
        return None
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, 2 + k)))
    seen = seen[(slice(None), slice(None), *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in rhs_dilation))]  # fmt: skip
    groups, outs = feature_groups * batch_groups, []
    for g in range(groups):
        part = np.split(seen, groups, axis=0 if batch_groups > 1 else 1)[g]
        outs.append(
            np.tensordot(part, np.split(w, groups, axis=0)[g], ((1, *range(2 + k, 2 + 2 * k)), range(1, 2 + k)))
        )
    return np.moveaxis(np.concatenate(outs, -1), -1, 1)


@pytest.mark.share(10)
@pytest.mark.parametrize("seed", range(120))
def test_random_convolutions(seed):
    """Any rank, layout, stride, padding (negative too), dilation of either operand, and groups of either kind."""
    rng = np.random.default_rng(seed)
    k, kind = int(rng.integers(1, 4)), rng.choice(["plain", "features", "batches"])
    groups = int(rng.integers(2, 4)) if kind != "plain" else 1
    feature, batch = (groups, 1) if kind == "features" else (1, groups) if kind == "batches" else (1, 1)
    x = whole(
        rng, [int(rng.integers(1, 4)) * batch, int(rng.integers(1, 5)) * feature, *rng.integers(1, 12, k)], "float32"
    )
    w = whole(rng, [int(rng.choice([1, 3, 20])) * groups, x.shape[1] // feature, *rng.integers(1, 5, k)], "float32")
    strides, padding = rng.integers(1, 4, k), rng.integers(-1, 4, (k, 2))
    lhs_dilation, rhs_dilation = rng.choice([1, 1, 2, 3], k), rng.choice([1, 1, 2], k)
    if seed % 3 == 0:  # the gradient of a strided convolution
        strides, rhs_dilation = np.ones_like(strides), np.ones_like(rhs_dilation)
    window = [tuple(int(n) for n in a) for a in (strides, lhs_dilation, rhs_dilation)]
    padding = [tuple(map(int, p)) for p in padding]
    expected = convolved(x, w, window[0], padding, window[1], window[2], feature, batch)
    if expected is None:
        return
    specs = [tuple(int(d) for d in rng.permutation(k + 2)) for _ in range(3)]
    lhs, rhs, out = (np.ascontiguousarray(a.transpose(np.argsort(s))) for a, s in zip((x, w, expected), specs))
    numbers = ConvDimensionNumbers(*specs)
    check(
        lambda b, x, w: b.conv(x, w, numbers, (window[0], padding, *window[1:]), (feature, batch)),
        out,
        lhs,
        rhs,
    )


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_large_convolutions(layout):
    """Those that are cut into tasks, and gradients by weights, whose sums are cut into parts."""
    rng = np.random.default_rng(0)
    spec = tuple(layout.index(c) for c in "NCHW")
    numbers = ConvDimensionNumbers(spec, (3, 2, 0, 1), spec)
    x, w = whole(rng, (4, 24, 30, 31), "float32"), whole(rng, (40, 24, 3, 3), "float32")
    expected = convolved(x, w, (2, 1), [(1, 1), (1, 1)], (1, 1), (1, 1), 1, 1)
    back = np.argsort(spec)
    check(
        lambda b, x, w: b.conv(x, w, numbers, ((2, 1), [(1, 1), (1, 1)], (1, 1), (1, 1)), (1, 1)),
        np.ascontiguousarray(expected.transpose(back)),
        np.ascontiguousarray(x.transpose(back)),
        np.ascontiguousarray(w.transpose(2, 3, 1, 0)),
    )
    swapped = ConvDimensionNumbers((1, 0, 2, 3), (1, 0, 2, 3), (1, 0, 2, 3))
    y = whole(rng, (4, 40, 30, 31), "float32")
    gradient = convolved(x.swapaxes(0, 1), y.swapaxes(0, 1), (1, 1), [(1, 1), (1, 1)], (1, 1), (1, 1), 1, 1)
    check(
        lambda b, x, y: b.conv(x, y, swapped, ((1, 1), [(1, 1), (1, 1)], (1, 1), (1, 1)), (1, 1)),
        np.ascontiguousarray(gradient.swapaxes(0, 1)),
        x,
        y,
    )


# ---- plans


def matrices(m, n, k):
    return Contraction(TYPES["float32"], (), (Axis(m, k, 0, n),), n, (Axis(k, 1, n, 0),))


def test_neighbouring_axes_are_one_where_all_operands_cross_them_evenly():
    assert contraction.merged([Axis(4, 15, 0, 30), Axis(1, 7, 7, 7), Axis(3, 5, 0, 10)]) == (Axis(12, 5, 0, 10),)
    assert len(contraction.merged([Axis(4, 16, 0, 30), Axis(3, 5, 0, 10)])) == 2


def test_tiles_fit_the_registers_and_the_sizes():
    for machine in (X86_64, X86_64_V3, X86_64_V4, AARCH64):
        for m, n, k in ((1000, 1000, 1000), (7, 40, 9), (1, 17, 64), (5, 4, 3)):
            p = contraction.plan(matrices(m, n, k), machine, True)
            vectors = -(-p.columns // p.width)
            assert p.rows * vectors + vectors + 1 <= machine.vector_registers
            assert p.rows <= m and p.columns <= n and p.panels * p.columns + p.rest == n


@pytest.mark.parametrize("m", [15, 16])
def test_two_threads_have_as_many_rows(m):
    """Of three tiles one had twice as many as the other, where tasks have whole rows."""
    p = contraction.plan(matrices(m, 1024, 256), X86_64_V4, True, 64)
    assert p.units == 2 and p.rows == 8
    assert contraction.tasks(p, X86_64_V4, True, True)[:3] == (2, 2, 1)
    assert contraction.plan(matrices(m, 64, 64), X86_64_V4, True, 64).units == 3  # one thread's: the quickest tile


def test_a_row_has_tiles_of_more_columns_and_all_terms_where_loops_find_the_matrix_near():
    plan = lambda times, *sizes: contraction.plan(matrices(*sizes), X86_64_V4, True, times)
    assert plan(1, 1, 128, 64).columns == 128 and plan(1, 2, 128, 64).columns <= 64
    parts = lambda times, *sizes: [part.steps for part in plan(times, *sizes).outside]
    assert parts(20, 1, 128, 512) == [] and parts(1, 1, 128, 512) == [contraction.TERMS_FROM_NEAR]
    assert parts(20, 1, 2048, 512) == [contraction.TERMS_FROM_AFAR]  # beyond the second cache


@pytest.mark.parametrize(
    "extents", [(8, 32, 32), (2, 56, 56), (7, 13, 17), (3, 5, 1000), (97, 3), (2000, 3), (4, 1), (2, 3, 4, 50), (700,)]
)
def test_parts_of_the_terms_are_all_of_them_once(extents):
    """Loops over parts and the terms of a tile reach each place once; a tile's panel of B stays in the nearest cache."""
    terms = tuple(Axis(n, 10_000 ** (len(extents) - k), 0, 0) for k, n in enumerate(extents))
    p = contraction.plan(Contraction(TYPES["float32"], (), (Axis(40, 1, 0, 64),), 64, terms), X86_64_V4, True)
    reached = np.zeros(1, int)
    for part in p.outside:
        reached = (reached[:, None] + np.arange(0, part.axis.extent, part.steps) * part.axis.a).reshape(-1)
    for x in p.inside:
        reached = (reached[:, None] + np.arange(x.extent) * x.a).reshape(-1)
    if any(part.is_innermost for part in p.outside):  # the last of these does what is there
        reached = reached[reached // terms[-1].a % 10_000 < terms[-1].extent]
    places = np.zeros(1, int)
    for x in terms:
        places = (places[:, None] + np.arange(x.extent) * x.a).reshape(-1)
    assert sorted(reached) == sorted(places)
    if len(extents) > 1:
        last = p.inside[-1].extent
        assert math.prod(x.extent for x in p.inside) <= max(last, X86_64_V4.memory.first_cache // 2 // (64 * 4))


def test_large_operands_are_packed_and_small_ones_read_where_they_lie():
    in_panels = lambda *sizes: contraction.plan(matrices(*sizes), X86_64_V4, True).packs
    assert in_panels(512, 512, 512)
    assert not in_panels(16, 512, 512)  # hardly read twice
    assert not in_panels(512, 64, 64)  # stays in cache
    assert contraction.plan(matrices(512, 64, 64), X86_64_V4, False).packed  # its columns do not lie side by side


@pytest.mark.parametrize("machine", [X86_64_V3, X86_64_V4], ids=["256", "512"])
@pytest.mark.parametrize("n, blocks", [(256, 1), (512, 2), (1024, 2), (2048, 3)])
def test_tasks_that_pack_a_panel_use_it_for_many_rows(n, blocks, machine):
    """Each of them packs what it reads of B anew, but two threads have rows of their own, from 512 on; there are enough
    tasks for some threads all the same.
    """
    p = contraction.plan(matrices(n, n, n), machine, True)
    tasks = contraction.tasks(p, machine, False, False)
    assert p.packs and tasks.row_blocks == blocks
    assert tasks.total == blocks * tasks.column_blocks >= min(8 * n // 512, 16)
    assert (blocks - 1) * tasks.rows < p.units <= blocks * tasks.rows
    assert (tasks.column_blocks - 1) * tasks.columns < p.panels <= tasks.column_blocks * tasks.columns


def test_few_columns_and_whole_rows_are_cut_into_tasks_by_their_rows():
    p = contraction.plan(matrices(2000, 128, 512), X86_64_V4, True)
    assert p.packs and p.panels == 2
    assert contraction.tasks(p, X86_64_V4, False, False)[:2] == (8, 4)
    assert contraction.tasks(p, X86_64_V4, False, True)[:2] == (8, 8)


@pytest.mark.parametrize("members, size", [(1000, 16), (4000, 8), (33, 32), (64, 16), (5, 128), (2, 256)])
def test_tasks_do_several_small_members_of_a_batch(members, size):
    """As many as make a task, and two threads have about as many; large members are cut, few multiplications are not."""
    form = matrices(size, size, size)._replace(batch=(Axis(members, size * size, size * size, size * size),))
    tasks = contraction.tasks(contraction.plan(form, X86_64_V4, True), X86_64_V4, False, False)
    if size >= 128:
        assert not tasks.has_whole_members or tasks.members == 1
        return
    assert tasks.has_whole_members and (tasks.total - 1) * tasks.members < members <= tasks.total * tasks.members
    assert tasks.total == 1 if members * size**3 < X86_64_V4.products.tasks.members else 2 <= tasks.total <= 32


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(
    "members, m, n, k", [(1, 9, 9, 9), (7, 8, 8, 8), (150, 13, 20, 17), (501, 16, 16, 16), (70, 24, 40, 12)]
)
def test_products_of_many_members(members, m, n, k, dtype):
    rng = np.random.default_rng(0)
    for lhs, rhs in (("Bik", "Bkj"), ("Bki", "Bkj"), ("Bik", "Bjk")):
        check_product(lhs, rhs, {"B": members, "i": m, "j": n, "k": k}, dtype, rng)


def test_tiles_find_numbers_of_a_in_the_lines_that_they_read():
    """Of a small array for each of many members (`uti,tj->uij`), the tile takes what lies side by side."""
    rows = (Axis(12, 1, 0, 12), Axis(300, 2400, 0, 144))
    tiled = lambda terms: (
        contraction.plan(
            Contraction(TYPES["float32"], (), rows, 12, (Axis(terms, 12, 12, 0),)), X86_64_V4, True
        ).row.extent
    )
    assert tiled(200) == 12
    assert tiled(20) == 300  # all of it stays in the nearest cache
    check_product("uti", "tj", {"u": 30, "t": 200, "i": 12, "j": 12}, "float32", np.random.default_rng(0))


@pytest.mark.parametrize("free", [(4, 32), (3, 2, 48), (128,)], ids=str)
@pytest.mark.parametrize("terms", [41, 64])
def test_a_vector_may_have_dimensions_of_one_element(free, terms):
    """Beside a matrix of several free ones, as in the gradient of experts' weights: all of the result is written."""
    rng = np.random.default_rng(terms)
    matrix, vector = whole(rng, (terms, *free), "float32"), whole(rng, (terms, 1), "float32")
    f = lambda m, v: jax.lax.dot_general(jnp.where(m > 1, m, 0), v, (((0,), (0,)), ((), ())))
    expected = np.tensordot(np.where(matrix > 1, matrix, 0), vector, (0, 0))
    np.testing.assert_array_equal(jax.jit(f)(matrix, vector), expected)
    (made,) = interpreted(program_of(jax.make_jaxpr(f)(matrix, vector)), [matrix, vector])
    np.testing.assert_array_equal(made, expected)
