/* Rows of statements that end in an expression: Lua itself wants a "return" in
 * front of it. */
#include "rows.h"

#include "lauxlib.h"
#include <string.h>

enum { MOST_TRIES = 16 };

/* Rows that begin no deeper than the text itself; the last ones. */
typedef struct starts {
    int count;
    size_t at[MOST_TRIES];
    lumat_token_kind kind[MOST_TRIES]; /* of the first token */
} starts;

static void add_start(starts *s, size_t at, lumat_token_kind kind)
{
    int i = s->count++ % MOST_TRIES;
    s->at[i] = at;
    s->kind[i] = kind;
}

/* Rows without a statement, blank ones and comments, are none. */
static void find_starts(starts *s, const char *text, size_t length)
{
    lumat_token token = {0};
    lumat_nesting nesting = {0};
    const char *row = NULL;
    while (lumat_next_token(text, length, &token)) {
        const char *blank = text + token.start;
        if (token.kind == LUMAT_BLANK && nesting.depth == 0) {
            const char *newline = memrchr(blank, '\n', token.end - token.start);
            row = newline != NULL ? newline + 1 : row;
        } else if (token.kind != LUMAT_BLANK && token.kind != LUMAT_COMMENT) {
            if (row != NULL)
                add_start(s, (size_t)(row - text), token.kind);
            row = NULL;
        }
        lumat_nest(&nesting, text, &token);
    }
}

/* Whether the text is an expression by itself, or begins one: what costs
 * little where the rows in front of it are many. */
static int may_be_expression(lua_State *L, const char *text, size_t length)
{
    int may_be;
    lua_pushliteral(L, "return ");
    lua_pushlstring(L, text, length);
    lua_concat(L, 2);
    may_be = luaL_loadbufferx(L, lua_tostring(L, -1), lua_rawlen(L, -1), "=row",
                              "t") == LUA_OK ||
             strstr(lua_tostring(L, -1), "<eof>") != NULL;
    lua_pop(L, 2);
    return may_be;
}

static int load_returning(lua_State *L, const char *text, size_t row,
                          size_t length)
{
    int status;
    lua_pushlstring(L, text, row);
    lua_pushliteral(L, "return ");
    lua_pushlstring(L, text + row, length - row);
    lua_concat(L, 3);
    status = lumat_load(L, lua_tostring(L, -1), lua_rawlen(L, -1));
    lua_remove(L, -2);
    return status;
}

/* Is what was tried better than what there was? What is Lua as it stands can
 * only end in a call. Text that lacks something may mean an expression, but
 * nothing else that lacks something. */
static int is_better(int tried, int status)
{
    return tried == LUA_OK ||
           (status != LUA_OK && tried != LUA_ERRSYNTAX && tried != status);
}

int repl_load_rows(lua_State *L, const char *text, size_t length)
{
    int status = lumat_load(L, text, length);
    starts s = {0};
    find_starts(&s, text, length);
    for (int i = s.count - 1; i >= 0 && i >= s.count - MOST_TRIES; i--) {
        int slot = i % MOST_TRIES, tried;
        size_t row = s.at[slot];
        if ((status == LUA_OK && s.kind[slot] != LUMAT_NAME) ||
            !may_be_expression(L, text + row, length - row))
            continue;
        tried = load_returning(L, text, row, length);
        if (is_better(tried, status)) {
            lua_remove(L, -2);
            return tried;
        }
        lua_pop(L, 1);
    }
    return status;
}
