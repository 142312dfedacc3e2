"""Profiles of memory, read back as ``pprof`` reads them."""

import gzip

import pytest

import catena as jax
import catena.numpy as jnp


def varint(data: bytes, at: int) -> tuple[int, int]:
    n = shift = 0
    while True:
        n, at, shift, last = n | (data[at] & 127) << shift, at + 1, shift + 7, data[at] < 128
        if last:
            return n, at


def fields(data: bytes) -> list:
    """The fields of a message, as (number, integer or bytes)."""
    out, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        size, at = varint(data, at)
        if key & 7 == 2:
            out.append((key >> 3, data[at : at + size]))
            at += size
        else:
            out.append((key >> 3, size))
    return out


def varints(data: bytes) -> list:
    out, at = [], 0
    while at < len(data):
        n, at = varint(data, at)
        out.append(n)
    return out


def read(data: bytes) -> dict:
    """From the name of a sample's function to its values and labels."""
    parts = fields(gzip.decompress(data))
    strings = [x.decode() for n, x in parts if n == 6]
    assert strings[0] == "" and len(set(strings)) == len(strings)
    assert [[strings[x] for _, x in fields(kind)] for n, kind in parts if n == 1] == [
        ["allocations", "count"],
        ["space", "bytes"],
    ]
    functions = {dict(fields(x))[1]: strings[dict(fields(x))[2]] for n, x in parts if n == 5}
    places = {dict(fields(x))[1]: dict(fields(dict(fields(x))[4]))[1] for n, x in parts if n == 4}
    out = {}
    for n, sample in parts:
        if n == 2:
            entries = fields(sample)
            (place,) = varints(dict(entries)[1])
            labels = {strings[dict(fields(x))[1]]: strings[dict(fields(x))[2]] for k, x in entries if k == 3}
            out[functions[places[place]]] = varints(dict(entries)[2]), labels
    return out


def test_arrays_by_type(tmp_path):
    kept = [jnp.ones((7, 1013)) + i for i in range(3)]
    view = kept[0].T
    found = read(jax.profiler.device_memory_profile())
    (count, size), labels = found["float32[7,1013]"]
    assert (count, labels) == (3, {"kind": "buffer", "device": "cpu:0"})
    shared = found["float32[1013,7]"][0]  # one memory, counted once
    assert shared[0] == 1 and size + shared[1] == 3 * 4 * 7 * 1013 and view.shape == (1013, 7)
    kept.clear()
    del view
    assert "float32[7,1013]" not in read(jax.profiler.device_memory_profile("cpu"))
    kept.append(jnp.ones(3))
    jax.profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert read((tmp_path / "memory.prof").read_bytes())
    with pytest.raises(RuntimeError, match="Unknown backend"):
        jax.profiler.device_memory_profile("zz")
    with pytest.raises(AttributeError, match="start_server is no part of catena: it serves a profiler"):
        jax.profiler.start_server(9999)
