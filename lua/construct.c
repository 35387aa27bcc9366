/* Which construct an unfinished chunk leaves open, for the prompt. */
#include "library.h"

#include <ctype.h>
#include <string.h>

enum { DEEPEST = 64 };

typedef struct scanner {
    const char *p, *end;
    const char *open[DEEPEST]; /* names of open constructs, innermost last */
    int depth;
    int awaits_do; /* the innermost for or while has not seen its do */
} scanner;

static void push(scanner *s, const char *name)
{
    if (s->depth < DEEPEST)
        s->open[s->depth] = name;
    s->depth++;
}

static void pop(scanner *s)
{
    if (s->depth > 0)
        s->depth--;
}

/* At "[": the number of = in a long bracket's start, or -1 if it is none. */
static int long_bracket(const scanner *s)
{
    const char *p = s->p + 1;
    while (p < s->end && *p == '=')
        p++;
    return p < s->end && *p == '[' ? (int)(p - s->p - 1) : -1;
}

/* Past a long bracket of `level`; it stays open when text ends within. */
static void skip_long(scanner *s, int level, const char *name)
{
    for (s->p += level + 2; s->p < s->end; s->p++) {
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
    push(s, name);
}

static void skip_string(scanner *s)
{
    char quote = *s->p++;
    for (; s->p < s->end && *s->p != quote && *s->p != '\n'; s->p++)
        if (*s->p == '\\' && s->p + 1 < s->end)
            s->p++;
    if (s->p < s->end)
        s->p++;
}

static void skip_comment(scanner *s)
{
    s->p += 2;
    int level = s->p < s->end && *s->p == '[' ? long_bracket(s) : -1;
    if (level >= 0) {
        skip_long(s, level, "--[[");
        return;
    }
    while (s->p < s->end && *s->p != '\n')
        s->p++;
}

static int is_word(const char *start, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(start, word, n) == 0;
}

static void read_word(scanner *s)
{
    static const char *const openers[] = {"function", "if", "for", "while",
                                          "repeat"};
    const char *start = s->p;
    while (s->p < s->end && (isalnum((unsigned char)*s->p) || *s->p == '_'))
        s->p++;
    size_t n = (size_t)(s->p - start);
    for (size_t i = 0; i < sizeof openers / sizeof *openers; i++) {
        if (is_word(start, n, openers[i])) {
            push(s, openers[i]);
            s->awaits_do = i == 2 || i == 3;
        }
    }
    if (is_word(start, n, "do")) {
        if (!s->awaits_do)
            push(s, "do");
        s->awaits_do = 0;
    } else if (is_word(start, n, "end") || is_word(start, n, "until")) {
        pop(s);
    }
}

static void read_sign(scanner *s)
{
    char c = *s->p;
    if (c == '[' && long_bracket(s) >= 0) {
        skip_long(s, long_bracket(s), "[[");
        return;
    }
    if (c == '(' || c == '{' || c == '[')
        push(s, c == '(' ? "(" : c == '{' ? "{" : "[");
    else if (c == ')' || c == '}' || c == ']')
        pop(s);
    s->p++;
}

void lumat_push_open_construct(lua_State *L, const char *text, size_t length)
{
    scanner s = {.p = text, .end = text + length};
    while (s.p < s.end) {
        if (isalpha((unsigned char)*s.p) || *s.p == '_')
            read_word(&s);
        else if (*s.p == '"' || *s.p == '\'')
            skip_string(&s);
        else if (*s.p == '-' && s.p + 1 < s.end && s.p[1] == '-')
            skip_comment(&s);
        else
            read_sign(&s);
    }
    int innermost = s.depth > DEEPEST ? DEEPEST : s.depth;
    lua_pushstring(L, innermost > 0 ? s.open[innermost - 1] : "");
}
