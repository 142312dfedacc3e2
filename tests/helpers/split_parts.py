"""Computing in parts what a rule of sharding says can be, and putting it together: ``check`` is the whole test."""

import numpy as np

import catena
from catena.core.factors import AS_CALLED, REDUCTIONS, factors_of
from catena.core.jaxpr import Literal
from catena.parallel import rules
from checkers import assert_close
from rule_cases import arguments

FOLDS = {
    "sum": np.add.reduce,
    "prod": np.multiply.reduce,
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}


def equations(case, dtype):
    """Each equation that a case consists of, with its operands."""
    args = [catena.numpy.asarray(a) for a in arguments(case, dtype)]
    return run(case.fun, args)


def equations_of_batch(case, dtype):
    """The same for two examples at once: where an example itself cannot be split, they can be apart."""
    both = zip(*[case.make(np.random.default_rng(seed), dtype) for seed in (7, 8)], strict=True)
    return run(catena.vmap(case.fun), [catena.numpy.stack(x) for x in both])


def run(fun, args):
    closed = catena.make_jaxpr(fun)(*args)
    known = dict(zip([*closed.jaxpr.constvars, *closed.jaxpr.invars], [*closed.consts, *args], strict=True))
    for eqn in closed.jaxpr.eqns:
        operands = [x.val if isinstance(x, Literal) else known[x] for x in eqn.invars]
        outs = eqn.primitive.bind(*operands, **eqn.params)
        known.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
        yield eqn, operands, [known[v] for v in eqn.outvars]


def check_factor(eqn, operands, outs, factor, factors) -> bool:
    """Compute by parts along a factor and compare; whether it could be split at all."""
    ways = next((n for n in (2, 3, 5, 7) if factor.size % n == 0 and factor.size), None)
    if ways is None or not all(is_outermost(factor, factors, side) for side in ("operands", "results")):
        return False
    parts = []
    for i in range(ways):
        mine = [part(x, axis, i, ways) for x, axis in zip(operands, factor.operands, strict=True)]
        shapes = [
            y.aval.update(shape=shrunk(y.shape, None if factor.kind in REDUCTIONS else axis, ways))
            for y, axis in zip(outs, factor.results, strict=True)
        ]
        params = rules.local_params(eqn.primitive, [x.aval for x in mine], shapes, eqn.own_params)
        got = eqn.primitive.bind(*mine, **params)
        parts.append(got if eqn.primitive.multiple_results else [got])
    for k, (whole, axis) in enumerate(zip(outs, factor.results, strict=True)):
        together = combined(eqn, operands, factor, axis, [p[k] for p in parts])
        if together is not None:
            assert_close(np.asarray(together), np.asarray(plain(whole)), ulps=64, what=f"{eqn.primitive}: {factor}")
    return True


def is_outermost(factor, factors, side: str) -> bool:
    """Whether the parts of a factor are contiguous parts of the axes that it is in."""
    return all(
        axis is None or next(f for f in factors if getattr(f, side)[i] == axis and f.size > 1) is factor
        for i, axis in enumerate(getattr(factor, side))
    )


def part(x, axis, i: int, ways: int):
    if axis is None:
        return x
    size = x.shape[axis] // ways
    return catena.lax.slice_in_dim(x, i * size, (i + 1) * size, axis=axis)


def shrunk(shape, axis, ways: int) -> tuple:
    return tuple(n // ways if i == axis else n for i, n in enumerate(shape))


def plain(x):
    """An array of numbers: keys by their words."""
    return catena.random.key_data(x) if catena.dtypes.issubdtype(x.dtype, catena.dtypes.extended) else x


def combined(eqn, operands, factor, axis, parts):
    if factor.kind == "fold":
        stacked = [catena.numpy.stack(parts), *operands[1:]]
        return eqn.primitive.bind(*stacked, **(eqn.own_params | {"dimensions": (0,)}))[0]
    if factor.kind in REDUCTIONS:
        stacked = np.stack([np.asarray(p) for p in parts])
        adds = factor.kind in ("sum", "prod")  # in the dtype that they have
        return FOLDS[factor.kind](stacked, **({"dtype": stacked.dtype} if adds else {}))
    return None if axis is None else np.concatenate([np.asarray(plain(p)) for p in parts], axis)


def checked(case, dtype: str = "") -> set:
    """The primitives of a case some factor of which was split."""
    found = {eqn.primitive.name for eqn, *values in equations(case, dtype or case.dtypes[0]) if check(eqn, *values)}
    if case.covers not in found and arguments(case, case.dtypes[0]):
        found |= {
            eqn.primitive.name
            for eqn, *values in equations_of_batch(case, dtype or case.dtypes[0])
            if check(eqn, *values)
        }
    return found


def check(eqn, operands, outs) -> bool:
    """Split along each factor; whether there was one."""
    avals, types = [x.aval for x in operands], [x.aval for x in outs]
    if eqn.primitive.sharding is AS_CALLED:
        return False
    factors = factors_of(eqn.primitive, avals, types, eqn.own_params)
    able = [f for f in factors if f.kind == "pass" or f.kind in REDUCTIONS]
    return any([check_factor(eqn, operands, outs, f, factors) for f in able])
