"""The stages of compilation: traced, lowered, compiled."""

from catena.transform.jit import JitFunction as Wrapped  # noqa: F401
from catena.transform.stages import ArgInfo as ArgInfo
from catena.transform.stages import Compiled as Compiled
from catena.transform.stages import Lowered as Lowered
from catena.transform.stages import Traced as Traced

CompilerOptions = dict[str, str | bool]
