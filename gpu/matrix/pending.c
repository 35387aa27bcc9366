/* Elementwise results that wait: what is to be worked out is recorded, and run
 * as one program, one pass over memory, when somebody needs it.
 *
 * How a value travels:
 *
 *   gpu_map          records it: storage without bytes, a program and its
 *     |              operands, which may wait themselves (gpu_record)
 *     v
 *   gpu_check_operands, gpu_check_target
 *     |              of whatever reads it, or writes to what it reads; gpu_map
 *     |              and gpu_reduce compose instead: what waits becomes part of
 *     |              their own program, and is never written (gpu_compose)
 *     v
 *   gpu_settle       composes what it is made of into one program, gives it
 *                    bytes and runs that
 *
 * Composed is what is computed in one type over one shape, so that every bit is
 * that of one operation after the other. A value that something else still
 * holds when it could become part of a program is worth bytes of its own if it
 * is dear, or was part of one before; else it is worked out once more. What
 * holds it may be garbage: so the language collects its youngest first
 * (gpu_on_settling), which may run finalisers, and those anything here.
 *
 * A product that waits (gpu_record_product) is not composed: a program that is
 * settled takes it in as an operand without elements, and then the product runs
 * into that program's result and goes through the program there, in the kernel
 * that multiplies where that can do it (gpu_epilogue). One that somebody else
 * holds as well, or a part of the program that reads it, is settled first: no
 * product is done twice. Whatever else reads it settles it, and so does the
 * next product: only one waits at a time, so that products run in the order in
 * which they are written and each kernel is chosen as if none had waited. It
 * waits no longer than an elementwise result, and one that takes long does not
 * wait at all: a GPU is to have its work in time.
 *
 * A recorded value holds references to its operands, whose elements cannot
 * change: what would write to them settles it first. It always fits one
 * program: what does not is settled when it is recorded. Where settling fails
 * (there is no memory; Ctrl-C) the value goes on waiting, and nothing is lost.
 */
#include "core.h"
#include "op_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu_pending {
    const char *name;
    gpu_program p;                 /* of a product: over both factors, empty */
    gpu_matrix in[GPU_MAX_INPUTS]; /* with a reference each */
    gpu_waiting_product product;   /* its run is NULL: it is none */
    gpu_matrix out;                /* its storage is what waits: borrowed */
    int was_part;                  /* of a program, while others held it */
    int was_run;                   /* as a part, or what a program took in */
    int follows;                   /* see find_user */
    int is_running; /* a collection, for which it had no memory, may find it */
    int is_kept;    /* the list has a reference, too */
    int is_left;    /* see gpu_leave_waiting */
    const char *source; /* where it was written; NULL: not known */
    int line;
    int is_drawn; /* no program: random numbers */
    gpu_random draw;
    gpu_pending *previous, *next; /* in the order of recording */
};

/* Elements from which on recording costs less than it saves: a value that waits
 * takes half a microsecond, and the collection before it is settled a few. On a
 * GPU each operation that becomes a part saves as much: a launch. */
enum { LEAST_ON_CPU = 1 << 16, LEAST_ON_GPU = 1 };
enum { MOST_PENDING = 4096 }; /* so that a GPU gets its work in time */
/* Waiting takes the host 4 us, for the collection that finds who else holds a
 * product: a GPU gains as much from so many flops or elements on. Of the most
 * flops, 20 ms of an H200's, it would gain two hundredths and begin late. */
enum { LEAST_OF_PRODUCT = 1 << 21 };
static const double LEAST_FLOPS = 4e9, MOST_FLOPS = 4e12;

/* Where one who goes through the list is: what ends meanwhile is passed by. */
typedef struct cursor {
    gpu_pending *next;
    struct cursor *outer;
} cursor;

static struct {
    gpu_pending *first, *last;
    cursor *cursors;
    int count, products, makes_room;
    int executes; /* see gpu_execute_all */
    size_t settled;
    gpu_fusion fusion;
    void (*collect)(void *data, gpu_garbage which);
    void *data;
    int (*ask_line)(void *data, const char **source);
    void *line_data;
} all;

void gpu_set_fusion(gpu_fusion fusion)
{
    all.fusion = fusion;
}

gpu_fusion gpu_get_fusion(void)
{
    return all.fusion;
}

int gpu_is_pending(const gpu_matrix *m)
{
    return m->storage && m->storage->pending;
}

size_t gpu_take_settled_bytes(void)
{
    size_t bytes = all.settled;
    all.settled = 0;
    return bytes;
}

int gpu_execute_all(int on)
{
    int before = all.executes;
    all.executes = on;
    return before;
}

void gpu_on_settling(void (*collect)(void *data, gpu_garbage which), void *data)
{
    all.collect = collect;
    all.data = data;
}

void gpu_on_recording(int (*line)(void *data, const char **source), void *data)
{
    all.ask_line = line;
    all.line_data = data;
}

/* --- the list of what waits ----------------------------------------------- */

static void link_last(gpu_pending *n)
{
    n->previous = all.last;
    n->next = NULL;
    *(all.last ? &all.last->next : &all.first) = n;
    all.last = n;
    all.count++;
    n->out.storage->device->waiting += n->out.storage->bytes;
}

static void unlink_from(gpu_pending *n)
{
    for (cursor *c = all.cursors; c; c = c->outer)
        if (c->next == n)
            c->next = n->next;
    *(n->previous ? &n->previous->next : &all.first) = n->next;
    *(n->next ? &n->next->previous : &all.last) = n->previous;
    all.count--;
    all.products -= n->product.run != NULL;
    n->out.storage->device->waiting -= n->out.storage->bytes;
}

static cursor begin_list(void)
{
    return (cursor){all.first, all.cursors};
}

static gpu_pending *next_of(cursor *c)
{
    gpu_pending *n = c->next;
    c->next = n ? n->next : NULL;
    return n;
}

/* Its storage does not wait any longer, or is no more. */
static void end_waiting(gpu_storage *s)
{
    gpu_pending *n = s->pending;
    s->pending = NULL;
    s->references -= n->is_kept; /* of those that whoever calls has one */
    unlink_from(n);
    for (int i = 0; i < n->p.inputs; i++) {
        n->in[i].storage->readers--;
        gpu_release(&n->in[i]);
    }
    free(n);
}

void gpu_drop_pending(gpu_storage *s)
{
    end_waiting(s);
}

static void let_go(gpu_pending *n)
{
    gpu_matrix kept = n->out;
    n->is_kept = 0;
    gpu_release(&kept);
}

/* --- composing ------------------------------------------------------------ */

/* Parts of a program: some have no instruction, as conversions to a wider type
 * and random numbers. */
enum { MOST_NODES = GPU_MAX_CODE + GPU_MAX_INPUTS };

/* What becomes of a program and of those of its operands that wait. */
typedef struct gathering {
    gpu_composition *c;
    int64_t rows, cols;
    uint8_t compute;
    int draws; /* may parts be random numbers? */
    int is_alone, fits, length, inputs, constants, nodes;
    int most_code, most_constants;
    double constant[GPU_MAX_CONSTANTS];
    gpu_pending *node[MOST_NODES]; /* operands before what reads them */
    int reads[MOST_NODES];         /* how often they are read here */
    int value[MOST_NODES];         /* the numbers of their results */
    int takes_product;             /* may it take one in? */
    gpu_pending *product;          /* that it takes in; or NULL */
    int product_reads;
} gathering;

static void gather_program(gathering *g, const gpu_program *p,
                           const gpu_matrix *const *in);

static gpu_pending *pending_of(const gpu_matrix *m)
{
    return m->storage->pending;
}

/* Is the result what its program computes, and no narrower? */
static int is_unrounded(const gpu_pending *n)
{
    return n->out.dtype == GPU_BOOL || n->out.dtype == n->p.compute;
}

/* Is what waits of the same elements, in the same type? */
static int fits_in(const gathering *g, const gpu_matrix *m)
{
    const gpu_pending *n = pending_of(m);
    return n && !g->is_alone && n->p.compute == g->compute && is_unrounded(n) &&
           (!n->is_drawn || g->draws) && n->out.rows == g->rows &&
           n->out.cols == g->cols && m->rows == g->rows && m->cols == g->cols &&
           gpu_same_view(m, &n->out);
}

/* Can it be worked out as a part? */
static int can_be_part(const gathering *g, const gpu_matrix *m)
{
    return fits_in(g, m) && !pending_of(m)->product.run;
}

/* Is it a product, and can it be taken in, beside none but itself? */
static int can_be_product(const gathering *g, const gpu_matrix *m)
{
    return g->takes_product && fits_in(g, m) && pending_of(m)->product.run &&
           (!g->product || g->product == pending_of(m));
}

/* How many of its operands lie in the storage. */
static int count_reads(const gpu_pending *n, const gpu_storage *s)
{
    int count = 0;
    for (int i = 0; i < n->p.inputs; i++)
        count += n->in[i].storage == s;
    return count;
}

static void operands_of(const gpu_pending *n, const gpu_matrix **in)
{
    for (int i = 0; i < n->p.inputs; i++)
        in[i] = &n->in[i];
}

static int find_node(const gathering *g, const gpu_pending *n)
{
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i] == n)
            return i;
    return -1;
}

static int find_input(const gathering *g, const gpu_matrix *m)
{
    for (int i = 0; i < g->inputs; i++)
        if (g->c->in[i].dtype == m->dtype && gpu_same_view(&g->c->in[i], m))
            return i;
    return -1;
}

static int find_constant(const gathering *g, double value)
{
    for (int i = 0; i < g->constants; i++)
        if (memcmp(&g->constant[i], &value, sizeof value) == 0)
            return i;
    return -1;
}

static void add_input(gathering *g, const gpu_matrix *m)
{
    g->fits = g->fits && g->inputs < GPU_MAX_INPUTS;
    if (g->fits)
        g->c->in[g->inputs++] = *m;
}

static void gather_node(gathering *g, gpu_pending *n)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    int at = find_node(g, n);
    if (at >= 0) {
        g->reads[at]++;
        return;
    }
    operands_of(n, in);
    if (n->is_drawn)
        add_input(g, &n->out);
    else
        gather_program(g, &n->p, in);
    g->fits = g->fits && g->nodes < MOST_NODES;
    if (!g->fits)
        return;
    g->reads[g->nodes] = 1;
    g->node[g->nodes++] = n;
}

static void gather_input(gathering *g, const gpu_matrix *m)
{
    if (can_be_part(g, m)) {
        gather_node(g, pending_of(m));
        return;
    }
    int is_product = can_be_product(g, m);
    if (is_product) {
        g->product = pending_of(m);
        g->product_reads++;
    }
    if (find_input(g, m) >= 0)
        return;
    g->fits = g->fits && (!pending_of(m) || is_product);
    add_input(g, m);
}

static void gather_program(gathering *g, const gpu_program *p,
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
static int is_alone(const gpu_program *p)
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

/* Of nothing yet, for p's type and inputs' device. */
static gathering begin_gathering(const gpu_program *p,
                                 const gpu_matrix *const *in, int64_t rows,
                                 int64_t cols, gpu_composition *c)
{
    gpu_device *d = p->inputs > 0 ? in[0]->storage->device : NULL;
    return (gathering){
        .c = c,
        .rows = rows,
        .cols = cols,
        .compute = p->compute,
        .draws = d && d->backend->draws && p->reduction == GPU_NO_REDUCTION,
        .is_alone = is_alone(p),
        .most_code = larger(p->length, GPU_MAX_CODE - GPU_SPARE),
        .most_constants = larger(p->constants, GPU_MAX_CONSTANTS - GPU_SPARE),
        .fits = 1};
}

/* The inputs are borrowed. takes_product: may one that waits be among them? */
static gathering gather_with(const gpu_program *p, const gpu_matrix *const *in,
                             int64_t rows, int64_t cols, int takes_product,
                             gpu_composition *c)
{
    gathering g = begin_gathering(p, in, rows, cols, c);
    g.takes_product = takes_product;
    gather_program(&g, p, in);
    return g;
}

static gathering gather(const gpu_program *p, const gpu_matrix *const *in,
                        int64_t rows, int64_t cols, gpu_composition *c)
{
    return gather_with(p, in, rows, cols, 0, c);
}

/* What becomes of n, which waits and is no product. */
static gathering gather_waiting(const gpu_pending *n, gpu_composition *c)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    operands_of(n, in);
    return gather_with(&n->p, in, n->out.rows, n->out.cols, 1, c);
}

/* Adds p's instructions, and returns the number of its result. */
static int emit(const gathering *g, const gpu_program *p,
                const gpu_matrix *const *in)
{
    gpu_program *to = &g->c->p;
    int value[GPU_MAX_VALUES], n = 0;
    for (int i = 0; i < p->inputs; i++)
        value[n++] = can_be_part(g, in[i])
                         ? g->value[find_node(g, pending_of(in[i]))]
                         : find_input(g, in[i]);
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

enum { MOST_NAMES = 1 << 10, LONGEST_NAME = 60 };

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
    if (used + length + sizeof ", " + sizeof more <= LONGEST_NAME)
        strcat(strcat(text, used > 0 ? ", " : ""), name);
    else if (used >= sizeof more &&
             strcmp(text + used - (sizeof more - 1), more) != 0)
        strcat(text, more);
}

/* The program of all parts, and their names. */
static void compose_parts(gathering *g, uint8_t compute,
                          char names[LONGEST_NAME])
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
        operands_of(n, operands);
        g->value[k] =
            n->is_drawn ? find_input(g, &n->out) : emit(g, &n->p, operands);
        if (n->is_drawn) {
            c->draw[g->value[k]] = n->draw;
            c->p.draw = c->draw;
        }
        g->node[k]->was_run = 1;
        add_name(names, n->name);
    }
}

static void compose(gathering *g, const char *name, const gpu_program *p,
                    const gpu_matrix *const *in)
{
    gpu_composition *c = g->c;
    char names[LONGEST_NAME] = "";
    if (g->product) {
        g->product->was_run = 1;
        add_name(names, g->product->name);
    }
    compose_parts(g, p->compute, names);
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

/* Whether anything else than what was gathered holds it. */
static int is_held(const gathering *g, int at)
{
    const gpu_pending *n = g->node[at];
    return n->out.storage->references - n->is_kept > g->reads[at];
}

static int is_product_held(const gathering *g)
{
    const gpu_pending *n = g->product;
    return n && n->out.storage->references - n->is_kept > g->product_reads;
}

static int has_held(const gathering *g)
{
    for (int i = 0; i < g->nodes; i++)
        if (is_held(g, i))
            return 1;
    return is_product_held(g);
}

/* An operand that has been worked out as a part before: whoever has it may come
 * with it any number of times. NULL: none. */
static gpu_storage *choose_repeated(const gathering *g, const gpu_program *p,
                                    const gpu_matrix *const *in)
{
    for (int i = 0; i < p->inputs; i++)
        if (can_be_part(g, in[i]) && pending_of(in[i])->was_run)
            return in[i]->storage;
    return NULL;
}

/* The first that is better settled than worked out as a part; NULL: none. */
static gpu_storage *choose_settled(const gathering *g)
{
    if (is_product_held(g) || (g->product && gpu_must_check()))
        return g->product->out.storage;
    for (int i = 0; i < g->nodes; i++)
        if (is_held(g, i) && (g->node[i]->was_part || g->node[i]->was_run ||
                              is_dear(g->node[i]) || g->product))
            return g->node[i]->out.storage;
    for (int i = 0; i < g->nodes; i++)
        g->node[i]->was_part |= is_held(g, i);
    return NULL;
}

static void collect(gpu_garbage which)
{
    if (!all.collect)
        return;
    gpu_device *through = gpu_compute_through(NULL); /* not of finalisers */
    double start = gpu_dry ? gpu_now() : 0;
    gpu_collections++;
    if (gpu_dry && gpu_may_collect_dry()) /* others make what is held old */
        which = GPU_GARBAGE_ALL;
    all.collect(all.data, which);
    gpu_collections--;
    if (gpu_dry)
        gpu_dry->collecting += gpu_now() - start;
    gpu_compute_through(through);
}

static void collect_youngest(void)
{
    collect(GPU_GARBAGE_YOUNGEST);
}

static gpu_status settle(gpu_storage *s);
static gpu_pending *find_user(gpu_pending *product);

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
    gathering g = gather(p, in, rows, cols, c);
    if (g.nodes > 0 && has_held(&g)) {
        collect_youngest();
        g = gather(p, in, rows, cols, c);
    }
    for (gpu_storage *s; g.fits; g = gather(p, in, rows, cols, c)) {
        s = choose_repeated(&g, p, in);
        if (!s && !(s = choose_settled(&g)))
            break;
        TRY(settle(s));
    }
    if (!g.fits) {
        for (int i = 0; i < p->inputs; i++)
            TRY(gpu_settle(in[i]));
        g = gather(p, in, rows, cols, c);
    }
    compose(&g, name, p, in);
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
static gpu_storage *choose_dependent(const gathering *g, const gpu_program *p,
                                     const gpu_matrix *const *in,
                                     const gpu_matrix *out, int are_own)
{
    uint8_t depends[MOST_NODES];
    for (int k = 0; k < g->nodes; k++) {
        const gpu_pending *n = g->node[k];
        depends[k] = count_reads(n, out->storage) > 0;
        for (int i = 0; i < n->p.inputs; i++) {
            int part = n->in[i].storage->pending
                           ? find_node(g, n->in[i].storage->pending)
                           : -1;
            depends[k] |= part >= 0 && depends[part];
        }
        if (depends[k] && (is_held(g, k) || !reads_in_step(n, out) ||
                           (!are_own && is_operand(n, p, in))))
            return n->out.storage;
    }
    return NULL;
}

/* The first of all that waits; NULL: none. */
static gpu_storage *choose_reader(const gathering *g, const gpu_program *p,
                                  const gpu_matrix *const *in,
                                  const gpu_matrix *out, int are_own)
{
    int left = out->storage->readers;
    for (gpu_pending *n = all.first; n && left > 0; n = n->next) {
        int found = count_reads(n, out->storage);
        left -= found;
        if (found > 0 && find_node(g, n) < 0) {
            gpu_pending *user = find_user(n);
            return (user ? user : n)->out.storage;
        }
    }
    return choose_dependent(g, p, in, out, are_own);
}

/* Those that were recorded to be executed have been, as parts. */
static void let_go_of_parts(const gathering *g)
{
    for (int i = 0; i < g->nodes; i++) /* what reads one comes behind it */
        if (g->node[i]->is_kept && !is_held(g, i))
            let_go(g->node[i]);
}

gpu_status gpu_compose_over(const char *name, const gpu_program *p,
                            const gpu_matrix *const *in, int are_own,
                            const gpu_matrix *out, gpu_composition *c)
{
    TRY(gpu_settle(out));
    gathering g = gather(p, in, out->rows, out->cols, c);
    if (out->storage->readers > 0 || has_held(&g)) {
        collect_youngest();
        g = gather(p, in, out->rows, out->cols, c);
    }
    for (;; g = gather(p, in, out->rows, out->cols, c)) {
        gpu_storage *s = choose_reader(&g, p, in, out, are_own);
        if (!s && g.fits && !are_own)
            s = choose_repeated(&g, p, in);
        if (!s && g.fits)
            s = choose_settled(&g);
        for (int i = 0; i < p->inputs && !s && !g.fits; i++)
            s = pending_of(in[i]) ? in[i]->storage : NULL;
        if (!s)
            break;
        TRY(settle(s));
    }
    compose(&g, name, p, in);
    let_go_of_parts(&g);
    return GPU_OK;
}

/* --- settling ------------------------------------------------------------- */

/* n's program, and the product it takes in, if there is one. */
static gpu_status run_composed(gpu_pending *n)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    gpu_composition c;
    operands_of(n, in);
    gathering g = gather_waiting(n, &c);
    compose(&g, n->name, &n->p, in);
    gpu_pending *p = g.product;
    gpu_status status;
    if (p) {
        p->is_running = 1;
        status = p->product.run(&p->product, p->in, &c, find_input(&g, &p->out),
                                &n->out);
        p->is_running = 0;
    } else {
        status = gpu_run_map(c.name, &c.p, c.inputs, &n->out);
    }
    gpu_end_composition(&c);
    return status;
}

static gpu_status run(gpu_storage *s, void *data)
{
    gpu_pending *n = s->pending;
    void *before = s->data;
    gpu_status status;
    s->data = data;
    n->is_running = 1;
    if (n->product.run)
        status = n->product.run(&n->product, n->in, NULL, 0, &n->out);
    else
        status =
            n->is_drawn ? gpu_run_random(&n->out, &n->draw) : run_composed(n);
    n->is_running = 0;
    if (status == GPU_OK) {
        all.settled += s->bytes;
        end_waiting(s);
        return GPU_OK;
    }
    s->data = before;
    s->incomplete = 0;
    return status;
}

/* What was settled first may be more operands than a program has. */
static gpu_status settle_inputs(gpu_storage *s)
{
    for (int i = 0; s->pending && i < s->pending->p.inputs; i++)
        TRY(settle(s->pending->in[i].storage));
    return GPU_OK;
}

/* Can the product run into n's own memory, and its results go through what was
 * gathered there? Random numbers depend on an element's place in the whole. */
static int takes_in(const gpu_pending *n, const gathering *g)
{
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i]->is_drawn)
            return 0;
    return n->out.dtype == g->product->out.dtype;
}

/* Until there is nothing to settle first. What is looked at may be settled, or
 * be no more, by what the collection runs: but for s, which is held. */
static gpu_status settle_parts(gpu_storage *s)
{
    int has_collected = 0;
    for (;;) {
        gpu_pending *n = s->pending;
        gpu_composition c;
        if (!n || n->product.run)
            return GPU_OK;
        gathering g = gather_waiting(n, &c);
        if (g.product && !takes_in(n, &g)) {
            TRY(settle(g.product->out.storage));
            continue;
        }
        if (!has_collected && has_held(&g)) {
            has_collected = 1;
            collect_youngest();
            continue;
        }
        if (!g.fits)
            return settle_inputs(s);
        gpu_storage *part = choose_settled(&g);
        if (!part)
            return GPU_OK;
        TRY(settle(part));
    }
}

enum { MOST_LINES = 160 };

/* Once. */
static void add_line(char text[MOST_LINES], const gpu_pending *n)
{
    char line[MOST_LINES / 2];
    size_t used = strlen(text);
    if (!n->source)
        return;
    int length = snprintf(line, sizeof line, "%s:%d", n->source, n->line);
    const char *found = strstr(text, line);
    if (found && (found[length] == ',' || found[length] == '\0'))
        return;
    if (used + strlen(line) + sizeof ", " > MOST_LINES)
        return;
    if (used > 0)
        strcat(text, ", ");
    strcat(text, line);
}

/* There was no memory: the message tells of the lines that wrote what it was
 * for, as the one that runs may be another. */
static gpu_status tell_lines(const gpu_storage *s)
{
    char text[MOST_LINES] = "", message[400];
    const gpu_pending *n = s->pending;
    const gpu_matrix *in[GPU_MAX_INPUTS];
    gpu_composition c;
    operands_of(n, in);
    gathering g = gather(&n->p, in, n->out.rows, n->out.cols, &c);
    for (int i = 0; i < g.nodes; i++)
        add_line(text, g.node[i]);
    add_line(text, n);
    if (text[0] == '\0')
        return GPU_MEMORY;
    snprintf(message, sizeof message, "%s", gpu_message());
    return gpu_fail(GPU_MEMORY, "%s; it is for the %s of %s", message, n->name,
                    text);
}

/* What waits does so on the CPU from here on, or on its GPU again. */
static int move(gpu_storage *s)
{
    gpu_device *before = s->device;
    if (!gpu_move_home(s))
        return 0;
    before->waiting -= s->bytes;
    s->device->waiting += s->bytes;
    return 1;
}

/* It does not fit its device. */
static gpu_status settle_on_cpu(gpu_storage *s)
{
    char why[320];
    void *data;
    snprintf(why, sizeof why, "%s", gpu_message());
    if (all.makes_room || !move(s))
        return tell_lines(s);
    gpu_status status = gpu_give_bytes(s, &data);
    if (status == GPU_OK) {
        gpu_matrix out = s->pending ? s->pending->out : (gpu_matrix){0};
        status = s->pending ? run(s, data) : GPU_OK;
        if (s->data != data)
            gpu_take_bytes(s, data);
        else
            gpu_tell_overflow(&out);
    } else if (s->pending) {
        gpu_fail(GPU_MEMORY, "%s", why);
        status = tell_lines(s);
    }
    if (s->pending)
        move(s);
    return s->pending ? status : GPU_OK;
}

/* Its parts are settled, or need not be. */
static gpu_status settle_alone(gpu_storage *s)
{
    void *data;
    gpu_status got = gpu_give_bytes(s, &data); /* may collect garbage, too */
    if (got != GPU_OK && !s->pending)
        return GPU_OK; /* what looked for room has worked it out */
    if (got == GPU_MEMORY)
        return settle_on_cpu(s);
    TRY(got);
    gpu_status status = s->pending ? run(s, data) : GPU_OK;
    if (s->data != data)
        gpu_take_bytes(s, data);
    return status;
}

/* --- several results --------------------------------------------------------
 * What is worked out in one go anyhow, as at the end of an entry, and is made
 * of the same operands: one program with several results, where the device is
 * faster so. */

enum { MOST_RESULTS = 1 + GPU_MAX_EXTRAS };
enum { LEAST_JOINED = 1 << 16 }; /* elements that are worth looking for more */
enum { LOOKS_AHEAD = 16 };       /* in the list */

typedef struct team {
    int count;
    gpu_matrix of[MOST_RESULTS]; /* in the order of recording */
} team;

static gpu_pending *member(const team *t, int i)
{
    return t->of[i].storage->pending;
}

/* What is executed, used or not, is timed one by one. */
static int can_join(const gpu_pending *n)
{
    const gpu_device *d = n->out.storage->device;
    return d->backend->joins && !gpu_dry && !n->is_kept && !all.executes &&
           !n->is_running && !n->is_drawn && !n->product.run &&
           n->p.length > 0 && n->out.dtype == (gpu_dtype)n->p.compute &&
           gpu_size(&n->out) >= LEAST_JOINED;
}

static int is_like(const gpu_pending *n, const gpu_pending *m)
{
    const gpu_matrix *a = &n->out, *b = &m->out;
    return a->storage->device == b->storage->device && a->dtype == b->dtype &&
           a->ndim == b->ndim && a->rows == b->rows && a->cols == b->cols &&
           a->row_stride == b->row_stride && a->col_stride == b->col_stride;
}

static gathering gather_team(const team *t, gpu_composition *c)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    const gpu_pending *first = member(t, 0);
    operands_of(first, in);
    gathering g =
        begin_gathering(&first->p, in, first->out.rows, first->out.cols, c);
    g.draws = 0;
    for (int i = 0; i < t->count; i++)
        gather_node(&g, member(t, i));
    return g;
}

static int is_member(const team *t, const gpu_pending *n)
{
    for (int i = 0; i < t->count; i++)
        if (member(t, i) == n)
            return 1;
    return 0;
}

/* Can all be one program, and is nothing in it better settled first? */
static int is_one_program(const gathering *g, const team *t)
{
    for (int i = 0; i < g->nodes && g->fits; i++)
        if (!is_member(t, g->node[i]) && is_held(g, i) &&
            (g->node[i]->was_part || g->node[i]->was_run))
            return 0;
    return g->fits;
}

static int must_settle(const gpu_pending *n);

/* What reads less beside those before than alone joins them. */
static void find_team(gpu_pending *n, int also_left, team *t)
{
    gpu_composition c;
    *t = (team){.count = 1, .of = {n->out}};
    int inputs = gather_team(t, &c).inputs, looked = 0;
    for (gpu_pending *m = n->next; m && looked < LOOKS_AHEAD; m = m->next) {
        looked++;
        if (!can_join(m) || !is_like(n, m) || (m->is_left && !also_left) ||
            !must_settle(m) || t->count == MOST_RESULTS)
            continue;
        int alone = gather_waiting(m, &c).inputs;
        t->of[t->count++] = m->out;
        gathering g = gather_team(t, &c);
        if (is_one_program(&g, t) && g.inputs < inputs + alone)
            inputs = g.inputs;
        else
            t->count--;
    }
}

/* Of one program, whose last value is that of the last to join. */
static gpu_status run_program_of(team *t, gathering *g)
{
    gpu_composition *c = g->c;
    const gpu_matrix *out[MOST_RESULTS];
    char names[LONGEST_NAME] = "";
    int last = t->count - 1;
    compose_parts(g, member(t, 0)->p.compute, names);
    c->p.extras = (uint8_t)last;
    out[0] = &t->of[last];
    for (int i = 0; i < last; i++) {
        c->p.extra[i] = (uint8_t)g->value[find_node(g, member(t, i))];
        out[1 + i] = &t->of[i];
    }
    gpu_status status =
        gpu_run_joined(gpu_keep_name(names), &c->p, c->inputs, out);
    gpu_end_composition(c);
    return status;
}

/* All of them wait, and have these bytes now. */
static gpu_status run_team(team *t, void *const data[])
{
    void *before[MOST_RESULTS];
    uint8_t was_run[MOST_NODES];
    gpu_composition c;
    gathering g = gather_team(t, &c);
    if (!is_one_program(&g, t))
        return GPU_UNSUPPORTED;
    for (int k = 0; k < g.nodes; k++)
        was_run[k] = (uint8_t)g.node[k]->was_run;
    for (int i = 0; i < t->count; i++) {
        before[i] = t->of[i].storage->data;
        t->of[i].storage->data = data[i];
        member(t, i)->is_running = 1;
    }
    gpu_status status = run_program_of(t, &g);
    for (int k = 0; k < g.nodes && status != GPU_OK; k++)
        g.node[k]->was_run = was_run[k];
    for (int i = 0; i < t->count; i++) {
        gpu_storage *s = t->of[i].storage;
        s->pending->is_running = 0;
        if (status != GPU_OK) {
            s->data = before[i];
            s->incomplete = 0;
        }
    }
    for (int i = t->count - 1; i >= 0 && status == GPU_OK; i--) {
        all.settled += t->of[i].storage->bytes;
        end_waiting(t->of[i].storage);
    }
    return status;
}

static int waits_whole(const team *t)
{
    for (int i = 0; i < t->count; i++)
        if (!t->of[i].storage->pending)
            return 0;
    return 1;
}

/* GPU_UNSUPPORTED: nothing has been done. */
static gpu_status settle_team(team *t)
{
    void *data[MOST_RESULTS];
    int given = 0;
    gpu_status status = GPU_OK;
    for (int i = 0; i < t->count; i++)
        gpu_retain(&t->of[i]);
    while (given < t->count && status == GPU_OK) {
        status = gpu_give_bytes(t->of[given].storage, &data[given]);
        given += status == GPU_OK;
    }
    status = status == GPU_OK && waits_whole(t) ? run_team(t, data)
                                                : GPU_UNSUPPORTED;
    for (int i = 0; i < given; i++)
        if (t->of[i].storage->data != data[i])
            gpu_take_bytes(t->of[i].storage, data[i]);
    for (int i = 0; i < t->count; i++)
        gpu_release(&t->of[i]);
    return status;
}

/* With whom else is settled now? */
typedef enum company { ALONE, WITH_RECENT, WITH_ALL } company;

static gpu_status settle_held(gpu_storage *s, company who)
{
    team t;
    TRY(settle_parts(s));
    collect(GPU_GARBAGE_DUE);
    if (!s->pending)
        return GPU_OK;
    if (who == ALONE || !can_join(s->pending))
        return settle_alone(s);
    find_team(s->pending, who == WITH_ALL, &t);
    gpu_status status = t.count > 1 ? settle_team(&t) : GPU_UNSUPPORTED;
    return status == GPU_UNSUPPORTED && s->pending ? settle_alone(s)
           : status == GPU_UNSUPPORTED             ? GPU_OK
                                                   : status;
}

static gpu_status settle_with(gpu_storage *s, company who)
{
    if (!s->pending)
        return GPU_OK;
    if (s->pending->is_running)
        return gpu_fail(GPU_INCOMPLETE, "%s: is still being worked out",
                        s->pending->name);
    gpu_matrix held = {.storage = s};
    gpu_device *through = gpu_compute_through(NULL); /* where it lies */
    gpu_retain(&held);
    gpu_status status = settle_held(s, who);
    gpu_compute_through(through);
    gpu_release(&held);
    return status;
}

static gpu_status settle(gpu_storage *s)
{
    return settle_with(s, ALONE);
}

gpu_status gpu_settle(const gpu_matrix *m)
{
    return settle(m->storage);
}

gpu_status gpu_settle_readers(const gpu_matrix *m)
{
    gpu_storage *s = m->storage;
    if (!s || s->readers == 0)
        return GPU_OK;
    gpu_matrix held = {.storage = s};
    gpu_retain(&held);
    collect_youngest();
    gpu_status status = GPU_OK;
    while (s->readers > 0 && status == GPU_OK) {
        gpu_pending *n = all.first;
        while (count_reads(n, s) == 0)
            n = n->next;
        gpu_pending *user = find_user(n);
        status = settle((user ? user : n)->out.storage);
    }
    gpu_release(&held);
    return status;
}

/* Does anything hold it that does not wait itself? */
static int is_wanted(const gpu_pending *n)
{
    const gpu_storage *s = n->out.storage;
    return s->references - n->is_kept > s->readers;
}

/* Of what is executed, used or not, all is worked out that is not part of
 * something else. */
static int must_settle(const gpu_pending *n)
{
    if (n->is_running)
        return 0;
    return is_wanted(n) ||
           (n->is_kept && n->out.storage->readers == 0 && !n->was_run);
}

static int follows(const gpu_pending *n)
{
    for (int i = 0; i < n->p.inputs; i++)
        if (pending_of(&n->in[i]) && pending_of(&n->in[i])->follows)
            return 1;
    return 0;
}

/* The first that is wanted of what a product goes into, the product among it;
 * NULL: none, or n is no product. */
static gpu_pending *find_user(gpu_pending *product)
{
    gpu_pending *found = NULL;
    if (!product->product.run)
        return NULL;
    for (gpu_pending *n = all.first; n; n = n->next) {
        n->follows = n == product || follows(n);
        if (!found && n->follows && must_settle(n))
            found = n;
    }
    return found;
}

/* Is there a product that something takes in? */
static int has_taken(void)
{
    for (const gpu_pending *n = all.first; n; n = n->next)
        if (n->product.run && n->out.storage->readers > 0)
            return 1;
    return 0;
}

gpu_status gpu_settle_products(void)
{
    if (all.products == 0)
        return GPU_OK;
    if (has_taken()) /* so that what takes it in alone holds it */
        collect_youngest();
    for (gpu_pending *n = all.first; n;) {
        gpu_pending *user = n->is_left ? NULL : find_user(n);
        if (!user) {
            n = n->next;
            continue;
        }
        TRY(settle(user->out.storage));
        n = all.first; /* whatever has ended meanwhile */
    }
    return GPU_OK;
}

/* Where more than a few seem to be wanted, some may be garbage that has become
 * old: looking for that costs less than working it out. */
static void collect_before_all(int also_left)
{
    enum { FEW = 4 };
    int wanted = 0;
    collect_youngest();
    for (const gpu_pending *n = all.first; n; n = n->next)
        wanted += is_wanted(n) && (also_left || !n->is_left);
    if (wanted > FEW)
        collect(GPU_GARBAGE_ALL);
}

static gpu_status settle_list(int also_left)
{
    if (!all.first || (!also_left && all.last->is_left))
        return GPU_OK;
    collect_before_all(also_left);
    cursor c = begin_list();
    gpu_status status = GPU_OK;
    all.cursors = &c;
    for (gpu_pending *n; status == GPU_OK && (n = next_of(&c)) != NULL;) {
        if (n->is_left && !also_left)
            continue;
        if (must_settle(n))
            status =
                settle_with(n->out.storage, also_left ? WITH_ALL : WITH_RECENT);
        else if (n->is_kept)
            let_go(n);
    }
    all.cursors = c.outer;
    return status;
}

gpu_status gpu_settle_all(void)
{
    return settle_list(1);
}

gpu_status gpu_settle_recent(void)
{
    return settle_list(0);
}

void gpu_leave_waiting(void)
{
    cursor c = begin_list();
    all.cursors = &c;
    for (gpu_pending *n; (n = next_of(&c)) != NULL;) {
        n->is_left = 1;
        if (n->is_kept)
            let_go(n);
    }
    all.cursors = c.outer;
}

void gpu_drop_waiting(void)
{
    while (all.first) {
        gpu_matrix held = all.first->out;
        gpu_retain(&held);
        end_waiting(held.storage);
        gpu_release(&held);
    }
}

void gpu_settle_for_room(void)
{
    cursor c = begin_list();
    all.cursors = &c;
    all.makes_room = 1;
    for (gpu_pending *n; (n = next_of(&c)) != NULL;)
        if (must_settle(n))
            settle(n->out.storage); /* what cannot goes on waiting */
    all.makes_room = 0;
    all.cursors = c.outer;
}

int gpu_is_making_room(void)
{
    return all.makes_room;
}

/* --- recording ------------------------------------------------------------ */

/* Is there memory for all that waits, so many bytes more, and the operands of
 * what comes next? The limit is looked at each time; the device, which takes
 * its time to answer, is asked for a quarter more than there is so far. */
static int has_room(gpu_device *d, size_t bytes)
{
    size_t need = d->waiting + 3 * bytes, more = (d->live + need) / 4;
    if (d->live + need <= d->roomy)
        return !d->is_cpu || need <= gpu_room_left();
    if (!gpu_has_room(d, need + more))
        return gpu_has_room(d, need);
    d->roomy = d->live + need + more;
    return 1;
}

/* Where memory is short nothing waits, so that no operand stays for it. */
static int find_room(gpu_device *d, size_t bytes)
{
    if (has_room(d, bytes))
        return 1;
    if (d->waiting == 0)
        return 0;
    gpu_settle_all(); /* what cannot goes on waiting */
    return has_room(d, bytes);
}

static int may_wait(const gpu_device *d, int64_t elements)
{
    int64_t least = d->is_cpu ? LEAST_ON_CPU : LEAST_ON_GPU;
    if (all.fusion == GPU_FUSION_OFF || elements == 0 || gpu_collections > 0 ||
        gpu_through(d))
        return 0;
    return elements >= least || all.fusion == GPU_FUSION_ALWAYS;
}

int gpu_may_record_product(gpu_device *d, const gpu_kernel *k, gpu_dtype type,
                           int64_t elements, double flops)
{
    int is_worth_it = k->has_epilogue && flops <= MOST_FLOPS &&
                      (flops >= LEAST_FLOPS || elements >= LEAST_OF_PRODUCT);
    return may_wait(d, elements) && !gpu_must_check() &&
           (is_worth_it || all.fusion == GPU_FUSION_ALWAYS) &&
           find_room(d, (size_t)elements * gpu_dtype_size(type));
}

int gpu_may_record_random(gpu_device *d, gpu_dtype type, int64_t elements)
{
    return d->backend->draws && type != GPU_BOOL && may_wait(d, elements) &&
           find_room(d, (size_t)elements * gpu_dtype_size(type));
}

int gpu_may_record(const gpu_program *p, gpu_device *d, gpu_dtype type,
                   int64_t elements)
{
    return p->inputs > 0 && may_wait(d, elements) &&
           (type == GPU_BOOL || type == (gpu_dtype)p->compute ||
            p->length == 0) &&
           !gpu_uses_places(p) && !is_alone(p) &&
           find_room(d, (size_t)elements * gpu_dtype_size(type));
}

/* What cannot become part of it has to have its elements. */
static gpu_status settle_others(const gpu_program *p,
                                const gpu_matrix *const *in, int64_t rows,
                                int64_t cols)
{
    gpu_composition c;
    gathering none = {.rows = rows,
                      .cols = cols,
                      .compute = p->compute,
                      .draws = in[0]->storage->device->backend->draws};
    for (int i = 0; i < p->inputs; i++)
        if (pending_of(in[i]) && !fits_in(&none, in[i]))
            TRY(gpu_settle(in[i]));
    gathering g = gather_with(p, in, rows, cols, 1, &c);
    for (int i = 0; i < p->inputs && !g.fits; i++)
        TRY(gpu_settle(in[i]));
    return GPU_OK;
}

/* What waits for nothing yet. */
static gpu_status add_pending(const char *name, const gpu_matrix *out,
                              gpu_pending **added)
{
    if (all.count >= MOST_PENDING)
        TRY(gpu_settle_all());
    gpu_pending *n = calloc(1, sizeof *n);
    if (!n)
        return gpu_fail(GPU_MEMORY, "out of memory: %s", name);
    n->name = name;
    n->out = *out;
    n->is_kept = all.executes;
    if (all.ask_line)
        n->line = all.ask_line(all.line_data, &n->source);
    out->storage->references += n->is_kept;
    out->storage->pending = n;
    link_last(n);
    *added = n;
    return GPU_OK;
}

static void take_operands(gpu_pending *n, const gpu_matrix *const *in)
{
    for (int i = 0; i < n->p.inputs; i++) {
        n->in[i] = *in[i];
        gpu_retain(in[i]);
        in[i]->storage->readers++;
    }
}

gpu_status gpu_record(const char *name, const gpu_program *p,
                      const gpu_matrix *const *in, const gpu_matrix *out)
{
    gpu_pending *n;
    TRY(settle_others(p, in, out->rows, out->cols));
    TRY(add_pending(name, out, &n));
    n->p = *p;
    take_operands(n, in);
    return GPU_OK;
}

gpu_status gpu_record_product(const gpu_waiting_product *product,
                              const gpu_matrix factors[2],
                              const gpu_matrix *out)
{
    gpu_pending *n;
    TRY(add_pending("matmul", out, &n));
    gpu_program_start(&n->p, 2);
    n->p.compute = (uint8_t)out->dtype;
    n->product = *product;
    all.products++;
    take_operands(n, (const gpu_matrix *const[]){&factors[0], &factors[1]});
    return GPU_OK;
}

gpu_status gpu_record_random(const gpu_random *r, const gpu_matrix *out)
{
    gpu_pending *n;
    TRY(add_pending("rand", out, &n));
    n->is_drawn = 1;
    n->draw = *r;
    n->p.compute = (uint8_t)out->dtype;
    return GPU_OK;
}
