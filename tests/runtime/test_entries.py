"""Entries with a table of their own, by a stub and by way of Python."""

import ctypes
import subprocess
import sys

import pytest

from catena.runtime import entries, images

_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)


@pytest.mark.parametrize("stubs", [True, False])
def test_an_entry_has_its_own_table(stubs, monkeypatch):
    if not stubs:
        monkeypatch.setattr(images, "pages", lambda _: None)
    said = []

    def run(args, outs, table):
        said.append((args, outs))
        return ctypes.c_uint64.from_address(table).value

    native = _NATIVE(run)
    address = ctypes.cast(native, ctypes.c_void_p).value
    first, second = (entries.bound(address, (ctypes.c_uint64 * 1)(n)) for n in (7, 11))
    assert [first((1,), ()), second((2,), (3,)), first((), ())] == [7, 11, 7]
    assert said == [((1,), ()), ((2,), (3,)), ((), ())]


@pytest.mark.parametrize("stubs", [True, False])
def test_what_looks_at_a_status_may_raise(stubs, monkeypatch):
    if not stubs:
        monkeypatch.setattr(images, "pages", lambda _: None)
    native = _NATIVE(lambda args, outs, table: -3)
    entry = entries.bound(ctypes.cast(native, ctypes.c_void_p).value, (ctypes.c_uint64 * 1)(0))

    def check(status, function, arguments):
        raise ValueError(status)

    entry.errcheck = check
    with pytest.raises(ValueError, match="-3"):
        entry((), ())


def test_a_program_keeps_the_code_that_it_calls():
    """Who keeps the native program alone, as draws do, may call it: its table points into other programs' code."""
    script = """
import catena as jax
keys = jax.random.split(jax.random.key(0), 3)
assert keys.shape == (3,) and jax.random.split(keys[0]).shape == (2,)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
