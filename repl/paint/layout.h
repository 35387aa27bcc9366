/* Where the characters of the line being typed stand on the screen; for paint/
 * alone. Readline is given a picture's text to show in place of its own: there
 * every character has a width that is known here, too, and every row its
 * prompt. */
#ifndef LAYOUT_H
#define LAYOUT_H

#include <stddef.h>

/* A line as it is laid out. Begins as {0}; its arrays are its own, used again
 * by the next drawing, and end with repl_free_picture. Places are bytes of
 * text, (size_t)-1 for none; rows and columns count from 0. */
typedef struct repl_picture {
    char *text;          /* the prompt and behind it the line, as shown */
    unsigned char *inks; /* of each byte */
    size_t length, room;
    size_t prompt; /* the length of the prompt */
    size_t *rows;  /* where each row of the screen begins in text */
    int row_count, row_room;
    int columns; /* of the screen */
    int column;  /* where the next character goes */
    size_t point, mark;
    int point_row, point_column;
    int altered; /* Readline itself would show another text */
    int marks;   /* characters without a column of their own */
    int is_part; /* the line has more rows than these */
    int failed;  /* memory was short */
} repl_picture;

/* What is to be shown; all of it stays the caller's. */
typedef struct repl_line_state {
    const char *primary; /* the prompt where nothing is asked beside it */
    const char *prompt, *text;
    size_t length, point, mark;
    const unsigned char *inks; /* of each byte of text; or NULL: plain */
    const char *const *opens;  /* of each newline of text; or NULL */
    int ascii;
} repl_line_state;

/* Draws a line for a screen so wide. */
void repl_draw(repl_picture *picture, const repl_line_state *line, int columns);

/* Draws the rows around the point that a screen of this height shows, and
 * notes in place of the others. first is the first one, as of the last call,
 * and is moved no farther than needed. */
void repl_draw_part(repl_picture *part, const repl_picture *whole, int height,
                    int ascii, int *first);

/* The row of the point, were the screen so wide. */
int repl_point_row_at(const repl_picture *picture, int columns);

/* The bytes of the character at text, of which so many are left, and its
 * columns; -1: none that can be shown. */
size_t repl_character(const char *text, size_t left, int *width);

void repl_free_picture(repl_picture *picture);

#endif
