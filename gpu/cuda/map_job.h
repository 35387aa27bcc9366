/* What a kernel for elementwise work is given, and a block's part of it: for
 * those that run one program (map.cu) and several (small_maps.cu). */
#ifndef GPU_CUDA_MAP_JOB_H
#define GPU_CUDA_MAP_JOB_H

#include "interpret.h"

/* How a thread's four elements lie: neighbours in a row (for wide accesses),
 * one block's height apart in a column, or one block's width apart. */
typedef enum layout { NEIGHBOURS, DOWN, ACROSS } layout;

typedef struct map_job {
    plan p;
    gpu_view out;
    layout how;
    int wide_out; /* 0: element by element; else bytes of an element */
    int inputs;
} map_job;

/* p's job over what in and out are as they lie: out's columns are the nearer
 * neighbours, and it is one long row where every view allows. */
void gpu_cuda_make_job(const gpu_program *p, const gpu_view *in,
                       const gpu_view *out, map_job *job);

/* Chooses how and what is read and written at once; returns how many threads
 * of a block of so many go along a row: a power of two. */
int gpu_cuda_lay_out(map_job *job, int threads);

/* Puts a small job behind others that wait to be started in one go;
 * GPU_UNSUPPORTED, without a message, if it is none. */
gpu_status gpu_cuda_put_off(cuda_device *d, const gpu_program *p,
                            const gpu_view *in, const gpu_view *out);

template <class S, class T>
__device__ __forceinline__ void put_strided(const map_job &job, const spot &s,
                                            int64_t at, const quad<T> &r)
{
    S *to = (S *)job.out.data + at;
    int64_t step = place(job.out, s.di, s.dj);
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (k < s.count)
            to[k * step] = sizeof(S) == 1 ? (S)(r.at[k] != 0) : (S)r.at[k];
}

template <class T>
__device__ __forceinline__ void put(const map_job &job, const spot &s,
                                    const quad<T> &r)
{
    int64_t at = place(job.out, s.i, s.j);
    if (job.wide_out == sizeof(T) && s.count == ITEMS) {
        *(quad<T> *)((T *)job.out.data + at) = r;
        return;
    }
    if (job.wide_out == 1 && s.count == ITEMS) {
        *(uchar4 *)((uint8_t *)job.out.data + at) =
            make_uchar4(r.at[0] != 0, r.at[1] != 0, r.at[2] != 0, r.at[3] != 0);
        return;
    }
    if (job.out.dtype == GPU_F32)
        put_strided<float>(job, s, at, r);
    else if (job.out.dtype == GPU_F64)
        put_strided<double>(job, s, at, r);
    else
        put_strided<uint8_t>(job, s, at, r);
}

/* How many of the four elements are inside. */
__device__ __forceinline__ int count_inside(const map_job &job, const spot &s)
{
    int64_t left = job.how == DOWN ? job.p.rows - s.i : job.p.cols - s.j;
    int64_t apart = job.how == DOWN ? s.di : s.dj;
    return left >= ITEMS * apart ? ITEMS : (int)((left + apart - 1) / apart);
}

/* The part of block (bx, by) of a grid of gx x gy blocks, whose threads are
 * width x height; the calling one is (x, y). shared: the block's slots. */
template <class T>
__device__ __forceinline__ void map_block(const map_job &job, void *shared,
                                          dim3 block, dim3 thread, dim3 grid,
                                          dim3 own)
{
    int threads = block.x * block.y;
    T *file = (T *)shared + thread.y * block.x + thread.x;
    int64_t rows = (int64_t)block.y * (job.how == DOWN ? ITEMS : 1);
    int64_t cols = (int64_t)block.x * (job.how == DOWN ? 1 : ITEMS);
    spot s;
    s.di = job.how == DOWN ? block.y : 0;
    s.dj = job.how == ACROSS ? block.x : job.how == NEIGHBOURS;
    int64_t j = (int64_t)thread.x * (job.how == NEIGHBOURS ? ITEMS : 1);
    for (s.i = own.y * rows + thread.y; s.i < job.p.rows; s.i += grid.y * rows)
        for (s.j = own.x * cols + j; s.j < job.p.cols; s.j += grid.x * cols) {
            s.count = count_inside(job, s);
            put<T>(job, s, evaluate<T>(job.p, s, file, threads));
        }
}

#endif
