/* What kind of entry was typed. Pure functions over its text. */
#ifndef ENTRY_KIND_H
#define ENTRY_KIND_H

#include <stddef.h>

typedef enum repl_entry_kind {
    REPL_BLANK,
    REPL_LUA,
    REPL_COMMAND, /* :name arguments */
    REPL_HELP,    /* ?name, or name? */
    REPL_SEARCH,  /* ??word */
    REPL_SHELL    /* !command, or :!command */
} repl_entry_kind;

/* rest gets the text behind the mark, without blanks in front; of name? all. */
repl_entry_kind repl_entry_kind_of(const char *text, const char **rest);

/* Skips spaces and tabs. */
const char *repl_skip_blanks(const char *text);

#endif
