/* What Up brings back: the entries of earlier sessions, then this one's. */
#ifndef RECALL_H
#define RECALL_H

void repl_remember(const char *entry);
/* The entry i places from the oldest one, or NULL. */
const char *repl_remembered(int i);
int repl_remembered_count(void);
/* The newest entry, or NULL. */
const char *repl_last_remembered(void);
/* Forgets the oldest entries over a number. */
void repl_forget_over(int most);

/* A new line: nothing of it was brought back yet. */
void repl_recall_begin(void);

/* Replaces the line by the nearest older (newer) entry that begins with what
 * stands before the cursor, and none twice; behind the newest comes the line
 * as it was. Both are Readline commands, for the keys. */
int repl_recall_older(int count, int key);
int repl_recall_newer(int count, int key);

/* Whether the line was just brought back. */
int repl_recalled(void);

#endif
