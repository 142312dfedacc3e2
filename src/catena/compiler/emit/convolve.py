"""Convolutions whose windows are read where they lie: which axes a contraction has, and where their steps lead."""

from __future__ import annotations

from catena.compiler import products
from catena.compiler.contraction import Axis
from catena.compiler.graph import Value


def convolve(w, frame, i: int, v: Value) -> None:
    """Writes N *S O: rows are places, terms are the taps of the window and the channels of a group."""
    w.define(frame, v)
    if not v.size:
        return
    lhs, rhs = v.args
    p = v.params
    (a, sa), (b, sb), sc = products.strides(frame, lhs), products.strides(frame, rhs), products.row_major(v.shape)
    (n, c, *space), (o, inner, *taps) = p["lhs_spec"], p["rhs_spec"]
    groups, members = p["feature_groups"] * p["batch_groups"], rhs.shape[o]
    by_channel = p["feature_groups"] > 1
    group = Axis(groups, sa[c] * rhs.shape[inner] if by_channel else sa[n] * v.shape[0], sb[o] * (members // groups),
                 members // groups)  # fmt: skip
    rows = [Axis(v.shape[0], sa[n], 0, sc[0])]
    rows += [Axis(v.shape[1 + k], sa[d] * s, 0, sc[1 + k]) for k, (d, s) in enumerate(zip(space, p["strides"]))]
    terms = [(Axis(rhs.shape[e], sa[d] * r, sb[e], 0), e) for d, e, r in zip(space, taps, p["dilation"])]
    terms = sorted([*terms, (Axis(rhs.shape[inner], sa[c], sb[inner], 0), inner)], key=lambda x: -x[0].a)
    columns = [Axis(members // groups, 0, sb[o], 0)]
    axes = ([group], rows, [x for x, _ in terms], columns)
    split, dims = _split(frame, rhs, o, groups)
    layout = (split, [o], [dims[e] for _, e in terms], [o + 1])
    products.contract(w, frame, frame.fused.steps[i], (a, b), axes, layout)


def _split(frame, x: Value, d: int, groups: int) -> tuple[Value, list[int]]:
    """`x` with dimension `d` as groups and members, and where the other dimensions are."""
    shape = (*x.shape[:d], groups, x.shape[d] // groups, *x.shape[d + 1 :])
    return products.beside(frame, "reshape", shape, (x,)), [e + (e > d) for e in range(x.ndim)]
