/* matmul dmma where Hopper's copy engine fills the ring: the warps ask it in
 * turn, and none waits for the others. Operands lie on 16 bytes. */
#ifndef GPU_CUDA_DMMA_FED_H
#define GPU_CUDA_DMMA_FED_H

#include "dmma.h"
#include "ring.h"
#include "tensor_map.h"

/* An operand in boxes of a panel, or of all panels of a slice where these are
 * whole: along rows or columns, a multiple of 16 of them. */
typedef struct box_map {
    CUtensorMap map;
    bool whole;
} box_map;

typedef struct maps {
    box_map a, b;
} maps;

__device__ __forceinline__ void copy_box2(uint32_t to, const CUtensorMap *map,
                                          uint32_t barrier, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global"
        ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
}

/* The slice whose first row (or column) is s. Zeros beyond the edges. */
template <slice S>
__device__ __forceinline__ void copy_panels(uint32_t to, const box_map &x,
                                            uint32_t full, int s, int k)
{
    constexpr int bytes = PANEL * (int)sizeof(double); /* of a line */
    if (S.along_k) {
#pragma unroll
        for (int n = 0; n < S.depth / PANEL; n++)
            copy_box2(to + n * S.span * bytes, &x.map, full, k + n * PANEL, s);
    } else if (x.whole) {
        copy_box3(to, &x.map, full, 0, k, s / PANEL);
    } else {
#pragma unroll 1
        for (int n = 0; n < S.span / PANEL; n++)
            copy_box2(to + n * S.depth * bytes, &x.map, full, s + n * PANEL, k);
    }
}

/* Where the copy engine is to read next, and how many slots it is to fill. */
typedef struct request {
    cursor at;
    int row, col, k, slots;
} request;

template <tiling T> __device__ __forceinline__ void skip_slot(request *r)
{
    r->k += T.depth;
    r->slots--;
    advance<T.stages>(&r->at);
}

/* Asks for a slot, once every warp has read what is in it. */
template <tiling T>
__device__ __forceinline__ void ask_for_slot(const maps &m, const ring &p,
                                             const request &r)
{
    constexpr int size = (int)sizeof(double);
    uint32_t to = p.first + r.at.slot * SLOT<T> * size;
    uint32_t full = open_slot(p, r.at, SLOT<T> * size);
    copy_panels<slice_of_a(T)>(to, m.a, full, r.row, r.k);
    copy_panels<slice_of_b(T)>(to + A_SLICE<T> * size, m.b, full, r.col, r.k);
}

template <tiling T>
__device__ __forceinline__ ring prepare_ring(const double *slots)
{
    ring p = ring_at(shared_address(slots), RING_BYTES<T>, T.stages);
    if (threadIdx.x == 0)
        init_ring(p, T.stages, THREADS<T> / 32);
    __syncthreads(); /* the barriers are ready */
    return p;
}

/* This warp has read a slot, and the next one is needed, if there is one. */
__device__ __forceinline__ void change_slots(const ring &p, int used,
                                             const cursor &next, bool more)
{
    __syncwarp(); /* all threads have read the slot */
    give_slot<1>(p, used, threadIdx.x % 32);
    if (more)
        await_slot(p, next);
}

/* A slot is asked for LAG slots after the warps were done with it: then none
 * of them has to wait for the others. */
template <tiling T> constexpr int LAG = T.stages > 3 ? 2 : 1;

/* Asks for the first slots. */
template <tiling T>
__device__ __forceinline__ request begin_requests(const job &j, const maps &m,
                                                  const ring &p)
{
    int64_t row, col, part;
    find_tile<T>(j, &row, &col, &part);
    int64_t k = part * j.part_k, depth = min(j.p.k - k, j.part_k);
    int slots = (int)((depth + T.depth - 1) / T.depth);
    request r = {{0, 1}, (int)row, (int)col, (int)k, slots};
#pragma unroll 1
    for (int n = 0; n < T.stages - LAG<T>; n++) {
        if (threadIdx.x == 0 && r.slots > 0)
            ask_for_slot<T>(m, p, r);
        skip_slot<T>(&r);
    }
    return r;
}

/* As dmma_kernel, but the copy engine fills the slots, asked by the warps in
 * turn, and no warp waits for the others. */
template <tiling T>
__global__ void __launch_bounds__(THREADS<T>, T.blocks)
    dmma_fed_kernel(const __grid_constant__ job j,
                    const __grid_constant__ maps m)
{
#if __CUDA_ARCH__ == 900
    extern __shared__ __align__(1024) double slots[];
    if (threadIdx.x == 0) {
        prefetch_map(&m.a.map);
        prefetch_map(&m.b.map);
    }
    ring p = prepare_ring<T>(slots);
    request r = begin_requests<T>(j, m, p);
    cursor c = {0, 0};
    await_slot(p, c);
    warp_work<T> w = {};
    begin_work(&w, slots);
#pragma unroll 1
    for (int left = r.slots + T.stages - LAG<T>; left > 0; left--) {
        if (threadIdx.x == left * 32 % THREADS<T> && r.slots > 0)
            ask_for_slot<T>(m, p, r);
        skip_slot<T>(&r);
        multiply_slot(&w, slots + c.slot * SLOT<T>);
        int used = advance<T.stages>(&c);
        change_slots(p, used, c, left > 1);
        finish_slot(&w, slots + c.slot * SLOT<T>);
    }
    write_tile(j, w);
#endif
}

#endif
