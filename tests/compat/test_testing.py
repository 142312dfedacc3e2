"""What libraries' tests compare with."""

import ml_dtypes
import numpy as np
import pytest

import catena
from catena.compat.testing import check_close


def test_equal_up_to_what_dtypes_round():
    check_close({"a": np.float32(1), "b": [np.ones(2)]}, {"a": 1.0 + 5e-7, "b": [np.ones(2) + 1e-7]})
    check_close(np.float32(1).astype(ml_dtypes.bfloat16), 1.005)
    check_close(3, 3)
    check_close(1.0, 2.0, atol=2)
    check_close(1.0, 1.2, rtol={"float32": 0.3, "float64": 1e-9})  # without 64 bits, a Python float is a float32
    with catena.enable_x64(True):
        with pytest.raises(AssertionError):
            check_close(1.0, 1.2, rtol={"float32": 0.3, "float64": 1e-9})
        check_close(np.float32(1), 1.2, rtol={"float32": 0.3, "float64": 1e-9})  # the coarser one's


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        (1.0, 1.0 + 3e-6, AssertionError),
        (1, 2, AssertionError),
        (np.ones(2), np.ones(3), AssertionError),
        (np.ones(2), np.ones(()), AssertionError),
        ({"a": 1.0}, {"b": 1.0}, ValueError),
    ],
)
def test_different(x, y, error):
    with pytest.raises(error):
        check_close(x, y, err_msg="these")
