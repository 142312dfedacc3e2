"""Sorting, ordering and selection of rows: quicksort by vectors, and radix where the processor has none of it."""

import ctypes

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit import quicksort, sorting
from catena.compiler.machine import Machine
from catena.compiler.native import host, link
from catena.core.lazy import llvm
from compiled import check

rng = np.random.default_rng(11)
DTYPES = [np.uint8, np.int16, np.float32, np.int32, np.float64, np.uint64, np.bool_]
SHAPES = [
    (1,),
    (16,),
    (17,),
    (129,),
    (3000,),
    (66_000,),
    (2, 70_001),
    (9, 33),
    (7, 48),
    (7, 49),
    (7, 65),
    (300, 16),
    (40, 700),
]
PATTERNS = ["random", "few values", "sorted", "reversed", "one value", "organ pipe"]


@pytest.fixture(params=["quicksort", "radix"])
def way(request, monkeypatch):
    """Both ways to sort, also where the processor would choose one of them."""
    if request.param == "radix":
        monkeypatch.setattr(Machine, "compresses", lambda *_: False)
    elif not host.this_machine().compresses(8):
        pytest.skip("this processor does not compress vectors")


def rows(dtype, shape, pattern):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        x = rng.normal(size=shape).astype(dtype)
    elif dtype.kind == "b":
        x = rng.integers(0, 2, shape).astype(bool)
    else:
        x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
    return arranged(x, pattern)


def arranged(x, pattern):
    if pattern == "few values":
        return np.ascontiguousarray(x[..., rng.integers(0, min(3, x.shape[-1]), x.shape[-1])])
    if pattern == "one value":
        return np.full_like(x, x.flat[0])
    if pattern == "random":
        return x
    x = np.sort(x, -1)
    if pattern == "organ pipe":
        return np.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    return np.ascontiguousarray(x[..., ::-1]) if pattern == "reversed" else x


def with_special_floats(x):
    if x.dtype.kind == "f" and x.size > 20:
        x.flat[[2, 7, 11, 13]] = np.nan, np.inf, -np.inf, np.nan
    return x


@pytest.mark.share(8)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sorted_rows_and_their_order(way, dtype, shape):
    for pattern in PATTERNS if shape[-1] in (129, 66_000) else PATTERNS[:2]:
        x = with_special_floats(rows(dtype, shape, pattern))
        place = np.broadcast_to(np.arange(shape[-1], dtype=np.int32), shape).copy()
        order = np.argsort(x, -1, kind="stable").astype(np.int32)
        check(lambda b, x: b.sort([x], x.ndim - 1), np.sort(x, -1), x)
        check(lambda b, x, i: b.sort([x, i], x.ndim - 1), [np.take_along_axis(x, order, -1), order], x, place)


@pytest.mark.parametrize("shape", [(50,), (5000,), (66_000,), (30, 100)])
def test_the_order_by_keys_of_several_widths(way, shape):
    keys = [rng.integers(0, 3, shape).astype(t) for t in (np.int8, np.float64, np.int16)]
    keys.append(rng.normal(size=shape).astype(np.float32))
    place = np.broadcast_to(np.arange(shape[-1], dtype=np.int32), shape).copy()
    order = np.lexsort(keys[::-1])
    want = [np.take_along_axis(x, order, -1) for x in (*keys, place)]
    check(lambda b, *xs: b.sort(list(xs), len(shape) - 1, num_keys=4), want, *keys, place)


GREATEST = [((40,), 7), ((40,), 40), ((5000,), 1), ((5000,), 700), ((70_000,), 9000)]


@pytest.mark.share(3)
@pytest.mark.parametrize("of", GREATEST)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_greatest(way, dtype, of):
    shape, k = of
    for pattern in ("random", "few values"):
        x = rows(dtype, shape, pattern)
        down = -x.astype(np.float64) if x.dtype.kind == "f" else ~x
        places = np.argsort(down, -1, kind="stable")[..., :k]
        check(lambda b, x: b.top_k(x, k), [np.take_along_axis(x, places, -1), places.astype(np.int32)], x)


@pytest.mark.share(5)
@pytest.mark.parametrize("shape", [(1,), (17,), (5000,), (70_001,), (30, 100), (3, 2, 900)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_given_ranks(way, dtype, shape):
    x = with_special_floats(rows(dtype, shape, "random"))
    ranks = rng.integers(0, shape[-1], (*shape[:-1], 5)).astype(np.int32)
    ranks[..., 3] = np.minimum(ranks[..., 2] + 1, shape[-1] - 1)  # found together with the one before
    ranks[..., 4] = shape[-1] - 1
    check(lambda b, x, r: b.ranked(x, r), np.take_along_axis(np.sort(x, -1), ranks, -1), x, ranks)


# ---- the functions by themselves ---------------------------------------------------------------------------


def compiled_sort(bits, paired, vectors):
    """The quicksort as a Python function of addresses and sizes; it owns its machine code."""
    name = quicksort.symbol(bits, paired, vectors)
    parts = (
        sorting.define(bits, paired, seldom=True),
        quicksort.define_network(bits, paired, vectors),
        quicksort.define_pass(bits, paired),
        quicksort.define_sort(bits, paired, vectors).replace("define internal", "define", 1),
    )
    module = link.parsed("\n".join(parts))
    engine = llvm().create_mcjit_compiler(module, host.new_generator(2))
    engine.finalize_object()
    types = [ctypes.c_void_p] * (2 + 2 * paired) + [ctypes.c_int64] * 4
    function = ctypes.CFUNCTYPE(None, *types)(engine.get_function_address(name))
    return function, engine


@pytest.mark.skipif(not host.this_machine().compresses(8), reason="this processor does not compress vectors")
@pytest.mark.parametrize("bits,paired", sorted(quicksort.REGISTERS))
def test_networks_of_all_sizes(bits, paired):
    dtype, vectors = np.dtype(f"uint{bits}"), 1
    while vectors <= quicksort.REGISTERS[bits, paired]:
        text = quicksort.define_network(bits, paired, vectors).replace("define internal", "define", 1)
        engine = llvm().create_mcjit_compiler(link.parsed(text), host.new_generator(2))
        engine.finalize_object()
        types = [ctypes.c_void_p] * (1 + paired) + [ctypes.c_int64]
        address = engine.get_function_address(quicksort.network_symbol(bits, paired, vectors))
        for n in {3, vectors * 256 // bits, vectors * 512 // bits - 1, vectors * 512 // bits}:
            for pattern in PATTERNS:
                keys, index = rows(dtype, (n,), pattern).copy(), np.arange(n, dtype=np.int32)
                want, order = np.sort(keys), np.argsort(keys, kind="stable")
                guarded = np.concatenate([keys, np.full(64, 77, dtype)])
                arrays = [guarded, index][: 1 + paired]
                ctypes.CFUNCTYPE(None, *types)(address)(*(a.ctypes.data for a in arrays), n)
                assert (guarded[:n] == want).all() and (guarded[n:] == 77).all()
                assert not paired or (index == order).all()
        vectors *= 2


@pytest.mark.skipif(not host.this_machine().compresses(8), reason="this processor does not compress vectors")
@pytest.mark.parametrize("bits,paired", sorted(quicksort.REGISTERS))
def test_ranks_that_are_asked_for_and_levels_that_run_out(bits, paired):
    function, engine = compiled_sort(bits, paired, 2)
    dtype = np.dtype(f"uint{bits}")
    for pattern in PATTERNS:
        for low, high, depth in ((0, 3000, 40), (0, 3000, 1), (0, 3000, 0), (1000, 1002, 40), (2990, 3002, 3)):
            keys = rows(dtype, (3000,), pattern).copy()
            want, order = np.sort(keys), np.argsort(keys, kind="stable")
            guarded = np.concatenate([keys, np.full(64, 77, dtype)])
            index, spares = np.arange(3000, dtype=np.int32), [np.empty(3000, dtype), np.empty(3000, np.int32)]
            arrays = [guarded, index, *spares] if paired else [guarded, spares[0]]
            function(*(a.ctypes.data for a in arrays), 3000, low, high, depth)
            assert (guarded[low : min(high, 3000)] == want[low:high]).all()
            assert (guarded[3000:] == 77).all()  # nothing is written behind the row
            assert (np.sort(guarded[:3000]) == want).all()
            if paired:
                assert (index[low:high] == order[low:high]).all()


def test_the_sample_of_a_long_row_is_sorted_by_a_function_of_its_own():
    """In the entry's module, what sorts would be compiled once more."""
    text = jax.jit(jnp.sort).lower(rows(np.float32, (300_000,), "random")).compile().as_text("llvm")
    assert "@catena_" in text and "@catena_" not in text[text.index("define i64 @entry") :]
