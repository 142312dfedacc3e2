"""``shard_map``: what each device computes, put together; types that say what varies; derivatives, nesting, errors."""

import sys

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.sharding import AxisType, NamedSharding
from catena.sharding import PartitionSpec as P
from sharded_programs import differences

AUTO = (AxisType.Auto,) * 2
X = np.arange(8, dtype=np.float32)


def mesh(shape=(2, 4), names=("x", "y")):
    return jax.make_mesh(shape, names, axis_types=AUTO[: len(names)])


def mapped(fun, in_specs, out_specs, **options):
    return jax.shard_map(fun, mesh=mesh(), in_specs=in_specs, out_specs=out_specs, **options)


def type_seen(fun, **options):
    """The types that ``fun``, run on one device, returns."""
    seen = []

    def body(x):
        seen.extend(jax.typeof(y).str_short() for y in jax.tree.leaves(fun(x)))

    jax.make_jaxpr(mapped(body, P("x"), P(), **options))(X)
    return seen


A, B = np.arange(128.0, dtype=np.float32).reshape(8, 16), np.arange(192.0, dtype=np.float32).reshape(16, 12)


def ring(x):
    return lax.ppermute(x, "y", [(i, (i + 1) % 4) for i in range(4)]) + lax.axis_index("y")


# name: function, in_specs, out_specs, arguments, the result by NumPy
PROGRAMS = {
    "matmul": (lambda a, b: lax.psum(a @ b, "y"), (P("x", "y"), P("y")), P("x"), (A, B), lambda a, b: a @ b),
    "scattered": (
        lambda a, b: lax.psum_scatter(a @ b, "y", scatter_dimension=1, tiled=True),
        (P("x", "y"), P("y")), P("x", "y"), (A, B), lambda a, b: a @ b,
    ),
    "gathered": (
        lambda a: lax.all_gather(a, "y", axis=1, tiled=True, to="invarying"), P("x", "y"), P("x"), (A,), lambda a: a,
    ),
    "exchanged": (
        lambda a: lax.all_to_all(a, "y", 0, 1, tiled=True), P("x", "y"), P(("x", "y")), (A,), lambda a: a,
    ),
    "moved round": (
        ring, P(None, "y"), P(None, "y"), (A,), lambda a: np.roll(a, 4, 1) + np.repeat(np.arange(4), 4),
    ),
    "over two axes": (
        lambda a: lax.pmax(a, ("y", "x")), P(("y", "x")), P(), (A,), lambda a: a.reshape(8, 1, 16).max(0),
    ),
    "of one device": (
        lambda a: lax.psum(lax.pbroadcast(a, "x", 1), "x"), P("x"), P(), (A,), lambda a: 2 * a[4:],
    ),
    "other order": (lambda a: a, P(("y", "x")), P(("y", "x")), (A,), lambda a: a),
    "tiled": (lambda a: a, P(), P("x", "y"), (A,), lambda a: np.tile(a, (2, 4))),
    "random": (
        lambda k: jax.random.bits(k[0], (1,)), P("x"), P("x"),
        (jax.random.split(jax.random.key(0), 2),), lambda k: [jax.random.bits(k[i]) for i in range(2)],
    ),
    "nothing": (lambda a: a[:0], P("x"), P("x"), (A,), lambda a: a[:0]),
    "number": (lambda a: lax.psum(lax.axis_index("x"), "x"), P(), P(), (np.float32(1),), lambda a: 1),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    fun, in_specs, out_specs, args, expected = PROGRAMS[name]
    for check in (True, False):
        sharded = mapped(fun, in_specs, out_specs, check_vma=check)
        np.testing.assert_allclose(sharded(*args), expected(*args), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(sharded)(*args), expected(*args), rtol=1e-6)


TYPES = {
    "sum": (lambda x: lax.psum(x, "x"), "float32[4]"),
    "sum of the same": (lambda x: lax.psum(x, "y"), "float32[4]{V:x}"),
    "maximum": (lambda x: lax.pmax(x, "x"), "float32[4]"),
    "maximum in groups": (lambda x: lax.pmax(x, "x", axis_index_groups=[[0], [1]]), "float32[4]{V:x}"),
    "mean": (lambda x: lax.pmean(x, "x"), "float32[4]"),
    "gathered": (lambda x: lax.all_gather(x, "y"), "float32[4,4]{V:(x,y)}"),
    "gathered for all": (lambda x: lax.all_gather(x, "x", to="invarying"), "float32[2,4]"),
    "scattered": (lambda x: lax.psum_scatter(x, "x", tiled=True), "float32[2]{V:x}"),
    "exchanged": (lambda x: lax.all_to_all(x, "y", 0, 0, tiled=True), "float32[4]{V:(x,y)}"),
    "permuted": (lambda x: lax.ppermute(x, ("x", "y"), [(0, 1)]), "float32[4]{V:(x,y)}"),
    "index": (lambda x: lax.axis_index(("x", "y")), "int32[]{V:(x,y)}"),
    "size": (lambda x: lax.axis_size("x"), "int32[]"),
    "cast": (lambda x: lax.pcast(x, "y", to="varying"), "float32[4]{V:(x,y)}"),
    "constant": (lambda x: jnp.ones(3), "float32[3]"),
    "with a constant": (lambda x: jnp.ones(4) * x, "float32[4]{V:x}"),
    "jit": (lambda x: jax.jit(lambda x: lax.psum(x, "x"))(x), "float32[4]"),
    "scan": (lambda x: lax.scan(lambda c, a: (c + a, None), x[0], x)[0], "float32[]{V:x}"),
    "gradient by what varies": (lambda x: jax.grad(lambda a: (a * 2).sum())(x), "float32[4]{V:x}"),
    "gradient by the same": (lambda x: jax.grad(lambda w: (w * x).sum())(jnp.ones(4)), "float32[4]"),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_say_what_varies(name):
    fun, expected = TYPES[name]
    assert type_seen(fun) == [expected]
    assert type_seen(fun, check_vma=False) == [expected.partition("{")[0]]


def test_printed():
    text = str(jax.make_jaxpr(mapped(lambda x: lax.psum(x * 2, "x"), P("x"), P()))(X))
    lines = [line.strip() for line in text.splitlines()]
    assert lines[:8] == [
        "{ lambda ; a:f32[8]. let",
        "b:f32[4] = shard_map[",
        "check_vma=True",
        "in_specs=(P('x',),)",
        "jaxpr={ lambda ; c:f32[4]{V:x}. let",
        "d:f32[]{V:x} = pvary[axes=('x',)] 2.0:f32[]",
        "e:f32[4]{V:x} = mul c d",
        "f:f32[4] = psum_invariant[axes=('x',)] e",
    ]
    assert "mesh=Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))" in lines


# ---- derivatives


def loss(w, x):
    return lax.pmean(jnp.mean(jnp.tanh(x @ w) ** 2), "x")


@pytest.mark.parametrize("check", [True, False])
def test_gradients_of_parameters_that_all_devices_have(check):
    w, x = jnp.linspace(-1.0, 1.0, 6).reshape(3, 2), jnp.linspace(0.0, 1.0, 12).reshape(4, 3)
    sharded = mapped(loss, (P(), P("x")), P(), check_vma=check)
    expected = jax.grad(lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2), argnums=(0, 1))(w, x)
    for grad in (jax.grad(sharded, argnums=(0, 1)), jax.jit(jax.grad(jax.checkpoint(sharded), argnums=(0, 1)))):
        for got, value in zip(grad(w, x), expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-7)
    inside = mapped(jax.grad(loss), (P(), P("x")), P(), check_vma=True)
    np.testing.assert_allclose(inside(w, x), expected[0], rtol=1e-5, atol=1e-7)


DIFFERENTIABLE = {
    "gathered for all": (lambda x: lax.all_gather(x, "x", to="invarying") ** 2, P()),
    "gathered": (lambda x: lax.all_gather(x, "x", tiled=True) ** 2, P("x")),
    "scattered": (lambda x: lax.psum_scatter(x**2, "x", tiled=True), P("x")),
    "exchanged": (lambda x: lax.all_to_all(x**2, "x", 0, 0, tiled=True) * lax.axis_index("x"), P("x")),
    "permuted": (lambda x: lax.ppermute(x**2, "x", [(0, 1)]), P("x")),
    "of one device": (lambda x: lax.pbroadcast(x**2, "x", 1), P("x")),
    "a number each": (lambda x: jnp.sin(x.sum())[None] * x[:1], P("x")),
    "loop": (lambda x: lax.scan(lambda c, a: (c * a, c), x[0], x)[1], P("x")),
    "branches": (lambda x: lax.cond(x.sum() > 7, lambda x: x**2, jnp.sin, x), P("x")),
    "recomputed": (jax.checkpoint(lambda x: lax.psum(jnp.sin(x), "x")), P()),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("check", [True, False])
def test_derivatives_are_finite_differences(name, check):
    fun, spec = DIFFERENTIABLE[name]
    sharded = mapped(fun, P("x"), spec, check_vma=check)
    weights = np.cos(np.arange(64.0))
    total = lambda x: sum((y.ravel() * weights[: y.size]).sum() for y in jax.tree.leaves(sharded(x)))  # noqa: E731
    with jax.enable_x64(True):
        x = np.linspace(0.2, 1.9, 8)
        rows = np.eye(8) * 1e-5
        values = jax.jit(jax.vmap(total))(np.concatenate([x + rows, x - rows]))
        expected = (values[:8] - values[8:]) / 2e-5
        np.testing.assert_allclose(jax.jit(jax.grad(total))(x), expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(jax.jacfwd(total)(x), expected, rtol=1e-6, atol=1e-8)


def test_integers_and_zeros_without_data():
    fun = mapped(lambda x, n: (x * n, n), (P("x"), P()), (P("x"), P()))
    _, pull = jax.vjp(fun, X, np.int32(3))
    x_ct, n_ct = pull((X, np.zeros((), jax.dtypes.float0)))
    np.testing.assert_array_equal(x_ct, 3 * X)
    assert n_ct.dtype == jax.dtypes.float0


# ---- with other transformations


def test_vectorised():
    rows = np.arange(24, dtype=np.float32).reshape(3, 8)
    fun = mapped(lambda x, y: (lax.psum(x, "x"), y), (P("x"), P("x")), (P(), P("x")))
    total, same = jax.vmap(fun, in_axes=(1, None), out_axes=(1, None))(rows.T, X)
    np.testing.assert_array_equal(total.T, rows[:, :4] + rows[:, 4:])
    np.testing.assert_array_equal(same, X)
    spread = jax.vmap(mapped(lambda x: x * 2, P("x"), P("x")), spmd_axis_name="y")
    assert "in_specs=(P('y', 'x'),)" in str(jax.make_jaxpr(spread)(np.ones((4, 8), np.float32)))
    np.testing.assert_array_equal(spread(rows.repeat(4, 0)), 2 * rows.repeat(4, 0))
    both = jax.vmap(mapped(lambda x: lax.psum(lax.psum(x, "i"), "x"), P("x"), P()), axis_name="i")
    np.testing.assert_array_equal(both(rows)[0], (rows[:, :4] + rows[:, 4:]).sum(0))


def test_closures_over_traced_values():
    fun = lambda y: mapped(lambda x: x * y + X[:4], P("x"), P("x"))(X).sum()  # noqa: E731
    assert jax.grad(fun)(2.0) == X.sum()
    np.testing.assert_array_equal(jax.jit(jax.vmap(fun))(jnp.arange(3.0)), 12 + 28 * np.arange(3))


def test_loops_around_and_inside():
    step = mapped(lambda x: lax.fori_loop(0, 3, lambda i, c: c + lax.pmean(c, "x"), x), P("x"), P("x"))
    found = jax.jit(lambda x: lax.scan(lambda c, _: (step(c), None), x, None, length=2)[0])(X)
    expected = X.reshape(2, 4)
    for _ in range(6):
        expected = expected + expected.mean(0)
    np.testing.assert_allclose(found, expected.ravel(), rtol=1e-6)
    until = mapped(lambda x: lax.while_loop(lambda c: c.sum() < 30, lambda c: c * 2, x), P("x"), P("x"))
    np.testing.assert_array_equal(until(X), np.concatenate([X[:4] * 8, X[4:] * 2]))


def test_nested():
    inner = lambda x: jax.shard_map(lambda y: lax.psum(y, ("x", "y")), in_specs=P("y"), out_specs=P())(x)  # noqa: E731
    outer = mapped(inner, P("x"), P(), axis_names={"x"})
    assert "{V:(x,y)}" in str(jax.make_jaxpr(outer)(X))
    for fun in (outer, jax.jit(outer)):
        assert fun(X) == 28
    np.testing.assert_array_equal(jax.grad(lambda x: outer(x**2).sum())(X), 2 * X)


def test_the_mesh_in_force():
    with jax.set_mesh(mesh()):
        fun = jax.shard_map(lambda x: lax.psum(x, "x"), in_specs=P("x"), out_specs=P(), axis_names={"x"})
        np.testing.assert_array_equal(fun(X), X[:4] + X[4:])
        twice = jax.smap(jax.smap(lambda x: x * lax.axis_index("y"), in_axes=0, out_axes=0, axis_name="y"),
                         in_axes=0, out_axes=0, axis_name="x")  # fmt: skip
        np.testing.assert_array_equal(twice(X), X * np.tile(np.arange(4), 2))
        seen = []
        jax.shard_map(lambda x: seen.append(jax.sharding.get_abstract_mesh()), in_specs=P("x"), out_specs=P())(X)
        assert seen[0].manual_axes == ("x", "y")


def test_effects_happen_on_each_device(capsys):
    jax.jit(mapped(lambda x: jax.debug.print("{}", x.sum()), P("x"), P()))(X)
    jax.effects_barrier()
    assert sorted(capsys.readouterr().out.split()) == ["22.0", "6.0"]


def test_a_call_made_again_is_not_compiled_again():
    sharded = mapped(lambda x: jnp.cos(x) + lax.axis_index("x"), P("x"), P("x"))
    sharded(X)
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *args, **kw: compiled.append(name))
    try:
        sharded(X)
        assert not [name for name in compiled if "compile" in name]
    finally:
        jax.monitoring.clear_event_listeners()


def test_results_that_are_not_checked_are_the_first_devices():
    np.testing.assert_array_equal(mapped(lambda x: x, P("x"), P(), check_vma=False)(X), X[:4])


# ---- refusals


def cast_both(x):
    return lax.pcast(x, ("x", "y"), to="varying")


def bad_rule(x):
    twice = jax.custom_vjp(lambda w, a: w * a)
    twice.defvjp(lambda w, a: (w * a, (w, a)), lambda saved, g: (g * saved[1], g * saved[0]))
    return jax.grad(lambda w: twice(w, x).sum())(jnp.ones(4))


REFUSED = [
    (lambda: mapped(lambda x: x, P("x", "y"), P("x"))(X), ValueError, "2 entries for the argument x"),
    (lambda: mapped(lambda x: x, P("x"), P("x"))(X[:7]), ValueError, "no multiple"),
    (lambda: mapped(lambda x: x, P("z"), P("x"))(X), ValueError, "in_specs has P.'z',., which names 'z'"),
    (lambda: mapped(lambda x: x, P("x"), P("z"))(X), ValueError, "out_specs has P.'z',., which names 'z'"),
    (lambda: mapped(lambda x: x, P("x", "x"), P("x"))(A), ValueError, "twice"),
    (lambda: mapped(lambda x: x, "x", P("x"))(X), TypeError, "tree of PartitionSpecs"),
    (lambda: mapped(lambda x: x, P("x"), None)(X), ValueError, "shard_map out_specs"),
    (lambda: mapped(lambda x: x, (P("x"), P("x")), P("x"))(X), ValueError, "shard_map in_specs"),
    (lambda: mapped(lambda x: (x, x), P("x"), (P("x"),))(X), ValueError, "shard_map out_specs"),
    (lambda: mapped(lambda x: x.sum(), P("x"), P("x"))(X), ValueError, "for scalars it is P"),
    (lambda: mapped(lambda x: x, P("x"), P())(X), ValueError, "may vary over .'x'."),
    (lambda: mapped(lambda x: "s", P("x"), P())(X), TypeError, "not a valid JAX type"),
    (lambda: mapped(3, P("x"), P()), TypeError, "callable"),
    (lambda: mapped(lambda x: x, P("x"), P("x"), axis_names=["x"]), TypeError, "a set of names"),
    (lambda: mapped(lambda x: x, P("x"), P("x"), axis_names={"z"})(X), ValueError, "'z', which the mesh has not"),
    (lambda: mapped(lambda x: x, P("x"), P("x"), axis_names={"y"})(X), ValueError, "becomes Manual"),
    (lambda: mapped(lambda x: lax.psum(x, ("x", "y")), P("x"), P())(X), ValueError, "varies over .'x',. only"),
    (lambda: mapped(cast_both, P("x"), P("x"))(X), ValueError, "varies over .'x',. only"),
    (lambda: mapped(lambda x: lax.pcast(x, "x", to="varying"), P("x"), P())(X), ValueError, "already"),
    (lambda: mapped(lambda x: lax.pcast(x, "x", to="other"), P("x"), P())(X), ValueError, "must be one of"),
    (lambda: mapped(lambda x: lax.fori_loop(0, 2, lambda i, c: c + x, jnp.zeros(4)), P("x"), P("x"))(X),
     TypeError, "manual axis types"),
    (lambda: mapped(lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: jnp.ones(4)), P("x"), P("x"))(X),
     TypeError, "manual axis types"),
    (lambda: mapped(lambda x: jax.vjp(lambda x: x * 2, x)[1](jnp.ones(4))[0], P("x"), P("x"))(X),
     ValueError, "argument to VJP"),
    (lambda: mapped(bad_rule, P("x"), P())(X), ValueError, "manual axis types"),
    (lambda: mapped(lambda x: jax.shard_map(lambda y: y, mesh=mesh((8,), ("z",)), in_specs=P(), out_specs=P())(x),
                    P("x"), P("x"))(X), ValueError, "not the one in force"),
    (lambda: jax.shard_map(lambda x: x, in_specs=P(), out_specs=P())(X), ValueError, "needs a mesh"),
    (lambda: jax.shard_map(lambda x: x, mesh=mesh(), out_specs=P())(X), TypeError, "needs in_specs"),
    (lambda: jax.shard_map(lambda x: x, mesh=3, in_specs=P(), out_specs=P())(X), ValueError, "Mesh"),
    (lambda: jax.smap(lambda x: x, in_axes=0, out_axes=0, axis_name=("x", "y")), TypeError, "one axis"),
    (lambda: jax.smap(lambda x: x, in_axes="x", out_axes=0, axis_name="x"), TypeError, "integers"),
    (lambda: jax.vmap(mapped(lambda x: x, P("x"), P("x")), spmd_axis_name="x")(A), ValueError, "spmd_axis_name"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(number):
    fun, error, words = REFUSED[number]
    with pytest.raises(error, match=words):
        fun()


def test_deprecated_name(monkeypatch):
    monkeypatch.delitem(sys.modules, "catena.experimental.shard_map", raising=False)
    with pytest.warns(DeprecationWarning, match="use jax.shard_map"):
        from catena.experimental.shard_map import shard_map
    fun = shard_map(lambda x: lax.psum(x, "x"), mesh(), P("x"), P(), check_rep=False)
    np.testing.assert_array_equal(fun(X), X[:4] + X[4:])


def test_results_lie_where_out_specs_say():
    fun = mapped(lambda x: (x * 2, lax.psum(x, "x")), P("x"), (P("x"), P()))
    split, whole = NamedSharding(mesh(), P("x")), NamedSharding(mesh(), P())
    for outs in (fun(X), jax.jit(fun)(X), jax.jit(fun)(jax.device_put(X, split))):
        assert [y.sharding for y in outs] == [split, whole] and all(y.committed for y in outs)
    np.testing.assert_array_equal(outs[0].addressable_shards[5].data, 2 * X[4:])
    assert jax.jit(lambda x: fun(x)[0] + 1)(X).sharding == split
    abstract = jax.shard_map(lambda x: x, mesh=mesh().abstract_mesh, in_specs=P("x"), out_specs=P("x"))
    assert abstract(jax.device_put(X, split)).sharding == split
    with pytest.raises(ValueError, match="not laid out over devices"):
        abstract(X)


def test_types_with_explicit_axes_say_how_arguments_are_laid_out():
    explicit = jax.make_mesh((2, 4), ("x", "y"))
    x = jax.device_put(X, NamedSharding(explicit, P("x")))
    fun = jax.shard_map(lambda x: x * 2, mesh=explicit, out_specs=P("x"))
    assert jax.typeof(fun(x)).str_short() == "float32[8@x]"
    text = str(jax.make_jaxpr(fun)(x))
    assert "b:f32[8@x] = shard_map[" in text and "in_specs=(P('x',),)" in text and "c:f32[4]{V:x}" in text
    np.testing.assert_array_equal(jax.grad(lambda x: fun(x).sum())(x), np.full(8, 2))
    with pytest.raises(ValueError, match="jax.reshard"):
        jax.shard_map(lambda x: x, mesh=explicit, in_specs=P("x"), out_specs=P("x"))(X)


@pytest.mark.parametrize("spec", [P(), P("y"), P("x", "y"), P(("y", "x"))])
def test_arguments_are_laid_out_anew_where_some_explicit_axes_stay(spec):
    """As in JAX: a region of all axes asks that specs and types agree, one of some axes does not."""
    explicit, seen = jax.make_mesh((2, 4), ("x", "y")), []
    a = np.arange(64, dtype=np.float32).reshape(8, 8)

    def body(x):
        seen.append(jax.typeof(x).str_short())
        return lax.psum(x, "x")

    fun = jax.shard_map(body, mesh=explicit, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    rest = P(*[tuple(n for n in (p if isinstance(p, tuple) else (p,)) if n == "y") or None for p in spec])
    marks = ["@y" if i < len(rest) and rest[i] is not None else "" for i in range(2)]
    for call in (fun, jax.jit(fun)):
        out = call(jax.device_put(a, NamedSharding(explicit, spec)))
        np.testing.assert_array_equal(out, a[:4] + a[4:])
        assert jax.typeof(out).str_short() == f"float32[4{marks[0]},8{marks[1]}]"
        assert seen.pop() == f"float32[4{marks[0]},8{marks[1]}]{{V:x}}"


@pytest.mark.parametrize("seed", [3, 10])
def test_random_programs_are_those_on_whole_arrays(seed):
    """A sample of ``make random-sharded``."""
    for check_vma in (True, False):
        assert not differences(seed, check_vma, compiled=True)


def test_runs_of_rows_are_exchanged():
    rng = np.random.default_rng(0)
    rows, out = rng.normal(size=(2, 5, 3)).astype(np.float32), rng.normal(size=(2, 6, 3)).astype(np.float32)
    starts, sizes = np.array([[0, 1, 2, 3], [2, 0, 1, 1]]), np.array([[1, 0, 2, 1], [2, 1, 0, 3]])  # two runs to each
    received = sizes.reshape(2, 2, 2).transpose(1, 0, 2).reshape(2, 4)
    targets = (np.cumsum(received, 1) - received).reshape(2, 2, 2).transpose(1, 0, 2).reshape(2, 4)
    expected, weights = out.copy(), np.cos(np.arange(36.0)).reshape(2, 6, 3).astype(np.float32)
    rows_ct, out_ct = np.zeros_like(rows), weights.copy()
    for i, k in np.ndindex(2, 4):
        here, there = slice(starts[i, k], starts[i, k] + sizes[i, k]), slice(targets[i, k], targets[i, k] + sizes[i, k])
        expected[k // 2, there] = rows[i, here]
        rows_ct[i, here] += weights[k // 2, there]
        out_ct[k // 2, there] = 0
    places = starts, sizes, targets, received
    step = lambda *xs: lax.ragged_all_to_all(*[x[0] for x in xs], axis_name="x")[None]  # noqa: E731
    for check_vma in (True, False):
        fun = jax.shard_map(step, mesh=mesh((2,), ("x",)), in_specs=P("x"), out_specs=P("x"), check_vma=check_vma)
        total = lambda rows, out: (fun(rows, out, *places) * weights).sum()  # noqa: B023, E731
        np.testing.assert_array_equal(fun(rows, out, *places), expected)
        found = jax.jit(jax.grad(total, argnums=(0, 1)))(rows, out)
        np.testing.assert_allclose(found[0], rows_ct, rtol=1e-6)
        np.testing.assert_allclose(found[1], out_ct, rtol=1e-6)


def ragged(*changed):
    """A call of ``ragged_all_to_all`` with some arguments replaced."""
    integers = np.zeros(2, np.int32)
    args = [X, X] + [integers] * 4
    for i, x in changed:
        args[i] = x
    return jax.shard_map(
        lambda: lax.ragged_all_to_all(*args, axis_name="x"), mesh=mesh(), in_specs=(), out_specs=P("x")
    )()


@pytest.mark.parametrize(
    ("i", "x", "words"),
    [
        (0, X[0], "arrays of rows"),
        (1, X.astype(int), "one shape and dtype"),
        (2, X[:2], "integer"),
        (3, np.zeros((2, 1), int), "one axis"),
        (4, np.zeros(4, int), "as long as"),
    ],
)
def test_exchanges_that_are_refused(i, x, words):
    with pytest.raises(ValueError, match=words):
        ragged((i, x))


def test_results_keep_the_explicit_axes_that_are_left():
    mesh = jax.make_mesh((2, 4), ("x", "y"))
    a = jax.device_put(np.ones((8, 8), np.float32), jax.NamedSharding(mesh, P("x", "y")))
    with jax.set_mesh(mesh):
        inner = jax.shard_map(lambda x: x * 2, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})
        for fun in (inner, lambda x: x * 2):
            program = jax.shard_map(fun, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
            for out in (program(a), jax.jit(program)(a)):
                assert jax.typeof(out).str_short() == "float32[8@x,8@y]" and out.sharding == a.sharding
                np.testing.assert_array_equal(out, 2 * np.asarray(a))


def test_collectives_over_some_explicit_axes_keep_the_split_over_others():
    """In a `shard_map` over one axis of matrices that are split over both: types, and numbers as over Auto axes."""
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    cases = [
        (lambda v: lax.all_gather(v, "x", tiled=True), "float32[8@x,4@y]"),
        (lambda v: lax.all_gather(v, "x"), "float32[4@x,2,4@y]"),
        (lambda v: lax.all_gather(v, "x", axis=2), "float32[4@x,4@y,2]"),
        (lambda v: lax.psum_scatter(v, "x", tiled=True), "float32[2@x,4@y]"),
        (lambda v: lax.psum_scatter(v, "x"), "float32[8@(x,y)]"),
        (lambda v: lax.all_to_all(v, "x", 0, 0, tiled=True), "float32[4@x,4@y]"),
    ]
    for f, wanted in cases:
        found = []
        for kind in (AxisType.Explicit, AxisType.Auto):
            mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(kind, kind))
            with jax.set_mesh(mesh):
                g = jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
                put = jax.device_put(x, NamedSharding(mesh, P("x", "y")))
                y = jax.jit(g)(put)
                slope = jax.jit(jax.grad(lambda v, g=g: (g(v) ** 2).sum()))(put)
                found.append([np.asarray(y), np.asarray(slope)])
                assert kind == AxisType.Auto or str(jax.typeof(y)) == wanted
        for explicit, auto in zip(*found, strict=True):
            np.testing.assert_array_equal(explicit, auto)
