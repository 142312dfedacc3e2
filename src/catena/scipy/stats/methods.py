"""What the methods of distributions share: their operands, the words of their docstrings, and probabilities near 1.

A method is written as its formula. The decorator brings the arguments to arrays of one float dtype, and completes
the docstring: what a parameter means is said once for each distribution.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.lax.whole import whole
from catena.numpy.boundary import SCALARS, promote_inexact, strong
from catena.numpy.documentation import family
from catena.numpy.elementary import log_of_one_minus_exp
from catena.transform.custom_jvp import custom_jvp

Fun = TypeVar("Fun", bound=Callable[..., Any])

_WORDS = {
    "x": "where to evaluate.",
    "k": "the counts at which to evaluate; those that are no integers are taken as such where the formula has them.",
    "q": "probabilities; beyond [0, 1] the result is NaN.",
    "loc": "by how much the distribution is shifted.",
    "scale": "by how much it is stretched, positive.",
    "returns": "An array of the shape to which the arguments broadcast, of the float dtype to which they promote.",
    "raises": "TypeError: an argument is neither an array nor a scalar, or complex where numbers are compared, or the "
    "shapes do not broadcast.",
}

# Whose formulas compare no numbers, so that they have values for complex ones.
OF_COMPLEX = frozenset({"cauchy", "logistic", "norm.logpdf", "norm.pdf", "expon.ppf", "pareto.ppf", "uniform.ppf"})

# Whose formulas are ``betainc``, which raises a ValueError for complex numbers, as the functions of `special` do.
BY_BETAINC = frozenset({"beta.cdf", "beta.logcdf", "beta.sf", "beta.logsf"})


def distribution(name: str, **words: str) -> Callable[[Fun], Fun]:
    """A decorator for the methods of a distribution.

    Arguments:
      name: the distribution, as error messages call it.
      words: what its parameters mean, by name.
    """
    explained = family(**_WORDS | words)

    def method(fun: Fun) -> Fun:
        explained(fun)
        full, parameters = f"{name}.{fun.__name__}", inspect.signature(fun)
        defaults = fun.__defaults__ or ()
        required = len(parameters.parameters) - len(defaults)
        takes_complex = not OF_COMPLEX.isdisjoint((name, full))

        @functools.wraps(fun)
        def promoted(*args, **kwargs):
            if kwargs or len(args) < required:
                args = parameters.bind(*args, **kwargs)  # a TypeError where they do not fit
                args.apply_defaults()
                args = args.args
            operands = promote_inexact(full, *args, *defaults[len(args) - required :])
            if dtypes.is_complex(operands[0].dtype) and not takes_complex:
                _refuse_complex(full, parameters, args)
            if operands[0].weak_type and not all(getattr(x, "weak_type", type(x) in SCALARS) for x in args):
                operands = [strong(x) for x in operands]  # integers beside Python floats: an array is not weak
            return fun(*operands)

        return whole(promoted, "distribution")

    return method


def _refuse_complex(full: str, parameters: inspect.Signature, args: tuple) -> NoReturn:
    is_complex = [name for name, x in zip(parameters.parameters, args) if jnp.iscomplexobj(x)]
    error = ValueError if full in BY_BETAINC else TypeError
    raise error(f"{full} takes real numbers, got a complex {is_complex[0]}")


# ---- parts of formulas


def log_probability(p, complement):
    """The logarithm of a probability that is known together with its complement: the less of both has all digits."""
    small, none = p <= 0.5, p == 0
    logarithm = jnp.where(small, jnp.log(jnp.where(small & ~none, p, 1)), jnp.log1p(-jnp.where(small, 0, complement)))
    return unless(none, logarithm, -jnp.inf)


# Probabilities whose slopes keep their digits in the tails, where the primitives' are of a result rounded to 1.


@custom_jvp
def one_minus_exp(x):
    """``1 - exp(-x)``."""
    return -jnp.expm1(-x)


@one_minus_exp.defjvp
def _one_minus_exp_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return one_minus_exp(x), t * jnp.exp(-x)


@custom_jvp
def logistic_share(x):
    """``1 / (1 + exp(-x))``."""
    return lax.logistic(x)


@logistic_share.defjvp
def _logistic_share_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    less = jnp.exp(-jnp.abs(x))
    total = 1 + less
    return logistic_share(x), t * (less / (total * total))


def log1mexp(x):
    """``log(1 - exp(-x))`` for ``x >= 0``."""
    none = x == 0
    return unless(none, _log1mexp_of_positive(jnp.where(none, 1, x)), -jnp.inf)


_log1mexp_of_positive = custom_jvp(log_of_one_minus_exp)


@_log1mexp_of_positive.defjvp
def _log1mexp_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _log1mexp_of_positive(x), t * (jnp.exp(-x) / one_minus_exp(x))


def log1p_square(x):
    """``log(1 + x**2)``, also where the square overflows, by one logarithm and without a division."""
    size = jnp.abs(x)
    large = size > 2.0 ** (jnp.finfo(size.dtype).maxexp // 2 - 2)  # of which the square is 1 + the square
    log = jnp.log1p(jnp.where(large, size - 1, jnp.square(x)))
    return jnp.where(large, 2 * log, log)


def unless(outside, value, there):
    """``value``, but ``there`` where ``outside`` is true: comparisons of NaN are not, so that NaN passes through."""
    return jnp.where(outside, there, value)


def proper(share, *positive):
    """``share``, NaN where a parameter is not positive."""
    for parameter in positive:
        share = jnp.where(parameter > 0, share, jnp.nan)
    return share


def quantile(q, value):
    """``value``, NaN where ``q`` is no probability."""
    return jnp.where((q >= 0) & (q <= 1), value, jnp.nan)
