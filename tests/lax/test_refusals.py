"""Bad calls of every function of ``lax`` and ``lax.linalg``: what is raised, when, and what it says."""

import re

import pytest

import catena
import lax_refusals
from catena import lax

NAMES = lax_refusals.names(catena)
CALLS = lax_refusals.calls()
REFUSED = [(function, raised, call) for function, raised, call in CALLS if raised != "-"]
# Errors that name a function by a part of it, or speak of the argument that is no array or no axis instead.
ANSWERED = r"not a valid JAX type|unbound axis name|object is not callable|positional argument"
SPOKEN = {
    "betainc": "regularized_incomplete_beta", "select_n": "select", "reciprocal": "integer_pow", "empty": "full",
    "broadcasted_iota": "iota", "full_like": "full", "index_take": "gather", "broadcast_shapes": "broadcasting",
    "batch_matmul": "dot_general", "sort_key_val": "sort", "rev": "dimensions", "fft": "fft", "map": "scan",
    "approx_max_k": "approx_top_k", "approx_min_k": "approx_top_k", "fori_loop": "scan|while_loop",
    "while_loop": "cond_fun", "cond": "pred", "switch": "branch|index type", "scan": "unroll",
    "custom_linear_solve": "matvec|solve", "hessenberg": "Hessenberg", "cholesky_update": "Cholesky",
    "lu_pivots_to_permutation": "permutation", "symmetric_product": "symmetric_update", "eigh": "eigenvalues",
    "svd": "subset_by_index", "qdwh": "M x N", "pshuffle": "permutation", "pswapaxes": "all_to_all",
    "round": "RoundingMethod", "integer_pow": "integer", "top_k": "integer", "dot": "Precision",
    "dot_general": "Precision", "reduce": "init_values|reduction", "rng_bit_generator": "RandomAlgorithm",
    "dynamic_slice_in_dim": "slice", "dynamic_index_in_dim": "slice", "dynamic_update_slice": "slice",
    "dynamic_update_slice_in_dim": "slice", "dynamic_update_index_in_dim": "slice", "dynamic_slice": "slice",
    "slice_in_dim": "slice", "scatter": "gather mode", "reduce_window": "padding", "sort": "Sort", "padtype_to_pads": "padding",
}  # fmt: skip


def raised_by(function):
    """The exception that a call raises; None if none."""
    try:
        function()
    except Exception as error:  # whatever it is, it is what is asked for
        return error
    return None


@pytest.mark.parametrize("function", sorted({function for function, *_ in REFUSED}))
def test_bad_calls_are_refused_before_anything_is_computed(function):
    for _, raised, call in [row for row in REFUSED if row[0] == function]:
        refused(function, raised, call)


def refused(function, raised, call):
    code = compile(call, call, "eval")
    eager, traced = (raised_by(fun) for fun in (lambda: eval(code, NAMES), lambda: trace(lambda: eval(code, NAMES))))
    assert type(eager).__name__ == type(traced).__name__ == raised, call
    text = "\n".join([str(eager), *getattr(eager, "__notes__", ())]).replace("scatter-", "scatter_")
    name = function.replace("bitwise_", "")
    spoken = "|".join(
        [
            name,
            ANSWERED,
            r"[Cc]onvolution|padding|conv_general|dot_general" if "conv" in name else name,
            SPOKEN.get(function, name),
        ]
    )
    assert re.search(spoken, text, re.IGNORECASE), f"{call}: {text!r} does not name {function}"


def trace(function):
    """Nothing is computed in here."""
    return catena.make_jaxpr(function)()


ACCEPTED = [call for _, raised, call in CALLS if raised == "-"]


@pytest.mark.parametrize("call", ACCEPTED)
def test_odd_calls_have_a_meaning(call):
    catena.tree.map(lambda x: x, eval(call, NAMES))


def test_every_function_is_called_badly():
    public = {n for module in (lax, lax.linalg) for n in dir(module) if callable(getattr(module, n))}
    functions = {n for n in public if not n.startswith("_") and n.islower() and not n.endswith("_p")}
    missing = functions - {function for function, *_ in CALLS} - set(NO_BAD_CALLS)
    assert not missing, f"tests/data/lax_refusals.txt has no calls of {sorted(missing)}"


NO_BAD_CALLS = {
    "stop_gradient": "takes any tree",
    "dtype": "asks what a value is",
    "shape_as_value": "takes any shape",
    "composite": "its function says what it takes",
    "dce_sink": "takes any values",
    "scaled_dot": "its operands are checked by dot_general, its scales in tests/nn",
    "stage": "takes any value",
    "conv_general_permutations": "its argument is checked by conv_dimension_numbers",
}
