"""The disk cache: hits, damage, foreign files, bounds; and dumps."""

import hashlib
import os
import threading

import numpy as np
import pytest

from catena.compiler.native import cache, host
from catena.core.config import config
from compiled import compile_fn


@pytest.fixture
def folder(tmp_path, monkeypatch):
    host.this_machine()  # what LLVM says of the processor is asked for once, and kept on disk too: elsewhere
    place = tmp_path / "cache"
    monkeypatch.setenv("CATENA_CACHE_DIR", str(place))
    monkeypatch.delenv("CATENA_CACHE", raising=False)
    return place


def compiled():
    exe = compile_fn(lambda b, x: b.map("add", x, x), np.ones(5, np.float32))
    np.testing.assert_array_equal(exe(np.ones(5, np.float32))[0], np.full(5, 2, np.float32))
    return exe.report["seconds"]


def test_second_compilation_reads_the_code(folder):
    assert "generate" in compiled()
    assert "generate" not in compiled()
    (entry,) = folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700 and entry.stat().st_mode & 0o077 == 0


def test_damaged_entries_are_ignored_and_replaced(folder):
    compiled()
    (entry,) = folder.iterdir()
    for damage in (
        b"",
        entry.read_bytes()[:-1],
        b"x" + entry.read_bytes()[1:],
        entry.read_bytes()[:60] + b"\0" * 500,
    ):
        entry.write_bytes(damage)
        assert "generate" in compiled()
        assert "generate" not in compiled()


def test_untrusted_entries_are_ignored(folder, tmp_path):
    compiled()
    (entry,) = folder.iterdir()
    entry.chmod(0o666)
    assert "generate" in compiled()
    elsewhere = tmp_path / "elsewhere"
    entry.rename(elsewhere)
    entry.symlink_to(elsewhere)
    assert "generate" in compiled()
    folder.chmod(0o777)
    assert cache.directory() is None and "generate" in compiled()


def test_entries_under_another_name_are_ignored(folder):
    cache.save("00" * 32, b"first")
    cache.save("11" * 32, b"second")
    first, second = (folder / f"{name * 32}" for name in ("00", "11"))
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    assert cache.load(first.name) is None and cache.load(second.name) is None
    first.write_bytes(contents[0])
    assert cache.load(first.name) == b"first"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_what_is_no_file_is_ignored_at_once(folder):
    cache.save("00" * 32, b"first")
    place = folder / ("00" * 32)
    for make in (os.mkfifo, os.mkdir):
        place.unlink()
        make(place, 0o600)
        before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
        assert cache.load(place.name) is None
        assert before in (0, len(os.listdir("/proc/self/fd")))


def test_a_bound_that_is_no_number_is_an_error(folder, monkeypatch):
    monkeypatch.setenv("CATENA_CACHE_BYTES", "many")
    with pytest.raises(ValueError, match="CATENA_CACHE_BYTES must be a number of bytes, got 'many'"):
        cache.save("00" * 32, b"first")


def test_off_switch_and_unwritable_places(folder, monkeypatch):
    monkeypatch.setenv("CATENA_CACHE", "0")
    assert "generate" in compiled() and "generate" in compiled()
    monkeypatch.setenv("CATENA_CACHE", "1")
    monkeypatch.setenv("CATENA_CACHE_DIR", "/proc/nowhere")
    assert "generate" in compiled()


def test_size_is_bounded(folder, monkeypatch):
    monkeypatch.setenv("CATENA_CACHE_BYTES", str(1 << 40))
    for i in range(20):
        cache.save(f"{0x10 + i:064x}", b"0" * (1 << 16))
        os.utime(folder / f"{0x10 + i:064x}", (i, i))
    cache.prune(folder, 10 << 16)
    left = sorted(p.name for p in folder.iterdir())
    assert 0 < sum(p.stat().st_size for p in folder.iterdir()) <= 10 << 16
    assert left == [f"{0x10 + i:064x}" for i in range(20 - len(left), 20)]


def test_a_thread_of_its_own_removes_what_is_too_much(folder, monkeypatch):
    monkeypatch.setenv("CATENA_CACHE_BYTES", "0")
    cache.save("00" * 32, b"first")
    for thread in threading.enumerate():
        if thread.name == "catena-cache":
            thread.join()
    assert list(folder.iterdir()) == []


def test_only_programs_are_removed_and_what_was_not_finished_long_ago(folder):
    cache.save("00" * 32, b"first")
    others = ["notes.txt", "ab" * 31 + "a.", "AB" * 32, "ab" * 20, "ab" * 33]
    unfinished = [".new-1-1", ".new-2-2"]
    for name in others + unfinished:
        (folder / name).write_bytes(b"0" * 1000)
        if name != unfinished[0]:
            os.utime(folder / name, (0, 0))
    (folder / ("cd" * 32)).mkdir()
    cache.prune(folder, 0)
    assert sorted(p.name for p in folder.iterdir()) == sorted([*others, unfinished[0], "cd" * 32])
    cache.prune(folder / "gone", 0)


def test_dump_writes_every_stage(folder, tmp_path):
    config.update("jax_dump_ir_to", str(tmp_path / "dump"))
    try:
        compiled()
    finally:
        config.update("jax_dump_ir_to", "")
    names = [p.name.split(".", 1)[1] for p in (tmp_path / "dump").iterdir()]
    assert sorted(names) == [
        "block",
        "bound",
        "epilogues",
        "fuse",
        "graph",
        "inset",
        "ll",
        "nests",
        "opt.ll",
        "place",
        "replace",
        "rotate",
        "s",
        "small",
        "stitch",
        "trim",
        "turn",
    ]


def test_how_often_the_size_is_looked_at():
    """After a 64th of the bound in the mean, written in files of any size; each time where nothing may stay."""
    names = [hashlib.sha256(bytes([k, j])).hexdigest() for k in range(256) for j in range(16)]
    looks = lambda size, bound: sum(cache._looks(name, size, bound) for name in names)
    assert 15 <= looks(1 << 13, 1 << 26) <= 60 < 400 <= looks(1 << 16, 1 << 25) <= 620
    assert looks(10, 0) == looks(1 << 20, 1 << 20) == len(names)
