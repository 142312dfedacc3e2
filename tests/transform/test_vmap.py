"""Vectorisation: axes in and out, trees, sizes, nesting, closures."""

import collections

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)
Point = collections.namedtuple("Point", "x y")


def close(actual, expected, tol=1e-5):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=tol)


# ---- axes


@pytest.mark.share(2)
@pytest.mark.parametrize("in_axis", [0, 1, -1, -2])
@pytest.mark.parametrize("out_axis", [0, 1, -1, -2])
def test_axes(in_axis, out_axis):
    out = jax.vmap(lambda row: row * 2 + 1, in_axis, out_axis)(X)
    rows = np.moveaxis(X, in_axis, 0)
    close(out, np.stack([r * 2 + 1 for r in rows], axis=out_axis))


def test_axes_for_each_argument():
    f = lambda a, b, c: a + b.sum() + c
    out = jax.vmap(f, (0, 1, None))(np.arange(4.0, dtype=np.float32), X, 10.0)
    close(out, np.arange(4) + X.sum(0) + 10)
    close(jax.vmap(f, [0, 1, None])(np.arange(4.0, dtype=np.float32), X, 10.0), out)


def test_axes_as_trees():
    tree = {"a": X, "b": (X.T, 3.0)}
    f = lambda t: t["a"].sum() + t["b"][0].sum() + t["b"][1]
    close(jax.vmap(f, ({"a": 0, "b": (1, None)},))(tree), X.sum(1) * 2 + 3)
    close(jax.vmap(f, ({"a": 0, "b": None},), axis_size=3)({"a": X, "b": (X, 3.0)}), X.sum(1) + X.sum() + 3)


def test_out_axes_as_trees():
    out = jax.vmap(lambda x: {"a": x, "b": (x, 5.0)}, out_axes={"a": 1, "b": (0, None)})(X)
    close(out["a"], X.T)
    close(out["b"][0], X)
    assert np.shape(out["b"][1]) == ()


def test_keyword_arguments_are_mapped_along_axis_0():
    close(jax.vmap(lambda x, *, y: x * y)(X[:, 0], y=X[:, 1]), X[:, 0] * X[:, 1])


def test_none_namedtuples_and_empty_trees():
    out = jax.vmap(lambda p: Point(p.x + 1, None))(Point(X, None))
    assert isinstance(out, Point) and out.y is None
    close(out.x, X + 1)
    assert jax.vmap(lambda x: ())(X) == ()
    assert jax.vmap(lambda x: None)(X) is None


def test_unmapped_results_are_repeated():
    close(jax.vmap(lambda x: 2.0)(X), [2, 2, 2])
    close(jax.vmap(lambda x: jnp.ones(2), out_axes=1)(X), np.ones((2, 3)))


def test_unmapped_scalars_stay_what_they_are():
    close(jax.vmap(jax.jit(lambda x, n: x * len(range(n)), static_argnums=1), (0, None))(X, 2), X * 2)


def test_axis_size():
    close(jax.vmap(lambda: 1.0, axis_size=4)(), np.ones(4))
    close(jax.vmap(lambda x: x, in_axes=None, axis_size=2)(3.0), [3, 3])


def test_a_size_of_zero():
    assert jax.vmap(lambda x: jnp.sin(x) + x.sum())(np.zeros((0, 4), np.float32)).shape == (0, 4)


def test_integers_and_bools():
    out = jax.vmap(lambda n, b: jnp.where(b, n, -n))(np.arange(3), np.array([True, False, True]))
    assert out.dtype == jnp.int32 and out.tolist() == [0, -1, 2]


# ---- nesting and other transformations


def test_nested():
    pairs = jax.vmap(lambda a: jax.vmap(lambda b: a * b + a)(np.arange(4.0, dtype=np.float32)))(
        np.arange(3.0, dtype=np.float32)
    )
    close(pairs, np.arange(3.0)[:, None] * (np.arange(4.0) + 1))
    close(
        jax.vmap(jax.vmap(lambda a, b: a + b, (0, None)), (None, 0))(np.arange(3.0), np.arange(2.0)),
        [[0, 1, 2], [1, 2, 3]],
    )


def test_three_levels_over_one_array():
    cube = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    f = jax.vmap(jax.vmap(jax.vmap(lambda x: x * x, 0), 1), 1)
    close(np.sort(np.asarray(f(cube)).ravel()), np.sort((cube**2).ravel()))
    out = jax.vmap(jax.vmap(jax.vmap(jnp.sin, -1, -1), 0, 0), 1, 1)(cube)
    close(out, np.sin(cube))


def test_of_jit_and_in_jit():
    f = lambda x: jnp.sum(jnp.tanh(x) * x)
    expected = [float(f(r)) for r in X]
    for g in (jax.vmap(f), jax.vmap(jax.jit(f)), jax.jit(jax.vmap(f)), jax.jit(jax.vmap(jax.jit(f)))):
        close(g(X), expected)


def test_per_example_gradients():
    loss = lambda w, x: jnp.sum((x @ w) ** 2)
    w = np.arange(8, dtype=np.float32).reshape(4, 2) / 8
    expected = [2 * np.outer(x, x @ w) for x in X]
    for g in (jax.vmap(jax.grad(loss), (None, 0)), jax.jit(jax.vmap(jax.jit(jax.grad(loss)), (None, 0)))):
        close(g(w, X), expected, 1e-4)


def test_grad_of_vmap():
    close(
        jax.grad(lambda x: jnp.sum(jax.vmap(lambda r: jnp.sum(r) ** 2)(x)))(X),
        2 * X.sum(1, keepdims=True) * np.ones((1, 4)),
    )


def test_jvp_of_vmap_and_vmap_of_jvp():
    f = lambda x: jnp.sin(x).sum()
    close(jax.jvp(jax.vmap(f), (X,), (np.ones_like(X),))[1], np.cos(X).sum(1))
    close(jax.vmap(lambda x, t: jax.jvp(f, (x,), (t,))[1])(X, np.ones_like(X)), np.cos(X).sum(1))


def test_closing_over_arrays_and_outer_tracers():
    close(jax.vmap(lambda x: x + X[0])(X), X + X[0])
    close(jax.jit(lambda y: jax.vmap(lambda x: x + y)(X))(X[0]), X + X[0])
    close(jax.vmap(lambda y: jax.jit(lambda x: x + y)(1.0))(X[0]), X[0] + 1)


def test_control_flow_inside():
    f = lambda x: lax.cond(x > 3, lambda v: v * 2, lambda v: -v, x)
    close(jax.vmap(f)(X.ravel()), np.where(X.ravel() > 3, X.ravel() * 2, -X.ravel()))
    g = lambda n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, 1))[1]
    assert jax.vmap(g)(np.arange(4)).tolist() == [1, 2, 4, 8]
    assert jax.jit(jax.vmap(g))(np.arange(4)).tolist() == [1, 2, 4, 8]


def test_named_axes():
    close(jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(X[:, 1]), X[:, 1] / X[:, 1].sum())
    close(jax.vmap(lambda x: lax.axis_index("i") * x, axis_name="i")(X[:, 1]), np.arange(3) * X[:, 1])
    nested = jax.vmap(jax.vmap(lambda x: lax.psum(x, ("i", "j")), axis_name="j"), axis_name="i")
    close(nested(X), np.full((3, 4), X.sum()))
    close(jax.jit(nested)(X), np.full((3, 4), X.sum()))


def test_names_end_with_the_function():
    with pytest.raises(NameError, match="unbound axis name: i"):
        lax.psum(1.0, "i")


# ---- errors


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: jax.vmap(lambda x, y: x)(X, X[:2]),
            ValueError,
            r"size 3: axis 0 of argument x of type float32\[3,4\]",
        ),
        (lambda: jax.vmap(lambda d: d)({"a": X, "b": X[:2]}), ValueError, r"axis 0 of argument d\['b'\]"),
        (lambda: jax.vmap(lambda x: x)(1.0), ValueError, "rank should be at least 1, but is only 0"),
        (lambda: jax.vmap(lambda x: x, 2)(X[0]), ValueError, "axis 2, .* at least 3, but is only 1"),
        (lambda: jax.vmap(lambda x, y: x, (0,))(X, X), ValueError, r"len\(in_axes\)=1, len\(args\)=2"),
        (lambda: jax.vmap(lambda x: x, None)(X), ValueError, "at least one non-None value in in_axes"),
        (lambda: jax.vmap(lambda: 1)(), ValueError, "at least one argument containing an array"),
        (lambda: jax.vmap(lambda x: x, "a")(X), TypeError, "but got a."),
        (
            lambda: jax.vmap(lambda x: x, out_axes=None)(X),
            ValueError,
            "at vmap out_axes, got axis spec None but .* axis 0",
        ),
        (
            lambda: jax.vmap(lambda x: {"a": [x]}, out_axes=None)(X),
            ValueError,
            r"at vmap out_axes\['a'\]\[0\], got axis spec None but .* axis 0",
        ),
        (lambda: jax.vmap(lambda x: x, axis_size=2)(X), ValueError, "the `axis_size` argument was 2"),
        (lambda: jax.vmap(lambda x: x, out_axes=7)(X), ValueError, "out_axes is 7"),
        (lambda: jax.vmap(lambda x: x, ({"a": 0},))({"b": X}), ValueError, "in_axes"),
        (lambda: jax.vmap(lambda x: "a")(X), TypeError, "trees of arrays"),
        (lambda: jax.vmap(lambda x: x)("a"), TypeError, "'a'"),
        (lambda: jax.vmap(3), TypeError, "callable"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_values_are_not_known():
    with pytest.raises(jax.errors.TracerBoolConversionError, match=r"bool\[\]"):
        jax.vmap(lambda x: x if x > 0 else -x)(X[0])
    with pytest.raises(jax.errors.ConcretizationTypeError, match="float"):
        jax.vmap(float)(X[0])
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.vmap(np.sin)(X)


def test_leaks():
    kept = []
    jax.vmap(lambda x: kept.append(x) or x)(X)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="vmap"):
        kept[0] + 1
    with pytest.raises(jax.errors.UnexpectedTracerError, match="vmap"):
        jax.jit(lambda x: x + kept[0])(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="vmap"):
        jax.vmap(lambda x: x + kept[0])(X)


def test_sum_match():
    close(jax.vmap(lambda x: x, out_axes=None, sum_match=True)(X), X.sum(0))


@pytest.mark.parametrize("f", [
    lambda x, i: lax.dynamic_slice(x, (i,), (1,)),
    lambda x, i: x[i],
    lambda x, i: x.at[i].set(1),
    lambda x, i: jnp.cumsum(x),
    lambda x, i: lax.conv_general_dilated(x[None, None], x[None, None], (1,), "VALID"),
    lambda x, i: lax.while_loop(lambda c: c < 3, lambda c: c + 1, i),
    lambda x, i: lax.scan(lambda c, y: (c + y, c), i * 1.0, x),
    lambda x, i: jax.random.normal(jax.random.fold_in(jax.random.key(0), i), (3,)),
    lambda x, i: jax.random.split(jax.random.fold_in(jax.random.key(0), i)),
])  # fmt: skip
def test_no_examples_give_empty_results(f):
    x, i = jnp.ones((0, 2)), jnp.zeros(0, np.int32)
    one = jax.eval_shape(f, x.mean(0), i.sum())
    for g in (jax.vmap(f), jax.jit(jax.vmap(f))):
        for got, expected in zip(jax.tree.leaves(g(x, i)), jax.tree.leaves(one), strict=True):
            assert got.shape == (0, *expected.shape) and got.dtype == expected.dtype
    if one is not None and all(jnp.issubdtype(o.dtype, np.floating) for o in jax.tree.leaves(one)):
        gradient = jax.grad(lambda x: sum(jnp.sum(o) for o in jax.tree.leaves(jax.vmap(f)(x, i))))(x)
        assert gradient.shape == x.shape


def test_names_of_mesh_axes_on_one_device():
    for name in ("data", ("data", "model")):
        np.testing.assert_array_equal(jax.vmap(lambda x: 2 * x, spmd_axis_name=name)(jnp.arange(3)), [0, 2, 4])
    with pytest.raises(TypeError, match="spmd_axis_name"):
        jax.vmap(lambda x: x, spmd_axis_name=3)


def test_scalars_are_sliced_along_no_axes():
    """Explicit strides of a scalar are an empty tuple, which is not none: the gradient of a pad that did nothing."""
    assert (jax.vmap(lambda x: jax.lax.slice(x, (), (), ()))(jnp.arange(3.0)) == jnp.arange(3.0)).all()
    assert (jax.vmap(jax.grad(lambda x: jax.lax.pad(x, 0.0, ())))(jnp.arange(3.0)) == 1).all()


def test_callables_whose_names_are_no_strings_are_transformed():
    class Scaled:
        __name__ = property(lambda self: None)  # as that of modules of equinox may be

        def __call__(self, x):
            return 2.0 * x

    for transform in (jax.vmap, jax.jacfwd, jax.checkpoint, jax.jit, jax.make_jaxpr, jax.pmap):
        transform(Scaled())(jnp.ones(1))
    assert jax.grad(Scaled())(1.0) == 2.0
