"""Shapes: how many axes an array may have, and the shape that several broadcast to."""

MOST_AXES = 64  # as many as NumPy's arrays, which hold ours, can have


NUMPY_SORTS = 32  # NumPy's sorts and searches go by an older iterator, which knows no more axes


def check_axes(shape):
    """ValueError where a shape has more axes than an array can have."""
    if len(shape) > MOST_AXES:
        raise ValueError(f"arrays have at most {MOST_AXES} axes, but one of {len(shape)} is asked for: shape {shape}")


def broadcast_shapes(*shapes: tuple) -> tuple:
    """The shape that arrays of these shapes have together, by NumPy's rules; ValueError where they do not fit.

    ``np.broadcast_shapes`` knows 32 axes.
    """
    rank = max(map(len, shapes), default=0)
    out = []
    for sizes in zip(*[(1,) * (rank - len(s)) + tuple(s) for s in shapes], strict=True):
        common = 1
        for n in sizes:
            if n != common and n != 1:
                if common != 1:
                    raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}")
                common = n
        out.append(common)
    return tuple(out)
