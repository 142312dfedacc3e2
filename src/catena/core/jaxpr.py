"""Jaxprs: the typed functional language that functions are traced into, and the only thing the compiler sees.

A ``Jaxpr`` binds variables once each, by equations that apply primitives to variables and literals. A
``ClosedJaxpr`` adds the values of its constants.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from catena.core.context import context, set_trace
from catena.core.effects import RefEffect
from catena.core.evaluate import abstract_eval
from catena.core.face import Face
from catena.core.lazy import LazyModule
from catena.core.mesh import EMPTY_ABSTRACT, AbstractMesh
from catena.core.named import NamedTuple
from catena.core.source import NOTHING_SAID, Source, Surroundings
from catena.core.usual import with_usual, without_usual

printer: Any = LazyModule("catena.core.printer")


class Var:
    """A variable: its identity is its name, its aval its type."""

    __slots__ = ("aval",)
    initial_qdd = final_qdd = None  # no type changes while the program runs

    def __init__(self, aval, initial_qdd=None, final_qdd=None):
        if initial_qdd is not None or final_qdd is not None:
            raise NotImplementedError("no type changes while a program runs: initial_qdd and final_qdd must be None")
        self.aval = aval

    def pretty_print(self, context, *, print_dtype: bool = True) -> str:
        """The variable as jaxprs print it, by the names that ``context`` gives (``jax.core.JaxprPpContext``)."""
        return printer.binder(self, context) if print_dtype else context.of(self)

    def __repr__(self):
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class Literal:
    """A scalar constant written in an equation: a 0-d Array and its aval."""

    __slots__ = ("val", "aval")

    def __init__(self, val, aval):
        self.val, self.aval = val, aval

    @property
    def hash(self) -> int | None:
        """The hash of the value, where it has one."""
        try:
            return hash(self.val)
        except TypeError:
            return None

    def pretty_print(self, context, *, print_dtype: bool = True) -> str:
        """The constant as jaxprs print it."""
        return printer.atom(self, context) if print_dtype else printer.scalar_text(self.val)

    def __repr__(self):
        return f"Literal({self.val})"


class EqnContext(NamedTuple):
    """What was in force where an equation was made: where ``compute_on`` wants it computed, whether random numbers are
    of the partitionable stream, the mesh, and the notes of ``set_xla_metadata``.
    """

    compute_type: str | None
    threefry_partitionable: bool
    cur_abstract_mesh: AbstractMesh
    xla_metadata: dict | None

    @property
    def surroundings(self) -> Surroundings:
        """The same, as places of the program hold it."""
        mesh = None if self.cur_abstract_mesh is EMPTY_ABSTRACT else self.cur_abstract_mesh
        notes = tuple((self.xla_metadata or {}).items())
        return Surroundings(self.compute_type, self.threefry_partitionable, mesh, notes)


class Parts(NamedTuple):
    """The parts of an equation."""

    invars: list
    outvars: list
    primitive: Any
    own_params: dict
    effects: frozenset
    source: Source | None


make_eqn = tuple.__new__  # ``make_eqn(Eqn, parts)``: an equation whose parameters are known to be its own


class Eqn(Parts):
    """One application of a primitive: ``outvars = primitive[params] invars``, with effects and the user's line.

    Arguments:
      invars, outvars: variables and literals that are read, variables that are bound.
      primitive, params: what is applied.
      effs: its effects.
      source_info: the place that it comes from.
      ctx: what was in force there, another equation's ``ctx``; by default what the place says.
    """

    __slots__ = ()

    def __new__(cls, invars, outvars, primitive, params, effs=frozenset(), source_info=None, ctx=None):
        if ctx is not None and isinstance(source_info, Source):
            source_info = source_info._replace(surroundings=ctx.surroundings)
        if primitive.usual:
            params = without_usual(primitive, params)
        return tuple.__new__(cls, (invars, outvars, primitive, params, effs, source_info))

    def replace(self, **changes) -> Eqn:
        """The same equation with some parts replaced."""
        if "params" in changes:
            changes["own_params"] = without_usual(changes.get("primitive", self.primitive), changes.pop("params"))
        return self._replace(**changes)

    @property
    def params(self) -> dict:
        """The parameters as JAX's equations have them: our own, and those that always are as they usually are."""
        return with_usual(self.primitive, self.own_params)

    @property
    def source_info(self):
        return self.source

    @property
    def ctx(self) -> EqnContext:
        """What was in force where the equation was made."""
        kind, stream, mesh, notes = getattr(self.source, "surroundings", NOTHING_SAID)
        return EqnContext(kind, stream, mesh or EMPTY_ABSTRACT, dict(notes) or None)

    def __repr__(self):
        return printer.equation_text(self)


_put = object.__setattr__


class Jaxpr(Face):
    """A function: ``lambda constvars ; invars. let eqns in outvars``."""

    __slots__ = ("constvars", "invars", "eqns", "outvars", "effects", "debug_info", "__weakref__")
    constvars: list[Var]
    invars: list[Var]
    eqns: list[Eqn]
    outvars: list
    effects: frozenset
    debug_info: Any  # a `staging.DebugInfo`, or None

    def __init__(self, constvars, invars, outvars, eqns, effects=None, debug_info=None, is_high: bool = False):
        if is_high:
            raise NotImplementedError("there are no objects of the user's own type in jaxprs: is_high must be False")
        eqns = list(eqns)
        _put(self, "constvars", list(constvars))
        _put(self, "invars", list(invars))
        _put(self, "outvars", list(outvars))
        _put(self, "eqns", eqns)
        effects = join_effects(eqns) if effects is None else frozenset(effects)
        if any(isinstance(e, RefEffect) for e in effects):
            effects = of_arguments(effects, self.invars, self.constvars, eqns)
        _put(self, "effects", effects)
        _put(self, "debug_info", debug_info)

    def __setattr__(self, name, value):
        raise AttributeError(f"jaxprs do not change: replace({name}=...) makes another")

    def __delattr__(self, name):
        raise AttributeError("jaxprs do not change")

    def __reduce__(self):
        return Jaxpr, (self.constvars, self.invars, self.outvars, self.eqns, self.effects, self.debug_info)

    @property
    def in_avals(self) -> list:
        """The types of the arguments."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list:
        """The types of the results."""
        return [v.aval for v in self.outvars]

    def replace(self, **changes) -> Jaxpr:
        """The same jaxpr with some parts replaced."""
        parts = {k: changes.pop(k, getattr(self, k)) for k in ("constvars", "invars", "outvars", "eqns", "debug_info")}
        if changes.keys() - {"effects"}:
            raise TypeError(f"Jaxpr has no parts {sorted(changes)}")
        return Jaxpr(effects=changes.get("effects"), **parts)

    is_high = False  # no equation stands for an object of the user's own type

    @property
    def in_aval_qdds(self) -> list:
        """The types of the arguments, as ``in_avals``: values here have no type that changes as the jaxpr runs."""
        return self.in_avals

    @property
    def final_aval_qdds(self) -> list:
        """The types of the arguments when the jaxpr has run: those they had before."""
        return self.in_avals

    def pretty_print(self, **options) -> str:
        """The printed jaxpr; ``source_info=True`` adds the user's lines, ``name_stack=True`` the scopes."""
        return printer.jaxpr_text(self, **options)

    def __repr__(self):
        return printer.jaxpr_text(self)


class ClosedJaxpr(Face):
    """A jaxpr together with the values of its constants."""

    __slots__ = ("jaxpr", "consts", "memo", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts=()):
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"a jaxpr with {len(jaxpr.constvars)} constvars was given {len(consts)} constants")
        self.jaxpr, self.consts = jaxpr, list(consts)
        self.memo: dict = {}  # what transformations derived from this jaxpr

    @property
    def in_avals(self) -> list:
        """The types of the arguments."""
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list:
        """The types of the results."""
        return self.jaxpr.out_avals

    @property
    def literals(self) -> list:
        """The constants, under their older name."""
        return self.consts

    @property
    def constvars(self) -> list:
        """The variables of the constants."""
        return self.jaxpr.constvars

    @property
    def invars(self) -> list:
        """The variables of the arguments."""
        return self.jaxpr.invars

    @property
    def outvars(self) -> list:
        """The results: variables and literals."""
        return self.jaxpr.outvars

    @property
    def debug_info(self):
        """What it was traced from."""
        return self.jaxpr.debug_info

    @property
    def is_high(self) -> bool:
        """As for ``Jaxpr``."""
        return self.jaxpr.is_high

    @property
    def in_aval_qdds(self) -> list:
        """As for ``Jaxpr``."""
        return self.jaxpr.in_aval_qdds

    @property
    def final_aval_qdds(self) -> list:
        """As for ``Jaxpr``."""
        return self.jaxpr.final_aval_qdds

    def map_jaxpr(self, f) -> ClosedJaxpr:
        """The same constants with the jaxpr ``f(jaxpr)``."""
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    @property
    def eqns(self) -> list:
        """The equations."""
        return self.jaxpr.eqns

    @property
    def effects(self) -> frozenset:
        """The effects of running it."""
        return self.jaxpr.effects

    def replace(self, *, jaxpr=None, consts=None) -> ClosedJaxpr:
        """The same with another jaxpr or other constants."""
        return ClosedJaxpr(jaxpr or self.jaxpr, self.consts if consts is None else consts)

    def pretty_print(self, **options) -> str:
        """The printed jaxpr; options as for ``Jaxpr.pretty_print``."""
        return printer.jaxpr_text(self.jaxpr, **options)

    def __repr__(self):
        return printer.jaxpr_text(self.jaxpr)

    def __reduce__(self):
        return ClosedJaxpr, (self.jaxpr, self.consts)


def join_effects(eqns) -> frozenset:
    """The effects of all these equations."""
    effects = [e.effects for e in eqns if e.effects]
    return frozenset().union(*effects) if effects else frozenset()


def of_arguments(effects: frozenset, invars: list, constvars: list, eqns: list) -> frozenset:
    """These effects, those on references as the equations have them on arguments; constants are numbered -1, -2 ...
    What happens to references that are made inside is nobody else's concern.
    """
    number = {v: i for i, v in enumerate(invars)} | {v: -1 - i for i, v in enumerate(constvars)}
    on_refs = [(e, eqn.invars[e.index]) for eqn in eqns for e in eqn.effects if isinstance(e, RefEffect)]
    others = [e for e in effects if not isinstance(e, RefEffect)]
    return frozenset([*others, *(e.at(number[v]) for e, v in on_refs if v in number)])


def eval_jaxpr(jaxpr: Jaxpr, consts, *args, propagate_source_info: bool = True) -> list:
    """Run the equations one by one under the current trace.

    Arguments:
      jaxpr: what to run.
      consts: a value for each constvar.
      args: a value for each invar.
      propagate_source_info: whether what is traced meanwhile says that it comes from the lines that the jaxpr's
        equations come from, instead of the line of this call.
    Returns:
      The list of results.
    """
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"the jaxpr takes {len(jaxpr.invars)} arguments, {len(args)} were given")
    env = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    last_use = last_uses(jaxpr)
    before = context.source
    try:
        for i, eqn in enumerate(jaxpr.eqns):
            values = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
            if propagate_source_info:
                context.source = eqn.source or before
            out = eqn.primitive.bind(*values, **eqn.own_params)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, out, strict=True))
            else:
                env[eqn.outvars[0]] = out
            for v in last_use.get(i, ()):  # free what nobody reads any more
                env.pop(v, None)
    finally:
        context.source = before
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


def last_uses(jaxpr: Jaxpr) -> dict[int, list]:
    """For each equation's number, the variables that are read there for the last time."""
    last = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for v in eqn.invars:
            if type(v) is Var:
                last[v] = i
        for v in eqn.outvars:
            last.setdefault(v, i)
    for v in jaxpr.outvars:
        if type(v) is Var:
            last.pop(v, None)
    at: dict[int, list[Var]] = {}
    for v, i in last.items():
        at.setdefault(i, []).append(v)
    return at


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args):
    """The closed jaxpr as a Python function from flat arguments, after those that are given, to the list of results."""
    return functools.partial(eval_jaxpr, closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def subjaxprs(params: dict):
    """The jaxprs inside an equation's parameters."""
    for value in params.values():
        if type(value) in PLAIN:
            continue
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if type(item) in PLAIN:
                continue
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item


PLAIN = frozenset([type(None), bool, int, float, str])  # what most parameters are


def with_jaxprs(change: Callable[[ClosedJaxpr], ClosedJaxpr], params: dict) -> dict:
    """An equation's parameters, with the closed jaxprs in them as ``change`` makes them."""

    def changed(value):
        if isinstance(value, ClosedJaxpr):
            return change(value)
        if type(value) is tuple and any(isinstance(x, ClosedJaxpr) for x in value):
            return tuple([changed(x) for x in value])
        return value

    return {name: changed(value) for name, value in params.items()}


def type_of_results(primitive, avals, params) -> tuple:
    """The avals of all results of one application, as a tuple also where there is one."""
    with set_trace(None):
        out = abstract_eval(primitive, tuple(avals), params)
    return tuple(out) if primitive.multiple_results else (out,)
