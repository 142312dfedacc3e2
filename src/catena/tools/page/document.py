"""Pages as HTML: one file that holds its data, its style and its script, and asks the network for nothing."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources

from catena.tools.page.places import Places
from catena.tools.page.program import program_data
from catena.transform.profile import Profile

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


def of_profiles(title: str, profiles: Sequence[Profile], **others) -> str:
    """The page of what programs take; ``others`` are parts of the page beside them."""
    places = Places()
    programs = [program_data(profile, places) for profile in profiles]
    return finished(title, places, {"programs": programs, **others})


def finished(title: str, places: Places, data: dict) -> str:
    """The page of data that speak of these places."""
    return document(title, {"title": title, "places": places.rows, "files": places.files(), **data})
