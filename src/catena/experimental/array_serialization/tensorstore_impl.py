"""Arrays written to and read from tensorstore (https://google.github.io/tensorstore), which a user installs beside
catena: where an array is stored, and in which chunks, is a "spec", a dictionary whose form tensorstore describes.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.array import Array
from catena.core.formats import Format
from catena.core.job import job
from catena.core.lazy import LazyModule
from catena.core.sharding import Sharding, SingleDeviceSharding
from catena.core.struct import ShapeDtypeStruct
from catena.core.unbuilt import absent as _absent
from catena.parallel.arrays import make_array_from_single_device_arrays
from catena.transform.placement import device_put

ts: Any = LazyModule("tensorstore")

FILE_SIZE = 2 << 30  # bytes of a chunk, at most
BUCKETS = {"gs://": "gcs", "s3://": "s3"}
_BUCKET = re.compile(r"(?:gs|s3)://([^/]+)/(.*)")
# Where a spec for an array of a certain shape has what is to be stored: in zarr 2 and 3.
METADATA: dict[str, Callable[[Any, list], dict]] = {
    "zarr": lambda arr, chunks: {"compressor": {"id": "zstd"}, "shape": arr.shape, "chunks": chunks},
    "zarr3": lambda arr, chunks: {
        "codecs": [],
        "shape": arr.shape,
        "data_type": dtypes.dtype_name(arr.dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
    },
}


@functools.cache
def default_context() -> Any:
    """What files are opened with where nobody says else: how much is read and written at once."""
    return ts.Context({"file_io_concurrency": {"limit": 128}, "cache_pool": {"total_bytes_limit": 0}})


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str],
    ocdbt: bool = True,
    process_idx: int | None = None,
    arr: Array | None = None,
    driver: str = "zarr3",
) -> dict[str, Any]:
    """Where tensorstore finds an array.

    Arguments:
      ckpt_path: a path of a file system, or one that begins with ``gs://`` or ``s3://``; absolute, with ``ocdbt``.
      ocdbt: whether arrays share files: those in one folder do.
      process_idx: the number of the process that writes, which then has a folder of its own; with ``ocdbt``.
      arr: the array, if its shape and its chunks are to be in the spec.
      driver: ``"zarr"`` or ``"zarr3"``.
    Returns:
      A spec of tensorstore.
    Raises:
      ValueError: the path is not absolute where it must be, or has no bucket.

    >>> from catena.experimental.array_serialization import tensorstore_impl
    >>> tensorstore_impl.get_tensorstore_spec("/data/step1/weights", ocdbt=False)
    {'driver': 'zarr3', 'kvstore': {'driver': 'file', 'path': '/data/step1/weights'}}
    """
    path = re.sub(r"^(gs|s3):/(?!/)", r"\1://", os.path.normpath(os.fspath(ckpt_path)))
    spec: dict[str, Any] = {"driver": driver, "kvstore": store(path)}
    if ocdbt:
        folder, name = os.path.split(path)
        if not (os.path.isabs(folder) or path[:5] in BUCKETS):
            raise ValueError(
                f"get_tensorstore_spec: the path must be absolute with ocdbt, got {os.fspath(ckpt_path)!r}"
            )
        base = folder if process_idx is None else f"{folder}/process_{process_idx}"
        spec["kvstore"] = {"driver": "ocdbt", "base": store(base), "path": name}
    if arr is not None:
        spec["metadata"] = METADATA[driver](arr, chunk_shape(arr))
    return spec


def store(path: str) -> dict[str, Any]:
    """The store of keys and values at a path."""
    driver = BUCKETS.get(path[:5])
    if driver is None:
        return {"driver": "file", "path": path}
    found = _BUCKET.fullmatch(path)
    if found is None:
        raise ValueError(f"get_tensorstore_spec: the path names no bucket and key: {path!r}")
    return {"driver": driver, "bucket": found[1], "path": found[2]}


def chunk_shape(arr: Any) -> list[int]:
    """The shape of a device's part of an array; where it is too large for a file, its longest axes are halved."""
    sizes = list(arr.sharding.shard_shape(arr.shape) if isinstance(arr, Array) else arr.shape)
    while math.prod(sizes) * arr.dtype.itemsize > FILE_SIZE:
        axis = max((i for i, size in enumerate(sizes) if size % 2 == 0), key=sizes.__getitem__, default=None)
        if axis is None:
            break
        sizes[axis] //= 2
    return [max(size, 1) for size in sizes]


def is_tensorstore_spec_leaf(leaf: Any) -> bool:
    """Whether this node of a tree is a spec: a dictionary that says a driver or a store.

    >>> from catena.experimental.array_serialization import tensorstore_impl
    >>> tensorstore_impl.is_tensorstore_spec_leaf({"driver": "zarr"})
    True
    """
    return leaf is None or isinstance(leaf, dict) and bool({"driver", "kvstore"} & leaf.keys())


class Limiter:
    """How many bytes may be on their way at once; who wants more waits."""

    def __init__(self, limit: int):
        self.limit, self.free, self.changed = limit, limit, asyncio.Condition()

    async def wait_for_bytes(self, requested_bytes: int) -> None:
        """Take so many bytes, when they are free."""
        if requested_bytes > self.limit:
            raise ValueError(f"{requested_bytes} bytes are asked for at once, and at most {self.limit} may be")
        async with self.changed:
            await self.changed.wait_for(lambda: self.free >= requested_bytes)
            self.free -= requested_bytes

    async def release_bytes(self, requested_bytes: int) -> None:
        """Give them back."""
        async with self.changed:
            self.free += requested_bytes
            self.changed.notify_all()


async def async_serialize(
    arr_inp: Array,
    tensorstore_spec: Any,
    commit_future: list | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    primary_host: int | None = None,
    replica_id: int = 0,
    transaction: Any = None,
) -> None:
    """Write an array: of each part the copy with number ``replica_id``, by the process that has it.

    Arguments:
      arr_inp: the array.
      tensorstore_spec: where to; what it does not say of the chunks is added.
      commit_future: a list that futures are put into, which are done when all is written; else this waits for it.
      context: a ``tensorstore.Context``.
      chunk_layout: a ``tensorstore.ChunkLayout``.
      primary_host: the process that makes the file; by default each does whose part comes first.
      replica_id: the number of the copy that is written.
      transaction: a ``tensorstore.Transaction``, which the writing becomes a part of.
    Raises:
      TypeError: this is no array, or one of random keys. ValueError: another array is stored there.
    """
    if not isinstance(arr_inp, Array):
        raise TypeError(f"serialize: arrays are written, got {arr_inp!r} of {type(arr_inp)}")
    if arr_inp.aval.extended:
        raise TypeError(f"serialize: keys are written by their words, jax.random.key_data(keys); got {arr_inp.dtype}")
    spec = dict(tensorstore_spec)
    spec.setdefault("metadata", METADATA[spec.get("driver", "zarr")](arr_inp, chunk_shape(arr_inp)))
    spec.setdefault("dtype", dtypes.dtype_name(arr_inp.dtype))
    options = {"context": context or default_context(), "chunk_layout": chunk_layout, "transaction": transaction}
    file = None
    if primary_host in (None, job.index):
        file = await ts.open(ts.Spec(spec), create=True, open=True, **_given(options))
    elif job.shared:
        file = await ts.open(ts.Spec(spec), open=True, assume_metadata=True, **_given(options))
    futures = [write(file, s) for s in arr_inp.addressable_shards if s.replica_id == replica_id] if file else []
    if commit_future is not None:
        commit_future.extend(future.commit for future in futures)
        await asyncio.gather(*(future.copy for future in futures))
    else:
        await asyncio.gather(*(future.commit for future in futures))


def write(file: Any, shard: Any) -> Any:
    """Begin to write a part of an array; its memory stays as it is, since nobody can write to it."""
    return file[shard.index].write(np.asarray(shard.data), can_reference_source_data_indefinitely=True)


def _given(options: dict) -> dict:
    return {name: value for name, value in options.items() if value is not None}


async def async_deserialize(
    in_type: Sharding | Format | ShapeDtypeStruct,
    tensorstore_spec: Any,
    global_shape: Sequence[int] | None = None,
    dtype: Any = None,
    byte_limiter: Limiter | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    assume_metadata: bool = False,
) -> Array:
    """Read an array: of each part of the layout what is stored, zeros where nothing is.

    Arguments:
      in_type: how the array is to lie: a sharding, a ``Format``, or a ``ShapeDtypeStruct`` with a sharding.
      tensorstore_spec: where it is.
      global_shape: its shape; by default what is stored. A smaller one is its beginning, a larger one has zeros behind.
      dtype: its dtype; by default what is stored.
      byte_limiter: how many bytes may be on their way at once.
      context: a ``tensorstore.Context``.
      chunk_layout: a ``tensorstore.ChunkLayout``.
      assume_metadata: whether the spec says all of the metadata, so that none is read.
    Returns:
      An array.
    Raises:
      TypeError: ``in_type`` does not say on which devices. ValueError: there is no such array.
    """
    place: Any = in_type.sharding if isinstance(in_type, (Format, ShapeDtypeStruct)) else in_type
    if not isinstance(place, Sharding):
        raise TypeError(
            f"deserialize: a sharding, or a Format that has one, must say on which devices; got {in_type!r}"
        )
    if isinstance(in_type, ShapeDtypeStruct):
        global_shape, dtype = global_shape or in_type.shape, dtype or in_type.dtype
    options = {"context": context or default_context(), "chunk_layout": chunk_layout}
    file = await ts.open(ts.Spec(tensorstore_spec), open=True, assume_metadata=assume_metadata, **_given(options))
    shape = tuple(file.shape if global_shape is None else global_shape)
    wanted = dtypes.canonical(np.dtype(file.dtype.numpy_dtype if dtype is None else dtype))
    indices = place.addressable_devices_indices_map(shape)
    layout = in_type.layout if isinstance(in_type, Format) else None

    async def part(device, index):
        value = await read(file, index, shape, wanted, byte_limiter)
        here = SingleDeviceSharding(device, memory_kind=place.memory_kind)
        return device_put(value, Format(layout, here))

    parts = await asyncio.gather(*(part(device, index) for device, index in indices.items()))
    return make_array_from_single_device_arrays(shape, place, parts)


async def read(file: Any, index: tuple, shape: tuple, dtype: np.dtype, limiter: Limiter | None) -> np.ndarray:
    """A part of what is stored, in a dtype; zeros where it reaches over the end."""
    bounds = [part.indices(size)[:2] for part, size in zip(index, shape, strict=True)]
    held = [(min(a, n), min(b, n)) for (a, b), n in zip(bounds, file.shape, strict=True)]
    out = np.zeros([b - a for a, b in bounds], dtype)
    stored = file[tuple(slice(a, b) for a, b in held)]
    size = math.prod(b - a for a, b in held) * file.dtype.numpy_dtype.itemsize
    if limiter is not None:
        await limiter.wait_for_bytes(size)
    try:
        out[tuple(slice(0, b - a) for a, b in held)] = (await stored.read()).astype(dtype, copy=False)
    finally:
        if limiter is not None:
            await limiter.release_bytes(size)
    return out


def run_serialization(arrays: Sequence[Array], tensorstore_specs: Sequence[Any]) -> None:
    """Write arrays, and wait until they are written. See `async_serialize`.

    Arguments:
      arrays: the arrays.
      tensorstore_specs: where to, for each.
    """
    _in_step("run_serialization", arrays=arrays, tensorstore_specs=tensorstore_specs)
    run(async_serialize(x, spec) for x, spec in zip(arrays, tensorstore_specs, strict=True))


def run_deserialization(
    shardings: Sequence[Sharding | Format],
    tensorstore_specs: Sequence[Any],
    global_shapes: Sequence[tuple[int, ...]] | None = None,
    dtypes: Sequence[Any] | None = None,
    concurrent_gb: int = 32,
) -> list[Array]:
    """Read arrays. See `async_deserialize`.

    Arguments:
      shardings: how each is to lie.
      tensorstore_specs: where each is.
      global_shapes, dtypes: what each is to have; by default what is stored.
      concurrent_gb: how many gigabytes may be on their way at once.
    Returns:
      The arrays.
    """
    count = len(shardings)
    shapes, kinds = (list(x) if x is not None else [None] * count for x in (global_shapes, dtypes))
    _in_step("run_deserialization", shardings=shardings, specs=tensorstore_specs, global_shapes=shapes, dtypes=kinds)

    async def all_of_them():
        limiter = Limiter(concurrent_gb * 10**9)
        parts = zip(shardings, tensorstore_specs, shapes, kinds, strict=True)
        return await asyncio.gather(*(async_deserialize(*part, limiter) for part in parts))

    return asyncio.run(all_of_them())


def run(works: Any) -> list:
    """What these return, all under way at once."""

    async def together(works: list[Awaitable]) -> list:
        return await asyncio.gather(*works)

    return asyncio.run(together(list(works)))


def _in_step(function: str, **sequences: Sequence) -> None:
    if len({len(x) for x in sequences.values()}) > 1:
        counts = ", ".join(f"{len(x)} {name}" for name, x in sequences.items())
        raise ValueError(f"{function}: one of each for an array, got {counts}")


_absent(globals())
