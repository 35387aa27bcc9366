/* The session as a file: entries and what they print. */
#ifndef LUMAT_TRANSCRIPT_H
#define LUMAT_TRANSCRIPT_H

#include "lua.h"

void lumat_open_transcript(lua_State *L);

#endif
