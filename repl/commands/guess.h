/* The nearest of some names to a misspelt one. */
#ifndef GUESS_H
#define GUESS_H

/* Names by number from 0; NULL ends them. */
typedef const char *repl_name_at(int i);

/* The name most like word, or NULL when none is near. */
const char *repl_nearest(const char *word, repl_name_at *name_at);

#endif
