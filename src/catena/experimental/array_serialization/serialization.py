"""Arrays written to files in the background: `GlobalAsyncCheckpointManager`, over `tensorstore_impl`."""

from __future__ import annotations

import abc
import functools
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from catena.core.array import Array
from catena.core.formats import Format
from catena.core.job import job
from catena.core.sharding import Sharding
from catena.core.unbuilt import absent as _absent
from catena.experimental import multihost_utils
from catena.experimental.array_serialization import tensorstore_impl
from catena.experimental.array_serialization.tensorstore_impl import async_deserialize as async_deserialize
from catena.experimental.array_serialization.tensorstore_impl import async_serialize as async_serialize
from catena.experimental.array_serialization.tensorstore_impl import run_deserialization as run_deserialization
from catena.experimental.array_serialization.tensorstore_impl import run_serialization as run_serialization

get_tensorstore_spec = functools.partial(tensorstore_impl.get_tensorstore_spec, ocdbt=False, driver="zarr")


class BarrierTimeoutError(Exception):
    """A process did not come to the end of a checkpoint in time, and the others wait for it."""


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a path, or a spec of tensorstore, leads to a bucket on the network.

    Arguments:
      tspec: a path, a URL or a spec.

    >>> from catena.experimental.array_serialization import serialization
    >>> serialization.is_remote_storage("gs://bucket/weights"), serialization.is_remote_storage("/data/weights")
    (True, False)
    """
    if isinstance(tspec, str):
        return re.match("(?:gs|s3)://", tspec) is not None
    inner = [tspec[key] for key in ("base", "kvstore") if key in tspec]
    return tspec.get("driver") in ("gcs", "s3") or any(map(is_remote_storage, inner))


class AsyncManager:
    """Waits in the background until what is being written is written, and then calls a function.

    Arguments:
      timeout_secs: with several processes, how many seconds the writing of this one may take.
    """

    def __init__(self, timeout_secs: int = 300):
        self._timeout_secs = timeout_secs
        self._futures: Sequence = ()
        self._thread: threading.Thread | None = None
        self._exception: Exception | None = None

    def _add_futures(self, futures: Sequence) -> None:
        self._futures = futures

    def _start_async_commit(self, on_commit_callback: Callable[[], None]) -> None:
        """Wait for the futures in the background; with several processes, whose end all wait for together, here."""
        self._thread = threading.Thread(target=self._finish, args=(on_commit_callback,))
        self._thread.start()
        if job.shared:
            self._thread.join(self._timeout_secs)
            if self._thread.is_alive():
                raise BarrierTimeoutError(f"process {job.index} has not written its parts in {self._timeout_secs} s")
            self.check_for_errors()
            multihost_utils.sync_global_devices("array_serialization")

    def _finish(self, on_commit_callback: Callable[[], None]) -> None:
        try:
            for future in self._futures:
                future.result()
            if job.index == 0:
                on_commit_callback()
        except Exception as error:  # raised where somebody waits for the end
            self._exception = error

    def check_for_errors(self) -> None:
        """Raise the error that writing has met, once."""
        error, self._exception = self._exception, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait until all is written.

        Raises: the error that writing, or the function that is called at the end, has met.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """What a manager of checkpoints can do: write in the background, and read."""

    @abc.abstractmethod
    def check_for_errors(self):
        """Raise the error that writing has met."""

    @abc.abstractmethod
    def wait_until_finished(self):
        """Wait until all is written."""

    @abc.abstractmethod
    def serialize(self, arrays, tensorstore_specs, *, on_commit_callback: Callable[[], None]):
        """Write arrays, and call a function when they are written."""

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Sharding],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[tuple[int, ...]] | None = None,
        dtypes: Sequence[Any] | None = None,
    ):
        """Read arrays."""


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays to tensorstore while the program goes on, and reads them; tensorstore is installed beside catena.

    Arguments:
      timeout_secs: with several processes, how many seconds the writing of this one may take.

    With several processes each writes the parts that it has, and ``serialize`` returns when all have written theirs.

    >>> from catena.experimental.array_serialization import serialization
    >>> manager = serialization.GlobalAsyncCheckpointManager()
    >>> manager.wait_until_finished()
    """

    def serialize(
        self,
        arrays: Sequence[Array],
        tensorstore_specs: Sequence[Any],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Begin to write arrays, once what was being written before is written.

        Arguments:
          arrays: the arrays.
          tensorstore_specs: where to, for each.
          on_commit_callback: called, in the background and by the first process only, when all is written.
          transaction: a ``tensorstore.Transaction``; who made it commits it, and no function is called.
        Raises:
          ValueError: there are more of one than of the other. TypeError: one is no array.
        """
        self.wait_until_finished()
        tensorstore_impl._in_step("serialize", arrays=arrays, tensorstore_specs=tensorstore_specs)
        futures: list = []
        works = zip(arrays, tensorstore_specs, strict=True)
        tensorstore_impl.run(async_serialize(x, spec, futures, transaction=transaction) for x, spec in works)
        if transaction is None:
            self._add_futures(futures)
            self._start_async_commit(on_commit_callback or (lambda: None))

    def serialize_with_paths(
        self,
        arrays: Sequence[Array],
        paths: Sequence[str],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """The same, with a path for each array."""
        specs = [get_tensorstore_spec(path) for path in paths]
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(
        self,
        shardings: Sequence[Sharding | Format],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[tuple[int, ...]] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """Read arrays, once what was being written is written. See `run_deserialization`."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(
        self,
        shardings: Sequence[Sharding],
        paths: Sequence[str],
        global_shapes: Sequence[tuple[int, ...]] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """The same, with a path for each array."""
        specs = [get_tensorstore_spec(path) for path in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)


_absent(globals())
