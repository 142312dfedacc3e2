"""The functions of mathematics beside JAX, jitted, in turns: `make bench-functions`.

Every function of one array of `jnp`, `nn` and of `scipy.special`, those of two arrays, and the density, distribution
function and quantiles of each distribution with parameters that are known, and the gradients of all that vary, at
random arguments of their domains, for each size and dtype (of integers and truths, no gradients). Prints JAX's time
over ours, worst first. On a machine that others use: ``BENCH_CLOCK=processor``, and ``taskset`` to one core.
"""

import functools
import importlib
import math
import os
import sys

import numpy as np
from side_by_side import OURS, THEIRS, Pair, alternate, best, options_of, serve, show

SIZES = (10_000, 100_000, 1_000_000)
DTYPES = ("float32", "float64")
LONGEST = 0.5  # seconds of a call from which larger sizes are left out

# Domains: where arguments lie.
ALL, MODERATE, UNIT, SHARE, POSITIVE, ABOVE = (-20, 20), (-4, 4), (-1, 1), (0, 1), (0, 20), (1, 20)

NUMPY = {
    ALL: "abs sign floor ceil rint trunc square cbrt sin cos tan arctan sinc sinh cosh tanh arcsinh exp exp2 expm1 "
    "deg2rad rad2deg nan_to_num isfinite signbit spacing i0",
    UNIT: "arcsin arccos arctanh",
    POSITIVE: "sqrt log log2 log10 log1p reciprocal",
    ABOVE: "arccosh",
}
NEURAL = {
    MODERATE: "relu relu6 elu celu selu gelu silu mish hard_sigmoid hard_silu hard_tanh log_sigmoid softplus "
    "soft_sign squareplus sparse_plus sparse_sigmoid leaky_relu sigmoid",
}
SPECIAL = {
    ALL: "expit erf erfc ndtr log_ndtr i0e i1e i0 i1 dawsn",
    MODERATE: "erf erfc ndtr log_ndtr gamma gammaln digamma erfcx i0e",
    SHARE: "logit ndtri entr",
    UNIT: "erfinv",
    POSITIVE: "gammaln digamma gamma exp1 expi spence fresnel sici erfcx factorial",
}
# Of two and more operands, the first of which varies, or all (`None`).
OPERANDS = {
    "xlogy": (None, None), "xlog1py": (None, None), "rel_entr": (None, None), "kl_div": (None, None),
    "betaln": (None, 2.5), "beta": (None, 2.5), "gammainc": (2.5, None), "gammaincc": (2.5, None),
    "betainc": (3.0, 3.0, None), "polygamma": (1, None), "zeta": (2.5, None), "boxcox": (None, 0.5),
    "boxcox1p": (None, 0.5), "poch": (None, 1.5), "logaddexp": (None, None), "hypot": (None, None),
    "power": (None, 1.7), "arctan2": (None, None), "logaddexp2": (None, None), "add": (None, None),
    "subtract": (None, None), "multiply": (None, None), "divide": (None, None), "floor_divide": (None, None),
    "remainder": (None, None), "fmod": (None, None), "maximum": (None, None), "minimum": (None, None),
    "float_power": (None, None), "copysign": (None, None), "nextafter": (None, None), "heaviside": (None, None),
    "less": (None, None), "equal": (None, None), "logical_and": (None, None), "ldexp": (None, 3),
}  # fmt: skip
DISTRIBUTIONS = {
    "bernoulli": ((0, 1.99), (0.3,)), "beta": (SHARE, (2.0, 3.0)), "betabinom": ((0, 10.99), (10, 2.0, 3.0)),
    "binom": ((0, 10.99), (10, 0.3)), "cauchy": (ALL, ()), "chi2": (POSITIVE, (3.0,)), "expon": (POSITIVE, ()),
    "gamma": (POSITIVE, (2.5,)), "gennorm": (MODERATE, (1.5,)), "geom": ((1, 10.99), (0.3,)),
    "gumbel_l": (MODERATE, ()), "gumbel_r": (MODERATE, ()), "laplace": (ALL, ()), "logistic": (ALL, ()),
    "nbinom": ((0, 20.99), (5, 0.3)), "norm": (MODERATE, ()), "pareto": (ABOVE, (2.5,)),
    "poisson": ((0, 20.99), (5.0,)), "t": (ALL, (3.5,)), "truncnorm": (UNIT, (-2.0, 2.0)), "uniform": (SHARE, ()),
    "vonmises": ((-3, 3), (2.0,)), "wrapcauchy": ((0, 6), (0.5,)),
}  # fmt: skip
GRADIENT = "gradient"
METHODS = ("logpdf", "pdf", "logpmf", "pmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
WITHOUT_GRADIENTS = (
    "abs sign floor ceil rint trunc nan_to_num isfinite signbit spacing deg2rad rad2deg floor_divide remainder fmod "
    "copysign nextafter heaviside less equal logical_and ldexp"
).split()
POLYNOMIAL = (1, -2, 3, -1, 2, 1)
DISCRETE = ("bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson")


def functions(jax) -> dict:
    """The functions and domains of their operands by their names, as far as the library has them."""
    numpy, special, stats, nn = (
        importlib.import_module(f"{jax.__name__}.{m}") for m in ("numpy", "scipy.special", "scipy.stats", "nn")
    )
    out = {
        "gelu exact": (functools.partial(nn.gelu, approximate=False), [MODERATE]),
        "polyval": (lambda x: numpy.polyval(numpy.asarray(POLYNOMIAL, x.dtype), x), [MODERATE]),
        "power of arrays": (numpy.power, [POSITIVE, MODERATE]),
    }
    for module, table in ((numpy, NUMPY), (nn, NEURAL), (special, SPECIAL)):
        for domain, names in table.items():
            for name in names.split():
                if hasattr(module, name):
                    out[f"{name} {_span(domain)}"] = getattr(module, name), [domain]
    for name, operands in OPERANDS.items():
        function = getattr(special, name, None) or getattr(numpy, name)
        domain = SHARE if name == "betainc" else POSITIVE
        out[name] = _with(function, operands), [domain] * operands.count(None)
    for name, (domain, parameters) in DISTRIBUTIONS.items():
        for method in METHODS:
            function = getattr(getattr(stats, name, None), method, None)
            if function is not None:
                where = SHARE if method in ("ppf", "isf") else domain
                out[f"{name}.{method}"] = _with(function, (None, *parameters)), [where]
    gradients = {f"{name} {GRADIENT}": (_gradient(jax, *of), of[1]) for name, of in out.items() if _has_gradient(name)}
    return out | gradients


def _has_gradient(name) -> bool:
    first = name.split()[0]
    return first not in WITHOUT_GRADIENTS and first.split(".")[0] not in DISCRETE


def _gradient(jax, function, domains):
    def total(*xs):
        return sum(leaf.sum() for leaf in jax.tree.leaves(function(*xs)))

    return jax.grad(total, argnums=tuple(range(len(domains))))


def _span(domain) -> str:
    return f"[{domain[0]}, {domain[1]}]"


def _with(function, operands):
    def call(*xs):
        rest = iter(xs)
        return function(*(next(rest) if v is None else v for v in operands))

    return call


class Calls(dict):
    """Calls by ``name dtype size``, made when they are asked for; without 64 bits but for float64 and int64."""

    def __init__(self, jax):
        self.jax, self.functions = jax, functions(jax)

    def __missing__(self, key):
        name, dtype, size = key.rsplit(" ", 2)
        function, domains = self.functions[name]
        self.jax.config.update("jax_enable_x64", dtype.endswith("64"))
        discrete = name.split(".")[0] in DISCRETE and "." in name
        xs = [self.jax.numpy.asarray(_arguments(d, int(size), k, discrete, dtype)) for k, d in enumerate(domains)]
        self.clear()  # one at a time
        self[key] = functools.partial(self.jax.jit(function), *xs)
        return self[key]


def _arguments(domain, size, seed, discrete, dtype) -> np.ndarray:
    x = np.random.default_rng(seed).uniform(*domain, size)
    return np.asarray(x > sum(domain) / 2 if dtype == "bool" else np.floor(x) if discrete else x, dtype)


def measure(pair, name, dtype, options) -> list:
    rows = []
    for size in map(int, options.sizes.split(",")):
        request = {"workload": f"{name} {dtype} {size}", "seconds": options.seconds}
        ours, theirs = alternate(options.rounds, *(functools.partial(pair.ask, l, **request) for l in (OURS, THEIRS)))
        ours, theirs = best(ours), best(theirs)
        rows.append((theirs / ours, name, dtype, size, ours, theirs))
        print("  " + line(rows[-1]), file=sys.stderr, flush=True)
        if max(ours, theirs) > LONGEST:
            break
    return rows


def line(row) -> str:
    ratio, name, dtype, size, ours, theirs = row
    return f"{ratio:6.2f}x  {name:32}{dtype:9}{size:9}  {show(ours):>9}  {show(theirs):>9}"


def main():
    parser = options_of(__doc__.splitlines()[0], rounds=4, seconds=0.02)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="elements, joined by commas")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="dtypes, joined by commas")
    parser.add_argument("--values", action="store_true", help="leave out gradients")
    parser.add_argument("--below", type=float, default=1.0, help="show rows below this")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, Calls)
        return
    os.environ.setdefault("CATENA_CACHE", "0")
    pair, rows = Pair({OURS: sys.executable, THEIRS: options.jax_python}, __file__), []
    names = [n for n in functions(importlib.import_module(OURS)) if any(part in n for part in options.only.split(","))]
    try:
        for name in names:
            for dtype in options.dtypes.split(","):
                if name.endswith(GRADIENT) and (options.values or not dtype.startswith("float")):
                    continue
                try:
                    rows += measure(pair, name, dtype, options)
                except RuntimeError as error:
                    print(f"  {name} {dtype}: {error}", file=sys.stderr)
    finally:
        pair.close()
    rows.sort()
    print("\n".join(line(row) for row in rows if row[0] < options.below))
    print(f"{len(rows)} rows, {math.exp(sum(math.log(r[0]) for r in rows) / len(rows)):.2f}x in the mean")


if __name__ == "__main__":
    main()
