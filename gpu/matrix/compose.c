/* Of an elementwise program, and what waits among its operands, one program
 * (pending.c tells why): what is gathered of it, what is better settled first,
 * and what a write in place may take along. */
#include "op_list.h"
#include "pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- gathering ------------------------------------------------------------ */

static void gather_program(gpu_gathering *g, const gpu_program *p,
                           const gpu_matrix *const *in);

/* Is the result what its program computes, and no narrower? */
static int is_unrounded(const gpu_pending *n)
{
    return n->out.dtype == GPU_BOOL || n->out.dtype == n->p.compute;
}

int gpu_fits_in(const gpu_gathering *g, const gpu_matrix *m)
{
    const gpu_pending *n = pending_of(m);
    return n && !g->is_alone && n->p.compute == g->compute && is_unrounded(n) &&
           (!n->is_drawn || g->draws) && n->out.rows == g->rows &&
           n->out.cols == g->cols && m->rows == g->rows && m->cols == g->cols &&
           gpu_same_view(m, &n->out);
}

/* Can it be worked out as a part? */
static int can_be_part(const gpu_gathering *g, const gpu_matrix *m)
{
    return gpu_fits_in(g, m) && !pending_of(m)->product.run;
}

/* Is it a product, and can it be taken in, beside none but itself? */
static int can_be_product(const gpu_gathering *g, const gpu_matrix *m)
{
    return g->takes_product && gpu_fits_in(g, m) &&
           pending_of(m)->product.run &&
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
    g->fits = g->fits && (!pending_of(m) || is_product);
    add_input(g, m);
}

static void gather_program(gpu_gathering *g, const gpu_program *p,
                           const gpu_matrix *const *in)
{
    g->length += p->length;
    g->fits = g->fits && g->length <= g->most_code;
    for (int i = 0; i < p->inputs && g->fits; i++)
        gather_input(g, in[i]);
    for (int i = 0; i < p->constants && g->fits; i++) {
        if (find_constant(g, p->constant[i]) >= 0)
            continue;
        g->fits = g->constants < g->most_constants;
        if (g->fits)
            g->constant[g->constants++] = p->constant[i];
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

gpu_gathering gpu_begin_gathering(const gpu_program *p,
                                  const gpu_matrix *const *in, int64_t rows,
                                  int64_t cols, gpu_composition *c)
{
    gpu_device *d = p->inputs > 0 ? in[0]->storage->device : NULL;
    return (gpu_gathering){
        .c = c,
        .rows = rows,
        .cols = cols,
        .compute = p->compute,
        .draws = d && d->backend->draws && p->reduction == GPU_NO_REDUCTION,
        .is_alone = gpu_is_alone(p),
        .most_code = larger(p->length, GPU_MAX_CODE - GPU_SPARE),
        .most_constants = larger(p->constants, GPU_MAX_CONSTANTS - GPU_SPARE),
        .fits = 1};
}

gpu_gathering gpu_gather_operands(const gpu_program *p,
                                  const gpu_matrix *const *in, int64_t rows,
                                  int64_t cols, int takes_product,
                                  gpu_composition *c)
{
    gpu_gathering g = gpu_begin_gathering(p, in, rows, cols, c);
    g.takes_product = takes_product;
    gather_program(&g, p, in);
    return g;
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

/* Adds p's instructions, and returns the number of its result. */
static int emit(const gpu_gathering *g, const gpu_program *p,
                const gpu_matrix *const *in)
{
    gpu_program *to = &g->c->p;
    int value[GPU_MAX_VALUES], n = 0;
    for (int i = 0; i < p->inputs; i++)
        value[n++] = can_be_part(g, in[i])
                         ? g->value[gpu_find_node(g, pending_of(in[i]))]
                         : gpu_find_input(g, in[i]);
    for (int i = 0; i < p->constants; i++)
        value[n++] = g->inputs + find_constant(g, p->constant[i]);
    for (int i = 0; i < p->length; i++) {
        const gpu_instruction *code = &p->code[i];
        int arity = gpu_op_arity(code->op);
        value[n++] = gpu_program_add(
            to, code->op, arity > 0 ? value[code->x] : 0,
            arity > 1 ? value[code->y] : 0, arity > 2 ? value[code->z] : 0);
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

void gpu_compose_parts(gpu_gathering *g, uint8_t compute,
                       char names[GPU_LONGEST_NAME])
{
    gpu_composition *c = g->c;
    const gpu_matrix *operands[GPU_MAX_INPUTS];
    gpu_program_start(&c->p, g->inputs);
    c->p.compute = compute;
    for (int i = 0; i < g->inputs; i++) {
        gpu_retain(&c->in[i]);
        c->inputs[i] = &c->in[i];
    }
    for (int i = 0; i < g->constants; i++)
        gpu_program_constant(&c->p, g->constant[i]);
    for (int k = 0; k < g->nodes; k++) {
        const gpu_pending *n = g->node[k];
        gpu_operands_of(n, operands);
        g->value[k] =
            n->is_drawn ? gpu_find_input(g, &n->out) : emit(g, &n->p, operands);
        if (n->is_drawn) {
            c->draw[g->value[k]] = n->draw;
            c->p.draw = c->draw;
        }
        g->node[k]->was_run = 1;
        add_name(names, n->name);
    }
}

void gpu_compose_gathered(gpu_gathering *g, const char *name,
                          const gpu_program *p, const gpu_matrix *const *in)
{
    gpu_composition *c = g->c;
    char names[GPU_LONGEST_NAME] = "";
    if (g->product) {
        g->product->was_run = 1;
        add_name(names, g->product->name);
    }
    gpu_compose_parts(g, p->compute, names);
    c->p.reduction = p->reduction;
    if (p->length > 0 || g->nodes == 0)
        emit(g, p, in);
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
    if (!gpu_waits_any(p, in)) {
        take_alone(name, p, in, c);
        return GPU_OK;
    }
    gpu_gathering g = gather(p, in, rows, cols, c);
    if (g.nodes > 0 && gpu_has_held(&g)) {
        gpu_collect_garbage(GPU_GARBAGE_YOUNGEST);
        g = gather(p, in, rows, cols, c);
    }
    for (gpu_storage *s; g.fits; g = gather(p, in, rows, cols, c)) {
        s = choose_repeated(&g, p, in);
        if (!s && !(s = gpu_choose_settled(&g)))
            break;
        TRY(gpu_settle_storage(s));
    }
    if (!g.fits) {
        for (int i = 0; i < p->inputs; i++)
            TRY(gpu_settle(in[i]));
        g = gather(p, in, rows, cols, c);
    }
    gpu_compose_gathered(&g, name, p, in);
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
        for (int i = 0; i < p->inputs && !s && !g.fits; i++)
            s = pending_of(in[i]) ? in[i]->storage : NULL;
        if (!s)
            break;
        TRY(gpu_settle_storage(s));
    }
    gpu_compose_gathered(&g, name, p, in);
    let_go_of_parts(&g);
    return GPU_OK;
}
