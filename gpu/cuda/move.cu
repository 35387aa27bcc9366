/* Moving elements: picked by lists of rows and columns, and by masks. */
#include <stdlib.h>
#include "cuda_device.h"
#include "scratch_parts.h"

/* --- by lists of rows and columns -------------------------------------------
 * Gather and scatter. The lists come from the host and travel through the
 * scratch block. Limited by bytes and by how the picked elements lie. */

enum { THREADS = 256, BLOCKS_PER_SM = 16, MAX_GRID_Y = 65535 };

/* small has the lists' shape; its element (i, j) belongs to big's
 * (rows[i], cols[j]). A list that is NULL is the identity; a place of -1 is
 * left alone. */
typedef struct move_job {
    gpu_view big, small;
    const int64_t *rows, *cols;
} move_job;

enum { MOVED = 4 }; /* elements of a thread that are under way at once */

/* Elements of one type move as they are, and T has their size; those of two
 * are double's. */
template <class T, bool AS_THEY_ARE>
__device__ __forceinline__ T take_element(const gpu_view &v, int64_t at)
{
    return AS_THEY_ARE ? ((const T *)v.data)[at] : load<T>(v, at);
}

template <class T, bool AS_THEY_ARE>
__device__ __forceinline__ void put_element(const gpu_view &v, int64_t at, T x)
{
    if (AS_THEY_ARE)
        ((T *)v.data)[at] = x;
    else
        store<T>(v, at, x);
}

template <bool SCATTER, class T, bool AS_THEY_ARE>
__global__ void __launch_bounds__(THREADS)
    move_kernel(const __grid_constant__ move_job job)
{
    const gpu_view &from = SCATTER ? job.small : job.big;
    const gpu_view &to = SCATTER ? job.big : job.small;
    int64_t i = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t step_i = (int64_t)gridDim.y * blockDim.y;
    int64_t step_j = (int64_t)gridDim.x * blockDim.x * MOVED;
    for (; i < job.small.rows; i += step_i) {
        int64_t row = job.rows ? job.rows[i] : i;
        int64_t j = (int64_t)blockIdx.x * blockDim.x * MOVED + threadIdx.x;
        for (; row >= 0 && j < job.small.cols; j += step_j) {
            int64_t own[MOVED], there[MOVED];
            T x[MOVED];
#pragma unroll
            for (int k = 0; k < MOVED; k++) {
                own[k] = j + k * blockDim.x;
                bool is_there = own[k] < job.small.cols;
                there[k] = !is_there  ? -1
                           : job.cols ? job.cols[own[k]]
                                      : own[k];
            }
#pragma unroll
            for (int k = 0; k < MOVED; k++)
                if (there[k] >= 0)
                    x[k] = take_element<T, AS_THEY_ARE>(
                        from, SCATTER ? place(from, i, own[k])
                                      : place(from, row, there[k]));
#pragma unroll
            for (int k = 0; k < MOVED; k++)
                if (there[k] >= 0)
                    put_element<T, AS_THEY_ARE>(to,
                                                SCATTER
                                                    ? place(to, row, there[k])
                                                    : place(to, i, own[k]),
                                                x[k]);
        }
    }
}

/* Rows that move whole, in units of 16 bytes; strides are in units, too. */
typedef struct row_job {
    uint4 *big, *small;
    int64_t count, units, big_stride, small_stride;
    const int64_t *rows;
} row_job;

enum { UNITS = 4 }; /* of a thread at once */

template <bool SCATTER>
__global__ void __launch_bounds__(THREADS)
    move_rows_kernel(const __grid_constant__ row_job job)
{
    int64_t across = (int64_t)blockDim.x * UNITS;
    int64_t pieces = (job.units + across - 1) / across;
    int64_t groups = (job.count + blockDim.y - 1) / blockDim.y;
    for (int64_t p = blockIdx.x; p < pieces * groups; p += gridDim.x) {
        int64_t group = divide(p, pieces);
        int64_t i = group * blockDim.y + threadIdx.y;
        int64_t j = (p - group * pieces) * across + threadIdx.x;
        int64_t row = i >= job.count ? -1 : job.rows ? job.rows[i] : i;
        uint4 v[UNITS];
        if (row < 0)
            continue;
        uint4 *big = job.big + row * job.big_stride;
        uint4 *small = job.small + i * job.small_stride;
#pragma unroll
        for (int k = 0; k < UNITS; k++)
            if (j + k * blockDim.x < job.units)
                v[k] = (SCATTER ? small : big)[j + k * blockDim.x];
#pragma unroll
        for (int k = 0; k < UNITS; k++)
            if (j + k * blockDim.x < job.units)
                (SCATTER ? big : small)[j + k * blockDim.x] = v[k];
    }
}

/* Both lists into scratch, one after the other. */
static gpu_status upload_lists(cuda_device *d, move_job *job,
                               const int64_t *rows, const int64_t *cols)
{
    size_t row_bytes = rows ? (size_t)job->small.rows * sizeof *rows : 0;
    size_t col_bytes = cols ? (size_t)job->small.cols * sizeof *cols : 0;
    char *data = NULL;
    job->rows = job->cols = NULL;
    if (row_bytes + col_bytes == 0)
        return GPU_OK;
    TRY(gpu_cuda_scratch(d, row_bytes + col_bytes, (void **)&data));
    if (rows != NULL)
        job->rows = (const int64_t *)data;
    if (cols != NULL)
        job->cols = (const int64_t *)(data + row_bytes);
    TRY(gpu_cuda_upload(d, data, rows, row_bytes));
    return gpu_cuda_upload(d, data + row_bytes, cols, col_bytes);
}

static void swap_job(move_job *job, const int64_t **rows, const int64_t **cols)
{
    const int64_t *list = *rows;
    *rows = *cols;
    *cols = list;
    swap_axes(&job->big);
    swap_axes(&job->small);
}

/* Do neighbours in memory follow each other down the columns? A small view
 * that is broadcast is read from the cache: then the big one's layout counts.
 */
static bool runs_down(const move_job *job)
{
    bool is_broadcast =
        job->small.row_stride == 0 || job->small.col_stride == 0;
    const gpu_view *v = is_broadcast ? &job->big : &job->small;
    return job->small.cols == 1 ||
           stride_size(v->row_stride) < stride_size(v->col_stride);
}

/* Fills out where both views' rows are whole units of the same bytes. */
static int moves_rows(const move_job *job, row_job *out)
{
    const gpu_view *big = &job->big, *small = &job->small;
    int64_t bytes = (int64_t)dtype_bytes(big->dtype), each = 16 / bytes;
    if (job->cols || big->dtype != small->dtype || small->cols % each != 0 ||
        big->col_stride != 1 || small->col_stride != 1 ||
        big->row_stride % each != 0 || small->row_stride % each != 0 ||
        !is_aligned(big->data) || !is_aligned(small->data))
        return 0;
    *out = {
        (uint4 *)big->data, (uint4 *)small->data,   small->rows,
        small->cols / each, big->row_stride / each, small->row_stride / each,
        job->rows};
    return 1;
}

template <bool SCATTER>
static gpu_status move_rows(cuda_device *d, const row_job *job)
{
    int width = 1;
    while (width < THREADS && UNITS * width < job->units)
        width *= 2;
    dim3 block(width, THREADS / width);
    int64_t pieces = ceil_div(job->units, (int64_t)width * UNITS);
    int64_t blocks = pieces * ceil_div(job->count, block.y);
    move_rows_kernel<SCATTER>
        <<<(unsigned)smaller(blocks, 1 << 30), block, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

template <bool SCATTER>
static void launch_move(cuda_device *d, const move_job *job, dim3 grid,
                        dim3 block)
{
    cudaStream_t s = d->stream;
    if (job->big.dtype != job->small.dtype)
        move_kernel<SCATTER, double, false><<<grid, block, 0, s>>>(*job);
    else if (job->big.dtype == GPU_F64)
        move_kernel<SCATTER, uint64_t, true><<<grid, block, 0, s>>>(*job);
    else if (job->big.dtype == GPU_F32)
        move_kernel<SCATTER, uint32_t, true><<<grid, block, 0, s>>>(*job);
    else
        move_kernel<SCATTER, uint8_t, true><<<grid, block, 0, s>>>(*job);
}

/* With both lists where kernels read them. */
template <bool SCATTER>
static gpu_status move_listed(cuda_device *d, const move_job *job)
{
    const gpu_view *small = &job->small;
    row_job whole;
    if (moves_rows(job, &whole))
        return move_rows<SCATTER>(d, &whole);
    int width = 1;
    while (width < THREADS && width * MOVED < small->cols)
        width *= 2;
    dim3 block(width, THREADS / width);
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    int64_t x = smaller(ceil_div(small->cols, (int64_t)width * MOVED), most);
    int64_t y = smaller(ceil_div(small->rows, block.y), ceil_div(most, x));
    launch_move<SCATTER>(
        d, job, dim3((unsigned)x, (unsigned)smaller(y, MAX_GRID_Y)), block);
    LAUNCHED(d);
    return GPU_OK;
}

template <bool SCATTER>
static gpu_status move(cuda_device *d, move_job *job, const int64_t *rows,
                       const int64_t *cols)
{
    if (runs_down(job))
        swap_job(job, &rows, &cols);
    TRY(upload_lists(d, job, rows, cols));
    return move_listed<SCATTER>(d, job);
}

gpu_status gpu_cuda_gather(void *device, const gpu_view *from,
                           const int64_t *rows, const int64_t *cols,
                           const gpu_view *to)
{
    ENTER(d, device);
    move_job job = {*from, *to, NULL, NULL};
    if (to->rows == 0 || to->cols == 0)
        return GPU_OK;
    return move<false>(d, &job, rows, cols);
}

/* A copy of list in which a place that comes again later reads -1, so that
 * the last one wins whatever the order of the threads. NULL: no memory. An
 * open-addressing table holds the places already seen from the end. */
static int64_t *keep_last(const int64_t *list, int64_t n)
{
    size_t size = 4;
    while (size < 2 * (size_t)n)
        size *= 2;
    int64_t *kept = (int64_t *)malloc((size_t)n * sizeof *kept);
    int64_t *seen = (int64_t *)malloc(size * sizeof *seen);
    for (size_t s = 0; seen != NULL && s < size; s++)
        seen[s] = -1;
    for (int64_t i = n - 1; kept != NULL && seen != NULL && i >= 0; i--) {
        size_t s = (uint64_t)list[i] * 0x9e3779b97f4a7c15u >> 20 & (size - 1);
        while (seen[s] != -1 && seen[s] != list[i])
            s = (s + 1) & (size - 1);
        kept[i] = seen[s] == list[i] ? -1 : list[i];
        seen[s] = list[i];
    }
    if (seen == NULL) {
        free(kept);
        kept = NULL;
    }
    free(seen);
    return kept;
}

gpu_status gpu_cuda_scatter(void *device, const gpu_view *from,
                            const int64_t *rows, const int64_t *cols,
                            const gpu_view *to)
{
    ENTER(d, device);
    move_job job = {*to, *from, NULL, NULL};
    if (from->rows == 0 || from->cols == 0)
        return GPU_OK;
    int64_t *last_rows = rows ? keep_last(rows, from->rows) : NULL;
    int64_t *last_cols = cols ? keep_last(cols, from->cols) : NULL;
    gpu_status status;
    if ((rows && !last_rows) || (cols && !last_cols))
        status = FAIL(GPU_MEMORY, "scatter: no host memory for its indices");
    else
        status = move<true>(d, &job, last_rows, last_cols);
    free(last_rows);
    free(last_cols);
    return status;
}

/* --- by lists that are matrices ---------------------------------------------
 * They become lists of places in scratch memory; of those to be written that
 * come again later the places become -1. Limited by bytes. */

/* A list; size: of the side that it names places of. last: 0 at first, then
 * behind each place the number from 1 of the last element that names it. */
typedef struct list_job {
    gpu_view list;
    int64_t size, last_place, *places;
    unsigned *last;  /* NULL: what comes again stays */
    unsigned *wrong; /* is set where the list holds what is no place */
} list_job;

/* The place of so many that a list names, 0-based; -1: it is none. */
template <class L>
__device__ __forceinline__ int64_t place_named(L x, int64_t size, int64_t last)
{
    int64_t at = (int64_t)x;
    bool is_place = (L)at == x && at != 0 && at <= last && -at <= last;
    return !is_place ? -1 : at < 0 ? at + size : at - 1;
}

__global__ void __launch_bounds__(THREADS)
    name_places(const __grid_constant__ list_job job)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (; i < job.list.rows; i += step) {
        double x = load<double>(job.list, i * job.list.row_stride);
        int64_t at = place_named(x, job.size, job.last_place);
        job.places[i] = at;
        if (at < 0)
            *job.wrong = 1;
        else if (job.last)
            atomicMax(job.last + at, (unsigned)i + 1);
    }
}

__global__ void __launch_bounds__(THREADS)
    drop_repeated(const __grid_constant__ list_job job)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (; i < job.list.rows; i += step)
        if (job.places[i] >= 0 && job.last[job.places[i]] != (unsigned)i + 1)
            job.places[i] = -1;
}

static size_t list_bytes(const list_job *l, int scatters)
{
    if (l->list.data == NULL)
        return 0;
    size_t last = scatters ? (size_t)l->size * sizeof *l->last : 0;
    return (size_t)l->list.rows * sizeof *l->places + (last + 7) / 8 * 8;
}

/* Of a list at all: its places, which begin at data. */
static gpu_status make_places(cuda_device *d, list_job *l, int scatters,
                              char *data)
{
    if (l->list.data == NULL)
        return GPU_OK;
    size_t bytes = (size_t)l->list.rows * sizeof *l->places;
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    unsigned blocks = (unsigned)smaller(ceil_div(l->list.rows, THREADS), most);
    l->places = (int64_t *)data;
    l->last = scatters ? (unsigned *)(data + bytes) : NULL;
    if (scatters)
        CHECK(d, cudaMemsetAsync(l->last, 0, (size_t)l->size * sizeof *l->last,
                                 d->stream));
    name_places<<<blocks, THREADS, 0, d->stream>>>(*l);
    LAUNCHED(d);
    if (!scatters)
        return GPU_OK;
    drop_repeated<<<blocks, THREADS, 0, d->stream>>>(*l);
    LAUNCHED(d);
    return GPU_OK;
}

/* Elements of a vector by a list, of one type and without gaps. Limited by the
 * sectors that elements lie in; so several are asked for at once. */
enum { ASKED = 4 };

template <class T, class L>
__global__ void __launch_bounds__(THREADS)
    pick_kernel(const T *big, int64_t stride, int64_t size, const L *list,
                int64_t last, int64_t count, T *small, unsigned *wrong)
{
    const int64_t piece = THREADS * ASKED;
    int64_t first = blockIdx.x * piece + threadIdx.x;
    for (; first < count; first += gridDim.x * piece) {
        int64_t at[ASKED];
        T value[ASKED];
#pragma unroll
        for (int k = 0; k < ASKED; k++) {
            int64_t e = first + k * THREADS;
            at[k] = e < count ? place_named(__ldcs(list + e), size, last) : 0;
            if (at[k] < 0)
                *wrong = 1;
        }
#pragma unroll
        for (int k = 0; k < ASKED; k++)
            value[k] = big[max(at[k], (int64_t)0) * stride];
#pragma unroll
        for (int k = 0; k < ASKED; k++)
            if (first + k * THREADS < count)
                __stcs(small + first + k * THREADS, value[k]);
    }
}

template <class T, class L>
static gpu_status pick_vector(cuda_device *d, const gpu_picking *p,
                              unsigned *wrong)
{
    int64_t count = p->rows.rows;
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    int64_t blocks = ceil_div(count, (int64_t)THREADS * ASKED);
    pick_kernel<T, L>
        <<<(unsigned)smaller(blocks, most), THREADS, 0, d->stream>>>(
            (const T *)p->big.data, p->big.row_stride, p->big.rows,
            (const L *)p->rows.data, p->last_row, count, (T *)p->small.data,
            wrong);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T>
static gpu_status pick_listed(cuda_device *d, const gpu_picking *p,
                              unsigned *wrong)
{
    return p->rows.dtype == GPU_F64 ? pick_vector<T, double>(d, p, wrong)
                                    : pick_vector<T, float>(d, p, wrong);
}

static bool picks_plainly(const gpu_picking *p)
{
    return !p->scatters && !p->cols.data && p->rows.data && p->big.cols == 1 &&
           p->big.dtype == p->small.dtype && is_gapless(&p->small) &&
           is_gapless(&p->rows);
}

static gpu_status pick_plainly(cuda_device *d, const gpu_picking *p,
                               unsigned *wrong)
{
    switch (dtype_bytes(p->big.dtype)) {
    case 8:
        return pick_listed<double>(d, p, wrong);
    case 4:
        return pick_listed<float>(d, p, wrong);
    default:
        return pick_listed<uint8_t>(d, p, wrong);
    }
}

/* Waits. */
static gpu_status check_wrong(cuda_device *d, const unsigned *wrong)
{
    unsigned found;
    TRY(gpu_cuda_download(d, &found, wrong, sizeof found));
    return found ? GPU_RANGE : GPU_OK;
}

gpu_status gpu_cuda_pick(void *device, const gpu_picking *p)
{
    ENTER(d, device);
    move_job job = {p->big, p->small, NULL, NULL};
    list_job rows = {p->rows, p->big.rows, p->last_row};
    list_job cols = {p->cols, p->big.cols, p->last_col};
    char *data = NULL;
    if (p->small.rows == 0 || p->small.cols == 0)
        return GPU_OK;
    if (p->scatters && larger(p->small.rows, p->small.cols) >= UINT32_MAX)
        return FAIL(GPU_UNSUPPORTED,
                    "scatter: a list of 2^32 places or more is too long");
    size_t row_bytes = rounded_room(list_bytes(&rows, p->scatters));
    size_t col_bytes = rounded_room(list_bytes(&cols, p->scatters));
    bool is_plain = picks_plainly(p);
    size_t lists = is_plain ? 0 : row_bytes + col_bytes;
    TRY(gpu_cuda_scratch(d, rounded_room(sizeof *rows.wrong) + lists,
                         (void **)&data));
    rows.wrong = cols.wrong = take_part<unsigned>(&data, 1);
    CHECK(d, cudaMemsetAsync(rows.wrong, 0, sizeof *rows.wrong, d->stream));
    if (is_plain) {
        TRY(pick_plainly(d, p, rows.wrong));
        return check_wrong(d, rows.wrong);
    }
    TRY(make_places(d, &rows, p->scatters, data));
    TRY(make_places(d, &cols, p->scatters, data + row_bytes));
    TRY(check_wrong(d, rows.wrong));
    const int64_t *row_places = rows.places, *col_places = cols.places;
    if (runs_down(&job))
        swap_job(&job, &row_places, &col_places);
    job.rows = row_places;
    job.cols = col_places;
    return p->scatters ? move_listed<true>(d, &job)
                       : move_listed<false>(d, &job);
}

/* --- by masks ---------------------------------------------------------------
 * Compress and expand, in row-major order.
 *
 * Each warp takes an equal run of the mask: a first pass counts its true
 * values, one block sums the counts up, and a second pass knows the rank of
 * every true value. Within a warp ranks come from ballots, so that nothing
 * waits for another warp. Limited by bytes: the mask is read twice. */

enum { WARPS = THREADS / 32, RUNS_PER_SM = 64, SUM_THREADS = 1024 };
enum { QUADS = 4, STEP = 32 * 4 * QUADS }; /* elements a warp takes at once */

/* mask and elements have one shape; packed has one element a true value. */
typedef struct mask_job {
    gpu_view mask, elements, packed;
    int64_t size, run; /* elements in all, and for one warp: whole steps */
    int64_t *counts;   /* one a run */
    int wide_mask;     /* 16 bytes may be read at once */
    int wide_elements; /* four elements may be */
} mask_job;

/* Where an element lies, and then the next one in row-major order: one
 * division for four of them. */
typedef struct spot {
    int64_t i, j;
} spot;

__device__ __forceinline__ spot spot_of(const gpu_view &v, int64_t e)
{
    int64_t i = divide(e, v.cols);
    return {i, e - i * v.cols};
}

__device__ __forceinline__ int64_t step_on(const gpu_view &v, spot *s)
{
    int64_t at = place(v, s->i, s->j);
    if (++s->j == v.cols) {
        s->j = 0;
        s->i++;
    }
    return at;
}

/* Four elements of the mask from e on, a byte each, 0 where it has ended. */
__device__ __forceinline__ uint32_t mask_quad(const mask_job &job, int64_t e)
{
    const uint8_t *mask = (const uint8_t *)job.mask.data;
    uint32_t quad = 0;
    if (job.wide_mask && e + 4 <= job.size)
        return *(const uint32_t *)(mask + e);
    spot s = spot_of(job.mask, e);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int64_t at = step_on(job.mask, &s);
        if (e + k < job.size)
            quad |= (uint32_t)mask[at] << 8 * k;
    }
    return quad;
}

/* How many bytes of four are true. */
__device__ __forceinline__ int count_quad(uint32_t quad)
{
    return __popc(__vcmpne4(quad, 0)) / 8;
}

__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ mask_job job)
{
    int64_t run = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32;
    int64_t begin = run * job.run, end = min(begin + job.run, job.size);
    int lane = threadIdx.x % 32, own = 0;
    if (begin >= job.size)
        return;
    for (int64_t e = begin; e < end; e += STEP) {
        int64_t mine = e + lane * (4 * QUADS);
        if (job.wide_mask && mine + 4 * QUADS <= end) {
            uint4 four =
                *(const uint4 *)((const uint8_t *)job.mask.data + mine);
            own += count_quad(four.x) + count_quad(four.y) +
                   count_quad(four.z) + count_quad(four.w);
        } else
#pragma unroll
            for (int k = 0; k < QUADS; k++)
                own += count_quad(mask_quad(job, mine + 4 * k));
    }
    own = __reduce_add_sync(~0u, own);
    if (lane == 0)
        job.counts[run] = own;
}

/* Turns counts into the sums of those before: one block, by doubling. */
__global__ void __launch_bounds__(SUM_THREADS)
    sum_kernel(int64_t *counts, int blocks)
{
    __shared__ int64_t sums[SUM_THREADS];
    int64_t run = 0;
    int t = threadIdx.x;
    for (int first = 0; first < blocks; first += SUM_THREADS) {
        int64_t own = first + t < blocks ? counts[first + t] : 0;
        sums[t] = own;
        for (int apart = 1; apart < SUM_THREADS; apart *= 2) {
            __syncthreads(); /* the step before has written */
            int64_t before = t >= apart ? sums[t - apart] : 0;
            __syncthreads(); /* all have read */
            sums[t] += before;
        }
        __syncthreads(); /* sums are complete */
        if (first + t < blocks)
            counts[first + t] = run + sums[t] - own;
        run += sums[SUM_THREADS - 1];
        __syncthreads(); /* sums are read */
    }
}

/* Elements move as they are; T has their size. */
template <class T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) four {
    T at[4];
};

template <class T>
__device__ __forceinline__ four<T> element_quad(const mask_job &job, int64_t e,
                                                uint32_t quad)
{
    const T *elements = (const T *)job.elements.data;
    four<T> v = {};
    if (quad == 0)
        return v;
    if (job.wide_elements && e + 4 <= job.size)
        return *(const four<T> *)(elements + e);
    spot s = spot_of(job.elements, e);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int64_t at = step_on(job.elements, &s);
        if (quad >> 8 * k & 0xff)
            v.at[k] = elements[at];
    }
    return v;
}

/* Puts the ones of v that the mask has. */
template <class T>
__device__ __forceinline__ void put_quad(const mask_job &job, int64_t e,
                                         uint32_t quad, const four<T> &v)
{
    T *elements = (T *)job.elements.data;
    if (job.wide_elements && count_quad(quad) == 4) {
        *(four<T> *)(elements + e) = v;
        return;
    }
    if (quad == 0)
        return;
    spot s = spot_of(job.elements, e);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int64_t at = step_on(job.elements, &s);
        if (quad >> 8 * k & 0xff)
            elements[at] = v.at[k];
    }
}

/* How many are true in the lanes before this one, where it has own <= 4, and
 * in all of the warp. */
__device__ __forceinline__ int rank_in_warp(int own, int *total)
{
    unsigned lower = (1u << threadIdx.x % 32) - 1;
    unsigned ones = __ballot_sync(~0u, own & 1);
    unsigned twos = __ballot_sync(~0u, own & 2);
    unsigned fours = __ballot_sync(~0u, own & 4);
    *total = __popc(ones) + 2 * __popc(twos) + 4 * __popc(fours);
    return __popc(ones & lower) + 2 * __popc(twos & lower) +
           4 * __popc(fours & lower);
}

/* What compress packs meets in shared memory, so that lanes write
 * neighbours. */
template <bool EXPAND, class T>
__global__ void __launch_bounds__(THREADS)
    pack_kernel(const __grid_constant__ mask_job job)
{
    __shared__ T shared[EXPAND ? 1 : WARPS][EXPAND ? 1 : STEP];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t run = blockIdx.x * (int64_t)WARPS + warp;
    int64_t begin = run * job.run, end = min(begin + job.run, job.size);
    T *to = shared[EXPAND ? 0 : warp];
    if (begin >= job.size)
        return;
    T *packed = (T *)job.packed.data + job.counts[run];
    for (int64_t e = begin + 4 * lane; e < end + 4 * lane; e += STEP) {
        uint32_t quad[QUADS];
        four<T> v[QUADS];
        int sum = 0;
#pragma unroll
        for (int q = 0; q < QUADS; q++)
            quad[q] = mask_quad(job, e + 128 * q);
#pragma unroll
        for (int q = 0; !EXPAND && q < QUADS; q++)
            v[q] = element_quad<T>(job, e + 128 * q, quad[q]);
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            int total;
            int rank = sum + rank_in_warp(count_quad(quad[q]), &total);
            sum += total;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                if ((quad[q] >> 8 * k & 0xff) == 0)
                    continue;
                if (EXPAND)
                    v[q].at[k] = packed[rank++];
                else
                    to[rank++] = v[q].at[k];
            }
        }
#pragma unroll
        for (int q = 0; EXPAND && q < QUADS; q++)
            put_quad(job, e + 128 * q, quad[q], v[q]);
        if (!EXPAND) {
            __syncwarp(); /* the step's values are packed */
            for (int k = lane; k < sum; k += 32)
                packed[k] = to[k];
            __syncwarp(); /* and read */
        }
        packed += sum;
    }
}

template <bool EXPAND>
static void launch_pack(cuda_device *d, mask_job *job, unsigned blocks)
{
    switch (dtype_bytes(job->elements.dtype)) {
    case 8:
        pack_kernel<EXPAND, uint64_t><<<blocks, THREADS, 0, d->stream>>>(*job);
        break;
    case 4:
        pack_kernel<EXPAND, uint32_t><<<blocks, THREADS, 0, d->stream>>>(*job);
        break;
    default:
        pack_kernel<EXPAND, uint8_t><<<blocks, THREADS, 0, d->stream>>>(*job);
    }
}

static int is_plain(const gpu_view *v)
{
    return v->cols == 1 && v->row_stride == 1 && is_aligned(v->data);
}

template <bool EXPAND> static gpu_status pack(cuda_device *d, mask_job *job)
{
    job->size = job->mask.rows * job->mask.cols;
    if (job->size == 0)
        return GPU_OK;
    flatten(&job->mask);
    flatten(&job->elements);
    job->wide_mask = is_plain(&job->mask);
    job->wide_elements = is_plain(&job->elements);
    int64_t most = (int64_t)d->sms * RUNS_PER_SM;
    job->run = ceil_div(ceil_div(job->size, STEP), most) * STEP;
    int64_t runs = ceil_div(job->size, job->run);
    unsigned blocks = (unsigned)ceil_div(runs, WARPS);
    TRY(gpu_cuda_scratch(d, (size_t)runs * sizeof *job->counts,
                         (void **)&job->counts));
    count_kernel<<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    sum_kernel<<<1, SUM_THREADS, 0, d->stream>>>(job->counts, (int)runs);
    LAUNCHED(d);
    launch_pack<EXPAND>(d, job, blocks);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_compress(void *device, const gpu_view *from,
                             const gpu_view *mask, const gpu_view *to)
{
    ENTER(d, device);
    mask_job job = {*mask, *from, *to, 0, 0, NULL, 0, 0};
    return pack<false>(d, &job);
}

gpu_status gpu_cuda_expand(void *device, const gpu_view *from,
                           const gpu_view *mask, const gpu_view *to)
{
    ENTER(d, device);
    mask_job job = {*mask, *to, *from, 0, 0, NULL, 0, 0};
    return pack<true>(d, &job);
}
