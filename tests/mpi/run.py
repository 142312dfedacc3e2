"""Run by mpiexec, one process each: the tests of this folder, in all processes side by side.

    mpiexec -n 4 python tests/mpi/run.py [part of a name]

Every process runs every test; those are functions without arguments, in files whose names end in ``_together``. A test
that fails in one process ends all of them, after its traceback.
"""

import importlib
import os
import pathlib
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
os.environ.setdefault("CATENA_NUM_THREADS", "1")

import catena as jax

HERE = pathlib.Path(__file__).parent


def main(wanted: str = "") -> None:
    jax.distributed.initialize(heartbeat_timeout_seconds=60)
    sys.path.insert(0, str(HERE))
    count = 0
    for path in sorted(HERE.glob("*_together.py")):
        module = importlib.import_module(path.stem)
        for name, test in vars(module).items():
            if name.startswith("test_") and wanted in f"{path.stem}.{name}":
                test()
                count += 1
    if jax.process_index() == 0:
        print(f"{count} tests passed in each of {jax.process_count()} processes")


if __name__ == "__main__":
    main(*sys.argv[1:])
