"""Object code on disk, keyed by content.

One file per program in a directory of mode 0700: a checksum, then the code. Files are written beside their
place and renamed into it, so processes never see half of one. A directory or file that somebody else owns or
may write, a link, what is no plain file, or a file whose checksum is wrong is ignored, never executed. The checksum is
of the name too, which stands for all that the code depends on (types, versions, processor): an entry under another's
name is none. The oldest programs go when they take more room than the bound; no other file in the directory is touched.

This keeps out damage and other users; who can write as the same user can plant code here as in the package itself.

`CATENA_CACHE_DIR`, or the flag `jax_compilation_cache_dir`, chooses the directory (default: `catena` in the
user's cache directory); `CATENA_CACHE=0`, or the flag `jax_enable_compilation_cache`, turns the cache off;
`CATENA_CACHE_BYTES`, or the flag `jax_compilation_cache_max_size`, sets the bound.
"""

from __future__ import annotations

import os
import stat
import threading
import time

from catena.core import digests
from catena.core.context import context

MAGIC = b"catena3\n"
HEAD = len(MAGIC) + digests.SIZE
# Not following links, nor waiting for somebody to write where a pipe was put in a file's place.
READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
DEFAULT_BYTES = 1 << 29
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def directory() -> str | None:
    """The cache's directory, made if need be; None where there is none that can be trusted."""
    off = os.environ.get("CATENA_CACHE", "1").lower() in ("0", "off", "false")
    if off or not context.enable_compilation_cache:
        return None
    chosen = os.environ.get("CATENA_CACHE_DIR") or context.compilation_cache_dir
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.fspath(chosen) if chosen else os.path.join(base, "catena")
    try:
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            os.makedirs(path, mode=0o700, exist_ok=True)
            status = os.lstat(path)
        return path if _ours(status, stat.S_ISDIR) else None
    except (OSError, ValueError):  # ValueError: no name of a directory, such as one with a zero byte
        return None


def _ours(status: os.stat_result, is_kind) -> bool:
    owner = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return is_kind(status.st_mode) and owner and not status.st_mode & _OTHERS_WRITE


def key(text: str, *parts: str) -> str:
    """The name of a program: everything that its code depends on."""
    return digests.of(text.encode(), *[b"\0" + part.encode() for part in parts]).hex()


def load(name: str) -> bytes | None:
    """The code stored under `name`, if it is there and sound."""
    folder = directory()
    if folder is None:
        return None
    try:
        descriptor = os.open(os.path.join(folder, name), READ)
        try:
            if not _ours(os.fstat(descriptor), stat.S_ISREG):
                return None
            with open(descriptor, "rb", closefd=False) as file:
                head = file.read(HEAD)
                code = file.read() if head.startswith(MAGIC) else b""
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return code if head == _head(name, code) else None


def _head(name: str, code: bytes) -> bytes:
    return MAGIC + digests.of(name.encode(), b"\0", code)


def save(name: str, code: bytes) -> None:
    """Stores code under `name`; a cache that cannot be written is no error."""
    folder, bound = directory(), bytes_bound()
    if folder is None:
        return
    try:
        temporary = os.path.join(folder, f"{TEMPORARY}{os.getpid()}-{threading.get_ident()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_head(name, code) + code)
            os.replace(temporary, os.path.join(folder, name))
        except OSError:
            os.unlink(temporary)
            raise
        if _looks(name, len(code), bound):
            _prune_beside(folder, bound)
    except OSError:
        return


LOOKS = 64  # at the directory's size, while as much is written as it may hold: a look takes 3 us a file
LENGTH = len(digests.of(b"").hex())  # of a program's name
TEMPORARY = ".new-"
BLOCK = 4096  # bytes of the disk that a file takes at least
LEFT = 3600.0  # seconds after which nobody writes a file any more
LONGEST = 1.0  # seconds for which programs are removed at a time, those of the look among them


def _looks(name: str, size: int, bound: int) -> bool:
    """Whether the size of the directory is looked at after a write, which its name tells by chance: so that a part of
    the bound is written between two looks, whatever the files' size is.
    """
    room = -(-size // BLOCK) * BLOCK
    return int(name[:8], 16) * bound < (room * LOOKS << 32)


def bytes_bound() -> int:
    """The bytes that the directory may hold."""
    chosen = os.environ.get("CATENA_CACHE_BYTES") or str(context.compilation_cache_max_size)
    try:
        return int(chosen) if int(chosen) >= 0 else DEFAULT_BYTES
    except ValueError:
        raise ValueError(f"CATENA_CACHE_BYTES must be a number of bytes, got {chosen!r}") from None


def _prune_beside(folder: str, bound: int) -> None:
    """Lets a thread of its own prune, for which no call waits: to look at 100,000 programs takes a second, to remove as
    many took minutes on a busy disk.
    """
    try:
        threading.Thread(target=prune, args=(folder, bound), name="catena-cache").start()
    except RuntimeError:  # no thread can start any more: a later write looks again
        return


def prune(folder: str, bound: int) -> None:
    """Removes the oldest programs until three quarters of the bound are left, and files that nobody finished. What is
    left to do after some time is done when the next one looks: the process may want to end.
    """
    end = time.monotonic() + LONGEST
    try:
        with os.scandir(folder) as entries:
            programs, unfinished = _own_files(entries)
    except OSError:
        return
    for path in unfinished:
        _remove(path)
    total = sum(room for _, room, _ in programs)
    if total <= bound:
        return
    for _, room, path in sorted(programs):
        if _remove(path):
            total -= room
        if total <= bound * 3 // 4 or time.monotonic() > end:
            return


def _own_files(entries) -> tuple[list[tuple], list[str]]:
    """The programs among the entries of a directory, each with its age, the room that it takes and its path; and paths
    of files that were not finished. What has another name is somebody else's.
    """
    programs, unfinished = [], []
    for entry in entries:
        is_temporary = entry.name.startswith(TEMPORARY)
        if not is_temporary and not is_name(entry.name):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # it went meanwhile
            continue
        if not is_temporary:
            room = getattr(status, "st_blocks", 0) * 512  # a file takes whole blocks of the disk
            programs.append((status.st_mtime, max(room, status.st_size), entry.path))
        elif time.time() - status.st_mtime > LEFT:
            unfinished.append(entry.path)
    return programs, unfinished


def is_name(name: str) -> bool:
    """Whether a file is called as programs are: who clears the directory touches no other."""
    return len(name) == LENGTH and not name.strip("0123456789abcdef")


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:  # another process was sooner, or may
        return False
    return True
