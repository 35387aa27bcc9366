/* Rows and columns of a sparse matrix folded to a number each, and its elements
 * at the places of another one's entries.
 *
 * A row of up to LONG entries is folded by some lanes of a warp, as many as an
 * average row is worth; longer ones chunk by chunk of all entries, of which
 * each belongs in parts to at most two of them, and the parts are joined
 * afterwards. What is joined when, the matrix alone decides: bits repeat.
 * Columns are the rows of the transpose, of which no more is made than the
 * order of its entries: values of four bytes go through the sort themselves,
 * others are found by their numbers. Limited by bytes, of columns by those of
 * the sort. */
#include "sparse_entries.h"

enum { CHUNK = 4096, LONG = CHUNK }; /* LONG is not below CHUNK */

/* --- what is folded ---------------------------------------------------------
 * A fold has a state, one that changes nothing, what an entry makes of it, how
 * two are joined, the first one's entries before the other's, and what a place
 * without an entry does. */

__device__ __forceinline__ bool is_nan(double x)
{
    return x != x;
}

__device__ __forceinline__ bool is_nan(double2 x)
{
    return x.x != x.x || x.y != x.y;
}

__device__ __forceinline__ double square_of(double x)
{
    return x * x;
}

__device__ __forceinline__ double square_of(double2 x)
{
    return x.x * x.x + x.y * x.y;
}

template <class V> struct sums {
    typedef sum_of<V> state;
    __device__ static state nothing(bool)
    {
        return {};
    }
    __device__ static state take(sum_of<V> x, bool skips)
    {
        return skips && is_nan(x) ? state() : x;
    }
    __device__ static state join(state a, state b, bool)
    {
        add(&a, b);
        return a;
    }
    __device__ static state with_zero(state a, bool)
    {
        return a;
    }
};

/* Of what a function makes of each entry, which is a real number. */
template <class V, int KIND> struct counts {
    typedef double state;
    __device__ static state nothing(bool)
    {
        return 0;
    }
    __device__ static state take(sum_of<V> x, bool skips)
    {
        if (KIND == GPU_SPARSE_NANS)
            return is_nan(x);
        if (skips && is_nan(x))
            return 0;
        return KIND == GPU_SPARSE_NONZEROS ? !is_zero(x) : square_of(x);
    }
    __device__ static state join(state a, state b, bool)
    {
        return a + b;
    }
    __device__ static state with_zero(state a, bool)
    {
        return a;
    }
};

/* NaN stays where it is not left out, and gives way where it is: of elements
 * that are all left out it remains. */
template <class V, bool IS_MAX> struct extremes {
    typedef double state;
    __device__ static state nothing(bool skips)
    {
        if (skips)
            return nan("");
        return IS_MAX ? -INFINITY : INFINITY;
    }
    __device__ static state take(double x, bool)
    {
        return x;
    }
    __device__ static state take(double2 x, bool) /* is never called */
    {
        return x.x;
    }
    __device__ static state join(state a, state b, bool skips)
    {
        bool beats = IS_MAX ? b > a : b < a;
        return beats || is_nan(skips ? a : b) ? b : a;
    }
    __device__ static state with_zero(state a, bool skips)
    {
        return join(a, 0, skips);
    }
};

/* mantissa * 2^exponent: does not overflow on the way. */
struct scaled_number {
    double mantissa;
    long long exponent;
};

template <class V> struct products {
    typedef scaled_number state;
    __device__ static state nothing(bool)
    {
        return {1, 0};
    }
    __device__ static state scaled(double x, long long exponent)
    {
        int more = 0;
        double mantissa = frexp(x, &more);
        bool is_plain = mantissa != 0 && isfinite(mantissa);
        return {mantissa, is_plain ? exponent + more : 0};
    }
    __device__ static state take(double x, bool skips)
    {
        return skips && is_nan(x) ? nothing(skips) : scaled(x, 0);
    }
    __device__ static state join(state a, state b, bool)
    {
        return scaled(a.mantissa * b.mantissa, a.exponent + b.exponent);
    }
    __device__ static state with_zero(state a, bool)
    {
        return scaled(a.mantissa * 0, 0);
    }
};

template <class V> struct products_of_pairs {
    typedef double2 state;
    __device__ static state nothing(bool)
    {
        return {1, 0};
    }
    __device__ static state take(double2 x, bool)
    {
        return x;
    }
    __device__ static state join(state a, state b, bool)
    {
        return times_alone(a, b);
    }
    __device__ static state with_zero(state a, bool)
    {
        return {a.x * 0, a.y * 0};
    }
};
template <> struct products<float2> : products_of_pairs<float2> {
};
template <> struct products<double2> : products_of_pairs<double2> {
};

/* A result as it is stored. */
__device__ __forceinline__ void put(double *out, int64_t i, double x)
{
    out[i] = x;
}

__device__ __forceinline__ void put(double *out, int64_t i, double2 x)
{
    out[2 * i] = x.x;
    out[2 * i + 1] = x.y;
}

__device__ __forceinline__ void put(double *out, int64_t i, scaled_number x)
{
    out[i] = ldexp(x.mantissa, (int)max(-5000ll, min(x.exponent, 5000ll)));
}

__device__ __forceinline__ double from_lane(double x, int apart)
{
    return __shfl_down_sync(~0u, x, apart);
}

__device__ __forceinline__ double2 from_lane(double2 x, int apart)
{
    return {from_lane(x.x, apart), from_lane(x.y, apart)};
}

__device__ __forceinline__ scaled_number from_lane(scaled_number x, int apart)
{
    return {from_lane(x.mantissa, apart),
            __shfl_down_sync(~0u, x.exponent, apart)};
}

/* --- rows ------------------------------------------------------------------
 */

/* parts: two of each chunk: of the row that its first entry is in, and of the
 * one that its last entry is in, where that is another one. */
template <class V, class F> struct fold_job {
    typedef typename F::state state;
    const int32_t *starts;
    const V *values;
    const uint32_t *order; /* entry e's value is number order[e]; NULL: e */
    int64_t rows, cols, count;
    int lanes; /* of a short row */
    bool skips;
    state *parts;
    double *out;
};

template <class V, class F>
__device__ __forceinline__ typename F::state taken(const fold_job<V, F> &job,
                                                   int64_t e)
{
    int64_t at = job.order ? (int64_t)job.order[e] : e;
    return F::take(widest(job.values[at]), job.skips);
}

/* Entries e, e + step … below end. */
template <class V, class F>
__device__ __forceinline__ typename F::state
fold_entries(const fold_job<V, F> &job, int64_t e, int64_t end, int step)
{
    typename F::state so_far = F::nothing(job.skips);
#pragma unroll 4
    for (; e < end; e += step)
        so_far = F::join(so_far, taken(job, e), job.skips);
    return so_far;
}

/* What `lanes` lanes have: all of it, in the first of them. */
template <class F>
__device__ __forceinline__ typename F::state join_lanes(typename F::state own,
                                                        int lanes, bool skips)
{
    for (int apart = lanes / 2; apart > 0; apart /= 2) {
        typename F::state other = from_lane(own, apart);
        if ((int)threadIdx.x % lanes + apart < lanes)
            own = F::join(own, other, skips);
    }
    return own;
}

template <class V, class F>
__device__ __forceinline__ void put_row(const fold_job<V, F> &job, int64_t i,
                                        typename F::state x)
{
    bool has_gaps = job.starts[i + 1] - job.starts[i] < job.cols;
    put(job.out, i, has_gaps ? F::with_zero(x, job.skips) : x);
}

template <class V, class F>
__global__ void __launch_bounds__(THREADS)
    fold_short_kernel(const __grid_constant__ fold_job<V, F> job)
{
    int lane = threadIdx.x % job.lanes;
    int64_t i =
        blockIdx.x * (int64_t)(THREADS / job.lanes) + threadIdx.x / job.lanes;
    int64_t first = 0, end = 0;
    if (i < job.rows) {
        first = job.starts[i];
        end = job.starts[i + 1];
    }
    bool is_short = i < job.rows && end - first <= LONG;
    typename F::state own = F::nothing(job.skips);
    if (is_short)
        own = fold_entries(job, first + lane, end, job.lanes);
    own = join_lanes<F>(own, job.lanes, job.skips);
    if (is_short && lane == 0)
        put_row(job, i, own);
}

/* A block's threads fold entries first .. end - 1 into a part. */
template <class V, class F>
__device__ __forceinline__ void fold_part(const fold_job<V, F> &job,
                                          int64_t first, int64_t end,
                                          typename F::state *part)
{
    __shared__ typename F::state shared[THREADS / 32];
    int lane = threadIdx.x % 32;
    typename F::state own = join_lanes<F>(
        fold_entries(job, first + threadIdx.x, end, THREADS), 32, job.skips);
    if (lane == 0)
        shared[threadIdx.x / 32] = own;
    __syncthreads(); /* what warps have is there */
    if (threadIdx.x < 32) {
        own = lane < THREADS / 32 ? shared[lane] : F::nothing(job.skips);
        own = join_lanes<F>(own, 32, job.skips);
        if (lane == 0)
            *part = own;
    }
    __syncthreads(); /* and is read */
}

template <class V, class F>
__global__ void __launch_bounds__(THREADS)
    fold_chunk_kernel(const __grid_constant__ fold_job<V, F> job)
{
    __shared__ int64_t rows[2];
    int64_t first = blockIdx.x * (int64_t)CHUNK;
    int64_t last = min(first + CHUNK, job.count);
    if (threadIdx.x < 2)
        rows[threadIdx.x] = row_between(job.starts, 0, job.rows - 1,
                                        threadIdx.x ? last - 1 : first);
    __syncthreads(); /* the rows of both ends are known */
    for (int k = 0; k < 2; k++) {
        int64_t begin = job.starts[rows[k]], end = job.starts[rows[k] + 1];
        if (end - begin > LONG && (k == 0 || rows[1] != rows[0]))
            fold_part(job, max(begin, first), min(end, last),
                      job.parts + 2 * (int64_t)blockIdx.x + k);
    }
}

/* A warp looks at 32 rows, and joins the parts of those that are long. */
template <class V, class F>
__global__ void __launch_bounds__(THREADS)
    fold_long_kernel(const __grid_constant__ fold_job<V, F> job)
{
    int lane = threadIdx.x % 32;
    int64_t mine = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    bool is_long =
        mine < job.rows && job.starts[mine + 1] - job.starts[mine] > LONG;
    for (unsigned left = __ballot_sync(~0u, is_long); left != 0;
         left &= left - 1) {
        int64_t i = mine - lane + __ffs((int)left) - 1;
        int64_t first = job.starts[i] / CHUNK;
        int64_t end = (job.starts[i + 1] - 1) / CHUNK + 1;
        typename F::state own = F::nothing(job.skips);
        for (int64_t c = first + lane; c < end; c += 32) {
            /* Of its first chunk the row has the last part, where another row
             * begins that chunk. */
            bool is_second = c == first && job.starts[i] % CHUNK != 0;
            own = F::join(own, job.parts[2 * c + is_second], job.skips);
        }
        own = join_lanes<F>(own, 32, job.skips);
        if (lane == 0)
            put_row(job, i, own);
    }
}

static int lanes_for(const gpu_csr *s)
{
    int lanes = 1;
    while (lanes < 32 && lanes * s->rows < s->count)
        lanes *= 2;
    return lanes;
}

template <class V, class F>
static gpu_status fold_rows(cuda_device *d, const gpu_csr *s,
                            const uint32_t *order, bool skips, double *out)
{
    int64_t chunks = s->count > LONG ? ceil_div(s->count, CHUNK) : 0;
    fold_job<V, F> job = {
        s->starts, (const V *)s->values, order, s->rows, s->cols,
        s->count,  lanes_for(s),         skips};
    job.out = out;
    if (chunks > 0)
        TRY(gpu_cuda_scratch(d, 2 * (size_t)chunks * sizeof *job.parts,
                             (void **)&job.parts));
    fold_short_kernel<V, F>
        <<<blocks_of(s->rows * job.lanes), THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    if (chunks == 0)
        return GPU_OK;
    fold_chunk_kernel<V, F><<<(unsigned)chunks, THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    fold_long_kernel<V, F><<<blocks_of(s->rows), THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
}

/* order: see fold_job. */
static gpu_status fold_kind(cuda_device *d, const gpu_sparse_folding *how,
                            const gpu_csr *s, const uint32_t *order,
                            double *out)
{
    bool skips = how->skips_nan;
    return with_type(s->dtype, [=](auto x) {
        typedef decltype(x) V;
        switch (how->kind) {
        case GPU_SPARSE_SUM:
            return fold_rows<V, sums<V>>(d, s, order, skips, out);
        case GPU_SPARSE_PROD:
            return fold_rows<V, products<V>>(d, s, order, skips, out);
        case GPU_SPARSE_MIN:
            return fold_rows<V, extremes<V, false>>(d, s, order, skips, out);
        case GPU_SPARSE_MAX:
            return fold_rows<V, extremes<V, true>>(d, s, order, skips, out);
        case GPU_SPARSE_SQUARES:
            return fold_rows<V, counts<V, GPU_SPARSE_SQUARES>>(d, s, order,
                                                               skips, out);
        case GPU_SPARSE_NONZEROS:
            return fold_rows<V, counts<V, GPU_SPARSE_NONZEROS>>(d, s, order,
                                                                skips, out);
        default:
            return fold_rows<V, counts<V, GPU_SPARSE_NANS>>(d, s, order, skips,
                                                            out);
        }
    });
}

/* --- columns ---------------------------------------------------------------
 */

/* Entries by column: payload k is value k itself where that has four bytes,
 * else k. */
template <class V>
__global__ void __launch_bounds__(THREADS)
    column_kernel(const __grid_constant__ gpu_csr s, uint32_t *keys,
                  uint32_t *payload)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e >= s.count)
        return;
    keys[e] = (uint32_t)s.columns[e];
    payload[e] = sizeof(V) == sizeof(uint32_t) ? ((const uint32_t *)s.values)[e]
                                               : (uint32_t)e;
}

/* Device memory for the order of a matrix's entries by column. */
struct column_room {
    char *memory;
    size_t bytes, work; /* all of it, and what the sort works in */
};

static gpu_status take_column_room(cuda_device *d, const gpu_csr *s,
                                   column_room *r)
{
    size_t list = rounded_room((size_t)s->count * sizeof(uint32_t));
    r->work = 0;
    if (s->count > 0)
        TRY(gpu_cuda_sort_room<uint32_t>(d, s->count, 1, &r->work));
    r->bytes = rounded_room(((size_t)s->cols + 1) * sizeof(int32_t)) +
               4 * list + r->work;
    gpu_status status = gpu_cuda_alloc(d, r->bytes, (void **)&r->memory);
    return status == GPU_MEMORY
               ? FAIL(GPU_MEMORY, "no room for %zu bytes of columns", r->bytes)
               : status;
}

static gpu_status order_columns(cuda_device *d, const gpu_csr *s,
                                sort_keys<uint32_t> *p, char *room, size_t work)
{
    const double bytes_an_entry = 75;
    p->keys = take_part<uint32_t>(&room, p->size);
    p->other_keys = take_part<uint32_t>(&room, p->size);
    p->places = take_part<uint32_t>(&room, p->size);
    p->other_places = take_part<uint32_t>(&room, p->size);
    TRY(gpu_cuda_go_on(d, bytes_an_entry * (double)p->size));
    TRY(with_type(s->dtype, [=](auto x) {
        typedef decltype(x) V;
        column_kernel<V><<<blocks_of(s->count), THREADS, 0, d->stream>>>(
            *s, p->keys, p->places);
        LAUNCHED(d);
        return GPU_OK;
    }));
    return gpu_cuda_sort_keys<uint32_t>(d, p, bits_for(s->cols), room, work);
}

/* In that memory. */
static gpu_status fold_ordered(cuda_device *d, const gpu_sparse_folding *how,
                               const gpu_csr *s, const column_room *r,
                               double *out)
{
    char *room = r->memory;
    int32_t *starts = take_part<int32_t>(&room, s->cols + 1);
    gpu_csr turned = {s->cols, s->rows,   s->count, starts,
                      NULL,    s->values, s->dtype};
    sort_keys<uint32_t> p = {s->count};
    if (s->count == 0) {
        CHECK(d,
              cudaMemsetAsync(starts, 0, ((size_t)s->cols + 1) * sizeof *starts,
                              d->stream));
        return fold_kind(d, how, &turned, NULL, out);
    }
    TRY(order_columns(d, s, &p, room, r->work));
    TRY(gpu_cuda_find_starts(d, p.keys, s->count, s->cols, starts));
    if (s->dtype != GPU_F32)
        return fold_kind(d, how, &turned, p.places, out);
    turned.values = p.places;
    return fold_kind(d, how, &turned, NULL, out);
}

static gpu_status fold_columns(cuda_device *d, const gpu_sparse_folding *how,
                               const gpu_csr *s, double *out)
{
    column_room r;
    TRY(take_column_room(d, s, &r));
    gpu_status status = fold_ordered(d, how, s, &r, out);
    gpu_cuda_free(d, r.memory, r.bytes);
    return status;
}

gpu_status gpu_cuda_sparse_reduce(void *device, const gpu_sparse_folding *how,
                                  const gpu_csr *s, double *out)
{
    ENTER(d, device);
    return how->axis == 1 ? fold_columns(d, how, s, out)
                          : fold_kind(d, how, s, NULL, out);
}

/* --- elements at the places of another matrix's entries ---------------------
 */

template <class V>
__global__ void __launch_bounds__(THREADS)
    lookup_kernel(const __grid_constant__ gpu_csr s,
                  const __grid_constant__ gpu_csr places, V *out)
{
    int64_t block = blockIdx.x * (int64_t)THREADS, k = block + threadIdx.x;
    int64_t last = min(block + THREADS, places.count) - 1;
    int64_t row = row_in_block(places.starts, places.rows, block, last, k);
    if (k >= places.count)
        return;
    int32_t column = places.columns[k];
    int64_t e =
        find_column(s.columns, s.starts[row], s.starts[row + 1], column);
    bool is_there = e < s.starts[row + 1] && s.columns[e] == column;
    out[k] = is_there ? ((const V *)s.values)[e] : V();
}

template <class V>
__global__ void __launch_bounds__(THREADS)
    along_kernel(const __grid_constant__ gpu_csr s,
                 const __grid_constant__ gpu_sparse_path path, V *out)
{
    int64_t k = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (k >= path.count)
        return;
    int64_t row = path.row + k;
    int32_t column = (int32_t)(path.column + k * path.step);
    int64_t e =
        find_column(s.columns, s.starts[row], s.starts[row + 1], column);
    bool is_there = e < s.starts[row + 1] && s.columns[e] == column;
    out[k] = is_there ? ((const V *)s.values)[e] : V();
}

gpu_status gpu_cuda_sparse_along(void *device, const gpu_csr *s,
                                 const gpu_sparse_path *path, void *out)
{
    ENTER(d, device);
    if (path->count == 0)
        return GPU_OK;
    return with_type(s->dtype, [=](auto x) {
        typedef decltype(x) V;
        along_kernel<V><<<blocks_of(path->count), THREADS, 0, d->stream>>>(
            *s, *path, (V *)out);
        LAUNCHED(d);
        return GPU_OK;
    });
}

gpu_status gpu_cuda_sparse_lookup(void *device, const gpu_csr *s,
                                  const gpu_csr *places, void *out)
{
    ENTER(d, device);
    if (places->count == 0)
        return GPU_OK;
    return with_type(s->dtype, [=](auto x) {
        typedef decltype(x) V;
        lookup_kernel<V><<<blocks_of(places->count), THREADS, 0, d->stream>>>(
            *s, *places, (V *)out);
        LAUNCHED(d);
        return GPU_OK;
    });
}
