/* Help on names, search in it, and the table of the user's variables. */
#include "library.h"
#include "lumat.h"

#include <stdlib.h>
#include <string.h>

static const char first_page[] =
    "A = mat{{1, 2}, {3, 4}}      a matrix          v = vec{1, 2, 3}   a "
    "vector\n"
    "zeros ones eye rand randn    filled ones       range linspace      "
    "sequences\n"
    "A * B                        matrix product    A % B   A / B       "
    "element by element\n"
    "A + B   2 * A   A ^ -1       and so on         A.T                 "
    "transposed\n"
    "A[1]   A[{2, 1}]   A(2, 1)   row, element      A[\"1:2, end\"]       "
    "a block\n"
    "A[A:gt(2)] = 0               masks             A:sum()   A:sum(1)  "
    "all, by column\n"
    "A = …                        one line, no data A = …;              "
    "silent\n"
    "load \"f.csv\"  save(A, \"f.npy\")                 ans                 "
    "the last value\n"
    "?matmul   ??inverse          help, search      :help               "
    "commands\n"
    ":who   :device   :trace on   what is there     :quit               "
    "or Ctrl-D\n";

static const char *field(lua_State *L, int table, const char *key)
{
    lua_getfield(L, table, key);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1); /* the table keeps it alive */
    return text ? text : "";
}

static int is_method_too(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.methods");
    int found = lua_getfield(L, -1, name) != LUA_TNIL;
    lua_pop(L, 2);
    return found;
}

static void push_entry(lua_State *L, const char *name)
{
    int entry = lua_gettop(L);
    const char *usage = field(L, entry, "usage");
    const char *example = field(L, entry, "example");
    const char *also = is_method_too(L, name) && !strchr(usage, ':')
                           ? lua_pushfstring(L, "      also A:%s(…)", name)
                           : "";
    lua_pushfstring(L, "%s%s\n  %s", usage, also, field(L, entry, "help"));
    if (*example) {
        lua_pushfstring(L, "\n  example   %s\n  gives     %s", example,
                        field(L, entry, "result"));
        lua_concat(L, 2);
    }
    lua_replace(L, entry);
    lua_settop(L, entry);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the help table, sorted, as an array of strings in a userdata;
 * the table keeps them alive. */
static const char **push_sorted_names(lua_State *L, int table, int *count)
{
    int n = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        n++;
    const char **names = lua_newuserdatauv(L, (size_t)n * sizeof *names, 0);
    n = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            names[n++] = lua_tostring(L, -2);
    qsort(names, (size_t)n, sizeof *names, by_name);
    *count = n;
    return names;
}

static int push_unknown(lua_State *L, int help, const char *topic)
{
    int count;
    luaL_Buffer b;
    const char **names = push_sorted_names(L, help, &count);
    luaL_buffinit(L, &b);
    for (int i = 0; i < count; i++) {
        luaL_addstring(&b, names[i]);
        luaL_addchar(&b, ' ');
    }
    luaL_pushresult(&b);
    const char *near = lumat_nearest(L, topic, lua_tostring(L, -1));
    if (near)
        lua_pushfstring(L, "no '%s' here: did you mean %s?", topic, near);
    else
        lua_pushfstring(L, "no '%s' here: ??%s searches the help", topic,
                        topic);
    lua_replace(L, help);
    lua_settop(L, help);
    return 0;
}

int lumat_push_help(lua_State *L, const char *topic)
{
    if (!topic || !*topic) {
        lua_pushlstring(L, first_page, sizeof first_page - 2);
        return 1;
    }
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.help");
    int help = lua_gettop(L);
    if (lua_getfield(L, help, topic) != LUA_TTABLE) {
        lua_pop(L, 1);
        return push_unknown(L, help, topic);
    }
    push_entry(L, topic);
    lua_replace(L, help);
    return 1;
}

void lumat_push_search(lua_State *L, const char *word)
{
    int count, found = 0;
    luaL_Buffer b;
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.help");
    int help = lua_gettop(L);
    const char **names = push_sorted_names(L, help, &count);
    lua_pushnil(L); /* place of the entry looked at */
    int slot = lua_gettop(L);
    luaL_buffinit(L, &b);
    for (int i = 0; i < count; i++) {
        lua_getfield(L, help, names[i]);
        lua_replace(L, slot);
        const char *text = field(L, slot, "help");
        if (!strcasestr(names[i], word) && !strcasestr(text, word))
            continue;
        if (found++)
            luaL_addchar(&b, '\n');
        lua_pushfstring(L, "  %s", names[i]);
        for (size_t n = strlen(names[i]); n < 12; n++) {
            lua_pushliteral(L, " ");
            lua_concat(L, 2);
        }
        lua_pushfstring(L, " %s", text);
        lua_concat(L, 2);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    if (!found) {
        lua_pushfstring(L, "nothing in the help mentions '%s'", word);
        lua_replace(L, -2);
    }
    lua_replace(L, help);
    lua_settop(L, help);
}
