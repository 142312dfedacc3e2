"""``x[mask]`` with a traced mask: what does not need the number of elements works as with a known mask."""

import inspect

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.errors import NonConcreteBooleanIndexError
from catena.numpy.masked import CONTRACTIONS, ELEMENTWISE, REDUCTIONS, TRANSPOSITIONS
from numpy_examples import EXAMPLES

X = jnp.array([[3.0, -1.0, 0.5, -2.0], [0.25, 1.0, -0.5, 4.0], [-3.0, 2.0, 1.5, 0.75]])
COLUMNS = np.array([True, False, True, True])
MASKS = {"some": X > 0, "one": X == 4, "all": X < 9, "rows": X[:, 0] > 0, "columns": COLUMNS}


def taken(x, which: str, mask):
    return x[:, mask] if which == "columns" else x[mask]


def agree(f, *args):
    """``f`` gives the same with values and, compiled, with traced ones."""
    expected, found = f(*args), jax.jit(f)(*args)
    for e, g in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        assert e.dtype == g.dtype and e.shape == g.shape
        np.testing.assert_allclose(np.asarray(g), np.asarray(e), rtol=2e-6, atol=1e-6)
    return found


def extra(name: str) -> tuple:
    """What a reduction takes beside the array."""
    return {"quantile": (0.3,), "nanquantile": (0.3,), "percentile": (40.0,), "nanpercentile": (40.0,)}.get(name, ())


def named(name: str):
    """The function of ``numpy`` or ``numpy.linalg``."""
    return getattr(jnp, name, None) or getattr(jnp.linalg, name)


@pytest.mark.share(6)
@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, which):
    agree(lambda x, m: named(name)(taken(x, which, m), *extra(name)), X, MASKS[which])


@pytest.mark.share(5)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_along_axes(name, axis, keepdims):
    """Along the selected axis the result is an array; along the other, a selection again, here summed."""
    if name.startswith("arg") and axis == (0, 1):
        axis = None

    def f(x, mask):
        result = named(name)(x[mask], *extra(name), axis=axis, keepdims=keepdims)
        return result if axis != 1 else result.sum(0)

    agree(f, X, MASKS["rows"])


@pytest.mark.parametrize("name", [n for n in REDUCTIONS if hasattr(jnp.ndarray, n)])
def test_methods(name):
    agree(lambda x: getattr(x[x > 0], name)(), X)


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "float16", "complex64"])
@pytest.mark.parametrize("name", "sum prod mean max min any all count_nonzero var".split())
def test_dtypes(name, dtype):
    x = jnp.array([0, 1, 2, 3, 1, 0]).astype(dtype)
    agree(lambda x, m: getattr(jnp, name)(x[m]), x, np.array([1, 0, 1, 1, 0, 0], bool))


@pytest.mark.share(3)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions(name):
    """Each with its example's arguments, of which the first array is selected from and others are scalars."""
    args, kwargs = EXAMPLES[name][0]
    position = max((i for i, a in enumerate(args) if isinstance(a, np.ndarray)), key=lambda i: args[i].size)
    x = jnp.atleast_1d(jnp.asarray(args[position]))
    others = [a.ravel()[0] if isinstance(a, np.ndarray) else a for a in args]
    mask = np.arange(x.shape[0]) % 2 == 0

    def f(x, m):
        function = getattr(jnp, name)
        called = function(*others[:position], x[m], *others[position + 1 :], **kwargs)
        return jax.tree.map(lambda y: (jnp.sum(y), y.any()), called, is_leaf=lambda y: not isinstance(y, list | tuple))

    agree(f, x, mask)


def test_tables_name_the_namespace():
    for name in (*ELEMENTWISE, *REDUCTIONS, *CONTRACTIONS, *TRANSPOSITIONS):
        assert callable(named(name))
    for name in REDUCTIONS:
        assert next(iter(inspect.signature(named(name)).parameters)) in ("a", "x")


def test_operators():
    def f(x, w):
        m = x > 0
        s = x[m]
        return (
            ((2 * s - 1) ** 2 / (s + x[m])).sum(), (s > 1).sum(), (-s).min(), abs(s - 3).max(), (s // 1 % 2).mean(),
            ((s > 1) & ~(s > 2)).any(), (w * s).sum(), (s * w).sum(), divmod(s, 2)[0].sum(), s.astype(int).sum(),
            (1.0 - s).max(), (2.0**s).sum(), s.clip(1, 2).sum(), jnp.where(s > 1, s, 0).sum(), s.real.sum(),
        )  # fmt: skip

    agree(f, X, jnp.float32(2.5))


def test_broadcasting_beside_the_selected_axis():
    weights = jnp.array([1.0, 2.0, 3.0, 4.0])
    agree(lambda x, w: (x[x[:, 0] > 0] * w).sum(0), X, weights)
    agree(lambda x, w: (x[x[:, 0] > 0] - w[None]).sum(), X, weights)
    with pytest.raises(NonConcreteBooleanIndexError, match=r"jnp.multiply with an array of shape \(4,\)"):
        jax.jit(lambda x, w: (x[0][x[0] > 0] * w).sum())(X, weights)


def test_mixed_indices():
    def f(x, i):
        m = x[0] > 0
        return (
            x[1, m].sum(), x[i, m].max(), x[:2, m].sum(1), x[None, 1:, m].sum(), x[..., m].sum(-1), x[m[:3], 1].sum(),
            x[m[:3], ...].sum(0), x[m[:3], 1:3].sum(0), x.at[m[:3]].get().sum(0), x[:, x[2] > 1].mean(),
        )  # fmt: skip

    agree(f, X, 2)


def test_where_and_initial():
    def f(x):
        m = x > 0
        s = x[m]
        return s.sum(where=s > 1), s.max(initial=2.0), s.min(initial=9.0, where=s > 1), jnp.sum(s, initial=5.0)

    agree(f, X)
    agree(lambda x: x[x[:, 0] > 0].sum(0, where=x[0] > 0), X)


EXTREMES = {
    "plain": X,
    "ties": jnp.array([[1.0, 2.0, 2.0, 2.0], [0.0, 2.0, 0.0, 2.0]]),
    "infinite": jnp.array([[-np.inf, -np.inf, 1.0, np.inf], [np.inf, np.inf, -np.inf, np.nan]]),
    "integers": jnp.array([[7, 7, 3, 7], [-1, -2, -1, -2]]),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("which", EXTREMES)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_extremes_are_counted_among_the_selected(name, which):
    x, function = EXTREMES[which], getattr(jnp, name)
    for mask in COLUMNS, ~COLUMNS, np.array([False, True, True, False]):
        for axis, keepdims in ((None, False), (None, True), (1, False), (1, True)):
            agree(lambda x, m, a=axis, k=keepdims: function(x[:, m], axis=a, keepdims=k), x, mask)
        agree(lambda x, m: function(x[:, m], axis=0).sum(), x, mask)
    for mask in (x > 0, x <= 1, x == x[0, 0]):
        agree(lambda x, m: function(x[m]), x, mask)
    assert int(jax.jit(lambda x: function(x[x > 99]))(EXTREMES["plain"])) == -1


@pytest.mark.parametrize("order", [None, 1, 2, 0, 2.5, np.inf])
def test_norms(order):
    agree(lambda x: jnp.linalg.norm(x[x > 0], ord=order), X)
    agree(lambda x, m: jnp.linalg.norm(x[:, m], ord=order, axis=1), X, COLUMNS)
    if order not in (0, 2.5):
        agree(lambda x, m: jnp.linalg.norm(x[:, m], ord=order), X, COLUMNS)


def test_products():
    def f(x, c):
        m, r = x > 0, x[:, 0] > 0
        y, s = x**2, x[m]
        return (
            s @ s, s.dot(y[m]), jnp.vdot(s, y[m]), jnp.inner(x[:, c], y[:, c]), x[:, c] @ y[0, c], y[r, 0] @ x[r],
            jnp.vecdot(x[:, c], y[:, c]), x[r].T @ x[r], x[:, c] @ x[:, c].mT, x[:, c] @ jnp.permute_dims(y[:, c], (1, 0)),
            jnp.dot(jnp.log(s), s), (x[m] - s.mean()) @ (x[m] - s.mean()), jnp.linalg.norm(s - 1),
            x[r].transpose() @ x[r], x[r].transpose(1, 0) @ x[r], x[r].transpose((1, 0)) @ x[r, 0],
        )  # fmt: skip

    agree(f, X, COLUMNS)


def test_a_fit_to_the_selected_points():
    """Least squares by the normal equations, and their gradient: what is left out may be NaN."""
    points = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, np.nan], [1.0, 3.0]])
    values = jnp.array([1.0, 3.0, 5.5, 7.0, 6.5])

    def fit(a, y):
        m = a[:, 1] >= 0
        return jnp.linalg.solve(a[m].T @ a[m], a[m].T @ y[m])

    agree(fit, points, values)
    slopes = jax.jit(jax.jacrev(fit, 1))(points, values)
    np.testing.assert_allclose(slopes[:, 3], 0)
    np.testing.assert_allclose(slopes @ values, fit(points, values), rtol=1e-5)


def test_weights():
    def f(x, w):
        m = x > 0
        return jnp.average(x[m], weights=w[m]), jnp.average(x[m], weights=w[m], returned=True)

    agree(f, X, X**2 + 1)


def test_nothing_selected():
    f = jax.jit(lambda x: [getattr(x[x > 9], n)() for n in ("sum", "prod", "max", "min", "mean", "any", "all")])
    total, product, greatest, least, mean, some, every = map(float, f(X))
    assert (total, product, greatest, least, some, every) == (0, 1, -np.inf, np.inf, 0, 1) and np.isnan(mean)


@pytest.mark.parametrize("name", "sqrt log reciprocal arcsin".split())
def test_gradients_do_not_see_what_is_left_out(name):
    function = getattr(jnp, name)
    x = jnp.array([0.0, -3.0, 0.5, 0.75, 2.0, jnp.nan])

    def f(x, w):
        m = (x > 0) & (x < 1)
        return (w * function(x[m])).sum()

    for g in jax.grad(f), jax.jit(jax.grad(f)):
        expected = np.where([0, 0, 1, 1, 0, 0], jax.vmap(jax.grad(function))(jnp.full(6, 0.5).at[3].set(0.75)), 0)
        np.testing.assert_allclose(np.asarray(g(x, 1.0)), expected, rtol=1e-6)
    slope = jax.jit(jax.grad(f, 1))(x, 1.0)
    np.testing.assert_allclose(float(slope), float(function(x[2:4]).sum()), rtol=1e-6)


def test_gradient_of_an_extremum():
    g = jax.jit(jax.grad(lambda x: x[x > 0].max()))(X)
    np.testing.assert_array_equal(np.asarray(g), (np.asarray(X) == 4).astype(np.float32))


def test_under_vmap_and_in_loops():
    f = lambda x: jnp.exp(x[x > 0]).mean()  # noqa: E731
    expected = [float(f(row)) for row in X]
    np.testing.assert_allclose(np.asarray(jax.vmap(f)(X)), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(jax.jit(jax.vmap(f))(X)), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(jax.lax.map(f, X)), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(jax.jacrev(f)(X[0])), np.asarray(jax.jacfwd(f)(X[0])), rtol=1e-6)


@pytest.mark.parametrize("name", "set add subtract multiply divide power min max".split())
def test_updates_at_a_mask(name):
    agree(lambda x: getattr(x.at[x > 0], name)(2.0), X)
    agree(lambda x: getattr(x.at[:, x[0] > 0], name)(jnp.arange(3.0)[:, None]), X)
    agree(lambda x, m: getattr(x.at[m], name)(jnp.arange(4.0)), X, MASKS["rows"])
    agree(lambda x, m: getattr(x.at[m], name)(jnp.sqrt(x[m])), X, MASKS["some"])
    agree(lambda x, m: getattr(x.at[m], name)(2 * x[m] - 1), X, MASKS["rows"])
    agree(lambda x, m: getattr(x.at[:, m], name)(x[:, m] + 1), X, MASKS["columns"])
    agree(lambda x, m: getattr(x.at[1, m], name)(x[0, m]), X, MASKS["columns"])


def test_apply_at_a_mask():
    agree(lambda x: x.at[x > 0].apply(jnp.sqrt), X)


def test_gradient_of_an_update_at_a_mask():
    g = jax.jit(jax.grad(lambda x: _rooted(x).sum()))(X)
    np.testing.assert_allclose(np.asarray(g), np.where(X > 0, 0.5 / np.sqrt(np.abs(X)), 1.0), rtol=1e-6)


def _rooted(x):
    m = x > 0
    return x.at[m].set(jnp.sqrt(x[m]))


REFUSED = {
    "result of a transformed function": lambda x: x[x > 0],
    "jnp.where without": lambda x: jnp.where(x[x > 0] > 1, size=2),
    "'shape'": lambda x: x[x > 0].shape,
    "'size'": lambda x: x[x > 0].size,
    "'at'": lambda x: x[x > 0].at[0].set(1),
    "'reshape'": lambda x: x[x > 0].reshape(2, 2),
    "jnp.sort": lambda x: jnp.sort(x[x > 0]),
    "jnp.concatenate": lambda x: jnp.concatenate([x[x > 0], x[0]]),
    "norm of order -1": lambda x: jnp.linalg.norm(x[x > 0], ord=-1),
    "jnp.matmul with an array": lambda x: x @ x[:, x[0] > 0],
    "jnp.dot of selections by two masks": lambda x: jnp.dot(x[x > 0], x[x < 0]),
    "jnp.matmul of selections by two": lambda x: x[:, x[0] > 0] @ x[:, x[0] > 0],
    "jnp.vdot of": lambda x: jnp.vdot(x[x[:, 0] > 0], x[x[:, 0] > 0]),
    "jnp.reduce": lambda x: jnp.add.reduce(x[x > 0]),
    "conversion": lambda x: jnp.asarray(x[x > 0]),
    "NumPy": lambda x: np.sum(np.asarray(x[x > 0])),
    "lax": lambda x: jax.lax.sin(x[x > 0]),
    "argument or result": lambda x: jax.lax.cond(True, lambda y: y, lambda y: y, x[x > 0]),
    "len": lambda x: len(x[x > 0]),
    "iteration": lambda x: [y + 1 for y in x[x > 0]],
    "indexing": lambda x: x[x > 0][0],
    "float": lambda x: float(x[x > 0]),
    "two masks": lambda x: (x[x > 0] + x[x >= 0]).sum(),
    "another mask": lambda x: x.at[x > 0].set(x[x < 0]),
    "apart from the mask": lambda x: x[jnp.arange(3), x[0] > 0],
    "integers apart": lambda x: x[None][0, :, x[0] > 0],
    "of an array that is none": lambda x: jnp.average(x, weights=x[x > 0]),
}


@pytest.mark.parametrize("use", REFUSED)
def test_other_uses_are_refused_and_taught(use):
    with pytest.raises(NonConcreteBooleanIndexError, match=use) as error:
        jax.jit(REFUSED[use])(X)
    text = str(error.value)
    assert "must be concrete; got bool[" in text and "size=n" in text and ".at[mask].set" in text and "where" in text


def test_a_mask_written_down_twice_is_one_mask():
    np.testing.assert_allclose(jax.jit(lambda x: (x[x > 0] * x[x > 0]).sum())(X), np.sum(X[X > 0] ** 2), rtol=1e-6)
    swapped = jax.vmap(lambda x: x.at[x > 0].set(2 * x[x > 0]))(X)
    np.testing.assert_allclose(swapped, np.where(X > 0, 2 * X, X))


def test_absent_attributes_are_absent():
    def f(x):
        assert not hasattr(x[x > 0], "no_such_attribute") and x[x > 0].dtype == x.dtype and x[x > 0].ndim == 1
        assert repr(x[x > 0]).startswith("Selection(")
        return x

    jax.jit(f)(X)


TRANSFORMED = {
    "jit": lambda x: jax.jit(lambda x: {"a": [x[x > 0]]})(x),
    "vmap": lambda x: jax.vmap(lambda x: x[x > 0])(x),
    "grad": lambda x: jax.jit(jax.grad(lambda x: x[x > 0]))(x),
    "inner jit": lambda x: jax.jit(lambda x: jax.jit(jnp.sum)(x[x > 0]))(x),
    "jvp": lambda x: jax.jit(lambda x: jax.jvp(jnp.sin, (x[x > 0],), (x[x > 0],)))(x),
    "scan": lambda x: jax.lax.scan(lambda c, x: (c, x[x > 0]), 0.0, x),
    "map": lambda x: jax.lax.map(lambda x: x[x > 0], x),
    "while": lambda x: jax.jit(lambda x: jax.lax.while_loop(lambda c: False, lambda c: c, x[x > 0]))(x),
    "checkpoint": lambda x: jax.jit(lambda x: jax.checkpoint(lambda y: y)(x[x > 0]))(x),
    "callback": lambda x: jax.jit(lambda x: jax.pure_callback(lambda y: y, x, x[x > 0]))(x),
    "print": lambda x: jax.jit(lambda x: (jax.debug.print("{}", x[x > 0]), x))(x),
    "make_jaxpr": lambda x: jax.make_jaxpr(lambda x: x[x > 0])(x),
    "eval_shape": lambda x: jax.eval_shape(lambda x: x[x > 0], x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_take_no_selections(name):
    with pytest.raises(NonConcreteBooleanIndexError, match="transformed function|its attribute 'shape'"):
        TRANSFORMED[name](X)


def test_classes_of_users_may_hold_selections():
    """A selection is a leaf, so that functions of trees, with which such classes are written, pass it on."""

    class Scaled:
        def __init__(self, value):
            self.value = value

        def __jax_function__(self, function, types, args, kwargs):
            plain = [getattr(a, "value", a) for a in args]
            return jax.tree.map(Scaled, function(*plain, **kwargs))

    agree(lambda x: jnp.sum(jnp.sqrt(Scaled(x[x > 0]))).value, X)
