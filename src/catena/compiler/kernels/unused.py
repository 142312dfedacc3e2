"""Statements of a nest that nothing needs, such as integers that were computed to say where elements lie and that move
with the loops: they are left out, and the others numbered anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catena.compiler.graph.affine import Affine
from catena.compiler.kernels.conditions import LOADS

if TYPE_CHECKING:
    from catena.compiler.kernels.body import Stmt
    from catena.compiler.kernels.loops import Fold, Nest, Run, Store


def leave_out(nest: Nest) -> Nest:
    """The nest, in place, without them."""
    live = _live(nest)
    if len(live) == len(nest.stmts):
        return nest
    new = {old: number for number, old in enumerate(sorted(live))}
    nest.stmts = [_renamed(nest.stmts[old], new) for old in new]
    nest.depends = [nest.depends[old] for old in new]
    nest.stores = [_renamed_store(s, new) for s in nest.stores]
    nest.folds = [_renamed_fold(f, new) for f in nest.folds]
    nest.ranges = {new[old]: ends for old, ends in nest.ranges.items() if old in new}
    return nest


def _live(nest: Nest) -> set[int]:
    pending = [s for store in nest.stores for s in (store.stmt, store.mask, *_terms(store.offset)) if s >= 0]
    for f in nest.folds:
        pending += [*f.stmts, *f.inits, *(t for *_, offset in f.dests for t in _terms(offset))]
        pending += f.run.ends if f.run is not None else []
    pending += [i for i, s in enumerate(nest.stmts) if s.op == "check"]
    found: set[int] = set()
    while pending:
        i = pending.pop()
        if i not in found:
            found.add(i)
            pending += read(nest.stmts[i])
    return found


def read(s: Stmt) -> list[int]:
    """The statements that one is made of: its operands, and what tells where it reads."""
    return [*s.args, *_terms(_place(s))]


def _place(s: Stmt) -> Affine | None:
    return s.attr[2] if s.op in LOADS else s.attr if s.op == "affine" else None


def _terms(a: Affine | None) -> list[int]:
    return [t for t, _ in a[2]] if a is not None else []


def _moved(a: Affine, new: dict[int, int]) -> Affine:
    return a[0], a[1], tuple((new[t], c) for t, c in a[2])


def _renamed(s: Stmt, new: dict[int, int]) -> Stmt:
    if s.op in LOADS:
        buffer, dtype, offset = s.attr
        attr = buffer, dtype, _moved(offset, new)
    else:
        attr = _moved(s.attr, new) if s.op == "affine" else s.attr
    return s._replace(args=tuple(new[a] for a in s.args), attr=attr)


def _renamed_store(s: Store, new: dict[int, int]) -> Store:
    mask = new[s.mask] if s.mask >= 0 else s.mask
    return s._replace(stmt=new[s.stmt], mask=mask, offset=_moved(s.offset, new))


def _renamed_fold(f: Fold, new: dict[int, int]) -> Fold:
    dests = tuple((b, t, _moved(offset, new)) for b, t, offset in f.dests)
    run: Run | None = f.run and f.run._replace(start=new[f.run.start], stop=new[f.run.stop])
    stmts, inits = (tuple(new[s] for s in each) for each in (f.stmts, f.inits))
    return f._replace(stmts=stmts, inits=inits, dests=dests, run=run)
