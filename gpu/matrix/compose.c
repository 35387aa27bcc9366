/* Of an elementwise program, and what waits among its operands, one program
 * (pending.c tells why): what is gathered of it, what is better settled first,
 * and what a write in place may take along. */
#include "op_rounding.h"
#include "pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one type for all parts --------------------------------------------------
 * A program computes in one type, and one in f64 has parts in f32 to the bit:
 * see op_rounding.h. What has other bits in f64 ends a part.
 *
 * The other way round f64 is read as f32 by a program in f32, and its results
 * are written as f64: conversions at either end of it. */

/* Roundings from which on a GPU takes longer for them than for a pass of its
 * own in f32. A CPU has none of them: see plan_types.c. */
enum { MOST_ROUNDINGS = 6 };

static int most_roundings(const gpu_device *d)
{
    return d->is_cpu ? GPU_NEVER_WIDE - 1 : MOST_ROUNDINGS;
}

/* Does the program have parts in f32, and is in f64 itself? */
static int is_single(const gpu_gathering *g, const gpu_program *p)
{
    return g->compute == GPU_F64 && p->compute == GPU_F32;
}

static int is_quotient(const gpu_instruction *code)
{
    return gpu_op_in_f64(code->op) == GPU_QUOTIENT_DOWN;
}

static int is_rounded(const gpu_instruction *code)
{
    return gpu_op_in_f64(code->op) == GPU_ROUNDED || is_quotient(code);
}

/* Instructions beside its own. */
static int count_added(const gpu_program *p)
{
    int count = 0;
    for (int i = 0; i < p->length; i++)
        count += is_rounded(&p->code[i]) + is_quotient(&p->code[i]);
    return count;
}

/* Its value is f32, rounded by nothing but its being written. */
static int is_rounded_result(const gpu_pending *n)
{
    return n->p.compute == GPU_F64 && n->out.dtype == GPU_F32;
}

int gpu_count_roundings(const gpu_program *p, const gpu_matrix *const *in)
{
    int count = 0;
    for (int i = 0; i < p->length; i++) {
        if (gpu_op_in_f64(p->code[i].op) == GPU_OTHER_BITS)
            return GPU_NEVER_WIDE;
        count += is_rounded(&p->code[i]);
    }
    for (int i = 0; i < p->inputs; i++)
        if (pending_of(in[i]) && pending_of(in[i])->p.compute == GPU_F32)
            count += pending_of(in[i])->roundings;
    return count < GPU_NEVER_WIDE ? count : GPU_NEVER_WIDE;
}

/* Can n's instructions be among those in g's type? */
static int has_type(const gpu_gathering *g, const gpu_pending *n)
{
    int converts = n->p.length == 0 && !n->is_drawn && !n->product.run;
    if (g->compute == n->p.compute)
        return 1;
    if (g->compute == GPU_F64)
        return n->roundings <= most_roundings(n->out.storage->device);
    return g->narrows && converts && n->out.dtype == GPU_F32 &&
           !pending_of(&n->in[0]);
}

/* --- gathering ------------------------------------------------------------ */

static void gather_program(gpu_gathering *g, const gpu_program *p,
                           const gpu_matrix *const *in);

/* Is m, an operand, of the same elements, in a type that goes with the rest? */
static int fits_in(const gpu_gathering *g, const gpu_matrix *m)
{
    const gpu_pending *n = pending_of(m);
    return n && !g->is_alone && has_type(g, n) && (!n->is_drawn || g->draws) &&
           n->out.rows == g->rows && n->out.cols == g->cols &&
           m->rows == g->rows && m->cols == g->cols &&
           gpu_same_view(m, &n->out);
}

/* Can it be worked out as a part? */
static int can_be_part(const gpu_gathering *g, const gpu_matrix *m)
{
    return fits_in(g, m) && !pending_of(m)->product.run;
}

/* Is it a product, and can it be taken in, beside none but itself? */
static int can_be_product(const gpu_gathering *g, const gpu_matrix *m)
{
    return g->takes_product && fits_in(g, m) && pending_of(m)->product.run &&
           (!g->product || g->product == pending_of(m));
}

int gpu_count_reads(const gpu_pending *n, const gpu_storage *s)
{
    int count = 0;
    for (int i = 0; i < n->p.inputs; i++)
        count += n->in[i].storage == s;
    return count;
}

void gpu_operands_of(const gpu_pending *n, const gpu_matrix **in)
{
    for (int i = 0; i < n->p.inputs; i++)
        in[i] = &n->in[i];
}

int gpu_find_node(const gpu_gathering *g, const gpu_pending *n)
{
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i] == n)
            return i;
    return -1;
}

int gpu_find_input(const gpu_gathering *g, const gpu_matrix *m)
{
    for (int i = 0; i < g->inputs; i++)
        if (g->c->in[i].dtype == m->dtype && gpu_same_view(&g->c->in[i], m))
            return i;
    return -1;
}

static int find_constant(const gpu_gathering *g, double value)
{
    for (int i = 0; i < g->constants; i++)
        if (memcmp(&g->constant[i], &value, sizeof value) == 0)
            return i;
    return -1;
}

static void add_input(gpu_gathering *g, const gpu_matrix *m)
{
    g->fits = g->fits && g->inputs < GPU_MAX_INPUTS;
    if (g->fits)
        g->c->in[g->inputs++] = *m;
}

void gpu_gather_node(gpu_gathering *g, gpu_pending *n)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    int at = gpu_find_node(g, n);
    if (at >= 0) {
        g->reads[at]++;
        return;
    }
    gpu_operands_of(n, in);
    if (n->is_drawn)
        add_input(g, &n->out);
    else
        gather_program(g, &n->p, in);
    g->length += g->compute == GPU_F64 && is_rounded_result(n);
    g->fits = g->fits && g->nodes < GPU_MOST_NODES;
    if (!g->fits)
        return;
    g->reads[g->nodes] = 1;
    g->node[g->nodes++] = n;
}

static void gather_input(gpu_gathering *g, const gpu_matrix *m)
{
    if (can_be_part(g, m)) {
        gpu_gather_node(g, pending_of(m));
        return;
    }
    int is_product = can_be_product(g, m);
    if (is_product) {
        g->product = pending_of(m);
        g->product_reads++;
    }
    if (gpu_find_input(g, m) >= 0)
        return;
    if (pending_of(m) && !is_product) {
        g->fits = 0;
        g->misfit = m->storage;
        return;
    }
    add_input(g, m);
}

/* A constant as the program takes it. */
static double constant_of(const gpu_gathering *g, const gpu_program *p, int i)
{
    return is_single(g, p) ? (double)(float)p->constant[i] : p->constant[i];
}

static void gather_program(gpu_gathering *g, const gpu_program *p,
                           const gpu_matrix *const *in)
{
    g->length += p->length + (is_single(g, p) ? count_added(p) : 0);
    g->fits = g->fits && g->length <= g->most_code;
    for (int i = 0; i < p->inputs && g->fits; i++)
        gather_input(g, in[i]);
    for (int i = 0; i < p->constants && g->fits; i++) {
        double value = constant_of(g, p, i);
        if (find_constant(g, value) >= 0)
            continue;
        g->fits = g->constants < g->most_constants;
        if (g->fits)
            g->constant[g->constants++] = value;
    }
}

/* gamma, lgamma and logaddexp of f32 are worked out in f64 on some devices, and
 * with them the whole program. */
int gpu_is_alone(const gpu_program *p)
{
    for (int i = 0; i < p->length && p->compute == GPU_F32; i++)
        if (p->code[i].op == GPU_OP_gamma || p->code[i].op == GPU_OP_lgamma ||
            p->code[i].op == GPU_OP_logaddexp)
            return 1;
    return 0;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

gpu_gathering gpu_begin_gathering(const gpu_program *p, gpu_dtype compute,
                                  const gpu_matrix *const *in, int64_t rows,
                                  int64_t cols, gpu_composition *c)
{
    gpu_device *d = p->inputs > 0 ? in[0]->storage->device : NULL;
    return (gpu_gathering){
        .c = c,
        .rows = rows,
        .cols = cols,
        .compute = (uint8_t)compute,
        .draws = d && d->backend->draws && p->reduction == GPU_NO_REDUCTION,
        .narrows = p->reduction == GPU_NO_REDUCTION,
        .is_alone = gpu_is_alone(p),
        .most_code = larger(p->length, GPU_MAX_CODE - GPU_SPARE),
        .most_constants = larger(p->constants, GPU_MAX_CONSTANTS - GPU_SPARE),
        .fits = 1};
}

static int narrows_any(const gpu_gathering *g)
{
    for (int i = 0; i < g->inputs; i++)
        if (g->c->in[i].dtype == GPU_F64)
            return 1;
    return 0;
}

/* In that type. What only converts has no rounding in it but that of its
 * result. */
static gpu_gathering gather_in(gpu_dtype compute, const gpu_program *p,
                               const gpu_matrix *const *in, int64_t rows,
                               int64_t cols, int takes_product,
                               gpu_composition *c)
{
    gpu_gathering g = gpu_begin_gathering(p, compute, in, rows, cols, c);
    g.takes_product = takes_product;
    gather_program(&g, p, in);
    if (compute == GPU_F32 && g.length == 0 &&
        (p->compute == GPU_F64 || narrows_any(&g)))
        g.fits = 0;
    return g;
}

/* Is the reduction's result the same in both types? Whether there is any, and
 * what is made of truth values, of which sums are exact. */
static int is_of_both(const gpu_program *p, const gpu_matrix *const *in)
{
    for (int i = 0; i < p->inputs; i++)
        if (p->length > 0 || in[i]->dtype != GPU_BOOL)
            return p->reduction == GPU_REDUCE_any ||
                   p->reduction == GPU_REDUCE_all;
    switch (p->reduction) {
    case GPU_REDUCE_sum:
    case GPU_REDUCE_mean:
    case GPU_REDUCE_prod:
    case GPU_REDUCE_min:
    case GPU_REDUCE_max:
    case GPU_REDUCE_argmin:
    case GPU_REDUCE_argmax:
    case GPU_REDUCE_any:
    case GPU_REDUCE_all:
        return 1;
    default:
        return 0;
    }
}

/* In another type than the program's own, where its results are the same: what
 * only converts in f32, anything in f64 that need not be rounded often. */
static int may_compute_in(gpu_dtype compute, const gpu_program *p,
                          const gpu_matrix *const *in)
{
    if (p->reduction != GPU_NO_REDUCTION &&
        (compute == GPU_F32 || !is_of_both(p, in)))
        return 0;
    return compute == GPU_F32 ? p->length == 0
                              : gpu_count_roundings(p, in) <=
                                    most_roundings(in[0]->storage->device);
}

gpu_gathering gpu_gather_operands(const gpu_program *p,
                                  const gpu_matrix *const *in, int64_t rows,
                                  int64_t cols, int takes_product,
                                  gpu_composition *c)
{
    gpu_dtype own = (gpu_dtype)p->compute;
    gpu_dtype other = own == GPU_F32 ? GPU_F64 : GPU_F32;
    int may = gpu_waits_any(p, in) && may_compute_in(other, p, in);
    gpu_gathering g;
    if (may && other == GPU_F32) { /* f32's arithmetic takes less time */
        g = gather_in(other, p, in, rows, cols, takes_product, c);
        if (g.fits)
            return g;
    }
    g = gather_in(own, p, in, rows, cols, takes_product, c);
    if (g.fits || !may || other == GPU_F32 || !g.misfit)
        return g;
    gpu_gathering wide = gather_in(other, p, in, rows, cols, takes_product, c);
    return wide.fits ? wide : g;
}

static gpu_gathering gather(const gpu_program *p, const gpu_matrix *const *in,
                            int64_t rows, int64_t cols, gpu_composition *c)
{
    return gpu_gather_operands(p, in, rows, cols, 0, c);
}

gpu_gathering gpu_gather_waiting(const gpu_pending *n, gpu_composition *c)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    gpu_operands_of(n, in);
    return gpu_gather_operands(&n->p, in, n->out.rows, n->out.cols, 1, c);
}

/* Rounds that value to f32. */
static int emit_single(gpu_program *to, int value)
{
    return gpu_program_add(to, GPU_OP_single, value, 0, 0);
}

/* Adds p's instructions, and returns the number of its result. is_written: it
 * is that of the whole, and rounded by its being written as f32. */
static int emit(const gpu_gathering *g, const gpu_program *p,
                const gpu_matrix *const *in, int is_written)
{
    gpu_program *to = &g->c->p;
    int value[GPU_MAX_VALUES], n = 0;
    for (int i = 0; i < p->inputs; i++)
        value[n++] = can_be_part(g, in[i])
                         ? g->value[gpu_find_node(g, pending_of(in[i]))]
                         : gpu_find_input(g, in[i]);
    for (int i = 0; i < p->constants; i++)
        value[n++] = g->inputs + find_constant(g, constant_of(g, p, i));
    for (int i = 0; i < p->length; i++) {
        const gpu_instruction *code = &p->code[i];
        int arity = gpu_op_arity(code->op);
        gpu_in_f64 way = is_single(g, p) ? gpu_op_in_f64(code->op) : GPU_EXACT;
        int result = gpu_program_add(
            to, way == GPU_QUOTIENT_DOWN ? GPU_OP_div : code->op,
            arity > 0 ? value[code->x] : 0, arity > 1 ? value[code->y] : 0,
            arity > 2 ? value[code->z] : 0);
        if (way == GPU_QUOTIENT_DOWN)
            result = gpu_program_add(to, GPU_OP_floor, emit_single(to, result),
                                     0, 0);
        else if (way == GPU_ROUNDED && !(is_written && i == p->length - 1))
            result = emit_single(to, result);
        value[n++] = result;
    }
    return value[n - 1];
}

/* --- what stands for all of a program: "sin, mul, add" -------------------- */

enum { MOST_NAMES = 1 << 10 };

const char *gpu_keep_name(const char *text)
{
    static const char *names[2 * MOST_NAMES];
    static int count;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = text; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    for (;; hash++) {
        const char **name = &names[hash % (2 * MOST_NAMES)];
        if (!*name && count < MOST_NAMES && (*name = strdup(text)) != NULL)
            count++;
        if (!*name)
            return "several";
        if (strcmp(*name, text) == 0)
            return *name;
    }
}

static void add_name(char *text, const char *name)
{
    static const char more[] = ", ...";
    size_t used = strlen(text), length = strlen(name);
    if (used + length + sizeof ", " + sizeof more <= GPU_LONGEST_NAME)
        strcat(strcat(text, used > 0 ? ", " : ""), name);
    else if (used >= sizeof more &&
             strcmp(text + used - (sizeof more - 1), more) != 0)
        strcat(text, more);
}

/* The number of a part's value, which is what its bytes would be. */
static int emit_node(const gpu_gathering *g, const gpu_pending *n)
{
    const gpu_matrix *operands[GPU_MAX_INPUTS];
    if (n->is_drawn)
        return gpu_find_input(g, &n->out);
    gpu_operands_of(n, operands);
    int value = emit(g, &n->p, operands, 0);
    return g->compute == GPU_F64 && is_rounded_result(n)
               ? emit_single(&g->c->p, value)
               : value;
}

void gpu_compose_parts(gpu_gathering *g, char names[GPU_LONGEST_NAME])
{
    gpu_composition *c = g->c;
    gpu_program_start(&c->p, g->inputs);
    c->p.compute = g->compute;
    for (int i = 0; i < g->inputs; i++) {
        gpu_retain(&c->in[i]);
        c->inputs[i] = &c->in[i];
    }
    for (int i = 0; i < g->constants; i++)
        gpu_program_constant(&c->p, g->constant[i]);
    for (int k = 0; k < g->nodes; k++) {
        const gpu_pending *n = g->node[k];
        g->value[k] = emit_node(g, n);
        if (n->is_drawn) {
            c->draw[g->value[k]] = n->draw;
            c->p.draw = c->draw;
        }
        g->node[k]->was_run = 1;
        add_name(names, n->name);
    }
}

void gpu_compose_gathered(gpu_gathering *g, const char *name,
                          const gpu_program *p, const gpu_matrix *const *in,
                          gpu_dtype written)
{
    gpu_composition *c = g->c;
    char names[GPU_LONGEST_NAME] = "";
    if (g->product) {
        g->product->was_run = 1;
        add_name(names, g->product->name);
    }
    gpu_compose_parts(g, names);
    c->p.reduction = p->reduction;
    if (p->length > 0 || g->nodes == 0)
        emit(g, p, in, written == GPU_F32);
    add_name(names, name);
    c->name = g->nodes > 0 || g->product ? gpu_keep_name(names) : name;
}

void gpu_end_composition(gpu_composition *c)
{
    for (int i = 0; i < c->p.inputs; i++)
        gpu_release(&c->in[i]);
}
/* --- what is worth bytes of its own --------------------------------------- */

static int is_cheap(gpu_op op)
{
    static const uint8_t cheap[GPU_OPS] = {
        [GPU_OP_add] = 1,     [GPU_OP_sub] = 1,     [GPU_OP_mul] = 1,
        [GPU_OP_div] = 1,     [GPU_OP_neg] = 1,     [GPU_OP_abs] = 1,
        [GPU_OP_square] = 1,  [GPU_OP_sqrt] = 1,    [GPU_OP_where] = 1,
        [GPU_OP_maximum] = 1, [GPU_OP_minimum] = 1, [GPU_OP_clip] = 1,
        [GPU_OP_eq] = 1,      [GPU_OP_ne] = 1,      [GPU_OP_lt] = 1,
        [GPU_OP_le] = 1,      [GPU_OP_gt] = 1,      [GPU_OP_ge] = 1,
    };
    return cheap[op];
}

/* A GPU has arithmetic to spare. */
static int is_dear(const gpu_pending *n)
{
    const gpu_device *d = n->out.storage->device;
    if (n->is_drawn)
        return 1;
    for (int i = 0; i < n->p.length && d->is_cpu; i++)
        if (!is_cheap(n->p.code[i].op))
            return 1;
    return 0;
}

int gpu_is_held(const gpu_gathering *g, int at)
{
    const gpu_pending *n = g->node[at];
    return n->out.storage->references - n->is_kept > g->reads[at];
}

static int is_product_held(const gpu_gathering *g)
{
    const gpu_pending *n = g->product;
    return n && n->out.storage->references - n->is_kept > g->product_reads;
}

int gpu_has_held(const gpu_gathering *g)
{
    for (int i = 0; i < g->nodes; i++)
        if (gpu_is_held(g, i))
            return 1;
    return is_product_held(g);
}

/* An operand that has been worked out as a part before: whoever has it may come
 * with it any number of times. NULL: none. */
static gpu_storage *choose_repeated(const gpu_gathering *g,
                                    const gpu_program *p,
                                    const gpu_matrix *const *in)
{
    for (int i = 0; i < p->inputs; i++)
        if (can_be_part(g, in[i]) && pending_of(in[i])->was_run)
            return in[i]->storage;
    return NULL;
}

gpu_storage *gpu_choose_settled(const gpu_gathering *g)
{
    if (is_product_held(g) || (g->product && gpu_must_check()))
        return g->product->out.storage;
    for (int i = 0; i < g->nodes; i++)
        if (gpu_is_held(g, i) && (g->node[i]->was_part || g->node[i]->was_run ||
                                  is_dear(g->node[i]) || g->product))
            return g->node[i]->out.storage;
    for (int i = 0; i < g->nodes; i++)
        g->node[i]->was_part |= gpu_is_held(g, i);
    return NULL;
}

int gpu_waits_any(const gpu_program *p, const gpu_matrix *const *in)
{
    for (int i = 0; i < p->inputs; i++)
        if (pending_of(in[i]))
            return 1;
    return 0;
}

static void take_alone(const char *name, const gpu_program *p,
                       const gpu_matrix *const *in, gpu_composition *c)
{
    c->name = name;
    c->p = *p;
    for (int i = 0; i < p->inputs; i++) {
        gpu_retain(in[i]);
        c->in[i] = *in[i];
        c->inputs[i] = &c->in[i];
    }
}

gpu_status gpu_compose(const char *name, const gpu_program *p,
                       const gpu_matrix *const *in, int64_t rows, int64_t cols,
                       gpu_composition *c)
{
    c->type = (gpu_dtype)p->compute;
    if (!gpu_waits_any(p, in)) {
        take_alone(name, p, in, c);
        return GPU_OK;
    }
    gpu_gathering g = gather(p, in, rows, cols, c);
    if (g.nodes > 0 && gpu_has_held(&g)) {
        gpu_collect_garbage(GPU_GARBAGE_YOUNGEST);
        g = gather(p, in, rows, cols, c);
    }
    for (;; g = gather(p, in, rows, cols, c)) {
        gpu_storage *s = g.fits ? choose_repeated(&g, p, in) : NULL;
        if (!s && g.fits && !(s = gpu_choose_settled(&g)))
            break;
        if (!s && p->reduction == GPU_NO_REDUCTION)
            s = g.misfit;
        if (s)
            TRY(gpu_settle_storage(s));
        for (int i = 0; i < p->inputs && !s; i++)
            TRY(gpu_settle(in[i]));
    }
    gpu_compose_gathered(&g, name, p, in, (gpu_dtype)p->compute);
    return GPU_OK;
}
/* --- what is written in place ---------------------------------------------
 * A program that writes to a matrix while it reads what waits for that one's
 * elements as they were: x[x:gt(2)] = 0. What nothing else holds becomes part
 * of it, and never is there; the rest is settled first. */

/* Every operand of n that lies in out's storage is the very view: then an
 * element is read only where it is written. */
static int reads_in_step(const gpu_pending *n, const gpu_matrix *out)
{
    for (int i = 0; i < n->p.inputs; i++)
        if (n->in[i].storage == out->storage && !gpu_same_view(&n->in[i], out))
            return 0;
    return 1;
}

static int is_operand(const gpu_pending *n, const gpu_program *p,
                      const gpu_matrix *const *in)
{
    for (int i = 0; i < p->inputs; i++)
        if (in[i]->storage == n->out.storage)
            return 1;
    return 0;
}

/* Of what was gathered: the first that depends on out's elements and may be
 * asked for when they are gone. */
static gpu_storage *choose_dependent(const gpu_gathering *g,
                                     const gpu_program *p,
                                     const gpu_matrix *const *in,
                                     const gpu_matrix *out, int are_own)
{
    uint8_t depends[GPU_MOST_NODES];
    for (int k = 0; k < g->nodes; k++) {
        const gpu_pending *n = g->node[k];
        depends[k] = gpu_count_reads(n, out->storage) > 0;
        for (int i = 0; i < n->p.inputs; i++) {
            int part = n->in[i].storage->pending
                           ? gpu_find_node(g, n->in[i].storage->pending)
                           : -1;
            depends[k] |= part >= 0 && depends[part];
        }
        if (depends[k] && (gpu_is_held(g, k) || !reads_in_step(n, out) ||
                           (!are_own && is_operand(n, p, in))))
            return n->out.storage;
    }
    return NULL;
}

/* The first of all that waits; NULL: none. */
static gpu_storage *choose_reader(const gpu_gathering *g, const gpu_program *p,
                                  const gpu_matrix *const *in,
                                  const gpu_matrix *out, int are_own)
{
    int left = out->storage->readers;
    for (gpu_pending *n = gpu_waiting.first; n && left > 0; n = n->next) {
        int found = gpu_count_reads(n, out->storage);
        left -= found;
        if (found > 0 && gpu_find_node(g, n) < 0) {
            gpu_pending *user = gpu_find_user(n);
            return (user ? user : n)->out.storage;
        }
    }
    return choose_dependent(g, p, in, out, are_own);
}

/* Those that were recorded to be executed have been, as parts. */
static void let_go_of_parts(const gpu_gathering *g)
{
    for (int i = 0; i < g->nodes; i++) /* what reads one comes behind it */
        if (g->node[i]->is_kept && !gpu_is_held(g, i))
            gpu_let_go(g->node[i]);
}

gpu_status gpu_compose_over(const char *name, const gpu_program *p,
                            const gpu_matrix *const *in, int are_own,
                            const gpu_matrix *out, gpu_composition *c)
{
    TRY(gpu_settle(out));
    gpu_gathering g = gather(p, in, out->rows, out->cols, c);
    if (out->storage->readers > 0 || gpu_has_held(&g)) {
        gpu_collect_garbage(GPU_GARBAGE_YOUNGEST);
        g = gather(p, in, out->rows, out->cols, c);
    }
    for (;; g = gather(p, in, out->rows, out->cols, c)) {
        gpu_storage *s = choose_reader(&g, p, in, out, are_own);
        if (!s && g.fits && !are_own)
            s = choose_repeated(&g, p, in);
        if (!s && g.fits)
            s = gpu_choose_settled(&g);
        if (!s && !g.fits)
            s = g.misfit;
        for (int i = 0; i < p->inputs && !s && !g.fits; i++)
            s = pending_of(in[i]) ? in[i]->storage : NULL;
        if (!s)
            break;
        TRY(gpu_settle_storage(s));
    }
    gpu_compose_gathered(&g, name, p, in, out->dtype);
    let_go_of_parts(&g);
    return GPU_OK;
}
