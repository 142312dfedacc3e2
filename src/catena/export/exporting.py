"""Tracing functions so that they outlive their process, and reading them again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.ref import Cell
from catena.core.struct import ShapeDtypeStruct
from catena.core.trace import Tracer
from catena.export.container import unpack
from catena.export.exported import DisabledSafetyCheck, Exported, checked_platforms, read_function
from catena.export.polymorphic import export_for_lengths, read_for_lengths
from catena.export.portable import kept_arguments, portable
from catena.export.programs import read_programs, write_programs
from catena.export.values import expect
from catena.transform import symbolic_shapes
from catena.transform.grad import vjp
from catena.transform.jit import JitFunction, jit


def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Trace a jitted function so that its program can be written to a file, and run in another process.

    Arguments:
      fun_jit: what ``jit`` returned.
      platforms: names of the platforms that it is for; by default the one it is exported on.
      disabled_checks: which checks are not made.
    Returns:
      A function of arguments, or ``ShapeDtypeStruct``s, that returns the ``Exported`` function for their types. Their
      dimensions may be symbolic (``symbolic_shape``): the function is then traced several times, with numbers in place
      of these, and has to have one program for all lengths that constraints allow.
    Raises:
      ValueError: ``fun_jit`` is not jitted, or the shapes do not tell the variables of symbolic dimensions.
      NotImplementedError: its program calls Python, or users' primitives.
      InconclusiveDimensionOperation: it has other programs for other lengths.

    >>> import catena as jax, catena.numpy as jnp
    >>> mean = jax.export.export(jax.jit(lambda x: {"mean": jnp.mean(x)}))(jax.ShapeDtypeStruct((4,), jnp.float32))
    >>> data = mean.serialize(vjp_order=1)
    >>> read = jax.export.deserialize(data)
    >>> read.call(jnp.arange(4.0))
    {'mean': Array(1.5, dtype=float32)}
    >>> jax.grad(lambda x: read.call(x)["mean"])(jnp.arange(4.0))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    if not isinstance(fun_jit, JitFunction):
        raise ValueError(f"Function to be exported must be the result of `jit`, got {fun_jit!r}")
    names = checked_platforms(platforms)
    checks = tuple(disabled_checks)
    for check in checks:
        if not isinstance(check, DisabledSafetyCheck):
            raise TypeError(f"disabled_checks must be of the class DisabledSafetyCheck, got {check!r}")

    def exporting(*args: Any, **kwargs: Any) -> Exported:
        if given := symbolic_shapes.symbolic((args, kwargs)):
            return export_for_lengths(functools.partial(symbolic_shapes.at, made_for, args, kwargs), given)
        made = made_for(*args, **kwargs)
        write_programs([made._program])  # says now what cannot be written
        return made

    def made_for(*args: Any, **kwargs: Any) -> Exported:
        traced = fun_jit.trace(*args, **kwargs)
        call = traced._call
        outer = [x for x in call.outer if isinstance(x, (Tracer, Cell))]
        if outer:
            raise ValueError(f"{traced.fun_name} closes over {outer[0]!r}; pass it as an argument to export it")
        return exported_of(call.closed, traced.fun_name, traced.in_tree, traced.out_tree, names, checks)

    return exporting


def exported_of(closed: ClosedJaxpr, name: str, in_tree, out_tree, platforms, checks) -> Exported:
    """A program that was traced here, whose derivatives can be, too."""
    program = portable(closed)
    if program.effects:
        raise NotImplementedError(f"{name}: programs with effects ({set(program.effects)}) cannot be exported")

    def derivative(exported: Exported) -> Exported:
        return derivative_of(closed, exported)

    avals = tuple(closed.in_avals), tuple(program.out_avals)
    kept = kept_arguments(program)
    return Exported(name, in_tree, avals[0], out_tree, avals[1], platforms, checks, kept, program, derivative)


def derivative_of(closed: ClosedJaxpr, exported: Exported) -> Exported:
    """The derivative in reverse of a program that was traced here, by its own rules for derivatives."""
    count = len(exported.in_avals)

    def fun_vjp_jax(*args):
        _, pullback = vjp(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), *args[:count])
        return pullback(list(args[count:]))

    tangents = [a.to_tangent_aval() for a in exported.out_avals]
    types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in (*exported.in_avals, *tangents)]
    options = {"platforms": exported.platforms, "disabled_checks": exported.disabled_safety_checks}
    return export(jit(fun_vjp_jax), **options)(*types)


def deserialize(blob: bytearray) -> Exported:
    """The function that was written by ``serialize``.

    Nothing in the bytes is code: programs are built of this package's operations, and their types are checked.

    Arguments:
      blob: the bytes.
    Returns:
      The function, with as many derivatives as were written.
    Raises:
      TypeError: these are no bytes. ValueError: they do not make a function.

    >>> import catena as jax
    >>> jax.export.deserialize(b"abc")
    Traceback (most recent call last):
      ...
    ValueError: these are not the bytes of a program that this version of catena exported
    """
    head, data = unpack(blob)
    if isinstance(head, dict) and "variables" in head:
        return read_for_lengths(head, data)
    try:
        found = {k: head[k] for k in ("functions", "programs", "arrays")}
    except (KeyError, TypeError):
        raise ValueError("this exported program has no functions, programs and arrays") from None
    programs = read_programs(found["programs"], found["arrays"], data)
    exported = None
    for item in reversed(expect(found["functions"], list, "the functions")):
        exported = read_function(item, programs, exported)
    if exported is None:
        raise ValueError("there is no function in these bytes")
    return exported
