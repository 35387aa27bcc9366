/* Writing on the terminal beside Readline: moving its cursor from row to row
 * of a picture, and the picture in colours. Every row is reached by a move of
 * its own, none by writing past the last column. */
#include "brush.h"

#include "entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <readline/readline.h>

static void move_rows(int rows)
{
    if (rows != 0)
        fprintf(rl_outstream, "\033[%d%c", abs(rows), rows > 0 ? 'B' : 'A');
}

void repl_move_to(int from, int row, int column)
{
    move_rows(row - from);
    fputc('\r', rl_outstream);
    if (column > 0)
        fprintf(rl_outstream, "\033[%dC", column);
}

/* Not all at once: what is cleared with a whole screen, tmux keeps above. */
void repl_clear_below(void)
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

void repl_paint_picture(const repl_picture *picture, int marked)
{
    int rows = picture->row_count;
    if (picture->rows[rows - 1] == picture->length &&
        picture->point_row < rows - 1)
        rows--; /* below a full row; the screen may not have it yet */
    repl_move_to(picture->point_row, 0, 0);
    for (int row = 0; row < rows; row++) {
        if (row > 0)
            repl_move_to(row - 1, row, 0);
        paint_row(picture, row, marked);
    }
    repl_move_to(rows - 1, picture->point_row, picture->point_column);
}

void repl_write_picture(const repl_picture *picture, int in_colour)
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
