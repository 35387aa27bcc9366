/* Linear systems: solve, inverse, determinant, condition. A backend without
 * them has the CPU do it, on copies. */
#include "core.h"
#include "op_list.h"

#include <math.h>

static gpu_status check_square(const char *name, const gpu_matrix *a)
{
    if (a->ndim == 2 && a->rows == a->cols)
        return GPU_OK;
    return gpu_fail(GPU_SHAPE, "%s: needs a square matrix, not %s", name,
                    gpu_shape_text(a));
}

static gpu_dtype system_type(const gpu_matrix *a, const gpu_matrix *b)
{
    return a->dtype == GPU_F64 || b->dtype == GPU_F64 ? GPU_F64 : GPU_F32;
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
    return 10 * (type == GPU_F64 ? 0x1p-52 : 0x1p-23);
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
    int is_f64 = type == GPU_F64, least = is_f64 ? -900 : -100;
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
    double frobenius;
    *condition = (gpu_condition){.rcond = 1, .is_direct = condition->is_direct};
    gpu_quiet before = gpu_begin_quiet();
    TRY(gpu_end_quiet(before, prepare(a, x->dtype, &frobenius, &inverse)));
    if (inverse.start == 0)
        return solve_there(a, x, NULL);
    inverse.limit = limit_of(a, x->dtype, frobenius, inverse.start);
    inverse.is_direct = condition->is_direct;
    TRY(solve_there(a, x, &inverse));
    condition->steps = inverse.steps;
    condition->backward_error = inverse.backward;
    if (inverse.norm_1 == 0)
        return GPU_OK;
    condition->is_poor = !(inverse.norm_2 < inverse.limit);
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

gpu_status gpu_solve(const gpu_matrix *a, const gpu_matrix *b, gpu_matrix *out,
                     gpu_condition *condition)
{
    gpu_device *d;
    const gpu_matrix *in[] = {a, b};
    out->storage = NULL;
    TRY(gpu_check_operands("solve", in, 2, &d));
    TRY(check_square("solve", a));
    if (b->rows != a->rows)
        return gpu_fail(GPU_SHAPE, "solve: %s has %lld rows, the right side %s",
                        gpu_shape_text(a), (long long)a->rows,
                        gpu_shape_text(b));
    gpu_dtype type = system_type(a, b);
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
    TRY(gpu_check_operands("inv", in, 1, &d));
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
    TRY(gpu_check_operands("rcond", in, 1, &d));
    TRY(check_square("rcond", a));
    *out = 1;
    if (a->rows == 0)
        return GPU_OK;
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
