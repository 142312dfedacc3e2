"""Integrals of sampled functions."""

from catena.core.namespace import alias as _alias
from catena.core.namespace import shown as _shown
from catena.numpy import trapezoid as _trapezoid

trapezoid = _alias(_trapezoid, "trapezoid", "catena.scipy.integrate")

__dir__ = _shown(globals())
