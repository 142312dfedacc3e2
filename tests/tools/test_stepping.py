"""Running a function eagerly up to a line, and the variables there."""

import io

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, tools


def layer(x, w):
    h = x @ w
    y = h + 1.0
    return y, y.sum()


@jax.jit
def network(x, ws, scale=2.0):
    x = x * scale
    y, sums = lax.scan(layer, x, ws)
    total = sums.sum()
    return total


LAYER, NETWORK = layer.__code__.co_firstlineno, network.__wrapped__.__code__.co_firstlineno
X, WS = jnp.ones(2), jnp.ones((3, 2, 2))


def equal(actual, expected):
    np.testing.assert_array_equal(np.asarray(actual), expected)


def test_variables_by_name_in_a_jitted_function():
    stop = tools.replay(network)(X, WS, until=NETWORK + 4)
    assert stop.variables.keys() == {"x", "ws", "scale", "y", "sums"}
    equal(stop["x"], [2.0, 2.0])
    equal(stop["sums"], [10.0, 22.0, 46.0])
    assert [frame.function for frame in stop.frames][0] == "network"


@pytest.mark.parametrize(("hit", "h"), [(1, 4.0), (2, 10.0), (3, 22.0)])
def test_the_turn_of_a_loop_is_chosen(hit, h):
    stop = tools.replay(network)(X, WS, until=f"test_stepping.py:{LAYER + 2}", hit=hit)
    equal(stop["h"], [h, h])
    assert [frame.function for frame in stop.frames][:2] == ["layer", "network"]
    equal(stop["ws"], np.ones((3, 2, 2)))  # of the caller
    with pytest.raises(KeyError, match="no variable 'z'; there are x, w, h"):
        stop["z"]


def test_a_condition_finds_where_something_goes_wrong():
    def grows(x):
        def body(carry):
            i, v = carry
            v = v * v
            return i + 1, v

        return lax.while_loop(lambda carry: carry[0] < 10, body, (0, x))[1]

    line = grows.__code__.co_firstlineno + 4
    for fun in (grows, jax.grad(grows), jax.jit(jax.grad(grows))):
        stop = tools.replay(fun)(3.0, until=f"test_stepping.py:{line}", when=lambda v: jnp.isinf(v["v"]))
        assert int(stop["i"]) == 6


def test_under_vmap_all_examples_are_there():
    stop = tools.replay(jax.vmap(network, in_axes=(0, None)))(jnp.ones((4, 2)), WS, until=LAYER + 2)
    assert stop["h"].shape == (4, 2)


def test_a_jitted_function_runs_once_however_often_it_is_replayed():
    runs = []

    @jax.jit
    def doubled(z):
        twice = 2 * z
        return twice

    @jax.jit
    def f(x):
        runs.append(x)
        y = doubled(x)
        z = doubled(y)
        return lax.fori_loop(0, 3, lambda i, z: z * x, z)

    line, inner = f.__wrapped__.__code__.co_firstlineno, doubled.__wrapped__.__code__.co_firstlineno
    again = tools.replay(f)
    equal(again(3.0, until=line + 4)["y"], 6.0)
    stop = again(4.0, until=inner + 3, hit=2)
    assert [(frame.function, frame.line) for frame in stop.frames] == [("doubled", inner + 3), ("f", line + 4)]
    equal([stop["z"], stop["twice"], stop["x"], stop["y"]], [8.0, 16.0, 4.0, 8.0])
    assert len(runs) == 1
    equal(f(2.0), 64.0)  # what was recorded is nobody else's program
    assert "traced once" in f.explain() and "visit" not in str(jax.make_jaxpr(f)(2.0))
    again(jnp.ones(2), until=line + 4)
    assert len(runs) == 3  # recorded for another type


def test_recorded_programs_are_transformed_as_others_are():
    @jax.custom_vjp
    def scaled(x):
        y = 3 * x
        return y

    scaled.defvjp(lambda x: (scaled(x), x), lambda x, ct: (3 * ct,))

    def loss(x, ws):
        h, _ = lax.scan(layer, x, ws)
        return scaled(jax.checkpoint(jnp.sin)(h)).sum()

    stops = {
        fun: [
            tools.replay(jax.jit(fun))(x, WS, until=until, hit=hit)
            for until, hit in ((LAYER + 2, 3), (scaled.__wrapped__.__code__.co_firstlineno + 3, 1))
        ]
        for fun, x in (
            (loss, X),
            (jax.grad(loss, (0, 1)), X),
            (jax.vmap(jax.grad(loss), (0, None)), jnp.ones((4, 2))),
        )
    }
    for turn, end in stops.values():
        equal(turn["h"], np.full(turn["x"].shape, 14.0))
        np.testing.assert_allclose(end["y"], np.full(turn["x"].shape, 3 * np.sin(15.0)), rtol=1e-5)


def test_branches_are_taken_as_they_are():
    def f(x):
        return lax.cond(x > 0, positive, negative, x)

    def positive(x):
        y = x * 2
        return y

    def negative(x):
        return x

    line = positive.__code__.co_firstlineno + 2
    assert float(tools.replay(f)(3.0, until=line)["y"]) == 6.0
    with pytest.raises(ValueError, match=rf"the line did not run; lines near it that ran: .*{line + 3}"):
        tools.replay(f)(-3.0, until=line)
    with pytest.raises(ValueError, match="it stands in a branch or a loop that did not run"):
        tools.replay(jax.jit(f))(-3.0, until=line)


def test_a_line_that_is_not_reached():
    with pytest.raises(ValueError, match="did not stop at nowhere.py:1: no line of this file ran"):
        tools.replay(network)(X, WS, until="nowhere.py:1")
    with pytest.raises(ValueError, match="no line of this file ran; .*test_stepping.py did"):
        tools.replay(network)(X, WS, until="stepping:1")
    with pytest.raises(KeyError, match="no variable 'v'; there are x, w, h"):
        tools.replay(network)(X, WS, until=LAYER + 2, when=lambda variables: variables["v"] > 0)
    with pytest.raises(TypeError, match="Expected a callable value, got 3"):
        tools.replay(3)
    with pytest.raises(ValueError, match="the line ran, but not so often"):
        tools.replay(network)(X, WS, until=LAYER + 2, hit=4)
    for until in ("here", "a.py:", ""):
        with pytest.raises(ValueError, match="until must be a line"):
            tools.replay(network)(X, WS, until=until)
    with pytest.raises(ValueError, match="must name the file"):
        tools.replay(len)(X, until=3)


def test_errors_on_the_way_are_the_functions():
    with pytest.raises(TypeError, match="contracting dimensions"):
        tools.replay(network)(jnp.ones(3), WS, until=NETWORK + 4)


def test_a_stop_prints_its_line_and_variables():
    stop = tools.replay(network)(X, WS, until=LAYER + 2)
    assert repr(stop).splitlines() == [
        f"{__file__}:{LAYER + 2} (layer), before: y = h + 1.0",
        "  x = float32[2] [2., 2.]",
        "  w = float32[2,2] [[1., 1.], [1., 1.]]",
        "  h = float32[2] [4., 4.]",
    ]


def test_the_debugger_opens_on_a_stop():
    out = io.StringIO()
    tools.replay(network)(X, WS, until=LAYER + 2).debug(stdin=io.StringIO("p h.sum()\nup\np scale\nc\n"), stdout=out)
    assert "Array(8., dtype=float32)" in out.getvalue() and "2.0" in out.getvalue()
