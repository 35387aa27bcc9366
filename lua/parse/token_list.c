/* The tokens of a Lua text as a list, and how far its expressions reach. */
#include <string.h>
#include "lauxlib.h"
#include "parse.h"

/* --- making --------------------------------------------------------------- */

typedef struct builder {
    lua_State *L;
    lumat_tokens *t; /* in the userdata on top of the stack */
    lumat_token *list;
    int room;
} builder;

static void add(builder *b, const lumat_token *token)
{
    int count = b->t->count;
    if (count == b->room) {
        int room = b->room * 2 + 64;
        lumat_token *list =
            lua_newuserdatauv(b->L, (size_t)room * sizeof *list, 0);
        if (count > 0)
            memcpy(list, b->list, (size_t)count * sizeof *list);
        lua_setiuservalue(b->L, -2, 2);
        b->t->list = b->list = list;
        b->room = room;
    }
    b->list[b->t->count++] = *token;
}

static void close_bracket(builder *b, int opener)
{
    int open = b->t->innermost, closed = b->t->count - 1;
    if (open < 0 || b->list[open].kind != opener)
        return;
    b->t->innermost = b->list[open].match;
    b->list[open].match = closed;
    b->list[closed].match = open;
}

static void add_word(builder *b, const lumat_token *token)
{
    int kind = token->kind;
    add(b, token);
    if (kind == '(' || kind == '[' || kind == '{') {
        b->list[b->t->count - 1].match = b->t->innermost;
        b->t->innermost = b->t->count - 1;
    } else if (kind == ')' || kind == ']' || kind == '}') {
        close_bracket(b, kind == ')' ? '(' : kind == ']' ? '[' : '{');
    }
}

/* A comment of one line goes on until a newline. */
static int reaches_end(const lumat_tokens *t, const lumat_token *token)
{
    return token->open ||
           (token->end == t->length && t->text[token->content - 1] == '-');
}

const lumat_tokens *lumat_push_tokens(lua_State *L, const char *text,
                                      size_t length)
{
    lumat_tokens *t = lua_newuserdatauv(L, sizeof *t, 2);
    builder b = {.L = L, .t = t};
    lumat_token token = {0};
    *t = (lumat_tokens){.length = length, .innermost = -1};
    t->text = lua_pushlstring(L, text, length);
    lua_setiuservalue(L, -2, 1);
    while (lumat_next_token(t->text, length, &token)) {
        t->open = token.open;
        if (token.kind == LUMAT_COMMENT)
            t->in_comment = reaches_end(t, &token);
        else if (token.kind != LUMAT_BLANK)
            add_word(&b, &token);
    }
    token =
        (lumat_token){.kind = LUMAT_END,
                      .match = -1,
                      .line = 1 + lumat_count_lines(t->text, t->text + length),
                      .start = length,
                      .end = length,
                      .content = length};
    add(&b, &token);
    t->count--;
    return t;
}

/* --- asking --------------------------------------------------------------- */

int lumat_kind_at(const lumat_tokens *t, int i)
{
    return i >= 0 && i < t->count ? t->list[i].kind : LUMAT_END;
}

int lumat_at(const lumat_tokens *t, int i, const char *words)
{
    return i >= 0 && i < t->count &&
           lumat_is_listed(lumat_start_of(t, i), lumat_length_of(t, i), words);
}

const char *lumat_start_of(const lumat_tokens *t, int i)
{
    return t->text + t->list[i].start;
}

size_t lumat_length_of(const lumat_tokens *t, int i)
{
    return t->list[i].end - t->list[i].start;
}

const char *lumat_push_token(lua_State *L, const lumat_tokens *t, int i)
{
    return lua_pushlstring(L, lumat_start_of(t, i), lumat_length_of(t, i));
}

int lumat_is_written(const lumat_tokens *t, int i, const char *word,
                     size_t length)
{
    return lumat_length_of(t, i) == length &&
           memcmp(lumat_start_of(t, i), word, length) == 0;
}

const char *lumat_behind(const lumat_tokens *t, int i)
{
    return t->text + (i > 0 ? t->list[i - 1].end : 0);
}

/* --- extents -------------------------------------------------------------- */

int lumat_block_step(const lumat_tokens *t, int i)
{
    if (lumat_kind_at(t, i) != LUMAT_KEYWORD)
        return 0;
    return lumat_at(t, i, "function do if repeat") ? 1
           : lumat_at(t, i, "end until")           ? -1
                                                   : 0;
}

int lumat_skip_operand(const lumat_tokens *t, int i)
{
    int kind = lumat_kind_at(t, i), depth = 0;
    if (kind == '(' || kind == '[' || kind == '{')
        return t->list[i].match > i ? t->list[i].match + 1 : t->count;
    if (!lumat_at(t, i, "function"))
        return i < t->count ? i + 1 : i;
    do
        depth += lumat_block_step(t, i++);
    while (depth > 0 && i < t->count);
    return i;
}

/* A field's dot and a method's colon join as operators do. */
static int joins(const lumat_tokens *t, int i)
{
    return lumat_at(t, i,
                    ", . : + - * / // % ^ .. == ~= < > <= >= & | ~ << >> "
                    "and or");
}

static int is_call_or_index(const lumat_tokens *t, int i)
{
    return lumat_kind_at(t, i) == LUMAT_STRING || lumat_at(t, i, "( [ {");
}

/* Only a name or what stands in parentheses can be called or indexed: behind
 * `x = 5` a row that begins with "(" is another statement. */
int lumat_skip_expressions(const lumat_tokens *t, int i)
{
    for (;; i++) {
        while (lumat_at(t, i, "not - # ~"))
            i++;
        int is_primary =
            lumat_kind_at(t, i) == LUMAT_NAME || lumat_at(t, i, "(");
        i = lumat_skip_operand(t, i);
        while (is_primary && is_call_or_index(t, i))
            i = lumat_skip_operand(t, i);
        if (!joins(t, i))
            return i;
    }
}
