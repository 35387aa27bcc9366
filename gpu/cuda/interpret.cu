/* Makes a program ready for the device: drops what the result does not need
 * and gives intermediate values as few slots as their lifetimes allow. */
#include "interpret.h"

enum { NEVER = -1 };

static const uint8_t arities[GPU_OPS] = {
#define OP(name, arity, expression, vector, help, example, result) arity,
#define TEST OP
#define REDUCTION(name, primitive, help, example, result)
#include "ops.def"
    0, /* GPU_OP_ROW */
    0, /* GPU_OP_COL */
};

static void operands_of(const gpu_instruction *c, int values[3])
{
    values[0] = c->x;
    values[1] = c->y;
    values[2] = c->z;
}

/* last[v]: the last needed instruction that reads value v. */
static void find_last_uses(const gpu_program *p, int last[GPU_MAX_VALUES])
{
    int first = p->inputs + p->constants;
    for (int v = 0; v < GPU_MAX_VALUES; v++)
        last[v] = NEVER;
    if (p->length > 0)
        last[first + p->length - 1] = p->length;
    for (int n = p->length - 1; n >= 0; n--) {
        int values[3];
        if (last[first + n] == NEVER)
            continue;
        operands_of(&p->code[n], values);
        for (int o = 0; o < arities[p->code[n].op]; o++)
            if (last[values[o]] == NEVER)
                last[values[o]] = n;
    }
}

static int take_slot(uint64_t *used, int *slots)
{
    int slot = 0;
    while (*used >> slot & 1)
        slot++;
    *used |= (uint64_t)1 << slot;
    if (slot + 1 > *slots)
        *slots = slot + 1;
    return slot;
}

static uint8_t operand_number(const gpu_program *p, int value,
                              const uint8_t slot_of[])
{
    if (value < p->inputs)
        return (uint8_t)value;
    if (value < p->inputs + p->constants)
        return (uint8_t)(FIRST_CONSTANT + value - p->inputs);
    return (uint8_t)(FIRST_SLOT + slot_of[value]);
}

/* One instruction. Its result may take the slot of an operand read for the
 * last time: a thread reads all operands before it writes. */
static void plan_instruction(const gpu_program *p, int n, const int last[],
                             uint8_t slot_of[], uint64_t *used, plan *out)
{
    int first = p->inputs + p->constants, values[3];
    uint8_t numbers[3] = {0, 0, 0};
    plan_step *step = &out->code[out->length++];
    operands_of(&p->code[n], values);
    step->op = p->code[n].op;
    step->arity = arities[step->op];
    for (int o = 0; o < step->arity; o++) {
        numbers[o] = operand_number(p, values[o], slot_of);
        if (values[o] >= first && last[values[o]] == n)
            *used &= ~((uint64_t)1 << slot_of[values[o]]);
    }
    step->x = numbers[0];
    step->y = numbers[1];
    step->z = numbers[2];
    step->to = 0;
    if (n + 1 < p->length)
        step->to = slot_of[first + n] = (uint8_t)take_slot(used, &out->slots);
}

/* tgammaf misses 5 units, lgammaf 6 and beside its roots any number, as
 * LOGADDEXP does (CUDA C++ Programming Guide, mathematical functions). */
static int needs_f64(const gpu_program *p)
{
    for (int n = 0; n < p->length; n++)
        if (p->code[n].op == GPU_OP_gamma || p->code[n].op == GPU_OP_lgamma ||
            p->code[n].op == GPU_OP_logaddexp)
            return 1;
    return 0;
}

void gpu_cuda_plan(const gpu_program *p, plan *out)
{
    int last[GPU_MAX_VALUES];
    uint8_t slot_of[GPU_MAX_VALUES] = {0};
    uint64_t used = 0;
    find_last_uses(p, last);
    out->length = out->slots = 0;
    out->swapped = 0;
    out->wide = 0;
    out->result = operand_number(p, 0, slot_of);
    out->is_f64 = p->compute == GPU_F64 || needs_f64(p);
    for (int v = 0; v < p->constants; v++)
        out->constant[v] =
            p->compute == GPU_F64 ? p->constant[v] : (float)p->constant[v];
    for (int n = 0; n < p->length; n++)
        if (last[p->inputs + p->constants + n] != NEVER)
            plan_instruction(p, n, last, slot_of, &used, out);
}

size_t gpu_cuda_plan_bytes(const plan *p, int threads, size_t type_bytes)
{
    return (size_t)p->slots * ITEMS * (size_t)threads * type_bytes;
}

int gpu_cuda_plan_has_places(const plan *p)
{
    for (int n = 0; n < p->length; n++)
        if (p->code[n].arity == 0)
            return 1;
    return 0;
}
