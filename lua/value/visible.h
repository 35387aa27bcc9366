/* Foreign text on its way to a terminal: names, files' contents, messages. */
#ifndef LUMAT_VISIBLE_H
#define LUMAT_VISIBLE_H

#include "lua.h"
#include <stdio.h>
#include <stddef.h>

/* The bytes of the one character that text begins with, where it can be shown
 * as it is; 0 where a terminal would obey it, or it is no UTF-8. */
size_t lumat_shown_length(const char *text, size_t length);
/* Pushes the text as lumat_write_visible writes it. */
const char *lumat_push_visible(lua_State *L, const char *text, size_t length);

/* Writes what others wrote (a file's name, an error's text) so that a terminal
 * obeys none of it: control characters, marks of direction and what is no UTF-8
 * become \x1B or \u{202E}. Newlines and tabs stay, colours if asked for. */
void lumat_write_visible(FILE *to, const char *text, size_t length,
                         int with_colours);

/* The same of up to a KiB of formatted text, without colours. */
void lumat_print_visible(FILE *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Behind the colour that text begins with, or text when there is none. */
const char *lumat_skip_colour(const char *text);
/* Takes the colours out of the text; returns its new length. */
size_t lumat_strip_colours(char *text);

/* What a message calls the value at index, behind "a": "matrix", "sparse
 * matrix", "file", "table" … The text stays as long as the value does. */
const char *lumat_kind_of(lua_State *L, int index);

/* luaL_tolstring, but no text tells an address with --safe: objects have
 * numbers of their own. All text for people is made by it. */
const char *lumat_tolstring(lua_State *L, int index, size_t *length);
/* Has Lua's own tostring and print do likewise. For --safe. */
void lumat_hide_addresses(lua_State *L);

#endif
