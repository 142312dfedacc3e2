"""Functions exported for symbolic shapes: one program for all lengths, in this process and when it is read again."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import export, lax
from catena.errors import InconclusiveDimensionOperation
from catena.export import exporting, polymorphic
from catena.export.container import pack, unpack
from shares import alternate

F32 = jnp.float32
WEIGHTS = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32))


def struct(text: str, *constraints: str, dtype=F32):
    return jax.ShapeDtypeStruct(export.symbolic_shape(text, constraints=constraints), dtype)


def structs(*texts: str, constraints=(), dtype=F32):
    scope = export.SymbolicScope(constraints)
    return [jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), dtype) for text in texts]


def normal(*shape: int):
    return jnp.asarray(np.random.default_rng(shape).normal(size=shape).astype(np.float32))


def attention(x):
    scores = jnp.where(jnp.tril(jnp.ones((x.shape[0],) * 2, bool)), x @ x.T / 2, -jnp.inf)
    return jax.nn.softmax(scores) @ x


def recurrent(x):
    return lax.scan(lambda h, row: (jnp.tanh(row @ WEIGHTS + h), h), jnp.zeros(4), x)


FUNCTIONS = {
    "elementwise": lambda x: jnp.sin(x) * 2 + 1,
    "mean": lambda x: {"mean": jnp.mean(x, 0), "var": jnp.var(x, 0)},
    "lengths as numbers": lambda x: x / x.shape[0] + x.size * jnp.ones(x.shape[0])[:, None],
    "products": lambda x: (x @ WEIGHTS, x @ x.T, x.T @ x),
    "attention": attention,
    "recurrent": recurrent,
    "ends": lambda x: (x[-1], x[::-1], x[1:] - x[:-1], jnp.roll(x, 1, 0)),
    "shapes": lambda x: (
        x.reshape(-1),
        x.reshape(2, -1, 2),
        jnp.concatenate([x, x]),
        jnp.repeat(x, 3, axis=0),
        x[None],
    ),
    "order": lambda x: (jnp.sort(x, 0), jnp.argmax(x, 0), jnp.cumsum(x, 0), jnp.argsort(x[:, 0])),
    "indices": lambda x: x.at[jnp.arange(x.shape[0]) // 2].add(1.0)[jnp.arange(x.shape[0])[::-1]],
    "loop": lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(4)),
    "branches": lambda x: lax.cond(jnp.sum(x) > 0, lambda x: x + 1, lambda x: x[::-1], x),
    "segments": lambda x: jax.ops.segment_sum(x, jnp.arange(x.shape[0]) % 3, num_segments=3),
    "convolution": lambda x: lax.conv_general_dilated(x.T[:, None], jnp.ones((1, 1, 3)), (1,), "SAME"),
    "keys": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    "rules": lambda x: jax.nn.relu(jax.checkpoint(jnp.tanh)(x)),
    "sums of products": lambda x: jnp.einsum("ij,kj->ik", x, x),
}


def trees_agree(found, wanted):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_the_function(name):
    function = FUNCTIONS[name]
    made = export.export(jax.jit(function))(struct("n, 4"))
    read = export.deserialize(made.serialize())
    for n in alternate(2, (1, 2, 3, 7, 64), list(FUNCTIONS).index(name)):
        x = normal(n, 4)
        wanted = jax.jit(function)(x)
        trees_agree(made.call(x), wanted)
        trees_agree(read.call(x), wanted)


@pytest.mark.parametrize("name", ["elementwise", "mean", "products", "attention", "recurrent", "rules"])
def test_derivatives(name):
    total = lambda x, f: sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(f(x)))
    function = FUNCTIONS[name]
    made = export.export(jax.jit(function))(struct("n, 4"))
    read = export.deserialize(made.serialize(vjp_order=1))
    for n in (2, 5):
        x = normal(n, 4)
        wanted = jax.grad(total)(x, function)
        for exported in (made, read):
            trees_agree(jax.grad(total)(x, exported.call), wanted)
            trees_agree(jax.jit(jax.grad(lambda x, e=exported: total(x, e.call)))(x), wanted)
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(total)(x, export.deserialize(made.serialize()).call)


def test_integers_have_cotangents_without_data():
    made = export.export(jax.jit(lambda table, i: table[i]))(struct("4, 2"), struct("n", dtype=jnp.int32))
    read = export.deserialize(made.serialize(vjp_order=1))
    table, i = normal(4, 2), jnp.array([1, 3, 1])
    found = jax.grad(lambda t: jnp.sum(read.call(t, i) ** 2))(table)
    np.testing.assert_allclose(found, 2 * table * np.array([[0], [2], [0], [1]]), rtol=1e-6)


def test_second_derivatives():
    made = export.export(jax.jit(lambda x: jnp.sum(x**3)))(struct("n"))
    read = export.deserialize(made.serialize(vjp_order=2))
    x = normal(5)
    np.testing.assert_allclose(jax.hessian(lambda x: jnp.sum(x**3))(x), jax.jacrev(jax.grad(read.call))(x), rtol=1e-5)


def test_types_have_the_symbolic_shapes():
    made = export.export(jax.jit(lambda x, y: (jnp.concatenate([x, y]), x[::2], jnp.outer(x, y))))(*structs("a", "2*b"))
    for exported in (made, export.deserialize(made.serialize())):
        (a,), (b,) = (x.shape for x in exported.in_avals)
        assert [x.shape for x in exported.out_avals] == [(a + b,), ((a + 1) // 2,), (a, b)]
        assert "(float32[a], float32[2*b]) -> (" in repr(exported) and "float32[a,2*b])" in repr(exported)
        a, b = normal(3), normal(4)
        for found, wanted in zip(exported.call(a, b), (jnp.concatenate([a, b]), a[::2], jnp.outer(a, b)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_transformations_of_a_call():
    made = export.export(jax.jit(lambda x: jnp.tanh(x @ WEIGHTS)))(struct("n, 4"))
    x = normal(6, 3, 4)
    wanted = jnp.tanh(x @ WEIGHTS)
    np.testing.assert_allclose(jax.vmap(made.call)(x), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(made.call, 1, 1))(x), wanted, rtol=1e-5, atol=1e-6)
    primal, tangent = jax.jvp(made.call, (x[0],), (x[1],))
    np.testing.assert_allclose(tangent, (1 - primal**2) * (x[1] @ WEIGHTS), rtol=1e-4, atol=1e-5)


def test_an_exported_function_is_called_by_another_that_is_exported():
    inner = export.export(jax.jit(lambda x: jnp.cumsum(x)))(struct("n"))
    outer = export.export(jax.jit(lambda x: inner.call(x)[-1] + inner.call(x[1:])[0]))(struct("m", "m >= 2"))
    x = jnp.arange(1.0, 6.0)
    assert export.deserialize(outer.serialize()).call(x) == 15.0 + 2.0
    assert export.export(jax.jit(inner.call))(x).call(x)[-1] == 15.0


def test_constants_are_written_once():
    weights = jnp.zeros(50_000)
    made = export.export(jax.jit(lambda x: jnp.sum(x) * weights))(struct("n"))
    assert 200_000 < len(made.serialize(vjp_order=1)) < 230_000


def test_constraints_are_kept():
    rows = export.export(jax.jit(lambda x: x.reshape(-1, 8).sum(1)))(struct("n", "mod(n, 8) == 0"))
    for exported in (rows, export.deserialize(rows.serialize())):
        np.testing.assert_array_equal(exported.call(jnp.ones(16)), [8, 8])
        with pytest.raises(ValueError, match=r"mod\(n, 8\) == 0, and n is 12"):
            exported.call(jnp.ones(12))
    long = export.export(jax.jit(lambda x: x[5000:].sum()))(struct("n", "n >= 5001"))
    assert long.call(jnp.ones(5003)) == 3
    first = export.export(jax.jit(lambda x: x[:64]))(struct("n", "n >= 64"))
    assert export.deserialize(first.serialize()).call(jnp.arange(70.0)).shape == (64,)
    with pytest.raises(ValueError, match="n >= 64, and n is 63"):
        first.call(jnp.ones(63))


@pytest.mark.parametrize(
    "texts, shapes, message",
    [
        (["n"], [(0,)], "lengths from 1 on, and n is 0"),
        (["n, 4"], [(3, 5)], r"Shape mismatch for args\[0\]: expected float32\[n,4\], got the shape \(3, 5\)"),
        (["n, 4"], [(3,)], r"args\[0\]: expected float32\[n,4\], got the shape \(3,\)"),
        (["n", "n"], [(3,), (4,)], r"args\[1\]: expected float32\[n\], got the shape \(4,\), where n is 3"),
        (["2*n + 1"], [(8,)], r"expected float32\[.*\], got the shape \(8,\)"),
        (["n", "n*m"], [(3,), (7,)], r"args\[1\].*, got the shape \(7,\), where n is 3 and m is 2"),
    ],
)
def test_shapes_that_do_not_fit(texts, shapes, message):
    made = export.export(jax.jit(lambda *xs: sum(map(jnp.sum, xs))))(*structs(*texts))
    for exported in (made, export.deserialize(made.serialize())):
        with pytest.raises(ValueError, match=message):
            exported.call(*map(jnp.ones, shapes))


def test_other_dtypes_and_structures_do_not_fit():
    made = export.export(jax.jit(lambda x: x))(struct("n"))
    with pytest.raises(ValueError, match="Dtype mismatch"):
        made.call(jnp.arange(3))
    with pytest.raises(ValueError, match="another structure"):
        made.call(jnp.ones(3), 1.0)


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: x if x.shape[0] > 5 else x * 2, "it has another form|is another where n is 2, 3, 5"),
        (lambda x: x if x.shape[0] < 1000 else x * 2, "is another where n is 1024, 5003"),
        (lambda x: x + np.arange(x.shape[0]), "an array that was made of a length"),
        (lambda x: x / np.float32(np.sqrt(x.shape[0])), "of div, a number is .* this is no length"),
        (lambda x: sum(x[i] for i in range(x.shape[0])), "operations where n is"),
        (lambda x: x[:64] * 2 if x.shape[0] < 64 else x[:64], "operations where n is|is another where n is"),
        (lambda x: 2 * x if x.shape[0] == 1 else x, "is another where n is 1 than.*allow, such as 'n >= 2'"),
        (lambda x: x if x.shape[0] % 2 else 2 * x, "operations where n is"),
        (lambda x: lax.slice(x, (1,), (4,)), r"or none \(TypeError: slice .* where n is 1?.*2, 3.* such as 'n >= 4'"),
    ],
)
def test_programs_that_are_not_one_are_refused(function, message):
    with pytest.raises(InconclusiveDimensionOperation, match=message):
        export.export(jax.jit(function))(struct("n"))


LESSER_OR_GREATER = [
    lambda x: x[:10],
    lambda x: x[-10:, 1:],
    lambda x: x[: min(x.shape[0], 64)] * x.shape[1],
    lambda x: jnp.zeros(max(x.shape[0], 64)) + x.sum(),
    lambda x: x[: jax.core.min_dim(x.shape[0], x.shape[1])],
    lambda x: x[: min(x.shape[0] + 3, 64) - 2].sum(1),
    lambda x: jnp.diagonal(x),
    lambda x: x.at[:7].set(1.0),
]


@pytest.mark.parametrize("i", range(len(LESSER_OR_GREATER)))
def test_lengths_are_the_lesser_or_greater_of_two(i):
    function = LESSER_OR_GREATER[i]
    exported = export.export(jax.jit(function))(struct("a, b"))
    for k, read in enumerate((exported, export.deserialize(exported.serialize(1))), i):
        for shape in alternate(3, ((3, 100), (100, 3), (64, 64), (10, 9), (7, 200), (200, 7)), k):
            x = jnp.arange(float(np.prod(shape))).reshape(shape)
            np.testing.assert_allclose(read.call(x), function(x), rtol=1e-6)
    x = jnp.ones((5, 70))
    want = jax.grad(lambda x: function(x).sum())(x)
    np.testing.assert_allclose(jax.grad(lambda x: exported.call(x).sum())(x), want, rtol=1e-6)


def test_programs_are_written_once(monkeypatch):
    written, write = [], polymorphic.write_programs
    for module in (polymorphic, exporting):
        monkeypatch.setattr(module, "write_programs", lambda p, *of: (written.append(p[0]), write(p, *of))[1])
    export.export(jax.jit(lambda x: x + 1))(struct("n"))
    assert len(written) == len({str(p.in_avals) for p in written}) > 5


def test_variables_have_to_be_told():
    with pytest.raises(ValueError, match="do not tell a, b"):
        export.export(jax.jit(jnp.sum))(struct("a*b"))
    with pytest.raises(ValueError, match="do not tell a"):
        export.export(jax.jit(jnp.sum))(struct("a^2"))
    a, b = struct("a"), struct("b")
    with pytest.raises(ValueError, match="different scopes"):
        export.export(jax.jit(lambda x, y: x.sum() + y.sum()))(a, b)


def test_traces_for_lengths_are_nobodys():
    function = jax.jit(lambda x, y: x.sum() + y.sum())
    export.export(function)(*structs("a", "b"))
    jax.eval_shape(function, *structs("a", "b"))
    assert "traced 2 times" not in function.explain()
    assert function._cache_size() == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head["variables"].clear(),
        lambda head: head["variables"].append(3),
        lambda head: head["constraints"].append(["n", ">", "2"]),
        lambda head: head["functions"].clear(),
        lambda head: head["functions"][0].pop("types"),
        lambda head: head["functions"][0]["programs"][0]["arguments"][0].__setitem__(1, [{"=": "__import__('os')"}]),
        lambda head: head["functions"][0]["programs"][0]["arguments"][0].__setitem__(1, [{"=": "m"}]),
        lambda head: head["functions"][0]["programs"][0]["arguments"][0].__setitem__(1, [{"=": "(" * 5000}]),
        lambda head: head["functions"][0]["programs"][0]["arguments"][0].__setitem__(1, [{"=": "2*n"}]),
        lambda head: head["functions"][0]["programs"][0]["arguments"][0].__setitem__(1, [{"=": "n", "dtype": "os"}]),
    ],
)
def test_changed_bytes_are_refused(change):
    made = export.export(jax.jit(lambda x: (jnp.mean(x), x[::-1])))(struct("n"))
    head, data = unpack(made.serialize())
    assert export.deserialize(pack(head, [bytes(data)])).call(jnp.ones(3))[0] == 1
    change(head)
    with pytest.raises(ValueError):
        export.deserialize(pack(head, [bytes(data)])).call(jnp.ones(3))
