"""Unit quaternions and what else describes a rotation: functions of stacks, quaternions being ``(x, y, z, w)``.

Where an angle is 0 its axis is not known, and formulas divide 0 by 0; they are written by functions that are smooth
there, so that derivatives are right at the identity, too.

Sources: Shuster, "A survey of attitude representations" (1993); for Euler angles, Bernardes and Viollet, "Quaternion to
Euler angles conversion: a direct, general and computationally efficient method" (2022); for matrices, Markley, "Unit
quaternion from rotation matrix" (2008).
"""

from __future__ import annotations

import numpy as np

from catena import numpy as jnp


def squared_length(x):
    return jnp.sum(x * x, -1, keepdims=True)


def normalized(x):
    return x / jnp.sqrt(squared_length(x))


def product(p, q):
    """The quaternion of rotating by ``q``, then by ``p``."""
    p, q = jnp.broadcast_arrays(p, q)
    px, py, pz, pw = (p[..., i] for i in range(4))
    qx, qy, qz, qw = (q[..., i] for i in range(4))
    parts = [
        pw * qx + px * qw + py * qz - pz * qy,
        pw * qy + py * qw + pz * qx - px * qz,
        pw * qz + pz * qw + px * qy - py * qx,
        pw * qw - px * qx - py * qy - pz * qz,
    ]
    return jnp.stack(parts, -1)


def inverse(q):
    return q * np.asarray([-1, -1, -1, 1], q.dtype)


def to_matrix(q):
    """Rotation matrices ``(..., 3, 3)``."""
    x, y, z, w = (q[..., i] for i in range(4))
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    parts = [
        *(xx - yy - zz + ww, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        *(2 * (x * y + z * w), -xx + yy - zz + ww, 2 * (y * z - x * w)),
        *(2 * (x * z - y * w), 2 * (y * z + x * w), -xx - yy + zz + ww),
    ]
    return jnp.stack(parts, -1).reshape(*q.shape[:-1], 3, 3)


def from_matrix(m):
    """Of the four columns of ``4 q q^T``, the one with the largest diagonal element, normalised."""
    m00, m01, m02 = (m[..., 0, i] for i in range(3))
    m10, m11, m12 = (m[..., 1, i] for i in range(3))
    m20, m21, m22 = (m[..., 2, i] for i in range(3))
    trace = m00 + m11 + m22
    candidates = [
        [1 - trace + 2 * m00, m01 + m10, m02 + m20, m21 - m12],
        [m01 + m10, 1 - trace + 2 * m11, m12 + m21, m02 - m20],
        [m02 + m20, m12 + m21, 1 - trace + 2 * m22, m10 - m01],
        [m21 - m12, m02 - m20, m10 - m01, 1 + trace],
    ]
    candidates = jnp.stack([jnp.stack(row, -1) for row in candidates], -2)
    which = jnp.argmax(jnp.stack([m00, m11, m22, trace], -1), -1)
    return normalized(jnp.take_along_axis(candidates, which[..., None, None], -2)[..., 0, :])


def _is_small(square):
    return square < 1e-6


def from_rotvec(v):
    """Of vectors whose direction is the axis and whose length is the angle, in radians."""
    square = squared_length(v)
    small = _is_small(square)
    angle = jnp.sqrt(jnp.where(small, 1, square))
    ratio = jnp.where(small, 0.5 - square / 48 + square * square / 3840, jnp.sin(angle / 2) / angle)
    cosine = jnp.where(small, 1 - square / 8 + square * square / 384, jnp.cos(angle / 2))
    return jnp.concatenate([v * ratio, cosine], -1)


def _shorter(q):
    """Of the two quaternions of a rotation the one with ``w >= 0``."""
    return jnp.where(q[..., 3:] < 0, -q, q)


def to_rotvec(q):
    q = _shorter(q)
    square = squared_length(q[..., :3])
    small = _is_small(square)
    sine, w = jnp.sqrt(jnp.where(small, 1, square)), q[..., 3:]
    safe = jnp.where(small, w, 1)
    ratio = jnp.where(small, 2 / safe - 2 * square / (3 * safe**3), 2 * jnp.arctan2(sine, w) / sine)
    return q[..., :3] * ratio


def angle_of(q):
    """The angle, from 0 to pi; its derivative at 0, where there is none, is 0."""
    square = squared_length(q[..., :3])[..., 0]
    zero = square == 0
    return 2 * jnp.arctan2(jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square))), jnp.abs(q[..., 3]))


def from_mrp(p):
    """Of modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
    square = squared_length(p)
    return jnp.concatenate([2 * p, 1 - square], -1) / (1 + square)


def to_mrp(q):
    q = _shorter(q)
    return q[..., :3] / (1 + q[..., 3:])


def canonical(q):
    """Of the two quaternions of a rotation that whose first of ``w, x, y, z`` that is not 0 is positive."""
    x, y, z, w = (q[..., i] for i in range(4))
    first = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
    return jnp.where((first < 0)[..., None], -q, q)


# ------------------------------------------------------------------------------------------------------------
# Euler angles


def axes_of(seq: str) -> tuple[list[int], bool]:
    """The numbers of the axes of a sequence, and whether they turn with what is rotated (intrinsic)."""
    if not isinstance(seq, str) or not 0 < len(seq) <= 3:
        raise ValueError(f"seq must be a string of one to three axes, got {seq!r}")
    if not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ValueError(f"seq must be of the axes x, y and z, or all of X, Y and Z, got {seq!r}")
    axes = ["xyz".index(c) for c in seq.lower()]
    if any(i == j for i, j in zip(axes, axes[1:], strict=False)):
        raise ValueError(f"seq must not name an axis twice in a row, got {seq!r}")
    return axes, seq.isupper()


def from_euler(seq: str, angles):
    """Of angles ``(..., k)`` in radians about the ``k`` axes of ``seq``, one after the other."""
    axes, intrinsic = axes_of(seq)
    total = None
    for i, axis in enumerate(axes):
        half = angles[..., i] / 2
        unit = [jnp.zeros_like(half)] * 3
        unit[axis] = jnp.sin(half)
        turn = jnp.stack([*unit, jnp.cos(half)], -1)
        total = turn if total is None else product(total, turn) if intrinsic else product(turn, total)
    return total


def to_euler(q, seq: str):
    """Angles ``(..., 3)`` about the axes of ``seq``; the third (intrinsic: the first) is 0 where two axes coincide."""
    axes, intrinsic = axes_of(seq)
    if len(axes) != 3:
        raise ValueError(f"seq must be three axes, got {seq!r}")
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    a, b, c, d = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
    if not symmetric:
        a, b, c, d = a - c, b + d, c + a, d - b
    tiny = 10 * float(jnp.finfo(q.dtype).eps)
    cd, ab = _length(c, d), _length(a, b)
    middle = 2 * jnp.arctan2(cd, ab)
    closed = cd <= tiny * ab  # the middle angle is 0: the outer axes coincide
    opposed = ab <= tiny * cd  # it is pi: they are opposed
    half_sum, half_difference = _angle(b, a, opposed), _angle(d, c, closed)
    first, last = half_sum - half_difference, half_sum + half_difference
    if intrinsic:  # the angle that is left is that of the axis which comes last in the sequence
        last = jnp.where(closed, 2 * half_sum, jnp.where(opposed, 2 * half_difference, last))
        first = jnp.where(closed | opposed, 0, first)
    else:
        first = jnp.where(closed, 2 * half_sum, jnp.where(opposed, -2 * half_difference, first))
        last = jnp.where(closed | opposed, 0, last)
    if not symmetric:
        middle, last = middle - np.pi / 2, last * sign
    angles = [_within_turn(first), middle, _within_turn(last)]
    return jnp.stack(angles[::-1] if intrinsic else angles, -1)


def _length(x, y):
    """``hypot``, with a derivative of 0 at 0."""
    square = x * x + y * y
    zero = square == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square)))


def _angle(y, x, unknown):
    """``arctan2``; 0 where it is rounding errors that it would be taken of."""
    return jnp.where(unknown, 0, jnp.arctan2(jnp.where(unknown, 0, y), jnp.where(unknown, 1, x)))


def _within_turn(angle):
    return jnp.where(angle < -np.pi, angle + 2 * np.pi, jnp.where(angle > np.pi, angle - 2 * np.pi, angle))
