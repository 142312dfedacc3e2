"""Stacks of finished programs: who owns their memory, and what an array of stacks holds.

An array of stacks is a NumPy array of ``Stack`` objects. A stack that a compiled program made is the address
of a record in native memory (``compiler/emit/stacks.py`` describes it), kept alive by the arena of that run; one
that was made in Python is a list of items, laid out as such a record when a compiled program asks for its
address.
"""

import ctypes
import math
import weakref

import numpy as np

from catena.core.stack import is_stack

LENGTH_OFFSET = 8  # bytes from the start of a native record to the number of items
ITEM_BYTES_OFFSET = 24


class Arena:
    """The stacks that one run of a program left behind; freed, once, when nobody refers to them any more."""

    __slots__ = ("__weakref__", "others")

    def __init__(self, head: int, executable, others=()):
        """Own the chain of stacks at address ``head``, made by ``executable``.

        Keeps ``others`` alive: the stacks that the run was given, since its results may refer to them.
        """
        self.others = others
        if head:
            weakref.finalize(self, free, executable, head)


def free(executable, head: int):
    """Give the memory of a chain of stacks back."""
    executable.free_stacks(head)


class Stack:
    """One stack: a list of NumPy arrays, or the address of a native record that ``owner`` keeps alive."""

    __slots__ = ("items", "address", "owner")

    def __init__(self, items: list | None = None, address: int = 0, owner=None):
        self.items, self.address, self.owner = items, address, owner

    def __len__(self):
        if self.items is not None:
            return len(self.items)
        return word(self.address + LENGTH_OFFSET) if self.address else 0

    def __repr__(self):
        return f"Stack(length={len(self)})"

    def read(self, i: int, item) -> np.ndarray:
        """Item ``i``, of the type ``item``; zeros beyond the end."""
        if not 0 <= i < len(self):
            return empty_stacks(item.shape) if is_stack(item) else np.zeros(item.shape, item.dtype)
        if self.items is not None:
            return self.items[i]
        shape, dtype = item.dtype.physical(item.shape) if is_stack(item) else (item.shape, item.dtype)
        size = word(self.address + ITEM_BYTES_OFFSET)
        raw = ctypes.string_at(word(self.address) + i * size, math.prod(shape) * dtype.itemsize)
        value = np.frombuffer(raw, dtype).reshape(shape)
        return from_addresses(value, self.owner) if is_stack(item) else value

    def native_address(self, item) -> int:
        """The address of a native record with these items, of the type ``item``."""
        if self.items and not self.address:
            values = [addresses(x, item.dtype.item) if is_stack(item) else x for x in self.items]
            data = np.ascontiguousarray(np.stack(values))
            record = np.array([data.ctypes.data, len(values), len(values), data[0].nbytes, 0], np.int64)
            self.address, self.owner = record.ctypes.data, (data, record, self.items)
        return self.address


def word(address: int) -> int:
    """The 64-bit integer at an address."""
    return ctypes.c_int64.from_address(address).value


def one_stack(stack: Stack) -> np.ndarray:
    """A stack as a 0-d array."""
    array = np.empty((), object)
    array[()] = stack
    return array


def empty_stacks(shape: tuple) -> np.ndarray:
    """An array of empty stacks."""
    array = np.empty(shape, object)
    array.fill(Stack())
    return array


def addresses(stacks: np.ndarray, item) -> np.ndarray:
    """The addresses by which compiled programs know these stacks of items of the type ``item``."""
    flat = [s.native_address(item) for s in stacks.reshape(-1)]
    return np.array(flat, np.uint64).reshape(stacks.shape)


def from_addresses(values: np.ndarray, owner) -> np.ndarray:
    """Stacks at these addresses, kept alive by ``owner``."""
    array = np.empty(values.size, object)
    for i, address in enumerate(values.reshape(-1).tolist()):
        array[i] = Stack(address=address, owner=owner)
    return array.reshape(values.shape)
