/* Elementwise programs: bound to their inputs (the grid, its tiles, the blocks
 * that hold values), run tile by tile, and the entry of the table. */
#include <stdalign.h>
#include <string.h>
#include "op_list.h"
#include "plan.h"

enum { NO_SLOT = 255 };

static const uint8_t arity[GPU_OPS] = {
#define OP(name, arity, expression, vector, help, example, result) \
    [GPU_OP_##name] = arity,
#define TEST OP
#define REDUCTION(...)
#include "ops.def"
};

static const uint8_t is_test[GPU_OPS] = {
#define OP(...)
#define TEST(name, ...) [GPU_OP_##name] = 1,
#define REDUCTION(...)
#include "ops.def"
};

int gpu_cpu_arity(int op)
{
    return arity[op];
}

int gpu_cpu_is_test(int op)
{
    return is_test[op];
}

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

/* All in the compute type. */
static void read_code(gpu_cpu_plan *plan)
{
    const gpu_program *p = plan->p;
    int values = p->inputs + p->constants + p->length;
    plan->constants = p->constants;
    plan->length = p->length;
    for (int i = 0; i < plan->length; i++) {
        gpu_instruction code = p->code[i];
        plan->code[i] = (gpu_cpu_step){
            .op = code.op,
            .x = arity[code.op] >= 1 ? code.x : 0,
            .y = arity[code.op] >= 2 ? code.y : 0,
            .z = arity[code.op] >= 3 ? code.z : 0,
            .loop = gpu_cpu_vectors->map[plan->compute][code.op]};
    }
    memcpy(plan->constant, p->constant,
           (size_t)p->constants * sizeof *plan->constant);
    memset(plan->type, (int)plan->compute, (size_t)values);
    plan->result = p->length > 0 ? values - 1 : 0;
    plan->result_type = plan->compute;
}

/* Are the program's results bytes of the output, by a loop of their own? */
static void find_truth(gpu_cpu_plan *plan)
{
    plan->truth = NULL;
    if (plan->length > 0 && plan->out.data && plan->out.dtype == GPU_BOOL)
        plan->truth =
            gpu_cpu_vectors
                ->truth[plan->result_type][plan->code[plan->length - 1].op];
}

static gpu_dtype target_type(const gpu_cpu_plan *plan)
{
    return plan->truth ? GPU_BOOL : plan->result_type;
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

/* Lies the input so that every tile of it can be used in place? */
static int always_in_place(const gpu_cpu_plan *plan, int input)
{
    const gpu_view *v = &plan->in[input];
    if (v->dtype != plan->type[input] || v->col_stride != 1 || !v->data)
        return 0;
    return plan->tile_rows == 1 ||
           (v->row_stride == plan->cols && plan->tile_cols == plan->cols);
}

static int needs_no_block(const gpu_cpu_plan *plan)
{
    int none = !plan->is_mixed && plan->length <= 1 && plan->constants == 0 &&
               plan->rows == 1 && plan->out.data &&
               plan->out.dtype == target_type(plan) &&
               plan->out.col_stride == 1;
    for (int i = 0; i < plan->inputs; i++)
        none = none && plan->in[i].dtype == plan->compute &&
               plan->in[i].col_stride == 1 && plan->in[i].data;
    return none;
}

enum { SIDE = 8 }; /* rows that are turned at a time */

static void cut_tiles(gpu_cpu_plan *plan)
{
    int64_t block = needs_no_block(plan) ? GPU_CPU_LONG_BLOCK : GPU_CPU_BLOCK;
    int crossed = is_crossed(&plan->out);
    for (int i = 0; i < plan->inputs; i++)
        crossed = crossed || is_crossed(&plan->in[i]);
    int64_t narrow = block / plan->cols / SIDE * SIDE;
    if (crossed && plan->length > 0 && plan->out.data && narrow > 0) {
        plan->tile_cols = plan->cols; /* other operands are used in place */
        plan->tile_rows = gpu_cpu_smaller(plan->rows, narrow);
    } else if (crossed) {
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

/* Is it the same in every tile: one value, or a row for all rows, of which a
 * tile has the whole? */
static int stays(const gpu_cpu_plan *plan, int input)
{
    const gpu_view *v = &plan->in[input];
    return gpu_cpu_is_uniform(v) || (v->row_stride == 0 && plan->rows > 1 &&
                                     plan->tile_cols == plan->cols);
}

static uint8_t take_slot(gpu_cpu_plan *plan, const uint8_t unused[],
                         int *free_slots)
{
    return *free_slots > 0 ? unused[--*free_slots] : (uint8_t)plan->slots++;
}

/* Gives a block to every value that needs one. A block is used again after
 * the last use of its value; constants keep theirs for good. */
static void assign_slots(gpu_cpu_plan *plan)
{
    int first_code = plan->inputs + plan->constants;
    int values = first_code + plan->length;
    int8_t last_use[GPU_CPU_VALUES];
    uint8_t unused[GPU_CPU_VALUES];
    int free_slots = 0;
    memset(last_use, -1, (size_t)values);
    for (int i = 0; i < plan->length; i++) {
        last_use[plan->code[i].x] = (int8_t)i;
        last_use[plan->code[i].y] = (int8_t)i;
        last_use[plan->code[i].z] = (int8_t)i;
    }
    plan->slots = 0;
    for (int v = 0; v < first_code; v++) {
        int direct =
            v < plan->inputs && !stays(plan, v) && always_in_place(plan, v);
        int idle = v >= plan->inputs && last_use[v] < 0 && v != plan->result;
        plan->slot[v] = direct || idle ? NO_SLOT : (uint8_t)plan->slots++;
    }
    for (int i = 0; i < plan->length; i++) {
        int converts = plan->code[i].converts; /* not where its operand lies */
        if (converts)
            plan->slot[first_code + i] = take_slot(plan, unused, &free_slots);
        for (int v = 0; v < first_code + i; v++) {
            int lasting =
                v < first_code && (v >= plan->inputs || stays(plan, v));
            if (last_use[v] == i && !lasting && plan->slot[v] != NO_SLOT)
                unused[free_slots++] = plan->slot[v];
        }
        if (!converts)
            plan->slot[first_code + i] = take_slot(plan, unused, &free_slots);
    }
}

void gpu_cpu_plan_make(gpu_cpu_plan *plan, const gpu_program *p,
                       const gpu_view *in, const gpu_view *out, int64_t rows,
                       int64_t cols, gpu_cpu_order order)
{
    plan->p = p;
    plan->compute = (gpu_dtype)p->compute;
    plan->inputs = p->inputs;
    for (int i = 0; i < p->inputs; i++)
        plan->in[i] = in[i];
    plan->out = out ? *out : (gpu_view){0, plan->compute, rows, cols, 0, 0};
    plan->rows = rows;
    plan->cols = cols;
    plan->turned = 0;
    plan->is_mixed = gpu_cpu_plan_types(plan);
    if (!plan->is_mixed)
        read_code(plan);
    find_truth(plan);
    if (order == GPU_CPU_TURN || (order == GPU_CPU_ANY && should_turn(plan)) ||
        (order == GPU_CPU_ROW_MAJOR && cols == 1))
        turn(plan);
    if (order >= GPU_CPU_ROW_MAJOR)
        flatten(plan);
    cut_tiles(plan);
    assign_slots(plan);
}

/* --- tiles ------------------------------------------------------------------
 * A bound program on one tile, instruction by instruction. */

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
        if (!stays(plan, v))
            continue;
        gpu_view to = {slot_of(plan, scratch, v),
                       (gpu_dtype)plan->type[v],
                       1,
                       plan->block,
                       plan->block,
                       1};
        gpu_view from = plan->in[v];
        if (!gpu_cpu_is_uniform(&from)) {
            from.rows = to.rows = plan->tile_rows;
            to.cols = to.row_stride = plan->tile_cols;
        }
        gpu_cpu_convert(&from, &to);
    }
    for (int c = 0; c < plan->constants; c++) {
        int v = plan->inputs + c;
        if (plan->slot[v] != NO_SLOT)
            fill((gpu_dtype)plan->type[v], slot_of(plan, scratch, v),
                 plan->block, plan->constant[c]);
    }
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

static int has_no_gaps(const gpu_view *v, const gpu_cpu_tile *tile)
{
    return v->col_stride == 1 &&
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

/* A column's elements into a tile of that width. */
static void spread(gpu_dtype t, const void *run, int64_t n, int64_t width,
                   void *to)
{
    for (int64_t i = 0; i < n; i++)
        if (t == GPU_F64)
            ((double *)to)[i * width] = ((const double *)run)[i];
        else
            ((float *)to)[i * width] = ((const float *)run)[i];
}

/* A tile of random numbers, which lie row by row, or column by column. */
static void *draw(const gpu_cpu_plan *plan, const gpu_cpu_tile *tile,
                  char *scratch, int v)
{
    const gpu_view *in = &plan->in[v];
    const gpu_random *r = &plan->p->draw[v];
    gpu_dtype t = plan->compute;
    size_t size = gpu_cpu_size(t);
    char *to = slot_of(plan, scratch, v);
    int64_t at = tile->row * in->row_stride + tile->col * in->col_stride;
    if (in->col_stride == 1) {
        int flat = tile->rows == 1 || in->row_stride == tile->cols;
        int64_t runs = flat ? 1 : tile->rows;
        int64_t n = tile->rows * tile->cols / runs;
        for (int64_t i = 0; i < runs; i++)
            gpu_draw(r, t, at + i * in->row_stride, n,
                     to + (size_t)(i * n) * size);
        return to;
    }
    double run[GPU_CPU_BLOCK];
    for (int64_t j = 0; j < tile->cols; j++) {
        gpu_draw(r, t, at + j * in->col_stride, tile->rows, run);
        spread(t, run, tile->rows, tile->cols, to + (size_t)j * size);
    }
    return to;
}

static void *load(const gpu_cpu_plan *plan, const gpu_cpu_tile *tile,
                  char *scratch, int v)
{
    if (!plan->in[v].data)
        return draw(plan, tile, scratch, v);
    if (stays(plan, v))
        return slot_of(plan, scratch, v);
    gpu_view part = gpu_cpu_part(&plan->in[v], tile->row, tile->col, tile->rows,
                                 tile->cols);
    if (part.dtype == plan->type[v] && has_no_gaps(&part, tile))
        return part.data;
    gpu_view to = {slot_of(plan, scratch, v),
                   (gpu_dtype)plan->type[v],
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
    void *value[GPU_CPU_VALUES];
    int first_code = plan->inputs + plan->constants;
    size_t n = (size_t)(tile->rows * tile->cols);
    for (int v = 0; v < plan->inputs; v++)
        value[v] = load(plan, tile, scratch, v);
    for (int v = plan->inputs; v < first_code; v++)
        value[v] = plan->slot[v] != NO_SLOT ? slot_of(plan, scratch, v) : NULL;
    for (int i = 0; i < plan->length; i++) {
        const gpu_cpu_step *c = &plan->code[i];
        int last = i == plan->length - 1;
        void *r =
            last && target ? target : slot_of(plan, scratch, first_code + i);
        if (last && target && plan->truth)
            plan->truth(r, value[c->x], value[c->y], value[c->z], n);
        else if (c->op < GPU_OP_ROW)
            c->loop(r, value[c->x], value[c->y], value[c->z], n);
        else
            fill_place(plan, tile, (c->op == GPU_OP_ROW) != plan->turned, r);
        value[first_code + i] = r;
    }
    void *result = value[plan->result];
    if (!target || (plan->length > 0 && result == target))
        return result;
    return memcpy(target, result, n * gpu_cpu_size(plan->result_type));
}

/* --- the entry ------------------------------------------------------------ */

enum { TINY = 512 }; /* elements up to which nothing but the loop is worth it */

static int is_dense(const gpu_view *v, gpu_dtype t)
{
    return v->dtype == t && (v->col_stride == 1 || v->cols == 1) &&
           (v->row_stride == v->cols || v->rows == 1);
}

/* A copy of few elements. */
static int copy_tiny(const gpu_program *p, const gpu_view *in,
                     const gpu_view *out)
{
    if (p->length > 0 || p->inputs != 1 || !in->data)
        return 0;
    gpu_cpu_convert(in, out);
    return 1;
}

/* One operation on few elements, all in place. */
static int map_tiny(const gpu_program *p, const gpu_view *in,
                    const gpu_view *out, int64_t n)
{
    gpu_dtype t = (gpu_dtype)p->compute;
    if (p->length != 1 || p->code[0].op >= GPU_OP_ROW)
        return 0;
    const gpu_instruction *c = &p->code[0];
    gpu_cpu_loop *loop = out->dtype == GPU_BOOL
                             ? gpu_cpu_vectors->truth[t][c->op]
                             : gpu_cpu_vectors->map[t][c->op];
    if (!loop || !is_dense(out, out->dtype == GPU_BOOL ? GPU_BOOL : t))
        return 0;
    alignas(64) double room[GPU_MAX_CONSTANTS][TINY];
    const void *value[GPU_MAX_VALUES];
    for (int i = 0; i < p->inputs; i++) {
        if (!in[i].data || !is_dense(&in[i], t))
            return 0;
        value[i] = in[i].data;
    }
    for (int i = 0; i < p->constants; i++) {
        fill(t, room[i], n, p->constant[i]);
        value[p->inputs + i] = room[i];
    }
    int known = p->inputs + p->constants;
    loop(out->data, value[c->x], c->y < known ? value[c->y] : 0,
         c->z < known ? value[c->z] : 0, (size_t)n);
    return 1;
}

/* Row i of a value; NULL of what the operation has not. */
static const void *operand_at(const char *const x[], const int64_t step[],
                              int v, int64_t i)
{
    return x[v] ? x[v] + i * step[v] : NULL;
}

/* One operation row by row, where operands or the result lie in rows of longer
 * ones: those are used in place, which a whole tile of them could not be. */
static int map_rows(const gpu_cpu_plan *plan, const gpu_cpu_tile *tile,
                    char *scratch, const gpu_view *to)
{
    const gpu_cpu_step *c = &plan->code[0];
    const char *x[GPU_CPU_VALUES];
    int64_t step[GPU_CPU_VALUES];
    int known = plan->inputs + plan->constants;
    if (plan->length != 1 || c->op >= GPU_OP_ROW || c->converts ||
        tile->rows == 1 || to->dtype != target_type(plan) ||
        to->col_stride != 1)
        return 0;
    for (int v = 0; v < plan->inputs; v++) {
        const gpu_view *in = &plan->in[v];
        gpu_dtype t = (gpu_dtype)plan->type[v];
        int is_in_place = in->data && in->dtype == t && in->col_stride == 1 &&
                          !stays(plan, v);
        gpu_view part =
            gpu_cpu_part(in, tile->row, tile->col, tile->rows, tile->cols);
        x[v] = is_in_place ? part.data : load(plan, tile, scratch, v);
        step[v] = (is_in_place ? in->row_stride : tile->cols) *
                  (int64_t)gpu_cpu_size(t);
    }
    for (int v = plan->inputs; v < known; v++) {
        x[v] = plan->slot[v] != NO_SLOT ? slot_of(plan, scratch, v) : NULL;
        step[v] = 0;
    }
    gpu_cpu_loop *loop = plan->truth ? plan->truth : c->loop;
    int64_t r_step = to->row_stride * (int64_t)gpu_cpu_size(to->dtype);
    for (int64_t i = 0; i < tile->rows; i++)
        loop((char *)to->data + i * r_step, operand_at(x, step, c->x, i),
             operand_at(x, step, c->y, i), operand_at(x, step, c->z, i),
             (size_t)tile->cols);
    return 1;
}

static void map_tile(const gpu_cpu_plan *plan, int64_t number, char *scratch)
{
    gpu_cpu_tile tile = gpu_cpu_plan_tile(plan, number);
    gpu_view to =
        gpu_cpu_part(&plan->out, tile.row, tile.col, tile.rows, tile.cols);
    if (plan->p->length == 0 && plan->inputs > 0 && plan->in[0].data) {
        gpu_view from = gpu_cpu_part(&plan->in[0], tile.row, tile.col,
                                     tile.rows, tile.cols);
        gpu_cpu_convert(&from, &to);
        return;
    }
    if (to.dtype == target_type(plan) && has_no_gaps(&to, &tile)) {
        gpu_cpu_plan_run(plan, &tile, scratch, to.data);
        return;
    }
    if (map_rows(plan, &tile, scratch, &to))
        return;
    const void *r = gpu_cpu_plan_run(plan, &tile, scratch, NULL);
    gpu_view from = {(void *)(uintptr_t)r,
                     plan->result_type,
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

/* The one constant, everywhere. */
static int fill_tiny(const gpu_program *p, const gpu_view *out)
{
    gpu_view from = {
        (void *)(uintptr_t)p->constant, GPU_F64, out->rows, out->cols, 0, 0};
    if (p->length > 0 || p->inputs > 0)
        return 0;
    if (out->dtype != GPU_BOOL && is_dense(out, out->dtype))
        fill(out->dtype, out->data, out->rows * out->cols, p->constant[0]);
    else
        gpu_cpu_convert(&from, out);
    return 1;
}

gpu_status gpu_cpu_map(void *device, const gpu_program *p, const gpu_view *in,
                       const gpu_view *out)
{
    (void)device;
    int64_t n = out->rows * out->cols;
    if (n == 0 || (n <= TINY && (map_tiny(p, in, out, n) || fill_tiny(p, out) ||
                                 copy_tiny(p, in, out))))
        return GPU_OK;
    gpu_cpu_plan plan;
    gpu_cpu_plan_make(&plan, p, in, out, out->rows, out->cols, GPU_CPU_ANY);
    return gpu_cpu_parallel(plan.tiles, n, map_range, &plan);
}
