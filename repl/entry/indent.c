/* How far the rows of an entry are moved in: two blanks in each construct that
 * a row opens. */
#include "indent.h"

#include "lumat.h"

#include <string.h>

enum { STEP = 2 };

static size_t row_start(const char *text, size_t place)
{
    while (place > 0 && text[place - 1] != '\n')
        place--;
    return place;
}

static int blanks_of_row(const char *text, size_t place)
{
    return (int)strspn(text + row_start(text, place), " ");
}

/* Takes the tokens before a place; returns whether it is in a string or a
 * comment of several lines. */
static int nest_until(lumat_nesting *nesting, const char *text, size_t place)
{
    lumat_token token = {0};
    while (lumat_next_token(text, place, &token))
        lumat_nest(nesting, text, &token);
    return token.open;
}

int repl_next_indent(const char *text, size_t point)
{
    lumat_nesting before = {0}, after = {0};
    size_t start = row_start(text, point);
    int blanks = blanks_of_row(text, point);
    if ((size_t)blanks > point - start)
        blanks = (int)(point - start);
    nest_until(&before, text, start);
    if (nest_until(&after, text, point))
        return 0;
    if (after.depth > before.depth)
        return blanks + STEP;
    /* "else" closed its row and opens the next */
    if (after.depth == before.depth && after.depth > 0 &&
        repl_closing_indent(text, start, point) >= 0)
        return blanks + STEP;
    return blanks;
}

static int is_next_part(const char *text, const lumat_token *token)
{
    static const char *const words[] = {"else", "elseif"};
    size_t length = token->end - token->start;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length &&
            memcmp(words[i], text + token->start, length) == 0)
            return 1;
    return 0;
}

int repl_closing_indent(const char *text, size_t start, size_t length)
{
    lumat_nesting nesting = {0};
    lumat_token token = {0};
    size_t place;
    if (nest_until(&nesting, text, start))
        return -1;
    token.end = start;
    if (!lumat_next_token(text, length, &token))
        return -1;
    if (token.kind == LUMAT_BLANK && !lumat_next_token(text, length, &token))
        return -1;
    place = is_next_part(text, &token) && nesting.depth > 0 &&
                    nesting.depth <= LUMAT_DEEPEST
                ? nesting.open[nesting.depth - 1].place
                : lumat_nest(&nesting, text, &token);
    return place != LUMAT_NOWHERE && place < start ? blanks_of_row(text, place)
                                                   : -1;
}
