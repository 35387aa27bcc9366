/* What a terminal hears of experiments. */
#ifndef LUMAT_EXPERIMENT_H
#define LUMAT_EXPERIMENT_H

#include "lua.h"

/* What the signal handler that is there for faults while an experiment runs is
 * to call before the program dies. */
void lumat_at_fault(void (*function)(void));

/* A longer task, of which operations are parts: what is done, and for how many
 * seconds already; NULL when it has ended. Called on the language's thread. */
void lumat_watch_tasks(void (*changed)(const char *what, double seconds));

#endif
