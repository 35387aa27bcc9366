/* What Tab offers at a cursor, and what an entry's text says that may not be
 * what was meant. For session, the terminal, and open.c. */
#ifndef LUMAT_COMPLETION_H
#define LUMAT_COMPLETION_H

#include "parse.h"
#include "value.h"
#include <stddef.h>

/* --- at the cursor -------------------------------------------------------- */

/* What a word of its own may be. */
typedef enum lumat_wanted {
    LUMAT_ANYTHING,
    LUMAT_VARIABLES, /* the user's own */
    LUMAT_MATRICES,  /* of the variables, those that hold one */
    LUMAT_SHOWN,     /* those, or a frame */
    LUMAT_KERNELS,   /* matrices, or a kernel */
    LUMAT_DEVICES,
    LUMAT_TOPICS /* names that have help */
} lumat_wanted;

typedef struct lumat_completion {
    size_t start;      /* of the word that ends at the cursor */
    int fitting;       /* so many of the first offers fit an operand */
    const char *files; /* a file's name belongs here, and ".csv .npy" are
                          wanted before others; "": any; NULL: no file's */
    char quote;        /* the one that is open, or 0 */
    int is_note;       /* offers are only for reading: a usage and its help */
} lumat_completion;

/* Calls each(data, completion, note) for whatever may stand in place of the
 * word that ends at point in line, in the order in which to list it. Never
 * runs user code or waits for a device. note may be "f32 4x4 cpu" or "". */
lumat_completion lumat_complete(lua_State *L, const char *line, size_t point,
                                lumat_wanted wanted, lumat_name_fn *each,
                                void *data);

void lumat_open_completions(lua_State *L); /* completions(line) */

/* --- remarks on an entry -------------------------------------------------- */
/* What is no error, told at the prompt behind what the entry shows; and what
 * --strict makes an error of, before the entry runs. */

/* With the entry, whose tokens are at the index, still to be called: finds what
 * the values of variables show now, for lumat_each_remark to tell of. */
void lumat_find_remarks(lua_State *L, int tokens);

/* Tells what the last entry says in Lua that may not be what was meant, such as
 * `A == 1`: one boolean, and no mask. The name is "". */
void lumat_each_remark(lua_State *L, lumat_name_fn *each, void *data);

/* Pushes what is wrong with the first a, b = f(…) where f is the library's for
 * certain and gives fewer results than there are names, and returns its line; 0
 * and nothing: there is none. */
int lumat_push_missing_result(lua_State *L, const lumat_tokens *t);

#endif
