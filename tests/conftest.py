"""Rules for every test: the run is hermetic, and one test's configuration never reaches the next."""

import atexit
import gc
import os
import shutil
import signal
import tempfile
import zlib
from collections import Counter
from pathlib import Path

# Before catena is imported: a stray variable in the user's shell must not decide a test.
# But `CATENA_CHECK_BOUNDS=1` runs the tests in checked mode (`make test-checked`), `CATENA_DIFFERENTIAL=1` makes
# `numpy/test_differential.py` compile all calls, `CATENA_NUM_THREADS=1` is part of `make test-machines`, `CATENA_TARGET`
# of `make test-targets`, `CATENA_COMPILER=none` is `make test-interpreted`, `CATENA_TEST_DEVICE=null` `make test-null`,
# `CATENA_EVERY_CASE=1` `make test-every` and `make random-vectors`.
MEANT = (
    "CATENA_CHECK_BOUNDS", "CATENA_COMPILER", "CATENA_DIFFERENTIAL", "CATENA_EVERY_CASE", "CATENA_NUM_THREADS",
    "CATENA_TARGET", "CATENA_TEST_DEVICE",
)  # fmt: skip
for name in [n for n in os.environ if n.startswith(("JAX_", "CATENA_")) and n not in MEANT]:
    del os.environ[name]
os.environ["CATENA_NUM_CPU_DEVICES"] = "8"  # for tests of placement and pmap: the number is fixed once devices are used

os.environ["CATENA_SLOW_COMPILE_SECS"] = "inf"  # what is said of that hangs on the machine's load

# Programs are kept on disk for the other workers and the processes that tests start, and go when this run ends: no
# run uses what another has compiled.
if "FOLDER_OF_THE_TESTS" not in os.environ:

    def remove(folder: str, made_by: int):
        if os.getpid() == made_by:  # not in a process that a test forked
            shutil.rmtree(folder, ignore_errors=True)

    os.environ["FOLDER_OF_THE_TESTS"] = tempfile.mkdtemp(prefix="catena-tests-")
    atexit.register(remove, os.environ["FOLDER_OF_THE_TESTS"], os.getpid())
if os.environ.get("CATENA_TEST_DEVICE") == "null":
    os.environ["CATENA_CACHE"] = "0"  # what is found on disk was compiled, not planned
os.environ["CATENA_CACHE_DIR"] = os.path.join(os.environ["FOLDER_OF_THE_TESTS"], "programs")

# OpenBLAS's threads wait by asking the system for their turn again and again, a tenth of a second after each product
# (a third of the suite's time): 2**4 rounds of it are enough. Processes that tests start inherit it.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# And a thread that waits for one that has no core, as each process of several has one, spins until then: one each.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A Python that a test starts runs the source that is tested, not what is installed.
SOURCE = str(Path(__file__).parent.parent / "src")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))

# A shell that starts a job in the background has it ignore Ctrl-C, which tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import hypothesis  # noqa: E402
import pytest  # noqa: E402
from _pytest.doctest import DoctestModule  # noqa: E402
from _pytest.runner import runtestprotocol  # noqa: E402

from catena.compiler.native import stored  # noqa: E402
from catena.core import lazy  # noqa: E402
from catena.core.config import config  # noqa: E402
from shares import EVERY, share  # noqa: E402
from without_compiler import ROWS, reason_to_skip, whole_file_reason  # noqa: E402

SKIPPED = [] if lazy.has_compiler() else ROWS
if os.environ.get("CATENA_TEST_DEVICE") == "null":
    import null_device

    null_device.install()
    SKIPPED = null_device.ROWS
collect_ignore = ["house/types"]  # programs that a type checker reads; nobody runs them

# No test measures time: a busy machine must not fail one. Every run draws the same examples, so that a failure is
# the change's; `pytest --hypothesis-profile=search` looks for new ones.
hypothesis.settings.register_profile("catena", deadline=None, derandomize=True)
hypothesis.settings.register_profile("search", deadline=None)
hypothesis.settings.load_profile("catena")

CHECKED_FLAGS = (
    "jax_enable_x64",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_disable_jit",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_slow_compile_secs",
)


def pytest_addoption(parser):
    parser.addoption("--part", default="0/1", help="k/n: the k-th of n parts of the tests, counted from 0")


def pytest_collection_modifyitems(config, items):
    """Parts by a hash of the tests' names: a new test moves no other. A docstring that is found where its function is
    defined is not run again where the function is public.
    """
    defined: dict[str, str] = {}
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            defined[item.dtest.docstring] = max(defined.get(item.dtest.docstring, ""), item.name, key=depth)
    for item in items:
        reason = reason_to_skip(item.nodeid, SKIPPED) if SKIPPED else None
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
    k, n = map(int, config.getoption("--part").split("/"))
    tried = in_shares(items)
    items[:] = [
        item
        for item in items
        if tried.get(item.nodeid, True)
        and zlib.crc32(item.nodeid.encode()) % n == k
        and (not isinstance(item, pytest.DoctestItem) or depth(item.name) == depth(defined[item.dtest.docstring]))
    ]


def in_shares(items) -> dict[str, bool]:
    """Which cases are tried of tests that are marked ``share(of)``, by their names (see `shares.share`)."""
    tables: dict = {}
    for item in items if not EVERY else ():
        if mark := item.get_closest_marker("share"):
            tables.setdefault((item.function, mark.args[0]), []).append(item)
    tried = {}
    for (_, of), cases in tables.items():
        columns: dict = {}
        chosen = share(of, [numbers(case, columns) for case in cases])
        tried |= {case.nodeid: row in chosen for row, case in enumerate(cases)}
    return tried


def numbers(item, columns: dict) -> tuple[int, ...]:
    """The numbers of a case's values in their columns, which are counted as they come: a case that is asked for by its
    name alone is the first of its table.
    """
    found = []
    for names in [marked.args[0] for marked in item.iter_markers("parametrize")]:
        given = names.replace(",", " ").split() if isinstance(names, str) else names
        column = columns.setdefault(names, {})
        found.append(column.setdefault(tuple(id(item.callspec.params[name]) for name in given), len(column)))
    return tuple(found)


class Skipped(pytest.File):
    """A file of tests that need a compiler, where there is none: it is not even imported."""

    def collect(self):
        pytest.skip(whole_file_reason(self.path), allow_module_level=True)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    found = yield
    if Path(__file__).parent in file_path.parents:  # examples stand in docstrings of the source
        found = [each for each in found if not isinstance(each, DoctestModule)]
    if found and not lazy.has_compiler() and whole_file_reason(file_path):
        return [Skipped.from_parent(parent, path=file_path)]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Nobody looks for garbage meanwhile: nearly all that is made stays, and that took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """What is collected stays: the garbage collector need not look through 30,000 tests again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # no test hangs on when garbage is looked for


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Reported are calls, and what else went wrong: what is said of every setup and teardown, sent from one process to
    another and counted there, took a third of what a test costs that does nothing.
    """
    where = {"nodeid": item.nodeid, "location": item.location}
    item.ihook.pytest_runtest_logstart(**where)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(**where)
    return True


def depth(name: str) -> int:
    """How deep in the package a dotted name stands."""
    return name.count(".")


@pytest.fixture
def unfrozen():
    """Collection's objects are looked through again: among them, say, a module's variable that holds a tracer."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.fixture
def young():
    """The garbage collector looks only at what the test makes: half a second less for each collection."""
    gc.freeze()


@pytest.fixture(autouse=True)
def same_config_after_as_before():
    """Fail a test that changes a flag and leaves it changed."""
    before = {name: getattr(config, name) for name in CHECKED_FLAGS}
    yield
    changed = [name for name in CHECKED_FLAGS if getattr(config, name) != before[name]]
    for name in changed:
        config.update(name, before[name])
    assert not changed, "the test left configuration flags changed"


def pytest_terminal_summary(terminalreporter):
    """What tests counted (``record_property`` with a dict), summed up: shown with any verbosity, and with xdist."""
    totals: dict[str, Counter] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, counts in report.user_properties:
                if isinstance(counts, dict):
                    totals.setdefault(name, Counter()).update(counts)
    for name, counts in totals.items():
        parts = ", ".join(f"{count} {what}" for what, count in counts.most_common())
        terminalreporter.write_line(f"{name}: {counts.total()} looked at: {parts}")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder where compiled programs are kept, as in a process that has not seen any."""
    monkeypatch.setenv("CATENA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CATENA_CACHE", raising=False)
    monkeypatch.setattr(lazy, "LOADED", 2**63)  # files edited while the tests run count as loaded
    stored.source_stamp.cache_clear()
    return tmp_path / "cache"
