"""What comes to subnormal numbers goes on with nests that take care of them (`plan/careful.py`), with the same bits."""

import ctypes
import platform
import time

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.emit import careful as emitted
from catena.compiler.machine import ICE_LAKE
from catena.compiler.native import cache, later, link
from catena.compiler.native import compile as compiler
from catena.compiler.plan import careful
from catena.compiler.plan.steps import Launch
from catena.compiler.vector_math import harness, small
from catena.core.config import override

N = 192  # rows and columns: enough that threads share them, and that it is worth asking
SPOT = np.zeros((N, N), np.float32)
SPOT[90:100, 90:100] = 1
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="elsewhere such numbers are as quick as others")


def around(u):
    p = jnp.pad(u, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u


def reacting(u, v):
    product = u * v * v
    return u + 0.16 * around(u) - product + 0.035 * (1 - u), v + 0.08 * around(v) + product - 0.1 * v


LOOPS = {
    "what decays": (lambda u: 0.25 * u, 120),
    "what spreads": (lambda u: u + 0.2 * around(u), 120),
    "rows that decay by their own factors": (lambda u: u * jnp.linspace(0.1, 0.9, N)[:, None] ** 2, 60),
    "squares": (lambda u: 0.99 * u * u + 1e-30 * u**2, 20),
    "quotients": (lambda u: u / (3 + u) + 1e-42 / (1 + u), 90),
    "quotients by what is large": (lambda u: u / (u + 1e5), 20),
    "tiny coefficients": (lambda u: 1e-35 * jnp.roll(u, 1, 0) + u * 0.5, 40),
    "sums of products": (lambda u: 0.3 * u + u * (0.1 * jnp.roll(u, 1)), 90),
    "negative ones, and zeros": (lambda u: -0.4 * u * (u != 1), 120),
    "what becomes infinite": (lambda u: jnp.where(u > 0.5, u * 3, u * 0.2), 90),
}


def repeated(step, times):
    return lambda u: [lax.fori_loop(0, times, lambda i, u: step(u).astype(u.dtype), u)]


def check(f, *args):
    """The same bits as of a program that has no such nests."""
    found = jax.jit(f)(*args)
    with override("jax_check_bounds", True):
        expected = jax.jit(f)(*args)
    for a, b in zip(found, expected, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", LOOPS)
def test_bits_are_those_of_plain_nests(name, dtype):
    step, times = LOOPS[name]
    check(repeated(step, times), jnp.asarray(np.maximum(SPOT, np.float32(3e-36) * (SPOT.cumsum(1) > 0)), dtype))


def test_two_carries_in_a_scan():
    def f(u, v):
        return lax.scan(lambda c, _: (reacting(*c), c[1].max()), (u, v), None, length=90)[0]

    check(f, jnp.asarray(1 - 0.5 * SPOT), jnp.asarray(0.25 * SPOT))


def test_programs_that_are_called_again():
    """A step of an optimiser on rows without gradients, whose means decay, and stay at the least number."""
    rng = np.random.default_rng(0)
    gradient = np.float32(rng.standard_normal((512, 512)) * (np.arange(512) < 9)[:, None])

    def step(mean, square):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.5 * square + 0.5 * gradient * gradient
        return mean, square, mean / (jnp.sqrt(square) + 1e-8)

    results = []
    for checked in (False, True):
        with override("jax_check_bounds", checked):
            program, state = jax.jit(step), (jnp.full((512, 512), 2e-44), jnp.full((512, 512), 1e-36))
            for _ in range(12):
                *state, moved = program(*state)
            results.append([np.asarray(x).tobytes() for x in (*state, moved)])
    assert results[0] == results[1]
    mean = np.float32(2e-44)
    for _ in range(12):
        mean = np.float32(0.9) * mean
    assert mean > 0 and (np.asarray(state[0])[9:] == mean).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (0.3 * x).sum(1),
        lambda x, y: (x * y).sum(),
        lambda x, y: jnp.cumsum(0.5 * x, 1),
        lambda x, y: (x * y).max(0),
        lambda x, y: (0.7 * x)[:, ::-1].T,
        lambda x, y: jnp.where(x > 1e-40, x * y, x / (1 + y)),
        lambda x, y: jnp.exp(-y) * x * jnp.sin(y),
        lambda x, y: x @ (0.5 * y),
        lambda x, y: jnp.tanh(y) * (1 - y) * 1e-39,
        lambda x, y: 1e-38 * (y - 1) + 1e-25 * x,
    ],
)
def test_reductions_and_functions(f):
    rng = np.random.default_rng(1)
    x = np.float32(rng.standard_normal((512, 512)) * 2.0 ** rng.integers(-150, -110, (512, 512)))
    y = np.float32(rng.standard_normal((512, 512)) ** 2)
    results = []
    for checked in (False, True):
        with override("jax_check_bounds", checked):
            program = jax.jit(f)
            results.append([np.asarray(program(x, y)).tobytes() for _ in range(7)])
    assert len({*results[0], *results[1]}) == 1


def test_which_nests_are_written_twice(monkeypatch):
    def count(f, *args):
        program = compiler.program_of(jax.make_jaxpr(f)(*args), machine=ICE_LAKE)
        return sum(isinstance(step, Launch) and step.careful is not None for _, step in program.steps())

    with override("jax_check_bounds", False):
        large, small = np.ones((512, 512), np.float32), np.ones((100, 100), np.float32)
        assert count(lambda x: 0.5 * x, large) == 1 and count(lambda x: 0.5 * x, small) == 0
        assert count(lambda x: x + 0.5, large) == 0 and count(lambda x: 3 * x, np.int32(large)) == 0
        assert count(*[repeated(lambda u: 0.5 * u, 9), small]) == 1
        shared = np.ones((2048, 2048), np.float32)
        assert count(lambda x: 0.5 * x, shared) == 1
        monkeypatch.setattr(careful, "MOST_TASKS", 1)  # more would have no memory
        assert count(lambda x: 0.5 * x, shared) == 0


def test_what_is_multiplied_by_tiny_numbers_is_small_whatever_it_is():
    """But zero; by coefficients it is small where it is nearly subnormal itself."""
    large = np.ones((512, 512), np.float32)
    asked = small.asking(small.IS_SMALL, small.LEAST_BY_TINY)
    for number, is_tiny in ((1e-39, True), (-1e-30, True), (1e-12, False), (0.5, False)):
        with override("jax_check_bounds", False):
            executable = compiler.compile_jaxpr(jax.make_jaxpr(lambda x: x * number)(large))  # noqa: B023
        assert (asked in executable.as_text()) == is_tiny


def test_plain_nests_have_functions_in_place_as_if_there_were_no_others(monkeypatch):
    """What careful nests call makes no function one that is called too often for that."""
    f = lambda x: jnp.exp(-x) * (1 - x) * jnp.exp(x * x) / (3 + x)
    closed = jax.make_jaxpr(f)(np.ones((512, 512), np.float32))

    def called():
        program = compiler.program_of(closed, machine=ICE_LAKE)
        return compiler.write_program(compiler._writer(ICE_LAKE), program, False)

    with override("jax_check_bounds", False):
        twice = called()
        monkeypatch.setattr(careful, "MOST_PRODUCTS", 0)
        once = called()
    assert len(twice.functions) > len(once.functions) and once.math_calls()
    assert twice.math_calls() == once.math_calls()


def test_numbers_that_come_and_go():
    def step(u):
        return jnp.where(u < 1e-39, u + 1, u * 1e-5)

    check(repeated(step, 200), jnp.asarray(SPOT + 0.5))


def test_halvings_are_exact_down_to_the_least_number():
    u = jnp.asarray(np.full((N, N), 2.0**-20, np.float32))
    (found,) = jax.jit(repeated(lambda u: u * 0.5, 129))(u)
    np.testing.assert_array_equal(found, np.full((N, N), 2.0**-149))
    (found,) = jax.jit(repeated(lambda u: u * 0.5, 130))(u)
    np.testing.assert_array_equal(found, np.zeros((N, N)))


@pytest.fixture
def compiled(monkeypatch):
    """How many careful nests were compiled."""
    count = []
    code = link.object_code

    def counted(name, text, *how):
        count.extend([name] * ("ptr %plain" in text and " cold {" in text))
        return code(name, text, *how)

    monkeypatch.setattr(link, "object_code", counted)
    with override("jax_check_bounds", False):
        yield count


@on_x86
def test_they_are_compiled_when_there_are_such_numbers(compiled, folder):
    def f(u, times):
        return lax.fori_loop(0, times, lambda i, u: 0.37 * u + 0.13 * jnp.roll(u, 3), u)

    program = jax.jit(f)
    program(SPOT + 1, 50)
    assert not compiled
    program(SPOT + 1, 400)
    assert len(compiled) == 1
    program(SPOT + 1, 400)
    assert len(compiled) == 1


@on_x86
def test_programs_that_are_found_on_disk_find_them(compiled, folder):
    def executable():
        closed = jax.make_jaxpr(lambda u: lax.fori_loop(0, 300, lambda i, u: 0.41 * u + 0.17 * jnp.roll(u, 5), u))(SPOT)
        return compiler.compile_jaxpr(closed)

    units = executable().parts.units
    texts = [unit for unit in units if later.found(unit) is not None]
    assert len(texts) == 1 and cache.load(texts[0].name) is None and not compiled
    (found,) = executable()(np.asarray(SPOT + 1))
    assert len(compiled) == 1 and cache.load(texts[0].name) is not None
    assert 0 < np.asarray(found).max() < 1e-38 or not np.asarray(found).any()


def test_none_where_they_count_as_zeros():
    with override("jax_flush_subnormals", True):
        (found,) = jax.jit(repeated(lambda u: u * 0.5, 140))(jnp.asarray(SPOT))
    np.testing.assert_array_equal(found, np.zeros((N, N)))


class Task:
    """A task whose two texts are functions here, which meet a subnormal number and take long, or do not."""

    def __init__(self):
        self.least, self.slow, self.ran = [5e-324], set(), []
        engine = harness.engine_of(f"define void @choose{emitted.text(1, [False, False], False, 0)}")
        self.choose = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(engine.get_function_address("choose"))
        kinds = ctypes.CFUNCTYPE(None, ctypes.c_void_p), ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)
        self.ways = kinds[0](lambda _: self.run("plain")), kinds[1](lambda *_: self.run("careful"))
        self.functions = (ctypes.c_void_p * 2)(*(ctypes.cast(f, ctypes.c_void_p) for f in self.ways))
        self.noted = np.zeros(emitted.PARTS, np.int32)

    def run(self, name: str) -> None:
        self.ran.append(name)
        time.sleep(0.02 * (name in self.slow))
        self.least = [max(v * 0.5, v) for v in self.least]

    def runs(self, times: int) -> list[str]:
        self.ran = []
        for _ in range(times):
            self.choose(self.noted.ctypes.data, ctypes.addressof(self.functions), None)
        return self.ran


@on_x86
def test_the_quicker_way_goes_on():
    task, each = Task(), emitted.OFTEN
    task.slow = {"plain"}
    assert task.runs(3 * each) == ["plain"] * each + ["careful"] * 2 * each
    task.least = [1.0]  # no such number any more
    assert task.runs(2 * each) == ["careful"] + ["plain"] * (2 * each - 1)
    task.least, task.slow = [5e-324], {"careful"}
    assert task.runs(3 * each) == ["plain"] * each + ["careful"] * each + ["plain"] * each
    assert task.noted[0] == emitted.PLAIN and 0 < task.noted[1] < task.noted[2]


@on_x86
def test_what_takes_longer_than_it_did_is_compared_anew():
    task, each = Task(), emitted.OFTEN
    task.slow = {"careful"}
    assert task.runs(2 * each)[-1] == "careful" and task.runs(1) == ["plain"]
    task.slow, task.noted[2] = {"plain"}, 1 << 20
    assert task.runs(2 * each + 1) == ["plain"] * each + ["careful"] * (each + 1)
    assert task.noted[0] == emitted.CAREFUL
