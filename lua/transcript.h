/* The session as a file: entries and what they print. */
#ifndef LUMAT_TRANSCRIPT_H
#define LUMAT_TRANSCRIPT_H

#include "lua.h"

/* Writes an entry, and from then on what the program prints. */
void lumat_transcribe(const char *prompt, const char *text);
/* The output of the entry ends. */
void lumat_end_transcribed(void);

void lumat_open_transcript(lua_State *L);

#endif
