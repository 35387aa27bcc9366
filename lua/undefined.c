/* What was meant by a name that has no value, and how messages say it. */
#include "undefined.h"
#include "library.h"
#include "locals.h"
#include "lumat.h"
#include "strict.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What other languages call it. */
static const char *const habits[][2] = {
    {"disp", "print"},
    {"printf", "print"},
    {"println", "print"},
    {"size", "A.shape"},
    {"length", "#A"},
    {"len", "#A"},
    {"numel", "A.size"},
    {"identity", "eye"},
    {"inverse", "inv"},
    {"transpose", "A.T"},
    {"array", "mat"},
    {"matrix", "mat"},
    {"vector", "vec"},
    {"arange", "range"},
    {"fill", "full"},
    {"average", "mean"},
    {"read", "load"},
    {"write", "save"},
    {"pi", "math.pi"},
    {"inf", "math.huge"},
    {"infinity", "math.huge"},
    {"nan", "0/0"},
    {"include", "require"},
    {"import", "require"},
    {"man", "help"},
    {"doc", "help"},
    {"ls", ":who"},
    {"dir", ":who"},
    {"whos", ":who"},
    {"clc", "Ctrl-L"},
    {"cls", "Ctrl-L"},
    {"clear", "x = nil, or Ctrl-L for the screen"},
    {"exit", "os.exit, or :quit at the prompt"}};

const char *lumat_habit(const char *name)
{
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strcasecmp(habits[i][0], name) == 0)
            return habits[i][1];
    return NULL;
}

/* Counts the names in the table on top, or adds them to the array. */
static int list_names(lua_State *L, const char **names)
{
    int table = lua_gettop(L), n = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            continue;
        if (names)
            names[n] = lua_tostring(L, -2);
        n++;
    }
    return n;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the names that begin with the letter, or the others. */
static void add_names(luaL_Buffer *b, const char **names, int n, char first,
                      int others)
{
    for (int i = 0; i < n; i++) {
        if ((names[i][0] == first) == others)
            continue;
        luaL_addstring(b, names[i]);
        luaL_addchar(b, ' ');
    }
}

/* Pushes "name name name", of the session's locals and the globals in the
 * order in which the nearest is looked for: whoever errs in a letter rarely
 * does so in the first. */
static const char *push_variables(lua_State *L, char first)
{
    int top = lua_gettop(L), locals, n;
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
    n = locals = list_names(L, NULL);
    lua_pushglobaltable(L);
    n += list_names(L, NULL);
    const char **names = lua_newuserdatauv(L, sizeof *names * (size_t)n, 0);
    lua_insert(L, top + 1);
    list_names(L, names + locals);
    lua_pop(L, 1);
    list_names(L, names);
    qsort(names, (size_t)n, sizeof *names, by_name);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    add_names(&b, names, n, first, 0);
    add_names(&b, names, n, first, 1);
    luaL_pushresult(&b);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return lua_tostring(L, -1);
}

/* The name of the list that differs from word in case alone, or NULL. */
static const char *push_cased(lua_State *L, const char *word, const char *list)
{
    size_t length = strlen(word);
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == length && strncasecmp(p, word, n) == 0)
            return lua_pushlstring(L, p, n);
        p += n;
    }
    return NULL;
}

/* Two letters are no misspelling, nor is a word without one in common. */
static const char *push_near(lua_State *L, const char *name)
{
    int top = lua_gettop(L);
    const char *near = lumat_habit(name), *names;
    if (near) {
        lua_pushstring(L, near);
        return lua_tostring(L, -1);
    }
    names = push_variables(L, name[0]);
    near = push_cased(L, name, names);
    if (!near && strlen(name) > 2 && strlen(name) <= 40)
        near = lumat_nearest(L, name, names);
    if (near && !strpbrk(name, near) && strcasecmp(name, near) != 0)
        near = NULL;
    if (near)
        lua_replace(L, top + 1);
    else
        lua_pushnil(L), lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return near;
}

const char *lumat_push_meant(lua_State *L, const char *name, int is_entry)
{
    if (is_entry && lumat_is_command(name, strlen(name)))
        return lua_pushfstring(L, ":%s", name);
    return push_near(L, name);
}

void lumat_push_undefined(lua_State *L, const char *name, int is_entry)
{
    const char *near = lumat_push_meant(L, name, is_entry);
    if (near)
        lua_pushfstring(L, "'%s' is not defined: did you mean %s?", name, near);
    else
        lua_pushfstring(L, "'%s' is not defined", name);
    lua_remove(L, -2);
}

/* --- values --------------------------------------------------------------- */

int lumat_has_value(lua_State *L, const char *name, size_t length)
{
    int has_value = lumat_push_local(L, name, length);
    lua_pushglobaltable(L);
    lua_pushlstring(L, name, length);
    has_value |= lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 3);
    return has_value;
}

int lumat_are_globals_plain(lua_State *L)
{
    int top = lua_gettop(L), plain;
    lua_pushnil(L);
    lua_pushglobaltable(L);
    plain = !lua_getmetatable(L, top + 1) &&
            (lumat_is_strict(L, top + 2) || !lua_getmetatable(L, top + 2));
    lua_settop(L, top);
    return plain;
}

/* --- what Lua says -------------------------------------------------------- */

/* Where "attempt to … a nil value (global 'x')" begins in the message, with
 * the name pushed; or NULL. */
static const char *find_nil_global(lua_State *L, const char *message)
{
    static const char mark[] = "a nil value (global '";
    const char *start = strstr(message, "attempt to ");
    const char *name = start ? strstr(start, mark) : NULL;
    if (!name)
        return NULL;
    name += sizeof mark - 1;
    lua_pushlstring(L, name, strcspn(name, "'"));
    return start;
}

static int is_global(lua_State *L, const char *name)
{
    lua_pushglobaltable(L);
    lua_pushstring(L, name);
    int found = lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 2);
    return found;
}

void lumat_explain_nil(lua_State *L, int is_entry)
{
    int top = lua_gettop(L);
    if (lua_type(L, top) != LUA_TSTRING)
        return;
    const char *message = lua_tostring(L, top);
    const char *start = find_nil_global(L, message), *name, *near;
    if (!start || is_global(L, name = lua_tostring(L, -1))) {
        lua_settop(L, top);
        return;
    }
    if (is_entry) {
        lua_pushlstring(L, message, (size_t)(start - message));
        lumat_push_undefined(L, name, 1);
        lua_concat(L, 2);
    } else if ((near = lumat_push_meant(L, name, 0))) {
        lua_pushfstring(L, "%s: did you mean %s?", message, near);
    } else {
        lua_pushvalue(L, top);
    }
    lua_replace(L, top);
    lua_settop(L, top);
}
