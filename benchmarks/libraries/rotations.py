"""scipy.spatial.transform and scipy.sparse.linalg beside JAX."""

import itertools

import numpy as np

OPERANDS = {
    "q": lambda rng: rng.normal(size=4).astype("float32"),
    "qs": lambda rng: rng.normal(size=(3, 4)).astype("float32"),
    "v": lambda rng: rng.normal(size=3).astype("float32"),
    "vs": lambda rng: rng.normal(size=(3, 3)).astype("float32"),
    "v5": lambda rng: rng.normal(size=(5, 3)).astype("float32"),
    "times": lambda rng: np.arange(3, dtype="float32"),
    "a": lambda rng: (rng.normal(size=(4, 4)) / 4 + 4 * np.eye(4)).astype("float32"),
    "p": lambda rng: (4 * np.eye(4) + 1).astype("float32"),
    "b": lambda rng: rng.normal(size=4).astype("float32"),
    "z": lambda rng: (rng.normal(size=4) + 1j * rng.normal(size=4)).astype("complex64"),
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
]
CASES = [case if isinstance(case, tuple) else (case, 2e-4 if "sparse" in case else 1e-5) for case in CASES]
GRADIENTS = [
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
EXPLAINED = [
    (r"from_quat\(v\)", "ValueError", "a quaternion has four elements"),
    (r"\[1, 2, 3\]", "TypeError", "lists of angles are taken, as by the other constructors"),
    (r"identity\(2\)", "AssertionError", "a stack of identities is there"),
    (r"gmres.*b\[:3\]|restart=0", "ValueError", "what does not fit is refused by name"),
    (r"bicgstab.*maxiter=1", "", "one step of an iteration is rounded otherwise"),
]
