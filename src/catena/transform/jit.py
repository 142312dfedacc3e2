"""``jit``: trace once for each type of arguments, compile the whole, run native code.

The way of a call, shortest first: (1) all arguments are Arrays whose types were seen: two dictionary look-ups
and the native entry; (2) a tree of arrays and numbers that was seen, beside static arguments: flatten, look up,
run; (3) something new: trace, compile, remember. Under another trace the call becomes one ``jit`` equation.
"""

from __future__ import annotations

import functools
import inspect
import time
import types
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from catena.core import dtypes, events
from catena.core.array import Array, as_array
from catena.core.aval import AbstractRef
from catena.core.context import context
from catena.core.face import Face
from catena.core.failures import checks_named
from catena.core.jaxpr import eval_jaxpr
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.pickling import global_name
from catena.core.ref import Cell, core_of
from catena.core.source import function_name, function_place
from catena.core.staging import DebugInfo, hoist_tracers, trace_to_jaxpr
from catena.core.trace import VALUES, Tracer
from catena.core.traceback import api_boundary, shorten
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import high_types
from catena.transform import arguments, misses, stages, stateful, symbolic_shapes
from catena.transform.execute import program_of
from catena.transform.functions import check_function
from catena.transform.hot_path import how_to_run, run_fast
from catena.transform.jit_primitive import checked_call, checking, jit_p
from catena.transform.memo import call_cache
from catena.transform.placing import Places, asked_places, said
from catena.transform.readable import WITH_TYPES, known_array, noted_types, readable_arrays

explain = LazyModule("catena.transform.explain")


class NotGiven:
    """What stands for an argument that was left out where ``None`` would be one, such as the function of ``jit``."""

    def __repr__(self):
        return "not given"


NOT_GIVEN = NotGiven()

P = ParamSpec("P")
R = TypeVar("R")


class TracedCall:
    """A function traced for one signature: its jaxpr, the tree of its result, the outer tracers it closes
    over, and where its arguments and results are put (None: where they belong by themselves).
    """

    __slots__ = ("closed", "out_tree", "outer", "donated", "placing", "has_references")

    def __init__(self, closed, out_tree, outer, donated, placing=None):
        self.closed, self.out_tree, self.outer, self.donated = closed, out_tree, outer, donated
        self.placing = placing
        self.has_references = any(type(a) is AbstractRef for a in closed.in_avals)


class Options(NamedTuple):
    """What a user asks of a compiled function beside where things are: see ``jit``."""

    inline: bool = False
    keep_unused: bool = False
    checks: str = ""


class _SignatureOf:
    """The attribute ``__signature__`` of a jitted function, for who asks without following what it wraps."""

    def __get__(self, jitted, owner=None):
        if jitted is None:
            raise AttributeError("__signature__")
        try:
            return inspect.signature(jitted._fun)
        except ValueError as error:
            raise AttributeError("__signature__") from error


class JitFunction(Face, Generic[P, R]):
    """A function that is compiled when it is called; made by ``jit``.

    Calling it runs the compiled program. ``trace``, ``lower`` and ``eval_shape`` stop at earlier stages,
    ``clear_cache`` forgets what was compiled.
    """

    __signature__ = _SignatureOf()

    def __init__(self, fun, static, donate, *, options: Options, places=None):
        found = getattr(fun, "__dict__", {})
        vars(self).update({k: x for k, x in found.items() if not hasattr(type(self), k)})  # none hides a method
        functools.update_wrapper(self, fun, updated=())  # after what the function itself wraps
        self._fun = fun
        self._static_nums, self._static_names = static
        self._donate_nums, self._donate_names = donate
        self._options, self._places = options, places
        self._plain = not (static[0] or static[1])
        self._splits = all(i >= 0 for i in static[0])  # static arguments are where they are called
        self._name = function_name(fun)
        self._cache = call_cache(fun, ("jit", *static, *donate, options, places))
        self._calls, self._fast = self._cache.entries, self._cache.fast

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if context.trace is not None:
                return self._call(args, kwargs)
            flat = self._plain and not kwargs and (not args or type(args[0]) in WITH_TYPES)
            if flat and (not self._cache.trees or WITH_TYPES.issuperset(map(type, args))):  # hot: Arrays, seen before
                try:
                    found = self._fast.get((context.global_key, context.local_key, *[x._aval for x in args]))  # type: ignore[attr-defined]
                    if found is None:
                        found = self._fast.get((context.global_key, context.local_key, *noted_types(args)))
                except AttributeError:  # not an Array
                    found = None
                if found is not None:
                    return run_fast(found, args)
            if self._splits:  # the same for trees of values, and static arguments
                try:
                    key, avals, leaves, arrays = self._hot_key(args, kwargs)
                    found = self._cache.how(key, avals)
                    if found is None:
                        found = self._cache.how(key, noted_types(arrays))
                except Exception:  # no value of the language, or no key: the long way says which, if any
                    found = None
                if found is not None:
                    if found[1] is None:  # then an argument may be a result, which must not share NumPy's memory
                        arrays = [as_array(x) if type(x) is np.ndarray else a for x, a in zip(leaves, arrays)]  # noqa: B905
                    return run_fast(found, arrays)
            return self._call(args, kwargs)
        except Exception as error:
            shorten(error)
            raise

    def _hot_key(self, args, kwargs) -> tuple[tuple, list, list, list]:
        """What a call is known by beside the types of its leaves, these types, the leaves, and these as Arrays for the
        time of the call.
        """
        statics: Any = ()
        if not self._plain:
            nums, names = self._static_nums, self._static_names
            statics = [(i, type(args[i]), args[i]) for i in nums if i < len(args)]
            args = tuple([x for i, x in enumerate(args) if i not in nums])
            if kwargs:
                statics += [(k, type(x), x) for k, x in sorted(kwargs.items()) if k in names]
                kwargs = {k: x for k, x in kwargs.items() if k not in names}
            statics = tuple(statics)
        tree, leaves, arrays, avals = self._cache.arrays_of((args, kwargs) if kwargs else args, readable_arrays)
        return (context.global_key, context.local_key, tree, len(kwargs), statics), avals, leaves, arrays

    def _call(self, args, kwargs):
        if context.disable_jit:
            with checking(self._options.checks):
                return self._fun(*args, **kwargs)
        if has_states(self, args, kwargs):
            return call_on_parts(self, args, kwargs)
        leaves, call, _, _ = self._traced_call(args, kwargs)
        known = known_by(self, args, kwargs, leaves, call) if context.trace is None else None
        if call.placing is not None and context.trace is None:
            outs = call.placing.run(self._bound(call), call.donated, leaves, None)
        elif self._options.inline and context.trace is not None:
            outs = eval_jaxpr(call.closed.jaxpr, call.closed.consts, *call.outer, *leaves)
        else:
            try:
                outs = jit_p.bind(*call.outer, *leaves, **self._params(call))
            except TypeError:
                self._check_are_values(leaves, args, kwargs)
                raise
        if known is not None:
            remember(self, known, call, outs)
        return tree_unflatten(call.out_tree, outs)

    def _bound(self, call: TracedCall):
        """A call as a function of its arguments, as programs are."""
        return lambda leaves, out_avals: jit_p.bind(*call.outer, *leaves, **self._params(call))

    def _params(self, call: TracedCall) -> dict:
        params = {"name": self._name, "jaxpr": call.closed}
        if any(call.donated):
            params["donated_invars"] = (False,) * len(call.outer) + call.donated
        if context.trace is not None and call.placing is not None and call.placing.device is not None:
            params["device"] = call.placing.device  # for what transformations make of the call
        if self._options.inline:
            params["inline"] = True
        if self._options.keep_unused:
            params["keep_unused"] = True
        return params

    # ---- from arguments to a traced call

    def _traced_call(self, args, kwargs):
        """The dynamic leaves of the arguments, the function traced for their types, their tree and types."""
        leaves, (in_tree, avals, statics, *_) = leaves, key = self.types_of(args, kwargs)
        call = self._calls.get(key)
        if call is None:
            arguments.check_may_trace(self._fun)
            misses.missed(self._fun, key, self._calls, lambda: self._leaf_names(args, kwargs))
            call = self._trace(args, kwargs, statics, in_tree, avals)
            if context.recorded is None and not any(isinstance(x, Tracer) for x in call.outer):
                self._calls[key] = call
        if call.has_references:
            leaves = [core_of(x) for x in leaves]
            names = lambda: self._leaf_names(args, kwargs)  # noqa: E731
            arguments.check_aliasing([self._fun], call.outer, leaves, names, "jit")
        return leaves, call, in_tree, avals

    def types_of(self, args, kwargs) -> tuple[list, tuple]:
        """The dynamic leaves of the arguments; what a trace is known by: tree, types, static arguments, flags, axes."""
        statics, dynamic_args, dynamic_kwargs = self._split(args, kwargs)
        leaves, in_tree = tree_flatten((dynamic_args, dynamic_kwargs))
        avals = self._avals(leaves, args, kwargs)
        in_force = context.global_key, context.local_key, tuple(context.axis_env.items())
        return leaves, (in_tree, avals, statics, *in_force)

    def _split(self, args, kwargs):
        """Static arguments as part of a cache key, and the others."""
        if not self._static_nums and not self._static_names:
            return (), args, kwargs
        nums = {i % len(args) if args else i for i in self._static_nums if -len(args) <= i < len(args)}
        statics = tuple((i, arguments.Static(x)) for i, x in enumerate(args) if i in nums) + tuple(
            (k, arguments.Static(kwargs[k])) for k in sorted(kwargs) if k in self._static_names
        )
        dynamic_args = tuple(x for i, x in enumerate(args) if i not in nums)
        return statics, dynamic_args, {k: v for k, v in kwargs.items() if k not in self._static_names}

    def _avals(self, leaves, args, kwargs) -> tuple:
        avals = tuple([x.aval if type(x) is Array else arguments.leaf_aval(x) for x in leaves])
        if None in avals:
            names = self._leaf_names(args, kwargs)
            position = avals.index(None)
            raise arguments.bad_leaf(self._fun, leaves[position], names[position])
        return avals

    def _check_are_values(self, leaves, args, kwargs):
        """Raise where a leaf only describes an array: such has a type, by which one may trace, and no value."""
        for x, name in zip(leaves, self._leaf_names(args, kwargs), strict=True):
            if not isinstance(x, VALUES) and not dtypes.is_scalar_or_numpy(x):
                raise TypeError(
                    f"Argument '{name}' of shape {arguments.leaf_aval(x).str_short()} of type {type(x)} is not a valid "
                    "JAX type."
                ) from None

    def _leaf_names(self, args, kwargs) -> list[str]:
        nums = {i % len(args) for i in self._static_nums if -len(args) <= i < len(args)} if args else ()
        return arguments.argument_names(self._fun, args, kwargs, nums, self._static_names)

    def _names_by_structure(self, args, kwargs, statics, in_tree) -> list[str]:
        """``_leaf_names``, which other arguments of the same structure have, too."""
        known, key = self._cache.names, (in_tree, tuple([k for k, _ in statics]))
        found = known.get(key)
        return known.setdefault(key, self._leaf_names(args, kwargs)) if found is None else found

    def _trace(self, args, kwargs, statics, in_tree, avals) -> TracedCall:
        given = dict(statics)
        static_kwargs = {k: s.value for k, s in given.items() if isinstance(k, str)}
        count = len(args)
        result = {}
        places = self._places if type(self._places) is Places else None

        def flat_fun(*leaves):
            inner = leaves if places is None else said(leaves, places.arguments(in_tree))
            dynamic_args, dynamic_kwargs = tree_unflatten(in_tree, inner)
            dynamic = iter(dynamic_args)
            full = [given[i].value if i in given else next(dynamic) for i in range(count)]
            out = self._fun(*full, **dynamic_kwargs, **static_kwargs)
            outs, result["tree"] = tree_flatten(out)
            return outs if places is None else said(outs, places.results(result["tree"]), (*leaves, *inner))

        info = DebugInfo(
            "jit",
            function_place(self._fun),
            self._names_by_structure(args, kwargs, statics, in_tree),
            lambda: arguments.leaf_paths(result["tree"]),
        )
        checks, start = self._options.checks, time.perf_counter()
        with events.timed(events.TRACE, fun_name=self._name), checking(checks):
            jaxpr, consts = trace_to_jaxpr(flat_fun, avals, info)
        info.result_paths = None
        closed, outer = hoist_tracers(jaxpr, consts)
        closed.jaxpr.debug_info.seconds = time.perf_counter() - start
        closed = checked_call(closed, self._name, checks)
        donated = self._donated(args, kwargs, len(avals))
        placing = self._places.placing(in_tree, result["tree"], closed) if self._places is not None else None
        return TracedCall(closed, result["tree"], outer, donated, placing)

    def _donated(self, args, kwargs, count: int) -> tuple:
        if not self._donate_nums and not self._donate_names:
            return (False,) * count
        flags = []
        nums = {i % len(args) for i in self._static_nums if -len(args) <= i < len(args)}
        donate = {i % len(args) for i in self._donate_nums if -len(args) <= i < len(args)}
        for i, x in enumerate(args):
            if i not in nums:
                flags += [i in donate] * len(tree_flatten(x)[0])
        for k in sorted(kwargs):
            if k not in self._static_names:
                flags += [k in self._donate_names] * len(tree_flatten(kwargs[k])[0])
        return tuple(flags)

    # ---- stages

    @api_boundary
    def trace(self, *args, **kwargs) -> stages.Traced:
        """Trace for these arguments (arrays, or anything with shape and dtype) without compiling."""
        leaves, call, in_tree, avals = self._traced_call(args, kwargs)
        names, given = self._leaf_names(args, kwargs), tuple(map(stages.sharding_given, leaves))
        return stages.Traced(self._fun, self._name, call, in_tree, avals, names, self._options.keep_unused, given)

    def lower(self, *args, **kwargs) -> stages.Lowered:
        """Trace and translate to the compiler's graph; ``.compile()`` finishes the way."""
        return self.trace(*args, **kwargs).lower()

    def explain(self, *args, **kwargs) -> str:
        """What became of the function for these arguments: which operations are one pass over memory, what calls
        of libraries and loops there are, with the lines of its source; and why it was compiled more than once.

        Without the arguments that the function needs: for which types it was traced so far, and why each time: which
        argument changed, in which respect, and what to do.
        """
        if not args and not kwargs and arguments.needs_arguments(self._fun):
            return explain.all_traces(self._fun, dict(self._calls))
        compiled = self.lower(*args, **kwargs).compile()
        return explain.explanation(compiled, self._fun, dict(self._calls))

    def profile(self, *args, **kwargs):
        """What each step of the program for these arguments takes, as a table: the program is run some times with a
        clock around every step.

        Returns:
          A ``Profile``: ``rows`` with times, bytes and operations, beside what this machine does at most.
        Raises:
          CompileError: there is no compiler.

        >>> import catena as jax
        >>> table = jax.jit(lambda x: jax.numpy.sort(jax.numpy.exp(x))).profile(jax.numpy.ones(1000))
        >>> [row.what.split()[0] for row in table.rows]
        ['launch', 'sort', 'launch']
        """
        return self.lower(*args, **kwargs).compile().profile(*args, **kwargs)

    def eval_shape(self, *args, **kwargs):
        """The shapes and dtypes of the result, without computing anything."""
        if given := symbolic_shapes.symbolic((args, kwargs)):
            return symbolic_shapes.shapes(self.eval_shape, args, kwargs, given)
        if has_states(self, args, kwargs):
            on_parts, parts, named, _ = as_parts(self, args, kwargs)
            return on_parts.eval_shape(*parts, **named)[0]
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self):
        """Forget everything that was traced and compiled for this function."""
        self._cache.clear_cache()

    def _cache_size(self) -> int:
        return len(self._calls)

    def __get__(self, instance, owner=None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self):
        return f"<JitFunction of {function_place(self._fun)}>"

    def __reduce__(self):
        given = self._fun, self._static_nums, self._static_names, self._donate_nums, self._donate_names
        return global_name(self) or (_rebuild_jit, (*given, self._options, self._places))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


# The name of JAX's class: programs ask for it to know whether a function is jitted ("PjitFunction" in str(type(f))).
JitFunction.__name__ = JitFunction.__qualname__ = "PjitFunction"


# ---- what was called before


def known_by(jitted: JitFunction, args, kwargs, leaves, call: TracedCall) -> tuple | None:
    """What a call will be known by on the hot path, asked while donated arguments still have their types: its keys,
    whether it takes Arrays alone, its arguments as Arrays, and whether somebody said where these are. None: nothing is
    to be remembered.
    """
    if call.outer or not jitted._splits or looks_at_results() or context.debug_key_reuse is True:
        return None
    try:
        key, avals, *_ = jitted._hot_key(args, kwargs)
    except Exception:  # the hot path would not find it either
        return None
    if None in avals:  # deleted arrays, which are of no type there
        return None
    keys, typed = [(*key, *avals)], WITH_TYPES.issuperset(map(type, leaves))
    arrays = [x if isinstance(x, (Array, Cell)) else known_array(x) for x in leaves]
    placed = context.default_placement is not None or any(x._placement is not None for x in arrays)
    if jitted._plain and not kwargs and WITH_TYPES.issuperset(map(type, args)):
        keys.append((context.global_key, context.local_key, *[x._aval for x in arrays]))
    return keys, typed, arrays, placed


def remember(jitted: JitFunction, known: tuple, call: TracedCall, outs):
    """Remember how to run a call that returned ``outs``, for the hot path."""
    program = program_of(call.closed, call.donated, jitted._name, jitted._options.keep_unused)
    if program.stacks:
        return
    keys, typed, arrays, placed = known
    told = outs if typed and all(type(x._value) is np.ndarray for x in arrays) else None
    how = how_to_run(program, call, placed, told, arrays)
    jitted._fast.update(dict.fromkeys(keys, how))
    jitted._cache.expect(keys[0][2], [*map(type, arrays)] if typed else None)


# ---- objects with a state among the arguments


def has_states(jitted: JitFunction, args, kwargs) -> bool:
    """Whether there are such objects among the arguments that are not static; asked only where there are such types."""
    return bool(high_types) and stateful.any_in(jitted._split(args, kwargs)[1:])


def jitted_likewise(jitted: JitFunction, fun: Callable, places) -> JitFunction:
    """A function jitted as another is, but for its ``Places``, which are part of what its calls are remembered by."""
    static, donate = (jitted._static_nums, jitted._static_names), (jitted._donate_nums, jitted._donate_names)
    return JitFunction(fun, static, donate, options=jitted._options, places=places)


def as_parts(jitted: JitFunction, args, kwargs) -> tuple[JitFunction, tuple, dict, list]:
    """A jitted function of what such objects are made of, its arguments, and the objects."""
    found = vars(jitted).get("_of_parts")
    if found is None:
        places = None if jitted._places is None else jitted._places.with_another_result()
        found = vars(jitted)["_of_parts"] = jitted_likewise(jitted, stateful.on_parts(jitted._fun), places)
    _, dynamic_args, dynamic_kwargs = jitted._split(args, kwargs)
    (parts, named), objects = stateful.to_parts((dynamic_args, dynamic_kwargs))
    nums = {i % len(args) for i in jitted._static_nums if -len(args) <= i < len(args)}
    rest = iter(parts)
    return found, tuple([x if i in nums else next(rest) for i, x in enumerate(args)]), kwargs | named, objects


def call_on_parts(jitted: JitFunction, args, kwargs):
    """A call whose objects get what became of them."""
    on_parts, parts, named, objects = as_parts(jitted, args, kwargs)
    out, final = on_parts(*parts, **named)
    stateful.put_back(objects, final)
    return out


# ---- other ways to make and call one


def traced_once(fun, *args, **kwargs):
    """``fun(*args, **kwargs)``, for functions that are traced once for each type of arguments but not compiled: the
    trace is evaluated operation by operation.
    """
    leaves, call, _, _ = jit(fun)._traced_call(args, kwargs)
    outs = eval_jaxpr(call.closed.jaxpr, call.closed.consts, *call.outer, *leaves)
    return tree_unflatten(call.out_tree, outs)


def _rebuild_jit(fun, static_nums, static_names, donate_nums, donate_names, options, places=None):
    static, donate = (static_nums, static_names), (donate_nums, donate_names)
    return JitFunction(fun, static, donate, options=Options(*options), places=places)


def looks_at_results() -> bool:
    """Whether flags ask for more at a call than to run the program."""
    flags = context.no_execution, context.debug_nans, context.debug_infs, context.default_placement is not None
    return context.debug_checks and any(flags)


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: Any = ...,
    static_argnames: Any = ...,
    donate_argnums: Any = ...,
    donate_argnames: Any = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict | None = ...,
    checks: str | tuple[str, ...] | None = ...,
) -> JitFunction[P, R]: ...


@overload
def jit(
    fun: NotGiven = ...,
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: Any = ...,
    static_argnames: Any = ...,
    donate_argnums: Any = ...,
    donate_argnames: Any = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict | None = ...,
    checks: str | tuple[str, ...] | None = ...,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(
    fun=NOT_GIVEN,
    /,
    *,
    in_shardings=None,
    out_shardings=None,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused: bool = False,
    device=None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict | None = None,
    checks: str | tuple[str, ...] | None = None,
):
    """Compile a function: the first call for each type of arguments traces and compiles, later ones run native code.

    Arguments:
      fun: a pure function of trees of arrays. Without it, a decorator is returned.
      in_shardings, out_shardings: where arguments and results are put: shardings (or devices) of one device, or trees
        of them and ``None`` that are prefixes of the arguments (positional ones only) and of the result. Called inside
        another jitted function, the call runs where that one runs.
      static_argnums, static_argnames: positions and names of arguments that are compile-time constants; they
        must be hashable, and each value compiles anew.
      donate_argnums, donate_argnames: arguments whose memory may be reused for results; they are deleted by
        the call.
      keep_unused: whether arguments that the function does not read are passed to the program all the same.
      device, backend: where to run: arguments are moved there. The CPU is the only backend.
      inline: whether the call dissolves into the equations around it when it is itself traced.
      compiler_options: options of XLA by name; they are checked, and there is nothing here that they govern.
      checks: what to check in every operation: ``"index"``, ``"nan"``, ``"inf"``, ``"div"``, ``"overflow"``, several
        with commas or as a tuple, or ``"all"``. The call raises where a check fails: see ``catena.checks``.
    Returns:
      A function with the signature of ``fun``, with methods ``trace``, ``lower``, ``eval_shape`` and
      ``clear_cache``.
    Raises:
      TypeError: when ``fun`` is not callable, or is a generator function.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.jit(lambda x: jnp.sum(x * x))(jnp.arange(4.0))
    Array(14., dtype=float32)
    """
    if fun is NOT_GIVEN:
        options = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(jit, **options)
    check_function(fun)
    places = asked_places(in_shardings, out_shardings, device, backend)
    stages.check_compiler_options(compiler_options)
    special = (static_argnums, static_argnames, donate_argnums, donate_argnames)
    signature = arguments.signature_of(fun) if any(x is not None for x in special) else None  # 10 us
    static = arguments.resolve_argnums(signature, static_argnums, static_argnames, "static")
    if signature is None and donate_argnames is not None and donate_argnums is None:
        raise ValueError(
            f"Getting the signature of function {fun} failed. Pass donate_argnums instead of donate_argnames."
        )
    donate = arguments.resolve_argnums(signature, donate_argnums, donate_argnames, "donate")
    arguments.check_disjoint(static, donate)
    return JitFunction(fun, static, donate, options=Options(inline, keep_unused, checks_named(checks)), places=places)
