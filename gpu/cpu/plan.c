/* Binds a program to its inputs: the grid, its tiles, and the blocks that
 * hold values. */
#include <string.h>
#include "plan.h"

enum { NO_SLOT = 255 };

static const uint8_t arity[GPU_OPS] = {
#define OP(name, arity, expression, vector, help, example, result) \
    [GPU_OP_##name] = arity,
#define TEST OP
#define REDUCTION(name, primitive, help, example, result)
#include "ops.def"
};

static int64_t length(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

int gpu_cpu_is_uniform(const gpu_view *v)
{
    return v->row_stride == 0 && v->col_stride == 0;
}

static int flattens(const gpu_view *v)
{
    return v->rows == 1 || v->row_stride == v->cols * v->col_stride;
}

static int is_crossed(const gpu_view *v)
{
    return v->rows > 1 && v->cols > 1 && v->row_stride != 0 &&
           length(v->row_stride) < length(v->col_stride);
}

static void read_code(gpu_cpu_plan *plan)
{
    for (int i = 0; i < plan->length; i++) {
        gpu_instruction code = plan->p->code[i];
        code.x = arity[code.op] >= 1 ? code.x : 0;
        code.y = arity[code.op] >= 2 ? code.y : 0;
        code.z = arity[code.op] >= 3 ? code.z : 0;
        plan->code[i] = code;
        plan->loop[i] = gpu_cpu_vectors->map[plan->compute][code.op];
    }
}

static int uses_place(const gpu_cpu_plan *plan)
{
    for (int i = 0; i < plan->length; i++)
        if (plan->code[i].op >= GPU_OP_ROW)
            return 1;
    return 0;
}

static void turn(gpu_cpu_plan *plan)
{
    int64_t rows = plan->rows;
    plan->rows = plan->cols;
    plan->cols = rows;
    plan->turned = !plan->turned;
    for (int i = 0; i < plan->inputs; i++)
        plan->in[i] = gpu_cpu_turned(plan->in[i]);
    plan->out = gpu_cpu_turned(plan->out);
}

/* Rows of the grid should run along memory: the output's if there is one. */
static int should_turn(const gpu_cpu_plan *plan)
{
    if (plan->cols == 1)
        return plan->rows > 1;
    if (plan->out.data)
        return is_crossed(&plan->out);
    for (int i = 0; i < plan->inputs; i++)
        if (!gpu_cpu_is_uniform(&plan->in[i]))
            return is_crossed(&plan->in[i]);
    return 0;
}

static void flatten(gpu_cpu_plan *plan)
{
    int can = plan->rows > 1 && !uses_place(plan) && flattens(&plan->out);
    for (int i = 0; i < plan->inputs; i++)
        can = can && flattens(&plan->in[i]);
    if (!can)
        return;
    int64_t cols = plan->rows * plan->cols;
    for (int i = 0; i < plan->inputs; i++) {
        plan->in[i].rows = 1;
        plan->in[i].cols = cols;
    }
    plan->out.rows = 1;
    plan->out.cols = cols;
    plan->rows = 1;
    plan->cols = cols;
}

/* Lies v so that every tile of it can be used in place? */
static int always_in_place(const gpu_cpu_plan *plan, const gpu_view *v)
{
    if (v->dtype != plan->compute || v->col_stride != 1)
        return 0;
    return plan->tile_rows == 1 ||
           (v->row_stride == plan->cols && plan->tile_cols == plan->cols);
}

static int needs_no_block(const gpu_cpu_plan *plan)
{
    int none = plan->length <= 1 && plan->constants == 0 && plan->rows == 1 &&
               plan->out.data && plan->out.dtype == plan->compute &&
               plan->out.col_stride == 1;
    for (int i = 0; i < plan->inputs; i++)
        none = none && plan->in[i].dtype == plan->compute &&
               plan->in[i].col_stride == 1;
    return none;
}

static void cut_tiles(gpu_cpu_plan *plan)
{
    int64_t block = needs_no_block(plan) ? GPU_CPU_LONG_BLOCK : GPU_CPU_BLOCK;
    int crossed = is_crossed(&plan->out);
    for (int i = 0; i < plan->inputs; i++)
        crossed = crossed || is_crossed(&plan->in[i]);
    if (crossed) {
        plan->tile_rows = gpu_cpu_smaller(plan->rows, GPU_CPU_SQUARE);
        plan->tile_cols = gpu_cpu_smaller(plan->cols, block / plan->tile_rows);
        plan->tile_rows = gpu_cpu_smaller(plan->rows, block / plan->tile_cols);
    } else if (plan->cols <= block) {
        plan->tile_cols = plan->cols;
        plan->tile_rows = gpu_cpu_smaller(plan->rows, block / plan->cols);
    } else {
        int64_t pieces = (plan->cols + block - 1) / block;
        int64_t width = (plan->cols + pieces - 1) / pieces;
        plan->tile_cols = gpu_cpu_smaller((width + 15) / 16 * 16, block);
        plan->tile_rows = 1;
    }
    plan->tiles_across = (plan->cols + plan->tile_cols - 1) / plan->tile_cols;
    plan->tiles = (plan->rows + plan->tile_rows - 1) / plan->tile_rows *
                  plan->tiles_across;
    plan->block = plan->tile_rows * plan->tile_cols;
}

/* Gives a block to every value that needs one. A block is used again after
 * the last use of its value; constants keep theirs for good. */
static void assign_slots(gpu_cpu_plan *plan)
{
    int first_code = plan->inputs + plan->constants;
    int values = first_code + plan->length;
    int8_t last_use[GPU_MAX_VALUES];
    uint8_t unused[GPU_MAX_VALUES];
    int free_slots = 0;
    memset(last_use, -1, (size_t)values);
    for (int i = 0; i < plan->length; i++) {
        last_use[plan->code[i].x] = (int8_t)i;
        last_use[plan->code[i].y] = (int8_t)i;
        last_use[plan->code[i].z] = (int8_t)i;
    }
    plan->slots = 0;
    for (int v = 0; v < first_code; v++) {
        int direct = v < plan->inputs && !gpu_cpu_is_uniform(&plan->in[v]) &&
                     always_in_place(plan, &plan->in[v]);
        plan->slot[v] = direct ? NO_SLOT : (uint8_t)plan->slots++;
    }
    for (int i = 0; i < plan->length; i++) {
        for (int v = 0; v < first_code + i; v++) {
            int lasting = v < first_code && (v >= plan->inputs ||
                                             gpu_cpu_is_uniform(&plan->in[v]));
            if (last_use[v] == i && !lasting && plan->slot[v] != NO_SLOT)
                unused[free_slots++] = plan->slot[v];
        }
        plan->slot[first_code + i] =
            free_slots > 0 ? unused[--free_slots] : (uint8_t)plan->slots++;
    }
}

void gpu_cpu_plan_make(gpu_cpu_plan *plan, const gpu_program *p,
                       const gpu_view *in, const gpu_view *out, int64_t rows,
                       int64_t cols, gpu_cpu_order order)
{
    plan->p = p;
    plan->compute = (gpu_dtype)p->compute;
    plan->inputs = p->inputs;
    plan->constants = p->constants;
    plan->length = p->length;
    for (int i = 0; i < p->inputs; i++)
        plan->in[i] = in[i];
    plan->out = out ? *out : (gpu_view){0, plan->compute, rows, cols, 0, 0};
    plan->rows = rows;
    plan->cols = cols;
    plan->turned = 0;
    read_code(plan);
    if (order == GPU_CPU_TURN || (order == GPU_CPU_ANY && should_turn(plan)) ||
        (order == GPU_CPU_ROW_MAJOR && cols == 1))
        turn(plan);
    if (order >= GPU_CPU_ROW_MAJOR)
        flatten(plan);
    cut_tiles(plan);
    assign_slots(plan);
}
