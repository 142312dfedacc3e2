"""Functions that are exported for lengths which are not known: data that has expressions where others have numbers.

A function is traced where numbers stand for its variables, several times (see `transform.symbolic_shapes`). What is
written of its programs is of one form, and differs in numbers: lengths, and what was reckoned of them. In place of
those stand expressions of the variables that have these values. When the function is called, the shapes of arguments
tell the variables, the expressions become numbers again, and what comes of it is read and checked as any exported
program is.

So programs are those of lengths about a hundred. That those of others are the same is seen when a function is
exported, for some of them, from the least to large ones (`_tried`): a program that does one thing below a length and
another above is seen by that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from catena.core import dimensions, dtypes
from catena.core.array import Array, typed_array
from catena.core.aval import ShapedArray
from catena.core.config import overridden
from catena.core.dimensions import Dimension, Scope
from catena.core.errors import InconclusiveDimensionOperation
from catena.core.named import NamedTuple
from catena.core.struct import ShapeDtypeStruct
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten, tree_leaves, tree_unflatten
from catena.core.zeros import get_aval
from catena.export.container import pack
from catena.export.exported import Exported, argument_name, chain_of, check_structure, read_function
from catena.export.expressions import Differ, Told, filled, merged, merged_programs, read_data, said, write_data
from catena.export.programs import Arrays, programs_with, read_arrays, well_formed, write_programs
from catena.export.shapes import SymbolicScope
from catena.export.values import expect, read_dtype, write_aval
from catena.transform import symbolic_shapes

TRIED = 2, 3, 5, 8, 13, 32, 64, 130, 1024, 5003  # lengths for which programs have to be those of others
MOST_COMPUTED = 130  # the length up to which programs that differ are computed, to see whether their results do
CLOSE = 1e-3  # results of one program: rounded otherwise they may be
MOST_LENGTHS = 64  # for which a function is kept as it was read


@dataclass(frozen=True)
class Template:
    """A function as data with expressions, and the arrays that it holds, which are the same for all lengths."""

    scope: Scope
    names: list[str]  # of the variables
    points: list[dict[str, int]]  # lengths that tell the expressions
    data: dict
    arrays: list[Array]

    def at(self, lengths: dict[str, int]) -> Exported:
        """The function for these lengths of the variables, without derivatives."""
        data = filled(self.data, lengths)
        return read_function(data["function"], programs_with(data["programs"], self.arrays), None)

    def types(self) -> tuple[tuple[ShapeDtypeStruct, ...], ...]:
        """Those of arguments, and those of results."""
        return tuple(
            tuple(ShapeDtypeStruct(shape, read_dtype(dtype), weak_type=weak) for dtype, shape, weak in each)
            for each in self.data["types"]
        )


class Traced(NamedTuple):
    """A function for some lengths, and what is written of it."""

    function: Exported
    written: dict
    programs: list

    @property
    def form(self) -> list:
        """The operations of its programs."""
        return [[equation[0] for equation in p["equations"]] for p in self.programs]


def _traced(at: Callable[[dict], Exported], constants: Arrays) -> Callable[[dict], Traced]:
    """From lengths to what is traced and written for these, once each."""
    known: dict[tuple, Traced] = {}

    def remembered(lengths: dict[str, int]) -> Traced:
        key = tuple(lengths.items())
        if key not in known:
            with overridden("recorded", dimensions.STANDING_IN):
                function = at(lengths)
            writer, (number,) = write_programs([function._program], constants)
            known[key] = Traced(function, function.written(number), writer.programs)
        return known[key]

    return remembered


def template_of(
    traced: Callable[[dict], Traced],
    scope: Scope,
    names: list[str],
    points: list[dict[str, int]],
    given: list[Dimension],
    constants: Arrays,
) -> Template:
    """A function as data.

    Arguments:
      traced: from lengths to the function for these.
      scope, names: of the variables.
      points: lengths that tell expressions.
      given: symbolic dimensions, which are expressions as they stand.
      constants: where arrays are written.
    Raises:
      Differ: its programs are not of one form.
    """
    found = [traced(lengths) for lengths in points]
    told = Told(scope, points, given, {})
    avals = [(x.function.in_avals, x.function.out_avals) for x in found]
    data = {
        "function": merged([x.written for x in found], told),
        "programs": merged_programs([x.programs for x in found], told),
        "types": merged([[[write_aval(a) for a in each] for each in both] for both in avals], told),
    }
    return Template(scope, names, points, data, constants.kept)


def _template_for_all(
    traced: Callable[[dict], Traced], scope: Scope, names: list[str], given: list[Dimension], constants: Arrays
) -> Template:
    """The template that holds for all lengths: told by those about a hundred, or by smaller ones, too, where lengths
    are the lesser or greater of two.

    Raises:
      Differ: there is none.
    """

    def made(points: list[dict[str, int]]) -> Template:
        template = template_of(traced, scope, names, points, given, constants)
        check_lengths(traced, template)
        return template

    usual = symbolic_shapes.lengths_of(scope, names)
    try:
        return made(usual)
    except Differ:
        others = symbolic_shapes.spread([symbolic_shapes.SMALL_AND_LARGE] * len(names), names, scope)
        form, alike = traced(usual[0]).form, []
        for lengths in others:
            with contextlib.suppress(Exception):  # what the user's function raises is told by the first attempt
                alike += [lengths] * (traced(lengths).form == form and lengths not in usual)
        with contextlib.suppress(Differ):
            return made(usual + alike)
        raise


def check_lengths(traced: Callable[[dict], Traced], template: Template) -> None:
    """Raise where there is no program for some lengths, or another one that computes something else: where a length is
    1, tracing leaves out what does nothing.

    Arguments:
      traced: from lengths to the function for these.
    """
    others, raised = [], None
    for lengths in _tried(template.scope, template.names):
        try:
            found = traced(lengths)
        except Exception as error:  # the user's function may raise anything: it is told below
            others, raised = [*others, lengths], error
            continue
        if found.programs != filled(template.data["programs"], lengths) and (
            max(lengths.values()) > MOST_COMPUTED or not _compute_the_same(found.function, template, lengths)
        ):
            others.append(lengths)
    if others:
        least = {name: max(lengths[name] for lengths in others) + 1 for name in template.names}
        cure = ", ".join(f"'{name} >= {n}'" for name, n in least.items() if n <= symbolic_shapes.USUAL[0])
        how = f", or none ({type(raised).__name__}: {raised})" if raised is not None else ""
        raise Differ(
            f"it is another{how} where {said(others)} than where lengths are about a hundred", cure
        ) from raised


def _compute_the_same(one: Exported, template: Template, lengths: dict[str, int]) -> bool:
    """Whether what is traced for some lengths, and what a template has for them, have results of the same types, and
    of the same values for arguments drawn at random.
    """
    try:
        other = template.at(lengths)
    except ValueError:  # its types do not fit
        return False
    if (one.in_avals, one.out_avals) != (other.in_avals, other.out_avals):
        return False
    rng = np.random.default_rng(0)
    args, kwargs = tree_unflatten(one.in_tree, [_drawn(a, rng) for a in one.in_avals])
    return all(map(_are_close, *(tree_leaves(f.call(*args, **kwargs)) for f in (one, other))))


def _drawn(aval: ShapedArray, rng: np.random.Generator) -> Array:
    shape, dtype = aval.dtype.physical(aval.shape) if aval.extended else (aval.shape, aval.dtype)
    drawn = rng.normal(size=shape) if dtypes.issubdtype(dtype, np.inexact) else rng.integers(0, 2, shape)
    return typed_array(drawn.astype(dtype), aval)


def _are_close(x: Any, y: Any) -> bool:
    a, b = (v._value if isinstance(v, Array) else v for v in (x, y))  # those of float0 are NumPy's
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return np.array_equal(a, b)
    a, b = (v.astype(np.complex128 if dtypes.issubdtype(v.dtype, np.complexfloating) else np.float64) for v in (a, b))
    is_number = np.isfinite(a)
    return np.array_equal(is_number, np.isfinite(b)) and np.allclose(a[is_number], b[is_number], CLOSE, CLOSE)


def _tried(scope: Scope, names: list[str]) -> list[dict[str, int]]:
    """Lengths of variables to try: all of `TRIED`, and those at the least that a constraint allows."""
    each = []
    for name in names:
        low = int(scope.bounds(name)[0])
        each.append(sorted({*TRIED, max(low, 2), low + 1, 2 * low}))
    found = symbolic_shapes.spread(each, names, scope)
    ones = dict.fromkeys(names, 1)
    return [*found, ones] if symbolic_shapes.are_allowed(scope, ones) else found


# ---- the function


@dataclass(frozen=True, eq=False, repr=False)
class Polymorphic(Exported):
    """A function that was exported for symbolic dimensions: shapes in ``in_avals`` and ``out_avals`` have these."""

    _program: Template = field(repr=False)  # type: ignore[assignment]

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """As ``Exported.call``, with arguments of any lengths that fit the symbolic shapes.

        Raises:
          ValueError: they do not.
        """
        leaves, tree = tree_flatten((args, kwargs))
        check_structure(self, tree, (args, kwargs))
        lengths = self._lengths([get_aval(leaf_value(x)).shape for x in leaves])
        return self.at(lengths).call(*args, **kwargs)

    def at(self, lengths: dict[str, int]) -> Exported:
        """The function for these lengths of variables: one object each, so that what calls it is compiled once."""
        return self._known(tuple(lengths[name] for name in self._program.names))

    @functools.cached_property
    def _known(self) -> Callable[[tuple], Exported]:
        names = self._program.names

        @functools.lru_cache(maxsize=MOST_LENGTHS)
        def at(numbers: tuple) -> Exported:
            lengths = dict(zip(names, numbers, strict=True))
            found = self._program.at(lengths)
            derivative = None if self._get_vjp is None else lambda exported: self.vjp().at(lengths)
            return dataclasses.replace(found, _get_vjp=derivative)

        return at

    def _lengths(self, shapes: list[tuple]) -> dict[str, int]:
        """The lengths of variables in arguments of such shapes.

        Raises:
          ValueError: there are none.
        """
        lengths, scope = solved(self.in_avals, shapes), self._program.scope
        for i, (want, shape) in enumerate(zip(self.in_avals, shapes, strict=True)):
            if not _fits(want.shape, shape, lengths):
                solution = f", where {said([lengths])}" if lengths else ""
                raise ValueError(
                    f"Shape mismatch for {argument_name(self, i)}: expected {_short(want)}, got the shape {shape}"
                    + solution
                )
        if min(lengths.values()) < 1:
            raise ValueError(f"{self.fun_name!r} was exported for lengths from 1 on, and {said([lengths])}")
        for c in scope.constraints:
            if not c.holds(lengths):
                raise ValueError(
                    f"{self.fun_name!r} was exported for {c.left} {c.relation} {c.right}, and {said([lengths])}"
                )
        return lengths

    def serialize(self, vjp_order: int = 0) -> bytearray:
        program, constants, given = self._program, Arrays(), symbolic_shapes.symbolic(self.in_avals)
        chain = [
            template_of(_traced(e.at, constants), program.scope, program.names, e._program.points, given, constants)
            for e in chain_of(self, vjp_order)
        ]
        head = {
            "variables": program.names,
            "constraints": [[str(c.left), c.relation, str(c.right)] for c in program.scope.constraints],
            "functions": [write_data(each.data) for each in chain],
            "arrays": constants.written,
        }
        return pack(head, constants.data)

    def __repr__(self):
        shown, results = (", ".join(map(_short, avals)) for avals in (self.in_avals, self.out_avals))
        return f"<Exported {self.fun_name}({shown}) -> ({results}), for {', '.join(self.platforms)}>"


def _short(x: ShapeDtypeStruct) -> str:
    return f"{dtypes.dtype_name(x.dtype)}[{','.join(map(str, x.shape))}]"


def _fits(want: tuple, shape: tuple, lengths: dict[str, int]) -> bool:
    """Whether a shape is that wanted, as far as variables are known."""
    return len(want) == len(shape) and all(
        dimensions.value(d, lengths) == n
        for d, n in zip(want, shape, strict=True)
        if dimensions.variables_of(d) <= lengths.keys()
    )


def solved(types: Sequence[ShapeDtypeStruct], shapes: Sequence[tuple]) -> dict[str, int]:
    """The lengths of variables, as far as shapes of arguments tell them."""
    lengths: dict[str, int] = {}
    pairs = [pair for t, shape in zip(types, shapes, strict=True) for pair in zip(t.shape, shape)]
    waiting = [(d, n) for d, n in pairs if isinstance(d, Dimension)]
    while waiting:
        later = []
        for d, n in waiting:
            missing = dimensions.variables_of(d) - lengths.keys()
            found = dimensions.root(d, n, *missing, lengths) if len(missing) == 1 else None
            if found is not None:
                lengths.update(dict.fromkeys(missing, found))
            elif missing:
                later.append((d, n))
        if len(later) == len(waiting):
            break
        waiting = later
    return lengths


def _made(template: Template, get_vjp: Callable | None, function: Exported) -> Polymorphic:
    """The function of a template, of which ``function`` is one for some lengths."""
    known = {f.name: getattr(function, f.name) for f in dataclasses.fields(Exported)}
    taken, returned = template.types()
    return Polymorphic(**known | {"in_avals": taken, "out_avals": returned, "_program": template, "_get_vjp": get_vjp})


def export_for_lengths(at: Callable[[dict], Exported], given: list[Dimension]) -> Polymorphic:
    """The function that was exported for some lengths, for all.

    Arguments:
      at: from lengths to the function that is traced for them.
      given: the symbolic dimensions of its arguments.
    Raises:
      ValueError: shapes do not tell all variables. InconclusiveDimensionOperation: programs are of several forms.
    """
    scope, names = symbolic_shapes.variables(given)
    constants = Arrays()
    traced = _traced(at, constants)
    first = traced(symbolic_shapes.lengths_of(scope, names)[0]).function
    try:
        template = _template_for_all(traced, scope, names, given, constants)
    except Differ as error:
        raise InconclusiveDimensionOperation(
            f"the program of {first.fun_name!r} hangs on the lengths of {', '.join(names)} otherwise than by "
            f"expressions: {error}. It has to be one for those that constraints of symbolic_shape allow"
            + (f", such as {error.cure}" if error.cure else "")
        ) from error.__cause__
    made = _made(template, None, first)
    unknown = set(names) - solved(made.in_avals, [a.shape for a in first.in_avals]).keys()
    if unknown:
        raise ValueError(
            f"the shapes of the arguments of {made.fun_name!r} do not tell {', '.join(sorted(unknown))}: each variable "
            "must be a length, or a multiple with something added, where the others are known"
        )
    derivative = lambda _: export_for_lengths(lambda lengths: traced(lengths).function.vjp(), given)
    return dataclasses.replace(made, _get_vjp=derivative)


def read_for_lengths(head: dict, data: memoryview) -> Polymorphic:
    """The function that was written by ``Polymorphic.serialize``.

    Raises:
      ValueError: there is none.
    """
    return well_formed(_read_function, head, read_arrays(head.get("arrays"), data))


def _read_function(head: dict, arrays: list[Array]) -> Polymorphic:
    names = [expect(x, str, "a variable") for x in expect(head["variables"], list, "variables")]
    scope = SymbolicScope([f"{left} {relation} {right}" for left, relation, right in head["constraints"]])
    points, made = symbolic_shapes.lengths_of(scope, names), None
    for item in reversed(expect(head["functions"], list, "the functions")):
        template = Template(scope, names, points, read_data(item, scope), arrays)
        get_vjp = None if made is None else lambda _, derivative=made: derivative
        made = _made(template, get_vjp, template.at(points[0]))
    if made is None:
        raise ValueError("there is no function in these bytes")
    return made
