"""Convolutions by their definition, in double precision, and those of the package in any layout."""

import itertools

import numpy as np

import catena as jax


def padded(x, padding, dilation, fill=0):
    """The last dimensions dilated, and then padded or, where the padding is negative, cut."""
    first = x.ndim - len(padding)
    shape = [*x.shape[:first], *((n - 1) * d + 1 for n, d in zip(x.shape[first:], dilation))]
    y = np.full(shape, fill, x.dtype)
    y[(..., *(slice(None, None, d) for d in dilation))] = x
    y = np.pad(y, [(0, 0)] * first + [(max(a, 0), max(b, 0)) for a, b in padding], constant_values=fill)
    return y[(..., *(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(padding, y.shape[first:])))]


def reference(x, w, strides, padding, lhs_dilation, rhs_dilation, feature_groups=1, batch_groups=1):
    """The convolution of N C H W with O I H W by its definition, in float64."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    n, x = len(x), padded(x, padding, lhs_dilation)
    o, i, *kernel = w.shape
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, rhs_dilation)]
    out = [(s - r) // t + 1 for s, r, t in zip(x.shape[2:], reach, strides)]
    members, y = n // batch_groups, np.zeros((n // batch_groups, o, *out))
    for j in range(o):
        group = j * feature_groups // o
        first = j * batch_groups // o * members
        seen = x[first : first + members, group * i : (group + 1) * i]
        for p, q in itertools.product(*map(range, out)):
            at = [slice(a * s, a * s + r, d) for a, s, r, d in zip((p, q), strides, reach, rhs_dilation)]
            y[:, j, p, q] = (seen[:, :, at[0], at[1]] * w[j]).sum((1, 2, 3))
    return y


def convolve(x, w, layout, **options):
    """The same with operands laid out otherwise, given and returned in that of the reference."""
    numbers = {"NCHW": ("NCHW", "OIHW", "NCHW"), "NHWC": ("NHWC", "HWIO", "NHWC"), "CHWN": ("CHWN", "IHWO", "NHWC")}[
        layout
    ]
    there = lambda x, spec, order: x.transpose([order.index(d) for d in spec])  # noqa: E731
    f = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, dimension_numbers=numbers, **options))
    y = f(there(x, numbers[0], "NCHW"), there(w, numbers[1], "OIHW"))
    return y.transpose([numbers[2].index(d) for d in "NCHW"])


WAYS = [
    {"window_strides": (1, 1), "padding": ((1, 1), (1, 1))},
    {"window_strides": (2, 1), "padding": ((0, 2), (1, 0))},
    {"window_strides": (1, 1), "padding": ((2, 3), (4, 2)), "lhs_dilation": (2, 3)},
    {"window_strides": (1, 2), "padding": ((3, 2), (2, 2)), "rhs_dilation": (2, 1)},
    {"window_strides": (2, 2), "padding": ((2, 1), (2, 2)), "lhs_dilation": (2, 1), "rhs_dilation": (1, 2)},
    {"window_strides": (1, 1), "padding": ((-1, 0), (0, -2))},
]


def check(x, w, layout, **options):
    """Against the definition."""
    groups = {
        "feature_groups": options.get("feature_group_count", 1),
        "batch_groups": options.get("batch_group_count", 1),
    }
    sizes = [
        options["window_strides"],
        options["padding"],
        *(options.get(k, (1, 1)) for k in ("lhs_dilation", "rhs_dilation")),
    ]
    expected = reference(x, w, *sizes, **groups)
    got = convolve(x, w, layout, **options)
    assert got.dtype == x.dtype
    bound = reference(np.abs(x), np.abs(w), *sizes, **groups).max(initial=1)
    exact = not np.issubdtype(x.dtype, np.floating)
    np.testing.assert_allclose(got, expected, rtol=0, atol=0 if exact else 64 * np.finfo(x.dtype).eps * bound)
