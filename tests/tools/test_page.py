"""The page of a profile: one file that needs no network, whose lines know which steps and which source they belong to."""

import html.parser
import json
import re

import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native.compile import program_of
from catena.core import lazy
from catena.tools.page import document, listings

pytestmark = pytest.mark.skipif(not lazy.has_compiler(), reason="there is no compiler, so nothing to profile")


def model(x, w, b):
    y = jnp.tanh(x @ w + b)
    e = jnp.exp(y - jnp.max(y, axis=1, keepdims=True))  # the rows
    s = jax.lax.fori_loop(0, 3, lambda i, a: jnp.sin(a) @ w, e)
    return e / jnp.sum(e, axis=1, keepdims=True), jnp.sort(s, axis=0)


FIRST = model.__code__.co_firstlineno


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    profile = jax.jit(model).profile(jnp.ones((64, 64)), jnp.ones((64, 64)), jnp.ones(64))
    path = tmp_path_factory.mktemp("page") / "model.html"
    profile.save(path)
    return path.read_text()


@pytest.fixture(scope="module")
def data(page):
    (text,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def lines_of(data, places):
    return {line for place in places for line in range(data["places"][place][1], data["places"][place][2] + 1)}


class Nesting(html.parser.HTMLParser):
    """Fails where a tag is closed that is not open."""

    VOID = {"meta", "link", "br", "hr", "img", "input"}

    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_it_is_one_sound_file(page):
    parser = Nesting()
    parser.feed(page)
    assert not parser.open and not parser.links
    assert len(page.encode()) < 2_000_000 and "{{" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_source_that_ends_a_script_does_not_end_the_page():
    parser = Nesting()
    parser.feed(document.document("a <b>", {"text": "</script><!--<script>"}))
    assert not parser.open


def test_steps_know_their_lines(data):
    (program,) = data["programs"]
    names = [step["name"] for step in program["steps"]]
    assert "scan" in names and "sort" in names
    (inside,) = [s for s in program["steps"] if s["depth"] and "sin" in s["detail"]]
    assert lines_of(data, inside["places"]) == {FIRST + 3} and inside["runs"] == 3
    assert not program["steps"][names.index("scan")]["leaf"]


def test_the_source_is_there(data):
    (file,) = [f for f in data["files"] if f["name"] == "test_page.py"]
    shown = {block["first"] + i: line for block in file["blocks"] for i, line in enumerate(block["lines"])}
    assert shown[FIRST + 2].endswith("# the rows") and shown[FIRST] == "def model(x, w, b):"


def test_places_are_expressions(data):
    """Columns are those of the expression, so that the page can mark it in its line."""
    (file,) = [i for i, f in enumerate(data["files"]) if f["name"] == "test_page.py"]
    text = "    s = jax.lax.fori_loop(0, 3, lambda i, a: jnp.sin(a) @ w, e)"
    found = {text[a:b] for f, line, last, a, b in data["places"] if (f, line, last) == (file, FIRST + 3, FIRST + 3)}
    assert "jnp.sin(a)" in found


@pytest.mark.parametrize("stage", ["fusion", "graph", "program", "kernels", "llvm", "assembly"])
def test_every_step_is_in_every_stage(data, stage):
    (program,) = data["programs"]
    listed = {step for line in program["stages"][stage] for step in (line[2] if len(line) > 2 else ())}
    everything = set(range(len(program["steps"])))
    without_nests = {i for i, s in enumerate(program["steps"]) if s["name"] not in ("launch", "rows")}
    assert listed <= everything and everything - listed <= (without_nests if stage == "kernels" else set())


def test_equations_know_their_lines(data):
    (program,) = data["programs"]
    marked = [line for line in program["stages"]["jaxpr"] if len(line) > 1]
    lines = {re.search(r"= (\w+)", line[0])[1]: line[1] for line in marked}
    assert lines_of(data, lines["tanh"]) == {FIRST + 1} and lines_of(data, lines["exp"]) == {FIRST + 2}


def test_machine_code_of_a_function_belongs_to_its_step(data):
    (program,) = data["programs"]
    (sine,) = [i for i, s in enumerate(program["steps"]) if s["depth"] and "sin" in s["detail"]]
    mine = [line[0] for line in program["stages"]["llvm"] if line[2:] == [[sine]]]
    assert any("catena.sin" in line for line in mine)


REASONS = {
    "it is a result": lambda x: jnp.exp(x),
    "dot v2 reads memory": lambda x: jnp.exp(x) @ x,
    "broadcast v5 would compute each element several times": lambda x: jnp.exp(x[0])[:, None] * x,
    "2 readers would compute it again": lambda x: (jnp.sum(jnp.exp(x), 0), jnp.sum(jnp.exp(x), 1)),
    "it is made as a whole before it is read": lambda x: jnp.exp(jnp.sum(x, 0)),
}


@pytest.mark.parametrize("reason", REASONS)
def test_reasons_for_memory(reason):
    fused = program_of(jax.make_jaxpr(REASONS[reason])(jnp.ones((4, 4)))).fused
    assert reason in fused.stored.values() and all(v.number in fused.stored for v in fused.region.outputs)


def test_memory_has_who_holds_it(data):
    (program,) = data["programs"]
    held = {b["title"]: b for b in program["memory"]["buffers"]}
    assert held["argument x"]["bytes"] == 64 * 64 * 4 and "writes" not in held["argument x"]
    last = len(program["steps"]) - 1
    assert all(0 <= b["first"] <= b["last"] <= last for b in held.values())
    assert held["result 1"]["writes"] == [last]
    for each in (b for b in program["memory"]["buffers"] if b["kind"] == "arena"):
        assert each["at"] + each["bytes"] <= program["memory"]["arena"]


def test_pieces_of_memory_in_use_at_once_do_not_overlap(data):
    pieces = [b for b in data["programs"][0]["memory"]["buffers"] if b["kind"] == "arena"]
    for i, a in enumerate(pieces):
        for b in pieces[i + 1 :]:
            apart = a["at"] + a["bytes"] <= b["at"] or b["at"] + b["bytes"] <= a["at"]
            assert apart or a["last"] <= b["first"] or b["last"] <= a["first"]


def test_long_lists_of_steps_are_there_once():
    long = list(range(20))
    stages = {"llvm": [["a", [], list(long)], ["b", [1], list(long)], ["c", [], [3]], ["d"]]}
    assert listings.shared_lists(stages) == [long]
    assert stages == {"llvm": [["a", [], 0], ["b", [1], 0], ["c", [], [3]], ["d"]]}


def test_a_program_without_steps_has_a_page():
    profile = jax.jit(lambda x: x).profile(jnp.ones(3))
    assert "<script" in profile._repr_html_().replace("&lt;", "<")
