"""Writes the stub of the methods that arrays have from the NumPy API: ``python docs/stubs.py``.

They are given to ``Array`` by a table when ``catena.numpy`` is imported (``numpy/methods.py``), where no type checker
sees them. ``Array`` inherits from this stub for type checkers only.
"""

import inspect
import re
from pathlib import Path

from catena.numpy import concrete_methods, late_methods, methods

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "src" / "catena" / "core" / "array_methods.pyi"

HEAD = '''"""The methods of arrays, for type checkers. Written by docs/stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any

from catena.core.array import Array
from catena.core.device import Device
from catena.core.formats import Format
from catena.core.sharding import Shard, SingleDeviceSharding
from catena.numpy.index_update import IndexUpdateHelper
from catena.typing import ArrayLike, DTypeLike

Axis = int | Sequence[int] | None

class ArrayMethods:
'''
PROPERTIES = {
    "at": "IndexUpdateHelper",
    "device": "Device",
    "committed": "bool",
    "sharding": "SingleDeviceSharding",
    "format": "Format",
    "traceback": "None",
    "addressable_shards": "Sequence[Shard]",
    "global_shards": "Sequence[Shard]",
    "is_fully_addressable": "bool",
    "is_fully_replicated": "bool",
}
RESULTS = {"__round__": "Array", "__reversed__": "Any", "__getitem__": "Array", "__divmod__": "tuple[Array, Array]"}


def text() -> str:
    """The stub."""
    lines = [HEAD.rstrip("\n")]
    for operator in methods.OPERATORS:
        result = RESULTS.get(f"__{operator.name}__", "Array")
        lines += [f"    def __{r}{operator.name}__(self, other: ArrayLike, /) -> {result}: ..." for r in ("", "r")]
    for operator in methods.COMPARISONS:
        override = "  # type: ignore[override]" if operator.name in ("eq", "ne") else ""
        lines.append(f"    def __{operator.name}__(self, other: ArrayLike, /) -> Array: ...{override}")
    # No __setitem__: it refuses, and a type checker says so before it does.
    late = {name: late_methods.loaded(name) for name in late_methods.LATE_METHODS}
    for name, method in (methods.SIGNS | late | methods.METHODS | concrete_methods.METHODS).items():
        if name != "__setitem__":
            lines.append(f"    def {name}{signature_of(name, method)}: ...")
    for name in (n for n in methods.PROPERTIES | concrete_methods.PROPERTIES if not n.startswith("_")):
        lines += ["    @property", f"    def {name}(self) -> {PROPERTIES.get(name, 'Array')}: ..."]
    return "\n".join(lines) + "\n"


def signature_of(name: str, method) -> str:
    """The signature of a method: its first parameter is the array."""
    signature = inspect.signature(method)
    first, *others = signature.parameters.values()
    parameters = [inspect.Parameter("self", first.kind), *others]
    result = RESULTS.get(name, signature.return_annotation)
    shown = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    shown = re.sub(r": '([^']*)'", r": \1", shown)  # annotations are strings
    return f"{shown} -> {result if result is not inspect.Signature.empty else 'Any'}"


if __name__ == "__main__":
    STUB.write_text(text())
