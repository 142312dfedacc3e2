"""How jaxprs print: the grammar of the specification, with types.

Jaxprs are known here by their parts (``eqns``, ``val``), since the module that defines them prints by this
one.
"""

import numpy as np

from catena.core import dtypes
from catena.core.layout import Group, Line, Nest, render
from catena.core.source import function_name

HOIST_ABOVE = 10  # an inner jaxpr with more equations is printed once, in front, under a name

HIDDEN = {  # parameters that the types of the operands and results already tell
    "axis_index": lambda k, v: k == "varies",
    "broadcast_in_dim": lambda k, v: k == "shape" or (k == "broadcast_dimensions" and v == ()),
    "dot_general": lambda k, v: k in ("precision", "preferred_element_type") and v is None,
    "reshard": lambda k, v: True,
    **{f"random_{name}": lambda k, v: k == "impl" for name in ("bits", "split", "fold_in", "unwrap", "gamma")},
}


def variable_name(number: int) -> str:
    """``a`` ... ``z``, ``ba``, ``bb`` ..."""
    letters = ""
    while True:
        number, digit = divmod(number, 26)
        letters = chr(ord("a") + digit) + letters
        if number == 0:
            return letters


def is_jaxpr(x) -> bool:
    return hasattr(x, "eqns")


def open_jaxpr(x):
    """The jaxpr inside a closed one."""
    return x.jaxpr if hasattr(x, "consts") else x


def jaxpr_text(jaxpr, *, source_info: bool = False, name_stack: bool = False, use_color: bool = False, **_) -> str:
    """The printed jaxpr.

    Arguments:
      jaxpr: the jaxpr.
      source_info: whether each equation is followed by the user's line.
      name_stack: whether each equation is followed by the scopes around it.
      use_color: accepted for compatibility; the text has no colours.
    """
    if use_color:
        raise ValueError("jaxprs print without colours; leave use_color False")
    printer = Printer(source_info, name_stack)
    printer.find_shared(jaxpr)
    names = Names()
    heads = printer.shared_definitions(names)
    return render([*heads, printer.jaxpr(jaxpr, names)])


def equation_text(eqn) -> str:
    """One equation, with names of its own."""
    return render(Printer(False, False).equation(eqn, Names()))


ON_REFERENCES = {"get": 1, "swap": 2, "addupdate": 2}  # the operands before those of the index

UNUSED = "_"  # the name of every result that nobody reads


class Names:
    """The names given to variables so far; unique over one printed jaxpr."""

    def __init__(self):
        self.names: dict = {}
        self.count = 0

    def of(self, var) -> str:
        found = self.names.get(var)
        if found is None:
            found = self.names[var] = variable_name(self.count)
            self.count += 1
        return found


class Printer:
    """Turns jaxprs into documents; remembers which inner jaxprs are printed in front."""

    def __init__(self, source_info: bool, name_stack: bool):
        self.source_info, self.name_stack = source_info, name_stack
        self.shared: dict[int, tuple] = {}

    # ---- inner jaxprs that are printed in front

    def find_shared(self, top):
        """Name the inner jaxprs that occur twice or are long, innermost first."""
        uses: dict[int, list] = {}
        stack = [(top, None)]
        order = []
        while stack:
            jaxpr, _ = stack.pop()
            for eqn in open_jaxpr(jaxpr).eqns:
                for key, inner in inner_jaxprs(eqn.own_params):
                    body = open_jaxpr(inner)
                    seen = uses.get(id(body))
                    if seen is not None:
                        seen[0] += 1
                        continue
                    uses[id(body)] = seen = [1, body, eqn.own_params.get("name", key)]
                    order.append(seen)
                    stack.append((body, None))
        taken: set[str] = set()
        for count, body, name in reversed(order):
            if count > 1 or len(body.eqns) > HOIST_ABOVE:
                self.shared[id(body)] = (unique(str(name).strip("<>"), taken), body)

    def shared_definitions(self, names: Names) -> list:
        heads = []
        for name, body in self.shared.values():
            heads += ["let ", name, " = ", self.jaxpr(body, names), " in", Line()]
        return [heads] if heads else []

    # ---- documents

    def jaxpr(self, jaxpr, names: Names):
        jaxpr = open_jaxpr(jaxpr)
        consts = "".join(f" {binder(v, names)}" for v in jaxpr.constvars) or " "
        arguments = "".join(f" {binder(v, names)}" for v in jaxpr.invars)
        used = used_variables(jaxpr)
        eqns: list = []
        for eqn in jaxpr.eqns:
            eqns += [Line("; ") if eqns else "", self.equation(eqn, names, used)]
        result = ", ".join(atom(v, names) for v in jaxpr.outvars)
        result = f"({result},)" if len(jaxpr.outvars) == 1 else f"({result})"
        arguments = arguments or " "
        if not jaxpr.eqns:
            return f"{{ lambda{consts};{arguments}. let  in {result} }}"
        return Group(
            [
                f"{{ lambda{consts};{arguments}. let",
                Nest(4, [Line(), eqns]),
                Nest(2, [Line(), f"in {result} }}"]),
            ]
        )

    def equation(self, eqn, names: Names, used=None):
        if used is not None:
            names.names.update((v, UNUSED) for v in eqn.outvars if v not in used)
        if eqn.primitive.name in ON_REFERENCES:
            return [self.on_reference(eqn, names), self.annotation(eqn)]
        outs = " ".join(binder(v, names) for v in eqn.outvars)
        head = f"{outs} = {eqn.primitive.name}" if eqn.outvars else eqn.primitive.name
        operands = "".join(f" {atom(v, names)}" for v in eqn.invars)
        return [head, self.parameters(eqn, names), operands, self.annotation(eqn)]

    def on_reference(self, eqn, names: Names) -> str:
        """A read or write as it stands in programs: ``b <- a[0]``, ``a[0] <- b``, ``a[0] += b``; with what was there,
        ``c, a[0] <- a[0], b``.
        """
        count = ON_REFERENCES[eqn.primitive.name]
        operands = [names.of(v) if not is_literal(v) else scalar_text(v.val) for v in eqn.invars]
        shape, part = eqn.invars[0].aval.shape, operands[0]
        given = operands[count:]
        for step in eqn.own_params["path"] or (None,):
            part += "[...]" if step is None else step.text(given[: step.count], shape)
            given = given[step.count :] if step is not None else given
        if eqn.primitive.name == "get":
            return f"{binder(eqn.outvars[0], names)} <- {part}"
        value = atom(eqn.invars[1], names)
        if eqn.primitive.name == "addupdate":
            return f"{part} += {value}"
        unused = names.of(eqn.outvars[0]) == UNUSED
        return f"{part} <- {value}" if unused else f"{binder(eqn.outvars[0], names)}, {part} <- {part}, {value}"

    def annotation(self, eqn) -> str:
        notes = []
        if self.source_info and eqn.source is not None:
            notes.append(str(eqn.source))
        if self.name_stack and eqn.source is not None and eqn.source.name_stack:
            notes.append(str(eqn.source.name_stack))
        return f"  [{' '.join(notes)}]" if notes else ""

    def parameters(self, eqn, names: Names):
        hidden = HIDDEN.get(eqn.primitive.name, lambda k, v: False)
        keys = sorted(eqn.own_params, key=lambda k: (k != "name", k))
        shown = [k for k in keys if not hidden(k, eqn.own_params[k])]
        if not shown:
            return ""
        if eqn.primitive.name == "jit":
            shown.sort(key=lambda k: (k != "name", k == "jaxpr", k))
        items = [
            [Line() if i else Line(""), f"{k}=", self.value(eqn, eqn.own_params[k], names)] for i, k in enumerate(shown)
        ]
        return Group(["[", Nest(2, items), Line(""), "]"])

    def value(self, eqn, value, names: Names):
        if is_jaxpr(value):
            return self.inner(eqn, value, names)
        if isinstance(value, tuple) and value and all(is_jaxpr(v) for v in value):
            return Group(["(", Nest(2, [[Line(), self.inner(eqn, v, names)] for v in value]), Line(), ")"])
        if eqn.primitive.name == "dot_general" and isinstance(value, tuple) and isinstance(value[0], tuple):
            return str(tuple(tuple(list(axes) for axes in pair) for pair in value))
        return parameter_text(value)

    def inner(self, eqn, jaxpr, names: Names):
        body = open_jaxpr(jaxpr)
        if id(body) in self.shared:
            return self.shared[id(body)][0]
        if eqn.primitive.name == "jit":  # a call shares names with its operands and results
            for inner, outer in [*zip(body.invars, eqn.invars), *zip(body.outvars, eqn.outvars)]:
                if not is_literal(inner) and not is_literal(outer) and outer in names.names:
                    names.names.setdefault(inner, names.names[outer])
        return self.jaxpr(body, names)


def inner_jaxprs(params: dict):
    for key, value in params.items():
        for item in value if isinstance(value, tuple) else (value,):
            if is_jaxpr(item):
                yield key, item


def used_variables(jaxpr) -> set:
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if not is_literal(v)}
    used.update(v for v in jaxpr.outvars if not is_literal(v))
    return used


def unique(name: str, taken: set[str]) -> str:
    candidate, n = name, 0
    while candidate in taken:
        n += 1
        candidate = f"{name}{n}"
    taken.add(candidate)
    return candidate


def is_literal(x) -> bool:
    return hasattr(x, "val")


def type_text(aval) -> str:
    return aval.str_short(short_dtypes=True)


def binder(var, names: Names) -> str:
    return f"{names.of(var)}:{type_text(var.aval)}"


def atom(x, names: Names) -> str:
    return f"{scalar_text(x.val)}:{type_text(x.aval)}" if is_literal(x) else names.of(x)


def scalar_text(value) -> str:
    """A scalar constant as Python writes it."""
    value = np.asarray(getattr(value, "_value", value))
    if value.dtype.kind == "V":
        return "()" if value.dtype == dtypes.float0 else str(float(value))
    return str(value.item())


def parameter_text(value) -> str:
    """A static parameter as text."""
    if isinstance(value, np.dtype):
        return dtypes.dtype_name(value)
    if isinstance(value, type):
        return value.__name__
    if callable(value) and not hasattr(value, "_fields") and not hasattr(value, "axis_names"):  # a mesh is callable
        return function_name(value)
    if isinstance(value, np.generic):
        return str(value.item())
    return str(value)
