/* What a script finds under --safe: Lua's functions that are on the list here,
 * files inside the given folders, and no address of anything. The fences hold
 * where this would not; this is what says what is wrong, and all there is
 * with --safe-language. */
#include "fence.h"
#include "journal.h"
#include "library.h"

#include "lauxlib.h"
#include "lualib.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- texts without addresses ---------------------------------------------- */

/* Registry: object -> its number, weak keys; and how many there were. */
static const char numbers_key;
static lua_Integer last_number;

/* Pushes "table: 12": the number is the object's own. */
static void push_numbered(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    const char *kind = luaL_getmetafield(L, index, "__name") == LUA_TSTRING
                           ? lua_tostring(L, -1)
                           : luaL_typename(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &numbers_key);
    lua_pushvalue(L, index);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushinteger(L, ++last_number);
        lua_pushvalue(L, index);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_pushfstring(L, "%s: %I", kind, (LUAI_UACINT)lua_tointeger(L, -1));
}

/* Would Lua's tostring give the address? */
static int has_address(lua_State *L, int index)
{
    switch (lua_type(L, index)) {
    case LUA_TNIL:
    case LUA_TBOOLEAN:
    case LUA_TNUMBER:
    case LUA_TSTRING:
        return 0;
    default:
        if (luaL_getmetafield(L, index, "__tostring") == LUA_TNIL)
            return 1;
        lua_pop(L, 1);
        return 0;
    }
}

static int to_string(lua_State *L)
{
    luaL_checkany(L, 1);
    if (has_address(L, 1))
        push_numbered(L, 1);
    else
        luaL_tolstring(L, 1, NULL);
    return 1;
}

static void number_arguments(lua_State *L, int first)
{
    for (int i = first; i <= lua_gettop(L); i++) {
        int top = lua_gettop(L);
        if (!has_address(L, i))
            continue;
        push_numbered(L, i);
        lua_replace(L, i);
        lua_settop(L, top);
    }
}

/* Upvalue: Lua's print. */
static int print_numbered(lua_State *L)
{
    number_arguments(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

static int has_pointer(const char *format)
{
    while ((format = strchr(format, '%')) != NULL) {
        format++;
        format += strspn(format, "-+ #0123456789.");
        if (*format == 'p')
            return 1;
        if (*format != '\0')
            format++;
    }
    return 0;
}

/* Upvalue: Lua's string.format. */
static int format_numbered(lua_State *L)
{
    if (has_pointer(luaL_checkstring(L, 1)))
        return luaL_error(L, "format: --safe shows no addresses, as %%p would");
    number_arguments(L, 2);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static int file_to_string(lua_State *L)
{
    luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);
    lua_pushstring(L, s->closef ? "file" : "file (closed)");
    return 1;
}

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

/* string's own table changes: its functions are every string's methods. */
static void hide_addresses(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &numbers_key);
    lua_pushglobaltable(L);
    lua_pushcfunction(L, to_string);
    lua_setfield(L, -2, "tostring");
    wrap(L, "print", print_numbered);
    lua_getfield(L, -1, "string");
    wrap(L, "format", format_numbered);
    keep_listed(L, list[6].names, 0);
    lua_pop(L, 2);
    luaL_getmetatable(L, LUA_FILEHANDLE);
    lua_pushcfunction(L, file_to_string);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
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
    lumat_start_no_processes(L);
    for (const allowed *a = list + 1; a->table; a++)
        if (strcmp(a->table, "string") != 0)
            copy_listed(L, a->table, a->names);
    hide_addresses(L);
    wrap_files(L);
    replace_require(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_pushglobaltable(L);
    keep_listed(L, list[0].names, lua_gettop(L) - 1);
    lua_pop(L, 2);
}
