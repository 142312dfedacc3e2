"""Caches of what was derived from a jaxpr, living as long as the jaxpr."""

import functools
import weakref
from collections.abc import Callable

from catena.core.check import check_if_enabled
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr
from catena.core.tree_flatten import flatten_into
from catena.core.tree_nodes import default_nodes
from catena.core.treedef import PyTreeDef

MOST_TREES = 4  # structures of arguments that are tried, for one function

all_caches: weakref.WeakSet = weakref.WeakSet()  # everything with a method clear_cache, so that clear_caches finds it


class CallCache:
    """What calls of one transformed function traced, by the types of the arguments; and ``fast``, how to run
    what was seen before, ``trees``, of which structures the arguments were, latest first, and ``names``, what their
    leaves are called, by structure.
    """

    __slots__ = ("entries", "fast", "latest", "trees", "names", "__weakref__")

    def __init__(self):
        self.entries: dict = {}
        self.fast: dict = {}
        self.latest: dict = {}  # of `fast`, by all but the types of the leaves: these types, and how to run
        self.trees: list = []
        self.names: dict = {}
        all_caches.add(self)

    def clear_cache(self):
        """Forget all entries."""
        self.entries.clear()
        self.fast.clear()
        self.latest.clear()
        self.trees.clear()
        self.names.clear()

    def arrays_of(self, tree, reader: Callable) -> tuple[PyTreeDef, list, list, list]:
        """The structure of arguments, their leaves, these as Arrays for the time of one call, and the types of those.

        First it tries what arguments of this function were, which is quick; what is no Array is read by `reader`.
        """
        for treedef, types in self.trees:  # hot
            leaves = treedef._read(tree, False)
            if leaves is None:
                continue
            if types is not None:
                if [*map(type, leaves)] == types:
                    return treedef, leaves, leaves, [x._aval for x in leaves]
            elif default_nodes.leaf_types.issuperset(map(type, leaves)):
                arrays = reader(leaves)
                return treedef, leaves, arrays, [x._aval for x in arrays]
        leaves = []
        treedef = flatten_into(tree, leaves)
        arrays = reader(leaves)
        return treedef, leaves, arrays, [x._aval for x in arrays]

    def how(self, key: tuple, avals: list) -> tuple | None:
        """How to run a call that was seen before. To compare types with the latest takes less than to hash them."""
        latest = self.latest.get(key)
        if latest is not None and latest[0] == avals:
            return latest[1]
        found = self.fast.get((*key, *avals))
        if found is not None:
            self.latest[key] = avals, found
        return found

    def expect(self, treedef: PyTreeDef, types: list | None):
        """Arguments may be of this structure again, with Arrays of these types at the leaves, or with anything. Flat
        ones are quick to take apart without that.
        """
        if treedef.num_nodes > treedef.num_leaves + 1 and (treedef, types) not in self.trees:
            self.trees[:] = [(treedef, types), *self.trees[: MOST_TREES - 1]]


_call_caches: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def call_cache(fun, options: tuple) -> CallCache:
    """The cache of ``fun`` transformed with these options: one however often it is transformed, so that
    ``jit(f)(x)`` in a loop traces once. It lives as long as ``fun``.
    """
    kind = type(fun)
    if kind.__eq__ is not object.__eq__ or kind.__hash__ is not object.__hash__ or not kind.__weakrefoffset__:
        return CallCache()  # such as bound methods, which are made anew each time
    try:
        caches = _call_caches.setdefault(fun, {})
        found = caches.get(options)
        return found if found is not None else caches.setdefault(options, CallCache())
    except TypeError:  # options that cannot be hashed, or an object that cannot be referred to weakly
        return CallCache()


def memoised(derive):
    """Remember ``derive(closed_jaxpr, *key)`` on the jaxpr itself, under the flags in force.

    Threads that need the same at the same time derive it each for itself, and the first result is everybody's: rules
    of users run meanwhile, which may wait for another thread, so nobody waits for them (see ``core/locks.py``). What
    is slow and calls no user's code is shared further down: LLVM makes the object code of one text once.
    """

    @functools.wraps(derive)
    def remembered(closed, *key):
        full_key = (derive, key, context.global_key, context.local_key)
        found = closed.memo.get(full_key)
        if found is None:
            found = derive(closed, *key)
            if context.enable_checks:
                check_derived(found)
            found = closed.memo.setdefault(full_key, found)
        return found

    return remembered


def check_derived(found):
    """Check the jaxprs among what was derived."""
    for part in found if isinstance(found, tuple) else (found,):
        if isinstance(part, ClosedJaxpr):
            check_if_enabled(part)
