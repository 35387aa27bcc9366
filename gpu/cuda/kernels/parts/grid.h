/* How the blocks of a grid wait for each other: all must run at one time. */
#ifndef GPU_CUDA_GRID_H
#define GPU_CUDA_GRID_H

/* One thread says that its block has come this far. The first block's step
 * completes those of the others to 2^31: whenever all have come, the ticket's
 * high bit changes, and the rest is what it was. What the thread has seen of
 * its block's writes is seen by all who wait. */
__device__ __forceinline__ unsigned grid_arrive(unsigned *ticket)
{
    unsigned step = blockIdx.x == 0 ? 0x80000001u - gridDim.x : 1;
    __threadfence();
    return atomicAdd(ticket, step);
}

/* And waits for the others; arrived is what arriving gave. */
__device__ __forceinline__ void grid_wait(unsigned *ticket, unsigned arrived)
{
    unsigned now;
    do
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(now)
                     : "l"(ticket)
                     : "memory");
    while (!((now ^ arrived) >> 31));
}

#endif
