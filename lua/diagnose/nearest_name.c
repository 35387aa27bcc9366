/* What was meant by a name that has no value, and how messages say it. */
#include "nearest_name.h"
#include "command_names.h"
#include "locals.h"
#include "registry.h"
#include "strict.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* Pushes the name that has a value and differs in letters, or nil. Two letters
 * are no misspelling, nor is a word without one in common. */
static const char *push_nearest(lua_State *L, const char *name,
                                const char *names)
{
    const char *near = NULL;
    if (strlen(name) > 2 && strlen(name) <= 40)
        near = lumat_nearest(L, name, names);
    if (near && !strpbrk(name, near))
        near = NULL;
    if (!near)
        lua_pushnil(L);
    return near;
}

static int begin_alike(const char *a, const char *b)
{
    return tolower((unsigned char)*a) == tolower((unsigned char)*b);
}

/* Names before words of other languages before names that are spelt alike. */
static const char *push_meant(lua_State *L, const char *name, int is_entry,
                              int *is_likely)
{
    const char *names, *meant;
    *is_likely = 1;
    if (is_entry && lumat_is_command(name, strlen(name)))
        return lua_pushfstring(L, "did you mean :%s?", name);
    names = push_variables(L, name[0]);
    if ((meant = push_cased(L, name, names)))
        return lua_pushfstring(L, "did you mean %s?", meant);
    if ((meant = lumat_push_instead(L, name)))
        return meant;
    if (!(meant = push_nearest(L, name, names)))
        return NULL;
    *is_likely = begin_alike(name, meant);
    return lua_pushfstring(L, "did you mean %s?", meant);
}

const char *lumat_push_meant(lua_State *L, const char *name, int is_entry,
                             int *is_likely)
{
    int top = lua_gettop(L), likely;
    const char *meant =
        push_meant(L, name, is_entry, is_likely ? is_likely : &likely);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return meant;
}

void lumat_push_undefined(lua_State *L, const char *name, int is_entry)
{
    const char *meant = lumat_push_meant(L, name, is_entry, NULL);
    if (meant)
        lua_pushfstring(L, "'%s' is not defined: %s", name, meant);
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
    const char *start = find_nil_global(L, message), *name, *meant;
    if (!start || is_global(L, name = lua_tostring(L, -1))) {
        lua_settop(L, top);
        return;
    }
    if (is_entry) {
        lua_pushlstring(L, message, (size_t)(start - message));
        lumat_push_undefined(L, name, 1);
        lua_concat(L, 2);
    } else if ((meant = lumat_push_meant(L, name, 0, NULL))) {
        lua_pushfstring(L, "%s: %s", message, meant);
    } else {
        lua_pushvalue(L, top);
    }
    lua_replace(L, top);
    lua_settop(L, top);
}
