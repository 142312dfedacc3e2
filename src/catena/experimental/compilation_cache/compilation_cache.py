"""Where compiled programs are kept for the next process."""

from __future__ import annotations

from catena.core.config import config
from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent


def set_cache_dir(path: str | None) -> None:
    """Keep compiled programs in this folder: the flag ``jax_compilation_cache_dir``.

    Arguments:
      path: the folder; None for the user's cache folder.
    Raises:
      ValueError: ``path`` is neither a string nor None.

    >>> from catena.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.set_cache_dir(None)
    """
    config.update("jax_compilation_cache_dir", path)


def reset_cache() -> None:
    """Look at the flags anew. They are looked at whenever a program is kept or looked for: there is nothing to forget.

    >>> from catena.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.reset_cache()
    """


_open_door(globals(), "catena.experimental.compilation_cache.compilation_cache", own=True)
__dir__ = _shown(globals())

_absent(globals())
