"""Every case of tests/rules, of every dtype, computed in parts by its sharding rule and put together: the whole of what
tests/parallel/test_rules.py takes samples of.

    PYTHONPATH=src:tests/helpers python benchmarks/sharding_rules.py
"""

import collections
import sys

import catena
import structured_cases  # noqa: F401  more cases
from rule_cases import CASES
from split_parts import checked


def main() -> int:
    """Print how many primitives were split by how many cases, and every case whose parts do not make the whole."""
    split: collections.Counter = collections.Counter()
    failures = []
    with catena.enable_x64(True):
        for case in CASES.values():
            for dtype in case.dtypes:
                try:
                    split.update(checked(case, dtype))
                except Exception as error:  # a report, which counts it
                    failures.append(f"{case.name} of {dtype}: {type(error).__name__}: {str(error).splitlines()[0]}")
    print(f"{sum(split.values())} times one of {len(split)} primitives was split; {len(failures)} failures")
    print("\n".join(failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
