/* The prompt, and what its parts share. */
#ifndef REPL_H
#define REPL_H

#include "lumat.h"

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

/* The path of the user's init file, in path or the environment; NULL: none. */
const char *repl_init_path(char *path, size_t room);
/* Runs the user's init file; whatever is wrong with it is only reported. */
void repl_run_init(lua_State *L);

/* What is shown from now on fits the screen as it is now. */
void repl_take_style(repl_session *session);

/* Prompts until the user leaves. */
void repl_loop(lua_State *L);

#endif
