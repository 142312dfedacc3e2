"""Neural networks."""

from catena.nn import initializers as initializers
