"""What partitioned programs send, beside real JAX: the collectives of its compiled text, and ours.

`python benchmarks/partition.py --jax-python PYTHON` partitions the programs of `tests/helpers/partition_programs.py`
over a mesh of 2 x 4 devices. For each it prints the bytes that a device sends, and the collectives. Devices stand in a
ring: a sum of n bytes over k devices sends 2n(k-1)/k, a gather of n bytes in all n(k-1)/k; in loops as often as these
run, where that is known.
"""

import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))
os.environ.setdefault("CATENA_NUM_CPU_DEVICES", "8")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import numpy as np  # noqa: E402

from partition_programs import PROGRAMS, SIZES, arguments  # noqa: E402

GOAL = 1.1


def ours(program) -> list[tuple]:
    """Kind, bytes and how often, for each collective of the partitioned program."""
    import catena as jax
    import catena.ops
    from catena import P
    from catena.parallel.partition import partition
    from catena.sharding import Mesh
    from catena.transform.layouts import split_of_spec

    mesh = Mesh(np.array(jax.devices()).reshape(tuple(SIZES.values())), tuple(SIZES))
    args = arguments(program)
    closed = jax.make_jaxpr(program.make(jax))(*args)
    split = lambda specs, avals: tuple(split_of_spec(P(*s), a.ndim) for s, a in zip(specs, avals, strict=True))  # noqa: E731
    outs = program.outs and split(program.outs, closed.out_avals)
    found = partition(closed, mesh, split(program.specs, args), outs)
    return [(s.kind, s.bytes, s.times) for s in found.sent]


def of_jax(program) -> list[tuple]:
    """The same of JAX's compiled text."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()).reshape(tuple(SIZES.values())), tuple(SIZES))
    put = lambda specs: tuple(NamedSharding(mesh, PartitionSpec(*s)) for s in specs)  # noqa: E731
    given = {"in_shardings": put(program.specs)}
    if program.outs is not None:
        given["out_shardings"] = put(program.outs) if len(program.outs) > 1 else put(program.outs)[0]
    return collectives(jax.jit(program.make(jax), **given).lower(*arguments(program)).compile().as_text())


KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|ragged-all-to-all"
WIDTHS = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16}


def collectives(text: str) -> list[tuple]:
    """The collectives in a compiled text, with the bytes that they send and how often they run."""
    found, loops, inside = [], {}, ""
    for line in text.splitlines():
        if header := re.match(r"\s*(?:ENTRY )?%?([\w.\-]+) .*\{\s*$", line):
            inside = header[1]
        if loop := re.search(r" while\(.*body=%?([\w.\-]+)", line):
            count = re.search(r"known_trip_count[^0-9]*(\d+)", line)
            loops[loop[1]] = inside, int(count[1]) if count else 1
        if match := re.search(rf"= (.*?) ({KINDS})(?:-start)?\(", line):
            found.append((inside, match[2], traffic(match[2], size(match[1]), group(line))))

    def times(name: str) -> int:
        around, count = loops.get(name, ("", 1))
        return count * times(around) if name in loops else 1

    return [(kind, sent, times(where)) for where, kind, sent in found]


def size(shapes: str) -> int:
    """The bytes of arrays of these types."""
    arrays = re.findall(r"([a-z]+\d*)\[([\d,]*)\]", shapes)
    return sum(WIDTHS.get(dtype, 4) * math.prod(map(int, filter(None, dims.split(",")))) for dtype, dims in arrays)


def group(line: str) -> int:
    """How many devices speak to each other."""
    if listed := re.search(r"replica_groups=\{\{([\d,]*)\}", line):
        return len(listed[1].split(","))
    if counted := re.search(r"replica_groups=\[(\d+),(\d+)\]", line):
        return int(counted[2])
    if named := re.search(r"replica_groups=mesh\[([^\]]*)\].*?\{([^}]*)\}", line):
        axes = dict(re.findall(r"'(\w+)'=(\d+)", named[1]))
        return math.prod(int(axes[name]) for name in re.findall(r"'(\w+)'", named[2]))
    return math.prod(SIZES.values())


def traffic(kind: str, result: int, ways: int) -> float:
    """What a device sends for a collective with a result of so many bytes."""
    if kind == "collective-permute":
        return result
    if kind == "reduce-scatter":
        return result * (ways - 1)
    return result * (ways - 1) / ways * (2 if kind == "all-reduce" else 1)


def described(found: list[tuple]) -> str:
    """How many of which collectives."""
    names = {"psum": "sum", "all-reduce": "sum", "psum_scatter": "scatter", "reduce-scatter": "scatter"}
    short = {"all_gather": "gather", "all-gather": "gather", "all_to_all": "exchange", "all-to-all": "exchange"}
    short |= {"ppermute": "permute", "collective-permute": "permute", "pmax": "max", "pmin": "min"}
    counts = collections.Counter((names | short).get(kind, kind) for kind, *_ in found)
    return ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())) or "none"


def total(found: list[tuple]) -> float:
    return sum(sent * times for _, sent, times in found)


def theirs(python: str, names: list[str]) -> dict:
    """What JAX does, from a process of its own."""
    command = [python, __file__, "--of-jax", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these programs")
    parser.add_argument("--jax-python", help="a Python with JAX 0.10.2")
    parser.add_argument("--of-jax", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.names or list(PROGRAMS)
    if options.of_jax:
        print(json.dumps({name: of_jax(PROGRAMS[name]) for name in names}))
        return 0
    beside = theirs(options.jax_python, names) if options.jax_python else {}
    over = 0
    print(f"{'':26}{'bytes':>9}{'JAX':>9}{'ratio':>7}  collectives; JAX's")
    for name in names:
        own, jax = ours(PROGRAMS[name]), beside.get(name, [])
        sent, reference = total(own), total(jax)
        ratio = sent / reference if reference else math.inf if sent else 1.0
        over += bool(beside) and ratio > GOAL
        print(f"{name:26}{sent:9.0f}{reference:9.0f}{ratio:7.2f}  {described(own)}; {described(jax)}")
    print(f"{len(names)} programs, {over} send more than {GOAL} times what JAX's do")
    return 0


if __name__ == "__main__":
    sys.exit(main())
