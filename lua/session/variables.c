/* The user's variables: which there are, who owns what, the table of them as
 * text, and what of them and of the devices holds memory. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scope.h"
#include "print.h"
#include "function.h"
#include "session.h"
#include "value.h"

/* Every storage has one owner among the variables, which its bytes are counted
 * for; the others are views of it, or the same. */
typedef struct lumat_variable {
    const char *name, *type;
    const gpu_matrix *dense; /* one of the two, or neither: another value */
    const gpu_sparse *sparse;
    int parts_owned;          /* storages */
    size_t owned, kept;       /* bytes of these, and kept about them */
    const char *sharing;      /* who owns the others; NULL: there are none */
    const gpu_matrix *shared; /* its matrix, when dense */
    int entry; /* at the prompt, that made what it owns; 0: not known */
    char shape[64], bytes[24];
} lumat_variable;

typedef struct lumat_listing {
    int names;        /* stack place of the table of all variables */
    int count, shown; /* those to be shown come first */
    lumat_variable *items;
    const char *heading; /* NULL: words above the columns, devices below */
} lumat_listing;

enum { LUMAT_MOST_LISTED = 20 }; /* under a heading */

/* A matrix of it that tells its device, or NULL. */
static const gpu_matrix *variable_part(const lumat_variable *v)
{
    return v->dense ? v->dense : v->sparse ? &v->sparse->values : NULL;
}

enum { PARTS = 3 };

/* That a variable holds a storage; the best claim of each owns it. */
typedef struct claim {
    const gpu_matrix *part;
    lumat_variable *by;
    int rank; /* 0: all of it in order; 1: all of it; 2: a part; 3: ans */
} claim;

/* --- gathering ------------------------------------------------------------ */

/* Pushes the table of all variables by name; the prompt's locals hide
 * globals. */
static void push_names(lua_State *L)
{
    lua_newtable(L);
    int all = lua_gettop(L);
    lumat_variables v = lumat_begin_variables(L, 0);
    while (lumat_next_variable(&v)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, all);
    }
}

/* --- who owns what -------------------------------------------------------- */

static int count_parts(const lumat_variable *v, const gpu_matrix *parts[PARTS])
{
    if (v->dense) {
        parts[0] = v->dense;
        return v->dense->storage != NULL;
    }
    if (!v->sparse || !v->sparse->values.storage)
        return 0;
    parts[0] = &v->sparse->values;
    parts[1] = &v->sparse->columns;
    parts[2] = &v->sparse->starts;
    return PARTS;
}

static int rank_of(const lumat_variable *v, const gpu_matrix *part)
{
    if (strcmp(v->name, "ans") == 0)
        return 3;
    if (v->dense && gpu_bytes(part) < gpu_storage_bytes(part))
        return 2;
    return !gpu_is_contiguous(part);
}

static int by_storage(const void *a, const void *b)
{
    const claim *x = a, *y = b;
    if (x->part->storage != y->part->storage)
        return x->part->storage < y->part->storage ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank - y->rank;
    return strcmp(x->by->name, y->by->name);
}

/* The first claim of each storage has it. */
static void settle(const claim *claims, int count)
{
    const claim *owner = NULL;
    for (int i = 0; i < count; i++) {
        lumat_variable *v = claims[i].by;
        const gpu_matrix *part = claims[i].part;
        if (!owner || !gpu_shares_storage(owner->part, part)) {
            owner = &claims[i];
            v->owned += gpu_storage_bytes(part);
            v->kept += gpu_kept_bytes(part);
            v->parts_owned++;
        } else if (owner->by != v) {
            v->sharing = owner->by->name;
            v->shared = owner->by->dense;
        }
    }
}

static void find_owners(lua_State *L, const lumat_listing *l)
{
    const gpu_matrix *parts[PARTS];
    size_t room = (size_t)l->count * PARTS;
    claim *claims = lua_newuserdatauv(L, (room + 1) * sizeof *claims, 0);
    int count = 0;
    for (int i = 0; i < l->count; i++) {
        lumat_variable *v = &l->items[i];
        for (int k = count_parts(v, parts); k-- > 0;)
            claims[count++] = (claim){parts[k], v, rank_of(v, parts[k])};
    }
    qsort(claims, (size_t)count, sizeof *claims, by_storage);
    settle(claims, count);
    lua_pop(L, 1);
}

/* --- the list ------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const lumat_variable *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int by_size(const void *a, const void *b)
{
    const lumat_variable *x = a, *y = b;
    if (x->owned != y->owned)
        return x->owned < y->owned ? 1 : -1;
    return by_name(a, b);
}

/* The texts of a matrix's columns. */
static void describe(lumat_variable *v)
{
    const char *shape = v->dense
                            ? gpu_shape_text(v->dense)
                            : gpu_size_text(v->sparse->rows, v->sparse->cols);
    snprintf(v->shape, sizeof v->shape, "%s", shape);
    v->type = gpu_dtype_name(variable_part(v)->dtype);
    /* the storage of an empty matrix is not quite so */
    size_t bytes =
        v->dense && gpu_size(v->dense) == 0 && v->owned == 1 ? 0 : v->owned;
    if (v->parts_owned > 0)
        snprintf(v->bytes, sizeof v->bytes, "%s", gpu_bytes_text(bytes));
}

/* Pushes the array of all variables. */
static void push_items(lua_State *L, lumat_listing *l)
{
    lumat_variable *v;
    for (lua_pushnil(L); lua_next(L, l->names); lua_pop(L, 1))
        l->count++;
    v = l->items =
        lua_newuserdatauv(L, ((size_t)l->count + 1) * sizeof *l->items, 0);
    for (lua_pushnil(L); lua_next(L, l->names); lua_pop(L, 1), v++)
        *v = (lumat_variable){.name = lua_tostring(L, -2),
                              .dense = lumat_test_matrix(L, -1),
                              .sparse = lumat_test_sparse(L, -1),
                              .type = lumat_kind_of(L, -1)};
    qsort(l->items, (size_t)l->count, sizeof *l->items, by_name);
    find_owners(L, l);
    for (int i = 0; i < l->count; i++)
        if (variable_part(&l->items[i]))
            describe(&l->items[i]);
}

/* The number of the entry that made the matrix of that name, or 0. */
static int entry_of(lua_State *L, const lumat_listing *l, const char *name)
{
    lua_getfield(L, -1, "entry_number");
    lua_getfield(L, l->names, name);
    int known = lua_pcall(L, 1, 1, 0) == LUA_OK;
    int number = known ? (int)lua_tointeger(L, -1) : 0;
    lua_pop(L, 1);
    return number;
}

/* lineage_report.lua is there when the prompt has had an entry. */
static void find_entries(lua_State *L, const lumat_listing *l)
{
    int top = lua_gettop(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, "lumat.lineage_report") == LUA_TTABLE)
        for (int i = 0; i < l->shown; i++)
            if (l->items[i].parts_owned > 0)
                l->items[i].entry = entry_of(L, l, l->items[i].name);
    lua_settop(L, top);
}

/* Moves those that match to the front, in their order. */
static void choose(lumat_listing *l, const char *pattern)
{
    for (int i = 0; i < l->count; i++) {
        lumat_variable found = l->items[i];
        if (pattern && fnmatch(pattern, found.name, 0) != 0)
            continue;
        l->items[i] = l->items[l->shown];
        l->items[l->shown++] = found;
    }
}

/* --- as text -------------------------------------------------------------- */

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
    const gpu_matrix *m = variable_part(v);
    return m->storage ? gpu_device_name(gpu_matrix_device(m)) : "freed";
}

static widths measure(const lumat_listing *l)
{
    widths w = {4, 4, 5, 5, 5, 0}; /* the words above the columns */
    for (int i = 0; i < l->shown; i++) {
        const lumat_variable *v = &l->items[i];
        grow(&w.name, v->name);
        grow(&w.type, v->type);
        if (!variable_part(v))
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
        luaL_addstring(b, gpu_bytes_text(v->kept));
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
    if (!variable_part(v)->storage) {
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
    if (variable_part(v)) {
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
        const gpu_matrix *part = variable_part(v);
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
    if (bytes == 0)
        return;
    luaL_addstring(b, (*count)++ ? ", " : "\n  besides ");
    luaL_addstring(b, gpu_bytes_text(bytes));
    luaL_addstring(b, what);
}

static void add_device(luaL_Buffer *b, const lumat_listing *l, gpu_device *d)
{
    gpu_memory memory;
    char text[160];
    int count, besides = 0;
    size_t bytes = count_owned(l, d, &count);
    if (gpu_device_memory(d, &memory) != GPU_OK)
        return;
    snprintf(text, sizeof text, "\n%s: %d %s, %s; %s free of %s",
             gpu_device_name(d), count, count == 1 ? "matrix" : "matrices",
             gpu_bytes_text(bytes), gpu_bytes_text(memory.free),
             gpu_bytes_text(memory.total));
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

/* Pushes the text. pattern is for the message when it matches nothing. */
static void push_listing(lua_State *L, const lumat_listing *l,
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

/* --- who ------------------------------------------------------------------ */

void lumat_push_who(lua_State *L, const char *pattern, int largest_first)
{
    int top = lua_gettop(L);
    lumat_listing l = {.names = top + 1};
    lumat_refresh_locals(L);
    push_names(L);
    push_items(L, &l);
    choose(&l, pattern);
    find_entries(L, &l);
    if (largest_first)
        qsort(l.items, (size_t)l.shown, sizeof *l.items, by_size);
    push_listing(L, &l, pattern);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

/* listing(values by name, heading): the first of them as text. */
static int list_values(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lumat_listing l = {.names = 1, .heading = luaL_checkstring(L, 2)};
    push_items(L, &l);
    l.shown = l.count < LUMAT_MOST_LISTED ? l.count : LUMAT_MOST_LISTED;
    push_listing(L, &l, NULL);
    return 1;
}

static int sorts_by_size(lua_State *L, int options)
{
    if (!lua_istable(L, options) ||
        lua_getfield(L, options, "sort") == LUA_TNIL)
        return 0;
    const char *order = lumat_push_brief(L, -1);
    if (strcmp(order, "\"size\"") != 0 && strcmp(order, "\"name\"") != 0)
        lumat_raise(L, "who: sort is \"name\" or \"size\", not %s", order);
    return order[1] == 's';
}

/* who([pattern [, {sort = "size"}]]) */
static int who(lua_State *L)
{
    const char *pattern = luaL_optstring(L, 1, NULL);
    int largest_first = sorts_by_size(L, 2);
    lumat_push_who(L, pattern, largest_first);
    puts(lua_tostring(L, -1));
    return 0;
}

static const lumat_option who_options[] = {
    {"sort", "\"size\"|\"name\"", "\"name\"", "\"size\": the largest first"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
    {"who", who, 0, "[pattern: string {sort}]", "nothing",
     "Prints your variables, or those whose names match a pattern as of files "
     "(\"tmp*\"): type, shape, device, bytes there; a view and a second name "
     "have none of their own. {sort=\"size\"} puts the largest first. Also "
     ":who.",
     "type(who)", "\"function\"", .group = "asking",
     .usage = "who([pattern [, {sort=}]])", .options = who_options},
    {0}};

void lumat_open_who(lua_State *L)
{
    lumat_register(L, functions);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushcfunction(L, list_values);
    lua_setfield(L, -2, "lumat.listing");
    lua_pop(L, 1);
}

/* --- what holds memory ---------------------------------------------------- */
/* For memory_report.lua: the devices that are open, and variables by name. */

/* devices(): a list of names */
static int push_devices(lua_State *L)
{
    gpu_device *const *devices;
    int n = gpu_device_count_opened(&devices);
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushstring(L, gpu_device_name(devices[i]));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* reset(): every device's peak is what its matrices hold now */
static int reset_peaks(lua_State *L)
{
    gpu_device *const *devices;
    int n = gpu_device_count_opened(&devices);
    (void)L;
    for (int i = 0; i < n; i++)
        gpu_reset_peak(devices[i]);
    return 0;
}

static size_t storage_of_sparse(const gpu_sparse *s)
{
    return gpu_storage_bytes(&s->starts) + gpu_storage_bytes(&s->columns) +
           gpu_storage_bytes(&s->values);
}

/* Adds {name, bytes, device, matrix, storage} when the value on top is a
 * matrix that is there; storage tells which share one. */
static void add_fact(lua_State *L, int list, const char *name)
{
    const gpu_matrix *m = lumat_test_matrix(L, -1);
    const gpu_sparse *s = m ? NULL : lumat_test_sparse(L, -1);
    const gpu_matrix *held = s ? &s->values : m;
    if (!held || !held->storage)
        return;
    lua_createtable(L, 0, 5);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lumat_set_count(L, "bytes",
                    s ? storage_of_sparse(s) : gpu_storage_bytes(m));
    lua_pushstring(L, gpu_device_name(gpu_matrix_device(held)));
    lua_setfield(L, -2, "device");
    lua_pushlightuserdata(L, held->storage);
    lua_setfield(L, -2, "storage");
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "matrix");
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
}

/* variables(): matrices among the prompt's locals and the globals */
static int push_variables(lua_State *L)
{
    lua_settop(L, 0);
    lumat_refresh_locals(L);
    lua_newtable(L);
    lumat_variables v = lumat_begin_variables(L, LUMAT_WITH_HIDDEN);
    while (lumat_next_variable(&v))
        add_fact(L, 1, v.name);
    return 1;
}

void lumat_open_held(lua_State *L)
{
    static const luaL_Reg own[] = {{"devices", push_devices},
                                   {"variables", push_variables},
                                   {"reset", reset_peaks},
                                   {NULL, NULL}};
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    luaL_newlib(L, own);
    lua_setfield(L, -2, "lumat.held");
    lua_pop(L, 1);
}
