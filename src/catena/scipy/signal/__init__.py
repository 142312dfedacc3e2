"""Signals: convolutions, spectra, trends."""

from catena.core.namespace import late as _late

_late(globals())
