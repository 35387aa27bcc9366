/* matmul vector: a matrix times up to four vectors (or up to four vectors
 * times a matrix) as fast as the matrix can be read: once, and all the
 * vectors together.
 *
 * Limited by bytes. Each of 512 threads a multiprocessor has eight 16-byte
 * loads on their way, into places of its own in shared memory: as soon as four
 * are used, the next four are started. The vectors come out of the first-level
 * cache. Where k runs along memory, threads share rows and shuffle their sums
 * together; where the rows do, each thread has some rows and a share of k.
 * Short lines without gaps go through shared memory as they lie. Loads are of
 * aligned 16 bytes wherever a line begins: lines are taken together that begin
 * alike. f32 chains are short; slices of k are added in f64, in their order, by
 * the block that ends last. Any GPU, any strides. */
#include "vector_kernels.h"

enum { MOST = 4 };        /* vectors */
enum { DOWN_LANES = 64 }; /* side by side on rows, where k is long */
enum { SHORTEST = 64, LONGEST = 1 << 30 }; /* slices of k */
enum { GROUPS = 64 };                      /* of tiles, at most */

/* Blocks a multiprocessor is to hold; more would read in more places at a
 * time, which memory likes less. */
enum { RESIDENT = 2 };

template <class T, bool ALONG, reach HOW, int N>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    vector_kernel(const __grid_constant__ product<T> p,
                  const __grid_constant__ cut w, T *partials, unsigned *tickets)
{
    /* The blocks running at one time stand side by side in memory. */
    unsigned slice = ALONG ? blockIdx.x % w.slices : blockIdx.x / w.tiles;
    unsigned tile = ALONG ? blockIdx.x / w.slices : blockIdx.x % w.tiles;
    place_in_cut at = {tile * w.tile, slice * w.slice};
    at.rows = (int)min(w.tile, p.m - at.row);
    at.depths = (int)min(w.slice, p.k - at.depth);
    target<T> to = {p, w, partials, slice};
    if (ALONG)
        sum_along<T, HOW, N>(to, at);
    else
        sum_down<T, HOW, N>(to, at);
    finish(to, tile, tickets);
}

/* The vectors one after the other, on 16 bytes each. */
template <class T>
__global__ void gather_kernel(const __grid_constant__ product<T> p, T *to,
                              int64_t pitch)
{
    int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e < p.k * p.n)
        to[e % p.n * pitch + e / p.n] =
            p.b[e / p.n * p.b_row + e % p.n * p.b_col];
}

/* --- cutting ------------------------------------------------------------- */

/* The smallest power of two that is at least `least`, but at most `most`. */
static int power_of_two(int64_t least, int most)
{
    int power = 1;
    while (power < most && power < least)
        power *= 2;
    return power;
}

/* Threads that share a row: enough for one wide load each, and more where
 * there are too few rows for all the blocks. */
template <class T> static int lanes_along(const product<T> &p, int64_t blocks)
{
    int64_t loads = ceil_div(p.k, WIDTH<T>);
    int lanes = power_of_two(loads, 32);
    while (lanes < THREADS && lanes < loads &&
           ceil_div(p.m, THREADS / lanes * ROWS) < blocks / 2)
        lanes *= 2;
    return lanes;
}

/* Threads side by side on rows: few, so that the rest can share k, and more
 * where k is too short for that. */
template <class T> static int lanes_down(const product<T> &p, int apart)
{
    int64_t loads = ceil_div(p.m + apart - 1, WIDTH<T>);
    int lanes = (int)smaller(DOWN_LANES, THREADS / apart);
    while (lanes < THREADS / apart && lanes < loads &&
           THREADS / lanes * PLACES * 8 > p.k)
        lanes *= 2;
    return (int)smaller(lanes, loads);
}

/* Slices of k: as many as there is room for blocks, none too short. */
template <class T>
static void cut_depth(cut *w, const product<T> &p, int64_t blocks,
                      int64_t shortest)
{
    int64_t wanted = smaller(blocks / w->tiles, p.k / shortest);
    int64_t slices = larger(larger(wanted, 1), ceil_div(p.k, LONGEST));
    w->slice = ceil_div(ceil_div(p.k, slices), SHORTEST) * SHORTEST;
    w->slices = (unsigned)ceil_div(p.k, w->slice);
}

template <class T> static void cut_fold(cut *w, const product<T> &p)
{
    w->per_group = (unsigned)ceil_div(w->tiles, GROUPS);
    int64_t elements = w->per_group * w->tile * p.n;
    w->fold_lanes = power_of_two(smaller(THREADS / elements, w->slices), 32);
}

template <class T>
static cut cut_along(const product<T> &p, reach how, int64_t blocks)
{
    cut w;
    w.lanes = lanes_along(p, blocks);
    w.apart = how == ACROSS ? WIDTH<T> : 1;
    int64_t round = larger(THREADS / w.lanes, w.apart) * ROWS;
    w.tile = round * ceil_div(ceil_div(p.m, round), blocks);
    w.tiles = (unsigned)ceil_div(p.m, w.tile);
    cut_depth(&w, p, blocks, w.lanes * WIDTH<T> * STAGES);
    cut_fold(&w, p);
    return w;
}

template <class T>
static cut cut_down(const product<T> &p, reach how, int64_t blocks)
{
    cut w;
    w.apart = how == ACROSS ? WIDTH<T> : 1;
    w.lanes = lanes_down(p, w.apart);
    w.tile = w.lanes * WIDTH<T> - (w.apart - 1);
    w.tiles = (unsigned)ceil_div(p.m, w.tile);
    cut_depth(&w, p, blocks, SHORTEST);
    cut_fold(&w, p);
    return w;
}

/* Threads that share a staged row: more than one where there are few. */
static int lanes_short(int64_t rows)
{
    return power_of_two(THREADS / rows / 2 + 1, 32);
}

/* --- launching ----------------------------------------------------------- */

/* Memory for partial sums, and behind them the vectors where they have gaps;
 * these are then p's. */
template <class T>
static gpu_status prepare(cuda_device *d, product<T> *p, const cut *w,
                          bool gather, T **partials)
{
    int64_t sums = w->slices > 1 ? w->slices * p->m * p->n : 0;
    int64_t before = ceil_div(sums, WIDTH<T>) * WIDTH<T>;
    int64_t pitch = ceil_div(p->k, WIDTH<T>) * WIDTH<T>;
    int64_t all = before + (gather ? pitch * p->n : 0);
    if (all > 0)
        TRY(gpu_cuda_scratch(d, all * sizeof(T), (void **)partials));
    if (!gather)
        return GPU_OK;
    T *to = *partials + before;
    gather_kernel<T>
        <<<(unsigned)ceil_div(p->k * p->n, THREADS), THREADS, 0, d->stream>>>(
            *p, to, pitch);
    LAUNCHED(d);
    p->b = to;
    p->b_row = 1;
    p->b_col = pitch;
    return GPU_OK;
}

template <class T, bool ALONG, reach HOW, int N>
static gpu_status launch(cuda_device *d, product<T> p)
{
    cut w = ALONG ? cut_along(p, HOW, (int64_t)d->sms * RESIDENT)
                  : cut_down(p, HOW, (int64_t)d->sms * RESIDENT);
    if (w.tiles > INT32_MAX / w.slices)
        return FAIL(GPU_UNSUPPORTED,
                    "matmul: kernel vector cannot cut %lld x %lld into blocks",
                    (long long)p.m, (long long)p.k);
    T *partials = NULL;
    TRY(prepare(d, &p, &w, ALONG && HOW != APART && p.b_row != 1, &partials));
    vector_kernel<T, ALONG, HOW, N>
        <<<w.tiles * w.slices, THREADS, 0, d->stream>>>(p, w, partials,
                                                        d->tickets);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T, int N>
static gpu_status launch_short_rows(cuda_device *d, const product<T> &p)
{
    cut w = {};
    w.tile = (STAGE<T> - WIDTH<T> + 1) / p.k;
    w.tiles = (unsigned)ceil_div(p.m, w.tile);
    w.lanes = lanes_short(w.tile);
    w.slices = 1;
    int64_t blocks = smaller(w.tiles, (int64_t)d->sms * RESIDENT_ROWS<N>);
    short_rows_kernel<T, N><<<(unsigned)blocks, THREADS, 0, d->stream>>>(p, w);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T, int N>
static gpu_status launch_short_columns(cuda_device *d, product<T> p)
{
    cut w = {};
    w.tile = p.m;
    w.tiles = 1;
    w.slice = smaller((STAGE<T> - WIDTH<T> + 1) / p.m, SHARE<N>);
    w.slices = (unsigned)smaller(ceil_div(p.k, w.slice),
                                 (int64_t)d->sms * RESIDENT_COLUMNS);
    cut_fold(&w, p);
    T *partials = NULL;
    TRY(prepare(d, &p, &w, false, &partials));
    short_columns_kernel<T, N>
        <<<w.slices, THREADS, 0, d->stream>>>(p, w, partials, d->tickets);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T, bool ALONG, int N>
static gpu_status launch_reach(cuda_device *d, const product<T> &p)
{
    int64_t near = ALONG ? p.a_col : p.a_row, far = ALONG ? p.a_row : p.a_col;
    if (near != 1)
        return launch<T, ALONG, APART, N>(d, p);
    return is_aligned(p.a) && far % WIDTH<T> == 0
               ? launch<T, ALONG, ALIGNED, N>(d, p)
               : launch<T, ALONG, ACROSS, N>(d, p);
}

template <class T, int N>
static gpu_status launch_direction(cuda_device *d, const product<T> &p)
{
    if (p.a_col == 1 && p.a_row == p.k && p.k <= SHORT_ROW)
        return launch_short_rows<T, N>(d, p);
    if (p.a_row == 1 && p.a_col == p.m && p.m <= SHORT_COLUMN)
        return launch_short_columns<T, N>(d, p);
    return stride_size(p.a_col) <= stride_size(p.a_row)
               ? launch_reach<T, true, N>(d, p)
               : launch_reach<T, false, N>(d, p);
}

/* The product with its fewer columns on the right: c^T = b^T a^T where a has
 * fewer rows. */
template <class T> static product<T> turn(const product<T> &p)
{
    if (p.n <= p.m)
        return p;
    return {p.b,     p.a,     p.c,     p.n,     p.m,     p.k,     p.b_col,
            p.b_row, p.a_col, p.a_row, p.c_col, p.c_row, p.alpha, p.beta};
}

template <class T>
static gpu_status launch_vectors(cuda_device *d, const gpu_gemm *g)
{
    product<T> p = turn(typed_product<T>(g));
    if (p.n == 1)
        return launch_direction<T, 1>(d, p);
    return p.n == 2 ? launch_direction<T, 2>(d, p)
                    : launch_direction<T, 4>(d, p);
}

static gpu_status vector_product(void *device, const gpu_gemm *p)
{
    ENTER(d, device);
    gpu_gemm g;
    TRY(gpu_cuda_begin_matmul("vector", p, &g));
    if (p->c.rows > MOST && p->c.cols > MOST)
        return FAIL(
            GPU_UNSUPPORTED,
            "matmul: kernel vector cannot do %lldx%lld: it needs one of "
            "them to be at most %d",
            (long long)p->c.rows, (long long)p->c.cols, MOST);
    return g.c.dtype == GPU_F64 ? launch_vectors<double>(d, &g)
                                : launch_vectors<float>(d, &g);
}

const gpu_kernel gpu_cuda_matmul_vector = {
    .operation = "matmul",
    .name = "vector",
    .idea = "a matrix times at most four vectors, read once at memory speed",
    .needs = "any GPU, m or n at most 4",
    .precision = "f32",
    .capability = 0,
    .dtypes = FLOATS,
    .bound = gpu_cuda_matmul_bound,
    .matmul = vector_product,
    .dot = NULL,
};
