"""Structures that are seen often become code (`core/tree_code.py`): trees of them, and trees that are nearly of them."""

import dataclasses
import enum
import pickle
from collections import OrderedDict, defaultdict, namedtuple
from typing import NamedTuple

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import tree_util
from catena.core.tree_code import HOT
from catena.core.tree_flatten import flatten_with


class Key(enum.StrEnum):
    A = "a"


class Pair(NamedTuple):
    left: object
    right: object


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    name: object = dataclasses.field(default=1, metadata={"static": True})


@tree_util.register_pytree_node_class
class Box:
    def __init__(self, xs, aux):
        self.xs, self.aux = tuple(xs), aux

    def tree_flatten(self):
        return self.xs, self.aux

    @classmethod
    def tree_unflatten(cls, aux, xs):
        return cls(xs, aux)

    def __eq__(self, other):
        return type(other) is Box and (self.xs, self.aux) == (other.xs, other.aux)

    __hash__ = None


LETTERS = "abcdefgh"

# The first of each row is made code, the others are like it, and are not it.
FAMILIES = [
    [{"b": [1, 2], "a": None}, {"a": None, "b": [3, 4]}, {Key.A: None, "b": [1, 2]}, {"b": [1, 2], "a": 0}, {"b": [1]}],
    [{1: (0, 0), 2: 1}, {True: (0, 0), 2: 1}, {1.0: (0, 0), 2: 1}, {2: 1, 1: (0, 0)}, {1: (0, 0), 2: 1, 3: 1}],
    [
        {c: i for i, c in enumerate(LETTERS)},
        {c: i for i, c in enumerate(reversed(LETTERS))},
        {Key.A if c == "a" else c: i for i, c in enumerate(LETTERS)},
        {c: (i,) for i, c in enumerate(LETTERS)},
        {c: i for i, c in enumerate(LETTERS[:-1])},
        {c: i for i, c in enumerate("bcdefghi")},
    ],
    [
        {"z": {i: [i] for i in range(9)}, "y": [{}, (3, 4)]},
        {"y": [{}, (3, 4)], "z": {9 - i: [i] for i in range(9)}},
        {"z": {float(i): [i] for i in range(9)}, "y": [{}, (3, 4)]},
        {"z": {i: i for i in range(9)}, "y": [{}, (3, 4)]},
        {"z": {i: [i] for i in range(9)}, "y": [{}, (3, 4, 5)]},
        {"z": {i: [i] for i in range(9)}, "y": [{0: 0}, [3, 4]]},
    ],
    [(1, [2, ()]), [1, [2, ()]], (1, (2, ())), (1, [2, (3,)]), (1, [2, []]), (1, [[2], ()])],
    [Pair(1, (2,)), (1, (2,)), Pair(1, 2), namedtuple("Pair", "left right")(1, (2,))],
    [Layer([1], name=1), Layer([1], name=True), Layer([1], name="1"), Layer([1, 2], name=1), Layer(None, name=1)],
    [Layer({"x": 1}, name=0.5), Layer({"x": 1}, name=1 / 2), Layer({"x": 1}, name=("a", (1, None)))],
    [Box((1, {"c": 2}), ("n", 1)), Box((1, {"c": 2}), ("n", True)), Box([1, {"c": 2}], ("n", 1)), Box((1,), ("n", 1))],
    [Box(([],), None), Box((), None), Box(([], []), None), Box(([],), ())],
    [OrderedDict(b=[1], a=2), OrderedDict(a=2, b=[1]), dict(b=[1], a=2)],
    [defaultdict(list, a=[1]), defaultdict(int, a=[1]), dict(a=[1])],
]


def exact(x):
    """What tells trees apart that are equal: types, and the order in which they are written."""
    return repr(x), [type(y) for y in jax.tree.leaves(x)]


def check(tree):
    expected_leaves, expected = flatten_with(tree, None, with_path=False)
    leaves, treedef = jax.tree.flatten(tree)
    assert leaves == expected_leaves and treedef == expected and repr(treedef) == repr(expected)
    pairs, keyed = tree_util.tree_flatten_with_path(tree)
    assert pairs == flatten_with(tree, None)[0] and keyed == expected
    rebuilt = jax.tree.unflatten(treedef, leaves)
    assert rebuilt == tree
    assert exact(jax.tree.structure(rebuilt)) == exact(expected)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: str(jax.tree.structure(family[0])))
def test_code_reads_trees_of_its_structure_and_no_others(family):
    known, *others = family
    _, treedef = jax.tree.flatten(known)
    for _ in range(HOT):
        check(known)
    for _ in range(HOT):  # of a structure with data outside the tables each tree has a treedef of its own
        treedef.unflatten(treedef.flatten_up_to(known))
    assert treedef._code is not None
    for tree in others:
        check(tree)
        try:
            slow = collected_without_code(treedef, tree)
        except ValueError:
            with pytest.raises(ValueError):
                treedef.flatten_up_to(tree)
        else:
            assert treedef.flatten_up_to(tree) == slow
    with pytest.raises(ValueError, match="Too many leaves"):
        treedef.unflatten([0] * (treedef.num_leaves + 1))


def collected_without_code(treedef, tree):
    """What a structure that is new finds at its leaves."""
    fresh = type(treedef).from_node_data_and_children(
        tree_util.default_registry, treedef.node_data(), treedef.children()
    )
    fresh = treedef.compose(jax.tree.structure(0)) if fresh is treedef else fresh
    return fresh.flatten_up_to(tree)


PREDICATES = {
    "None": lambda x: x is None,
    "pairs": lambda x: type(x) in (Pair, tuple),
    "lists": lambda x: np.bool_(type(x) is list),
    "nothing": lambda x: None,
    "all": lambda x: True,
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: str(jax.tree.structure(family[0])))
@pytest.mark.parametrize("is_leaf", PREDICATES.values(), ids=PREDICATES)
def test_code_asks_a_function_about_every_node_once(family, is_leaf):
    """Also where the tree turns out to be another, and where the function is another with the same code."""
    asked, extra = [], []

    def asking(x):
        asked.append(x)
        return (x in extra) or is_leaf(x)

    def check(tree):
        asked.clear()
        expected = flatten_with(tree, asking, with_path=False)
        before, asked[:] = [*asked], []
        leaves, treedef = jax.tree.flatten(tree, asking)
        assert (leaves, treedef) == expected and repr(treedef) == repr(expected[1])
        assert [*map(id, asked)] == [*map(id, before)]

    known, *others = family
    for _ in range(2 * HOT):
        check(known)
    for tree in others:
        for some in ([], jax.tree.leaves(tree)[:1], [tree]):
            extra[:] = some
            check(tree)
            check(known)


def test_a_function_that_fails_is_asked_no_second_time():
    tree, asked = {"a": [1, (2, None)], "b": 3}, []

    def is_leaf(x):
        asked.append(x)
        if len(asked) == limit:
            raise RuntimeError("no more")
        return x is None

    limit = None
    for _ in range(2 * HOT):
        jax.tree.leaves(tree, is_leaf=is_leaf)
    asked, limit = [], 4
    with pytest.raises(RuntimeError, match="no more"):
        jax.tree.leaves(tree, is_leaf=is_leaf)
    assert len(asked) == 4
    limit = None
    with pytest.raises(ValueError, match="non-boolean"):
        jax.tree.leaves(tree, is_leaf=lambda x: 1 if x == 3 else x is None)


def test_a_changed_tree_is_read_anew():
    tree = {"a": [1, 2], "b": {"c": 3}}
    for _ in range(2 * HOT):
        jax.tree.leaves(tree)
    tree["a"][0] = (7, 8)
    assert jax.tree.leaves(tree) == [7, 8, 2, 3]
    tree["a"] = 5
    tree["b"]["c"] = None
    assert jax.tree.leaves(tree) == [5]


def test_a_class_that_is_registered_later_is_a_node_from_then_on():
    class Late:
        x = 1

    Named = namedtuple("Named", "x y")
    tree = {"late": [Late()], "named": Named(1, 2)}
    for _ in range(2 * HOT):
        assert len(jax.tree.leaves(tree)) == 3
    tree_util.register_pytree_node(Late, lambda late: ((late.x, late.x), None), lambda aux, xs: Late())
    tree_util.register_pytree_node(Named, lambda named: ((named.y,), None), lambda aux, xs: Named(0, *xs))
    assert jax.tree.leaves(tree) == [1, 1, 2]


def test_jitted_calls_with_trees_that_are_nearly_alike():
    f = jax.jit(lambda tree, *, scale: jax.tree.map(lambda x: x * scale, tree))
    one, two = jnp.ones(2), jnp.full(2, 2.0)
    for _ in range(2 * HOT):
        assert f({"a": [one]}, scale=two)["a"][0].tolist() == [2, 2]
    assert f({"a": [one, two]}, scale=two)["a"][1].tolist() == [4, 4]
    assert f({"a": [1]}, scale=2)["a"][0].dtype == jnp.int32
    assert f({"a": [{"b": one}]}, scale=two)["a"][0]["b"].tolist() == [2, 2]
    assert f({Key.A: [one]}, scale=two)["a"][0].tolist() == [2, 2]
    with jax.enable_x64(True):
        assert f({"a": [1.0]}, scale=2.0)["a"][0].dtype == jnp.float64
    with pytest.raises(TypeError, match="a"):
        f({"a": ["text"]}, scale=two)


def test_errors_of_a_users_functions_are_the_same_as_ever():
    class Broken:
        limit = 3 * HOT

        def flatten(self):
            Broken.limit -= 1
            if Broken.limit < 0:
                raise RuntimeError("no more")
            return ([0],), None

    tree_util.register_pytree_node(Broken, Broken.flatten, lambda aux, xs: Broken())
    tree = {"x": Broken()}
    for _ in range(2 * HOT):
        jax.tree.leaves(tree)
    Broken.limit = 0
    with pytest.raises(RuntimeError, match="no more"):
        jax.tree.leaves(tree)


@tree_util.register_pytree_node_class
class Settings:
    def __init__(self, w, **settings):
        self.w, self.settings = w, settings

    def tree_flatten(self):
        return (self.w,), self.settings

    @classmethod
    def tree_unflatten(cls, aux, children):
        kept = [(key, aux.pop(key)) for key in list(aux)]  # it is theirs to change
        return cls(*children, **dict(kept))


@pytest.mark.share(2)
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x, {"a": x}]], ids=["alone", "inside"])
@pytest.mark.parametrize("other", [{"n": 4}, {"n": True}, {"n": 1, "m": 2}, {"m": 1}, {"n": 1.0}, {}], ids=str)
def test_dicts_of_node_data_are_told_apart(wrap, other):
    """They come back as they were, in their order, and nobody notices who else has as much."""
    given = lambda settings: wrap(Settings(1.0, **settings))
    found = lambda treedef: treedef.unflatten([0.0] * treedef.num_leaves)
    settings = lambda tree: (tree[0] if type(tree) is list else tree).settings
    for _ in range(2 * HOT):
        mine, theirs = jax.tree.structure(given({"n": 1})), jax.tree.structure(given(other))
        assert mine == jax.tree.structure(given({"n": 1})) and (mine == theirs) is (other == {"n": 1})
        assert mine != theirs or hash(mine) == hash(theirs)
        for treedef, data in ((mine, {"n": 1}), (theirs, other)):
            assert repr(settings(found(treedef))) == repr(settings(found(treedef))) == repr(data)
        assert repr(settings(jax.tree.map(lambda x: x, given(other)))) == repr(other)


def test_dicts_of_node_data_are_not_shared():
    x = Settings(1.0, b=2, a=(1, 2))
    treedef = jax.tree.structure(x)
    assert treedef is jax.tree.structure(Settings(2.0, b=2, a=(1, 2)))
    treedef.node_data()[1]["b"] = x.settings["b"] = 7
    assert treedef.node_data() == (Settings, {"b": 2, "a": (1, 2)}) and type(treedef.node_data()[1]) is dict
    assert treedef != jax.tree.structure(x) and treedef == jax.tree.structure(Settings(1.0, a=(1, 2), b=2))
    assert pickle.loads(pickle.dumps(treedef)) == treedef and "{'b': 2, 'a': (1, 2)}" in repr(treedef)
    inner = [1]
    assert jax.tree.map(lambda x: x, Settings(1.0, inner=inner)).settings["inner"] is inner
    assert jax.tree.structure(Settings(1.0)) != jax.tree.structure(Box([1.0], {})) != treedef


def test_jitted_calls_with_dicts_of_node_data():
    f = jax.jit(lambda x: Settings(x.w * x.settings["n"], n=x.settings["n"]))
    for n in [1, 2, 1, True, 2] * HOT:
        out = f(Settings(jnp.ones(2), n=n))
        assert out.w.tolist() == [n, n] and out.settings["n"] == n
