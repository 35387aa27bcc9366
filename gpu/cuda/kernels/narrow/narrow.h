/* What the rungs bf16 and tf32 share: f32 operands rounded to the tensor
 * cores' own types, multiplied there, and added in f32.
 *
 * matmul_narrow.cu has the rungs and the way of a product; narrow_planes.cu
 * rounds operands into planes; narrow_hopper.cu multiplies these on sm_90,
 * narrow_mma.cu, by mma.sync, elsewhere from sm_80 on.
 *
 * The tensor copy engine brings lines of neighbours. bf16 wants a along k and
 * b along n; tf32 wants both along k, as wgmma reads no other order of it. */
#ifndef GPU_CUDA_NARROW_H
#define GPU_CUDA_NARROW_H

#include "epilogue.h"

typedef enum narrow_kind { NARROW_BF16, NARROW_TF32 } narrow_kind;

/* An operand as it is multiplied: lines that begin on 16 bytes. */
typedef struct narrow_plane {
    void *data;                   /* bf16 or f32 */
    int64_t lines, length, pitch; /* elements */
    int is_along_k;               /* else the lines run along n */
    int is_direct;                /* the operand itself, rounded on its way */
} narrow_plane;

/* The plane of an operand; its data is set later, unless it is direct. Only
 * Hopper's copy engine rounds. */
narrow_plane gpu_cuda_narrow_plane(const cuda_device *d, narrow_kind kind,
                                   const gpu_view *v, int is_a);
size_t gpu_cuda_narrow_bytes(narrow_kind kind, const narrow_plane *p);

/* Rounds the operands that are not direct: one launch, or none. */
gpu_status gpu_cuda_narrow_round(cuda_device *d, narrow_kind kind,
                                 const gpu_gemm *g, const narrow_plane *a,
                                 const narrow_plane *b);

/* c = alpha a b + beta c, or where there is an epilogue c = alpha a b, which
 * goes through it. */
typedef struct narrow_product {
    narrow_kind kind;
    narrow_plane a, b;
    float *c;
    int64_t m, n, k, c_row, c_col;
    float alpha, beta;
    epilogue then;  /* on Hopper alone */
    float *partial; /* workspace, of as many bytes as was asked for */
} narrow_product;

size_t gpu_cuda_narrow_workspace(const cuda_device *d, const narrow_product *p);
gpu_status gpu_cuda_narrow_hopper(cuda_device *d, const narrow_product *p);
gpu_status gpu_cuda_narrow_mma(cuda_device *d, const narrow_product *p);

#endif
