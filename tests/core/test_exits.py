"""The end of a process: what has a finalizer still gets it, and where nothing has one no garbage is looked for."""

import os
import subprocess
import sys

import pytest

HEAD = """
import atexit, gc
atexit.register(lambda: print("frozen:", gc.get_freeze_count() > 0, flush=True))
import catena as jax
import catena.numpy as jnp
print(jax.jit(lambda x: x + 1)(1.0))
"""


def ended(tail: str, folder) -> str:
    env = os.environ | {"FOLDER": str(folder)}
    done = subprocess.run([sys.executable, "-c", HEAD + tail], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_searched_where_nothing_has_a_finalizer(tmp_path):
    tail = "class Node: pass\nnode = Node(); node.me = node\nprint('text that waits', end='')"
    out = ended(tail, tmp_path)
    assert "text that waits" in out and "frozen: True" in out


def test_open_files_in_cycles_are_written(tmp_path):
    held = "class Writer: pass\nw = Writer(); w.me = w; w.file = open(os.environ['FOLDER'] + '/text', 'w')"
    assert "frozen: False" in ended(f"import os\n{held}\nw.file.write('kept')", tmp_path)
    assert (tmp_path / "text").read_text() == "kept"


@pytest.mark.parametrize(
    "holder",
    [
        "class Node:\n  def __del__(self): print('called')\nnode = Node(); node.me = node",
        "def waiting():\n  try: yield\n  finally: print('called')\nw = [waiting()]; next(w[0]); w.append(w)",
    ],
    ids=["__del__", "generator"],
)
def test_finalizers_in_cycles_are_called(holder, tmp_path):
    out = ended(holder, tmp_path)
    assert "frozen: False" in out and "called" in out
