/* Reductions of a program's results: everything, one value a column, or one a
 * row.
 *
 * A reduction has lines (what stays) and runs along them. A block's threads
 * form a rectangle over both, laid so that neighbouring threads read
 * neighbouring elements; a long line is cut into chunks for several blocks,
 * whose partial results a second kernel folds. Partition and order depend
 * only on the shape and the device, so results repeat bit for bit. Limited by
 * bytes. Sums and products are f64 throughout. */
#include "interpret.h"

/* --- partial results --------------------------------------------------------
 * What nothing reduces to, how two become one, and how a block's become one,
 * always in the same order. */

typedef struct partial {
    double value;
    int64_t index; /* argmin, argmax: -1 when empty */
} partial;

static __host__ __device__ int is_place(int kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

__device__ __forceinline__ partial empty(int kind)
{
    double infinity = __longlong_as_double(0x7ff0000000000000);
    double value = kind == GPU_REDUCE_prod  ? 1
                   : kind == GPU_REDUCE_min ? infinity
                   : kind == GPU_REDUCE_max ? -infinity
                                            : 0;
    return {value, -1};
}

/* Is b's value more extreme than a's, or as extreme and earlier? NaN is the
 * most extreme of all. */
__device__ __forceinline__ bool goes_before(int kind, partial b, partial a)
{
    if (a.index < 0 || b.index < 0)
        return a.index < 0;
    bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan)
        return b_is_nan;
    if (a_is_nan || a.value == b.value)
        return b.index < a.index;
    return kind == GPU_REDUCE_argmax ? b.value > a.value : b.value < a.value;
}

template <bool PLACE>
__device__ __forceinline__ partial combine(int kind, partial a, partial b)
{
    if (PLACE)
        return goes_before(kind, b, a) ? b : a;
    switch (kind) {
    case GPU_REDUCE_sum:
        return {a.value + b.value, -1};
    case GPU_REDUCE_prod:
        return {a.value * b.value, -1};
    case GPU_REDUCE_min:
        return {b.value < a.value || b.value != b.value ? b.value : a.value,
                -1};
    default:
        return {b.value > a.value || b.value != b.value ? b.value : a.value,
                -1};
    }
}

/* Folds the block's partials over `along`, for each of its lines, by halving.
 * Thread (line, 0) returns the line's. */
template <bool PLACE>
__device__ partial fold_block(int kind, partial own, partial *shared, int line,
                              int lines, int along, int along_threads)
{
    shared[along * lines + line] = own;
    for (int half = along_threads / 2; half > 0; half /= 2) {
        __syncthreads(); /* the partials of the step before are written */
        if (along < half) {
            own = combine<PLACE>(kind, own,
                                 shared[(along + half) * lines + line]);
            shared[along * lines + line] = own;
        }
    }
    __syncthreads(); /* shared may be filled anew */
    return own;
}

/* --- one block ------------------------------------------------------------ */

enum { THREADS = 128, FOLD_THREADS = 256, BLOCKS_PER_SM = 16 };
enum { SHORT = 2048 }; /* elements of a line that are worth a block */
enum { AHEAD = 4 };    /* reads of four elements that a thread begins at once */
enum { MAX_GRID_Y = 65535 };

typedef struct reduce_job {
    plan p;             /* rows x cols are lines x elements along one */
    int64_t index_cols; /* whole: a row's length, for row-major places */
    int64_t chunk;      /* elements of a line that a block takes */
    int64_t chunks;
    int kind; /* gpu_reduction */
    int whole;
    int along_threads; /* power of two; the others go over lines */
    int along_first;   /* neighbouring threads run along the line */
    int neighbours;    /* a thread's four elements lie side by side */
    int is_f64;
    partial *partials; /* lines x chunks; whole: a block each */
    gpu_view out;      /* column of lines */
} reduce_job;

__device__ __forceinline__ void finish(const reduce_job &job, int64_t line,
                                       partial r)
{
    int64_t at = line * job.out.row_stride;
    store<double>(job.out, at, is_place(job.kind) ? (double)r.index : r.value);
}

/* Four values folded into acc, the switch outside the loop: there are few
 * instructions to spend on an element. */
template <class T>
__device__ __forceinline__ partial fold_values(int kind, partial acc,
                                               const quad<T> &r, int count)
{
#define FOLD(expression)                              \
    _Pragma("unroll") for (int k = 0; k < ITEMS; k++) \
    {                                                 \
        double x = (double)r.at[k], a = acc.value;    \
        if (k < count)                                \
            acc.value = (expression);                 \
    }                                                 \
    return acc
    switch (kind) {
    case GPU_REDUCE_sum:
        FOLD(a + x);
    case GPU_REDUCE_prod:
        FOLD(a * x);
    case GPU_REDUCE_min:
        FOLD(x < a || x != x ? x : a);
    default:
        FOLD(x > a || x != x ? x : a);
    }
#undef FOLD
}

/* Four elements of a line, those at s, folded into acc. */
template <class T, bool PLACE>
__device__ __forceinline__ partial fold_four(const reduce_job &job,
                                             const spot &s, partial acc,
                                             const quad<T> &r)
{
    if constexpr (!PLACE)
        return fold_values<T>(job.kind, acc, r, s.count);
    else {
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            int64_t at = s.j + k * s.dj;
            if (job.whole)
                at = job.p.swapped ? at * job.index_cols + s.i
                                   : s.i * job.index_cols + at;
            if (k < s.count)
                acc = combine<PLACE>(job.kind, acc, {(double)r.at[k], at});
        }
        return acc;
    }
}

/* Asks for what a thread will read, so that it does not come all the way from
 * memory then. */
__device__ __forceinline__ void fetch_ahead(const plan &p, const spot &s)
{
    for (unsigned left = p.wide; left; left &= left - 1) {
        const gpu_view &in = p.in[__ffs(left) - 1];
        const char *at = (const char *)in.data +
                         place(in, s.i, s.j) * (int64_t)dtype_bytes(in.dtype);
        asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
    }
}

/* Four elements of an input of the type that is computed in. */
template <class T>
__device__ __forceinline__ quad<T> fetch_plain(const plan &p, const spot &s)
{
    const gpu_view &in = p.in[p.result];
    const T *from = (const T *)in.data + place(in, s.i, s.j);
    quad<T> r;
    if (s.count == ITEMS && (p.wide >> p.result & 1))
        return *(const quad<T> *)from;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        r.at[k] = k < s.count ? from[k * s.dj * in.col_stride] : (T)0;
    return r;
}

/* Nothing to compute before folding: several reads are begun together, as one
 * alone leaves the memory waiting. Moves s on. */
template <class T, bool PLACE>
__device__ __forceinline__ partial fold_inputs(const reduce_job &job, spot *s,
                                               int64_t step, int64_t end,
                                               partial acc)
{
    int64_t reach = (AHEAD - 1) * step + (ITEMS - 1) * s->dj;
    s->count = ITEMS;
    for (; s->j + reach < end; s->j += AHEAD * step) {
        quad<T> r[AHEAD];
        spot at[AHEAD];
#pragma unroll
        for (int n = 0; n < AHEAD; n++) {
            at[n] = *s;
            at[n].j += n * step;
            r[n] = fetch_plain<T>(job.p, at[n]);
        }
#pragma unroll
        for (int n = 0; n < AHEAD; n++)
            acc = fold_four<T, PLACE>(job, at[n], acc, r[n]);
    }
    return acc;
}

template <class T, bool PLACE, bool PLAIN>
__device__ __forceinline__ partial fold_chunk(const reduce_job &job,
                                              int64_t line, int64_t along,
                                              partial acc, T *file)
{
    int64_t begin = blockIdx.x * job.chunk;
    int64_t end = min(begin + job.chunk, job.p.cols);
    int64_t apart = job.neighbours ? 1 : job.along_threads;
    int64_t step = (int64_t)ITEMS * job.along_threads;
    spot s = {line, begin + along * (job.neighbours ? ITEMS : 1), 0, apart, 0};
    if (line >= job.p.rows)
        return acc;
    if constexpr (PLAIN)
        acc = fold_inputs<T, PLACE>(job, &s, step, end, acc);
    for (; s.j < end; s.j += step) {
        int64_t left = end - s.j;
        s.count = left > (ITEMS - 1) * apart
                      ? ITEMS
                      : (int)(((int)left + (int)apart - 1) / (int)apart);
        if (!PLAIN && s.j + AHEAD * step < end)
            fetch_ahead(job.p, {s.i, s.j + AHEAD * step});
        quad<T> r = PLAIN ? fetch_plain<T>(job.p, s)
                          : evaluate<T>(job.p, s, file, THREADS);
        acc = fold_four<T, PLACE>(job, s, acc, r);
    }
    return acc;
}

/* PLAIN: there is no program to run, only an input to fold as it is. */
template <class T, bool PLACE, bool PLAIN>
__global__ void __launch_bounds__(THREADS)
    reduce_kernel(const __grid_constant__ reduce_job job)
{
    extern __shared__ __align__(16) char slots[];
    __shared__ partial shared[THREADS];
    int kind = job.kind;
    int a_threads = job.along_threads, lines = THREADS / a_threads;
    int along = job.along_first ? threadIdx.x % a_threads : threadIdx.x / lines;
    int line = job.along_first ? threadIdx.x / a_threads : threadIdx.x % lines;
    T *file = (T *)slots + threadIdx.x;
    partial acc = empty(kind);
    for (int64_t first = (int64_t)blockIdx.y * lines; first < job.p.rows;
         first += (int64_t)gridDim.y * lines) {
        acc = fold_chunk<T, PLACE, PLAIN>(job, first + line, along,
                                          job.whole ? acc : empty(kind), file);
        if (job.whole)
            continue;
        acc =
            fold_block<PLACE>(kind, acc, shared, line, lines, along, a_threads);
        if (along > 0 || first + line >= job.p.rows)
            continue;
        if (job.chunks == 1)
            finish(job, first + line, acc);
        else
            job.partials[(first + line) * job.chunks + blockIdx.x] = acc;
    }
    if (!job.whole)
        return;
    acc = fold_block<PLACE>(kind, acc, shared, 0, 1, threadIdx.x, THREADS);
    if (threadIdx.x == 0)
        job.partials[(int64_t)blockIdx.y * gridDim.x + blockIdx.x] = acc;
}

/* The second stage: a block folds one line's partials. */
template <bool PLACE>
__global__ void __launch_bounds__(FOLD_THREADS)
    fold_kernel(const __grid_constant__ reduce_job job, int64_t lines,
                int64_t count)
{
    __shared__ partial shared[FOLD_THREADS];
    for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
        partial acc = empty(job.kind);
        for (int64_t n = threadIdx.x; n < count; n += FOLD_THREADS)
            acc = combine<PLACE>(job.kind, acc, job.partials[line * count + n]);
        acc = fold_block<PLACE>(job.kind, acc, shared, 0, 1, threadIdx.x,
                                FOLD_THREADS);
        if (threadIdx.x == 0)
            finish(job, line, acc);
    }
}

/* Which way neighbouring threads should go: along the lines, when most inputs
 * have their nearer neighbours there. */
static int runs_along(const plan *p, int inputs)
{
    int votes = 0;
    for (int v = 0; v < inputs; v++) {
        int64_t along = stride_size(p->in[v].col_stride);
        int64_t across = stride_size(p->in[v].row_stride);
        votes += p->cols == 1 ? -1 : p->rows == 1 ? 1 : 0;
        votes += along < across ? 1 : along > across ? -1 : 0;
    }
    return votes >= 0;
}

/* Everything, where no view has gaps and no instruction asks for a place, is
 * one line; otherwise its rows are the lines of one sum. */
static void shape_whole(reduce_job *job, int inputs)
{
    plan *p = &job->p;
    int flat = !gpu_cuda_plan_has_places(p);
    int columns = 0;
    for (int v = 0; v < inputs; v++) {
        gpu_view *in = &p->in[v];
        flat = flat && (in->cols == 1 || in->rows == 1 ||
                        in->row_stride == in->cols * in->col_stride);
        columns += stride_size(in->row_stride) < stride_size(in->col_stride);
    }
    if (flat) {
        for (int v = 0; v < inputs; v++) {
            flatten(&p->in[v]);
            swap_axes(&p->in[v]);
        }
        p->cols *= p->rows;
        p->rows = 1;
        job->index_cols = p->cols;
    } else if (p->cols == 1 || 2 * columns > inputs) {
        p->swapped = 1;
        for (int v = 0; v < inputs; v++)
            swap_axes(&p->in[v]);
        int64_t rows = p->rows;
        p->rows = p->cols;
        p->cols = rows;
    }
}

static void shape_lines(reduce_job *job, int inputs, int axis)
{
    plan *p = &job->p;
    if (axis != 1)
        return;
    p->swapped = 1;
    int64_t rows = p->rows;
    p->rows = p->cols;
    p->cols = rows;
    for (int v = 0; v < inputs; v++)
        swap_axes(&p->in[v]);
}

/* Inputs without gaps are read four elements at once; then every thread takes
 * four neighbours. Chunks begin at multiples of four. */
static void use_wide_reads(reduce_job *job, int inputs)
{
    plan *p = &job->p;
    p->wide = 0;
    for (int v = 0; job->along_first && v < inputs; v++)
        if (gpu_cuda_is_wide(&p->in[v]))
            p->wide |= 1u << v;
    job->neighbours = p->wide != 0;
}

static int power_of_two(int64_t at_least, int low, int high)
{
    while (low < high && low < at_least)
        low *= 2;
    return low;
}

/* How a block's threads share lines and elements, and how many blocks a line
 * gets: enough for the device, but at least SHORT elements each. */
static dim3 share_out(cuda_device *d, reduce_job *job, int inputs)
{
    const plan *p = &job->p;
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    job->along_first = runs_along(p, inputs);
    use_wide_reads(job, inputs);
    if (job->along_first)
        job->along_threads = power_of_two(ceil_div(p->cols, ITEMS), 1, THREADS);
    else
        job->along_threads = THREADS / power_of_two(p->rows, 1, 32);
    int64_t lines = THREADS / job->along_threads;
    int64_t groups = smaller(ceil_div(p->rows, lines), MAX_GRID_Y);
    if (job->whole)
        groups = smaller(groups, most);
    int64_t wanted = ceil_div(most, groups);
    int64_t least = larger(SHORT / lines, 64);
    job->chunks = larger(smaller(wanted, p->cols / least), 1);
    job->chunk = ceil_div(ceil_div(p->cols, job->chunks), ITEMS) * ITEMS;
    job->chunks = ceil_div(p->cols, job->chunk);
    return dim3((unsigned)job->chunks, (unsigned)groups);
}

template <class T, bool PLACE>
static gpu_status launch(cuda_device *d, const reduce_job *job, dim3 grid)
{
    const plan *p = &job->p;
    size_t shared = gpu_cuda_plan_bytes(p, THREADS, sizeof(T));
    if (p->length == 0 && p->result < FIRST_CONSTANT &&
        p->in[p->result].dtype == (sizeof(T) == 8 ? GPU_F64 : GPU_F32)) {
        reduce_kernel<T, PLACE, true><<<grid, THREADS, 0, d->stream>>>(*job);
        LAUNCHED(d);
        return GPU_OK;
    }
    if (shared + THREADS * sizeof(partial) > 48 << 10)
        CHECK(d, cudaFuncSetAttribute(
                     reduce_kernel<T, PLACE, false>,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    reduce_kernel<T, PLACE, false><<<grid, THREADS, shared, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

static gpu_status run(cuda_device *d, reduce_job *job, dim3 grid)
{
    int64_t lines = job->whole ? 1 : job->p.rows;
    int64_t count = job->whole ? (int64_t)grid.x * grid.y : job->chunks;
    int needs_fold = job->whole || job->chunks > 1;
    if (needs_fold)
        TRY(gpu_cuda_scratch(d, (size_t)(lines * count) * sizeof(partial),
                             (void **)&job->partials));
    if (job->is_f64)
        TRY((is_place(job->kind) ? launch<double, true>
                                 : launch<double, false>)(d, job, grid));
    else
        TRY((is_place(job->kind) ? launch<float, true>
                                 : launch<float, false>)(d, job, grid));
    if (!needs_fold)
        return GPU_OK;
    unsigned blocks = (unsigned)smaller(lines, 1 << 20);
    if (is_place(job->kind))
        fold_kernel<true>
            <<<blocks, FOLD_THREADS, 0, d->stream>>>(*job, lines, count);
    else
        fold_kernel<false>
            <<<blocks, FOLD_THREADS, 0, d->stream>>>(*job, lines, count);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_reduce(void *device, const gpu_program *p,
                           const gpu_view *in, int axis, const gpu_view *out)
{
    ENTER(d, device);
    reduce_job job = {};
    if (out->rows == 0 || out->cols == 0)
        return GPU_OK;
    gpu_cuda_plan(p, &job.p);
    for (int v = 0; v < p->inputs; v++)
        job.p.in[v] = in[v];
    job.p.rows = in[0].rows;
    job.p.cols = in[0].cols;
    job.index_cols = in[0].cols;
    job.kind = p->reduction;
    job.whole = axis == 0;
    job.is_f64 = job.p.is_f64;
    job.out = *out;
    if (axis == 1)
        swap_axes(&job.out);
    if (job.whole)
        shape_whole(&job, p->inputs);
    else
        shape_lines(&job, p->inputs, axis);
    return run(d, &job, share_out(d, &job, p->inputs));
}
