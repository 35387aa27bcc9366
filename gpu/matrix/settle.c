/* What waits (pending.c) is worked out: one value with what it is made of,
 * several results of one pass, or all there is. */
#include "pending.h"

#include <stdio.h>
#include <string.h>

/* --- one value ------------------------------------------------------------ */

/* n's program, and the product it takes in, if there is one. */
static gpu_status run_composed(gpu_pending *n)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    gpu_composition c;
    gpu_operands_of(n, in);
    gpu_gathering g = gpu_gather_waiting(n, &c);
    gpu_compose_gathered(&g, n->name, &n->p, in, n->out.dtype);
    gpu_pending *p = g.product;
    gpu_status status;
    if (p) {
        p->is_running = 1;
        status = p->product.run(&p->product, p->in, &c,
                                gpu_find_input(&g, &p->out), &n->out);
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
        gpu_waiting.settled += s->bytes;
        gpu_drop_pending(s);
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
        TRY(gpu_settle_storage(s->pending->in[i].storage));
    return GPU_OK;
}

/* Can the product run into n's own memory, and its results go through what was
 * gathered there? Random numbers depend on an element's place in the whole. */
static int takes_in(const gpu_pending *n, const gpu_gathering *g)
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
        gpu_gathering g = gpu_gather_waiting(n, &c);
        if (g.product && !takes_in(n, &g)) {
            TRY(gpu_settle_storage(g.product->out.storage));
            continue;
        }
        if (!has_collected && gpu_has_held(&g)) {
            has_collected = 1;
            gpu_collect_garbage(GPU_GARBAGE_YOUNGEST);
            continue;
        }
        if (!g.fits && !g.misfit)
            return settle_inputs(s);
        gpu_storage *part = g.fits ? gpu_choose_settled(&g) : g.misfit;
        if (!part)
            return GPU_OK;
        TRY(gpu_settle_storage(part));
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
    gpu_operands_of(n, in);
    gpu_gathering g =
        gpu_gather_operands(&n->p, in, n->out.rows, n->out.cols, 0, &c);
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
    if (gpu_waiting.makes_room || !move(s))
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
    return d->backend->joins && !gpu_dry && !n->is_kept &&
           !gpu_waiting.executes && !n->is_running && !n->is_drawn &&
           !n->product.run && n->p.length > 0 &&
           n->out.dtype == (gpu_dtype)n->p.compute &&
           gpu_size(&n->out) >= LEAST_JOINED;
}

static int is_like(const gpu_pending *n, const gpu_pending *m)
{
    const gpu_matrix *a = &n->out, *b = &m->out;
    return a->storage->device == b->storage->device && a->dtype == b->dtype &&
           a->ndim == b->ndim && a->rows == b->rows && a->cols == b->cols &&
           a->row_stride == b->row_stride && a->col_stride == b->col_stride;
}

static gpu_gathering gather_team(const team *t, gpu_composition *c)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    const gpu_pending *first = member(t, 0);
    gpu_operands_of(first, in);
    gpu_gathering g =
        gpu_begin_gathering(&first->p, (gpu_dtype)first->p.compute, in,
                            first->out.rows, first->out.cols, c);
    g.draws = 0;
    for (int i = 0; i < t->count; i++)
        gpu_gather_node(&g, member(t, i));
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
static int is_one_program(const gpu_gathering *g, const team *t)
{
    for (int i = 0; i < g->nodes && g->fits; i++)
        if (!is_member(t, g->node[i]) && gpu_is_held(g, i) &&
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
        int alone = gpu_gather_waiting(m, &c).inputs;
        t->of[t->count++] = m->out;
        gpu_gathering g = gather_team(t, &c);
        if (is_one_program(&g, t) && g.inputs < inputs + alone)
            inputs = g.inputs;
        else
            t->count--;
    }
}

/* Of one program, whose last value is that of the last to join. */
static gpu_status run_program_of(team *t, gpu_gathering *g)
{
    gpu_composition *c = g->c;
    const gpu_matrix *out[MOST_RESULTS];
    char names[GPU_LONGEST_NAME] = "";
    int last = t->count - 1;
    gpu_compose_parts(g, names);
    c->p.extras = (uint8_t)last;
    out[0] = &t->of[last];
    for (int i = 0; i < last; i++) {
        c->p.extra[i] = (uint8_t)g->value[gpu_find_node(g, member(t, i))];
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
    uint8_t was_run[GPU_MOST_NODES];
    gpu_composition c;
    gpu_gathering g = gather_team(t, &c);
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
        gpu_waiting.settled += t->of[i].storage->bytes;
        gpu_drop_pending(t->of[i].storage);
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

/* --- settling, alone and in company -----------------------------------------
 */

/* With whom else is settled now? */
typedef enum company { ALONE, WITH_RECENT, WITH_ALL } company;

static gpu_status settle_held(gpu_storage *s, company who)
{
    team t;
    TRY(settle_parts(s));
    gpu_collect_garbage(GPU_GARBAGE_DUE);
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
    /* where it lies */
    gpu_team through = gpu_compute_together((gpu_team){0});
    gpu_retain(&held);
    gpu_status status = settle_held(s, who);
    gpu_compute_together(through);
    gpu_release(&held);
    return status;
}

gpu_status gpu_settle_storage(gpu_storage *s)
{
    return settle_with(s, ALONE);
}

gpu_status gpu_settle(const gpu_matrix *m)
{
    return gpu_settle_storage(m->storage);
}

gpu_status gpu_settle_readers(const gpu_matrix *m)
{
    gpu_storage *s = m->storage;
    if (!s || s->readers == 0)
        return GPU_OK;
    gpu_matrix held = {.storage = s};
    gpu_retain(&held);
    gpu_collect_garbage(GPU_GARBAGE_YOUNGEST);
    gpu_status status = GPU_OK;
    while (s->readers > 0 && status == GPU_OK) {
        gpu_pending *n = gpu_waiting.first;
        while (gpu_count_reads(n, s) == 0)
            n = n->next;
        gpu_pending *user = gpu_find_user(n);
        status = gpu_settle_storage((user ? user : n)->out.storage);
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

gpu_pending *gpu_find_user(gpu_pending *product)
{
    gpu_pending *found = NULL;
    if (!product->product.run)
        return NULL;
    for (gpu_pending *n = gpu_waiting.first; n; n = n->next) {
        n->follows = n == product || follows(n);
        if (!found && n->follows && must_settle(n))
            found = n;
    }
    return found;
}

/* Is there a product that something takes in? */
static int has_taken(void)
{
    for (const gpu_pending *n = gpu_waiting.first; n; n = n->next)
        if (n->product.run && n->out.storage->readers > 0)
            return 1;
    return 0;
}

gpu_status gpu_settle_products(void)
{
    if (gpu_waiting.products == 0)
        return GPU_OK;
    if (has_taken()) /* so that what takes it in alone holds it */
        gpu_collect_garbage(GPU_GARBAGE_YOUNGEST);
    for (gpu_pending *n = gpu_waiting.first; n;) {
        gpu_pending *user = n->is_left ? NULL : gpu_find_user(n);
        if (!user) {
            n = n->next;
            continue;
        }
        TRY(gpu_settle_storage(user->out.storage));
        n = gpu_waiting.first; /* whatever has ended meanwhile */
    }
    return GPU_OK;
}

/* --- all that waits --------------------------------------------------------
 */

static gpu_cursor begin_list(void)
{
    return (gpu_cursor){gpu_waiting.first, gpu_waiting.cursors};
}

static gpu_pending *next_of(gpu_cursor *c)
{
    gpu_pending *n = c->next;
    c->next = n ? n->next : NULL;
    return n;
}

/* Where more than a few seem to be wanted, some may be garbage that has become
 * old: looking for that costs less than working it out. */
static void collect_before_all(int also_left)
{
    enum { FEW = 4 };
    int wanted = 0;
    gpu_collect_garbage(GPU_GARBAGE_YOUNGEST);
    for (const gpu_pending *n = gpu_waiting.first; n; n = n->next)
        wanted += is_wanted(n) && (also_left || !n->is_left);
    if (wanted > FEW)
        gpu_collect_garbage(GPU_GARBAGE_ALL);
}

static gpu_status settle_list(int also_left)
{
    if (!gpu_waiting.first || (!also_left && gpu_waiting.last->is_left))
        return GPU_OK;
    collect_before_all(also_left);
    gpu_cursor c = begin_list();
    gpu_status status = GPU_OK;
    gpu_waiting.cursors = &c;
    for (gpu_pending *n; status == GPU_OK && (n = next_of(&c)) != NULL;) {
        if (n->is_left && !also_left)
            continue;
        if (must_settle(n))
            status =
                settle_with(n->out.storage, also_left ? WITH_ALL : WITH_RECENT);
        else if (n->is_kept)
            gpu_let_go(n);
    }
    gpu_waiting.cursors = c.outer;
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
    gpu_cursor c = begin_list();
    gpu_waiting.cursors = &c;
    for (gpu_pending *n; (n = next_of(&c)) != NULL;) {
        n->is_left = 1;
        if (n->is_kept)
            gpu_let_go(n);
    }
    gpu_waiting.cursors = c.outer;
}

void gpu_drop_waiting(void)
{
    while (gpu_waiting.first) {
        gpu_matrix held = gpu_waiting.first->out;
        gpu_retain(&held);
        gpu_drop_pending(held.storage);
        gpu_release(&held);
    }
}

void gpu_settle_for_room(void)
{
    gpu_cursor c = begin_list();
    gpu_waiting.cursors = &c;
    gpu_waiting.makes_room = 1;
    for (gpu_pending *n; (n = next_of(&c)) != NULL;)
        if (must_settle(n))
            gpu_settle_storage(
                n->out.storage); /* what cannot goes on waiting */
    gpu_waiting.makes_room = 0;
    gpu_waiting.cursors = c.outer;
}

int gpu_is_making_room(void)
{
    return gpu_waiting.makes_room;
}
