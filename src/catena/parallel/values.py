"""A value of a program that is partitioned, in the forms in which a device's part of it is known."""

from __future__ import annotations

from catena.parallel.halos import View
from catena.parallel.moves import Form


class Value:
    """A value: its type as a whole, a device's part of it in some forms, and the equation that made it.

    A value may be known as a view of another one, its ``base``: ``views`` says how, for the axes that differ. One that
    is ``open`` becomes terms of a sum when such are added to it.
    """

    __slots__ = ("aval", "forms", "maker", "base", "views", "open")

    def __init__(self, aval, form: Form | None, x, maker=None, base: Value | None = None, views=None):
        self.aval, self.maker, self.base, self.open = aval, maker, base, False
        self.forms = {} if form is None else {form: x}
        self.views: dict[int, View] = views or {}

    @property
    def size(self) -> int:
        """The bytes of the whole."""
        return getattr(self.aval, "size", 0) * getattr(getattr(self.aval, "dtype", None), "itemsize", 0)

    @property
    def partial(self) -> tuple:
        """The axes over which it is still to be summed, in all of its forms."""
        found = [form.partial for form in self.forms]
        return found[0] if found and all(found) else ()

    @property
    def is_split(self) -> bool:
        """Whether a device may have a part of it only."""
        own = any(any(form.split) or form.partial for form in self.forms)
        return own or (self.base is not None and self.base.is_split)
