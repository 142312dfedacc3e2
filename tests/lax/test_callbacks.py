"""Calls back into Python: values, order, errors, vectorisation and differentiation, evaluated and compiled."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.experimental import io_callback

SCALAR = jax.ShapeDtypeStruct((), np.float32)
VECTOR = jax.ShapeDtypeStruct((3,), np.float32)
X = np.arange(3, dtype=np.float32)


def double(x):
    return 2 * np.asarray(x)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_pure_callback(transform):
    f = transform(lambda x: lax.add(jax.pure_callback(double, VECTOR, x), 1.0))
    np.testing.assert_array_equal(f(X), 2 * X + 1)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_trees_and_keywords(transform):
    def host(d, *, k):
        return {"sum": np.asarray(d["a"]) + np.asarray(k), "n": np.int32(3)}

    shapes = {"sum": VECTOR, "n": jax.ShapeDtypeStruct((), np.int32)}
    out = transform(lambda a, k: jax.pure_callback(host, shapes, {"a": a}, k=k))(X, np.float32(1))
    np.testing.assert_array_equal(out["sum"], X + 1)
    assert out["n"].dtype == np.int32 and int(out["n"]) == 3


def test_results_are_converted_to_the_promised_dtype():
    assert jax.pure_callback(lambda x: np.float64(1), SCALAR, 1.0).dtype == np.float32


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_vmap_methods(method, transform):
    shapes = []

    def host(x, y):
        shapes.append((np.shape(x), np.shape(y)))
        return np.asarray(x) + np.asarray(y)

    f = jax.vmap(lambda x, y: jax.pure_callback(host, SCALAR, x, y, vmap_method=method), in_axes=(0, None))
    np.testing.assert_array_equal(transform(f)(X, np.float32(1)), X + 1)
    expected = {
        "expand_dims": [((3,), (1,))],
        "broadcast_all": [((3,), (3,))],
        "legacy_vectorized": [((3,), ())],
    }.get(method, [((), ())] * 3)
    assert shapes == expected


def test_vmap_needs_a_method():
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jax.vmap(lambda x: jax.pure_callback(double, SCALAR, x))(X)
    with pytest.raises(ValueError, match="vmap_method must be one of"):
        jax.pure_callback(double, SCALAR, 1.0, vmap_method="serial")


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_errors_in_the_callback_reach_the_user(transform):
    def fails(x):
        raise KeyError("zip")

    with pytest.raises(jax.errors.JaxRuntimeError, match="fails, which raised KeyError: 'zip'") as caught:
        transform(lambda x: jax.pure_callback(fails, SCALAR, x))(1.0)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Incorrect output shape.*Expected: \(3,\), Actual: \(2,\)"):
        transform(lambda x: jax.pure_callback(lambda x: np.zeros(2), VECTOR, x))(1.0)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Mismatched number of outputs"):
        transform(lambda x: jax.pure_callback(lambda x: None, SCALAR, x))(1.0)


def test_no_derivative():
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        jax.grad(lambda x: jax.pure_callback(double, SCALAR, x))(1.0)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        jax.grad(lambda x: io_callback(double, SCALAR, x))(1.0)
    constant = jax.grad(lambda x: lax.mul(x, jax.pure_callback(double, SCALAR, 3.0)))(1.0)
    assert float(constant) == 6.0


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_io_callback_runs_once_in_order(ordered, transform):
    seen = []

    def note(x):
        seen.append(float(x))
        return np.float32(len(seen))

    def f(x):
        a = io_callback(note, SCALAR, x, ordered=ordered)
        io_callback(lambda x: seen.append(-float(x)), None, x, ordered=ordered)
        return a

    assert float(transform(f)(2.0)) == 1.0
    assert sorted(seen) == [-2.0, 2.0]
    if ordered:
        assert seen == [2.0, -2.0]


def test_io_callback_vmap():
    np.testing.assert_array_equal(jax.vmap(lambda x: io_callback(double, SCALAR, x))(X), 2 * X)
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        jax.vmap(lambda x: io_callback(double, SCALAR, x, ordered=True))(X)


def test_debug_print(capsys):
    jax.debug.print("a {} b {b:.2f}", 1, b=np.float32(2))
    jax.jit(lambda x: jax.debug.print("x={x}", x=x))(X)
    jax.vmap(lambda x: jax.debug.print("v={}", x))(X)
    assert float(jax.grad(lambda x: (jax.debug.print("g={}", x), x * x)[1])(2.0)) == 4.0
    out = capsys.readouterr().out.splitlines()
    assert out == ["a 1 b 2.00", "x=[0. 1. 2.]", "v=0.0", "v=1.0", "v=2.0", "g=2.0"]


def test_debug_print_in_compiled_loops_and_branches(capsys):
    def f(n):
        def body(i, c):
            jax.debug.print("i={}", i, ordered=True)
            lax.cond(i % 2 == 0, lambda: jax.debug.print("even"), lambda: None)
            return c + i

        return lax.fori_loop(0, n, body, 0)

    assert int(jax.jit(f)(3)) == 3
    assert capsys.readouterr().out.split() == ["i=0", "even", "i=1", "i=2", "even"]


def test_debug_print_checks_its_format():
    with pytest.raises(ValueError, match="Unused positional arguments"):
        jax.debug.print("x", 1)
    with pytest.raises(ValueError, match="Unused keyword arguments"):
        jax.debug.print("x", y=1)
    with pytest.raises(TypeError, match="format string"):
        jax.debug.print(3)
    jax.debug.print("ok", 1, skip_format_check=True)


def test_debug_callback_takes_a_callable():
    with pytest.raises(TypeError, match="first argument to jax.debug.callback must be callable"):
        jax.debug.callback(3)


def test_effects_show_in_the_jaxpr():
    closed = jax.make_jaxpr(lambda x: io_callback(double, SCALAR, x, ordered=True))(1.0)
    assert "ordered=True" in str(closed) and len(closed.effects) == 1
    assert not jax.make_jaxpr(lambda x: jax.pure_callback(double, SCALAR, x))(1.0).effects
    unused = jax.make_jaxpr(lambda x: (jax.debug.callback(double, x), x)[1])(1.0)
    assert len(unused.eqns) == 1


def prints(capsys, function, *args):
    """What a compiled call prints, line by line."""
    jax.block_until_ready(jax.jit(function)(*args))
    return capsys.readouterr().out.splitlines()


def test_lanes_print_for_themselves(capsys):
    """A lane takes its own branch, and its own number of rounds, and prints just there."""

    def count(n):
        return lax.while_loop(lambda c: c < n, lambda c: (jax.debug.print("{} of {}", c, n), c + 1)[1], 0)

    def choose(x):
        return lax.cond(x > 1, lambda: jax.debug.print("big {}", x), lambda: jax.debug.print("small {}", x))

    three = np.arange(3, dtype=np.int32)
    assert sorted(prints(capsys, jax.vmap(count), three)) == ["0 of 1", "0 of 2", "1 of 2"]
    assert sorted(prints(capsys, jax.vmap(choose), three)) == ["big 2", "small 0", "small 1"]


def test_compiled_scans_switches_and_gradients_print(capsys):
    def running(xs):
        return lax.scan(lambda c, x: (c + x, jax.debug.print("{} {}", c, x, ordered=True)), 0, xs)[0]

    def branch(k):
        return lambda: jax.debug.print("branch {}", k)

    def power(x):
        return lax.fori_loop(0, 2, lambda i, c: (jax.debug.print("i={}", i), c * x)[1], x)

    assert prints(capsys, running, np.arange(3, dtype=np.int32)) == ["0 0", "0 1", "1 2"]
    assert prints(capsys, lambda i: lax.switch(i, [branch(k) for k in range(40)]), np.int32(29)) == ["branch 29"]
    assert prints(capsys, jax.grad(power), 2.0) == ["i=0", "i=1"]


# ---- types, failures and forms of calls


CALLBACKS = pytest.mark.parametrize("call", [jax.pure_callback, io_callback])


@CALLBACKS
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64, np.complex128, float, int, "float64"])
def test_64_bit_results_need_64_bits(call, dtype):
    struct = jax.ShapeDtypeStruct((), dtype)
    for f in (lambda x: call(lambda x: x, struct, x), jax.jit(lambda x: call(lambda x: x, struct, x))):
        with pytest.raises(ValueError, match="cannot specify 64-bit types"):
            f(0.0)
    with jax.enable_x64():
        assert call(lambda x: np.zeros((), dtype), struct, 0.0).dtype == dtype


@CALLBACKS
def test_results_of_another_kind_are_not_converted(call):
    for returned, promised in ((3.5, "int32"), (3, "float32"), (1j, "float32"), (True, "int32")):
        f = lambda x, r=returned, p=promised: call(lambda x: r, jax.ShapeDtypeStruct((), p), x)
        for g in (f, jax.jit(f)):
            with pytest.raises(jax.errors.JaxRuntimeError, match=f"output dtype for return value #0.*{promised}"):
                g(0.0)
    assert call(lambda x: 3.5, SCALAR, 0.0) == 3.5  # a Python float is of 32 bits here


@CALLBACKS
def test_callbacks_are_not_transposed(call):
    f = lambda x: call(lambda x: x, jax.ShapeDtypeStruct((), x.dtype), x)
    for g in (f, jax.jit(f)):
        with pytest.raises(ValueError, match="callbacks do not support transpose"):
            jax.linear_transpose(g, 1.0)(1.0)


def fail(x):
    raise KeyError("Ooops")


@pytest.mark.parametrize("name", ["pure_callback", "io_callback", "debug.callback"])
def test_failures_are_logged_with_the_user_s_frames(name, caplog):
    call = {
        "pure_callback": lambda x: jax.pure_callback(fail, SCALAR, x),
        "io_callback": lambda x: io_callback(fail, SCALAR, x),
        "debug.callback": lambda x: jax.debug.callback(fail, x),
    }[name]
    for f in (call, jax.jit(call)):
        caplog.clear()
        with pytest.raises(KeyError if name == "debug.callback" and f is call else jax.errors.JaxRuntimeError):
            f(1.0)
            jax.effects_barrier()
        (record,) = [r for r in caplog.records if "failed" in r.message]
        assert record.levelname == "ERROR" and record.message == f"jax.{name} failed"
        assert "Ooops" in caplog.text and "in fail" in caplog.text and "in call_logged" not in caplog.text


def test_options_first_and_values_in_a_second_call(capsys):
    jax.debug.print(ordered=True)("v = {}", jnp.arange(2))
    jax.jit(lambda x: jax.debug.print()("x = {x}", x=x))(1)
    jax.debug.callback(ordered=True)(lambda x: print("got", x), 2.0)
    jax.effects_barrier()
    assert capsys.readouterr().out.splitlines() == ["v = [0 1]", "x = 1", "got 2.0"]
    jax.debug.log(ordered=True)("v = {}", 1)
    for f in (jax.debug.print, jax.debug.callback, jax.debug.log):
        with pytest.raises(TypeError, match="two-call form"):
            f(x=1)


def test_values_are_printed_as_numpy_prints_where_the_print_stands(capsys):
    @jax.jit
    def show(v):
        with np.printoptions(precision=1):
            jax.debug.print("{}", v)

    for _ in range(2):
        with np.printoptions(precision=3):
            show(jnp.array([3.14159, 2.71828]))
    jax.effects_barrier()
    assert capsys.readouterr().out.splitlines() == ["[3.1 2.7]"] * 2


def test_formatted_strings_are_told_from_formats():
    with pytest.raises(ValueError, match=r"\['x'\]. You may be passing an f-string"):
        jax.debug.print(f"{jnp.ones(2)}", x=1)
    with pytest.raises(ValueError, match=r"\[1\]. You may be passing an f-string"):
        jax.debug.print("x", 1)


def test_a_pure_callback_without_results_need_not_be_called():
    f = lambda x: jax.pure_callback(lambda x: 1 / 0, (), x)
    assert f(1.0) == jax.jit(f)(1.0) == ()


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.grad, lambda f: lambda x: jax.vmap(f)(x[None])])
def test_what_is_no_array_reaches_a_debug_callback_as_it_is(transform):
    seen = []

    def f(x):
        jax.debug.callback(lambda *args, **kwargs: seen.append((args, kwargs)), "step", {"x": x, "of": None}, by=len)
        return x * 2

    transform(f)(jnp.float32(3))
    jax.effects_barrier()
    assert seen == [(("step", {"x": 3.0, "of": None}), {"by": len})]


TRANSFORMS = {
    "eager": lambda f, keys: f(keys[0]),
    "jit": lambda f, keys: jax.jit(f)(keys[0]),
    "vmap": lambda f, keys: jax.vmap(f)(keys)[0],
    "scan": lambda f, keys: lax.scan(lambda c, k: (c, f(k)), 0, keys)[1][0],
}


@pytest.mark.parametrize("impl", ["threefry2x32", "threefry4x32", "rbg"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_callbacks_are_given_the_words_of_keys(transform, impl):
    keys = jax.random.split(jax.random.key(7, impl=impl), 2)
    words = jax.random.key_data(keys[0])
    shape = jax.ShapeDtypeStruct(words.shape, np.uint32)
    found = []

    def pure(key):
        return jax.pure_callback(lambda k: k, shape, key, vmap_method="sequential")

    def ordered(key):
        return io_callback(lambda k: k, shape, key)

    def debug(key):
        jax.debug.callback(lambda k: found.append(k), key)
        return jax.random.key_data(key)

    for f in (pure, ordered, debug):
        np.testing.assert_array_equal(TRANSFORMS[transform](f, keys), words)
    seen = (
        jax.random.key_data(found[0]) if transform == "eager" else found[0]
    )  # what is no tracer is handed on as it is
    assert seen.dtype == np.uint32
    np.testing.assert_array_equal(seen, words)
