/* completions(line): what Tab offers, for editors and other programs. */
#include "completion.h"
#include "cursor_context.h"
#include "function.h"

/* The offers come in a call of its own: what it fills is in the registry. */
static const char names_key, notes_key;

typedef struct lists {
    lua_State *L;
    lua_Integer count;
} lists;

static void add_to(lua_State *L, const void *key, lua_Integer i,
                   const char *text)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_pushstring(L, text);
    lua_rawseti(L, -2, i);
    lua_pop(L, 1);
}

static void add(void *data, const char *name, const char *note)
{
    lists *l = data;
    l->count++;
    add_to(l->L, &names_key, l->count, name);
    add_to(l->L, &notes_key, l->count, note);
}

static void push_list(lua_State *L, const void *key)
{
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

static int completions(lua_State *L)
{
    size_t length;
    const char *line = luaL_checklstring(L, 1, &length);
    lists l = {L, 0};
    push_list(L, &names_key);
    push_list(L, &notes_key);
    lumat_completion place =
        lumat_complete(L, line, length, LUMAT_ANYTHING, add, &l);
    lua_pushstring(L, place.files);
    return 3;
}

static const lumat_function functions[] = {
    {"completions", completions, 0, "line: string", "table",
     "What Tab offers at the end of a line of Lua: names, the notes beside "
     "them, and, where a file belongs, the kinds that are wanted first.",
     "completions(\"linsp\")[1]", "\"linspace\"", .group = "asking"},
    {0}};

void lumat_open_completions(lua_State *L)
{
    lumat_register(L, functions);
}
