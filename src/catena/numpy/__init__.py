"""The NumPy API: functions of arrays that trace, differentiate, vectorise and compile."""

from catena.core.namespace import late as _late
from catena.numpy import methods as _methods
from catena.numpy.protocol import opened as _opened

_methods.install()
_late(globals(), lambda name, fun: _opened(name, fun, "catena.numpy"))
