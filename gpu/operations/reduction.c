/* Reductions: the primitive ones go to the backend; any, all, mean, norm, var
 * and std are composed from them here, and norms of any power. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"
#include "reduce_tiles.h"

#include <float.h>
#include <math.h>

/* What is being reduced: the program, its inputs and their common shape.
 * Vectors are columns here, so that they go together with their results. */
typedef struct reduction {
    const char *name, *whole;          /* with what waited for it */
    gpu_matrix inputs[GPU_MAX_INPUTS]; /* with a reference, until its end */
    gpu_program program;
    gpu_view views[GPU_MAX_INPUTS];
    gpu_device *device;
    int ndim, axis;
    int counts; /* the elements are truth values */
    int64_t rows, cols;
} reduction;

static void end(reduction *r)
{
    for (int i = 0; i < r->program.inputs; i++)
        gpu_release(&r->inputs[i]);
}

static gpu_status check_axis(const reduction *r)
{
    if (r->axis < 0 || r->axis > 2)
        return gpu_fail(GPU_ARGUMENT,
                        "%s: axis %d: use 1 (down each column) or 2 (along "
                        "each row)",
                        r->name, r->axis);
    if (r->ndim == 1 && r->axis == 2)
        return gpu_fail(GPU_ARGUMENT, "%s: a vector has no axis 2", r->name);
    return GPU_OK;
}

/* To be ended where it succeeds. */
static gpu_status start(reduction *r, const char *name, const gpu_program *p,
                        const gpu_matrix *const *in, int axis)
{
    gpu_composition made;
    TRY(gpu_common_views(name, p, in, axis, &r->device, &made, r->views,
                         &r->ndim));
    r->name = name;
    r->whole = made.name;
    r->axis = axis;
    r->counts = p->length == 0 && in[0]->dtype == GPU_BOOL;
    r->program = made.p;
    r->rows = r->views[0].rows;
    r->cols = r->views[0].cols;
    for (int i = 0; i < made.p.inputs; i++) {
        r->inputs[i] = made.in[i];
        r->inputs[i].ndim = 2;
    }
    gpu_status status = check_axis(r);
    if (status != GPU_OK)
        end(r);
    return status;
}

static int64_t count(const reduction *r)
{
    return r->axis == 0 ? r->rows * r->cols : r->axis == 1 ? r->rows : r->cols;
}

static int gives_place(int kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

static gpu_status create_result(const reduction *r, gpu_dtype type,
                                gpu_matrix *out)
{
    int64_t rows = r->axis == 2 ? r->rows : 1;
    int64_t cols = r->axis == 1 ? r->cols : 1;
    TRY(gpu_create(out, r->device, type, 2, rows, cols));
    for (int i = 0; i < r->program.inputs; i++) {
        const gpu_matrix *in = &r->inputs[i];
        gpu_pass_home(&in, 1, out);
    }
    return GPU_OK;
}

/* Reductions of nothing: sums are 0, products 1, the rest has no answer. */
static gpu_status reduce_nothing(const reduction *r, int kind, gpu_matrix *out)
{
    int is_sum = kind == GPU_REDUCE_sum || kind == GPU_REDUCE_SQUARES;
    if (!is_sum && kind != GPU_REDUCE_prod && gpu_size(out) > 0)
        return gpu_fail(GPU_SHAPE, "%s: of no elements", r->name);
    return gpu_fill(out, kind == GPU_REDUCE_prod);
}

/* A bit for each input that lies on the device that computes. */
static unsigned find_there(const reduction *r)
{
    gpu_device *through = gpu_through(r->device);
    unsigned there = 0;
    for (int i = 0; i < r->program.inputs; i++)
        if (r->inputs[i].storage->device == (through ? through : r->device))
            there |= 1u << i;
    return there;
}

static gpu_status run_primitive(const reduction *r, int kind, gpu_matrix *out)
{
    if (count(r) == 0)
        return reduce_nothing(r, kind, out);
    if (gpu_size(out) == 0)
        return GPU_OK;
    gpu_program p = r->program;
    p.reduction = (uint8_t)kind;
    gpu_view to = gpu_target_of(out);
    double bytes = 0;
    for (int i = 0; i < p.inputs; i++)
        bytes += (double)gpu_bytes(&r->inputs[i]);
    gpu_matrix shape = {.ndim = r->ndim, .rows = r->rows, .cols = r->cols};
    gpu_operation op = {.name = r->whole,
                        .kernel = "reduce",
                        .device = r->device,
                        .result = out,
                        .extent = &shape,
                        .k = count(r),
                        .flops = (double)r->rows * (double)r->cols,
                        .bytes = bytes};
    gpu_device *through = gpu_through(r->device);
    unsigned there = find_there(r);
    int is_tiled = through || there + 1 < 1u << p.inputs;
    if (!is_tiled && !gpu_is_in_blocks(kind, r->rows, r->cols))
        return RUN_OPERATION(&op, reduce, &p, r->views, r->axis, &to);
    if (through)
        op.device = through;
    gpu_begin_operation(&op);
    gpu_status status =
        is_tiled
            ? gpu_reduce_tiles(op.device, &p, there, r->views, r->axis, out)
            : gpu_reduce_blocks(op.device, &p, r->views, r->axis, out);
    return gpu_end_operation(&op, status);
}

static gpu_status primitive(const reduction *r, int kind, gpu_dtype type,
                            gpu_matrix *out)
{
    TRY(create_result(r, type, out));
    gpu_status status = run_primitive(r, kind, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* r with one more instruction over its result and a constant. */
static reduction with(const reduction *r, gpu_op op, int constant, double value)
{
    reduction more = *r;
    gpu_program *p = &more.program, old = r->program;
    int shift = constant, first = old.inputs + old.constants;
    int last = old.length ? first + old.length - 1 : 0;
    gpu_program_start(p, old.inputs);
    p->compute = old.compute;
    for (int i = 0; i < old.constants; i++)
        gpu_program_constant(p, old.constant[i]);
    int extra = constant ? gpu_program_constant(p, value) : 0;
    for (int i = 0; i < old.length; i++) {
        gpu_instruction c = old.code[i];
        gpu_program_add(p, (gpu_op)c.op, c.x + (c.x >= first ? shift : 0),
                        c.y + (c.y >= first ? shift : 0),
                        c.z + (c.z >= first ? shift : 0));
    }
    last += last >= first ? shift : 0;
    gpu_program_add(p, op, last, constant ? extra : last, 0);
    return more;
}

/* out = op(out, constant) for the small matrix of results. */
static gpu_status finish(const char *name, gpu_op op, double value,
                         gpu_matrix *out)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    int c = gpu_program_constant(&p, value);
    gpu_program_add(&p, op, 0, c, 0);
    const gpu_matrix *in[] = {out};
    gpu_status status = gpu_map(name, &p, in, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* How a reduction that is not primitive is made: its result, f64 or bool, and
 * whether the square root of that is meant. Those below stand behind their code
 * under the words that rows of ops.def have for them. */
typedef struct way {
    gpu_status (*compose)(const reduction *r, gpu_matrix *out);
    int is_root;
} way;

static const way PRIMITIVE = {NULL, 0};

static gpu_dtype float_type(const reduction *r)
{
    return (gpu_dtype)r->program.compute;
}

static gpu_status truth(const reduction *r, int any, gpu_matrix *out)
{
    if (count(r) == 0) {
        TRY(create_result(r, GPU_BOOL, out));
        return gpu_fill(out, !any);
    }
    reduction nonzero = with(r, GPU_OP_ne, 1, 0.0);
    return primitive(&nonzero, any ? GPU_REDUCE_max : GPU_REDUCE_min, GPU_BOOL,
                     out);
}

static gpu_status any_true(const reduction *r, gpu_matrix *out)
{
    return truth(r, 1, out);
}

static const way ANY = {any_true, 0};

static gpu_status all_true(const reduction *r, gpu_matrix *out)
{
    return truth(r, 0, out);
}

static const way ALL = {all_true, 0};

static gpu_status convert(const reduction *r, gpu_matrix *wide, gpu_matrix *out)
{
    gpu_status status = gpu_clone(wide, float_type(r), NULL, out);
    gpu_release(wide);
    return status;
}

static gpu_status mean_wide(const reduction *r, gpu_matrix *out)
{
    if (count(r) == 0)
        return gpu_fail(GPU_SHAPE, "%s: of no elements", r->name);
    TRY(primitive(r, GPU_REDUCE_sum, GPU_F64, out));
    return finish(r->name, GPU_OP_div, (double)count(r), out);
}

static const way MEAN = {mean_wide, 0};

/* The elements being reduced as one matrix: the input, or a new one. */
static gpu_status elements(const reduction *r, gpu_matrix *out)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    for (int i = 0; i < r->program.inputs; i++)
        in[i] = &r->inputs[i];
    out->storage = NULL;
    if (r->program.length > 0)
        return gpu_map(r->name, &r->program, in, out);
    gpu_retain(in[0]);
    *out = *in[0];
    return GPU_OK;
}

/* The largest absolute values, none of them 0 or infinite, so that dividing by
 * them makes no NaN of zeros and infinities. */
static gpu_status safe_scale(const reduction *r, gpu_matrix *out)
{
    reduction sizes = with(r, GPU_OP_abs, 0, 0);
    TRY(primitive(&sizes, GPU_REDUCE_max, GPU_F64, out));
    gpu_program p;
    gpu_program_start(&p, 1);
    int low = gpu_program_constant(&p, DBL_TRUE_MIN);
    int high = gpu_program_constant(&p, DBL_MAX);
    gpu_program_add(&p, GPU_OP_clip, 0, low, high);
    const gpu_matrix *in[] = {out};
    gpu_status status = gpu_map(r->name, &p, in, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* scale * sqrt(sum of (x / scale)^2), for f64, whose squares may overflow. */
static gpu_status scaled_norm(const reduction *r, gpu_matrix *scale,
                              gpu_matrix *out)
{
    gpu_matrix values;
    gpu_program p;
    TRY(elements(r, &values));
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_div, 0, 1, 0);
    p.reduction = GPU_REDUCE_SQUARES;
    const gpu_matrix *quotients[] = {&values, scale};
    gpu_status status = gpu_reduce(r->name, &p, quotients, r->axis, out);
    gpu_release(&values);
    if (status != GPU_OK)
        return status;
    gpu_program_start(&p, 2);
    int root = gpu_program_add(&p, GPU_OP_sqrt, 0, 0, 0);
    gpu_program_add(&p, GPU_OP_mul, root, 1, 0);
    const gpu_matrix *in[] = {out, scale};
    status = gpu_map(r->name, &p, in, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* Whether sums of squares are far enough from both ends of the range for none
 * of the squares to have overflowed, or lost bits that count; in a dry run, in
 * which every value is 1, they are. */
static gpu_status are_safe(const gpu_matrix *sums, int *safe)
{
    const double least = 1e-290;
    double low = 1, high = 1;
    gpu_program p;
    const gpu_matrix *in[] = {sums};
    gpu_program_start(&p, 1);
    *safe = 1;
    if (gpu_size(sums) == 0)
        return GPU_OK;
    if (gpu_size(sums) == 1) {
        TRY(gpu_get(sums, 0, 0, &low));
        high = low;
    } else {
        p.reduction = GPU_REDUCE_min;
        TRY(gpu_reduce_all("norm", &p, in, &low));
        p.reduction = GPU_REDUCE_max;
        TRY(gpu_reduce_all("norm", &p, in, &high));
    }
    *safe = low >= least && high <= DBL_MAX;
    return GPU_OK;
}

/* Squares of f32 always fit f64; those of f64 are scaled where they did not. */
static gpu_status norm_wide(const reduction *r, gpu_matrix *out)
{
    gpu_matrix scale;
    int safe = 1;
    TRY(primitive(r, GPU_REDUCE_SQUARES, GPU_F64, out));
    gpu_status status = count(r) > 0 && float_type(r) == GPU_F64
                            ? are_safe(out, &safe)
                            : GPU_OK;
    if (status == GPU_OK && safe)
        return finish(r->name, GPU_OP_sqrt, 0, out);
    gpu_release(out);
    TRY(status);
    TRY(safe_scale(r, &scale));
    status = scaled_norm(r, &scale, out);
    gpu_release(&scale);
    return status;
}

static const way NORM = {norm_wide, 0};

static gpu_status variance_wide(const reduction *r, gpu_matrix *out)
{
    if (count(r) == 0)
        return gpu_fail(GPU_SHAPE, "%s: of no elements", r->name);
    TRY(primitive(r, GPU_REDUCE_SPREAD, GPU_F64, out));
    return finish(r->name, GPU_OP_div, (double)(count(r) - 1), out);
}

static const way VARIANCE = {variance_wide, 0};
static const way DEVIATION = {variance_wide, 1};

/* --- what a row of ops.def is composed of --------------------------------- */

#define OP(...)
#define TEST(...)
#define REDUCTION(name, word, ...) [GPU_REDUCE_##name] = &word,
static const way *const ways[GPU_REDUCTIONS] = {
#include "ops.def"
    [GPU_REDUCE_SQUARES] = &PRIMITIVE,
    [GPU_REDUCE_SPREAD] = &PRIMITIVE,
};

static int is_primitive(int kind)
{
    return !ways[kind]->compose;
}

static gpu_status composed(const reduction *r, int kind, gpu_matrix *out)
{
    gpu_matrix wide;
    TRY(ways[kind]->compose(r, &wide));
    if (ways[kind]->is_root)
        TRY(finish(r->name, GPU_OP_sqrt, 0, &wide));
    if (wide.dtype != GPU_BOOL)
        return convert(r, &wide, out);
    *out = wide;
    return GPU_OK;
}

/* f32 counts up to 2^24. */
static int exceeds_f32(const reduction *r, int kind)
{
    return kind == GPU_REDUCE_sum && r->counts && count(r) > 1 << 24;
}

static int is_any_complex(const gpu_program *p, const gpu_matrix *const *in)
{
    for (int i = 0; i < p->inputs; i++)
        if (gpu_is_complex(in[i]))
            return 1;
    return 0;
}

gpu_status gpu_reduce(const char *name, const gpu_program *p,
                      const gpu_matrix *const *in, int axis, gpu_matrix *out)
{
    if (is_any_complex(p, in))
        return gpu_reduce_complex(name, p, in, axis, out);
    reduction r;
    out->storage = NULL;
    TRY(start(&r, name, p, in, axis));
    int kind = p->reduction;
    int is_wide = gives_place(kind) || exceeds_f32(&r, kind);
    gpu_dtype type = is_wide ? GPU_F64 : float_type(&r);
    gpu_status status = is_primitive(kind) ? primitive(&r, kind, type, out)
                                           : composed(&r, kind, out);
    end(&r);
    if (status == GPU_OK)
        out->ndim = r.ndim;
    return status;
}

static gpu_status take_value(gpu_matrix *result, double *out)
{
    gpu_status status = gpu_get(result, 0, 0, out);
    gpu_release(result);
    return status;
}

/* A primitive one whose result only passes through the device's memory. */
static gpu_status reduce_to_number(const reduction *r, int kind, double *out)
{
    gpu_matrix result;
    if (!gpu_take_answer(r->device, &result))
        TRY(create_result(r, GPU_F64, &result));
    gpu_status status = run_primitive(r, kind, &result);
    if (status == GPU_OK)
        return take_value(&result, out);
    gpu_release(&result);
    return status;
}

gpu_status gpu_reduce_all(const char *name, const gpu_program *p,
                          const gpu_matrix *const *in, double *out)
{
    if (is_any_complex(p, in))
        return gpu_reduce_all_complex(name, p, in, out);
    reduction r;
    gpu_matrix result;
    TRY(start(&r, name, p, in, 0));
    if (is_primitive(p->reduction)) {
        gpu_status status = reduce_to_number(&r, p->reduction, out);
        end(&r);
        return status;
    }
    gpu_status status = ways[p->reduction]->compose(&r, &result);
    end(&r);
    TRY(status);
    TRY(take_value(&result, out));
    if (ways[p->reduction]->is_root)
        *out = sqrt(*out);
    return GPU_OK;
}

/* --- norms ---------------------------------------------------------------- */

/* The sum of (|x| / scale)^power. */
static gpu_status sum_of_powers(const reduction *r, double power,
                                const gpu_matrix *scale, gpu_matrix *out)
{
    gpu_matrix values;
    gpu_program p;
    gpu_program_start(&p, 2);
    int constant = gpu_program_constant(&p, power);
    int value = gpu_program_add(&p, GPU_OP_abs, 0, 0, 0);
    value = gpu_program_add(&p, GPU_OP_div, value, 1, 0);
    gpu_program_add(&p, GPU_OP_pow, value, constant, 0);
    p.reduction = GPU_REDUCE_sum;
    TRY(elements(r, &values));
    const gpu_matrix *in[] = {&values, scale};
    gpu_status status = gpu_reduce(r->name, &p, in, r->axis, out);
    gpu_release(&values);
    return status;
}

/* out = out^(1 / power) scale, as its root times scale times its root: of a
 * small power neither root nor scale need fit f64 alone. */
static gpu_status take_root(const reduction *r, double power,
                            const gpu_matrix *scale, gpu_matrix *out)
{
    gpu_program p;
    gpu_program_start(&p, 2);
    int half = gpu_program_constant(&p, 0.5 / power);
    int root = gpu_program_add(&p, GPU_OP_pow, 0, half, 0);
    int value = gpu_program_add(&p, GPU_OP_mul, root, 1, 0);
    gpu_program_add(&p, GPU_OP_mul, value, root, 0);
    const gpu_matrix *in[] = {out, scale};
    gpu_status status = gpu_map(r->name, &p, in, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

static gpu_status power_norm(const reduction *r, double power, gpu_matrix *out)
{
    reduction sizes = with(r, GPU_OP_abs, 0, 0);
    gpu_matrix scale;
    if (power == 2)
        return norm_wide(r, out);
    if (power == 1 || count(r) == 0)
        return primitive(&sizes, GPU_REDUCE_sum, GPU_F64, out);
    if (isinf(power))
        return primitive(&sizes, GPU_REDUCE_max, GPU_F64, out);
    TRY(safe_scale(r, &scale));
    gpu_status status = sum_of_powers(r, power, &scale, out);
    if (status == GPU_OK)
        status = take_root(r, power, &scale, out);
    gpu_release(&scale);
    return status;
}

static gpu_status start_norm(reduction *r, const gpu_matrix *m, double power,
                             int axis)
{
    gpu_program p;
    gpu_program_start(&p, 1);
    if (!(power > 0))
        return gpu_fail(GPU_ARGUMENT, "norm: p is a number above 0, not %g",
                        power);
    return start(r, "norm", &p, &m, axis);
}

gpu_status gpu_norm(const gpu_matrix *m, double p, int axis, gpu_matrix *out)
{
    if (gpu_is_complex(m)) {
        gpu_matrix sizes;
        TRY(gpu_sizes_of(m, &sizes));
        gpu_status failed = gpu_norm(&sizes, p, axis, out);
        gpu_release(&sizes);
        return failed;
    }
    reduction r;
    gpu_matrix wide;
    out->storage = NULL;
    TRY(start_norm(&r, m, p, axis));
    gpu_status status = power_norm(&r, p, &wide);
    end(&r);
    TRY(status);
    TRY(convert(&r, &wide, out));
    out->ndim = r.ndim;
    return GPU_OK;
}

gpu_status gpu_norm_all(const gpu_matrix *m, double p, double *out)
{
    if (gpu_is_complex(m)) {
        gpu_matrix sizes;
        TRY(gpu_sizes_of(m, &sizes));
        gpu_status failed = gpu_norm_all(&sizes, p, out);
        gpu_release(&sizes);
        return failed;
    }
    reduction r;
    gpu_matrix result;
    TRY(start_norm(&r, m, p, 0));
    gpu_status status = power_norm(&r, p, &result);
    end(&r);
    TRY(status);
    return take_value(&result, out);
}

gpu_status gpu_norm_of_sums(const gpu_matrix *m, int axis, double *out)
{
    if (gpu_is_complex(m)) {
        gpu_matrix sizes;
        TRY(gpu_sizes_of(m, &sizes));
        gpu_status failed = gpu_norm_of_sums(&sizes, axis, out);
        gpu_release(&sizes);
        return failed;
    }
    reduction r;
    gpu_matrix sums;
    *out = 0;
    TRY(start_norm(&r, m, 1, axis));
    gpu_status status = power_norm(&r, 1, &sums);
    end(&r);
    TRY(status);
    status = gpu_size(&sums) > 0 ? gpu_norm_all(&sums, INFINITY, out) : GPU_OK;
    gpu_release(&sums);
    return status;
}
