/* The history file: whole entries, appended at once, read at the start. */
#ifndef HISTORY_H
#define HISTORY_H

/* Keeps this session's entries in the file from now on. Where that cannot be,
 * says so once and keeps them in memory. */
void repl_history_open(void);
/* The same for a session that can open no files later. */
void repl_history_hold(void);

/* Remembers the entries of earlier sessions: once, and before any is added or
 * looked for; the first prompt need not wait for it. */
void repl_history_read(void);

/* Remembers an entry, unless it begins with a space or repeats the last. */
void repl_history_add(const char *entry);

#endif
