/* The line being typed on the screen. Readline's own redisplay draws a picture
 * of the line, so that it and what is painted over agree on where each
 * character stands; then the same characters are written again in colour and
 * the cursor is put back. */
#include "paint.h"

#include "brush.h"
#include "current_line.h"
#include "entry.h"
#include "history.h"
#include "readline_draw.h"
#include "terminal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <readline/readline.h>

enum { MOST_SHOWN = 65536, MOST_PROMPT_ROWS = 200 };

static int has_rows;    /* rows can be drawn at all */
static int has_colours; /* and painted */
static int is_final, has_left, has_ghost;

static const repl_picture *shown; /* what is on the screen, or NULL */

static int is_whole(const repl_picture *picture)
{
    return picture == repl_drawn_whole();
}

/* --- the suggestion ------------------------------------------------------- */

void repl_paint_clear_ghost(void)
{
    if (has_ghost)
        fputs("\033[K", rl_outstream);
    has_ghost = 0;
}

/* As much of a text as goes into a row, without what cannot be shown. */
static size_t fit(const char *text, int room)
{
    size_t length = 0, left = strlen(text), count;
    int width;
    for (; left > 0; left -= count, length += count) {
        count = repl_character(text + length, left, &width);
        if (width < 0 || width > room)
            break;
        room -= width;
    }
    return length;
}

/* A suggestion of several rows shows its first one and a sign for the rest. */
static void paint_ghost(const repl_picture *picture)
{
    const char *text = repl_ghost(), *more;
    int room = picture->columns - picture->point_column - 3;
    size_t length = text != NULL ? fit(text, room) : 0;
    if (text == NULL || picture->point != picture->length || room < 1)
        return;
    more = text[length] == '\0' ? "" : repl_ascii() ? ".." : " …";
    fprintf(rl_outstream, "%s%.*s%s%s", repl_ink_sequence(REPL_INK_NOTE),
            (int)length, text, more, repl_ink_sequence(REPL_INK_PLAIN));
    repl_move_to(0, 0, picture->point_column);
    has_ghost = 1;
}

/* --- drawing -------------------------------------------------------------- */

/* Keys that wait already will change the line again. */
static int is_input_waiting(void)
{
    struct pollfd input = {.fd = fileno(rl_instream), .events = POLLIN};
    return !is_final && poll(&input, 1, 0) == 1;
}

/* What is looked for is part of the prompt, and Readline 8.2 writes beyond its
 * room for a prompt of 256 rows. A byte takes two columns at most. */
static int is_prompt_too_long(void)
{
    int rows, columns;
    rl_get_screen_size(&rows, &columns);
    return columns < 1 ||
           2 * strlen(rl_display_prompt) / (size_t)columns > MOST_PROMPT_ROWS;
}

static void redisplay(void)
{
    if (has_left || is_prompt_too_long())
        return;
    if (!has_rows) {
        rl_redisplay();
        return;
    }
    repl_paint_clear_ghost();
    shown = repl_draw_line(is_final);
    repl_redraw(shown, has_colours || (shown != NULL && shown->altered));
    if (has_colours && shown != NULL && !repl_is_lost() &&
        !is_input_waiting()) {
        repl_paint_picture(shown, rl_mark_active_p());
        if (!is_final)
            paint_ghost(shown);
    }
    fflush(rl_outstream);
}

/* What had no room while it was typed, unless it is very much. */
static void show_whole(void)
{
    if (is_whole(shown) || repl_drawn_whole()->length > MOST_SHOWN)
        return;
    repl_move_to(repl_redrawn_row(), 0, 0);
    repl_clear_below();
    repl_write_picture(repl_drawn_whole(), has_colours);
    fflush(rl_outstream);
    rl_on_new_line();
}

void repl_paint_final(void)
{
    if (!has_rows)
        return;
    is_final = 1;
    rl_deactivate_mark();
    redisplay();
    if (shown != NULL)
        show_whole();
    is_final = 0;
}

/* With the cursor behind the line, where the terminal shows the ^C. Readline
 * must not draw while it has a signal to act upon; but the line is drawn, it
 * lacks the colours it is to keep. */
static void leave_at_end(void)
{
    const repl_picture *picture = shown;
    if (is_whole(shown)) {
        rl_point = rl_end;
        picture = repl_draw_line(1);
    }
    if (picture == NULL)
        return;
    repl_move_to(repl_redrawn_row(), picture->row_count - 1, picture->column);
    if (has_colours && is_whole(picture))
        repl_paint_picture(picture, 0);
    rl_on_new_line();
}

/* Readline draws once more before it forgets a line, with what may no longer
 * be true. */
void repl_paint_leave(void)
{
    repl_paint_clear_ghost();
    if (has_rows && shown != NULL && !repl_is_lost() &&
        RL_ISSTATE(RL_STATE_READCMD))
        leave_at_end();
    fflush(rl_outstream);
    has_left = 1;
}

void repl_paint_clear(void)
{
    if (has_rows && shown != NULL) {
        repl_paint_clear_ghost();
        repl_move_to(shown->point_row, 0, 0);
        repl_clear_below();
    }
    fflush(rl_outstream);
}

/* --- another size --------------------------------------------------------- */

/* Most terminals lay out anew what they show when their width changes; xterm,
 * st and the console do not. */
static int is_laid_out_anew(void)
{
    const char *term = getenv("TERM");
    if (getenv("TMUX") != NULL)
        return 1;
    return getenv("XTERM_VERSION") == NULL && term != NULL &&
           strncmp(term, "st", 2) != 0 && strcmp(term, "linux") != 0;
}

void repl_paint_resized(void)
{
    int rows, columns, row;
    if (!has_rows || shown == NULL)
        return;
    repl_paint_clear_ghost();
    rl_get_screen_size(&rows, &columns);
    rl_reset_screen_size();
    rl_get_screen_size(&rows, &columns);
    row = is_laid_out_anew() ? repl_point_row_at(shown, columns)
                             : shown->point_row;
    repl_move_to(row, 0, 0);
    repl_clear_below();
    if (rl_display_prompt == rl_prompt)
        rl_expand_prompt(rl_prompt);
    rl_forced_update_display();
}

/* --- beginning ------------------------------------------------------------ */

/* Without a way up, or when Readline scrolls a line sideways, rows cannot be
 * drawn. */
static int can_move(void)
{
    const char *term = getenv("TERM"), *up = rl_get_termcap("up");
    return term != NULL && strcmp(term, "dumb") != 0 && up != NULL &&
           up[0] != '\0';
}

void repl_paint_open(void)
{
    if (!can_move())
        return;
    rl_catch_sigwinch = 0;
    rl_redisplay_function = redisplay;
}

/* Readline draws nothing on a terminal that was set not to echo. */
void repl_paint_begin(void)
{
    rl_reset_screen_size();
    has_rows = rl_redisplay_function == redisplay && repl_is_echoing() &&
               !repl_readline_has("horizontal-scroll-mode") &&
               !repl_readline_has("mark-modified-lines");
    has_colours = has_rows && repl_colour(fileno(rl_outstream));
    has_ghost = has_left = 0;
    repl_ghost_begin(has_colours);
    repl_begin_drawing();
    repl_begin_redrawing();
    shown = NULL;
}

/* What was typed while an entry ran stands where the prompt is to be. */
void repl_paint_clear_echo(void)
{
    if (has_rows && is_input_waiting())
        fputs("\r\033[K", rl_outstream);
}

int repl_paint_has_rows(void)
{
    return has_rows;
}
