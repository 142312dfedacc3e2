"""Tracebacks that end at the user's line: the package's own frames are left out.

An exception that leaves the package loses the package's frames at the door, so that whoever shows it, Python, pytest,
a log or a notebook, shows the user's frames. Every public function is such a door: it catches what passes, calls
``shorten`` and raises again with a bare ``raise``, which adds no frame, not even its own. Where nothing is raised
that costs nothing: functions with a short path have it in their own bodies, transformations and whole namespaces are
wrapped (``api_boundary``, ``open_door``). What is left, such as a frame of a method that Python itself calls, goes
when an uncaught exception is shown. The flag ``jax_traceback_filtering`` chooses:

``auto`` and ``remove_frames``: frames are removed; a line says so under an exception that nobody caught.
``quiet_remove_frames``: frames are removed, and a note of the exception says so.
``tracebackhide``: frames stay, marked with ``__tracebackhide__``, which pytest and IPython honour.
``off``: nothing is removed.
"""

import functools
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

from catena.core.context import context
from catena.core.source import PACKAGE

Fun = TypeVar("Fun", bound=Callable[..., Any])
STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
LIBRARIES = tuple(
    f"{os.sep}site-packages{os.sep}{name}{os.sep}" for name in ("numpy", "scipy", "ml_dtypes", "llvmlite", "opt_einsum")
)
NOTE = "The frames of catena itself are left out of this traceback; set CATENA_TRACEBACK_FILTERING=off to see them."


EXCLUDED: list[str] = []  # what the paths of further files begin with, that count as the package's


def is_internal(file_name: str) -> bool:
    """Whether a frame of this file belongs to the package."""
    return file_name.startswith(PACKAGE) or any(map(file_name.startswith, EXCLUDED))


def include_frame(frame: FrameType) -> bool:
    """Whether a frame stays in tracebacks that are shown to users."""
    return not is_internal(frame.f_code.co_filename)


def is_library(file_name: str) -> bool:
    """Whether a frame of this file, called by the package, is of no interest either."""
    in_standard_library = file_name.startswith(STANDARD_LIBRARY) and "-packages" + os.sep not in file_name
    return in_standard_library or file_name.startswith("<frozen") or any(name in file_name for name in LIBRARIES)


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the package's frames and those of libraries that it called; all of it if none is left."""
    kept: list[TracebackType] = []
    internal = False
    entry = traceback
    while entry is not None:
        file_name = entry.tb_frame.f_code.co_filename
        internal = is_internal(file_name) or (internal and is_library(file_name))
        if internal and all(e.tb_frame.f_code.co_filename == "<frozen runpy>" for e in kept):
            kept.clear()  # the frames that started the package: python -m catena run
        if not internal:
            kept.append(entry)
        entry = entry.tb_next
    shortened = None
    for entry in reversed(kept):
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shortened


def mark_hidden(traceback: TracebackType | None) -> None:
    """Set ``__tracebackhide__`` in the package's frames, which pytest and IPython honour."""
    while traceback is not None:
        if is_internal(traceback.tb_frame.f_code.co_filename):
            traceback.tb_frame.f_locals["__tracebackhide__"] = True
        traceback = traceback.tb_next


def shorten(error: BaseException) -> BaseException:
    """``error``, its traceback treated as the flag ``jax_traceback_filtering`` says."""
    mode = context.traceback_filtering
    if mode == "off":
        return error
    if mode == "tracebackhide":
        mark_hidden(error.__traceback__)
        return error
    error.__traceback__ = user_frames(error.__traceback__)
    error.__shortened__ = True  # type: ignore[attr-defined]  # for `filter_uncaught`, which says so
    cause = error.__context__
    if cause is not None and error.__cause__ is None and is_own(cause):
        error.__suppress_context__ = True  # what the package itself caught on its way to this error
    if mode == "quiet_remove_frames" and NOTE not in getattr(error, "__notes__", ()):
        error.add_note(NOTE)
    return error


def is_own(error: BaseException) -> bool:
    """Whether an exception was raised and caught within the package."""
    entry = error.__traceback__
    return entry is not None and is_internal(entry.tb_frame.f_code.co_filename)


class Boundary:
    """A context manager from whose exceptions the package's frames are removed, so that the user's frames remain."""

    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if isinstance(error, Exception):
            shorten(error)
        return False


boundary = Boundary()


def api_boundary(fun: Fun) -> Fun:
    """The same for a function: one from whose exceptions the package's frames are removed, so that
    the user's frames remain.
    """

    @functools.wraps(fun)
    def bounded(*args, __fun__=fun, **kwargs):  # no closure, so that qwix can give it other code
        try:
            return __fun__(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return bounded  # type: ignore[return-value]


_BOUNDED = api_boundary(is_internal).__code__


def behind_boundary(fun):
    """The function that a boundary runs; any other object itself. For those who compare functions by identity."""
    return fun.__wrapped__ if getattr(fun, "__code__", None) is _BOUNDED else fun


def is_boundary(fun) -> bool:
    """Whether a function removes the package's frames from exceptions itself."""
    return "shorten" in fun.__code__.co_names


def door(fun: Fun, module: str) -> Fun:
    """``fun`` as a function of a public module: a boundary that is found by the module's name, as pickling needs."""
    if is_boundary(fun):
        return fun
    public = api_boundary(fun)
    public.__module__ = module
    return public


def open_door(namespace: dict, module: str, *, own: bool = False):
    """Make every function of a public module, given by its ``globals()``, a boundary that is found by this module's
    name, as pickling needs. ``own``: only those that are defined in it, the others being what it works with.
    """
    for name, fun in list(namespace.items()):
        if own and getattr(fun, "__module__", None) != module:
            continue
        if type(fun) is type(open_door) and not name.startswith("_"):
            namespace[name] = door(fun, module)


# ---- exceptions that nobody catches


def shorten_chain(error: BaseException | None) -> bool:
    """Shorten the tracebacks of an exception and of those it came from; says whether it changed any."""
    seen: set[int] = set()
    pending = [error]
    changed = False
    while pending:
        e = pending.pop()
        if e is None or id(e) in seen:
            continue
        seen.add(id(e))
        before = e.__traceback__
        after = user_frames(before)
        if after is not None and length(after) != length(before):
            e.__traceback__ = after
            changed = True
        pending += [e.__cause__, e.__context__]
    return changed


def length(traceback: TracebackType | None) -> int:
    count = 0
    while traceback is not None:
        count, traceback = count + 1, traceback.tb_next
    return count


def filter_uncaught(error: BaseException | None) -> None:
    """Shorten what is about to be shown, and say so."""
    mode = context.traceback_filtering
    if mode in ("off", "tracebackhide"):
        return
    shortened_now = shorten_chain(error)
    if mode != "quiet_remove_frames" and (shortened_now or hasattr(error, "__shortened__")):
        print(NOTE, file=sys.stderr)


def install() -> None:
    """Put the filter in front of the hooks that show uncaught exceptions."""
    show, show_in_thread = sys.excepthook, threading.excepthook

    def excepthook(kind, error, traceback):
        filter_uncaught(error)
        show(kind, error, error.__traceback__ if error is not None else traceback)

    def thread_excepthook(args):
        filter_uncaught(args.exc_value)
        shown = args.exc_value.__traceback__ if args.exc_value is not None else args.exc_traceback
        show_in_thread(threading.ExceptHookArgs((args.exc_type, args.exc_value, shown, args.thread)))

    sys.excepthook, threading.excepthook = excepthook, thread_excepthook
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), show_in_ipython)


def show_in_ipython(shell, kind, error, traceback, tb_offset=None):
    """IPython's handler of exceptions in a cell."""
    filter_uncaught(error)
    shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)


install()
