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


@pytest.mark.share(5)
@pytest.mark.parametrize("shape", ROWS, ids=str)
@pytest.mark.parametrize("dtype", battery.FLOATS)
def test_sums_of_rows(shape, dtype):
    function, some = battery.REDUCTIONS["sum of rows"].function, lambda name: any(part in name for part in ALIKE)
    with catena.enable_x64(True):
        assert not battery.differences("rows", function, battery.numbers(shape, dtype), some)


ANYWHERE = (
    ("sum of rows", (5, 12)),
    ("sum of rows", (300, 12)),
    ("sum of rows", (300, 100)),
    ("product of rows", (4, 100)),
    ("sum of columns", (12, 40)),
    ("sum of columns", (1000, 100)),
    ("sum of columns", (70_000, 5)),
    ("sum of all", (150_001,)),
    ("sum of all", (50, 100)),
    ("sum of all", (600, 301)),
    ("variance of rows", (7, 1000)),
)


@pytest.mark.share(3)
@pytest.mark.parametrize(("name", "shape"), ANYWHERE, ids=str)
def test_whatever_surrounds_a_reduction(name, shape):
    rows = "rows" in name
    some = lambda surrounding: rows or "middle" not in surrounding  # noqa: E731  columns would lie apart
    with catena.enable_x64(True):
        x = battery.numbers(shape, "float32")
        x = 1 + x / 64 if "product" in name else x
        assert not battery.differences(name, battery.REDUCTIONS[name].function, x, some)
