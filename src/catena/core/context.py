"""What "now" means to a thread: the current trace, the axis names in scope, and the flags in force.

Class attributes hold the process-wide values, instance attributes a thread's own overrides, so reading a flag
is one attribute load whichever applies (about 40 ns: this sits on the hot path of every operation).
"""

import threading
from typing import TYPE_CHECKING, Any

from catena.core.source import NO_NAMES, NOTHING_SAID, NameStack, Source

NO_AXES: frozenset[str] = frozenset()


class Context(threading.local):
    """The thread-local state of the language.

    ``trace`` is the current trace; ``None`` stands for evaluation, so that the test on the hot path is the
    cheapest there is. ``source`` is the source of the equation that is interpreted, ``None`` while the user's function
    runs and the stack tells. ``global_key`` and ``local_key`` hold the values of all flags that change what tracing
    yields, process-wide and as overridden in this thread, each numbered; every cache key contains both.
    """

    if TYPE_CHECKING:
        default_placement: Any
        num_cpu_devices: int  # these two are set where flags are declared
        default_device: Any
        trace: Any
        mesh: Any
        abstract_mesh: Any
        physical_mesh: Any
        mesh_stack: tuple

    trace = None
    source: Source | None = None
    axis_env: dict = {}
    typed_axes = NO_AXES  # the named axes over which types say whether values vary: see `shard_map`
    name_stack: NameStack = NO_NAMES
    said = None, ()  # by `compute_on` and `set_xla_metadata`
    surroundings = NOTHING_SAID  # what equations say was in force
    traceback_filtering: str = "auto"
    x64: bool = False
    numpy_dtype_promotion: str = "standard"
    numpy_rank_promotion: str = "allow"
    global_key: int = 0
    local_key: int = -1
    mesh = None  # the mesh that set_mesh put in force, the abstract one, that of `with mesh:`, and those before it
    abstract_mesh = None
    physical_mesh = None
    mesh_stack = ()
    laid_out = False  # whether types say shardings anywhere in this process; until then nobody looks for them
    has_terms = False  # likewise whether any says that sums are still to be taken: see `core/terms.py`
    settling = False  # whether what is in doubt about them is settled without a word: see `settling`
    default_placement = None  # where results go that follow no data, if it is not the first device
    debug_nans: bool = False
    debug_infs: bool = False
    debug_checks: bool = False
    debug_key_reuse: bool | str = False
    folding = False  # whether functions that are traced now evaluate known values: see `ensure_compile_time_eval`
    recorded = None  # whose traces these are, if no other may use them: a recording, by its number, or stand-ins


context = Context()


class set_trace:  # noqa: N801  (a context manager, used like a keyword)
    """Make ``trace`` the current trace within a ``with`` block; ``None`` means evaluation."""

    __slots__ = ("trace", "previous")

    def __init__(self, trace):
        self.trace = trace

    def __enter__(self):
        self.previous = context.trace
        context.trace = self.trace

    def __exit__(self, *exc_info):
        context.trace = self.previous


class settling:  # noqa: N801
    """Within a ``with`` block, doubts about how results are split are settled by splitting less, and are no errors:
    rules of transformations run so, and functions that are told how their results are to be.
    """

    __slots__ = ("now", "before")

    def __init__(self, now: bool = True):
        self.now = now

    def __enter__(self):
        self.before = context.settling
        context.settling = self.before or self.now

    def __exit__(self, *exc_info):
        context.settling = self.before


class users_function:  # noqa: N801
    """Run a function of the user's within a ``with`` block: its lines are the sources of what it does, not the equation
    that calls it, whose names stand around its own.
    """

    __slots__ = ("source", "name_stack")

    def __enter__(self):
        self.source, self.name_stack = context.source, context.name_stack
        if self.source is not None:
            context.source, context.name_stack = None, self.source.name_stack

    def __exit__(self, *exc_info):
        context.source, context.name_stack = self.source, self.name_stack


class transformation:  # noqa: N801
    """Have the operations within a ``with`` block named after a transformation."""

    __slots__ = ("name", "previous")

    def __init__(self, name: str):
        self.name = name

    def __enter__(self):
        self.previous = context.name_stack
        context.name_stack = self.previous.transform(self.name)

    def __exit__(self, *exc_info):
        context.name_stack = self.previous


class extend_axis_env:  # noqa: N801
    """Bring the axis ``name`` of ``size`` into scope within a ``with`` block; an unnamed axis changes nothing."""

    __slots__ = ("name", "size", "previous")

    def __init__(self, name, size):
        self.name, self.size = name, size

    def __enter__(self):
        self.previous = context.axis_env
        if self.name is not None:
            context.axis_env = {**self.previous, self.name: self.size}

    def __exit__(self, *exc_info):
        context.axis_env = self.previous
