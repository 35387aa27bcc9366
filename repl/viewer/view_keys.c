/* The viewer's help: what its keys do, laid out for the screen there is. */
#include "view_parts.h"

#include <stdio.h>
#include <string.h>

enum { KEY_COLUMNS = 21, INDENT = 2, MOST_LINES = 128, MOST_TEXT = 2048 };

static const struct key {
    const char *names, *what;
} keys[] = {
    {"arrows, h j k l", "by a cell"},
    {"PgUp PgDn", "by a screen"},
    {"Ctrl-arrows", "by half a screen"},
    {"Home End", "the row's ends, then the matrix's"},
    {"g or : 2071,88", "go there; end and -1 count too"},
    {"/nan /inf /0 />3.5", "find it; n the next, N the one before"},
    {"< >", "the smallest, the largest"},
    {"t", "transposed"},
    {"c", "heat colours"},
    {"+ - e", "more digits, fewer, e-notation"},
    {"y Y", "note cell or row as Lua, for after leaving"},
    {"q Esc Ctrl-C", "leave; Ctrl-C stops a search, too"},
};

enum { KEYS = sizeof keys / sizeof keys[0] };

typedef struct help {
    repl_pages pages;
    const char *lines[MOST_LINES];
    char text[MOST_TEXT];
    int used; /* of the text */
} help;

static void begin_line(help *h)
{
    if (h->pages.count < MOST_LINES)
        h->lines[h->pages.count++] = h->text + h->used;
}

static void put(help *h, int width, const char *text, int length)
{
    int room = MOST_TEXT - 1 - h->used;
    int n = snprintf(h->text + h->used, (size_t)room, "%-*.*s", width, length,
                     text);
    h->used += n < room ? n : room - 1;
}

static void end_line(help *h)
{
    int columns = repl_columns(h->lines[h->pages.count - 1]);
    if (columns > h->pages.widest)
        h->pages.widest = columns;
    h->text[++h->used] = '\0';
}

/* The words, in as many lines as they need. */
static void put_words(help *h, const char *words, int indent)
{
    int column = 0;
    while (*words != '\0') {
        int length = (int)strcspn(words, " ");
        if (column > 0 && column + 1 + length > COLS) {
            end_line(h);
            column = 0;
        }
        if (column == 0)
            begin_line(h);
        put(h, column > 0 ? 1 : indent, "", 0);
        column += (column > 0 ? 1 : indent) + length;
        put(h, 0, words, length);
        words += length;
        words += strspn(words, " ");
    }
    end_line(h);
}

/* Where both columns fit. */
static int is_wide(void)
{
    for (int i = 0; i < KEYS; i++)
        if (KEY_COLUMNS + (int)strlen(keys[i].what) > COLS)
            return 0;
    return 1;
}

static void lay_out(help *h)
{
    int wide = is_wide();
    h->pages.count = h->pages.widest = h->used = 0;
    h->pages.lines = h->lines;
    for (int i = 0; i < KEYS; i++) {
        if (wide) {
            begin_line(h);
            put(h, KEY_COLUMNS, keys[i].names, (int)strlen(keys[i].names));
            put(h, 0, keys[i].what, (int)strlen(keys[i].what));
            end_line(h);
        } else {
            put_words(h, keys[i].names, 0);
            put_words(h, keys[i].what, INDENT);
        }
    }
}

void view_show_keys(void)
{
    help h = {.used = 0};
    do
        lay_out(&h);
    while (repl_turn(&h.pages));
}
