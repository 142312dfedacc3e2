"""Compiled functions as bytes, for a process of the same program on another day.

The bytes hold the program and not machine code, which a file must not bring into a process: reading compiles, or takes
what was compiled from the cache on disk, which is the user's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catena.core.device import Device, devices
from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.treedef import PyTreeDef
from catena.core.unbuilt import absent as _absent
from catena.export.container import pack, unpack
from catena.export.portable import portable
from catena.export.programs import read_programs, write_programs
from catena.export.values import expect
from catena.transform.jit import TracedCall
from catena.transform.stages import Compiled


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """A compiled function as bytes, and the structures of its arguments and results.

    Arguments:
      compiled: what ``jit(f).lower(*args).compile()`` returned.
    Returns:
      ``(bytes, in_tree, out_tree)``, as ``deserialize_and_load`` takes them.
    Raises:
      TypeError: ``compiled`` is something else. NotImplementedError: it calls Python functions.

    >>> import catena as jax
    >>> from catena.experimental.serialize_executable import deserialize_and_load, serialize
    >>> data, *trees = serialize(jax.jit(lambda x: 2 * x).lower(1.0).compile())
    >>> deserialize_and_load(data, *trees)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(f"serialize takes a compiled function, got {compiled!r}")
    closed = compiled._call.closed
    writer, (number,) = write_programs([portable(closed)])
    head = {
        "executable": [compiled.fun_name, number, list(compiled._names), list(compiled._call.donated)],
        "programs": writer.programs,
        "arrays": writer.arrays,
    }
    return bytes(pack(head, writer.data)), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: Any = None,
    execution_devices: Sequence[Device] | None = None,
) -> Compiled:
    """The compiled function that ``serialize`` wrote.

    Arguments:
      serialized, in_tree, out_tree: what it returned.
      backend: ``"cpu"``, or None.
      execution_devices: one device, or None.
    Returns:
      A function of arguments of the types that it was compiled for.
    Raises:
      ValueError: the bytes are no compiled function, or the structures do not fit them.
      RuntimeError: the backend is another than there is.
    """
    if backend is not None and getattr(backend, "platform", backend) != "cpu":
        raise RuntimeError(f"deserialize_and_load: there is no backend {backend!r}; there is 'cpu'")
    if execution_devices is not None and (len(execution_devices) != 1 or execution_devices[0] not in devices()):
        raise ValueError(f"execution_devices must be one of {devices()}, got {execution_devices!r}")
    head, data = unpack(serialized)
    if not isinstance(head, dict) or "executable" not in head:
        raise ValueError("these bytes hold no compiled function; exported functions are for export.deserialize")
    try:
        name, number, names, donated = head["executable"]
        names = [expect(n, str, "the name of an argument") for n in names]
        flags = tuple(expect(d, bool, "whether an argument is donated") for d in donated)
    except TypeError as error:
        raise ValueError(f"these bytes hold no compiled function: {error}") from error
    program = read_programs(head.get("programs"), head.get("arrays"), data).program(number)
    if not len(names) == len(flags) == len(program.in_avals) == in_tree.num_leaves or out_tree.num_leaves != len(
        program.out_avals
    ):
        raise ValueError(f"{in_tree} and {out_tree} are not the structures of {name!r}")
    call = TracedCall(program, out_tree, [], flags)
    return Compiled(None, name, call, in_tree, tuple(program.in_avals), names)


_open_door(globals(), "catena.experimental.serialize_executable", own=True)
__dir__ = _shown(globals())

_absent(globals())
