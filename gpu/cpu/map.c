/* Elementwise programs over any number of elements. */
#include <stdalign.h>
#include "plan.h"

enum { TINY = 64 }; /* elements up to which nothing but the loop is worth it */

static int is_dense(const gpu_view *v, gpu_dtype t)
{
    return v->dtype == t && (v->col_stride == 1 || v->cols == 1) &&
           (v->row_stride == v->cols || v->rows == 1);
}

/* One operation on few elements, all in place. */
static int map_tiny(const gpu_program *p, const gpu_view *in,
                    const gpu_view *out, int64_t n)
{
    gpu_dtype t = (gpu_dtype)p->compute;
    if (p->length != 1 || p->code[0].op >= GPU_OP_ROW || !is_dense(out, t))
        return 0;
    alignas(64) double room[GPU_MAX_CONSTANTS][TINY];
    const void *value[GPU_MAX_VALUES];
    for (int i = 0; i < p->inputs; i++) {
        if (!is_dense(&in[i], t))
            return 0;
        value[i] = in[i].data;
    }
    for (int c = 0; c < p->constants; c++) {
        for (int64_t i = 0; i < n; i++)
            if (t == GPU_F64)
                room[c][i] = p->constant[c];
            else
                ((float *)room[c])[i] = (float)p->constant[c];
        value[p->inputs + c] = room[c];
    }
    const gpu_instruction *c = &p->code[0];
    int known = p->inputs + p->constants;
    gpu_cpu_vectors->map[t][c->op](out->data, value[c->x],
                                   c->y < known ? value[c->y] : 0,
                                   c->z < known ? value[c->z] : 0, (size_t)n);
    return 1;
}

static void map_tile(const gpu_cpu_plan *plan, int64_t number, char *scratch)
{
    gpu_cpu_tile tile = gpu_cpu_plan_tile(plan, number);
    gpu_view to =
        gpu_cpu_part(&plan->out, tile.row, tile.col, tile.rows, tile.cols);
    if (plan->length == 0 && plan->inputs > 0) {
        gpu_view from = gpu_cpu_part(&plan->in[0], tile.row, tile.col,
                                     tile.rows, tile.cols);
        gpu_cpu_convert(&from, &to);
        return;
    }
    if (gpu_cpu_plan_in_place(plan, &to, &tile)) {
        gpu_cpu_plan_run(plan, &tile, scratch, to.data);
        return;
    }
    const void *r = gpu_cpu_plan_run(plan, &tile, scratch, NULL);
    gpu_view from = {(void *)(uintptr_t)r,
                     plan->compute,
                     tile.rows,
                     tile.cols,
                     tile.cols,
                     1};
    gpu_cpu_convert(&from, &to);
}

static gpu_status map_range(void *context, int64_t first, int64_t last)
{
    const gpu_cpu_plan *plan = context;
    alignas(64) char scratch[gpu_cpu_plan_scratch(plan) + 64];
    gpu_cpu_plan_prepare(plan, scratch);
    for (int64_t number = first; number < last; number++) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        map_tile(plan, number, scratch);
    }
    return GPU_OK;
}

gpu_status gpu_cpu_map(void *device, const gpu_program *p, const gpu_view *in,
                       const gpu_view *out)
{
    (void)device;
    int64_t n = out->rows * out->cols;
    if (n == 0 || (n <= TINY && map_tiny(p, in, out, n)))
        return GPU_OK;
    gpu_cpu_plan plan;
    gpu_cpu_plan_make(&plan, p, in, out, out->rows, out->cols, GPU_CPU_ANY);
    return gpu_cpu_parallel(plan.tiles, n, map_range, &plan);
}
