/* The line being typed on the screen. Readline's own redisplay draws a picture
 * of the line, so that it and what is painted over agree on where each
 * character stands; then the same characters are written again in colour and
 * the cursor is put back. */
#include "paint.h"

#include "entry.h"
#include "history.h"
#include "layout.h"
#include "terminal.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <readline/readline.h>

/* --- writing beside Readline ---------------------------------------------- */

/* Moving its cursor from row to row of a picture, and the picture in colours.
 * Every row is reached by a move of its own, none by writing past the last
 * column. Rows count from the picture's first. */

static void move_rows(int rows)
{
    if (rows != 0)
        fprintf(rl_outstream, "\033[%d%c", abs(rows), rows > 0 ? 'B' : 'A');
}

/* Moves the cursor, which is in row `from`. */
static void move_to(int from, int row, int column)
{
    move_rows(row - from);
    fputc('\r', rl_outstream);
    if (column > 0)
        fprintf(rl_outstream, "\033[%dC", column);
}

/* Clears the cursor's row and those below; it goes to the row's start. Not all
 * at once: what is cleared with a whole screen, tmux keeps above. */
static void clear_below(void)
{
    fputs("\r\033[K\0337\033[B\033[J\0338", rl_outstream);
}

/* The ink of a byte, with the part between cursor and mark. */
static unsigned char ink_at(const repl_picture *picture, size_t i, int marked)
{
    size_t a = picture->point, b = picture->mark;
    int inside = marked && (a < b ? i >= a && i < b : i >= b && i < a);
    return picture->inks[i] | (inside ? REPL_INK_REGION : 0);
}

static size_t row_end(const repl_picture *picture, int row)
{
    size_t end = picture->length;
    if (row + 1 < picture->row_count)
        end = picture->rows[row + 1];
    return end > picture->rows[row] && picture->text[end - 1] == '\n' ? end - 1
                                                                      : end;
}

/* Writes a row's characters as they stand, each change of ink in front. */
static void paint_row(const repl_picture *picture, int row, int marked)
{
    size_t end = row_end(picture, row);
    unsigned char ink = REPL_INK_PLAIN;
    for (size_t i = picture->rows[row]; i < end; i++) {
        unsigned char next = ink_at(picture, i, marked);
        if (next != ink)
            fputs(repl_ink_sequence(next), rl_outstream);
        ink = next;
        fputc(picture->text[i], rl_outstream);
    }
    if (ink != REPL_INK_PLAIN)
        fputs(repl_ink_sequence(REPL_INK_PLAIN), rl_outstream);
}

/* Writes over a picture that is on the screen, in colour, with the cursor at
 * its point, before and after; marked: what is between point and mark stands
 * out. */
static void paint_picture(const repl_picture *picture, int marked)
{
    int rows = picture->row_count;
    if (picture->rows[rows - 1] == picture->length &&
        picture->point_row < rows - 1)
        rows--; /* below a full row; the screen may not have it yet */
    move_to(picture->point_row, 0, 0);
    for (int row = 0; row < rows; row++) {
        if (row > 0)
            move_to(row - 1, row, 0);
        paint_row(picture, row, marked);
    }
    move_to(rows - 1, picture->point_row, picture->point_column);
}

/* Writes a picture that may be higher than the screen, and a newline. */
static void write_picture(const repl_picture *picture, int in_colour)
{
    for (int row = 0; row < picture->row_count; row++) {
        size_t begin = picture->rows[row];
        if (in_colour)
            paint_row(picture, row, 0);
        else
            fwrite(picture->text + begin, 1, row_end(picture, row) - begin,
                   rl_outstream);
        fputs("\r\n", rl_outstream);
    }
}

/* --- the picture of Readline's line --------------------------------------- */

/* All of the line that was drawn last, and the rows of it that the screen has
 * room for. */
static repl_picture whole, part;
static repl_highlight colours;
static char drawn_prompt[1024];
static int first_row; /* of the part that is shown */

/* Whether one of Readline's variables is on. */
static int readline_has(const char *variable)
{
    const char *value = rl_variable_value(variable);
    return value != NULL && strcmp(value, "on") == 0;
}

/* The user may have Readline put its mode in front of the prompt. */
static const char *mode_string(void)
{
    const char *name = "emacs-mode-string", *otherwise = "@", *value;
    if (rl_display_prompt != rl_prompt || !readline_has("show-mode-in-prompt"))
        return "";
    if (rl_editing_mode == 0 && rl_get_keymap() == vi_movement_keymap)
        name = "vi-cmd-mode-string", otherwise = "(cmd)";
    else if (rl_editing_mode == 0)
        name = "vi-ins-mode-string", otherwise = "(ins)";
    value = rl_variable_value(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* The prompt as it stands on the screen: \1 and \2 enclose what does not. */
static void draw_prompt(void)
{
    const char *texts[] = {mode_string(), rl_display_prompt};
    size_t length = 0;
    int hidden = 0;
    for (int i = 0; i < 2; i++)
        for (const char *c = texts[i]; c != NULL && *c != '\0'; c++)
            if (*c == '\1' || *c == '\2')
                hidden = *c == '\1';
            else if (!hidden && length + 1 < sizeof drawn_prompt)
                drawn_prompt[length++] = *c;
    drawn_prompt[length] = '\0';
}

/* Draws the line, with the prompt that is shown at the moment, for the screen
 * as it is; as it stays there when final: a bracket's partner is a help while
 * typing. A picture stands until the next one is drawn. NULL: memory is
 * short. */
static const repl_picture *draw_line(int is_final)
{
    size_t focus = is_final ? LUMAT_NOWHERE : (size_t)rl_point;
    int rows, columns;
    repl_line_state line = {.prompt = drawn_prompt,
                            .primary = rl_prompt,
                            .text = rl_line_buffer,
                            .length = (size_t)rl_end,
                            .point = (size_t)rl_point,
                            .mark = (size_t)rl_mark,
                            .ascii = repl_ascii()};
    rl_get_screen_size(&rows, &columns);
    draw_prompt();
    if (!repl_highlight_text(&colours, line.text, line.length, focus))
        return NULL;
    line.inks = colours.inks;
    line.opens = colours.opens;
    repl_draw(&whole, &line, columns);
    if (whole.failed || whole.row_count <= rows)
        return whole.failed ? NULL : &whole;
    repl_draw_part(&part, &whole, rows, line.ascii, &first_row);
    return part.failed ? NULL : &part;
}

/* --- Readline's own drawing of it ----------------------------------------- */

/* It is given the picture's text in place of the line, and drawn anew where
 * Readline 8.2 would lose its place. */

/* The line as it was drawn last. */
static struct {
    char prompt[1024];
    int is_drawn, ascii, lost, marks;
    int row; /* of the cursor */
} last;

/* Nothing may act on the line while Readline has the picture in its place. */
static void block_signals(sigset_t *old)
{
    sigset_t all;
    sigfillset(&all);
    for (;;) {
        sigprocmask(SIG_BLOCK, &all, old);
        if (!rl_pending_signal())
            return;
        sigprocmask(SIG_SETMASK, old, NULL);
        rl_check_signals();
    }
}

static void draw_in_place(const repl_picture *picture)
{
    char *line = rl_line_buffer;
    int end = rl_end, point = rl_point, mark = rl_mark;
    rl_line_buffer = picture->text + picture->prompt;
    rl_end = (int)(picture->length - picture->prompt);
    rl_point = (int)(picture->point - picture->prompt);
    if (picture->mark != (size_t)-1)
        rl_mark = (int)(picture->mark - picture->prompt);
    rl_redisplay();
    rl_line_buffer = line;
    rl_end = end;
    rl_point = point;
    rl_mark = mark;
}

static int is_ascii(const char *text)
{
    while (*text != '\0' && (*text & 0x80) == 0)
        text++;
    return *text == '\0';
}

/* What is looked for stands in the prompt: where that has rows of its own,
 * Readline 8.2 does not know where it is. */
static int is_lost(const repl_picture *picture)
{
    for (const char *c = drawn_prompt; *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            return 1;
    return !is_ascii(drawn_prompt) && picture->row_count > 1 &&
           picture->rows[1] < picture->prompt;
}

/* Whether it would draw the rest of a line in the wrong place: when another
 * prompt comes in front of wide characters, or rows of them take each other's
 * place, and with accents that are characters of their own. */
static int is_misdrawn(const repl_picture *picture)
{
    int ascii = is_ascii(picture->text) && last.ascii;
    return picture->marks > 0 || last.marks > 0 ||
           (!ascii &&
            (picture->is_part || strcmp(last.prompt, drawn_prompt) != 0));
}

/* Has the next drawing be of everything, from the cursor on. */
static void forget_drawn(void)
{
    char *prompt = rl_display_prompt;
    rl_reset_line_state();
    rl_display_prompt = prompt;
}

/* Such lines are drawn from the start, in a row below when it is not known
 * where that was. */
static void begin_anew(const repl_picture *picture)
{
    int lost = is_lost(picture);
    if (last.is_drawn && !lost && (last.lost || is_misdrawn(picture))) {
        if (last.lost)
            fputs("\r\n", rl_outstream);
        else
            move_to(last.row, 0, 0);
        clear_below();
        forget_drawn();
    }
    snprintf(last.prompt, sizeof last.prompt, "%s", drawn_prompt);
    last.is_drawn = 1;
    last.ascii = is_ascii(picture->text);
    last.lost = lost;
    last.marks = picture->marks;
    last.row = picture->point_row;
}

/* Has Readline draw the line, with the picture's text in its place when asked
 * for. NULL: there is no picture. */
static void redraw(const repl_picture *picture, int in_place)
{
    sigset_t old;
    block_signals(&old);
    if (picture != NULL)
        begin_anew(picture);
    if (picture != NULL && in_place)
        draw_in_place(picture);
    else
        rl_redisplay();
    sigprocmask(SIG_SETMASK, &old, NULL);
}

/* --- the state ------------------------------------------------------------ */

enum { MOST_SHOWN = 65536, MOST_PROMPT_ROWS = 200 };

static int has_rows;    /* rows can be drawn at all */
static int has_colours; /* and painted */
static int is_last;     /* it is drawn as it stays */
static int has_left, has_ghost;

static const repl_picture *shown; /* what is on the screen, or NULL */

static int is_whole(const repl_picture *picture)
{
    return picture == &whole;
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
    move_to(0, 0, picture->point_column);
    has_ghost = 1;
}

/* --- drawing -------------------------------------------------------------- */

/* Keys that wait already will change the line again. */
static int is_input_waiting(void)
{
    struct pollfd input = {.fd = fileno(rl_instream), .events = POLLIN};
    return !is_last && poll(&input, 1, 0) == 1;
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
    shown = draw_line(is_last);
    redraw(shown, has_colours || (shown != NULL && shown->altered));
    if (has_colours && shown != NULL && !last.lost && !is_input_waiting()) {
        paint_picture(shown, rl_mark_active_p());
        if (!is_last)
            paint_ghost(shown);
    }
    fflush(rl_outstream);
}

/* What had no room while it was typed, unless it is very much. */
static void show_whole(void)
{
    if (is_whole(shown) || whole.length > MOST_SHOWN)
        return;
    move_to(last.row, 0, 0);
    clear_below();
    write_picture(&whole, has_colours);
    fflush(rl_outstream);
    rl_on_new_line();
}

void repl_paint_final(void)
{
    if (!has_rows)
        return;
    is_last = 1;
    rl_deactivate_mark();
    redisplay();
    if (shown != NULL)
        show_whole();
    is_last = 0;
}

/* With the cursor behind the line, where the terminal shows the ^C. Readline
 * must not draw while it has a signal to act upon; but the line is drawn, it
 * lacks the colours it is to keep. */
static void leave_at_end(void)
{
    const repl_picture *picture = shown;
    if (is_whole(shown)) {
        rl_point = rl_end;
        picture = draw_line(1);
    }
    if (picture == NULL)
        return;
    move_to(last.row, picture->row_count - 1, picture->column);
    if (has_colours && is_whole(picture))
        paint_picture(picture, 0);
    rl_on_new_line();
}

/* Readline draws once more before it forgets a line, with what may no longer
 * be true. */
void repl_paint_leave(void)
{
    repl_paint_clear_ghost();
    if (has_rows && shown != NULL && !last.lost && RL_ISSTATE(RL_STATE_READCMD))
        leave_at_end();
    fflush(rl_outstream);
    has_left = 1;
}

void repl_paint_clear(void)
{
    if (has_rows && shown != NULL) {
        repl_paint_clear_ghost();
        move_to(shown->point_row, 0, 0);
        clear_below();
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
    move_to(row, 0, 0);
    clear_below();
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
               !readline_has("horizontal-scroll-mode") &&
               !readline_has("mark-modified-lines");
    has_colours = has_rows && repl_colour(fileno(rl_outstream));
    has_ghost = has_left = 0;
    repl_ghost_begin(has_colours);
    first_row = 0;
    last.is_drawn = 0;
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
