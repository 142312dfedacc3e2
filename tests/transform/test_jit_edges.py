"""What JAX's jit does at its edges: deleted and shared results, traced arrays asked for memory, odd callables, lifetimes."""

import gc
import pickle
import weakref

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.trace import METHODS_OF_DATA, PROPERTIES_OF_DATA

# ---- results


@pytest.mark.parametrize(
    "f", [lambda x: (x, x), lambda x: (x * 2, x * 2), lambda x: (x * 2,) * 2, lambda x: (x, x + 1)]
)
def test_results_that_share_memory_are_deleted_and_donated_alone(f):
    consume = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(3)
    expected = [np.asarray(r) for r in f(x)]
    for take in (lambda r: r.delete(), consume):
        first, second = jax.jit(f)(x)
        take(first)
        assert first.is_deleted() and not second.is_deleted() and not x.is_deleted()
        np.testing.assert_array_equal(second, expected[1])
        np.testing.assert_array_equal(x, np.ones(3))


def test_the_same_result_twice_is_two_arguments():
    first, second = jax.jit(lambda x: (x * 2,) * 2)(jnp.ones(3))
    jax.jit(lambda a, b: (a + 1, b), donate_argnums=0)(first, second)
    np.testing.assert_array_equal(second, 2 * np.ones(3))


@pytest.mark.parametrize("error", [ValueError, RuntimeError])
def test_a_donated_array_passed_again(error):
    x = jnp.ones(3)
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    f(x)
    for call in (f, jax.jit(lambda x: {"a": x * 2}), jax.jit(lambda x: x)):
        with pytest.raises(error, match=r"INVALID_ARGUMENT: argument 0 of .*deleted or donated.*shape=float32\[3\]"):
            call(x)


# ---- traced arrays


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap])
@pytest.mark.parametrize("name", [*METHODS_OF_DATA, *PROPERTIES_OF_DATA, "__reduce__"])
def test_traced_arrays_have_no_memory(transform, name):
    def f(x):
        found = getattr(x, name)
        return found(0) if name == "addressable_data" else found()

    with pytest.raises(jax.errors.ConcretizationTypeError, match="tracing|pickled"):
        transform(f)(jnp.ones(3))


def test_traced_arrays_are_not_pickled():
    with pytest.raises(jax.errors.ConcretizationTypeError, match="pickled"):
        jax.jit(lambda x: pickle.dumps({"x": x}))(2.0)


@pytest.mark.parametrize("wide, narrow", [("float64", "float32"), ("int64", "int32"), ("complex128", "complex64")])
def test_arrays_from_a_process_with_wide_types(wide, narrow):
    with jax.enable_x64(True):
        text = pickle.dumps(jnp.ones(2, wide))
        assert pickle.loads(text).dtype == wide
    assert pickle.loads(text).dtype == narrow


# ---- functions


def numbers(n):
    yield n


class Numbers:
    def method(self, n):
        yield n


TRANSFORMATIONS = [
    jax.jit, jax.vmap, jax.grad, jax.value_and_grad, jax.jacfwd, jax.jacrev, jax.hessian, jax.pmap,
    lambda f: jax.eval_shape(f, 1.0), lambda f: jax.vjp(f, 1.0), lambda f: jax.linearize(f, 1.0),
    lambda f: jax.jvp(f, (1.0,), (1.0,)),
]  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMATIONS)
def test_generator_functions_are_refused(transform):
    for f in (numbers, Numbers().method):
        with pytest.raises(TypeError, match="generator function"):
            transform(f)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad, jax.checkpoint, jax.jacfwd, jax.named_call])
def test_attributes_of_the_function_are_found(transform):
    def f(x):
        return x * 2.0

    f.some_value, f._own = 4, 5
    assert (transform(f).some_value, transform(f)._own) == (4, 5)


def test_attributes_of_the_function_hide_no_method():
    def f(x):
        return x * 2.0

    f.lower, f._fun, f._cache = "mine", None, None
    g = jax.jit(jax.jit(f))
    assert g(1.0) == 2.0 and g.lower(1.0).compile()(1.0) == 2.0


class Opaque:
    __signature__ = property(lambda self: int("x"))

    def __call__(self, v):
        return v

    def __repr__(self):
        raise RuntimeError


def test_callables_without_signature_or_text():
    with pytest.raises(ValueError, match="Pass donate_argnums instead of donate_argnames"):
        jax.jit(max, donate_argnames="v")
    assert jax.jit(Opaque(), donate_argnums=0)(1.0) == 1.0
    assert "Opaque" in repr(jax.jit(Opaque()))


class Incomparable(str):
    __hash__ = str.__hash__

    def __eq__(self, other):
        raise KeyError("no")


@pytest.mark.parametrize("by", [{"static_argnums": 1}, {"static_argnames": "k"}])
def test_static_arguments_that_cannot_be_compared(by):
    f = jax.jit(lambda v, k: v, **by)
    with pytest.raises(ValueError, match="static arguments should be comparable using __eq__.*\n?.*KeyError: 'no'"):
        f(1, k=Incomparable("a"))
        f(1, k=Incomparable("a"))


def test_shapes_alone_are_arguments_inside_eval_shape():
    f, struct = jax.jit(lambda x: x * 2), jax.ShapeDtypeStruct((3,), "float32")
    assert jax.eval_shape(lambda: f(struct)) == struct
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        jax.jit(lambda: f(struct))()


def test_lowering_for_other_platforms():
    traced = jax.jit(lambda x: x + 1).trace(1.0)
    assert traced.lower(lowering_platforms=("tpu",)).as_text() == traced.lower().as_text()
    with pytest.raises(TypeError, match="names of platforms"):
        traced.lower(lowering_platforms=(1,))


def test_a_constant_used_again_is_one_constant():
    c = np.arange(3, dtype=np.float32)
    closed = jax.make_jaxpr(lambda x: jnp.dot(c, c) + c * x + c + jnp.where(x > 0, c, x))(c)
    assert len(closed.consts) == 1
    negative = np.array([0.0, -0.0], np.float32)
    closed = jax.make_jaxpr(lambda x: (x + negative, x + abs(negative), x + np.zeros(2, np.int32)))(c[:2])
    assert len(closed.consts) == 3  # other bits, another type


def test_pieces_are_traced_once():
    calls = []

    def piece(x):
        calls.append(x)
        return x * 2

    x = jnp.arange(4.0)
    for _ in range(3):
        np.testing.assert_array_equal(jnp.piecewise(x, [x > 1], [piece, 0.0]), [0, 0, 4, 6])
    assert len(calls) == 1
    np.testing.assert_array_equal(jax.grad(lambda x: jnp.piecewise(x, [x > 1], [piece, 0.0]).sum())(x), [0, 0, 2, 2])


@pytest.mark.parametrize("loop", [
    lambda n, x: lax.scan(lambda c, z: (c, z), x, (), 10, unroll=n),
    lambda n, x: lax.fori_loop(0, 3, lambda i, c: c, x, unroll=n),
])  # fmt: skip
def test_a_traced_unroll(loop):
    with pytest.raises(jax.errors.ConcretizationTypeError, match="unroll"):
        jax.jit(loop)(3, 1.0)


# ---- lifetimes


def looped(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


def ruled(f):
    g = jax.custom_jvp(f)
    g.defjvp(lambda p, t: (f(p[0]), f(t[0])))
    return g


USES = {
    "jit": lambda f: jax.jit(f)(1.0),
    "grad": lambda f: jax.grad(f)(1.0),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(1.0),
    "grad of jit": lambda f: jax.grad(jax.jit(f))(1.0),
    "jit of jit": lambda f: jax.jit(lambda x: jax.jit(f)(x) + jax.jit(f)(x))(1.0),
    "vmap of jit": lambda f: jax.vmap(jax.jit(f))(jnp.ones(2)),
    "scan": lambda f: looped(f)(1.0),
    "grad of scan": lambda f: jax.grad(looped(f))(1.0),
    "vmap of scan": lambda f: jax.vmap(looped(f))(jnp.ones(2)),
    "cond": lambda f: jax.grad(lambda x: lax.cond(x > 0, f, f, x))(1.0),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(1.0),
    "custom_jvp": lambda f: jax.jit(jax.grad(ruled(f)))(1.0),
    "compiled": lambda f: jax.jit(f).lower(1.0).compile()(1.0),
    "callback": lambda f: jax.jit(lambda x: jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct((), "float32"), f(x)))(
        1.0
    ),
}


def multiply(*factors):
    return lambda x: x * jnp.sum(jnp.stack([jnp.sum(a) for a in factors]))


@pytest.mark.parametrize("name", USES)
def test_what_a_function_closes_over_goes_with_it(name, young):
    """Without the cyclic garbage collector; and nothing that everybody shares holds it. Bodies of control flow are kept
    by their code, with the scalars in them (`transform/canonical.py`).
    """
    given = [jnp.ones(4)] if "scan" in name or name == "cond" else [jnp.ones(4), jnp.ones(())]
    references = [weakref.ref(a) for a in given]
    gc.collect()
    gc.disable()
    try:
        USES[name](multiply(*given))
        given.clear()
        assert not [r() for r in references if r() is not None]
    finally:
        gc.enable()


NODES_OF_SEVERAL_RESULTS = {
    "while": lambda x: jax.lax.while_loop(lambda c: c.sum() < 100, lambda c: c + 1, x),
    "scan": lambda x: jax.lax.scan(lambda c, a: (c + a, c * a), x, jnp.ones((4, 3))),
    "cond": lambda x: jax.lax.cond(x[0] > 1, jnp.sin, jnp.cos, x),
    "sort": jnp.sort,
    "solve": lambda x: jnp.linalg.solve(jnp.eye(3) + x, x),
    "fft": lambda x: jnp.fft.fft(x),
    "callback": lambda x: jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct((3,), jnp.float32), x),
}


@pytest.mark.parametrize("name", NODES_OF_SEVERAL_RESULTS)
def test_a_compilation_leaves_nothing_to_the_garbage_collector(name, monkeypatch, young):
    monkeypatch.setenv("CATENA_CACHE", "0")
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        jax.jit(lambda x: NODES_OF_SEVERAL_RESULTS[name](x)).lower(jnp.ones(3)).compile()
        gc.collect()
        left = [type(o).__name__ for o in gc.garbage if type(o).__module__.startswith("catena.compiler")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left


@pytest.mark.parametrize("nothing", [None, (), {}, []])
def test_functions_of_trees_that_return_nothing_can_be_called_again(nothing):
    f = jax.jit(lambda x, tree: nothing)
    for tree in ((), [1.0], {"a": jnp.ones(2)}):
        assert [f(jnp.arange(3), tree) for _ in range(3)] == [nothing] * 3


def test_the_type_of_jitted_functions_has_the_name_that_programs_look_for():
    assert "PjitFunction" in str(type(jax.jit(jnp.sin)))


def test_arguments_of_one_structure_have_the_names_of_their_places():
    """Whatever is static; they are asked for once for each structure."""

    def f(p, n, *rest, flag=True):
        if n == 2 and flag is None:
            bool(p["w"] > 0)
        return p["w"] * n + sum(rest)

    jitted = jax.jit(f, static_argnums=1, static_argnames="flag")
    name = lambda *args, **kwargs: jitted.trace(*args, **kwargs).jaxpr.jaxpr.debug_info.arg_names
    for n in (3, 4, 5):
        w = {"w": jnp.ones(n)}
        assert name(w, 1) == name(w, 3, flag=False) == ["p['w']"]
        assert name(w, 1, w["w"], 2.0) == ["p['w']", "rest[0]", "rest[1]"]
        with pytest.raises(jax.errors.TracerBoolConversionError, match=r"argument p\['w'\]"):
            jitted({"w": jnp.ones(())}, 2, flag=None)


def test_nothing_is_collected_while_a_function_is_traced():
    """And it is again afterwards, also where tracing fails; whoever turned it off finds it so."""
    seen = []

    def f(x):
        seen.append(gc.isenabled())
        jax.lax.scan(lambda c, _: (c + 1, seen.append(gc.isenabled())), x, None, 2)
        if x.shape == (3,):
            raise ValueError("no")
        return x + 1

    assert gc.isenabled()
    jax.jit(f)(jnp.ones(2))
    assert gc.isenabled() and not any(seen)
    with pytest.raises(ValueError, match="no"):
        jax.jit(f)(jnp.ones(3))
    assert gc.isenabled()
    gc.disable()
    try:
        jax.make_jaxpr(f)(jnp.ones(4))
        assert not gc.isenabled()
    finally:
        gc.enable()
