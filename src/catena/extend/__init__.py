"""What JAX keeps under ``extend``: for those who extend the language."""

from catena.extend import core as core
