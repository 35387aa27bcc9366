/* Runs a bound program on one tile, instruction by instruction. */
#include <string.h>
#include "plan.h"

static char *slot_of(const gpu_cpu_plan *plan, char *scratch, int value)
{
    size_t size = gpu_cpu_size(plan->compute);
    return scratch + plan->slot[value] * (size_t)plan->block * size;
}

size_t gpu_cpu_plan_scratch(const gpu_cpu_plan *plan)
{
    size_t size = gpu_cpu_size(plan->compute);
    return (size_t)plan->slots * (size_t)plan->block * size;
}

static void fill(gpu_dtype t, void *to, int64_t n, double value)
{
    float *f = to;
    double *d = to;
    if (t == GPU_F64)
        for (int64_t i = 0; i < n; i++)
            d[i] = value;
    else
        for (int64_t i = 0; i < n; i++)
            f[i] = (float)value;
}

void gpu_cpu_plan_prepare(const gpu_cpu_plan *plan, char *scratch)
{
    for (int v = 0; v < plan->inputs; v++) {
        if (!gpu_cpu_is_uniform(&plan->in[v]))
            continue;
        gpu_view to = {slot_of(plan, scratch, v),
                       plan->compute,
                       1,
                       plan->block,
                       plan->block,
                       1};
        gpu_cpu_convert(&plan->in[v], &to);
    }
    for (int c = 0; c < plan->constants; c++)
        fill(plan->compute, slot_of(plan, scratch, plan->inputs + c),
             plan->block, plan->p->constant[c]);
}

gpu_cpu_tile gpu_cpu_plan_tile(const gpu_cpu_plan *plan, int64_t number)
{
    int64_t down = number / plan->tiles_across;
    gpu_cpu_tile t;
    t.row = down * plan->tile_rows;
    t.col = (number - down * plan->tiles_across) * plan->tile_cols;
    t.rows = plan->rows - t.row;
    t.cols = plan->cols - t.col;
    t.rows = t.rows < plan->tile_rows ? t.rows : plan->tile_rows;
    t.cols = t.cols < plan->tile_cols ? t.cols : plan->tile_cols;
    return t;
}

int gpu_cpu_plan_in_place(const gpu_cpu_plan *plan, const gpu_view *v,
                          const gpu_cpu_tile *tile)
{
    return v->dtype == plan->compute && v->col_stride == 1 &&
           (tile->rows == 1 || v->row_stride == tile->cols);
}

/* The 0-based row or column of every element of a tile. */
static void fill_place(const gpu_cpu_plan *plan, const gpu_cpu_tile *tile,
                       int rows, void *to)
{
    size_t size = gpu_cpu_size(plan->compute);
    for (int64_t i = 0; i < tile->rows; i++) {
        char *line = (char *)to + (size_t)(i * tile->cols) * size;
        if (rows) {
            fill(plan->compute, line, tile->cols, (double)(tile->row + i));
            continue;
        }
        for (int64_t j = 0; j < tile->cols; j++)
            if (plan->compute == GPU_F64)
                ((double *)line)[j] = (double)(tile->col + j);
            else
                ((float *)line)[j] = (float)(tile->col + j);
    }
}

static void *load(const gpu_cpu_plan *plan, const gpu_cpu_tile *tile,
                  char *scratch, int v)
{
    if (gpu_cpu_is_uniform(&plan->in[v]))
        return slot_of(plan, scratch, v);
    gpu_view part = gpu_cpu_part(&plan->in[v], tile->row, tile->col, tile->rows,
                                 tile->cols);
    if (gpu_cpu_plan_in_place(plan, &part, tile))
        return part.data;
    gpu_view to = {slot_of(plan, scratch, v),
                   plan->compute,
                   tile->rows,
                   tile->cols,
                   tile->cols,
                   1};
    gpu_cpu_convert(&part, &to);
    return to.data;
}

const void *gpu_cpu_plan_run(const gpu_cpu_plan *plan, const gpu_cpu_tile *tile,
                             char *scratch, void *target)
{
    void *value[GPU_MAX_VALUES];
    int first_code = plan->inputs + plan->constants;
    size_t n = (size_t)(tile->rows * tile->cols);
    for (int v = 0; v < plan->inputs; v++)
        value[v] = load(plan, tile, scratch, v);
    for (int v = plan->inputs; v < first_code; v++)
        value[v] = slot_of(plan, scratch, v);
    for (int i = 0; i < plan->length; i++) {
        const gpu_instruction *c = &plan->code[i];
        int last = i == plan->length - 1;
        void *r =
            last && target ? target : slot_of(plan, scratch, first_code + i);
        if (c->op < GPU_OP_ROW)
            plan->loop[i](r, value[c->x], value[c->y], value[c->z], n);
        else
            fill_place(plan, tile, (c->op == GPU_OP_ROW) != plan->turned, r);
        value[first_code + i] = r;
    }
    if (plan->length > 0)
        return value[first_code + plan->length - 1];
    if (target)
        memcpy(target, value[0], n * gpu_cpu_size(plan->compute));
    return target ? target : value[0];
}
