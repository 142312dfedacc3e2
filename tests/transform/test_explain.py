"""`f.explain(...)`: what became of a program, in the user's terms."""

import logging

import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax


@jax.jit
def layer(x, w):
    centred = x - jnp.mean(x, -1, keepdims=True)
    normal = centred * lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)
    return jnp.tanh(normal @ w)


LINE = layer.__wrapped__.__code__.co_firstlineno


def test_rows_products_and_places():
    text = layer.explain(jnp.ones((1000, 512)), jnp.ones((512, 64)))
    assert "rows: 4 kernels together, on" in text
    assert "product: 1000 x 512 x 64 -> float32[1000,64]" in text
    assert f"kernel over 1000 x 64: tanh -> float32[1000,64]   (test_explain.py:{LINE + 4})" in text
    assert "results 256 KB" in text


def test_loops_and_branches_are_shown_inside():
    def f(x):
        x = lax.fori_loop(0, 10, lambda _, y: jnp.sin(y), x)
        return lax.cond(x[0] > 0, jnp.cos, lambda y: jnp.cumsum(y), x)

    lines = jax.jit(f).explain(jnp.ones(100)).splitlines()
    loop = next(i for i, line in enumerate(lines) if "loop: 10 iterations" in line)
    assert "sin" in "".join(lines[loop : loop + 3])
    assert any("branch: one of 2" in line for line in lines)
    assert any("step: cumulative operation" in line for line in lines)


def test_library_calls_sorts_and_scatters():
    def f(a, i):
        return jnp.linalg.cholesky(a), jnp.linalg.qr(a), jnp.sort(a[0]), jnp.zeros(5).at[i].add(1.0)

    text = jax.jit(f).explain(2 * jnp.eye(4), jnp.array([1, 1]))
    assert "small matrices: cholesky" in text
    assert "library call: " in text
    assert "step: sort" in text
    assert "step: scatter" in text


def test_nothing_to_compute():
    assert "0 steps" in jax.jit(lambda x: x).explain(1.0)


def test_it_says_why_a_function_was_traced_again():
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    f(jnp.ones(3), 2)
    f(jnp.ones(4), 2)
    f(jnp.ones(4), 3)
    text = f.explain(jnp.ones(4), 3)
    assert "traced 3 times:" in text
    assert "2. x changed shape: now float32[4], before float32[3]" in text
    assert "3. n (static) changed: now 3, before 2" in text


def test_many_compilations_are_mentioned_once(caplog):
    f = jax.jit(lambda x: x + 1)
    with caplog.at_level(logging.WARNING, "catena"):
        for n in range(1, 10):
            f(jnp.ones(n))
    (record,) = [r for r in caplog.records if "compiled for the" in r.getMessage()]
    said = record.getMessage()
    assert "6th time: x changed shape: now float32[6], before float32[5] (it changed 5 times). What to do: pad" in said
    assert "test_explain.py:" in said


def test_the_warning_names_the_argument_that_changed_most_often(caplog):
    f = jax.jit(lambda x, y, n: x, static_argnums=2)
    with caplog.at_level(logging.WARNING, "catena"):
        for y, n in ((1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3), (1.0, 4), (jnp.ones(2), 4)):
            f(0.0, y, n)
    (record,) = caplog.records
    assert "n (static) changed: now 4, before 3 (it changed 4 times). What to do: every value of" in record.getMessage()


def test_the_warning_of_a_function_that_takes_various_trees(caplog):
    f = jax.jit(lambda tree: jax.tree.leaves(tree)[0])
    with caplog.at_level(logging.WARNING, "catena"):
        for sizes in ((1,), (1, 1), (1, 1, 1), (1, 1, 1, 1), (2, 2, 2, 2), (3,) * 5):  # the last but one is as long
            f([jnp.ones(n) for n in sizes])
    (record,) = caplog.records
    assert "6th time: tree changed structure: now [*, *, *, *, *], before [*, *, *, *]" in record.getMessage()


def test_functions_that_one_line_makes_again_and_again_are_mentioned_once(caplog):
    with caplog.at_level(logging.WARNING, "catena"):
        for _ in range(8):
            jax.jit(lambda x: x + 1)(1.0)
        for n in range(8):  # not in vain: they differ
            jax.jit(lambda x: x + n)(1.0)  # noqa: B023
    (record,) = caplog.records
    assert "6th time: its line made 6 functions" in record.getMessage()
    assert "make the function, and jit it, once" in record.getMessage()


def test_a_miss_of_a_function_made_anew_is_explained(caplog):
    with jax.explain_cache_misses():
        for n in range(2):
            jax.jit(lambda x: x + n)(1.0)  # noqa: B023
    assert "its line made 2 functions" in caplog.records[-1].getMessage()


class Named:
    def __repr__(self):
        return f"<Named at {id(self):#x}>"


A = jnp.ones(3)
SCALE = jax.make_user_context(1)
# what is called first, what second, the line that explains it, and what to do
CHANGES = {
    "shape": ((A,), (jnp.ones(4),), "x changed shape: now float32[4], before float32[3]", "pad to"),
    "rank": ((A,), (jnp.ones((3, 1)),), "x changed shape: now float32[3,1], before float32[3]", "pad to"),
    "dtype": ((A,), (jnp.arange(3),), "x changed dtype: now int32[3], before float32[3]", "convert before"),
    "weak type": ((jnp.float32(1),), (1.0,), "x changed weak type: now ~float32[], before float32[]", "Python scalars"),
    "several": ((A,), (1,), "x changed shape and dtype and weak type: now ~int32[], before float32[3]", "pad to"),
    "a leaf": (({"w": [A]},), ({"w": [1.0]},), "x['w'][0] changed shape and weak type: now ~float32[]", "pad to"),
    "keys": (({"a": A},), ({"a": A, "b": A},), "x changed structure: now {'a': *, 'b': *}, before {'a': *}", "trees"),
    "a key": (({"a": A},), ({"b": A},), "x changed structure: now {'b': *}, before {'a': *}", "trees"),
    "length": (([A],), ([A, A],), "x changed structure: now [*, *], before [*]", "trees"),
    "class": (([A],), ((A,),), "x changed structure: now (*,), before [*]", "trees"),
    "deep": (({"a": [A]},), ({"a": [(A, A)]},), "x['a'][0] changed structure: now (*, *), before *", "trees"),
    "None": ((A,), (None,), "x changed structure: now None, before *", "trees"),
    "more arguments": ((A,), (A, A), "the number of positional arguments changed: now 2, before 1", "same way"),
    "by name": (
        (A,),
        {"x": A},
        "the number of positional arguments changed: now 0, before 1; the names of",
        "same way",
    ),
    "static": ((A, 1, 2), (A, 1, 3), "n (static) changed: now 3, before 2", "ordinary argument"),
    "class of static": ((A, 1, 2), (A, 1, 2.0), "n (static) changed: now 2.0 of type float, before 2 of", "ordinary"),
    "equal static": ((A, 1, Named()), (A, 1, Named()), "n (static) changed: now <Named at", "__eq__ and __hash__"),
    "no static": ((A, 1), (A, 1, 3), "n changed: now 3, before not given", "same way"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_every_kind_of_change_is_named(kind):
    first, second, line, cure = CHANGES[kind]
    f = jax.jit(lambda x, y=0.0, n=0: 1.0, static_argnames="n")
    for call in (first, second):
        f(**call) if isinstance(call, dict) else f(*call)
    explained = f.explain()
    assert f"\n  2. {line}" in explained
    assert cure in explained[explained.index("what to do: ") :]


FLAGS = {
    "the flag jax_enable_x64 changed: now True, before False": lambda: jax.enable_x64(True),
    "the flag jax_numpy_rank_promotion changed: now raise, before allow": lambda: jax.numpy_rank_promotion("raise"),
    "the flag jax_debug_nans changed: now True, before False": lambda: jax.debug_nans(True),
    "the mesh in force changed: now Mesh('d': 1": lambda: jax.set_mesh(jax.make_mesh((1,), ("d",))),
    "changed: now 5, before 1": lambda: SCALE(5),
}


@pytest.mark.parametrize("line", FLAGS)
def test_every_kind_of_surroundings_is_named(line):
    f = jax.jit(lambda x: x)
    f(1)
    with FLAGS[line]():
        f(1)
    assert line in f.explain()


def test_named_axes_are_surroundings_too():
    f = jax.jit(lambda x: 1.0)
    f(1.0)
    jax.vmap(lambda x: f(1.0) * x, axis_name="i")(A)
    assert "2. the named axes changed: now {'i': 3}, before {}" in f.explain()


def test_a_flag_set_in_another_way_is_named():
    f = jax.jit(lambda x: x)
    with jax.debug_infs(False):
        f(1)
    f(1)
    assert "2. where a flag is set changed" in f.explain()


def test_the_log_of_compilations_says_the_same(caplog):
    f = jax.jit(lambda x: x)
    with jax.log_compiles():
        f(A)
        f(1.0)
    text = "\n".join(r.getMessage() for r in caplog.records)
    assert "x changed shape and weak type: now ~float32[], before float32[3]\n  what to do: pad to" in text


def test_without_arguments_it_lists_all_traces_and_traces_nothing():
    f = jax.jit(lambda x, n=1: x * n, static_argnames="n")
    assert "not traced yet" in f.explain()
    for size, n in ((1, 1), (2, 1), (3, 1), (3, 2)):
        f(jnp.ones(size), n=n)
    head, *lines = f.explain().splitlines()
    assert head.endswith("traced 4 times") and "test_explain.py" in head
    assert lines == [
        "  1. x: float32[1], n=1",
        "  2. x changed shape: now float32[2], before float32[1]",
        "  3. x changed shape: now float32[3], before float32[2]",  # the latest before it, not the first
        "  4. n (static) changed: now 2, before 1",
        "  what to do: pad to a few sizes, or vectorise over what varies with vmap",
        "  what to do: every value of a static argument compiles anew: pass it as an ordinary argument if no shape "
        "and no `if` depends on it",
    ]
    assert f._cache_size() == 4


def test_a_function_that_needs_no_arguments_is_explained_as_called_without():
    assert "1 step\n" in jax.jit(lambda: jnp.sin(jnp.arange(3.0))).explain()


@pytest.mark.parametrize("name", ["jnp.stack", "jnp.where"])
def test_functions_of_the_package_are_not_mentioned(caplog, name):
    function = {"jnp.stack": lambda x: jnp.stack([x, x]), "jnp.where": lambda x: jnp.where(x > 0, x, 0)}[name]
    with caplog.at_level(logging.WARNING, "catena"):
        for n in range(1, 10):
            function(jnp.ones(n))
    assert not caplog.records


def test_a_trace_is_compared_with_one_of_the_same_structure():
    f = jax.jit(lambda d: d["a"])
    f({"a": 1.0}), f({"a": 1.0, "b": 2}), f({"a": jnp.ones(2)})
    assert "3. d['a'] changed shape and weak type: now float32[2], before ~float32[]" in f.explain()
