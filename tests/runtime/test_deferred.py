"""Functions whose machine code is made when they are first called (`runtime/deferred.py`)."""

import ctypes
import os
import subprocess
import sys

import pytest

from catena.compiler.native import host, link
from catena.runtime import deferred
from catena.runtime.native import Code, Unit, known

WRITES = """
define dso_local void @writes(ptr %to, i64 %x) {
  store i64 %x, ptr %to
  ret void
}
"""
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


def code() -> Code:
    return Code(link.compile_text(WRITES, link.Times(), 0)[0], host.new_generator)


def later(make, is_needless=lambda to, x: False, instead=None):
    found = deferred.deferred(Unit("of a test", {"writes": "key of a test"}, []), 2, make, is_needless, instead)
    if found is None:
        pytest.skip("no code can be written here")
    return found


def test_it_is_made_when_it_is_called_first():
    made, to = [], ctypes.c_int64()

    def make():
        made.append(code())
        return made[-1]

    found = later(make)
    assert known("key of a test") is found and not found.address("another")
    write = WRITE(found.address("writes"))
    assert not made
    for x in (3, 1 << 40, -5):
        write(ctypes.addressof(to), x)
        assert to.value == x
    assert len(made) == 1


def test_it_is_not_made_where_it_is_needless():
    made, to = [], ctypes.c_int64()
    found = later(lambda: made.append(code()) or made[-1], lambda to, x: x < 10)
    write = WRITE(found.address("writes"))
    write(ctypes.addressof(to), 3)
    assert (to.value, made) == (0, [])
    write(ctypes.addressof(to), 30)
    assert to.value == 30


def test_something_else_is_called_where_it_cannot_be_made(monkeypatch):
    given, said = [], []
    monkeypatch.setattr(sys, "unraisablehook", said.append)

    def make():
        raise MemoryError("none is left")

    found = later(make, instead=lambda *x: given.append(x))
    WRITE(found.address("writes"))(16, 7)
    assert given == [(16, 7)]
    assert isinstance(said[0].exc_value, MemoryError)


def test_there_is_none_where_no_code_can_be_written(monkeypatch):
    monkeypatch.setattr(deferred.images, "pages", lambda _: None)
    assert deferred.deferred(Unit("of a test", {"writes": "another key"}, []), 2, code, None, None) is None


PRODUCTS = """
import sys
import numpy as np
import catena as jax
from catena.compiler.native import link

texts, compile_text = [], link.compile_text
link.compile_text = lambda text, *rest: texts.append(text) or compile_text(text, *rest)
multiply = jax.jit(lambda x, y: x @ y)
x, y = (np.random.default_rng(i).standard_normal((200, 200), np.float32) for i in range(2))
np.float32(1e-39) * np.ones(9, np.float32)  # which the processor notes
made = [np.asarray(multiply(x, y)).tobytes()]
before = any("%tile, ptr %watch" in text for text in texts)
x[::3] *= np.float32(1e-39)
made.append(np.asarray(multiply(x, y)).tobytes())
after = any("%tile, ptr %watch" in text for text in texts)
sys.stdout.write(f"{before} {after} {made[0].hex()} {made[1].hex()}")
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_products_of_subnormal_numbers(threads, tmp_path):
    """Without a cache on disk, what multiplies them is made when some are met; the bits are the same."""

    def run(**environment):
        chosen = {**os.environ, "CATENA_NUM_THREADS": threads, **environment}
        return subprocess.run([sys.executable, "-c", PRODUCTS], env=chosen, capture_output=True, text=True, check=True)

    without, beside = run(CATENA_CACHE="0"), run(CATENA_CACHE="1", CATENA_CACHE_DIR=str(tmp_path))
    assert without.stderr == ""
    (before, after, *bits), (_, _, *others) = without.stdout.split(), beside.stdout.split()
    assert bits == others
    if host.this_machine().stops_at_subnormals:  # tiles look out
        assert (before, after) == ("False", "True")
