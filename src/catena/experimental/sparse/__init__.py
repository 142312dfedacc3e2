"""Sparse arrays: products, shapes and derivatives of arrays that know only their elements that are not 0."""

from catena.core.unbuilt import absent as _absent
from catena.experimental.sparse.base import JAXSparse as JAXSparse
from catena.experimental.sparse.bcoo import BCOO as BCOO

_absent(globals())
