/* An entry of several rows in one buffer. */
#include "keys.h"

#include "entry.h"
#include "history.h"
#include "paint.h"
#include "terminal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <readline/readline.h>

static lua_State *language;

void repl_edit_open(lua_State *L)
{
    language = L;
}

/* --- RETURN --------------------------------------------------------------- */

/* A row that begins with what closes a construct moves out to where that
 * began. */
static void close_row(void)
{
    int start = repl_row_start(rl_point), blanks;
    int wanted =
        repl_closing_indent(rl_line_buffer, (size_t)start, (size_t)rl_end);
    blanks = (int)strspn(rl_line_buffer + start, " ");
    if (wanted < 0 || wanted >= blanks)
        return;
    rl_delete_text(start, start + blanks - wanted);
    rl_point -= blanks - wanted;
    if (rl_point < start)
        rl_point = start;
}

int repl_insert_row(int count, int key)
{
    char row[64];
    int indent;
    (void)count;
    (void)key;
    rl_begin_undo_group();
    close_row();
    indent = repl_next_indent(rl_line_buffer, (size_t)rl_point);
    if (indent > (int)sizeof row - 2)
        indent = (int)sizeof row - 2;
    row[0] = '\n';
    memset(row + 1, ' ', (size_t)indent);
    row[indent + 1] = '\0';
    rl_insert_text(row);
    rl_end_undo_group();
    return 0;
}

/* Leaves the first entry of a block in the line, and queues the others.
 * Returns whether there were any. */
static int keep_first_entry(void)
{
    size_t first = repl_first_entry(language, rl_line_buffer), length;
    const char *rest = rl_line_buffer + first;
    if (*rest == '\0')
        return 0;
    for (; *rest != '\0'; rest += length) {
        char *entry;
        rest += strspn(rest, "\n");
        length = repl_first_entry(language, rest);
        entry = strndup(rest, length);
        if (entry != NULL)
            repl_queue_entry(entry, REPL_RUN);
        free(entry);
    }
    rl_delete_text((int)first, rl_end);
    rl_point = rl_end;
    return 1;
}

int repl_accept(int count, int key)
{
    if (!keep_first_entry() && repl_paint_has_rows() &&
        repl_is_incomplete(language, rl_line_buffer))
        return repl_insert_row(1, key);
    if (strchr(rl_line_buffer, '\n') != NULL) {
        rl_point = rl_end;
        close_row();
    }
    repl_paint_final();
    return rl_newline(count, key);
}

/* --- rows ----------------------------------------------------------------- */

/* Characters from the row's start: one of a place, the place of one. */
static int column_of(int place)
{
    int column = 0;
    for (int i = repl_row_start(place); i < place; i++)
        column += ((unsigned char)rl_line_buffer[i] & 0xC0) != 0x80;
    return column;
}

static int place_of(int start, int column)
{
    int place = start, end = repl_row_end(start);
    while (place < end && column-- > 0)
        do
            place++;
        while (place < end &&
               ((unsigned char)rl_line_buffer[place] & 0xC0) == 0x80);
    return place;
}

/* The column that a run of moves began in, which short rows on the way do not
 * change; -1: none is under way. */
static int goal = -1;

static int goal_column(void)
{
    if (goal < 0 ||
        (rl_last_func != repl_row_up && rl_last_func != repl_row_down))
        goal = column_of(rl_point);
    return goal;
}

int repl_row_up(int count, int key)
{
    if (count < 0)
        return repl_row_down(-count, key);
    for (; count > 0; count--) {
        int start = repl_row_start(rl_point);
        if (start == 0) {
            goal = -1;
            return repl_recall_older(count, key);
        }
        rl_point = place_of(repl_row_start(start - 1), goal_column());
    }
    return 0;
}

int repl_row_down(int count, int key)
{
    if (count < 0)
        return repl_row_up(-count, key);
    for (; count > 0; count--) {
        int end = repl_row_end(rl_point);
        if (end == rl_end) {
            goal = -1;
            return repl_recall_newer(count, key);
        }
        rl_point = place_of(end + 1, goal_column());
    }
    return 0;
}

int repl_to_row_start(int count, int key)
{
    int start = repl_row_start(rl_point);
    if (rl_point == start)
        return rl_beg_of_line(count, key);
    rl_point = start;
    return 0;
}

int repl_to_row_end(int count, int key)
{
    int end = repl_row_end(rl_point);
    if (rl_point == rl_end)
        return repl_take_suggestion(count, key);
    if (rl_point == end)
        return rl_end_of_line(count, key);
    rl_point = end;
    return 0;
}

/* --- killing -------------------------------------------------------------- */

int repl_kill_row(int count, int key)
{
    int end = repl_row_end(rl_point);
    if (count < 0 || rl_explicit_arg)
        return rl_kill_line(count, key);
    rl_kill_text(rl_point, end == rl_point && end < rl_end ? end + 1 : end);
    return 0;
}

int repl_kill_row_back(int count, int key)
{
    int start = repl_row_start(rl_point);
    (void)count;
    (void)key;
    if (rl_point == 0) {
        rl_ding();
        return 0;
    }
    if (start == rl_point)
        start--;
    rl_kill_text(rl_point, start);
    rl_point = start;
    return 0;
}

/* --- the suggestion ------------------------------------------------------- */

int repl_take_suggestion(int count, int key)
{
    const char *text = repl_ghost();
    (void)count;
    (void)key;
    if (text != NULL)
        rl_insert_text(text);
    return 0;
}

int repl_forward_character(int count, int key)
{
    if (rl_point == rl_end && count > 0 && repl_ghost() != NULL)
        return repl_take_suggestion(count, key);
    return rl_forward_char(count, key);
}

/* Blanks and signs, and the word behind them. */
static size_t word_length(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0' && !isalnum((unsigned char)text[length]) &&
           !(text[length] & 0x80))
        length++;
    while (isalnum((unsigned char)text[length]) || text[length] & 0x80 ||
           text[length] == '_')
        length++;
    return length;
}

int repl_forward_word(int count, int key)
{
    const char *text = repl_ghost();
    char *word;
    if (rl_point != rl_end || count < 1 || text == NULL)
        return rl_forward_word(count, key);
    word = strndup(text, word_length(text));
    if (word != NULL)
        rl_insert_text(word);
    free(word);
    return 0;
}

/* --- elsewhere ------------------------------------------------------------ */

int repl_edit_elsewhere(int count, int key)
{
    char *text;
    (void)count;
    (void)key;
    repl_paint_clear();
    rl_deprep_terminal();
    text = repl_edit_text(rl_line_buffer);
    rl_prep_term_function(1);
    if (text != NULL) {
        rl_begin_undo_group();
        rl_delete_text(0, rl_end);
        rl_point = 0;
        rl_insert_text(text);
        rl_end_undo_group();
    }
    free(text);
    rl_reset_screen_size();
    rl_forced_update_display();
    return 0;
}
