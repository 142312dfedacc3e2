"""Compiled programs that are kept on disk whole: what another process finds, and what it must not find."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.native import cache, programs, stored
from catena.compiler.native import compile as compiler
from catena.compiler.native.fingerprint import fingerprint
from catena.core.config import config
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from catena.core.primitive import registry
from catena.extend.core import Primitive
from catena.interpreters import mlir

pytestmark = [
    pytest.mark.skipif(config.jax_check_bounds, reason="programs of checked mode are not kept whole"),
    pytest.mark.usefixtures("folder"),
]
X = np.linspace(0.1, 2.0, 12, dtype=np.float32).reshape(3, 4)
LARGE = np.arange(500_000, dtype=np.float32)


def solve_by_halving(x):
    return lax.while_loop(lambda s: s[0] > 0.01, lambda s: (s[0] / 2, s[1] + jnp.sin(s[0])), (x, x))[1]


@jax.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))

PROGRAMS = {
    "elementwise": lambda x: jnp.tanh(x) * 3 + 1,
    "results that are arguments and constants": lambda x: (x, 1.0, x + 1, jnp.float32(2)),
    "a large constant": lambda x: LARGE[:4] * x + LARGE.sum(),
    "a table": lambda x: x * np.array([[1.5], [2.5], [3.5]], np.float32),
    "many threads": lambda x: jnp.cumsum(jnp.sin(x.sum() * jnp.arange(300_000.0))).sum(),
    "a complex product": lambda x: (x + 1j) @ (x.T - 2j),
    "LAPACK": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(4), x),
    "reverse mode through while": jax.grad(lambda x: solve_by_halving(x.sum())),
    "branches": lambda x: lax.cond(x.sum() > 1, jnp.sin, jnp.cos, x),
    "sort and select": lambda x: (jnp.sort(x), lax.top_k(x, 2)),
    "scatter": lambda x: x.at[jnp.array([0, 0, 2])].add(1.0),
    "keys": lambda x: jax.random.normal(jax.random.split(jax.random.key(3))[0], (5,)) * x[0, 0],
    "derivatives of its own": lambda x: doubled(x) + jax.checkpoint(jnp.sin)(x),
    "narrow dtypes": lambda x: (x.astype(jnp.bfloat16) * 2, (x > 1), x.astype("int4")),
    "a jit in a jit": lambda x: jax.jit(lambda y: y * 2)(x) + jax.jit(lambda y: y * 3)(x),
}


NOT_ENTRIES = {
    "empty": b"",
    "no JSON": b"}{",
    "no text": b"\xff\xfe\x00",
    "too deep": b"[" * 100_000,
    "a list": b"[1, 2]",
    "a number": b"7",
    "no parts": b'{"note": {}}',
    "no note": b'{"parts": {}}',
    "parts of another kind": b'{"note": {}, "parts": 3}',
    "unknown parts": b'{"note": {}, "parts": {"code_name": "%s", "imports": {}, "units": [], "surprise": 1}}'
    % (b"0" * 64),
    "a name that is no name": b'{"note": {}, "parts": {"code_name": 5, "imports": {}, "units": []}}',
    "a name with a zero byte": b'{"note": {}, "parts": {"code_name": "a\\u0000", "imports": {}, "units": []}}',
    "imports of another kind": b'{"note": {}, "parts": {"code_name": "%s", "imports": 5, "units": []}}' % (b"0" * 64),
    "units of another kind": b'{"note": {}, "parts": {"code_name": "%s", "imports": {}, "units": [7]}}' % (b"0" * 64),
}


@pytest.mark.parametrize("content", NOT_ENTRIES.values(), ids=NOT_ENTRIES)
def test_an_entry_that_cannot_be_read_is_none(content):
    cache.save("0" * 64, b"code")
    cache.save("1" * 64, content)
    assert cache.load("1" * 64) == content
    assert stored.find("1" * 64) is None


def test_programs_under_the_names_of_others_are_compiled_again(folder):
    """Of two entries that were swapped, each gave the other's results."""

    def results():
        jax.clear_caches()
        f, g = (jax.jit(lambda x, k=k: jnp.sin(x) * k + jnp.arange(3.0 + k).sum()) for k in (1, 2))
        return f(X).tolist(), g(X).tolist()

    expected = results()
    paths = sorted(folder.iterdir())
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert results() == expected
    assert results() == expected


def refuse(*args, **kwargs):
    raise AssertionError("a program was compiled again")


@pytest.mark.parametrize("name", PROGRAMS)
def test_another_process_compiles_nothing(name, monkeypatch):
    function = PROGRAMS[name]
    first = jax.jit(lambda x: function(x))(X)
    monkeypatch.setattr(compiler, "compile_jaxpr", refuse)
    second = jax.jit(lambda x: function(x))(X)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert jnp.asarray(a).aval == jnp.asarray(b).aval
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_donated_arguments_and_the_program_s_text(monkeypatch):
    def program():
        return jax.jit(lambda x: x * 2 + 1, donate_argnums=0)

    def reports(compiled):
        return compiled.as_text(), compiled.cost_analysis(), compiled.memory_analysis()

    first = reports(program().lower(X).compile())
    monkeypatch.setattr(compiler, "compile_jaxpr", refuse)
    x = jnp.asarray(X)
    np.testing.assert_array_equal(program()(x), X * 2 + 1)
    assert x.is_deleted()
    assert reports(program().lower(X).compile()) == first


# ---- what a fingerprint tells apart

DIFFERENT = {
    "the sign of a zero": (lambda x: x + 0.0, lambda x: x + -0.0),
    "a parameter": (lambda x: jnp.sum(x, 0), lambda x: jnp.sum(x, 1)),
    "a primitive": (jnp.sin, jnp.cos),
    "the order of operands": (lambda x: x - 2 * x, lambda x: 2 * x - x),
    "constants": (lambda x: x + X, lambda x: x + X[::-1]),
    "types of constants": (lambda x: x + np.ones(4, np.int32), lambda x: x + np.ones(4, np.int16)),
    "what an inner function does": (lambda x: jax.jit(jnp.sin)(x), lambda x: jax.jit(jnp.cos)(x)),
    "which inner function": (
        lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
        lambda x: lax.cond(x[0, 0] > 0, jnp.cos, jnp.sin, x),
    ),
    "the results": (lambda x: (x + 1, x * 2), lambda x: (x * 2, x + 1)),
    "the generator": (
        lambda x: x + jax.random.uniform(jax.random.key(0, impl="threefry2x32")),
        lambda x: x + jax.random.uniform(jax.random.key(0, impl="philox2x32")),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_programs_have_different_names(name):
    a, b = (fingerprint(jax.make_jaxpr(f)(X)) for f in DIFFERENT[name])
    assert a and b and a != b


def test_the_same_program_has_one_name():
    a, b = (fingerprint(jax.make_jaxpr(lambda x: jnp.dot(x, X.T) + jax.jit(jnp.sin)(x)[:, :3])(X)) for _ in range(2))
    assert a == b


def test_flags_types_and_donation_are_part_of_the_name():
    closed = jax.make_jaxpr(lambda x: x * 2)(X)
    names = [programs.name_on_disk(closed, ()), programs.name_on_disk(closed, (True,))]
    names.append(programs.name_on_disk(jax.make_jaxpr(lambda x: x * 2)(X.astype(np.float16)), ()))
    with jax.default_matmul_precision("highest"):
        names.append(programs.name_on_disk(closed, ()))
    assert None not in names and len(set(names)) == 4


def test_threads_are_part_of_the_name(monkeypatch):
    closed = jax.make_jaxpr(lambda x: x * 2)(X)
    names = set()
    for count in ("1", "2"):
        monkeypatch.setenv("CATENA_NUM_THREADS", count)
        names.add(programs.name_on_disk(closed, ()))
    assert len(names) == 2


# ---- what is not kept


def test_callbacks_have_no_name():
    def calls(x):
        return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    def prints(x):
        jax.debug.print("{}", x)
        return x * 2

    assert [fingerprint(jax.make_jaxpr(f)(X)) for f in (calls, prints)] == [None, None]


def test_primitives_of_the_user_have_no_name():
    mine = Primitive("sin")
    mine.def_abstract_eval(lambda x: x)
    mlir.register_lowering(mine, mlir.lower_fun(jnp.cos, multiple_results=False))
    program = jax.make_jaxpr(lambda x: mine.bind(x))(X)
    assert "sin" in str(program) and fingerprint(program) is None


def test_primitives_that_the_user_compiles_otherwise_have_no_name(monkeypatch):
    sin, program = registry["sin"], jax.make_jaxpr(jnp.sin)(X)
    monkeypatch.setattr(sin, "lower", sin.lower)  # what the test changes is undone
    monkeypatch.setattr(sin, "own", True)
    assert fingerprint(program) is not None
    mlir.register_lowering(sin, mlir.lower_fun(lambda x, **params: jnp.cos(x), multiple_results=False))
    assert fingerprint(program) is None


def test_large_constants_have_no_name():
    big = np.zeros(1 << 23, np.float32)
    assert fingerprint(jax.make_jaxpr(lambda x: x + big[0] * big.sum())(X)) is not None  # scalars
    assert fingerprint(jax.make_jaxpr(lambda x: x[0, 0] + big)(X)) is None


def test_deep_nests_need_no_deep_stack():
    aval = jax.make_jaxpr(jnp.sin)(1.0).in_avals[0]
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    for _ in range(20_000):
        x, y = Var(aval), Var(aval)
        eqn = Eqn([x], [y], registry["jit"], {"jaxpr": closed, "name": "f"})
        closed = ClosedJaxpr(Jaxpr([], [x], [y], [eqn]), [])
    assert fingerprint(closed).count("sin") == 1


def test_damaged_entries_are_made_again(folder):
    first = jax.jit(lambda x: jnp.sin(x) @ x.T)(X)
    for entry in folder.iterdir():
        entry.write_bytes(entry.read_bytes()[:-1])
    np.testing.assert_array_equal(first, jax.jit(lambda x: jnp.sin(x) @ x.T)(X))


def test_a_program_whose_code_is_gone_is_made_again(folder):
    def program(x):
        return jnp.cos(x) * 7

    first = jax.jit(lambda x: program(x))(X)
    for entry in folder.iterdir():
        if b"parts" not in entry.read_bytes():
            entry.unlink()
    np.testing.assert_array_equal(first, jax.jit(lambda x: program(x))(X))
