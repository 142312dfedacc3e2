"""Why a jitted function is traced again: ``f.explain()``, ``jax_explain_cache_misses``, ``jax_log_compiles`` and one
warning say it in the same words: which argument, what changed, what to do.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Callable
from types import FunctionType

from catena.core import log
from catena.core.config import TRACED, key_values
from catena.core.context import context
from catena.core.named import NamedTuple
from catena.core.source import PACKAGE, function_place, user_source
from catena.core.tree_errors import equality_errors_treedef
from catena.core.tree_keys import keystr
from catena.transform.arguments import Static, argument_name

MANY = 5  # programs of one function, after which it is worth asking why


class Change(NamedTuple):
    """What differs between two cache keys: of ``what``, in which respects (keys of ``CURES``), and its values."""

    what: str
    kinds: tuple[str, ...]
    now: str
    before: str

    def __str__(self) -> str:
        respects = " and ".join(kind for kind in self.kinds if kind in RESPECTS)
        static = " (static)" if self.kinds[0] in ("static", "equal static") else ""
        return f"{self.what}{static} changed{respects and ' ' + respects}: now {self.now}, before {self.before}"


RESPECTS = ("shape", "dtype", "weak type", "sharding", "structure")  # of an argument

CURES = {
    "shape": "pad to a few sizes, or vectorise over what varies with vmap",
    "dtype": "convert before the call, always to the same dtype",
    "weak type": "Python scalars are weakly typed, arrays are not: always pass the one or the other",
    "sharding": "put it where it belongs once, with device_put",
    "structure": "pass trees of the same keys, lengths and classes",
    "call": "pass the same arguments always in the same way, by position or by name",
    "static": "every value of a static argument compiles anew: pass it as an ordinary argument if no shape and no `if` "
    "depends on it",
    "equal static": "it looks the same and does not compare equal: make it once, outside of the loop, or give its "
    "class __eq__ and __hash__",
    "flag": "set it once, at the start of the program",
    "mesh": "call it under the same mesh",
    "axes": "call it under the same named axes",
    "function": "make the function, and jit it, once: outside of the loop or of the function that calls it",
}


def missed(fun, key: tuple, calls: dict, names: Callable[[], list[str]]) -> None:
    """Log why a jitted function is traced for ``key``, where a flag asks for it, or where it was traced often.

    Arguments:
      fun: the function.
      key: the new cache key.
      calls: what it was traced for before, by cache key, oldest first.
      names: gives the names of the leaves of the arguments.
    """
    if context.recorded is not None:
        return  # nobody's doing: the function is replayed
    known = list(calls)
    made = times_made(fun) if not known else 1
    if context.explain_cache_misses or context.log_compiles:
        log.announce("TRACING CACHE MISS at %s:\n  %s", user_source(), reason(fun, key, known, names, made), loud=True)
    place = function_place(fun) if len(known) == MANY else PACKAGE
    if PACKAGE not in place:
        often = most_frequent(fun, [*known, key], [*map(leaf_names, calls.values()), names()])
        text = "%s is compiled for the %dth time: %s f.explain() lists them all. (Said once.)"
        log.announce(text, place, MANY + 1, often, loud=True)


def reason(fun, key: tuple, known: list[tuple], names: Callable[[], list[str]], made: int) -> str:
    """Why a function is traced, in some lines."""
    place = function_place(fun)
    if not known:
        return f"never seen function:\n    {place}" + (f"\n  {said_of_anew(made)}" if made > 1 else "")
    head = f"for {place}\n  all previously seen cache keys differ. For the closest previous key:"
    return "\n  ".join([head, *said(changes(fun, key, known, names()))])


def leaf_names(call) -> list[str]:
    """The names of the leaves of the arguments of a traced call."""
    return call.closed.debug_info.arg_names[-len(call.donated) :] if call.donated else []


def most_frequent(fun, keys: list[tuple], names: list[list[str]]) -> str:
    """What changed most often from one of these cache keys to the next, and what to do about it. ``names``: of the
    leaves of the arguments, for each key.
    """
    history = [changes(fun, key, keys[:i], names[i]) for i, key in enumerate(keys)]
    often = Counter(c.what for found in history for c in found)
    what, times = often.most_common(1)[0]
    last = next(c for found in reversed(history) for c in found if c.what == what)
    count = f" (it changed {times} times)" if times > 1 else ""
    return f"{last}{count}. What to do: {'; '.join(CURES[kind] for kind in last.kinds)}."


# ---- the same function, made again and again

_made: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # code -> the last function of it traced, how many


def times_made(fun) -> int:
    """How many functions that one line of a program made were traced, this one included; one warning where it makes
    them all equal, in vain.
    """
    if type(fun) is not FunctionType:
        return 1
    last, count = _made.get(fun.__code__, (None, 0))
    if last is not None and last() is fun:
        return count
    _made[fun.__code__] = weakref.ref(fun), count + 1
    equal = not (fun.__closure__ or fun.__defaults__ or fun.__kwdefaults__ or fun.__dict__)
    if count == MANY and equal and not fun.__code__.co_filename.startswith(PACKAGE):
        log.announce("%s is compiled for the %dth time: %s. (Said once.)",
                     function_place(fun), MANY + 1, said_of_anew(count + 1), loud=True)  # fmt: skip
    return count + 1


def said_of_anew(count: int) -> str:
    return f"its line made {count} functions, and each is compiled for itself. What to do: {CURES['function']}"


# ---- from two cache keys to what changed


def said(found: list[Change]) -> list[str]:
    """A line for each change, and one for what to do about each kind."""
    return [*map(str, found), *cures(found)]


def cures(found: list[Change]) -> list[str]:
    """What to do about these changes, a line for each kind."""
    return [f"what to do: {CURES[kind]}" for kind in dict.fromkeys(kind for change in found for kind in change.kinds)]


def changes(fun, key: tuple, before: list[tuple], names: list[str]) -> list[Change]:
    """How ``key`` differs from the closest of the keys ``before`` it, the latest of those; nothing for the first."""
    if not before:
        return []
    found = [differences(fun, key, other, names) for other in reversed(before)]
    return min(found, key=distance)  # the latest among equals


def distance(changes: list[Change]) -> tuple[int, int]:
    """How far two keys are from each other: arguments of another structure are further than those of other types."""
    kinds = [kind for change in changes for kind in change.kinds]
    return sum(kind in ("structure", "call") for kind in kinds), len(kinds)


def differences(fun, key: tuple, before: tuple, names: list[str]) -> list[Change]:
    """What changed from one cache key to another."""
    tree, types, statics, *flags, axes = zip(key, before, strict=True)
    found = structure_changes(fun, *tree, key[2]) if tree[0] != tree[1] else type_changes(*types, names)
    found += static_changes(fun, *(dict(part) for part in statics))
    if key[3:5] != before[3:5]:
        found += flag_changes(*(in_force(*numbers) for numbers in zip(*flags, strict=True)))
    if axes[0] != axes[1]:
        found.append(Change("the named axes", ("axes",), *(str(dict(part)) for part in axes)))
    return found


def type_changes(now: tuple, before: tuple, names: list[str]) -> list[Change]:
    return [
        Change(name, respects(a, b), str(a), str(b))
        for name, a, b in zip(names, now, before, strict=True)
        if a is not b
    ]


def respects(a, b) -> tuple[str, ...]:
    """In which respects two types differ."""
    attributes = {"shape": "shape", "dtype": "dtype", "weak_type": "weak type"}
    found = [kind for name, kind in attributes.items() if getattr(a, name, None) != getattr(b, name, None)]
    return tuple(found) or ("sharding",)


def structure_changes(fun, now, before, statics: tuple) -> list[Change]:
    """Where the trees of positional and named arguments differ."""
    static = {k for k, _ in statics}
    found = []
    for path, *_ in equality_errors_treedef(now, before):
        if len(path) < 2:  # not within an argument: there are more of them, or others
            what, kind, text = CALLS[path[0].idx]
        elif path[0].idx == 0:
            dynamic = [i for i in range(path[1].idx + len(static) + 1) if i not in static]
            what, kind, text = argument_name(fun, dynamic[path[1].idx]) + keystr(path[2:]), "structure", tree_text
        else:
            what, kind, text = path[1].key + keystr(path[2:]), "structure", tree_text
        found.append(Change(what, (kind,), *(text(subtree(tree, path)) for tree in (now, before))))
    return found


CALLS = (  # of positional and of keyword arguments: what of them changed, and what to say of their trees
    ("the number of positional arguments", "call", lambda tree: str(len(tree.children()))),
    ("the names of keyword arguments", "call", lambda tree: ", ".join(tree.node_data()[1]) or "none"),
)


def subtree(tree, path: tuple):
    for key in path:
        tree = tree.children()[tree._keys().index(key)]
    return tree


def tree_text(tree) -> str:
    """A structure as it is written, a star for each leaf."""
    return shortened(repr(tree).removeprefix("PyTreeDef(").removesuffix(")"))


def static_changes(fun, now: dict, before: dict) -> list[Change]:
    return [
        static_change(name if isinstance(name, str) else argument_name(fun, name), now.get(name), before.get(name))
        for name in dict.fromkeys([*now, *before])
        if name not in now or name not in before or now[name] != before[name]
    ]


def static_change(name: str, now: Static | None, before: Static | None) -> Change:
    a, b = ("not given" if s is None else shortened(repr(s.value)) for s in (now, before))
    if now is None or before is None:
        return Change(name, ("call",), a, b)
    if type(now.value) is not type(before.value):
        return Change(name, ("static",), *(f"{x} of type {type(s.value).__name__}" for x, s in ((a, now), (b, before))))
    return Change(name, ("equal static" if without_address(a) == without_address(b) else "static",), a, b)


def shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def without_address(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "", text)


MESHES = {
    "mesh": "the mesh in force",
    "abstract_mesh": "the abstract mesh in force",
    "physical_mesh": "the mesh in force",
    "default_placement": "the default device",
    "said": "what compute_on and set_xla_metadata say",
}


def in_force(process: int, thread: int) -> dict:
    """The flags and meshes in force, from the two numbers in a cache key, and where a thread overrides them."""
    values = key_values(process)
    flags = {flag.name: value for flag, value in zip(TRACED, values, strict=False)}
    return flags | {"default_placement": values[-1]} | dict(key_values(thread))


def flag_changes(now: dict, before: dict) -> list[Change]:
    """Which flags changed, and which mesh or device is in force."""
    names = [name for name in dict.fromkeys([*now, *before]) if now.get(name) != before.get(name)]
    if not names:
        return [Change("where a flag is set", ("flag",), "process-wide", "in a thread, or the other way round")]
    found = [(f"the flag {name}", "flag", name) for name in names if name not in MESHES]
    found += [(text, "mesh", name) for name, text in MESHES.items() if name in names][:1]
    return [Change(what, (kind,), *(shortened(str(x.get(name))) for x in (now, before))) for what, kind, name in found]
