"""Errors as values: functions that return what their checks found, compiled and transformed as any other."""

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.experimental.checkify import control_flow as _control_flow  # noqa: F401  (gives the rules)
from catena.experimental.checkify import rules as _rules  # noqa: F401  (gives the rules)
from catena.experimental.checkify.check import Error as Error
from catena.experimental.checkify.check import check as check
from catena.experimental.checkify.check import check_error as check_error
from catena.experimental.checkify.check import debug_check as debug_check
from catena.experimental.checkify.check import init_error as init_error
from catena.experimental.checkify.errors import ErrorCategory as ErrorCategory
from catena.experimental.checkify.errors import JaxRuntimeError as JaxRuntimeError
from catena.experimental.checkify.errors import all_checks as all_checks
from catena.experimental.checkify.errors import automatic_checks as automatic_checks
from catena.experimental.checkify.errors import div_checks as div_checks
from catena.experimental.checkify.errors import float_checks as float_checks
from catena.experimental.checkify.errors import index_checks as index_checks
from catena.experimental.checkify.errors import nan_checks as nan_checks
from catena.experimental.checkify.errors import user_checks as user_checks
from catena.experimental.checkify.trace import checkify as checkify

_open_door(globals(), "catena.experimental.checkify")
__dir__ = _shown(globals())
