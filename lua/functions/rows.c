/* Rows: registered, found by name, made of tables in Lua. */
#include "function.h"

#include <string.h>

#define ROWS "lumat.rows" /* in the registry: name -> row */

/* --- help ------------------------------------------------------------------
 */

static void set_text(lua_State *L, const char *key, const char *value)
{
    if (!value)
        return;
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

/* Pushes the table of the help in which the row stands: of a member as
 * "experiment.run" that of its owner's members. Returns the name there. */
static const char *push_help_table(lua_State *L, const char *name)
{
    const char *dot = strchr(name, '.');
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.help");
    if (!dot)
        return name;
    lua_pushlstring(L, name, (size_t)(dot - name));
    lua_pushvalue(L, -1);
    lua_gettable(L, -3);
    if (lua_isnil(L, -1))
        luaL_error(L, "the row of %s comes before that of its owner", name);
    luaL_getsubtable(L, -1, "members");
    lua_replace(L, -4);
    lua_pop(L, 2);
    return dot + 1;
}

static void add_help(lua_State *L, const lumat_function *f)
{
    static int order; /* of rows, as they come */
    const char *name = push_help_table(L, f->name);
    lua_createtable(L, 0, 6);
    lumat_push_usage(L, f);
    lua_setfield(L, -2, "usage");
    set_text(L, "help", f->help);
    set_text(L, "example", f->example);
    set_text(L, "result", f->result);
    set_text(L, "group", f->group);
    lua_pushinteger(L, ++order);
    lua_setfield(L, -2, "order");
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

static void keep_row(lua_State *L, const lumat_function *f)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, ROWS);
    lua_pushlightuserdata(L, (void *)f);
    lua_setfield(L, -2, f->name);
    lua_pop(L, 1);
}

const lumat_function *lumat_find_row(lua_State *L, const char *name)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, ROWS);
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    const lumat_function *f = lua_touserdata(L, -1);
    lua_pop(L, 2);
    return f;
}

/* --- rows of C ---------------------------------------------------------------
 */

/* Pops the function. */
static void set_function(lua_State *L, const char *table, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, table);
    lua_insert(L, -2);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

/* May its first argument be a sparse matrix? only: and nothing else? */
static int begins_sparse(const lumat_function *f, int *only)
{
    lumat_piece kind;
    int found = 0;
    *only = 1;
    for (lumat_argument a = {.rest = f->takes}; lumat_next_argument(&a);)
        while (a.place == 1 && lumat_next_kind(&a.kind, &kind)) {
            int is_sparse = lumat_is_piece(kind, "sparse");
            found |= is_sparse;
            *only &= is_sparse;
        }
    return found;
}

/* Pops what calls are checked by. */
static void set_functions(lua_State *L, const lumat_function *f)
{
    int only = 0;
    if (f->method) {
        lumat_push_method(L);
        if (begins_sparse(f, &only)) {
            lua_pushvalue(L, -1);
            set_function(L, "lumat.sparse_methods", f->name);
        }
        if (only)
            lua_pop(L, 1);
        else
            set_function(L, "lumat.methods", f->name);
    }
    set_function(L, "lumat.functions", f->name);
}

void lumat_register_one(lua_State *L, const lumat_function *f)
{
    lumat_push_checked(L, f);
    set_functions(L, f);
    keep_row(L, f);
    add_help(L, f);
}

void lumat_register(lua_State *L, const lumat_function *list)
{
    for (; list->name; list++)
        lumat_register_one(L, list);
}

/* --- rows of Lua -------------------------------------------------------------
 */

/* The string under key of the table at index, which keeps it. */
static const char *text_of(lua_State *L, int index, const char *key)
{
    lua_getfield(L, index, key);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

/* {name, kind, otherwise or false, help} each, of the table at index. */
static void read_options(lua_State *L, int index, lumat_option *options,
                         int count)
{
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, index, i + 1);
        const char **field[] = {&options[i].name, &options[i].kind,
                                &options[i].otherwise, &options[i].help};
        for (int k = 0; k < 4; k++) {
            lua_rawgeti(L, -1, k + 1);
            *field[k] = lua_tostring(L, -1);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    options[count] = (lumat_option){NULL, NULL, NULL, NULL};
}

/* The options of the row that the table at index names with options_of. */
static const lumat_option *find_more(lua_State *L, int index)
{
    const char *name = text_of(L, index, "options_of");
    const lumat_function *f = name ? lumat_find_row(L, name) : NULL;
    if (name && !f)
        luaL_error(L, "a row with the options of %s comes before its row",
                   name);
    return f ? f->options : NULL;
}

/* Pushes a row made of the table at 1, which it keeps. */
static lumat_function *push_row(lua_State *L)
{
    struct {
        lumat_function row;
        lumat_option options[];
    } * made;
    int count = 0;
    if (lua_getfield(L, 1, "options") == LUA_TTABLE)
        count = (int)lua_rawlen(L, -1);
    made = lua_newuserdatauv(
        L, sizeof *made + (size_t)(count + 1) * sizeof *made->options, 1);
    read_options(L, lua_gettop(L) - 1, made->options, count);
    made->row = (lumat_function){.name = text_of(L, 1, "name"),
                                 .takes = text_of(L, 1, "takes"),
                                 .gives = text_of(L, 1, "gives"),
                                 .help = text_of(L, 1, "help"),
                                 .example = text_of(L, 1, "example"),
                                 .result = text_of(L, 1, "result"),
                                 .group = text_of(L, 1, "group"),
                                 .usage = text_of(L, 1, "usage"),
                                 .instead = text_of(L, 1, "instead"),
                                 .options = made->options,
                                 .more = find_more(L, 1)};
    lua_getfield(L, 1, "method");
    made->row.method = lua_toboolean(L, -1);
    lua_pop(L, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_remove(L, -2);
    return &made->row;
}

/* row(t [, f]): the table of a row, and the function it is of; without one it
 * is of a member, or of what is called otherwise, and only told. With is_part
 * it is of a table inside options, and only checked. */
static int add_row(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lumat_function *f = push_row(L);
    if (!f->name || !f->takes || !f->gives || !f->help)
        return luaL_error(L, "a row lacks name, takes, gives or help");
    luaL_ref(L, LUA_REGISTRYINDEX);
    keep_row(L, f);
    lua_getfield(L, 1, "is_part");
    if (lua_toboolean(L, -1))
        return 0;
    add_help(L, f);
    if (lua_isnil(L, 2))
        return 0;
    lumat_push_checked_lua(L, f, 2);
    set_functions(L, f);
    return 0;
}

/* check_options(name, options): those of a member, whose functions check for
 * themselves when they are called. */
static int check_options(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const lumat_function *f = lumat_find_row(L, name);
    if (!f)
        return luaL_error(L, "there is no row %s", name);
    luaL_checktype(L, 2, LUA_TTABLE);
    lumat_check_options(L, 2, f);
    return 0;
}

/* checked(name, f): f of a member, as it is called: held against the row of
 * that name. */
static int push_checked(lua_State *L)
{
    const lumat_function *f = lumat_find_row(L, luaL_checkstring(L, 1));
    if (!f)
        return luaL_error(L, "there is no row %s", lua_tostring(L, 1));
    lumat_push_checked_lua(L, f, 2);
    return 1;
}

/* takes(name): what the row of that name says that it takes, and whether it
 * tells of mistakes in words of its own; for tests. */
static int push_takes(lua_State *L)
{
    const lumat_function *f = lumat_find_row(L, luaL_checkstring(L, 1));
    lua_pushstring(L, f ? f->takes : NULL);
    lua_pushboolean(L, f && f->on_mistake);
    return 2;
}

void lumat_open_rows(lua_State *L)
{
    lumat_before_refusing = lumat_refuse_kind;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, "lumat.private");
    lua_pushcfunction(L, add_row);
    lua_setfield(L, -2, "row");
    lua_pushcfunction(L, check_options);
    lua_setfield(L, -2, "check_options");
    lua_pushcfunction(L, push_checked);
    lua_setfield(L, -2, "checked");
    lua_pushcfunction(L, push_takes);
    lua_setfield(L, -2, "takes");
    lua_pop(L, 1);
}
