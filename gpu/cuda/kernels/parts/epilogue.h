/* What a product's results go through on their way to c, where the kernel that
 * multiplies does that (see gpu_epilogue in backend.h):
 *
 *     y = limited(x scale + beta u)   or   y = limited(x scale (beta u))
 *
 * x is the result, rounded to f32, u an element of a matrix that is as large as
 * c or is broadcast to it, or 1; limited is maximum with low, then minimum with
 * high. What a program leaves out has the factor 1, the addend -0, the limits
 * -Inf and Inf, which change no bit. So there is one form for A B + c, 2 (A B),
 * c - 0.1 (A B), maximum(A B + row, 0) and their like, without a branch for
 * each; a program of another form runs behind the product.
 *
 * Each step rounds by itself, as it does in the program: nothing here may be
 * contracted, whatever a file is compiled with. What is computed a second time
 * (split16's uncertain results) goes through it a second time, from x on; so c
 * must not lie where u does.
 *
 * Saved is a pass over c: writing and reading it, and a launch. Limited by the
 * latency of u: kernels ask for many of its elements at once, ahead of what
 * they work out meanwhile. Kernels that have an epilogue are instances of their
 * own, so that those without one stay as they are. */
#ifndef GPU_CUDA_EPILOGUE_H
#define GPU_CUDA_EPILOGUE_H

#include "kernel.h"
#include "op_macros.h"

typedef struct epilogue {
    const float *with; /* u, for element (i, j) at i row + j col; NULL: 1 */
    int64_t row, col;  /* col is 0 or 1 */
    float scale, beta, low, high;
    int is_factor; /* is beta u a factor? else it is added */
    int is_wide;   /* does u take 16-byte reads, as far as c does? */
    int changes;   /* 0: it gives x */
} epilogue;

/* The epilogue that gives x. */
epilogue gpu_cuda_no_epilogue(void);

/* p's epilogue in that form, for oriented, which gpu_cuda_begin_matmul made of
 * p. Returns whether it has the form; then the kernel is to set is_done. */
int gpu_cuda_find_epilogue(const gpu_gemm *p, const gpu_gemm *oriented,
                           epilogue *out);

/* --- in kernels --------------------------------------------------------- */

/* u for element (i, j), which exists. */
__device__ __forceinline__ float read_u(const epilogue &e, int64_t i, int64_t j)
{
    return e.with ? e.with[i * e.row + j * e.col] : 1;
}

/* u for four neighbours in a row, into registers from the first. */
__device__ __forceinline__ float4 read_four_u(const epilogue &e, int64_t i,
                                              int64_t j)
{
    const float *u = e.with + i * e.row + j * e.col;
    float x = 1, y = 1, z = 1, w = 1;
    if (e.is_wide)
        asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                     : "l"(u)
                     : "memory");
    else if (e.with) {
        x = u[0];
        y = u[e.col];
        z = u[2 * e.col];
        w = u[3 * e.col];
    }
    return make_float4(x, y, z, w);
}

/* A result's way to c. */
__device__ __forceinline__ float finish_result(const epilogue &e, float x,
                                               float u)
{
    float with = __fmul_rn(e.beta, u);
    x = __fmul_rn(x, e.scale);
    x = e.is_factor ? __fmul_rn(x, with) : __fadd_rn(x, with);
    x = LARGER(x, e.low);
    return SMALLER(x, e.high);
}

__device__ __forceinline__ float4 finish_four(const epilogue &e, float4 x,
                                              float4 u)
{
    return make_float4(finish_result(e, x.x, u.x), finish_result(e, x.y, u.y),
                       finish_result(e, x.z, u.z), finish_result(e, x.w, u.w));
}

#endif
