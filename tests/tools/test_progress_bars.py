"""Loops with bars compute what loops without compute, and bars show how far they are."""

import sys
import time
import types

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, tools
from catena.tools import progress_bars


class Drawn(list):
    """Stands for a bar: what it was told."""

    def __init__(self, text, total):
        super().__init__([(text, total)])
        drawn.append(self)

    show = list.append

    def close(self):
        self.append("closed")


drawn: list = []


@pytest.fixture
def watched(monkeypatch):
    drawn.clear()
    monkeypatch.setattr(progress_bars, "is_watched", lambda: True)
    monkeypatch.setattr(progress_bars, "PERIOD", 0.0)
    monkeypatch.setattr(progress_bars, "new_bar", Drawn)
    return drawn


def scan(loop, n, **options):
    return lambda x: loop(lambda c, y: (c * 0.5 + y, {"y": c}), x, jnp.arange(n) * 1.0, **options)


# Loops of n steps, as functions of the loop and n.
LOOPS = {
    "scan": (lax.scan, scan),
    "scan backwards": (lax.scan, lambda loop, n: scan(loop, n, reverse=True)),
    "scan of nothing": (lax.scan, lambda loop, n: lambda x: loop(lambda c, _: (c * 2, None), x, length=n)),
    "map": (lax.map, lambda loop, n: lambda x: loop(lambda y: y * x, jnp.arange(n))),
    "fori_loop": (lax.fori_loop, lambda loop, n: lambda x: loop(-3, n - 3, lambda i, c: c * 0.5 + i, x)),
    "traced": (lax.fori_loop, lambda loop, n: lambda x: loop(2, jnp.int32(n + 2), lambda i, c: c * 0.5 + i, x)),
    "while_loop": (
        lax.while_loop,
        lambda loop, n: lambda x: loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + s[0]), (0, x))[1],
    ),
}


def check(actual, expected):
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", LOOPS)
def test_values_and_types(name, watched):
    loop, make = LOOPS[name]
    for n in (0 if name in ("traced", "while_loop") else 1, 107):
        check(make(tools.progress(loop), n)(2.0), make(loop, n)(2.0))
        if n > 1:
            told = [x for bar in drawn for x in bar[1:] if x != "closed"]
            assert told == sorted(told)
            assert all(bar[-1] == "closed" and bar[-2] == n for bar in drawn)
        drawn.clear()


@pytest.mark.parametrize("name", ["scan", "fori_loop", "while_loop"])
def test_transformations(name, watched):
    loop, make = LOOPS[name]
    summed = lambda f: lambda x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(f(x)))
    with_bar, without = summed(make(tools.progress(loop), 107)), summed(make(loop, 107))
    transformed = lambda f: jax.jit(jax.vmap(jax.value_and_grad(f)))
    for a, b in zip(transformed(with_bar)(jnp.arange(2.0)), transformed(without)(jnp.arange(2.0)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_nothing_is_changed_where_nobody_looks():
    f = lambda loop: str(jax.make_jaxpr(scan(loop, 100))(1.0))
    assert f(tools.progress(lax.scan)) == f(lax.scan)


def test_what_has_no_bar_is_refused():
    with pytest.raises(
        TypeError, match="takes scan, fori_loop, while_loop or map of lax, or a jitted function, got <b"
    ):
        tools.progress(sum)


@pytest.mark.parametrize("length", [2, 99, 100, 101, 200, 997, 1000, 99_991])
def test_parts_of_a_length(length):
    parts, steps, rest = progress_bars.parts_of(length)
    assert parts * steps + rest == length and parts <= 200 and rest < max(parts, 2)


def test_steps_are_asked_for_by_time(monkeypatch):
    monkeypatch.setattr(progress_bars, "PERIOD", 1.0)
    meter = progress_bars.Meter("x", None)
    meter.arrived(0, -1)
    steps = [int(meter.next_steps(done, -1)) for done in (1, 5, 21)]
    assert steps == [4, 16, 64]  # quick at first: four times as many
    meter.threads.run.asked = 21, time.perf_counter() - 64.0  # then a second each
    assert int(meter.next_steps(85, 85)) == 1


def test_compilation_counts_seconds(monkeypatch, capsys):
    monkeypatch.setattr(progress_bars, "is_watched", lambda: True)
    for name in ("PATIENCE", "PERIOD"):
        monkeypatch.setattr(progress_bars, name, 0.001)
    f = tools.progress(jax.jit(lambda x: jnp.sin(x) + 1), "compiling f")
    assert float(f(0.0)) == 1.0
    with progress_bars.Waiting("compiling g"):
        time.sleep(0.05)
    assert "compiling g: 0.0" in capsys.readouterr().err


def test_bars_of_characters(capsys):
    bar = progress_bars.PlainBar("epoch", 200)
    bar.show(100)
    bar.close()
    progress_bars.PlainBar("searching", 0).show(1234)
    said = capsys.readouterr().err
    assert "\repoch [###############...............] 100 of 200 in " in said
    assert "\rsearching 1,234 in " in said


def test_bars_by_what_is_installed(monkeypatch):
    told = []
    tqdm = types.SimpleNamespace(n=0, update=lambda n: told.append(n), close=lambda: told.append("closed"))
    module = types.ModuleType("tqdm")
    module.tqdm = lambda **options: told.append(options["desc"]) or tqdm
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert isinstance(progress_bars.new_bar("epoch", 10), progress_bars.PlainBar)
    monkeypatch.setitem(sys.modules, "tqdm", module)
    bar = progress_bars.new_bar("epoch", 10)
    bar.show(3)
    bar.close()
    assert told == ["epoch", 3, "closed"]


def test_bars_of_notebooks_need_no_widgets(monkeypatch):
    told, module = [], types.ModuleType("IPython.display")

    def display(bundle, **options):
        told.append(bundle)
        return types.SimpleNamespace(update=lambda bundle, raw: told.append(bundle))

    module.display = display
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress_bars, "in_notebook", lambda: True)
    bar = progress_bars.new_bar("a < b", 2000)
    bar.show(1500)
    bar.close()
    assert '<progress value="0" max="2000">' in told[0]["text/html"]
    assert 'a &lt; b <progress value="1500" max="2000"></progress> 1,500 of 2,000 in ' in told[1]["text/html"]
    assert told[1]["text/plain"].startswith("a < b 1,500 of 2,000 in ")
    progress_bars.new_bar("searching", 0).show(7)
    assert "searching <progress></progress> 7 in " in told[-1]["text/html"]
