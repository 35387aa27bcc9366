/* The commands of the prompt: a colon and a name. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "repl.h"

/* What belongs behind a command, for completion. */
typedef enum repl_argument {
    REPL_NOTHING,
    REPL_CHOICE, /* one of `choices`, words between blanks */
    REPL_FILE,   /* choices: the kinds wanted first, ".lua"; or NULL: any */
    REPL_FOLDER,
    REPL_FILE_NAMES, /* the same, and names of variables behind it */
    REPL_VARIABLE,   /* the user's own; several */
    REPL_TOPIC,
    REPL_DEVICE,
    /* Lua; in these, choices: the function that takes it as its arguments;
     * NULL: none, or that of the same name */
    REPL_EXPRESSION,
    REPL_MATRIX, /* that begins with a variable that holds one */
    REPL_KERNEL  /* that, or a kernel's name */
} repl_argument;

typedef struct repl_command {
    const char *name, *form, *help;
    repl_argument argument;
    const char *choices;
    /* NULL: the library has a function of the same name */
    void (*run)(repl_session *session, const char *rest);
} repl_command;

/* The commands and their groups, for help. */
extern const lumat_row repl_command_rows[];

/* The command of a number from 0, or NULL behind the last. */
const repl_command *repl_command_at(int i);

/* The command of that name, or the only one whose name begins so, or NULL. */
const repl_command *repl_find_command(const char *name, size_t length);

/* Runs what follows the colon. */
void repl_run_command(repl_session *session, const char *text);

/* Runs what follows the exclamation mark. */
void repl_run_shell(repl_session *session, const char *text);

/* ?name or name?; an empty one: the page of first things. */
void repl_print_help(repl_session *session, const char *topic);
/* ??word */
void repl_print_search(repl_session *session, const char *word);

#endif
