"""Signatures as ``help`` shows them name what users can name: no path into the package, no long union."""

import importlib
import inspect
import re

import pytest

MODULES = [
    "catena", "catena.numpy", "catena.numpy.linalg", "catena.numpy.fft", "catena.lax", "catena.lax.linalg",
    "catena.random", "catena.nn", "catena.nn.initializers", "catena.tree", "catena.tree_util", "catena.debug",
    "catena.dtypes", "catena.ad_checkpoint", "catena.checkpoint_policies", "catena.custom_derivatives",
    "catena.flatten_util", "catena.sharding", "catena.stages", "catena.typing", "catena.errors",
]  # fmt: skip
ALIASES = {  # of types, in the words of JAX's signatures
    "Arrays", "Axes", "Axis", "Flatten", "Initializer", "IsLeaf", "KeyPath", "KeyEntry", "PrecisionLike", "Range", "Slice", "Token",
    "Sections", "Shape", "Unflatten", "ConvGeneralDilatedDimensionNumbers", "DotDimensionNumbers",
}  # fmt: skip
OF_PYTHON = {"Any", "BinaryIO", "Callable", "Hashable", "Iterable", "PathLike", "Sequence", "None", "True", "False"}
TYPE_VARIABLES = set("CPRT")
RESULTS = {"UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult"}
RESULTS |= {"UserContext", "BlockScaleConfig", "Literal", "Sequence"}  # what make_user_context and nn give and take
RESULTS |= {"EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult"}  # named tuples, as NumPy's


def public(module: str) -> dict:
    found = importlib.import_module(module)
    return {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}


@pytest.fixture(scope="module")
def known() -> set:
    """Every public name, every alias."""
    return {name for module in MODULES for name in public(module)} | ALIASES | OF_PYTHON | TYPE_VARIABLES | RESULTS


def annotations(signature: inspect.Signature):
    found = [signature.return_annotation, *(p.annotation for p in signature.parameters.values())]
    return [inspect.formatannotation(a) for a in found if a is not inspect.Signature.empty]


@pytest.mark.parametrize("module", MODULES)
def test_signatures_have_public_names_only(module, known):
    wrong = []
    for name, function in public(module).items():
        if inspect.ismodule(function) or isinstance(function, type) or not callable(function):
            continue
        try:
            signature = inspect.signature(function)
        except ValueError:  # of functions written in C
            continue
        for text in annotations(signature):
            text = text.strip("'")
            names = re.findall(r"[A-Za-z_][\w.]*", text)
            hidden = [n for n in names if n.startswith("catena.") or n[0].isupper() and n.split(".")[-1] not in known]
            if hidden or text.count("|") > 4:
                wrong.append(f"{name}: {text}")
    assert not wrong
