"""What operations cost."""

# Elementwise operations that take longer than a trip through memory: never computed again.
COSTLY = frozenset(
    "div rem pow sqrt rsqrt cbrt exp exp2 expm1 log log1p log2 tanh logistic sin cos tan asin acos atan atan2 sinh "
    "cosh asinh acosh atanh erf erfc erf_inv lgamma digamma integer_pow "
    "bessel_i0e bessel_i1e igamma igammac igamma_grad_a random_gamma_grad betainc zeta polygamma".split()
)
