"""Checkpoints of trees of arrays: what a program goes on from after it was ended.

A checkpoint is a folder, ``<folder>/<step>``, with a file of each process that had something to write, in the
safetensors format (https://huggingface.co/docs/safetensors), and ``index.json``, which says where the parts of each
array are. It is written under another name, and renamed when all of it is on the disk: whoever is ended meanwhile
leaves the checkpoints before it. Arrays come back as they are asked for, on other meshes and in other numbers of
processes too; of each, a process reads what it holds.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from catena.core.array import Array, as_array, live, make_array
from catena.core.dtypes import canonicalize_dtype
from catena.core.job import job
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.parts import bounds
from catena.core.tree import tree_flatten_with_path, tree_unflatten
from catena.core.tree_keys import keystr
from catena.parallel.arrays import make_array_from_callback
from catena.random.dtype import key_array, key_dtype_of, words_of
from catena.tools.safetensors import Tensors, sync_folder, write
from catena.transform.placement import device_put

processes: Any = LazyModule("catena.parallel.processes")

FORMAT = "catena checkpoint 1"
INDEX = "index.json"
POLL = 0.02  # seconds between looks whether the other processes have written theirs


class Part(NamedTuple):
    """A part of an array, as a checkpoint has it: where it begins, its shape, its file, and its name there."""

    start: tuple
    shape: tuple
    file: str
    tensor: str
    process: int


class Saving:
    """A checkpoint that is being written. ``wait`` returns when it is there."""

    def __init__(self, path: Path, write_all: Callable[[], None]):
        self.path = path
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(write_all,), name="catena-checkpoint")
        self._thread.start()

    def _run(self, write_all) -> None:
        try:
            write_all()
        except BaseException as error:  # raised again where the program waits
            self._error = error

    def wait(self) -> Path:
        """Wait until the checkpoint is there.

        Returns:
          Its folder.
        Raises:
          What went wrong when it was written.
        """
        self._thread.join()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self.path


_pending: dict[Path, Saving] = {}  # by folder


def save(
    folder: str | os.PathLike, step: int, tree: Any, *, keep: int | None = None, asynchronous: bool = False
) -> Saving:
    """Write a tree of arrays to a folder. All processes call it; each writes the parts that it holds.

    Arguments:
      folder: where checkpoints are kept; a file system that all processes see.
      step: the number of the checkpoint, 0 or more.
      tree: a tree of arrays, random keys and numbers. What is not laid out over several processes is taken from the
        first.
      keep: how many checkpoints stay, this one included; older ones are removed. ``None`` keeps all.
      asynchronous: whether to return at once; the next call for this folder waits, and so does the end of the program.
    Returns:
      A Saving, whose ``wait()`` returns when the checkpoint is there.
    Raises:
      FileExistsError: there is a checkpoint of this step. TypeError: a leaf is no array.

    >>> import catena.numpy as jnp, tempfile
    >>> from catena.tools import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saving = checkpoint.save(folder, 10, {"w": jnp.ones((2, 2)), "b": jnp.zeros(2)})
    ...     checkpoint.restore(folder, {"w": jnp.zeros((2, 2)), "b": jnp.zeros(2)})["w"]
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    check_number("step", step, 0)
    if keep is not None:
        check_number("keep", keep, 1)
    root = Path(folder).absolute()
    if root in _pending:
        _pending.pop(root).wait()
    final = root / str(int(step))
    if agreed(final.exists()):
        raise FileExistsError(f"there is a checkpoint of step {step}: {final}")
    leaves = [Leaf.of(name, x) for name, x in named_leaves(tree)[0]]
    hidden = root / f".{step}-{token()}"
    own = {part.tensor: leaf.stored(part) for leaf in leaves for part in leaf.parts if part.process == job.index}
    files = sorted({part.file for leaf in leaves for part in leaf.parts})
    index = json.dumps({"format": FORMAT, "step": int(step), "leaves": [leaf.entry() for leaf in leaves]}, indent=1)

    def write_all():
        hidden.mkdir(parents=True, exist_ok=True)
        if own:
            write(hidden / file_of(job.index), own)
        if job.index == 0:
            wait_for(lambda: all((hidden / name).exists() for name in files))
            write_text(hidden / INDEX, index)
            os.rename(hidden, final)
            sync_folder(root)
            remove_others(root, keep)
        else:
            wait_for(final.exists)

    saving = Saving(final, write_all)
    if asynchronous:
        _pending[root] = saving
    else:
        saving.wait()
    return saving


def restore(folder: str | os.PathLike, like: Any = None, *, step: int | None = None) -> Any:
    """Read a tree of arrays from a folder. All processes call it; each reads the parts that it is to hold.

    Arguments:
      folder: where checkpoints are kept.
      like: a tree of arrays, or of anything with shape, dtype and perhaps ``sharding``: the result has its structure,
        and its leaves lie as its leaves do. ``None`` for a dictionary of whole arrays by their names.
      step: the number of the checkpoint; the newest by default.
    Returns:
      A tree of arrays; of Python numbers, where ``like`` has such.
    Raises:
      FileNotFoundError: there is no checkpoint, or none of this step. KeyError: it has no leaf of a name.
      ValueError: a leaf has another shape or dtype, or the checkpoint is of another format.

    >>> import catena.numpy as jnp, tempfile
    >>> from catena.tools import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saving = checkpoint.save(folder, 3, {"layers": [jnp.arange(3), 0.5]})
    ...     checkpoint.restore(folder), checkpoint.restore(folder, {"layers": [jnp.zeros(3, int), 0.0]})
    ({'layers.0': Array([0, 1, 2], dtype=int32), 'layers.1': Array(0.5, dtype=float32, weak_type=True)},
     {'layers': [Array([0, 1, 2], dtype=int32), 0.5]})
    """
    root = Path(folder).absolute()
    if root in _pending:
        _pending.pop(root).wait()
    chosen = latest(root) if step is None else step
    path = root / str(chosen)
    if chosen is None or not (path / INDEX).exists():
        which = "no checkpoint" if step is None else f"no checkpoint of step {step}, only {steps(root)}"
        raise FileNotFoundError(f"there is {which} in {root}")
    index = json.loads((path / INDEX).read_text())
    if index.get("format") != FORMAT:
        raise ValueError(f"{path / INDEX} is of the format {index.get('format')!r}, and {FORMAT!r} is read here")
    saved = {entry["name"]: entry for entry in index["leaves"]}
    files: dict = {}
    if like is None:
        return {name: read(path, entry, files, None) for name, entry in saved.items()}
    named, tree = named_leaves(like)
    missing = [name for name, _ in named if name not in saved]
    if missing:
        raise KeyError(f"the checkpoint {path} has no leaf {missing[0]!r}; it has {sorted(saved)}")
    return tree_unflatten(tree, [read(path, saved[name], files, x) for name, x in named])


def latest(folder: str | os.PathLike) -> int | None:
    """The number of the newest checkpoint in a folder, or ``None``.

    >>> from catena.tools import checkpoint
    >>> checkpoint.latest("/nowhere") is None
    True
    """
    return max(steps(folder), default=None)


def steps(folder: str | os.PathLike) -> list[int]:
    """The numbers of the checkpoints in a folder, in order.

    >>> from catena.tools import checkpoint
    >>> checkpoint.steps("/nowhere")
    []
    """
    root = Path(folder)
    if not root.is_dir():
        return []
    return sorted(int(p.name) for p in root.iterdir() if p.name.isdecimal() and (p / INDEX).exists())


# ---- leaves


def named_leaves(tree: Any) -> tuple:
    """The leaves of a tree with names that differ, and its structure."""
    found, structure = tree_flatten_with_path(tree)
    names = [keystr(path, simple=True, separator=".") or "value" for path, _ in found]
    if len(set(names)) < len(names):
        names = [keystr(path) for path, _ in found]
    return [(name, x) for name, (_, x) in zip(names, found, strict=True)], structure


class Leaf(NamedTuple):
    """A leaf that is to be written: its name, its array, the generator if it is of random keys, and its parts."""

    name: str
    array: Array
    keys: str | None
    parts: list

    @classmethod
    def of(cls, name: str, x: Any) -> Leaf:
        try:
            array = x if isinstance(x, Array) else as_array(x)
        except TypeError as error:
            raise TypeError(f"the leaf {name!r} of a checkpoint must be an array or a number: {error}") from None
        keys = array.dtype._impl.name if array.aval.extended else None
        return cls(name, array, keys, parts_of(name, array))

    def stored(self, part: Part) -> np.ndarray:
        """The elements of a part, as they are written."""
        x = self.array
        if x.is_fully_addressable:
            value = live(x)
        else:
            value = next(live(s.data) for s in x.addressable_shards if starts(s.index, x.shape) == part.start)
        return words_of(value, x.dtype._impl) if self.keys else value

    def entry(self) -> dict:
        """What the index says of it."""
        return {
            "name": self.name,
            "shape": list(self.array.shape),
            "dtype": self.keys or self.array.dtype.name,
            "keys": self.keys is not None,
            "weak_type": self.array.weak_type,
            "parts": [{"start": p.start, "shape": p.shape, "file": p.file, "tensor": p.tensor} for p in self.parts],
        }


def parts_of(name: str, x: Array) -> list[Part]:
    """The parts of an array that are written, each once, and by whom."""
    if x.is_fully_addressable:
        return [Part((0,) * x.ndim, x.shape, file_of(0), name, 0)]
    found = []
    for shard in x.global_shards:
        if shard.replica_id == 0:
            start, process = starts(shard.index, x.shape), shard.device.process_index
            shape = tuple(e - b for b, e in bounds(shard.index, x.shape))
            whole = shape == x.shape
            tensor = name if whole else f"{name}@{','.join(map(str, start))}"
            found.append(Part(start, shape, file_of(process), tensor, process))
    return found


def starts(index: tuple, shape: tuple) -> tuple:
    return tuple(b for b, _ in bounds(index, shape))


def file_of(process: int) -> str:
    return f"process-{process:05}.safetensors"


# ---- reading


def read(path: Path, entry: dict, files: dict, like: Any) -> Any:
    """A leaf of a checkpoint, laid out as ``like`` is."""
    shape = tuple(entry["shape"])
    check_like(entry, shape, like)
    sharding = wanted_sharding(like)
    part = lambda index: as_saved(entry, elements(path, entry, files, bounds(index, shape)))  # noqa: E731
    if sharding is not None and not sharding.is_fully_addressable:
        return make_array_from_callback(shape, sharding, part)
    whole = part((slice(None),) * len(shape))
    if sharding is not None:
        return device_put(whole, sharding)
    if isinstance(like, np.ndarray):
        return np.array(whole)
    return whole.item() if isinstance(like, (bool, int, float, complex)) else whole


def check_like(entry: dict, shape: tuple, like: Any) -> None:
    """Raise ValueError where a leaf was saved with another shape or dtype than it is to have."""
    if not hasattr(like, "shape") or not hasattr(like, "dtype"):
        return
    wanted = getattr(getattr(like.dtype, "_impl", None), "name", None) or canonicalize_dtype(like.dtype).name
    if tuple(like.shape) != shape or wanted != entry["dtype"]:
        raise ValueError(
            f"the leaf {entry['name']!r} was saved with the shape {shape} and dtype {entry['dtype']}, and is to have "
            f"the shape {tuple(like.shape)} and dtype {wanted}"
        )


def wanted_sharding(like: Any):
    """How an array like this one is laid out, if somebody says so."""
    if isinstance(like, Array):
        return like.sharding if like.committed else None
    return getattr(like, "sharding", None)


def as_saved(entry: dict, value: np.ndarray) -> Array:
    """An Array of the type that a leaf had."""
    if entry["keys"]:
        return key_array(value, key_dtype_of(entry["dtype"])._impl)
    return make_array(value.astype(canonicalize_dtype(value.dtype), copy=False), entry["weak_type"])


def elements(path: Path, entry: dict, files: dict, wanted: tuple) -> np.ndarray:
    """The elements of a leaf from ``begin`` to ``end`` along each axis, from the parts that have some."""
    sizes = tuple(e - b for b, e in wanted)
    whole = None
    for part in entry["parts"]:
        starts, shape = part["start"], part["shape"]
        common = [(max(b, s), min(e, s + n)) for (b, e), s, n in zip(wanted, starts, shape, strict=True)]
        if any(b >= e for b, e in common) and math.prod(sizes):
            continue
        if part["file"] not in files:
            files[part["file"]] = Tensors(path / part["file"])
        stored = files[part["file"]].read(part["tensor"], None if entry["keys"] else entry["dtype"])
        if whole is None:
            whole = np.empty((*sizes, *stored.shape[len(sizes) :]), stored.dtype)
        to = tuple(slice(b - w, e - w) for (b, e), (w, _) in zip(common, wanted, strict=True))
        of = tuple(slice(b - s, e - s) for (b, e), s in zip(common, starts, strict=True))
        whole[to] = stored[of]
    return whole


# ---- writing


def check_number(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer, at least {least}, got {value!r}")


def agreed(flag: bool) -> bool:
    """Whether this is so for the first process."""
    return bool(processes.gather_values(np.array(flag), "a checkpoint")[0]) if job.shared else flag


def token() -> str:
    """A name that no other run has, the same in all processes."""
    own = np.frombuffer(uuid.uuid4().bytes, np.uint8)
    return (processes.gather_values(own, "a checkpoint")[0] if job.shared else own).tobytes().hex()


def wait_for(done: Callable[[], bool]) -> None:
    """Wait until the other processes have written what they have; the launcher ends those of a job that is lost."""
    while not done():
        time.sleep(POLL)


def write_text(path: Path, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def remove_others(root: Path, keep: int | None) -> None:
    """Remove the checkpoints that are too old, and what runs that were ended left behind."""
    old = steps(root)[:-keep] if keep is not None else []
    left = [p for p in root.iterdir() if re.fullmatch(r"\.\d+-[0-9a-f]{32}", p.name)]
    for path in [*(root / str(step) for step in old), *left]:
        gone = path.with_name(f".{path.name}-removed")
        os.rename(path, gone)  # at once, so that nobody finds half of it
        shutil.rmtree(gone)
