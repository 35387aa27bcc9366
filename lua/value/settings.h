/* What can be set while lumat runs: `:set digits 6`, settings{digits = 6}. */
#ifndef LUMAT_SETTINGS_H
#define LUMAT_SETTINGS_H

#include "lua.h"
#include <stddef.h>

/* How matrices are printed. */
typedef struct lumat_limits {
    int digits; /* significant ones, 3 to 17 */
    int rows;   /* shown before a matrix is cut; 0: as the screen has room */
    int edge;   /* rows shown of the beginning of one that is cut, 1 to 100 */
} lumat_limits;

/* As they are set now: what it points to changes with the settings. */
const lumat_limits *lumat_print_limits(void);

typedef enum lumat_colour {
    LUMAT_COLOUR_AUTO, /* as the terminal and NO_COLOR say */
    LUMAT_COLOUR_ALWAYS,
    LUMAT_COLOUR_NEVER
} lumat_colour;

/* When there are colours: a setting, for the terminal to follow. */
void lumat_set_colour(lumat_colour when);
lumat_colour lumat_get_colour(void);

/* Sets what :set sets and pushes "digits = 6"; with "" for the value pushes
 * what it is and means; with "" for the name all, a line each. Returns 0 with a
 * message pushed when there is no such setting or value. Raises nothing but for
 * memory. */
int lumat_push_setting(lua_State *L, const char *name, const char *value);
/* The words among a setting's values, between blanks; "" when it has none.
 * length: of name, in bytes. */
const char *lumat_setting_words(const char *name, size_t length);

/* The Lua function settings([{name = value, …}]): gives a table of all, as they
 * are then; raises for what is no setting or no value of one. */
int lumat_settings(lua_State *L);

#endif
