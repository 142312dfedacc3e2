"""scipy.spatial.transform and scipy.sparse.linalg beside JAX."""

import itertools

import numpy as np

OPERANDS = {  # narrowed where x64 is off; where it is on, "single" is still of 32 bits
    "q": lambda rng: rng.normal(size=4),
    "qs": lambda rng: rng.normal(size=(3, 4)),
    "v": lambda rng: rng.normal(size=3),
    "vs": lambda rng: rng.normal(size=(3, 3)),
    "v5": lambda rng: rng.normal(size=(5, 3)),
    "times": lambda rng: np.arange(3.0),
    "a": lambda rng: rng.normal(size=(4, 4)) / 4 + 4 * np.eye(4),
    "p": lambda rng: 4 * np.eye(4) + 1,
    "b": lambda rng: rng.normal(size=4),
    "z": lambda rng: rng.normal(size=4) + 1j * rng.normal(size=4),
    "single": lambda rng: rng.normal(size=3).astype("float32"),
    "hermitian": lambda rng: (lambda m: m @ m.conj().T + 4 * np.eye(4))(rng.normal(size=(4, 4)) + 1j * np.eye(4)),
    "singular": lambda rng: np.diag([1.0, 2.0, 0.0, 0.0]),
}
_R, _S = "jsp.spatial.transform.Rotation", "jsp.spatial.transform.Slerp.init"
_Q, _ONE = f"{_R}.from_quat(qs)", f"{_R}.from_quat(q)"
_EULER = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]
_K = "jsp.sparse.linalg."

CASES = [
    *[f"{_R}.from_quat({a}).quat" for a in ("q", "qs", "[0, 0, 0, 1]", "q * 0", "v")],
    *[
        f"{_R}.{f}({a}).quat"
        for f in ("from_rotvec", "from_mrp")
        for a in ("v", "vs", "v * 0", "v * 1e-5", "np.int32([1, 2, 3])")
    ],
    *[f"{_R}.from_matrix({r}.as_matrix()).quat" for r in (_Q, _ONE)],
    f"{_R}.from_matrix(np.diag([1.0, -1, -1])).quat",
    f"{_R}.from_rotvec(v, True).quat",
    *[f"{_R}.from_euler({s!r}, vs).quat" for s in [*_EULER, *map(str.upper, _EULER), "xyZ", "xxy", "abc", ""]],
    *[
        (f"{_Q}.as_euler({s!r}{d})", 1e-4)
        for s in [*_EULER, *map(str.upper, _EULER), "xy", "abc"]
        for d in ("", ", True")
    ],
    *[
        f"{_R}.from_euler({a}).quat"
        for a in ("'x', 0.5", "'xy', v[:2]", "'xy', v", "'x', 90, degrees=True", "'xyz', [1, 2, 3]")
    ],
    *[
        f"{r}.{f}"
        for r in (_Q, _ONE)
        for f in (
            "as_matrix()",
            "as_quat()",
            "as_quat(True)",
            "as_quat(scalar_first=True)",
            "as_rotvec()",
            "as_rotvec(True)",
            "as_mrp()",
            "magnitude()",
            "inv().quat",
            "single",
            "apply(v)",
            "apply(vs)",
            "apply(vs, True)",
            "apply(v5)",
            "apply(q)",
            "apply([1.0, 2.0, 3.0])",
        )
    ],
    *[f"({x} * {y}).quat" for x in (_Q, _ONE) for y in (_Q, _ONE)],
    *[f"abs({_Q}.mean({w}).quat)" for w in ("", "times + 1", "times[:2]")],
    *[f"{_Q}[{i}].quat" for i in ("0", "-1", ":2", "np.int32([0, 2])")],
    *[f"{_ONE}{s}" for s in ("[0]", ".mean()", ".quat.shape")],
    *[f"len({r})" for r in (_Q, _ONE)],
    *[f"{_R}.identity({a}).quat" for a in ("", "dtype=jnp.float16", "2")],
    *[f"{_S}(times, {_Q})({t}).as_matrix()" for t in ("0.5", "times", "[0.5]", "times[None]", "times - 1")],
    *[f"{_S}({a})" for a in (f"times[:2], {_Q}", f"times, {_ONE}", "times, qs", f"times[None], {_Q}")],
    *[
        f"{_K}{f}({a})"
        for f in ("cg", "bicgstab", "gmres")
        for a in (
            "p, b",
            "p, z",
            "lambda v: 2 * v, b",
            "p, b, b",
            "p, b, b[:3]",
            "p, b, (b,)",
            "p, b, maxiter=0",
            "p, b, maxiter=1",
            "p, b, atol=10.0",
            "p, b, M=p / 10",
            "p, b, M='x'",
            "'x', b",
            "p[:3], b",
            "p[:3, :3], b",
            "p, p",
            "p, b * 0",
            "lambda v: (v,), b",
            "lambda v: v[:2], b",
            "lambda t: {'x': 2 * t['x']}, {'x': b}",
        )
    ],
    *[f"{_K}{f}(a, b)" for f in ("bicgstab", "gmres")],
    *[
        f"{_K}gmres(a, b, {k})"
        for k in ("restart=2", "restart=100", "restart=0", "solve_method='incremental'", "solve_method='other'")
    ],
    *[
        f"{_R}.concatenate({a}).quat"
        for a in (f"[{_ONE}, {_ONE}]", f"[{_Q}, {_Q}]", f"({_Q},)", "[]", "[1]", f"[{_ONE}, {_Q}]")
    ],
    *[f"{_R}.random(jax.random.key(0){a}).quat" for a in ("", ", 3", ", num=0", ", -1", ", 1.5")],
    f"{_R}.random(0)",
    # extreme arguments
    *[
        f"{_R}.from_quat({a}).quat"
        for a in ("q * 1e-15", "q * 1e15", "q * jnp.nan", "q.at[0].set(jnp.inf)", "qs.at[1].set(0)")
    ],
    *[
        f"{_R}.from_rotvec({a}).{f}"
        for a in (
            "v * 1e-15",
            "v * 1e-3",
            "v * 100",
            "v * jnp.nan",
            "single",
            "[np.pi, 0.0, 0.0]",
            "[0.0, 2 * np.pi, 0.0]",
        )
        for f in ("quat", "as_matrix()", "as_rotvec()", "as_mrp()", "magnitude()", "as_euler('xyz')")
        if "100" not in a or f in ("quat", "as_matrix()")
    ],
    *[f"{_R}.from_mrp({a}).quat" for a in ("v * 1e15", "v * 1e-15", "single", "v * jnp.nan")],
    *[
        f"{_R}.from_matrix({a}).as_matrix()"
        for a in (
            "np.eye(3)",
            "np.diag([-1.0, -1, 1])",
            "np.diag([-1.0, 1, -1])",
            "a[:3, :3]",
            "np.full((3, 3), np.nan)",
        )
    ],
    *[
        f"{_R}.from_euler('{s}', [0.3, {middle}, 0.2]).as_euler('{s}')"
        for s, middle in (("xyz", "np.pi / 2"), ("XYZ", "-np.pi / 2"), ("zxz", "0.0"), ("ZXZ", "np.pi"))
    ],
    *[
        f"{_K}{f}({a})"
        for f in ("cg", "bicgstab", "gmres")
        for a in (
            "hermitian, z",
            "p, b, tol=1e-2",
            "p, b, tol=0.0, maxiter=3",
            "p, b * jnp.nan",
            "p * jnp.inf, b",
            "p * 1e15, b",
            "p, b * 1e-12",
            "p, b * 1e12",
            "singular, b * jnp.array([1, 1, 0, 0])",
            "p, b, M=lambda v: v / 4",
            "p, single",
            "p, b, x0=b, maxiter=2",
            "p, b, maxiter=-1",
            "p, b, 1.0",
            "p, b, M=p[:3]",
            "lambda v: v * p[0], b",
        )
    ],
    *[f"jax.vmap(lambda v: {_K}{f}(p, v)[0])(a)" for f in ("cg", "bicgstab", "gmres")],
]
CASES = [case if isinstance(case, tuple) else (case, 2e-4 if "sparse" in case else 1e-5) for case in CASES]
GRADIENTS = [
    *[
        (f"{_R}.{f}", 1e-4)
        for f in (
            "from_quat(q).as_matrix()",
            "from_quat(qs).mean().as_matrix()",
            "from_quat(qs).apply(v)",
            "from_matrix(a[:3, :3]).quat",
            "from_rotvec(v * 0).quat",
            "from_rotvec(v * 0).as_matrix()",
            "from_rotvec(v * 1e-5).as_rotvec()",
            "from_mrp(v * 0).as_mrp()",
            "from_euler('xyz', v * 0).as_euler('xyz')",
            "concatenate([jsp.spatial.transform.Rotation.from_quat(qs)] * 2).inv().as_rotvec()",
        )
    ],
    (f"{_S}(times, {_Q})(times * 0.7 + 0.2).as_matrix()", 1e-4),
    *[(f"{_K}{f}(hermitian, z)[0]", 1e-3) for f in ("cg", "bicgstab", "gmres")],
    *[(f"{_K}{f}(lambda t: {{'x': p @ t['x']}}, {{'x': b}})[0]['x']", 1e-3) for f in ("cg", "bicgstab", "gmres")],
    *[
        (f"{_ONE}.{f}", 1e-4)
        for f in (
            "as_matrix()",
            "as_rotvec()",
            "as_mrp()",
            "as_euler('xyz')",
            "as_euler('ZXZ')",
            "apply(v)",
            "magnitude()",
        )
    ],
    *[(f"{_R}.{f}", 1e-4) for f in ("from_rotvec(v).quat", "from_mrp(v).quat", "from_euler('xyz', v).quat")],
    *[(f"{_K}{f}(p, b)[0]", 1e-3) for f in ("cg", "bicgstab", "gmres")],
]
SHARP = True
EXPLAINED = [
    (
        r"from_rotvec\((v \* 1e-3|\[0\.0, 2 \* np\.pi, 0\.0\])\)\.as_euler",
        r"returns float32\[3\].*\| returns float32\[3\]",
        "small angles keep their digits, in JAX they have four",
    ),
    (r"from_quat\(v\)", "ValueError", "a quaternion has four elements"),
    (r"\[1, 2, 3\]|\[0\.3, -?np\.pi", "TypeError", "lists of angles are taken, as by the other constructors"),
    (r"Rotation\.random\(", "NotImplementedError", "JAX has its name only"),
    (
        r"concatenate\(\[[^\[]*from_quat\(q\)",
        r"(?s)returns .*\| (returns \w+\[\d+\] |\w*Error)",
        "single rotations become a stack; JAX joins their numbers to one row, or fails",
    ),
    (r"from_euler\('zxz', \[", r"^returns.*\| TypeError: atleast_1d", "lists of angles are taken"),
    (
        r"^grad v .*from_rotvec\(v \* 0\)",
        r"\| returns float(32|64)\[3\] \[nan nan nan\]",
        "at the identity a derivative is finite",
    ),
    (r"gmres\(p, b, 1\.0\)", r"^ValueError: gmres: x0.*\| TypeError", "what does not fit is refused by name"),
    (r"identity\(2\)", "AssertionError", "a stack of identities is there"),
    (r"gmres.*b\[:3\]|restart=0", "ValueError", "what does not fit is refused by name"),
    (r"bicgstab.*maxiter=1", "", "one step of an iteration is rounded otherwise"),
]

SLOPES_EXPLAINED = [
    (
        r"sparse\.linalg\.(cg|bicgstab|gmres)\(",
        "solutions are known to 1e-5 of their sizes, and to less where that is asked for",
    ),
    (r"from_rotvec\(v \* 1e-15\)\.as_euler", "1e-15 of a radian"),
    (r"at\[0\]\.set\(jnp\.inf\)", "of infinite quaternions there is none"),
]
