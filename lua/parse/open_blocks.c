/* Which constructs an entry has open, for the prompt, indentation, and the
 * brackets that belong together. */
#include "parse.h"
#include "lauxlib.h"

#include <string.h>

static int is_word(const char *text, const lumat_token *token, const char *word)
{
    size_t length = token->end - token->start;
    return strlen(word) == length &&
           memcmp(text + token->start, word, length) == 0;
}

static void open_construct(lumat_nesting *nesting, const char *name,
                           size_t place)
{
    if (nesting->depth < LUMAT_DEEPEST) {
        lumat_construct *top = &nesting->open[nesting->depth];
        top->name = name;
        top->place = place;
        top->awaits_do = strcmp(name, "for") == 0 || strcmp(name, "while") == 0;
    }
    nesting->depth++;
}

static lumat_construct *innermost(lumat_nesting *nesting)
{
    if (nesting->depth == 0 || nesting->depth > LUMAT_DEEPEST)
        return NULL;
    return &nesting->open[nesting->depth - 1];
}

/* Whether a closing word or bracket belongs to what is open. */
static int closes(const char *name, const char *word)
{
    int is_block = name[0] >= 'a' && name[0] <= 'z';
    switch (word[0]) {
    case ')':
        return name[0] == '(';
    case ']':
        return name[0] == '[';
    case '}':
        return name[0] == '{';
    case 'u':
        return strcmp(name, "repeat") == 0;
    default:
        return is_block && strcmp(name, "repeat") != 0;
    }
}

static size_t close_construct(lumat_nesting *nesting, const char *word)
{
    const lumat_construct *top = innermost(nesting);
    if (nesting->depth > LUMAT_DEEPEST)
        nesting->depth--;
    if (top == NULL || !closes(top->name, word))
        return LUMAT_NOWHERE;
    nesting->depth--;
    return top->place;
}

/* The do of a for or while opens nothing of its own. */
static void take_do(lumat_nesting *nesting, size_t place)
{
    lumat_construct *top = innermost(nesting);
    if (top != NULL && top->awaits_do)
        top->awaits_do = 0;
    else
        open_construct(nesting, "do", place);
}

static size_t take_keyword(lumat_nesting *nesting, const char *text,
                           const lumat_token *token)
{
    static const char *const openers[] = {"function", "if", "for", "while",
                                          "repeat"};
    for (size_t i = 0; i < sizeof openers / sizeof *openers; i++)
        if (is_word(text, token, openers[i]))
            open_construct(nesting, openers[i], token->start);
    if (is_word(text, token, "do"))
        take_do(nesting, token->start);
    if (is_word(text, token, "end"))
        return close_construct(nesting, "end");
    if (is_word(text, token, "until"))
        return close_construct(nesting, "until");
    return LUMAT_NOWHERE;
}

static size_t take_sign(lumat_nesting *nesting, char sign, size_t place)
{
    static const char *const openers[] = {"(", "[", "{"};
    for (size_t i = 0; i < sizeof openers / sizeof *openers; i++)
        if (sign == openers[i][0])
            open_construct(nesting, openers[i], place);
    if (sign == ')' || sign == ']' || sign == '}')
        return close_construct(nesting, (char[]){sign, '\0'});
    return LUMAT_NOWHERE;
}

size_t lumat_nest(lumat_nesting *nesting, const char *text,
                  const lumat_token *token)
{
    if (token->kind == LUMAT_KEYWORD)
        return take_keyword(nesting, text, token);
    if (token->kind < LUMAT_NAME)
        return take_sign(nesting, (char)token->kind, token->start);
    return LUMAT_NOWHERE;
}

const char *lumat_innermost(const lumat_nesting *nesting)
{
    int depth = nesting->depth;
    if (depth > LUMAT_DEEPEST)
        depth = LUMAT_DEEPEST;
    return depth > 0 ? nesting->open[depth - 1].name : "";
}

const char *lumat_open_token(const char *text, const lumat_token *token)
{
    if (token->content == token->start || text[token->content - 1] != '[')
        return "";
    return token->kind == LUMAT_COMMENT  ? "--[["
           : token->kind == LUMAT_STRING ? "[["
                                         : "";
}

void lumat_push_open_construct(lua_State *L, const lumat_tokens *t)
{
    lumat_nesting nesting = {0};
    const char *name = "";
    for (int i = 0; i < t->count; i++)
        lumat_nest(&nesting, t->text, &t->list[i]);
    if (t->open)
        name = t->in_comment
                   ? "--[["
                   : lumat_open_token(t->text, &t->list[t->count - 1]);
    lua_pushstring(L, name[0] != '\0' ? name : lumat_innermost(&nesting));
}
