/* The pager that is always there: lines of text on the whole screen. */
#include "full_screen.h"
#include "pager.h"

#include <stdio.h>
#include <string.h>

/* --- the lines ------------------------------------------------------------ */

/* Pushes the text cut into lines, in place, and their array. */
static void push_lines(lua_State *L, char *text, repl_pages *p)
{
    const char **lines;
    int columns;
    p->count = 1;
    for (const char *s = text; (s = strchr(s, '\n')) != NULL; s++)
        p->count++;
    lines = lua_newuserdatauv(L, (size_t)p->count * sizeof *lines, 0);
    p->lines = lines;
    for (int i = 0; i < p->count; i++) {
        lines[i] = text;
        text += strcspn(text, "\n");
        *text++ = '\0';
        columns = repl_columns(lines[i]);
        p->widest = columns > p->widest ? columns : p->widest;
    }
}

/* Behind the first so many characters. */
static const char *skip_columns(const char *text, int columns)
{
    for (; columns > 0 && *text != '\0'; columns--)
        for (text++; (*text & 0xC0) == 0x80;)
            text++;
    return text;
}

/* --- the screen ----------------------------------------------------------- */

static int clamp(int x, int most)
{
    return x > most ? (most > 0 ? most : 0) : x < 0 ? 0 : x;
}

/* As much as there is room for. */
static void draw_place(const repl_pages *p, int last)
{
    static const char *const forms[] = {"lines %d to %d of %d; q leaves",
                                        "%d-%d/%d; q leaves", "q leaves"};
    char text[80];
    size_t i = 0, forms_count = sizeof forms / sizeof forms[0];
    do
        snprintf(text, sizeof text, forms[i], p->top + 1, last, p->count);
    while (repl_columns(text) > COLS && ++i < forms_count);
    attrset(A_REVERSE);
    repl_put(LINES - 1, 0, COLS, text);
    attrset(A_NORMAL);
}

static void draw(repl_pages *p)
{
    int height = LINES - 1, last;
    p->top = clamp(p->top, p->count - height);
    p->left = clamp(p->left, p->widest - COLS);
    erase();
    for (int i = 0; i < height && p->top + i < p->count; i++)
        repl_put(i, 0, COLS, skip_columns(p->lines[p->top + i], p->left));
    last = p->top + height < p->count ? p->top + height : p->count;
    draw_place(p, last);
}

static void move_by(repl_pages *p, int lines, int columns)
{
    p->top += lines;
    p->left += columns;
}

/* Returns 0 for a key that leaves. */
static int act(repl_pages *p, int key)
{
    int page = LINES - 1, half = COLS / 2;
    switch (key) {
    case KEY_UP:
    case 'k':
        move_by(p, -1, 0);
        break;
    case KEY_DOWN:
    case 'j':
    case '\r':
        move_by(p, 1, 0);
        break;
    case KEY_PPAGE:
    case 'b':
        move_by(p, -page, 0);
        break;
    case KEY_NPAGE:
    case ' ':
        move_by(p, page, 0);
        break;
    case KEY_LEFT:
    case 'h':
        move_by(p, 0, -half);
        break;
    case KEY_RIGHT:
    case 'l':
        move_by(p, 0, half);
        break;
    case KEY_HOME:
    case 'g':
        p->top = p->left = 0;
        break;
    case KEY_END:
    case 'G':
        p->top = p->count;
        break;
    case 'q':
    case REPL_KEY_ESCAPE:
    case REPL_KEY_INTERRUPT:
    case REPL_KEY_LEAVE:
        return 0;
    }
    return 1;
}

int repl_turn(repl_pages *p)
{
    draw(p);
    return act(p, repl_get_key());
}

/* Called protected, with the text. */
static int turn(lua_State *L)
{
    repl_pages p = {.lines = NULL};
    size_t length;
    const char *text = lua_tolstring(L, 1, &length);
    char *copy = memcpy(lua_newuserdatauv(L, length + 1, 0), text, length + 1);
    lumat_strip_colours(copy);
    push_lines(L, copy, &p);
    while (repl_turn(&p))
        continue;
    return 0;
}

int repl_turn_pages(lua_State *L)
{
    lua_pushcfunction(L, turn);
    lua_pushvalue(L, 1);
    return repl_with_full_screen(L, 1) == LUA_OK ? 0 : lua_error(L);
}
