/* spmm merge: a group of lanes takes a piece of the list of rows' ends and
 * entries (see sparse_rows.h), whatever rows it touches, and has columns of d
 * of 16 bytes a lane: there are as many lanes to a group, up to a warp, as
 * columns need.
 *
 * Entries are read by all lanes of a group at once, and rows of d for several
 * of them are under way while the next entries come. Limited by the bytes of d,
 * and of f32 by conversions to f64. Any GPU, any strides; 16 bytes are read at
 * once where they lie so. */
#include <climits>
#include "sparse_rows.h"

enum {
    THREADS = 128,
    LANES = 32,
    TOGETHER = 4, /* entries whose rows of d are under way */
    SPANS = 2
};
constexpr int PIECE = (int)SPANS * (int)SPAN;

/* Elements of 16 bytes. */
template <class V> constexpr int LENGTH = 16 / (int)sizeof(V);

template <class V> struct __align__(16) strip
{
    V x[LENGTH<V>];
};

/* How many columns a lane finds at its place, all of them or those that there
 * are, and whether they may be moved at once. */
struct reach {
    int count;
    bool reads_whole, writes_whole;
};

template <class V>
__device__ __forceinline__ strip<V> read_strip(const V *from, int64_t step,
                                               reach r)
{
    strip<V> s;
    if (r.reads_whole) {
        *(int4 *)s.x = __ldg((const int4 *)from);
        return s;
    }
#pragma unroll
    for (int c = 0; c < LENGTH<V>; c++)
        s.x[c] = c < r.count ? __ldg(from + c * step) : V();
    return s;
}

/* Where a piece is: entry is the next, row has not ended, and ends before
 * `end`; the row behind it before `then`. */
struct walk {
    int64_t row, last_row;
    int end, then;
};

__device__ __forceinline__ int end_of(const int32_t *starts, int64_t row,
                                      int64_t last_row)
{
    return row < last_row ? __ldg(starts + row + 1) : INT_MAX;
}

template <class V> struct sums {
    sum_of<V> s[LENGTH<V>];
};

template <class V>
__device__ __forceinline__ void write_strip(const sparse_product<V> &p,
                                            int64_t i, int64_t j,
                                            const sums<V> &t, reach r)
{
    V *to = p.c + i * p.c_row + j * p.c_col;
    strip<V> s;
    if (!r.writes_whole) {
#pragma unroll
        for (int c = 0; c < LENGTH<V>; c++)
            if (c < r.count)
                write_sum(p, i, j + c, t.s[c]);
        return;
    }
#pragma unroll
    for (int c = 0; c < LENGTH<V>; c++)
        s.x[c] = scaled_sum<V>(p, t.s[c], to + c);
    *(int4 *)to = *(const int4 *)s.x;
}

template <class V>
__device__ __forceinline__ void keep_sums(sum_of<V> *to, const sums<V> &t,
                                          reach r)
{
#pragma unroll
    for (int c = 0; c < LENGTH<V>; c++)
        if (c < r.count)
            to[c] = t.s[c];
}

/* Of one piece: its place in heads and tails, and the product's column. */
struct place_in {
    int64_t open, column;
};

template <class V>
__device__ __forceinline__ void
end_row(const sparse_product<V> &p, const open_rows<V> &o, walk *w, sums<V> *t,
        place_in at, reach r, bool *is_shared)
{
    if (*is_shared)
        keep_sums<V>(o.heads + at.open, *t, r);
    else
        write_strip(p, w->row, at.column, *t, r);
    *is_shared = false;
    *t = {};
    w->row++;
    w->end = w->then;
    w->then = end_of(p.starts, w->row + 1, w->last_row);
}

template <class V, int W>
__global__ void __launch_bounds__(THREADS)
    spmm_merge_kernel(const __grid_constant__ sparse_product<V> p,
                      const __grid_constant__ row_plan plan,
                      const __grid_constant__ open_rows<V> o, bool reads_whole,
                      bool writes_whole)
{
    int64_t piece = (blockIdx.x * (int64_t)THREADS + threadIdx.x) / W;
    int64_t j = (blockIdx.y * (int64_t)W + threadIdx.x % W) * LENGTH<V>;
    if (piece >= o.tiles || j >= o.columns)
        return;
    int64_t first = piece * PIECE, last = min(first + PIECE, p.rows + p.count);
    walk w = {plan.rows[piece * SPANS],
              plan.rows[min((piece + 1) * SPANS, plan.spans)]};
    int e = (int)(first - w.row), end = (int)(last - w.last_row);
    bool is_shared = w.row < w.last_row && p.starts[w.row] < e;
    w.end = end_of(p.starts, w.row, w.last_row);
    w.then = end_of(p.starts, w.row + 1, w.last_row);

    place_in at = {piece * o.columns + j, o.first + j};
    reach r = {(int)min((int64_t)LENGTH<V>, o.columns - j), reads_whole,
               writes_whole};
    const V *d = p.d + at.column * p.d_col;
    sums<V> t = {};
    int column[TOGETHER];
    V value[TOGETHER];
#pragma unroll
    for (int q = 0; q < TOGETHER; q++) {
        column[q] = e + q < end ? __ldg(p.columns + e + q) : 0;
        value[q] = e + q < end ? __ldg(p.values + e + q) : V();
    }
    for (; e < end; e += TOGETHER) {
        strip<V> x[TOGETHER];
        V now[TOGETHER];
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
            if (e + q < end)
                x[q] = read_strip(d + column[q] * p.d_row, p.d_col, r);
            now[q] = value[q];
        }
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
            int next = e + TOGETHER + q;
            column[q] = next < end ? __ldg(p.columns + next) : 0;
            value[q] = next < end ? __ldg(p.values + next) : V();
        }
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
            if (e + q >= end)
                break;
            while (e + q == w.end)
                end_row(p, o, &w, &t, at, r, &is_shared);
#pragma unroll
            for (int c = 0; c < LENGTH<V>; c++)
                add(&t.s[c], times(now[q], x[q].x[c]));
        }
    }
    while (w.row < w.last_row)
        end_row(p, o, &w, &t, at, r, &is_shared);
    keep_sums<V>(o.tails + at.open, t, r);
}

/* Rows that begin on 16 bytes, with whole strips of columns? */
template <class V>
static bool is_whole(const void *data, int64_t row, int64_t col,
                     int64_t columns)
{
    return is_aligned(data) && (col == 1 || columns == 1) &&
           row % LENGTH<V> == 0 && columns % LENGTH<V> == 0;
}

template <class V, int W>
static gpu_status launch(cuda_device *d, const sparse_product<V> *p,
                         const row_plan *plan, const open_rows<V> *o)
{
    dim3 grid((unsigned)ceil_div(o->tiles, THREADS / W),
              (unsigned)ceil_div(o->columns, W * LENGTH<V>));
    spmm_merge_kernel<V, W><<<grid, THREADS, 0, d->stream>>>(
        *p, *plan, *o, is_whole<V>(p->d, p->d_row, p->d_col, p->n),
        is_whole<V>(p->c, p->c_row, p->c_col, p->n));
    LAUNCHED(d);
    return GPU_OK;
}

template <class V>
static gpu_status launch_for(cuda_device *d, const sparse_product<V> *p,
                             const row_plan *plan, const open_rows<V> *o)
{
    int64_t lanes = ceil_div(o->columns, LENGTH<V>);
    return lanes <= 1    ? launch<V, 1>(d, p, plan, o)
           : lanes <= 2  ? launch<V, 2>(d, p, plan, o)
           : lanes <= 4  ? launch<V, 4>(d, p, plan, o)
           : lanes <= 8  ? launch<V, 8>(d, p, plan, o)
           : lanes <= 16 ? launch<V, 16>(d, p, plan, o)
                         : launch<V, LANES>(d, p, plan, o);
}

template <class V>
static gpu_status multiply(cuda_device *d, const gpu_sparse_call *call)
{
    const int64_t slab = LANES * LENGTH<V>; /* what heads and tails are of */
    sparse_product<V> p = typed_sparse<V>(call);
    row_plan plan;
    int64_t pieces = ceil_div(p.rows + p.count, PIECE);
    int64_t most = smaller(p.n, slab);
    TRY(gpu_cuda_plan_rows(
        d, call, 2 * (size_t)(pieces * most) * sizeof(sum_of<V>), &plan));
    sum_of<V> *heads = (sum_of<V> *)plan.room;
    open_rows<V> o = {pieces, SPANS, heads, heads + pieces * most, 0, 0};
    for (o.first = 0; o.first < p.n; o.first += slab) {
        o.columns = smaller(p.n - o.first, slab);
        TRY(launch_for(d, &p, &plan, &o));
        if (pieces > 1)
            TRY(gpu_cuda_join_rows(d, &p, &plan, &o));
    }
    return GPU_OK;
}

static gpu_status merge(void *device, const gpu_sparse_call *p)
{
    ENTER(d, device);
    return with_type(p->s.dtype,
                     [=](auto x) { return multiply<decltype(x)>(d, p); });
}

const gpu_kernel gpu_cuda_spmm_merge = {
    .operation = "spmm",
    .name = "merge",
    .idea = "equal shares of entries and rows' ends, whatever rows they are of",
    .needs = "any GPU",
    .precision = "f32",
    .capability = 0,
    .dtypes = ANY_NUMBERS,
    .bound = gpu_cuda_sparse_bound,
    .sparse = merge,
};
