/* The call that a cursor is in, and what the help says of its arguments and
 * options. */
#ifndef LUMAT_CALL_AT_CURSOR_H
#define LUMAT_CALL_AT_CURSOR_H

#include "function.h"
#include "known_value.h"

/* --- call_at_cursor.c
 * -------------------------------------------------------------- */

/* The call that the cursor is in. */
typedef struct lumat_calling {
    char name[64];  /* of the library's function, or as written: io.open */
    int is_library; /* it has help */
    int is_method;
    int argument;     /* from 1; the object of a method is the first */
    int callee, open; /* tokens: what is called, and where arguments begin */
} lumat_calling;

/* The call whose arguments token `open`, a bracket or string, begins; its
 * argument that begins before token `at`. Returns 0 when there is none. */
int lumat_find_call(lua_State *L, const lumat_tokens *t, int open, int at,
                    lumat_calling *call);
/* The fact about an argument before the one that the cursor is in. */
lumat_fact lumat_argument_fact(lua_State *L, const lumat_tokens *t,
                               const lumat_calling *call, int argument);
/* The kinds, as rows have them, that the argument has in the several forms of
 * the call; returns how many there are, up to most. */
int lumat_argument_kinds(lua_State *L, const lumat_calling *call,
                         lumat_piece *kinds, int most);
/* Pushes the usage and the help of what is called, or a user's function and
 * where it is; returns 0 and pushes nothing when there is neither. */
int lumat_push_signature(lua_State *L, const lumat_tokens *t,
                         const lumat_calling *call);
/* Pushes what the help has on the members of what is called so; returns 0 and
 * pushes nothing when it has none. */
int lumat_push_members(lua_State *L, const char *owner, size_t length);
/* How the metatable of the table on top names it, or NULL. */
const char *lumat_owner_name(lua_State *L);

#endif
