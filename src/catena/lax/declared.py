"""Primitives that the rules of other families need before their own family stands: a gather is transposed to a scatter,
which is differentiated by a gather. Each gets its rules with its family, by ``define``.
"""

from catena.core.primitive import Primitive

log_p = Primitive("log", home="catena.lax.transcendental")
max_p = Primitive("max")
min_p = Primitive("min")
neg_p = Primitive("neg")
scatter_add_p = Primitive("scatter-add", home="catena.lax.scatter_primitives")
