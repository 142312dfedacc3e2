"""Equal steps of a program are planned once: what is written is what would be if each were planned by itself."""

import functools
import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.machine import X86_64, X86_64_V3
from catena.compiler.native.compile import program_of, shown_nests, text_of
from catena.compiler.plan import alike
from catena.compiler.plan.steps import Contract, Launch
from catena.core.context import context

shared = pytest.mark.skipif(context.check_bounds, reason="in checked mode, each step is planned by itself")
IMAGE = ("NHWC", "HWIO", "NHWC")


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def convolutions(x, ws):
    for w in ws:
        x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=IMAGE)
    return x


def layers(x, ws):
    """Layers that differ in whether their operands are one array, in constants, in types and in what is read where."""
    for k, (w, b) in enumerate(ws):
        y = jnp.cumsum(x, axis=1) * b
        x = y * y if k % 2 else y * x
        x = jnp.where(x > (0.0, -0.0, jnp.nan)[k % 3], x, x[::-1]) + x.astype(np.float16)
        x = x / jnp.max(jnp.abs(x) + jnp.arange(k % 2, x.shape[1] + k % 2), axis=1, keepdims=True)
        x = jnp.pad(x, ((0, 0), (1, 0)))[:, : x.shape[1]] @ w[:, : x.shape[1]].T
    return x


def small_products(x, ws):
    for w in ws:
        x = jnp.tanh(w @ x) + jnp.sort(x)
    return x


def products(x, ws):
    """Products by tiles, of which some read transposed operands, stored or not, and one array twice."""
    for k, w in enumerate(ws):
        x = (x @ w, x @ w.T, w @ x, x @ x, x.T.copy() @ w, jnp.tanh(x @ w))[k % 6]
    return x


def wide_convolutions(x, ws):
    for k, w in enumerate(ws):
        layout = ("NHWC", "HWIO", "NHWC") if k % 3 else ("NHWC", "HWOI", "NHWC")
        x = lax.conv_general_dilated(x, w, (1, 1), "SAME", rhs_dilation=(1, 1 + k % 2), dimension_numbers=layout)
    return x


PROGRAMS = {
    "products": (products, numbers(48, 48), [numbers(48, 48) / 7] * 14),
    "wide convolutions": (wide_convolutions, numbers(1, 9, 9, 24), [numbers(3, 3, 24, 24) / 15] * 7),
    "convolutions": (convolutions, numbers(1, 9, 9, 4), [numbers(3, 3, 4, 4)] * 3 + [numbers(3, 1, 4, 4)] * 2),
    "layers": (layers, numbers(33, 33), [(numbers(33, 33), numbers(33))] * 7),
    "small products": (small_products, numbers(5), [numbers(5, 5)] * 4),
}


def check_texts(closed, machine, monkeypatch):
    def written():
        return str(program_of(closed, machine=machine)), text_of(closed, machine=machine)

    found = written()
    monkeypatch.setattr(alike.Structure, "is_whole", property(lambda self: False, lambda self, _: None), raising=False)
    assert found == written()


@pytest.mark.share(2)
@pytest.mark.parametrize("machine", [X86_64_V3, X86_64], ids=["vectors of 256 bits", "vectors of 128 bits"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_are_those_of_nests_that_are_planned_one_by_one(name, machine, monkeypatch):
    closed = jax.make_jaxpr(PROGRAMS[name][0])(*PROGRAMS[name][1:])
    check_texts(closed, machine, monkeypatch)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_eager_evaluation(name):
    f, *operands = PROGRAMS[name]
    got, expected = jax.jit(f)(*operands), f(*operands)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@shared
def test_equal_convolutions_are_launches_of_the_same_nests():
    f, x, _ = PROGRAMS["convolutions"]
    program = program_of(jax.make_jaxpr(f)(x, [numbers(3, 3, 4, 4)] * 20), machine=X86_64_V3)
    launches = [step for _, step in program.steps() if isinstance(step, Launch)]
    assert len(launches) >= 40
    assert len({id(step.nest) for step in launches}) <= 6  # in between, and those of the ends


@shared
def test_equal_products_are_of_one_plan():
    closed = jax.make_jaxpr(lambda x, ws: functools.reduce(jnp.matmul, ws, x))(numbers(48, 48), [numbers(48, 48)] * 9)
    steps = [step for _, step in program_of(closed, machine=X86_64_V3).steps()]
    assert [type(step) for step in steps] == [Contract] * 9
    assert len({id(step.tasks) for step in steps}) == 1
    assert len({(step.a, step.b, step.c) for step in steps}) == 9


def test_nests_are_shown_with_their_own_names_of_values():
    f, x, _ = PROGRAMS["convolutions"]
    program = program_of(jax.make_jaxpr(f)(x, [numbers(3, 3, 4, 4)] * 4), machine=X86_64_V3)
    written = re.findall(r"-> (v\d+)|^  (v\d+)\[", "\n".join(shown_nests(program)), re.MULTILINE)
    assert len({fold or store for fold, store in written}) == len(
        [step for _, step in program.steps() if isinstance(step, Launch)]
    )


def test_structures_tell_apart_what_nests_would(monkeypatch):
    """Equal structures with other nests would be a wrong number: what is told has all that statements are made of."""

    def kinds(x, y):
        sums = x + y, x + x, y + x[::-1], x * 1.5, x * 2.5, x[:4] + y[1:5], x[:4] + y[2:6], x[1:5] + y[:4]
        powers = [lax.integer_pow(x, n) for n in (3, 4, 5)]
        return *sums, *powers, x.astype(np.float16), x.astype(np.int32)

    def apart(x, y):  # each in a kernel of its own
        return [lax.sort(z) for z in kinds(x, y)]

    check_texts(jax.make_jaxpr(apart)(numbers(300), numbers(300)), X86_64_V3, monkeypatch)
