"""The sharding rule of ``reshape``: which axes become which, by the common divisors of their lengths."""

import math

from catena.core.factors import Factor


def reshape(avals, outs, params) -> list[Factor]:
    """Axes are compared from the first on. One that stays is a factor; several that become one, or one that becomes
    several, are several factors of that one, the outermost first. Where several become several, nothing is known.
    """
    (x,), (out,) = avals, outs
    if params["dimensions"] is not None:
        return []
    found = []
    for own, becoming in groups(x.shape, out.shape):
        if len(own) == 1:
            found += [Factor(out.shape[b], (own[0],), (b,)) for b in becoming]
        elif len(becoming) == 1:
            found += [Factor(x.shape[a], (a,), (becoming[0],)) for a in own]
    return found


def groups(shape: tuple, new: tuple) -> list[tuple[list[int], list[int]]]:
    """The smallest groups of axes that hold the same elements, axes of size 1 left out."""
    if 0 in shape:
        return []
    own, becoming = [i for i, n in enumerate(shape) if n != 1], [i for i, n in enumerate(new) if n != 1]
    out = []
    while own:
        taken, made = [own.pop(0)], [becoming.pop(0)]
        while (sizes := (math.prod(shape[i] for i in taken), math.prod(new[i] for i in made))) and sizes[0] != sizes[1]:
            if sizes[0] < sizes[1]:
                taken.append(own.pop(0))
            else:
                made.append(becoming.pop(0))
        out.append((taken, made))
    return out
