/* Entries of several statements: which of them show something, and how Lua
 * reads rows that go on with those above. */
#ifndef LUMAT_ECHOES_H
#define LUMAT_ECHOES_H

#include "lua.h"
#include "reader.h"

/* An entry as it is compiled, and what it shows. */
typedef struct lumat_echoes {
    int shown; /* no ';' ends it */
    /* An expression that ends the text and that Lua reads as no statement, for
     * nothing separates it from the one before; else its kind is END. */
    lumat_word refused;
} lumat_echoes;

/* Pushes the entry as the text to compile: every line is where it was, each
 * expression of the top level is the argument of an echo, and the last
 * statement, if it is one and nothing is closed behind it, is returned. Text
 * that is no Lua is left as it is from there on, for Lua to say so. */
lumat_echoes lumat_push_echoing(lua_State *L, const char *text, size_t length);

/* Pushes the C function that the text calls by this name, or returns 0. */
int lumat_push_echo(lua_State *L, const char *name);
int lumat_is_echo(const lumat_word *name);

/* Of an entry that compiles: did a statement with a ';' behind it give the name
 * its last value? Then that is not shown. */
void lumat_note_silenced(lua_State *L, const char *text, size_t length);
int lumat_is_silenced(lua_State *L, const char *name);

/* With the message of an error on top that names a line of the entry last given
 * to lumat_push_echoing: adds where in the statement a row goes on with the one
 * above it, though each could be a statement of its own. */
void lumat_explain_rows(lua_State *L);

/* The values are on the stack from 1 on; shown: they end a row, without a ';'.
 * What it raises ends the entry. */
typedef void lumat_echo_fn(lua_State *L, int shown);
void lumat_set_echo(lumat_echo_fn *echo);

#endif
