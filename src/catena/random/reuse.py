"""Detection of keys that are used twice, which would draw the same numbers twice.

With the flag ``jax_debug_key_reuse`` every use of a typed key is an error from the second on, in eager code and,
before it runs, in compiled code: a jaxpr is *run on numbers of keys* instead of keys. Every new key (from a seed, a
split, a fold) gets a number of its own; operations that move keys around (slices, reshapes, concatenations ...) move
the numbers, by the very rule that evaluates them; ``random_bits``, ``random_split`` and ``random_gamma`` use numbers
up. What a number is used for twice is the error. Loops are run twice, branches each on its own, and calls in place.

Where an index is not known, a moved key gets a number of its own, the same for the same index, that remembers the
keys it may be. ``fold_in``, comparisons and ``key_data`` use nothing up; ``clone`` gives a key a new number.

With the level ``"warn"`` only keys that are passed to samplers and ``split`` in eager code are watched: the array of a
key carries a note of the line that used it, which costs half a microsecond, and reuse is a warning that names both
lines.
"""

import sys
import threading
import warnings
import weakref

import numpy as np

from catena.core import dtypes
from catena.core import evaluate as evaluation
from catena.core.array import as_array
from catena.core.context import context
from catena.core.errors import KeyReuseError, see
from catena.core.jaxpr import Literal
from catena.core.source import PACKAGE, Source, user_source
from catena.core.zeros import get_aval
from catena.random.dtype import is_key_dtype, is_typed_key

CONSUMING = {"random_bits", "random_split", "random_gamma"}
NEW = {"random_seed", "random_wrap", "random_fold_in", "random_clone", "random_split"}
HARMLESS = {"random_unwrap", "eq", "ne"}
samplers: set[str] = set()  # the names of the bodies of samplers, by which jaxprs call them


class Ledger:
    """Which numbers of keys there are, and what used them up."""

    def __init__(self):
        self.count = 0
        self.used = np.zeros(64, np.int32)  # for each number: 0, or the entry of ``uses`` that used it up
        self.uses = [None]
        self.possible: dict[int, frozenset] = {}  # for keys taken by an unknown index: which they may be
        self.caller = None  # the sampler whose body is being run
        self.moved: dict = {}  # what an operation with unknown operands made of which numbers

    def copy(self) -> "Ledger":
        """A ledger that starts where this one stands."""
        other = Ledger.__new__(Ledger)
        other.count, other.used, other.uses = self.count, self.used.copy(), list(self.uses)
        other.caller = self.caller
        other.possible, other.moved = dict(self.possible), dict(self.moved)
        return other

    def adopt(self, other: "Ledger"):
        """Take over what ``other``, a copy, has recorded since."""
        self.__dict__.update(other.__dict__)

    def new(self, shape: tuple) -> np.ndarray:
        """Numbers for new keys."""
        size = int(np.prod(shape, dtype=np.int64))
        first, self.count = self.count, self.count + size
        if self.count > len(self.used):
            self.used = np.concatenate([self.used, np.zeros(max(len(self.used), size), np.int32)])
        return np.arange(first, first + size).reshape(shape)

    def consume(self, numbers: np.ndarray, use) -> tuple | None:
        """Use keys up; the earlier and this use, where one was used up already."""
        flat = numbers.ravel()
        before = self.used[flat]
        if before.any():
            return self.uses[int(before[before != 0][0])], use
        if len(np.unique(flat)) < flat.size:
            return use, use
        earlier = self.possible_use(set(flat.tolist()))
        if earlier is not None:
            return earlier, use
        self.uses.append(use)
        self.used[flat] = len(self.uses) - 1
        return None

    def possible_use(self, numbers: set):
        """An earlier use of what these keys must be, or may all have been, through unknown indices."""
        for number in numbers & self.possible.keys():
            candidates = self.used[list(self.possible[number])]
            if candidates.all():
                return self.uses[int(candidates[0])]
        for number, candidates in self.possible.items():
            if self.used[number] and candidates <= numbers:
                return self.uses[int(self.used[number])]
        return None

    def unknown(self, identity, shape: tuple, candidates: np.ndarray) -> np.ndarray:
        """Numbers for keys that are some of ``candidates``; the same for the same ``identity``."""
        found = self.moved.get(identity)
        if found is None:
            found = self.moved[identity] = self.new(shape)
            possible = frozenset(candidates.ravel().tolist())
            self.possible.update(dict.fromkeys(found.ravel().tolist(), possible))
        return found

    def join(self, others: list):
        """After branches: used up is what any branch used up."""
        for other in others:
            size = max(len(self.used), len(other.used))
            for ledger in (self, other):
                ledger.used = np.concatenate([ledger.used, np.zeros(size - len(ledger.used), np.int32)])
            shift = len(self.uses)
            fresh = (self.used == 0) & (other.used != 0)
            self.used = np.where(fresh, other.used + shift, self.used)
            self.uses += other.uses
            self.count = max(self.count, other.count)
            self.possible.update(other.possible)


# ---- jaxprs, run on numbers of keys


class Use:
    """One use of a key: by what, and where."""

    __slots__ = ("what", "source")

    def __init__(self, what: str, source):
        self.what, self.source = what, source

    def __str__(self):
        return f"{self.what}" + (f" at {self.source}" if self.source is not None else "")


def refuse(head: str, earlier: Use, now: Use):
    again = f"used again by {now}" if earlier is not now else "several times in one array of keys"
    raise KeyReuseError(
        f"{head}\n  first used by {earlier},\n  {again}.\nEvery key may be used once: split it, or use "
        f"catena.random.clone(key) to draw the same numbers on purpose.{see(KeyReuseError)}"
    )


def run(jaxpr, numbers: list, ledger: Ledger) -> list:
    """The numbers of the keys among the results; None for other results."""
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], numbers, strict=True))

    def read(v):
        return None if type(v) is Literal else env.get(v)

    names = Names()
    for eqn in jaxpr.eqns:
        ins, operands = [read(v) for v in eqn.invars], names.of(eqn)
        outs = apply(eqn.primitive, ins, eqn.own_params, [v.aval for v in eqn.outvars], ledger, eqn.source, operands)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


class Names:
    """Names for the values in one run of a jaxpr: equal operations on equal values have equal names."""

    def __init__(self):
        self.names: dict = {}

    def of(self, eqn) -> tuple:
        """The names of the operands of an equation, after which its results are named."""
        operands = tuple(str(v.val) if type(v) is Literal else self.names.setdefault(v, object()) for v in eqn.invars)
        made = (eqn.primitive, repr(eqn.own_params) if len(eqn.own_params) < 8 else id(eqn), operands)
        for i, v in enumerate(eqn.outvars):
            self.names[v] = self.names.setdefault((made, i), object())
        return operands


def run_closed(closed, numbers: list, ledger: Ledger) -> list:
    """``run`` for a closed or an open jaxpr; keys among its constants that eager code does not know are new."""
    body, values = getattr(closed, "jaxpr", closed), getattr(closed, "consts", ())
    consts = [recall(known.numbers, x) if is_typed_key(x) else None for x in values] or [None] * len(body.constvars)
    consts = [fresh(v.aval, ledger) if n is None else n for v, n in zip(body.constvars, consts, strict=True)]
    return run(body, [*consts, *numbers], ledger)


def fresh(aval, ledger: Ledger):
    return ledger.new(aval.shape) if is_key_dtype(aval.dtype) else None


def apply(primitive, ins: list, params: dict, out_avals: list, ledger: Ledger, source, names: tuple) -> list:
    """The numbers of the keys among the results of one operation."""
    name = primitive.name
    if name in CONSUMING:
        use = ledger.caller or Use(name, source)
        conflict = ledger.consume(ins[0], use)
        if conflict is not None:
            refuse(f"In {use.what}, argument 0 is already consumed.", *conflict)
    if name in CONSUMING or name in NEW or name in HARMLESS:
        return [fresh(a, ledger) for a in out_avals]
    if name in HIGHER_ORDER:
        return HIGHER_ORDER[name](ins, params, out_avals, ledger)
    inner = [p for p in params.values() if takes(p, len(ins))]
    if inner and name == "jit" and params["name"] in samplers:
        return run_sampler(params["name"], source, inner[0], ins, ledger)
    if inner:
        return run_closed(inner[0], ins, ledger)
    if all(x is None for x in ins):
        return [fresh(a, ledger) for a in out_avals]
    return moved(primitive, ins, params, out_avals, ledger, names)


def run_sampler(name: str, source, closed, ins: list, ledger: Ledger) -> list:
    """The body of a sampler: what uses keys up in it is the sampler, where it was called."""
    outer = ledger.caller
    ledger.caller = outer or Use(name.strip("_"), source)
    try:
        return run_closed(closed, ins, ledger)
    finally:
        ledger.caller = outer


def takes(param, count: int) -> bool:
    """Whether a parameter is a jaxpr of so many arguments."""
    body = getattr(param, "jaxpr", param)
    return hasattr(body, "eqns") and len(body.invars) == count


def moved(primitive, ins: list, params: dict, out_avals: list, ledger: Ledger, names: tuple) -> list:
    """The numbers after an operation that moves keys around: where all operands are keys, its evaluation tells."""
    if all(x is not None for x in ins) and primitive.evaluate and not primitive.takes_arrays:
        out = evaluation.quiet.run(primitive.evaluate, *ins, **params)
        return list(out) if primitive.multiple_results else [np.asarray(out)]
    candidates = np.concatenate([x.ravel() for x in ins if x is not None])
    where = tuple(x.tobytes() if x is not None else n for x, n in zip(ins, names, strict=True))
    identity = (primitive.name, repr(params), where)
    return [
        ledger.unknown((*identity, i), a.shape, candidates) if is_key_dtype(a.dtype) else None
        for i, a in enumerate(out_avals)
    ]


def run_cond(ins: list, params: dict, out_avals: list, ledger: Ledger) -> list:
    """Each branch by itself; then what any of them used up is used up."""
    start, outs, ends = ledger.copy(), [], []
    for branch in params["branches"]:
        end = start.copy()
        outs.append(run_closed(branch, ins[1:], end))
        ends.append(end)
    ledger.join(ends)
    return [
        same_or_new(list(choices), a, ledger) for choices, a in zip(zip(*outs, strict=True), out_avals, strict=True)
    ]


def same_or_new(choices: list, aval, ledger: Ledger):
    """The numbers on which all agree, else new ones that may be any."""
    if not is_key_dtype(aval.dtype):
        return None
    if all(np.array_equal(x, choices[0]) for x in choices):
        return choices[0]
    ledger.new(())  # so that numbers made in branches are not given out again
    return ledger.unknown(object(), aval.shape, np.concatenate([x.ravel() for x in choices]))


def twice(head: str, step, ledger: Ledger):
    """Two turns of a loop; an error in the second is one of repetition."""
    first = step(None)
    try:
        step(first)
    except KeyReuseError as error:
        raise KeyReuseError(f"{head} function leads to key reuse when repeatedly executed.\n{error}") from None
    return first


def run_while(ins: list, params: dict, out_avals: list, ledger: Ledger) -> list:
    c, b = params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts, start = ins[:c], ins[c : c + b], ins[c + b :]

    def test(carry):
        run_closed(params["cond_jaxpr"], [*cond_consts, *(start if carry is None else carry)], ledger)
        return start

    def body(carry):
        return run_closed(params["body_jaxpr"], [*body_consts, *(start if carry is None else carry)], ledger)

    twice("while_loop cond", test, ledger)
    return after_loop(twice("while_loop body", body, ledger), start, out_avals, ledger)


def after_loop(carry: list, start: list, avals: list, ledger: Ledger) -> list:
    """A loop's carry at its end: what each turn hands on unchanged is what it was."""
    return [
        s if s is not None and np.array_equal(s, c) else fresh(a, ledger)
        for c, s, a in zip(carry, start, avals, strict=True)
    ]


def run_scan(ins: list, params: dict, out_avals: list, ledger: Ledger) -> list:
    n, k = params["num_consts"], params["num_carry"]
    consts, start, xs = ins[:n], ins[n : n + k], ins[n + k :]
    length = params["length"]
    if not length:
        return [*start, *[fresh(a, ledger) for a in out_avals[k:]]]
    turns = iter((0, min(1, length - 1)))

    def body(outs):
        turn = next(turns)
        rows = [x if x is None else x[turn] for x in xs]
        return run_closed(params["jaxpr"], [*consts, *(start if outs is None else outs[:k]), *rows], ledger)

    outs = twice("scan body", body, ledger) if length > 1 else body(None)
    consume_rest(xs, ledger)
    carry = after_loop(outs[:k], start, out_avals[:k], ledger)
    return [*carry, *[handed_on(y, xs, a, ledger) for y, a in zip(outs[k:], out_avals[k:], strict=True)]]


def consume_rest(xs: list, ledger: Ledger):
    """What the first turn used up of its row, later turns use up of theirs."""
    for x in xs:
        if x is not None and x.shape[0] > 2:
            row = ledger.used[x[0]]
            ledger.used[x] = np.where(row != 0, row, ledger.used[x])


def handed_on(y, xs: list, aval, ledger: Ledger):
    """The numbers of a stacked result: those of the rows that it is made of, else new ones."""
    if y is None:
        return None
    return (
        next((x for x in xs if x is not None and np.array_equal(x[0], y)), None)
        if is_row(y, xs)
        else fresh(aval, ledger)
    )


def is_row(y, xs: list) -> bool:
    return any(x is not None and x[0].shape == y.shape and np.array_equal(x[0], y) for x in xs)


HIGHER_ORDER = {"cond": run_cond, "while": run_while, "scan": run_scan}


# ---- eager code


class Known(threading.local):
    """The ledger of this thread's eager code, and the numbers of the keys in its arrays, by identity."""

    def __init__(self):
        self.ledger, self.numbers = Ledger(), {}


known = Known()


def remember(table: dict, array, value):
    """Keep ``value`` for an array as long as the array lives."""
    identity = id(array)
    table[identity] = (weakref.ref(array, lambda _: table.pop(identity, None)), value)


def recall(table: dict, array):
    found = table.get(id(array))
    return found[1] if found is not None and found[0]() is array else None


def numbers_of(array) -> np.ndarray:
    """The numbers of the keys in an eager array."""
    found = recall(known.numbers, array)
    if found is None:
        found = known.ledger.new(array.shape)
        remember(known.numbers, array, found)
    return found


def watch(primitive, args, params, compute):
    """Evaluate an operation in eager code, after checking what it does with keys."""
    ins = [numbers_of(x) if is_typed_key(x) else None for x in args]
    closed_over = [numbers_of(x) for x in keys_within(params)]
    ledger = known.ledger.copy()
    try:
        numbers = eager_numbers(primitive, args, ins, params, ledger)
    except KeyReuseError as error:
        raise KeyReuseError(eager_head(name_of_call(primitive, params), closed_over + ins) + str(error)) from None
    outs = unwatched(compute)
    known.ledger.adopt(ledger)
    for out, number in zip(outs if primitive.multiple_results else [outs], numbers, strict=True):
        if number is not None and is_typed_key(out):
            remember(known.numbers, out, number)
    return outs


def keys_within(params: dict) -> list:
    """The keys that the programs among these parameters close over."""
    found = []
    for closed in [p for x in params.values() for p in (x if isinstance(x, tuple) else (x,)) if hasattr(p, "jaxpr")]:
        found += [x for x in getattr(closed, "consts", ()) if is_typed_key(x)]
        for eqn in closed.jaxpr.eqns:
            found += keys_within(eqn.own_params)
    return found


def eager_numbers(primitive, args, ins: list, params: dict, ledger: Ledger) -> list:
    """The numbers of the keys among the results; where keys are moved, indices are known."""
    if primitive.takes_arrays or primitive.name in NEW | HARMLESS:
        avals = primitive.abstract(*[get_aval(x) for x in args], **params)
        avals = list(avals) if primitive.multiple_results else [avals]
        return apply(primitive, ins, params, avals, ledger, user_source(), (object(),) * len(ins))
    values = [x if x is not None else as_array(a)._value for x, a in zip(ins, args, strict=True)]
    out = evaluation.quiet.run(primitive.evaluate, *values, **params)
    return list(out) if primitive.multiple_results else [np.asarray(out)]


def unwatched(compute):
    """Compute with the check off: it was made already."""
    own = vars(context)
    had, before = "debug_key_reuse" in own, own.get("debug_key_reuse")
    context.debug_key_reuse = False
    try:
        return compute()
    finally:
        if had:
            context.debug_key_reuse = before
        else:
            del context.debug_key_reuse


def name_of_call(primitive, params: dict) -> str:
    """What errors call an eager operation: samplers, which are jitted functions too, by their own names."""
    if primitive.name != "jit":
        return primitive.name
    return params["name"].strip("_") if params["name"] in samplers else "jit-compiled function"


def eager_head(name: str, ins: list) -> str:
    """What an eager error starts with, where a key that was passed is used up already."""
    for i, numbers in enumerate(ins):
        if numbers is not None and known.ledger.used[numbers].any():
            return f"Previously-consumed key passed to {name} at index {i}\n"
    return ""


evaluation.watch_keys = watch


def consume(key, name: str):
    """Record that the eager sampler ``name`` used up a typed key."""
    conflict = known.ledger.consume(numbers_of(key), Use(name, user_source()))
    if conflict is not None:
        refuse(f"Previously-consumed key passed to {name} at index 0", *conflict)


def note(key, name: str):
    """At the level ``warn``: note on a key who used it, and warn where somebody did already. A hot path."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    now = name, frame.f_code, frame.f_lasti
    earlier = getattr(key, "used", None)
    if earlier is None:
        key.used = now
        return
    uses = [f"by {who} at {Source(*where)}" for who, *where in (earlier, now)]
    warnings.warn(
        f"The key was used before, and draws the same numbers again: {uses[0]}, now {uses[1]}. Split it, or use "
        "catena.random.clone(key) to draw the same numbers on purpose.",
        UserWarning,
        stacklevel=dtypes.levels_to_user(),
    )
