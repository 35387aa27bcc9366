/* A reduction's pass over elements: what interprets a program (reduce.cu) and
 * what is compiled for one (kernel_reduce_body.h) have all of this text, so
 * that both give the same bits.
 *
 * Before it stand ITEMS, the type quad<T> of so many elements, jit_job.h and
 * op_list.h. What it is of has a type of its own, WORK, with
 *   take_whole(work, kind, of, &j, &own)  takes in elements of a stretch from j
 *                                         on, whole fours in their order, as
 *                                         many as come together; moves j on
 *   read_some(work, of, j, count)         the four at j, of which so many exist
 *   finish(work, line, r)                 writes the result of a line
 * whose order and partition are this text's alone.
 *
 * A reduction has lines (what stays) and runs along them. A block's threads
 * form a rectangle over both, laid so that neighbouring threads read
 * neighbouring elements; a long line is cut into chunks for several blocks,
 * whose partial results a second kernel folds. Limited by bytes: so what a
 * thread does with an element is little, and what is known of many elements is
 * brought together only when it has met all of its own. Sums and products are
 * f64 throughout. */
typedef long long int64;

/* --- partial results --------------------------------------------------------
 * What is known of some elements, one struct a method: of none of them, of two
 * parts together, and of a block's, always in the same order. */

typedef struct total { /* a sum, a product, an extreme */
    double value;
} total;

typedef struct best { /* argmin, argmax */
    double value;
    int64 index; /* -1 of no elements */
} best;

/* The squared distances from the mean, which is kept as its distance from one
 * of the elements: so it has as many digits as they need, wherever the elements
 * lie. */
typedef struct moments {
    double count, origin, mean, squares;
} moments;

/* What is known for each kind of reduction. */
template <int WHICH> struct partial_of {
    typedef total type;
};
template <> struct partial_of<GPU_REDUCE_argmin> {
    typedef best type;
};
template <> struct partial_of<GPU_REDUCE_argmax> {
    typedef best type;
};
template <> struct partial_of<GPU_REDUCE_SPREAD> {
    typedef moments type;
};

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

__device__ __forceinline__ double number_of(total r)
{
    return r.value;
}

__device__ __forceinline__ double number_of(best r)
{
    return (double)r.index;
}

__device__ __forceinline__ double number_of(moments r)
{
    return r.squares;
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
    int64 line, from, end, step, apart;
} stretch;

template <class T>
__device__ __forceinline__ total known(const jit_lines &,
                                       const running<total, T> &own,
                                       const stretch &)
{
    return {own.value};
}

template <class T>
__device__ __forceinline__ best known(const jit_lines &l,
                                      const running<best, T> &own,
                                      const stretch &s)
{
    int n = own.at < 0 ? 0 : own.at;
    int64 at = s.from + n / ITEMS * s.step + n % ITEMS * s.apart;
    if (own.met == 0)
        return empty<best>(l.kind);
    if (l.is_whole)
        at = l.is_turned ? at * l.row_length + s.line
                         : s.line * l.row_length + at;
    double value =
        l.kind == GPU_REDUCE_argmax ? (double)own.value : -(double)own.value;
    return {own.is_nan ? value - value : value, at};
}

/* Squares of distances that f32 can have never overflow. */
template <class T>
__device__ __forceinline__ moments known(const jit_lines &,
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

/* --- a block's part --------------------------------------------------------
 */

template <class T, class P, class WORK>
__device__ __forceinline__ void
take_stretch(int kind, const WORK &work, const stretch &of, running<P, T> *own)
{
    int64 j = of.from;
    take_whole(work, kind, of, &j, own);
    for (; j < of.end; j += of.step) {
        int64 left = of.end - j;
        int count = left > (ITEMS - 1) * of.apart
                        ? (int)ITEMS
                        : ((int)left + (int)of.apart - 1) / (int)of.apart;
        take(kind, own, read_some(work, of, j, count), count);
    }
}

/* The part of a block among lines that lie side by side: blocks that begin
 * together then read rows that are long, which memory likes better than many
 * short pieces. */
__device__ __forceinline__ void find_beside(unsigned *chunk, unsigned *band)
{
    unsigned number = blockIdx.y * gridDim.x + blockIdx.x;
    *chunk = number / gridDim.y;
    *band = number - *chunk * gridDim.y;
}

/* Of the whole a thread goes on with what it knows from line to line, but for
 * places, which come in order within a line alone. shared: one for each thread
 * of the block. */
template <class T, class P, class WORK>
__device__ __forceinline__ void reduce_lines(const jit_lines &l,
                                             const WORK &work, P *shared)
{
    constexpr bool places = sizeof(P) == sizeof(best);
    int a_threads = l.along_threads, lines = JIT_FOLD_THREADS / a_threads;
    int along = l.along_first ? threadIdx.x % a_threads : threadIdx.x / lines;
    int line = l.along_first ? threadIdx.x / a_threads : threadIdx.x % lines;
    unsigned chunk = blockIdx.x, band = blockIdx.y;
    if (!l.along_first && !l.is_whole)
        find_beside(&chunk, &band);
    int64 from = chunk * l.chunk, end = from + l.chunk;
    stretch s = {0, from + along * (l.neighbours ? (int)ITEMS : 1),
                 end < l.length ? end : l.length, (int64)ITEMS * a_threads,
                 l.neighbours ? 1 : a_threads};
    running<P, T> own;
    P acc = empty<P>(l.kind);
    begin(l.kind, &own);
    for (int64 first = (int64)band * lines; first < l.lines;
         first += (int64)gridDim.y * lines) {
        s.line = first + line;
        if (s.line < l.lines)
            take_stretch(l.kind, work, s, &own);
        if (l.is_whole && !places)
            continue;
        P part = known(l, own, s);
        begin(l.kind, &own);
        if (l.is_whole) {
            acc = combine(l.kind, acc, part);
            continue;
        }
        part = fold_block(l.kind, part, shared, line, lines, along, a_threads);
        if (along > 0 || s.line >= l.lines)
            continue;
        if (l.chunks == 1)
            finish(work, s.line, part);
        else
            ((P *)l.partials)[s.line * l.chunks + chunk] = part;
    }
    if (!l.is_whole)
        return;
    if (!places)
        acc = known(l, own, s);
    acc = fold_block(l.kind, acc, shared, 0, 1, threadIdx.x, JIT_FOLD_THREADS);
    if (threadIdx.x > 0)
        return;
    if (gridDim.x == 1 && gridDim.y == 1)
        finish(work, 0, acc);
    else
        ((P *)l.partials)[(int64)blockIdx.y * gridDim.x + blockIdx.x] = acc;
}
