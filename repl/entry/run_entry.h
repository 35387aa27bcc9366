/* Loading, calling and echoing one entry. */
#ifndef RUN_ENTRY_H
#define RUN_ENTRY_H

#include "lumat.h"

/* The prompt, and what its parts share. */
typedef struct repl_session {
    lua_State *L;
    lumat_style style;   /* of the screen, as the entry found it */
    double seconds;      /* that the last call took */
    int is_timed;        /* a stopwatch is to run during the next */
    int quit;            /* set to leave after this entry */
    int is_command;      /* what runs is noted under the command's text */
    unsigned complaints; /* as many as when the entry began */
    int keeps_ans;       /* what a command shows is no result of the user's */
    char prompt[64];
    char *text; /* the entry being typed or run */
} repl_session;

/* What is shown from now on fits the screen as it is now. */
void repl_take_style(repl_session *session);

/* Compiles an entry as lumat_load does; '=' in front makes it an expression, as
 * in Lua 5.2. */
int repl_load_entry(lua_State *L, const char *text, int *shown);

/* Reports the message a load left, and pops it. */
void repl_report_unloaded(lua_State *L, const char *text);

/* Calls the loaded entry on top of the stack, echoes or reports what comes of
 * it, and takes both away. Returns 1 when it ran. */
int repl_call_loaded(repl_session *session, const char *text, int shown);

/* All of it, for text that has to be complete. Returns 1 when it ran. */
int repl_evaluate(repl_session *session, const char *text);

#endif
