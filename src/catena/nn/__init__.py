"""Neural networks."""

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.nn import initializers as initializers
from catena.nn.activations import celu as celu
from catena.nn.activations import elu as elu
from catena.nn.activations import gelu as gelu
from catena.nn.activations import glu as glu
from catena.nn.activations import hard_sigmoid as hard_sigmoid
from catena.nn.activations import hard_silu as hard_silu
from catena.nn.activations import hard_swish as hard_swish
from catena.nn.activations import hard_tanh as hard_tanh
from catena.nn.activations import identity as identity
from catena.nn.activations import leaky_relu as leaky_relu
from catena.nn.activations import log1mexp as log1mexp
from catena.nn.activations import log_sigmoid as log_sigmoid
from catena.nn.activations import mish as mish
from catena.nn.activations import relu as relu
from catena.nn.activations import relu6 as relu6
from catena.nn.activations import selu as selu
from catena.nn.activations import sigmoid as sigmoid
from catena.nn.activations import silu as silu
from catena.nn.activations import soft_sign as soft_sign
from catena.nn.activations import softplus as softplus
from catena.nn.activations import sparse_plus as sparse_plus
from catena.nn.activations import sparse_sigmoid as sparse_sigmoid
from catena.nn.activations import squareplus as squareplus
from catena.nn.activations import swish as swish
from catena.nn.activations import tanh as tanh
from catena.nn.attention import dot_product_attention as dot_product_attention
from catena.nn.functions import logmeanexp as logmeanexp
from catena.nn.functions import one_hot as one_hot
from catena.nn.functions import standardize as standardize
from catena.nn.scaled import get_scaled_dot_general_config as get_scaled_dot_general_config
from catena.nn.scaled import scaled_dot_general as scaled_dot_general
from catena.nn.scaled import scaled_matmul as scaled_matmul
from catena.numpy.softmax import log_softmax as log_softmax
from catena.numpy.softmax import logsumexp as logsumexp
from catena.numpy.softmax import softmax as softmax

_open_door(globals(), "catena.nn")

__dir__ = _shown(globals(), "initializers")

_absent(globals())
