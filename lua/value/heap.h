/* Lua's memory: small blocks from lists of their own, which costs half of what
 * malloc and free do, up to a limit; and userdata whose end is told without a
 * finaliser. For one state. */
#ifndef LUMAT_HEAP_H
#define LUMAT_HEAP_H

#include "lua.h"
#include <stddef.h>

/* A new state on this heap, as luaL_newstate makes one, or NULL without
 * memory. */
lua_State *lumat_new_state(void);

/* From now on Lua gets no more than so many bytes, those of `others` with its
 * own; what it has stays. */
void lumat_limit_heap(size_t most, size_t (*others)(void));
/* The bytes that Lua holds. */
size_t lumat_heap_used(void);

/* Pushes userdata of so many bytes, without user values, that is handed to
 * `end` when the collector frees it: after every finaliser that could still
 * reach it, in the middle of a collection, so that `end` may not call Lua. The
 * bytes are 0. One size and one function for all. */
void *lumat_new_ending(lua_State *L, size_t bytes, void (*end)(void *data));

#endif
