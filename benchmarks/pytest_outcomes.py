"""A plugin of pytest's that writes down what becomes of each test as soon as it is known, and selects tests.

So what ran is known of a file that does not end. Environment variables say what to do: ``OUTCOMES`` names the file
that outcomes are added to, a line of JSON each, ``[test, outcome, message]``; ``OUTCOMES_WANTED`` a file with the names
of the tests to run, a line each, all without it; ``OUTCOMES_SHARE=2/24`` runs every 24th, from the second on.
"""

import json
import os
import re

WHOLE = "the file"  # the name of a test that stands for all in its file


def name_of(nodeid: str) -> str:
    """A test's name: its place behind the file's, without addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x", nodeid.partition("::")[2]) or WHOLE


def note(test: str, outcome: str, message: str = "") -> None:
    with open(os.environ["OUTCOMES"], "a") as file:
        file.write(json.dumps([test, outcome, message[:2000]]) + "\n")


def said(report) -> str:
    """What went wrong, in the words of the exception."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return crash.message
    text = str(report.longrepr)
    errors = [line[1:].strip() for line in text.splitlines() if line.startswith("E  ")]
    return errors[-1] if errors else text


def pytest_collection_modifyitems(items):
    wanted = os.environ.get("OUTCOMES_WANTED")
    if wanted:
        with open(wanted) as file:
            names = set(file.read().splitlines())
        items[:] = [item for item in items if name_of(item.nodeid) in names]
    share = os.environ.get("OUTCOMES_SHARE")
    if share:
        first, step = map(int, share.split("/"))
        items[:] = items[first - 1 :: step]


def pytest_collectreport(report):
    if report.failed:
        note(WHOLE, "failed", said(report))


def pytest_runtest_logreport(report):
    if report.failed:
        note(name_of(report.nodeid), "failed", said(report))
    elif report.skipped:
        note(name_of(report.nodeid), "skipped")
    elif report.when == "call":
        note(name_of(report.nodeid), "passed")
