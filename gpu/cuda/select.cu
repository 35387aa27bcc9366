/* Elements by their rank, without sorting what is not asked for: medians,
 * quantiles and the first elements of lines.
 *
 * Many lines: a block, or a warp of a short one, finds the digits of an
 * element's key from the top, each by counting the digits of those that agree
 * so far; the keys stay in shared memory where they fit. Of its first elements,
 * if they are few, no digits are counted but those of the least keys of its
 * threads: an element that is wanted is no larger than the one among these
 * whose rank it has, and of those that are not hardly any is. A few long lines:
 * two elements of a sorted sample, between which the wanted one lies all but
 * surely; one pass over the line counts what lies beside them and keeps what is
 * between, which is little and is sorted. Limited by bytes. What comes does not
 * depend on the sample, nor on the order of the threads.
 *
 * Source of the sample: Floyd and Rivest, Expected time bounds for selection,
 * 1975. */
#include <cmath>
#include "scratch_parts.h"
#include "sort_keys.h"

enum { THREADS = 256, MOST_THREADS = 1024, BLOCKS_PER_SM = 8 };
enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };
enum { SHORT_LINE = 1024 };   /* elements that a warp looks at alone, */
enum { MIDDLE_LINE = 12288 }; /* and a block of THREADS */
enum { LONG_LINE = 1 << 17 }; /* elements that are worth the whole GPU */
enum { FEW_LINES = 32 };      /* that are taken one by one */

/* Of places: to has a column for each. Of first elements to and order have as
 * many columns as are wanted; one of them may have no data. */
typedef struct select_job {
    gpu_view from, to, order; /* rows are lines */
    int64_t places[GPU_MOST_SELECTED];
    int count, spreads_nan, descending;
    int is_wide;  /* four elements of a line may be read at once */
    int64_t kept; /* keys of a line that have room in shared memory: all or 0 */
} select_job;

/* --- lines by blocks and warps -------------------------------------------- */

/* What the G threads of a line share, beside its keys. */
typedef struct line_state {
    unsigned counts[DIGITS];
    unsigned long long differ; /* bits in which keys do */
    unsigned long long least;  /* key above the last one that was found */
    unsigned nans, rank, equal, digit;
} line_state;

template <int G> __device__ __forceinline__ void meet()
{
    if (G == 32)
        __syncwarp();
    else
        __syncthreads();
}

/* The key at place j of a line. */
template <class T, class K> struct line_keys {
    const select_job &job;
    int64_t line, size;
    const K *kept; /* NULL: it is read each time */
    __device__ __forceinline__ K read(int64_t j) const
    {
        return key_of(load<T>(job.from, place(job.from, line, j)),
                      job.descending);
    }
    __device__ __forceinline__ K operator()(int64_t j) const
    {
        return kept ? kept[j] : read(j);
    }
};

__device__ __forceinline__ void put_four(uint32_t *to, const uint32_t *key)
{
    *(uint4 *)to = make_uint4(key[0], key[1], key[2], key[3]);
}

__device__ __forceinline__ void put_four(uint64_t *to, const uint64_t *key)
{
    ((ulonglong2 *)to)[0] = make_ulonglong2(key[0], key[1]);
    ((ulonglong2 *)to)[1] = make_ulonglong2(key[2], key[3]);
}

/* What a thread has seen of a line's keys. */
template <class K> struct line_look {
    K first, differ, least;
    unsigned nans;
    __device__ __forceinline__ void see(K key)
    {
        differ |= key ^ first;
        least = key < least ? key : least;
        nans += key == ~(K)0;
    }
};

/* Reads a line once: its keys into `keep` if that has room, the bits in which
 * they differ, and how many are NaN. Returns the least key that the thread has
 * read. */
template <class T, class K, int G>
__device__ __forceinline__ K read_line(const line_keys<T, K> &keys, K *keep,
                                       int thread, line_state *s)
{
    int64_t n = keys.size, wide = keys.job.is_wide ? n / 4 : 0;
    line_look<K> look = {keys.read(0), 0, ~(K)0, 0};
    if (thread == 0) {
        s->differ = 0;
        s->nans = 0;
    }
    meet<G>(); /* both are zero */
    const T *line =
        (const T *)keys.job.from.data + keys.line * keys.job.from.row_stride;
#pragma unroll 2
    for (int64_t q = thread; q < wide; q += G) {
        T x[4];
        read_four(line + 4 * q, x);
        K key[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            key[k] = key_of(x[k], keys.job.descending);
            look.see(key[k]);
        }
        if (keep)
            put_four(keep + 4 * q, key);
    }
#pragma unroll 4
    for (int64_t j = 4 * wide + thread; j < n; j += G) {
        K key = keys.read(j);
        if (keep)
            keep[j] = key;
        look.see(key);
    }
    K differ = look.differ;
    unsigned nans = look.nans;
    for (int step = 16; step > 0; step /= 2) {
        differ |= __shfl_xor_sync(~0u, differ, step);
        nans += __shfl_xor_sync(~0u, nans, step);
    }
    if (thread % 32 == 0) {
        atomicOr(&s->differ, (unsigned long long)differ);
        atomicAdd(&s->nans, nans);
    }
    meet<G>(); /* all have told */
    return look.least;
}

/* Counts the digits above `shift` of the keys that agree with prefix in mask,
 * and finds the digit of the one at s->rank of them: s->rank becomes its rank
 * among s->equal that have this digit. */
template <class T, class K, int G>
__device__ __forceinline__ void find_digit(const line_keys<T, K> &keys,
                                           K prefix, K mask, int shift,
                                           int thread, line_state *s)
{
    enum { EACH = DIGITS / 32 };
    int64_t n = keys.size;
    for (int k = thread; k < DIGITS; k += G)
        s->counts[k] = 0;
    meet<G>(); /* counts are zero */
#pragma unroll 4
    for (int64_t j = thread; j < n; j += G) {
        K key = keys(j);
        if (((key ^ prefix) & mask) == 0)
            atomicAdd(s->counts + (unsigned)(key >> shift) % DIGITS, 1u);
    }
    meet<G>(); /* counts are complete */
    if (thread < 32) {
        unsigned own[EACH], sum = 0, rank = s->rank;
        for (int k = 0; k < EACH; k++)
            sum += own[k] = s->counts[thread * EACH + k];
        unsigned upto = sum;
        for (int step = 1; step < 32; step *= 2) {
            unsigned before = __shfl_up_sync(~0u, upto, step);
            upto += thread >= step ? before : 0;
        }
        unsigned below = upto - sum;
        __syncwarp(); /* all have the rank, which one writes now */
        if (rank >= below && rank < upto)
            for (int k = 0; k < EACH; k++) {
                if (rank >= below && rank < below + own[k]) {
                    s->digit = (unsigned)(thread * EACH + k);
                    s->rank = rank - below;
                    s->equal = own[k];
                }
                below += own[k];
            }
    }
    meet<G>(); /* the digit is there */
}

/* An element of the sorted line: its key, and its rank among so many that equal
 * it. */
template <class K> struct ranked {
    K key;
    unsigned rank, equal;
};

template <class T, class K, int G>
__device__ __forceinline__ ranked<K>
find_rank(const line_keys<T, K> &keys, int64_t rank, int thread, line_state *s)
{
    int top = 64 - __clzll((long long)s->differ); /* bits that differ */
    K mask = top < 8 * (int)sizeof(K) ? ~(K)0 << top : 0;
    K prefix = keys(0) & mask;
    if (thread == 0) {
        s->rank = (unsigned)rank;
        s->equal = (unsigned)keys.size;
    }
    meet<G>(); /* they are there */
    for (int shift = top; shift > 0;) {
        shift = shift > DIGIT_BITS ? shift - DIGIT_BITS : 0;
        find_digit<T, K, G>(keys, prefix, mask, shift, thread, s);
        prefix = (prefix & ~((K)(DIGITS - 1) << shift)) | (K)s->digit << shift;
        mask |= (K)(DIGITS - 1) << shift;
    }
    return {prefix, s->rank, s->equal};
}

/* The least key above this one, of which there is one. */
template <class T, class K, int G>
__device__ __forceinline__ K find_next(const line_keys<T, K> &keys, K than,
                                       int thread, line_state *s)
{
    int64_t n = keys.size;
    K least = ~(K)0;
    if (thread == 0)
        s->least = ~0ull;
    meet<G>(); /* so it is */
#pragma unroll 4
    for (int64_t j = thread; j < n; j += G) {
        K key = keys(j);
        least = key > than && key < least ? key : least;
    }
    for (int step = 16; step > 0; step /= 2) {
        K other = __shfl_xor_sync(~0u, least, step);
        least = other < least ? other : least;
    }
    if (thread % 32 == 0)
        atomicMin(&s->least, (unsigned long long)least);
    meet<G>(); /* all have told */
    return (K)s->least;
}

template <class T, class K, int G>
__device__ __forceinline__ void select_line(const line_keys<T, K> &keys,
                                            int thread, line_state *s)
{
    const select_job &job = keys.job;
    bool is_spread = job.spreads_nan && s->nans > 0;
    ranked<K> r = {~(K)0, 0, 0}; /* equal 0: its rank is not known */
    for (int p = 0; p < job.count && !is_spread; p++) {
        int64_t step = p > 0 ? job.places[p] - job.places[p - 1] : 2;
        if (step > 1 || (step == 1 && r.equal == 0))
            r = find_rank<T, K, G>(keys, job.places[p], thread, s);
        else if (step == 1 && ++r.rank == r.equal)
            r = {find_next<T, K, G>(keys, r.key, thread, s), 0, 0};
        meet<G>(); /* all have read what is written next */
        if (thread == 0)
            store<T>(job.to, place(job.to, keys.line, p),
                     r.key == ~(K)0 ? (T)NAN : (T)number_of(r.key));
    }
    for (int p = thread; p < job.count && is_spread; p += G)
        store<T>(job.to, place(job.to, keys.line, p), (T)NAN);
}

template <class T, class K, int G>
__global__ void __launch_bounds__(G == 32 ? THREADS : G)
    lines_kernel(const __grid_constant__ select_job job)
{
    enum { LINES = G == 32 ? THREADS / 32 : 1 };
    __shared__ line_state states[LINES];
    extern __shared__ __align__(16) unsigned char shared[];
    int group = threadIdx.x / G, thread = threadIdx.x % G;
    K *keep = job.kept ? (K *)shared + group * job.kept : NULL;
    int64_t line = blockIdx.x * (int64_t)LINES + group;
    for (; line < job.from.rows; line += gridDim.x * (int64_t)LINES) {
        line_keys<T, K> keys = {job, line, job.from.cols, keep};
        read_line<T, K, G>(keys, keep, thread, states + group);
        select_line<T, K, G>(keys, thread, states + group);
        meet<G>(); /* the line may go */
    }
}

/* --- the first elements of lines ------------------------------------------ */

/* What the G threads of a line look at twice: how many elements there is room
 * for, of which no more than half are wanted. */
template <int G> struct first_room {
    enum { ITEMS = G == 32 ? 64 : G == THREADS ? 1024 : 2048 };
};

/* Elements that may be wanted, in no order. */
template <class K, int G> struct first_items {
    K key[first_room<G>::ITEMS];
    unsigned place[first_room<G>::ITEMS];
    unsigned count; /* may be more than there is room for */
    unsigned equal[32];
};

template <class K, int G>
__device__ __forceinline__ void add_item(first_items<K, G> *items, K key,
                                         int64_t at)
{
    unsigned to = atomicAdd(&items->count, 1u);
    if (to < first_room<G>::ITEMS) {
        items->key[to] = key;
        items->place[to] = (unsigned)at;
    }
}

/* Those whose key is below `bound`, or equals it where that counts as well. */
template <class T, class K, int G>
__device__ __forceinline__ void take_below(const line_keys<T, K> &keys, K bound,
                                           bool takes_equal, int thread,
                                           first_items<K, G> *items)
{
    if (thread == 0)
        items->count = 0;
    meet<G>(); /* so it is */
#pragma unroll 4
    for (int64_t j = thread; j < keys.size; j += G) {
        K key = keys(j);
        if (key < bound || (takes_equal && key == bound))
            add_item(items, key, j);
    }
    meet<G>(); /* all are there */
}

/* The first `count` of those whose key is this one. */
template <class T, class K, int G>
__device__ __forceinline__ void take_equal(const line_keys<T, K> &keys, K equal,
                                           unsigned count, int thread,
                                           first_items<K, G> *items)
{
    unsigned before = 0;
    for (int64_t first = 0; first < keys.size && before < count; first += G) {
        int64_t j = first + thread;
        bool is_equal = j < keys.size && keys(j) == equal;
        unsigned mask = __ballot_sync(~0u, is_equal);
        if (thread % 32 == 0)
            items->equal[thread / 32] = __popc(mask);
        meet<G>(); /* all warps have told */
        unsigned rank = before + __popc(mask & ((1u << threadIdx.x % 32) - 1));
        for (int w = 0; w < G / 32; w++) {
            rank += w < thread / 32 ? items->equal[w] : 0;
            before += items->equal[w];
        }
        if (is_equal && rank < count)
            add_item(items, equal, j);
        meet<G>(); /* what they told has been read */
    }
}

/* Gathers the items among which the first k elements are, and no more of them
 * than there is room for. */
template <class T, class K, int G>
__device__ __forceinline__ void gather_first(const line_keys<T, K> &keys,
                                             K least, int thread, line_state *s,
                                             first_items<K, G> *items)
{
    int k = keys.job.count;
    if (k <= G / 2 && 4 * k <= keys.size) { /* as many threads have read */
        line_keys<T, K> leasts = {keys.job, keys.line, G, items->key};
        items->key[thread] = least;
        meet<G>(); /* all are there */
        K bound = find_rank<T, K, G>(leasts, k - 1, thread, s).key;
        meet<G>(); /* and have been read */
        take_below<T, K, G>(keys, bound, true, thread, items);
        if (items->count <= first_room<G>::ITEMS)
            return;
        meet<G>(); /* the count may go */
    }
    ranked<K> r = find_rank<T, K, G>(keys, k - 1, thread, s);
    meet<G>(); /* all have read the state */
    take_below<T, K, G>(keys, r.key, false, thread, items);
    take_equal<T, K, G>(keys, r.key, r.rank + 1, thread, items);
}

template <class K, int G>
__device__ __forceinline__ bool comes_before(const first_items<K, G> *items,
                                             int i, int j)
{
    return items->key[i] < items->key[j] || (items->key[i] == items->key[j] &&
                                             items->place[i] < items->place[j]);
}

/* In their order, behind which room is filled up. Source: Batcher, Sorting
 * networks and their applications, 1968. */
template <class K, int G>
__device__ __forceinline__ void sort_items(first_items<K, G> *items, int thread)
{
    int size = 2, count = (int)items->count;
    while (size < count)
        size *= 2;
    for (int i = count + thread; i < size; i += G) {
        items->key[i] = ~(K)0;
        items->place[i] = ~0u;
    }
    for (int length = 2; length <= size; length *= 2)
        for (int step = length / 2; step > 0; step /= 2) {
            meet<G>(); /* all of the step before is done */
            for (int k = thread; k < size / 2; k += G) {
                int i = 2 * k - (k & (step - 1)), j = i + step;
                bool rises = (i & length) == 0;
                if (comes_before(items, rises ? j : i, rises ? i : j)) {
                    K key = items->key[i];
                    unsigned place = items->place[i];
                    items->key[i] = items->key[j];
                    items->place[i] = items->place[j];
                    items->key[j] = key;
                    items->place[j] = place;
                }
            }
        }
    meet<G>(); /* the last one is done */
}

/* An item whose rank is known. */
template <class T, class K, int G>
__device__ __forceinline__ void put_first(const line_keys<T, K> &keys,
                                          unsigned at, int rank)
{
    const select_job &job = keys.job;
    if (rank >= job.count)
        return;
    if (job.to.data)
        store<T>(job.to, place(job.to, keys.line, rank),
                 load<T>(job.from, place(job.from, keys.line, at)));
    if (job.order.data)
        store<double>(job.order, place(job.order, keys.line, rank), (double)at);
}

/* Of few the rank is how many come before them; others are sorted. */
template <class T, class K, int G>
__device__ __forceinline__ void
write_first(const line_keys<T, K> &keys, int thread, first_items<K, G> *items)
{
    enum { FEW = 128 };
    int count = (int)items->count;
    if (count > FEW) {
        sort_items(items, thread);
        for (int i = thread; i < keys.job.count; i += G)
            put_first<T, K, G>(keys, items->place[i], i);
        return;
    }
    for (int i = thread; i < count; i += G) {
        int rank = 0;
#pragma unroll 4
        for (int j = 0; j < count; j++)
            rank += comes_before(items, j, i);
        put_first<T, K, G>(keys, items->place[i], rank);
    }
}

template <class T, class K, int G>
__global__ void __launch_bounds__(G == 32 ? THREADS : G)
    first_kernel(const __grid_constant__ select_job job)
{
    enum { LINES = G == 32 ? THREADS / 32 : 1 };
    __shared__ line_state states[LINES];
    __shared__ first_items<K, G> items[LINES];
    extern __shared__ __align__(16) unsigned char shared[];
    int group = threadIdx.x / G, thread = threadIdx.x % G;
    K *keep = job.kept ? (K *)shared + group * job.kept : NULL;
    int64_t line = blockIdx.x * (int64_t)LINES + group;
    for (; line < job.from.rows; line += gridDim.x * (int64_t)LINES) {
        line_keys<T, K> keys = {job, line, job.from.cols, keep};
        K least = read_line<T, K, G>(keys, keep, thread, states + group);
        gather_first<T, K, G>(keys, least, thread, states + group,
                              items + group);
        write_first<T, K, G>(keys, thread, items + group);
        meet<G>(); /* the line may go */
    }
}

/* --- lines of any kind ---------------------------------------------------- */

/* own: the bytes that a block has of its own. */
typedef struct line_kernel {
    void (*run)(select_job);
    int own;
} line_kernel;

template <class T, class K, int G> static line_kernel kernel_of(bool is_first)
{
    const int lines = G == 32 ? THREADS / 32 : 1;
    if (!is_first)
        return {lines_kernel<T, K, G>, lines * (int)sizeof(line_state)};
    return {first_kernel<T, K, G>,
            lines * (int)(sizeof(line_state) + sizeof(first_items<K, G>))};
}

template <class T, class K, int G>
static gpu_status launch_lines(cuda_device *d, select_job *job, bool is_first)
{
    static int done[2];
    const int64_t lines = G == 32 ? THREADS / 32 : 1;
    const int block = G == 32 ? THREADS : G, aside = 16; /* between parts */
    line_kernel kernel = kernel_of<T, K, G>(is_first);
    int room; /* of a block, for keys and what it has of its own */
    CHECK(d, cudaDeviceGetAttribute(
                 &room, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->ordinal));
    room -= kernel.own + aside;
    int64_t cols = ceil_div(job->from.cols, 4) * 4; /* four are put at once */
    int64_t bytes = lines * cols * (int64_t)sizeof(K);
    job->kept = bytes <= room ? cols : 0;
    bytes = job->kept ? bytes : 0;
    job->is_wide = job->from.col_stride == 1 && is_aligned(job->from.data) &&
                   job->from.row_stride % 4 == 0;
    TRY(set_once(d, (const void *)kernel.run,
                 cudaFuncAttributeMaxDynamicSharedMemorySize, room,
                 done + is_first));
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    unsigned blocks = (unsigned)smaller(ceil_div(job->from.rows, lines), most);
    kernel.run<<<blocks, block, (size_t)bytes, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

template <int G> static bool has_room(const select_job *job, bool is_first)
{
    return !is_first || 2 * job->count <= first_room<G>::ITEMS;
}

template <class T, class K>
static gpu_status select_lines(cuda_device *d, select_job *job, bool is_first)
{
    int64_t cols = job->from.cols;
    if (cols <= SHORT_LINE && has_room<32>(job, is_first))
        return launch_lines<T, K, 32>(d, job, is_first);
    if (cols <= MIDDLE_LINE && has_room<THREADS>(job, is_first))
        return launch_lines<T, K, THREADS>(d, job, is_first);
    if (has_room<MOST_THREADS>(job, is_first))
        return launch_lines<T, K, MOST_THREADS>(d, job, is_first);
    return GPU_UNSUPPORTED;
}

/* --- a long line by all blocks ----------------------------------------------
 */

enum { MOST_SAMPLED = 1 << 16, LEAST_SAMPLED = 1 << 12 };
enum { EACH = 16 };     /* elements of a thread at a time, */
enum { TOGETHER = 4 };  /* by so many of which one load may read */
enum { INTERVALS = 4 }; /* that a pass looks at */
#define DEVIATIONS 5.0  /* that an interval reaches to both sides */
static const int64_t PIECE = (int64_t)THREADS * EACH; /* of a block at a time */

/* Ranks in the sorted sample, -1 and its size where there is no bound. */
typedef struct rank_pair {
    int low, high;
} rank_pair;

/* Of the line, for each interval; then for all. kept: strictly inside. */
template <class K> struct tallies {
    K low[INTERVALS], high[INTERVALS];
    unsigned long long below[INTERVALS], upto_low[INTERVALS],
        below_high[INTERVALS], upto_high[INTERVALS];
    unsigned long long nans, kept;
};

template <class K> struct long_job {
    gpu_view line; /* flat, if it can be */
    int64_t size, room;
    int is_wide; /* four elements may be read at once */
    tallies<K> *told;
    K *items;
    int sampled;
    K *sample;
};

/* Place k of so many pieces of a line, at random within its piece. */
__device__ __forceinline__ int64_t sampled_place(int64_t size, int pieces,
                                                 int k)
{
    int64_t first = (int64_t)((double)size / pieces * k);
    int64_t end = (int64_t)((double)size / pieces * (k + 1));
    uint64_t mixed = ((uint64_t)k + 1) * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9;
    mixed ^= mixed >> 32;
    return first + (int64_t)(mixed % (uint64_t)max(end - first, (int64_t)1));
}

template <class T, class K>
__global__ void __launch_bounds__(THREADS)
    sample_kernel(const __grid_constant__ long_job<K> job)
{
    int k = blockIdx.x * THREADS + threadIdx.x;
    if (k >= job.sampled)
        return;
    int64_t e = sampled_place(job.size, job.sampled, k);
    job.sample[k] = key_of(load<T>(job.line, place_of(job.line, e)), 0);
}

typedef struct rank_pairs {
    rank_pair of[INTERVALS];
} rank_pairs;

template <class K>
__global__ void bounds_kernel(const __grid_constant__ long_job<K> job,
                              rank_pairs ranks)
{
    int k = threadIdx.x;
    rank_pair r = ranks.of[k];
    job.told->low[k] = r.low < 0 ? 0 : job.sample[r.low];
    job.told->high[k] = r.high < 0              ? 0
                        : r.high >= job.sampled ? ~(K)0
                                                : job.sample[r.high];
    job.told->below[k] = job.told->upto_low[k] = 0;
    job.told->below_high[k] = job.told->upto_high[k] = 0;
    if (k == 0)
        job.told->nans = job.told->kept = 0;
}

__device__ __forceinline__ unsigned sum_of_warp(unsigned x)
{
    return __reduce_add_sync(~0u, x);
}

/* Counts what lies beside each of N intervals, and keeps what is inside. */
template <class T, class K, int N>
__global__ void __launch_bounds__(THREADS)
    sift_kernel(const __grid_constant__ long_job<K> job)
{
    __shared__ unsigned long long place_in_items;
    __shared__ unsigned inside_block;
    K low[N], high[N];
    unsigned below[N], upto_low[N], below_high[N], upto_high[N], nans = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        low[i] = job.told->low[i];
        high[i] = job.told->high[i];
        below[i] = upto_low[i] = below_high[i] = upto_high[i] = 0;
    }
    int64_t first = blockIdx.x * PIECE;
    for (; first < job.size; first += gridDim.x * PIECE) {
        T x[EACH];
        unsigned inside = 0, is_inside = 0;
        if (threadIdx.x == 0)
            inside_block = 0;
#pragma unroll
        for (int q = 0; q < EACH / TOGETHER; q++) {
            int64_t e = first + (q * THREADS + threadIdx.x) * TOGETHER;
            if (job.is_wide && e + TOGETHER <= job.size) {
                read_four((const T *)job.line.data + e, x + q * TOGETHER);
                continue;
            }
#pragma unroll
            for (int k = 0; k < TOGETHER; k++)
                if (e + k < job.size)
                    x[q * TOGETHER + k] =
                        load<T>(job.line, place_of(job.line, e + k));
        }
#pragma unroll
        for (int m = 0; m < EACH; m++) {
            int64_t e = first +
                        (m / TOGETHER * THREADS + threadIdx.x) * TOGETHER +
                        m % TOGETHER;
            if (e >= job.size)
                continue;
            K key = key_of(x[m], 0);
            nans += key == ~(K)0;
            bool is_in = false;
#pragma unroll
            for (int i = 0; i < N; i++) {
                below[i] += key < low[i];
                upto_low[i] += key <= low[i];
                below_high[i] += key < high[i];
                upto_high[i] += key <= high[i];
                is_in |= key > low[i] && key < high[i];
            }
            is_inside |= (unsigned)is_in << m;
            inside += is_in;
        }
        __syncthreads(); /* inside_block is zero */
        unsigned at = inside ? atomicAdd(&inside_block, inside) : 0;
        __syncthreads(); /* and complete */
        if (threadIdx.x == 0 && inside_block)
            place_in_items =
                atomicAdd(&job.told->kept, (unsigned long long)inside_block);
        __syncthreads(); /* there is a place for all */
        int64_t to = (int64_t)place_in_items + at;
#pragma unroll
        for (int m = 0; m < EACH; m++)
            if (is_inside >> m & 1) {
                if (to < job.room)
                    job.items[to] = key_of(x[m], 0);
                to++;
            }
    }
    bool is_first = threadIdx.x % 32 == 0;
    nans = sum_of_warp(nans);
    if (is_first && nans)
        atomicAdd(&job.told->nans, (unsigned long long)nans);
#pragma unroll
    for (int i = 0; i < N; i++) {
        unsigned sums[] = {sum_of_warp(below[i]), sum_of_warp(upto_low[i]),
                           sum_of_warp(below_high[i]),
                           sum_of_warp(upto_high[i])};
        if (!is_first)
            continue;
        atomicAdd(job.told->below + i, (unsigned long long)sums[0]);
        atomicAdd(job.told->upto_low + i, (unsigned long long)sums[1]);
        atomicAdd(job.told->below_high + i, (unsigned long long)sums[2]);
        atomicAdd(job.told->upto_high + i, (unsigned long long)sums[3]);
    }
}

/* What is written of a line: keys that are known, or where among the sorted
 * items they are. */
template <class K> struct answers {
    K key[GPU_MOST_SELECTED];
    int64_t item[GPU_MOST_SELECTED]; /* -1: the key is known */
};

template <class T, class K>
__global__ void answer_kernel(const __grid_constant__ answers<K> a,
                              const K *items, gpu_view to, int64_t line,
                              int first)
{
    int k = threadIdx.x;
    K key = a.item[k] < 0 ? a.key[k] : items[a.item[k]];
    store<T>(to, place(to, line, first + k),
             key == ~(K)0 ? (T)NAN : (T)number_of(key));
}

/* The part of the sample between which places p to last lie. */
static rank_pair bounds_of(int64_t size, int sampled, int64_t p, int64_t last)
{
    double low = ((double)p + 0.5) / (double)size;
    double high = ((double)last + 0.5) / (double)size;
    double beside = DEVIATIONS * sqrt((double)sampled);
    double from = low * sampled - beside * sqrt(low * (1 - low)) - 2;
    double to = high * sampled + beside * sqrt(high * (1 - high)) + 2;
    return {from < 0 ? -1 : (int)from, to >= sampled ? sampled : (int)to};
}

/* Places of a line that one pass finds: the first ones of `count`, which lie
 * in `intervals` intervals; which: of each its interval. */
typedef struct sifting {
    int count, intervals, which[GPU_MOST_SELECTED];
    rank_pairs ranks;
    double share; /* of the elements, inside them all but surely */
} sifting;

static sifting plan_sifting(int64_t size, int sampled, const int64_t *places,
                            int count)
{
    sifting s = {};
    while (s.count < count) {
        rank_pair r =
            bounds_of(size, sampled, places[s.count], places[s.count]);
        rank_pair *last = s.ranks.of + s.intervals - 1;
        if (s.intervals > 0 && r.low <= last->high)
            last->high = r.high > last->high ? r.high : last->high;
        else if (s.intervals < INTERVALS)
            s.ranks.of[s.intervals++] = r;
        else
            break;
        s.which[s.count++] = s.intervals - 1;
    }
    for (int i = 0; i < s.intervals; i++)
        s.share += (double)(s.ranks.of[i].high - s.ranks.of[i].low) / sampled;
    for (int i = s.intervals; i < INTERVALS; i++) /* nothing is inside */
        s.ranks.of[i] = {-1, -1};
    return s;
}

/* Finds the places' answers; 0: one lies beside its interval. */
template <class K>
static int answer(const sifting *s, const tallies<K> *told,
                  const int64_t *places, int spreads_nan, answers<K> *out)
{
    unsigned long long before[INTERVALS + 1] = {}; /* items of each */
    for (int i = 0; i < s->intervals; i++) {
        bool is_one_key = told->low[i] == told->high[i];
        before[i + 1] = before[i];
        if (!is_one_key)
            before[i + 1] += told->below_high[i] - told->upto_low[i];
    }
    for (int p = 0; p < s->count; p++) {
        int i = s->which[p];
        unsigned long long rank = (unsigned long long)places[p];
        out->item[p] = -1;
        if (spreads_nan && told->nans > 0)
            out->key[p] = ~(K)0;
        else if (rank < told->below[i] || rank >= told->upto_high[i])
            return 0;
        else if (rank < told->upto_low[i])
            out->key[p] = told->low[i];
        else if (rank >= told->below_high[i])
            out->key[p] = told->high[i];
        else
            out->item[p] = (int64_t)(before[i] + rank - told->upto_low[i]);
    }
    return 1;
}

/* Scratch memory of a pass over a line, and CUB's for two sorts. */
template <class K> struct long_room {
    K *other_sample, *other_items;
    char *work;
    size_t work_bytes;
};

template <class K>
static gpu_status make_room(cuda_device *d, long_job<K> *job,
                            long_room<K> *room)
{
    size_t items;
    char *data;
    TRY(gpu_cuda_sort_room<K>(d, job->sampled, 0, &room->work_bytes));
    TRY(gpu_cuda_sort_room<K>(d, job->room, 0, &items));
    if (items > room->work_bytes)
        room->work_bytes = items;
    TRY(gpu_cuda_scratch(
        d,
        rounded_room(sizeof *job->told) +
            2 * rounded_room((size_t)job->sampled * sizeof(K)) +
            2 * rounded_room((size_t)job->room * sizeof(K)) + room->work_bytes,
        (void **)&data));
    job->told = take_part<tallies<K>>(&data, 1);
    job->sample = take_part<K>(&data, job->sampled);
    room->other_sample = take_part<K>(&data, job->sampled);
    job->items = take_part<K>(&data, job->room);
    room->other_items = take_part<K>(&data, job->room);
    room->work = data;
    return GPU_OK;
}

template <class T, class K>
static gpu_status sift(cuda_device *d, const long_job<K> *job, const sifting *s)
{
    unsigned blocks = (unsigned)smaller(ceil_div(job->size, PIECE),
                                        (int64_t)d->sms * BLOCKS_PER_SM);
    bounds_kernel<K><<<1, INTERVALS, 0, d->stream>>>(*job, s->ranks);
    LAUNCHED(d);
    auto kernel =
        s->intervals == 1 ? sift_kernel<T, K, 1> : sift_kernel<T, K, INTERVALS>;
    kernel<<<blocks, THREADS, 0, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

/* The first places, as many as one pass finds: *found. GPU_UNSUPPORTED where
 * one was not found, or more was kept than there is room for. */
template <class T, class K>
static gpu_status select_some(cuda_device *d, const select_job *all,
                              int64_t line, int first, int *found)
{
    long_job<K> job = {all->from};
    long_room<K> room;
    tallies<K> told;
    answers<K> out = {};
    job.line.data = (char *)all->from.data +
                    line * all->from.row_stride * (int64_t)sizeof(T);
    job.line.rows = 1;
    job.size = job.line.cols;
    job.sampled =
        (int)smaller(larger(job.size / 256, LEAST_SAMPLED), MOST_SAMPLED);
    sifting s = plan_sifting(job.size, job.sampled, all->places + first,
                             all->count - first);
    job.room =
        smaller(job.size, (int64_t)(2 * s.share * (double)job.size) + PIECE);
    job.is_wide = job.line.col_stride == 1 && is_aligned(job.line.data);
    flatten(&job.line);
    TRY(make_room(d, &job, &room));
    sample_kernel<T, K>
        <<<(unsigned)ceil_div(job.sampled, THREADS), THREADS, 0, d->stream>>>(
            job);
    LAUNCHED(d);
    sort_keys<K> sample = {job.sampled, job.sample, room.other_sample};
    TRY(gpu_cuda_sort_keys(d, &sample, 8 * (int)sizeof(K), room.work,
                           room.work_bytes));
    job.sample = sample.keys;
    TRY((sift<T, K>(d, &job, &s)));
    TRY(gpu_cuda_download(d, &told, job.told, sizeof told));
    if (told.kept > (unsigned long long)job.room ||
        !answer(&s, &told, all->places + first, all->spreads_nan, &out))
        return GPU_UNSUPPORTED;
    sort_keys<K> items = {(int64_t)told.kept, job.items, room.other_items};
    if (items.size > 0)
        TRY(gpu_cuda_sort_keys(d, &items, 8 * (int)sizeof(K), room.work,
                               room.work_bytes));
    answer_kernel<T, K>
        <<<1, s.count, 0, d->stream>>>(out, items.keys, all->to, line, first);
    LAUNCHED(d);
    *found = s.count;
    return GPU_OK;
}

template <class T, class K>
static gpu_status select_long(cuda_device *d, const select_job *job)
{
    for (int64_t line = 0; line < job->from.rows; line++)
        for (int first = 0, found; first < job->count; first += found)
            TRY((select_some<T, K>(d, job, line, first, &found)));
    return GPU_OK;
}

/* --- all of it --------------------------------------------------------------
 */

static bool is_long(const select_job *job)
{
    return job->from.rows <= FEW_LINES && job->from.cols >= LONG_LINE;
}

template <class T, class K>
static gpu_status select_any(cuda_device *d, select_job *job)
{
    return is_long(job) ? select_long<T, K>(d, job)
                        : select_lines<T, K>(d, job, false);
}

/* All elements as one line, where that has even steps. */
static int make_line(gpu_view *v)
{
    flatten(v);
    if (v->cols > 1)
        return 0;
    swap_axes(v);
    return 1;
}

/* Lines whose neighbours lie side by side are turned first, by a copy. */
static bool lies_across(const gpu_view *lines)
{
    return lines->rows > 1 &&
           stride_size(lines->col_stride) > stride_size(lines->row_stride);
}

static bool is_countable(const gpu_view *v) /* in 32 bits */
{
    return v->rows * v->cols < UINT32_MAX;
}

gpu_status gpu_cuda_select(void *device, int axis, int spreads_nan,
                           const gpu_view *from, const int64_t *places,
                           int64_t count, const gpu_view *to)
{
    ENTER(d, device);
    select_job job = {*from, *to};
    void *copy = NULL;
    gpu_status status = GPU_OK;
    job.count = (int)count;
    job.spreads_nan = spreads_nan;
    for (int k = 0; k < job.count; k++)
        job.places[k] = places[k];
    if (!is_countable(from))
        return GPU_UNSUPPORTED;
    if (axis == 1)
        swap_axes(&job.from);
    if (axis != 2)
        swap_axes(&job.to);
    bool is_one = axis == 0 && make_line(&job.from);
    bool is_turned = axis != 0 && lies_across(&job.from);
    if (is_turned || (axis == 0 && !is_one))
        status = gpu_cuda_copy_view(d, "select", &job.from, &copy);
    if (axis == 0 && !is_one && status == GPU_OK)
        make_line(&job.from);
    if (status == GPU_OK)
        status = from->dtype == GPU_F64 ? select_any<double, uint64_t>(d, &job)
                                        : select_any<float, uint32_t>(d, &job);
    gpu_cuda_free(d, copy, gpu_cuda_copy_bytes(from));
    return status;
}

gpu_status gpu_cuda_first(void *device, int axis, int descending,
                          const gpu_view *from, const gpu_view *to,
                          const gpu_view *order)
{
    ENTER(d, device);
    select_job job = {*from};
    void *copy = NULL;
    gpu_status status = GPU_OK;
    if (to)
        job.to = *to;
    if (order)
        job.order = *order;
    if (axis == 1) {
        swap_axes(&job.from);
        swap_axes(&job.to);
        swap_axes(&job.order);
    }
    int64_t count = to ? job.to.cols : job.order.cols;
    if (!is_countable(from) || count > MOST_THREADS || is_long(&job))
        return GPU_UNSUPPORTED;
    job.count = (int)count;
    job.descending = descending;
    if (lies_across(&job.from))
        status = gpu_cuda_copy_view(d, "topk", &job.from, &copy);
    if (status == GPU_OK)
        status = from->dtype == GPU_F64
                     ? select_lines<double, uint64_t>(d, &job, true)
                     : select_lines<float, uint32_t>(d, &job, true);
    gpu_cuda_free(d, copy, gpu_cuda_copy_bytes(from));
    return status;
}
