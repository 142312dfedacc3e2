"""Traces of what a program does when, in the Trace Event format, which https://ui.perfetto.dev opens, and in XLA's; and
which arrays are alive.

A trace holds tracing and compiling of jitted functions, and what users annotate. What the steps inside of a compiled
program take, ``f.profile(*args)`` says.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from catena.core import events as _events
from catena.core.device import devices as _devices
from catena.core.locks import new_lock as _new_lock
from catena.core.namespace import shown as _shown
from catena.core.source import function_name as _function_name
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.tools import memory_profile as _memory_profile
from catena.tools.profile_data import ProfileData as ProfileData
from catena.tools.profile_data import ProfileEvent as ProfileEvent
from catena.tools.profile_data import ProfilePlane as ProfilePlane
from catena.tools.profile_data import xspace as _xspace


class _Recorder:
    """A trace that is being taken."""

    def __init__(self, folder: Path, perfetto: bool, level: int):
        self.folder, self.perfetto, self.events, self.threads = folder, perfetto, [], {}
        self.level, self.began = level, time.time()

    def add(self, name: str, start: float, end: float, metadata: dict) -> None:
        """Something that happened in this thread, between these seconds since the epoch."""
        thread = threading.current_thread()
        self.threads[thread.ident] = thread.name
        event = {"name": name, "ph": "X", "ts": start * 1e6, "dur": (end - start) * 1e6, "pid": os.getpid()}
        self.events.append(event | {"tid": thread.ident, "args": {k: _plain(v) for k, v in metadata.items()}})

    def span(self, event: str, start: float, end: float, **metadata) -> None:
        """The listener for what the package tells by itself."""
        self.add(event.rpartition("/")[2].removesuffix("_duration"), start, end, metadata)

    def write(self) -> None:
        """Write the files."""
        names = [("process_name", 0, f"catena, process {os.getpid()}")]
        names += [("thread_name", tid, name) for tid, name in self.threads.items()]
        heads = [{"name": n, "ph": "M", "pid": os.getpid(), "tid": t, "args": {"name": x}} for n, t, x in names]
        text = json.dumps({"displayTimeUnit": "ms", "traceEvents": [*heads, *self.events]}).encode()
        self.folder.mkdir(parents=True, exist_ok=True)
        files = [f"{platform.node() or 'host'}.trace.json.gz", *["perfetto_trace.json.gz"] * self.perfetto]
        for name in files:
            (self.folder / name).write_bytes(gzip.compress(text))
        space = _xspace(self.events, self.threads, self.began, time.time(), os.getpid())
        (self.folder / f"{platform.node() or 'host'}.xplane.pb").write_bytes(space)


def _plain(x):
    return x if isinstance(x, str | int | float | bool) else str(x)


_lock = _new_lock()
_recorder: list[_Recorder] = []  # the one that is at work, if any


_OPTIONS = {
    "advanced_configuration": {},
    "duration_ms": 0,
    "enable_hlo_proto": True,
    "host_tracer_level": 2,
    "include_dataset_ops": True,
    "python_tracer_level": 1,
    "raise_error_on_start_failure": False,
    "repository_path": "",
    "session_id": "",
    "start_timestamp_ns": 0,
}


class ProfileOptions:
    """What a trace is to hold.

    ``host_tracer_level``: 0 for nothing, 1 for what users annotate, from 2 on (the default) also tracing and compiling.
    ``session_id``: the name of the folder of the trace; by default the time. The others, among them
    ``python_tracer_level``, speak of tracers that are not here: values are checked, and read back.

    >>> import catena as jax
    >>> options = jax.profiler.ProfileOptions()
    >>> options.host_tracer_level = 1
    """

    __slots__ = tuple(_OPTIONS)

    def __init__(self):
        for name, value in _OPTIONS.items():
            setattr(self, name, dict(value) if isinstance(value, dict) else value)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(_OPTIONS.get(name))
        if name in _OPTIONS and type(value) is not kind:
            raise TypeError(f"ProfileOptions.{name} must be of {kind}, got {value!r}")
        if name == "session_id" and (os.sep in value or value in (".", "..")):
            raise ValueError(f"ProfileOptions.session_id is the name of a folder, got {value!r}")
        object.__setattr__(self, name, value)

    def __repr__(self):
        return f"ProfileOptions({', '.join(f'{name}={getattr(self, name)!r}' for name in _OPTIONS)})"


def start_trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Begin to take a trace, until `stop_trace`.

    Arguments:
      log_dir: the folder to write to: ``plugins/profile/TIME/HOST.trace.json.gz`` in it, and ``HOST.xplane.pb``.
      create_perfetto_link: must be False: nothing is served; open the file in Perfetto.
      create_perfetto_trace: whether to write ``perfetto_trace.json.gz`` beside it, which is the same.
      profiler_options: what it is to hold.
    Raises:
      RuntimeError: one is being taken. ValueError, TypeError: an option is not as described.
    """
    if create_perfetto_link:
        raise ValueError("start_trace: create_perfetto_link: nothing is served; open the file at ui.perfetto.dev")
    options = ProfileOptions() if profiler_options is None else profiler_options
    if not isinstance(options, ProfileOptions):
        raise TypeError(f"start_trace: profiler_options must be ProfileOptions or None, got {profiler_options!r}")
    name = options.session_id or time.strftime("%Y_%m_%d_%H_%M_%S")
    folder = Path(log_dir) / "plugins" / "profile" / name
    with _lock:
        if _recorder:
            raise RuntimeError("a trace is being taken already; there can be one at a time")
        _recorder.append(_Recorder(folder, bool(create_perfetto_trace), options.host_tracer_level))
    if options.host_tracer_level > 1:
        _events.spans.append(_recorder[0].span)


def stop_trace() -> None:
    """End the trace and write it.

    Raises:
      RuntimeError: none is being taken.
    """
    with _lock:
        if not _recorder:
            raise RuntimeError("no trace is being taken")
        recorder = _recorder.pop()
    if recorder.span in _events.spans:
        _events.spans.remove(recorder.span)
    recorder.write()


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Take a trace of a ``with`` block; arguments and errors are those of `start_trace`.

    >>> import os, tempfile
    >>> import catena as jax
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with jax.profiler.trace(folder, create_perfetto_trace=True):
    ...         y = jax.jit(lambda x: x + 1)(1)
    ...     [name for *_, files in os.walk(folder) for name in files if name.startswith("perfetto")]
    ['perfetto_trace.json.gz']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """A name for a ``with`` block in traces.

    Arguments:
      name: the name.
      metadata: what else is shown of it.

    >>> import catena as jax
    >>> with jax.profiler.TraceAnnotation("load", file="a.npy"):
    ...     x = 1
    """

    def __init__(self, name: str, **metadata: Any):
        if not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: the name must be a string, got {name!r}")
        self._name, self._metadata = name, metadata

    @staticmethod
    def is_enabled() -> bool:
        """Whether a trace is being taken."""
        return bool(_recorder)

    def set_metadata(self, **metadata: Any) -> None:
        """Show more of it."""
        self._metadata = self._metadata | metadata

    def __enter__(self):
        self._start = time.time()
        return self

    def __exit__(self, *exc_info) -> None:
        for recorder in [r for r in _recorder if r.level > 0]:
            recorder.add(self._name, self._start, time.time(), self._metadata)


class StepTraceAnnotation(TraceAnnotation):
    """A name for a step of a loop, in traces.

    Arguments:
      name: the name.
      metadata: what else is shown of it, such as ``step_num``.

    >>> import catena as jax
    >>> for step in range(2):
    ...     with jax.profiler.StepTraceAnnotation("train", step_num=step):
    ...         x = step
    """


def device_memory_profile(backend: str | None = None) -> bytes:
    """What lives in memory: a profile that ``pprof`` and https://github.com/google/pprof show, arrays by their types.

    Arguments:
      backend: ``"cpu"``, or None for the default.
    Returns:
      The compressed profile.

    >>> import gzip
    >>> import catena as jax, catena.numpy as jnp
    >>> x = jnp.ones((3, 5))
    >>> b"float32[3,5]" in gzip.decompress(jax.profiler.device_memory_profile())
    True
    """
    _devices(backend)
    return _memory_profile.profile()


def save_device_memory_profile(filename: str | os.PathLike, backend: str | None = None) -> None:
    """Write ``device_memory_profile`` to a file: ``pprof -top FILE`` shows who holds how much.

    Arguments:
      filename: the path of the file.
      backend: ``"cpu"``, or None for the default.

    >>> import tempfile, pathlib
    >>> import catena as jax
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jax.profiler.save_device_memory_profile(pathlib.Path(folder) / "memory.prof")
    """
    Path(filename).write_bytes(device_memory_profile(backend))


def annotate_function(func: Callable, name: str | None = None, **decorator_kwargs: Any) -> Callable:
    """A function whose calls have a name in traces.

    Arguments:
      func: the function.
      name: the name; by default its own.
      decorator_kwargs: what else is shown of them.
    Returns:
      A function like ``func``.

    >>> import catena as jax
    >>> @jax.profiler.annotate_function
    ... def load(x):
    ...     return x
    >>> load(3)
    3
    """
    shown = _function_name(func) if name is None else name

    @functools.wraps(func)
    def annotated(*args, **kwargs):
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


_open_door(globals(), "catena.profiler")

__dir__ = _shown(globals())

_absent(globals())
