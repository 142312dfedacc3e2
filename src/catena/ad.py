"""What the functions that ``vjp`` returns are asked for, and what they answer, beside values (``with_refs``)."""

from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent
from catena.transform.derivative_functions import DidntWant as DidntWant
from catena.transform.derivative_functions import DontWant as DontWant
from catena.transform.derivative_functions import GradRef as GradRef
from catena.transform.derivative_functions import GradValue as GradValue

__dir__ = _shown(globals())

_absent(globals())
