/* Reductions of sparse matrices. Of all elements the values are reduced as any
 * vector is, on any device, and the places without an entry come to it; along
 * an axis a backend's entry folds lines, and what means, spreads and norms are
 * made of is put together from such folds. */
#include "complex_numbers.h"
#include "op_list.h"
#include "sparse.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The result as that type on d: itself, or a copy; of the one here nothing is
 * left. */
static gpu_status send(gpu_matrix *here, gpu_dtype dtype, gpu_device *d,
                       gpu_matrix *out)
{
    if (here->dtype == dtype && gpu_matrix_device(here) == d) {
        *out = *here;
        *here = (gpu_matrix){0};
        return GPU_OK;
    }
    gpu_status status = gpu_clone(here, dtype, d, out);
    gpu_release(here);
    return status;
}

/* How many places have no entry. */
static double count_missing(const gpu_sparse *s)
{
    return (double)s->rows * (double)s->cols - (double)s->count;
}

/* --- small programs --------------------------------------------------------
 */

/* out = op(a, b) element by element; may be a. */
static gpu_status map_two(const char *name, gpu_op op, const gpu_matrix *a,
                          const gpu_matrix *b, gpu_matrix *out)
{
    const gpu_matrix *in[] = {a, b};
    gpu_program p;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, op, 0, 1, 0);
    return gpu_map(name, &p, in, out);
}

/* The same of a number on the right. */
static gpu_status map_number(const char *name, gpu_op op, const gpu_matrix *a,
                             double x, gpu_matrix *out)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    int constant = gpu_program_constant(&p, x);
    gpu_program_add(&p, op, 0, constant, 0);
    return gpu_map(name, &p, &a, out);
}

/* A reduction of the results of a program of one matrix to a number. */
static gpu_status fold_all(const char *name, gpu_program *p, int kind,
                           const gpu_matrix *m, double *out)
{
    p->reduction = (uint8_t)kind;
    return gpu_reduce_all(name, p, &m, out);
}

/* --- all elements ----------------------------------------------------------
 * m: the values, or one of their parts. */

static gpu_status reduce_values(const char *name, int kind, const gpu_matrix *m,
                                int skips_nan, double *out, int64_t *none)
{
    gpu_program p;
    gpu_matrix one;
    gpu_choice how = {.skips_nan = 1, .ddof = 1};
    gpu_program_start(&p, 1);
    if (!skips_nan)
        return fold_all(name, &p, kind, m, out);
    TRY(gpu_reduce_chosen(name, (gpu_reduction)kind, m, 0, &how, &one, none));
    gpu_status status = gpu_get(&one, 0, 0, out);
    gpu_release(&one);
    return status;
}

/* 0, or NaN where an element that counts is infinite or NaN. */
static gpu_status multiply_by_zero(const char *name, const gpu_matrix *m,
                                   int skips_nan, double *out)
{
    gpu_matrix products = {.storage = NULL};
    int64_t none;
    *out = 0;
    if (gpu_size(m) == 0)
        return GPU_OK;
    /* Infinities become NaN here, which is no longer to be left out. */
    gpu_program p;
    gpu_program_start(&p, 1);
    int zero = gpu_program_constant(&p, 0);
    if (!skips_nan)
        gpu_program_add(&p, GPU_OP_mul, 0, zero, 0);
    else {
        int is_nan = gpu_program_add(&p, GPU_OP_isnan, 0, 0, 0);
        int x = gpu_program_add(&p, GPU_OP_where, is_nan, zero, 0);
        gpu_program_add(&p, GPU_OP_mul, x, zero, 0);
    }
    TRY(gpu_map(name, &p, &m, &products));
    gpu_status status =
        reduce_values(name, GPU_REDUCE_sum, &products, 0, out, &none);
    gpu_release(&products);
    return status;
}

/* How many of the values are NaN. */
static gpu_status count_nans(const char *name, const gpu_matrix *m, double *out)
{
    gpu_program p;
    *out = 0;
    if (gpu_size(m) == 0)
        return GPU_OK;
    gpu_program_start(&p, 1);
    gpu_program_add(&p, GPU_OP_isnan, 0, 0, 0);
    return fold_all(name, &p, GPU_REDUCE_sum, m, out);
}

/* The mean of n elements, NaN among them. */
static gpu_status mean_of(const char *name, const gpu_matrix *m, double n,
                          int skips_nan, double *out)
{
    int64_t none;
    *out = 0;
    if (gpu_size(m) > 0)
        TRY(reduce_values(name, GPU_REDUCE_sum, m, skips_nan, out, &none));
    *out /= n;
    return GPU_OK;
}

/* Elements less their mean, with 0 in place of NaN that is left out: of an
 * infinite one it is NaN as well, which counts. p has 1 + has_mean inputs, or
 * the mean is the number. */
static void start_distances(gpu_program *p, int skips_nan, int has_mean,
                            double mean)
{
    gpu_program_start(p, 1 + has_mean);
    int zero = gpu_program_constant(p, 0);
    int constant = gpu_program_constant(p, mean);
    int apart = gpu_program_add(p, GPU_OP_sub, 0, has_mean ? 1 : constant, 0);
    if (!skips_nan)
        return;
    int left_out = gpu_program_add(p, GPU_OP_isnan, 0, 0, 0);
    gpu_program_add(p, GPU_OP_where, left_out, zero, apart);
}

/* The squared distances of the values from `mean`, added up. */
static gpu_status squares_of(const char *name, const gpu_matrix *m, double mean,
                             int skips_nan, double *out)
{
    gpu_matrix wide;
    gpu_program p;
    TRY(gpu_clone(m, gpu_dtype_wider(m->dtype, GPU_F64), NULL, &wide));
    start_distances(&p, skips_nan, 0, mean);
    gpu_status status = fold_all(name, &p, GPU_REDUCE_SQUARES, &wide, out);
    gpu_release(&wide);
    return status;
}

/* Two passes, as the mean has to be known; it is the element of places without
 * an entry, too. */
static gpu_status variance_of(const char *name, const gpu_matrix *m,
                              double missing, double n, const gpu_choice *how,
                              double *out)
{
    double mean, squares = 0;
    TRY(mean_of(name, m, n, how->skips_nan, &mean));
    if (gpu_size(m) > 0)
        TRY(squares_of(name, m, mean, how->skips_nan, &squares));
    if (missing > 0)
        squares += missing * mean * mean;
    *out = n - how->ddof > 0 ? squares / (n - how->ddof) : (double)NAN;
    return GPU_OK;
}

static double larger(double a, double b)
{
    return a != a || a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a != a || a < b ? a : b;
}

/* What gives a number of real values m of s, or of both its parts. */
static gpu_status reduce_real(const char *name, int kind, const gpu_sparse *s,
                              const gpu_matrix *m, const gpu_choice *how,
                              double *out, int64_t *none)
{
    double missing = count_missing(s), n = missing + (double)s->count, nans = 0;
    int is_spread = kind == GPU_REDUCE_var || kind == GPU_REDUCE_std;
    int is_extreme = kind == GPU_REDUCE_min || kind == GPU_REDUCE_max;
    if (is_spread || kind == GPU_REDUCE_mean) {
        if (how->skips_nan)
            TRY(count_nans(name, m, &nans));
        *none = nans == n;
        return is_spread ? variance_of(name, m, missing, n - nans, how, out)
                         : mean_of(name, m, n - nans, how->skips_nan, out);
    }
    if (kind == GPU_REDUCE_prod && missing > 0)
        return multiply_by_zero(name, m, how->skips_nan, out);
    *out = kind == GPU_REDUCE_prod || kind == GPU_REDUCE_all;
    if (s->count > 0)
        TRY(reduce_values(name, kind, m, how->skips_nan, out, none));
    if (missing == 0)
        return GPU_OK;
    if (kind == GPU_REDUCE_all || (is_extreme && (s->count == 0 || *none)))
        *out = 0;
    else if (is_extreme)
        *out = kind == GPU_REDUCE_max ? larger(*out, 0) : smaller(*out, 0);
    *none = 0;
    return GPU_OK;
}

/* The product of complex values, and of a zero where a place has no entry. */
static gpu_status product_of_pairs(const char *name, const gpu_sparse *s,
                                   const gpu_matrix parts[2], double out[2])
{
    gpu_complex product = {1, 0};
    if (count_missing(s) == 0) {
        TRY(gpu_complex_reduce_all(name, GPU_REDUCE_prod, &s->values,
                                   &product));
        out[0] = product.re;
        out[1] = product.im;
        return GPU_OK;
    }
    TRY(multiply_by_zero(name, &parts[0], 0, &out[0]));
    TRY(multiply_by_zero(name, &parts[1], 0, &out[1]));
    out[0] = out[1] = out[0] + out[1];
    return GPU_OK;
}

static gpu_status reduce_pairs(const char *name, int kind, const gpu_sparse *s,
                               const gpu_choice *how, double out[2],
                               int64_t *none)
{
    gpu_matrix parts[2];
    double missing = count_missing(s);
    gpu_parts_of(&s->values, parts);
    if (kind == GPU_REDUCE_prod)
        return product_of_pairs(name, s, parts, out);
    for (int k = 0; gpu_reduces_to_complex((gpu_reduction)kind) && k < 2; k++)
        TRY(reduce_real(name, kind, s, &parts[k], how, &out[k], none));
    if (kind == GPU_REDUCE_var || kind == GPU_REDUCE_std) {
        TRY(reduce_real(name, kind, s, &parts[0], how, &out[0], none));
        TRY(reduce_real(name, kind, s, &parts[1], how, &out[1], none));
        out[0] += out[1];
    }
    if (kind == GPU_REDUCE_any || kind == GPU_REDUCE_all) {
        gpu_program p;
        gpu_program_start(&p, 1);
        out[0] = kind == GPU_REDUCE_all;
        if (s->count > 0)
            TRY(fold_all(name, &p, kind, &s->values, &out[0]));
        if (kind == GPU_REDUCE_all && missing > 0)
            out[0] = 0;
    }
    return GPU_OK;
}

/* --- what has an answer ----------------------------------------------------
 */

static int is_kept(int kind)
{
    return kind == GPU_REDUCE_any || kind == GPU_REDUCE_all ||
           kind == GPU_REDUCE_sum || kind == GPU_REDUCE_prod;
}

/* length: of a line; lines: how many have none. */
static gpu_status check_reduced(const char *name, int kind, const gpu_sparse *s,
                                int64_t length, int64_t lines,
                                const gpu_choice *how)
{
    int is_extreme = kind == GPU_REDUCE_min || kind == GPU_REDUCE_max;
    if (gpu_is_complex(&s->values) && (how->skips_nan || how->ddof != 1))
        return gpu_fail(GPU_TYPE,
                        "%s: NaN, weights and ddof are for real numbers: take "
                        "real(A) and imag(A)",
                        name);
    if (gpu_is_complex(&s->values) && is_extreme)
        return gpu_fail_complex(name);
    if (length > 0 || is_kept(kind) || (is_extreme && lines == 0))
        return GPU_OK;
    return gpu_fail(GPU_SHAPE, "%s: of no elements", name);
}

gpu_status gpu_sparse_reduce_all(const char *name, gpu_reduction kind,
                                 const gpu_sparse *s, const gpu_choice *how,
                                 double out[2], int64_t *none)
{
    gpu_device *d;
    out[0] = out[1] = 0;
    *none = 0;
    TRY(gpu_sparse_check(name, s, &d));
    TRY(check_reduced(name, kind, s, s->rows * s->cols, 1, how));
    gpu_status status =
        gpu_is_complex(&s->values)
            ? reduce_pairs(name, kind, s, how, out, none)
            : reduce_real(name, kind, s, &s->values, how, &out[0], none);
    if (kind == GPU_REDUCE_std)
        out[0] = sqrt(out[0]);
    return status;
}

/* --- lines -----------------------------------------------------------------
 * s lies where its lines are folded; results, 1 x n or m x 1, do, too. */

/* A number a line, to be written. */
static gpu_status create_lines(const gpu_sparse *s, int axis, gpu_dtype dtype,
                               gpu_matrix *out)
{
    return gpu_create(out, gpu_matrix_device(&s->values), dtype, 2,
                      axis == 2 ? s->rows : 1, axis == 1 ? s->cols : 1);
}

static gpu_status fold(const char *name, gpu_sparse_fold kind,
                       const gpu_sparse *s, int axis, int skips_nan,
                       gpu_matrix *out)
{
    gpu_sparse_folding how = {kind, axis, skips_nan};
    gpu_csr csr = gpu_csr_of(s);
    int gives_pairs = kind == GPU_SPARSE_SUM || kind == GPU_SPARSE_PROD;
    gpu_dtype type =
        gives_pairs && gpu_is_complex(&s->values) ? GPU_C128 : GPU_F64;
    gpu_device *d = gpu_matrix_device(&s->values);
    TRY(create_lines(s, axis, type, out));
    if (gpu_size(out) == 0)
        return GPU_OK;
    gpu_view to = gpu_target_of(out);
    gpu_operation op = {.name = name,
                        .kernel = "csr",
                        .device = d,
                        .result = out,
                        .extent = &s->values,
                        .flops = (double)s->count,
                        .bytes = (double)gpu_sparse_bytes(s)};
    gpu_status status = RUN_OPERATION(&op, sparse_reduce, &how, &csr, to.data);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* How long lines are. */
static int64_t length_of(const gpu_sparse *s, int axis)
{
    return axis == 1 ? s->rows : s->cols;
}

/* Folds what a program makes of the values, on the left of `other`, which is
 * NULL or a number a line; values are f64 then. */
static gpu_status fold_mapped(const char *name, gpu_sparse_fold kind,
                              const gpu_sparse *s, int axis,
                              const gpu_program *p, const gpu_matrix *other,
                              gpu_matrix *out)
{
    gpu_matrix values = {.storage = NULL}, at = {.storage = NULL};
    gpu_sparse wide, made;
    gpu_device *d = gpu_matrix_device(&s->values);
    TRY(gpu_sparse_clone(s, GPU_F64, d, &wide));
    gpu_status status = other ? gpu_sparse_sample(name, s, other, &at) : GPU_OK;
    if (status == GPU_OK) {
        const gpu_matrix *in[] = {&wide.values, &at};
        status = gpu_map(name, p, in, &values);
    }
    gpu_release(&at);
    if (status == GPU_OK) {
        status = gpu_sparse_with_values(s, &values, &made);
        gpu_release(&values);
    }
    gpu_sparse_release(&wide);
    TRY(status);
    status = fold(name, kind, &made, axis, 0, out);
    gpu_sparse_release(&made);
    return status;
}

/* How many entries each line has. */
static gpu_status count_entries(const char *name, const gpu_sparse *s, int axis,
                                gpu_matrix *out)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    int one = gpu_program_constant(&p, 1);
    int zero = gpu_program_constant(&p, 0);
    int is_one = gpu_program_add(&p, GPU_OP_eq, zero, zero, 0);
    gpu_program_add(&p, GPU_OP_where, is_one, one, 0);
    return fold_mapped(name, GPU_SPARSE_SUM, s, axis, &p, NULL, out);
}

/* How many elements of each line count: all, or all but NaN. none: of how many
 * lines nothing does. */
static gpu_status count_elements(const char *name, const gpu_sparse *s,
                                 int axis, int skips_nan, gpu_matrix *out,
                                 int64_t *none)
{
    double lines = 0;
    double length = (double)length_of(s, axis);
    gpu_program p;
    if (!skips_nan) {
        TRY(create_lines(s, axis, GPU_F64, out));
        gpu_status filled = gpu_fill(out, length);
        if (filled != GPU_OK)
            gpu_release(out);
        return filled;
    }
    TRY(fold(name, GPU_SPARSE_NANS, s, axis, 0, out));
    gpu_program_start(&p, 1);
    int all = gpu_program_constant(&p, length);
    gpu_program_add(&p, GPU_OP_sub, all, 0, 0);
    const gpu_matrix *in[] = {out};
    gpu_status status = gpu_map(name, &p, in, out);
    if (status == GPU_OK) {
        gpu_program_start(&p, 1);
        int zero = gpu_program_constant(&p, 0);
        gpu_program_add(&p, GPU_OP_eq, 0, zero, 0);
        status = fold_all(name, &p, GPU_REDUCE_sum, out, &lines);
        *none = gpu_dry ? 0 : (int64_t)lines;
    }
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* Sums over how many elements there are. */
static gpu_status mean_lines(const char *name, const gpu_sparse *s, int axis,
                             int skips_nan, gpu_matrix *out, int64_t *none)
{
    gpu_matrix counts;
    TRY(fold(name, GPU_SPARSE_SUM, s, axis, skips_nan, out));
    double length = (double)length_of(s, axis);
    gpu_status status;
    if (gpu_is_complex(out)) {
        gpu_operand in[2] = {{.matrix = out}, {.value = {length, 0}}};
        status = gpu_complex_map(name, GPU_OP_div, in, out);
    } else if (!skips_nan) {
        status = map_number(name, GPU_OP_div, out, length, out);
    } else {
        status = count_elements(name, s, axis, 1, &counts, none);
        if (status == GPU_OK) {
            status = map_two(name, GPU_OP_div, out, &counts, out);
            gpu_release(&counts);
        }
    }
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* squares += (length - entries) mean^2, of the places without an entry, where
 * there are any: an infinite mean is none of theirs. */
static gpu_status add_missing(const char *name, const gpu_sparse *s, int axis,
                              const gpu_matrix *mean, gpu_matrix *squares)
{
    gpu_matrix entries;
    gpu_program p;
    TRY(count_entries(name, s, axis, &entries));
    gpu_program_start(&p, 3);
    int length = gpu_program_constant(&p, (double)length_of(s, axis));
    int zero = gpu_program_constant(&p, 0);
    int missing = gpu_program_add(&p, GPU_OP_sub, length, 1, 0);
    int square = gpu_program_add(&p, GPU_OP_mul, 2, 2, 0);
    int more = gpu_program_add(&p, GPU_OP_mul, missing, square, 0);
    int has_more = gpu_program_add(&p, GPU_OP_gt, missing, zero, 0);
    int added = gpu_program_add(&p, GPU_OP_where, has_more, more, zero);
    gpu_program_add(&p, GPU_OP_add, 0, added, 0);
    const gpu_matrix *in[] = {squares, &entries, mean};
    gpu_status status = gpu_map(name, &p, in, squares);
    gpu_release(&entries);
    return status;
}

/* squares over what counts less ddof, NaN where that is not above 0. */
static gpu_status divide_squares(const char *name, const gpu_matrix *counts,
                                 double less, gpu_matrix *squares)
{
    gpu_program p;
    gpu_program_start(&p, 2);
    int ddof = gpu_program_constant(&p, less);
    int zero = gpu_program_constant(&p, 0);
    int nan = gpu_program_constant(&p, (double)NAN);
    int divisor = gpu_program_add(&p, GPU_OP_sub, 1, ddof, 0);
    int quotient = gpu_program_add(&p, GPU_OP_div, 0, divisor, 0);
    int is_above = gpu_program_add(&p, GPU_OP_gt, divisor, zero, 0);
    gpu_program_add(&p, GPU_OP_where, is_above, quotient, nan);
    const gpu_matrix *in[] = {squares, counts};
    return gpu_map(name, &p, in, squares);
}

/* s is real. */
static gpu_status variance_lines(const char *name, const gpu_sparse *s,
                                 int axis, const gpu_choice *how,
                                 gpu_matrix *out, int64_t *none)
{
    gpu_matrix mean, counts;
    gpu_program p;
    TRY(mean_lines(name, s, axis, how->skips_nan, &mean, none));
    start_distances(&p, how->skips_nan, 1, 0);
    gpu_status status =
        fold_mapped(name, GPU_SPARSE_SQUARES, s, axis, &p, &mean, out);
    if (status == GPU_OK) {
        status = add_missing(name, s, axis, &mean, out);
        if (status == GPU_OK)
            status =
                count_elements(name, s, axis, how->skips_nan, &counts, none);
        if (status == GPU_OK) {
            status = divide_squares(name, &counts, how->ddof, out);
            gpu_release(&counts);
        }
        if (status != GPU_OK)
            gpu_release(out);
    }
    gpu_release(&mean);
    return status;
}

/* One of both parts of a complex s. */
static gpu_status part_of(const gpu_sparse *s, gpu_complex_part which,
                          gpu_sparse *out)
{
    gpu_matrix part;
    gpu_view_part(&s->values, which, &part);
    gpu_status status = gpu_sparse_with_values(s, &part, out);
    gpu_release(&part);
    return status;
}

/* The spread of complex numbers is that of both parts. */
static gpu_status spread_lines(const char *name, int kind, const gpu_sparse *s,
                               int axis, const gpu_choice *how, gpu_matrix *out,
                               int64_t *none)
{
    static const gpu_complex_part which[2] = {GPU_REAL_PART,
                                              GPU_IMAGINARY_PART};
    gpu_matrix both[2] = {{.storage = NULL}, {.storage = NULL}};
    gpu_status status = GPU_OK;
    if (!gpu_is_complex(&s->values))
        status = variance_lines(name, s, axis, how, out, none);
    for (int k = 0; k < 2 && gpu_is_complex(&s->values) && status == GPU_OK;
         k++) {
        gpu_sparse part;
        status = part_of(s, which[k], &part);
        if (status == GPU_OK) {
            status = variance_lines(name, &part, axis, how, &both[k], none);
            gpu_sparse_release(&part);
        }
    }
    if (status == GPU_OK && both[1].storage) {
        out->storage = NULL;
        status = map_two(name, GPU_OP_add, &both[0], &both[1], out);
    }
    gpu_release(&both[0]);
    gpu_release(&both[1]);
    TRY(status);
    if (kind == GPU_REDUCE_std)
        status = map_number(name, GPU_OP_pow, out, 0.5, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* Masks of lines with a nonzero element, or with nothing else. */
static gpu_status truth_lines(const char *name, int kind, const gpu_sparse *s,
                              int axis, int skips_nan, gpu_matrix *out)
{
    gpu_matrix counts;
    int is_any = kind == GPU_REDUCE_any;
    out->storage = NULL;
    TRY(fold(name, GPU_SPARSE_NONZEROS, s, axis, is_any && skips_nan, &counts));
    gpu_status status =
        map_number(name, is_any ? GPU_OP_gt : GPU_OP_eq, &counts,
                   is_any ? 0 : (double)length_of(s, axis), out);
    gpu_release(&counts);
    return status;
}

static gpu_status extreme_lines(const char *name, int kind, const gpu_sparse *s,
                                int axis, int skips_nan, gpu_matrix *out,
                                int64_t *none)
{
    gpu_matrix counts;
    if (skips_nan) {
        TRY(count_elements(name, s, axis, 1, &counts, none));
        gpu_release(&counts);
    }
    return fold(name, kind == GPU_REDUCE_max ? GPU_SPARSE_MAX : GPU_SPARSE_MIN,
                s, axis, skips_nan, out);
}

/* Products are of rows. */
static gpu_status multiply_lines(const char *name, const gpu_sparse *s,
                                 int axis, int skips_nan, gpu_matrix *out)
{
    gpu_sparse turned;
    if (axis == 2)
        return fold(name, GPU_SPARSE_PROD, s, 2, skips_nan, out);
    TRY(gpu_sparse_transposed(s, &turned));
    gpu_status status = fold(name, GPU_SPARSE_PROD, &turned, 2, skips_nan, out);
    gpu_sparse_release(&turned);
    TRY(status);
    out->cols = out->rows;
    out->rows = 1;
    out->row_stride = out->cols;
    out->col_stride = 1;
    return GPU_OK;
}

/* f64 or c128, or a mask. */
static gpu_status reduce_lines(const char *name, int kind, const gpu_sparse *s,
                               int axis, const gpu_choice *how, gpu_matrix *out,
                               int64_t *none)
{
    switch (kind) {
    case GPU_REDUCE_sum:
        return fold(name, GPU_SPARSE_SUM, s, axis, how->skips_nan, out);
    case GPU_REDUCE_prod:
        return multiply_lines(name, s, axis, how->skips_nan, out);
    case GPU_REDUCE_mean:
        return mean_lines(name, s, axis, how->skips_nan, out, none);
    case GPU_REDUCE_var:
    case GPU_REDUCE_std:
        return spread_lines(name, kind, s, axis, how, out, none);
    case GPU_REDUCE_any:
    case GPU_REDUCE_all:
        return truth_lines(name, kind, s, axis, how->skips_nan, out);
    default:
        return extreme_lines(name, kind, s, axis, how->skips_nan, out, none);
    }
}

/* s where lines can be folded: itself, or a copy; to be released. */
static gpu_status bring_lines(const gpu_sparse *s, gpu_sparse *here)
{
    gpu_device *d = gpu_matrix_device(&s->values);
    return d->backend->sparse_reduce
               ? gpu_sparse_clone(s, s->values.dtype, d, here)
               : gpu_sparse_bring(s, here);
}

/* wide, which is released, as a result of s: of its precision. */
static gpu_status send_lines(gpu_matrix *wide, const gpu_sparse *s,
                             gpu_matrix *out)
{
    gpu_dtype own = s->values.dtype;
    gpu_dtype type = wide->dtype == GPU_BOOL ? GPU_BOOL
                     : gpu_is_complex(wide)  ? own
                                             : gpu_dtype_of_parts(own);
    return send(wide, type, gpu_matrix_device(&s->values), out);
}

gpu_status gpu_sparse_reduce(const char *name, gpu_reduction kind,
                             const gpu_sparse *s, int axis,
                             const gpu_choice *how, gpu_matrix *out,
                             int64_t *none)
{
    gpu_device *d;
    gpu_sparse here;
    gpu_matrix wide;
    out->storage = NULL;
    *none = 0;
    TRY(gpu_sparse_check(name, s, &d));
    TRY(check_reduced(name, kind, s, length_of(s, axis),
                      axis == 1 ? s->cols : s->rows, how));
    TRY(bring_lines(s, &here));
    gpu_status status = reduce_lines(name, kind, &here, axis, how, &wide, none);
    gpu_sparse_release(&here);
    return status == GPU_OK ? send_lines(&wide, s, out) : status;
}

/* --- norms -----------------------------------------------------------------
 * Of sizes, real ones; places without an entry add nothing. */

static gpu_status sizes_of(const gpu_sparse *s, gpu_sparse *out)
{
    gpu_matrix sizes;
    TRY(gpu_sizes_of(&s->values, &sizes));
    gpu_status status = gpu_sparse_with_values(s, &sizes, out);
    gpu_release(&sizes);
    return status;
}

/* The largest of each line, none 0 or infinite, so that dividing by them makes
 * no NaN. */
static gpu_status scale_of(const gpu_sparse *sizes, int axis, gpu_matrix *out)
{
    gpu_program p;
    const gpu_matrix *in[] = {out};
    TRY(fold("norm", GPU_SPARSE_MAX, sizes, axis, 0, out));
    gpu_program_start(&p, 1);
    int low = gpu_program_constant(&p, DBL_TRUE_MIN);
    int high = gpu_program_constant(&p, DBL_MAX);
    gpu_program_add(&p, GPU_OP_clip, 0, low, high);
    gpu_status status = gpu_map("norm", &p, in, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* scale (sum of (x / scale)^power)^(1 / power), the root taken in two steps: of
 * a small power neither it nor the scale need fit f64 alone. */
static gpu_status scaled_norm(const gpu_sparse *sizes, double power, int axis,
                              gpu_matrix *out)
{
    gpu_matrix scale;
    gpu_program p;
    TRY(scale_of(sizes, axis, &scale));
    gpu_program_start(&p, 2);
    int exponent = gpu_program_constant(&p, power);
    int share = gpu_program_add(&p, GPU_OP_div, 0, 1, 0);
    gpu_program_add(&p, GPU_OP_pow, share, exponent, 0);
    gpu_status status =
        fold_mapped("norm", GPU_SPARSE_SUM, sizes, axis, &p, &scale, out);
    if (status == GPU_OK) {
        gpu_program_start(&p, 2);
        int half = gpu_program_constant(&p, 0.5 / power);
        int root = gpu_program_add(&p, GPU_OP_pow, 0, half, 0);
        int value = gpu_program_add(&p, GPU_OP_mul, root, 1, 0);
        gpu_program_add(&p, GPU_OP_mul, value, root, 0);
        const gpu_matrix *in[] = {out, &scale};
        status = gpu_map("norm", &p, in, out);
        if (status != GPU_OK)
            gpu_release(out);
    }
    gpu_release(&scale);
    return status;
}

/* Are the values, but for zeros, far enough from both ends of the range that
 * no square overflows, or loses bits that count? In a dry run they are. */
static gpu_status are_safe(const gpu_matrix *values, int *safe)
{
    const double least = 1e-145, most = 1e145;
    double fine = 1;
    gpu_matrix parts[2];
    gpu_parts_of(values, parts);
    *safe = 1;
    for (int k = 0; k < 2 && parts[k].storage && *safe; k++) {
        gpu_program p;
        gpu_program_start(&p, 1);
        int zero = gpu_program_constant(&p, 0);
        int low = gpu_program_constant(&p, least);
        int high = gpu_program_constant(&p, most);
        int size = gpu_program_add(&p, GPU_OP_abs, 0, 0, 0);
        int is_zero = gpu_program_add(&p, GPU_OP_eq, 0, zero, 0);
        int is_large = gpu_program_add(&p, GPU_OP_ge, size, low, 0);
        int is_small = gpu_program_add(&p, GPU_OP_le, size, high, 0);
        int is_between =
            gpu_program_add(&p, GPU_OP_land, is_large, is_small, 0);
        gpu_program_add(&p, GPU_OP_lor, is_zero, is_between, 0);
        TRY(fold_all("norm", &p, GPU_REDUCE_all, &parts[k], &fine));
        *safe = fine != 0 || gpu_dry;
    }
    return GPU_OK;
}

static gpu_status root_of_squares(const gpu_sparse *s, int axis,
                                  gpu_matrix *out)
{
    TRY(fold("norm", GPU_SPARSE_SQUARES, s, axis, 0, out));
    gpu_status status = map_number("norm", GPU_OP_pow, out, 0.5, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

static gpu_status norm_of_sizes(const gpu_sparse *sizes, double p, int axis,
                                gpu_matrix *out)
{
    if (p == 1 || length_of(sizes, axis) == 0)
        return fold("norm", GPU_SPARSE_SUM, sizes, axis, 0, out);
    return isinf(p) ? fold("norm", GPU_SPARSE_MAX, sizes, axis, 0, out)
                    : scaled_norm(sizes, p, axis, out);
}

/* In f64; s lies where lines are folded. Squares of f32 always fit f64. */
static gpu_status norm_lines(const gpu_sparse *s, double p, int axis,
                             gpu_matrix *out)
{
    gpu_sparse sizes;
    int safe = p == 2;
    if (p == 2 && gpu_dtype_of_parts(s->values.dtype) == GPU_F64)
        TRY(are_safe(&s->values, &safe));
    if (safe)
        return root_of_squares(s, axis, out);
    TRY(sizes_of(s, &sizes));
    gpu_status status = norm_of_sizes(&sizes, p, axis, out);
    gpu_sparse_release(&sizes);
    return status;
}

static gpu_status norm_wide(const gpu_sparse *s, double p, int axis,
                            gpu_matrix *out)
{
    gpu_device *d;
    gpu_sparse here;
    out->storage = NULL;
    TRY(gpu_sparse_check("norm", s, &d));
    TRY(bring_lines(s, &here));
    gpu_status status = norm_lines(&here, p, axis, out);
    gpu_sparse_release(&here);
    return status;
}

gpu_status gpu_sparse_norm(const gpu_sparse *s, double p, int axis,
                           gpu_matrix *out)
{
    gpu_matrix wide;
    out->storage = NULL;
    if (!(p > 0))
        return gpu_fail(GPU_ARGUMENT, "norm: p is a number above 0, not %g", p);
    TRY(norm_wide(s, p, axis, &wide));
    return send_lines(&wide, s, out);
}

gpu_status gpu_sparse_norm_of_sums(const gpu_sparse *s, int axis, double *out)
{
    gpu_matrix sums;
    *out = 0;
    TRY(norm_wide(s, 1, axis, &sums));
    gpu_status status = gpu_size(&sums) > 0
                            ? gpu_norm_all(&sums, (double)INFINITY, out)
                            : GPU_OK;
    gpu_release(&sums);
    return status;
}

/* --- diagonals, columns and rows, and elements at places -------------------
 */

static gpu_status look_up_on(gpu_device *d, const char *name,
                             const gpu_sparse *s, const gpu_sparse *places,
                             gpu_matrix *out)
{
    gpu_csr from = gpu_csr_of(s), at = gpu_csr_of(places);
    TRY(gpu_create(out, d, s->values.dtype, 1, places->count, 1));
    if (places->count == 0)
        return GPU_OK;
    gpu_view to = gpu_target_of(out);
    gpu_operation op = {.name = name,
                        .kernel = "csr",
                        .device = d,
                        .result = out,
                        .bytes =
                            (double)(gpu_sparse_bytes(s) + gpu_bytes(out))};
    gpu_status status = RUN_OPERATION(&op, sparse_lookup, &from, &at, to.data);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

static gpu_status look_up(const char *name, const gpu_sparse *s,
                          const gpu_sparse *places, gpu_matrix *out)
{
    gpu_device *d;
    gpu_sparse here, at;
    gpu_matrix found;
    out->storage = NULL;
    TRY(gpu_sparse_check(name, s, &d));
    gpu_device *there = d->backend->sparse_lookup ? d : gpu_cpu();
    if (there != d)
        gpu_note_fallback();
    TRY(gpu_sparse_clone(s, s->values.dtype, there, &here));
    gpu_status status =
        gpu_sparse_clone(places, places->values.dtype, there, &at);
    if (status == GPU_OK) {
        status = look_up_on(there, name, &here, &at, &found);
        gpu_sparse_release(&at);
    }
    gpu_sparse_release(&here);
    return status == GPU_OK ? send(&found, found.dtype, d, out) : status;
}

gpu_status gpu_sparse_lookup(const gpu_sparse *s, const gpu_sparse *places,
                             gpu_matrix *out)
{
    gpu_device *d;
    const gpu_matrix *in[] = {&s->values, &places->values};
    out->storage = NULL;
    TRY(gpu_check_complex("index", in, 2, &d));
    if (s->rows != places->rows || s->cols != places->cols)
        return gpu_fail(GPU_SHAPE, "index: shapes differ (%s, mask %s)",
                        gpu_size_text(s->rows, s->cols),
                        gpu_size_text(places->rows, places->cols));
    return look_up("index", s, places, out);
}

static gpu_status walk_on(gpu_device *d, const char *name, const gpu_sparse *s,
                          const gpu_sparse_path *path, gpu_matrix *out)
{
    gpu_csr from = gpu_csr_of(s);
    TRY(gpu_create(out, d, s->values.dtype, 1, path->count, 1));
    if (path->count == 0)
        return GPU_OK;
    gpu_view to = gpu_target_of(out);
    gpu_operation op = {.name = name,
                        .kernel = "csr",
                        .device = d,
                        .result = out,
                        .bytes = 2 * (double)gpu_bytes(out)};
    gpu_status status = RUN_OPERATION(&op, sparse_along, &from, path, to.data);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* The elements of s along a path inside it. */
static gpu_status walk(const char *name, const gpu_sparse *s,
                       const gpu_sparse_path *path, gpu_matrix *out)
{
    gpu_device *d;
    gpu_sparse here;
    gpu_matrix found;
    TRY(gpu_sparse_check(name, s, &d));
    if (d->backend->sparse_along)
        return walk_on(d, name, s, path, out);
    TRY(gpu_sparse_bring(s, &here));
    gpu_status status = walk_on(gpu_cpu(), name, &here, path, &found);
    gpu_sparse_release(&here);
    return status == GPU_OK ? send(&found, found.dtype, d, out) : status;
}

gpu_status gpu_sparse_diagonal(const char *name, const gpu_sparse *s, int64_t k,
                               gpu_matrix *out)
{
    gpu_sparse_path path = {.row = k < 0 ? -k : 0, k < 0 ? 0 : k, .step = 1};
    int64_t down = s->rows - path.row, across = s->cols - path.column;
    int64_t length = down < across ? down : across;
    path.count = length > 0 ? length : 0;
    out->storage = NULL;
    return walk(name, s, &path, out);
}

/* The run of a vector on the CPU. */
static gpu_status bring_run(const gpu_matrix *from, const int32_t ends[2],
                            gpu_matrix *out)
{
    gpu_matrix part;
    gpu_slice run = {ends[0], 1, ends[1] - ends[0]}, all = {0, 1, 1};
    TRY(gpu_view_block(from, run, all, &part));
    gpu_status status = gpu_clone(&part, part.dtype, gpu_cpu(), out);
    gpu_release(&part);
    return status;
}

/* out: on the CPU, zeros. */
static gpu_status place_row(const gpu_sparse *s, const int32_t ends[2],
                            gpu_matrix *out)
{
    gpu_matrix columns, values;
    size_t size = gpu_dtype_size(out->dtype);
    TRY(bring_run(&s->columns, ends, &columns));
    gpu_status status = bring_run(&s->values, ends, &values);
    if (status == GPU_OK) {
        const int32_t *at = gpu_view_of(&columns).data;
        const char *from = gpu_view_of(&values).data;
        char *to = gpu_target_of(out).data;
        for (int64_t k = 0; k < ends[1] - ends[0]; k++)
            memcpy(to + (size_t)at[k] * size, from + (size_t)k * size, size);
        gpu_release(&values);
    }
    gpu_release(&columns);
    return status;
}

/* Only the row's entries, and where they are, cross the bus. */
static gpu_status take_row(const gpu_sparse *s, int64_t row, gpu_matrix *out)
{
    gpu_device *d = gpu_matrix_device(&s->values);
    gpu_matrix part, line;
    gpu_slice two = {row, 1, 2}, all = {0, 1, 1};
    int32_t ends[2] = {0, 0};
    TRY(gpu_view_block(&s->starts, two, all, &part));
    gpu_status status = gpu_dry ? GPU_OK : gpu_download(&part, ends);
    gpu_release(&part);
    TRY(status);
    TRY(gpu_create(&line, gpu_cpu(), s->values.dtype, 1, s->cols, 1));
    status = gpu_is_complex(&line)
                 ? gpu_complex_fill(&line, (gpu_complex){0, 0})
                 : gpu_fill(&line, 0);
    if (status == GPU_OK && ends[1] > ends[0])
        status = place_row(s, ends, &line);
    if (status == GPU_OK)
        return send(&line, line.dtype, d, out);
    gpu_release(&line);
    return status;
}

gpu_status gpu_sparse_line(const gpu_sparse *s, int axis, int64_t place,
                           gpu_matrix *out)
{
    gpu_device *d;
    out->storage = NULL;
    TRY(gpu_sparse_check("index", s, &d));
    TRY(gpu_check_places("index", &place, 1, axis == 1 ? s->rows : s->cols,
                         axis == 1 ? "row" : "column"));
    if (axis == 1)
        return take_row(s, place, out);
    gpu_sparse_path path = {.column = place, .count = s->rows};
    return walk("index", s, &path, out);
}
