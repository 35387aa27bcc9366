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

/* What a step is about: tile (i, j) of C, part l of the inner dimension. Its
 * panels lie in buffers a and b; where one has to come, what lay there was used
 * last by step freed_by, -1: by none. tile counts the device's own. */
typedef struct place {
    int64_t i, j, l, tile, a, b, freed_by;
    int brings_a, brings_b;
} place;

typedef struct multiplying {
    gpu_device *d;
    gpu_gemm p;
    gpu_gemm_place there; /* these are used where they lie */
    int is_chosen, is_short;
    const gpu_kernel *k;
    cuts rows, cols;
    int64_t depth, parts; /* of the inner dimension */
    /* Panels of a and b, and tiles of c, that have memory of their own. */
    int64_t of_a, of_b, of_c;
    gpu_matrix *a, *b, *c;
    place *plan;
    int64_t steps, tiles; /* of this device */
    int stays;            /* all panels that it brings */
    gpu_gemm tile;        /* that is worked on, and */
    gpu_panels panels;    /* how it is cut */
} multiplying;

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
    place at = {.l = 0};
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

/* Tiles are dealt in the order of columns, `first` being the device's first:
 * so few panels of b are wanted by two devices. Where panels come and go that
 * is the order of work, too: those of b stay for all of a column, as long as
 * they are in one part. */
static void order_tiles(multiplying *m, int64_t first)
{
    int64_t n = 0, down = m->rows.count, left = first / down;
    int64_t across = (first + m->tiles - 1) / down - left + 1;
    for (int64_t t = 0; n < m->tiles; t++) {
        place at = m->stays ? in_shells(down, across, t)
                            : (place){.i = t % down, .j = t / down};
        at.j += left;
        at.tile = n;
        int64_t number = at.j * down + at.i - first;
        if (number >= 0 && number < m->tiles)
            m->plan[m->parts * n++] = at;
    }
}

/* Buffers of panels: which panel lies there, -1: none yet, and the step that
 * used it last. */
typedef struct shelf {
    int64_t *panel, *used;
    int64_t count, next;
} shelf;

/* The buffer of a panel in a step; *brings: it has to come, where what was used
 * longest ago lay. */
static int64_t find_buffer(shelf *s, int64_t panel, int64_t step, int *brings,
                           int64_t *freed_by)
{
    int64_t at = 0;
    while (at < s->count && s->panel[at] != panel)
        at++;
    *brings = at == s->count;
    if (*brings) {
        at = s->next;
        s->next = (s->next + 1) % s->count;
        *freed_by = larger(*freed_by, s->used[at]);
        s->panel[at] = panel;
    }
    s->used[at] = step;
    return at;
}

static void plan_step(const multiplying *m, int64_t step, shelf *a, shelf *b)
{
    place *at = &m->plan[step], *whole = at - step % m->parts;
    *at = *whole;
    at->l = step % m->parts;
    at->freed_by = -1;
    if (!m->there.a)
        at->a = find_buffer(a, at->i * m->parts + at->l, step, &at->brings_a,
                            &at->freed_by);
    if (!m->there.b)
        at->b = find_buffer(b, at->j * m->parts + at->l, step, &at->brings_b,
                            &at->freed_by);
}

static shelf shelf_in(int64_t *memory, int64_t count)
{
    shelf s = {.panel = memory, .used = memory + count, .count = count};
    for (int64_t i = 0; i < 2 * count; i++)
        memory[i] = -1;
    return s;
}

/* The steps of the tiles from `first` on that are the device's. */
static gpu_status plan(multiplying *m, int64_t first)
{
    size_t buffers = 2 * (size_t)(m->of_a + m->of_b);
    int64_t *memory = malloc(buffers * sizeof *memory);
    m->steps = m->tiles * m->parts;
    m->plan = calloc((size_t)m->steps, sizeof *m->plan);
    if (memory && m->plan) {
        shelf a = shelf_in(memory, m->of_a);
        shelf b = shelf_in(memory + 2 * m->of_a, m->of_b);
        order_tiles(m, first);
        for (int64_t step = 0; step < m->steps; step++)
            plan_step(m, step, &a, &b);
    }
    free(memory);
    return memory && m->plan ? GPU_OK
                             : gpu_fail(GPU_MEMORY, "out of memory: matmul");
}

static int64_t freed_by(void *context, int64_t step)
{
    const multiplying *m = context;
    return m->plan[step].freed_by;
}

/* --- panels and tiles ----------------------------------------------------- */

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
    return m->there.a ? part : gpu_tile_view(&part, &m->a[at.a], 0, 0);
}

static gpu_view tile_of_b(const multiplying *m, place at)
{
    gpu_view part = part_of_b(m, at);
    return m->there.b ? part : gpu_tile_view(&part, &m->b[at.b], 0, 0);
}

static gpu_view tile_of_c(const multiplying *m, place at)
{
    gpu_view part = part_of_c(m, at);
    return m->there.c ? part
                      : gpu_tile_view(&part, &m->c[at.tile % m->of_c], 0, 0);
}

static int brings_c(const multiplying *m, place at)
{
    return m->p.beta != 0 && at.l == 0 && !m->there.c;
}

static size_t bytes_of(const multiplying *m, const gpu_view *v)
{
    return (size_t)(v->rows * v->cols) * gpu_dtype_size(m->p.c.dtype);
}

static size_t bytes_brought(void *context, int64_t step)
{
    const multiplying *m = context;
    place at = m->plan[step];
    gpu_view a = part_of_a(m, at), b = part_of_b(m, at), c = part_of_c(m, at);
    return (at.brings_a ? bytes_of(m, &a) : 0) +
           (at.brings_b ? bytes_of(m, &b) : 0) +
           (brings_c(m, at) ? bytes_of(m, &c) : 0);
}

static gpu_status bring_panels(void *context, int64_t step, gpu_tile_part part)
{
    multiplying *m = context;
    place at = m->plan[step];
    gpu_view a = part_of_a(m, at), b = part_of_b(m, at), c = part_of_c(m, at);
    gpu_view on_a = tile_of_a(m, at), on_b = tile_of_b(m, at);
    gpu_view on_c = tile_of_c(m, at);
    if (at.brings_a) {
        gpu_drop_kept(m->a[at.a].storage);
        TRY(gpu_bring_tile(m->d, &a, &on_a, part));
    }
    if (at.brings_b) {
        gpu_drop_kept(m->b[at.b].storage);
        TRY(gpu_bring_tile(m->d, &b, &on_b, part));
    }
    return brings_c(m, at) ? gpu_bring_tile(m->d, &c, &on_c, part) : GPU_OK;
}

static gpu_gemm gemm_of(const multiplying *m, place at)
{
    gpu_gemm p = m->p;
    p.a = tile_of_a(m, at);
    p.b = tile_of_b(m, at);
    p.c = tile_of_c(m, at);
    if (!m->there.a)
        p.a_storage = m->a[at.a].storage;
    if (!m->there.b)
        p.b_storage = m->b[at.b].storage;
    p.beta = at.l > 0 ? 1 : p.beta;
    p.is_short_of_memory = m->is_short;
    return p;
}

static gpu_status multiply_panels(void *context, int64_t step,
                                  gpu_tile_part *part)
{
    multiplying *m = context;
    if (part->number == 0) {
        m->tile = gemm_of(m, m->plan[step]);
        m->panels = gpu_cut_product(m->d, &m->tile, m->is_chosen, &m->k);
    }
    TRY(gpu_run_panel(&m->panels, part->number));
    part->count = m->panels.count;
    m->is_short = m->tile.is_short_of_memory;
    if (part->count == 1)
        gpu_advance(m->tile.c.rows * m->tile.c.cols);
    return GPU_OK;
}

static gpu_status fetch_tile(void *context, int64_t step)
{
    multiplying *m = context;
    place at = m->plan[step];
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
static void cut(multiplying *m, const gpu_team *team)
{
    int64_t size = (int64_t)gpu_dtype_size(m->p.c.dtype), side = MANY;
    int64_t told = (int64_t)gpu_told_tile_bytes() / size;
    double room = (double)gpu_tile_room(team) / 2 / (double)size;
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

/* Of `all` devices the one of that number, from 0 on, gets its share of tiles,
 * and buffers for as many panels as these have. */
static gpu_status begin_share(multiplying *m, int64_t number, int64_t all)
{
    int64_t count = m->rows.count * m->cols.count;
    int64_t first = count * number / all, end = count * (number + 1) / all;
    int64_t down = m->rows.count, across = (end - 1) / down - first / down + 1;
    m->tiles = end - first;
    m->stays = all_stay(m);
    m->of_a = smaller(m->of_a, m->tiles);
    m->of_b = smaller(m->of_b, across);
    m->of_c = smaller(m->of_c, m->tiles);
    TRY(plan(m, first));
    return make_buffers(m);
}

static void end_share(multiplying *m)
{
    release(m->a, m->of_a);
    release(m->b, m->of_b);
    release(m->c, m->of_c);
    free(m->plan);
}

static gpu_tile_work work_of(multiplying *m)
{
    return (gpu_tile_work){.device = m->d,
                           .steps = m->steps,
                           .sides = m->parts > 1 ? 2 : (int)m->of_c,
                           .adds = m->p.beta != 0,
                           .brings = bytes_brought,
                           .bring = bring_panels,
                           .work = multiply_panels,
                           .fetch = fetch_tile,
                           .freed_by = freed_by,
                           .context = m};
}

static gpu_status multiply_all(multiplying *m, int count)
{
    gpu_tile_work works[GPU_MOST_TEAM] = {{.steps = 0}};
    for (int i = 0; i < count; i++) {
        TRY(begin_share(&m[i], i, count));
        works[i] = work_of(&m[i]);
    }
    return gpu_run_tiles(works, count);
}

gpu_status gpu_multiply_tiles(gpu_team *team, const gpu_gemm *p,
                              gpu_gemm_place there, int is_chosen,
                              const gpu_kernel **k)
{
    multiplying m[GPU_MOST_TEAM] = {
        {.p = *p, .there = there, .is_chosen = is_chosen, .k = *k}};
    cut(&m[0], team);
    team->count = (int)smaller(team->count, m->rows.count * m->cols.count);
    for (int i = 0; i < team->count; i++) {
        m[i] = m[0];
        m[i].d = team->devices[i];
    }
    int work = gpu_begin_work("matmul %lldx%lldx%lld through %s%s",
                              (long long)p->c.rows, (long long)p->a.cols,
                              (long long)p->c.cols, team->devices[0]->name,
                              team->count > 1 ? " and others" : "");
    int stage = gpu_begin_stage(m->parts * p->c.rows * p->c.cols);
    gpu_status status = multiply_all(m, team->count);
    gpu_end_stage(stage);
    gpu_end_work(work);
    for (int i = 0; i < team->count; i++)
        end_share(&m[i]);
    *k = m->k;
    return status;
}
