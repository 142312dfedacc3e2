"""Checks that every primitive and every function has to pass, shared by the tests of all modules.

``check_primitive`` does it all for one function at one point; its parts stand by themselves, too.
Derivatives are
compared with finite differences in float64, whatever the dtype under test elsewhere.
"""

import itertools

import numpy as np

import catena
from catena.core import dtypes

RNG_SEED = 20


# ---- numbers


def flat_outputs(out) -> list:
    """The arrays of a result, as NumPy arrays; their types are what they say."""
    leaves = catena.tree_util.tree_leaves(out)
    values = [np.asarray(x) for x in leaves]
    for leaf, value in zip(leaves, values, strict=True):
        if isinstance(leaf, catena.Array):
            assert (value.dtype, value.shape) == (leaf.aval.dtype, leaf.aval.shape)
    return values


def wide(x) -> np.ndarray:
    """``x`` in float64 or complex128, for comparisons; integers and booleans as they are."""
    x = np.asarray(x)
    kind = dtypes.KIND[x.dtype]
    return x.astype({"f": np.float64, "c": np.complex128}.get(kind, x.dtype)) if kind in "fc" else plain_ints(x)


def plain_ints(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64) if x.dtype.kind == "V" else x


def eps_of(dtype) -> float:
    """The distance from 1 to the next number; zero for dtypes that are exact."""
    dtype = np.dtype(dtype)
    return float(dtypes.finfo(dtype).eps) if dtypes.KIND[dtype] in "fc" else 0.0


def assert_close(actual, expected, *, ulps: float = 0.0, atol: float = 0.0, what: str = ""):
    """Values equal up to ``ulps`` units in the last place of the dtype of ``actual``, NaNs and infinities
    included.
    """
    actual = np.asarray(actual)
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, expected {expected.shape}"
    if not ulps and not atol:
        np.testing.assert_array_equal(wide(actual), wide(expected), err_msg=what)
        return
    rtol = ulps * eps_of(actual.dtype)
    floor = atol + ulps * smallest_step(actual.dtype)
    np.testing.assert_allclose(wide(actual), wide(expected), rtol=rtol, atol=floor, err_msg=what)


def smallest_step(dtype) -> float:
    """The distance between the numbers nearest to zero."""
    dtype = np.dtype(dtype)
    return float(dtypes.finfo(dtype).smallest_subnormal) if dtypes.KIND[dtype] in "fc" else 0.0


def random_like(rng, x) -> np.ndarray:
    """Normal random numbers of the type of ``x``."""
    x = np.asarray(x)
    out = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        out = out + 1j * rng.standard_normal(x.shape)
    return np.asarray(out, x.dtype)


# ---- eager against reference and against compiled


def check_reference(fun, reference, args, *, ulps: float = 0.0, atol: float = 0.0):
    """``fun`` against a NumPy function of the same arguments in float64."""
    actual = flat_outputs(fun(*args))
    expected = catena.tree_util.tree_leaves(reference(*[wide(a) for a in args]))
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        rounded = np.asarray(e).astype(a.dtype) if dtypes.KIND[a.dtype] in "fc" else plain_ints(np.asarray(e))
        assert_close(a, rounded, ulps=ulps, atol=atol, what="eager against reference")


def check_jit(fun, args, *, ulps: float = 0.0, atol: float = 0.0):
    """``jit(fun)`` gives the values and the types that ``fun`` gives."""
    eager, compiled = fun(*args), catena.jit(fun)(*args)
    for e, c in zip(catena.tree_util.tree_leaves(eager), catena.tree_util.tree_leaves(compiled), strict=True):
        assert catena.typeof(e) == catena.typeof(c) if hasattr(catena, "typeof") else e.dtype == c.dtype
        assert_close(np.asarray(c), np.asarray(e), ulps=ulps, atol=atol, what="compiled against eager")


# ---- derivatives


def numerical_jvp(fun, primals, tangents, step: float = 1e-3) -> list:
    """The derivative of ``fun`` in a direction by central differences of sixth order."""
    weights = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
    total = None
    for k, w in weights.items():
        for sign in (1, -1):
            point = [np.asarray(p + sign * k * step * t, np.asarray(p).dtype) for p, t in zip(primals, tangents)]
            outs = [sign * w / step * wide(o) for o in flat_outputs(fun(*point))]
            total = outs if total is None else [a + b for a, b in zip(total, outs, strict=True)]
    return total


def check_jvp(fun, args, *, rtol: float = 1e-6, atol: float = 1e-6, step: float = 1e-3):
    """Forward differentiation against finite differences, in a random direction."""
    rng = np.random.default_rng(RNG_SEED)
    tangents = [random_like(rng, a) for a in args]
    _, actual = catena.jvp(fun, tuple(args), tuple(tangents))
    expected = numerical_jvp(fun, args, tangents, step)
    for a, e in zip(flat_outputs(actual), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=rtol, atol=atol, err_msg="jvp against finite differences")


def check_vjp(fun, args, *, rtol: float = 1e-9, atol: float = 1e-9):
    """Reverse differentiation is the transpose of forward differentiation."""
    rng = np.random.default_rng(RNG_SEED + 1)
    tangents = [random_like(rng, a) for a in args]
    _, out_tangents = catena.jvp(fun, tuple(args), tuple(tangents))
    out, pullback = catena.vjp(fun, *args)
    cotangents = catena.tree_util.tree_map(lambda x: random_like(rng, x), out)
    pulled = pullback(cotangents)
    left = _inner(cotangents, out_tangents)
    right = _inner(pulled, tuple(tangents))
    np.testing.assert_allclose(left, right, rtol=rtol, atol=atol, err_msg="vjp against jvp")


def _inner(a, b) -> float:
    """The real part of the sum of products, which transposition keeps."""
    pairs = zip(flat_outputs(a), flat_outputs(b), strict=True)
    return sum(float(np.sum(wide(x) * wide(y)).real) for x, y in pairs)


def check_grads(fun, args, *, order: int = 2, modes=("fwd", "rev"), rtol: float = 1e-6, atol: float = 1e-6):
    """Derivatives of ``fun`` up to ``order``: forward against differences, reverse against forward.

    Arguments:
      fun: a function of arrays.
      args: float64 or complex128 arrays.
      order: how often to differentiate.
      modes: which of ``"fwd"`` and ``"rev"``.
    """
    if order == 0:
        return
    check_jvp(fun, args, rtol=rtol, atol=atol)
    if "rev" in modes:
        check_vjp(fun, args)
    rng = np.random.default_rng(RNG_SEED + 2)
    if "fwd" in modes:
        tangents = tuple(random_like(rng, a) for a in args)
        check_grads(
            lambda *xs: catena.jvp(fun, xs, tangents)[1],
            args,
            order=order - 1,
            modes=modes,
            rtol=rtol,
            atol=atol,
        )
    if "rev" in modes:
        cotangents = catena.tree_util.tree_map(lambda x: random_like(rng, x), fun(*args))
        check_grads(
            lambda *xs: catena.vjp(fun, *xs)[1](cotangents), args,
            order=order - 1, modes=("rev",), rtol=rtol, atol=atol,
        )  # fmt: skip


# ---- vectorisation


def check_vmap(fun, args, *, ulps: float = 0.0, atol: float = 0.0, size: int = 3):
    """``vmap`` over every non-empty choice of arguments, in front and at the end, against a loop."""
    rng = np.random.default_rng(RNG_SEED + 3)
    stacks = [np.stack([_shuffled(rng, a) for _ in range(size)]) for a in args]
    for mapped in itertools.product((False, True), repeat=len(args)):
        if not any(mapped):
            continue
        for last in (False, True):
            _check_vmap(fun, args, stacks, mapped, last, ulps, atol)


def _shuffled(rng, x) -> np.ndarray:
    """The elements of ``x`` in another order: values in the domain of the function."""
    x = np.asarray(x)
    return rng.permutation(x.reshape(-1)).reshape(x.shape) if x.size > 1 else x


def _check_vmap(fun, args, stacks, mapped, last, ulps, atol):
    size = stacks[0].shape[0]
    rows = [[s[i] if m else a for s, a, m in zip(stacks, args, mapped)] for i in range(size)]
    expected = [flat_outputs(fun(*row)) for row in rows]
    inputs = [(np.moveaxis(s, 0, -1) if last else s) if m else a for s, a, m in zip(stacks, args, mapped)]
    in_axes = tuple((-1 if last else 0) if m else None for m in mapped)
    actual = flat_outputs(catena.vmap(fun, in_axes=in_axes)(*inputs))
    for i, out in enumerate(actual):
        assert_close(out, np.stack([e[i] for e in expected]), ulps=ulps, atol=atol, what=f"vmap, in_axes={in_axes}")


# ---- all of it


def check_primitive(
    fun, args, *, reference=None, ulps: float = 0.0, atol: float = 0.0, order: int = 2, modes=("fwd", "rev"),
    jit: bool = True, vmap: bool = True,
):  # fmt: skip
    """All checks of one function at one point.

    Arguments:
      fun: the function, of arrays.
      args: NumPy arrays.
      reference: a NumPy function to compare with, evaluated in float64.
      ulps, atol: how far values may be off.
      order: how many derivatives to check, where all arguments are float64 or complex128.
      modes: which kinds of differentiation.
      jit, vmap: whether to check them.
    """
    if reference is not None:
        check_reference(fun, reference, args, ulps=ulps, atol=atol)
    if jit:
        check_jit(fun, args, ulps=ulps, atol=atol)
    if vmap:
        check_vmap(fun, args, ulps=ulps, atol=atol)
    if order and all(np.asarray(a).dtype in (np.float64, np.complex128) for a in args):
        check_grads(fun, args, order=order, modes=modes)


def raises(error, pattern: str, fun, *args, **kwargs):
    """``fun(*args)`` raises ``error`` with exactly the message ``pattern``, eagerly and while it is
    traced.
    """
    for call in (fun, lambda *a, **k: catena.make_jaxpr(lambda: fun(*a, **k))()):
        try:
            call(*args, **kwargs)
        except error as caught:
            assert str(caught).startswith(pattern), f"message {str(caught)!r}, expected {pattern!r}"
        else:
            raise AssertionError(f"{fun} did not raise {error}")
