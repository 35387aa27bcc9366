/* Readline's own drawing of a picture. It is given the picture's text in place
 * of the line, and drawn anew where Readline 8.2 would lose its place. */
#include "readline_draw.h"

#include "brush.h"
#include "current_line.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <readline/readline.h>

/* The line as it was drawn last. */
static struct {
    char prompt[1024];
    int is_drawn, ascii, lost, marks;
    int row; /* of the cursor */
} last;

void repl_begin_redrawing(void)
{
    last.is_drawn = 0;
}

int repl_redrawn_row(void)
{
    return last.row;
}

int repl_is_lost(void)
{
    return last.lost;
}

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
    for (const char *c = repl_drawn_prompt(); *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            return 1;
    return !is_ascii(repl_drawn_prompt()) && picture->row_count > 1 &&
           picture->rows[1] < picture->prompt;
}

/* Whether it would draw the rest of a line in the wrong place: when another
 * prompt comes in front of wide characters, or rows of them take each other's
 * place, and with accents that are characters of their own. */
static int is_misdrawn(const repl_picture *picture)
{
    int ascii = is_ascii(picture->text) && last.ascii;
    return picture->marks > 0 || last.marks > 0 ||
           (!ascii && (picture->is_part ||
                       strcmp(last.prompt, repl_drawn_prompt()) != 0));
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
            repl_move_to(last.row, 0, 0);
        repl_clear_below();
        forget_drawn();
    }
    snprintf(last.prompt, sizeof last.prompt, "%s", repl_drawn_prompt());
    last.is_drawn = 1;
    last.ascii = is_ascii(picture->text);
    last.lost = lost;
    last.marks = picture->marks;
    last.row = picture->point_row;
}

void repl_redraw(const repl_picture *picture, int in_place)
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
