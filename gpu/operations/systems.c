/* Linear systems: solve, inverse, determinant, condition. A backend without
 * them has the CPU do it, on copies. Of complex matrices they are made of LU
 * and triangles, as factor.c has them. */
#include "complex_numbers.h"
#include "core.h"
#include "inverse_size.h"
#include "op_list.h"

#include <math.h>
#include <stdlib.h>

static gpu_status check_square(const char *name, const gpu_matrix *a)
{
    if (a->ndim == 2 && a->rows == a->cols)
        return GPU_OK;
    return gpu_fail(GPU_SHAPE, "%s: needs a square matrix, not %s", name,
                    gpu_shape_text(a));
}

static gpu_dtype system_type(const gpu_matrix *a, const gpu_matrix *b)
{
    return gpu_dtype_wider(a->dtype, b->dtype);
}

/* Where the entry is: the matrices' own device, or the CPU. */
static gpu_device *solver(gpu_device *d, int has_entry, const gpu_matrix *a,
                          gpu_dtype type)
{
    const gpu_backend *b = d->backend;
    gpu_factoring f = {.kind = GPU_FACTOR_LU,
                       .a = {.dtype = type, .rows = a->rows, .cols = a->cols}};
    int can = has_entry &&
              (!b->choose_factor || b->choose_factor(d->handle, &f) != NULL);
    return can ? d : gpu_cpu();
}

/* --- condition -------------------------------------------------------------
 * A matrix is poor where rcond is below 10 eps, and rounding its elements
 * changes solutions as much: by |E| |a^-1| in the 2-norm, |E| being about eps
 * |a|_F / sqrt(n). rcond alone would not do: its 1-norm makes matrices without
 * any structure look worse than they are, by a factor of n, and of n = 4096
 * every random f32 one would be said to have no digit left, where it has
 * three. Up to 4x4 the second follows from an rcond below eps. */

static double poor_from(gpu_dtype type)
{
    return 10 * (gpu_dtype_of_parts(type) == GPU_F64 ? 0x1p-52 : 0x1p-23);
}

static gpu_status reduce_one(const gpu_matrix *a, gpu_op op, gpu_reduction kind,
                             double *out)
{
    const gpu_matrix *in[] = {a};
    gpu_program p;
    gpu_program_start(&p, 1);
    gpu_program_add(&p, op, 0, 0, 0);
    p.reduction = (uint8_t)kind;
    return gpu_reduce_all("rcond", &p, in, out);
}

static gpu_status frobenius_norm(const gpu_matrix *a, double *out)
{
    if (a->dtype == GPU_F64) {
        TRY(reduce_one(a, GPU_OP_square, GPU_REDUCE_sum, out));
        *out = sqrt(*out);
        if (*out > 0x1p-400 && *out < 0x1p400)
            return GPU_OK;
    }
    TRY(reduce_one(a, GPU_OP_abs, GPU_REDUCE_norm, out));
    if (isinf(*out)) /* of finite elements, too */
        TRY(reduce_one(a, GPU_OP_abs, GPU_REDUCE_max, out));
    return GPU_OK;
}

/* The 1-norm of a / 2^exponent, which keeps it in range. */
static gpu_status norm_1(const gpu_matrix *a, int exponent, double *out)
{
    const gpu_matrix *in[] = {a};
    gpu_matrix sums;
    gpu_program p;
    gpu_program_start(&p, 1);
    int half = gpu_program_constant(&p, ldexp(1, -exponent / 2));
    int rest = gpu_program_constant(&p, ldexp(1, -exponent - -exponent / 2));
    int x = gpu_program_add(&p, GPU_OP_abs, 0, 0, 0);
    x = gpu_program_add(&p, GPU_OP_mul, x, half, 0);
    gpu_program_add(&p, GPU_OP_mul, x, rest, 0);
    p.reduction = GPU_REDUCE_sum;
    TRY(gpu_reduce("rcond", &p, in, 1, &sums));
    gpu_status status = reduce_one(&sums, GPU_OP_abs, GPU_REDUCE_max, out);
    gpu_release(&sums);
    return status;
}

/* start: about |a| 2^-k, so that the inverse of a good matrix is about 2^-k,
 * and of others there is room above; 0 where there is nothing to ask, of
 * zeros, Inf and NaN. */
static gpu_status prepare(const gpu_matrix *a, gpu_dtype type,
                          double *frobenius, gpu_inverse_size *inverse)
{
    int is_f64 = gpu_dtype_of_parts(type) == GPU_F64;
    int least = is_f64 ? -900 : -100;
    *inverse = (gpu_inverse_size){.start = 0};
    TRY(frobenius_norm(a, frobenius));
    if (!(*frobenius > 0) || !isfinite(*frobenius))
        return GPU_OK;
    int start = ilogb(*frobenius) - (is_f64 ? 300 : 60);
    inverse->start = ldexp(1, start > least ? start : least);
    return GPU_OK;
}

/* start |a^-1| from which a is poor. */
static double limit_of(const gpu_matrix *a, gpu_dtype type, double frobenius,
                       double start)
{
    return start / frobenius * sqrt((double)a->rows) / poor_from(type);
}

static gpu_status find_rcond(const gpu_matrix *a, double frobenius,
                             const gpu_inverse_size *inverse, double *out)
{
    double norm;
    int exponent = ilogb(frobenius), more;
    TRY(norm_1(a, exponent, &norm));
    norm *= frexp(inverse->norm_1, &more);
    *out = a->rows == 1;
    if (a->rows > 1 && isfinite(inverse->norm_1))
        *out = ldexp(1 / norm, ilogb(inverse->start) - more - exponent);
    *out = *out > 1 ? 1 : *out;
    return GPU_OK;
}

/* --- systems -------------------------------------------------------------- */

static gpu_status run_solve(gpu_device *d, const gpu_matrix *a,
                            const gpu_matrix *b, gpu_inverse_size *inverse)
{
    gpu_view left = gpu_target_of(a), right = gpu_target_of(b);
    double n = (double)a->rows;
    gpu_operation op = {.name = "solve",
                        .kernel = "lu",
                        .device = d,
                        .result = b,
                        .k = a->rows,
                        .flops = n * n * (2.0 / 3 * n + 2.0 * (double)b->cols),
                        .bytes = (double)(gpu_bytes(a) + gpu_bytes(b))};
    return RUN_OPERATION(&op, solve, &left, &right, inverse);
}

/* x becomes a^-1 x, where x is. */
static gpu_status solve_there(const gpu_matrix *a, const gpu_matrix *x,
                              gpu_inverse_size *inverse)
{
    gpu_device *there = gpu_matrix_device(x);
    gpu_matrix factors;
    TRY(gpu_clone(a, x->dtype, there, &factors));
    if (there != gpu_matrix_device(a))
        gpu_note_fallback();
    gpu_status status = run_solve(there, &factors, x, inverse);
    gpu_release(&factors);
    return status;
}

/* The same, and what is to be said of a. */
static gpu_status solve_and_judge(const gpu_matrix *a, const gpu_matrix *x,
                                  gpu_condition *condition)
{
    gpu_inverse_size inverse;
    double frobenius, limit;
    int wants_rcond = condition->wants_rcond;
    *condition = (gpu_condition){.rcond = 1, .is_direct = condition->is_direct};
    gpu_quiet before = gpu_begin_quiet();
    TRY(gpu_end_quiet(before, prepare(a, x->dtype, &frobenius, &inverse)));
    if (inverse.start == 0) {
        condition->rcond = frobenius == 0 ? 0 : NAN;
        return solve_there(a, x, NULL);
    }
    limit = limit_of(a, x->dtype, frobenius, inverse.start);
    inverse.limit = wants_rcond ? 0 : limit;
    inverse.is_direct = condition->is_direct;
    TRY(solve_there(a, x, &inverse));
    condition->steps = inverse.steps;
    condition->backward_error = inverse.backward;
    if (inverse.norm_1 == 0)
        return GPU_OK;
    condition->is_poor = !(inverse.norm_2 < limit);
    before = gpu_begin_quiet();
    TRY(gpu_end_quiet(before,
                      find_rcond(a, frobenius, &inverse, &condition->rcond)));
    condition->is_poor &= condition->rcond < poor_from(x->dtype);
    return GPU_OK;
}

/* x, made here, becomes the solution. */
static gpu_status solve_on(gpu_device *there, const gpu_matrix *a,
                           const gpu_matrix *b, gpu_matrix *x,
                           gpu_condition *condition)
{
    TRY(gpu_clone(b, system_type(a, b), there, x));
    gpu_status status = GPU_OK;
    if (gpu_size(b) > 0)
        status = condition ? solve_and_judge(a, x, condition)
                           : solve_there(a, x, NULL);
    if (status != GPU_OK)
        gpu_release(x);
    return status;
}

/* --- complex systems ------------------------------------------------------ */

/* Of A^T, as of real matrices: A^T[places] = L U, both in `packed`; a matrix
 * that lies row by row is factored as it lies. */
typedef struct complex_lu {
    gpu_matrix packed;
    int64_t *places;
    int64_t zero;  /* the first pivot that is, from 1; or 0 */
    double norm_1; /* the largest found of |start A^-1 x| / |x| */
} complex_lu;

static void end_lu(complex_lu *f)
{
    gpu_release(&f->packed);
    free(f->places);
}

/* Of an a in that type, which has rows; to be ended where it succeeds. */
static gpu_status begin_lu(const gpu_matrix *a, gpu_dtype type, complex_lu *f)
{
    gpu_matrix wide, turned;
    *f = (complex_lu){.places = malloc((size_t)a->rows * sizeof *f->places)};
    if (!f->places)
        return gpu_fail(GPU_MEMORY, "out of memory: %s for the order of rows",
                        gpu_bytes_text((size_t)a->rows * sizeof *f->places));
    gpu_status status = GPU_OK;
    if (a->dtype == type) {
        gpu_retain(a);
        wide = *a;
    } else {
        status = gpu_clone(a, type, NULL, &wide);
    }
    if (status == GPU_OK) {
        gpu_view_transposed(&wide, &turned);
        status = gpu_lu(&turned, NULL, &f->packed, f->places, &f->zero);
        gpu_release(&turned);
        gpu_release(&wide);
    }
    if (status != GPU_OK)
        end_lu(f);
    return status;
}

/* The x of L U x = b, or turned, of (L U)^T x = b, which is what A wants but
 * for the order of x: the conjugate transpose of the conjugates. */
static gpu_status undo_lu(const complex_lu *f, int turned, const gpu_matrix *b,
                          gpu_matrix *x)
{
    gpu_triangle lower = {1, 1, turned}, upper = {0, 0, turned};
    gpu_matrix y, packed = f->packed;
    int64_t zero;
    packed.is_conjugated = turned;
    x->storage = NULL;
    TRY(gpu_solve_triangle(&packed, turned ? upper : lower, b, &y, &zero));
    gpu_status status =
        gpu_solve_triangle(&packed, turned ? lower : upper, &y, x, &zero);
    gpu_release(&y);
    return status;
}

/* n complex numbers, as pairs of f64, into a column of that type, or back. */
static gpu_status put_column(gpu_matrix *column, const double *x)
{
    gpu_matrix wide;
    if (column->dtype == GPU_C128)
        return gpu_complex_upload(column, x);
    TRY(gpu_create(&wide, gpu_matrix_device(column), GPU_C128, 1, column->rows,
                   1));
    gpu_status status = gpu_complex_upload(&wide, x);
    if (status == GPU_OK)
        status = gpu_copy(&wide, column);
    gpu_release(&wide);
    return status;
}

static gpu_status take_column(const gpu_matrix *column, double *x)
{
    gpu_matrix wide;
    TRY(gpu_clone(column, GPU_C128, NULL, &wide));
    gpu_status status = gpu_complex_download(&wide, x);
    gpu_release(&wide);
    return status;
}

static double sum_of_sizes(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += hypot(x[2 * i], x[2 * i + 1]);
    return sum;
}

static void conjugate(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[2 * i + 1] = -x[2 * i + 1];
}

/* A gpu_invert, of the real matrix of twice the order that does to the parts of
 * a vector what A^-1 does to the vector: its 2-norm is that of A^-1. Its 1-norm
 * is larger, by sqrt(2) at most: so what columns and other vectors show of that
 * of A^-1 is kept. The rows of A^-1 are in the order of the places. Turned, it
 * is A^-H x, the conjugate of (L U)^-1 conj(x). */
static gpu_status invert(void *context, double *x, double start, int turned)
{
    complex_lu *f = context;
    gpu_matrix column, result = {.storage = NULL};
    int64_t n = f->packed.rows;
    int is_c64 = f->packed.dtype == GPU_C64;
    for (int64_t i = 0; i < 2 * n; i++)
        x[i] = is_c64 ? (double)(float)(x[i] * start) : x[i] * start;
    double before = sum_of_sizes(x, n) / start;
    if (turned)
        conjugate(x, n);
    TRY(gpu_create(&column, gpu_matrix_device(&f->packed), f->packed.dtype, 1,
                   n, 1));
    gpu_status status = put_column(&column, x);
    if (status == GPU_OK)
        status = undo_lu(f, !turned, &column, &result);
    if (status == GPU_OK)
        status = take_column(&result, x);
    gpu_release(&result);
    gpu_release(&column);
    if (turned)
        conjugate(x, n);
    double ratio = sum_of_sizes(x, n) / before;
    if (!turned && ratio > f->norm_1)
        f->norm_1 = ratio;
    return status;
}

/* The norms of a's inverse, as backend.h has them, by its factors. */
static gpu_status measure_complex(complex_lu *f, gpu_inverse_size *inverse)
{
    int64_t n = f->packed.rows;
    inverse->norm_1 = inverse->norm_2 = INFINITY;
    if (f->zero > 0)
        return GPU_OK;
    double *room = malloc(4 * (size_t)n * sizeof *room);
    if (!room)
        return gpu_fail(GPU_MEMORY, "out of memory: %s for a condition",
                        gpu_bytes_text(4 * (size_t)n * sizeof *room));
    gpu_quiet before = gpu_begin_quiet();
    gpu_status status = gpu_end_quiet(
        before, gpu_measure_inverse(2 * n, room, invert, f, inverse));
    free(room);
    if (inverse->norm_1 > 0 && isfinite(inverse->norm_1))
        inverse->norm_1 = f->norm_1;
    return status;
}

/* How large the elements of a are, and what is to be asked of its inverse. In a
 * dry run nothing. */
static gpu_status prepare_complex(const gpu_matrix *a, gpu_dtype type,
                                  gpu_matrix *sizes, double *frobenius,
                                  gpu_inverse_size *inverse)
{
    TRY(gpu_sizes_of(a, sizes));
    gpu_status status = prepare(sizes, type, frobenius, inverse);
    if (gpu_dry)
        inverse->start = 0;
    if (status != GPU_OK)
        gpu_release(sizes);
    return status;
}

static gpu_status judge_complex(const gpu_matrix *a, complex_lu *f,
                                gpu_condition *condition)
{
    gpu_matrix sizes;
    gpu_inverse_size inverse;
    double frobenius, limit = 0;
    int wants_rcond = condition->wants_rcond;
    gpu_dtype type = f->packed.dtype;
    *condition = (gpu_condition){.rcond = 1, .is_direct = condition->is_direct};
    TRY(prepare_complex(a, type, &sizes, &frobenius, &inverse));
    gpu_status status = GPU_OK;
    if (inverse.start == 0 && !gpu_dry)
        condition->rcond = frobenius == 0 ? 0 : NAN;
    if (inverse.start != 0) {
        limit = limit_of(a, type, frobenius, inverse.start);
        inverse.limit = wants_rcond ? 0 : limit;
        status = measure_complex(f, &inverse);
    }
    if (status == GPU_OK && inverse.start != 0 && inverse.norm_1 != 0) {
        status = find_rcond(&sizes, frobenius, &inverse, &condition->rcond);
        condition->is_poor =
            !(inverse.norm_2 < limit) && condition->rcond < poor_from(type);
    }
    gpu_release(&sizes);
    return status;
}

/* The complex x of a x = b with a real a: of a b whose parts are columns of
 * their own. They lie beside each other. */
static gpu_status solve_parts(const gpu_matrix *a, const gpu_matrix *b,
                              gpu_dtype type, gpu_matrix *x,
                              gpu_condition *condition)
{
    gpu_matrix dense, columns;
    TRY(gpu_clone(b, type, NULL, &dense));
    columns = dense;
    columns.dtype = gpu_dtype_of_parts(type);
    columns.ndim = 2;
    columns.cols = 2 * b->cols;
    columns.row_stride = columns.cols;
    columns.col_stride = 1;
    gpu_status status = gpu_solve(a, &columns, x, condition);
    gpu_release(&dense);
    if (status != GPU_OK)
        return status;
    x->dtype = type;
    x->ndim = b->ndim;
    x->cols = b->cols;
    x->row_stride = b->cols;
    return GPU_OK;
}

/* x of A x = b, whose row places[i] is row i of what the factors give. */
static gpu_status solve_ordered(const complex_lu *f, const gpu_matrix *b,
                                gpu_matrix *x)
{
    gpu_matrix y;
    int64_t n = f->packed.rows;
    int64_t *rows = malloc((size_t)n * sizeof *rows);
    x->storage = NULL;
    if (!rows)
        return gpu_fail(GPU_MEMORY, "out of memory: %s for the order of rows",
                        gpu_bytes_text((size_t)n * sizeof *rows));
    for (int64_t i = 0; i < n; i++)
        rows[f->places[i]] = i;
    gpu_status status = undo_lu(f, 1, b, &y);
    if (status == GPU_OK) {
        status = gpu_gather(&y, rows, n, NULL, 0, x);
        gpu_release(&y);
    }
    free(rows);
    return status;
}

/* x of a x = b, of the type. */
static gpu_status solve_complex(const gpu_matrix *a, const gpu_matrix *b,
                                gpu_dtype type, gpu_matrix *x,
                                gpu_condition *condition)
{
    complex_lu f;
    if (gpu_size(b) == 0)
        return gpu_clone(b, type, NULL, x);
    TRY(begin_lu(a, type, &f));
    gpu_status status = GPU_OK;
    if (f.zero > 0)
        status = gpu_fail(GPU_SINGULAR,
                          "solve: the matrix is singular (pivot %lld is zero)",
                          (long long)f.zero);
    if (status == GPU_OK)
        status = solve_ordered(&f, b, x);
    if (status == GPU_OK && condition) {
        gpu_quiet before = gpu_begin_quiet();
        status = gpu_end_quiet(before, judge_complex(a, &f, condition));
    }
    end_lu(&f);
    if (status == GPU_OK)
        return GPU_OK;
    gpu_release(x);
    x->storage = NULL;
    return status;
}

static gpu_status rcond_complex(const gpu_matrix *a, double *out)
{
    complex_lu f;
    gpu_matrix sizes;
    double frobenius;
    gpu_inverse_size inverse;
    TRY(prepare_complex(a, a->dtype, &sizes, &frobenius, &inverse));
    *out = gpu_dry ? 1 : frobenius == 0 ? 0 : NAN;
    gpu_status status = GPU_OK;
    if (inverse.start != 0) {
        status = begin_lu(a, a->dtype, &f);
        if (status == GPU_OK) {
            status = measure_complex(&f, &inverse);
            end_lu(&f);
        }
        if (status == GPU_OK)
            status = find_rcond(&sizes, frobenius, &inverse, out);
    }
    gpu_release(&sizes);
    return status;
}

/* z = mantissa 2^exponent, so that products of pivots stay in range. */
static void rescale(gpu_complex *z, int64_t *exponent)
{
    double size = fmax(fabs(z->re), fabs(z->im));
    if (!(size > 0) || !isfinite(size))
        return;
    int e = ilogb(size);
    z->re = scalbn(z->re, -e);
    z->im = scalbn(z->im, -e);
    *exponent += e;
}

int gpu_is_odd(int64_t *places, int64_t n)
{
    int odd = 0;
    for (int64_t i = 0; i < n; i++)
        while (places[i] != i) {
            int64_t to = places[i];
            if (places[to] == to) /* no permutation: two lead there */
                break;
            places[i] = places[to];
            places[to] = to;
            odd = !odd;
        }
    return odd;
}

/* The product of the pivots. */
static gpu_status multiply_pivots(complex_lu *f, gpu_complex *out)
{
    gpu_matrix diagonal;
    int64_t n = f->packed.rows, exponent = 0;
    double *pivots = malloc(2 * (size_t)n * sizeof *pivots);
    if (!pivots)
        return gpu_fail(GPU_MEMORY, "out of memory: %s for a determinant",
                        gpu_bytes_text(2 * (size_t)n * sizeof *pivots));
    gpu_view_diagonal(&f->packed, 0, &diagonal);
    gpu_status status = take_column(&diagonal, pivots);
    gpu_release(&diagonal);
    gpu_complex det = {gpu_is_odd(f->places, n) ? -1 : 1, 0};
    for (int64_t i = 0; i < n && status == GPU_OK; i++) {
        double c = pivots[2 * i], d = pivots[2 * i + 1];
        det = (gpu_complex){det.re * c - det.im * d, det.re * d + det.im * c};
        rescale(&det, &exponent);
    }
    free(pivots);
    int e = (int)(exponent > 5000 ? 5000 : exponent < -5000 ? -5000 : exponent);
    *out = (gpu_complex){ldexp(det.re, e), ldexp(det.im, e)};
    return status;
}

/* Of c64 in c128, too: it leaves the range of f32 soon. */
gpu_status gpu_complex_determinant(const gpu_matrix *a, gpu_complex *out)
{
    gpu_device *d;
    complex_lu f;
    TRY(gpu_check_complex("det", &a, 1, &d));
    TRY(check_square("det", a));
    *out = (gpu_complex){1, 0};
    if (a->rows == 0)
        return GPU_OK;
    TRY(begin_lu(a, GPU_C128, &f));
    gpu_status status = GPU_OK;
    if (f.zero > 0)
        *out = (gpu_complex){0, 0};
    else if (!gpu_dry)
        status = multiply_pivots(&f, out);
    end_lu(&f);
    return status;
}

/* --- the entries -----------------------------------------------------------
 */

gpu_status gpu_solve(const gpu_matrix *a, const gpu_matrix *b, gpu_matrix *out,
                     gpu_condition *condition)
{
    gpu_device *d;
    const gpu_matrix *in[] = {a, b};
    out->storage = NULL;
    TRY(gpu_check_complex("solve", in, 2, &d));
    TRY(check_square("solve", a));
    if (b->rows != a->rows)
        return gpu_fail(GPU_SHAPE, "solve: %s has %lld rows, the right side %s",
                        gpu_shape_text(a), (long long)a->rows,
                        gpu_shape_text(b));
    gpu_dtype type = system_type(a, b);
    if (gpu_is_complex(a))
        return solve_complex(a, b, type, out, condition);
    if (gpu_is_complex(b))
        return solve_parts(a, b, type, out, condition);
    gpu_device *there = solver(d, d->backend->solve != NULL, a, type);
    gpu_matrix x;
    gpu_status status = solve_on(there, a, b, &x, condition);
    if (gpu_is_left_to_cpu(status, &there))
        status = solve_on(there, a, b, &x, condition);
    if (status != GPU_OK)
        return status;
    if (there == d) {
        *out = x;
        return GPU_OK;
    }
    status = gpu_clone(&x, type, d, out);
    gpu_release(&x);
    return status;
}

/* The identity: ones where row and column agree. */
static gpu_status identity(gpu_device *d, gpu_dtype type, int64_t n,
                           gpu_matrix *out)
{
    TRY(gpu_create(out, d, type, 2, n, n));
    gpu_program p;
    gpu_program_start(&p, 0);
    int row = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    int col = gpu_program_add(&p, GPU_OP_COL, 0, 0, 0);
    gpu_program_add(&p, GPU_OP_eq, row, col, 0);
    gpu_status status = gpu_map("eye", &p, NULL, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_inverse(const gpu_matrix *a, gpu_matrix *out,
                       gpu_condition *condition)
{
    gpu_device *d;
    gpu_matrix one;
    const gpu_matrix *in[] = {a};
    out->storage = NULL;
    TRY(gpu_check_complex("inv", in, 1, &d));
    TRY(check_square("inv", a));
    TRY(identity(d, system_type(a, a), a->rows, &one));
    gpu_status status = gpu_solve(a, &one, out, condition);
    gpu_release(&one);
    return status;
}

/* One that takes a's factors only, which come to be where a's copy is. */
static gpu_operation factoring(const char *name, gpu_device *d,
                               const gpu_matrix *factors)
{
    double n = (double)factors->rows;
    return (gpu_operation){.name = name,
                           .kernel = "lu",
                           .device = d,
                           .result = factors,
                           .k = factors->rows,
                           .flops = 2.0 / 3 * n * n * n,
                           .bytes = (double)gpu_bytes(factors)};
}

/* A copy of a to be factored. */
static gpu_status copy_to(gpu_device *there, const gpu_matrix *a,
                          gpu_matrix *factors)
{
    TRY(gpu_clone(a, system_type(a, a), there, factors));
    if (there != gpu_matrix_device(a))
        gpu_note_fallback();
    return GPU_OK;
}

static gpu_status run_determinant(gpu_device *d, const gpu_matrix *a,
                                  double *out)
{
    gpu_matrix factors;
    TRY(copy_to(d, a, &factors));
    gpu_view view = gpu_target_of(&factors);
    gpu_operation op = factoring("det", d, &factors);
    gpu_status status = RUN_OPERATION(&op, determinant, &view, out);
    gpu_release(&factors);
    if (*out != *out)
        *out = NAN; /* without a sign */
    if (*out == 0)
        *out = 0; /* of a singular matrix, whatever the other pivots' signs */
    return status;
}

gpu_status gpu_determinant(const gpu_matrix *a, double *out)
{
    gpu_device *d;
    const gpu_matrix *in[] = {a};
    TRY(gpu_check_operands("det", in, 1, &d));
    TRY(check_square("det", a));
    *out = 1;
    if (a->rows == 0)
        return GPU_OK;
    gpu_dtype type = system_type(a, a);
    gpu_device *there = solver(d, d->backend->determinant != NULL, a, type);
    gpu_status status = run_determinant(there, a, out);
    return gpu_is_left_to_cpu(status, &there) ? run_determinant(there, a, out)
                                              : status;
}

static gpu_status run_inverse_norm(gpu_device *d, const gpu_matrix *a,
                                   gpu_inverse_size *inverse)
{
    gpu_matrix factors;
    TRY(copy_to(d, a, &factors));
    gpu_view view = gpu_target_of(&factors);
    gpu_operation op = factoring("rcond", d, &factors);
    gpu_status status = RUN_OPERATION(&op, inverse_norm, &view, inverse);
    gpu_release(&factors);
    return status;
}

/* `inverse` by a's factors, which there is a place for. */
static gpu_status measure_inverse(const gpu_matrix *a,
                                  gpu_inverse_size *inverse)
{
    gpu_device *d = gpu_matrix_device(a);
    gpu_dtype type = system_type(a, a);
    gpu_device *there = solver(d, d->backend->inverse_norm != NULL, a, type);
    gpu_status status = run_inverse_norm(there, a, inverse);
    return gpu_is_left_to_cpu(status, &there)
               ? run_inverse_norm(there, a, inverse)
               : status;
}

gpu_status gpu_rcond(const gpu_matrix *a, double *out)
{
    gpu_device *d;
    double frobenius;
    gpu_inverse_size inverse;
    const gpu_matrix *in[] = {a};
    TRY(gpu_check_complex("rcond", in, 1, &d));
    TRY(check_square("rcond", a));
    *out = 1;
    if (a->rows == 0)
        return GPU_OK;
    if (gpu_is_complex(a))
        return rcond_complex(a, out);
    gpu_quiet before = gpu_begin_quiet();
    TRY(gpu_end_quiet(before,
                      prepare(a, system_type(a, a), &frobenius, &inverse)));
    *out = frobenius == 0 ? 0 : NAN;
    if (inverse.start == 0)
        return GPU_OK;
    TRY(measure_inverse(a, &inverse));
    before = gpu_begin_quiet();
    return gpu_end_quiet(before, find_rcond(a, frobenius, &inverse, out));
}
