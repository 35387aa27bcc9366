/* Some entries of a sparse matrix: those of a mask, or above a size. Which stay
 * is counted, and the counts tell where they go. Limited by bytes. */
#include "sparse_entries.h"

/* NaN stays. */
template <class V>
__global__ void __launch_bounds__(THREADS)
    stay_kernel(const V *values, int64_t count,
                const __grid_constant__ gpu_sparse_choice choice, int32_t *kept)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e < count)
        kept[e] = choice.mask != NULL
                      ? choice.mask[e] != 0
                      : !(size_of(widest(values[e])) <= choice.tolerance);
    if (e == count)
        kept[e] = 0;
}

__global__ void __launch_bounds__(THREADS)
    new_starts_kernel(const int32_t *from, int64_t rows, const int32_t *kept,
                      int32_t *starts)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i <= rows)
        starts[i] = kept[from[i]];
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    move_kernel(const int32_t *from_columns, const V *from, int64_t count,
                const int32_t *kept, bool is_mask, int32_t *columns,
                void *values)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e >= count || kept[e + 1] == kept[e])
        return;
    columns[kept[e]] = from_columns[e];
    if (is_mask)
        ((float *)values)[kept[e]] = 1;
    else
        ((V *)values)[kept[e]] = from[e];
}

gpu_status gpu_cuda_sparse_keep(void *device, const gpu_csr *s,
                                const gpu_sparse_choice *choice,
                                int32_t *starts, int32_t *columns, void *values,
                                int64_t *count)
{
    ENTER(d, device);
    size_t scanning;
    char *room;
    int32_t all;
    TRY(gpu_cuda_count_room(d, s->count, &scanning));
    TRY(gpu_cuda_scratch(
        d, rounded_room(((size_t)s->count + 1) * sizeof(int32_t)) + scanning,
        (void **)&room));
    int32_t *kept = take_part<int32_t>(&room, s->count + 1);
    TRY(with_type(s->dtype, [=](auto x) {
        typedef decltype(x) V;
        stay_kernel<V><<<blocks_of(s->count + 1), THREADS, 0, d->stream>>>(
            (const V *)s->values, s->count, *choice, kept);
        LAUNCHED(d);
        return GPU_OK;
    }));
    TRY(gpu_cuda_scan_counts(d, kept, s->count, room, scanning));
    if (columns != NULL)
        return with_type(s->dtype, [=](auto x) {
            typedef decltype(x) V;
            move_kernel<V><<<blocks_of(s->count), THREADS, 0, d->stream>>>(
                s->columns, (const V *)s->values, s->count, kept,
                choice->mask != NULL, columns, values);
            LAUNCHED(d);
            return GPU_OK;
        });
    new_starts_kernel<<<blocks_of(s->rows + 1), THREADS, 0, d->stream>>>(
        s->starts, s->rows, kept, starts);
    LAUNCHED(d);
    TRY(gpu_cuda_download(d, &all, kept + s->count, sizeof all));
    *count = all;
    return GPU_OK;
}
