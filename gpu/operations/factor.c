/* Factorisations: Cholesky, LU, QR, singular values, symmetric eigenvalues, and
 * what is solved with them. A backend without them has the CPU do it, on
 * copies. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"

#include <string.h>

static gpu_status check_operands(const char *name, const gpu_matrix *a,
                                 gpu_device **d)
{
    const gpu_matrix *in[] = {a};
    TRY(gpu_check_complex(name, in, 1, d));
    if (a->ndim == 2)
        return GPU_OK;
    return gpu_fail(GPU_SHAPE, "%s: needs a matrix, not a vector of %s", name,
                    gpu_shape_text(a));
}

static gpu_status check_square(const char *name, const gpu_matrix *a,
                               gpu_device **d)
{
    TRY(check_operands(name, a, d));
    if (a->rows == a->cols)
        return GPU_OK;
    return gpu_fail(GPU_SHAPE, "%s: needs a square matrix, not %s", name,
                    gpu_shape_text(a));
}

static gpu_dtype factor_type(const gpu_matrix *a)
{
    return a->dtype == GPU_BOOL ? GPU_F32 : a->dtype;
}

static int64_t smaller_side(const gpu_matrix *a)
{
    return a->rows < a->cols ? a->rows : a->cols;
}

/* Where a step of a is worked out, its own device or the CPU, and by which
 * rung. Of f the kind is known, and whether there are places. */
static gpu_device *choose(gpu_device *d, const gpu_matrix *a, gpu_factoring *f)
{
    const gpu_backend *b = d->backend;
    f->a =
        (gpu_view){.dtype = factor_type(a), .rows = a->rows, .cols = a->cols};
    f->rung =
        b->factor && b->choose_factor ? b->choose_factor(d->handle, f) : NULL;
    return b->factor && (f->rung || !b->choose_factor) ? d : gpu_cpu();
}

/* The same by a kernel that is asked for, or none. */
static gpu_status choose_kernel(gpu_device *d, const gpu_matrix *a,
                                const char *operation, const char *kernel,
                                gpu_factoring *f, gpu_device **there)
{
    *there = choose(d, a, f);
    if (!kernel || strcmp(kernel, "auto") == 0)
        return GPU_OK;
    *there = d;
    return gpu_find_rung(d, operation, kernel, factor_type(a), &f->rung);
}

int gpu_is_left_to_cpu(gpu_status status, gpu_device **there)
{
    if (status != GPU_UNSUPPORTED || (*there)->is_cpu)
        return 0;
    *there = gpu_cpu();
    return 1;
}

/* A copy of m on d whose elements lie column by column. */
static gpu_status columns_of(const gpu_matrix *m, gpu_dtype type, gpu_device *d,
                             gpu_matrix *out)
{
    gpu_matrix turned, copy;
    if (d != gpu_matrix_device(m))
        gpu_note_fallback();
    if (m->ndim == 1)
        return gpu_clone(m, type, d, out);
    gpu_view_transposed(m, &turned);
    gpu_status status = gpu_clone(&turned, type, d, &copy);
    gpu_release(&turned);
    if (status != GPU_OK)
        return status;
    gpu_view_transposed(&copy, out);
    gpu_release(&copy);
    return GPU_OK;
}

/* The same of what is only read: m itself, where it lies so. */
static gpu_status read_columns(const gpu_matrix *m, gpu_dtype type,
                               gpu_device *d, gpu_matrix *out)
{
    int near = m->rows <= 1 || m->row_stride == 1;
    int dense = m->ndim == 1 || m->cols <= 1 || m->col_stride == m->rows;
    if (gpu_matrix_device(m) != d || m->dtype != type || !near || !dense ||
        m->is_conjugated)
        return columns_of(m, type, d, out);
    gpu_retain(m);
    *out = *m;
    return GPU_OK;
}

static gpu_status new_columns(gpu_device *d, gpu_dtype type, int64_t rows,
                              int64_t cols, gpu_matrix *out)
{
    gpu_matrix turned;
    TRY(gpu_create(&turned, d, type, 2, cols, rows));
    gpu_view_transposed(&turned, out);
    gpu_release(&turned);
    return GPU_OK;
}

/* m comes to be on d, where it is wanted; fails with it released. */
static gpu_status bring_to(gpu_device *d, gpu_matrix *m)
{
    gpu_matrix there;
    if (gpu_matrix_device(m) == d)
        return GPU_OK;
    gpu_status status = columns_of(m, m->dtype, d, &there);
    gpu_release(m);
    m->storage = NULL;
    if (status == GPU_OK)
        *m = there;
    return status;
}

/* Runs it, unless there is nothing to do. flops: of real numbers. */
static gpu_status run(const char *name, gpu_device *d, gpu_factoring *f,
                      const gpu_matrix *result, double flops)
{
    flops *= gpu_dtype_is_complex(f->a.dtype) ? 4 : 1;
    f->flops = flops;
    f->trouble = 0;
    if (f->a.rows == 0 || f->a.cols == 0)
        return GPU_OK;
    gpu_operation op = {.name = name,
                        .kernel = f->rung ? f->rung->name : "lapack",
                        .device = d,
                        .result = result,
                        .k = f->a.cols,
                        .flops = flops,
                        .bytes = (double)gpu_bytes(result)};
    return RUN_OPERATION(&op, factor, f);
}

/* Of LU; QR takes twice as many. */
static double lu_flops(const gpu_matrix *a)
{
    double k = (double)smaller_side(a);
    double longer = (double)(a->rows > a->cols ? a->rows : a->cols);
    return k * k * (longer - k / 3);
}

static gpu_status clear_whole_above(gpu_matrix *m)
{
    const gpu_matrix *in[] = {m};
    gpu_program p;
    gpu_program_start(&p, 1);
    int zero = gpu_program_constant(&p, 0);
    int row = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    int col = gpu_program_add(&p, GPU_OP_COL, 0, 0, 0);
    int is_below = gpu_program_add(&p, GPU_OP_ge, row, col, 0);
    gpu_program_add(&p, GPU_OP_where, is_below, 0, zero);
    return gpu_map("chol", &p, in, m);
}

static gpu_status clear_block(gpu_matrix *m, gpu_slice rows, gpu_slice cols,
                              gpu_status (*clear)(gpu_matrix *m))
{
    gpu_matrix part;
    TRY(gpu_view_block(m, rows, cols, &part));
    gpu_status status = clear(&part);
    gpu_release(&part);
    return status;
}

static gpu_status fill_with_zeros(gpu_matrix *m)
{
    return gpu_is_complex(m) ? gpu_complex_fill(m, (gpu_complex){0, 0})
                             : gpu_fill(m, 0);
}

/* On a CPU rectangles are filled, which reads nothing, and squares along the
 * diagonal looked at. */
static gpu_status clear_parts_above(gpu_matrix *m)
{
    enum { SQUARE = 64 };
    if (m->rows <= SQUARE)
        return clear_whole_above(m);
    int64_t half = m->rows / 2;
    gpu_slice first = {0, 1, half}, second = {half, 1, m->rows - half};
    TRY(clear_block(m, first, first, clear_parts_above));
    TRY(clear_block(m, first, second, fill_with_zeros));
    return clear_block(m, second, second, clear_parts_above);
}

/* What is above the diagonal becomes 0. */
static gpu_status clear_above(gpu_matrix *m)
{
    gpu_quiet before = gpu_begin_quiet();
    int is_here = gpu_device_is_cpu(gpu_matrix_device(m));
    return gpu_end_quiet(before,
                         is_here ? clear_parts_above(m) : clear_whole_above(m));
}

/* Of a matrix without elements any orthogonal ones are factors. */
static gpu_status make_identity(gpu_matrix *m)
{
    gpu_matrix diagonal;
    if (gpu_size(m) == 0)
        return GPU_OK;
    TRY(gpu_fill(m, 0));
    gpu_view_diagonal(m, 0, &diagonal);
    gpu_status status = gpu_fill(&diagonal, 1);
    gpu_release(&diagonal);
    return status;
}

/* --- Cholesky, LU --------------------------------------------------------- */

gpu_status gpu_cholesky(const gpu_matrix *a, const char *kernel, gpu_matrix *l,
                        int64_t *minor)
{
    gpu_device *d;
    double n = (double)a->rows;
    l->storage = NULL;
    TRY(check_square("chol", a, &d));
    gpu_factoring f = {.kind = GPU_FACTOR_CHOLESKY};
    gpu_device *there;
    TRY(choose_kernel(d, a, "chol", kernel, &f, &there));
    TRY(columns_of(a, factor_type(a), there, l));
    f.a = gpu_target_of(l);
    gpu_status status = run("chol", there, &f, l, n * n * n / 3);
    if (status == GPU_OK && f.trouble == 0)
        status = clear_above(l);
    *minor = f.trouble;
    if (status == GPU_OK && f.trouble == 0)
        return bring_to(d, l);
    gpu_release(l);
    l->storage = NULL;
    return status;
}

static gpu_status lu_there(gpu_device *there, const gpu_matrix *a,
                           gpu_factoring *f, gpu_matrix *packed)
{
    TRY(columns_of(a, factor_type(a), there, packed));
    f->a = gpu_target_of(packed);
    for (int64_t i = 0; i < a->rows; i++)
        f->places[i] = i;
    gpu_status status = run("lu", there, f, packed, lu_flops(a));
    if (status == GPU_OK)
        return GPU_OK;
    gpu_release(packed);
    packed->storage = NULL;
    return status;
}

gpu_status gpu_lu(const gpu_matrix *a, const char *kernel, gpu_matrix *packed,
                  int64_t *places, int64_t *zero)
{
    gpu_device *d;
    packed->storage = NULL;
    TRY(check_operands("lu", a, &d));
    gpu_factoring f = {.kind = GPU_FACTOR_LU, .places = places};
    gpu_device *there;
    TRY(choose_kernel(d, a, "lu", kernel, &f, &there));
    gpu_status status = lu_there(there, a, &f, packed);
    if (gpu_is_left_to_cpu(status, &there)) {
        f.rung = NULL;
        status = lu_there(there, a, &f, packed);
    }
    *zero = f.trouble;
    return status == GPU_OK ? bring_to(d, packed) : status;
}

/* --- QR ------------------------------------------------------------------- */

static gpu_status make_qr(gpu_device *d, const gpu_matrix *a,
                          const char *kernel, gpu_matrix *packed,
                          gpu_matrix *tau, int64_t *places)
{
    gpu_factoring f = {.kind = GPU_FACTOR_QR, .places = places};
    gpu_device *there;
    TRY(choose_kernel(d, a, "qr", kernel, &f, &there));
    if (places && f.rung)
        return gpu_fail(GPU_ARGUMENT,
                        "qr: kernel %s does not order columns: "
                        "leave out kernel, or pivots",
                        f.rung->name);
    TRY(columns_of(a, factor_type(a), there, packed));
    TRY(gpu_create(tau, there, packed->dtype, 1, smaller_side(a), 1));
    f.a = gpu_target_of(packed);
    f.values = gpu_target_of(tau);
    return run("qr", there, &f, packed, 2 * lu_flops(a));
}

gpu_status gpu_qr(const gpu_matrix *a, const char *kernel, gpu_matrix *packed,
                  gpu_matrix *tau, int64_t *places)
{
    gpu_device *d;
    packed->storage = tau->storage = NULL;
    TRY(check_operands("qr", a, &d));
    for (int64_t j = 0; places && j < a->cols; j++)
        places[j] = j;
    gpu_status status = make_qr(d, a, kernel, packed, tau, places);
    if (status == GPU_OK)
        status = bring_to(d, packed);
    if (status == GPU_OK)
        status = bring_to(d, tau);
    if (status == GPU_OK)
        return GPU_OK;
    gpu_release(packed);
    gpu_release(tau);
    packed->storage = tau->storage = NULL;
    return status;
}

/* The parts of a QR where they can be worked with, and f of them. */
static gpu_status begin_q(const char *name, const gpu_matrix *packed,
                          const gpu_matrix *tau, gpu_matrix parts[2],
                          gpu_factoring *f, gpu_device **d, gpu_device **there)
{
    const gpu_matrix *in[] = {packed, tau};
    parts[0].storage = parts[1].storage = NULL;
    TRY(gpu_check_complex(name, in, 2, d));
    *there = choose(*d, packed, f);
    TRY(read_columns(packed, packed->dtype, *there, &parts[0]));
    TRY(read_columns(tau, packed->dtype, *there, &parts[1]));
    f->a = gpu_view_of(&parts[0]);
    f->values = gpu_view_of(&parts[1]);
    return GPU_OK;
}

gpu_status gpu_qr_q(const gpu_matrix *packed, const gpu_matrix *tau,
                    int64_t cols, gpu_matrix *q)
{
    gpu_device *d, *there = NULL;
    gpu_matrix parts[2];
    gpu_factoring f = {.kind = GPU_FACTOR_Q};
    double m = (double)packed->rows, n = (double)cols;
    q->storage = NULL;
    gpu_status status = begin_q("qr", packed, tau, parts, &f, &d, &there);
    if (status == GPU_OK)
        status = new_columns(there, packed->dtype, packed->rows, cols, q);
    if (status == GPU_OK) {
        double flops = 4 * m * n * (double)smaller_side(packed);
        f.b = gpu_target_of(q);
        status = gpu_size(packed) > 0 ? run("qr", there, &f, q, flops)
                                      : make_identity(q);
    }
    gpu_release(&parts[0]);
    gpu_release(&parts[1]);
    if (status == GPU_OK)
        return bring_to(d, q);
    gpu_release(q);
    q->storage = NULL;
    return status;
}

gpu_status gpu_qr_apply(const gpu_matrix *packed, const gpu_matrix *tau,
                        int turned, const gpu_matrix *b, gpu_matrix *out)
{
    gpu_device *d, *there = NULL;
    const gpu_matrix *in[] = {packed, tau, b};
    gpu_matrix parts[2];
    gpu_factoring f = {
        .kind = GPU_FACTOR_APPLY_Q, .is_turned = turned, .is_conjugated = 1};
    out->storage = NULL;
    TRY(gpu_check_complex("qr", in, 3, &d));
    if (b->rows != packed->rows)
        return gpu_fail(GPU_SHAPE, "qr: Q is of %lld rows, the right side %s",
                        (long long)packed->rows, gpu_shape_text(b));
    gpu_status status = begin_q("qr", packed, tau, parts, &f, &d, &there);
    if (status == GPU_OK)
        status = columns_of(b, packed->dtype, there, out);
    if (status == GPU_OK && gpu_size(b) > 0) {
        f.b = gpu_target_of(out);
        status = run("qr", there, &f, out,
                     4 * (double)gpu_size(b) * (double)smaller_side(packed));
    }
    gpu_release(&parts[0]);
    gpu_release(&parts[1]);
    if (status == GPU_OK)
        return bring_to(d, out);
    gpu_release(out);
    out->storage = NULL;
    return status;
}

/* --- triangles ------------------------------------------------------------ */

/* t may lie row by row: then its transpose is what is read. Conjugates that are
 * not transposed as well nobody solves with: they are copied. */
static gpu_status solve_there(gpu_device *there, const gpu_matrix *t,
                              gpu_triangle how, gpu_factoring *f, gpu_matrix *x)
{
    gpu_matrix stored = *t, turned, part;
    double n = (double)t->rows;
    int is_conjugated = gpu_is_complex(t) && t->is_conjugated != how.is_turned;
    int by_rows = t->col_stride == 1 && t->rows > 1;
    if (is_conjugated && by_rows == how.is_turned)
        by_rows = !by_rows;
    stored.is_conjugated = 0;
    gpu_view_transposed(&stored, &turned);
    gpu_status status =
        read_columns(by_rows ? &turned : &stored, x->dtype, there, &part);
    gpu_release(&turned);
    if (status != GPU_OK)
        return status;
    f->a = gpu_view_of(&part);
    f->b = gpu_target_of(x);
    f->is_lower = by_rows ? !how.is_lower : how.is_lower;
    f->is_turned = by_rows ? !how.is_turned : how.is_turned;
    f->is_conjugated = is_conjugated;
    f->is_unit = how.is_unit;
    status = run("solve", there, f, x, n * n * (double)x->cols);
    gpu_release(&part);
    return status;
}

gpu_status gpu_solve_triangle(const gpu_matrix *t, gpu_triangle how,
                              const gpu_matrix *b, gpu_matrix *x, int64_t *zero)
{
    gpu_device *d;
    const gpu_matrix *in[] = {t, b};
    *zero = 0;
    x->storage = NULL;
    TRY(gpu_check_complex("solve", in, 2, &d));
    TRY(check_square("solve", t, &d));
    if (b->rows != t->rows)
        return gpu_fail(GPU_SHAPE, "solve: %s has %lld rows, the right side %s",
                        gpu_shape_text(t), (long long)t->rows,
                        gpu_shape_text(b));
    gpu_factoring f = {.kind = GPU_FACTOR_TRIANGLE};
    gpu_device *there = choose(d, t, &f);
    gpu_dtype type = gpu_dtype_wider(t->dtype, b->dtype);
    TRY(columns_of(b, type, there, x));
    gpu_status status = GPU_OK;
    if (gpu_size(b) > 0)
        status = solve_there(there, t, how, &f, x);
    if (gpu_is_left_to_cpu(status, &there)) {
        f.rung = NULL;
        gpu_release(x);
        TRY(columns_of(b, type, there, x));
        status = solve_there(there, t, how, &f, x);
    }
    *zero = f.trouble;
    if (status == GPU_OK && *zero == 0)
        return bring_to(d, x);
    gpu_release(x);
    x->storage = NULL;
    return status;
}

/* --- singular values, eigenvalues ----------------------------------------- */

static gpu_status svd_there(gpu_device *there, const gpu_kernel *rung,
                            const gpu_matrix *a, gpu_svd_parts parts,
                            gpu_matrix *s, gpu_matrix *u, gpu_matrix *turned_v,
                            int64_t *trouble)
{
    gpu_matrix copy;
    gpu_dtype type = factor_type(a);
    gpu_factoring f = {.kind = GPU_FACTOR_SVD, .rung = rung};
    int64_t k = smaller_side(a), m = a->rows, n = a->cols;
    double least = (double)k, flops = 4 * least * least * (double)(m + n - k);
    TRY(gpu_create(s, there, gpu_dtype_of_parts(type), 1, k, 1));
    if (parts != GPU_SVD_VALUES) {
        int is_full = parts == GPU_SVD_FULL;
        TRY(new_columns(there, type, m, is_full ? m : k, u));
        TRY(new_columns(there, type, is_full ? n : k, n, turned_v));
        flops = 14 * least * least * (double)(m + n - k) +
                8 * least * least * least;
    }
    TRY(columns_of(a, type, there, &copy));
    f.a = gpu_target_of(&copy);
    f.values = gpu_target_of(s);
    if (parts != GPU_SVD_VALUES) {
        f.b = gpu_target_of(u);
        f.v = gpu_target_of(turned_v);
    }
    gpu_status status = run("svd", there, &f, s, flops);
    *trouble = f.trouble;
    gpu_release(&copy);
    return status;
}

/* What cuSOLVER does not do of these elements is the CPU's. */
static gpu_status make_svd(gpu_device *d, const gpu_matrix *a,
                           gpu_svd_parts parts, gpu_matrix *s, gpu_matrix *u,
                           gpu_matrix *turned_v, int64_t *trouble)
{
    gpu_factoring f = {.kind = GPU_FACTOR_SVD};
    gpu_device *there = choose(d, a, &f);
    gpu_status status =
        svd_there(there, f.rung, a, parts, s, u, turned_v, trouble);
    if (!gpu_is_left_to_cpu(status, &there))
        return status;
    gpu_release(s);
    gpu_release(u);
    gpu_release(turned_v);
    return svd_there(there, NULL, a, parts, s, u, turned_v, trouble);
}

gpu_status gpu_svd(const gpu_matrix *a, gpu_svd_parts parts, gpu_matrix *s,
                   gpu_matrix *u, gpu_matrix *v, int64_t *trouble)
{
    gpu_device *d;
    gpu_matrix turned = {.storage = NULL};
    s->storage = u->storage = v->storage = NULL;
    *trouble = 0;
    TRY(check_operands("svd", a, &d));
    gpu_status status = make_svd(d, a, parts, s, u, &turned, trouble);
    if (status == GPU_OK && parts != GPU_SVD_VALUES) {
        gpu_view_transposed(&turned, v);
        v->is_conjugated = gpu_is_complex(v);
        if (gpu_size(a) == 0)
            status = make_identity(u);
        if (gpu_size(a) == 0 && status == GPU_OK)
            status = make_identity(v);
    }
    gpu_release(&turned);
    gpu_matrix *all[] = {s, u, v};
    for (int i = 0; i < 3 && status == GPU_OK; i++)
        if (all[i]->storage)
            status = bring_to(d, all[i]);
    for (int i = 0; i < 3 && status != GPU_OK; i++) {
        gpu_release(all[i]);
        all[i]->storage = NULL;
    }
    return status;
}

gpu_status gpu_eigh(const gpu_matrix *a, gpu_matrix *values, gpu_matrix *v,
                    int64_t *trouble)
{
    gpu_device *d;
    gpu_matrix vectors = {.storage = NULL};
    double n = (double)a->rows;
    values->storage = NULL;
    *trouble = 0;
    if (v)
        v->storage = NULL;
    TRY(check_square("eigh", a, &d));
    gpu_factoring f = {.kind = GPU_FACTOR_EIGH, .wants_vectors = v != NULL};
    gpu_device *there = choose(d, a, &f);
    gpu_status status = columns_of(a, factor_type(a), there, &vectors);
    if (status == GPU_OK)
        status = gpu_create(values, there, gpu_dtype_of_parts(factor_type(a)),
                            1, a->rows, 1);
    if (status == GPU_OK) {
        f.a = gpu_target_of(&vectors);
        f.values = gpu_target_of(values);
        status = run("eigh", there, &f, v ? &vectors : values,
                     (v ? 9 : 4 / 3.0) * n * n * n);
        *trouble = f.trouble;
    }
    if (status == GPU_OK)
        status = bring_to(d, values);
    if (status == GPU_OK && v)
        status = bring_to(d, &vectors);
    if (status == GPU_OK && v) {
        *v = vectors;
        return GPU_OK;
    }
    gpu_release(&vectors);
    if (status != GPU_OK) {
        gpu_release(values);
        values->storage = NULL;
    }
    return status;
}
