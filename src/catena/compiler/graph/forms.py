"""The forms that nodes of the graph have, and the elementwise operations: what the passes ask about each, in one table.

What is done for a form is written where it belongs: `body` reads views, `nests` makes loop nests, `plan` makes steps of
the program, `emit` writes them. A test looks that each form has what its row asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from catena.core.named import NamedTuple

if TYPE_CHECKING:
    from catena.compiler.graph.region import Region

Numbers = tuple[int, ...]


# ---- parameters ----------------------------------------------------------------------------------------------


class Nothing(NamedTuple):
    """No parameters."""


NOTHING = Nothing()


class Input(NamedTuple):
    index: int = 0  # type: ignore[assignment]  # a method of tuples that nobody needs


class Output(NamedTuple):
    """One of the results of a node that has several."""

    index: int  # type: ignore[assignment]


class Constant(NamedTuple):
    array: np.ndarray


class Map(NamedTuple):
    """An elementwise operation of `OPS`. `y` is what else it depends on: the power of integer_pow, whether zeros of
    both signs have one sort_key, the bits of exponent and mantissa that reduce_precision leaves, the site of checked.
    """

    op: str
    y: Any = None


class Iota(NamedTuple):
    dimension: int


class Broadcast(NamedTuple):
    dims: Numbers  # of the result, for each dimension of the operand


class Transpose(NamedTuple):
    perm: Numbers  # dimensions of the operand in the order of the result's


class Slice(NamedTuple):
    start: Numbers
    strides: Numbers


class Reverse(NamedTuple):
    dims: Numbers


class Pad(NamedTuple):
    config: tuple[tuple[int, int, int], ...]  # before, behind and between the elements of each dimension


class Window(NamedTuple):
    strides: Numbers
    padding: tuple[tuple[int, int], ...]
    base_dilation: Numbers
    window_dilation: Numbers


class Indices(NamedTuple):
    """Which elements of the operand a gather reads or a scatter writes: see `indexing`."""

    offset_dims: Numbers  # of the result (the updates): positions in a window
    window_dims: Numbers  # of the operand, one for each of those
    batch_dims: Numbers  # of the result (the updates): positions in `indices`
    batching: tuple[tuple[int, int], ...]  # dimensions of the operand whose index is a position in `indices`: which one
    start_index_map: Numbers  # dimensions of the operand that the numbers in a row of `indices` are for
    slice_sizes: Numbers
    mode: str  # clip, fill or promise


class Scatter(NamedTuple):
    kind: str  # set, or the operation that combines an element with an update, or general
    indices: Indices
    body: Region | None = None  # that combines them, where the kind is general


class Runs(NamedTuple):
    in_order: bool  # whether the rows of a run are added one by one, and not in blocks


class Reduce(NamedTuple):
    kind: str
    axes: Numbers


class Cumulative(NamedTuple):
    kind: str
    axis: int
    reverse: bool
    decays: bool = False  # whether it is a product that may come to subnormal floats: see `small`


class ReduceGeneral(NamedTuple):
    axes: Numbers
    body: Region


class Concatenate(NamedTuple):
    dimension: int


class Dot(NamedTuple):
    numbers: tuple[Numbers, Numbers, Numbers, Numbers]  # contracted left and right, batch left and right
    small: Numbers | None = None  # the operands that may be subnormal: see `small`
    by_parts: bool = False  # whether numbers may be sums of three bfloat16: see `plan.split_products`

    def exchanged(self) -> Dot:
        """Of the operands the other way round."""
        lc, rc, lb, rb = self.numbers
        return Dot((rc, lc, rb, lb), self.small and tuple(1 - k for k in self.small), self.by_parts)


class Convolve(NamedTuple):
    lhs_spec: Numbers  # dimensions of batch and channels, then those of space
    rhs_spec: Numbers  # of output and input channels, then those of space
    strides: Numbers
    dilation: Numbers  # of the kernel
    feature_groups: int
    batch_groups: int
    by_places: bool = False  # whether lanes are places along the last dimension of space: N *S O S, not N *S S O


class Fourier(NamedTuple):
    axis: int
    inverse: bool


class Lapack(NamedTuple):
    routine: str
    plan: tuple  # its arguments: see `runtime.lapack_calls`
    copies: tuple[tuple[int, int], ...]  # pairs of a result and the operand that it starts as a copy of
    batch: int


class HowToSolve(NamedTuple):
    """Which triangular systems: op(A) X = B, or X op(A) = B; of symmetric matrices, which triangle is read."""

    left: bool
    lower: bool
    transposed: bool
    unit_diagonal: bool


class SmallMatrices(NamedTuple):
    routine: str  # cholesky, lu, triangular_solve, many_sides or eigenvalues
    batch: int
    how: HowToSolve = HowToSolve(True, True, False, False)  # of no matter to others


class Host(NamedTuple):
    callback: Callable
    ordered: bool


class NewStack(NamedTuple):
    item_bytes: int


class While(NamedTuple):
    """The operands are the constants of the condition, those of the body, and the carries."""

    cond: Region
    body: Region
    cond_consts: int
    body_consts: int

    @property
    def regions(self) -> tuple[Region, ...]:
        return self.cond, self.body

    @property
    def consts(self) -> int:
        return self.cond_consts + self.body_consts


class Scan(NamedTuple):
    """The operands are constants, carries, and arrays of which each iteration has an item."""

    body: Region
    consts: int
    carries: int
    length: int
    reverse: bool

    @property
    def regions(self) -> tuple[Region, ...]:
        return (self.body,)


class Branch(NamedTuple):
    """The operands are the number of the branch, and what all branches take."""

    branches: tuple[Region, ...]

    @property
    def regions(self) -> tuple[Region, ...]:
        return self.branches


# ---- forms ---------------------------------------------------------------------------------------------------


class Form(NamedTuple):
    """What a node of this form is."""

    params: type = Nothing
    view: bool = False  # an index map into the first operand
    inline: bool = False  # who reads it may compute it where it is read; other values are stored
    alias: bool = False  # it is the operand's memory, under another type
    pure: bool = False  # it can be computed elsewhere, and computed again
    linear: bool = False  # sums go through it
    fold: bool = False  # kernels reduce axes by it
    rereads: bool = False  # it reads elements of its operands several times, or by an index map that needs memory
    in_memory: Literal["none", "all", "first", "bare"] = "none"  # operands that must be; bare: what they transpose
    several: bool = False  # it has several results, or one that is more than a value
    control: bool = False  # it runs regions: `params.regions`
    title: str = ""  # what reports call it, if not by its name


VIEW = Form(view=True, inline=True, pure=True)
STORED = Form(pure=True)
STEP = Form(several=True, in_memory="all")
WHOLE = STEP._replace(pure=True)
LOOP = STEP._replace(control=True)

FORMS: dict[str, Form] = {
    "input": Form(Input),
    "output": Form(Output),
    "beside": Form(),  # not of the graph: memory that the planner adds, for nests that pack or join
    "constant": Form(Constant),
    "unset": Form(),  # memory that holds anything, of which is read what is written first
    "map": Form(Map, inline=True, pure=True),
    "iota": Form(Iota, inline=True, pure=True, title="iota"),
    "broadcast": VIEW._replace(params=Broadcast, linear=True),
    "transpose": VIEW._replace(params=Transpose, linear=True),
    "reshape": VIEW._replace(linear=True),
    "slice": VIEW._replace(params=Slice, linear=True),
    "reverse": VIEW._replace(params=Reverse, linear=True),
    "pad": VIEW._replace(params=Pad, rereads=True),
    "gather": VIEW._replace(params=Indices, rereads=True, title="gather"),
    "dynamic_slice": VIEW._replace(title="dynamic_slice"),
    "window": VIEW._replace(params=Window, rereads=True, title="window"),
    "alias": Form(alias=True, pure=True, in_memory="all"),
    "reduce": STORED._replace(params=Reduce, fold=True),
    "argreduce": STORED._replace(params=Reduce, fold=True),
    "cumulative": STORED._replace(params=Cumulative, title="cumulative operation"),
    "concatenate": STORED._replace(params=Concatenate, title="concatenation"),
    "dynamic_update_slice": STORED._replace(
        in_memory="first", title="update of a part, in place where the old array is not needed any more"
    ),
    "scatter": STORED._replace(params=Scatter, in_memory="first", rereads=True, title="scatter"),
    "runs": STORED._replace(params=Runs, title="sums of runs of rows"),
    "dot": STORED._replace(params=Dot, in_memory="bare", rereads=True),
    "convolve": STORED._replace(params=Convolve, in_memory="bare", rereads=True),
    "reduce_general": Form(ReduceGeneral, several=True, title="reduction with a function of its own"),
    "sort_keys": WHOLE._replace(title="sort"),
    "argsort": WHOLE._replace(title="sort, with positions"),
    "select": WHOLE._replace(title="selection, with positions"),
    "ranked": WHOLE._replace(title="selection by rank"),
    "fourier": WHOLE._replace(params=Fourier),
    "lapack": WHOLE._replace(params=Lapack),
    "small_matrices": WHOLE._replace(params=SmallMatrices),
    "host": STEP._replace(params=Host, title="call of a Python function"),
    "stack_new": STEP._replace(params=NewStack),
    "stack_length": STEP,
    "stack_write": STEP,
    "stack_read": STEP,
    "while": LOOP._replace(params=While),
    "scan": LOOP._replace(params=Scan),
    "branch": LOOP._replace(params=Branch),
}
LOOPS = frozenset(["scan", "while"])
PARTS = frozenset(["concatenate"])  # who reads these may read the parts; they are stored where that would cost more
REDUCTIONS = frozenset("sum prod max min and or xor".split())  # kinds of reduce


# ---- elementwise operations ----------------------------------------------------------------------------------


class Op(NamedTuple):
    """What an elementwise operation is."""

    cost: int = 1  # of an element, in tenths of a nanosecond, roughly
    comparison: bool = False  # its result is a boolean
    exact: bool = False  # of floats of 16 bits and fewer it gives floats of as many bits, without rounding


COSTLY_FROM = ELEMENTARY = 8  # what takes longer than a trip through memory is never computed again
LONG = 32  # logarithms, exponentials and long polynomials
ITERATED = 256  # series, fractions and quadratures


def _rows(names: str, **facts: Any) -> dict[str, Op]:
    return dict.fromkeys(names.split(), Op(**facts))


OPS: dict[str, Op] = {
    **_rows("add sub mul square reciprocal fma convert bitcast reduce_precision nextafter complex conj real imag"),
    **_rows(
        "not and or xor shift_left shift_right_logical shift_right_arithmetic population_count clz mulhi floor_div"
    ),
    **_rows("sort_key sort_unkey"),
    **_rows("eq ne lt le gt ge lt_total le_total eq_total is_finite", comparison=True),
    **_rows("checked", exact=True),
    **_rows("select neg abs max min sign clamp floor ceil trunc round_half_even round_half_away", exact=True),
    **_rows("inverse div_by_inverse", cost=ELEMENTARY),  # of rows: see `inverted_rows`
    **_rows("div rem pow integer_pow sqrt rsqrt cbrt exp exp2 expm1 log log1p log2 logistic", cost=ELEMENTARY),
    **_rows("sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh entr logit", cost=ELEMENTARY),
    **_rows("erf erfc erf_inv error_density normal_density bessel_i0e bessel_i1e ndtr", cost=ELEMENTARY),
    **_rows(
        "lgamma digamma trigamma gamma beta log_beta log_gamma_density binomial poch digamma_difference", cost=LONG
    ),
    **_rows("log_quotient modulus", cost=ELEMENTARY),
    **_rows("faddeeva_real faddeeva_imag faddeeva_slope_real faddeeva_slope_imag", cost=LONG),
    **_rows("log_ndtr ndtri erfcx dawsn exp1 expi fresnel_s fresnel_c", cost=LONG),
    **_rows("sine_integral cosine_integral spence bessel_i0 bessel_i1 bessel_difference", cost=LONG),
    **_rows("erfcx_slope dawsn_slope expi_slope fresnel_s_slope fresnel_c_slope", cost=LONG),
    **_rows("igamma igammac igamma_grad_a random_gamma_grad betainc betaincc expn owens_t", cost=ITERATED),
    **_rows("log_igamma log_igammac log_igamma_grad_a log_igammac_grad_a log_betainc log_betaincc", cost=ITERATED),
    **_rows("zeta zeta_by_x polygamma riemann_zeta riemann_zeta_slope", cost=ITERATED),
    **_rows("hyp1f1 hyp1f1_by_a hyp1f1_by_b hyp1f1_by_x", cost=ITERATED),
    **_rows("hyp2f1 hyp2f1_by_a hyp2f1_by_b hyp2f1_by_c hyp2f1_by_x", cost=ITERATED),
}
COSTLY = frozenset(name for name, op in OPS.items() if op.cost >= COSTLY_FROM)
