/* What each entry at the prompt changed. Of every variable a number is kept
 * that changes with its value and one that changes when it is set to another
 * one; nothing is kept alive. lineage_report.lua draws the conclusions. */
#include "cancellation.h"
#include "math_functions.h"
#include "session.h"
#include "scope.h"
#include "parse.h"
#include "print.h"
#include "value.h"

#include <string.h>

enum { DEPTH = 4, MOST_NODES = 2000 }; /* of a table that is looked at */

static struct {
    int depth;
    uint32_t epoch;      /* of the matrices it makes and writes to */
    uint64_t seed, call; /* when it began */
} entry;

/* --- numbers that stand for values ---------------------------------------- */

/* Source: splitmix64, Steele et al., Fast splittable pseudorandom number
 * generators, 2014. */
static uint64_t mix(uint64_t h, uint64_t x)
{
    h += x + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static uint64_t mix_bytes(uint64_t h, const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < length; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return mix(h, length);
}

/* Long strings by both ends and where they lie. */
static uint64_t of_string(lua_State *L, int index)
{
    enum { ENDS = 256 };
    size_t length;
    const char *s = lua_tolstring(L, index, &length);
    if (length <= 2 * ENDS)
        return mix_bytes(2, s, length);
    uint64_t h = mix_bytes(mix_bytes(3, s, ENDS), s + length - ENDS, ENDS);
    return mix(mix(h, length), (uint64_t)(uintptr_t)s);
}

/* Which value it is: of a matrix or a table, the place and not the elements. */
static uint64_t identity(lua_State *L, int index)
{
    lua_Number x;
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        return 0;
    case LUA_TBOOLEAN:
        return mix(1, (uint64_t)lua_toboolean(L, index));
    case LUA_TNUMBER:
        x = lua_tonumber(L, index);
        return mix_bytes(4 + (uint64_t)lua_isinteger(L, index), &x, sizeof x);
    case LUA_TSTRING:
        return of_string(L, index);
    default:
        return mix(6, (uint64_t)(uintptr_t)lua_topointer(L, index));
    }
}

static uint64_t content(lua_State *L, int index, int depth, int *nodes);

/* A frame's columns are its metatable's. */
static uint64_t of_columns(lua_State *L, int index, int depth, int *nodes)
{
    uint64_t sum = 0;
    if (luaL_getmetafield(L, index, "__columns") == LUA_TNIL)
        return 0;
    if (lua_istable(L, -1))
        sum = content(L, lua_gettop(L), depth, nodes);
    lua_pop(L, 1);
    return sum;
}

static uint64_t of_table(lua_State *L, int index, int depth, int *nodes)
{
    uint64_t sum = identity(L, index);
    if (depth == 0 || !lua_checkstack(L, 8))
        return sum;
    sum += of_columns(L, index, depth - 1, nodes);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        int top = lua_gettop(L);
        if (--*nodes < 0) {
            lua_pop(L, 2);
            break;
        }
        sum += mix(identity(L, top - 1), content(L, top, depth - 1, nodes));
    }
    return sum;
}

static uint64_t content(lua_State *L, int index, int depth, int *nodes)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    const gpu_sparse *s = m ? NULL : lumat_look_at_sparse(L, index);
    if (m)
        return mix(identity(L, index), gpu_epoch_written(m));
    if (s)
        return mix(identity(L, index), gpu_epoch_written(&s->values));
    if (lua_type(L, index) == LUA_TTABLE)
        return of_table(L, index, depth, nodes);
    return identity(L, index);
}

/* --- the variables -------------------------------------------------------- */

/* What new matrices are made as is a variable, too. */
static void add_defaults(lua_State *L, int all)
{
    lua_pushinteger(L, lumat_default_dtype(L));
    lua_pushstring(L, gpu_default_name());
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "(device)" : "(dtype)";
        lua_pushinteger(L, (lua_Integer)identity(L, -2 + i));
        lua_setfield(L, all, name);
        lua_pushinteger(L, (lua_Integer)identity(L, -2 + i));
        lua_setfield(L, all + 1, name);
    }
    lua_pop(L, 2);
}

/* Pushes two tables by name: which value, and what is in it. */
static void push_variables(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    int all = lua_gettop(L) - 1;
    lumat_variables v = lumat_begin_variables(L, LUMAT_WITH_LIBRARY);
    while (lumat_next_variable(&v)) {
        int value = lua_gettop(L), nodes = MOST_NODES;
        if (strcmp(v.name, "arg") != 0 && lumat_is_library_variable(&v))
            continue;
        lua_pushvalue(L, -2);
        lua_pushinteger(L, (lua_Integer)identity(L, value));
        lua_rawset(L, all);
        lua_pushvalue(L, value - 1);
        lua_pushinteger(L, (lua_Integer)content(L, value, DEPTH, &nodes));
        lua_rawset(L, all + 1);
    }
    add_defaults(L, all);
}

/* --- entries -------------------------------------------------------------- */

static void start_period(void)
{
    entry.epoch = gpu_begin_epoch();
    lumat_random_state(&entry.seed, &entry.call);
}

/* The function of lineage_report.lua, which is loaded with the first entry. */
static void push_note(lua_State *L)
{
    if (lua_getfield(L, LUA_REGISTRYINDEX, "lumat.note") != LUA_TNIL)
        return;
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lumat.lineage_report");
    lua_call(L, 1, 0);
    lua_pop(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.note");
}

/* Called protected: note(entry, identities, contents). */
static int note_entry(lua_State *L)
{
    uint64_t seed, call;
    int number;
    lumat_random_state(&seed, &call);
    push_note(L);
    lua_createtable(L, 0, 10);
    lua_pushstring(L, lumat_running_entry(&number));
    lua_setfield(L, -2, "text");
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "ok");
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "seconds");
    lumat_set_count(L, "number", (uint64_t)number);
    lumat_set_count(L, "epoch", entry.epoch);
    if (seed != entry.seed || call != entry.call) {
        lumat_set_count(L, "seed", entry.seed);
        lumat_set_count(L, "drawn", entry.call);
        lumat_set_count(L, "new_seed", seed);
        lumat_set_count(L, "new_drawn", call);
    }
    push_variables(L);
    lua_call(L, 3, 0);
    return 0;
}

/* Short of memory the entry goes unnoted; the prompt goes on. */
static void note(lua_State *L, int ok, double seconds)
{
    if (!lua_checkstack(L, 20))
        return;
    lua_pushcfunction(L, note_entry);
    lua_pushboolean(L, ok);
    lua_pushnumber(L, seconds);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK)
        lua_pop(L, 1);
    start_period();
}

enum { NESTED = 8 };
static const char *outer[NESTED];

void lumat_begin_entry(lua_State *L, const char *prompt, const char *text)
{
    int number;
    const char *running = lumat_running_entry(&number);
    if (prompt) { /* an error may have ended the one before */
        entry.depth = 0;
        running = NULL;
    }
    if (entry.depth++ == 0) {
        if (number++ == 0) { /* what there was before */
            lumat_set_running_entry(NULL, number);
            note(L, 1, 0);
        }
        lumat_transcribe(prompt, text);
        if (text[0] != ':') /* a command may show what the entry before gave */
            lumat_forget_scalars();
        start_period();
    }
    if (entry.depth <= NESTED)
        outer[entry.depth - 1] = running;
    lumat_set_running_entry(text ? text : running, number);
}

void lumat_end_entry(lua_State *L, int ok, double seconds)
{
    int number;
    if (entry.depth == 0)
        return;
    note(L, ok, seconds);
    entry.depth--;
    lumat_running_entry(&number);
    lumat_set_running_entry(entry.depth < NESTED ? outer[entry.depth] : NULL,
                            number);
    if (entry.depth == 0)
        lumat_end_transcribed();
}

/* --- for lineage_report.lua ----------------------------------------------- */

/* words(text): its words and signs, strings as "''", and of which it is true
 * that they are names */
static int push_words(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    const lumat_tokens *t = lumat_push_tokens(L, text, length);
    lua_newtable(L);
    lua_newtable(L);
    for (int i = 0; i < t->count; i++) {
        if (t->list[i].kind == LUMAT_STRING)
            lua_pushliteral(L, "''");
        else
            lumat_push_token(L, t, i);
        lua_rawseti(L, -3, i + 1);
        lua_pushboolean(L, t->list[i].kind == LUMAT_NAME);
        lua_rawseti(L, -2, i + 1);
    }
    return 2;
}

/* epochs(A): in which A was made and written to last */
static int push_epochs(lua_State *L)
{
    const gpu_sparse *s = lumat_look_at_sparse(L, 1);
    const gpu_matrix *m = s ? &s->values : lumat_check_matrix(L, 1);
    lua_pushinteger(L, (lua_Integer)gpu_epoch_made(m));
    lua_pushinteger(L, (lua_Integer)gpu_epoch_written(m));
    return 2;
}

/* find(value): the name of the variable that holds it, or nothing */
static int find_variable(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    lumat_refresh_locals(L);
    return lumat_push_holder(L, 1);
}

/* set(note): the function that hears of every entry */
static int set_note(lua_State *L)
{
    lua_settop(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.note");
    return 0;
}

/* now(): the seconds of clock(), for which nothing has to be worked out */
static int push_now(lua_State *L)
{
    lua_pushnumber(L, gpu_now());
    return 1;
}

void lumat_open_lineage(lua_State *L)
{
    static const luaL_Reg own[] = {
        {"words", push_words}, {"epochs", push_epochs}, {"find", find_variable},
        {"now", push_now},     {"set", set_note},       {NULL, NULL}};
    memset(&entry, 0, sizeof entry);
    luaL_newlib(L, own);
    lua_newtable(L); /* names, also when their values are the same again */
    lua_setfield(L, -2, "set_anew");
    lumat_set_required(L, "entries");
}
