"""Functions with transformations around them, and what `api_util` makes of functions of trees."""

import pytest

import catena as jax
import catena.numpy as jnp
from catena import api_util
from catena.extend import linear_util as lu


@lu.transformation2
def scaled(f, factor, *args):
    return factor * f(*args)


@lu.transformation
def plus(amount, *args):
    result = yield args, {}
    yield result + amount


def test_order_and_equality():
    add = lambda x, y: x + y
    f = plus(scaled(lu.wrap_init(add), 10), 1)
    assert f.call_wrapped(2, 3) == 51
    assert f == plus(scaled(lu.wrap_init(add), 10), 1) and hash(f) == hash(plus(scaled(lu.wrap_init(add), 10), 1))
    assert f != plus(scaled(lu.wrap_init(add), 11), 1) and f.__name__ == "<lambda>"
    assert [static for _, static in f.transforms] == [(1,), (10,)]
    assert lu.wrap_init(add, {"y": 5}).call_wrapped(1) == 6


def test_stores():
    @lu.transformation_with_aux
    def counted(*args):
        result = yield args, {}
        yield result, len(args)

    f, count = counted(lu.wrap_init(max))
    with pytest.raises(lu.StoreException, match="empty"):
        count()
    assert f.call_wrapped(1, 2, 3) == 3 and count() == 3
    with pytest.raises(lu.StoreException, match="occupied"):
        f.call_wrapped(1, 2)
    again, count = lu.transformation_with_aux2(lambda f, s, *xs: s.store(len(xs)) or f(*xs), use_eq_store=True)(
        lu.wrap_init(max)
    )
    assert again.call_wrapped(1, 2) == again.call_wrapped(2, 1) == 2 and count() == 2
    with pytest.raises(lu.StoreException, match="different"):
        again.call_wrapped(1, 2, 3)


def test_cache_fills_stores():
    calls = []
    call = lu.cache(lambda fun, *args: calls.append(args) or fun.call_wrapped(*args))
    base = lambda x, y: [x + y]
    for _ in range(2):
        flat, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(base), jax.tree.structure((0, 0)))
        assert call(flat, 1, 2) == [3] and out_tree() == jax.tree.structure([0])
    assert calls == [(1, 2)]


def test_flattening():
    leaves, tree = jax.tree.flatten((({"a": 1.0}, 2.0), {"c": 3.0}))
    flat, out_tree = api_util.flatten_fun(lu.wrap_init(lambda d, b, c: (d["a"] + b, {"c": c})), tree)
    assert flat.call_wrapped(*leaves) == [3.0, 3.0]
    assert jax.tree.unflatten(out_tree(), [1, 2]) == (1, {"c": 2})


def test_words_for_errors():
    def f(x, *rest, flag=True, **more):
        return x

    info = api_util.debug_info("jit", f, (1.0, {"a": 2.0}, 3.0), {"z": (4.0, 5.0)}, static_argnums=(2,))
    assert info.arg_names == ("x", "rest[0]['a']", "z[0]", "z[1]")
    assert info.func_name.endswith("f") and info.func_filename == __file__ and info.func_lineno > 0
    assert info.safe_arg_names(3) == (None,) * 3 and info.with_unknown_names().arg_names is None
    assert info.filter_arg_names([True, False, False, True]) == ("x", "z[1]")
    assert info.set_result_paths([1.0]).safe_result_paths(1) == ("result[0]",)


def test_positions():
    f, dynamic = api_util.argnums_partial(lu.wrap_init(lambda x, y, z: (x, y, z)), (2, 0), (1, 2, 3))
    assert dynamic == (3, 1) and f.call_wrapped(30, 10) == (10, 2, 30)
    with pytest.raises(ValueError, match="hashable"):
        api_util.argnums_partial(lu.wrap_init(max), 0, (1, [2]))
    assert api_util.rebase_donate_argnums((0, 4), (1, 2)) == (0, 2)
    tree = jax.tree.structure(((0, {"a": 0, "b": 0}), {"k": 0}))
    assert api_util.donation_vector((1,), ("k",), tree) == (False, True, True, True)
    assert api_util.flatten_axes("in_axes", jax.tree.structure((0, (0, 0))), (None, 1)) == [None, 1, 1]
    with pytest.raises(ValueError):
        api_util.safe_map(max, [1, 2], [3])
    struct = jax.ShapeDtypeStruct((2,), "int32")
    assert api_util.shaped_abstractify(struct) == api_util.shaped_abstractify(jnp.zeros(2, "int32"))
