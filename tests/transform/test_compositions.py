"""Every function of `compositions.py` through every transformation: eager = compiled, in values and types."""

import numpy as np
import pytest

import catena as jax
from compositions import POINT, functions, transformations
from shares import alternate

FUNCTIONS, TRANSFORMATIONS = functions(jax), transformations(jax)
FLAT_IN_ROUNDING = 2e-4  # third derivatives amplify the rounding of float32


@pytest.mark.share(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_eager_is_compiled(name):
    """Every sixth transformation, each with a sixth of the functions; `differential_transformations.py`, among the
    benchmarks, tries all of both beside JAX.
    """
    function, x = FUNCTIONS[name], jax.numpy.asarray(POINT)
    for transformation, apply in alternate(6, TRANSFORMATIONS.items(), [*FUNCTIONS].index(name)):
        eager = apply(function, x)
        compiled = jax.jit(lambda x, apply=apply: apply(function, x))(x)
        assert jax.tree.structure(eager) == jax.tree.structure(compiled), transformation
        for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(compiled), strict=True):
            a = jax.numpy.asarray(a)  # a constant function returns a Python number when eager
            assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type), transformation
            scale = max(1.0, float(np.max(np.abs(np.nan_to_num(np.asarray(a))), initial=0)))
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=FLAT_IN_ROUNDING * scale, err_msg=transformation)
