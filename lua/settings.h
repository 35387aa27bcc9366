/* What can be set while lumat runs: `:set digits 6`, settings{digits = 6}. */
#ifndef LUMAT_SETTINGS_H
#define LUMAT_SETTINGS_H

#include "lua.h"

/* How matrices are printed. */
typedef struct lumat_limits {
    int digits; /* significant ones */
    int rows;   /* shown before a matrix is cut; 0: as the screen has room */
    int edge;   /* rows shown of the beginning of one that is cut */
} lumat_limits;

const lumat_limits *lumat_print_limits(void);

void lumat_open_settings(lua_State *L);

#endif
