/* What kernels for any GPU from sm_80 on are built with: asynchronous copies,
 * reads of 16 bytes, and grids whose blocks wait for each other. */
#ifndef GPU_CUDA_COPIES_H
#define GPU_CUDA_COPIES_H

#include <stdint.h>

/* --- asynchronous copies ----------------------------------------------------
 * From global to shared memory, past the registers. What a thread started since
 * its last end_copies is a group; it waits for its own groups alone. */

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

/* --- 16 bytes at a time -----------------------------------------------------
 * Wherever the elements lie. */

template <class T> struct alignas(16) vector {
    T at[16 / sizeof(T)];
};
template <class T> constexpr int WIDTH = 16 / sizeof(T);

/* How 16 bytes of a line are read: at once, as lines begin on such; out of the
 * two that hold them, as lines begin anywhere; or one by one, as there are
 * gaps. */
typedef enum reach { ALIGNED, ACROSS, APART } reach;

/* Elements before this one in the 16 bytes that hold it. */
template <class T> __host__ __device__ __forceinline__ int shift_of(const T *p)
{
    return (int)((uintptr_t)p / sizeof(T) % WIDTH<T>);
}

/* What is read only once leaves the first-level cache alone. */
template <class T>
__device__ __forceinline__ vector<T> load_once(const vector<T> *from)
{
    uint4 bits = __ldcg((const uint4 *)from);
    return *(vector<T> *)&bits;
}

/* WIDTH neighbours from the shift-th on, out of the two loads that hold them:
 * a's and b's elements. The shift of f64 is 1. */
__device__ __forceinline__ vector<float> join(vector<float> a, vector<float> b,
                                              int shift)
{
    float x = shift & 2 ? a.at[2] : a.at[0], y = shift & 2 ? a.at[3] : a.at[1];
    float z = shift & 2 ? b.at[0] : a.at[2], w = shift & 2 ? b.at[1] : a.at[3];
    float next = shift & 2 ? b.at[2] : b.at[0];
    if (shift & 1)
        return {{y, z, w, next}};
    return {{x, y, z, w}};
}

__device__ __forceinline__ vector<double> join(vector<double> a,
                                               vector<double> b, int)
{
    return {{a.at[1], b.at[0]}};
}

/* --- blocks that wait for each other ----------------------------------------
 * All of the grid must run at one time. */

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
