"""Functions of several operands in two stages, for loops in which some operands do not change.

The first stage computes, of scalars, all that hangs on these operands alone, as log(gamma(a)) in a density of shape
``a``; the second the rest, in lanes, from the other operands and what the first one gives. One call of the function
writes both: what is made of operands of the first stage is written there. All stages and widths compute the same bits.
"""

from collections.abc import Callable, Sequence

from .text import Type, Value, Writer, define, symbol

FIRST, SECOND, LANES = "first", "second", "lanes"  # the third is the second where lanes differ in what they are given


def names(name: str, known: str) -> tuple[str, str]:
    """What the stages of a function are called, the first being of the parameters ``known``.

    >>> names("igamma", "x")
    ('igamma.first.x', 'igamma.second.x')
    """
    return f"{name}.{FIRST}.{known}", f"{name}.{SECOND}.{known}"


def of(name: str) -> tuple[str, str, str] | None:
    """The function, the stage and the parameters of the first one, if a name is that of a stage."""
    parts = name.split(".")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None


def record(types: Sequence[object]) -> str:
    """The type of what the first stage returns, as LLVM IR."""
    return f"{{ {', '.join(map(str, types))} }}"


class Stages:
    """A function of so many parameters, written in both stages."""

    def __init__(self, function: Callable[..., Value], parameters: Sequence[str], known: str, elem: str, width: int):
        self.elem, self.width = elem, width
        self.known = [p for p in parameters if p in known]
        self.others = [p for p in parameters if p not in known]
        self.first = Writer()
        self.second = Writer(self.first, width)
        scalar, vector = Type(elem, 1), Type(elem, width)
        self.result = self.second.own(
            function(
                *(
                    Value(self.first, scalar, f"%{p}") if p in known else Value(self.second, vector, f"%{p}")
                    for p in parameters
                )
            )
        )

    @property
    def given(self) -> list[Value]:
        """What the first stage gives to the second."""
        return list(self.second.given.values())

    def define(self, stage: str, name: str) -> tuple:
        return self._define_first(name) if stage == FIRST else self._define_second(name, stage == LANES)

    def _define_first(self, name: str) -> tuple:
        type_, result = record([x.type for x in self.given]), "poison"
        for k, x in enumerate(self.given):
            self.first.lines.append(f"  %result.{k} = insertvalue {type_} {result}, {x.type} {x.name}, {k}")
            result = f"%result.{k}"
        parameters = [f"{Type(self.elem, 1)} %{p}" for p in self.known]
        return define(symbol(name, self.elem, 1), self.first, parameters, type_, result, often=False)

    def _define_second(self, name: str, in_lanes: bool) -> tuple:
        vector, own = Type(self.elem, self.width), [f"%given.{k}" for k in range(len(self.given))]
        parameters = [f"{vector} %{p}" for p in self.others]
        if in_lanes:
            parameters += [f"{Type(x.type.elem, self.width)} {k}.all" for k, x in zip(own, self.given)]
        else:
            self.second.lines[1:1] = [line for k, x in zip(own, self.given) for line in _spread(k, x.type, self.width)]
            parameters += [f"{x.type} {k}" for k, x in zip(own, self.given)]
        return define(symbol(name, self.elem, self.width), self.second, parameters, str(vector), self.result.name)


def _spread(name: str, scalar: Type, width: int) -> list[str]:
    vector = Type(scalar.elem, width)
    return [
        f"  {name}.one = insertelement {vector} poison, {scalar} {name}, i64 0",
        f"  {name}.all = shufflevector {vector} {name}.one, {vector} poison, <{width} x i32> zeroinitializer",
    ]
