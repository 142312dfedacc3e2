"""Keys that are used twice, found in the text of a script and in the program of a function."""

import pytest

import catena as jax
from catena import tools

HEAD = """\
import functools
import jax
import jax.random as jr
from jax import lax, random
from jax.random import normal as draw

key, flag, x = random.key(0), True, 1.0
"""

# Each script, and the lines (first use, second use) that are found in it, counted from the line after the head.
SCRIPTS = {
    "twice": ("a = random.normal(key)\nb = jr.uniform(key)", [(1, 2)]),
    "by three names": ("jax.random.split(key)\ndraw(key)", [(1, 2)]),
    "by keyword": ("draw(key=key)\ndraw(key=key)", [(1, 2)]),
    "split": ("key, sub = random.split(key)\ndraw(sub)\nkey, sub = random.split(key)\ndraw(sub)", []),
    "folded": ("draw(random.fold_in(key, 0))\ndraw(random.fold_in(key, 1))\ndraw(key)", []),
    "cloned": ("draw(key)\ndraw(random.clone(key))", []),
    "an element": ("keys = random.split(key)\ndraw(keys[0])\ndraw(keys[1])\ndraw(keys[0])", [(2, 4)]),
    "all, then one": ("keys = random.split(key)\njax.vmap(draw)(keys)\ndraw(keys[0])", [(2, 3)]),
    "in a loop": ("for i in range(3):\n    draw(key)", [(2, 2)]),
    "in a while loop": ("while flag:\n    draw(key)", [(2, 2)]),
    "a loop over keys": ("for k in random.split(key, 3):\n    draw(k)", []),
    "a loop over places": ("keys = random.split(key, 3)\nfor i in range(3):\n    draw(keys[i])", []),
    "a loop that splits": ("for i in range(3):\n    key, sub = random.split(key)\n    draw(sub)", []),
    "a loop that folds": ("for i in range(3):\n    draw(random.fold_in(key, i))", []),
    "a loop left at once": ("for i in range(3):\n    draw(key)\n    break", []),
    "a comprehension": ("[draw(key) for _ in range(3)]", [(1, 1)]),
    "a comprehension over keys": ("[draw(k) for k in random.split(key, 3)]", []),
    "two branches": ("if flag:\n    draw(key)\nelse:\n    draw(key)", []),
    "after a branch": ("if flag:\n    draw(key)\ndraw(key)", [(2, 3)]),
    "after a branch that returns": ("def f(key):\n    if flag:\n        return draw(key)\n    return draw(key)", []),
    "an expression's branches": ("draw(key) if flag else draw(key)", []),
    "try": ("try:\n    draw(key)\nfinally:\n    draw(key)", [(2, 4)]),
    "with": ("with jax.disable_jit():\n    draw(key)\ndraw(key)", [(2, 3)]),
    "match": ("match flag:\n    case True:\n        draw(key)\n    case _:\n        draw(key)\ndraw(key)", [(3, 6)]),
    "a parameter": ("def f(key):\n    draw(key)\n    return draw(key)", [(2, 3)]),
    "a function called twice": ("def f(k):\n    return draw(k)\nf(key)\nf(key)", [(3, 4)]),
    "a function defined later": ("def f(k):\n    g(k)\n    g(k)\ndef g(k):\n    return draw(k)", [(2, 3)]),
    "a function that splits its own": ("def f(k):\n    k = random.fold_in(k, 1)\n    return draw(k)\nf(key)\nf(key)", []),
    "a closure": ("f = jax.jit(lambda x: x + draw(key))\nf(1.0)\nf(2.0)", [(2, 3)]),
    "a decorated closure": ("@jax.jit\ndef f(x):\n    return x + draw(key)\nf(1.0)\nf(2.0)", [(4, 5)]),
    "scan": ("lax.scan(lambda c, x: (c + draw(key), None), 0.0, x)", [(1, 1)]),
    "scan over keys": ("lax.scan(lambda c, k: (c + draw(k), None), 0.0, random.split(key, 3))", []),
    "fori_loop": ("def body(i, x):\n    return x + draw(key)\njax.lax.fori_loop(0, 3, body, 0.0)", [(2, 2)]),
    "partial": ("f = functools.partial(lambda a, k: draw(k), 1.0)\nf(key)\nf(key)", [(2, 3)]),
    "an attribute": ("class M:\n    def f(self):\n        draw(self.key)\n        return draw(self.key)", [(3, 4)]),
    "an attribute made anew": ("class M:\n    def f(self):\n        draw(self.key)\n        self.next()\n        draw(self.key)", []),
    "an assignment expression": ("draw(key)\ndraw(key := random.key(1))", []),
    "another library": ("import numpy as np\nnp.random.normal(x)\nnp.random.normal(x)", []),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name, tmp_path):
    text, lines = SCRIPTS[name]
    script = tmp_path / "script.py"
    script.write_text(HEAD + text)
    offset = len(HEAD.splitlines())
    found = tools.lint(script)
    assert [(f.first.line - offset, f.line - offset) for f in found] == lines
    for finding in found:
        assert str(finding).startswith(f"{script}:{finding.line}: ") and "the same numbers" in str(finding)


def test_findings_print_as_lines(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(HEAD + "draw(key)\ndraw(key)\nfor i in x:\n    draw(random.key(1))")
    (line,) = repr(tools.lint(str(script))).splitlines()
    assert "key is used again, after normal at line 8, by normal: the same numbers. Split it: key, subkey =" in line
    script.write_text(HEAD)
    assert repr(tools.lint(script)) == "no key is used twice"
    script.write_text(HEAD + "while flag:\n    draw(key)")
    assert "key is used in every turn of a loop, by normal" in repr(tools.lint(script))
    script.write_text(HEAD + "draw(key) + draw(key)")  # twice in one line is no loop
    assert "key is used again, after normal at line 8, by normal" in repr(tools.lint(script))


def reuses(key):
    a = jax.random.normal(key)
    return a + jax.random.uniform(key)


LINE = reuses.__code__.co_firstlineno
# what is traced, for how many keys, and what the error says
PROGRAMS = {
    "a function": (reuses, (), f"normal at {__file__}:{LINE + 1} (reuses)"),
    "jit": (jax.jit(reuses), (), f"uniform at {__file__}:{LINE + 2} (reuses)"),
    "vmap": (jax.vmap(reuses), (3,), f"uniform at {__file__}:{LINE + 2} (reuses)"),
    "a loop": (
        lambda key: jax.lax.fori_loop(0, 3, lambda i, x: x + jax.random.normal(key), 0.0),
        (),
        "repeatedly executed",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, shape, words = PROGRAMS[name]
    key = jax.random.split(jax.random.key(0), shape) if shape else jax.random.key(0)
    with pytest.raises(jax.errors.KeyReuseError) as caught:
        tools.check_keys(function)(key)
    assert words in str(caught.value)


def test_a_program_that_splits_is_right():
    def f(key):
        keys = jax.random.split(key, 3)
        return jax.lax.scan(lambda c, k: (c + jax.random.normal(k), None), 0.0, keys)[0]

    assert tools.check_keys(f)(jax.random.key(0)) is None
