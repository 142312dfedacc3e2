"""``debug.breakpoint``: stop in the middle of a traced or compiled function and look at the values of its
variables.

At the breakpoint the frames of the user's functions are captured. Traced values in them travel through a
debug callback, so that they have arrived as numbers when the program, compiled, vectorised or differentiated,
reaches the breakpoint; there a small command-line debugger opens.
"""

import bdb
import cmd
import linecache
import pprint
import sys
from typing import Any, NamedTuple

from catena.core.source import PACKAGE
from catena.core.struct import ShapeDtypeStruct
from catena.core.trace import Tracer
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import get_aval
from catena.lax.callbacks import debug_callback, io_callback

CONTEXT_LINES = 5


class Frame(NamedTuple):
    """A user's frame at the breakpoint; ``variables`` are its local ones, ``globals`` those of its module."""

    file_name: str
    function: str
    line: int
    variables: dict
    globals: dict

    def listing(self, context: int = CONTEXT_LINES) -> str:
        """The lines around the current one, which is marked."""
        first = max(1, self.line - context)
        lines = [
            linecache.getline(self.file_name, n).rstrip("\n") for n in range(first, self.line + context + 1)
        ]
        marked = [("->  " if n == self.line else "    ") + text for n, text in enumerate(lines, first)]
        return f"> {self.file_name}({self.line})\n" + "\n".join(marked).rstrip()


def captured_frames(filter_frames: bool, num_frames: int | None) -> list[Frame]:
    """The frames of the callers, innermost first."""
    frames: list[Frame] = []
    frame: Any = sys._getframe(1)
    while frame is not None and (num_frames is None or len(frames) < num_frames):
        code = frame.f_code
        internal = code.co_filename.startswith(PACKAGE)
        if not internal or (not filter_frames and frames):
            frames.append(
                Frame(code.co_filename, code.co_name, frame.f_lineno, dict(frame.f_locals), frame.f_globals)
            )
        frame = frame.f_back
    return frames


class Hole(NamedTuple):
    """Stands in a captured variable for the traced value with this number."""

    number: int


def take_tracers(frames: list[Frame]) -> tuple[list[Frame], list]:
    """The frames with holes in place of traced values, and those values; dead tracers become text."""
    taken: dict[int, tuple[int, Any]] = {}

    def take(x):
        if not isinstance(x, Tracer):
            return x
        if not x._trace.alive:
            return f"<{x!r}, which is over>"
        return Hole(taken.setdefault(id(x), (len(taken), x))[0])

    emptied = [
        frame._replace(variables={k: map_leaves(take, v) for k, v in frame.variables.items()})
        for frame in frames
    ]
    return emptied, [x for _, x in taken.values()]


def map_leaves(fun, value, depth: int = 4):
    """``value`` with ``fun`` of what is in its dicts, lists and tuples; other objects are not looked into."""
    kind = type(value)
    if kind is dict and depth:
        return {k: map_leaves(fun, v, depth - 1) for k, v in value.items()}
    if kind in (list, tuple) and depth:
        return kind(map_leaves(fun, v, depth - 1) for v in value)
    return fun(value)


def fill_holes(frames: list[Frame], values) -> list[Frame]:
    """The frames with values in the holes."""
    fill = lambda x: values[x.number] if type(x) is Hole else x
    return [
        frame._replace(variables={k: map_leaves(fill, v) for k, v in frame.variables.items()})
        for frame in frames
    ]


def breakpoint(  # noqa: A001  (the name that JAX gives it)
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs,
):
    """Open a debugger when the program reaches this point, also inside compiled and transformed functions.

    Arguments:
      backend: ``"cli"`` or ``None``: the command-line debugger.
      filter_frames: whether frames of this package are left out.
      num_frames: how many frames are captured, innermost first; all by default.
      ordered: whether breakpoints are reached in program order.
      token: a tree of arrays; the breakpoint is reached when they are computed, and they are returned. What
        is computed from the returned arrays is computed after the breakpoint.
      kwargs: ``stdin`` and ``stdout``: text files that replace those of the process.

    Returns:
      ``token``.

    Raises:
      ValueError: for another backend, or where both ``ordered`` and ``token`` are given.

    Example:
      >>> import io, catena as jax
      >>> @jax.jit
      ... def f(x):
      ...     y = x + 1
      ...     jax.debug.breakpoint(stdin=io.StringIO("p y\\ncontinue\\n"))
      ...     return y
      >>> f(1)
      Entering the debugger; `help` lists the commands.
      (catena) Array(2, dtype=int32)
      (catena) Array(2, dtype=int32, weak_type=True)
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint has the backend 'cli' only, got {backend!r}")
    if ordered and token is not None:
        raise ValueError("`ordered` and `token` are mutually exclusive arguments.")
    if num_frames is not None and num_frames < 0:
        raise ValueError(f"num_frames must not be negative, got {num_frames}")
    unknown = kwargs.keys() - {"stdin", "stdout"}
    if unknown:
        raise TypeError(
            f"debug.breakpoint got unexpected keyword arguments {sorted(unknown)}; it takes stdin and stdout"
        )
    frames, traced = take_tracers(captured_frames(filter_frames, num_frames))

    def stop(*values):
        Debugger(fill_holes(frames, values), **kwargs).cmdloop()

    if token is None:
        debug_callback(stop, *traced, ordered=ordered)
        return None

    def stop_and_pass(token_leaves, *values):
        stop(*values)
        return token_leaves

    leaves, tree = tree_flatten(token)
    avals = [get_aval(x) for x in leaves]
    structs = [ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
    return tree_unflatten(tree, io_callback(stop_and_pass, structs, leaves, *traced))


class Debugger(cmd.Cmd):
    """A command-line debugger over captured frames: print, list, up, down, where, continue, quit."""

    prompt = "(catena) "
    intro = "Entering the debugger; `help` lists the commands."

    def __init__(self, frames: list[Frame], stdin=None, stdout=None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None and sys.stdin is sys.__stdin__
        self.frames, self.position = frames, 0

    def say(self, text: str) -> None:
        print(text, file=self.stdout)

    def evaluate(self, expression: str):
        """The value of an expression in the current frame; an error is shown and gives ``None``."""
        frame = self.frames[self.position] if self.frames else Frame("", "", 0, {}, {})
        try:
            return True, eval(expression, {**frame.globals, **frame.variables})
        except Exception as error:
            self.say(f"*** {type(error).__name__}: {error}")
            return False, None

    def show(self, expression: str, text) -> None:
        found, value = self.evaluate(expression)
        if found:
            self.say(text(value))

    def default(self, line: str):
        self.show(line, repr)

    def emptyline(self):
        """An empty line does nothing."""

    def do_p(self, arg: str):
        """p expression: evaluate it in the current frame and print the result."""
        self.show(arg, repr)

    def do_pp(self, arg: str):
        """pp expression: the same, pretty-printed."""
        self.show(arg, pprint.pformat)

    def do_list(self, arg: str):
        """l(ist): the source around the current line."""
        if self.frames:
            self.say(self.frames[self.position].listing())

    def do_args(self, arg: str):
        """a(rgs): the variables of the current frame."""
        for name, value in (self.frames[self.position].variables if self.frames else {}).items():
            self.say(f"{name} = {value!r}")

    def do_up(self, arg: str):
        """u(p): go to the caller."""
        self.move(1, "Oldest frame")

    def do_down(self, arg: str):
        """d(own): go to the called function."""
        self.move(-1, "Newest frame")

    def move(self, step: int, end: str):
        if 0 <= self.position + step < len(self.frames):
            self.position += step
            self.do_list("")
        else:
            self.say(f"*** {end}")

    def do_where(self, arg: str):
        """w(here), bt: the captured frames."""
        self.say("Traceback:")
        for frame in reversed(self.frames):
            text = linecache.getline(frame.file_name, frame.line).strip()
            self.say(f'  File "{frame.file_name}", line {frame.line}, in {frame.function}\n    {text}')

    def do_continue(self, arg: str):
        """c(ont(inue)): go on with the program."""
        return True

    def do_quit(self, arg: str):
        """q(uit): end the program with an error."""
        raise bdb.BdbQuit("the debugger was quit")

    do_EOF = do_continue
    do_c = do_cont = do_continue
    do_q = do_quit
    do_l, do_a, do_u, do_d = do_list, do_args, do_up, do_down
    do_w = do_bt = do_where
