/* What operations added up to: by operation and by line of Lua. */
#ifndef LUMAT_PROFILE_H
#define LUMAT_PROFILE_H

#include "matrix.h"

enum { LUMAT_LINE = 72 }; /* room for "file.lua:12" or the line of an entry */

typedef struct lumat_sum { /* what calls of one kind, or of one line, took */
    const char *operation, *kernel;
    const gpu_device *device;
    gpu_dtype dtype;
    char line[LUMAT_LINE];
    uint64_t calls;
    double seconds, flops, bytes;
} lumat_sum;

typedef struct lumat_moment { /* one operation */
    int kind, line;           /* places in the lists of sums */
    double start, seconds;    /* since the profile began */
    double flops, bytes;
    int64_t m, n, k;
} lumat_moment;

enum { LUMAT_SUMS = 2048 }; /* of a list; the last one takes all others */

typedef struct lumat_profile {
    lumat_sum *kinds, *lines;
    int kind_count, line_count;
    lumat_moment *moments;
    size_t count, room, dropped;
} lumat_profile;

/* Where the Lua code is that issued what happens now: "file.lua:12", at the
 * prompt "[3] C = A * B". */
void lumat_find_line(char line[LUMAT_LINE]);

/* Writes all moments as a trace for Perfetto or chrome://tracing; returns 0 or
 * what errno said. */
int lumat_write_profile(const lumat_profile *p, const char *path);

void lumat_open_profile(lua_State *L);

#endif
