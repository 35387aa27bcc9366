/* The text of vector_sort.c for one type, KEY. The file including it says how
 * LANES of them in a register are compared and moved. None is NaN.
 *
 * Places in a block of ROWS registers are named column by column: what is the
 * r-th register's lane c has rank c ROWS + r. So most comparisons of a network
 * are of whole registers, and only where columns are joined do lanes move. */

/* MIN and MAX give the second where both are equal, as zeros of two signs are:
 * of a pair the operands of one of them change places, so that none is lost. */
#define ORDER(a, b)             \
    do {                        \
        __m256i t_ = MIN(a, b); \
        (b) = MAX(b, a);        \
        (a) = t_;               \
    } while (0)

/* Columns that rise and then fall, or the other way round, rise. */
INLINE void TYPED(merge_columns)(__m256i *v, int rows)
{
#pragma GCC unroll 4
    for (int apart = rows / 2; apart > 0; apart /= 2)
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            if ((i & apart) == 0)
                ORDER(v[i], v[i + apart]);
}

/* Columns of 4, 8 or 16 registers. Source: Knuth, The Art of Computer
 * Programming 3, 5.3.4: the shortest networks of 4 and of 8. */
INLINE void TYPED(sort_columns)(__m256i *v, int rows)
{
    if (rows == 4) {
        ORDER(v[0], v[2]);
        ORDER(v[1], v[3]);
        ORDER(v[0], v[1]);
        ORDER(v[2], v[3]);
        ORDER(v[1], v[2]);
        return;
    }
#pragma GCC unroll 2
    for (__m256i *w = v; w < v + rows; w += 8) {
        ORDER(w[0], w[2]);
        ORDER(w[1], w[3]);
        ORDER(w[4], w[6]);
        ORDER(w[5], w[7]);
        ORDER(w[0], w[4]);
        ORDER(w[1], w[5]);
        ORDER(w[2], w[6]);
        ORDER(w[3], w[7]);
        ORDER(w[0], w[1]);
        ORDER(w[2], w[3]);
        ORDER(w[4], w[5]);
        ORDER(w[6], w[7]);
        ORDER(w[2], w[4]);
        ORDER(w[3], w[5]);
        ORDER(w[1], w[4]);
        ORDER(w[3], w[6]);
        ORDER(w[1], w[2]);
        ORDER(w[3], w[4]);
        ORDER(w[5], w[6]);
    }
    if (rows == 8)
        return;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        ORDER(v[i], v[15 - i]);
    TYPED(merge_columns)(v, 8);
    TYPED(merge_columns)(v + 8, 8);
}

/* What two groups of columns hold, the second read backwards, is split into the
 * smaller and the larger half. mirror: a register's lanes backwards within a
 * group of both; upper: the lanes of the second. */
#define SPLIT_GROUPS(mirror, upper)                                \
    do {                                                           \
        _Pragma("GCC unroll 8") for (int i = 0; i < rows / 2; i++) \
        {                                                          \
            __m256i a = v[i], b = mirror(v[rows - 1 - i]);         \
            __m256i low = MIN(a, b), high = MAX(b, a);             \
            v[i] = CHOOSE(low, high, upper);                       \
            v[rows - 1 - i] = mirror(CHOOSE(high, low, upper));    \
        }                                                          \
    } while (0)

/* The same of columns that rise and fall. */
#define SPLIT_LANES(swap, upper)                                \
    do {                                                        \
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++) \
        {                                                       \
            __m256i a = v[i], b = swap(a);                      \
            v[i] = CHOOSE(MIN(a, b), MAX(a, b), upper);         \
        }                                                       \
    } while (0)

INLINE void TYPED(sort_registers)(__m256i *v, int rows)
{
    TYPED(sort_columns)(v, rows);
    SPLIT_GROUPS(MIRROR_2, UPPER_2);
    TYPED(merge_columns)(v, rows);
#if LANES == 8
    SPLIT_GROUPS(MIRROR_4, UPPER_4);
    SPLIT_LANES(MIRROR_2, UPPER_2);
    TYPED(merge_columns)(v, rows);
#endif
    SPLIT_GROUPS(MIRROR_ALL, UPPER_ALL);
#if LANES == 8
    SPLIT_LANES(SWAP_4, UPPER_4);
#endif
    SPLIT_LANES(MIRROR_2, UPPER_2);
    TYPED(merge_columns)(v, rows);
}

/* Each time what lies half of the registers apart comes side by side, in both
 * halves of a register: at the end a half has its ranks in order. */
INLINE void TYPED(turn_block)(__m256i *v, int rows)
{
    __m256i out[16];
#pragma GCC unroll 4
    for (int step = 1; step < rows; step *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < rows / 2; i++) {
            out[2 * i] = ZIP_LOW(v[i], v[i + rows / 2]);
            out[2 * i + 1] = ZIP_HIGH(v[i], v[i + rows / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            v[i] = out[i];
    }
}

/* Fewer keys than a register has, the rest the last ones. */
INLINE __m256i TYPED(load_some)(const KEY *from, size_t n)
{
    __m256i is_there = FIRST((int)n);
    return _mm256_blendv_epi8(FILLED((KEY)INFINITY),
                              MASKED_LOAD(from, is_there), is_there);
}

/* n keys, 1 .. LANES rows, go to `to`, which may be where they are. */
INLINE void TYPED(sort_block)(const KEY *from, KEY *to, size_t n, int rows)
{
    __m256i v[16];
    KEY room[BLOCK(16)];
    KEY *out = n == BLOCK((size_t)rows) ? to : room;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        size_t at = (size_t)i * LANES;
        if (at + LANES <= n) {
            v[i] = LOAD(from + at);
            continue;
        }
        v[i] = FILLED((KEY)INFINITY);
        if (at < n)
            v[i] = TYPED(load_some)(from + at, n - at);
    }
    TYPED(sort_registers)(v, rows);
    TYPED(turn_block)(v, rows);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        __m128i *low = (__m128i *)(out + i * (LANES / 2));
        __m128i *high = (__m128i *)(out + (rows + i) * (LANES / 2));
        _mm_storeu_si128(low, _mm256_castsi256_si128(v[i]));
        _mm_storeu_si128(high, _mm256_extracti128_si256(v[i], 1));
    }
    if (out == room)
        memcpy(to, room, n * sizeof(KEY));
}

static void TYPED(sort_few)(const KEY *from, KEY *to, size_t n)
{
    if (n <= BLOCK(4))
        TYPED(sort_block)(from, to, n, 4);
    else if (n <= BLOCK(8))
        TYPED(sort_block)(from, to, n, 8);
    else
        TYPED(sort_block)(from, to, n, 16);
}

/* The lanes of one register in order. */
INLINE __m256i TYPED(sort_lanes)(__m256i x)
{
    __m256i v[1] = {x};
    int rows = 1;
    SPLIT_LANES(MIRROR_2, UPPER_2);
#if LANES == 8
    SPLIT_LANES(MIRROR_4, UPPER_4);
    SPLIT_LANES(MIRROR_2, UPPER_2);
#endif
    SPLIT_LANES(MIRROR_ALL, UPPER_ALL);
#if LANES == 8
    SPLIT_LANES(SWAP_4, UPPER_4);
#endif
    SPLIT_LANES(MIRROR_2, UPPER_2);
    return v[0];
}

/* About the middle of n keys, one of them: the middle of three registers, lane
 * by lane, and of these; of many keys the middle one of a larger sample. */
static KEY TYPED(choose_pivot)(const KEY *x, size_t n)
{
    KEY sample[BLOCK(8)];
    if (n <= MANY) {
        __m256i a = LOAD(x + n / 8);
        __m256i b = LOAD(x + n / 2);
        __m256i c = LOAD(x + n / 8 * 7 - LANES);
        ORDER(a, b);
        a = TYPED(sort_lanes)(MAX(a, MIN(b, c)));
        return MIDDLE(a);
    }
    for (size_t i = 0, step = n / BLOCK(8); i < BLOCK(8); i++)
        sample[i] = x[i * step + (i * 5 + 2) % 8 * step / 8];
    TYPED(sort_few)(sample, sample, BLOCK(8));
    return sample[BLOCK(4)];
}

/* Keys that are yet to be read lie between `left` and `right`; those in order
 * are below `low` and from `high` on. */
typedef struct TYPED(gaps) {
    KEY *low, *left, *right, *high;
} TYPED(gaps);

/* So many registers from where less is free, of which there then is as much as
 * is read on both sides. */
INLINE const KEY *TYPED(take)(TYPED(gaps) * g, int count)
{
    const KEY *from = g->left;
    if (g->high - g->right < g->left - g->low) {
        g->right -= count * LANES;
        return g->right;
    }
    g->left += count * LANES;
    return from;
}

/* A register is written whole on both sides, and counts where its keys belong.
 */
INLINE void TYPED(put)(TYPED(gaps) * g, __m256i v, __m256i pivot,
                       int with_equal)
{
    unsigned mask = with_equal ? MASK(ABOVE(pivot, v)) ^ ((1 << LANES) - 1)
                               : MASK(ABOVE(v, pivot));
    int above = __builtin_popcount(mask);
    v = _mm256_permutevar8x32_epi32(v, PLACES(mask));
    _mm256_storeu_si256((__m256i *)g->low, v);
    _mm256_storeu_si256((__m256i *)(g->high - LANES), v);
    g->low += LANES - above;
    g->high -= above;
}

/* Moves what is above the pivot, with_equal: or equals it, behind the rest;
 * returns how many the others are. n: at least AT_A_TIME registers twice. */
INLINE size_t TYPED(partition)(KEY *x, size_t n, KEY pivot, int with_equal)
{
    __m256i first[AT_A_TIME], last[AT_A_TIME], p = FILLED(pivot);
    KEY *begin = x, *end = x + n;
    for (; (end - begin) % LANES != 0;) {
        KEY a = *begin, b = end[-1];
        int goes = with_equal ? a >= pivot : a > pivot;
        *begin = goes ? b : a;
        end[-1] = goes ? a : b;
        begin += !goes;
        end -= goes;
    }
    TYPED(gaps)
    g = {begin, begin + AT_A_TIME * LANES, end - AT_A_TIME * LANES, end};
    for (int i = 0; i < AT_A_TIME; i++) {
        first[i] = LOAD(begin + i * LANES);
        last[i] = LOAD(g.right + i * LANES);
    }
    while (g.right - g.left >= AT_A_TIME * LANES) {
        const KEY *from = TYPED(take)(&g, AT_A_TIME);
        __m256i v[AT_A_TIME];
        for (int i = 0; i < AT_A_TIME; i++)
            v[i] = LOAD(from + i * LANES);
        for (int i = 0; i < AT_A_TIME; i++)
            TYPED(put)(&g, v[i], p, with_equal);
    }
    while (g.left < g.right) {
        __m256i v = LOAD(TYPED(take)(&g, 1));
        TYPED(put)(&g, v, p, with_equal);
    }
    for (int i = 0; i < AT_A_TIME; i++)
        TYPED(put)(&g, first[i], p, with_equal);
    for (int i = 0; i < AT_A_TIME; i++)
        TYPED(put)(&g, last[i], p, with_equal);
    return (size_t)(g.low - x);
}

static size_t TYPED(part_above)(KEY *x, size_t n, KEY pivot)
{
    return TYPED(partition)(x, n, pivot, 0);
}

static size_t TYPED(part_from)(KEY *x, size_t n, KEY pivot)
{
    return TYPED(partition)(x, n, pivot, 1);
}

/* x[i] goes down to where nothing below it is larger. */
INLINE void TYPED(sift_down)(KEY *x, size_t i, size_t n)
{
    KEY key = x[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && x[child + 1] > x[child];
        if (x[child] <= key)
            break;
        x[i] = x[child];
    }
    x[i] = key;
}

static void TYPED(heap_sort)(KEY *x, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        TYPED(sift_down)(x, i, n);
    while (n-- > 1) {
        KEY last = x[n];
        x[n] = x[0];
        x[0] = last;
        TYPED(sift_down)(x, 0, n);
    }
}

/* Parted until so few are left that a network sorts them; or `depth` times, so
 * that no data takes long. */
static void TYPED(sort_parts)(KEY *x, size_t n, int depth)
{
    while (n > BLOCK(16) && depth-- > 0) {
        KEY pivot = TYPED(choose_pivot)(x, n);
        size_t low = TYPED(part_above)(x, n, pivot);
        if (low < n)
            TYPED(sort_parts)(x + low, n - low, depth);
        else /* the pivot is the largest: what equals it is in order */
            low = TYPED(part_from)(x, n, pivot);
        n = low;
    }
    if (n > BLOCK(16))
        TYPED(heap_sort)(x, n);
    else if (n > 1)
        TYPED(sort_few)(x, x, n);
}

void TYPED(gpu_cpu_sort_numbers)(void *x, size_t n)
{
    TYPED(sort_parts)(x, n, most_partitions);
}

/* pivot_bits: see gpu_cpu_vector. */
size_t TYPED(gpu_cpu_split_numbers)(void *x, size_t n, uint64_t pivot_bits)
{
    KEY pivot = TYPED(choose_pivot)(x, n);
    BITS bits;
    memcpy(&bits, &pivot, sizeof bits);
    bits |= (BITS)pivot_bits;
    memcpy(&pivot, &bits, sizeof pivot);
    size_t low = TYPED(part_above)(x, n, pivot);
    return low < n ? low : TYPED(part_from)(x, n, pivot);
}

#undef KEY
#undef BITS
#undef LANES
#undef TYPED
#undef FILLED
#undef MIN
#undef MAX
#undef ABOVE
#undef MASK
#undef PLACES
#undef ZIP_LOW
#undef ZIP_HIGH
#undef MIRROR_2
#undef MIRROR_4
#undef MIRROR_ALL
#undef SWAP_4
#undef MIDDLE
#undef FIRST
#undef MASKED_LOAD
#undef UPPER_2
#undef UPPER_4
#undef UPPER_ALL
