"""Primitives that the language itself applies: to zeros and sums of tangents, and to axes that transformations map.

They are declared here, below the transformations that use them; each gets its rules where its family stands in ``lax``,
by ``define``.
"""

from catena.core.primitive import Primitive, StatePrimitive

add_any_p = Primitive("add_any")
addupdate_p = StatePrimitive("addupdate")
broadcast_in_dim_p = Primitive("broadcast_in_dim")
convert_element_type_p = Primitive("convert_element_type")
get_p = Primitive("get")
new_ref_p = StatePrimitive("new_ref")
new_ref_p.ref_primitive = new_ref_p.ref_allocating = True
reduce_sum_p = Primitive("reduce_sum")
reshape_p = Primitive("reshape")
reshard_p = Primitive("reshard")
slice_p = Primitive("slice")
squeeze_p = Primitive("squeeze")
stack_add_p = Primitive("stack_add", home="catena.lax.control_flow.stack")
stack_empty_p = Primitive("stack_empty", home="catena.lax.control_flow.stack")
stop_gradient_p = Primitive("stop_gradient", home="catena.lax.identity")
swap_p = StatePrimitive("swap")
transpose_p = Primitive("transpose")
