"""Imported as ``jaxlib`` where nobody imported ``jax`` before."""

import catena

catena.as_jax()
