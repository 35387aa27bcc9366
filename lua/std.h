/* What is written in Lua and travels in the program: the files of lua/std, run
 * at every start, and those of lua/manual, run when help is asked for. */
#ifndef LUMAT_STD_H
#define LUMAT_STD_H

#include <stddef.h>

typedef struct lumat_std {
    const char *name; /* file name without .lua; NULL ends the list */
    const char *text;
    size_t length;
    int late; /* of lua/manual */
} lumat_std;

extern const lumat_std lumat_std_files[];

#endif
