"""JAX's world on catena: the alias, the private names that libraries reach for, and ``python -m catena run``."""

from catena.compat.alias import Alias as Alias
from catena.compat.alias import as_jax as as_jax
