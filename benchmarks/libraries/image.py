"""`jax.image`: resampling. See `differential_libraries.py` for what a table is."""

import itertools

import numpy as np

METHODS = ("nearest", "linear", "cubic", "lanczos3", "lanczos5", "area")
OPERANDS = {
    "x": lambda rng: rng.normal(size=(6, 7)).astype(np.float32),
    "one": lambda rng: rng.normal(size=(1, 4)).astype(np.float32),
    "photo": lambda rng: rng.normal(size=(2, 5, 4, 3)).astype(np.float32),
    "v": lambda rng: rng.normal(size=40).astype(np.float32),
    "empty": lambda rng: np.zeros((0, 3), np.float32),
    "s": lambda rng: np.array([0.7, 1.3], np.float32),
    "t": lambda rng: np.array([0.4, -0.9], np.float32),
    "ones": lambda rng: np.ones(2, np.float32),
    "half": lambda rng: np.full(2, 0.5, np.float32),
}
ALIASES = ("bilinear", "trilinear", "triangle", "bicubic", "tricubic", "Linear", "cubic_pytorch", "")
DTYPES = ("float16", "bfloat16", "float32", "int32", "uint8", "bool", "complex64")
TO = {
    "x": ((6, 7), (3, 7), (12, 14), (25, 2)),
    "one": ((3, 2),),
    "photo": ((2, 10, 3, 3), (1, 7, 5, 3)),
    "v": ((13,), (41,), (1,)),
}
F32 = 2e-5  # JAX computes the weights in float32

CASES = [
    *(
        (f"jax.image.resize({x}, {shape}, {m!r}, {antialias})", F32)
        for x, shapes in TO.items()
        for shape, m, antialias in itertools.product(shapes, METHODS, (True, False))
    ),
    *((f"jax.image.resize(x, (4, 9), {m!r})", F32) for m in ALIASES),
    *((f"jax.image.resize(x, (4, 9), jax.image.ResizeMethod({k}), False)", F32) for k in range(7)),
    *((f"jax.image.resize(x, (4, 9), jax.image.ResizeMethod({k}))", F32) for k in range(7)),
    *(
        (f"jax.image.scale_and_translate(x, (4, 9), (0, 1), s, t, jax.image.ResizeMethod(5), {a})", 1e-4)
        for a in (True, False)
    ),
    *(
        (f"jax.image.resize((9 * x).astype({d!r}), {shape}, {m!r})", {"float16": 5e-3, "bfloat16": 4e-2}.get(d, F32))
        for d, shape, m in itertools.product(DTYPES, ((3, 9),), METHODS)
    ),
    *(
        f"jax.image.resize(x, {shape}, 'linear')"
        for shape in ("(4,)", "(4, 4, 4)", "(-1, 3)", "(2.0, 3)", "4", "None", "'ab'")
    ),
    *((f"jax.image.resize(x, {shape}, 'linear')", F32) for shape in ("[4, 4]", "np.array([4, 4])", "(np.int64(4), 4)")),
    *(
        f"jax.image.resize({x}, (3, 3), {m!r})"
        for x in ("empty", "[[1.0]]", "None", "'a'")
        for m in ("linear", "nearest")
    ),
    *(f"jax.image.resize({x}, (0, 4), {m!r})" for x in ("empty", "x", "x.astype(int)") for m in METHODS),
    *(f"jax.image.resize({x}, (), {m!r})" for x in ("2.0", "2", "x[0, 0]", "True") for m in METHODS),
    *(f"jax.image.resize(x, (3, 3), {m})" for m in ("None", "3", "'foo'", "'LINEAR'")),
    *(
        (f"jax.image.resize(x, (3, 3), 'linear', precision={p})", F32)
        for p in ("None", "'highest'", "lax.Precision.HIGH")
    ),
    "jax.image.resize(x, (3, 3), 'linear', precision='foo')",
    *((f"jax.vmap(lambda x: jax.image.resize(x, (3, 4), {m!r}))(photo[..., 0])", F32) for m in METHODS),
    *((f"jax.jvp(lambda x: jax.image.resize(x, (3, 4), {m!r}), (x,), (x,))", F32) for m in METHODS),
    *((f"jax.jit(lambda x: jax.image.resize(x, (3, 4), {m!r}))(x)", F32) for m in METHODS),
    *(
        (f"jax.image.scale_and_translate(x, {shape}, (0, 1), {s}, {t}, {m!r}, {antialias})", F32)
        for shape, s, t, m, antialias in itertools.product(
            ((4, 11),), ("s", "ones", "half"), ("t", "0 * t"), METHODS, (True, False)
        )
    ),
    *(
        (f"jax.image.scale_and_translate(photo, (2, {n}, 6, 3), {axes}, s, t, 'cubic')", F32)
        for n in (3, 8)
        for axes in ((1, 2), (2, 1), (-3, -2))
    ),
    *(
        (f"jax.image.scale_and_translate(x, (6, 9), (1,), {s}[:1], {t}[:1], 'linear')", F32)
        for s in ("0 * s", "-s", "np.nan * s", "np.inf * s", "2 * ones.astype(int)")
        for t in ("t", "np.nan * t", "ones.astype(int)")
    ),
    *(
        (
            f"jax.image.scale_and_translate(x.astype({d!r}), (6, 9), (1,), s[1:], t[1:], 'linear')",
            {"float16": 4e-3, "bfloat16": 4e-2}.get(d, F32),
        )
        for d in DTYPES
    ),
    *(
        f"jax.image.scale_and_translate(x, (6, 9), {axes}, {s}, {t}, {m})"
        for axes, s, t, m in [
            ("(2,)", "s[:1]", "t[:1]", "'linear'"),
            ("(-3,)", "s[:1]", "t[:1]", "'linear'"),
            ("1", "s[:1]", "t[:1]", "'linear'"),
            ("(1,)", "s", "t", "'linear'"),
            ("(1,)", "1.2", "0.0", "'linear'"),
            ("(1,)", "[1.2]", "[0.0]", "'linear'"),
            ("(1,)", "s[:1]", "t[:1]", "'foo'"),
            ("()", "s[:0]", "t[:0]", "'linear'"),
            ("()", "s[:0]", "t[:0]", "'foo'"),
            ("(1, 1)", "s", "t", "'linear'"),
        ]
    ),
    "jax.image.scale_and_translate(x, (6,), (1,), s[:1], t[:1], 'linear')",
    "jax.image.scale_and_translate([[1.0]], (6, 6), (1,), s[:1], t[:1], 'linear')",
    "jax.image.scale_and_translate(empty, (4, 3), (0,), s[:1], t[:1], 'linear')",
    *(f"jax.image.ResizeMethod.from_string({n!r}).name" for n in (*METHODS, *ALIASES)),
]
GRADIENTS = [
    *(
        (f"jax.image.resize({x}, {shape}, {m!r}) ** 2", 1e-4)
        for x, shape in (("x", (3, 9)), ("photo", (2, 3, 8, 3)))
        for m in METHODS
    ),
    *((f"jax.image.scale_and_translate(x, (5, 9), (0, 1), s, t, {m!r}) ** 2", 1e-3) for m in METHODS[1:]),
    *((f"jax.image.scale_and_translate(x, (5, 9), (0, 1), s, t, {m!r}, False)", 1e-3) for m in METHODS[1:]),
]
EXPLAINED = [
    (
        r"grad [st] .*scale_and.*'area'",
        "returns",
        "3.9 / 1.3 is 3: at a kink, another of the derivatives of both sides",
    ),
    (
        r"\(4, 9\), \(0, 1\), s, t, jax.image.ResizeMethod\(5\), False",
        r"(?s)returns (float32\[4, 9\]) .*\| returns \1",
        "weights of float32: both are 7e-7 from those of double precision, on either side",
    ),
    (r"'LINEAR'|None\)|, 3\)", "TypeError.*AssertionError", "what is no method is a TypeError"),
    (r"\(1,\), s, t,", "ValueError.*AssertionError", "arguments that do not fit are a ValueError"),
    (r"\[\[1.0\]\]|None|'a'", "TypeError.*AttributeError", "what is no array is a TypeError"),
    (r"empty, \(3, 3\)", "ValueError", "an axis without elements cannot get some"),
    (r"\(-1, 3\)", "ValueError.*returns", "negative lengths are refused"),
    (r"\(1, 1\), s, t", "ValueError.*returns", "an axis that comes twice is refused"),
]

SLOPES_EXPLAINED = [(r"^[st] .*(0 \* s\[|np\.nan \* |-s\[)", "scales of zero and places that are no numbers")]
