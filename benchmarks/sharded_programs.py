"""Random programs for one device of a random mesh: sharded = unsharded, values and gradients.

`python benchmarks/sharded_programs.py --count N --seed S` makes programs of `tests/helpers/sharded_programs.py`, with
`check_vma` and without, every other one compiled, and lists those whose results differ from those of the same
mathematics on whole arrays. They are run by the vectorised program and by threads; `make random-mpi` runs them by two
processes of four devices each, all in one job, `mpiexec -n 8 python benchmarks/sharded_programs.py --executor mpi` by
eight.
"""

import argparse
import itertools
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
os.environ.setdefault("CATENA_NUM_CPU_DEVICES", str(8 // int(os.environ.get("PMI_SIZE", "1"))))

import catena as jax  # noqa: E402
from sharded_programs import differences  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--executor", action="append", choices=("vectorised", "threads", "mpi"))
    options = parser.parse_args()
    executors = options.executor or ["vectorised", "threads"]
    if "mpi" in executors:
        jax.distributed.initialize()
    quiet = jax.process_index() != 0  # all processes find the same
    start, wrong = time.perf_counter(), 0
    for seed in range(options.seed, options.seed + options.count):
        ways = (True, False) if executors != ["mpi"] else (seed % 4 < 2,)
        for check_vma, executor in itertools.product(ways, executors):
            try:
                found = differences(seed, check_vma, compiled=bool(seed % 2), executor=executor)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is listed, and the others are run)
                found = [f"program {seed}, {check_vma=}, {executor}: {type(error).__name__}: {error}"]
            wrong += bool(found)
            if found and not quiet:
                print(*found, sep="\n", flush=True)
    if not quiet:
        by = ", ".join(executors)
        took = f"{jax.process_count()} processes, {time.perf_counter() - start:.0f} s"
        print(f"{options.count} programs with check_vma and without, by the executors {by}, {took}: {wrong} differ")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
