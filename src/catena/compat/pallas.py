"""The modules of JAX's Pallas, kernels of GPUs and TPUs, as names alone: libraries import them at their top (Keras,
jax-md, folx) and use them where there are such machines. Whoever uses a name in them here is told what it is about.
"""

from __future__ import annotations

ROOT = "jax.experimental.pallas"
# Package -> the modules in it.
_WITHIN = {
    "": "fuser mosaic_gpu ops tpu tpu_sc triton",
    ".ops": "gpu tpu",
    ".ops.gpu": (
        "all_gather_mgpu attention attention_mgpu blackwell_matmul_mgpu blackwell_ragged_dot_mgpu "
        "collective_matmul_mgpu decode_attention hopper_matmul_mgpu hopper_mixed_type_matmul_mgpu layer_norm "
        "paged_attention ragged_dot_mgpu reduce_scatter_mgpu rms_norm softmax transposed_ragged_dot_mgpu"
    ),
    ".ops.tpu": (
        "all_gather example_kernel flash_attention matmul megablox paged_attention ragged_paged_attention random "
        "splash_attention"
    ),
    ".ops.tpu.megablox": "common gmm ops",
    ".ops.tpu.paged_attention": "paged_attention_kernel quantization_utils util",
    ".ops.tpu.ragged_paged_attention": "kernel tuned_block_sizes",
    ".ops.tpu.random": "philox prng_utils threefry",
    ".ops.tpu.splash_attention": "splash_attention_kernel splash_attention_mask splash_attention_mask_info",
}

MODULES = (ROOT, *(f"{ROOT}{package}.{name}" for package, names in _WITHIN.items() for name in names.split()))
