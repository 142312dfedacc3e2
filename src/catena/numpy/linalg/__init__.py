"""Linear algebra on stacks of matrices."""

from catena.core.namespace import shown as _shown
from catena.numpy import protocol as _protocol
from catena.numpy.linalg.decompositions import cholesky as cholesky
from catena.numpy.linalg.decompositions import eig as eig
from catena.numpy.linalg.decompositions import eigh as eigh
from catena.numpy.linalg.decompositions import eigvals as eigvals
from catena.numpy.linalg.decompositions import eigvalsh as eigvalsh
from catena.numpy.linalg.decompositions import qr as qr
from catena.numpy.linalg.decompositions import svd as svd
from catena.numpy.linalg.decompositions import svdvals as svdvals
from catena.numpy.linalg.norms import cond as cond
from catena.numpy.linalg.norms import cross as cross
from catena.numpy.linalg.norms import diagonal as diagonal
from catena.numpy.linalg.norms import matmul as matmul
from catena.numpy.linalg.norms import matrix_norm as matrix_norm
from catena.numpy.linalg.norms import matrix_transpose as matrix_transpose
from catena.numpy.linalg.norms import norm as norm
from catena.numpy.linalg.norms import outer as outer
from catena.numpy.linalg.norms import tensordot as tensordot
from catena.numpy.linalg.norms import trace as trace
from catena.numpy.linalg.norms import vecdot as vecdot
from catena.numpy.linalg.norms import vector_norm as vector_norm
from catena.numpy.linalg.systems import det as det
from catena.numpy.linalg.systems import inv as inv
from catena.numpy.linalg.systems import lstsq as lstsq
from catena.numpy.linalg.systems import matrix_power as matrix_power
from catena.numpy.linalg.systems import matrix_rank as matrix_rank
from catena.numpy.linalg.systems import multi_dot as multi_dot
from catena.numpy.linalg.systems import pinv as pinv
from catena.numpy.linalg.systems import slogdet as slogdet
from catena.numpy.linalg.systems import solve as solve
from catena.numpy.linalg.systems import tensorinv as tensorinv
from catena.numpy.linalg.systems import tensorsolve as tensorsolve

_protocol.open_namespace(globals(), "catena.numpy.linalg")

__dir__ = _shown(globals())
