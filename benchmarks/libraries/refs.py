"""`jax.ref`: mutable arrays. See `differential_libraries.py` for what a table is.

Every case makes its references inside: eagerly they are memory, under `jit` they become values, and both must be JAX's.
"""

import itertools

import numpy as np

OPERANDS = {
    "v": lambda rng: rng.normal(size=5).astype(np.float32),
    "m": lambda rng: rng.normal(size=(3, 4)).astype(np.float32),
    "t": lambda rng: rng.normal(size=(2, 3, 4)).astype(np.float32),
    "k": lambda rng: rng.integers(-9, 9, (3, 4)).astype(np.int32),
    "c": lambda rng: (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype(np.complex64),
    "b": lambda rng: rng.normal(size=(3, 4)) > 0,
    "s": lambda rng: np.float32(rng.normal()),
    "i": lambda rng: np.int32(1),
    "far": lambda rng: np.int32(7),
    "back": lambda rng: np.int32(-1),
    "u": lambda rng: np.uint8(1),
    "is_": lambda rng: np.array([1, 0, 1], np.int32),
    "js": lambda rng: np.array([[0], [-1]], np.int32),
    "out": lambda rng: np.array([0, 9, -9], np.int32),
    "e": lambda rng: np.zeros((0, 3), np.float32),
}
INDICES = (
    "... None () 0 -1 2 np.int64(1) slice(None) slice(1,3) slice(None,None,2) slice(-2,None) (0,1) (0,slice(1,None)) "
    "(slice(None),-1) (...,0) (0,...) (slice(None),slice(1,4,2)) jax.ds(1,2) (slice(None),jax.ds(0,2)) i far back u "
    "(i,0) (slice(None),i) jax.ds(i,2) is_ js out (0,is_) (slice(None),is_) (is_,is_) (js,is_) (is_,slice(1,3)) "
    "5 (0,0,0) slice(None,None,-1) (...,...) 'a' is_.astype(float) (is_,i) far.astype('int8')"
).split()


def with_ref(body: str, x: str = "m") -> str:
    """What `body` gives of a reference `r` to `x`, and what it refers to afterwards."""
    return f"(lambda r: ({body}, r[...]))(jax.new_ref({x}))"


def gradient(body: str) -> str:
    """A function of `v`, by a reference to it."""
    return f"(lambda r: ({body}, jnp.sum(jnp.sin(r[...])))[-1])(jax.new_ref(v))"


BODIES = [
    "r.__setitem__(0, r[1] * r[2])",
    "r.addupdate(r[0] ** 2, 1)",
    "r.__setitem__(slice(1, 4), jax.ref.swap(r, slice(0, 3), r[2:]))",
    "r.addupdate(jnp.cos(r[:3]), is_)",
    "r.__setitem__(is_[:2], r[3:])",
    "lax.fori_loop(0, 4, lambda n, _: r.__setitem__(n, r[n] * r[n + 1]), None)",
    "lax.scan(lambda a, n: (a * r[n], r.addupdate(a, n)), jnp.float32(1), jnp.arange(5))",
    "lax.cond(v[0] > 0, lambda: r.__setitem__(0, r[1]), lambda: r.addupdate(r[2], 1))",
    "jax.jit(lambda a: r.addupdate(a, 0))(v[1] * v[2])",
    "jax.checkpoint(lambda a: jnp.sin(a) * a)(r[0]) + 0 * r[1]",
]
CASES = [
    *(with_ref(f"jax.ref.get(r, {i})", x) for i, x in itertools.product(INDICES, ("m", "t", "k"))),
    *(with_ref(f"r[{i}]") for i in INDICES),
    *(with_ref(f"jax.ref.swap(r, {i}, 2 * r[{i}])", x) for i, x in itertools.product(INDICES, ("m", "t", "c"))),
    *(with_ref(f"jax.ref.addupdate(r, {i}, 2 * r[{i}])", x) for i, x in itertools.product(INDICES, ("m", "k"))),
    *(
        with_ref(f"r.__setitem__({i}, {x})")
        for i in ("0", "...", "(0, 0)")
        for x in ("s", "1.0", "1", "v", "m", "m[0]", "True")
    ),
    *(
        with_ref(f"r.__setitem__((0, 0), {value})", f"m.astype('{dtype}')")
        for dtype in ("float16", "bfloat16", "int8", "uint32", "bool", "complex64")
        for value in ("1", "1.0", "True", "1j", "s", "r[0, 1]")
    ),
    *(f"jax.new_ref({x})[...]" for x in ("v", "1", "1.5", "True", "np.float64(2)", "[1.0]", "'a'", "None", "e", "b")),
    *(
        f"(lambda r: ({f}, 0)[1])(jax.new_ref(v))"
        for f in ("r + 1", "jnp.sin(r)", "lax.neg(r)", "len(r)", "r.shape[0]")
    ),
    *(f"jax.ref.{f}" for f in ("get(v, 0)", "set(v, 0, 1.0)", "swap(v, 0, 1.0)", "addupdate(v, 0, 1.0)")),
    "jax.new_ref(v, memory_space='x')",
    *(with_ref(body, "v") for body in BODIES),
    *(
        with_ref(f"lax.while_loop(lambda n: n < {n}, lambda n: (r.__setitem__(n, s), n + 1)[1], 0)", "v")
        for n in (0, 3, 5)
    ),
    *(
        with_ref(f"lax.switch({n}, [lambda: r.__setitem__(0, s), lambda: None, lambda: r.addupdate(s, 1)])", "v")
        for n in "012"
    ),
    with_ref("lax.scan(lambda a, row: (a + row[0], row.__setitem__(1, a)), s, r)"),
    with_ref("lax.map(lambda n: r[n], is_)"),
    "jax.vmap(lambda x, n: (lambda r: (r.__setitem__(n, s), r.addupdate(x, ...), r[...]))(jax.new_ref(x)))(m, is_)",
    "jax.vmap(lambda x: (lambda r: (r.__setitem__(0, x), r[...]))(jax.new_ref(v)))(v)",
    *(
        with_ref(f"jax.vmap(lambda r, x, n: ({body}), in_axes=({axis}, 0, 0))(r, v[:3], is_)", x)
        for axis, x in ((0, "m"), (1, "m.T"))
        for body in (
            "r[n]",
            "r.__setitem__(0, x)",
            "r.__setitem__(n, x)",
            "r.addupdate(x, n)",
            "jax.ref.swap(r, n, x)",
            "r[1:3]",
        )
    ),
    *(
        f"(lambda r: jax.vmap(lambda x, n: {body})(v[:3], is_))(jax.new_ref(v))"
        for body in ("r[n]", "r[0] + x", "r.__setitem__(0, x)", "r.__setitem__(0, 1.0)", "r.addupdate(x, n)")
    ),
    *(
        f"jax.jit(lambda a, b: a[0] + b[0])({a}, {b})"
        for a, b in (("(q := jax.new_ref(v))", "q"), ("jax.new_ref(v)", "jax.new_ref(v)"))
    ),
    "jax.jit(lambda x: jax.new_ref(x))(v)",
    "lax.scan(lambda r, _: (r, None), jax.new_ref(v), None, length=2)",
    "jax.jvp(lambda r: (r.__setitem__(0, r[1] ** 2), r[...])[1], (jax.new_ref(v),), (jax.new_ref(v),))",
    *(f"jax.jvp(lambda v: {gradient(body)}, (v,), (v,))" for body in BODIES),
    *(
        f"jax.vjp(lambda v: v * s, v)[1].with_refs({x})(v)[0] is None"
        for x in ("jax.new_ref(v)", "jax.ad.GradValue()", "jax.ad.DontWant()")
    ),
    "(lambda r: (jax.vjp(lambda v: jnp.sin(v), v)[1].with_refs(r)(v), r[...])[1])(jax.new_ref(v))",
]
GRADIENTS = [gradient(body) for body in BODIES]
EXPLAINED = [
    (
        r"\b(get\(r, 5|r\[5\]|swap\(r, 5|addupdate\(r, 5)",
        r"^ValueError.*\|",
        "5 is out of bounds, also where JAX moves it inside",
    ),
    (r"^jit .*\(r, 2\b|^jit .*r\[2\]", r"^ValueError.*\|", "2 is out of bounds, also where JAX moves it inside"),
    (
        r"^eager .*(ds\(i|slice\()",
        r"TracerBoolConversionError",
        "JAX raises, depending on what ran before it: alone, it returns the same",
    ),
    (
        r"\(0, 0\), 1j\)",
        r"returns complex64.*(?s:.*)ValueError: Invalid dtype",
        "a Python number takes the reference's dtype",
    ),
    (r"r \+ 1", r"TypeError.*AttributeError", "a reference has no operators: an AttributeError is JAX's by accident"),
    (
        r"^jit jax.new_ref\(v, memory_space",
        r"NotImplementedError.*ValueError",
        "refused before the result is looked at",
    ),
]
