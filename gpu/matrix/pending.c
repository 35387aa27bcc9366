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
 * Composed is what is computed over one shape, in one type or so that it makes
 * no difference (compose.c), and every bit is that of one operation after the
 * other. A value that something else still
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
#include "pending.h"

#include <stdlib.h>

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

struct gpu_waiting gpu_waiting;

void gpu_set_fusion(gpu_fusion fusion)
{
    gpu_waiting.fusion = fusion;
}

gpu_fusion gpu_get_fusion(void)
{
    return gpu_waiting.fusion;
}

int gpu_is_pending(const gpu_matrix *m)
{
    return m->storage && m->storage->pending;
}

size_t gpu_take_settled_bytes(void)
{
    size_t bytes = gpu_waiting.settled;
    gpu_waiting.settled = 0;
    return bytes;
}

int gpu_execute_all(int on)
{
    int before = gpu_waiting.executes;
    gpu_waiting.executes = on;
    return before;
}

void gpu_on_settling(void (*collect)(void *data, gpu_garbage which), void *data)
{
    gpu_waiting.collect = collect;
    gpu_waiting.data = data;
}

void gpu_on_recording(int (*line)(void *data, const char **source), void *data)
{
    gpu_waiting.ask_line = line;
    gpu_waiting.line_data = data;
}

void gpu_collect_garbage(gpu_garbage which)
{
    if (!gpu_waiting.collect)
        return;
    /* not of finalisers */
    gpu_team through = gpu_compute_together((gpu_team){0});
    double start = gpu_dry ? gpu_now() : 0;
    gpu_collections++;
    if (gpu_dry && gpu_may_collect_dry()) /* others make what is held old */
        which = GPU_GARBAGE_ALL;
    gpu_waiting.collect(gpu_waiting.data, which);
    gpu_collections--;
    if (gpu_dry)
        gpu_dry->collecting += gpu_now() - start;
    gpu_compute_together(through);
}

/* --- the list of what waits ----------------------------------------------- */

static void link_last(gpu_pending *n)
{
    n->previous = gpu_waiting.last;
    n->next = NULL;
    *(gpu_waiting.last ? &gpu_waiting.last->next : &gpu_waiting.first) = n;
    gpu_waiting.last = n;
    gpu_waiting.count++;
    n->out.storage->device->waiting += n->out.storage->bytes;
}

static void unlink_from(gpu_pending *n)
{
    for (gpu_cursor *c = gpu_waiting.cursors; c; c = c->outer)
        if (c->next == n)
            c->next = n->next;
    *(n->previous ? &n->previous->next : &gpu_waiting.first) = n->next;
    *(n->next ? &n->next->previous : &gpu_waiting.last) = n->previous;
    gpu_waiting.count--;
    gpu_waiting.products -= n->product.run != NULL;
    n->out.storage->device->waiting -= n->out.storage->bytes;
}

/* Its storage does not wait any longer, or is no more. */
void gpu_drop_pending(gpu_storage *s)
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

void gpu_let_go(gpu_pending *n)
{
    gpu_matrix kept = n->out;
    n->is_kept = 0;
    gpu_release(&kept);
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
    if (gpu_waiting.fusion == GPU_FUSION_OFF || elements == 0 ||
        gpu_collections > 0 || gpu_through(d))
        return 0;
    return elements >= least || gpu_waiting.fusion == GPU_FUSION_ALWAYS;
}

int gpu_may_record_product(gpu_device *d, const gpu_kernel *k, gpu_dtype type,
                           int64_t elements, double flops)
{
    int is_worth_it = k->has_epilogue && flops <= MOST_FLOPS &&
                      (flops >= LEAST_FLOPS || elements >= LEAST_OF_PRODUCT);
    return may_wait(d, elements) && !gpu_must_check() &&
           (is_worth_it || gpu_waiting.fusion == GPU_FUSION_ALWAYS) &&
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
           !gpu_uses_places(p) && !gpu_is_alone(p) &&
           find_room(d, (size_t)elements * gpu_dtype_size(type));
}

/* What cannot become part of it has to have its elements. */
static gpu_status settle_others(const gpu_program *p,
                                const gpu_matrix *const *in, int64_t rows,
                                int64_t cols)
{
    for (;;) {
        gpu_composition c;
        gpu_gathering g = gpu_gather_operands(p, in, rows, cols, 1, &c);
        if (g.fits)
            return GPU_OK;
        if (g.misfit)
            TRY(gpu_settle_storage(g.misfit));
        for (int i = 0; i < p->inputs && !g.misfit; i++)
            TRY(gpu_settle(in[i]));
    }
}

/* What waits for nothing yet. */
static gpu_status add_pending(const char *name, const gpu_matrix *out,
                              gpu_pending **added)
{
    if (gpu_waiting.count >= MOST_PENDING)
        TRY(gpu_settle_all());
    gpu_pending *n = calloc(1, sizeof *n);
    if (!n)
        return gpu_fail(GPU_MEMORY, "out of memory: %s", name);
    n->name = name;
    n->out = *out;
    n->is_kept = gpu_waiting.executes;
    if (gpu_waiting.ask_line)
        n->line = gpu_waiting.ask_line(gpu_waiting.line_data, &n->source);
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
    n->roundings = (uint8_t)gpu_count_roundings(p, in);
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
    n->roundings = GPU_NEVER_WIDE;
    gpu_waiting.products++;
    take_operands(n, (const gpu_matrix *const[]){&factors[0], &factors[1]});
    return GPU_OK;
}

gpu_status gpu_record_random(const gpu_random *r, const gpu_matrix *out)
{
    gpu_pending *n;
    TRY(add_pending("rand", out, &n));
    n->is_drawn = 1;
    n->roundings = GPU_NEVER_WIDE;
    n->draw = *r;
    n->p.compute = (uint8_t)out->dtype;
    return GPU_OK;
}
