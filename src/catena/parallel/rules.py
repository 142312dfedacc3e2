"""The table of sharding rules: for each primitive the factors that it walks over, and what becomes of their parts.

A rule is ``rule(avals, outs, params) -> list of factors`` (``core/factors.py``); an axis that no factor speaks of must
not be split. Elementwise primitives have their rule from their skeleton (``lax/elementwise.py``). ``AS_CALLED`` stands
where a primitive calls a jaxpr or a function, whose types say it all; a ``NoRule`` says why there is no rule.
"""

from catena.core.factors import AS_CALLED, Factor, elementwise, text
from catena.core.primitive import NoRule, registry
from catena.core.terms import Application, Terms, has_terms, terms_of
from catena.lax.resharding import reshard_p
from catena.parallel.reshaping import reshape

# ------------------------------------------------------------------------------------------------------------
# One operand, whose axes become those of the result


def axes_to(pairs):
    """Each axis of the first operand becomes one of the result, as ``pairs(x, out, **params)`` says by triples
    ``(axis, axis of the result, kind)``. Further operands are in every part.
    """

    def rule(avals, outs, params):
        rest = (None,) * (len(avals) - 1)
        return [
            Factor(avals[0].shape[a], (a, *rest), (b,) * len(outs), kind)
            for a, b, kind in pairs(avals[0], outs[0], **params)
        ]

    return rule


def same(x, out, **params):
    """All axes stay."""
    return [(i, i, "pass") for i in range(x.ndim)]


def besides(kind: str, *own):
    """All axes stay; for those that the parameters ``own`` name, parts have this kind."""

    def pairs(x, out, **params):
        named = {a % x.ndim for name in own for a in as_tuple(params[name])} if x.ndim else set()
        return [(i, i, kind if i in named else "pass") for i in range(min(x.ndim, out.ndim))]

    return pairs


def as_tuple(axes) -> tuple:
    """One axis, or several."""
    return tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)


def where_sizes_differ(kind: str):
    """All axes stay; where their length changes, parts have this kind."""
    return lambda x, out, **params: [(i, i, "pass" if x.shape[i] == out.shape[i] else kind) for i in range(x.ndim)]


def transpose(x, out, *, permutation):
    return [(a, b, "pass") for b, a in enumerate(permutation)]


def broadcast_in_dim(avals, outs, params) -> list[Factor]:
    """Axes that stay, and those along which all elements are the same."""
    (x, *_), shape = avals, params["shape"]
    stay = {b: a for a, b in enumerate(params["broadcast_dimensions"]) if x.shape[a] == shape[b]}
    rest = (None,) * (len(avals) - 1)
    return [Factor(n, (stay.get(b), *rest), (b,)) for b, n in enumerate(shape)]


def squeeze(x, out, *, dimensions):
    kept = [a for a in range(x.ndim) if a not in {d % x.ndim for d in dimensions}]
    return [(a, b, "pass") for b, a in enumerate(kept)]


def gathered(x, out, *, all_gather_dimension, **params):
    """The parts stand beside one another along the axis, or along a new one there."""
    new = out.ndim > x.ndim
    return [
        (a, a + (new and a >= all_gather_dimension), "pass" if new or a != all_gather_dimension else "replicate")
        for a in range(x.ndim)
    ]


def scattered(x, out, *, scatter_dimension, **params):
    """The axis is cut, or gone where each part of it is one row."""
    gone = out.ndim < x.ndim
    kept = [a for a in range(x.ndim) if a != scatter_dimension]
    return [(a, a - (gone and a > scatter_dimension), "pass") for a in kept]


def slice_(x, out, *, start_indices, limit_indices, strides):
    whole = [
        (s, e, t) == (0, n, 1)
        for s, e, t, n in zip(start_indices, limit_indices, strides or (1,) * x.ndim, x.shape, strict=True)
    ]
    return [(i, i, "pass" if whole[i] else "window") for i in range(x.ndim)]


def pad(x, out, *, padding_config):
    return [(i, i, "pass" if tuple(c) == (0, 0, 0) else "window") for i, c in enumerate(padding_config)]


def tile(x, out, *, reps):
    return [(i, i, "pass" if reps[i] == 1 else "replicate") for i in range(x.ndim)]


def leading(x, out, **params):
    """The axes that operand and result have in common; further ones of either stand behind them."""
    return [(i, i, "pass") for i in range(min(x.ndim, out.ndim))]


def fft(x, out, *, fft_type, fft_lengths):
    first = x.ndim - len(fft_lengths)
    return [(i, i, "pass" if i < first else "window") for i in range(x.ndim)]


# ------------------------------------------------------------------------------------------------------------
# Reductions


def reduction(kind: str, axes: str = "axes"):
    """The axes that the parameter ``axes`` names are reduced, those of all operands together; the others stay."""

    def rule(avals, outs, params):
        reduced = {a % avals[0].ndim for a in params[axes]}
        kept = [i for i in range(avals[0].ndim) if i not in reduced]
        return [
            Factor(
                size,
                tuple(i if a.ndim else None for a in avals),
                ((None if i in reduced else kept.index(i)),) * len(outs),
                kind if i in reduced else "pass",
            )
            for i, size in enumerate(avals[0].shape)
        ]

    return rule


# ------------------------------------------------------------------------------------------------------------
# Several operands


def together(avals, outs, params) -> list[Factor]:
    """Operands one by one: the axes of each are those of its own result."""
    return [
        Factor(
            size,
            tuple(axis if j == i else None for j in range(len(avals))),
            tuple(axis if j == i else None for j in range(len(outs))),
        )
        for i, aval in enumerate(avals)
        for axis, size in enumerate(aval.shape)
    ]


def alike(kind: str, own: str):
    """Operands and results of one shape, whose axes run together; the parts of the axis ``own`` have this kind."""

    def rule(avals, outs, params):
        axis = params[own] % avals[0].ndim
        return [
            Factor(size, (i,) * len(avals), (i,) * len(outs), kind if i == axis else "pass")
            for i, size in enumerate(avals[0].shape)
        ]

    return rule


def windows(avals, outs, params) -> list[Factor]:
    """Windows that slide: where one covers a single element, and the next the next, nothing happens."""
    names = "window_dimensions", "window_strides", "padding", "base_dilation"
    still = [(w, s, tuple(p), b) == (1, 1, (0, 0), 1) for w, s, p, b in zip(*[params[n] for n in names], strict=True)]
    return [
        Factor(n, tuple(i if a.ndim else None for a in avals), (i,) * len(outs), "pass" if still[i] else "window")
        for i, n in enumerate(avals[0].shape)
    ]


def concatenate(avals, outs, params) -> list[Factor]:
    return [
        Factor(size, (i,) * len(avals), (i,), "window" if i == params["dimension"] else "pass")
        for i, size in enumerate(outs[0].shape)
    ]


def stack(avals, outs, params) -> list[Factor]:
    axis = params["axis"]
    return [Factor(size, (i,) * len(avals), (i + (i >= axis),), "pass") for i, size in enumerate(avals[0].shape)]


def unstack(avals, outs, params) -> list[Factor]:
    axis = params["axis"]
    kept = [i for i in range(avals[0].ndim) if i != axis]
    return [Factor(avals[0].shape[i], (i,), (j,) * len(outs)) for j, i in enumerate(kept)]


def dynamic_update_slice(avals, outs, params) -> list[Factor]:
    operand, update, *starts = avals
    rest = (None,) * len(starts)
    found = []
    for i, size in enumerate(operand.shape):
        if update.shape[i] == size:
            found.append(Factor(size, (i, i, *rest), (i,)))
        else:
            found.append(Factor(size, (i, None, *rest), (i,), "window"))
            found.append(Factor(update.shape[i], (None, i, *rest), (None,), "whole"))
    return found


def dot_general(avals, outs, params) -> list[Factor]:
    (lhs, rhs), ((summed_l, summed_r), (batch_l, batch_r)) = avals[:2], params["dimension_numbers"]
    rest, out = (None,) * (len(avals) - 2), iter(range(outs[0].ndim))
    found = [Factor(lhs.shape[a], (a, b, *rest), (next(out),)) for a, b in zip(batch_l, batch_r, strict=True)]
    found += [
        Factor(n, (a, None, *rest), (next(out),))
        for a, n in enumerate(lhs.shape)
        if a not in summed_l and a not in batch_l
    ]
    found += [
        Factor(n, (None, b, *rest), (next(out),))
        for b, n in enumerate(rhs.shape)
        if b not in summed_r and b not in batch_r
    ]
    return found + [
        Factor(lhs.shape[a], (a, b, *rest), (None,), "sum") for a, b in zip(summed_l, summed_r, strict=True)
    ]


def ragged_dot_general(avals, outs, params) -> list[Factor]:
    """As ``dot_general`` with the axis of groups left out; what is ragged, and the groups, are needed whole."""
    numbers = params["ragged_dot_dimension_numbers"]
    ragged, groups = numbers.lhs_ragged_dimensions[0], set(numbers.rhs_group_dimensions)
    (summed_l, summed_r), (batch_l, batch_r) = numbers.dot_dimension_numbers
    if ragged in summed_l or ragged in batch_l or len(avals) > 3:
        return []
    (lhs, rhs), out = avals[:2], iter(range(outs[0].ndim))
    found = [Factor(lhs.shape[a], (a, b, None), (next(out),)) for a, b in zip(batch_l, batch_r, strict=True)]
    for a, n in enumerate(lhs.shape):
        if a not in summed_l and a not in batch_l:
            found.append(Factor(n, (a, None, None), (next(out),), "replicate" if a == ragged else "pass"))
    for b, n in enumerate(rhs.shape):
        if b not in summed_r and b not in batch_r and b not in groups:
            found.append(Factor(n, (None, b, None), (next(out),)))
    return found + [Factor(lhs.shape[a], (a, b, None), (None,), "sum") for a, b in zip(summed_l, summed_r, strict=True)]


def convolution(avals, outs, params) -> list[Factor]:
    numbers = params["dimension_numbers"]
    (n, c, *space), (o, i, *_), (out_n, out_c, *out_space) = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    lhs, rhs = avals
    found = [Factor(lhs.shape[a], (a, None), (b,), "window") for a, b in zip(space, out_space, strict=True)]
    if params["batch_group_count"] == 1:
        found.append(Factor(lhs.shape[n], (n, None), (out_n,)))
        if params["feature_group_count"] == 1:
            found.append(Factor(rhs.shape[o], (None, o), (out_c,)))
            found.append(Factor(lhs.shape[c], (c, i), (None,), "sum"))
    return found


def gather(avals, outs, params) -> list[Factor]:
    (operand, indices), (out,), numbers = avals, outs, params["dimension_numbers"]
    batch_axes = [a for a in range(out.ndim) if a not in numbers.offset_dims]
    found = []
    for axis in range(indices.ndim - 1):
        pair = [
            a
            for a, b in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
            if b == axis
        ]
        found.append(Factor(indices.shape[axis], (pair[0] if pair else None, axis), (batch_axes[axis],)))
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [a for a in range(operand.ndim) if a not in gone]
    for a, b in zip(window, numbers.offset_dims, strict=True):
        if params["slice_sizes"][a] == operand.shape[a] and a not in numbers.start_index_map:
            found.append(Factor(operand.shape[a], (a, None), (b,)))
    return found


def scatter(avals, outs, params) -> list[Factor]:
    (operand, indices, updates), numbers = avals, params["dimension_numbers"]
    batch_axes = [a for a in range(updates.ndim) if a not in numbers.update_window_dims]
    pairs = dict(zip(numbers.scatter_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    found = []
    for axis in range(indices.ndim - 1):
        size, update = indices.shape[axis], batch_axes[axis]
        if axis in pairs:
            found.append(Factor(size, (pairs[axis], axis, update), (pairs[axis],)))
        else:
            found.append(Factor(size, (None, axis, update), (None,), "whole"))
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = [a for a in range(operand.ndim) if a not in gone]
    for a, b in zip(window, numbers.update_window_dims, strict=True):
        if updates.shape[b] == operand.shape[a] and a not in numbers.scatter_dims_to_operand_dims:
            found.append(Factor(operand.shape[a], (a, None, b), (a,)))
    return found


def stacks_of(core: int):
    """Stacks of vectors or matrices, ``core`` axes each in the first operand: the axes before those run together."""

    def rule(avals, outs, params):
        return [
            Factor(avals[0].shape[i], tuple(i if a.ndim else None for a in avals), (i,) * len(outs))
            for i in range(avals[0].ndim - core)
        ]

    return rule


def made(avals, outs, params) -> list[Factor]:
    """What is made from nothing: each part must know where it begins."""
    return [Factor(n, (None,) * len(avals), (i,), "window") for i, n in enumerate(outs[0].shape)]


def drawn(avals, outs, params) -> list[Factor]:
    """Numbers drawn from each of the keys: parts of one draw must know where they begin, the keys are apart."""
    keys = avals[0]
    return [
        Factor(n, (i if i < keys.ndim else None,), (i,), "pass" if i < keys.ndim else "window")
        for i, n in enumerate(outs[0].shape)
    ]


def random_gamma(avals, outs, params) -> list[Factor]:
    keys, _ = avals
    return [
        Factor(n, (i if i < keys.ndim else None, i), (i,), "pass" if i < keys.ndim else "window")
        for i, n in enumerate(outs[0].shape)
    ]


# ------------------------------------------------------------------------------------------------------------
# Sums that are still to be taken over axes of the mesh (unreduced), and those that were (reduced)


def reduced_alike(application: Application, carriers: list) -> frozenset:
    """The axes along which the operands that become the results are reduced: all of them, but for numbers, alike."""
    reduced = frozenset().union(*(terms_of(a).reduced for a in carriers))
    if any(terms_of(a).reduced != reduced for a in carriers if a.ndim or has_terms(a)):
        application.refuse(
            f"all operands must be reduced along the same axes, and one is along {text(sorted(reduced))}; reshard the "
            "others (catena.reshard)"
        )
    return reduced


def of_sums(first: int = 0, last: int | None = None):
    """What is linear in the operands from ``first`` on to ``last``: all of them, or none, are unreduced."""

    def rule(application: Application) -> Terms:
        carriers = list(application.avals[first:last])
        unreduced = frozenset().union(*(terms_of(a).unreduced for a in carriers))
        if any(terms_of(a).unreduced != unreduced for a in carriers):
            application.refuse(
                f"one operand is unreduced along {text(sorted(unreduced))} and another is not, so that it would be "
                "added once for each device; take the sum first (catena.reshard)"
            )
        return Terms(unreduced, reduced_alike(application, carriers) - unreduced)

    return rule


def of_numbers(first: int = 0, last: int | None = None):
    """What is not linear: no operand may be unreduced. Those from ``first`` on to ``last`` become the results."""

    def rule(application: Application) -> Terms:
        unreduced = frozenset().union(*(terms_of(a).unreduced for a in application.avals))
        if unreduced:
            application.refuse_kind("unreduced")
        return Terms(unreduced, reduced_alike(application, list(application.avals[first:last])) - unreduced)

    return rule


def of_neither(application: Application) -> Terms:
    """What is known of values without terms only."""
    application.refuse_kind("unreduced or reduced")
    return of_numbers()(application)


def of_product(application: Application) -> Terms:
    """Linear in either operand: where one is unreduced, the other must be reduced."""
    found = [terms_of(a) for a in application.avals]
    unreduced = found[0].unreduced | found[1].unreduced
    if not unreduced:
        return of_numbers()(application)
    if (found[0].unreduced and found[1].unreduced) or found[0].reduced | found[1].reduced != unreduced:
        application.refuse(
            f"where one operand is unreduced along {text(sorted(unreduced))}, the other must be reduced along the same "
            "axes: reshard it, or take the sum first (catena.reshard)"
        )
    return Terms(unreduced, (found[0].reduced | found[1].reduced) - unreduced)


def of_contraction(application: Application) -> Terms:
    """Products of matrices take no terms, and say nothing of what was reduced."""
    unreduced = frozenset().union(*(terms_of(a).unreduced for a in application.avals))
    if unreduced:
        application.refuse("an operand is unreduced; take the sum first (catena.reshard)")
    return Terms(unreduced, frozenset())


def of_operand(application: Application) -> Terms:
    """Collectives, along other axes."""
    return terms_of(application.avals[0])


def of_pvary(application: Application) -> Terms:
    """Of what is the same on all devices, and not said to be more."""
    found = terms_of(application.avals[0])
    for word, names in found._asdict().items():
        if names.intersection(application.params["axes"]):
            raise ValueError(
                f"a value of type {application.avals[0].str_short()} is {word} along {text(sorted(names))}, so that it "
                "cannot be made varying or sent along it; jax.lax.psum and jax.lax.pcast say what is meant"
            )
    return found


def of_each(application: Application) -> list[Terms]:
    """Each operand is a result."""
    return [terms_of(a) for a in application.avals]


TERMS = {
    **dict.fromkeys(
        "add add_any concatenate convert_element_type copy name reduce_precision reduce_sum reshape slice split "
        "sharding_constraint squeeze stack stop_gradient tile transpose unstack".split(),
        of_sums(),
    ),
    **dict.fromkeys("broadcast_in_dim gather pad".split(), of_sums(0, 1)),
    "dynamic_update_slice": of_sums(0, 2),
    "select_n": of_sums(1),
    "dynamic_slice": of_numbers(0, 1),
    "mul": of_product,
    "dot_general": of_contraction,
    "optimization_barrier": of_each,
    "pvary": of_pvary,
    **dict.fromkeys(
        "all_gather all_gather_invariant all_to_all ppermute psum_invariant reduce_scatter".split(), of_operand
    ),
    **dict.fromkeys(
        "bitcast_convert_type clamp integer_pow reduce_window reduce_window_max reduce_window_min reduce_window_sum "
        "rev".split(),
        of_neither,
    ),
}


# ------------------------------------------------------------------------------------------------------------
# The table

COLLECTIVE = NoRule("it is for values of single devices, inside of shard_map")
ON_STACKS = NoRule("stacks are what loops remember; their items are whole")
SOLVED = NoRule("sparse systems are solved whole")
COUPLED = NoRule("its parts depend on one another")

RULES = {
    **dict.fromkeys(
        "add_any clamp convert_element_type copy multiply_add name random_clone random_fold_in random_seed "
        "select_n sharding_constraint stop_gradient".split(),
        elementwise,
    ),
    **dict.fromkeys("device_put optimization_barrier psum psum_invariant pmax pmin ppermute pvary".split(), together),
    **dict.fromkeys(["all_gather", "all_gather_invariant"], axes_to(gathered)),
    "reduce_scatter": axes_to(scattered),
    "all_to_all": axes_to(besides("replicate", "split_axis", "concat_axis")),
    # structure
    "transpose": axes_to(transpose),
    "broadcast_in_dim": broadcast_in_dim,
    "squeeze": axes_to(squeeze),
    "reshape": reshape,
    "rev": axes_to(besides("window", "dimensions")),
    "slice": axes_to(slice_),
    "dynamic_slice": axes_to(where_sizes_differ("window")),
    "dynamic_update_slice": dynamic_update_slice,
    "pad": axes_to(pad),
    "tile": axes_to(tile),
    "split": axes_to(besides("window", "axis")),
    "concatenate": concatenate,
    "stack": stack,
    "unstack": unstack,
    "bitcast_convert_type": axes_to(leading),
    "iota": made,
    "gather": gather,
    **dict.fromkeys([f"scatter{kind}" for kind in ("", "-add", "-apply", "-max", "-min", "-mul", "-sub")], scatter),
    # reductions and what goes along an axis
    "reduce_sum": reduction("sum"),
    "reduce_prod": reduction("prod"),
    "reduce_max": reduction("max"),
    "reduce_min": reduction("min"),
    "reduce_and": reduction("and"),
    "reduce_or": reduction("or"),
    "reduce_xor": reduction("xor"),
    "reduce": reduction("fold", "dimensions"),
    "argmax": reduction("whole"),
    "argmin": reduction("whole"),
    **dict.fromkeys("cumsum cumprod cummax cummin cumlogsumexp".split(), axes_to(besides("replicate", "axis"))),
    "sort": alike("replicate", "dimension"),
    "top_k": axes_to(besides("replicate", "axis")),
    "approx_top_k": axes_to(besides("replicate", "reduction_dimension")),
    "order_statistics": stacks_of(1),
    **dict.fromkeys(
        [f"reduce_window{kind}" for kind in ("", "_sum", "_max", "_min")] + ["select_and_gather_add"], windows
    ),
    "select_and_scatter": COUPLED,
    "select_and_scatter_add": COUPLED,
    "fft": axes_to(fft),
    # products
    "dot_general": dot_general,
    "ragged_dot_general": ragged_dot_general,
    "conv_general_dilated": convolution,
    # linear algebra
    **dict.fromkeys(
        "cholesky cholesky_update eig eigh hessenberg householder_product lu ormqr qr schur svd symmetric_product "
        "triangular_solve tridiagonal".split(),
        stacks_of(2),
    ),
    **dict.fromkeys("lu_pivots_to_permutation tridiagonal_solve".split(), stacks_of(1)),
    # random numbers
    "random_bits": drawn,
    "random_split": drawn,
    "random_gamma": random_gamma,
    "random_wrap": axes_to(leading),
    "random_unwrap": axes_to(leading),
    **dict.fromkeys("random_bits_at random_split_at rng_uniform".split(), made),
    "rng_bit_generator": NoRule("its second result depends on the whole of the first"),
    # what calls jaxprs and functions, or has effects
    **dict.fromkeys(
        "addupdate after_all check composite cond create_token custom_jvp_call custom_linear_solve custom_vjp_call "
        "custom_vjp_forward custom_vjp_linear custom_vmap_call dce_sink debug_callback free_ref freeze get io_callback "
        "jit linear_call new_ref pure_callback remat2 scan shard_map stack_scan swap while while_save zeros_ref "
        "todense buffer_callback call_exported compute_on control_dep ffi_call fused_call layout_constraint "
        "shard_alike xla_metadata_call xla_metadata_value".split(),
        AS_CALLED,
    ),
    **dict.fromkeys("stack_add stack_empty stack_length stack_read stack_write".split(), ON_STACKS),
    **dict.fromkeys("axis_index pbroadcast ragged_all_to_all".split(), COLLECTIVE),
    **dict.fromkeys(["pcast", reshard_p.name], AS_CALLED),
    "spsolve": SOLVED,
}

# Parameters that hold sizes, for the parts of operands and results: from the types of these and the parameters.
LOCAL = {
    "broadcast_in_dim": lambda avals, outs, params: {"shape": outs[0].shape},
    "reshape": lambda avals, outs, params: {"new_sizes": outs[0].shape},
    "slice": lambda avals, outs, params: {
        "limit_indices": tuple(min(e, n) for e, n in zip(params["limit_indices"], avals[0].shape, strict=True))
    },
    "dynamic_slice": lambda avals, outs, params: {"slice_sizes": outs[0].shape},
    "gather": lambda avals, outs, params: {
        "slice_sizes": tuple(min(e, n) for e, n in zip(params["slice_sizes"], avals[0].shape, strict=True))
    },
}


def local_params(primitive, avals, outs, params: dict) -> dict:
    """The parameters with which a primitive is applied to parts, given the types of its operands and results."""
    rule = LOCAL.get(primitive.name)
    return params | rule(avals, outs, params) if rule else params


OF_USERS = NoRule("it is a primitive of somebody else's, who gave it none (primitive.sharding)")


TRACED = ("bcoo_", "bcsr_", "coo_", "csr_", "sum_of_runs")  # sparse ones, which trace functions of dense arrays


def fill() -> None:
    """Give its rule to each primitive that has none yet, or has one of its skeleton's that is not meant for it."""
    nonlinear = of_numbers()
    for name, primitive in registry.items():
        primitive.terms = primitive.terms or TERMS.get(name, nonlinear)
        if primitive.sharding is None or name in RULES:
            sparse = name.startswith(
                ("bcoo_", "bcsr_", "coo_", "csr_", "sum_of_runs")
            )  # those trace functions of dense arrays
            primitive.sharding = AS_CALLED if sparse else RULES.get(name, OF_USERS)


fill()
