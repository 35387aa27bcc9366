/* Work on the host's memory by a device, tile by tile, and elementwise programs
 * so. */
#include "tiles.h"

#include <stdlib.h>

/* Bytes of a tile of one operand: long enough for the bus, few enough for all
 * of it to be on its way out while the next comes in. */
enum { TILE = 32 << 20, LEAST_TILE = 4 << 10, ALIGNED = 256 };

/* Marks: all that came in so far; the beginning and the end of all; what was
 * worked out, and what has gone out, at the last steps. */
enum { IN_READY, START, END_IN, END_OUT, DONE, GONE = DONE + GPU_TILE_SIDES };
_Static_assert(GONE + GPU_TILE_SIDES <= GPU_MARKS, "a mark for each side");

static gpu_device *through;
static size_t told_bytes;

gpu_device *gpu_compute_through(gpu_device *d)
{
    gpu_device *before = through;
    through = d;
    return before;
}

gpu_device *gpu_through(const gpu_device *d)
{
    return through && d->is_cpu && d != through && !gpu_dry ? through : NULL;
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

size_t gpu_tile_room(gpu_device *d)
{
    size_t free = 0, total = 0;
    if (d->backend->memory(d->handle, &free, &total) != GPU_OK || total == 0)
        return SIZE_MAX / 4;
    return free / 2;
}

size_t gpu_tile_bytes(gpu_device *d, int parts)
{
    size_t room = gpu_tile_room(d) / (size_t)parts;
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

static gpu_status bring(const gpu_tile_work *w, int64_t step)
{
    TRY(follow_work(w->device, GPU_LANE_IN, step,
                    w->freed_by ? w->freed_by(w->context, step)
                                : step - w->sides));
    if (w->adds && step >= w->sides)
        TRY(follow(w->device, GPU_LANE_IN, gone(w, step)));
    TRY(w->bring(w->context, step));
    return mark(w->device, GPU_LANE_IN, IN_READY);
}

static gpu_status work(const gpu_tile_work *w, int64_t step)
{
    TRY(follow(w->device, GPU_LANE_WORK, IN_READY));
    if (w->fetch && step >= w->sides)
        TRY(follow(w->device, GPU_LANE_WORK, gone(w, step)));
    TRY(w->work(w->context, step));
    return mark(w->device, GPU_LANE_WORK, DONE + (int)(step % GPU_TILE_SIDES));
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
        TRY(bring(w, step));
        TRY(work(w, step));
        TRY(fetch(w, step));
    }
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

/* Where memory is short a step of another run may be what this is called from,
 * by a finaliser: that has what it fetched before this gives up its own. */
gpu_status gpu_run_tiles(const gpu_tile_work *w)
{
    gpu_device *d = w->device;
    TRY(d->backend->deliver(d->handle, 0));
    gpu_status status = run_steps(w);
    if (status == GPU_OK)
        status = d->backend->deliver(d->handle, 0);
    if (status != GPU_OK)
        d->backend->deliver(d->handle, 1);
    gpu_status joined = join_lanes(d);
    if (joined != GPU_OK) /* then the end of all waits for all */
        d->backend->sync(d->handle);
    return status != GPU_OK ? status : joined;
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

gpu_status gpu_bring_tile(gpu_device *d, const gpu_view *host,
                          const gpu_view *tile)
{
    gpu_view from = *host, to = *tile;
    by_rows(&to, &from);
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
    size_t bytes;
    gpu_matrix side[SIDES];
} mapping;

static gpu_view part_at(const mapping *m, const gpu_view *v, int64_t step)
{
    int64_t i = step / m->across * m->rows, j = step % m->across * m->cols;
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

static gpu_status bring_inputs(void *context, int64_t step)
{
    mapping *m = context;
    for (int i = 0; i < m->p->inputs; i++) {
        gpu_view part = part_at(m, &m->in[i], step);
        gpu_view tile = tile_at(m, &part, i, step);
        if (!is_there(m, i))
            TRY(gpu_bring_tile(m->d, &part, &tile));
    }
    return GPU_OK;
}

static gpu_status map_tile(void *context, int64_t step)
{
    mapping *m = context;
    gpu_view in[GPU_MAX_INPUTS], part = part_at(m, &m->out, step);
    gpu_view out = tile_at(m, &part, m->p->inputs, step);
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

static void cut(mapping *m)
{
    size_t largest = gpu_dtype_size(m->out.dtype);
    for (int i = 0; i < m->p->inputs; i++)
        if (gpu_dtype_size(m->in[i].dtype) > largest)
            largest = gpu_dtype_size(m->in[i].dtype);
    size_t bytes = gpu_tile_bytes(m->d, SIDES * count_tiles(m));
    int64_t elements = (int64_t)(bytes / largest);
    m->cols = smaller(m->out.cols, elements);
    m->rows = smaller(m->out.rows, elements / m->cols);
    m->across = (m->out.cols + m->cols - 1) / m->cols;
    m->bytes = gpu_tile_end((size_t)(m->rows * m->cols) * largest);
}

gpu_status gpu_map_tiles(gpu_device *d, const gpu_program *p, unsigned there,
                         const gpu_view *in, const gpu_view *out)
{
    mapping m = {.d = d, .p = p, .there = there, .out = *out};
    int turns = goes_down(out);
    if (turns)
        m.out = gpu_turned(out);
    for (int i = 0; i < p->inputs; i++)
        m.in[i] = turns ? gpu_turned(&in[i]) : in[i];
    cut(&m);
    gpu_tile_work w = {.device = d,
                       .steps = (m.out.rows + m.rows - 1) / m.rows * m.across,
                       .sides = SIDES,
                       .bring = bring_inputs,
                       .work = map_tile,
                       .fetch = fetch_result,
                       .context = &m};
    gpu_status status = GPU_OK;
    for (int s = 0; s < SIDES && s < w.steps && status == GPU_OK; s++)
        status =
            gpu_create_buffer(d, (size_t)count_tiles(&m) * m.bytes, &m.side[s]);
    if (status == GPU_OK)
        status = gpu_run_tiles(&w);
    for (int s = 0; s < SIDES; s++)
        gpu_release(&m.side[s]);
    return status;
}
