"""Other machines than the one at hand: programs are planned, written and turned into their machine code; those that this
one can stand for run as they do here.
"""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from catena.compiler.emit import halves
from catena.compiler.machine import AARCH64, X86_64, X86_64_V3
from catena.compiler.native import host, link
from catena.core.errors import CompileError
from catena.runtime.native import Code


def script(text: str, **variables: str) -> str:
    """What a Python prints that runs the text. LLVM ends the process where it cannot write an instruction."""
    paths = os.pathsep.join([*sys.path, os.environ["PYTHONPATH"]])
    env = {**os.environ, "PYTHONPATH": paths, **variables}
    done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


ASSEMBLED = "transcendental bfloat16 float16 float16_apart extremes softmax sort_rows top_k dot_epilogue lstm_gradient random".split()


def test_programs_for_other_machines():
    """The last line printed names the program that LLVM has no instructions for."""
    each = f"for m in ('generic', 'x86-64-v3', 'x86-64'): golden_texts.assemble(golden_texts.ASSEMBLED[m], {ASSEMBLED})"
    assert len(script(f"import golden_texts\n{each}").splitlines()) == 3 * len(ASSEMBLED)


VALUES = """
import numpy as np, catena as jax, catena.numpy as jnp
x = np.linspace(-4, 4, 1003, dtype=np.float32)
def f(x):
    h = x.astype(jnp.float16) * 3
    below = [jnp.exp(x * 26.2), jnp.exp2(x * 37.5)]  # subnormal numbers, zeros and infinities among them
    return [*below, jnp.exp(x), jnp.round(x), h, h.astype(jnp.float32), jnp.argsort(-x)]
for y in (*jax.jit(f)(x), jnp.tanh(x.astype(np.float16))):
    print(hash(np.asarray(y).tobytes()))
"""

EXTREMES = """
import numpy as np, catena as jax, catena.numpy as jnp
from shares import EVERY
jax.config.update("jax_enable_x64", True)
alone = [(f, axis, jax.jit(lambda y, g=g, axis=axis: g(y, axis)))
         for f, g in ((np.max, jnp.max), (np.min, jnp.min)) for axis in (0, 1, None)]
several = jax.jit(lambda y: [jnp.max(y, -1), jnp.min(y, -1), jnp.sum(y, -1), jnp.max(-y, -1)])
total = jax.jit(lambda y: jnp.sum(y, -1))
plain = np.random.default_rng(0).normal(size=(39, 39))
for base in (plain, abs(plain), -abs(plain), 0 * plain, -0.0 * plain):
    for special in (np.nan, np.inf, -np.inf, 0.0, -0.0):
        x = np.where(np.eye(39, dtype=bool), special, base)
        shapes = x, x[:, :5], x[:, :18].copy(), np.tile(x, (4, 1)), x[:, :6].repeat(5, 0), x[0]
        for i, y in enumerate(shapes):
            for y in (y, y.astype(np.float32)) if EVERY else (y.astype((np.float64, np.float32)[i % 2]),):
                got = [f(y) for _, axis, f in alone if (axis or 0) < y.ndim]
                for a, b in zip([f(y, axis) for f, axis, _ in alone if (axis or 0) < y.ndim], got):
                    np.testing.assert_array_equal(a, b)
                got += [*several(y)]
                for k, best in enumerate((y.max(-1), y.min(-1), total(y), (-y).max(-1))):
                    np.testing.assert_array_equal(best, got[k - 4])
                del got[-2]
                for b in got:
                    print(*np.signbit(b).ravel()) if not np.isnan(b).any() else print(*np.isnan(b).ravel())
"""

NARROW = """
rng, info = np.random.default_rng(0), np.finfo(np.float64)
largest = 0.0
for row in range(8):
    x, y = rng.standard_normal((2, 64, 48))
    x[:, row::8] = rng.integers(1, 1000, (64, 6)) * info.smallest_subnormal
    exact = (x.astype(np.longdouble).T @ y.astype(np.longdouble))[row::8]
    got = np.asarray(jax.jit(lambda x, y: x.T @ y)(x, y))[row::8]
    largest = max(largest, float(np.max(abs(got - exact)) / info.smallest_subnormal))
assert largest < 0.51, largest
"""

HERE = """
import position_cases
from catena.compiler.native import host
position_cases.check_all()
print(host.this_machine().cpu)
"""


def test_levels_of_x86_64_give_the_same_bits():
    """Elementwise, where no order of summation hangs on the width of vectors; and of extremes: NaN wins, and zeros are
    ordered by their signs, where floats are compared (without AVX-512) and where integers are, and a sum beside them is
    the sum alone. Places of extremes are NumPy's. Of a left operand whose rows lie beside each other all rows of a tile
    are looked at where vectors are shorter: subnormal sums are rounded once, whichever row they are in.
    """
    levels = [level.cpu for level in (X86_64, X86_64_V3) if level.features <= host._native().features]
    if not levels:
        pytest.skip("this is no x86-64")
    native = script(VALUES + EXTREMES, CATENA_TARGET="native", PYTHONHASHSEED="0").splitlines()
    for level in levels:
        found = script(VALUES + EXTREMES + NARROW + HERE, CATENA_TARGET=level, PYTHONHASHSEED="0").splitlines()
        assert found.pop() == level
        assert found == native


def test_machines_that_are_not_here():
    with pytest.raises(CompileError, match="native or one of x86-64, x86-64-v3, x86-64-v4, got 'sparc'"):
        host.chosen_machine("sparc", X86_64)
    with pytest.raises(CompileError, match="lacks .*avx2.*fma"):
        host.chosen_machine("x86-64-v3", X86_64)
    assert host.chosen_machine("native", AARCH64) is AARCH64
    assert host.chosen_machine("x86-64", X86_64_V3._replace(triple="x86_64-linux-musl")).triple == "x86_64-linux-musl"


def test_halves_by_integers():
    """Every f16, and f32 at, beside and between them."""
    own = halves.TEXT if host.this_machine().converts_halves else ""  # else the linker adds them to every module
    code = Code(link.compile_text(own + LOOPS, link.Times(), 1)[0], host.new_generator)
    f16 = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    exact = f16.astype(np.float32)
    wide = run(code, "extend_all", f16, np.float32)
    np.testing.assert_array_equal(wide[~np.isnan(exact)].view(np.int32), exact[~np.isnan(exact)].view(np.int32))
    assert np.isnan(wide[np.isnan(exact)]).all()
    near = (exact.view(np.uint32)[:, None] + np.array([0, 1, 4095, 4096, 4097], np.uint32)).ravel().view(np.float32)
    with np.errstate(all="ignore"):
        f32 = np.concatenate([near, np.float32(2) ** np.arange(-30, 30), np.random.default_rng(0).normal(size=1000)])
        f32 = f32.astype(np.float32)
        want = f32.astype(np.float16)
    got = run(code, "round_all", f32, np.float16)
    np.testing.assert_array_equal(got[~np.isnan(want)].view(np.int16), want[~np.isnan(want)].view(np.int16))
    assert np.isnan(got[np.isnan(want)]).all()


def run(code: Code, name: str, x: np.ndarray, dtype) -> np.ndarray:
    out = np.empty(x.shape, dtype)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64)(code.address(name))(
        x.ctypes.data, out.ctypes.data, x.size
    )
    return out


LOOPS = "".join(
    f"""
define void @{name}(ptr %x, ptr %y, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr {source}, ptr %x, i64 %i
  %v = load {source}, ptr %p
  %w = call {target} @{function}({source} %v)
  %q = getelementptr {target}, ptr %y, i64 %i
  store {target} %w, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
    for name, function, source, target in (
        ("extend_all", "__extendhfsf2", "half", "float"),
        ("round_all", "__truncsfhf2", "float", "half"),
    )
)


def test_processors_that_gather_are_told_to():
    """LLVM would test the mask of each lane, and jump."""
    assert "+fast-gather" in X86_64_V3._replace(cpu="znver3").flags.split(",")
    assert "+fast-gather" not in X86_64_V3.flags.split(",")
