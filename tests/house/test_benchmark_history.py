"""The history of benchmarks: what is kept, and the page that is drawn from it."""

import doctest
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def history():
    spec = importlib.util.spec_from_file_location("history", ROOT / "benchmarks" / "history.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(group, name, ours, theirs=1.0):
    return {"group": group, "name": name, "ours": ours, "theirs": theirs}


def entry(commit, rows, machine="here"):
    return {"commit": commit, "date": f"2026-01-0{commit}T00:00:00", "subject": "", "machine": machine, "rows": rows}


def test_examples(history):
    failed, tried = doctest.testmod(history)
    assert tried and not failed


def test_one_entry_makes_a_page(history):
    page = history.document([entry("1", [row("loops", "scan", 0.5), row("loops", "while", 2.0)])])
    assert "Commits: 1, 1 (2026-01-01) to 1 (2026-01-01)." in page
    assert "| loops | 1.00x | 1.00x | ▄ |" in page and "our own times" not in page


def test_trends_and_what_changed(history):
    found = [entry(str(k), [row("loops", "scan", 1 / k), row("rows", "softmax", float(k), 8.0)]) for k in (1, 2, 4)]
    page = history.document([*found, entry("5", [row("loops", "scan", 9.0)], machine="elsewhere")])
    assert "| loops | 1.00x | 4.00x | ▁▄█ |" in page and "| rows | 8.00x | 2.00x | █▄▁ |" in page
    here, elsewhere = page.split("## elsewhere")
    slower, faster = here.index("softmax (rows): 2.00 of the time before"), here.index("scan (loops): 0.50 of the time")
    assert slower < faster and "Commits: 1, 5" in elsewhere


def test_small_changes_are_noise(history):
    page = history.document([entry("1", [row("a", "x", 1.0)]), entry("2", [row("a", "x", 1.05)])])
    assert "none by a tenth or more" in page


def test_runs_of_parts_add_up_and_changed_trees_are_not_kept(history, tmp_path, monkeypatch):
    answers = {"status": "", "log": "abc\n2026-02-03T04:05:06+00:00\nA subject"}
    monkeypatch.setattr(history, "git", lambda word, *_: answers[word])
    history.record([row("a", "x", 1.0)], tmp_path)
    path = history.record([row("a", "x", 3.0), row("b", "y", 2.0)], tmp_path)
    assert path.name == "2026-02-03-abc.json"
    [kept] = history.entries(tmp_path)
    assert kept["rows"] == [row("a", "x", 3.0), row("b", "y", 2.0)] and kept["subject"] == "A subject"
    answers["status"] = " M src/catena/lax/general_reduction.py"
    assert history.record([row("a", "x", 9.0)], tmp_path) is None and json.loads(path.read_text()) == kept


def test_the_page_is_current(history):
    assert history.PAGE.read_text() == history.document(history.entries()), "run `python benchmarks/history.py`"
