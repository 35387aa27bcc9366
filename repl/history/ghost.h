/* The suggestion behind the cursor: how an earlier entry that began like this
 * one went on. */
#ifndef GHOST_H
#define GHOST_H

/* A new line: whether there are suggestions, unless the user's environment
 * has LUMAT_SUGGESTIONS=off. */
void repl_ghost_begin(int on);

/* What may follow the line as it is now, or NULL. It stands until entries are
 * added. */
const char *repl_ghost(void);

#endif
