/* The program: its command line, and the prompt. command_line.c acts on the one
 * and starts the other; nobody below sees this, and lua/worker alone beside. */
#ifndef REPL_H
#define REPL_H

#include "lumat.h"

/* --- the command line, as numbers and strings: options.c ------------------ */

/* What -e or -p gave. */
typedef struct repl_chunk {
    const char *code; /* argv's own */
    int print;
} repl_chunk;

/* All that the options say; strings are argv's own. */
typedef struct repl_options {
    lumat_options language;
    lumat_colour colour;
    const char *manual; /* the form it is wanted in, or NULL */
    int interactive, quiet, no_init, help, version;
    double seconds; /* of --time; 0: no limit */
    int spmd;
    double check_seconds; /* of --spmd-check; 0: none */
    int script;           /* where argv names it; argc: nowhere */
    int standard_input;   /* it is - */
    int chunk_count;
    repl_chunk *chunks; /* in order; the caller frees them */
} repl_options;

enum { REPL_USAGE = 2 }; /* exit code of a wrong command line */

/* Reads the command line up to its first word that is no option. Returns 0,
 * or REPL_USAGE after saying on standard error what is wrong. */
int repl_parse_options(int argc, char **argv, repl_options *options);
/* Says what is wrong with it, and returns REPL_USAGE. */
int repl_refuse_options(const char *message);
void repl_print_usage(void);

/* The options as lines of help; they stand for ever. */
const lumat_row *repl_option_rows(void);

/* --- the program: command_line.c ------------------------------------------ */

/* What lumat-worker adds, whose processes, ranks, run one script together. */
typedef struct repl_ranks {
    /* Before the script; seconds: of --spmd-check, or 0. May raise. */
    void (*begin)(lua_State *L, double seconds);
} repl_ranks;

/* The word behind which lumat-worker finds lumat's own command line. */
#define REPL_AS_RANK "--spmd"

/* All of the program, for main; ranks: NULL in lumat itself. Returns the exit
 * code. */
int repl_main(int argc, char **argv, const repl_ranks *ranks);

/* --- the prompt: repl.c --------------------------------------------------- */

/* Prompts until the user leaves. Returns the file that :restart saved the
 * variables in, which the caller frees, or NULL. Raises nothing. */
char *repl_loop(lua_State *L);
/* Brings them back from there, or says why not; then the file is gone. */
void repl_restore(lua_State *L, const char *path);

#endif
