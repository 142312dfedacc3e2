"""Jobs of which a process fails, leaves, hangs or is killed: all end, soon, and somebody says why."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

MPIEXEC = Path(sys.executable).with_name("mpiexec")
if not MPIEXEC.exists():
    pytest.skip("these tests start processes by MPI: make test-mpi", allow_module_level=True)

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"


def job(program: str, *arguments: str, processes: int = 3, timeout: float = 60):
    """Run a program in several processes: the status of the job, its seconds, and what it wrote."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "CATENA_NUM_THREADS": "1"}
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
