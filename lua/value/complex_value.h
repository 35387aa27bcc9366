/* Complex numbers as Lua values: immutable userdata. A number of Lua's and a
 * complex one are never ==, as the language has it; two complex ones are where
 * both parts are. */
#ifndef LUMAT_COMPLEX_VALUE_H
#define LUMAT_COMPLEX_VALUE_H

#include "complex_numbers.h"
#include "lua.h"

#define LUMAT_COMPLEX "lumat.complex" /* the metatable in the registry */

void lumat_push_complex(lua_State *L, gpu_complex z);
/* The complex number at index, or NULL. */
const gpu_complex *lumat_test_complex(lua_State *L, int index);
/* Takes a number, a boolean, a complex number or, as 0, one of a dry run;
 * returns 0 for anything else. */
int lumat_take_complex(lua_State *L, int index, gpu_complex *out);

void lumat_open_complex(lua_State *L); /* the metatable, without operators */

#endif
