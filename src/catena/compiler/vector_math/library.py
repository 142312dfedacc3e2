"""The functions of the vector mathematics library, as LLVM IR text.

`define("exp", "float", 8)` is the definition of `<8 x float> @catena.exp.f32x8(<8 x float> %x)`; the compiler
adds those of `dependencies(...)` and the lines of `declarations(...)` once each. Width 1 is the scalar
function. All widths compute the same bits.
"""

import functools
from collections.abc import Callable
from functools import cache

from . import (
    algorithms,
    bessel,
    error_function,
    exponential,
    gamma,
    inverse,
    inverses,
    logarithm,
    of_floats,
    payne_hanek,
    powers,
    remainder,
    small,
    stages,
    text,
    trigonometric,
)
from .mathematics import Written, written
from .text import Type, Value, Writer, symbol

__all__ = ["ELEMENTARY", "NAMES", "arity", "declarations", "define", "dependencies", "is_inlined", "symbol"]


def of_each_type(of_floats: Callable[..., Value], of_doubles: Callable[..., Value]) -> Callable[..., Value]:
    """A function of which floats have one of their own."""
    return lambda x: (of_floats if x.elem == "float" else of_doubles)(x)


ELEMENTARY: dict[str, Callable[..., Value]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "logistic": exponential.logistic,
    "tanh": exponential.tanh,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "log": functools.partial(logarithm.log, of=logarithm.normal_apart),
    "log1p": functools.partial(logarithm.log1p, of=logarithm.normal_apart),
    "log2": functools.partial(logarithm.log2, of=logarithm.normal_apart),
    "log10": functools.partial(logarithm.log10, of=logarithm.normal_apart),
    "entr": functools.partial(logarithm.entr, of=logarithm.normal_apart),
    "logit": logarithm.logit,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "erf": error_function.erf,
    "erfc": error_function.erfc,
    "erf_inv": error_function.erf_inv,
    "error_density": error_function.error_density,
    "normal_density": error_function.normal_density,
    "asin": inverse.asin,
    "acos": inverse.acos,
    "atan": inverse.atan,
    "atan2": inverse.atan2,
    "asinh": inverse.asinh,
    "acosh": inverse.acosh,
    "atanh": inverse.atanh,
    "cbrt": powers.cbrt,
    "rsqrt": inverses.rsqrt,
    "hypot": powers.hypot,
    "modulus": powers.modulus,
    "pow": powers.pow,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "trigamma": gamma.trigamma,
}
ALGORITHMS = {name: written(fun) for name, fun in algorithms.ALGORITHMS.items()}
ALGORITHMS["ndtr"] = of_each_type(error_function.normal_distribution, ALGORITHMS["ndtr"])
ALGORITHMS["dawsn"] = of_each_type(of_floats.dawsn, ALGORITHMS["dawsn"])
ALGORITHMS["bessel_difference"] = of_each_type(of_floats.bessel_difference, ALGORITHMS["bessel_difference"])
BESSEL = {
    "bessel_i0e": of_each_type(of_floats.i0e, written(bessel.bessel_i0e)),
    "bessel_i1e": of_each_type(of_floats.i1e, written(bessel.bessel_i1e)),
}
EXACT = {"rem": remainder.rem}
APART = {name: functools.partial(fun, Written) for name, fun in algorithms.APART.items()}  # not for others to call
DIVIDED = {  # what processors have an instruction for, where the divisor is known; of what is rounded to fewer bits
    "quotient": inverses.quotient,
    "one_of_quotients": inverses.one_of_quotients,
    "quotient_of_integers": inverses.quotient_of_integers,
    "quotient_of_halves": inverses.quotient_of_halves,
    "quotient_of_bfloat16": inverses.quotient_of_bfloat16,
    "quotient_of_small_bfloat16": inverses.quotient_of_small_bfloat16,
    "quotient_by_inverse": inverses.quotient_by_inverse,
    "inverse": inverses.inverse,
}
OF_HALVES = {"exp": "exp_of_halves", "logistic": "logistic_of_halves"}  # what there is of functions rounded to float16
ROUNDED = {name: getattr(exponential, name) for name in OF_HALVES.values()}
TERNARY = frozenset({"quotient_by_inverse"})
BINARY = frozenset({"atan2", "pow", "hypot", "modulus", *EXACT, *DIVIDED}) - TERNARY - {"inverse"}
NAMES = (*ELEMENTARY, *BESSEL, *ALGORITHMS, *EXACT)
FUNCTIONS = ELEMENTARY | BESSEL | ALGORITHMS | EXACT | DIVIDED | ROUNDED
# Functions that compute much of one operand, or of some, alone; not those whose texts are long and hang on all.
STAGED = (
    frozenset(
        "pow igamma igammac igamma_grad_a random_gamma_grad betainc betaincc zeta zeta_by_x polygamma expn".split()
    )
    | frozenset("log_gamma_density log_igamma log_igammac log_igamma_grad_a log_igammac_grad_a".split())
    | frozenset("log_betainc log_betaincc owens_t log_beta".split())
)
WORTH_A_STAGE = 30  # lines
PARAMETERS = ("x", "y", "z", "w")


def arity(name: str) -> int:
    if name in ALGORITHMS or name in APART:
        return algorithms.arity(name)
    return 3 if name in TERNARY else 2 if name in BINARY else 1


def define(name: str, elem: str, width: int) -> str:
    """The definition of a function: internal, and inlined unless it is long, has loops, or is seldom called.

    Arguments: `name`, one of NAMES or a dependency; `elem`, `float` or `double`; `width`, 1 (scalar) or a
    number of lanes.
    Returns: LLVM IR text.
    Raises: ValueError for a name that the library does not have.

    >>> print(define("hypot", "float", 4))
    define internal <4 x float> @catena.hypot.f32x4(<4 x float> %x, <4 x float> %y) alwaysinline nounwind {
    entry:
      %v1 = fpext <4 x float> %x to <4 x double>
      %v2 = fpext <4 x float> %y to <4 x double>
      %v3 = fmul <4 x double> %v2, %v2
      %v4 = call <4 x double> @llvm.fma.v4f64(<4 x double> %v1, <4 x double> %v1, <4 x double> %v3)
      %v5 = call <4 x double> @llvm.sqrt.v4f64(<4 x double> %v4)
      %v6 = fptrunc <4 x double> %v5 to <4 x float>
      %v7 = call <4 x float> @llvm.fabs.v4f32(<4 x float> %x)
      %v8 = fcmp oeq <4 x float> %v7, splat (float 0x7FF0000000000000)
      %v9 = call <4 x float> @llvm.fabs.v4f32(<4 x float> %y)
      %v10 = fcmp oeq <4 x float> %v9, splat (float 0x7FF0000000000000)
      %v11 = or <4 x i1> %v8, %v10
      %v12 = select <4 x i1> %v11, <4 x float> splat (float 0x7FF0000000000000), <4 x float> %v6
      ret <4 x float> %v12
    }
    <BLANKLINE>
    """
    return _write(name, elem, width)[0]


def declarations(name: str, elem: str, width: int) -> frozenset[str]:
    """The `declare` lines that the definition needs; equal lines are the same declaration."""
    return _write(name, elem, width)[1]


def dependencies(name: str, elem: str, width: int) -> tuple[tuple[str, str, int], ...]:
    """Every other function that the definition reaches, directly or not, as (name, elem, width)."""
    direct = _write(name, elem, width)[2]
    return tuple(dict.fromkeys([*direct, *(d for one in direct for d in dependencies(*one))]))


@cache
def in_stages(name: str, known: str, elem: str) -> tuple[str, ...] | None:
    """The types of what the first stage of a function gives to the second, the first one being of the parameters
    `known` (see `stages`); None where too little is known by these to be computed apart.

    >>> sorted(set(in_stages("log_gamma_density", "x", "float")))
    ['double', 'i1']
    >>> in_stages("atan2", "x", "float")
    """
    if name not in STAGED and (name not in DIVIDED or known != "y"):
        return None
    written_ = _stages(name, known, elem, 2)
    is_worth = name in DIVIDED or len(written_.first.lines) >= WORTH_A_STAGE
    return tuple(str(x.type) for x in written_.given) if is_worth else None


@cache
def is_inlined(name: str, elem: str) -> bool:
    """Whether a function is written where it is used.

    >>> is_inlined("exp", "float"), is_inlined("betainc", "float")
    (True, False)
    """
    return " alwaysinline " in define(name, elem, 1)


def _stages(name: str, known: str, elem: str, width: int) -> stages.Stages:
    return stages.Stages(FUNCTIONS[name], PARAMETERS[: arity(name)], known, elem, width)


@cache
def _write(name: str, elem: str, width: int) -> tuple[str, frozenset[str], tuple]:
    if name == payne_hanek.NAME:
        return (
            payne_hanek.definition(elem, width),
            payne_hanek.declarations(elem, width),
            payne_hanek.dependencies(elem, width),
        )
    if name in small.NAMES:
        return small.definition(name, elem, width)
    if (stage := stages.of(name)) is not None:
        return _stages(stage[0], stage[2], elem, width).define(stage[1], name)
    fun = FUNCTIONS.get(name) or APART.get(name)
    if fun is None:
        raise ValueError(f"vector_math has no function {name!r}; it has {', '.join(NAMES)}")
    writer, type_ = Writer(), Type(elem, width)
    parameters = PARAMETERS[: arity(name)]
    result, typed = fun(*(Value(writer, type_, f"%{p}") for p in parameters)), [f"{type_} %{p}" for p in parameters]
    often = name not in APART
    return text.define(symbol(name, elem, width), writer, typed, str(type_), result.name, often)
