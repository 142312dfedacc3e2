"""The measured promotion tables, and the short names of dtypes in them."""

# The result of a binary operation with x64 on; a star marks weak types, those of Python scalars.
PROMOTION = """
-    b1    u8    u16   u32   u64   i8    i16   i32   i64   bf16 f16  f32  f64  c64  c128 i*    f*    c*
b1   b1    u8    u16   u32   u64   i8    i16   i32   i64   bf16 f16  f32  f64  c64  c128 i64*  f64*  c128*
u8   u8    u8    u16   u32   u64   i16   i16   i32   i64   bf16 f16  f32  f64  c64  c128 u8    f64*  c128*
u16  u16   u16   u16   u32   u64   i32   i32   i32   i64   bf16 f16  f32  f64  c64  c128 u16   f64*  c128*
u32  u32   u32   u32   u32   u64   i64   i64   i64   i64   bf16 f16  f32  f64  c64  c128 u32   f64*  c128*
u64  u64   u64   u64   u64   u64   f64*  f64*  f64*  f64*  bf16 f16  f32  f64  c64  c128 u64   f64*  c128*
i8   i8    i16   i32   i64   f64*  i8    i16   i32   i64   bf16 f16  f32  f64  c64  c128 i8    f64*  c128*
i16  i16   i16   i32   i64   f64*  i16   i16   i32   i64   bf16 f16  f32  f64  c64  c128 i16   f64*  c128*
i32  i32   i32   i32   i64   f64*  i32   i32   i32   i64   bf16 f16  f32  f64  c64  c128 i32   f64*  c128*
i64  i64   i64   i64   i64   f64*  i64   i64   i64   i64   bf16 f16  f32  f64  c64  c128 i64   f64*  c128*
bf16 bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16 f32  f32  f64  c64  c128 bf16  bf16  c64
f16  f16   f16   f16   f16   f16   f16   f16   f16   f16   f32  f16  f32  f64  c64  c128 f16   f16   c64
f32  f32   f32   f32   f32   f32   f32   f32   f32   f32   f32  f32  f32  f64  c64  c128 f32   f32   c64
f64  f64   f64   f64   f64   f64   f64   f64   f64   f64   f64  f64  f64  f64  c128 c128 f64   f64   c128
c64  c64   c64   c64   c64   c64   c64   c64   c64   c64   c64  c64  c64  c128 c64  c128 c64   c64   c64
c128 c128  c128  c128  c128  c128  c128  c128  c128  c128  c128 c128 c128 c128 c128 c128 c128  c128  c128
i*   i64*  u8    u16   u32   u64   i8    i16   i32   i64   bf16 f16  f32  f64  c64  c128 i64*  f64*  c128*
f*   f64*  f64*  f64*  f64*  f64*  f64*  f64*  f64*  f64*  bf16 f16  f32  f64  c64  c128 f64*  f64*  c128*
c*   c128* c128* c128* c128* c128* c128* c128* c128* c128* c64  c64  c64  c128 c64  c128 c128* c128* c128*
"""

# The same for narrow types, which mostly refuse.
NARROW_PROMOTION = """
-      b1     i1  u1  i2  u2  i4  u4  i8     u8     i32    bf16 f16 f32 e4m3fn e5m2 b11 f4  f6a f6b i*     f*     c*
b1     b1     i1  u1  i2  u2  i4  u4  i8     u8     i32    bf16 f16 f32 e4m3fn e5m2 b11 f4  f6a f6b i64*   f64*   c128*
i1     i1     i1  err err err err err err    err    err    err  err err err    err  err err err err i1     err    err
u1     u1     err u1  err err err err err    err    err    err  err err err    err  err err err err u1     err    err
i2     i2     err err i2  err err err err    err    err    err  err err err    err  err err err err i2     err    err
u2     u2     err err err u2  err err err    err    err    err  err err err    err  err err err err u2     err    err
i4     i4     err err err err i4  err err    err    err    err  err err err    err  err err err err i4     err    err
u4     u4     err err err err err u4  err    err    err    err  err err err    err  err err err err u4     err    err
i8     i8     err err err err err err i8     i16    i32    bf16 f16 f32 e4m3fn e5m2 b11 f4  f6a f6b i8     f64*   c128*
u8     u8     err err err err err err i16    u8     i32    bf16 f16 f32 e4m3fn e5m2 b11 f4  f6a f6b u8     f64*   c128*
i32    i32    err err err err err err i32    i32    i32    bf16 f16 f32 e4m3fn e5m2 b11 f4  f6a f6b i32    f64*   c128*
bf16   bf16   err err err err err err bf16   bf16   bf16   bf16 f32 f32 err    err  err err err err bf16   bf16   c64
f16    f16    err err err err err err f16    f16    f16    f32  f16 f32 err    err  err err err err f16    f16    c64
f32    f32    err err err err err err f32    f32    f32    f32  f32 f32 err    err  err err err err f32    f32    c64
e4m3fn e4m3fn err err err err err err e4m3fn e4m3fn e4m3fn err  err err e4m3fn err  err err err err e4m3fn e4m3fn err
e5m2   e5m2   err err err err err err e5m2   e5m2   e5m2   err  err err err    e5m2 err err err err e5m2   e5m2   err
b11    b11    err err err err err err b11    b11    b11    err  err err err    err  b11 err err err b11    b11    err
f4     f4     err err err err err err f4     f4     f4     err  err err err    err  err f4  err err f4     f4     err
f6a    f6a    err err err err err err f6a    f6a    f6a    err  err err err    err  err err f6a err f6a    f6a    err
f6b    f6b    err err err err err err f6b    f6b    f6b    err  err err err    err  err err err f6b f6b    f6b    err
i*     i64*   i1  u1  i2  u2  i4  u4  i8     u8     i32    bf16 f16 f32 e4m3fn e5m2 b11 f4  f6a f6b i64*   f64*   c128*
f*     f64*   err err err err err err f64*   f64*   f64*   bf16 f16 f32 e4m3fn e5m2 b11 f4  f6a f6b f64*   f64*   c128*
c*     c128*  err err err err err err c128*  c128*  c128*  c64  c64 c64 err    err  err err err err c128*  c128*  c128*
"""

SHORT = {
    "b1": "bool", "i1": "int1", "u1": "uint1",
    "i2": "int2", "i4": "int4", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u2": "uint2", "u4": "uint4", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f4": "float4_e2m1fn", "e4m3fn": "float8_e4m3fn", "e5m2": "float8_e5m2", "b11": "float8_e4m3b11fnuz",
    "f6a": "float6_e2m3fn", "f6b": "float6_e3m2fn",
    "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128",
}  # fmt: skip
X32 = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
PYTHON = {"i*": 1, "f*": 1.0, "c*": 1j}


def entries(table):
    """``(row, column, result)`` for every entry of a table above."""
    header, *rows = [line.split() for line in table.strip().splitlines()]
    return [(row[0], column, cell) for row in rows for column, cell in zip(header[1:], row[1:], strict=True)]
