/* Building elementwise programs, and what each operation is. */
#include "gpu.h"
#include "op_list.h"

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
