/* Foreign text on its way to a terminal: names, files' contents, messages. */
#ifndef LUMAT_VISIBLE_H
#define LUMAT_VISIBLE_H

#include "lumat.h"

/* The bytes of the one character that text begins with, where it can be shown
 * as it is; 0 where a terminal would obey it, or it is no UTF-8. */
size_t lumat_shown_length(const char *text, size_t length);
/* Pushes the text as lumat_write_visible writes it. */
const char *lumat_push_visible(lua_State *L, const char *text, size_t length);

#endif
