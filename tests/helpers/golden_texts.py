"""Golden texts: a digest of the LLVM text of each program in `golden_programs.py`, for machines that are named here.

python tests/helpers/golden_texts.py                which programs' texts differ from the digests
python tests/helpers/golden_texts.py --write        takes the digests of now, and prints which programs changed
python tests/helpers/golden_texts.py --dump FOLDER  writes the texts: dump at two commits, then `diff -r`
python tests/helpers/golden_texts.py --assemble CPU turns them into machine code for that processor
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
from pathlib import Path
from unittest import mock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import catena as jax
from catena.compiler.emit import entry
from catena.compiler.machine import AARCH64, ICE_LAKE, LEVELS, SAPPHIRE_RAPIDS, X86_64_V3, Machine
from catena.compiler.native import compile as compiler
from catena.compiler.native import link
from catena.core.config import override
from catena.core.lazy import llvm
from catena.runtime import kernels, library
from golden_programs import CASES

DIGESTS = Path(__file__).parents[1] / "data" / "golden_texts.json"
MACHINES = {"ice lake": ICE_LAKE, "x86-64-v3": X86_64_V3, "neon": AARCH64, "sapphire rapids": SAPPHIRE_RAPIDS}
# Every program is written for the first machine; for the others, those whose text the width of vectors decides most.
PART = (
    "chain", "transcendental", "bfloat16", "integers_8", "softmax", "layer_norm_gradient", "sums", "extremes", "cumulative",
    "transpose_large", "sort_rows", "top_k", "dot", "dot_epilogue", "dot_f64", "convolution", "fft", "lstm_gradient", "mlp_step",
)  # fmt: skip
TILED = ("dot_bf16", "dot_bf16_odd")  # what the processor's own tiles compute, on the machine that has them


ASSEMBLED = {m.cpu: m for m in (AARCH64, *LEVELS.values())}


@contextlib.contextmanager
def everywhere():
    """Within, programs are written for an interpreter and a BLAS that are the same everywhere."""
    fixed = [
        mock.patch.object(entry, "TUPLE_ITEMS", 24),
        mock.patch.object(library, "integer_bits", lambda: 64),
        mock.patch.object(kernels, "can_limit_threads", lambda: True),
        override("jax_check_bounds", False),
    ]
    with contextlib.ExitStack() as stack:
        for patch in fixed:
            stack.enter_context(patch)
        yield


def text(name: str, machine: Machine) -> str:
    """The LLVM text of a program."""
    case = CASES[name]
    with everywhere(), jax.enable_x64(any("64" in str(t.dtype) for t in case.arguments)):
        return compiler.text_of(jax.make_jaxpr(case.function)(*case.arguments), case.donated, machine)


def texts():
    """Pairs of a name, such as "softmax @ x86-64-v3", and the text of the program."""
    for label, machine in MACHINES.items():
        for name in CASES if machine is ICE_LAKE else TILED if machine is SAPPHIRE_RAPIDS else PART:
            yield f"{name} @ {label}", text(name, machine)


def digests() -> dict[str, str]:
    return {name: hashlib.sha256(t.encode()).hexdigest()[:16] for name, t in texts()}


def changes(now: dict[str, str]) -> list[str]:
    """What differs from the digests that are kept: a line for each program."""
    kept = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    words = {name: "new" if name not in kept else "gone" if name not in now else "changed" for name in {**kept, **now}}
    return [f"{name}: {word}" for name, word in words.items() if kept.get(name) != now.get(name)]


def assemble(machine: Machine, names=CASES) -> None:
    """Turns programs into the machine code of a machine, and prints the name of each beforehand."""
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(machine.triple)
    generator = target.create_target_machine(cpu=machine.cpu, features=machine.flags, reloc="pic", opt=1)
    for name in names:
        print(machine.cpu, name, flush=True)
        module = link.parsed(text(name, machine))
        module.triple, module.data_layout = machine.triple, str(generator.target_data)
        link.run_passes(module, generator, link.PASSES)
        generator.emit_assembly(module)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="take the digests of now")
    parser.add_argument("--dump", type=Path, metavar="FOLDER", help="write the texts into a folder")
    parser.add_argument("--assemble", choices=ASSEMBLED, help="turn all programs into machine code for this processor")
    options = parser.parse_args()
    if options.assemble:
        assemble(ASSEMBLED[options.assemble])
        return 0
    if options.dump:
        options.dump.mkdir(parents=True, exist_ok=True)
        for name, written in texts():
            (options.dump / f"{name.replace(' @ ', '.')}.ll").write_text(written)
        return 0
    now = digests()
    changed = changes(now)
    print("\n".join(changed) or f"all {len(now)} texts are the same")
    if options.write:
        DIGESTS.write_text(json.dumps(now, indent=1) + "\n")
    return bool(changed) and not options.write


if __name__ == "__main__":
    raise SystemExit(main())
