"""Linear algebra in SciPy's conventions."""

from catena.core.namespace import shown as _shown
from catena.scipy.linalg.eigenvalues import eigh as eigh
from catena.scipy.linalg.eigenvalues import eigh_tridiagonal as eigh_tridiagonal
from catena.scipy.linalg.factorizations import cho_factor as cho_factor
from catena.scipy.linalg.factorizations import cholesky as cholesky
from catena.scipy.linalg.factorizations import det as det
from catena.scipy.linalg.factorizations import hessenberg as hessenberg
from catena.scipy.linalg.factorizations import inv as inv
from catena.scipy.linalg.factorizations import lu as lu
from catena.scipy.linalg.factorizations import lu_factor as lu_factor
from catena.scipy.linalg.factorizations import qr as qr
from catena.scipy.linalg.factorizations import qr_multiply as qr_multiply
from catena.scipy.linalg.factorizations import svd as svd
from catena.scipy.linalg.functions import expm as expm
from catena.scipy.linalg.functions import expm_frechet as expm_frechet
from catena.scipy.linalg.functions import funm as funm
from catena.scipy.linalg.functions import sqrtm as sqrtm
from catena.scipy.linalg.schur import polar as polar
from catena.scipy.linalg.schur import rsf2csf as rsf2csf
from catena.scipy.linalg.schur import schur as schur
from catena.scipy.linalg.structured import block_diag as block_diag
from catena.scipy.linalg.structured import circulant as circulant
from catena.scipy.linalg.structured import companion as companion
from catena.scipy.linalg.structured import convolution_matrix as convolution_matrix
from catena.scipy.linalg.structured import dft as dft
from catena.scipy.linalg.structured import fiedler as fiedler
from catena.scipy.linalg.structured import fiedler_companion as fiedler_companion
from catena.scipy.linalg.structured import hadamard as hadamard
from catena.scipy.linalg.structured import hankel as hankel
from catena.scipy.linalg.structured import helmert as helmert
from catena.scipy.linalg.structured import hilbert as hilbert
from catena.scipy.linalg.structured import invhilbert as invhilbert
from catena.scipy.linalg.structured import invpascal as invpascal
from catena.scipy.linalg.structured import leslie as leslie
from catena.scipy.linalg.structured import pascal as pascal
from catena.scipy.linalg.structured import toeplitz as toeplitz
from catena.scipy.linalg.systems import cho_solve as cho_solve
from catena.scipy.linalg.systems import lu_solve as lu_solve
from catena.scipy.linalg.systems import solve as solve
from catena.scipy.linalg.systems import solve_sylvester as solve_sylvester
from catena.scipy.linalg.systems import solve_triangular as solve_triangular

__dir__ = _shown(globals())
