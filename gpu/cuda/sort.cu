/* Stable sorting along one axis, all lines at once.
 *
 * An element becomes a 32- or 64-bit key whose unsigned order is the wanted
 * one, and carries its place. For f32 the line's number stands above the key,
 * so one radix sort (CUB's, from CCCL) orders every line; f64 needs a second,
 * stable pass by line. Limited by bytes: a pass a byte of the key. */
#include "view.h"

#include <cub/device/device_radix_sort.cuh>

enum { THREADS = 256, BLOCKS_PER_SM = 16 };

/* rows are lines, cols the places along one; element e is at place e % cols
 * of line e / cols. */
typedef struct sort_job {
    gpu_view from, to, order;
    int has_order, descending, is_f64;
    int64_t size;
    uint64_t *keys;
    int64_t *places;
} sort_job;

/* Zeros of both signs are equal, every NaN comes last. Flipping the sign bit,
 * or all bits of a negative number, makes the bits' order the numbers'. */
__device__ __forceinline__ uint64_t key_of(double x, int descending)
{
    if (x != x)
        return ~(uint64_t)0;
    uint64_t bits = (uint64_t)__double_as_longlong(x == 0 ? 0.0 : x);
    bits = bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
    return descending ? ~bits : bits;
}

__device__ __forceinline__ uint32_t key_of(float x, int descending)
{
    if (x != x)
        return ~(uint32_t)0;
    uint32_t bits = __float_as_uint(x == 0 ? 0.0f : x);
    bits = bits >> 31 ? ~bits : bits | (uint32_t)1 << 31;
    return descending ? ~bits : bits;
}

__global__ void __launch_bounds__(THREADS)
    key_kernel(const __grid_constant__ sort_job job)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; e < job.size; e += gridDim.x * (int64_t)THREADS) {
        int64_t line = divide(e, job.from.cols);
        int64_t at = place(job.from, line, e - line * job.from.cols);
        job.keys[e] =
            job.is_f64 ? key_of(load<double>(job.from, at), job.descending)
                       : (uint64_t)line << 32 |
                             key_of(load<float>(job.from, at), job.descending);
        job.places[e] = e;
    }
}

/* Between the two passes for f64: the line each element came from. */
__global__ void __launch_bounds__(THREADS)
    line_kernel(const __grid_constant__ sort_job job)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; e < job.size; e += gridDim.x * (int64_t)THREADS)
        job.keys[e] = (uint64_t)divide(job.places[e], job.from.cols);
}

__global__ void __launch_bounds__(THREADS)
    write_kernel(const __grid_constant__ sort_job job)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    for (; e < job.size; e += gridDim.x * (int64_t)THREADS) {
        int64_t line = divide(e, job.from.cols);
        int64_t j = e - line * job.from.cols;
        int64_t source = job.places[e] - line * job.from.cols;
        store<double>(job.to, place(job.to, line, j),
                      load<double>(job.from, place(job.from, line, source)));
        if (job.has_order)
            store<double>(job.order, place(job.order, line, j), (double)source);
    }
}

static int bits_for(int64_t count)
{
    int bits = 0;
    while (bits < 63 && (int64_t)1 << bits < count)
        bits++;
    return bits;
}

/* Two copies of keys and places, then CUB's own room. */
typedef struct sort_room {
    cub::DoubleBuffer<uint64_t> keys;
    cub::DoubleBuffer<int64_t> places;
    void *work;
    size_t work_bytes;
} sort_room;

static gpu_status make_room(cuda_device *d, int64_t size, sort_room *room)
{
    size_t part = ((size_t)size * sizeof(uint64_t) + 255) / 256 * 256;
    char *data;
    CHECK(d, cub::DeviceRadixSort::SortPairs(NULL, room->work_bytes, room->keys,
                                             room->places, size, 0, 64,
                                             d->stream));
    TRY(gpu_cuda_scratch(d, 4 * part + room->work_bytes, (void **)&data));
    room->keys = cub::DoubleBuffer<uint64_t>((uint64_t *)data,
                                             (uint64_t *)(data + part));
    room->places = cub::DoubleBuffer<int64_t>((int64_t *)(data + 2 * part),
                                              (int64_t *)(data + 3 * part));
    room->work = data + 4 * part;
    return GPU_OK;
}

static gpu_status radix_sort(cuda_device *d, sort_job *job, sort_room *room,
                             int bits)
{
    if (bits > 0)
        CHECK(d, cub::DeviceRadixSort::SortPairs(
                     room->work, room->work_bytes, room->keys, room->places,
                     job->size, 0, bits, d->stream));
    job->keys = room->keys.Current();
    job->places = room->places.Current();
    return GPU_OK;
}

/* Between two sorts of all elements, each of which takes long: what is issued
 * cannot be stopped. */
static gpu_status go_on(cuda_device *d, int64_t size)
{
    const double bytes_an_element = 128; /* some passes over keys and places */
    gpu_cuda_pace(d, NULL, NULL, bytes_an_element * (double)size);
    if (*gpu_cuda_host->interrupted)
        return FAIL(GPU_INTERRUPTED, "interrupted");
    return GPU_OK;
}

static gpu_status sort_places(cuda_device *d, sort_job *job, unsigned blocks)
{
    sort_room room = {};
    int line_bits = bits_for(job->from.rows);
    TRY(make_room(d, job->size, &room));
    TRY(radix_sort(d, job, &room, 0));
    TRY(go_on(d, job->size));
    key_kernel<<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    if (!job->is_f64)
        return radix_sort(d, job, &room, 32 + line_bits);
    TRY(radix_sort(d, job, &room, 64));
    if (line_bits == 0)
        return GPU_OK;
    TRY(go_on(d, job->size));
    line_kernel<<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return radix_sort(d, job, &room, line_bits);
}

/* The sorted elements go where the unsorted ones may still be read. */
static gpu_status detach(cuda_device *d, sort_job *job, void **copy)
{
    size_t bytes = (size_t)job->size * sizeof(double);
    gpu_program identity = {};
    gpu_view flat = {NULL,           GPU_F64,        job->from.rows,
                     job->from.cols, job->from.cols, 1};
    identity.inputs = 1;
    identity.compute = GPU_F64;
    gpu_status status = gpu_cuda_alloc(d, bytes, copy);
    if (status == GPU_MEMORY)
        return FAIL(GPU_MEMORY, "sort: no room for a copy of %zu bytes", bytes);
    TRY(status);
    flat.data = *copy;
    TRY(gpu_cuda_map(d, &identity, &job->from, &flat));
    job->from = flat;
    return GPU_OK;
}

static gpu_status sort(cuda_device *d, sort_job *job)
{
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    unsigned blocks = (unsigned)smaller(ceil_div(job->size, THREADS), most);
    TRY(sort_places(d, job, blocks));
    write_kernel<<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
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
    if (from->data == to->data)
        status = detach(d, &job, &copy);
    if (status == GPU_OK)
        status = sort(d, &job);
    gpu_cuda_free(d, copy, 0);
    return status;
}
