"""Checks of a call that is written once for both namespaces: ``lambda np, x: np.roll(x, 2)``."""

import numpy

import catena
import catena.numpy as jnp
from catena.core import dtypes
from checkers import check_vjp


def leaves(out) -> list:
    return [numpy.asarray(x) for x in catena.tree_util.tree_leaves(out)]


def check_values(call, arrays, rtol: float = 0.0, atol: float = 0.0, reference=None):
    """Eager and compiled calls give what NumPy gives, in 32 bits, and have the same types."""
    expected = leaves((reference or call)(numpy, *arrays))
    eager = call(jnp, *map(jnp.asarray, arrays))
    compiled = catena.jit(lambda *xs: call(jnp, *xs))(*arrays)
    assert len(leaves(eager)) == len(expected) == len(leaves(compiled))
    for e, c in zip(catena.tree_util.tree_leaves(eager), catena.tree_util.tree_leaves(compiled), strict=True):
        assert catena.typeof(e) == catena.typeof(c)
    for which, out in (("eager", eager), ("compiled", compiled)):
        for ours, theirs in zip(leaves(out), expected, strict=True):
            assert ours.shape == theirs.shape, f"{which}: shape {ours.shape}, expected {theirs.shape}"
            assert ours.dtype == dtypes.canonicalize_dtype(ours.dtype)
            assert ours.dtype.kind == theirs.dtype.kind or ours.dtype.kind in "fc", f"{which}: dtype {ours.dtype}"
            numpy.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=which)


def check_mapped(call, arrays, rtol: float = 1e-5, atol: float = 1e-5):
    """``vmap`` gives what a loop gives."""
    stacks = [numpy.stack([x, x[..., ::-1] + (x.dtype.kind != "b")]) for x in arrays]
    mapped = catena.vmap(lambda *xs: call(jnp, *xs))(*stacks)
    rows = [leaves(call(jnp, *map(jnp.asarray, row))) for row in zip(*stacks, strict=True)]
    for ours, *theirs in zip(leaves(mapped), *rows, strict=True):
        numpy.testing.assert_allclose(ours, numpy.stack(theirs), rtol=rtol, atol=atol, err_msg="vmap")


def check_gradient(call, arrays, rtol: float = 1e-7):
    """Reverse and forward differentiation agree, in double precision."""
    with catena.enable_x64(True):
        wide = [numpy.asarray(x, numpy.complex128 if x.dtype.kind == "c" else numpy.float64) for x in arrays]
        check_vjp(lambda *xs: call(jnp, *xs), wide, rtol=rtol, atol=rtol)
