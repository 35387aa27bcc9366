/* Asynchronous copies from global to shared memory, past the registers. What
 * a thread started since its last end_copies is a group; it waits for its own
 * groups alone. For code from sm_80 on. */
#ifndef GPU_CUDA_COPIES_H
#define GPU_CUDA_COPIES_H

#include <stdint.h>

/* Copies SIZE bytes (16 or 8), the first so many of them real, the rest zeros.
 * `to`: an address in shared memory. 16 bytes go past the first-level cache,
 * unless they are to stay there for others. */
template <int SIZE, bool CACHED = SIZE != 16>
__device__ __forceinline__ void copy_async(uint32_t to, const void *from,
                                           int bytes)
{
    static_assert(SIZE == 16 || CACHED);
    if (CACHED)
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to),
                     "l"(from), "r"(bytes), "n"(SIZE)
                     : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                     "l"(from), "r"(bytes)
                     : "memory");
}

/* What was started since the last call is a group, even where it is nothing. */
__device__ __forceinline__ void end_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most PENDING of this thread's newest groups are under way. */
template <int PENDING> __device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Waits for all of them, those too that brought only zeros. */
__device__ __forceinline__ void wait_for_all_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

#endif
