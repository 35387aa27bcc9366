/* Sparse matrices taken apart and changed: places as lists, small entries left
 * out, blocks put in. As nothing is written once it is made, each makes a new
 * one, on the CPU: of a matrix on a GPU all bytes cross the bus. */
#include "complex_numbers.h"
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

/* --- places --------------------------------------------------------------- */

/* The same vector on d; of the one here nothing is left. */
static gpu_status send_vector(gpu_matrix *here, gpu_device *d, gpu_matrix *out)
{
    if (d->is_cpu) {
        *out = *here;
        *here = (gpu_matrix){0};
        return GPU_OK;
    }
    gpu_status status = gpu_clone(here, here->dtype, d, out);
    gpu_release(here);
    return status;
}

/* Fills rows and cols on the CPU; s lies there. */
static gpu_status place_here(const gpu_sparse *s, gpu_matrix *rows,
                             gpu_matrix *cols)
{
    gpu_csr from = gpu_csr_of(s);
    TRY(gpu_create(rows, gpu_cpu(), GPU_F64, 1, s->count, 1));
    TRY(gpu_create(cols, gpu_cpu(), GPU_F64, 1, s->count, 1));
    if (s->count == 0)
        return GPU_OK;
    gpu_operation op = {.name = "triplets",
                        .kernel = "csr",
                        .device = gpu_cpu(),
                        .result = rows,
                        .extent = &s->values,
                        .bytes = 2 * (double)gpu_bytes(rows) +
                                 (double)gpu_bytes(&s->columns)};
    return RUN_OPERATION(&op, sparse_list, &from, gpu_target_of(rows).data,
                         gpu_target_of(cols).data);
}

gpu_status gpu_sparse_places(const gpu_sparse *s, gpu_matrix *rows,
                             gpu_matrix *cols)
{
    gpu_device *d;
    gpu_sparse here;
    gpu_matrix down = {0}, across = {0};
    rows->storage = cols->storage = NULL;
    TRY(gpu_sparse_check("triplets", s, &d));
    TRY(gpu_sparse_bring(s, &here));
    gpu_status status = place_here(&here, &down, &across);
    gpu_sparse_release(&here);
    if (status == GPU_OK)
        status = send_vector(&down, d, rows);
    if (status == GPU_OK)
        status = send_vector(&across, d, cols);
    gpu_release(&down);
    gpu_release(&across);
    return status;
}

/* --- entries left out ----------------------------------------------------- */

/* s with ones as values. */
static gpu_status share_places(gpu_device *d, const gpu_sparse *s,
                               gpu_sparse *out)
{
    gpu_matrix ones;
    TRY(gpu_create(&ones, d, GPU_F32, 1, s->count, 1));
    gpu_status status = gpu_fill(&ones, 1);
    if (status == GPU_OK)
        status = gpu_sparse_with_values(s, &ones, out);
    gpu_release(&ones);
    return status;
}

typedef struct keeping {
    gpu_csr from;
    const gpu_sparse_choice *choice;
} keeping;

static gpu_status call_keep(gpu_operation *op, const void *context,
                            gpu_csr_result *r)
{
    const keeping *k = context;
    return RUN_OPERATION(op, sparse_keep, &k->from, k->choice, r->starts,
                         r->columns, r->values, &r->count);
}

/* s lies on d. Where all entries stay, so do their places, and, but for those
 * of a mask, their values. */
static gpu_status keep_on(gpu_device *d, const char *name, const gpu_sparse *s,
                          const gpu_sparse_choice *choice, gpu_sparse *out)
{
    keeping k = {gpu_csr_of(s), choice};
    gpu_sparse_making m = {.dtype = choice->mask ? GPU_F32 : s->values.dtype,
                           .out = out};
    m.op = (gpu_operation){.name = name,
                           .kernel = "csr",
                           .device = d,
                           .extent = &s->values,
                           .bytes = (double)gpu_sparse_bytes(s)};
    TRY(gpu_sparse_count(&m, s->rows, s->cols, call_keep, &k));
    if (m.told.count < s->count)
        return gpu_sparse_fill(&m, call_keep, &k);
    gpu_sparse_release(out);
    return choice->mask ? share_places(d, s, out)
                        : gpu_sparse_clone(s, m.dtype, NULL, out);
}

/* What a device that s lies on chooses from, itself or the CPU; here is s
 * there, to be released. */
static gpu_status bring_to_keep(const gpu_sparse *s, gpu_device *d,
                                gpu_device **there, gpu_sparse *here)
{
    *there = d->backend->sparse_keep ? d : gpu_cpu();
    return *there == d ? gpu_sparse_clone(s, s->values.dtype, NULL, here)
                       : gpu_sparse_bring(s, here);
}

gpu_status gpu_sparse_prune(const gpu_sparse *s, double tolerance,
                            gpu_sparse *out)
{
    gpu_device *d, *there;
    gpu_sparse here, kept;
    const gpu_sparse_choice choice = {.tolerance = tolerance};
    *out = (gpu_sparse){0};
    TRY(gpu_sparse_check("prune", s, &d));
    TRY(bring_to_keep(s, d, &there, &here));
    gpu_status status = gpu_settle(&here.values);
    if (status == GPU_OK)
        status = keep_on(there, "prune", &here, &choice, &kept);
    gpu_sparse_release(&here);
    return status == GPU_OK ? gpu_sparse_send(&kept, s->values.dtype, d, out)
                            : status;
}

gpu_status gpu_sparse_where(const gpu_sparse *s, const gpu_matrix *mask,
                            gpu_sparse *out)
{
    gpu_device *d, *there;
    gpu_sparse here, kept;
    gpu_matrix truths;
    *out = (gpu_sparse){0};
    TRY(gpu_sparse_check("where", s, &d));
    if (mask->dtype != GPU_BOOL || mask->ndim != 1 || mask->rows != s->count)
        return gpu_fail(GPU_SHAPE, "where: %lld entries do not get a %s of %s",
                        (long long)s->count, gpu_dtype_name(mask->dtype),
                        gpu_shape_text(mask));
    TRY(bring_to_keep(s, d, &there, &here));
    gpu_status status = gpu_clone(mask, GPU_BOOL, there, &truths);
    if (status == GPU_OK) {
        status = gpu_settle(&truths);
        const gpu_sparse_choice choice = {.mask = gpu_view_of(&truths).data};
        if (status == GPU_OK)
            status = keep_on(there, "where", &here, &choice, &kept);
        gpu_release(&truths);
    }
    gpu_sparse_release(&here);
    return status == GPU_OK ? gpu_sparse_send(&kept, GPU_F32, d, out) : status;
}

/* Entry `from` of s becomes entry `to`. */
static void copy_entry(const gpu_csr *s, int64_t from, const gpu_rows_out *out,
                       int64_t to)
{
    size_t size = gpu_dtype_size(s->dtype);
    out->columns[to] = s->columns[from];
    memcpy((char *)out->values + (size_t)to * size,
           (const char *)s->values + (size_t)from * size, size);
}

/* --- blocks put in -------------------------------------------------------- */

/* A column that is written, and which column of the block it gets. */
typedef struct target {
    int64_t column, from;
} target;

/* What is being written; s and x are on the CPU. All arrays are of malloc. */
typedef struct edit {
    gpu_csr s, x;
    const gpu_places *to;
    int32_t *row_from; /* which row of x each row of s gets; -1: none */
    target *targets;   /* ascending columns, none twice; NULL: all are */
    int64_t ntargets;
    int32_t *new_column; /* of each column of x; -1: a later one is there */
    target *row;         /* entries of x that a row gets, ascending columns */
} edit;

static void free_edit(edit *e)
{
    free(e->row_from);
    free(e->targets);
    free(e->new_column);
    free(e->row);
}

static void *take_room(int64_t count, size_t size)
{
    void *room = malloc(((size_t)count + 1) * size);
    if (!room)
        gpu_fail(GPU_MEMORY, "out of memory: %s to assign to a sparse matrix",
                 gpu_bytes_text((size_t)count * size));
    return room;
}
#define ROOM(array, count) \
    (((array) = take_room((count), sizeof *(array))) ? GPU_OK : GPU_MEMORY)

static int by_column(const void *a, const void *b)
{
    const target *x = a, *y = b;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Of places that come again the last one counts. */
static gpu_status find_row_sources(edit *e)
{
    const gpu_places *to = e->to;
    TRY(ROOM(e->row_from, e->s.rows));
    for (int64_t i = 0; i < e->s.rows; i++) {
        POLL_AT(i);
        e->row_from[i] = to->rows ? -1 : (int32_t)i;
    }
    for (int64_t k = 0; to->rows && k < to->nrows; k++)
        e->row_from[to->rows[k]] = (int32_t)k;
    return GPU_OK;
}

static gpu_status find_targets(edit *e)
{
    const gpu_places *to = e->to;
    if (!to->cols)
        return GPU_OK;
    TRY(ROOM(e->targets, to->ncols));
    TRY(ROOM(e->new_column, to->ncols));
    for (int64_t k = 0; k < to->ncols; k++)
        e->targets[k] = (target){to->cols[k], k};
    qsort(e->targets, (size_t)to->ncols, sizeof *e->targets, by_column);
    for (int64_t k = 0; k < to->ncols; k++) {
        const target t = e->targets[k];
        POLL_AT(k);
        if (e->ntargets > 0 && e->targets[e->ntargets - 1].column == t.column)
            e->new_column[e->targets[--e->ntargets].from] = -1;
        e->new_column[t.from] = (int32_t)t.column;
        e->targets[e->ntargets++] = t;
    }
    return GPU_OK;
}

/* Is the column among those that are written? */
static int is_written(const edit *e, int32_t column)
{
    int64_t low = 0, high = e->ntargets;
    if (!e->targets)
        return 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (e->targets[middle].column < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low < e->ntargets && e->targets[low].column == column;
}

/* The entries of row r of x that are put into a row, into e->row. */
static int64_t collect_row(edit *e, int64_t r)
{
    int64_t n = 0;
    int ascends = 1;
    for (int64_t k = e->x.starts[r]; k < e->x.starts[r + 1]; k++) {
        int32_t column = e->x.columns[k];
        column = e->new_column ? e->new_column[column] : column;
        if (column < 0)
            continue;
        e->row[n] = (target){column, k};
        ascends &= n == 0 || e->row[n - 1].column < column;
        n++;
    }
    if (!ascends)
        qsort(e->row, (size_t)n, sizeof *e->row, by_column);
    return n;
}

/* Row i of the result from entry n on, which row r of x is written into;
 * returns where it ends. */
static int64_t merge_row(edit *e, int64_t i, int64_t r, const gpu_rows_out *out,
                         int64_t n)
{
    int64_t given = collect_row(e, r), k = 0;
    for (int64_t old = e->s.starts[i]; old < e->s.starts[i + 1]; old++) {
        int32_t column = e->s.columns[old];
        if (is_written(e, column))
            continue;
        for (; k < given && e->row[k].column < column; k++, n++) {
            copy_entry(&e->x, e->row[k].from, out, n);
            out->columns[n] = (int32_t)e->row[k].column;
        }
        copy_entry(&e->s, old, out, n++);
    }
    for (; k < given; k++, n++) {
        copy_entry(&e->x, e->row[k].from, out, n);
        out->columns[n] = (int32_t)e->row[k].column;
    }
    return n;
}

/* Rows that stay, from first to the one before last. */
static int64_t copy_rows(const edit *e, int64_t first, int64_t last,
                         const gpu_rows_out *out, int64_t n)
{
    int64_t from = e->s.starts[first], count = e->s.starts[last] - from;
    size_t size = gpu_dtype_size(e->s.dtype);
    if (count > 0) {
        memcpy(out->columns + n, e->s.columns + from,
               (size_t)count * sizeof *out->columns);
        memcpy((char *)out->values + (size_t)n * size,
               (const char *)e->s.values + (size_t)from * size,
               (size_t)count * size);
    }
    for (int64_t i = first; i < last; i++)
        out->starts[i + 1] = (int32_t)(n + e->s.starts[i + 1] - from);
    return n + count;
}

static gpu_status write_rows(edit *e, const gpu_rows_out *out, int64_t *count)
{
    int64_t n = 0, last;
    TRY(find_row_sources(e));
    TRY(find_targets(e));
    TRY(ROOM(e->row, e->x.cols));
    out->starts[0] = 0;
    for (int64_t i = 0; i < e->s.rows; i = last) {
        TRY(gpu_poll());
        for (last = i;
             last < e->s.rows && last - i < GPU_POLL && e->row_from[last] < 0;)
            last++;
        n = copy_rows(e, i, last, out, n);
        for (;
             last < e->s.rows && last - i < GPU_POLL && e->row_from[last] >= 0;
             last++) {
            n = merge_row(e, last, e->row_from[last], out, n);
            out->starts[last + 1] = (int32_t)n;
        }
    }
    *count = n;
    return GPU_OK;
}

static gpu_status put_here(const gpu_sparse *s, const gpu_sparse *x,
                           const gpu_places *to, gpu_sparse *out)
{
    edit e = {.s = gpu_csr_of(s), .x = gpu_csr_of(x), .to = to};
    int64_t count = s->count + x->count;
    TRY(gpu_sparse_create_arrays(gpu_cpu(), s->values.dtype, s->rows, s->cols,
                                 count, out));
    gpu_rows_out rows = gpu_rows_of(out);
    gpu_status status = gpu_dry ? GPU_OK : write_rows(&e, &rows, &count);
    free_edit(&e);
    if (status == GPU_OK)
        status = gpu_sparse_cut_off(out, count);
    if (status != GPU_OK)
        gpu_sparse_release(out);
    return status;
}

static gpu_status check_put(const gpu_sparse *s, const gpu_sparse *x,
                            const gpu_places *to)
{
    int64_t rows = to->rows ? to->nrows : s->rows;
    int64_t cols = to->cols ? to->ncols : s->cols;
    gpu_dtype wider = gpu_dtype_wider(s->values.dtype, x->values.dtype);
    TRY(gpu_check_places("assignment", to->rows, to->nrows, s->rows, "row"));
    TRY(gpu_check_places("assignment", to->cols, to->ncols, s->cols, "column"));
    if (x->rows != rows || x->cols != cols) {
        const char *given = gpu_size_text(x->rows, x->cols);
        return gpu_fail(GPU_SHAPE, "assignment: %s does not fit into %s", given,
                        gpu_size_text(rows, cols));
    }
    if (gpu_dtype_is_complex(wider) && !gpu_is_complex(&s->values))
        return gpu_fail(
            GPU_TYPE,
            "assignment: complex values do not fit %s: make it "
            "complex first, S = S:%s()",
            gpu_dtype_name(s->values.dtype),
            gpu_dtype_name(gpu_dtype_made_complex(s->values.dtype)));
    return GPU_OK;
}

gpu_status gpu_sparse_put(const gpu_sparse *s, const gpu_sparse *x,
                          const gpu_places *to, gpu_sparse *out)
{
    gpu_device *d, *other;
    gpu_sparse here = {0}, block, whole = {0};
    *out = (gpu_sparse){0};
    TRY(gpu_sparse_check("assignment", s, &d));
    TRY(gpu_sparse_check("assignment", x, &other));
    TRY(check_put(s, x, to));
    TRY(gpu_sparse_bring(s, &here));
    gpu_status status = gpu_sparse_clone(x, s->values.dtype, gpu_cpu(), &block);
    if (status == GPU_OK) {
        status = put_here(&here, &block, to, &whole);
        gpu_sparse_release(&block);
    }
    gpu_sparse_release(&here);
    return status == GPU_OK ? gpu_sparse_send(&whole, s->values.dtype, d, out)
                            : status;
}
