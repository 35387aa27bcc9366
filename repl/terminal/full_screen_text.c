/* Text on the whole screen, and a question in its last line. */
#include "full_screen.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the text's first so many characters; each takes a column. */
static int bytes_of(const char *text, int columns, int *used)
{
    int bytes = 0;
    *used = 0;
    while (text[bytes] != '\0' && *used < columns) {
        bytes++;
        while ((text[bytes] & 0xC0) == 0x80)
            bytes++;
        ++*used;
    }
    return bytes;
}

int repl_columns(const char *text)
{
    int columns;
    bytes_of(text, INT_MAX, &columns);
    return columns;
}

void repl_put(int line, int column, int width, const char *text)
{
    int used, bytes = bytes_of(text, width, &used);
    int is_cut = width > 0 && text[bytes] != '\0';
    if (is_cut)
        bytes = bytes_of(text, width - 1, &used);
    mvaddnstr(line, column, text, bytes);
    if (is_cut)
        addstr(MB_CUR_MAX > 1 ? "…" : ">");
    else if (used < width)
        printw("%*s", width - used, "");
}

static int edit(char *text, int size, int key)
{
    int length = (int)strlen(text);
    if (key >= ' ' && key < 0x7F && length < size - 1) {
        text[length] = (char)key;
        text[length + 1] = '\0';
    } else if (key == 'U' - '@') {
        text[0] = '\0';
    } else if (key == KEY_BACKSPACE || key == 0x7F || key == '\b') {
        if (length == 0)
            return 0;
        text[length - 1] = '\0';
    }
    return 1;
}

/* Of a long text the end is shown, of a long label the beginning: it leaves
 * half of the line. */
static void show_question(const char *label, const char *text)
{
    int left = repl_columns(label), length = (int)strlen(text), room;
    if (left > COLS / 2 + 1)
        left = COLS / 2 + 1;
    room = COLS - left - 1;
    repl_put(LINES - 1, 0, COLS, "");
    repl_put(LINES - 1, 0, left, label);
    if (room > 0)
        mvaddstr(LINES - 1, left, text + (length > room ? length - room : 0));
}

int repl_ask(const char *label, char *text, int size)
{
    int answered = 0;
    curs_set(1);
    for (int going = 1; going;) {
        int key;
        show_question(label, text);
        key = repl_get_key();
        answered = key == '\r' || key == '\n' || key == KEY_ENTER;
        if (answered || key == REPL_KEY_ESCAPE || key == REPL_KEY_INTERRUPT ||
            key == REPL_KEY_LEAVE)
            going = 0;
        else if (key == KEY_RESIZE)
            going = ungetch(KEY_RESIZE) == ERR; /* for the caller */
        else
            going = edit(text, size, key);
    }
    curs_set(0);
    return answered;
}
