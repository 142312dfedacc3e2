"""Trains a small network in several processes, with checkpoints; one process may be killed after some time.

mpiexec -n 3 python training.py FOLDER STEPS [RANK SECONDS]
"""

import os
import signal
import sys
import threading
import time

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import NamedSharding, P
from catena.experimental import multihost_utils
from catena.tools import checkpoint

folder, steps = sys.argv[1], int(sys.argv[2])
jax.distributed.initialize()


def kill_me_soon():
    def kill():
        print(f"killed at {time.time()}", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    timer = threading.Timer(float(sys.argv[4]), kill)
    timer.daemon = True
    timer.start()


mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"] - y) ** 2)


@jax.jit
def step(state, x, y):
    value, g = jax.value_and_grad(loss)(state["w"], x, y)
    m = jax.tree.map(lambda m, g: 0.9 * m + g, state["m"], g)
    return {"w": jax.tree.map(lambda w, m: w - 0.05 * m, state["w"], m), "m": m, "key": state["key"]}, value


key = jax.random.key(0)
start = {"a": jax.random.normal(key, (8, 24)) / 3, "b": jax.random.normal(key, (24, 6)) / 5}
state = {"w": {"a": start["a"], "b": start["b"]}, "m": jax.tree.map(jnp.zeros_like, start), "key": key}
state = jax.tree.map(lambda x: jax.device_put(x, NamedSharding(mesh, P(None, "data")) if x.ndim else everywhere), state)

begin = checkpoint.latest(folder) or 0
begin = int(multihost_utils.broadcast_one_to_all(begin))
if begin:
    state = checkpoint.restore(folder, state, step=begin)
if jax.process_index() == 0:
    print(f"begins at {begin}", flush=True)

for i in range(begin, steps):
    if i == begin + 1 and sys.argv[3:] and jax.process_index() == int(sys.argv[3]):
        kill_me_soon()
    batch = jax.random.normal(jax.random.fold_in(jax.random.key(1), i), (12, 14))
    x = jax.device_put(batch[:, :8], rows)
    state, value = step(state, x, jax.device_put(batch[:, 8:], rows))
    stop = multihost_utils.reached_preemption_sync_point(i)
    if (i + 1) % 2 == 0 or i + 1 == steps or stop:
        checkpoint.save(folder, i + 1, state, keep=3, asynchronous=(i % 4 == 1))
        if jax.process_index() == 0 and i % 4 == 3:
            print(f"saved {i + 1}", flush=True)
    if stop:
        break
checkpoint.restore(folder, state)  # waits for the last
if jax.process_index() == 0:
    print(f"ended at {checkpoint.latest(folder)}", flush=True)
