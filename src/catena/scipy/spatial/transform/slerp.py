"""Interpolation between rotations."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.core.named import NamedTuple
from catena.scipy.spatial.transform import conversions
from catena.scipy.spatial.transform.rotation import Rotation, floats
from catena.typing import ArrayLike


class Slerp(NamedTuple):
    """Spherical linear interpolation: from each rotation to the next at constant speed about one axis.

    Made by ``Slerp.init``.

    Arguments:
      times: when.
      timedelta: how long from one rotation to the next.
      rotations: the rotations but the last.
      rotvecs: from each to the next.

    Source: Shoemake, "Animating rotation with quaternion curves" (1985).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> ends = jsp.spatial.transform.Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
    >>> slerp = jsp.spatial.transform.Slerp.init(jnp.array([0.0, 1.0]), ends)
    >>> slerp(0.5).as_euler("xyz", degrees=True).round(3)
    Array([ 0.,  0., 45.], dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The interpolation of a stack of rotations at these times, which ascend.

        Raises: TypeError: ``rotations`` is no Rotation. ValueError: there are less than two, or not as many times.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp: rotations must be a Rotation, got {type(rotations)}")
        if rotations.single or len(rotations) < 2:
            raise ValueError("Slerp: rotations must be a stack of at least two")
        times = floats(times).astype(rotations.quat.dtype)
        if times.shape != (len(rotations),):
            raise ValueError(
                f"Slerp: times must have shape {(len(rotations),)}, one for each rotation, got {times.shape}"
            )
        here, there = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), here, (here.inv() * there).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at these times: a number, or a vector; beyond the ends the first and the last turn goes on.

        Raises: ValueError: ``times`` has more than one dimension.
        """
        times = floats(times).astype(self.times.dtype)
        if times.ndim > 1:
            raise ValueError(f"Slerp: times must have at most one dimension, got shape {times.shape}")
        which = jnp.clip(jnp.searchsorted(self.times, times) - 1, 0, self.timedelta.shape[0] - 1)
        part = (times - self.times[which]) / self.timedelta[which]
        turn = Rotation(conversions.from_rotvec(part[..., None] * self.rotvecs[which]))
        return self.rotations[which] * turn
