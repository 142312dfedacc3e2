"""Stretches of programs: which functions ran, from which line, what they and their arrays take; the commands for it."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

import catena as jax
import catena.numpy as jnp
from catena import __main__ as command
from catena.compiler.native import cache
from catena.core import lazy
from catena.tools import scripts, watching
from catena.transform.jit import JitFunction
from catena.transform.profile import Profile

compiled = pytest.mark.skipif(not lazy.has_compiler(), reason="there is no compiler")


@jax.jit
def work(x):
    return jnp.tanh(x @ x)


def page_data(path):
    return json.loads(re.search(r'json">(.*?)</script>', path.read_text(), re.DOTALL)[1])


# ---- watching


def test_calls_are_counted_by_line(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "WORTH", 0.0)
    x = jnp.ones((8, 8))
    before = JitFunction.__call__
    with jax.tools.watch("a stretch") as seen:
        for _ in range(3):
            x = work(x)
        jax.vmap(work)(x[None])  # inside a transformation: a part of what the transformation does
    assert JitFunction.__call__ is before
    (calls,) = [c for c in seen.calls if c.name == "work"]
    line = test_calls_are_counted_by_line.__code__.co_firstlineno + 6
    assert (calls.count, calls.traced, calls.where) == (3, 1, f"test_watching.py:{line}")
    assert 0 <= calls.running <= seen.seconds and "a stretch" in repr(seen) and "work" in repr(seen)
    if not lazy.has_compiler():
        assert calls.profile is None and "no compiler" in calls.why_not
        return
    assert calls.profile.name == "work"
    seen.save(tmp_path / "page.html")
    data = page_data(tmp_path / "page.html")
    assert [c["name"] for c in data["script"]["calls"]][0] == "work"
    assert data["programs"][data["script"]["calls"][0]["program"]]["name"] == "work"
    assert data["places"][data["script"]["lines"][0]["places"][0]][1] == line


@compiled
def test_what_has_effects_is_not_run_again(monkeypatch):
    monkeypatch.setattr(watching, "WORTH", 0.0)
    ran = []

    @jax.jit
    def noisy(x):
        jax.debug.callback(lambda v: ran.append(1), x)
        return x + 1

    with jax.tools.watch() as seen:
        noisy(1.0)
        noisy(2.0)
    jax.effects_barrier()
    assert len(ran) == 2 and "side effects" in seen.calls[0].why_not and seen.calls[0].profile is None


@compiled
def test_arguments_that_are_given_up(monkeypatch):
    monkeypatch.setattr(watching, "WORTH", 0.0)
    f = jax.jit(lambda x: x * 2, donate_argnums=0)
    x = jnp.ones(64)
    with jax.tools.watch() as seen:
        for _ in range(3):
            x = f(x)
    assert (x == 8).all() and seen.calls[0].profile is not None  # made before the second call


def test_errors_pass_and_one_watches_at_a_time():
    before = JitFunction.__call__
    with pytest.raises(ZeroDivisionError), jax.tools.watch() as seen:
        with pytest.raises(RuntimeError, match="already"):
            jax.tools.watch().__enter__()
        jax.jit(lambda x: x / (1 // 0))(1.0)
    assert JitFunction.__call__ is before and seen.calls[0].count == 1
    assert 0 < seen.calls[0].compiling <= seen.seconds  # a trace that failed took time, too


def test_intervals():
    assert watching.covered([(0, 2), (1, 3), (5, 6)]) == 4 and watching.covered([]) == 0


# ---- memory


MAKES_ARRAYS = """
import tracemalloc
import catena as jax, catena.numpy as jnp
jnp.ones(3), jax.tools.memory()  # what is imported while memory is traced takes long
tracemalloc.start(20)
kept = [jnp.ones((7, 31)) for _ in range(3)]
views = kept[0][:3], kept[0][:3]
held = jax.tools.memory()
tracemalloc.stop()
(item,) = [i for i in held.items if i.what == "float32[7,31]"]
assert (item.count, item.bytes, item.where) == (3, 3 * 7 * 31 * 4, "script.py:6"), item
assert sum(i.bytes for i in held.items if i.what == "float32[3,31]" and i.source) <= views[0].nbytes * 2
assert held.bytes == sum(i.bytes for i in held.items) and "float32[7,31]" in repr(held)
held.save("memory.html")
print(held.bytes)
"""


def test_memory_by_line(tmp_path):
    """In a process of its own: tracing memory makes this one, which holds much, slow."""
    (tmp_path / "script.py").write_text(MAKES_ARRAYS)
    command = [sys.executable, "script.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    data = page_data(tmp_path / "memory.html")
    assert data["held"]["total"] == int(ran.stdout) and any(":6" in at for at in data["notes"])


def test_memory_without_lines_says_how_to_get_them():
    x = jnp.ones((5, 23))
    held = jax.tools.memory()
    assert "tracemalloc" in held.about and any(i.what == x.aval.str_short() for i in held.items)


def test_what_a_backward_pass_keeps():
    def loss(w, x):
        return jnp.sum(jnp.sin(x @ w))

    held = jax.tools.kept(loss)(jnp.ones((8, 4)), jnp.ones((16, 8)))
    line = loss.__code__.co_firstlineno + 1
    found = {i.what: (i.bytes, i.where) for i in held.items}
    assert found["float32[16,4]: output of cos"] == (16 * 4 * 4, f"test_watching.py:{line}")
    assert found["float32[16,8]: from the argument x"] == (16 * 8 * 4, "")
    assert "loss: the backward pass keeps" in repr(held) and "<iframe" in held._repr_html_()


# ---- commands


SCRIPT = """
import sys
import jax, jax.numpy as jnp

@jax.jit
def double(x):
    return x * 2

double(1.0), double(jnp.ones(3))
print("arguments", sys.argv[1:])
if "fail" in sys.argv:
    raise ValueError("on purpose")
"""


def run(folder, *arguments):
    (folder / "script.py").write_text(SCRIPT)
    return subprocess.run([sys.executable, "-m", "catena", *arguments], cwd=folder, capture_output=True, text=True)


def test_profile_of_a_script(tmp_path):
    done = run(tmp_path, "profile", "-o", "p.html", "script.py", "-o", "mine", "fail")
    assert done.returncode == 0, done.stderr
    assert "arguments ['-o', 'mine', 'fail']" in done.stdout and "ValueError: on purpose" in done.stderr
    assert re.search(r"2 .*double +\(script.py:9\)", done.stdout) and "page: p.html" in done.stdout
    data = page_data(tmp_path / "p.html")
    assert data["title"] == "script.py" and data["script"]["calls"][0]["calls"] == 2


def test_a_page_that_cannot_be_written_is_an_error_at_once(tmp_path):
    done = run(tmp_path, "profile", "-o", "nowhere/p.html", "script.py")
    assert done.returncode == 2 and "there is no folder nowhere" in done.stderr and "arguments" not in done.stdout


def test_memory_of_a_script(tmp_path):
    (tmp_path / "script.py").write_text("import catena.numpy as jnp\nx = jnp.ones((3, 41))\n")
    command = [sys.executable, "-m", "catena", "profile", "--memory", "-o", "p.html", "script.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert re.search(r"float32\[3,41\] +script.py:2", ran.stdout), ran.stdout + ran.stderr
    assert page_data(tmp_path / "p-memory.html")["held"]["items"]


def test_explain_a_script(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(SCRIPT.replace("import jax, jax.numpy", "import catena as jax, catena.numpy"))
    names = {}

    def here():
        code = compile((tmp_path / "script.py").read_text(), str(tmp_path / "script.py"), "exec")
        monkeypatch.setattr(sys, "argv", ["script.py"])
        exec(code, names)
        return names

    text = scripts.explain(here, "script.py")
    assert "double at" in text and "traced 2 times" in text and "float32[3]" in text
    assert ("kernel over 3: mul" in text) == lazy.has_compiler()
    assert "no compiled function" in scripts.explain(dict, "empty.py")


def test_arguments_of_commands(capsys):
    assert command.split(["profile", "--memory", "-o", "x", "a.py", "-o"]) == (
        ["profile", "--memory", "-o", "x"],
        ["a.py", "-o"],
    )
    assert command.split(["explain", "-m", "name", "-x"]) == (["explain"], ["-m", "name", "-x"])
    for arguments in (["profile"], ["explain", "-m"], ["cache", "burn"]):
        with pytest.raises(SystemExit) as ended:
            command.main(arguments)
        assert ended.value.code == 2
    assert "a script" in capsys.readouterr().err


def test_cache(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CATENA_CACHE_DIR", str(tmp_path))
    names = [f"{k:064x}" for k in (1000, 2000)]
    for name in names:
        cache.save(name, b"code" * 100)
    command.main(["cache"])
    assert re.search(r"2 files, 880 bytes of at most", capsys.readouterr().out)
    command.main(["cache", "verify"])
    assert "2 files, all sound" in capsys.readouterr().out
    path = tmp_path / names[1]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(SystemExit, match=f"1 of 2 files are damaged(.|\n)*{names[1]}"):
        command.main(["cache", "verify"])
    command.main(["cache", "clear"])
    assert "2 files removed" in capsys.readouterr().out and not os.listdir(tmp_path)
    monkeypatch.setenv("CATENA_CACHE", "0")
    for action in ("show", "verify", "clear"):
        command.main(["cache", action])
        assert "the cache is off" in capsys.readouterr().out


def test_only_programs_are_cleared(tmp_path, monkeypatch, capsys):
    """A directory that a user chose may hold other files."""
    monkeypatch.setenv("CATENA_CACHE_DIR", str(tmp_path))
    (tmp_path / "notes.txt").write_text("mine")
    cache.save(f"{1000:064x}", b"code")
    command.main(["cache", "verify"])
    command.main(["cache", "clear"])
    assert "1 files removed" in capsys.readouterr().out and os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("seconds, said", [(0.5, "cache"), (2.0, "50 %")])
def test_what_is_faster_than_memory_is_in_a_cache(seconds, said):
    row = SimpleNamespace(depth=0, what="map", places="", seconds=seconds, runs=1, flops=0, bytes_per_second=8 / seconds,
                          flops_per_second=0.0, most_flops_per_second=0.0)  # fmt: skip
    ceilings = SimpleNamespace(bytes_per_second=8.0, flops_per_second=1.0)
    assert said in repr(Profile("f", seconds, [row], ceilings, None))
