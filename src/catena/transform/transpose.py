"""Transposition: a linear program read backwards, cotangents flowing from results to arguments."""

from catena.core import dtypes
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.primitive import RuleTable
from catena.core.source import transposed
from catena.core.staging import trace_to_jaxpr
from catena.core.structural import convert_element_type_p, new_ref_p
from catena.core.zeros import UndefinedPrimal, Zero, add_cotangents, as_typed, get_aval, zeros
from catena.transform.discharge import pure
from catena.transform.linearize import Linearized, TapeTracer, linearize_linear
from catena.transform.memo import memoised

transpose_rules = RuleTable("transpose", "Transpose rule (for reverse-mode differentiation) for '{}' not implemented")

# For those that read a part of their first operand: from ``(before, cotangent, *operands, **params)``, where ``before``
# is the cotangent of that operand so far, to the sum of it and what ``transpose`` gives, zeros but for the part. In a
# loop this is the difference between the size of the part and the size of the whole at every step.
onto_rules = RuleTable("transpose_onto", optional=True)
cotangent_rules = RuleTable("cotangent", optional=True)  # of operations on references: they are done, not asked
# Of those that run a user's backward rule: transposition where each cotangent is a `Zero` that a rule gave. Such zeros
# go up through other operations as they are, and reach these, as what a user's rule returns need not depend on them.
zeros_rules = RuleTable("transpose_zeros", optional=True)


def backward_pass(linear: Linearized, cotangents, *, named: bool = True, references: dict | None = None) -> list:
    """Pull cotangents of the outputs back to the inputs.

    Arguments:
      linear: the linear program.
      cotangents: one for each output; symbolic zeros are allowed.
      named: whether the name stacks of what it does say that it is a transposition.
      references: by the number of an input that is a reference, the reference to its cotangent.
    Returns:
      One cotangent for each input, symbolic where it is zero. The tape is only read, so this may be called
      again.
    """
    tape = linear.tape
    cts: list = [None] * tape.count
    for out, ct in zip(linear.outputs, cotangents, strict=True):
        if type(out) is TapeTracer and out._trace is tape:
            accumulate(cts, out, ct)
    for i, reference in (references or {}).items():
        if tape.is_unknown(linear.inputs[i]):
            cts[linear.inputs[i].index] = reference
    inputs = sum([type(x) is TapeTracer and x._trace is tape for x in linear.inputs])  # they have the first numbers
    before = context.source
    around = context.name_stack.transform("transpose") if named else context.name_stack
    settled, context.settling = context.settling, True
    try:
        for primitive, args, outs, params, source in reversed(linear.entries):
            if primitive.cotangent is not None:
                context.source = before if source is None else transposed(source, tape.outer, around)
                primitive.cotangent(Cotangents(tape, cts), args, outs, params)
                continue
            ct = taken(cts, outs) if primitive.multiple_results else cts[outs[0].index]
            if ct is None:
                continue
            if not primitive.multiple_results:
                cts[outs[0].index] = None
            if is_zero(ct) and primitive.transpose_zeros is None:
                pass_zero(tape, cts, args)
                continue
            context.source = before if source is None else transposed(source, tape.outer, around)
            transpose_entry(tape, cts, primitive, args, params, ct, inputs)
    finally:
        context.source, context.settling = before, settled
    return [cotangent_of(tape, cts, x) for x in linear.inputs]


class Cotangents:
    """The cotangents so far, as the rules of operations on references see them.

    Where the forward pass writes a tangent to a reference, the backward pass finds its cotangent in another, which
    gathers what the reads give; it is made when it is first needed.
    """

    __slots__ = ("tape", "cts")

    def __init__(self, tape, cts: list):
        self.tape, self.cts = tape, cts

    def has(self, x) -> bool:
        """Whether there is a cotangent of the unknown ``x``."""
        return present(self.cts[x.index]) is not None

    def take(self, x):
        """The cotangent of the unknown ``x``, None where it is zero; it is cleared away."""
        ct, self.cts[x.index] = self.cts[x.index], None
        return present(ct)

    def reference(self, x):
        """The reference to the cotangent of what ``x`` refers to: an unknown, or else there is none."""
        if not self.tape.is_unknown(x):
            return None
        if present(self.cts[x.index]) is None:
            self.cts[x.index] = new_ref_p.bind(zeros(x.aval.inner_aval), memory_space=None, kind=None)
        return self.cts[x.index]

    def add(self, x, ct):
        """Add to the cotangent of an operand, if it is unknown."""
        if self.tape.is_unknown(x):
            accumulate(self.cts, x, ct)


def taken(cts, outs) -> list | None:
    """The cotangents of an entry's results, cleared away; None where there are none."""
    found = [cts[x.index] for x in outs]
    if all(ct is None for ct in found):
        return None
    for x in outs:
        cts[x.index] = None
    return [Zero(x.aval) if ct is None else ct for x, ct in zip(outs, found, strict=True)]


def is_zero(ct) -> bool:
    """Whether a cotangent, or each of a list of them, is symbolically zero."""
    return all(type(x) is Zero for x in ct) if type(ct) is list else type(ct) is Zero


def present(ct):
    """A cotangent, or None where it is zero."""
    return None if type(ct) is Zero else ct


def pass_zero(tape, cts, args):
    """Give a zero, as the cotangent of a result, to the unknown operands that have no cotangent yet."""
    for x in args:
        if tape.is_unknown(x) and cts[x.index] is None:
            cts[x.index] = Zero(x.aval)


def transpose_entry(tape, cts, primitive, args, params, ct, inputs: int):
    """Apply one transpose rule and add what it gives to the cotangents of the arguments.

    Rules of users may give another dtype than the argument has (gradients in float32 of parameters in bfloat16). An
    input of the whole program keeps it; on the way there, where rules count on it, the cotangent has its own type.
    """
    operands = [UndefinedPrimal(x.aval) if type(x) is TapeTracer and x._trace is tape else x for x in args]
    if primitive.transpose_onto is not None and type(operands[0]) is UndefinedPrimal:
        before = present(cts[args[0].index])
        if before is not None and get_aval(before).dtype == get_aval(ct).dtype:
            cts[args[0].index] = primitive.transpose_onto(before, ct, *operands, **params)
            return
    rule = primitive.transpose or transpose_rules.of(primitive)
    for x, operand, ct_in in zip(args, operands, rule(ct, *operands, **params), strict=True):
        if ct_in is not None and type(operand) is UndefinedPrimal:
            if primitive.takes_arrays and x.index >= inputs:
                ct_in = of_dtype(ct_in, x.aval)
            accumulate(cts, x, ct_in)


def accumulate(cts, tracer, ct):
    before = present(cts[tracer.index])
    if type(ct) is Zero:
        cts[tracer.index] = ct if before is None else before
        return
    if context.laid_out:
        ct = as_typed(ct, tracer.aval.to_ct_aval())
    if before is not None:
        ct = add_cotangents(of_dtype(before, tracer.aval), of_dtype(ct, tracer.aval))
    cts[tracer.index] = ct


def of_dtype(ct, aval):
    """``ct``, converted where it is not of the dtype of ``aval``."""
    given = None if type(ct) is Zero else get_aval(ct)
    if given is None or given.dtype == aval.dtype:
        return ct
    if dtypes.is_complex(given.dtype) and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"the backward rule of a custom_vjp function gave a cotangent of type {given.str_short()} to a value of "
            f"type {aval.str_short()}: its imaginary part would be lost"
        )
    return convert_element_type_p.bind(ct, new_dtype=aval.dtype, weak_type=aval.weak_type)


def cotangent_of(tape, cts, x):
    if type(x) is not TapeTracer or x._trace is not tape:
        return Zero(x.aval)
    ct = cts[x.index]
    return Zero(x.aval) if ct is None else ct


@memoised
def transpose_jaxpr(closed: ClosedJaxpr, linear: tuple, zero_cts: tuple, any_dtype: bool = False):
    """The transpose of a jaxpr that is linear in some arguments.

    Arguments:
      closed: the jaxpr.
      linear: for each argument, whether it is linear in it.
      zero_cts: for each result, whether its cotangent is symbolically zero.
      any_dtype: whether cotangents may have the dtypes that users' rules give them.
    Returns:
      A closed jaxpr from the other arguments followed by the nonzero cotangents to the cotangents of the
      linear arguments that are not symbolically zero; and a tuple of bools: which these are.
    """
    nonzero_in: list[bool] = []
    closed = pure(closed)
    residual_avals = [a for a, lin in zip(closed.in_avals, linear, strict=True) if not lin]
    ct_avals = [a.to_ct_aval() for a, z in zip(closed.out_avals, zero_cts, strict=True) if not z]

    def fun(*args):
        residuals, given = iter(args[: len(residual_avals)]), iter(args[len(residual_avals) :])
        values = [None if lin else next(residuals) for lin in linear]
        cts = [Zero(a) if z else next(given) for a, z in zip(closed.out_avals, zero_cts, strict=True)]
        run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        _, program = linearize_linear(run, closed.in_avals, values)
        in_cts = backward_pass(program, cts, named=False)
        if not any_dtype:
            in_cts = [of_dtype(ct, x.aval) for ct, x in zip(in_cts, program.inputs, strict=True)]
        nonzero_in[:] = [type(ct) is not Zero for ct in in_cts]
        return [ct for ct in in_cts if type(ct) is not Zero]

    jaxpr, consts = trace_to_jaxpr(fun, [*residual_avals, *ct_avals], closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(nonzero_in)
