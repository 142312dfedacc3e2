"""Every array argument of every function refuses what is no array: lists, strings and other objects, by TypeError."""

import numpy as np
import pytest

import catena.numpy as jnp
from numpy_examples import EXAMPLES

# Where they are taken, as JAX does: to make arrays of them, to ask about them, or as numbers known beforehand.
TAKEN = {
    "list": set(
        "array asarray array_equal array_equiv iscomplexobj isrealobj isscalar ndim shape size pad roll histogram "
        "histogram_bin_edges".split()
    ),
    "string": set("can_cast histogram_bin_edges iscomplexobj isrealobj isscalar ndim shape size".split()),
    "object": set("histogram_bin_edges isscalar ndim shape size".split()),
}
STAND_IN = {"list": np.ndarray.tolist, "string": lambda x: "no array", "object": lambda x: object()}
OUTSIDE = {"fromfile", "fromiter", "save", "savez", "load"}
PLACES = [
    (name, i, key)
    for name, calls in EXAMPLES.items()
    for i, (args, kwargs) in enumerate(calls)
    for key, x in (*enumerate(args), *kwargs.items())
    if isinstance(x, np.ndarray) and name not in OUTSIDE
]


@pytest.mark.parametrize("kind", TAKEN)
def test_what_is_no_array_is_refused(kind):
    for place in PLACES:
        if place[0] not in TAKEN[kind]:
            refused(*place, kind)


def refused(name, i, key, kind):
    args, kwargs = list(EXAMPLES[name][i][0]), dict(EXAMPLES[name][i][1])
    given = args if isinstance(key, int) else kwargs
    given[key] = STAND_IN[kind](np.atleast_1d(given[key]))
    function = jnp
    for part in name.split("."):
        function = getattr(function, part)
    try:
        function(*args, **kwargs)
    except (TypeError, ValueError) as found:
        error = found
    else:
        pytest.fail(f"{name} takes a {kind} as {key}, in example {i}")
    if type(error) is not TypeError:
        assert (name, kind) == ("interp", "string")  # its periods and limits have strings of their own
    if kind == "list":
        assert "requires ndarray or scalar arguments, got <class 'list'>" in str(error), (name, i, key)
