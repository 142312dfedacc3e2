"""Object code that runs without LLVM's loader: what it refers to, and what is left to LLVM."""

import ctypes
import gc
import struct
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from catena.compiler.native import host, link
from catena.compiler.native.image import image
from catena.runtime import elf, images, linking, native
from catena.runtime.native import Code, Function, Unit

pytestmark = pytest.mark.skipif(
    elf.read(link.compile_text("define i64 @f() {\n  ret i64 1\n}", link.Times(), 1)[0]) is None
    or images.reserve(1) is None,
    reason="there is no such code here",
)
CALLED = """
@count = global i64 40
define i64 @next() {
  %n = load i64, ptr @count
  %more = add i64 %n, 1
  store i64 %more, ptr @count
  ret i64 %more
}
"""
CALLS = """
@few = internal constant [5 x i64] [i64 3, i64 1, i64 4, i64 1, i64 5]
@functions = internal constant [2 x ptr] [ptr @twice, ptr @next]
declare i64 @next()
declare i64 @labs(i64)
define internal i64 @twice() noinline {
  %a = call i64 @next()
  %b = add i64 %a, %a
  ret i64 %b
}
define i64 @of_table(i64 %i) {
  %at = getelementptr i64, ptr @few, i64 %i
  %x = load i64, ptr %at
  ret i64 %x
}
define i64 @by_pointer(i64 %i) {
  %at = getelementptr ptr, ptr @functions, i64 %i
  %f = load ptr, ptr %at
  %x = call i64 %f()
  ret i64 %x
}
define i64 @of_process(i64 %x) {
  %y = call i64 @labs(i64 %x)
  ret i64 %y
}
define i64 @of_constants(i64 %x) {
  %f = sitofp i64 %x to double
  %g = fmul double %f, 1.234375
  %h = fadd double %g, 0.1
  %y = fptosi double %h to i64
  ret i64 %y
}
define i64 @of_cases(i64 %x) {
  switch i64 %x, label %other [i64 0, label %a  i64 1, label %b  i64 2, label %c  i64 3, label %d  i64 4, label %e]
a:
  %p = call i64 @next()
  ret i64 %p
b:
  ret i64 17
c:
  %q = call i64 @labs(i64 %x)
  ret i64 %q
d:
  ret i64 -3
e:
  %r = call i64 @twice()
  ret i64 %r
other:
  ret i64 99
}
"""


def compiled(text: str) -> bytes:
    return link.compile_text(text, link.Times(), 1)[0]


def loaded() -> tuple[Code, Code]:
    called = Code(compiled(CALLED), host.new_generator)
    unit = Unit("a test's", {}, [Function("next", "a test's next")])
    return called, Code(compiled(CALLS), host.new_generator, [called], unit)


def answers(code: Code) -> list[int]:
    """What its functions return, in one order: they count."""
    one, none = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64), ctypes.CFUNCTYPE(ctypes.c_int64)
    assert none(code.linked[0].address("next"))() == 41
    return [
        one(code.address(name))(x)
        for name, xs in [
            ("of_table", range(5)),
            ("by_pointer", [0, 1]),
            ("of_process", [-7, 7]),
            ("of_constants", [1000]),
            ("of_cases", range(6)),
        ]
        for x in xs
    ]


EXPECTED = [3, 1, 4, 1, 5, 84, 43, 7, 7, 1234, 44, 17, 2, -3, 90, 99]


def test_code_refers_to_itself_to_other_code_and_to_the_process():
    called, code = loaded()
    assert type(code._loaded) is linking.Linked
    assert answers(code) == EXPECTED
    assert ctypes.c_int64.from_address(called.address("count")).value == 45
    assert code.address("missing") == 0


def test_llvm_loads_the_same(monkeypatch):
    monkeypatch.setattr(linking, "linked", lambda code, imports: None)
    called, code = loaded()
    assert type(code._loaded) is not linking.Linked
    assert answers(code) == EXPECTED
    assert ctypes.c_int64.from_address(called.address("count")).value == 45
    assert code.address("missing") == 0


def test_what_is_not_known_is_left_to_llvm():
    assert linking.linked(compiled(CALLS), {}) is None  # nobody says where `next` is
    assert linking.linked(b"MZ" + bytes(200), {}) is None
    relative = link.relocatable_code("declare i64 @next()\ndefine i64 @f() {\n  %x = call i64 @next()\n  ret i64 %x\n}")
    assert linking.linked(relative, {"next": 1}) is None  # references that reach two gigabytes


@pytest.mark.parametrize(
    "place, content",
    [(0, b"\0"), (4, b"\1"), (16, b"\3"), (18, b"\xb7"), (60, b"\0\0")],
    ids=["not ELF", "32 bits", "linked by others", "another processor", "sections counted elsewhere"],
)
def test_other_objects_are_not_read(place, content):
    code = compiled(CALLS)
    assert elf.read(code) is not None
    assert elf.read(code[:place] + content + code[place + len(content) :]) is None


def test_references_of_another_form_are_not_passed_over():
    code = bytearray(compiled(CALLS))
    start, size, count = *struct.unpack_from("<Q", code, 40), *struct.unpack_from("<HH", code, 58)
    kinds = [start + i * size + 4 for i in range(count)]
    (first, *_) = [at for at in kinds if struct.unpack_from("<I", code, at) == (4,)]
    struct.pack_into("<I", code, first, 9)
    assert elf.read(bytes(code)) is None


def test_what_wants_more_than_a_page_is_left_to_llvm():
    text = "@x = global i64 1, align {}\ndefine ptr @f() {{\n  ret ptr @x\n}}"
    assert elf.read(compiled(text.format(4096))) is not None
    assert elf.read(compiled(text.format(1 << 16))) is None


def test_images_write_to_nothing():
    assert image(link.relocatable_code("define i64 @f() {\n  ret i64 1\n}"), "f") is not None
    counting = "@n = internal global i64 1\ndefine void @f(i64 %x) {\n  store i64 %x, ptr @n\n  ret void\n}"
    assert image(link.relocatable_code(counting), "f") is None


def test_memory_is_given_back_with_the_last_who_holds_the_code(monkeypatch):
    freed, free = [], images.free
    monkeypatch.setattr(images, "free", lambda start, size: freed.append(start) or free(start, size))
    called, code = loaded()
    start, gone = called.address("next"), weakref.ref(called)
    del called
    gc.collect()
    assert gone() is not None and not freed  # who calls it holds it
    del code
    gc.collect()
    assert gone() is None and len(freed) == 2 and min(abs(start - f) for f in freed) < 4096


def test_code_cannot_be_written_to():
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("the system does not say")
    called, code = loaded()
    rights = {}
    for line in maps.read_text().splitlines():
        low, high = (int(x, 16) for x in line.split()[0].split("-"))
        for name, at in [("code", called.address("next")), ("data", called.address("count"))]:
            if low <= at < high:
                rights[name] = line.split()[1][:3]
    assert rights == {"code": "r-x", "data": "rw-"}
    del code


SCRIPT = """
import sys
import numpy
others = set(sys.modules)
import catena as jax, catena.numpy as jnp
f = jax.jit(lambda x: (jnp.tanh(x @ x.T), jnp.sort(x, axis=0), jnp.sum(jnp.sin(jnp.arange(300_000.0) * x[0, 0]))))
print([x.tobytes().hex() for x in map(jax.device_get, f(jnp.ones((3, 4))))], file=sys.stderr)
print("llvmlite.binding" in sys.modules, "catena.compiler.native.compile" in sys.modules)
print(*sorted({"pathlib", "urllib.parse", "hashlib", "_hashlib"} & (set(sys.modules) - others)))
"""


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the system does not say which processor this is")
def test_a_script_that_ran_before_loads_no_llvm(tmp_path, monkeypatch):
    monkeypatch.setenv("CATENA_CACHE", "1")
    monkeypatch.setenv("CATENA_CACHE_DIR", str(tmp_path))
    runs = [subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True) for _ in range(2)]
    assert [run.stdout.splitlines()[0].split() for run in runs] == [[b"True", b"True"], [b"False", b"False"]]
    assert not runs[1].stdout.splitlines()[1].strip()  # what takes longer to import than the program to be found
    assert runs[0].stderr.splitlines()[-1] == runs[1].stderr.splitlines()[-1]


def test_numbers_of_a_table_have_64_bits_with_or_without_a_sign():
    for numbers in ([], [1, -1, -(1 << 63), (1 << 63) - 1], [5, -1, (1 << 64) - 1]):
        words = np.frombuffer(native._words(numbers), np.uint64).tolist()
        assert words == [n % (1 << 64) for n in numbers]
