"""Primitives and types of a higher level: rules that are methods, types of values that are no arrays."""

import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.experimental import hijax
from catena.extend.core import Effect


class Scaled(hijax.HiPrimitive):
    """The square, scaled; linear in nothing, so that its derivative comes from ``jvp``."""

    def is_high(self, x, *, scale):
        return scale != 1

    def abstract_eval(self, x, *, scale):
        return hijax.ShapedArray(x.shape, x.dtype), set()

    def impl(self, x, *, scale):
        return x * x

    def to_lojax(self, x, *, scale):
        return scale * x * x

    def jvp(self, primals, tangents, *, scale):
        (x,), (t,) = primals, tangents
        return self.bind(x, scale=scale), 2 * scale * x * hijax.instantiate_zeros(t)


scaled = Scaled("test_scaled")


class Word:
    def __init__(self, letters):
        self.letters = letters


class WordType(hijax.HiType):
    length = hijax.aval_property(lambda word: len(word.letters))

    @hijax.aval_method
    def shout(word):
        return word.letters.upper()


class Say(hijax.HiPrimitive):
    """The number of letters of a word, which is no array."""

    def is_high(self, word):
        return isinstance(word, hijax.HiType)

    def to_lojax(self, word):
        return len(word.letters)


def test_rules_are_methods():
    def f(x):
        return scaled.bind(x, scale=3.0)

    assert float(f(2.0)) == float(jax.jit(f)(2.0)) == float(scaled.bind(2.0, scale=1) * 3) == 12.0
    assert float(jax.grad(f)(2.0)) == float(jax.jit(jax.grad(f))(2.0)) == float(jax.grad(jax.jit(f))(2.0)) == 12.0
    assert "test_scaled[scale=3.0]" in str(jax.make_jaxpr(f)(2.0))
    with pytest.raises(AssertionError, match="Say does not say its types"):
        jax.jit(Say("test_say").bind)(1.0)


def test_values_of_ones_own_have_types_and_are_operands_where_nothing_is_traced():
    hijax.register_hitype(Word, lambda word: WordType())
    word = Word("abc")
    assert isinstance(jax.typeof(word), WordType) and jax.tree.leaves(word) == [word]
    assert Say("test_say").bind(word) == 3
    assert WordType.length.fget(word) == 3 and WordType.shout.fun(word) == "ABC"
    for f in (jax.jit(lambda x: x), jax.grad(lambda x: 1.0), jnp.sin):
        with pytest.raises(TypeError, match="Word"):
            f(word)


def test_effects_of_users_may_be_let_into_loops():
    class Noise(Effect):
        pass

    class Beep(hijax.HiPrimitive):
        def abstract_eval(self, x):
            return x, {Noise()}

        def impl(self, x):
            return x

    def loop(x):
        return lax.scan(lambda c, _: (Beep("test_beep").bind(c), None), x, None, length=2)

    with pytest.raises(NotImplementedError, match="Effects not supported in `scan`"):
        jax.make_jaxpr(loop)(1.0)
    hijax.control_flow_allowed_effects.add_type(Noise)
    assert Noise() in jax.make_jaxpr(loop)(1.0).effects
