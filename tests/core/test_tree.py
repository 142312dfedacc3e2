"""Pytrees: structure, key paths, registration, prefixes and their errors."""

import copy
import dataclasses
import functools
import pickle
import threading
import typing
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import catena as jax
from catena import tree
from catena import tree_util as tu
from catena.core.tree_errors import (
    broadcast_prefix,
    equality_errors,
    equality_errors_treedef,
    flatten_axes,
    prefix_errors,
)
from catena.core.tree_flatten import flatten_into

Pair = namedtuple("Pair", "a b")


class Custom:
    def __init__(self, *xs):
        self.xs = xs

    def __eq__(self, other):
        return type(other) is Custom and self.xs == other.xs


tu.register_pytree_node(Custom, lambda c: (c.xs, "aux"), lambda aux, xs: Custom(*xs))


@tu.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object = None
    name: str = tree.static(default="layer")


@tu.register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    flag: object


TREES = {
    "PyTreeDef(*)": 1,
    "PyTreeDef(None)": None,
    "PyTreeDef(())": (),
    "PyTreeDef([])": [],
    "PyTreeDef({})": {},
    "PyTreeDef((*,))": (1,),
    "PyTreeDef({'a': [*, (*, None)], 'b': *})": {"b": 1, "a": [2, (3, None)]},
    "PyTreeDef({1: *, 2: *})": {2: 1, 1: 2},
    "PyTreeDef(CustomNode(OrderedDict[('b', 'a')], [*, *]))": OrderedDict(b=1, a=2),
    "PyTreeDef(CustomNode(defaultdict[(<class 'list'>, ('a', 'z'))], [*, *]))": defaultdict(list, z=1, a=2),
    "PyTreeDef(CustomNode(namedtuple[Pair], [*, (*, *)]))": Pair(1, (2, 3)),
    "PyTreeDef(CustomNode(Custom[aux], [*, [*]]))": Custom(1, [2]),
    "PyTreeDef(CustomNode(Layer[('x',)], [*, {'q': *}]))": Layer(1, {"q": 2}, name="x"),
    "PyTreeDef(CustomNode(Mode[Mode(flag=3)], []))": Mode(3),
    "PyTreeDef(CustomNode(Partial[<built-in function pow>], [(*,), {'mod': *}]))": tu.Partial(pow, 2, mod=3),
}


@pytest.mark.parametrize("text", TREES)
def test_structure(text):
    x = TREES[text]
    leaves, treedef = tree.flatten(x)
    assert repr(treedef) == text
    assert treedef.num_leaves == len(leaves)
    rebuilt = tree.unflatten(treedef, leaves)
    assert type(rebuilt) is type(x) and tree.leaves(rebuilt) == leaves
    pairs, with_path = tree.flatten_with_path(x)
    assert [leaf for _, leaf in pairs] == leaves and with_path == treedef
    assert tree.flatten(x, is_leaf=lambda _: False) == (leaves, treedef)
    for same in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef)):
        assert same == treedef and hash(same) == hash(treedef)
    if treedef.num_nodes > 1:
        registry = tu.default_registry
        assert treedef.from_node_data_and_children(registry, treedef.node_data(), treedef.children()) == treedef


def test_structures_are_distinct_and_hashable():
    treedefs = [tree.structure(x) for x in TREES.values()]
    assert len(set(treedefs)) == len(treedefs)
    assert all((a == b) == (i == j) for i, a in enumerate(treedefs) for j, b in enumerate(treedefs))
    assert treedefs[0] != 3 and treedefs[0] is not None


def test_equal_structures_are_one_object():
    make = lambda: {"w": [1, (2, None)], "b": Pair(1, Layer(2, name="n"))}
    assert tree.structure(make()) is tree.structure(make())


def test_dict_order_and_subclasses():
    assert list(tree.map(lambda x: x, {"b": 1, "a": 2})) == ["a", "b"]
    subclasses = [type("L", (list,), {})([1]), type("D", (dict,), {})(a=1), type("T", (tuple,), {})((1,))]
    assert all(tree.leaves(x) == [x] for x in subclasses)
    assert repr(tree.structure(type("P", (Pair,), {})(1, 2))) == "PyTreeDef(CustomNode(namedtuple[P], [*, *]))"


@pytest.mark.parametrize("keys", [(1, True), (1, 1.0), (0.0, -0.0), ("a", np.str_("a"))])
def test_interning_is_not_noticed(keys):
    """Equal but distinguishable keys and static data come back as they were, in either order."""
    for a, b in (keys, keys[::-1]):
        for x in (a, b):
            (key,) = tree.map(lambda v: v, {x: 5})
            assert type(key) is type(x) and repr(key) == repr(x)
            assert repr(tree.map(lambda v: v, Layer(1, name=x)).name) == repr(x)
            many = {(f"k{i}" if isinstance(x, str) else i + 2): i for i in range(9)} | {x: 1}
            assert sorted(map(repr, tree.map(lambda v: v, many))) == sorted(map(repr, many))


def test_mixed_and_large_dicts():
    d = {f"k{i}": i for i in range(100)}
    leaves, treedef = tree.flatten(d)
    assert leaves == [d[k] for k in sorted(d)] and treedef.node_data() == (dict, sorted(d))
    assert treedef == tree.structure(dict(reversed(d.items())))
    mixed = d | {"k5": [1, 2], "k7": None}
    assert tree.unflatten(tree.structure(mixed), tree.leaves(mixed)) == mixed


def test_key_paths():
    x = {"d": [Pair(1, Layer(2, (3,))), Custom(4)]}
    paths = [tu.keystr(path) for path, _ in tree.leaves_with_path(x)]
    assert paths == ["['d'][0].a", "['d'][0].b.w", "['d'][0].b.b[0]", "['d'][1][<flat index 0>]"]
    simple = [tu.keystr(p, simple=True, separator="/") for p, _ in tree.leaves_with_path(x)]
    assert simple == ["d/0/a", "d/0/b/w", "d/0/b/b/0", "d/1/0"]
    assert tree.leaves_with_path({"a": 1}) == [((tu.DictKey("a"),), 1)]
    assert repr(tu.SequenceKey(idx=1)) == "SequenceKey(idx=1)" and tu.DictKey(1) != tu.FlattenedIndexKey(1)
    with pytest.raises(TypeError, match="SequenceKey: idx must be of type int, got 'x'"):
        tu.SequenceKey("x")


def test_is_leaf():
    x = [1, (2, {"a": (3, 4)})]
    is_tuple = lambda v: isinstance(v, tuple)
    assert tree.leaves(x, is_leaf=is_tuple) == [1, (2, {"a": (3, 4)})]
    assert tree.leaves([None], is_leaf=lambda v: v is None) == [None]
    at_depth_2 = lambda path, v: len(path) == 2
    assert tree.leaves_with_path(x, at_depth_2, True)[-1][1] == {"a": (3, 4)}
    assert tree.map_with_path(lambda p, v: len(p), x, is_leaf=at_depth_2, is_leaf_takes_path=True) == [
        1,
        (2, 2),
    ]
    with pytest.raises(ValueError, match="is_leaf predicate returned a non-boolean value ''; expected a boolean"):
        tree.leaves([1], is_leaf=lambda v: "")


def test_map():
    assert tree.map(lambda x, y: (x, y), [1, 2], [(1, 2), None]) == [(1, (1, 2)), (2, None)]
    assert tree.map(lambda *xs: sum(xs), {"a": 1}, {"a": 2}, {"a": 3}) == {"a": 6}
    assert tree.map(lambda x, y: (x, y), [1, None], [3, 4], is_leaf=lambda x: x is None) == [
        (1, 3),
        (None, 4),
    ]
    assert tree.map(lambda x: x + 1, {"a": [1, None, (), {}]}) == {"a": [2, None, (), {}]}


HEAD = """pytree structure error: different {what} at key path
    {at}
At that key path, the prefix pytree {n} has """
TYPES = """a subtree of type
    <class '{}'>
but at the same key path the full pytree has a subtree of different type
    <class '{}'>."""
LENGTHS = "a subtree of type {} of length {}, but the full pytree has a subtree of the same type but of length {}."
METADATA = """a subtree of type
    <class 'dict'>
with metadata
    ('a',)
but at the same key path the full pytree has a subtree of the same type but with metadata
    ('b',)
so the diff in the metadata at these pytree nodes is
    - ('a',)
    ?   ^

    + ('b',)
    ?   ^
"""
KEYS = """a subtree of type
    <class 'dict'>
with 1 child keys
    a
but at the same key path the full pytree has a subtree of the same type but with 2 child keys
    a b
so the symmetric difference on key sets is
    b"""
MISMATCHES = [
    ([1, 2], (1, 2), "types", "", TYPES.format("list", "tuple")),
    ([None], [1], "types", "[0]", TYPES.format("NoneType", "int")),
    (
        {"x": [1, (1, 2)]},
        {"x": [1, (1, 2, 3)]},
        "lengths of tuple",
        "['x'][1]",
        LENGTHS.format("tuple", 2, 3),
    ),
    ({"a": 1}, {"b": 1}, "pytree metadata", "", METADATA),
    ({"a": 1}, {"a": 1, "b": 2}, "numbers of pytree children", "", KEYS),
]


@pytest.mark.parametrize("prefix, full, what, path, text", MISMATCHES)
def test_mismatch_errors(prefix, full, what, path, text):
    calls = {
        "tree_map tree": lambda: tree.map(lambda x, y: x, prefix, full),
        "tree_map_with_path tree": lambda: tree.map_with_path(lambda p, x, y: x, prefix, full),
        "broadcast_prefix prefix_tree": lambda: tree.broadcast(prefix, full),
    }
    expected = lambda name: HEAD.format(what=what, at=name + path, n=name) + text
    for name, call in calls.items():
        with pytest.raises(ValueError) as e:
            call()
        assert str(e.value) == expected(name)
    assert [str(error("it")) for error in prefix_errors(prefix, full)] == [expected("it")]
    assert list(prefix_errors(full, full)) == [] and list(prefix_errors(0, full)) == []


UP_TO = [
    ((1, 2), [1, 2], "Expected tuple, got [1, 2]."),
    ([1, 2], [1, 2, 3], "List arity mismatch: 3 != 2; list: [1, 2, 3]."),
    ({"a": 1}, {"b": 1}, "Dict key mismatch; expected keys: ['a']; present keys: ['b']."),
    (Pair(1, 2), (1, 2), "Expected named tuple, got (1, 2)."),
    (Mode(1), Mode(2), "Mismatch custom node data: Mode(flag=1) != Mode(flag=2); value: Mode(flag=2)."),
    ({"x": [(1,)]}, {"x": [5]}, "Expected tuple, got 5. (at key path ['x'][0])"),
    (Layer((1,)), Layer(2), "Expected tuple, got 2. (at key path .w)"),
]


@pytest.mark.parametrize("prefix, full, text", UP_TO)
def test_flatten_up_to_errors(prefix, full, text):
    with pytest.raises(ValueError) as e:
        tree.structure(prefix).flatten_up_to(full)
    assert str(e.value) == text


def test_flatten_up_to():
    assert tree.structure([0, (0, 0)]).flatten_up_to([{"a": 1}, ([2], None)]) == [{"a": 1}, [2], None]


def test_unflatten_errors():
    treedef = tree.structure((1, [2]))
    with pytest.raises(ValueError, match=r"^Too few leaves for PyTreeDef; expected 2, got 1$"):
        tree.unflatten(treedef, [1])
    with pytest.raises(ValueError, match=r"^Too many leaves for PyTreeDef; expected 2, got 3\.$"):
        tree.unflatten(treedef, iter([1, 2, 3]))
    with pytest.raises(TypeError, match="treedef must be a PyTreeDef, got 3"):
        tree.unflatten(3, [])


@pytest.mark.parametrize("make", [dict, lambda d: defaultdict(int, d)])
def test_unsortable_keys(make):
    with pytest.raises(ValueError, match="Comparator raised exception while sorting pytree dictionary keys"):
        tree.flatten(make({1: 1, "a": 2}))
    leaves = [0]
    with pytest.raises(ValueError, match=r"types int, str: \[1, 'a'\] \(in the dict at key path \[1\]\['x'\]\)"):
        flatten_into([7, {"x": make({1: 1, "a": 2})}], leaves)
    assert leaves == [0]


def test_transpose():
    outer, inner = tree.structure([0, 0]), tree.structure((0, 0, 0))
    assert tree.transpose(outer, inner, [(1, 2, 3), (4, 5, 6)]) == ([1, 4], [2, 5], [3, 6])
    assert tree.transpose(outer, None, [(1, 2, 3), (4, 5, 6)]) == ([1, 4], [2, 5], [3, 6])
    assert tree.transpose(tree.structure([]), tree.structure((0, 0)), []) == ([], [])
    with pytest.raises(TypeError) as e:
        tree.transpose(tree.structure([0]), tree.structure((0, 0)), [(1, 2), (3, 4)])
    assert str(e.value).startswith("Mismatch\nPyTreeDef([(*, *), (*, *)])\n != \nPyTreeDef([(*, *)])\nThe first is")
    with pytest.raises(ValueError, match="inner_treedef is needed when outer_treedef has no leaves"):
        tree.transpose(tree.structure([]), None, [])


def test_reductions():
    assert tree.reduce(lambda a, b: (a, b), [1, {"x": 2}], None) == ((None, 1), 2)
    with pytest.raises(TypeError, match="empty iterable with no initial value"):
        tree.reduce(lambda a, b: a, [])
    join = lambda a, b: f"({a},{b})"
    assert tree.reduce_associative(join, list(range(7))) == "((0,(1,2)),((3,4),(5,6)))"
    assert tree.reduce_associative(join, (), identity="e") == "e"
    with pytest.raises(TypeError, match="Must specify identity"):
        tree.reduce_associative(join, [])
    assert tree.all([True, {"a": 1}]) and tree.all([]) and not tree.all([1, 0])
    assert tu.all_leaves([1, "a"]) and not tu.all_leaves([[1]]) and not tu.all_leaves([None])
    assert tu.all_leaves([(1, 2)], is_leaf=lambda x: isinstance(x, tuple))


def test_treedef_operations():
    treedef = tree.structure([0, (0, 0)])
    composed = treedef.compose(tree.structure({"a": 0, "b": None}))
    assert repr(composed) == "PyTreeDef([{'a': *, 'b': None}, ({'a': *, 'b': None}, {'a': *, 'b': None})])"
    assert (composed.num_leaves, composed.num_nodes) == (3, 11)
    assert repr(tu.treedef_tuple([treedef, tree.structure(None)])) == "PyTreeDef(([*, (*, *)], None))"
    assert tu.treedef_children(treedef) == [tree.structure(0), tree.structure((0, 0))]
    assert tu.treedef_is_leaf(tree.structure(None)) and not tu.treedef_is_leaf(treedef)
    record = lambda results, data: (results, data)
    assert tree.structure({"a": (0, 0)}).walk(record, str, [1, 2]) == (((("1", "2"), None),), ["a"])
    assert treedef.walk(record, None, [1, 2, 3]) == ((1, ((2, 3), None)), None)
    with pytest.raises(ValueError, match="Too few leaves"):
        treedef.walk(record, None, [1])
    with pytest.raises(ValueError, match="Arity mismatch between trees"):
        treedef.from_iterable_tree([1, [2]])
    with pytest.raises(TypeError, match="no constructor"):
        tu.PyTreeDef()
    with pytest.raises(TypeError, match="compose: arg must be a PyTreeDef, got 3"):
        treedef.compose(3)
    with pytest.raises(AttributeError):
        treedef.num_leaves = 5


def test_one_level():
    assert tu.flatten_one_level({"b": (1,), "a": 2}) == ([2, (1,)], ("a", "b"))
    pairs, data = tu.flatten_one_level_with_keys(Pair(1, 2))
    assert pairs == [(tu.GetAttrKey("a"), 1), (tu.GetAttrKey("b"), 2)] and data is Pair
    for f in (tu.flatten_one_level, tu.flatten_one_level_with_keys):
        with pytest.raises(ValueError, match="can't tree-flatten type: <class 'int'>"):
            f(5)
    nodes = (list, tuple, dict, type(None), OrderedDict, defaultdict, Pair, Layer, tu.Partial)
    assert all(map(tu.is_tree_node, nodes))
    assert not any(map(tu.is_tree_node, (int, str, np.ndarray, functools.partial)))


def test_iterators_are_leaves_with_a_warning():
    for it in (iter([1]), (x for x in [1]), map(str, [1]), zip([1]), {}.values()):
        with pytest.warns(DeprecationWarning, match="is treated as a leaf in PyTree"):
            assert tree.leaves([it]) == [it]
        assert tree.leaves(it, is_leaf=lambda _: True) == [it]
    quiet = [range(3), {1}, "ab", np.zeros(2), reversed([1]), {}.items()]
    assert all(a is b for a, b in zip(tree.leaves(quiet), quiet, strict=True))


# ---- registration ----------------------------------------


def test_registration_errors():
    class Fresh:
        pass

    with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration for <class .*Custom'>"):
        tu.register_pytree_node(Custom, lambda x: ((), None), lambda aux, xs: None)
    with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration for <class 'list'>"):
        tu.register_pytree_node(list, lambda x: ((), None), lambda aux, xs: None)
    with pytest.raises(ValueError, match="Duplicate custom dataclass PyTreeDef type registration for <class .*Layer"):
        tu.register_dataclass(Layer)
    with pytest.raises(TypeError, match="nodetype must be a class, got 3"):
        tu.register_pytree_node(3, lambda x: ((), None), lambda aux, xs: None)
    with pytest.raises(TypeError, match="to_iterable must be callable, got 3"):
        tu.register_pytree_node(Fresh, 3, 4)
    with pytest.raises(AttributeError, match="tree_unflatten"):
        tu.register_pytree_node_class(Fresh)
    assert not tu.is_tree_node(Fresh)


@pytest.mark.parametrize("result", [3, ([1],), (3, None)])
def test_bad_flatten_functions(result):
    cls = type("Bad", (), {})
    tu.register_pytree_node(cls, lambda x: result, lambda aux, xs: None)
    with pytest.raises(ValueError, match=r"should return a \(children, aux_data\) tuple.*got .*<class .*Bad'>"):
        tree.flatten(cls())


def test_registering_after_use_as_a_leaf():
    cls = type("Late", (), {})
    x = cls()
    assert tree.leaves([x]) == [x]
    tu.register_pytree_node(cls, lambda x: (iter([1, 2]), None), lambda aux, xs: (type(xs), xs))
    assert tree.leaves([x]) == [1, 2]
    assert tree.map(lambda v: v, x) == (tuple, (1, 2))
    named = namedtuple("Named", "a b")
    assert tree.leaves(named(1, 2)) == [1, 2]
    tu.register_pytree_node(named, lambda n: (tuple(n)[::-1], None), lambda aux, xs: named(*xs[::-1]))
    assert tree.leaves(named(1, 2)) == [2, 1] and tree.map(lambda v: v, named(1, 2)) == (1, 2)


def test_with_keys_classes():
    @tu.register_pytree_with_keys_class
    class Keyed:
        def __init__(self, x):
            self.x = x

        def tree_flatten_with_keys(self):
            return ((tu.GetAttrKey("x"), self.x),), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    assert tree.leaves(Keyed(3)) == [3]
    assert tree.leaves_with_path(Keyed(3)) == [((tu.GetAttrKey("x"),), 3)]
    assert tree.map(lambda v: v + 1, Keyed(3)).x == 4


def _dataclass():
    @dataclasses.dataclass
    class D:
        x: object
        y: object = 2
        z: object = tree.static(default=3)

    return D


@pytest.mark.parametrize(
    "args, error, text",
    [
        (
            (["x"], ["y"]),
            ValueError,
            "Missing fields: {'z'}. Add them to drop_fields to suppress this error.",
        ),
        ((["x", "y", "q"], ["z"]), ValueError, "Unexpected fields: {'q'}."),
        ((["x", "y", "z"], ["z"]), ValueError, "must not overlap. Overlapping fields: {'z'}."),
        (
            (["x"],),
            TypeError,
            "must both be specified when either is specified. Got data_fields=['x'] meta_fields=None.",
        ),
        (([1], []), TypeError, "field names must be strings, got 1."),
    ],
)
def test_register_dataclass_errors(args, error, text):
    with pytest.raises(error) as e:
        tu.register_dataclass(_dataclass(), *args)
    assert str(e.value).endswith(text)


def test_register_dataclass():
    dropped = tu.register_dataclass(_dataclass(), ["x"], ["z"], drop_fields=["y"])
    assert tree.map(lambda v: v + 1, dropped(1, 5, 6)) == dropped(2, 2, 6)
    plain = tu.register_dataclass(type("Plain", (), {"__init__": lambda s, **kw: s.__dict__.update(kw)}), ["a"], ["b"])
    assert tree.map(lambda v: v + 1, plain(a=1, b=2)).__dict__ == {"a": 2, "b": 2}
    with pytest.raises(TypeError, match="required when nodetype is not a dataclass. Got nodetype=<class 'int'>"):
        tu.register_dataclass(int)
    assert tree.static(default=1, metadata={"q": 2}).metadata == {"static": True, "q": 2}


def test_metadata_that_cannot_be_compared():
    cls = type("Arrays", (), {})
    tu.register_pytree_node(cls, lambda x: ((), np.arange(2)), lambda aux, xs: None)
    assert isinstance(hash(tree.structure(cls())), int)
    with pytest.raises(ValueError, match="arrays cannot be passed as metadata fields!"):
        assert tree.structure(cls()) == tree.structure(cls())


def test_partial():
    p = tu.Partial(pow, 2, mod=5)
    assert p(3) == 3 and (p.func, p.args, p.keywords) == (pow, (2,), {"mod": 5})
    assert repr(p) == "Partial(<built-in function pow>, 2, mod=5)" and isinstance(p, functools.partial)
    assert tree.structure(p) == tree.structure(tu.Partial(pow, 9, mod=9))
    assert pickle.loads(pickle.dumps(p))(3) == 3
    nested = tu.Partial(p, 4)
    assert nested() == 1 and tree.leaves(nested) == [4]  # the inner partial is static
    assert tree.map(lambda v: v, nested)() == 1
    assert tu.Partial(lambda func: func, func=3)() == 3
    with pytest.raises(TypeError, match="must be callable"):
        tu.Partial(3)


def test_separate_registries():
    registry = type(tu.default_registry)()
    leaves, treedef = registry.flatten([Custom(1), (2,)])
    assert len(leaves) == 2 and repr(treedef) == "PyTreeDef([*, (*,)])"
    registry.register_node(Custom, lambda c: (c.xs, None), lambda aux, xs: Custom(*xs))
    assert registry.flatten([Custom(1), (2,)])[0] == [1, 2]
    assert registry.flatten_one_level(3) is None and registry.is_node(Custom)
    assert registry.flatten_with_path((5,))[0] == [((tu.SequenceKey(0),), 5)]


# ---- prefixes, differences ----------------------------------------


def test_broadcast():
    assert broadcast_prefix((1, [2, None]), ((1, 2), [3, None])) == [1, 1, 2]
    assert tree.broadcast({"a": None, "b": 2}, {"a": [1, 2], "b": None}, is_leaf=lambda x: x is None) == {
        "a": [None, None],
        "b": None,
    }
    assert tree.broadcast([(1, 2), 3], [4, (5, 6)], is_leaf=lambda x: isinstance(x, tuple)) == [
        (1, 2),
        (3, 3),
    ]


def test_flatten_axes():
    treedef = tree.structure(((1, 2), {"a": 3}))
    assert flatten_axes("in_axes", treedef, (0, None)) == [0, 0, None]
    assert flatten_axes("in_axes", treedef, None) == [None, None, None]
    assert flatten_axes("in_axes", tree.structure(((1, None), {"a": 3})), ((0, None), 1)) == [0, 1]
    with pytest.raises(ValueError) as e:
        flatten_axes("vmap in_axes", treedef, ([0, 0], {"b": 2}))
    assert str(e.value).startswith(
        "vmap in_axes specification must be a tree prefix of the corresponding value; \n"
        "  Mismatch details (2 found):\n  pytree structure error: different types at key "
        "path\n    vmap in_axes[0]\n"
    )
    assert "vmap in_axes[1]\n" in str(e.value)
    with pytest.raises(ValueError, match="should always be wrapped in a tuple representing the argument list"):
        flatten_axes("in_axes", treedef, [0, 1], tupled_args=True)


def test_equality_errors():
    a, b = {"x": [1, (1, 2)], "y": 1, "z": Mode(1)}, {"x": [1, (1, 2, 3)], "y": (2,), "z": Mode(2)}
    differences = [(tu.keystr(d.path), *d[1:]) for d in equality_errors(a, b)]
    assert differences == [
        ("['x'][1]", "tuple of length 2", "tuple of length 3", "the lengths do not match"),
        ("['y']", "<class 'int'>", "<class 'tuple'>", "their Python types differ"),
        (
            "['z']",
            f"{Mode} with pytree metadata Mode(flag=1)",
            f"{Mode} with pytree metadata Mode(flag=2)",
            "the pytree node metadata does not match",
        ),
    ]
    (d,) = equality_errors({"a": 1}, {"a": 1, "b": 2})
    assert d[1:] == (
        "<class 'dict'> with 1 child",
        "<class 'dict'> with 2 children",
        "the numbers of children do not match, with the symmetric difference of key sets: {'b'}",
    )
    (d,) = equality_errors_treedef(tree.structure({"a": 0}), tree.structure({"a": (0,)}))
    assert d == ((tu.DictKey("a"),), "pytree leaf", "<class 'tuple'>", "their Python types differ")
    assert list(equality_errors(a, a)) == []


# ---- depth, threads, generated trees ----------------------------------------


def test_deep_trees():
    x = 1
    for _ in range(10_000):
        x = [x]
    leaves, treedef = tree.flatten(x)
    assert leaves == [1] and treedef.num_nodes == 10_001
    assert treedef == pickle.loads(pickle.dumps(treedef)) == tree.flatten(x, lambda _: False)[1]
    y = tree.map(lambda v, w: v + w, x, x)
    assert tree.leaves(y) == [2] and isinstance(hash(treedef), int)
    assert len(tree.leaves_with_path(x)[0][0]) == 10_000
    assert repr(treedef).count("[") == 10_000
    with pytest.raises(ValueError, match="different types at key path"):
        tree.map(lambda v, w: v, x, [3])


def test_registration_from_many_threads():
    classes = [type(f"Class{i}", (), {}) for i in range(8)]
    outcomes = []

    def work():
        for cls in classes:
            try:
                tu.register_pytree_node(cls, lambda x: ((1, 2), None), lambda aux, xs: None)
                outcomes.append(cls)
            except ValueError:
                pass
            assert tree.leaves([cls(), 3]) == [1, 2, 3]

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(c.__name__ for c in outcomes) == sorted(c.__name__ for c in classes)


trees = st.recursive(
    st.integers() | st.none(),
    lambda t: (
        st.lists(t, max_size=4)
        | st.tuples(t, t)
        | st.dictionaries(st.text(max_size=2), t, max_size=6)
        | st.builds(Pair, t, t)
        | st.builds(Custom, t)
        | st.builds(Layer, t, t, name=st.text(max_size=1))
    ),
    max_leaves=20,
)


@given(trees)
def test_round_trip(x):
    leaves, treedef = tree.flatten(x)
    assert tree.unflatten(treedef, leaves) == x
    assert tree.flatten(x, is_leaf=lambda _: False) == (leaves, treedef)
    pairs, with_path = tree.flatten_with_path(x)
    assert [v for _, v in pairs] == leaves and with_path == treedef
    assert treedef.flatten_up_to(x) == leaves
    assert treedef.walk(lambda r, data: 1 + sum(r), lambda _: 1, leaves) == treedef.num_nodes
    assert tree.structure(tree.map(str, x)) == treedef
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert list(equality_errors(x, x)) == [] and list(prefix_errors(x, x)) == []


# ---- trees that are no trees, or very deep ones


def list_in_itself():
    x = [1.0]
    x.append({"a": (2.0, x)})
    return x


def dict_in_itself():
    x = {}
    x["a"] = x
    return x


@pytest.mark.parametrize("make", [list_in_itself, dict_in_itself])
@pytest.mark.parametrize(
    "use",
    [
        tu.tree_leaves,
        tu.tree_structure,
        tu.tree_leaves_with_path,
        lambda x: tu.tree_leaves(x, is_leaf=lambda _: False),
        lambda x: tu.tree_map(lambda a, b: a, x, x),
        lambda x: tu.tree_broadcast(x, [1]),
        lambda x: tu.default_registry.flatten(x),
        jax.jit(lambda x: 1),
        jax.vmap(lambda x: x),
        jax.grad(lambda x: 1.0),
        jax.device_put,
        lambda x: jax.lax.scan(lambda c, _: (c, None), x, None, length=1),
    ],
)
def test_a_tree_that_contains_itself_is_refused(make, use):
    with pytest.raises(ValueError, match=r"must not contain itself: at key path .* stands the (list|dict) that is"):
        use(make())


def test_what_a_tree_shares_is_no_loop():
    shared = [1, (2,)]
    assert tu.tree_leaves_with_path([shared, {"a": shared}])[-1] == (
        (tu.SequenceKey(1), tu.DictKey("a"), tu.SequenceKey(1), tu.SequenceKey(0)),
        2,
    )


def test_a_tree_without_end_is_refused(monkeypatch):
    class Endless:
        pass

    tu.register_pytree_node(Endless, lambda x: ((Endless(),), None), lambda aux, children: Endless())
    monkeypatch.setattr("catena.core.tree_flatten.DEEPEST", 5000)
    with pytest.raises(ValueError, match="deeper than 5,000 levels"):
        tu.tree_leaves(Endless())


def test_transformations_of_deep_trees():
    deep = 1.0
    for _ in range(3000):
        deep = [deep]
    assert jax.jit(lambda x: tu.tree_leaves(x)[0] + 1)(deep) == 2
    assert tu.tree_leaves(jax.grad(lambda x: tu.tree_leaves(x)[0] * 2)(deep)) == [2]
    ((path, _),) = tu.tree_leaves_with_path(deep)
    assert len(path) == 3000


def test_names_of_deep_arguments_are_cut():
    comb = 1.0
    for _ in range(1000):
        comb = [comb, 2.0]
    with pytest.raises(TypeError, match=r"path x(\[0\]){32} \.\.\. (\[0\]){33}\.") as caught:
        jax.jit(lambda x: 1)(tu.tree_map(lambda _: "text", comb))
    assert len(str(caught.value)) < 1000


def test_key_path_entries_of_different_kinds_have_hashes_of_their_own():
    entries = [tu.SequenceKey(1), tu.FlattenedIndexKey(1), tu.DictKey(1), tu.GetAttrKey("1"), tu.DictKey("1")]
    assert len(set(entries)) == len(set(map(hash, entries))) == 5
    assert hash(tu.SequenceKey(1)) == hash(tu.SequenceKey(1))


def test_flatten_one_level_of_a_named_tuple_is_a_list():
    assert tu.default_registry.flatten_one_level(Pair(1, 2)) == ([1, 2], Pair)
    assert tu.flatten_one_level(Pair(1, 2))[0] == [1, 2]


def test_the_function_of_a_partial_equals_the_given_one():
    inner = functools.partial(max, 3)
    bound = tu.Partial(inner, 4)
    assert inner == bound.func and bound.func == inner and hash(bound.func) == hash(inner)
    assert bound(7) == 7 and tu.tree_leaves(bound) == [4]


@pytest.mark.parametrize(
    "example, message",
    [
        (1, b"\n\x02\x10\x01"),
        (None, b"\n\x02\x10\x03"),
        (
            [1, {"a": 2}],
            b"\n\x02\x10\x01\n\x02\x10\x01\n\t\x08\x01\x10\x05\x1a\x03\n\x01\x00\n\x04\x08\x02\x10\x02\x12\x01a",
        ),
        (
            {"b": 1, "a": (2,)},
            b"\n\x02\x10\x01\n\x04\x08\x01\x10\x04\n\x02\x10\x01\n\n\x08\x02\x10\x05\x1a\x04\n\x02\x00\x01\x12\x01a\x12\x01b",
        ),
    ],
)
def test_structures_as_protocol_buffers_are_those_of_jax(example, message):
    treedef = tu.tree_structure(example)
    assert treedef.serialize_using_proto() == message
    assert tu.PyTreeDef.deserialize_using_proto(tu.default_registry, message) is treedef


def test_large_and_empty_structures_as_protocol_buffers():
    example = [{f"key {i}": [None] * (i % 3) for i in range(300)}, (), {}, [()] * 200]
    treedef = tu.tree_structure(example)
    assert treedef.deserialize_using_proto(tu.default_registry, treedef.serialize_using_proto()) == treedef


def test_what_is_no_protocol_buffer_of_a_tree():
    for refused in (Pair(1, 2), {1: 2}, OrderedDict(a=1)):
        with pytest.raises(ValueError, match="protocol buffer"):
            tu.tree_structure(refused).serialize_using_proto()
    good = tu.tree_structure([1, {"a": 2}]).serialize_using_proto()
    for bad in (b"", b"\x01\x02", good[:-1], good + good[:4], b"\n\x02\x10\x09", b"\n\x04\x08\x02\x10\x02"):
        with pytest.raises(ValueError):
            tu.PyTreeDef.deserialize_using_proto(tu.default_registry, bad)
    with pytest.raises(TypeError, match="bytes"):
        tu.PyTreeDef.deserialize_using_proto(tu.default_registry, "text")


def test_named_tuples_with_a_length_of_their_own():
    class Stack(typing.NamedTuple):
        rows: object

        def __len__(self):
            return 3

        def __getitem__(self, i):
            return Stack(self.rows[i])

    leaves, tree = jax.tree.flatten(Stack(5))
    assert leaves == [5]
    assert jax.tree.unflatten(tree, [6]).rows == 6


class Mark:
    """Stands for nothing but itself."""


class Boxed(list):
    """A node whose data are what it is given."""

    def __init__(self, children, data):
        super().__init__(children)
        self.data = data


tu.register_pytree_node(Boxed, lambda b: (tuple(b), b.data), lambda data, children: Boxed(children, data))


def test_equal_data_gives_one_structure_and_data_that_differ_do_not():
    mark = Mark()
    one = lambda *data: tu.tree_structure([Boxed([1, None], data), (2, None)])  # noqa: E731
    assert one(mark, (64,), 1e-5, True) is one(mark, (64,), 1e-5, True)
    told_apart = [(mark, (1,)), (mark, (1.0,)), (mark, (True,)), (mark, ((1,),)), (0.0,), (-0.0,), (Mark(), (1,))]
    for a in told_apart:
        for b in told_apart:
            assert type(one(*a).children()[0].node_data()[1][-1]) is type(a[-1])
            assert (one(*a) is one(*b)) is (a is b) or 0.0 in a
    assert one([]) == one([])  # data without a hash
    plain = [(1,), (1.0,), (True,), (0.0,), (-0.0,), (np.int32(1),), (np.uint32(1),), (b"\x01\0\0\0",), ("a",)]
    plain += [(np.str_("a"),), ((1,), ()), ((True,), ()), ([1],), (None, ("b", 2))]
    for order in (plain, plain[::-1], plain):
        for data in order:
            assert repr(one("x", data).children()[0].node_data()[1]) == repr(("x", data))
    assert one("x", (1, ("b",))) is one("x", (1, ("b",)))


def test_ends_and_nothing_in_trees_of_modules():
    deep: object = 3.0
    for _ in range(5000):
        deep = [deep, None]
    leaves, treedef = tu.tree_flatten(deep, is_leaf=lambda x: x == 3.0)
    assert leaves == [3.0] and treedef.num_nodes == 10001
    mixed = {"a": None, "b": [None, 1, (None, {})], "c": Boxed([None, 2], ("x",)), "d": ()}
    for is_leaf in (None, lambda x: x is None, lambda x: isinstance(x, tuple)):
        leaves, treedef = tu.tree_flatten(mixed, is_leaf)
        slow = [leaf for _, leaf in tu.tree_flatten_with_path(mixed, is_leaf)[0]]
        again = treedef.unflatten(leaves)
        assert leaves == slow and tu.tree_flatten(again, is_leaf) == (leaves, treedef)
        assert treedef.flatten_up_to(mixed) == leaves
    with pytest.raises(ValueError, match=r"key path \['b'\]\[2\]"):
        tu.tree_structure(mixed).flatten_up_to(mixed | {"b": [None, 1, [None, {}]]})
    assert tu.tree_unflatten(tu.tree_structure(None), []) is None


def test_all_leaves_asks_no_more_than_whether_each_is_one():
    assert tu.all_leaves(x for x in [1, 2.0]) and not tu.all_leaves(iter([1, {}]))
    assert not tu.all_leaves([{1: 2, "a": 3}])  # a dict whose keys have no order is no leaf either
    assert tu.all_leaves([]) and tu.all_leaves({1: 2})  # of its keys


def test_broadcast_of_trees_that_end_early():
    full = {"a": [1, 2], "b": None, "c": (3, {"d": 4})}
    assert tree.broadcast(0, full) == {"a": [0, 0], "b": None, "c": (0, {"d": 0})}
    assert tree.broadcast({"a": 1, "b": None, "c": (2, 3)}, full) == {"a": [1, 1], "b": None, "c": (2, {"d": 3})}
    ends = lambda x: isinstance(x, list)
    assert tree.broadcast({"a": [9], "b": None, "c": 2}, full, is_leaf=ends)["a"] == [[9], [9]]
    with pytest.raises(ValueError, match=r"broadcast_prefix prefix_tree\['a'\]"):
        tree.broadcast({"a": [1], "b": None, "c": 2}, full)
