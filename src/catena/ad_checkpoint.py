"""Checkpointing: names for values, policies that refer to them, and a look at what is kept."""

from catena import checkpoint_policies as checkpoint_policies
from catena.checkpoint_policies import Offloadable as Offloadable
from catena.checkpoint_policies import Recompute as Recompute
from catena.checkpoint_policies import Saveable as Saveable
from catena.core.unbuilt import absent as _absent
from catena.tools.residuals import print_saved_residuals as print_saved_residuals
from catena.transform.checkpoint import checkpoint as checkpoint
from catena.transform.checkpoint import checkpoint_name as checkpoint_name
from catena.transform.checkpoint import remat as remat

_absent(globals())
