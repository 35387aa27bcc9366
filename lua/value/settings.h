/* What can be set while lumat runs: `:set digits 6`, settings{digits = 6}. */
#ifndef LUMAT_SETTINGS_H
#define LUMAT_SETTINGS_H

#include <stddef.h>
#include "lua.h"

/* How matrices are printed. */
typedef struct lumat_limits {
    int digits; /* significant ones */
    int rows;   /* shown before a matrix is cut; 0: as the screen has room */
    int edge;   /* rows shown of the beginning of one that is cut */
} lumat_limits;

const lumat_limits *lumat_print_limits(void);

typedef enum lumat_colour {
    LUMAT_COLOUR_AUTO, /* as the terminal and NO_COLOR say */
    LUMAT_COLOUR_ALWAYS,
    LUMAT_COLOUR_NEVER
} lumat_colour;

/* When there are colours: a setting, for the terminal to follow. */
void lumat_set_colour(lumat_colour when);
lumat_colour lumat_get_colour(void);

/* Sets what :set sets and pushes its new value; with "" for the value pushes
 * the old one; with "" for the name all. Returns 0 with a message pushed when
 * there is no such setting or value. */
int lumat_push_setting(lua_State *L, const char *name, const char *value);
/* The words among a setting's values, between blanks. */
const char *lumat_setting_words(const char *name, size_t length);

/* The Lua function settings([{name = value, …}]). */
int lumat_settings(lua_State *L);

#endif
