"""The compiler's cache on disk, for people: ``python -m catena cache``."""

from __future__ import annotations

from pathlib import Path

from catena.compiler.native import cache
from catena.transform.explain import shown

OFF = "the cache is off: CATENA_CACHE=0, jax_enable_compilation_cache=False, or a folder that others may write to"


def show() -> str:
    """Where the cache is, and how full."""
    folder = cache.directory()
    if folder is None:
        return OFF
    sizes = [size for _, size in files(folder)]
    return f"{folder}: {len(sizes):,} files, {shown(sum(sizes))} of at most {shown(cache.bytes_bound())}"


def clear() -> str:
    """Remove what is in the cache; programs that run keep what they have loaded."""
    folder = cache.directory()
    if folder is None:
        return OFF
    found = files(folder)
    for path, _ in found:
        path.unlink(missing_ok=True)
    return f"{folder}: {len(found):,} files removed, {shown(sum(size for _, size in found))}"


def verify() -> str:
    """Read every file of the cache and compare it with its checksum; such as are damaged would be compiled anew.

    Raises:
      SystemExit: some are damaged; the text names them.
    """
    folder = cache.directory()
    if folder is None:
        return OFF
    found = files(folder)
    damaged = [path.name for path, _ in found if cache.load(path.name) is None and path.exists()]
    if damaged:
        listed = "".join(f"\n  {name}" for name in damaged)
        raise SystemExit(f"{folder}: {len(damaged)} of {len(found)} files are damaged, and are not used:{listed}")
    return f"{folder}: {len(found):,} files, all sound"


def files(folder: str) -> list[tuple[Path, int]]:
    """The cache's programs and their sizes; what another process is writing, and what is not the cache's, is none."""
    found = []
    for path in sorted(Path(folder).iterdir()):
        if not cache.is_name(path.name) or not path.is_file() or path.is_symlink():
            continue
        try:
            found.append((path, path.lstat().st_size))
        except FileNotFoundError:  # another process removed it meanwhile
            continue
    return found
