/* The part of the library written in Lua: the files of lua/std, in the program.
 */
#ifndef LUMAT_STD_H
#define LUMAT_STD_H

#include <stddef.h>

typedef struct lumat_std {
    const char *name; /* file name without .lua; NULL ends the list */
    const char *text;
    size_t length;
} lumat_std;

extern const lumat_std lumat_std_files[];

#endif
