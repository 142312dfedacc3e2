"""References under transformations: derivatives, vectorisation, and random programs beside twins without references."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

X = jnp.array([1.0, 2.0, 3.0])


def mixed(x):
    ref = jax.new_ref(x)
    ref[0] = ref[1] * ref[2]
    ref[1] = jnp.sin(ref[0])
    jax.ref.addupdate(ref, 2, ref[1] * ref[1])
    return jnp.sum(ref[...] ** 2) + jax.ref.swap(ref, 0, 1.0) * ref[0]


def mixed_twin(x):
    a = x[1] * x[2]
    b = jnp.sin(a)
    c = x[2] + b * b
    return a**2 + b**2 + c**2 + a


def looped(x):
    ref = jax.new_ref(jnp.zeros(3))

    def step(c, i):
        ref[i] = jnp.sin(c * x[i])
        return c + ref[i], ref[0]

    lax.scan(step, 1.0, jnp.arange(3))
    return jnp.sum(ref[...] * X)


def looped_twin(x):
    c, values = 1.0, []
    for i in range(3):
        values.append(jnp.sin(c * x[i]))
        c = c + values[-1]
    return sum(v * w for v, w in zip(values, X, strict=True))


def branched(x):
    ref = jax.new_ref(x)
    lax.cond(x[0] > 0, lambda: ref.__setitem__(0, ref[1] * ref[1]), lambda: None)
    lax.while_loop(lambda i: i < 2, lambda i: (ref.__setitem__(2, ref[1] * ref[2]), i + 1)[1], 0)
    jax.jit(lambda y: ref.addupdate(y, 1))(x[0] * x[2])
    return jnp.sum(jnp.cos(ref[...]))


def branched_twin(x):
    return jnp.cos(x[1] ** 2) + jnp.cos(x[1] + x[0] * x[2]) + jnp.cos(x[2] * x[1] ** 2)


PAIRS = {"mixed": (mixed, mixed_twin), "looped": (looped, looped_twin), "branched": (branched, branched_twin)}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_are_those_of_the_twin(name):
    f, twin = PAIRS[name]
    expected = jax.grad(twin)(X)
    for g in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f)), jax.grad(jax.checkpoint(f))):
        np.testing.assert_allclose(g(X), expected, rtol=2e-5)
    np.testing.assert_allclose(jax.jvp(f, (X,), (X,))[1], jax.jvp(twin, (X,), (X,))[1], rtol=2e-5)
    np.testing.assert_allclose(jax.linearize(f, X)[1](X), jax.jvp(twin, (X,), (X,))[1], rtol=2e-5)
    np.testing.assert_allclose(jax.hessian(f)(X), jax.hessian(twin)(X), rtol=2e-4, atol=1e-4)
    batch = jnp.stack([X, 0.5 * X])
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(batch), jax.vmap(jax.grad(twin))(batch), rtol=2e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(f))(batch), jax.vmap(twin)(batch), rtol=2e-5)


def test_jvp_takes_pairs_of_references():
    ref, tangent = jax.new_ref(X), jax.new_ref(jnp.ones(3))

    def f(ref):
        ref[0] = ref[1] ** 2
        return ref[...]

    value, t = jax.jvp(f, (ref,), (tangent,))
    assert value.tolist() == ref[...].tolist() == [4.0, 2.0, 3.0]
    assert t.tolist() == tangent[...].tolist() == [4.0, 1.0, 1.0]


def test_a_tangent_needs_a_reference_of_its_own():
    ref = jax.new_ref(X)
    with pytest.raises(ValueError, match="non-differentiated array reference"):
        jax.grad(lambda x: (ref.__setitem__(0, x), x)[1])(1.0)
    with pytest.raises(ValueError, match="non-differentiated array reference"):
        jax.grad(lambda x: (ref.addupdate(x, 0), x)[1])(1.0)
    assert float(jax.grad(lambda x: (ref.__setitem__(0, lax.stop_gradient(x)), x * ref[1])[1])(5.0)) == 2.0
    assert float(ref[0]) == 5.0


def test_cotangents_leave_through_references():
    @jax.custom_vjp
    def noted(ref, x):
        return x

    noted.defvjp(lambda ref, x: (x, ref), lambda ref, ct: (ref.__setitem__(..., ct), (None, ct))[1])
    for run in (lambda f: f, jax.jit):
        ref = jax.new_ref(jnp.zeros(3))
        gradient = run(jax.grad(lambda x: jnp.sum(jnp.sin(noted(ref, x)) ** 2)))(X)  # noqa: B023
        np.testing.assert_allclose(gradient, np.sin(2 * np.asarray(X)), rtol=1e-6)
        np.testing.assert_array_equal(ref[...], gradient)


# ---- vectorisation


def test_each_example_has_its_reference():
    def f(ref, v, i):
        ref[0] = v
        ref[i] += 10.0
        jax.ref.addupdate(ref, jnp.array([1, 1]), jnp.ones(2))
        return ref[...], jax.ref.swap(ref, i, v)

    start = np.zeros((2, 3), np.float32)
    v, i = jnp.array([1.0, 2.0]), jnp.array([2, 1])
    expected = [[], []]
    rows = []
    for k in range(2):
        ref = jax.new_ref(start[k])
        for out, x in zip(expected, f(ref, v[k], i[k]), strict=True):
            out.append(x)
        rows.append(ref[...])
    for axis in (0, 1):
        ref = jax.new_ref(jnp.stack(list(start), axis))
        for run in (lambda f: f, jax.jit):
            ref[...] = jnp.zeros_like(ref[...])
            outs = run(jax.vmap(f, in_axes=(axis, 0, 0)))(ref, v, i)
            for out, want in zip(outs, expected, strict=True):
                np.testing.assert_array_equal(out, jnp.stack(want))
            np.testing.assert_array_equal(ref[...], jnp.stack(rows, axis))


def test_a_shared_reference_is_read_and_not_written():
    ref = jax.new_ref(X)
    assert jax.vmap(lambda i: ref[i])(jnp.array([2, 0])).tolist() == [3.0, 1.0]
    writers = (lambda v: ref.__setitem__(0, v), lambda v: ref.__setitem__(0, 1.0), lambda v: ref.addupdate(v, 0))
    for write in writers:
        for run in (lambda f: f, jax.jit):
            with pytest.raises(ValueError, match="unbatched array reference"):
                run(jax.vmap(write))(jnp.ones(2))
    with pytest.raises(ValueError, match="unbatched array reference"):
        jax.vmap(lambda v: lax.scan(lambda c, i: (c, ref.__setitem__(i, v)), 0, jnp.arange(3)))(jnp.ones(2))


def test_references_made_inside_are_one_for_each_example():
    def f(v):
        ref = jax.new_ref(jnp.zeros(3))
        lax.fori_loop(0, 3, lambda i, _: ref.addupdate(v * i, i), None)
        return jax.freeze(ref)

    assert jax.vmap(f)(jnp.array([1.0, 2.0])).tolist() == [[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]


# ---- random programs


class Functional:
    """The twin of a reference: the same methods on a value that is replaced."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, i):
        return self.x[i]

    def __setitem__(self, i, v):
        self.x = self.x.at[i].set(v)

    def addupdate(self, v, i):
        self.x = self.x.at[i].add(v)


def random_program(rng):
    """A list of instructions on two references of five elements, and where an index comes from."""
    kinds = ["set", "add", "swap", "slice", "array", "loop", "branch", "call"]
    return [(kinds[rng.integers(len(kinds))], *rng.integers(0, 5, 3).tolist(), int(rng.integers(2))) for _ in range(7)]


def run_program(instructions, a, b):
    total = 0.0
    for kind, i, j, k, which in instructions:
        x, y = (a, b) if which else (b, a)
        if kind == "set":
            x[i] = jnp.sin(y[j]) + x[k]
        elif kind == "add":
            x.addupdate(y[j] * x[k], i)
        elif kind == "swap":
            old = x[i]
            x[i] = y[j] * 0.5
            total = total + old * y[k]
        elif kind == "slice":
            x[1:4] = y[0:3] * x[i]
        elif kind == "array":
            x.addupdate(jnp.cos(y[jnp.array([i, j])]), jnp.array([k, k]))
        else:
            total = total + control_flow(kind, x, y, i, j, k)
    return total + jnp.sum(a[0:5] * b[0:5])


def control_flow(kind, x, y, i, j, k):
    """A loop, a branch or a call; for the twin the same in Python."""
    functional = isinstance(x, Functional)

    def step(n):
        x[n] = x[n] * 0.9 + y[i]

    if kind == "loop":
        if functional:
            for n in range(3):
                step(n)
        else:
            lax.fori_loop(0, 3, lambda n, _: step(n), None)
        return x[j]
    if kind == "branch":
        taken = y[k] > 0.3
        if functional:
            x[j] = jnp.where(taken, x[i] * y[j], x[j])
        else:
            lax.cond(taken, lambda: x.__setitem__(j, x[i] * y[j]), lambda: None)
        return x[j]
    if functional:
        step(j)
    else:
        jax.jit(step)(j)
    return y[k]


def with_references(instructions):
    return lambda a, b: run_program(instructions, jax.new_ref(a), jax.new_ref(b))


def without_references(instructions):
    return lambda a, b: run_program(instructions, Functional(a), Functional(b))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_are_their_twins(seed):
    rng = np.random.default_rng(seed)
    instructions = random_program(rng)
    f, twin = with_references(instructions), without_references(instructions)
    a, b = (jnp.asarray(rng.uniform(-1, 1, 5), jnp.float32) for _ in range(2))
    value, gradient = jax.value_and_grad(twin, (0, 1))(a, b)
    runs = [jax.value_and_grad(f, (0, 1))]
    if seed < 3:
        runs.append(jax.jit(jax.value_and_grad(f, (0, 1))))
    for run in runs:
        got, by = run(a, b)
        np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(by, gradient, rtol=1e-4, atol=1e-5)


# ---- cotangents added to references


def test_vjp_adds_to_references():
    def f(p, y):
        return jnp.sin(p["a"]) * y

    _, f_vjp = jax.vjp(f, {"a": X}, 2.0 * X)
    by_a, by_y = f_vjp(jnp.ones(3))
    total = jax.new_ref(jnp.ones(3))
    pull = f_vjp.with_refs({"a": total}, jax.ad.GradValue())
    assert pull(jnp.ones(3))[0] == {"a": jax.ad.GradRef()}
    np.testing.assert_allclose(jax.jit(pull)(jnp.ones(3))[1], by_y)
    np.testing.assert_allclose(total[...], 1.0 + 2.0 * by_a["a"], rtol=1e-6)
    assert f_vjp.with_refs({"a": jax.ad.DontWant()}, total)(jnp.ones(3)) == (
        {"a": jax.ad.DidntWant()},
        jax.ad.GradRef(),
    )
    for wrong, error in ((None, TypeError), (jax.new_ref(jnp.ones(2)), ValueError), (jnp.ones(3), TypeError)):
        with pytest.raises(error, match="with_refs|cannot be added"):
            f_vjp.with_refs({"a": wrong}, total)(jnp.ones(3))
    with pytest.raises(TypeError, match="tree like the arguments"):
        f_vjp.with_refs(total)


def test_the_cotangent_of_a_reference_is_one():
    def f(ref, x):
        ref[0] = ref[1] * x
        return jnp.sum(ref[...] ** 2)

    ref, ct = jax.new_ref(X), jax.new_ref(jnp.zeros(3))
    value, f_vjp = jax.vjp(f, ref, 3.0)
    assert float(value) == 49.0 and ref[...].tolist() == [6.0, 2.0, 3.0]
    _, by_x = f_vjp.with_refs(ct, jax.ad.GradValue())(1.0)
    assert float(by_x) == 24.0 and ct[...].tolist() == [0.0, 40.0, 6.0]
    with pytest.raises(TypeError, match="with_refs"):
        f_vjp(1.0)
