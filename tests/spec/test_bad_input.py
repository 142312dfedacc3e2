"""What bad input gets: JAX's exception type, and the words that help (`api/behaviour-notes.md`, section 1).

Each section is a table: what the user did -> (how, exception, what the message must say). A pattern holds the
essential words only; a message may say more. What JAX accepts stands in `ACCEPTED`; what only we accept, in
`BEYOND`.
"""

import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

E = jax.errors
A = jnp.arange(3.0)
ONES = jnp.ones(2)
INTS = jnp.arange(3)


def jitted(function, *args, **options):
    return lambda: jax.jit(function, **options)(*args)


def leaked():
    saved = []
    jax.jit(lambda x: saved.append(x * 2) or x)(1.0)
    return saved[0]


def loop_forever_on(x):
    while x > 0:
        x = x - 1
    return x


def donate():
    x = jnp.arange(3.0)
    jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    return x


def deleted():
    x = jnp.arange(3.0)
    x.delete()
    return x


def with_config(name, value, function):
    def run():
        before = getattr(jax.config, name)
        jax.config.update(name, value)
        try:
            return function()
        finally:
            jax.config.update(name, before)

    return run


TRACERS = {
    "if x < 3 in jit": (
        jitted(lambda x: 1 if x < 3 else 2, 1.0),
        E.TracerBoolConversionError,
        r"traced array with shape bool\[\].*for jit.*argument x",
    ),
    "bool of an intermediate in jit": (
        jitted(lambda x: bool(x * 2 > 1), 1.0),
        E.TracerBoolConversionError,
        r"traced array with shape bool\[\].*argument x",
    ),
    "bool of a vector tracer": (
        jitted(lambda x: bool(x > 0), A),
        ValueError,
        r"truth value of an array with more than one element is ambiguous",
    ),
    "while x > 0 under vmap": (
        lambda: jax.vmap(loop_forever_on)(INTS),
        E.TracerBoolConversionError,
        r"Attempted boolean conversion of traced array with shape bool\[\]",
    ),
    "if x under jit(grad)": (
        jitted(jax.grad(lambda x: x if x > 0 else -x), 1.0),
        E.TracerBoolConversionError,
        r"shape bool\[\]",
    ),
    "np.asarray": (
        jitted(lambda x: np.asarray(x), A),
        E.TracerArrayConversionError,
        r"__array__\(\) was called on traced array with shape float32\[3\].*argument x",
    ),
    "np.sin": (jitted(lambda x: np.sin(x), A), E.TracerArrayConversionError, r"float32\[3\]"),
    "np.sin under grad": (
        lambda: jax.grad(lambda x: np.sin(x))(1.0),
        E.TracerArrayConversionError,
        r"float32\[\]",
    ),
    "int": (
        jitted(lambda x: int(x), 1),
        E.ConcretizationTypeError,
        r"concrete value is expected: traced array with shape int32\[\].*`int` function.*astype\(int\)",
    ),
    "float": (
        jitted(lambda x: float(x), 1.0),
        E.ConcretizationTypeError,
        r"`float` function.*argument x",
    ),
    "complex": (jitted(lambda x: complex(x), 1.0), E.ConcretizationTypeError, r"`complex` function"),
    "range": (
        jitted(lambda x: list(range(x)), 3),
        E.TracerIntegerConversionError,
        r"__index__\(\) method was called on traced array with shape int32\[\].*argument x",
    ),
    "an index of a list": (jitted(lambda x: [1, 2, 3][x], 1), E.TracerIntegerConversionError, r"__index__"),
    "item()": (jitted(lambda x: x.item(), 1), E.ConcretizationTypeError, r"item\(\)"),
    "tolist()": (jitted(lambda x: x.tolist(), A), E.ConcretizationTypeError, r"tolist\(\).*float32\[3\]"),
    "jnp.ones of a tracer": (
        jitted(lambda n: jnp.ones(n), 3),
        TypeError,
        r"Shapes must be 1D sequences of concrete values of integer type.*static_argnums.*argument n",
    ),
    "jnp.arange of a tracer": (
        jitted(lambda n: jnp.arange(n), 3),
        E.ConcretizationTypeError,
        r"jnp.arange argument 'stop'",
    ),
    "jnp.linspace": (
        jitted(lambda n: jnp.linspace(0, 1, n), 3),
        E.ConcretizationTypeError,
        r"'num' argument of jnp.linspace",
    ),
    "reshape": (
        jitted(lambda x, n: x.reshape(n), A, 3),
        TypeError,
        r"Shapes must be 1D sequences of concrete values of integer type",
    ),
    "jnp.nonzero": (
        jitted(lambda x: jnp.nonzero(x), INTS),
        E.ConcretizationTypeError,
        r"size argument of jnp.nonzero",
    ),
    "jnp.unique": (
        jitted(lambda x: jnp.unique(x), A),
        E.ConcretizationTypeError,
        r"size argument of jnp.unique",
    ),
    "jnp.where of one argument": (
        jitted(lambda x: jnp.where(x), INTS),
        E.ConcretizationTypeError,
        r"size argument",
    ),
    "a traced axis": (
        jitted(lambda x, a: jnp.sum(x, axis=a), A, 0),
        E.ConcretizationTypeError,
        r"axis argument must be known statically",
    ),
    "a mask": (
        jitted(lambda x: x[x > 0], A),
        E.NonConcreteBooleanIndexError,
        r"must be concrete; got bool\[3\]",
    ),
    "a traced slice bound": (
        jitted(lambda x, n: x[:n], A, 2),
        IndexError,
        r"Slice entries must be static integers.*position 0",
    ),
    "a leaked tracer": (
        lambda: leaked() + 1,
        E.UnexpectedTracerError,
        r"float32\[\].*escape the scope of the transformation.*<lambda> at .*test_bad_input.py",
    ),
}

INDEXING = {
    "a float": (lambda: A[1.0], TypeError, r"Indexer must have integer or boolean type"),
    "a string": (lambda: A["a"], TypeError, r"string indexing.*'a'"),
    "a list": (
        lambda: A[[0, 1]],
        TypeError,
        r"non-tuple sequence for multidimensional indexing is not allowed",
    ),
    "too many": (
        lambda: A[0, 0],
        IndexError,
        r"Too many indices: array is 1-dimensional, but 2 were indexed",
    ),
    "two ellipses": (lambda: A[..., ...], IndexError, r"single ellipsis"),
    "a mask of the wrong length": (
        lambda: A[np.array([True, False])],
        IndexError,
        r"boolean index did not match shape of indexed array in index 0: got \(2,\), expected.*3",
    ),
    "an empty array": (lambda: jnp.zeros((0,))[0], IndexError, r"out of bounds for axis 0 with size 0"),
    "an unknown mode": (lambda: A.at[0].get(mode="bad"), ValueError, r'Unknown gather mode "bad"'),
    "an unknown .at method": (lambda: A.at[0].foo, AttributeError, r"foo"),
    ".at without an index": (lambda: A.at.set(1.0), AttributeError, r"set"),
    ".at[0].set of a vector": (lambda: ONES.at[0].set(jnp.ones(3)), ValueError, r"broadcast"),
    ".at[:].set of another length": (lambda: ONES.at[:].set(jnp.ones(3)), ValueError, r"float32\[2\]|\(2,\)"),
}


def assign(x):
    x[0] = 1.0


def delete_item(x):
    del x[0]


MUTATION_AND_NON_ARRAYS = {
    "x[0] = 1": (lambda: assign(A), TypeError, r"immutable.*x = x\.at\[idx\]\.set\(y\)"),
    "tracer[0] = 1": (jitted(assign, A), TypeError, r"immutable.*x = x\.at\[idx\]\.set\(y\)"),
    "del x[0]": (lambda: delete_item(A), AttributeError, r"__delitem__|delet"),
    "jnp.sum of a list": (
        lambda: jnp.sum([1, 2, 3]),
        TypeError,
        r"sum requires ndarray or scalar arguments, got <class 'list'> at position 0\.",
    ),
    "jnp.sin of a list": (
        lambda: jnp.sin([1.0]),
        TypeError,
        r"sin requires ndarray or scalar.*list.* position 0",
    ),
    "jnp.add of a list": (
        lambda: jnp.add([1], 2),
        TypeError,
        r"add requires ndarray or scalar.*list.* position 0",
    ),
    "jnp.add of a string": (lambda: jnp.add("a", 2), TypeError, r"<class 'str'>"),
    "jnp.sum of None": (
        lambda: jnp.sum(None),
        TypeError,
        r"sum requires ndarray or scalar.*NoneType.* position 0",
    ),
    "jnp.dot of tuples": (
        lambda: jnp.dot((1, 2), (3, 4)),
        TypeError,
        r"dot requires ndarray or scalar.*tuple.* position 0",
    ),
    "jnp.asarray(None)": (lambda: jnp.asarray(None), ValueError, r"None is not a valid value for jnp.array"),
    "jnp.array of a string": (lambda: jnp.array("abc"), TypeError, r"'abc' with dtype <U3 is not a valid"),
    "a ragged list": (lambda: jnp.array([[1, 2], [3]]), ValueError, r"inhomogeneous"),
    "jnp.array of an object": (lambda: jnp.array(object()), TypeError, r"dtype object is not a valid"),
    "an integer that does not fit": (lambda: jnp.asarray(2**31), OverflowError, r"2147483648.*int32"),
    "an operand that does not fit": (lambda: INTS + 2**31, OverflowError, r"2147483648"),
}

SHAPES_AND_DTYPES = {
    "lax.add of two dtypes": (
        lambda: lax.add(1.0, jnp.int32(1)),
        TypeError,
        r"add requires arguments to have the same dtypes, got float32, int32.*jnp\.add",
    ),
    "lax.add of two shapes": (
        lambda: lax.add(ONES, jnp.ones(3)),
        TypeError,
        r"add.*incompatible shapes.*\(2,\), \(3,\)",
    ),
    "lax.add of two ranks": (
        lambda: lax.add(ONES, jnp.ones((2, 2))),
        TypeError,
        r"add.*same number of dimensions",
    ),
    "lax.sin of an integer": (lambda: lax.sin(INTS), TypeError, r"sin does not accept dtype int32.*floating"),
    "lax.exp of a Python integer": (lambda: lax.exp(2), TypeError, r"exp does not accept dtype int32"),
    "+ of two shapes": (
        lambda: ONES + jnp.ones(3),
        TypeError,
        r"add got incompatible shapes for broadcasting: \(2,\), \(3,\)",
    ),
    "@ of two shapes": (
        lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)),
        TypeError,
        r"contracting dimensions.*\(3,\) and \(2,\)",
    ),
    "jnp.dot of two shapes": (
        lambda: jnp.dot(jnp.ones((2, 3)), ONES),
        TypeError,
        r"contracting.*\(3,\) and \(2,\)",
    ),
    "1.0 @ x": (
        lambda: jnp.float32(1.0) @ A,
        ValueError,
        r"matmul input operand 0 must have ndim at least 1",
    ),
    "lax.dot of two shapes": (
        lambda: lax.dot(jnp.ones((2, 3)), jnp.ones((2, 3))),
        ValueError,
        r"lhs_shape=\(2, 3\)",
    ),
    "lax.dot_general": (
        lambda: lax.dot_general(jnp.ones((2, 3)), jnp.ones((2, 3)), (((1,), (0,)), ((), ()))),
        TypeError,
        r"dot_general requires contracting dimensions to have the same shape, got \(3,\) and \(2,\)",
    ),
    "concatenate of two ranks": (
        lambda: jnp.concatenate([ONES, jnp.ones((2, 2))]),
        TypeError,
        r"different numbers of dimensions: got \(2,\), \(2, 2\)",
    ),
    "concatenate of other shapes": (
        lambda: jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 2))]),
        TypeError,
        r"concatenating along dimension 0 for shapes \(2, 3\), \(2, 2\)",
    ),
    "concatenate of nothing": (lambda: jnp.concatenate([]), ValueError, r"at least one array"),
    "stack of other shapes": (lambda: jnp.stack([ONES, jnp.ones(3)]), ValueError, r"same shape"),
    "reshape to another size": (
        lambda: A.reshape(2, 2),
        TypeError,
        r"cannot reshape array of shape \(3,\) \(size 3\) into shape \(2, 2\) \(size 4\)",
    ),
    "reshape with two unknowns": (lambda: A.reshape(-1, -1), TypeError, r"only specify one unknown axis"),
    "transpose by no permutation": (
        lambda: jnp.transpose(jnp.ones((2, 3)), (0, 0)),
        TypeError,
        r"permutation.*\(0, 0\).*\(2, 3\)",
    ),
    "squeeze of an axis longer than 1": (lambda: jnp.squeeze(A, 0), ValueError, r"axis to squeeze.*\(3,\)"),
    "the first axis of a scalar": (
        lambda: jnp.sum(jnp.float32(3), axis=0),
        ValueError,
        r"axis 0 is out of bounds for array of dimension 0",
    ),
    "the last axis of a scalar": (
        lambda: jnp.argmax(jnp.float32(3), axis=-1),
        ValueError,
        r"axis -1 is out of bounds for array of dimension 0",
    ),
    "the running sum along an axis of a scalar": (
        lambda: jnp.cumsum(jnp.float32(3), axis=0),
        ValueError,
        r"axis 0 is out of bounds for array of dimension 0",
    ),
    "jit of no function": (lambda: jax.jit(None), TypeError, r"Expected a callable value, got None"),
    "an axis out of bounds": (
        lambda: jnp.sum(A, axis=3),
        ValueError,
        r"axis 3 is out of bounds for array of dimension 1",
    ),
    "expand_dims out of bounds": (
        lambda: jnp.expand_dims(A, 5),
        ValueError,
        r"axis 5 is out of bounds for array of dimension 2",
    ),
    "broadcast_to": (lambda: jnp.broadcast_to(A, (2, 2)), ValueError, r"float32\[3\].*float32\[2,2\]"),
    "where of two arguments": (lambda: jnp.where(A > 0, A), (TypeError, ValueError), r"where"),
    "clip by its old names": (
        lambda: jnp.clip(A, 0, a_min=1),
        TypeError,
        r"unexpected keyword argument 'a_min'",
    ),
    "einsum": (
        lambda: jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((2, 2))),
        ValueError,
        r"'j' for operand 1",
    ),
    "an uneven split": (
        lambda: jnp.split(A, 2),
        ValueError,
        r"array split does not result in an equal division",
    ),
    "argmax of nothing": (lambda: jnp.argmax(jnp.zeros(0)), ValueError, r"argmax of an empty sequence"),
    "max of nothing": (
        lambda: jnp.max(jnp.zeros(0)),
        ValueError,
        r"zero-size array to reduction operation max",
    ),
    "out= of a ufunc": (lambda: jnp.add(A, A, out=A), NotImplementedError, r"out argument"),
    "out= of sum": (lambda: jnp.sum(A, out=A), NotImplementedError, r"'out' argument to jnp.sum"),
    "an unknown name in numpy": (lambda: jnp.foo, AttributeError, r"numpy' has no attribute 'foo'"),
    "an unknown name": (lambda: jax.foo, AttributeError, r"has no attribute 'foo'"),
}


def no_rule(make):
    """A function with custom derivatives of which none is given."""
    return jax.grad(make(lambda x: x))


def custom_vjp(bwd=lambda _, ct: (ct,), fwd=lambda x: (x, None)):
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(fwd, bwd)
    return lambda: jax.grad(f)(1.0)


def custom_jvp(rule):
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(rule)
    return lambda: jax.grad(f)(1.0)


DIFFERENTIATION = {
    "grad of an integer": (
        lambda: jax.grad(lambda x: x * 2.0)(1),
        TypeError,
        r"grad requires real- or complex-valued inputs.*got int32.*allow_int",
    ),
    "grad of a vector function": (
        lambda: jax.grad(lambda x: x)(A),
        TypeError,
        r"only defined for scalar-output functions\. Output had shape: \(3,\)",
    ),
    "grad of an integer result": (
        lambda: jax.grad(lambda x: x.astype(int))(jnp.float32(1)),
        TypeError,
        r"grad requires real-valued outputs.*got int32.*vjp",
    ),
    "grad of a complex result": (
        lambda: jax.grad(lambda x: x * 1j)(1.0),
        TypeError,
        r"grad requires real-valued outputs.*got complex64.*holomorphic=True",
    ),
    "holomorphic grad of a real input": (
        lambda: jax.grad(lambda x: x, holomorphic=True)(1.0),
        TypeError,
        r"holomorphic=True requires inputs with complex dtype, but got float32",
    ),
    "grad of a tuple": (
        lambda: jax.grad(lambda x: (x, x))(1.0),
        TypeError,
        r"only defined for scalar-output functions\. Output was \(",
    ),
    "grad of None": (lambda: jax.grad(lambda x: None)(1.0), TypeError, r"Output was None"),
    "grad of a string": (
        lambda: jax.grad(lambda x: x)("a"),
        TypeError,
        r"'a' of type <class 'str'> is not a valid",
    ),
    "grad of a missing argument": (
        lambda: jax.grad(lambda x: x, argnums=3)(1.0),
        TypeError,
        r"argnums=3 requires at least 4 positional arguments.*got only 1",
    ),
    "has_aux without aux": (
        lambda: jax.grad(lambda x: x, has_aux=True)(1.0),
        TypeError,
        r"aux output to return a two-element tuple, but got type",
    ),
    "jvp of other dtypes": (
        lambda: jax.jvp(lambda x: x, (1.0,), (1,)),
        TypeError,
        r"jvp.*float32.*tangent dtype int32",
    ),
    "jvp of other shapes": (
        lambda: jax.jvp(lambda x: x, (A,), (ONES,)),
        ValueError,
        r"primal and tangent shapes.*\(3,\).*\(2,\)",
    ),
    "jvp of no tuples": (
        lambda: jax.jvp(lambda x: x, 1.0, 1.0),
        TypeError,
        r"tuples or lists; found float and float",
    ),
    "jvp of other trees": (
        lambda: jax.jvp(lambda x: x, ((1.0, 2.0),), (1.0,)),
        TypeError,
        r"same tree structure.*PyTreeDef\(\(\(\*, \*\),\)\).*PyTreeDef\(\(\*,\)\)",
    ),
    "vjp of another shape": (
        lambda: jax.vjp(lambda x: x, A)[1](ONES),
        ValueError,
        r"got float32\[2\], but expected float32\[3\]",
    ),
    "vjp of another structure": (
        lambda: jax.vjp(lambda x: (x, x), A)[1](A),
        ValueError,
        r"tree structure.*<lambda> at .*.*tuple",
    ),
    "vjp of another dtype": (
        lambda: jax.vjp(lambda x: x, A)[1](INTS),
        ValueError,
        r"got int32\[3\], but expected float32\[3\]",
    ),
    "jacfwd of an integer": (
        lambda: jax.jacfwd(lambda x: x)(1),
        TypeError,
        r"jacfwd requires real-valued inputs.*int32",
    ),
    "jacrev of an integer": (
        lambda: jax.jacrev(lambda x: x)(1),
        TypeError,
        r"jacrev requires real- or complex-valued inputs.*int32",
    ),
    "linearized function of another shape": (
        lambda: jax.linearize(lambda x: x, A)[1](ONES),
        ValueError,
        r"float32\[2\].*float32\[3\]",
    ),
    "linear_transpose of sin": (
        lambda: jax.linear_transpose(jnp.sin, 1.0)(1.0),
        NotImplementedError,
        r"Transpose rule.*'sin'",
    ),
    "custom_jvp without a rule": (
        lambda: no_rule(jax.custom_jvp)(1.0),
        AttributeError,
        r"No JVP defined.*defjvp",
    ),
    "custom_vjp without a rule": (
        lambda: no_rule(jax.custom_vjp)(1.0),
        AttributeError,
        r"No VJP defined.*defvjp",
    ),
    "bwd returns no tuple": (custom_vjp(bwd=lambda _, ct: ct), TypeError, r"bwd rule must produce.*tuple"),
    "bwd returns too many": (
        custom_vjp(bwd=lambda _, ct: (ct, ct)),
        TypeError,
        r"bwd rule must produce.*number of arguments",
    ),
    "bwd returns another shape": (
        custom_vjp(bwd=lambda _, ct: (ONES,)),
        ValueError,
        r"bwd rule produced an output of type float32\[2\] corresponding to an input of type float32\[\]",
    ),
    "fwd returns no pair": (
        custom_vjp(fwd=lambda x: x),
        TypeError,
        r"fwd rule <lambda> for function <lambda> must produce a pair",
    ),
    "the jvp rule returns no pair": (
        custom_jvp(lambda primals, tangents: primals[0]),
        TypeError,
        r"JVP rule <lambda> for function <lambda> must produce a pair",
    ),
    "the jvp rule returns another shape": (
        custom_jvp(lambda primals, tangents: (primals[0], jnp.zeros(3))),
        TypeError,
        r"Expected float32\[\].*but got float32\[3\]",
    ),
}

VMAP_AND_COLLECTIVES = {
    "two sizes": (
        lambda: jax.vmap(lambda x, y: x)(ONES, A),
        ValueError,
        r"inconsistent sizes for array axes.*size 2: axis 0 of argument x of type float32\[2\]"
        r".*size 3: axis 0 of argument y of type float32\[3\]",
    ),
    "two sizes in a tree": (
        lambda: jax.vmap(lambda d: d)({"a": ONES, "b": A}),
        ValueError,
        r"inconsistent sizes.*argument d\['a'\].*argument d\['b'\]",
    ),
    "a scalar": (
        lambda: jax.vmap(lambda x: x)(1.0),
        ValueError,
        r"axis 0.*rank should be at least 1, but is only 0",
    ),
    "an axis too large": (
        lambda: jax.vmap(lambda x: x, in_axes=2)(A),
        ValueError,
        r"axis 2.*rank should be at least 3, but is only 1 \(its shape is \(3,\)\)",
    ),
    "in_axes too short": (
        lambda: jax.vmap(lambda x, y: x, in_axes=(0,))(A, A),
        ValueError,
        r"in_axes.*len\(in_axes\)=1, len\(args\)=2",
    ),
    "nothing to map": (
        lambda: jax.vmap(lambda x: x, in_axes=None)(A),
        ValueError,
        r"at least one non-None value in in_axes",
    ),
    "no arguments": (
        lambda: jax.vmap(lambda: 1.0)(),
        ValueError,
        r"at least one argument containing an array",
    ),
    "in_axes of another type": (
        lambda: jax.vmap(lambda x: x, in_axes="a")(A),
        TypeError,
        r"in_axes must be.*got a",
    ),
    "out_axes None of a mapped result": (
        lambda: jax.vmap(lambda x: x, out_axes=None)(A),
        ValueError,
        r"out_axes.*None but output was batched on axis 0",
    ),
    "an axis name of nobody": (lambda: lax.psum(1.0 * A, "i"), NameError, r"unbound axis name: i"),
    "another axis name": (
        lambda: jax.vmap(lambda x: lax.psum(x, "j"), axis_name="i")(A),
        NameError,
        r"unbound axis name: j",
    ),
    "axis_index of nobody": (lambda: lax.axis_index("i"), NameError, r"unbound axis name: i"),
    "axis_size against the array": (
        lambda: jax.vmap(lambda x: x, axis_size=2)(A),
        ValueError,
        r"`axis_size` argument was 2.*size 3: axis 0 of argument x",
    ),
}


def compiled(*args):
    return jax.jit(lambda x: x).lower(*args).compile()


JIT_DONATION_AND_AOT = {
    "an unhashable static argument": (
        jitted(lambda x, y: x, 1.0, [2], static_argnums=1),
        ValueError,
        r"Non-hashable static arguments.*<class 'list'>, \[2\]",
    ),
    "a static array": (
        jitted(lambda x: x, A, static_argnums=0),
        ValueError,
        r"Non-hashable static arguments",
    ),
    "static_argnums out of range": (
        jitted(lambda x: x, 1.0, static_argnums=3),
        ValueError,
        r"static_argnums=\(?3,?\)?.*only accepts 1 positional argument",
    ),
    "an unknown static name": (
        jitted(lambda x: x, 1.0, static_argnames="y"),
        ValueError,
        r"invalid argnames \{'y'\} in static_argnames",
    ),
    "a string": (jitted(lambda x: x, "a"), TypeError, r"<class 'str'>.*at path x.*static_argnums"),
    "an object": (jitted(lambda x: x, object()), TypeError, r"<class 'object'>.*at path x"),
    "a string returned": (
        jitted(lambda x: "a", 1.0),
        TypeError,
        r"<lambda> at .*test_bad_input.py:\d+.* returned a value of type <class 'str'>",
    ),
    "no function": (jitted(3), TypeError, r"Expected a callable value, got 3"),
    "too many arguments": (
        jitted(lambda x: x, 1.0, 2.0),
        TypeError,
        r"takes 1 positional argument but 2 were given",
    ),
    "use after donation": (lambda: donate() + 1, (RuntimeError, ValueError), r"deleted"),
    "repr after donation": (
        lambda: repr(donate()),
        RuntimeError,
        r"Array has been deleted with shape=float32\[3\]",
    ),
    "np.asarray after deletion": (
        lambda: np.asarray(deleted()),
        RuntimeError,
        r"Array has been deleted with shape=float32\[3\]",
    ),
    "compiled for another dtype": (
        lambda: compiled(A)(INTS),
        TypeError,
        r"types for which this.*was compiled.*'x' compiled with float32\[3\] and called with int32\[3\]",
    ),
    "compiled for another shape": (
        lambda: compiled(A)(jnp.arange(4.0)),
        TypeError,
        r"'x' compiled with float32\[3\] and called with float32\[4\]",
    ),
    "compiled for another structure": (lambda: compiled((A,))(A), TypeError, r"args\[0\].*tuple"),
    "compiled, with a tracer": (
        lambda: jax.grad(lambda x: compiled(1.0)(x))(1.0),
        TypeError,
        r"Cannot apply \w+ transformations to a function lowered and compiled",
    ),
}

EQUAL_TYPES = r"must have equal types, but they differ.*carry {} has type float32\[{}\].*float32\[2\]"

CONTROL_FLOW = {
    "scan carry of another shape": (
        lambda: lax.scan(lambda c, x: (ONES, x), A, A),
        TypeError,
        r"scan body function carry input and carry output " + EQUAL_TYPES.format("c", 3),
    ),
    "scan carry of another structure": (
        lambda: lax.scan(lambda c, x: ((c, c), x), 0.0, A),
        TypeError,
        r"scan body function.*same pytree structure.*carry c is a.*tuple",
    ),
    "scan body returns no pair": (
        lambda: lax.scan(lambda c, x: c, 0.0, A),
        TypeError,
        r"scan body output must be a pair",
    ),
    "scan over nothing": (
        lambda: lax.scan(lambda c, x: (c, x), 0.0),
        ValueError,
        r"no values to scan over and `length`",
    ),
    "scan over two lengths": (
        lambda: lax.scan(lambda c, x: (c, None), 0.0, (ONES, A)),
        ValueError,
        r"different leading axis sizes: 2, 3",
    ),
    "scan of another length": (
        lambda: lax.scan(lambda c, x: (c, x), 0.0, A, length=5),
        ValueError,
        r"`length` argument of 5 which disagrees with leading axis sizes \[3\]",
    ),
    "scan over a scalar": (
        lambda: lax.scan(lambda c, x: (c, x), 0.0, 1.0),
        ValueError,
        r"no leading axis to scan over",
    ),
    "scan without a function": (
        lambda: lax.scan(3, 0.0, A),
        TypeError,
        r"scan: f argument should be a callable",
    ),
    "while body of another type": (
        lambda: lax.while_loop(lambda c: True, lambda c: ONES, 0.0),
        TypeError,
        r"while_loop body function carry input and carry output " + EQUAL_TYPES.format("c", ""),
    ),
    "while body of another structure": (
        lambda: lax.while_loop(lambda c: True, lambda c: (c, c), 0.0),
        TypeError,
        r"while_loop body function.*same pytree structure",
    ),
    "while cond not boolean": (
        lambda: lax.while_loop(lambda c: c, lambda c: c, 0.0),
        TypeError,
        r"cond_fun must return a boolean scalar.*float32\[\]",
    ),
    "while cond not scalar": (
        lambda: lax.while_loop(lambda c: c > 0, lambda c: c, A),
        TypeError,
        r"cond_fun must return a boolean scalar.*bool\[3\]",
    ),
    "while cond returns a pair": (
        lambda: lax.while_loop(lambda c: (True, True), lambda c: c, 0.0),
        TypeError,
        r"cond_fun must return a boolean scalar, but got pytree PyTreeDef\(\(\*, \*\)\)",
    ),
    "fori body of another shape": (
        lambda: lax.fori_loop(0, 3, lambda i, c: ONES, 0.0),
        TypeError,
        r"must have equal types.*float32\[\].*float32\[2\]",
    ),
    "fori bounds of two types": (
        lambda: lax.fori_loop(jnp.int32(0), jnp.int8(3), lambda i, c: c, 0.0),
        TypeError,
        r"fori_loop must have equal types, got int32 and int8",
    ),
    "cond branches of two structures": (
        lambda: lax.cond(True, lambda x: (x,), lambda x: x, 1.0),
        TypeError,
        r"branch outputs must have the same pytree structure.*true_fun is <lambda> at .*test_bad_input.py",
    ),
    "cond branches of two shapes": (
        lambda: lax.cond(True, lambda: ONES, lambda: A),
        TypeError,
        r"equal output types.*true_fun has type float32\[2\].*false_fun has type float32\[3\].*shapes",
    ),
    "cond branches of two dtypes": (
        lambda: lax.cond(True, lambda: jnp.int32(1), lambda: jnp.float32(1)),
        TypeError,
        r"equal output types.*int32\[\].*float32\[\].*dtypes do not match",
    ),
    "cond of a vector": (
        lambda: lax.cond(A > 0, lambda: 1, lambda: 2),
        TypeError,
        r"Pred must be a scalar.*of shape \(3,\)",
    ),
    "cond of a list": (
        lambda: lax.cond([True], lambda: 1, lambda: 2),
        TypeError,
        r"Pred must be a scalar, got \[True\]",
    ),
    "cond of a string": (
        lambda: lax.cond("a", lambda: 1, lambda: 2),
        TypeError,
        r"Pred must be a scalar, got a",
    ),
    "cond without functions": (
        lambda: lax.cond(True, 1, 2),
        TypeError,
        r"true_fun and false_fun arguments should be callable",
    ),
    "switch without branches": (lambda: lax.switch(0, []), ValueError, r"Empty branch sequence"),
    "switch of a float": (
        lambda: lax.switch(0.5, [lambda: 1, lambda: 2]),
        TypeError,
        r"Index type must be an integer, got 0.5",
    ),
    "map over a scalar": (
        lambda: lax.map(lambda x: x, 1.0),
        ValueError,
        r"no leading axis to scan over: 1.0",
    ),
    "associative_scan of a scalar": (
        lambda: lax.associative_scan(jnp.add, 1.0),
        (AttributeError, TypeError, ValueError),
        r"ndim|axis|dimension",
    ),
}


def leak_under_checker():
    saved = []
    with jax.checking_leaks():
        jax.jit(lambda x: saved.append(x) or x)(1.0)


def retrace_forbidden():
    with jax.no_tracing():
        jax.jit(lambda x: x + 1)(1.0)


CONFIGURATION = {
    "an unknown flag": (lambda: jax.config.update("jax_foo", 1), AttributeError, r"jax_foo"),
    "an unknown attribute": (lambda: jax.config.jax_foo, AttributeError, r"jax_foo"),
    "a value that is not one of the choices": (
        lambda: jax.config.update("jax_numpy_rank_promotion", "bad"),
        ValueError,
        r"'allow', 'warn', 'raise'.*got bad",
    ),
    "rank promotion forbidden": (
        with_config("jax_numpy_rank_promotion", "raise", lambda: jnp.ones((2, 3)) + jnp.ones(3)),
        ValueError,
        r"add on shapes \(2, 3\) \(3,\).*jax_numpy_rank_promotion='raise'",
    ),
    "dtype promotion forbidden": (
        with_config("jax_numpy_dtype_promotion", "strict", lambda: jnp.float32(1) + jnp.int32(1)),
        jax.dtypes.TypePromotionError,
        r"no available implicit dtype promotion path when jax_numpy_dtype_promotion=strict",
    ),
    "NaN checker": (
        with_config("jax_debug_nans", True, lambda: jnp.zeros(2) / jnp.zeros(2)),
        FloatingPointError,
        r"invalid value \(nan\) encountered in div",
    ),
    "infinity checker": (
        with_config("jax_debug_infs", True, lambda: jnp.ones(2) / jnp.zeros(2)),
        FloatingPointError,
        r"invalid value \(inf\) encountered in div",
    ),
    "leak checker": (leak_under_checker, Exception, r"Leaked"),
    "no_tracing": (
        retrace_forbidden,
        RuntimeError,
        r"re-tracing function <lambda> at .*for `jit`.*'no_tracing'",
    ),
}

ARRAY_PROTOCOL_AND_OPERATORS = {
    "bool of two": (
        lambda: bool(jnp.zeros(2)),
        ValueError,
        r"truth value of an array with more than one element",
    ),
    "bool of none": (lambda: bool(jnp.zeros(0)), ValueError, r"truth value of an empty array is ambiguous"),
    "int of two": (
        lambda: int(ONES),
        TypeError,
        r"Only scalar arrays can be converted to Python scalars; got arr.ndim=1",
    ),
    "float of a vector of one": (
        lambda: float(jnp.ones(1)),
        TypeError,
        r"Only scalar arrays can be converted",
    ),
    "len of a scalar": (lambda: len(jnp.float32(1)), TypeError, r"len\(\) of unsized object"),
    "len of a scalar tracer": (jitted(lambda x: len(x), 1.0), TypeError, r"len\(\) of unsized object"),
    "iter of a scalar": (lambda: iter(jnp.float32(1)), TypeError, r"iteration over a 0-d array"),
    "iter of a scalar tracer": (jitted(lambda x: list(x), 1.0), TypeError, r"iteration over a 0-d array"),
    "hash": (lambda: hash(jnp.ones(1)), TypeError, r"unhashable type"),
    "hash of a tracer": (jitted(lambda x: hash(x), 1.0), TypeError, r"unhashable type"),
    "format of a tracer": (jitted(lambda x: f"{x:.2f}", 1.0), TypeError, r"unsupported format string"),
    "+ None": (lambda: ONES + None, TypeError, r"unsupported operand type\(s\) for \+: .*'NoneType'"),
    "+ a string": (lambda: ONES + "a", TypeError, r"unsupported operand type\(s\) for \+: .*'str'"),
    "+ a list": (lambda: ONES + [1, 2], TypeError, r"unsupported operand type\(s\) for \+: .*'list'"),
    "a list +": (lambda: [1, 2] + ONES, TypeError, r"unsupported operand type\(s\) for \+: 'list'"),
    "~ of floats": (lambda: ~ONES, TypeError, r"not does not accept dtype float32.*integer, bool"),
    "<< of floats": (lambda: ONES << 1, TypeError, r"shift_left does not accept dtype float32 at position 0"),
    "- of booleans": (
        lambda: jnp.array([True]) - jnp.array([True]),
        TypeError,
        r"sub does not accept dtype bool at position 0",
    ),
    "negative boolean": (lambda: -jnp.array([True]), TypeError, r"neg does not accept dtype bool"),
    "a negative integer power": (
        lambda: INTS**-1,
        TypeError,
        r"Integers cannot be raised to negative powers",
    ),
}

SECTIONS = {
    "tracers": TRACERS,
    "indexing": INDEXING,
    "mutation and non-arrays": MUTATION_AND_NON_ARRAYS,
    "shapes and dtypes": SHAPES_AND_DTYPES,
    "differentiation": DIFFERENTIATION,
    "vmap and collectives": VMAP_AND_COLLECTIVES,
    "jit, donation, AOT": JIT_DONATION_AND_AOT,
    "control flow": CONTROL_FLOW,
    "configuration": CONFIGURATION,
    "array protocol and operators": ARRAY_PROTOCOL_AND_OPERATORS,
}


@pytest.mark.parametrize(
    ("action", "exception", "pattern"),
    [
        pytest.param(*case, id=f"{section}: {name}")
        for section, cases in SECTIONS.items()
        for name, case in cases.items()
    ],
)
def test_bad_input(action, exception, pattern):
    with pytest.raises(exception) as caught:
        action()
    assert re.search(pattern, str(caught.value), re.DOTALL), f"message: {caught.value}"


ACCEPTED = {
    "if x under grad": (
        lambda: jax.grad(lambda x: x**2 if x > 0 else -x)(1.0),
        "Array(2., dtype=float32, weak_type=True)",
    ),
    "x[None, ...]": (lambda: A[None, ...].shape, "(1, 3)"),
    "augmented assignment rebinds": (lambda: A.__add__(1), "Array([1., 2., 3.], dtype=float32)"),
    "a NumPy float64 array": (lambda: jnp.negative(np.ones(1)), "Array([-1.], dtype=float32)"),
    "concatenate of an array": (
        lambda: jnp.concatenate(jnp.ones((2, 2))),
        "Array([1., 1., 1., 1.], dtype=float32)",
    ),
    "sum of nothing": (lambda: jnp.sum(jnp.zeros(0)), "Array(0., dtype=float32)"),
    "mean of nothing": (lambda: jnp.mean(jnp.zeros(0)), "Array(nan, dtype=float32)"),
    "grad of a complex input": (
        lambda: jax.grad(lambda z: jnp.abs(z) ** 2)(0 - 1j),
        "Array(0.+2.j, dtype=complex64)",
    ),
    "value_and_grad of a list": (
        lambda: jax.value_and_grad(lambda p: p[0] * p[1])([2.0, 3.0]),
        "(Array(6., dtype=float32, weak_type=True), "
        "[Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True)])",
    ),
    "vmap with a list for in_axes": (
        lambda: jax.vmap(lambda x: x + 1, in_axes=[0])(A),
        "Array([1., 2., 3.], dtype=float32)",
    ),
    "jit of None": (lambda: jax.jit(lambda x: x)(None), "None"),
    "scan promotes a weak carry": (
        lambda: lax.scan(lambda c, x: (c + x, None), 0, A),
        "(Array(3., dtype=float32), None)",
    ),
    "cond of a float": (
        lambda: lax.cond(2.0, lambda x: x * 2, lambda x: x, 1.0),
        "Array(2., dtype=float32, weak_type=True)",
    ),
    "switch clamps its index": (
        lambda: (lax.switch(9, [lambda: 1, lambda: 2]), lax.switch(-9, [lambda: 1, lambda: 2])),
        "(Array(2, dtype=int32, weak_type=True), Array(1, dtype=int32, weak_type=True))",
    ),
    "fori_loop with static bounds under grad": (
        lambda: jax.grad(lambda x: lax.fori_loop(0, 2, lambda _, c: c * x, x))(2.0),
        "Array(12., dtype=float32, weak_type=True)",
    ),
    "1 in array": (lambda: 1 in A, "True"),
    "an array as an index": (lambda: [1.0, 2.0][jnp.array(1)], "2.0"),
    "format": (lambda: (format(jnp.int32(3), "d"), f"{jnp.float32(1.5):.2f}"), "('3', '1.50')"),
    "NumPy array + ours": (lambda: type(np.ones(2) + ONES) is type(ONES), "True"),
    "+ of booleans": (lambda: jnp.array([True]) + jnp.array([True]), "Array([ True], dtype=bool)"),
    "integer power": (lambda: jnp.power(INTS, 2), "Array([0, 1, 4], dtype=int32)"),
}


@pytest.mark.parametrize(("action", "expected"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(action, expected):
    assert repr(action()) == expected


@jax.custom_vjp
def doubled(x):
    return 2.0 * x


doubled.defvjp(lambda x: (doubled(x), None), lambda _, ct: (2.0 * ct,))

BEYOND = {
    "grad of while_loop": (
        lambda: jax.grad(lambda x: lax.while_loop(lambda c: c < 8, lambda c: c * x, x))(2.0),
        "Array(12., dtype=float32, weak_type=True)",
    ),
    "grad of fori_loop with a traced bound": (
        lambda: jax.jit(jax.grad(lambda x, n: lax.fori_loop(0, n, lambda _, c: c * x, x)))(2.0, 2),
        "Array(12., dtype=float32, weak_type=True)",
    ),
    "jvp of a custom_vjp function": (
        lambda: jax.jvp(doubled, (1.0,), (3.0,))[1],
        "Array(6., dtype=float32, weak_type=True)",
    ),
}


@pytest.mark.parametrize(("action", "expected"), BEYOND.values(), ids=BEYOND)
def test_beyond_jax(action, expected):
    assert repr(action()) == expected


WARNED = {
    "a dtype that needs x64": (
        lambda: jnp.zeros(2, dtype="float64"),
        "Array([0., 0.], dtype=float32)",
        r"float64 in zeros is not available, and will be truncated to dtype float32",
    ),
    "astype that needs x64": (
        lambda: INTS.astype("int64"),
        "Array([0, 1, 2], dtype=int32)",
        r"int64 in astype is not available, and will be truncated to dtype int32",
    ),
    "rank promotion": (
        with_config("jax_numpy_rank_promotion", "warn", lambda: (jnp.ones((2, 3)) + jnp.ones(3)).shape),
        "(2, 3)",
        r"automatic rank promotion for add on shapes \(2, 3\) \(3,\)",
    ),
    "a donated buffer of no use": (
        lambda: jax.jit(lambda x: x.sum(), donate_argnums=0)(jnp.arange(3.0)),
        "Array(3., dtype=float32)",
        r"donated buffers were not usable.*float32\[3\]",
    ),
    "a float written to integers": (
        lambda: INTS.at[0].set(1.5),
        "Array([1, 1, 2], dtype=int32)",
        r"scatter inputs have incompatible types.*float32.*int32",
    ),
}


@pytest.mark.parametrize(("action", "expected", "pattern"), WARNED.values(), ids=WARNED)
def test_warned(action, expected, pattern):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert repr(action()) == expected
    assert any(re.search(pattern, str(w.message)) for w in caught), [str(w.message) for w in caught]


# ------------------------------------------------------- nothing a user passes may crash the process


def strided():
    return np.arange(12.0, dtype=np.float32).reshape(3, 4)[::2, ::-2]


def read_only():
    x = np.arange(6.0, dtype=np.float32)
    x.flags.writeable = False
    return x


def misaligned():
    return np.frombuffer(b"\0" + np.arange(6.0, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32)


# JAX refuses the foreign-endian one; here it is converted.
STRANGE = {
    "strided": strided,
    "read-only": read_only,
    "misaligned": misaligned,
    "foreign-endian": lambda: np.arange(6.0, dtype=np.float32).astype(">f4"),
    "transposed": lambda: np.arange(6.0, dtype=np.float32).reshape(2, 3).T,
    "broadcast": lambda: np.broadcast_to(np.float32(2), (3, 4)),
    "empty": lambda: np.zeros((0,), np.float32),
    "zero-size": lambda: np.zeros((3, 0, 2), np.float32),
    "zero-dimensional": lambda: np.array(3.0, np.float32),
    "large": lambda: np.ones(1_000_003, np.float32),
}


@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
def test_strange_arrays_are_arrays(make):
    x = make()
    expected = np.ascontiguousarray(x).astype(np.float32).reshape(x.shape)

    def f(x):
        return x * 2 + 1

    for g in (f, jax.jit(f)):
        np.testing.assert_array_equal(g(jnp.asarray(x)), expected * 2 + 1)
        np.testing.assert_array_equal(jax.jit(g)(x), expected * 2 + 1)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(x * x)))(x), 2 * expected)


def test_an_array_shares_no_memory_that_can_still_be_written():
    source = np.zeros(3, np.float32)
    x, doubled_by_jit = jnp.asarray(source), jax.jit(lambda x: x)(source)
    source[:] = 7
    assert x.tolist() == doubled_by_jit.tolist() == [0, 0, 0]
    view = np.asarray(x)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


PROGRAM = """
import catena as jax
import catena.numpy as jnp


def users_function(x):
    return jnp.sum(x + jnp.ones(7))


{call}
"""


@pytest.mark.parametrize(
    "call",
    [
        "users_function(jnp.ones(3))",
        "jax.jit(users_function)(jnp.ones(3))",
        "jax.grad(users_function)(jnp.ones(3))",
        "jax.jit(jax.vmap(jax.grad(users_function)))(jnp.ones((2, 3)))",
    ],
)
def test_an_uncaught_error_ends_at_the_users_line(call, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(call=call))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment)
    assert "TypeError: add got incompatible shapes for broadcasting: (3,), (7,)." in done.stderr
    last = re.findall(r'File "(.*)", line (\d+), in (\w+)', done.stderr)[-1]
    assert last == (str(script), "7", "users_function"), done.stderr


CURES = {
    "if": (lambda: jax.jit(lambda x: x if x > 0 else -x)(1.0), "jnp.where", "static_argnames"),
    "range": (lambda: jax.jit(lambda n: [*range(n)])(3), "jax.lax.fori_loop", "argument n"),
    "NumPy": (lambda: jax.jit(lambda x: np.sin(x))(1.0), "jax.numpy", "jax.pure_callback"),
    "float": (lambda: jax.jit(lambda x: float(x))(1.0), "jax.debug.print", "argument x"),
    "format": (lambda: jax.jit(lambda x: f"{x:.2f}")(1.0), "jax.debug.print('{x:.2f}', x=x)", "argument x"),
    "static list": (lambda: jax.jit(lambda x, n: x, static_argnames="n")(1.0, n=[1]), "tuple", "list"),
    "deleted": (lambda: deleted() + 1, "donate_argnums", "x.copy()"),
    "seed for a key": (lambda: jax.random.normal(0), "jax.random.key(seed)", "Got 0"),
    "gradient of a vector": (lambda: jax.grad(lambda x: x * 2)(jnp.ones(3)), "jax.jacobian", "jnp.sum"),
    "gradient by an integer": (lambda: jax.grad(lambda x: x * 2)(3), "3.0, not 3", "argnums"),
    "64 bits": (lambda: jnp.array(2**40), "jax_enable_x64", "int32"),
    "matrices": (lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)), "(2, 3)", "(1,) of the left operand"),
    "carry": (lambda: jax.lax.scan(lambda c, x: ((c, c), x), 0.0, jnp.ones(2)), "an array", "tuple"),
    "condition": (lambda: jax.lax.while_loop(lambda x: x, lambda x: x, 0.0), "boolean scalar", "float32[]"),
}


@pytest.mark.parametrize(("action", "words"), [(action, words) for action, *words in CURES.values()], ids=CURES)
def test_messages_say_what_to_do(action, words):
    with pytest.raises(Exception) as caught:
        action()
    for word in words:
        assert word in str(caught.value)


def test_a_leaked_value_names_the_line_that_made_it():
    kept = []

    @jax.jit
    def leaks(x):
        y = x * 2
        kept.append(y)
        return y

    leaks(1.0)
    line = leaks.__wrapped__.__code__.co_firstlineno + 2
    for use in (lambda: kept[0] + 1, lambda: np.asarray(kept[0]), lambda: float(kept[0]), lambda: bool(kept[0] > 1)):
        with pytest.raises((TypeError, jax.errors.UnexpectedTracerError)) as caught:
            use()
        assert f"test_bad_input.py:{line} (leaks)" in str(caught.value)


KEY = jax.random.key(0)
EITHER = {  # what is meant, and what JAX 0.10.2 raises
    "minval": (lambda: jax.random.uniform(KEY, (2,), minval=A), ValueError, TypeError),
    "tri": (lambda: jnp.tri(-1), ValueError, TypeError),
    "split": (lambda: jnp.split(A, 0), ValueError, ZeroDivisionError),
    "categorical": (lambda: jax.random.categorical(KEY, A, axis=3), ValueError, IndexError),
}


@pytest.mark.parametrize(("action", "one", "other"), EITHER.values(), ids=EITHER)
def test_errors_are_caught_as_either_of_two(action, one, other):
    for kind in (one, other):
        with pytest.raises(kind):
            action()
