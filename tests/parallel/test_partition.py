"""Partitioned programs are the whole ones: run by all devices at once, they give the same values and gradients."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import P
from catena.core.jaxpr import eval_jaxpr
from catena.parallel.partition import partition
from catena.parallel.primitive import as_whole
from catena.sharding import Mesh
from catena.transform.layouts import split_of_spec
from partition_programs import PROGRAMS, SIZES, arguments

DEVICES = np.array(jax.devices())
MESHES = {shape: Mesh(DEVICES.reshape(shape), tuple(SIZES)) for shape in [(2, 4), (4, 2), (8, 1)]}


def partitioned(program, mesh, args):
    closed = jax.make_jaxpr(program.make(jax))(*args)
    fits = lambda specs, avals: tuple(fitting(s, a, mesh) for s, a in zip(specs, avals, strict=True))  # noqa: E731
    outs = program.outs and fits(program.outs, closed.out_avals)
    return closed, partition(closed, mesh, fits(program.specs, args), outs)


def fitting(spec, aval, mesh) -> tuple:
    """A spec as a split, without what does not divide."""
    split = split_of_spec(P(*spec), aval.ndim)
    sizes = [int(np.prod([mesh.shape[n] for n in names])) for names in split]
    return tuple(() if n % k else names for names, n, k in zip(split, aval.shape, sizes, strict=True))


def run(partitioned, args):
    """The results, operation by operation, of all devices at once."""
    whole = as_whole(partitioned.params)
    return eval_jaxpr(whole.jaxpr, whole.consts, *map(jnp.asarray, args))


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_partitioned_is_whole(name):
    program = PROGRAMS[name]
    args = arguments(program)
    shapes = list(MESHES)
    closed, parts = partitioned(program, MESHES[shapes[len(name) % 3]], args)
    whole = eval_jaxpr(closed.jaxpr, closed.consts, *map(jnp.asarray, args))
    for found, wanted in zip(run(parts, args), whole, strict=True):
        scale = max(1.0, float(np.abs(np.asarray(wanted, np.float64)).max(initial=0)))
        np.testing.assert_allclose(np.asarray(found) / scale, np.asarray(wanted) / scale, atol=5e-6, rtol=1e-5)
