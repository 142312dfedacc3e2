"""The language itself: avals, arrays, jaxprs, checker, printer, tracing, configuration, errors."""

import copy
import gc
import importlib
import io
import os
import pickle
import re
import subprocess
import sys
import traceback
import types
from pathlib import Path

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core import config, flags, leaks
from catena.core.aval import ShapedArray
from catena.core.check import check_jaxpr
from catena.core.errors import JaxprTypeError
from catena.core.foreign_flags import FOREIGN
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, eval_jaxpr
from catena.core.primitive import Primitive, registry
from catena.core.source import Source
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.transform.linearize import linearize_flat

X = np.arange(3, dtype=np.float32)
F32 = ShapedArray((3,), np.float32)


def close(actual, expected, tol=1e-6):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=tol)


# ---- avals


def test_equal_avals_are_one_object():
    assert ShapedArray((2, 3), "float32") is ShapedArray([2, 3], np.dtype("float32"))
    assert ShapedArray((), np.float32, weak_type=True) is not ShapedArray((), np.float32)
    assert ShapedArray((np.int64(2),), np.float32) is ShapedArray((2,), np.float32)


def test_avals_print():
    assert repr(F32) == "ShapedArray(float32[3])"
    assert str(ShapedArray((), np.float32, True)) == "~float32[]"
    assert repr(ShapedArray((), np.float32, True)) == "ShapedArray(float32[], weak_type=True)"
    assert F32.str_short(short_dtypes=True) == "f32[3]"


def test_avals_copy_and_pickle_to_themselves():
    for again in (copy.copy(F32), copy.deepcopy(F32), pickle.loads(pickle.dumps(F32))):
        assert again is F32


def test_tangents_of_avals():
    assert F32.to_tangent_aval() is F32
    assert ShapedArray((3,), np.int32).to_tangent_aval().dtype == jax.float0


def test_typeof():
    assert jax.typeof(1.0) is ShapedArray((), np.float32, True)
    assert jax.typeof(X) is F32
    assert jax.typeof(True) is ShapedArray((), np.bool_)
    with pytest.raises(TypeError, match="'a'"):
        jax.typeof("a")


# ---- arrays


def test_arrays_cannot_be_constructed():
    with pytest.raises(TypeError, match="cannot be instantiated"):
        jax.Array()


def test_arrays_never_share_memory_that_can_be_written():
    source = X.copy()
    x = jnp.asarray(source)
    source[0] = 99
    assert x[0] == 0
    view = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    with pytest.raises(ValueError):
        view.flags.writeable = True
    with pytest.raises((ValueError, TypeError, BufferError)):
        memoryview(x)[0] = 1.0


def test_the_buffer_protocol():
    x = jnp.arange(6, dtype=np.float32).reshape(2, 3)
    view = memoryview(x)
    assert view.shape == (2, 3) and view.format == "f" and view.readonly and view.tolist() == x.tolist()
    assert np.asarray(view).__array_interface__["data"][0] == x.unsafe_buffer_pointer()
    assert bytes(x) == x.tobytes() and np.frombuffer(x, np.float32).tolist() == [0, 1, 2, 3, 4, 5]
    assert memoryview(x.T).strides == (4, 12)
    with pytest.raises(TypeError, match="read-write"):
        io.BytesIO(bytes(24)).readinto(x)
    with pytest.raises(TypeError):
        memoryview(jax.random.key(0))
    with pytest.raises((BufferError, ValueError, SystemError)):  # Python 3.11 does not let a class say why
        memoryview(jnp.ones(2, jnp.bfloat16))


def test_arrays_from_read_only_views_of_writable_memory():
    source = X.copy()
    view = source.view()
    view.flags.writeable = False
    x = jnp.asarray(view)
    source[0] = 99
    assert x[0] == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "complex64", "uint32", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_arrays_pickle_and_copy(dtype, shape):
    x = jnp.ones(shape, dtype)
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert type(y) is type(x) and y.shape == shape and y.dtype == x.dtype and y.weak_type == x.weak_type
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x))


def test_weak_types_pickle():
    assert pickle.loads(pickle.dumps(jnp.asarray(1.0))).weak_type


def test_views_pickle_without_their_base():
    x = jnp.zeros(100_000)[:2]
    assert len(pickle.dumps(x)) < 1000


def test_arrays_are_unhashable_and_weakly_referable():
    import weakref

    x = jnp.ones(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert weakref.ref(x)() is x


def test_deletion():
    x = jnp.ones(2)
    x.delete()
    x.delete()
    assert x.is_deleted() and x.shape == (2,) and x.ndim == 1 and x.size == 2 and x.nbytes == 8
    uses = (
        lambda: str(x),
        lambda: repr(x),
        lambda: np.sum(x),
        lambda: x.tolist(),
        lambda: x.item(),
        lambda: list(x),
        lambda: bool(x),
        lambda: pickle.dumps(x),
        lambda: copy.copy(x),
        lambda: x + 1,
        lambda: -x,
        lambda: x.reshape(2, 1),
        lambda: x.at[0].set(1),
        lambda: x.block_until_ready(),
        lambda: jnp.concatenate([x, x]),
    )
    for use in uses:
        with pytest.raises(RuntimeError, match="deleted"):
            use()


# ---- jaxprs


def test_parts_of_a_jaxpr():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * jnp.asarray(X))(X)
    assert isinstance(closed, ClosedJaxpr)
    assert closed.in_avals == [F32] and closed.out_avals == [F32]
    assert len(closed.consts) == 1 and closed.literals is closed.consts
    assert [e.primitive.name for e in closed.eqns] == ["sin", "mul"]
    assert closed.effects == frozenset()
    close(eval_jaxpr(closed.jaxpr, closed.consts, X)[0], np.sin(X) * X)
    with pytest.raises(TypeError, match="takes 1 arguments, 2 were given"):
        eval_jaxpr(closed.jaxpr, closed.consts, X, X)


def test_eval_jaxpr_under_transformations():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * x)(1.0)
    run = lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x)[0]
    close(jax.grad(run)(0.5), np.cos(0.5) * 0.5 + np.sin(0.5))
    close(jax.vmap(run)(X), np.sin(X) * X)
    close(jax.jit(run)(0.5), np.sin(0.5) * 0.5)


def test_sources():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x))(1.0)
    source = closed.eqns[0].source
    assert isinstance(source, Source)
    assert source.file_name == __file__ and source.function_name == "<lambda>"
    assert "jnp.sin(x)" in Path(__file__).read_text().splitlines()[source.line - 1]
    closed = jax.make_jaxpr(jax.named_scope("outer")(jax.named_scope("inner")(jnp.sin)))(1.0)
    assert closed.eqns[0].source.name_stack == ("outer", "inner")
    assert "outer/inner" in closed.pretty_print(name_stack=True)
    assert re.search(r"sin a .*test_core.py:\d+", closed.pretty_print(source_info=True))


def test_constants_are_kept_once_and_only_if_read():
    c = jnp.asarray(X)
    closed = jax.make_jaxpr(lambda x: (x + c) * c)(X)
    assert len(closed.consts) == 1
    closed = jax.make_jaxpr(lambda x: x + (c * 0 if False else 1.0))(X)
    assert closed.consts == []


def test_jaxprs_do_not_change():
    jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x))(X).jaxpr
    for part in ("constvars", "invars", "outvars", "eqns", "effects", "debug_info"):
        before = getattr(jaxpr, part)
        with pytest.raises(AttributeError, match="jaxprs do not change"):
            setattr(jaxpr, part, [])
        with pytest.raises(AttributeError, match="jaxprs do not change"):
            delattr(jaxpr, part)
        assert getattr(jaxpr, part) is before
    assert jaxpr.replace(outvars=jaxpr.invars).outvars == jaxpr.invars != jaxpr.outvars


def test_programs_of_linearizations_do_not_change():
    _, program = linearize_flat(lambda x: [jnp.sin(x), jnp.cos(x)], [X])
    with pytest.raises(AttributeError):
        program.outputs = []
    assert program.first(2) is program and program.first(1).outputs == program.outputs[:1]


def test_nested_jaxprs_pickle():
    def f(x):
        y = jax.jit(jnp.sin)(x)
        z = lax.cond(jnp.sum(y) > 0, lambda v: v * 2, lambda v: v - 1, y)
        return lax.scan(lambda c, a: (c + a, c), 0.0, z)

    closed = jax.make_jaxpr(f)(X)
    again = pickle.loads(pickle.dumps(closed))
    assert str(again) == str(closed)
    for a, b in zip(eval_jaxpr(again.jaxpr, again.consts, X), eval_jaxpr(closed.jaxpr, closed.consts, X)):
        close(a, b)
    assert again.eqns[0].source.line == closed.eqns[0].source.line
    check_jaxpr(again)
    assert str(pickle.loads(pickle.dumps(closed.jaxpr))) == str(closed)
    assert str(copy.deepcopy(closed)) == str(closed)


def test_other_things_pickle():
    for x in (
        jax.ShapeDtypeStruct((2,), jnp.bfloat16),
        jax.tree.structure({"a": [1, None]}),
        jax.devices()[0],
    ):
        assert pickle.loads(pickle.dumps(x)) == x
        assert copy.deepcopy(x) == x


# ---- the checker


def eqn_of(f, *args):
    return jax.make_jaxpr(f)(*args).eqns[0]


def test_the_checker_accepts_what_is_traced():
    for f in (
        jnp.sin,
        lambda x: jax.jit(jnp.cos)(x) + 1,
        jax.grad(lambda x: jnp.sum(x**2)),
        jax.vmap(jnp.tanh),
    ):
        check_jaxpr(jax.make_jaxpr(f)(X))


@pytest.mark.parametrize(
    "broken, message",
    [
        (lambda a, b, sin: Jaxpr([], [a], [b], []), "read in the results before it is bound"),
        (lambda a, b, sin: Jaxpr([], [a, a], [a], []), "bound twice"),
        (lambda a, b, sin: Jaxpr([], [a], [b], [sin([b], [b])]), "read in .*sin.* before it is bound"),
        (lambda a, b, sin: Jaxpr([], [a], [a], [sin([a], [a])]), "bound twice"),
        (
            lambda a, b, sin: Jaxpr([], [a], [b], [sin([a], [b])._replace(outvars=[Var(ShapedArray((), np.float32))])]),
            "annotated float32",
        ),
        (
            lambda a, b, sin: Jaxpr([], [a], [a], [sin([a], [b, Var(F32)])]),
            "2 results where the primitive gives 1",
        ),
        (lambda a, b, sin: Jaxpr([], [], [Literal(jnp.asarray(X), F32)], []), "literal must be a scalar"),
    ],
)
def test_the_checker_refuses(broken, message):
    primitive = eqn_of(jnp.sin, X)
    sin = lambda ins, outs: primitive._replace(invars=ins, outvars=outs)
    with pytest.raises(JaxprTypeError, match=message):
        check_jaxpr(broken(Var(F32), Var(F32), sin))


def test_the_checker_looks_inside_calls():
    call = eqn_of(jax.jit(jnp.sin), X)
    wrong = Var(ShapedArray((4,), np.float32))
    with pytest.raises(JaxprTypeError, match="the called jaxpr takes"):
        check_jaxpr(Jaxpr([], [wrong], [], [call._replace(invars=[wrong], outvars=[Var(F32)])]))


def test_enable_checks():
    with jax.enable_checks(True):
        f = lambda x: jnp.sum(lax.scan(lambda c, a: (c * a, jnp.sin(c)), 1.0, x)[1])
        for g in (
            f,
            jax.grad(f),
            jax.jit(jax.grad(f)),
            jax.hessian(jax.checkpoint(f)),
            jax.linearize(f, X)[1],
        ):
            jax.make_jaxpr(g)(X)
        jax.make_jaxpr(jax.vmap(jax.jit(jax.grad(f))))(np.stack([X, X]))


def test_enable_checks_finds_what_is_wrong():
    bad = Primitive("wrong_type", abstract=lambda a, **_: abstract.pop(), evaluate=lambda x, **_: x)
    abstract = [ShapedArray((9,), np.float32), F32]
    try:
        with jax.enable_checks(True), pytest.raises(JaxprTypeError, match="annotated"):
            jax.make_jaxpr(lambda x: bad.bind(x, unhashable=[]))(X)
    finally:
        del registry["wrong_type"]


# ---- the printer


GOLDEN = [
    (lambda x: x, "{ lambda ; a:f32[3]. let  in (a,) }"),
    (lambda x: (), "{ lambda ; a:f32[3]. let  in () }"),
    (lambda x: (2.0, 3), "{ lambda ; a:f32[3]. let  in (2.0:f32[], 3:i32[]) }"),
    (
        lambda x: jnp.sin(x) * 2,
        "{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }",
    ),
    (lambda x: x + X, "{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }"),
    (
        lambda x: jax.jit(lambda y: y * 2)(x) + x,
        """{ lambda ; a:f32[3]. let
    b:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (b,) }
    ] a
    c:f32[3] = add b a
  in (c,) }""",
    ),
    (
        lambda x: (jnp.cos(jnp.sin(x)), jnp.exp(x))[0],
        """{ lambda ; a:f32[3]. let
    b:f32[3] = sin a
    c:f32[3] = cos b
    _:f32[3] = exp a
  in (c,) }""",
    ),
]


GOLDEN.append(
    (
        lambda x: jax.jit(lambda x: (jnp.sin(x), x, 2.0, x * 2, x))(x)[3],
        """{ lambda ; a:f32[3]. let
    _:f32[3] _:f32[3] _:f32[] b:f32[3] _:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3]. let
          _:f32[3] = sin a
          b:f32[3] = mul a 2.0:f32[]
        in (_, a, 2.0:f32[], b, a) }
    ] a
  in (b,) }""",
    )
)


@pytest.mark.parametrize("fun, text", GOLDEN)
def test_golden_texts(fun, text):
    assert str(jax.make_jaxpr(fun)(X)) == text


def test_variable_names_go_on_after_z():
    def f(x):
        for _ in range(30):
            x = jnp.sin(x)
        return x

    text = str(jax.make_jaxpr(f)(1.0))
    assert "z:f32[] = sin y" in text and "ba:f32[] = sin z" in text and "be:f32[] = sin bd" in text


def test_long_and_repeated_inner_jaxprs_are_hoisted():
    @jax.jit
    def inner(x):
        return jnp.sin(x)

    text = str(jax.make_jaxpr(lambda x: inner(inner(x)))(1.0))
    assert text.startswith("let inner = { lambda ; a:f32[]. let b:f32[] = sin a in (b,) } in\n")
    assert text.count("jaxpr=inner") == 2


def test_equations_and_variables_print_alone():
    eqn = eqn_of(jnp.sin, X)
    assert repr(eqn) == "a:f32[3] = sin b"
    assert re.fullmatch(r"Var\(id=\d+\):float32\[3\]", repr(eqn.invars[0]))
    assert repr(eqn_of(lambda x: x * 2.0, 1.0).invars[1]) == "Literal(2.0)"


# ---- tracing


def test_static_argnums_and_return_shape():
    closed, shape = jax.make_jaxpr(lambda n, x: x * n, static_argnums=0, return_shape=True)(3, X)
    assert len(closed.jaxpr.invars) == 1 and shape == jax.ShapeDtypeStruct((3,), jnp.float32)


def test_eval_shape_computes_nothing():
    big = jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)
    assert jax.eval_shape(lambda x: {"y": x @ x}, big) == {"y": big}


def test_ensure_compile_time_eval():
    @jax.jit
    def f(x):
        with jax.ensure_compile_time_eval():
            n = int(jnp.sum(jnp.ones(3)))
            assert type(jnp.ones(2)) is type(jnp.asarray(X))
        return x * n

    close(f(2.0), 6.0)


def test_ensure_compile_time_eval_traces_what_is_traced():
    def f(x):
        with jax.ensure_compile_time_eval():
            y = jnp.sin(x) + jax.nn.relu(x)  # custom derivatives are handed on, too
            return y * float(jnp.sum(jnp.ones(3)))

    g = lambda x: 3 * (jnp.sin(x) + x)
    for run in (lambda f: f, jax.jit, jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.vmap(jax.grad(f))):
        x = jnp.ones(2) if "vmap" in run.__code__.co_names else 1.0
        close(run(f)(x), run(g)(x))

    @jax.jit
    def nested(x):
        with jax.ensure_compile_time_eval():
            slope = float(jax.grad(lambda a: a * a)(3.0))
            return jax.vmap(lambda a: a + x)(jnp.ones(2)) * slope

    close(nested(2.0), [18.0, 18.0])


def test_ensure_compile_time_eval_reaches_into_functions_that_are_traced_inside_of_it():
    def double(x):
        return x * 2 if jnp.ones(()) > 0 else x

    def inside(run):
        def f(x):
            with jax.ensure_compile_time_eval():
                return run(x)

        return f

    loop = lambda x: jax.lax.fori_loop(0, 2, lambda i, y: double(y), x)
    cases = [(jax.jit(double), 2.0), (jax.jit(jax.jit(double)), 2.0), (loop, 4.0), (jax.checkpoint(double), 2.0)]
    for run, slope in cases:
        f = inside(run)
        for value in (f(3.0), jax.jit(f)(3.0), jax.vmap(f)(jnp.full(2, 3.0)), jax.jvp(f, (0.0,), (3.0,))[1]):
            close(value, np.full(np.shape(value), slope * 3.0))
        close(jax.grad(f)(3.0), slope)
    for run, _ in cases:  # outside of it as ever, whatever was traced inside before
        with pytest.raises(jax.errors.TracerBoolConversionError):
            run(3.0)


def test_unknown_values_are_errors_that_name_the_argument():
    def branches(first, second):
        return 1.0 if second * 2 > 0 else first

    with pytest.raises(jax.errors.TracerBoolConversionError) as info:
        jax.jit(branches)(1.0, 2.0)
    message = str(info.value)
    assert "branches at" in message and "for jit" in message
    assert "the argument second" in message and "first" not in message
    assert "docs/errors.md#tracerboolconversionerror" in message


@pytest.mark.parametrize(
    "use, error",
    [
        (bool, jax.errors.TracerBoolConversionError),
        (int, jax.errors.ConcretizationTypeError),
        (float, jax.errors.ConcretizationTypeError),
        (complex, jax.errors.ConcretizationTypeError),
        (range, jax.errors.TracerIntegerConversionError),
        (lambda x: [1, 2][x], jax.errors.TracerIntegerConversionError),
        (np.asarray, jax.errors.TracerArrayConversionError),
        (np.sin, jax.errors.TracerArrayConversionError),
        (lambda x: x.item(), jax.errors.ConcretizationTypeError),
        (lambda x: x.tolist(), jax.errors.ConcretizationTypeError),
    ],
)
def test_conversions_of_traced_values(use, error):
    for transform, x in (
        (jax.jit, 1),
        (jax.vmap, np.arange(3)),
        (jax.make_jaxpr, 1),
        (lambda f: jax.jit(jax.grad(f, allow_int=True)), 1),
    ):
        with pytest.raises(error):
            transform(lambda x: (use(x), x)[1])(x)


def test_errors_are_found_where_users_look():
    public = [x for x in vars(jax.errors).values() if isinstance(x, type)]
    assert len(public) >= 14
    for error in public:
        assert error.__module__ == "catena.errors"
        assert pickle.loads(pickle.dumps(error)) is error


def test_every_section_that_errors_point_to_exists():
    text = (Path(__file__).parents[2] / "docs" / "errors.md").read_text().lower()
    sources = "\n".join(p.read_text() for p in (Path(jax.__file__).parent).rglob("*.py"))
    named = {c.lower() for c in re.findall(r"see\((?:errors\.)?(\w+)\)", sources)} - {"error_class"}
    assert named
    for name in named:
        assert f"## {name}" in text, name


# ---- size: linear time, no recursion


def chain(n):
    def f(x):
        for _ in range(n):
            x = jnp.sin(x)
        return x

    return f


def calls(run) -> int:
    """How many functions, Python's and C's, a piece of work calls: a measure of time that no busy machine
    changes.
    """
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_ten_thousand_equations():
    f = chain(10_000)
    closed = jax.make_jaxpr(f)(1.0)
    assert len(closed.eqns) == 10_000
    assert str(closed).count("sin") == 10_000
    check_jaxpr(closed)
    assert np.isfinite(jax.grad(f)(1.0))
    assert np.isfinite(jax.jvp(f, (1.0,), (1.0,))[1])
    assert jax.vmap(f)(X).shape == (3,)
    assert len(jax.make_jaxpr(jax.grad(f))(1.0).eqns) >= 20_000
    assert len(pickle.loads(pickle.dumps(closed)).eqns) == 10_000


def test_depth_of_nesting():
    f = jnp.sin
    for _ in range(40):
        f = jax.jit(lambda x, g=f: g(x) * 1.0)
    close(f(0.5), np.sin(0.5))
    close(jax.grad(f)(0.5), np.cos(0.5))


def test_time_grows_linearly():
    """Ten times the equations take ten times the work."""
    for work in (
        lambda n: jax.make_jaxpr(chain(n))(1.0),
        lambda n: jax.grad(chain(n))(1.0),
        lambda n: str(jax.make_jaxpr(chain(n))(1.0)),
    ):
        work(100)
        assert calls(lambda: work(2000)) < 11 * calls(lambda: work(200))


# ---- memory


def differentiates_an_error():
    with pytest.raises(TypeError):
        jax.grad(lambda x: lax.add(jnp.sin(x), jnp.ones(7)))(X)


@pytest.mark.parametrize(
    "run",
    [
        lambda f: jax.grad(f)(X),
        lambda f: jax.vjp(f, X)[1](1.0),
        lambda f: jax.vjp(f, X),
        lambda f: jax.linearize(f, X)[1](X),
        lambda f: jax.jvp(f, (X,), (X,)),
        lambda f: jax.vmap(jax.grad(f))(X[None]),
        lambda f: jax.hessian(f)(X),
        lambda f: jax.grad(jax.jit(f))(X),
        lambda f: jax.grad(jax.checkpoint(f))(X),
        lambda f: jax.grad(lambda x: lax.scan(lambda c, a: (c * a, c), 1.0, x)[0])(X),
        lambda f: differentiates_an_error(),
    ],
)
def test_intermediate_values_are_freed_at_once(run, young):
    """Without waiting for the garbage collector: a forward pass may hold gigabytes."""
    f = lambda x: jnp.sum(jnp.sin(x) * jnp.cos(x) + jnp.exp(x))
    run(f)
    gc.collect()
    gc.disable()
    try:
        before = len(jax.live_arrays())
        run(f)
        assert len(jax.live_arrays()) == before
    finally:
        gc.enable()


# ---- leaks

leaked = []


def test_checking_leaks_names_the_variable_of_a_module(unfrozen):
    assert "the variable leaked of" in run_and_leak(lambda keep: jax.jit(keep)(X), leaked)


@pytest.mark.parametrize(
    "run",
    [
        lambda keep: jax.jit(keep)(X),
        lambda keep: jax.grad(lambda x: jnp.sum(keep(x)))(X),
        lambda keep: jax.vmap(keep)(X),
        lambda keep: jax.jvp(keep, (X,), (X,)),
        lambda keep: jax.make_jaxpr(keep)(X),
        lambda keep: jax.checkpoint(keep)(X),
    ],
)
def test_checking_leaks(run, young):
    assert "of a list" in run_and_leak(run, [])


def run_and_leak(run, leaked) -> str:
    """The message about a function that keeps its argument."""

    def keep(x):
        leaked.append(x * 2)
        return x

    try:
        run(keep)
        with jax.checking_leaks(), pytest.raises(Exception, match="Leaked trace of") as info:
            run(keep)
        message = str(info.value)
        assert "Tracer(" in message and "It was made " in message and "not available in Python" not in message
        return message
    finally:
        leaked.clear()


def kept_tangent(keep):
    """The gradient of a function whose rule keeps the tangent: an unknown of the tape."""
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], keep(tangents[0])))
    return jax.grad(lambda x: jnp.sum(f(x)))(X)


def kept_cotangent(keep):
    """The transpose of a backward rule that keeps the cotangent."""
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (keep(ct),))
    return jax.grad(lambda t: jnp.sum(jax.vjp(f, X)[1](t)[0]))(X)


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (lambda keep: jax.jvp(keep, (X,), (X,)), "differentiation"),
        (lambda keep: jax.linearize(keep, X), "differentiation"),
        (lambda keep: jax.vjp(keep, X), "differentiation"),
        (lambda keep: jax.jacrev(keep)(X), "differentiation"),
        (kept_tangent, "linearization"),
        (kept_cotangent, "differentiation"),
        (lambda keep: jax.linear_transpose(keep, X), "linearization"),
        (lambda keep: jax.vmap(keep)(X), "vmap"),
        (lambda keep: jax.eval_shape(keep, X), "eval_shape"),
        (lambda keep: lax.scan(lambda c, x: (keep(c), x), 0.0, X), "scan"),
    ],
)
def test_every_transformation_checks_leaks(run, name, young):
    """Each names itself; it may keep what it makes, as a tape does its unknowns, and nobody else may."""
    leaked = []

    def keep(x):
        leaked.append(x * 2)
        return x

    with jax.checking_leaks():
        run(lambda x: 2 * x)
        try:
            with pytest.raises(Exception, match=f"Leaked trace of {name}"):
                run(keep)
        finally:
            leaked.clear()
        run(lambda x: 3 * x)


def test_leaks_are_looked_for_in_one_walk_through_the_heap(monkeypatch):
    """A function that keeps many tracers alive, innocently, took seconds for each hundred of them."""
    walks, walk = [], leaks.holders_of
    monkeypatch.setattr(leaks, "holders_of", lambda objects, kept: (walks.append(len(objects)), walk(objects, kept))[1])

    def f(x):
        for _ in range(50):
            x = x * 2
        return x

    with jax.checking_leaks():
        jax.linearize(f, 1.0)
        jax.jit(jax.grad(f))(1.0)
    assert max(walks) >= 50 > 5 > len(walks), walks


def test_a_trace_ends_where_its_function_raises(young):
    kept = []

    def fail(x):
        kept.append(x)
        raise ZeroDivisionError

    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: fail(tangents[0]))
    for run in [jax.jit(fail), jax.vmap(fail), jax.grad(fail), jax.grad(f), lambda x: jax.linear_transpose(fail, x)]:
        with pytest.raises(ZeroDivisionError), jax.checking_leaks():
            run(X)
    assert len(kept) == 5
    for x in kept:
        with pytest.raises(jax.errors.UnexpectedTracerError):
            jax.vmap(lambda y, x=x: y + x)(X)


def test_checking_leaks_finds_none_where_there_is_none(young):
    f = lambda x: (jnp.sum(lax.scan(lambda c, a: (c + a, c), 0.0, x)[1]), {"aux": x})
    with jax.checking_leaks():
        jax.jit(jax.grad(f, has_aux=True))(X)
        jax.vmap(jax.grad(lambda x: f(x)[0]))(np.stack([X, X]))
        jax.hessian(lambda x: jax.checkpoint(f)(x)[0])(X)
        jax.jit(lambda x: {"y": [x]})(X)


# ---- configuration


def test_update_and_read():
    jax.config.update("jax_enable_x64", True)
    try:
        assert jax.config.jax_enable_x64 and jax.config.read("jax_enable_x64")
        assert jnp.zeros(1).dtype == jnp.float64
    finally:
        jax.config.update("jax_enable_x64", False)
    assert jnp.zeros(1).dtype == jnp.float32


def test_attributes_set_too():
    jax.config.jax_enable_x64 = True
    assert jax.config.jax_enable_x64
    jax.config.jax_enable_x64 = False


def test_contexts_nest_and_restore():
    with jax.enable_x64(True):
        with jax.enable_x64(False):
            assert not jax.config.jax_enable_x64
        assert jax.config.jax_enable_x64
        with pytest.raises(KeyError), jax.enable_x64(False):
            raise KeyError
        assert jax.config.jax_enable_x64
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: jax.config.update("jax_foo", 1), AttributeError, "Unrecognized config option: jax_foo"),
        (lambda: jax.config.jax_foo, AttributeError, "'Config' object has no attribute 'jax_foo'"),
        (
            lambda: jax.config.update("jax_numpy_rank_promotion", "bad"),
            ValueError,
            r"must be in \['allow', 'warn', 'raise'\], got bad",
        ),
        (
            lambda: jax.config.update("jax_enable_x64", "maybe"),
            ValueError,
            "jax_enable_x64 is a bool, got 'maybe'",
        ),
        (lambda: jax.config.update("jax_num_cpu_devices", "x"), ValueError, "type int, got x"),
        (lambda: jax.config.update("jax_random_seed_offset", 1.5), ValueError, "type int, got 1.5"),
        (lambda: jax.config.update("jax_serialization_version", "a"), ValueError, "type int, got a"),
        (lambda: bool(jax.enable_x64), TypeError, "its value is enable_x64.value"),
        (lambda: jax.config.update("jax_default_device", 3), ValueError, "device"),
        (lambda: jax.config.update("jax_default_device", "cpu:0"), ValueError, "one of cpu, gpu, tpu.*got 'cpu:0'"),
        (lambda: jax.config.update("jax_dump_ir_to", 3), ValueError, "type str, got 3"),
    ],
)
def test_bad_flags(call, error, message):
    with pytest.raises(error, match=message):
        call()


def in_subprocess(code: str, **environment) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    return done.stdout.strip() + done.stderr.strip()


def test_environment_variables():
    code = """import catena as jax
c = jax.config
print(c.jax_enable_x64, c.jax_debug_nans, c.jax_debug_infs, c.jax_disable_jit)
jax.jit(lambda x: x + 1)(1)
"""
    variables = {
        "JAX_ENABLE_X64": "1",
        "CATENA_DEBUG_NANS": "true",
        "CATENA_DEBUG_INFS": "0",
        "JAX_DEBUG_INFS": "1",
    }
    text = in_subprocess(code, **variables, JAX_LOGGING_LEVEL="DEBUG")
    assert text.startswith("True True False False")
    assert "DEBUG:catena: Compiling" in text
    message = in_subprocess(code, JAX_ENABLE_X64="maybe")
    assert "the environment variable JAX_ENABLE_X64='maybe' is not valid" in message


def test_command_line_flags():
    code = "import sys; sys.argv = ['x', '--jax_enable_x64=true', '--other']; import catena as jax; "
    assert in_subprocess(code + "jax.config.parse_flags_with_absl(); print(jax.config.jax_enable_x64)") == "True"


PENDING = {"jax_softmax_custom_jvp": "nn"}  # flags that nothing reads yet, and who will


def test_every_flag_is_read_somewhere():
    root = Path(jax.__file__).parent
    text = "\n".join(p.read_text() for p in root.rglob("*.py") if p.name not in ("config.py", "flags.py"))
    own = (root / "core" / "config.py").read_text()
    unread = []
    for name, flag in flags.FLAGS.items():
        if name in config.AFTER_UPDATE or name in FOREIGN:
            continue
        inside = own.count(f'"{flag.attribute}"') > 0
        if not inside and f'"{name}"' not in text and not re.search(rf"context\.{flag.attribute}\b", text):
            unread.append(name)
    assert sorted(unread) == sorted(n for n in PENDING if n in unread), "flags that do nothing"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jax_persistent_cache_min_compile_time_secs", 0),
        ("jax_persistent_cache_min_entry_size_bytes", -1),
        ("jax_use_shardy_partitioner", False),
        ("jax_cpu_enable_async_dispatch", False),
        ("jax_transfer_guard", "allow"),
        ("jax_optimization_level", "O1"),
    ],
)
def test_options_that_tune_other_machinery_are_kept(name, value):
    before = jax.config.read(name)
    try:
        jax.config.update(name, value)
        assert getattr(jax.config, name) == value
    finally:
        jax.config.update(name, before)
    with pytest.raises(ValueError, match="must be"):
        jax.config.update("jax_optimization_level", "fast")


def test_the_older_name_of_the_platform():
    jax.config.update("jax_platform_name", "tpu")
    try:
        with pytest.raises(RuntimeError, match="Unable to initialize backend 'tpu'"):
            jax.devices()
        jax.config.update("jax_platform_name", "cpu")
        assert jax.devices()
    finally:
        jax.config.update("jax_platform_name", "")


NAMES = (Path(__file__).parents[1] / "data" / "jax_config_names.txt").read_text().split()


def test_the_names_are_those_of_jax():
    assert len(NAMES) == 133
    own = {"jax_check_bounds", "jax_checks", "jax_executor", "jax_flush_subnormals", "jax_ordered_sums"}
    assert set(jax.config.values) - set(NAMES) == own | {"jax_slow_compile_secs"}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_jax_is_read_and_set(name):
    value = getattr(jax.config, name)
    assert value == jax.config.read(name) == jax.config.values[name]
    jax.config.update(name, value)
    assert jax.config.read(name) == value


@pytest.mark.parametrize("name", [n for n, f in flags.FLAGS.items() if f.kind is bool and n in FOREIGN])
def test_switches_of_other_machinery_take_either_value(name):
    before = jax.config.read(name)
    with config.FlagContext(name)(not before):
        assert jax.config.read(name) is not before
    assert jax.config.read(name) is before


def test_the_value_of_a_context_manager():
    flag = jax.numpy_rank_promotion
    unset = flag.get_local()
    with flag("warn"):
        assert (flag.get_global(), flag.get_local(), flag.value) == ("allow", "warn", "warn")
    assert flag.get_local() is unset and flag.value == "allow"


def test_x64_enabled():
    assert not jax.config.x64_enabled
    with jax.enable_x64(True):
        assert jax.config.x64_enabled


def test_flags_complete_with_the_tabulator():
    assert "jax_enable_x64" in dir(jax.config)


def test_dumping_the_stages(tmp_path):
    jax.config.update("jax_dump_ir_to", str(tmp_path))
    try:
        jax.jit(lambda x: jnp.sin(x) * 3.25)(X)
    finally:
        jax.config.update("jax_dump_ir_to", "")
    stages = {".graph", ".bound", ".replace", ".rotate", ".inset", ".trim", ".turn", ".block", ".fuse", ".stitch"}
    stages |= {".small", ".epilogues", ".place", ".nests", ".ll", ".opt.ll", ".s"}
    assert {"".join(p.suffixes) for p in tmp_path.iterdir()} == stages


def test_the_cache_on_disk(tmp_path, monkeypatch):
    monkeypatch.delenv("CATENA_CACHE_DIR")
    x = np.arange(5, dtype=np.float32)
    try:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path / "cache"))
        jax.config.update("jax_enable_compilation_cache", False)
        jax.jit(lambda x: jnp.sin(x) * 1.8125)(x)
        assert not (tmp_path / "cache").exists()
        jax.config.update("jax_enable_compilation_cache", True)
        jax.jit(lambda x: jnp.sin(x) * 1.9375)(x)
        assert list((tmp_path / "cache").iterdir())
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
        jax.config.update("jax_compilation_cache_dir", None)


# ---- tracebacks


def failing(x):
    return lax.add(x, np.ones(7, np.float32))  # the user's line


@pytest.mark.parametrize(
    "run",
    [
        lambda: jax.jit(failing)(X),
        lambda: jax.grad(lambda x: jnp.sum(failing(x)))(X),
        lambda: jax.vmap(jax.jit(failing))(X[None]),
        lambda: jax.make_jaxpr(failing)(X),
        lambda: jax.vjp(failing, X),
        lambda: jax.jvp(failing, (X,), (X,)),
        lambda: jax.linearize(failing, X),
        lambda: jax.checkpoint(failing)(X),
        lambda: jax.eval_shape(failing, X),
        lambda: jax.jit(failing).lower(X),
        lambda: jax.jacfwd(failing)(X),
        lambda: jax.jit(jax.grad(jax.checkpoint(jax.jit(lambda x: jnp.sum(failing(x))))))(X),
    ],
)
def test_errors_inside_transformations_end_at_the_users_line(run):
    with pytest.raises(TypeError, match="incompatible shapes") as info:
        run()
    frames = traceback.extract_tb(info.value.__traceback__)
    assert frames[-1].filename == __file__ and frames[-1].name == "failing"
    package = os.path.dirname(jax.__file__)
    assert sum(f.filename.startswith(package) for f in frames) <= 3
    assert info.value.__context__ is None


def test_tracebacks_can_be_whole():
    jax.config.update("jax_traceback_filtering", "off")
    try:
        with pytest.raises(TypeError) as info:
            jax.jit(failing)(X)
    finally:
        jax.config.update("jax_traceback_filtering", "auto")
    frames = traceback.extract_tb(info.value.__traceback__)
    assert frames[-1].filename != __file__ and len(frames) > 8


def test_hidden_frames():
    jax.config.update("jax_traceback_filtering", "tracebackhide")
    try:
        with pytest.raises(TypeError) as info:
            jax.jit(failing)(X)
    finally:
        jax.config.update("jax_traceback_filtering", "auto")
    visible = [e for e in info.traceback if not e.ishidden(info)]
    assert visible[-1].name == "failing"


PROGRAM = """
import threading
import numpy as np
import catena as jax
from catena import lax
def user(x):
    return lax.add(x, np.ones(7, np.float32))
def run():
    {call}
{start}
"""


@pytest.mark.parametrize(
    "call, start",
    [
        ("user(np.ones(3, np.float32))", "t = threading.Thread(target=run); t.start(); t.join()"),
        ("jax.jit(jax.vmap(user))(np.ones((2, 3), np.float32))", "run()"),
    ],
)
def test_uncaught_errors(call, start, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(call=call, start=start))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    text = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env).stderr
    files = re.findall(r'File "(.*)", line (\d+), in (\w+)', text)
    assert files[-1] == (str(script), "7", "user"), text
    assert not any("catena" in f for f, _, _ in files), text
    assert "CATENA_TRACEBACK_FILTERING=off" in text
    text = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**env, "CATENA_TRACEBACK_FILTERING": "off"},
    ).stderr
    assert os.path.dirname(jax.__file__) in text


# ---- import


def test_heavy_modules_load_late():
    loaded = in_subprocess("import catena, sys; print(*sys.modules)").split()
    heavy = ("llvmlite", "scipy", "opt_einsum", "catena.compiler", "jax", "hypothesis", "matplotlib")
    assert [m for m in loaded if m.split(".")[0] in heavy or m.startswith("catena.compiler")] == []


def test_internals_are_reachable():
    jaxpr, consts = trace_to_jaxpr(lambda x: [x], [F32], DebugInfo("test", "a function"))
    assert consts == [] and len(jaxpr.invars) == 1


# ---- what tab completion shows


@pytest.mark.parametrize("name", ["", ".core", ".lax", ".nn", ".nn.initializers", ".numpy", ".numpy.fft", ".numpy.linalg",
                                  ".random", ".typing", ".flatten_util", ".tree_util"])  # fmt: skip
def test_completion_shows_no_private_modules(name):
    module = importlib.import_module(f"catena{name}")
    shown = dir(module)
    inner = {n for n in shown if isinstance(getattr(module, n), types.ModuleType) and not n.startswith("__")}
    public = {"ad", "ad_checkpoint", "distributed", "example_libraries", "memory", "api_util", "checkpoint_policies", "core", "custom_batching", "dlpack", "export", "ffi", "image", "monitoring", "ops",
              "profiler", "scipy", "test_util", "version", "custom_derivatives", "debug", "dtypes", "errors", "experimental",
              "fft", "flatten_util", "initializers", "interpreters", "lax", "linalg", "nn", "numpy", "random", "ref", "sharding", "stages", "tree",
              "tools", "tree_util", "typing"}  # fmt: skip
    assert inner <= public
    assert "__doc__" in shown or "__all__" in vars(module)
    assert not {"np", "Any", "Callable", "jnp"} & set(shown)


def test_one_process():
    assert jax.process_index() == 0 and jax.process_count() == 1 and jax.effects_barrier() is None
    with pytest.raises(RuntimeError, match="gpu"):
        jax.process_index("gpu")


def test_typeof_what_a_struct_describes():
    mesh = jax.sharding.AbstractMesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    rows = jax.ShapeDtypeStruct((4,), np.float64, sharding=jax.NamedSharding(mesh, jax.P("x")), weak_type=True)
    assert str(jax.typeof(rows)) == "~float32[4@x]"
    assert str(jax.typeof(jax.ShapeDtypeStruct((2,), np.int8, is_ref=True))) == "Ref{int8[2]}"
    assert str(jax.typeof(jax.ShapeDtypeStruct((2,), jax.random.key(0).dtype))) == "key<fry>[2]"
    for x in (jax.typeof(rows), None, [1]):
        with pytest.raises(TypeError, match="is not a valid JAX type"):
            jax.typeof(x)
