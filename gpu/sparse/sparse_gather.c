/* Chosen rows and columns of a sparse matrix. The host works out which entries
 * are taken, from where rows end and, when columns are chosen, from the
 * columns of the chosen rows; the entries themselves are gathered where they
 * are. */
#include "sparse.h"

#include <stdlib.h>

/* A column that is asked for, or an entry, and its column in the result. */
typedef struct pair {
    int64_t what;
    int32_t at;
} pair;

/* What is being taken. All arrays are of malloc. */
typedef struct pick {
    const gpu_sparse *s;
    const int64_t *rows; /* NULL: all */
    int64_t nrows, ncols;
    int32_t *starts, *new_starts; /* s's and the result's */
    int64_t count;                /* entries of the chosen rows, … */
    int64_t *places;              /* … where s has them … */
    int32_t *columns;             /* … and their columns */
    pair *wanted;                 /* ascending columns */
    int64_t new_count;            /* the result's entries, where s has them */
    int64_t *new_places;          /* … */
    int32_t *new_columns;         /* … and their new columns */
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
    free(p->new_starts);
    free(p->places);
    free(p->columns);
    free(p->wanted);
    free(p->new_places);
    free(p->new_columns);
}

static gpu_status check_count(int64_t count)
{
    return count <= INT32_MAX
               ? GPU_OK
               : gpu_fail(GPU_ARGUMENT,
                          "index: %lld entries: there must be fewer than "
                          "2147483648",
                          (long long)count);
}

/* Where s has the entries of the chosen rows. */
static gpu_status find_entries(pick *p)
{
    int64_t n = 0;
    TRY(ROOM(p->starts, p->s->rows + 1));
    TRY(ROOM(p->new_starts, p->nrows + 1));
    TRY(gpu_download(&p->s->starts, p->starts));
    for (int64_t i = 0; i < p->nrows; i++) {
        int64_t row = p->rows ? p->rows[i] : i;
        POLL_AT(i);
        p->new_starts[i] = (int32_t)n;
        n += p->starts[row + 1] - p->starts[row];
        TRY(check_count(n));
    }
    p->new_starts[p->nrows] = (int32_t)n;
    p->count = n;
    TRY(ROOM(p->places, n));
    n = 0;
    for (int64_t i = 0; i < p->nrows; i++) {
        int64_t row = p->rows ? p->rows[i] : i;
        for (int64_t e = p->starts[row]; e < p->starts[row + 1]; e++) {
            POLL_AT(n);
            p->places[n++] = e;
        }
    }
    return GPU_OK;
}

/* --- chosen columns ------------------------------------------------------- */

static int by_column(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Of the entries of one row no two have the same. */
static int by_new_column(const void *a, const void *b)
{
    return ((const pair *)a)->at < ((const pair *)b)->at ? -1 : 1;
}

static gpu_status sort_wanted(pick *p, const int64_t *cols)
{
    int ascends = 1;
    TRY(ROOM(p->wanted, p->ncols));
    for (int64_t j = 0; j < p->ncols; j++) {
        p->wanted[j] = (pair){cols[j], (int32_t)j};
        ascends &= j == 0 || cols[j - 1] <= cols[j];
    }
    if (!ascends)
        qsort(p->wanted, (size_t)p->ncols, sizeof *p->wanted, by_column);
    return GPU_OK;
}

/* The first that asks for this column or one behind it. */
static int64_t find_wanted(const pick *p, int32_t col)
{
    int64_t low = 0, high = p->ncols;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (p->wanted[middle].what < col)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Columns of the chosen entries become the first that asks for them. */
static gpu_status count_wanted(pick *p)
{
    p->new_count = 0;
    for (int64_t e = 0; e < p->count; e++) {
        POLL_AT(e);
        int32_t col = p->columns[e];
        int64_t k = find_wanted(p, col), first = k;
        while (k < p->ncols && p->wanted[k].what == col)
            k++;
        p->columns[e] = k > first ? (int32_t)first : -1;
        p->new_count += k - first;
        TRY(check_count(p->new_count));
    }
    return GPU_OK;
}

/* Entries e .. end - 1 of a chosen row, into row, which has room for all. */
static int64_t collect_row(const pick *p, int64_t e, int64_t end, pair *row)
{
    int64_t n = 0;
    int ascends = 1;
    for (; e < end; e++) {
        int64_t k = p->columns[e], first = k;
        for (; k >= 0 && k < p->ncols &&
               p->wanted[k].what == p->wanted[first].what;
             k++, n++) {
            row[n] = (pair){p->places[e], p->wanted[k].at};
            ascends &= n == 0 || row[n - 1].at < row[n].at;
        }
    }
    if (!ascends)
        qsort(row, (size_t)n, sizeof *row, by_new_column);
    return n;
}

static gpu_status collect_rows(pick *p, pair *row)
{
    int64_t n = 0, e = 0;
    for (int64_t i = 0; i < p->nrows; i++) {
        int64_t end = p->new_starts[i + 1];
        int64_t length = collect_row(p, e, end, row);
        p->new_starts[i] = (int32_t)n;
        for (int64_t k = 0; k < length; k++, n++) {
            POLL_AT(n);
            p->new_places[n] = row[k].what;
            p->new_columns[n] = row[k].at;
        }
        e = end;
    }
    p->new_starts[p->nrows] = (int32_t)n;
    return GPU_OK;
}

static gpu_status choose_columns(pick *p, const int64_t *cols)
{
    gpu_matrix columns;
    pair *row;
    TRY(ROOM(p->columns, p->count));
    TRY(sort_wanted(p, cols));
    TRY(gpu_gather(&p->s->columns, p->places, p->count, NULL, 1, &columns));
    gpu_status status = gpu_download(&columns, p->columns);
    gpu_release(&columns);
    TRY(status);
    TRY(count_wanted(p));
    TRY(ROOM(p->new_places, p->new_count));
    TRY(ROOM(p->new_columns, p->new_count));
    TRY(ROOM(row, p->ncols)); /* a row has no more */
    status = collect_rows(p, row);
    free(row);
    return status;
}

/* --- the result ----------------------------------------------------------- */

/* Fills out, but for its shape; releases nothing. */
static gpu_status gather_entries(pick *p, gpu_device *d, const int64_t *cols,
                                 gpu_sparse *out)
{
    TRY(find_entries(p));
    if (cols)
        TRY(choose_columns(p, cols));
    const int64_t *places = cols ? p->new_places : p->places;
    out->count = cols ? p->new_count : p->count;
    TRY(gpu_upload_vector(d, GPU_F32, p->nrows + 1, p->new_starts,
                          &out->starts));
    if (cols)
        TRY(gpu_upload_vector(d, GPU_F32, out->count, p->new_columns,
                              &out->columns));
    else
        TRY(gpu_gather(&p->s->columns, places, out->count, NULL, 1,
                       &out->columns));
    return gpu_gather(&p->s->values, places, out->count, NULL, 1, &out->values);
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
              .rows = rows,
              .nrows = rows ? nrows : s->rows,
              .ncols = cols ? ncols : s->cols};
    TRY(check_size(p.nrows, p.ncols));
    out->rows = p.nrows;
    out->cols = p.ncols;
    gpu_status status = gather_entries(&p, d, cols, out);
    free_pick(&p);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}
