"""Programs of several functions, as compilation rules and tools write them (``mlir.lower_jaxpr_to_module``).

What a function does is a jaxpr; what is said of its arguments and results (names, shardings, layouts, donation) stands
beside it, shows in its text, and holds where the program is compiled.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catena.core.aval import ShapedArray, abstract_token
from catena.core.config import config
from catena.core.device import devices
from catena.core.dtypes import is_extended, issubdtype, prng_key
from catena.core.effects import Effect
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.named import NamedTuple
from catena.core.sharding import Sharding, SingleDeviceSharding
from catena.core.staging import DebugInfo, hoist_constants, trace_to_closed_jaxpr
from catena.export.container import pack, unpack
from catena.export.programs import read_programs, write_programs
from catena.interpreters import ir_types as ir
from catena.lax.layout_constraint import layout_constraint_p
from catena.lax.resharding import with_sharding_constraint
from catena.transform.jit import JitFunction, jit


@dataclass(frozen=True)
class Slot:
    """What is said of an argument or a result of a function."""

    type: ir.Type
    name: str = ""
    sharding: Sharding | None = None
    memory_kind: str | None = None
    layout: Any = None
    replicated: bool = False
    donated: bool = False
    alias: int | None = None  # the result that takes this argument's memory

    def attributes(self, is_result: bool) -> ir.DictAttr:
        """The same, as attributes of names that JAX's programs have."""
        said: dict[str, Any] = {
            "jax.buffer_donor": True if self.donated else None,
            "jax.result_info": self.name if is_result and self.name else None,
            "mhlo.is_same_data_across_replicas": True if self.replicated else None,
            "mhlo.layout_mode": None if self.layout is None else str(self.layout),
            "mhlo.memory_kind": self.memory_kind,
            "mhlo.sharding": None if self.sharding is None else str(self.sharding),
            "tf.aliasing_output": None if self.alias is None else ir.IntegerAttr.get(_I32, self.alias),
        }
        return ir.DictAttr.get({name: ir.attribute_of(x) for name, x in said.items() if x is not None})

    def wanted(self) -> Sharding | None:
        """Where the array is to lie; None where nothing is said."""
        sharding = self.sharding
        if self.memory_kind is not None:
            sharding = sharding or SingleDeviceSharding(devices()[0])
            sharding = sharding.with_memory_kind(self.memory_kind)
        return sharding


_I32 = ir.IntegerType.get_signless(32)


class Function:
    """A function of a program: called with values, it gives the list of its results."""

    def __init__(self, name: str, closed: ClosedJaxpr, arguments: list[Slot], results: list[Slot], public: bool):
        self.name = ir.StringAttr.get(name)
        self.visibility = ir.StringAttr.get("public" if public else "private")
        self.closed, self.arguments, self.results = closed, arguments, results
        self._called = self._jitted()

    @property
    def type(self) -> ir.FunctionType:
        """What it takes and returns."""
        return ir.FunctionType.get([s.type for s in self.arguments], [s.type for s in self.results])

    @property
    def arg_attrs(self) -> ir.ArrayAttr:
        """What is said of each argument."""
        return ir.ArrayAttr.get([s.attributes(False) for s in self.arguments])

    @property
    def res_attrs(self) -> ir.ArrayAttr:
        """What is said of each result."""
        return ir.ArrayAttr.get([s.attributes(True) for s in self.results])

    def renamed(self, name: str, public: bool) -> Function:
        """The same function under another name."""
        return Function(name, self.closed, self.arguments, self.results, public)

    def __call__(self, *values: Any) -> list:
        """The results for these values, a call in the program that is written."""
        if len(values) != len(self.arguments):
            raise TypeError(f"function {self.name.value!r} takes {len(self.arguments)} values, got {len(values)}")
        return list(self._called(*values))

    def _jitted(self, **options: Any) -> JitFunction:
        def call(*values):
            return self._run(values)

        call.__name__ = call.__qualname__ = self.name.value
        return jit(call, **options)

    def _run(self, values: Sequence) -> list:
        tokens = len(values) - len(self.closed.in_avals)  # ordered effects keep their order by themselves
        outs = eval_jaxpr(self.closed.jaxpr, self.closed.consts, *values[tokens:])
        return [*values[:tokens], *outs]

    def compiled(self) -> JitFunction:
        """The function for programs to call: arguments are donated, and arrays lie on devices, as it is said."""
        donated = [i for i, s in enumerate(self.arguments) if s.donated or s.alias is not None]
        options: dict[str, Any] = {"donate_argnums": donated, "keep_unused": True}
        places = [s.wanted() for s in self.arguments], [s.wanted() for s in self.results]
        for name, wanted in zip(("in_shardings", "out_shardings"), places, strict=True):
            if any(w is not None for w in wanted):
                options[name] = tuple(wanted) if name == "in_shardings" else wanted
        return self._jitted(**options)

    def text(self, debug_info: bool) -> str:
        """The function as text; with the user's lines, where these are asked for."""
        taken = [_shown(s.name or f"arg{i}", s, False) for i, s in enumerate(self.arguments)]
        given = [_shown("", s, True) for s in self.results]
        head = f"func.func {self.visibility.value} @{self.name.value}({', '.join(taken)}) -> ({', '.join(given)})"
        body = self.closed.pretty_print(source_info=debug_info).replace("\n", "\n    ")
        return f"  {head} {{\n    {body}\n  }}"

    def __str__(self):
        return self.text(False)


def _shown(name: str, slot: Slot, is_result: bool) -> str:
    said = slot.attributes(is_result)
    return f"%{name}: ".removeprefix("%: ") + f"{slot.type}" + (f" {said}" if len(said) else "")


class SymbolTable:
    """The functions of a program by their names."""

    def __init__(self, module: Module):
        self._functions = module.functions

    def insert(self, function: Function) -> ir.StringAttr:
        """Put a function in, with a number after its name if that is taken; the name that it has now."""
        name = function.name.value
        free = next(n for n in itertools.chain([name], (f"{name}_{i}" for i in itertools.count())) if n not in self)
        function.name = ir.StringAttr.get(free)
        self._functions[free] = function
        return function.name

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]


class Module:
    """A program: functions, of which ``main`` is the one to call."""

    def __init__(self, name: str, num_partitions: int = 1):
        self.name, self.num_partitions = name, num_partitions
        self.functions: dict[str, Function] = {}

    context = property(lambda self: ir.Context())

    @classmethod
    def parse(cls, asm: bytes, context: ir.Context | None = None) -> Module:
        """A program from what ``mlir.module_to_bytecode`` gave.

        Raises:
          TypeError: these are no bytes. ValueError: they are not those of a program.
        """
        return _read(asm)

    def main(self) -> Callable[..., list]:
        """The function ``main``, to be called: compiled for its arguments when it first is.

        Raises:
          ValueError: there is no such function, or it is to run in parts on several devices.
        """
        if "main" not in self.functions:
            raise ValueError(f"module {self.name!r} has no function main, only {list(self.functions)}")
        function = self.functions["main"]
        run = function.compiled()
        layouts = [s.layout for s in function.results]
        if all(layout is None for layout in layouts):
            return run
        return lambda *values: [_laid_out(x, layout) for x, layout in zip(run(*values), layouts, strict=True)]

    def text(self, debug_info: bool) -> str:
        """The program as text."""
        numbers = f"mhlo.num_partitions = {self.num_partitions} : i32, mhlo.num_replicas = 1 : i32"
        functions = [f.text(debug_info) for f in self.functions.values()]
        return "\n".join([f"module @{self.name} attributes {{{numbers}}} {{", *functions, "}"])

    def __str__(self):
        return self.text(False)


class Writing(threading.local):
    """What is written in this thread: the functions of the program that a rule belongs to."""

    symbols: SymbolTable | None = None


writing = Writing()


def _laid_out(x: Any, layout: Any) -> Any:
    return x if layout is None else layout_constraint_p.bind(x, layout=layout)


class ShapePolyLoweringState:
    """The variables in shapes, of which there are none, and whether a program is for several platforms.

    Raises:
      ValueError: there are variables.
    """

    def __init__(self, dim_vars: tuple[str, ...], lowering_platforms: tuple[str, ...] | None):
        if dim_vars:
            raise ValueError(f"ShapePolyLoweringState: dim_vars must be empty: shapes are numbers; got {dim_vars!r}")
        self.has_platform_index_argument = lowering_platforms is not None and len(lowering_platforms) > 1
        self.dim_vars = ("_platform_index",) if self.has_platform_index_argument else ()
        self.uses_dim_vars = self.has_platform_index_argument


class LoweringResult(NamedTuple):
    """A program that was written, and what belongs to it."""

    module: Module
    keepalive: list | None
    host_callbacks: list
    shape_poly_state: ShapePolyLoweringState


# ---- types of values


def _array_type(aval: Any) -> ir.Type:
    shape, dtype = aval.shape, aval.dtype
    if issubdtype(dtype, prng_key):
        shape, dtype = (*shape, *dtype._impl.key_shape), np.uint32  # the words, as random.key_data gives them
    elif is_extended(dtype):
        shape, dtype = dtype.physical(shape)
    return ir.RankedTensorType.get(shape, ir.type_of_dtype(dtype))


type_handlers: dict[type, Callable[[Any], Any]] = {
    ShapedArray: _array_type,
    type(abstract_token): lambda aval: ir.TokenType.get(),
}


def type_of(aval: Any) -> Any:
    """The type of the values of an aval, or a sequence of them where a value is several."""
    handler = next((type_handlers[c] for c in type(aval).__mro__ if c in type_handlers), None)
    if handler is None:
        raise TypeError(f"there is no type of values of {aval!r} of {type(aval)}; ir_type_handlers has none")
    return handler(aval)


# ---- writing them


def lower_jaxpr_to_fun(
    ctx: Any,
    name: str,
    jaxpr: ClosedJaxpr,
    effects: Sequence[Effect],
    *,
    num_const_args: int,
    main_function: bool = False,
    replicated_args: Sequence[bool] | None = None,
    in_avals: Sequence,
    arg_shardings: Sequence | None = None,
    result_shardings: Sequence | None = None,
    use_sharding_annotations: bool = True,
    input_output_aliases: Sequence[int | None] | None = None,
    xla_donated_args: Sequence[bool] | None = None,
    arg_names: Sequence[str | None] | None = None,
    result_names: Sequence[str] | None = None,
    arg_memory_kinds: Sequence[str | None] | None = None,
    result_memory_kinds: Sequence[str | None] | None = None,
    arg_layouts: Sequence | None = None,
    result_layouts: Sequence | None = None,
    propagated_out_mem_kinds: Sequence[str | None] | None = None,
) -> Function:
    """Write a jaxpr as a function of a program. A rule calls it with values: ``function(*values)`` gives a list.

    Arguments:
      ctx: the ``ModuleContext`` of the program.
      name: of the function; a number is put after it where it is taken.
      jaxpr: what it does.
      effects: those whose tokens it takes before its arguments and gives before its results.
      num_const_args: how many constants of the jaxpr are arguments, before the others: none or all.
      main_function: whether it is the one to call from outside.
      in_avals: the types of its arguments.
      arg_shardings, result_shardings, arg_memory_kinds, result_memory_kinds, arg_layouts, result_layouts: how they
        lie, or None for each of which nothing is said. They hold for a program's ``main``.
      use_sharding_annotations: whether shardings are said of arguments and results; else the function constrains its
        values to them.
      input_output_aliases: for each argument the result that takes its memory, or None.
      xla_donated_args: whether each argument's memory may be taken by any result.
      arg_names, result_names: what they are called.
      replicated_args: whether the argument is the same on all replicas, of which there is one.
      propagated_out_mem_kinds: the memories of results that nothing else is said of.
    Returns:
      The function. It stands in ``ctx.module``.
    Raises:
      ValueError: a sequence has not an entry for each argument or result, or types are not those of the jaxpr.

    >>> import catena as jax
    >>> from catena.interpreters import mlir
    >>> closed = jax.make_jaxpr(lambda x: 2 * x)(1.0)
    >>> ctx = mlir.ModuleContext()
    >>> double = mlir.lower_jaxpr_to_fun(ctx, "double", closed, (), num_const_args=0, in_avals=closed.in_avals)
    >>> double.type, double(3.0), double.name.value in ctx.symbol_table
    (FunctionType((tensor<f32>) -> tensor<f32>), [Array(6., dtype=float32, weak_type=True)], True)
    """
    closed = ctx.lowering_parameters.applied(_with_constants_as_arguments(jaxpr, num_const_args))
    if [(a.shape, a.dtype) for a in in_avals] != [(a.shape, a.dtype) for a in closed.in_avals]:
        raise ValueError(f"lower_jaxpr_to_fun: {name} takes {closed.in_avals}, and in_avals is {list(in_avals)}")
    taken, given = len(closed.in_avals), len(closed.out_avals)
    if not use_sharding_annotations:
        closed = _constrained(closed, _each("arg_shardings", arg_shardings, taken),
                              _each("result_shardings", result_shardings, given))  # fmt: skip
        arg_shardings = result_shardings = None
    memories = _each("result_memory_kinds", result_memory_kinds, given)
    propagated = _each("propagated_out_mem_kinds", propagated_out_mem_kinds, given)
    arguments = _slots(
        closed.in_avals,
        name=[n or "" for n in _each("arg_names", arg_names, taken)],
        sharding=_each("arg_shardings", arg_shardings, taken),
        memory_kind=_each("arg_memory_kinds", arg_memory_kinds, taken),
        layout=_each("arg_layouts", arg_layouts, taken),
        replicated=_each("replicated_args", replicated_args, taken, False),
        donated=_each("xla_donated_args", xla_donated_args, taken, False),
        alias=_checked_aliases(_each("input_output_aliases", input_output_aliases, taken), closed),
    )
    results = _slots(
        closed.out_avals,
        name=_each("result_names", result_names, given, ""),
        sharding=_each("result_shardings", result_shardings, given),
        memory_kind=[own or other for own, other in zip(memories, propagated, strict=True)],
        layout=_each("result_layouts", result_layouts, given),
    )
    tokens = [Slot(ir.TokenType.get())] * len(effects)
    function = Function(name, closed, [*tokens, *arguments], [*tokens, *results], main_function)
    ctx.symbol_table.insert(function)
    return function


def _each(name: str, given: Iterable | None, count: int, otherwise: Any = None) -> list:
    """What is said of each argument or result."""
    said = [otherwise] * count if given is None else list(given)
    if len(said) != count:
        raise ValueError(f"{name} must have an entry for each of {count}, got {said}")
    return said


def _slots(avals: Sequence, **said: list) -> list[Slot]:
    return [Slot(type_of(a), **dict(zip(said, x, strict=True))) for a, *x in zip(avals, *said.values(), strict=True)]


def _with_constants_as_arguments(closed: ClosedJaxpr, count: int) -> ClosedJaxpr:
    if count not in (0, len(closed.consts)):
        raise ValueError(f"num_const_args must be 0, or {len(closed.consts)} as the jaxpr has constants; got {count}")
    return ClosedJaxpr(hoist_constants(closed.jaxpr), []) if count else closed


def _constrained(closed: ClosedJaxpr, taken: list, given: list) -> ClosedJaxpr:
    """What the jaxpr does, with values in it constrained to shardings."""

    def call(*values):
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *map(_constrain, values, taken))
        return list(map(_constrain, outs, given))

    return trace_to_closed_jaxpr(call, closed.in_avals, DebugInfo("lowering", "lower_jaxpr_to_fun"))[0]


def _constrain(value: Any, sharding: Any) -> Any:
    return value if sharding is None else with_sharding_constraint(value, sharding)


def _checked_aliases(aliases: list[int | None], closed: ClosedJaxpr) -> list[int | None]:
    for aval, i in zip(closed.in_avals, aliases, strict=True):
        fitting = [j for j, a in enumerate(closed.out_avals) if (a.shape, a.dtype) == (aval.shape, aval.dtype)]
        if i is not None and i not in fitting:
            raise ValueError(f"input_output_aliases: result {i} cannot take the memory of {aval.str_short()}")
    return aliases


def merge_mlir_modules(
    dst_module: Module, sym_name: str, src_module: Module, dst_symtab: SymbolTable | None = None
) -> str:
    """Put the functions of a program into another one.

    Arguments:
      dst_module: where they go.
      sym_name: what ``main`` of the other program is called there; a number is put after it where it is taken.
      src_module: the program that they are of. It stays as it is.
      dst_symtab: the functions of ``dst_module`` by name.
    Returns:
      The name that its ``main`` has now.
    """
    table = SymbolTable(dst_module) if dst_symtab is None else dst_symtab
    names = {name: table.insert(f.renamed(sym_name if name == "main" else name, False)).value
             for name, f in src_module.functions.items()}  # fmt: skip
    if "main" not in names:
        raise ValueError(f"merge_mlir_modules: module {src_module.name!r} has no function main")
    return names["main"]


# ---- text and bytes


def module_to_string(module: Module, enable_debug_info: bool | None = None) -> str:
    """A program as text: its functions, what is said of arguments and results, and the jaxprs.

    Arguments:
      module: of a ``LoweringResult`` or a ``ModuleContext``.
      enable_debug_info: whether to show the user's lines; by default as ``jax_include_debug_info_in_dumps`` says.
    """
    asked = config.read("jax_include_debug_info_in_dumps") if enable_debug_info is None else enable_debug_info
    return module.text(bool(asked))


def module_to_bytecode(module: Module) -> bytes:
    """A program as bytes, which ``mlir.ir.Module.parse`` reads.

    Raises:
      NotImplementedError: its functions have effects or users' primitives, or arrays are said to lie on a mesh or in a
        layout: what is said of devices holds in this process only.
    """
    functions = list(module.functions.values())
    writer, numbers = write_programs([f.closed for f in functions])
    written = [_written(f, number) for f, number in zip(functions, numbers, strict=True)]
    head = {"module": module.name, "partitions": module.num_partitions, "functions": written}
    return bytes(pack({**head, "programs": writer.programs, "arrays": writer.arrays}, writer.data))


def _written(function: Function, number: int) -> dict:
    slots = [*function.arguments, *function.results]
    if any(s.sharding is not None or s.layout is not None for s in slots) or function.closed.effects:
        raise NotImplementedError(
            f"module_to_bytecode: function {function.name.value!r} has effects, shardings or layouts, and these "
            "are not written"
        )
    said = [[s.name, s.memory_kind, s.replicated, s.donated, s.alias] for s in slots]
    public = function.visibility.value == "public"
    return {"name": function.name.value, "public": public, "program": number, "said": said}


def _read(asm: Any) -> Module:
    head, data = unpack(asm)
    try:
        module = Module(head["module"], head["partitions"])
        programs = read_programs(head["programs"], head["arrays"], data)
        for item in head["functions"]:
            closed = programs.program(item["program"])
            avals = [*closed.in_avals, *closed.out_avals]
            slots = [
                Slot(type_of(a), name, None, kind, None, replicated, donated, alias)
                for a, (name, kind, replicated, donated, alias) in zip(avals, item["said"], strict=True)
            ]
            taken = len(closed.in_avals)
            module.functions[item["name"]] = Function(
                item["name"], closed, slots[:taken], slots[taken:], item["public"]
            )
    except (KeyError, TypeError) as error:
        raise ValueError(f"these bytes are no module: {type(error).__name__}: {error}") from error
    return module
