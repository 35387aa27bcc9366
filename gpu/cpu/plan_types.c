/* Which steps of a program in f64 are taken in f32: those over numbers that
 * are f32, where the bits are the same (op_rounding.h). So what gpu/ made one
 * program of parts in both types is worked out in the types in which it was
 * written, a block being converted where they meet: f32 is half the bytes, and
 * operands of that type are read where they lie. */
#include <math.h>
#include <string.h>
#include "op_rounding.h"
#include "plan.h"

enum { NOT_MADE = 255 };

typedef struct typing {
    gpu_cpu_plan *plan;
    const gpu_program *p;
    uint8_t fits[GPU_MAX_VALUES];             /* is every element an f32? */
    uint8_t is_narrow[GPU_MAX_VALUES];        /* worked out, or read, in f32 */
    uint8_t made[GPU_MAX_VALUES][GPU_DTYPES]; /* the plan's value, by type */
} typing;

static int first_result(const typing *t)
{
    return t->p->inputs + t->p->constants;
}

static int operand(const gpu_instruction *code, int k)
{
    return k == 0 ? code->x : k == 1 ? code->y : code->z;
}

/* --- which steps ---------------------------------------------------------- */

/* Are all operands f32, and one of them there as such? */
static int takes_singles(const typing *t, const gpu_instruction *code)
{
    int any = 0;
    for (int k = 0; k < gpu_cpu_arity(code->op); k++) {
        int v = operand(code, k);
        if (!t->fits[v])
            return 0;
        any |= t->is_narrow[v];
    }
    return any;
}

/* The instruction whose result is rounded by this one to what f32 gives; NULL:
 * there is none. */
static const gpu_instruction *find_rounded(const typing *t,
                                           const gpu_instruction *code)
{
    int i = code->x - first_result(t);
    if (code->op != GPU_OP_single || i < 0)
        return NULL;
    const gpu_instruction *before = &t->p->code[i];
    return gpu_op_in_f64(before->op) == GPU_ROUNDED && takes_singles(t, before)
               ? before
               : NULL;
}

static int fit_all(const typing *t, const gpu_instruction *code)
{
    for (int k = 0; k < gpu_cpu_arity(code->op); k++)
        if (!t->fits[operand(code, k)])
            return 0;
    return 1;
}

static void type_instruction(typing *t, int i)
{
    const gpu_instruction *code = &t->p->code[i];
    int v = first_result(t) + i;
    int is_exact =
        code->op < GPU_OP_ROW && gpu_op_in_f64(code->op) == GPU_EXACT;
    t->is_narrow[v] = is_exact && takes_singles(t, code);
    t->fits[v] = (is_exact && fit_all(t, code)) || gpu_cpu_is_test(code->op);
    if (code->op == GPU_OP_single) {
        t->fits[v] = 1;
        t->is_narrow[v] |= !t->fits[code->x];
    }
}

/* Inputs are read as f32 where a step in f32 takes them, and what is f32 is
 * taken for being read so until that is known. */
static void type_inputs(typing *t)
{
    uint8_t is_taken[GPU_MAX_VALUES] = {0};
    for (int i = 0; i < t->p->length; i++) {
        const gpu_instruction *code = &t->p->code[i];
        const gpu_instruction *before = find_rounded(t, code);
        code = before ? before : code;
        if (!t->is_narrow[first_result(t) + i] || !fit_all(t, code))
            continue;
        for (int k = 0; k < gpu_cpu_arity(code->op); k++)
            is_taken[operand(code, k)] = 1;
    }
    for (int v = 0; v < t->p->inputs; v++)
        t->is_narrow[v] = is_taken[v];
}

/* The last step is rounded by being written as f32. */
static void type_result(typing *t)
{
    const gpu_instruction *last = &t->p->code[t->p->length - 1];
    int v = first_result(t) + t->p->length - 1;
    if (t->plan->out.data && t->plan->out.dtype == GPU_F32 &&
        last->op < GPU_OP_ROW && gpu_op_in_f64(last->op) == GPU_ROUNDED &&
        takes_singles(t, last))
        t->is_narrow[v] = 1;
}

static void find_types(typing *t)
{
    const gpu_program *p = t->p;
    for (int v = 0; v < p->inputs; v++) {
        const gpu_view *in = &t->plan->in[v];
        t->fits[v] = in->data && in->dtype != GPU_F64;
        t->is_narrow[v] = in->data && in->dtype == GPU_F32;
    }
    for (int c = 0; c < p->constants; c++) {
        double value = p->constant[c];
        t->fits[p->inputs + c] = isnan(value) || (double)(float)value == value;
        t->is_narrow[p->inputs + c] = 0;
    }
    for (int i = 0; i < p->length; i++)
        type_instruction(t, i);
    type_result(t);
    type_inputs(t);
}

/* --- the steps ------------------------------------------------------------ */

#define CONVERSION(name, from, to)                                         \
    static void name(void *r, const void *x, const void *y, const void *z, \
                     size_t n)                                             \
    {                                                                      \
        (void)y, (void)z;                                                  \
        gpu_cpu_vectors->convert[from][to](r, x, n);                       \
    }
CONVERSION(widen, GPU_F32, GPU_F64)
CONVERSION(narrow, GPU_F64, GPU_F32)
CONVERSION(truths_as_f32, GPU_BOOL, GPU_F32)
CONVERSION(truths_as_f64, GPU_BOOL, GPU_F64)

static int add_step(typing *t, gpu_cpu_step step, gpu_dtype type)
{
    gpu_cpu_plan *plan = t->plan;
    int v = plan->inputs + plan->constants + plan->length;
    plan->code[plan->length++] = step;
    plan->type[v] = (uint8_t)type;
    return v;
}

static int want(typing *t, int v, gpu_dtype type);

/* Its operands are of that type, and so is its result, or truth values. */
static int add_operation(typing *t, const gpu_instruction *code, gpu_dtype type,
                         int gives_truth)
{
    const gpu_cpu_vector *v = gpu_cpu_vectors;
    gpu_cpu_step step = {.op = code->op,
                         .loop =
                             (gives_truth ? v->truth : v->map)[type][code->op],
                         .converts = (uint8_t)gives_truth};
    int arity = gpu_cpu_arity(code->op);
    step.x = arity > 0 ? (uint8_t)want(t, code->x, type) : 0;
    step.y = arity > 1 ? (uint8_t)want(t, code->y, type) : 0;
    step.z = arity > 2 ? (uint8_t)want(t, code->z, type) : 0;
    return add_step(t, step, gives_truth ? GPU_BOOL : type);
}

static int is_truth(const typing *t, int v)
{
    int i = v - first_result(t);
    return i >= 0 && gpu_cpu_is_test(t->p->code[i].op);
}

/* Of v, which is worked out in another type. Truth values are bytes on the
 * way. */
static int add_conversion(typing *t, int v, gpu_dtype type)
{
    gpu_dtype from = is_truth(t, v)    ? GPU_BOOL
                     : type == GPU_F64 ? GPU_F32
                                       : GPU_F64;
    gpu_cpu_step step = {.op = GPU_OP_single,
                         .x = (uint8_t)want(t, v, from),
                         .loop = from == GPU_BOOL  ? type == GPU_F64
                                                         ? truths_as_f64
                                                         : truths_as_f32
                                 : type == GPU_F64 ? widen
                                                   : narrow,
                         .converts = 1};
    return add_step(t, step, type);
}

/* In the type in which it is worked out. */
static int make_result(typing *t, int i, gpu_dtype type)
{
    const gpu_instruction *code = &t->p->code[i];
    const gpu_instruction *rounded = find_rounded(t, code);
    if (code->op != GPU_OP_single)
        return add_operation(t, code, type, 0);
    if (t->fits[code->x])
        return want(t, code->x, type);
    return rounded ? add_operation(t, rounded, type, 0)
                   : add_conversion(t, code->x, type);
}

static int make(typing *t, int v, gpu_dtype type)
{
    int constant = v - t->p->inputs, i = v - first_result(t);
    gpu_dtype own = t->is_narrow[v] ? GPU_F32 : GPU_F64;
    if (i < 0 && constant >= 0)
        return v + (type == GPU_F64 ? t->p->constants : 0);
    if (type == GPU_BOOL)
        return add_operation(t, &t->p->code[i], own, 1);
    if (type != own)
        return add_conversion(t, v, type);
    return i < 0 ? v : make_result(t, i, type);
}

/* The plan's number of value v in that type, after the steps that it takes. */
static int want(typing *t, int v, gpu_dtype type)
{
    if (t->made[v][type] == NOT_MADE)
        t->made[v][type] = (uint8_t)make(t, v, type);
    return t->made[v][type];
}

/* Every constant is there in both types, if it is used. */
static void begin_values(typing *t)
{
    gpu_cpu_plan *plan = t->plan;
    int n = t->p->constants;
    plan->constants = 2 * n;
    plan->length = 0;
    for (int c = 0; c < n; c++) {
        plan->constant[c] = plan->constant[n + c] = t->p->constant[c];
        plan->type[plan->inputs + c] = GPU_F32;
        plan->type[plan->inputs + n + c] = GPU_F64;
    }
    for (int v = 0; v < plan->inputs; v++)
        plan->type[v] = t->is_narrow[v] ? GPU_F32 : GPU_F64;
    memset(t->made, NOT_MADE, sizeof t->made);
}

int gpu_cpu_plan_types(gpu_cpu_plan *plan)
{
    typing t = {.plan = plan, .p = plan->p};
    int any = 0;
    for (int v = 0; v < plan->inputs; v++)
        any |= plan->in[v].data && plan->in[v].dtype == GPU_F32;
    if (plan->compute != GPU_F64 || !any || plan->p->length == 0)
        return 0;
    find_types(&t);
    begin_values(&t);
    int result = first_result(&t) + plan->p->length - 1;
    int is_wide =
        !plan->out.data || plan->out.dtype == GPU_F64 || !t.is_narrow[result];
    plan->result_type = is_wide ? GPU_F64 : GPU_F32;
    plan->result = want(&t, result, plan->result_type);
    return 1;
}
