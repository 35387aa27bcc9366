/* What kernels whose blocks form a cluster are built with: stores to another
 * block's shared memory that count themselves at a barrier there, and rows
 * that lie in registers. Needs sm_90. */
#ifndef GPU_CUDA_CLUSTER_H
#define GPU_CUDA_CLUSTER_H

#include "cuda_device.h"

constexpr int MOST_CLUSTER = 16; /* blocks; more than 8 is not portable */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HAS_CLUSTERS
#endif

#ifdef HAS_CLUSTERS
/* The same place in the shared memory of the block `rank`. */
__device__ __forceinline__ uint32_t remote_address(uint32_t local,
                                                   unsigned rank)
{
    uint32_t to;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(to)
                 : "r"(local), "r"(rank));
    return to;
}

__device__ __forceinline__ void send_four(uint32_t to, uint32_t full, float4 v)
{
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
        "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
        "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(full)
        : "memory");
}

/* Of the block's own, each of one arrival, for the whole cluster to see once it
 * has met. */
template <int N>
__device__ __forceinline__ void start_barriers(uint64_t (&full)[N], int thread)
{
    if (thread == 0)
        for (int b = 0; b < N; b++)
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(
                             shared_address(&full[b]))
                         : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* So many come at a barrier of the block's own. */
__device__ __forceinline__ void expect_bytes(uint64_t *full, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(
                     shared_address(full)),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void await_phase(uint64_t *barrier, unsigned phase)
{
    uint32_t done;
    do
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], "
            "%2;\nselp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(shared_address(barrier)), "r"(phase)
            : "memory");
    while (!done);
}

__device__ __forceinline__ void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* Good to an ulp, for what has a normal reciprocal. */
__device__ __forceinline__ float reciprocal(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r * (2 - x * r);
}

/* Good to an ulp, for what has a normal root. */
__device__ __forceinline__ float reciprocal_root(float x)
{
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r * (1.5f - 0.5f * x * r * r);
}

/* A row of W columns, to where 16 bytes begin. */
template <int W>
__device__ __forceinline__ void store_row(float *to, const float (&x)[W])
{
#pragma unroll
    for (int q = 0; q < W / 4; q++)
        *(float4 *)(to + 4 * q) =
            make_float4(x[4 * q], x[4 * q + 1], x[4 * q + 2], x[4 * q + 3]);
}
#endif

#endif
