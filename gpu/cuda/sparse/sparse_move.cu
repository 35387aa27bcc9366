/* Sparse matrices of entries of others in other places: triangles, Kronecker
 * products, blocks side by side and one above the other, other sizes of the
 * same row-major order, entries put over others.
 *
 * Where rows begin follows from where those of the parts do, but of triangles
 * and replaced entries, which are counted; then a thread an entry moves it.
 * Limited by bytes. */
#include "sparse_entries.h"

template <class V> struct moving {
    cuda_device *d;
    const gpu_sparse_arranging *how;
    gpu_csr_result *out;
};

/* Room for so many entries, or what it is short of is told. */
template <class V> static gpu_status make_room(moving<V> *m, int64_t count)
{
    m->out->count = count;
    return m->out->make_room(m->out, count);
}

template <class V> static V *values_of(const moving<V> *m)
{
    return (V *)m->out->values;
}

/* --- triangles: columns low .. high - 1 of row i, both counted from i -------
 */

/* Of each row: how many are within, and which is the first. */
__global__ void __launch_bounds__(THREADS)
    band_rows_kernel(const __grid_constant__ gpu_csr s, int64_t low,
                     int64_t high, int32_t *counts, int32_t *first)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i == s.rows)
        counts[i] = 0;
    if (i >= s.rows)
        return;
    int64_t end = s.starts[i + 1];
    int64_t from = find_column(s.columns, s.starts[i], end, i + low);
    first[i] = (int32_t)from;
    counts[i] = (int32_t)(find_column(s.columns, from, end, i + high) - from);
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    band_kernel(const __grid_constant__ gpu_csr s, const int32_t *starts,
                const int32_t *first, int64_t count, int32_t *columns,
                V *values)
{
    int64_t block = blockIdx.x * (int64_t)THREADS, to = block + threadIdx.x;
    int64_t last = min(block + THREADS, count) - 1;
    int64_t row = row_in_block(starts, s.rows, block, last, to);
    if (to >= count)
        return;
    int64_t e = first[row] + (to - starts[row]);
    columns[to] = s.columns[e];
    values[to] = ((const V *)s.values)[e];
}

template <class V> static gpu_status take_band(moving<V> *m)
{
    cuda_device *d = m->d;
    const gpu_csr *s = m->how->parts;
    int32_t *starts = m->out->starts, count;
    size_t scanning, list = rounded_room((size_t)s->rows * sizeof *starts);
    char *room;
    TRY(gpu_cuda_count_room(d, s->rows, &scanning));
    TRY(gpu_cuda_scratch(d, list + scanning, (void **)&room));
    int32_t *first = take_part<int32_t>(&room, s->rows);
    band_rows_kernel<<<blocks_of(s->rows + 1), THREADS, 0, d->stream>>>(
        *s, m->how->low, m->how->high, starts, first);
    LAUNCHED(d);
    TRY(gpu_cuda_scan_counts(d, starts, s->rows, room, scanning));
    TRY(gpu_cuda_download(d, &count, starts + s->rows, sizeof count));
    TRY(make_room(m, count));
    if (count == 0)
        return GPU_OK;
    band_kernel<V><<<blocks_of(count), THREADS, 0, d->stream>>>(
        *s, starts, first, count, m->out->columns, values_of(m));
    LAUNCHED(d);
    return GPU_OK;
}

/* --- Kronecker products -----------------------------------------------------
 */

__global__ void __launch_bounds__(THREADS)
    kron_rows_kernel(const __grid_constant__ gpu_csr a,
                     const __grid_constant__ gpu_csr b, int64_t rows,
                     int32_t *starts)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i > rows)
        return;
    int64_t outer = b.rows > 0 ? i / b.rows : 0, inner = i - outer * b.rows;
    int64_t own = outer < a.rows ? a.starts[outer + 1] - a.starts[outer] : 0;
    starts[i] = (int32_t)(a.starts[outer] * b.count + own * b.starts[inner]);
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    kron_kernel(const __grid_constant__ gpu_csr a,
                const __grid_constant__ gpu_csr b, const int32_t *starts,
                int64_t rows, int64_t count, int32_t *columns, V *values)
{
    int64_t block = blockIdx.x * (int64_t)THREADS, to = block + threadIdx.x;
    int64_t last = min(block + THREADS, count) - 1;
    int64_t row = row_in_block(starts, rows, block, last, to);
    if (to >= count)
        return;
    int64_t outer = row / b.rows, inner = row - outer * b.rows;
    int32_t within = (int32_t)(to - starts[row]);
    int32_t width = b.starts[inner + 1] - b.starts[inner];
    int64_t e = a.starts[outer] + within / width;
    int64_t f = b.starts[inner] + within % width;
    columns[to] = (int32_t)(a.columns[e] * b.cols + b.columns[f]);
    values[to] = narrowed<V>(times_alone(widest(((const V *)a.values)[e]),
                                         widest(((const V *)b.values)[f])));
}

template <class V> static gpu_status multiply_parts(moving<V> *m)
{
    cuda_device *d = m->d;
    const gpu_csr *a = m->how->parts, *b = a + 1;
    int64_t count = a->count * b->count, rows = m->how->rows;
    TRY(make_room(m, count));
    kron_rows_kernel<<<blocks_of(rows + 1), THREADS, 0, d->stream>>>(
        *a, *b, rows, m->out->starts);
    LAUNCHED(d);
    if (count == 0)
        return GPU_OK;
    kron_kernel<V><<<blocks_of(count), THREADS, 0, d->stream>>>(
        *a, *b, m->out->starts, rows, count, m->out->columns, values_of(m));
    LAUNCHED(d);
    return GPU_OK;
}

/* --- blocks -----------------------------------------------------------------
 */

/* starts += where the part's rows begin. */
__global__ void __launch_bounds__(THREADS)
    add_starts_kernel(const int32_t *part, int64_t rows, int32_t *starts)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i <= rows)
        starts[i] += part[i];
}

/* next: where each row's entries go; then, behind them. */
__global__ void __launch_bounds__(THREADS)
    advance_kernel(const int32_t *part, int64_t rows, int32_t *next)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i < rows)
        next[i] += part[i + 1] - part[i];
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    beside_kernel(const __grid_constant__ gpu_csr s, const int32_t *next,
                  int32_t across, int32_t *columns, V *values)
{
    int64_t block = blockIdx.x * (int64_t)THREADS, e = block + threadIdx.x;
    int64_t last = min(block + THREADS, s.count) - 1;
    int64_t row = row_in_block(s.starts, s.rows, block, last, e);
    if (e >= s.count)
        return;
    int64_t to = next[row] + (e - s.starts[row]);
    columns[to] = s.columns[e] + across;
    values[to] = ((const V *)s.values)[e];
}

static int64_t count_all(const gpu_sparse_arranging *how)
{
    int64_t count = 0;
    for (int64_t k = 0; k < how->count; k++)
        count += how->parts[k].count;
    return count;
}

template <class V> static gpu_status put_beside(moving<V> *m)
{
    cuda_device *d = m->d;
    const gpu_sparse_arranging *how = m->how;
    int64_t rows = how->rows, across = 0;
    size_t bytes = ((size_t)rows + 1) * sizeof(int32_t);
    int32_t *next, *starts = m->out->starts;
    TRY(make_room(m, count_all(how)));
    TRY(gpu_cuda_scratch(d, bytes, (void **)&next));
    CHECK(d, cudaMemsetAsync(starts, 0, bytes, d->stream));
    for (int64_t k = 0; k < how->count; k++) {
        add_starts_kernel<<<blocks_of(rows + 1), THREADS, 0, d->stream>>>(
            how->parts[k].starts, rows, starts);
        LAUNCHED(d);
    }
    CHECK(d, cudaMemcpyAsync(next, starts, bytes, cudaMemcpyDeviceToDevice,
                             d->stream));
    for (int64_t k = 0; k < how->count; k++) {
        const gpu_csr *s = &how->parts[k];
        if (s->count > 0) {
            beside_kernel<V><<<blocks_of(s->count), THREADS, 0, d->stream>>>(
                *s, next, (int32_t)across, m->out->columns, values_of(m));
            LAUNCHED(d);
            advance_kernel<<<blocks_of(rows), THREADS, 0, d->stream>>>(
                s->starts, rows, next);
            LAUNCHED(d);
        }
        across += s->cols;
    }
    return GPU_OK;
}

__global__ void __launch_bounds__(THREADS)
    shift_starts_kernel(const int32_t *part, int64_t rows, int32_t before,
                        int32_t *starts)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i <= rows)
        starts[i] = part[i] + before;
}

template <class V> static gpu_status put_above(moving<V> *m)
{
    cuda_device *d = m->d;
    int64_t row = 0, entry = 0;
    TRY(make_room(m, count_all(m->how)));
    for (int64_t k = 0; k < m->how->count; k++) {
        const gpu_csr *s = &m->how->parts[k];
        size_t count = (size_t)s->count;
        shift_starts_kernel<<<blocks_of(s->rows + 1), THREADS, 0, d->stream>>>(
            s->starts, s->rows, (int32_t)entry, m->out->starts + row);
        LAUNCHED(d);
        if (count > 0) {
            CHECK(d, cudaMemcpyAsync(m->out->columns + entry, s->columns,
                                     count * sizeof *s->columns,
                                     cudaMemcpyDeviceToDevice, d->stream));
            CHECK(d, cudaMemcpyAsync(values_of(m) + entry, s->values,
                                     count * sizeof(V),
                                     cudaMemcpyDeviceToDevice, d->stream));
        }
        row += s->rows;
        entry += s->count;
    }
    return GPU_OK;
}

/* --- other sizes: entries keep their order ----------------------------------
 */

/* Row i begins with the first entry that is not before its first place. */
__global__ void __launch_bounds__(THREADS)
    new_rows_kernel(const __grid_constant__ gpu_csr s, int64_t rows,
                    int64_t cols, int32_t *starts)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i > rows)
        return;
    int64_t place = i * cols, row = s.cols > 0 ? place / s.cols : s.rows;
    starts[i] = (int32_t)(row >= s.rows ? s.count
                                        : find_column(s.columns, s.starts[row],
                                                      s.starts[row + 1],
                                                      place - row * s.cols));
}

__global__ void __launch_bounds__(THREADS)
    new_columns_kernel(const __grid_constant__ gpu_csr s, int64_t cols,
                       int32_t *columns)
{
    int64_t block = blockIdx.x * (int64_t)THREADS, e = block + threadIdx.x;
    int64_t last = min(block + THREADS, s.count) - 1;
    int64_t row = row_in_block(s.starts, s.rows, block, last, e);
    if (e < s.count)
        columns[e] = (int32_t)((row * s.cols + s.columns[e]) % cols);
}

template <class V> static gpu_status reshape(moving<V> *m)
{
    cuda_device *d = m->d;
    const gpu_csr *s = m->how->parts;
    int64_t rows = m->how->rows, cols = m->how->cols;
    TRY(make_room(m, s->count));
    new_rows_kernel<<<blocks_of(rows + 1), THREADS, 0, d->stream>>>(
        *s, rows, cols, m->out->starts);
    LAUNCHED(d);
    if (s->count == 0)
        return GPU_OK;
    new_columns_kernel<<<blocks_of(s->count), THREADS, 0, d->stream>>>(
        *s, cols, m->out->columns);
    LAUNCHED(d);
    CHECK(d, cudaMemcpyAsync(m->out->values, s->values,
                             (size_t)s->count * sizeof(V),
                             cudaMemcpyDeviceToDevice, d->stream));
    return GPU_OK;
}

/* --- entries over others: those of x, but for zeros, and of s where x has none
 * Which stay is counted in both; an entry comes behind those that stay before
 * it in its own matrix, and before its column in the other one. */

template <class V>
__global__ void __launch_bounds__(THREADS)
    stays_kernel(const __grid_constant__ gpu_csr s,
                 const __grid_constant__ gpu_csr x, bool is_over, int32_t *kept)
{
    int64_t block = blockIdx.x * (int64_t)THREADS, e = block + threadIdx.x;
    if (e == s.count)
        kept[e] = 0;
    if (block >= s.count)
        return;
    int64_t last = min(block + THREADS, s.count) - 1;
    int64_t row = row_in_block(s.starts, s.rows, block, last, e);
    if (e >= s.count)
        return;
    if (is_over) {
        kept[e] = !is_zero(widest(((const V *)s.values)[e]));
        return;
    }
    int64_t end = x.starts[row + 1];
    int64_t f = find_column(x.columns, x.starts[row], end, s.columns[e]);
    kept[e] = f == end || x.columns[f] != s.columns[e];
}

__global__ void __launch_bounds__(THREADS)
    both_starts_kernel(const __grid_constant__ gpu_csr s,
                       const __grid_constant__ gpu_csr x, const int32_t *of_s,
                       const int32_t *of_x, int32_t *starts)
{
    int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (i <= s.rows)
        starts[i] = of_s[s.starts[i]] + of_x[x.starts[i]];
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    replace_kernel(const __grid_constant__ gpu_csr s,
                   const __grid_constant__ gpu_csr x, const int32_t *of_s,
                   const int32_t *of_x, int32_t *columns, V *values)
{
    int64_t block = blockIdx.x * (int64_t)THREADS, e = block + threadIdx.x;
    int64_t last = min(block + THREADS, s.count) - 1;
    int64_t row = row_in_block(s.starts, s.rows, block, last, e);
    if (e >= s.count || of_s[e + 1] == of_s[e])
        return;
    int64_t f =
        find_column(x.columns, x.starts[row], x.starts[row + 1], s.columns[e]);
    int64_t to = (int64_t)of_s[e] + of_x[f];
    columns[to] = s.columns[e];
    values[to] = ((const V *)s.values)[e];
}

template <class V> static gpu_status replace(moving<V> *m)
{
    cuda_device *d = m->d;
    const gpu_csr *s = m->how->parts, *x = s + 1;
    int32_t *kept[2], counts[2];
    size_t scanning[2], lists = 0;
    char *room;
    for (int k = 0; k < 2; k++) {
        TRY(gpu_cuda_count_room(d, s[k].count, &scanning[k]));
        lists += rounded_room(((size_t)s[k].count + 1) * sizeof *kept[k]);
    }
    size_t work = scanning[0] > scanning[1] ? scanning[0] : scanning[1];
    TRY(gpu_cuda_scratch(d, lists + work, (void **)&room));
    for (int k = 0; k < 2; k++)
        kept[k] = take_part<int32_t>(&room, s[k].count + 1);
    for (int k = 0; k < 2; k++) {
        stays_kernel<V><<<blocks_of(s[k].count + 1), THREADS, 0, d->stream>>>(
            s[k], s[1 - k], k == 1, kept[k]);
        LAUNCHED(d);
        TRY(gpu_cuda_scan_counts(d, kept[k], s[k].count, room, work));
        TRY(gpu_cuda_download(d, &counts[k], kept[k] + s[k].count,
                              sizeof counts[k]));
    }
    TRY(make_room(m, (int64_t)counts[0] + counts[1]));
    both_starts_kernel<<<blocks_of(s->rows + 1), THREADS, 0, d->stream>>>(
        *s, *x, kept[0], kept[1], m->out->starts);
    LAUNCHED(d);
    for (int k = 0; k < 2; k++) {
        if (s[k].count == 0)
            continue;
        replace_kernel<V><<<blocks_of(s[k].count), THREADS, 0, d->stream>>>(
            s[k], s[1 - k], kept[k], kept[1 - k], m->out->columns,
            values_of(m));
        LAUNCHED(d);
    }
    return GPU_OK;
}

/* --- which of them ----------------------------------------------------------
 */

gpu_status gpu_cuda_sparse_arrange(void *device,
                                   const gpu_sparse_arranging *how,
                                   gpu_csr_result *out)
{
    ENTER(d, device);
    return with_type(how->parts[0].dtype, [=](auto x) {
        moving<decltype(x)> m = {d, how, out};
        switch (how->kind) {
        case GPU_SPARSE_BAND:
            return take_band(&m);
        case GPU_SPARSE_KRON:
            return multiply_parts(&m);
        case GPU_SPARSE_BESIDE:
            return put_beside(&m);
        case GPU_SPARSE_ABOVE:
            return put_above(&m);
        case GPU_SPARSE_RESHAPED:
            return reshape(&m);
        default:
            return replace(&m);
        }
    });
}
