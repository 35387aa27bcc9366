/* What a script finds under --safe: Lua's functions that are on the list here,
 * files inside the given folders, and no address of anything. The fences hold
 * where this would not; this is what says what is wrong, and all there is
 * with --safe-language. */
#include "fence.h"
#include "experiment.h"
#include "open.h"
#include "value.h"

#include "lauxlib.h"
#include "lualib.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- files ---------------------------------------------------------------- */

/* What goes on to Lua's own function, the upvalue, with its arguments. */
static int call_own(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* As fopen does, says why not: io.open raises nothing for a file. */
static int open_file(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int writing = strpbrk(luaL_optstring(L, 2, "r"), "wa+") != NULL;
    if (lumat_may_open(path, writing))
        return call_own(L);
    lua_pushnil(L);
    lua_pushfstring(L, "%s: --safe allows no %s there", path,
                    writing ? "writing" : "reading");
    lua_pushinteger(L, EACCES);
    return 3;
}

/* The library's io.open: files that a script names, and what the system tells
 * of itself. */
static int open_for_library(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int is_reading = strcmp(luaL_optstring(L, 2, "r"), "rb") == 0 ||
                     strcmp(luaL_optstring(L, 2, "r"), "r") == 0;
    return is_reading && lumat_is_system_path(path) ? call_own(L)
                                                    : open_file(L);
}

/* The library's os.remove and os.rename: names of files to be changed. */
static int change_named(lua_State *L)
{
    for (int i = 1; i <= lua_gettop(L); i++)
        lumat_check_fence(L, "write", luaL_checkstring(L, i), 1);
    return call_own(L);
}

static int start_nothing(lua_State *L)
{
    return luaL_error(L, "--safe starts no other program");
}

/* io.lines, io.input, dofile, loadfile: a name, or the standard input. */
static int read_named(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TSTRING)
        lumat_check_fence(L, "read", lua_tostring(L, 1), 0);
    return call_own(L);
}

static int write_named(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TSTRING)
        lumat_check_fence(L, "write", lua_tostring(L, 1), 1);
    return call_own(L);
}

/* Secrets are passed in the environment, too. */
static int get_variable(lua_State *L)
{
    static const char *const shown[] = {
        "HOME",    "USER",  "LANG",     "LC_ALL",   "TERM",
        "COLUMNS", "LINES", "NO_COLOR", "HOSTNAME", "LUMAT_TEST_DEVICE",
        NULL};
    const char *name = luaL_checkstring(L, 1);
    for (int i = 0; shown[i]; i++) {
        if (strcmp(name, shown[i]) == 0) {
            lua_pushstring(L, getenv(name));
            return 1;
        }
    }
    lua_pushnil(L);
    return 1;
}

/* --- require -------------------------------------------------------------- */

/* The first file of the templates that is there and may be read, its function
 * left on the stack; or 0 with the names that were tried. */
static int find_module(lua_State *L, const char *name, const char *templates)
{
    const char *part = luaL_gsub(L, name, ".", "/");
    lua_pushliteral(L, "");
    while (*templates) {
        size_t n = strcspn(templates, ";");
        lua_pushlstring(L, templates, n);
        const char *path = luaL_gsub(L, lua_tostring(L, -1), "?", part);
        lua_remove(L, -2);
        templates += n + (templates[n] == ';');
        if (lumat_may_open(path, 0)) {
            int status = luaL_loadfilex(L, path, "t");
            if (status == LUA_OK)
                return 1;
            if (status != LUA_ERRFILE)
                return lua_error(L);
            lua_pop(L, 1);
        }
        lua_pushfstring(L, "%s\n\tno file '%s' that may be read",
                        lua_tostring(L, -2), path);
        lua_replace(L, -3);
        lua_pop(L, 1);
    }
    return 0;
}

/* Upvalues: the table `package`, the modules that were loaded. */
static int require_inside(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    if (strchr(name, '/'))
        return luaL_error(L, "require: a module's name has dots, not '/'");
    lua_settop(L, 1);
    if (lua_getfield(L, lua_upvalueindex(2), name) != LUA_TNIL)
        return 1;
    lua_getfield(L, lua_upvalueindex(1), "path");
    const char *templates = luaL_optstring(L, -1, "");
    if (!find_module(L, name, templates))
        return luaL_error(L, "module '%s' not found:%s", name,
                          lua_tostring(L, -1));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, 1);
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, lua_upvalueindex(2), name);
    return 1;
}

/* --- what there is -------------------------------------------------------- */

typedef struct allowed {
    const char *table; /* "_G" for the globals */
    const char *names; /* between blanks */
} allowed;

/* Lua's own; the library's functions are all there. */
static const allowed list[] = {
    {"_G", " _G _VERSION assert collectgarbage coroutine debug dofile error "
           "getmetatable io ipairs load loadfile math next os package pairs "
           "pcall print rawequal rawget rawlen rawset require select "
           "setmetatable string table tonumber tostring type utf8 warn "
           "xpcall arg ans "},
    {"coroutine",
     " close create isyieldable resume running status wrap yield "},
    {"debug", " traceback "},
    {"io", " close input lines open output read stderr stdin stdout type "
           "write "},
    {"os", " clock date difftime getenv time "},
    {"package", " config path "},
    /* The table itself, whose functions are every string's methods. */
    {"string", " byte char find format gmatch gsub len lower match pack "
               "packsize rep reverse sub unpack upper "},
    {NULL, NULL}};

static int is_listed(const char *names, const char *name)
{
    char word[64];
    if (strlen(name) + 3 > sizeof word)
        return 0;
    strcpy(word, " ");
    strcat(strcat(word, name), " ");
    return strstr(names, word) != NULL;
}

/* Takes what is not listed out of the table on top, in which `also` (a stack
 * index, or 0) may have it. */
static void keep_listed(lua_State *L, const char *names, int also)
{
    int table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table);) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING &&
            is_listed(names, lua_tostring(L, -1)))
            continue;
        if (also) {
            lua_pushvalue(L, -1);
            int known = lua_rawget(L, also) != LUA_TNIL;
            lua_pop(L, 1);
            if (known)
                continue;
        }
        lua_pushvalue(L, -1);
        lua_pushnil(L);
        lua_rawset(L, table);
    }
}

/* Puts a copy with what is listed in place of a global table: the library goes
 * on with the whole one. */
static void copy_listed(lua_State *L, const char *name, const char *names)
{
    if (lua_getglobal(L, name) != LUA_TTABLE) {
        lua_pop(L, 1);
        return;
    }
    int whole = lua_gettop(L);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, whole);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, whole + 1);
    }
    keep_listed(L, names, 0);
    lua_setglobal(L, name);
    lua_pop(L, 1);
}

/* Wraps the field of the table on top. */
static void wrap(lua_State *L, const char *field, lua_CFunction with)
{
    if (lua_getfield(L, -1, field) == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    lua_pushcclosure(L, with, 1);
    lua_setfield(L, -2, field);
}

static void wrap_files(lua_State *L)
{
    lua_getglobal(L, "io");
    wrap(L, "open", open_file);
    wrap(L, "lines", read_named);
    wrap(L, "input", read_named);
    wrap(L, "output", write_named);
    lua_pop(L, 1);
    lua_getglobal(L, "os");
    wrap(L, "getenv", get_variable);
    lua_pop(L, 1);
    lua_pushglobaltable(L);
    wrap(L, "dofile", read_named);
    wrap(L, "loadfile", read_named);
    lua_pop(L, 1);
}

void lumat_guard_library(lua_State *L)
{
    static const char *const starting[] = {"io", "popen",   "os", "execute",
                                           "os", "tmpname", "io", "tmpfile"};
    lumat_start_no_processes(L);
    lumat_hide_addresses(L);
    lua_getglobal(L, "io");
    wrap(L, "open", open_for_library);
    lua_getglobal(L, "os");
    wrap(L, "remove", change_named);
    wrap(L, "rename", change_named);
    lua_pop(L, 2);
    for (size_t i = 0; i < sizeof starting / sizeof *starting; i += 2) {
        lua_getglobal(L, starting[i]);
        lua_pushcfunction(L, start_nothing);
        lua_setfield(L, -2, starting[i + 1]);
        lua_pop(L, 1);
    }
}

/* With `package` a copy already. */
static void replace_require(lua_State *L)
{
    static const char *const standard[] = {
        "string", "table", "math", "utf8", "io", "os", "coroutine", NULL};
    lua_getglobal(L, "package");
    lua_newtable(L);
    for (int i = 0; standard[i]; i++) {
        lua_getglobal(L, standard[i]);
        lua_setfield(L, -2, standard[i]);
    }
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_setfield(L, -2, "lumat");
    lua_pushcclosure(L, require_inside, 2);
    lua_setglobal(L, "require");
}

void lumat_make_safe(lua_State *L)
{
    for (const allowed *a = list + 1; a->table; a++)
        if (strcmp(a->table, "string") != 0)
            copy_listed(L, a->table, a->names);
    lua_getglobal(L, "string"); /* its functions are every string's methods */
    keep_listed(L, list[6].names, 0);
    lua_pop(L, 1);
    wrap_files(L);
    replace_require(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_pushglobaltable(L);
    keep_listed(L, list[0].names, lua_gettop(L) - 1);
    lua_pop(L, 2);
}
