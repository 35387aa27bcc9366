/* Reductions of a program's results: everything, one value a column, or one a
 * row.
 *
 * How elements become a result stands in reduce_body.h, which kernels compiled
 * for a program (compiled.cu) have, too. Here are the kernels for what is read
 * as it is and for programs that are interpreted, the second stage, and how the
 * work is shared out, which depends only on shape, layout and device: so
 * results repeat bit for bit, whichever kernel gives them. */
#include "interpret.h"
#include "jit_job.h"
#include "reduce_body.h"

/* --- one block ------------------------------------------------------------ */

enum { THREADS = JIT_FOLD_THREADS, FOLD_THREADS = 256, BLOCKS_PER_SM = 16 };
enum { SHORT = 2048 };     /* elements of a line that are worth a block */
enum { ONE_BLOCK = 8192 }; /* elements of all that one block folds */
enum { AHEAD = 4 }; /* reads of four elements that a thread begins at once */
enum { MAX_GRID_Y = 65535 };

typedef struct reduce_job {
    plan p; /* rows x cols are lines x elements along one */
    jit_lines lines;
    int is_f64;
    int64_t truths; /* the partials count the true of so many elements; or 0 */
    gpu_view out;   /* column of lines */
} reduce_job;

static int is_place(int kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

/* What stands for the reduction of truths, of which so many are true. */
__device__ __forceinline__ double result_of_truths(const reduce_job &job,
                                                   double count)
{
    double all = (double)job.truths;
    switch (job.lines.kind) {
    case GPU_REDUCE_min:
        return count == all;
    case GPU_REDUCE_max:
        return count > 0;
    case GPU_REDUCE_SPREAD:
        return count * ((all - count) / all);
    default:
        return count;
    }
}

__device__ __forceinline__ void put(const reduce_job &job, int64_t line,
                                    double x)
{
    store<double>(job.out, line * job.out.row_stride, x);
}

/* --- elements that are read as they are -------------------------------------
 * There is nothing to compute before folding. */

template <class T> struct plain {
    const reduce_job &job;
};

/* Several reads are begun together, as one alone leaves the memory waiting.
 * WIDE: of four elements each. */
template <class T, class P, bool WIDE>
__device__ __forceinline__ void take_inputs(const gpu_view &in, int kind,
                                            const stretch &of, int64 *j,
                                            running<P, T> *own)
{
    const T *from = (const T *)in.data + place(in, of.line, *j);
    int64_t next = WIDE ? 1 : of.apart * in.col_stride;
    int64_t hop = WIDE ? of.step : of.step * in.col_stride;
    int64_t reach = (AHEAD - 1) * of.step + (ITEMS - 1) * of.apart;
    for (; *j + reach < of.end; *j += AHEAD * of.step) {
        quad<T> r[AHEAD];
#pragma unroll
        for (int n = 0; n < AHEAD; n++) {
            if (WIDE)
                r[n] = *(const quad<T> *)(from + n * hop);
            else
#pragma unroll
                for (int k = 0; k < ITEMS; k++)
                    r[n].at[k] = from[n * hop + k * next];
        }
        from += AHEAD * hop;
#pragma unroll
        for (int n = 0; n < AHEAD; n++)
            take(kind, own, r[n], ITEMS);
    }
}

template <class T, class P>
__device__ __forceinline__ void take_whole(const plain<T> &work, int kind,
                                           const stretch &of, int64 *j,
                                           running<P, T> *own)
{
    const plan &p = work.job.p;
    if (p.wide >> p.result & 1)
        take_inputs<T, P, true>(p.in[p.result], kind, of, j, own);
    else
        take_inputs<T, P, false>(p.in[p.result], kind, of, j, own);
}

template <class T>
__device__ __forceinline__ quad<T>
read_some(const plain<T> &work, const stretch &of, int64 j, int count)
{
    const plan &p = work.job.p;
    const gpu_view &in = p.in[p.result];
    const T *from = (const T *)in.data + place(in, of.line, j);
    quad<T> r;
    if (count == ITEMS && (p.wide >> p.result & 1))
        return *(const quad<T> *)from;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        r.at[k] = k < count ? from[k * of.apart * in.col_stride] : (T)0;
    return r;
}

template <class T, class P>
__device__ __forceinline__ void finish(const plain<T> &work, int64 line, P r)
{
    put(work.job, line, number_of(r));
}

/* --- results of a program that is interpreted -------------------------------
 */

template <class T> struct interpreted {
    const reduce_job &job;
    T *file; /* see interpret.h */
};

/* Asks for what a thread will read, so that it does not come all the way from
 * memory then. */
__device__ __forceinline__ void fetch_ahead(const plan &p, const stretch &of,
                                            int64_t j)
{
    j += AHEAD * of.step;
    if (j >= of.end)
        return;
    for (unsigned left = p.wide; left; left &= left - 1) {
        const gpu_view &in = p.in[__ffs(left) - 1];
        const char *at = (const char *)in.data +
                         place(in, of.line, j) * (int64_t)dtype_bytes(in.dtype);
        asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
    }
}

/* How many spots a program is run for at once. */
template <class T> constexpr int spots = sizeof(T) == sizeof(float) ? 2 : 1;

template <class T, class P>
__device__ __forceinline__ void take_whole(const interpreted<T> &work, int kind,
                                           const stretch &of, int64 *j,
                                           running<P, T> *own)
{
    constexpr int N = spots<T>;
    int64_t reach = (N - 1) * of.step + (ITEMS - 1) * of.apart;
    for (; *j + reach < of.end; *j += N * of.step) {
        spot each[N];
#pragma unroll
        for (int n = 0; n < N; n++) {
            each[n] = {of.line, *j + n * of.step, 0, of.apart, ITEMS};
            fetch_ahead(work.job.p, of, each[n].j);
        }
        lot<T, N> r = evaluate_lot<T, N>(work.job.p, each, work.file, THREADS);
#pragma unroll
        for (int n = 0; n < N; n++)
            take(kind, own, r.of[n], ITEMS);
    }
}

template <class T>
__device__ __forceinline__ quad<T>
read_some(const interpreted<T> &work, const stretch &of, int64 j, int count)
{
    fetch_ahead(work.job.p, of, j);
    spot s = {of.line, j, 0, of.apart, count};
    return evaluate<T>(work.job.p, s, work.file, THREADS);
}

template <class T, class P>
__device__ __forceinline__ void finish(const interpreted<T> &work, int64 line,
                                       P r)
{
    put(work.job, line, number_of(r));
}

/* --- the kernels ------------------------------------------------------------
 */

/* Blocks of a multiprocessor, of which registers are left for what a thread has
 * on its way. */
template <class T, bool PLAIN>
constexpr int blocks = (PLAIN ? 8 : 6) / (sizeof(T) / sizeof(float));

/* PLAIN: there is no program to run, only an input to fold as it is. */
template <class T, class P, bool PLAIN>
__global__ void __launch_bounds__(THREADS, blocks<T, PLAIN>)
    reduce_kernel(const __grid_constant__ reduce_job job)
{
    extern __shared__ __align__(16) char slots[];
    __shared__ P shared[THREADS];
    if constexpr (PLAIN)
        reduce_lines<T>(job.lines, plain<T>{job}, shared);
    else
        reduce_lines<T>(job.lines,
                        interpreted<T>{job, (T *)slots + threadIdx.x}, shared);
}

/* The second stage: `width` threads fold one line's partials, a power of two
 * that is at least their count where that is less than the block. What is
 * folded beyond them is nothing, so that the bits do not depend on it. */
template <class P>
__global__ void __launch_bounds__(FOLD_THREADS)
    fold_kernel(const __grid_constant__ reduce_job job, int64_t lines,
                int64_t count, int width)
{
    __shared__ P shared[FOLD_THREADS];
    int kind = job.truths > 0 ? (int)GPU_REDUCE_sum : job.lines.kind;
    int each = FOLD_THREADS / width, own = threadIdx.x / width;
    int along = threadIdx.x % width;
    const P *partials = (const P *)job.lines.partials;
    for (int64_t first = (int64_t)blockIdx.x * each; first < lines;
         first += (int64_t)gridDim.x * each) {
        int64_t line = first + own;
        P acc = empty<P>(kind);
        for (int64_t n = along; line < lines && n < count; n += width)
            acc = combine(kind, acc, partials[line * count + n]);
        acc = fold_block(kind, acc, shared, own, each, along, width);
        if (along > 0 || line >= lines)
            continue;
        double x = number_of(acc);
        put(job, line, job.truths > 0 ? result_of_truths(job, x) : x);
    }
}

/* --- masks ------------------------------------------------------------------
 * The true elements of a mask without gaps are counted, sixteen bytes at a time
 * whose ones are brought together in four; sum, min, max and moments follow
 * from how many there are. */

__device__ __forceinline__ int ones(uint4 x)
{
    return __popc(x.x | x.y << 1 | x.z << 2 | x.w << 3);
}

/* from: the first byte on 16; `before` and `behind` bytes lie around the n
 * times sixteen that begin there. */
__global__ void __launch_bounds__(THREADS)
    count_kernel(const uint8_t *from, int64_t n, int before, int behind,
                 double *partials)
{
    __shared__ total shared[THREADS];
    const uint4 *four = (const uint4 *)from;
    int64_t step = (int64_t)gridDim.x * THREADS;
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t count = 0;
    if (at < before)
        count += (from - before)[at];
    if (at < behind)
        count += from[n * 16 + at];
    for (; at + (AHEAD - 1) * step < n; at += AHEAD * step) {
        uint4 x[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            x[k] = four[at + k * step];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            count += ones(x[k]);
    }
    for (; at < n; at += step)
        count += ones(four[at]);
    total sum = fold_block(GPU_REDUCE_sum, total{(double)count}, shared, 0, 1,
                           threadIdx.x, THREADS);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum.value;
}

/* Whether the program gives its one input as it is: by nothing, or by asking
 * which of its elements are not 0. */
static int is_same_truth(const gpu_program *p)
{
    const gpu_instruction *i = &p->code[0];
    return p->inputs == 1 &&
           (p->length == 0 ||
            (p->length == 1 && i->op == GPU_OP_ne && i->x == 0 && i->y == 1 &&
             p->constants == 1 && p->constant[0] == 0));
}

static int is_mask(const gpu_program *p, const gpu_view *v)
{
    gpu_view t = *v;
    if (t.col_stride != 1 || t.cols == 1)
        swap_axes(&t);
    return is_same_truth(p) && v->dtype == GPU_BOOL &&
           p->reduction != GPU_REDUCE_prod && !is_place(p->reduction) &&
           t.col_stride == 1 && (t.rows == 1 || t.row_stride == t.cols);
}

static gpu_status count_mask(cuda_device *d, reduce_job *job, const gpu_view *v)
{
    const uint8_t *from = (const uint8_t *)v->data;
    int64_t bytes = v->rows * v->cols;
    int before = (int)smaller(-(uintptr_t)from % 16, bytes);
    int64_t n = (bytes - before) / 16;
    int64_t blocks = smaller(ceil_div(larger(n, 1), (int64_t)THREADS * AHEAD),
                             (int64_t)d->sms * BLOCKS_PER_SM);
    job->truths = bytes;
    TRY(gpu_cuda_scratch(d, (size_t)blocks * sizeof(total),
                         &job->lines.partials));
    count_kernel<<<(unsigned)blocks, THREADS, 0, d->stream>>>(
        from + before, n, before, (int)(bytes - before - n * 16),
        (double *)job->lines.partials);
    LAUNCHED(d);
    fold_kernel<total>
        <<<1, FOLD_THREADS, 0, d->stream>>>(*job, 1, blocks, FOLD_THREADS);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- launching ------------------------------------------------------------ */

/* A row or a column for all, beside inputs that are whole, has no say in how
 * the work is shared out: so sums are those of what a program would write. */
static int has_say(const plan *p, int v, int inputs)
{
    int any = 0, own = 0;
    for (int i = 0; i < inputs; i++) {
        const gpu_view *in = &p->in[i];
        int is_whole = (in->row_stride != 0 || p->rows == 1) &&
                       (in->col_stride != 0 || p->cols == 1);
        any |= is_whole;
        own |= is_whole && i == v;
    }
    return own || !any;
}

/* Which way neighbouring threads should go: along the lines, when most inputs
 * have their nearer neighbours there. */
static int runs_along(const plan *p, int inputs)
{
    int votes = 0;
    for (int v = 0; v < inputs; v++) {
        int64_t along = stride_size(p->in[v].col_stride);
        int64_t across = stride_size(p->in[v].row_stride);
        if (!has_say(p, v, inputs))
            continue;
        votes += p->cols == 1 ? -1 : p->rows == 1 ? 1 : 0;
        votes += along < across ? 1 : along > across ? -1 : 0;
    }
    return votes >= 0;
}

/* Everything, where no view has gaps and no instruction asks for a place, is
 * one line; otherwise its rows are the lines of one sum, or its columns where
 * most of those that have a say lie so. */
static void shape_whole(reduce_job *job, int inputs)
{
    plan *p = &job->p;
    int flat = !gpu_cuda_plan_has_places(p);
    int columns = 0, asked = 0;
    for (int v = 0; v < inputs; v++) {
        gpu_view *in = &p->in[v];
        int counts = has_say(p, v, inputs);
        flat = flat && (in->cols == 1 || in->rows == 1 ||
                        in->row_stride == in->cols * in->col_stride);
        asked += counts;
        columns +=
            counts && stride_size(in->row_stride) < stride_size(in->col_stride);
    }
    if (flat) {
        for (int v = 0; v < inputs; v++) {
            flatten(&p->in[v]);
            swap_axes(&p->in[v]);
        }
        p->cols *= p->rows;
        p->rows = 1;
        job->lines.row_length = p->cols;
    } else if (p->cols == 1 || 2 * columns > asked) {
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

/* Do rows lie without gaps, and begin a multiple of four behind each other? */
static int lies_in_fours(const gpu_view *v)
{
    return v->col_stride == 1 && (v->rows == 1 || v->row_stride % ITEMS == 0);
}

/* Where any input lies in fours every thread takes four neighbours. Wherever in
 * memory it begins: sums are to be those of a copy. Those that begin at
 * multiples of four are read four elements at once, as chunks do so, too. */
static void use_wide_reads(reduce_job *job, int inputs)
{
    plan *p = &job->p;
    p->wide = 0;
    for (int v = 0; job->lines.along_first && v < inputs; v++) {
        job->lines.neighbours |=
            has_say(p, v, inputs) && lies_in_fours(&p->in[v]);
        p->wide |= (unsigned)gpu_cuda_is_wide(&p->in[v]) << v;
    }
    if (!job->lines.neighbours)
        p->wide = 0;
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
    jit_lines *l = &job->lines;
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    l->lines = p->rows;
    l->length = p->cols;
    l->is_turned = p->swapped;
    l->along_first = runs_along(p, inputs);
    use_wide_reads(job, inputs);
    if (l->along_first)
        l->along_threads = power_of_two(ceil_div(l->length, ITEMS), 1, THREADS);
    else
        l->along_threads = THREADS / power_of_two(l->lines, 1, 32);
    int64_t lines = THREADS / l->along_threads;
    int64_t groups = smaller(ceil_div(l->lines, lines), MAX_GRID_Y);
    if (l->is_whole)
        groups = smaller(groups, most);
    int64_t wanted = ceil_div(most, groups);
    int64_t least = larger(SHORT / lines, 64);
    if (l->is_whole && l->lines == 1 && l->length <= ONE_BLOCK)
        least = l->length; /* a second kernel would take longer */
    l->chunks = larger(smaller(wanted, l->length / least), 1);
    l->chunk = ceil_div(ceil_div(l->length, l->chunks), ITEMS) * ITEMS;
    l->chunks = ceil_div(l->length, l->chunk);
    return dim3((unsigned)l->chunks, (unsigned)groups);
}

/* Is there only an input to fold, in the type that is computed in? */
static int is_plain(const reduce_job *job)
{
    const plan *p = &job->p;
    return p->length == 0 && p->result < FIRST_CONSTANT &&
           p->in[p->result].dtype == (job->is_f64 ? GPU_F64 : GPU_F32);
}

template <class T, class P>
static gpu_status launch(cuda_device *d, const reduce_job *job, dim3 grid)
{
    size_t shared = spots<T> * gpu_cuda_plan_bytes(&job->p, THREADS, sizeof(T));
    if (is_plain(job)) {
        reduce_kernel<T, P, true><<<grid, THREADS, 0, d->stream>>>(*job);
        LAUNCHED(d);
        return GPU_OK;
    }
    if (shared + THREADS * sizeof(P) > 48 << 10)
        CHECK(d, cudaFuncSetAttribute(
                     reduce_kernel<T, P, false>,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    reduce_kernel<T, P, false><<<grid, THREADS, shared, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

/* The first stage: by a kernel compiled for the program, if there is one. */
template <class P>
static gpu_status run_lines(cuda_device *d, const gpu_program *p,
                            const reduce_job *job, dim3 grid)
{
    if (!is_plain(job)) {
        gpu_status status = gpu_cuda_reduce_compiled(d, p, &job->p, &job->lines,
                                                     &job->out, grid);
        if (status != GPU_UNSUPPORTED)
            return status;
    }
    return (job->is_f64 ? launch<double, P> : launch<float, P>)(d, job, grid);
}

template <class P>
static gpu_status run(cuda_device *d, const gpu_program *p, reduce_job *job,
                      dim3 grid)
{
    jit_lines *l = &job->lines;
    int64_t lines = l->is_whole ? 1 : l->lines;
    int64_t count = l->is_whole ? (int64_t)grid.x * grid.y : l->chunks;
    if (count > 1)
        TRY(gpu_cuda_scratch(d, (size_t)(lines * count) * sizeof(P),
                             &l->partials));
    TRY(run_lines<P>(d, p, job, grid));
    if (count == 1)
        return GPU_OK;
    int width = power_of_two(count, 1, FOLD_THREADS);
    int64_t blocks = ceil_div(lines, FOLD_THREADS / width);
    fold_kernel<P>
        <<<(unsigned)smaller(blocks, 1 << 20), FOLD_THREADS, 0, d->stream>>>(
            *job, lines, count, width);
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
    job.lines.row_length = in[0].cols;
    job.lines.kind = p->reduction;
    job.lines.is_whole = axis == 0;
    job.is_f64 = job.p.is_f64;
    job.out = *out;
    if (job.lines.is_whole && is_mask(p, in))
        return count_mask(d, &job, in);
    if (axis == 1)
        swap_axes(&job.out);
    if (job.lines.is_whole)
        shape_whole(&job, p->inputs);
    else
        shape_lines(&job, p->inputs, axis);
    dim3 grid = share_out(d, &job, p->inputs);
    if (job.lines.kind == GPU_REDUCE_SPREAD)
        return run<moments>(d, p, &job, grid);
    return is_place(job.lines.kind) ? run<best>(d, p, &job, grid)
                                    : run<total>(d, p, &job, grid);
}
