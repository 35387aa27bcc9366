/* What `load` and its like take. */
#ifndef LUMAT_CHUNK_LOADING_H
#define LUMAT_CHUNK_LOADING_H

#include "lua.h"

/* Precompiled chunks are refused everywhere. */
void lumat_refuse_bytecode(lua_State *L);
/* The global `load` takes chunks and data files. */
void lumat_join_load(lua_State *L);

#endif
