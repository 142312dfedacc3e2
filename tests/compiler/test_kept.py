"""Kernels that programs of other processes left on disk: found by programs that are new, and what must not be found."""

import gc
import json

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native import cache, kept, link
from catena.core.config import config

pytestmark = [
    pytest.mark.skipif(config.jax_check_bounds, reason="kernels of checked mode are no other program's"),
    pytest.mark.usefixtures("folder"),
]
X = np.random.default_rng(3).normal(size=(300, 40)).astype(np.float32)


def one(x):
    return jnp.sum(jnp.sin(x * 1.1875), axis=1)


def two(x):
    return one(x), jnp.sum(jnp.cos(x.T * 1.1875), axis=1)


@pytest.fixture
def texts(monkeypatch):
    """What LLVM is given, in this order."""
    found, compile_text = [], link.compile_text

    def noted(text, *rest):
        found.append(text)
        return compile_text(text, *rest)

    monkeypatch.setattr(link, "compile_text", noted)
    return found


def in_a_new_process(function, *args):
    """The results of a function when nothing that it needs is in the process."""
    jax.clear_caches()
    gc.collect()
    made = jax.tree.map(np.asarray, jax.jit(lambda *args: function(*args))(*args))
    jax.clear_caches()
    gc.collect()
    return made


def notes(folder):
    """The files that say where functions are, with what they hold."""
    found = {path: path.read_bytes()[cache.HEAD :] for path in folder.iterdir()}
    return {path: json.loads(content) for path, content in found.items() if content.startswith(b'["')}


def test_a_new_program_compiles_what_no_other_has(texts):
    first = in_a_new_process(one, X)
    known = set(link.defined("\n".join(texts))) - {"@entry"}
    assert any(name.startswith("@f") for name in known)
    texts.clear()
    again, _ = in_a_new_process(two, X)
    compiled = set(link.defined("\n".join(texts)))
    assert not known & {name for name in compiled if name.startswith("@f")}
    assert any(name.startswith("@f") for name in compiled)
    assert again.tobytes() == first.tobytes()


def test_functions_that_call_others_in_other_code():
    """Of a product's task and its tiles, some are compiled with one program and some with another."""

    def layers(x, w):
        return jnp.tanh(x @ w)

    w = X[:40] * 0.1
    first = in_a_new_process(lambda x, w: x @ w, X[:, :40], w)
    expected = in_a_new_process(layers, X, w)
    both = in_a_new_process(lambda x, w: (x @ w, layers(x, w), one(x)), X, w)
    assert both[0].tobytes() == first.tobytes() and both[1].tobytes() == expected.tobytes()


@pytest.mark.parametrize("content", [b"", b"}{", b"[1, 2]", b'["a", {}, []]', b'["a", [], 7]', b"[" * 100_000])
def test_notes_that_cannot_be_read_are_none(folder, content):
    first = in_a_new_process(one, X)
    found = notes(folder)
    assert found
    for path in found:
        cache.save(path.name, content)
    assert in_a_new_process(two, X)[0].tobytes() == first.tobytes()


def test_functions_whose_code_is_gone_are_compiled_again(folder, texts):
    first = in_a_new_process(one, X)
    for unit, _, _ in notes(folder).values():
        (folder / unit).unlink(missing_ok=True)
    texts.clear()
    assert in_a_new_process(two, X)[0].tobytes() == first.tobytes()
    assert texts


def test_notes_under_the_names_of_others_are_none(folder):
    in_a_new_process(two, X)
    found = [path for path, (_, exports, _) in notes(folder).items() if exports]
    contents = [path.read_bytes() for path in found]
    assert len(found) > 1
    for path, content in zip(found, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
        assert cache.load(path.name) is None


def test_without_a_cache_nothing_is_kept(folder, monkeypatch):
    monkeypatch.setenv("CATENA_CACHE", "0")
    in_a_new_process(one, X)
    assert not folder.exists()
    assert kept.find("no function's") is None


def test_other_source_finds_nothing(folder, monkeypatch, texts):
    in_a_new_process(one, X)
    known = {name for name in link.defined("\n".join(texts)) if name.startswith("@f")}
    texts.clear()
    monkeypatch.setattr(link, "PASSES", (*link.PASSES, "dead_code_elimination"))
    in_a_new_process(two, X)
    assert known <= set(link.defined("\n".join(texts)))
