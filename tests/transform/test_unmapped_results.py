"""What a vectorised function passes through unchanged, or computes alike for all examples, is not mapped."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.experimental import io_callback

X = np.arange(2.0, dtype=np.float32)


@jax.custom_jvp
def doubled_jvp(x, t):
    return x * 2.0, t


doubled_jvp.defjvp(lambda primals, tangents: (doubled_jvp(*primals), (tangents[0] * 2.0, tangents[1])))


@jax.custom_vjp
def doubled_vjp(x, t):
    return x * 2.0, t


doubled_vjp.defvjp(lambda x, t: (doubled_vjp(x, t), None), lambda _, ct: (ct[0] * 2.0, ct[1]))


def heavy(t):
    return lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) @ jnp.eye(1) + c, t[None] * jnp.ones(1))[0]


def count_up(x, t, more=()):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1], *c[2:]), (x, t, *more))


# Each of an example x and a value t that all have in common; the second result is the same for all.
UNCHANGED = {
    "cond": lambda x, t: lax.cond(x > 0, lambda t: (t + 1.0, t), lambda t: (t - 1.0, t), t),
    "cond of much work": lambda x, t: lax.cond(x > 0, lambda t: (heavy(t), t), lambda t: (t - 1.0, t), t),
    "cond on a common predicate": lambda x, t: lax.cond(t > 0, lambda: (x, t), lambda: (x * 2, t)),
    "cond that only passes": lambda x, t: lax.cond(x > 0, lambda a, t: (a, t), lambda a, t: (a, t), x, t),
    "switch": lambda x, t: lax.switch(x.astype(int), [lambda a, t, k=k: (a * k, t) for k in range(3)], x, t),
    "scan": lambda x, t: lax.scan(lambda c, _: ((c[0] + x, c[1]), None), (0.0, t), None, length=3)[0],
    "scan, stacked": lambda x, t: lax.scan(lambda c, _: (c + x, t), 0.0, None, length=3),
    "while": count_up,
    "while, one more that is mapped": lambda x, t: count_up(x, t, (x,))[1:0:-1] + count_up(x, t, (x,))[1:2],
    "while of much work": lambda x, t: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1 + 0 * jnp.linalg.inv(jnp.eye(2) * c[1])[0, 0], c[1]), (x, t)
    ),
    "while on a common condition": lambda x, t: lax.while_loop(
        lambda c: c[2] < 3, lambda c: (c[0] + 1, c[1], c[2] + 1), (x, t, 0)
    )[:2],
    "while, from a number": lambda x, t: (count_up(x, 7.0)[0], t + 0 * count_up(x, 7.0)[1]),
    "fori_loop": lambda x, t: lax.fori_loop(0, 3, lambda i, c: (c[0] + x, c[1]), (0.0, t)),
    "fori_loop of mapped length": lambda x, t: lax.fori_loop(0, x.astype(int), lambda i, c: (c[0] + x, c[1]), (0.0, t)),
    "custom_jvp": doubled_jvp,
    "custom_vjp": doubled_vjp,
    "custom_jvp in jit": jax.jit(doubled_jvp),
    "custom_vjp in scan": lambda x, t: lax.scan(lambda c, _: (doubled_vjp(*c), None), (x, t), None, length=2)[0],
    "gradient of custom_vjp": lambda x, t: (x, jax.grad(lambda t: doubled_vjp(x, t)[1])(t)),
    "jit": jax.jit(lambda x, t: (x, t)),
    "checkpoint": jax.checkpoint(lambda x, t: (x, t + 1)),
    "jvp": lambda x, t: jax.jvp(lambda t: (x, t), (t,), (t,))[1],
    "vjp": lambda x, t: (x, jax.vjp(lambda t: t * 2.0, t)[1](t)[0]),
    "vmap": lambda x, t: jax.vmap(lambda a, b: (a, b), in_axes=(None, None), out_axes=None, axis_size=2)(x, t),
    "pure_callback": lambda x, t: (x, jax.pure_callback(np.asarray, jax.ShapeDtypeStruct((), np.float32), t)),
    "io_callback": lambda x, t: (x, io_callback(np.asarray, jax.ShapeDtypeStruct((), np.float32), t)),
    "optimization_barrier": lambda x, t: lax.optimization_barrier((x, t)),
    "custom_root": lambda x, t: (
        x,
        lax.custom_root(lambda v: v * 2.0 - t, 0.0, lambda f, x0: t / 2.0, lambda f, y: y / 2.0),
    ),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", UNCHANGED)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_unchanged_values_are_not_mapped(name, wrap):
    fun = UNCHANGED[name]
    mapped, common = wrap(jax.vmap(fun, in_axes=(0, None), out_axes=(0, None)))(X, np.float32(5))
    one_by_one = [fun(x, np.float32(5)) for x in X]
    np.testing.assert_allclose(mapped, [m for m, _ in one_by_one], rtol=1e-6)
    for _, expected in one_by_one:
        np.testing.assert_allclose(common, expected, rtol=1e-6)


def test_rules_may_map_what_their_function_does_not():
    """Where the derivative of an unmapped result is mapped, both are."""
    fun = jax.custom_jvp(lambda x, t: (x * 2.0, t))
    fun.defjvp(lambda primals, tangents: (fun(*primals), (tangents[0] * 2.0, tangents[1] * primals[0])))
    for wrap in (lambda f: f, jax.jit):
        both = wrap(jax.vmap(fun, in_axes=(0, None)))
        out, tangents = jax.jvp(both, (X, np.float32(5)), (X, np.float32(1)))
        np.testing.assert_array_equal(out[1], [5, 5])
        np.testing.assert_array_equal(tangents[1], X)


EQUAL = {
    "psum": lambda x: lax.psum(x, "i"),
    "pmean": lambda x: lax.pmean(x, "i"),
    "pmax": lambda x: lax.pmax(x, "i"),
    "pmin": lambda x: lax.pmin(x, "i"),
    "all_gather": lambda x: lax.all_gather(x, "i"),
    "all_gather, tiled": lambda x: lax.all_gather(x[None], "i", tiled=True),
    "axis_size": lambda x: lax.axis_size("i"),
    "psum of a number": lambda x: lax.psum(2.0, "i"),
    "ppermute of a common value": lambda x: lax.ppermute(jnp.float32(2), "i", [(0, 1), (1, 0)]),
}


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_results_of_collectives_that_are_equal_are_not_mapped(name, wrap):
    everywhere = jax.vmap(EQUAL[name], axis_name="i")(X)
    common = wrap(jax.vmap(EQUAL[name], axis_name="i", out_axes=None))(X)
    for one in everywhere:
        np.testing.assert_array_equal(one, common)


def test_numbers_stay_numbers():
    x, eight = jax.vmap(lambda x: (x, 8.0), out_axes=(0, None))(X)
    assert type(eight) is float and eight == 8.0
    assert jax.vmap(lambda x: 8.0)(X).weak_type
    with pytest.raises(TypeError, match="Output from batched function 'a' with type <class 'str'>"):
        jax.vmap(lambda x: "a")(X)


def test_what_is_not_mapped_may_be_any_object():
    out = jax.vmap(lambda name, v: v * len(name), in_axes=(None, 0))("four", jnp.arange(3))
    assert out.tolist() == [0, 4, 8]
    assert jax.vmap(lambda f, v: f(v), in_axes=(None, 0))(jnp.negative, X).tolist() == [0, -1]
    with pytest.raises(TypeError, match="Argument 'a' of type <class 'str'> is not a valid JAX type"):
        jax.vmap(lambda a, b: a)(X, "a")


@pytest.mark.parametrize("transformation", [jax.vmap, jax.pmap])
@pytest.mark.parametrize("axes", [False, (True,), ({"a": False},), 1.0, "a", np.bool_(0)])
def test_only_integers_are_axes(transformation, axes):
    with pytest.raises(TypeError, match="in_axes must be an int, None"):
        transformation(lambda x: x, in_axes=axes)(X)
    with pytest.raises(TypeError, match="out_axes must be an int, None"):
        transformation(lambda x: x, out_axes=axes)(X)


def test_sizes_that_differ_are_named_as_they_were_given():
    with pytest.raises(ValueError, match=r"axis 0 of kwargs\['y'\] of type float32\[3\]"):
        jax.vmap(lambda x, y: x)(X, y=jnp.ones(3))
    with pytest.raises(ValueError, match=r"axis 0 of kwargs\['y'\]\['z'\] of type"):
        jax.vmap(lambda x, **kwargs: x)(X, y={"z": jnp.ones(3)})
    with pytest.raises(ValueError, match=r"axis 0 of args\[1\] of type"):
        jax.vmap(lambda x: x)(X, jnp.ones(3))
