"""Equal kernels are scheduled once, whatever arrays they touch, and no others are taken for them."""

import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.kernels import loops, schedules, scheduling
from catena.compiler.native.compile import nests

x, w = jnp.ones((1, 8, 9, 4)), jnp.ones((3, 3, 4, 4))


def convolutions(x, *ws):
    for w in ws:
        x = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return x


def layers(x, *ws):
    for w in ws:
        x = jax.nn.softmax(jnp.tanh(x @ w)) + jnp.cumsum(x, 0)
    return x


CASES = {"convolutions": (convolutions, x, w), "layers": (layers, jnp.ones((40, 24)), jnp.ones((24, 24)))}


@pytest.fixture
def made(monkeypatch):
    """The schedules that are made from now on."""
    found = []

    def schedule(nest, *others):
        found.append(nest)
        return usual(nest, *others)

    usual = scheduling.schedule
    monkeypatch.setattr(scheduling, "schedule", schedule)
    monkeypatch.setattr(schedules, "_known", {})
    return found


@pytest.mark.parametrize("case", CASES)
def test_layers_are_scheduled_once(case, made):
    f, x, w = CASES[case]
    counts = []
    for layers in (4, 40):
        made.clear()
        schedules._known.clear()
        nests(jax.make_jaxpr(f)(x, *[w] * layers))
        nests(jax.make_jaxpr(f)(x, *[w + i for i in range(layers)]))
        counts.append(len(made))
    assert counts[0] == counts[1] > 0


a, b = jnp.ones((33, 20)), jnp.ones((20, 33))
PROGRAMS = {  # of kernels that differ in little
    "which is read": lambda a, b: (a + b.T, a + a, b.T + b.T, b + a.T),
    "zeros": lambda a, b: (a + 0.0, a + -0.0, a - 0.0, jnp.where(a > 0, 0.0, a), jnp.where(a > 0, -0.0, a)),
    "places": lambda a, b: (a[1:] * 2, a[:-1] * 2, a[:, 1:] * 2, a[:, :-1] * 2, a[::-1] * 2),
    "what is folded": lambda a, b: (a.sum(0), a.sum(1), b.sum(0), b.sum(1), a.max(0), (a * b.T).sum(1)),
    "updates": lambda a, b: (a.at[3].add(a[4]), a.at[:, 3].add(1), b.at[b.astype(int)[:, 0] % 20].add(b)),
    "types": lambda a, b: (a.astype("int8") + 1, a.astype("int32") + 1, a.astype("float16") + 1),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_what_is_found_is_what_would_be_made(case, made):
    f = PROGRAMS[case]
    jaxprs = [jax.make_jaxpr(g)(a, b) for g in (f, lambda a, b: f(a * 1.5, b)[::-1], f)]
    found = [nests(jaxpr) for jaxpr in jaxprs]
    for jaxpr, shown in zip(jaxprs, found):
        schedules._known.clear()
        assert nests(jaxpr) == shown


def test_what_is_kept_does_not_change(made):
    """Nests are cut, staged and joined after they are scheduled."""
    f, x, w = CASES["layers"]
    jaxpr = jax.make_jaxpr(f)(x, w, w, w)
    first, kept = nests(jaxpr), [loops.show(nest) for nest in schedules._known.values()]
    assert nests(jaxpr) == first and [loops.show(nest) for nest in schedules._known.values()] == kept != []
