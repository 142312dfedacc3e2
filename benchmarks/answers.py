"""What a call answers, so described that the answers of two libraries can be compared: what it returns, or raises."""

import re

import numpy as np

NO_ANSWER = ["NoAnswer"]  # the kinds of what a call that does not end raises

SINGLE = 1e-4
# Of the largest element, by dtype; that of single precision for others.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float8_e4m3fn": 0.13, "float64": 1e-9, "complex128": 1e-9}


def described(jax, value) -> list:
    """The tree structure, then of every leaf its dtype, shape, weakness and values."""
    leaves = [str(jax.tree.structure(value))]
    for x in jax.tree.leaves(value):
        a = np.asarray(x)
        plain = a.astype(np.float32) if a.dtype.kind == "V" and a.dtype.itemsize else a
        plain = np.asarray(type(x).__name__) if a.dtype.hasobject else plain  # another process may not know its class
        leaves.append((str(a.dtype), a.shape, bool(getattr(x, "weak_type", False)), plain))
    return leaves


def outcome(jax, function) -> list:
    """What ``function()`` returns, described, or the kinds and the first line of what it raises."""
    try:
        return described(jax, function())
    except Exception as error:  # whatever is raised is what is compared
        return [kind.__name__ for kind in type(error).__mro__], str(error).split("\n")[0][:160]


def difference(ours, theirs, **how) -> str | None:
    """What differs, said as "ours | theirs"; ``how``: the options of `agree`."""
    failed = isinstance(ours[0], list), isinstance(theirs[0], list)
    if not any(failed):
        same = len(ours) == len(theirs) and ours[0] == theirs[0]
        same = same and all(agree(a, b, **how) for a, b in zip(ours[1:], theirs[1:]))
    else:
        same = all(failed) and theirs[0][0] in ours[0]
    return None if same else " | ".join(f"{r[0][0]}: {r[1]}" if f else short(r) for r, f in zip((ours, theirs), failed))


def short(result) -> str:
    shown = [f"{d}{list(s)}{' weak' * w} {np.ravel(v)[:8]}" for d, s, w, v in result[1:4]]
    return "returns " + ", ".join(shown)


def agree(
    a, b, tolerance: float | None = None, zero_signs: bool = True, each: bool = False, sharp: bool = False
) -> bool:
    """Whether two leaves are of one type and as close as their dtype allows.

    ``each``: each element for itself. ``sharp``: the tolerance is that of single precision, and double precision has
    as many more digits as its own tolerance says.
    """
    if a[:3] != b[:3] or a[3].dtype.kind not in "fc":
        return a[:3] == b[:3] and np.array_equal(a[3], b[3])
    own = TOLERANCE.get(a[0], SINGLE)
    tolerance = (tolerance or SINGLE) * own / SINGLE if sharp and own < SINGLE else tolerance or own
    least = np.finfo(b[3].dtype).tiny if each else tolerance * np.abs(b[3][np.isfinite(b[3])]).max(initial=0)
    loose = a[3].dtype.kind == "c" or not zero_signs
    signs = loose or np.array_equal(*[np.signbit(v[3]) & (v[3] == 0) for v in (a, b)])
    with np.errstate(all="ignore"):
        return bool(signs and np.allclose(a[3], b[3], tolerance, least, equal_nan=True))


def explanation(table: list, call: str, what: str) -> str | None:
    """The reason in a table of (pattern of a call, pattern of "ours | theirs", reason): the first that fits."""
    return next((why for of, text, why in table if re.search(of, call) and re.search(text, what)), None)
