"""Every primitive has all its rules, or says why not."""

import pytest

from catena.core.primitive import NoRule, registry, tables, unclaimed
from everything import load_everything

load_everything()

PRIMITIVES = sorted(registry)
RULES = [name for name, table in tables.items() if not table.optional]


def test_there_are_primitives():
    assert len(PRIMITIVES) > 100
    assert all(registry[name].name == name for name in PRIMITIVES)
    assert set(RULES) == {"abstract", "evaluate", "lower", "jvp", "transpose", "batch"}


def test_every_rule_belongs_to_a_table():
    """A rule under a misspelt name waits for a table that nobody makes."""
    assert not unclaimed


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_has_every_rule_or_a_reason(name):
    primitive = registry[name]
    missing = [kind for kind in RULES if getattr(primitive, kind) is None]
    assert not missing, f"{name} lacks {', '.join(missing)}: give the rule, or NoRule(reason)"
    for kind in RULES:
        rule = getattr(primitive, kind)
        assert callable(rule) or isinstance(rule, NoRule), f"{name}.{kind} is {rule!r}"


@pytest.mark.parametrize("name", PRIMITIVES)
def test_reasons_are_sentences(name):
    for kind in RULES:
        rule = getattr(registry[name], kind)
        if isinstance(rule, NoRule):
            assert len(rule.reason.split()) >= 3, f"{name}.{kind}: {rule.reason!r}"


def test_a_missing_rule_is_a_clear_error():
    primitive = next(registry[n] for n in PRIMITIVES if isinstance(registry[n].transpose, NoRule))
    with pytest.raises(NotImplementedError, match="Transpose|transpose"):
        primitive.rule("transpose")
