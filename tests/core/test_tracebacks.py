"""Tracebacks of errors that users catch, log or see in pytest: their own frames, whatever raised in the package."""

import inspect
import logging
import os
import traceback
from types import FunctionType

import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

PACKAGE = os.path.dirname(jax.__file__) + os.sep
X, Y, KEY = jnp.ones((2, 3)), jnp.ones((4, 5)), jax.random.key(0)
JITTED = jax.jit(lambda x: x)


def own_frames(error) -> list[str]:
    """The package's functions in a traceback."""
    return [f.name for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(PACKAGE)]


@pytest.fixture
def filtering():
    """A function that sets the mode for the time of a test."""
    yield lambda mode: jax.config.update("jax_traceback_filtering", mode)
    jax.config.update("jax_traceback_filtering", "auto")


MISTAKES = {
    "an operator": lambda: X @ Y,
    "an operator on values that NumPy refuses first": lambda: X + Y,
    "a comparison": lambda: X < Y,
    "a power": lambda: jnp.arange(3) ** -1,
    "a sign": lambda: -jnp.array(True),
    "a method": lambda: X.sum(axis=5),
    "reshape": lambda: X.reshape(7),
    "astype": lambda: X.astype("float33"),
    "an index": lambda: X[0, 0, 0],
    "an update": lambda: X.at[0].set(Y),
    "an assignment": lambda: X.__setitem__(0, 1),
    "a truth value": lambda: bool(X),
    "an integer": lambda: int(X),
    "an item": lambda: X.item(),
    "an iteration": lambda: list(jnp.float32(1)),
    "a scalar type": lambda: jnp.int32("a"),
    "a ufunc": lambda: jnp.add(X, Y),
    "a method of a ufunc": lambda: jnp.add.reduce(X, axis=7),
    "a primitive": lambda: lax.add(X, Y),
    "a loop": lambda: lax.scan(lambda c, _: (c[0], None), 0.0, None, length=2),
    "a sampler": lambda: jax.random.uniform(KEY, shape=(2.5,)),
    "a tree": lambda: jax.tree.map(lambda a, b: a, (1, 2), (1,)),
    "a gradient": lambda: jax.grad(lambda x: x)(X),
    "a derivative": lambda: jax.vjp(jnp.sin, 1.0)[1]("a"),
    "a jitted function": lambda: JITTED("a"),
    "a batch": lambda: jax.vmap(lambda x: x)(1.0),
    "a flag": lambda: jax.config.update("jax_no_such_flag", 1),
    "a device": lambda: jax.device_put("a"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_the_frames_of_the_package_stay_out_of_what_users_catch(mistake):
    with pytest.raises(Exception) as info:
        mistake()
    assert own_frames(info.value) == []
    assert info.value.__context__ is None or info.value.__suppress_context__


NAMESPACES = [jax, jnp, jnp.linalg, jnp.fft, lax, lax.linalg, jax.random, jax.tree, jax.tree_util, jax.nn.initializers]
FUNCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in NAMESPACES
    for name in dir(module)
    if not name.startswith("_") and inspect.isroutine(getattr(module, name))
}


def test_every_public_function_is_a_door():
    """Called with too many strange arguments, none shows a frame but the call itself."""
    seen = {}
    for name, function in FUNCTIONS.items():
        for arguments in ([object()] * 3, [object()], [X, object()], [KEY, object()], [X] * 9):
            try:
                function(*arguments)
            except Exception as error:
                if own_frames(error):
                    seen[name] = own_frames(error)
    assert seen == {}


def test_public_functions_can_be_given_other_code():
    """As qwix does with a function that a library may hold already; for the original it calls a copy."""
    held, ones = lax.dot_general, jnp.ones((2, 2))
    copy, code = FunctionType(held.__code__, held.__globals__), held.__code__
    copy.__kwdefaults__ = held.__kwdefaults__
    held.__code__ = (lambda *args, **kwargs: (len(args), sorted(kwargs))).__code__
    try:
        assert held(ones, ones, precision=None) == (2, ["precision"])
        assert (copy(ones, ones, (((1,), (0,)), ((), ()))) == 2).all()
    finally:
        held.__code__ = code


def test_the_log_shows_no_frames_of_the_package(caplog):
    with caplog.at_level(logging.ERROR):
        try:
            jnp.linalg.norm(X, ord="bad")
        except ValueError:
            logging.exception("it failed")
    assert PACKAGE not in caplog.text and "test_tracebacks.py" in caplog.text


@pytest.mark.parametrize("mistake", [MISTAKES["an operator"], MISTAKES["a tree"], MISTAKES["a jitted function"]])
def test_the_modes_hold_for_eager_errors_too(filtering, mistake):
    filtering("off")
    with pytest.raises(Exception) as whole:
        mistake()
    assert own_frames(whole.value)
    filtering("tracebackhide")
    with pytest.raises(Exception) as hidden:
        mistake()
    assert own_frames(hidden.value) == own_frames(whole.value)
    shown = [entry for entry in hidden.traceback if not entry.ishidden(hidden)]
    assert {str(entry.path) for entry in shown} == {__file__}
    for mode, notes in (("remove_frames", 0), ("quiet_remove_frames", 1), ("auto", 0)):
        filtering(mode)
        with pytest.raises(Exception) as info:
            mistake()
        assert own_frames(info.value) == []
        assert sum("FILTERING=off" in note for note in getattr(info.value, "__notes__", ())) == notes


def test_what_the_user_handles_stays_in_the_chain():
    with pytest.raises(TypeError) as info:
        try:
            {}["missing"]
        except KeyError:
            X @ Y
    assert isinstance(info.value.__context__, KeyError) and not info.value.__suppress_context__


@pytest.mark.parametrize("fun", [jnp.matmul, jnp.cross, lax.dot], ids=["matmul", "cross", "dot"])
def test_what_is_refused_for_the_first_time_is_no_consequence_of_a_program_that_was_not_made(fun):
    for sizes in ((5, 8), (5, 8)):
        x, y = map(jnp.ones, sizes)
        with pytest.raises((TypeError, ValueError)) as info:
            try:
                {}["missing"]
            except KeyError:
                fun(x, y)
        assert isinstance(info.value.__context__, KeyError) and not info.value.__suppress_context__


def test_frames_of_users_below_the_package_stay():
    def body(carry, _):
        return carry @ Y, None

    with pytest.raises(TypeError) as info:
        lax.scan(body, X, None, length=2)
    names = [f.name for f in traceback.extract_tb(info.value.__traceback__)]
    assert names[-1] == "body" and own_frames(info.value) == []
