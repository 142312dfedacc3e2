"""References: mutable arrays (``jax.ref``)."""

from catena.core.aval import AbstractRef as AbstractRef
from catena.core.namespace import shown as _shown
from catena.core.ref import Ref as Ref
from catena.core.unbuilt import absent as _absent
from catena.lax.ref_lives import empty_ref as empty_ref
from catena.lax.ref_lives import free_ref as free_ref
from catena.lax.ref_lives import freeze as freeze
from catena.lax.ref_lives import new_ref as new_ref
from catena.lax.refs import addupdate as addupdate
from catena.lax.refs import get as get
from catena.lax.refs import set as set  # noqa: A004
from catena.lax.refs import swap as swap

__dir__ = _shown(globals())

_absent(globals())
