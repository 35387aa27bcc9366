/* Matrices: storage with a count of references, shapes and views. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static uint32_t epoch;

/* From here on a size is first compared with the memory there is. */
enum { LARGE = 64 << 20 };
enum {
    WITHIN = 64, /* bytes kept in the storage itself, on the CPU */
    STORAGE_BYTES = sizeof(gpu_storage) + WITHIN
};

static struct {
    int (*collect)(void *data);
    void *data;
} garbage;

static const struct {
    const char *name;
    size_t size;
} dtypes[GPU_ALL_DTYPES] = {
    {"f32", 4}, {"f64", 8}, {"bool", 1}, {"c64", 8}, {"c128", 16}};

const char *gpu_dtype_name(gpu_dtype t)
{
    return dtypes[t].name;
}

size_t gpu_dtype_size(gpu_dtype t)
{
    return dtypes[t].size;
}

int gpu_dtype_find(const char *name, gpu_dtype *out)
{
    for (int t = 0; t < GPU_ALL_DTYPES; t++) {
        /* the letters behind the first are looked at only where it is right */
        if (*name == *dtypes[t].name && strcmp(name, dtypes[t].name) == 0) {
            *out = (gpu_dtype)t;
            return 1;
        }
    }
    return 0;
}

/* --- storage -------------------------------------------------------------- */

void gpu_on_memory_short(int (*collect)(void *data), void *data)
{
    garbage.collect = collect;
    garbage.data = data;
}

int gpu_collections;

int gpu_is_collecting(void)
{
    return gpu_collections > 0;
}

static void collect_garbage(void)
{
    if (!garbage.collect)
        return;
    /* not of finalisers */
    gpu_team through = gpu_compute_together((gpu_team){0});
    gpu_collections++;
    garbage.collect(garbage.data);
    gpu_collections--;
    gpu_compute_together(through);
}

void gpu_relieve(gpu_device *d)
{
    gpu_drop_all_kept(d);
    d->backend->sync(d->handle);
    collect_garbage();
    d->backend->trim(d->handle);
}

static int is_within_limit(const gpu_device *d, size_t bytes)
{
    return !d->is_cpu || bytes <= gpu_room_left();
}

static gpu_status out_of_memory(gpu_device *d, size_t bytes)
{
    if (!is_within_limit(d, bytes))
        return gpu_fail(GPU_MEMORY,
                        "out of memory: %s needed, but --memory allows %s, "
                        "of which matrices hold %s",
                        gpu_bytes_text(bytes),
                        gpu_bytes_text(gpu_memory_limit()),
                        gpu_bytes_text(gpu_host_live()));
    size_t free = 0, total = 0;
    if (d->backend->memory(d->handle, &free, &total) != GPU_OK || total == 0)
        return gpu_fail(
            GPU_MEMORY, "out of memory on %s: %s needed; matrices here hold %s",
            d->name, gpu_bytes_text(bytes), gpu_bytes_text(d->live));
    return gpu_fail(GPU_MEMORY,
                    "out of memory on %s: %s needed, %s free of %s; "
                    "matrices here hold %s%s",
                    d->name, gpu_bytes_text(bytes), gpu_bytes_text(free),
                    gpu_bytes_text(total), gpu_bytes_text(d->live),
                    d->is_cpu || bytes < LARGE
                        ? ""
                        : "; of matrices on the CPU matmul, sum, add and "
                          "others compute in tiles with {device=\"cuda\"}");
}

/* Systems promise memory they do not have, so large sizes are compared with
 * what is free before asking. */
int gpu_has_room(gpu_device *d, size_t bytes)
{
    size_t free = 0, total = 0;
    if (!is_within_limit(d, bytes))
        return 0;
    if (bytes < LARGE || d->backend->memory(d->handle, &free, &total) != GPU_OK)
        return 1;
    return total == 0 || bytes <= free;
}

static gpu_status try_allocating(gpu_device *d, size_t bytes, void **data)
{
    if (!gpu_has_room(d, bytes))
        return GPU_MEMORY;
    return d->backend->alloc(d->handle, bytes, data);
}

/* Garbage goes first; then what waits is worked out, as its operands may hold
 * more than it will. */
static gpu_status allocate(gpu_device *d, size_t bytes, void **data)
{
    gpu_status status = try_allocating(d, bytes, data);
    if (status != GPU_MEMORY)
        return status;
    if (gpu_is_making_room())
        return out_of_memory(d, bytes);
    gpu_relieve(d);
    if (try_allocating(d, bytes, data) == GPU_OK)
        return GPU_OK;
    gpu_settle_for_room();
    if (try_allocating(d, bytes, data) != GPU_OK)
        return out_of_memory(d, bytes);
    return GPU_OK;
}

static int is_within(const gpu_device *d, size_t bytes)
{
    return bytes <= WITHIN && d->is_cpu;
}

/* What a limit of the CPU's memory counts: of many small matrices the storages
 * themselves are the most. */
static size_t host_bytes(const gpu_storage *s)
{
    if (is_within(s->device, s->bytes))
        return STORAGE_BYTES;
    return STORAGE_BYTES + (s->device->is_cpu ? s->bytes : 0);
}

/* What storage without bytes points at, and in a dry run one whose bytes count:
 * nothing is ever read there, and views of it are as well aligned as real
 * ones. */
static void *const nowhere = (void *)4096, *const unseen = (void *)8192;

/* In a dry run garbage is looked for before what is held at once grows by an
 * eighth, as long as that does not take long. */
static void collect_dry(size_t bytes)
{
    enum { PART = 8 };
    gpu_dry->fresh += bytes;
    if (gpu_dry->fresh <= gpu_dry->live / PART || !garbage.collect ||
        !gpu_may_collect_dry())
        return;
    double start = gpu_now();
    gpu_dry->fresh = bytes;
    collect_garbage();
    gpu_dry->collecting += gpu_now() - start;
}

/* Bytes that are only counted. */
static void give_dry_bytes(gpu_storage *s)
{
    collect_dry(s->bytes);
    gpu_dry->live += s->bytes;
    if (gpu_dry->live > gpu_dry->peak)
        gpu_dry->peak = gpu_dry->live;
}

static void take_dry_bytes(const gpu_storage *s)
{
    if (gpu_dry && s->dry > gpu_dry->before)
        gpu_dry->live -= s->bytes;
}

/* A few elements on the CPU live right behind their storage: one call of
 * malloc less for the matrices of two or three rows people type. */
static gpu_status give_real_bytes(gpu_storage *s, void **data)
{
    gpu_device *d = s->device;
    *data = s + 1;
    if (!is_within(d, s->bytes))
        TRY(allocate(d, s->bytes, data));
    d->live += s->bytes;
    gpu_count_host((ptrdiff_t)host_bytes(s));
    if (d->live > d->peak_live)
        d->peak_live = d->live;
    return GPU_OK;
}

uint32_t gpu_dry_number(const gpu_matrix *m)
{
    return m->storage ? m->storage->dry : 0;
}

gpu_status gpu_give_bytes(gpu_storage *s, void **data)
{
    if (gpu_dry) {
        give_dry_bytes(s);
        *data = unseen;
    } else {
        TRY(give_real_bytes(s, data));
    }
    gpu_counted.allocations++;
    gpu_counted.allocated += s->bytes;
    return GPU_OK;
}

void gpu_take_bytes(gpu_storage *s, void *data)
{
    if (s->dry) {
        take_dry_bytes(s);
        return;
    }
    s->device->live -= s->bytes;
    gpu_count_host(-(ptrdiff_t)host_bytes(s));
    if (data != s + 1)
        s->device->backend->free(s->device->handle, data, s->bytes);
}

/* Storages that are unused, linked by their first words: each small operation
 * wants one, and many end at once, which malloc is slow at. */
enum { MOST_UNUSED = 8192 };

static struct {
    void *first;
    int count;
} unused;

#ifdef __SANITIZE_ADDRESS__
/* None is kept, so that what is used after its end is noticed. */
static int keeps_unused(void)
{
    return 0;
}
#else
static int keeps_unused(void)
{
    return unused.count < MOST_UNUSED;
}
#endif

static gpu_storage *take_unused(void)
{
    void *s = unused.first;
    if (!s)
        return malloc(STORAGE_BYTES);
    memcpy(&unused.first, s, sizeof unused.first);
    unused.count--;
    return s;
}

static void end_storage(gpu_storage *s)
{
    if (!keeps_unused()) {
        free(s);
        return;
    }
    memcpy(s, &unused.first, sizeof unused.first);
    unused.first = s;
    unused.count++;
}

static gpu_status create_storage(gpu_device *d, size_t bytes, gpu_storage **out)
{
    gpu_storage *s = take_unused();
    if (!s)
        return out_of_memory(d, gpu_dry ? sizeof *s : bytes);
    *s = (gpu_storage){.device = d,
                       .data = nowhere,
                       .bytes = bytes ? bytes : 1,
                       .references = 1,
                       .made = epoch,
                       .written = epoch,
                       .dry = gpu_dry ? ++gpu_dry->made : 0};
    *out = s;
    return GPU_OK;
}

static gpu_status count_bytes(int64_t rows, int64_t cols, gpu_dtype dtype,
                              size_t *bytes)
{
    if (rows < 0 || cols < 0)
        return gpu_fail(GPU_ARGUMENT, "a size cannot be negative: %lldx%lld",
                        (long long)rows, (long long)cols);
    int64_t elements, most = INT64_MAX / 16;
    if (rows > most || cols > most ||
        __builtin_mul_overflow(rows, cols, &elements) || elements > most)
        return gpu_fail(GPU_MEMORY, "%s is more elements than any memory holds",
                        gpu_size_text(rows, cols));
    *bytes = (size_t)elements * dtypes[dtype].size;
    return GPU_OK;
}

gpu_status gpu_create_pending(gpu_matrix *out, gpu_device *d, gpu_dtype dtype,
                              int ndim, int64_t rows, int64_t cols)
{
    size_t bytes;
    gpu_storage *storage = NULL;
    TRY(count_bytes(rows, cols, dtype, &bytes));
    TRY(create_storage(d, bytes, &storage));
    *out = (gpu_matrix){.storage = storage,
                        .dtype = dtype,
                        .ndim = ndim,
                        .rows = rows,
                        .cols = cols,
                        .row_stride = cols,
                        .col_stride = 1};
    return GPU_OK;
}

gpu_status gpu_create(gpu_matrix *out, gpu_device *device, gpu_dtype dtype,
                      int ndim, int64_t rows, int64_t cols)
{
    if (!device)
        TRY(gpu_default(&device));
    TRY(gpu_create_pending(out, device, dtype, ndim, rows, cols));
    gpu_storage *s = out->storage;
    gpu_status status = gpu_give_bytes(s, &s->data);
    if (status != GPU_OK) {
        end_storage(s);
        out->storage = NULL;
    }
    return status;
}

int gpu_take_answer(gpu_device *d, gpu_matrix *out)
{
    if (gpu_dry || !d->backend->slot)
        return 0;
    if (!d->answer && !(d->answer = malloc(sizeof *d->answer)))
        return 0;
    /* the device's own reference is never given up */
    *d->answer = (gpu_storage){.device = d,
                               .data = d->backend->slot(d->handle),
                               .bytes = sizeof(double),
                               .references = 2};
    gpu_counted.allocations++;
    gpu_counted.allocated += sizeof(double);
    *out = (gpu_matrix){.storage = d->answer,
                        .dtype = GPU_F64,
                        .ndim = 2,
                        .rows = 1,
                        .cols = 1,
                        .row_stride = 1,
                        .col_stride = 1};
    return 1;
}

void gpu_retain(const gpu_matrix *m)
{
    if (m->storage)
        m->storage->references++;
}

void gpu_release(gpu_matrix *m)
{
    gpu_storage *s = m->storage;
    m->storage = NULL;
    if (!s || --s->references > 0)
        return;
    if (s->kept > 0)
        gpu_drop_kept(s);
    if (s->pending)
        gpu_drop_pending(s);
    else if (s->data != nowhere) /* where it could not be made to wait */
        gpu_take_bytes(s, s->data);
    end_storage(s);
}

/* --- questions ------------------------------------------------------------ */

int64_t gpu_size(const gpu_matrix *m)
{
    return m->rows * m->cols;
}

size_t gpu_bytes(const gpu_matrix *m)
{
    return (size_t)gpu_size(m) * dtypes[m->dtype].size;
}

gpu_device *gpu_matrix_device(const gpu_matrix *m)
{
    return m->storage ? m->storage->device : NULL;
}

int gpu_is_lost(const gpu_matrix *m)
{
    const gpu_device *d = gpu_matrix_device(m);
    return d && gpu_device_is_lost(d);
}

int gpu_is_contiguous(const gpu_matrix *m)
{
    return (m->col_stride == 1 || m->cols <= 1) &&
           (m->row_stride == m->cols || m->rows <= 1);
}

int gpu_shares_storage(const gpu_matrix *a, const gpu_matrix *b)
{
    return a->storage && a->storage == b->storage;
}

size_t gpu_storage_bytes(const gpu_matrix *m)
{
    return m->storage ? m->storage->bytes : 0;
}

uint32_t gpu_begin_epoch(void)
{
    return ++epoch;
}

uint32_t gpu_epoch_made(const gpu_matrix *m)
{
    return m->storage ? m->storage->made : 0;
}

uint32_t gpu_epoch_written(const gpu_matrix *m)
{
    return m->storage ? m->storage->written : 0;
}

int gpu_same_view(const gpu_matrix *a, const gpu_matrix *b)
{
    return a->storage == b->storage && a->offset == b->offset &&
           a->dtype == b->dtype && a->rows == b->rows && a->cols == b->cols &&
           (a->rows <= 1 || a->row_stride == b->row_stride) &&
           (a->cols <= 1 || a->col_stride == b->col_stride);
}

gpu_view gpu_view_of(const gpu_matrix *m)
{
    char *base = m->storage->data;
    return (gpu_view){.data = base + m->offset * (int64_t)dtypes[m->dtype].size,
                      .dtype = m->dtype,
                      .rows = m->rows,
                      .cols = m->cols,
                      .row_stride = m->row_stride,
                      .col_stride = m->col_stride};
}

gpu_view gpu_turned(const gpu_view *v)
{
    return (gpu_view){.data = v->data,
                      .dtype = v->dtype,
                      .rows = v->cols,
                      .cols = v->rows,
                      .row_stride = v->col_stride,
                      .col_stride = v->row_stride};
}

gpu_view gpu_part(const gpu_view *v, int64_t row, int64_t col, int64_t rows,
                  int64_t cols)
{
    gpu_view part = *v;
    int64_t at = row * v->row_stride + col * v->col_stride;
    part.data = (char *)v->data + at * (int64_t)gpu_dtype_size(v->dtype);
    part.rows = rows;
    part.cols = cols;
    return part;
}

void gpu_note_write(const gpu_matrix *m)
{
    gpu_forget(m);
    m->storage->written = epoch;
}

/* In a dry run nothing is written, and a real operand is as it was. */
gpu_view gpu_target_of(const gpu_matrix *m)
{
    if (!gpu_dry)
        gpu_note_write(m);
    return gpu_view_of(m);
}

/* --- views ---------------------------------------------------------------- */

void gpu_view_transposed(const gpu_matrix *m, gpu_matrix *out)
{
    gpu_retain(m);
    *out = *m;
    if (m->ndim == 1)
        return;
    out->rows = m->cols;
    out->cols = m->rows;
    out->row_stride = m->col_stride;
    out->col_stride = m->row_stride;
}

static int slice_fits(gpu_slice s, int64_t size)
{
    int64_t last = s.first + (s.count - 1) * s.step;
    return s.count == 0 || (s.count > 0 && s.first >= 0 && s.first < size &&
                            last >= 0 && last < size);
}

gpu_status gpu_view_block(const gpu_matrix *m, gpu_slice rows, gpu_slice cols,
                          gpu_matrix *out)
{
    if (!slice_fits(rows, m->rows) || !slice_fits(cols, m->cols))
        return gpu_fail(GPU_RANGE, "the block is outside %s",
                        gpu_shape_text(m));
    gpu_retain(m);
    *out = *m;
    out->rows = rows.count;
    out->cols = cols.count;
    out->row_stride = m->row_stride * rows.step;
    out->col_stride = m->col_stride * cols.step;
    if (rows.count > 0 && cols.count > 0)
        out->offset += rows.first * m->row_stride + cols.first * m->col_stride;
    return GPU_OK;
}

int64_t gpu_without_repeats(const gpu_matrix *m, gpu_matrix *out)
{
    *out = *m;
    if (m->row_stride == 0 && m->rows > 0)
        out->rows = 1;
    if (m->col_stride == 0 && m->cols > 0)
        out->cols = 1;
    return gpu_size(m) == 0 ? 1 : m->rows / out->rows * (m->cols / out->cols);
}

void gpu_view_row(const gpu_matrix *m, int64_t i, gpu_matrix *out)
{
    gpu_retain(m);
    *out = *m;
    out->ndim = 1;
    out->rows = m->cols;
    out->cols = 1;
    out->row_stride = m->col_stride;
    out->col_stride = 1;
    out->offset += i * m->row_stride;
}

void gpu_view_column(const gpu_matrix *m, int64_t j, gpu_matrix *out)
{
    gpu_retain(m);
    *out = *m;
    out->ndim = 1;
    out->cols = 1;
    out->col_stride = 1;
    out->offset += j * m->col_stride;
}

void gpu_view_diagonal(const gpu_matrix *m, int64_t k, gpu_matrix *out)
{
    int64_t row = k < 0 ? -k : 0, col = k > 0 ? k : 0;
    int64_t down = m->rows - row, across = m->cols - col;
    int64_t count = down < across ? down : across;
    gpu_retain(m);
    *out = *m;
    out->ndim = 1;
    out->rows = count > 0 ? count : 0;
    out->cols = 1;
    out->row_stride = m->row_stride + m->col_stride;
    out->col_stride = 1;
    if (count > 0)
        out->offset += row * m->row_stride + col * m->col_stride;
}

/* Elements in row-major order lie one constant step apart in memory. */
static int is_evenly_spaced(const gpu_matrix *m, int64_t *step)
{
    *step = m->cols > 1 ? m->col_stride : m->row_stride;
    return m->rows <= 1 || m->cols <= 1 ||
           m->row_stride == m->cols * m->col_stride;
}

gpu_status gpu_reshape(const gpu_matrix *m, int ndim, int64_t rows,
                       int64_t cols, gpu_matrix *out)
{
    size_t bytes;
    TRY(count_bytes(rows, cols, m->dtype, &bytes));
    if (rows * cols != gpu_size(m))
        return gpu_fail(
            GPU_SHAPE, "reshape: %s has %lld elements, %lldx%lld has %lld",
            gpu_shape_text(m), (long long)gpu_size(m), (long long)rows,
            (long long)cols, (long long)(rows * cols));
    int64_t step;
    gpu_matrix flat = *m;
    if (!is_evenly_spaced(m, &step)) {
        TRY(gpu_clone(m, m->dtype, NULL, &flat));
        step = 1;
    } else {
        gpu_retain(m);
    }
    *out = flat;
    out->ndim = ndim;
    out->rows = rows;
    out->cols = cols;
    out->row_stride = cols * step;
    out->col_stride = step;
    return GPU_OK;
}
