"""Native programs in memory: object code, what it is bound to, and how it is called.

`entry(args, outs)` takes two Python tuples of ndarrays and reads their data pointers from the objects (see
`layout`); it returns 0, or 1 + i when argument i is not C-contiguous and aligned, or -1 when a callback
raised.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping

import numpy as np

from catena.core.lazy import llvm
from catena.runtime.buffers import check_room
from catena.runtime.kernels import Callback, ForeignCall, table_of

ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.py_object)
ROOM = 4 << 20  # bytes that loading takes besides: the engine, what is rounded to pages
_FREE_STACKS = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_FREE_ARENA = ctypes.CFUNCTYPE(None)


class Code:
    """Object code in this process: it stays there as long as this object, and so does the code that it calls.

    What it calls in other code is declared to its engine alone: elsewhere a name may stand for another address.
    """

    def __init__(self, code: bytes, machine, linked: Mapping[str, Code]):
        check_room(ROOM + 2 * len(code), "loading a compiled program")
        binding, self._linked = llvm(), tuple(linked.values())
        declared = binding.parse_assembly("\n".join(f'declare void @"{name}"()' for name in linked))
        self._engine = binding.create_mcjit_compiler(declared, machine)
        for name, other in linked.items():
            self._engine.add_global_mapping(declared.get_function(name), other.address(name))
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function begins."""
        return self._engine.get_function_address(name)

    def variable(self, name: str) -> int:
        """Where a global variable lies."""
        return self._engine.get_global_value_address(name)


_codes: weakref.WeakValueDictionary[str, Code] = weakref.WeakValueDictionary()  # by function: see `compiler.shared`


def offer(exports: Mapping[str, str], code: Code) -> None:
    """Lets other programs link functions of loaded code, given the key of each by its name."""
    for key in exports.values():
        _codes.setdefault(key, code)


def known(key: str) -> Code | None:
    """The loaded code that has the function of this key."""
    return _codes.get(key)


def resolved(imports: Mapping[str, str]) -> dict[str, Code] | None:
    """Where functions are, by name, given their keys; None unless all are in this process."""
    found = {name: known(key) for name, key in imports.items()}
    return None if None in found.values() else found


class Native:
    """Object code loaded into this process and bound to its constants and library functions.

    `linked` says where functions are that it calls and other programs have.
    """

    def __init__(
        self,
        code: bytes,
        constants: list[np.ndarray],
        externals: list,
        machine,
        stacks: bool = False,
        linked: Mapping[str, Code] | None = None,
    ):
        self._keep = ([np.ascontiguousarray(c) for c in constants], externals)
        self.code = Code(code, machine, linked or {})
        self._bind("constants", [c.__array_interface__["data"][0] for c in self._keep[0]])
        self._bind("externals", [x.address for x in externals])
        # Not `__del__`, which the collector of cycles may call after the code is gone.
        if free_arena := self.code.address("free_arena"):
            weakref.finalize(self, _run, self.code, _FREE_ARENA(free_arena)).atexit = False
        self.entry = ENTRY_TYPE(self.code.address("entry"))
        self.free_stacks = _FREE_STACKS(self.code.address("catena_stack_free_list")) if stacks else None

    def _bind(self, table: str, pointers: list[int]) -> None:
        if pointers:
            table_of(len(pointers)).from_address(self.code.variable(table))[:] = pointers

    @property
    def callbacks(self) -> list[Callback | ForeignCall]:
        return [x for x in self._keep[1] if isinstance(x, (Callback, ForeignCall))]


def _run(code: Code, function) -> None:
    """Calls a function of the code, which lives as long as this call is to be made."""
    function()
