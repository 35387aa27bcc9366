/* What an entry says in Lua that may not be what was meant, though it is no
 * error: told at the prompt, behind what the entry shows. */
#ifndef LUMAT_REMARKS_H
#define LUMAT_REMARKS_H

#include "warning.h"
#include "lua.h"
#include <stddef.h>

/* With the entry still to be called: finds what the values of variables show
 * now, for lumat_each_remark to tell of. */
void lumat_find_remarks(lua_State *L, const char *text, size_t length);

/* Tells what the last entry says in Lua that may not be what was meant, such as
 * `A == 1`: one boolean, and no mask. The name is "". */
void lumat_each_remark(lua_State *L, lumat_name_fn *each, void *data);

#endif
