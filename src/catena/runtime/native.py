"""Native programs in memory: object code, what it is bound to, and how it is called.

`entry(args, outs, table)` takes two Python tuples of ndarrays, whose data pointers it reads from the objects (see
`layout`), and has all that differs between programs of one text in the table (see `entries`). It returns 0, or 1 + i
when argument i is not C-contiguous and aligned, or -1 when a callback raised.
"""

from __future__ import annotations

import ctypes
import weakref
from array import array
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from catena.core.lazy import llvm
from catena.core.named import NamedTuple
from catena.runtime import idle, linking
from catena.runtime.buffers import check_room
from catena.runtime.entries import bound
from catena.runtime.kernels import Callback, ForeignCall

ROOM = 4 << 20  # bytes that loading takes besides: the engine, what is rounded to pages
_FREE_STACKS = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_OF_TABLE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Function(NamedTuple):
    """A function that programs share: its name, and what its machine code depends on."""

    name: str
    key: str


class Unit(NamedTuple):
    """What is known of object code: its name in caches, and keys of the functions that others may call."""

    name: str
    exports: Mapping[str, str]
    imports: Sequence[Function]  # what it calls in other code


class Code:
    """Object code in this process: it stays there as long as this object, and so does the code that it calls (`linked`,
    in the order of its imports). LLVM loads what `linking` does not, for which `machine` makes a code generator.
    """

    def __init__(self, code: bytes, machine: Callable, linked: Sequence[Code] = (), unit: Unit | None = None):
        check_room(ROOM + 2 * len(code), "loading a compiled program")
        self.object_code, self.unit, self.linked = code, unit, tuple(linked)
        names = [] if unit is None else [function.name for function in unit.imports]
        imports = {name: other.address(name) for name, other in zip(names, self.linked, strict=True)}
        self._loaded = linking.linked(code, imports) or _Engine(code, machine(), imports)
        if unit is not None:
            _by_name.setdefault(unit.name, self)
            for key in unit.exports.values():
                offer(key, self)

    def address(self, name: str) -> int:
        """Where a function or global variable is; 0 where there is none."""
        return self._loaded.address(name)


class _Engine:
    """Code that LLVM loads.

    What it calls in other code is declared to its engine alone: elsewhere a name may stand for another address.
    """

    def __init__(self, code: bytes, machine, imports: Mapping[str, int]):
        binding = llvm()
        declared = binding.parse_assembly("\n".join(f'declare void @"{name}"()' for name in imports))
        self._engine = binding.create_mcjit_compiler(declared, machine)
        for name, address in imports.items():
            self._engine.add_global_mapping(declared.get_function(name), address)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self._addresses: dict[str, int] = {}

    def address(self, name: str) -> int:
        found = self._addresses.get(name)
        if found is None:
            found = self._engine.get_function_address(name) or self._engine.get_global_value_address(name)
            self._addresses[name] = found
        return found


_codes: weakref.WeakValueDictionary[str, Code] = weakref.WeakValueDictionary()  # by function: see `compiler.shared`
_by_name: weakref.WeakValueDictionary[str, Code] = weakref.WeakValueDictionary()


def offer(key: str, code: Code) -> None:
    """Has other programs find the function of this key in this code."""
    _codes.setdefault(key, code)


def known(key: str) -> Code | None:
    """The loaded code that has the function of this key."""
    return _codes.get(key)


def loaded(name: str) -> Code | None:
    """The loaded code of this name."""
    return _by_name.get(name)


def object_code(name: str) -> bytes | None:
    """The object code of this name, where a program in this process has it."""
    found = loaded(name)
    return None if found is None else found.object_code


def resolved(imports: Sequence[Function]) -> list[Code] | None:
    """Where imported functions are; None unless all are in this process."""
    found = [known(function.key) for function in imports]
    return None if None in found else found


def units(codes: Sequence[Code]) -> list[Unit]:
    """What programs that call this code need, what that calls before it."""
    found: dict[str, Unit] = {}
    for code in codes:
        found |= {unit.name: unit for unit in (*units(code.linked), code.unit)}
    return list(found.values())


class Native:
    """A program in memory: code, which may be other programs' too, and the table by which it finds all that is the
    program's own: the arena that it keeps between calls, constants, library functions, numbers, and the functions that
    it calls in other code, which is `linked` and lives as long.
    """

    def __init__(
        self,
        code: Code,
        constants: list[np.ndarray],
        externals: list,
        numbers: Sequence[int] = (),
        functions: Sequence[int] = (),
        stacks: bool = False,
        linked: Sequence[Code] = (),
    ):
        self._keep = ([np.ascontiguousarray(c) for c in constants], externals, linked)
        self.code = code
        places = [c.__array_interface__["data"][0] for c in self._keep[0]]
        words = array("Q", [0, *places, *(x.address for x in externals), *functions])
        table = (ctypes.c_uint64 * (len(words) + len(numbers))).from_buffer_copy(words.tobytes() + _words(numbers))
        self._table = table
        # Not `__del__`, which the collector of cycles may call after the code is gone.
        if code.address("free_arena"):
            weakref.finalize(self, _on_arena, "free_arena", code, table).atexit = False
            idle.watch(self)
        self.entry = bound(code.address("entry"), table)
        self.free_stacks = _FREE_STACKS(code.address("catena_stack_free_list")) if stacks else None

    @property
    def callbacks(self) -> list[Callback | ForeignCall]:
        return [x for x in self._keep[1] if isinstance(x, (Callback, ForeignCall))]

    def give_back_idle(self) -> None:
        """Frees the arena unless the program has run since this was asked last; for programs that have one."""
        _on_arena("free_idle_arena", self.code, self._table)


def _words(numbers: Sequence[int]) -> bytes:
    """Numbers of 64 bits, with a sign or without, as they lie in memory."""
    try:
        return array("q", numbers).tobytes()
    except OverflowError:
        return array("Q", [n % (1 << 64) for n in numbers]).tobytes()


def _on_arena(name: str, code: Code, table) -> None:
    """Calls a function for what the arena's place in a table holds; the code lives as long as this is to be called."""
    _OF_TABLE(code.address(name))(ctypes.addressof(table))
