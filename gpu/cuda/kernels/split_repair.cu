/* split16's third part: results that the planes do not make certain.
 *
 * Where a row's elements span more than 2^17, the smallest lose bits when
 * they are cut; the matrix kernel notes every result for which that may show
 * (see split_product). A block computes each of them again, in f64. When
 * there are more of them than the list holds, or NaN or Inf in an operand,
 * the whole product is done again: right here (see split_redo.h), as each
 * further launch costs a microsecond or two, or where f64 is slow and the
 * product large, by the simt kernel behind this one, whose gate opens. */
#include "split_redo.h"

constexpr int THREADS = REDO_THREADS, WARPS = THREADS / 32;

/* By a whole block, in a fixed order; thread 0 gets the sum. */
__device__ __forceinline__ double exact_sum(const product<float> &g, int64_t i,
                                            int64_t j, double *shared)
{
    const float *a = g.a + i * g.a_row, *b = g.b + j * g.b_col;
    double sum = 0;
#pragma unroll 8
    for (int64_t k = threadIdx.x; k < g.k; k += THREADS)
        sum += (double)a[k * g.a_col] * (double)b[k * g.b_row];
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_down_sync(~0u, sum, apart);
    __syncthreads(); /* shared is free */
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = sum;
    __syncthreads(); /* the warps' sums are there */
    sum = 0;
    for (int w = 0; threadIdx.x == 0 && w < WARPS; w++)
        sum += shared[w];
    return sum;
}

/* The last block to have read the count zeroes it for the next product. */
__device__ __forceinline__ void clear_count(const split_product &p)
{
    __syncthreads(); /* this block has read it */
    if (threadIdx.x == 0 && atomicAdd(p.count + 1, 1) == gridDim.x - 1)
        p.count[0] = p.count[1] = 0;
}

__global__ void __launch_bounds__(THREADS)
    repair(const __grid_constant__ split_product p,
           const __grid_constant__ product<float> g)
{
    extern __shared__ __align__(16) double shared[];
    let_next_start();
    wait_for_previous();
    unsigned count = *p.count;
    int again = products_for(*p.a.facts, *p.b.facts) == 0 || count > p.capacity;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *p.gate = again;
    clear_count(p);
    if (again && p.redoes)
        redo_product<0>(p, g, (int)blockIdx.x, (int)gridDim.x, (int)threadIdx.x,
                        shared);
    for (unsigned e = blockIdx.x; e < count && !again; e += gridDim.x) {
        int64_t i = p.uncertain[e] / g.n, j = p.uncertain[e] % g.n;
        double sum = exact_sum(g, i, j, shared);
        if (threadIdx.x == 0)
            p.c[i * p.c_row + j * p.c_col] = (float)((double)p.alpha * sum);
    }
}

gpu_status gpu_cuda_split_repair(cuda_device *d, const split_product *p,
                                 const gpu_gemm *g)
{
    static int prepared;
    if (prepared != d->ordinal + 1)
        CHECK(d, cudaFuncSetAttribute(
                     repair, cudaFuncAttributeMaxDynamicSharedMemorySize,
                     REDO_BYTES));
    TRY(keep_division(d, (const void *)repair, &prepared));
    return launch_behind(d, repair, dim3((unsigned)d->sms), THREADS, REDO_BYTES,
                         1, *p, typed_product<float>(g));
}
