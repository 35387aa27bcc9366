/* spmm merge: so many lanes as there are columns, up to a warp, take a piece
 * of the list of rows' ends and entries (see sparse_rows.h), whatever rows it
 * touches; of more than 32 columns a lane has up to four.
 *
 * Entries are read side by side and handed round; several rows of d are under
 * way at once, though a row of s may end between them. Limited by the bytes of
 * d, read in whole lines where its rows are contiguous. Any GPU, any strides.
 */
#include <climits>
#include "sparse_rows.h"

enum { THREADS = 128, LANES = 32, MOST_TOGETHER = 8, SLAB = 128 };

/* What a group of W lanes walks over: entries e .. end - 1, and the rows that
 * end among them. Lane l holds the end of row window + l. */
struct walk {
    unsigned lanes; /* of the group, in its warp */
    int64_t row, last_row, window;
    int ends, next_end;
};

template <class V, int W>
__device__ __forceinline__ void look_ahead(const sparse_product<V> &p, walk *w)
{
    if (w->row >= w->last_row) {
        w->next_end = INT_MAX;
        return;
    }
    if (w->row - w->window >= W) {
        w->window = w->row;
        w->ends = p.starts[min(w->row + threadIdx.x % W + 1, p.rows)];
    }
    w->next_end = __shfl_sync(w->lanes, w->ends, (int)(w->row - w->window), W);
}

/* A piece's sums for columns first + lane, + W …, of which `inside` are there.
 */
template <class V, int W, int C> struct strip {
    int64_t j, to;
    bool inside[C];
    sum_of<V> sum[C];
};

/* A row of s ends. */
template <class V, int W, int C>
__device__ __forceinline__ void end_row(const sparse_product<V> &p,
                                        const open_rows<V> &o, walk *w,
                                        strip<V, W, C> *t, bool *is_shared)
{
#pragma unroll
    for (int c = 0; c < C; c++) {
        if (t->inside[c] && *is_shared)
            o.heads[t->to + c * W] = t->sum[c];
        else if (t->inside[c])
            write_sum(p, w->row, t->j + c * W, t->sum[c]);
        t->sum[c] = {};
    }
    *is_shared = false;
    w->row++;
    look_ahead<V, W>(p, w);
}

template <class V, int W, int C>
__global__ void __launch_bounds__(THREADS)
    spmm_merge_kernel(const __grid_constant__ sparse_product<V> p,
                      const __grid_constant__ row_plan plan,
                      const __grid_constant__ open_rows<V> o)
{
    constexpr int TOGETHER = C > 2 ? MOST_TOGETHER / 2 : MOST_TOGETHER;
    constexpr int STEP = TOGETHER < W ? TOGETHER : W;
    int lane = threadIdx.x % W;
    int64_t piece = (blockIdx.x * (int64_t)THREADS + threadIdx.x) / W;
    if (piece >= plan.spans)
        return;
    int64_t at = piece * SPAN, stop = min(at + SPAN, p.rows + p.count);
    walk w;
    w.lanes = W == LANES
                  ? ~0u
                  : ((1u << W % LANES) - 1) << (threadIdx.x % LANES / W * W);
    w.row = plan.rows[piece];
    w.last_row = plan.rows[piece + 1];
    w.window = w.row - W; /* to be read */
    int first = (int)(at - w.row), end = (int)(stop - w.last_row);
    bool is_shared = w.row < w.last_row && p.starts[w.row] < first;
    look_ahead<V, W>(p, &w);

    strip<V, W, C> t;
    int64_t column0 = blockIdx.y * (int64_t)(W * C) + lane;
    t.j = o.first + column0;
    t.to = piece * o.columns + column0;
    const V *d = p.d + t.j * p.d_col;
#pragma unroll
    for (int c = 0; c < C; c++) {
        t.inside[c] = column0 + c * W < o.columns;
        t.sum[c] = {};
    }
    for (int chunk = first; chunk < end; chunk += W) {
        bool is_there = chunk + lane < end;
        int mine = is_there ? __ldcs(p.columns + chunk + lane) : 0;
        V value = is_there ? __ldcs(p.values + chunk + lane) : V();
        for (int g = 0; g < W && chunk + g < end; g += STEP) {
            V x[STEP][C];
#pragma unroll
            for (int q = 0; q < STEP; q++) {
                int64_t row = __shfl_sync(w.lanes, mine, g + q, W);
                bool is_entry = chunk + g + q < end;
#pragma unroll
                for (int c = 0; c < C; c++)
                    x[q][c] = is_entry && t.inside[c]
                                  ? __ldg(d + row * p.d_row + c * W * p.d_col)
                                  : V();
            }
#pragma unroll
            for (int q = 0; q < STEP; q++) {
                V v = shuffled(w.lanes, value, g + q, W);
                if (chunk + g + q >= end)
                    break;
                while (chunk + g + q == w.next_end)
                    end_row(p, o, &w, &t, &is_shared);
#pragma unroll
                for (int c = 0; c < C; c++)
                    add(&t.sum[c], times(v, x[q][c]));
            }
        }
    }
    while (w.row < w.last_row)
        end_row(p, o, &w, &t, &is_shared);
#pragma unroll
    for (int c = 0; c < C; c++)
        if (t.inside[c])
            o.tails[t.to + c * W] = t.sum[c];
}

template <class V, int W, int C>
static gpu_status launch(cuda_device *d, const sparse_product<V> *p,
                         const row_plan *plan, const open_rows<V> *o)
{
    dim3 grid((unsigned)ceil_div(plan->spans, THREADS / W),
              (unsigned)ceil_div(o->columns, W * C));
    spmm_merge_kernel<V, W, C><<<grid, THREADS, 0, d->stream>>>(*p, *plan, *o);
    LAUNCHED(d);
    return GPU_OK;
}

template <class V>
static gpu_status launch_for(cuda_device *d, const sparse_product<V> *p,
                             const row_plan *plan, const open_rows<V> *o)
{
    int64_t n = o->columns;
    return n <= 2    ? launch<V, 2, 1>(d, p, plan, o)
           : n <= 4  ? launch<V, 4, 1>(d, p, plan, o)
           : n <= 8  ? launch<V, 8, 1>(d, p, plan, o)
           : n <= 16 ? launch<V, 16, 1>(d, p, plan, o)
           : n <= 32 ? launch<V, LANES, 1>(d, p, plan, o)
           : n <= 64 ? launch<V, LANES, 2>(d, p, plan, o)
                     : launch<V, LANES, 4>(d, p, plan, o);
}

template <class V>
static gpu_status multiply(cuda_device *d, const gpu_sparse_call *call)
{
    sparse_product<V> p = typed_sparse<V>(call);
    row_plan plan;
    int64_t spans = ceil_div(p.rows + p.count, SPAN);
    int64_t most = smaller(p.n, SLAB);
    TRY(gpu_cuda_plan_rows(
        d, call, 2 * (size_t)(spans * most) * sizeof(sum_of<V>), &plan));
    sum_of<V> *heads = (sum_of<V> *)plan.room;
    open_rows<V> o = {spans, 1, heads, heads + spans * most, 0, 0};
    for (o.first = 0; o.first < p.n; o.first += SLAB) {
        o.columns = smaller(p.n - o.first, SLAB);
        TRY(launch_for(d, &p, &plan, &o));
        if (spans > 1)
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
