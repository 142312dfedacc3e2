"""A disk cache whose entries are damaged, exchanged, of another kind or out of reach: programs are right still."""

import gc
import os
import random
import shutil
import socket
import tempfile
from pathlib import Path

import numpy as np

import catena as jax
import catena.numpy as jnp
from attack.outcomes import check_close
from catena import lax

X = np.linspace(0.1, 2.0, 12).astype(np.float32).reshape(3, 4)
PROGRAMS = {
    "elementwise": lambda x: jnp.tanh(x) * 3 + 1,
    "sum": lambda x: jnp.sum(jnp.sin(x) * x),
    "a table": lambda x: x * np.array([[1.5], [2.5], [3.5]], np.float32),
    "product": lambda x: x @ x.T,
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(4), x)[1],
    "sort": lambda x: jnp.sort(x, 0),
    "gradient": jax.grad(lambda x: (jnp.cos(x) ** 2).sum()),
    "many threads": lambda x: jnp.sin(x.sum() + jnp.arange(300_000.0)).sum(),
}
WANTED = {name: np.asarray(f(X)) for name, f in PROGRAMS.items()}


def on_each(damage):
    """Damage that is done to each file."""

    def attack(folder):
        for path in sorted(folder.iterdir()):
            damage(path)

    return attack


def rewritten(change):
    return on_each(lambda path: path.write_bytes(change(path.read_bytes())))


def flipped(content: bytes) -> bytes:
    at = random.Random(len(content)).randrange(len(content))
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def exchange(folder):
    paths = sorted(folder.iterdir())
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)


def replaced(make):
    def damage(path):
        path.unlink()
        make(path)

    return on_each(damage)


def link_to_itself(path):
    path.symlink_to(path)


def bind_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path.name)
    finally:
        os.chdir(here)


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(1 << 40)


ATTACKS = {
    "nothing": lambda folder: None,
    "empty": rewritten(lambda c: b""),
    "half": rewritten(lambda c: c[: len(c) // 2]),
    "one byte less": rewritten(lambda c: c[:-1]),
    "one byte more": rewritten(lambda c: c + b"x"),
    "one bit": rewritten(flipped),
    "zeros": rewritten(lambda c: bytes(len(c))),
    "noise": rewritten(lambda c: random.Random(1).randbytes(len(c))),
    "head alone": rewritten(lambda c: c[:40]),
    "another version": rewritten(lambda c: b"catena1\n" + c[8:]),
    "twice": rewritten(lambda c: c + c),
    "exchanged": exchange,
    "pipes": replaced(os.mkfifo),
    "folders": replaced(os.mkdir),
    "links to themselves": replaced(link_to_itself),
    "links to a device": replaced(lambda path: path.symlink_to("/dev/zero")),
    "links to nothing": replaced(lambda path: path.symlink_to("/nowhere/at/all")),
    "sockets": replaced(bind_socket),
    "a terabyte of nothing": replaced(sparse),
    "writable for all": on_each(lambda path: path.chmod(0o666)),
    "not readable": on_each(lambda path: path.chmod(0)),
    "gone": on_each(os.unlink),
    "the folder gone": shutil.rmtree,
    "the folder a file": lambda folder: [shutil.rmtree(folder), folder.write_bytes(b"")],
    "the folder writable for all": lambda folder: folder.chmod(0o777),
    "the folder read-only": lambda folder: folder.chmod(0o500),
    "foreign files": lambda folder: [(folder / n).write_bytes(b"x") for n in (".new-1", "a" * 64, "\udcff", "é")],
}


def attacked(program, attack):
    """A case: a program that is compiled, forgotten, and looked for in a cache that was attacked."""

    def case():
        folder = Path(tempfile.mkdtemp()) / "cache"
        before = os.environ.get("CATENA_CACHE_DIR")
        os.environ["CATENA_CACHE_DIR"] = str(folder)
        try:
            for change in (lambda folder: None, ATTACKS[attack], lambda folder: None):
                if folder.exists():
                    change(folder)
                jax.clear_caches()
                gc.collect()
                f = PROGRAMS[program]
                check_close(jax.jit(lambda x, f=f: f(x))(X), WANTED[program], 1e-3)
        finally:
            os.environ["CATENA_CACHE_DIR"] = before or ""
            if folder.is_dir():
                folder.chmod(0o700)
            shutil.rmtree(folder.parent, ignore_errors=True)

    return case


def cases():
    for program in PROGRAMS:
        for attack in ATTACKS:
            yield f"{program}: {attack}", attacked(program, attack)
