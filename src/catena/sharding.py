"""Where arrays are: meshes of devices, and layouts over them."""

from catena.core.manual_axes import ManualAxisType as ManualAxisType
from catena.core.mesh import AbstractDevice as AbstractDevice
from catena.core.mesh import AbstractMesh as AbstractMesh
from catena.core.mesh import AxisType as AxisType
from catena.core.mesh import Mesh as Mesh
from catena.core.mesh import get_abstract_mesh as get_abstract_mesh
from catena.core.mesh import get_mesh as get_mesh
from catena.core.mesh import use_abstract_mesh as use_abstract_mesh
from catena.core.named_sharding import NamedSharding as NamedSharding
from catena.core.partition_spec import PartitionSpec as PartitionSpec
from catena.core.set_mesh import set_mesh as set_mesh
from catena.core.sharding import Sharding as Sharding
from catena.core.sharding import SingleDeviceSharding as SingleDeviceSharding
from catena.core.sharding import make_single_device_sharding as make_single_device_sharding
from catena.core.unbuilt import absent as _absent
from catena.lax.resharding import auto_axes as auto_axes
from catena.lax.resharding import explicit_axes as explicit_axes
from catena.lax.resharding import reshard as reshard

_absent(globals())
