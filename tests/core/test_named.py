"""Named tuples are what `typing` makes of the same class."""

import copy
import inspect
import pickle
import re
import sys
import typing
from pathlib import Path

import pytest

import catena
from catena.core.named import NamedTuple


class Point(NamedTuple):
    """A point, and how it is called."""

    x: int
    y: "int" = 2
    name: str = "p"

    @property
    def sum(self) -> int:
        return self.x + self.y

    def moved(self, by):
        return super()._replace(x=self.x + by)


class Theirs(typing.NamedTuple):
    x: int
    y: "int" = 2
    name: str = "p"


class Nothing(NamedTuple):
    def one(self):
        return 1


def test_what_they_answer():
    ours, theirs = Point(1, name="q"), Theirs(1, name="q")
    assert repr(ours) == repr(theirs).replace("Theirs", "Point") == "Point(x=1, y=2, name='q')"
    assert ours == theirs and hash(ours) == hash(theirs) and [*ours] == [1, 2, "q"]
    for name in ("_fields", "_field_defaults", "__match_args__", "__slots__", "__module__"):
        assert getattr(Point, name) == getattr(Theirs, name)
    assert ours._asdict() == theirs._asdict() and Point._make([3, 4, "r"]) == (3, 4, "r")
    assert [*inspect.signature(Point).parameters] == [*inspect.signature(Theirs).parameters]
    assert typing.get_type_hints(Point) == typing.get_type_hints(Theirs)
    assert Point.__doc__ == "A point, and how it is called." and Point.__qualname__ == "Point"
    assert Point.__bases__ != (object,) and issubclass(Point, tuple) and not hasattr(ours, "__dict__")


def test_their_methods_and_copies():
    p = Point(1)
    assert p.sum == 3 and p.moved(4) == (5, 2, "p") and type(p.moved(4)) is Point
    assert Nothing().one() == 1 and Nothing() == ()
    for other in (pickle.loads(pickle.dumps(p)), copy.copy(p), copy.deepcopy(p), p._replace(y=2)):
        assert other == p and type(other) is Point
    match p:
        case Point(x, y):
            assert (x, y) == (1, 2)


@pytest.mark.parametrize("kind", [Point, Theirs])
def test_errors(kind):
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        kind()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        kind(1, z=3)
    refused = ValueError if sys.version_info < (3, 13) else TypeError
    with pytest.raises(refused, match=r"unexpected field names: \['z'\]"):
        kind(1)._replace(z=3)
    with pytest.raises(AttributeError):
        kind(1).x = 3


def test_defaults_come_last():
    with pytest.raises(TypeError, match="follows"):

        class Wrong(NamedTuple):
            x: int = 1
            y: int


def test_they_are_trees():
    doubled = catena.tree.map(lambda x: 2 * x, Point(1, 2, 3))
    assert doubled == (2, 4, 6) and type(doubled) is Point


def test_files_that_define_them_list_their_fields_in_all_pythons():
    root = Path(catena.__file__).parent
    texts = {path: path.read_text() for path in root.rglob("*.py")}
    users = {p: t for p, t in texts.items() if re.search(r"import .*\bNamedTuple\b", t) and p.name != "named.py"}
    assert len(users) > 100
    for path, text in users.items():
        assert "from __future__ import annotations" in text and "from catena.core.named import" in text, path
