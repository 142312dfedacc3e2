"""Types of arrays: what they say besides shape and dtype."""

import pickle

import numpy as np

from catena.core.aval import ShapedArray, same_type
from catena.core.manual_axes import ManualAxisType


def test_types_say_over_which_manual_axes_a_value_varies():
    plain = ShapedArray((8, 4), np.float32)
    varying = plain.update(manual_axis_type=ManualAxisType(varying={"data"}))
    assert str(varying) == "float32[8,4]{V:data}" and plain.plain and not varying.plain
    assert varying is not plain and varying.vma == {"data"} and varying.mat.unreduced == frozenset()
    assert varying.update(shape=(3,)) is ShapedArray((3,), np.float32, manual_axis_type=varying.mat)
    assert varying.update(manual_axis_type=ManualAxisType()) is plain
    assert pickle.loads(pickle.dumps(varying)) is varying
    assert not same_type(plain, varying)
    states = ManualAxisType(varying={"b", "a"}, unreduced={"c"}, reduced={"d"})
    assert plain.update(manual_axis_type=states).str_short(True) == "f32[8,4]{V:(a,b), U:c, R:d}"
