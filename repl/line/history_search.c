/* Looking for an entry by a text in it. */
#include "keys.h"

#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <readline/readline.h>
#include <readline/history.h>

enum { ESCAPE = 27, DELETE = 127, CTRL_G = 7, CTRL_H = 8, CTRL_U = 21 };

static char wanted[256]; /* what was looked for last */
static int direction = -1;

/* --- reading it ----------------------------------------------------------- */

typedef struct field {
    size_t length;
    char text[sizeof wanted];
} field;

static void cut_character(field *f)
{
    while (f->length > 0 &&
           ((unsigned char)f->text[--f->length] & 0xC0) == 0x80)
        ;
    f->text[f->length] = '\0';
}

static void add_byte(field *f, int byte)
{
    if (byte < ' ' || f->length + 1 >= sizeof f->text) {
        rl_ding();
        return;
    }
    f->text[f->length++] = (char)byte;
    f->text[f->length] = '\0';
}

/* Takes a key; returns 0 for one that gives up. One that begins others, as a
 * paste does, is for the line. */
static int take_key(field *f, int key)
{
    if (key < 0 || key == CTRL_G)
        return 0;
    if (key == ESCAPE) {
        rl_execute_next(key);
        return 0;
    }
    if (key == DELETE || key == CTRL_H) {
        if (f->length == 0)
            return 0;
        cut_character(f);
    } else if (key == CTRL_U) {
        f->text[f->length = 0] = '\0';
    } else {
        add_byte(f, key);
    }
    return 1;
}

/* Returns 0 when it was given up. RETURN alone takes the last text again. */
static int read_wanted(void)
{
    field f = {.length = 0};
    int key, goes_on = 1;
    rl_save_prompt();
    while (goes_on) {
        rl_message("(search)`%s': ", f.text);
        RL_SETSTATE(RL_STATE_MOREINPUT);
        key = rl_read_key();
        RL_UNSETSTATE(RL_STATE_MOREINPUT);
        if (key == '\r' || key == '\n')
            break;
        goes_on = take_key(&f, key);
    }
    rl_restore_prompt();
    rl_clear_message();
    if (f.length > 0 && goes_on)
        strcpy(wanted, f.text);
    return goes_on;
}

/* --- finding it ----------------------------------------------------------- */

static int find(int step)
{
    int place = where_history() + step;
    const char *entry;
    while (
        (entry = repl_remembered(place)) != NULL &&
        (strstr(entry, wanted) == NULL || strcmp(entry, rl_line_buffer) == 0))
        place += step;
    return entry != NULL ? place : -1;
}

/* Brings the entry back as Up does. */
static int go_on(int step, int key)
{
    int place = wanted[0] != '\0' ? find(step) : -1;
    if (place < 0)
        return rl_ding();
    rl_get_previous_history(where_history() - place, key);
    return 0;
}

static int search(int step, int key)
{
    direction = step;
    return read_wanted() ? go_on(step, key) : 0;
}

int repl_search_older(int count, int key)
{
    (void)count;
    return search(-1, key);
}

int repl_search_newer(int count, int key)
{
    (void)count;
    return search(1, key);
}

int repl_search_older_again(int count, int key)
{
    (void)count;
    return go_on(-1, key);
}

int repl_search_newer_again(int count, int key)
{
    (void)count;
    return go_on(1, key);
}

int repl_search_as_vi(int count, int key)
{
    (void)count;
    return search(key == '?' ? 1 : -1, key);
}

int repl_search_as_vi_again(int count, int key)
{
    (void)count;
    return go_on(key == 'N' ? -direction : direction, key);
}
