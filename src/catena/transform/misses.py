"""Why a jitted function is traced again (``jax_explain_cache_misses``, ``f.explain()``, and one warning)."""

from catena.core import config, log
from catena.core.context import context
from catena.core.source import PACKAGE, function_place, user_source

MANY = 5  # programs of one function, after which it is worth asking why


def explain(fun, key: tuple, known: list[tuple], names: list[str]) -> None:
    """Log why ``key`` was not found among the ``known`` cache keys of a jitted function."""
    place = function_place(fun)
    if not known:
        reason = f"never seen function:\n    {place}"
    else:
        reason = f"for {place}\n  all previously seen cache keys differ. For the closest previous key:\n"
        reason += "\n".join(f"  {line}" for line in history(key, known, names))
    log.announce("TRACING CACHE MISS at %s:\n  %s", user_source(), reason, loud=True)


def warn_of_many(fun, key: tuple, known: list[tuple], names: list[str]) -> None:
    """Log, when a user's function is about to be compiled once more after ``MANY`` times, what differed last."""
    place = function_place(fun)
    if len(known) != MANY or PACKAGE in place:
        return
    log.announce(
        "%s is compiled for the %dth time: %s. Each new combination of types, trees and static arguments compiles "
        "anew; f.explain() lists them all. (Said once.)",
        place, MANY + 1, "; ".join(history(key, known, names)), loud=True,
    )  # fmt: skip


def history(key: tuple, before: list[tuple], names: list[str]) -> list[str]:
    """How ``key`` differs from the closest of the keys ``before`` it, the latest of those; nothing for the first."""
    if not before:
        return []
    closest = min(reversed(before), key=lambda other: distance(key, other))  # the latest among equals: what changed
    return differences(key, closest, names)


def distance(a: tuple, b: tuple) -> tuple:
    """How many parts of two cache keys differ, and how many types of arguments."""
    return sum(x != y for x, y in zip(a, b, strict=True)), sum(x != y for x, y in zip(a[1], b[1], strict=False))


def differences(key: tuple, before: tuple, names: list[str]) -> list[str]:
    """One line for each difference."""
    lines = []
    if key[0] != before[0]:
        lines.append(f"different tree of arguments: now {key[0]}, before {before[0]}")
    elif key[1] != before[1]:
        lines += type_differences(key[1], before[1], names)
    if key[2] != before[2]:
        now, then = ({k: s.value for k, s in part[2]} for part in (key, before))
        lines.append(f"different static arguments: now {now}, before {then}")
    if key[3:5] != before[3:5]:
        lines.append("different configuration: " + changed_flags())
    if key[5] != before[5]:
        lines.append(f"different named axes: now {dict(key[5])}, before {dict(before[5])}")
    return lines


def type_differences(now: tuple, before: tuple, names: list[str]) -> list[str]:
    lines = []
    for name, a, b in zip(names, now, before, strict=False):  # names may be those of another call
        if a is not b:
            weak = "; Python scalars are weakly typed, arrays are not" if a.weak_type != b.weak_type else ""
            lines.append(f"different type of {name}: now {a}, before {b}{weak}")
    return lines


def changed_flags() -> str:
    """The flags that differ from their defaults, which is what a reader compares."""
    now = [(flag, getattr(context, flag.attribute)) for flag in config.TRACED]  # those of `make_user_context`, too
    changed = [f"{flag.name}={value!r}" for flag, value in now if value != flag.default]
    return f"now {', '.join(changed)}" if changed else "now all flags that matter have their defaults"
