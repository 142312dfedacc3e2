"""Dtypes: the ones NumPy lacks, their kinds, and their promotion (``jax.dtypes``)."""

from catena.core.dtypes import TypePromotionError as TypePromotionError
from catena.core.dtypes import bfloat16 as bfloat16
from catena.core.dtypes import canonicalize_dtype as canonicalize_dtype
from catena.core.dtypes import extended as extended
from catena.core.dtypes import float0 as float0
from catena.core.dtypes import issubdtype as issubdtype
from catena.core.dtypes import itemsize_bits as itemsize_bits
from catena.core.dtypes import prng_key as prng_key
from catena.core.dtypes import result_type as result_type
from catena.core.dtypes import scalar_type_of as scalar_type_of
