"""Checkpoints come back as they were, on other meshes too; one that was not finished is none."""

import json
import os

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import NamedSharding, P
from catena.sharding import Mesh
from catena.tools import checkpoint, safetensors

D = jax.devices()
MESH = Mesh(np.array(D).reshape(2, 4), ("x", "y"))
W = np.arange(64, dtype=np.float32).reshape(8, 8)


def on(*spec, mesh=MESH):
    return NamedSharding(mesh, P(*spec))


def same(a, b):
    if getattr(getattr(a, "aval", None), "extended", False):
        assert a.dtype == b.dtype
        return same(jax.random.key_data(a), jax.random.key_data(b))
    assert type(a) is type(b) or not isinstance(a, (int, float, bool, complex)), (a, b)
    assert np.asarray(a).dtype == np.asarray(b).dtype and np.shape(a) == np.shape(b)
    np.testing.assert_array_equal(np.asarray(a).tobytes(), np.asarray(b).tobytes())
    return True


NAMES = "bool int4 int8 uint16 int32 float8_e5m2 float8_e3m4 float6_e2m3fn float16 bfloat16 float32 complex64".split()
TREE = {
    "dtypes": {name: jnp.arange(6).reshape(2, 3).astype(name) for name in NAMES},
    "numbers": (3, 2.5, True, 1 + 2j, np.float32(7)),
    "keys": [jax.random.key(3), jax.random.split(jax.random.key(1, impl="rbg"), 3)],
    "empty": [jnp.zeros((0, 3)), jnp.zeros((2, 0), int)],
    "views": jnp.asarray(W).T[::2],
    "spread": jax.device_put(W, on("x", "y")),
    "on one": jax.device_put(W, D[3]),
}


def test_every_leaf_comes_back_as_it_was(tmp_path):
    assert checkpoint.save(tmp_path, 4, TREE).wait() == tmp_path / "4"
    back = checkpoint.restore(tmp_path, TREE)
    assert jax.tree.all(jax.tree.map(same, TREE, back))
    assert back["spread"].sharding == on("x", "y") and back["on one"].devices() == {D[3]}
    flat = checkpoint.restore(tmp_path)
    assert same(flat["dtypes.bfloat16"], TREE["dtypes"]["bfloat16"]) and flat["numbers.1"].weak_type
    assert checkpoint.restore(tmp_path, {"numbers": (0,)}) == {"numbers": (3,)}  # a part of the tree
    assert flat["numbers.0"].weak_type and flat["numbers.0"] == 3


def test_arrays_come_back_on_other_meshes(tmp_path):
    checkpoint.save(tmp_path, 0, {"w": TREE["spread"], "k": TREE["keys"][1]})
    other = Mesh(np.array(D[:6]).reshape(3, 2), ("a", "b"))
    for spec, mesh in ((P(None, "b"), other), (P("x"), MESH), (P(), other)):
        like = {"w": jax.ShapeDtypeStruct((8, 8), np.float32, sharding=on(*spec, mesh=mesh))}
        w = checkpoint.restore(tmp_path, like)["w"]
        assert w.sharding == on(*spec, mesh=mesh) and same(w, TREE["spread"])
    key = jax.device_put(TREE["keys"][1], NamedSharding(Mesh(np.array(D[:3]), ("a",)), P("a")))
    assert checkpoint.restore(tmp_path, {"k": key})["k"].sharding == key.sharding


def test_parts_make_up_a_whole(tmp_path):
    """As several processes have written it: each part in a file of its own."""
    parts = {(i, j): W[4 * i : 4 * i + 4, 2 * j : 2 * j + 2] for i in range(2) for j in range(4)}
    folder = tmp_path / "1"
    folder.mkdir()
    listed = []
    for (i, j), part in parts.items():
        name = checkpoint.file_of(4 * i + j)
        safetensors.write(folder / name, {f"w@{i},{j}": part})
        listed.append({"start": [4 * i, 2 * j], "shape": [4, 2], "file": name, "tensor": f"w@{i},{j}"})
    leaf = {"name": "w", "shape": [8, 8], "dtype": "float32", "keys": False, "weak_type": False, "parts": listed}
    (folder / "index.json").write_text(json.dumps({"format": checkpoint.FORMAT, "step": 1, "leaves": [leaf]}))
    np.testing.assert_array_equal(checkpoint.restore(tmp_path)["w"], W)
    wanted = [(1, 7), (3, 5)]
    np.testing.assert_array_equal(checkpoint.elements(folder, leaf, {}, wanted), W[1:7, 3:5])


def test_what_was_not_finished_is_no_checkpoint(tmp_path):
    checkpoint.save(tmp_path, 1, {"w": W})
    left = tmp_path / f".2-{'0' * 32}"
    left.mkdir()
    (left / "process-00000.safetensors").write_bytes(b"half")
    (tmp_path / "7").mkdir()  # somebody's, without an index
    assert checkpoint.steps(tmp_path) == [1] and checkpoint.latest(tmp_path) == 1
    checkpoint.save(tmp_path, 2, {"w": W}, keep=1)
    assert checkpoint.steps(tmp_path) == [2] and not left.exists() and not (tmp_path / "1").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2", "7"]


def test_saving_beside_the_program(tmp_path, monkeypatch):
    x = jnp.asarray(W)
    first = checkpoint.save(tmp_path, 1, {"x": x}, asynchronous=True)
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = step(x)  # in the memory of what is written
    second = checkpoint.save(tmp_path, 2, {"x": x}, asynchronous=True)
    same(checkpoint.restore(tmp_path, {"x": x}, step=1)["x"], jnp.asarray(W))
    same(checkpoint.restore(tmp_path, {"x": x})["x"], jnp.asarray(W + 1))
    assert first.wait() == tmp_path / "1" and second.wait() == tmp_path / "2"

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint, "write", full)
    with pytest.raises(OSError, match="no space left"):
        checkpoint.save(tmp_path, 3, {"x": x})
    checkpoint.save(tmp_path, 4, {"x": x}, asynchronous=True)
    with pytest.raises(OSError, match="no space left"):
        checkpoint.restore(tmp_path)
    assert checkpoint.latest(tmp_path) == 2


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda f: checkpoint.save(f, 1, {"w": W}), FileExistsError, "a checkpoint of step 1"),
        (lambda f: checkpoint.save(f, -1, {"w": W}), ValueError, "step must be an integer, at least 0"),
        (lambda f: checkpoint.save(f, True, {"w": W}), ValueError, "step must be"),
        (lambda f: checkpoint.save(f, 2, {"w": W}, keep=0), ValueError, "keep must be"),
        (lambda f: checkpoint.save(f, 2, {"a": {"b": "text"}}), TypeError, "the leaf 'a.b'"),
        (lambda f: checkpoint.restore(f, {"w": W}, step=9), FileNotFoundError, r"of step 9, only \[1\]"),
        (lambda f: checkpoint.restore(f / "none", {"w": W}), FileNotFoundError, "there is no checkpoint in"),
        (lambda f: checkpoint.restore(f, {"v": W}), KeyError, "no leaf 'v'"),
        (lambda f: checkpoint.restore(f, {"w": W[:3]}), ValueError, r"saved with the shape \(8, 8\)"),
        (lambda f: checkpoint.restore(f, {"w": W.astype(int)}), ValueError, "and dtype int32"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, call, error, text):
    checkpoint.save(tmp_path, 1, {"w": W})
    with pytest.raises(error, match=text):
        call(tmp_path)


def test_a_file_that_was_cut_off_is_named(tmp_path):
    path = checkpoint.save(tmp_path, 1, {"w": W}).wait() / "process-00000.safetensors"
    os.truncate(path, path.stat().st_size - 8)
    with pytest.raises(ValueError, match="and its header says"):
        checkpoint.restore(tmp_path)
    path.write_bytes(b"12345678")
    with pytest.raises(ValueError, match="no safetensors file"):
        checkpoint.restore(tmp_path)
    index = tmp_path / "1" / "index.json"
    index.write_text(index.read_text().replace(checkpoint.FORMAT, "another"))
    with pytest.raises(ValueError, match="of the format 'another'"):
        checkpoint.restore(tmp_path)


def test_other_programs_read_the_files(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    tree = {name: TREE["dtypes"][name] for name in ("bool", "int8", "uint16", "int32", "float16", "float32")}
    path = checkpoint.save(tmp_path, 1, tree).wait() / "process-00000.safetensors"
    read = library.load_file(path)
    assert all(same(read[name], np.asarray(x)) for name, x in tree.items())
    library.save_file({"a": W}, tmp_path / "theirs")
    np.testing.assert_array_equal(safetensors.Tensors(tmp_path / "theirs").read("a"), W)
