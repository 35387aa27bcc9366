/* split16's third part where the kernel that multiplied has no blocks left to
 * wait for each other: what is not certain is computed again (split_certify.h)
 * in a launch of its own. Where f64 is slow and the product large, the simt
 * kernel behind this one does that: its gate opens. Any GPU. */
#include "split_certify.h"

__global__ void __launch_bounds__(REDO_THREADS)
    repair(const __grid_constant__ split_product p,
           const __grid_constant__ product<float> g)
{
    extern __shared__ __align__(16) double shared[];
    int thread = threadIdx.x;
    let_next_start();
    wait_for_previous();
    unsigned count = p.tickets[SPLIT_COUNT];
    int again = is_to_redo(p, count);
    if (blockIdx.x == 0 && thread == 0)
        *p.gate = again;
    if (count == 0 && !again)
        return;
    __syncthreads(); /* the block has read the count */
    if (thread == 0 && count > 0)
        clear_count(p);
    mend<0>(p, g, count, again, thread, shared);
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
    return launch_behind(d, repair, dim3((unsigned)d->sms), REDO_THREADS,
                         REDO_BYTES, 1, *p, typed_product<float>(g));
}
