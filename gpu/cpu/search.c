/* Searching in a sorted vector: where each of many numbers would go.
 *
 * It lies near where cells of one width say; where these are filled too
 * unevenly, and most of what is sought is there, a table of bits has its place.
 * What limits all of it is that places are far apart: several are on their way
 * at a time. */
#include <math.h>
#include <string.h>
#include "cpu.h"

enum { PIECE = 1024 }; /* elements a thread holds at a time */

enum { TOGETHER = 16 }; /* searches that wait for memory side by side */

/* Cells of one width between the least and the largest number, which tell
 * where among the sorted ones a value is: as the cell of a number never falls
 * while numbers rise, those of lower cells are smaller, and those of higher
 * ones larger. `widest` is how many numbers the fullest cell has. */
typedef struct grid {
    int64_t cells, widest;
    double low, scale;
    int32_t *first; /* of each cell the place of its first number */
} grid;

/* The places of the sorted numbers by what their bits say, each in its slot or,
 * where that was taken, in one of those behind it, less than `reach` away; of
 * equal numbers the first alone. */
typedef struct table {
    int64_t slots; /* a power of two, and `reach` more; 0: there is no table */
    int shift, reach;
    int32_t *place; /* -1: none */
} table;

typedef struct searching {
    const void *sorted; /* without gaps, and without what is NaN: */
    int64_t numbers, length;
    gpu_dtype type;
    int is_after;
    const gpu_view *values, *to;
    grid g; /* no cells: it is not worth one */
    table t;
} searching;

INLINE int64_t cell_of(const grid *g, double x)
{
    double at = (x - g->low) * g->scale, last = (double)(g->cells - 1);
    at = at > 0 ? at : 0; /* NaN, too */
    return (int64_t)(at < last ? at : last);
}

/* From where on `widest` numbers are looked at for x. */
INLINE int64_t first_near(const searching *s, double x)
{
    if (s->g.cells == 0)
        return 0;
    int64_t first = s->g.first[cell_of(&s->g, x)];
    return gpu_cpu_smaller(first, s->numbers - s->g.widest);
}

/* Is a before x, where neither is NaN? */
#define IS_BEFORE(a, x) (is_after ? (a) <= (x) : (a) < (x))

/* Without a branch: the step of all searches is one. */
#define SEARCH(T)                                                           \
    INLINE void search_##T(const searching *s, const double *x, int64_t n,  \
                           double *to, int is_after)                        \
    {                                                                       \
        const T *sorted = s->sorted;                                        \
        for (int64_t i = 0; i < n; i += TOGETHER) {                         \
            int64_t low[TOGETHER] = {0}, length = s->g.widest;              \
            int64_t many = gpu_cpu_smaller(n - i, TOGETHER);                \
            for (int64_t k = 0; k < many; k++)                              \
                low[k] = first_near(s, x[i + k]);                           \
            for (; length > 1; length -= length / 2)                        \
                for (int64_t k = 0; k < many; k++) {                        \
                    int64_t next = low[k] + length / 2;                     \
                    int is_right =                                          \
                        IS_BEFORE((double)sorted[next - 1], x[i + k]);      \
                    low[k] = is_right ? next : low[k];                      \
                }                                                           \
            for (int64_t k = 0; k < many; k++) {                            \
                int64_t found =                                             \
                    low[k] + (length > 0 &&                                 \
                              IS_BEFORE((double)sorted[low[k]], x[i + k])); \
                if (x[i + k] != x[i + k])                                   \
                    found = is_after ? s->length : s->numbers;              \
                to[i + k] = (double)(found + 1);                            \
            }                                                               \
        }                                                                   \
    }
SEARCH(float)
SEARCH(double)
#undef SEARCH

/* --- looking up ------------------------------------------------------------
 * By multiplicative hashing with linear probing. Source: Knuth, The Art of
 * Computer Programming 3, 6.4. */

enum { ABREAST = 64 }; /* numbers that are looked up side by side */

INLINE int64_t slot_of(const table *t, double x)
{
    uint64_t bits;
    x += 0; /* -0 is 0 */
    memcpy(&bits, &x, sizeof bits);
    bits ^= bits >> 32;
    return (int64_t)(bits * 0x9e3779b97f4a7c15 >> t->shift);
}

/* Places in `to` of those of n numbers that are among the sorted ones; which
 * others there are, NaN among them, in `missed`. Returns how many these are. */
#define LOOK_UP(T)                                                             \
    INLINE int64_t look_up_some_##T(const table *t, const T *sorted,           \
                                    const double *x, int n, double *to,        \
                                    int32_t *missed)                           \
    {                                                                          \
        int64_t slot[ABREAST], misses = 0;                                     \
        int32_t place[ABREAST];                                                \
        for (int k = 0; k < n; k++) {                                          \
            slot[k] = slot_of(t, x[k]);                                        \
            __builtin_prefetch(&t->place[slot[k]]);                            \
        }                                                                      \
        for (int k = 0; k < n; k++) {                                          \
            place[k] = t->place[slot[k]];                                      \
            __builtin_prefetch(&sorted[place[k] < 0 ? 0 : place[k]]);          \
        }                                                                      \
        for (int k = 0; k < n; k++) {                                          \
            int32_t at = place[k];                                             \
            int64_t end = slot[k] + t->reach;                                  \
            for (int64_t i = slot[k]; at >= 0 && (double)sorted[at] != x[k];)  \
                at = ++i < end ? t->place[i] : -1;                             \
            to[k] = (double)(at + 1);                                          \
            missed[misses] = k;                                                \
            misses += at < 0;                                                  \
        }                                                                      \
        return misses;                                                         \
    }                                                                          \
    static int64_t look_up_##T(const searching *s, const double *x, int64_t n, \
                               double *to, int32_t *missed)                    \
    {                                                                          \
        int64_t misses = 0;                                                    \
        for (int64_t i = 0; i < n; i += ABREAST) {                             \
            int many = (int)gpu_cpu_smaller(n - i, ABREAST);                   \
            int32_t own[ABREAST];                                              \
            int64_t count =                                                    \
                look_up_some_##T(&s->t, s->sorted, x + i, many, to + i, own);  \
            for (int64_t k = 0; k < count; k++)                                \
                missed[misses++] = (int32_t)i + own[k];                        \
        }                                                                      \
        return misses;                                                         \
    }
LOOK_UP(float)
LOOK_UP(double)
#undef LOOK_UP

/* Where n elements of f64 from the first-th on lie side by side, if they do;
 * else NULL. */
static double *plain_part(const gpu_view *v, int64_t first)
{
    gpu_view flat = gpu_cpu_flat(*v);
    int is_plain = flat.rows == 1 && flat.dtype == GPU_F64 &&
                   (flat.col_stride == 1 || flat.cols == 1);
    return is_plain ? (double *)flat.data + first : NULL;
}

/* Up to PIECE numbers, by what there is to find them with. */
static void search_piece(const searching *s, const double *x, int64_t n,
                         double *to)
{
    if (s->type == GPU_F64 && s->is_after)
        search_double(s, x, n, to, 1);
    else if (s->type == GPU_F64)
        search_double(s, x, n, to, 0);
    else if (s->is_after)
        search_float(s, x, n, to, 1);
    else
        search_float(s, x, n, to, 0);
}

/* The same, most of them by the table. */
static void look_up_piece(const searching *s, const double *x, int64_t n,
                          double *to)
{
    int32_t missed[PIECE];
    double rest[PIECE], found[PIECE];
    int64_t misses = s->type == GPU_F64 ? look_up_double(s, x, n, to, missed)
                                        : look_up_float(s, x, n, to, missed);
    for (int64_t i = 0; i < misses; i++)
        rest[i] = x[missed[i]];
    search_piece(s, rest, misses, found);
    for (int64_t i = 0; i < misses; i++)
        to[missed[i]] = found[i];
}

static gpu_status search_range(void *context, int64_t first, int64_t last)
{
    const searching *s = context;
    double room[PIECE], found[PIECE];
    for (int64_t n; first < last; first += n) {
        double *x = plain_part(s->values, first);
        double *place = plain_part(s->to, first), *to = place ? place : found;
        n = gpu_cpu_smaller(last - first, PIECE);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (!x)
            gpu_cpu_load(s->values, first, n, GPU_F64, x = room);
        if (s->t.slots > 0)
            look_up_piece(s, x, n, to);
        else
            search_piece(s, x, n, to);
        if (!place)
            gpu_cpu_store(s->to, first, n, GPU_F64, found);
    }
    return GPU_OK;
}

static double element(const void *data, gpu_dtype t, int64_t i)
{
    return t == GPU_F64 ? ((const double *)data)[i]
                        : (double)((const float *)data)[i];
}

/* How many elements are not NaN, which stands last. */
static int64_t count_numbers(const void *data, gpu_dtype t, int64_t n)
{
    int64_t low = 0;
    while (low < n) {
        int64_t middle = low + (n - low) / 2;
        if (isnan(element(data, t, middle)))
            n = middle;
        else
            low = middle + 1;
    }
    return low;
}

enum {
    LEAST_SEARCHED = 64, /* numbers that are worth a grid */
    CELLS_A_NUMBER = 4,
    MOST_CELLS = 1 << 20,
    WORTH = 4 /* a grid saves so many of all steps, that is, of 2^WORTH numbers
               * it leaves one */
};

/* The grid of what is searched so often; none where one cell has many numbers,
 * or there are infinities. */
static gpu_status make_grid(searching *s, int64_t searches)
{
    int64_t n = s->numbers, cells = 1, filled = 0;
    void *room;
    s->g = (grid){.widest = n};
    if (n < LEAST_SEARCHED || n > INT32_MAX || searches < 2 * n)
        return GPU_OK;
    while (cells < CELLS_A_NUMBER * n && cells < MOST_CELLS)
        cells *= 2;
    double low = element(s->sorted, s->type, 0);
    double scale = (double)cells / (element(s->sorted, s->type, n - 1) - low);
    if (!(scale > 0) || !isfinite(scale))
        return GPU_OK;
    size_t bytes = (size_t)cells * sizeof *s->g.first;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    grid g = {cells, 0, low, scale, room};
    for (int64_t i = 0, first = 0; i < n; i++) {
        int64_t cell = cell_of(&g, element(s->sorted, s->type, i));
        first = cell >= filled ? i : first;
        while (filled <= cell)
            g.first[filled++] = (int32_t)i;
        g.widest = i + 1 - first > g.widest ? i + 1 - first : g.widest;
    }
    while (filled < cells)
        g.first[filled++] = (int32_t)n;
    if (g.widest << WORTH > n)
        gpu_cpu_free(NULL, room, bytes);
    else
        s->g = g;
    return GPU_OK;
}

enum {
    LEAST_LOOKED_UP = 64, /* numbers that are worth a table, */
    SLOTS_A_NUMBER = 2,
    REACH = 64, /* a number's slot and those behind, at most */
    SAMPLE = 64 /* of what is sought; three of four are there */
};

/* Is most of what is sought, m numbers, there? */
static int is_mostly_there(const searching *s, int64_t m)
{
    double x[SAMPLE], place[SAMPLE];
    int64_t there = 0;
    for (int64_t i = 0; i < SAMPLE; i++)
        gpu_cpu_load(s->values, m / SAMPLE * i, 1, GPU_F64, &x[i]);
    search_piece(s, x, SAMPLE, place);
    for (int64_t i = 0; i < SAMPLE; i++) {
        int64_t at = (int64_t)place[i] - 1;
        there += at < s->numbers && element(s->sorted, s->type, at) == x[i];
    }
    return 4 * there >= 3 * SAMPLE;
}

/* Puts the sorted numbers into an empty table. Returns 0 where their bits are
 * so alike that one of them is too far from its slot. */
static int fill_table(const searching *s, table *t)
{
    double last = NAN;
    for (int64_t i = 0; i < s->numbers; i++) {
        double x = element(s->sorted, s->type, i);
        int64_t first = slot_of(t, x), slot = first;
        if (x == last)
            continue;
        while (slot - first < REACH && t->place[slot] >= 0)
            slot++;
        if (slot - first == REACH)
            return 0;
        t->reach =
            slot - first >= t->reach ? (int)(slot - first) + 1 : t->reach;
        t->place[slot] = (int32_t)i;
        last = x;
    }
    return 1;
}

/* The table for m searches: none where it is not worth it. */
static gpu_status make_table(searching *s, int64_t m)
{
    table t = {.slots = LEAST_LOOKED_UP, .shift = 58};
    void *room;
    if (s->is_after || s->numbers < LEAST_LOOKED_UP ||
        s->numbers >= INT32_MAX || m < s->numbers || !is_mostly_there(s, m))
        return GPU_OK;
    for (; t.slots < SLOTS_A_NUMBER * s->numbers; t.slots *= 2)
        t.shift--;
    t.slots += REACH;
    size_t bytes = (size_t)t.slots * sizeof *t.place;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    t.place = memset(room, -1, bytes);
    if (fill_table(s, &t))
        s->t = t;
    else
        gpu_cpu_free(NULL, room, bytes);
    return GPU_OK;
}

gpu_status gpu_cpu_search(void *device, const gpu_view *sorted,
                          const gpu_view *values, int is_after,
                          const gpu_view *to)
{
    gpu_view dense = *sorted;
    void *room = NULL;
    gpu_status status = GPU_OK;
    int64_t n = values->rows * values->cols;
    (void)device;
    if (sorted->row_stride != 1 && sorted->rows > 1)
        status = gpu_cpu_make_dense(&dense, 1, &room);
    searching s = {dense.data, 0,  sorted->rows, sorted->dtype, is_after,
                   values,     to, {.cells = 0}, {.slots = 0}};
    if (status == GPU_OK) {
        s.numbers = count_numbers(s.sorted, s.type, s.length);
        status = make_grid(&s, n);
    }
    if (status == GPU_OK && s.g.cells == 0)
        status = make_table(&s, n);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(n, 8 * n, search_range, &s);
    if (s.g.cells > 0)
        gpu_cpu_free(NULL, s.g.first, (size_t)s.g.cells * sizeof *s.g.first);
    if (s.t.slots > 0)
        gpu_cpu_free(NULL, s.t.place, (size_t)s.t.slots * sizeof *s.t.place);
    if (room)
        gpu_cpu_free(NULL, room, gpu_cpu_view_bytes(sorted));
    return gpu_cpu_stop(status);
}
