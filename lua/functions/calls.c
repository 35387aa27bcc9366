/* Calls of the library's functions: counted, checked, then done. */
#include "function.h"
#include "value.h"

#include <limits.h>
#include <string.h>

/* What a call is held against, in front of the function itself: the closure's
 * first upvalue. */
typedef struct known_option {
    const char *key; /* as Lua has it: equal strings are at one place */
    const lumat_option *option;
    lumat_kind_test *test; /* or NULL: by the kind's text */
} known_option;

typedef struct checked {
    const lumat_function *row;
    known_option *options; /* from the first call on that has any */
    int option_count;
    int least, most; /* arguments before options; INT_MAX: any number */
    int from, to;    /* where the options may stand; 0: nowhere */
    int unlooked;    /* as many as there can be without a look at them */
    unsigned data;   /* bits of the places where a table may be data */
} checked;

/* --- what is held against ---------------------------------------------------
 */

static int is_in(lumat_piece kinds, const char *kind)
{
    lumat_piece one;
    while (lumat_next_kind(&kinds, &one))
        if (lumat_is_piece(one, kind))
            return 1;
    return 0;
}

static void measure(const lumat_function *f, checked *c)
{
    lumat_argument a = {.rest = f->takes};
    int form = -1, needed = 0, is_device = 0;
    *c = (checked){.row = f, .least = INT_MAX};
    while (lumat_next_argument(&a)) {
        if (a.form != form)
            c->least = needed < c->least && form >= 0 ? needed : c->least;
        if (a.form != form)
            needed = 0, form = a.form;
        if (a.is == LUMAT_ARGUMENT_OPTIONS) {
            int first = needed + 1;
            c->from = c->from == 0 || first < c->from ? first : c->from;
            c->to = a.place > c->to ? a.place : c->to;
            needed += a.is_needed;
            continue;
        }
        needed += a.depth == 0 && a.is == LUMAT_ARGUMENT;
        if (is_in(a.kind, "table") || is_in(a.kind, "list"))
            c->data |= 1u << a.place;
        if (a.is == LUMAT_ARGUMENT_MORE)
            c->most = INT_MAX;
        else if (a.place > c->most) {
            c->most = a.place;
            is_device = lumat_is_piece(a.kind, "device");
        }
    }
    c->most += is_device; /* to(A, device()): device() describes it, too */
    c->least = needed < c->least ? needed : c->least;
    c->unlooked = c->from > 0 && c->from <= c->most ? c->from - 1 : c->most;
}

/* A member's name without its owner. */
static const char *said(const lumat_function *f)
{
    const char *dot = strrchr(f->name, '.');
    return dot ? dot + 1 : f->name;
}

/* --- what is wrong ----------------------------------------------------------
 */

static int raise_surplus(lua_State *L, const lumat_function *f, int count)
{
    if (f->on_surplus)
        f->on_surplus(L, f, count);
    return lumat_raise(L, "%s: %d argument%s too many: write %s", f->name,
                       count, count == 1 ? " is" : "s are",
                       lumat_push_usage(L, f));
}

/* "A:mean(2)" of the arguments from `first` on. */
static int raise_dot(lua_State *L, const lumat_function *f, int count)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 1; i <= count; i++) {
        if (i > 1)
            luaL_addstring(&b, ", ");
        if (lua_isuserdata(L, i))
            lua_pushstring(L, lumat_name_of(L, i, "B"));
        else
            lumat_push_brief(L, i);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    return lumat_raise(L, "%s: a method is called with a colon: write A:%s(%s)",
                       f->name, f->name, lua_tostring(L, -1));
}

static void add_option_name(void *data, const lumat_option *option)
{
    luaL_Buffer *b = data;
    luaL_addstring(b, option->name);
    luaL_addchar(b, ' ');
}

/* The names of f's options, with a blank behind each. */
static const char *push_option_names(lua_State *L, const lumat_function *f)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    lumat_each_option(f, add_option_name, &b);
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

static int raise_unknown(lua_State *L, const lumat_function *f, const char *key)
{
    const char *names = push_option_names(L, f);
    size_t length = strlen(names);
    names = lua_pushlstring(L, names, length - (length > 0));
    if (strlen(key) > 40)
        return lumat_raise(L,
                           "%s: unknown option, of %I characters: there are "
                           "%s",
                           said(f), (LUAI_UACINT)strlen(key), names);
    const char *near = lumat_nearest(L, key, names);
    if (near)
        return lumat_raise(L, "%s: unknown option '%s': did you mean '%s'?",
                           said(f), key, near);
    return lumat_raise(L, "%s: unknown option '%s': there are %s", said(f), key,
                       names);
}

static int raise_kind(lua_State *L, const lumat_function *f, lumat_piece name,
                      int index, lumat_piece kind)
{
    index = lua_absindex(L, index);
    const char *what = lua_pushlstring(L, name.start, name.length);
    const gpu_matrix *m = lumat_test_matrix(L, index);
    if (m && !m->storage)
        return lumat_raise(L, "%s: %s has been freed", said(f), what);
    if (lumat_test_sparse(L, index))
        return lumat_raise(L, "%s: %s is a sparse matrix; write full(S)",
                           said(f), what);
    return lumat_raise(L, "%s: %s is %s, expected %s", said(f), what,
                       lumat_push_brief(L, index), lumat_push_kind(L, kind));
}

/* --- options ----------------------------------------------------------------
 */

typedef struct gathering {
    lua_State *L;
    known_option *options;
    int count, names; /* the table that keeps their strings */
} gathering;

static void gather_option(void *data, const lumat_option *option)
{
    gathering *g = data;
    if (g->options) {
        lua_pushstring(g->L, option->name);
        g->options[g->count] = (known_option){
            lua_tostring(g->L, -1), option,
            lumat_find_test((lumat_piece){option->kind, strlen(option->kind)})};
        lua_rawseti(g->L, g->names, g->count + 1);
    }
    g->count++;
}

/* Kept in the user value of what is held against. */
static void gather_options(lua_State *L, checked *c)
{
    gathering g = {.L = L};
    lumat_each_option(c->row, gather_option, &g);
    lua_createtable(L, g.count, 1);
    g.names = lua_gettop(L);
    g.options = lua_newuserdatauv(L, (size_t)g.count * sizeof *g.options, 0);
    lua_setfield(L, g.names, "options");
    g.count = 0;
    lumat_each_option(c->row, gather_option, &g);
    lua_setiuservalue(L, lua_upvalueindex(1), 1);
    c->option_count = g.count;
    c->options = g.options;
}

/* Is what is on top what the option of that key may be? */
static int is_right(lua_State *L, const checked *c, const char *key)
{
    for (int i = 0; i < c->option_count; i++) {
        const known_option *o = &c->options[i];
        if (o->key != key)
            continue;
        return o->test ? o->test(L, lua_gettop(L))
                       : lumat_is_kind(L, -1,
                                       (lumat_piece){o->option->kind,
                                                     strlen(o->option->kind)});
    }
    return 0;
}

/* As lumat_check_options, and faster where all is well. */
static void check_known(lua_State *L, checked *c, int index)
{
    if (!c->options)
        gather_options(L, c);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING &&
            is_right(L, c, lua_tostring(L, -2)))
            continue;
        lumat_check_options(L, index, c->row);
    }
}

/* --- checks -----------------------------------------------------------------
 */

void lumat_check_options(lua_State *L, int index, const lumat_function *f)
{
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        size_t length;
        if (lua_type(L, -2) != LUA_TSTRING)
            lumat_raise(L, "%s: options are named, as in {dtype=\"f64\"}",
                        said(f));
        const char *key = lua_tolstring(L, -2, &length);
        const lumat_option *option = lumat_find_option(f, key, length);
        if (!option) {
            raise_unknown(L, f, key);
            return;
        }
        lumat_piece kind = {option->kind, strlen(option->kind)};
        if (!lumat_is_kind(L, -1, kind))
            raise_kind(L, f, (lumat_piece){key, length}, -1, kind);
    }
}

/* Where a picture goes, its file's name alone stands for {file = name}. */
static void take_file_name(lua_State *L, const lumat_function *f, int index)
{
    if (lua_type(L, index) != LUA_TSTRING || !lumat_find_option(f, "file", 4))
        return;
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, index);
    lua_setfield(L, -2, "file");
    lua_replace(L, index);
}

/* Is it a table of names, no list? */
static int has_names(lua_State *L, int index)
{
    if (lua_rawlen(L, index) > 0)
        return 0;
    lua_pushnil(L);
    int has_any = lua_next(L, index);
    lua_pop(L, 2 * has_any);
    return has_any;
}

static int is_options(lua_State *L, const checked *c, int index)
{
    if (c->from == 0 || index < c->from || index > c->to ||
        !lua_istable(L, index))
        return 0;
    return !(c->data >> index & 1) || has_names(L, index);
}

static void raise_more(lua_State *L, const checked *c, int count)
{
    const lumat_function *f = c->row;
    if (f->on_surplus)
        f->on_surplus(L, f, count);
    if (c->from > 0 && count <= c->to)
        lumat_raise(L, "%s: the options are %s, expected a table: write %s",
                    f->name, lumat_push_brief(L, count),
                    lumat_push_usage(L, f));
    raise_surplus(L, f, count);
}

/* More arguments than can be counted without a look: the last one may be the
 * table of options. Nils at the end are as good as left out. */
static void check_many(lua_State *L, checked *c, int count)
{
    while (count > 0 && lua_isnil(L, count))
        count--;
    if (c->from > 0 && count >= c->from && count <= c->to)
        take_file_name(L, c->row, count);
    for (int i = c->from; i > 0 && i < count; i++)
        if (is_options(L, c, i))
            raise_surplus(L, c->row, count);
    if (is_options(L, c, count))
        check_known(L, c, count);
    else if (count > c->most)
        raise_more(L, c, count);
}

static const lumat_function *check_call(lua_State *L)
{
    checked *c = lua_touserdata(L, lua_upvalueindex(1));
    int count = lua_gettop(L);
    if (count > c->unlooked)
        check_many(L, c, count);
    return c->row;
}

/* A.mean(2) on the way to A:mean(2). */
static const lumat_function *check_method(lua_State *L)
{
    const checked *c = lua_touserdata(L, lua_upvalueindex(1));
    int count = lua_gettop(L);
    lua_Debug ar;
    if (lua_type(L, 1) != LUA_TUSERDATA)
        raise_dot(L, c->row, count);
    if (count < c->least && lua_getstack(L, 0, &ar) &&
        lua_getinfo(L, "n", &ar) && strcmp(ar.namewhat, "field") == 0)
        raise_dot(L, c->row, count);
    return check_call(L);
}

static int call(lua_State *L)
{
    return check_call(L)->call(L);
}

static int call_method(lua_State *L)
{
    return check_method(L)->call(L);
}

/* --- functions of Lua -------------------------------------------------------
 *
 * They have no luaL_check… of their own: the row checks each argument, by the
 * first form that fits, or tells what the first form lacks. */

static int takes_options(const lumat_function *f, int form)
{
    lumat_argument a = {.rest = f->takes};
    while (lumat_next_argument(&a))
        if (a.form == form && a.is == LUMAT_ARGUMENT_OPTIONS)
            return 1;
    return 0;
}

/* Pushes nothing; returns the first argument of the form that does not fit, as
 * *bad; 0: all fit. */
static int find_misfit(lua_State *L, const lumat_function *f, int form,
                       lumat_argument *bad)
{
    lumat_argument a = {.rest = f->takes};
    int found = 0, count = lua_gettop(L);
    while (lumat_next_argument(&a)) {
        if (a.form != form || a.is == LUMAT_ARGUMENT_MORE)
            continue;
        found = 1;
        if (a.is == LUMAT_ARGUMENT && a.depth > 0 &&
            lua_isnoneornil(L, a.place))
            continue;
        if (a.is == LUMAT_ARGUMENT && a.depth > 0 && a.place == count &&
            lua_istable(L, count) && takes_options(f, form))
            return 0; /* they are in the place of what is left out */
        if (a.is == LUMAT_ARGUMENT_OPTIONS &&
            (lua_istable(L, a.place) ||
             (!a.is_needed && lua_isnoneornil(L, a.place))))
            continue;
        if (a.is == LUMAT_ARGUMENT && lumat_is_kind(L, a.place, a.kind))
            continue;
        *bad = a;
        return 1;
    }
    return found ? 0 : -1;
}

static void check_kinds(lua_State *L, const lumat_function *f)
{
    lumat_argument first = {0}, bad;
    for (int form = 0;; form++) {
        int misfits = find_misfit(L, f, form, &bad);
        if (misfits == 0 || (misfits < 0 && form == 0))
            return;
        if (misfits < 0)
            break;
        if (form == 0 || bad.place > first.place ||
            (lumat_test_sparse(L, bad.place) && is_in(bad.kind, "matrix")))
            first = bad;
    }
    if (first.is == LUMAT_ARGUMENT_OPTIONS)
        raise_kind(L, f, (lumat_piece){"the options", 11}, first.place,
                   (lumat_piece){"table", 5});
    lua_settop(L, first.place > lua_gettop(L) ? first.place : lua_gettop(L));
    raise_kind(L, f, first.name, first.place, first.kind);
}

/* Where a message says that a file of the library raised it, the caller's
 * place is put there: "file:12: text" on top. */
static void replace_place(lua_State *L)
{
    const char *text =
        lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    const char *colon = strchr(text, ':');
    const lumat_std *file = lumat_std_files;
    for (; colon && file->name; file++)
        if (strlen(file->name) == (size_t)(colon - text) &&
            memcmp(file->name, text, (size_t)(colon - text)) == 0)
            break;
    if (!colon || !file->name)
        return;
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || strncmp(colon + 1 + digits, ": ", 2) != 0)
        return;
    luaL_where(L, 1);
    lua_pushstring(L, colon + 3 + digits);
    lua_concat(L, 2);
    lua_replace(L, -2);
}

/* Upvalues: checked, the function. */
static int finish_lua(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L);
    replace_place(L);
    return lua_error(L);
}

static int run_lua(lua_State *L, const lumat_function *f)
{
    check_kinds(L, f);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    int status =
        lua_pcallk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, 0, finish_lua);
    return finish_lua(L, status, 0);
}

static int call_lua(lua_State *L)
{
    return run_lua(L, check_call(L));
}

static int call_lua_method(lua_State *L)
{
    return run_lua(L, check_method(L));
}

/* --- closures ---------------------------------------------------------------
 */

static void push_measured(lua_State *L, const lumat_function *f)
{
    checked *c = lua_newuserdatauv(L, sizeof *c, 1);
    measure(f, c);
}

void lumat_push_checked(lua_State *L, const lumat_function *f, int as_method)
{
    push_measured(L, f);
    lua_pushcclosure(L, as_method ? call_method : call, 1);
}

void lumat_push_checked_lua(lua_State *L, const lumat_function *f, int index,
                            int as_method)
{
    index = lua_absindex(L, index);
    push_measured(L, f);
    lua_pushvalue(L, index);
    lua_pushcclosure(L, as_method ? call_lua_method : call_lua, 2);
}

const lumat_function *lumat_row_of(lua_State *L, int index)
{
    lua_CFunction f = lua_tocfunction(L, index);
    if (f != call && f != call_method && f != call_lua && f != call_lua_method)
        return NULL;
    lua_getupvalue(L, index, 1);
    const checked *c = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return c->row;
}

const lumat_function *lumat_running_row(lua_State *L)
{
    const checked *c = lua_touserdata(L, lua_upvalueindex(1));
    return c->row;
}
