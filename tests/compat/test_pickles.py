"""Pickles that JAX 0.10.2 wrote (tests/data/jax_pickles.txt, compressed) are read under the alias, as ours."""

import base64
import pickle
import zlib
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

WRITTEN = Path(__file__).parents[1] / "data" / "jax_pickles.txt"


@pytest.fixture(scope="module")
def read():
    with jax.as_jax():
        return pickle.loads(zlib.decompress(base64.b85decode(WRITTEN.read_text().replace("\n", ""))))


def test_arrays(read):
    w, b, weak = read["tree"]["w"], read["tree"]["b"][0], read["weak"]
    assert type(w) is type(jnp.ones(1)) and w.tolist() == [[0, 1, 2], [3, 4, 5]] and (w + 1).dtype == "float32"
    assert b.dtype == jnp.bfloat16 and b.tolist() == [1, 1]
    assert weak.weak_type and weak == 2 and not w.weak_type
    assert read["int4"].dtype == jnp.int4 and read["empty"].shape == (0, 3)
    assert read["bool"].dtype == bool and read["complex"].tolist() == [1j]
    assert read["old"].tolist() == [0, 1]


def test_doubles_have_the_width_that_is_enabled(read):
    assert read["wide"].dtype == "float32"
    with jax.enable_x64(True), jax.as_jax():
        wide = pickle.loads(zlib.decompress(base64.b85decode(WRITTEN.read_text().replace("\n", ""))))["wide"]
        assert wide.dtype == "float64" and wide.tolist() == [0, 1]


def test_keys_draw_what_they_drew_in_jax(read):
    assert jnp.all(read["keys"] == jax.random.split(jax.random.key(3), 4))
    assert jax.random.bits(read["keys"][1]) == 111646283
    assert jax.random.bits(read["rbg"]) == jax.random.bits(jax.random.key(1, impl="rbg"))
    assert read["urbg"] == jax.random.key(1, impl="unsafe_rbg")
    assert pickle.loads(pickle.dumps(read["rbg"])) == read["rbg"]  # and they are ours from now on


def test_structures_of_trees(read):
    structure = jax.tree.structure
    leaf, nothing, nested, ordered, default, partial = read["structures"]
    assert leaf == structure(1) and hash(leaf) == hash(structure(1)) and leaf.unflatten([5]) == 5
    assert str(leaf) == "PyTreeDef(*)" and leaf.node_data() is None
    assert leaf.compose(structure([0])) == structure([0]) == structure([0]).compose(leaf)
    assert nothing == structure(None)
    assert nested == structure({"a": [1, (2, None)]}) and nested.unflatten([1, 2]) == {"a": [1, (2, None)]}
    assert ordered.unflatten([1, 2]) == OrderedDict(b=1, a=2)
    assert default.unflatten([1]) == defaultdict(list, a=1)
    assert partial.unflatten([1])(3) == 3
    for read_one in read["structures"]:
        assert pickle.loads(pickle.dumps(read_one)) == read_one and type(read_one) is type(structure(1))


def test_what_describes_arrays(read):
    assert read["struct"] == jax.ShapeDtypeStruct((2,), "bfloat16")
    assert jax.tree_util.keystr(read["path"]) == "['a'][0]"
    precision, mode, algorithm = read["enums"]
    assert (precision, mode) == (jax.lax.Precision.HIGHEST, jax.lax.GatherScatterMode.CLIP)
    assert algorithm is jax.lax.RandomAlgorithm.RNG_PHILOX
    convolution, gather, scatter = read["numbers"]
    assert convolution == jax.lax.conv_dimension_numbers((1, 1, 1), (1, 1, 1), None)
    assert gather == jax.lax.GatherDimensionNumbers((0,), (0,), (0,))
    assert scatter == jax.lax.ScatterDimensionNumbers((0,), (0,), (0,))
    assert read["type"] is jnp.bfloat16


def test_our_structs_are_pickled():
    struct = jax.ShapeDtypeStruct((2, 3), np.float32, weak_type=True)
    assert pickle.loads(pickle.dumps(struct)) == struct
