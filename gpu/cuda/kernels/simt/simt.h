/* The plain FP32 product as other rungs launch it: a way out for what their own
 * arithmetic cannot do.
 *
 * matmul_simt.cu is the rung, in the order of a product: what a tile is made of
 * (shapes are template arguments: the patch of a thread, the warps of a block,
 * which way an operand lies), how slices come through the ring, the patch's
 * multiply-adds, the result, and the kernel; then the sum of parts of k, the
 * choice of a shape by a model of its time, the launches, the descriptor. */
#ifndef GPU_CUDA_SIMT_H
#define GPU_CUDA_SIMT_H

#include "epilogue.h"

/* c = alpha a b + beta c for an f32 product that came out of
 * gpu_cuda_begin_matmul; by way of an epilogue, if that changes anything and
 * beta is 0. With a gate (device memory) it is one launch that leaves c alone
 * when *gate is 0 after the work issued before; it may then use no scratch
 * memory, so what the caller keeps there stays. */
gpu_status gpu_cuda_simt_matmul(cuda_device *d, const gpu_gemm *oriented,
                                const epilogue *then, const int *gate);

#endif
