/* What is remembered of entries, what Up brings back, and the suggestion behind
 * the cursor. */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <readline/readline.h>
#include <readline/history.h>

/* --- rows of Readline's line ---------------------------------------------- */

int repl_row_start(int place)
{
    while (place > 0 && rl_line_buffer[place - 1] != '\n')
        place--;
    return place;
}

int repl_row_end(int place)
{
    while (place < rl_end && rl_line_buffer[place] != '\n')
        place++;
    return place;
}

/* --- the entries ---------------------------------------------------------- */

void repl_remember(const char *entry)
{
    add_history(entry);
}

int repl_remembered_count(void)
{
    return history_length;
}

const char *repl_remembered(int i)
{
    HIST_ENTRY *entry =
        i >= 0 && i < history_length ? history_get(history_base + i) : NULL;
    return entry != NULL ? entry->line : NULL;
}

const char *repl_last_remembered(void)
{
    return repl_remembered(history_length - 1);
}

void repl_forget_over(int most)
{
    stifle_history(most);
}

/* --- walking through them ------------------------------------------------- */

/* What entries are to begin with, and the line they brought back last. */
static char *prefix, *recalled;

/* Whether the line was just brought back. */
static int is_recalled(void)
{
    return recalled != NULL && strcmp(recalled, rl_line_buffer) == 0;
}

void repl_recall_begin(void)
{
    free(prefix);
    free(recalled);
    prefix = recalled = NULL;
}

/* A walk goes on while nothing but its own keys changed the line. */
static void begin_walk(void)
{
    if (is_recalled() && prefix != NULL)
        return;
    free(prefix);
    prefix = strndup(rl_line_buffer, (size_t)rl_point);
}

static void note_walked(void)
{
    free(recalled);
    recalled = strdup(rl_line_buffer);
}

/* An entry that was typed again later is met there. */
static int is_repeated(int i)
{
    const char *entry = repl_remembered(i);
    for (int j = i + 1; j < history_length; j++)
        if (strcmp(repl_remembered(j), entry) == 0)
            return 1;
    return 0;
}

/* The next entry from a place on that fits; -1 or history_length: none. */
static int find_entry(int place, int step)
{
    size_t length = prefix != NULL ? strlen(prefix) : 0;
    for (place += step; place >= 0 && place < history_length; place += step) {
        const char *entry = repl_remembered(place);
        if ((length == 0 || strncmp(entry, prefix, length) == 0) &&
            strcmp(entry, rl_line_buffer) != 0 && !is_repeated(place))
            break;
    }
    return place;
}

int repl_recall_older(int count, int key)
{
    begin_walk();
    for (; count > 0; count--) {
        int place = where_history(), found = find_entry(place, -1);
        if (found < 0) {
            rl_ding();
            break;
        }
        rl_get_previous_history(place - found, key);
    }
    rl_point = repl_row_end(0);
    note_walked();
    return 0;
}

int repl_recall_newer(int count, int key)
{
    begin_walk();
    for (; count > 0; count--) {
        int place = where_history();
        if (place >= history_length) {
            rl_ding();
            break;
        }
        rl_get_next_history(find_entry(place, 1) - place, key);
    }
    rl_point = rl_end;
    note_walked();
    return 0;
}

/* --- the suggestion ------------------------------------------------------- */

static int is_on;

void repl_ghost_begin(int on)
{
    const char *wish = getenv("LUMAT_SUGGESTIONS");
    is_on = on && (wish == NULL || strcmp(wish, "off") != 0);
}

/* Where a line is asked for in parts, or a key awaits others, or an earlier
 * entry was just brought back, nothing is suggested. */
static int is_wanted(void)
{
    if (!is_on || rl_end == 0 || rl_point != rl_end || is_recalled())
        return 0;
    if (RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG |
                   RL_STATE_VIMOTION | RL_STATE_COMPLETING))
        return 0;
    return rl_editing_mode != 0 || rl_get_keymap() == vi_insertion_keymap;
}

const char *repl_ghost(void)
{
    size_t length = (size_t)rl_end;
    if (!is_wanted())
        return NULL;
    for (int i = repl_remembered_count() - 1; i >= 0; i--) {
        const char *entry = repl_remembered(i);
        if (entry[0] == rl_line_buffer[0] &&
            strncmp(entry, rl_line_buffer, length) == 0 &&
            entry[length] != '\0')
            return entry + length;
    }
    return NULL;
}
