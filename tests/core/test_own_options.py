"""Flags that users add, and flags as absl defines them."""

import sys
import types

import pytest

import catena as jax
from catena.core import config as flags


@pytest.fixture
def depth(monkeypatch):
    monkeypatch.setattr(flags, "own_options", {})
    holder = types.SimpleNamespace(value=3)
    holder._set = lambda value: setattr(holder, "value", value)
    jax.config.add_option("my_depth", holder, int, ["How deep."], {"lower_bound": 0})
    return holder


def test_flags_of_ones_own(depth):
    assert jax.config.read("my_depth") == jax.config.my_depth == jax.config.values["my_depth"] == 3
    jax.config.update("my_depth", 5)
    flags.parse_arguments(["program", "--my_depth=7", "--other=1"])
    assert depth.value == 7
    for name in ("my_depth", "jax_enable_x64"):
        with pytest.raises(ValueError, match=f"Config option {name} already defined"):
            jax.config.add_option(name, depth, int, [], {})
    with pytest.raises(ValueError, match="must be bool, int, float, str or 'enum', got 'number'"):
        jax.config.add_option("other", depth, "number", [], {})


@pytest.mark.parametrize(
    ("kind", "text", "value"), [(bool, "", True), (bool, "no", False), (float, "2", 2.0), (str, "a", "a")]
)
def test_texts_of_the_command_line(kind, text, value):
    assert flags.Option(None, kind, (), {}).parsed(text) == value


def test_flags_of_absl(depth, monkeypatch):
    """By a stand-in for absl, which notes what is defined, and of which flags the command line sets two."""
    defined, begin = {}, []
    given = {"my_depth": 9, "jax_log_compiles": True}
    values = {name: types.SimpleNamespace(present=1, value=value) for name, value in given.items()}
    absent = types.SimpleNamespace(present=0)

    def definer(kind):
        return lambda name, *args, **kwargs: defined.update({name: (kind, *args, kwargs)})

    kinds = ("bool", "integer", "float", "string", "enum")
    fake = types.SimpleNamespace(**{f"DEFINE_{kind}": definer(kind) for kind in kinds})
    fake.FLAGS = type("Values", (), {"__getitem__": lambda self, name: values.get(name, absent)})()
    monkeypatch.setitem(sys.modules, "absl", types.ModuleType("absl"))
    monkeypatch.setitem(sys.modules, "absl.flags", fake)
    monkeypatch.setitem(sys.modules, "absl.app", types.SimpleNamespace(call_after_init=begin.append))
    jax.config.config_with_absl()
    assert defined["my_depth"] == ("integer", 3, "How deep.", {"lower_bound": 0})
    assert defined["jax_enable_x64"][:2] == ("bool", jax.config.values["jax_enable_x64"])
    before = jax.config.jax_log_compiles
    try:
        begin[0]()
        assert depth.value == 9 and jax.config.jax_log_compiles is True
    finally:
        jax.config.update("jax_log_compiles", before)
