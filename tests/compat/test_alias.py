"""The alias: programs that import JAX get catena, here and in the processes they start; the real JAX is respected."""

import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import catena
from catena.compat import private
from catena.compat.run import install_alias, uninstall_alias

SRC = str(Path(catena.__file__).parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": SRC}
PROGRAM = """
import sys
import jax, jax.numpy as jnp
from jax import lax, random
import jax.tree_util
print(jax.__name__, float(jax.grad(jnp.sin)(0.0)), sys.argv[1:], __name__)
"""


def python(*arguments, **options):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=ENVIRONMENT, **options)
    return done.stdout.strip(), done.stderr.strip()


def public_modules():
    """Modules of ours that a program may import under JAX's name."""
    return [
        "numpy",
        "numpy.linalg",
        "lax",
        "lax.linalg",
        "random",
        "tree_util",
        "nn.initializers",
        "core",
        "extend.core",
    ]


def test_every_module_is_the_same_object_under_both_names():
    with catena.as_jax():
        for name in public_modules():
            ours = importlib.import_module(f"catena.{name}")
            assert importlib.import_module(f"jax.{name}") is ours
            assert ours.__spec__.name == f"catena.{name}"  # what Python's own machinery goes by


def test_collecting_docstrings_does_not_set_the_alias():
    """The package that sets it when it is imported has no docstrings to run; else every test ran under the alias."""
    collect = "import pytest, sys; pytest.main(['-q', '-p', 'no:cacheprovider', '--collect-only', 'src/catena/compat'])"
    said, _ = python("-c", f"{collect}; print('jax' in sys.modules)", cwd=Path(SRC).parent)
    assert "catena.compat.alias.as_jax" in said and said.endswith("False"), said


def test_the_alias_goes_and_takes_everything_along():
    before = set(sys.modules), list(sys.path), list(sys.meta_path)
    alias = catena.as_jax()
    assert catena.as_jax() is alias  # once is enough
    import jax.numpy  # noqa: F401

    alias.remove()
    alias.remove()
    assert not [name for name in sys.modules if name.split(".")[0] in ("jax", "jaxlib")]
    assert (list(sys.path), list(sys.meta_path)) == before[1:]


def test_the_namespace_of_arrays_has_the_name_by_which_libraries_know_it():
    with catena.as_jax():
        import jax.numpy as jnp

        assert jnp.__name__ == "jax.numpy" and jnp.ones(1).__array_namespace__() is jnp
        with pytest.raises(AttributeError, match="nonsense"):
            jnp.nonsense
    assert catena.numpy.__name__ == "catena.numpy"


def test_versions_are_those_of_the_api():
    with catena.as_jax():
        jaxlib = importlib.import_module("jaxlib")
        assert importlib.metadata.version("jax") == importlib.metadata.version("jaxlib") == catena.__version__
        assert jaxlib.__version__ == jaxlib.version.__version__ == catena.__version__


def test_modules_say_all_their_names():
    """Libraries wrap whole namespaces."""
    with catena.as_jax():
        import jax

        for module, name in ((jax.numpy, "abs"), (jax.numpy.linalg, "inv"), (jax.lax, "scan"), (jax.random, "normal")):
            assert callable(vars(module)[name]) and callable(module.__dict__[name])


def test_over_the_real_jax_it_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    with pytest.raises(RuntimeError, match="JAX itself is imported already.*before the first import"):
        catena.as_jax()


def test_what_is_missing_is_named():
    with catena.as_jax():
        with pytest.raises(ModuleNotFoundError, match="No module named 'jax.nonsense'"):
            importlib.import_module("jax.nonsense")
        with pytest.raises(ModuleNotFoundError, match="jax._src.nonsense is private to JAX"):
            importlib.import_module("jax._src.nonsense")
        core = importlib.import_module("jax._src.core")
        with pytest.raises(AttributeError, match=r"jax._src.core.nonsense is private.*test_alias reaches for it"):
            core.nonsense
        with pytest.raises(ImportError, match=r"jax._src.core.nonsense is private"):
            exec("from jax._src.core import nonsense")


def test_modules_that_libraries_import_from_public_packages_and_do_not_use():
    with catena.as_jax():
        from jax.experimental.colocated_python import serialization
        from jax.extend import ifrt_programs

        assert serialization.DeviceList is tuple
        with pytest.raises(AttributeError, match=r"ifrt_programs.make_plugin_program is private.*test_alias reaches"):
            ifrt_programs.ifrt_programs.make_plugin_program
    with pytest.raises(ImportError, match="ifrt_programs is no part of catena"):
        from catena.extend import ifrt_programs  # noqa: F401


def test_kernels_of_other_machines_are_imported_and_refuse_to_be_used():
    with catena.as_jax():
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import triton
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel

        with pytest.raises(AttributeError, match="jax.experimental.pallas.pallas_call is about kernels of GPUs and"):
            pl.pallas_call
        with pytest.raises(AttributeError, match="pallas.triton.load is about kernels of GPUs and TPUs: another mac"):
            triton.load
        with pytest.raises(
            AttributeError, match="splash_attention_kernel.make_splash_mha is about kernels of GPUs and"
        ):
            splash_attention_kernel.make_splash_mha
        with pytest.raises(ImportError, match="pallas.BlockSpec is about kernels of GPUs and TPUs"):
            from jax.experimental.pallas import BlockSpec  # noqa: F401
        assert not hasattr(pl, "pallas_call")
    with pytest.raises(ImportError, match="catena.experimental.pallas is about kernels of GPUs and TPUs"):
        from catena.experimental import pallas  # noqa: F401


def test_private_names_are_what_they_are_in_jax():
    with catena.as_jax():
        from jax._src.core import concrete_or_error
        from jax._src.interpreters.batching import is_vmappable
        from jax._src.lib import xla_client
        from jax._src.numpy.util import promote_dtypes_complex
        from jaxlib._jax import PjitFunction

        assert isinstance(catena.jit(abs), PjitFunction)
        assert not isinstance(abs, PjitFunction)
        assert concrete_or_error(int, 2.0) == 2
        assert is_vmappable(catena.numpy.ones(2)) is False
        assert issubclass(xla_client.XlaRuntimeError, RuntimeError)
        a, b = promote_dtypes_complex(np.float32([1, 2]), 3)
        assert (a.dtype, b.dtype, a.shape, b.shape) == ("complex64", "complex64", (2,), ())


def test_private_names_of_cuthbert_and_asdex():
    with catena.as_jax():
        import jax
        from jax._src.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
        from jax._src.interpreters.partial_eval import dce_jaxpr
        from jax._src.numpy.util import promote_dtypes_inexact

        closed = jax.make_jaxpr(lambda x, y: (2.0 * x, y + 1.0))(1.0, 2.0)
        assert isinstance(closed, ClosedJaxpr) and isinstance(closed.jaxpr, Jaxpr)
        assert isinstance(closed.eqns[0], JaxprEqn)
        assert {type(atom) for atom in closed.eqns[0].invars} == {Literal, Var}
        smaller, used = dce_jaxpr(closed.jaxpr, [False, True])
        assert len(smaller.eqns) == 1 and used == [False, True]
        a, b = promote_dtypes_inexact(np.int32([1, 2]), 3)
        assert (a.dtype, b.dtype, a.shape, b.shape) == ("float32", "float32", (2,), ())


def test_private_names_that_libraries_import():
    """AQT, bijx, esquilax, qujax, unxt, vbjax, optree and qwix import these; quaxed makes classes of two."""
    with catena.as_jax():
        import jax
        from jax._src import config, dtypes
        from jax._src.lax import linalg
        from jax._src.lib import _jax
        from jax._src.numpy import lax_numpy  # noqa: F401
        from jax._src.numpy.array_methods import _IndexUpdateHelper, _IndexUpdateRef
        from jax._src.numpy.index_tricks import CClass, RClass
        from jax._src.numpy.ufuncs import ufunc
        from jax._src.numpy.util import check_arraylike
        from jax._src.typing import DTypeLike
        from jax.experimental.ode import api_util

        assert api_util is jax.api_util
        assert config.numpy_rank_promotion.value == "allow"
        assert dtypes.canonicalize_dtype(complex) == "complex64"
        assert dtypes.result_type(dtypes.dtype(1.5), np.int8) == "float32"
        assert linalg.svd_p is jax.lax.linalg.svd_p
        assert issubclass(_jax.PjitFunction, type(catena.jit(abs)))
        x = catena.numpy.arange(3)
        assert isinstance(x.at, _IndexUpdateHelper) and isinstance(x.at[0], _IndexUpdateRef)
        assert isinstance(catena.numpy.add, ufunc) and DTypeLike is jax.typing.DTypeLike
        assert CClass()[x, x].tolist() == [[0, 0], [1, 1], [2, 2]] and RClass()[1:3, 7].tolist() == [1, 2, 7]
        check_arraylike("hilbert", x, 1.5)
        with pytest.raises(TypeError, match="hilbert requires ndarray or scalar arguments, got <class 'list'>"):
            check_arraylike("hilbert", [1.0])


def test_nodes_are_taken_apart_and_rebuilt_through_the_private_registry():
    """As jaxlie does it."""
    with catena.as_jax():
        from jax._src.tree_util import _registry

        for tree in ({"b": 1, "a": 2}, (1, 2), catena.tree_util.Partial(max, 1)):
            assert type(tree) in _registry
            children, data = _registry[type(tree)].to_iter(tree)
            assert catena.tree.leaves(_registry[type(tree)].from_iter(data, children)) == catena.tree.leaves(tree)
        assert int not in _registry


def test_a_rule_in_operations_from_private_modules():
    """As JAX's tutorial on primitives writes it."""
    with catena.as_jax():
        from jax._src import api
        from jax._src.lib.mlir.dialects import hlo
        from jax.extend.core import Primitive
        from jax.interpreters import mlir

        muladd_p = Primitive("muladd")
        muladd_p.def_abstract_eval(lambda x, *_: x)
        mlir.register_lowering(
            muladd_p, lambda ctx, x, y, z: [hlo.AddOp(hlo.MulOp(x, hlo.abs(hlo.NegOp(y))), z).result], platform="cpu"
        )
        assert float(api.jit(muladd_p.bind)(2.0, 3.0, 4.0)) == 10.0


def test_compiling_can_be_forbidden(monkeypatch):
    """As chex.restrict_backends does it."""

    def forbid(backend):
        raise RuntimeError(f"not on {backend.platform}")

    with catena.as_jax():
        compiler = importlib.import_module("jax._src.compiler")
        f = catena.jit(lambda x: x + 1)
        with monkeypatch.context() as patch:
            patch.setattr(compiler, "backend_compile_and_load", forbid)
            with pytest.raises(RuntimeError, match="not on cpu"):
                f(1.0)
        assert f(1.0) == 2


def test_every_private_name_is_there():
    with catena.as_jax():
        for name, names in private.NAMES.items():
            module = importlib.import_module(name)
            for key in () if isinstance(names, str) else names:
                assert getattr(module, key) is not None


def test_the_functions_of_a_generator_are_private_names():
    with catena.as_jax():
        threefry = importlib.import_module("jax._src.random.threefry2x32")
        key = threefry.threefry_seed(catena.numpy.int32(7))
        assert (
            threefry.threefry_split(key, (3,)).tolist()
            == catena.random.key_data(catena.random.split(catena.random.key(7), 3)).tolist()
        )


def test_private_modules_are_attributes_as_long_as_the_alias_is_there():
    with catena.as_jax():
        import jax

        assert jax._src.pjit.jit_p is catena.extend.core.primitives.jit_p
        with pytest.raises(AttributeError, match="jax._src.pjit.nothing is private to JAX"):
            jax._src.pjit.nothing  # noqa: B018
    assert not hasattr(catena, "_src")


def test_run_a_script(tmp_path):
    (tmp_path / "neighbour.py").write_text("x = 1")
    (tmp_path / "script.py").write_text("import neighbour\n" + PROGRAM)
    assert python("-m", "catena", "run", str(tmp_path / "script.py"), "--steps", "3") == (
        "catena 1.0 ['--steps', '3'] __main__",
        "",
    )


def test_the_program_in_the_readme(tmp_path):
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    program, shown = re.search(r"```python\n(# fit.py\n.*?)```.*?fit.py\n(.*?)\n```", readme, re.DOTALL).groups()
    (tmp_path / "fit.py").write_text(program)
    assert python("-m", "catena", "run", str(tmp_path / "fit.py")) == (shown, "")


def test_tracebacks_of_what_is_run_begin_in_the_program(tmp_path):
    (tmp_path / "script.py").write_text("import jax\njax.grad(lambda x: x)(1)\n")
    said = python("-m", "catena", "run", "script.py", cwd=tmp_path)[1]
    assert said.count("  File ") == 1 and 'File "script.py", line 2' in said


def test_run_a_module(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    assert python("-m", "catena", "run", "-m", "program", "a", cwd=tmp_path) == ("catena 1.0 ['a'] __main__", "")


def test_run_the_text_of_a_program(tmp_path):
    (tmp_path / "helper.py").write_text("answer = 42")
    text = "import sys, jax, helper; print(jax.__name__, helper.answer, sys.argv, sys.path[0] == '', __name__)"
    printed = "catena 42 ['-c', 'a'] True __main__"
    assert python("-m", "catena", "run", "-c", text, "a", cwd=tmp_path) == (printed, "")


def test_processes_that_a_program_starts_have_it_too(tmp_path):
    (tmp_path / "script.py").write_text(
        """
import multiprocessing
import jax.numpy as jnp

def square(x):
    import jax
    return jax.__name__, float(jnp.square(x))

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square, [3.0]))
"""
    )
    assert python("-m", "catena", "run", str(tmp_path / "script.py")) == ("[('catena', 9.0)]", "")


def test_run_says_what_is_wrong(tmp_path):
    printed, said = python("-m", "catena", "explain", "absent.py", cwd=tmp_path)
    assert "there is no file 'absent.py'" in said and not printed
    assert "a script, -m and a module, or -c and a program is needed" in python("-m", "catena", "run")[1]


def test_the_switch_of_an_environment(tmp_path):
    assert "written" in install_alias(str(tmp_path))
    start = (
        f"import site; site.addsitedir({str(tmp_path)!r}); import jax, jaxlib; print(jax.__name__, jaxlib.__version__)"
    )
    assert python("-c", start) == (f"catena {catena.__version__}", "")
    assert "removed" in uninstall_alias(str(tmp_path))
    assert "There is no" in uninstall_alias(str(tmp_path))


def test_backends_are_there_once_devices_are_used():
    program = (
        "import jax; from jax._src import xla_bridge as b; print(len(b._backends)); jax.devices(); print(*b._backends)"
    )
    assert python("-c", f"import catena; catena.as_jax(); {program}") == ("0\ncpu", "")
