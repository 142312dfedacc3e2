"""Every value that was recorded from JAX 0.10.2 (``../shared/api/random_vectors.json``), drawn again.

Bits, uniform numbers, integers, permutations, choices and keys must be equal; numbers that go through
transcendental
functions may differ by two units in the last place.
"""

import contextlib
import hashlib
import importlib
import json
import lzma
from collections import Counter
from pathlib import Path

import ml_dtypes  # noqa: F401  (so that NumPy knows the names of its dtypes)
import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import random
from shares import alternate

PATH = Path(__file__).parents[1] / "data" / "random_vectors.json.xz"
RECORDS = json.loads(lzma.decompress(PATH.read_bytes()))["records"]

EXACT = {
    "bits", "uniform", "randint", "permutation", "choice", "split", "fold_in", "clone", "key_data",
    "bits_vmap_split", "split_vmap", "split_then_split", "fold_in_vmap", "bernoulli", "rademacher",
    "categorical", "geometric", "poisson", "binomial", "multinomial",
}  # fmt: skip
ULPS = 2
# Gamma numbers and what is made of them: the cube of ``1 + c x``, which cancels for small ones, then powers
# of it.
COMPOSED = dict.fromkeys(("gamma", "f", "beta", "dirichlet", "chisquare", "t", "generalized_normal", "ball"), 8)
# Differences of terms of size 1 and more: in units in the last place of 1, where the value is smaller.
CANCELLING = {"gumbel": 2, "loggamma": 3, "wald": 4, "logistic": 2, "truncated_normal": 2}
# JAX's double precision log1p and erf_inv are wrong by up to 125 and 25 units (against mpmath; ours by 0.7
# and 2.7).
JAX_DOUBLE = {
    "exponential": 128,
    "laplace": 128,
    "logistic": 128,
    "gumbel": 128,
    "cauchy": 4,
    "t": 32,
    "beta": 32,
}
JAX_DOUBLE |= dict.fromkeys(("normal", "truncated_normal", "lognormal", "maxwell", "gamma", "loggamma"), 32)
# Sums of many terms and factorisations, in an order of their own: relative to the largest entry.
SUMS = {"multivariate_normal": 4, "orthogonal": 16}

# Errors of JAX that are limits of its implementation, where here the draw is defined.
DEFINED_HERE = {"poisson": "every generator"}


def array(value, name: str):
    if name in ("a", "x", "logits") and isinstance(value, str):
        return eval(value, {"arange": jnp.arange, "log": lambda x: jnp.log(jnp.array(x))})
    if name == "p" and isinstance(value, str):
        return eval(value, {"array": jnp.array})
    return jnp.array(value) if isinstance(value, list) and name != "shape" else value


def arguments(record: dict) -> dict:
    given = {k: v for k, v in record["args"].items() if k not in ("cast_to", "digest")}
    return {k: tuple(v) if k == "shape" else array(v, k) for k, v in given.items()}


def vmapped_split(key, num, draw):
    return jax.vmap(draw)(random.split(key, num))


def draw(record: dict):
    """The value of a record, as an array."""
    key, given, name = random.key(record["seed"], impl=record["impl"]), arguments(record), record["name"]
    if name.startswith("nn.initializers."):
        make = getattr(importlib.import_module("catena.nn.initializers"), name.rpartition(".")[2])
        return make()(key, given["shape"], given["dtype"])
    if name == "split_then_split":
        return random.key_data(random.split(random.split(key)[1]))
    if name == "split_vmap":
        return random.key_data(jax.vmap(random.split)(random.split(key)))
    if name == "fold_in_vmap":
        return random.key_data(jax.vmap(random.fold_in, (None, 0))(key, jnp.arange(3)))
    if name.endswith("_vmap_split"):
        sampler = getattr(random, name.removesuffix("_vmap_split"))
        return vmapped_split(key, given["num"], lambda k: sampler(k, given["shape"]))
    if name == "key_data":
        return random.key_data(key)
    found = getattr(random, name)(key, **given)
    return random.key_data(found) if name in ("split", "fold_in", "clone") else found


def recorded_bits(record: dict) -> np.ndarray:
    dtype = np.dtype(record["args"].get("cast_to", record["result_dtype"]))
    if "bits" in record:
        part = {8: 4, 16: 8}.get(dtype.itemsize, dtype.itemsize) if dtype.kind == "c" else dtype.itemsize
        flat = [int(x, 16) for x in np.ravel(record["bits"])]
        return np.array(flat, f"uint{8 * part}").view(dtype).reshape(record["result_shape"])
    kind = dtype if dtype.kind in "iu" else None  # 64-bit integers must not pass through floats
    return np.array(record["values"], kind).astype(dtype).reshape(record["result_shape"])


def key_of_order(x: np.ndarray) -> np.ndarray:
    """Floats as integers in their order, neighbours being neighbours."""
    bits = x.view(f"int{8 * x.dtype.itemsize}").astype(np.int64)
    smallest = np.int64(-(2 ** (8 * x.dtype.itemsize - 1)))
    return np.where(bits < 0, smallest - bits, bits)


def parts(x: np.ndarray) -> np.ndarray:
    return (
        np.ascontiguousarray(x).reshape(-1).view(x.real.dtype)
        if x.dtype.kind == "c"
        else np.ascontiguousarray(x).reshape(-1)
    )


def distance(found: np.ndarray, wanted: np.ndarray) -> int:
    """The largest distance in units in the last place; NaNs are equal."""
    a, b = parts(found), parts(wanted)
    if not a.size:
        return 0
    if a.dtype.kind in "biu":
        return 0 if np.array_equal(a, b) else 10**9
    nan = np.isnan(a) & np.isnan(b)
    with np.errstate(over="ignore"):
        return int(np.max(np.where(nan, 0, np.abs(key_of_order(a) - key_of_order(b)))))


# What may be said of a record; the first five hold.
EQUAL, ULP, WIDER = "equal bit for bit", "within 2 units in the last place", "within the bound of their distribution"
ENDS, ERROR, DEFINED = "long draws within these at both ends", "the recorded error", "drawn where JAX raises"
HELD = (EQUAL, ULP, WIDER, ENDS, ERROR, DEFINED)


def compare(record: dict) -> str:
    """One of the words above, or what is wrong with the draw of a record."""
    value = draw(record)
    if "cast_to" not in record["args"] and value.dtype.name != record["result_dtype"]:
        return f"dtype {value.dtype}"
    if list(value.shape) != record["result_shape"]:
        return f"shape {value.shape}"
    found = np.asarray(value)
    if "cast_to" in record["args"]:
        found = found.astype(record["args"]["cast_to"])
    if "sha256_little_endian_bytes" in record:
        return compare_long(found, record)
    wanted, name = recorded_bits(record), record["name"]
    if np.array_equal(found, wanted, equal_nan=found.dtype.kind in "fc"):
        return EQUAL
    if name in EXACT:
        return f"{found} != {wanted}"
    if name.rpartition(".")[2] in SUMS:
        bound = SUMS[name.rpartition(".")[2]] * np.finfo(found.real.dtype).eps * np.abs(wanted).max()
        return WIDER if np.abs(found - wanted).max() <= bound else f"{found} != {wanted}"
    off = distance(found, wanted)
    if off <= ULPS:
        return ULP
    close = off <= allowed(name, found.dtype) or near(found, wanted, name)
    return WIDER if close else f"{off} ulp: {found} != {wanted}"


def compare_long(found: np.ndarray, record: dict) -> str:
    """The same where a digest and both ends were recorded."""
    digest = hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest()
    if digest == record["sha256_little_endian_bytes"]:
        return EQUAL
    return ENDS if record["name"] not in EXACT and close_ends(found, record) else "digest"


def allowed(name: str, dtype) -> int:
    """How many units in the last place a draw may be off."""
    double = dtype in (np.float64, np.complex128)
    return max(COMPOSED.get(name, ULPS), JAX_DOUBLE.get(name, ULPS) if double else 0)


def near(found: np.ndarray, wanted: np.ndarray, name: str) -> bool:
    """Whether a difference that cancels is off by a few units of its terms."""
    if name not in CANCELLING:
        return False
    units = CANCELLING[name] * max(1, JAX_DOUBLE.get(name, 1) if found.dtype == np.float64 else 1)
    eps = float(ml_dtypes.finfo(found.dtype).eps)
    found, wanted = found.astype(float), wanted.astype(float)
    return bool(np.all(np.abs(found - wanted) <= units * eps * np.maximum(1, np.abs(wanted))))


def close_ends(found: np.ndarray, record: dict) -> bool:
    """Of a long draw whose digest differs: whether the recorded first and last values are close."""
    ends = np.concatenate([found.ravel()[:4], found.ravel()[-4:]])
    wanted = np.array([float(x) for x in record["first4"] + record["last4"]]).astype(found.dtype)
    return distance(ends, wanted) <= allowed(record["name"], found.dtype)


@contextlib.contextmanager
def flags(record: dict):
    with jax.enable_x64(record["x64"]), jax.threefry_partitionable(record["partitionable"] is not False):
        yield


def verdict(record: dict) -> str:
    """What is to be said of a record."""
    with flags(record):
        if "error" not in record:
            return compare(record)
        if record["name"] in DEFINED_HERE:
            draw(record)
            return DEFINED
        try:
            draw(record)
        except Exception as error:  # noqa: BLE001  (its type is what is asked)
            return ERROR if type(error).__name__ == record["error"][0] else f"raised {error!r}"
        return f"no {record['error'][0]}"


NAMES = sorted({r["name"] for r in RECORDS})

# The samplers whose kernels take longest to compile for each new shape, dtype and generator: of these one of 64
# records is drawn in every run, of others one of 24, from another place on for each; `make random-vectors` draws all.
COSTLY = {
    "ball", "bernoulli", "beta", "binomial", "categorical", "chisquare", "choice", "dirichlet", "double_sided_maxwell",
    "exponential", "f", "gamma", "generalized_normal", "gumbel", "loggamma", "multinomial", "normal", "permutation",
    "poisson", "t", "truncated_normal", "uniform",
}  # fmt: skip


def records_of(name: str) -> list[dict]:
    """The records of a name that this run draws."""
    records = [r for r in RECORDS if r["name"] == name]
    of = min(64 if name in COSTLY else 24, len(records))
    return alternate(of, records, len(name))


def label(record: dict) -> str:
    return json.dumps({k: v for k, v in record.items() if k not in ("values", "bits", "first4", "last4")})


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize("name", NAMES)
def test_recorded_values(name, record_property):
    """The records of a name. The summary that pytest ends with says how many held (`tests/conftest.py`)."""
    records = records_of(name)
    verdicts = [verdict(r) for r in records]
    record_property("recorded random vectors", dict(Counter(v if v in HELD else "WRONG" for v in verdicts)))
    wrong = [f"{label(r)}: {v}" for r, v in zip(records, verdicts, strict=True) if v not in HELD]
    assert not wrong, f"{len(wrong)} of {name}:\n" + "\n".join(wrong[:20])


def test_all_records_are_here():
    """The file in the tests is the one that was recorded, where that is at hand."""
    assert len(RECORDS) == 2241 and len(NAMES) == 55
    original = Path(__file__).resolve().parents[3] / "shared" / "api" / "random_vectors.json"
    if original.exists():
        assert json.loads(original.read_text())["records"] == RECORDS


def test_threefry_known_answers():
    from catena.lax.ciphers import threefry_2x32

    for key, count, out in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ):
        found = threefry_2x32([np.uint32(k) for k in key], [np.uint32(c) for c in count])
        assert tuple(int(x) for x in found) == out
