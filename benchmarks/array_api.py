"""`catena.numpy` beside array-api-strict, which is the Python array API standard and nothing else.

    python benchmarks/array_api.py    # signatures, and results of every function over the standard's dtypes

Where the strict namespace computes, ours must give the same dtype, shape and values; what it refuses is not asked for,
since the standard leaves it open. `make interchange` calls this with the environment in which array-api-strict is.
"""

import inspect
import itertools
import sys
import warnings
from collections.abc import Iterator

import array_api_strict as strict
import numpy as np

import catena as jax
import catena.numpy as jnp

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
VALUES = np.array([[3, 1, 2], [1, 0, 4]])
UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf "
    "isnan log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square "
    "tan tanh trunc"
).split()
BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal "
    "floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum "
    "minimum multiply nextafter not_equal pow remainder subtract"
).split()
# Calls over one array: namespace, array -> results.
CALLS = {
    "sums": lambda xp, x: [xp.sum(x), xp.sum(x, axis=0), xp.sum(x, axis=(0, 1), keepdims=True), xp.prod(x, axis=-1)],
    "means": lambda xp, x: [xp.mean(x, axis=1), xp.var(x, axis=0), xp.std(x, correction=1.0)],
    "extremes": lambda xp, x: [xp.max(x), xp.min(x, axis=1), xp.argmax(x), xp.argmin(x, axis=0, keepdims=True)],
    "logic": lambda xp, x: [xp.all(x, axis=0), xp.any(x), xp.count_nonzero(x, axis=1)],
    "cumulative": lambda xp, x: [
        xp.cumulative_sum(x, axis=1),
        xp.cumulative_sum(x, axis=0, include_initial=True),
        xp.cumulative_prod(x, axis=1, include_initial=True),
    ],
    "differences": lambda xp, x: [xp.diff(x), xp.diff(x, axis=0), xp.diff(x, n=2)],
    "sorting": lambda xp, x: [xp.sort(x), xp.sort(x, axis=0, descending=True), xp.argsort(x, descending=True)],
    "searching": lambda xp, x: [*xp.nonzero(x), xp.where(x == x, x, x), xp.searchsorted(xp.sort(x[0, :]), x[1, :])],
    "sets": lambda xp, x: [xp.unique_values(x), *xp.unique_counts(x), *xp.unique_all(x), *xp.unique_inverse(x)],
    "shapes": lambda xp, x: [
        xp.reshape(x, (3, 2)),
        xp.permute_dims(x, (1, 0)),
        xp.expand_dims(x, axis=-1),
        xp.squeeze(x[:1, :], 0),
        xp.flip(x),
        xp.roll(x, 1, axis=1),
        xp.tile(x, (2, 1)),
        xp.repeat(x, 2, axis=0),
        xp.moveaxis(x, 0, 1),
        *xp.unstack(x),
        xp.concat([x, x], axis=None),
        xp.stack([x, x], axis=1),
        *xp.broadcast_arrays(x, x[0, :]),
        xp.broadcast_to(x, (2, 2, 3)),
    ],
    "taking": lambda xp, x: [
        xp.take(x, xp.asarray([1, 0]), axis=1),
        xp.take_along_axis(x, xp.asarray([[0], [1]]), axis=1),
        xp.tril(x),
        xp.triu(x, k=1),
        x[..., ::-1],
        x[x == x],
        *xp.meshgrid(x[0, :], x[1, :], indexing="ij"),
    ],
    "making": lambda xp, x: [
        xp.zeros_like(x),
        xp.ones_like(x),
        xp.full_like(x, 1),
        xp.empty_like(x, dtype=xp.float32) * 0,
        xp.asarray(x, copy=True),
        xp.eye(3, k=1, dtype=x.dtype),
        xp.full(2, 1),
        xp.full((), 1.0),
        xp.full(1, True),
        xp.full(1, 1j),
        xp.arange(4),
        xp.arange(0, 1, 0.25),
        xp.arange(5, dtype=xp.float32),
        xp.linspace(0, 1, 5),
        xp.linspace(0, 1, 5, endpoint=False, dtype=xp.float32),
        xp.ones(2),
        xp.zeros(2),
    ],
    "astype": lambda xp, x: [
        xp.astype(x, getattr(xp, name)) for name in DTYPES if name >= "complex" or not is_complex(x)
    ],
    "clip": lambda xp, x: [xp.clip(x, 1, 2), xp.clip(x, max=x[0, :]), xp.clip(x, min=2)],
    "products": lambda xp, x: [
        xp.matmul(x, xp.matrix_transpose(x)),
        x @ x.mT,
        xp.tensordot(x, x, axes=((0, 1), (0, 1))),
        xp.vecdot(x, x),
        xp.linalg.outer(x[0, :], x[1, :]),
        xp.linalg.cross(x[0, :], x[1, :]),
        xp.linalg.trace(x),
        xp.linalg.diagonal(x),
        xp.linalg.matrix_power(x[:, :2], 3),
    ],
    "scalars": lambda xp, x: [x + 1, 1 - x, x * 2, x == 1, x**2, 3 // x[:, :1] if is_real(xp, x) else x, -x, +x],
    "fractions": lambda xp, x: [x + 1.5, 2.0 * x, x / 2.0, x**0.5, 1.0 - x],
    "bits": lambda xp, x: [x & 1, x | 2, x ^ 1, x << 1, x >> 1, ~x],
    "norms": lambda xp, x: [
        xp.linalg.vector_norm(x),
        xp.linalg.vector_norm(x, axis=1, ord=1),
        xp.linalg.matrix_norm(x),
        xp.linalg.matrix_norm(x, ord=2),
    ],
    "solving": lambda xp, x: [
        xp.linalg.det(x[:, :2]),
        xp.linalg.inv(x[:, :2]),
        xp.linalg.solve(x[:, :2], x),
        xp.linalg.solve(x[:, :2], x[:, 2]),
        *xp.linalg.slogdet(x[:, :2]),
        xp.linalg.matrix_rank(x),
        xp.linalg.pinv(x),
        xp.linalg.svdvals(x),
        xp.linalg.cholesky(x @ x.mT),
        xp.linalg.eigvalsh(x @ x.mT),
    ],
    "fourier": lambda xp, x: [
        xp.fft.fft(x),
        xp.fft.ifft(x, axis=0),
        xp.fft.fftn(x),
        xp.fft.fftshift(x),
        xp.fft.ifftn(x),
    ],
    "fourier of reals": lambda xp, x: [xp.fft.rfft(x), xp.fft.rfftn(x), xp.fft.ihfft(x), xp.fft.irfft(xp.fft.rfft(x))],
    "fourier of halves": lambda xp, x: [xp.fft.irfft(x), xp.fft.hfft(x), xp.fft.irfftn(x)],
}


def is_complex(x) -> bool:
    return "complex" in str(x.dtype)


def is_real(xp, x) -> bool:
    return xp.isdtype(x.dtype, ("integral", "real floating"))


def cases() -> Iterator[tuple]:
    """What is called: a name, a function of a namespace and arrays, the dtypes of the arrays."""
    for name, dtype in itertools.product(UNARY, DTYPES):
        yield name, (lambda xp, x, name=name: [getattr(xp, name)(x)]), (dtype,)
    for name, pair in itertools.product(BINARY, itertools.product(DTYPES, DTYPES)):
        yield name, (lambda xp, x, y, name=name: [getattr(xp, name)(x, y)]), pair
    for (name, fun), dtype in itertools.product(CALLS.items(), DTYPES):
        yield name, fun, (dtype,)


def differences() -> Iterator[str]:
    """Where ours is not as the standard's."""
    for name, fun, dtypes in cases():
        arrays = [values.astype(dtype) for values, dtype in zip((VALUES, VALUES[:, ::-1] % 5 + 1), dtypes)]
        try:
            expected = fun(strict, *map(strict.asarray, arrays))
        except (TypeError, ValueError, IndexError):
            continue  # the standard leaves it open
        asked = f"{name}({', '.join(dtypes)})"
        COUNT.append(asked)
        try:
            found = fun(jnp, *map(jnp.asarray, arrays))
        except Exception as error:  # whatever it raises, it is not what the standard says
            yield f"{asked}: {type(error).__name__}: {str(error)[:100]}"
            continue
        for i, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            kind = str(theirs.dtype).rpartition(".")[2]
            values = np.asarray(theirs)
            rounding = 1e-5 if kind in ("float32", "complex64") else 1e-12
            if (str(ours.dtype), ours.shape) != (kind, theirs.shape):
                yield f"{asked}[{i}]: {ours.dtype}{ours.shape}, the standard's is {kind}{theirs.shape}"
            elif not np.allclose(ours, values, rounding, rounding, equal_nan=True):
                yield f"{asked}[{i}]: {np.asarray(ours).tolist()}, the standard's is {values.tolist()}"


def signatures() -> Iterator[str]:
    """Parameters of the standard that ours do not take in the same way."""
    for prefix in ("", "linalg.", "fft."):
        theirs, ours = strict, jnp
        for part in filter(None, prefix.split(".")):
            theirs, ours = getattr(theirs, part), getattr(ours, part)
        for name in theirs.__all__:
            function = getattr(theirs, name)
            if not inspect.isfunction(function) or name.endswith("_strict_flags"):
                continue
            if not hasattr(ours, name):
                yield f"{prefix}{name} is missing"
                continue
            COUNT.append(name)
            have = inspect.signature(getattr(ours, name)).parameters.values()
            names = {p.name for p in have}
            variadic = any(p.kind == p.VAR_POSITIONAL for p in have)
            positional = [p for p in have if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            for i, p in enumerate(inspect.signature(function).parameters.values()):
                if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                    continue
                if p.kind != p.KEYWORD_ONLY and i >= len(positional) and not variadic:
                    yield f"{prefix}{name} takes {len(positional)} positional arguments, none for {p.name}"
                if p.kind != p.POSITIONAL_ONLY and p.name not in names:
                    yield f"{prefix}{name} has no parameter {p.name}"


COUNT: list[str] = []


def main() -> None:
    warnings.simplefilter("ignore")
    strict.set_array_api_strict_flags(api_version="2024.12")
    with jax.enable_x64(True):
        found = [*signatures(), *differences()]
    print("\n".join(found))
    print(f"{len(COUNT)} compared, {len(found)} differ")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
