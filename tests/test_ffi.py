"""Calls of C functions: from the C library, from a library compiled here, and from callbacks of ctypes."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import ffi
from catena.extend.core import Primitive
from catena.interpreters import mlir
from catena.lax import foreign

FLOATS, LONG = ctypes.POINTER(ctypes.c_float), ctypes.c_int64
X = jnp.arange(6.0).reshape(2, 3)
F32 = lambda *shape: jax.ShapeDtypeStruct(shape, "float32")


def in_c(*argtypes, restype=None):
    """A function in Python as a C function of these types; the addresses are seen as pointers."""
    return ctypes.CFUNCTYPE(restype, *argtypes)


@in_c(FLOATS, FLOATS, FLOATS, LONG, ctypes.c_double)
def axpy(x, y, out, n, scale):
    for i in range(n):
        out[i] = scale * x[i] + y[i]


ffi.register_ffi_target("axpy", axpy)


def call_axpy(x, y, **options):
    return ffi.ffi_call("axpy", F32(*x.shape), **options)(x, y, n=x.size, scale=2.0)


def test_eager_compiled_and_without_a_compiler():
    np.testing.assert_array_equal(call_axpy(X, X), 3 * X)
    np.testing.assert_array_equal(jax.jit(call_axpy)(X, X + 1), 3 * X + 1)
    loop = lambda x: jax.lax.fori_loop(0, 3, lambda i, c: call_axpy(c, x), x)
    np.testing.assert_array_equal(jax.jit(loop)(X), 15 * X)
    np.testing.assert_array_equal(jax.jit(lambda x: call_axpy(x.T.T[:, ::-1], x))(X), 2 * X[:, ::-1] + X)
    assert "ffi_call" in str(jax.make_jaxpr(call_axpy)(X, X))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_shared_library(tmp_path):
    source, library = tmp_path / "norm.c", tmp_path / "norm.so"
    source.write_text(
        "#include <stdint.h>\n"
        "int norms(const float *x, float *out, int64_t rows, int64_t n, float eps, const float *weight, const char *kind)"
        "{ if (kind[0] != 'r') return 7;\n"
        "  for (int64_t i = 0; i < rows; i++) { float s = eps;\n"
        "    for (int64_t j = 0; j < n; j++) s += weight[j] * x[i * n + j] * x[i * n + j];\n"
        "    out[i] = s; } return 0; }\n"
        "void original(void *out, const void **in) { float **o = out;\n"
        "  o[0][0] = ((const float *)in[0])[1]; o[1][0] = ((const float *)in[1])[0]; }\n"
        "void one(float *out, const void **in) { out[0] = 2 * ((const float *)in[0])[0]; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    lib = ctypes.CDLL(str(library))
    lib.norms.argtypes = [FLOATS, FLOATS, LONG, LONG, ctypes.c_float, ctypes.c_void_p, ctypes.c_char_p]
    ffi.register_ffi_target("norms", ffi.pycapsule(lib.norms), platform="cpu")  # the capsule remembers the signature
    weight = np.array([1, 2, 3], np.float32)

    def norms(x, kind="rows", method="broadcast_all"):
        rows = x.size // x.shape[-1]
        call = ffi.ffi_call("norms", F32(*x.shape[:-1]), vmap_method=method)
        return call(x, rows=rows, n=x.shape[-1], eps=np.float32(0.5), weight=weight, kind=kind)

    expected = 0.5 + np.sum(weight * X * X, 1)
    np.testing.assert_array_equal(jax.jit(norms)(X), expected)
    np.testing.assert_array_equal(jax.vmap(lambda x: norms(x, method="sequential"))(X), expected)
    with pytest.raises(jax.errors.JaxRuntimeError, match="the C function returned 7"):
        norms(X, kind="columns")
    ffi.register_ffi_target("original", ffi.pycapsule(lib.original), api_version=0)
    ffi.register_ffi_target("one", ffi.pycapsule(lib.one), api_version=0)
    call = ffi.ffi_call("original", [F32(), F32(1)], custom_call_api_version=1)
    first, second = jax.jit(call)(X, X + 5)
    assert (float(first), float(second[0])) == (1, 5)
    assert float(ffi.ffi_call("one", F32(), custom_call_api_version=1)(X + 4)) == 8
    with pytest.raises(TypeError, match="no attributes"):
        ffi.ffi_call("one", F32())(X, n=3)
    ffi.register_ffi_target("frame", ffi.pycapsule(lib.one))  # what libraries register for XLA
    with pytest.raises(NotImplementedError, match="handler of XLA's"):
        ffi.ffi_call("frame", F32())(X)


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
def test_vmap(method):
    shapes = []

    @in_c(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, LONG)
    def first(x, y, out, n):
        shapes.append(n)
        ctypes.memmove(out, x, 4 * n)

    ffi.register_ffi_target("first", first)

    def f(x, y):
        call = ffi.ffi_call("first", F32(3), vmap_method=method)
        return call(x, y, n=6 if method not in ("sequential", "sequential_unrolled") else 3)

    np.testing.assert_array_equal(jax.vmap(f, (0, None))(X, X[0]), X)
    np.testing.assert_array_equal(jax.jit(jax.vmap(f, (1, None)))(X.T, X[0]), X)
    assert set(shapes) == {3} if method.startswith("sequential") else {6}


def test_layouts_and_aliases():
    @in_c(FLOATS, FLOATS, LONG)
    def copied(x, out, n):
        ctypes.memmove(out, x, 4 * n)

    @in_c(FLOATS, FLOATS)
    def increased(x, out):
        out[1] += 10

    ffi.register_ffi_target("copied", copied)
    ffi.register_ffi_target("increased", increased)
    columns = ffi.ffi_call("copied", F32(6), input_layouts=[(1, 0)])
    np.testing.assert_array_equal(jax.jit(lambda x: columns(x, n=6))(X), np.asarray(X).T.ravel())
    turned = ffi.ffi_call("copied", F32(3, 2), output_layouts=(1, 0))
    np.testing.assert_array_equal(turned(X, n=6), np.asarray(X).T)
    in_place = ffi.ffi_call("increased", F32(2, 3), input_output_aliases={0: 0})
    y = X + 0
    np.testing.assert_array_equal(jax.jit(in_place)(y), X + jnp.zeros(6).at[1].set(10).reshape(2, 3))
    np.testing.assert_array_equal(y, X)  # as it was
    stacked = ffi.ffi_call(
        "copied", F32(3, 2), input_layouts=[(0, 1)], output_layouts=(1, 0), vmap_method="broadcast_all"
    )
    np.testing.assert_array_equal(
        jax.vmap(lambda x: stacked(x, n=12))(jnp.stack([X, X + 1])), np.stack([X, X + 1]).transpose(0, 2, 1)
    )


def test_effects_and_derivatives():
    calls = []

    @in_c(FLOATS, FLOATS)
    def told(x, out):
        calls.append(x[0])
        out[0] = x[0] * x[0]

    ffi.register_ffi_target("told", told)
    call = lambda x, **options: ffi.ffi_call("told", F32(), **options)(x)
    assert jax.jit(lambda x: (call(x, has_side_effect=True), x)[1])(2.0) == 2 and calls == [2.0]
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(call)(3.0)
    square = jax.custom_jvp(call)
    square.defjvp(lambda primals, tangents: (square(*primals), 2 * primals[0] * tangents[0]))
    assert jax.jit(jax.grad(square))(3.0) == 6


def test_a_primitive_that_calls_c():
    p = Primitive("my_axpy")
    p.def_abstract_eval(lambda x, y, *, n, scale: x)
    mlir.register_lowering(p, ffi.ffi_lowering("axpy"))
    np.testing.assert_array_equal(jax.jit(lambda x: p.bind(x, x, n=6, scale=3.0))(X), 4 * X)
    q = Primitive("my_twice")
    q.def_abstract_eval(lambda x, y: jax.core.ShapedArray(x.shape[::-1], x.dtype))
    rule = ffi.ffi_lowering("axpy", backend_config={"n": 6, "scale": 1.0}, result_layouts=[(1, 0)])
    mlir.register_lowering(q, rule)
    np.testing.assert_array_equal(jax.jit(q.bind)(X, X), 2 * X.T)
    with pytest.raises(TypeError, match="ffi_lowering takes has_side_effect and"):
        ffi.ffi_lowering("axpy", api_version=3)


def test_types_of_handlers_are_kept():
    number = ctypes.c_int64()
    capsule = ffi.pycapsule(ctypes.addressof(number))
    ffi.register_ffi_type("state", {"type_id": capsule, "type_info": capsule})
    ffi.register_ffi_type_id("state", capsule)
    ffi.register_ffi_type_id("state of a TPU", capsule, platform="tpu")
    assert foreign.types == {"state": {"type_id": ctypes.addressof(number)}}
    for given, error in [
        ({}, ValueError),
        ({"type_id": capsule, "size": capsule}, ValueError),
        ({"type_id": 3}, TypeError),
    ]:
        with pytest.raises(error):
            ffi.register_ffi_type("state", given)
    with pytest.raises(TypeError, match="name must be a string, got 3"):
        ffi.register_ffi_type(3, {"type_id": capsule})


def test_names_without_meaning_say_why():
    with pytest.raises(AttributeError, match="include_dir is no part of catena: it serves handlers that read XLA's"):
        ffi.include_dir()
    with pytest.raises(AttributeError, match="SEND_TO_HOST_TYPE is no part of catena: it numbers XLA's kinds"):
        mlir.SEND_TO_HOST_TYPE  # noqa: B018


def test_bad_input():
    call = lambda *args, shape=(2, 3), **kw: ffi.ffi_call("axpy", F32(*shape), **kw)(*args, n=6, scale=2.0)
    for message, error, f in (
        ("takes 5 arguments, and is given 4", TypeError, lambda: call(X)),
        ("operand 1 has dtype int32", TypeError, lambda: call(X, jnp.arange(6).reshape(2, 3))),
        ("attribute n cannot be passed", TypeError, lambda: ffi.ffi_call("axpy", F32(3))(X, X, n="6", scale=1.0)),
        (
            "No FFI handler registered for nothing",
            jax.errors.JaxRuntimeError,
            lambda: ffi.ffi_call("nothing", F32())(X),
        ),
        ("No FFI handler", jax.errors.JaxRuntimeError, lambda: jax.jit(ffi.ffi_call("nothing", F32()))(X)),
        ("shape and a dtype", ValueError, lambda: ffi.ffi_call("axpy", 3)),
        ("Non-hashable keyword argument to ffi_call n", TypeError, lambda: ffi.ffi_call("axpy", F32())(X, n=[1])),
        ("vmap_method must be one of", ValueError, lambda: ffi.ffi_call("axpy", F32(), vmap_method="no")),
        ("input_layouts has 1 entries", ValueError, lambda: call(X, X, input_layouts=[(0, 1)])),
        ("must order the axes", ValueError, lambda: call(X, X, output_layouts=(0, 0))),
        ("maps 5 to 0", ValueError, lambda: call(X, X, input_output_aliases={5: 0})),
        ("types and layouts must be equal", ValueError, lambda: call(X, X, shape=(6,), input_output_aliases={0: 0})),
        ("requires custom_call_api_version < 4", ValueError, lambda: call(X, X, legacy_backend_config="a")),
        ("a number from 1 to 4", ValueError, lambda: call(X, X, custom_call_api_version=5)),
        ("a ctypes function with argtypes", TypeError, lambda: ffi.register_ffi_target("t", 3)),
        ("api_version must be 0 or 1", ValueError, lambda: ffi.register_ffi_target("t", axpy, api_version=2)),
        ("null pointer", ValueError, lambda: ffi.pycapsule(0)),
        ("not a valid JAX type", TypeError, lambda: ffi.ffi_call("axpy", F32())("a")),
    ):
        with pytest.raises(error, match=message):
            f()
    ffi.register_ffi_target("elsewhere", ffi.pycapsule(ctypes.CDLL(None).abs), platform="CUDA")
    with pytest.raises(jax.errors.JaxRuntimeError, match="No FFI handler registered for elsewhere"):
        ffi.ffi_call("elsewhere", F32())(X)
