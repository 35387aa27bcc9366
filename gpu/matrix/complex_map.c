/* Complex matrices: their parts, elements and copies, and operations on each
 * element. How it is done on which device is told in complex_numbers.h. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- parts ---------------------------------------------------------------- */

void gpu_parts_of(const gpu_matrix *m, gpu_matrix parts[2])
{
    parts[0] = *m;
    parts[1] = (gpu_matrix){.storage = NULL};
    if (!gpu_is_complex(m))
        return;
    parts[0].dtype = gpu_dtype_of_parts(m->dtype);
    parts[0].is_conjugated = 0;
    parts[0].row_stride = 2 * m->row_stride;
    parts[0].col_stride = 2 * m->col_stride;
    parts[0].offset = 2 * m->offset;
    parts[1] = parts[0];
    parts[1].offset++;
}

void gpu_view_part(const gpu_matrix *m, gpu_complex_part part, gpu_matrix *out)
{
    gpu_matrix parts[2];
    gpu_parts_of(m, parts);
    gpu_retain(m);
    *out = parts[part];
}

void gpu_view_conjugated(const gpu_matrix *m, gpu_matrix *out)
{
    gpu_retain(m);
    *out = *m;
    if (gpu_is_complex(m))
        out->is_conjugated = !m->is_conjugated;
}

/* Which of the two steps is one, so that the parts of neighbours are
 * neighbours, too. */
typedef enum lying {
    LIES_ACROSS = 1, /* the step to the next column, or of a vector */
    LIES_DOWN = 2
} lying;

static unsigned how_it_lies(const gpu_matrix *m)
{
    if (m->ndim == 1)
        return m->row_stride == 1 || m->rows <= 1 ? LIES_ACROSS : 0;
    return (m->col_stride == 1 || m->cols <= 1 ? LIES_ACROSS : 0) |
           (m->row_stride == 1 || m->rows <= 1 ? LIES_DOWN : 0);
}

static gpu_matrix reals_of(const gpu_matrix *m, unsigned how)
{
    gpu_matrix parts[2], r;
    gpu_parts_of(m, parts);
    r = parts[0];
    if (m->ndim == 1) {
        r.rows *= 2;
        r.row_stride = 1;
    } else if (how & LIES_ACROSS) {
        r.cols *= 2;
        r.col_stride = 1;
    } else {
        r.rows *= 2;
        r.row_stride = 1;
    }
    return r;
}

int gpu_as_reals(const gpu_matrix *m, gpu_matrix *reals)
{
    unsigned how = how_it_lies(m);
    if (m->is_conjugated || !how)
        return 0;
    *reals = reals_of(m, how);
    return 1;
}

/* --- one operation on the parts as one real matrix --------------------------
 */

/* Of n elements, which lie as one real matrix in all of them, with the same
 * done to both parts. */
static int fit_as_reals(const gpu_operand *in, int arity, const gpu_matrix *out,
                        unsigned *how)
{
    *how = how_it_lies(out);
    for (int i = 0; i < arity; i++) {
        const gpu_matrix *m = in[i].matrix;
        if (!m)
            continue;
        if (!gpu_is_complex(m) || m->is_conjugated != out->is_conjugated ||
            m->rows != out->rows || m->cols != out->cols)
            return 0;
        *how &= how_it_lies(m);
    }
    return gpu_is_complex(out) && *how;
}

static int is_real_number(const gpu_operand *o)
{
    return !o->matrix && !o->is_complex;
}

static int treats_parts_alike(gpu_op op, const gpu_operand *in)
{
    switch (op) {
    case GPU_OP_add:
    case GPU_OP_sub:
        return in[0].matrix && in[1].matrix;
    case GPU_OP_mul:
        return is_real_number(&in[0]) != is_real_number(&in[1]) &&
               (in[0].matrix || in[1].matrix) &&
               (is_real_number(&in[0]) || is_real_number(&in[1]));
    case GPU_OP_div:
        return in[0].matrix && is_real_number(&in[1]);
    case GPU_OP_neg:
        return 1;
    default:
        return 0;
    }
}

static gpu_status run_as_reals(const char *name, gpu_op op,
                               const gpu_operand *in, unsigned how,
                               const gpu_matrix *out)
{
    gpu_matrix reals[3], to = reals_of(out, how);
    const gpu_matrix *list[3];
    gpu_program p;
    int value[3] = {0, 0, 0}, arity = gpu_op_arity(op), inputs = 0;
    for (int i = 0; i < arity; i++)
        if (in[i].matrix) {
            reals[inputs] = reals_of(in[i].matrix, how);
            list[inputs] = &reals[inputs];
            value[i] = inputs++;
        }
    gpu_program_start(&p, inputs);
    for (int i = 0; i < arity; i++)
        if (!in[i].matrix)
            value[i] = gpu_program_constant(&p, in[i].value.re);
    gpu_program_add(&p, op, value[0], value[1], value[2]);
    return gpu_map(name, &p, list, &to);
}

/* --- by a backend's own entry ----------------------------------------------
 */

static int is_wide(const gpu_matrix *m)
{
    return m->dtype == GPU_F64 || m->dtype == GPU_C128;
}

static int is_any_wide(const gpu_operand *in, int arity)
{
    for (int i = 0; i < arity; i++)
        if (in[i].matrix && is_wide(in[i].matrix))
            return 1;
    return 0;
}

/* A number in the precision of the matrices beside it. */
static gpu_complex in_precision(gpu_complex z, int wide)
{
    if (wide)
        return z;
    return (gpu_complex){(float)z.re, (float)z.im};
}

static gpu_view spread_view(const gpu_matrix *m, const gpu_matrix *out)
{
    gpu_view v = gpu_view_of(m);
    v.row_stride = m->rows == out->rows ? v.row_stride : 0;
    v.col_stride = m->cols == out->cols ? v.col_stride : 0;
    v.rows = out->rows;
    v.cols = out->cols;
    return v;
}

/* LUMAT_COMPLEX=parts takes programs of the parts on every device, to compare
 * them. */
static int has_entry(const gpu_device *d)
{
    static int by_parts = -1;
    if (by_parts < 0) {
        const char *wish = getenv("LUMAT_COMPLEX");
        by_parts = wish && strcmp(wish, "parts") == 0;
    }
    return d->backend->complex_map && !by_parts;
}

static gpu_status run_entry(const char *name, gpu_op op, const gpu_operand *in,
                            const gpu_matrix *out)
{
    gpu_device *d = out->storage->device;
    int arity = gpu_op_arity(op), wide = is_any_wide(in, arity);
    gpu_complex number[3];
    gpu_complex_call c = {.op = op,
                          .count = arity,
                          .is_out_conjugated = (uint8_t)out->is_conjugated};
    double bytes = (double)gpu_bytes(out);
    for (int i = 0; i < arity; i++) {
        const gpu_matrix *m = in[i].matrix;
        number[i] = in_precision(in[i].value, wide);
        c.in[i] =
            m ? spread_view(m, out)
              : (gpu_view){&number[i], in[i].is_complex ? GPU_C128 : GPU_F64,
                           out->rows,  out->cols,
                           0,          0};
        c.is_number[i] = m == NULL;
        c.is_conjugated[i] = (uint8_t)(m && m->is_conjugated);
        bytes += m ? (double)gpu_bytes(m) : 0;
    }
    c.out = gpu_target_of(out);
    gpu_operation o = {.name = name,
                       .kernel = "map",
                       .device = d,
                       .result = out,
                       .writes_all = 1,
                       .flops = 2.0 * (double)gpu_size(out),
                       .bytes = bytes};
    return RUN_OPERATION(&o, complex_map, &c);
}

/* --- by programs of the parts ----------------------------------------------
 * Of a few operations that are a few instructions. */

/* Value numbers of a program: im is that of 0 where an operand is real. */
typedef struct pair {
    int re, im, is_real;
} pair;

typedef struct building {
    gpu_program p;
    gpu_matrix parts[6];
    const gpu_matrix *inputs[6];
    pair x, y, z;
    int one, zero, infinity; /* constants */
} building;

static int add2(building *b, gpu_op op, int x, int y)
{
    return gpu_program_add(&b->p, op, x, y, 0);
}

static void begin_building(building *b, const gpu_operand *in, int arity)
{
    pair *operand[] = {&b->x, &b->y, &b->z};
    int inputs = 0;
    for (int i = 0; i < arity; i++) {
        gpu_matrix both[2];
        if (!in[i].matrix)
            continue;
        gpu_parts_of(in[i].matrix, both);
        *operand[i] = (pair){inputs, inputs + 1, !both[1].storage};
        for (int k = 0; k < 2 - operand[i]->is_real; k++) {
            b->parts[inputs] = both[k];
            b->inputs[inputs] = &b->parts[inputs];
            inputs++;
        }
    }
    gpu_program_start(&b->p, inputs);
    b->zero = gpu_program_constant(&b->p, 0);
    b->one = gpu_program_constant(&b->p, 1);
    b->infinity = gpu_program_constant(&b->p, INFINITY);
    for (int i = 0; i < arity; i++)
        if (!in[i].matrix)
            *operand[i] = (pair){
                gpu_program_constant(&b->p, in[i].value.re),
                in[i].is_complex ? gpu_program_constant(&b->p, in[i].value.im)
                                 : b->zero,
                !in[i].is_complex};
    for (int i = 0; i < arity; i++) {
        if (operand[i]->is_real)
            operand[i]->im = b->zero;
        else if (in[i].matrix && in[i].matrix->is_conjugated)
            operand[i]->im = add2(b, GPU_OP_neg, operand[i]->im, 0);
    }
}

static int product_part(building *b, int want_im)
{
    pair x = b->x, y = b->y;
    int part, other;
    if (x.is_real || y.is_real) {
        int real = x.is_real ? x.re : y.re;
        pair z = x.is_real ? y : x;
        return add2(b, GPU_OP_mul, want_im ? z.im : z.re, real);
    }
    part = add2(b, GPU_OP_mul, x.re, want_im ? y.im : y.re);
    other = add2(b, GPU_OP_mul, x.im, want_im ? y.re : y.im);
    return add2(b, want_im ? GPU_OP_add : GPU_OP_sub, part, other);
}

/* A part of x conj(y) but for its size, y = c + d i. */
static int turned_part(building *b, int want_im, int re, int im, int c, int d)
{
    int part = add2(b, GPU_OP_mul, want_im ? im : re, c);
    int other = add2(b, GPU_OP_mul, want_im ? re : im, d);
    return add2(b, want_im ? GPU_OP_sub : GPU_OP_add, part, other);
}

/* A plain quotient, but of infinities and by zero; c and d are y's parts over
 * the larger one, `size`. Source: C11, annex G.5.1. */
static int special_quotient(building *b, int want_im, int size, int c, int d,
                            int plain)
{
    pair x = b->x, y = b->y;
    int is_inf = add2(b, GPU_OP_isinf, size, 0);
    int nothing = add2(b, GPU_OP_mul, x.re, b->zero);
    int value = gpu_program_add(&b->p, GPU_OP_where, is_inf, nothing, plain);
    int re = add2(b, GPU_OP_isinf, x.re, 0);
    int im = add2(b, GPU_OP_isinf, x.im, 0);
    int is_large = add2(b, GPU_OP_lor, re, im);
    re = add2(b, GPU_OP_copysign, re, x.re);
    im = add2(b, GPU_OP_copysign, im, x.im);
    int large = turned_part(b, want_im, re, im, c, d);
    large = add2(b, GPU_OP_mul, large, b->infinity);
    value = gpu_program_add(&b->p, GPU_OP_where, is_large, large, value);
    int is_zero = add2(b, GPU_OP_eq, size, b->zero);
    int over = add2(b, GPU_OP_copysign, b->infinity, y.re);
    over = add2(b, GPU_OP_mul, want_im ? x.im : x.re, over);
    return gpu_program_add(&b->p, GPU_OP_where, is_zero, over, value);
}

/* With y divided by the larger of its parts, so that no square leaves the
 * range. Source: Smith, Algorithm 116, 1962. */
static int quotient_part(building *b, int want_im)
{
    pair x = b->x, y = b->y;
    if (y.is_real)
        return add2(b, GPU_OP_div, want_im ? x.im : x.re, y.re);
    int c = add2(b, GPU_OP_abs, y.re, 0), d = add2(b, GPU_OP_abs, y.im, 0);
    int size = add2(b, GPU_OP_maximum, c, d);
    c = add2(b, GPU_OP_div, y.re, size);
    d = add2(b, GPU_OP_div, y.im, size);
    int below = add2(b, GPU_OP_mul, y.re, c);
    below = add2(b, GPU_OP_add, below, add2(b, GPU_OP_mul, y.im, d));
    int part = turned_part(b, want_im, x.re, x.im, c, d);
    part = add2(b, GPU_OP_div, part, below);
    return special_quotient(b, want_im, size, c, d, part);
}

static int is_true(building *b, pair z)
{
    int re = add2(b, GPU_OP_ne, z.re, b->zero);
    return z.is_real
               ? re
               : add2(b, GPU_OP_lor, re, add2(b, GPU_OP_ne, z.im, b->zero));
}

static int sum_part(building *b, gpu_op op, int want_im)
{
    pair x = b->x, y = b->y;
    if (want_im && y.is_real)
        return x.im;
    if (want_im && x.is_real)
        return op == GPU_OP_add ? y.im : add2(b, GPU_OP_neg, y.im, 0);
    return add2(b, op, want_im ? x.im : x.re, want_im ? y.im : y.re);
}

/* Adds the instructions for a part of the result; -1: it is not among them. */
static int add_part(building *b, gpu_op op, int want_im)
{
    pair x = b->x, y = b->y;
    int part = want_im ? x.im : x.re;
    switch (op) {
    case GPU_OP_add:
    case GPU_OP_sub:
        return sum_part(b, op, want_im);
    case GPU_OP_mul:
        return product_part(b, want_im);
    case GPU_OP_square:
        b->y = x;
        return product_part(b, want_im);
    case GPU_OP_div:
        return quotient_part(b, want_im);
    case GPU_OP_reciprocal:
        b->y = x;
        b->x = (pair){b->one, b->zero, 1};
        return quotient_part(b, want_im);
    case GPU_OP_neg:
        return add2(b, GPU_OP_neg, part, 0);
    case GPU_OP_conj:
        return want_im ? add2(b, GPU_OP_neg, part, 0) : part;
    case GPU_OP_where:
        return gpu_program_add(&b->p, GPU_OP_where, is_true(b, x),
                               want_im ? y.im : y.re,
                               want_im ? b->z.im : b->z.re);
    case GPU_OP_real:
        return x.re;
    case GPU_OP_imag:
        return x.im;
    case GPU_OP_abs:
        return add2(b, GPU_OP_hypot, x.re, x.im);
    case GPU_OP_angle:
        return add2(b, GPU_OP_atan2, x.im, x.re);
    case GPU_OP_eq:
        return add2(b, GPU_OP_land, add2(b, GPU_OP_eq, x.re, y.re),
                    add2(b, GPU_OP_eq, x.im, y.im));
    case GPU_OP_ne:
        return add2(b, GPU_OP_lor, add2(b, GPU_OP_ne, x.re, y.re),
                    add2(b, GPU_OP_ne, x.im, y.im));
    case GPU_OP_land:
    case GPU_OP_lor:
    case GPU_OP_lxor: {
        int left = is_true(b, x);
        return add2(b, op, left, is_true(b, y));
    }
    case GPU_OP_lnot:
        return add2(b, op, is_true(b, x), 0);
    case GPU_OP_isnan:
    case GPU_OP_isinf:
        return add2(b, GPU_OP_lor, add2(b, op, x.re, 0), add2(b, op, x.im, 0));
    case GPU_OP_isfinite:
        return add2(b, GPU_OP_land, add2(b, op, x.re, 0), add2(b, op, x.im, 0));
    default:
        return -1;
    }
}

static int is_program(gpu_op op)
{
    building b = {.p = {.inputs = 6}};
    return add_part(&b, op, 0) >= 0;
}

static gpu_status run_part(const char *name, gpu_op op, const gpu_operand *in,
                           int want_im, gpu_matrix *to)
{
    building b = {.one = 0};
    begin_building(&b, in, gpu_op_arity(op));
    int result = add_part(&b, op, want_im);
    if (b.p.length == 0 ||
        result != b.p.inputs + b.p.constants + b.p.length - 1)
        add2(&b, GPU_OP_mul, result, b.one);
    return gpu_map(name, &b.p, b.inputs, to);
}

static gpu_status run_by_parts(const char *name, gpu_op op,
                               const gpu_operand *in, gpu_matrix *out)
{
    gpu_matrix parts[2];
    gpu_parts_of(out, parts);
    TRY(run_part(name, op, in, 0, &parts[0]));
    if (!parts[1].storage)
        return GPU_OK;
    TRY(run_part(name, op, in, 1, &parts[1]));
    if (!out->is_conjugated)
        return GPU_OK;
    gpu_program p;
    const gpu_matrix *list[] = {&parts[1]};
    gpu_program_start(&p, 1);
    gpu_program_add(&p, GPU_OP_neg, 0, 0, 0);
    return gpu_map(name, &p, list, &parts[1]);
}

/* --- on the CPU, for a device that cannot -----------------------------------
 */

static gpu_status run_on_cpu(const char *name, gpu_op op, const gpu_operand *in,
                             gpu_matrix *out)
{
    gpu_operand there[3];
    gpu_matrix copy[3] = {{.storage = NULL}}, result = {.storage = NULL};
    gpu_status status = GPU_OK;
    for (int i = 0; i < gpu_op_arity(op); i++) {
        there[i] = in[i];
        if (in[i].matrix && status == GPU_OK) {
            status = gpu_clone(in[i].matrix, in[i].matrix->dtype, gpu_cpu(),
                               &copy[i]);
            there[i].matrix = &copy[i];
        }
    }
    gpu_note_fallback();
    if (status == GPU_OK)
        status = gpu_create(&result, gpu_cpu(), out->dtype, out->ndim,
                            out->rows, out->cols);
    if (status == GPU_OK)
        status = run_entry(name, op, there, &result);
    if (status == GPU_OK)
        status = gpu_copy(&result, out);
    for (int i = 0; i < 3; i++)
        gpu_release(&copy[i]);
    gpu_release(&result);
    return status;
}

/* --- one operation -------------------------------------------------------- */

/* Into an out that shares no storage with an operand, or is the very same
 * view. */
static gpu_status run_apart(const char *name, gpu_op op, const gpu_operand *in,
                            gpu_matrix *out)
{
    unsigned how;
    gpu_device *d = out->storage->device;
    if (gpu_size(out) == 0)
        return GPU_OK;
    if (treats_parts_alike(op, in) &&
        fit_as_reals(in, gpu_op_arity(op), out, &how))
        return run_as_reals(name, op, in, how, out);
    if (has_entry(d))
        return run_entry(name, op, in, out);
    return is_program(op) ? run_by_parts(name, op, in, out)
                          : run_on_cpu(name, op, in, out);
}

/* May an operand's element be read after one of out's has been written? */
static int is_in_the_way(const gpu_matrix *m, const gpu_matrix *out)
{
    int is_at_once = has_entry(out->storage->device) && gpu_same_view(m, out);
    return gpu_shares_storage(m, out) && !is_at_once;
}

static gpu_status run_op(const char *name, gpu_op op, const gpu_operand *in,
                         gpu_matrix *out)
{
    int overlaps = 0;
    gpu_matrix apart;
    for (int i = 0; i < gpu_op_arity(op); i++)
        overlaps |= in[i].matrix && is_in_the_way(in[i].matrix, out);
    gpu_status status = GPU_OK;
    if (!overlaps) {
        status = run_apart(name, op, in, out);
    } else {
        TRY(gpu_create(&apart, out->storage->device, out->dtype, out->ndim,
                       out->rows, out->cols));
        status = run_apart(name, op, in, &apart);
        if (status == GPU_OK)
            status = gpu_copy(&apart, out);
        gpu_release(&apart);
    }
    if (status == GPU_OK)
        gpu_make_whole(out);
    return status;
}

static int is_operand_complex(const gpu_operand *o)
{
    return o->matrix ? gpu_is_complex(o->matrix) : o->is_complex;
}

static int count_complex(const gpu_operand *in, int first, int last)
{
    int count = 0;
    for (int i = first; i < last; i++)
        count += is_operand_complex(&in[i]);
    return count;
}

static gpu_dtype result_type(gpu_op op, const gpu_operand *in)
{
    int arity = gpu_op_arity(op);
    gpu_dtype part = is_any_wide(in, arity) ? GPU_F64 : GPU_F32;
    if (gpu_complex_op(op) == GPU_GIVES_TRUTH)
        return GPU_BOOL;
    if (gpu_complex_op(op) == GPU_GIVES_REAL ||
        (op == GPU_OP_where && count_complex(in, 1, 3) == 0))
        return part;
    return gpu_dtype_made_complex(part);
}

static gpu_status fail_real_target(const char *name, const gpu_matrix *out)
{
    return gpu_fail(GPU_TYPE,
                    "%s: the result is complex, and the matrix it goes into is "
                    "%s: take real(A), imag(A) or abs(A), or make that one "
                    "complex",
                    name, gpu_dtype_name(out->dtype));
}

static gpu_status check_shape(const char *name, const gpu_matrix *shape,
                              const gpu_matrix *out)
{
    int fits = shape->ndim == out->ndim &&
               (shape->rows == out->rows || shape->rows == 1) &&
               (shape->cols == out->cols || shape->cols == 1);
    if (fits && (out->ndim == 2 || shape->rows == out->rows))
        return GPU_OK;
    return gpu_fail(GPU_SHAPE, "%s: the result is %s, out is %s", name,
                    gpu_shape_text(shape), gpu_shape_text(out));
}

/* As its operands lie, as gpu_map's are. */
static gpu_status create_result(gpu_device *d, gpu_dtype type,
                                const gpu_operand *in, int arity,
                                const gpu_matrix *s, gpu_matrix *out)
{
    int is_down = s->ndim == 2 && s->rows > 1 && s->cols > 1;
    gpu_matrix turned;
    for (int i = 0; i < arity && is_down; i++)
        if (in[i].matrix)
            is_down = in[i].matrix->rows == s->rows &&
                      in[i].matrix->row_stride == 1 &&
                      in[i].matrix->col_stride == s->rows;
    if (!is_down)
        return gpu_create(out, d, type, s->ndim, s->rows, s->cols);
    TRY(gpu_create(&turned, d, type, 2, s->cols, s->rows));
    gpu_view_transposed(&turned, out);
    gpu_release(&turned);
    return GPU_OK;
}

/* An operation of real operands alone, into a complex out: its real part; or
 * an operation of numbers alone. */
static gpu_status run_real(const char *name, gpu_op op, const gpu_operand *in,
                           gpu_matrix *out)
{
    gpu_program p;
    const gpu_matrix *list[3];
    int value[3] = {0, 0, 0}, arity = gpu_op_arity(op), inputs = 0;
    for (int i = 0; i < arity; i++)
        if (in[i].matrix) {
            value[i] = inputs;
            list[inputs++] = in[i].matrix;
        }
    gpu_program_start(&p, inputs);
    for (int i = 0; i < arity; i++)
        if (!in[i].matrix)
            value[i] = gpu_program_constant(&p, in[i].value.re);
    gpu_program_add(&p, op, value[0], value[1], value[2]);
    return gpu_map(name, &p, list, out);
}

gpu_status gpu_complex_map(const char *name, gpu_op op, const gpu_operand *in,
                           gpu_matrix *out)
{
    const gpu_matrix *list[3];
    int arity = gpu_op_arity(op), count = 0, created = !out->storage;
    gpu_device *d = NULL;
    gpu_matrix shape;
    if (count_complex(in, 0, arity) == 0)
        return run_real(name, op, in, out);
    if (gpu_complex_op(op) == GPU_GIVES_NOTHING)
        return gpu_fail_complex_op(op);
    for (int i = 0; i < arity; i++)
        if (in[i].matrix)
            list[count++] = in[i].matrix;
    TRY(gpu_check_complex(name, list, count, &d));
    if (!created)
        TRY(gpu_check_complex_target(name, out, &d));
    TRY(gpu_map_shape(name, list, count, &shape));
    gpu_dtype type = result_type(op, in);
    if (created) {
        TRY(create_result(d, type, in, arity, &shape, out));
    } else {
        TRY(check_shape(name, &shape, out));
        if (gpu_dtype_is_complex(type) && !gpu_is_complex(out))
            return fail_real_target(name, out);
    }
    gpu_status status = run_op(name, op, in, out);
    if (status != GPU_OK && created)
        gpu_release(out);
    return status;
}

gpu_status gpu_truth_of(const char *name, const gpu_matrix *m, gpu_matrix *out)
{
    gpu_operand in[2] = {{.matrix = m}, {.value = {0, 0}}};
    out->storage = NULL;
    return gpu_complex_map(name, GPU_OP_ne, in, out);
}

/* --- copies, and numbers into all elements ---------------------------------
 */

static gpu_status copy_part(const gpu_matrix *from, int is_negative,
                            gpu_matrix *to)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    if (is_negative)
        gpu_program_add(&p, GPU_OP_neg, 0, 0, 0);
    return gpu_map("copy", &p, &from, to);
}

static gpu_status copy_parts(const gpu_matrix *from, gpu_matrix *to)
{
    gpu_matrix source[2], target[2];
    gpu_parts_of(from, source);
    gpu_parts_of(to, target);
    int is_negative = from->is_conjugated != to->is_conjugated;
    TRY(copy_part(&source[0], 0, &target[0]));
    return source[1].storage ? copy_part(&source[1], is_negative, &target[1])
                             : gpu_fill(&target[1], 0);
}

gpu_matrix gpu_as_f64(const gpu_matrix *m)
{
    gpu_matrix bits = *m;
    bits.dtype = GPU_F64;
    bits.is_conjugated = 0;
    return bits;
}

/* In one pass, where parts would take two. */
static gpu_status copy_wholes(const gpu_matrix *from, gpu_matrix *to)
{
    gpu_matrix source = gpu_as_f64(from), target = gpu_as_f64(to);
    return copy_part(&source, 0, &target);
}

static gpu_status copy_here(const gpu_matrix *from, gpu_matrix *to)
{
    unsigned how;
    gpu_operand source = {.matrix = from};
    if (!fit_as_reals(&source, 1, to, &how)) {
        if (!gpu_shares_storage(from, to))
            return from->dtype == GPU_C64 && to->dtype == GPU_C64 &&
                           from->is_conjugated == to->is_conjugated
                       ? copy_wholes(from, to)
                       : copy_parts(from, to);
        gpu_matrix apart;
        TRY(gpu_clone(from, from->dtype, NULL, &apart));
        gpu_status status = copy_parts(&apart, to);
        gpu_release(&apart);
        return status;
    }
    gpu_matrix reals = reals_of(from, how), target = reals_of(to, how);
    return copy_part(&reals, 0, &target);
}

/* m as it lies in its own memory without gaps, of the type; a copy where it is
 * not so already. */
static gpu_status make_plain(const gpu_matrix *m, gpu_dtype type,
                             gpu_matrix *out)
{
    if (m->dtype != type || m->is_conjugated || !gpu_is_contiguous(m))
        return gpu_clone(m, type, NULL, out);
    gpu_retain(m);
    *out = *m;
    return GPU_OK;
}

static gpu_status copy_across(const gpu_matrix *from, gpu_matrix *to)
{
    gpu_matrix plain, there, reals, target;
    gpu_dtype type = gpu_is_complex(from) ? from->dtype : to->dtype;
    TRY(make_plain(from, type, &plain));
    gpu_status status = gpu_create(&there, to->storage->device, type,
                                   from->ndim, from->rows, from->cols);
    if (status == GPU_OK) {
        reals = reals_of(&plain, LIES_ACROSS);
        target = reals_of(&there, LIES_ACROSS);
        status = gpu_copy(&reals, &target);
        if (status == GPU_OK)
            status = copy_here(&there, to);
        gpu_release(&there);
    }
    gpu_release(&plain);
    return status;
}

gpu_status gpu_copy_complex(const gpu_matrix *from, gpu_matrix *to)
{
    gpu_device *d;
    TRY(gpu_check_complex("copy", &from, 1, &d));
    d = NULL;
    TRY(gpu_check_complex_target("copy", to, &d));
    TRY(check_shape("copy", from, to));
    if (!gpu_is_complex(to))
        return fail_real_target("copy", to);
    gpu_status status = from->storage->device == d ? copy_here(from, to)
                                                   : copy_across(from, to);
    if (status == GPU_OK)
        gpu_make_whole(to);
    return status;
}

gpu_status gpu_complex_fill(gpu_matrix *m, gpu_complex value)
{
    gpu_matrix parts[2];
    gpu_device *d = NULL;
    TRY(gpu_check_complex_target("fill", m, &d));
    gpu_parts_of(m, parts);
    if (!parts[1].storage && value.im != 0)
        return fail_real_target("fill", m);
    TRY(gpu_fill(&parts[0], value.re));
    if (parts[1].storage)
        TRY(gpu_fill(&parts[1], m->is_conjugated ? -value.im : value.im));
    gpu_make_whole(m);
    return GPU_OK;
}

gpu_status gpu_complex_join(const gpu_matrix *re, const gpu_matrix *im,
                            gpu_dtype dtype, gpu_matrix *out)
{
    const gpu_matrix *in[] = {re, im};
    gpu_device *d;
    gpu_matrix shape, parts[2];
    out->storage = NULL;
    TRY(gpu_check_operands("complex", in, im ? 2 : 1, &d));
    TRY(gpu_map_shape("complex", in, im ? 2 : 1, &shape));
    TRY(gpu_create(out, d, dtype, shape.ndim, shape.rows, shape.cols));
    gpu_parts_of(out, parts);
    gpu_status status = copy_part(re, 0, &parts[0]);
    if (status == GPU_OK)
        status = im ? copy_part(im, 0, &parts[1]) : gpu_fill(&parts[1], 0);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* --- elements, and the host's memory ----------------------------------------
 */

gpu_status gpu_complex_get(const gpu_matrix *m, int64_t i, int64_t j,
                           gpu_complex *out)
{
    gpu_matrix parts[2];
    gpu_parts_of(m, parts);
    out->im = 0;
    TRY(gpu_get(&parts[0], i, j, &out->re));
    if (!parts[1].storage)
        return GPU_OK;
    TRY(gpu_get(&parts[1], i, j, &out->im));
    if (m->is_conjugated && out->im == out->im)
        out->im = -out->im;
    return GPU_OK;
}

gpu_status gpu_complex_set(gpu_matrix *m, int64_t i, int64_t j,
                           gpu_complex value)
{
    gpu_matrix parts[2];
    gpu_parts_of(m, parts);
    if (!parts[1].storage && value.im != 0)
        return fail_real_target("assignment", m);
    TRY(gpu_set(&parts[0], i, j, value.re));
    if (!parts[1].storage)
        return GPU_OK;
    return gpu_set(&parts[1], i, j, m->is_conjugated ? -value.im : value.im);
}

gpu_status gpu_complex_upload(gpu_matrix *m, const void *host)
{
    gpu_matrix plain, reals;
    gpu_device *d = NULL;
    TRY(gpu_check_complex_target("upload", m, &d));
    if (gpu_is_contiguous(m) && gpu_as_reals(m, &reals)) {
        TRY(gpu_upload(&reals, host));
        gpu_make_whole(m);
        return GPU_OK;
    }
    TRY(gpu_create(&plain, d, m->dtype, m->ndim, m->rows, m->cols));
    reals = reals_of(&plain, LIES_ACROSS);
    gpu_status status = gpu_upload(&reals, host);
    if (status == GPU_OK)
        status = gpu_copy(&plain, m);
    gpu_release(&plain);
    return status;
}

gpu_status gpu_complex_download(const gpu_matrix *m, void *host)
{
    gpu_matrix plain, reals;
    gpu_device *d;
    TRY(gpu_check_complex("download", &m, 1, &d));
    TRY(make_plain(m, m->dtype, &plain));
    reals = reals_of(&plain, LIES_ACROSS);
    gpu_status status = gpu_download(&reals, host);
    gpu_release(&plain);
    return status;
}

/* --- programs --------------------------------------------------------------
 */

/* Of real operands, or of none: into the real part. */
static gpu_status map_real(const char *name, const gpu_program *p,
                           const gpu_matrix *const *in, gpu_matrix *out)
{
    gpu_matrix parts[2];
    gpu_device *d = NULL;
    TRY(gpu_check_complex_target(name, out, &d));
    gpu_parts_of(out, parts);
    TRY(gpu_map(name, p, in, &parts[0]));
    TRY(gpu_fill(&parts[1], 0));
    gpu_make_whole(out);
    return GPU_OK;
}

/* The values of a program: operands, constants, and what instructions gave,
 * which is released in the end. */
typedef struct values {
    gpu_operand list[GPU_MAX_VALUES];
    gpu_matrix made[GPU_MAX_CODE], shape; /* of the result */
    gpu_device *device;
    int count;
} values;

static int has_matrix(const gpu_operand *in, int arity)
{
    for (int i = 0; i < arity; i++)
        if (in[i].matrix)
            return 1;
    return 0;
}

/* The place of each element, a column of the rows' numbers or a row of the
 * columns'. */
static gpu_status make_places(const char *name, gpu_op op, gpu_device *d,
                              const gpu_matrix *shape, gpu_matrix *out)
{
    gpu_program p;
    int is_row = op == GPU_OP_ROW;
    TRY(gpu_create(out, d, GPU_F64, shape->ndim,
                   is_row || shape->ndim == 1 ? shape->rows : 1,
                   is_row ? 1 : shape->cols));
    gpu_program_start(&p, 0);
    gpu_program_add(&p, op, 0, 0, 0);
    return gpu_map(name, &p, NULL, out);
}

/* One instruction; out NULL: into a new value. */
static gpu_status step(const char *name, const gpu_program *p, int i, values *v,
                       gpu_matrix *out)
{
    const gpu_instruction *c = &p->code[i];
    int arity = gpu_op_arity(c->op);
    gpu_operand in[3] = {v->list[c->x]};
    gpu_operand *result = &v->list[v->count++];
    if (c->op >= GPU_OP_ROW) {
        *result = (gpu_operand){.matrix = &v->made[i]};
        return make_places(name, c->op, v->device, &v->shape, &v->made[i]);
    }
    if (arity > 1)
        in[1] = v->list[c->y];
    if (arity > 2)
        in[2] = v->list[c->z];
    if (!has_matrix(in, arity))
        return gpu_fail_complex(name);
    *result = (gpu_operand){.matrix = &v->made[i]};
    return gpu_complex_map(name, c->op, in, out ? out : &v->made[i]);
}

/* One operation writes its result in place; of several each has its own. */
static gpu_status run_steps(const char *name, const gpu_program *p,
                            const gpu_matrix *const *in, gpu_matrix *out)
{
    values v = {.count = 0};
    gpu_status status = GPU_OK;
    TRY(gpu_check_complex(name, in, p->inputs, &v.device));
    TRY(gpu_map_shape(name, in, p->inputs, &v.shape));
    for (int i = 0; i < p->inputs; i++)
        v.list[v.count++] = (gpu_operand){.matrix = in[i]};
    for (int i = 0; i < p->constants; i++)
        v.list[v.count++] = (gpu_operand){.value = {p->constant[i], 0}};
    for (int i = 0; i < p->length; i++)
        v.made[i].storage = NULL;
    for (int i = 0; i < p->length && status == GPU_OK; i++)
        status = step(name, p, i, &v, i == p->length - 1 ? out : NULL);
    for (int i = 0; i < p->length; i++)
        gpu_release(&v.made[i]);
    return status;
}

gpu_status gpu_map_complex(const char *name, const gpu_program *p,
                           const gpu_matrix *const *in, gpu_matrix *out)
{
    int found = 0, created = !out->storage;
    for (int i = 0; i < p->inputs; i++)
        found |= gpu_is_complex(in[i]);
    if (!found)
        return map_real(name, p, in, out);
    if (p->length > 0)
        return run_steps(name, p, in, out);
    if (created)
        return gpu_clone(in[0], in[0]->dtype, NULL, out);
    return gpu_copy_complex(in[0], out);
}
