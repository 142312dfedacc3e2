"""What compilation rules are told besides their operands (``mlir.LoweringRuleContext``)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catena.core.array import as_array, make_array
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.device import Client, devices
from catena.core.dtypes import is_scalar_or_numpy
from catena.core.effects import Effect
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr, type_of_results
from catena.core.mesh import Mesh
from catena.core.primitive import Operation
from catena.core.source import NameStack, function_place
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.token import Token
from catena.core.trace import VALUES
from catena.core.type_members import aval_property
from catena.core.zeros import get_aval
from catena.interpreters.ir_types import Context
from catena.interpreters.modules import Module, ShapePolyLoweringState, SymbolTable, type_of, writing
from catena.lax.tokens import create_token


class TokenSet:
    """The tokens of ordered effects, by the effects. It does not change.

    >>> from catena.core.effects import OrderedIOEffect
    >>> TokenSet.create([OrderedIOEffect()]).effects()
    {OrderedIO}
    """

    __slots__ = ("_tokens",)

    def __init__(self, tokens: Mapping[Effect, Token] | None = None):
        self._tokens = dict(tokens or {})

    @classmethod
    def create(cls, effects: Sequence[Effect]) -> TokenSet:
        """A new token for each effect."""
        return cls({effect: create_token() for effect in effects})

    def get(self, effect: Effect) -> Token:
        """The token of an effect. Raises KeyError where there is none."""
        return self._tokens[effect]

    def items(self) -> list[tuple[Effect, Token]]:
        """The effects and their tokens."""
        return list(self._tokens.items())

    def effects(self) -> set[Effect]:
        """The effects."""
        return set(self._tokens)

    def subset(self, effects: Sequence[Effect]) -> TokenSet:
        """The tokens of these effects alone."""
        return TokenSet({effect: self._tokens[effect] for effect in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """These tokens, with others in place of some."""
        return TokenSet({**self._tokens, **tokens._tokens})


@dataclass(frozen=True)
class SPMDAxisContext:
    """A program that every device of a mesh runs; over ``manual_axes`` it says itself what each device does."""

    mesh: Mesh
    manual_axes: frozenset = frozenset()


@dataclass(frozen=True)
class ShardingContext:
    """A program as if for one device, whose arrays lie on several: those of ``device_assignment``, or a mesh's."""

    num_devices: int
    device_assignment: tuple | None = None
    abstract_mesh: Any = None


AxisContext = SPMDAxisContext | ShardingContext


@dataclass(frozen=True)
class LoweringParameters:
    """What is asked of compilation: pairs ``(primitive, rule)`` that hold in place of the primitives' own rules. The
    others say how MLIR is written, and change no values.
    """

    override_lowering_rules: tuple[tuple[Operation, Callable], ...] | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False

    def __post_init__(self):
        for part in dataclasses.fields(self)[1:]:
            if not isinstance(getattr(self, part.name), bool):
                raise TypeError(f"LoweringParameters: {part.name} must be a bool, got {getattr(self, part.name)!r}")

    def applied(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """The jaxpr with primitives that have these rules."""
        rules = dict(self.override_lowering_rules or ())
        return with_primitives(closed, {p: with_rule(p, rule) for p, rule in rules.items()}) if rules else closed


def with_rule(primitive: Operation, rule: Callable) -> Operation:
    """A primitive like another one, but for what it compiles to."""
    primitive.rule("abstract")  # where it is declared only, what it means is loaded now
    other = object.__new__(type(primitive))
    vars(other).update(vars(primitive), own=False)
    other.lower = Lowering(other, rule)
    return other


def with_primitives(x: Any, others: dict) -> Any:
    """A parameter of an equation, with other primitives in place of some in the jaxprs that it holds."""
    if isinstance(x, (tuple, list)):
        return type(x)(with_primitives(y, others) for y in x) if any(map(holds_jaxprs, x)) else x
    if isinstance(x, ClosedJaxpr):
        return ClosedJaxpr(with_primitives(x.jaxpr, others), x.consts)
    if not isinstance(x, Jaxpr):
        return x
    eqns = [
        e.replace(
            primitive=others.get(e.primitive, e.primitive),
            params={name: with_primitives(value, others) for name, value in e.own_params.items()},
        )
        for e in x.eqns
    ]
    return x.replace(eqns=eqns, effects=x.effects)


def holds_jaxprs(x: Any) -> bool:
    return isinstance(x, (Jaxpr, ClosedJaxpr))


@dataclass(kw_only=True)
class ModuleContext:
    """What is known of the whole program: the platforms that it is for, how it lies on devices, what is kept alive as
    long as the rule that writes it, and the functions that rules have written besides (``module``, by their names in
    ``symbol_table``).
    """

    platforms: tuple[str, ...] = ("cpu",)
    backend: Client | None = None
    axis_context: AxisContext = ShardingContext(1)
    keepalives: list = field(default_factory=list)
    channel_iterator: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    host_callbacks: list = field(default_factory=list)
    lowering_parameters: LoweringParameters = LoweringParameters()
    context: Context = field(default_factory=Context)
    module: Module = None  # type: ignore[assignment]
    symbol_table: SymbolTable = None  # type: ignore[assignment]
    shape_poly_state: ShapePolyLoweringState = None  # type: ignore[assignment]
    all_default_mem_kind: bool = True
    aval_to_ir_types_cache: dict = field(default_factory=dict)

    def __post_init__(self):
        self.module = self.module or Module("module")
        self.symbol_table = self.symbol_table or SymbolTable(self.module)
        self.shape_poly_state = self.shape_poly_state or ShapePolyLoweringState((), None)

    def get_backend(self, optional: bool = False) -> Client:
        """The platform that the program is compiled for; there always is one."""
        return self.backend or devices()[0].client

    def add_keepalive(self, keepalive: Any) -> None:
        """Keep an object as long as the rule."""
        self.keepalives.append(keepalive)

    def add_host_callback(self, host_callback: Any) -> None:
        """Have a function that the program calls stand in its ``LoweringResult``."""
        self.host_callbacks.append(host_callback)

    def new_channel(self) -> int:
        """A number that nobody else in the program has."""
        return next(self.channel_iterator)

    def replace(self, **changes: Any) -> ModuleContext:
        """The same with other parts."""
        return dataclasses.replace(self, **changes)


@dataclass
class LoweringRuleContext:
    """What a compilation rule is told of the application that it writes.

    ``avals_in`` and ``avals_out`` are the types of operands and results, ``tokens_in`` the tokens of ordered effects.
    """

    module_context: ModuleContext
    name_stack: NameStack
    traceback: Any
    primitive: Any
    avals_in: Sequence
    avals_out: Sequence
    tokens_in: TokenSet
    tokens_out: TokenSet | None = None
    const_lowering: dict = field(default_factory=dict)
    axis_size_env: dict | None = None
    dim_var_values: Sequence = ()
    jaxpr_eqn_ctx: Any = None
    platforms: Sequence[str] | None = None

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """Say which tokens come after this application. Once."""
        if self.tokens_out is not None:
            raise ValueError("set_tokens_out: the tokens of this application are set already")
        self.tokens_out = tokens_out

    def is_forward_compat(self) -> bool:
        """Whether the program is to be read by older versions, too."""
        parameters = self.module_context.lowering_parameters
        return parameters.for_export and not parameters.export_ignore_forward_compatibility

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """The same with other parts."""
        return dataclasses.replace(self, **changes)


LOWERING = "lowering"


def type_in_rule(value: Any) -> Any:
    """The type of a value as rules ask for it, ``x.type``; other programs have no such attribute."""
    info = getattr(getattr(value, "_trace", None), "debug_info", None)
    if info is None or info.traced_for != LOWERING:
        raise AttributeError(f"{type(value).__name__!r} object has no attribute 'type'", name="type", obj=value)
    return type_of(value.aval)


ShapedArray.type = aval_property(type_in_rule)  # type: ignore[attr-defined]


class Lowering:
    """What a primitive compiles to: what a user's rule ``rule(ctx, *values, **params)`` does with values."""

    __slots__ = ("primitive", "rule", "keepalives")

    def __init__(self, primitive: Operation, rule: Callable):
        self.primitive, self.rule = primitive, rule
        self.keepalives: list = []

    def __call__(self, builder, *operands, **params):
        """Trace the rule for the operands and write what it does."""
        outs = builder.call(self.written([ShapedArray(x.shape, x.dtype) for x in operands], params), operands)
        return outs if self.primitive.multiple_results else outs[0]

    def interpreted(self, **params):
        """The rule on NumPy values, where there is no compiler."""

        def call(*values):
            args = [make_array(x) for x in values]
            closed = self.written([get_aval(x) for x in args], params)
            return [as_array(x)._value for x in eval_jaxpr(closed.jaxpr, closed.consts, *args)]

        return call

    def written(self, avals: list, params: dict) -> ClosedJaxpr:
        """What the rule does with values of these types."""
        words = DebugInfo(LOWERING, function_place(self.rule))
        return trace_to_closed_jaxpr(lambda *args: self.run(args, params), avals, words)[0]

    def run(self, args: Iterable, params: dict) -> list:
        """The results of the rule, a list of values."""
        args = list(args)
        ctx = self.context([get_aval(x) for x in args], params)
        before, writing.symbols = writing.symbols, ctx.module_context.symbol_table
        try:
            out = self.rule(ctx, *args, **params)
        except (AttributeError, ImportError) as error:
            raise self.refusal(f"{type(error).__name__}: {error}") from error
        finally:
            writing.symbols = before
        if not isinstance(out, (tuple, list)):
            raise self.refusal(f"it gave {out!r} of {type(out)}, no sequence of values")
        flat = flatten_values(out)
        strange = [x for x in flat if not isinstance(x, VALUES) and not is_scalar_or_numpy(x)]
        if strange:
            raise self.refusal(f"it gave {strange[0]!r} of {type(strange[0])}, which is no value")
        if len(flat) != len(ctx.avals_out):
            raise ValueError(
                f"{self.place()} gave {len(flat)} values, but '{self.primitive}' has {len(ctx.avals_out)} results"
            )
        return flat

    def context(self, avals: list, params: dict) -> LoweringRuleContext:
        """What the rule is told."""
        ordered = [e for e in self.primitive.effects(tuple(avals), params) if e.ordered]
        return LoweringRuleContext(
            module_context=ModuleContext(keepalives=self.keepalives),
            name_stack=context.name_stack,
            traceback=context.source,
            primitive=self.primitive,
            avals_in=avals,
            avals_out=list(type_of_results(self.primitive, avals, params)),
            tokens_in=TokenSet.create(ordered),
            platforms=("cpu",),
        )

    def place(self) -> str:
        return f"the rule {function_place(self.rule)} for what '{self.primitive}' compiles to"

    def refusal(self, problem: str) -> NotImplementedError:
        return NotImplementedError(
            f"primitive '{self.primitive}' cannot be compiled: its rule {function_place(self.rule)} writes MLIR, and "
            f"there is none here ({problem}). A rule is made of mlir.lower_fun(f) with a function f of arrays, or of "
            "operations of jax.extend.mlir.dialects; and without jit the primitive is evaluated."
        )


def flatten_values(xs: Sequence) -> list:
    """The values in a sequence of values and of sequences of them."""
    return [y for x in xs for y in (flatten_values(x) if isinstance(x, (tuple, list)) else [x])]
