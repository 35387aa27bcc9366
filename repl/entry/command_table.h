/* The names of the commands, and what belongs behind them. */
#ifndef COMMAND_TABLE_H
#define COMMAND_TABLE_H

#include "lumat.h"

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
    int is_twin; /* it calls the library's function of the same name */
} repl_command;

/* The commands and their groups, for help. */
extern const lumat_row repl_command_rows[];

/* The command of a number from 0, in the order of commands.def, or NULL behind
 * the last. */
const repl_command *repl_command_at(int i);

/* The command of that name, or the only one whose name begins so, or NULL. */
const repl_command *repl_find_command(const char *name, size_t length);

/* How many commands begin so; found gets the last of them, or the exact one. */
int repl_count_commands(const char *name, size_t length,
                        const repl_command **found);

#endif
