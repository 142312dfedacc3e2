"""Linear algebra on stacks of matrices: factorisations, eigenvalues, triangular systems."""

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.lax.linalg.eigen import EighImplementation as EighImplementation
from catena.lax.linalg.eigen import EigImplementation as EigImplementation
from catena.lax.linalg.eigen import eig as eig
from catena.lax.linalg.eigen import eig_p as eig_p
from catena.lax.linalg.eigen import eigh as eigh
from catena.lax.linalg.eigen import eigh_p as eigh_p
from catena.lax.linalg.eigen import hessenberg as hessenberg
from catena.lax.linalg.eigen import hessenberg_p as hessenberg_p
from catena.lax.linalg.eigen import schur as schur
from catena.lax.linalg.eigen import schur_p as schur_p
from catena.lax.linalg.eigen import tridiagonal as tridiagonal
from catena.lax.linalg.eigen import tridiagonal_p as tridiagonal_p
from catena.lax.linalg.factor import cholesky as cholesky
from catena.lax.linalg.factor import cholesky_p as cholesky_p
from catena.lax.linalg.factor import cholesky_update as cholesky_update
from catena.lax.linalg.factor import cholesky_update_p as cholesky_update_p
from catena.lax.linalg.factor import householder_product as householder_product
from catena.lax.linalg.factor import householder_product_p as householder_product_p
from catena.lax.linalg.factor import lu as lu
from catena.lax.linalg.factor import lu_p as lu_p
from catena.lax.linalg.factor import lu_pivots_to_permutation as lu_pivots_to_permutation
from catena.lax.linalg.factor import lu_pivots_to_permutation_p as lu_pivots_to_permutation_p
from catena.lax.linalg.factor import ormqr as ormqr
from catena.lax.linalg.factor import ormqr_p as ormqr_p
from catena.lax.linalg.factor import qr as qr
from catena.lax.linalg.factor import qr_p as qr_p
from catena.lax.linalg.products import symmetric_product as symmetric_product
from catena.lax.linalg.products import symmetric_product_p as symmetric_product_p
from catena.lax.linalg.solve import triangular_solve as triangular_solve
from catena.lax.linalg.solve import triangular_solve_p as triangular_solve_p
from catena.lax.linalg.solve import tridiagonal_solve as tridiagonal_solve
from catena.lax.linalg.solve import tridiagonal_solve_p as tridiagonal_solve_p
from catena.lax.linalg.svd import SvdAlgorithm as SvdAlgorithm
from catena.lax.linalg.svd import qdwh as qdwh
from catena.lax.linalg.svd import svd as svd
from catena.lax.linalg.svd import svd_p as svd_p

_open_door(globals(), "catena.lax.linalg")

__dir__ = _shown(globals())
