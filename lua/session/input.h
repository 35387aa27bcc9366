/* Standard input while an entry runs: see lumat_set_typing. */
#ifndef INPUT_H
#define INPUT_H

#include <sys/types.h>
#include "lua.h"

/* Puts stand-ins in place of io's and os's functions that may have the terminal
 * read. */
void lumat_open_input(lua_State *L);

/* How an entry reads standard input, and what is called around a program that
 * it starts or a terminal that it opens: the program may read it. */
typedef struct lumat_typing {
    ssize_t (*read)(char *text, size_t size);
    void (*lend)(void), (*take_back)(void);
} lumat_typing;
void lumat_set_typing(const lumat_typing *ways);

/* Runs a command of the shell, which has the terminal meanwhile; Ctrl-C ends
 * it. Pushes what there is to say of its end, "exit 3" or "interrupted", or "".
 * Returns 0 with a message pushed when it may not be started, or cannot. */
int lumat_run_shell(lua_State *L, const char *command);

#endif
