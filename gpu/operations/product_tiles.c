/* Products of what lies in the host's memory, by another device: panels of A
 * and B come, tiles of C are computed and go.
 *
 * Where all of A fits it stays, so that every element crosses the bus once, and
 * tiles can be small: while one is computed the next panels come and the tile
 * before goes. Else the tiles are large: with 2 T flops to an element of a
 * panel of T rows the bus is behind the arithmetic from a few thousand on.
 * Panels have all of the inner dimension, so that sums are those of a product
 * in one piece, as long as two of each and what belongs to them fit; only then
 * it is cut, and a tile of C is added up. What kernels keep about a panel they
 * find again as long as it stays. */
#include "product_tiles.h"
#include "tiles.h"

#include <stdlib.h>

/* Rows and columns of a tile of C where A stays, and at first where it does
 * not; below FEW the inner dimension is cut before they become fewer, to DEPTH
 * at least. Granules are tiles of any kernel. */
enum { FEW = 4096, MANY = 16384, DEPTH = 4096, GRANULE = 256 };

typedef struct multiplying {
    gpu_device *d;
    const gpu_gemm *p;
    int is_chosen, is_short;
    const gpu_kernel **k;
    int64_t rows, cols, depth;   /* of a tile and its panels */
    int64_t down, across, parts; /* tiles; parts of the inner dimension */
    int stays;                   /* all of A: down panels in place of two */
    gpu_matrix *a, b[2], c[2];
} multiplying;

/* What a step is about: tile (i, j) of C, part l of the inner dimension. The
 * panel of B stays for all of a column of tiles, where it is in one part. */
typedef struct place {
    int64_t i, j, l, tile;
} place;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t pieces(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}

static place place_of(const multiplying *m, int64_t step)
{
    int64_t tile = step / m->parts;
    return (place){tile % m->down, tile / m->down, step % m->parts, tile};
}

static gpu_view block(const gpu_view *v, int64_t i, int64_t j, int64_t rows,
                      int64_t cols)
{
    return gpu_part(v, i * rows, j * cols, smaller(rows, v->rows - i * rows),
                    smaller(cols, v->cols - j * cols));
}

static gpu_view part_of_a(const multiplying *m, place at)
{
    return block(&m->p->a, at.i, at.l, m->rows, m->depth);
}

static gpu_view part_of_b(const multiplying *m, place at)
{
    return block(&m->p->b, at.l, at.j, m->depth, m->cols);
}

static gpu_view part_of_c(const multiplying *m, place at)
{
    return block(&m->p->c, at.i, at.j, m->rows, m->cols);
}

/* The number of a panel in the order of their coming, and its buffer, which
 * changes when what is in it does. */
static int64_t panel_of_a(const multiplying *m, place at)
{
    return m->stays       ? at.i
           : m->parts > 1 ? at.tile * m->parts + at.l
           : m->down > 1  ? at.tile
                          : 0;
}

static gpu_matrix *buffer_of_a(const multiplying *m, place at)
{
    int64_t panel = panel_of_a(m, at);
    return &m->a[m->stays ? panel : panel % 2];
}

static gpu_matrix *buffer_of_b(multiplying *m, place at)
{
    int64_t panel = m->parts > 1 ? at.tile * m->parts + at.l : at.j;
    return &m->b[panel % 2];
}

static gpu_view tile_of_a(const multiplying *m, place at)
{
    gpu_view part = part_of_a(m, at);
    return gpu_tile_view(&part, buffer_of_a(m, at), 0, 0);
}

static gpu_view tile_of_b(multiplying *m, place at)
{
    gpu_view part = part_of_b(m, at);
    return gpu_tile_view(&part, buffer_of_b(m, at), 0, 0);
}

static int needs_a(const multiplying *m, place at)
{
    return m->parts > 1 || at.j == 0 || (m->down > 1 && !m->stays);
}

static int needs_b(const multiplying *m, place at)
{
    return m->parts > 1 || at.i == 0;
}

static gpu_view tile_of_c(const multiplying *m, place at)
{
    gpu_view part = part_of_c(m, at);
    return gpu_tile_view(&part, &m->c[at.tile % 2], 0, part.cols);
}

static gpu_status bring_panels(void *context, int64_t step)
{
    multiplying *m = context;
    place at = place_of(m, step);
    gpu_view a = part_of_a(m, at), b = part_of_b(m, at), c = part_of_c(m, at);
    gpu_view on_a = tile_of_a(m, at), on_b = tile_of_b(m, at);
    gpu_view on_c = tile_of_c(m, at);
    if (needs_a(m, at)) {
        gpu_drop_kept(buffer_of_a(m, at)->storage);
        TRY(gpu_bring_tile(m->d, &a, &on_a));
    }
    if (needs_b(m, at)) {
        gpu_drop_kept(buffer_of_b(m, at)->storage);
        TRY(gpu_bring_tile(m->d, &b, &on_b));
    }
    if (m->p->beta == 0 || at.l > 0)
        return GPU_OK;
    TRY(gpu_bring_behind_fetched(m->d));
    return gpu_bring_tile(m->d, &c, &on_c);
}

static gpu_status multiply_panels(void *context, int64_t step)
{
    multiplying *m = context;
    place at = place_of(m, step);
    gpu_gemm p = *m->p;
    p.a = tile_of_a(m, at);
    p.b = tile_of_b(m, at);
    p.c = tile_of_c(m, at);
    p.a_storage = buffer_of_a(m, at)->storage;
    p.b_storage = buffer_of_b(m, at)->storage;
    p.beta = at.l > 0 ? 1 : p.beta;
    p.is_short_of_memory = m->is_short;
    gpu_advance(p.c.rows * p.c.cols);
    TRY(gpu_run_product(m->d, &p, m->is_chosen, m->k));
    m->is_short = p.is_short_of_memory;
    return GPU_OK;
}

static gpu_status fetch_tile(void *context, int64_t step)
{
    multiplying *m = context;
    place at = place_of(m, step);
    if (at.l < m->parts - 1)
        return GPU_OK;
    gpu_view part = part_of_c(m, at), tile = tile_of_c(m, at);
    return gpu_fetch_tile(m->d, &tile, &part);
}

/* --- sizes ---------------------------------------------------------------- */

static int64_t granules(int64_t size)
{
    return size > GRANULE ? size / GRANULE * GRANULE : size;
}

/* Elements of two panels of each side and two tiles. */
static double elements(int64_t side, double depth)
{
    return 4.0 * (double)side * depth + 2.0 * (double)side * (double)side;
}

/* Kernels take about as much again for what they work out of panels. Where a
 * test tells the size of tiles, that is C's. */
static void cut(multiplying *m)
{
    int64_t size = (int64_t)gpu_dtype_size(m->p->c.dtype);
    int64_t told = (int64_t)gpu_told_tile_bytes() / size, side = MANY;
    double room = (double)gpu_tile_room(m->d) / 2 / (double)size;
    double all_of_a = (double)m->p->a.rows * (double)m->p->a.cols;
    m->depth = m->p->a.cols;
    if (told > 0)
        for (side = 1; (2 * side) * (2 * side) <= told;)
            side *= 2;
    int64_t least = smaller(side, FEW);
    m->stays = all_of_a + elements(least, (double)m->depth) <= room;
    if (m->stays)
        side = least;
    while (side > least && elements(side, (double)m->depth) > room)
        side /= 2;
    while (side > GRANULE && elements(side, smaller(m->depth, DEPTH)) > room)
        side /= 2;
    if (told > 0 && m->depth > 16 * side)
        m->depth = 16 * side;
    double depth = (room / (double)side - 2 * (double)side) / 4;
    if ((double)m->depth > depth && depth > 0)
        m->depth = granules((int64_t)depth);
    m->rows = smaller(m->p->c.rows, side);
    m->cols = smaller(m->p->c.cols, side);
    m->down = pieces(m->p->c.rows, m->rows);
    m->across = pieces(m->p->c.cols, m->cols);
    m->parts = pieces(m->p->a.cols, m->depth);
    m->stays = m->stays && m->parts == 1;
}

static gpu_status make(gpu_device *d, int64_t elements_each, gpu_dtype type,
                       gpu_matrix *list, int64_t count)
{
    size_t bytes = (size_t)elements_each * gpu_dtype_size(type);
    for (int64_t i = 0; i < count; i++)
        TRY(gpu_create_buffer(d, bytes, &list[i]));
    return GPU_OK;
}

static int64_t panels_of_a(const multiplying *m)
{
    return m->stays ? m->down : 2;
}

static gpu_status make_buffers(multiplying *m)
{
    gpu_dtype type = m->p->c.dtype;
    m->a = calloc((size_t)panels_of_a(m), sizeof *m->a);
    if (!m->a)
        return gpu_fail(GPU_MEMORY, "out of memory: matmul");
    TRY(make(m->d, m->rows * m->depth, type, m->a, panels_of_a(m)));
    TRY(make(m->d, m->depth * m->cols, type, m->b, 2));
    return make(m->d, m->rows * m->cols, type, m->c, 2);
}

static void end(multiplying *m)
{
    for (int64_t i = 0; m->a && i < panels_of_a(m); i++)
        gpu_release(&m->a[i]);
    free(m->a);
    for (int i = 0; i < 2; i++) {
        gpu_release(&m->b[i]);
        gpu_release(&m->c[i]);
    }
}

gpu_status gpu_multiply_tiles(gpu_device *d, const gpu_gemm *p, int is_chosen,
                              const gpu_kernel **k)
{
    multiplying m = {.d = d, .p = p, .is_chosen = is_chosen, .k = k};
    cut(&m);
    gpu_tile_work w = {.device = d,
                       .steps = m.down * m.across * m.parts,
                       .bring = bring_panels,
                       .work = multiply_panels,
                       .fetch = fetch_tile,
                       .context = &m};
    int work =
        gpu_begin_work("matmul %lldx%lldx%lld through %s", (long long)p->c.rows,
                       (long long)p->a.cols, (long long)p->c.cols, d->name);
    int stage = gpu_begin_stage(m.parts * p->c.rows * p->c.cols);
    gpu_status status = make_buffers(&m);
    if (status == GPU_OK)
        status = gpu_run_tiles(&w);
    gpu_end_stage(stage);
    gpu_end_work(work);
    end(&m);
    return status;
}
