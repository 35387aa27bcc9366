/* What is written in Lua and travels in the program: the files of lua/std, run
 * at every start, those of lua/manual, run when help is asked for, and those
 * of lua/std/lazy and lua/experiment, which `require "lumat.NAME"` runs. The
 * list is written by lua/std/embed when the program is built. */
#ifndef LUMAT_STD_H
#define LUMAT_STD_H

#include <stddef.h>

typedef enum lumat_when {
    LUMAT_AT_START,
    LUMAT_FOR_HELP,
    LUMAT_WHEN_REQUIRED
} lumat_when;

typedef struct lumat_std {
    const char *name; /* file name without .lua; NULL ends the list */
    const char *text; /* Lua source; no zero byte ends it */
    size_t length;    /* of text, in bytes */
    lumat_when when;
} lumat_std;

extern const lumat_std lumat_std_files[];

#endif
