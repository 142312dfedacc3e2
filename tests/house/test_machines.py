"""Machines that are not ours: other systems, other builds of Python and NumPy, other linear algebra libraries."""

import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native import host
from catena.lax import linalg
from catena.runtime import kernels, lapack_calls, layout, library
from catena.transform import execute

TESTS = Path(__file__).parents[1]


def run_script(script: str, *arguments: str) -> str:
    """What a Python of its own prints that runs a script."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- systems without what only Linux has

ELSEWHERE = """
    import contextlib, ctypes, mmap, os, platform, signal, sys
    import numpy, scipy, pytest      # they have builds for each system
    with contextlib.suppress(ModuleNotFoundError):
        import llvmlite.binding

    class CDLL(ctypes.CDLL):
        def __init__(self, name, *args, **kwargs):
            if name is None:
                raise TypeError("the process itself is no library on Windows")
            super().__init__(name, *args, **kwargs)

    GONE = {
        os: "chown fchmod fork forkpty fchown geteuid getgid getuid getloadavg getpgid getpriority getrlimit getsid "
            "initgroups killpg mkfifo nice O_ASYNC O_CLOEXEC O_DIRECTORY O_DSYNC O_NOCTTY O_NOFOLLOW O_NONBLOCK "
            "O_SYNC O_TMPFILE pidfd_open posix_fadvise posix_fallocate posix_spawn preadv process_cpu_count pwritev "
            "register_at_fork sched_getaffinity sched_getscheduler sched_setaffinity sched_yield sendfile setsid "
            "setuid sysconf sysconf_names uname wait wait3 wait4 waitid",
        mmap: "MADV_HUGEPAGE MADV_DONTNEED MAP_ANON MAP_ANONYMOUS MAP_PRIVATE MAP_POPULATE MAP_SHARED PROT_READ",
        signal: "alarm pause pthread_kill pthread_sigmask setitimer siginterrupt SIGALRM SIGKILL SIGUSR1 SIGHUP",
    }
    for module, names in GONE.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    sys.modules.update(dict.fromkeys(["fcntl", "grp", "pwd", "resource", "termios"]))
    ctypes.CDLL = CDLL
    platform.system = lambda: "Windows"

    import catena, test_tiny

    for name, test in vars(test_tiny).items():
        if name.startswith("test_") and name != "test_chains":
            test()
    test_tiny.test_chains("jit(vmap(grad))")
    x = catena.numpy.ones((300, 300))
    for f in (lambda x: x @ x, lambda x: catena.numpy.sort(x + 1, 0), lambda x: abs(catena.numpy.linalg.eigvals(x))):
        numpy.testing.assert_allclose(catena.jit(f)(x).max(), f(x).max(), rtol=1e-4)
    print("done")
"""


def test_the_tour_runs_where_linux_has_names_that_others_have_not(tmp_path, monkeypatch):
    monkeypatch.setenv("CATENA_CACHE_DIR", str(tmp_path))
    assert run_script(ELSEWHERE) == "done\n"


# ---- builds of Python and NumPy


def test_objects_lie_as_programs_expect():
    layout.check_interpreter()
    layout.check_layout()


@pytest.mark.parametrize("name", ["TUPLE_ITEMS", "DATA", "NDIM", "SHAPE", "STRIDES", "BASE", "DTYPE", "FLAGS"])
def test_another_layout_is_refused(name, monkeypatch):
    monkeypatch.setattr(layout, name, getattr(layout, name) + 8)
    with pytest.raises(ImportError, match=rf"Python {sysconfig.get_python_version()}.*NumPy {np.__version__}"):
        layout.check_layout()


def test_other_interpreters_are_refused(monkeypatch):
    monkeypatch.setattr(layout, "HEAD", 32)
    with pytest.raises(ImportError, match="free-threaded"):
        layout.check_interpreter()
    monkeypatch.setattr(layout.struct, "calcsize", lambda _: 4)
    with pytest.raises(ImportError, match="64 bits; this one has 32"):
        layout.check_interpreter()
    monkeypatch.setattr(sys.implementation, "name", "pypy")
    with pytest.raises(ImportError, match="needs CPython.*pypy"):
        layout.check_interpreter()


def test_the_import_is_refused_with_these_words():
    script = """
        import sys
        sys.implementation.name = "pypy"
        try:
            import catena
        except ImportError as error:
            print(error)
    """
    assert run_script(script).startswith("catena needs CPython, since compiled programs read its objects")


def test_who_holds_an_array_is_known_by_any_interpreter():
    """How many references an interpreter counts for a value on its stack differs; what one more holder adds does not."""
    x = jnp.arange(3.0)
    assert execute.is_ours([x._value], 0)
    other = x._value
    assert not execute.is_ours([other], 0)


# ---- linear algebra libraries

SQUARE = np.random.default_rng(0).standard_normal((1, 33, 33)).astype(np.float32)  # what programs leave to LAPACK
ROUTINES = {
    "lu": (lambda a: linalg.lu(a)[0], {"getrf"}),
    "householder_product": (lambda a: linalg.householder_product(a, a[..., 0]), {"orgqr", "ungqr"}),
    "eig": (linalg.eig, {"geev"}),
    "schur": (linalg.schur, {"gees"}),
    "hessenberg": (linalg.hessenberg, {"gehrd"}),
    "tridiagonal": (linalg.tridiagonal, {"sytrd", "hetrd"}),
    "triangular_solve": (lambda a: linalg.triangular_solve(a, a[..., :5], left_side=True), {"trsm"}),
    "tridiagonal_solve": (lambda a: linalg.tridiagonal_solve(a[..., 0], a[..., 1], a[..., 2], a), {"gtsv"}),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", ROUTINES)
def test_eager_and_compiled_code_call_the_same_routine(name, dtype, monkeypatch):
    function, routines = ROUTINES[name]
    a = SQUARE.astype(dtype)
    program = jax.jit(function).lower(a).compile().runtime_executable()
    called = set()

    def recorded(call):
        called.add(call.routine)
        return lapack_calls.function(call.routine, len(call.arguments))

    monkeypatch.setattr(lapack_calls.Call, "function", property(recorded))
    with jax.disable_jit():  # which would be the program again
        function(a)
    assert called == {x.name for x in program.parts.externals if isinstance(x, kernels.Routine)}
    assert {name[1:] for name in called} <= routines


WITHOUT_NUMPYS_LIBRARY = """
    from catena.runtime import library
    library.bundled = lambda: None                  # as where NumPy was built with another library than OpenBLAS

    import numpy as np
    import catena as jax, catena.numpy as jnp
    from catena.lax import linalg

    a = np.random.default_rng(0).standard_normal((3, 6, 6))
    functions = [
        lambda a: linalg.cholesky(a @ a.swapaxes(-1, -2).conj() + np.eye(6)), linalg.lu, linalg.eigh, linalg.svd, linalg.eig,
        linalg.schur, linalg.hessenberg, linalg.tridiagonal, jnp.linalg.inv, lambda a: linalg.svd(a, compute_uv=False),
        lambda a: linalg.triangular_solve(a, a, left_side=True), jnp.linalg.eigvals, lambda a: a @ a,
    ]
    for dtype in ("float32", "float64", "complex64", "complex128"):
        with jax.enable_x64(True):
            x = (a + 1j * a[::-1]).astype(dtype) if dtype[0] == "c" else a.astype(dtype)
            for f in functions:
                for eager, compiled in zip(jax.tree.leaves(f(x)), jax.tree.leaves(jax.jit(f)(x)), strict=True):
                    scale = np.abs(np.asarray(eager)).max()
                    np.testing.assert_allclose(compiled, eager, atol=2e-4 * scale if dtype in ("float32", "complex64") else 1e-9 * scale)
    print("done")
"""


def test_eager_and_compiled_code_agree_where_numpy_has_another_library():
    """Signs and orders of vectors too, of which one library chooses: all routines are then SciPy's."""
    assert run_script(WITHOUT_NUMPYS_LIBRARY) == "done\n"


def test_programs_on_disk_are_those_of_this_library(monkeypatch):
    """Integers of 32 bits in place of 64 would be read beyond their end."""
    before = host.identity()
    monkeypatch.setattr(library, "bundled", lambda: None)
    if library.path() is not None:
        assert host.identity() != before


@pytest.mark.share(4)
@pytest.mark.parametrize("exponent", [30, 12, 0, -12, -30, -37])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
def test_eigenvalues_of_matrices_of_any_norm(dtype, exponent):
    """OpenBLAS 0.3.30 returns eigenvalues of scaled matrices without scaling them back."""
    exponent *= 7 if dtype in ("float64", "complex128") else 1
    scale = np.ldexp(1.0, int(exponent * np.log2(10)))
    a = SQUARE.astype(dtype)
    if dtype.startswith("complex"):
        a = a + 1j * a[::-1]
    with jax.enable_x64(True):
        x = (a * scale).astype(dtype)
        expected = sorted_values(np.linalg.eigvals((x / scale).astype(np.complex128)))
        for f in (jnp.linalg.eigvals, jax.jit(jnp.linalg.eigvals)):
            found = sorted_values(np.asarray(f(x)).astype(np.complex128) / scale)
            tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-10
            np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())
        _, left, right = linalg.eig(x)
        assert np.isfinite(np.asarray(right)).all() and np.isfinite(np.asarray(left)).all()


def test_eigenvalues_of_subnormal_and_of_no_matrices():
    x = np.float32(1e-44) * np.array([[0, 1], [1, 0]], np.float32)
    for f in (jnp.linalg.eigvals, jax.jit(jnp.linalg.eigvals)):
        np.testing.assert_array_equal(np.sort(np.asarray(f(x)).real), [-x.max(), x.max()])
        np.testing.assert_array_equal(f(np.zeros((3, 3), np.float32)), np.zeros(3))
        assert f(np.zeros((2, 0, 0), np.float32)).shape == (2, 0)
        mixed = np.stack([np.eye(2), np.full((2, 2), np.nan), 2 * np.eye(2), [[np.inf, 0], [0, 1]]]).astype(np.float32)
        found = np.asarray(f(mixed))
        np.testing.assert_array_equal(found[[0, 2]], [[1, 1], [2, 2]])
        assert np.isnan(found[[1, 3]]).all()


def sorted_values(w):
    """By size first: conjugate pairs have the same, and come in any order."""
    return np.sort(np.abs(w), -1)
