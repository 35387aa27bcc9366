/* What is written in Lua and travels in the program: the files of lua/std, run
 * at every start, those of lua/manual, run when help is asked for, and those
 * of lua/experiment, which `require "lumat.NAME"` runs. */
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
    const char *text;
    size_t length;
    lumat_when when;
} lumat_std;

extern const lumat_std lumat_std_files[];

#endif
