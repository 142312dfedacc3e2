"""Exported functions: what they compute, read again; their derivatives, types and trees; and what is refused."""

import subprocess
import sys
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
import structured_cases  # noqa: F401  more cases
from catena import export, lax
from catena.experimental.serialize_executable import deserialize_and_load, serialize
from catena.export.container import pack, unpack
from catena.extend.core import Primitive
from rule_cases import CASES, arguments

X = jnp.arange(1.0, 4.0)


def read_again(function, *args, order=0, **kwargs):
    """The exported function, and what is read from its bytes."""
    made = export.export(jax.jit(function))(*args, **kwargs)
    return made, export.deserialize(made.serialize(vjp_order=order))


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES.values()])
def test_every_primitive_is_read_as_it_was_written(case):
    with jax.enable_x64(True):
        made, read = read_again(case.fun, *arguments(case, case.dtypes[0]))
        assert str(read._program) == str(made._program)
        if case.order and "float64" in case.dtypes:
            made, read = read_again(case.fun, *arguments(case, "float64"), order=1)
            assert str(read.vjp()._program) == str(made.vjp()._program)


@jax.custom_jvp
def halved(x):
    return x / 2


halved.defjvp(lambda primals, tangents: (halved(*primals), 7 * tangents[0]))


@jax.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (doubled(x), None), lambda _, ct: (5 * ct,))
plus_one = jax.custom_batching.custom_vmap(lambda x: x + 1)
plus_one.def_vmap(lambda size, batched, x: (x + 1, True))


def everything(x, flag):
    """Loops, branches, keys, rules of users, references, linear algebra."""
    total = jax.new_ref(jnp.zeros(()))
    lax.fori_loop(0, 3, lambda i, _: total.addupdate(x[i]) or 0, 0)
    carry, rows = lax.scan(lambda c, y: (c * y, c + y), 1.0, x)
    grown = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1]
    chosen = lax.cond(flag, jnp.sin, jnp.cos, x)
    noise = jax.random.normal(jax.random.key(3), (3,))
    solved = jnp.linalg.solve(jnp.eye(3) + jnp.outer(x, x), x)
    named = lax.composite(jnp.tanh, "mine")(x)
    own = halved(doubled(plus_one(x)))
    best = jax.checkpoint(lambda x: jnp.sort(jnp.exp(x)))(x).at[0].multiply(2)
    return {"a": (carry + total[...], rows), "b": [grown, chosen, noise, solved, named, own, best]}


@pytest.fixture(scope="module")
def exported():
    made, read = read_again(everything, X, True, order=2)
    return made, read


def test_values(exported):
    want = everything(X, True)
    for function in exported:
        for call in (function.call, jax.jit(function.call)):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), call(X, True), want)
    rows = jax.vmap(exported[1].call, (0, None))(jnp.stack([X, X]), False)["b"][1]
    np.testing.assert_allclose(rows[1], np.cos(X), rtol=1e-6)


def test_derivatives_are_those_of_the_function(exported):
    def total(function):
        return lambda x: sum(jnp.sum(y) for y in jax.tree.leaves(function(x, True)))

    want = jax.grad(total(everything))(X)
    assert abs(want[1] - jax.grad(lambda x: total(everything)(x) - halved(doubled(x)).sum())(X)[1] - 35) < 1e-3
    second = jax.grad(lambda x: jax.grad(total(everything))(x)[0])(X)
    for function in exported:
        np.testing.assert_allclose(jax.grad(total(function.call))(X), want, rtol=1e-5)
        np.testing.assert_allclose(jax.grad(lambda x, f=function: jax.grad(total(f.call))(x)[0])(X), second, rtol=1e-4)
    assert exported[1].vjp().has_vjp() and not exported[1].vjp().vjp().has_vjp()


def test_types_and_trees():
    Pair = export.register_namedtuple_serialization(namedtuple("Pair", "a b"), serialized_name="tests.Pair")

    @jax.tree_util.register_pytree_node_class
    class Scaled:
        def __init__(self, x, scale):
            self.x, self.scale = x, scale

        def tree_flatten(self):
            return (self.x,), self.scale

        @classmethod
        def tree_unflatten(cls, scale, children):
            return cls(*children, scale)

    write, read = (lambda scale: str(scale).encode()), (lambda data: int(data))
    options = {"serialize_auxdata": write, "deserialize_auxdata": read}
    export.register_pytree_node_serialization(Scaled, serialized_name="tests.Scaled", **options)
    given = OrderedDict(z=Pair(X, [None, (X, {2: 3.0})]), a=Scaled(X, 4))
    made, again = read_again(lambda t: (t, t["a"].x * t["a"].scale), given)
    assert again.in_tree == made.in_tree and again.out_tree == made.out_tree
    assert again.in_avals == made.in_avals == tuple(jax.typeof(x) for x in jax.tree.leaves(given))
    out, scaled = again.call(given)
    assert list(out) == ["z", "a"] and type(out["z"]) is Pair and out["a"].scale == 4
    np.testing.assert_array_equal(scaled, 4 * X)
    with pytest.raises(ValueError, match="registered for serialization already, as 'tests.Pair'"):
        export.register_namedtuple_serialization(Pair, serialized_name="tests.Other")
    with pytest.raises(ValueError, match="'tests.Pair' is taken already"):
        export.register_namedtuple_serialization(namedtuple("P", "a"), serialized_name="tests.Pair")
    with pytest.raises(ValueError, match="no class of named tuples"):
        export.register_namedtuple_serialization(int, serialized_name="tests.int")
    with pytest.raises(ValueError, match="is no tree"):
        export.register_pytree_node_serialization(object, serialized_name="tests.object", **options)


@pytest.mark.parametrize("dtype", ["bool", "int4", "uint8", "bfloat16", "float16", "float8_e4m3fn", "complex64"])
def test_constants(dtype):
    constant = jnp.asarray([0, 1, 1]).astype(dtype)
    out, number = read_again(lambda: (constant, constant[1]))[1].call()
    assert out.dtype == number.dtype == constant.dtype
    np.testing.assert_array_equal(out, constant)


def test_keys_are_arguments_results_and_constants():
    constant = jax.random.split(jax.random.key(1, impl="rbg"), 2)
    read = read_again(lambda key: (jax.random.split(key), constant), jax.random.key(5))[1]
    keys, same = read.call(jax.random.key(5))
    np.testing.assert_array_equal(jax.random.key_data(keys), jax.random.key_data(jax.random.split(jax.random.key(5))))
    np.testing.assert_array_equal(jax.random.key_data(same), jax.random.key_data(constant))


def test_what_is_known_of_it():
    made = export.export(jax.jit(lambda x, n, *, y: x * n + 0 * y, static_argnums=1))(X, 3, y=1)
    assert made.fun_name == "<lambda>" and made.platforms == ("cpu",) and made.nr_devices == 1
    assert made.in_tree == jax.tree.structure(((0,), {"y": 0})) and made.has_vjp()
    assert [a.str_short() for a in made.in_avals] == ["float32[3]", "int32[]"]
    assert made.in_shardings_hlo == made.in_shardings_jax(None) == (None, None)
    assert export.export(jax.jit(lambda x, y: x))(X, X).module_kept_var_idx == (0,)
    assert export.default_export_platform() == "cpu"
    assert [a.str_short() for a in made.vjp().out_avals] == ["float32[3]", "float0[]"]
    np.testing.assert_array_equal(jax.grad(lambda x: made.call(x, y=2).sum())(X), 3 * np.ones(3))
    platform, other = export.DisabledSafetyCheck.platform(), export.DisabledSafetyCheck.custom_call("x")
    assert (platform.is_custom_call(), other.is_custom_call()) == (None, "x")
    elsewhere = export.export(jax.jit(jnp.sin), platforms=["tpu"])(X)
    with pytest.raises(ValueError, match=r"exported for \('tpu',\), and it is called on 'cpu'"):
        elsewhere.call(X)
    allowed = export.export(jax.jit(jnp.sin), platforms=["tpu"], disabled_checks=[platform])(X)
    np.testing.assert_array_equal(export.deserialize(allowed.serialize()).call(X), jnp.sin(X))


def test_another_process():
    data = export.export(jax.jit(lambda x: jax.scipy.special.gamma(x) + X))(X).serialize()
    code = "import sys, catena as jax; e = jax.export.deserialize(sys.stdin.buffer.read()); print(e.call(jax.numpy.ones(3)))"
    done = subprocess.run([sys.executable, "-c", code], input=bytes(data), capture_output=True, check=True)
    assert done.stdout.split() == [b"[2.", b"3.", b"4.]"]


own = Primitive("mine")
own.def_impl(lambda x: x)
own.def_abstract_eval(lambda x: x)
REFUSED = [
    (lambda: export.export(lambda x: x), ValueError, "must be the result of `jit`"),
    (lambda: export.export(jax.jit(jnp.sin), platforms="cpu"), TypeError, "got 'cpu'"),
    (lambda: export.export(jax.jit(jnp.sin), disabled_checks=["a"]), TypeError, "got 'a'"),
    (lambda: read_again(jnp.sin, X)[1].call(X, X), ValueError, "another structure:\n.*args was tuple of length 1"),
    (lambda: read_again(lambda x: x["a"], {"a": X})[1].call({"a": X[:2]}), ValueError, r"Shape mismatch.*\]\['a'\]"),
    (lambda: read_again(jnp.sin, X)[1].call(X > 0), ValueError, r"Dtype mismatch for args\[0\]: expected float32"),
    (lambda: jax.grad(lambda x: read_again(jnp.sin, x)[1].call(x))(1.0), ValueError, "No VJP is available"),
    (lambda: read_again(jnp.sin, X)[0].serialize(vjp_order=-1), ValueError, "must not be negative"),
    (lambda: read_again(lambda x: jax.pure_callback(np.sin, x, x), X), NotImplementedError, "calls Python"),
    (lambda: read_again(lambda x: jax.debug.print("{}", x), X), NotImplementedError, "calls Python"),
    (lambda: read_again(lambda x: own.bind(x), X), NotImplementedError, "user's own"),
    (lambda: jax.jit(lambda y: read_again(lambda x: x + y, X))(1.0), ValueError, "closes over"),
    (lambda: read_again(lambda t: t, namedtuple("Unknown", "a")(X)), ValueError, "register_namedtuple_serialization"),
    (lambda: export.deserialize("abc"), TypeError, "takes bytes, got <class 'str'>"),
    (lambda: export.deserialize(b"abc"), ValueError, "not the bytes"),
    (lambda: export.symbolic_shape("3, +"), ValueError, "must be a length"),
    (lambda: export.symbolic_shape("..."), ValueError, "needs a shape to be like"),
    (lambda: export.symbolic_shape("4", like=(3,)), ValueError, "is 3 in like"),
    (lambda: serialize(3), TypeError, "takes a compiled function, got 3"),
]


@pytest.mark.parametrize("call, error, message", REFUSED)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_shapes():
    assert export.symbolic_shape("(2, _, ...)", like=(2, 3, 4, 5)) == (2, 3, 4, 5)
    assert export.symbolic_shape("") == () and export.symbolic_shape(None, like=(3,)) == (3,)
    spec = export.symbolic_args_specs(({"a": X}, X), ("3", None))
    assert spec[0]["a"].shape == (3,) and spec[1].dtype == X.dtype
    assert not export.is_symbolic_dim(3)


def changed(change):
    """The bytes of a program after a change of its head."""
    made = export.export(jax.jit(lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.float32(1), jnp.sin(x) + X)))(X)
    head, data = unpack(made.serialize())
    change(head)
    return pack(head, [bytes(data)])


def set_scan(name, value):
    def change(head):
        eqn = next(e for p in head["programs"] for e in p["equations"] if e[0] == "scan")
        eqn[3][name] = value

    return change


CHANGES = [
    lambda head: head["programs"][-1]["equations"].reverse(),
    lambda head: head["programs"][-1]["results"].append(99),
    lambda head: head["programs"][-1]["arguments"].append(["float32", [-1], False]),
    lambda head: head["programs"][-1]["equations"][0].__setitem__(0, "sin; import os"),
    lambda head: head["programs"][-1]["equations"][0].__setitem__(0, "pure_callback"),
    lambda head: head["programs"][-1]["equations"][0][2].__setitem__(0, ["float64", [3], False]),
    lambda head: head["arrays"][0].__setitem__(1, 1 << 40),
    lambda head: head["arrays"][0].__setitem__(0, ["float32", [1 << 40], False]),
    lambda head: head["functions"][0]["arguments"].pop(),
    lambda head: head["functions"][0].pop("program"),
    lambda head: head["functions"].append(head["functions"][0]),
    lambda head: head["functions"].clear(),
    lambda head: head.pop("programs"),
    set_scan("length", 4),
    set_scan("num_carry", 2),
    set_scan("num_consts", -1),
    set_scan("jaxpr", {"program": 7}),
    set_scan("jaxpr", {"code": "1 / 0"}),
]


@pytest.mark.parametrize("change", CHANGES)
def test_changed_bytes_are_refused(change):
    assert export.deserialize(changed(lambda head: None)).call(X)[0] > 0
    with pytest.raises(ValueError):
        export.deserialize(changed(change))


def test_damaged_bytes_are_refused():
    data = export.export(jax.jit(jnp.sin))(X).serialize()
    for i in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[i] ^= 4
        with pytest.raises(ValueError):
            export.deserialize(damaged)
        with pytest.raises(ValueError):
            export.deserialize(data[:i])


def test_compiled_functions():
    compiled = jax.jit(lambda x, *, y: {"out": jnp.sin(x) * y}, donate_argnums=0).lower(X, y=2.0).compile()
    data, *trees = serialize(compiled)
    read = deserialize_and_load(data, *trees, backend="cpu", execution_devices=jax.devices()[:1])
    np.testing.assert_array_equal(read(X + 0, y=2.0)["out"], jnp.sin(X) * 2)
    assert read.donate_argnums == compiled.donate_argnums and read.in_tree == compiled.in_tree
    for call, error in [
        (lambda: read(X[:2], y=2.0), TypeError),
        (lambda: deserialize_and_load(data, trees[1], trees[1]), ValueError),
        (lambda: deserialize_and_load(data, *trees, backend="tpu"), RuntimeError),
        (lambda: deserialize_and_load(data, *trees, execution_devices=[]), ValueError),
        (lambda: deserialize_and_load(export.export(jax.jit(jnp.sin))(X).serialize(), *trees), ValueError),
        (lambda: export.deserialize(data), ValueError),
    ]:
        with pytest.raises(error):
            call()
