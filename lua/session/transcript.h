/* The session as a file: entries and what they print. */
#ifndef LUMAT_TRANSCRIPT_H
#define LUMAT_TRANSCRIPT_H

#include "lua.h"

/* For a transcript alone: an entry, with NULL for the prompt none, and
 * what is printed up to the end. */
void lumat_transcribe(const char *prompt, const char *text);
void lumat_end_transcribed(void);
/* What the terminal itself has shown: "^C". */
void lumat_transcribe_echo(const char *text);
/* Ends the transcript; NULL, or "f.log is not complete: No space left on
 * device", also of one that stopped earlier. */
const char *lumat_end_transcript(void);

void lumat_open_transcript(lua_State *L);

#endif
