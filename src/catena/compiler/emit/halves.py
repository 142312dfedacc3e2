"""What LLVM calls where a processor has no instructions between f16 and f32: elsewhere a compiler's own library has it.

The codes of f16, read as integers, are in the order of its positive values, as those of f32 are: see `small_floats`.
"""

TEXT = """
define hidden float @__extendhfsf2(half %x) nounwind {
  %short = bitcast half %x to i16
  %code = zext i16 %short to i32
  %size = and i32 %code, 32767
  %sign = shl i32 %code, 16
  %negative = and i32 %sign, -2147483648
  %moved = shl i32 %size, 13
  %normal = add i32 %moved, 939524096
  %above = add i32 %moved, 1879048192
  %count = uitofp i32 %size to float
  %scaled = fmul float %count, 0x3E70000000000000
  %small = bitcast float %scaled to i32
  %is_small = icmp ult i32 %size, 1024
  %finite = select i1 %is_small, i32 %small, i32 %normal
  %is_finite = icmp ult i32 %size, 31744
  %is_nan = icmp ugt i32 %size, 31744
  %quiet = or i32 %above, 4194304
  %infinite = select i1 %is_nan, i32 %quiet, i32 %above
  %chosen = select i1 %is_finite, i32 %finite, i32 %infinite
  %bits = or i32 %chosen, %negative
  %y = bitcast i32 %bits to float
  ret float %y
}
define hidden half @__truncsfhf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %size = and i32 %bits, 2147483647
  %dropped = lshr i32 %size, 13
  %odd = and i32 %dropped, 1
  %half = add i32 %size, 4095
  %up = add i32 %half, %odd
  %moved = lshr i32 %up, 13
  %normal = sub i32 %moved, 114688
  %absolute = bitcast i32 %size to float
  %laid = fadd float %absolute, 5.0e-01
  %laid_bits = bitcast float %laid to i32
  %small = sub i32 %laid_bits, 1056964608
  %is_small = icmp ult i32 %size, 947912704
  %code = select i1 %is_small, i32 %small, i32 %normal
  %too_large = icmp ugt i32 %size, 1199566847
  %bounded = select i1 %too_large, i32 31744, i32 %code
  %is_nan = icmp ugt i32 %size, 2139095040
  %payload = and i32 %dropped, 511
  %quiet = or i32 %payload, 32256
  %chosen = select i1 %is_nan, i32 %quiet, i32 %bounded
  %shifted = lshr i32 %bits, 16
  %sign = and i32 %shifted, 32768
  %whole = or i32 %chosen, %sign
  %short = trunc i32 %whole to i16
  %y = bitcast i16 %short to half
  ret half %y
}
"""
