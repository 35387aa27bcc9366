/* An entry with more locals than a function of Lua's can have, its own or the
 * session's, runs part after part, each of a few statements: the locals of one
 * are the session's for the next. */
#include "parse.h"
#include "locals.h"

#include "lauxlib.h"

enum { MOST_IN_PART = 180 }; /* names, of which every local is one */

static int count_names(const char *text, size_t length)
{
    int count = 0;
    lumat_reader r = lumat_read_words(text, length);
    for (; r.word.kind != LUMAT_WORD_END; lumat_next_word(&r))
        count += r.word.kind == LUMAT_WORD_NAME;
    return count;
}

/* Adds the text from the token to `end`, with the lines in front of it empty,
 * to the table on top. */
static void add_part(lua_State *L, const lumat_word *first, const char *end)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int line = 1; line < first->line; line++)
        luaL_addchar(&b, '\n');
    luaL_addlstring(&b, first->start, (size_t)(end - first->start));
    luaL_pushresult(&b);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* Pushes the table of the parts. Returns how many there are. */
static int push_parts(lua_State *L, const char *text, size_t length)
{
    lumat_reader r = lumat_read_words(text, length);
    lua_newtable(L);
    while (r.word.kind != LUMAT_WORD_END) {
        lumat_word first = r.word;
        const char *end = first.start;
        int names = 0;
        do {
            const char *start = r.word.start;
            lumat_reader next = r;
            lumat_skip_statement(&next);
            names += count_names(start, (size_t)(next.behind - start));
            if (names > MOST_IN_PART && end > first.start)
                break;
            r = next;
            end = r.behind;
        } while (r.word.kind != LUMAT_WORD_END);
        add_part(L, &first, end);
    }
    return (int)lua_rawlen(L, -1);
}

static int compile(lua_State *L, const char *text, size_t length)
{
    return luaL_loadbufferx(L, text, length, "=" LUMAT_CHUNK, "t");
}

/* Upvalue: the table of the parts. Gives what the last one does. */
static int run_parts(lua_State *L)
{
    int count = (int)lua_rawlen(L, lua_upvalueindex(1));
    lua_settop(L, 0);
    for (int i = 1; i <= count; i++) {
        size_t length;
        lua_rawgeti(L, lua_upvalueindex(1), i);
        const char *text = lua_tolstring(L, 1, &length);
        lumat_adopt_locals(L);
        int status = compile(L, text, length);
        if (status == LUA_OK)
            status = lumat_join_locals(L, text, length);
        if (status != LUA_OK)
            return lua_error(L);
        lua_call(L, 0, i == count ? LUA_MULTRET : 0);
        lua_remove(L, 1);
    }
    return lua_gettop(L);
}

int lumat_load_parts(lua_State *L, const char *text, size_t length)
{
    int status = LUA_OK, count = push_parts(L, text, length);
    if (count < 2) {
        lua_pop(L, 1);
        return LUMAT_ONE_PART;
    }
    for (int i = 1; i <= count && status == LUA_OK; i++) {
        lua_rawgeti(L, -1, i);
        text = lua_tolstring(L, -1, &length);
        status = compile(L, text, length);
        lua_remove(L, -2);
        if (status == LUA_OK)
            lua_pop(L, 1);
    }
    if (status == LUA_OK)
        lua_pushcclosure(L, run_parts, 1);
    else
        lua_remove(L, -2);
    return status;
}
