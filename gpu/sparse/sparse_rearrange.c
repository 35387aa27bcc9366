/* Sparse matrices of entries of others: triangles and bands, Kronecker
 * products, blocks joined, other sizes, entries put over others. What a device
 * has no code for the CPU does, on copies. */
#include "complex_numbers.h"
#include "sparse.h"

#include <stdlib.h>

/* Where it is done, and of which type. */
typedef struct place {
    const char *name;
    gpu_device *device;
    gpu_dtype dtype;
} place;

/* The parts lie on the device and are of the type. */
static gpu_status arrange_on(const place *at, const gpu_sparse_arranging *how,
                             gpu_sparse *out)
{
    gpu_matrix shape = {
        .dtype = at->dtype, .ndim = 2, .rows = how->rows, .cols = how->cols};
    gpu_sparse_making m = {.dtype = at->dtype, .out = out};
    m.op = (gpu_operation){.name = at->name,
                           .kernel = "csr",
                           .device = at->device,
                           .result = &shape,
                           .extent = &shape};
    for (int64_t k = 0; k < how->count; k++)
        m.op.bytes += (double)how->parts[k].count *
                      (double)(gpu_dtype_size(at->dtype) + sizeof(int32_t));
    TRY(gpu_sparse_begin(&m, how->rows, how->cols));
    return gpu_sparse_end(&m,
                          RUN_OPERATION(&m.op, sparse_arrange, how, &m.told));
}

/* how has no parts yet: they are copies of `parts` where it is done. */
static gpu_status arrange_copies(const place *at, gpu_sparse_arranging *how,
                                 const gpu_sparse *const *parts,
                                 gpu_sparse *copies, gpu_csr *csr,
                                 gpu_sparse *out)
{
    gpu_status status = GPU_OK;
    int64_t made = 0;
    while (made < how->count && status == GPU_OK) {
        status =
            gpu_sparse_clone(parts[made], at->dtype, at->device, &copies[made]);
        if (status == GPU_OK) {
            csr[made] = gpu_csr_of(&copies[made]);
            made++;
        }
    }
    how->parts = csr;
    if (status == GPU_OK)
        status = arrange_on(at, how, out);
    while (made > 0)
        gpu_sparse_release(&copies[--made]);
    return status;
}

static gpu_status arrange_parts(const place *at, gpu_sparse_arranging *how,
                                const gpu_sparse *const *parts, gpu_sparse *out)
{
    gpu_sparse *copies = malloc((size_t)how->count * sizeof *copies);
    gpu_csr *csr = malloc((size_t)how->count * sizeof *csr);
    gpu_status status =
        copies && csr ? arrange_copies(at, how, parts, copies, csr, out)
                      : gpu_fail(GPU_MEMORY, "%s: out of memory", at->name);
    free(copies);
    free(csr);
    return status;
}

/* All parts are there, on one device. */
static gpu_status check_parts(const char *name, const gpu_sparse *const *parts,
                              int64_t count, gpu_device **d, gpu_dtype *type)
{
    for (int64_t k = 0; k < count; k++) {
        const gpu_matrix *in[] = {&parts[0]->values, &parts[k]->values};
        TRY(gpu_check_complex(name, in, 2, d));
        *type = k == 0 ? in[1]->dtype : gpu_dtype_wider(*type, in[1]->dtype);
    }
    return GPU_OK;
}

/* how has the sizes and no parts. */
static gpu_status arrange(const char *name, gpu_sparse_arranging *how,
                          const gpu_sparse *const *parts, gpu_sparse *out)
{
    gpu_device *d = NULL;
    gpu_dtype type = GPU_F32;
    gpu_sparse made;
    *out = (gpu_sparse){0};
    TRY(check_parts(name, parts, how->count, &d, &type));
    if (how->rows > INT32_MAX || how->cols > INT32_MAX)
        return gpu_fail(GPU_ARGUMENT,
                        "%s: %lldx%lld: a size of a sparse matrix must be "
                        "below 2147483648",
                        name, (long long)how->rows, (long long)how->cols);
    gpu_device *there = d->backend->sparse_arrange ? d : gpu_cpu();
    place at = {name, there, type};
    if (there != d)
        gpu_note_fallback();
    TRY(arrange_parts(&at, how, parts, &made));
    return gpu_sparse_send(&made, type, d, out);
}

static int64_t within(int64_t x)
{
    const int64_t most = 1ll << 32;
    return x < -most ? -most : x > most ? most : x;
}

gpu_status gpu_sparse_band(const char *name, const gpu_sparse *s, int64_t first,
                           int64_t last, gpu_sparse *out)
{
    gpu_sparse_arranging how = {.kind = GPU_SPARSE_BAND,
                                .count = 1,
                                .rows = s->rows,
                                .cols = s->cols,
                                .low = within(first),
                                .high = within(last) + 1};
    return arrange(name, &how, &s, out);
}

gpu_status gpu_sparse_kron(const gpu_sparse *a, const gpu_sparse *b,
                           gpu_sparse *out)
{
    const gpu_sparse *parts[] = {a, b};
    gpu_sparse_arranging how = {.kind = GPU_SPARSE_KRON,
                                .count = 2,
                                .rows = a->rows * b->rows,
                                .cols = a->cols * b->cols};
    return arrange("kron", &how, parts, out);
}

gpu_status gpu_sparse_join(const char *name, int axis,
                           const gpu_sparse *const *parts, int64_t count,
                           gpu_sparse *out)
{
    gpu_sparse_arranging how = {.kind = axis == 1 ? GPU_SPARSE_ABOVE
                                                  : GPU_SPARSE_BESIDE,
                                .count = count,
                                .rows = parts[0]->rows,
                                .cols = parts[0]->cols};
    for (int64_t k = 1; k < count; k++) {
        int64_t own = axis == 1 ? parts[k]->cols : parts[k]->rows;
        int64_t wanted = axis == 1 ? how.cols : how.rows;
        if (own != wanted)
            return gpu_fail(GPU_SHAPE,
                            "%s: numbers of %s differ (%lld and %lld)", name,
                            axis == 1 ? "columns" : "rows", (long long)wanted,
                            (long long)own);
        how.rows += axis == 1 ? parts[k]->rows : 0;
        how.cols += axis == 2 ? parts[k]->cols : 0;
    }
    return arrange(name, &how, parts, out);
}

gpu_status gpu_sparse_reshape(const gpu_sparse *s, int64_t rows, int64_t cols,
                              gpu_sparse *out)
{
    gpu_sparse_arranging how = {
        .kind = GPU_SPARSE_RESHAPED, .count = 1, .rows = rows, .cols = cols};
    *out = (gpu_sparse){0};
    if (s->rows * s->cols != rows * cols)
        return gpu_fail(GPU_SHAPE, "reshape: %s has %lld elements, %s has %lld",
                        gpu_size_text(s->rows, s->cols),
                        (long long)(s->rows * s->cols),
                        gpu_size_text(rows, cols), (long long)(rows * cols));
    return arrange("reshape", &how, &s, out);
}

gpu_status gpu_sparse_replace(const gpu_sparse *s, const gpu_sparse *x,
                              gpu_sparse *out)
{
    gpu_sparse_arranging how = {.kind = GPU_SPARSE_REPLACED,
                                .count = 2,
                                .rows = s->rows,
                                .cols = s->cols};
    gpu_sparse same;
    *out = (gpu_sparse){0};
    if (x->rows != s->rows || x->cols != s->cols)
        return gpu_fail(GPU_SHAPE, "assignment: shapes differ (%s, mask %s)",
                        gpu_size_text(s->rows, s->cols),
                        gpu_size_text(x->rows, x->cols));
    TRY(gpu_sparse_clone(x, s->values.dtype, gpu_matrix_device(&s->values),
                         &same));
    const gpu_sparse *parts[] = {s, &same};
    gpu_status status = arrange("assignment", &how, parts, out);
    gpu_sparse_release(&same);
    return status;
}
