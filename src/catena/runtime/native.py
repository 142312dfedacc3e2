"""Native programs in memory: object code, what it is bound to, and how it is called.

`entry(args, outs)` takes two Python tuples of ndarrays and reads their data pointers from the objects, at the
offsets below; it returns 0, or 1 + i when argument i is not C-contiguous and aligned, or -1 when a callback
raised.
"""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from catena.core.lazy import llvm
from catena.runtime.kernels import Callback

TUPLE_ITEMS = tuple.__basicsize__
ARRAY_DATA = object.__basicsize__
ARRAY_FLAGS = ARRAY_DATA + 48
READY = 0x0101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED

ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.py_object)
_FREE_STACKS = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_lock = threading.Lock()
_checked = False


def check_layout() -> None:
    """Raises unless tuples and ndarrays lie in memory as compiled code expects."""
    global _checked
    if _checked:
        return
    ordered, strided = np.zeros((3, 5)), np.zeros((3, 10))[:, ::2]
    pair = (ordered, strided)
    item = ctypes.c_void_p.from_address(id(pair) + TUPLE_ITEMS + 8).value
    data = ctypes.c_void_p.from_address(id(ordered) + ARRAY_DATA).value
    flags = [ctypes.c_int32.from_address(id(a) + ARRAY_FLAGS).value & READY for a in pair]
    if item != id(strided) or data != ordered.ctypes.data or flags != [READY, 0x0100]:
        raise RuntimeError(
            "this Python or NumPy lays out tuples or arrays in an unknown way; native programs cannot run"
        )
    _checked = True


class Native:
    """Object code loaded into this process and bound to its constants and library functions."""

    def __init__(self, code: bytes, constants: list[np.ndarray], externals: list, machine, stacks: bool = False):
        check_layout()
        self._keep = ([np.ascontiguousarray(c) for c in constants], externals)
        binding = llvm()
        with _lock:
            empty = binding.parse_assembly("")
            self._engine = binding.create_mcjit_compiler(empty, machine)
            self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
            address = self._engine.get_function_address("entry")
            self._bind("constants", [c.__array_interface__["data"][0] for c in self._keep[0]])
            self._bind("externals", [x.address for x in externals])
            self._arena = self._engine.get_global_value_address("arena_cache")
            free = self._engine.get_function_address("catena_stack_free_list") if stacks else 0
        self.entry = ENTRY_TYPE(address)
        self.free_stacks = _FREE_STACKS(free) if free else None

    def _bind(self, table: str, pointers: list[int]) -> None:
        if pointers:
            base = self._engine.get_global_value_address(table)
            (ctypes.c_void_p * len(pointers)).from_address(base)[:] = pointers

    @property
    def callbacks(self) -> list[Callback]:
        return [x for x in self._keep[1] if isinstance(x, Callback)]

    def __del__(self):
        arena = getattr(self, "_arena", 0)
        if arena and ctypes is not None:  # at the end of the process modules may be gone before their objects
            cached = ctypes.c_void_p.from_address(arena)
            if cached.value:
                _free(cached.value)
                cached.value = None


_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
