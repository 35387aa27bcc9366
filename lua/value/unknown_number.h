/* Numbers of a dry run that depend on elements: what a sum or A(i, j) gives
 * there. What is computed from one is one; compared, it raises. */
#ifndef LUMAT_UNKNOWN_NUMBER_H
#define LUMAT_UNKNOWN_NUMBER_H

#include "matrix.h"

/* In a dry run pushes a number that `from` ("sum") would have read, and
 * returns 1; else 0, with the stack as it was. */
int lumat_push_unread(lua_State *L, const char *from);
/* The same of a text that does not stay. */
void lumat_push_unknown(lua_State *L, const char *from);
int lumat_is_unknown(lua_State *L, int index);
/* Is it a number, known or not? lua_tonumber of an unknown one is 0. */
int lumat_is_number(lua_State *L, int index);
/* f over numbers, the function at index, as one that gives an unknown number
 * for arguments among which there is one. */
void lumat_push_over_unknown(lua_State *L, int index);

/* In a dry run raises that nothing is known of what `name` costs: for what
 * changes more than matrices. */
void lumat_refuse_dry(lua_State *L, const char *name);

void lumat_open_unknown(lua_State *L);

#endif
