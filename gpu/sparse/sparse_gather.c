/* Chosen rows and columns of a sparse matrix. The host works out which entries
 * are taken, from where rows end and, when columns are chosen, from the columns
 * of the chosen rows. Of columns of a matrix on the CPU they are copied as they
 * are found; else they are gathered where they are, on all cores. */
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

/* What is being taken. Arrays of malloc but for those that are s's. */
typedef struct pick {
    const gpu_sparse *s;
    int is_here;            /* s lies on the CPU, and so will the result */
    const int64_t *rows;    /* NULL: all */
    const int64_t *cols;    /* the same */
    int64_t nrows, ncols;   /* of the result */
    int32_t *starts;        /* s's, read back */
    const int32_t *columns; /* s's, where they are looked at, … */
    int32_t *packed;        /* … or those of the chosen rows, close together,
                               of which packed_starts tells where */
    int64_t *packed_starts;
    int64_t first_column;    /* of columns next to each other, or -1 and … */
    int32_t *first, *asking; /* … columns of the result that ask for column
                                c: asking[first[c]] ..
                                asking[first[c + 1] - 1], ascending */
    int ascends;             /* are columns of a result's row as those of s? */
    uint64_t *keys;          /* of a row that has to be sorted */
    int32_t *new_starts;     /* of the result */
    int32_t *new_columns;    /* the result's; of rows alone on a GPU NULL */
    int64_t *new_places;     /* where s has the result's entries, or … */
    char *new_values;   /* … the result's own, of a matrix that is here */
    const char *values; /* s's */
    size_t size;        /* of a value */
} pick;

static void *take_room(size_t count, size_t size)
{
    void *room = malloc((count + 1) * size);
    if (!room)
        gpu_fail(GPU_MEMORY, "out of memory: %s to choose entries",
                 gpu_bytes_text((count + 1) * size));
    return room;
}
#define ROOM(array, count)                                            \
    (((array) = take_room((size_t)(count), sizeof *(array))) ? GPU_OK \
                                                             : GPU_MEMORY)

static void free_pick(pick *p)
{
    free(p->starts);
    free(p->packed);
    free(p->packed_starts);
    free(p->first);
    free(p->asking);
    free(p->keys);
    free(p->new_starts);
    free(p->new_places);
    if (!p->is_here)
        free(p->new_columns);
}

static int64_t row_of(const pick *p, int64_t i)
{
    return p->rows ? p->rows[i] : i;
}

/* Of row i of the result: the columns of what s has there; *place is where the
 * first of them is, *n how many there are. */
static const int32_t *columns_of(const pick *p, int64_t i, int64_t *place,
                                 int64_t *n)
{
    int64_t row = row_of(p, i);
    *place = p->starts[row];
    *n = p->starts[row + 1] - *place;
    return p->packed ? p->packed + p->packed_starts[i] : p->columns + *place;
}

/* --- entries ---------------------------------------------------------------
 */

/* Entry `place` of s becomes entry n, in that column. */
static inline void put(const pick *p, int64_t n, int64_t place, int32_t column)
{
    p->new_columns[n] = column;
    if (p->new_places)
        p->new_places[n] = place;
    else if (p->size == sizeof(float))
        memcpy(p->new_values + n * 4, p->values + place * 4, 4);
    else if (p->size == sizeof(double))
        memcpy(p->new_values + n * 8, p->values + place * 8, 8);
    else
        memcpy(p->new_values + n * 16, p->values + place * 16, 16);
}

/* Entries place .. place + count - 1 become those from n on; their columns are
 * shifted to the left. Rows are mostly short: one after the other. */
static void put_run(const pick *p, int64_t n, int64_t place,
                    const int32_t *columns, int64_t count, int32_t shift)
{
    int64_t k = 0;
    for (; p->new_columns && k < count; k++)
        put(p, n + k, place + k, columns[k] - shift);
    for (; k < count; k++)
        p->new_places[n + k] = place + k;
}

/* --- rows: how many entries the result has, and they themselves ------------
 */

/* The first of n columns that is c or behind it. */
static int64_t find_column(const int32_t *columns, int64_t n, int64_t c)
{
    enum { COUNTED = 32 }; /* as fast as halving, and never foreseen wrongly */
    int64_t low = 0;
    if (n <= COUNTED) {
        for (int64_t k = 0; k < n; k++)
            low += columns[k] < c;
        return low;
    }
    while (low < n) {
        int64_t middle = low + (n - low) / 2;
        if (columns[middle] < c)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* Of columns next to each other: those within, of which *from is the first. */
static int64_t find_run(const pick *p, const int32_t *columns, int64_t n,
                        int64_t *from)
{
    *from = find_column(columns, n, p->first_column);
    return find_column(columns + *from, n - *from, p->first_column + p->ncols);
}

static int64_t count_row(const pick *p, int64_t i)
{
    int64_t place, n, count = 0;
    const int32_t *columns = columns_of(p, i, &place, &n);
    if (!p->cols)
        return n;
    if (p->first_column >= 0)
        return find_run(p, columns, n, &place);
    for (int64_t k = 0; k < n; k++)
        count += p->first[columns[k] + 1] - p->first[columns[k]];
    return count;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The entries of a row that were found, entry n being the first: key k has its
 * column above, where it is, counted from place, below. Of few it is counted
 * how many are before each, which takes no branch. */
static void put_sorted(const pick *p, int64_t n, int64_t place, int64_t found)
{
    enum { COUNTED = 24 };
    uint64_t *keys = p->keys;
    if (found > COUNTED)
        qsort(keys, (size_t)found, sizeof *keys, by_key);
    for (int64_t k = 0; k < found; k++) {
        int64_t rank = found > COUNTED ? k : 0;
        for (int64_t other = 0; found <= COUNTED && other < found; other++)
            rank += keys[other] < keys[k];
        put(p, n + rank, place + (int64_t)(uint32_t)keys[k],
            (int32_t)(keys[k] >> 32));
    }
}

/* Of listed columns, the result's row i from entry n on. */
static void fill_listed(const pick *p, int64_t i, int64_t n)
{
    int64_t place, count, found = 0;
    const int32_t *columns = columns_of(p, i, &place, &count);
    for (int64_t k = 0; k < count; k++) {
        int32_t end = p->first[columns[k] + 1];
        for (int32_t a = p->first[columns[k]]; a < end; a++)
            if (p->ascends)
                put(p, n++, place + k, p->asking[a]);
            else
                p->keys[found++] = (uint64_t)p->asking[a] << 32 | (uint64_t)k;
    }
    put_sorted(p, n, place, found);
}

static void fill_row(const pick *p, int64_t i, int64_t n)
{
    int64_t place, count, from;
    const int32_t *columns = columns_of(p, i, &place, &count);
    if (!p->cols) {
        put_run(p, n, place, columns, count, 0);
    } else if (p->first_column >= 0) {
        count = find_run(p, columns, count, &from);
        put_run(p, n, place + from, columns + from, count,
                (int32_t)p->first_column);
    } else {
        fill_listed(p, i, n);
    }
}

static gpu_status count_rows(pick *p)
{
    int64_t count = 0;
    TRY(ROOM(p->new_starts, p->nrows + 1));
    for (int64_t i = 0; i < p->nrows; i++) {
        POLL_AT(i);
        p->new_starts[i] = (int32_t)count;
        count += count_row(p, i);
        if (count > INT32_MAX)
            return gpu_fail(GPU_ARGUMENT,
                            "index: %lld entries: there must be fewer than "
                            "2147483648",
                            (long long)count);
    }
    p->new_starts[p->nrows] = (int32_t)count;
    return GPU_OK;
}

/* Rows in no order come from memory: what a later one needs is asked for in
 * time. */
static void prefetch_row(const pick *p, int64_t i)
{
    int64_t place = p->starts[p->rows[i]];
    __builtin_prefetch(p->columns + place);
    __builtin_prefetch(p->columns + place + 16);
    __builtin_prefetch(p->values + (size_t)place * p->size);
    __builtin_prefetch(p->values + (size_t)place * p->size + 64);
}

static gpu_status fill_rows(const pick *p)
{
    enum { AHEAD = 12 };
    for (int64_t i = 0; i < p->nrows; i++) {
        POLL_AT(i);
        if (p->rows && p->values && i + AHEAD < p->nrows)
            prefetch_row(p, i + AHEAD);
        fill_row(p, i, p->new_starts[i]);
    }
    return GPU_OK;
}

/* --- what is looked at -----------------------------------------------------
 */

/* Columns of the chosen rows of a matrix on a GPU. */
static gpu_status download_columns(pick *p)
{
    gpu_matrix columns;
    int64_t *places, count = 0, at = 0;
    TRY(ROOM(p->packed_starts, p->nrows + 1));
    for (int64_t i = 0; i < p->nrows; i++) {
        int64_t row = row_of(p, i);
        p->packed_starts[i] = count;
        count += p->starts[row + 1] - p->starts[row];
    }
    TRY(ROOM(p->packed, count));
    TRY(ROOM(places, count));
    gpu_status status = GPU_OK;
    for (int64_t i = 0; i < p->nrows && status == GPU_OK; i++) {
        int64_t row = row_of(p, i);
        for (int64_t e = p->starts[row]; e < p->starts[row + 1]; e++)
            places[at++] = e;
        status = i % GPU_POLL == 0 ? gpu_poll() : GPU_OK;
    }
    if (status == GPU_OK)
        status = gpu_gather(&p->s->columns, places, count, NULL, 1, &columns);
    free(places);
    TRY(status);
    status = gpu_download(&columns, p->packed);
    gpu_release(&columns);
    return status;
}

/* Who asks for each column, in the order of the result. */
static gpu_status list_asking(pick *p)
{
    int64_t sum = 0;
    size_t bytes = ((size_t)p->s->cols + 1) * sizeof *p->first;
    p->ascends = 1;
    for (int64_t j = 1; j < p->ncols; j++)
        p->ascends &= p->cols[j - 1] <= p->cols[j];
    TRY(ROOM(p->first, p->s->cols + 1));
    TRY(ROOM(p->asking, p->ncols));
    if (!p->ascends)
        TRY(ROOM(p->keys, p->ncols)); /* a row has no more */
    memset(p->first, 0, bytes);
    for (int64_t j = 0; j < p->ncols; j++)
        p->first[p->cols[j]]++;
    for (int64_t c = 0; c <= p->s->cols; c++) {
        POLL_AT(c);
        sum += p->first[c];
        p->first[c] = (int32_t)sum; /* where they end, until each is put */
    }
    for (int64_t j = p->ncols - 1; j >= 0; j--)
        p->asking[--p->first[p->cols[j]]] = (int32_t)j;
    return GPU_OK;
}

/* Are they next to each other? */
static int is_run(const int64_t *cols, int64_t n)
{
    for (int64_t j = 1; j < n; j++)
        if (cols[j] != cols[0] + j)
            return 0;
    return n > 0;
}

static gpu_status prepare(pick *p)
{
    TRY(ROOM(p->starts, p->s->rows + 1));
    TRY(gpu_download(&p->s->starts, p->starts));
    if (p->is_here)
        p->columns = gpu_view_of(&p->s->columns).data;
    else if (p->cols)
        TRY(download_columns(p));
    if (!p->cols)
        return GPU_OK;
    p->first_column = is_run(p->cols, p->ncols) ? p->cols[0] : -1;
    return p->first_column < 0 ? list_asking(p) : GPU_OK;
}

/* --- the result ------------------------------------------------------------
 */

static gpu_status fill_here(pick *p, gpu_sparse *out)
{
    gpu_rows_out to = gpu_rows_of(out);
    gpu_operation op = {.name = "index",
                        .kernel = "csr",
                        .device = gpu_cpu(),
                        .result = &out->values,
                        .extent = &p->s->values,
                        .bytes = 2 * (double)gpu_sparse_bytes(out)};
    memcpy(to.starts, p->new_starts,
           (size_t)(p->nrows + 1) * sizeof *to.starts);
    p->new_columns = to.columns;
    p->new_values = to.values;
    gpu_begin_operation(&op);
    p->values = gpu_view_of(&p->s->values).data;
    return gpu_end_operation(&op, fill_rows(p));
}

static gpu_status gather_there(pick *p, gpu_device *d, gpu_sparse *out)
{
    int64_t count = out->count = p->new_starts[p->nrows];
    TRY(ROOM(p->new_places, count));
    if (p->cols)
        TRY(ROOM(p->new_columns, count));
    TRY(fill_rows(p));
    TRY(gpu_upload_vector(d, GPU_F32, p->nrows + 1, p->new_starts,
                          &out->starts));
    if (p->cols)
        TRY(gpu_upload_vector(d, GPU_F32, count, p->new_columns,
                              &out->columns));
    else
        TRY(gpu_gather(&p->s->columns, p->new_places, count, NULL, 1,
                       &out->columns));
    return gpu_gather(&p->s->values, p->new_places, count, NULL, 1,
                      &out->values);
}

static gpu_status gather(pick *p, gpu_device *d, gpu_sparse *out)
{
    TRY(gpu_settle(&p->s->values));
    TRY(prepare(p));
    TRY(count_rows(p));
    if (!p->is_here)
        return gather_there(p, d, out);
    TRY(gpu_sparse_create_arrays(d, p->s->values.dtype, p->nrows, p->ncols,
                                 p->new_starts[p->nrows], out));
    return fill_here(p, out);
}

static gpu_status check_size(int64_t rows, int64_t cols)
{
    return rows <= INT32_MAX && cols <= INT32_MAX
               ? GPU_OK
               : gpu_fail(GPU_ARGUMENT,
                          "index: %lldx%lld: a size of a sparse matrix must be "
                          "below 2147483648",
                          (long long)rows, (long long)cols);
}

gpu_status gpu_sparse_gather(const gpu_sparse *s, const int64_t *rows,
                             int64_t nrows, const int64_t *cols, int64_t ncols,
                             gpu_sparse *out)
{
    gpu_device *d;
    *out = (gpu_sparse){0};
    TRY(gpu_sparse_check("index", s, &d));
    TRY(gpu_check_places("index", rows, nrows, s->rows, "row"));
    TRY(gpu_check_places("index", cols, ncols, s->cols, "column"));
    if (!rows && !cols)
        return gpu_sparse_clone(s, s->values.dtype, NULL, out);
    pick p = {.s = s,
              .is_here = cols && d->is_cpu && !gpu_dry,
              .rows = rows,
              .cols = cols,
              .nrows = rows ? nrows : s->rows,
              .ncols = cols ? ncols : s->cols,
              .size = gpu_dtype_size(s->values.dtype)};
    TRY(check_size(p.nrows, p.ncols));
    out->rows = p.nrows;
    out->cols = p.ncols;
    gpu_status status = gather(&p, d, out);
    free_pick(&p);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}
