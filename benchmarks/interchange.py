"""Arrays handed to other libraries and taken from them, on JAX and on catena: what is shared, what is accepted.

    python benchmarks/interchange.py    # PyTorch, pandas, scikit-learn, matplotlib, xarray, the array API's tools

`make interchange` calls this. It uses the environments of `ecosystem.py`, with these libraries in them.
"""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

# What torch asks for a file on disk or an index for: the processor's build is enough.
LIBRARIES = (
    "torch==2.13.0 pandas==3.1.1 scikit-learn xarray matplotlib array-api-compat array-api-strict numpy scipy".split()
)
CHECKS: dict[str, Callable[[], str]] = {}


def check(fun: Callable[[], str]) -> Callable[[], str]:
    """A check: its docstring says what it is about, its result what was seen."""
    CHECKS[fun.__doc__] = fun
    return fun


def shared(yes: bool) -> str:
    return "shares memory" if yes else "copies"


TORCH_DTYPES = "float32 float16 bfloat16 int32 int8 uint8 bool complex64 float8_e4m3fn float8_e5m2".split()


@check
def to_torch() -> str:
    """torch.from_dlpack(array)."""
    import jax.numpy as jnp
    import torch

    kept = {}
    for name in TORCH_DTYPES:
        x = jnp.arange(6).reshape(2, 3).astype(name)
        tensor = torch.from_dlpack(x)
        assert tensor.dtype == getattr(torch, name) and tensor.float().tolist() == x.astype("float32").tolist(), name
        kept[name] = tensor.data_ptr() == x.unsafe_buffer_pointer()
    return f"{shared(all(kept.values()))}, {len(kept)} dtypes"


@check
def from_torch() -> str:
    """jax.dlpack.from_dlpack(tensor)."""
    import jax
    import torch

    kept = {}
    for name in TORCH_DTYPES:
        tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
        x = jax.dlpack.from_dlpack(tensor)
        assert x.dtype == name and x.astype("float32").tolist() == tensor.float().tolist(), name
        kept[name] = tensor.data_ptr() == x.unsafe_buffer_pointer()
    return f"{shared(all(kept.values()))}, {len(kept)} dtypes"


@check
def from_torch_views() -> str:
    """jax.dlpack.from_dlpack of transposed and offset tensors."""
    import jax
    import torch

    tensor = torch.arange(24.0).reshape(4, 6)
    said = []
    for view in (tensor.T, tensor[1:, ::2], tensor[:, 1:]):
        x = jax.dlpack.from_dlpack(view)
        assert x.tolist() == view.tolist()
        said.append(x.unsafe_buffer_pointer() == view.data_ptr())
    return f"{sum(said)} of {len(said)} share memory"


@check
def gradients_of_torch() -> str:
    """A layer of PyTorch inside jax.grad, by pure_callback and custom_vjp."""
    import jax
    import jax.numpy as jnp
    import torch

    layer = torch.nn.Linear(3, 2)

    def run(x):
        return layer(torch.from_dlpack(x)).detach().numpy()

    def pull(x, ct):
        x = torch.from_dlpack(x).clone().requires_grad_()
        (grad,) = torch.autograd.grad(layer(x), x, torch.from_dlpack(ct).clone())
        return grad.numpy()

    @jax.custom_vjp
    def call(x):
        return jax.pure_callback(run, jax.ShapeDtypeStruct((2,), "float32"), x)

    call.defvjp(lambda x: (call(x), x), lambda x, ct: (jax.pure_callback(pull, x, x, ct),))
    found = jax.jit(jax.grad(lambda x: call(x).sum()))(jnp.ones(3))
    expected = layer.weight.detach().numpy().sum(0)
    assert abs(found - expected).max() < 1e-6
    return "equal to PyTorch's"


@check
def to_numpy() -> str:
    """np.asarray(array), np.from_dlpack(array), memoryview(array)."""
    import jax.numpy as jnp
    import numpy as np

    x = jnp.arange(6.0).reshape(2, 3)
    views = np.asarray(x), np.from_dlpack(x), np.asarray(memoryview(x))
    assert all(view.tolist() == x.tolist() and not view.flags.writeable for view in views)
    return shared(all(view.__array_interface__["data"][0] == x.unsafe_buffer_pointer() for view in views))


@check
def numpy_functions() -> str:
    """Functions of NumPy and SciPy, called with arrays."""
    import jax.numpy as jnp
    import numpy as np
    import scipy

    x = jnp.array([[4.0, 1.0], [1.0, 3.0]])
    assert np.linalg.inv(x).shape == scipy.linalg.expm(x).shape == (2, 2)
    assert np.sum(x) == 9 and np.add(x, 1).tolist() == (x + 1).tolist()
    distance = lambda y: float(jnp.sum((jnp.asarray(y) - 1) ** 2))  # noqa: E731
    assert scipy.optimize.minimize(distance, np.zeros(2), method="Nelder-Mead").success
    return "accepted"


@check
def to_pandas() -> str:
    """pandas: frames and series of arrays, and back."""
    import jax.numpy as jnp
    import pandas as pd

    frame = pd.DataFrame({"a": jnp.arange(3.0), "b": jnp.arange(3)})
    assert frame.dtypes.astype(str).tolist() == ["float32", "int32"]
    assert pd.Series(jnp.arange(3.0)).sum() == 3 and pd.DataFrame(jnp.ones((2, 2))).shape == (2, 2)
    assert jnp.asarray(frame["a"]).tolist() == jnp.array(frame["a"].to_numpy()).tolist() == [0, 1, 2]
    assert frame["a"].map(jnp.square).astype(float).tolist() == [0, 1, 4]
    return "accepted"


@check
def to_scikit_learn() -> str:
    """scikit-learn: fit and predict with arrays."""
    import jax
    import jax.numpy as jnp
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import accuracy_score
    from sklearn.model_selection import train_test_split
    from sklearn.tree import DecisionTreeClassifier

    x = jax.random.normal(jax.random.key(0), (50, 3))
    y = x @ jnp.array([1.0, 2.0, 3.0])
    assert LinearRegression().fit(x, y).score(x, y) > 0.999
    train, test, labels, expected = train_test_split(x, (y > 0).astype(int), random_state=0)
    assert accuracy_score(expected, DecisionTreeClassifier(random_state=0).fit(train, labels).predict(test)) > 0.5
    return "accepted"


@check
def to_matplotlib() -> str:
    """matplotlib: lines, images, histograms, error bars of arrays."""
    import jax.numpy as jnp
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    x = jnp.linspace(0, 1, 5)
    figure, axes = plt.subplots(1, 4)
    axes[0].plot(x, jnp.sin(x), label=jnp.float32(1))
    axes[1].imshow(jnp.ones((4, 4, 3)))
    axes[2].hist(x, bins=jnp.linspace(0, 1, 3))
    axes[3].errorbar(x, x, yerr=x[0] + 0.1)
    axes[3].set_ylim(x[0], x[-1])
    figure.canvas.draw()
    plt.close(figure)
    return "accepted"


@check
def to_xarray() -> str:
    """xarray: labelled arrays."""
    import jax.numpy as jnp
    import xarray as xr

    x = xr.DataArray(jnp.arange(6.0).reshape(2, 3), dims=("a", "b"), coords={"a": [10, 20]})
    assert float(x.sum()) == 15 and x.sel(a=20).values.tolist() == [3, 4, 5]
    assert (x + x.mean("b")).shape == (2, 3)
    return f"accepted, holds {type(x.data).__module__.partition('.')[0]} {type(x.data).__name__}"


@check
def array_api_compat() -> str:
    """array-api-compat knows the namespace of arrays."""
    import array_api_compat
    import jax.numpy as jnp

    x = jnp.arange(3.0)
    assert array_api_compat.is_jax_array(x) and array_api_compat.is_jax_namespace(jnp)
    assert array_api_compat.array_namespace(x) is jnp and array_api_compat.size(x) == 3
    assert array_api_compat.to_device(x, array_api_compat.device(x)).tolist() == [0, 1, 2]
    return "yes"


@check
def scipy_array_api() -> str:
    """SciPy with SCIPY_ARRAY_API=1 computes in the namespace of the arrays."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import scipy.ndimage
    import scipy.signal
    import scipy.stats

    x = jnp.linspace(0.1, 0.9, 5)
    functions = (
        (scipy.special.logsumexp, (x,)),
        (scipy.special.gammaln, (x,)),
        (scipy.stats.zscore, (x,)),
        (scipy.stats.skew, (x,)),
        (scipy.signal.detrend, (x,)),
        (scipy.fft.fft, (x,)),
        (scipy.ndimage.gaussian_filter, (x, 1.0)),
        (scipy.cluster.vq.whiten, (jnp.stack([x, x * x], 1),)),
    )
    for fun, arguments in functions:
        found, expected = fun(*arguments), fun(*map(np.asarray, arguments))
        assert isinstance(found, jax.Array) and np.allclose(found, expected, atol=1e-6), fun.__name__
    return f"arrays come back from {len(functions)} functions"


@check
def pickled() -> str:
    """Arrays, keys and trees through pickle, copy and multiprocessing's pickler."""
    import copy
    import pickle
    from multiprocessing.reduction import ForkingPickler

    import jax
    import jax.numpy as jnp

    tree = {"w": jnp.ones((2, 3), "bfloat16"), "k": jax.random.key(0), "s": jax.tree.structure([1, (2,)])}
    for back in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree), pickle.loads(ForkingPickler.dumps(tree))):
        assert back["w"].tolist() == tree["w"].tolist() and back["s"] == tree["s"]
        assert jax.random.bits(back["k"]) == jax.random.bits(tree["k"])
    return "equal"


def here() -> dict[str, str]:
    """What every check sees in this process."""
    warnings.simplefilter("ignore")
    os.environ["SCIPY_ARRAY_API"] = "1"  # before anybody imports SciPy
    seen = {}
    for what, fun in CHECKS.items():
        try:
            seen[what] = fun()
        except Exception as error:  # whatever a library does not like is the answer
            seen[what] = f"**{type(error).__name__}**: {(str(error).splitlines() or [''])[0][:120]}"
    return seen


def main() -> None:
    if sys.argv[1:] == ["--here"]:
        print("\n" + json.dumps(here()))
        return
    from ecosystem import environment  # in the processes that are measured, nothing but them is imported

    answers = {}
    for kind, start in (("catena", ["-m", "catena", "run"]), ("jax", [])):
        python = str(environment(kind))
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *LIBRARIES]
        subprocess.run(install, check=True)
        done = subprocess.run(
            [python, *start, str(Path(__file__).resolve()), "--here"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
        )
        answers[kind] = json.loads(done.stdout.strip().splitlines()[-1])
    print("| what | catena | JAX |\n|---|---|---|")
    for what in CHECKS:
        print(f"| {what} | {answers['catena'][what]} | {answers['jax'][what]} |")
    sys.exit(any("**" in seen for seen in answers["catena"].values()))


if __name__ == "__main__":
    main()
