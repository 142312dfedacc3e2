"""Measures the evaluators of eager operations beside each other, and says where `lax/policy.py` is not the best choice
on this machine: `make calibrate`.

For every elementwise operation that has a loop: NumPy, the loop, and the program on all threads, in turns, at several
sizes. NumPy is a choice only where it gives the bits of the loop; whether it does is checked here. Microseconds, the
least of ROUNDS.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

import numpy as np  # noqa: E402

import catena  # noqa: E402
from catena.core.primitive import registry  # noqa: E402
from catena.lax import native, policy  # noqa: E402

SIZES = (1, 1_000, 30_000, 300_000)
ROUNDS = 7
WORSE = 1.25  # how much longer the table's choice may take than the best before it is named
DTYPES = ("float32", "float64", "bfloat16", "int32", "complex64")


def operand(dtype, size: int, rng):
    x = rng.uniform(0.5, 2.0, size)
    return (x * 4).astype(dtype) if np.dtype(dtype).kind in "iu" else x.astype(np.float32).astype(dtype)


def best_of(calls: dict) -> dict:
    """The least time of each call, in microseconds, taken in turns."""
    times = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name] = min(times[name], (time.perf_counter() - start) * 1e6)
    return times


def evaluators(name: str, dtype, xs) -> dict:
    """The ways to evaluate an operation on these operands that give the same bits."""
    primitive, loops = registry[name], native.LOOPS[name]
    loop = loops[xs[0].dtype]
    found = {"loop": lambda: loop(*xs, out=...)}
    expected = found["loop"]()
    if np.asarray(loops.in_numpy(*xs)).tobytes() == expected.tobytes():
        found["numpy"] = lambda: loops.in_numpy(*xs)
    if xs[0].size >= policy.LARGE:
        program = native.kernel(primitive, tuple((x.shape, x.dtype) for x in xs), ())
        found["program"] = lambda: program(xs)
    return found


def chosen(name: str, dtype, xs) -> str:
    """What the table says."""
    row = policy.ELEMENTWISE[name]
    if dtype in row.loop:
        return "program" if xs[0].size >= policy.LARGE else "loop"
    return "program" if dtype in row.shared and xs[0].nbytes + xs[-1].nbytes >= policy.SHARED else "numpy"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the names of operations")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng, better = np.random.default_rng(0), []
    print(f"{'operation':28} {'dtype':10} {'size':>8}  {'numpy':>9} {'loop':>9} {'program':>9}  table")
    for name in sorted(policy.ELEMENTWISE):
        if options.only not in name or name not in native.LOOPS:
            continue
        for dtype in map(np.dtype, DTYPES):
            for size in SIZES:
                xs = tuple(operand(dtype, size, rng) for _ in range(native.LOOPS[name].arity))
                try:
                    with np.errstate(all="ignore"):
                        ways = evaluators(name, dtype, xs)
                        times = best_of(ways)
                except (TypeError, ValueError):  # not of this dtype, or with parameters
                    break
                choice = chosen(name, dtype, xs)
                shown = " ".join(f"{times.get(way, np.nan):9.1f}" for way in ("numpy", "loop", "program"))
                best = min(times, key=times.get)
                mark = ""
                if choice in times and times[choice] > WORSE * times[best] and times[choice] - times[best] > 1:
                    mark = f"  {best} is {times[choice] / times[best]:.1f} times as fast"
                    better.append(f"{name} {dtype} {size}: {choice} -> {best}")
                print(f"{name:28} {dtype.name:10} {size:8}  {shown}  {choice}{mark}", flush=True)
    print(f"\n{len(better)} choices that are not the best here")


if __name__ == "__main__":
    with catena.enable_x64(True):
        main()
