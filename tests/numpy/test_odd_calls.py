"""Odd calls give what JAX gives: values, dtypes, weak types, shapes, kinds of errors (see ``odd_calls``)."""

import json

import pytest

import catena as jax
from odd_calls import CALLS, DATA, agree, answer, kinds, names

ANSWERS = json.loads((DATA / "numpy_odd_answers.json").read_text())
PARTS = 20


@pytest.fixture(scope="module")
def given():
    return names(jax)


def error_is(found: str, call: str, given: dict, stored: str) -> bool:
    """Whether a call that raised did so with the kind of error that is stored, or a kind of it."""
    if not found.startswith("raises ") or not stored.startswith("raises "):
        return False
    try:
        eval(call, dict(given))
    except Exception as error:
        return stored.removeprefix("raises ") in kinds(error)
    return False


@pytest.mark.share(3)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_answer_is_that_of_jax(part, given):
    different = []
    for call in CALLS[part::PARTS]:
        found, stored = answer(jax, call, given), ANSWERS[call]
        same = len(found) == len(stored) and all(map(agree, found, stored))
        if not same and not (found and stored and error_is(found[0], call, given, stored[0])):
            different.append(f"{call}\n  gives   {found}\n  not     {stored}")
    assert not different, "\n".join(different)


def test_every_call_has_an_answer():
    assert set(CALLS) == set(ANSWERS)
    assert len(CALLS) >= 1500


def test_the_comparison_tells():
    assert agree("float32[2] 1 nan", "float32[2] 1.00001 nan") and agree("bfloat16[1] 1", "bfloat16[1] 1.005")
    for other in (
        "float32[2] 1 2.1",
        "~float32[2] 1 2",
        "int32[2] 1 2",
        "float32[2,1] 1 2",
        "float32[2] 1 nan",
        "int 1",
    ):
        assert not agree(other, "float32[2] 1 2")
