/* Feeds any text to the tokenizer of Lua. Holds: the tokens cover the text,
 * and Lua thinks of them alone, each on a line of its own, as it does of the
 * text. */
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
    return token.open;
}

static char *words_of(const char *text, size_t length, size_t *out)
{
    char *words = malloc(2 * length + 1);
    size_t used = 0;
    require(words != NULL);
    for (lumat_reader r = lumat_read_words(text, length);
         r.word.kind != LUMAT_WORD_END; lumat_next_word(&r)) {
        memcpy(words + used, r.word.start, r.word.length);
        used += r.word.length;
        words[used++] = '\n';
    }
    *out = used;
    return words;
}

static int compiles(lua_State *L, const char *text, size_t length)
{
    int status = luaL_loadbufferx(L, text, length, "fuzz", "t");
    lua_settop(L, 0);
    return status == LUA_OK;
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
    size_t length;
    char *words = words_of(text, size, &length);
    require(!open || !sound);
    require(open || compiles(L, words, length) == sound);
    free(words);
    return 0;
}
