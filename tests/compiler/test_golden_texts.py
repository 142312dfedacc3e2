"""The LLVM text of some hundred programs is what it was, to the letter: a refactoring of the compiler changes nothing."""

import golden_texts

HINT = """
these programs are written differently now. `python tests/helpers/golden_texts.py --dump FOLDER`, here and at the commit
before, and `diff -r` show how. Where that is meant, `python tests/helpers/golden_texts.py --write` takes the new
texts; the commit's message then says which programs changed and why (a refactoring changes none)."""


def test_programs_are_written_as_before():
    changed = golden_texts.changes(golden_texts.digests())
    assert not changed, "\n".join([HINT, *changed])
