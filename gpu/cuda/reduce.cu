/* Reductions of a program's results: everything, one value a column, or one a
 * row.
 *
 * A reduction has lines (what stays) and runs along them. A block's threads
 * form a rectangle over both, laid so that neighbouring threads read
 * neighbouring elements; a long line is cut into chunks for several blocks,
 * whose partial results a second kernel folds. Partition and order depend
 * only on the shape and the device, so results repeat bit for bit. Limited by
 * bytes: so what a thread does with an element is little, and what is known of
 * many elements is brought together only when it has met all of its own. Sums
 * and products are f64 throughout. */
#include "interpret.h"

/* --- partial results --------------------------------------------------------
 * What is known of some elements, one struct a method: of none of them, of two
 * parts together, and of a block's, always in the same order. */

typedef struct total { /* a sum, a product, an extreme */
    double value;
} total;

typedef struct best { /* argmin, argmax */
    double value;
    int64_t index; /* -1 of no elements */
} best;

/* The squared distances from the mean, which is kept as its distance from one
 * of the elements: so it has as many digits as they need, wherever the elements
 * lie. */
typedef struct moments {
    double count, origin, mean, squares;
} moments;

static __host__ __device__ int is_place(int kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

__device__ __forceinline__ double infinity()
{
    return __longlong_as_double(0x7ff0000000000000);
}

/* The extreme that any element beats or equals. */
__device__ __forceinline__ double worst(int kind)
{
    return kind == GPU_REDUCE_min || kind == GPU_REDUCE_argmin ? infinity()
                                                               : -infinity();
}

template <class P> __device__ __forceinline__ P empty(int kind)
{
    if constexpr (sizeof(P) == sizeof(moments))
        return {0, 0, 0, 0};
    else if constexpr (sizeof(P) == sizeof(best))
        return {worst(kind), -1};
    else
        return {kind == GPU_REDUCE_prod                            ? 1
                : kind == GPU_REDUCE_min || kind == GPU_REDUCE_max ? worst(kind)
                                                                   : 0};
}

/* Is b's value more extreme than a's, or as extreme and earlier? NaN is the
 * most extreme of all. */
__device__ __forceinline__ bool goes_before(int kind, best b, best a)
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

__device__ __forceinline__ best combine(int kind, best a, best b)
{
    return goes_before(kind, b, a) ? b : a;
}

__device__ __forceinline__ total combine(int kind, total a, total b)
{
    switch (kind) {
    case GPU_REDUCE_prod:
        return {a.value * b.value};
    case GPU_REDUCE_min:
        return {b.value < a.value || b.value != b.value ? b.value : a.value};
    case GPU_REDUCE_max:
        return {b.value > a.value || b.value != b.value ? b.value : a.value};
    default:
        return {a.value + b.value};
    }
}

/* Source: Chan, Golub and LeVeque, Algorithms for computing the sample
 * variance: analysis and recommendations, 1983. Squares that are infinite or
 * NaN stay so. */
__device__ __forceinline__ moments combine(int, moments a, moments b)
{
    if (a.count == 0 || b.count == 0)
        return a.count == 0 ? b : a;
    moments r = {a.count + b.count, a.origin, a.mean, a.squares + b.squares};
    if (r.squares - r.squares != 0)
        return r;
    double apart = (b.origin - a.origin) + (b.mean - a.mean);
    double share = b.count / r.count;
    r.mean += apart * share;
    r.squares += apart * apart * (a.count * share);
    return r;
}

/* Folds the block's partials over `along`, for each of its lines, by halving.
 * Thread (line, 0) returns the line's. */
template <class P>
__device__ P fold_block(int kind, P own, P *shared, int line, int lines,
                        int along, int along_threads)
{
    shared[along * lines + line] = own;
    for (int half = along_threads / 2; half > 0; half /= 2) {
        __syncthreads(); /* the partials of the step before are written */
        if (along < half) {
            own = combine(kind, own, shared[(along + half) * lines + line]);
            shared[along * lines + line] = own;
        }
    }
    __syncthreads(); /* shared may be filled anew */
    return own;
}

/* --- one block ------------------------------------------------------------ */

enum { THREADS = 128, FOLD_THREADS = 256, BLOCKS_PER_SM = 16 };
enum { SHORT = 2048 };     /* elements of a line that are worth a block */
enum { ONE_BLOCK = 8192 }; /* elements of all that one block folds */
enum { AHEAD = 4 }; /* reads of four elements that a thread begins at once */
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
    int64_t truths; /* the partials count the true of so many elements; or 0 */
    void *partials; /* lines x chunks; whole: a block each */
    gpu_view out;   /* column of lines */
} reduce_job;

__device__ __forceinline__ double result(const reduce_job &job, total r)
{
    double all = (double)job.truths;
    if (job.truths == 0)
        return r.value;
    switch (job.kind) {
    case GPU_REDUCE_min:
        return r.value == all;
    case GPU_REDUCE_max:
        return r.value > 0;
    case GPU_REDUCE_SPREAD:
        return r.value * ((all - r.value) / all);
    default:
        return r.value;
    }
}

__device__ __forceinline__ double result(const reduce_job &, best r)
{
    return (double)r.index;
}

__device__ __forceinline__ double result(const reduce_job &, moments r)
{
    return r.squares;
}

template <class P>
__device__ __forceinline__ void finish(const reduce_job &job, int64_t line, P r)
{
    store<double>(job.out, line * job.out.row_stride, result(job, r));
}

/* --- what a thread knows ----------------------------------------------------
 * What it keeps for a partial result of type P while it meets elements of type
 * T, four at a time, and the partial result that comes of it. */

template <class P, class T> struct running;

template <class T> struct running<total, T> {
    double value;
};

/* Places are counted in the order the thread meets its elements, which is that
 * of their indices: so only what is better than all before counts. Smallest
 * elements are the largest of those with the other sign. After a NaN the value
 * is one that nothing is larger than. */
template <class T> struct running<best, T> {
    T value;
    int at, met; /* at -1: all are -infinity, or there is none */
    bool is_nan;
};

/* Distances from the first element. As the square of that one's distance from
 * the mean is part of what is left, no more than a factor of the thread's
 * elements and one cancels. */
template <class T> struct running<moments, T> {
    double origin, sum, squares;
    double mark; /* NaN if an element is infinite or NaN */
    int count;
};

template <class T>
__device__ __forceinline__ void begin(int kind, running<total, T> *own)
{
    own->value = empty<total>(kind).value;
}

template <class T>
__device__ __forceinline__ void begin(int kind, running<best, T> *own)
{
    *own = {(T)-infinity(), -1, 0, false};
}

template <class T>
__device__ __forceinline__ void begin(int, running<moments, T> *own)
{
    *own = {0, 0, 0, 0, 0};
}

/* Takes in four values, of which the first `count` exist; the switch outside
 * the loop: there are few instructions to spend on an element. */
template <class T>
__device__ __forceinline__ void take(int kind, running<total, T> *own,
                                     const quad<T> &r, int count)
{
#define FOLD(expression)                              \
    _Pragma("unroll") for (int k = 0; k < ITEMS; k++) \
    {                                                 \
        double x = (double)r.at[k], a = own->value;   \
        if (k < count)                                \
            own->value = (expression);                \
    }                                                 \
    break
    switch (kind) {
    case GPU_REDUCE_sum:
        FOLD(a + x);
    case GPU_REDUCE_SQUARES:
        FOLD(fma(x, x, a));
    case GPU_REDUCE_prod:
        FOLD(a * x);
    case GPU_REDUCE_min:
        FOLD(x < a || x != x ? x : a);
    default:
        FOLD(x > a || x != x ? x : a);
    }
#undef FOLD
}

/* Among the four as in a cup, so that not each of them has to wait for the one
 * before. */
template <class T>
__device__ __forceinline__ void take(int kind, running<best, T> *own,
                                     const quad<T> &r, int count)
{
    T sign = kind == GPU_REDUCE_argmax ? (T)1 : (T)-1, x[ITEMS];
    bool has_nan = false;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        x[k] = k < count ? r.at[k] * sign : (T)-infinity();
        has_nan = has_nan || x[k] != x[k];
    }
    if (has_nan && !own->is_nan) {
        int k = x[0] != x[0] ? 0 : x[1] != x[1] ? 1 : x[2] != x[2] ? 2 : 3;
        *own = {(T)infinity(), own->met + k, own->met, true};
    }
    int low = x[1] > x[0], high = x[3] > x[2] ? 3 : 2;
    T first = x[1] > x[0] ? x[1] : x[0], second = x[3] > x[2] ? x[3] : x[2];
    T value = second > first ? second : first;
    if (value > own->value) {
        own->value = value;
        own->at = own->met + (second > first ? high : low);
    }
    own->met += ITEMS;
}

template <class T>
__device__ __forceinline__ void take(int, running<moments, T> *own,
                                     const quad<T> &r, int count)
{
    double apart[ITEMS];
    if (own->count == 0)
        own->origin = (double)r.at[0];
    own->count += count;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        double x = (double)r.at[k];
        apart[k] = k < count ? x - own->origin : 0;
        own->squares = fma(apart[k], apart[k], own->squares);
        if (sizeof(T) == 8 && k < count)
            own->mark = fma(x, 0.0, own->mark);
    }
    own->sum += (apart[0] + apart[1]) + (apart[2] + apart[3]);
}

/* A thread's elements of a line: element number k of its n-th four is at from +
 * n step + k apart. */
typedef struct stretch {
    int64_t line, from, end, step, apart;
} stretch;

template <class T>
__device__ __forceinline__ total known(const reduce_job &,
                                       const running<total, T> &own,
                                       const stretch &)
{
    return {own.value};
}

template <class T>
__device__ __forceinline__ best known(const reduce_job &job,
                                      const running<best, T> &own,
                                      const stretch &s)
{
    int n = own.at < 0 ? 0 : own.at;
    int64_t at = s.from + n / ITEMS * s.step + n % ITEMS * s.apart;
    if (own.met == 0)
        return empty<best>(job.kind);
    if (job.whole)
        at = job.p.swapped ? at * job.index_cols + s.line
                           : s.line * job.index_cols + at;
    double value =
        job.kind == GPU_REDUCE_argmax ? (double)own.value : -(double)own.value;
    return {own.is_nan ? value - value : value, at};
}

/* Squares of distances that f32 can have never overflow. */
template <class T>
__device__ __forceinline__ moments known(const reduce_job &,
                                         const running<moments, T> &own,
                                         const stretch &)
{
    double n = own.count, squares = own.squares;
    if (own.count == 0)
        return {0, 0, 0, 0};
    double mean = own.sum / n;
    double left = squares - own.sum * mean;
    if (squares - squares != 0)
        left = sizeof(T) == 8 ? squares + own.mark : squares - squares;
    return {n, own.origin, mean, left < 0 ? 0 : left};
}

/* --- along a line --------------------------------------------------------- */

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
 * alone leaves the memory waiting. Moves s on. WIDE: of four elements each. */
template <class T, class P, bool WIDE>
__device__ __forceinline__ void take_inputs(const reduce_job &job, spot *s,
                                            int64_t step, int64_t end,
                                            running<P, T> *own)
{
    const gpu_view &in = job.p.in[job.p.result];
    const T *from = (const T *)in.data + place(in, s->i, s->j);
    int64_t next = WIDE ? 1 : s->dj * in.col_stride;
    int64_t hop = WIDE ? step : step * in.col_stride;
    int64_t reach = (AHEAD - 1) * step + (ITEMS - 1) * s->dj;
    for (; s->j + reach < end; s->j += AHEAD * step) {
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
            take(job.kind, own, r[n], ITEMS);
    }
}

/* How many spots a program is run for at once. */
template <class T> constexpr int spots = sizeof(T) == sizeof(float) ? 2 : 1;

/* The results of a program, as long as there are whole spots. Moves s on. */
template <class T, class P>
__device__ __forceinline__ void take_results(const reduce_job &job, spot *s,
                                             const stretch &of,
                                             running<P, T> *own, T *file)
{
    constexpr int N = spots<T>;
    int64_t reach = (N - 1) * of.step + (ITEMS - 1) * of.apart;
    s->count = ITEMS;
    for (; s->j + reach < of.end; s->j += N * of.step) {
        spot each[N];
#pragma unroll
        for (int n = 0; n < N; n++) {
            each[n] = *s;
            each[n].j += n * of.step;
            if (each[n].j + AHEAD * of.step < of.end)
                fetch_ahead(job.p, {s->i, each[n].j + AHEAD * of.step});
        }
        lot<T, N> r = evaluate_lot<T, N>(job.p, each, file, THREADS);
#pragma unroll
        for (int n = 0; n < N; n++)
            take(job.kind, own, r.of[n], ITEMS);
    }
}

template <class T, class P, bool PLAIN>
__device__ __forceinline__ void take_stretch(const reduce_job &job,
                                             const stretch &of,
                                             running<P, T> *own, T *file)
{
    spot s = {of.line, of.from, 0, of.apart, 0};
    if (of.line >= job.p.rows)
        return;
    if (PLAIN && (job.p.wide >> job.p.result & 1))
        take_inputs<T, P, true>(job, &s, of.step, of.end, own);
    else if (PLAIN)
        take_inputs<T, P, false>(job, &s, of.step, of.end, own);
    if (!PLAIN)
        take_results(job, &s, of, own, file);
    for (; s.j < of.end; s.j += of.step) {
        int64_t left = of.end - s.j;
        s.count = left > (ITEMS - 1) * of.apart
                      ? ITEMS
                      : (int)(((int)left + (int)of.apart - 1) / (int)of.apart);
        if (!PLAIN && s.j + AHEAD * of.step < of.end)
            fetch_ahead(job.p, {s.i, s.j + AHEAD * of.step});
        quad<T> r = PLAIN ? fetch_plain<T>(job.p, s)
                          : evaluate<T>(job.p, s, file, THREADS);
        take(job.kind, own, r, s.count);
    }
}

/* PLAIN: there is no program to run, only an input to fold as it is. Of the
 * whole a thread goes on with what it knows from line to line, but for places,
 * which come in order within a line alone. */
template <class T, class P, bool PLAIN>
__global__ void __launch_bounds__(THREADS, sizeof(T) == sizeof(float) ? 6 : 3)
    reduce_kernel(const __grid_constant__ reduce_job job)
{
    extern __shared__ __align__(16) char slots[];
    __shared__ P shared[THREADS];
    constexpr bool places = sizeof(P) == sizeof(best);
    int kind = job.kind;
    int a_threads = job.along_threads, lines = THREADS / a_threads;
    int along = job.along_first ? threadIdx.x % a_threads : threadIdx.x / lines;
    int line = job.along_first ? threadIdx.x / a_threads : threadIdx.x % lines;
    T *file = (T *)slots + threadIdx.x;
    int64_t from = blockIdx.x * job.chunk;
    stretch s = {0, from + along * (job.neighbours ? ITEMS : 1),
                 min(from + job.chunk, job.p.cols), (int64_t)ITEMS * a_threads,
                 job.neighbours ? 1 : a_threads};
    running<P, T> own;
    P acc = empty<P>(kind);
    begin(kind, &own);
    for (int64_t first = (int64_t)blockIdx.y * lines; first < job.p.rows;
         first += (int64_t)gridDim.y * lines) {
        s.line = first + line;
        take_stretch<T, P, PLAIN>(job, s, &own, file);
        if (job.whole && !places)
            continue;
        P part = known(job, own, s);
        begin(kind, &own);
        if (job.whole) {
            acc = combine(kind, acc, part);
            continue;
        }
        part = fold_block(kind, part, shared, line, lines, along, a_threads);
        if (along > 0 || s.line >= job.p.rows)
            continue;
        if (job.chunks == 1)
            finish(job, s.line, part);
        else
            ((P *)job.partials)[s.line * job.chunks + blockIdx.x] = part;
    }
    if (!job.whole)
        return;
    if (!places)
        acc = known(job, own, s);
    acc = fold_block(kind, acc, shared, 0, 1, threadIdx.x, THREADS);
    if (threadIdx.x > 0)
        return;
    if (gridDim.x == 1 && gridDim.y == 1)
        finish(job, 0, acc);
    else
        ((P *)job.partials)[(int64_t)blockIdx.y * gridDim.x + blockIdx.x] = acc;
}

/* The second stage: a block folds one line's partials. */
template <class P>
__global__ void __launch_bounds__(FOLD_THREADS)
    fold_kernel(const __grid_constant__ reduce_job job, int64_t lines,
                int64_t count)
{
    __shared__ P shared[FOLD_THREADS];
    int kind = job.truths > 0 ? (int)GPU_REDUCE_sum : job.kind;
    for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
        P acc = empty<P>(kind);
        for (int64_t n = threadIdx.x; n < count; n += FOLD_THREADS)
            acc = combine(kind, acc, ((P *)job.partials)[line * count + n]);
        acc = fold_block(kind, acc, shared, 0, 1, threadIdx.x, FOLD_THREADS);
        if (threadIdx.x == 0)
            finish(job, line, acc);
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
    TRY(gpu_cuda_scratch(d, (size_t)blocks * sizeof(total), &job->partials));
    count_kernel<<<(unsigned)blocks, THREADS, 0, d->stream>>>(
        from + before, n, before, (int)(bytes - before - n * 16),
        (double *)job->partials);
    LAUNCHED(d);
    fold_kernel<total><<<1, FOLD_THREADS, 0, d->stream>>>(*job, 1, blocks);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- launching ------------------------------------------------------------ */

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
    if (job->whole && p->rows == 1 && p->cols <= ONE_BLOCK)
        least = p->cols; /* a second kernel would take longer */
    job->chunks = larger(smaller(wanted, p->cols / least), 1);
    job->chunk = ceil_div(ceil_div(p->cols, job->chunks), ITEMS) * ITEMS;
    job->chunks = ceil_div(p->cols, job->chunk);
    return dim3((unsigned)job->chunks, (unsigned)groups);
}

template <class T, class P>
static gpu_status launch(cuda_device *d, const reduce_job *job, dim3 grid)
{
    const plan *p = &job->p;
    size_t shared = spots<T> * gpu_cuda_plan_bytes(p, THREADS, sizeof(T));
    if (p->length == 0 && p->result < FIRST_CONSTANT &&
        p->in[p->result].dtype == (sizeof(T) == 8 ? GPU_F64 : GPU_F32)) {
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

template <class P>
static gpu_status run(cuda_device *d, reduce_job *job, dim3 grid)
{
    int64_t lines = job->whole ? 1 : job->p.rows;
    int64_t count = job->whole ? (int64_t)grid.x * grid.y : job->chunks;
    int needs_fold = job->whole ? count > 1 : job->chunks > 1;
    if (needs_fold)
        TRY(gpu_cuda_scratch(d, (size_t)(lines * count) * sizeof(P),
                             &job->partials));
    TRY((job->is_f64 ? launch<double, P> : launch<float, P>)(d, job, grid));
    if (!needs_fold)
        return GPU_OK;
    unsigned blocks = (unsigned)smaller(lines, 1 << 20);
    fold_kernel<P><<<blocks, FOLD_THREADS, 0, d->stream>>>(*job, lines, count);
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
    if (job.whole && is_mask(p, in))
        return count_mask(d, &job, in);
    if (axis == 1)
        swap_axes(&job.out);
    if (job.whole)
        shape_whole(&job, p->inputs);
    else
        shape_lines(&job, p->inputs, axis);
    dim3 grid = share_out(d, &job, p->inputs);
    if (job.kind == GPU_REDUCE_SPREAD)
        return run<moments>(d, &job, grid);
    return is_place(job.kind) ? run<best>(d, &job, grid)
                              : run<total>(d, &job, grid);
}
