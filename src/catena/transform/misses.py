"""Why a jitted function is traced again (``jax_explain_cache_misses``)."""

from catena.core import config, log
from catena.core.source import function_place, user_source


def explain(fun, key: tuple, known: list[tuple], names: list[str]) -> None:
    """Log why ``key`` was not found among the ``known`` cache keys of a jitted function."""
    place = function_place(fun)
    if not known:
        reason = f"never seen function:\n    {place}"
    else:
        closest = min(known, key=lambda other: distance(key, other))
        reason = f"for {place}\n  all previously seen cache keys differ. For the closest previous key:\n"
        reason += "\n".join(f"  {line}" for line in differences(key, closest, names))
    log.announce("TRACING CACHE MISS at %s:\n  %s", user_source(), reason, loud=True)


def distance(a: tuple, b: tuple) -> tuple:
    """How many parts of two cache keys differ, and how many types of arguments."""
    return sum(x != y for x, y in zip(a, b, strict=True)), sum(
        x != y for x, y in zip(a[1], b[1], strict=False)
    )


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
    for name, a, b in zip(names, now, before, strict=True):
        if a is not b:
            weak = "; Python scalars are weakly typed, arrays are not" if a.weak_type != b.weak_type else ""
            lines.append(f"different type of {name}: now {a}, before {b}{weak}")
    return lines


def changed_flags() -> str:
    """The flags that differ from their defaults, which is what a reader compares."""
    changed = [f"{f.name}={config.read(f.name)!r}" for f in config.TRACED if config.read(f.name) != f.default]
    return f"now {', '.join(changed)}" if changed else "now all flags that matter have their defaults"
