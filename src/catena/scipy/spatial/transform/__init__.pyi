from catena.scipy.spatial.transform.rotation import Rotation as Rotation
from catena.scipy.spatial.transform.slerp import Slerp as Slerp
