"""Compilation: what is cached, what is static, what is donated, the stages ahead of time, and threads."""

import functools
import inspect
import logging
import pickle
import threading

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core.array import typed_array

X = np.arange(3, dtype=np.float32)


def close(actual, expected, tol=1e-6):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=tol)


def counted(fun):
    """``fun`` with a count of how often it was traced."""

    @functools.wraps(fun)
    def counting(*args, **kwargs):
        counting.count += 1
        return fun(*args, **kwargs)

    counting.count = 0
    return counting


# ---- caching


def test_traced_once_for_each_type():
    fun = counted(lambda x: x * 2)
    jitted = jax.jit(fun)
    for x in (1.0, 2.0, jnp.float32(1), 3, 4, X, X + 1, X[:2]):
        close(jitted(x), np.asarray(x) * 2)
    assert fun.count == 5  # weak float, float, weak int, two shapes
    assert jitted._cache_size() == 5


def test_clear_cache():
    fun = counted(lambda x: x + 1)
    jitted = jax.jit(fun)
    jitted(X)
    jitted.clear_cache()
    assert jitted._cache_size() == 0
    jitted(X)
    assert fun.count == 2
    jax.clear_caches()
    jitted(X)
    assert fun.count == 3


def test_trees_and_keywords_are_part_of_the_key():
    fun = counted(lambda *args, **kwargs: sum(jax.tree.leaves((args, kwargs))))
    jitted = jax.jit(fun)
    calls = [lambda: jitted(X, X), lambda: jitted((X, X)), lambda: jitted(X, y=X), lambda: jitted(a=X, y=X)]
    for call in calls * 2:
        close(call(), 2 * X)
    assert fun.count == 4


def test_configuration_is_part_of_the_key():
    fun = counted(lambda x: x + 1)
    jitted = jax.jit(fun)
    assert jitted(1.0).dtype == jnp.float32
    with jax.enable_x64(True):
        assert jitted(1.0).dtype == jnp.float64
    assert jitted(1.0).dtype == jnp.float32
    assert fun.count == 2


def test_different_functions_with_one_code_do_not_share():
    jitted = [jax.jit(lambda x, k=k: x + k) for k in range(3)]
    assert [float(f(0.0)) for f in jitted] == [0, 1, 2]


def test_closed_over_arrays_are_constants():
    y = jnp.asarray(X)
    close(jax.jit(lambda x: x + y)(1.0), X + 1)


def test_closures_over_tracers_are_never_cached():
    inner = jax.jit(lambda x, box: x)  # noqa: F841
    results = []

    def outer(y):
        f = jax.jit(lambda x: x * y)
        results.append(f._cache_size())
        return f(2.0)

    close(jax.vmap(outer)(X), 2 * X)
    close(jax.grad(outer)(3.0), 2.0)
    assert results == [0, 0]


# ---- static arguments


def test_static_arguments():
    fun = counted(lambda x, n, *, flag=False: x * n if flag else x + n)
    jitted = jax.jit(fun, static_argnums=1, static_argnames="flag")
    close(jitted(X, 2), X + 2)
    close(jitted(X, 3), X + 3)
    close(jitted(X, 3, flag=True), X * 3)
    close(jitted(X, n=3, flag=True), X * 3)
    assert fun.count == 4
    jitted(X, 3)
    assert fun.count == 4


def test_static_values_of_different_type_are_different():
    fun = counted(lambda x, n: x * n)
    jitted = jax.jit(fun, static_argnums=-1)
    assert jitted(1, 2).dtype == jnp.int32
    assert jitted(1, 2.0).dtype == jnp.float32
    assert fun.count == 2


def test_static_argnames_alone():
    close(jax.jit(lambda x, n: x * n, static_argnames=["n"])(X, 2), 2 * X)
    close(jax.jit(lambda x, n: x * n, static_argnames="n")(X, n=2), 2 * X)


def test_static_default():
    close(jax.jit(lambda x, n=3: jnp.sum(x) * len(range(n)), static_argnames="n")(X), X.sum() * 3)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (
            lambda: jax.jit(lambda x: x, static_argnums=3),
            ValueError,
            r"static_argnums=\(3,\), but only accepts 1",
        ),
        (
            lambda: jax.jit(lambda x: x, static_argnames="y"),
            ValueError,
            r"invalid argnames \{'y'\} in static_argnames",
        ),
        (
            lambda: jax.jit(lambda x, n: x, static_argnums=1)(1, [2]),
            ValueError,
            "Non-hashable static arguments",
        ),
        (
            lambda: jax.jit(lambda x, n: x, static_argnums=1)(1, jnp.ones(2)),
            ValueError,
            "Non-hashable static",
        ),
        (lambda: jax.jit(lambda x: x)("a"), TypeError, "at path x"),
        (lambda: jax.jit(lambda d: d)({"k": object()}), TypeError, r"at path d\['k'\]"),
        (lambda: jax.jit(lambda x: "a")(1), TypeError, "returned a value of type <class 'str'>"),
        (lambda: jax.jit(lambda x: {"k": ["a"]})(1), TypeError, r"at output component \['k'\]\[0\]"),
        (lambda: jax.jit(3), TypeError, "Expected a callable value, got 3"),
        (lambda: jax.jit(lambda x: x)(1, 2), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda: jax.jit(lambda x: x, backend="gpu"), RuntimeError, "gpu"),
        (lambda: jax.jit(lambda x: x, static_argnums=0, donate_argnums=0), ValueError, "cannot intersect"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_an_error_in_the_function_is_the_only_error():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as info:
        jax.jit(fails)(X)
    assert info.value.__context__ is None and info.value.__cause__ is None


# ---- donation


def test_donated_arrays_are_deleted():
    x = jnp.asarray(X)
    close(jax.jit(lambda x: x + 1, donate_argnums=0)(x), X + 1)
    assert x.is_deleted()
    for use in (lambda: repr(x), lambda: np.asarray(x), lambda: x + 1, lambda: jnp.sum(x), lambda: x[0]):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]"):
            use()
    assert x.shape == (3,) and x.dtype == np.float32


def test_a_deleted_array_never_reaches_a_compiled_program():
    add = jax.jit(lambda x: x + 1)
    x = jnp.asarray(X)
    add(x)
    add(x)
    x.delete()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="deleted"):
            add(x)
    assert x.aval.shape == (3,)
    with pytest.raises(RuntimeError, match="deleted"):
        add(x)


def test_donating_what_is_returned():
    x = jnp.asarray(X)
    y = jax.jit(lambda x: x, donate_argnums=0)(x)
    assert x.is_deleted()
    close(y, X)


def test_donation_by_name_and_in_trees():
    tree = {"a": jnp.asarray(X), "b": jnp.asarray(X)}
    other = jnp.asarray(X)
    jax.jit(lambda t, y: (t["a"] + y, t["b"] * y), donate_argnames="t")(tree, other)
    assert tree["a"].is_deleted() and tree["b"].is_deleted() and not other.is_deleted()


def test_a_donation_that_no_result_can_use():
    x = jnp.asarray(X)
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[3\]"):
        close(jax.jit(lambda x: jnp.sum(x), donate_argnums=0)(x), X.sum())
    assert not x.is_deleted()


def test_donating_an_unused_argument_keeps_it():
    x, y = jnp.asarray(X), jnp.asarray(X)
    close(jax.jit(lambda x, y: y + 1, donate_argnums=0)(x, y), X + 1)
    assert not x.is_deleted()


def test_the_same_array_donated_and_passed():
    x = jnp.asarray(X)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"f\(donate\(a\), a\)"):
        jax.jit(lambda x, y: x + y, donate_argnums=0)(x, x)


def test_nothing_is_donated_while_tracing():
    x = jnp.asarray(X)
    f = jax.jit(lambda x: x * x, donate_argnums=0)
    close(jax.grad(lambda y: jnp.sum(f(y)))(x), 2 * X)
    close(x, X)


def test_results_are_arrays_of_their_own():
    x = jnp.asarray(X)
    identity = jax.jit(lambda x: (x, jnp.asarray(X)))
    y, constant = identity(x)
    assert y is not x
    y.delete()
    constant.delete()
    close(x, X)
    close(identity(x)[1], X)


def test_what_is_no_new_value_is_a_result_on_the_hot_path_too():
    key, kept = jax.random.key(0), jnp.asarray(X)
    f = jax.jit(lambda x, y, key: {"x": x, "sum": [x + y, x + y], "constant": kept, "one": 1, "key": key, "none": None})
    g = jax.jit(lambda x, y: (x, y))  # nothing is computed
    for _ in range(3):
        x, y = jnp.asarray(X), jnp.float32(2)
        out, (same, other) = f(x, y, key), g(x, y)
        assert out["one"].weak_type and out["none"] is None and out["key"] == key and out["key"] is not key
        for one in (out["x"], out["constant"], same):
            close(one, X)
            one.delete()
        close(x, X)
        close(out["sum"], [X + 2, X + 2])
        close(other, 2)
        out["sum"][0].delete()
        close(out["sum"][1], X + 2)
    y.delete()
    for call in (lambda: f(x, y, key), lambda: g(x, y)):
        with pytest.raises(RuntimeError, match="deleted"):
            call()
    kept.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x, x, key)


@pytest.mark.parametrize("make", [lambda x: x, lambda x: {"w": x, "b": [x + 1]}], ids=["array", "tree"])
def test_donated_arguments_are_known_when_they_are_seen_again(make, monkeypatch):
    f = jax.jit(lambda state, y: (jax.tree.map(lambda x: x + y, state), y), donate_argnums=0)
    state, _ = f(make(jnp.asarray(X)), 1.0)
    monkeypatch.setattr(type(f), "_call", None)  # the long way
    before = state
    state, _ = f(state, 2.0)
    close(jax.tree.leaves(state)[-1], X + 3)
    assert all(x.is_deleted() for x in jax.tree.leaves(before))
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="deleted"):
        f(before, 2.0)


def test_donated_memory_is_taken_on_the_hot_path_where_nobody_else_holds_it():
    kept = jnp.asarray(X)
    f = jax.jit(lambda x, y, z: (x * 2, y, x + y, 7), donate_argnums=(0, 1))
    for k in range(4):
        x, y = jnp.asarray(X) + k, jnp.ones(3)
        seen, before = np.asarray(x) if k % 2 else None, X + k
        double, same, both, seven = f(x, y, 1.0)
        close(double, 2 * before)
        close(same, np.ones(3))
        close(both, before + 1)
        assert seven == 7 and x.is_deleted() and y.is_deleted()
        if seen is not None:  # NumPy looks at the memory still
            close(seen, before)
    for args in ((kept, kept), (x, y)):
        with pytest.raises(RuntimeError):
            f(*args, 1.0)
    close(kept, X)
    given = X.copy()
    for _ in range(3):
        close(f(given, given, 1.0)[0], 2 * X)  # Arrays of their own, so nothing is given away twice
        close(given, X)


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4", "i8", "?"])
def test_trees_of_numpy_arrays_and_numbers_on_the_hot_path(dtype):
    f = jax.jit(lambda tree: jax.tree.map(lambda x: x * 2, tree))
    for x64 in (False, True, False):
        with jax.enable_x64(x64):
            tree = {"a": [np.ones(3, dtype), np.zeros((2, 0), dtype)], "b": (2, 0.5, True, jnp.ones(2))}
            expected = jax.tree.map(lambda x: jnp.asarray(x) * 2, tree)
            for _ in range(30):
                found = f(tree)
            for one, two in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
                assert one.aval == two.aval and one.tolist() == two.tolist()


def test_placed_arguments_that_are_not_read():
    where = jax.devices()[0]
    f = jax.jit(lambda tree, x: x + 1)
    for _ in range(3):
        out = f({"a": jax.device_put(X, where)}, jax.device_put(X, where))
        assert out.committed and out.devices() == {where}
        close(out, X + 1)
    with pytest.raises(RuntimeError, match="deleted"):
        x = jax.device_put(X, where)
        x.delete()
        f({"a": x}, x)


# ---- unused arguments and inlining


def test_unused_arguments_are_not_read():
    x = jnp.asarray(X)
    x.delete()
    close(jax.jit(lambda a, b: a + 1)(1.0, x), 2.0)
    with pytest.raises(RuntimeError, match="deleted"):
        jax.jit(lambda a, b: a + 1, keep_unused=True)(1.0, x)


def test_deleted_arguments_that_are_not_read_still_have_shapes():
    f = jax.jit(lambda a, b: a + b.shape[0])
    for count in (3, 3, 5, 5):
        x = jnp.ones(count)
        x.delete()
        close(f(1.0, x), 1 + count)


def test_inline():
    inner = jax.jit(lambda y: jnp.sin(y) * 2, inline=True)
    text = str(jax.make_jaxpr(lambda x: inner(x) + 1)(1.0))
    assert "jit" not in text and "sin" in text
    assert "jit" in str(jax.make_jaxpr(jax.jit(lambda y: jnp.sin(y)))(1.0))
    close(jax.jit(inner)(0.5), np.sin(0.5) * 2)
    close(jax.grad(inner)(0.5), np.cos(0.5) * 2)


# ---- ahead of time


def test_stages():
    jitted = jax.jit(lambda x, y: {"sum": x + y["v"]})
    traced = jitted.trace(X, {"v": 1.0})
    assert str(traced.jaxpr).startswith("{ lambda ; a:f32[3] b:f32[].")
    assert traced.out_info == {"sum": jax.ShapeDtypeStruct((3,), jnp.float32)}
    close(traced(X, {"v": 2.0})["sum"], X + 2)
    lowered = traced.lower()
    assert lowered.in_avals[0][0].shape == (3,)
    assert lowered.args_info[0][1]["v"].donated is False
    assert lowered.as_text() and lowered.as_text("jaxpr").startswith("{ lambda")
    compiled = lowered.compile()
    close(compiled(X, {"v": 3.0})["sum"], X + 3)
    assert compiled.cost_analysis()["flops"] >= 3
    memory = compiled.memory_analysis()
    assert (memory.output_size_in_bytes, memory.host_output_size_in_bytes) == (12, 0)
    assert memory.generated_code_size_in_bytes > 0 and memory.peak_memory_in_bytes >= 12
    (x_sharding, _), keywords = compiled.input_shardings
    assert x_sharding == compiled.output_shardings["sum"] == jnp.ones(3).sharding and keywords == {}
    whole = compiled.as_text()
    marks = {"kernels": "kernel over", "nests": "nest ", "llvm": "define", "assembly": "entry:"}
    for stage, mark in marks.items():
        assert mark in compiled.as_text(stage) and (mark in whole or stage == "assembly")
    with pytest.raises(
        ValueError, match="stage must be None or one of kernels, program, nests, llvm, assembly, got 'hlo'"
    ):
        compiled.as_text("hlo")


def test_compiled_stages_tell_where_the_arguments_lay_that_they_were_lowered_for():
    """As in JAX: of arrays that were put somewhere, and of descriptions that say where; nothing is known of others."""
    other = jax.sharding.SingleDeviceSharding(jax.devices()[1])
    here = jnp.ones(3).sharding
    described = jax.ShapeDtypeStruct((3,), jnp.float32, sharding=other)
    for given, expected in [(jax.device_put(X, other), other), (described, other), (X, here), (1.0, here)]:
        compiled = jax.jit(lambda x, y: x + y["k"]).lower(given, {"k": X}).compile()
        assert compiled.input_shardings == ((expected, {"k": here}), {})
    asked = jax.jit(lambda x: x, in_shardings=here).lower(described).compile()
    assert asked.input_shardings == ((here,), {})


def test_lowering_from_shapes():
    compiled = jax.jit(lambda x: x @ x).lower(jax.ShapeDtypeStruct((2, 2), jnp.float32)).compile()
    close(compiled(np.eye(2, dtype=np.float32)), np.eye(2))


def test_eval_shape():
    out = jax.jit(lambda x: (x, 1)).eval_shape(X)
    assert out == (
        jax.ShapeDtypeStruct((3,), jnp.float32),
        jax.ShapeDtypeStruct((), jnp.int32, weak_type=True),
    )


@pytest.mark.parametrize(
    "args, message",
    [
        ((X.astype(np.int32),), r"Argument 'x' compiled with float32\[3\] and called with int32\[3\]"),
        ((np.zeros(4, np.float32),), r"Argument 'x' compiled with float32\[3\] and called with float32\[4\]"),
        (((X, X),), "compiled with input pytree does not match"),
        ((X, X), "compiled with input pytree does not match"),
    ],
)
def test_compiled_functions_check_their_arguments(args, message):
    compiled = jax.jit(lambda x: x + 1).lower(X).compile()
    with pytest.raises(TypeError, match=message):
        compiled(*args)


def test_compiled_functions_refuse_tracers():
    compiled = jax.jit(lambda x: x + 1).lower(X).compile()
    with pytest.raises(TypeError, match="Cannot apply JAX transformations"):
        jax.grad(lambda x: jnp.sum(compiled(x)))(X)
    with pytest.raises(TypeError, match="Cannot apply JAX transformations"):
        jax.vmap(compiled)(X[None])


def test_compiled_functions_with_statics_and_donation():
    compiled = jax.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0).lower(X, 3).compile()
    x = jnp.asarray(X)
    close(compiled(x), 3 * X)
    assert x.is_deleted()


def test_a_trace_that_closes_over_tracers_cannot_be_compiled_ahead():
    def outer(y):
        return jax.jit(lambda x: x * y).lower(1.0).compile()

    with pytest.raises(TypeError, match="closes over traced values"):
        jax.vmap(outer)(X)


# ---- arguments of every kind


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6.0, dtype=np.float32)[::2],
        np.asfortranarray(np.arange(6.0, dtype=np.float32).reshape(2, 3)),
        np.arange(3, dtype=">f4"),
        np.frombuffer(b"\0" + np.arange(3, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32),
        np.zeros((0, 3), np.float32),
        np.float64(3.5),
        np.array(2),
        3,
        True,
        1j,
    ],
    ids=str,
)
def test_kinds_of_arguments(x):
    double = jax.jit(lambda x: x + x)
    for _ in range(3):
        close(double(jnp.asarray(x)), np.asarray(x) + np.asarray(x))
        close(double(x), np.asarray(x) + np.asarray(x))


@pytest.mark.parametrize(
    "x",
    [
        np.array(["a"]),
        np.array([object()]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, [("a", "f4")]),
        np.longdouble(1),
        np.ones(2, np.longdouble),
    ],
    ids=lambda x: str(x.dtype),
)
def test_values_that_are_no_numbers(x):
    for transform in (
        jax.jit,
        jax.vmap,
        jax.make_jaxpr,
        jax.checkpoint,
        jax.grad,
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    ):
        with pytest.raises((TypeError, ValueError)):
            transform(lambda x: x)(x)
    with pytest.raises(TypeError):
        jax.device_put(x)
    with pytest.raises(TypeError):
        jnp.sin(x)


def test_masked_arrays():
    with pytest.raises(ValueError, match="masked arrays are not supported"):
        jax.jit(lambda x: x)(np.ma.array([1.0, 2.0], mask=[0, 1]))


def test_strided_views_as_arguments_of_a_seen_program():
    double = jax.jit(lambda x: x * 2)
    base = jnp.arange(12.0).reshape(3, 4)
    for x in (base, base.T.reshape(3, 4), base[::-1], jnp.arange(24.0).reshape(3, 8)[:, ::2]):
        for _ in range(2):
            close(double(x), np.asarray(x) * 2)


def test_no_arguments_and_no_results():
    close(jax.jit(lambda: jnp.ones(2))(), [1, 1])
    assert jax.jit(lambda x: None)(X) is None
    assert jax.jit(lambda x: ())(X) == ()
    assert jax.jit(lambda x: x)(None) is None


def test_bound_methods_and_decorators():
    class Model:
        def __init__(self, k):
            self.k = k

        @functools.partial(jax.jit, static_argnums=0)
        def scaled(self, x):
            return x * self.k

    close(Model(3).scaled(X), 3 * X)
    close(Model(4).scaled(X), 4 * X)
    assert Model.scaled.__name__ == "scaled"


@jax.jit
def module_level(x):
    """Its documentation."""
    return x + 1


def test_jitted_functions_look_like_functions():
    assert module_level.__name__ == "module_level" and module_level.__doc__ == "Its documentation."
    assert module_level.__wrapped__(1) == 2
    slope = jax.grad(lambda x: x**2)
    assert jax.jit(slope).__wrapped__ is slope  # which wraps a function, too
    assert "module_level" in repr(module_level)


def plain(x):
    return x + 1


def test_pickling():
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    again = pickle.loads(pickle.dumps(jax.jit(plain, static_argnums=())))
    close(again(X), X + 1)


# ---- flags


def test_disable_jit():
    fun = counted(lambda x: x + 1)
    jitted = jax.jit(fun)
    jitted(jnp.asarray(X))
    with jax.disable_jit():
        jitted(jnp.asarray(X))
        jitted(jnp.asarray(X))
        assert jax.jit(lambda x: "yes" if x > 0 else "no")(1.0) == "yes"
    assert fun.count == 3


def test_no_tracing():
    jitted = jax.jit(lambda x: x + 1)
    jitted(X)
    with jax.no_tracing():
        close(jitted(X), X + 1)
        with pytest.raises(RuntimeError, match="re-tracing function .*lambda.* for `jit`, but 'no_tracing' is set"):
            jitted(1)
        with pytest.raises(RuntimeError, match="no_tracing"):
            jax.make_jaxpr(lambda x: x)(1.0)


def test_no_execution():
    jitted = jax.jit(lambda x: x + 1)
    x = jitted(jnp.asarray(X))
    with jax.no_execution():
        for run in (lambda: jitted(x), lambda: x + 1, lambda: jnp.sin(x), lambda: jax.jit(lambda x: x)(x)):
            with pytest.raises(RuntimeError, match="no_execution"):
                run()
        jax.make_jaxpr(jitted)(x)


def test_log_compiles(caplog):
    with jax.log_compiles():
        jax.jit(lambda x: x * 3)(X)
    assert any("Compiling jit(<lambda>)" in r.getMessage() for r in caplog.records)
    assert all(r.levelno == logging.WARNING for r in caplog.records)
    caplog.clear()
    jax.jit(lambda x: x * 4)(X)
    assert not caplog.records


def test_explain_cache_misses(caplog):
    jitted = jax.jit(lambda x, n=0: x, static_argnames="n")
    with jax.explain_cache_misses():
        jitted(X)
        jitted(X)
        jitted(1.0)
        jitted((X, X))
        jitted(X, n=2)
        with jax.enable_x64():
            jitted(X)
    messages = [r.getMessage() for r in caplog.records]
    assert len(messages) == 5
    assert all(f"TRACING CACHE MISS at {__file__}" in m for m in messages)
    for message, expected in zip(messages, ["never seen", "weakly typed", "changed structure", "n changed", "x64"]):
        assert expected in message


def test_debug_nans_names_the_operation_and_the_line():
    def fails(x):
        return jnp.log(x) + 1  # the line

    for run in (fails, jax.jit(fails), jax.jit(lambda x: jax.jit(fails)(x) * 2)):
        run(jnp.float32(-1.0))
        run(jnp.float32(-1.0))
        with jax.debug_nans(True):
            with pytest.raises(
                FloatingPointError, match=r"invalid value \(nan\) encountered in log at .*test_jit.*fails"
            ):
                run(jnp.float32(-1.0))
        with jax.debug_nans(True):
            close(run(jnp.float32(1.0)) * 0, 0.0)


def test_debug_infs():
    for run in (lambda x: 1 / x, jax.jit(lambda x: 1 / x)):
        with jax.debug_infs(True):
            with pytest.raises(FloatingPointError, match=r"invalid value \(inf\) encountered in div"):
                run(jnp.float32(0.0))


# ---- threads


def in_threads(work, count=8):
    errors, results = [], [None] * count

    def run(i):
        try:
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return results


def test_threads_share_jitted_functions():
    f = jax.jit(lambda x: jnp.sin(x) * 2 + x)
    g = jax.jit(jax.grad(lambda x: jnp.sum(f(x) ** 2)))

    def work(i):
        x = np.full(5 + i % 3, 0.1 * i, np.float32)
        for _ in range(20):
            y, dy = f(x), g(x)
        return x, y, dy

    for x, y, dy in in_threads(work):
        close(y, np.sin(x) * 2 + x, 1e-5)
        close(dy, 2 * (np.sin(x) * 2 + x) * (2 * np.cos(x) + 1), 1e-4)


def test_a_program_is_compiled_once_by_all_threads(caplog):
    f = jax.jit(lambda x: x * 7)
    caplog.set_level(logging.DEBUG, logger="catena")
    barrier = threading.Barrier(8)
    traced = jax.jit(lambda x: f(x) + 1)

    def work(i):
        barrier.wait()
        return traced(jnp.asarray(X))

    traced.trace(X)
    in_threads(work)
    compiled = [r for r in caplog.records if r.getMessage().startswith("Compiled jit(<lambda>)")]
    assert 1 <= len(compiled) <= 8


def test_contexts_of_threads_are_apart():
    barrier = threading.Barrier(4)

    def work(i):
        with jax.enable_x64(bool(i % 2)):
            barrier.wait()
            dtype = jax.jit(lambda x: x + 1)(1.0).dtype
            jaxpr = jax.make_jaxpr(lambda x: (barrier.wait(), x + i)[1])(1.0)
            barrier.wait()
            return dtype, len(jaxpr.eqns)

    for i, (dtype, equations) in enumerate(in_threads(work, 4)):
        assert dtype == (np.float64 if i % 2 else np.float32)
        assert equations == 1


# ---- size


def test_long_programs():
    def chain(x):
        for _ in range(500):
            x = x * 1.001 + 0.5
        return x

    expected = np.float32(1.0)
    for _ in range(500):
        expected = expected * np.float32(1.001) + np.float32(0.5)
    close(jax.jit(chain)(jnp.float32(1.0)), expected, 1e-3)


def test_a_function_jitted_again_and_again_is_traced_once():
    traced = []

    def double(x, times=2):
        traced.append(x)
        return times * x

    for _ in range(3):
        assert jax.jit(double)(1.0) == 2.0
    assert len(traced) == 1
    assert jax.jit(double, static_argnames="times")(1.0, times=3) == 3.0  # other options: another program
    assert len(traced) == 2
    jax.jit(double).clear_cache()
    jax.jit(double)(1.0)
    assert len(traced) == 3


def test_layers_checkpointed_one_by_one_are_traced_once():
    traced = []

    def layer(w, x):
        traced.append(x)
        return jnp.tanh(w @ x)

    def network(ws, x):
        for w in ws:
            x = jax.checkpoint(layer)(w, x)
        return x.sum()

    jax.jit(jax.grad(network))([jnp.eye(2)] * 5, jnp.ones(2))
    assert len(traced) == 1


def test_a_jitted_function_that_nobody_holds_is_freed():
    import gc
    import weakref

    def f(x):
        return x + 1

    jax.jit(f)(1.0)
    seen = weakref.ref(f)
    del f
    gc.collect()
    assert seen() is None


# ---- the ways of a call that was seen before


class Scaler:
    """A class as users write them, with a method that is jitted for each instance."""

    def __init__(self, factor):
        self.factor = factor

    @functools.partial(jax.jit, static_argnums=0)
    def __call__(self, x):
        return x * self.factor


SEEN = {
    "no arguments": (lambda: jnp.arange(3.0) * 2, {}, (), {}),
    "NumPy": (lambda x: x * 2, {}, (X,), {}),
    "NumPy, 64 bits": (lambda x: x * 2, {}, (X.astype(np.float64),), {}),
    "NumPy, strided": (lambda x: x * 2, {}, (np.arange(6, dtype=np.float32)[::2],), {}),
    "NumPy, foreign": (lambda x: x * 2, {}, (X.astype(">f4"),), {}),
    "number": (lambda x, y: x * y, {}, (X, 3), {}),
    "static": (lambda x, n: x * n, {"static_argnums": 1}, (X, 3), {}),
    "static by name": (lambda x, n=1: x * n, {"static_argnames": "n"}, (X,), {"n": 4}),
    "static, negative": (lambda x, n: x * n, {"static_argnums": -1}, (X, 3), {}),
    "keyword": (lambda x, *, y: x - y, {}, (X,), {"y": 2.0}),
    "tuple beside keywords": (lambda x, **y: x[0] + y["y"], {}, ((X,),), {"y": X}),
    "tuple and dict": (lambda x, y: x[0] + y["y"], {}, ((X,), {"y": X}), {}),
    "key": (lambda key, x: x + jax.random.uniform(key), {}, (jax.random.key(0), X), {}),
    "argument as result": (lambda x, y: (x, x, y + 1), {}, (X, 1.0), {}),
    "constant as result": (lambda x: (x + 1, 7), {}, (X,), {}),
    "unused": (lambda x, y: x + 1, {}, (X, jnp.ones(2)), {}),
    "None": (lambda x, y: x if y is None else x + y, {}, (X, None), {}),
}


@pytest.mark.parametrize(("f", "options", "args", "kwargs"), SEEN.values(), ids=SEEN)
def test_calls_that_were_seen_before(f, options, args, kwargs):
    jitted = jax.jit(f, **options)
    first = jitted(*args, **kwargs)
    again = jitted(*args, **kwargs)
    assert jitted._cache_size() == 1
    expected = f(*jax.tree.map(jnp.asarray, args), **jax.tree.map(jnp.asarray, kwargs))
    for one, two, value in zip(*map(jax.tree.leaves, (first, again, expected)), strict=True):
        close(one, value)
        assert type(one) is type(two) is type(jnp.ones(1)) and one.aval == two.aval == jnp.asarray(value).aval
        np.testing.assert_array_equal(one, two)


def test_static_arguments_of_equal_value_and_other_type_compile_anew():
    kinds = jax.jit(lambda x, n: x * n, static_argnums=1)
    for n, dtype in ((2, np.int32), (2.0, np.float32), (True, np.int32), (2, np.int32), (2.0, np.float32)):
        for _ in range(2):
            assert kinds(jnp.int32(3), n).dtype == dtype
    assert kinds._cache_size() == 3
    with pytest.raises(ValueError, match="Non-hashable"):
        kinds(1, [2])


def test_methods_of_equal_functions_and_other_instances():
    double, triple = Scaler(2), Scaler(3)
    for _ in range(2):
        close(double(X), 2 * X)
        close(triple(X), 3 * X)


def test_results_never_share_memory_with_numpy_arguments():
    f = jax.jit(lambda x, y: (x, y + 1))
    for _ in range(3):
        x = X.copy()
        same, _ = f(x, x)
        x[:] = 99
        close(same, X)


def test_numpy_arguments_changed_between_calls():
    f = jax.jit(lambda x: x + 1)
    x = X.copy()
    for _ in range(3):
        close(f(x), x + 1)
        x += 1


def test_flags_in_force_count_for_calls_that_were_seen():
    f = jax.jit(lambda x: x + 1)
    for _ in range(2):
        assert f(1.0).dtype == np.float32
        with jax.enable_x64(True):
            assert f(1.0).dtype == np.float64
        with jax.debug_nans(True), pytest.raises(FloatingPointError):
            f(np.float32(np.nan))
        with pytest.raises(OverflowError, match="int32"):
            f(2**40)


def test_keys_are_watched_in_calls_that_were_seen():
    draw = jax.jit(lambda key: jax.random.normal(key))
    key = jax.random.key(3)
    draw(key), draw(key)
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        draw(key), draw(key)


def test_threads_that_trace_at_once_keep_their_programs():
    """Each may have compiled a program of its own, of which the last one is kept: the others still run."""
    for _ in range(10):
        test_threads_share_jitted_functions()


# ---- compiler options


def test_options_of_xla_are_accepted():
    options = {
        "xla_embed_ir_in_executable": "true",
        "exec_time_optimization_effort": 0.5,
        "xla_dump_max_hlo_modules": 3,
    }
    assert jax.jit(lambda x: x + 1, compiler_options=options)(1.0) == 2
    assert jax.jit(lambda x: x + 1).lower(1.0).compile(options)(1.0) == 2


@pytest.mark.parametrize(
    "option, message",
    [
        ({"xla_nope": True}, "No such compile option: 'xla_nope'"),
        ({"xla_embed_ir_in_executable": "maybe"}, "'maybe' is not a valid bool value"),
        ({"xla_dump_max_hlo_modules": "x"}, "'x' is not a valid int value"),
    ],
)
def test_options_that_xla_refuses(option, message):
    with pytest.raises(RuntimeError, match=message):
        jax.jit(lambda x: x, compiler_options=option)


def test_the_signature_is_there_for_who_does_not_follow_what_is_wrapped():
    def f(x, y=1, *, z):
        return x

    assert str(inspect.signature(jax.jit(f), follow_wrapped=False)) == "(x, y=1, *, z)"
    assert not hasattr(jax.jit(max), "__signature__")  # which has none


def test_arrays_keep_the_order_that_programs_read():
    """An array that lies otherwise, as a transposed one does, is copied for its first call and not again."""
    f = jax.jit(lambda x: x + 1)
    turned = jnp.arange(12.0).reshape(3, 4).T
    assert not turned._value.flags.c_contiguous
    for _ in range(3):
        np.testing.assert_array_equal(f(turned), np.arange(12.0).reshape(3, 4).T + 1)
    assert turned._value.flags.c_contiguous
    np.testing.assert_array_equal(turned, np.arange(12.0).reshape(3, 4).T)
    spread = typed_array(np.broadcast_to(np.float32(2), (1000,)), jax.typeof(jnp.zeros(1000)))
    for _ in range(3):
        np.testing.assert_array_equal(f(spread), np.full(1000, 3.0))
    assert spread._value.strides == (0,)  # still a single number in memory


def test_results_of_operations_are_known_by_their_types(monkeypatch):
    """Nobody asked what they are before; the call goes the short way nevertheless."""
    once, tree, static = (
        jax.jit(lambda x: x * 2),
        jax.jit(lambda t: t["a"] + t["b"]),
        jax.jit(lambda x, n: x * n, static_argnums=1),
    )
    x = jnp.arange(4.0)
    calls = (
        lambda: once(x + 1),
        lambda: tree({"a": x + 1, "b": x[::-1]}),
        lambda: static(jnp.asarray(np.ones(4, "f")), 3),
    )
    wanted = [np.asarray(call()) for call in calls]
    monkeypatch.delattr(type(once), "_call")
    for call, want in zip(calls, wanted, strict=True):
        assert np.array_equal(call(), want)
