/* Sums, differences and products of elements of two sparse matrices; and what a
 * dense one has where a sparse one has entries.
 *
 * The entries of both, each a list that ascends by its places, are merged, and
 * what lies in one place is taken together: no row is longer than another for
 * that. Limited by bytes. */
#include "sparse_entries.h"

#include <cub/device/device_merge.cuh>

__global__ void __launch_bounds__(THREADS)
    place_kernel(const int32_t *starts, const int32_t *columns, int64_t rows,
                 int64_t count, int column_bits, uint32_t number,
                 uint64_t *places, uint32_t *entries)
{
    int64_t first = blockIdx.x * (int64_t)THREADS, e = first + threadIdx.x;
    int64_t last = min(first + THREADS, count) - 1;
    int64_t row = row_in_block(starts, rows, first, last, e);
    if (e >= count)
        return;
    places[e] = (uint64_t)row << column_bits | (uint64_t)columns[e];
    entries[e] = number + (uint32_t)e;
}

static gpu_status list_places(cuda_device *d, const gpu_csr *s, int column_bits,
                              int64_t number, uint64_t *places,
                              uint32_t *entries)
{
    if (s->count == 0)
        return GPU_OK;
    place_kernel<<<blocks_of(s->count), THREADS, 0, d->stream>>>(
        s->starts, s->columns, s->rows, s->count, column_bits, (uint32_t)number,
        places, entries);
    LAUNCHED(d);
    return GPU_OK;
}

/* Places and entries of a, of b, and of both. */
struct merging {
    uint64_t *places[3];
    uint32_t *entries[3];
    int64_t counts[2];
};

struct is_before {
    __device__ bool operator()(uint64_t x, uint64_t y) const
    {
        return x < y;
    }
};

static cudaError_t call_merge(cuda_device *d, const merging *m, void *room,
                              size_t *bytes)
{
    return cub::DeviceMerge::MergePairs(
        room, *bytes, m->places[0], m->entries[0], m->counts[0], m->places[1],
        m->entries[1], m->counts[1], m->places[2], m->entries[2], is_before{},
        d->stream);
}

template <class V>
static gpu_status combine(cuda_device *d, gpu_sparse_op op, const gpu_csr *a,
                          const gpu_csr *b, gpu_csr_result *out)
{
    place_bits bits = place_bits_of(a->rows, a->cols);
    merging m = {{}, {}, {a->count, b->count}};
    int64_t sizes[3] = {a->count, b->count, a->count + b->count};
    int64_t n = sizes[2];
    entry_use use = op == GPU_SPARSE_MUL ? MULTIPLY : ADD;
    size_t merged = 0, scanning, lists = 0;
    char *room;
    CHECK(d, call_merge(d, &m, NULL, &merged));
    TRY(gpu_cuda_count_room(d, n, &scanning));
    size_t work = merged > scanning ? merged : scanning;
    for (int k = 0; k < 3; k++)
        lists += rounded_room((size_t)sizes[k] * sizeof(uint64_t)) +
                 rounded_room((size_t)sizes[k] * sizeof(uint32_t));
    lists += rounded_room(((size_t)n + 1) * sizeof(int32_t));
    TRY(gpu_cuda_scratch(d, lists + work, (void **)&room));
    for (int k = 0; k < 3; k++) {
        m.places[k] = take_part<uint64_t>(&room, sizes[k]);
        m.entries[k] = take_part<uint32_t>(&room, sizes[k]);
    }
    int32_t *kept = take_part<int32_t>(&room, n + 1);
    TRY(list_places(d, a, bits.column, 0, m.places[0], m.entries[0]));
    TRY(list_places(d, b, bits.column, a->count, m.places[1], m.entries[1]));
    CHECK(d, call_merge(d, &m, room, &work));
    entry_list<uint64_t> l = {n, m.places[2], m.entries[2], kept};
    entry_values<V> v = {(const V *)a->values, (const V *)b->values, a->count,
                         op == GPU_SPARSE_SUB ? -1.0 : 1.0};
    TRY((gpu_cuda_count_entries<V, uint64_t>(d, &l, &v, use, a->rows,
                                             bits.column, room, work,
                                             out->starts, &out->count)));
    TRY(out->make_room(out, out->count));
    return gpu_cuda_put_entries<V, uint64_t>(d, &l, &v, use, bits.column,
                                             out->columns, (V *)out->values);
}

gpu_status gpu_cuda_sparse_combine(void *device, gpu_sparse_op op,
                                   const gpu_csr *a, const gpu_csr *b,
                                   gpu_csr_result *out)
{
    ENTER(d, device);
    if (op == GPU_SPARSE_PRODUCT)
        return gpu_cuda_multiply_sparse(d, a, b, out);
    if (a->count + b->count > INT32_MAX)
        return GPU_UNSUPPORTED;
    if (a->count + b->count == 0) {
        CHECK(d, cudaMemsetAsync(out->starts, 0,
                                 ((size_t)a->rows + 1) * sizeof *out->starts,
                                 d->stream));
        return GPU_OK;
    }
    return with_type(a->dtype, [=](auto x) {
        return combine<decltype(x)>(d, op, a, b, out);
    });
}

/* --- elements of a dense matrix ------------------------------------------- */

template <class E>
__global__ void __launch_bounds__(THREADS)
    sample_kernel(const int32_t *starts, const int32_t *columns, int64_t rows,
                  int64_t count, const gpu_view m, E *to)
{
    int64_t first = blockIdx.x * (int64_t)THREADS, e = first + threadIdx.x;
    int64_t last = min(first + THREADS, count) - 1;
    int64_t row = row_in_block(starts, rows, first, last, e);
    if (e < count)
        to[e] = ((const E *)m.data)[place(m, row, columns[e])];
}

template <class E>
static gpu_status sample(cuda_device *d, const gpu_csr *s, const gpu_view *m,
                         E *to)
{
    sample_kernel<E><<<blocks_of(s->count), THREADS, 0, d->stream>>>(
        s->starts, s->columns, s->rows, s->count, *m, to);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_sparse_sample(void *device, const gpu_csr *s,
                                  const gpu_view *m, void *to)
{
    ENTER(d, device);
    if (s->count == 0)
        return GPU_OK;
    if (m->dtype == GPU_BOOL)
        return sample(d, s, m, (uint8_t *)to);
    return with_type(
        m->dtype, [=](auto x) { return sample(d, s, m, (decltype(x) *)to); });
}
