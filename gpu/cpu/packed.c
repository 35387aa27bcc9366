/* matmul `packed`: what `*` takes on the CPU.
 *
 * b is cut into slabs of some hundred rows, whose columns are laid out
 * in groups as wide as a tile of the result (vector_loops.h); the tiles
 * of a group read it from the nearest caches, and a where it lies. What limits
 * it is how many products a core adds up, from a few hundred cubed on to nine
 * tenths. Source: Goto and van de Geijn, Anatomy of high-performance matrix
 * multiplication, 2008.
 *
 * An element is the sum of its products in order, a slab at a time, and of
 * long ones for small results, a length at a time; the cuts follow from the
 * shape alone. So its bits do not depend on how many threads there are, or on
 * which of them came to it. */
#include <string.h>
#include "cpu.h"
#include "vector.h"

enum {
    TINY = 64,         /* products up to which plain loops are faster */
    TILES_DOWN = 16,   /* of the rows one thread takes at a time, at most */
    LEAST_DOWN = 4,    /* and least, */
    CACHE = 768 << 10, /* and bytes of b */
    NEAR = 128 << 10,  /* bytes of a b that stays in the near caches */
    PACKED = 16 << 20, /* bytes that are packed at once, of a and of b */
    ROOM = 16384,      /* bytes for a group without asking for memory */
    FEW = 4096,        /* elements of a result of which k is cut, too, */
    FEW_ROWS = 256,    /* or rows of one that is a vector, */
    LENGTH = 3072,     /* into such lengths, */
    MOST_LENGTHS = 64  /* or longer ones */
};

/* Rows of b in a slab, by type. */
static const int64_t depths[] = {[GPU_F32] = 384, [GPU_F64] = 256};

/* Products of numbers from which several threads take part, for each column of
 * a tile, as a core adds so many at once; waking them takes as long as a third
 * of that. And of products by a vector, all of them. */
static const double WORTH_THREADS_A_COLUMN = 6e4,
                    WORTH_THREADS_BY_VECTOR = 1.5e5;

static double products_of(const gpu_gemm *g)
{
    return (double)g->c.rows * (double)g->c.cols * (double)g->a.cols;
}

static int64_t depth_at_once(const gpu_gemm *g)
{
    return gpu_cpu_smaller(depths[g->c.dtype], g->a.cols);
}

static int64_t tile_cols(const gpu_gemm *g)
{
    return gpu_cpu_vectors->tile_cols[g->c.dtype];
}

/* c = a b as c^T = b^T a^T. */
static gpu_gemm turned_product(const gpu_gemm *g)
{
    gpu_gemm t = *g;
    t.a = gpu_cpu_turned(g->b);
    t.b = gpu_cpu_turned(g->a);
    t.c = gpu_cpu_turned(g->c);
    return t;
}

/* Rows first .. first + n - 1 of a and c. */
static gpu_gemm rows_of(const gpu_gemm *g, int64_t first, int64_t n)
{
    gpu_gemm part = *g;
    part.a = gpu_cpu_part(&g->a, first, 0, n, g->a.cols);
    part.c = gpu_cpu_part(&g->c, first, 0, n, g->c.cols);
    return part;
}

static gpu_gemm columns_of(const gpu_gemm *g, int64_t first, int64_t n)
{
    gpu_gemm part = *g;
    part.b = gpu_cpu_part(&g->b, 0, first, g->b.rows, n);
    part.c = gpu_cpu_part(&g->c, 0, first, g->c.rows, n);
    return part;
}

/* Columns first .. first + n - 1 of a; c is added to but for the first. */
static gpu_gemm depth_of(const gpu_gemm *g, int64_t first, int64_t n)
{
    gpu_gemm part = *g;
    part.a = gpu_cpu_part(&g->a, 0, first, g->a.rows, n);
    part.b = gpu_cpu_part(&g->b, first, 0, n, g->b.cols);
    part.beta = first == 0 ? g->beta : 1;
    return part;
}

/* --- a few elements ------------------------------------------------------- */

#define TINY_PRODUCT(name, type)                                               \
    static void name(const gpu_gemm *p)                                        \
    {                                                                          \
        const type *a = p->a.data, *b = p->b.data;                             \
        type *c = p->c.data;                                                   \
        for (int64_t i = 0; i < p->c.rows; i++)                                \
            for (int64_t j = 0; j < p->c.cols; j++) {                          \
                double sum = 0;                                                \
                for (int64_t k = 0; k < p->a.cols; k++)                        \
                    sum +=                                                     \
                        (double)a[i * p->a.row_stride + k * p->a.col_stride] * \
                        (double)b[k * p->b.row_stride + j * p->b.col_stride];  \
                type *to = &c[i * p->c.row_stride + j * p->c.col_stride];      \
                sum *= p->alpha;                                               \
                *to = (type)(p->beta == 0 ? sum : sum + p->beta * *to);        \
            }                                                                  \
    }
TINY_PRODUCT(tiny_f32, float)
TINY_PRODUCT(tiny_f64, double)

static int is_tiny(const gpu_gemm *p)
{
    int64_t m = p->c.rows, n = p->c.cols, k = p->a.cols;
    return m <= TINY && n <= TINY && k <= TINY && m * n * k <= TINY;
}

/* --- packing --------------------------------------------------------------
 * Groups of `width` columns of v one behind the other, each row by row, the
 * last one filled up with zeros. */

/* More groups than the ways of the nearest cache would drive each other's lines
 * out of it. */
enum { RUN = 16, GROUPS_AT_ONCE = 8 };

/* Where columns lie together: RUN elements of one, then of the next. */
#define PACK_COLUMNS(type)                                          \
    for (int64_t p = 0; p < v->rows; p += RUN)                      \
        for (int64_t j = 0; j < v->cols; j++) {                     \
            const type *from = (type *)v->data + j * v->col_stride; \
            type *to = (type *)room + p * width + j;                \
            int64_t n = gpu_cpu_smaller(RUN, v->rows - p);          \
            for (int64_t l = 0; l < n; l++)                         \
                to[l * width] = from[(p + l) * v->row_stride];      \
        }

static void pack_columns(const gpu_view *v, int64_t width, void *room)
{
    if (v->dtype == GPU_F64)
        PACK_COLUMNS(double)
    else
        PACK_COLUMNS(float)
}

/* Where rows do: of each a run through all groups. */
static void pack_rows(const gpu_view *v, int64_t width, char *room)
{
    size_t size = gpu_cpu_size(v->dtype), row = (size_t)width * size;
    size_t group = row * (size_t)v->rows, bytes = (size_t)v->cols * size;
    size_t whole = bytes / row, rest = bytes % row;
    if (rest > 0)
        memset(room + whole * group, 0, group);
    for (int64_t p = 0; p < v->rows; p++, room += row) {
        const char *from =
            (const char *)v->data + (size_t)p * (size_t)v->row_stride * size;
        char *to = room;
        for (size_t n = whole; n > 0; n--, from += row, to += group)
            memcpy(to, from, row);
        memcpy(to, from, rest);
    }
}

/* Up to GROUPS_AT_ONCE of them. */
static void pack(const gpu_view *v, int64_t width, char *room)
{
    size_t group = (size_t)(v->rows * width) * gpu_cpu_size(v->dtype);
    if (v->col_stride == 1) {
        pack_rows(v, width, room);
        return;
    }
    for (int64_t j = 0; j < v->cols; j += width, room += group) {
        int64_t n = gpu_cpu_smaller(width, v->cols - j);
        gpu_view columns = gpu_cpu_part(v, 0, j, v->rows, n);
        if (n < width)
            memset(room, 0, group);
        pack_columns(&columns, width, room);
    }
}

static size_t group_bytes(const gpu_gemm *g)
{
    return (size_t)(g->a.cols * tile_cols(g)) * gpu_cpu_size(g->c.dtype);
}

/* --- tiles ---------------------------------------------------------------- */

/* Some rows of c and of a, which may have been packed like b, in groups of
 * tile_rows. */
typedef struct band {
    const gpu_gemm *g;
    const char *a; /* NULL: where it lies */
    const char *b; /* its groups; or NULL, where they are whole */
} band;

/* Along the rows of c: the nearest cache keeps a's, the next one b's groups. */
static void multiply_band(const band *d)
{
    const gpu_gemm *g = d->g;
    gpu_cpu_multiply *multiply = gpu_cpu_vectors->tile[g->c.dtype];
    int64_t rows = gpu_cpu_vectors->tile_rows, cols = tile_cols(g);
    int64_t k = g->a.cols, size = (int64_t)gpu_cpu_size(g->c.dtype);
    gpu_cpu_product t = {.k = k,
                         .a_row = d->a ? 1 : g->a.row_stride,
                         .a_col = d->a ? rows : g->a.col_stride,
                         .b_row = d->b ? cols : g->b.row_stride,
                         .c_row = g->c.row_stride,
                         .alpha = g->alpha,
                         .beta = g->beta};
    const char *b = d->b ? d->b : g->b.data;
    int64_t b_step = (d->b ? k : 1) * size;
    for (int64_t i = 0; i < g->c.rows; i += rows) {
        char *c = (char *)g->c.data + i * g->c.row_stride * size;
        t.rows = gpu_cpu_smaller(rows, g->c.rows - i);
        t.a = d->a ? d->a + i * k * size
                   : (const char *)g->a.data + i * g->a.row_stride * size;
        for (int64_t j = 0; j < g->c.cols; j += cols) {
            t.cols = gpu_cpu_smaller(cols, g->c.cols - j);
            t.b = b + j * b_step;
            t.c = c + j * size;
            multiply(&t);
        }
    }
}

/* Is b so small that it is read where it lies? */
static int is_near(const gpu_gemm *g)
{
    const gpu_view *b = &g->b;
    int64_t bytes = b->row_stride * b->rows * (int64_t)gpu_cpu_size(b->dtype);
    return b->col_stride == 1 && b->row_stride >= b->cols && bytes <= NEAR;
}

/* Columns of b that are: whole groups and half ones. */
static int64_t near_columns(const gpu_gemm *g)
{
    int64_t half = tile_cols(g) / 2;
    return is_near(g) ? g->b.cols / half * half : 0;
}

/* A slab's product, on this thread. room is for GROUPS_AT_ONCE groups. */
static void multiply_slab(const gpu_gemm *g, void *room)
{
    int64_t step = GROUPS_AT_ONCE * tile_cols(g), near = near_columns(g);
    gpu_gemm some = columns_of(g, 0, near);
    band d = {.g = &some};
    multiply_band(&d);
    for (int64_t j = near; j < g->c.cols; j += step) {
        some = columns_of(g, j, gpu_cpu_smaller(step, g->c.cols - j));
        d.b = room;
        pack(&some.b, tile_cols(g), room);
        multiply_band(&d);
    }
}

/* The whole, on this thread. */
static gpu_status multiply_alone(const gpu_gemm *g)
{
    _Alignas(64) char few[ROOM];
    void *room = few;
    int64_t k = g->a.cols, depth = depth_at_once(g);
    gpu_gemm first = depth_of(g, 0, depth);
    int64_t groups = gpu_cpu_smaller(GROUPS_AT_ONCE,
                                     gpu_cpu_pieces(g->c.cols, tile_cols(g)));
    size_t bytes = (size_t)groups * group_bytes(&first);
    if (bytes > sizeof few && gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    gpu_status status = GPU_OK;
    for (int64_t l = 0; l < k && status == GPU_OK; l += depth) {
        gpu_gemm slab = depth_of(g, l, gpu_cpu_smaller(depth, k - l));
        if (gpu_cpu_interrupted())
            status = GPU_INTERRUPTED;
        else
            multiply_slab(&slab, room);
    }
    if (room != few)
        gpu_cpu_free(NULL, room, bytes);
    return status;
}

/* --- by a vector: c and b have one column, b's is contiguous -------------- */

static int is_by_vector(const gpu_gemm *g)
{
    return g->c.cols == 1 && (g->a.col_stride == 1 || g->a.row_stride == 1);
}

static void multiply_by_vector(const gpu_gemm *g)
{
    gpu_cpu_product t = {.rows = g->c.rows,
                         .cols = 1,
                         .k = g->a.cols,
                         .a = g->a.data,
                         .a_row = g->a.row_stride,
                         .a_col = g->a.col_stride,
                         .b = g->b.data,
                         .c = g->c.data,
                         .c_row = g->c.row_stride,
                         .alpha = g->alpha,
                         .beta = g->beta};
    gpu_cpu_multiply *const *by = g->a.col_stride == 1
                                      ? gpu_cpu_vectors->rows_by_vector
                                      : gpu_cpu_vectors->columns_by_vector;
    by[g->c.dtype](&t);
}

/* On this thread, a look at the flag after so many products. */
static gpu_status multiply_rows_by_vector(const gpu_gemm *g)
{
    enum { AT_ONCE = 1 << 24, LINE = 64 };
    int64_t step = AT_ONCE / g->a.cols / LINE * LINE;
    step = step < LINE ? LINE : step;
    for (int64_t i = 0; i < g->c.rows; i += step) {
        gpu_gemm rows = rows_of(g, i, gpu_cpu_smaller(step, g->c.rows - i));
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        multiply_by_vector(&rows);
    }
    return GPU_OK;
}

static gpu_status multiply_on_one(const gpu_gemm *g)
{
    return is_by_vector(g) ? multiply_rows_by_vector(g) : multiply_alone(g);
}

/* --- on all threads ------------------------------------------------------- */

/* A product of which all of b is packed, slab by slab, and of a, too, or none;
 * of a product by a vector, nothing. It is cut into blocks. */
typedef struct sharing {
    const gpu_gemm *g;
    char *a, *b;                         /* packed; a may be NULL */
    int64_t rows, cols;                  /* of a piece, where all are alike */
    int64_t tiles, down, groups, across; /* else into how many blocks they go */
    int counted;
} sharing;

/* Bytes of a packed line of `count` columns, which is so many groups. */
static size_t line_bytes(int64_t count, int64_t width, gpu_dtype t)
{
    return (size_t)(gpu_cpu_pieces(count, width) * width) * gpu_cpu_size(t);
}

typedef struct packing {
    const gpu_view *v;
    int64_t width, depth, across; /* of a group, a slab; packed at once */
    char *room;
} packing;

static gpu_status pack_some(void *context, int64_t first, int64_t last)
{
    const packing *p = context;
    const gpu_view *v = p->v;
    int64_t step = GROUPS_AT_ONCE * p->width;
    size_t size = gpu_cpu_size(v->dtype);
    for (int64_t at = first; at < last; at++) {
        int64_t l = at / p->across * p->depth, j = at % p->across * step;
        int64_t k = gpu_cpu_smaller(p->depth, v->rows - l);
        gpu_view some =
            gpu_cpu_part(v, l, j, k, gpu_cpu_smaller(step, v->cols - j));
        pack(&some, p->width,
             p->room + (size_t)l * line_bytes(v->cols, p->width, v->dtype) +
                 (size_t)(j * k) * size);
    }
    return GPU_OK;
}

static gpu_status pack_together(const gpu_view *v, int64_t width, char *room)
{
    packing p = {.v = v, .width = width, .room = room};
    p.depth = depths[v->dtype];
    p.across = gpu_cpu_pieces(v->cols, GROUPS_AT_ONCE * width);
    return gpu_cpu_parallel(gpu_cpu_pieces(v->rows, p.depth) * p.across,
                            v->rows * v->cols, pack_some, &p);
}

/* Where part n of `parts` that share `count` of some size begins, of `all`. */
static int64_t share_begin(int64_t n, int64_t parts, int64_t count,
                           int64_t size, int64_t all)
{
    return gpu_cpu_smaller(count * n / parts * size, all);
}

/* Block n, slab by slab. */
static gpu_status multiply_block(const sharing *s, int64_t n)
{
    const gpu_gemm *g = s->g;
    gpu_dtype t = g->c.dtype;
    int64_t tall = gpu_cpu_vectors->tile_rows, wide = tile_cols(g);
    int64_t row = n % s->down, col = n / s->down, depth = depth_at_once(g);
    int64_t i = share_begin(row, s->down, s->tiles, tall, g->c.rows);
    int64_t j = share_begin(col, s->across, s->groups, wide, g->c.cols);
    int64_t below = share_begin(row + 1, s->down, s->tiles, tall, g->c.rows);
    int64_t right = share_begin(col + 1, s->across, s->groups, wide, g->c.cols);
    size_t a_line = line_bytes(g->c.rows, tall, t);
    size_t b_line = line_bytes(g->c.cols, wide, t);
    gpu_gemm block = rows_of(g, i, below - i);
    block = columns_of(&block, j, right - j);
    for (int64_t l = 0; l < g->a.cols; l += depth) {
        int64_t k = gpu_cpu_smaller(depth, g->a.cols - l);
        size_t line = (size_t)k * gpu_cpu_size(t);
        gpu_gemm slab = depth_of(&block, l, k);
        band d = {.g = &slab,
                  .b = s->b + (size_t)l * b_line + (size_t)j * line};
        if (s->a)
            d.a = s->a + (size_t)l * a_line + (size_t)i * line;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        multiply_band(&d);
    }
    if (s->counted)
        gpu_cpu_advance(block.c.rows * block.c.cols * g->a.cols);
    return GPU_OK;
}

static gpu_status multiply_blocks(void *context, int64_t first, int64_t last)
{
    const sharing *s = context;
    gpu_status status = GPU_OK;
    for (int64_t n = first; n < last && status == GPU_OK; n++)
        status = multiply_block(s, n);
    return status;
}

/* Into blocks of as many columns as the second cache has room for, a slab deep,
 * and fewer where threads would get none; their sizes differ by a tile at most.
 * Returns how many there are. */
static int64_t cut_blocks(sharing *s)
{
    const gpu_gemm *g = s->g;
    int64_t width = tile_cols(g), wanted = 4 * (int64_t)gpu_cpu_threads();
    int64_t group =
        depth_at_once(g) * (int64_t)line_bytes(1, width, g->c.dtype);
    s->tiles = gpu_cpu_pieces(g->c.rows, gpu_cpu_vectors->tile_rows);
    s->groups = gpu_cpu_pieces(g->c.cols, width);
    int64_t tiles = gpu_cpu_pieces(s->tiles, wanted);
    tiles =
        tiles < LEAST_DOWN ? LEAST_DOWN : gpu_cpu_smaller(tiles, TILES_DOWN);
    s->down = gpu_cpu_pieces(s->tiles, tiles);
    int64_t across = gpu_cpu_pieces(s->groups, CACHE / group);
    int64_t least = gpu_cpu_smaller(gpu_cpu_pieces(wanted, s->down), s->groups);
    s->across = across > least ? across : least;
    return s->down * s->across;
}

static gpu_status share_blocks(sharing *s)
{
    gpu_view a = gpu_cpu_turned(s->g->a);
    int64_t products = s->g->c.rows * s->g->c.cols * s->g->a.cols;
    gpu_status status = GPU_OK;
    if (s->a)
        status = pack_together(&a, gpu_cpu_vectors->tile_rows, s->a);
    if (status == GPU_OK)
        status = gpu_cpu_parallel(cut_blocks(s), products, multiply_blocks, s);
    return status;
}

/* Of so many columns, those that have room when they are packed, k deep: some
 * groups. */
static int64_t at_once(const gpu_gemm *g, int64_t k, int64_t width,
                       int64_t count)
{
    int64_t group = k * (int64_t)line_bytes(1, width, g->c.dtype);
    return gpu_cpu_smaller(PACKED / group, gpu_cpu_pieces(count, width)) *
           width;
}

/* The sizes of what is packed at once. */
typedef struct portions {
    int64_t k, rows, cols;
    size_t a, b; /* bytes; a may be 0 */
} portions;

/* Rows of a whose elements do not lie together are packed, too. */
static portions cut_portions(const gpu_gemm *g)
{
    gpu_dtype t = g->c.dtype;
    int64_t tall = gpu_cpu_vectors->tile_rows, wide = tile_cols(g);
    int64_t most = PACKED / (int64_t)line_bytes(GROUPS_AT_ONCE * wide, wide, t);
    portions p = {gpu_cpu_smaller(most / depths[t] * depths[t], g->a.cols),
                  g->c.rows, g->c.cols, 0, 0};
    p.cols = at_once(g, p.k, wide, g->c.cols);
    p.b = (size_t)p.k * line_bytes(p.cols, wide, t);
    if (g->a.col_stride != 1) {
        p.rows = at_once(g, p.k, tall, g->c.rows);
        p.a = (size_t)p.k * line_bytes(p.rows, tall, t);
    }
    return p;
}

/* Of columns whose b has room, and of a k, too. */
static gpu_status share_portion(const gpu_gemm *g, const portions *p,
                                sharing *s)
{
    gpu_status status = pack_together(&g->b, tile_cols(g), s->b);
    for (int64_t i = 0; i < g->c.rows && status == GPU_OK; i += p->rows) {
        gpu_gemm part = rows_of(g, i, gpu_cpu_smaller(p->rows, g->c.rows - i));
        s->g = &part;
        status = share_blocks(s);
    }
    return status;
}

static gpu_status share_columns(const gpu_gemm *g, const portions *p,
                                sharing *s)
{
    gpu_status status = GPU_OK;
    for (int64_t j = 0; j < g->c.cols && status == GPU_OK; j += p->cols) {
        gpu_gemm part =
            columns_of(g, j, gpu_cpu_smaller(p->cols, g->c.cols - j));
        status = share_portion(&part, p, s);
    }
    return status;
}

static gpu_status multiply_together(const gpu_gemm *g)
{
    portions p = cut_portions(g);
    void *room;
    if (gpu_cpu_alloc(NULL, p.a + p.b, &room) != GPU_OK)
        return GPU_MEMORY;
    sharing s = {.b = room, .a = p.a ? (char *)room + p.b : NULL};
    gpu_status status = GPU_OK;
    s.counted = gpu_cpu_begin_stage(g->c.rows * g->c.cols * g->a.cols);
    for (int64_t l = 0; l < g->a.cols && status == GPU_OK; l += p.k) {
        gpu_gemm part = depth_of(g, l, gpu_cpu_smaller(p.k, g->a.cols - l));
        status = share_columns(&part, &p, &s);
    }
    gpu_cpu_end_stage(s.counted);
    gpu_cpu_free(NULL, room, p.a + p.b);
    return status;
}

/* Where one block has all rows, nothing that is packed is shared. */
static gpu_status multiply_some_columns(void *context, int64_t first,
                                        int64_t last)
{
    const sharing *s = context;
    int64_t j = first * s->cols,
            end = gpu_cpu_smaller(last * s->cols, s->g->c.cols);
    gpu_gemm columns = columns_of(s->g, j, end - j);
    return multiply_alone(&columns);
}

static int is_low(const gpu_gemm *g)
{
    return g->c.rows <= TILES_DOWN * gpu_cpu_vectors->tile_rows &&
           g->c.cols > g->c.rows;
}

static gpu_status share_low(const gpu_gemm *g)
{
    int64_t groups = gpu_cpu_pieces(g->c.cols, tile_cols(g));
    int64_t wanted = gpu_cpu_pieces(groups, 4 * (int64_t)gpu_cpu_threads());
    sharing s = {.g = g, .cols = gpu_cpu_smaller(wanted, GROUPS_AT_ONCE)};
    s.cols *= tile_cols(g);
    return gpu_cpu_parallel(gpu_cpu_pieces(g->c.cols, s.cols),
                            g->c.rows * g->c.cols * g->a.cols,
                            multiply_some_columns, &s);
}

static gpu_status multiply_some_rows(void *context, int64_t first, int64_t last)
{
    const sharing *s = context;
    int64_t i = first * s->rows,
            end = gpu_cpu_smaller(last * s->rows, s->g->c.rows);
    gpu_gemm rows = rows_of(s->g, i, end - i);
    return multiply_on_one(&rows);
}

/* Where b stays in the near caches of each thread. */
static gpu_status share_near(const gpu_gemm *g)
{
    sharing s = {.g = g, .rows = gpu_cpu_vectors->tile_rows};
    return gpu_cpu_parallel(gpu_cpu_pieces(g->c.rows, s.rows),
                            g->c.rows * g->c.cols * g->a.cols,
                            multiply_some_rows, &s);
}

static gpu_status share_by_vector(const gpu_gemm *g)
{
    enum { LINE = 64 }; /* rows that no cut parts */
    sharing s = {.g = g, .rows = LINE};
    return gpu_cpu_parallel(gpu_cpu_pieces(g->c.rows, s.rows),
                            g->c.rows * g->a.cols, multiply_some_rows, &s);
}

/* --- few elements of many products each ----------------------------------- */

typedef struct lengths {
    const gpu_gemm *g;
    int64_t size; /* of one */
    char *sums;   /* a c for each */
} lengths;

static gpu_view sums_of(const lengths *l, int64_t i)
{
    const gpu_view *c = &l->g->c;
    size_t bytes = (size_t)(c->rows * c->cols) * gpu_cpu_size(c->dtype);
    return (gpu_view){
        l->sums + (size_t)i * bytes, c->dtype, c->rows, c->cols, c->cols, 1};
}

static gpu_status multiply_lengths(void *context, int64_t first, int64_t last)
{
    const lengths *l = context;
    gpu_status status = GPU_OK;
    for (int64_t i = first; i < last && status == GPU_OK; i++) {
        int64_t from = i * l->size;
        gpu_gemm part =
            depth_of(l->g, from, gpu_cpu_smaller(l->size, l->g->a.cols - from));
        part.c = sums_of(l, i);
        part.alpha = 1;
        part.beta = 0;
        status = multiply_on_one(&part);
    }
    return status;
}

/* In order, in f64. */
#define ADD_LENGTHS(type)                                        \
    for (int64_t n = 0; n < count; n++) {                        \
        const type *part = (const type *)l->sums + n * size + e; \
        for (int64_t i = 0; i < some; i++)                       \
            sum[i] += (double)part[i];                           \
    }

static void join_lengths(const lengths *l, int64_t count)
{
    enum { AT_ONCE = 64 };
    const gpu_view *c = &l->g->c;
    int64_t size = c->rows * c->cols;
    for (int64_t e = 0; e < size; e += AT_ONCE) {
        double sum[AT_ONCE] = {0}, old[AT_ONCE] = {0};
        int64_t some = gpu_cpu_smaller(AT_ONCE, size - e);
        if (c->dtype == GPU_F64)
            ADD_LENGTHS(double)
        else
            ADD_LENGTHS(float)
        if (l->g->beta != 0)
            gpu_cpu_load(c, e, some, GPU_F64, old);
        for (int64_t i = 0; i < some; i++)
            sum[i] = l->g->alpha * sum[i] + l->g->beta * old[i];
        gpu_cpu_store(c, e, some, GPU_F64, sum);
    }
}

static int is_long(const gpu_gemm *g)
{
    int64_t most = g->c.cols == 1 ? FEW_ROWS : FEW;
    return g->c.rows <= most && g->c.cols <= most &&
           g->c.rows * g->c.cols <= most && g->a.cols >= 2 * LENGTH;
}

static gpu_status share_lengths(const gpu_gemm *g)
{
    int64_t most = gpu_cpu_pieces(g->a.cols, MOST_LENGTHS);
    lengths l = {.g = g, .size = gpu_cpu_pieces(most, LENGTH) * LENGTH};
    int64_t count = gpu_cpu_pieces(g->a.cols, l.size);
    size_t bytes =
        (size_t)(count * g->c.rows * g->c.cols) * gpu_cpu_size(g->c.dtype);
    void *sums;
    if (gpu_cpu_alloc(NULL, bytes, &sums) != GPU_OK)
        return GPU_MEMORY;
    l.sums = sums;
    gpu_status status = gpu_cpu_parallel(
        count, g->c.rows * g->c.cols * g->a.cols, multiply_lengths, &l);
    if (status == GPU_OK)
        join_lengths(&l, count);
    gpu_cpu_free(NULL, sums, bytes);
    return status;
}

/* --- the product ---------------------------------------------------------- */

/* c's elements lie side by side in its rows. */
static gpu_status multiply(const gpu_gemm *g)
{
    int by_vector = is_by_vector(g);
    if (is_long(g))
        return share_lengths(g);
    double worth = by_vector ? WORTH_THREADS_BY_VECTOR
                             : WORTH_THREADS_A_COLUMN * (double)tile_cols(g);
    if (products_of(g) < worth)
        return multiply_on_one(g);
    if (by_vector)
        return share_by_vector(g);
    if (is_low(g))
        return share_low(g);
    return is_near(g) ? share_near(g) : multiply_together(g);
}

static int is_by_gaps(const gpu_gemm *g)
{
    return is_by_vector(g) && g->b.rows > 1 && g->b.row_stride != 1;
}

static gpu_status multiply_any(void *device, const gpu_gemm *p)
{
    (void)device;
    void *b = NULL, *c = NULL;
    gpu_status status = GPU_OK;
    gpu_gemm g = *p;
    if (is_tiny(p)) {
        (g.c.dtype == GPU_F64 ? tiny_f64 : tiny_f32)(p);
        return GPU_OK;
    }
    if (g.c.rows == 1 || (g.c.col_stride != 1 && g.c.cols > 1))
        g = turned_product(&g);
    gpu_view target = g.c;
    if (g.c.col_stride != 1 && g.c.cols > 1)
        status = gpu_cpu_make_dense(&g.c, g.beta != 0, &c);
    if (status == GPU_OK && is_by_gaps(&g))
        status = gpu_cpu_make_dense(&g.b, 1, &b);
    if (status == GPU_OK)
        status = multiply(&g);
    if (status == GPU_OK && c)
        status = gpu_cpu_copy(&g.c, &target);
    gpu_cpu_free(NULL, b, b ? gpu_cpu_view_bytes(&g.b) : 0);
    gpu_cpu_free(NULL, c, c ? gpu_cpu_view_bytes(&g.c) : 0);
    return gpu_cpu_stop(status);
}

static gpu_status matmul(void *device, const gpu_gemm *g)
{
    gpu_status status = gpu_cpu_gram(device, g, multiply_any);
    return status == GPU_UNSUPPORTED ? multiply_any(device, g) : status;
}

const gpu_kernel gpu_cpu_matmul_packed = {
    .operation = "matmul",
    .name = "packed",
    .idea = "b packed to suit the caches, tiles of c in registers, all cores",
    .needs = "any CPU",
    .precision = "f32",
    .dtypes = 1 << GPU_F32 | 1 << GPU_F64,
    .bound = gpu_cpu_product_bound,
    .matmul = matmul,
};
