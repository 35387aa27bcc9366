/* Arrays in NumPy's format, in files of their own and as parts of archives. */
#include "arguments.h"
#include "cancellation.h"
#include "formats.h"

#include <string.h>

/* --- reading -------------------------------------------------------------- */

int lumat_try_npy_header(lua_State *L, lumat_source *s, lumat_npy *n,
                         char message[LUMAT_MESSAGE])
{
    enum { PREFIX = 12 }; /* in which the rest's length stands */
    uint64_t all = s->left;
    size_t most = LUMAT_NPY_MOST_HEADER;
    unsigned char *header = lua_newuserdatauv(L, most, 0);
    size_t length = all < PREFIX ? (size_t)all : PREFIX;
    lumat_take_bytes(L, s, header, length);
    if (length == PREFIX) {
        size_t rest = header[8] | (size_t)header[9] << 8;
        if (header[6] > 1)
            rest |= (size_t)header[10] << 16 | (size_t)header[11] << 24;
        size_t end = (header[6] > 1 ? PREFIX : PREFIX - 2) + rest;
        end = end > most ? most : end; /* which is refused below */
        end = end > all ? (size_t)all : end;
        if (end > length)
            lumat_take_bytes(L, s, header + length, end - length);
    }
    int is_read =
        lumat_npy_open(n, header, (size_t)all, message, LUMAT_MESSAGE);
    lua_pop(L, 1);
    return is_read;
}

/* A text that zeros fill up to its length. Letters of 4 bytes become UTF-8;
 * what is none becomes U+FFFD. */
static void push_text(lua_State *L, const lumat_npy *n, const unsigned char *p)
{
    luaL_Buffer b;
    size_t length = (size_t)n->bytes;
    if (n->kind == 'S') {
        while (length > 0 && p[length - 1] == 0)
            length--;
        lua_pushlstring(L, (const char *)p, length);
        return;
    }
    while (length >= 4 && memcmp(p + length - 4, "\0\0\0", 4) == 0)
        length -= 4;
    luaL_buffinit(L, &b);
    for (size_t i = 0; i + 4 <= length; i += 4) {
        uint32_t c = 0;
        int little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != n->swapped;
        for (size_t k = 0; k < 4; k++)
            c |= (uint32_t)p[i + k] << (8 * (little ? k : 3 - k));
        if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            c = 0xFFFD;
        lua_pushfstring(L, "%U", (unsigned long)c);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
}

/* A list of strings; of a matrix of them a list of lists, row by row. */
static void push_texts(lua_State *L, lumat_source *s, const lumat_npy *n)
{
    int64_t all = n->rows * n->cols;
    unsigned char *text = lua_newuserdatauv(L, (size_t)n->bytes, 0);
    if (n->ndim > 2)
        lumat_refuse_source(L, s,
                            "holds strings in %d dimensions; at most 2 "
                            "are read",
                            n->ndim);
    lua_newtable(L);
    if (n->ndim == 2 && all > 0)
        for (int64_t i = 1; i <= n->rows; i++) {
            lua_newtable(L);
            lua_rawseti(L, -2, i);
        }
    for (int64_t i = 0; i < all; i++) {
        lumat_take_bytes(L, s, text, (size_t)n->bytes);
        lumat_look(L);
        int64_t row = n->fortran ? i % n->rows : i / n->cols;
        int64_t col = n->fortran ? i / n->rows : i % n->cols;
        if (n->ndim == 0) {
            push_text(L, n, text);
            lua_replace(L, -2);
        } else if (n->ndim == 1) {
            push_text(L, n, text);
            lua_rawseti(L, -2, i + 1);
        } else {
            lua_rawgeti(L, -1, row + 1);
            push_text(L, n, text);
            lua_rawseti(L, -2, col + 1);
            lua_pop(L, 1);
        }
    }
    lua_replace(L, -2);
}

void lumat_check_page_count(lua_State *L, const lumat_input *in, int64_t pages,
                            int64_t elements)
{
    enum { ANYWAY = 1 << 18, EACH = 4 };
    if (pages > ANYWAY + elements / EACH)
        lumat_refuse_input(L, in,
                           "has %lld matrices of hardly an element; as one "
                           "matrix it can be read",
                           (long long)pages);
}

/* Pages one behind the other are matrices of their own. */
static void push_pages(lua_State *L, lumat_source *s, const lumat_npy *n,
                       gpu_dtype dtype, int exact)
{
    lua_createtable(L, (int)n->pages, 0);
    int list = lua_gettop(L);
    for (int64_t i = 1; i <= n->pages; i++) {
        lumat_result r = lumat_push_result(L, dtype, 2, n->rows, n->cols);
        int all = lua_gettop(L);
        lumat_read_elements(L, s, n, exact, &r);
        lua_pushvalue(L, all);
        lua_rawseti(L, list, i);
        lua_settop(L, list);
    }
}

/* Where the first index runs fastest, pages lie between each other: they are
 * views of one matrix whose rows are the last index, and whose columns are the
 * pages of the rows. */
static void push_mixed_pages(lua_State *L, lumat_source *s, const lumat_npy *n,
                             gpu_dtype dtype, int exact)
{
    lua_createtable(L, (int)n->pages, 0);
    int list = lua_gettop(L);
    lumat_result r =
        lumat_push_result(L, dtype, 2, n->cols, n->rows * n->pages);
    lumat_read_elements(L, s, n, exact, &r);
    for (int64_t i = 0; i < n->pages; i++) {
        int top = lua_gettop(L);
        gpu_slice rows = {0, 1, n->cols}, cols = {i, n->pages, n->rows};
        gpu_matrix *page = lumat_new_matrix(L);
        lumat_try(L, gpu_view_block(r.all, rows, cols, page));
        lumat_turn_result(L, page);
        lua_rawseti(L, list, i + 1);
        lua_settop(L, top);
    }
    lua_settop(L, list);
}

void lumat_push_elements(lua_State *L, lumat_source *s, const lumat_npy *n,
                         gpu_dtype dtype)
{
    int top = lua_gettop(L), exact = dtype == GPU_ALL_DTYPES;
    if (n->kind == 'S' || n->kind == 'U') {
        push_texts(L, s, n);
        return;
    }
    dtype = exact ? lumat_npy_dtype(n) : dtype;
    if (n->ndim == 3) {
        lumat_check_page_count(L, s->in, n->pages,
                               n->pages * n->rows * n->cols);
        (n->fortran ? push_mixed_pages : push_pages)(L, s, n, dtype, exact);
        return;
    }
    int is_turned = n->ndim == 2 && n->fortran;
    lumat_result r = lumat_push_result(L, dtype, n->ndim < 2 ? 1 : 2,
                                       is_turned ? n->cols : n->rows,
                                       is_turned ? n->rows : n->cols);
    int all = lua_gettop(L);
    lumat_read_elements(L, s, n, exact, &r);
    if (is_turned)
        lumat_turn_result(L, r.all);
    else
        lua_pushvalue(L, all);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

void lumat_choose_rows(lua_State *L, lumat_source *s, lumat_npy *n,
                       int64_t first, int64_t last)
{
    int64_t *rows = n->ndim == 3 ? &n->pages : &n->rows, all = *rows;
    size_t size = (size_t)n->bytes;
    if (n->ndim == 0)
        lumat_raise(L, "rows: '%s' holds a number, which has no rows",
                    s->in->path);
    if (first > all)
        lumat_raise(L, "rows: '%s' has %I rows, none of them is row %I",
                    s->in->path, (LUAI_UACINT)all, (LUAI_UACINT)first);
    *rows = (last < all ? last : all) - first + 1;
    n->passed = n->ndim == 3 ? 0 : first - 1;
    size_t others = (size_t)(n->ndim == 3 ? n->rows * n->cols : n->cols);
    s->left = (size_t)*rows * others * size;
    if (n->fortran && others > 1) {
        s->at += (size_t)(first - 1) * size;
        s->run = s->in_run = (size_t)*rows * size;
        s->gap = (size_t)(all - *rows) * size;
    } else {
        s->at += (size_t)(first - 1) * others * size;
    }
}

int lumat_load_npy(lua_State *L, lumat_input *in, const lumat_format *f)
{
    int64_t first, last;
    lumat_source s = {.left = in->size, .in = in};
    char message[LUMAT_MESSAGE] = "";
    lumat_npy n;
    (void)f;
    if (in->is_packed) {
        size_t length;
        s.memory = lumat_push_input_text(L, in, &length);
        s.left = length;
    }
    lumat_option_range(L, &first, &last);
    if (!lumat_try_npy_header(L, &s, &n, message))
        lumat_refuse_source(L, &s, "%s", message);
    if (first > 1 || last < INT64_MAX)
        lumat_choose_rows(L, &s, &n, first, last);
    lumat_begin_input(in, (size_t)s.left);
    lumat_push_elements(L, &s, &n, lumat_option_dtype(L, 2, GPU_ALL_DTYPES));
    return 1;
}

/* --- blocks --------------------------------------------------------------- */

/* A file that is read some rows at a time. */
typedef struct npy_blocks {
    lumat_source all; /* its elements */
    lumat_npy n;
    int64_t done, rows; /* done; of a block, at most */
} npy_blocks;

/* Gives the next block, or nothing. Upvalues: npy_blocks, the input, the path,
 * the options. */
static int next_block(lua_State *L)
{
    npy_blocks *b = lua_touserdata(L, lua_upvalueindex(1));
    const lumat_input *in = lua_touserdata(L, lua_upvalueindex(2));
    lumat_source s = b->all;
    lumat_npy n = b->n;
    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(3));
    lua_pushvalue(L, lua_upvalueindex(4)); /* where options are looked for */
    if (in->fd < 0 || b->done >= (n.ndim == 3 ? n.pages : n.rows))
        return 0;
    lumat_choose_rows(L, &s, &n, b->done + 1, b->done + b->rows);
    lumat_push_elements(L, &s, &n, lumat_option_dtype(L, 2, GPU_ALL_DTYPES));
    b->done += b->rows;
    return 1;
}

int lumat_npy_blocks(lua_State *L, lumat_input *in, const lumat_format *f,
                     int64_t rows)
{
    char message[LUMAT_MESSAGE] = "";
    int input = lua_gettop(L);
    npy_blocks *b = lua_newuserdatauv(L, sizeof *b, 0);
    (void)f;
    *b = (npy_blocks){.all = {.left = in->size, .in = in}, .rows = rows};
    if (in->is_packed)
        lumat_raise(L,
                    "load_blocks: '%s' is packed: unpack it first, or load "
                    "reads it whole",
                    in->path);
    if (!lumat_try_npy_header(L, &b->all, &b->n, message))
        lumat_refuse_source(L, &b->all, "%s", message);
    if (b->n.ndim == 0)
        lumat_raise(L, "load_blocks: '%s' holds a number, which has no rows",
                    in->path);
    lua_pushvalue(L, input);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, next_block, 4);
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushvalue(L, input);
    return 4;
}

/* --- writing -------------------------------------------------------------- */

static void put(lua_State *L, const lumat_npy_writer *w, const void *bytes,
                size_t length)
{
    if (w->archive != NULL)
        lumat_archive_write(L, w->archive, bytes, length);
    else
        lumat_put_bytes(L, w->target, bytes, length);
}

void lumat_put_elements(lua_State *L, void *data, const void *bytes,
                        int64_t first, int64_t rows, int64_t cols)
{
    const lumat_npy_writer *w = data;
    (void)first;
    if (bytes != NULL)
        put(L, w, bytes, w->element * (size_t)(rows * cols));
}

void lumat_write_npy(lua_State *L, lumat_npy_writer *w, const gpu_matrix *m)
{
    char header[LUMAT_NPY_HEADER];
    put(L, w, header,
        lumat_npy_header(header, m->dtype, m->ndim, m->rows, m->cols));
    w->element = gpu_dtype_size(m->dtype);
    lumat_each_block(L, m, lumat_put_elements, w);
}

/* Element i of the list at index, which is pushed: a matrix like `first`. */
static const gpu_matrix *check_page(lua_State *L, int index, int64_t i,
                                    const gpu_matrix *first)
{
    lua_rawgeti(L, index, i);
    const gpu_matrix *m = lumat_test_matrix(L, -1);
    if (m == NULL || m->storage == NULL || m->ndim != 2)
        lumat_raise(L,
                    "save: element %I of the list is %s; a list of matrices "
                    "is an array of three dimensions",
                    (LUAI_UACINT)i, lumat_push_brief(L, -1));
    if (first == NULL)
        return m;
    if (m->rows != first->rows || m->cols != first->cols)
        lumat_raise(L,
                    "save: element %I of the list is %s, the first is %s; a "
                    ".npz file takes matrices of any shapes: "
                    "save({a = A, b = B}, \"f.npz\")",
                    (LUAI_UACINT)i, gpu_shape_text(m), gpu_shape_text(first));
    if (m->dtype != first->dtype)
        lumat_raise(L, "save: element %I of the list is %s, the first is %s",
                    (LUAI_UACINT)i, gpu_dtype_name(m->dtype),
                    gpu_dtype_name(first->dtype));
    return m;
}

void lumat_refuse_object(lua_State *L, int index)
{
    if (lumat_is_frame(L, index))
        lumat_raise(L, "save: .npy and .npz files hold arrays, not a frame: "
                       "save(T, \"f.csv\") writes it, save(T:matrix(), "
                       "\"f.npy\") its numbers");
    if (!lua_istable(L, index) || !lua_getmetatable(L, index))
        return;
    lua_pop(L, 1);
    lumat_raise(L, "save: .npy and .npz files hold arrays, not an object of "
                   "several: write its parts, as save({L = F.L, U = F.U}, "
                   "\"f.npz\")");
}

int64_t lumat_check_pages(lua_State *L, int index)
{
    lumat_refuse_object(L, index);
    int64_t count = (int64_t)lua_rawlen(L, index), bytes = 0;
    if (count == 0)
        lumat_raise(L, "save: the list is empty");
    const gpu_matrix *first = check_page(L, index, 1, NULL);
    for (int64_t i = 1; i <= count; i++) {
        bytes += (int64_t)gpu_bytes(check_page(L, index, i, first));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return bytes;
}

void lumat_write_pages(lua_State *L, lumat_npy_writer *w, int index)
{
    char header[LUMAT_NPY_HEADER];
    int64_t count = (int64_t)lua_rawlen(L, index);
    const gpu_matrix *m = check_page(L, index, 1, NULL);
    int64_t sizes[] = {count, m->rows, m->cols};
    w->element = gpu_dtype_size(m->dtype);
    put(L, w, header,
        lumat_npy_header_of(header, lumat_npy_type_name(m->dtype), 3, sizes));
    lua_pop(L, 1);
    for (int64_t i = 1; i <= count; i++) {
        lumat_each_block(L, check_page(L, index, i, NULL), lumat_put_elements,
                         w);
        lua_pop(L, 1);
    }
}

void lumat_save_npy(lua_State *L, const char *path, const lumat_format *f)
{
    lumat_npy_writer w = {.target = NULL};
    (void)f;
    if (lua_istable(L, 1)) {
        w.target = lumat_push_target(L, path, (size_t)lumat_check_pages(L, 1));
        lumat_write_pages(L, &w, 1);
    } else {
        const gpu_matrix *m = lumat_check_matrix(L, 1);
        w.target = lumat_push_target(L, path, gpu_bytes(m));
        lumat_write_npy(L, &w, m);
    }
    lumat_finish_target(L, w.target);
}
