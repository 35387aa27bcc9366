/* What the files of the CUDA backend share: the device, its error rule and
 * the functions behind the backend's table.
 *
 * Errors: a function returns a gpu_status with the message already set, and
 * TRY passes it up. CHECK maps a CUDA error: one that ends the process's use
 * of the GPU marks the device lost, every later call then says so at once.
 *
 * Order: all work of a device is issued to its one stream and done in that
 * order, so memory may be freed, or scratch used anew, while what reads it is
 * still to run. Copies of other lanes have streams of their own: whoever uses
 * them orders them by marks. Only the functions that say so wait.
 *
 * Ownership: views are borrowed, and their data is device memory. */
#ifndef GPU_CUDA_DEVICE_H
#define GPU_CUDA_DEVICE_H

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "backend.h"
}

/* What is issued and may not be done: see pace.cu. */
enum { MOST_MARKS = 32 };
typedef struct cuda_pace {
    cudaEvent_t event[MOST_MARKS]; /* a ring; NULL: not made yet */
    double seconds[MOST_MARKS];    /* predicted, up to each from the last */
    int first, count;
    double issued, outstanding; /* since the last event, and before it */
} cuda_pace;

/* Small blocks that were freed: the next of their size are taken from here, as
 * the driver takes a microsecond for each. Sizes that share a place take turns.
 * The collector frees by the thousand, so of the smallest thousands are kept;
 * of all sizes together 64 MiB at most. */
enum {
    KEPT_SIZES = 64,
    MOST_KEPT = 64 << 10, /* bytes of a block */
    KEPT_BYTES = 1 << 20, /* of all blocks of a size */
    LEAST_BLOCK = 512,    /* bytes that a block of the pool takes at least */
    KEPT_OF_SIZE = KEPT_BYTES / LEAST_BLOCK
};
typedef struct kept_blocks {
    size_t bytes; /* of each */
    int count;
    void *data[KEPT_OF_SIZE];
} kept_blocks;

/* A GPU that was opened; its handle is valid until the process ends. */
typedef struct cuda_device {
    int ordinal;    /* CUDA's number of it */
    int capability; /* 90 for 9.0 */
    int sms;        /* multiprocessors */
    int guests; /* multiprocessors that kernels of others may hold, as NCCL's */
    int lost;   /* an error ended its use: nothing is issued any more */
    char description[384];
    cudaStream_t stream;
    cudaMemPool_t pool;
    cudaEvent_t start, stop; /* of the timer */
    void *scratch;           /* grows, never shrinks but in trim */
    size_t scratch_bytes;
    double *slot;      /* pinned: kernels write small results into it */
    unsigned *tickets; /* device memory; zero between launches */
    kept_blocks kept[KEPT_SIZES];
    cuda_pace pace;
    struct cuda_staging *staging; /* staging.cu; NULL: not needed yet */
    int lane;         /* of a part of a device its number, see lanes.h; or 0 */
    int is_answering; /* a number is on its way into the slot, and
                         nothing was asked for since */
    int waits_small;  /* does anything wait in small? */
    struct small_maps *small; /* small_maps.cu; NULL: not needed yet */
    int is_interrupted; /* a wait was, so that what was issued before may write
                           into the slot yet */
} cuda_device;

/* How many blocks that each fill a multiprocessor surely run at once. */
static inline int gpu_cuda_free_sms(const cuda_device *d)
{
    return d->sms - d->guests;
}

extern const gpu_host *gpu_cuda_host;
#define FAIL(...) gpu_cuda_host->fail(__VA_ARGS__)

#define TRY(call)                    \
    do {                             \
        gpu_status status_ = (call); \
        if (status_ != GPU_OK)       \
            return status_;          \
    } while (0)
#define CHECK(d, call) TRY(gpu_cuda_check(d, call))

/* Every entry opens with this: it refuses a lost device and makes the device
 * the calling thread's own. */
#define ENTER(d, handle)                      \
    cuda_device *d = (cuda_device *)(handle); \
    TRY(gpu_cuda_enter(d))

/* Ends a launch: passes on what the launch itself had to complain of. */
#define LAUNCHED(d) TRY(gpu_cuda_check(d, cudaGetLastError()))

/* The status of a CUDA error, with its message; GPU_OK of none. An error is
 * taken from CUDA, so that the next call does not meet it again. */
gpu_status gpu_cuda_check(cuda_device *d, cudaError_t error);
/* Is the process's context of no use any more after this error? */
int gpu_cuda_is_sticky(int error);
/* Before a call that faults.def cannot have a row of, as it is made by a
 * pointer: the error in whose place it is not to be made, or 0. */
int gpu_cuda_fault(gpu_fault_site *site);
void gpu_cuda_take_faults(const gpu_host *host); /* whose faults they are */
/* GPU_LOST of a lost device; else it is the calling thread's own now, and what
 * waits to be started (small_maps.cu) is. */
gpu_status gpu_cuda_enter(cuda_device *d);
/* Starts what waits there; where that fails it goes on waiting. */
gpu_status gpu_cuda_start_small(cuda_device *d);
/* Before memory goes back to the driver: starts what may read it. Returns 1
 * where that fails; then the memory goes later. */
int gpu_cuda_keep_for_small(cuda_device *d, void *data);
void gpu_cuda_forget_small(cuda_device *d);
/* Sets an attribute of a kernel, once for each device: *done, which is of this
 * kernel and attribute alone, is 0 at first. */
static inline gpu_status set_once(cuda_device *d, const void *kernel,
                                  cudaFuncAttribute what, int value, int *done)
{
    if (*done != d->ordinal + 1)
        CHECK(d, cudaFuncSetAttribute(kernel, what, value));
    *done = d->ordinal + 1;
    return GPU_OK;
}

/* At least bytes of device memory, good until the next call of this: whoever
 * asks twice for one operation loses the first. Zero bytes may give NULL. */
gpu_status gpu_cuda_scratch(cuda_device *d, size_t bytes, void **data);
/* Waits for the stream, or for what came before an event. GPU_INTERRUPTED:
 * what was issued goes on. */
gpu_status gpu_cuda_wait(cuda_device *d);
gpu_status gpu_cuda_wait_for(cuda_device *d, cudaEvent_t event);
/* Before a launch that writes so many numbers into the slot, and until one of
 * them is there: that comes before the stream is known to be done. */
void gpu_cuda_empty_slot(cuda_device *d, int numbers);
gpu_status gpu_cuda_await_number(cuda_device *d, int number);
/* The same for who has something to do meanwhile: work does a little of it and
 * sets *did, which is 0, where there was any. */
typedef gpu_status gpu_cuda_work(cuda_device *d, int *did);
gpu_status gpu_cuda_work_until(cuda_device *d, cudaEvent_t event,
                               gpu_cuda_work *work);
/* Before a part of an operation that moves so many bytes: paces what was
 * issued, as it cannot be stopped. GPU_INTERRUPTED: the rest is not to be done.
 */
gpu_status gpu_cuda_go_on(cuda_device *d, double bytes);
/* CUB remembers for good what it asks of a device at first, and an error that
 * it got, too: so it asks while the device is opened. */
gpu_status gpu_cuda_prepare_sort(cuda_device *d);
/* Ends the events of pace, before the device's stream goes. */
void gpu_cuda_forget_pace(cuda_device *d);

/* --- the entries of the table: what they promise stands in backend.h ------ */

void gpu_cuda_panel(void *device, const gpu_kernel *k, const gpu_gemm *p,
                    int64_t *rows, int64_t *cols);
void gpu_cuda_pace(void *device, const gpu_kernel *k, const gpu_gemm *p,
                   double bytes);

gpu_status gpu_cuda_alloc(void *device, size_t bytes, void **data);
void gpu_cuda_free(void *device, void *data, size_t bytes);
gpu_status gpu_cuda_upload(void *device, void *to, const void *from, size_t n);
gpu_status gpu_cuda_download(void *device, void *to, const void *from,
                             size_t n);
gpu_status gpu_cuda_bring(void *device, gpu_lane lane, const gpu_view *from,
                          const gpu_view *to);
gpu_status gpu_cuda_fetch(void *device, gpu_lane lane, const gpu_view *from,
                          const gpu_view *to);
gpu_status gpu_cuda_deliver(void *device, int give_up);
gpu_status gpu_cuda_mark(void *device, gpu_lane lane, int mark);
gpu_status gpu_cuda_follow(void *device, gpu_lane lane, int mark);
/* Ends lanes, marks and pinned memory, of a device that may be lost. */
void gpu_cuda_end_staging(cuda_device *d);

/* p, of one operation over what lies without gaps in a single row: by a kernel
 * of its own. GPU_UNSUPPORTED, without a message, where there is none. */
gpu_status gpu_cuda_stream(cuda_device *d, const gpu_program *p,
                           const gpu_view *in, const gpu_view *out);
gpu_status gpu_cuda_map(void *device, const gpu_program *p, const gpu_view *in,
                        const gpu_view *out);
gpu_status gpu_cuda_complex_map(void *device, const gpu_complex_call *call);
gpu_status gpu_cuda_complex_pairs(void *device, const gpu_complex_pairs *p);
int gpu_cuda_joins(void *device, const gpu_program *p, const gpu_view *in,
                   const gpu_view *out);
gpu_status gpu_cuda_reduce(void *device, const gpu_program *p,
                           const gpu_view *in, int axis, const gpu_view *out);
gpu_status gpu_cuda_gather(void *device, const gpu_view *from,
                           const int64_t *rows, const int64_t *cols,
                           const gpu_view *to);
gpu_status gpu_cuda_scatter(void *device, const gpu_view *from,
                            const int64_t *rows, const int64_t *cols,
                            const gpu_view *to);
gpu_status gpu_cuda_pick(void *device, const gpu_picking *p);
gpu_status gpu_cuda_compress(void *device, const gpu_view *from,
                             const gpu_view *mask, const gpu_view *to);
gpu_status gpu_cuda_expand(void *device, const gpu_view *from,
                           const gpu_view *mask, const gpu_view *to);
gpu_status gpu_cuda_scan(void *device, gpu_scan_kind kind, int axis,
                         const gpu_view *from, const gpu_view *to);
gpu_status gpu_cuda_sort(void *device, int axis, int descending,
                         const gpu_view *from, const gpu_view *to,
                         const gpu_view *order);
gpu_status gpu_cuda_first(void *device, int axis, int descending,
                          const gpu_view *from, const gpu_view *to,
                          const gpu_view *order);
gpu_status gpu_cuda_select(void *device, int axis, int spreads_nan,
                           const gpu_view *from, const int64_t *places,
                           int64_t count, const gpu_view *to);
gpu_status gpu_cuda_search(void *device, const gpu_view *sorted,
                           const gpu_view *values, int is_after,
                           const gpu_view *to);
gpu_status gpu_cuda_runs(void *device, const gpu_view *sorted, gpu_runs *r);
gpu_status gpu_cuda_group(void *device, const gpu_grouping *g);
gpu_status gpu_cuda_fold(void *device, const gpu_folding *f);
gpu_status gpu_cuda_windows(void *device, const gpu_windows *w);
/* What kernels that draw are given; 0: they cannot. */
struct jit_draw;
int gpu_cuda_fill_draw(const gpu_random *r, int is_f32, struct jit_draw *to);
gpu_status gpu_cuda_random(void *device, const gpu_random *r,
                           const gpu_view *to);
gpu_status gpu_cuda_survey(void *device, const gpu_view *v, double scale,
                           gpu_survey *out);
gpu_status gpu_cuda_bins(void *device, const gpu_view *v, const gpu_bins *how,
                         int64_t *counts);
gpu_status gpu_cuda_blocks(void *device, gpu_block_kind kind, const gpu_view *v,
                           const gpu_view *to);

int gpu_cuda_kernels(const gpu_kernel *const **list);
const gpu_kernel *gpu_cuda_choose_matmul(void *device, const gpu_gemm *p);
const gpu_kernel *gpu_cuda_choose_dot(void *device, const gpu_view *x,
                                      const gpu_view *y);
gpu_status gpu_cuda_sparse_survey(void *device, gpu_sparse_call *p);
const gpu_kernel *gpu_cuda_choose_sparse(void *device,
                                         const gpu_sparse_call *p);
gpu_status gpu_cuda_sparse_product(void *device, const gpu_sparse_call *p);
gpu_status gpu_cuda_sparse_combine(void *device, gpu_sparse_op op,
                                   const gpu_csr *a, const gpu_csr *b,
                                   gpu_csr_result *out);
gpu_status gpu_cuda_sparse_sample(void *device, const gpu_csr *s,
                                  const gpu_view *m, void *to);
gpu_status gpu_cuda_sparse_reduce(void *device, const gpu_sparse_folding *how,
                                  const gpu_csr *s, double *out);
gpu_status gpu_cuda_sparse_lookup(void *device, const gpu_csr *s,
                                  const gpu_csr *places, void *out);
gpu_status gpu_cuda_sparse_along(void *device, const gpu_csr *s,
                                 const gpu_sparse_path *path, void *out);
gpu_status gpu_cuda_sparse_arrange(void *device,
                                   const gpu_sparse_arranging *how,
                                   gpu_csr_result *out);
gpu_status gpu_cuda_sparse_places(void *device, const gpu_view *from,
                                  int32_t *to, int64_t *largest,
                                  int64_t *wrong);
gpu_status gpu_cuda_sparse_build(void *device, const gpu_triplet_lists *t,
                                 int32_t *starts, int32_t *columns,
                                 void *values, int64_t *count);
gpu_status gpu_cuda_sparse_transpose(void *device, const gpu_csr *s,
                                     int32_t *starts, int32_t *columns,
                                     void *values);
gpu_status gpu_cuda_sparse_from_dense(void *device, const gpu_view *m,
                                      int32_t *starts, int32_t *columns,
                                      void *values, int64_t *count);
gpu_status gpu_cuda_sparse_keep(void *device, const gpu_csr *s,
                                const gpu_sparse_choice *choice,
                                int32_t *starts, int32_t *columns, void *values,
                                int64_t *count);
gpu_status gpu_cuda_sparse_to_dense(void *device, const gpu_csr *s, void *to);

/* a / b rounded up, for a >= 0 and b > 0. */
static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- views inside kernels ---------------------------------------------------
 * Reading and writing elements of any type, and finding the place of the e-th
 * element. */

/* Addresses in shared memory are 32-bit for instructions of the PTX. */
__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four elements from a place on 16 bytes. */
__device__ __forceinline__ void read_four(const float *from, float *to)
{
    float4 v = *(const float4 *)from;
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
}

__device__ __forceinline__ void read_four(const double *from, double *to)
{
    double2 v = *(const double2 *)from, w = *(const double2 *)(from + 2);
    to[0] = v.x;
    to[1] = v.y;
    to[2] = w.x;
    to[3] = w.y;
}

/* A stored element's value. */
template <class S> __device__ __forceinline__ double widened(S x)
{
    return sizeof(S) == 1 ? (double)(x != 0) : (double)x;
}

/* The switch is over a value common to the whole grid: no divergence. */
template <class T> /* `at` counts elements from v.data */
__device__ __forceinline__ T load(const gpu_view &v, int64_t at)
{
    switch (v.dtype) {
    case GPU_F32:
        return (T)((const float *)v.data)[at];
    case GPU_F64:
        return (T)((const double *)v.data)[at];
    default:
        return (T)(((const uint8_t *)v.data)[at] != 0);
    }
}

template <class T>
__device__ __forceinline__ void store(const gpu_view &v, int64_t at, T value)
{
    switch (v.dtype) {
    case GPU_F32:
        ((float *)v.data)[at] = (float)value;
        break;
    case GPU_F64:
        ((double *)v.data)[at] = (double)value;
        break;
    default:
        ((uint8_t *)v.data)[at] = value != 0;
    }
}

/* e / by for 0 <= e, 0 < by. Most views fit 32 bits, whose division is four
 * times cheaper. */
__device__ __forceinline__ int64_t divide(int64_t e, int64_t by)
{
    if (((e | by) >> 32) == 0)
        return (uint32_t)e / (uint32_t)by;
    return e / by;
}

/* Where element (i, j), counted from 0, lies: elements from v.data. */
__device__ __forceinline__ int64_t place(const gpu_view &v, int64_t i,
                                         int64_t j)
{
    return i * v.row_stride + j * v.col_stride;
}

/* Where the e-th element in row-major order lies. */
__device__ __forceinline__ int64_t place_of(const gpu_view &v, int64_t e)
{
    if (v.cols == 1)
        return e * v.row_stride;
    int64_t i = divide(e, v.cols);
    return place(v, i, e - i * v.cols);
}

/* Makes one column of v where its strides allow: place_of is then a single
 * multiplication. The row-major order stays. */
static inline void flatten(gpu_view *v)
{
    if (v->cols != 1 && v->rows != 1 &&
        v->row_stride != v->cols * v->col_stride)
        return;
    if (v->cols != 1)
        v->row_stride = v->col_stride;
    v->rows *= v->cols;
    v->cols = 1;
}

/* v becomes its transpose. */
static inline void swap_axes(gpu_view *v)
{
    int64_t rows = v->rows, stride = v->row_stride;
    v->rows = v->cols;
    v->cols = rows;
    v->row_stride = v->col_stride;
    v->col_stride = stride;
}

static inline int64_t stride_size(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

__host__ __device__ static inline size_t dtype_bytes(gpu_dtype t)
{
    return t == GPU_F64 ? 8 : t == GPU_F32 ? 4 : 1;
}

/* Is it one row, or one column, whose elements lie side by side? */
static inline bool is_gapless(const gpu_view *v)
{
    return v->rows == 1 ? v->cols == 1 || v->col_stride == 1
                        : v->cols == 1 && v->row_stride == 1;
}

/* On 16 bytes? */
static inline int is_aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

#endif
