"""The native functions of stacks (compiler/emit/stacks.py), alone."""

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from catena.compiler.emit.stacks import RUNTIME
from catena.runtime.stacks import Stack, addresses, one_stack

SIGNATURES = {
    "new": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int64]),
    "write": (ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]),
    "length": (ctypes.c_int64, [ctypes.c_void_p]),
    "item": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int64]),
    "free": (None, [ctypes.c_void_p]),
}


@pytest.fixture(scope="module")
def functions():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(RUNTIME)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    made = {
        name: ctypes.CFUNCTYPE(result, *arguments)(engine.get_function_address(f"catena_stack_{name}"))
        for name, (result, arguments) in SIGNATURES.items()
    }
    yield made
    del engine


def item_at(functions, stack, i, dtype, shape):
    place = functions["item"](stack, i)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return None if not place else np.frombuffer(ctypes.string_at(place, size), dtype).reshape(shape)


def test_push_many_and_read_back(functions):
    arena = ctypes.c_void_p(0)
    stack = functions["new"](ctypes.byref(arena), 12)
    rows = np.random.default_rng(0).standard_normal((1000, 3)).astype(np.float32)
    for i, row in enumerate(rows):
        assert functions["write"](stack, i, row.ctypes.data) == 0
    assert functions["length"](stack) == 1000
    for i in (0, 7, 8, 511, 999):
        np.testing.assert_array_equal(item_at(functions, stack, i, np.float32, (3,)), rows[i])
    assert functions["item"](stack, 1000) is None
    functions["free"](ctypes.byref(arena))
    assert not arena.value


def test_written_backwards_and_gaps_are_zero(functions):
    arena = ctypes.c_void_p(0)
    stack = functions["new"](ctypes.byref(arena), 8)
    value = np.array(3.5)
    functions["write"](stack, 99, value.ctypes.data)
    assert functions["length"](stack) == 100
    assert item_at(functions, stack, 50, np.float64, ()) == 0
    assert item_at(functions, stack, 99, np.float64, ()) == 3.5
    functions["write"](stack, 98, value.ctypes.data)
    assert item_at(functions, stack, 98, np.float64, ()) == 3.5
    functions["free"](ctypes.byref(arena))


def test_empty_items_and_the_null_stack(functions):
    arena = ctypes.c_void_p(0)
    stack = functions["new"](ctypes.byref(arena), 0)
    for i in range(20):
        assert functions["write"](stack, i, None) == 0
    assert functions["length"](stack) == 20
    assert functions["length"](None) == 0
    assert functions["item"](None, 0) is None
    assert functions["write"](None, 0, None) == -1
    functions["free"](ctypes.byref(arena))


def test_python_stacks_have_the_native_layout(functions):
    from catena.core.aval import ShapedArray

    rows = [np.full(2, i, np.int32) for i in range(5)]
    stack = one_stack(Stack(rows))
    address = int(addresses(stack, ShapedArray((2,), np.int32)))
    assert functions["length"](address) == 5
    np.testing.assert_array_equal(item_at(functions, address, 3, np.int32, (2,)), rows[3])
    same = Stack(address=address, owner=stack)
    np.testing.assert_array_equal(same.read(4, ShapedArray((2,), np.int32)), rows[4])
    np.testing.assert_array_equal(same.read(5, ShapedArray((2,), np.int32)), [0, 0])
