/* What moves, adds up and multiplies complex matrices, part by part, products
 * on a GPU as one real product: see complex_numbers.h. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"

#include <math.h>
#include <stdlib.h>

/* One instruction over matrices, into out or a new one. */
static gpu_status map_op(const char *name, gpu_op op, const gpu_matrix *x,
                         const gpu_matrix *y, gpu_matrix *out)
{
    gpu_program p;
    const gpu_matrix *in[] = {x, y};
    gpu_program_start(&p, gpu_op_arity(op));
    gpu_program_add(&p, op, 0, 1, 0);
    return gpu_map(name, &p, in, out);
}

gpu_status gpu_sizes_of(const gpu_matrix *m, gpu_matrix *out)
{
    out->storage = NULL;
    return map_op("abs", GPU_OP_abs, m, NULL, out);
}

/* The complex matrix of two new parts, which are released; of those of a
 * conjugated one. */
static gpu_status join(gpu_matrix parts[2], gpu_dtype type, int is_conjugated,
                       gpu_matrix *out)
{
    gpu_status status = gpu_complex_join(&parts[0], &parts[1], type, out);
    gpu_release(&parts[0]);
    gpu_release(&parts[1]);
    if (status == GPU_OK)
        out->is_conjugated = is_conjugated;
    return status;
}

/* --- moving ----------------------------------------------------------------
 * An element of c64 has the size of one of f64, and is moved as such. */

/* What f64 became of those bits. */
static void from_f64(const gpu_matrix *like, gpu_matrix *out)
{
    out->dtype = GPU_C64;
    out->is_conjugated = like->is_conjugated;
}

gpu_status gpu_gather_complex(const gpu_matrix *m, const int64_t *rows,
                              int64_t nrows, const int64_t *cols, int64_t ncols,
                              gpu_matrix *out)
{
    gpu_matrix parts[2], moved[2] = {{.storage = NULL}, {.storage = NULL}};
    gpu_parts_of(m, parts);
    if (m->dtype == GPU_C64) {
        gpu_matrix bits = gpu_as_f64(m);
        TRY(gpu_gather(&bits, rows, nrows, cols, ncols, out));
        from_f64(m, out);
        return GPU_OK;
    }
    TRY(gpu_gather(&parts[0], rows, nrows, cols, ncols, &moved[0]));
    gpu_status status =
        gpu_gather(&parts[1], rows, nrows, cols, ncols, &moved[1]);
    if (status == GPU_OK)
        return join(moved, m->dtype, m->is_conjugated, out);
    gpu_release(&moved[0]);
    return status;
}

gpu_status gpu_take_complex(const gpu_matrix *m, const gpu_matrix *rows,
                            const gpu_matrix *cols, gpu_matrix *out)
{
    gpu_matrix parts[2], moved[2] = {{.storage = NULL}, {.storage = NULL}};
    gpu_parts_of(m, parts);
    if (m->dtype == GPU_C64) {
        gpu_matrix bits = gpu_as_f64(m);
        TRY(gpu_take(&bits, rows, cols, out));
        from_f64(m, out);
        return GPU_OK;
    }
    TRY(gpu_take(&parts[0], rows, cols, &moved[0]));
    gpu_status status = gpu_take(&parts[1], rows, cols, &moved[1]);
    if (status == GPU_OK)
        return join(moved, m->dtype, m->is_conjugated, out);
    gpu_release(&moved[0]);
    return status;
}

gpu_status gpu_compress_complex(const gpu_matrix *m, const gpu_matrix *mask,
                                gpu_matrix *out)
{
    gpu_matrix parts[2], moved[2] = {{.storage = NULL}, {.storage = NULL}};
    gpu_parts_of(m, parts);
    if (m->dtype == GPU_C64) {
        gpu_matrix bits = gpu_as_f64(m);
        TRY(gpu_compress(&bits, mask, out));
        from_f64(m, out);
        return GPU_OK;
    }
    TRY(gpu_compress(&parts[0], mask, &moved[0]));
    gpu_status status = gpu_compress(&parts[1], mask, &moved[1]);
    if (status == GPU_OK)
        return join(moved, m->dtype, m->is_conjugated, out);
    gpu_release(&moved[0]);
    return status;
}

/* from as m has its elements: of its type, and conjugated if it is. */
static gpu_status as_target(const char *name, const gpu_matrix *from,
                            const gpu_matrix *m, gpu_matrix *out)
{
    if (!gpu_is_complex(m))
        return gpu_fail(GPU_TYPE,
                        "%s: the values are complex, and the matrix is %s: "
                        "take real(A) of them",
                        name, gpu_dtype_name(m->dtype));
    if (from->dtype == m->dtype && from->is_conjugated == m->is_conjugated) {
        gpu_retain(from);
        *out = *from;
        return GPU_OK;
    }
    gpu_matrix source = *from;
    source.is_conjugated ^= m->is_conjugated;
    TRY(gpu_clone(&source, m->dtype, NULL, out));
    out->is_conjugated = m->is_conjugated;
    return GPU_OK;
}

typedef struct lists {
    const int64_t *rows, *cols;
    int64_t nrows, ncols;
    const gpu_matrix *mask; /* in their place */
    int is_on_device;       /* these are: */
    const gpu_matrix *row_list, *col_list;
} lists;

static gpu_status put(const char *name, const gpu_matrix *from, const lists *l,
                      gpu_matrix *m)
{
    if (l->is_on_device)
        return gpu_put(name, from, l->row_list, l->col_list, m);
    return l->mask ? gpu_expand(from, l->mask, m)
                   : gpu_scatter(name, from, l->rows, l->nrows, l->cols,
                                 l->ncols, m);
}

static gpu_status put_complex(const char *name, const gpu_matrix *from,
                              const lists *l, gpu_matrix *m)
{
    gpu_matrix source, given[2], target[2];
    TRY(as_target(name, from, m, &source));
    gpu_parts_of(&source, given);
    gpu_parts_of(m, target);
    gpu_status status;
    if (m->dtype == GPU_C64) {
        given[0] = gpu_as_f64(&source);
        target[0] = gpu_as_f64(m);
        status = put(name, &given[0], l, &target[0]);
    } else {
        status = put(name, &given[0], l, &target[0]);
        if (status == GPU_OK)
            status = put(name, &given[1], l, &target[1]);
    }
    gpu_release(&source);
    return status;
}

gpu_status gpu_scatter_complex(const char *name, const gpu_matrix *from,
                               const int64_t *rows, int64_t nrows,
                               const int64_t *cols, int64_t ncols,
                               gpu_matrix *m)
{
    lists l = {.rows = rows, .cols = cols, .nrows = nrows, .ncols = ncols};
    return put_complex(name, from, &l, m);
}

gpu_status gpu_put_complex(const char *name, const gpu_matrix *from,
                           const gpu_matrix *rows, const gpu_matrix *cols,
                           gpu_matrix *m)
{
    lists l = {.is_on_device = 1, .row_list = rows, .col_list = cols};
    return put_complex(name, from, &l, m);
}

gpu_status gpu_expand_complex(const gpu_matrix *from, const gpu_matrix *mask,
                              gpu_matrix *m)
{
    lists l = {.mask = mask};
    return put_complex("mask", from, &l, m);
}

/* --- running sums, random numbers -------------------------------------------
 */

/* Products of complex lines by the CPU, which alone has them: of m's elements
 * as they lie, m being conjugated or not. */
static gpu_status multiply_up(const gpu_matrix *m, int axis, gpu_matrix *out)
{
    TRY(gpu_create(out, gpu_cpu(), m->dtype, m->ndim, m->rows, m->cols));
    if (gpu_size(m) == 0)
        return GPU_OK;
    gpu_view from = gpu_view_of(m), to = gpu_target_of(out);
    gpu_operation op = {.name = gpu_scan_name(GPU_SCAN_PROD),
                        .kernel = "scan",
                        .device = gpu_cpu(),
                        .result = out,
                        .flops = 6.0 * (double)gpu_size(out),
                        .bytes = 2.0 * (double)gpu_bytes(out)};
    gpu_status status =
        RUN_OPERATION(&op, scan, GPU_SCAN_PROD, axis, &from, &to);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

static gpu_status scan_products(const gpu_matrix *m, int axis, gpu_matrix *out)
{
    gpu_device *d;
    gpu_matrix from = *m, here, result;
    TRY(gpu_check_complex(gpu_scan_name(GPU_SCAN_PROD), &m, 1, &d));
    from.is_conjugated = 0;
    if (d == gpu_cpu()) {
        TRY(multiply_up(&from, axis, out));
    } else {
        gpu_note_fallback();
        TRY(gpu_clone(&from, m->dtype, gpu_cpu(), &here));
        gpu_status status = multiply_up(&here, axis, &result);
        gpu_release(&here);
        TRY(status);
        status = gpu_clone(&result, m->dtype, d, out);
        gpu_release(&result);
        TRY(status);
    }
    out->is_conjugated = m->is_conjugated;
    return GPU_OK;
}

gpu_status gpu_scan_complex(const gpu_matrix *m, gpu_scan_kind kind, int axis,
                            gpu_matrix *out)
{
    gpu_matrix parts[2], sums[2];
    if (kind == GPU_SCAN_PROD)
        return scan_products(m, axis, out);
    if (kind != GPU_SCAN_SUM)
        return gpu_fail_complex(gpu_scan_name(kind));
    gpu_parts_of(m, parts);
    TRY(gpu_scan(&parts[0], kind, axis, &sums[0]));
    gpu_status status = gpu_scan(&parts[1], kind, axis, &sums[1]);
    if (status == GPU_OK)
        return join(sums, m->dtype, m->is_conjugated, out);
    gpu_release(&sums[0]);
    return status;
}

/* --- reductions ----------------------------------------------------------- */

int gpu_reduces_to_complex(gpu_reduction kind)
{
    return kind == GPU_REDUCE_sum || kind == GPU_REDUCE_mean ||
           kind == GPU_REDUCE_prod;
}

static gpu_program plain(int kind)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    p.reduction = (uint8_t)kind;
    return p;
}

static gpu_status reduce_one(const char *name, int kind, const gpu_matrix *m,
                             int axis, gpu_matrix *out)
{
    gpu_program p = plain(kind);
    return gpu_reduce(name, &p, &m, axis, out);
}

static gpu_status reduce_parts(const char *name, int kind, const gpu_matrix *m,
                               int axis, gpu_matrix results[2])
{
    gpu_matrix parts[2];
    gpu_parts_of(m, parts);
    TRY(reduce_one(name, kind, &parts[0], axis, &results[0]));
    gpu_status status = reduce_one(name, kind, &parts[1], axis, &results[1]);
    if (status != GPU_OK)
        gpu_release(&results[0]);
    return status;
}

/* m's rows (or columns) from first on, so many. */
static gpu_status lines(const gpu_matrix *m, int axis, int64_t first,
                        int64_t count, gpu_matrix *out)
{
    gpu_slice some = {first, 1, count}, rows = {0, 1, m->rows};
    gpu_slice cols = {0, 1, m->cols};
    return gpu_view_block(m, axis == 1 ? some : rows, axis == 1 ? cols : some,
                          out);
}

/* Halves the lines until one is left: a product of pairs of pairs. */
static gpu_status product_of_lines(const gpu_matrix *m, int axis,
                                   gpu_matrix *out)
{
    int64_t n = axis == 1 ? m->rows : m->cols, half = n / 2;
    gpu_matrix left, right, rest, both = {.storage = NULL};
    if (n == 1)
        return gpu_clone(m, m->dtype, NULL, out);
    TRY(lines(m, axis, 0, half, &left));
    TRY(lines(m, axis, n - half, half, &right));
    gpu_status status = map_op("prod", GPU_OP_mul, &left, &right, &both);
    gpu_release(&left);
    gpu_release(&right);
    if (status == GPU_OK && n % 2 == 1) {
        gpu_matrix first;
        status = lines(m, axis, half, 1, &rest);
        if (status == GPU_OK)
            status = lines(&both, axis, 0, 1, &first);
        if (status == GPU_OK) {
            status = map_op("prod", GPU_OP_mul, &first, &rest, &first);
            gpu_release(&first);
        }
        gpu_release(&rest);
    }
    if (status == GPU_OK)
        status = product_of_lines(&both, axis, out);
    gpu_release(&both);
    return status;
}

/* The same of c64 in c128, as those of f32 are worked out in f64; out is of
 * type `type`. */
static gpu_status product_in_c128(const gpu_matrix *m, int axis, gpu_dtype type,
                                  gpu_matrix *out)
{
    gpu_matrix wide, product;
    if (m->dtype == GPU_C128)
        return product_of_lines(m, axis, out);
    TRY(gpu_clone(m, GPU_C128, NULL, &wide));
    gpu_status status = product_of_lines(&wide, axis, &product);
    gpu_release(&wide);
    TRY(status);
    status = gpu_clone(&product, type, NULL, out);
    gpu_release(&product);
    return status;
}

static gpu_status reduce_product(const gpu_matrix *m, int axis, gpu_matrix *out)
{
    int64_t n = axis == 1 ? m->rows : m->cols;
    if (n > 0)
        return product_in_c128(m, axis, m->dtype, out);
    TRY(gpu_create(out, gpu_matrix_device(m), m->dtype, m->ndim,
                   axis == 1 ? 1 : m->rows, axis == 1 ? m->cols : 1));
    return gpu_complex_fill(out, (gpu_complex){1, 0});
}

/* The spread of complex numbers is that of both parts. */
static gpu_status reduce_spread(const char *name, int kind, const gpu_matrix *m,
                                int axis, gpu_matrix *out)
{
    gpu_matrix parts[2];
    out->storage = NULL;
    TRY(reduce_parts(name, GPU_REDUCE_var, m, axis, parts));
    gpu_status status = map_op(name, GPU_OP_add, &parts[0], &parts[1], out);
    gpu_release(&parts[0]);
    gpu_release(&parts[1]);
    if (status == GPU_OK && kind == GPU_REDUCE_std) {
        status = map_op(name, GPU_OP_sqrt, out, NULL, out);
        if (status != GPU_OK)
            gpu_release(out);
    }
    return status;
}

/* Of the mask where m is not 0, or of its sizes. */
static gpu_status reduce_other(const char *name, int kind, const gpu_matrix *m,
                               int axis, gpu_matrix *out)
{
    gpu_matrix value;
    TRY(kind == GPU_REDUCE_norm ? gpu_sizes_of(m, &value)
                                : gpu_truth_of(name, m, &value));
    gpu_status status = reduce_one(name, kind, &value, axis, out);
    gpu_release(&value);
    return status;
}

static gpu_status reduce_value(const char *name, int kind, const gpu_matrix *m,
                               int axis, gpu_matrix *out)
{
    gpu_matrix parts[2];
    switch (kind) {
    case GPU_REDUCE_sum:
    case GPU_REDUCE_mean:
        TRY(reduce_parts(name, kind, m, axis, parts));
        return join(parts, m->dtype, m->is_conjugated, out);
    case GPU_REDUCE_prod:
        return reduce_product(m, axis, out);
    case GPU_REDUCE_var:
    case GPU_REDUCE_std:
        return reduce_spread(name, kind, m, axis, out);
    case GPU_REDUCE_any:
    case GPU_REDUCE_all:
    case GPU_REDUCE_norm:
        return reduce_other(name, kind, m, axis, out);
    default:
        return gpu_fail_complex(name);
    }
}

/* What the program gives. */
static gpu_status program_value(const char *name, const gpu_program *p,
                                const gpu_matrix *const *in, gpu_matrix *out)
{
    out->storage = NULL;
    if (p->length > 0)
        return gpu_map(name, p, in, out);
    gpu_retain(in[0]);
    *out = *in[0];
    return GPU_OK;
}

gpu_status gpu_reduce_complex(const char *name, const gpu_program *p,
                              const gpu_matrix *const *in, int axis,
                              gpu_matrix *out)
{
    gpu_matrix value;
    gpu_device *d;
    out->storage = NULL;
    TRY(gpu_check_complex(name, in, p->inputs, &d));
    if (axis != 1 && (axis != 2 || in[0]->ndim == 1))
        return gpu_fail(GPU_ARGUMENT, "%s: %s has no axis %d", name,
                        gpu_shape_text(in[0]), axis);
    TRY(program_value(name, p, in, &value));
    gpu_status status =
        gpu_is_complex(&value)
            ? reduce_value(name, p->reduction, &value, axis, out)
            : reduce_one(name, p->reduction, &value, axis, out);
    gpu_release(&value);
    return status;
}

static gpu_status reduce_one_all(const char *name, int kind,
                                 const gpu_matrix *m, double *out)
{
    gpu_program p = plain(kind);
    return gpu_reduce_all(name, &p, &m, out);
}

static gpu_status spread_all(const char *name, int kind, const gpu_matrix *m,
                             double *out)
{
    gpu_matrix parts[2];
    double im;
    gpu_parts_of(m, parts);
    TRY(reduce_one_all(name, GPU_REDUCE_var, &parts[0], out));
    TRY(reduce_one_all(name, GPU_REDUCE_var, &parts[1], &im));
    *out += im;
    if (kind == GPU_REDUCE_std)
        *out = sqrt(*out);
    return GPU_OK;
}

static gpu_status value_all(const char *name, int kind, const gpu_matrix *m,
                            double *out)
{
    gpu_matrix value;
    if (!gpu_is_complex(m))
        return reduce_one_all(name, kind, m, out);
    if (kind == GPU_REDUCE_var || kind == GPU_REDUCE_std)
        return spread_all(name, kind, m, out);
    if (kind == GPU_REDUCE_norm)
        TRY(gpu_sizes_of(m, &value));
    else if (kind == GPU_REDUCE_any || kind == GPU_REDUCE_all)
        TRY(gpu_truth_of(name, m, &value));
    else
        return gpu_fail_complex(name);
    gpu_status status = reduce_one_all(name, kind, &value, out);
    gpu_release(&value);
    return status;
}

gpu_status gpu_reduce_all_complex(const char *name, const gpu_program *p,
                                  const gpu_matrix *const *in, double *out)
{
    gpu_matrix value;
    gpu_device *d;
    TRY(gpu_check_complex(name, in, p->inputs, &d));
    TRY(program_value(name, p, in, &value));
    gpu_status status = value_all(name, p->reduction, &value, out);
    gpu_release(&value);
    return status;
}

/* A matrix as the vector of its elements, so that one axis is all there is. */
static gpu_status product_all(const gpu_matrix *m, gpu_complex *out)
{
    gpu_matrix flat, result;
    *out = (gpu_complex){1, 0};
    if (gpu_size(m) == 0)
        return GPU_OK;
    TRY(gpu_reshape(m, 1, gpu_size(m), 1, &flat));
    gpu_status status = product_in_c128(&flat, 1, GPU_C128, &result);
    gpu_release(&flat);
    TRY(status);
    status = gpu_complex_get(&result, 0, 0, out);
    gpu_release(&result);
    return status;
}

gpu_status gpu_complex_reduce_all(const char *name, gpu_reduction kind,
                                  const gpu_matrix *m, gpu_complex *out)
{
    gpu_matrix parts[2];
    gpu_device *d;
    TRY(gpu_check_complex(name, &m, 1, &d));
    if (!gpu_reduces_to_complex(kind))
        return gpu_fail_complex(name);
    if (kind == GPU_REDUCE_prod)
        return product_all(m, out);
    gpu_parts_of(m, parts);
    TRY(reduce_one_all(name, kind, &parts[0], &out->re));
    TRY(reduce_one_all(name, kind, &parts[1], &out->im));
    if (m->is_conjugated)
        out->im = -out->im;
    return GPU_OK;
}

/* --- products --------------------------------------------------------------
 */

/* The parts of a factor, as numbers of the type. im: its sign, or
 * 0 where there is no such part. */
typedef struct factor {
    gpu_matrix re, im;
    int sign;
} factor;

static void release_factor(factor *f)
{
    gpu_release(&f->re);
    gpu_release(&f->im);
}

/* A part where it lies, if it is of the type and may have gaps; else a copy. */
static gpu_status take_part(const gpu_matrix *part, gpu_dtype type,
                            int may_have_gaps, gpu_matrix *out)
{
    if (!may_have_gaps || part->dtype != type)
        return gpu_clone(part, type, NULL, out);
    gpu_retain(part);
    *out = *part;
    return GPU_OK;
}

/* A GPU's kernels want matrices without gaps; the CPU's pack what they read. */
static gpu_status make_factor(const gpu_matrix *m, gpu_dtype type,
                              int may_have_gaps, factor *f)
{
    gpu_matrix parts[2];
    gpu_parts_of(m, parts);
    *f = (factor){.sign = !parts[1].storage ? 0 : m->is_conjugated ? -1 : 1};
    TRY(take_part(&parts[0], type, may_have_gaps, &f->re));
    gpu_status status =
        f->sign ? take_part(&parts[1], type, may_have_gaps, &f->im) : GPU_OK;
    if (status != GPU_OK)
        release_factor(f);
    return status;
}

/* c = c + sign x y, or sign x y where there is no c yet. */
static gpu_status add_product(const gpu_matrix *x, const gpu_matrix *y,
                              int sign, const gpu_product *how, gpu_matrix *c)
{
    gpu_product real = *how;
    if (sign == 0)
        return GPU_OK;
    real.alpha = sign * how->alpha;
    real.beta = c->storage ? 1 : 0;
    return gpu_matmul(x, y, &real, c);
}

static gpu_status multiply_factors(const factor *a, const factor *b,
                                   const gpu_product *how, gpu_matrix parts[2])
{
    TRY(add_product(&a->re, &b->re, 1, how, &parts[0]));
    TRY(add_product(&a->im, &b->im, -a->sign * b->sign, how, &parts[0]));
    TRY(add_product(&a->re, &b->im, b->sign, how, &parts[1]));
    return add_product(&a->im, &b->re, a->sign, how, &parts[1]);
}

/* c = parts + beta c. */
static gpu_status add_to(const gpu_matrix *product, double beta, gpu_matrix *c)
{
    gpu_program p;
    const gpu_matrix *in[] = {product, c};
    if (beta == 0)
        return gpu_copy(product, c);
    gpu_program_start(&p, 2);
    int by = gpu_program_constant(&p, beta);
    int scaled = gpu_program_add(&p, GPU_OP_mul, 1, by, 0);
    gpu_program_add(&p, GPU_OP_add, 0, scaled, 0);
    return gpu_map("matmul", &p, in, c);
}

static gpu_status multiply(const gpu_matrix *a, const gpu_matrix *b,
                           const gpu_product *how, gpu_dtype part,
                           gpu_matrix *out)
{
    factor x, y;
    gpu_matrix parts[2] = {{.storage = NULL}, {.storage = NULL}};
    int is_cpu = gpu_device_is_cpu(gpu_matrix_device(a));
    TRY(make_factor(a, part, is_cpu, &x));
    gpu_status status = make_factor(b, part, is_cpu, &y);
    if (status == GPU_OK) {
        status = multiply_factors(&x, &y, how, parts);
        release_factor(&y);
    }
    release_factor(&x);
    if (status == GPU_OK)
        return join(parts, gpu_dtype_made_complex(part), 0, out);
    gpu_release(&parts[0]);
    gpu_release(&parts[1]);
    return status;
}

/* --- products as one real product -------------------------------------------
 * What lies row by row is a real matrix of twice the columns: re, im, re, im.
 * With each row z of b and i z below it, which are 2k x 2n, that product of
 * m x 2k with them is the complex one as it lies: no part is taken out before
 * or joined behind, and one product of twice the columns and twice the inner
 * side is nearer to a GPU's peak than four. Of a real a, b as it lies will do.
 */

static gpu_status share(const gpu_matrix *m, gpu_matrix *out)
{
    gpu_retain(m);
    *out = *m;
    return GPU_OK;
}

/* m as m x k, where it lies row by row in the type, or a copy that does; with
 * is_free whatever is_conjugated says, which another factor minds. */
static gpu_status lay_in_rows(const gpu_matrix *m, gpu_dtype type, int is_free,
                              gpu_matrix *out)
{
    int is_so = m->dtype == type && (m->cols == 1 || m->col_stride == 1) &&
                (is_free || !m->is_conjugated);
    if (!is_so)
        return gpu_clone(m, type, NULL, out);
    return share(m, out);
}

/* m x 2n real numbers, of what lies row by row; of a vector a row each. */
static gpu_matrix as_rows_of_reals(const gpu_matrix *m)
{
    gpu_matrix parts[2], reals;
    gpu_parts_of(m, parts);
    reals = parts[0];
    reals.ndim = 2;
    reals.cols = 2 * m->cols;
    reals.col_stride = 1;
    return reals;
}

/* Of b, k x n: the 2k x n whose rows are each of b's, z, and i z below it, or
 * -i z where a is conjugated. */
static gpu_status lay_with_turned(const gpu_matrix *b, gpu_dtype type,
                                  int is_a_conjugated, gpu_matrix *out)
{
    gpu_matrix rows;
    TRY(lay_in_rows(b, type, 1, &rows));
    gpu_status status =
        gpu_create(out, b->storage->device, type, 2, 2 * b->rows, b->cols);
    if (status == GPU_OK) {
        gpu_complex_pairs p = {gpu_view_of(&rows), gpu_target_of(out),
                               rows.is_conjugated, is_a_conjugated};
        gpu_operation o = {.name = "copy",
                           .kernel = "pairs",
                           .device = b->storage->device,
                           .result = out,
                           .writes_all = 1,
                           .bytes = (double)(gpu_bytes(b) + gpu_bytes(out))};
        status = RUN_OPERATION(&o, complex_pairs, &p);
        if (status != GPU_OK)
            gpu_release(out);
    }
    gpu_release(&rows);
    return status;
}

/* Does it pay? Of a with few rows most of the time would go into b's copy. */
static int is_for_one_product(const gpu_matrix *a, const gpu_matrix *b)
{
    enum { LEAST_ROWS = 32 };
    const gpu_device *d = gpu_matrix_device(a);
    return d->backend->complex_pairs && a->ndim == 2 &&
           d == gpu_matrix_device(b) && gpu_is_complex(b) && gpu_size(a) > 0 &&
           gpu_size(b) > 0 && (a->rows >= LEAST_ROWS || b->cols == 1);
}

static gpu_status multiply_as_one(const gpu_matrix *a, const gpu_matrix *b,
                                  const gpu_product *how, gpu_dtype part,
                                  gpu_matrix *out)
{
    gpu_dtype type = gpu_dtype_made_complex(part);
    gpu_product real = *how;
    gpu_matrix left, right, x, y, c;
    int is_complex = gpu_is_complex(a);
    real.beta = 0;
    TRY(is_complex ? lay_in_rows(a, type, 1, &left) : share(a, &left));
    gpu_status status =
        is_complex ? lay_with_turned(b, type, left.is_conjugated, &right)
                   : lay_in_rows(b, type, 0, &right);
    if (status != GPU_OK) {
        gpu_release(&left);
        return status;
    }
    status =
        gpu_create(out, b->storage->device, type, b->ndim, a->rows, b->cols);
    if (status == GPU_OK) {
        x = is_complex ? as_rows_of_reals(&left) : left;
        y = as_rows_of_reals(&right);
        c = as_rows_of_reals(out);
        status = gpu_matmul(&x, &y, &real, &c);
        if (status != GPU_OK)
            gpu_release(out);
    }
    gpu_release(&right);
    gpu_release(&left);
    return status;
}

/* One or four real products by the kernels that real matrices have. */
gpu_status gpu_matmul_complex(const gpu_matrix *a, const gpu_matrix *b,
                              const gpu_product *how, gpu_matrix *c)
{
    gpu_device *d;
    const gpu_matrix *in[] = {a, b, c};
    gpu_matrix shape, product;
    int created = !c->storage;
    TRY(gpu_check_complex("matmul", in, created ? 2 : 3, &d));
    TRY(gpu_product_shape(a, b, &shape));
    if (!created && (c->ndim != shape.ndim || c->rows != shape.rows ||
                     c->cols != shape.cols))
        return gpu_fail(GPU_SHAPE, "matmul: the result is %s, out is %s",
                        gpu_shape_text(&shape), gpu_shape_text(c));
    if (!created && gpu_dtype_is_complex(shape.dtype) && !gpu_is_complex(c))
        return gpu_fail(GPU_TYPE,
                        "matmul: the result is complex, and out is %s",
                        gpu_dtype_name(c->dtype));
    if (!gpu_dtype_is_complex(shape.dtype)) {
        product.storage = NULL;
        gpu_product real = *how;
        real.beta = 0;
        TRY(gpu_matmul(a, b, &real, &product));
    } else {
        gpu_dtype part = gpu_dtype_of_parts(shape.dtype);
        TRY(is_for_one_product(a, b)
                ? multiply_as_one(a, b, how, part, &product)
                : multiply(a, b, how, part, &product));
    }
    if (created) {
        *c = product;
        return GPU_OK;
    }
    gpu_status status = add_to(&product, how->beta, c);
    gpu_release(&product);
    return status;
}

/* The four sums of products that both need. */
gpu_status gpu_complex_dot(const gpu_matrix *x, const gpu_matrix *y,
                           int is_conjugated, const char *kernel,
                           gpu_complex *out)
{
    gpu_device *d;
    const gpu_matrix *in[] = {x, y};
    factor a, b;
    double part[4] = {0, 0, 0, 0};
    TRY(gpu_check_complex("dot", in, 2, &d));
    gpu_dtype type = gpu_dtype_of_parts(gpu_dtype_wider(x->dtype, y->dtype));
    TRY(make_factor(x, type, 1, &a));
    gpu_status status = make_factor(y, type, 1, &b);
    if (status == GPU_OK) {
        if (is_conjugated)
            a.sign = -a.sign;
        status = gpu_dot(&a.re, &b.re, kernel, &part[0]);
        if (status == GPU_OK && a.sign && b.sign)
            status = gpu_dot(&a.im, &b.im, kernel, &part[1]);
        if (status == GPU_OK && b.sign)
            status = gpu_dot(&a.re, &b.im, kernel, &part[2]);
        if (status == GPU_OK && a.sign)
            status = gpu_dot(&a.im, &b.re, kernel, &part[3]);
        out->re = part[0] - a.sign * b.sign * part[1];
        out->im = b.sign * part[2] + a.sign * part[3];
        release_factor(&b);
    }
    release_factor(&a);
    return status;
}
