"""Whole programs on disk, found by what they compute: neither written nor compiled again, just loaded and called.

An entry holds what a program consists of besides its object code, and the name of that in the cache. Programs are
found by the jaxpr that they run (``programs.py``) or, where even tracing is spared, by what that is made from (the
kernels of eager random draws). The package's own source is part of every name, so a changed package finds none of
the old ones.
"""

from __future__ import annotations

import functools
import json
import math
import os
import sys
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from catena.compiler.native import cache, host, later, workers
from catena.compiler.native.executable import Executable, Parts
from catena.core import lazy
from catena.core.config import TRACED
from catena.core.context import context
from catena.core.dtypes import ALL
from catena.runtime import kernels, threads
from catena.runtime.native import Code, Function, Unit, known, object_code, resolved

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DTYPES = {d.name: d for d in ALL}
ROUTINES = {c.__name__: c for c in (kernels.Routine, kernels.ThreadControl, kernels.PythonRoutine)}
CELLS = {"BLAS_USERS": kernels.BLAS_USERS, "PENDING_ERROR": kernels.PENDING_ERROR}
MOST_BYTES = 1 << 22  # of constants that the compiler made: tables


@functools.cache
def source_stamp(loaded: int) -> str:
    """Stands for the source of the package: names, sizes and times of its files.

    Empty where they cannot be seen, or changed since the package was ``loaded`` (nanoseconds of the clock).
    """
    facts, folders = [], [""]
    for folder in folders:  # grows while it is read
        with os.scandir(ROOT + folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    if status.st_mtime_ns > loaded:
                        return ""
                    facts.append(f"{folder}/{entry.name} {status.st_size} {status.st_mtime_ns}")
                elif entry.is_dir() and entry.name != "__pycache__":
                    folders.append(f"{folder}/{entry.name}")
    return "\n".join(sorted(facts))


def name_of(*facts) -> str | None:
    """The name of the program that is made from these facts under the flags in force; None where none is kept."""
    stamp = source_stamp(lazy.LOADED)
    if not stamp or context.dump_ir_to or context.check_bounds:
        return None
    flags = [repr(getattr(context, flag.attribute)) for flag in TRACED]
    threaded = str(host.this_machine().threads)
    return cache.key(stamp, *host.identity(), sys.version, np.__version__, threaded, *flags, *map(repr, facts))


def find(
    name: str | None, consts: Sequence = (), text: Callable[[], str] | None = None
) -> tuple[Executable, dict] | None:
    """The program of this name and what its maker noted of it, if it is there.

    `consts` are the jaxpr's own constants; `text` makes its LLVM IR when somebody wants to read it. An entry that
    cannot be read is none, and will be written again.
    """
    content = cache.load(name) if name else None
    if content is None:
        return None
    try:
        return _read(content, consts, text or _no_text)
    except UNREADABLE:
        return None


# What reading raises where an entry is not what `keep` writes, JSON's and LLVM's errors among them.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RuntimeError, OverflowError, zlib.error)


def _read(content: bytes, consts: Sequence, text: Callable[[], str]) -> tuple[Executable, dict] | None:
    head, _, tables = content.partition(b"\n")
    entry = json.loads(head)
    plain = entry["parts"] | {"units": [unit_of(*x) for x in entry["parts"]["units"]]}
    plain["imports"] = _functions(plain["imports"])
    code, held = object_code(plain["code_name"]) or cache.load(plain["code_name"]), codes_of(plain["units"])
    linked = None if held is None else resolved(plain["imports"])
    if code is None or linked is None:
        return None
    return Executable(_parts(plain, code, consts, tables), text, {}, linked), entry["note"]


def codes_of(units: Sequence[Unit]) -> list[Code] | None:
    """The code of kernels: what is not in the process is loaded. None where some is not on disk either."""
    codes: list[Code] = []
    for unit in units:
        found = [one for key in unit.exports.values() if (one := known(key)) is not None]
        if len(found) < len(unit.exports):
            code, linked = cache.load(unit.name), resolved(unit.imports)
            if linked is None:
                return None
            one = later.found(unit) if code is None else Code(code, host.new_generator, linked, unit)
            if one is None:
                return None
            found = [one]
        codes += found
    return codes


def unit_of(name: str, exports: dict[str, str], imports: list[list[str]]) -> Unit:
    return Unit(name, exports, _functions(imports))


def _functions(imports: list[list[str]]) -> list[Function]:
    return [Function(*x) for x in imports]


def keep(name: str | None, executable: Executable, note: dict, consts: Sequence = ()) -> None:
    """Keep a program, with a note, unless it calls Python or is bound to more than other processes can have."""
    if name is None or executable.checks:  # what checks say of lines holds in this process
        return
    parts = executable.parts
    externals = [_external_name(x) for x in parts.externals]
    constants, tables = _described(parts.constants, consts)
    if None in externals or sum(map(len, tables)) > MOST_BYTES:
        return
    plain = parts._asdict() | {
        "code": None,
        "externals": externals,
        "constants": constants,
        "out_specs": [(shape, _dtype_name(dtype)) for shape, dtype in parts.out_specs],
        "reused": list(parts.reused.items()),
    }
    head = json.dumps({"note": note, "parts": plain}).encode()
    cache.save(name, b"\n".join([head, b"".join(tables)]))


def is_free(parts: Parts) -> bool:
    """Whether a program calls nothing that is its own, such as a function of the user."""
    return all(_external_name(x) is not None for x in parts.externals)


def _no_text() -> str:
    return "; a kernel of the package, found on disk\n"


def _parts(plain: dict, code: bytes, consts: Sequence, tables: bytes) -> Parts:
    made = {
        "code": code,
        "externals": [_external(*x) for x in plain["externals"]],
        "constants": [_constant(x, consts, tables) for x in plain["constants"]],
        "out_specs": [(tuple(shape), _dtype(name)) for shape, name in plain["out_specs"]],
        "reused": dict(plain["reused"]),
    }
    return Parts(**plain | made)


# ---- what a program is bound to, by name


def _external_name(x) -> tuple[str, str] | None:
    """The kind and name of a routine; None for callbacks, which are functions of this process."""
    if isinstance(x, threads.ParallelFor):
        return "ParallelFor", ""
    for name, cell in CELLS.items():
        if x is cell:
            return "Cell", name
    kind = type(x).__name__
    return (kind, x.name) if kind in ROUTINES else None


def _external(kind: str, name: str):
    if kind == "ParallelFor":
        return threads.ParallelFor(workers.pool)
    return CELLS[name] if kind == "Cell" else ROUTINES[kind](name)


def _described(constants: Sequence[np.ndarray], consts: Sequence) -> tuple[list, list[bytes]]:
    """Where to find each constant: among the jaxpr's own, or as bytes in a table; and the tables."""
    own = {id(x): i for i, x in enumerate(consts)}
    found: list = []
    tables: list[bytes] = []
    start = 0
    for x in constants:
        if id(x) in own:
            found.append(own[id(x)])
            continue
        tables.append(np.ascontiguousarray(x).tobytes())
        found.append((_dtype_name(x.dtype), x.shape, start))
        start += len(tables[-1])
    return found, tables


def _constant(where, consts: Sequence, tables: bytes) -> np.ndarray:
    if isinstance(where, int):
        return consts[where]
    name, shape, start = where
    return np.frombuffer(tables, _dtype(name), math.prod(shape), start).reshape(shape).copy()


def _dtype_name(dtype: np.dtype) -> str:
    return dtype.name if dtype.name in DTYPES else dtype.str


def _dtype(name: str) -> np.dtype:
    return DTYPES.get(name) or np.dtype(name)
