"""The debugger and the pictures of placement; printing and callbacks are tested with callbacks."""

import bdb
import io

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

OUTSIDE = 7


def session(run, commands: str) -> str:
    """What the debugger prints while ``run(stdin=..., stdout=...)`` is driven by commands."""
    out = io.StringIO()
    run(stdin=io.StringIO(commands), stdout=out)
    return out.getvalue()


def stops(x, options):
    y = {"double": x * 2, "name": "text"}
    jax.debug.breakpoint(**options)  # here
    return y["double"] + 1


@pytest.mark.parametrize(
    "transform", [lambda f: f, jax.jit, lambda f: jax.jit(jax.jit(f))], ids=["eager", "jit", "jit(jit)"]
)
def test_values_of_variables(transform):
    text = session(lambda **o: transform(lambda x: stops(x, o))(jnp.float32(2)), "p y\nx + OUTSIDE\np missing\nc\n")
    assert "{'double': Array(4., dtype=float32), 'name': 'text'}" in text
    assert "Array(9., dtype=float32)" in text
    assert "*** NameError: name 'missing' is not defined" in text


def test_under_vmap_and_grad():
    text = session(lambda **o: jax.vmap(lambda x: stops(x, o))(np.arange(2.0, dtype=np.float32)), "p x\nc\n" * 2)
    assert "Array(0., dtype=float32)" in text and "Array(1., dtype=float32)" in text
    text = session(lambda **o: jax.grad(lambda x: stops(x, o))(2.0), "p x\nc\n")
    assert "Array(2., dtype=float32" in text


def test_moving_between_frames():
    def caller(x, options):
        mine = 5
        return jax.jit(lambda x: stops(x, options))(x) + mine

    text = session(lambda **o: caller(1.0, o), "l\nu\nu\np mine\nd\nd\nd\nw\nargs\nhelp\n\nc\n")
    assert "->      jax.debug.breakpoint(**options)  # here" in text
    assert "(catena) 5\n" in text
    assert "*** Newest frame" in text
    assert "in stops" in text and "in caller" in text and "catena/transform" not in text
    assert "Documented commands" in text


def test_the_number_of_frames():
    text = session(lambda **o: stops(1.0, {**o, "num_frames": 1}), "w\nu\nc\n")
    assert text.count("File ") == 1 and "*** Oldest frame" in text
    text = session(lambda **o: jax.jit(lambda x: stops(x, {**o, "filter_frames": False}))(1.0), "w\nc\n")
    assert "catena/transform" in text


def test_quitting_ends_the_program():
    with pytest.raises(bdb.BdbQuit, match="the debugger was quit"):
        session(lambda **o: stops(1.0, o), "q\n")
    with pytest.raises(jax.errors.JaxRuntimeError, match="the debugger was quit"):
        session(lambda **o: jax.jit(lambda x: stops(x, o))(1.0), "q\n")


def test_the_end_of_input_continues():
    assert "Entering the debugger" in session(lambda **o: stops(1.0, o), "")


def test_tokens():
    seen = io.StringIO()

    @jax.jit
    def f(x):
        token = {"t": x * 3}
        token = jax.debug.breakpoint(token=token, stdin=io.StringIO("p x\nc\n"), stdout=seen)
        return token["t"] + 1

    np.testing.assert_allclose(np.asarray(f(jnp.float32(2))), 7.0)
    assert "Array(2., dtype=float32)" in seen.getvalue()


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"backend": "web"}, ValueError, "'cli' only, got 'web'"),
        ({"ordered": True, "token": 1.0}, ValueError, "mutually exclusive"),
        ({"num_frames": -1}, ValueError, "negative"),
        ({"foo": 1}, TypeError, r"\['foo'\]"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        jax.debug.breakpoint(**options)


class Grid:
    """A sharding over four made-up devices."""

    def devices_indices_map(self, shape):
        half = [n // 2 for n in shape]
        parts = [(slice(0, h), slice(h, n)) for h, n in zip(half, shape)]
        indices = [(a, b) for a in parts[0] for b in parts[1]] if len(shape) == 2 else [(a,) for a in parts[0]]
        devices = [type("D", (), {"id": i, "platform": "cpu"})() for i in range(4)]
        return dict(zip(devices, indices if len(shape) == 2 else indices * 2))


def test_pictures(capsys):
    jax.debug.visualize_sharding((4, 4), Grid(), use_color=False)
    assert capsys.readouterr().out.splitlines() == [
        "┌─────────┬─────────┐",
        "│         │         │",
        "│  CPU 0  │  CPU 1  │",
        "│         │         │",
        "├─────────┼─────────┤",
        "│         │         │",
        "│  CPU 2  │  CPU 3  │",
        "│         │         │",
        "└─────────┴─────────┘",
    ]
    jax.debug.visualize_sharding((8,), Grid(), use_color=False, min_width=7)
    assert "│CPU 0,2│CPU 1,3│" in capsys.readouterr().out
    jax.debug.visualize_sharding((8,), jax.devices()[0], color_map=lambda n: 40 + n)
    assert "\x1b[40m  CPU 0  \x1b[0m" in capsys.readouterr().out
    jax.debug.visualize_array_sharding(jnp.ones((2, 2)), use_color=False, scale=10)
    assert "┌────────────────────┐" in capsys.readouterr().out
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        jax.debug.visualize_sharding((2, 2, 2), Grid())


def test_inspecting_in_compiled_functions_on_a_mesh():
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    over = lambda *axes: jax.NamedSharding(mesh, jax.P(*axes))
    x = jax.device_put(jnp.ones((4, 4)), over("a", "b"))
    seen = []
    show = lambda value: jax.debug.inspect_array_sharding(value, callback=seen.append)

    @jax.jit
    def f(x):
        show(x)
        show(x.T)
        show(x.sum(0))
        show(jax.lax.with_sharding_constraint(x, over("b")))
        return jax.lax.scan(lambda carry, row: (show(row), (carry + row, None))[1], x[0], x[:1])[0]

    f(x)
    assert [s.spec for s in seen] == [jax.P("a", "b"), jax.P("b", "a"), jax.P("b"), jax.P("b"), jax.P("b")]
    assert all(s.mesh == mesh for s in seen)
    seen.clear()
    f(x)
    assert not seen
    f(jax.device_put(x, over(None, "a")))
    assert [s.spec for s in seen[:2]] == [jax.P(None, "a"), jax.P("a")]
    seen.clear()
    f(jax.device_put(x, jax.devices()[3]))
    assert {s.device for s in seen[:3]} == {jax.devices()[3]}


def test_inspecting():
    seen = []
    jax.debug.inspect_array_sharding({"a": jnp.ones(2), "b": jnp.ones(3)}, callback=seen.append)
    jax.jit(lambda x: jax.debug.inspect_array_sharding(x, callback=seen.append))(jnp.ones(2))
    assert len(seen) == 3
    with pytest.raises(TypeError, match="arrays"):
        jax.debug.inspect_array_sharding(3, callback=seen.append)
    with pytest.raises(TypeError, match="callback"):
        jax.debug.inspect_array_sharding(jnp.ones(2), callback=3)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
@pytest.mark.parametrize("within", ["vmap", "scan", "fori_loop", "cond"])
def test_inspecting_happens_once_for_all_examples_and_turns(within, transform):
    seen = []

    def f(x):
        jax.debug.inspect_array_sharding(x, callback=seen.append)
        return x + 1

    programs = {
        "vmap": jax.vmap(f),
        "scan": lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
        "fori_loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, c: f(c), x),
        "cond": lambda x: jax.lax.cond(x[0] > 0, f, lambda x: x, x),
    }
    program = transform(programs[within])
    out = program(jnp.ones(4))
    assert len(seen) == 1 and seen[0].device_set == out.devices()
    if transform is jax.jit:
        program(jnp.ones(4))
        assert len(seen) == 1
