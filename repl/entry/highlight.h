/* How the text of an entry is coloured, and what its rows go on with. Pure
 * functions over its text. */
#ifndef HIGHLIGHT_H
#define HIGHLIGHT_H

#include <stddef.h>

typedef enum repl_ink {
    REPL_INK_PLAIN,
    REPL_INK_PROMPT,
    REPL_INK_KEYWORD,
    REPL_INK_NUMBER,
    REPL_INK_STRING,
    REPL_INK_COMMENT,
    REPL_INK_COMMAND,
    REPL_INK_BRACKET, /* the one at the cursor, and its partner */
    REPL_INK_NOTE,    /* what is no part of the text */
    REPL_INKS,
    REPL_INK_REGION = 64 /* beside the others: the marked part */
} repl_ink;

typedef struct repl_highlight {
    unsigned char *inks; /* of each byte of the text */
    const char **opens;  /* of each newline: what the row behind it goes on */
    size_t room, row_room;
} repl_highlight;

/* Colours a text with the cursor at point; LUMAT_NOWHERE: there is none. The
 * arrays are reused and grow. Returns 0 when memory is short. */
int repl_highlight_text(repl_highlight *highlight, const char *text,
                        size_t length, size_t point);

/* The sequence that chooses an ink. */
const char *repl_ink_sequence(unsigned char ink);

#endif
