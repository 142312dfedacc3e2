"""Jobs of which a process fails, leaves, hangs or is killed: all end, soon, and somebody says why."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

MPIEXEC = Path(sys.executable).with_name("mpiexec")
if not MPIEXEC.exists():
    pytest.skip("these tests start processes by MPI: make test-mpi", allow_module_level=True)

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"


def surroundings() -> dict:
    """The environment of a job: one thread and one device for each process."""
    own = {"PYTHONPATH": str(SOURCE), "CATENA_NUM_THREADS": "1", "CATENA_NUM_CPU_DEVICES": "1"}
    return {**os.environ, **own}


def job(program: str, *arguments: str, processes: int = 3, timeout: float = 60):
    """Run a program in several processes: the status of the job, its seconds, and what it wrote."""
    environment = surroundings()
    command = [MPIEXEC, "-n", str(processes), sys.executable, HERE / "programs" / program, *arguments]
    start = time.monotonic()
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    return run.returncode, time.monotonic() - start, run.stdout + run.stderr


LINE = r"failing\.py:\d+ \(meet\)"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("error", [r"process 1 of 3 has failed", r'failing\.py", line \d+, in error', r"ValueError: this went wrong"]),
        (
            "leave",
            [r"they cannot meet, and the job ends", r"process 0 waits for others .*" + LINE, "process 1 has ended"],
        ),
        ("kill", [r"Killed|signal 9"]),
        ("crash", [r"Fatal Python error: Segmentation fault", r'failing\.py", line \d+ in crash']),
        ("terminate", [r"process 1 of 3 got SIGTERM again", r"in terminate"]),
        ("elsewhere", [r"process 1 runs at .*failing\.py:\d+ \(elsewhere\)", "it goes on waiting"]),
    ],
)
def test_a_job_of_which_a_process_is_lost_ends(how, said):
    if how == "elsewhere":  # nobody knows that this will not end: it is said, and the job goes on
        with pytest.raises(subprocess.TimeoutExpired) as error:
            job("failing.py", how, timeout=12)
        text = (error.value.stdout or b"").decode() + (error.value.stderr or b"").decode()
    else:
        status, seconds, text = job("failing.py", how)
        assert status != 0 and "met\n" not in text
        assert seconds < 20  # of which Python and MPI take some to begin
    for pattern in said:
        assert re.search(pattern, text), text


def test_a_process_that_takes_long_is_waited_for():
    status, _, text = job("failing.py", "slow")
    assert status == 0 and text.count("met") == 3
    assert re.search(r"process 1 runs at .*failing\.py:\d+ \(slow\)", text), text


# ---- killed while they train


def weights(folder) -> dict:
    """The bits of the newest checkpoint."""
    program = (
        "import sys, numpy as np; from catena.tools import checkpoint; import catena as jax\n"
        "tree = checkpoint.restore(sys.argv[1]); del tree['key']\n"
        "print(checkpoint.latest(sys.argv[1]), {k: np.asarray(x).tobytes().hex() for k, x in tree.items()})"
    )
    environment = surroundings()
    command = [sys.executable, "-c", program, str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


STEPS = 20


def test_a_job_that_is_killed_goes_on_to_the_same_bits(tmp_path):
    """KILLS=20 kills it as many times."""
    rng, saved = random.Random(0), 0
    for _ in range(int(os.environ.get("KILLS", "3"))):
        steps = STEPS * 1000  # so that it does not end by itself
        delay = rng.uniform(0, 4)
        status, _, text = job("training.py", str(tmp_path), str(steps), str(rng.randrange(3)), str(delay))
        assert status != 0 and re.search("Killed|signal 9", text), text
        assert time.time() - float(re.search(r"killed at ([\d.]+)", text)[1]) < 10, text  # all have ended
        begun = [int(n) for n in re.findall(r"begins at (\d+)", text)]
        assert not begun or begun[0] >= saved, text  # nothing that was saved is lost
        saved = max([saved, *map(int, re.findall(r"saved (\d+)", text))])
    assert saved > 0
    status, _, text = job("training.py", str(tmp_path), str(saved + STEPS), timeout=600)
    assert status == 0, text
    again = tmp_path / "again"
    status, _, text = job("training.py", str(again), str(saved + STEPS), timeout=600)
    assert status == 0 and weights(again) == weights(tmp_path), text


def test_a_job_that_is_told_to_end_saves_first(tmp_path):
    environment = surroundings()
    command = [MPIEXEC, "-n", "3", sys.executable, HERE / "programs" / "training.py", str(tmp_path), "1000000"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        lines = iter(run.stdout.readline, "")
        said = next(line for line in lines if "saved" in line)
        mine = [p for p in Path("/proc").iterdir() if p.name.isdecimal() and str(tmp_path) in command_line(p)]
        workers = [int(p.name) for p in mine if "training.py" in command_line(p) and "mpiexec" not in command_line(p)]
        os.kill(max(workers), signal.SIGTERM)
        text = said + "".join(lines)
    assert run.returncode == 0 and "got SIGTERM" in text, text
    assert int(re.search(r"ended at (\d+)", text)[1]) > int(said.split()[1])


# ---- examples


EXAMPLES = HERE.parents[1] / "examples"


@pytest.mark.parametrize("name", ["stencil", "tensor_parallel", "data_parallel"])
def test_an_example_gives_the_same_however_it_runs(name):
    if name == "data_parallel":
        pytest.importorskip("sklearn")
        pytest.importorskip("matplotlib")
    program = [sys.executable, EXAMPLES / f"{name}.py"]
    four = {"CATENA_NUM_CPU_DEVICES": "4"}
    ways = [
        (program, {}),
        (program, four),
        (program, {**four, "CATENA_EXECUTOR": "threads"}),
        ([MPIEXEC, "-n", "4", *program], {}),
    ]
    found = []
    for command, own in ways:
        environment = {**surroundings(), **own}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
        count, said = run.stdout.strip().splitlines()
        assert count.startswith("4 devices" if found else "1 devices"), count
        found.append(np.array(re.findall(r"\d+\.\d+", said), float))
    for numbers in found[1:]:
        np.testing.assert_allclose(numbers, found[0], rtol=2e-3)


def command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""
