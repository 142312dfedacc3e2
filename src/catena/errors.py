"""The exceptions that catena raises."""

from catena.core.errors import CompileError as CompileError
from catena.core.errors import ConcretizationTypeError as ConcretizationTypeError
from catena.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from catena.core.errors import JAXIndexError as JAXIndexError
from catena.core.errors import JaxprTypeError as JaxprTypeError
from catena.core.errors import JaxRuntimeError as JaxRuntimeError
from catena.core.errors import JAXTypeError as JAXTypeError
from catena.core.errors import KeyReuseError as KeyReuseError
from catena.core.errors import LeakedTracerError as LeakedTracerError
from catena.core.errors import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from catena.core.errors import TracerArrayConversionError as TracerArrayConversionError
from catena.core.errors import TracerBoolConversionError as TracerBoolConversionError
from catena.core.errors import TracerIntegerConversionError as TracerIntegerConversionError
from catena.core.errors import UnexpectedTracerError as UnexpectedTracerError
