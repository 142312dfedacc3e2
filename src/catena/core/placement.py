"""The word for where an array is: the devices, and who chose them."""

from typing import NamedTuple


class Placement(NamedTuple):
    """The devices that hold an array: each a copy, or each its slice along ``axis``. ``committed`` says whether the
    user chose them, so that results stay there too.
    """

    devices: tuple
    committed: bool = True
    axis: int | None = None

    def of_result(self, shape: tuple) -> "Placement":
        """Where a result of this shape is: it keeps the sliced axis if there is one slice for each device."""
        fits = self.axis is not None and self.axis < len(shape) and shape[self.axis] == len(self.devices)
        return self if self.axis is None or fits else self._replace(axis=None)


def default_placement(device) -> Placement | None:
    """Where results go that follow no data, if the default device is ``device``: ``None`` for the first one, where
    they are without a word.
    """
    return Placement((device,), committed=False) if getattr(device, "id", 0) else None
