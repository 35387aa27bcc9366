/* Choosing by rank for one type T, which select.c has for each. No element that
 * comes to these functions is NaN. */

/* How many of n elements are below `low`, and how many at most `high`. */
VECTORS static void TYPED(count_beside)(const T *x, int64_t n, T low, T high,
                                        int64_t *below, int64_t *upto)
{
    *below = *upto = 0;
    for (int64_t first = 0; first < n; first += PIECE) {
        int64_t many = gpu_cpu_smaller(n - first, PIECE);
        COUNT b = 0, u = 0;
        for (int64_t i = 0; i < many; i++) {
            b += x[first + i] < low;
            u += x[first + i] <= high;
        }
        *below += b;
        *upto += u;
    }
}

VECTORS static int64_t TYPED(count_nan)(const T *x, int64_t n)
{
    int64_t count = 0;
    for (int64_t first = 0; first < n; first += PIECE) {
        int64_t many = gpu_cpu_smaller(n - first, PIECE);
        COUNT c = 0;
        for (int64_t i = 0; i < many; i++)
            c += x[first + i] != x[first + i];
        count += c;
    }
    return count;
}

VECTORS static T TYPED(next_above)(const T *x, int64_t n, T than)
{
    T next = (T)INFINITY;
    for (int64_t i = 0; i < n; i++) {
        T candidate = x[i] > than ? x[i] : (T)INFINITY;
        next = candidate < next ? candidate : next;
    }
    return next;
}

VECTORS static T TYPED(next_below)(const T *x, int64_t n, T than)
{
    T next = -(T)INFINITY;
    for (int64_t i = 0; i < n; i++) {
        T candidate = x[i] < than ? x[i] : -(T)INFINITY;
        next = candidate > next ? candidate : next;
    }
    return next;
}

/* Elements from low to high, both included, go to `to`, which may be x; how
 * many there are. No branch, as none could be foreseen. */
static int64_t TYPED(keep)(const T *x, int64_t n, T low, T high, T *to)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        T value = x[i];
        to[kept] = value;
        kept += (value >= low) & (value <= high);
    }
    return kept;
}

static void TYPED(pick_of_few)(const T *x, int64_t n, int64_t rank, int pair,
                               T *out)
{
    int64_t below = 0, upto = 0, i = -1;
    do
        TYPED(count_beside)(x, n, x[i + 1], x[i + 1], &below, &upto);
    while (++i < n && (rank < below || rank >= upto));
    out[0] = out[1] = x[i];
    if (pair && rank + 1 >= upto)
        out[1] = TYPED(next_above)(x, n, x[i]);
}

/* out: the elements that stand at `rank` of x when it is sorted and, of a pair,
 * at rank + 1 < n. room is for n elements, and may be x. Each round keeps what
 * lies between two elements of a sample, or on one side of them, which is a
 * small part as a rule, and always less than there was. */
static void TYPED(pick)(const T *x, int64_t n, int64_t rank, int pair, T *room,
                        T *out)
{
    T sample[MOST_SAMPLED], spare[MOST_SAMPLED], low[2], high[2];
    void (*sort)(void *, size_t) = gpu_cpu_vectors->sort[TYPE == GPU_F64];
    while (n > (sort ? SORTED : FEW)) {
        int64_t below, upto, last = rank + pair;
        sampling s = begin_sampling(n, rank, pair);
        for (int64_t i = 0; i < s.size; i++)
            sample[i] = x[next_place(&s)];
        low[0] = -(T)INFINITY;
        high[0] = (T)INFINITY;
        if (s.low >= 0)
            TYPED(pick)(sample, s.size, s.low, 0, spare, low);
        if (s.high < s.size)
            TYPED(pick)(sample, s.size, s.high, 0, spare, high);
        TYPED(count_beside)(x, n, low[0], high[0], &below, &upto);
        if (below == 0 && upto == n) { /* nothing less; but one element is */
            low[0] = high[0] = sample[0];
            TYPED(count_beside)(x, n, low[0], high[0], &below, &upto);
        }
        if (rank < below && last >= below) {
            out[0] = TYPED(next_below)(x, n, low[0]);
            out[1] = low[0];
            return;
        }
        if (rank < upto && last >= upto) {
            out[0] = high[0];
            out[1] = TYPED(next_above)(x, n, high[0]);
            return;
        }
        if (rank >= below && last < upto && low[0] == high[0]) {
            out[0] = out[1] = low[0];
            return;
        }
        if (rank < below) {
            T most = TYPED(neighbour)(low[0], -(T)INFINITY);
            n = TYPED(keep)(x, n, -(T)INFINITY, most, room);
        } else if (rank >= upto) {
            T least = TYPED(neighbour)(high[0], (T)INFINITY);
            n = TYPED(keep)(x, n, least, (T)INFINITY, room);
            rank -= upto;
        } else {
            n = TYPED(keep)(x, n, low[0], high[0], room);
            rank -= below;
        }
        x = room;
    }
    if (!sort) {
        TYPED(pick_of_few)(x, n, rank, pair, out);
        return;
    }
    if (x != room)
        memcpy(room, x, (size_t)n * sizeof *x);
    sort(room, (size_t)n);
    out[0] = room[rank];
    out[1] = room[rank + pair];
}

/* The wanted elements of a line of n, NaN among them, to `to`, as f64; there is
 * room for n. */
static void TYPED(pick_line)(const selection *s, const T *x, int64_t n, T *room,
                             double *to)
{
    int64_t count = n - TYPED(count_nan)(x, n);
    T out[2];
    if (count < n && !s->spreads_nan) {
        TYPED(keep)(x, n, -(T)INFINITY, (T)INFINITY, room);
        x = room;
    }
    for (int64_t i = 0; i < s->count; i += 1 + is_pair(s, i, count)) {
        int pair = is_pair(s, i, count);
        to[i] = to[i + pair] = (double)NAN;
        if (s->places[i] >= count || (count < n && s->spreads_nan))
            continue;
        T *own = x == room ? room + count : room;
        TYPED(pick)(x, count, s->places[i], pair, own, out);
        to[i] = (double)out[0];
        if (pair)
            to[i + 1] = (double)out[1];
    }
}

/* --- a line that fills no cache ------------------------------------------- */

/* A piece of it: what lies between the bounds goes on, the rest is counted. */
static void TYPED(sift)(long_line *l, int64_t first, int64_t n)
{
    T values[PIECE], kept[PIECE];
    const T *x = values;
    int64_t below, upto;
    if (l->is_plain)
        x = (const T *)l->v.data + first;
    else
        gpu_cpu_load(&l->v, first, n, TYPE, values);
    T low = (T)l->low, high = (T)l->high;
    TYPED(count_beside)(x, n, low, high, &below, &upto);
    int64_t nans = TYPED(count_nan)(x, n);
    atomic_fetch_add(&l->below, below);
    atomic_fetch_add(&l->nans, nans);
    if (upto == below)
        return;
    TYPED(keep)(x, n, low, high, kept);
    int64_t at = atomic_fetch_add(&l->inside, upto - below);
    if (at + upto - below <= l->room)
        memcpy((T *)l->items + at, kept, (size_t)(upto - below) * sizeof(T));
}

/* Bounds from a sample that is more than one of pick's. */
static void TYPED(bound)(long_line *l, int64_t rank, int pair)
{
    T sample[LONG_SAMPLE], spare[LONG_SAMPLE], out[2];
    sampling s = {.n = l->n, .size = LONG_SAMPLE, .place = FIRST_PLACE};
    int64_t size = 0;
    for (int64_t i = 0; i < s.size; i++) {
        T value;
        gpu_cpu_load(&l->v, next_place(&s), 1, TYPE, &value);
        sample[size] = value;
        size += value == value;
    }
    l->low = -(double)INFINITY;
    l->high = (double)INFINITY;
    s.size = size;
    if (size == 0)
        return;
    /* of the elements that are numbers, as many as the sample says */
    int64_t numbers = (int64_t)((double)l->n * (double)size / LONG_SAMPLE);
    place_bounds(&s, numbers > rank ? numbers : rank + 1, rank, pair, 4);
    if (s.low >= 0) {
        TYPED(pick)(sample, size, s.low, 0, spare, out);
        l->low = (double)out[0];
    }
    if (s.high < size) {
        TYPED(pick)(sample, size, s.high, 0, spare, out);
        l->high = (double)out[0];
    }
}

/* --- first elements ------------------------------------------------------- */

/* Does any of so many elements come before the last one that is kept? */
VECTORS static int TYPED(any_before)(const T *x, T last, int descending)
{
    int any = 0;
    for (int i = 0; i < BESIDE; i++)
        any |= descending ? x[i] > last : x[i] < last;
    return any;
}

/* The first k numbers of a line in their order, of equal ones those that stand
 * first; how many there are. There is room for one more. */
static int64_t TYPED(first_of_line)(const T *x, int64_t n, int64_t k,
                                    int descending, first_item *item)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        if (kept == k && i % BESIDE == 0 && i + BESIDE <= n) {
            double last = descending ? -item[k - 1].key : item[k - 1].key;
            if (!TYPED(any_before)(x + i, (T)last, descending)) {
                i += BESIDE - 1;
                continue;
            }
        }
        double key = descending ? -(double)x[i] : (double)x[i];
        if (x[i] != x[i] || (kept == k && !(key < item[k - 1].key)))
            continue;
        int64_t j = kept < k ? kept++ : k - 1;
        for (; j > 0 && key < item[j - 1].key; j--)
            item[j] = item[j - 1];
        item[j] = (first_item){key, i};
    }
    return kept;
}

/* What reaches the bound of a piece of a long line. */
static void TYPED(gather)(first_line *g, int64_t first, int64_t n)
{
    T values[PIECE];
    int32_t place[PIECE];
    const T *x = values;
    int64_t kept = 0;
    if (g->l->is_plain)
        x = (const T *)g->l->v.data + first;
    else
        gpu_cpu_load(&g->l->v, first, n, TYPE, values);
    T bound = (T)g->bound;
    for (int64_t i = 0; i < n; i++) {
        place[kept] = (int32_t)i;
        kept += g->descending ? x[i] >= bound : x[i] <= bound;
    }
    int64_t to = atomic_fetch_add(&g->found, kept);
    for (int64_t i = 0; i < kept && to < g->room; i++, to++) {
        double value = (double)x[place[i]];
        g->item[to] =
            (first_item){g->descending ? -value : value, first + place[i]};
    }
}

#undef T
#undef COUNT
#undef TYPE
#undef TYPED
