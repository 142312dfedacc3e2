"""What notebooks show: small, quick, and right about what it shows."""

import base64
import re
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core import lazy
from catena.tools import pictures


def pixels(html):
    """The pixels of the image in a face."""
    data = base64.b64decode(re.search(r"base64,([^\"]*)", html)[1])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + size
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


ARRAYS = {
    "scalar": lambda: jnp.float32(3.5),
    "empty": lambda: jnp.zeros((0, 3)),
    "small": lambda: jnp.arange(6).reshape(2, 3),
    "bool": lambda: jnp.arange(1000) > 3,
    "complex": lambda: jnp.arange(400) * 1j,
    "half": lambda: jnp.ones((40, 50), jnp.bfloat16).at[3, 4].set(jnp.inf),
    "float8": lambda: jnp.ones(300, jnp.float8_e4m3fn),
    "nothing but nan": lambda: jnp.full(300, jnp.nan),
    "all the same": lambda: jnp.ones((4, 5, 6)),
    "the greatest": lambda: jnp.array([-1, 1] * 50, jnp.float32) * np.finfo(np.float32).max,
    "int4": lambda: jnp.zeros((20, 20), jnp.int4),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    x = ARRAYS[name]()
    html = x._repr_html_()
    assert x.aval.str_short() in html and len(html) < 32_000
    assert x._repr_mimebundle_() == {"text/plain": repr(x), "text/html": html}


def test_a_matrix_is_a_picture_in_its_proportions():
    html = jnp.asarray(np.outer(np.arange(20.0), np.ones(30)))._repr_html_()
    seen = pixels(html)
    assert seen.shape == (20, 30, 3) and 'width="160" height="107"' in html
    assert (seen[0] == (68, 1, 84)).all() and (seen[-1] == (253, 231, 37)).all()  # low and high


def test_what_is_no_number_is_red():
    seen = pixels(jnp.zeros((9, 9)).at[2, 3].set(jnp.nan)._repr_html_())
    assert tuple(seen[2, 3]) == pictures.NO_NUMBER and tuple(seen[3, 2]) != pictures.NO_NUMBER


def test_images_keep_their_colours():
    colours = np.random.default_rng(0).integers(0, 256, (10, 12, 3)).astype(np.uint8)
    assert (pixels(jnp.asarray(colours)._repr_html_()) == colours).all()


def test_large_arrays_are_sampled():
    large = np.broadcast_to(np.float32(1), (100_000, 90_000))
    assert pictures.sample(large).size <= pictures.SAMPLED
    assert pixels(pictures.picture(large)).shape[0] <= pictures.SIDE
    assert pictures.sample(np.broadcast_to(np.float32(1), (10**12,))).size <= pictures.SAMPLED


def test_a_histogram_counts():
    bars = re.findall(
        r'<rect x="([\d.]+)" y="[\d.]+" width="[\d.]+" height="([\d.]+)"',
        pictures.histogram(np.array([0.0] * 3 + [1.0])),
    )
    assert bars == [("0.0", "48.0"), ("186.0", "16.0")]


def test_keys():
    html = jax.random.split(jax.random.key(1), 200)._repr_html_()
    assert "key&lt;fry&gt;[200]" in html and "the first 64" in html


def test_deleted_arrays():
    for x in (jnp.ones(3), jax.random.key(0)):
        x.delete()
        assert "deleted" in x._repr_html_()


def test_jaxprs_have_lines_and_places():
    html = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)._repr_html_()
    line = test_jaxprs_have_lines_and_places.__code__.co_firstlineno + 1
    assert f'title="test_faces.py:{line}"' in html and ">sin</span>" in html and len(html) < 4000


def test_long_listings_are_cut():
    def long(x):
        for _ in range(400):
            x = x + 1
        return x

    html = jax.make_jaxpr(long)(1)._repr_html_()
    assert "more lines" in html and html.count("<div") < 320


def test_trees():
    html = jax.tree.structure({"a": 1, "b": (2, [3, None])})._repr_html_()
    assert "&#x27;b&#x27;: tuple of 2" in html and "3 leaves" in html
    assert "10,000 leaves" in jax.tree.structure(list(range(10_000)))._repr_html_()


def test_functions_and_stages():
    f = jax.jit(lambda x: jnp.sum(jnp.sin(x)))
    assert "not traced yet" in f._repr_html_()
    f(jnp.ones(3))
    assert "traced once" in f._repr_html_() and "float32[3]" in f._repr_html_()
    for stage in (f.trace(jnp.ones(3)), f.lower(jnp.ones(3)), f.lower(jnp.ones(3)).compile()):
        html = stage._repr_html_()
        assert type(stage).__name__ in html and "float32[3]" in html and ">reduce_sum</span>" in html
    if lazy.has_compiler():
        assert "kernel over 3" in html and "arguments 12 bytes" in html


def test_no_face_is_loaded_before_it_is_seen():
    code = "import sys, catena, catena.numpy; catena.jit(lambda x: x)(1); print('catena.tools.faces' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
