"""Random nests of transformations beside JAX: `make random-nests`.

    python benchmarks/random_nests.py --jax-python PYTHON --minutes 5 --seed 0

A program is Python text: statements on arrays of floats, integers and booleans, empty ones and scalars among them, and
functions within functions that close over everything around them and go to transformations and loops. It runs eagerly,
jitted, with 64-bit numbers and again without, differentiated and batched (`MODES`), each library in a process of its
own; values, dtypes, shapes, weak types and types of errors are compared. What differs is shrunk line by line.
"""

import argparse
import contextlib
import importlib
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np
from answers import difference, explanation, outcome

SHAPES = ((), (), (3,), (3,), (1,), (2, 3), (3, 1), (0,), (3, 0))
TOLERANCE = 2e-3  # of the largest element: derivatives of many float32 operations, some of which cancel
SECONDS = 60  # for all modes of a program; what takes longer is left out


EXPLAINED = [
    (".*", r"^returns.* \| ValueError: Reverse-mode diff", "loops of unknown length are differentiated backward, too"),
    (".*", r"^returns.* \| TypeError: can't apply forward", "forward mode goes through custom_vjp"),
    (".*", r"^returns.* \| NotImplementedError: .* 'custom_lin' not impl", "and derivatives of it are taken"),
    (".*", r"^UnexpectedTracerError.* \| ", "a function with a rule closes over what is differentiated"),
]


class TooLong(BaseException):
    """What no program handles."""


class Value(NamedTuple):
    name: str
    kind: str  # "f", "i" or "b"
    shape: tuple


# ------------------------------------------------------------------------------------------------- writing programs

UNARY = (
    "jnp.sin({0})", "jnp.tanh({0})", "-{0}", "{0} * 0.5", "2 * {0}", "{0} - np.float32(0.25)", "lax.stop_gradient({0})",
    "jnp.abs({0})", "jnp.where({0} > 0.1, {0}, 0.3)", "{0} ** 2", "jnp.exp(-{0} * {0})", "lax.square({0})",
    "jnp.maximum({0}, 0)", "jnp.clip({0}, -1, 0.5)", "jax.nn.relu({0})", "jnp.sqrt({0} * {0} + 1)",
    "jnp.sign({0}) * {0}",
    "1 / (2 + {0} * {0})", "jnp.log1p({0} * {0})", "jnp.float32(2) * {0}", "lax.mul({0}, {0})", "jnp.arctan2({0}, 2.0)",
    "jax.nn.softplus({0})", "jnp.flip({0})", "{0}.astype('float32')", "jnp.nan_to_num({0})",
    "{0} + jnp.zeros_like({0})",
    "jnp.cbrt({0} + 3)", "jnp.sinc({0})", "jax.nn.gelu({0})", "jnp.hypot({0}, 1.5)", "jnp.logaddexp({0}, 0.)",
)  # fmt: skip
ON_INTEGERS = (
    "{0} + 1", "{0} * 3 - 2", "{0} // 2", "{0} % 3", "jnp.abs({0})", "{0} & 5", "{0} ^ 3", "{0} << 1", "-{0}",
    "jnp.clip({0}, 0, 2)", "lax.rem({0}, jnp.full_like({0}, 3))", "jnp.where({0} > 1, {0}, 0)", "lax.clz({0})",
    "{0}.astype('int8').astype({0}.dtype)", "{0}.astype('uint8')", "jnp.sign({0})", "jnp.invert({0})", "{0} >> 1",
)  # fmt: skip
BINARY = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "jnp.maximum({0}, {1})", "jnp.minimum({0}, {1})", "{0} * jnp.sin({1})",
    "jnp.where({0} > {1}, {0}, {1})", "jnp.arctan2({0}, {1} * {1} + 1)", "{0} / ({1} * {1} + 1)",
    "jnp.add({0}, 2 * {1})",
)  # fmt: skip
FOLDS = ("sum", "mean", "max", "min", "prod", "std", "logsumexp", "any_positive", "argmax", "ptp", "norm")


class Writer:
    """Writes one program, line by line; values keep their shapes, and mostly their dtypes, in mind."""

    def __init__(self, seed: int):
        self.rng, self.lines, self.count, self.indent = np.random.default_rng(seed), [], 0, 1

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def choose(self, options):
        return options[int(self.rng.integers(len(options)))]

    def line(self, text: str):
        self.lines.append("    " * self.indent + text)

    def name(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def put(self, env: list, text: str, kind: str, shape: tuple):
        name = self.name()
        self.line(f"{name} = {text}")
        env.append(Value(name, kind, tuple(shape)))

    def some(self, env: list, kind: str = "f", fits=lambda v: True) -> Value | None:
        """A value of the kind, one of the last ones more often."""
        found = [v for v in env if v.kind == kind and fits(v)]
        if not found:
            return None
        return found[-1 - min(int(self.rng.geometric(0.35)) - 1, len(found) - 1)]

    def fitted(self, v: Value, like: Value, careful: float = 0.8) -> str:
        """The value in the shape of another, and mostly in its dtype."""
        text = v.name if v.shape == like.shape else f"jnp.full({like.shape}, jnp.sum({v.name}))"
        same = v.kind == like.kind and v.shape == like.shape
        return f"({text}).astype({like.name}.dtype)" if self.chance(careful) or not same else text

    # ---- statements of arrays

    def array(self, env: list):
        x = self.some(env)
        how = int(self.rng.integers(12))
        if how < 3:
            return self.put(env, self.choose(UNARY).format(x.name), "f", x.shape)
        if how == 3 and (i := self.some(env, "i")):
            return self.put(env, self.choose(ON_INTEGERS).format(i.name), "i", i.shape)
        if how < 6:
            y = self.some(env, self.choose("ffib"), lambda v: broadcasts(v.shape, x.shape))
            if y is None:
                return None
            pair = (x, y) if y.kind == "f" and self.chance(0.5) else (y, x) if self.chance(0.3) else (x, y)
            operation = self.choose(BINARY[:8] if y.kind == "f" else BINARY[:3])
            if y.kind == "b":
                operation = "jnp.where({1}, {0}, -{0})" if pair[1] is y else "jnp.where({0}, {1}, 2)"
            return self.put(
                env, operation.format(pair[0].name, pair[1].name), "f", np.broadcast_shapes(x.shape, y.shape)
            )
        if how == 6:
            return self.fold(env, x)
        if how == 7:
            y = self.some(env, "f", lambda v: broadcasts(v.shape, x.shape))
            comparison = self.choose(("{0} > {1}", "{0} <= {1}", "jnp.isclose({0}, {1})", "{0} != {1}"))
            return self.put(env, comparison.format(x.name, y.name), "b", np.broadcast_shapes(x.shape, y.shape))
        return self.layout(env, x)

    def fold(self, env: list, x: Value):
        name = self.choose(FOLDS)
        if not x.shape or (0 in x.shape and name not in ("sum", "prod")):
            return self.put(env, f"jnp.sum({x.name})", "f", ())
        axis = int(self.rng.integers(-len(x.shape), len(x.shape)))
        rest = tuple(n for d, n in enumerate(x.shape) if d != axis % len(x.shape))
        if name == "argmax":
            return self.put(env, f"jnp.argmax({x.name}, axis={axis})", "i", rest)
        if name == "any_positive":
            return self.put(env, f"jnp.any({x.name} > 0, {axis})", "b", rest)
        if name == "logsumexp":
            return self.put(env, f"jax.nn.logsumexp({x.name}, axis={axis})", "f", rest)
        if name == "std":
            return self.put(
                env,
                f"jnp.std({x.name} + jnp.arange({x.shape[axis]}.) if {axis} == -1 else {x.name}, {axis})",
                "f",
                rest,
            )
        if name == "norm":
            return self.put(env, f"jnp.sqrt(jnp.sum({x.name} * {x.name}, {axis}) + 1)", "f", rest)
        if self.chance(0.3):
            kept = tuple(1 if d == axis % len(x.shape) else n for d, n in enumerate(x.shape))
            return self.put(env, f"jnp.{name}({x.name}, axis={axis}, keepdims=True)", "f", kept)
        return self.put(env, f"{x.name}.{name}({axis})", "f", rest)

    def layout(self, env: list, x: Value):
        n, s = x.name, x.shape
        forms = [
            (f"{n}[None]", (1, *s)),
            (f"jnp.expand_dims({n}, -1)", (*s, 1)),
            (f"{n}.ravel()", (int(np.prod(s, dtype=int)),)),
            (f"jnp.stack([{n}, 2 * {n}], axis=-1)[..., 0]", s),
            (f"{n}.T", s[::-1]),
        ]
        if s:
            last = s[-1]
            forms += [
                (f"jnp.cumsum({n}, axis=-1)", s),
                (f"jnp.roll({n}, 1, axis=-1)", s),
                (f"{n}[..., ::-1]", s),
                (f"jnp.concatenate([{n}, {n}[..., :1]], axis=-1)", (*s[:-1], last + min(last, 1))),
                (f"{n}[..., 1:]", (*s[:-1], max(last - 1, 0))),
                (f"jnp.sort({n}, axis=-1)", s),
                (f"jnp.cumprod({n} * 0.5, axis={-len(s)})", s),
                (f"lax.cummax({n}, axis={len(s) - 1})", s),
                (f"jnp.pad({n}, [(0, 0)] * {len(s) - 1} + [(1, 0)])", (*s[:-1], last + 1)),
            ]
            index = self.some(env, "i", lambda v: len(v.shape) < 2)
            if index and last and self.chance(0.6):
                i, t = index.name, index.shape
                mode = self.choose(("", ", mode='clip'", ", mode='fill', fill_value=0.5", ", mode='wrap'"))
                forms = [(f"jnp.take({n}, {i}, axis=-1{mode or ', mode=None'})", (*s[:-1], *t))]
                if mode == "":
                    forms += [(f"{n}[..., {i}]", (*s[:-1], *t)), (f"{n}.at[..., {i}].add(0.5)", s)]
                    forms += [(f"{n}.at[..., {i}].set(jnp.sin({n}[..., {i}]))", s), (f"{n}.at[..., {i}].mul(2)", s)]
                if not t:
                    forms += [(f"lax.dynamic_index_in_dim({n}, {i}, {len(s) - 1})", (*s[:-1], 1))]
                    forms += [(f"lax.dynamic_update_index_in_dim({n}, {n}[..., :1] * 2, {i}, {len(s) - 1})", s)]
            if len(s) == 2:
                forms += [(f"{n} @ {n}.T", (s[0], s[0])), (f"jnp.einsum('ij,ij->i', {n}, {n})", (s[0],))]
        text, shape = self.choose(forms)
        if len(shape) <= 3:
            self.put(env, text, "f", shape)

    # ---- functions and what takes them

    def function(self, env: list, params: list, depth: int, size: int, results) -> str:
        """Write a function whose body sees ``env``; ``results(inner)``: the text that it returns. Its name."""
        name = self.name("f")
        self.line(f"def {name}({', '.join(p.name for p in params)}):")
        self.indent += 1
        inner = [*env, *params]
        self.body(inner, depth, size)
        self.line(f"return {results(inner)}")
        self.indent -= 1
        return name

    def like(self, v: Value) -> Value:
        return Value(self.name("p"), v.kind, v.shape)

    def body(self, env: list, depth: int, size: int):
        for _ in range(int(self.rng.integers(1, size + 1))):
            if depth and self.chance(0.45):
                self.choose(NESTS)(self, env, depth - 1)
            else:
                self.array(env)

    def own(self, like: Value, careful: float = 0.8):
        return lambda inner: self.fitted(self.some(inner, like.kind), like, careful)

    def wrapped(self, env: list, depth: int):
        x = self.some(env)
        p = self.like(x)
        f = self.function(env, [p], depth, 3, self.own(x))
        wrapper = self.choose(("jax.jit", "jax.checkpoint", "jax.jit", "jax.named_call", "jax.checkpoint"))
        self.put(env, f"{wrapper}({f})({x.name})", "f", x.shape)

    def custom(self, env: list, depth: int):
        x = self.some(env)
        p, r = self.like(x), self.like(x)
        outside = [] if self.chance(0.8) else env  # a rule is mostly wrong that closes over what is differentiated
        f = self.function(outside, [p], depth, 2, lambda inner: self.fitted(self.some(inner), p, 1.0))
        g = self.name("f")
        if self.chance(0.5):
            self.line(f"{g} = jax.custom_jvp({f})")
            self.line(f"{g}.defjvp(lambda p, t: ({f}(*p), 3 * t[0] * jnp.cos(p[0])))")
        else:
            self.line(f"{g} = jax.custom_vjp({f})")
            b = self.function(env, [r, p], 0, 2, lambda inner: f"({p.name} * jnp.cos({r.name}),)")
            self.line(f"{g}.defvjp(lambda x: ({f}(x), x), {b})")
        self.put(env, f"{g}({x.name})", "f", x.shape)

    def gradient(self, env: list, depth: int):
        x, y = self.some(env), self.some(env)
        p, q = self.like(x), self.like(y)
        f = self.function(env, [p, q], depth, 3, lambda inner: f"jnp.sum({self.some(inner).name})")
        calls = [
            (f"jax.grad({f})({x.name}, {y.name})", x.shape),
            (f"jax.grad({f}, argnums=(0, 1))({x.name}, {y.name})[1]", y.shape),
            (f"jax.value_and_grad({f}, argnums=1)({x.name}, {y.name})[1]", y.shape),
            (f"jax.jvp({f}, ({x.name}, {y.name}), ({x.name}, jnp.ones_like({y.name})))[1]", ()),
            (f"jax.vjp({f}, {x.name}, {y.name})[1](jnp.ones_like({f}({x.name}, {y.name})))[0]", x.shape),
            (f"jax.linearize({f}, {x.name}, {y.name})[1]({x.name}, {y.name})", ()),
            (f"jax.jacfwd({f})({x.name}, {y.name})", x.shape),
            (f"jax.jacrev(jax.grad({f}), argnums=1)({x.name}, {y.name})", (*x.shape, *y.shape)),
        ]
        text, shape = self.choose(calls)
        if len(shape) <= 3:
            self.put(env, text, "f", shape)

    def of_integers(self, env: list, depth: int):
        x, i = self.some(env), self.some(env, "i")
        if i is None:
            return
        p, q = self.like(x), self.like(i)
        f = self.function(env, [p, q], depth, 2, lambda inner: f"jnp.sum({self.some(inner).name}), {q.name}")
        calls = [
            f"jax.grad({f}, has_aux=True)({x.name}, {i.name})[0]",
            f"jax.grad({f}, (0, 1), has_aux=True, allow_int=True)({x.name}, {i.name})[0][0]",
            f"jax.vjp(lambda a, b: {f}(a, b)[0], {x.name}, {i.name})[1](jnp.ones(()))[0]",
            f"jax.value_and_grad({f}, has_aux=True)({x.name}, {i.name})[1]",
            f"jax.jvp(lambda a: {f}(a, {i.name}), ({x.name},), ({x.name},))[0][0]",
        ]
        k = int(self.rng.integers(5))
        self.put(env, calls[k], "i" if k == 3 else "f", i.shape if k == 3 else () if k == 4 else x.shape)

    def mapped(self, env: list, depth: int):
        x = self.some(env, "f", lambda v: v.shape)
        if x is None:
            return
        axis = int(self.rng.integers(-len(x.shape), len(x.shape)))
        n, rest = x.shape[axis], tuple(m for d, m in enumerate(x.shape) if d != axis % len(x.shape))
        p = Value(self.name("p"), "f", rest)
        y = self.some(env, self.choose("fi")) or x
        q = self.like(y)
        along = 0 if y.shape[:1] == (n,) and self.chance(0.6) else None
        q = q._replace(shape=y.shape[1:]) if along == 0 else q
        f = self.function(env, [p, q], depth, 3, self.own(p))
        place = int(self.rng.integers(0, len(rest) + 1))
        shape = (*rest[:place], n, *rest[place:])
        if n == 0 and self.chance(0.8):
            return
        self.put(env, f"jax.vmap({f}, in_axes=({axis}, {along}), out_axes={place})({x.name}, {y.name})", "f", shape)

    def scanned(self, env: list, depth: int):
        c, x = self.some(env), self.some(env, self.choose("ffi"), lambda v: v.shape)
        if x is None:
            return
        p, q = self.like(c), Value(self.name("p"), x.kind, x.shape[1:])
        f = self.function(env, [p, q], depth, 3, lambda inner: f"{self.own(c, 0.9)(inner)}, {self.own(c)(inner)}")
        reverse = ", reverse=True" if self.chance(0.3) else ""
        k = int(self.rng.integers(2))
        shape = c.shape if k == 0 else (x.shape[0], *c.shape)
        if len(shape) <= 3:
            self.put(env, f"lax.scan({f}, {c.name}, {x.name}{reverse})[{k}]", "f", shape)

    def looped(self, env: list, depth: int):
        c = self.some(env)
        p, i = self.like(c), Value(self.name("p"), "i", ())
        f = self.function(env, [i, p], depth, 3, self.own(c, 0.9))
        bound = self.choose(("3", "1", "0", "jnp.int32(2)", "np.int32(2)"))
        text = self.choose(
            (
                f"lax.fori_loop(0, {bound}, {f}, {c.name})",
                f"lax.while_loop(lambda s: s[0] < {bound}, lambda s: (s[0] + 1, {f}(s[0], s[1])), (0, {c.name}))[1]",
            )
        )
        self.put(env, text, "f", c.shape)

    def branched(self, env: list, depth: int):
        x = self.some(env)
        p = self.like(x)
        f, g = (self.function(env, [p], depth, 2, self.own(x)) for _ in range(2))
        if self.chance(0.3) and (i := self.some(env, "i")):
            return self.put(env, f"lax.switch(jnp.sum({i.name}), [{f}, {g}, {f}], {x.name})", "f", x.shape)
        predicate = self.choose((f"jnp.sum({x.name}) > 0.2", "True", f"{x.name}.size > 2", f"jnp.all({x.name} < 1)"))
        self.put(env, f"lax.cond({predicate}, {f}, {g}, {x.name})", "f", x.shape)

    def associative(self, env: list, depth: int):
        x = self.some(env, "f", lambda v: v.shape and v.shape[0])
        if x is None:
            return
        text = self.choose(
            (
                f"lax.associative_scan(lambda a, b: a * 0.5 + b, {x.name})",
                f"lax.map(lambda a: jnp.sin(a) * jnp.sum({x.name}), {x.name})",
                f"lax.associative_scan(jnp.maximum, {x.name}, reverse=True)",
                f"jax.linear_transpose(lambda a: 3 * a + a[::-1], {x.name})({x.name})[0]",
            )
        )
        self.put(env, text, "f", x.shape)


def broadcasts(a: tuple, b: tuple) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


NESTS = (
    Writer.wrapped, Writer.custom, Writer.gradient, Writer.gradient, Writer.of_integers, Writer.mapped, Writer.mapped,
    Writer.scanned, Writer.scanned, Writer.looped, Writer.branched, Writer.associative,
)  # fmt: skip


def write(seed: int) -> tuple[str, list]:
    """A program, ``def program(x, y, i, b): ...``, and its arguments, as NumPy arrays of 64 bits."""
    w = Writer(seed)
    shapes = [w.choose(SHAPES) for _ in range(2)]
    env = [Value(n, "f", s) for n, s in zip("xy", shapes)] + [
        Value("i", "i", w.choose(((), (2,), (3,)))),
        Value("b", "b", ()),
    ]
    w.lines.append("def program(x, y, i, b):")
    inputs = [(v.kind, v.shape) for v in env]
    w.body(env, 3, 6)
    made = env[4:] or env
    results = [w.choose(made).name for _ in range(min(3, len(made)))]
    w.line(f"return [{', '.join(dict.fromkeys(results))}]")
    rng = np.random.default_rng(seed)
    draws = {
        "f": lambda shape: np.round(rng.normal(size=shape), 2),
        "i": lambda shape: rng.integers(-1, 3, shape),
        "b": lambda shape: np.bool_(rng.random() < 0.5),
    }
    arguments = [np.asarray(draws[kind](shape)) for kind, shape in inputs]
    return "\n".join(w.lines), arguments


# ------------------------------------------------------------------------------------------------- running programs


MODES = (
    "eager", "jit", "grad", "jit grad", "jvp", "vmap", "jit vmap grad", "x64 jit", "x64 grad", "scalars", "jit after",
)  # fmt: skip


def runs(jax, text: str, arguments: list, modes) -> dict:
    """What the program does in these modes, in turns: the same function is jitted before, in and after 64 bits."""
    jnp = jax.numpy
    space = {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np}
    exec(text, space)  # noqa: S102  it is what we wrote
    program = space["program"]
    jitted = jax.jit(program)
    x, y, i, b = arguments

    def floats(x, y, i, b):
        out = program(x, y, i, b)
        return sum(
            (jnp.sum(jnp.sin(o)) for o in out if jnp.issubdtype(jnp.asarray(o).dtype, jnp.floating)), jnp.zeros(())
        )

    def tangents(x, y, i, b):
        return jax.jvp(lambda x, y: program(x, y, i, b), (x, y), (jnp.ones_like(x), jnp.ones_like(y)))[1]

    def batched(x, y, i, b):
        two = [
            jnp.stack([jnp.asarray(a), jnp.asarray(a)[..., ::-1] if jnp.ndim(a) else jnp.asarray(a) * 2])
            for a in (x, i)
        ]
        return jax.vmap(lambda x, i: program(x, y, i, b))(*two)

    single = [jnp.asarray(a) for a in arguments]
    calls = {
        "eager": lambda: program(*single),
        "jit": lambda: jitted(*single),
        "grad": lambda: jax.grad(floats, (0, 1))(*single),
        "jit grad": lambda: jax.jit(jax.grad(floats, (0, 1)))(*single),
        "jvp": lambda: tangents(*single),
        "vmap": lambda: batched(*single),
        "jit vmap grad": lambda: jax.jit(jax.grad(lambda *a: sum(jnp.sum(o * 1.0) for o in batched(*a)), (0, 1)))(
            *single
        ),
        "x64 jit": lambda: x64(jax, lambda: jitted(*[jnp.asarray(a) for a in arguments])),
        "x64 grad": lambda: x64(jax, lambda: jax.jit(jax.grad(floats, (0, 1)))(*[jnp.asarray(a) for a in arguments])),
        "scalars": lambda: jitted(*[a.item() if a.ndim == 0 else a for a in arguments]),
        "jit after": lambda: jitted(*single),
    }
    return {mode: outcome(jax, call) for mode, call in calls.items() if mode in modes}


def x64(jax, call):
    with jax.enable_x64(True):
        return call()


def serve(library: str):
    """Answers pickled (text, arguments) on stdin with pickled answers on stdout."""
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jax = importlib.import_module(library)

    def give_up(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, give_up)
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        signal.alarm(SECONDS)
        try:
            answer = runs(jax, *request)
        except TooLong:
            answer = None
        signal.alarm(0)
        pickle.dump(answer, out)
        out.flush()


class Pair:
    """A process for each library; one that died is started again."""

    def __init__(self, jax_python: str):
        self.commands = [[p, __file__, "--serve", n] for p, n in ((sys.executable, "catena"), (jax_python, "jax"))]
        self.workers = [None, None]

    def ask(self, request) -> list:
        for k, command in enumerate(self.commands):
            if self.workers[k] is None or self.workers[k].poll() is not None:
                quiet = subprocess.DEVNULL
                self.workers[k] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet)
            pickle.dump(request, self.workers[k].stdin)
            self.workers[k].stdin.flush()
        answers = []
        for worker in self.workers:
            try:
                answers.append(pickle.load(worker.stdout))
            except EOFError:
                answers.append("died")
                worker.wait()
        return answers

    def close(self):
        for worker in self.workers:
            with contextlib.suppress(AttributeError):
                worker.stdin.close()


def differences(ours, theirs) -> dict:
    """What differs, by mode."""
    if ours is None or theirs is None or theirs == "died":
        return {}
    if ours == "died":
        return {"all": "the process died"}
    found = {}
    for mode in ours:
        said = difference(ours[mode], theirs[mode], tolerance=TOLERANCE, zero_signs=False)
        if said and "is not defined" not in said and not explanation(EXPLAINED, mode, said):
            found[mode] = said
    return found


def shrunk(pair: Pair, text: str, arguments: list, modes) -> tuple[str, dict]:
    """The text without every line, and what is indented below it, that the difference does not need."""
    lines, found, k = text.split("\n"), {}, 0
    k = len(lines) - 1
    while k > 0:
        depth = len(lines[k]) - len(lines[k].lstrip())
        end = k + 1
        while end < len(lines) and len(lines[end]) - len(lines[end].lstrip()) > depth:
            end += 1
        less = lines[:k] + lines[end:]
        said = differences(*pair.ask(("\n".join(less), arguments, tuple(modes)))) if "return" not in lines[k] else {}
        if said.keys() & modes:
            lines, found = less, said
        k -= 1
    return "\n".join(lines), found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=".venv-jax/bin/python", help="a Python that has JAX")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, help="print the program of this seed")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    if options.show is not None:
        print(*write(options.show), sep="\n")
        return None
    pair, end, seed, wrong, modes = (
        Pair(options.jax_python),
        time.time() + 60 * options.minutes,
        options.seed,
        0,
        [0, 0],
    )
    while time.time() < end:
        text, arguments = write(seed)
        chosen = list(np.random.default_rng(seed).permutation(MODES[:-1])[:4])
        ours, theirs = pair.ask((text, arguments, chosen))
        found = differences(ours, theirs)
        if isinstance(theirs, dict):
            modes[0] += len(theirs)
            modes[1] += sum(not isinstance(a[0], list) for a in theirs.values())
        if found:
            wrong += 1
            text, again = shrunk(pair, text, arguments, found.keys()) if "all" not in found else (text, found)
            print(f"---- seed {seed}\n{text}\n{dict(zip('xyib', arguments))}", flush=True)
            for mode, said in (again or found).items():
                print(f"  {mode}: {said}", flush=True)
        seed += 1
    pair.close()
    print(f"{seed - options.seed} programs, {modes[1]} of {modes[0]} runs return in JAX, {wrong} programs differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
