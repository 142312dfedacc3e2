"""Messages that say what to do: mistakes of which JAX's message leads nowhere, or elsewhere."""

import itertools
import re
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.numpy import index_update

X, KEY = jnp.arange(6.0), jax.random.key(0)


def jitted(fun, *args):
    return lambda: jax.jit(fun)(*args)


# what the user did -> (how, exception, what the message must say)
MESSAGES = {
    "lengths without a tuple": (
        lambda: jnp.zeros(2, 3),
        TypeError,
        r"Cannot interpret '3' as a data type\.\nDid you .*`jax\.numpy\.zeros\(2, 3\)` .*`jax\.numpy\.zeros\(\(2, 3\)\)`",
    ),
    "the same of ones": (lambda: jnp.ones(2, 3), TypeError, r"jax\.numpy\.ones\(\(2, 3\)\)"),
    "the same of empty": (lambda: jnp.empty(2, 3), TypeError, r"jax\.numpy\.empty\(\(2, 3\)\)"),
    "a traced size of a slice": (
        jitted(lambda x, i, n: lax.dynamic_slice(x, (i,), (n,)), X, 0, 2),
        TypeError,
        r"slice_sizes: Shapes must be 1D[\s\S]*static_argnums[\s\S]*argument n",
    ),
    "in_axes of another structure": (
        lambda: jax.vmap(lambda p, x: x, in_axes=({"v": 0}, 0))({"w": X}, X),
        ValueError,
        r"(?s)^vmap in_axes specification must be a tree prefix of the corresponding value; \n(?!.*wrapped in a tuple)"
        r".*key path\n    vmap in_axes\[0\]\n",
    ),
    "the carry of a fori_loop": (
        lambda: lax.fori_loop(0, 3, lambda i, c: c / 2, jnp.int32(3)),
        TypeError,
        r"^fori_loop body function[\s\S]*The input carry c has type int32\[\] but",
    ),
    "the structure of the carry of a fori_loop": (
        jitted(lambda n: lax.fori_loop(0, n, lambda i, total: {"a": total["a"]}, {"a": 1.0, "b": 2.0}), 3),
        TypeError,
        r"^fori_loop body function[\s\S]*carry total is a <class 'dict'> with 2 children",
    ),
    "traced bounds of a slice": (
        jitted(lambda x, i: x[i : i + 3], X, 1),
        IndexError,
        r"Slice entries must be static integers[\s\S]*lax\.dynamic_slice\(x, \(i,\), \(3,\)\) is x\[i:i\+3\]",
    ),
    "an integer among parameters": (
        lambda: jax.grad(lambda p: p["w"])({"w": 1.0, "step": 3}),
        TypeError,
        r"but got int32.*\(It is p\['step'\] of <lambda> at .*test_messages\.py",
    ),
    "an integer argument of several": (
        lambda: jax.grad(lambda a, n: a, argnums=(0, 1))(1.0, 2),
        TypeError,
        r"\(It is n of",
    ),
    "an integer of jacfwd": (lambda: jax.jacfwd(lambda p: p[0])([1.0, 3]), TypeError, r"\(It is p\[1\] of"),
    "an integer of jacrev": (lambda: jax.jacrev(lambda p: p[0])([1.0, 3]), TypeError, r"\(It is p\[1\] of"),
    "has_aux without aux": (
        lambda: jax.grad(lambda x: x * 2, has_aux=True)(1.0),
        TypeError,
        r"return a two-element tuple, but got type float32\[\]\..*returns \(value, auxiliary data\)",
    ),
    "aux without has_aux": (
        lambda: jax.grad(lambda x: (x, x))(1.0),
        TypeError,
        r"scalar-output functions.*set has_aux=True",
    ),
    "a negative power of integers": (
        lambda: jnp.arange(3) ** -1,
        TypeError,
        r"negative powers.*\(x \*\* -1\.0\)",
    ),
    "bounds in place of shape and dtype": (
        lambda: jax.random.uniform(KEY, 0.0, 1.0),
        TypeError,
        r"uniform: dtype must stand for a dtype, got 1\.0[\s\S]*"
        r"The parameters are uniform\(key, shape=\(\), dtype=None, minval=0\.0, maxval=1\.0, \*, out_sharding=None\)",
    ),
    "a mean in place of a shape": (
        lambda: jax.random.normal(KEY, 0.0),
        TypeError,
        r"got \(0\.0,\)[\s\S]*The parameters are normal\(key, shape",
    ),
    "a name that print is not given": (
        lambda: jax.debug.print("{y}", x=1),
        KeyError,
        r"asks for \{y\}, but the keyword arguments are \['x'\]",
    ),
    "a value that print is not given": (
        lambda: jax.debug.print("{} {}", 1),
        IndexError,
        r"asks for argument 1, counted from 0, but 1 follow",
    ),
    "an f-string": (
        lambda: jax.debug.print("1", x=1),
        ValueError,
        r"Unused keyword.*\['x'\]\. You may be passing an f-",
    ),
    "a list as an index": (
        lambda: X[[0, 1]],
        TypeError,
        r"use `arr\[array\(seq\)\]` instead of `arr\[seq\]`, got \[0, 1\](?!.*github)",
    ),
    "a traced start in r_": (jitted(lambda a: jnp.r_[a:4], 1), TypeError, r"slice start of jnp\.r_"),
    "a traced stop in c_": (jitted(lambda a: jnp.c_[0:a], 1), TypeError, r"slice stop of jnp\.c_"),
    "a traced step in mgrid": (jitted(lambda a: jnp.mgrid[0:4:a], 1), TypeError, r"slice step of jnp\.mgrid"),
    "a traced stop in ogrid": (jitted(lambda a: jnp.ogrid[0:a], 1), TypeError, r"slice stop of jnp\.ogrid"),
    "a description in place of an array": (
        jitted(lambda cfg: cfg, {"net": [1.0, jax.ShapeDtypeStruct((4, 2), "int32")]}),
        TypeError,
        r"^Argument 'cfg\['net'\]\[1\]' of shape int32\[4,2\] of type <class '.*ShapeDtypeStruct'> is not a valid JAX type\.$",
    ),
    "devices of another structure": (
        lambda: jax.device_put({"a": X, "b": X}, {"a": jax.devices()[0]}),
        ValueError,
        r"^device_put device specification must be a tree prefix of the corresponding value;[\s\S]*\(1 found\)",
    ),
}


@pytest.mark.parametrize(("mistake", "kind", "pattern"), MESSAGES.values(), ids=MESSAGES)
def test_messages(mistake, kind, pattern):
    with pytest.raises(kind) as info:
        mistake()
    notes = getattr(info.value, "__notes__", [])
    text = "\n".join([str(info.value), *notes])
    assert re.search(pattern, text), text


# ---- updates whose result is dropped


def test_a_dropped_update_is_a_warning(monkeypatch):
    monkeypatch.setattr(index_update, "_looks", itertools.repeat(True))  # not only at the first calls of a process
    with pytest.warns(UserWarning, match=r"x\.at\[\.\.\.\]\.set\(\.\.\.\) is dropped") as caught:
        X.at[0].set(1.0)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=r"\.add\("):
        X.at[0].add(*[1.0], mode="drop")

    @jax.jit
    def f(x):
        x.at[0].multiply(2.0)
        return x

    with pytest.warns(UserWarning, match=r"\.multiply\("):
        f(X)


def test_updates_that_are_used_are_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = X.at[0].set(1.0)
        several = [X.at[i].set(1.0) for i in range(2)]
        several.append(X.at[2].set(1.0))
        (lambda: X.at[0].set(1.0))()
        assert X.at[0].set(1.0).shape == y.shape and f"{X.at[0].set(1.0)}"
        for _ in range(2):
            y = y.at[1].add(1.0)
        if (X.at[0].set(1.0) > 0).any():
            _ = X.at[0].set(np.float32(1))


def test_what_is_typed_at_a_prompt_is_shown_and_no_mistake():
    session = textwrap.dedent("""
        import warnings, timeit; warnings.simplefilter("error")
        import catena.numpy as jnp
        x = jnp.arange(2.0)
        x.at[0].set(5.0)
        _ = timeit.timeit("x.at[0].set(7.0)", globals=globals(), number=2)
        print("done")
    """)
    run = subprocess.run([sys.executable, "-i", "-q"], input=session, capture_output=True, text=True)
    assert "Array([5., 1.], dtype=float32)" in run.stdout and "done" in run.stdout and "Warning" not in run.stderr


def test_an_update_in_a_loop_is_seen_at_last():
    with pytest.warns(UserWarning, match="is dropped"):
        for _ in range(300):
            X.at[0].set(1.0)
