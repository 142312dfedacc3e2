"""``scipy.spatial.transform`` beside SciPy's, on random rotations and where angles are lost; derivatives."""

import itertools

import numpy as np
import pytest
import scipy.spatial.transform

import catena as jax
import catena.numpy as jnp
from catena.scipy.spatial.transform import Rotation, Slerp

Theirs = scipy.spatial.transform.Rotation
RNG = np.random.default_rng(6)
Q = RNG.normal(size=(7, 4)).astype(np.float32)
V = RNG.normal(size=(7, 3)).astype(np.float32)
OURS, THEIRS = Rotation.from_quat(Q), Theirs.from_quat(Q)
SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]
SEQUENCES += [s.upper() for s in SEQUENCES]


def assert_near(found, expected, atol=3e-6):
    np.testing.assert_allclose(found, expected, atol=atol)


def assert_same_rotation(ours, theirs, atol=3e-6):
    assert_near(ours.as_matrix(), theirs.as_matrix(), atol)


def test_every_form_there_and_back():
    assert_near(OURS.as_quat(), THEIRS.as_quat())
    assert_near(OURS.as_quat(canonical=True, scalar_first=True)[:, 0] >= 0, True)
    assert_near(OURS.as_matrix(), THEIRS.as_matrix())
    assert_near(OURS.as_rotvec(), THEIRS.as_rotvec())
    assert_near(OURS.as_rotvec(degrees=True), THEIRS.as_rotvec(degrees=True), 2e-4)
    assert_near(OURS.as_mrp(), THEIRS.as_mrp())
    assert_same_rotation(Rotation.from_matrix(THEIRS.as_matrix().astype(np.float32)), THEIRS)
    for name in ("from_rotvec", "from_mrp"):
        for scale in (1, 1e-4, 0, 3):
            assert_same_rotation(getattr(Rotation, name)(scale * V), getattr(Theirs, name)(scale * V))
    assert_same_rotation(Rotation.from_rotvec(90 * V, degrees=True), Theirs.from_rotvec(90 * V, degrees=True), 3e-5)
    for axis in np.eye(3, dtype=np.float32):
        half_turn = Rotation.from_matrix(2 * np.outer(axis, axis) - np.eye(3, dtype=np.float32))
        assert_near(half_turn.as_rotvec(), np.pi * axis)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles(seq):
    assert_same_rotation(Rotation.from_euler(seq, V), Theirs.from_euler(seq, V))
    found = OURS.as_euler(seq)
    assert_near(found, THEIRS.as_euler(seq), 2e-5)
    lost = np.float32([[0.3, middle, 0.2] for middle in (0, np.pi, np.pi / 2, -np.pi / 2)])
    again = Rotation.from_euler(seq, Rotation.from_euler(seq, lost).as_euler(seq))
    assert_same_rotation(again, Theirs.from_euler(seq, lost), 5e-6)
    slope = jax.jacobian(lambda q: Rotation.from_quat(q).as_euler(seq))(np.float32([0, 0, 0, 1]))
    assert np.isfinite(slope).all()


def test_fewer_euler_angles():
    assert_same_rotation(Rotation.from_euler("y", 0.5), Theirs.from_euler("y", 0.5))
    assert_same_rotation(
        Rotation.from_euler("zx", [90, 20], degrees=True), Theirs.from_euler("zx", [90, 20], degrees=True)
    )
    assert Rotation.from_euler("x", np.float32([[0.5], [1]])).quat.shape == (2, 4)


def test_what_rotations_do():
    one, theirs = OURS[2], THEIRS[2]
    assert_near(OURS.apply(V), THEIRS.apply(V))
    assert_near(OURS.apply(V, inverse=True), THEIRS.apply(V, inverse=True))
    assert_near(one.apply(V), theirs.apply(V))
    assert_near(OURS.apply(V[0]), THEIRS.apply(V[0]))
    assert_near(one.apply([1, 2, 3]), theirs.apply([1, 2, 3]), 1e-5)
    for ours, expected in (
        (OURS * OURS[::-1], THEIRS * THEIRS[::-1]),
        (one * OURS, theirs * THEIRS),
        (OURS * one, THEIRS * theirs),
    ):
        assert_same_rotation(ours, expected)
    assert_same_rotation(OURS.inv(), THEIRS.inv())
    assert_near(OURS.magnitude(), THEIRS.magnitude())
    assert_same_rotation(OURS.mean(), THEIRS.mean(), 1e-5)
    weights = np.arange(1, 8, dtype=np.float32)
    assert_same_rotation(OURS.mean(weights), THEIRS.mean(weights), 1e-5)


def test_stacks():
    assert len(OURS) == 7 and not OURS.single and OURS[0].single and len(OURS[2:5]) == 3
    assert len(Rotation.concatenate([OURS, OURS[0]])) == 8
    assert Rotation.identity().quat.shape == (4,) and Rotation.identity(3).quat.shape == (3, 4)
    drawn = Rotation.random(jax.random.key(0), 4000)
    assert_near(jnp.linalg.norm(drawn.quat, axis=-1), 1)
    assert_near(drawn.as_matrix().mean(0), np.zeros((3, 3)), 0.05)
    assert Rotation.random(jax.random.key(0)).single
    assert jax.tree.leaves(OURS)[0].shape == (7, 4)
    assert jax.tree.map(lambda x: x[:2], OURS).quat.shape == (2, 4)


def test_derivatives_where_the_angle_is_zero():
    zero, identity = np.zeros(3, np.float32), np.float32([0, 0, 0, 1])
    assert_near(jax.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())(zero), np.eye(3))
    assert_near(jax.jacobian(lambda q: Rotation.from_quat(q).as_rotvec())(identity), 2 * np.eye(3, 4))
    assert_near(jax.jacobian(lambda q: Rotation.from_quat(q).as_mrp())(identity), np.eye(3, 4) / 2)
    assert_near(jax.grad(lambda v: Rotation.from_rotvec(v).magnitude())(zero), zero)
    generator = jax.jacobian(lambda v: Rotation.from_rotvec(v).as_matrix())(zero)
    assert_near(generator[:, :, 2], [[0, -1, 0], [1, 0, 0], [0, 0, 0]])
    for form in (
        lambda q: Rotation.from_quat(q).as_rotvec(),
        lambda q: Rotation.from_matrix(Rotation.from_quat(q).as_matrix()).quat,
    ):
        forward = jax.jvp(form, (Q[0],), (Q[1],))[1]
        step = 1e-2
        difference = (np.asarray(form(Q[0] + step * Q[1])) - np.asarray(form(Q[0] - step * Q[1]))) / (2 * step)
        assert_near(forward, difference, 2e-2)


def test_interpolation():
    times = np.arange(7, dtype=np.float32)
    ours, theirs = Slerp.init(times, OURS), scipy.spatial.transform.Slerp(times, THEIRS)
    when = np.float32([0, 0.25, 1, 3.5, 6])
    assert_same_rotation(ours(when), theirs(when), 1e-5)
    assert_same_rotation(ours(2.5), theirs(2.5), 1e-5)
    assert np.isfinite(ours(np.float32([-1, 8])).quat).all()
    inside = jax.jit(lambda slerp, t: slerp(t).as_matrix())(ours, when)
    assert_near(inside, theirs(when).as_matrix(), 1e-5)
    mapped = jax.vmap(lambda q, v: Rotation.from_quat(q).apply(v))(Q, V)
    assert_near(mapped, THEIRS.apply(V))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: Rotation.from_quat(V), ValueError),
        (lambda: Rotation.from_matrix(np.eye(2)), ValueError),
        (lambda: Rotation.from_euler("abc", V), ValueError),
        (lambda: Rotation.from_euler("xyZ", V), ValueError),
        (lambda: Rotation.from_euler("xxy", V), ValueError),
        (lambda: Rotation.from_euler("", V), ValueError),
        (lambda: Rotation.from_euler("xy", V), ValueError),
        (lambda: OURS.as_euler("xy"), ValueError),
        (lambda: OURS.apply(V[:3]), ValueError),
        (lambda: OURS.apply(Q), ValueError),
        (lambda: OURS.mean(V[:, 0][:3]), ValueError),
        (lambda: OURS[0].mean(), TypeError),
        (lambda: len(OURS[0]), TypeError),
        (lambda: OURS[0][0], TypeError),
        (lambda: OURS * 2, AttributeError),
        (lambda: Slerp.init(np.arange(3), OURS), ValueError),
        (lambda: Slerp.init(np.arange(1), OURS[0]), ValueError),
        (lambda: Slerp.init(np.arange(7), Q), TypeError),
        (lambda: Slerp.init(np.arange(7), OURS)(np.zeros((1, 1))), ValueError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call()
