/* Reductions: the primitive ones go to the backend; any, all, mean, norm, var
 * and std are composed from them here, and norms of any power. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"
#include "reduce_tiles.h"
#include "tiles.h"

#include <float.h>
#include <math.h>

/* What is being reduced: the program, its inputs and their common shape.
 * Vectors are columns here, so that they go together with their results. */
typedef struct reduction {
    const char *name, *whole;          /* with what waited for it */
    gpu_matrix inputs[GPU_MAX_INPUTS]; /* with a reference, until its end */
    gpu_program program;
    gpu_dtype type; /* of results that are numbers of its */
    gpu_view views[GPU_MAX_INPUTS];
    gpu_device *device;
    int ndim, axis;
    int counts; /* the elements are truth values */
    int before; /* operations on an element before it is reduced */
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
    r->type = made.type;
    r->before = gpu_program_operations(&made.p);
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
                        .flops =
                            (double)r->rows * (double)r->cols * (1 + r->before),
                        .bytes = bytes};
    gpu_device *through = gpu_through(r->device);
    unsigned there = find_there(r);
    int is_tiled = through || there + 1 < 1u << p.inputs;
    if (!is_tiled && !gpu_is_in_blocks(kind, r->rows, r->cols))
        return RUN_OPERATION(&op, reduce, &p, r->views, r->axis, &to);
    if (through)
        op.device = through;
    gpu_team team = gpu_team_of(op.device, there != 0);
    if (is_tiled)
        op.team = &team;
    gpu_begin_operation(&op);
    gpu_status status =
        is_tiled ? gpu_reduce_tiles(&team, &p, there, r->views, r->axis, out)
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
    int raw;   /* the reduction whose quotient by the count it is, or */
    int fewer; /* by so many fewer; 0: no such thing */
} way;

static const way PRIMITIVE = {NULL, 0, 0, 0};

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

static const way ANY = {any_true, 0, 0, 0};

static gpu_status all_true(const reduction *r, gpu_matrix *out)
{
    return truth(r, 0, out);
}

static const way ALL = {all_true, 0, 0, 0};

static gpu_status convert(const reduction *r, gpu_matrix *wide, gpu_matrix *out)
{
    gpu_status status = gpu_clone(wide, r->type, NULL, out);
    gpu_release(wide);
    return status;
}

/* The raw reduction over the number of elements. */
static gpu_status quotient_wide(const reduction *r, int raw, int fewer,
                                gpu_matrix *out)
{
    if (count(r) == 0)
        return gpu_fail(GPU_SHAPE, "%s: of no elements", r->name);
    TRY(primitive(r, raw, GPU_F64, out));
    return finish(r->name, GPU_OP_div, (double)(count(r) - fewer), out);
}

static gpu_status mean_wide(const reduction *r, gpu_matrix *out)
{
    return quotient_wide(r, GPU_REDUCE_sum, 0, out);
}

static const way MEAN = {mean_wide, 0, GPU_REDUCE_sum, 0};

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
    gpu_status status =
        count(r) > 0 && r->type == GPU_F64 ? are_safe(out, &safe) : GPU_OK;
    if (status == GPU_OK && safe)
        return finish(r->name, GPU_OP_sqrt, 0, out);
    gpu_release(out);
    TRY(status);
    TRY(safe_scale(r, &scale));
    status = scaled_norm(r, &scale, out);
    gpu_release(&scale);
    return status;
}

static const way NORM = {norm_wide, 0, 0, 0};

static gpu_status variance_wide(const reduction *r, gpu_matrix *out)
{
    return quotient_wide(r, GPU_REDUCE_SPREAD, 1, out);
}

static const way VARIANCE = {variance_wide, 0, GPU_REDUCE_SPREAD, 1};
static const way DEVIATION = {variance_wide, 1, GPU_REDUCE_SPREAD, 1};

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
    gpu_dtype type = is_wide ? GPU_F64 : r.type;
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

/* Does the host work it out of a primitive one's number? A device's arithmetic
 * would give the same bits, one launch and one copy later. */
static int is_for_host(const reduction *r, const way *w)
{
    return count(r) > 0 && (w->raw || (w == &NORM && r->type != GPU_F64));
}

static gpu_status finish_on_host(const reduction *r, const way *w, double *out)
{
    TRY(reduce_to_number(r, w->raw ? w->raw : GPU_REDUCE_SQUARES, out));
    *out = w->raw ? *out / (double)(count(r) - w->fewer) : sqrt(*out);
    return GPU_OK;
}

static gpu_status compose_number(const reduction *r, const way *w, double *out)
{
    gpu_matrix result;
    TRY(w->compose(r, &result));
    return take_value(&result, out);
}

gpu_status gpu_reduce_all(const char *name, const gpu_program *p,
                          const gpu_matrix *const *in, double *out)
{
    if (is_any_complex(p, in))
        return gpu_reduce_all_complex(name, p, in, out);
    reduction r;
    const way *w = ways[p->reduction];
    TRY(start(&r, name, p, in, 0));
    gpu_status status = is_primitive(p->reduction)
                            ? reduce_to_number(&r, p->reduction, out)
                        : is_for_host(&r, w) ? finish_on_host(&r, w, out)
                                             : compose_number(&r, w, out);
    end(&r);
    if (status == GPU_OK && w->is_root)
        *out = sqrt(*out);
    return status;
}

/* --- of chosen elements -----------------------------------------------------
 * NaN is left out, elements weigh differently, or squares are divided by
 * another number than n - 1: programs over the elements and their weights are
 * reduced in f64, and what comes of the lines is put together. */

/* Everything has two axes here. */
typedef struct choosing {
    const char *name;
    gpu_matrix m;       /* borrowed */
    gpu_matrix weights; /* f64; without storage all elements count 1 */
    int axis, skips_nan;
    double ddof;
    /* Of each line, while they are needed: what counts in it, and so on. */
    gpu_matrix total, first, second, third;
    int64_t *none;
} choosing;

/* A program over m, the weights, where there are any, and one more operand; its
 * values so far: each element that counts, and `otherwise` for the others. */
typedef struct terms {
    gpu_program p;
    int value, otherwise, weight, third;
} terms;

static terms begin_terms(const choosing *c, double otherwise, int has_third)
{
    terms t = {.value = 0};
    int inputs = 1;
    t.weight = c->weights.storage ? inputs++ : 0;
    t.third = has_third ? inputs++ : 0;
    gpu_program_start(&t.p, inputs);
    t.otherwise = gpu_program_constant(&t.p, otherwise);
    if (c->skips_nan) {
        int left_out = gpu_program_add(&t.p, GPU_OP_isnan, 0, 0, 0);
        t.value = gpu_program_add(&t.p, GPU_OP_where, left_out, t.otherwise, 0);
    }
    return t;
}

/* Lines of a program's values: f64, or truth values. */
static gpu_status fold(const choosing *c, const gpu_program *p,
                       const gpu_matrix *const *in, int kind, gpu_matrix *out)
{
    reduction r;
    gpu_program whole = *p;
    whole.reduction = (uint8_t)kind;
    out->storage = NULL;
    TRY(start(&r, c->name, &whole, in, c->axis));
    gpu_status status = is_primitive(kind) ? primitive(&r, kind, GPU_F64, out)
                                           : ways[kind]->compose(&r, out);
    end(&r);
    return status;
}

static gpu_status fold_terms(const choosing *c, const terms *t,
                             const gpu_matrix *third, int kind, gpu_matrix *out)
{
    const gpu_matrix *in[3] = {&c->m};
    if (t->weight)
        in[t->weight] = &c->weights;
    if (t->third)
        in[t->third] = third;
    return fold(c, &t->p, in, kind, out);
}

/* The weights of what counts in each line, or their squares, added up. */
static gpu_status weigh(const choosing *c, int kind, gpu_matrix *out)
{
    const gpu_matrix *in[] = {&c->weights, &c->m};
    gpu_program p;
    if (!c->weights.storage) {
        in[0] = &c->m;
        gpu_program_start(&p, 1);
        int left_out = gpu_program_add(&p, GPU_OP_isnan, 0, 0, 0);
        gpu_program_add(&p, GPU_OP_lnot, left_out, 0, 0);
    } else if (c->skips_nan) {
        gpu_program_start(&p, 2);
        int zero = gpu_program_constant(&p, 0);
        int left_out = gpu_program_add(&p, GPU_OP_isnan, 1, 0, 0);
        gpu_program_add(&p, GPU_OP_where, left_out, zero, 0);
    } else
        gpu_program_start(&p, 1);
    return fold(c, &p, in, kind, out);
}

/* How many lines have the value; 0 in a dry run. */
static gpu_status count_lines(const choosing *c, const gpu_matrix *lines,
                              double value, int64_t *count)
{
    gpu_program p;
    double sum = 0;
    gpu_program_start(&p, 1);
    int wanted = gpu_program_constant(&p, value);
    gpu_program_add(&p, GPU_OP_eq, 0, wanted, 0);
    p.reduction = GPU_REDUCE_sum;
    TRY(gpu_reduce_all(c->name, &p, &lines, &sum));
    *count = gpu_dry ? 0 : (int64_t)sum;
    return GPU_OK;
}

/* The weighted mean of each line into c->first, and c->total. */
static gpu_status mean_of_terms(choosing *c)
{
    terms t = begin_terms(c, 0, 0);
    if (t.weight)
        gpu_program_add(&t.p, GPU_OP_mul, t.value, t.weight, 0);
    TRY(weigh(c, GPU_REDUCE_sum, &c->total));
    TRY(count_lines(c, &c->total, 0, c->none));
    TRY(fold_terms(c, &t, NULL, GPU_REDUCE_sum, &c->second));
    const gpu_matrix *in[] = {&c->second, &c->total};
    gpu_program p;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_div, 0, 1, 0);
    TRY(gpu_map(c->name, &p, in, &c->first));
    gpu_release(&c->second);
    return GPU_OK;
}

/* The squared distances from the means, each times its weight. */
static gpu_status squares_of_terms(choosing *c, gpu_matrix *out)
{
    terms t = begin_terms(c, 0, 1);
    int apart = gpu_program_add(&t.p, GPU_OP_sub, 0, t.third, 0);
    int square = gpu_program_add(&t.p, GPU_OP_mul, apart, apart, 0);
    if (t.weight)
        square = gpu_program_add(&t.p, GPU_OP_mul, square, t.weight, 0);
    if (c->skips_nan) {
        int left_out = gpu_program_add(&t.p, GPU_OP_isnan, 0, 0, 0);
        gpu_program_add(&t.p, GPU_OP_where, left_out, t.otherwise, square);
    }
    return fold_terms(c, &t, &c->first, GPU_REDUCE_sum, out);
}

/* Squares over total - ddof, of weights total - ddof (sum of w^2) / total; NaN
 * where that is not above 0. */
static gpu_status divide_squares(const choosing *c, gpu_matrix *out)
{
    const gpu_matrix *in[] = {&c->second, &c->total, &c->third};
    int is_weighted = c->third.storage != NULL;
    gpu_program p;
    gpu_program_start(&p, 2 + is_weighted);
    int ddof = gpu_program_constant(&p, c->ddof);
    int zero = gpu_program_constant(&p, 0);
    int nan = gpu_program_constant(&p, (double)NAN);
    if (is_weighted) {
        int share = gpu_program_add(&p, GPU_OP_div, 2, 1, 0);
        ddof = gpu_program_add(&p, GPU_OP_mul, share, ddof, 0);
    }
    int divisor = gpu_program_add(&p, GPU_OP_sub, 1, ddof, 0);
    int quotient = gpu_program_add(&p, GPU_OP_div, 0, divisor, 0);
    int is_above = gpu_program_add(&p, GPU_OP_gt, divisor, zero, 0);
    gpu_program_add(&p, GPU_OP_where, is_above, quotient, nan);
    out->storage = NULL;
    return gpu_map(c->name, &p, in, out);
}

static gpu_status variance_of_terms(choosing *c, gpu_matrix *out)
{
    TRY(mean_of_terms(c));
    TRY(squares_of_terms(c, &c->second));
    if (c->weights.storage)
        TRY(weigh(c, GPU_REDUCE_SQUARES, &c->third));
    return divide_squares(c, out);
}

/* All elements count alike: divided by n - ddof. */
static gpu_status variance_with(const choosing *c, gpu_matrix *out)
{
    const gpu_matrix *in[] = {&c->m};
    double n = (double)(c->axis == 0   ? c->m.rows * c->m.cols
                        : c->axis == 1 ? c->m.rows
                                       : c->m.cols);
    gpu_program p;
    gpu_program_start(&p, 1);
    TRY(fold(c, &p, in, GPU_REDUCE_SPREAD, out));
    double divisor = n - c->ddof;
    return finish(c->name, GPU_OP_div, divisor > 0 ? divisor : (double)NAN,
                  out);
}

/* out = NaN in lines of which nothing counts. */
static gpu_status mark_empty(choosing *c, gpu_matrix *out)
{
    gpu_program p;
    const gpu_matrix *in[] = {&c->total, out};
    TRY(count_lines(c, &c->total, 0, c->none));
    gpu_program_start(&p, 2);
    int nan = gpu_program_constant(&p, (double)NAN);
    gpu_program_add(&p, GPU_OP_where, 0, 1, nan);
    return gpu_map(c->name, &p, in, out);
}

/* An infinity stands for NaN: where it is the extreme of a line it may be
 * because nothing else is there. */
static gpu_status extremes_of_terms(choosing *c, int kind, gpu_matrix *out)
{
    double last = kind == GPU_REDUCE_min ? (double)INFINITY : -(double)INFINITY;
    terms t = begin_terms(c, last, 0);
    int64_t doubtful = 0;
    TRY(fold_terms(c, &t, NULL, kind, out));
    TRY(count_lines(c, out, last, &doubtful));
    if (doubtful == 0)
        return GPU_OK;
    TRY(weigh(c, GPU_REDUCE_sum, &c->total));
    return mark_empty(c, out);
}

/* And then its place is that of the first such infinity. */
static gpu_status places_of_terms(choosing *c, int kind, gpu_matrix *out)
{
    int is_least = kind == GPU_REDUCE_argmin;
    double last = is_least ? (double)INFINITY : -(double)INFINITY;
    terms t = begin_terms(c, last, 0), same = t;
    int64_t doubtful = 0;
    TRY(fold_terms(c, &t, NULL, kind, out));
    TRY(fold_terms(c, &t, NULL, is_least ? GPU_REDUCE_min : GPU_REDUCE_max,
                   &c->first));
    TRY(count_lines(c, &c->first, last, &doubtful));
    if (doubtful == 0)
        return GPU_OK;
    gpu_program_add(&same.p, GPU_OP_eq, 0, same.otherwise, 0);
    TRY(fold_terms(c, &same, NULL, GPU_REDUCE_argmax, &c->second));
    const gpu_matrix *in[] = {&c->first, &c->second, out};
    gpu_program p;
    gpu_program_start(&p, 3);
    int infinite = gpu_program_constant(&p, last);
    int is_doubtful = gpu_program_add(&p, GPU_OP_eq, 0, infinite, 0);
    gpu_program_add(&p, GPU_OP_where, is_doubtful, 1, 2);
    TRY(gpu_map(c->name, &p, in, out));
    TRY(weigh(c, GPU_REDUCE_sum, &c->total));
    return mark_empty(c, out);
}

/* What takes the place of NaN where that changes nothing. */
static double neutral(int kind)
{
    return kind == GPU_REDUCE_prod || kind == GPU_REDUCE_all;
}

static gpu_status choose(choosing *c, int kind, gpu_matrix *out)
{
    int is_spread = kind == GPU_REDUCE_var || kind == GPU_REDUCE_std;
    if (gives_place(kind))
        return places_of_terms(c, kind, out);
    if (kind == GPU_REDUCE_min || kind == GPU_REDUCE_max)
        return extremes_of_terms(c, kind, out);
    if (kind == GPU_REDUCE_mean) {
        TRY(mean_of_terms(c));
        *out = c->first;
        c->first.storage = NULL;
        return GPU_OK;
    }
    if (is_spread) {
        TRY(c->skips_nan || c->weights.storage ? variance_of_terms(c, out)
                                               : variance_with(c, out));
        return kind == GPU_REDUCE_std ? finish(c->name, GPU_OP_sqrt, 0, out)
                                      : GPU_OK;
    }
    terms t = begin_terms(c, neutral(kind), 0);
    return fold_terms(c, &t, NULL, kind, out);
}

static gpu_status refuse_weights(const choosing *c, const gpu_matrix *weights)
{
    static const char *const wanted[] = {
        "as many, of A's shape", "one for each row, or a matrix of A's shape",
        "one for each column, or a matrix of A's shape"};
    return gpu_fail(GPU_SHAPE, "%s: the weights are %s, and A is %s: give %s",
                    c->name, gpu_shape_text(weights), gpu_shape_text(&c->m),
                    wanted[c->axis]);
}

/* All weights are numbers from 0 on. */
static gpu_status check_weights(const choosing *c)
{
    const gpu_matrix *in[] = {&c->weights};
    double fine = 1;
    gpu_program p;
    gpu_program_start(&p, 1);
    int zero = gpu_program_constant(&p, 0);
    int infinite = gpu_program_constant(&p, (double)INFINITY);
    int is_above = gpu_program_add(&p, GPU_OP_ge, 0, zero, 0);
    int is_below = gpu_program_add(&p, GPU_OP_lt, 0, infinite, 0);
    gpu_program_add(&p, GPU_OP_land, is_above, is_below, 0);
    p.reduction = GPU_REDUCE_all;
    TRY(gpu_reduce_all(c->name, &p, in, &fine));
    return fine || gpu_dry
               ? GPU_OK
               : gpu_fail(GPU_ARGUMENT,
                          "%s: weights are numbers from 0 on, neither NaN "
                          "nor infinite",
                          c->name);
}

/* As f64 that goes with c->m: a column, a row, or as many as there are. */
static gpu_status take_weights(choosing *c, const gpu_matrix *weights)
{
    int64_t n = gpu_size(weights);
    int is_line = weights->ndim == 1 && c->axis > 0 &&
                  n == (c->axis == 1 ? c->m.rows : c->m.cols);
    if (!is_line && (weights->ndim != c->m.ndim || weights->rows != c->m.rows ||
                     weights->cols != c->m.cols))
        return refuse_weights(c, weights);
    TRY(gpu_clone(weights, GPU_F64, NULL, &c->weights));
    c->weights.ndim = 2;
    if (is_line && c->axis == 2) {
        c->weights.rows = 1;
        c->weights.cols = n;
        c->weights.row_stride = n;
        c->weights.col_stride = 1;
    }
    return check_weights(c);
}

/* Means and spreads have no answer for nothing; extremes say so themselves. */
static gpu_status check_any(const choosing *c, int kind)
{
    int64_t n = c->axis == 0   ? c->m.rows * c->m.cols
                : c->axis == 1 ? c->m.rows
                               : c->m.cols;
    if (n == 0 && (kind == GPU_REDUCE_mean || kind == GPU_REDUCE_var ||
                   kind == GPU_REDUCE_std))
        return gpu_fail(GPU_SHAPE, "%s: of no elements", c->name);
    return GPU_OK;
}

gpu_status gpu_reduce_chosen(const char *name, gpu_reduction kind,
                             const gpu_matrix *m, int axis,
                             const gpu_choice *how, gpu_matrix *out,
                             int64_t *none)
{
    choosing c = {.name = name,
                  .m = *m,
                  .axis = axis,
                  .skips_nan = how->skips_nan,
                  .ddof = how->ddof,
                  .none = none};
    int is_count = kind == GPU_REDUCE_sum && m->dtype == GPU_BOOL &&
                   gpu_size(m) > 1 << 24; /* more than f32 counts */
    int is_narrow = m->dtype != GPU_F64 && !is_count && !gives_place(kind);
    *none = 0;
    out->storage = NULL;
    if (gpu_is_complex(m))
        return gpu_fail(GPU_TYPE,
                        "%s: NaN, weights and ddof are for real numbers: take "
                        "real(A) and imag(A)",
                        name);
    if (m->ndim == 1 && axis == 2)
        return gpu_fail(GPU_ARGUMENT, "%s: a vector has no axis 2", name);
    gpu_status status = check_any(&c, kind);
    if (status == GPU_OK && how->weights)
        status = take_weights(&c, how->weights);
    c.m.ndim = 2;
    if (status == GPU_OK)
        status = choose(&c, kind, out);
    gpu_release(&c.weights);
    gpu_release(&c.total);
    gpu_release(&c.first);
    gpu_release(&c.second);
    gpu_release(&c.third);
    if (status == GPU_OK && axis > 0 && out->dtype == GPU_F64 && is_narrow) {
        gpu_matrix wide = *out;
        status = gpu_clone(&wide, GPU_F32, NULL, out);
        gpu_release(&wide);
    }
    if (status == GPU_OK)
        out->ndim = m->ndim;
    else
        gpu_release(out);
    return status;
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
