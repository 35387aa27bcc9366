/* How chunks and data come in: Lua's loaders with precompiled chunks refused,
 * `load` for data files as well. */
#include "session.h"
#include "files.h"

#include "lualib.h"
#include <string.h>

/* --- text only ------------------------------------------------------------ */

/* The mode at index without its 'b'; nil becomes "t". */
static void refuse_binary(lua_State *L, int index)
{
    const char *mode = luaL_optstring(L, index, "bt");
    lua_pushstring(L, strchr(mode, 't') ? "t" : "");
    lua_replace(L, index);
}

/* Calls the upvalue with the arguments, of which number `mode` is a mode. */
static int call_with_mode(lua_State *L, int mode)
{
    if (lua_gettop(L) < mode)
        lua_settop(L, mode);
    refuse_binary(L, mode);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int load_text(lua_State *L)
{
    return call_with_mode(L, 3);
}

static int loadfile_text(lua_State *L)
{
    return call_with_mode(L, 2);
}

static int dofile_text(lua_State *L)
{
    const char *file = luaL_optstring(L, 1, NULL);
    lua_settop(L, 1);
    if (luaL_loadfilex(L, file, "t") != LUA_OK)
        return lua_error(L);
    lua_call(L, 0, LUA_MULTRET);
    return lua_gettop(L) - 1;
}

/* package.searchers[2], for text only. */
static int search_text(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "searchpath");
    lua_pushvalue(L, 1);
    lua_getfield(L, -3, "path");
    lua_call(L, 2, 2);
    if (lua_isnil(L, -2))
        return 1; /* where it was looked for */
    const char *file = lua_tostring(L, -2);
    if (luaL_loadfilex(L, file, "t") != LUA_OK)
        return luaL_error(L, "error loading module '%s' from file '%s':\n\t%s",
                          name, file, lua_tostring(L, -1));
    lua_pushstring(L, file);
    return 2;
}

static void wrap_global(lua_State *L, const char *name, lua_CFunction f)
{
    lua_getglobal(L, name);
    lua_pushcclosure(L, f, 1);
    lua_setglobal(L, name);
}

void lumat_refuse_bytecode(lua_State *L)
{
    wrap_global(L, "load", load_text);
    wrap_global(L, "loadfile", loadfile_text);
    wrap_global(L, "dofile", dofile_text);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "searchers");
    lua_pushcfunction(L, search_text);
    lua_rawseti(L, -2, 2);
    lua_pop(L, 2);
}

/* --- data files ----------------------------------------------------------- */

/* One word of the characters that names of files are made of, but no number:
 * that Lua reads, and has its own message for. */
static int is_word(lua_State *L, const char *text, size_t length)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./~-";
    if (length == 0 || strspn(text, letters) != length)
        return 0;
    int is_number = lua_stringtonumber(L, text) != 0;
    lua_pop(L, is_number);
    return !is_number;
}

/* A file's name rather than a chunk: it is no Lua, and ends as data files do,
 * or is one word where Lua's own arguments are not. */
static int is_file_name(lua_State *L)
{
    size_t length;
    int options = lua_istable(L, 2);
    if (lua_type(L, 1) != LUA_TSTRING || lua_gettop(L) > 2 ||
        !(options || lua_isnoneornil(L, 2)))
        return 0;
    const char *text = lua_tolstring(L, 1, &length);
    int is_data = !memchr(text, '\n', length) && lumat_is_data_name(text);
    if (!is_data &&
        !(is_word(L, text, length) && (options || lua_gettop(L) == 1)))
        return 0;
    int status = luaL_loadbufferx(L, text, length, "=load", "t");
    lua_pop(L, 1);
    return status != LUA_OK;
}

/* Upvalues: what checks calls of load for data, load for chunks, and load for
 * data. */
static int load_both(lua_State *L)
{
    if (!lua_isstring(L, 1) && !lua_isfunction(L, 1))
        return luaL_typeerror(L, 1, "chunk, function or file name");
    if (is_file_name(L)) /* in this frame: errors have the caller's place */
        return lua_tocfunction(L, lua_upvalueindex(3))(L);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

void lumat_join_load(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_getfield(L, -1, "load");
    lua_getupvalue(L, -1, 1);
    lua_getglobal(L, "load");
    lua_pushvalue(L, -3);
    lua_pushcclosure(L, load_both, 3);
    lua_setglobal(L, "load");
    lua_pop(L, 2);
}
