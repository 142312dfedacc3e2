"""Calls of `scipy.stats`: every method of every distribution, densities of samples, ranks."""

import numpy as np

LOCATED = "loc scale"
CONTINUOUS = {  # parameters, and the methods
    "beta": ("a b", "logpdf pdf cdf logcdf sf logsf"),
    "cauchy": ("", "logpdf pdf cdf logcdf sf logsf ppf isf"),
    "chi2": ("df", "logpdf pdf cdf logcdf sf logsf"),
    "expon": ("", "logpdf pdf cdf logcdf sf logsf ppf"),
    "gamma": ("a", "logpdf pdf cdf logcdf sf logsf"),
    "gumbel_l": ("", "logpdf pdf cdf logcdf sf logsf ppf"),
    "gumbel_r": ("", "logpdf pdf cdf logcdf sf logsf ppf"),
    "laplace": ("", "logpdf pdf cdf"),
    "logistic": ("", "logpdf pdf cdf sf ppf isf"),
    "norm": ("", "logpdf pdf cdf logcdf sf logsf ppf isf"),
    "pareto": ("b", "logpdf pdf cdf logcdf sf logsf ppf"),
    "t": ("df", "logpdf pdf"),
    "truncnorm": ("low high", "logpdf pdf cdf logcdf sf logsf"),
    "uniform": ("", "logpdf pdf cdf ppf"),
}
UNLOCATED = {"gennorm": ("b", "logpdf pdf cdf"), "vonmises": ("b", "logpdf pdf"), "wrapcauchy": ("p", "logpdf pdf")}
COUNTING = {
    "bernoulli": ("p", "logpmf pmf"),
    "betabinom": ("n a b", "logpmf pmf"),
    "binom": ("n p", "logpmf pmf"),
    "geom": ("p", "logpmf pmf"),
    "nbinom": ("n p", "logpmf pmf"),
    "poisson": ("a", "logpmf pmf cdf"),
}
QUANTILES = ("ppf", "isf")


def uniform(low, high, shape=(9,), dtype="float64"):  # which are floats where x64 is off
    return lambda rng: rng.uniform(low, high, shape).astype(dtype)


def constant(*values, dtype="float64"):
    return lambda rng: np.array(values, dtype)


OPERANDS = {
    "x": uniform(-2, 5),
    "q": uniform(0, 1),
    "x2": uniform(-2, 5, (2, 1)),
    "u": uniform(0.05, 0.95),
    "pos": uniform(1.05, 5),
    "edge": constant(-np.inf, -1e30, -30, -1, 0, 1e-30, 1, 30, 1e30, np.inf, np.nan),
    "s": uniform(0.2, 0.8, ()),
    "qedge": constant(-1, 0, 1e-30, 1e-5, 0.5, 1 - 1e-6, 1, 2, np.nan),
    "counts": constant(-1, 0, 1, 2, 3, 7, dtype="int32"),
    "h": uniform(0, 1, (4,), "float16"),
    "bits": constant(True, False, dtype=bool),
    "d": uniform(-2, 5, (5,), "float32"),
    "kedge": constant(-np.inf, -1, 0, 1, 3, 7, 1e10, np.inf, np.nan),
    "none": uniform(0, 1, (0,)),
    "three": uniform(0, 1, (3,)),
    "c": lambda rng: rng.normal(size=3) * (1 + 1j),
    # parameters
    "a": uniform(0.5, 4),
    "b": uniform(0.5, 4),
    "df": uniform(1, 9),
    "low": uniform(-2, 0),
    "high": uniform(1, 3),
    "p": uniform(0.1, 0.9),
    "n": constant(7, dtype="int32"),
    "loc": uniform(-1, 1),
    "scale": uniform(0.5, 2),
    "bad": constant(-1, 0, 1, 2, np.nan),
    # vectors
    "v": uniform(-1, 1, (4, 3)),
    "mean": uniform(-1, 1, (3,)),
    "means": uniform(-1, 1, (2, 1, 3)),
    "zero": uniform(0, 0, ()),
    "cov": lambda rng: (lambda m: m @ m.T + np.eye(3))(rng.normal(size=(3, 3))),
    "covs": lambda rng: (lambda m: m @ m.swapaxes(1, 2) + np.eye(3))(rng.normal(size=(4, 3, 3))),
    "skew": uniform(0, 1, (3, 3)),
    "simplex": lambda rng: rng.dirichlet([2, 3, 4], 5).T,
    "alpha": uniform(0.5, 4, (3,)),
    "throws": lambda rng: rng.multinomial(6, [0.2, 0.3, 0.5]).astype("int32"),
    "probabilities": constant(0.2, 0.3, 0.5),
    # samples
    "data": uniform(-1, 1, (8,)),
    "data2": uniform(-1, 1, (2, 8)),
    "weights": uniform(0.1, 1, (8,)),
    "points": uniform(-1, 1, (5,)),
    "points2": uniform(-1, 1, (2, 5)),
    "m": lambda rng: rng.integers(0, 4, (4, 5)),
    "f": lambda rng: rng.integers(0, 4, (4, 5)) / 2,
    "gaps": lambda rng: np.where(rng.uniform(size=(4, 5)) < 0.2, np.nan, rng.integers(0, 4, (4, 5))),
    "empty": uniform(0, 1, (0, 3)),
    "cube": lambda rng: rng.integers(0, 3, (2, 3, 4)),
    "mh": uniform(0, 1, (4,), "float16"),
    "signs": constant(0.0, -0.0, -0.0, 1.0),
    "bytes": constant(3, 1, 3, 2, dtype="uint8"),
}


def of(name: str, method: str, *arguments: str) -> str:
    return f"jsp.stats.{name}.{method}({', '.join(a for a in arguments if a)})"


def methods(table: dict, located: tuple = ()):
    """(distribution, method, where it is evaluated, at edges, its parameters, those of place)."""
    for name, (parameters, names) in table.items():
        for method in names.split():
            at = ("q", "qedge") if method in QUANTILES else ("x", "edge")
            yield name, method, *at, ", ".join(parameters.split()), ", ".join(located)


def parameters_of(text: str, value: str) -> str:
    return ", ".join([value] * len(text.split(", "))) if text else ""


CASES = []
for name, method, x, edge, p, place in methods(CONTINUOUS, ("loc", "scale")):
    fixed = {"low": "-1.0", "high": "2.0"}
    one = ", ".join(fixed.get(k, "1.5") for k in p.split(", ")) if p else ""
    whole = ", ".join({"low": "-1", "high": "2"}.get(k, "2") for k in p.split(", ")) if p else ""
    CASES += [of(name, method, x, p), of(name, method, x, p, place), of(name, method, edge, one)]
    CASES += [
        of(name, method, "bits" if x == "q" else "counts", whole),
        of(name, method, "0.5", one),
        of(name, method, "h", one),
    ]
    CASES += [of(name, method, "x2", p, "0.5"), of(name, method, "none", one), of(name, method, "three", p, place)]
    CASES += [
        of(name, method, f"x={x}", *(f"{k}={v}" for k, v in ()))
        if x == "x" and not p
        else of(name, method, x, p, "loc=loc")
    ]
for name, method, x, edge, p, _ in methods(UNLOCATED):
    one = "0.5" if name == "wrapcauchy" else "1.5"
    CASES += [
        of(name, method, x, p),
        of(name, method, edge, one),
        of(name, method, "counts", one),
        of(name, method, "0.5", one),
    ]
    CASES += [
        of(name, method, "h", one),
        of(name, method, "x2", p),
        of(name, method, "three", p),
        of(name, method, "x2", "bad"),
    ]
for name, method, _, _, p, _ in methods(COUNTING):
    one = ", ".join({"n": "5", "p": "0.5"}.get(k, "1.5") for k in p.split(", "))
    CASES += [
        of(name, method, "counts[:, None]", p),
        of(name, method, "kedge", one),
        of(name, method, "counts", one, "1"),
    ]
    CASES += [
        of(name, method, "2", one),
        of(name, method, "h", one),
        of(name, method, "x", p),
        of(name, method, "counts", p),
    ]
CASES += [
    of("bernoulli", m, "kedge" if m == "cdf" else "qedge", p)
    for m in ("cdf", "ppf")
    for p in ("0.25", "0.0", "1.0", "1.5", "s")
]
CASES += [of("bernoulli", m, "bits", p) for m in ("cdf", "ppf") for p in ("0.25", "1", "p")]
CASES += [
    of("poisson", "entropy", mu) for mu in ("a", "0.0", "5", "bad", "counts", "h", "edge[4:]", "a * 50", "a, loc")
]
CASES += [of("poisson", "logpmf", "counts", mu) for mu in ("0.0", "1", "bad[:, None]")]
CASES += [of("binom", "logpmf", "counts", rest) for rest in ("3, bad[:, None]", "bad[:, None], 0.5")]

NORMAL = "multivariate_normal"
CASES += [
    of(NORMAL, m, rest)
    for m in ("logpdf", "pdf")
    for rest in (
        "v, mean, cov",
        "v[0], mean, cov",
        "v, means, cov",
        "v, mean, covs",
        "v, means, covs",
        "v, mean, 2.0",
        "v, 0.0, 1.0",
        "0.5, 0.0, 1.0",
        "v, mean, skew + 3 * jnp.eye(3)",
        "v, mean, -cov",
        "v, mean, mean",
        "v, mean, cov[:2]",
        "v[:, :2], mean, cov",
        "v, v, cov",
        "none, none, cov",
        "1, mean, cov",
        "v, zero, cov",
        "h, 0, 1",
        "counts, 0, 1",
        "v, mean, jnp.eye(3)",
        "v, mean, zero",
        "v, mean, s, True",
        "v, mean, cov, None",
    )
]
CASES += [
    of("dirichlet", m, rest)
    for m in ("logpdf", "pdf")
    for rest in (
        "simplex, alpha",
        "simplex[:-1], alpha",
        "simplex[:, 0], alpha",
        "simplex, alpha[:2]",
        "simplex, alpha[None]",
        "simplex, s",
        "simplex * 1.1, alpha",
        "simplex[:, :1] * 0 + jnp.array([[1.0], [0.0], [0.0]]), jnp.array([2.0, 2.0, 2.0])",
        "jnp.array([1, 0]), jnp.array([1, 2])",
        "1.0, jnp.ones(1)",
    )
]
CASES += [
    of("multinomial", m, rest)
    for m in ("logpmf", "pmf")
    for rest in (
        "throws, 6, probabilities",
        "throws, 5, probabilities",
        "throws, n, probabilities",
        "throws, 6.0, probabilities",
        "x[:3], 6, probabilities",
        "throws, 6, jnp.array([1, 0, 0])",
        "throws, 6, probabilities[:2]",
        "throws[:1], 6, probabilities",
    )
]

KDE = "jsp.stats.gaussian_kde"
CASES += [
    f"{KDE}(data{rest}).covariance"
    for rest in (
        "",
        ", 'scott'",
        ", 'silverman'",
        ", 0.5",
        ", 2",
        ", s",
        ", lambda k: k.neff",
        ", 'other'",
        ", (1, 2)",
        ", data",
        ", weights=weights",
        ", weights=m[0]",
        ", weights=weights[:3]",
        ", weights=weights[:, None]",
        ", None, weights",
    )
]
CASES += [
    f"{KDE}({data}){what}"
    for data in ("data", "data2", "data, weights=weights", "data2, 0.3, weights")
    for what in (
        "",
        ".neff",
        ".dataset",
        ".weights",
        ".inv_cov",
        ".d",
        ".n",
        "(points)",
        ".pdf(points)",
        ".logpdf(points)",
        "(points2)",
        ".logpdf(points2)",
        "(points2[:, 0])",
        "(0.5)",
        ".integrate_box_1d(-0.5, 0.5)",
        ".integrate_box_1d(-jnp.inf, 0)",
        ".integrate_gaussian(mean[:2], cov[:2, :2])",
        ".integrate_gaussian(0.1, 0.5)",
        f".integrate_kde({KDE}(data))",
        f".integrate_kde({KDE}(data2))",
        ".resample(jax.random.key(0), (7,))",
        ".resample(jax.random.key(0))",
    )
]
CASES += [f"{KDE}({data})" for data in ("1.0", "m", "data[:1]", "cube", "c", "[1.0, 2.0]", "None")]
CASES += [f"{KDE}(data)({points})" for points in ("h", "counts", "cube", "[0.5]", "edge")]
CASES += [
    f"{KDE}(data).{call}"
    for call in (
        "integrate_box(0, 1)",
        "set_bandwidth(0.5)",
        "integrate_box_1d(points, 1)",
        "integrate_kde(3)",
        "resample(jax.random.key(0), 3)",
        "dataset.at[0].set(1)",
    )
]

CASES += [
    f"jsp.stats.rankdata({a}{rest})"
    for a in ("m", "f", "gaps", "cube", "mh", "bits", "signs", "c", "empty", "1.0", "bytes")
    for rest in (
        "",
        ", axis=0",
        ", axis=-1",
        ", 'min'",
        ", 'max'",
        ", 'dense'",
        ", 'ordinal'",
    )
]
CASES += [
    f"jsp.stats.rankdata({rest})"
    for rest in (
        "gaps, axis=1, method='dense'",
        "gaps, nan_policy='omit'",
        "gaps, nan_policy='raise'",
        "m, nan_policy='other'",
        "m, 'other'",
        "m, axis=2",
        "m, axis=(0, 1)",
        "[1, 2]",
    )
]
CASES += [
    f"jsp.stats.mode({a}{rest})"
    for a in ("m", "f", "gaps", "cube", "mh", "bits", "signs", "c", "empty", "1.0", "bytes")
    for rest in (
        "",
        ", axis=None",
        ", axis=-1",
        ", keepdims=True",
        ", axis=None, keepdims=True",
    )
]
CASES += [
    f"jsp.stats.mode({rest})"
    for rest in (
        "gaps, nan_policy='omit'",
        "m, nan_policy='raise'",
        "m, nan_policy='other'",
        "m, 2",
        "m, (0, 1)",
        "[1, 2]",
        "m, 1",
    )
]
CASES += [
    f"jsp.stats.sem({a}{rest})"
    for a in ("m", "f", "gaps", "cube", "mh", "bits", "c", "empty", "1.0")
    for rest in (
        "",
        ", axis=None",
        ", axis=-1",
        ", ddof=0",
        ", nan_policy='omit'",
        ", keepdims=True",
        ", None, 1, 'omit', keepdims=True",
    )
]
CASES += [
    f"jsp.stats.sem({rest})"
    for rest in (
        "m, nan_policy='raise'",
        "m, nan_policy='other'",
        "m, 2",
        "m, (0, 1)",
        "[1.0]",
        "f, ddof=9",
        "f, ddof=1.5",
    )
]
CASES = list(dict.fromkeys(CASES))

GRADIENTS = [
    *(
        of(
            name,
            m,
            "pos" if name == "pareto" else "u" if name in ("beta", "truncnorm") else "a",
            p,
            *(("loc * 0", "scale * 0 + 1") if name != "pareto" else ()),
        )
        for name, (text, names) in CONTINUOUS.items()
        for m in names.split()
        if m in ("logpdf", "logcdf", "sf")
        for p in [", ".join(text.split())]
        if not (name in ("beta",) and m != "logpdf")
    ),
    *(
        of(name, m, "q")
        for name, (text, names) in CONTINUOUS.items()
        if not text
        for m in names.split()
        if m in QUANTILES
    ),
    *(of(name, "logpdf", "x" if name != "wrapcauchy" else "pos", text) for name, (text, _) in UNLOCATED.items()),
    *(
        of(name, "logpmf", "jnp.array([1, 2, 4])[:, None]", ", ".join(text.split()))
        for name, (text, _) in COUNTING.items()
    ),
    of("poisson", "entropy", "a"),
    of(NORMAL, "logpdf", "v, mean, cov"),
    of(NORMAL, "logpdf", "v, means, covs"),
    of("dirichlet", "logpdf", "simplex[:-1], alpha"),
    of("multinomial", "logpmf", "throws, 6, probabilities"),
    f"{KDE}(data, weights=weights)(points)",
    f"{KDE}(data2).logpdf(points2)",
    "jsp.stats.sem(f)",
]

VALUES = r"(?s)^returns (\S+) .*\| returns \1 "  # of one dtype and shape, weak neither: only values differ
EACH = True
EXPLAINED = [  # but for what `judge.py` explains
    (
        r"\((edge|qedge|kedge)",
        VALUES,
        "NaN stays NaN; at infinities limits, where JAX and SciPy have NaN",
    ),
    (r"bernoulli\.ppf\(qedge", VALUES, "an outcome that occurs, at probabilities 0 and 1"),
    (r"(gumbel_l|norm)\.(ppf|isf)\(bits", VALUES, "quantiles at 0 and 1 are the ends of the distribution"),
    (r"(bad|gaps)\b", VALUES, "NaN goes in, NaN comes out"),
    (r"norm\.isf\(none", r"^returns float32.*\| returns float64", "of floats comes a float, as elsewhere"),
    (
        r"\((counts|bits|2|x=)",
        r"(?s)^returns float\S+ (?!weak).*\| returns float\S+ weak",
        "weak in JAX although an array is not",
    ),
    (
        r"truncnorm|multinomial|dirichlet|multivariate",
        r"^(Type|Value)Error.*\| (Value|Index|Type)Error",
        "another error of shapes",
    ),
    (r"(norm|truncnorm)\.", r"^returns.*\| TypeError: x.dtype", "JAX refuses dtypes that its neighbours take"),
    (
        r"norm\.isf\(bits",
        r"^returns.*\| TypeError: sub does not accept dtype bool",
        "booleans are taken, as by its neighbours",
    ),
    (r"nan_policy='(omit|raise)'", r"NotImplementedError|ValueError: raise is not", "policies that JAX does not have"),
    (r"sem\(c", r"complex(64|128)", "an error is real"),
    (r"sem\(m, \(0, 1\)|(mode|sem|rankdata)\(1.0", r"", "of scalars"),
    (r"multinomial\.\w+\(throws", r"", "JAX adds up all counts of a batch"),
    (
        r"(binom|nbinom)\.\w+\((x|h|kedge)",
        VALUES,
        "counts that are none: SciPy has 0, JAX fewer digits",
    ),
    (r"mean, s, True", r"NotImplementedError", "matrices without full rank are supported"),
    (r"gaussian_kde.*resample", VALUES, "samples are drawn as in JAX; the last digits of a factorisation differ"),
    (r"gaussian_kde\(m\)$", VALUES, "the rounding errors of zeros in an inverse"),
    (r"gaussian_kde.*integrate_kde\(3\)", r"Error", "what is no estimate"),
    (r"gaussian_kde\(", r"returns object", "compared by its parts"),
    (
        r"^grad ",
        r"\| TypeError: .*float0",
        "JAX multiplies by the tangent of an integer, and fails",
    ),
]

SLOPES_EXPLAINED = [
    (r"gaussian_kde\(data\)\(edge\)", "at infinity there is none"),
    (r"^simplex .*simplex\[:, :1\] \* 0", "the slope at a corner is infinite, and the step is zero"),
]
