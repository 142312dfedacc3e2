"""Two processes of one thread each beside one process of two threads: the steps of three examples.

`make bench-ranks` runs `examples/data_parallel.py` (the digits), `stencil.py` and `tensor_parallel.py` in turns, as one
process and as two that `mpiexec` starts, and prints the least times of a step that they tell, and how much of the one
process's speed the two reach. Less than 85 % is an error. The machine should be idle: two processes that work together
wait for the slower one.
"""

import argparse
import math
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ("data_parallel", "stencil", "tensor_parallel")
FLOOR = 0.85
STEP = re.compile(r"(\d+) devices in (\d+) processes: ([\d.]+) (us|ms) a step")


def microseconds(example: str, processes: int) -> float:
    """What a step of an example takes, as it says itself: on so many processes, which have two threads together."""
    launcher = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(processes)] if processes > 1 else []
    threads = str(2 // processes)
    env = {**os.environ, "CATENA_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    command = [*launcher, sys.executable, str(ROOT / "examples" / f"{example}.py")]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    found = STEP.search(told.stdout)
    if told.returncode or found is None or int(found[2]) != processes:
        raise RuntimeError(f"{' '.join(command)} told no time of a step:\n{told.stdout}{told.stderr}")
    return float(found[3]) * {"us": 1, "ms": 1000}[found[4]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    slow = 0
    print("example            one process, 2 threads   two processes, 1 thread   speed")
    for example in [e for e in EXAMPLES if options.only in e]:
        least = {1: math.inf, 2: math.inf}
        for _ in range(options.turns):
            for processes in least:
                least[processes] = min(least[processes], microseconds(example, processes))
        reached = least[1] / least[2]
        slow += reached < FLOOR
        print(f"{example:18} {least[1]:20.0f} us {least[2]:22.0f} us   {reached:4.0%}", flush=True)
    return min(slow, 1)


if __name__ == "__main__":
    sys.exit(main())
