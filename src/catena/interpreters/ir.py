"""Types, attributes and programs: what rules ask their values for, and write (``mlir.ir``)."""

from catena.core.unbuilt import absent as _absent
from catena.interpreters.ir_types import ArrayAttr as ArrayAttr
from catena.interpreters.ir_types import Attribute as Attribute
from catena.interpreters.ir_types import BF16Type as BF16Type
from catena.interpreters.ir_types import BoolAttr as BoolAttr
from catena.interpreters.ir_types import ComplexType as ComplexType
from catena.interpreters.ir_types import Context as Context
from catena.interpreters.ir_types import DenseElementsAttr as DenseElementsAttr
from catena.interpreters.ir_types import DenseI64ArrayAttr as DenseI64ArrayAttr
from catena.interpreters.ir_types import DictAttr as DictAttr
from catena.interpreters.ir_types import F16Type as F16Type
from catena.interpreters.ir_types import F32Type as F32Type
from catena.interpreters.ir_types import F64Type as F64Type
from catena.interpreters.ir_types import FlatSymbolRefAttr as FlatSymbolRefAttr
from catena.interpreters.ir_types import Float4E2M1FNType as Float4E2M1FNType
from catena.interpreters.ir_types import Float6E2M3FNType as Float6E2M3FNType
from catena.interpreters.ir_types import Float6E3M2FNType as Float6E3M2FNType
from catena.interpreters.ir_types import Float8E3M4Type as Float8E3M4Type
from catena.interpreters.ir_types import Float8E4M3B11FNUZType as Float8E4M3B11FNUZType
from catena.interpreters.ir_types import Float8E4M3FNType as Float8E4M3FNType
from catena.interpreters.ir_types import Float8E4M3FNUZType as Float8E4M3FNUZType
from catena.interpreters.ir_types import Float8E4M3Type as Float8E4M3Type
from catena.interpreters.ir_types import Float8E5M2FNUZType as Float8E5M2FNUZType
from catena.interpreters.ir_types import Float8E5M2Type as Float8E5M2Type
from catena.interpreters.ir_types import Float8E8M0FNUType as Float8E8M0FNUType
from catena.interpreters.ir_types import FloatAttr as FloatAttr
from catena.interpreters.ir_types import FloatType as FloatType
from catena.interpreters.ir_types import FunctionType as FunctionType
from catena.interpreters.ir_types import IntegerAttr as IntegerAttr
from catena.interpreters.ir_types import IntegerType as IntegerType
from catena.interpreters.ir_types import RankedTensorType as RankedTensorType
from catena.interpreters.ir_types import ShapedType as ShapedType
from catena.interpreters.ir_types import StringAttr as StringAttr
from catena.interpreters.ir_types import TokenType as TokenType
from catena.interpreters.ir_types import Type as Type
from catena.interpreters.ir_types import TypeAttr as TypeAttr
from catena.interpreters.ir_types import UnitAttr as UnitAttr
from catena.interpreters.ir_types import Value as Value
from catena.interpreters.modules import Module as Module

_absent(globals())
