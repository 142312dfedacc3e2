"""Values that are not what they seem: odd layouts, lying classes, odd dtypes; each with every use that there is."""

import fractions
import sys

import numpy as np

import catena as jax
import catena.numpy as jnp
from attack.outcomes import Wrong, check_close, is_refusal
from catena import lax

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[2] / "tests" / "runtime"))
from test_lying_subclasses import LIES  # noqa: E402

PLAIN = np.arange(1, 7, dtype=np.float32)


def misaligned(x):
    raw = np.zeros(x.nbytes + 1, np.uint8)
    out = raw[1:].view(x.dtype)
    out[...] = x
    return out


class Boxed:
    """A class with the array protocol of NumPy."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value, dtype)


class Own(Boxed):
    """A class with the array protocol of JAX."""

    def __jax_array__(self):
        return jnp.asarray(self.value)


def liar(name):
    return lambda: np.ndarray.view(PLAIN.copy(), type("Liar", (np.ndarray,), {name: LIES[name]}))


VALUES = {
    **{f"a class that lies of {name}": liar(name) for name in LIES},
    "plain": PLAIN.copy,
    "reversed": lambda: PLAIN[::-1].copy()[::-1],
    "strided": lambda: np.repeat(PLAIN, 3)[::3],
    "misaligned": lambda: misaligned(PLAIN),
    "big-endian": lambda: PLAIN.astype(">f4"),
    "big-endian integers": lambda: PLAIN.astype(">i2"),
    "doubles": lambda: PLAIN.astype("f8"),
    "long doubles": lambda: PLAIN.astype("g"),
    "halves": lambda: PLAIN.astype("f2"),
    "bytes": lambda: PLAIN.astype("i1"),
    "objects": lambda: PLAIN.astype(object),
    "fractions": lambda: np.array([fractions.Fraction(int(x)) for x in PLAIN]),
    "text": lambda: PLAIN.astype("U4"),
    "dates": lambda: PLAIN.astype("i8").astype("M8[s]"),
    "a record": lambda: np.zeros(6, [("a", "f4"), ("b", "i4")]),
    "masked": lambda: np.ma.masked_array(PLAIN, [0, 0, 1, 0, 0, 0]),
    "a matrix": lambda: np.asmatrix(PLAIN),
    "read-only": lambda: np.frombuffer(PLAIN.tobytes(), np.float32),
    "a memory view": lambda: memoryview(PLAIN.copy()),
    "a list": PLAIN.tolist,
    "a generator": lambda: (float(x) for x in PLAIN),
    "boxed": lambda: Boxed(PLAIN),
    "its own": lambda: Own(PLAIN),
    "a range": lambda: range(1, 7),
    "a set": lambda: set(PLAIN.tolist()),
    "broadcast": lambda: np.broadcast_to(np.float32(1), (6,)),
    "deleted": lambda: [x := jnp.asarray(PLAIN), x.delete()][0],
    "an Array": lambda: jnp.asarray(PLAIN),
    "a tracer that leaked": lambda: leaked(),
    "a function": lambda: len,
    "a type of a value": lambda: jax.ShapeDtypeStruct((6,), np.float32),
}


def leaked():
    kept = []
    jax.jit(lambda x: kept.append(x))(PLAIN)
    return kept[0]


STRUCT = jax.ShapeDtypeStruct((6,), np.float32)
USES = {
    "jit": lambda x: jax.jit(lambda x: x + 0)(x),
    "jit, three times": lambda x: [f := jax.jit(lambda x: x * 1), f(x), f(x), f(x)][-1],
    "jit, closed over": lambda x: jax.jit(lambda y: y + jnp.asarray(x))(0.0),
    "jit, donated": lambda x: jax.jit(lambda x: x + 0, donate_argnums=0)(x),
    "jit, static": lambda x: jax.jit(lambda s: jnp.asarray(s) + 0, static_argnums=0)(x),
    "jit, a constant": lambda x: jax.jit(lambda: lax.add(x, np.float32(0)))(),
    "jit, sorted": lambda x: jax.jit(jnp.sort)(x),
    "jit, in a tree": lambda x: jax.jit(lambda t: t["a"][0] + 0)({"a": [x]}),
    "ahead of time": lambda x: jax.jit(lambda x: x + 0).lower(STRUCT).compile()(x),
    "eager": lambda x: jnp.add(x, 0),
    "a primitive": lambda x: lax.neg(lax.neg(x)),
    "asarray": jnp.asarray,
    "device_put": jax.device_put,
    "scan": lambda x: lax.scan(lambda c, y: (c, y), 0.0, x)[1],
    "carry": lambda x: lax.fori_loop(0, 2, lambda i, c: c + 0, x),
    "while": lambda x: lax.while_loop(lambda c: False, lambda c: c, x),
    "cond": lambda x: lax.cond(True, lambda x: x, lambda x: x, x),
    "vmap": lambda x: jax.vmap(lambda y: y + 0)(x),
    "grad": lambda x: jax.grad(lambda x: (x * x).sum() / 2)(x),
    "jit of grad": lambda x: jax.jit(jax.grad(lambda x: (x * x).sum() / 2))(x),
    "jvp": lambda x: jax.jvp(lambda x: x * 1, (x,), (x,))[1],
    "vjp": lambda x: jax.vjp(lambda x: x * 1, x)[1](x)[0],
    "checkpoint": lambda x: jax.checkpoint(lambda x: x * 1)(x),
    "set": lambda x: jnp.zeros(6).at[:].set(x),
    "index": lambda x: jnp.arange(7.0)[x],
    "concatenate": lambda x: jnp.concatenate([x]),
    "stack": lambda x: jnp.stack([x, x])[0],
    "where": lambda x: jnp.where(True, x, x),
    "product": lambda x: jnp.eye(6) @ x,
    "callback": lambda x: jax.pure_callback(lambda _: x, STRUCT, 0.0),
    "jit, callback": lambda x: jax.jit(lambda z: jax.pure_callback(lambda _: x, STRUCT, z))(0.0),
    "dlpack": jnp.from_dlpack,
    "key data": lambda x: jax.random.normal(x, (2,)) * 0 + 1,
}
RIGHT = [PLAIN, np.ones(6), np.ones(2), PLAIN[None], np.arange(7.0)[1:]]


def attacked(value, use):
    """A case: the use of the value gives the numbers in it, or words that say why not."""

    def case():
        try:
            found = np.asarray(USES[use](VALUES[value]()))
        except (AssertionError, AttributeError) as error:
            if "text" in value or not is_refusal(TypeError(str(error))):
                raise
            if value.startswith("a class that lies") or value in ("boxed", "its own", "a function", "a range"):
                return  # the words are Python's own, of what the user's class does not have
            raise
        wanted = np.arange(7.0)[1:] if use == "index" else PLAIN
        for each in [wanted, *RIGHT]:
            try:
                return check_close(found, each)
            except Wrong as error:
                wrong = error
        raise wrong

    return case


def cases():
    for value in VALUES:
        for use in USES:
            yield f"{value}: {use}", attacked(value, use)
