/* The tokens before a cursor as a list, with the brackets matched, the signs
 * of two characters whole, and without blanks and comments. */
#include "lexemes.h"
#include "lumat.h"

#include <string.h>

const char lumat_keywords[] =
    "and break do else elseif end false for function goto if in local nil not "
    "or repeat return then true until while";

typedef struct lexer {
    lua_State *L;
    const char *text;
    size_t length;
    lumat_lexeme *list; /* in the userdata on top of the stack */
    int count, room;
    int innermost, in_comment;
} lexer;

static void add(lexer *x, int kind, const lumat_token *token, size_t content)
{
    if (x->count == x->room) {
        int room = x->room * 2 + 64;
        lumat_lexeme *list =
            lua_newuserdatauv(x->L, (size_t)room * sizeof *list, 0);
        if (x->count > 0)
            memcpy(list, x->list, (size_t)x->count * sizeof *list);
        lua_replace(x->L, -2);
        x->list = list;
        x->room = room;
    }
    x->list[x->count++] =
        (lumat_lexeme){kind, -1, token->start, token->end, content};
}

/* How long the mark is that opens a long bracket at p, or 0. */
static size_t long_mark(const lexer *x, size_t p)
{
    size_t n = 1;
    if (p >= x->length || x->text[p] != '[')
        return 0;
    while (p + n < x->length && x->text[p + n] == '=')
        n++;
    return p + n < x->length && x->text[p + n] == '[' ? n + 1 : 0;
}

static void add_string(lexer *x, const lumat_token *token)
{
    size_t mark = long_mark(x, token->start);
    add(x, token->open ? TOKEN_OPEN_STRING : TOKEN_STRING, token,
        token->start + (mark > 0 ? mark : 1));
}

/* Signs of several characters, longer ones before those they begin with. */
static const struct sign {
    const char *text;
    int kind;
} signs[] = {
    {"...", TOKEN_OTHER},  {"..", TOKEN_CONCAT},  {"//", TOKEN_DIVIDE},
    {"==", TOKEN_COMPARE}, {"~=", TOKEN_COMPARE}, {"<=", TOKEN_COMPARE},
    {">=", TOKEN_COMPARE}, {"::", TOKEN_OTHER},   {"<<", TOKEN_OTHER},
    {">>", TOKEN_OTHER},   {"<", TOKEN_COMPARE},  {">", TOKEN_COMPARE},
};

/* The kind of the sign at token, which is made as long as it is. */
static int kind_of_sign(const lexer *x, lumat_token *token)
{
    const char *text = x->text + token->start;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t n = strlen(signs[i].text);
        if (x->length - token->start < n || memcmp(text, signs[i].text, n) != 0)
            continue;
        token->end = token->start + n;
        return signs[i].kind;
    }
    return (unsigned char)*text < 128 ? *text : TOKEN_OTHER;
}

static void close_bracket(lexer *x, int opener)
{
    int open = x->innermost, closed = x->count - 1;
    if (open < 0 || x->list[open].kind != opener)
        return;
    x->innermost = x->list[open].match;
    x->list[open].match = closed;
    x->list[closed].match = open;
}

static void add_sign(lexer *x, lumat_token *token)
{
    int kind = kind_of_sign(x, token);
    add(x, kind, token, token->start);
    if (kind == '(' || kind == '[' || kind == '{') {
        x->list[x->count - 1].match = x->innermost;
        x->innermost = x->count - 1;
    } else if (kind == ')' || kind == ']' || kind == '}') {
        close_bracket(x, kind == ')' ? '(' : kind == ']' ? '[' : '{');
    }
}

/* A comment of one line goes on until a newline. */
static int reaches_end(const lexer *x, const lumat_token *token)
{
    return token->open ||
           (token->end == x->length && long_mark(x, token->start + 2) == 0);
}

static void take(lexer *x, lumat_token *token)
{
    switch (token->kind) {
    case LUMAT_NAME:
        add(x, TOKEN_NAME, token, token->start);
        break;
    case LUMAT_KEYWORD:
        add(x, TOKEN_WORD, token, token->start);
        break;
    case LUMAT_NUMBER:
        add(x, TOKEN_NUMBER, token, token->start);
        break;
    case LUMAT_STRING:
        add_string(x, token);
        break;
    case LUMAT_COMMENT:
        x->in_comment = reaches_end(x, token);
        break;
    case LUMAT_SIGN:
        add_sign(x, token);
        break;
    case LUMAT_BLANK:
        break;
    }
}

void lumat_push_lexemes(lua_State *L, const char *text, size_t length,
                        lumat_lexemes *out)
{
    lexer x = {.L = L, .text = text, .length = length, .innermost = -1};
    lumat_token token = {0};
    lua_pushnil(L);
    while (lumat_next_token(text, length, &token))
        take(&x, &token);
    *out = (lumat_lexemes){text, x.list, x.count, x.innermost, x.in_comment};
}

int lumat_lexeme_kind(const lumat_lexemes *t, int i)
{
    return i >= 0 && i < t->count ? t->list[i].kind : 0;
}

int lumat_is_lexeme(const lumat_lexemes *t, int i, const char *text)
{
    size_t n = strlen(text);
    return i >= 0 && i < t->count && t->list[i].end - t->list[i].start == n &&
           memcmp(t->text + t->list[i].start, text, n) == 0;
}
