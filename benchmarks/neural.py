"""The functions of `jax.nn` by their formulas, in NumPy and double precision: what `judge.py` judges by."""

import numpy as np
import scipy.special


def double(x):
    return np.asarray(x, "complex128" if np.iscomplexobj(x) else "float64")


def relu(x):
    return np.maximum(x, 0)


def relu6(x):
    return np.clip(double(x), 0, 6)


def leaky_relu(x, negative_slope=1e-2):
    x = double(x)
    return np.where(x >= 0, x, negative_slope * x)


def hard_tanh(x):
    return np.clip(np.asarray(x), -1, 1)


def hard_sigmoid(x):
    return relu6(double(x) + 3) / 6


def hard_silu(x):
    return x * hard_sigmoid(x)


hard_swish = hard_silu
sigmoid = scipy.special.expit


def silu(x):
    return x * scipy.special.expit(double(x))


swish = silu


def log_sigmoid(x):
    return -np.logaddexp(0, -double(x))


def softplus(x):
    return np.logaddexp(0, double(x))


def sparse_plus(x):
    x = double(x)
    return np.where(x <= -1, 0, np.where(x >= 1, x, (np.clip(x, -1, 1) + 1) ** 2 / 4))


def sparse_sigmoid(x):
    return np.clip((double(x) + 1) / 2, 0, 1)


def soft_sign(x):
    return double(x) / (1 + np.abs(double(x)))


def mish(x):
    return x * np.tanh(softplus(x))


def elu(x, alpha=1.0):
    x = double(x)
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def celu(x, alpha=1.0):
    x = double(x)
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


def selu(x):
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def gelu(x, approximate=True):
    x = double(x)
    if approximate:
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * scipy.special.ndtr(x)


def squareplus(x, b=4):
    x = double(x)
    return (x + np.sqrt(x * x + b)) / 2


def log1mexp(x):
    x = double(x)
    return np.where(x < 0.6, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x)))


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    if where is not None:
        b = np.where(where, 1.0 if b is None else b, 0)
    return scipy.special.logsumexp(double(a), axis, b, keepdims, return_sign)


def logmeanexp(x, axis=None, where=None, keepdims=False):
    count = np.sum(np.broadcast_to(True if where is None else where, np.shape(x)), axis, keepdims=keepdims)
    return logsumexp(x, axis, keepdims=keepdims, where=where) - np.log(count)


def log_softmax(x, axis=-1, where=None):
    out = double(x) - logsumexp(x, axis, keepdims=True, where=where)
    return out if where is None else np.where(where, out, -np.inf)


def softmax(x, axis=-1, where=None):
    return np.exp(log_softmax(x, axis, where))


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, algorithm="fast"):
    x = double(x)
    mask = {"axis": axis, "keepdims": True, "where": True if where is None else where}
    own = mean is None
    mean = np.mean(x, **mask) if own else double(mean)
    if variance is None and (own or algorithm == "stable"):
        variance = np.mean(np.abs(x - mean) ** 2, **mask)
    elif variance is None:
        variance = np.maximum(np.mean(x**2, **mask) - mean**2, 0)
    return (x - mean) / np.sqrt(variance + epsilon)


def one_hot(x, num_classes, *, dtype=float, axis=-1):
    return np.moveaxis(np.equal(np.asarray(x)[..., None], np.arange(num_classes)), -1, axis).astype("float64")
