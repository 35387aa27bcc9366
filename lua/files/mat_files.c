/* MATLAB's files, as a table of names: matrices stay of two dimensions, what
 * has one element is a number or a truth value, structures are tables, cells
 * and arrays of structures lists. Read are versions 4 to 7.3, written is 5. */
#include "mat_values.h"

#include "cancellation.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 100 };

/* What is being read. */
typedef struct reader {
    const lumat_mat *m;
    const lumat_input *in;
    gpu_dtype dtype; /* asked for, or GPU_ALL_DTYPES */
} reader;

/* --- numbers -------------------------------------------------------------- */

static lumat_npy type_of(const lumat_elements *e)
{
    return (lumat_npy){.kind = e->kind,
                       .bytes = e->width,
                       .swapped = e->swapped,
                       .pages = 1,
                       .ndim = 2};
}

/* The type of matrices of the class: the wide integers have none, by which
 * those that f64 would round are told of. */
static gpu_dtype dtype_of(const lumat_mat_array *a, gpu_dtype asked)
{
    if (asked == GPU_F32 || asked == GPU_F64)
        return a->is_complex ? gpu_dtype_made_complex(asked) : asked;
    if (asked != GPU_ALL_DTYPES)
        return asked;
    if (a->is_logical)
        return GPU_BOOL;
    switch (a->of) {
    case LUMAT_MAT_SINGLE:
        return a->is_complex ? GPU_C64 : GPU_F32;
    case LUMAT_MAT_I8:
    case LUMAT_MAT_I8 + 1:
    case LUMAT_MAT_I8 + 2:
    case LUMAT_MAT_I8 + 3:
        return a->is_complex ? GPU_C64 : GPU_F32;
    case LUMAT_MAT_U64 - 1:
    case LUMAT_MAT_U64:
        return a->is_complex ? GPU_C128 : GPU_ALL_DTYPES;
    default:
        return a->is_complex ? GPU_C128 : GPU_F64;
    }
}

static int refuse(lua_State *L, const lumat_input *in, const char *message)
{
    return lumat_refuse_input(L, in, "%s", message);
}

/* Pushes count elements from `first` on, as numbers, in host memory. */
double *lumat_push_mat_numbers(lua_State *L, const lumat_input *in,
                               const lumat_elements *e, int64_t first,
                               int64_t count)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_npy n = type_of(e);
    n.rows = count;
    n.cols = 1;
    double *out = lua_newuserdatauv(L, (size_t)count * sizeof *out + 1, 0);
    if (count > 0 && !lumat_npy_read(&n, e->bytes + first * e->width, 0, count,
                                     GPU_F64, out, 0, message, sizeof message))
        refuse(L, in, message);
    return out;
}

/* Real and imaginary parts become pairs; pushes their memory. */
static lumat_elements push_pairs(lua_State *L, const lumat_input *in,
                                 const lumat_mat_array *a, int64_t first,
                                 int64_t count)
{
    double *pairs =
        lua_newuserdatauv(L, (size_t)count * 2 * sizeof *pairs + 1, 0);
    const double *re = lumat_push_mat_numbers(L, in, &a->real, first, count);
    const double *im =
        lumat_push_mat_numbers(L, in, &a->imaginary, first, count);
    for (int64_t i = 0; i < count; i++) {
        pairs[2 * i] = re[i];
        pairs[2 * i + 1] = im[i];
    }
    lua_pop(L, 2);
    return (lumat_elements){.bytes = (const unsigned char *)pairs,
                            .count = count,
                            .kind = 'c',
                            .width = 16};
}

/* Pushes rows x cols elements, column after column, from `first` on. */
static void push_columns(lua_State *L, const lumat_input *in,
                         const lumat_mat_array *a, int64_t first, int64_t rows,
                         int64_t cols, gpu_dtype dtype)
{
    int top = lua_gettop(L);
    lumat_elements e = a->real;
    e.bytes += e.kind != 0 && e.bytes != NULL ? first * e.width : 0;
    if (a->is_complex && e.kind != 'c')
        e = push_pairs(L, in, a, first, rows * cols);
    lumat_npy n = type_of(&e);
    n.rows = cols; /* as it lies */
    n.cols = rows;
    lumat_source s = {.left = (uint64_t)(rows * cols * e.width),
                      .in = in,
                      .memory = (const char *)e.bytes};
    lumat_push_elements(L, &s, &n, dtype);
    lumat_turn_result(L, lumat_test_matrix(L, -1));
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

/* The one element of the matrix on top, in its place. */
static void make_single(lua_State *L, const lumat_mat_array *a)
{
    const gpu_matrix *m = lumat_test_matrix(L, -1);
    gpu_complex z = {0, 0};
    if (gpu_is_complex(m)) {
        lumat_try(L, gpu_complex_get(m, 0, 0, &z));
        lumat_push_complex(L, z);
    } else {
        lumat_try(L, gpu_get(m, 0, 0, &z.re));
        if (a->is_logical)
            lua_pushboolean(L, z.re != 0);
        else if (a->of >= LUMAT_MAT_I8 && fabs(z.re) <= 0x1p53)
            lua_pushinteger(L, (lua_Integer)z.re);
        else
            lua_pushnumber(L, z.re);
    }
    lua_replace(L, -2);
}

/* A matrix, one element of it, or a list of those along the third index. */
int lumat_push_mat_array(lua_State *L, const lumat_input *in,
                         const lumat_mat_array *a, gpu_dtype asked)
{
    gpu_dtype dtype = dtype_of(a, asked);
    int64_t rows = a->sizes[0], cols = a->sizes[1];
    if (a->ndim > 3) {
        lumat_warn(L, "load", "left out '%.*s', which has %d dimensions",
                   (int)a->name_length, a->name != NULL ? a->name : "",
                   a->ndim);
        return 0;
    }
    if (a->ndim == 2 || a->sizes[2] == 1) {
        push_columns(L, in, a, 0, rows, cols, dtype);
        if (a->count == 1)
            make_single(L, a);
        return 1;
    }
    lumat_check_page_count(L, in, a->sizes[2], a->count);
    lua_newtable(L);
    for (int64_t i = 0; i < a->sizes[2]; i++) {
        push_columns(L, in, a, i * rows * cols, rows, cols, dtype);
        lua_rawseti(L, -2, i + 1);
        lumat_poll(L, 0);
    }
    return 1;
}

/* --- sparse matrices ------------------------------------------------------ */

static int64_t whole(lua_State *L, const lumat_input *in, double x,
                     int64_t most)
{
    if (!(x >= 0 && x <= (double)most) || x != (double)(int64_t)x)
        lumat_refuse_input(L, in,
                           "is damaged: a sparse matrix has an entry in row or "
                           "column %g of %lld",
                           x + 1, (long long)most + 1);
    return (int64_t)x;
}

/* A few entries can claim many rows, of which each takes its bytes. */
static void check_rows(lua_State *L, const lumat_input *in, int64_t rows)
{
    enum { ANYWAY = 1 << 24 };
    if (rows > ANYWAY && (uint64_t)rows / 4 > in->size)
        lumat_refuse_input(L, in,
                           "claims a sparse matrix of %lld rows, too many for "
                           "its %zu bytes",
                           (long long)rows, in->size);
}

/* Pushes the pairs that a triplet's values and imaginary parts make. */
static void join_values(lua_State *L, gpu_triplets *t, const double *imaginary)
{
    size_t bytes = 2 * (size_t)t->count * sizeof(double) + 1;
    double *pairs = lua_newuserdatauv(L, bytes, 0);
    for (int64_t k = 0; k < t->count; k++) {
        pairs[2 * k] = t->value[k];
        pairs[2 * k + 1] = imaginary[k];
    }
    t->value = pairs;
    t->is_complex = 1;
}

/* In f64, or as f32 if that is asked for; what is complex stays so. */
static void push_triplets(lua_State *L, const gpu_triplets *t, gpu_dtype dtype)
{
    gpu_device *device = lumat_option_device(L, 2, NULL);
    gpu_sparse *s = lumat_new_sparse(L);
    int is_single = dtype == GPU_F32 || dtype == GPU_C64;
    dtype = is_single ? GPU_F32 : GPU_F64;
    if (t->is_complex)
        dtype = gpu_dtype_made_complex(dtype);
    lumat_try(L, gpu_sparse_create(s, device, dtype, t));
    lumat_account_sparse(L, s);
}

/* Compressed columns. */
int lumat_push_mat_sparse(lua_State *L, const lumat_input *in,
                          const lumat_mat_array *a, gpu_dtype dtype)
{
    int top = lua_gettop(L);
    gpu_triplets t = {.rows = a->sizes[0], .cols = a->sizes[1]};
    check_rows(L, in, t.rows);
    int64_t most =
        a->rows.count < a->real.count ? a->rows.count : a->real.count;
    const double *starts =
        lumat_push_mat_numbers(L, in, &a->starts, 0, t.cols + 1);
    t.count = whole(L, in, starts[t.cols], most);
    const double *rows = lumat_push_mat_numbers(L, in, &a->rows, 0, t.count);
    t.value = lumat_push_mat_numbers(L, in, &a->real, 0, t.count);
    int64_t *down = lua_newuserdatauv(L, (size_t)t.count * sizeof *down + 1, 0);
    int64_t *across =
        lua_newuserdatauv(L, (size_t)t.count * sizeof *across + 1, 0);
    for (int64_t j = 0; j < t.cols; j++) {
        int64_t end = whole(L, in, starts[j + 1], t.count);
        int64_t start = whole(L, in, starts[j], end);
        if (j == 0 && start != 0)
            whole(L, in, -1, t.count);
        for (int64_t k = start; k < end; k++) {
            down[k] = whole(L, in, rows[k], t.rows - 1);
            across[k] = j;
        }
    }
    t.row = down;
    t.col = across;
    if (a->is_complex)
        join_values(L, &t,
                    lumat_push_mat_numbers(
                        L, in, &a->imaginary, 0,
                        whole(L, in, (double)t.count, a->imaginary.count)));
    push_triplets(L, &t, dtype);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return 1;
}

/* Version 4: rows of a place and a value, the last of which gives the size. */
static int push_triplets_4(lua_State *L, const lumat_input *in,
                           const lumat_mat_array *a, gpu_dtype dtype)
{
    int top = lua_gettop(L);
    int64_t n = a->sizes[0];
    const double *all =
        lumat_push_mat_numbers(L, in, &a->real, 0, a->sizes[0] * a->sizes[1]);
    gpu_triplets t = {.count = n - 1, .value = all + 2 * n};
    t.rows = whole(L, in, all[n - 1], INT32_MAX);
    t.cols = whole(L, in, all[2 * n - 1], INT32_MAX);
    check_rows(L, in, t.rows);
    int64_t *places = lua_newuserdatauv(L, 2 * (size_t)n * sizeof *places, 0);
    for (int64_t i = 0; i < n - 1; i++) {
        places[i] = whole(L, in, all[i] - 1, t.rows - 1);
        places[n + i] = whole(L, in, all[n + i] - 1, t.cols - 1);
    }
    t.row = places;
    t.col = places + n;
    if (a->sizes[1] > 3)
        join_values(L, &t, all + 3 * n);
    push_triplets(L, &t, dtype);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return 1;
}

/* --- texts ---------------------------------------------------------------- */

/* Pushes one row of letters, of which two can make one: UTF-16. */
static void push_row(lua_State *L, const lumat_npy *n,
                     const unsigned char *bytes, int64_t row, int64_t rows,
                     int64_t cols)
{
    luaL_Buffer b;
    uint32_t high = 0;
    luaL_buffinit(L, &b);
    for (int64_t j = 0; j < cols; j++) {
        double x = 0;
        char unused[8];
        lumat_npy_read(n, bytes + (j * rows + row) * n->bytes, 0, 1, GPU_F64,
                       &x, 0, unused, sizeof unused);
        uint32_t c = x >= 0 && x <= 0x10FFFF ? (uint32_t)x : 0xFFFD;
        if (c >= 0xD800 && c < 0xDC00 && j + 1 < cols) {
            high = c;
            continue;
        }
        if (c >= 0xDC00 && c < 0xE000)
            c = high != 0 ? 0x10000 + ((high - 0xD800) << 10) + (c - 0xDC00)
                          : 0xFFFD;
        high = 0;
        lua_pushfstring(L, "%U", (unsigned long)c);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
}

/* A string, or of several rows a list of them. */
int lumat_push_mat_text(lua_State *L, const lumat_mat_array *a)
{
    lumat_npy n = type_of(&a->real);
    int64_t rows = a->sizes[0], cols = rows > 0 ? a->count / rows : 0;
    if (a->count == 0) { /* of so many rows as one likes */
        lua_pushliteral(L, "");
        return 1;
    }
    if (a->is_utf8 && (rows <= 1 || a->real.count != a->count)) {
        lua_pushlstring(L, (const char *)a->real.bytes, (size_t)a->real.count);
        return 1;
    }
    n.rows = n.cols = 1;
    if (rows <= 1) {
        push_row(L, &n, a->real.bytes, 0, 1, cols);
        return 1;
    }
    lua_newtable(L);
    for (int64_t i = 0; i < rows; i++) {
        push_row(L, &n, a->real.bytes, i, rows, cols);
        lua_rawseti(L, -2, i + 1);
        lumat_look(L);
    }
    return 1;
}

/* --- versions 4 and 5 ----------------------------------------------------- */

static int push_array(lua_State *L, const reader *r, const lumat_mat_array *a,
                      int depth);

/* Pushes the next array inside, or false where it cannot be read. */
static void push_inner(lua_State *L, const reader *r, const lumat_mat_array *a,
                       size_t *at, int depth)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_mat_array inner;
    lumat_poll(L, 0);
    if (!lumat_mat_inner(r->m, a, at, &inner, message, sizeof message))
        refuse(L, r->in, message);
    if (inner.name_length == 0) {
        inner.name = a->name;
        inner.name_length = a->name_length;
    }
    if (!push_array(L, r, &inner, depth + 1))
        lua_pushboolean(L, 0);
}

static void push_structure(lua_State *L, const reader *r,
                           const lumat_mat_array *a, size_t *at, int depth)
{
    lua_createtable(L, 0, a->field_count);
    for (int i = 0; i < a->field_count; i++) {
        const char *name = a->fields + (size_t)i * (size_t)a->field_length;
        lua_pushlstring(L, name, strnlen(name, (size_t)a->field_length));
        push_inner(L, r, a, at, depth);
        lua_rawset(L, -3);
    }
}

/* What has arrays in it. */
static void push_nested(lua_State *L, const reader *r, const lumat_mat_array *a,
                        int depth)
{
    size_t at = 0;
    luaL_checkstack(L, 10, "nested arrays");
    int is_structure = a->of != LUMAT_MAT_CELL;
    if (is_structure && a->count == 1) {
        push_structure(L, r, a, &at, depth);
        return;
    }
    lua_newtable(L);
    for (int64_t i = 1; i <= a->count; i++) {
        if (is_structure)
            push_structure(L, r, a, &at, depth);
        else
            push_inner(L, r, a, &at, depth);
        lua_rawseti(L, -2, i);
    }
}

static int leave_out(lua_State *L, const lumat_mat_array *a, const char *what)
{
    lumat_warn(L, "load", "left out '%.*s', which is %s", (int)a->name_length,
               a->name != NULL ? a->name : "", what);
    return 0;
}

/* Pushes the value, or returns 0 with a warning. */
static int push_array(lua_State *L, const reader *r, const lumat_mat_array *a,
                      int depth)
{
    if (depth > MOST_DEPTH)
        return refuse(L, r->in, "has structures in structures without end");
    switch (a->of) {
    case LUMAT_MAT_CELL:
    case LUMAT_MAT_STRUCT:
    case LUMAT_MAT_OBJECT:
        push_nested(L, r, a, depth);
        return 1;
    case LUMAT_MAT_CHAR:
        return lumat_push_mat_text(L, a);
    case LUMAT_MAT_SPARSE:
        return lumat_push_mat_sparse(L, r->in, a, r->dtype);
    case LUMAT_MAT_FUNCTION:
        return leave_out(L, a, "a function");
    case LUMAT_MAT_OPAQUE:
        return leave_out(L, a,
                         "an object, such as a table or a string of "
                         "double quotes");
    default:
        return a->is_triplets ? push_triplets_4(L, r->in, a, r->dtype)
                              : lumat_push_mat_array(L, r->in, a, r->dtype);
    }
}

/* Reads a part and sets its value in the table at index. */
static void add_part(lua_State *L, const reader *r, const lumat_mat_part *part,
                     int values)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_mat_array a;
    const void *bytes = part->bytes;
    size_t length = part->length;
    if (part->unpacked > 0) {
        void *unpacked = lua_newuserdatauv(L, part->unpacked, 0);
        int is_whole = lumat_mat_unpack(part, unpacked, lumat_input_goes_on);
        lumat_poll(L, 0);
        if (!is_whole)
            lumat_refuse_input(L, r->in,
                               "is damaged: what is packed at byte %zu cannot "
                               "be unpacked",
                               (size_t)(part->bytes - r->m->bytes));
        bytes = unpacked;
        length = part->unpacked;
    }
    if (!lumat_mat_read(r->m, bytes, length, &a, message, sizeof message))
        refuse(L, r->in, message);
    if (a.name_length > 0) {
        lua_pushlstring(L, a.name, a.name_length);
        if (lumat_wants(L, lua_tostring(L, -1)) && push_array(L, r, &a, 0))
            lua_rawset(L, values);
    }
    lua_settop(L, values);
}

int lumat_load_mat(lua_State *L, lumat_input *in, const lumat_format *f)
{
    char message[LUMAT_MESSAGE] = "";
    lumat_mat m;
    lumat_mat_part part;
    size_t length, at = 0;
    int got;
    (void)f;
    const char *bytes = lumat_push_input_text(L, in, &length);
    if (!lumat_mat_open(&m, bytes, length, message, sizeof message))
        return refuse(L, in, message);
    reader r = {
        .m = &m, .in = in, .dtype = lumat_option_dtype(L, 2, GPU_ALL_DTYPES)};
    lua_newtable(L);
    int values = lua_gettop(L);
    lumat_begin_input(in, length);
    if (m.version == 7)
        lumat_push_hdf_values(L, in, bytes, length, r.dtype, values);
    while (m.version != 7) {
        size_t before = at;
        got = lumat_mat_next(&m, &at, &part, message, sizeof message);
        if (got < 0)
            return refuse(L, in, message);
        if (got == 0)
            break;
        if (part.is_array)
            add_part(L, &r, &part, values);
        lumat_input_goes_on(at - before);
    }
    lumat_check_wanted(L, in, values);
    return 1;
}

/* --- writing -------------------------------------------------------------- */
/* An array's length stands in front of it, so it is worked out first. */

enum {
    TAG = 8,
    INT8 = 1,
    UINT8 = 2,
    UINT16 = 4,
    INT32 = 5,
    UINT32 = 6,
    SINGLE = 7,
    DOUBLE = 9,
    MATRIX = 14,
    LOGICAL = 0x0200,
    COMPLEX = 0x0800
};

/* A value on its way to a file. */
typedef struct value {
    int of, flags; /* a lumat_mat_class; LOGICAL, COMPLEX */
    int64_t rows, cols;
    const gpu_matrix *m; /* or NULL */
    const gpu_sparse *s;
    const char *text;
    size_t length; /* of the text, in letters of 16 bits when it is written */
    int type;      /* of its elements */
    size_t element;
    size_t field; /* bytes of a field's name, with its zero */
} value;

static uint64_t filled(uint64_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static uint64_t element_bytes(uint64_t bytes)
{
    return TAG + filled(bytes);
}

static int is_list(lua_State *L, int index)
{
    int top = lua_gettop(L);
    int is = lua_rawgeti(L, index, 1) != LUA_TNIL ||
             (lua_pushnil(L), lua_next(L, index) == 0);
    lua_settop(L, top);
    return is;
}

/* The letters of 16 bits that the UTF-8 text is; into out unless NULL. */
static size_t to_utf16(const char *text, size_t length, uint16_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i++];
        int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
        uint32_t letter = more ? c & (0x3Fu >> more) : c;
        for (; more > 0 && i < length; more--)
            letter = letter << 6 | ((unsigned char)text[i++] & 0x3F);
        if (letter >= 0x10000) {
            letter -= 0x10000;
            if (out != NULL)
                out[count] = (uint16_t)(0xD800 + (letter >> 10 & 0x3FF));
            count++;
            letter = 0xDC00 + (letter & 0x3FF);
        }
        if (out != NULL)
            out[count] = (uint16_t)letter;
        count++;
    }
    return count;
}

/* Fields' names have one length: that of the longest. */
static void look_at_table(lua_State *L, int index, value *v)
{
    if (is_list(L, index)) {
        v->of = LUMAT_MAT_CELL;
        v->rows = (int64_t)lua_rawlen(L, index);
        return;
    }
    v->of = LUMAT_MAT_STRUCT;
    v->field = 1;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            lumat_raise(L,
                        "save: a table in a .mat file is a list or has names, "
                        "and not %s",
                        lumat_push_brief(L, -2));
        size_t length = lua_rawlen(L, -2) + 1;
        if (length > LUMAT_MAT_NAME / 4)
            lumat_raise(L, "save: the name '%s' has more than %d bytes",
                        lua_tostring(L, -2), LUMAT_MAT_NAME / 4 - 1);
        v->field = length > v->field ? length : v->field;
    }
}

static void look_at_matrix(value *v)
{
    static const int types[] = {SINGLE, DOUBLE, UINT8, SINGLE, DOUBLE};
    static const int classes[] = {LUMAT_MAT_SINGLE, LUMAT_MAT_DOUBLE,
                                  LUMAT_MAT_I8 + 1, LUMAT_MAT_SINGLE,
                                  LUMAT_MAT_DOUBLE};
    gpu_dtype part = gpu_dtype_of_parts(v->m->dtype);
    v->rows = v->m->rows;
    v->cols = v->m->cols;
    v->of = classes[v->m->dtype];
    v->type = types[v->m->dtype];
    v->element = gpu_dtype_size(part);
    v->flags = gpu_is_complex(v->m) ? COMPLEX : part == GPU_BOOL ? LOGICAL : 0;
}

/* What the value at index is; raises where a file has nothing for it. */
static value look_at(lua_State *L, int index)
{
    value v = {.of = LUMAT_MAT_DOUBLE,
               .rows = 1,
               .cols = 1,
               .type = DOUBLE,
               .element = 8};
    v.m = lumat_test_matrix(L, index);
    v.s = lumat_test_sparse(L, index);
    if (v.m != NULL && v.m->storage != NULL) {
        look_at_matrix(&v);
    } else if (v.s != NULL) {
        v.of = LUMAT_MAT_SPARSE;
        v.rows = v.s->rows;
        v.cols = v.s->cols;
        v.flags = gpu_is_complex(&v.s->values) ? COMPLEX : 0;
    } else if (lua_isboolean(L, index)) {
        v.of = LUMAT_MAT_I8 + 1;
        v.type = UINT8;
        v.element = 1;
        v.flags = LOGICAL;
    } else if (lua_type(L, index) == LUA_TSTRING) {
        v.of = LUMAT_MAT_CHAR;
        v.text = lua_tolstring(L, index, &v.length);
        v.cols = (int64_t)to_utf16(v.text, v.length, NULL);
        v.rows = v.cols > 0;
        v.type = UINT16;
        v.element = 2;
    } else if (lumat_test_complex(L, index) != NULL) {
        v.flags = COMPLEX;
    } else if (lua_istable(L, index)) {
        look_at_table(L, index, &v);
    } else if (lua_type(L, index) != LUA_TNUMBER) {
        lumat_raise(L, "save: a .mat file has nothing for %s",
                    lumat_push_brief(L, index));
    }
    return v;
}

static void check_nesting(lua_State *L, int depth)
{
    if (depth > MOST_DEPTH)
        lumat_raise(L, "save: tables lie in tables without end");
    luaL_checkstack(L, 10, "nested tables");
}

/* The bytes of the array behind its tag. */
static uint64_t array_bytes(lua_State *L, int index, size_t name, int depth)
{
    value v = look_at(L, index);
    uint64_t count = (uint64_t)v.rows * (uint64_t)v.cols;
    uint64_t bytes = element_bytes(8) + element_bytes(8) + element_bytes(name);
    check_nesting(L, depth);
    if (v.of == LUMAT_MAT_CELL) {
        for (int64_t i = 1; i <= v.rows; i++) {
            lua_rawgeti(L, index, i);
            bytes += TAG + array_bytes(L, lua_gettop(L), 0, depth + 1);
            lua_pop(L, 1);
        }
    } else if (v.of == LUMAT_MAT_STRUCT) {
        uint64_t fields = 0;
        for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1), fields++)
            bytes += TAG + array_bytes(L, lua_gettop(L), 0, depth + 1);
        bytes += TAG + element_bytes(v.field * fields);
    } else if (v.of == LUMAT_MAT_SPARSE) {
        bytes += element_bytes(4 * (uint64_t)v.s->count) +
                 element_bytes(4 * ((uint64_t)v.cols + 1)) +
                 element_bytes(8 * (uint64_t)v.s->count) *
                     (v.flags & COMPLEX ? 2 : 1);
    } else {
        bytes += element_bytes(count * v.element) * (v.flags & COMPLEX ? 2 : 1);
    }
    if (bytes >= UINT32_MAX)
        lumat_raise(L,
                    "save: a value of %s is too large for a .mat file of "
                    "version 5; .npz holds it",
                    gpu_bytes_text((size_t)bytes));
    return bytes;
}

static void put_tag(lua_State *L, lumat_target *t, uint32_t type,
                    uint64_t bytes)
{
    uint32_t tag[2] = {type, (uint32_t)bytes};
    lumat_put_bytes(L, t, tag, sizeof tag);
}

/* What makes an element's bytes a multiple of 8. */
static void fill_up(lua_State *L, lumat_target *t, uint64_t bytes)
{
    lumat_put_bytes(L, t, "\0\0\0\0\0\0\0\0", (size_t)(filled(bytes) - bytes));
}

static void put_element(lua_State *L, lumat_target *t, uint32_t type,
                        const void *data, size_t bytes)
{
    put_tag(L, t, type, bytes);
    lumat_put_bytes(L, t, data, bytes);
    fill_up(L, t, bytes);
}

/* Column after column; m is real. */
static void put_columns(lua_State *L, lumat_target *t, const value *v,
                        const gpu_matrix *m)
{
    lumat_npy_writer w = {.target = t, .element = v->element};
    uint64_t bytes = (uint64_t)v->rows * (uint64_t)v->cols * v->element;
    gpu_matrix *turned = lumat_new_matrix(L);
    gpu_view_transposed(m, turned);
    put_tag(L, t, (uint32_t)v->type, bytes);
    lumat_each_block(L, m->ndim == 1 ? m : turned, lumat_put_elements, &w);
    fill_up(L, t, bytes);
    lua_pop(L, 1);
}

static void put_matrix(lua_State *L, lumat_target *t, const value *v)
{
    if (!(v->flags & COMPLEX)) {
        put_columns(L, t, v, v->m);
        return;
    }
    gpu_matrix *plain = lumat_new_matrix(L); /* without a lazy conjugation */
    lumat_try(L, gpu_clone(v->m, v->m->dtype, NULL, plain));
    for (int i = 0; i < 2; i++) {
        gpu_matrix *part = lumat_new_matrix(L);
        gpu_view_part(plain, i == 0 ? GPU_REAL_PART : GPU_IMAGINARY_PART, part);
        put_columns(L, t, v, part);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* The rows of the transpose are the columns. */
static void put_sparse(lua_State *L, lumat_target *t, const value *v)
{
    const void *bytes;
    size_t count = (size_t)v->s->count;
    gpu_sparse *turned = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_transposed(v->s, turned));
    void *host = lua_newuserdatauv(L, 8 * (count + 1), 0);
    lumat_try(L, gpu_look_at_bytes(&turned->columns, host, &bytes));
    put_element(L, t, INT32, gpu_is_dry() ? "" : bytes,
                gpu_is_dry() ? 0 : 4 * count);
    void *starts = lua_newuserdatauv(L, 4 * ((size_t)v->cols + 1), 0);
    lumat_try(L, gpu_look_at_bytes(&turned->starts, starts, &bytes));
    put_element(L, t, INT32, gpu_is_dry() ? "" : bytes,
                gpu_is_dry() ? 0 : 4 * ((size_t)v->cols + 1));
    for (int i = 0; i < (v->flags & COMPLEX ? 2 : 1); i++) {
        gpu_matrix *part = lumat_new_matrix(L), *wide = lumat_new_matrix(L);
        gpu_view_part(&turned->values,
                      i == 0 ? GPU_REAL_PART : GPU_IMAGINARY_PART, part);
        lumat_try(L, gpu_clone(part, GPU_F64, NULL, wide));
        lumat_try(L, gpu_look_at_bytes(wide, host, &bytes));
        put_element(L, t, DOUBLE, gpu_is_dry() ? "" : bytes,
                    gpu_is_dry() ? 0 : 8 * count);
        lua_pop(L, 2);
    }
    lua_pop(L, 3);
}

static void put_array(lua_State *L, lumat_target *t, int index,
                      const char *name, int depth);

static void put_structure(lua_State *L, lumat_target *t, const value *v,
                          int index, int depth)
{
    uint32_t small[2] = {4u << 16 | INT32, (uint32_t)v->field};
    char field[LUMAT_MAT_NAME];
    uint64_t fields = 0;
    lumat_put_bytes(L, t, small, sizeof small);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        fields++;
    put_tag(L, t, INT8, v->field * fields);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        memset(field, 0, sizeof field);
        memcpy(field, lua_tostring(L, -2), lua_rawlen(L, -2));
        lumat_put_bytes(L, t, field, v->field);
    }
    fill_up(L, t, v->field * fields);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        put_array(L, t, lua_gettop(L), "", depth + 1);
}

static void put_text(lua_State *L, lumat_target *t, const value *v)
{
    size_t count = (size_t)v->cols;
    uint16_t *letters = lua_newuserdatauv(L, 2 * count + 2, 0);
    to_utf16(v->text, v->length, letters);
    put_element(L, t, UINT16, letters, 2 * count);
    lua_pop(L, 1);
}

static void put_array(lua_State *L, lumat_target *t, int index,
                      const char *name, int depth)
{
    value v = look_at(L, index);
    const gpu_complex *z = lumat_test_complex(L, index);
    size_t length = strlen(name);
    put_tag(L, t, MATRIX, array_bytes(L, index, length, depth));
    uint32_t flags[2] = {(uint32_t)(v.of | v.flags),
                         v.s != NULL ? (uint32_t)v.s->count : 0};
    int32_t sizes[2] = {(int32_t)v.rows, (int32_t)v.cols};
    put_element(L, t, UINT32, flags, sizeof flags);
    put_element(L, t, INT32, sizes, sizeof sizes);
    put_element(L, t, INT8, name, length);
    if (v.of == LUMAT_MAT_CELL) {
        for (int64_t i = 1; i <= v.rows; i++) {
            lua_rawgeti(L, index, i);
            put_array(L, t, lua_gettop(L), "", depth + 1);
            lua_pop(L, 1);
        }
    } else if (v.of == LUMAT_MAT_STRUCT) {
        put_structure(L, t, &v, index, depth);
    } else if (v.s != NULL) {
        put_sparse(L, t, &v);
    } else if (v.m != NULL) {
        put_matrix(L, t, &v);
    } else if (v.text != NULL) {
        put_text(L, t, &v);
    } else if (lua_isboolean(L, index)) {
        unsigned char truth = (unsigned char)lua_toboolean(L, index);
        put_element(L, t, UINT8, &truth, 1);
    } else {
        double x = z != NULL ? z->re : lua_tonumber(L, index);
        put_element(L, t, DOUBLE, &x, sizeof x);
        if (z != NULL)
            put_element(L, t, DOUBLE, &z->im, sizeof z->im);
    }
}

/* A letter, and then letters, digits and _: what MATLAB calls values by. */
static int is_name(const char *name, size_t length)
{
    if (length == 0 || length > 63 || strlen(name) != length)
        return 0;
    for (size_t i = 0; i < length; i++) {
        int is_letter = (name[i] | 32) >= 'a' && (name[i] | 32) <= 'z';
        if (!is_letter &&
            (i == 0 || !((name[i] >= '0' && name[i] <= '9') || name[i] == '_')))
            return 0;
    }
    return 1;
}

static uint64_t check_values(lua_State *L)
{
    uint64_t bytes = 0;
    size_t length;
    if (!lua_istable(L, 1) || is_list(L, 1))
        lumat_raise(L, "save: a .mat file holds values by their names: "
                       "save({A = A}, \"f.mat\")");
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING
                               ? lua_tolstring(L, -2, &length)
                               : NULL;
        if (name == NULL || !is_name(name, length))
            lumat_raise(L,
                        "save: %s is no name in a .mat file: a letter, then "
                        "letters, digits and _, at most 63",
                        lumat_push_brief(L, -2));
        bytes += array_bytes(L, lua_gettop(L), length, 0);
    }
    return bytes;
}

void lumat_save_mat(lua_State *L, const char *path, const lumat_format *f)
{
    char header[128];
    (void)f;
    uint64_t bytes = check_values(L);
    memset(header, ' ', sizeof header);
    memcpy(header, "MATLAB 5.0 MAT-file, written by lumat", 37);
    memset(header + 116, 0, 8);
    memcpy(header + 124, "\0\1IM", 4);
    lumat_target *t = lumat_push_target(L, path, (size_t)bytes);
    lumat_put_bytes(L, t, header, sizeof header);
    lumat_push_sorted_names(L, 1);
    int names = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, names, i) != LUA_TNIL; i++) {
        lua_pushvalue(L, -1);
        lua_rawget(L, 1);
        put_array(L, t, lua_gettop(L), lua_tostring(L, -2), 0);
        lua_settop(L, names);
    }
    lumat_finish_target(L, t);
}
