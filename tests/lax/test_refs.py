"""References: eager and compiled programs beside their twins without references, what is in place, and the errors."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.runtime.buffers import pool

A = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


def ref_of(x=(0.0, 1.0, 2.0)):
    return jax.new_ref(jnp.asarray(x, jnp.float32))


def address(ref) -> int:
    return ref._core._value.ctypes.data


# ---- reading and writing

INDICES = {
    "whole": ...,
    "none": None,
    "integer": 1,
    "negative": -1,
    "numpy integer": np.int64(1),
    "slice": slice(1, None),
    "integers": (0, -1, 2),
    "ellipsis": (..., 2),
    "inner slice": (slice(None), slice(1, 3)),
    "strided": (slice(None), slice(0, 3, 2), slice(1, None, 2)),
    "window": (0, jax.ds(1, 2)),
    "strided window": (slice(None), 0, jax.ds(0, 2, 3)),
    "array": np.array([1, 0]),
    "negative array": (slice(None), np.array([-1, 0])),
    "pairs": (np.array([0, 1]), np.array([2, 0])),
    "apart": (np.array([0, 1]), slice(None), np.array([2, 0])),
    "integer and array": (0, slice(None), np.array([3, 1])),
    "table": (np.array([[0], [1]]), np.array([0, 2])),
    "array and slice": (np.array([1, 0]), slice(1, 3), slice(0, 4, 2)),
    "scalar array": np.asarray(1),
    "empty": (slice(None), slice(2, 2)),
}


def as_numpy(index):
    """The index for NumPy."""
    items = index if isinstance(index, tuple) else (index,)
    if index is None:
        return ...
    return tuple(
        slice(i.start, i.start + i.size * i.stride, i.stride) if type(i).__name__ == "Slice" else i for i in items
    )


@pytest.mark.parametrize("name", INDICES)
def test_reads_and_writes_are_numpys(name):
    index, key = INDICES[name], as_numpy(INDICES[name])
    expected, added = A.copy(), A.copy()
    part = expected[key]
    new = np.arange(1.0, part.size + 1, dtype=np.float32).reshape(part.shape)

    def program(x, new):
        ref, sums = jax.new_ref(x), jax.new_ref(x)
        got, old = ref[index], jax.ref.swap(ref, index, new)
        jax.ref.addupdate(sums, index, new)
        return got, old, jax.freeze(ref), jax.freeze(sums)

    expected[key] = new
    added[key] += new
    for run in (program, jax.jit(program)):
        got, old, after, sums = run(A, new)
        for x, want in zip((got, old, after, sums), (A[key], A[key], expected, added), strict=True):
            np.testing.assert_array_equal(x, want)


def test_an_index_that_occurs_twice_writes_last_and_adds_twice():
    def program(x):
        ref = jax.new_ref(x)
        ref[jnp.array([0, 0])] = jnp.array([5.0, 6.0])
        jax.ref.addupdate(ref, jnp.array([1, 1]), jnp.array([10.0, 20.0]))
        return ref[...]

    for run in (program, jax.jit(program)):
        assert run(jnp.zeros(3)).tolist() == [6.0, 30.0, 0.0]


def test_traced_indices_are_moved_inside_and_arrays_of_them_write_nothing_outside():
    ref = ref_of()
    read = jax.jit(lambda i: ref[i])
    assert [float(read(i)) for i in (1, 7, -1, -9)] == [1.0, 2.0, 2.0, 0.0]
    assert ref[jnp.array([7])].tolist() == [2.0]
    ref[jnp.array([7, 1])] = jnp.array([8.0, 9.0])
    assert ref[...].tolist() == [0.0, 9.0, 2.0]
    jax.jit(lambda i: ref.__setitem__(jax.ds(i, 2), jnp.ones(2)))(2)
    assert ref[...].tolist() == [0.0, 1.0, 1.0]


def test_views_read_and_write_parts():
    def program(x):
        ref = jax.new_ref(x)
        rows = ref.at[1]
        rows.at[1:].set(jnp.zeros((2, 4)))
        rows.T[0] = jnp.full(3, 7.0)
        ref.reshape(6, 4)[5, 1] += 3.0
        rows.addupdate(jnp.ones(4), 0)
        return ref[...], rows[...], ref.transpose(2, 0, 1)[0], rows.shape, len(rows)

    expected = A.copy()
    expected[1, 1:], expected[1, :, 0] = 0, 7
    expected[1, 2, 1] += 3
    expected[1, 0] += 1
    for run in (program, jax.jit(program)):
        whole, rows, turned, shape, length = run(A)
        np.testing.assert_array_equal(whole, expected)
        np.testing.assert_array_equal(rows, expected[1])
        np.testing.assert_array_equal(turned, expected.transpose(2, 0, 1)[0])
        assert (tuple(map(int, shape)), int(length)) == ((3, 4), 3)


def test_weak_scalars_take_the_dtype_and_others_keep_theirs():
    for dtype in (jnp.bfloat16, jnp.float16, jnp.float32):
        ref = jax.new_ref(jnp.zeros(2, dtype))
        ref[0] = 1.5
        assert ref[...].dtype == dtype and ref[...].tolist() == [1.5, 0.0]
    ref = jax.new_ref(jnp.zeros(2, jnp.int8))
    ref[0] = 3
    assert ref[...].dtype == np.int8
    assert jax.new_ref(1.0)[...].weak_type and not ref[...].weak_type


def test_integers_become_integers_of_another_width():
    for how in (lambda f: f, jax.jit):

        @how
        def written(wide, narrow):
            ref, bytes_ = jax.new_ref(jnp.zeros(3, jnp.int32)), jax.new_ref(jnp.zeros(3, jnp.uint8))
            ref[0], ref[1:] = narrow, jnp.ones(2, jnp.int16)
            bytes_[0] = wide
            return ref[...], bytes_[...]

        ref, bytes_ = written(jnp.int32(300), jnp.int8(-2))
        assert (ref.dtype, ref.tolist(), bytes_.dtype, bytes_.tolist()) == (np.int32, [-2, 1, 1], np.uint8, [44, 0, 0])
    for value in (jnp.float32(1), jnp.bool_(True)):
        with pytest.raises(ValueError, match="does not fit into a reference of type"):
            jax.new_ref(jnp.zeros(3, jnp.int32))[0] = value


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32, np.float16, np.complex64])
def test_every_dtype_of_elements(dtype):
    def program(x):
        ref = jax.new_ref(x)
        ref[0] = x[1]
        return jax.ref.swap(ref, slice(1, 3), x[:2]), ref[...]

    x = np.array([1, 0, 1, 1]).astype(dtype)
    for run in (program, jax.jit(program)):
        old, new = run(x)
        assert new.dtype == dtype and new.tolist() == [x[1], x[0], x[1], x[3]]
        assert old.tolist() == x[1:3].tolist()


def test_references_of_random_keys_and_of_no_elements():
    keys = jax.random.split(jax.random.key(0), 3)

    @jax.jit
    def rotate(ref):
        first = ref[0]
        ref[0] = ref[2]
        ref[2] = first

    ref = jax.new_ref(keys)
    rotate(ref)
    np.testing.assert_array_equal(jax.random.key_data(ref[...]), jax.random.key_data(keys)[jnp.array([2, 1, 0])])
    empty = jax.new_ref(jnp.zeros((0, 3)))
    empty[...] = jnp.ones((0, 3))
    assert empty[:, 1].shape == (0,)


# ---- in place

BIG = 25_000_000  # elements: 100 MB


def test_a_hundred_megabytes_are_updated_a_million_times_in_place():
    ref = jax.new_ref(jnp.zeros(BIG))

    @jax.jit
    def count(ref, steps):
        def step(i, _):
            ref[i * 7 % BIG] += 1.0

        lax.fori_loop(0, steps, step, None)

    before, where = pool.statistics(), address(ref)
    count(ref, 1_000_000)
    assert address(ref) == where
    after = pool.statistics()
    assert (after["made"], after["reused"]) == (before["made"], before["reused"])
    assert float(ref[7]) == 1.0 and float(ref[6]) == 0.0


def test_memory_stays_where_it_is_whoever_writes():
    x = jnp.arange(50_000.0)
    ref = jax.new_ref(x)
    ref[0] = 1.0  # x is still about, so this is a copy
    where = address(ref)
    assert float(x[0]) == 0.0 and where != x.unsafe_buffer_pointer()

    def closed(i):
        ref[i] = 2.0

    writers = [
        lambda: ref.__setitem__(3, 4.0),
        lambda: ref.__setitem__(slice(3, 9), jnp.ones(6)),
        lambda: ref.__setitem__(jnp.array([1, 5]), jnp.ones(2)),
        lambda: jax.jit(closed)(5),
        lambda: jax.jit(lambda r: r.addupdate(1.0, 5))(ref),
        lambda: lax.scan(lambda c, i: (c, closed(i)), None, jnp.arange(4)),
        lambda: lax.while_loop(lambda i: i < 3, lambda i: (closed(i), i + 1)[1], 0),
        lambda: lax.cond(ref[0] > 0, lambda: closed(7), lambda: None),
    ]
    for write in writers:
        write()
        assert address(ref) == where


def test_what_was_read_does_not_change():
    ref = ref_of(np.arange(40_000.0))
    whole, part, view = ref[...], ref[1:3], ref.T[...]
    jax.jit(lambda r: r.__setitem__(1, 9.0))(ref)
    again = ref[...]
    ref[1] = 10.0
    ref[...] += 1.0
    assert [float(x[i]) for x, i in ((whole, 1), (part, 0), (view, 1), (again, 1), (ref[...], 1))] == [1, 1, 1, 9, 11]
    last = jax.freeze(ref)
    assert float(last[1]) == 11.0


def test_a_result_that_is_the_new_value_is_a_snapshot():
    ref = ref_of()

    @jax.jit
    def step(ref):
        ref[0] += 1.0
        return ref[...]

    first, second = step(ref), step(ref)
    assert (float(first[0]), float(second[0]), float(ref[0])) == (1.0, 2.0, 2.0)


# ---- control flow


def test_order_of_reads_and_writes_is_that_of_the_program():
    def program(ref):
        a = ref[0]
        ref[0] = a + 1.0
        b = ref[0]
        ref[0] = b * 10.0
        jax.jit(lambda: ref.addupdate(5.0, 0))()
        return a, b, ref[0], ref[0]

    for run in (program, jax.jit(program)):
        assert list(map(float, run(ref_of()))) == [0.0, 1.0, 15.0, 15.0]


def test_loops_and_branches_write_what_python_would():
    def program(ref, n):
        lax.fori_loop(0, 3, lambda i, _: ref.addupdate(1.0, i), None)
        lax.fori_loop(0, n, lambda i, _: ref.addupdate(10.0, i), None)
        lax.scan(lambda c, i: (c * 2, ref.__setitem__(i, ref[i] + c)), 1.0, jnp.arange(2))
        lax.while_loop(lambda i: ref[2] < 30.0, lambda i: (ref.addupdate(7.0, 2), i + 1)[1], 0)
        lax.cond(ref[0] > 5, lambda: ref.__setitem__(0, -1.0), lambda: None)
        lax.switch(n, [lambda r: None, lambda r: None, lambda r: r.addupdate(0.5, 1)], ref)
        return ref[...]

    for run in (program, jax.jit(program)):
        assert run(ref_of(), 2).tolist() == [-1.0, 14.5, 31.0]
    with jax.disable_jit():
        assert program(ref_of(), 2).tolist() == [-1.0, 14.5, 31.0]


def test_a_condition_may_write():
    def program(ref):
        def cond(i):
            ref[0] += 1.0
            return ref[0] < 4.0

        return lax.while_loop(cond, lambda i: i + 1, 0), ref[0]

    for run in (program, jax.jit(program)):
        assert list(map(float, run(ref_of()))) == [3.0, 4.0]


def test_a_scan_runs_over_a_reference():
    def program(ref):
        def step(total, row):
            row[0] = total
            return total + row[1], row[...]

        return lax.scan(step, jnp.float32(0), ref), ref[...]

    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    for run in (program, jax.jit(program)):
        (total, rows), after = run(jax.new_ref(x))
        assert float(total) == 9.0
        np.testing.assert_array_equal(rows, [[0, 1], [1, 3], [4, 5]])
        np.testing.assert_array_equal(after, rows)


def test_references_in_trees_and_as_compiled_arguments():
    state = {"n": jax.new_ref(0), "sums": [jax.new_ref(jnp.zeros(2))]}

    @jax.jit
    def observe(state, x):
        state["n"][...] += 1
        state["sums"][0][...] += x

    for x in (1.0, 2.0):
        observe(state, jnp.full(2, x))
    compiled = observe.lower(state, jnp.ones(2)).compile()
    compiled(state, jnp.ones(2))
    assert (int(state["n"][...]), state["sums"][0][...].tolist()) == (3, [4.0, 4.0])
    assert jax.eval_shape(lambda s: s["sums"][0][...], state).shape == (2,)


def test_a_jitted_function_that_closes_over_a_reference_is_traced_once():
    ref, traced = ref_of(), []

    @jax.jit
    def step(x):
        traced.append(x)
        ref[0] += x

    for x in (1.0, 2.0, 3.0):
        step(x)
    assert (len(traced), float(ref[0])) == (1, 6.0)


def test_checkpoint_and_custom_rules_write():
    @jax.custom_vjp
    def noting(ref, x):
        ref[0] = x
        return 2.0 * x

    noting.defvjp(lambda ref, x: (noting(ref, x), x), lambda x, ct: (None, 3.0 * ct))
    for run in (lambda f: f, jax.jit):
        ref = ref_of()
        assert float(run(lambda x: noting(ref, x))(3.0)) == 6.0 and float(ref[0]) == 3.0  # noqa: B023
        assert float(run(jax.grad(lambda x: noting(ref, x)))(4.0)) == 3.0 and float(ref[0]) == 4.0  # noqa: B023
        assert float(run(jax.checkpoint(lambda r, x: (r.__setitem__(1, x), x)[1]))(ref, 5.0)) == 5.0
        assert float(ref[1]) == 5.0


def test_jaxprs_inside_primitives_may_have_references_of_their_own():
    def rotated(x):
        ref = jax.new_ref(x)
        ref[0] = ref[1]
        return ref[...]

    composed = lax.composite(rotated, "rotated")
    expected = [2.0, 2.0]
    x = jnp.array([1.0, 2.0])
    for run in (composed, jax.jit(composed), jax.jit(lambda x: jax.vmap(composed)(x[None])[0])):
        assert run(x).tolist() == expected
    _, gradient = jax.value_and_grad(lambda x: composed(x).sum())(x)
    assert gradient.tolist() == [0.0, 2.0]


def test_stages_show_programs_on_references():
    ref, other = ref_of(), ref_of()

    @jax.jit
    def step(ref):
        ref[0] += other[1]

    lowered = step.lower(ref)
    compiled = lowered.compile()
    assert "float32[3]" in lowered.as_text() and "step" in step.explain(ref)
    assert compiled.as_text("nests") and compiled.as_text("program")
    compiled(ref)
    assert float(ref[0]) == 1.0
    assert ref.unsafe_buffer_pointer() == address(ref) and not ref.committed and ref.sharding.device_set


def test_callbacks_show_the_value(capsys):
    ref = ref_of()
    jax.debug.print("{}", ref)
    jax.jit(lambda r: jax.debug.print("{}", r))(ref)
    assert capsys.readouterr().out == "[0. 1. 2.]\n" * 2


# ---- what jaxprs say


def test_jaxprs_print_reads_and_writes():
    def program(ref, i, x):
        ref[0] = x
        ref[i, 1:] += x[1:]
        old = jax.ref.swap(ref, (slice(None), jnp.array([0])), jnp.zeros((2, 1)))
        jax.ref.addupdate(ref.at[1], 2, 1.0)
        return ref[...], old, ref.T[0]

    text = str(jax.make_jaxpr(program)(jax.new_ref(jnp.zeros((2, 3))), 1, jnp.ones(3)))
    for line in (
        "lambda a:i32[1]; b:Ref{f32[2,3]}",
        "b[0,:] <- d",
        "<- b[...]",
        "<- b[c,1:]",
        "b[:,a] <- b[:,a]",
        "+= 1.0",
    ):
        assert line in text, text


def test_jaxprs_know_their_effects():
    def program(a, b):
        local = jax.new_ref(a[0])
        b[0] = local[...]
        return jax.jit(lambda: b.addupdate(1.0, 1))()

    effects = jax.make_jaxpr(program)(ref_of(), ref_of()).effects
    assert {str(e) for e in effects} == {"ReadEffect(0)", "WriteEffect(1)", "AccumEffect(1)"}
    assert not jax.make_jaxpr(lambda x: jax.new_ref(x)[0])(jnp.ones(2)).effects
    assert jax.ref.AbstractRef(jax.typeof(jnp.zeros(3))) is jax.typeof(ref_of())
    assert str(jax.typeof(ref_of())) == "Ref{float32[3]}"


def test_checked_jaxprs_and_derived_ones_are_well_formed():
    with jax.enable_checks(True):
        f = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, y: y * jax.new_ref(x)[i], x[0]))
        assert float(jax.grad(f)(jnp.array([2.0, 3.0, 5.0]))[0]) == 60.0


# ---- errors


def refuses(error, match: str, call):
    with pytest.raises(error, match=match):
        call()


def test_aliases_are_refused_with_both_names_and_where_it_was_made():
    ref = ref_of()
    twice = "appeared at both a and b.* made at .*test_refs.py"
    refuses(ValueError, twice, lambda: jax.jit(lambda a, b: a[0] + b[0])(ref, ref))
    refuses(ValueError, twice, lambda: lax.cond(True, lambda a, b: a[0], lambda a, b: b[0], ref, ref))
    refuses(ValueError, twice, lambda: jax.checkpoint(lambda a, b: a[0] + b[0])(ref, ref))
    refuses(ValueError, "both closed over and passed as the argument a", lambda: jax.jit(lambda a: a[0] + ref[0])(ref))
    f = jax.jit(lambda a, b: a[0] + b[0])
    f(ref, ref_of())
    refuses(ValueError, twice, lambda: f(ref, ref))  # also where it was compiled before


def test_references_do_not_escape():
    made = "(?s)(?=.*cannot be returned)(?=.* made at .*test_refs.py)"
    refuses(ValueError, made, lambda: jax.jit(lambda x: jax.new_ref(x))(1.0))
    refuses(ValueError, "argument c", lambda: lax.scan(lambda c, _: (c, None), ref_of(), None, length=2))
    refuses(ValueError, r"component \[1\]", lambda: lax.scan(lambda c, _: (c, jax.new_ref(c)), 0.0, None, length=2))
    refuses(ValueError, made, lambda: jax.vmap(lambda x: jax.new_ref(x))(jnp.ones(2)))
    refuses(ValueError, "cannot be returned", lambda: jax.grad(lambda x: jax.new_ref(x))(1.0))
    kept = []
    jax.jit(lambda x: kept.append(jax.new_ref(x)))(1.0)
    refuses(jax.errors.UnexpectedTracerError, "escape", lambda: kept[0][...])


def test_after_its_end_a_reference_is_not_used():
    def program(x):
        ref = jax.new_ref(x)
        jax.freeze(ref)
        return ref[...]

    for run in (program, jax.jit(program)):
        refuses(ValueError, "used after freeze at .*test_refs.py", lambda: run(jnp.ones(2)))  # noqa: B023
    ref = ref_of()
    jax.free_ref(ref)
    for use in (lambda: ref[0], lambda: ref.__setitem__(0, 1.0), lambda: jax.freeze(ref), lambda: jax.free_ref(ref)):
        refuses(ValueError, "used after free_ref", use)
    refuses(ValueError, "used after free_ref", lambda: jax.jit(lambda r: r[0])(ref))
    refuses(ValueError, "does not belong", lambda: jax.jit(lambda r: jax.freeze(r))(ref_of()))


def test_a_reference_is_no_array():
    ref = ref_of()
    for use in (lambda r: r + 1, lambda r: jnp.ones(3) * r, jnp.sin, lambda r: jnp.asarray(r)):
        refuses(TypeError, "Ref", lambda: use(ref))  # noqa: B023
        refuses(TypeError, "Ref", lambda: jax.jit(use)(ref))  # noqa: B023
    for use in (lax.sin, lambda r: lax.add(r, r)):
        refuses(ValueError, r"ref\[\.\.\.\]", lambda: use(ref))  # noqa: B023
        refuses(ValueError, r"ref\[\.\.\.\]", lambda: jax.jit(use)(ref))  # noqa: B023
    assert not isinstance(ref, jax.Array) and isinstance(ref, jax.Ref)
    refuses(TypeError, "not iterable", lambda: list(ref))


WRONG = {
    "shape": (ValueError, "shape", lambda r: r.__setitem__(..., 1.0)),
    "broadcast": (ValueError, "shape", lambda r: r.__setitem__(slice(0, 2), jnp.ones(1))),
    "dtype": (ValueError, "dtype", lambda r: r.__setitem__(0, 1)),
    "dtype of array": (ValueError, "dtype", lambda r: r.addupdate(jnp.ones(3, jnp.bfloat16))),
    "out of bounds": (ValueError, "out of bounds", lambda r: r[3]),
    "negative out of bounds": (ValueError, "out of bounds", lambda r: r[-4]),
    "window": (ValueError, "out of bounds", lambda r: r[jax.ds(2, 2)]),
    "too many": (ValueError, "too many", lambda r: r[0, 0]),
    "two ellipses": (ValueError, "ellipsis", lambda r: r[..., 0, ...]),
    "step": (ValueError, "step", lambda r: r[::-1]),
    "new axis": (ValueError, "None", lambda r: r[None, 0]),
    "mask": (IndexError, "boolean", lambda r: r[jnp.array([True, False, True])]),
    "float": (TypeError, "index", lambda r: r[jnp.array([0.0])]),
    "string": (TypeError, "index", lambda r: r["a"]),
    "no reference": (ValueError, "takes a reference", lambda r: jax.ref.get(r[...], 0)),
    "value is none": (TypeError, "not a valid", lambda r: r.__setitem__(0, "a")),
    "list": (TypeError, "not a valid", lambda r: jax.new_ref([1.0])),
    "reference to one": (TypeError, "reference", lambda r: jax.new_ref(r)),
    "memory space": (NotImplementedError, "memory_space", lambda r: jax.new_ref(1.0, memory_space="hbm")),
    "a class": (TypeError, "new_ref", lambda r: jax.Ref(r.aval, None)),
    "gradient by one": (TypeError, "with_refs", lambda r: jax.grad(lambda r: r[0])(r)),
    "tangent": (TypeError, "reference", lambda r: jax.jvp(lambda r: r[0], (r,), (jnp.ones(3),))),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input(name):
    error, match, use = WRONG[name]
    refuses(error, match, lambda: use(ref_of()))
    if name not in ("tangent", "gradient by one"):
        refuses(error, match, lambda: jax.jit(use)(ref_of()))
