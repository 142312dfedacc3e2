"""The steps of `vectorize`, as quaxed takes them from JAX's private module."""

import pytest

import catena.numpy as jnp
from catena.compat.signatures import (
    _apply_excluded,
    _check_output_dims,
    _parse_gufunc_signature,
    _parse_input_dimensions,
)


def test_excluded_arguments_are_passed_as_they_are():
    fun, args, named = _apply_excluded(lambda x, n, *, k: (x, n, k), {1, "k"}, (1.5, "n"), {"k": "k"})
    assert (args, named) == ([1.5], {})
    assert fun(2.5) == (2.5, "n", "k")


def test_dimensions_of_arguments():
    inputs, outputs = _parse_gufunc_signature("(n,m),(m)->(n)")
    assert (inputs, outputs) == ([("n", "m"), ("m",)], [("n",)])
    assert _parse_input_dimensions((jnp.ones((5, 1, 2, 3)), jnp.ones((4, 3))), inputs) == ((5, 4), {"n": 2, "m": 3})
    with pytest.raises(TypeError, match="wrong number of positional arguments: expected 2, got 1 here"):
        _parse_input_dimensions((jnp.ones((2, 3)),), inputs, "here")
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'm': 4 vs 3"):
        _parse_input_dimensions((jnp.ones((2, 3)), jnp.ones(4)), inputs)


def test_results_are_checked():
    sizes = {"n": 3}
    assert _check_output_dims(jnp.sin, sizes, [("n",)])(jnp.zeros(3)).shape == (3,)
    with pytest.raises(ValueError, match="output shape \\(3, 1\\) does not match core dimensions \\('n',\\) here"):
        _check_output_dims(jnp.sin, sizes, [("n",)], "here")(jnp.zeros((3, 1)))
    assert _check_output_dims(jnp.sin, sizes, [("k",)])(jnp.zeros(7)).shape == (7,)
    assert sizes == {"n": 3}
