/* What stands in front of the rows of an entry. */
#ifndef PROMPT_H
#define PROMPT_H

#include <stddef.h>

/* The prompt of a row that goes on with what is open: "for …> ", ending where
 * the first row's prompt does when that leaves room. */
void repl_continuation_prompt(const char *first, const char *open, int ascii,
                              char *prompt, size_t room);

/* The length of a prompt that a line pasted from a screen begins with, or 0.
 * first gets 1 for an entry's first row. */
size_t repl_prompt_in(const char *line, int *first);

#endif
