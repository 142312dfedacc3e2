"""What `spec/understanding-jaxprs.rst` says of jaxprs, in the form that today's grammar gives it.

The page was written for an older printer; where the two differ, the golden texts here follow
`api/behaviour-notes.md`, section 3. They show every variable's type, and print literals with theirs.
"""

import re
import textwrap

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import jit, lax, make_jaxpr

NOISE = re.compile(r"\s*\b(out_sharding|sharding|accuracy|dimensions)=None")


def normalise(text):
    """One line, without parameters that say only "nothing special", however the printer broke its lines."""
    text = NOISE.sub("", str(text).replace("[]", "<scalar>"))  # a scalar's type is no empty parameter list
    text = re.sub(r"lambda ([^;]*);", r"lambda \1|", text)  # the one semicolon that means something
    text = re.sub(r"[\s;]+", " ", text)
    text = re.sub(r"(?<=[\[(]) | (?=[\])])", "", text)
    return text.replace("[]", "").replace("<scalar>", "[]").strip()


def check(function, args, golden):
    closed = make_jaxpr(function)(*args)
    assert normalise(closed) == normalise(golden), f"\ngot\n{closed}\nexpected\n{textwrap.dedent(golden)}"
    return closed


def primitives(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def inner_jaxprs(value):
    """Every jaxpr in a parameter, at any depth of tuples; closed ones opened."""
    if hasattr(value, "eqns"):
        yield getattr(value, "jaxpr", value)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from inner_jaxprs(item)


def all_eqns(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for value in eqn.params.values():
            for inner in inner_jaxprs(value):
                yield from all_eqns(inner)


def func1(first, second):
    temp = first + jnp.sin(second) * 3.0
    return jnp.sum(temp)


FUNC1 = """
{ lambda ; a:f32[8] b:f32[8]. let
    c:f32[8] = sin b
    d:f32[8] = mul c 3.0:f32[]
    e:f32[8] = add a d
    f:f32[] = reduce_sum[axes=(0,)] e
  in (f,) }
"""
TWO_VECTORS = jnp.zeros(8), jnp.ones(8)


# ------------------------------------------------------------------------- first-order programs


def test_equations_in_order_with_scalar_literals_inline():
    check(func1, TWO_VECTORS, FUNC1)


def test_python_functions_and_branches_are_traced_through():
    def apply(inner, first, second):
        return jnp.sum(first + inner(second) * 3.0)

    def inner(second):
        if second.shape[0] > 4:
            return jnp.sin(second)
        raise AssertionError("the shape decides while tracing")

    check(lambda first, second: apply(inner, first, second), TWO_VECTORS, FUNC1)


def test_trees_become_flat_lists_of_variables():
    check(lambda pair: func1(*pair), [TWO_VECTORS], FUNC1)
    check(
        lambda d: (d["b"] * 2.0, d["a"]),
        [{"a": 1, "b": jnp.ones(3)}],
        "{ lambda ; a:i32[] b:f32[3]. let c:f32[3] = mul b 2.0:f32[] in (c, a) }",
    )


def test_arrays_from_outside_become_constvars():
    outside = jnp.ones(8)
    closed = check(
        lambda first: first + outside * 3.0 - outside,
        [jnp.ones(8)],
        """
        { lambda a:f32[8]; b:f32[8]. let
            c:f32[8] = mul a 3.0:f32[]
            d:f32[8] = add b c
            e:f32[8] = sub d a
          in (e,) }
        """,
    )
    assert len(closed.consts) == len(closed.literals) == len(closed.jaxpr.constvars) == 1
    np.testing.assert_array_equal(closed.consts[0], outside)


def test_scalars_from_outside_are_literals():
    check(
        lambda x: x + np.float32(2),
        [jnp.ones(3)],
        "{ lambda ; a:f32[3]. let b:f32[3] = add a 2.0:f32[] in (b,) }",
    )


def test_arrays_made_inside_are_equations_not_constants():
    check(
        lambda first: first + jnp.sin(jnp.ones(8)) * 3.0,
        [jnp.ones(8)],
        """
        { lambda ; a:f32[8]. let
            b:f32[8] = broadcast_in_dim 1.0:f32[]
            c:f32[8] = sin b
            d:f32[8] = mul c 3.0:f32[]
            e:f32[8] = add a d
          in (e,) }
        """,
    )


def test_unused_inputs_stay_and_unused_results_print_as_underscore():
    check(
        lambda x, y: (lax.sin(x), x * 2.0)[1],
        (1.0, 2),
        "{ lambda ; a:f32[] b:i32[]. let _:f32[] = sin a; c:f32[] = mul a 2.0:f32[] in (c,) }",
    )


def test_an_empty_program():
    assert str(make_jaxpr(lambda x: x)(1.0)) == "{ lambda ; a:f32[]. let  in (a,) }"
    assert str(make_jaxpr(lambda x: 2.0)(1)) == "{ lambda ; a:i32[]. let  in (2.0:f32[],) }"


def test_layout_of_a_short_and_of_a_longer_program():
    short = make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
    assert str(short) == "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }"
    longer = make_jaxpr(lambda x: 3 * x + 1)(jnp.ones(3))
    assert str(longer) == (
        "{ lambda ; a:f32[3]. let\n    b:f32[3] = mul 3.0:f32[] a\n    c:f32[3] = add b 1.0:f32[]\n  in (c,) }"
    )


def test_variable_names_go_on_after_z():
    text = str(make_jaxpr(lambda x: [x * float(i) for i in range(2, 30)])(1.0))
    assert "    z:f32[] = mul a 26.0:f32[]\n    ba:f32[] = mul a 27.0:f32[]\n" in text


# ------------------------------------------------------------------------------- the data behind


def test_the_fields_of_a_closed_jaxpr():
    outside = jnp.arange(3.0)
    closed = make_jaxpr(lambda x, n: (x * outside, n + 1))(jnp.ones(3), 2)
    assert [str(aval) for aval in closed.in_avals] == ["float32[3]", "~int32[]"]
    assert [str(aval) for aval in closed.out_avals] == ["float32[3]", "~int32[]"]
    assert repr(closed.in_avals[0]) == "ShapedArray(float32[3])"
    assert len(closed.jaxpr.invars) == 2 and len(closed.jaxpr.outvars) == 2
    assert primitives(closed.jaxpr) == ["mul", "add"]
    assert [var.aval.shape for var in closed.jaxpr.constvars] == [(3,)]


def test_constants_go_before_arguments():
    outside = jnp.arange(3.0)
    closed = make_jaxpr(lambda x: x - outside)(jnp.ones(3))
    [result] = jax.core.eval_jaxpr(closed.jaxpr, closed.literals, jnp.full(3, 5.0))
    np.testing.assert_array_equal(result, [5, 4, 3])
    [result] = jax.core.eval_jaxpr(closed.jaxpr, [jnp.ones(3)], jnp.full(3, 5.0))
    np.testing.assert_array_equal(result, [4, 4, 4])


def test_a_jaxpr_has_no_free_variables():
    outside = jnp.arange(3.0)

    def f(x, n):
        total = lax.fori_loop(0, n, lambda i, c: c + outside * x, jnp.zeros(3))
        return lax.cond(n > 2, lambda: total, lambda: outside + x)

    def check_closed(jaxpr):
        known = {*jaxpr.constvars, *jaxpr.invars}
        for eqn in jaxpr.eqns:
            assert all(hasattr(atom, "val") or atom in known for atom in eqn.invars), eqn
            known.update(eqn.outvars)
        assert all(hasattr(atom, "val") or atom in known for atom in jaxpr.outvars)

    closed = make_jaxpr(f)(2.0, 3)
    check_closed(closed.jaxpr)
    for eqn in all_eqns(closed.jaxpr):
        for value in eqn.params.values():
            for inner in inner_jaxprs(value):
                check_closed(inner)


def test_return_shape():
    _, shape = make_jaxpr(lambda x: {"y": x > 0}, return_shape=True)(jnp.ones(2))
    assert shape["y"].shape == (2,) and shape["y"].dtype == np.bool_


# -------------------------------------------------------------------------- branches: cond, switch


def test_switch_is_cond_with_a_clamped_index():
    def one_of_three(index, arg):
        return lax.switch(index, [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0], arg)

    check(
        one_of_three,
        (1, 5.0),
        """
        { lambda ; a:i32[] b:f32[]. let
            c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
            d:i32[] = clamp 0:i32[] c 2:i32[]
            e:f32[] = cond[
              branches=(
                { lambda ; f:f32[]. let g:f32[] = add f 1.0:f32[] in (g,) }
                { lambda ; h:f32[]. let i:f32[] = sub h 2.0:f32[] in (i,) }
                { lambda ; j:f32[]. let k:f32[] = add j 3.0:f32[] in (k,) }
              )
            ] d b
          in (e,) }
        """,
    )
    assert [float(one_of_three(i, 5.0)) for i in (-7, 0, 1, 2, 9)] == [6, 6, 3, 8, 8]


def test_cond_takes_an_index_and_lists_the_false_branch_first():
    def func7(arg):
        return lax.cond(arg >= 0.0, lambda xtrue: xtrue + 3.0, lambda xfalse: xfalse - 3.0, arg)

    check(
        func7,
        [5.0],
        """
        { lambda ; a:f32[]. let
            b:bool[] = ge a 0.0:f32[]
            c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
            d:f32[] = cond[
              branches=(
                { lambda ; e:f32[]. let f:f32[] = sub e 3.0:f32[] in (f,) }
                { lambda ; g:f32[]. let h:f32[] = add g 3.0:f32[] in (h,) }
              )
            ] c a
          in (d,) }
        """,
    )


def test_a_constant_of_one_branch_is_passed_to_both():
    outside = jnp.ones(1)

    def func8(arg1, arg2):
        return lax.cond(arg1 >= 0.0, lambda xtrue: xtrue[0], lambda xfalse: outside + xfalse[1], arg2)

    check(
        func8,
        (5.0, (jnp.zeros(1), 2.0)),
        """
        { lambda a:f32[1]; b:f32[] c:f32[1] d:f32[]. let
            e:bool[] = ge b 0.0:f32[]
            f:i32[] = convert_element_type[new_dtype=int32 weak_type=False] e
            g:f32[1] = cond[
              branches=(
                { lambda ; h:f32[1] i:f32[1] j:f32[]. let
                    k:f32[] = convert_element_type[new_dtype=float32 weak_type=False] j
                    l:f32[1] = add h k
                  in (l,) }
                { lambda ; m:f32[1] n:f32[1] o:f32[]. let  in (n,) }
              )
            ] f a c d
          in (g,) }
        """,
    )
    assert func8(5.0, (jnp.zeros(1), 2.0)).tolist() == [0]
    assert func8(-5.0, (jnp.zeros(1), 2.0)).tolist() == [3]


# ---------------------------------------------------------------------------- loops: while, scan


def test_fori_loop_with_a_traced_bound_is_a_while():
    def func10(arg, n):
        ones = jnp.ones(arg.shape)
        return lax.fori_loop(0, n, lambda i, carry: carry + ones * 3.0 + arg, arg + ones)

    check(
        func10,
        (np.ones(16), 5),
        """
        { lambda ; a:f32[16] b:i32[]. let
            c:f32[16] = broadcast_in_dim 1.0:f32[]
            d:f32[16] = add a c
            _:i32[] _:i32[] e:f32[16] = while[
              body_jaxpr={ lambda ; f:f32[16] g:f32[16] h:i32[] i:i32[] j:f32[16]. let
                  k:i32[] = add h 1:i32[]
                  l:f32[16] = mul f 3.0:f32[]
                  m:f32[16] = add j l
                  n:f32[16] = add m g
                in (k, i, n) }
              body_nconsts=2
              cond_jaxpr={ lambda ; o:i32[] p:i32[] q:f32[16]. let
                  r:bool[] = lt o p
                in (r,) }
              cond_nconsts=0
            ] c a 0:i32[] b d
          in (e,) }
        """,
    )
    np.testing.assert_array_equal(func10(np.ones(16), 5), np.full(16, 22.0))


def test_fori_loop_with_known_bounds_is_a_scan():
    check(
        lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[0] * 2.0, c[1] + 1.0), (x, y))[0],
        (1.0, 2.0),
        """
        { lambda ; a:f32[] b:f32[]. let
            _:i32[] c:f32[] _:f32[] = scan[
              jaxpr={ lambda ; d:i32[] e:f32[] f:f32[]. let
                  g:i32[] = add d 1:i32[]
                  h:f32[] = mul e 2.0:f32[]
                  i:f32[] = add f 1.0:f32[]
                in (g, h, i) }
              length=3
              num_carry=3
              num_consts=0
              reverse=False
              unroll=1
            ] 0:i32[] a b
          in (c,) }
        """,
    )


def test_while_loop_passes_what_its_functions_capture():
    check(
        lambda x: lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * x), (0, 1.0)),
        [2.0],
        """
        { lambda ; a:f32[]. let
            b:i32[] c:f32[] = while[
              body_jaxpr={ lambda ; d:f32[] e:i32[] f:f32[]. let
                  g:i32[] = add e 1:i32[]
                  h:f32[] = mul f d
                in (g, h) }
              body_nconsts=1
              cond_jaxpr={ lambda ; i:i32[] j:f32[]. let
                  k:bool[] = lt i 10:i32[]
                in (k,) }
              cond_nconsts=0
            ] a 0:i32[] 1.0:f32[]
          in (b, c) }
        """,
    )


def test_scan_counts_its_constants_and_carries():
    def func11(arr, extra):
        ones = jnp.ones(arr.shape)

        def body(carry, aelems):
            ae1, ae2 = aelems
            return carry + ae1 * ae2 + extra, carry

        return lax.scan(body, 0.0, (arr, ones))

    check(
        func11,
        (np.ones(16), 5.0),
        """
        { lambda ; a:f32[16] b:f32[]. let
            c:f32[16] = broadcast_in_dim 1.0:f32[]
            d:f32[] e:f32[16] = scan[
              jaxpr={ lambda ; f:f32[] g:f32[] h:f32[] i:f32[]. let
                  j:f32[] = mul h i
                  k:f32[] = convert_element_type[new_dtype=float32 weak_type=False] g
                  l:f32[] = add k j
                  m:f32[] = convert_element_type[new_dtype=float32 weak_type=False] f
                  n:f32[] = add l m
                in (n, g) }
              length=16
              num_carry=1
              num_consts=1
              reverse=False
              unroll=1
            ] b 0.0:f32[] a c
          in (d, e) }
        """,
    )
    total, partial = func11(np.ones(16), 5.0)
    assert float(total) == 96
    np.testing.assert_array_equal(partial, np.arange(16) * 6.0)


# -------------------------------------------------------------------------------- calls: jit, pmap


def test_a_jitted_function_is_a_call_that_shares_names_with_its_operands():
    def func12(arg):
        @jit
        def inner(x):
            return x + arg * jnp.ones(1)

        return arg + inner(arg - 2.0)

    check(
        func12,
        [1.0],
        """
        { lambda ; a:f32[]. let
            b:f32[] = sub a 2.0:f32[]
            c:f32[1] = jit[
              name=inner
              jaxpr={ lambda ; a:f32[] b:f32[]. let
                  d:f32[1] = broadcast_in_dim 1.0:f32[]
                  e:f32[] = convert_element_type[new_dtype=float32 weak_type=False] a
                  f:f32[1] = mul e d
                  g:f32[] = convert_element_type[new_dtype=float32 weak_type=False] b
                  c:f32[1] = add g f
                in (c,) }
            ] a b
            h:f32[] = convert_element_type[new_dtype=float32 weak_type=False] a
            i:f32[1] = add h c
          in (i,) }
        """,
    )
    assert func12(1.0).tolist() == [1]


def test_a_jaxpr_used_twice_is_printed_once():
    twice = jit(lambda x: lax.sin(lax.sin(x)))
    check(
        lambda x: twice(twice(x)),
        [1.0],
        """
        let lambda = { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b in (c,) } in
        { lambda ; d:f32[]. let
            e:f32[] = jit[name=<lambda> jaxpr=lambda] d
            f:f32[] = jit[name=<lambda> jaxpr=lambda] e
          in (f,) }
        """,
    )


def test_a_long_inner_jaxpr_is_printed_first():
    def long(x):
        for _ in range(11):
            x = x * 2.0
        return x

    text = str(make_jaxpr(lambda x: jit(long)(x) + 1.0)(1.0))
    assert text.startswith("let long = { lambda ; a:f32[]. let\n    b:f32[] = mul a 2.0:f32[]\n")
    assert "m:f32[]. let\n    n:f32[] = jit[name=long jaxpr=long] m\n" in text


def test_a_donated_argument_shows():
    donating = jit(lambda x: x * 2.0, donate_argnums=0)
    text = normalise(make_jaxpr(donating)(jnp.ones(3)))
    assert "jit[name=<lambda> donated_invars=(True,) jaxpr={" in text


def test_pmap_maps_its_arguments_and_broadcasts_what_it_captures():
    def func13(arr, extra):
        def inner(x):
            return (x + extra + jnp.ones(1)) / lax.psum(x, axis_name="rows")

        return jax.pmap(inner, axis_name="rows")(arr)

    closed = make_jaxpr(func13)(jnp.ones((1, 3)), 5.0)
    assert [str(aval) for aval in closed.out_avals] == ["float32[1,3]"]
    [psum] = [eqn for eqn in all_eqns(closed.jaxpr) if eqn.primitive.name == "psum"]
    assert "rows" in psum.params["axes"]
    np.testing.assert_allclose(func13(jnp.ones((1, 3)), 5.0), np.full((1, 3), 7.0))


# ------------------------------------------------------------- transformations write jaxprs too


@pytest.mark.parametrize(
    ("function", "args", "golden"),
    [
        (
            jax.grad(jnp.sin),
            [1.0],
            """
            { lambda ; a:f32[]. let
                _:f32[] = sin a
                b:f32[] = cos a
                c:f32[] = mul 1.0:f32[] b
              in (c,) }
            """,
        ),
        (
            lambda x, t: jax.jvp(jnp.sin, (x,), (t,)),
            (1.0, 1.0),
            """
            { lambda ; a:f32[] b:f32[]. let
                c:f32[] = sin a
                d:f32[] = cos a
                e:f32[] = mul b d
              in (c, e) }
            """,
        ),
        (
            jax.vmap(jnp.dot, in_axes=(0, None)),
            (jnp.ones((3, 4)), jnp.ones(4)),
            """
            { lambda ; a:f32[3,4] b:f32[4]. let
                c:f32[3] = dot_general[
                  dimension_numbers=(([1], [0]), ([], []))
                  preferred_element_type=float32
                ] a b
              in (c,) }
            """,
        ),
        (
            jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i"),
            [jnp.ones(3)],
            """
            { lambda ; a:f32[3]. let
                b:f32[] = reduce_sum[axes=(0,)] a
                c:f32[3] = broadcast_in_dim b
              in (c,) }
            """,
        ),
    ],
    ids=["grad", "jvp", "vmap", "psum under vmap"],
)
def test_transformed_functions(function, args, golden):
    check(function, args, golden)


def test_a_list_argument_is_one_variable_per_element():
    check(
        lambda x: jnp.sum(jnp.array(x)),
        [[0, 1, 2]],
        """
        { lambda ; a:i32[] b:i32[] c:i32[]. let
            d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
            e:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
            f:i32[] = convert_element_type[new_dtype=int32 weak_type=False] c
            g:i32[1] = broadcast_in_dim d
            h:i32[1] = broadcast_in_dim e
            i:i32[1] = broadcast_in_dim f
            j:i32[3] = concatenate[dimension=0] g h i
            k:i32[] = reduce_sum[axes=(0,)] j
          in (k,) }
        """,
    )


# How many equations JAX has: jnp.mean of any axes is a sum and a quotient, and what is made of it is no longer.
@pytest.mark.parametrize(
    ("function", "names"),
    {
        "mean": (jnp.mean, "reduce_sum div"),
        "mean of an axis": (lambda x: jnp.mean(x, axis=1), "reduce_sum div"),
        "average": (lambda x: jnp.average(x, axis=0), "reduce_sum div"),
        "gradient of mean": (jax.grad(jnp.mean), "reduce_sum div div broadcast_in_dim"),
        "var": (jnp.var, "reduce_sum broadcast_in_dim div broadcast_in_dim sub square reduce_sum div"),
        "std": (
            lambda x: jnp.std(x, axis=1),
            "reduce_sum broadcast_in_dim div broadcast_in_dim sub square reduce_sum div sqrt",
        ),
    }.values(),
)
def test_averages_have_no_equations_to_spare(function, names):
    jaxpr = jax.make_jaxpr(function)(jnp.ones((2, 3))).jaxpr
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == names.split()
