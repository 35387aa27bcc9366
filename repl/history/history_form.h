/* The form of the history file: each entry behind a line with '#' and the
 * time, as Readline and bash write it. A line of an entry that looks like such
 * a line has a backslash before it. Pure functions over text. */
#ifndef HISTORY_FORM_H
#define HISTORY_FORM_H

#include <stddef.h>

/* A file's text, and where each of its entries begins. */
typedef struct repl_entries {
    char *text;
    size_t *starts; /* one more than count: the end */
    int count, room;
} repl_entries;

/* Finds the entries of the text, which belongs to them from then on. Returns
 * 0 when memory is short. */
int repl_find_entries(repl_entries *entries, char *text);
void repl_free_entries(repl_entries *entries);

/* The entry as it was typed. The caller frees it; NULL: memory is short. */
char *repl_entry_typed(const repl_entries *entries, int i);

/* The entry as the file has it, typed now. The caller frees it; NULL: memory
 * is short. */
char *repl_entry_filed(const char *entry);

#endif
