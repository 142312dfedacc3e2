"""A convolutional net of Keras, trained batch by batch."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np


def example():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((16, 16, 3)),
            keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPooling2D(),
            keras.layers.SeparableConv2D(32, 3, activation="gelu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy")
    make = np.random.default_rng(0)
    x, y = make.normal(size=(32, 16, 16, 3)).astype("float32"), make.integers(0, 10, 32)

    def step(state):
        return state, np.float32(model.train_on_batch(x, y))

    return step, 0
