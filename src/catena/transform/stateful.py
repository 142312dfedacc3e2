"""Objects of users' own types with a state (`hijax.MutableHiType`), at the edge of compiled functions.

A compiled function takes what such an object is made of, as a node of the tree of its arguments. Inside, a new object
is made of that, on which the user's primitives act at once, by what they do to arrays; what it is made of in the end is
one more result, which is put into the object outside. So no equation stands for any of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core.context import context
from catena.core.staging import JaxprTrace
from catena.core.tree import register_pytree_node, tree_flatten, tree_map
from catena.core.type_members import cur_qdd
from catena.core.zeros import get_aval, high_types
from catena.transform.functions import wraps


class Parts:
    """What an object is made of: a node of a tree, whose structure says its type, its state, and which object it is."""

    __slots__ = ("type", "state", "place", "values")

    def __init__(self, kind, state, place: int, values):
        self.type, self.state, self.place, self.values = kind, state, place, values


register_pytree_node(
    Parts,
    lambda p: (tuple(p.values), (p.type, p.state, p.place)),
    lambda known, values: Parts(known[0], known[1], known[2], values),
)


def has_state(x) -> bool:
    """Whether ``x`` is an object of a user's own type with a state."""
    return type(x) in high_types and get_aval(x).has_qdd


def any_in(tree) -> bool:
    """Whether there are such objects in a tree."""
    return bool(high_types) and any(map(has_state, tree_flatten(tree)[0]))


def to_parts(tree) -> tuple[Any, list]:
    """A tree with what the objects in it are made of in place of them, and the objects, each once."""
    objects: list = []

    def of_leaf(x):
        if not has_state(x):
            return x
        place = next((i for i, known in enumerate(objects) if known is x), len(objects))
        if place < len(objects):
            return Parts(None, None, place, ())
        objects.append(x)
        kind, state = get_aval(x), cur_qdd(x)
        return Parts(kind, state, place, kind.read_loval(state, x))

    return tree_map(of_leaf, tree), objects


def from_parts(tree) -> tuple[Any, list]:
    """The other way: a tree with new objects, and these."""
    objects: list = []

    def of_node(x):
        if type(x) is not Parts:
            return x
        if x.place == len(objects):
            objects.append(x.type.new_from_loval(x.state, *x.values))
        return objects[x.place]

    return tree_map(of_node, tree, is_leaf=lambda x: type(x) is Parts), objects


def on_parts(fun: Callable) -> Callable:
    """A function of what objects are made of, which returns also what they are made of in the end."""

    @wraps(fun)
    def inner(*args, **kwargs):
        (args, kwargs), objects = from_parts((args, kwargs))
        own(objects)
        out = fun(*args, **kwargs)
        return out, to_parts(objects)[0]

    return inner


def put_back(objects: list, parts: list) -> None:
    """Put into objects what they are made of in the end."""
    for x, now in zip(objects, parts, strict=True):
        now.type.update_from_loval(now.state, x, *now.values)


# ---- which objects a function that is traced may use


def _staged() -> JaxprTrace | None:
    """The innermost trace that writes a program for later, if there is one."""
    trace = context.trace
    while trace is not None and type(trace) is not JaxprTrace:
        trace = trace.parent
    return trace


def own(objects) -> None:
    """Let the function that is traced use objects that were made for it, or by it."""
    trace = _staged()
    if trace is not None:
        trace.own += objects


def check_own(name: str, operands) -> None:
    """Raise where an object comes from outside of the function that is traced: its program would not say its end.

    Raises:
      NotImplementedError: for which object.
    """
    trace = _staged()
    if trace is None:
        return
    for x in operands:
        if has_state(x) and not any(x is known for known in trace.own):
            raise NotImplementedError(
                f"{name}: the {type(x).__name__}, whose type has a state, comes from outside of {trace.name}, which is "
                "traced: pass it as an argument to a function under jit; other functions that are traced (the bodies "
                "of loops and branches) cannot use it"
            )
