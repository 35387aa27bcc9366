/* Hopper's own instructions: barriers in shared memory, the tensor copy
 * engine, clusters, and wgmma. Used only in code for sm_90a; where a host has
 * another GPU, kernels built on this have an empty body (see WGMMA).
 * A barrier is 8 bytes of shared memory. */
#ifndef GPU_CUDA_HOPPER_H
#define GPU_CUDA_HOPPER_H

#include <cuda.h>
#include <stdint.h>
#include "cuda_device.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WGMMA 1
#endif

/* --- barriers ----------------------------------------------------------- */

__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
                 "r"(count)
                 : "memory");
}

/* Makes initialised barriers visible to the copy engine and the cluster. */
__device__ __forceinline__ void barriers_ready()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives and announces so many bytes that the copy engine will bring. */
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
        "r"(bytes)
        : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
}

/* Arrives at the same barrier of another block of the cluster. The plain form
 * is enough: what it orders is read by wgmma and written by the copy engine.
 * With .release.cluster it would compile to a fence of the whole GPU. */
__device__ __forceinline__ void barrier_arrive_at(uint32_t barrier,
                                                  uint32_t rank)
{
    asm volatile(
        "{.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(barrier),
        "r"(rank)
        : "memory");
}

__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t phase)
{
    uint32_t done;
    do {
        asm volatile("{.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(barrier), "r"(phase)
                     : "memory");
    } while (!done);
}

/* --- clusters and dependent launches ------------------------------------ */

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
}

__device__ __forceinline__ uint32_t cluster_rank()
{
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* cluster_sync in two halves, by whole warps: what lies between need not wait.
 * The first orders no writes but a barrier's initialisation. */
__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Where another block of the cluster has what lies at an address here. */
__device__ __forceinline__ uint32_t address_at(uint32_t address, uint32_t rank)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"(address), "r"(rank));
    return there;
}

/* Writes into another block; its barrier counts the 16 bytes as they come. */
__device__ __forceinline__ void send_to(uint32_t there, uint32_t barrier,
                                        float4 x)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(there),
                 "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(barrier)
                 : "memory");
}

/* --- the tensor copy engine: boxes from global to shared memory --------- */

__device__ __forceinline__ void copy_box3(uint32_t to, const CUtensorMap *map,
                                          uint32_t barrier, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
                 "[%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

__device__ __forceinline__ void copy_box4(uint32_t to, const CUtensorMap *map,
                                          uint32_t barrier, int x, int y, int z,
                                          int w)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
                 "[%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

/* To the same place in every block of the cluster that mask names. */
__device__ __forceinline__ void multicast_box3(uint32_t to,
                                               const CUtensorMap *map,
                                               uint32_t barrier, int x, int y,
                                               int z, uint16_t mask)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global"
                 ".mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(mask)
                 : "memory");
}

__device__ __forceinline__ void multicast_box4(uint32_t to,
                                               const CUtensorMap *map,
                                               uint32_t barrier, int x, int y,
                                               int z, int w, uint16_t mask)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global"
                 ".mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w),
                 "h"(mask)
                 : "memory");
}

/* --- wgmma: 64 x 128 or 64 x 64 += 64 x 16 times that, by 128 threads ---- */

__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* clang-format off */
#define GPU_ACC8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), \
    "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
    "+f"(d[i + 7])
#define GPU_ACC64(d) GPU_ACC8(d, 0), GPU_ACC8(d, 8), GPU_ACC8(d, 16), \
    GPU_ACC8(d, 24), GPU_ACC8(d, 32), GPU_ACC8(d, 40), GPU_ACC8(d, 48), \
    GPU_ACC8(d, 56)
#define GPU_ACC32(d) GPU_ACC8(d, 0), GPU_ACC8(d, 8), GPU_ACC8(d, 16), \
    GPU_ACC8(d, 24)
#define GPU_REGISTERS32 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define GPU_REGISTERS64 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
/* clang-format on */

/* Descriptors of operands in shared memory, swizzled in rows of 128 bytes. An
 * operand lies along k (rows of 64 k, one below the other) or along its span
 * (rows of 64 rows of a or columns of b, one for each k). The high word: 1024
 * bytes from one group of eight rows to the next. The low word: the address
 * in units of 16 bytes, and above it how far the next 64 of the span are. */
constexpr uint32_t ROWS_HIGH = 64u | 1u << 30;
constexpr uint32_t ALONG_K_LOW = 1u << 16, ALONG_SPAN_LOW = 512u << 16;
constexpr int ALONG_K = 0, ALONG_SPAN = 1;

__device__ __forceinline__ uint32_t low_word(uint32_t address, uint32_t stride)
{
    return (address & 0x3FFFF) >> 4 | stride;
}

/* d = a b + (keep ? d : 0); f16 in, f32 out. */
template <int A, int B>
__device__ __forceinline__ void wgmma_f16(float (&d)[64], uint32_t a,
                                          uint32_t b, int keep)
{
    asm volatile(
        "{.reg .pred p; .reg .b64 x, y; setp.ne.b32 p, %66, 0;\n"
        "mov.b64 x, {%64, %67}; mov.b64 y, {%65, %67};\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " GPU_REGISTERS64
        ", x, y, p, 1, 1, %68, %69;}"
        : GPU_ACC64(d)
        : "r"(a), "r"(b), "r"(keep), "n"(ROWS_HIGH), "n"(A), "n"(B));
}

template <int A, int B>
__device__ __forceinline__ void wgmma_f16(float (&d)[32], uint32_t a,
                                          uint32_t b, int keep)
{
    asm volatile(
        "{.reg .pred p; .reg .b64 x, y; setp.ne.b32 p, %34, 0;\n"
        "mov.b64 x, {%32, %35}; mov.b64 y, {%33, %35};\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " GPU_REGISTERS32
        ", x, y, p, 1, 1, %36, %37;}"
        : GPU_ACC32(d)
        : "r"(a), "r"(b), "r"(keep), "n"(ROWS_HIGH), "n"(A), "n"(B));
}

__device__ __forceinline__ void wgmma_bf16(float (&d)[64], uint32_t a,
                                           uint32_t b, int keep)
{
    asm volatile(
        "{.reg .pred p; .reg .b64 x, y; setp.ne.b32 p, %66, 0;\n"
        "mov.b64 x, {%64, %67}; mov.b64 y, {%65, %67};\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " GPU_REGISTERS64
        ", x, y, p, 1, 1, 0, 1;}"
        : GPU_ACC64(d)
        : "r"(a), "r"(b), "r"(keep), "n"(ROWS_HIGH));
}

/* Both along k; 8 of k at once. */
__device__ __forceinline__ void wgmma_tf32(float (&d)[64], uint32_t a,
                                           uint32_t b, int keep)
{
    asm volatile(
        "{.reg .pred p; .reg .b64 x, y; setp.ne.b32 p, %66, 0;\n"
        "mov.b64 x, {%64, %67}; mov.b64 y, {%65, %67};\n"
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 " GPU_REGISTERS64
        ", x, y, p, 1, 1;}"
        : GPU_ACC64(d)
        : "r"(a), "r"(b), "r"(keep), "n"(ROWS_HIGH));
}

/* Waits until at most PENDING groups are running. d is tied to the wait, so
 * that no read of it moves above. */
template <int PENDING>
__device__ __forceinline__ void wgmma_wait(float (&d)[64])
{
    asm volatile("wgmma.wait_group.sync.aligned %64;"
                 : GPU_ACC64(d)
                 : "n"(PENDING)
                 : "memory");
}

template <int PENDING>
__device__ __forceinline__ void wgmma_wait(float (&d)[32])
{
    asm volatile("wgmma.wait_group.sync.aligned %32;"
                 : GPU_ACC32(d)
                 : "n"(PENDING)
                 : "memory");
}

template <int COUNT> __device__ __forceinline__ void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* --- a ring of slots --------------------------------------------------------
 * They lie in shared memory; the tensor copy engine fills them while warps
 * read: the barriers, the way through the ring, and an order of tiles in which
 * it is filled from the L2 cache.
 *
 * A slot has two barriers. `full` opens when all bytes that were announced are
 * there; `empty` when everyone who reads the slot has given it back. Each opens
 * once a round, so waiting needs the round's parity, the phase. */

/* Addresses in shared memory: of slot 0, and of its barriers; the next slot's
 * are 8 bytes further on. */
typedef struct ring {
    uint32_t first, full, empty;
} ring;

/* Bytes that the barriers of so many slots take. */
consteval int barrier_bytes(int slots)
{
    return 16 * slots;
}

/* `bytes` of slots, and behind them the barriers of `count`. */
__device__ __forceinline__ ring ring_at(uint32_t first, int bytes, int count)
{
    uint32_t full = first + bytes;
    return {first, full, full + 8 * count};
}

/* By one thread; the others, of the whole cluster where it shares slots, meet
 * it before they use the ring. readers: how many give a slot back. */
__device__ __forceinline__ void init_ring(const ring &r, int count,
                                          uint32_t readers)
{
    for (int i = 0; i < count; i++) {
        barrier_init(r.full + 8 * i, 1);
        barrier_init(r.empty + 8 * i, readers);
    }
    barriers_ready();
}

/* The next slot and the phase of its barriers. Who reads begins at {0, 0}; who
 * fills at {0, 1}, as no slot has to be given back before its first use. */
typedef struct cursor {
    int slot;
    uint32_t phase;
} cursor;

/* Returns the slot that it leaves. */
template <int SLOTS> __device__ __forceinline__ int advance(cursor *c)
{
    int slot = c->slot;
    if (++c->slot == SLOTS) {
        c->slot = 0;
        c->phase ^= 1;
    }
    return slot;
}

/* Waits until the next slot may be filled and announces so many bytes; returns
 * the barrier that the copies report to. */
__device__ __forceinline__ uint32_t open_slot(const ring &r, const cursor &c,
                                              uint32_t bytes)
{
    uint32_t full = r.full + 8 * c.slot;
    barrier_wait(r.empty + 8 * c.slot, c.phase);
    barrier_expect(full, bytes);
    return full;
}

/* Waits until the next slot is filled. */
__device__ __forceinline__ void await_slot(const ring &r, const cursor &c)
{
    barrier_wait(r.full + 8 * c.slot, c.phase);
}

/* A warp or a warpgroup has read a slot: it may be filled again, in each of the
 * BLOCKS of a cluster whose copies reach this one. thread: in that group. */
template <int BLOCKS>
__device__ __forceinline__ void give_slot(const ring &r, int slot, int thread)
{
    if (BLOCKS > 1) {
        if (thread < BLOCKS)
            barrier_arrive_at(r.empty + 8 * slot, thread);
    } else if (thread == 0) {
        barrier_arrive(r.empty + 8 * slot);
    }
}

/* The t-th tile of down x across, as tile_of in kernel.h, in 32 bits. */
__device__ __forceinline__ void grouped_tile(int t, int down, int across,
                                             int *row, int *col)
{
    const int height = 8;
    int per = height * across, group = t / per, first = group * height;
    int rows = min(height, down - first), rest = t - group * per;
    *row = first + rest % rows;
    *col = rest / rows;
}

/* --- maps of operands -------------------------------------------------------
 * In global memory, as Hopper's tensor copy engine reads them: boxes come into
 * shared memory in lines of 128 bytes, whose 16-byte pieces are exchanged so
 * that eight lines' are in different banks. What lies beyond the edges comes as
 * zeros. */

/* An operand's axes, neighbours first. */
typedef struct map_shape {
    CUtensorMapDataType type;
    int rank;
    cuuint64_t size[4];          /* elements */
    cuuint64_t bytes[3];         /* from one to the next, from axis 1 on */
    cuuint32_t box[4];           /* elements that one copy brings */
    CUtensorMapL2promotion line; /* what the L2 cache fetches at least */
} map_shape;

/* The map of data, whose first element and lines lie on 16 bytes. `kernel` is
 * the rung's name, for the message where the driver makes none. */
gpu_status gpu_cuda_make_map(cuda_device *d, const char *kernel,
                             const void *data, const map_shape *shape,
                             CUtensorMap *out);

/* Fetches what a map says, as the first copies would have to. */
static __device__ __forceinline__ void prefetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

#endif
