"""Rotations in space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catena import lax, random
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.named import NamedTuple
from catena.numpy.boundary import convert
from catena.scipy.spatial.transform import conversions
from catena.typing import ArrayLike, DTypeLike


def floats(x: Any, last: int | None = None, what: str = ""):
    """``x``, which may be a list, as an array of floats; its last axis of a given size."""
    x = jnp.asarray(x)
    x = convert(x, dtypes.to_inexact_dtype(x.dtype))
    if last is not None and (not x.ndim or x.shape[-1] != last):
        raise ValueError(f"Rotation: {what} must have {last} elements in its last axis, got shape {x.shape}")
    return x


class Rotation(NamedTuple):
    """A rotation in space, or a stack of them: a pytree of their unit quaternions.

    Arguments:
      quat: quaternions ``(x, y, z, w)`` of shape ``(4,)`` or ``(n, 4)``, taken as they are; the constructors whose
        names begin with ``from_`` normalise them.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> quarter = jsp.spatial.transform.Rotation.from_euler("z", 90, degrees=True)
    >>> quarter.apply(jnp.array([1.0, 0.0, 0.0])).round(4)
    Array([0., 1., 0.], dtype=float32)
    """

    quat: Array

    # -------------------------------------------------------------------------------------- from other forms

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """The rotations of quaternions ``(x, y, z, w)``, which are normalised."""
        return cls(conversions.normalized(floats(quat, 4, "quat")))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """The rotations of orthogonal matrices ``(..., 3, 3)`` with determinant 1."""
        matrix = floats(matrix)
        if matrix.ndim < 2 or min(matrix.shape[-2:]) < 3:
            raise ValueError(f"Rotation: matrix must have shape (..., 3, 3), got {matrix.shape}")
        return cls(conversions.from_matrix(matrix))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotations of vectors ``(..., 3)``: their direction is the axis, their length the angle."""
        rotvec = floats(rotvec, 3, "rotvec")
        return cls(conversions.from_rotvec(jnp.deg2rad(rotvec) if degrees else rotvec))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """The rotations of modified Rodrigues parameters ``(..., 3)``: axes times tangents of quarters of angles."""
        return cls(conversions.from_mrp(floats(mrp, 3, "mrp")))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotations of Euler angles.

        Arguments:
          seq: one to three axes: of "xyz" for axes at rest (extrinsic), of "XYZ" for such as turn (intrinsic).
          angles: of shape ``(len(seq),)`` or ``(n, len(seq))``; one number for one axis.
          degrees: whether they are degrees; else radians.
        Returns:
          A rotation or a stack of ``n``.
        Raises:
          ValueError: the sequence is not one of axes, or there are more or fewer angles than axes.
        """
        axes, _ = conversions.axes_of(seq)
        angles = jnp.atleast_1d(floats(angles))
        if angles.shape[-1] != len(axes):
            raise ValueError(f"Rotation: there must be {len(axes)} angles for seq {seq!r}, got shape {angles.shape}")
        return cls(conversions.from_euler(seq, jnp.deg2rad(angles) if degrees else angles))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """No rotation; or a stack of ``num``."""
        quat = jnp.asarray([0, 0, 0, 1]).astype(dtypes.check_user_dtype_supported(dtype, "Rotation.identity"))
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """A rotation drawn uniformly from all; or a stack of ``num``.

        Source: Muller, "A note on a method for generating points uniformly on n-dimensional spheres" (1959).
        """
        shape = (4,) if num is None else (num, 4)
        return cls(conversions.normalized(random.normal(random_key, shape)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """The stack of all of these."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    # ---------------------------------------------------------------------------------------- to other forms

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions.

        Arguments:
          canonical: whether to choose, of the two quaternions of a rotation, that with ``w > 0``.
          scalar_first: whether to return ``(w, x, y, z)``; else ``(x, y, z, w)``.
        Returns:
          An array of shape ``(..., 4)``.
        """
        quat = conversions.canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, -1) if scalar_first else quat

    def as_matrix(self) -> Array:
        """Matrices of shape ``(..., 3, 3)``."""
        return conversions.to_matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors of shape ``(..., 3)``: their direction is the axis, their length the angle, at most pi."""
        rotvec = conversions.to_rotvec(self.quat)
        return jnp.rad2deg(rotvec) if degrees else rotvec

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters of shape ``(..., 3)``."""
        return conversions.to_mrp(self.quat)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Euler angles of shape ``(..., 3)``.

        Arguments:
          seq: three axes, as for ``from_euler``.
          degrees: whether to return degrees; else radians.
        Returns:
          Angles; where the outer axes coincide, so that only their sum is known, the third is 0.
        Raises:
          ValueError: the sequence is not one of three axes.
        """
        angles = conversions.to_euler(self.quat, seq)
        return jnp.rad2deg(angles) if degrees else angles

    # --------------------------------------------------------------------------------------------- with them

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Vectors, rotated.

        Arguments:
          vectors: of shape ``(3,)`` or ``(n, 3)``; stacks of vectors and of rotations broadcast.
          inverse: whether to rotate back.
        Returns:
          An array of the shape of the vectors, broadcast.
        Raises:
          ValueError: the shapes do not fit.
        """
        vectors = floats(vectors, 3, "vectors")
        lax.broadcast_shapes(self.quat.shape[:-1], vectors.shape[:-1])  # a ValueError where they do not fit
        matrices = self.as_matrix()
        matrices = jnp.swapaxes(matrices, -1, -2) if inverse else matrices
        return jnp.sum(matrices * vectors[..., None, :], -1)

    def inv(self) -> Rotation:
        """The rotations back."""
        return Rotation(conversions.inverse(self.quat))

    def __mul__(self, other: Rotation) -> Rotation:
        """The rotation by ``other``, then by ``self``; of stacks, each with each."""
        return Rotation(conversions.normalized(conversions.product(self.quat, other.quat)))

    def magnitude(self) -> Array:
        """The angles, from 0 to pi."""
        return conversions.angle_of(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation that is nearest to all of a stack, by the squared distance of matrices.

        Arguments:
          weights: a number for each rotation; all count alike by default.
        Returns:
          One rotation.
        Raises:
          TypeError: there is one rotation only. ValueError: there are not as many weights as rotations.

        Source: Markley, Cheng, Crassidis and Oshman, "Averaging quaternions" (2007).
        """
        n = len(self)
        weights = jnp.ones(n, self.quat.dtype) if weights is None else floats(weights)
        if weights.shape != (n,):
            raise ValueError(f"Rotation.mean: weights must have shape {(n,)}, got {weights.shape}")
        _, vectors = jnp.linalg.eigh((weights[:, None] * self.quat).T @ self.quat)
        return Rotation(vectors[:, -1])

    # ------------------------------------------------------------------------------------------------ stacks

    @property
    def single(self) -> bool:
        """Whether it is one rotation and no stack."""
        return self.quat.ndim == 1

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Rotation: a single rotation has no len()")
        return self.quat.shape[0]

    def __getitem__(self, indexer) -> Rotation:
        if self.single:
            raise TypeError("Rotation: a single rotation cannot be indexed")
        return Rotation(self.quat[indexer])
