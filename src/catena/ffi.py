"""Calls of C functions from transformed and compiled programs (``jax.ffi``)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from catena.core.named import NamedTuple
from catena.core.namespace import shown as _shown
from catena.core.trace import leaf_value as _leaf_value
from catena.core.traceback import api_boundary as _api_boundary
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import get_aval as _get_aval
from catena.interpreters.mlir import LoweringRule as _LoweringRule
from catena.lax import foreign as _foreign
from catena.lax.callbacks import check_method as _check_method
from catena.lax.callbacks import result_types as _result_types

_python = ctypes.pythonapi
_Pointer, _Text, _Object = ctypes.c_void_p, ctypes.c_char_p, ctypes.py_object
_capsule = ctypes.PYFUNCTYPE(_Object, _Pointer, _Text, _Pointer)(("PyCapsule_New", _python))
_address = ctypes.PYFUNCTYPE(_Pointer, _Object, _Text)(("PyCapsule_GetPointer", _python))

_in_capsules: dict[int, Any] = {}  # by address: functions of plain C, whose signature a capsule does not hold


def pycapsule(funcptr: Any) -> Any:
    """A capsule around the address of a C function.

    Arguments:
      funcptr: a function of a library that ``ctypes`` has loaded, a pointer, or an address. What its ``argtypes`` say,
        if there are any, is remembered.
    Returns:
      A ``PyCapsule``.

    >>> import ctypes
    >>> from catena import ffi
    >>> type(ffi.pycapsule(ctypes.CDLL(None).abs)).__name__
    'PyCapsule'
    """
    address = funcptr if isinstance(funcptr, int) else ctypes.cast(funcptr, ctypes.c_void_p).value
    if not address:
        raise ValueError("pycapsule takes the address of a function, got a null pointer")
    if getattr(funcptr, "argtypes", None) is not None:
        _in_capsules[address] = funcptr
    return _capsule(address, None, None)


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Give a C function a name, by which ``ffi_call`` finds it.

    Arguments:
      name: the name. Who had it before is forgotten.
      fn: a function of plain C: a ``ctypes`` function with ``argtypes``, or a capsule of one (see ``ffi_call``). Other
        capsules, or dicts of them, are what ``api_version`` says.
      platform: ``"cpu"``; functions for other platforms are for other machines.
      api_version: of a capsule: 0 for ``void f(void *out, const void **in)``, 1 for a handler that reads XLA's call
        frame. The latter is kept, and an error where it is called.
      kwargs: what XLA is told besides of such a handler.
    Raises:
      TypeError: ``fn`` is no function of C. ValueError: ``api_version`` is neither 0 nor 1.

    >>> import catena as jax, catena.numpy as jnp, ctypes
    >>> from catena import ffi
    >>> copy = ctypes.CDLL(None).strcpy  # of two addresses
    >>> copy.argtypes, copy.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    >>> ffi.register_ffi_target("copy_string", copy)
    """
    if api_version not in (0, 1):
        raise ValueError(f"register_ffi_target: api_version must be 0 or 1, got {api_version!r}")
    if platform.lower() not in ("cpu", "host"):
        return
    parts = fn.values() if isinstance(fn, dict) else (fn,)
    addresses = [_address_of(part) for part in parts]
    plain = fn if getattr(fn, "argtypes", None) is not None else _in_capsules.get(addresses[0])
    if plain is not None and not isinstance(fn, dict):
        _foreign.targets[name] = _foreign.PlainC(plain)
    elif api_version == 0:
        _foreign.targets[name] = _foreign.Original(addresses[0])
    else:
        _foreign.targets[name] = _foreign.CallFrame()


def register_ffi_type(name: str, type_registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Keep a type of state that handlers of XLA's call frame have, as the handlers are kept: who calls one is told.

    Arguments:
      name: its name; who had it before is forgotten.
      type_registration: capsules: of the number of the type, ``type_id``, and of what is known of it, ``type_info``.
      platform: ``"cpu"``; types for other platforms are for other machines.
    Raises:
      TypeError, ValueError: an argument is not as described.

    >>> import ctypes
    >>> from catena import ffi
    >>> number = ctypes.c_int64()
    >>> ffi.register_ffi_type("counter", {"type_id": ffi.pycapsule(ctypes.addressof(number))})
    """
    if not isinstance(name, str):
        raise TypeError(f"register_ffi_type: name must be a string, got {name!r}")
    if not isinstance(type_registration, Mapping) or not {"type_id"} <= type_registration.keys() <= _PARTS_OF_TYPES:
        raise ValueError(
            "register_ffi_type: type_registration is a dict with a capsule as type_id, and maybe one as type_info, got "
            f"{type_registration!r}"
        )
    addresses = {part: _address_of(capsule) for part, capsule in type_registration.items()}
    if platform.lower() in ("cpu", "host"):
        _foreign.types[name] = addresses


_PARTS_OF_TYPES = {"type_id", "type_info"}


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """``register_ffi_type`` with the number of the type alone.

    Arguments:
      name: its name.
      obj: a capsule of the number.
      platform: ``"cpu"``; types for other platforms are for other machines.

    >>> import ctypes
    >>> from catena import ffi
    >>> number = ctypes.c_int64()
    >>> ffi.register_ffi_type_id("counter", ffi.pycapsule(ctypes.addressof(number)))
    """
    register_ffi_type(name, {"type_id": obj}, platform)


def _address_of(fn: Any) -> int:
    if isinstance(fn, ctypes._CFuncPtr):
        return ctypes.cast(fn, ctypes.c_void_p).value or 0
    try:
        return _address(fn, None)
    except (TypeError, ValueError):
        raise TypeError(
            f"a target is a ctypes function with argtypes, or a capsule (jax.ffi.pycapsule), got {fn!r}"
        ) from None


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Sequence[int] | None] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable:
    """A function of arrays that calls a C function.

    A function of plain C is given the addresses of the operands and of the results, then the attributes:
    ``void f(const float *x, float *out, int64_t n)``. It fills the results; one that returns an int returns 0, or the
    call is an error. It must not change the operands, and may be called from any thread.

    Arguments:
      target_name: the name that it was registered by (``register_ffi_target``).
      result_shape_dtypes: what has shape and dtype, as ``ShapeDtypeStruct``; or a list or tuple of such.
      has_side_effect: whether it must be called though nobody reads the results.
      vmap_method: how it is vectorised, as in ``pure_callback``.
      input_layouts: for each operand the order of its axes in memory, the slowest first, or None for rows.
      output_layouts: the same of the result, or of each.
      input_output_aliases: from the number of an operand to that of the result that is written over a copy of it.
      custom_call_api_version: of XLA's interface, which the target knows itself: a number from 1 to 4.
      legacy_backend_config: what the first interfaces pass besides; must be None.
    Returns:
      A function of arrays; keyword arguments are attributes, passed in the order of writing: numbers, strings, and
      NumPy arrays by their address.
    Raises:
      JaxRuntimeError: called: no such target, or it returned an error. TypeError: called with what its ``argtypes`` do
        not take.

    >>> import catena as jax, catena.numpy as jnp, ctypes
    >>> from catena import ffi
    >>> largest = ctypes.CFUNCTYPE(
    ...     None, *[ctypes.POINTER(ctypes.c_float)] * 2, ctypes.c_int64
    ... )(  # as a library's
    ...     lambda x, out, n: out.__setitem__(0, max(x[:n]))
    ... )
    >>> ffi.register_ffi_target("largest", largest)
    >>> call = ffi.ffi_call("largest", jax.ShapeDtypeStruct((), "float32"), vmap_method="sequential")
    >>> jax.jit(lambda x: call(x, n=x.size))(jnp.array([1.0, 3.0, 2.0]))
    Array(3., dtype=float32)
    """
    _check_method(vmap_method)
    if custom_call_api_version not in (1, 2, 3, 4):
        raise ValueError(
            f"ffi_call: custom_call_api_version must be a number from 1 to 4, got {custom_call_api_version}"
        )
    if legacy_backend_config is not None:
        if custom_call_api_version == 4:
            raise ValueError(
                "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; got 4."
            )
        raise NotImplementedError("ffi_call: no interface that is called here passes a legacy_backend_config")
    several = isinstance(result_shape_dtypes, (list, tuple))
    for i, x in enumerate(result_shape_dtypes if several else [result_shape_dtypes]):
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise ValueError(f"ffi_call: result_shape_dtypes must have a shape and a dtype, got {x!r} as number {i}")
    aliases = dict(input_output_aliases or {})
    given_out = output_layouts if several or output_layouts is None else [output_layouts]

    @_api_boundary
    def call(*args, **attributes):
        avals, _ = _result_types(result_shape_dtypes)
        operands = [_leaf_value(x) for x in args]
        types = [_get_aval(x) for x in operands]
        layouts = _layouts("input_layouts", input_layouts, types), _layouts("output_layouts", given_out, avals)
        _check_aliases(aliases, types, avals, layouts)
        outs = _foreign.ffi_call_p.bind(
            *operands,
            target_name=target_name,
            result_avals=avals,
            has_side_effect=has_side_effect,
            vmap_method=vmap_method,
            layouts=layouts,
            aliases=tuple(sorted(aliases.items())),
            attributes=tuple((key, _foreign.attribute(key, x)) for key, x in attributes.items()),
        )
        return type(result_shape_dtypes)(outs) if several else outs[0]

    return call


def _layouts(name: str, layouts, avals) -> tuple:
    """An order of axes for each value; rows where none is given."""
    if layouts is None:
        layouts = [None] * len(avals)
    if len(layouts) != len(avals):
        raise ValueError(f"ffi_call: {name} has {len(layouts)} entries, but there are {len(avals)} arrays")
    rows = [tuple(range(a.ndim)) for a in avals]
    found = [tuple(row if x is None else x) for x, row in zip(layouts, rows, strict=True)]
    for i, (x, row) in enumerate(zip(found, rows, strict=True)):
        if tuple(sorted(x)) != row:
            raise ValueError(f"ffi_call: entry {i} of {name} must order the axes {row}, got {x}")
    return tuple(found)


def _check_aliases(aliases: dict, types, avals, layouts: tuple) -> None:
    for i, k in aliases.items():
        if not 0 <= i < len(types) or not 0 <= k < len(avals):
            raise ValueError(
                f"ffi_call: input_output_aliases maps {i} to {k}, but there are {len(types)} operands and {len(avals)} "
                "results"
            )
        if (types[i].shape, types[i].dtype) != (avals[k].shape, avals[k].dtype) or layouts[0][i] != layouts[1][k]:
            raise ValueError(
                f"ffi_call: input_output_aliases maps operand {i} of type {types[i].str_short()} to result {k} of type "
                f"{avals[k].str_short()}; types and layouts must be equal"
            )


class _Operation(NamedTuple):
    """What a compilation rule has written: its ``results``."""

    results: tuple


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence | None = None,
    result_layouts: Sequence | None = None,
    backend_config: Mapping[str, Any] | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> _LoweringRule:
    """A compilation rule, for ``mlir.register_lowering``: the primitive calls a C function.

    Arguments:
      call_target_name: the name that it was registered by.
      operand_layouts, result_layouts: a sequence with an order of axes for each operand and result, as in ``ffi_call``.
      backend_config: attributes, which precede the parameters of the primitive.
      skip_ffi_layout_processing: whether the layouts are XLA's, the fastest axis first.
      lowering_args: ``has_side_effect`` and ``operand_output_aliases``, as in ``ffi_call``.
    Returns:
      The rule.
    Raises:
      TypeError: another argument.

    >>> from catena import ffi
    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import mlir
    >>> _ = mlir.register_lowering(Primitive("halve"), ffi.ffi_lowering("halve_floats"))
    """
    build = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )
    return lambda ctx, *operands, **params: build(ctx, *operands, **params).results


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence | None = None,
    result_layouts: Sequence | None = None,
    backend_config: Mapping[str, Any] | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable:
    """A function that compilation rules call: it writes a call of a C function.

    Arguments:
      call_target_name, operand_layouts, result_layouts, backend_config, skip_ffi_layout_processing, lowering_args: as
        for ``ffi_lowering``.
    Returns:
      A function ``(ctx, *operands, **params)`` that gives the call, whose ``results`` are the values of the rule.
    Raises:
      TypeError: another argument.

    >>> from catena import ffi
    >>> from catena.extend.core import Primitive
    >>> from catena.interpreters import mlir
    >>> def rule(ctx, x, *, n):
    ...     return ffi.build_ffi_lowering_function("halve_floats")(ctx, x, n=2 * n).results
    >>> _ = mlir.register_lowering(Primitive("halve"), rule)
    """
    names = {"has_side_effect": "has_side_effect", "operand_output_aliases": "input_output_aliases"}
    unknown = sorted(lowering_args.keys() - names.keys())
    if unknown:
        raise TypeError(f"ffi_lowering takes {' and '.join(names)} besides, got {unknown}")
    if backend_config is not None and not isinstance(backend_config, Mapping):
        raise TypeError(f"ffi_lowering: backend_config must be a dict of attributes, got {backend_config!r}")
    turned = lambda xs: xs and [x if x is None else tuple(x)[::-1] for x in xs]  # noqa: E731
    if skip_ffi_layout_processing:
        operand_layouts, result_layouts = turned(operand_layouts), turned(result_layouts)
    options = {names[key]: x for key, x in lowering_args.items()}
    options |= {"input_layouts": operand_layouts, "output_layouts": result_layouts}

    def build(ctx, *operands, **params) -> _Operation:
        call = ffi_call(call_target_name, list(ctx.avals_out), **options)
        return _Operation(tuple(call(*operands, **{**(backend_config or {}), **params})))

    return build


__dir__ = _shown(globals())

_absent(globals())
