/* Products of what lies in the host's memory, by another device: panels of A
 * and B come, tiles of C are computed and go.
 *
 * Where all of A and B fits they come by turns, and each tile is computed as
 * soon as both its panels are there: half of the arithmetic is done before the
 * last of them is. Where only one of them fits, that stays, and panels of the
 * other come one after the other. So every element crosses the bus once, and
 * tiles can be small. Else the tiles are large: with 2 T flops to an element of
 * a panel of T rows the bus is behind the arithmetic from a few thousand on.
 * Panels have all of the inner dimension, so that sums are those of a product
 * in one piece, as long as two of each and what belongs to them fit; only then
 * it is cut, and a tile of C is added up. What kernels keep about a panel they
 * find again as long as it stays. */
#include "product_tiles.h"
#include "tiles.h"

#include <math.h>
#include <stdlib.h>

/* Rows and columns of a tile of C where a factor stays, SEVERAL where there are
 * two such tiles each way, as longer rows cross the bus faster, and at first
 * where none does; below FEW the inner dimension is cut before they become
 * fewer, to DEPTH at least. What is left beyond the last whole tile is a part
 * of that if it is less than FEW: kernels take another way for such a rest than
 * for the whole. Granules are tiles of any kernel. */
enum { FEW = 2048, SEVERAL = 4096, MANY = 16384, DEPTH = 4096, GRANULE = 256 };

/* Along one side of C: so many tiles, all of one size but for the last. */
typedef struct cuts {
    int64_t all, size, count, largest;
} cuts;

typedef struct multiplying {
    gpu_device *d;
    gpu_gemm p;
    gpu_gemm_place there; /* these are used where they lie */
    int is_chosen, is_short;
    const gpu_kernel **k;
    cuts rows, cols;
    int64_t depth, parts; /* of the inner dimension */
    /* Panels of a and b, and tiles of c, that have memory of their own. */
    int64_t of_a, of_b, of_c;
    gpu_matrix *a, *b, *c;
} multiplying;

/* What a step is about: tile (i, j) of C, part l of the inner dimension. */
typedef struct place {
    int64_t i, j, l, tile;
} place;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t pieces(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}

static cuts cut_side(int64_t all, int64_t size, int64_t least)
{
    cuts c = {.all = all, .size = smaller(all, size)};
    c.count = pieces(all, c.size);
    if (c.count > 1 && all - (c.count - 1) * c.size < least)
        c.count--;
    c.largest = larger(c.size, all - (c.count - 1) * c.size);
    return c;
}

static int64_t size_at(const cuts *c, int64_t i)
{
    return i == c->count - 1 ? c->all - i * c->size : c->size;
}

/* --- the order of steps --------------------------------------------------- */

/* Do all panels stay? */
static int all_stay(const multiplying *m)
{
    return m->parts == 1 && m->of_a == m->rows.count &&
           m->of_b == m->cols.count;
}

/* Row d of the tiles with panels 0 .. d - 1 of b, then column d with 0 .. d of
 * a; behind the largest square, what is left. */
static place in_shells(int64_t down, int64_t across, int64_t tile)
{
    int64_t side = smaller(down, across), rest = tile - side * side;
    place at = {.tile = tile};
    if (rest >= 0) {
        at.i = down > across ? side + rest / across : rest % down;
        at.j = down > across ? rest % across : side + rest / down;
        return at;
    }
    int64_t d = (int64_t)sqrt((double)tile);
    rest = tile - d * d;
    at.i = rest < d ? d : rest - d;
    at.j = rest < d ? rest : d;
    return at;
}

/* Where panels come and go those of b stay for all of a column of tiles, as
 * long as they are in one part. */
static place place_of(const multiplying *m, int64_t step)
{
    int64_t tile = step / m->parts;
    if (all_stay(m))
        return in_shells(m->rows.count, m->cols.count, tile);
    return (place){tile % m->rows.count, tile / m->rows.count, step % m->parts,
                   tile};
}

/* Is the step the first that needs the panel, and which of a's, or b's, is it
 * in the order of their coming? */
static int needs_a(const multiplying *m, place at)
{
    if (m->there.a)
        return 0;
    return m->parts > 1 || at.j == 0 || m->of_a < m->rows.count;
}

static int needs_b(const multiplying *m, place at)
{
    if (m->there.b)
        return 0;
    return m->parts > 1 || at.i == 0;
}

static int64_t panel_of_a(const multiplying *m, place at)
{
    return m->parts > 1              ? at.tile * m->parts + at.l
           : m->of_a < m->rows.count ? at.tile
                                     : at.i;
}

static int64_t panel_of_b(const multiplying *m, place at)
{
    return m->parts > 1 ? at.tile * m->parts + at.l : at.j;
}

/* Where a panel of each step is new, that of so many steps before lay there;
 * b's lay there for all of a column. */
static int64_t freed_by(void *context, int64_t step)
{
    const multiplying *m = context;
    place at = place_of(m, step);
    int64_t last = -1;
    if (needs_a(m, at) && panel_of_a(m, at) >= m->of_a)
        last = step - m->of_a;
    if (needs_b(m, at) && panel_of_b(m, at) >= m->of_b)
        last = larger(last, m->parts > 1
                                ? step - m->of_b
                                : (at.j - m->of_b + 1) * m->rows.count - 1);
    return last;
}

/* --- panels and tiles ----------------------------------------------------- */

static gpu_matrix *buffer_of_a(const multiplying *m, place at)
{
    return &m->a[panel_of_a(m, at) % m->of_a];
}

static gpu_matrix *buffer_of_b(const multiplying *m, place at)
{
    return &m->b[panel_of_b(m, at) % m->of_b];
}

static int64_t depth_at(const multiplying *m, place at)
{
    return smaller(m->depth, m->p.a.cols - at.l * m->depth);
}

static gpu_view part_of_a(const multiplying *m, place at)
{
    return gpu_part(&m->p.a, at.i * m->rows.size, at.l * m->depth,
                    size_at(&m->rows, at.i), depth_at(m, at));
}

static gpu_view part_of_b(const multiplying *m, place at)
{
    return gpu_part(&m->p.b, at.l * m->depth, at.j * m->cols.size,
                    depth_at(m, at), size_at(&m->cols, at.j));
}

static gpu_view part_of_c(const multiplying *m, place at)
{
    return gpu_part(&m->p.c, at.i * m->rows.size, at.j * m->cols.size,
                    size_at(&m->rows, at.i), size_at(&m->cols, at.j));
}

static gpu_view tile_of_a(const multiplying *m, place at)
{
    gpu_view part = part_of_a(m, at);
    return m->there.a ? part : gpu_tile_view(&part, buffer_of_a(m, at), 0, 0);
}

static gpu_view tile_of_b(const multiplying *m, place at)
{
    gpu_view part = part_of_b(m, at);
    return m->there.b ? part : gpu_tile_view(&part, buffer_of_b(m, at), 0, 0);
}

static gpu_view tile_of_c(const multiplying *m, place at)
{
    gpu_view part = part_of_c(m, at);
    return m->there.c ? part
                      : gpu_tile_view(&part, &m->c[at.tile % m->of_c], 0, 0);
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
    return m->p.beta == 0 || at.l > 0 || m->there.c
               ? GPU_OK
               : gpu_bring_tile(m->d, &c, &on_c);
}

static gpu_status multiply_panels(void *context, int64_t step)
{
    multiplying *m = context;
    place at = place_of(m, step);
    gpu_gemm p = m->p;
    p.a = tile_of_a(m, at);
    p.b = tile_of_b(m, at);
    p.c = tile_of_c(m, at);
    if (!m->there.a)
        p.a_storage = buffer_of_a(m, at)->storage;
    if (!m->there.b)
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
    if (at.l < m->parts - 1 || m->there.c)
        return GPU_OK;
    gpu_view part = part_of_c(m, at), tile = tile_of_c(m, at);
    return gpu_fetch_tile(m->d, &tile, &part);
}

/* --- sizes ---------------------------------------------------------------- */

static int64_t granules(int64_t size)
{
    return size > GRANULE ? size / GRANULE * GRANULE : size;
}

/* Two of each panel and tile that are not there. */
static double panels(const multiplying *m)
{
    return 2.0 * (!m->there.a + !m->there.b);
}

static double tiles(const multiplying *m)
{
    return m->there.c ? 0 : 2;
}

/* Their elements. */
static double elements(const multiplying *m, int64_t side, int64_t depth)
{
    double s = (double)side;
    return panels(m) * s * (double)depth + tiles(m) * s * s;
}

/* Elements of all that has memory. */
static double all_elements(const multiplying *m)
{
    double rows = (double)m->rows.largest, cols = (double)m->cols.largest;
    double of_a = m->there.a ? 0 : rows * (double)m->of_a;
    double of_b = m->there.b ? 0 : cols * (double)m->of_b;
    return (double)m->depth * (of_a + of_b) +
           (m->there.c ? 0 : rows * cols * (double)m->of_c);
}

/* Tiles of so many rows and columns, all panels of a and b or two of them. */
static void cut_sides(multiplying *m, int64_t side, int64_t least, int a_stays,
                      int b_stays)
{
    m->rows = cut_side(m->p.c.rows, side, least);
    m->cols = cut_side(m->p.c.cols, side, least);
    m->of_a = a_stays ? m->rows.count : smaller(2, m->rows.count);
    m->of_b = b_stays ? m->cols.count : smaller(2, m->cols.count);
    m->of_c = smaller(GPU_TILE_SIDES, m->rows.count * m->cols.count);
}

static void turn(multiplying *m)
{
    gpu_gemm p = m->p;
    gpu_gemm_place there = m->there;
    m->p.a = gpu_turned(&p.b);
    m->p.b = gpu_turned(&p.a);
    m->p.c = gpu_turned(&p.c);
    m->p.a_storage = p.b_storage;
    m->p.b_storage = p.a_storage;
    m->there.a = there.b;
    m->there.b = there.a;
}

/* Both factors stay, or the smaller one, which is a then, as is one that is
 * there; 0: that does not fit. */
static int cut_to_stay(multiplying *m, int64_t side, double room)
{
    cut_sides(m, side, side, 1, 1);
    if (all_elements(m) <= room)
        return 1;
    if (m->there.b || (m->p.b.cols < m->p.a.rows && !m->there.a))
        turn(m);
    cut_sides(m, side, side, 1, 0);
    return all_elements(m) <= room;
}

/* Neither does. */
static void cut_to_stream(multiplying *m, int64_t side, int64_t least,
                          double room, int is_told)
{
    int64_t few = least, shallow = smaller(m->depth, DEPTH);
    while (side > few && elements(m, side + few, m->depth) > room)
        side /= 2;
    while (side > GRANULE && elements(m, 2 * side, shallow) > room)
        side /= 2;
    while (side > 1 && elements(m, 2 * side, 1) > room)
        side /= 2;
    if (is_told && m->depth > 16 * side)
        m->depth = 16 * side;
    few = smaller(side, few);
    double most = (double)(side + few);
    double fits = (room / most - tiles(m) * most) / panels(m);
    if ((double)m->depth > fits && fits >= 1)
        m->depth = granules((int64_t)fits);
    cut_sides(m, side, few, 0, 0);
    m->of_c = smaller(2, m->of_c);
    m->parts = pieces(m->p.a.cols, m->depth);
    if (m->parts > 1)
        m->of_a = m->of_b = 2;
}

/* Kernels take about as much again for what they work out of panels. Where a
 * test tells the size of tiles, that is C's. */
static void cut(multiplying *m)
{
    int64_t size = (int64_t)gpu_dtype_size(m->p.c.dtype), side = MANY;
    int64_t told = (int64_t)gpu_told_tile_bytes() / size;
    double room = (double)gpu_tile_room(m->d) / 2 / (double)size;
    if (told > 0)
        for (side = 1; (2 * side) * (2 * side) <= told;)
            side *= 2;
    int are_several = smaller(m->p.c.rows, m->p.c.cols) >= 2 * SEVERAL;
    int64_t least = smaller(side, are_several ? SEVERAL : FEW);
    m->depth = m->p.a.cols;
    m->parts = 1;
    if (!cut_to_stay(m, least, room))
        cut_to_stream(m, side, least, room, told > 0);
}

/* --- memory --------------------------------------------------------------- */

static gpu_status make(const multiplying *m, int64_t elements_each,
                       int64_t count, gpu_matrix **list)
{
    size_t bytes = (size_t)elements_each * gpu_dtype_size(m->p.c.dtype);
    *list = calloc((size_t)count, sizeof **list);
    if (!*list)
        return gpu_fail(GPU_MEMORY, "out of memory: matmul");
    for (int64_t i = 0; i < count; i++)
        TRY(gpu_create_buffer(m->d, bytes, &(*list)[i]));
    return GPU_OK;
}

static gpu_status make_buffers(multiplying *m)
{
    if (!m->there.a)
        TRY(make(m, m->rows.largest * m->depth, m->of_a, &m->a));
    if (!m->there.b)
        TRY(make(m, m->cols.largest * m->depth, m->of_b, &m->b));
    return m->there.c
               ? GPU_OK
               : make(m, m->rows.largest * m->cols.largest, m->of_c, &m->c);
}

static void release(gpu_matrix *list, int64_t count)
{
    for (int64_t i = 0; list && i < count; i++)
        gpu_release(&list[i]);
    free(list);
}

gpu_status gpu_multiply_tiles(gpu_device *d, const gpu_gemm *p,
                              gpu_gemm_place there, int is_chosen,
                              const gpu_kernel **k)
{
    multiplying m = {
        .d = d, .p = *p, .there = there, .is_chosen = is_chosen, .k = k};
    cut(&m);
    gpu_tile_work w = {.device = d,
                       .steps = m.rows.count * m.cols.count * m.parts,
                       .sides = m.parts > 1 ? 2 : (int)m.of_c,
                       .adds = p->beta != 0,
                       .bring = bring_panels,
                       .work = multiply_panels,
                       .fetch = fetch_tile,
                       .freed_by = freed_by,
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
    release(m.a, m.of_a);
    release(m.b, m.of_b);
    release(m.c, m.of_c);
    return status;
}
