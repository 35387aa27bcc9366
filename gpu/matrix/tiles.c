/* Work on the host's memory by a device, tile by tile, and elementwise programs
 * so. */
#include "tiles.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes of a tile of one operand: long enough for the bus, few enough for all
 * of it to be on its way out while the next comes in. */
enum { TILE = 32 << 20, LEAST_TILE = 4 << 10, ALIGNED = 256 };

/* Marks: all that came in so far; the beginning and the end of all; what was
 * worked out, and what has gone out, at the last steps. */
enum { IN_READY, START, END_IN, END_OUT, DONE, GONE = DONE + GPU_TILE_SIDES };
_Static_assert(GONE + GPU_TILE_SIDES <= GPU_MARKS, "a mark for each side");

static gpu_team through;
static size_t told_bytes;

gpu_team gpu_compute_together(gpu_team team)
{
    gpu_team before = through;
    through = team;
    return before;
}

gpu_device *gpu_compute_through(gpu_device *d)
{
    gpu_team before = gpu_compute_together((gpu_team){d != NULL, {d}});
    return before.count > 0 ? before.devices[0] : NULL;
}

gpu_device *gpu_through(const gpu_device *d)
{
    gpu_device *first = through.count > 0 ? through.devices[0] : NULL;
    return first && d->is_cpu && d != first && !gpu_dry ? first : NULL;
}

gpu_team gpu_team_of(gpu_device *d, int has_operands)
{
    int is_led = through.count > 0 && through.devices[0] == d && !gpu_dry;
    return is_led && !has_operands ? through : (gpu_team){1, {d}};
}

const char *gpu_team_text(const gpu_team *team, char text[GPU_TEAM_TEXT])
{
    size_t used = 0, size = GPU_TEAM_TEXT;
    text[0] = '\0';
    for (int i = 0; i < team->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i > 0 ? ", " : "", team->devices[i]->name);
    return text;
}

/* --- memory --------------------------------------------------------------- */

void gpu_set_tile_bytes(size_t bytes)
{
    told_bytes = bytes;
}

/* By the environment, for tests of the program. */
size_t gpu_told_tile_bytes(void)
{
    static int was_read;
    static size_t asked;
    if (told_bytes > 0)
        return told_bytes;
    if (!was_read) {
        const char *text = getenv("LUMAT_TILE");
        long long bytes = text ? atoll(text) : 0;
        asked = bytes > 0 ? (size_t)bytes : 0;
        was_read = 1;
    }
    return asked;
}

static size_t room_of(gpu_device *d)
{
    size_t free = 0, total = 0;
    if (d->backend->memory(d->handle, &free, &total) != GPU_OK || total == 0)
        return SIZE_MAX / 4;
    return free / 2;
}

size_t gpu_tile_room(const gpu_team *team)
{
    size_t room = SIZE_MAX;
    for (int i = 0; i < team->count; i++) {
        size_t of_this = room_of(team->devices[i]);
        room = of_this < room ? of_this : room;
    }
    return room;
}

size_t gpu_tile_bytes(const gpu_team *team, int parts)
{
    size_t room = gpu_tile_room(team) / (size_t)parts;
    size_t told = gpu_told_tile_bytes(), most = told ? told : TILE;
    if (most > room)
        most = room > LEAST_TILE ? room : LEAST_TILE;
    return most;
}

size_t gpu_tile_end(size_t bytes)
{
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

gpu_status gpu_create_buffer(gpu_device *d, size_t bytes, gpu_matrix *out)
{
    return gpu_create(out, d, GPU_BOOL, 1, (int64_t)bytes, 1);
}

/* --- lanes ---------------------------------------------------------------- */

static gpu_status mark(gpu_device *d, gpu_lane lane, int at)
{
    return d->backend->mark(d->handle, lane, at);
}

static gpu_status follow(gpu_device *d, gpu_lane lane, int at)
{
    return d->backend->follow(d->handle, lane, at);
}

/* Of a step so long ago that its mark is another's by now, the oldest mark
 * there is comes later. */
static gpu_status follow_work(gpu_device *d, gpu_lane lane, int64_t step,
                              int64_t done)
{
    int64_t oldest = step - GPU_TILE_SIDES;
    if (done < 0)
        return GPU_OK;
    return follow(d, lane,
                  DONE +
                      (int)((done > oldest ? done : oldest) % GPU_TILE_SIDES));
}

static int gone(const gpu_tile_work *w, int64_t step)
{
    return GONE + (int)(step % w->sides);
}

static int64_t freed_by(const gpu_tile_work *w, int64_t step)
{
    return w->freed_by ? w->freed_by(w->context, step) : step - w->sides;
}

static gpu_status bring(const gpu_tile_work *w, int64_t step,
                        gpu_tile_part part)
{
    if (part.number == 0)
        TRY(follow_work(w->device, GPU_LANE_IN, step, freed_by(w, step)));
    if (part.number == 0 && w->adds && step >= w->sides)
        TRY(follow(w->device, GPU_LANE_IN, gone(w, step)));
    TRY(w->bring(w->context, step, part));
    return part.number < part.count - 1
               ? GPU_OK
               : mark(w->device, GPU_LANE_IN, IN_READY);
}

static gpu_status work(const gpu_tile_work *w, int64_t step,
                       gpu_tile_part *part)
{
    if (part->number == 0)
        TRY(follow(w->device, GPU_LANE_WORK, IN_READY));
    if (part->number == 0 && w->fetch && step >= w->sides)
        TRY(follow(w->device, GPU_LANE_WORK, gone(w, step)));
    TRY(w->work(w->context, step, part));
    return part->number < part->count - 1
               ? GPU_OK
               : mark(w->device, GPU_LANE_WORK,
                      DONE + (int)(step % GPU_TILE_SIDES));
}

static gpu_status fetch(const gpu_tile_work *w, int64_t step)
{
    if (!w->fetch)
        return GPU_OK;
    TRY(follow_work(w->device, GPU_LANE_OUT, step + 1, step));
    TRY(w->fetch(w->context, step));
    return mark(w->device, GPU_LANE_OUT, gone(w, step));
}

/* What was made for the tiles was made by the lane of work. */
static gpu_status start(gpu_device *d)
{
    TRY(mark(d, GPU_LANE_WORK, START));
    TRY(follow(d, GPU_LANE_IN, START));
    return follow(d, GPU_LANE_OUT, START);
}

static gpu_status run_steps(const gpu_tile_work *w)
{
    TRY(start(w->device));
    for (int64_t step = 0; step < w->steps; step++) {
        TRY(gpu_poll());
        TRY(bring(w, step, (gpu_tile_part){0, 1}));
        for (gpu_tile_part p = {0, 1}; p.number < p.count; p.number++)
            TRY(work(w, step, &p));
        TRY(fetch(w, step));
    }
    return GPU_OK;
}

/* --- several devices ------------------------------------------------------
 * One thread gives them work by turns, all of them the same step. What it waits
 * for are a full ring of buffers on the way to a device, and one that has
 * enough ahead of it (pace). So the turns are short: BAND bytes of what comes,
 * which all of a ring takes, and a part of the work; and what comes for the
 * next step comes between the parts of this one, in step with them, as long as
 * it lies where no part of this step is. */

enum { BAND = 32 << 20 };

typedef struct lane_in {
    int64_t step;       /* what comes is for this one */
    gpu_tile_part next; /* that is to come of it; number = count: none */
} lane_in;

typedef struct together {
    const gpu_tile_work *works;
    int count;
    lane_in in[GPU_MOST_TEAM];
    gpu_tile_part part[GPU_MOST_TEAM]; /* of the step's work */
} together;

static void begin_bringing(together *t, int i, int64_t step)
{
    const gpu_tile_work *w = &t->works[i];
    size_t told = gpu_told_tile_bytes(), band = told ? told : BAND;
    size_t bytes =
        w->brings && step < w->steps ? w->brings(w->context, step) : 0;
    int64_t count = (int64_t)((bytes + band - 1) / band);
    t->in[i].step = step;
    t->in[i].next = (gpu_tile_part){0, count > 0 ? count : 1};
}

/* May what comes for the next step come while `step` is worked on? */
static int comes_early(const gpu_tile_work *w, int64_t step)
{
    return w->sides > 1 && freed_by(w, step + 1) < step;
}

/* Bands by turns until of each device's `share` of all has come; with `early`
 * only what may come while that step is worked on. */
static gpu_status bring_share(together *t, double share, int64_t early)
{
    for (int came = 1; came;) {
        came = 0;
        for (int i = 0; i < t->count; i++) {
            const gpu_tile_work *w = &t->works[i];
            lane_in *in = &t->in[i];
            if (in->step >= w->steps || in->next.number >= in->next.count ||
                (double)in->next.number >= share * (double)in->next.count ||
                (early >= 0 && !comes_early(w, early)))
                continue;
            TRY(gpu_poll());
            TRY(bring(w, in->step, in->next));
            in->next.number++;
            came = 1;
        }
    }
    return GPU_OK;
}

/* The next part of every device's work on the step; *share: of all parts so
 * much has been given. */
static gpu_status work_by_turns(together *t, int64_t step, double *share)
{
    *share = 1;
    for (int i = 0; i < t->count; i++) {
        gpu_tile_part *p = &t->part[i];
        if (step >= t->works[i].steps || p->number >= p->count)
            continue;
        TRY(gpu_poll());
        TRY(work(&t->works[i], step, p));
        p->number++;
        double done = (double)p->number / (double)p->count;
        *share = done < *share ? done : *share;
    }
    return GPU_OK;
}

static gpu_status step_together(together *t, int64_t step)
{
    double share = 0;
    TRY(bring_share(t, 1, -1));
    for (int i = 0; i < t->count; i++) {
        t->part[i] = (gpu_tile_part){0, 1};
        begin_bringing(t, i, step + 1);
    }
    while (share < 1) {
        TRY(work_by_turns(t, step, &share));
        TRY(bring_share(t, share, step));
    }
    for (int i = 0; i < t->count; i++)
        if (step < t->works[i].steps)
            TRY(fetch(&t->works[i], step));
    return GPU_OK;
}

static gpu_status run_together(const gpu_tile_work *works, int count)
{
    together t = {.works = works, .count = count};
    int64_t steps = 0;
    for (int i = 0; i < count; i++) {
        TRY(start(works[i].device));
        begin_bringing(&t, i, 0);
        steps = works[i].steps > steps ? works[i].steps : steps;
    }
    for (int64_t step = 0; step < steps; step++)
        TRY(step_together(&t, step));
    return GPU_OK;
}

/* What is freed behind this, in the order of work, is out of use. */
static gpu_status join_lanes(gpu_device *d)
{
    TRY(mark(d, GPU_LANE_IN, END_IN));
    TRY(follow(d, GPU_LANE_WORK, END_IN));
    TRY(mark(d, GPU_LANE_OUT, END_OUT));
    return follow(d, GPU_LANE_WORK, END_OUT);
}

static gpu_status deliver_all(const gpu_tile_work *works, int count)
{
    for (int i = 0; i < count; i++) {
        gpu_device *d = works[i].device;
        TRY(d->backend->deliver(d->handle, 0));
    }
    return GPU_OK;
}

static gpu_status end_lanes(const gpu_tile_work *w, int give_up)
{
    gpu_device *d = w->device;
    if (give_up)
        d->backend->deliver(d->handle, 1);
    gpu_status status = join_lanes(d);
    if (status != GPU_OK) /* then the end of all waits for all */
        d->backend->sync(d->handle);
    return status;
}

/* Where memory is short a step of another run may be what this is called from,
 * by a finaliser: that has what it fetched before this gives up its own. Of
 * what went wrong the first is told. */
gpu_status gpu_run_tiles(const gpu_tile_work *works, int count)
{
    char why[512];
    TRY(deliver_all(works, count));
    gpu_status status =
        count > 1 ? run_together(works, count) : run_steps(works);
    if (status == GPU_OK)
        status = deliver_all(works, count);
    snprintf(why, sizeof why, "%s", gpu_message());
    int give_up = status != GPU_OK;
    for (int i = 0; i < count; i++) {
        gpu_status ended = end_lanes(&works[i], give_up);
        if (status == GPU_OK && ended != GPU_OK) {
            status = ended;
            snprintf(why, sizeof why, "%s", gpu_message());
        }
    }
    return status == GPU_OK ? GPU_OK : gpu_fail(status, "%s", why);
}

/* --- tiles ---------------------------------------------------------------- */

static gpu_view without_repeats(gpu_view v)
{
    v.rows = v.row_stride == 0 ? 1 : v.rows;
    v.cols = v.col_stride == 0 ? 1 : v.cols;
    return v;
}

static int64_t apart(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Do the elements of a column follow each other nearer than those of a row? */
static int goes_down(const gpu_view *v)
{
    return v->rows > 1 && v->cols > 1 &&
           apart(v->row_stride) < apart(v->col_stride);
}

gpu_view gpu_tile_view(const gpu_view *host, const gpu_matrix *buffer,
                       size_t at, int64_t pitch)
{
    gpu_view once = without_repeats(*host), v = *host;
    v.data = (char *)buffer->storage->data + at;
    v.row_stride = pitch ? pitch : once.cols;
    v.col_stride = 1;
    if (!pitch && goes_down(&once)) {
        v.row_stride = 1;
        v.col_stride = once.rows;
    }
    if (host->row_stride == 0)
        v.row_stride = 0;
    if (host->col_stride == 0)
        v.col_stride = 0;
    return v;
}

/* As the backend wants them, rows side by side: both are turned where not. */
static void by_rows(gpu_view *tile, gpu_view *host)
{
    *tile = without_repeats(*tile);
    *host = without_repeats(*host);
    if (tile->cols > 1 && tile->col_stride != 1) {
        *tile = gpu_turned(tile);
        *host = gpu_turned(host);
    }
    if (tile->rows == 1)
        tile->row_stride = tile->cols;
    if (tile->cols == 1)
        tile->col_stride = 1;
}

static size_t bytes_of(const gpu_view *v)
{
    return (size_t)(v->rows * v->cols) * gpu_dtype_size(v->dtype);
}

static gpu_view rows_of(const gpu_view *v, gpu_tile_part part)
{
    int64_t first = v->rows * part.number / part.count;
    int64_t last = v->rows * (part.number + 1) / part.count;
    return gpu_part(v, first, 0, last - first, v->cols);
}

gpu_status gpu_bring_tile(gpu_device *d, const gpu_view *host,
                          const gpu_view *tile, gpu_tile_part part)
{
    gpu_view from = *host, to = *tile;
    by_rows(&to, &from);
    if (part.count > 1) {
        from = rows_of(&from, part);
        to = rows_of(&to, part);
    }
    if (to.rows == 0)
        return GPU_OK;
    gpu_counted.uploaded += bytes_of(&to);
    return d->backend->bring(d->handle, GPU_LANE_IN, &from, &to);
}

gpu_status gpu_fetch_tile(gpu_device *d, const gpu_view *tile,
                          const gpu_view *host)
{
    gpu_view from = *tile, to = *host;
    by_rows(&from, &to);
    gpu_counted.downloaded += bytes_of(&from);
    return d->backend->fetch(d->handle, GPU_LANE_OUT, &from, &to);
}

/* --- elementwise programs ------------------------------------------------- */

/* So many steps may be under way: one comes, one is worked out and one goes. */
enum { SIDES = 3 };

/* A side of the buffers holds a tile of each input and of the result, each at
 * most so many bytes. */
typedef struct mapping {
    gpu_device *d;
    const gpu_program *p;
    unsigned there; /* see gpu_map_tiles: those have no tiles */
    gpu_view in[GPU_MAX_INPUTS], out;
    int64_t rows, cols, across; /* of a tile; tiles in a row */
    int64_t first, steps;       /* the device's, of all */
    size_t bytes;
    gpu_matrix side[SIDES];
} mapping;

static gpu_view part_at(const mapping *m, const gpu_view *v, int64_t step)
{
    int64_t number = m->first + step;
    int64_t i = number / m->across * m->rows, j = number % m->across * m->cols;
    int64_t down = v->rows - i, right = v->cols - j;
    return gpu_part(v, i, j, down < m->rows ? down : m->rows,
                    right < m->cols ? right : m->cols);
}

static int is_there(const mapping *m, int slot)
{
    return (int)(m->there >> slot & 1u);
}

static gpu_view tile_at(const mapping *m, const gpu_view *part, int slot,
                        int64_t step)
{
    size_t at = 0;
    if (is_there(m, slot))
        return *part;
    for (int i = 0; i < slot; i++)
        at += is_there(m, i) ? 0 : m->bytes;
    return gpu_tile_view(part, &m->side[step % SIDES], at, 0);
}

static gpu_status bring_inputs(void *context, int64_t step, gpu_tile_part part)
{
    mapping *m = context;
    for (int i = 0; i < m->p->inputs; i++) {
        gpu_view input = part_at(m, &m->in[i], step);
        gpu_view tile = tile_at(m, &input, i, step);
        if (!is_there(m, i))
            TRY(gpu_bring_tile(m->d, &input, &tile, part));
    }
    return GPU_OK;
}

static gpu_status map_tile(void *context, int64_t step, gpu_tile_part *whole)
{
    mapping *m = context;
    gpu_view in[GPU_MAX_INPUTS], part = part_at(m, &m->out, step);
    gpu_view out = tile_at(m, &part, m->p->inputs, step);
    (void)whole;
    for (int i = 0; i < m->p->inputs; i++) {
        gpu_view of_input = part_at(m, &m->in[i], step);
        in[i] = tile_at(m, &of_input, i, step);
    }
    return m->d->backend->map(m->d->handle, m->p, in, &out);
}

static gpu_status fetch_result(void *context, int64_t step)
{
    mapping *m = context;
    gpu_view part = part_at(m, &m->out, step);
    gpu_view tile = tile_at(m, &part, m->p->inputs, step);
    gpu_advance(part.rows * part.cols);
    return is_there(m, m->p->inputs) ? GPU_OK
                                     : gpu_fetch_tile(m->d, &tile, &part);
}

static int count_tiles(const mapping *m)
{
    int count = 0;
    for (int i = 0; i <= m->p->inputs; i++)
        count += !is_there(m, i);
    return count;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void cut(mapping *m, const gpu_team *team)
{
    size_t largest = gpu_dtype_size(m->out.dtype);
    for (int i = 0; i < m->p->inputs; i++)
        if (gpu_dtype_size(m->in[i].dtype) > largest)
            largest = gpu_dtype_size(m->in[i].dtype);
    size_t bytes = gpu_tile_bytes(team, SIDES * count_tiles(m));
    int64_t elements = (int64_t)(bytes / largest);
    m->cols = smaller(m->out.cols, elements);
    m->rows = smaller(m->out.rows, elements / m->cols);
    m->across = (m->out.cols + m->cols - 1) / m->cols;
    m->bytes = gpu_tile_end((size_t)(m->rows * m->cols) * largest);
}

/* Of `all` devices the one of that number, from 0 on, gets its share of steps,
 * and sides for them. */
static gpu_status begin_share(mapping *m, int64_t number, int64_t all)
{
    int64_t steps = (m->out.rows + m->rows - 1) / m->rows * m->across;
    m->first = steps * number / all;
    m->steps = steps * (number + 1) / all - m->first;
    for (int s = 0; s < SIDES && s < m->steps; s++)
        TRY(gpu_create_buffer(m->d, (size_t)count_tiles(m) * m->bytes,
                              &m->side[s]));
    return GPU_OK;
}

static gpu_status map_all(mapping *m, int count)
{
    gpu_tile_work works[GPU_MOST_TEAM] = {{.steps = 0}};
    for (int i = 0; i < count; i++) {
        TRY(begin_share(&m[i], i, count));
        works[i] = (gpu_tile_work){.device = m[i].d,
                                   .steps = m[i].steps,
                                   .sides = SIDES,
                                   .bring = bring_inputs,
                                   .work = map_tile,
                                   .fetch = fetch_result,
                                   .context = &m[i]};
    }
    return gpu_run_tiles(works, count);
}

gpu_status gpu_map_tiles(gpu_team *team, const gpu_program *p, unsigned there,
                         const gpu_view *in, const gpu_view *out)
{
    mapping m[GPU_MOST_TEAM] = {{.p = p, .there = there, .out = *out}};
    int turns = goes_down(out);
    if (turns)
        m->out = gpu_turned(out);
    for (int i = 0; i < p->inputs; i++)
        m->in[i] = turns ? gpu_turned(&in[i]) : in[i];
    cut(m, team);
    int64_t steps = (m->out.rows + m->rows - 1) / m->rows * m->across;
    team->count = (int)smaller(team->count, steps);
    for (int i = 0; i < team->count; i++) {
        m[i] = m[0];
        m[i].d = team->devices[i];
    }
    gpu_status status = map_all(m, team->count);
    for (int i = 0; i < team->count; i++)
        for (int s = 0; s < SIDES; s++)
            gpu_release(&m[i].side[s]);
    return status;
}
