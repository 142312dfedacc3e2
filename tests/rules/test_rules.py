"""Every primitive, every rule, every dtype: generated from the table in ``rule_cases``."""

import functools
import importlib
from pathlib import Path

import numpy as np
import pytest

import catena
import structured_cases  # noqa: F401  more cases
from catena.core import dtypes
from catena.core.primitive import registry
from checkers import assert_close, check_grads, check_jit, check_reference, check_vmap, eps_of, flat_outputs
from everything import load_everything
from rule_cases import CASES, arguments
from shares import alternate, in_share

load_everything()

DIFFERENTIABLE = [c for c in CASES.values() if c.order]
EVERY_DTYPE = [pytest.param(c, d, id=f"{c.name}-{d}") for c in CASES.values() for d in c.dtypes]
COMPILED = [
    pytest.param(c, d, id=f"{c.name}-{d}")
    for k, c in enumerate(CASES.values())
    for d in alternate(min(3, len(c.dtypes)), c.dtypes, k)
]
EVERY_CASE = [pytest.param(c, id=c.name) for c in CASES.values()]


@pytest.fixture(autouse=True)
def x64():
    with catena.enable_x64(True):
        yield


@pytest.mark.share(5)
@pytest.mark.parametrize("case, dtype", EVERY_DTYPE)
def test_value(case, dtype):
    args = arguments(case, dtype)
    if case.reference is None:
        for out in flat_outputs(case.fun(*args)):
            assert isinstance(out, np.ndarray)
        return
    check_reference(case.fun, case.reference, args, ulps=case.ulps and max(case.ulps, 1.0))


@pytest.mark.share(5)
@pytest.mark.parametrize("case, dtype", COMPILED)
def test_compiled(case, dtype):
    check_jit(case.fun, arguments(case, dtype), ulps=case.ulps)


@pytest.mark.share(3)
@pytest.mark.parametrize("case", EVERY_CASE)
def test_vectorised(case):
    args = arguments(case, case.dtypes[0])
    if args:
        check_vmap(case.fun, args, ulps=case.ulps, atol=case.ulps * case.magnitude * eps_of(case.dtypes[0]))


@pytest.mark.share(3)
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in DIFFERENTIABLE])
def test_derivatives(case):
    for dtype in ("float64", "complex128"):
        if dtype in case.dtypes:
            check_grads(case.fun, arguments(case, dtype), order=case.order, modes=case.modes)


@pytest.mark.share(5)
@pytest.mark.parametrize("case", EVERY_CASE)
def test_gradient_of_vectorised_compiled(case):
    """The composition of all three transformations agrees with a loop over gradients."""
    if "float64" not in case.dtypes or not case.order:
        pytest.skip("not differentiable")
    args = arguments(case, "float64")

    def total(*xs):
        parts = [catena.lax.reduce_sum(y, tuple(range(y.ndim))) for y in catena.tree_util.tree_leaves(case.fun(*xs))]
        real = [catena.lax.real(p) if p.dtype.kind == "c" else p for p in parts]
        return functools.reduce(catena.lax.add, real)

    batched = [np.stack([a, a]) for a in args]
    gradients = catena.vmap(catena.grad(catena.jit(total)))(*batched)
    expected = catena.grad(total)(*args)
    np.testing.assert_allclose(gradients, np.stack([expected, expected]), rtol=1e-10, atol=1e-12)


def is_elementwise(case) -> bool:
    return "batch_rule" in getattr(registry[case.covers].batch, "__qualname__", "")


ELEMENTWISE = [c for c in CASES.values() if is_elementwise(c) and c.name not in ("clamp", "select_n", "select_scalar")]


@pytest.mark.share(2)
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in ELEMENTWISE])
def test_empty_and_scalar(case):
    given = arguments(case, case.dtypes[0])
    for take in (lambda a: a[:0], lambda a: a[0, 0]):
        args = [take(a) if a.ndim else a for a in given]
        out = flat_outputs(case.fun(*args))[0]
        compiled = flat_outputs(catena.jit(case.fun)(*args))[0]
        assert out.shape == np.broadcast_shapes(*[np.shape(a) for a in args])
        assert_close(compiled, out, ulps=case.ulps)


def cases_of_primitives() -> dict:
    out = {}
    for c in CASES.values():
        out.setdefault(c.covers, []).append(c)
    return out


def with_other_dtypes(cases):
    """(case, arguments) for each dtype that a primitive admits beyond those that its cases list."""
    listed = {d for c in cases for d in c.dtypes}
    for dtype in (*dtypes.FLOATS, *dtypes.COMPLEX, *dtypes.SIGNED, *dtypes.UNSIGNED, dtypes.BOOL):
        for c in cases if dtype.name not in listed and in_share(4, f"{cases[0].covers} of {dtype}") else ():
            try:
                args = arguments(c, dtype.name)
                catena.eval_shape(c.fun, *args)
            except (TypeError, ValueError, OverflowError, NotImplementedError):  # not admitted, or no such arguments
                continue
            if any(a.dtype == dtype for a in args):
                yield c, args
                break


# What has no zero sums to NaN or not by how it is padded; integers of 64 bits lose digits on their way to float32; the
# least eigenvalue of a matrix of integers of 32 bits is a thousandth of the greatest, which LAPACK's error goes by.
OTHERWISE = {("ragged_dot", "float8_e8m0fnu"), ("cholesky", "uint64"), ("eigh", "uint32")}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", sorted(cases_of_primitives()))
def test_every_other_admitted_dtype(name):
    """One program for all of them, against evaluation."""
    found = [
        (c, args)
        for c, args in with_other_dtypes(cases_of_primitives()[name])
        if not {(c.name, a.dtype.name) for a in args} & OTHERWISE
    ]
    compiled = catena.jit(lambda groups: [c.fun(*args) for (c, _), args in zip(found, groups, strict=True)])
    for (c, args), outs in zip(found, compiled([args for _, args in found]), strict=True):
        for got, expected in zip(flat_outputs(outs), flat_outputs(c.fun(*args)), strict=True):
            assert got.dtype == expected.dtype
            assert_close(got, expected, ulps=c.ulps, what=f"{c.name} of {args[0].dtype}")


@pytest.mark.parametrize("case", EVERY_CASE)
def test_batches_of_nothing(case):
    """Every primitive on operands without elements: a batch of no examples, eager and compiled."""
    args = arguments(case, case.dtypes[0])
    if not args:
        return
    nothing = [np.zeros((0, *np.shape(a)), np.asarray(a).dtype) for a in args]
    expected = [(0, *y.shape) for y in catena.tree_util.tree_leaves(catena.eval_shape(case.fun, *args))]
    for fun in (catena.vmap(case.fun), catena.jit(catena.vmap(case.fun))):
        assert [y.shape for y in flat_outputs(fun(*nothing))] == expected


# Primitives that no case fits, by the file of tests that checks their rules.
ELSEWHERE = {
    "test_ffi.py": "ffi_call",
    "export/test_export.py": "call_exported",
    "parallel/test_types.py": "reshard sharding_constraint",
    "lax/test_collectives.py": "all_gather all_to_all axis_index pmax pmin ppermute psum reduce_scatter",
    "parallel/test_executors.py": "communicate",
    "parallel/test_terms.py": "pcast",
    "parallel/test_shard_map.py": "all_gather_invariant pbroadcast psum_invariant pvary ragged_all_to_all shard_map",
    "transform/test_custom_derivatives.py": "custom_jvp_call custom_vjp_call custom_vjp_linear custom_vjp_forward linear_call",
    "lax/test_callbacks.py": "debug_callback io_callback pure_callback",
    "transform/test_checkpoint.py": "name",
    "lax/test_composites.py": "composite dce_sink",
    "transform/test_custom_vmap.py": "custom_vmap_call",
    "experimental/test_buffer_callback.py": "buffer_callback",
    "experimental/test_checkify.py": "check",
    "experimental/test_custom_partitioning.py": "custom_partitioning",
    "tools/test_stepping.py": "visit",
    "experimental/test_notes.py": "compute_on control_dep fused_call layout_constraint shard_alike xla_metadata_call "
    "xla_metadata_value",
    "experimental/sparse/test_bcoo.py": "bcoo_dot_general bcoo_dot_general_sampled bcoo_extract bcoo_extract_repeated "
    "bcoo_fromdense bcoo_sort_indices bcoo_spdot_general bcoo_sum_duplicates bcoo_todense bcoo_transpose",
    "experimental/sparse/test_formats.py": "bcsr_dot_general bcsr_extract bcsr_fromdense bcsr_todense coo_fromdense "
    "coo_matmat coo_matvec coo_todense csr_fromdense csr_matmat csr_matvec csr_todense spsolve sum_of_runs todense",
    "lax/test_refs.py": "addupdate free_ref freeze get new_ref swap zeros_ref",
    "lax/test_tokens.py": "after_all create_token",
    "random/test_random.py": "random_bits random_bits_at random_clone random_fold_in random_gamma random_seed random_split "
    "random_split_at random_unwrap random_wrap rng_bit_generator rng_uniform",
    "scipy/test_special_slopes.py": "betaincc error_density normal_density trigamma",
    "scipy/test_special.py": "bessel_difference bessel_i0 bessel_i1 beta binomial cosine_integral dawsn dawsn_slope digamma_difference erfcx erfcx_slope expi_slope "
    "exp1 expi expn faddeeva_imag faddeeva_real faddeeva_slope_imag faddeeva_slope_real fresnel_c fresnel_c_slope fresnel_s fresnel_s_slope gamma hyp1f1 hyp1f1_by_a hyp1f1_by_b hyp1f1_by_x hyp2f1 hyp2f1_by_a hyp2f1_by_b hyp2f1_by_c hyp2f1_by_x "
    "entr logit log_beta log_betainc log_betaincc log_gamma_density log_igamma log_igamma_grad_a log_igammac log_igammac_grad_a log_ndtr log_quotient ndtr ndtri owens_t poch riemann_zeta riemann_zeta_slope sine_integral spence zeta_by_x",
    "compiler/test_stack_runtime.py": "stack_add stack_empty stack_length stack_read stack_scan stack_write",
    "lax/test_while_reverse.py": "while_save",
}


def test_every_primitive_has_a_case():
    """Or a file of tests of its own; what is in both, or nowhere, is named."""
    experimental = "buffer_callback checkify control_deps custom_partitioning fused layout scheduling_groups shard_alike sparse.linalg"
    for late in ("custom_batching", "scipy.special", *(f"experimental.{name}" for name in experimental.split())):
        importlib.import_module(f"catena.{late}")
    cases = {c.covers for c in CASES.values()}
    elsewhere = {name for names in ELSEWHERE.values() for name in names.split()}
    ours = {name for name, p in registry.items() if getattr(p.abstract, "__module__", "").startswith("catena.")}
    missing = sorted(ours - cases - elsewhere)
    assert not missing, f"give them a case, or a file of tests: {missing}"
    unknown = sorted((cases | elsewhere) - set(registry))
    assert not unknown, f"there are no such primitives: {unknown}"
    assert not cases & elsewhere
    tests = Path(__file__).parent.parent
    assert all((tests / file).exists() for file in ELSEWHERE)


SLOW = (
    "erf erfc bessel_i0e zeta clz mulhi shift_left shift_right_arithmetic div_int rem_int round sign "
    "clamp nextafter add exp max"
)


@pytest.mark.parametrize("name", SLOW.split())
def test_large_arrays_agree_with_small_ones(name):
    """Where NumPy is slow, compiled kernels evaluate large arrays, in pieces; the values must not tell."""
    case = CASES[name]
    for dtype in ("float32", "float16", "bfloat16", "int32", "uint8"):
        if dtype not in case.dtypes or (name, dtype) == ("nextafter", "float16"):
            continue
        small = arguments(case, dtype)
        count = 16384 // small[-1].size + 2  # one piece and some more
        large = [np.concatenate([a] * count) if a.ndim else a for a in small]
        expected = np.concatenate([flat_outputs(case.fun(*small))[0]] * count)
        actual = flat_outputs(case.fun(*large))[0]
        assert actual.dtype == expected.dtype
        assert_close(actual, expected, ulps=case.ulps and max(case.ulps, 1.0), what=dtype)
