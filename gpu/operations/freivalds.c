/* Products checked as they are made, by Freivalds' way: C x against A (B x) for
 * a vector x of random signs, in f64, reading each matrix once or twice.
 *
 * A right kernel keeps |C - AB| <= gamma |A||B| element by element. Row i of
 * (C - AB) x is then at most gamma times the sum over k of |A_ik| times the
 * 1-norm of row k of B; and, the signs being random, with a probability of
 * 1 - 2 exp(-SIGMAS^2 / 2), which is 1 - 5e-18, at most SIGMAS times the same
 * with 2-norms (Hoeffding, Probability inequalities for sums of bounded random
 * variables, 1963). The second is less where rows are long. To it comes what
 * the check itself rounds. */
#include "core.h"
#include "op_list.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double SIGMAS = 9;
static const char what[] = "check";

static gpu_checks counted;
static uint64_t calls; /* other signs for each product */

const gpu_checks *gpu_checked(void)
{
    return &counted;
}

/* --- the vectors ---------------------------------------------------------- */

/* -1 or 1, 1 x n. */
static gpu_status make_signs(gpu_device *d, int64_t n, gpu_matrix *out)
{
    gpu_random coin = {
        .kind = GPU_INTEGER, .seed = 0x5eed, .call = calls++, .high = 1};
    gpu_program p;
    TRY(gpu_create(out, d, GPU_F64, 2, 1, n));
    gpu_program_start(&p, 1);
    int two = gpu_program_constant(&p, 2), one = gpu_program_constant(&p, 1);
    int twice = gpu_program_add(&p, GPU_OP_mul, 0, two, 0);
    gpu_program_add(&p, GPU_OP_sub, twice, one, 0);
    const gpu_matrix *in[] = {out};
    TRY(gpu_fill_random(out, &coin));
    return gpu_map(what, &p, in, out);
}

/* sum over j of f(m_ij row_j), m x 1 in f64: f is the identity, the absolute
 * value or the square. Both lie on one device. */
static gpu_status fold_there(const gpu_matrix *m, const gpu_matrix *row,
                             gpu_op f, gpu_matrix *out)
{
    gpu_program p;
    gpu_program_start(&p, 2);
    int product = gpu_program_add(&p, GPU_OP_mul, 0, 1, 0);
    if (f != GPU_OP_mul)
        gpu_program_add(&p, f, product, 0, 0);
    p.reduction = GPU_REDUCE_sum;
    const gpu_matrix *in[] = {m, row};
    return gpu_reduce(what, &p, in, 2, out);
}

/* The same where m may lie elsewhere than the row, and the result: what did not
 * fit a device stays where it is, and the vectors go there and back. */
static gpu_status fold(const gpu_matrix *m, const gpu_matrix *row, gpu_op f,
                       gpu_matrix *out)
{
    gpu_device *home = gpu_matrix_device(row), *there = gpu_matrix_device(m);
    gpu_matrix sent, found;
    if (home == there)
        return fold_there(m, row, f, out);
    TRY(gpu_clone(row, GPU_F64, there, &sent));
    gpu_status status = fold_there(m, &sent, f, &found);
    gpu_release(&sent);
    TRY(status);
    status = gpu_clone(&found, GPU_F64, home, out);
    gpu_release(&found);
    return status;
}

/* The same with a column, as fold makes it. */
static gpu_status fold_column(const gpu_matrix *m, const gpu_matrix *column,
                              gpu_op f, gpu_matrix *out)
{
    gpu_matrix row;
    gpu_view_transposed(column, &row);
    gpu_status status = fold(m, &row, f, out);
    gpu_release(&row);
    return status;
}

/* How large the rows of m are, as the opening says. */
static gpu_status fold_sizes(const gpu_matrix *m, const gpu_matrix *signs,
                             gpu_matrix *out)
{
    if ((double)m->cols <= SIGMAS * SIGMAS)
        return fold(m, signs, GPU_OP_abs, out);
    TRY(fold(m, signs, GPU_OP_square, out));
    gpu_program p;
    gpu_program_start(&p, 1);
    int sigmas = gpu_program_constant(&p, SIGMAS);
    int root = gpu_program_add(&p, GPU_OP_sqrt, 0, 0, 0);
    gpu_program_add(&p, GPU_OP_mul, root, sigmas, 0);
    const gpu_matrix *in[] = {out};
    gpu_status status = gpu_map(what, &p, in, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* to = alpha to + beta from; from may be NULL. */
static gpu_status combine(double alpha, gpu_matrix *to, double beta,
                          const gpu_matrix *from)
{
    gpu_program p;
    gpu_program_start(&p, from ? 2 : 1);
    int x = gpu_program_constant(&p, alpha), y = gpu_program_constant(&p, beta);
    x = gpu_program_add(&p, GPU_OP_mul, 0, x, 0);
    if (from) {
        y = gpu_program_add(&p, GPU_OP_mul, 1, y, 0);
        gpu_program_add(&p, GPU_OP_add, x, y, 0);
    }
    const gpu_matrix *in[] = {to, from};
    return gpu_map(what, &p, in, to);
}

/* --- the verdict ---------------------------------------------------------- */

typedef struct sides {
    gpu_matrix of_result, of_operands; /* C x and A (B x), m x 1 */
    gpu_matrix sizes;                  /* what gamma is relative to */
    double gamma, least;               /* bound: gamma sizes + least */
    double largest;                    /* of the type */
} sides;

static void release_sides(sides *s)
{
    gpu_release(&s->of_result);
    gpu_release(&s->of_operands);
    gpu_release(&s->sizes);
}

/* A deviation relative to its bound for each row. A row whose bound is NaN or
 * Inf says nothing; nor does an Inf in C where a product may overflow. */
static void deviation(const sides *s, gpu_reduction reduction, gpu_program *p)
{
    gpu_program_start(p, 3);
    int gamma = gpu_program_constant(p, s->gamma);
    int least = gpu_program_constant(p, s->least);
    int largest = gpu_program_constant(p, s->largest);
    int zero = gpu_program_constant(p, 0);
    int off = gpu_program_add(p, GPU_OP_sub, 0, 1, 0);
    off = gpu_program_add(p, GPU_OP_abs, off, 0, 0);
    int bound = gpu_program_add(p, GPU_OP_mul, 2, gamma, 0);
    bound = gpu_program_add(p, GPU_OP_add, bound, least, 0);
    off = gpu_program_add(p, GPU_OP_div, off, bound, 0);
    int known = gpu_program_add(p, GPU_OP_isfinite, 2, 0, 0);
    off = gpu_program_add(p, GPU_OP_where, known, off, zero);
    int fits = gpu_program_add(p, GPU_OP_lt, 2, largest, 0);
    int is_finite = gpu_program_add(p, GPU_OP_isfinite, 0, 0, 0);
    fits = gpu_program_add(p, GPU_OP_lor, fits, is_finite, 0);
    gpu_program_add(p, GPU_OP_where, fits, off, zero);
    p->reduction = (uint8_t)reduction;
}

static gpu_status reduce_sides(const sides *s, gpu_reduction reduction,
                               double *out)
{
    const gpu_matrix *in[] = {&s->of_result, &s->of_operands, &s->sizes};
    gpu_program p;
    deviation(s, reduction, &p);
    return gpu_reduce_all(what, &p, in, out);
}

static gpu_status count_unknown(const sides *s)
{
    const gpu_matrix *in[] = {&s->sizes};
    double all;
    gpu_program p;
    gpu_program_start(&p, 1);
    gpu_program_add(&p, GPU_OP_isfinite, 0, 0, 0);
    p.reduction = GPU_REDUCE_min;
    TRY(gpu_reduce_all(what, &p, in, &all));
    counted.partly += all == 0;
    return GPU_OK;
}

static gpu_status judge(const gpu_kernel *k, const sides *s, double *ratio)
{
    double row = 0;
    TRY(reduce_sides(s, GPU_REDUCE_max, ratio));
    TRY(count_unknown(s));
    counted.products++;
    if (!(*ratio <= counted.worst)) {
        counted.worst = *ratio;
        counted.worst_kernel = k->name;
    }
    if (*ratio <= 1)
        return GPU_OK;
    TRY(reduce_sides(s, GPU_REDUCE_argmax, &row));
    char times[32] = "NaN"; /* without a sign */
    if (!isnan(*ratio))
        snprintf(times, sizeof times, "%.3g", *ratio);
    return gpu_fail(GPU_INTERNAL,
                    "%s: kernel %s gave a wrong result: in row %lld, C x "
                    "differs from A (B x) by %s times what its bound allows; "
                    "{kernel=\"reference\"} on the CPU can be trusted",
                    k->operation, k->name, (long long)row + 1, times);
}

/* gamma: of the kernel and of the check's own sums. least is never 0, so that
 * an empty sum is right. */
static void set_bounds(sides *s, const gpu_kernel *k, gpu_dtype type,
                       int64_t inner, int64_t cols)
{
    int is_wide = type == GPU_F64;
    double terms = (double)inner + (double)cols + 8;
    s->gamma = k->bound(type, inner) + terms * 0x1p-53;
    s->least = is_wide ? 0x1p-1074 : 0x1p-149;
    s->least *= fmax((double)inner * (double)cols, 1);
    s->largest = 0.99 * (is_wide ? DBL_MAX : (double)FLT_MAX);
}

/* --- products ------------------------------------------------------------- */

/* What is to be known before the kernel runs. */
static gpu_status note_result(gpu_check *c, const gpu_product *how,
                              const gpu_matrix *result)
{
    gpu_matrix none = {.storage = NULL};
    c->signs = c->before = c->sizes = none;
    c->alpha = how->alpha;
    c->beta = how->beta;
    TRY(make_signs(c->device, result->cols, &c->signs));
    if (how->beta == 0)
        return GPU_OK;
    TRY(fold(result, &c->signs, GPU_OP_mul, &c->before));
    return fold_sizes(result, &c->signs, &c->sizes);
}

static void release_check(gpu_check *c)
{
    gpu_release(&c->signs);
    gpu_release(&c->before);
    gpu_release(&c->sizes);
}

gpu_status gpu_check_start(gpu_check *c, const gpu_product *how,
                           const gpu_matrix *result)
{
    c->on = gpu_is_checking();
    if (!c->on)
        return GPU_OK;
    gpu_quiet before = gpu_begin_quiet();
    gpu_status status = gpu_end_quiet(before, note_result(c, how, result));
    if (status != GPU_OK)
        release_check(c);
    return status;
}

/* A (B x) and the sizes, of A and B alone. */
static gpu_status multiply_signs(const gpu_check *c, sides *s)
{
    gpu_matrix column;
    TRY(fold(c->b, &c->signs, GPU_OP_mul, &column));
    gpu_status status = fold_column(c->a, &column, GPU_OP_mul, &s->of_operands);
    gpu_release(&column);
    TRY(status);
    TRY(fold_sizes(c->b, &c->signs, &column));
    status = fold_column(c->a, &column, GPU_OP_abs, &s->sizes);
    gpu_release(&column);
    return status;
}

/* With alpha and beta; where they are 1 and 0 there is nothing to do. */
static gpu_status weigh(const gpu_check *c, sides *s)
{
    if (c->alpha == 1 && c->beta == 0)
        return GPU_OK;
    int adds = c->beta != 0;
    TRY(combine(c->alpha, &s->of_operands, c->beta, adds ? &c->before : NULL));
    return combine(fabs(c->alpha), &s->sizes, fabs(c->beta),
                   adds ? &c->sizes : NULL);
}

/* type: whose bound counts. */
static gpu_status compare(const gpu_check *c, const gpu_kernel *k,
                          gpu_dtype type, const gpu_matrix *result,
                          double *ratio)
{
    sides s = {.of_result = {.storage = NULL},
               .of_operands = {.storage = NULL},
               .sizes = {.storage = NULL}};
    set_bounds(&s, k, type, c->a->cols, result->cols);
    if (c->alpha != 1 || c->beta != 0)
        s.gamma += type == GPU_F64 ? 0x1p-51 : 0x1p-22;
    gpu_status status = multiply_signs(c, &s);
    if (status == GPU_OK)
        status = weigh(c, &s);
    if (status == GPU_OK)
        status = fold(result, &c->signs, GPU_OP_mul, &s.of_result);
    if (status == GPU_OK)
        status = judge(k, &s, ratio);
    release_sides(&s);
    return status;
}

gpu_status gpu_check_product(gpu_check *c, const gpu_kernel *k,
                             const gpu_matrix *result, double *ratio)
{
    if (!c->on)
        return GPU_OK;
    gpu_quiet before = gpu_begin_quiet();
    return gpu_end_quiet(before, compare(c, k, result->dtype, result, ratio));
}

void gpu_check_end(gpu_check *c)
{
    if (c->on)
        release_check(c);
}

/* The check of a row times a column, whose product is value. */
static gpu_status compare_dot(gpu_check *c, const gpu_kernel *k, double value,
                              double *ratio)
{
    gpu_matrix result;
    gpu_product how = {.alpha = 1};
    TRY(gpu_create(&result, c->device, GPU_F64, 2, 1, 1));
    gpu_status status = gpu_fill(&result, value);
    if (status == GPU_OK)
        status = note_result(c, &how, &result);
    if (status == GPU_OK)
        status = compare(c, k, c->a->dtype, &result, ratio);
    release_check(c);
    gpu_release(&result);
    return status;
}

gpu_status gpu_check_dot(const gpu_matrix both[2], const gpu_kernel *k,
                         double value, double *ratio)
{
    gpu_matrix row = both[0], column = both[1];
    gpu_check c = {.device = gpu_matrix_device(&row), .a = &row, .b = &column};
    row.ndim = column.ndim = 2;
    row.cols = row.rows;
    row.col_stride = row.row_stride;
    row.rows = 1;
    gpu_quiet before = gpu_begin_quiet();
    return gpu_end_quiet(before, compare_dot(&c, k, value, ratio));
}
