/* Stable sorting along one axis, all lines at once.
 *
 * An element becomes a 32- or 64-bit key whose unsigned order is the wanted
 * one, and carries its place where places are wanted; else its key alone is
 * sorted, and has all of its bits. Of several lines the f32 keys that go alone
 * have the line's number above them, so one radix sort (CUB's, from CCCL)
 * orders every line; the others need a second, stable sort by line, and so
 * places, too. Limited by bytes: a pass a byte of the key. Keys and places have
 * 32 bits each where that is enough. */
#include "scratch_parts.h"
#include "sort_keys.h"

#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>

enum { THREADS = 256, BLOCKS_PER_SM = 16 };

/* rows are lines, cols the places along one; element e is at place e % cols
 * of line e / cols. */
typedef struct sort_job {
    gpu_view from, to, order;
    int has_values, has_order, descending, is_f64;
    int64_t size;
    int has_places; /* else keys are sorted alone */
    void *keys, *places;
} sort_job;

/* --- keys alone -------------------------------------------------------------
 * They keep every bit; NaN of either sign are turned round to the end by so
 * many codes as there are of a sign. */

#define NAN_CODES (((uint64_t)1 << 52) - 1)
#define SHORT_NAN_CODES (((uint32_t)1 << 23) - 1)

__host__ __device__ __forceinline__ uint64_t whole_key(uint64_t bits,
                                                       int descending)
{
    bits = bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
    return (descending ? ~bits : bits) - NAN_CODES;
}

__host__ __device__ __forceinline__ uint32_t whole_key(uint32_t bits,
                                                       int descending)
{
    bits = bits >> 31 ? ~bits : bits | (uint32_t)1 << 31;
    return (descending ? ~bits : bits) - SHORT_NAN_CODES;
}

/* With the line above it, where the key has room for that. */
template <class K>
__device__ __forceinline__ K whole_key_of(const sort_job &job, int64_t line,
                                          int64_t at)
{
    if (job.is_f64) {
        double x = load<double>(job.from, at);
        return (K)whole_key((uint64_t)__double_as_longlong(x), job.descending);
    }
    uint32_t bits = __float_as_uint(load<float>(job.from, at));
    return (K)((uint64_t)line << 32 | whole_key(bits, job.descending));
}

__device__ __forceinline__ void store_key(const sort_job &job, int64_t at,
                                          uint64_t key)
{
    if (job.is_f64) {
        uint64_t bits = key + NAN_CODES;
        bits = job.descending ? ~bits : bits;
        bits = bits >> 63 ? bits & ~((uint64_t)1 << 63) : ~bits;
        store<double>(job.to, at, __longlong_as_double((long long)bits));
        return;
    }
    uint32_t bits = (uint32_t)key + SHORT_NAN_CODES;
    bits = job.descending ? ~bits : bits;
    bits = bits >> 31 ? bits & ~((uint32_t)1 << 31) : ~bits;
    store<float>(job.to, at, __uint_as_float(bits));
}

template <class K>
__device__ __forceinline__ int64_t find_key(const K *keys, int64_t n,
                                            uint64_t key)
{
    int64_t low = 0;
    while (low < n) {
        int64_t middle = low + (n - low) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* The keys of zeros and of numbers that are not NaN end before these. */
typedef struct special_keys {
    uint64_t zero, zeros_end, numbers_end;
} special_keys;

static special_keys special_keys_of(const sort_job *job)
{
    const uint64_t sign = (uint64_t)1 << 63, infinity = (uint64_t)0x7ff << 52;
    int down = job->descending;
    uint64_t zero = whole_key(down ? 0 : sign, down);
    uint64_t last = whole_key(down ? infinity | sign : infinity, down);
    if (!job->is_f64) {
        const uint32_t sign32 = (uint32_t)1 << 31;
        const uint32_t infinity32 = (uint32_t)0xff << 23;
        zero = whole_key(down ? 0u : sign32, down);
        last = whole_key(down ? infinity32 | sign32 : infinity32, down);
    }
    return {zero, zero + 2, last + 1};
}

/* Where what equals zero, or is NaN, begins in a sorted line that has several
 * kinds of it; else -1. */
typedef struct mixture {
    int64_t zeros, nans;
} mixture;

template <class K>
__device__ __forceinline__ mixture find_mixture(const sort_job &job,
                                                const special_keys &special,
                                                int64_t line)
{
    int64_t cols = job.from.cols;
    const K *keys = (const K *)job.keys + line * cols;
    uint64_t above = job.is_f64 ? 0 : (uint64_t)line << 32;
    int64_t zeros = find_key(keys, cols, above + special.zero);
    int64_t end = find_key(keys, cols, above + special.zeros_end);
    int64_t nans = find_key(keys, cols, above + special.numbers_end);
    int one_zero = zeros == end || keys[zeros] == keys[end - 1];
    int one_nan = nans == cols || keys[nans] == keys[cols - 1];
    return {one_zero ? -1 : zeros, one_nan ? -1 : nans};
}

/* Puts them in the order of the source, all threads of a block together. */
template <class T>
__device__ __forceinline__ void mend_line(const sort_job &job, int64_t line,
                                          mixture m)
{
    typedef cub::BlockScan<int, THREADS> block_scan;
    __shared__ typename block_scan::TempStorage room;
    int64_t cols = job.from.cols;
    for (int64_t first = 0; first < cols; first += THREADS) {
        int64_t j = first + threadIdx.x;
        T x = j < cols ? load<T>(job.from, place(job.from, line, j)) : T(1);
        int is_zero = m.zeros >= 0 && x == 0, is_nan = m.nans >= 0 && x != x;
        int rank, nan_rank, count, nan_count;
        block_scan(room).ExclusiveSum(is_zero, rank, count);
        __syncthreads(); /* room is free again */
        block_scan(room).ExclusiveSum(is_nan, nan_rank, nan_count);
        __syncthreads(); /* likewise */
        if (is_zero)
            store<T>(job.to, place(job.to, line, m.zeros + rank), x);
        if (is_nan)
            store<T>(job.to, place(job.to, line, m.nans + nan_rank), x);
        m.zeros += count;
        m.nans += nan_count;
    }
}

/* A thread looks at a line; lines that need it are few. */
template <class T, class K>
__global__ void __launch_bounds__(THREADS)
    mend_kernel(const __grid_constant__ sort_job job,
                const __grid_constant__ special_keys special)
{
    __shared__ mixture found[THREADS];
    int64_t rows = job.from.rows, step = (int64_t)gridDim.x * THREADS;
    for (int64_t first = blockIdx.x * (int64_t)THREADS; first < rows;
         first += step) {
        mixture m = {-1, -1};
        if (first + threadIdx.x < rows)
            m = find_mixture<K>(job, special, first + threadIdx.x);
        found[threadIdx.x] = m;
        int any = __syncthreads_or(m.zeros >= 0 || m.nans >= 0);
        for (int k = 0; any && k < THREADS; k++)
            if (found[k].zeros >= 0 || found[k].nans >= 0)
                mend_line<T>(job, first + k, found[k]);
        __syncthreads(); /* found may be written again */
    }
}

/* --- keys, places, values ---------------------------------------------------
 */

template <class K, class P>
__global__ void __launch_bounds__(THREADS)
    key_kernel(const __grid_constant__ sort_job job)
{
    K *keys = (K *)job.keys;
    P *places = (P *)job.places;
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; e < job.size; e += gridDim.x * (int64_t)THREADS) {
        int64_t line = divide(e, job.from.cols);
        int64_t at = place(job.from, line, e - line * job.from.cols);
        if (!job.has_places) {
            keys[e] = whole_key_of<K>(job, line, at);
            continue;
        }
        keys[e] = job.is_f64
                      ? (K)key_of(load<double>(job.from, at), job.descending)
                      : (K)key_of(load<float>(job.from, at), job.descending);
        places[e] = (P)e;
    }
}

/* Between the two sorts of several lines: the one each element came from. */
template <class K, class P>
__global__ void __launch_bounds__(THREADS)
    line_kernel(const __grid_constant__ sort_job job)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; e < job.size; e += gridDim.x * (int64_t)THREADS)
        ((K *)job.keys)[e] =
            (K)divide((int64_t)((const P *)job.places)[e], job.from.cols);
}

template <class K, class P>
__global__ void __launch_bounds__(THREADS)
    write_kernel(const __grid_constant__ sort_job job)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; e < job.size; e += gridDim.x * (int64_t)THREADS) {
        int64_t line = divide(e, job.from.cols);
        int64_t j = e - line * job.from.cols;
        if (!job.has_places) {
            store_key(job, place(job.to, line, j), ((const K *)job.keys)[e]);
            continue;
        }
        int64_t source =
            (int64_t)((const P *)job.places)[e] - line * job.from.cols;
        if (job.has_values)
            store<double>(
                job.to, place(job.to, line, j),
                load<double>(job.from, place(job.from, line, source)));
        if (job.has_order)
            store<double>(job.order, place(job.order, line, j), (double)source);
    }
}

/* Two copies of keys, and of places if there are any, then CUB's own room. */
template <class K, class P> struct sort_room {
    int has_places;
    cub::DoubleBuffer<K> keys;
    cub::DoubleBuffer<P> places;
    void *work;
    size_t work_bytes;
};

template <class K, class P>
static cudaError_t call_sort(cuda_device *d, sort_room<K, P> *room,
                             int64_t size, int bits)
{
    if (room->has_places)
        return cub::DeviceRadixSort::SortPairs(room->work, room->work_bytes,
                                               room->keys, room->places, size,
                                               0, bits, d->stream);
    return cub::DeviceRadixSort::SortKeys(room->work, room->work_bytes,
                                          room->keys, size, 0, bits, d->stream);
}

template <class K, class P>
static gpu_status make_room(cuda_device *d, sort_job *job,
                            sort_room<K, P> *room)
{
    size_t size = (size_t)job->size;
    size_t keys = (size * sizeof(K) + 255) / 256 * 256;
    size_t places = job->has_places ? (size * sizeof(P) + 255) / 256 * 256 : 0;
    char *data;
    room->has_places = job->has_places;
    CHECK(d, call_sort(d, room, job->size, 8 * (int)sizeof(K))); /* how much? */
    TRY(gpu_cuda_scratch(d, 2 * (keys + places) + room->work_bytes,
                         (void **)&data));
    room->keys = cub::DoubleBuffer<K>((K *)data, (K *)(data + keys));
    data += 2 * keys;
    if (room->has_places)
        room->places = cub::DoubleBuffer<P>((P *)data, (P *)(data + places));
    room->work = data + 2 * places;
    job->keys = room->keys.Current();
    job->places = room->has_places ? room->places.Current() : NULL;
    return GPU_OK;
}

template <class K, class P>
static gpu_status radix_sort(cuda_device *d, sort_job *job,
                             sort_room<K, P> *room, int bits)
{
    if (bits > 0)
        CHECK(d, call_sort(d, room, job->size, bits));
    job->keys = room->keys.Current();
    job->places = room->has_places ? room->places.Current() : NULL;
    return GPU_OK;
}

template <class K>
gpu_status gpu_cuda_sort_room(cuda_device *d, int64_t size, int has_places,
                              size_t *bytes)
{
    sort_room<K, uint32_t> room = {};
    room.has_places = has_places;
    CHECK(d, call_sort(d, &room, size, 8 * (int)sizeof(K)));
    *bytes = room.work_bytes;
    return GPU_OK;
}

template <class K>
gpu_status gpu_cuda_sort_keys(cuda_device *d, sort_keys<K> *s, int bits,
                              void *work, size_t bytes)
{
    sort_room<K, uint32_t> room = {s->places != NULL,
                                   {s->keys, s->other_keys},
                                   {s->places, s->other_places},
                                   work,
                                   bytes};
    if (bits > 0)
        CHECK(d, call_sort(d, &room, s->size, bits));
    s->keys = room.keys.Current();
    s->other_keys = room.keys.Alternate();
    s->places = room.places.Current();
    s->other_places = room.places.Alternate();
    return GPU_OK;
}

template gpu_status gpu_cuda_sort_room<uint32_t>(cuda_device *, int64_t, int,
                                                 size_t *);
template gpu_status gpu_cuda_sort_room<uint64_t>(cuda_device *, int64_t, int,
                                                 size_t *);
template gpu_status gpu_cuda_sort_keys(cuda_device *, sort_keys<uint32_t> *,
                                       int, void *, size_t);
template gpu_status gpu_cuda_sort_keys(cuda_device *, sort_keys<uint64_t> *,
                                       int, void *, size_t);

/* Before a sort of all elements, which takes long. */
static gpu_status go_on(cuda_device *d, int64_t size)
{
    const double bytes_an_element = 128; /* some passes over keys and places */
    return gpu_cuda_go_on(d, bytes_an_element * (double)size);
}

static unsigned blocks_for(cuda_device *d, int64_t n)
{
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    return (unsigned)smaller(ceil_div(n, THREADS), most);
}

template <class K, class P>
static gpu_status mend(cuda_device *d, const sort_job *job)
{
    auto kernel =
        job->is_f64 ? mend_kernel<double, uint64_t> : mend_kernel<float, K>;
    kernel<<<blocks_for(d, job->from.rows), THREADS, 0, d->stream>>>(
        *job, special_keys_of(job));
    LAUNCHED(d);
    return GPU_OK;
}

template <class K, class P>
static gpu_status sort(cuda_device *d, sort_job *job)
{
    sort_room<K, P> room = {};
    int line_bits = bits_for(job->from.rows);
    unsigned blocks = blocks_for(d, job->size);
    TRY(make_room(d, job, &room));
    TRY(go_on(d, job->size));
    key_kernel<K, P><<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    int key_bits = job->is_f64 ? 64 : 32;
    if (!job->has_places)
        key_bits += line_bits;
    TRY(radix_sort(d, job, &room, key_bits));
    if (job->has_places && line_bits > 0) {
        TRY(go_on(d, job->size));
        line_kernel<K, P><<<blocks, THREADS, 0, d->stream>>>(*job);
        LAUNCHED(d);
        TRY(radix_sort(d, job, &room, line_bits));
    }
    write_kernel<K, P><<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return job->has_places ? GPU_OK : mend<K, P>(d, job);
}

/* --- one line that lies without gaps ----------------------------------------
 * CUB reads and writes the numbers themselves. Zeros of both signs are one key
 * to it, as they should be; but NaN with a sign are not: those it puts first
 * are turned round to the end. */

/* room: for a line; front: how many NaN came first. */
template <class T> struct line_job {
    T *line, *room;
    int64_t size, *front;
};

/* How many elements come before the NaN of a line, or before what is none where
 * the first is. */
template <class T>
__device__ __forceinline__ int64_t first_kind(const T *line, int64_t n)
{
    bool is_nan = line[0] != line[0];
    int64_t low = 0;
    while (low < n) {
        int64_t middle = low + (n - low) / 2;
        if ((line[middle] != line[middle]) == is_nan)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* Into room, as it shall be; nothing where no NaN comes first. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    turn_kernel(const __grid_constant__ line_job<T> job)
{
    __shared__ int64_t front;
    if (threadIdx.x == 0) {
        bool has_nan = job.line[0] != job.line[0];
        front = has_nan ? first_kind(job.line, job.size) : 0;
        if (blockIdx.x == 0)
            *job.front = front;
    }
    __syncthreads(); /* front is there */
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; front > 0 && e < job.size; e += gridDim.x * (int64_t)THREADS)
        job.room[e < front ? e + job.size - front : e - front] = job.line[e];
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    take_back_kernel(const __grid_constant__ line_job<T> job)
{
    bool is_turned = *job.front > 0;
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; is_turned && e < job.size; e += gridDim.x * (int64_t)THREADS)
        job.line[e] = job.room[e];
}

__device__ __forceinline__ uint64_t bits_of(double x)
{
    return (uint64_t)__double_as_longlong(x);
}

__device__ __forceinline__ uint64_t bits_of(float x)
{
    return __float_as_uint(x);
}

/* NaN of several codes, into the order of the source. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    mend_nans_kernel(const __grid_constant__ sort_job job)
{
    __shared__ int64_t nans;
    const T *line = (const T *)job.to.data;
    int64_t n = job.size;
    if (line[n - 1] == line[n - 1])
        return;
    if (threadIdx.x == 0) {
        int64_t first = line[0] != line[0] ? 0 : first_kind(line, n);
        nans = bits_of(line[first]) != bits_of(line[n - 1]) ? first : -1;
    }
    __syncthreads(); /* nans is there */
    if (nans >= 0)
        mend_line<T>(job, 0, {-1, nans});
}

template <class T>
static cudaError_t call_line_sort(cuda_device *d, const sort_job *job,
                                  void *work, size_t *bytes)
{
    const T *from = (const T *)job->from.data;
    T *to = (T *)job->to.data;
    int bits = 8 * (int)sizeof(T);
    return job->descending
               ? cub::DeviceRadixSort::SortKeysDescending(
                     work, *bytes, from, to, job->size, 0, bits, d->stream)
               : cub::DeviceRadixSort::SortKeys(work, *bytes, from, to,
                                                job->size, 0, bits, d->stream);
}

template <class T> static gpu_status sort_line(cuda_device *d, sort_job *job)
{
    size_t work_bytes = 0, line_bytes = (size_t)job->size * sizeof(T);
    unsigned blocks = blocks_for(d, job->size);
    line_job<T> turning = {(T *)job->to.data, NULL, job->size, NULL};
    char *room;
    CHECK(d, call_line_sort<T>(d, job, NULL, &work_bytes)); /* how much? */
    size_t most = work_bytes > line_bytes ? work_bytes : line_bytes;
    TRY(gpu_cuda_scratch(d, rounded_room(sizeof *turning.front) + most,
                         (void **)&room));
    turning.front = take_part<int64_t>(&room, 1);
    turning.room = (T *)room; /* when CUB has done */
    TRY(go_on(d, job->size));
    CHECK(d, call_line_sort<T>(d, job, room, &work_bytes));
    turn_kernel<T><<<blocks, THREADS, 0, d->stream>>>(turning);
    LAUNCHED(d);
    take_back_kernel<T><<<blocks, THREADS, 0, d->stream>>>(turning);
    LAUNCHED(d);
    mend_nans_kernel<T><<<1, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

/* Places and lines of 32 bits are enough for so many elements. */
static bool is_short(int64_t size)
{
    return size <= UINT32_MAX;
}

static gpu_status sort_any(cuda_device *d, sort_job *job)
{
    bool has_lines = job->from.rows > 1;
    job->has_places = job->has_order || (job->is_f64 && has_lines);
    if (!job->has_places && !has_lines && is_gapless(&job->from) &&
        is_gapless(&job->to))
        return job->is_f64 ? sort_line<double>(d, job)
                           : sort_line<float>(d, job);
    if (!job->has_places)
        return job->is_f64 || has_lines ? sort<uint64_t, uint32_t>(d, job)
                                        : sort<uint32_t, uint32_t>(d, job);
    if (!is_short(job->size))
        return sort<uint64_t, int64_t>(d, job);
    return job->is_f64 ? sort<uint64_t, uint32_t>(d, job)
                       : sort<uint32_t, uint32_t>(d, job);
}

size_t gpu_cuda_copy_bytes(const gpu_view *v)
{
    return (size_t)(v->rows * v->cols) * dtype_bytes(v->dtype);
}

gpu_status gpu_cuda_copy_view(cuda_device *d, const char *what, gpu_view *v,
                              void **copy)
{
    size_t bytes = gpu_cuda_copy_bytes(v);
    gpu_program identity = {};
    gpu_view flat = {NULL, v->dtype, v->rows, v->cols, v->cols, 1};
    identity.inputs = 1;
    identity.compute = v->dtype;
    gpu_status status = gpu_cuda_alloc(d, bytes, copy);
    if (status == GPU_MEMORY)
        return FAIL(GPU_MEMORY, "%s: no room for a copy of %zu bytes", what,
                    bytes);
    TRY(status);
    flat.data = *copy;
    TRY(gpu_cuda_map(d, &identity, v, &flat));
    *v = flat;
    return GPU_OK;
}

gpu_status gpu_cuda_prepare_sort(cuda_device *d)
{
    static bool is_broken; /* and then CUB would wait for ever */
    cudaError_t error = cudaErrorInitializationError;
    int version;
    if (!is_broken) {
        try {
            error = cub::PtxVersion(version);
        } catch (...) { /* it throws where it cannot tell the device */
        }
        is_broken = error != cudaSuccess;
    }
    return gpu_cuda_check(d, error);
}

gpu_status gpu_cuda_sort(void *device, int axis, int descending,
                         const gpu_view *from, const gpu_view *to,
                         const gpu_view *order)
{
    ENTER(d, device);
    sort_job job = {};
    void *copy = NULL;
    gpu_status status = GPU_OK;
    if (from->rows == 0 || from->cols == 0)
        return GPU_OK;
    job.from = *from;
    job.has_values = to != NULL;
    if (to != NULL)
        job.to = *to;
    job.has_order = order != NULL;
    if (order != NULL)
        job.order = *order;
    job.descending = descending;
    job.is_f64 = from->dtype == GPU_F64;
    job.size = from->rows * from->cols;
    if (axis == 1) {
        swap_axes(&job.from);
        swap_axes(&job.to);
        swap_axes(&job.order);
    }
    if (to != NULL && from->data == to->data)
        status = gpu_cuda_copy_view(d, "sort", &job.from, &copy);
    if (status == GPU_OK)
        status = sort_any(d, &job);
    gpu_cuda_free(d, copy, gpu_cuda_copy_bytes(from));
    return status;
}

/* --- rows by code -----------------------------------------------------------
 * Codes are keys of few bits, so a pass or two order them. Counts are of whole
 * numbers, which any order adds up alike. */

enum { SHARED_COUNTS = 4096 }; /* groups that a block counts for itself */

typedef struct group_job {
    gpu_view codes, order, counts;
    double first;
    int64_t groups, rows;
    void *keys, *places;
    unsigned long long *count; /* one a group */
} group_job;

/* `groups` itself stands for none. */
__device__ __forceinline__ int64_t group_of(const group_job &job, int64_t row)
{
    double code =
        load<double>(job.codes, row * job.codes.row_stride) - job.first;
    bool is_inside = code >= 0 && code < (double)job.groups;
    return is_inside ? (int64_t)code : job.groups;
}

template <class K, class P>
__global__ void __launch_bounds__(THREADS)
    group_key_kernel(const __grid_constant__ group_job job)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; i < job.rows; i += gridDim.x * (int64_t)THREADS) {
        ((K *)job.keys)[i] = (K)group_of(job, i);
        ((P *)job.places)[i] = (P)i;
    }
}

template <class P>
__global__ void __launch_bounds__(THREADS)
    group_order_kernel(const __grid_constant__ group_job job)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; i < job.rows; i += gridDim.x * (int64_t)THREADS)
        store<double>(job.order, i * job.order.row_stride,
                      (double)((const P *)job.places)[i] + 1);
}

/* Each block for itself where there are few groups, as most rows would meet at
 * few places. */
__global__ void __launch_bounds__(THREADS)
    group_count_kernel(const __grid_constant__ group_job job)
{
    __shared__ unsigned own[SHARED_COUNTS];
    bool is_shared = job.groups <= SHARED_COUNTS;
    for (int k = threadIdx.x; is_shared && k < job.groups; k += THREADS)
        own[k] = 0;
    __syncthreads(); /* own is zero */
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; i < job.rows; i += gridDim.x * (int64_t)THREADS) {
        int64_t group = group_of(job, i);
        if (group == job.groups)
            continue;
        if (is_shared)
            atomicAdd(own + group, 1u);
        else
            atomicAdd(job.count + group, 1ull);
    }
    __syncthreads(); /* own is complete */
    for (int k = threadIdx.x; is_shared && k < job.groups; k += THREADS)
        if (own[k])
            atomicAdd(job.count + k, (unsigned long long)own[k]);
}

__global__ void __launch_bounds__(THREADS)
    group_counts_kernel(const __grid_constant__ group_job job)
{
    int64_t g = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; g < job.groups; g += gridDim.x * (int64_t)THREADS)
        store<double>(job.counts, g * job.counts.row_stride,
                      (double)job.count[g]);
}

/* Whether a group has a row at all: who writes last does not matter. */
__global__ void __launch_bounds__(THREADS)
    group_presence_kernel(const __grid_constant__ group_job job)
{
    uint8_t *is_there = (uint8_t *)job.counts.data;
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; i < job.rows; i += gridDim.x * (int64_t)THREADS) {
        int64_t group = group_of(job, i);
        if (group < job.groups)
            is_there[group * job.counts.row_stride] = 1;
    }
}

static gpu_status mark_groups(cuda_device *d, const group_job *job)
{
    gpu_program none = {};
    none.constants = 1;
    TRY(gpu_cuda_map(d, &none, NULL, &job->counts));
    group_presence_kernel<<<blocks_for(d, job->rows), THREADS, 0, d->stream>>>(
        *job);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status count_groups(cuda_device *d, group_job *job)
{
    if (job->counts.dtype == GPU_BOOL && job->groups > SHARED_COUNTS)
        return mark_groups(d, job);
    size_t bytes = (size_t)job->groups * sizeof *job->count;
    TRY(gpu_cuda_scratch(d, bytes, (void **)&job->count));
    CHECK(d, cudaMemsetAsync(job->count, 0, bytes, d->stream));
    group_count_kernel<<<blocks_for(d, job->rows), THREADS, 0, d->stream>>>(
        *job);
    LAUNCHED(d);
    group_counts_kernel<<<blocks_for(d, job->groups), THREADS, 0, d->stream>>>(
        *job);
    LAUNCHED(d);
    return GPU_OK;
}

template <class K, class P>
static gpu_status order_groups(cuda_device *d, group_job *job)
{
    sort_job sorting = {};
    sort_room<K, P> room = {};
    unsigned blocks = blocks_for(d, job->rows);
    sorting.size = job->rows;
    sorting.has_places = 1;
    TRY(make_room(d, &sorting, &room));
    job->keys = sorting.keys;
    job->places = sorting.places;
    group_key_kernel<K, P><<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    TRY(radix_sort(d, &sorting, &room, bits_for(job->groups + 1)));
    job->places = sorting.places;
    group_order_kernel<P><<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_group(void *device, const gpu_grouping *g)
{
    ENTER(d, device);
    group_job job = {g->codes, g->order,  g->counts,
                     g->first, g->groups, g->codes.rows};
    if (job.rows == 0)
        return GPU_OK;
    if (g->counts.data && g->groups > 0)
        TRY(count_groups(d, &job));
    if (!g->order.data)
        return GPU_OK;
    return is_short(job.rows) && is_short(job.groups)
               ? order_groups<uint32_t, uint32_t>(d, &job)
               : order_groups<uint64_t, int64_t>(d, &job);
}
