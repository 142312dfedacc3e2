"""Files of named arrays in the safetensors format: eight bytes that say how long the header is, the header in JSON, and
the elements of each array in C order (https://huggingface.co/docs/safetensors).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

# What the format calls NumPy's dtypes, and those of ml_dtypes. What it has no name for is written as bytes, with the
# bytes of an element along an axis at the end.
NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}
ALIGNMENT = 8  # bytes, of where elements begin


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to a file, which has its name when it is whole and on the disk."""
    header, place, contents = {}, 0, []
    for name, value in arrays.items():
        dtype, shape = NAMES.get(value.dtype.name), value.shape
        if dtype is None:
            dtype, shape = "U8", (*shape, value.dtype.itemsize)
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": (place, place + data.size)}
        place += data.size
        contents.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    hidden = path.with_name(path.name + ".part")
    with open(hidden, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for data in contents:
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(hidden, path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Tensors:
    """The arrays of a file, which is read where they are asked for.

    Raises:
      ValueError: the file is not of this format, or has been cut off.
    """

    def __init__(self, path: Path):
        self.path, size = path, path.stat().st_size
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > size - 8:
                raise ValueError(f"{path} is no safetensors file, or a part of one: it has {size} bytes")
            self.header = json.loads(file.read(length))
        self.begin = 8 + length
        ends = [entry["data_offsets"][1] for name, entry in self.header.items() if name != "__metadata__"]
        if size != self.begin + max(ends, default=0):
            raise ValueError(f"{path} has {size} bytes, and its header says {self.begin + max(ends, default=0)}")

    def read(self, name: str, dtype: str | None = None) -> np.ndarray:
        """An array, as a view of the file.

        Arguments:
          name: its name.
          dtype: the name of the dtype that it was written with, where the format has none for it.
        """
        entry = self.header[name]
        shape, (start, end) = tuple(entry["shape"]), entry["data_offsets"]
        kind = np.dtype(DTYPES[entry["dtype"]])
        if dtype is not None and dtype not in NAMES:
            kind, shape = np.dtype(dtype), shape[:-1]
        if start == end:
            return np.empty(shape, kind)
        data = np.memmap(self.path, np.uint8, "r", self.begin + start, end - start)
        return data.view(kind).reshape(shape)
