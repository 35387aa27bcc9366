/* What an entry says in Lua that may not be what was meant, though it is no
 * error: told at the prompt, behind what the entry shows. */
#ifndef LUMAT_REMARKS_H
#define LUMAT_REMARKS_H

#include "function.h"
#include "parse.h"
#include "lua.h"
#include "value.h"
#include <stddef.h>

/* With the entry, whose tokens are at the index, still to be called: finds what
 * the values of variables show now, for lumat_each_remark to tell of. */
void lumat_find_remarks(lua_State *L, int tokens);

/* Tells what the last entry says in Lua that may not be what was meant, such as
 * `A == 1`: one boolean, and no mask. The name is "". */
void lumat_each_remark(lua_State *L, lumat_name_fn *each, void *data);

/* --- a, b = f(…) with fewer results than names: missing_results.c ----------
 */

typedef struct lumat_assigned_call {
    int names;             /* on the left, two or more */
    int sign, first, name; /* tokens: =, what is called, its last name */
    int open;              /* of the arguments */
    int is_method;
} lumat_assigned_call;

/* Is token i the name of what is called in such a statement? */
int lumat_find_assigned_call(const lumat_tokens *t, int i,
                             lumat_assigned_call *call);
/* Pushes "sort gives one result; with {places=true} it gives 2" when f gives
 * fewer results than there are names; else pushes nothing and returns 0. */
int lumat_push_fewer_results(lua_State *L, const lumat_tokens *t,
                             const lumat_function *f,
                             const lumat_assigned_call *call);
/* Pushes what is wrong with the first such statement of a function that is the
 * library's for certain, and returns its line; 0 and nothing: there is none. */
int lumat_push_missing_result(lua_State *L, const lumat_tokens *t);

#endif
