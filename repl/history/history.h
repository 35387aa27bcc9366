/* History: what was typed before. The file of entries, what Up and suggestions
 * bring back of it, and the entries that wait to be read. Sees the terminal;
 * the rooms that draw, edit and command see this one. Of its files those that
 * change the line know Readline. */
#ifndef HISTORY_H
#define HISTORY_H

/* --- the file: history.c -------------------------------------------------- */

/* Keeps this session's entries in the file from now on. Where that cannot be,
 * says so once and keeps them in memory. */
void repl_history_open(void);
/* The same for a session that can open no files later. */
void repl_history_hold(void);

/* Remembers the entries of earlier sessions: once, and before any is added or
 * looked for; the first prompt need not wait for it. */
void repl_history_read(void);

/* Remembers an entry, in memory and in the file, unless it begins with a space
 * or repeats the last. */
void repl_history_add(const char *entry);

/* --- what is remembered: recall.c -----------------------------------------
 * The entries of earlier sessions, then this one's. Texts stay the list's own,
 * and stand until entries are added. */

/* Adds an entry, not to the file. */
void repl_remember(const char *entry);
/* The entry i places from the oldest one, or NULL. */
const char *repl_remembered(int i);
int repl_remembered_count(void);
/* The newest entry, or NULL. */
const char *repl_last_remembered(void);
/* Forgets the oldest entries over a number, now and as more are added. */
void repl_forget_over(int most);

/* --- what Up brings back: recall.c ---------------------------------------- */

/* A new line: nothing of it was brought back yet. */
void repl_recall_begin(void);

/* Replaces the line by the nearest older (newer) entry that begins with what
 * stands before the cursor, and none twice; behind the newest comes the line
 * as it was. Both are Readline commands, for the keys. */
int repl_recall_older(int count, int key);
int repl_recall_newer(int count, int key);

/* The suggestion behind the cursor: how an earlier entry that began like this
 * one went on. A new line: whether there are suggestions, unless the user's
 * environment has LUMAT_SUGGESTIONS=off. */
void repl_ghost_begin(int on);
/* What may follow the line as it is now, or NULL. It stands until entries are
 * added. */
const char *repl_ghost(void);

/* Where the row of Readline's line begins, or ends, that the place is in. */
int repl_row_start(int place);
int repl_row_end(int place);

/* --- what waits to be read: entry_queue.c ---------------------------------
 * Entries of what was pasted, or edited elsewhere. */

enum {
    REPL_RUN = 1,     /* as if RETURN followed it */
    REPL_MAY_FAIL = 2 /* those behind it run nevertheless */
};

/* Queues a copy of an entry behind those queued since the last one was taken,
 * and in front of the others. */
void repl_queue_entry(const char *text, int flags);

/* The first of the queue into the line. Returns whether it is to be run. */
int repl_take_queued(void);

/* After an error or Ctrl-C: what waits does not run, which is said, and can be
 * recalled. After an error that was to be expected nothing happens. */
void repl_queue_failed(void);
void repl_queue_interrupted(void);

#endif
