/* HDF5 files: object headers, symbol tables, links, attributes, and datasets
 * in one piece or in chunks. Every address is checked before it is followed,
 * and every walk has an end: a tree's levels fall, and what it has is counted.
 */
#include "hdf5_parts.h"

#include <string.h>
#include <zlib.h>

enum {
    SIGNATURE = 8,
    MOST_MESSAGES = 1 << 14, /* of an object */
    MOST_BLOCKS = 256,       /* its header goes on in */
    MOST_LEVELS = 32,        /* of a tree */
    MOST_RATIO = 1032,       /* deflate gives at most 258 bytes for 2 bits */
    ANYWAY = 1 << 26,        /* bytes that any file may claim */
    /* messages of an object's header */
    DATASPACE = 0x01,
    LINK_INFO = 0x02,
    DATATYPE = 0x03,
    OLD_FILL = 0x04,
    FILL = 0x05,
    LINK = 0x06,
    LAYOUT = 0x08,
    GROUP_INFO = 0x0A,
    FILTERS = 0x0B,
    ATTRIBUTE = 0x0C,
    CONTINUATION = 0x10,
    SYMBOL_TABLE = 0x11,
    ATTRIBUTE_INFO = 0x15,
    SHARED = 2, /* a message's flag: it stands elsewhere */
    /* filters */
    DEFLATE = 1,
    SHUFFLE = 2,
    FLETCHER = 3,
    /* how newer layouts find chunks; 0 is the older tree */
    ONE_CHUNK = 1,
    IN_ORDER = 2,
    NEW_TREE = 5
};

/* --- the start ------------------------------------------------------------ */

int lumat_hdf_open(lumat_hdf *h, const void *bytes, size_t length, char *error,
                   size_t size)
{
    enum { LEAST = 96 };
    size_t at = 0;
    *h = (lumat_hdf){.bytes = bytes, .length = length};
    while (length >= LEAST && at <= length - LEAST &&
           memcmp(h->bytes + at, "\x89HDF\r\n\x1a\n", SIGNATURE) != 0)
        at = at == 0 ? 512 : 2 * at;
    if (length < LEAST || at > length - LEAST)
        return lumat_refuse_data(error, size, "is no HDF5 file, or is cut off");
    const unsigned char *p = h->bytes + at;
    int version = p[8], offsets = version < 2 ? p[13] : p[9];
    int lengths = version < 2 ? p[14] : p[10];
    if (version > 3)
        return lumat_refuse_data(error, size, "is an HDF5 file of version %d",
                                 version);
    if (offsets != 8 || lengths != 8)
        return lumat_refuse_data(
            error, size, "is an HDF5 file whose addresses have %d bytes",
            offsets);
    if (version < 2) {
        p += version == 0 ? 24 : 28;
        h->root = get(p + 4 * 8 + 8, 8);
    } else {
        h->root = get(p + 36, 8);
    }
    h->base = at;
    return 1;
}

/* --- what a message says -------------------------------------------------- */

static int read_dataspace(lumat_hdf_object *o, const unsigned char *p,
                          size_t length)
{
    size_t at = length > 0 && p[0] == 1 ? 8 : 4;
    if (length < at || p[0] < 1 || p[0] > 2 || p[1] > LUMAT_HDF_DIMENSIONS ||
        length - at < 8 * (size_t)p[1])
        return 0;
    o->ndim = p[1];
    o->count = p[0] == 2 && p[3] == 2 ? 0 : 1; /* 2: it has no elements */
    for (int i = 0; i < o->ndim; i++) {
        uint64_t n = get(p + at + 8 * i, 8);
        if (n > INT64_MAX / 64 ||
            __builtin_mul_overflow(o->count, (int64_t)n, &o->count))
            return 0;
        o->sizes[i] = o->most[i] = (int64_t)n;
    }
    if (p[2] & 1) { /* the sizes it may grow to */
        if (length - at < 16 * (size_t)p[1])
            return 0;
        for (int i = 0; i < o->ndim; i++) {
            uint64_t n = get(p + at + 8 * (o->ndim + i), 8);
            o->most[i] = n > INT64_MAX ? INT64_MAX : (int64_t)n;
        }
    }
    return o->count <= INT64_MAX / 64;
}

static int read_datatype(lumat_hdf_object *o, const unsigned char *p,
                         size_t length);

/* Two members of one real type are the parts of complex numbers. */
static int read_compound(lumat_hdf_object *o, const unsigned char *p,
                         size_t length, int version)
{
    lumat_hdf_object part[2] = {{0}};
    size_t at = 8;
    if ((get(p + 1, 2)) != 2)
        return 1;
    for (int i = 0; i < 2; i++) {
        if (at >= length)
            return 0;
        size_t name = strnlen((const char *)p + at, length - at);
        static const char *const names[][2] = {{"real", "r"}, {"imag", "i"}};
        if (name >= length - at ||
            (strcmp((const char *)p + at, names[i][0]) != 0 &&
             strcmp((const char *)p + at, names[i][1]) != 0))
            return 1;
        at += version < 3 ? name + 8 - name % 8 : name + 1;
        at += version == 1 ? 4 + 28 : version == 2 ? 4 : o->width > 255 ? 2 : 1;
        if (at + 8 > length || (p[at] & 15) != 1)
            return 1;
        if (!read_datatype(&part[i], p + at, length - at))
            return 0;
        at += 8 + (part[i].kind == 'f' ? 12 : 4);
    }
    if (part[0].kind != 'f' || part[0].width < 4 || part[1].kind != 'f' ||
        part[0].width != part[1].width || o->width != 2 * part[0].width ||
        part[0].swapped != part[1].swapped)
        return 1;
    o->kind = 'c';
    o->swapped = part[0].swapped;
    return 1;
}

/* A type that is none of those that are read leaves kind 0. */
static int read_datatype(lumat_hdf_object *o, const unsigned char *p,
                         size_t length)
{
    static const int is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (length < 8)
        return 0;
    int of = p[0] & 15, version = p[0] >> 4;
    uint64_t width = get(p + 4, 4);
    o->kind = 0;
    o->width = width <= 1 << 20 ? (int)width : 0;
    o->swapped = (p[1] & 1) == is_little;
    if (o->width == 0)
        return 1;
    if (of == 0 && (width == 1 || width == 2 || width == 4 || width == 8))
        o->kind = p[1] & 8 ? 'i' : 'u';
    else if (of == 1 && (width == 4 || width == 8 || width == 2))
        o->kind = 'f';
    else if (of == 6)
        return read_compound(o, p, length, version);
    else if (of == 7 && width == 8)
        o->kind = 'r';
    else if (of == 8 && width == 1) /* truth values of h5py */
        o->kind = 'u';
    return 1;
}

/* The sizes of chunks, and behind them an element's bytes: n numbers, each of
 * so many bytes. */
static int set_chunks(lumat_hdf_object *o, const unsigned char *p, int n,
                      int width, char *error, size_t size)
{
    uint64_t bytes = get(p + width * (n - 1), width);
    o->layout = o->place == NOWHERE ? LUMAT_HDF_NOWHERE : LUMAT_HDF_CHUNKS;
    for (int i = 0; i < n - 1; i++) {
        o->chunk[i] = (int64_t)get(p + width * i, width);
        if (o->chunk[i] <= 0 ||
            __builtin_mul_overflow(bytes, (uint64_t)o->chunk[i], &bytes))
            return lumat_refuse_data(error, size,
                                     "has a dataset with damaged chunks");
    }
    if (bytes > UINT32_MAX)
        return lumat_refuse_data(error, size, "has chunks of %llu bytes",
                                 (unsigned long long)bytes);
    o->chunk_bytes = (size_t)bytes;
    return 1;
}

/* Of versions 1 and 2, where one piece is as long as its elements are. */
static int read_old_layout(lumat_hdf_object *o, const unsigned char *p,
                           size_t length, char *error, size_t size)
{
    int n = p[1];
    size_t at = p[2] == 0 ? 8 : 16;
    if (length >= at + 4 * (size_t)n && n <= LUMAT_HDF_DIMENSIONS + 1) {
        size_t end = at + 4 * (size_t)n;
        o->place = p[2] == 0 ? 0 : get(p + 8, 8);
        if (p[2] == 1) {
            o->stored = NOWHERE;
            o->layout =
                o->place == NOWHERE ? LUMAT_HDF_NOWHERE : LUMAT_HDF_ONE_PIECE;
            return 1;
        }
        if (p[2] == 2 && n > 1)
            return set_chunks(o, p + at, n, 4, error, size);
        if (p[2] == 0 && length >= end + 4 &&
            length - end - 4 >= get(p + end, 4)) {
            o->layout = LUMAT_HDF_COMPACT;
            o->compact = p + end + 4;
            o->stored = get(p + end, 4);
            return 1;
        }
    }
    return lumat_refuse_data(error, size,
                             "has a dataset with a damaged layout");
}

/* Chunks of version 4 and later, of which the message says how they are found.
 */
static int read_new_chunks(lumat_hdf_object *o, const unsigned char *p,
                           size_t length, char *error, size_t size)
{
    static const unsigned char about[] = {0, 0, 0, 1, 5, 6}; /* bytes of that */
    int n = p[3], width = length > 4 ? p[4] : 0;
    size_t at = 5 + (size_t)(n * width);
    if (n < 2 || n > LUMAT_HDF_DIMENSIONS + 1 || width < 1 || width > 8 ||
        length < at + 1)
        return lumat_refuse_data(error, size,
                                 "has a dataset with a damaged layout");
    const unsigned char *sizes = p + 5;
    o->is_edge_plain = p[2] & 1;
    o->index = p[at++];
    size_t more = o->index == ONE_CHUNK && p[2] & 2 ? 12
                  : o->index <= NEW_TREE            ? about[o->index]
                                                    : 0;
    if (o->index < ONE_CHUNK || o->index > NEW_TREE || length - at < more + 8)
        return lumat_refuse_data(error, size,
                                 "has a dataset with a damaged layout");
    if (o->index == ONE_CHUNK && more > 0) {
        o->stored = get(p + at, 8);
        o->mask = (uint32_t)get(p + at + 8, 4);
    }
    o->place = get(p + at + more, 8);
    if (!set_chunks(o, sizes, n, width, error, size))
        return 0;
    if (o->index == ONE_CHUNK && more == 0)
        o->stored = o->chunk_bytes;
    return 1;
}

static int read_layout(lumat_hdf_object *o, const unsigned char *p,
                       size_t length, char *error, size_t size)
{
    if (length >= 16 && (p[0] == 1 || p[0] == 2))
        return read_old_layout(o, p, length, error, size);
    if (length < 4 || p[0] < 3 || p[0] > 5)
        return lumat_refuse_data(error, size,
                                 "has a dataset whose layout is of version %d",
                                 length > 0 ? p[0] : 0);
    if (p[1] == 0 && length >= 4 + get(p + 2, 2)) {
        o->layout = LUMAT_HDF_COMPACT;
        o->compact = p + 4;
        o->stored = get(p + 2, 2);
        return 1;
    }
    if (p[1] == 1 && length >= 18) {
        o->place = get(p + 2, 8);
        o->stored = get(p + 10, 8);
        o->layout =
            o->place == NOWHERE ? LUMAT_HDF_NOWHERE : LUMAT_HDF_ONE_PIECE;
        return 1;
    }
    if (p[1] == 2 && p[0] > 3)
        return read_new_chunks(o, p, length, error, size);
    int n = p[2] - 1; /* the last is an element's bytes */
    if (p[1] != 2 || n < 1 || n > LUMAT_HDF_DIMENSIONS ||
        length < 11 + 4 * (size_t)(n + 1))
        return lumat_refuse_data(
            error, size,
            "has a dataset whose layout is not read (class %d of "
            "version %d): h5repack -l CONTI makes it one piece",
            p[1], p[0]);
    o->place = get(p + 3, 8);
    return set_chunks(o, p + 11, n + 1, 4, error, size);
}

static int read_filters(lumat_hdf_object *o, const unsigned char *p,
                        size_t length, char *error, size_t size)
{
    size_t at = length > 0 && p[0] == 1 ? 8 : 2;
    if (length < at || p[1] > LUMAT_HDF_FILTERS)
        return lumat_refuse_data(error, size,
                                 "has a dataset with damaged filters");
    for (o->filters = 0; o->filters < p[1]; o->filters++) {
        int id = length - at < 6 ? 0 : (int)get(p + at, 2);
        int has_name = p[0] == 1 || id >= 256;
        if (id == 0 || (has_name && length - at < 8))
            return lumat_refuse_data(error, size,
                                     "has a dataset with damaged filters");
        size_t name = has_name ? (size_t)get(p + at + 2, 2) : 0;
        size_t values = (size_t)get(p + at + (has_name ? 6 : 4), 2);
        if (id != DEFLATE && id != SHUFFLE && id != FLETCHER)
            return lumat_refuse_data(
                error, size,
                "has a dataset packed by filter %d; deflate, shuffle "
                "and fletcher32 are read",
                id);
        o->filter[o->filters] = id;
        name = p[0] == 1 ? (name + 7) / 8 * 8 : name;
        values += p[0] == 1 ? values % 2 : 0;
        at += (has_name ? 8 : 6) + name + 4 * values;
        if (at > length)
            return lumat_refuse_data(error, size,
                                     "has a dataset with damaged filters");
    }
    return 1;
}

/* What elements are that were never written. */
static int read_fill(lumat_hdf_object *o, int type, const unsigned char *p,
                     size_t length)
{
    size_t at = type == OLD_FILL ? 0 : length > 0 && p[0] == 3 ? 2 : 4;
    if (length < at || (type == FILL && length < 2))
        return 0;
    if (type == FILL && !(p[0] == 3 ? p[1] & 32 : p[3]))
        return 1; /* zeros */
    if (length < at + 4 || get(p + at, 4) > length - at - 4)
        return 0;
    o->fill = p + at + 4;
    o->fill_bytes = (size_t)get(p + at, 4);
    return 1;
}

/* A number or a text that MATLAB, or Octave, says of the object. */
static int read_attribute(lumat_hdf_object *o, const unsigned char *p,
                          size_t length)
{
    lumat_hdf_object type = {0};
    if (length < 8 || p[0] < 1 || p[0] > 3)
        return 0;
    size_t at = p[0] == 3 ? 9 : 8, unit = p[0] == 1 ? 8 : 1;
    size_t name = (size_t)get(p + 2, 2), kind = (size_t)get(p + 4, 2);
    size_t space = (size_t)get(p + 6, 2);
    size_t names = (name + unit - 1) / unit * unit;
    size_t kinds = (kind + unit - 1) / unit * unit;
    size_t spaces = (space + unit - 1) / unit * unit;
    if (length < at + names + kinds + spaces || name == 0 ||
        (p[0] > 1 && p[1] != 0))
        return 1; /* a type that stands elsewhere is none of MATLAB's */
    const char *called = (const char *)p + at;
    const unsigned char *of = p + at + names, *data = of + kinds + spaces;
    size_t left = length - at - names - kinds - spaces;
    if (memchr(called, 0, name) == NULL || !read_datatype(&type, of, kind))
        return 1;
    size_t width = (size_t)type.width;
    if (strcmp(called, "MATLAB_class") == 0 && (of[0] & 15) == 3) {
        size_t n = width < left ? width : left;
        n = n < LUMAT_HDF_CLASS ? n : LUMAT_HDF_CLASS - 1;
        memcpy(o->matlab_class, data, n);
        o->matlab_class[n] = '\0';
    }
    if ((type.kind != 'u' && type.kind != 'i') || width > left)
        return 1;
    if (strcmp(called, "OCTAVE_NEW_FORMAT") == 0)
        o->is_octave = 1;
    if (strcmp(called, "MATLAB_empty") == 0)
        o->is_empty = get(data, (int)width) != 0;
    if (strcmp(called, "MATLAB_sparse") == 0) {
        uint64_t rows = get(data, (int)width);
        o->is_sparse = 1;
        o->sparse_rows = rows > INT64_MAX ? INT64_MAX : (int64_t)rows;
    }
    return 1;
}

/* --- the messages of an object -------------------------------------------- */

/* A walk over them. */
typedef struct walk {
    const lumat_hdf *h;
    int is_new; /* of version 2: other fields, signatures */
    int has_order;
    const unsigned char *p, *end;
    int messages, blocks, met;
    struct {
        const unsigned char *p, *end;
    } block[MOST_BLOCKS];
} walk;

typedef struct message {
    int type, flags;
    const unsigned char *data;
    size_t length;
} message;

static int begin_walk(walk *w, const lumat_hdf *h, uint64_t address)
{
    const unsigned char *p = find(h, address, 16);
    memset(w, 0, offsetof(walk, block));
    w->h = h;
    if (p == NULL)
        return 0;
    if (p[0] == 1) {
        uint64_t bytes = get(p + 8, 4);
        p = find(h, address + 16, bytes);
        w->p = p;
        w->end = p != NULL ? p + bytes : NULL;
        return p != NULL;
    }
    if (memcmp(p, "OHDR", 4) != 0 || p[4] != 2)
        return 0;
    int flags = p[5], width = 1 << (flags & 3);
    uint64_t at = 6 + (flags & 32 ? 16 : 0) + (flags & 16 ? 4 : 0);
    w->is_new = 1;
    w->has_order = (flags & 4) != 0;
    p = find(h, address + at, (uint64_t)width);
    if (p == NULL)
        return 0;
    uint64_t bytes = get(p, width);
    p = find(h, address + at + (uint64_t)width, bytes);
    w->p = p;
    w->end = p != NULL ? p + bytes : NULL;
    return p != NULL;
}

/* A block in which the header goes on. */
static int add_block(walk *w, const message *m)
{
    if (m->length < 16 || w->blocks == MOST_BLOCKS)
        return 0;
    uint64_t at = get(m->data, 8), bytes = get(m->data + 8, 8);
    const unsigned char *p = find(w->h, at, bytes);
    if (p == NULL || (w->is_new && (bytes < 8 || memcmp(p, "OCHK", 4) != 0)))
        return 0;
    w->block[w->blocks].p = w->is_new ? p + 4 : p;
    w->block[w->blocks++].end = w->is_new ? p + bytes - 4 : p + bytes;
    return 1;
}

/* Returns 1, 0 behind the last one, -1 where it is damaged. */
static int next_message(walk *w, message *m)
{
    size_t head = w->is_new ? w->has_order ? 6 : 4 : 8;
    while ((size_t)(w->end - w->p) < head) {
        if (w->met == w->blocks)
            return 0;
        w->p = w->block[w->met].p;
        w->end = w->block[w->met++].end;
    }
    m->type = w->is_new ? w->p[0] : (int)get(w->p, 2);
    m->length = (size_t)get(w->p + (w->is_new ? 1 : 2), 2);
    m->flags = w->p[w->is_new ? 3 : 4];
    m->data = w->p + head;
    if (m->length > (size_t)(w->end - m->data) || ++w->messages > MOST_MESSAGES)
        return -1;
    w->p = m->data + m->length;
    if (m->type == CONTINUATION && !add_block(w, m))
        return -1;
    return 1;
}

static int damaged(uint64_t address, char *error, size_t size)
{
    return lumat_refuse_data(error, size,
                             "is cut off or damaged: an object at %llu",
                             (unsigned long long)address);
}

/* Where a group's links or an object's attributes are, if there are too many
 * for its header: the addresses of a heap and of a tree by their names. flags
 * says by bit 0 that a number stands before them, of so many bytes. */
static int read_dense(const message *m, int number, uint64_t *heap,
                      uint64_t *tree)
{
    size_t at = 2 + (m->length > 1 && m->data[1] & 1 ? (size_t)number : 0);
    if (m->length < at + 16)
        return 0;
    *heap = get(m->data + at, 8);
    *tree = get(m->data + at + 8, 8);
    return 1;
}

static int take_message(lumat_hdf_object *o, const message *m, char *error,
                        size_t size)
{
    if (m->flags & SHARED) {
        if (m->type == DATATYPE || m->type == DATASPACE)
            return lumat_refuse_data(
                error, size,
                "has a dataset whose type stands elsewhere, which is "
                "not read");
        return 1;
    }
    switch (m->type) {
    case DATASPACE:
        return read_dataspace(o, m->data, m->length) ||
               damaged(o->address, error, size);
    case DATATYPE:
        return read_datatype(o, m->data, m->length) ||
               damaged(o->address, error, size);
    case LAYOUT:
        return read_layout(o, m->data, m->length, error, size);
    case FILTERS:
        return read_filters(o, m->data, m->length, error, size);
    case ATTRIBUTE:
        return read_attribute(o, m->data, m->length) ||
               damaged(o->address, error, size);
    case SYMBOL_TABLE:
        if (m->length < 16)
            return damaged(o->address, error, size);
        o->is_group = 1;
        o->tree = get(m->data, 8);
        o->heap = get(m->data + 8, 8);
        return 1;
    case FILL:
    case OLD_FILL:
        return read_fill(o, m->type, m->data, m->length) ||
               damaged(o->address, error, size);
    case LINK_INFO:
        o->is_group = 1;
        return read_dense(m, 8, &o->link_heap, &o->link_tree) ||
               damaged(o->address, error, size);
    case ATTRIBUTE_INFO:
        return read_dense(m, 2, &o->attribute_heap, &o->attribute_tree) ||
               damaged(o->address, error, size);
    case LINK:
    case GROUP_INFO:
        o->is_group = 1;
        return 1;
    default:
        return 1;
    }
}

typedef struct attributes {
    const lumat_hdf *h;
    lumat_hdf_object *o;
    int is_damaged;
} attributes;

static int take_attribute(void *data, const unsigned char *record, size_t bytes)
{
    enum { ID = 8 };
    attributes *a = data;
    size_t length = 0;
    const unsigned char *p =
        bytes < ID ? NULL
                   : lumat_hdf_find_in_heap(a->h, a->o->attribute_heap, record,
                                            ID, &length);
    a->is_damaged = p == NULL || !read_attribute(a->o, p, length);
    return !a->is_damaged;
}

int lumat_hdf_read_object(const lumat_hdf *h, uint64_t address,
                          lumat_hdf_object *o, char *error, size_t size)
{
    walk w;
    message m;
    int got = 0;
    memset(o, 0, sizeof *o);
    o->address = address;
    o->count = 1;
    o->link_heap = o->attribute_heap = NOWHERE;
    if (!begin_walk(&w, h, address))
        return damaged(address, error, size);
    while ((got = next_message(&w, &m)) > 0)
        if (!take_message(o, &m, error, size))
            return 0;
    attributes a = {.h = h, .o = o};
    if (got == 0 && o->attribute_heap != NOWHERE &&
        (!lumat_hdf_each_record(h, o->attribute_tree, take_attribute, &a) ||
         a.is_damaged))
        got = -1;
    return got == 0 || damaged(address, error, size);
}

/* --- links ---------------------------------------------------------------- */

/* A walk over a group's tree. */
typedef struct links {
    const lumat_hdf *h;
    lumat_hdf_link_fn *each;
    void *data;
    const char *names; /* the heap's */
    size_t names_length;
    size_t met;    /* nodes and entries, of which each has 24 bytes at least */
    uint64_t heap; /* of dense links */
    int stopped, is_damaged;
} links;

/* The entries of one node. 0: it is damaged. */
static int walk_symbols(links *l, uint64_t address)
{
    enum { HEAD = 8, ENTRY = 40 };
    const unsigned char *p = find(l->h, address, HEAD);
    if (p == NULL || memcmp(p, "SNOD", 4) != 0)
        return 0;
    uint64_t count = get(p + 6, 2);
    l->met += (size_t)count;
    if (find(l->h, address, HEAD + ENTRY * count) == NULL ||
        l->met > l->h->length / 24)
        return 0;
    p += HEAD;
    for (uint64_t i = 0; i < count && !l->stopped; i++, p += ENTRY) {
        uint64_t at = get(p, 8);
        if (at >= l->names_length)
            return 0;
        const char *name = l->names + at;
        size_t length = strnlen(name, l->names_length - (size_t)at);
        if (get(p + 16, 4) == 2)
            continue; /* a soft link */
        l->stopped = !l->each(l->data, name, length, get(p + 8, 8));
    }
    return 1;
}

static int walk_tree(links *l, uint64_t address, int level)
{
    enum { HEAD = 24, EACH = 16 };
    const unsigned char *p = find(l->h, address, HEAD);
    if (p == NULL || memcmp(p, "TREE", 4) != 0 || p[4] != 0 || p[5] != level ||
        ++l->met > l->h->length / HEAD)
        return 0;
    uint64_t count = get(p + 6, 2);
    if (find(l->h, address, HEAD + EACH * count + 8) == NULL)
        return 0;
    for (uint64_t i = 0; i < count && !l->stopped; i++) {
        uint64_t child = get(p + HEAD + 8 + EACH * i, 8);
        if (level > 0 ? !walk_tree(l, child, level - 1)
                      : !walk_symbols(l, child))
            return 0;
    }
    return 1;
}

static int walk_table(links *l, const lumat_hdf_object *o)
{
    const unsigned char *heap = find(l->h, o->heap, 32);
    const unsigned char *tree = find(l->h, o->tree, 24);
    if (heap == NULL || memcmp(heap, "HEAP", 4) != 0 || tree == NULL ||
        tree[5] > MOST_LEVELS)
        return 0;
    l->names_length = (size_t)get(heap + 8, 8);
    l->names = (const char *)find(l->h, get(heap + 24, 8), l->names_length);
    return l->names != NULL && walk_tree(l, o->tree, tree[5]);
}

/* A link as messages have it, which leads to an object unless it is a soft one
 * or goes to another file. */
static int take_link(links *l, const unsigned char *p, size_t bytes)
{
    size_t at = 2;
    if (bytes < at || p[0] != 1)
        return 0;
    int flags = p[1], width = 1 << (flags & 3);
    int type = flags & 8 && bytes > 2 ? p[2] : 0;
    at += (flags & 8 ? 1 : 0) + (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0);
    if (bytes < at + (size_t)width)
        return 0;
    uint64_t length = get(p + at, width);
    at += (size_t)width;
    if (length > bytes - at || (type == 0 && bytes - at - length < 8))
        return 0;
    if (type == 0)
        l->stopped = !l->each(l->data, (const char *)p + at, (size_t)length,
                              get(p + at + length, 8));
    return 1;
}

/* A record of the tree by names: a hash, and what the heap has it under. */
static int take_dense_link(void *data, const unsigned char *record,
                           size_t bytes)
{
    enum { HASH = 4 };
    links *l = data;
    size_t length = 0;
    const unsigned char *p =
        bytes <= HASH ? NULL
                      : lumat_hdf_find_in_heap(l->h, l->heap, record + HASH,
                                               bytes - HASH, &length);
    l->is_damaged = p == NULL || !take_link(l, p, length);
    return !l->is_damaged && !l->stopped;
}

int lumat_hdf_each_link(const lumat_hdf *h, const lumat_hdf_object *o,
                        lumat_hdf_link_fn *each, void *data, char *error,
                        size_t size)
{
    links l = {.h = h, .each = each, .data = data};
    walk w;
    message m;
    int got = 0;
    if (o->tree != 0 || o->heap != 0)
        return walk_table(&l, o) || damaged(o->address, error, size);
    if (!begin_walk(&w, h, o->address))
        return damaged(o->address, error, size);
    while (!l.stopped && (got = next_message(&w, &m)) > 0)
        if (m.type == LINK && !take_link(&l, m.data, m.length))
            return damaged(o->address, error, size);
    l.heap = o->link_heap;
    if (got == 0 && !l.stopped && l.heap != NOWHERE &&
        (!lumat_hdf_each_record(h, o->link_tree, take_dense_link, &l) ||
         l.is_damaged))
        got = -1;
    return got >= 0 || damaged(o->address, error, size);
}

/* --- elements ------------------------------------------------------------- */

int lumat_hdf_check(const lumat_hdf *h, const lumat_hdf_object *o, char *error,
                    size_t size)
{
    uint64_t bytes = (uint64_t)o->count * (uint64_t)o->width, most = o->stored;
    if (o->count > INT64_MAX / (1 << 21) && o->width > 64)
        return damaged(o->address, error, size);
    if (o->layout == LUMAT_HDF_NOWHERE || o->layout == LUMAT_HDF_CHUNKS)
        most = ANYWAY + (uint64_t)MOST_RATIO * h->length;
    else if (o->stored == NOWHERE)
        most = bytes;
    if (o->layout == LUMAT_HDF_ONE_PIECE && find(h, o->place, most) == NULL)
        return lumat_refuse_data(error, size,
                                 "is cut off: %llu bytes of a dataset begin at "
                                 "%llu",
                                 (unsigned long long)most,
                                 (unsigned long long)(h->base + o->place));
    if (o->layout == LUMAT_HDF_CHUNKS &&
        o->chunk_bytes > ANYWAY + MOST_RATIO * h->length)
        return lumat_refuse_data(error, size, "claims chunks of %zu bytes",
                                 o->chunk_bytes);
    if (bytes > most)
        return lumat_refuse_data(
            error, size,
            "claims a dataset of %llu bytes, too many for its %llu",
            (unsigned long long)bytes, (unsigned long long)most);
    return 1;
}

/* Where the elements of chunks go. */
typedef struct gathering {
    const lumat_hdf *h;
    const lumat_hdf_object *o;
    unsigned char *to, *work;
    size_t met;
    uint64_t left; /* chunks that there can be yet */
    int stopped, is_damaged;
} gathering;

/* The bytes of a width lie apart: first all first ones. */
static void unshuffle(const unsigned char *from, unsigned char *to,
                      size_t length, size_t width)
{
    size_t count = length / width;
    for (size_t k = 0; k < width; k++)
        for (size_t i = 0; i < count; i++)
            to[i * width + k] = from[k * count + i];
    memcpy(to + count * width, from + count * width, length - count * width);
}

static int inflate_chunk(const unsigned char *from, size_t length,
                         unsigned char *to, size_t *got)
{
    z_stream z = {.next_in = (unsigned char *)from,
                  .avail_in = (uInt)length,
                  .next_out = to,
                  .avail_out = (uInt)*got};
    if (length > UINT32_MAX || inflateInit(&z) != Z_OK)
        return 0;
    int result = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    *got -= z.avail_out;
    return result == Z_STREAM_END;
}

/* Undoes the filters from the last on. Returns the chunk's elements, or NULL.
 */
static const unsigned char *unpack_chunk(gathering *g,
                                         const unsigned char *from,
                                         size_t length, uint32_t mask)
{
    const lumat_hdf_object *o = g->o;
    unsigned char *to = g->work, *other = g->work + o->chunk_bytes;
    for (int i = o->filters - 1; i >= 0; i--) {
        if (mask >> i & 1)
            continue;
        size_t got = o->chunk_bytes;
        if (o->filter[i] == FLETCHER) {
            if (length < 4)
                return NULL;
            length -= 4; /* its checksum */
            continue;
        }
        if (o->filter[i] == SHUFFLE) {
            if (length > o->chunk_bytes)
                return NULL;
            unshuffle(from, to, length, (size_t)o->width);
            got = length;
        } else if (!inflate_chunk(from, length, to, &got)) {
            return NULL;
        }
        from = to;
        length = got;
        to = other;
        other = (unsigned char *)from;
    }
    return length == o->chunk_bytes ? from : NULL;
}

/* Copies what of the chunk at these places lies in the dataset, rows along the
 * last dimension at once. */
static void place_chunk(gathering *g, const unsigned char *from,
                        const int64_t *first)
{
    const lumat_hdf_object *o = g->o;
    int64_t at[LUMAT_HDF_DIMENSIONS] = {0}, width = o->width;
    int last = o->ndim - 1;
    int64_t run = o->sizes[last] - first[last];
    run = run < o->chunk[last] ? run : o->chunk[last];
    for (;;) {
        int64_t to = 0, source = 0, is_inside = 1;
        for (int i = 0; i <= last; i++) {
            int64_t x = i < last ? at[i] : 0;
            is_inside &= first[i] + x < o->sizes[i];
            to = to * o->sizes[i] + first[i] + x;
            source = source * o->chunk[i] + x;
        }
        if (is_inside)
            memcpy(g->to + to * width, from + source * width,
                   (size_t)(run * width));
        int i = last - 1;
        while (i >= 0 && ++at[i] == o->chunk[i])
            at[i--] = 0;
        if (i < 0)
            return;
    }
}

/* Takes the chunk whose first element is at these places; of the filters those
 * in the mask were not applied. */
static int take_chunk(gathering *g, const int64_t *first, uint64_t address,
                      uint64_t length, uint32_t mask)
{
    const lumat_hdf_object *o = g->o;
    int is_edge = 0;
    for (int i = 0; i < o->ndim; i++)
        is_edge |= o->sizes[i] - first[i] < o->chunk[i];
    if (is_edge && o->is_edge_plain) {
        mask = UINT32_MAX;
        length = o->chunk_bytes;
    }
    const unsigned char *from = find(g->h, address, length);
    if (from != NULL)
        from = unpack_chunk(g, from, (size_t)length, mask);
    if (from == NULL || g->left-- == 0)
        return 0;
    if (g->h->goes_on != NULL && !g->h->goes_on(o->chunk_bytes)) {
        g->stopped = 1;
        return 0;
    }
    place_chunk(g, from, first);
    return 1;
}

/* Reads where a chunk begins: numbers of chunks along each dimension, each to
 * be multiplied by `unit` of it. */
static int read_first(const lumat_hdf_object *o, const unsigned char *p,
                      const int64_t *unit, int64_t *first)
{
    for (int i = 0; i < o->ndim; i++) {
        uint64_t x = get(p + 8 * i, 8);
        if (x >= (uint64_t)o->sizes[i] ||
            __builtin_mul_overflow((int64_t)x, unit[i], &first[i]) ||
            first[i] >= o->sizes[i] || first[i] % o->chunk[i] != 0)
            return 0;
    }
    return 1;
}

static int walk_chunks(gathering *g, uint64_t address, int level)
{
    static const int64_t elements[LUMAT_HDF_DIMENSIONS] = {1, 1, 1, 1,
                                                           1, 1, 1, 1};
    int64_t first[LUMAT_HDF_DIMENSIONS];
    enum { HEAD = 24 };
    size_t key = 8 + 8 * (size_t)(g->o->ndim + 1), each = key + 8;
    const unsigned char *p = find(g->h, address, HEAD);
    if (p == NULL || memcmp(p, "TREE", 4) != 0 || p[4] != 1 || p[5] != level)
        return 0;
    uint64_t count = get(p + 6, 2);
    if (find(g->h, address, HEAD + each * count + key) == NULL)
        return 0;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *at = p + HEAD + each * i;
        uint64_t child = get(at + key, 8);
        if (++g->met > g->h->length / 16)
            return 0;
        if (level > 0 ? !walk_chunks(g, child, level - 1)
                      : !read_first(g->o, at + 8, elements, first) ||
                            !take_chunk(g, first, child, get(at, 4),
                                        (uint32_t)get(at + 4, 4)))
            return 0;
    }
    return 1;
}

/* A chunk as arrays and trees of version 2 have it: its address, and of a
 * packed one its bytes, a number of so many, and its mask. */
static int take_entry(gathering *g, const int64_t *first,
                      const unsigned char *entry, int width)
{
    uint64_t address = get(entry, 8);
    if (address == NOWHERE)
        return 1;
    if (g->o->filters == 0)
        return take_chunk(g, first, address, g->o->chunk_bytes, 0);
    return width > 0 && width <= 8 &&
           take_chunk(g, first, address, get(entry + 8, width),
                      (uint32_t)get(entry + 8 + width, 4));
}

/* A record of the tree: an entry, and the number of its chunk along each
 * dimension. */
static int take_record(void *data, const unsigned char *record, size_t bytes)
{
    gathering *g = data;
    int64_t first[LUMAT_HDF_DIMENSIONS];
    int least = 8 + 8 * g->o->ndim + (g->o->filters > 0 ? 4 : 0);
    int width = (int)bytes - least;
    if (width >= 0 && width <= 8 &&
        read_first(g->o, record + bytes - 8 * g->o->ndim, g->o->chunk, first) &&
        take_entry(g, first, record, width))
        return 1;
    g->is_damaged = 1;
    return 0;
}

/* The number of a chunk among all that the dataset may grow to; along the
 * dimension that has no end, if there is one, it grows slowest. */
static int number_of(const lumat_hdf_object *o, const int64_t *first,
                     uint64_t *number)
{
    int endless = -1;
    *number = 0;
    for (int i = 0; i < o->ndim && endless < 0; i++)
        if (o->most[i] == INT64_MAX)
            endless = i;
    if (endless >= 0)
        *number = (uint64_t)(first[endless] / o->chunk[endless]);
    for (int i = 0; i < o->ndim; i++) {
        if (i == endless)
            continue;
        uint64_t across =
            (uint64_t)(o->most[i] - 1) / (uint64_t)o->chunk[i] + 1;
        if (__builtin_mul_overflow(*number, across, number) ||
            __builtin_add_overflow(*number, (uint64_t)(first[i] / o->chunk[i]),
                                   number))
            return 0;
    }
    return 1;
}

/* Takes the chunk with that number, which an array has or which stands in
 * order. */
static int take_numbered(gathering *g, const int64_t *first)
{
    const lumat_hdf_object *o = g->o;
    const unsigned char *entry;
    uint64_t i, at;
    int bytes = 0;
    if (!number_of(o, first, &i))
        return 0;
    if (o->index == IN_ORDER)
        return !__builtin_mul_overflow(i, o->chunk_bytes, &at) &&
               !__builtin_add_overflow(at, o->place, &at) &&
               take_chunk(g, first, at, o->chunk_bytes, 0);
    if (!(o->index == LUMAT_HDF_FIXED_ARRAY
              ? lumat_hdf_fixed_element(g->h, o->place, i, &entry, &bytes)
              : lumat_hdf_extensible_element(g->h, o->place, i, &entry,
                                             &bytes)))
        return 0;
    return entry == NULL || take_entry(g, first, entry, bytes - 8 - 4);
}

static int take_all_numbered(gathering *g)
{
    const lumat_hdf_object *o = g->o;
    int64_t first[LUMAT_HDF_DIMENSIONS] = {0};
    if (o->count == 0)
        return 1;
    for (uint64_t met = 1;; met++) {
        g->stopped = met % 4096 == 0 && g->h->goes_on != NULL &&
                     !g->h->goes_on(0); /* most may be missing */
        if (g->stopped || !take_numbered(g, first))
            return 0;
        int i = o->ndim - 1;
        while (i >= 0 && (first[i] += o->chunk[i]) >= o->sizes[i])
            first[i--] = 0;
        if (i < 0)
            return 1;
    }
}

/* Sets how many chunks there can be: each is met once at most. */
static int check_chunks(const lumat_hdf_object *o, uint64_t *chunks)
{
    uint64_t bytes = (uint64_t)o->width;
    *chunks = 1;
    for (int i = 0; i < LUMAT_HDF_DIMENSIONS; i++) {
        if ((o->chunk[i] > 0) != (i < o->ndim))
            return 0;
        if (i >= o->ndim)
            continue;
        bytes *= (uint64_t)o->chunk[i]; /* below 2^32 with the layout's width */
        uint64_t n = ((uint64_t)o->sizes[i] + (uint64_t)o->chunk[i] - 1) /
                     (uint64_t)o->chunk[i];
        if (__builtin_mul_overflow(*chunks, n, chunks))
            return 0;
    }
    return o->ndim > 0 && bytes == o->chunk_bytes;
}

static int take_all_chunks(gathering *g)
{
    const lumat_hdf_object *o = g->o;
    static const int64_t start[LUMAT_HDF_DIMENSIONS];
    if (!check_chunks(o, &g->left))
        return 0;
    switch (o->index) {
    case 0: {
        const unsigned char *tree = find(g->h, o->place, 24);
        return tree != NULL && tree[5] <= MOST_LEVELS &&
               walk_chunks(g, o->place, tree[5]);
    }
    case ONE_CHUNK:
        return o->count == 0 ||
               take_chunk(g, start, o->place, o->stored, o->mask);
    case NEW_TREE:
        return lumat_hdf_each_record(g->h, o->place, take_record, g) &&
               !g->is_damaged;
    default:
        return take_all_numbered(g);
    }
}

/* Elements that were never written. */
static void fill_elements(const lumat_hdf_object *o, unsigned char *to,
                          size_t bytes)
{
    size_t width = (size_t)o->width;
    if (o->fill == NULL || o->fill_bytes != width) {
        memset(to, 0, bytes);
        return;
    }
    for (size_t at = 0; at < bytes; at += width)
        memcpy(to + at, o->fill, width);
}

int lumat_hdf_read(const lumat_hdf *h, const lumat_hdf_object *o, void *to,
                   void *work, char *error, size_t size)
{
    size_t bytes = (size_t)o->count * (size_t)o->width;
    gathering g = {.h = h, .o = o, .to = to, .work = work};
    if (!lumat_hdf_check(h, o, error, size))
        return 0;
    switch (o->layout) {
    case LUMAT_HDF_COMPACT:
        memcpy(to, o->compact, bytes);
        return 1;
    case LUMAT_HDF_ONE_PIECE:
        memcpy(to, find(h, o->place, bytes), bytes);
        return 1;
    case LUMAT_HDF_CHUNKS:
        fill_elements(o, to, bytes);
        if (take_all_chunks(&g))
            return 1;
        if (g.stopped)
            return lumat_refuse_data(error, size, "%s", "");
        return lumat_refuse_data(
            error, size,
            "is cut off or damaged: a chunk of the dataset at %llu",
            (unsigned long long)o->address);
    default:
        fill_elements(o, to, bytes);
        return 1;
    }
}
