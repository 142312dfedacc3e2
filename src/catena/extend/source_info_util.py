"""Where in a user's program operations come from: names of scopes, lines, and files that tracebacks leave out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from catena.core.context import context
from catena.core.namespace import shown as _shown
from catena.core.source import NameStack as NameStack
from catena.core.source import user_source as _user_source
from catena.core.traceback import EXCLUDED as _EXCLUDED


@dataclass(frozen=True)
class SourceInfo:
    """Where an operation comes from: its place, which stands for JAX's traceback, and the scopes around it."""

    traceback: Any
    name_stack: NameStack

    def replace(self, *, traceback: Any = None, name_stack: NameStack | None = None) -> SourceInfo:
        """The same with another part."""
        return SourceInfo(
            self.traceback if traceback is None else traceback, self.name_stack if name_stack is None else name_stack
        )


def new_source_info() -> SourceInfo:
    """Nothing known of the place.

    >>> from catena.extend import source_info_util
    >>> source_info_util.summarize(source_info_util.new_source_info())
    'unknown'
    """
    return SourceInfo(None, NameStack())


def current() -> SourceInfo:
    """The place of the user's line that is running, and the scopes around it."""
    return SourceInfo(context.source or _user_source(context.name_stack), context.name_stack)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The place as ``file:line (function)``.

    Arguments:
      source_info: what ``current`` gives, or the ``source_info`` of an equation.
      num_frames: how many frames to show; one is known.
    """
    place = getattr(source_info, "traceback", source_info)
    return "unknown" if place is None or num_frames < 1 else str(place)


def current_name_stack() -> NameStack:
    """The scopes around what is running.

    >>> import catena as jax
    >>> from catena.extend import source_info_util
    >>> with jax.named_scope("layer"):
    ...     str(source_info_util.current_name_stack())
    'layer'
    """
    return context.name_stack


def new_name_stack(name: str = "") -> NameStack:
    """No scopes, or one.

    >>> from catena.extend import source_info_util
    >>> str(source_info_util.new_name_stack("layer"))
    'layer'
    """
    return NameStack((name,)) if name else NameStack()


@contextlib.contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """Put other scopes around what runs within a ``with`` block."""
    before = context.name_stack
    context.name_stack = name_stack
    try:
        yield
    finally:
        context.name_stack = before


def reset_name_stack():
    """Take the scopes away from around what runs within a ``with`` block."""
    return set_name_stack(NameStack())


@contextlib.contextmanager
def extend_name_stack(name: str) -> Iterator[NameStack]:
    """Put one more scope around what runs within a ``with`` block."""
    stack = context.name_stack.extend(name)
    with set_name_stack(stack):
        yield stack


def transform_name_stack(name: str):
    """Put a transformation around the scopes of what runs within a ``with`` block."""
    return set_name_stack(context.name_stack.transform(name))


@contextlib.contextmanager
def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """Let what runs within a ``with`` block come from another place.

    Arguments:
      traceback: the place, as in the ``traceback`` of a `SourceInfo`, or None.
      name_stack: the scopes; by default those that are around.
    """
    before = context.source
    context.source = traceback or before
    try:
        with set_name_stack(context.name_stack if name_stack is None else name_stack):
            yield
    finally:
        context.source = before


def register_exclusion(path: str) -> None:
    """Leave the frames of files whose paths begin so out of tracebacks, as those of the package are.

    Arguments:
      path: a file, or a folder.
    """
    if path not in _EXCLUDED:
        _EXCLUDED.append(path)


__dir__ = _shown(globals())
