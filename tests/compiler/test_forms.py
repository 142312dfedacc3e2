"""The tables of node forms and elementwise operations: each row has the functions that it asks for, and no function is
without a row.
"""

import pytest

from catena.compiler.emit import ops
from catena.compiler.graph import builder, forms
from catena.compiler.graph.forms import FORMS, OPS, PARTS
from catena.compiler.kernels import body, complex_math
from catena.compiler.plan.passes import RULES
from catena.core.config import config
from catena.core.errors import CompileError

assert config is not None  # importing it declares the flags that the compiler reads

LEAVES = {"input", "output", "constant", "beside"}  # are there before a step runs
SHARED = {"alias"}  # need no step: they lie where their operand does
GROUPS = {"kernel", "rows"}  # steps that are made of several nodes


def test_what_may_be_computed_where_it_is_read_has_a_reading_rule():
    assert {name for name, form in FORMS.items() if form.inline or name in PARTS} == {"map", *body._READ}


def test_what_becomes_a_step_has_a_planning_rule():
    steps = {n for n, f in FORMS.items() if not (f.inline or f.fold)} - LEAVES - SHARED
    assert steps == set(RULES) - GROUPS


def test_rows_agree_with_themselves():
    for name, form in FORMS.items():
        assert not form.view or form.inline, name
        assert not form.control or not form.pure, name
        assert form.control == hasattr(form.params, "regions"), name
        assert issubclass(form.params, tuple), name


def test_every_elementwise_operation_has_a_row():
    tables = (ops.COMPARE, ops.FLOAT_BINARY, ops.INT_BINARY, ops.FLOAT_INTRINSICS, ops._FLOAT, ops._INTEGER, ops._FORMS)
    written = set().union(*tables, ops._LIBM, ops.vector_math.NAMES, complex_math._REAL, complex_math._COMPLEX)
    assert written - set(OPS) <= {"hypot", "log10"}  # parts of others, and for evaluation
    assert set(OPS) - written == {"complex", "checked"}  # a pair of others, and a statement that tests


def test_a_node_says_what_it_is():
    b = builder.Builder()
    x = b.input((3, 4), "float32")
    assert b.transpose(x, (1, 0)).params == forms.Transpose((1, 0))
    assert b.map("integer_pow", x, y=3).params == forms.Map("integer_pow", 3)
    with pytest.raises(CompileError, match="no elementwise operation is called 'no_such_operation'"):
        b.map("no_such_operation", x)
