"""Values that are to lie in memory in a certain order of axes."""

from __future__ import annotations

from catena.core.formats import laid_out
from catena.core.primitive import Primitive
from catena.core.zeros import Zero
from catena.lax.structure import linear_jvp


def _batch(axis, args, dims, *, layout):
    (x,), (d,) = args, dims
    inner = [i + (i >= d) for i in layout.major_to_minor]
    return layout_constraint_p.bind(x, layout=layout.update(major_to_minor=(d, *inner))), d


layout_constraint_p = Primitive(
    "layout_constraint",
    abstract=lambda x, *, layout: x,
    evaluate=laid_out,
    transpose=lambda ct, x, **params: [ct if type(ct) is Zero else layout_constraint_p.bind(ct, **params)],
    batch=_batch,
    lower=lambda b, x, *, layout: x,
)
layout_constraint_p.jvp = linear_jvp(layout_constraint_p)
