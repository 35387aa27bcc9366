/* The user's variables: which there are, and who owns what. */
#include "variables.h"
#include "locals.h"
#include "registry.h"
#include "session.h"
#include "session_parts.h"
#include "shape_errors.h"
#include "sparse_matrix.h"
#include "visible.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 3 };

/* That a variable holds a storage; the best claim of each owns it. */
typedef struct claim {
    const gpu_matrix *part;
    lumat_variable *by;
    int rank; /* 0: all of it in order; 1: all of it; 2: a part; 3: ans */
} claim;

/* --- gathering ------------------------------------------------------------ */

/* Adds the user's names in the table on top to `all`; pops it. */
static void gather_names(lua_State *L, int all, int base)
{
    int table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING ||
            strcmp(lua_tostring(L, -2), "arg") == 0)
            continue;
        lua_pushvalue(L, -2);
        lua_rawget(L, base);
        if (!lua_rawequal(L, -1, -2)) {
            lua_pushvalue(L, -3);
            lua_pushvalue(L, -3);
            lua_rawset(L, all);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Pushes the table of all variables by name; the prompt's locals hide
 * globals. */
static void push_names(lua_State *L)
{
    int all = lua_gettop(L) + 1;
    lua_newtable(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    lua_pushglobaltable(L);
    gather_names(L, all, all + 1);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
    gather_names(L, all, all + 1);
    lua_settop(L, all);
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

const gpu_matrix *lumat_variable_part(const lumat_variable *v)
{
    return v->dense ? v->dense : v->sparse ? &v->sparse->values : NULL;
}

/* The texts of a matrix's columns. */
static void describe(lua_State *L, lumat_variable *v)
{
    if (v->dense)
        lumat_push_shape(L, v->dense);
    else
        lua_pushfstring(L, "%Ix%I", (LUAI_UACINT)v->sparse->rows,
                        (LUAI_UACINT)v->sparse->cols);
    snprintf(v->shape, sizeof v->shape, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    v->type = gpu_dtype_name(lumat_variable_part(v)->dtype);
    /* the storage of an empty matrix is not quite so */
    size_t bytes =
        v->dense && gpu_size(v->dense) == 0 && v->owned == 1 ? 0 : v->owned;
    if (v->parts_owned > 0)
        lumat_bytes_text(bytes, v->bytes, sizeof v->bytes);
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
        if (lumat_variable_part(&l->items[i]))
            describe(L, &l->items[i]);
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
    lumat_push_listing(L, &l, pattern);
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
    lumat_push_listing(L, &l, NULL);
    return 1;
}

static int sorts_by_size(lua_State *L, int options)
{
    lumat_check_options(L, options, "sort");
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

static const lumat_function functions[] = {
    {"who", who, 0, "who([pattern [, options]])",
     "Prints your variables, or those whose names match a pattern as of files "
     "(\"tmp*\"): type, shape, device, bytes there; a view and a second name "
     "have none of their own. {sort=\"size\"} puts the largest first. Also "
     ":who.",
     "type(who)", "\"function\""},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL}};

void lumat_open_who(lua_State *L)
{
    lumat_register(L, functions);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushcfunction(L, list_values);
    lua_setfield(L, -2, "lumat.listing");
    lua_pop(L, 1);
}
