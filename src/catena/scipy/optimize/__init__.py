"""Minimisation of functions."""

from catena.core.namespace import shown as _shown
from catena.scipy.optimize.minimize import OptimizeResults as OptimizeResults
from catena.scipy.optimize.minimize import minimize as minimize

__dir__ = _shown(globals())
