/* What the library in Lua needs to put texts before people: files replaced
 * whole, the style of the terminal, how messages name a value. */
#include "fence.h"
#include "print.h"
#include "files_parts.h"
#include "value.h"

#include <errno.h>
#include <string.h>

static int raise_unless(lua_State *L, const char *who, const char *path,
                        int error)
{
    if (error == 0)
        return 0;
    return lumat_raise(L, "%s: cannot write '%s': %s", who, path,
                       error == EISDIR   ? "it is a directory"
                       : error == EINVAL ? "it is not a regular file"
                                         : lumat_error_text(error));
}

/* write(who, path, text): the whole file or none of it. In place of the text
 * a function may stand that gives it, called when it is known that the file
 * can be written. */
static int write_text(lua_State *L)
{
    size_t length, n;
    const char *who = luaL_checkstring(L, 1),
               *path = luaL_checklstring(L, 2, &n);
    lua_settop(L, 3);
    if (!lua_isfunction(L, 3))
        luaL_checkstring(L, 3);
    if (n == 0 || strlen(path) != n)
        return lumat_raise(L, "%s: %s", who,
                           n ? "the path has a zero byte in it"
                             : "needs a file's name");
    path = lumat_expand_path(L, 2);
    lumat_atomic *file = lumat_push_atomic(L);
    lua_toclose(L, -1);
    int error = lumat_atomic_open(file, path);
    raise_unless(L, who, path, error);
    if (lua_isfunction(L, 3)) {
        lua_pushvalue(L, 3);
        lua_call(L, 0, 1);
        lua_replace(L, 3);
    }
    const char *text = luaL_checklstring(L, 3, &length);
    error = lumat_atomic_write(file, text, length);
    if (!error)
        error = lumat_atomic_commit(file);
    return raise_unless(L, who, path, error);
}

/* width, whether only ASCII can be shown, whether colours are. */
static int get_style(lua_State *L)
{
    lumat_style style = lumat_style_now(L);
    lua_pushinteger(L, style.width);
    lua_pushboolean(L, style.ascii);
    lua_pushboolean(L, style.colour);
    return 3;
}

/* path(name): "~/name" as what it stands for; other values as they are. */
static int get_path(lua_State *L)
{
    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING)
        lumat_expand_path(L, 1);
    return 1;
}

/* kind(x): what a message calls it, behind "a". */
static int get_kind(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushstring(L, lumat_kind_of(L, 1));
    return 1;
}

/* visible(text): what a terminal shows of it and does not obey. */
static int get_visible(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    lumat_push_visible(L, text, length);
    return 1;
}

/* count(n): with its digits in threes */
static int get_count(lua_State *L)
{
    luaL_Buffer b;
    int64_t n = luaL_checkinteger(L, 1);
    luaL_buffinit(L, &b);
    lumat_add_count(&b, n);
    luaL_pushresult(&b);
    return 1;
}

/* print(text): to the screen, which obeys none of it but colours */
static int print_text(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    lumat_write_visible(stdout, text, length, 1);
    putchar('\n');
    return 0;
}

static const luaL_Reg functions[] = {
    {"kind", get_kind},    {"visible", get_visible},
    {"style", get_style},  {"count", get_count},
    {"path", get_path},    {"write", write_text},
    {"print", print_text}, {NULL, NULL}};

void lumat_open_texts(lua_State *L)
{
    luaL_newlib(L, functions);
    lumat_set_required(L, "texts");
}
