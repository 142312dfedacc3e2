"""Symbolic dimensions: their arithmetic, the texts that describe them, and the shapes of results for them."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import export, lax
from catena.core import dimensions

STRUCT = jax.ShapeDtypeStruct
A, B = export.symbolic_shape("a, b")


def struct(*shape):
    return STRUCT(shape, jnp.float32)


@pytest.mark.parametrize(
    "made, text",
    [
        (lambda: A + 1, "a + 1"),
        (lambda: 2 - A, "- a + 2"),
        (lambda: 2 * A * B - B * A, "a*b"),
        (lambda: A * A, "a^2"),
        (lambda: A**2, "a^2"),
        (lambda: (4 * A + 6) // 2, "2*a + 3"),
        (lambda: A // 2, "floordiv(a, 2)"),
        (lambda: A % 3, "mod(a, 3)"),
        (lambda: 7 // A, "floordiv(7, a)"),
        (lambda: divmod(A, 2)[1], "mod(a, 2)"),
    ],
)
def test_arithmetic(made, text):
    assert str(made()).removeprefix("- ") == text.removeprefix("- ")
    assert str(made()).startswith("-") == text.startswith("-")
    assert export.is_symbolic_dim(made()) and not isinstance(made(), int)


def test_what_cancels_is_an_integer():
    assert A - A == 0 and type(A - A) is int
    assert (A + B) - B == A and hash((A + B) - B) == hash(A)
    assert A * 2 % 2 == 0
    assert A != B and A != 3 and A * 0 == 0


def test_comparisons():
    assert A >= 1 and not A < 1 and A + 1 > 1 and A + B >= 2 and A * B >= 1
    assert max(A, 1) is A
    (big,) = export.symbolic_shape("n", constraints=["n >= 8", "n <= 64"])
    assert big >= 8 and big // 2 >= 4 and big < 65 and big % 5 < 5 and bool(big)
    for undecided in (lambda: A >= 2, lambda: A < B, lambda: A - 1 > 0, lambda: bool(A - 1)):
        with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="inconclusive"):
            undecided()
    for needs_number in (lambda: int(A), lambda: range(A), lambda: np.zeros(A)):
        with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="where a known length is needed"):
            needs_number()


def test_the_lesser_and_the_greater_one():
    least, most = jax.core.min_dim, jax.core.max_dim
    assert [str(d) for d in (least(A, 64), most(A, B), least(A + 3, B))] == ["min(a, 64)", "max(a, b)", "min(a + 3, b)"]
    assert most(A, 1) is A and least(A, A + 1) is A and least(A, 1) == 1 and least(4, 3) == 3
    told = jax.eval_shape(lambda x: x[: min(x.shape[0], 64), -9:], struct(A, B))
    assert str(told.shape) == "(min(a, 64), min(b, 9))"
    with pytest.raises(TypeError, match="interpreted as an integer"):
        least(A, 2.5)


def test_scopes_do_not_mix():
    (other,) = export.symbolic_shape("a")
    with pytest.raises(ValueError, match="different scopes"):
        A + other
    with pytest.raises(ValueError, match="different scopes"):
        jax.eval_shape(jnp.add, struct(A), struct(other))
    scope = export.SymbolicScope(["a >= 2"])
    first, second = (export.symbolic_shape("a", scope=scope)[0] for _ in range(2))
    assert first == second and first - second == 0 and "a >= 2" in repr(scope)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a, a + 1", "(a, a + 1)"),
        ("(2*a, floordiv(a, 2), mod(a,3), max(a, 2))", "(2*a, floordiv(a, 2), mod(a, 3), max(a, 2))"),
        ("a^2, a*b, -a", "(a^2, a*b, - a)"),
        ("4, floordiv(7, 2), min(2, 3)", "(4, 3, 2)"),
        ("n,", "(n,)"),
    ],
)
def test_texts(text, shown):
    assert str(export.symbolic_shape(text)) == shown


@pytest.mark.parametrize("text", ["a+", "a b", "a/2", "1.5", "f(a, 2)", "max(a)", "a**b", "[a]"])
def test_texts_that_are_no_shapes(text):
    with pytest.raises(ValueError, match="dimension 0 must be a length"):
        export.symbolic_shape(text)


def test_constraints_are_read():
    with pytest.raises(ValueError, match="must contain one of"):
        export.symbolic_shape("a", constraints=["a > 2"])
    with pytest.raises(ValueError, match="sequence of strings"):
        export.symbolic_shape("a", constraints="a >= 2")
    with pytest.raises(ValueError, match="either a scope or constraints"):
        export.symbolic_shape("a", scope=export.SymbolicScope(), constraints=["a >= 2"])
    with pytest.raises(ValueError, match="no lengths were found"):
        jax.eval_shape(jnp.sin, struct(*export.symbolic_shape("a", constraints=["a == 2*a"])))


def test_like():
    assert str(export.symbolic_shape("a, ...", like=(2, 3, 4))) == "(a, 3, 4)"
    specs = export.symbolic_args_specs((jnp.zeros((2, 3)), jnp.zeros(2)), ("n, _", "n"))
    assert specs[0].shape[0] == specs[1].shape[0] and specs[0].shape[1] == 3
    assert jax.eval_shape(lambda x, y: x.T @ y, *specs).shape == (3,)


@pytest.mark.parametrize(
    "function, shapes, shown",
    [
        (lambda x: x.reshape(-1), [(A, 4)], "(4*a,)"),
        (lambda x, y: jnp.concatenate([x, y]), [(A,), (B,)], "(a + b,)"),
        (lambda x: x[::2], [(A,)], "(floordiv(a + 1, 2),)"),
        (lambda x: x @ x.T, [(A, B)], "(a, a)"),
        (lambda x: jnp.sum(x, 0), [(A, 3)], "(3,)"),
        (lambda x: jnp.pad(x, 2), [(A,)], "(a + 4,)"),
        (lambda x: x.reshape(-1), [(A, B)], "(a*b,)"),
        (lambda x: jnp.repeat(x[:, None], 3, 1).ravel()[5:], [(A,)], "(3*a - 5,)"),
        (lambda x: x[: x.shape[0] // 3], [(A,)], "(floordiv(a, 3),)"),
        (lambda x: jnp.outer(x, x).ravel(), [(A,)], "(a^2,)"),
        (lambda x: jnp.zeros((2, 7)), [(A,)], "(2, 7)"),
        (jnp.sin, [(2 * A + 1,)], "(2*a + 1,)"),
        (jax.jit(lambda x: x.T), [(A, 3)], "(3, a)"),
    ],
)
def test_shapes_of_results(function, shapes, shown):
    out = jax.eval_shape(function, *[struct(*s) for s in shapes])
    assert str(out.shape) == shown
    for lengths in ({"a": 11, "b": 4}, {"a": 30, "b": 17}):
        at = [struct(*(dimensions.value(d, lengths) for d in s)) for s in shapes]
        assert tuple(dimensions.value(d, lengths) for d in out.shape) == jax.eval_shape(function, *at).shape


def test_convolutions_and_gradients():
    x, w = struct(A, 28, 28, 3), struct(3, 3, 3, 8)
    conv = lambda x, w: lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    assert jax.eval_shape(conv, x, w).shape == (A, 14, 14, 8)
    slopes = jax.eval_shape(jax.grad(lambda w, x: jnp.sum(conv(x, w) ** 2)), w, x)
    assert slopes.shape == (3, 3, 3, 8)


def test_what_no_expression_tells_is_a_length_of_its_own():
    out = jax.eval_shape(lambda x: jnp.zeros(len(bin(x.shape[0] ** 3))), struct(A))
    (n,) = out.shape
    assert export.is_symbolic_dim(n) and n != A and n >= 0
    assert jax.eval_shape(lambda x: x[:, None], STRUCT((n,), jnp.float32)).shape == (n, 1)


def test_constraints_choose_the_lengths_that_stand_for_symbolic_ones():
    (n,) = export.symbolic_shape("n", constraints=["mod(n, 8) == 0"])
    assert str(jax.eval_shape(lambda x: x.reshape(8, -1), struct(n)).shape) == "(8, floordiv(n, 8))"
    with pytest.raises(TypeError) as failure:
        jax.eval_shape(lambda x: x.reshape(8, -1), struct(A))
    assert any("Symbolic dimensions are stood for by numbers" in note for note in failure.value.__notes__)


def test_trees_keywords_and_other_leaves():
    out = jax.eval_shape(lambda x, *, y: {"a": (x, y.sum()), "n": None}, struct(A, 2), y=jnp.ones(3))
    assert out["a"][0].shape == (A, 2) and out["a"][1].shape == () and out["n"] is None
    assert jax.jit(jnp.cos).eval_shape(struct(A)).shape == (A,)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: jax.jit(jnp.sin).lower(x),
        lambda x: jax.make_jaxpr(jnp.sin)(x),
    ],
)
def test_programs_are_of_known_lengths(ask):
    with pytest.raises(NotImplementedError, match="symbolic dimensions, which jax.eval_shape and jax.export take"):
        ask(struct(A))


def test_ranks_that_hang_on_lengths_are_refused():
    with pytest.raises(ValueError, match="rank of a result hangs on the lengths of a"):
        jax.eval_shape(lambda x: jnp.zeros((1,) * (x.shape[0] % 5)), struct(A))
