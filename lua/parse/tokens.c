/* Lua text cut into tokens; and as a list of them: what stands at a place, and
 * how far expressions reach. */
#include <string.h>
#include "lauxlib.h"
#include "parse.h"

const char lumat_keywords[] =
    "and break do else elseif end false for function goto if in local nil not "
    "or repeat return then true until while";

typedef struct scanner {
    const char *p, *end;
    const char *content; /* of a string or comment: behind its mark */
    int open;            /* as in lumat_token */
} scanner;

static int is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int is_newline(char c)
{
    return c == '\n' || c == '\r';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Lua's names are ASCII, whatever the locale. */
static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* --- strings and comments ------------------------------------------------- */

/* The number of = in the long bracket that begins at p, or -1. */
static int long_bracket(const scanner *s)
{
    const char *p = s->p + 1;
    if (s->p >= s->end || *s->p != '[')
        return -1;
    while (p < s->end && *p == '=')
        p++;
    return p < s->end && *p == '[' ? (int)(p - s->p - 1) : -1;
}

static void skip_long(scanner *s, int level)
{
    s->content = s->p += level + 2;
    for (; s->p < s->end; s->p++) {
        if (*s->p != ']')
            continue;
        const char *p = s->p + 1;
        while (p < s->end && *p == '=')
            p++;
        if (p < s->end && *p == ']' && p - s->p - 1 == level) {
            s->p = p + 1;
            return;
        }
    }
    s->open = 1;
}

/* Past what a backslash escapes: a newline of two characters is one, and \z
 * takes every blank behind it. Returns whether it may go on behind the text. */
static int skip_escaped(scanner *s)
{
    if (s->p == s->end)
        return 1;
    char c = *s->p++;
    if (is_newline(c) && s->p < s->end && is_newline(*s->p) && *s->p != c)
        s->p++;
    while (c == 'z' && s->p < s->end && is_blank(*s->p))
        s->p++;
    return c == 'z' && s->p == s->end;
}

/* A newline that is not escaped ends a string, though not well. */
static void skip_string(scanner *s)
{
    char quote = *s->p++;
    int goes_on = 0;
    s->content = s->p;
    while (s->p < s->end && !is_newline(*s->p)) {
        char c = *s->p++;
        if (c == quote)
            return;
        if (c == '\\')
            goes_on = skip_escaped(s);
    }
    if (s->p == s->end)
        s->open = goes_on ? 1 : LUMAT_OPEN_IN_LINE;
}

static void skip_comment(scanner *s)
{
    s->content = s->p += 2;
    int level = long_bracket(s);
    if (level >= 0) {
        skip_long(s, level);
        return;
    }
    while (s->p < s->end && !is_newline(*s->p))
        s->p++;
}

/* --- words and signs ------------------------------------------------------ */

/* As Lua does: whatever might belong to a number, well formed or not. */
static void skip_number(scanner *s)
{
    const char *marks = "Ee", *start = s->p;
    if (*s->p == '0' && s->p + 1 < s->end && (s->p[1] | 32) == 'x')
        s->p += 2, marks = "Pp";
    while (s->p < s->end) {
        char c = *s->p;
        int after = s->p > start && strchr(marks, s->p[-1]) != NULL;
        if (!is_digit(c) && !is_letter(c) && c != '.' &&
            !(after && (c == '+' || c == '-')))
            return;
        s->p++;
    }
}

int lumat_is_listed(const char *word, size_t length, const char *words)
{
    for (const char *p = words; *p;) {
        size_t n = 0;
        while (n < length && p[n] == word[n])
            n++;
        if (n == length && (p[n] == ' ' || p[n] == '\0'))
            return 1;
        for (p += n; *p && *p != ' ';)
            p++;
        p += *p == ' ';
    }
    return 0;
}

/* The shortest are "do" and "if", the longest "function". */
int lumat_is_keyword(const char *word, size_t length)
{
    return length >= 2 && length <= 8 &&
           lumat_is_listed(word, length, lumat_keywords);
}

static int skip_word(scanner *s)
{
    const char *start = s->p;
    while (s->p < s->end && (is_letter(*s->p) || is_digit(*s->p)))
        s->p++;
    return lumat_is_keyword(start, (size_t)(s->p - start)) ? LUMAT_KEYWORD
                                                           : LUMAT_NAME;
}

/* A long string, or the longest sign that stands here. */
static int skip_sign(scanner *s)
{
    static const struct sign {
        const char *text;
        int kind;
    } signs[] = {
        {"...", LUMAT_OTHER},  {"..", LUMAT_CONCAT},  {"//", LUMAT_DIVIDE},
        {"==", LUMAT_COMPARE}, {"~=", LUMAT_COMPARE}, {"<=", LUMAT_COMPARE},
        {">=", LUMAT_COMPARE}, {"::", LUMAT_OTHER},   {"<<", LUMAT_OTHER},
        {">>", LUMAT_OTHER},   {"<", LUMAT_COMPARE},  {">", LUMAT_COMPARE}};
    int level = long_bracket(s);
    if (level >= 0) {
        skip_long(s, level);
        return LUMAT_STRING;
    }
    size_t left = (size_t)(s->end - s->p);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t n = strlen(signs[i].text);
        if (n <= left && memcmp(s->p, signs[i].text, n) == 0) {
            s->p += n;
            return signs[i].kind;
        }
    }
    unsigned char c = (unsigned char)*s->p++;
    return c > 0 && c < 128 ? c : LUMAT_OTHER;
}

static int skip_token(scanner *s)
{
    char c = *s->p, next = s->p + 1 < s->end ? s->p[1] : '\0';
    if (is_letter(c))
        return skip_word(s);
    if (is_digit(c) || (c == '.' && is_digit(next)))
        return skip_number(s), LUMAT_NUMBER;
    if (c == '"' || c == '\'')
        return skip_string(s), LUMAT_STRING;
    if (c == '-' && next == '-')
        return skip_comment(s), LUMAT_COMMENT;
    if (!is_blank(c))
        return skip_sign(s);
    while (s->p < s->end && is_blank(*s->p))
        s->p++;
    return LUMAT_BLANK;
}

/* A newline of two characters is one. */
int lumat_count_lines(const char *from, const char *to)
{
    int lines = 0;
    for (; from < to; from++) {
        if (!is_newline(*from))
            continue;
        lines++;
        if (from + 1 < to && is_newline(from[1]) && from[1] != *from)
            from++;
    }
    return lines;
}

int lumat_next_token(const char *text, size_t length, lumat_token *token)
{
    scanner s = {.p = text + token->end, .end = text + length};
    if (token->end >= length)
        return 0;
    token->line += lumat_count_lines(text + token->start, text + token->end);
    token->line += token->line == 0;
    token->start = token->end;
    s.content = s.p;
    token->kind = skip_token(&s);
    token->end = (size_t)(s.p - text);
    token->content = (size_t)(s.content - text);
    token->open = s.open;
    token->match = -1;
    return 1;
}

/* --- a list of them ------------------------------------------------------- */

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

/* --- what is asked of it -------------------------------------------------- */

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
