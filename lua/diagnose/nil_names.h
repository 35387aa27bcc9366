/* Names without a value that an entry passed on. */
#ifndef LUMAT_NIL_NAMES_H
#define LUMAT_NIL_NAMES_H

#include "warning.h"

/* With the error value of the last entry at index, or 0: tells once of each
 * name without a value that it passed on, when something else may have been
 * meant, or nil was the error. headline is "mattt is nil; did you mean mat?"
 * Tells as well, with "" for the name, of an entry without an error that would
 * do something else in another language. */
void lumat_each_unset(lua_State *L, int error, lumat_name_fn *each, void *data);

#endif
