"""A small command-line debugger over captured frames; loaded when the first breakpoint is reached."""

import bdb
import cmd
import linecache
import pprint
import sys

from catena.tools.frames import Frame


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
