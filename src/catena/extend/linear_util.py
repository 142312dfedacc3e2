"""Functions with transformations around them, as those write who transform functions by hand.

A transformation is a function ``t(f, *static, *args, **kwargs)`` that calls ``f`` somewhere. ``WrappedFun`` keeps a
function with the transformations that were put around it, so that functions that were made alike are equal, and caches
know them. Older transformations are generators, which yield the arguments for ``f``, are sent its result, and yield
their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable as Callable
from typing import Any

from catena.core.context import context
from catena.core.namespace import shown as _shown
from catena.core.source import function_name as _function_name


class StoreException(Exception):
    """A transformation's second result was read before the function ran, or was stored twice."""


class Store:
    """A place for one value, which a transformation leaves while the function runs."""

    def __init__(self):
        self._value: tuple = ()

    def store(self, value) -> None:
        """Keep the value.

        Raises:
          StoreException: there is one.
        """
        if self._value:
            raise StoreException("Store occupied")
        self._value = (value,)

    def reset(self) -> None:
        """Forget the value."""
        self._value = ()

    @property
    def val(self):
        """The value."""
        if not self._value:
            raise StoreException("Store empty")
        return self._value[0]

    def __bool__(self) -> bool:
        return bool(self._value)


class EqualStore(Store):
    """A place that may be given the same value again."""

    def store(self, value) -> None:
        """Keep the value.

        Raises:
          StoreException: there is another.
        """
        if self._value and self._value[0] != value:
            raise StoreException("Store occupied with a different value")
        self._value = (value,)


class WrappedFun:
    """A function with transformations around it; ``wrap_init`` makes the first.

    ``f`` is the function, ``transforms`` the transformations with their static arguments, the outermost first,
    ``f_transformed`` what is called, ``stores`` a place for each transformation that leaves a value, ``params`` keyword
    arguments of ``f`` as pairs.
    """

    __slots__ = ("f", "f_transformed", "transforms", "stores", "params", "in_type", "debug_info")

    def __init__(self, f: Callable, f_transformed: Callable, transforms, stores, params, in_type, debug_info):
        self.f, self.f_transformed, self.transforms, self.stores = f, f_transformed, transforms, stores
        self.params, self.in_type, self.debug_info = params, in_type, debug_info

    @property
    def __name__(self) -> str:
        return _function_name(self.f)

    def call_wrapped(self, *args, **kwargs):
        """Call the function with its transformations."""
        return self.f_transformed(*args, **kwargs)

    def wrap(self, gen: Callable, gen_static_args: tuple, out_store: Store | None) -> WrappedFun:
        """The function with one more transformation around it."""
        if out_store is None:
            transformed = functools.partial(gen, self.f_transformed, *gen_static_args)
        else:
            transformed = functools.partial(gen, self.f_transformed, out_store, *gen_static_args)
        transforms, stores = ((gen, gen_static_args), *self.transforms), (out_store, *self.stores)
        return WrappedFun(self.f, transformed, transforms, stores, self.params, None, self.debug_info)

    def populate_stores(self, stores) -> None:
        """Leave the values of other places in those of this function."""
        for own, other in zip(self.stores, stores, strict=True):
            if own is not None:
                own.store(other.val)

    def replace_debug_info(self, dbg) -> WrappedFun:
        """The same function with other words for errors."""
        return WrappedFun(self.f, self.f_transformed, self.transforms, self.stores, self.params, self.in_type, dbg)

    def with_unknown_names(self) -> WrappedFun:
        """The same function, nothing said of the names of its arguments."""
        return self.replace_debug_info(self.debug_info and self.debug_info.with_unknown_names())

    def _key(self) -> tuple:
        return self.f, self.transforms, self.params, self.in_type

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        lines = [f"{i}   : {_function_name(gen)}   {static}" for i, (gen, static) in enumerate(self.transforms)]
        return "\n".join(["Wrapped function:", *lines, f"Core: {_function_name(self.f)}"])


def wrap_init(f: Callable, params: dict | None = None, *, debug_info=None) -> WrappedFun:
    """A function that transformations can be put around.

    Arguments:
      f: the function.
      params: keyword arguments that it is always called with.
      debug_info: what errors say of it; see `catena.api_util.debug_info`.
    Returns:
      A `WrappedFun`.

    >>> from catena.extend import linear_util as lu
    >>> lu.wrap_init(lambda x: x + 1).call_wrapped(2)
    3
    """
    params = params or {}
    call = functools.partial(f, **params) if params else f
    return WrappedFun(f, call, (), (), tuple(sorted(params.items())), None, debug_info)


def _of_call(fun) -> WrappedFun:
    """The function of a call, as a user's trace is given it, as one that transformations can be put around."""
    return fun if isinstance(fun, WrappedFun) else wrap_init(fun)


def transformation2(gen: Callable, fun: WrappedFun | None = None, *gen_static_args) -> Any:
    """Put a transformation around a function.

    Arguments:
      gen: ``gen(f, *gen_static_args, *args, **kwargs)``, which calls ``f`` and returns the result.
      fun: the function; without it, a decorator of ``gen`` is returned.
      gen_static_args: the first arguments of ``gen``, which must be hashable.
    Returns:
      A `WrappedFun`, or a function of it and the static arguments.

    >>> from catena.extend import linear_util as lu
    >>> @lu.transformation2
    ... def scaled(f, factor, *args):
    ...     return factor * f(*args)
    >>> scaled(lu.wrap_init(lambda x: x + 1), 10).call_wrapped(2)
    30
    """
    if fun is None:
        return functools.partial(transformation2, gen)
    return _of_call(fun).wrap(gen, gen_static_args, None)


def transformation_with_aux2(
    gen: Callable,
    fun: WrappedFun | None = None,
    *gen_static_args,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> Any:
    """Put a transformation around a function that leaves a second value.

    Arguments:
      gen: ``gen(f, store, *gen_static_args, *args, **kwargs)``, which calls ``store.store(value)``.
      fun: the function; without it, a decorator of ``gen`` is returned.
      gen_static_args: further arguments of ``gen``, which must be hashable.
      use_eq_store: whether an equal value may be left again.
      unk_names: whether nothing is known of the names of the arguments any more.
    Returns:
      The `WrappedFun`, and a function that returns the value once the function has run.

    >>> from catena.extend import linear_util as lu
    >>> @lu.transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> f, count = counted(lu.wrap_init(max))
    >>> f.call_wrapped(3, 7, 5), count()
    (7, 3)
    """
    if fun is None:
        return functools.partial(transformation_with_aux2, gen, use_eq_store=use_eq_store, unk_names=unk_names)
    store = EqualStore() if use_eq_store else Store()
    wrapped = _of_call(fun).wrap(gen, gen_static_args, store)
    return wrapped.with_unknown_names() if unk_names else wrapped, lambda: store.val


def transformation(gen: Callable, fun: WrappedFun | None = None, *gen_static_args) -> Any:
    """`transformation2` of a generator, which yields ``(args, kwargs)`` for the function, and then the result.

    >>> from catena.extend import linear_util as lu
    >>> @lu.transformation
    ... def scaled(factor, *args):
    ...     result = yield args, {}
    ...     yield factor * result
    >>> scaled(lu.wrap_init(lambda x: x + 1), 10).call_wrapped(2)
    30
    """
    if fun is None:
        return functools.partial(transformation, gen)
    return _of_call(fun).wrap(_driven(gen), gen_static_args, None)


def transformation_with_aux(gen: Callable, fun: WrappedFun | None = None, *gen_static_args) -> Any:
    """`transformation_with_aux2` of a generator, which yields ``(args, kwargs)`` for the function, and then the result
    and the second value.

    >>> from catena.extend import linear_util as lu
    >>> @lu.transformation_with_aux
    ... def counted(*args):
    ...     result = yield args, {}
    ...     yield result, len(args)
    >>> f, count = counted(lu.wrap_init(max))
    >>> f.call_wrapped(3, 7, 5), count()
    (7, 3)
    """
    if fun is None:
        return functools.partial(transformation_with_aux, gen)
    store = Store()
    return _of_call(fun).wrap(_driven_with_aux(gen), gen_static_args, store), lambda: store.val


def _drive(gen, f, static, args, kwargs):
    generator = gen(*static, *args, **kwargs)
    inner_args, inner_kwargs = next(generator)
    result = generator.send(f(*inner_args, **inner_kwargs))
    generator.close()
    return result


@functools.cache
def _driven(gen: Callable) -> Callable:
    """A generator's transformation as a function; one and the same for one generator, so that functions stay equal."""

    @functools.wraps(gen)
    def call(f, *args, **kwargs):
        return _drive(gen, f, (), args, kwargs)

    return call


@functools.cache
def _driven_with_aux(gen: Callable) -> Callable:
    @functools.wraps(gen)
    def call(f, store, *args, **kwargs):
        result, aux = _drive(gen, f, (), args, kwargs)
        store.store(aux)
        return result

    return call


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """The value of whichever of two places has one, and whether it is the first.

    >>> from catena.extend import linear_util as lu
    >>> f, count = lu.transformation_with_aux2(lambda f, s: s.store(1) or f(), lu.wrap_init(dict))
    >>> g, other = lu.transformation_with_aux2(lambda f, s: s.store(2) or f(), lu.wrap_init(dict))
    >>> _ = g.call_wrapped()
    >>> lu.merge_linear_aux(count, other)
    (False, 2)
    """
    values = []
    for aux in (aux1, aux2):
        try:
            values.append((aux(),))
        except StoreException:
            values.append(())
    if bool(values[0]) == bool(values[1]):
        raise StoreException("both stores are occupied" if values[0] else "neither store is occupied")
    return (True, values[0][0]) if values[0] else (False, values[1][0])


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """``call(fun, *args)`` remembered by the function and the arguments.

    Arguments:
      call: a function of a `WrappedFun` and hashable arguments.
      explain: called as ``explain(fun, seen_before, {}, args, seconds)`` where nothing is remembered.
    Returns:
      The function. Places that the function's transformations left values in are filled from memory, too.

    >>> from catena.extend import linear_util as lu
    >>> call = lu.cache(lambda fun, x: print("called") or fun.call_wrapped(x))
    >>> f = lu.wrap_init(abs)
    >>> call(f, -1), call(f, -1)
    called
    (1, 1)
    """
    known: dict = {}

    @functools.wraps(call)
    def remembered(fun: WrappedFun, *args):
        key = (fun, args, context.trace, context.global_key, context.local_key)
        found = known.get(key)
        if found is not None:
            result, stores = found
            fun.populate_stores(stores)
            return result
        if explain is not None:
            explain(fun, any(other.f is fun.f for other, *_ in list(known)), {}, args, 0.0)
        result = call(fun, *args)
        known[key] = (result, fun.stores)
        return result

    remembered.cache_clear = known.clear  # type: ignore[attr-defined]
    return remembered


__dir__ = _shown(globals())
