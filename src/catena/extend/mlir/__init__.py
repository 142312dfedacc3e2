"""What compilation rules are written with where they write MLIR: types (``ir``), operations (``dialects``), programs as
bytes. Operations are those of the package, so that what such rules write is compiled as everything else is.
"""

from __future__ import annotations

from typing import Any

from catena.core.unbuilt import absent as _absent
from catena.extend.mlir import dialects as dialects
from catena.extend.mlir import ir as ir
from catena.interpreters.modules import module_to_bytecode as _module_to_bytecode
from catena.lax.resharding import reshard as _reshard
from catena.lax.resharding import with_sharding_constraint as _with_sharding_constraint
from catena.version import __version__ as _version


def lower_with_sharding_in_types(ctx: Any, op: Any, aval: Any) -> Any:
    """A value that lies as its type says.

    Arguments:
      ctx: what the rule is told.
      op: the value.
      aval: its type.
    Returns:
      The value; constrained, where the type says how it is split.
    Raises:
      ValueError: the value is of another shape.

    >>> import catena as jax
    >>> from catena.extend import mlir
    >>> x = jax.numpy.ones(3)
    >>> mlir.lower_with_sharding_in_types(None, x, jax.typeof(x)) is x
    True
    """
    if op.shape != aval.shape:
        raise ValueError(f"lower_with_sharding_in_types: a value of shape {op.shape} is none of type {aval}")
    sharding = aval.sharding
    if sharding.mesh.empty or not any(part is not None for part in sharding.spec):
        return op
    place = _with_sharding_constraint if sharding.mesh.are_all_axes_auto else _reshard
    return place(op, sharding)


def serialize_portable_artifact(mlir_module: ir.Module, target: str, use_mixed_serialization: bool = False) -> bytes:
    """A program as bytes, as of ``mlir.module_to_bytecode``.

    Arguments:
      mlir_module: the program.
      target: the version that is to read it: this one.
      use_mixed_serialization: whether parts are to be in another format: no.
    Raises:
      ValueError: another version, or mixed formats.

    >>> import catena as jax
    >>> from catena.extend import mlir
    >>> data = mlir.serialize_portable_artifact(mlir.ir.Module("empty"), jax.__version__)
    >>> mlir.deserialize_portable_artifact(data).name
    'empty'
    """
    if target != _version or use_mixed_serialization:
        mixed = " and one format" if use_mixed_serialization else ""
        raise ValueError(f"serialize_portable_artifact writes for version {_version}{mixed} only, got {target!r}")
    return _module_to_bytecode(mlir_module)


def deserialize_portable_artifact(mlir_module: bytes, context: ir.Context | None = None) -> ir.Module:
    """The program of which these are the bytes.

    Arguments:
      mlir_module: what ``serialize_portable_artifact`` gave.
      context: what its types belong to.
    Raises:
      TypeError, ValueError: these are not the bytes of a program.
    """
    return ir.Module.parse(mlir_module, context)


_absent(globals())
