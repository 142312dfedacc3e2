"""What a program computes beside a sum, or does to its operands before, changes no bit of the sum (`make neighbours`
runs the whole of it).
"""

import importlib.util
from pathlib import Path

import pytest

import catena

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("neighbours", ROOT / "benchmarks" / "neighbours.py")
battery = importlib.util.module_from_spec(spec)
spec.loader.exec_module(battery)

ROWS = ((3, 63), (200, 64), (4, 100), (2, 5000))
ALIKE = ("products", "choices", "spread", "wide", "narrow", "beside", "loop", "scan", "1 members", "7 members")


@pytest.mark.parametrize("shape", ROWS, ids=str)
@pytest.mark.parametrize("dtype", battery.FLOATS)
def test_sums_of_rows(shape, dtype):
    function, some = battery.REDUCTIONS["sum of rows"].function, lambda name: any(part in name for part in ALIKE)
    with catena.enable_x64(True):
        assert not battery.differences("rows", function, battery.numbers(shape, dtype), some)
