"""The algorithms that are written once, for NumPy and for LLVM, by name; see ``mathematics``."""

from typing import Any

from . import (
    bessel,
    dual,
    factorials,
    faddeeva,
    hypergeometric,
    incomplete_beta,
    incomplete_gamma,
    integrals,
    normal,
    quotients,
    series,
    zeta,
)

FUNCTIONS = {
    function.__name__: function
    for function in (
        *(incomplete_gamma.igamma, incomplete_gamma.igammac, incomplete_gamma.igamma_grad_a),
        *(incomplete_gamma.random_gamma_grad, incomplete_beta.betainc, incomplete_beta.betaincc),
        *(zeta.zeta, zeta.polygamma),
        *(faddeeva.faddeeva_real, faddeeva.faddeeva_imag, faddeeva.faddeeva_slope_real, faddeeva.faddeeva_slope_imag),
        *(integrals.erfcx, integrals.dawsn),
        *(integrals.exp1, integrals.expi, integrals.expi_slope, integrals.expn),
        *(integrals.sine_integral, integrals.cosine_integral),
        *(integrals.fresnel_s, integrals.fresnel_c, integrals.spence),
        *(integrals.erfcx_slope, integrals.dawsn_slope, integrals.fresnel_s_slope, integrals.fresnel_c_slope),
        *(factorials.gamma, factorials.beta, factorials.log_beta, factorials.poch),
        *(factorials.digamma_difference, factorials.binomial),
        *(normal.ndtr, normal.log_ndtr, normal.ndtri, normal.owens_t),
        *(hypergeometric.hyp1f1, hypergeometric.hyp2f1, zeta.riemann_zeta),
        *(hypergeometric.hyp1f1_by_x, hypergeometric.hyp2f1_by_x),
        *(incomplete_gamma.log_gamma_density, incomplete_gamma.log_igamma, incomplete_gamma.log_igammac),
        *(incomplete_gamma.log_igamma_grad_a, incomplete_gamma.log_igammac_grad_a),
        *(incomplete_beta.log_betainc, incomplete_beta.log_betaincc),
        *(bessel.bessel_i0, bessel.bessel_i1, bessel.bessel_difference, quotients.log_quotient),
    )
}

# By the operand of which it is the derivative, for those that no other function gives.
DERIVATIVES: dict[str, tuple[Any, int]] = {
    "zeta_by_x": (zeta.zeta, 0),
    "riemann_zeta_slope": (zeta.riemann_zeta, 0),
    "hyp1f1_by_a": (hypergeometric.hyp1f1, 0),
    "hyp1f1_by_b": (hypergeometric.hyp1f1, 1),
    "hyp2f1_by_a": (hypergeometric.hyp2f1_off_integers, 0),
    "hyp2f1_by_b": (hypergeometric.hyp2f1_off_integers, 1),
    "hyp2f1_by_c": (hypergeometric.hyp2f1_off_integers, 2),
}
APART = {  # see `mathematics.Written.apart`
    fun.__name__: fun
    for fun in (
        series.log_gamma, factorials.log_beta_by_gammas, factorials.gamma_of_float, factorials.gamma_of_double,
    )
}  # fmt: skip
ALGORITHMS = FUNCTIONS | {name: dual.derivative(*of) for name, of in DERIVATIVES.items()}


def arity(name: str) -> int:
    """How many operands the algorithm has, between its mathematics and its precision, which those apart have not."""
    if name in APART:
        return APART[name].__code__.co_argcount - 1
    algorithm: Any = DERIVATIVES[name][0] if name in DERIVATIVES else ALGORITHMS[name]
    return algorithm.__code__.co_argcount - 2
