/* Entries that wait to be read: of what was pasted, or edited elsewhere. */
#ifndef ENTRY_QUEUE_H
#define ENTRY_QUEUE_H

enum {
    REPL_RUN = 1,     /* as if RETURN followed it */
    REPL_MAY_FAIL = 2 /* those behind it run nevertheless */
};

/* Queues an entry behind those queued since the last one was taken, and in
 * front of the others. */
void repl_queue_entry(const char *text, int flags);

/* The first of the queue into the line. Returns whether it is to be run. */
int repl_take_queued(void);

/* After an error or Ctrl-C: what waits does not run, which is said, and can be
 * recalled. After an error that was to be expected nothing happens. */
void repl_queue_failed(void);
void repl_queue_interrupted(void);

#endif
