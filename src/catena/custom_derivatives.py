"""Derivatives that users define."""

from catena.core.unbuilt import absent as _absent
from catena.transform.custom_call import SymbolicZero as SymbolicZero
from catena.transform.custom_call import zero_from_primal as zero_from_primal
from catena.transform.custom_gradient import closure_convert as closure_convert
from catena.transform.custom_gradient import custom_gradient as custom_gradient
from catena.transform.custom_gradient import linear_call as linear_call
from catena.transform.custom_jvp import custom_jvp as custom_jvp
from catena.transform.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from catena.transform.custom_vjp import CustomVJPPrimal as CustomVJPPrimal
from catena.transform.custom_vjp import custom_vjp as custom_vjp
from catena.transform.custom_vjp import custom_vjp_call_p as custom_vjp_call_p
from catena.transform.custom_vjp import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from catena.transform.forward_call import forward_call_p as remat_opt_p  # noqa: F401

_absent(globals())
