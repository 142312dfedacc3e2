"""A program that goes wrong in one process, in the way that its argument names."""

import os
import signal
import sys
import time

import numpy as np

import catena as jax
from catena.experimental import multihost_utils


def meet(name):
    multihost_utils.sync_global_devices(name)


def error():
    raise ValueError("this went wrong")


def leave():
    sys.exit(3)


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)


def elsewhere():
    from mpi4py import MPI

    MPI.COMM_WORLD.Recv(np.empty(1), 0)  # nobody sends


def slow():
    time.sleep(5)


jax.distributed.initialize(heartbeat_timeout_seconds=2)
meet("the beginning")
if jax.process_index() == 1:
    {f.__name__: f for f in (error, leave, kill, crash, terminate, elsewhere, slow)}[sys.argv[1]]()
meet("the end")
print("met")
