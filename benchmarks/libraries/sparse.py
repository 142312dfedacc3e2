# ruff: noqa: E501
"""`jax.experimental.sparse`. See `differential_libraries.py` for what a table is."""

import itertools
import re

import numpy as np

IMPORTS = ["experimental.sparse", "experimental.sparse.linalg"]


def positions(rng, shape, sizes, nse):
    return np.stack([rng.integers(0, n, (*shape, nse)) for n in sizes], -1).astype(np.int32)


OPERANDS = {
    "d": lambda rng: rng.normal(size=6).astype(np.float32),
    "i": lambda rng: positions(rng, (), (4, 5), 6),
    "padded": lambda rng: np.array([[0, 1], [4, 5], [3, 3], [4, 5], [0, 1], [2, 0]], np.int32),
    "bd": lambda rng: rng.normal(size=(2, 6)).astype(np.float32),
    "bi": lambda rng: positions(rng, (2,), (4, 5), 6),
    "dd": lambda rng: rng.normal(size=(6, 3)).astype(np.float32),
    "x": lambda rng: (rng.normal(size=(4, 5)) * (rng.random((4, 5)) < 0.4)).astype(np.float32),
    "X": lambda rng: (rng.normal(size=(2, 4, 5)) * (rng.random((2, 4, 5)) < 0.4)).astype(np.float32),
    "v": lambda rng: rng.normal(size=5).astype(np.float32),
    "w": lambda rng: rng.normal(size=4).astype(np.float32),
    "B": lambda rng: rng.normal(size=(5, 3)).astype(np.float32),
    "A": lambda rng: rng.normal(size=(3, 4)).astype(np.float32),
    "n": lambda rng: np.arange(5, dtype=np.int32),
}
MATS = {
    "M": "sp.BCOO((d, i), shape=(4, 5))",
    "P": "sp.BCOO((d, padded), shape=(4, 5))",
    "F": "sp.BCOO.fromdense(x, nse=9)",
    "BM": "sp.BCOO((bd, bi), shape=(2, 4, 5))",
    "BS": "sp.BCOO((bd, bi[:1]), shape=(2, 4, 5))",
    "BD": "sp.BCOO((dd, i), shape=(4, 5, 3))",
    "R": "sp.BCSR.fromdense(x, nse=9)",
    "C": "sp.COO.fromdense(x, nse=9)",
    "S": "sp.CSR.fromdense(x, nse=9)",
    "Q": "sp.CSC.fromdense(x, nse=9)",
}
TWO_AXES, BCOO = ("M", "P", "F"), ("M", "P", "F", "BM", "BS", "BD")
FORMS = [
    *((m, f) for m in BCOO for f in ("#.todense()", "-#", "+#", "abs(#)", "# * 2", "2 * #", "# / 3", "# + #", "# - #")),
    *(
        (m, f)
        for m in BCOO
        for f in ("# ** 2", "# ** 0", "# + 1", "1 - #", "2 / #", "# ** 2.5", "#.astype(int)", "#.nse")
    ),
    *((m, f"#.sum({a})") for m in BCOO for a in ("", "0", "1", "(0, 1)", "-1", "1, keepdims=True", "dtype=int")),
    *((m, f"#[{k}]") for m in BCOO for k in ("0", "-1", "1:", "::-1", ":, 1", "None", "..., None", "0, 1", "1:3, ::2")),
    *(
        (m, f"#[{k}]")
        for m in TWO_AXES
        for k in ("jnp.array([0, 2])", ":, jnp.array([1, 1, 0])", "jnp.array([[0], [3]])")
    ),
    *((m, f"#.{f}") for m in BCOO for f in ("sort_indices()", "sum_duplicates(nse=4)", "sum_duplicates(nse=20)")),
    *((m, f"#.sum_duplicates(nse=6, remove_zeros={r})") for m in BCOO for r in (True, False)),
    *((m, f"#.{f}") for m in TWO_AXES for f in ("T", "transpose()", "transpose((0, 1))", "transpose((0, 0))")),
    *((m, f"#.transpose({p})") for m in ("BM", "BS", "BD") for p in itertools.permutations(range(3))),
    *((m, f"#.reshape({s})") for m in TWO_AXES for s in ("5, 4", "-1", "(2, 10)", "2, 2, 5", "1, 20", "20, 1", "3, 7")),
    *((m, f"#.reshape({s})") for m in ("BM", "BS") for s in ("2, 20", "1, 2, 20", "2, 5, 4", "40", "2, 1, 20")),
    *(
        (m, f"#.update_layout(n_batch={b}, n_dense={d}, on_inefficient={e})")
        for m in BCOO
        for b, d in itertools.product(range(3), range(2))
        for e in ("None", "'error'")
    ),
    *(
        (m, f)
        for m in TWO_AXES
        for f in ("# @ v", "w @ #", "# @ B", "A @ #", "# @ w", "# @ n", "# @ v.astype('float16')")
    ),
    *(
        (m, f)
        for m in TWO_AXES
        for f in ("# * x", "x * #", "# + x", "x + #", "# * v", "# * x[:1]", "# * x[:, :1]", "# / x")
    ),
    *(
        (m, f)
        for m in ("BM", "BS")
        for f in ("# @ v", "# @ B", "A @ #", "# * X", "# * X[:1]", "# + X", "X @ B @ A * 0")
    ),
    *((m, f) for m in TWO_AXES for f in ("# @ #.T", "#.T @ #", "# * #", "# * #[:1]")),
    *((m, f"sp.{f}") for m in TWO_AXES for f in ("bcoo_extract(#, x)", "bcoo_multiply_dense(#, x)", "todense(#)")),
    *((m, f"sp.bcoo_extract(#, x, assume_unique={u})") for m in TWO_AXES for u in (True, False)),
    *((m, f"sp.bcoo_reduce_sum(#, axes={a})") for m in BCOO for a in ((0,), (1,), (0, 1))),
    *((m, f"sp.bcoo_rev(#, {a})") for m in BCOO for a in ((0,), (1,), (0, 1), (3,))),
    *((m, f"sp.bcoo_concatenate([#, #], dimension={k})") for m in BCOO for k in (0, 1, 2, -1)),
    *(
        (m, f"sp.bcoo_slice(#, start_indices={s}, limit_indices={e}, strides={k})")
        for m in TWO_AXES
        for s, e, k in (
            ((0, 1), (4, 5), None),
            ((1, 1), (3, 2), None),
            ((0, 0), (4, 5), (2, 3)),
            ((0, 0), (4, 6), None),
        )
    ),
    *((m, f"sp.bcoo_dynamic_slice(#, {s}, {k})") for m in TWO_AXES for s in ((0, 1), (3, 4)) for k in ((2, 2), (4, 5))),
    *(
        (m, f"sp.bcoo_broadcast_in_dim(#, shape={s}, broadcast_dimensions={k})")
        for m in TWO_AXES
        for s, k in (((2, 4, 5), (1, 2)), ((4, 1, 5), (0, 2)), ((4, 5, 1), (0, 1)), ((4, 5, 2), (0, 1)))
    ),
    *((m, f"jax.vmap(lambda m: {f})(#)") for m in ("BM", "BS") for f in ("m", "m @ v", "m.T", "m.sum(0)", "2 * m")),
    *(
        (m, f"sp.sparsify(lambda m: {f})(#)")
        for m in BCOO
        for f in ("jnp.sin(m)", "jnp.exp(m)", "m.sum(-1)", "sp.todense(m)")
    ),
    *(
        (m, f)
        for m in ("R", "C", "S", "Q")
        for f in ("#.todense()", "# @ v", "# @ B", "#.T", "w @ #", "# * 2", "-#", "#.nse")
    ),
    *(
        ("R", f)
        for f in (
            "#.to_bcoo()",
            "#.sum_duplicates(nse=7)",
            "#[0]",
            "#.sum()",
            "sp.bcsr_concatenate([#, #], dimension=0)",
        )
    ),
    ("C", "sp.coo_matvec(#, w, transpose=True)"),
    ("C", "sp.coo_matmat(#, A.T, transpose=True)"),
    ("S", "sp.csr_matvec(#, w, transpose=True)"),
    ("S", "sp.csr_matmat(#, A.T, transpose=True)"),
]
PLAIN = [
    *(f"sp.BCOO.fromdense(X, nse=30, n_batch={b}, n_dense={d})" for b in range(4) for d in range(4)),
    *(
        f"sp.BCOO.fromdense(x{c}, nse=9)"
        for c in (".astype(int)", ".astype('float16')", " != 0", " + 0j", "[:0]", "[0, 0]")
    ),
    *(f"sp.empty((3, 4), sparse_format={f!r})" for f in ("bcoo", "bcsr", "coo", "csr", "csc", "dok")),
    *(f"sp.eye(3, 4, {k}, sparse_format={f!r})" for k in (-2, 0, 1, 9) for f in ("bcoo", "coo", "csr", "csc", "dok")),
    *(
        f"sp.random_bcoo(jax.random.key({k}), {s}, dtype='float32', {options})"
        for k in (0, 1)
        for s, options in (
            ((4, 5), ""),
            ((4, 5), "nse=7, sorted_indices=True"),
            ((4, 5), "nse=7, unique_indices=False"),
            ((2, 4, 5), "n_batch=1, nse=3"),
            ((2, 4, 5), "n_dense=1, nse=3"),
            ((4, 5), "nse=21"),
            ((4, 5), "generator=jax.random.normal"),
        )
    ),
    *(f"sp.bcoo_dot_general_sampled(A, x, i[:, :{k}], dimension_numbers=(((1,), (0,)), ((), ())))" for k in (0, 1, 2)),
    *(
        f"sp.bcoo_conv_general_dilated(sp.BCOO.fromdense(v[None, None], nse=4), sp.BCOO.fromdense(w[None, None], nse=4), "
        f"window_strides=({s},), padding={p})"
        for s in (1, 2)
        for p in ("'SAME'", "'VALID'", "[(1, 2)]", "[(-1, 0)]")
    ),
    "sp.linalg.spsolve(jnp.array([2., 3., 4.]), jnp.array([0, 1, 2]), jnp.array([0, 1, 2, 3]), w[:3])",
]


def written(expression: str) -> str:
    """An expression with the module in full."""
    return re.sub(r"\bsp\.", "jax.experimental.sparse.", expression)


JIT = [*(written(form.replace("#", MATS[mat])) for mat, form in FORMS), *map(written, PLAIN)]
# Where JAX's buffers are others, the arrays that they stand for are compared.
OTHER_BUFFERS = [form.replace("#", MATS[mat]) for mat, form in FORMS if mat in ("P", "BS") or "# * #" in form]
OTHER_BUFFERS += [form for form in PLAIN if form.startswith("sp.bcoo_conv")]
CASES = [*JIT, *(written(f"sp.todense({form})") for form in OTHER_BUFFERS if "todense" not in form)]
GRADIENTS = [
    written(form.replace("#", MATS[mat]))
    for mat in ("M", "P")
    for form in (
        "#.todense() * x",
        "jnp.sin(# @ v)",
        "w @ #",
        "(# * x).data",
        "#.sum_duplicates(nse=6).data",
        "#.sum()",
    )
]
BUFFERS = r"(?s)^returns \w+\[.*, int32\[.* \| returns \w+\[.*, int32\["  # data and indices, not a dense array
SAME = "the arrays are equal; what stands in padding is not"
EXPLAINED = [
    (
        r"bi\[:1\]",
        r"(?s)returns.* \| ValueError: (indices batch dimensions not compatible|Invalid data.shape)",
        "JAX fails where buffers share a batch axis of size 1",
    ),
    (r"todense\(.*\.nse\)", r"int(32|64)\[\] weak .* \| .*int64\[\]", "nse is a Python int"),
    (
        r"^grad d .*\(d, padded\).*sum_duplicates\(nse=6\)",
        r"returns float(32|64)\[6\] \[1\. 0\. 1\. 0\. 1\. 1\.\] \| ",
        "what lies beyond the shape is zero, where JAX adds up what is there",
    ),
    (".*", r".* \| AssertionError.*", "ValueError, TypeError or NotImplementedError instead of a failed assertion"),
    (".*", r"(?s)ValueError.* \| MLIRError.*", "as above, instead of what the compiler says of an impossible type"),
    (".*", r".* \| AttributeError.*", "as above, instead of an attribute that a number or an array lacks"),
    (
        r"bi\[:1\]",
        r"(?s)returns.* \| ValueError: (Cannot lower|broadcasting_vmap)",
        "JAX fails where buffers share a batch axis of size 1",
    ),
    (
        r"vmap.*bi\[:1\]",
        "ValueError.*",
        "vmap maps leaves: those that share a batch axis of size 1 have no axis to map",
    ),
    (r"bi\[:1\]", BUFFERS, "which of the buffers keep a batch axis of size 1"),
    (r"\(d, padded\)", BUFFERS, SAME),
    (r"BCOO.* \* jax.experimental.sparse.BCOO|bcoo_conv", BUFFERS, SAME),
    (r"x\[:0\]", r"returns .* \| TypeError", "padding of an array without elements is as any"),
    (r"x != 0", "returns .* weak|Cannot lower", "weakness of the integers that booleans become"),
]

SLOPES_EXPLAINED = [
    (r"^[xX] .*fromdense\([xX], nse=", "what is zero stays out of the pattern, and steps make it another")
]
