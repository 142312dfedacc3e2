"""The stages of compilation as users can hold them: traced, lowered, compiled."""

from __future__ import annotations

import copy
import functools

from catena.core.array import Array, as_array
from catena.core.context import context
from catena.core.device import first_device
from catena.core.errors import JaxRuntimeError
from catena.core.face import Face
from catena.core.foreign_options import OPTIONS
from catena.core.formats import format_in_rows
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.sharding import Sharding, SingleDeviceSharding, sharding_of
from catena.core.struct import ShapeDtypeStruct, struct_of
from catena.core.trace import Tracer
from catena.core.traceback import api_boundary
from catena.core.tree import tree_flatten, tree_map, tree_structure, tree_unflatten
from catena.core.tree_errors import equality_errors_treedef
from catena.core.tree_flatten import flatten_into
from catena.core.tree_keys import keystr
from catena.core.zeros import get_aval
from catena.transform.execute import as_values, program_of, run_program
from catena.transform.hot_path import how_to_run, run_fast
from catena.transform.jit_primitive import jit_p
from catena.transform.profile import Profile, profile

compiler = LazyModule("catena.compiler.native.compile")


class ArgInfo:
    """What is known of an argument: its aval and whether it is donated."""

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval, donated: bool):
        self._aval, self.donated = _aval, donated

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)

    def __repr__(self):
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


class MemoryStats(NamedTuple):
    """The bytes that a compiled program takes; those of a host apart from the device are none on the CPU."""

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    host_generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0

    @property
    def peak_memory_in_bytes(self) -> int:
        """Arguments, results that do not take an argument's memory, and temporary buffers together."""
        given = self.argument_size_in_bytes - self.alias_size_in_bytes
        return given + self.output_size_in_bytes + self.temp_size_in_bytes


class Stage(Face):
    """What all stages tell about the function: its types, trees and donated arguments."""

    def __init__(self, fun, fun_name, call, in_tree, avals, names, keep_unused: bool = False, given: tuple = ()):
        self._fun, self.fun_name, self._call = fun, fun_name, call
        self._in_tree, self._avals, self._names, self._keep_unused = in_tree, avals, names, keep_unused
        self._given = given or (None,) * len(avals)  # where the arguments lay for which it was traced

    def __repr__(self):
        arguments = [f"{name}: {a.str_short()}" for name, a in zip(self._names, self._avals, strict=True)]
        return f"<{type(self).__name__} {self.fun_name}({', '.join(arguments)})>"

    def _parts(self) -> tuple:
        return (
            self._fun,
            self.fun_name,
            self._call,
            self._in_tree,
            self._avals,
            self._names,
            self._keep_unused,
            self._given,
        )

    @property
    def in_tree(self):
        """The tree of ``(args, kwargs)``."""
        return self._in_tree

    @property
    def out_tree(self):
        """The tree of the result."""
        return self._call.out_tree

    @property
    def in_avals(self):
        """The types of the arguments, as a tree ``(args, kwargs)``."""
        return tree_unflatten(self._in_tree, self._avals)

    @property
    def args_info(self):
        """Types and donation of the arguments, as a tree ``(args, kwargs)``."""
        infos = [ArgInfo(a, d) for a, d in zip(self._avals, self._call.donated, strict=True)]
        return tree_unflatten(self._in_tree, infos)

    @property
    def out_info(self):
        """The shapes and dtypes of the result, as a tree, with the shardings that ``out_shardings`` asked for."""
        avals, placing = self._call.closed.out_avals, self._call.placing
        places = placing.results if placing is not None else [None] * len(avals)
        infos = [
            struct_of(a) if p is None else struct_of(a).update(sharding=sharding_of(p))
            for a, p in zip(avals, places, strict=True)
        ]
        return tree_unflatten(self._call.out_tree, infos)

    @property
    def donate_argnums(self) -> tuple:
        """The flat positions of donated arguments."""
        return tuple(i for i, d in enumerate(self._call.donated) if d)

    def _checked_leaves(self, args, kwargs) -> list:
        """The leaves of the arguments, or an error where their structure or types differ from what was traced."""
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self._in_tree:
            raise TypeError(self._structure_error((args, kwargs)))
        self._check_types(leaves)
        return leaves

    def _check_types(self, leaves):
        wrong = [
            f"Argument '{name}' compiled with {want.str_short()} and called with {get_aval(x).str_short()}"
            for name, want, x in zip(self._names, self._avals, leaves, strict=True)
            if (want.shape, want.dtype) != (get_aval(x).shape, get_aval(x).dtype)
        ]
        if wrong:
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled. Perhaps you are "
                "calling the compiled executable with a different enable_x64 mode than when it was AOT compiled? The "
                "mismatches are:\n" + "\n".join(wrong)
            )

    def _structure_error(self, given) -> str:
        differences = list(equality_errors_treedef(self._in_tree, tree_structure(given)))
        roots = ("args", "kwargs")
        lines = [
            f"    * at {roots[d.path[0].idx]}{keystr(d.path[1:])}, seen {d.first} but now given {d.second}, "
            f"so {d.reason}"
            for d in differences[:5]
        ]
        return (
            "Function compiled with input pytree does not match the input pytree it was called with. There are "
            f"{len(differences)} mismatches, including:\n" + "\n".join(lines)
        )


class Traced(Stage):
    """A function traced for certain types of arguments; it has the ``jaxpr`` and can be ``lower``ed."""

    @property
    def jaxpr(self):
        """What was traced, as a ClosedJaxpr."""
        return self._call.closed

    @property
    def out_avals(self):
        """The types of the result, as a tree."""
        return tree_unflatten(self._call.out_tree, self._call.closed.out_avals)

    @property
    def lojax(self) -> Traced:
        """The same without operations on objects of the user's own type: this, since jaxprs have none."""
        return self

    def lower(self, *, lowering_platforms=None, _private_parameters=None) -> Lowered:
        """Translate to the compiler's graph.

        Arguments:
          lowering_platforms: names of platforms; the graph is the same for all of them.
          _private_parameters: ``mlir.LoweringParameters``: rules in place of those that primitives have.
        Raises:
          TypeError: they are no strings.
        """
        if not all(isinstance(name, str) for name in lowering_platforms or ()):
            raise TypeError(f"lowering_platforms must be None or names of platforms, got {lowering_platforms!r}")
        fun, name, call, *rest = self._parts()
        if _private_parameters is not None:
            call = copy.copy(call)
            call.closed = _private_parameters.applied(call.closed)
        return Lowered(fun, name, call, *rest)

    def __call__(self, *args, **kwargs):
        """Run what was traced; the arguments must have the types that it was traced for."""
        leaves = self._checked_leaves(args, kwargs)
        params = {"jaxpr": self._call.closed, "name": self.fun_name}
        return tree_unflatten(self._call.out_tree, jit_p.bind(*self._call.outer, *leaves, **params))


class Lowered(Stage):
    """A function translated to the compiler's graph; ``as_text`` shows it, ``compile`` finishes the way."""

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The graph as text.

        Arguments:
          dialect: ``None`` or ``"graph"`` for the compiler's graph, ``"jaxpr"`` for the jaxpr.
          debug_info: whether to show the user's lines; only the jaxpr has them.
        """
        if dialect == "jaxpr":
            return self._call.closed.pretty_print(source_info=debug_info)
        if dialect not in (None, "graph"):
            raise ValueError(f"dialect must be None, 'graph' or 'jaxpr', got {dialect!r}")
        return str(self.compiler_ir())

    def compiler_ir(self, dialect: str | None = None):
        """The graph as the compiler's own data structure."""
        if dialect not in (None, "graph"):
            raise ValueError(f"dialect must be None or 'graph', got {dialect!r}")
        return compiler.lower(as_values(self._call.closed)[0])

    def compile(self, compiler_options: dict | None = None, *, device_assignment=None) -> Compiled:
        """Compile to native code."""
        check_compiler_options(compiler_options)
        if device_assignment is not None:
            raise ValueError("device_assignment is for programs over several devices; it must be None")
        return Compiled(*self._parts())

    def cost_analysis(self) -> dict:
        """Estimates of the work: floating-point operations and bytes moved."""
        return self.compile().cost_analysis()


STAGES = ("kernels", "program", "nests", "llvm", "assembly")


PLAIN = frozenset([Array])


class Compiled(Stage):
    """A compiled function; call it with arguments of exactly the types that it was compiled for."""

    def __init__(self, *parts):
        super().__init__(*parts)
        traced = [x for x in self._call.outer if isinstance(x, Tracer)]
        if traced:
            raise TypeError(
                f"{self.fun_name} closes over traced values, {traced[0]!r} for one; pass them as arguments "
                "to compile it ahead of time"
            )
        self._program = program_of(self._call.closed, self._call.donated, self.fun_name, self._keep_unused)
        how = how_to_run(self._program, self._call, False)
        plain = how[1] is not None and not self._program.stacks  # there is nothing to do but to call the entry
        self._how = how if plain else None

    def __call__(self, *args, **kwargs):
        leaves = self._in_tree._read((args, kwargs), False)
        if leaves is None:
            leaves = []
            if flatten_into((args, kwargs), leaves) is not self._in_tree:
                return self._general_call(args, kwargs)
        # hot path: Arrays of the expected types
        if PLAIN.issuperset(map(type, leaves)) and tuple([x._aval for x in leaves]) == self._avals:
            if self._how is not None and context.default_placement is None and not context.debug_checks:
                return run_fast(self._how, leaves)
            if self._call.placing is None:
                return tree_unflatten(self._call.out_tree, self._program([*self._call.outer, *leaves]))
        return self._general_call(args, kwargs)

    @api_boundary
    def _general_call(self, args, kwargs):
        leaves = [self._array(x) for x in self._checked_leaves(args, kwargs)]
        if self._call.placing is None:
            return tree_unflatten(self._call.out_tree, self._program([*self._call.outer, *leaves]))
        run = functools.partial(run_program, self._program)
        outs = self._call.placing.run(run, self._call.donated, leaves, self._call.closed.out_avals)
        return tree_unflatten(self._call.out_tree, outs)

    def call(self, *args, **kwargs):
        """The same as calling the object."""
        return self(*args, **kwargs)

    def as_text(self, stage: str | None = None) -> str:
        """The program as text.

        Arguments:
          stage: ``"kernels"`` for what it does, a line for each pass over memory, ``"program"`` for the steps that run
            and their memory, ``"nests"`` for its loop nests, ``"llvm"`` for LLVM IR, ``"assembly"`` for machine code;
            ``None`` for all but the last.
        Raises:
          ValueError: another stage.
        """
        if stage is not None and stage not in STAGES:
            raise ValueError(f"stage must be None or one of {', '.join(STAGES)}, got {stage!r}")
        executable = self._program.executable
        if executable is None:
            return "; nothing to compute\n"
        return "\n\n".join(self._stage(executable, s) for s in ([stage] if stage else STAGES[:-1])) + "\n"

    def _stage(self, executable, stage: str) -> str:
        closed, donated, _ = as_values(self._call.closed, self._call.donated)
        if stage == "kernels":
            return "\n".join(compiler.explain(closed))
        if stage == "program":
            return str(compiler.program_of(closed, donated))
        if stage == "nests":
            return "\n\n".join(compiler.nests(closed))
        text = executable.as_text()
        return compiler.assembly(text) if stage == "assembly" else text

    @api_boundary
    def profile(self, *args, **kwargs) -> Profile:
        """Run the program on these arguments with a clock around every step; the result prints as a table."""
        leaves = [self._array(x) for x in self._checked_leaves(args, kwargs)]
        values = [x._value for x in (*self._call.outer, *leaves)]
        return profile(self.fun_name, as_values(self._call.closed)[0], values)

    def cost_analysis(self) -> dict:
        """Estimates of the work: floating-point operations and bytes moved."""
        executable = self._program.executable
        return executable.cost_analysis() if executable is not None else {"flops": 0.0, "bytes accessed": 0.0}

    def memory_analysis(self) -> MemoryStats:
        """The bytes of arguments, results, results in an argument's memory, temporary buffers, and code."""
        executable = self._program.executable
        return MemoryStats(
            generated_code_size_in_bytes=executable.report["bytes"] if executable is not None else 0,
            argument_size_in_bytes=size_in_bytes(self._avals),
            output_size_in_bytes=size_in_bytes(self._call.closed.out_avals),
            alias_size_in_bytes=size_in_bytes([self._avals[i] for i in self.donate_argnums]),
            temp_size_in_bytes=executable.temporary_bytes if executable is not None else 0,
        )

    @property
    def input_shardings(self) -> tuple:
        """Where the arguments are expected, as ``(args, kwargs)``."""
        places = self._call.placing.arguments if self._call.placing is not None else [None] * len(self._avals)
        shardings = [
            given if place is None and given is not None else place_asked(place)
            for place, given in zip(places, self._given, strict=True)
        ]
        return tree_unflatten(self._in_tree, shardings)

    @property
    def output_shardings(self):
        """Where the results are, as a tree like the result."""
        count = self.out_tree.num_leaves
        places = self._call.placing.results if self._call.placing is not None else [None] * count
        return tree_unflatten(self.out_tree, [place_asked(p) for p in places])

    @property
    def input_formats(self) -> tuple:
        """How the arguments lie, as ``(args, kwargs)``: in rows, as whatever they are copied from is laid out."""
        return tree_map(format_in_rows, self._ranks(self._avals, self._in_tree), self.input_shardings)

    @property
    def output_formats(self):
        """How the results lie, in rows, and where, as a tree like the result."""
        return tree_map(format_in_rows, self._ranks(self._call.closed.out_avals, self.out_tree), self.output_shardings)

    @staticmethod
    def _ranks(avals, tree):
        return tree_unflatten(tree, [a.ndim for a in avals])

    def runtime_executable(self):
        """The native executable, or ``None`` where there is nothing to compute."""
        return self._program.executable

    @staticmethod
    def _array(x) -> Array:
        if isinstance(x, Tracer):
            raise TypeError(
                "Cannot apply JAX transformations to a function lowered and compiled for a particular signature. "
                f"Detected argument of Tracer type {type(x)}."
            )
        return x if isinstance(x, Array) else as_array(x)


def size_in_bytes(avals) -> int:
    """The bytes that values of these types take."""
    return sum(a.size * a.dtype.itemsize for a in avals)


def sharding_given(x) -> Sharding | None:
    """The sharding of an argument that was put somewhere, or of a description that names one."""
    if isinstance(x, Tracer):
        return None
    return getattr(x, "sharding", None) if getattr(x, "committed", isinstance(x, ShapeDtypeStruct)) else None


def place_asked(placement) -> Sharding:
    """The sharding of an argument or result for which the user asked for ``placement``, or for nothing."""
    return sharding_of(placement) if placement is not None else on_the_device()


def on_the_device() -> SingleDeviceSharding:
    """The placement of what a program reads or writes, where nobody asked for another."""
    return SingleDeviceSharding(first_device())


def check_compiler_options(options: dict | None) -> None:
    """Raise where an option is none of XLA's, or its value not of the option's kind; nothing else becomes of them."""
    for name, value in (options or {}).items():
        if name not in OPTIONS:
            raise JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: '{name}'")
        kind = OPTIONS[name]
        if not admits(kind, value):
            raise JaxRuntimeError(
                f"INVALID_ARGUMENT: While setting option {name}, {value!r} is not a valid {kind.__name__} value."
            )


def admits(kind: type, value) -> bool:
    """Whether an option of this kind takes this value, which may be written as a string."""
    if kind is bool:
        return value in (True, False) or str(value).lower() in ("true", "false")
    try:
        kind(value)
    except (TypeError, ValueError):
        return False
    return True
