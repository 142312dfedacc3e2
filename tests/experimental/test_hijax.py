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


class Sine(hijax.VJPHiPrimitive):
    """``sin(k x y)``, by the methods that are asked for; the reverse derivative is ten times what it should be."""

    def __init__(self, aval, k=3.0):
        self.in_avals, self.out_aval, self.params = (aval, {"y": aval}), [aval], {"k": k}
        super().__init__()

    def expand(self, x, given):
        return [jnp.sin(self.k * x * given["y"])]

    def vjp_fwd(self, nzs_in, x, given):
        return self(x, given), (x, given["y"])

    def vjp_bwd_retval(self, res, outgrad):
        slope = 10 * self.k * jnp.cos(self.k * res[0] * res[1]) * outgrad[0]
        return slope * res[1], {"y": slope * res[0]}

    def batch_dim_rule(self, axis_data, dims):
        return [0]


class Forward(Sine):
    def jvp(self, primals, tangents):
        (x, given), (dx, dy) = primals, tangents
        slope = self.k * jnp.cos(self.k * x * given["y"])
        terms = [t for t in (dx, dy["y"]) if not isinstance(t, hijax.Zero)]
        return self(x, given), [slope * given["y"] * terms[0]]


class Twice(hijax.VJPHiPrimitive):
    """``2 x``, linear: by ``lin``, ``transpose`` and accumulators."""

    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x):
        return 2 * x

    def lin(self, nzs_in, x):
        return self(x), nzs_in

    def linearized(self, residuals, t):
        assert residuals == (True,)
        return 2 * t

    def transpose(self, out_ct, accumulator):
        accumulator.accum(2 * out_ct)


class Bare(Twice):
    lin = hijax.VJPHiPrimitive.lin


SCALAR = jax.typeof(jnp.float32(0))


def test_primitives_with_parameters_have_the_derivatives_that_their_methods_say():
    x, y, sine = jnp.float32(0.3), jnp.float32(0.5), Sine(SCALAR)
    f = lambda x, y: sine(x, {"y": y})[0]  # noqa: E731
    slopes = [10 * 3 * jnp.cos(0.45) * z for z in (y, x)]
    for g in (jax.grad(f, (0, 1)), jax.jit(jax.grad(f, (0, 1))), jax.grad(jax.jit(f), (0, 1))):
        assert jnp.allclose(jnp.stack(g(x, y)), jnp.stack(slopes))
    assert jnp.allclose(jax.jit(f)(x, y), jnp.sin(0.45)) and "call_hi_primitive" in str(jax.make_jaxpr(f)(x, y))
    forward = lambda x: Forward(SCALAR)(x, {"y": y})[0]  # noqa: E731
    assert jnp.allclose(jax.jvp(forward, (x,), (1.0,))[1], slopes[0] / 10) and jnp.allclose(
        jax.grad(forward)(x), slopes[0]
    )
    twice = Twice(SCALAR)
    assert jax.linearize(twice, x)[1](3.0) == 6 and jax.grad(twice)(x) == 2
    assert jax.linear_transpose(twice, x)(1.0) == (2.0,)


def test_primitives_with_parameters_keep_their_derivatives_under_vmap():
    xs, y, sine = jnp.array([0.1, 0.3]), jnp.float32(0.5), Sine(SCALAR)
    f = lambda x, y: sine(x, {"y": y})[0]  # noqa: E731
    each = jax.vmap(jax.grad(f, (0, 1)), (0, None))(xs, y)
    total = jax.grad(lambda x, y: jax.vmap(f, (0, None))(x, y).sum(), (0, 1))(xs, y)
    assert jnp.allclose(each[0], total[0]) and jnp.allclose(each[1].sum(), total[1])
    nested = jax.grad(lambda m: jax.vmap(jax.vmap(f, (0, None)), (0, None))(m, y).sum())(xs[None])
    assert jnp.allclose(nested[0], total[0])
    forward = jax.vmap(lambda x: Forward(SCALAR)(x, {"y": y})[0])
    assert jnp.allclose(jax.jvp(forward, (xs,), (jnp.ones(2),))[1], total[0] / 10)


def test_primitives_with_parameters_are_values_and_say_what_they_lack():
    assert Sine(SCALAR) == Sine(SCALAR) != Sine(SCALAR, 2.0) and hash(Sine(SCALAR)) == hash(Sine(SCALAR))
    with pytest.raises(TypeError, match="structure"):
        Sine(SCALAR)(1.0)
    with pytest.raises(NotImplementedError, match="vmap of Twice.*batch_dim_rule"):
        jax.vmap(Twice(SCALAR))(jnp.ones(2))
    with pytest.raises(NotImplementedError, match="must have the method jvp"):
        jax.jvp(Bare(SCALAR), (1.0,), (1.0,))


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


class PairType(hijax.MutableHiType):
    def lo_ty_qdd(self, state, /):
        return [state, state]

    lo_ty = lambda self: [SCALAR, SCALAR]  # noqa: E731
    lower_val = lambda self, pair: [pair.first, pair.second]  # noqa: E731
    raise_val = lambda self, *parts: Pair(*parts)  # noqa: E731
    read_loval = lambda self, state, pair: [pair.first, pair.second]  # noqa: E731
    new_from_loval = lambda self, state, *parts: Pair(*parts)  # noqa: E731


def test_types_say_what_values_are_made_of():
    known = hijax.AvalQDD(PairType(), SCALAR)
    pair = known.new_from_loval(1.0, 2.0)
    assert known.lo_ty() == [SCALAR, SCALAR] and known.is_high and known.has_qdd and not known.is_writer
    assert known.read_loval_in(pair) == known.read_loval_out(pair) == [1.0, 2.0]
    total = PairType().vspace_add(pair, PairType().vspace_zero())
    assert (float(total.first), float(total.second)) == (1.0, 2.0)
    with pytest.raises(AssertionError, match="no to_tangent_aval"):
        known.to_tangent_aval()
    part = jax.new_ref(jnp.arange(3.0)).at[1:]
    assert isinstance(part, hijax.TransformedRef) and part.type.shape == (2,) and not part.is_dynamic_size
    assert hijax.TransformedRef(part.ref, part.transforms)[...].tolist() == [1.0, 2.0]


class Box:
    """Holds a tree of arrays; its type, that there is a box, and its state, which tree."""

    def __init__(self, tree):
        self.tree = tree

    def cur_qdd(self):
        leaves, structure = jax.tree.flatten(self.tree)
        return structure, tuple(map(jax.typeof, leaves))


class BoxType(hijax.MutableHiType):
    def __eq__(self, other):
        return type(other) is BoxType

    def __hash__(self):
        return hash(BoxType)

    def new_from_loval(self, state, *values):
        return Box(jax.tree.unflatten(state[0], values))

    def read_loval(self, state, box):
        return jax.tree.leaves(box.tree)

    def update_from_loval(self, state, box, *values):
        box.tree = jax.tree.unflatten(state[0], values)


class Make(hijax.HiPrimitive):
    def is_high(self, x):
        return True

    def abstract_eval(self, x):
        return hijax.AvalQDD(BoxType(), (jax.tree.structure(0), (x,))), set()

    def to_lojax(self, x):
        return Box(x)


class Put(hijax.HiPrimitive):
    multiple_results = True

    def is_high(self, box, *leaves, structure):
        return True

    def to_lojax(self, box, *leaves, structure):
        box.tree = jax.tree.unflatten(structure, leaves)
        return []


class Get(hijax.HiPrimitive):
    multiple_results = True

    def is_high(self, box):
        return True

    def to_lojax(self, box):
        return jax.tree.leaves(box.tree)


make, put_, get = Make("test_make"), Put("test_put"), Get("test_get")
hijax.register_hitype(Box, lambda box: BoxType())


def put(box, tree):
    leaves, structure = jax.tree.flatten(tree)
    put_.bind(box, *leaves, structure=structure)


def test_objects_with_a_state_are_arguments_of_compiled_functions():
    box, traces = Box({"a": jnp.float32(1)}), []

    def more(box, x, by):
        traces.append(by)
        put(box, {"a": get.bind(box)[0] + by * x, "n": x})
        return 2 * get.bind(box)[0]

    f = jax.jit(more, static_argnums=2)
    assert float(f(box, 3.0, 2)) == 14.0
    assert jax.tree.map(float, box.tree) == {"a": 7.0, "n": 3.0}  # the state has another structure than before
    assert float(f(box, 3.0, 2)) == 26.0 and float(f(box, 3.0, 2)) == 38.0
    assert len(traces) == 2
    shape = jax.eval_shape(lambda box: more(box, 1.0, 1), box)
    assert shape.shape == () and f.eval_shape(box, 1.0, 1) == shape and float(box.tree["a"]) == 19.0
    onto = jax.jit(lambda b: (put(b, 5.0), get.bind(b))[1], out_shardings=jax.devices()[0])
    assert float(onto(box)[0]) == float(box.tree) == 5.0


def test_an_object_that_is_passed_twice_is_one():
    box = Box(jnp.float32(1))
    out = jax.jit(lambda pair, again: (pair[0] is again, put(again, 2.0), get.bind(pair[1]["b"])))(
        (box, {"b": box}), box
    )
    assert bool(out[0]) and float(out[2][0]) == float(box.tree) == 2.0


def test_objects_with_a_state_live_in_functions_and_beneath_transformations():
    @jax.jit
    def f(box, x):
        own = make.bind(x)
        put(own, get.bind(own)[0] ** 2)
        inner = jax.jit(lambda b: put(b, get.bind(b)[0] + 1.0))
        inner(box)
        return get.bind(own)[0] + jax.grad(lambda y: y * get.bind(box)[0])(x)

    box = Box(jnp.float32(1))
    assert float(f(box, 3.0)) == 11.0 and float(box.tree) == 2.0
    assert float(jax.grad(lambda x: get.bind(make.bind(x * x))[0])(3.0)) == 6.0
    assert jax.vmap(lambda x: get.bind(make.bind(x + 1))[0])(jnp.arange(3)).tolist() == [1, 2, 3]


def test_objects_with_a_state_from_outside_of_what_is_traced_are_refused():
    box = Box(jnp.float32(1))
    for call in (
        lambda: jax.jit(lambda x: x + get.bind(box)[0])(1.0),
        lambda: jax.lax.scan(lambda c, _: (put(box, c), None), 0.0, length=2),
        lambda: jax.jit(lambda b: jax.lax.cond(True, lambda: get.bind(b)[0], lambda: 0.0))(box),
    ):
        with pytest.raises(NotImplementedError, match="the Box, whose type has a state, comes from outside"):
            call()
    with pytest.raises(NotImplementedError, match="pmap: an argument is of a user's own type with a state"):
        jax.pmap(lambda b, x: x)(box, jnp.ones(1))
    assert float(box.tree) == 1.0
