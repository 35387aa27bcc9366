/* gpu_map: shapes, broadcasting, types and overlaps of elementwise programs,
 * then the backend. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"
#include "tiles.h"

typedef struct shape {
    int ndim;
    int64_t rows, cols;
} shape;

static gpu_status differ(const char *name, const gpu_matrix *a,
                         const gpu_matrix *b)
{
    return gpu_fail(GPU_SHAPE, "%s: shapes differ (%s and %s)", name,
                    gpu_shape_text(a), gpu_shape_text(b));
}

/* The larger of two sizes of which one may be 1; -1 when they do not fit. */
static int64_t common(int64_t a, int64_t b)
{
    return a == b || b == 1 ? a : a == 1 ? b : -1;
}

static gpu_status common_shape(const char *name, const gpu_matrix *const *in,
                               int n, shape *out)
{
    *out = (shape){in[0]->ndim, in[0]->rows, in[0]->cols};
    for (int i = 1; i < n; i++) {
        if (in[i]->ndim != out->ndim)
            return gpu_fail(GPU_SHAPE,
                            "%s: %s and %s: a vector goes only with vectors; "
                            "v:row() and v:col() make matrices",
                            name, gpu_shape_text(in[0]), gpu_shape_text(in[i]));
        int64_t rows = common(out->rows, in[i]->rows);
        int64_t cols = common(out->cols, in[i]->cols);
        int same = out->ndim == 2 || in[i]->rows == out->rows;
        if (rows < 0 || cols < 0 || !same)
            return differ(name, in[0], in[i]);
        out->rows = rows;
        out->cols = cols;
    }
    return GPU_OK;
}

gpu_status gpu_map_shape(const char *name, const gpu_matrix *const *in, int n,
                         gpu_matrix *out)
{
    shape s;
    TRY(common_shape(name, in, n, &s));
    *out = (gpu_matrix){.ndim = s.ndim, .rows = s.rows, .cols = s.cols};
    return GPU_OK;
}

/* m's view with zero strides where it is broadcast to the shape; without data
 * where it is not there, but drawn. */
static gpu_view stretched(const gpu_matrix *m, const shape *s)
{
    return (gpu_view){.data = m->storage->pending ? NULL : gpu_view_of(m).data,
                      .dtype = m->dtype,
                      .rows = s->rows,
                      .cols = s->cols,
                      .row_stride = m->rows == s->rows ? m->row_stride : 0,
                      .col_stride = m->cols == s->cols ? m->col_stride : 0};
}

/* Places must be exact, so programs that use them compute in f64. */
int gpu_uses_places(const gpu_program *p)
{
    for (int i = 0; i < p->length; i++) {
        if (p->code[i].op == GPU_OP_ROW || p->code[i].op == GPU_OP_COL)
            return 1;
    }
    return 0;
}

static gpu_dtype compute_type(const gpu_program *p, const gpu_matrix *const *in)
{
    for (int i = 0; i < p->inputs; i++) {
        if (in[i]->dtype == GPU_F64)
            return GPU_F64;
    }
    return gpu_uses_places(p) ? GPU_F64 : GPU_F32;
}

static int is_test(const gpu_program *p, const gpu_matrix *const *in)
{
    if (p->length == 0)
        return p->inputs > 0 && in[0]->dtype == GPU_BOOL;
    return gpu_op_is_test((gpu_op)p->code[p->length - 1].op);
}

/* Fills views; inputs that overlap the output in another geometry are
 * replaced by copies, which the caller releases. */
static gpu_status take_inputs(const gpu_matrix *const *in, int n,
                              const gpu_matrix *out, const shape *s,
                              gpu_view *views, gpu_matrix *copies)
{
    for (int i = 0; i < n; i++) {
        const gpu_matrix *m = in[i];
        if (out->storage == m->storage && !gpu_same_view(out, m)) {
            TRY(gpu_clone(m, m->dtype, NULL, &copies[i]));
            m = &copies[i];
        }
        views[i] = stretched(m, s);
    }
    return GPU_OK;
}

static double bytes_moved(const gpu_program *p, const gpu_matrix *const *in,
                          const gpu_matrix *out)
{
    double bytes = (double)gpu_bytes(out);
    for (int i = 0; i < p->inputs; i++)
        bytes += gpu_is_pending(in[i]) ? 0 : (double)gpu_bytes(in[i]);
    return bytes;
}

typedef gpu_status creator(gpu_matrix *out, gpu_device *d, gpu_dtype dtype,
                           int ndim, int64_t rows, int64_t cols);

/* Do all operands of this shape lie column by column? */
static int is_turned(const gpu_matrix *const *in, int n, const shape *s)
{
    int found = 0;
    if (s->ndim != 2 || s->rows == 1 || s->cols == 1)
        return 0;
    for (int i = 0; i < n; i++) {
        if (in[i]->rows != s->rows || in[i]->cols != s->cols)
            continue;
        if (in[i]->row_stride != 1 || in[i]->col_stride != s->rows)
            return 0;
        found = 1;
    }
    return found;
}

/* A new result lies as its operands do, so that nothing is turned on the way:
 * A.T + B.T is the transpose of A + B. create: gpu_create, or that of a result
 * that waits. */
static gpu_status create_output(const gpu_matrix *const *in, int inputs,
                                gpu_device *d, gpu_dtype type, const shape *s,
                                creator *create, gpu_matrix *out)
{
    if (!is_turned(in, inputs, s))
        return create(out, d, type, s->ndim, s->rows, s->cols);
    gpu_matrix turned;
    TRY(create(&turned, d, type, 2, s->cols, s->rows));
    gpu_view_transposed(&turned, out);
    gpu_release(&turned);
    return GPU_OK;
}

/* Whether out, which exists, takes a result of shape s, a smaller one being
 * stretched. */
static gpu_status check_output(const char *name, const shape *s,
                               const gpu_matrix *out)
{
    int fits = out->ndim == s->ndim &&
               common(out->rows, s->rows) == out->rows &&
               common(out->cols, s->cols) == out->cols;
    if (fits && (s->ndim == 2 || out->rows == s->rows))
        return GPU_OK;
    gpu_matrix result = {.ndim = s->ndim, .rows = s->rows, .cols = s->cols};
    return gpu_fail(GPU_SHAPE, "%s: the result is %s, out is %s", name,
                    gpu_shape_text(&result), gpu_shape_text(out));
}

static gpu_status fail_places(const char *name, int is_asked)
{
    return gpu_fail(GPU_UNSUPPORTED,
                    "%s: the function asks for the places of elements, so it "
                    "cannot be computed in tiles: %s",
                    name,
                    is_asked ? "leave {device=} away"
                             : "move its operands to one device");
}

/* By op's team. Programs that ask where an element lies cannot be cut. there:
 * see gpu_map_tiles. */
static gpu_status map_through(gpu_operation *op, const gpu_program *p,
                              unsigned there, const gpu_view *in,
                              const gpu_view *to)
{
    if (gpu_uses_places(p))
        return fail_places(op->name, there == 0);
    gpu_begin_operation(op);
    int work = gpu_begin_work("%s %s through %s", op->name,
                              gpu_shape_text(op->result), op->device->name);
    int stage = gpu_begin_stage(gpu_size(op->result));
    gpu_status status = gpu_map_tiles(op->team, p, there, in, to);
    gpu_end_stage(stage);
    gpu_end_work(work);
    return gpu_end_operation(op, status);
}

static gpu_status settle_inputs(const gpu_matrix *const *in, int n)
{
    for (int i = 0; i < n; i++)
        TRY(gpu_settle(in[i]));
    return GPU_OK;
}

/* Which of the operands lie on d: see gpu_map_tiles. */
static unsigned find_there(const gpu_device *d, const gpu_matrix *const *in,
                           int n, const gpu_matrix *out)
{
    unsigned there = 0;
    for (int i = 0; i <= n; i++)
        if ((i < n ? in[i] : out)->storage->device == d)
            there |= 1u << i;
    return there;
}

/* The operation in tiles. */
static gpu_status map_in_tiles(gpu_operation op, const gpu_program *p,
                               const gpu_matrix *const *in,
                               const gpu_matrix *out, const gpu_view *views)
{
    unsigned there = find_there(op.device, in, p->inputs, out);
    gpu_team team = gpu_team_of(op.device, there != 0);
    gpu_view to = gpu_view_of(out);
    op.team = &team;
    return map_through(&op, p, there, views, &to);
}

gpu_status gpu_run_map(const char *name, const gpu_program *p,
                       const gpu_matrix *const *in, gpu_matrix *out)
{
    shape s = {out->ndim, out->rows, out->cols};
    gpu_device *d = out->storage->device, *through = gpu_through(d);
    if (!through)
        through = gpu_meeting_place(in, p->inputs, out);
    if (through && gpu_waits_any(p, in)) /* what is drawn has no tiles */
        TRY(settle_inputs(in, p->inputs));
    gpu_view views[GPU_MAX_INPUTS];
    gpu_matrix copies[GPU_MAX_INPUTS];
    for (int i = 0; i < p->inputs; i++)
        copies[i].storage = NULL;
    gpu_status status = take_inputs(in, p->inputs, out, &s, views, copies);
    if (status == GPU_OK && gpu_size(out) > 0) {
        gpu_view to = gpu_target_of(out);
        gpu_operation op = {
            .name = name,
            .kernel = "map",
            .device = through ? through : d,
            .result = out,
            .writes_all = 1,
            .flops = (double)gpu_size(out) * gpu_program_operations(p),
            .bytes = gpu_wants_bytes(d) ? bytes_moved(p, in, out) : 0};
        status = through ? map_in_tiles(op, p, in, out, views)
                         : RUN_OPERATION(&op, map, p, views, &to);
        if (status == GPU_MEMORY && p->draw &&
            !through) { /* to draw apart: see backend.h */
            gpu_relieve(d);
            status = RUN_OPERATION(&op, map, p, views, &to);
        }
    }
    for (int i = 0; i < p->inputs; i++)
        gpu_release(&copies[i]);
    return status;
}

gpu_status gpu_run_joined(const char *name, const gpu_program *p,
                          const gpu_matrix *const *in,
                          const gpu_matrix *const *out)
{
    const gpu_matrix *first = out[0];
    shape s = {first->ndim, first->rows, first->cols};
    gpu_device *d = first->storage->device;
    gpu_view views[GPU_MAX_INPUTS], to[1 + GPU_MAX_EXTRAS];
    if (gpu_meeting_place(in, p->inputs, first)) /* that is done in tiles */
        return GPU_UNSUPPORTED;
    double bytes = bytes_moved(p, in, first);
    for (int i = 0; i < p->inputs; i++)
        views[i] = stretched(in[i], &s);
    for (int e = 0; e <= p->extras; e++) {
        to[e] = gpu_target_of(out[e]);
        bytes += e > 0 ? (double)gpu_bytes(out[e]) : 0;
    }
    if (!d->backend->joins(d->handle, p, views, to))
        return GPU_UNSUPPORTED;
    gpu_operation op = {.name = name,
                        .kernel = "map",
                        .device = d,
                        .result = first,
                        .writes_all = 1,
                        .flops =
                            (double)gpu_size(first) * gpu_program_operations(p),
                        .bytes = bytes};
    return RUN_OPERATION(&op, map, p, views, to);
}

static gpu_status end_with(gpu_composition *c, gpu_matrix *out)
{
    gpu_status status = gpu_run_map(c->name, &c->p, c->inputs, out);
    gpu_end_composition(c);
    return status;
}

/* Into out, which is new; what waits among the operands becomes part of the
 * program. */
static gpu_status run(const char *name, const gpu_program *p,
                      const gpu_matrix *const *in, gpu_matrix *out)
{
    gpu_composition c;
    if (!gpu_waits_any(p, in)) /* at once: small matrices are many */
        return gpu_run_map(name, p, in, out);
    TRY(gpu_compose(name, p, in, out->rows, out->cols, &c));
    return end_with(&c, out);
}

/* Into out, which others may read. */
static gpu_status run_over(const char *name, const gpu_program *p,
                           const gpu_matrix *const *in, int are_own,
                           gpu_matrix *out)
{
    gpu_composition c;
    if (gpu_meeting_place(in, p->inputs, out))
        TRY(settle_inputs(in, p->inputs));
    if (!gpu_waits_any(p, in)) {
        gpu_device *d = NULL;
        TRY(gpu_check_target(name, out, &d));
        return gpu_run_map(name, p, in, out);
    }
    TRY(gpu_compose_over(name, p, in, are_own, out, &c));
    return end_with(&c, out);
}

static gpu_status run_new(const char *name, const gpu_program *p,
                          const gpu_matrix *const *in, gpu_device *d,
                          gpu_dtype type, const shape *s, gpu_matrix *out)
{
    int meet = gpu_meeting_place(in, p->inputs, NULL) != NULL;
    int waits = !meet && gpu_may_record(p, d, type, s->rows * s->cols);
    creator *create = waits                ? gpu_create_pending
                      : gpu_uses_places(p) ? gpu_create
                                           : gpu_create_anywhere;
    TRY(create_output(in, p->inputs, d, type, s, create, out));
    gpu_pass_home(in, p->inputs, out);
    meet = meet || gpu_meeting_place(in, p->inputs, out);
    gpu_status status = waits  ? gpu_record(name, p, in, out)
                        : meet ? gpu_run_map(name, p, in, out)
                               : run(name, p, in, out);
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

static int is_any_complex(const gpu_program *p, const gpu_matrix *const *in,
                          const gpu_matrix *out)
{
    for (int i = 0; i < p->inputs; i++)
        if (gpu_is_complex(in[i]))
            return 1;
    return out->storage && gpu_is_complex(out);
}

/* What goes through a device in tiles is no part of a program: it has its
 * elements first. */
static gpu_status settle_for_tiles(const gpu_device *d,
                                   const gpu_matrix *const *in, int n)
{
    return gpu_through(d) ? settle_inputs(in, n) : GPU_OK;
}

/* are_own: see gpu_map_over. */
static gpu_status map(const char *name, const gpu_program *p,
                      const gpu_matrix *const *in, int are_own, gpu_matrix *out)
{
    int created = !out->storage;
    gpu_device *d;
    if (is_any_complex(p, in, out))
        return gpu_map_complex(name, p, in, out);
    if (p->inputs == 0 && created)
        return gpu_fail(GPU_ARGUMENT, "%s: no operand and no output", name);
    TRY(gpu_check_meeting(name, in, p->inputs, created ? NULL : out, &d));
    TRY(settle_for_tiles(d, in, p->inputs));
    shape s;
    TRY(common_shape(name, p->inputs ? in : (const gpu_matrix *const[]){out},
                     p->inputs ? p->inputs : 1, &s));
    if (!created)
        TRY(check_output(name, &s, out));
    gpu_dtype of_inputs = compute_type(p, in);
    gpu_program typed = *p;
    if ((!created && out->dtype == GPU_F64) || of_inputs == GPU_F64)
        typed.compute = GPU_F64;
    gpu_program_simplify(&typed);
    return created
               ? run_new(name, &typed, in, d,
                         is_test(&typed, in) ? GPU_BOOL : of_inputs, &s, out)
               : run_over(name, &typed, in, are_own, out);
}

gpu_status gpu_map(const char *name, const gpu_program *p,
                   const gpu_matrix *const *in, gpu_matrix *out)
{
    return map(name, p, in, 0, out);
}

gpu_status gpu_map_over(const char *name, const gpu_program *p,
                        const gpu_matrix *const *in, gpu_matrix *out)
{
    return map(name, p, in, 1, out);
}

/* Truth is what is not 0. */
gpu_status gpu_convert(const gpu_matrix *m, gpu_dtype type, gpu_matrix *out)
{
    gpu_device *d;
    gpu_program p;
    shape s = {m->ndim, m->rows, m->cols};
    if (gpu_is_complex(m) && type == GPU_BOOL)
        return gpu_truth_of("bool", m, out);
    if (gpu_is_complex(m) || gpu_dtype_is_complex(type))
        return gpu_clone(m, type, NULL, out);
    gpu_program_start(&p, 1);
    if (m->dtype == GPU_F64 || type == GPU_F64)
        p.compute = GPU_F64;
    if (type == GPU_BOOL)
        gpu_program_add(&p, GPU_OP_ne, 0, gpu_program_constant(&p, 0), 0);
    out->storage = NULL;
    TRY(gpu_check_waiting("convert", &m, 1, &d));
    return run_new(gpu_dtype_name(type), &p, &m, d, type, &s, out);
}

/* --- reductions' inputs, for reduction.c ---------------------------------- */

/* Has every zero that comes of the program the same sign? */
static int gives_one_zero(const gpu_program *p)
{
    if (p->length == 0)
        return 0;
    gpu_op last = p->code[p->length - 1].op;
    return last == GPU_OP_abs || last == GPU_OP_square || gpu_op_is_test(last);
}

/* Is it the same in whatever order the elements come? Of zeros of both signs a
 * GPU gives the one that it meets first as the extreme, a CPU the first there
 * is. */
static int is_of_any_order(const gpu_device *d, const gpu_program *p)
{
    gpu_reduction kind = p->reduction;
    if (kind == GPU_REDUCE_min || kind == GPU_REDUCE_max)
        return d->is_cpu || gives_one_zero(p);
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax ||
           kind == GPU_REDUCE_any || kind == GPU_REDUCE_all;
}

/* Sums are cut by how the elements lie. Do those of m lie as the values of a
 * that waits will? */
static int lies_alike(const gpu_matrix *m, const gpu_matrix *a)
{
    return m->rows == a->rows && m->cols == a->cols &&
           (a->rows <= 1 || m->row_stride == a->row_stride) &&
           (a->cols <= 1 || m->col_stride == a->col_stride);
}

/* A row or a column that is there for all others, or a number. Backends cut
 * lines by those operands that are whole. */
static int is_stretched(const gpu_matrix *m, const gpu_matrix *a)
{
    return (m->rows == 1 && a->rows > 1) || (m->cols == 1 && a->cols > 1);
}

/* Does what waits lie otherwise than what it is made of? A number lies no way;
 * but where there is nothing that is whole backends ask it as well. */
static int is_unlike(const gpu_matrix *m, const gpu_composition *c, int axis)
{
    int stretched = 0, alike = 0;
    for (int k = 0; k < c->p.inputs && m->storage->pending; k++) {
        const gpu_matrix *in = c->inputs[k];
        if (lies_alike(in, m))
            alike++;
        else if (is_stretched(in, m) && (axis > 0 || gpu_size(in) == 1))
            stretched++;
        else
            return 1;
    }
    return stretched > 0 && alike == 0;
}

/* found: how many there were. */
static gpu_status settle_unlike(const gpu_program *p,
                                const gpu_matrix *const *in,
                                const gpu_composition *c, int axis, int *found)
{
    *found = 0;
    for (int i = 0; i < p->inputs; i++) {
        if (!is_unlike(in[i], c, axis))
            continue;
        ++*found;
        TRY(gpu_settle(in[i]));
    }
    return GPU_OK;
}

/* The spread of a mask's bytes comes from how many are true. */
static int counts_bytes(gpu_reduction kind, const gpu_matrix *m)
{
    return m->dtype == GPU_BOOL &&
           (kind == GPU_REDUCE_var || kind == GPU_REDUCE_std);
}

/* What waits is worked out as a part where the bits are those of one operation
 * after the other. */
static gpu_status compose_reduced(const char *name, const gpu_program *p,
                                  const gpu_matrix *const *in, int axis,
                                  const shape *s, gpu_composition *c)
{
    for (int i = 0; i < p->inputs; i++)
        if (counts_bytes(p->reduction, in[i]))
            TRY(gpu_settle(in[i]));
    TRY(gpu_compose(name, p, in, s->rows, s->cols, c));
    if (!gpu_waits_any(p, in) || is_of_any_order(in[0]->storage->device, &c->p))
        return GPU_OK;
    int found;
    gpu_status status = settle_unlike(p, in, c, axis, &found);
    if (status == GPU_OK && found == 0)
        return GPU_OK;
    gpu_end_composition(c);
    TRY(status);
    return gpu_compose(name, p, in, s->rows, s->cols, c);
}

gpu_status gpu_common_views(const char *name, const gpu_program *p,
                            const gpu_matrix *const *in, int axis,
                            gpu_device **d, gpu_composition *c, gpu_view *views,
                            int *ndim)
{
    shape s;
    gpu_program typed = *p;
    TRY(gpu_check_meeting(name, in, p->inputs, NULL, d));
    TRY(settle_for_tiles(*d, in, p->inputs));
    if (gpu_meeting_place(in, p->inputs, NULL))
        TRY(settle_inputs(in, p->inputs));
    TRY(common_shape(name, in, p->inputs, &s));
    typed.compute = (uint8_t)compute_type(p, in);
    if (typed.reduction == GPU_NO_REDUCTION) /* of several kinds, by and by */
        typed.reduction = GPU_REDUCE_norm;
    gpu_program_simplify(&typed);
    TRY(compose_reduced(name, &typed, in, axis, &s, c));
    c->p.reduction = p->reduction;
    for (int i = 0; i < c->p.inputs; i++)
        views[i] = stretched(&c->in[i], &s);
    *ndim = s.ndim;
    return GPU_OK;
}
