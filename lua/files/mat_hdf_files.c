/* HDF5 files, and MATLAB's of version 7.3, which are some: there groups are
 * structures and sparse matrices, and datasets of references are cells. */
#include "mat_values.h"

#include "cancellation.h"

#include <string.h>

enum { MOST_DEPTH = 100 };

/* What is being read. */
typedef struct reader {
    lua_State *L;
    lumat_hdf h;
    const lumat_input *in;
    gpu_dtype dtype;
    int is_plain;  /* others than MATLAB and Octave wrote it */
    int values;    /* the table's index */
    int depth;     /* of the object at hand */
    uint64_t left; /* objects that are read yet: references may go in circles */
    int found;     /* of look_for: how many */
} reader;

static int push_object(reader *r, uint64_t address, const char *name);

static int refuse(const reader *r, const char *message)
{
    lumat_poll(r->L, 0);
    return lumat_refuse_input(r->L, r->in, "%s", message);
}

static int leave_out(const reader *r, const char *name, const char *what)
{
    lumat_warn(r->L, "load", "left out '%s', which is %s", name, what);
    return 0;
}

/* --- datasets ------------------------------------------------------------- */

/* Pushes the memory of all elements. */
static lumat_elements push_elements(reader *r, const lumat_hdf_object *o)
{
    char message[LUMAT_MESSAGE] = "";
    if (!lumat_hdf_check(&r->h, o, message, sizeof message))
        refuse(r, message);
    size_t work = o->layout == LUMAT_HDF_CHUNKS ? 2 * o->chunk_bytes : 0;
    size_t bytes = (size_t)o->count * (size_t)o->width;
    unsigned char *to = lua_newuserdatauv(r->L, bytes + 1, 0);
    void *room = lua_newuserdatauv(r->L, work + 1, 0);
    if (!lumat_hdf_read(&r->h, o, to, room, message, sizeof message))
        refuse(r, message);
    lua_pop(r->L, 1);
    return (lumat_elements){.bytes = to,
                            .count = o->count,
                            .kind = o->kind,
                            .width = o->width,
                            .swapped = o->swapped};
}

/* A class by its name; 0: it is none of numbers or text. */
static int class_of(const lumat_hdf_object *o)
{
    static const char *const names[] = {"double", "single", "int8",   "uint8",
                                        "int16",  "uint16", "int32",  "uint32",
                                        "int64",  "uint64", "logical"};
    enum { NAMES = sizeof names / sizeof *names };
    if (strcmp(o->matlab_class, "char") == 0)
        return LUMAT_MAT_CHAR;
    for (int i = 0; i < NAMES; i++)
        if (strcmp(o->matlab_class, names[i]) == 0)
            return i == NAMES - 1 ? LUMAT_MAT_I8 + 1 : LUMAT_MAT_DOUBLE + i;
    if (strcmp(o->matlab_class, "canonical empty") == 0)
        return LUMAT_MAT_DOUBLE;
    if (*o->matlab_class != '\0')
        return 0;
    if (o->kind == 'f' || o->kind == 'c')
        return o->width > (o->kind == 'c' ? 8 : 4) ? LUMAT_MAT_DOUBLE
                                                   : LUMAT_MAT_SINGLE;
    int power = o->width == 1 ? 0 : o->width == 2 ? 1 : o->width == 4 ? 2 : 3;
    return LUMAT_MAT_I8 + 2 * power + (o->kind == 'u');
}

/* The sizes as MATLAB has them, in the other order. */
static void set_sizes(const reader *r, const lumat_hdf_object *o,
                      lumat_mat_array *a)
{
    a->ndim = o->ndim < 2 ? 2 : o->ndim;
    a->sizes[0] = a->sizes[1] = 1;
    for (int i = 0; i < o->ndim; i++) {
        a->sizes[o->ndim - 1 - i] = o->sizes[i];
        if (o->sizes[i] > INT32_MAX)
            refuse(r, "has a size that is too large");
    }
    a->count = o->count;
}

/* Of what is empty the elements are its sizes. */
static void set_empty(reader *r, const lumat_hdf_object *o, lumat_mat_array *a)
{
    lumat_elements e = push_elements(r, o);
    int count =
        e.count < LUMAT_MAT_DIMENSIONS ? (int)e.count : LUMAT_MAT_DIMENSIONS;
    const double *sizes = lumat_push_mat_numbers(r->L, r->in, &e, 0, count);
    int has_zero = 0;
    a->ndim = count < 2 ? 2 : count;
    a->sizes[0] = a->sizes[1] = 0;
    for (int i = 0; i < count; i++) {
        if (!(sizes[i] >= 0 && sizes[i] <= INT32_MAX))
            refuse(r, "has an empty array with a size that is none");
        a->sizes[i] = (int64_t)sizes[i];
        has_zero |= a->sizes[i] == 0;
    }
    if (count >= 2 && !has_zero)
        refuse(r, "has an empty array of a size that is not");
    a->count = 0;
    a->real = (lumat_elements){.kind = 'f', .width = 8};
    a->is_complex = 0;
    lua_pop(r->L, 2);
}

static uint64_t reference(const lumat_elements *e, int64_t i)
{
    uint64_t address = 0;
    for (int k = 7; k >= 0; k--)
        address = address << 8 | e->bytes[8 * i + k];
    return address;
}

/* Cells: a list of what is referred to; false where that cannot be read. */
static int push_cells(reader *r, const lumat_hdf_object *o, const char *name)
{
    lua_State *L = r->L;
    lua_newtable(L);
    if (o->is_empty)
        return 1;
    lumat_elements e = push_elements(r, o);
    for (int64_t i = 0; i < e.count; i++) {
        if (!push_object(r, reference(&e, i), name))
            lua_pushboolean(L, 0);
        lua_rawseti(L, -3, i + 1);
    }
    lua_pop(L, 1);
    return 1;
}

/* What others wrote: arrays as NumPy's files have them, rows first. */
static int push_array(reader *r, const lumat_hdf_object *o, const char *name)
{
    lua_State *L = r->L;
    int top = lua_gettop(L), last = o->ndim - 1;
    gpu_dtype dtype = r->dtype;
    if (o->ndim > 3)
        return leave_out(r, name, "an array of more than three dimensions");
    lumat_npy n = {.kind = o->kind,
                   .bytes = o->width,
                   .swapped = o->swapped,
                   .ndim = o->ndim,
                   .pages = o->ndim == 3 ? o->sizes[0] : 1,
                   .rows = o->sizes[o->ndim == 3],
                   .cols = o->ndim > 1 ? o->sizes[last] : 1};
    lumat_elements e = push_elements(r, o);
    lumat_source s = {.left = (uint64_t)e.count * (uint64_t)e.width,
                      .in = r->in,
                      .memory = (const char *)e.bytes};
    if (n.kind == 'c' && (dtype == GPU_F32 || dtype == GPU_F64))
        dtype = gpu_dtype_made_complex(dtype); /* it is meant for all */
    lumat_push_elements(L, &s, &n, dtype);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return 1;
}

static int push_dataset(reader *r, const lumat_hdf_object *o, const char *name)
{
    lumat_mat_array a = {.of = class_of(o),
                         .name = name,
                         .name_length = strlen(name),
                         .is_complex = o->kind == 'c'};
    a.is_logical = strcmp(o->matlab_class, "logical") == 0;
    if (o->kind == 'r' && strcmp(o->matlab_class, "cell") == 0)
        return push_cells(r, o, name);
    if (o->is_empty && (strcmp(o->matlab_class, "cell") == 0 ||
                        strcmp(o->matlab_class, "struct") == 0)) {
        lua_newtable(r->L);
        return 1;
    }
    if (o->kind == 0 || o->kind == 'r' || a.of == 0)
        return leave_out(r, name,
                         *o->matlab_class ? o->matlab_class : "of no numbers");
    if (r->is_plain && *o->matlab_class == '\0' && o->ndim > 0)
        return push_array(r, o, name);
    if (o->is_empty)
        set_empty(r, o, &a);
    else
        set_sizes(r, o, &a);
    int top = lua_gettop(r->L);
    if (!o->is_empty)
        a.real = push_elements(r, o);
    int is_pushed = a.of == LUMAT_MAT_CHAR
                        ? lumat_push_mat_text(r->L, &a)
                        : lumat_push_mat_array(r->L, r->in, &a, r->dtype);
    if (is_pushed)
        lua_copy(r->L, -1, top + 1);
    lua_settop(r->L, top + is_pushed);
    return is_pushed;
}

/* --- groups --------------------------------------------------------------- */

/* Reads the object that a link leads to; one more of those there can be. */
static void read_object(reader *r, uint64_t address, lumat_hdf_object *o)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_poll(r->L, 0);
    if (r->left-- == 0)
        refuse(r, "has references that go in circles");
    if (!lumat_hdf_read_object(&r->h, address, o, message, sizeof message))
        refuse(r, message);
}

static void each_link(reader *r, const lumat_hdf_object *o,
                      lumat_hdf_link_fn *each, void *data)
{
    char message[LUMAT_MESSAGE] = "";
    if (!lumat_hdf_each_link(&r->h, o, each, data, message, sizeof message))
        refuse(r, message);
}

/* The three datasets of a sparse matrix. */
typedef struct sparse_parts {
    reader *r;
    uint64_t data, rows, starts;
} sparse_parts;

static int take_part(void *data, const char *name, size_t length,
                     uint64_t address)
{
    sparse_parts *p = data;
    if (length == 4 && memcmp(name, "data", 4) == 0)
        p->data = address;
    else if (length == 2 && memcmp(name, "ir", 2) == 0)
        p->rows = address;
    else if (length == 2 && memcmp(name, "jc", 2) == 0)
        p->starts = address;
    return 1;
}

/* The parts of complex values, which lie between each other, are put apart. */
static void divide(reader *r, lumat_mat_array *a)
{
    size_t width = (size_t)a->real.width / 2, count = (size_t)a->real.count;
    unsigned char *parts = lua_newuserdatauv(r->L, 2 * count * width + 1, 0);
    for (size_t i = 0; i < 2 * count; i++)
        memcpy(parts + (i % 2 * count + i / 2) * width,
               a->real.bytes + i * width, width);
    a->is_complex = 1;
    a->real.kind = 'f';
    a->real.width = (int)width;
    a->real.bytes = parts;
    a->imaginary = a->real;
    a->imaginary.bytes += count * width;
}

/* Where there are no entries, rows and values are missing. */
static int push_sparse(reader *r, const lumat_hdf_object *o, const char *name)
{
    lumat_hdf_object part;
    sparse_parts p = {.r = r};
    lumat_mat_array a = {.of = LUMAT_MAT_SPARSE,
                         .ndim = 2,
                         .name = name,
                         .name_length = strlen(name)};
    lumat_elements *to[] = {&a.starts, &a.rows, &a.real};
    int top = lua_gettop(r->L);
    each_link(r, o, take_part, &p);
    uint64_t at[] = {p.starts, p.rows, p.data};
    a.real = a.rows = (lumat_elements){.kind = 'f', .width = 8};
    for (int i = 0; i < 3; i++) {
        if (at[i] == 0)
            continue;
        read_object(r, at[i], &part);
        if (part.kind == 0 || part.kind == 'r')
            refuse(r, "has a sparse matrix of no numbers");
        *to[i] = push_elements(r, &part);
    }
    if (a.starts.count < 1 || o->sparse_rows > INT32_MAX ||
        a.starts.count > INT32_MAX)
        refuse(r, "has a sparse matrix that is damaged");
    a.sizes[0] = o->sparse_rows;
    a.sizes[1] = a.starts.count - 1;
    if (a.real.kind == 'c')
        divide(r, &a);
    int is_pushed = lumat_push_mat_sparse(r->L, r->in, &a, r->dtype);
    lua_replace(r->L, top + 1);
    lua_settop(r->L, top + is_pushed);
    return is_pushed;
}

/* Sets one field of a structure in the table on top: or, of an array of
 * structures, whose fields are datasets of references without a class, that of
 * each. */
static int take_field(void *data, const char *name, size_t length,
                      uint64_t address)
{
    reader *r = data;
    lua_State *L = r->L;
    lumat_hdf_object o;
    int top = lua_gettop(L);
    lua_pushlstring(L, name, length);
    const char *field = lua_tostring(L, -1);
    read_object(r, address, &o);
    if (o.is_group || o.kind != 'r' || *o.matlab_class != '\0') {
        if (push_object(r, address, field))
            lua_rawset(L, top);
        lua_settop(L, top);
        return 1;
    }
    lumat_elements e = push_elements(r, &o);
    for (int64_t i = 0; i < e.count; i++) {
        if (lua_rawgeti(L, top, i + 1) != LUA_TTABLE) {
            lua_pop(L, 1);
            lua_newtable(L);
            lua_pushvalue(L, -1);
            lua_rawseti(L, top, i + 1);
        }
        lua_pushvalue(L, top + 1);
        if (!push_object(r, reference(&e, i), field))
            lua_pushboolean(L, 0);
        lua_rawset(L, -3);
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    return 1;
}

static int push_group(reader *r, const lumat_hdf_object *o, const char *name)
{
    if (o->is_sparse)
        return push_sparse(r, o, name);
    if (*o->matlab_class != '\0' && strcmp(o->matlab_class, "struct") != 0)
        return leave_out(r, name, o->matlab_class);
    int was_plain = r->is_plain;
    r->is_plain &= !o->is_octave;
    lua_newtable(r->L);
    each_link(r, o, take_field, r);
    r->is_plain = was_plain;
    return 1;
}

/* Pushes what is at the address, or returns 0 with a warning. */
static int push_object(reader *r, uint64_t address, const char *name)
{
    lumat_hdf_object o;
    luaL_checkstack(r->L, 20, "nested groups");
    if (r->depth >= MOST_DEPTH)
        refuse(r, "has groups in groups without end");
    read_object(r, address, &o);
    r->depth++;
    int is_pushed =
        o.is_group ? push_group(r, &o, name) : push_dataset(r, &o, name);
    r->depth--;
    return is_pushed;
}

/* --- the file ------------------------------------------------------------- */

static int take_variable(void *data, const char *name, size_t length,
                         uint64_t address)
{
    reader *r = data;
    int top = lua_gettop(r->L);
    lua_pushlstring(r->L, name, length);
    const char *called = lua_tostring(r->L, -1);
    if (*called != '#' && lumat_wants(r->L, called) && /* MATLAB's own */
        push_object(r, address, called))
        lua_rawset(r->L, r->values);
    lua_settop(r->L, top);
    return 1;
}

static void push_values(reader *r, const char *bytes, size_t length)
{
    char message[LUMAT_MESSAGE] = "";
    enum { ANYWAY = 1000, EACH = 8 };
    lumat_hdf_object root;
    r->left = length / EACH + ANYWAY;
    if (!lumat_hdf_open(&r->h, bytes, length, message, sizeof message))
        refuse(r, message);
    r->h.goes_on = lumat_input_goes_on;
    read_object(r, r->h.root, &root);
    each_link(r, &root, take_variable, r);
}

void lumat_push_hdf_values(lua_State *L, lumat_input *in, const char *bytes,
                           size_t length, gpu_dtype dtype, int values)
{
    reader r = {.L = L, .in = in, .dtype = dtype, .values = values};
    push_values(&r, bytes, length);
}

int lumat_load_hdf(lua_State *L, lumat_input *in, const lumat_format *f)
{
    reader r = {.L = L,
                .in = in,
                .dtype = lumat_option_dtype(L, 2, GPU_ALL_DTYPES),
                .is_plain = 1};
    size_t length;
    (void)f;
    const char *bytes = lumat_push_input_text(L, in, &length);
    lua_newtable(L);
    r.values = lua_gettop(L);
    lumat_begin_input(in, length);
    push_values(&r, bytes, length);
    lumat_check_wanted(L, in, r.values);
    return 1;
}
