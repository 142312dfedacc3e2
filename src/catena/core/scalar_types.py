"""Scalar types: ``jnp.float32`` and its kin, classes that stand for a dtype and, called, make an array of it.

They compare and hash like NumPy's scalar type of the same name, so ``jnp.float32 == np.float32``, and carry a
``dtype``, so NumPy takes them wherever it takes a dtype.
"""

import ml_dtypes
import numpy as np

from catena.core.traceback import shorten


def _no_constructor(x, dtype):
    raise RuntimeError(f"import catena.numpy before making arrays by calling a scalar type such as {dtype}")


class ScalarType(type):
    """The class of scalar types.

    ``ScalarType.make_array`` is the function ``(x, dtype) -> Array`` behind the call; ``catena.numpy``
    assigns it once, because core knows nothing of the functions that make arrays.
    """

    dtype: np.dtype
    make_array = staticmethod(_no_constructor)

    def __call__(cls, x):
        try:
            return ScalarType.make_array(x, cls.dtype)
        except Exception as error:
            shorten(error)
            raise

    def __hash__(cls):
        return hash(cls.dtype.type)

    def __eq__(cls, other):
        if isinstance(other, np.dtype):
            return cls.dtype == other
        return cls is other or cls.dtype.type is other

    def __ne__(cls, other):
        return not cls == other

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.dtype.type)


def _scalar_type(numpy_class) -> ScalarType:
    name = np.dtype(numpy_class).name
    doc = f"Make an array of dtype {name} from ``x``; also stands for that dtype wherever one is asked for."
    members = {"dtype": np.dtype(numpy_class), "__module__": "catena.numpy", "__doc__": doc}
    return ScalarType(name, (), members)


bool_ = _scalar_type(np.bool_)
int1 = _scalar_type(ml_dtypes.int1)
int2 = _scalar_type(ml_dtypes.int2)
int4 = _scalar_type(ml_dtypes.int4)
int8 = _scalar_type(np.int8)
int16 = _scalar_type(np.int16)
int32 = _scalar_type(np.int32)
int64 = _scalar_type(np.int64)
uint1 = _scalar_type(ml_dtypes.uint1)
uint2 = _scalar_type(ml_dtypes.uint2)
uint4 = _scalar_type(ml_dtypes.uint4)
uint8 = _scalar_type(np.uint8)
uint16 = _scalar_type(np.uint16)
uint32 = _scalar_type(np.uint32)
uint64 = _scalar_type(np.uint64)
float4_e2m1fn = _scalar_type(ml_dtypes.float4_e2m1fn)
float6_e2m3fn = _scalar_type(ml_dtypes.float6_e2m3fn)
float6_e3m2fn = _scalar_type(ml_dtypes.float6_e3m2fn)
float8_e3m4 = _scalar_type(ml_dtypes.float8_e3m4)
float8_e4m3 = _scalar_type(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = _scalar_type(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = _scalar_type(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = _scalar_type(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = _scalar_type(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = _scalar_type(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _scalar_type(ml_dtypes.float8_e8m0fnu)
bfloat16 = _scalar_type(ml_dtypes.bfloat16)
float16 = _scalar_type(np.float16)
float32 = _scalar_type(np.float32)
float64 = _scalar_type(np.float64)
complex64 = _scalar_type(np.complex64)
complex128 = _scalar_type(np.complex128)

bool = bool_  # noqa: A001
int_ = int64
uint = uint64
float_ = double = float64
single = float32
complex_ = cdouble = complex128
csingle = complex64
