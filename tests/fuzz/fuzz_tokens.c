/* Feeds any text to the tokenizer of Lua and to what reads its tokens. Holds:
 * the tokens cover the text, brackets match in pairs, Lua thinks of the list
 * alone, each token on a line of its own, as it does of the text, and every
 * reader moves on and stays within the list; as an entry at the prompt the text
 * is still Lua. */
#include <stdlib.h>
#include <string.h>
#include "lauxlib.h"
#include "parse.h"

static void require(int truth)
{
    if (!truth)
        abort();
}

/* Returns whether the text ends in a string or comment. */
static int check_cover(const char *text, size_t length)
{
    lumat_token token = {0};
    size_t end = 0;
    while (lumat_next_token(text, length, &token)) {
        require(token.start == end && token.end > end && token.end <= length);
        require(token.content >= token.start && token.content <= token.end);
        require(!token.open || token.end == length);
        end = token.end;
    }
    require(end == length);
    require(length == 0 ||
            token.line == 1 + lumat_count_lines(text, text + token.start));
    return token.open;
}

static void check_matches(const lumat_tokens *t)
{
    for (int i = 0; i < t->count; i++) {
        int match = t->list[i].match;
        require(match >= -1 && match < t->count);
        require(match <= i || t->list[match].match == i);
    }
    require(lumat_kind_at(t, t->count) == LUMAT_END);
    require(t->list[t->count].start == t->length);
}

static void check_readers(const lumat_tokens *t)
{
    lumat_declaration names;
    for (int i = 0, end; i < t->count; i = end) {
        int operand = lumat_skip_operand(t, i);
        end = lumat_skip_statement(t, i);
        require(operand > i && operand <= t->count);
        require(end > i && end <= t->count);
        if (lumat_at(t, i, "local"))
            require(lumat_read_local(t, i, &names) == end);
    }
}

/* Pushes the tokens, each with a newline behind it. */
static void push_words(lua_State *L, const lumat_tokens *t)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 0; i < t->count; i++) {
        luaL_addlstring(&b, lumat_start_of(t, i), lumat_length_of(t, i));
        luaL_addchar(&b, '\n');
    }
    luaL_pushresult(&b);
}

static int compiles(lua_State *L, const char *text, size_t length)
{
    int status = luaL_loadbufferx(L, text, length, "fuzz", "t");
    lua_pop(L, 1);
    return status == LUA_OK;
}

/* What Lua reads it also reads as an entry. */
static void check_entry(lua_State *L, int tokens, int sound)
{
    size_t length;
    lumat_push_echoing(L, tokens);
    const char *code = lua_tolstring(L, -1, &length);
    require(!sound || compiles(L, code, length));
    lumat_note_silenced(L, lua_touserdata(L, tokens));
    lua_pushliteral(L, "lumat:2: no");
    lumat_explain_rows(L);
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    if (!L)
        L = luaL_newstate();
    require(L != NULL);
    const char *text = (const char *)data;
    int open = check_cover(text, size), sound = compiles(L, text, size);
    const lumat_tokens *t = lumat_push_tokens(L, text, size);
    size_t length;
    check_matches(t);
    check_readers(t);
    push_words(L, t);
    const char *words = lua_tolstring(L, -1, &length);
    require(!open || !sound);
    require(open || compiles(L, words, length) == sound);
    check_entry(L, 1, sound);
    lumat_push_given(L, t, 0, t->count);
    lumat_push_open_construct(L, t);
    lua_settop(L, 0);
    return 0;
}
