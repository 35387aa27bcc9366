/* The table of the user's variables as text. */
#include "print.h"
#include "variables.h"

#include <stdio.h>
#include <string.h>

enum { GAP = 2, LONGEST_NAME = 100, ENTRY = 5 };

typedef struct widths {
    int name, type, shape, where, bytes;
    int entry; /* 0: there is no such column */
} widths;

static void grow(int *width, const char *text)
{
    int length = (int)strlen(text);
    length = length < LONGEST_NAME ? length : LONGEST_NAME;
    *width = length > *width ? length : *width;
}

static const char *where_is(const lumat_variable *v)
{
    const gpu_matrix *m = lumat_variable_part(v);
    return m->storage ? gpu_device_name(gpu_matrix_device(m)) : "freed";
}

static widths measure(const lumat_listing *l)
{
    widths w = {4, 4, 5, 5, 5, 0}; /* the words above the columns */
    for (int i = 0; i < l->shown; i++) {
        const lumat_variable *v = &l->items[i];
        grow(&w.name, v->name);
        grow(&w.type, v->type);
        if (!lumat_variable_part(v))
            continue;
        grow(&w.shape, v->shape);
        grow(&w.where, where_is(v));
        grow(&w.bytes, v->bytes);
        if (v->entry > 0)
            w.entry = ENTRY;
    }
    return w;
}

/* --- lines ---------------------------------------------------------------- */

static int is_same(const gpu_matrix *a, const gpu_matrix *b)
{
    return a->ndim == b->ndim && a->rows == b->rows && a->cols == b->cols &&
           a->row_stride == b->row_stride && a->col_stride == b->col_stride &&
           a->offset == b->offset;
}

/* Whose elements, in all or in part, a variable has. */
static const char *relation(const lumat_variable *v)
{
    if (v->dense && v->shared)
        return is_same(v->dense, v->shared) ? "same as " : "view of ";
    return v->parts_owned == 0 ? "same as " : "places are those of ";
}

static int is_orphan(const lumat_variable *v)
{
    return v->dense && gpu_size(v->dense) > 0 && v->owned > gpu_bytes(v->dense);
}

static int has_note(const lumat_variable *v)
{
    return v->sparse || v->sharing || v->kept > 0 || is_orphan(v);
}

/* Adds text behind a blank or a comma. */
static void add_remark(luaL_Buffer *b, int *count, const char *text)
{
    luaL_addstring(b, (*count)++ ? ", " : "  ");
    luaL_addstring(b, text);
}

static void add_note(luaL_Buffer *b, const lumat_variable *v)
{
    char text[32];
    int count = 0;
    if (v->sparse) {
        add_remark(b, &count, "sparse, nnz ");
        lumat_add_count(b, v->sparse->count);
    }
    if (v->sharing) {
        add_remark(b, &count, relation(v));
        luaL_addstring(b, v->sharing);
    }
    if (is_orphan(v))
        add_remark(b, &count, "view of a matrix without a name");
    if (v->kept > 0) {
        add_remark(b, &count, "products keep ");
        luaL_addstring(b, lumat_bytes_text(v->kept, text, sizeof text));
        luaL_addstring(b, " more");
    }
}

static void add_entry(luaL_Buffer *b, const lumat_variable *v, const widths *w,
                      const lumat_style *style)
{
    if (v->entry > 0)
        lumat_add_number(b, style, v->entry, GAP + w->entry);
    else if (has_note(v))
        lumat_add_padded(b, style, "", 0, GAP + w->entry, LUMAT_PLAIN);
}

static void add_matrix(luaL_Buffer *b, const lumat_variable *v, const widths *w,
                       const lumat_style *style)
{
    char text[128];
    int owns = v->bytes[0] != '\0';
    const char *none = style->ascii ? "-" : "–";
    if (!lumat_variable_part(v)->storage) {
        luaL_addstring(b, "  freed");
        return;
    }
    snprintf(text, sizeof text, "  %-*s  %-*s", w->shape, v->shape, w->where,
             where_is(v));
    luaL_addstring(b, text);
    lumat_add_padded(b, style, owns ? v->bytes : none,
                     owns ? (int)strlen(v->bytes) : 1, GAP + w->bytes,
                     LUMAT_PLAIN);
    if (w->entry > 0)
        add_entry(b, v, w, style);
    add_note(b, v);
}

static void add_variable(lua_State *L, luaL_Buffer *b, const lumat_listing *l,
                         const lumat_variable *v, const widths *w)
{
    lumat_style style = lumat_style_now(L);
    char text[160];
    snprintf(text, sizeof text, "\n%-*.100s  %-*s", w->name, v->name, w->type,
             v->type);
    luaL_addstring(b, text);
    if (lumat_variable_part(v)) {
        add_matrix(b, v, w, &style);
        return;
    }
    lua_getfield(L, l->names, v->name);
    lumat_push_headline(L, -1);
    snprintf(text, sizeof text, "  %.120s", lua_tostring(L, -1));
    lua_pop(L, 2);
    luaL_addstring(b, text);
}

/* --- devices -------------------------------------------------------------- */

/* What variables own on a device, and how many they are. */
static size_t count_owned(const lumat_listing *l, const gpu_device *d,
                          int *count)
{
    size_t bytes = 0;
    *count = 0;
    for (int i = 0; i < l->count; i++) {
        const lumat_variable *v = &l->items[i];
        const gpu_matrix *part = lumat_variable_part(v);
        if (!part || v->parts_owned == 0 || gpu_matrix_device(part) != d)
            continue;
        bytes += v->owned;
        ++*count;
    }
    return bytes;
}

/* ", 64.0 MiB" and what it is, unless it is nothing. */
static void add_amount(luaL_Buffer *b, size_t bytes, const char *what,
                       int *count)
{
    char text[32];
    if (bytes == 0)
        return;
    luaL_addstring(b, (*count)++ ? ", " : "\n  besides ");
    luaL_addstring(b, lumat_bytes_text(bytes, text, sizeof text));
    luaL_addstring(b, what);
}

static void add_device(luaL_Buffer *b, const lumat_listing *l, gpu_device *d)
{
    gpu_memory memory;
    char text[160], owned[32], free[32], total[32];
    int count, besides = 0;
    size_t bytes = count_owned(l, d, &count);
    if (gpu_device_memory(d, &memory) != GPU_OK)
        return;
    snprintf(text, sizeof text, "\n%s: %d %s, %s; %s free of %s",
             gpu_device_name(d), count, count == 1 ? "matrix" : "matrices",
             lumat_bytes_text(bytes, owned, sizeof owned),
             lumat_bytes_text(memory.free, free, sizeof free),
             lumat_bytes_text(memory.total, total, sizeof total));
    luaL_addstring(b, text);
    add_amount(b, memory.live > bytes ? memory.live - bytes : 0,
               " in matrices without a name", &besides);
    add_amount(b, memory.kept, " kept by products", &besides);
    add_amount(b, memory.unused, " unused in the pool", &besides);
}

/* --- all of it ------------------------------------------------------------ */

static void add_heading(luaL_Buffer *b, const lumat_listing *l, const widths *w,
                        const char *pattern)
{
    char text[256];
    if (l->heading) {
        luaL_addstring(b, l->heading);
        return;
    }
    if (l->shown > 0)
        snprintf(text, sizeof text, "%-*.100s  %-*s  %-*s  %-*s  %*s", w->name,
                 "name", w->type, "type", w->shape, "shape", w->where, "where",
                 w->bytes, "bytes");
    else if (pattern)
        snprintf(text, sizeof text, "no variable matches '%.100s'", pattern);
    else
        strcpy(text, "no variables yet: A = mat{{1, 2}, {3, 4}} makes one");
    luaL_addstring(b, text);
    if (w->entry > 0)
        luaL_addstring(b, "  entry");
}

static void add_rest(lua_State *L, luaL_Buffer *b, const lumat_listing *l)
{
    char text[64];
    snprintf(text, sizeof text, "\n%s and %d more",
             lumat_style_now(L).ascii ? "..." : "…", l->count - l->shown);
    luaL_addstring(b, text);
}

void lumat_push_listing(lua_State *L, const lumat_listing *l,
                        const char *pattern)
{
    gpu_device *const *devices;
    int count = gpu_device_count_opened(&devices);
    widths w = measure(l);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    add_heading(&b, l, &w, pattern);
    for (int i = 0; i < l->shown; i++)
        add_variable(L, &b, l, &l->items[i], &w);
    if (l->shown < l->count && l->heading)
        add_rest(L, &b, l);
    for (int i = 0; i < count && !pattern && !l->heading; i++)
        add_device(&b, l, devices[i]);
    luaL_pushresult(&b);
}
