"""Imported as ``jax`` by processes that ``python -m catena run`` started, or where the alias is installed: catena."""

import catena

catena.as_jax()
