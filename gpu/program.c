/* Building elementwise programs, and what each operation is. */
#include "gpu.h"
#include "op_list.h"

#include <math.h>

#define OP(name, arity, expression, vector, help, example, result) \
    {#name, arity, 0},
#define TEST(name, arity, expression, vector, help, example, result) \
    {#name, arity, 1},
#define REDUCTION(...)
static const struct {
    const char *name;
    int arity, test;
} ops[GPU_OPS] = {
#include "ops.def"
    {"row", 0, 0},
    {"col", 0, 0},
};

void gpu_program_start(gpu_program *p, int inputs)
{
    p->inputs = (uint8_t)inputs;
    p->constants = p->length = 0;
    p->reduction = GPU_NO_REDUCTION;
    p->compute = GPU_F32;
    p->extras = 0;
    p->draw = NULL;
}

int gpu_program_constant(gpu_program *p, double value)
{
    p->constant[p->constants] = value;
    return p->inputs + p->constants++;
}

int gpu_program_add(gpu_program *p, gpu_op op, int x, int y, int z)
{
    gpu_instruction i = {(uint8_t)op, (uint8_t)x, (uint8_t)y, (uint8_t)z};
    p->code[p->length] = i;
    return p->inputs + p->constants + p->length++;
}

int gpu_program_operations(const gpu_program *p)
{
    int count = 0;
    for (int i = 0; i < p->length; i++)
        count += p->code[i].op != GPU_OP_single;
    return count;
}

const char *gpu_op_name(gpu_op op)
{
    return ops[op].name;
}

int gpu_op_arity(gpu_op op)
{
    return ops[op].arity;
}

int gpu_op_is_test(gpu_op op)
{
    return ops[op].test;
}

/* --- powers that are products and roots -------------------------------------
 */

/* A program that is written anew, and where the values of the old one are. */
typedef struct rewriting {
    gpu_program p;
    int at[GPU_MAX_VALUES];
    int zero, infinity, less; /* constants: 0, and those without end */
} rewriting;

enum { MOST_ADDED = 4 }; /* instructions in place of one */

/* The exponent of an instruction that is a power by a constant of those below,
 * or 0. */
static double short_exponent(const gpu_program *p, const gpu_instruction *i)
{
    static const double exponents[] = {1, 2, 3, -1, 0.5, -0.5};
    int constant = i->y - p->inputs;
    if (i->op != GPU_OP_pow || constant < 0 || constant >= p->constants)
        return 0;
    for (size_t k = 0; k < sizeof exponents / sizeof *exponents; k++)
        if (p->constant[constant] == exponents[k])
            return exponents[k];
    return 0;
}

/* The root as a power is one: of -0 it is 0, of less than any number more than
 * any. */
static int add_root(rewriting *r, int x)
{
    int sum = gpu_program_add(&r->p, GPU_OP_add, x, r->zero, 0);
    int root = gpu_program_add(&r->p, GPU_OP_sqrt, sum, 0, 0);
    int is_less = gpu_program_add(&r->p, GPU_OP_eq, x, r->less, 0);
    return gpu_program_add(&r->p, GPU_OP_where, is_less, r->infinity, root);
}

static int add_power(rewriting *r, int x, int y, double exponent)
{
    gpu_program *p = &r->p;
    int result;
    if (exponent == 1)
        return gpu_program_add(p, GPU_OP_mul, x, y, 0);
    if (exponent == 2 || exponent == 3) {
        result = gpu_program_add(p, GPU_OP_square, x, 0, 0);
        return exponent == 2 ? result
                             : gpu_program_add(p, GPU_OP_mul, result, x, 0);
    }
    result = fabs(exponent) == 0.5 ? add_root(r, x) : x;
    return exponent < 0 ? gpu_program_add(p, GPU_OP_reciprocal, result, 0, 0)
                        : result;
}

/* Adds the constants that are still needed. Returns 0 where there is nothing to
 * rewrite, or no room for it. */
static int take_constants(rewriting *r, const gpu_program *p)
{
    uint8_t is_used[GPU_MAX_VALUES] = {0};
    int found = 0, roots = 0, count = 0;
    for (int i = 0; i < p->length; i++) {
        const gpu_instruction *code = &p->code[i];
        const uint8_t operands[] = {code->x, code->y, code->z};
        double exponent = short_exponent(p, code);
        int arity = exponent != 0 && exponent != 1 ? 1 : gpu_op_arity(code->op);
        found += exponent != 0;
        roots += fabs(exponent) == 0.5;
        for (int k = 0; k < arity; k++)
            is_used[operands[k]] = 1;
    }
    for (int i = 0; i < p->constants; i++)
        count += is_used[p->inputs + i];
    if (found == 0 || p->length + MOST_ADDED * found > GPU_MAX_CODE ||
        count + 3 * (roots > 0) > GPU_MAX_CONSTANTS)
        return 0;
    for (int i = 0; i < p->inputs; i++)
        r->at[i] = i;
    for (int i = p->inputs; i < p->inputs + p->constants; i++)
        if (is_used[i])
            r->at[i] = gpu_program_constant(&r->p, p->constant[i - p->inputs]);
    if (roots > 0) {
        r->zero = gpu_program_constant(&r->p, 0);
        r->infinity = gpu_program_constant(&r->p, INFINITY);
        r->less = gpu_program_constant(&r->p, -INFINITY);
    }
    return 1;
}

static int has_power(const gpu_program *p)
{
    for (int i = 0; i < p->length; i++)
        if (p->code[i].op == GPU_OP_pow)
            return 1;
    return 0;
}

void gpu_program_simplify(gpu_program *p)
{
    if (!has_power(p))
        return;
    rewriting r = {.p = *p};
    r.p.constants = r.p.length = 0;
    if (!take_constants(&r, p))
        return;
    for (int i = 0; i < p->length; i++) {
        const gpu_instruction *old = &p->code[i];
        int arity = gpu_op_arity(old->op);
        int x = arity > 0 ? r.at[old->x] : 0, y = arity > 1 ? r.at[old->y] : 0;
        int z = arity > 2 ? r.at[old->z] : 0;
        double exponent = short_exponent(p, old);
        r.at[p->inputs + p->constants + i] =
            exponent != 0 ? add_power(&r, x, y, exponent)
                          : gpu_program_add(&r.p, old->op, x, y, z);
    }
    *p = r.p;
}
