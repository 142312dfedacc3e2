"""Subclasses of NumPy's arrays that say what is not so: programs read what is there, or refuse."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core.aval import ShapedArray

MANY = 1_000_000
LIES = {
    "shape": property(lambda self: (MANY,)),
    "dtype": property(lambda self: np.dtype(np.float64)),
    "ndim": property(lambda self: 5),
    "size": property(lambda self: MANY),
    "strides": property(lambda self: (10**9,)),
    "flags": property(lambda self: np.zeros(1).flags),
    "nbytes": property(lambda self: 10**9),
    "itemsize": property(lambda self: 10**6),
    "base": property(lambda self: None),
    "aval": property(lambda self: ShapedArray((MANY,), np.float32)),
    "_value": property(lambda self: np.ones(7, np.float32)),
    "_aval": property(lambda self: ShapedArray((MANY,), np.float32)),
    "_weak": True,
    "weak_type": True,
    "__array__": lambda self, *args, **kwargs: np.ones(9, np.float32),
    "__array_interface__": property(lambda self: {"shape": (MANY,), "typestr": "<f4", "data": (8, True), "version": 3}),
    "__array_function__": lambda self, *args, **kwargs: np.ones(98),
    "__array_ufunc__": lambda self, *args, **kwargs: np.ones(99),
    "__array_finalize__": lambda self, other: None,
    "__len__": lambda self: MANY,
    "__getitem__": lambda self, i: 5.0,
    "view": lambda self, *args: np.ones(4),
    "astype": lambda self, *args, **kwargs: np.ones(4),
    "reshape": lambda self, *args: np.ones(4),
    "copy": lambda self, *args: np.ones(4),
    "__hash__": lambda self: 1 // 0,
}

USES = {
    "jit": lambda x: jax.jit(lambda x: x + 0)(x),
    "jit again": lambda x: [f := jax.jit(lambda x: x * 1), f(x), f(x)][-1],
    "trees": lambda x: [
        f := jax.jit(lambda t: t["x"] * 1),
        f({"x": jnp.zeros(MANY)}),
        *[f({"x": x}) for _ in range(40)],
    ][-1],
    "donated": lambda x: jax.jit(lambda x: x + 0, donate_argnums=0)(x),
    "ahead of time": lambda x: jax.jit(lambda x: x + 0).lower(np.zeros(3, np.float32)).compile()(x),
    "eager": lambda x: jnp.add(x, 0),
    "primitive": lambda x: jax.lax.neg(jax.lax.neg(x)),
    "constant": lambda x: jax.jit(lambda: jnp.asarray(x) + 0)(),
    "scan": lambda x: jax.lax.scan(lambda c, y: (c, y), 0.0, x)[1],
    "carry": lambda x: jax.lax.fori_loop(0, 2, lambda i, c: c + 0, x),
    "cond": lambda x: jax.lax.cond(True, lambda x: x, lambda x: x, x),
    "vmap": lambda x: jax.vmap(lambda y: y + 0)(x),
    "jit of grad": lambda x: jax.jit(jax.grad(lambda x: (x * x).sum() / 2))(x),
    "device_put": jax.device_put,
    "callback": lambda x: jax.jit(lambda z: jax.pure_callback(lambda _: x, jax.ShapeDtypeStruct((3,), "float32"), z))(
        0.0
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_of_subclasses_are_not_believed(lie):
    liar = np.ndarray.view(np.arange(3, dtype=np.float32), type("Liar", (np.ndarray,), {lie: LIES[lie]}))
    for use, function in USES.items():
        try:
            result = np.asarray(function(liar))
        except (TypeError, ValueError, ZeroDivisionError) as error:
            assert str(error), use
        else:
            assert result.tolist() == [0, 1, 2], use


def test_a_program_is_not_given_what_is_not_of_its_types():
    """Each conversion may give something else: the second time, this one does."""

    class Changing(np.float32):
        shape = property(lambda self: (MANY,))

    assert jax.jit(lambda x: x + 1)(Changing(1)) == 2
