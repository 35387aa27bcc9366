/* The history file: whole entries, appended at once, read at the start. */
#ifndef HISTORY_H
#define HISTORY_H

/* Reads the file of earlier sessions, and keeps this one's entries in it.
 * Where that cannot be, says so once and keeps them in memory. */
void repl_history_open(void);

/* Remembers an entry, unless it begins with a space or repeats the last. */
void repl_history_add(const char *entry);

#endif
