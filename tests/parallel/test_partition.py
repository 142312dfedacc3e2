"""Partitioned programs are the whole ones: run by all devices at once, they give the same values and gradients."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import P, lax
from catena.core.jaxpr import eval_jaxpr
from catena.parallel.local_program import local_program
from catena.parallel.packing import Packing, packed, sums_of
from catena.parallel.partition import partition
from catena.parallel.primitive import as_whole
from catena.parallel.vectorised import without_types
from catena.sharding import Mesh
from catena.transform.layouts import split_of_spec
from partition_programs import PROGRAMS, SIZES, arguments

DEVICES = np.array(jax.devices())
MESHES = {shape: Mesh(DEVICES.reshape(shape), tuple(SIZES)) for shape in [(2, 4), (4, 2), (8, 1)]}


def partitioned(program, mesh, args):
    closed = jax.make_jaxpr(program.make(jax))(*args)
    fits = lambda specs, avals: tuple(fitting(s, a, mesh) for s, a in zip(specs, avals, strict=True))  # noqa: E731
    outs = program.outs and fits(program.outs, closed.out_avals)
    return closed, partition(closed, mesh, fits(program.specs, args), outs)


def fitting(spec, aval, mesh) -> tuple:
    """A spec as a split, without what does not divide."""
    split = split_of_spec(P(*spec), aval.ndim)
    sizes = [int(np.prod([mesh.shape[n] for n in names])) for names in split]
    return tuple(() if n % k else names for names, n, k in zip(split, aval.shape, sizes, strict=True))


def run(partitioned, args):
    """The results, operation by operation, of all devices at once."""
    whole = as_whole(partitioned.params)
    return eval_jaxpr(whole.jaxpr, whole.consts, *map(jnp.asarray, args))


@pytest.mark.share(2)
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_partitioned_is_whole(name):
    program = PROGRAMS[name]
    args = arguments(program)
    shapes = list(MESHES)
    closed, parts = partitioned(program, MESHES[shapes[len(name) % 3]], args)
    whole = eval_jaxpr(closed.jaxpr, closed.consts, *map(jnp.asarray, args))
    for found, wanted in zip(run(parts, args), whole, strict=True):
        scale = max(1.0, float(np.abs(np.asarray(wanted, np.float64)).max(initial=0)))
        np.testing.assert_allclose(np.asarray(found) / scale, np.asarray(wanted) / scale, atol=5e-6, rtol=1e-5)


def parts_of(f, args, *splits, mesh=MESHES[2, 4], outs=None):
    closed = jax.make_jaxpr(f)(*args)
    return closed, partition(closed, mesh, splits, outs)


X = np.arange(1, 33, dtype=np.int32).reshape(8, 4)
BITS = X % 3 > 0


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: lax.reduce(x, np.int32(1), lambda a, b: a * b % 7, (0,)), X),
        (lambda x: lax.reduce_xor(x, (0,)), X),
        (lambda x: lax.reduce_or(x, (0,)), X),
        (lambda x: lax.reduce_and(x, (0,)), X | 1),
        (lambda x: jnp.prod(x, 0), X % 3 + 1),
        (lambda x: (lax.reduce_xor(x, (0,)), lax.reduce_or(x, (0,)), lax.reduce_and(x, (0,)), x.sum(0)), BITS),
        (lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 0)), np.where(X % 5 == 2, np.nan, X).astype(np.float32)),
        (lambda x: jnp.take(x, np.array([1, 9, -3, -20]), axis=0), X),
        (lambda x: x.at[np.array([0, 7, 7])].add(np.int32(2)), X),
        (lambda x: jnp.pad(x, ((3, 2), (0, 1)), mode="wrap")[1:9], X),
        (lambda x: jnp.concatenate([x[2:6], jnp.pad(x[:3], ((1, 0), (0, 0)), constant_values=9)]), X),
        (lambda x: lax.pad(x, np.int32(5), [(-2, 1, 0), (1, 0, 1)]), X),
        (lambda x: jnp.cumsum(x[::-1], 0) + jnp.sort(-x, 0), X),
        (lambda x: jax.random.bits(jax.random.key(1), (8, 4)) + jnp.arange(8, dtype=np.uint32)[:, None] * x.size, X),
    ],
)
def test_what_parts_must_know_of_each_other(f, x):
    closed, parts = parts_of(f, [x], (("data", "model"), ()))
    for found, wanted in zip(run(parts, [x]), eval_jaxpr(closed.jaxpr, closed.consts, x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_sums_are_put_off():
    def f(x, w):
        return ((x @ w) * 2 - (x * x) @ w).sum(1)  # two sums over the mesh of (8, 16), or one of (8,)

    args = [np.ones((8, 64), np.float32), np.ones((64, 16), np.float32)]
    _, parts = parts_of(f, args, ((), ("model",)), (("model",), ()))
    (sent,) = parts.sent
    assert (sent.kind, sent.bytes) == ("psum", 2 * 8 * 4 * 3 / 4)


def test_layouts_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match=r"argument 0 of type int32\[8,4\] is laid out over \('data', 'model'\)"):
        parts_of(lambda x: x, [X], ((), ("data", "model")))
    with pytest.raises(ValueError, match="result 0"):
        parts_of(lambda x: x[:3], [X], ((), ()), outs=((("model",), ()),))


def test_sums_that_a_loop_adds_up_are_taken_behind_it():
    x, w = np.linspace(0.1, 1, 96, dtype=np.float32).reshape(3, 8, 4), np.ones((4, 4), np.float32)

    def f(w, x):
        def step(carry, x):
            total, other, last = carry
            added = total + jnp.sum(jnp.tanh(x @ w)), jnp.sum(x) + (other + jnp.max(x)), last * jnp.sum(x * x)
            return added, jnp.sum(jnp.sin(x))

        return lax.scan(step, (w[0, 0], w[0, 1], w[1, 1]), x)

    closed, parts = parts_of(f, (w, x), ((), ()), ((), ("model",), ()))
    outs = run(parts, (w, x))
    for found, wanted in zip(outs, eval_jaxpr(closed.jaxpr, closed.consts, *map(jnp.asarray, (w, x))), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    sums = sorted(s.times for s in parts.sent if s.kind == "psum")
    assert sums == [1, 1, 3, 3], parts.sent  # those of ``total`` and of the rows once


def test_sums_that_do_not_wait_for_each_other_are_one_message():
    def program(x):
        a, b = lax.psum(x, "i"), lax.psum(jnp.sum(x), "i")
        c = lax.psum(x * a, "i")
        d, e = lax.psum(jnp.sin(x), "i"), lax.psum(x.astype(jnp.int32), "i")
        return a + b, c, d, e + lax.psum(c, "i").astype(jnp.int32)

    body = without_types(jax.make_jaxpr(program, axis_env=[("i", 4)])(np.arange(3.0, dtype=np.float32)))
    found = packed(body)
    assert [len(e.invars) for e in found.eqns if e.primitive.name == "psum"] == [4, 1, 1]
    calls = [e for e in local_program(body, (("i", 4),)).eqns if e.primitive.name == "communicate"]
    assert [e.invars[0].aval.str_short() for e in calls] == ["float32[7]", "int32[3]", "float32[3]", "float32[3]"]
    assert packed(found) is found


class Counted(list):
    """Equations that count how often one is asked for."""

    asked = 0

    def __getitem__(self, i):
        self.asked += 1
        return super().__getitem__(i)


def test_equations_are_looked_at_a_few_times_however_many_sums_wait_for_others():
    def program(x):
        late = []
        for _ in range(60):  # the sum of each turn goes with one that is ready at the end only
            x = lax.psum(jnp.sin(x), "i")
            late.append(jnp.cos(x))
        return x, [lax.psum(y, "i") for y in late]

    eqns = jax.make_jaxpr(program, axis_env=[("i", 4)])(np.arange(3.0, dtype=np.float32)).eqns
    packing = Packing(Counted(eqns), sums_of(eqns))
    ordered = list(packing.ordered())
    assert packing.eqns.asked < 6 * len(eqns)
    known = set()
    for eqn in ordered:  # each behind what it needs
        assert not {v for v in eqn.invars if v in packing.makers} - known
        known.update(eqn.outvars)
    assert known == set(packing.makers)
    assert sorted(len(e.invars) for e in ordered if e.primitive.name == "psum") == [1] * 2 + [2] * 59
