/* Entries compiled so that they see the session's locals and keep their own:
 * inside a function that declares what they use, with a call behind each
 * declaration that hands a closure over the new variable to the session. */
#include "parse.h"
#include "locals.h"

#include "lauxlib.h"
#include <string.h>

#define KEEP "lumat_keep"

/* Lua's limit is 200 locals a function; a few are needed here. */
enum { MOST_USED = 190 };

/* --- what is used --------------------------------------------------------- */

/* Is the token a local of the session, or an echo, that the table at `seen`
 * lacks? Adds it there and pushes its name. */
static int push_new_name(lua_State *L, const lumat_word *t, int seen)
{
    if (t->kind != LUMAT_WORD_NAME)
        return 0;
    int is_local = lumat_push_local(L, t->start, t->length);
    lua_pop(L, 1);
    if (!is_local && !lumat_is_echo(t))
        return 0;
    lua_pushlstring(L, t->start, t->length);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, seen) != LUA_TNIL) {
        lua_pop(L, 2);
        return 0;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushboolean(L, 1);
    lua_rawset(L, seen);
    return 1;
}

/* Pushes "local lumat_keep local a local c<const>" with the session's locals
 * among the words of text, and the echoes. Returns how many they are. */
static int push_declarations(lua_State *L, const char *text, size_t length)
{
    lumat_reader r = lumat_read_words(text, length);
    int count = 0;
    lua_newtable(L);
    int seen = lua_gettop(L);
    lua_pushliteral(L, "local " KEEP);
    for (; r.word.kind != LUMAT_WORD_END; lumat_next_word(&r)) {
        if (!push_new_name(L, &r.word, seen))
            continue;
        const char *name = lua_tostring(L, -1);
        lua_pushfstring(L, " local %s%s", name,
                        lumat_is_constant(L, name) ? "<const>" : "");
        lua_remove(L, -2);
        lua_concat(L, 2);
        count++;
    }
    lua_remove(L, seen);
    return count;
}

/* --- what is declared ----------------------------------------------------- */

/* Adds the call that keeps a name. */
static void add_keep(luaL_Buffer *b, const lumat_word *name, int constant)
{
    luaL_addstring(b, ";" KEEP "(\"");
    luaL_addlstring(b, name->start, name->length);
    luaL_addstring(b, "\",function()return ");
    luaL_addlstring(b, name->start, name->length);
    luaL_addstring(b, constant ? " end,1);" : " end);");
}

/* _ENV stays with its entry: who changed it would never get back. What <close>
 * closes has ended with its entry. */
static int is_kept(const lumat_declaration *n, int i)
{
    const lumat_word *name = &n->list[i].name;
    int is_env = name->length == 4 && memcmp(name->start, "_ENV", 4) == 0;
    return !is_env && !n->list[i].closes;
}

/* Pushes text with the calls that keep the locals of its top level behind
 * their declarations; returns how many there are. */
static int push_keeping(lua_State *L, const char *text, size_t length)
{
    lumat_reader r = lumat_read_words(text, length);
    lumat_declaration *n = lua_newuserdatauv(L, sizeof *n, 0);
    luaL_Buffer b;
    int depth = 0, count = 0;
    luaL_buffinit(L, &b);
    while (r.word.kind != LUMAT_WORD_END) {
        if (depth > 0 || !lumat_at(&r, "local")) {
            depth += lumat_block_step(&r.word);
            lumat_next_word(&r);
            continue;
        }
        lumat_read_declaration(&r, n);
        luaL_addlstring(&b, text, (size_t)(r.behind - text));
        text = r.behind;
        for (int i = 0; i < n->count; i++) {
            if (!is_kept(n, i))
                continue;
            add_keep(&b, &n->list[i].name, n->list[i].constant);
            count++;
        }
    }
    luaL_addlstring(&b, text, (size_t)(r.end - text));
    luaL_pushresult(&b);
    lua_remove(L, -2);
    return count;
}

/* --- compiling ------------------------------------------------------------ */

/* Joins what the function on top shares with the session. */
static void join(lua_State *L)
{
    int function = lua_gettop(L);
    const char *name;
    for (int i = 1; (name = lua_getupvalue(L, function, i)); i++) {
        if (strcmp(name, KEEP) == 0) {
            lua_pushcfunction(L, lumat_keep_local);
            lua_setupvalue(L, function, i);
        } else if (lumat_push_echo(L, name)) {
            lua_setupvalue(L, function, i);
        } else if (lumat_push_local(L, name, strlen(name))) {
            lua_upvaluejoin(L, function, i, -1, 1);
        }
        lua_settop(L, function);
    }
}

/* Replaces declarations and body on top by the function they make. */
static int compile(lua_State *L)
{
    size_t length;
    lua_pushliteral(L, " return function(...) ");
    lua_insert(L, -2);
    lua_pushliteral(L, "\nend");
    lua_concat(L, 4);
    const char *text = lua_tolstring(L, -1, &length);
    int status = luaL_loadbufferx(L, text, length, "=" LUMAT_CHUNK, "t");
    lua_remove(L, -2);
    return status == LUA_OK ? lua_pcall(L, 0, 1, 0) : status;
}

/* Puts the parts of the text, or a message, in the function's place. */
static int part(lua_State *L, int function, const char *text, size_t length,
                int used)
{
    lua_settop(L, function);
    int status = lumat_load_parts(L, text, length);
    if (status == LUMAT_ONE_PART) {
        lua_pushfstring(L,
                        LUMAT_CHUNK ":1: %d locals of earlier entries in one "
                                    "statement: there can be %d",
                        used, MOST_USED);
        status = LUA_ERRSYNTAX;
    }
    lua_replace(L, function);
    return status;
}

int lumat_join_locals(lua_State *L, const char *text, size_t length)
{
    int function = lua_gettop(L), status;
    int used = push_declarations(L, text, length);
    if (used > MOST_USED)
        return part(L, function, text, length, used);
    if (push_keeping(L, text, length) + used == 0) {
        lua_settop(L, function);
        return LUA_OK;
    }
    status = compile(L);
    if (status == LUA_OK)
        join(L);
    lua_replace(L, function);
    return status;
}
