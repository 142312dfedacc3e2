"""Learn to read handwritten digits, and look inside while it happens.

Run it with `make demo`. Everything but the first import line is the same program under JAX.
"""

import sys
import time
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

import catena as jax

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402, I001  (after the choice of a drawing backend that needs no screen)

jnp = jax.numpy

CLASSES = 10
EPOCHS = 40
BATCH = 64
HELD_OUT = 360
STEPS_PER_EPOCH = (1797 - HELD_OUT) // BATCH
LEARNING_RATE = 4e-3
WEIGHT_DECAY = 2e-3
PICTURE = Path("digits-training.png")


# ---------------------------------------------------------------------------------------- data


def load_data(seed=0):
    """Real 8x8 images as rows of 64 numbers in [0, 1], in a fixed shuffled split: (train, test)."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    images = (images[order] / 16).astype(np.float32)
    labels = labels[order].astype(np.int32)
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


# --------------------------------------------------------------------------------------- model


def init_params(sizes=(64, 128, 64, CLASSES), seed=0):
    """A list of layers, each a dict of weights and biases."""
    rng = np.random.default_rng(seed)
    return [
        {
            "w": jnp.asarray(rng.normal(0, 1 / np.sqrt(fan_in), (fan_in, fan_out)), dtype=jnp.float32),
            "b": jnp.zeros(fan_out),
        }
        for fan_in, fan_out in zip(sizes, sizes[1:])
    ]


def layer(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


def log_softmax(logits):
    shifted = logits - jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True))


def predict(params, image):
    """Log-probabilities of the ten digits, for one image or for a batch of them."""
    *hidden, last = params
    for p in hidden:
        image = layer(p, image)
    return log_softmax(image @ last["w"] + last["b"])


def loss(params, image, label):
    """Mean cross entropy, for one image or for a batch."""
    hit = label[..., None] == jnp.arange(CLASSES)
    return -jnp.mean(jnp.sum(predict(params, image) * hit, axis=-1))


@jax.jit
def accuracy(params, images, labels):
    return jnp.mean(jnp.argmax(predict(params, images), axis=-1) == labels)


# ------------------------------------------------------------------------------------ training


def init_adam(params):
    zeros = jax.tree.map(jnp.zeros_like, params)
    return {"step": jnp.zeros(()), "mean": zeros, "square": zeros}


def adam(params, grads, state, b1=0.9, b2=0.999, eps=1e-8):
    """One update by Adam (Kingma and Ba, 2015) with decoupled weight decay; the rate falls to zero."""
    step = state["step"] + 1
    rate = LEARNING_RATE * jnp.maximum(1 - step / (EPOCHS * STEPS_PER_EPOCH), 0.0)
    mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state["mean"], grads)
    square = jax.tree.map(lambda s, g: b2 * s + (1 - b2) * g * g, state["square"], grads)

    def update(p, m, s):
        direction = (m / (1 - b1**step)) / (jnp.sqrt(s / (1 - b2**step)) + eps)
        return p - rate * (direction + WEIGHT_DECAY * p)

    return jax.tree.map(update, params, mean, square), {"step": step, "mean": mean, "square": square}


@jax.jit
def train_step(params, state, images, labels):
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    params, state = adam(params, grads, state)
    return params, state, value


def batches(images, labels, rng, part=slice(None)):
    """The batches of an epoch; of each, the part that is asked for."""
    order = rng.permutation(len(images))
    for rows in order[: STEPS_PER_EPOCH * BATCH].reshape(STEPS_PER_EPOCH, BATCH):
        moves = rng.choice(3, size=(2, BATCH), p=(0.15, 0.7, 0.15))
        yield nudge(images[rows[part]], *moves[:, part]), labels[rows[part]]


def nudge(images, down, right):
    """Each image moved by up to one pixel, differently every time: more to learn from, for free."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (8, 8), axis=(1, 2))
    return windows[np.arange(len(images)), down, right].reshape(images.shape)


def train(params, train_data, test_data):
    """Train, showing progress; return the parameters and (loss, held-out accuracy) of each epoch."""
    rng = np.random.default_rng(1)
    state, history = init_adam(params), []
    with progress(EPOCHS) as report:
        for _ in range(EPOCHS):
            values = []
            for images, labels in batches(*train_data, rng):
                params, state, value = train_step(params, state, images, labels)
                values.append(value)
            history.append((float(np.mean(values)), float(accuracy(params, *test_data))))
            report(*history[-1])
    return params, history


# ------------------------------------------------------------------------------------- showing


def progress(total):
    """A live bar where there is a terminal and `rich`; otherwise plain lines, as for a log file."""
    try:
        import rich.progress as rich
    except ImportError:
        return PlainBar(total)
    return RichBar(rich, total) if sys.stdout.isatty() else PlainBar(total)


def status(loss, accuracy):
    return f"loss {loss:.4f}  held out {accuracy:.1%}"


class PlainBar:
    """Ten lines in a log, or one line rewritten in place on a terminal."""

    def __init__(self, total):
        self.total, self.done, self.live = total, 0, sys.stdout.isatty()

    def __enter__(self):
        return self.report

    def __exit__(self, *_):
        if self.live:
            print()

    def report(self, loss, accuracy):
        self.done += 1
        bar = "#" * (20 * self.done // self.total)
        line = f"[{bar:<20}] epoch {self.done:>3}/{self.total}  {status(loss, accuracy)}"
        if self.live:
            print("\r" + line, end="", flush=True)
        elif self.done % max(1, self.total // 10) == 0:
            print(line, flush=True)


class RichBar:
    def __init__(self, rich, total):
        self.bar = rich.Progress(
            rich.TextColumn("epoch"),
            rich.MofNCompleteColumn(),
            rich.BarColumn(),
            rich.TextColumn("{task.fields[status]}"),
            rich.TimeElapsedColumn(),
        )
        self.task = self.bar.add_task("training", total=total, status="compiling")

    def __enter__(self):
        self.bar.start()
        return self.report

    def __exit__(self, *_):
        self.bar.stop()

    def report(self, loss, accuracy):
        self.bar.update(self.task, advance=1, status=status(loss, accuracy))


@jax.jit
def gradient_norms(params, images, labels):
    """The length of each example's own gradient: which images still pull at the parameters."""
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, images, labels)
    squares = [jnp.sum(g.reshape(len(images), -1) ** 2, axis=1) for g in jax.tree.leaves(grads)]
    return jnp.sqrt(sum(squares))


def show_gradient_norms(params, images, labels):
    norms = np.asarray(gradient_norms(params, images, labels))
    guesses = np.argmax(predict(params, images), axis=-1)
    print("\nPer-example gradient norms on held-out images, vmap(grad(loss)):")
    print(f"  median {np.median(norms):.2e}, largest {norms.max():.2e}; the five images that pull hardest:")
    for i in np.argsort(norms)[::-1][:5]:
        print(f"  image {i:>3}  norm {norms[i]:8.4f}  is a {labels[i]}, read as {guesses[i]}")


def draw(history, params, images, labels, path, shown=8):
    """A picture: the learning curve, and the held-out images that are read wrongly."""
    guesses = np.argmax(predict(params, images), axis=-1)
    wrong = np.flatnonzero(guesses != labels)
    figure = plt.figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subfigures(1, 2)

    losses, accuracies = zip(*history)
    curve = left.subplots()
    curve.semilogy(losses, color="tab:blue")
    curve.set(xlabel="epoch", ylabel="training loss (blue)")
    twin = curve.twinx()
    twin.plot(np.multiply(accuracies, 100), color="tab:orange")
    twin.set(ylabel="held-out accuracy, % (orange)", ylim=(80, 100.5))

    right.suptitle(f"{len(wrong)} of {len(labels)} read wrongly")
    for cell, i in zip(right.subplots(2, shown // 2).flat, [*wrong[:shown], *[None] * shown]):
        cell.axis("off")
        if i is not None:
            cell.imshow(images[i].reshape(8, 8), cmap="gray_r")
            cell.set_title(f"{labels[i]} read as {guesses[i]}", fontsize=8)
    figure.savefig(path, dpi=110)


def main():
    start = time.perf_counter()
    train_data, test_data = load_data()
    params = init_params()
    print(f"{len(train_data[0])} images to learn from, {len(test_data[0])} held out; {jax.devices()}")
    print(f"\nOne layer, as the language sees it:\n{jax.make_jaxpr(layer)(params[0], test_data[0][0])}\n")

    params, history = train(params, train_data, test_data)

    show_gradient_norms(params, *test_data)
    draw(history, params, *test_data, PICTURE)
    print(f"\nHeld-out accuracy {history[-1][1]:.2%} in {time.perf_counter() - start:.1f} s.", end=" ")
    print(f"Picture: {PICTURE.resolve()}")
    return history[-1][1]


if __name__ == "__main__":
    main()
