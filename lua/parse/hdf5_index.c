/* The structures by which newer HDF5 files find chunks, links and attributes:
 * fixed and extensible arrays, trees of version 2 and fractal heaps. Nothing is
 * walked further than the file is long. Source: The HDF Group, HDF5 file format
 * specification 3.0, III.A.2, III.G and VII.C to VII.D. */
#include "hdf5_parts.h"

#include <string.h>

enum {
    PREFIX = 14,
    CHECKSUM = 4
}; /* of a block of an array: signature,
    * version, client, the array's address */

static int log_2(uint64_t x)
{
    return x > 0 ? 63 - __builtin_clzll(x) : 0;
}

/* A block that begins with the signature, and has so many bytes. */
static const unsigned char *find_block(const lumat_hdf *h, uint64_t address,
                                       const char *signature, uint64_t bytes)
{
    const unsigned char *p = find(h, address, bytes);
    return p != NULL && memcmp(p, signature, 4) == 0 ? p : NULL;
}

/* Is bit i set, the first one highest? */
static int has_bit(const unsigned char *bits, uint64_t i)
{
    return bits[i / 8] >> (7 - i % 8) & 1;
}

/* --- fixed arrays --------------------------------------------------------- */

int lumat_hdf_fixed_element(const lumat_hdf *h, uint64_t array, uint64_t i,
                            const unsigned char **element, int *bytes)
{
    enum { HEADER = 28 };
    const unsigned char *p = find_block(h, array, "FAHD", HEADER);
    *element = NULL;
    if (p == NULL || p[6] < 8 || p[7] > 62)
        return 0;
    uint64_t size = p[6], page = (uint64_t)1 << p[7], count = get(p + 8, 8);
    uint64_t block = get(p + 16, 8);
    *bytes = (int)size;
    if (i >= count)
        return 0;
    if (block == NOWHERE)
        return 1;
    if (count > h->length)
        return 0; /* each has a byte, at least */
    uint64_t at = PREFIX;
    if (count > page) {
        uint64_t pages = (count + page - 1) / page, bitmap = (pages + 7) / 8;
        p = find_block(h, block, "FADB", PREFIX + bitmap);
        if (p == NULL)
            return 0;
        if (!has_bit(p + PREFIX, i / page))
            return 1;
        at += bitmap + CHECKSUM + i / page * (page * size + CHECKSUM) +
              i % page * size;
    } else {
        at += i * size;
    }
    p = find_block(h, block, "FADB", at + size);
    *element = p != NULL ? p + at : NULL;
    return p != NULL;
}

/* --- extensible arrays ---------------------------------------------------- */

/* What their header says. Behind the first elements, which the index block has,
 * come blocks in groups: group g has 2^(g/2) of them of least 2^((g+1)/2)
 * elements each. The index block knows the blocks of the first groups, and the
 * others by a block a group. */
typedef struct extensible {
    uint64_t size, first, least, page; /* bytes; elements */
    int groups, near;                  /* all of them; those of the first */
    int offset;                        /* bytes of a place in the array */
    uint64_t near_blocks, index;
} extensible;

static int open_extensible(const lumat_hdf *h, uint64_t array, extensible *a)
{
    enum { HEADER = 72 };
    const unsigned char *p = find_block(h, array, "EAHD", HEADER);
    if (p == NULL || p[6] < 8 || p[7] > 62 || p[9] == 0 || p[10] < 2 ||
        p[11] > 31)
        return 0;
    *a = (extensible){.size = p[6],
                      .first = p[8],
                      .least = p[9],
                      .page = (uint64_t)1 << p[11],
                      .groups = 1 + p[7] - log_2(p[9]),
                      .near = 2 * log_2(p[10]),
                      .offset = (p[7] + 7) / 8,
                      .near_blocks = 2 * ((uint64_t)p[10] - 1),
                      .index = get(p + 60, 8)};
    return a->groups >= a->near;
}

/* The element at a place of a block; it is in pages where the block is large.
 */
static const unsigned char *find_in_block(const lumat_hdf *h,
                                          const extensible *a, uint64_t block,
                                          uint64_t i, int is_paged)
{
    uint64_t at = PREFIX + (uint64_t)a->offset;
    if (is_paged)
        at += CHECKSUM + i / a->page * (a->page * a->size + CHECKSUM) +
              i % a->page * a->size;
    else
        at += i * a->size;
    const unsigned char *p = find_block(h, block, "EADB", at + a->size);
    return p != NULL ? p + at : NULL;
}

int lumat_hdf_extensible_element(const lumat_hdf *h, uint64_t array, uint64_t i,
                                 const unsigned char **element, int *bytes)
{
    extensible a;
    *element = NULL;
    if (!open_extensible(h, array, &a))
        return 0;
    *bytes = (int)a.size;
    if (a.index == NOWHERE)
        return 1;
    uint64_t blocks = PREFIX + a.first * a.size, block;
    uint64_t end = blocks + 8 * (a.near_blocks + (uint64_t)(a.groups - a.near));
    const unsigned char *p = find_block(h, a.index, "EAIB", end);
    if (p == NULL)
        return 0;
    if (i < a.first) {
        *element = p + PREFIX + i * a.size;
        return 1;
    }
    i -= a.first;
    int g = log_2(i / a.least + 1), is_paged = 0;
    if (g >= a.groups)
        return 0;
    i -= (((uint64_t)1 << g) - 1) * a.least;
    uint64_t each = a.least << (g + 1) / 2, which = i / each;
    i %= each;
    if (g < a.near) {
        for (int k = 0; k < g; k++)
            which += (uint64_t)1 << k / 2;
        block = which < a.near_blocks ? get(p + blocks + 8 * which, 8) : 0;
    } else {
        uint64_t pages = each > a.page ? each / a.page : 0;
        uint64_t at = PREFIX + (uint64_t)a.offset, count = (uint64_t)1 << g / 2;
        block =
            get(p + blocks + 8 * (a.near_blocks + (uint64_t)(g - a.near)), 8);
        if (block == NOWHERE)
            return 1;
        uint64_t bitmaps = count * ((pages + 7) / 8);
        if (count > h->length / 8 || pages > h->length ||
            (p = find_block(h, block, "EASB", at + bitmaps + 8 * count)) ==
                NULL)
            return 0;
        is_paged = pages > 0;
        if (is_paged && !has_bit(p + at, which * pages + i / a.page))
            return 1;
        block = get(p + at + bitmaps + 8 * which, 8);
    }
    if (block == NOWHERE)
        return 1;
    *element = find_in_block(h, &a, block, i, is_paged);
    return *element != NULL;
}

/* --- trees of version 2 --------------------------------------------------- */

enum { MOST_DEPTH = 16, NODE_HEAD = 6 };

/* A walk over one. */
typedef struct tree_walk {
    const lumat_hdf *h;
    lumat_hdf_record_fn *each;
    void *data;
    size_t node, record;                                /* their bytes */
    int counts[MOST_DEPTH + 1], totals[MOST_DEPTH + 1]; /* bytes of the numbers
                           of records: of a node at a depth, and below it */
    size_t met; /* bytes of nodes: no more than the file has */
    int stopped;
} tree_walk;

/* As many bytes as hold numbers up to `most`. */
static int bytes_for(uint64_t most)
{
    return log_2(most) / 8 + 1;
}

/* How many bytes the numbers beside an address take, at every depth. */
static int set_widths(tree_walk *w, int depth)
{
    enum { FIXED = NODE_HEAD + CHECKSUM };
    uint64_t all = w->node > FIXED ? (w->node - FIXED) / w->record : 0;
    w->counts[0] = bytes_for(all);
    for (int i = 1; i <= depth; i++) {
        size_t pointer =
            8 + (size_t)w->counts[0] + (i > 1 ? (size_t)w->totals[i - 1] : 0);
        if (w->node < FIXED + pointer)
            return 0;
        uint64_t most = (w->node - FIXED - pointer) / (w->record + pointer);
        if (__builtin_mul_overflow(all, most + 1, &all) ||
            __builtin_add_overflow(all, most, &all))
            return 0;
        w->totals[i] = bytes_for(all);
    }
    return 1;
}

static int walk_records(tree_walk *w, uint64_t address, uint64_t count,
                        int depth)
{
    size_t pointer = depth == 0
                         ? 0
                         : 8 + (size_t)w->counts[0] +
                               (depth > 1 ? (size_t)w->totals[depth - 1] : 0);
    uint64_t bytes =
        NODE_HEAD + count * w->record + (depth > 0 ? (count + 1) * pointer : 0);
    w->met += w->node;
    if (count > w->h->length || bytes > w->node || w->met > w->h->length)
        return 0;
    const unsigned char *p =
        find_block(w->h, address, depth > 0 ? "BTIN" : "BTLF", bytes);
    if (p == NULL)
        return 0;
    const unsigned char *record = p + NODE_HEAD;
    const unsigned char *child = record + count * w->record;
    for (uint64_t i = 0; i <= count && !w->stopped; i++) {
        if (depth > 0 &&
            !walk_records(w, get(child + i * pointer, 8),
                          get(child + i * pointer + 8, w->counts[0]),
                          depth - 1))
            return 0;
        if (i < count && !w->stopped)
            w->stopped = !w->each(w->data, record + i * w->record, w->record);
    }
    return 1;
}

int lumat_hdf_each_record(const lumat_hdf *h, uint64_t tree,
                          lumat_hdf_record_fn *each, void *data)
{
    enum { HEADER = 38 };
    const unsigned char *p = find_block(h, tree, "BTHD", HEADER);
    if (p == NULL)
        return 0;
    tree_walk w = {.h = h,
                   .each = each,
                   .data = data,
                   .node = (size_t)get(p + 6, 4),
                   .record = (size_t)get(p + 10, 2)};
    int depth = (int)get(p + 12, 2);
    uint64_t root = get(p + 16, 8), count = get(p + 24, 2);
    if (root == NOWHERE || count == 0)
        return 1;
    return w.record > 0 && depth <= MOST_DEPTH && set_widths(&w, depth) &&
           walk_records(&w, root, count, depth);
}

/* --- fractal heaps -------------------------------------------------------- */

/* A heap's blocks lie in rows: those of the first two are as large as the
 * least one, those of each further row twice as large as in the one before. An
 * object's place counts through all of them. */
typedef struct fractal {
    uint64_t width, least,
        most;  /* blocks of a row; bytes of one with objects */
    int place; /* bytes of a place in the heap */
    int rows;  /* in the outermost block; 0: it has objects */
    uint64_t root;
} fractal;

static uint64_t row_bytes(const fractal *f, int row)
{
    return f->least << (row > 0 ? row - 1 : 0);
}

/* The address of the block with objects that `*place` is in, which then counts
 * from its start; 0: there is none. */
static uint64_t find_heap_block(const lumat_hdf *h, const fractal *f,
                                uint64_t *place, uint64_t *bytes)
{
    enum { HEAD = 13, MOST_LEVELS = 64 };
    uint64_t address = f->root;
    int rows = f->rows;
    *bytes = f->least;
    if (rows == 0)
        *bytes = f->most; /* at most: it is one block */
    for (int level = 0; rows > 0; level++) {
        uint64_t before = f->width * f->least, at = *place;
        int row = at < before ? 0 : log_2(at / before) + 1;
        if (row >= rows || row > 40 || level > MOST_LEVELS)
            return 0;
        if (row > 0)
            at -= before << (row - 1);
        uint64_t size = row_bytes(f, row), which = at / size;
        which += (uint64_t)row * f->width;
        uint64_t entry = HEAD + (uint64_t)f->place + 8 * which;
        const unsigned char *p = find_block(h, address, "FHIB", entry + 8);
        if (p == NULL || which / f->width != (uint64_t)row)
            return 0;
        address = get(p + entry, 8);
        *place = at % size;
        *bytes = size;
        rows = size <= f->most ? 0 : log_2(size) - log_2(before) + 1;
    }
    return address;
}

static const unsigned char *find_managed(const lumat_hdf *h, const fractal *f,
                                         uint64_t place, uint64_t length)
{
    uint64_t bytes, address = find_heap_block(h, f, &place, &bytes);
    if (address == 0 || place > bytes || length > bytes - place)
        return NULL;
    const unsigned char *p = find_block(h, address, "FHDB", place + length);
    return p != NULL ? p + place : NULL;
}

const unsigned char *lumat_hdf_find_in_heap(const lumat_hdf *h, uint64_t heap,
                                            const unsigned char *id,
                                            size_t id_bytes, size_t *bytes)
{
    enum { HEADER = 146, MANAGED = 0, TINY = 2 };
    const unsigned char *p = find_block(h, heap, "FRHP", HEADER);
    if (p == NULL || id_bytes < 1 || get(p + 7, 2) != 0)
        return NULL; /* of no such heap, or of one that is packed */
    int kind = id[0] >> 4 & 3;
    if (kind == TINY) {
        *bytes = (size_t)(id[0] & 15) + 1;
        return *bytes < id_bytes ? id + 1 : NULL;
    }
    uint64_t most_managed = get(p + 10, 4);
    int bits = (int)get(p + 128, 2);
    fractal f = {.width = get(p + 110, 2),
                 .least = get(p + 112, 8),
                 .most = get(p + 120, 8),
                 .place = (bits + 7) / 8,
                 .root = get(p + 132, 8),
                 .rows = (int)get(p + 140, 2)};
    if (kind != MANAGED || bits > 64 || f.width == 0 || f.least == 0 ||
        f.least > h->length || f.most > UINT32_MAX)
        return NULL;
    int in_block = (log_2(f.most) + 7) / 8, in_object = bytes_for(most_managed);
    int width = in_block < in_object ? in_block : in_object;
    if (id_bytes < 1 + (size_t)f.place + (size_t)width)
        return NULL;
    *bytes = (size_t)get(id + 1 + f.place, width);
    return find_managed(h, &f, get(id + 1, f.place), *bytes);
}
