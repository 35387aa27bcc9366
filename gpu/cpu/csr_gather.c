/* Chosen rows and columns of a sparse matrix, on all cores: rows are counted
 * first, so that each is written where it belongs. Limited by bytes, which for
 * rows in no order come from memory. */
#include <stdlib.h>
#include <string.h>
#include "csr_parts.h"

enum {
    ROWS = 256,  /* between two looks at the flag */
    AHEAD = 12,  /* rows asked for in time */
    COUNTED = 24 /* entries of a row put in order without a branch */
};

typedef enum column_choice {
    ALL_COLUMNS,
    RUN,   /* columns next to each other */
    ONCE,  /* listed ones, of which none stands twice */
    LISTED /* any */
} column_choice;

typedef struct job {
    const gpu_csr *s;
    const gpu_sparse_picking *how;
    gpu_csr_result *out;
    column_choice kind;
    int ascends;       /* listed columns stand as those of s do */
    int32_t low, high; /* RUN: columns low .. high - 1 */
    int32_t *place;    /* ONCE: where column c of s goes, or -1 */
    int32_t *first;    /* LISTED: column c goes to asking[first[c]] .. */
    int32_t *asking;   /* asking[first[c + 1] - 1], ascending */
    int64_t most;      /* entries that a row of the result can have */
} job;

INLINE int64_t source_row(const job *j, int64_t i)
{
    return j->how->rows ? j->how->rows[i] : i;
}

/* --- counting ------------------------------------------------------------- */

INLINE int32_t count_row(const job *j, column_choice kind, int64_t e,
                         int64_t end)
{
    const int32_t *columns = j->s->columns;
    int32_t n = 0;
    if (kind == RUN) {
        e = find_column(columns, e, end, j->low);
        return (int32_t)(find_column(columns, e, end, j->high) - e);
    }
    for (; e < end && kind == ONCE; e++)
        n += j->place[columns[e]] >= 0;
    for (; e < end && kind == LISTED; e++)
        n += j->first[columns[e] + 1] - j->first[columns[e]];
    return n;
}

INLINE gpu_status count_kind(const job *j, column_choice kind, int64_t i,
                             int64_t last)
{
    const int32_t *starts = j->s->starts;
    for (; i < last; i++) {
        int64_t row = source_row(j, i), e = starts[row], end = starts[row + 1];
        if (i % ROWS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (j->how->rows && kind != ALL_COLUMNS && i + AHEAD < last)
            __builtin_prefetch(j->s->columns + starts[j->how->rows[i + AHEAD]]);
        j->out->starts[i + 1] = kind == ALL_COLUMNS
                                    ? (int32_t)(end - e)
                                    : count_row(j, kind, e, end);
    }
    return GPU_OK;
}

static gpu_status count_rows(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    switch (j->kind) {
    case ALL_COLUMNS:
        return count_kind(j, ALL_COLUMNS, first, last);
    case RUN:
        return count_kind(j, RUN, first, last);
    case ONCE:
        return count_kind(j, ONCE, first, last);
    default:
        return count_kind(j, LISTED, first, last);
    }
}

/* --- filling -------------------------------------------------------------- */

/* Entry e of s becomes entry n, in that column. */
INLINE void put(const job *j, size_t size, int64_t n, int64_t e, int32_t column)
{
    j->out->columns[n] = column;
    memcpy((char *)j->out->values + (size_t)n * size,
           (const char *)j->s->values + (size_t)e * size, size);
}

/* count entries from e on become those from n on, the columns shifted to the
 * left. Rows are mostly short: one entry after the other. */
INLINE void put_run(const job *j, size_t size, int64_t n, int64_t e,
                    int64_t count, int32_t shift)
{
    for (int64_t k = 0; k < count; k++)
        put(j, size, n + k, e + k, j->s->columns[e + k] - shift);
}

/* Each entry is written where the next one goes, and stays if its column is
 * there; what would be written behind the row's last one is not. */
INLINE void put_once(const job *j, size_t size, int64_t n, int64_t end,
                     int64_t e)
{
    for (; n < end; e++) {
        int32_t column = j->place[j->s->columns[e]];
        put(j, size, n, e, column);
        n += column >= 0;
    }
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Entries in the order of their keys: the column above, and below where the
 * entry is, counted from e. */
INLINE void put_sorted(const job *j, size_t size, int64_t n, int64_t e,
                       uint64_t *keys, int64_t found)
{
    if (found > COUNTED)
        qsort(keys, (size_t)found, sizeof *keys, by_key);
    for (int64_t k = 0; k < found; k++) {
        int64_t rank = found > COUNTED ? k : 0;
        for (int64_t other = 0; found <= COUNTED && other < found; other++)
            rank += keys[other] < keys[k];
        put(j, size, n + rank, e + (int64_t)(uint32_t)keys[k],
            (int32_t)(keys[k] >> 32));
    }
}

INLINE uint64_t key_of(int32_t column, int64_t k)
{
    return (uint64_t)column << 32 | (uint64_t)k;
}

/* Entries e .. end - 1 of s as keys; returns how many there are. */
INLINE int64_t list_keys(const job *j, column_choice kind, int64_t e,
                         int64_t end, uint64_t *keys)
{
    const int32_t *columns = j->s->columns + e;
    int64_t found = 0;
    for (int64_t k = 0; k < end - e && kind == ONCE; k++) {
        int32_t column = j->place[columns[k]];
        keys[found] = key_of(column, k); /* there is room for one more */
        found += column >= 0;
    }
    for (int64_t k = 0; k < end - e && kind == LISTED; k++)
        for (int32_t a = j->first[columns[k]]; a < j->first[columns[k] + 1];
             a++)
            keys[found++] = key_of(j->asking[a], k);
    return found;
}

/* Row i of the result, from entry n to end - 1. */
INLINE void fill_row(const job *j, column_choice kind, size_t size, int64_t i,
                     uint64_t *keys)
{
    int64_t n = j->out->starts[i], end = j->out->starts[i + 1];
    int64_t row = source_row(j, i);
    int64_t e = j->s->starts[row], stop = j->s->starts[row + 1];
    if (kind == ALL_COLUMNS) {
        put_run(j, size, n, e, stop - e, 0);
    } else if (kind == RUN) {
        e = find_column(j->s->columns, e, stop, j->low);
        put_run(j, size, n, e, end - n, j->low);
    } else if (kind == ONCE && j->ascends) {
        put_once(j, size, n, end, e);
    } else {
        put_sorted(j, size, n, e, keys, list_keys(j, kind, e, stop, keys));
    }
}

INLINE void prefetch_row(const job *j, size_t size, int64_t row)
{
    int64_t e = j->s->starts[row];
    const char *values = (const char *)j->s->values + (size_t)e * size;
    __builtin_prefetch(j->s->columns + e);
    __builtin_prefetch(j->s->columns + e + 16);
    __builtin_prefetch(values);
    __builtin_prefetch(values + 64);
}

INLINE gpu_status fill_kind(const job *j, column_choice kind, size_t size,
                            int64_t i, int64_t last)
{
    int is_sorted = kind < ONCE || (kind == ONCE && j->ascends);
    uint64_t *keys = NULL;
    gpu_status status = GPU_OK;
    if (!is_sorted) {
        keys = malloc(((size_t)j->most + 1) * sizeof *keys);
        if (!keys)
            return GPU_MEMORY;
    }
    for (; i < last && status == GPU_OK; i++) {
        if (i % ROWS == 0 && gpu_cpu_interrupted())
            status = GPU_INTERRUPTED;
        if (j->how->rows && i + AHEAD < last)
            prefetch_row(j, size, j->how->rows[i + AHEAD]);
        fill_row(j, kind, size, i, keys);
    }
    free(keys);
    return status;
}

INLINE gpu_status fill_sized(const job *j, size_t size, int64_t first,
                             int64_t last)
{
    switch (j->kind) {
    case ALL_COLUMNS:
        return fill_kind(j, ALL_COLUMNS, size, first, last);
    case RUN:
        return fill_kind(j, RUN, size, first, last);
    case ONCE:
        return fill_kind(j, ONCE, size, first, last);
    default:
        return fill_kind(j, LISTED, size, first, last);
    }
}

static gpu_status fill_rows(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    switch (gpu_cpu_size(j->s->dtype)) {
    case 4:
        return fill_sized(j, 4, first, last);
    case 8:
        return fill_sized(j, 8, first, last);
    default:
        return fill_sized(j, 16, first, last);
    }
}

/* --- listed columns ------------------------------------------------------- */

/* Who asks for each column, in the order of the result. */
static gpu_status list_asking(job *j)
{
    const gpu_sparse_picking *how = j->how;
    size_t cols = (size_t)j->s->cols + 1;
    int64_t sum = 0;
    j->first = calloc(cols, sizeof *j->first);
    j->asking = malloc(((size_t)how->ncols + 1) * sizeof *j->asking);
    if (!j->first || !j->asking)
        return GPU_MEMORY;
    for (int64_t k = 0; k < how->ncols; k++)
        j->first[how->cols[k]]++;
    for (size_t c = 0; c < cols; c++) {
        sum += j->first[c];
        j->first[c] = (int32_t)sum; /* where they end, until each is put */
    }
    for (int64_t k = how->ncols - 1; k >= 0; k--)
        j->asking[--j->first[how->cols[k]]] = (int32_t)k;
    return GPU_OK;
}

/* The same where none stands twice; else it becomes LISTED. */
static gpu_status list_places(job *j)
{
    const gpu_sparse_picking *how = j->how;
    j->place = malloc(((size_t)j->s->cols + 1) * sizeof *j->place);
    if (!j->place)
        return GPU_MEMORY;
    memset(j->place, -1, (size_t)j->s->cols * sizeof *j->place);
    for (int64_t k = 0; k < how->ncols; k++) {
        if (j->place[how->cols[k]] >= 0) {
            j->kind = LISTED;
            return list_asking(j);
        }
        j->place[how->cols[k]] = (int32_t)k;
    }
    return GPU_OK;
}

static gpu_status prepare(job *j)
{
    const gpu_sparse_picking *how = j->how;
    int is_run = how->ncols > 0;
    if (!how->cols)
        return GPU_OK;
    j->ascends = 1;
    for (int64_t k = 1; k < how->ncols; k++) {
        is_run &= how->cols[k] == how->cols[0] + k;
        j->ascends &= how->cols[k - 1] < how->cols[k];
    }
    j->most = how->ncols;
    j->kind = is_run ? RUN : ONCE;
    if (!is_run)
        return list_places(j);
    j->low = (int32_t)how->cols[0];
    j->high = (int32_t)(how->cols[0] + how->ncols);
    return GPU_OK;
}

/* --- all of it ------------------------------------------------------------ */

/* Elements that are read, about: those of the chosen rows. */
static int64_t work_of(const job *j)
{
    int64_t rows = j->s->rows > 0 ? j->s->rows : 1;
    double share = (double)j->how->nrows / (double)rows;
    return j->how->nrows + (int64_t)(share * (double)j->s->count);
}

static gpu_status gather(job *j)
{
    int64_t rows = j->how->nrows, work = work_of(j);
    gpu_status status = prepare(j);
    if (status != GPU_OK)
        return gpu_cpu_stop(status);
    status = gpu_cpu_parallel(rows, work, count_rows, j);
    if (status != GPU_OK)
        return status;
    j->out->count = add_up_rows(j->out->starts, rows);
    status = j->out->make_room(j->out, j->out->count);
    return status == GPU_OK ? gpu_cpu_parallel(rows, work, fill_rows, j)
                            : status;
}

gpu_status gpu_cpu_sparse_gather(void *device, const gpu_csr *s,
                                 const gpu_sparse_picking *how,
                                 gpu_csr_result *out)
{
    job j = {.s = s, .how = how, .out = out};
    (void)device;
    gpu_status status = gather(&j);
    free(j.place);
    free(j.first);
    free(j.asking);
    return status;
}
