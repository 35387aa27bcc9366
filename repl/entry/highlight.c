/* How the text of an entry is coloured, what its rows go on with, and how far
 * they are moved in. Pure functions over its text. */
#include "entry.h"

#include <stdlib.h>
#include <string.h>

/* Longer texts are not looked at: that would delay every key. */
enum { LONGEST = 16384 };

typedef struct painter {
    repl_highlight *out;
    const char *text;
    size_t length, focus; /* focus: the bracket at the cursor */
    size_t rows;
    lumat_nesting nesting;
} painter;

/* The terminal's own colours, so that they suit its background. */
const char *repl_ink_sequence(unsigned char ink)
{
    static const char *const sequences[REPL_INKS] = {
        [REPL_INK_PLAIN] = "\033[0m",      [REPL_INK_PROMPT] = "\033[0;1m",
        [REPL_INK_KEYWORD] = "\033[0;35m", [REPL_INK_NUMBER] = "\033[0;36m",
        [REPL_INK_STRING] = "\033[0;32m",  [REPL_INK_COMMENT] = "\033[0;2m",
        [REPL_INK_COMMAND] = "\033[0;1m",  [REPL_INK_BRACKET] = "\033[0;1;33m",
        [REPL_INK_NOTE] = "\033[0;2m",
    };
    return ink & REPL_INK_REGION ? "\033[0;7m" : sequences[ink];
}

static int make_room(repl_highlight *highlight, size_t length, size_t rows)
{
    if (length > highlight->room) {
        unsigned char *inks = realloc(highlight->inks, 2 * length);
        if (inks == NULL)
            return 0;
        highlight->inks = inks;
        highlight->room = 2 * length;
    }
    if (rows > highlight->row_room) {
        const char **opens =
            realloc(highlight->opens, 2 * rows * sizeof *opens);
        if (opens == NULL)
            return 0;
        highlight->opens = opens;
        highlight->row_room = 2 * rows;
    }
    return 1;
}

static int is_bracket(char c)
{
    return c != '\0' && strchr("()[]{}", c) != NULL;
}

/* Under the cursor or, where there is none, before it. */
static size_t bracket_at(const char *text, size_t length, size_t point)
{
    if (point < length && is_bracket(text[point]))
        return point;
    if (point > 0 && point <= length && is_bracket(text[point - 1]))
        return point - 1;
    return LUMAT_NOWHERE;
}

static unsigned char ink_of(const char *text, const lumat_token *token)
{
    size_t length = token->end - token->start;
    const char *word = text + token->start;
    switch (token->kind) {
    case LUMAT_KEYWORD:
        if ((length == 3 && memcmp(word, "nil", 3) == 0) ||
            (length == 4 && memcmp(word, "true", 4) == 0) ||
            (length == 5 && memcmp(word, "false", 5) == 0))
            return REPL_INK_NUMBER;
        return REPL_INK_KEYWORD;
    case LUMAT_NUMBER:
        return REPL_INK_NUMBER;
    case LUMAT_STRING:
        return REPL_INK_STRING;
    case LUMAT_COMMENT:
        return REPL_INK_COMMENT;
    default:
        return REPL_INK_PLAIN;
    }
}

/* What the rows go on with that begin within a token. */
static void name_rows(painter *p, const lumat_token *token)
{
    const char *open = lumat_open_token(p->text, token);
    if (open[0] == '\0')
        open = lumat_innermost(&p->nesting);
    for (size_t i = token->start; i < token->end; i++)
        if (p->text[i] == '\n')
            p->out->opens[p->rows++] = open;
}

static void paint_lua(painter *p, size_t start)
{
    lumat_token token = {.end = start};
    while (lumat_next_token(p->text, p->length, &token)) {
        size_t partner = lumat_nest(&p->nesting, p->text, &token);
        memset(p->out->inks + token.start, ink_of(p->text, &token),
               token.end - token.start);
        if (partner != LUMAT_NOWHERE &&
            (partner == p->focus || token.start == p->focus))
            p->out->inks[partner] = p->out->inks[token.start] =
                REPL_INK_BRACKET;
        name_rows(p, &token);
    }
}

/* The length of a command's name, or of the marks of help, in front of the
 * text; 0: it is Lua, or no command has that name. */
static size_t mark_length(const char *text)
{
    const char *start = repl_skip_blanks(text), *rest;
    repl_entry_kind kind = repl_entry_kind_of(text, &rest);
    size_t length;
    if (kind == REPL_HELP || kind == REPL_SEARCH || kind == REPL_SHELL)
        return (size_t)(rest - start);
    if (kind != REPL_COMMAND)
        return 0;
    length = strcspn(rest, " \t\r\n");
    if (length > 0 && repl_find_command(rest, length) == NULL)
        return 0;
    return (size_t)(rest - start) + length;
}

/* Returns where what follows a command's name begins: it is painted as Lua,
 * which most of it is. */
static size_t paint_command(painter *p)
{
    size_t start = (size_t)(repl_skip_blanks(p->text) - p->text);
    size_t length = mark_length(p->text);
    if (length == 0)
        return 0;
    memset(p->out->inks, REPL_INK_PLAIN, start);
    memset(p->out->inks + start, REPL_INK_COMMAND, length);
    return start + length;
}

int repl_highlight_text(repl_highlight *highlight, const char *text,
                        size_t length, size_t point)
{
    painter p = {.out = highlight, .text = text, .length = length};
    size_t rows = 0;
    for (const char *c = text; (c = memchr(c, '\n', text + length - c)); c++)
        rows++;
    if (!make_room(highlight, length, rows))
        return 0;
    p.focus = bracket_at(text, length, point);
    if (length > LONGEST) {
        memset(highlight->inks, REPL_INK_PLAIN, length);
        for (size_t i = 0; i < rows; i++)
            highlight->opens[i] = "";
    } else {
        paint_lua(&p, paint_command(&p));
    }
    return 1;
}

/* --- how far rows are moved in -------------------------------------------- */

/* Two blanks in each construct that a row opens. */

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
