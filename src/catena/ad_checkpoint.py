"""Checkpointing: names for values and policies that refer to them."""

from catena import checkpoint_policies as checkpoint_policies
from catena.transform.checkpoint import checkpoint as checkpoint
from catena.transform.checkpoint import checkpoint_name as checkpoint_name
