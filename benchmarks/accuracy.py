"""The accuracy of every elementwise function, eager and compiled, beside JAX's on the same arguments.

`make accuracy` runs this and writes `docs/accuracy.md`; `make accuracy ONLY=special.` compares the functions of
`scipy.special` that are no primitives (`accuracy_special.py`), and writes `docs/accuracy_special.md`. Arguments span
every exponent, subnormals and the neighbourhoods of breakpoints; the references are mpmath's, to 200 bits. Each library
computes in a process of its own. Samples, references and the measure of errors are those of
`catena.compiler.vector_math.accuracy`, which tests the compiler's library by itself.
"""

import argparse
import functools
import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parent.parent / "docs"
# What ONLY selects -> the page that is written then; all but the special functions without.
PAGES = {"": DOCS / "accuracy.md", "special.": DOCS / "accuracy_special.md"}  # with the derivatives' rows, "slope."
TYPES = {"float": np.float32, "double": np.float64}
OURS, THEIRS = "catena", "jax"

# Functions by another name in the compiler's library, or with fixed arguments.
CALLS = {
    "modulus": lambda lax: lambda x, y: lax.abs(lax.complex(x, y)),
    "integer_pow_3": lambda lax: lambda x: lax.integer_pow(x, 3),
    "integer_pow_-2": lambda lax: lambda x: lax.integer_pow(x, -2),
    "round": lambda lax: lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_to_even": lambda lax: lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
}

# Of functions with several results, or of complex numbers, by the last part of a name.
PARTS = {
    "sine": lambda jax, f: lambda *xs: f(*xs)[0],
    "cosine": lambda jax, f: lambda *xs: f(*xs)[1],
    "real": lambda jax, f: lambda x, y: f(jax.lax.complex(x, y)).real,
    "imag": lambda jax, f: lambda x, y: f(jax.lax.complex(x, y)).imag,
}

# ------------------------------------------------------------------------------ in the process of a library


def evaluate(library: str, folder: Path):
    """Every function on its arguments in `folder`, compiled, ours eagerly too, into a file beside them."""
    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.scipy.special")
    jax.config.update("jax_enable_x64", True)
    given, results = np.load(folder / "arguments.npz"), {}
    names = sorted({key.rpartition("#")[0] for key in given})
    for name in names:
        args = [jax.numpy.asarray(given[key]) for key in sorted(given) if key.rpartition("#")[0] == name]
        function = name.split("/")[0]
        call = call_of(jax, function)
        if library == OURS:
            results[f"{name}#eager"] = np.asarray(call(*args))
        results[f"{name}#compiled"] = np.asarray(jax.jit(call)(*args))
    np.savez(folder / f"{library}.npz", **results)


def call_of(jax, function: str) -> Callable:
    """The function of a library: of `lax`, of `scipy.special`, or the derivative of one by an operand."""
    if function.startswith("slope."):
        _, which, of = function.split(".", 2)
        return jax.vmap(jax.grad(call_of(jax, of), int(which)))
    if function.startswith("special."):
        _, name, *part = function.split(".")
        return PARTS.get("".join(part), lambda jax, f: f)(jax, getattr(jax.scipy.special, name))
    return CALLS[function](jax.lax) if function in CALLS else getattr(jax.lax, function)


# ------------------------------------------------------------------------------ in the process that compares


def parent_modules():
    """What the parent needs and JAX's environment lacks."""
    global mp, harness, accuracy_special
    import accuracy_special
    import mpmath as mp

    from catena.compiler.vector_math import accuracy as harness


@dataclass(frozen=True)
class Function:
    """What to compare: the reference, and how many arguments are drawn from where."""

    reference: Callable
    draw: Callable  # (element type, count) -> arguments
    share: float = 1.0  # of the number of arguments: less where the reference is slow
    specials: tuple = ()


def drawn(*domains, **options):
    """Arguments from domains of the harness."""
    return lambda elem, count: tuple(
        harness._samples(harness.Domain(*d), elem, count, seed) for seed, d in enumerate(domains)
    )


def log_uniform(*bounds):
    """Arguments whose logarithms are uniform between bounds; a third uniform, to be dense at the high end."""

    def draw(elem, count):
        random = np.random.default_rng(0)
        columns = []
        for low, high in bounds:
            spread = np.exp(random.uniform(np.log(low), np.log(high), count - count // 3))
            columns.append(np.concatenate([spread, random.uniform(low, high, count // 3)]).astype(TYPES[elem]))
        return tuple(random.permutation(c) for c in columns)

    return draw


def whole_orders(high: int, bounds):
    """A whole number up to `high` and another argument."""

    def draw(elem, count):
        orders = np.random.default_rng(1).integers(0, high + 1, count).astype(TYPES[elem])
        return orders, log_uniform(bounds)(elem, count)[0]

    return draw


INF, NAN = float("inf"), float("nan")
ALL = (-INF, INF)
ONE_ZERO = ((INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (NAN, NAN))
GAMMA = ((NAN, 1.0, NAN), (1.0, NAN, NAN), (-1.0, 1.0, NAN), (1.0, -1.0, NAN))


def round_away(x):
    return mp.sign(x) * mp.floor(abs(x) + mp.mpf(0.5))


def remainder(x, y):
    with mp.workprec(2400):  # for every bit of the quotient
        return x - y * (mp.floor(x / y) if (x < 0) == (y < 0) else mp.ceil(x / y))


def incomplete_gamma(a, x, upper=False):
    """P or Q by mpmath, whose tails need more digits where they are small."""
    with mp.workprec(400):
        return mp.gammainc(a, x, mp.inf, regularized=True) if upper else mp.gammainc(a, 0, x, regularized=True)


def gamma_slope(a, x):
    """The derivative of P(a, x) by a, by differences far below the precision that is needed."""
    with mp.workprec(700):
        h = a * mp.mpf(2) ** -180
        up, down = (mp.gammainc(a + s * h, 0, x, regularized=True) for s in (1, -1))
        return (up - down) / (2 * h)


def sample_slope(a, x):
    density = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))
    return -gamma_slope(a, x) / density


def polygamma(n, x):
    return mp.psi(int(n), x)


def hurwitz_zeta(s, q):
    """By Euler-Maclaurin summation: mpmath's own has ten digits for large arguments."""
    with mp.workprec(300):
        count = max(0, int(mp.ceil(s + 60 - q)))
        a = q + count
        total = mp.fsum((q + k) ** -s for k in range(count)) + a ** (1 - s) / (s - 1) + a**-s / 2
        term = s * a ** (-s - 1)
        for j in range(1, 60):
            total += mp.bernoulli(2 * j) / mp.factorial(2 * j) * term
            term *= (s + 2 * j - 1) * (s + 2 * j) / a**2
        return total


def further_functions() -> dict[str, Function]:
    """Those that the compiler's library of vector mathematics does not have."""
    one, two = drawn(ALL), drawn(ALL, ALL)
    near = log_uniform((1e-3, 1e3), (1e-3, 1e3))
    return {
        "neg": Function(lambda x: -x, one, specials=((0.0, -0.0), (-0.0, 0.0), (INF, -INF), (NAN, NAN))),
        "abs": Function(abs, one, specials=((-0.0, 0.0), (-INF, INF), (NAN, NAN))),
        "sign": Function(mp.sign, one, specials=((0.0, 0.0), (-0.0, -0.0), (-INF, -1.0), (NAN, NAN))),
        "floor": Function(mp.floor, one, specials=ONE_ZERO),
        "ceil": Function(mp.ceil, one, specials=(*ONE_ZERO, (-0.5, -0.0))),
        "round": Function(round_away, one, specials=(*ONE_ZERO, (-0.25, -0.0))),
        "round_to_even": Function(mp.nint, one, specials=(*ONE_ZERO, (2.5, 2.0), (-0.5, -0.0))),
        "square": Function(lambda x: x * x, one, specials=((-INF, INF), (-0.0, 0.0), (NAN, NAN))),
        "sqrt": Function(mp.sqrt, drawn((0.0, INF)), specials=((INF, INF), (-0.0, -0.0), (-1.0, NAN))),
        "reciprocal": Function(lambda x: 1 / x, one, specials=((INF, 0.0), (-INF, -0.0), (-0.0, -INF))),
        "integer_pow_3": Function(lambda x: x**3, one, specials=ONE_ZERO),
        "integer_pow_-2": Function(lambda x: x**-2, one, specials=((INF, 0.0), (-0.0, INF), (NAN, NAN))),
        "add": Function(mp.fadd, two, specials=((INF, -INF, NAN), (-0.0, -0.0, -0.0), (0.0, -0.0, 0.0))),
        "sub": Function(mp.fsub, two, specials=((INF, INF, NAN), (-0.0, 0.0, -0.0), (0.0, 0.0, 0.0))),
        "mul": Function(mp.fmul, two, specials=((INF, 0.0, NAN), (-0.0, 1.0, -0.0), (INF, -1.0, -INF))),
        "div": Function(mp.fdiv, two, specials=((0.0, 0.0, NAN), (1.0, -0.0, -INF), (INF, INF, NAN))),
        "rem": Function(remainder, drawn((-1e6, 1e6), (-1e3, 1e3)), specials=(
            (1.0, 0.0, NAN), (INF, 1.0, NAN), (-0.0, 1.0, -0.0), (1.0, INF, 1.0), (-4.0, 2.0, -0.0))),
        "max": Function(lambda x, y: max(x, y), two, specials=(
            (NAN, 1.0, NAN), (1.0, NAN, NAN), (0.0, -0.0, 0.0), (-0.0, 0.0, 0.0))),
        "min": Function(lambda x, y: min(x, y), two, specials=(
            (NAN, 1.0, NAN), (1.0, NAN, NAN), (0.0, -0.0, -0.0), (-0.0, 0.0, -0.0))),
        "bessel_i0e": Function(lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), log_uniform((1e-6, 1e4)), 0.2,
                               ((0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN))),
        "bessel_i1e": Function(lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), log_uniform((1e-6, 1e4)), 0.2,
                               ((0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (NAN, NAN))),
        "igamma": Function(incomplete_gamma, near, 0.1, (*GAMMA, (2.0, 0.0, 0.0), (2.0, INF, 1.0))),
        "igammac": Function(functools.partial(incomplete_gamma, upper=True), near, 0.1,
                            (*GAMMA, (2.0, 0.0, 1.0), (2.0, INF, 0.0))),
        "igamma_grad_a": Function(gamma_slope, log_uniform((1e-2, 1e2), (1e-2, 1e2)), 0.03, GAMMA),
        "random_gamma_grad": Function(sample_slope, log_uniform((1e-2, 1e2), (1e-2, 1e2)), 0.03),
        "betainc": Function(lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
                            log_uniform((1e-2, 1e2), (1e-2, 1e2), (1e-3, 0.999)), 0.1,
                            ((2.0, 3.0, 0.0, 0.0), (2.0, 3.0, 1.0, 1.0), (2.0, 3.0, 1.5, NAN),
                             (-1.0, 3.0, 0.5, NAN))),
        "zeta": Function(hurwitz_zeta, log_uniform((1.01, 60.0), (1e-2, 1e3)), 0.05,
                         ((1.0, 2.0, INF), (0.5, 2.0, NAN), (2.0, 0.0, INF), (2.0, -3.0, INF))),
        "polygamma": Function(polygamma, whole_orders(8, (1e-2, 1e3)), 0.1,
                              ((1.0, 0.0, INF), (-1.0, 2.0, NAN), (1.5, 2.0, NAN))),
    }  # fmt: skip


# Functions of the library that `lax` has not: they are made of primitives, or stand on the page of special functions
NO_PRIMITIVE = {"log2", "log10", "hypot", "entr", "logit", "error_density", "normal_density", "trigamma"}


def functions() -> dict[str, Function]:
    shared = {
        name: Function(
            reference,
            functools.partial(harness.samples, name),
            1.0 if name not in ("erf_inv", "lgamma", "digamma") else 0.2,
            (*harness.SPECIALS[name], (NAN,) * (harness.arity(name) + 1))[: None if name != "pow" else -1],
        )
        for name, reference in harness.REFERENCES.items()
        if name not in NO_PRIMITIVE
    }
    special = accuracy_special.functions(Function, log_uniform, whole_orders)
    slopes = accuracy_special.slopes(Function, log_uniform)
    return dict(sorted((shared | further_functions() | special | slopes).items()))


def run_library(python: str, library: str, folder: Path):
    command = [python, __file__, "--evaluate", library, "--folder", str(folder)]
    if done := subprocess.run(command).returncode:
        raise SystemExit(f"{command} failed with status {done}")
    return np.load(folder / f"{library}.npz")


def cases(count: int, only: str) -> dict:
    """Key (`name/type`) -> function, samples, special arguments and their results."""
    out = {}
    for name, function in functions().items():
        for elem, dtype in TYPES.items():
            if only not in name or (not only and name.startswith(("special.", "slope."))):
                continue
            samples = tuple(np.asarray(x, dtype) for x in function.draw(elem, max(16, int(count * function.share))))
            columns = [np.array(c, dtype) for c in zip(*function.specials)]
            out[f"{name}/{elem}"] = function, samples, columns
    return out


def all_arguments(samples, columns):
    """Samples, then special arguments, in one array an operand."""
    return [np.concatenate([x, c]) for x, c in zip(samples, columns[: len(samples)])] if columns else samples


def wrong_specials(got, columns) -> list[str]:
    """The special arguments at which a result is not exactly what it must be, sign of zero included."""
    if not columns:
        return []
    *arguments, want = columns
    same = np.where(np.isnan(want), np.isnan(got), (got == want) & (np.signbit(got) == np.signbit(want)))
    return [
        f"f({', '.join(f'{x:g}' for x in point)}) = {g:.9g}, not {w:.9g}"
        for *point, g, w, ok in zip(*arguments, got, want, same)
        if not ok
    ]


KINDS = ((OURS, "eager"), (OURS, "compiled"), (THEIRS, "compiled"))


@dataclass
class Row:
    """The greatest errors of one function in one type: ours eager, ours compiled, theirs."""

    name: str
    elem: str
    errors: list  # (ulps, place) of each of KINDS
    wrong: list  # of each of KINDS, the special values that are not right

    @property
    def type(self) -> str:
        return f"f{8 * TYPES[self.elem]().itemsize}"

    @property
    def behind(self) -> bool:
        """Whether either of ours is worse than theirs by more than rounding in the last place."""
        ours, theirs = max(e for e, _ in self.errors[:2]), self.errors[2][0]
        return ours > max(theirs, 0.5001) or max(map(len, self.wrong[:2])) > len(self.wrong[2])

    def __str__(self):
        cells = [f"`{self.name}`", self.type]
        for (ulps, _), wrong in zip(self.errors, self.wrong):
            cells.append(f"{show(ulps)}{f' ({len(wrong)} specials)' if wrong else ''}")
        worst = max(self.errors[:2], key=lambda e: e[0])[1]
        return "| " + " | ".join([*cells, ", ".join(f"{p:.9g}" for p in worst)]) + " |"


def show(ulps: float) -> str:
    return "wrong" if np.isinf(ulps) else f"{ulps:.2f}" if ulps < 1000 else f"{ulps:.1e}"


def compare(key: str, case, results: dict) -> Row:
    name, elem = key.split("/")
    function, samples, columns = case
    exact = harness.exact_values(name, function.reference, samples)
    floors = harness.floors_of(name, function.reference, samples)
    errors, wrong = [], []
    for library, how in KINDS:
        got = results[library][f"{key}#{how}"]
        n = samples[0].size
        errors.append(harness.greatest_error(got[:n], exact, floors, samples, elem))
        wrong.append(wrong_specials(got[n:], columns))
    return Row(name, elem, errors, wrong)


HEAD = """# Accuracy of the elementwise functions

Written by `make accuracy` (`benchmarks/accuracy.py`); do not edit.

Greatest error found against mpmath, in units in the last place of the exact result (0.5 is correct rounding),
of the function evaluated eagerly, compiled by `jit`, and by {theirs} on the CPU, at the same arguments: about
{count} for each function and type, fewer where the reference is slow. They span every exponent of the domain,
subnormals included, and the neighbourhoods of breakpoints; nothing is flushed to zero. "wrong" is a result
without a correct digit: NaN, an infinity, or zero for a normal number. "(2 specials)" counts special arguments
(zeros, infinities, NaN, poles, ends of the domain) at which the result is not exactly what it must be.
The last column is where the worse of our two results is worst.

Eager evaluation is by compiled code too, and has the same bits; what NumPy computes exactly is NumPy's. Errors of
`lgamma` and `digamma` are
{reflection}. For the derivatives of gamma samples and of `igamma`, mpmath's differences are exact to 100 digits.
"""

SPECIAL_HEAD = """# Accuracy of the special functions

Written by `make accuracy ONLY=special.` (`benchmarks/accuracy_special.py`), COUNT={count}; do not edit.

Greatest error found against mpmath, in units in the last place of the exact result (0.5 is correct rounding),
of the function evaluated eagerly, compiled by `jit`, and by {theirs} on the CPU, at the same arguments: {count} or
fewer for each function and type, which is few, as the references are slow. They stay away from zeros other than at the
origin, and where results are normal numbers. "wrong" is a result without a correct digit. What follows a dot is a part
of the domain, or of the result. The last column is where the worse of our two results is worst.
Floats are computed in doubles and rounded once, or nearly so in pairs of floats (`dawsn`, `i0e`, `i1e`), but where
elementary functions are composed (`boxcox1p`, `factorial`, `kl_div`, `logit`, `xlogy`, `xlog1py`).
"""

SLOPES_HEAD = """
## Derivatives

Of the functions by each of their operands, by `grad`, against mpmath's difference quotients; over wider domains, where
terms may cancel: there the derivative is a function of its own (`dawsn`, `erfcx`, `wofz`, `i0e`, `betaln`, `poch`).
Great numbers are those of `expit` beyond 17 (37 for doubles), `y (1 - y)` of a `y` that is rounded to 1.
"""

COLUMNS = """
| function | type | eager | compiled | {theirs} | worst at |
|---|---|---|---|---|---|
"""

# Why ours is worse than theirs where it is.
REASONS: dict[str, str] = {
    "cos": "both are within a hundredth of a unit of correct rounding",
    "tan": "NumPy's, for small arrays, is within 0.53 units; compiled it is as JAX's",
    "special.i0": "both are within two units",
    "slope.0.special.ndtri": "both are near two units",
    "slope.3.special.hyp2f1": "`a b / c` times the function of parameters that are greater by one, and rounded",
    "slope.2.special.hyp1f1": "`a / b` times the function of `a + 1` and `b + 1`, which are rounded",
    "slope.0.special.rel_entr": "`log(p / q) + 1`; both are within 1.2 units",
    "slope.0.special.xlog1py": "both are within a hundredth of a unit of correct rounding",
    "slope.0.special.xlogy": "both are within 0.1 units of correct rounding",
    "slope.1.special.xlog1py": "both are within one unit",
    "slope.0.special.i1": "`i0 - i1 / x`, of two rounded functions",
    "special.kl_div": "both are within 0.05 units of correct rounding",
}


def page(rows: list[Row], count: int, version: str, head: str) -> str:
    text = head.format(count=count, theirs=version, reflection=harness.REFLECTION_NOTE)
    slopes = [r for r in rows if r.name.startswith("slope.")]
    for part, intro in (([r for r in rows if r not in slopes], ""), (slopes, SLOPES_HEAD)):
        text += intro + COLUMNS.format(theirs=version) + "".join(f"{r}\n" for r in part) if part else ""
    behind = [f"- `{r.name}` {r.type}: {REASONS.get(r.name, 'no reason')}." for r in rows if r.behind]
    text += "\n".join(["", "## Where ours is worse", "", *(behind or ["Nowhere."]), ""])
    notes = [
        f"- `{r.name}` {r.type}, {how}: {'; '.join(wrong)}."
        for r in rows
        for (library, how), wrong in zip(KINDS, r.wrong)
        if wrong and library == OURS
    ]
    return text + "\n".join(["", "## Special values that are not exact", "", *(notes or ["None."]), ""])


def measure(options):
    wanted = cases(options.count, options.only)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = {
            f"{key}#{i}": x
            for key, (_, samples, columns) in wanted.items()
            for i, x in enumerate(all_arguments(samples, columns))
        }
        np.savez(folder / "arguments.npz", **arguments)
        pythons = {OURS: sys.executable, THEIRS: options.jax_python}
        results = {library: dict(run_library(python, library, folder)) for library, python in pythons.items()}
    for key, case in wanted.items():
        row = compare(key, case, results)
        print(row, "   BEHIND" if row.behind else "", flush=True)
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=".venv-jax/bin/python", help="a Python that has JAX")
    parser.add_argument("--count", type=int, default=3000, help="arguments for each function and type")
    parser.add_argument("--only", default="", help="only functions whose name contains this")
    parser.add_argument("--evaluate", metavar="LIBRARY", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.evaluate:
        evaluate(options.evaluate, options.folder)
        return
    parent_modules()
    rows = list(measure(options))
    if options.only in PAGES:
        version = subprocess.check_output([options.jax_python, "-c", "import jax; print('JAX', jax.__version__)"])
        head = SPECIAL_HEAD if options.only else HEAD
        PAGES[options.only].write_text(page(rows, options.count, version.decode().strip(), head))


if __name__ == "__main__":
    main()
