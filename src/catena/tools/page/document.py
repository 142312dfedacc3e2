"""Pages as HTML: one file that holds its data, its style and its script, and asks the network for nothing."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources

from catena.tools.holding import Held
from catena.tools.page.places import Places
from catena.tools.page.program import program_data
from catena.tools.watching import Watch, place_of
from catena.transform.explain import shown
from catena.transform.profile import Profile, duration

MOST_PROGRAMS, MOST_FUNCTIONS = 8, 200  # of a page

FRAME = (
    '<iframe srcdoc="{}" title="{}" style="width:100%;height:{}px;border:1px solid #8884;border-radius:6px"></iframe>'
)


@cache
def part(name: str) -> str:
    """A file of this folder."""
    return resources.files("catena.tools.page").joinpath(name).read_text("utf-8")


def document(title: str, data: dict) -> str:
    """The page of these data."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    filled = {"TITLE": html.escape(title), "STYLE": part("page.css"), "SCRIPT": part("page.js"), "DATA": text}
    head, *rest = part("page.html").split("{{")
    return head + "".join(filled[name] + after for name, _, after in (each.partition("}}") for each in rest))


def framed(page: str, height: int = 640) -> str:
    """A page as a part of a notebook: in a frame, so that neither styles the other."""
    return FRAME.format(html.escape(page, quote=True), "catena", height)


def of_profiles(title: str, profiles: Sequence[Profile]) -> str:
    """The page of what programs take."""
    places = Places()
    return finished(title, places, {"programs": [program_data(each, places, len(profiles)) for each in profiles]})


def of_held(held: Held) -> str:
    """The page of what takes memory."""
    places = Places()
    items = [
        {"what": item.what, "where": item.where, "bytes": item.bytes, "count": item.count}
        | {"places": places.numbers([item.source])}
        for item in held.items
    ]
    of_lines: Counter[tuple] = Counter()
    for item in held.items:
        if item.source is not None:
            of_lines[places.number(item.source)] += item.bytes
    notes = line_notes(places, of_lines, shown)
    data = {"programs": [], "held": {"total": held.bytes, "about": held.about, "items": items}, "notes": notes}
    return finished(held.title, places, data)


def of_watch(seen: Watch) -> str:
    """The page of a stretch of a program."""
    places = Places()
    looked_into = [each for each in seen.calls if each.profile is not None][:MOST_PROGRAMS]
    numbers = {id(each): number for number, each in enumerate(looked_into)}
    by_line: dict[int, list] = {}
    calls = []
    for each in seen.calls[:MOST_FUNCTIONS]:
        for source, (count, seconds) in each.lines.items():
            if source is not None:
                found = by_line.setdefault(places.number(source), [0, 0.0, place_of(source)])
                found[0] += count
                found[1] += seconds
        calls.append(
            {"name": each.name, "where": each.where, "calls": each.count, "running": each.running}
            | {"compiling": each.compiling, "traces": each.traced, "spans": each.spans, "why": each.why_not}
            | {"program": numbers.get(id(each)), "places": places.numbers(each.lines)}
        )
    order = sorted(by_line.items(), key=lambda item: -item[1][1])
    lines = [{"places": [p], "calls": n, "seconds": s, "where": where} for p, (n, s, where) in order]
    running = sum(each.running for each in seen.calls)
    script = {"seconds": seen.seconds, "running": running, "compiling": seen.compiling, "calls": calls, "lines": lines}
    programs = [program_data(each.profile, places, len(looked_into)) for each in looked_into]
    notes = line_notes(places, Counter({p: line[1] for p, line in by_line.items()}), duration)
    return finished(seen.title, places, {"programs": programs, "script": script, "notes": notes})


def line_notes(places: Places, amounts: Counter, text: Callable[[float], str]) -> dict[str, dict]:
    """What stands beside lines of the source: how much, and its share of all."""
    lines: Counter[str] = Counter()
    for place, amount in amounts.items():
        file, line, *_ = places.rows[place]
        lines[f"{file}:{line}"] += amount
    total = sum(lines.values()) or 1
    return {at: {"text": text(x), "share": x / total, "about": ""} for at, x in lines.items()}


def finished(title: str, places: Places, data: dict) -> str:
    """The page of data that speak of these places."""
    return document(title, {"title": title, "places": places.rows, "files": places.files(), **data})
