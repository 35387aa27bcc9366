/* Lua text up to a cursor as a list of tokens, and the names it declares. */
#include <string.h>
#include "lauxlib.h"
#include "parse.h"

typedef struct lexer {
    lua_State *L;
    const char *text;
    size_t length;
    lumat_lexeme *list; /* in the userdata on top of the stack */
    int count, room;
    int innermost, in_comment;
} lexer;

static void add(lexer *x, int kind, const lumat_token *token)
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
        (lumat_lexeme){kind, -1, token->start, token->end, token->content};
}

static int kind_of_sign(const lexer *x, const lumat_token *token)
{
    static const struct sign {
        const char *text;
        int kind;
    } signs[] = {{"..", TOKEN_CONCAT},  {"//", TOKEN_DIVIDE},
                 {"==", TOKEN_COMPARE}, {"~=", TOKEN_COMPARE},
                 {"<=", TOKEN_COMPARE}, {">=", TOKEN_COMPARE},
                 {"<", TOKEN_COMPARE},  {">", TOKEN_COMPARE}};
    const char *text = x->text + token->start;
    size_t length = token->end - token->start;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strlen(signs[i].text) == length &&
            memcmp(text, signs[i].text, length) == 0)
            return signs[i].kind;
    return length == 1 && (unsigned char)*text < 128 ? *text : TOKEN_OTHER;
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

static void add_sign(lexer *x, const lumat_token *token)
{
    int kind = kind_of_sign(x, token);
    add(x, kind, token);
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
           (token->end == x->length && x->text[token->content - 1] == '-');
}

static void take(lexer *x, const lumat_token *token)
{
    switch (token->kind) {
    case LUMAT_NAME:
        add(x, TOKEN_NAME, token);
        break;
    case LUMAT_KEYWORD:
        add(x, TOKEN_WORD, token);
        break;
    case LUMAT_NUMBER:
        add(x, TOKEN_NUMBER, token);
        break;
    case LUMAT_STRING:
        add(x, token->open ? TOKEN_OPEN_STRING : TOKEN_STRING, token);
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

/* --- declared names ------------------------------------------------------- */
/* The names that a line declares itself: its locals, the variables of its
 * loops, the parameters of its functions. */

typedef struct reader {
    const lumat_lexemes *t;
    lumat_declared_fn *each;
    void *data;
} reader;

static void report(const reader *r, int i)
{
    const lumat_lexeme *name = &r->t->list[i];
    r->each(r->data, r->t->text + name->start, name->end - name->start);
}

/* "a, b <const>, c" from token i on. */
static void read_names(const reader *r, int i)
{
    const lumat_lexemes *t = r->t;
    while (lumat_lexeme_kind(t, i) == TOKEN_NAME) {
        report(r, i++);
        if (lumat_is_lexeme(t, i, "<"))
            i += 3;
        if (lumat_lexeme_kind(t, i) != ',')
            return;
        i++;
    }
}

/* Behind "function": a name such as a.b:c or none, and the parameters. */
static void read_parameters(const reader *r, int i)
{
    const lumat_lexemes *t = r->t;
    while (lumat_lexeme_kind(t, i) == TOKEN_NAME ||
           lumat_lexeme_kind(t, i) == '.' || lumat_lexeme_kind(t, i) == ':')
        i++;
    if (lumat_lexeme_kind(t, i) == '(')
        read_names(r, i + 1);
}

void lumat_each_declared(const lumat_lexemes *t, lumat_declared_fn *each,
                         void *data)
{
    reader r = {t, each, data};
    for (int i = 0; i < t->count; i++) {
        if (t->list[i].kind != TOKEN_WORD)
            continue;
        if (lumat_is_lexeme(t, i, "function"))
            read_parameters(&r, i + 1);
        else if (lumat_is_lexeme(t, i, "for"))
            read_names(&r, i + 1);
        else if (lumat_is_lexeme(t, i, "local"))
            read_names(&r, i + 1 + lumat_is_lexeme(t, i + 1, "function"));
    }
}
